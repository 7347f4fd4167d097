package payables

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
)

// Billing adds up again what is billed on an order: start one with
// [History.Billing], add every approved invoice that names the order, of whatever
// vendor, then compare.
type Billing struct {
	history  *History
	order    Order
	billed   []big.Rat // of each line
	credited []big.Rat // of what is billed of each line
	freight  money.Amount
}

// Billing starts on one of the [History.Orders], as the view has it. It returns a
// [*journal.Broken] if it is not there.
func (h *History) Billing(view ledger.View, ref ledger.Ref) (*Billing, error) {
	o, ok := ledger.Get[Order](view, ref)
	if !ok {
		return nil, h.broken("the order " + ref.ID + " is not on record any more")
	}
	return &Billing{h, o, make([]big.Rat, len(o.Lines)), make([]big.Rat, len(o.Lines)), money.FromMinor(0, o.Currency)}, nil
}

// Order is the order.
func (b *Billing) Order() OrderID { return b.order.ID }

// Add adds what an invoice with its lines has used up of the order, and what is
// credited of it. It returns a [*journal.Broken] if that can not be added up.
func (b *Billing) Add(i Invoice) error {
	if i.Document != Bill || i.Order != b.order.ID || !i.consumed() {
		return nil
	}
	err := exact(func() {
		for _, l := range i.Lines {
			at := b.order.find(l.OrderLine)
			if at < 0 {
				continue
			}
			if c, known := b.order.Lines[at].in(l.Unit); known {
				b.billed[at].Add(&b.billed[at], l.Quantity.in(c).big())
				b.credited[at].Add(&b.credited[at], l.Credited.big())
			}
		}
	})
	if err == nil && i.Currency == b.order.Currency {
		b.freight, err = add(b.freight, i.Freight)
	}
	if err != nil {
		return b.history.broken("what the invoice " + i.ID.text + " bills of the order " + b.order.ID.text + " does not add up")
	}
	return nil
}

// Same reports whether x is the same sum of the same order. No decision lowers
// what is billed, nor what is credited: between two sums that are the same nothing
// was decided about the order.
func (b *Billing) Same(x *Billing) bool {
	same := func(p, q big.Rat) bool { return p.Cmp(&q) == 0 }
	return b.freight == x.freight && slices.EqualFunc(b.billed, x.billed, same) && slices.EqualFunc(b.credited, x.credited, same)
}

// Compare compares the order in the view with the sum. It returns a
// [*journal.Broken] if it differs, which is damage only if nothing was decided
// about the order meanwhile; see [Billing.Same].
func (b *Billing) Compare(view ledger.View) error {
	o, ok := ledger.Get[Order](view, b.order.Ref())
	if !ok || len(o.Lines) != len(b.billed) {
		return b.history.broken("the order " + b.order.ID.text + " is not on record any more")
	}
	for at, l := range o.Lines {
		if sum := new(big.Rat).Sub(&b.billed[at], &b.credited[at]); l.Billed.big().Cmp(sum) != 0 {
			return b.history.broken(fmt.Sprintf("of line %d of the order %s %s is on record as billed, its approved invoices come to %s", l.Line, o.ID, l.Billed, sum.RatString()))
		}
	}
	if o.FreightBilled != b.freight {
		return b.history.broken(fmt.Sprintf("of the order %s %s is on record as freight billed, its approved invoices come to %s", o.ID, o.FreightBilled, b.freight))
	}
	return nil
}

// Crediting credits an invoice again: start one with [History.Crediting], add the
// [Crediting.Notes] in their order, then compare.
type Crediting struct {
	history       *History
	record, again Invoice
}

// Crediting starts on one of the [History.Credited], as the view has it. It
// returns a [*journal.Broken] if it is not there.
func (h *History) Crediting(view ledger.View, ref ledger.Ref) (*Crediting, error) {
	i, ok := ledger.Get[Invoice](view, ref)
	if !ok {
		return nil, h.broken("the invoice " + ref.ID + " is not on record any more")
	}
	return &Crediting{h, i, i.uncredited()}, nil
}

// uncredited is the invoice as if nothing were credited on it.
func (i Invoice) uncredited() Invoice {
	i = i.withLines()
	i.Credited = money.FromMinor(0, i.Currency)
	for n := range i.Lines {
		i.Lines[n].Credited = Ratio{}
	}
	return i
}

// Notes names the approved credit notes on the invoice, as they were approved.
func (c *Crediting) Notes() []ledger.Ref { return c.history.notes[c.record.ID] }

// Order is the order that the invoice names, or none: [Crediting.Add] needs it.
func (c *Crediting) Order() OrderID { return c.record.Order }

// Add credits what one of the Notes did, with the order as the view has them. It
// returns a [*journal.Broken] if that can not be done.
func (c *Crediting) Add(view ledger.View, ref ledger.Ref) error {
	note, ok := ledger.Get[Invoice](view, ref)
	if !ok {
		return c.history.broken("the invoice " + ref.ID + " is not on record any more")
	}
	var order *Order
	if c.record.Order != (OrderID{}) {
		if o, ok := ledger.Get[Order](view, c.record.Order.Ref()); ok {
			order = &o
		}
	}
	// As it was when the note was approved.
	c.again.Status = c.record.Status
	if c.history.decided[c.record.ID] > c.history.decided[note.ID] {
		c.again.Status = Open
	}
	if err := exact(func() { c.again, _ = credit(note, c.again, order) }); err != nil {
		return c.history.broken("the credit notes on the invoice " + c.record.ID.text + " do not add up")
	}
	return nil
}

// Compare compares the invoice with what the notes credit. It returns a
// [*journal.Broken] if they differ.
func (c *Crediting) Compare() error { return c.history.credited(c.record, c.again) }

// credited compares what is credited of an invoice on record with what was made
// of it again.
func (h *History) credited(record, again Invoice) error {
	if record.Credited != again.Credited {
		return h.broken(fmt.Sprintf("of the invoice %s %s is on record as credited, its approved credit notes come to %s", record.ID, record.Credited, again.Credited))
	}
	for n, l := range record.Lines {
		if want := again.Lines[n].Credited; l.Credited != want {
			return h.broken(fmt.Sprintf("of line %d of the invoice %s %s is on record as credited, its approved credit notes give back %s", l.Line, record.ID, l.Credited, want))
		}
	}
	return nil
}
