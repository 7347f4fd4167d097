package payables

import (
	"cmp"
	"slices"

	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
)

// OrderKind is the kind of a purchase order record.
var OrderKind = ledger.Kind{Name: "purchase_order"}

// Order is the record of a purchase order: what was agreed, and what of it has
// been received and billed.
type Order struct {
	ID           OrderID
	Vendor       VendorID
	Currency     money.Currency
	FreightLimit money.Amount // the most freight that all invoices together may charge
	TaxLimit     Percent      // the most tax on the lines of an invoice
	Lines        []OrderLine  // in order of Line; must not be changed in place

	FreightBilled money.Amount // on approved invoices; credit notes give none back
}

// OrderLine is one line of an order.
type OrderLine struct {
	Line        int // > 0, unique in its order
	SKU         SKU
	Description string // data of others; may be empty
	Unit        Unit
	Quantity    Quantity
	UnitPrice   money.Amount // of one Unit, >= 0
	Conversions []Conversion // other units that the line can be delivered or billed in

	Received Ratio // in Unit, less what was sent back
	Billed   Ratio // in Unit, on approved invoices, less credit notes
}

// Ref names the record.
func (o Order) Ref() ledger.Ref { return o.ID.Ref() }

// find returns the place of a line, or -1.
func (o Order) find(line int) int {
	at, found := slices.BinarySearchFunc(o.Lines, line, func(l OrderLine, n int) int { return cmp.Compare(l.Line, n) })
	if !found {
		return -1
	}
	return at
}

// in returns how a unit converts to the line's own; known is false if nobody
// said.
func (l OrderLine) in(u Unit) (c conversion, known bool) {
	if u == l.Unit {
		return one, true
	}
	for _, x := range l.Conversions {
		if x.Unit == u {
			return conversion{x.Numerator, x.Denominator}, true
		}
	}
	return conversion{}, false
}

// withLines returns the order with lines that may be changed in place.
func (o Order) withLines() Order {
	o.Lines = slices.Clone(o.Lines)
	return o
}

// ReceiptKind is the kind of a goods receipt record.
var ReceiptKind = ledger.Kind{Name: "goods_receipt"}

// Movement says which way goods went.
type Movement struct{ name string }

var (
	// Received: goods came in.
	Received = Movement{"receipt"}
	// Returned: goods went back to the vendor.
	Returned = Movement{"return"}
)

// ParseMovement accepts receipt and return.
func ParseMovement(s string) (Movement, error) {
	return oneOf(s, "must be receipt or return", Received, Returned)
}

// String returns receipt or return.
func (m Movement) String() string { return m.name }

// Receipt is the record of goods that came in or went back. It never changes.
type Receipt struct {
	ID         ReceiptID
	Order      OrderID
	Vendor     VendorID // the order's
	Movement   Movement
	ReceivedAt Date
	Lines      []ReceiptLine
}

// ReceiptLine is goods of one line of the order.
type ReceiptLine struct {
	OrderLine int
	Quantity  Quantity
	Unit      Unit
}

// Ref names the record.
func (r Receipt) Ref() ledger.Ref { return r.ID.Ref() }
