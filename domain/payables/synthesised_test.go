package payables_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

// without is the case as one sees it whose ledger does not keep the fields.
func without(fields ...payables.Field) func(*setup) {
	return func(s *setup) {
		i := &s.invoice
		i.Synthesised = fields
		none := money.FromMinor(0, i.Currency)
		for _, f := range fields {
			switch f {
			case payables.FieldTax:
				i.Tax = none
			case payables.FieldFreight:
				i.Freight = none
			}
		}
		if slices.Contains(fields, payables.FieldLines) {
			i.Lines = []payables.InvoiceLine{payables.TotalLine(i.Total, i.Tax, i.Freight)}
		}
	}
}

// creditedWithout makes the invoice a credit note on 10 at 10.00 with tax of 1.00
// in the currency, as one sees that invoice whose ledger does not keep the fields.
func creditedWithout(c string, fields ...payables.Field) func(*setup) {
	return func(s *setup) {
		billed := with(order(usd), invoice(currency(c), "1 10 EA 10.00"), tax("1"), without(fields...)).invoice
		s.invoice.Order = payables.OrderID{}
		credits(nil, "1 10 EA 10.00")(s)
		billed = as(billed, "INV-0900", "A-0900")
		billed.Status = payables.Approved
		s.facts.Credited = &billed
	}
}

var (
	onlyLines    = without(payables.FieldLines)
	onlyCurrency = without(payables.FieldCurrency)
	onlyDate     = without(payables.FieldDate)
	everything   = without(payables.Fields()...)
)

