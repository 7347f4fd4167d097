package portstest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// payablesLaws are about invoices, what they are matched with and what is
// decided about them. A store that does not keep payables is excused.
func payablesLaws(add add) {
	law := func(sentence string, holds func(world), needs ...Power) {
		add(sentence, holds, append(needs, Operator, KeepsPayables)...)
	}
	documentLaws(law)
	decisionLaws(law)
	competingLaws(law)
	countingLaws(law)
}

func documentLaws(law add) {
	law("documents come back as they went in", func(w world) {
		var all documents
		all.vendors = []payables.Vendor{{ID: acme, Name: "Acme & Söhne – \"Łuk\" \\ %s"}, {ID: bolt, Name: "ボルト'; DROP TABLE vendors; --"}}
		kwd, jpy := currencyOf("KWD"), currencyOf("JPY")
		plain := orderOf("PO-1", acme, usd, "1 10 EA 10.00")
		rich := orderOf("po.2_x", acme, kwd, "1 0.000001 KG 1.234", "7 1000000000 BOX 99999999999.999 EA=1/12 PAL=40/1 ea=1000000/999983", "1000000 2.5 EA 0")
		rich.FreightLimit, rich.TaxLimit = money.FromMinor(payables.MaxMinor, kwd), must(payables.ParsePercent("7.125"))
		rich.Lines[1].Description = "Ein „großes“ Ding, 3/4\" \\ 100%"
		long := orderOf("PO-3", bolt, jpy)
		for n := range 300 {
			long.Lines = append(long.Lines, orderLine(jpy, fmt.Sprintf("%d %d.25 EA 120 BOX=12/1", 3*n+1, n+1)))
		}
		all.orders = []payables.Order{plain, rich, long}
		many := goodsOf("GR-3", long, payables.Received)
		for _, l := range long.Lines {
			many.Lines = append(many.Lines, goodsLine(fmt.Sprintf("%d 1 BOX", l.Line)), goodsLine(fmt.Sprintf("%d 2 EA", l.Line)))
		}
		all.receipts = []payables.Receipt{
			goodsOf("GR-1", plain, payables.Received, "1 4 EA", "1 6 EA"), goodsOf("GR-2", rich, payables.Received, "7 7 EA", "7 0.5 PAL", "1 0.000001 KG"),
			goodsOf("GR-2r", rich, payables.Returned, "7 1 EA"), many,
		}
		big := billOf("INV-1003", "R–2026／0071", long)
		for _, l := range long.Lines {
			big.Lines = append(big.Lines, billLine(jpy, len(big.Lines)+1, fmt.Sprintf("%d 0.75 EA 121", l.Line)))
		}
		big = priced(big)
		free := billOf("INV-0001", "x\u200d1", plain, "0 1 EA 5.00")
		free.Order, free.Lines[0].SKU = payables.OrderID{}, payables.SKU{}
		empty := billOf("INV-123456789012", "0071-000345", plain)
		empty.Total, empty.Tax, empty.Freight = cents(payables.MaxMinor), cents(1), cents(2)
		stray := billOf("INV-1005", "１２３", plain, "1000000 0.333333 m2 0.01")
		stray.Order, stray.Vendor = must(payables.ParseOrderID("PO-none")), bolt
		note := noteOf("INV-1006", "0071-000345", big, "4 0.75 EA 121", "7 0.25 EA 121")
		loose := noteOf("INV-1007", "0071-345", payables.Invoice{}, "0 1 EA 1.00")
		loose.Vendor, loose.Currency = acme, usd
		all.invoices = []payables.Invoice{billOf("INV-1001", "HP-2026-0071", plain, "1 10 EA 10.00"), billOf("INV-1002", "hp 2026/71", rich, "7 24 EA 0.001", "1 1 KG 1.234"), big, free, empty, stray, note, priced(loose)}
		w.bring(all)

		for _, v := range all.vendors {
			if got := w.vendor(v.ID); got.ID != v.ID || got.Name != v.Name || len(got.Balances) != 0 {
				w.Errorf("got %+v, want %+v", got, v)
			}
		}
		received := map[payables.OrderID]map[int]string{plain.ID: {1: "10"}, rich.ID: {1: "1/1000000", 7: "41/2"}, long.ID: {}}
		for _, l := range long.Lines {
			received[long.ID][l.Line] = "14"
		}
		for _, o := range all.orders {
			want := o
			want.Lines = slices.Clone(o.Lines)
			for n, l := range want.Lines {
				if s, ok := received[o.ID][l.Line]; ok {
					want.Lines[n].Received = ratioOf(s)
				}
			}
			if got := w.order(o.ID); !w.same(got, want) {
				w.Errorf("got  %+v\nwant %+v", got, want)
			}
		}
		for _, r := range all.receipts {
			got, _ := get[payables.Receipt](w, r.Ref())
			list, err := w.payables().ListReceipts(w.ctx, w.tenant, r.Order, "", 9)
			at := slices.IndexFunc(list, func(x payables.Receipt) bool { return x.ID == r.ID })
			if !w.same(got, r) || err != nil || at < 0 || !w.same(list[at], r) {
				w.Errorf("got  %+v\nof   %+v, %v\nwant %+v", got, list, err, r)
			}
		}
		headers := map[payables.InvoiceID]payables.Invoice{}
		for _, h := range w.invoices(ports.InvoiceFilter{}) {
			headers[h.ID] = h
		}
		entered := map[payables.VendorID]int64{}
		for _, i := range all.invoices {
			got, want := w.invoice(i.ID), i
			if want.Entered = got.Entered; got.Entered <= entered[i.Vendor] {
				w.Errorf("%s was entered as %d, after %d", i.ID, got.Entered, entered[i.Vendor])
			}
			entered[i.Vendor] = got.Entered
			if !w.same(got, want) {
				w.Errorf("got  %+v\nwant %+v", got, want)
			}
			want.Lines = nil
			if h := headers[i.ID]; !w.same(h, want) || h.Lines != nil {
				w.Errorf("listed %+v\nwant   %+v", h, want)
			}
			claim, _ := get[payables.NumberClaim](w, i.ClaimRef())
			if !slices.Contains(claim.Claims, payables.Claimed{Invoice: i.ID}) || claim.Normal != i.Number.Normal() || claim.Vendor != i.Vendor || claim.Document != i.Document {
				w.Errorf("the number %s of %s is claimed by %+v", i.Number, i.ID, claim)
			}
		}
		if claim, _ := get[payables.NumberClaim](w, all.invoices[0].ClaimRef()); len(claim.Claims) != 2 || claim.Claims[0].Invoice != all.invoices[0].ID {
			w.Errorf("got %+v", claim)
		}
		w.provedPayables()
	})

	law("an import of documents brings in all or none, and may be sent again", func(w world) {
		w.stocked("1 100 EA 10.00")
		o := w.order(po1)
		var bills []payables.Invoice
		for n := range 200 {
			bills = append(bills, billOf(fmt.Sprintf("INV-%d", 2000+n), fmt.Sprintf("A-%d", n/2), o, "1 1 EA 10.00"))
		}
		w.want1(w.done(payables.ImportInvoices{Invoices: bills}), 200, 0)
		before := w.vendor(acme)
		w.want1(w.done(payables.ImportInvoices{Invoices: bills}), 0, 200)
		if after := w.vendor(acme); !w.same(before, after) {
			w.Errorf("sent again it changed %+v into %+v", before, after)
		}
		w.mustDecide("INV-2000", "approve", "CLEAN_MATCH") // what became of it since is no matter
		more := append(slices.Clone(bills), billOf("INV-3000", "B", o))
		w.want1(w.done(payables.ImportInvoices{Invoices: more}), 1, 200)

		version := w.vendor(acme).Head
		other := billOf("INV-2001", "A-9", o, "1 2 EA 10.00")
		_, err := w.do("k", payables.ImportInvoices{Invoices: []payables.Invoice{billOf("INV-4000", "C", o), other, billOf("INV-4001", "C", o)}})
		if f := fault.Of(err); f == nil || f.Code != fault.InvalidInput || len(f.Issues) != 1 {
			w.Errorf("with an invoice that is there otherwise: %v", err)
		}
		_, err = w.do("k", payables.ImportReceipts{Receipts: []payables.Receipt{goodsOf("GR-8", o, payables.Received, "1 1 EA"), goodsOf("GR-9", o, payables.Returned, "1 999 EA")}})
		w.wantFault(err, "INVALID_INPUT/invalid_input")
		_, err = w.do("k", payables.ImportOrders{Orders: []payables.Order{orderOf("PO-8", acme, usd, "1 1 EA 1"), orderOf("PO-9", must(payables.ParseVendorID("NOBODY")), usd, "1 1 EA 1")}})
		w.wantFault(err, "INVALID_INPUT/invalid_input")
		for _, ref := range []ledger.Ref{invoiceID("INV-4000").Ref(), invoiceID("INV-4001").Ref(), must(payables.ParseReceiptID("GR-8")).Ref(), must(payables.ParseOrderID("PO-8")).Ref()} {
			if r, there := get[ledger.Record](w, ref); there {
				w.Errorf("it left %+v", r)
			}
		}
		if w.vendor(acme).Head != version || w.order(po1).Lines[0].Received != ratioOf("100") {
			w.Error("an import that was refused changed something")
		}
		w.provedPayables()
	})

	law("lists of documents page, filter and keep tenants apart", func(w world) {
		w.stocked("1 1000 EA 10.00")
		o := w.order(po1)
		other := orderOf("PO-2", bolt, currencyOf("EUR"), "1 1000 EA 10.00")
		w.bring(documents{vendors: []payables.Vendor{{ID: bolt, Name: "Bolt"}}, orders: []payables.Order{other}, receipts: []payables.Receipt{goodsOf("GR-7", other, payables.Received, "1 1000 EA")}})
		var bills []payables.Invoice
		for _, n := range rand.Perm(24) {
			of := o
			if n%3 == 0 {
				of = other
			}
			bills = append(bills, billOf(fmt.Sprintf("INV-%04d", 100+n), fmt.Sprintf("N-%d", n), of, "1 1 EA 10.00"))
		}
		w.bring(documents{invoices: bills})
		for n := range 24 {
			switch n % 4 {
			case 1:
				w.mustDecide(fmt.Sprintf("INV-%04d", 100+n), "approve", "CLEAN_MATCH")
			case 2:
				w.mustDecide(fmt.Sprintf("INV-%04d", 100+n), "hold", "NEEDS_REVIEW")
			}
		}
		var all []payables.Invoice
		for _, b := range bills {
			i := w.invoice(b.ID)
			i.Lines, i.Decision = nil, nil
			all = append(all, i)
		}
		slices.SortFunc(all, func(a, b payables.Invoice) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
		for _, f := range filters() {
			var want []payables.Invoice
			for _, i := range all {
				if matches(f, i) {
					want = append(want, i)
				}
			}
			for _, limit := range []int{1, 5, 24, math.MaxInt} {
				var got []payables.Invoice
				for after := ""; len(got) <= len(all); after = got[len(got)-1].ID.String() {
					page, err := w.payables().ListInvoices(w.ctx, w.tenant, f, after, limit)
					if err != nil || len(page) > limit {
						w.Fatalf("a page of %d after %q of %+v: %d, %v", limit, after, f, len(page), err)
					}
					if len(page) == 0 {
						break
					}
					got = append(got, page...)
				}
				if !slices.EqualFunc(got, want, func(a, b payables.Invoice) bool { return w.same(a, b) }) {
					w.Errorf("%+v in pages of %d: %d, not %d:\n%+v\n%+v", f, limit, len(got), len(want), got, want)
				}
			}
		}
		for _, v := range []payables.VendorID{acme, bolt, must(payables.ParseVendorID("NOBODY"))} {
			var want []payables.Invoice
			for _, i := range all {
				if i.Vendor == v {
					want = append(want, i)
				}
			}
			slices.SortFunc(want, func(a, b payables.Invoice) int { return cmp.Compare(b.Entered, a.Entered) })
			befores := []int64{-1, 0, 1, math.MaxInt64}
			for _, i := range want {
				befores = append(befores, i.Entered, i.Entered+1)
			}
			for _, before := range befores {
				rest := want
				for before > 0 && len(rest) > 0 && rest[0].Entered >= before {
					rest = rest[1:]
				}
				for _, limit := range []int{-1, 0, 1, 7, math.MaxInt} {
					got, err := w.payables().LatestInvoices(w.ctx, w.tenant, v, before, limit)
					if err != nil || !slices.EqualFunc(got, rest[:max(0, min(limit, len(rest)))], func(a, b payables.Invoice) bool { return w.same(a, b) }) {
						w.Errorf("the latest %d of %s before %d: %+v, %v", limit, v, before, got, err)
					}
				}
			}
		}
		var receipts []payables.Receipt
		for n := range 7 {
			receipts = append(receipts, goodsOf(fmt.Sprintf("gr-%d", n), o, payables.Received, "1 1 EA"))
		}
		w.bring(documents{receipts: receipts})
		for _, tt := range []struct {
			after string
			limit int
			want  string
		}{{"", 3, "[GR-1 gr-0 gr-1]"}, {"gr-1", 3, "[gr-2 gr-3 gr-4]"}, {"gr-1a", 1, "[gr-2]"}, {"gr-4", 99, "[gr-5 gr-6]"}, {"gr-6", 9, "[]"}, {"", 0, "[]"}, {"", -1, "[]"}} {
			page, err := w.payables().ListReceipts(w.ctx, w.tenant, po1, tt.after, tt.limit)
			ids := []payables.ReceiptID{}
			for _, r := range page {
				ids = append(ids, r.ID)
			}
			if fmt.Sprint(ids) != tt.want || err != nil {
				w.Errorf("receipts after %q: %v, %v, want %s", tt.after, ids, err, tt.want)
			}
		}
		if one, err := w.payables().ListVendors(w.ctx, w.tenant, "ACME", 1); err != nil || len(one) != 1 || !w.same(one[0], w.vendor(bolt)) {
			w.Errorf("vendors after ACME: %+v, %v", one, err)
		}
	})

	law("no store takes a synthesised invoice", func(w world) {
		w.stocked("1 10 EA 10.00")
		whole := billOf("INV-1001", "A-1", w.order(po1), "1 1 EA 10.00")
		w.bring(documents{invoices: []payables.Invoice{whole}})
		for n, field := range payables.Fields() {
			for _, id := range []string{"INV-1001", fmt.Sprintf("INV-%d", 2000+n)} { // one that is there already, and a new one
				thin := billOf(id, "A-1", w.order(po1), "1 1 EA 10.00")
				thin.Synthesised = []payables.Field{field}
				_, err := w.do(key(), payables.ImportInvoices{Invoices: []payables.Invoice{billOf("INV-3000", "A-3", w.order(po1), "1 1 EA 10.00"), thin}})
				w.wantFault(err, "INVALID_INPUT/invalid_input")
			}
		}
		if all := w.invoices(ports.InvoiceFilter{}); len(all) != 1 || len(all[0].Synthesised) > 0 || w.vendor(acme).Head.Number != all[0].Entered {
			w.Errorf("it has taken %+v", all)
		}
		w.provedPayables()
	})

	law("tenants' documents are walled", func(w world) {
		w.stocked("1 10 EA 10.00")
		w.bring(documents{invoices: []payables.Invoice{billOf("INV-1001", "A-1", w.order(po1), "1 10 EA 10.00")}})
		d := w.mustDecide("INV-1001", "hold", "NEEDS_REVIEW")
		other := w.in("globex")
		for _, ref := range []ledger.Ref{acme.Ref(), po1.Ref(), invoiceID("INV-1001").Ref(), w.invoice(invoiceID("INV-1001")).ClaimRef(), d.Ref(), must(payables.ParseReceiptID("GR-1")).Ref()} {
			if r, there := get[ledger.Record](other, ref); there {
				w.Errorf("the other loads %+v", r)
			}
		}
		sums, err := other.payables().SumInvoices(w.ctx, other.tenant)
		latest, err2 := other.payables().LatestInvoices(w.ctx, other.tenant, acme, 0, 9)
		receipts, err3 := other.payables().ListReceipts(w.ctx, other.tenant, po1, "", 9)
		if n := len(other.invoices(ports.InvoiceFilter{})) + len(other.vendors()) + len(sums) + len(latest) + len(receipts); n != 0 || err != nil || err2 != nil || err3 != nil {
			w.Errorf("the other sees %d documents, %v, %v, %v", n, err, err2, err3)
		}
		_, err = other.do(key(), w.route("INV-1001", "approve", "CLEAN_MATCH"))
		w.wantFault(err, "NOT_FOUND/invoice_not_found")
		// The same ids are other documents.
		other.stocked("1 5 EA 10.00")
		other.bring(documents{invoices: []payables.Invoice{billOf("INV-1001", "A-1", other.order(po1), "1 5 EA 10.00")}})
		other.mustDecide("INV-1001", "approve", "CLEAN_MATCH")
		if i := w.invoice(invoiceID("INV-1001")); i.Status != payables.OnHold || w.order(po1).Lines[0].Billed.Sign() != 0 {
			w.Errorf("the other's decision changed %+v", i)
		}
		w.provedPayables()
		other.provedPayables()
	}, ManyTenants)

	law("the sums of the invoices add up", func(w world) {
		w.stocked("1 10000000 EA 10.00")
		kwd := currencyOf("KWD")
		foreign := orderOf("PO-5", acme, kwd, "1 100 EA 1.234")
		w.bring(documents{orders: []payables.Order{foreign}, receipts: []payables.Receipt{goodsOf("GR-5", foreign, payables.Received, "1 100 EA")}})
		var bills []payables.Invoice
		for n := range 40 {
			of, spec := w.order(po1), fmt.Sprintf("1 %d EA 10.00", n*n+1)
			if n%4 == 0 {
				of, spec = foreign, fmt.Sprintf("1 0.%d EA 1.234", n+1)
			}
			bills = append(bills, billOf(fmt.Sprintf("INV-%d", 5000+n), fmt.Sprintf("S-%d", n), of, spec))
		}
		for n := range 10 { // together more than 32 bits and much of 64
			huge := billOf(fmt.Sprintf("INV-%d", 6000+n), fmt.Sprintf("H-%d", n), w.order(po1))
			huge.Total = cents(payables.MaxMinor - int64(n))
			bills = append(bills, huge)
		}
		bills = append(bills, noteOf("INV-7000", "S-1", bills[1], "1 1 EA 10.00"))
		w.bring(documents{invoices: bills})
		for n := range 40 {
			switch n % 5 {
			case 1:
				w.mustDecide(fmt.Sprintf("INV-%d", 5000+n), "approve", "CLEAN_MATCH")
			case 3:
				w.mustDecide(fmt.Sprintf("INV-%d", 5000+n), "hold", "NEEDS_REVIEW")
			}
		}
		type line struct {
			currency money.Currency
			document payables.DocumentKind
			status   payables.Status
		}
		counts, totals := map[line]int64{}, map[line]*big.Int{}
		for _, i := range w.invoices(ports.InvoiceFilter{}) {
			l := line{i.Currency, i.Document, i.Status}
			if counts[l]++; totals[l] == nil {
				totals[l] = new(big.Int)
			}
			totals[l].Add(totals[l], big.NewInt(i.Total.Minor()))
		}
		sums, err := w.payables().SumInvoices(w.ctx, w.tenant)
		if err != nil || len(sums) != len(counts) {
			w.Errorf("%d sums, not %d: %v", len(sums), len(counts), err)
		}
		before := ""
		for _, s := range sums {
			l := line{s.Currency, s.Document, s.Status}
			if s.Count != counts[l] || totals[l] == nil || s.Minor.Cmp(totals[l]) != 0 {
				w.Errorf("%+v: %d, %s; want %d, %s", l, s.Count, s.Minor, counts[l], totals[l])
			}
			at := s.Currency.String() + " " + s.Document.String() + " " + s.Status.String()
			if at <= before {
				w.Errorf("%s comes after %s", at, before)
			}
			before = at
		}
		w.provedPayables()
	})
}

func decisionLaws(law add) {
	law("an approval consumes what was received in the same commit", func(w world) {
		w.stocked("1 10 EA 10.00", "2 5 BOX 24.00 EA=1/12")
		bill := billOf("INV-1001", "A-1", w.order(po1), "1 10 EA 10.00", "2 7 EA 2.00")
		bill.Tax = cents(0)
		w.bring(documents{invoices: []payables.Invoice{priced(bill)}})
		d := w.mustDecide("INV-1001", "approve", "CLEAN_MATCH")
		o, i, v := w.order(po1), w.invoice(bill.ID), w.vendor(acme)
		if o.Lines[0].Billed != ratioOf("10") || o.Lines[1].Billed != ratioOf("7/12") {
			w.Errorf("billed %s and %s", o.Lines[0].Billed, o.Lines[1].Billed)
		}
		if i.Status != payables.Approved || i.Decision == nil || !w.same(*i.Decision, d) {
			w.Errorf("the invoice is %s by %+v, answered %+v", i.Status, i.Decision, d)
		}
		if got, _ := get[payables.Decision](w, d.Ref()); !w.same(got, d) || d.Number != v.Head.Number || d.DecidedBy != w.principal {
			w.Errorf("on record %+v, answered %+v", got, d)
		}
		if !slices.Equal(v.Balances, []money.Amount{cents(114_00)}) {
			w.Errorf("owed %v", v.Balances)
		}
		w.provedPayables()
	})

	law("a decision is kept with its findings, as it was answered", func(w world) {
		w.stocked("1 10 EA 10.00", "2 10 EA 10.00", "3 10 EA 10.00")
		o := w.order(po1)
		bad := billOf("INV-1002", "a/1", o, "1 11 EA 12.00", "3 4 EA 10.00", "9 1 EA 1.00", "2 1 KG 3.00")
		bad.Total = cents(1)
		w.bring(documents{invoices: []payables.Invoice{billOf("INV-1001", "A-1", o), bad}})
		w.mustDecide("INV-1001", "hold", "NO_LINES")
		cmd := w.route("INV-1002", "reject", "DUPLICATE_INVOICE")
		cmd.Note = must(payables.ParseNote("Zoë: \"doppelt\" \\ $1 %s\n👩‍👩‍👧"))
		d := w.done(cmd).Answer.(payables.Decision)
		if len(d.Findings) < 5 || d.Findings[0].Code != payables.DuplicateInvoice || len(d.Findings[0].Invoices) != 1 || d.Note != cmd.Note.String() {
			w.Errorf("answered %+v", d)
		}
		if got, _ := get[payables.Decision](w, d.Ref()); !w.same(got, d) {
			w.Errorf("loaded %+v\nanswered %+v", got, d)
		}
		if i := w.invoice(bad.ID); i.Status != payables.Rejected || !w.same(*i.Decision, d) {
			w.Errorf("the invoice has %+v\nanswered %+v", i.Decision, d)
		}
		override := w.route("INV-1001", "approve", "MANUAL_OVERRIDE")
		override.Override, override.Note, override.MayOverride = true, must(payables.ParseNote("The goods are here, I counted them.")), true
		if d := w.done(override).Answer.(payables.Decision); !d.Override || !w.same(*w.invoice(invoiceID("INV-1001")).Decision, d) {
			w.Errorf("the override: %+v", d)
		}
		w.provedPayables()
	})

	law("the same decision again, under another key or by another principal, changes nothing and answers with the first", func(w world) {
		w.stocked("1 10 EA 10.00")
		w.bring(documents{invoices: []payables.Invoice{billOf("INV-1001", "A-1", w.order(po1), "1 10 EA 10.00")}})
		first := w.mustDecide("INV-1001", "approve", "CLEAN_MATCH")
		before := w.vendor(acme)
		for _, who := range []world{w, w.as("other-bot"), w} {
			k := key()
			o, err := who.do(k, who.route("INV-1001", "approve", "CLEAN_MATCH"))
			if err != nil || o.Replayed || !w.same(o.Answer, first) {
				w.Fatalf("again: %s, %+v", result(o, err), o.Answer)
			}
			if kept, there := who.outcome(k); !there || !w.same(kept, o) {
				w.Errorf("kept %+v, answered %+v", kept, o)
			}
			if again, err := who.do(k, who.route("INV-1001", "approve", "CLEAN_MATCH")); err != nil || !again.Replayed || !w.same(again.Answer, first) {
				w.Errorf("the repeat: %s", result(again, err))
			}
		}
		if after := w.vendor(acme); !w.same(before, after) || w.order(po1).Lines[0].Billed != ratioOf("10") {
			w.Errorf("it changed %+v into %+v", before, after)
		}
		_, err := w.do(key(), w.route("INV-1001", "reject", "PRICE_VARIANCE"))
		w.wantFault(err, "CONFLICT/already_decided")
		_, err = w.do(key(), w.route("INV-9999", "approve", "CLEAN_MATCH"))
		w.wantFault(err, "NOT_FOUND/invoice_not_found")
		w.provedPayables()
	})

	law("a repeat under the key is answered with the decision of then, whatever was decided since", func(w world) {
		w.stocked("1 10 EA 10.00")
		w.bring(documents{invoices: []payables.Invoice{billOf("INV-1001", "A-1", w.order(po1), "1 10 EA 10.10")}})
		hold := w.route("INV-1001", "hold", "NEEDS_REVIEW")
		first, err := w.do("k", hold)
		if err != nil {
			w.Fatal(err)
		}
		w.mustDecide("INV-1001", "hold", "CLEAN_MATCH")
		w.mustDecide("INV-1001", "hold", "NEEDS_REVIEW") // as the first, but not again: a decision of its own
		w.mustDecide("INV-1001", "approve", "CLEAN_MATCH")
		again, err := w.do("k", hold)
		if err != nil || !again.Replayed || !w.same(again.Answer, first.Answer) {
			w.Errorf("the repeat: %s, %+v", result(again, err), again.Answer)
		}
		if got, there := w.outcome("k"); !there || !w.same(got.Answer, first.Answer) {
			w.Errorf("kept %+v", got)
		}
		_, err = w.do("k", w.route("INV-1001", "approve", "CLEAN_MATCH"))
		w.wantFault(err, "CONFLICT/operation_key_reused")
		if v := w.vendor(acme); v.Head.Number != 8 { // vendor, order, receipt, invoice, four decisions
			w.Errorf("the vendor is at %d", v.Head.Number)
		}
		w.provedPayables()
	})

	law("a rejected original frees its number for a corrected one", func(w world) {
		w.stocked("1 10 EA 10.00")
		o := w.order(po1)
		w.bring(documents{invoices: []payables.Invoice{billOf("INV-1001", "A-1", o, "1 10 EA 20.00"), billOf("INV-1002", "a 01", o, "1 10 EA 10.00"), billOf("INV-1003", "A.1", o, "1 10 EA 10.00")}})
		_, err := w.do(key(), w.route("INV-1002", "approve", "CLEAN_MATCH"))
		w.wantFault(err, "POLICY_VIOLATION/duplicate_invoice")
		w.mustDecide("INV-1001", "reject", "PRICE_VARIANCE")
		w.mustDecide("INV-1002", "approve", "CLEAN_MATCH")
		_, err = w.do(key(), w.route("INV-1003", "approve", "CLEAN_MATCH"))
		w.wantFault(err, "POLICY_VIOLATION/duplicate_invoice")
		w.mustDecide("INV-1003", "reject", "DUPLICATE_INVOICE")
		claim, _ := get[payables.NumberClaim](w, w.invoice(invoiceID("INV-1001")).ClaimRef())
		want := []payables.Claimed{{Invoice: invoiceID("INV-1001"), Rejected: true}, {Invoice: invoiceID("INV-1002")}, {Invoice: invoiceID("INV-1003"), Rejected: true}}
		if !slices.Equal(claim.Claims, want) {
			w.Errorf("got %+v", claim)
		}
		w.provedPayables()
	})

	law("a credit note gives back what was billed, and not more than the invoice", func(w world) {
		w.stocked("1 10 EA 10.00", "2 2 BOX 12.00 EA=1/12")
		o := w.order(po1)
		bill := billOf("INV-1001", "A-1", o, "1 10 EA 10.00", "2 2 BOX 12.00")
		w.bring(documents{invoices: []payables.Invoice{bill, noteOf("INV-1002", "A-1", bill, "1 4 EA 10.00", "2 5 EA 1.00"), noteOf("INV-1003", "C-2", bill, "1 9 EA 10.00"),
			billOf("INV-1004", "A-4", o, "1 4 EA 10.00")}})
		w.mustDecide("INV-1001", "approve", "CLEAN_MATCH")
		_, err := w.do(key(), w.route("INV-1004", "approve", "CLEAN_MATCH"))
		w.wantFault(err, "POLICY_VIOLATION/blocking_findings")
		w.mustDecide("INV-1002", "approve", "CLEAN_MATCH")
		i, after := w.invoice(bill.ID), w.order(po1)
		if i.Credited != cents(45_00) || i.Lines[0].Credited != ratioOf("4") || i.Lines[1].Credited != ratioOf("5/12") || i.Status != payables.Approved {
			w.Errorf("credited %s: %+v", i.Credited, i.Lines)
		}
		if after.Lines[0].Billed != ratioOf("6") || after.Lines[1].Billed != ratioOf("19/12") {
			w.Errorf("billed %s and %s", after.Lines[0].Billed, after.Lines[1].Billed)
		}
		if v := w.vendor(acme); !slices.Equal(v.Balances, []money.Amount{cents(79_00)}) {
			w.Errorf("owed %v", v.Balances)
		}
		_, err = w.do(key(), w.route("INV-1003", "approve", "CLEAN_MATCH"))
		w.wantFault(err, "POLICY_VIOLATION/blocking_findings")
		w.mustDecide("INV-1004", "approve", "CLEAN_MATCH")
		w.provedPayables()
	})

	law("a credit note of another vendor moves nothing of the invoice that it names", func(w world) {
		w.stocked("1 10 EA 10.00")
		bill := billOf("INV-1001", "A-1", w.order(po1), "1 10 EA 10.00")
		note := noteOf("INV-1002", "A-1", bill, "1 4 EA 10.00")
		note.Vendor = bolt
		w.bring(documents{vendors: []payables.Vendor{{ID: bolt, Name: "Bolt KG"}}, invoices: []payables.Invoice{bill, note}})
		w.mustDecide("INV-1001", "approve", "CLEAN_MATCH")
		before := w.invoice(bill.ID)
		_, err := w.do(key(), w.route("INV-1002", "approve", "CLEAN_MATCH"))
		w.wantFault(err, "POLICY_VIOLATION/blocking_findings")
		cmd := w.route("INV-1002", "approve", "MANUAL_OVERRIDE")
		cmd.Override, cmd.MayOverride, cmd.Note = true, true, must(payables.ParseNote("Bolt pays for Acme."))
		w.done(cmd)
		if after := w.invoice(bill.ID); !w.same(before, after) || w.order(po1).Lines[0].Billed != ratioOf("10") {
			w.Errorf("it changed %+v into %+v, billed %s", before, after, w.order(po1).Lines[0].Billed)
		}
		if v := w.vendor(bolt); !slices.Equal(v.Balances, []money.Amount{cents(-40_00)}) {
			w.Errorf("owed %v", v.Balances)
		}
		w.provedPayables()
	})
}

func competingLaws(law add) {
	law("of two invoices for one receipt, both approved by many at once, one is", func(w world) {
		w.stocked("1 10 EA 10.00")
		o := w.order(po1)
		w.bring(documents{invoices: []payables.Invoice{billOf("INV-1001", "A-1", o, "1 6 EA 10.00"), billOf("INV-1002", "A-2", o, "1 6 EA 10.00")}})
		cmds := []payables.Route{w.route("INV-1001", "approve", "CLEAN_MATCH"), w.route("INV-1002", "approve", "CLEAN_MATCH")}
		var seen tally
		var decided tally
		atOnce(24, func(n int) {
			o, err := w.do(key(), cmds[n%2])
			seen.add(result(o, err))
			if err == nil {
				d := o.Answer.(payables.Decision)
				decided.add(d.Invoice.String() + " " + strconv.FormatInt(d.Number, 10))
			}
		})
		w.want(&seen, "12 POLICY_VIOLATION/blocking_findings", "12 done")
		if len(decided.n) != 1 {
			w.Errorf("decided were %s", &decided)
		}
		if l := w.order(po1).Lines[0]; l.Billed != ratioOf("6") {
			w.Errorf("billed %s of %s", l.Billed, l.Received)
		}
		w.provedPayables()
	})

	law("a duplicate is never approved, also not at once with its original", func(w world) {
		w.stocked("1 100 EA 10.00")
		o := w.order(po1)
		w.bring(documents{invoices: []payables.Invoice{billOf("INV-1001", "A-1", o, "1 6 EA 10.00"), billOf("INV-1002", "a 001", o, "1 6 EA 10.00"), billOf("INV-1003", "A-1", o, "1 6 EA 10.00")}})
		cmds := []payables.Route{w.route("INV-1001", "approve", "CLEAN_MATCH"), w.route("INV-1002", "approve", "CLEAN_MATCH"), w.route("INV-1003", "approve", "MANUAL_OVERRIDE")}
		cmds[2].Override, cmds[2].MayOverride, cmds[2].Note = true, true, must(payables.ParseNote("I know what I am doing."))
		var seen tally
		atOnce(24, func(n int) {
			o, err := w.do(key(), cmds[n%3])
			seen.add(result(o, err))
		})
		w.want(&seen, "16 POLICY_VIOLATION/duplicate_invoice", "8 done")
		if w.invoice(invoiceID("INV-1001")).Status != payables.Approved || w.order(po1).Lines[0].Billed != ratioOf("6") {
			w.Error("the original was not approved, once")
		}
		w.provedPayables()
	})

	law("of invoices that are entered at once under one number, one is the original", func(w world) {
		w.stocked("1 100 EA 10.00")
		o := w.order(po1)
		atOnce(8, func(n int) {
			w.done(payables.ImportInvoices{Invoices: []payables.Invoice{billOf(fmt.Sprintf("INV-%d", 1000+n), "A-1", o, "1 1 EA 10.00")}})
		})
		var seen tally
		atOnce(8, func(n int) {
			o, err := w.do(key(), w.route(fmt.Sprintf("INV-%d", 1000+n), "approve", "CLEAN_MATCH"))
			seen.add(result(o, err))
		})
		w.want(&seen, "1 done", "7 POLICY_VIOLATION/duplicate_invoice")
		w.provedPayables()
	})

	law("every history of competing approvals, credit notes and reads has an order in which each is right at its moment", func(w world) {
		const rounds, clients, calls = 3, 5, 6
		w.bring(documents{vendors: []payables.Vendor{{ID: acme, Name: "Acme"}}})
		for round := range rounds {
			o := orderOf(fmt.Sprintf("PO-%d", round+1), acme, usd, "1 10 EA 10.00")
			var bills []payables.Invoice
			for n, quantity := range competing {
				bills = append(bills, billOf(fmt.Sprintf("INV-%d", 1000*(round+1)+n), fmt.Sprintf("%d-%d", round, n), o, fmt.Sprintf("1 %d EA 10.00", quantity)))
			}
			note := noteOf(fmt.Sprintf("INV-%d", 1000*(round+1)+len(bills)), fmt.Sprintf("N-%d", round), bills[0], fmt.Sprintf("1 %d EA 10.00", competing[0]))
			w.bring(documents{orders: []payables.Order{o}, receipts: []payables.Receipt{goodsOf(fmt.Sprintf("GR-%d", round), o, payables.Received, "1 10 EA")}, invoices: append(bills, note)})
			var cmds []payables.Route
			for _, b := range append(bills, note) {
				cmds = append(cmds, w.route(b.ID.String(), "approve", "CLEAN_MATCH"))
			}
			histories := make([][]porcupine.Operation, clients)
			began := time.Now()
			atOnce(clients, func(client int) {
				for range calls {
					in := rand.N(len(cmds)+1) - 1
					at := time.Since(began)
					var out claimed
					if in < 0 {
						out.billed, _ = w.order(o.ID).Lines[0].Billed.Fraction()
					} else {
						_, err := w.do(key(), cmds[in])
						out.refused = err != nil
						if err != nil && faultOf(err) != "POLICY_VIOLATION/blocking_findings" {
							w.Errorf("%+v: %v", cmds[in].Request, err)
						}
					}
					histories[client] = append(histories[client], porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(at), Return: int64(time.Since(began))})
				}
			})
			if got := porcupine.CheckOperationsTimeout(claims, slices.Concat(histories...), 30*time.Second); got != porcupine.Ok {
				w.Errorf("round %d is not linearizable (%s): %+v", round, got, histories)
			}
		}
		w.provedPayables()
	})
}

