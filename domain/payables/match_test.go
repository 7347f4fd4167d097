package payables_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

// setup is what a case matches: an invoice with PO-1.
type setup struct {
	invoice payables.Invoice
	facts   payables.Facts
	order   payables.Order // facts.Order points at it
	t       payables.Tolerance
}

func with(o payables.Order, i payables.Invoice, change ...func(*setup)) *setup {
	s := &setup{invoice: i, order: o, t: tolerance}
	s.facts = payables.Facts{Order: &s.order, Claim: claim(i.ID.String())}
	for _, c := range change {
		c(s)
	}
	return s
}

// usd10 is 10 EA at 10.00, all received, and an invoice of the lines given.
func usd10(lines ...string) *setup {
	return with(order(usd, "1 10 EA 10.00 received=10"), invoice(usd, lines...))
}

func (s *setup) but(change ...func(*setup)) *setup {
	for _, c := range change {
		c(s)
	}
	return s
}

func tax(literal string) func(*setup) {
	return func(s *setup) {
		s.invoice.Tax = amount(literal, s.invoice.Currency)
		s.invoice = priced(s.invoice)
	}
}

func freight(literal string) func(*setup) {
	return func(s *setup) {
		s.invoice.Freight = amount(literal, s.invoice.Currency)
		s.invoice = priced(s.invoice)
	}
}

func total(literal string) func(*setup) {
	return func(s *setup) { s.invoice.Total = amount(literal, s.invoice.Currency) }
}

func lineAmount(literal string) func(*setup) {
	return func(s *setup) { s.invoice.Lines[0].Amount = amount(literal, s.invoice.Currency) }
}

func percent(literal string) func(*setup) {
	return func(s *setup) { s.t.Percent = must(payables.ParsePercent(literal)) }
}

func perUnit(minor int64) func(*setup) { return func(s *setup) { s.t.Minor = minor } }

func taxLimit(literal string) func(*setup) {
	return func(s *setup) { s.order.TaxLimit = must(payables.ParsePercent(literal)) }
}

func freightLimit(limit, billed string) func(*setup) {
	return func(s *setup) {
		s.order.FreightLimit, s.order.FreightBilled = amount(limit, s.order.Currency), amount(billed, s.order.Currency)
	}
}

func status(x payables.Status) func(*setup) { return func(s *setup) { s.invoice.Status = x } }

func claims(ids ...string) func(*setup) { return func(s *setup) { s.facts.Claim = claim(ids...) } }

func rival(id string, change func(*payables.Rival), lines ...string) func(*setup) {
	return func(s *setup) {
		r := payables.Rival{Invoice: as(invoice(s.invoice.Currency, lines...), id, id), Claim: claim(id)}
		if change != nil {
			change(&r)
		}
		s.facts.Rivals = append(s.facts.Rivals, r)
	}
}

func noOrder(s *setup) { s.facts.Order = nil }

// credits makes the invoice a credit note on INV-0900, which billed the lines.
func credits(change func(*payables.Invoice), lines ...string) func(*setup) {
	return func(s *setup) {
		c := as(invoice(usd, lines...), "INV-0900", "A-0900")
		c.Status = payables.Approved
		if change != nil {
			change(&c)
		}
		s.invoice.Document, s.invoice.Credits, s.facts.Credited = payables.CreditNote, c.ID, &c
	}
}

func credited(money_, quantity string) func(*payables.Invoice) {
	return func(i *payables.Invoice) {
		i.Credited, i.Lines[0].Credited = amount(money_, i.Currency), ratio(quantity)
	}
}