func TestTheLineThatStandsForAll(t *testing.T) {
	for name, tt := range map[string]struct {
		total, tax, freight string
		want                string
	}{
		"the total":                        {"110", "0", "0", "110"},
		"less tax and freight":             {"110", "10", "2.5", "97.5"},
		"nothing is left":                  {"10", "10", "0", "0"},
		"and nothing if they are too much": {"10", "10", "0.01", "0"},
	} {
		total, tax, freight := amount(tt.total, usd), amount(tt.tax, usd), amount(tt.freight, usd)
		l := payables.TotalLine(total, tax, freight)
		if l.Line != 1 || l.OrderLine != 0 || l.SKU.String() != "TOTAL" || l.Quantity.String() != "1" || l.UnitPrice != amount(tt.want, usd) || l.Amount != l.UnitPrice {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

func TestMatchOfASynthesisedInvoice(t *testing.T) {
	eur := currency("EUR")
	for name, tt := range map[string]struct {
		*setup
		want string // the findings
		hold payables.Action
	}{
		"what is complete, to compare":              {usd10("1 10 EA 10.00"), "", payables.Approve},
		"no lines: neither NO_LINES nor more":       {usd10("1 10 EA 10.00").but(onlyLines), "", payables.Hold},
		"nor that they are no lines of an order":    {usd10("9 20 EA 99.00").but(onlyLines), "", payables.Hold},
		"none of its lines was received":            {with(order(usd, "1 10 EA 10.00"), invoice(usd, "1 10 EA 10.00")).but(onlyLines), "", payables.Hold},
		"an empty list is no absent one":            {usd10(), "NO_LINES:0", payables.Hold},
		"the total is not wrong":                    {usd10("1 10 EA 10.00").but(taxLimit("10"), tax("10"), onlyLines), "", payables.Hold},
		"unless tax is more than it":                {usd10("1 10 EA 10.00").but(taxLimit("10"), tax("10"), total("9"), onlyLines), "TOTAL_MISMATCH:0", payables.Hold},
		"tax is no part of lines that nobody wrote": {usd10("1 10 EA 10.00").but(tax("90"), onlyLines), "", payables.Hold},
		"freight that was not agreed":               {usd10("1 10 EA 10.00").but(freight("3"), onlyLines), "CHARGE_NOT_ORDERED:0", payables.Hold},
		"no order":                                  {usd10("1 10 EA 10.00").but(onlyLines, noOrder), "MISSING_PO:0", payables.Hold},
		"another vendor":                            {usd10("1 10 EA 10.00").but(everything, func(s *setup) { s.order.Vendor = bolt }), "VENDOR_MISMATCH:0", payables.Hold},
		"a duplicate":                               {usd10("1 10 EA 10.00").but(everything, claims("INV-0900", "INV-1001")), "DUPLICATE_INVOICE:0", payables.Reject},
		"only the date":                             {usd10("1 10 EA 10.00").but(onlyDate), "", payables.Hold},
		"and the price":                             {usd10("1 10 EA 11.00").but(onlyDate), "PRICE_VARIANCE:1", payables.Hold},
		"only the currency, that of the order":      {usd10("1 10 EA 10.00").but(onlyCurrency), "", payables.Hold},
		"whose prices are not compared then":        {usd10("1 10 EA 11.00").but(onlyCurrency), "", payables.Hold},
		"nor what many small lines come to":         {with(order(usd, "1 10 EA 0.01 received=10"), invoice(usd, slices.Repeat([]string{"1 0.5 EA 0.01"}, 20)...)).but(onlyCurrency), "", payables.Hold},
		"nor freight":                               {usd10("1 10 EA 10.00").but(freight("3"), onlyCurrency), "", payables.Hold},
		"quantities are":                            {usd10("1 11 EA 10.00").but(onlyCurrency), "BILLED_OVER_RECEIVED:1 BILLED_OVER_ORDERED:1", payables.Hold},
		"and tax, a part of the lines":              {usd10("1 10 EA 10.00").but(tax("1"), onlyCurrency), "CHARGE_NOT_ORDERED:0", payables.Hold},
		"another than the order's is no finding":    {with(order(eur, "1 10 EA 10.00 received=10"), invoice(usd, "1 10 EA 11.00")).but(onlyCurrency), "", payables.Hold},
		"one on record is":                          {with(order(eur, "1 10 EA 10.00 received=10"), invoice(usd, "1 10 EA 11.00")).but(onlyDate), "CURRENCY_MISMATCH:0", payables.Hold},
		"tax that is not known may be in it":        {usd10("1 10 EA 10.00").but(taxLimit("10"), tax("10"), without(payables.FieldTax)), "", payables.Hold},
		"and so may freight":                        {usd10("1 10 EA 10.00").but(total("100.01"), without(payables.FieldFreight)), "", payables.Hold},
		"but the lines are not more":                {usd10("1 10 EA 10.00").but(total("99.99"), without(payables.FieldTax)), "TOTAL_MISMATCH:0", payables.Hold},
		"nor otherwise than they are":               {usd10("1 10 EA 10.00").but(lineAmount("99"), without(payables.FieldTax)), "TOTAL_MISMATCH:0", payables.Hold},
		"no tax, and none in the total":             {usd10("1 10 EA 10.00").but(without(payables.FieldTax, payables.FieldFreight)), "", payables.Hold},
		"a credit note":                             {usd10("1 1 EA 10.00").but(creditedWithout("USD"), onlyLines), "", payables.Hold},
		"one of everything, to compare":             {usd10("1 10 EA 10.00").but(tax("1"), creditedWithout("USD")), "", payables.Approve},
		"on an invoice of no known date":            {usd10("1 1 EA 10.00").but(creditedWithout("USD", payables.FieldDate)), "", payables.Hold},
		"of no known freight":                       {usd10("1 1 EA 10.00").but(creditedWithout("USD", payables.FieldFreight)), "", payables.Hold},
		"of no known currency":                      {usd10("1 1 EA 10.00").but(creditedWithout("EUR", payables.FieldCurrency)), "", payables.Hold},
		"however much it is":                        {usd10("1 1 EA 1000000.00").but(creditedWithout("EUR", payables.FieldCurrency)), "", payables.Hold},
		"or however many":                           {usd10("1 11 EA 10.00").but(tax("1.10"), creditedWithout("EUR", payables.FieldCurrency)), "", payables.Hold},
		"or if it was taken to be the note's":       {usd10("1 1 EA 1000000.00").but(creditedWithout("USD", payables.FieldCurrency)), "", payables.Hold},
		"or the note's is not known":                {usd10("1 1 EA 1000000.00").but(creditedWithout("USD"), onlyCurrency), "", payables.Hold},
		"a currency on record is":                   {usd10("1 1 EA 10.00").but(creditedWithout("EUR", payables.FieldDate)), "CURRENCY_MISMATCH:0", payables.Hold},
		"of no known lines":                         {usd10("1 1 EA 10.00").but(tax("0.10"), creditedWithout("USD", payables.FieldLines)), "", payables.Hold},
		"the total is a cap all the same":           {usd10("1 11 EA 10.00").but(creditedWithout("USD", payables.FieldLines)), "CREDIT_EXCEEDS_INVOICE:0", payables.Hold},
		"of no known tax":                           {usd10("1 11 EA 10.00").but(total("100"), creditedWithout("USD", payables.FieldTax)), "TOTAL_MISMATCH:0", payables.Hold},
		"decided already":                           {usd10("1 10 EA 10.00").but(onlyLines, status(payables.Approved)), "ALREADY_DECIDED:0", payables.Hold},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := payables.Match(tt.invoice, tt.facts, tt.t)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(codesOf(m.Findings), " "); got != tt.want || m.Recommendation != tt.hold || m.Blocking != (tt.hold != payables.Approve) {
				t.Errorf("found %s, recommended %s, blocking %t; want %s and %s", got, m.Recommendation, m.Blocking, tt.want, tt.hold)
			}
		})
	}
}

func TestWhatMayBeDecidedAboutASynthesisedInvoice(t *testing.T) {
	const why = "CFO agreed by mail"
	clean := func(change ...func(*setup)) *setup { return usd10("1 10 EA 10.00").but(change...) }
	bare := func(change ...func(*setup)) *setup { return clean(append(change, everything)...) }
	for _, tt := range []struct {
		name string
		*setup
		request payables.Request
		may     bool   // the principal may override
		want    string // the status, or the reason of the refusal
		fields  string // its details, and of what is credited behind a +
	}{
		{"without lines", clean(onlyLines), request("approve", "CLEAN_MATCH"), false, "synthesised_invoice", "lines"},
		{"without a currency", clean(onlyCurrency), request("approve", "CLEAN_MATCH"), false, "synthesised_invoice", "currency"},
		{"without a date", clean(onlyDate), request("approve", "NEEDS_REVIEW"), false, "synthesised_invoice", "invoiceDate"},
		{"without tax", clean(without(payables.FieldTax)), request("approve", "CLEAN_MATCH"), false, "synthesised_invoice", "tax"},
		{"without freight", clean(without(payables.FieldFreight)), request("approve", "CLEAN_MATCH"), false, "synthesised_invoice", "freight"},
		{"with next to nothing", bare(), request("approve", "CLEAN_MATCH"), false, "synthesised_invoice", "lines currency invoiceDate tax freight"},
		{"that is said before what blocks", bare(noOrder), request("approve", "CLEAN_MATCH"), false, "synthesised_invoice", "lines currency invoiceDate tax freight"},
		{"and before a reason that is not there", clean(onlyLines), request("approve", "PRICE_VARIANCE"), false, "synthesised_invoice", "lines"},
		{"who may override still has to", clean(onlyLines), request("approve", "CLEAN_MATCH"), true, "synthesised_invoice", "lines"},
		{"an agent may not override", clean(onlyLines), override("approve", why), false, "synthesised_invoice", "lines"},
		{"a person may", clean(onlyLines), override("approve", why), true, "approved", ""},
		{"also what is blocked", bare(noOrder), override("approve", why), true, "approved", ""},
		{"not without a note", clean(onlyLines), override("approve", ""), true, "synthesised_invoice", "lines"},
		{"nor with a short one", clean(onlyLines), override("approve", "123456789"), true, "synthesised_invoice", "lines"},
		{"nor with override false", clean(onlyLines), payables.Request{Invoice: invoiceID("INV-1001"), Action: payables.Approve, Reason: payables.ManualOverride, Note: must(payables.ParseNote(why))}, true, "synthesised_invoice", "lines"},
		{"nor for another reason", clean(onlyLines), payables.Request{Invoice: invoiceID("INV-1001"), Action: payables.Approve, Reason: payables.CleanMatch, Override: true, Note: must(payables.ParseNote(why))}, true, "synthesised_invoice", "lines"},
		{"a duplicate never", bare(claims("INV-0900", "INV-1001")), override("approve", why), true, "duplicate_invoice", ""},
		{"it can be held", bare(), request("hold", "NEEDS_REVIEW"), false, "on_hold", ""},
		{"and rejected for what was found", bare(noOrder), request("reject", "MISSING_PO"), false, "rejected", ""},
		{"not for what was made up", clean(onlyLines), request("reject", "UNKNOWN_PO_LINE"), false, "reason_without_finding", ""},
		{"nor for having no lines", clean(onlyLines), request("reject", "NO_LINES"), false, "reason_without_finding", ""},
		{"a note on what is not all kept", clean(creditedWithout("USD", payables.FieldLines)), request("approve", "CLEAN_MATCH"), false, "synthesised_invoice", "+lines"},
		{"nor is all of the note", clean(creditedWithout("EUR", payables.FieldCurrency), onlyDate), request("approve", "CLEAN_MATCH"), false, "synthesised_invoice", "invoiceDate+currency"},
		{"a person may approve it", clean(creditedWithout("USD", payables.Fields()...)), override("approve", why), true, "approved", ""},
		{"an agent may hold it", clean(creditedWithout("USD", payables.FieldTax)), request("hold", "NEEDS_REVIEW"), false, "on_hold", ""},
		{"but not reject it for lines made up", clean(tax("1"), creditedWithout("USD", payables.FieldLines)), request("reject", "CREDIT_EXCEEDS_INVOICE"), false, "reason_without_finding", ""},
		{"nor for a currency that was", clean(creditedWithout("EUR", payables.FieldCurrency)), request("reject", "CURRENCY_MISMATCH"), false, "reason_without_finding", ""},
		{"nor an invoice for a price in one", usd10("1 10 EA 11.00").but(onlyCurrency), request("reject", "PRICE_VARIANCE"), false, "reason_without_finding", ""},
		{"or for freight in one", clean(freight("3"), onlyCurrency), request("reject", "CHARGE_NOT_ORDERED"), false, "reason_without_finding", ""},
		{"final is final", bare(status(payables.Approved)), request("approve", "CLEAN_MATCH"), false, "already_decided", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := payables.Authority{Tolerance: tt.t, MayOverride: tt.may}
			v, err := payables.Decide(tt.invoice, vendor(), tt.facts, tt.request, a, op)
			f := fault.Of(err)
			switch {
			case err == nil:
				if v.Invoice.Status.String() != tt.want || !v.Changed || v.Decision.Verify(true, v.Entry) != nil {
					t.Errorf("it is %s, want %s", v.Invoice.Status, tt.want)
				}
			case f == nil || f.Reason != tt.want || f.Retryable:
				t.Errorf("refused with %v, want %s", err, tt.want)
			case tt.want == "synthesised_invoice":
				if d, ok := f.Details.(payables.Synthesised); !ok || d.Synthesised == nil || strings.TrimSuffix(strings.Join(d.Synthesised, " ")+"+"+strings.Join(d.Credited, " "), "+") != tt.fields || f.Code != fault.PolicyViolation {
					t.Errorf("%s with the details %+v", f.Code, f.Details)
				}
			}
			// Who asks a ledger that does not know the rule is told the same.
			if alone := payables.Withhold(tt.invoice, tt.facts.Credited, tt.request, a); (alone != nil) != (tt.want == "synthesised_invoice" || tt.want == "already_decided") || alone != nil && !reflect.DeepEqual(alone, err) {
				t.Errorf("alone it says %v", alone)
			}
		})
	}
}

