package payables

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Code says what a match found.
type Code struct {
	name     string
	blocking bool
}

// The codes of findings, in the order in which they are reported. All but the
// last three are blocking. Of a credit note only the duplicate, the vendor, the
// currency, the total and the credit cap are looked at.
var (
	// DuplicateInvoice: the vendor has sent a document of the same kind with the
	// same normal number, of whatever date, that was entered before and is not
	// rejected. See [Number.Normal].
	DuplicateInvoice = Code{"DUPLICATE_INVOICE", true}
	// NoLines: the invoice has no lines.
	NoLines = Code{"NO_LINES", true}
	// VendorMismatch: the order, or the invoice credited, is another vendor's. A
	// credit note that is approved all the same credits nothing of that invoice.
	VendorMismatch = Code{"VENDOR_MISMATCH", true}
	// CurrencyMismatch: the order, or the invoice credited, is in another
	// currency. Prices and freight are not compared then.
	CurrencyMismatch = Code{"CURRENCY_MISMATCH", true}
	// MissingPO: the invoice names no order, or one that is not known. One that is
	// approved all the same is billed on no order, also not on one that comes later.
	MissingPO = Code{"MISSING_PO", true}
	// UnknownPOLine: a line names no line of the order.
	UnknownPOLine = Code{"UNKNOWN_PO_LINE", true}
	// UnitMismatch: a line is in another unit than the order's, and the order
	// knows no conversion.
	UnitMismatch = Code{"UNIT_MISMATCH", true}
	// NoGoodsReceipt: nothing has been received for a line, or all was sent back.
	NoGoodsReceipt = Code{"NO_GOODS_RECEIPT", true}
	// BilledOverReceived: what this invoice and the approved ones bill of a line,
	// less what credit notes gave back, is more than was received.
	BilledOverReceived = Code{"BILLED_OVER_RECEIVED", true}
	// BilledOverOrdered: the same, of what was ordered.
	BilledOverOrdered = Code{"BILLED_OVER_ORDERED", true}
	// ChargeNotOrdered: freight on this invoice and the approved ones is over the
	// order's limit, or tax over the order's percentage of the lines.
	ChargeNotOrdered = Code{"CHARGE_NOT_ORDERED", true}
	// PriceVariance: a unit price is beyond the [Tolerance].
	PriceVariance = Code{"PRICE_VARIANCE", true}
	// TotalMismatch: the total is not the sum of lines, tax and freight, or the
	// amount of a line is not its quantity times its price, rounded half up.
	TotalMismatch = Code{"TOTAL_MISMATCH", true}
	// CreditExceedsInvoice: the credit notes on an invoice come to more than its
	// total, or on a line to more than it bills. An invoice that is not approved
	// has nothing to credit.
	CreditExceedsInvoice = Code{"CREDIT_EXCEEDS_INVOICE", true}
	// PriceWithinTolerance: a unit price differs, and is within.
	PriceWithinTolerance = Code{"PRICE_WITHIN_TOLERANCE", false}
	// CompetingClaim: together with other undecided invoices this one bills more
	// of a line than was received.
	CompetingClaim = Code{"COMPETING_CLAIM", false}
	// AlreadyDecided: the invoice is approved or rejected.
	AlreadyDecided = Code{"ALREADY_DECIDED", false}
)

// FindingCodes lists all codes, in the order in which they are reported.
func FindingCodes() []Code {
	return []Code{DuplicateInvoice, NoLines, VendorMismatch, CurrencyMismatch, MissingPO, UnknownPOLine, UnitMismatch,
		NoGoodsReceipt, BilledOverReceived, BilledOverOrdered, ChargeNotOrdered, PriceVariance, TotalMismatch,
		CreditExceedsInvoice, PriceWithinTolerance, CompetingClaim, AlreadyDecided}
}

// ParseCode finds a code by its name.
func ParseCode(s string) (Code, error) {
	return oneOf(s, "is no code of a finding", FindingCodes()...)
}

// String returns the code as it stands on the wire, for example NO_LINES.
func (c Code) String() string { return c.name }

// Blocking reports whether the finding forbids an approval.
func (c Code) Blocking() bool { return c.blocking }

// Severity returns blocking or info.
func (c Code) Severity() string {
	if c.blocking {
		return "blocking"
	}
	return "info"
}

// MaxFindings is how many findings are kept with a decision and reported.
const MaxFindings = 100

// MaxNamed is how many invoices one finding names.
const MaxNamed = 10

// Finding is one thing that a match found. There is at most one of a code for
// a line of the order.
type Finding struct {
	Code Code
	Line int // of the order, or 0 if it is about the whole invoice
	// Expected and Found are exact figures, codes or ids, never free text; empty
	// where the code says it all.
	Expected, Found string
	// Invoices are other invoices that the finding is about, at most MaxNamed.
	Invoices []InvoiceID
}

