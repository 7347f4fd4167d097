package sqlstore

import (
	"context"
	"fmt"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

// tableOf names the table with a row for each record of a kind.
var tableOf = map[ledger.Kind]*Table{
	customers.Kind:           Accounts,
	customers.AdjustmentKind: &adjustmentTable,
	customers.ImportKind:     &importTable,
	refunds.Kind:             Refunds,
	refunds.ReversalKind:     &reversalTable,
	payables.VendorKind:      &vendorTable,
	payables.OrderKind:       &orderTable,
	payables.ReceiptKind:     &receiptTable,
	payables.InvoiceKind:     &invoiceTable,
	payables.NumberClaimKind: &claimTable,
	payables.DecisionKind:    &decisionTable,
}

// Each of these reads all rows of the tenant.
const (
	// What has no id stands in no list of those that are verified.
	countVersions = `SELECT CAST(coalesce(sum(r.version), 0) AS bigint)
		FROM (SELECT version FROM accounts WHERE tenant = $1 AND id <> '' UNION ALL SELECT version FROM vendors WHERE tenant = $1 AND id <> '') r`
	countEntries   = `SELECT r.command, count(*) FROM entries r WHERE r.tenant = $1 GROUP BY r.command`
	countOutcomes  = `SELECT r.command, count(*) FROM operations r WHERE r.tenant = $1 GROUP BY r.command`
	countImported  = `SELECT CAST(coalesce(sum(r.opened), 0) AS bigint) FROM imports r WHERE r.tenant = $1`
	countRecordsOf = `SELECT count(*) FROM %s r WHERE r.tenant = $1`
	countAnswers   = `SELECT count(*) FROM operations r JOIN %s a ON a.tenant = r.tenant AND %s WHERE r.tenant = $1 AND r.answer_kind = $2`
)

// answerOf says which row of its table is the answer of an outcome, of the kinds
// of answer that an outcome without an entry has.
var answerOf = map[ledger.Kind]string{
	payables.DecisionKind: `a.vendor = r.answer_id AND a.number = r.answer_number`,
	customers.ImportKind:  `a.id = r.answer_id`,
}

// Count implements ports.Census.
func (s *Store) Count(ctx context.Context, t access.Tenant) (ports.Counts, error) {
	c := ports.Counts{Entries: map[string]int64{}, Outcomes: map[string]int64{}, Records: map[ledger.Kind]int64{}, Answers: map[ledger.Kind]int64{}}
	args := []any{t.String()}
	byCommand := func(counts map[string]int64) func(Row) error {
		return func(r Row) error {
			var command string
			var n int64
			err := r.Scan(&command, &n)
			counts[command] = n
			return err
		}
	}
	steps := []Step{
		{countVersions, args, func(r Row) error { return r.Scan(&c.Versions) }},
		{countImported, args, func(r Row) error { return r.Scan(&c.Imported) }},
		{countEntries, args, byCommand(c.Entries)},
		{countOutcomes, args, byCommand(c.Outcomes)},
	}
	of := func(counts map[ledger.Kind]int64, k ledger.Kind) func(Row) error {
		return func(r Row) error {
			var n int64
			err := r.Scan(&n)
			counts[k] = n
			return err
		}
	}
	for kind, table := range tableOf {
		steps = append(steps, Step{fmt.Sprintf(countRecordsOf, table.Name), args, of(c.Records, kind)})
	}
	for kind, row := range answerOf {
		steps = append(steps, Step{fmt.Sprintf(countAnswers, tableOf[kind].Name, row), append(args[:1:1], kind.Name), of(c.Answers, kind)})
	}
	err := s.read(ctx, nil, steps...) // which fills c
	return c, err
}
