package sqlstore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// Operations is the table of what each key led to. Its row, in the commit of the
// write itself, is the only claim on a key there is.
var Operations = &Table{"operations", []Column{
	{"seq", OperationPlace, Fixed},
	{"tenant", Text, Key},
	{"principal", Text, Key},
	{"key", Text, Key},
	{"fingerprint", Bytes, Fixed},
	{"command", Text, Fixed},
	{"tool", Text, Fixed},
	{"via", Text, Fixed},
	{"op", ID, Fixed},
	{"at", Time, Fixed},
	{"answer_kind", Text, Fixed},
	{"answer_id", Text, Fixed},
	{"answer_number", Int, Fixed},
}}

// answerRef is how an answer is kept: which record it was. Of a record that
// changes, its codec keeps the rest of what the answer said.
type answerRef struct {
	kind, id string
	number   int64 // of an entry of the record's history, 0 if it has none
}

// kept is an outcome on its way out of the database.
type kept struct {
	outcome ledger.Outcome
	answer  answerRef
}

type outcomeCodec struct {
	dialect Dialect
	keys    []Column
	byKey   string
}

func newOutcomeCodec(d Dialect) *outcomeCodec {
	c := &outcomeCodec{dialect: d, keys: []Column{{"tenant", Text, Key}, {"principal", Text, Key}, {"key", Text, Key}}}
	c.byKey = `SELECT k.n, r.fingerprint, r.command, r.tool, r.via, r.op, r.at, r.answer_kind, r.answer_id, r.answer_number
		FROM ` + d.Keys(c.keys...) + ` JOIN operations r ON r.tenant = k.tenant AND r.principal = k.principal AND r.key = k.key`
	return c
}

// insert adds the rows of the outcomes.
func (c *outcomeCodec) insert(w *writes, outcomes []ledger.Outcome, codecOf func(ledger.Record) codec) {
	// In order of key, so that the places are in the order of the rows.
	slices.SortFunc(outcomes, func(a, b ledger.Outcome) int {
		x, y := a.Operation, b.Operation
		return cmp.Or(strings.Compare(x.Tenant.String(), y.Tenant.String()),
			strings.Compare(x.Principal, y.Principal),
			strings.Compare(x.Key.String(), y.Key.String()))
	})
	for i, o := range outcomes {
		place := int64(i + 1)
		w.operations[o.Operation.ID] = place
		c.write(w, place, o, codecOf(o.Answer))
	}
}

func (c *outcomeCodec) write(w *writes, place int64, o ledger.Outcome, answer codec) {
	op := o.Operation
	a := answer.answer(w, op, o.Answer)
	w.add(Insert, Operations, place, op.Tenant.String(), op.Principal, op.Key.String(), o.Fingerprint[:], o.Command, op.Tool, op.Via, op.ID, op.At,
		a.kind, a.id, a.number)
}

// find makes the step that finds which of the keys are known.
func (c *outcomeCodec) find(keys []committer.Key, found *[]*kept) Step {
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = []any{k.Tenant.String(), k.Principal, k.Key.String()}
	}
	return Step{c.byKey, c.dialect.KeyArgs(c.keys, rows), func(r Row) error {
		var n int
		var fingerprint []byte
		var op uuid
		var at timestamp
		k := &kept{}
		o := &k.outcome
		if err := r.Scan(&n, &fingerprint, &o.Command, &o.Operation.Tool, &o.Operation.Via, &op, &at,
			&k.answer.kind, &k.answer.id, &k.answer.number); err != nil {
			return err
		}
		key := keys[n-1]
		digest, err := hash(fingerprint)
		if err != nil {
			return unreadable("an outcome: %w", err)
		}
		o.Fingerprint = operation.Fingerprint(digest)
		o.Operation.Tenant, o.Operation.Principal, o.Operation.Key = key.Tenant, key.Principal, key.Key
		o.Operation.ID, o.Operation.At = operation.ID(op), at.Time
		*found = append(*found, k)
		return nil
	}}
}

// timestamp reads a time as either database holds it: its own type, or whole
// milliseconds since 1970.
type timestamp struct{ time.Time }

// Scan implements sql.Scanner.
func (t *timestamp) Scan(from any) error {
	switch v := from.(type) {
	case time.Time:
		t.Time = v.UTC()
	case int64:
		t.Time = time.UnixMilli(v).UTC()
	default:
		return fmt.Errorf("sqlstore: a %T is no time", from)
	}
	return nil
}

// uuid reads an id as either database holds it.
type uuid operation.ID

// Scan implements sql.Scanner.
func (u *uuid) Scan(from any) error {
	text, ok := from.(string)
	if !ok {
		return fmt.Errorf("sqlstore: a %T is no id", from)
	}
	id, err := operation.ParseID(text)
	*u = uuid(id)
	return err
}

// hash copies a digest out of a row.
func hash(b []byte) (h journal.Hash, err error) {
	if len(b) != len(h) {
		return h, fmt.Errorf("a digest of %d bytes", len(b))
	}
	return journal.Hash(b), nil
}