// Message says what was found, in a sentence.
func (f Finding) Message() string {
	s := messages[f.Code](f)
	if f.Line > 0 {
		return fmt.Sprintf("Order line %d: %s", f.Line, s)
	}
	return s
}

func (f Finding) names() string {
	var names []string
	for _, id := range f.Invoices {
		names = append(names, id.text)
	}
	return strings.Join(names, ", ")
}

func says(format string) func(Finding) string {
	return func(f Finding) string {
		return strings.NewReplacer("{expected}", f.Expected, "{found}", f.Found, "{invoices}", f.names()).Replace(format)
	}
}

var messages = map[Code]func(Finding) string{
	DuplicateInvoice:     says("The number is that of {invoices}, which was entered first. A duplicate can never be approved."),
	NoLines:              says("The invoice has no lines."),
	VendorMismatch:       orCredited("The invoice is from vendor {found}, the order went to {expected}.", "The credit note is from vendor {found}, the invoice {invoices} from {expected}."),
	CurrencyMismatch:     orCredited("The invoice is in {found}, the order in {expected}.", "The credit note is in {found}, the invoice {invoices} in {expected}."),
	MissingPO:            missing,
	UnknownPOLine:        says("Billed, but the order has no such line; charges that were agreed are declared as tax or freight."),
	UnitMismatch:         says("Billed in {found}, ordered in {expected}, and no conversion is known."),
	NoGoodsReceipt:       says("Nothing has been received; {found} billed."),
	BilledOverReceived:   says("{found} billed in all, {expected} received."),
	BilledOverOrdered:    says("{found} billed in all, {expected} ordered."),
	ChargeNotOrdered:     says("{found} charged, at most {expected} agreed."),
	PriceVariance:        says("The unit price is {found}, ordered at {expected}: more than the tolerance."),
	TotalMismatch:        mismatch,
	CreditExceedsInvoice: says("{found} credited in all, {expected} can be credited on {invoices}."),
	PriceWithinTolerance: says("The unit price is {found}, ordered at {expected}: within the tolerance."),
	CompetingClaim:       says("Other open invoices claim the same {expected} received: {invoices}. With this one they bill {found}; not all can be approved."),
	AlreadyDecided:       says("The invoice is {found}; that is final."),
}

// orCredited says the second if the finding names the invoice credited.
func orCredited(order, invoice string) func(Finding) string {
	return func(f Finding) string {
		if len(f.Invoices) > 0 {
			return says(invoice)(f)
		}
		return says(order)(f)
	}
}

func mismatch(f Finding) string {
	if f.Found == f.Expected {
		return "The amount of a line is not its quantity times its unit price, rounded half up."
	}
	return says("The total is {found}; the lines, tax and freight come to {expected}.")(f)
}

func missing(f Finding) string {
	if f.Found == "" {
		return "The invoice names no purchase order."
	}
	return "There is no purchase order " + f.Found + "."
}

// ReasonCode says why something was decided: a blocking code, or one of the
// three below.
type ReasonCode struct{ name string }

// Reasons that are no findings.
var (
	// CleanMatch: nothing blocks it.
	CleanMatch = ReasonCode{"CLEAN_MATCH"}
	// NeedsReview: somebody has to look at it.
	NeedsReview = ReasonCode{"NEEDS_REVIEW"}
	// ManualOverride: a person decides against the findings, and says why.
	ManualOverride = ReasonCode{"MANUAL_OVERRIDE"}
)

// ReasonCodes lists all reasons.
func ReasonCodes() []ReasonCode {
	var all []ReasonCode
	for _, c := range FindingCodes() {
		if c.blocking {
			all = append(all, ReasonCode{c.name})
		}
	}
	return append(all, CleanMatch, NeedsReview, ManualOverride)
}

// ParseReasonCode accepts the codes of blocking findings, CLEAN_MATCH,
// NEEDS_REVIEW and MANUAL_OVERRIDE.
func ParseReasonCode(s string) (ReasonCode, error) {
	r := ReasonCode{s}
	if !slices.Contains(ReasonCodes(), r) {
		return ReasonCode{}, errors.New("must be the code of a blocking finding, CLEAN_MATCH, NEEDS_REVIEW or MANUAL_OVERRIDE")
	}
	return r, nil
}

// String returns the reason as it stands on the wire.
func (r ReasonCode) String() string { return r.name }

// finding returns the code of the finding that the reason names, if it does.
func (r ReasonCode) finding() (Code, bool) {
	c, err := ParseCode(r.name)
	return c, err == nil
}
