package payables_test

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

var (
	units       = []string{"EA", "BOX", "kg", "t"}
	conversions = []string{"", "BOX=12/1", "BOX=12/1 kg=7/3", "kg=1/1000 t=1000/1"}
	prices      = []string{"0", "0.01", "9.99", "10", "10.19", "10.2", "10.21", "120", "1000", "1005", "1005.01"}
	quantities  = []string{"0.000001", "0.333333", "0.5", "1", "2", "3.5", "7", "10", "12", "24"}
	fractions   = []string{"0", "1/3", "7/12", "1", "2.5", "10", "24", "120", "144"}
)

// drawOrder makes an order in EA of one to four lines, 10, 20, 30 and 40.
func drawOrder(t *rapid.T, c money.Currency) payables.Order {
	o := order(c)
	for n := range rapid.IntRange(1, 4).Draw(t, "order lines") {
		pick := func(of []string, name string) string { return rapid.SampledFrom(of).Draw(t, name) }
		o.Lines = append(o.Lines, orderLine(c, fmt.Sprintf("%d %s EA %s received=%s billed=%s %s", (n+1)*10,
			pick(quantities, "ordered"), pick(prices, "ordered at"), pick(fractions, "received"), pick(fractions, "billed"), pick(conversions, "conversions"))))
	}
	o.FreightLimit, o.FreightBilled = amount(rapid.SampledFrom(prices).Draw(t, "freight limit"), c), amount(rapid.SampledFrom(prices[:3]).Draw(t, "freight billed"), c)
	o.TaxLimit = must(payables.ParsePercent(rapid.SampledFrom([]string{"0", "8.25", "20"}).Draw(t, "tax limit")))
	return o
}

// drawBill makes an invoice on PO-1 that may be wrong in every way.
func drawBill(t *rapid.T, c money.Currency) payables.Invoice {
	var lines []string
	for range rapid.IntRange(0, 6).Draw(t, "invoice lines") {
		lines = append(lines, fmt.Sprint(rapid.SampledFrom([]int{10, 10, 20, 30, 40, 50, 0}).Draw(t, "of line"), " ", rapid.SampledFrom(quantities).Draw(t, "quantity"), " ",
			rapid.SampledFrom(units).Draw(t, "unit"), " ", rapid.SampledFrom(prices).Draw(t, "price")))
	}
	i := invoice(c, lines...)
	i.Tax, i.Freight = amount(rapid.SampledFrom(prices[:6]).Draw(t, "tax"), c), amount(rapid.SampledFrom(prices[:6]).Draw(t, "freight"), c)
	i = priced(i)
	switch rapid.IntRange(0, 9).Draw(t, "total") {
	case 0:
		i.Total = money.FromMinor(i.Total.Minor()+1, c)
	case 1:
		if len(i.Lines) > 0 {
			i.Lines[0].Amount = money.FromMinor(i.Lines[0].Amount.Minor()+1, c)
		}
	}
	i.Vendor = rapid.SampledFrom([]payables.VendorID{acme, acme, acme, bolt}).Draw(t, "vendor")
	i.Status = rapid.SampledFrom([]payables.Status{payables.Open, payables.Open, payables.OnHold, payables.Approved, payables.Rejected}).Draw(t, "status")
	return i
}

func drawSetup(t *rapid.T) *setup {
	s := with(drawOrder(t, usd), drawBill(t, rapid.SampledFrom([]money.Currency{usd, usd, usd, currency("EUR")}).Draw(t, "currency")))
	s.facts.Claim = rapid.SampledFrom([]payables.NumberClaim{claim("INV-1001"), claim("INV-0900", "INV-1001"), claim("INV-0900 rejected", "INV-1001")}).Draw(t, "claim")
	for n := range rapid.IntRange(0, 3).Draw(t, "rivals") {
		r := drawBill(t, usd)
		r.ID = invoiceID(fmt.Sprint("INV-200", n))
		s.facts.Rivals = append(s.facts.Rivals, payables.Rival{Invoice: r, Claim: claim(r.ID.String())})
	}
	return s
}

