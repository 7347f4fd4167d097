package payables

import (
	"errors"
	"slices"
	"time"

	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// InvoiceKind is the kind of an invoice record.
var InvoiceKind = ledger.Kind{Name: "invoice"}

// DocumentKind says which way an invoice's money goes.
type DocumentKind struct{ name string }

var (
	// Bill asks for money.
	Bill = DocumentKind{"invoice"}
	// CreditNote gives some back.
	CreditNote = DocumentKind{"credit_note"}
)

// ParseDocumentKind accepts invoice and credit_note.
func ParseDocumentKind(s string) (DocumentKind, error) {
	return oneOf(s, "must be invoice or credit_note", Bill, CreditNote)
}

// String returns invoice or credit_note.
func (k DocumentKind) String() string { return k.name }

// Status says where an invoice stands.
type Status struct{ name string }

var (
	// Open: nobody has decided.
	Open = Status{"open"}
	// OnHold: somebody wants it to wait.
	OnHold = Status{"on_hold"}
	// Approved: it will be paid. Final.
	Approved = Status{"approved"}
	// Rejected: it will not. Final.
	Rejected = Status{"rejected"}
)

// Statuses are all of them.
func Statuses() []Status { return []Status{Open, OnHold, Approved, Rejected} }

// ParseStatus accepts open, on_hold, approved and rejected.
func ParseStatus(s string) (Status, error) {
	return oneOf(s, "must be open, on_hold, approved or rejected", Statuses()...)
}

// String returns open, on_hold, approved or rejected.
func (s Status) String() string { return s.name }

// Final reports whether nothing more can be decided.
func (s Status) Final() bool { return s == Approved || s == Rejected }

// Invoice is the record of an invoice or a credit note: what the vendor sent,
// which never changes, and what was decided about it.
type Invoice struct {
	ID       InvoiceID
	Number   Number
	Document DocumentKind
	Credits  InvoiceID // the invoice that a credit note credits, or none
	Vendor   VendorID
	Order    OrderID // the order named, or none; it may not exist
	Currency money.Currency
	Lines    []InvoiceLine // in order of Line; must not be changed in place
	Tax      money.Amount  // declared, >= 0
	Freight  money.Amount  // declared, >= 0
	Total    money.Amount  // declared, >= 0
	Date     Date
	Entered  int64 // the number of the entry that entered it, in its vendor's history
	// Synthesised are the fields that its ledger does not keep; nil if it keeps
	// all. Such an invoice can not be brought in.
	Synthesised []Field

	Status   Status
	Decision *Decision    // the last one, or nil; must not be changed in place
	Credited money.Amount // by approved credit notes
}

// InvoiceLine is one line of an invoice.
type InvoiceLine struct {
	Line      int // > 0, unique in its invoice
	OrderLine int // the line of the order, or 0 for none
	SKU       SKU // or none
	Unit      Unit
	Quantity  Quantity
	UnitPrice money.Amount // of one Unit, >= 0
	Amount    money.Amount // declared, >= 0

	Credited Ratio // by approved credit notes, in the unit of the order's line
}

// Ref names the record.
func (i Invoice) Ref() ledger.Ref { return i.ID.Ref() }

// ClaimRef names the record of the invoice's number.
func (i Invoice) ClaimRef() ledger.Ref { return ClaimRef(i.Vendor, i.Document, i.Number) }

// withLines returns the invoice with lines that may be changed in place.
func (i Invoice) withLines() Invoice {
	i.Lines = slices.Clone(i.Lines)
	return i
}

// Action is what is decided about an invoice.
type Action struct{ name string }

var (
	// Approve: pay it.
	Approve = Action{"approve"}
	// Hold: let it wait.
	Hold = Action{"hold"}
	// Reject: do not pay it.
	Reject = Action{"reject"}
)

// ParseAction accepts approve, hold and reject.
func ParseAction(s string) (Action, error) {
	return oneOf(s, "must be approve, hold or reject", Approve, Hold, Reject)
}

// String returns approve, hold or reject.
func (a Action) String() string { return a.name }

// Status is where the action leaves the invoice.
func (a Action) Status() Status {
	switch a {
	case Approve:
		return Approved
	case Reject:
		return Rejected
	}
	return OnHold
}

// DecisionKind is the kind of a decision record.
var DecisionKind = ledger.Kind{Name: "decision"}

// Decision is the record of what was decided about an invoice, by whom and on
// which findings. It never changes.
type Decision struct {
	ID        operation.ID // the operation's
	Invoice   InvoiceID
	Vendor    VendorID
	Number    int64 // of the entry that recorded it, in the vendor's history
	Action    Action
	Reason    ReasonCode
	Override  bool
	Note      string // or none; text of a caller
	DecidedBy string // the principal
	DecidedAt time.Time
	// Findings are those of the match at the decision, at most MaxFindings, the
	// blocking ones first; Omitted is how many more there were.
	Findings []Finding
	Omitted  int
}

// Ref names the record by its vendor and entry number.
func (d Decision) Ref() ledger.Ref { return DecisionRef(d.Vendor, d.Number) }

func oneOf[T interface{ String() string }](s, rule string, all ...T) (none T, err error) {
	for _, x := range all {
		if x.String() == s {
			return x, nil
		}
	}
	return none, errors.New(rule)
}
