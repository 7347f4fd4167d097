package sqlstore

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// refundTable has no index of ids: a refund is found by its customer and the
// number of its entry, and no decision needs another way.
var refundTable = Table{"refunds", []Column{
	{"tenant", Text, Key},
	{"customer", Text, Key},
	{"number", Int, Key},
	{"id", ID, Fixed},
	{"amount_minor", Int, Fixed},
	{"currency", Text, Fixed},
	{"reason", Text, Fixed},
	{"status", Text, State},
	{"processed_at", Time, Fixed},
	{"remaining_minor", Int, Fixed},
}}

type refundCodec struct {
	dialect                  Dialect
	keys                     []Column
	byKey, byKeyLocked, page string
}

func newRefundCodec(d Dialect) *refundCodec {
	c := &refundCodec{dialect: d, keys: []Column{{"tenant", Text, Key}, {"customer", Text, Key}, {"number", Int, Key}}}
	const columns = `r.customer, r.number, r.id, r.amount_minor, r.currency, r.reason, r.status, r.processed_at, r.remaining_minor`
	c.byKey = `SELECT k.n, ` + columns + `
		FROM ` + d.Keys(c.keys...) + ` JOIN refunds r ON r.tenant = k.tenant AND r.customer = k.customer AND r.number = k.number`
	c.byKeyLocked = c.byKey + `
		ORDER BY r.tenant, r.customer, r.number ` + d.Lock(refunds.Kind.Shared)
	c.page = `SELECT ` + columns + ` FROM refunds r
		WHERE r.tenant = $1 AND r.customer = $2 AND r.number < $3 ORDER BY r.number DESC LIMIT $4`
	return c
}

func (c *refundCodec) kind() ledger.Kind { return refunds.Kind }

func (c *refundCodec) load(refs []committer.Name, lock bool, put func(int, ledger.Record)) ([]Step, func() error) {
	var keys [][]any
	var at []int // the place in refs of each key
	for i, n := range refs {
		customer, text, _ := strings.Cut(n.Ref.ID, "/")
		// What is no name of a refund names none.
		if number, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(number, 10) == text {
			keys, at = append(keys, []any{n.Tenant.String(), customer, number}), append(at, i)
		}
	}
	query := c.byKey
	if lock {
		query = c.byKeyLocked
	}
	return c.find(query, keys, func(i int, r refunds.Refund) { put(at[i], r) }), func() error { return nil }
}

// find makes the steps that read the refunds with the keys.
func (c *refundCodec) find(query string, keys [][]any, found func(i int, r refunds.Refund)) []Step {
	if len(keys) == 0 {
		return nil
	}
	return []Step{{query, c.dialect.KeyArgs(c.keys, keys), func(r Row) error {
		var n int
		var row refundRow
		if err := r.Scan(append([]any{&n}, row.fields()...)...); err != nil {
			return err
		}
		refund, err := row.refund()
		if err == nil {
			found(n-1, refund)
		}
		return err
	}}}
}

// write writes the refund whether or not a write named it: of a refund that is
// there only the status can differ.
func (c *refundCodec) write(w *writes, ch committer.Changed) {
	r := ch.After.(refunds.Refund)
	w.add(Upsert, &refundTable, ch.Tenant.String(), r.Customer.String(), r.Number, r.ID, r.Amount.Minor(), r.Amount.Currency().String(),
		r.Reason.String(), r.Status.String(), r.ProcessedAt, r.Remaining.Minor())
}

// answer keeps nothing more: all of a refund but its status never changes.
func (c *refundCodec) answer(w *writes, o operation.Operation, r ledger.Record) answerRef {
	refund := r.(refunds.Refund)
	return answerRef{refunds.Kind.Name, refund.Customer.String(), refund.Number, refund.Status.String()}
}

func (c *refundCodec) answers(list []*kept) ([]Step, func() error) {
	keys := make([][]any, len(list))
	for i, k := range list {
		keys[i] = []any{k.outcome.Operation.Tenant.String(), k.answer.id, k.answer.number}
	}
	var wrong error
	steps := c.find(c.byKey, keys, func(i int, r refunds.Refund) {
		status, err := refunds.ParseStatus(list[i].answer.status)
		if err != nil {
			wrong = err
		}
		r.Status = status
		list[i].outcome.Answer = r
	})
	return steps, func() error { return wrong }
}

// refundRow is a refund as the database holds it.
type refundRow struct {
	customer, currency, reason, status string
	number, amount, remaining          int64
	id                                 uuid
	processedAt                        timestamp
}

func (r *refundRow) fields() []any {
	return []any{&r.customer, &r.number, &r.id, &r.amount, &r.currency, &r.reason, &r.status, &r.processedAt, &r.remaining}
}

// refund makes the record, or says why the row is none.
func (r *refundRow) refund() (refunds.Refund, error) {
	wrong := func(err error) (refunds.Refund, error) {
		return refunds.Refund{}, fmt.Errorf("sqlstore: the refund %s/%d: %w", r.customer, r.number, err)
	}
	customer, err := customers.ParseID(r.customer)
	if err != nil {
		return wrong(err)
	}
	currency, err := money.ParseCurrency(r.currency)
	if err != nil {
		return wrong(err)
	}
	status, err := refunds.ParseStatus(r.status)
	if err != nil {
		return wrong(err)
	}
	reason, err := refunds.ParseReason(r.reason)
	if err != nil {
		return wrong(err)
	}
	return refunds.Refund{
		ID: operation.ID(r.id), Customer: customer, Amount: money.FromMinor(r.amount, currency), Reason: reason, Status: status,
		ProcessedAt: r.processedAt.Time, Remaining: money.FromMinor(r.remaining, currency), Number: r.number,
	}, nil
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
	err := s.read(ctx, nil, Step{s.refunds.page, []any{t.String(), customer.String(), before, int64(min(limit, math.MaxInt32))}, func(r Row) error {
		var row refundRow
		if err := r.Scan(row.fields()...); err != nil {
			return err
		}
		refund, err := row.refund()
		list = append(list, refund)
		return err
	}})
	return list, err
}