// competing are what each of the invoices bills of the ten that were received.
var competing = [...]int64{7, 4, 3, 6}

// claimed is what came of an approval, or what a read saw.
type claimed struct {
	refused bool
	billed  int64
}

// claim is one line of an order as a ledger that does one thing at a time would
// have it. Input -1 is a read, the one after the invoices the credit note on the
// first of them.
type claim struct {
	billed   int64
	approved [len(competing) + 1]bool
}

var claims = porcupine.Model{
	Init: func() any { return claim{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(claim), input.(int), output.(claimed)
		switch {
		case in < 0:
			return out.billed == s.billed, s
		case s.approved[in]:
			return !out.refused, s
		case in == len(competing) && !s.approved[0]: // there is nothing to credit
			return out.refused, s
		case in == len(competing):
			s.billed, s.approved[in] = s.billed-competing[0], true
			return !out.refused, s
		case s.billed+competing[in] > 10:
			return out.refused, s
		}
		s.billed, s.approved[in] = s.billed+competing[in], true
		return !out.refused, s
	},
}

func countingLaws(law add) {
	law("payables are counted, each kind by itself", func(w world) {
		o := orderOf("PO-1", acme, usd, "1 10 EA 10.00")
		w.bring(documents{
			vendors: []payables.Vendor{{ID: acme, Name: "Acme Ltd"}, {ID: bolt, Name: "Bolt"}}, orders: []payables.Order{o},
			receipts: []payables.Receipt{goodsOf("GR-1", o, payables.Received, "1 4 EA"), goodsOf("GR-2", o, payables.Received, "1 6 EA"), goodsOf("GR-3", o, payables.Returned, "1 1 EA")},
			invoices: []payables.Invoice{billOf("INV-1001", "A-1", o, "1 1 EA 10.00"), billOf("INV-1002", "a 1", o, "1 1 EA 10.00"), billOf("INV-1003", "A-2", o, "1 1 EA 10.00"), billOf("INV-1004", "A-3", o, "1 1 EA 10.00")},
		})
		w.mustDecide("INV-1001", "approve", "CLEAN_MATCH")
		again := w.route("INV-1001", "approve", "CLEAN_MATCH")
		w.done(again) // decides nothing new
		w.mustDecide("INV-1002", "reject", "DUPLICATE_INVOICE")
		n := w.counted()
		if n.Versions != 12 || n.Imported != 10 {
			w.Errorf("the versions sum to %d, and %d documents were brought in", n.Versions, n.Imported)
		}
		if want := map[string]int64{payables.ImportVendorsName: 2, payables.ImportOrdersName: 1, payables.ImportReceiptsName: 3, payables.ImportInvoicesName: 4, payables.RouteName: 2}; !maps.Equal(n.Entries, want) {
			w.Errorf("the entries are %v", n.Entries)
		}
		if want := map[string]int64{payables.ImportVendorsName: 1, payables.ImportOrdersName: 1, payables.ImportReceiptsName: 1, payables.ImportInvoicesName: 1, payables.RouteName: 3}; n.Outcomes != nil && !maps.Equal(n.Outcomes, want) {
			w.Errorf("the outcomes are %v", n.Outcomes)
		}
		if n.Outcomes != nil && (n.Answers[customers.ImportKind] != 4 || n.Answers[payables.DecisionKind] != 3) {
			w.Errorf("the answers are %v", n.Answers)
		}
		for kind, want := range map[ledger.Kind]int64{
			customers.ImportKind: 4, payables.VendorKind: 2, payables.OrderKind: 1, payables.ReceiptKind: 3, payables.InvoiceKind: 4, payables.NumberClaimKind: 4, payables.DecisionKind: 2,
		} {
			if n.Records[kind] != want {
				w.Errorf("there are %d records of the kind %s, want %d", n.Records[kind], kind.Name, want)
			}
		}
	}, Counts)

	law("a count is of one moment: all that one write makes is counted, or nothing", func(w world) {
		const vendors, writers, each = 16, 2, 12
		var d documents
		var orders []payables.Order
		for n := range vendors {
			v := payables.Vendor{ID: must(payables.ParseVendorID(fmt.Sprint("V-", n))), Name: "Vendor"}
			d.vendors, orders = append(d.vendors, v), append(orders, orderOf(fmt.Sprint("PO-", n), v.ID, usd, "1 10 EA 10.00"))
		}
		w.bring(d)
		var written atomic.Int64
		counts := 0
		atOnce(writers+1, func(i int) {
			if i < writers {
				for k := range each {
					var bills []payables.Invoice
					for n, o := range orders {
						bills = append(bills, billOf(fmt.Sprintf("INV-%d%02d%02d", i+1, k, n), fmt.Sprintf("%d-%d", i, k), o, "1 1 EA 10.00"))
					}
					if o, err := w.do(key(), payables.ImportInvoices{Invoices: bills}); err != nil {
						w.Errorf("an import: %s", result(o, err))
					}
					written.Add(1)
				}
				return
			}
			for written.Load() < writers*each {
				n := w.counted()
				counts++
				made := n.Entries[payables.ImportInvoicesName]
				if made%vendors != 0 || n.Versions != vendors+made || n.Imported != vendors+made ||
					n.Records[payables.InvoiceKind] != made || n.Records[payables.NumberClaimKind] != made || n.Records[customers.ImportKind] != 1+made/vendors ||
					n.Outcomes != nil && (n.Outcomes[payables.ImportInvoicesName] != made/vendors || n.Answers[customers.ImportKind] != n.Records[customers.ImportKind]) {
					w.Errorf("%+v", n)
					return
				}
			}
		})
		if counts == 0 {
			w.Error("nothing was counted meanwhile")
		}
	}, Counts)
}

// documents are what an import brings in, in this order.
type documents struct {
	vendors  []payables.Vendor
	orders   []payables.Order
	receipts []payables.Receipt
	invoices []payables.Invoice
}

func (w world) bring(d documents) {
	w.Helper()
	if len(d.vendors) > 0 {
		w.done(payables.ImportVendors{Vendors: d.vendors})
	}
	if len(d.orders) > 0 {
		w.done(payables.ImportOrders{Orders: d.orders})
	}
	if len(d.receipts) > 0 {
		w.done(payables.ImportReceipts{Receipts: d.receipts})
	}
	if len(d.invoices) > 0 {
		w.done(payables.ImportInvoices{Invoices: d.invoices})
	}
}

// stocked brings in ACME and PO-1 with the lines, all of it received.
func (w world) stocked(lines ...string) {
	w.Helper()
	o := orderOf("PO-1", acme, usd, lines...)
	r := goodsOf("GR-1", o, payables.Received)
	for _, l := range o.Lines {
		r.Lines = append(r.Lines, payables.ReceiptLine{OrderLine: l.Line, Quantity: l.Quantity, Unit: l.Unit})
	}
	w.bring(documents{vendors: []payables.Vendor{{ID: acme, Name: "Acme Ltd"}}, orders: []payables.Order{o}, receipts: []payables.Receipt{r}})
}

// want1 checks the answer of an import.
func (w world) want1(o ledger.Outcome, opened, unchanged int) {
	w.Helper()
	if i := o.Answer.(customers.Imported); i.Opened != opened || i.Unchanged != unchanged {
		w.Errorf("answered %+v, want %d and %d", i, opened, unchanged)
	}
}

func (w world) payables() ports.Payables { return w.Store.(ports.Payables) }

func (w world) vendor(id payables.VendorID) payables.Vendor {
	w.Helper()
	return loadedAt[payables.Vendor](w, id.Ref())
}

func (w world) order(id payables.OrderID) payables.Order {
	w.Helper()
	return loadedAt[payables.Order](w, id.Ref())
}

func (w world) invoice(id payables.InvoiceID) payables.Invoice {
	w.Helper()
	return loadedAt[payables.Invoice](w, id.Ref())
}

// loadedAt loads a record that must be there.
func loadedAt[R ledger.Record](w world, ref ledger.Ref) R {
	w.Helper()
	r, ok := get[R](w, ref)
	if !ok {
		w.Fatalf("there is no %s %s", ref.Kind.Name, ref.ID)
	}
	return r
}

// invoices lists all invoices of the tenant that the filter matches.
func (w world) invoices(f ports.InvoiceFilter) []payables.Invoice {
	w.Helper()
	list, err := w.payables().ListInvoices(w.ctx, w.tenant, f, "", math.MaxInt32)
	if err != nil {
		w.Fatalf("ListInvoices: %v", err)
	}
	return list
}

// vendors lists all vendors of the tenant.
func (w world) vendors() []payables.Vendor {
	w.Helper()
	list, err := w.payables().ListVendors(w.ctx, w.tenant, "", math.MaxInt32)
	if err != nil {
		w.Fatalf("ListVendors: %v", err)
	}
	return list
}

// vendorEntries lists all entries of a vendor.
func (w world) vendorEntries(v payables.VendorID) []journal.Entry {
	w.Helper()
	list, err := w.ListEntries(w.ctx, w.tenant, v.Subject(), 0, math.MaxInt32)
	if err != nil {
		w.Fatalf("ListEntries(%s): %v", v, err)
	}
	return list
}

// route is the command about an invoice, with its links as they are on record;
// without an invoice it has none.
func (w world) route(id, action, reason string) payables.Route {
	w.Helper()
	cmd := payables.Route{
		Request:   payables.Request{Invoice: invoiceID(id), Action: must(payables.ParseAction(action)), Reason: must(payables.ParseReasonCode(reason))},
		Authority: payables.Authority{Tolerance: payables.DefaultTolerance()},
	}
	i, ok := get[payables.Invoice](w, cmd.Invoice.Ref())
	if !ok {
		return cmd
	}
	if c, ok := get[payables.Invoice](w, i.Credits.Ref()); ok {
		cmd.Links = payables.LinksOf(i, &c)
	} else {
		cmd.Links = payables.LinksOf(i, nil)
	}
	return cmd
}

// mustDecide decides about an invoice, which must work.
func (w world) mustDecide(id, action, reason string) payables.Decision {
	w.Helper()
	return w.done(w.route(id, action, reason)).Answer.(payables.Decision)
}

// provedPayables checks that each vendor's entries verify and add up to its
// record, its documents, their states and the decisions, that what is billed and
// credited is what the documents come to, and that what is owed is what was
// approved less what was credited.
func (w world) provedPayables() {
	w.Helper()
	owed := map[payables.VendorID]map[money.Currency]*big.Int{}
	for _, h := range w.invoices(ports.InvoiceFilter{}) {
		if h.Status != payables.Approved {
			continue
		}
		if owed[h.Vendor] == nil {
			owed[h.Vendor] = map[money.Currency]*big.Int{}
		}
		sum := owed[h.Vendor][h.Currency]
		if sum == nil {
			sum = new(big.Int)
			owed[h.Vendor][h.Currency] = sum
		}
		if h.Document == payables.Bill {
			sum.Add(sum, big.NewInt(h.Total.Minor()))
		} else {
			sum.Sub(sum, big.NewInt(h.Total.Minor()))
		}
	}
	for _, v := range w.vendors() {
		h := payables.NewHistory(v)
		for _, e := range w.vendorEntries(v.ID) {
			if err := h.Add(e); err != nil {
				w.Fatal(err)
			}
			if e.Operation().Tenant != w.tenant {
				w.Fatalf("entry %d of %s is of the tenant %s", e.Number(), v.ID, e.Operation().Tenant)
			}
			ref, _ := h.Beside(e)
			if err := h.Compare(w.views(ref), ref, e); err != nil {
				w.Fatal(err)
			}
		}
		if err := h.Close(); err != nil {
			w.Fatal(err)
		}
		if err := w.recomputed(h); err != nil {
			w.Fatal(err)
		}
		for _, b := range v.Balances {
			sum := owed[v.ID][b.Currency()]
			if sum == nil {
				sum = new(big.Int)
			}
			if sum.Cmp(big.NewInt(b.Minor())) != 0 {
				w.Errorf("%s is owed %s, its invoices say %s", v.ID, b, sum)
			}
			delete(owed[v.ID], b.Currency())
		}
		for c, sum := range owed[v.ID] {
			if sum.Sign() != 0 {
				w.Errorf("%s is owed nothing in %s, its invoices say %s", v.ID, c, sum)
			}
		}
	}
}

// recomputed compares the state of a vendor's documents with its history and with
// each other.
func (w world) recomputed(h *payables.History) error {
	w.Helper()
	var all []error
	for _, ref := range h.States() {
		all = append(all, h.CompareState(w.views(ref), ref))
	}
	for _, ref := range h.Numbers() {
		all = append(all, h.CompareNumber(w.views(ref), ref))
	}
	for _, ref := range h.Credited() {
		c, err := h.Crediting(w.views(ref), ref)
		if err != nil {
			return err
		}
		for _, note := range c.Notes() {
			refs := []ledger.Ref{note}
			if c.Order() != (payables.OrderID{}) {
				refs = append(refs, c.Order().Ref())
			}
			all = append(all, c.Add(w.views(refs...), note))
		}
		all = append(all, c.Compare())
	}
	for _, ref := range h.Orders() {
		view := w.views(ref)
		sum, err := h.Billing(view, ref)
		if err != nil {
			return err
		}
		for _, i := range w.invoices(ports.InvoiceFilter{Order: sum.Order(), Status: payables.Approved}) {
			all = append(all, sum.Add(w.invoice(i.ID)))
		}
		all = append(all, sum.Compare(view))
	}
	return errors.Join(all...)
}

// views loads records.
func (w world) views(refs ...ledger.Ref) ledger.View {
	w.Helper()
	view, err := w.Load(w.ctx, w.tenant, refs...)
	if err != nil {
		w.Fatalf("Load(%v): %v", refs, err)
	}
	return view
}

// filters are all filters of few statuses, vendors, orders and currencies.
func filters() []ports.InvoiceFilter {
	var all []ports.InvoiceFilter
	for _, s := range append(payables.Statuses(), payables.Status{}) {
		for _, v := range []payables.VendorID{{}, acme, bolt} {
			for _, o := range []payables.OrderID{{}, po1, must(payables.ParseOrderID("PO-2"))} {
				for _, c := range []money.Currency{{}, usd, currencyOf("EUR")} {
					f := ports.InvoiceFilter{Status: s, Vendor: v, Order: o, Currency: c}
					all = append(all, f)
					f.Undecided = true
					all = append(all, f)
				}
			}
		}
	}
	return all
}

func matches(f ports.InvoiceFilter, i payables.Invoice) bool {
	return (f.Status == payables.Status{} || f.Status == i.Status) && (f.Vendor == payables.VendorID{} || f.Vendor == i.Vendor) &&
		(f.Order == payables.OrderID{} || f.Order == i.Order) && (f.Currency == money.Currency{} || f.Currency.String() == i.Currency.String()) && !(f.Undecided && i.Status.Final())
}

var (
	acme   = must(payables.ParseVendorID("ACME"))
	bolt   = must(payables.ParseVendorID("BOLT"))
	po1    = must(payables.ParseOrderID("PO-1"))
	widget = must(payables.ParseSKU("WIDGET/2.5"))
	march1 = must(payables.ParseDate("2026-03-01"))
)

func invoiceID(s string) payables.InvoiceID { return must(payables.ParseInvoiceID(s)) }

func currencyOf(code string) money.Currency { return must(money.ParseCurrency(code)) }

func amountOf(literal string, c money.Currency) money.Amount {
	return must(must(money.ParseDecimal(literal)).In(c))
}

func ratioOf(s string) payables.Ratio {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return must(payables.RestoreRatio(r.Num().Int64(), r.Denom().Int64()))
}

// orderLine reads "1 10 EA 10.00 BOX=12/1": line, quantity, unit, unit price,
// conversions.
func orderLine(c money.Currency, spec string) payables.OrderLine {
	f := strings.Fields(spec)
	l := payables.OrderLine{Line: must(strconv.Atoi(f[0])), SKU: widget, Quantity: must(payables.ParseQuantity(f[1])), Unit: must(payables.ParseUnit(f[2])), UnitPrice: amountOf(f[3], c)}
	for _, x := range f[4:] {
		unit, factors, _ := strings.Cut(x, "=")
		n, d, _ := strings.Cut(factors, "/")
		l.Conversions = append(l.Conversions, payables.Conversion{Unit: must(payables.ParseUnit(unit)), Numerator: must(strconv.ParseInt(n, 10, 64)), Denominator: must(strconv.ParseInt(d, 10, 64))})
	}
	return l
}

func orderOf(id string, v payables.VendorID, c money.Currency, lines ...string) payables.Order {
	o := payables.Order{ID: must(payables.ParseOrderID(id)), Vendor: v, Currency: c, FreightLimit: money.FromMinor(0, c), FreightBilled: money.FromMinor(0, c)}
	for _, spec := range lines {
		o.Lines = append(o.Lines, orderLine(c, spec))
	}
	return o
}

// goodsLine reads "1 10 EA".
func goodsLine(spec string) payables.ReceiptLine {
	f := strings.Fields(spec)
	return payables.ReceiptLine{OrderLine: must(strconv.Atoi(f[0])), Quantity: must(payables.ParseQuantity(f[1])), Unit: must(payables.ParseUnit(f[2]))}
}

func goodsOf(id string, o payables.Order, way payables.Movement, lines ...string) payables.Receipt {
	r := payables.Receipt{ID: must(payables.ParseReceiptID(id)), Order: o.ID, Vendor: o.Vendor, Movement: way, ReceivedAt: march1}
	for _, spec := range lines {
		r.Lines = append(r.Lines, goodsLine(spec))
	}
	return r
}

// billLine reads "1 10 EA 10.00": line of the order, quantity, unit, unit price.
func billLine(c money.Currency, line int, spec string) payables.InvoiceLine {
	f := strings.Fields(spec)
	return payables.InvoiceLine{Line: line, OrderLine: must(strconv.Atoi(f[0])), SKU: widget, Quantity: must(payables.ParseQuantity(f[1])), Unit: must(payables.ParseUnit(f[2])), UnitPrice: amountOf(f[3], c)}
}

// billOf is an invoice on an order; its amounts and its total are right.
func billOf(id, number string, o payables.Order, lines ...string) payables.Invoice {
	none := money.FromMinor(0, o.Currency)
	i := payables.Invoice{
		ID: invoiceID(id), Number: must(payables.ParseNumber(number)), Document: payables.Bill, Vendor: o.Vendor, Order: o.ID, Currency: o.Currency,
		Tax: none, Freight: none, Date: march1, Status: payables.Open, Credited: none,
	}
	for n, spec := range lines {
		i.Lines = append(i.Lines, billLine(o.Currency, n+1, spec))
	}
	return priced(i)
}

// noteOf is a credit note on an invoice, or on none.
func noteOf(id, number string, credited payables.Invoice, lines ...string) payables.Invoice {
	c := credited.Currency
	if c == (money.Currency{}) {
		c = usd
	}
	n := billOf(id, number, payables.Order{Vendor: credited.Vendor, Currency: c}, lines...)
	n.Document, n.Credits = payables.CreditNote, credited.ID
	return n
}

// priced is the invoice with the amounts and the total that follow from the rest.
func priced(i payables.Invoice) payables.Invoice {
	i.Lines = slices.Clone(i.Lines)
	total := i.Tax.Minor() + i.Freight.Minor()
	for n := range i.Lines {
		l := &i.Lines[n]
		r := new(big.Rat).Mul(big.NewRat(l.Quantity.Micro(), 1_000_000), big.NewRat(l.UnitPrice.Minor(), 1))
		r.Add(r, big.NewRat(1, 2))
		l.Amount = money.FromMinor(new(big.Int).Div(r.Num(), r.Denom()).Int64(), i.Currency)
		total += l.Amount.Minor()
	}
	i.Total = money.FromMinor(total, i.Currency)
	return i
}
