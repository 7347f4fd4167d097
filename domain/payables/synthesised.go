package payables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/text"
)

// Field is a field that a ledger may not keep, so that whoever reads the record
// has to put something in its place: it is synthesised. The stores of this
// module keep all of them.
type Field struct{ name string }

// The fields that can be synthesised.
var (
	// FieldLines: the invoice has one line, its [TotalLine].
	FieldLines = Field{"lines"}
	// FieldCurrency: all amounts are taken to be in a currency that was agreed
	// with the operator.
	FieldCurrency = Field{"currency"}
	// FieldDate: the date of the invoice is no more than some day.
	FieldDate = Field{"invoiceDate"}
	// FieldTax: no tax is declared.
	FieldTax = Field{"tax"}
	// FieldFreight: no freight is declared.
	FieldFreight = Field{"freight"}
)

// Fields are all of them.
func Fields() []Field { return []Field{FieldLines, FieldCurrency, FieldDate, FieldTax, FieldFreight} }

// ParseField accepts the name of a field that can be synthesised.
func ParseField(s string) (Field, error) {
	return oneOf(s, "must be lines, currency, invoiceDate, tax or freight", Fields()...)
}

// String returns the name as it stands on the wire.
func (f Field) String() string { return f.name }

var (
	totalSKU  = SKU{"TOTAL"}
	totalUnit = Unit{"EA"}
)

// TotalLine is the line that stands for the lines of an invoice of which none
// are known: one TOTAL, of what the total leaves when tax and freight are taken
// off. Where those are more than the total it is of nothing, and the match finds
// the mismatch that there is.
func TotalLine(total, tax, freight money.Amount) InvoiceLine {
	rest := money.FromMinor(max(0, total.Minor()-tax.Minor()-freight.Minor()), total.Currency())
	return InvoiceLine{Line: 1, SKU: totalSKU, Unit: totalUnit, Quantity: Quantity{micro}, UnitPrice: rest, Amount: rest}
}

func (i Invoice) synthesised(f Field) bool { return slices.Contains(i.Synthesised, f) }

// Lacking are the fields that are synthesised of what an invoice is decided on.
type Lacking struct {
	Invoice  []Field // its own
	Credited []Field // those of the invoice that it credits
}

func lacking(i Invoice, credited *Invoice) Lacking {
	l := Lacking{Invoice: i.Synthesised}
	if credited != nil {
		l.Credited = credited.Synthesised
	}
	return l
}

func (l Lacking) any() bool { return len(l.Invoice)+len(l.Credited) > 0 }

// facts prove what was not on record when a decision was made.
func (l Lacking) facts() (facts []operation.Fact) {
	if len(l.Invoice) > 0 {
		facts = append(facts, operation.Fact{Name: "synthesised", Value: strings.Join(names(l.Invoice), " ")})
	}
	if len(l.Credited) > 0 {
		facts = append(facts, operation.Fact{Name: "credited_synthesised", Value: strings.Join(names(l.Credited), " ")})
	}
	return facts
}

func names(fields []Field) []string {
	all := make([]string, 0, len(fields))
	for _, f := range fields {
		all = append(all, f.name)
	}
	return all
}

// Synthesised are the details of the reason synthesised_invoice.
type Synthesised struct {
	Synthesised []string `json:"synthesised"`
	Credited    []string `json:"credited,omitempty"` // of the invoice that is credited
}

// Withhold refuses to approve an invoice of which something is synthesised, or of
// the invoice that it credits, as long as it is not overridden: PolicyViolation
// synthesised_invoice, or Conflict already_decided if it is final. It is part of
// [Decide], and on its own for whoever asks a ledger to decide that does not know
// the rule. What is a duplicate is that ledger's to say.
func Withhold(i Invoice, credited *Invoice, r Request, a Authority) error {
	l := lacking(i, credited)
	if r.Action != Approve || !l.any() || r.Overrides(a) {
		return nil
	}
	if i.Status.Final() {
		return decidedAlready(i)
	}
	d, what := Synthesised{Synthesised: names(l.Invoice)}, ""
	if len(l.Invoice) > 0 {
		what = fmt.Sprintf("The ledger does not keep all of the invoice %s; filled in are: %s. ", i.ID, strings.Join(d.Synthesised, ", "))
	}
	if len(l.Credited) > 0 {
		d.Credited = names(l.Credited)
		what += fmt.Sprintf("The ledger does not keep all of the invoice %s, which %s credits; filled in are: %s. ", credited.ID, i.ID, strings.Join(d.Credited, ", "))
	}
	return fault.New(fault.PolicyViolation, "synthesised_invoice",
		"%sSo nothing but an override can approve it, of a person with the scope invoice:override: "+
			"override true, the reason MANUAL_OVERRIDE and a note of at least %d letters and signs; and if it is a duplicate, nothing can. "+
			"Hold the invoice instead, with the reason NEEDS_REVIEW.",
		what, MinOverrideNote).With(d)
}

// Overrides reports whether the request is a complete override, by one who may.
func (r Request) Overrides(a Authority) bool { return r.complete() && a.MayOverride }

// complete reports whether the request has all that an override needs.
func (r Request) complete() bool {
	return r.Override && r.Reason == ManualOverride && text.Written(r.Note.text) >= MinOverrideNote
}