func TestMatchDoesNotDependOnTheOrderOfLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		first := must(payables.Match(s.invoice, s.facts, s.t))
		if again := must(payables.Match(s.invoice, s.facts, s.t)); !reflect.DeepEqual(first, again) {
			t.Fatalf("%q, then %q", found(first.Findings), found(again.Findings))
		}
		s.invoice.Lines = rapid.Permutation(s.invoice.Lines).Draw(t, "lines")
		s.facts.Rivals = rapid.Permutation(s.facts.Rivals).Draw(t, "rivals")
		if again := must(payables.Match(s.invoice, s.facts, s.t)); !reflect.DeepEqual(first, again) {
			t.Fatalf("%q, in another order %q", found(first.Findings), found(again.Findings))
		}
		for n, f := range first.Findings[:max(0, len(first.Findings)-1)] {
			if next := first.Findings[n+1]; f.Code == next.Code && f.Line >= next.Line {
				t.Fatalf("%q is not in order", found(first.Findings))
			}
		}
	})
}

func TestASplitLineIsTheSameLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		first := must(payables.Match(s.invoice, s.facts, s.t))
		// Where both parts cost whole minor units, nothing is rounded.
		for n := range s.invoice.Lines {
			l := s.invoice.Lines[n]
			a := rapid.Int64Range(1, max(1, l.Quantity.Micro()-1)).Draw(t, "part")
			if rapid.Bool().Draw(t, "whole") {
				a = a / 1_000_000 * 1_000_000
			}
			exact := func(m int64) bool { return m*l.UnitPrice.Minor()%1_000_000 == 0 }
			if a < 1 || a >= l.Quantity.Micro() || !exact(a) || !exact(l.Quantity.Micro()-a) || l.Amount.Minor() != times(l.Quantity, l.UnitPrice).Int64() {
				continue
			}
			one, two := l, l
			one.Quantity, two.Quantity, two.Line = payables.QuantityOfMicro(a), payables.QuantityOfMicro(l.Quantity.Micro()-a), len(s.invoice.Lines)+1
			one.Amount = money.FromMinor(times(one.Quantity, l.UnitPrice).Int64(), s.invoice.Currency)
			two.Amount = money.FromMinor(times(two.Quantity, l.UnitPrice).Int64(), s.invoice.Currency)
			s.invoice.Lines = append(slices.Clone(s.invoice.Lines), two)
			s.invoice.Lines[n] = one
		}
		split := must(payables.Match(s.invoice, s.facts, s.t))
		if !reflect.DeepEqual(first, split) {
			t.Fatalf("%q, split %q", found(first.Findings), found(split.Findings))
		}
	})
}

// Another match, in fractions and maps, finds the same about a bill.
func TestMatchFindsWhatFractionsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		got := codesOf(must(payables.Match(s.invoice, s.facts, s.t)).Findings)
		want := plain(s)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("found %q, fractions say %q", got, want)
		}
	})
}

// unitsOf is the quantity of a line in the unit of its order's line.
func unitsOf(o payables.Order, l payables.InvoiceLine) (at int, q *big.Rat, factor *big.Rat) {
	at = slices.IndexFunc(o.Lines, func(x payables.OrderLine) bool { return x.Line == l.OrderLine })
	if at < 0 {
		return at, nil, nil
	}
	q = big.NewRat(l.Quantity.Micro(), 1_000_000)
	if l.Unit == o.Lines[at].Unit {
		return at, q, big.NewRat(1, 1)
	}
	for _, c := range o.Lines[at].Conversions {
		if c.Unit == l.Unit {
			factor = big.NewRat(c.Numerator, c.Denominator)
			return at, q.Mul(q, factor), factor
		}
	}
	return at, nil, nil
}

