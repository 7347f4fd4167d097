package payables_test

import (
	"slices"
	"testing"

	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

// approve asks as an agent does and returns the reason of the refusal, or "".
func (b *books) approve(id string) string { return reasonOf(b.decide(id, "approve", "CLEAN_MATCH")) }

func TestLeadingZerosDoNotHideADuplicate(t *testing.T) {
	for _, tt := range []struct {
		first, second string
		same          bool
	}{
		{"0071-000345", "71-345", true}, {"71-345", "0071-000345", true}, {"003411", "3411", true},
		{"INV 2026/0007", "inv-2026-7", true}, {"０７１-345", "71\u2013345", true}, {"71-345", "71-\u200b345", true},
		{"10-0", "1-00", false}, {"A3411", "3411", false}, {"100", "10-0", false}, {"71-345", "71345", false}, {"O-1", "0-1", false},
	} {
		b := stocked()
		b.bring(as(invoice(usd, "1 3 EA 10.00"), "INV-1001", tt.first), as(invoice(usd, "1 3 EA 10.00"), "INV-1002", tt.second))
		if b.match(invoiceID("INV-1001")).Has(payables.DuplicateInvoice) {
			t.Errorf("%q, then %q: the original is flagged", tt.first, tt.second)
		}
		if got := b.match(invoiceID("INV-1002")).Has(payables.DuplicateInvoice); got != tt.same {
			t.Errorf("%q, then %q: a duplicate: %t", tt.first, tt.second, got)
		}
		refused := b.approve("INV-1002") == "POLICY_VIOLATION/duplicate_invoice"
		if refused != tt.same || b.approve("INV-1001") != "" {
			t.Errorf("%q, then %q: refused: %t", tt.first, tt.second, refused)
		}
	}
}

func TestADuplicateIsOneWhateverItsDateAmountOrOrder(t *testing.T) {
	dated := func(i payables.Invoice, day string) payables.Invoice {
		i.Date = must(payables.ParseDate(day))
		return i
	}
	for name, second := range map[string]payables.Invoice{
		"a day later":        dated(invoice(usd, "1 5 EA 10.00"), "2026-07-01"),
		"a day before":       dated(invoice(usd, "1 5 EA 10.00"), "2026-06-29"),
		"a year later":       dated(invoice(usd, "1 5 EA 10.00"), "2027-06-30"),
		"of another amount":  dated(invoice(usd, "1 1 EA 10.00"), "2027-01-01"),
		"without the order":  func() payables.Invoice { i := invoice(usd, "1 5 EA 10.00"); i.Order = payables.OrderID{}; return i }(),
		"in other currency":  dated(invoice(currency("EUR"), "1 5 EA 10.00"), "2026-06-30"),
		"the very same file": dated(invoice(usd, "1 5 EA 10.00"), "2026-06-30"),
	} {
		b := stocked()
		b.bring(dated(as(invoice(usd, "1 5 EA 10.00"), "INV-1001", "1234"), "2026-06-30"), as(second, "INV-1002", "1234"))
		for _, decided := range []bool{false, true} { // whether the first is approved by then
			if decided && b.approve("INV-1001") != "" {
				t.Fatal("the original is refused")
			}
			if got := b.approve("INV-1002"); got != "POLICY_VIOLATION/duplicate_invoice" || b.match(invoiceID("INV-1002")).Recommendation != payables.Reject {
				t.Errorf("%s: %s", name, got)
			}
			r := override("approve", "the CFO has agreed")
			r.Invoice = invoiceID("INV-1002")
			if _, err := b.run(b.route(r, true)); reasonOf(err) != "POLICY_VIOLATION/duplicate_invoice" {
				t.Errorf("%s, by a person: %v", name, err)
			}
		}
	}
	// Of another vendor it is another number.
	b := stocked()
	other := order(usd, "1 10 EA 10.00")
	other.ID, other.Vendor = po2, bolt
	in := goods("GR-2", payables.Received, "1 10 EA")
	in.Order, in.Vendor = po2, bolt
	theirs := as(invoice(usd, "1 5 EA 10.00"), "INV-1002", "1234")
	theirs.Vendor, theirs.Order = bolt, po2
	b.bring(other, in, as(invoice(usd, "1 5 EA 10.00"), "INV-1001", "1234"), theirs)
	if a, b := b.approve("INV-1001"), b.approve("INV-1002"); a+b != "" {
		t.Errorf("%s, %s", a, b)
	}
}

// A rejected original frees its number for the next, and only for that.
func TestACorrectedReentryCanBePaid(t *testing.T) {
	b := stocked()
	b.bring(as(invoice(usd, "1 5 EA 99.00"), "INV-1001", "1234"), as(invoice(usd, "1 5 EA 10.00"), "INV-1002", "1234"), as(invoice(usd, "1 5 EA 10.00"), "INV-1003", "1234"))
	if err := b.decide("INV-1001", "reject", "PRICE_VARIANCE"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"INV-1003", "INV-1002", "INV-1003"} { // the third is one of the second, also when that is paid
		want := ""
		if id == "INV-1003" {
			want = "POLICY_VIOLATION/duplicate_invoice"
		}
		if got := b.approve(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if err := b.decide("INV-1003", "reject", "DUPLICATE_INVOICE"); err != nil {
		t.Error(err)
	}
}

// Crediting the goods without their tax must not let the tax be charged again.
func TestGoodsAreGivenBackWithTheirTax(t *testing.T) {
	for name, tt := range map[string]struct {
		tax  string
		left string
	}{
		"without tax":        {"0", "10"},
		"with part of it":    {"2.39", "10"},
		"with the tax on it": {"2.40", "7"},
	} {
		b := newBooks()
		o := changed(order(usd, "1 10 EA 10.00"), func(o *payables.Order) { o.TaxLimit = must(payables.ParsePercent("8")) })
		taxed := func(i payables.Invoice, literal string) payables.Invoice {
			i.Tax = amount(literal, usd)
			return priced(i)
		}
		b.bring(payables.Vendor{ID: acme, Name: "Acme Ltd"}, o, goods("GR-1", payables.Received, "1 10 EA"),
			taxed(invoice(usd, "1 10 EA 10.00"), "8"), taxed(note("INV-1002", "CN-1", "INV-1001", "1 3 EA 10.00"), tt.tax))
		for _, id := range []string{"INV-1001", "INV-1002"} {
			if got := b.approve(id); got != "" {
				t.Fatal(name, id, got)
			}
		}
		if got := b.order(po1).Lines[0].Billed; got != ratio(tt.left) {
			t.Errorf("%s: billed %s, want %s", name, got, tt.left)
		}
	}
}

// A cent for each of ten must not let ten that were paid be billed again.
func TestALowerPriceGivesBackMoneyOnly(t *testing.T) {
	b := stocked()
	b.bring(invoice(usd, "1 10 EA 10.00"), note("INV-1002", "CN-1", "INV-1001", "1 10 EA 0.01"), as(invoice(usd, "1 10 EA 10.00"), "INV-1003", "A-3"))
	for _, id := range []string{"INV-1001", "INV-1002"} {
		if got := b.approve(id); got != "" {
			t.Fatal(id, got)
		}
	}
	i := b.invoice(invoiceID("INV-1001"))
	if got := b.order(po1).Lines[0].Billed; got != ratio("10") || i.Credited != amount("0.10", usd) || i.Lines[0].Credited != (payables.Ratio{}) {
		t.Errorf("billed %s, credited %s and %s", got, i.Credited, i.Lines[0].Credited)
	}
	if got := b.approve("INV-1003"); got != "POLICY_VIOLATION/blocking_findings" {
		t.Error(got)
	}
}

func TestCreditsAndReturnsLowerWhatIsBilledAndReceived(t *testing.T) {
	b := stocked()
	b.bring(invoice(usd, "1 10 EA 10.00"))
	if got := b.approve("INV-1001"); got != "" {
		t.Fatal(got)
	}
	b.bring(goods("RET-1", payables.Returned, "1 3 EA"), note("INV-1002", "CN-1", "INV-1001", "1 3 EA 10.00"))
	if got := b.approve("INV-1002"); got != "" {
		t.Fatal(got)
	}
	if l := b.order(po1).Lines[0]; l.Billed != ratio("7") || l.Received != ratio("7") {
		t.Errorf("billed %s, received %s", l.Billed, l.Received)
	}
	if got := b.vendor(acme).Balances; !slices.Equal(got, []money.Amount{amount("70", usd)}) {
		t.Errorf("owed %v", got)
	}
	if i := b.invoice(invoiceID("INV-1001")); i.Credited != amount("30", usd) || i.Lines[0].Credited != ratio("3") {
		t.Errorf("credited %s, %s", i.Credited, i.Lines[0].Credited)
	}
	b.bring(as(invoice(usd, "1 3 EA 10.00"), "INV-1003", "A-3"))
	if got := found(b.match(invoiceID("INV-1003")).Findings); !slices.Equal(got, []string{"BILLED_OVER_RECEIVED:1 10|7"}) {
		t.Errorf("found %q", got)
	}
	if got := b.approve("INV-1003"); got != "POLICY_VIOLATION/blocking_findings" {
		t.Error(got)
	}

	// Received 20, 5 sent back, nothing billed.
	b = newBooks()
	b.bring(payables.Vendor{ID: acme, Name: "Acme Ltd"}, order(usd, "1 20 EA 10.00"), goods("GR-1", payables.Received, "1 20 EA"), goods("RET-1", payables.Returned, "1 5 EA"),
		as(invoice(usd, "1 20 EA 10.00"), "INV-1001", "A-1"), as(invoice(usd, "1 15 EA 10.00"), "INV-1002", "A-2"))
	if got := found(b.match(invoiceID("INV-1001")).Findings); !slices.Equal(got, []string{"BILLED_OVER_RECEIVED:1 20|15"}) {
		t.Errorf("found %q", got)
	}
	if got := b.approve("INV-1001") + b.approve("INV-1002"); got != "POLICY_VIOLATION/blocking_findings" {
		t.Error(got)
	}
}

func TestTwoInvoicesAgainstOneReceipt(t *testing.T) {
	a, z := invoiceID("INV-1001"), invoiceID("INV-1002")
	for _, first := range []payables.InvoiceID{a, z} {
		second := z
		if first == z {
			second = a
		}
		b := stocked()
		b.bring(as(invoice(usd, "1 8 EA 10.00"), "INV-1001", "A-1"), as(invoice(usd, "1 8 EA 10.00"), "INV-1002", "A-2"))
		for _, id := range []payables.InvoiceID{a, z} {
			m := b.match(id)
			if got := found(m.Findings); !slices.Equal(got, []string{"COMPETING_CLAIM:1 16|10"}) || m.Blocking || m.Findings[0].Invoices[0] == id {
				t.Errorf("%s: %q", id, got)
			}
		}
		// Both were matched before either is approved.
		if got := b.approve(first.String()); got != "" {
			t.Error(got)
		}
		if got := b.approve(second.String()); got != "POLICY_VIOLATION/blocking_findings" {
			t.Error(got)
		}
		if got := found(b.match(second).Findings); !slices.Equal(got, []string{"BILLED_OVER_RECEIVED:1 16|10", "BILLED_OVER_ORDERED:1 16|10"}) {
			t.Errorf("found %q", got)
		}
		if got := found(b.match(first).Findings); !slices.Equal(got, []string{"ALREADY_DECIDED approved|"}) {
			t.Errorf("found %q", got)
		}
	}
}

func TestAPriceIsComparedBeforeAnythingIsRounded(t *testing.T) {
	for _, tt := range []struct{ percent, price, want string }{
		{"5", "10549.00", "PRICE_VARIANCE:1"}, // 5.49 %
		{"5", "10500.00", "PRICE_WITHIN_TOLERANCE:1"},
		{"5", "10500.01", "PRICE_VARIANCE:1"},
		{"5", "9500.00", "PRICE_WITHIN_TOLERANCE:1"},
		{"5", "9499.99", "PRICE_VARIANCE:1"},
		{"0", "10040.00", "PRICE_VARIANCE:1"}, // 0.4 %
		{"0", "10000.01", "PRICE_VARIANCE:1"},
		{"0", "10000.00", ""},
		{"5.49", "10549.00", "PRICE_WITHIN_TOLERANCE:1"},
		{"5.489999", "10549.00", "PRICE_VARIANCE:1"},
	} {
		s := with(order(usd, "1 1 EA 10000.00 received=1"), invoice(usd, "1 1 EA "+tt.price), percent(tt.percent), perUnit(1_000_000))
		got := codesOf(must(payables.Match(s.invoice, s.facts, s.t)).Findings)
		if tt.want == "" && len(got) > 0 || tt.want != "" && !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s at %s%%: %q, want %q", tt.price, tt.percent, got, tt.want)
		}
	}
}

func TestAQuantityHasAUnit(t *testing.T) {
	for name, tt := range map[string]struct {
		order, line string
		want        []string
	}{
		"no conversion is known":               {"1 2 BOX 24.00 received=2", "1 24 EA 2.00", []string{"UNIT_MISMATCH:1 EA|BOX"}},
		"24 EA are 2 BOX of 12":                {"1 2 BOX 24.00 received=2 EA=1/12", "1 24 EA 2.00", []string{}},
		"24 BOX are not, though the sum is it": {"1 2 BOX 24.00 received=2 EA=1/12", "1 24 BOX 2.00", []string{"BILLED_OVER_RECEIVED:1 24|2", "BILLED_OVER_ORDERED:1 24|2", "PRICE_VARIANCE:1 2|24"}},
		"1656 kg are 1.656 t":                  {"1 1.656 t 1000.00 received=1.656 kg=1/1000", "1 1656 kg 1.00", []string{}},
		"1.656 t are 1656 kg":                  {"1 1656 kg 1.00 received=1656 t=1000/1", "1 1.656 t 1000.00", []string{}},
	} {
		s := with(order(usd, tt.order), invoice(usd, tt.line))
		if got := found(must(payables.Match(s.invoice, s.facts, s.t)).Findings); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestTheSameFiguresInAnotherCurrencyAreNotTheSame(t *testing.T) {
	s := with(order(usd, "1 1 EA 500.00 received=1"), invoice(currency("EUR"), "1 1 EA 500.00"), percent("1000"), perUnit(payables.MaxMinor))
	if got := found(must(payables.Match(s.invoice, s.facts, s.t)).Findings); !slices.Equal(got, []string{"CURRENCY_MISMATCH EUR|USD"}) {
		t.Errorf("found %q", got)
	}
	if _, err := money.ParseCurrency("usd"); err == nil {
		t.Error("usd is a currency, and not USD")
	}
	b := stocked()
	b.bring(invoice(currency("EUR"), "1 10 EA 10.00"))
	if got := b.approve("INV-1001"); got != "POLICY_VIOLATION/blocking_findings" {
		t.Error(got)
	}
}

func TestTheTotalFollowsFromTheLines(t *testing.T) {
	of := func(freightAgreed, freightDeclared, totalDeclared string) []string {
		s := with(order(usd, "1 4 EA 10.00 received=4", "2 6 EA 10.00 received=6"), invoice(usd, "1 4 EA 10.00", "2 6 EA 10.00"),
			taxLimit("8"), tax("8"), freightLimit(freightAgreed, "0"), freight(freightDeclared), total(totalDeclared))
		return found(must(payables.Match(s.invoice, s.facts, s.t)).Findings)
	}
	for name, tt := range map[string]struct{ got, want []string }{
		"off by 10.00":                     {of("0", "0", "118"), []string{"TOTAL_MISMATCH 118|108"}},
		"right":                            {of("0", "0", "108"), []string{}},
		"explained by freight":             {of("10", "10", "118"), []string{}},
		"by freight that nobody agreed to": {of("0", "10", "118"), []string{"CHARGE_NOT_ORDERED freight of 10|freight of 0"}},
		"the freight is not in the total":  {of("10", "10", "108"), []string{"TOTAL_MISMATCH 108|118"}},
	} {
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s: %q, want %q", name, tt.got, tt.want)
		}
	}
}

func TestPartialCreditsAndPartialBillsAreNoDuplicates(t *testing.T) {
	b := newBooks()
	b.bring(payables.Vendor{ID: acme, Name: "Acme Ltd"}, order(usd, "1 20 EA 10.00"), goods("GR-1", payables.Received, "1 10 EA"),
		as(invoice(usd, "1 10 EA 10.00"), "INV-0009", "INV-9"))
	approve := func(id, want string) {
		t.Helper()
		if got := b.approve(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	approve("INV-0009", "")
	b.bring(goods("GR-2", payables.Received, "1 10 EA"),
		note("INV-2001", "CN-1", "INV-0009", "1 1 EA 10.00"), note("INV-2002", "CN-2", "INV-0009", "1 1.5 EA 10.00"),
		note("INV-2003", "cn 001", "INV-0009", "1 1 EA 10.00"), note("INV-2004", "INV-9", "INV-0009", "1 1 EA 10.00"), // the number of the bill is free for a note
		note("INV-2005", "CN-5", "INV-0009", "1 6.5 EA 10.00"), note("INV-2006", "CN-6", "INV-0009", "1 6.500001 EA 10.00"),
		as(invoice(usd, "1 10 EA 10.00"), "INV-0010", "INV-10"))
	approve("INV-2001", "")
	approve("INV-2002", "")
	approve("INV-2003", "POLICY_VIOLATION/duplicate_invoice")
	approve("INV-2004", "")
	i := b.invoice(invoiceID("INV-0009"))
	if i.Credited != amount("35", usd) || b.order(po1).Lines[0].Billed != ratio("6.5") {
		t.Errorf("credited %s, billed %s", i.Credited, b.order(po1).Lines[0].Billed)
	}
	approve("INV-0010", "") // for another receipt of the same order
	approve("INV-2006", "POLICY_VIOLATION/blocking_findings")
	approve("INV-2005", "") // all that is left
	if got := b.vendor(acme).Balances; !slices.Equal(got, []money.Amount{amount("100", usd)}) {
		t.Errorf("owed %v", got)
	}
	b.bring(note("INV-2007", "CN-7", "INV-0009", "1 0.001 EA 10.00"))
	if got := found(b.match(invoiceID("INV-2007")).Findings); !slices.Equal(got, []string{"CREDIT_EXCEEDS_INVOICE 100.01|100", "CREDIT_EXCEEDS_INVOICE:1 10.001|10"}) {
		t.Errorf("found %q", got)
	}
	approve("INV-2007", "POLICY_VIOLATION/blocking_findings")
}

// small makes n lines of one line of the order, each of so little that its
// amount is rounded.
func small(n int, quantity, price string) []string {
	lines := make([]string, n)
	for k := range lines {
		lines[k] = "1 " + quantity + " EA " + price
	}
	return lines
}

// Thousands of small lines must not be paid for what rounding makes of them.
func TestRoundingDoesNotAddUp(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"half a cent each, rounded up", small(2_000, "0.005", "1.00"), []string{"PRICE_VARIANCE:1 20 for 10|1"}},
		{"rounded down to nothing", small(2_000, "0.0049", "1.00"), []string{"PRICE_VARIANCE:1 0 for 9.8|1"}},
		{"a price that is wrong anyway", small(100, "0.0333", "30.00"), []string{"PRICE_VARIANCE:1 30|1"}},
		{"thirty deliveries of a third", small(30, "0.333333", "1.00"), nil},
	} {
		i := invoice(usd, tt.lines...)
		o := order(usd, "1 10 EA 1.00 received=10")
		m, err := payables.Match(i, payables.Facts{Order: &o}, payables.DefaultTolerance())
		if err != nil {
			t.Fatal(err)
		}
		if got := found(m.Findings); !slices.Equal(got, tt.want) {
			t.Errorf("%s: found %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A credit note whose amounts round to nothing gives nothing back.
func TestACreditOfNothingGivesNothingBack(t *testing.T) {
	b := stocked()
	credit := note("INV-1002", "CN-1", "INV-1001", small(2_040, "0.0004", "10.00")...)
	b.bring(invoice(usd, "1 10 EA 10.00"), credit)
	for _, id := range []string{"INV-1001", "INV-1002"} {
		if got := b.approve(id); got != "" {
			t.Fatal(id, got)
		}
	}
	if got := b.order(po1).Lines[0].Billed; got != ratio("10") {
		t.Errorf("billed %s", got)
	}
}
