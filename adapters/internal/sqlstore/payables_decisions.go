package sqlstore

import (
	"fmt"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

var decisionTable = Table{"decisions", []Column{
	{"tenant", Text, Key},
	{"vendor", Text, Key},
	{"number", Int, Key},
	{"id", ID, Fixed},
	{"invoice", Text, Fixed},
	{"action", Text, Fixed},
	{"reason", Text, Fixed},
	{"override", Bool, Fixed},
	{"note", Text, Fixed},
	{"decided_by", Text, Fixed},
	{"decided_at", Time, Fixed},
	{"omitted", Int, Fixed},
}}

var findingTable = Table{"decision_findings", []Column{
	{"tenant", Text, Key},
	{"vendor", Text, Key},
	{"number", Int, Key},
	{"position", Int, Key},
	{"code", Text, Fixed},
	{"line", Int, Fixed},
	{"expected", Text, Fixed},
	{"found", Text, Fixed},
}}

var namedTable = Table{"decision_finding_invoices", []Column{
	{"tenant", Text, Key},
	{"vendor", Text, Key},
	{"number", Int, Key},
	{"position", Int, Key},
	{"place", Int, Key},
	{"invoice", Text, Fixed},
}}

const (
	decisionColumns = `r.vendor, r.number, r.id, r.invoice, r.action, r.reason, r.override, r.note, r.decided_by, r.decided_at, r.omitted`
	findingColumns  = `r.code, r.line, r.expected, r.found`
	namedColumns    = `r.position, r.invoice`
)

// decisionCodec keeps decisions. They never change, so there is nothing to lock,
// and an answer that was one is the record.
type decisionCodec struct {
	document[payables.Decision, decisionRow]
}

func newDecisionCodec(d Dialect) *decisionCodec {
	keys := []Column{{"tenant", Text, Key}, {"vendor", Text, Key}, {"number", Int, Key}}
	own := func(r *decisionRow) *decisionRow { return r }
	return &decisionCodec{document[payables.Decision, decisionRow]{
		dialect: d, of: payables.DecisionKind, keys: keys,
		byKey: byKey(d, &decisionTable, decisionColumns, "", keys),
		head:  (*decisionRow).fields,
		parts: []part[decisionRow]{
			{byKey(d, &findingTable, findingColumns, "ORDER BY k.n, r.position", keys), findingFields(own)},
			{byKey(d, &namedTable, namedColumns, "ORDER BY k.n, r.position, r.place", keys), namedFields(own)},
		},
		record: (*decisionRow).decision,
		name: func(id string) ([]any, bool) {
			vendor, number, ok := numbered(id)
			return []any{vendor, number}, ok
		},
	}}
}

// write inserts a decision that was made in this commit. An operation that asked
// for what was decided before is answered with the decision of then, which is on
// record.
func (c *decisionCodec) write(w *writes, ch committer.Changed) {
	d := ch.After.(payables.Decision)
	if _, made := w.operations[d.ID]; !made {
		return
	}
	t, vendor := ch.Tenant.String(), d.Vendor.String()
	w.add(Insert, &decisionTable, t, vendor, d.Number, d.ID, d.Invoice.String(), d.Action.String(), d.Reason.String(), d.Override, d.Note, d.DecidedBy, d.DecidedAt, int64(d.Omitted))
	for i, f := range d.Findings {
		w.add(Insert, &findingTable, t, vendor, d.Number, int64(i+1), f.Code.String(), int64(f.Line), f.Expected, f.Found)
		for k, id := range f.Invoices {
			w.add(Insert, &namedTable, t, vendor, d.Number, int64(i+1), int64(k+1), id.String())
		}
	}
}

func (c *decisionCodec) answer(_ *writes, _ operation.Operation, r ledger.Record) answerRef {
	d := r.(payables.Decision)
	return answerRef{payables.DecisionKind.Name, d.Vendor.String(), d.Number}
}

func (c *decisionCodec) answers(list []*kept) ([]Step, func() error) {
	keys := make([][]any, len(list))
	for i, k := range list {
		keys[i] = []any{k.outcome.Operation.Tenant.String(), k.answer.id, k.answer.number}
	}
	return c.find(keys, false, func(i int, d payables.Decision) { list[i].outcome.Answer = d })
}

// decisionRow is a decision as the database holds it.
type decisionRow struct {
	vendor                  string
	number                  int64
	id                      uuid
	invoice, action, reason string
	override                flag
	note, by                string
	at                      timestamp
	omitted                 int
	findings                []findingRow
	lost                    error // what has no place in it
}

type findingRow struct {
	code            string
	line            int
	expected, found string
	invoices        []payables.InvoiceID
}

func (d *decisionRow) fields() []any {
	return []any{&d.vendor, &d.number, &d.id, &d.invoice, &d.action, &d.reason, &d.override, &d.note, &d.by, &d.at, &d.omitted}
}

// findingFields and namedFields read the parts of a decision that belongs to a
// row of some kind.
func findingFields[B any](of func(*B) *decisionRow) func() ([]any, func(*B)) {
	return func() ([]any, func(*B)) {
		var f findingRow
		return []any{&f.code, &f.line, &f.expected, &f.found}, func(b *B) {
			if d := of(b); d != nil {
				d.findings = append(d.findings, f)
			}
		}
	}
}

func namedFields[B any](of func(*B) *decisionRow) func() ([]any, func(*B)) {
	return func() ([]any, func(*B)) {
		var position int
		var id string
		return []any{&position, &id}, func(b *B) {
			d := of(b)
			switch {
			case d == nil:
			case position < 1 || position > len(d.findings):
				d.lost = fmt.Errorf("its finding %d is not there", position)
			default:
				f := &d.findings[position-1]
				f.invoices = append(f.invoices, payables.Restore[payables.InvoiceID](id))
			}
		}
	}
}

func (d *decisionRow) decision() (payables.Decision, error) {
	r := payables.Decision{
		ID: operation.ID(d.id), Invoice: payables.Restore[payables.InvoiceID](d.invoice), Vendor: payables.Restore[payables.VendorID](d.vendor), Number: d.number,
		Override: bool(d.override), Note: d.note, DecidedBy: d.by, DecidedAt: d.at.Time, Omitted: d.omitted,
	}
	if d.lost != nil {
		return r, d.lost
	}
	var err error
	if r.Action, err = payables.ParseAction(d.action); err != nil {
		return r, err
	}
	if r.Reason, err = payables.ParseReasonCode(d.reason); err != nil {
		return r, err
	}
	for _, f := range d.findings {
		code, err := payables.ParseCode(f.code)
		if err != nil {
			return r, err
		}
		r.Findings = append(r.Findings, payables.Finding{Code: code, Line: f.line, Expected: f.expected, Found: f.found, Invoices: f.invoices})
	}
	return r, nil
}
