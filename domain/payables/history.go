package payables

import (
	"fmt"
	"slices"

	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// History recomputes a vendor from its entries: start one for the vendor as it
// is on record, add every entry in order with the document that it is about,
// then ask whether the result is what the records say. What is billed on its
// orders and credited on its invoices is added up beside; see [Billing] and
// [Crediting].
type History struct {
	record, rebuilt Vendor

	receipts map[OrderID][]Receipt        // of each order, as they came
	decided  map[InvoiceID]int64          // the number of the last decision, 0 for none
	currency map[InvoiceID]money.Currency // of each invoice
	states   []ledger.Ref                 // the orders and invoices, as they came
	orders   []ledger.Ref
	credits  map[InvoiceID]InvoiceID    // of each credit note, the invoice of the vendor that it names
	notes    map[InvoiceID][]ledger.Ref // of each invoice, those that were approved, in this order
	noted    []ledger.Ref               // the invoices that have notes, as they came
	carries  map[InvoiceID]ledger.Ref   // of each invoice, the claim on its number
	claims   map[ledger.Ref][]Claimed
	numbers  []ledger.Ref         // of claims, as they came
	changed  map[ledger.Ref]int64 // of each state and claim, the number of the last entry that changed it
}

// NewHistory starts the history of the vendor v, as it is on record.
func NewHistory(v Vendor) *History {
	return &History{
		record: v, rebuilt: Vendor{ID: v.ID}, receipts: map[OrderID][]Receipt{}, decided: map[InvoiceID]int64{}, currency: map[InvoiceID]money.Currency{},
		credits: map[InvoiceID]InvoiceID{}, notes: map[InvoiceID][]ledger.Ref{}, carries: map[InvoiceID]ledger.Ref{}, claims: map[ledger.Ref][]Claimed{},
		changed: map[ledger.Ref]int64{},
	}
}

// Continue goes on to the vendor as it is on record later: add the entries that
// came since.
func (h *History) Continue(v Vendor) { h.record = v }

// Head returns the last entry added.
func (h *History) Head() journal.Head { return h.rebuilt.Head }

// Add verifies the next entry and applies its postings. It returns a
// [*journal.Broken] if the entry does not hold.
func (h *History) Add(e journal.Entry) error {
	subject := h.record.ID.Subject()
	if _, err := journal.Verify(h.rebuilt.Head, subject, e); err != nil {
		return err
	}
	next, err := h.rebuilt.apply(e)
	if err != nil {
		return &journal.Broken{Subject: subject, Number: e.Number(), Why: err.Error()}
	}
	h.rebuilt = next
	return nil
}

// Beside names the record that an entry is about: the decision that it
// recorded, or the document that it entered.
func (h *History) Beside(e journal.Entry) (ref ledger.Ref, ok bool) {
	if e.Command() == RouteName {
		return DecisionRef(h.record.ID, e.Number()), true
	}
	facts := e.Facts()
	if len(facts) == 0 {
		return ledger.Ref{}, false
	}
	for _, k := range []ledger.Kind{VendorKind, OrderKind, ReceiptKind, InvoiceKind} {
		if facts[0].Name == k.Name {
			return ledger.Ref{Kind: k, ID: facts[0].Value}, true
		}
	}
	return ledger.Ref{}, false
}

// Compare compares the record that [History.Beside] named with its entry. It
// returns a [*journal.Broken] if the record is not there or says something else
// than what was entered.
func (h *History) Compare(view ledger.View, ref ledger.Ref, e journal.Entry) error {
	switch ref.Kind {
	case VendorKind:
		return document[Vendor](view, ref, e)
	case OrderKind:
		h.states, h.orders = append(h.states, ref), append(h.orders, ref)
		return document[Order](view, ref, e)
	case ReceiptKind:
		r, ok := ledger.Get[Receipt](view, ref)
		if ok {
			h.receipts[r.Order] = append(h.receipts[r.Order], r)
			h.changed[r.Order.Ref()] = e.Number()
		}
		if ok && r.Vendor != h.record.ID { // which its facts leave to the order
			return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: "what it entered is another vendor's on record: goods_receipt " + ref.ID}
		}
		return document[Receipt](view, ref, e)
	case InvoiceKind:
		h.states = append(h.states, ref)
		i, ok := ledger.Get[Invoice](view, ref)
		if ok {
			if _, own := h.decided[i.Credits]; own {
				h.credits[i.ID] = i.Credits
			}
			h.decided[i.ID], h.currency[i.ID] = 0, i.Currency
			claim := i.ClaimRef()
			if h.claims[claim] == nil {
				h.numbers = append(h.numbers, claim)
			}
			h.carries[i.ID], h.claims[claim], h.changed[claim] = claim, append(h.claims[claim], Claimed{Invoice: i.ID}), e.Number()
		}
		switch again, err := ParseNumber(i.Number.written); {
		case len(i.Synthesised) > 0:
			return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: "not all of what it entered is on record: invoice " + ref.ID}
		case ok && (err != nil || again != i.Number):
			return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: "the number of what it entered counts as another one on record: invoice " + ref.ID}
		case ok && i.Entered != e.Number():
			return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: fmt.Sprintf("what it entered was entered by entry %d on record: invoice %s", i.Entered, ref.ID)}
		}
		return document[Invoice](view, ref, e)
	}
	d, there := ledger.Get[Decision](view, ref)
	h.decide(d, e.Number())
	if err := d.Verify(there, e); err != nil {
		return err
	}
	for _, p := range e.Postings() { // their digits are not in its hash
		if p.Amount.Currency() != h.currency[d.Invoice] {
			return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: "its postings are in another currency than the invoice " + d.Invoice.text + ", or one with other digits"}
		}
	}
	return nil
}

