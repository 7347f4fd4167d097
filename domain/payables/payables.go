// Package payables holds the rules of paying vendors: the three-way match of an
// invoice with its purchase order and the goods received ([Match]), and what may
// be decided about it ([Decide]). [Route] is the command that a ledger runs.
//
// # Records
//
// A [Vendor] has a history in the journal: every order, goods receipt and
// invoice that comes in and every decision is an entry of it. An [Order] keeps
// what of each line has been received and billed, a [NumberClaim] which invoices
// carry one number, an [Invoice] what has been credited of it. They are kept in
// the commit that changes them, so a decision reads by key and never searches.
//
// # Figures
//
// Money is minor units of a currency. Quantities are exact decimals ([Quantity])
// on documents and exact fractions ([Ratio]) where units are converted: nothing
// is ever rounded before it is compared. The amount of a line is its quantity
// times its unit price, rounded half up to a minor unit.
package payables

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/text"
)

// Bounds of documents.
const (
	// MaxLines is how many lines an order, a receipt or an invoice may have.
	MaxLines = 10_000
	// MaxMinor is the most that one price, amount or total may be, in minor
	// units: the sum of a document's lines then fits in 64 bits.
	MaxMinor = 100_000_000_000_000
	// MaxName bounds the name of a vendor and the description of a line, in code
	// points.
	MaxName = 200
	// MaxConversions is how many other units a line of an order may know.
	MaxConversions = 20
)

// The forms of ids, as regular expressions.
const (
	InvoiceIDPattern = `^INV-\d{4,12}$`
	// PartyIDPattern is the form of the ids of vendors, orders and receipts.
	PartyIDPattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,23}$`
	// UnitPattern is the form of units, and SKUPattern that of article numbers.
	UnitPattern = `^[A-Za-z0-9]{1,12}$`
	SKUPattern  = `^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}$`
)

var (
	invoiceForm = regexp.MustCompile(InvoiceIDPattern)
	partyForm   = regexp.MustCompile(PartyIDPattern)
	unitForm    = regexp.MustCompile(UnitPattern)
	skuForm     = regexp.MustCompile(SKUPattern)
)

// InvoiceID names an invoice within its tenant. The zero value is none.
type InvoiceID struct{ text string }

// ParseInvoiceID accepts what matches [InvoiceIDPattern].
func ParseInvoiceID(s string) (InvoiceID, error) {
	if !invoiceForm.MatchString(s) {
		return InvoiceID{}, fmt.Errorf("must be INV- followed by 4 to 12 digits, for example INV-1001")
	}
	return InvoiceID{s}, nil
}

// String returns the id as it is written.
func (id InvoiceID) String() string { return id.text }

// Ref names the record of the invoice.
func (id InvoiceID) Ref() ledger.Ref { return ledger.Ref{Kind: InvoiceKind, ID: id.text} }

// VendorID names a vendor within its tenant. The zero value is none.
type VendorID struct{ text string }

// ParseVendorID accepts what matches [PartyIDPattern].
func ParseVendorID(s string) (VendorID, error) {
	id, err := party(s)
	return VendorID{id}, err
}

// String returns the id as it is written.
func (id VendorID) String() string { return id.text }

// Ref names the record of the vendor.
func (id VendorID) Ref() ledger.Ref { return ledger.Ref{Kind: VendorKind, ID: id.text} }

// OrderID names a purchase order within its tenant. The zero value is none.
type OrderID struct{ text string }

// ParseOrderID accepts what matches [PartyIDPattern].
func ParseOrderID(s string) (OrderID, error) {
	id, err := party(s)
	return OrderID{id}, err
}

// String returns the id as it is written.
func (id OrderID) String() string { return id.text }

// Ref names the record of the order.
func (id OrderID) Ref() ledger.Ref { return ledger.Ref{Kind: OrderKind, ID: id.text} }

// ReceiptID names a goods receipt within its tenant. The zero value is none.
type ReceiptID struct{ text string }

// ParseReceiptID accepts what matches [PartyIDPattern].
func ParseReceiptID(s string) (ReceiptID, error) {
	id, err := party(s)
	return ReceiptID{id}, err
}

// String returns the id as it is written.
func (id ReceiptID) String() string { return id.text }

// Ref names the record of the receipt.
func (id ReceiptID) Ref() ledger.Ref { return ledger.Ref{Kind: ReceiptKind, ID: id.text} }

func party(s string) (string, error) {
	if !partyForm.MatchString(s) {
		return "", fmt.Errorf("must be 1 to 24 letters, digits or ._- and start with a letter or digit")
	}
	return s, nil
}

// Unit is a unit of measure as the documents write it: EA, BOX, kg. Two units
// are the same if they are written the same.
type Unit struct{ text string }

// ParseUnit accepts what matches [UnitPattern].
func ParseUnit(s string) (Unit, error) {
	if !unitForm.MatchString(s) {
		return Unit{}, fmt.Errorf("must be 1 to 12 letters or digits, for example EA")
	}
	return Unit{s}, nil
}

// String returns the unit as it is written.
func (u Unit) String() string { return u.text }

// SKU is an article number. The zero value is none.
type SKU struct{ text string }

// ParseSKU accepts what matches [SKUPattern].
func ParseSKU(s string) (SKU, error) {
	if !skuForm.MatchString(s) {
		return SKU{}, fmt.Errorf("must be 1 to 64 letters, digits or ._/- and start with a letter or digit")
	}
	return SKU{s}, nil
}

// String returns the number as it is written.
func (s SKU) String() string { return s.text }

// Date is a day of the calendar, without a time zone. The zero value is none.
type Date struct{ text string }

// ParseDate accepts a day as ISO 8601 writes it: 2026-03-31.
func ParseDate(s string) (Date, error) {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return Date{}, fmt.Errorf("must be a date such as 2026-03-31")
	}
	return Date{s}, nil
}

// String returns the day as ISO 8601 writes it.
func (d Date) String() string { return d.text }

// IsName reports whether s can be a vendor's name or a line's description.
func IsName(s string) bool {
	return text.Length(s) <= MaxName && text.Written(s) > 0 && strings.TrimSpace(s) == s && text.IsLine(s)
}

// InvoiceNotFound is the fault for an invoice that does not exist in the tenant.
func InvoiceNotFound(id InvoiceID) error {
	return fault.New(fault.NotFound, "invoice_not_found", "There is no invoice %s. Check the id; it is INV- followed by digits.", id)
}

// VendorNotFound is the fault for a vendor that does not exist in the tenant.
func VendorNotFound(id VendorID) error {
	return fault.New(fault.NotFound, "vendor_not_found", "There is no vendor %s. Check the id.", id)
}