// What is booked all the same says for good what was not on record.
func TestAnEntryProvesWhatWasFilledIn(t *testing.T) {
	for name, tt := range map[string]struct {
		*setup
		want string
	}{
		"nothing":                    {usd10("1 10 EA 10.00"), ""},
		"of the invoice":             {usd10("1 10 EA 10.00").but(onlyLines, onlyDate), "synthesised=invoiceDate"},
		"all of it":                  {usd10("1 10 EA 10.00").but(everything), "synthesised=lines currency invoiceDate tax freight"},
		"of what a note credits too": {usd10("1 1 EA 10.00").but(creditedWithout("USD", payables.FieldLines, payables.FieldTax), onlyCurrency), "synthesised=currency credited_synthesised=lines tax"},
	} {
		v := must(payables.Decide(tt.invoice, vendor(), tt.facts, override("approve", "CFO agreed by mail"), payables.Authority{Tolerance: tt.t, MayOverride: true}, op))
		var got []string
		for _, f := range v.Entry.Facts() {
			if strings.HasSuffix(f.Name, "synthesised") {
				got = append(got, f.Name+"="+f.Value)
			}
		}
		if strings.Join(got, " ") != tt.want || v.Decision.Verify(true, v.Entry) != nil {
			t.Errorf("%s: %s, want %s; %v", name, got, tt.want, v.Decision.Verify(true, v.Entry))
		}
		if v.Credited != nil && v.Order != nil && v.Order.Lines[0].Billed != tt.order.Lines[0].Billed {
			t.Errorf("%s: by what nobody wrote %s was given back", name, v.Order.Lines[0].Billed)
		}
	}
}