// decide notes what the entry of a decision changed.
func (h *History) decide(d Decision, number int64) {
	claim := h.carries[d.Invoice]
	h.decided[d.Invoice], h.changed[d.Invoice.Ref()], h.changed[claim] = d.Number, number, number
	claims := h.claims[claim]
	if at := slices.IndexFunc(claims, func(c Claimed) bool { return c.Invoice == d.Invoice }); at >= 0 {
		claims[at].Rejected = d.Action == Reject
	}
	if credited, ok := h.credits[d.Invoice]; ok && d.Action == Approve {
		if h.notes[credited] == nil {
			h.noted = append(h.noted, credited.Ref())
		}
		h.notes[credited] = append(h.notes[credited], d.Invoice.Ref())
		h.changed[credited.Ref()] = number
	}
}

// document compares a document on record with the digest in its entry.
func document[R interface {
	ledger.Record
	facts() []operation.Fact
}](view ledger.View, ref ledger.Ref, e journal.Entry) error {
	proved := func(facts []operation.Fact) bool {
		return slices.Contains(e.Facts(), operation.Fact{Name: factDigest, Value: digest(ref.Kind.Name, facts)})
	}
	why := ""
	switch r, ok := ledger.Get[R](view, ref); {
	case !ok:
		why = "what it entered is not on record: " + ref.Kind.Name + " " + ref.ID
	case !proved(r.facts()) && !proved(operation.Without(r.facts(), factDigits)):
		why = "what it entered is another one on record: " + ref.Kind.Name + " " + ref.ID
	default:
		return nil
	}
	return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: why}
}

// Close compares what the entries add up to with the record: the version, the
// head and each balance. It returns a [*journal.Broken] at the record's version
// if they differ.
func (h *History) Close() error {
	switch {
	case h.rebuilt.Head != h.record.Head:
		return h.broken(fmt.Sprintf("the record ends at entry %d, the entries at %d, or their hashes differ", h.record.Head.Number, h.rebuilt.Head.Number))
	case !slices.Equal(h.rebuilt.Balances, h.record.Balances):
		return h.broken("the balance on record is not what the entries add up to")
	}
	return nil
}

func (h *History) broken(why string) error {
	return &journal.Broken{Subject: h.record.ID.Subject(), Number: h.record.Head.Number, Why: why}
}

// States names the records whose state follows from the entries: the orders and
// the invoices of the vendor.
func (h *History) States() []ledger.Ref { return h.states }

// Orders names the orders of the vendor, of each of which [History.Billing] adds
// up what is billed.
func (h *History) Orders() []ledger.Ref { return h.orders }

// Credited names the invoices on which [History.Crediting] credits the vendor's
// notes again.
func (h *History) Credited() []ledger.Ref { return h.noted }

// Changed returns the number of the last entry that changed a state, a claim or
// what is credited. What is compared of a record holds only if no entry changed it
// that came after those that were added when it was read: after reading, go on to
// where the vendor stands, and ask. See [History.Continue].
func (h *History) Changed(ref ledger.Ref) int64 { return h.changed[ref] }

// CompareState compares one of the [History.States] with what follows from the
// entries: what was received on an order, and the status and last decision of
// an invoice, and that nothing is credited on one without approved credit notes.
// It is under the condition of [History.Changed].
func (h *History) CompareState(view ledger.View, ref ledger.Ref) error {
	if ref.Kind == OrderKind {
		o, ok := ledger.Get[Order](view, ref)
		if !ok {
			return h.broken("the order " + ref.ID + " is not on record any more")
		}
		in := &intake{bad: map[int]bool{}}
		again := o.withLines()
		for n := range again.Lines {
			again.Lines[n].Received = Ratio{}
		}
		err := exact(func() {
			for _, r := range h.receipts[o.ID] {
				again = receive(in, 0, again, r)
			}
		})
		if err != nil || len(in.issues) > 0 {
			return h.broken("the receipts of the order " + ref.ID + " do not add up")
		}
		for n, l := range o.Lines {
			if l.Received != again.Lines[n].Received {
				return h.broken(fmt.Sprintf("of line %d of the order %s %s is on record as received, the receipts come to %s", l.Line, ref.ID, l.Received, again.Lines[n].Received))
			}
		}
		return nil
	}
	i, ok := ledger.Get[Invoice](view, ref)
	last := h.decided[i.ID]
	switch d := i.Decision; {
	case !ok:
		return h.broken("the invoice " + ref.ID + " is not on record any more")
	case d == nil && (last != 0 || i.Status != Open),
		d != nil && (d.Number != last || d.Invoice != i.ID || d.Vendor != i.Vendor || d.Action.Status() != i.Status):
		return h.broken("the status of the invoice " + ref.ID + " is not that of its last decision")
	}
	if h.notes[i.ID] == nil {
		return h.credited(i, i.uncredited())
	}
	return nil
}

// Numbers names the claims on numbers.
func (h *History) Numbers() []ledger.Ref { return h.numbers }

// CompareNumber compares a claim on record with the invoices that carry the
// number, under the condition of [History.Changed].
func (h *History) CompareNumber(view ledger.View, ref ledger.Ref) error {
	if c, ok := ledger.Get[NumberClaim](view, ref); !ok || !slices.Equal(c.Claims, h.claims[ref]) {
		return h.broken("the claims on the number " + ref.ID + " are not those of the invoices that carry it")
	}
	return nil
}