func plain(s *setup) []string {
	i, o := s.invoice, s.order
	set := map[string]bool{}
	is := func(when bool, code string, line int) {
		if when {
			set[code+":"+strconv.Itoa(line)] = true
		}
	}
	_, dup := s.facts.Claim.Before(i.ID)
	is(dup, "DUPLICATE_INVOICE", 0)
	is(len(i.Lines) == 0, "NO_LINES", 0)
	is(i.Vendor != o.Vendor, "VENDOR_MISMATCH", 0)
	is(i.Currency != o.Currency, "CURRENCY_MISMATCH", 0)
	is(i.Status.Final(), "ALREADY_DECIDED", 0)
	sums, worst := map[int]*big.Rat{}, map[int]int{}
	lines, right := int64(0), i.Tax.Minor()+i.Freight.Minor()
	for _, l := range i.Lines {
		cost := times(l.Quantity, l.UnitPrice).Int64()
		is(cost != l.Amount.Minor(), "TOTAL_MISMATCH", 0)
		right, lines = right+cost, lines+l.Amount.Minor()
		at, q, factor := unitsOf(o, l)
		if at < 0 {
			is(true, "UNKNOWN_PO_LINE", l.OrderLine)
			continue
		}
		if sums[at] == nil {
			sums[at] = new(big.Rat)
		}
		if q == nil {
			is(true, "UNIT_MISMATCH", l.OrderLine)
			continue
		}
		sums[at].Add(sums[at], q)
		ordered := big.NewRat(o.Lines[at].UnitPrice.Minor(), 1)
		gap := new(big.Rat).Quo(big.NewRat(l.UnitPrice.Minor(), 1), factor)
		gap.Abs(gap.Sub(gap, ordered))
		most := new(big.Rat).Mul(ordered, big.NewRat(s.t.Percent.Micro(), 100_000_000))
		switch {
		case gap.Sign() == 0 || i.Currency != o.Currency:
		case gap.Cmp(most) <= 0 && gap.Cmp(big.NewRat(s.t.Minor, 1)) <= 0:
			worst[at] = max(worst[at], 1)
		default:
			worst[at] = 2
		}
	}
	is(right != i.Total.Minor(), "TOTAL_MISMATCH", 0)
	for at, n := range worst {
		is(n == 1, "PRICE_WITHIN_TOLERANCE", o.Lines[at].Line)
		is(n == 2, "PRICE_VARIANCE", o.Lines[at].Line)
	}
	for at, q := range sums {
		l := o.Lines[at]
		received, all := rat(l.Received), rat(l.Billed)
		if i.Status != payables.Approved {
			all.Add(all, q)
		}
		is(received.Sign() <= 0, "NO_GOODS_RECEIPT", l.Line)
		is(received.Sign() > 0 && all.Cmp(received) > 0, "BILLED_OVER_RECEIVED", l.Line)
		is(all.Cmp(big.NewRat(l.Quantity.Micro(), 1_000_000)) > 0, "BILLED_OVER_ORDERED", l.Line)
		others := new(big.Rat)
		for _, r := range s.facts.Rivals {
			for _, x := range r.Invoice.Lines {
				if n, q, _ := unitsOf(o, x); n == at && q != nil && !r.Invoice.Status.Final() {
					others.Add(others, q)
				}
			}
		}
		is(received.Sign() > 0 && all.Cmp(received) <= 0 && q.Sign() > 0 && others.Sign() > 0 && !dup && !i.Status.Final() && others.Add(others, all).Cmp(received) > 0, "COMPETING_CLAIM", l.Line)
	}
	freight := o.FreightBilled.Minor()
	if i.Status != payables.Approved {
		freight += i.Freight.Minor()
	}
	is(i.Currency == o.Currency && i.Freight.Sign() > 0 && freight > o.FreightLimit.Minor(), "CHARGE_NOT_ORDERED", 0)
	is(i.Tax.Minor()*100_000_000 > o.TaxLimit.Micro()*lines+50_000_000, "CHARGE_NOT_ORDERED", 0) // rounded half up
	var all []string
	for s := range set {
		all = append(all, s)
	}
	return all
}

// Two vendors, three orders of which one comes late, receipts, bills and credit
// notes, some under the name of the other vendor, and any sequence of decisions
// about them.
func TestNoSequenceOfDecisionsPaysTooMuch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { play(t, false) })
}

// The same with a person among those who decide.
func TestWhatAPersonMayOverride(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { play(t, true) })
}