// The very same decision again is answered with the first one, whatever the
// invoice lacks.
func TestAnApprovedSynthesisedInvoiceStays(t *testing.T) {
	s := usd10("1 10 EA 10.00").but(onlyLines)
	r, a := override("approve", "CFO agreed by mail"), payables.Authority{Tolerance: s.t, MayOverride: true}
	first := must(payables.Decide(s.invoice, vendor(), s.facts, r, a, op))
	again, err := payables.Decide(first.Invoice, first.Vendor, s.facts, r, payables.Authority{Tolerance: s.t}, op)
	if err != nil || again.Changed || !reflect.DeepEqual(again.Decision, first.Decision) {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestNoStoreTakesASynthesisedInvoice(t *testing.T) {
	i := usd10("1 10 EA 10.00").but(onlyLines).invoice
	issues := payables.ImportInvoices{Invoices: []payables.Invoice{i}}.Check()
	if len(issues) != 1 || !reflect.DeepEqual(issues[0].Path, []any{0, "synthesised"}) {
		t.Errorf("%+v", issues)
	}
}

func TestFields(t *testing.T) {
	for _, f := range payables.Fields() {
		if got, err := payables.ParseField(f.String()); got != f || err != nil {
			t.Errorf("%s is read as %s, %v", f, got, err)
		}
	}
	if f, err := payables.ParseField("total"); err == nil {
		t.Errorf("the total can be synthesised: %v", f)
	}
}
