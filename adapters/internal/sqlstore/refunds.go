package sqlstore

import (
	"context"
	"math"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// Refunds is the table of the refunds. It has no index of ids: a refund is found by its customer and the
// number of its entry, and no decision needs another way.
var Refunds = &Table{"refunds", []Column{
	{"tenant", Text, Key},
	{"customer", Text, Key},
	{"number", Int, Key},
	{"id", ID, Fixed},
	{"amount_minor", Int, Fixed},
	{"currency", Text, Fixed},
	{"digits", Int, Fixed},
	{"reason", Text, Fixed},
	{"processed_at", Time, Fixed},
	{"remaining_minor", Int, Fixed},
	{"entry", EntryPlace, Fixed},
}}

// A refund is reversed when it has a reversal; nothing is changed in its row.
const (
	refundColumns = `r.customer, r.number, r.id, r.amount_minor, r.currency, r.digits, r.reason, r.processed_at, r.remaining_minor,
		CASE WHEN v.refund IS NULL THEN 'processed' ELSE 'reversed' END`
	refundJoin = `LEFT JOIN reversals v ON v.tenant = r.tenant AND v.customer = r.customer AND v.refund = r.number`
	refundPage = `SELECT ` + refundColumns + ` FROM refunds r ` + refundJoin + `
		WHERE r.tenant = $1 AND r.customer = $2 AND r.number < $3 ORDER BY r.number DESC LIMIT $4`
)

// refundCodec keeps refunds. As an answer a refund is what it was when it was
// given: processed.
type refundCodec struct{ fixed[refunds.Refund] }

func newRefundCodec(d Dialect) *refundCodec {
	return &refundCodec{fixed[refunds.Refund]{
		dialect: d, of: refunds.Kind, table: Refunds, keys: byNumber("number"),
		query: byKey(d, Refunds, refundColumns, refundJoin, byNumber("number")),
		name:  numbered,
		key:   func(r refunds.Refund) (string, int64) { return r.Customer.String(), r.Number },
		row: func(r refunds.Refund) []any {
			return []any{r.Customer.String(), r.Number, r.ID, r.Amount.Minor(), r.Amount.Currency().String(), int64(r.Amount.Currency().Digits()), r.Reason.String(), r.ProcessedAt, r.Remaining.Minor()}
		},
		fields: refundFields,
	}}
}

func (c *refundCodec) write(w *writes, ch committer.Changed) {
	r := ch.After.(refunds.Refund)
	row := append([]any{ch.Tenant.String()}, c.row(r)...)
	w.add(Insert, Refunds, append(row, w.entries[entryName{ch.Tenant, r.Customer.Subject(), r.Number}])...)
}

func (c *refundCodec) answers(list []*kept) ([]Step, func() error) {
	steps, then := c.fixed.answers(list)
	return steps, func() error {
		for _, k := range list {
			if r, ok := k.outcome.Answer.(refunds.Refund); ok {
				r.Status = refunds.Processed
				k.outcome.Answer = r
			}
		}
		return then()
	}
}

func refundFields() ([]any, func() (refunds.Refund, error)) {
	var customer, currency, reason, status string
	var number, amount, remaining int64
	var digits int
	var id uuid
	var at timestamp
	return []any{&customer, &number, &id, &amount, &currency, &digits, &reason, &at, &remaining, &status}, func() (r refunds.Refund, err error) {
		r.ID, r.Number, r.ProcessedAt = operation.ID(id), number, at.Time
		if r.Customer, err = customers.ParseID(customer); err != nil {
			return r, err
		}
		c, err := money.RestoreCurrency(currency, digits)
		if err != nil {
			return r, err
		}
		r.Amount, r.Remaining = money.FromMinor(amount, c), money.FromMinor(remaining, c)
		if r.Status, err = refunds.ParseStatus(status); err != nil {
			return r, err
		}
		r.Reason, err = refunds.RestoreReason(reason)
		return r, err
	}
}

// ListRefunds implements ports.Refunds.
func (s *Store) ListRefunds(ctx context.Context, t access.Tenant, customer customers.ID, before int64, limit int) ([]refunds.Refund, error) {
	if limit <= 0 {
		return nil, nil
	}
	if before <= 0 {
		before = math.MaxInt64
	}
	var list []refunds.Refund
	err := s.read(ctx, nothing, Step{refundPage, []any{t.String(), customer.String(), before, int64(min(limit, math.MaxInt32))}, func(row Row) error {
		dest, record := refundFields()
		if err := row.Scan(dest...); err != nil {
			return err
		}
		r, err := record()
		list = append(list, r)
		return err
	}})
	return list, err
}

var reversalTable = Table{"reversals", []Column{
	{"tenant", Text, Key},
	{"customer", Text, Key},
	{"refund", Int, Key},
	{"number", Int, Fixed},
	{"id", ID, Fixed},
	{"amount_minor", Int, Fixed},
	{"currency", Text, Fixed},
	{"digits", Int, Fixed},
	{"reason", Text, Fixed},
	{"reversed_at", Time, Fixed},
	{"remaining_minor", Int, Fixed},
}}

func newReversalCodec(d Dialect) *fixed[refunds.Reversal] {
	const columns = `r.customer, r.refund, r.number, r.id, r.amount_minor, r.currency, r.digits, r.reason, r.reversed_at, r.remaining_minor`
	return &fixed[refunds.Reversal]{
		dialect: d, of: refunds.ReversalKind, table: &reversalTable, keys: byNumber("refund"),
		query: byKey(d, &reversalTable, columns, "", byNumber("refund")),
		name:  numbered,
		key:   func(r refunds.Reversal) (string, int64) { return r.Customer.String(), r.Refund },
		row: func(r refunds.Reversal) []any {
			return []any{r.Customer.String(), r.Refund, r.Number, r.ID, r.Amount.Minor(), r.Amount.Currency().String(), int64(r.Amount.Currency().Digits()), r.Reason.String(), r.ReversedAt, r.Remaining.Minor()}
		},
		fields: func() ([]any, func() (refunds.Reversal, error)) {
			var customer, currency, reason string
			var refund, number, amount, remaining int64
			var digits int
			var id uuid
			var at timestamp
			return []any{&customer, &refund, &number, &id, &amount, &currency, &digits, &reason, &at, &remaining}, func() (r refunds.Reversal, err error) {
				r.ID, r.Refund, r.Number, r.ReversedAt = operation.ID(id), refund, number, at.Time
				if r.Customer, err = customers.ParseID(customer); err != nil {
					return r, err
				}
				c, err := money.RestoreCurrency(currency, digits)
				if err != nil {
					return r, err
				}
				r.Amount, r.Remaining = money.FromMinor(amount, c), money.FromMinor(remaining, c)
				r.Reason, err = refunds.RestoreReason(reason)
				return r, err
			}
		},
	}
}