func play(t *rapid.T, mayOverride bool) {
	b := newBooks()
	b.bring(payables.Vendor{ID: acme, Name: "Acme Ltd"}, payables.Vendor{ID: bolt, Name: "Bolt KG"})
	ids := []payables.OrderID{po1, po2}
	var receipt int
	unordered := map[payables.InvoiceID]bool{} // approved when the order was not there
	receive := func(t *rapid.T) {
		o := b.order(rapid.SampledFrom(ids).Draw(t, "received of"))
		receipt++
		r := goods(fmt.Sprint("GR-", receipt), payables.Received, fmt.Sprint(rapid.SampledFrom(o.Lines).Draw(t, "line").Line, " ", rapid.SampledFrom(quantities).Draw(t, "goods"), " EA"))
		r.Order, r.Vendor = o.ID, o.Vendor
		b.bring(r)
	}
	for n, c := range []money.Currency{usd, currency("EUR")} {
		o := drawOrder(t, c)
		o.ID, o.Vendor = ids[n], []payables.VendorID{acme, bolt}[n]
		o.FreightLimit = amount("20", c)
		o.Lines = o.Lines[:min(2, len(o.Lines))]
		for k := range o.Lines {
			o.Lines[k].Quantity, o.Lines[k].UnitPrice = quantity("24"), amount("10", c)
		}
		b.bring(o)
		r := goods(fmt.Sprint("GR-", o.ID), payables.Received)
		for _, l := range o.Lines {
			r.Lines = append(r.Lines, goods("GR", payables.Received, fmt.Sprint(l.Line, " ", rapid.SampledFrom(quantities[3:]).Draw(t, "goods"), " EA")).Lines...)
		}
		r.Order, r.Vendor = o.ID, o.Vendor
		b.bring(r)
	}
	var all []payables.InvoiceID
	enter := func(t *rapid.T) {
		o := b.order(rapid.SampledFrom(ids).Draw(t, "order"))
		if len(ids) == 2 && rapid.IntRange(0, 9).Draw(t, "too early") == 0 {
			o.ID = po3
		}
		var lines []string
		for range rapid.IntRange(1, 2).Draw(t, "lines") {
			lines = append(lines, fmt.Sprint(rapid.SampledFrom(o.Lines).Draw(t, "of").Line, " ", rapid.SampledFrom(quantities).Draw(t, "quantity"), " ", rapid.SampledFrom([]string{"EA", "EA", "EA", "EA", "EA", "EA", "EA", "BOX"}).Draw(t, "unit"), " ", rapid.SampledFrom([]string{"10", "10", "10", "10", "10", "10.2", "11"}).Draw(t, "price")))
		}
		i := as(invoice(o.Currency, lines...), fmt.Sprint("INV-", 1000+len(all)), rapid.SampledFrom([]string{"A-1", "a 01", fmt.Sprint("B-", len(all)), fmt.Sprint("C-", len(all)), fmt.Sprint("D-", len(all))}).Draw(t, "number"))
		i.Order, i.Vendor, i.Freight = o.ID, o.Vendor, amount(rapid.SampledFrom([]string{"0", "0", "7.5", "20"}).Draw(t, "freight"), o.Currency)
		i = priced(i)
		if rapid.IntRange(0, 9).Draw(t, "wrong") == 0 {
			i.Total = money.FromMinor(i.Total.Minor()+100, o.Currency)
		}
		if len(all) > 0 && rapid.IntRange(0, 2).Draw(t, "credit") == 0 {
			if c := b.invoice(rapid.SampledFrom(all).Draw(t, "credits")); c.Document == payables.Bill {
				i.Document, i.Credits, i.Order, i.Vendor, i.Freight = payables.CreditNote, c.ID, payables.OrderID{}, c.Vendor, amount("0", i.Currency)
				i = priced(i)
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "other vendor") == 0 {
			i.Vendor = rapid.SampledFrom([]payables.VendorID{acme, bolt}).Draw(t, "vendor")
		}
		b.bring(i)
		all = append(all, i.ID)
	}
	for range rapid.IntRange(2, 8).Draw(t, "invoices") {
		enter(t)
	}
	decisions := map[payables.InvoiceID]payables.Request{} // the last of each
	decide := func(t *rapid.T, r payables.Request) {
		id := r.Invoice
		before, was := b.match(id), b.invoice(id)
		cmd := b.route(r, mayOverride)
		change, err := b.run(cmd)
		if err != nil {
			if fault.CodeOf(err) == fault.Internal || r.Action == payables.Hold && !was.Status.Final() {
				t.Fatalf("%s %s: %v", r.Action, id, err)
			}
			return
		}
		d := change.Answer.(payables.Decision)
		if len(change.Put) == 0 {
			if decisions[id] != r {
				t.Fatalf("%+v is taken for %+v", r, decisions[id])
			}
			return
		}
		now := b.invoice(id)
		overridden := mayOverride && r.Override && r.Note != (payables.Note{})
		switch {
		case was.Status.Final():
			t.Fatalf("%s was %s, now %s", id, was.Status, now.Status)
		case now.Status != r.Action.Status() || now.Decision == nil || now.Decision.ID != d.ID:
			t.Fatalf("%s is %s after %s", id, now.Status, r.Action)
		case r.Action == payables.Approve && before.Has(payables.DuplicateInvoice):
			t.Fatalf("the duplicate %s was approved", id)
		case r.Action == payables.Approve && before.Blocking && !overridden:
			t.Fatalf("%s was approved with %q", id, found(before.Findings))
		case r.Action == payables.Reject && !overridden && !slices.ContainsFunc(before.Findings, func(f payables.Finding) bool { return f.Code.Blocking() && f.Code.String() == r.Reason.String() }):
			t.Fatalf("%s was rejected for %s, with %q", id, r.Reason, found(before.Findings))
		}
		if err := d.Verify(true, change.Entries[0]); err != nil {
			t.Fatal(err)
		}
		if r.Action == payables.Approve && b.records[was.Order.Ref()] == nil {
			unordered[id] = true
		}
		decisions[id] = r
		// The answer was lost: the same again changes nothing, also with less authority.
		cmd.MayOverride = false
		if change, err := b.run(cmd); err != nil || len(change.Put)+len(change.Entries) > 0 || !reflect.DeepEqual(change.Answer, ledger.Record(d)) {
			t.Fatalf("again: %+v, %v", change, err)
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"receive": receive,
		"enter": func(t *rapid.T) {
			if len(all) < 30 {
				enter(t)
			}
		},
		"override": func(t *rapid.T) {
			decide(t, payables.Request{Invoice: rapid.SampledFrom(all).Draw(t, "invoice"), Action: payables.Approve, Reason: payables.ManualOverride, Override: true, Note: must(payables.ParseNote("agreed with the CFO"))})
		},
		"approve": func(t *rapid.T) {
			open := slices.DeleteFunc(slices.Clone(all), func(id payables.InvoiceID) bool { return b.invoice(id).Status.Final() })
			if len(open) > 0 {
				decide(t, payables.Request{Invoice: rapid.SampledFrom(open).Draw(t, "invoice"), Action: payables.Approve, Reason: payables.CleanMatch})
			}
		},
		"route": func(t *rapid.T) {
			r := payables.Request{Invoice: rapid.SampledFrom(all).Draw(t, "invoice"),
				Action: rapid.SampledFrom([]payables.Action{payables.Approve, payables.Hold, payables.Reject}).Draw(t, "action"),
				Reason: rapid.SampledFrom(payables.ReasonCodes()).Draw(t, "reason"),
			}
			if before := b.match(r.Invoice); r.Action == payables.Reject && before.Blocking && rapid.Bool().Draw(t, "evidence") {
				r.Reason = must(payables.ParseReasonCode(before.Findings[0].Code.String()))
			}
			if rapid.Bool().Draw(t, "override") {
				r.Override, r.Reason = true, payables.ManualOverride
			}
			if rapid.Bool().Draw(t, "note") {
				r.Note = must(payables.ParseNote("agreed with the CFO"))
			}
			decide(t, r)
		},
		"order": func(t *rapid.T) {
			if len(ids) > 2 || rapid.IntRange(0, 3).Draw(t, "now") > 0 {
				return
			}
			o := b.order(po1)
			o.ID = po3
			b.bring(o)
			ids = append(ids, po3)
		},
		"": func(t *rapid.T) { audit(t, b, unordered, !mayOverride) },
	})
	for id, r := range decisions {
		if change, err := b.run(b.route(r, false)); err != nil || len(change.Put) > 0 {
			t.Fatalf("%s again: %+v, %v", id, change, err)
		}
	}
}

// audit compares the records with what the decided documents add up to.
func audit(t *rapid.T, b *books, unordered map[payables.InvoiceID]bool, strict bool) {
	prove(t, b)
	owed := map[string]int64{}
	billed := map[string]*big.Rat{}
	carriage := map[payables.OrderID]int64{}
	credited := map[payables.InvoiceID]int64{}
	paid := map[ledger.Ref]payables.InvoiceID{}
	line := func(o payables.OrderID, n int) *big.Rat {
		k := fmt.Sprint(o, "/", n)
		if billed[k] == nil {
			billed[k] = new(big.Rat)
		}
		return billed[k]
	}
	for _, r := range b.records {
		i, ok := r.(payables.Invoice)
		if !ok || i.Status != payables.Approved {
			continue
		}
		if first, twice := paid[i.ClaimRef()]; twice {
			t.Fatalf("%s and %s have one number and are both approved", first, i.ID)
		}
		paid[i.ClaimRef()] = i.ID
		key := i.Vendor.String() + i.Currency.String()
		if i.Document == payables.CreditNote {
			owed[key] -= i.Total.Minor()
			if c, ok := b.records[i.Credits.Ref()].(payables.Invoice); ok && c.Vendor == i.Vendor && c.Currency == i.Currency {
				credited[c.ID] += i.Total.Minor()
			}
			continue
		}
		owed[key] += i.Total.Minor()
		if unordered[i.ID] {
			continue
		}
		if i.Currency == b.order(i.Order).Currency {
			carriage[i.Order] += i.Freight.Minor()
		}
		for _, l := range i.Lines {
			if _, q, _ := unitsOf(b.order(i.Order), l); q != nil {
				line(i.Order, l.OrderLine).Add(line(i.Order, l.OrderLine), q.Sub(q, rat(l.Credited)))
			}
		}
	}
	for _, r := range b.records {
		switch r := r.(type) {
		case payables.Vendor:
			for _, balance := range r.Balances {
				key := r.ID.String() + balance.Currency().String()
				if balance.Minor() != owed[key] {
					t.Fatalf("%s is owed %s, the documents say %d", r.ID, balance, owed[key])
				}
				delete(owed, key)
			}
		case payables.Invoice:
			if r.Credited.Minor() != credited[r.ID] || strict && r.Credited.Minor() > r.Total.Minor() {
				t.Fatalf("%s of %s is credited, the notes say %d of %s", r.Credited, r.ID, credited[r.ID], r.Total)
			}
		case payables.Order:
			for _, l := range r.Lines {
				if got, want := rat(l.Billed), line(r.ID, l.Line); got.Cmp(want) != 0 || got.Sign() < 0 {
					t.Fatalf("%s billed of line %d of %s, the invoices say %s", l.Billed, l.Line, r.ID, want)
				}
				if strict && l.Billed.Cmp(l.Received) > 0 {
					t.Fatalf("%s billed of line %d of %s, %s received", l.Billed, l.Line, r.ID, l.Received)
				}
			}
			if r.FreightBilled.Minor() != carriage[r.ID] {
				t.Fatalf("%s of freight billed on %s, the invoices say %d", r.FreightBilled, r.ID, carriage[r.ID])
			}
			if strict && r.FreightBilled.Minor() > r.FreightLimit.Minor() {
				t.Fatalf("%s of freight billed on %s", r.FreightBilled, r.ID)
			}
		}
	}
	for key, n := range owed {
		if n != 0 {
			t.Fatalf("%s is owed %d and has no balance", key, n)
		}
	}
}

// prove recomputes each vendor from its entries.
func prove(t rapid.TB, b *books) {
	t.Helper()
	for _, r := range b.records {
		if v, ok := r.(payables.Vendor); ok {
			if err := b.verify(v.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What was changed past the ledger is found, whatever it is.
func TestHistoryFindsWhatWasChanged(t *testing.T) {
	gr1, credit := must(payables.ParseReceiptID("GR-7")), invoiceID("INV-1002")
	for name, change := range map[string]func(b *books){
		"nothing":         nil,
		"a vendor's name": func(b *books) { put(b, changed(b.vendor(acme), func(v *payables.Vendor) { v.Name = "Acme" })) },
		"what was received": func(b *books) {
			put(b, changed(b.order(po1), func(o *payables.Order) { o.Lines = lines(o.Lines); o.Lines[0].Received = ratio("1000") }))
		},
		"an ordered price": func(b *books) {
			put(b, changed(b.order(po1), func(o *payables.Order) { o.Lines = lines(o.Lines); o.Lines[0].UnitPrice = amount("99", usd) }))
		},
		"a line less": func(b *books) { put(b, changed(b.order(po1), func(o *payables.Order) { o.Lines = nil })) },
		"a receipt's quantity": func(b *books) {
			put(b, changed(b.records[gr1.Ref()].(payables.Receipt), func(r *payables.Receipt) { r.Lines = lines(r.Lines); r.Lines[0].Quantity = quantity("9") }))
		},
		"a line more": func(b *books) {
			put(b, changed(b.invoice(credit), func(i *payables.Invoice) {
				i.Lines = append(lines(i.Lines), payables.InvoiceLine{Line: 9, Unit: i.Lines[0].Unit, Quantity: quantity("1")})
			}))
		},
		"an invoice's total": func(b *books) {
			put(b, changed(b.invoice(credit), func(i *payables.Invoice) { i.Total = amount("99", usd) }))
		},
		"a status": func(b *books) {
			put(b, changed(b.invoice(credit), func(i *payables.Invoice) { i.Status = payables.Approved }))
		},
		"no decision": func(b *books) {
			put(b, changed(b.invoice(invoiceID("INV-1001")), func(i *payables.Invoice) { i.Decision, i.Status = nil, payables.Open }))
		},
		"another's decision": func(b *books) {
			put(b, changed(b.invoice(credit), func(i *payables.Invoice) {
				i.Decision, i.Status = b.invoice(invoiceID("INV-1001")).Decision, payables.Approved
			}))
		},
		"a claim is rejected": func(b *books) {
			c := b.records[b.invoice(credit).ClaimRef()].(payables.NumberClaim)
			put(b, changed(c, func(c *payables.NumberClaim) { c.Claims = []payables.Claimed{{Invoice: credit, Rejected: true}} }))
		},
		"an invoice is missing": func(b *books) { delete(b.records, credit.Ref()) },
		"a decision is missing": func(b *books) { delete(b.records, b.invoice(invoiceID("INV-1001")).Decision.Ref()) },
		"an order is missing":   func(b *books) { delete(b.records, po1.Ref()) },
		"a receipt is missing":  func(b *books) { delete(b.records, gr1.Ref()) },
		"a number, written else": func(b *books) {
			put(b, changed(b.invoice(credit), func(i *payables.Invoice) { i.Number = must(payables.ParseNumber("CN-01")) }))
		},
	} {
		b := stocked()
		b.bring(goods("GR-7", payables.Received, "1 2 EA"), invoice(usd, "1 10 EA 10.00"), note("INV-1002", "CN-1", "INV-1001", "1 3 EA 10.00"))
		if got := b.approve("INV-1001"); got != "" {
			t.Fatal(got)
		}
		if change == nil {
			if err := b.verify(acme); err != nil {
				t.Error(err)
			}
			continue
		}
		change(b)
		var broken *journal.Broken
		if err := b.verify(acme); !errors.As(err, &broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func put(b *books, r ledger.Record) { b.records[r.Ref()] = r }

func lines[L any](l []L) []L { return slices.Clone(l) }

// A history that was changed does not add up.
func TestHistoryFindsWhatDoesNotAddUp(t *testing.T) {
	b := stocked()
	b.bring(invoice(usd, "1 10 EA 10.00"))
	if err := b.decide("INV-1001", "approve", "CLEAN_MATCH"); err != nil {
		t.Fatal(err)
	}
	v, entries := b.vendor(acme), b.entries[acme.Subject()]
	check := func(v payables.Vendor, entries []journal.Entry) error {
		h := payables.NewHistory(v)
		for _, e := range entries {
			if err := h.Add(e); err != nil {
				return err
			}
		}
		if h.Head() != entries[len(entries)-1].Head() {
			t.Error("the head is not that of the last entry")
		}
		return h.Close()
	}
	if err := check(v, entries); err != nil {
		t.Fatal(err)
	}
	last := entries[len(entries)-1]
	forged := slices.Clone(entries)
	postings := slices.Clone(last.Postings())
	for n := range postings {
		postings[n].Amount = amount("99", usd)
	}
	forged[len(forged)-1] = journal.Restore(last.Number(), last.Previous(), last.Hash(), last.Subject(), last.Operation(), last.Command(), last.Facts(), postings)
	foreign := must(journal.Next(last.Head(), acme.Subject(), op, "test", nil,
		journal.Posting{Account: payables.GoodsReceived, Side: journal.Debit, Amount: amount("1", usd)}, journal.Posting{Account: payables.Payable(bolt), Side: journal.Credit, Amount: amount("1", usd)}))
	for name, err := range map[string]error{
		"a balance":           check(changed(v, func(v *payables.Vendor) { v.Balances = []money.Amount{amount("99", usd)} }), entries),
		"no balance":          check(changed(v, func(v *payables.Vendor) { v.Balances = nil }), entries),
		"another head":        check(changed(v, func(v *payables.Vendor) { v.Head.Hash[0]++ }), entries),
		"an entry is missing": check(v, entries[:len(entries)-1]),
		"one in the middle":   check(v, append(entries[:1:1], entries[2:]...)),
		"a posting":           check(v, forged),
		"another vendor":      check(b.vendor(bolt), entries),
		"another's account":   check(v, append(entries[:len(entries):len(entries)], foreign)),
	} {
		if broken, ok := err.(*journal.Broken); !ok || broken.Number < 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