func TestMatch(t *testing.T) {
	jpy, kwd := currency("JPY"), currency("KWD")
	box := order(usd, "1 2 BOX 24.00 received=2 EA=1/12")
	for _, tt := range []struct {
		name string
		*setup
		want []string
	}{
		{"all agrees", usd10("1 10 EA 10.00"), nil},
		{"a part of it", usd10("1 0.000001 EA 10.00"), nil},

		// Duplicates.
		{"entered second", usd10("1 10 EA 10.00").but(claims("INV-0900", "INV-1001")), []string{"DUPLICATE_INVOICE"}},
		{"entered first", usd10("1 10 EA 10.00").but(claims("INV-1001", "INV-1002")), nil},
		{"a rejected original frees the number", usd10("1 10 EA 10.00").but(claims("INV-0900 rejected", "INV-1001")), nil},
		{"the third of three", usd10("1 10 EA 10.00").but(claims("INV-0900", "INV-0901", "INV-1001")), []string{"DUPLICATE_INVOICE"}},
		{"the third, the first rejected", usd10("1 10 EA 10.00").but(claims("INV-0900 rejected", "INV-0901", "INV-1001")), []string{"DUPLICATE_INVOICE"}},
		{"the third, the second rejected", usd10("1 10 EA 10.00").but(claims("INV-0900", "INV-0901 rejected", "INV-1001")), []string{"DUPLICATE_INVOICE"}},
		{"the third, both rejected", usd10("1 10 EA 10.00").but(claims("INV-0900 rejected", "INV-0901 rejected", "INV-1001")), nil},
		{"the original, itself rejected", usd10("1 10 EA 10.00").but(claims("INV-1001 rejected", "INV-1002"), status(payables.Rejected)), []string{"ALREADY_DECIDED rejected|"}},

		// The order.
		{"no lines", usd10(), []string{"NO_LINES"}},
		{"no lines, all of it freight that was agreed", usd10().but(freightLimit("5", "0"), freight("5")), []string{"NO_LINES"}},
		{"no order named", usd10("1 10 EA 10.00").but(noOrder, func(s *setup) { s.invoice.Order = payables.OrderID{} }), []string{"MISSING_PO"}},
		{"an order that is not known", usd10("1 10 EA 10.00").but(noOrder), []string{"MISSING_PO PO-1|"}},
		{"an order that is not known, the total wrong, freight not agreed", usd10("1 10 EA 10.00").but(noOrder, freight("1"), total("9")), []string{"MISSING_PO PO-1|", "TOTAL_MISMATCH 9|101"}},
		{"another vendor's order", usd10("1 10 EA 10.00").but(func(s *setup) { s.order.Vendor = bolt }), []string{"VENDOR_MISMATCH ACME|BOLT"}},
		{"a line that the order has not", usd10("2 1 EA 10.00"), []string{"UNKNOWN_PO_LINE:2"}},
		{"a line of no line of the order, twice, is one finding", usd10("0 1 EA 10.00", "1 10 EA 10.00", "0 1 EA 3.00"), []string{"UNKNOWN_PO_LINE"}},
		{"lines are found by their number, not their place",
			with(order(usd, "3 1 EA 10.00 received=1", "7 2 EA 20.00 received=2", "1000 3 EA 30.00 received=3"), invoice(usd, "1000 3 EA 30.00", "3 1 EA 10.00", "7 2 EA 20.00")), nil},

		// Currencies.
		{"the same figures in another currency, whatever the tolerance",
			with(order(usd, "1 10 EA 10.00 received=10"), invoice(currency("EUR"), "1 10 EA 10.00"), percent("1000"), perUnit(1_000_000)), []string{"CURRENCY_MISMATCH EUR|USD"}},
		{"no price finding in another currency", with(order(usd, "1 10 EA 10.00 received=10"), invoice(jpy, "1 10 EA 9999")), []string{"CURRENCY_MISMATCH JPY|USD"}},
		{"no freight in another currency is compared", with(order(usd, "1 10 EA 10.00 received=10"), invoice(jpy, "1 10 EA 10"), freight("7")), []string{"CURRENCY_MISMATCH JPY|USD"}},
		{"quantities are compared in another currency", with(order(usd, "1 10 EA 10.00 received=9"), invoice(jpy, "1 10 EA 10")), []string{"CURRENCY_MISMATCH JPY|USD", "BILLED_OVER_RECEIVED:1 10|9"}},

		// Prices: percent and cap, each alone and both on the edge.
		{"exactly the percent above", usd10("1 10 EA 10.20"), []string{"PRICE_WITHIN_TOLERANCE:1 10.2|10"}},
		{"a cent more", usd10("1 10 EA 10.21"), []string{"PRICE_VARIANCE:1 10.21|10"}},
		{"exactly the percent below", usd10("1 10 EA 9.80"), []string{"PRICE_WITHIN_TOLERANCE:1 9.8|10"}},
		{"a cent less", usd10("1 10 EA 9.79"), []string{"PRICE_VARIANCE:1 9.79|10"}},
		{"exactly the cap, within the percent", with(order(usd, "1 1 EA 1000.00 received=1"), invoice(usd, "1 1 EA 1005.00")), []string{"PRICE_WITHIN_TOLERANCE:1 1005|1000"}},
		{"a cent over the cap, within the percent", with(order(usd, "1 1 EA 1000.00 received=1"), invoice(usd, "1 1 EA 1005.01")), []string{"PRICE_VARIANCE:1 1005.01|1000"}},
		{"exactly the percent and the cap at once", with(order(usd, "1 1 EA 250.00 received=1"), invoice(usd, "1 1 EA 255.00")), []string{"PRICE_WITHIN_TOLERANCE:1 255|250"}},
		{"a cent over both", with(order(usd, "1 1 EA 250.00 received=1"), invoice(usd, "1 1 EA 255.01")), []string{"PRICE_VARIANCE:1 255.01|250"}},
		{"within the cap, over the percent", with(order(usd, "1 1 EA 249.99 received=1"), invoice(usd, "1 1 EA 254.99")), []string{"PRICE_VARIANCE:1 254.99|249.99"}},
		{"no tolerance at all", usd10("1 10 EA 10.01").but(percent("0"), perUnit(0)), []string{"PRICE_VARIANCE:1 10.01|10"}},
		{"no percent, a cap", usd10("1 10 EA 10.01").but(percent("0")), []string{"PRICE_VARIANCE:1 10.01|10"}},
		{"a percent, no cap", usd10("1 10 EA 10.01").but(perUnit(0)), []string{"PRICE_VARIANCE:1 10.01|10"}},
		{"a percent of six decimals, on the edge", with(order(usd, "1 1 EA 1000000.00 received=1"), invoice(usd, "1 1 EA 1000000.01"), percent("0.000001")), []string{"PRICE_WITHIN_TOLERANCE:1 1000000.01|1000000"}},
		{"and a cent of price less", with(order(usd, "1 1 EA 999999.99 received=1"), invoice(usd, "1 1 EA 1000000.00"), percent("0.000001")), []string{"PRICE_VARIANCE:1 1000000|999999.99"}},
		{"free, as ordered", with(order(usd, "1 10 EA 0 received=10"), invoice(usd, "1 10 EA 0")), nil},
		{"a cent for what was ordered free", with(order(usd, "1 10 EA 0 received=10"), invoice(usd, "1 10 EA 0.01"), percent("1000")), []string{"PRICE_VARIANCE:1 0.01|0"}},
		{"free, though ordered at a price", usd10("1 10 EA 0"), []string{"PRICE_VARIANCE:1 0|10"}},
		{"free, and a tolerance of everything", usd10("1 10 EA 0").but(percent("100"), perUnit(1000)), []string{"PRICE_WITHIN_TOLERANCE:1 0|10"}},
		{"the worst of lines that share one is named", usd10("1 2 EA 10.10", "1 2 EA 10.50", "1 2 EA 9.00", "1 2 EA 10.00"), []string{"PRICE_VARIANCE:1 9|10"}},
		{"a variance is worse than any tolerated difference", with(order(usd, "1 2 BOX 1000.00 received=2 EA=1/10"), invoice(usd, "1 1 BOX 1005.00", "1 10 EA 100.51")), []string{"PRICE_VARIANCE:1 100.51/EA|1000"}},
		{"the highest prices that documents may have",
			with(order(usd, "1 2 BOX 1000000000000 received=2 EA=1/1000000"), invoice(usd, "1 1 EA 1000000000000")), []string{"PRICE_VARIANCE:1 1000000000000/EA|1000000000000"}},

		// Tolerance in currencies of other digits.
		{"two percent of 5000 yen", with(order(jpy, "1 1 EA 5000 received=1"), invoice(jpy, "1 1 EA 5100")), []string{"PRICE_WITHIN_TOLERANCE:1 5100|5000"}},
		{"a yen more", with(order(jpy, "1 1 EA 5000 received=1"), invoice(jpy, "1 1 EA 5101")), []string{"PRICE_VARIANCE:1 5101|5000"}},
		{"the cap is 500 yen", with(order(jpy, "1 1 EA 100000 received=1"), invoice(jpy, "1 1 EA 100501")), []string{"PRICE_VARIANCE:1 100501|100000"}},
		{"two percent of 1.250 dinars", with(order(kwd, "1 1 EA 1.250 received=1"), invoice(kwd, "1 1 EA 1.275")), []string{"PRICE_WITHIN_TOLERANCE:1 1.275|1.25"}},
		{"a fils more", with(order(kwd, "1 1 EA 1.250 received=1"), invoice(kwd, "1 1 EA 1.276")), []string{"PRICE_VARIANCE:1 1.276|1.25"}},
		{"the cap is half a dinar", with(order(kwd, "1 1 EA 100.000 received=1"), invoice(kwd, "1 1 EA 100.500")), []string{"PRICE_WITHIN_TOLERANCE:1 100.5|100"}},

		// Units.
		{"24 EA are 2 BOX of 12", with(box, invoice(usd, "1 24 EA 2.00")), nil},
		{"25 EA are more", with(box, invoice(usd, "1 25 EA 2.00")), []string{"BILLED_OVER_RECEIVED:1 25/12|2", "BILLED_OVER_ORDERED:1 25/12|2"}},
		{"7 EA are 7/12 BOX, 17 are left", with(order(usd, "1 2 BOX 24.00 received=2 billed=7/12 EA=1/12"), invoice(usd, "1 17 EA 2.00")), nil},
		{"and not 18", with(order(usd, "1 2 BOX 24.00 received=2 billed=7/12 EA=1/12"), invoice(usd, "1 18 EA 2.00")), []string{"BILLED_OVER_RECEIVED:1 25/12|2", "BILLED_OVER_ORDERED:1 25/12|2"}},
		{"a third and two thirds are one", with(order(usd, "1 1 SET 3.00 received=1 billed=1/3 EA=1/3"), invoice(usd, "1 2 EA 1.00")), nil},
		{"both units on one invoice", with(box, invoice(usd, "1 1 BOX 24.00", "1 12 EA 2.00")), nil},
		{"both units, an EA too many", with(box, invoice(usd, "1 1 BOX 24.00", "1 13 EA 2.00")), []string{"BILLED_OVER_RECEIVED:1 25/12|2", "BILLED_OVER_ORDERED:1 25/12|2"}},
		{"ordered in EA, billed in BOX", with(order(usd, "1 24 EA 2.00 received=24 BOX=12/1"), invoice(usd, "1 2 BOX 24.00")), nil},
		{"1656 kg are 1.656 t", with(order(usd, "1 1.656 t 1000.00 received=1.656 kg=1/1000"), invoice(usd, "1 1656 kg 1.00")), nil},
		{"a milligram more", with(order(usd, "1 1.656 t 1000.00 received=1.656 kg=1/1000"), invoice(usd, "1 1656.000001 kg 1.00")), []string{"BILLED_OVER_RECEIVED:1 1656000001/1000000000|1.656", "BILLED_OVER_ORDERED:1 1656000001/1000000000|1.656"}},
		{"a price in the other unit, exactly on the percent", with(order(usd, "1 2 BOX 120.00 received=2 EA=1/12"), invoice(usd, "1 24 EA 10.20")), []string{"PRICE_WITHIN_TOLERANCE:1 10.2/EA|120"}},
		{"a cent more in the other unit", with(order(usd, "1 2 BOX 120.00 received=2 EA=1/12"), invoice(usd, "1 24 EA 10.21")), []string{"PRICE_VARIANCE:1 10.21/EA|120"}},
		{"the cap is for a unit of the order, not of the invoice: 12 x 0.41 = 4.92", with(order(usd, "1 2 BOX 1200.00 received=2 EA=1/12"), invoice(usd, "1 24 EA 100.41")), []string{"PRICE_WITHIN_TOLERANCE:1 100.41/EA|1200"}},
		{"12 x 0.42 = 5.04", with(order(usd, "1 2 BOX 1200.00 received=2 EA=1/12"), invoice(usd, "1 24 EA 100.42")), []string{"PRICE_VARIANCE:1 100.42/EA|1200"}},
		{"a price that no cent divides: 1.00 for 3 is not 0.33 each", with(order(usd, "1 1 SET 1.00 received=1 EA=1/3"), invoice(usd, "1 3 EA 0.33"), percent("0.999999")), []string{"PRICE_VARIANCE:1 0.33/EA|1"}},
		{"but within a percent", with(order(usd, "1 1 SET 1.00 received=1 EA=1/3"), invoice(usd, "1 3 EA 0.33"), percent("1")), []string{"PRICE_WITHIN_TOLERANCE:1 0.33/EA|1"}},
		{"no conversion is known", with(order(usd, "1 2 BOX 24.00 received=2"), invoice(usd, "1 24 EA 2.00")), []string{"UNIT_MISMATCH:1 EA|BOX"}},
		{"units differ in case", usd10("1 10 ea 10.00"), []string{"UNIT_MISMATCH:1 ea|EA"}},
		{"of two strange units the first in order is named, once", usd10("1 1 kg 10.00", "1 1 g 10.00", "1 1 m 10.00"), []string{"UNIT_MISMATCH:1 g|EA"}},
		{"what is in a known unit still counts", usd10("1 11 EA 10.00", "1 1 kg 10.00"), []string{"UNIT_MISMATCH:1 kg|EA", "BILLED_OVER_RECEIVED:1 11|10", "BILLED_OVER_ORDERED:1 11|10"}},

		// Quantities.
		{"nothing received", with(order(usd, "1 10 EA 10.00"), invoice(usd, "1 10 EA 10.00")), []string{"NO_GOODS_RECEIPT:1 10|"}},
		{"all that was received went back", with(order(usd, "1 10 EA 10.00 received=0 billed=0"), invoice(usd, "1 1 EA 10.00")), []string{"NO_GOODS_RECEIPT:1 1|"}},
		{"nothing received of the second line", with(order(usd, "1 10 EA 10.00 received=10", "2 1 EA 1.00"), invoice(usd, "1 10 EA 10.00", "2 1 EA 1.00")), []string{"NO_GOODS_RECEIPT:2 1|"}},
		{"more received than ordered, all billed", with(order(usd, "1 10 EA 10.00 received=12"), invoice(usd, "1 12 EA 10.00")), []string{"BILLED_OVER_ORDERED:1 12|10"}},
		{"less received than ordered, exactly that billed", with(order(usd, "1 10 EA 10.00 received=8"), invoice(usd, "1 8 EA 10.00")), nil},
		{"a millionth more", with(order(usd, "1 10 EA 10.00 received=8"), invoice(usd, "1 8.000001 EA 10.00")), []string{"BILLED_OVER_RECEIVED:1 8.000001|8"}},
		{"what others billed counts", with(order(usd, "1 10 EA 10.00 received=10 billed=4"), invoice(usd, "1 6 EA 10.00")), nil},
		{"and one more is over", with(order(usd, "1 10 EA 10.00 received=10 billed=4"), invoice(usd, "1 7 EA 10.00")), []string{"BILLED_OVER_RECEIVED:1 11|10", "BILLED_OVER_ORDERED:1 11|10"}},
		{"lines that share one add up", usd10("1 6 EA 10.00", "1 4 EA 10.00"), nil},
		{"over, together", usd10("1 6 EA 10.00", "1 4.5 EA 10.00"), []string{"BILLED_OVER_RECEIVED:1 10.5|10", "BILLED_OVER_ORDERED:1 10.5|10"}},
		{"the most that a line may be of", with(order(usd, "1 1000000000 EA 0.01 received=1000000000"), invoice(usd, "1 1000000000 EA 0.01")), nil},

		// Decided before.
		{"approved, all billed by itself", with(order(usd, "1 10 EA 10.00 received=10 billed=10"), invoice(usd, "1 10 EA 10.00"), status(payables.Approved)), []string{"ALREADY_DECIDED approved|"}},
		{"approved with its freight", with(order(usd, "1 10 EA 10.00 received=10 billed=10"), invoice(usd, "1 10 EA 10.00"), freightLimit("5", "5"), freight("5"), status(payables.Approved)), []string{"ALREADY_DECIDED approved|"}},
		{"approved, and goods sent back since", with(order(usd, "1 10 EA 10.00 received=7 billed=10"), invoice(usd, "1 10 EA 10.00"), status(payables.Approved)), []string{"BILLED_OVER_RECEIVED:1 10|7", "ALREADY_DECIDED approved|"}},
		{"approved, its price still within", with(order(usd, "1 10 EA 10.00 received=10 billed=10"), invoice(usd, "1 10 EA 10.10"), status(payables.Approved)), []string{"PRICE_WITHIN_TOLERANCE:1 10.1|10", "ALREADY_DECIDED approved|"}},
		{"approved, open ones are no rivals", with(order(usd, "1 10 EA 10.00 received=10 billed=10"), invoice(usd, "1 10 EA 10.00"), status(payables.Approved), rival("INV-1002", nil, "1 1 EA 10.00")), []string{"ALREADY_DECIDED approved|"}},
		{"rejected, nothing of it billed", usd10("1 10 EA 10.00").but(status(payables.Rejected)), []string{"ALREADY_DECIDED rejected|"}},
		{"on hold is not decided", usd10("1 10 EA 10.00").but(status(payables.OnHold)), nil},

		// Rivals.
		{"another claims the rest", usd10("1 6 EA 10.00").but(rival("INV-1002", nil, "1 4 EA 10.00")), nil},
		{"another claims more than the rest", usd10("1 6 EA 10.00").but(rival("INV-1002", nil, "1 4.000001 EA 10.00")), []string{"COMPETING_CLAIM:1 10.000001|10"}},
		{"two together claim more than the rest", usd10("1 6 EA 10.00").but(rival("INV-1003", nil, "1 3 EA 10.00"), rival("INV-1002", nil, "1 2 EA 10.00")), []string{"COMPETING_CLAIM:1 11|10"}},
		{"of another order", usd10("1 6 EA 10.00").but(rival("INV-1002", func(r *payables.Rival) { r.Invoice.Order = po2 }, "1 6 EA 10.00")), nil},
		{"approved", usd10("1 6 EA 10.00").but(rival("INV-1002", func(r *payables.Rival) { r.Invoice.Status = payables.Approved }, "1 6 EA 10.00")), nil},
		{"rejected", usd10("1 6 EA 10.00").but(rival("INV-1002", func(r *payables.Rival) { r.Invoice.Status = payables.Rejected }, "1 6 EA 10.00")), nil},
		{"on hold", usd10("1 6 EA 10.00").but(rival("INV-1002", func(r *payables.Rival) { r.Invoice.Status = payables.OnHold }, "1 6 EA 10.00")), []string{"COMPETING_CLAIM:1 12|10"}},
		{"a duplicate claims nothing", usd10("1 6 EA 10.00").but(rival("INV-1002", func(r *payables.Rival) { r.Claim = claim("INV-1001", "INV-1002") }, "1 6 EA 10.00")), nil},
		{"itself", usd10("1 6 EA 10.00").but(rival("INV-1001", nil, "1 6 EA 10.00")), nil},
		{"in another unit", with(box, invoice(usd, "1 1 BOX 24.00"), rival("INV-1002", nil, "1 13 EA 2.00")), []string{"COMPETING_CLAIM:1 25/12|2"}},
		{"over by itself, the rival is not named", usd10("1 11 EA 10.00").but(rival("INV-1002", nil, "1 6 EA 10.00")), []string{"BILLED_OVER_RECEIVED:1 11|10", "BILLED_OVER_ORDERED:1 11|10"}},
		{"what is billed in a strange unit claims nothing", usd10("1 6 kg 10.00").but(rival("INV-1002", nil, "1 11 EA 10.00")), []string{"UNIT_MISMATCH:1 kg|EA"}},
		{"a duplicate has no rivals", usd10("1 6 EA 10.00").but(claims("INV-0900", "INV-1001"), rival("INV-1002", nil, "1 6 EA 10.00")), []string{"DUPLICATE_INVOICE"}},

		// Charges.
		{"no freight was agreed", usd10("1 10 EA 10.00").but(freight("0.01")), []string{"CHARGE_NOT_ORDERED freight of 0.01|freight of 0"}},
		{"exactly the freight agreed", usd10("1 10 EA 10.00").but(freightLimit("25", "0"), freight("25")), nil},
		{"a cent more freight", usd10("1 10 EA 10.00").but(freightLimit("25", "0"), freight("25.01")), []string{"CHARGE_NOT_ORDERED freight of 25.01|freight of 25"}},
		{"freight is counted over invoices, up to the limit", usd10("1 10 EA 10.00").but(freightLimit("25", "20"), freight("5")), nil},
		{"and over it", usd10("1 10 EA 10.00").but(freightLimit("25", "20"), freight("5.01")), []string{"CHARGE_NOT_ORDERED freight of 25.01|freight of 25"}},
		{"no freight on this one, others over the limit", usd10("1 10 EA 10.00").but(freightLimit("25", "30")), nil},
		{"no tax was agreed", usd10("1 10 EA 10.00").but(tax("0.01")), []string{"CHARGE_NOT_ORDERED tax of 0.01|tax of 0% of 100"}},
		{"exactly the tax agreed", usd10("1 10 EA 10.00").but(taxLimit("8.25"), tax("8.25")), nil},
		{"a cent more tax", usd10("1 10 EA 10.00").but(taxLimit("8.25"), tax("8.26")), []string{"CHARGE_NOT_ORDERED tax of 8.26|tax of 8.25% of 100"}},
		{"tax that a cent does not divide", usd10("1 0.3 EA 10.00").but(taxLimit("8.25"), tax("0.24")), nil},
		{"rounded half up as amounts are: 8.25 percent of 3.00 are 0.2475", usd10("1 0.3 EA 10.00").but(taxLimit("8.25"), tax("0.25")), nil},
		{"a cent more than rounded", usd10("1 0.3 EA 10.00").but(taxLimit("8.25"), tax("0.26")), []string{"CHARGE_NOT_ORDERED tax of 0.26|tax of 8.25% of 3"}},
		{"tax is of the lines, not of freight", usd10("1 10 EA 10.00").but(taxLimit("10"), freightLimit("50", "0"), freight("50"), tax("10.01")), []string{"CHARGE_NOT_ORDERED tax of 10.01|tax of 10% of 100"}},
		{"both are one finding, freight named", usd10("1 10 EA 10.00").but(freight("1"), tax("1")), []string{"CHARGE_NOT_ORDERED freight of 1|freight of 0"}},

		// Totals.
		{"a cent too much", usd10("1 10 EA 10.00").but(total("100.01")), []string{"TOTAL_MISMATCH 100.01|100"}},
		{"a cent too little", usd10("1 10 EA 10.00").but(total("99.99")), []string{"TOTAL_MISMATCH 99.99|100"}},
		{"freight that was not declared", usd10("1 10 EA 10.00").but(taxLimit("8"), tax("8"), total("118")), []string{"TOTAL_MISMATCH 118|108"}},
		{"declared and agreed, it explains the total", usd10("1 10 EA 10.00").but(taxLimit("8"), tax("8"), freightLimit("10", "0"), freight("10")), nil},
		{"half a cent is rounded up: 0.125 x 10.20 = 1.275", usd10("1 0.125 EA 10.20"), []string{"PRICE_WITHIN_TOLERANCE:1 10.2|10"}},
		{"not down", usd10("1 0.125 EA 10.20").but(lineAmount("1.27"), total("1.27")), []string{"TOTAL_MISMATCH 1.27|1.28", "PRICE_WITHIN_TOLERANCE:1 10.2|10"}},
		{"less than half a cent is rounded down: 0.1249 x 10.20 = 1.27398", usd10("1 0.1249 EA 10.20").but(lineAmount("1.28"), total("1.28")), []string{"TOTAL_MISMATCH 1.28|1.27", "PRICE_WITHIN_TOLERANCE:1 10.2|10"}},
		{"each line is rounded: 3 x round(1/3 of 10.00) = 9.99", usd10("1 0.333333 EA 10.00", "1 0.333333 EA 10.00", "1 0.333333 EA 10.00").but(total("10.00")), []string{"TOTAL_MISMATCH 10|9.99"}},
		{"half a yen is rounded up", with(order(jpy, "1 10 EA 5 received=10"), invoice(jpy, "1 0.5 EA 5"), total("3")), nil},
		{"a line's amount that another makes up for", usd10("1 2 EA 10.00", "1 3 EA 10.00").but(lineAmount("21"), func(s *setup) { s.invoice.Lines[1].Amount = amount("29", usd) }), []string{"TOTAL_MISMATCH 50|50"}},
		{"the dearest line there may be", with(order(usd, "1 1000000000 EA 1000.00 received=1000000000"), invoice(usd, "1 1000000000 EA 1000.00")), nil},
		{"a line dearer than documents may have is not summed", with(order(usd, "1 1000000000 EA 1000000000000 received=1000000000"), invoice(usd, "1 1 EA 1000000000000"), func(s *setup) { s.invoice.Lines[0].Quantity = quantity("1000000000") }), []string{"TOTAL_MISMATCH 1000000000000|0"}},

		// Credit notes.
		{"all of the invoice", usd10("1 10 EA 10.00").but(credits(nil, "1 10 EA 10.00")), nil},
		{"a cent more", usd10("1 10 EA 10.00").but(credits(nil, "1 10 EA 10.00"), taxLimit("1"), tax("0.01")), []string{"CREDIT_EXCEEDS_INVOICE 100.01|100"}},
		{"a millionth more goods", usd10("1 10.000001 EA 10.00").but(credits(nil, "1 10 EA 10.00")), []string{"CREDIT_EXCEEDS_INVOICE:1 10.000001|10"}},
		{"the rest", usd10("1 6 EA 10.00").but(credits(credited("40", "4"), "1 10 EA 10.00")), nil},
		{"money: a cent more than the rest", usd10("1 6 EA 10.00").but(credits(credited("40.01", "4"), "1 10 EA 10.00")), []string{"CREDIT_EXCEEDS_INVOICE 100.01|100"}},
		{"goods at a lower price: a correction of the price", usd10("1 12 EA 8.00").but(credits(nil, "1 10 EA 10.00")), nil},
		{"goods: more than the rest", usd10("1 6 EA 10.00").but(credits(credited("35", "4.5"), "1 10 EA 10.00")), []string{"CREDIT_EXCEEDS_INVOICE:1 10.5|10"}},
		{"goods in another unit", with(box, invoice(usd, "1 24 EA 2.00"), credits(nil, "1 2 BOX 24.00")), nil},
		{"goods of a line that was not billed", usd10("2 1 EA 10.00").but(credits(nil, "1 10 EA 10.00"), func(s *setup) { s.order.Lines = append(s.order.Lines, orderLine(usd, "2 1 EA 10.00")) }), []string{"CREDIT_EXCEEDS_INVOICE:2 1|0"}},
		{"money only", usd10().but(credits(nil, "1 10 EA 10.00"), total("0")), nil},
		{"of an invoice that is not approved", usd10("1 1 EA 10.00").but(credits(func(i *payables.Invoice) { i.Status = payables.OnHold }, "1 10 EA 10.00")), []string{"CREDIT_EXCEEDS_INVOICE 10|0", "CREDIT_EXCEEDS_INVOICE:1 1|0"}},
		{"prices, units, charges and receipts do not count", with(order(usd, "1 10 EA 10.00"), invoice(usd, "1 1 kg 99.00", "7 1 EA 0.50"), credits(nil, "1 10 EA 10.00"), freight("0.50")), nil},
		{"by another vendor", usd10("1 1 EA 10.00").but(credits(func(i *payables.Invoice) { i.Vendor = bolt }, "1 10 EA 10.00")), []string{"VENDOR_MISMATCH ACME|BOLT"}},
		{"by another vendor, of more than the invoice", usd10("1 11 EA 10.00").but(credits(func(i *payables.Invoice) { i.Vendor = bolt }, "1 10 EA 10.00")), []string{"VENDOR_MISMATCH ACME|BOLT"}},
		{"goods of an invoice that was approved before its order was there", usd10("1 10 EA 10.00").but(credits(func(i *payables.Invoice) {
			credited("0", "10")(i)
			i.Decision = &payables.Decision{Findings: []payables.Finding{{Code: payables.MissingPO}}}
		}, "1 10 EA 10.00")), nil},
		{"in another currency than the invoice, though it is the order's",
			with(order(usd, "1 10 EA 10.00 received=10"), invoice(usd, "1 10 EA 100.00"), credits(func(i *payables.Invoice) {
				*i = as(invoice(currency("EUR"), "1 10 EA 10.00"), "INV-0900", "A-0900")
				i.Status = payables.Approved
			}, "1 10 EA 10.00")), []string{"CURRENCY_MISMATCH USD|EUR"}},
		{"in the currency of an invoice that differs from its order",
			with(order(usd, "1 10 EA 10.00 received=10"), invoice(currency("EUR"), "1 10 EA 10.00"), credits(func(i *payables.Invoice) {
				*i = as(invoice(currency("EUR"), "1 10 EA 10.00"), "INV-0900", "A-0900")
				i.Status = payables.Approved
			}, "1 10 EA 10.00")), nil},
		{"of an invoice whose order is not known", usd10("1 10 EA 10.00").but(credits(nil, "1 10 EA 10.00"), noOrder), nil},
		{"approved, matched again", usd10("1 10 EA 10.00").but(credits(credited("100", "10"), "1 10 EA 10.00"), status(payables.Approved)), []string{"ALREADY_DECIDED approved|"}},
		{"its total is checked", usd10("1 1 EA 10.00").but(credits(nil, "1 10 EA 10.00"), total("9")), []string{"TOTAL_MISMATCH 9|10"}},
		{"a duplicate credit note", usd10("1 1 EA 10.00").but(credits(nil, "1 10 EA 10.00"), claims("INV-0901", "INV-1001")), []string{"DUPLICATE_INVOICE"}},
		{"that names no invoice", usd10("1 99 EA 10.00").but(func(s *setup) { s.invoice.Document = payables.CreditNote }), nil},
		{"that names no invoice, on another vendor's order", usd10("1 99 EA 10.00").but(func(s *setup) { s.invoice.Document, s.order.Vendor = payables.CreditNote, bolt }), []string{"VENDOR_MISMATCH ACME|BOLT"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := payables.Match(tt.invoice, tt.facts, tt.t)
			if err != nil {
				t.Fatal(err)
			}
			if got := found(m.Findings); !slices.Equal(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
			want, blocking := payables.Approve, false
			for _, f := range m.Findings {
				if f.Code.Blocking() && want == payables.Approve {
					want, blocking = payables.Hold, true
				}
				if f.Code == payables.DuplicateInvoice {
					want = payables.Reject
				}
				if s := f.Message(); s == "" || strings.ContainsAny(s, "{}") {
					t.Errorf("%s says %q", f.Code, s)
				}
			}
			if m.Recommendation != want || m.Blocking != blocking {
				t.Errorf("recommends %s, blocking %t; want %s, %t", m.Recommendation, m.Blocking, want, blocking)
			}
		})
	}
}

func TestAFindingNamesOtherInvoices(t *testing.T) {
	named := func(m payables.Matched, err error) (ids []string) {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Findings {
			for _, id := range f.Invoices {
				ids = append(ids, id.String())
			}
		}
		return ids
	}
	s := usd10("1 6 EA 10.00").but(claims("INV-0900 rejected", "INV-0901", "INV-0902", "INV-1001"))
	if got := named(payables.Match(s.invoice, s.facts, s.t)); !slices.Equal(got, []string{"INV-0901"}) {
		t.Errorf("the duplicate of %q", got)
	}
	s = usd10("1 6 EA 10.00")
	for _, id := range []string{"INV-2012", "INV-2001", "INV-2002", "INV-2003", "INV-2004", "INV-2005", "INV-2006", "INV-2007", "INV-2008", "INV-2009", "INV-2010", "INV-2011"} {
		rival(id, nil, "1 1 EA 10.00")(s)
	}
	m, err := payables.Match(s.invoice, s.facts, s.t)
	if got := named(m, err); len(got) != payables.MaxNamed || got[0] != "INV-2001" || got[9] != "INV-2010" {
		t.Errorf("rivals %q", got)
	}
	if got := found(m.Findings); !slices.Equal(got, []string{"COMPETING_CLAIM:1 18|10"}) {
		t.Errorf("found %q: all rivals count", got)
	}
	s = usd10("1 99 EA 10.00").but(credits(nil, "1 10 EA 10.00"))
	if got := named(payables.Match(s.invoice, s.facts, s.t)); !slices.Equal(got, []string{"INV-0900", "INV-0900"}) {
		t.Errorf("credits %q", got)
	}
}

func TestMessages(t *testing.T) {
	for want, s := range map[string]*setup{
		"The number is that of INV-0900, which was entered first. A duplicate can never be approved.":                                  usd10("1 1 EA 10.00").but(claims("INV-0900", "INV-1001")),
		"The invoice names no purchase order.":                                                                                         usd10("1 1 EA 10.00").but(noOrder, func(s *setup) { s.invoice.Order = payables.OrderID{} }),
		"There is no purchase order PO-1.":                                                                                             usd10("1 1 EA 10.00").but(noOrder),
		"Order line 1: The unit price is 2.5, ordered at 10: more than the tolerance.":                                                 usd10("1 1 EA 2.50"),
		"The amount of a line is not its quantity times its unit price, rounded half up.":                                              usd10("1 1 EA 10.00", "1 1 EA 10.00").but(lineAmount("11"), func(s *setup) { s.invoice.Lines[1].Amount = amount("9", usd) }),
		"The credit note is from vendor ACME, the invoice INV-0900 from BOLT.":                                                         usd10("1 1 EA 10.00").but(credits(func(i *payables.Invoice) { i.Vendor = bolt }, "1 10 EA 10.00")),
		"Order line 1: Other open invoices claim the same 10 received: INV-1002. With this one they bill 12; not all can be approved.": usd10("1 6 EA 10.00").but(rival("INV-1002", nil, "1 6 EA 10.00")),
	} {
		m := must(payables.Match(s.invoice, s.facts, s.t))
		if len(m.Findings) != 1 || m.Findings[0].Message() != want {
			t.Errorf("%q: want %q", found(m.Findings), want)
			for _, f := range m.Findings {
				t.Error(f.Message())
			}
		}
	}
}

// Findings stand in the order of the codes, then of the lines.
func TestFindingsAreOrdered(t *testing.T) {
	s := with(order(usd, "1 1 EA 10.00 received=1", "2 1 EA 10.00", "3 1 EA 10.00 received=1"),
		invoice(usd, "3 2 EA 99.00", "9 1 EA 1.00", "2 1 EA 10.10", "1 2 EA 10.10", "8 1 EA 1.00"),
		claims("INV-0900", "INV-1001"), freight("1"), total("1"), status(payables.Rejected), func(s *setup) { s.order.Vendor = bolt })
	want := []string{"DUPLICATE_INVOICE:0", "VENDOR_MISMATCH:0", "UNKNOWN_PO_LINE:8", "UNKNOWN_PO_LINE:9", "NO_GOODS_RECEIPT:2", "BILLED_OVER_RECEIVED:1", "BILLED_OVER_RECEIVED:3",
		"BILLED_OVER_ORDERED:1", "BILLED_OVER_ORDERED:3", "CHARGE_NOT_ORDERED:0", "PRICE_VARIANCE:3", "TOTAL_MISMATCH:0", "PRICE_WITHIN_TOLERANCE:1", "PRICE_WITHIN_TOLERANCE:2", "ALREADY_DECIDED:0"}
	if m := must(payables.Match(s.invoice, s.facts, s.t)); !slices.Equal(codesOf(m.Findings), want) {
		t.Errorf("found %q, want %q", codesOf(m.Findings), want)
	}
	if m := must(payables.Match(s.invoice, s.facts, s.t)); !m.Has(payables.PriceVariance) || m.Has(payables.NoLines) {
		t.Error("Has is wrong")
	}
}

// A record that a program makes by hand may leave out what is zero.
func TestAmountsThatAreNotSetAreZero(t *testing.T) {
	s := usd10("1 10 EA 10.00")
	s.invoice.Tax, s.invoice.Freight, s.invoice.Credited = money.Amount{}, money.Amount{}, money.Amount{}
	s.order.FreightLimit, s.order.FreightBilled = money.Amount{}, money.Amount{}
	if m := must(payables.Match(s.invoice, s.facts, s.t)); len(m.Findings) > 0 {
		t.Errorf("found %q", found(m.Findings))
	}
	s.invoice.Lines, s.invoice.Total = nil, money.Amount{}
	if m := must(payables.Match(s.invoice, s.facts, s.t)); !slices.Equal(codesOf(m.Findings), []string{"NO_LINES:0"}) {
		t.Errorf("found %q", found(m.Findings))
	}
}

func TestQuantitiesThatDoNotFit(t *testing.T) {
	// 1/999983 and 1/999979 and 1/999961 have no common fraction of 64 bits.
	o := order(usd, "1 10 EA 10.00 received=10 A=1/999983 B=1/999979 C=1/999961 D=1/999959")
	i := invoice(usd, "1 0.000001 A 10.00", "1 0.000001 B 10.00", "1 0.000001 C 10.00", "1 0.000001 D 10.00")
	_, err := payables.Match(i, payables.Facts{Order: &o}, tolerance)
	if reasonOf(err) != "POLICY_VIOLATION/quantity_out_of_range" {
		t.Errorf("%v", err)
	}
}

func TestCodes(t *testing.T) {
	blocking := 0
	for _, c := range payables.FindingCodes() {
		if back, err := payables.ParseCode(c.String()); err != nil || back != c {
			t.Errorf("%s: %v, %v", c, back, err)
		}
		_, err := payables.ParseReasonCode(c.String())
		if (err == nil) != c.Blocking() || (c.Severity() == "blocking") != c.Blocking() {
			t.Errorf("%s as a reason: %v; %s", c, err, c.Severity())
		}
		if c.Blocking() {
			blocking++
		}
	}
	if n := len(payables.ReasonCodes()); n != blocking+3 || len(payables.FindingCodes()) != 17 {
		t.Errorf("%d reasons, %d codes", n, len(payables.FindingCodes()))
	}
	for _, s := range []string{"", "price_variance", "PRICE_VARIANCE ", "CLEAN"} {
		if _, err := payables.ParseCode(s); err == nil {
			t.Errorf("%q is a code", s)
		}
		if _, err := payables.ParseReasonCode(s); err == nil {
			t.Errorf("%q is a reason", s)
		}
	}
}
