package portstest

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// withPayables begins a sequence of what is done with documents of vendors.
func (p *pair) withPayables(t *rapid.T) map[string]func(*rapid.T) {
	p.ask(t, "operator", payables.ImportVendors{Vendors: []payables.Vendor{{ID: acme, Name: "Acme"}, {ID: bolt, Name: "Bolt"}}})
	p.ask(t, "operator", payables.ImportOrders{Orders: []payables.Order{someOrders[0], someOrders[1]}})
	p.ask(t, "operator", payables.ImportReceipts{Receipts: []payables.Receipt{
		goodsOf("GR-0", someOrders[0], payables.Received, "1 6 EA", "2 1 BOX"), goodsOf("GR-1", someOrders[1], payables.Received, "1 6 EA", "2 1 KG"),
	}})
	for range 3 {
		p.ask(t, "operator", payables.ImportInvoices{Invoices: []payables.Invoice{someInvoice.Draw(t, "invoice")}})
	}
	return map[string]func(*rapid.T){
		"documents":        p.documents,
		"invoices":         p.invoices,
		"invoices 2":       p.invoices,
		"route":            p.route,
		"route 2":          p.route,
		"route 3":          p.route,
		"route 4":          p.route,
		"route at once":    p.routeAtOnce,
		"credit":           p.credit,
		"list invoices":    p.listInvoices,
		"list documents":   p.listDocuments,
		"read documents":   p.readDocuments,
		"history of one":   p.vendorJournal,
		"sum the invoices": p.sums,
	}
}

// Few documents with few contents, so that they meet: the same again, another
// under the same id, the same number, the same order.
var (
	someOrders = []payables.Order{
		orderOf("PO-1", acme, usd, "1 10 EA 1.00", "2 4 BOX 12.00 EA=1/12 PAL=7/1"),
		orderOf("PO-2", bolt, currencyOf("JPY"), "1 10 EA 100", "2 2.5 KG 3"),
		orderOf("PO-2", bolt, usd, "1 10 EA 1.00"),
		orderOf("PO-3", acme, usd, "1 9 EA 1.00", "5 9 EA 2.00"),
	}
	someVendors = rapid.SampledFrom([]payables.Vendor{{ID: acme, Name: "Acme"}, {ID: bolt, Name: "Bolt"}, {ID: bolt, Name: "Bolt KG"}, {ID: must(payables.ParseVendorID("C3")), Name: "C"}, {Name: "nobody"}})
	someReceipt = rapid.Custom(func(t *rapid.T) payables.Receipt {
		o := rapid.SampledFrom(someOrders).Draw(t, "order")
		way := rapid.SampledFrom([]payables.Movement{payables.Received, payables.Received, payables.Returned}).Draw(t, "movement")
		return goodsOf(fmt.Sprintf("GR-%d", rapid.IntRange(0, 5).Draw(t, "receipt")), o, way,
			rapid.SliceOfN(rapid.SampledFrom([]string{"1 2 EA", "1 0.5 EA", "2 1 BOX", "2 5 EA", "2 1 PAL", "5 1 EA"}), 0, 3).Draw(t, "lines")...)
	})
	someInvoiceNumber = rapid.IntRange(0, 5)
	someInvoice       = rapid.Custom(func(t *rapid.T) payables.Invoice {
		o := rapid.SampledFrom(someOrders[:2]).Draw(t, "order")
		id := fmt.Sprintf("INV-%04d", someInvoiceNumber.Draw(t, "invoice"))
		number := rapid.SampledFrom([]string{"A-1", "a/001", "A-2", "B 7", "Ｂ７", "C"}).Draw(t, "number")
		prices := map[money.Currency][]string{usd: {"1 2 EA 1.00", "1 3 EA 1.00", "1 1 EA 1.01", "2 1 BOX 12.00", "2 7 EA 1.00", "2 1 EA 9.00", "4 1 EA 1.00"}, currencyOf("JPY"): {"1 2 EA 100", "2 0.5 KG 3", "2 1 KG 4"}}
		lines := rapid.SliceOfN(rapid.SampledFrom(prices[o.Currency]), 0, 3).Draw(t, "lines")
		i := billOf(id, number, o, lines...)
		switch rapid.IntRange(0, 9).Draw(t, "sort") {
		case 0:
			i.Order = payables.OrderID{}
		case 1:
			i.Total = money.FromMinor(i.Total.Minor()+1, i.Currency)
		case 2, 3, 5:
			i = noteOf(id, number, i, lines...)
			i.Credits = invoiceID(fmt.Sprintf("INV-%04d", someInvoiceNumber.Draw(t, "credits")))
		case 4:
			i.Vendor = rapid.SampledFrom([]payables.VendorID{acme, bolt}).Draw(t, "vendor")
		}
		return i
	})
	someAction = rapid.SampledFrom([][2]string{
		{"approve", "CLEAN_MATCH"}, {"approve", "CLEAN_MATCH"}, {"approve", "CLEAN_MATCH"}, {"approve", "MANUAL_OVERRIDE"}, {"hold", "NEEDS_REVIEW"}, {"hold", "PRICE_VARIANCE"},
		{"reject", "DUPLICATE_INVOICE"}, {"reject", "PRICE_VARIANCE"}, {"reject", "BILLED_OVER_RECEIVED"}, {"reject", "MANUAL_OVERRIDE"},
	})
	someNote   = rapid.SampledFrom([]string{"", "Counted in the hall: all of it is there.", "„egal“ \\ $1"})
	someFilter = rapid.SampledFrom(filters())
)

func (p *pair) ask(t *rapid.T, principal string, cmd ledger.Command) {
	p.do(t, request{principal, fmt.Sprintf("own-%d", len(p.asked)), cmd})
}

func (p *pair) documents(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "sort") {
	case 0:
		p.ask(t, "operator", payables.ImportVendors{Vendors: rapid.SliceOfN(someVendors, 1, 2).Draw(t, "vendors")})
	case 1:
		p.ask(t, "operator", payables.ImportOrders{Orders: rapid.SliceOfN(rapid.SampledFrom(someOrders), 1, 2).Draw(t, "orders")})
	default:
		p.ask(t, "operator", payables.ImportReceipts{Receipts: rapid.SliceOfN(someReceipt, 1, 2).Draw(t, "receipts")})
	}
}

func (p *pair) invoices(t *rapid.T) {
	p.ask(t, "operator", payables.ImportInvoices{Invoices: rapid.SliceOfN(someInvoice, 1, 3).Draw(t, "invoices")})
}

func (p *pair) route(t *rapid.T) { p.ask(t, someone.Draw(t, "principal"), p.someRoute(t)) }

func (p *pair) someRoute(t *rapid.T) payables.Route {
	action := someAction.Draw(t, "action")
	cmd := p.model.route(fmt.Sprintf("INV-%04d", someInvoiceNumber.Draw(t, "invoice")), action[0], action[1])
	if note := someNote.Draw(t, "note"); note != "" {
		cmd.Note = must(payables.ParseNote(note))
	}
	cmd.Override = action[1] == "MANUAL_OVERRIDE" && rapid.Bool().Draw(t, "override")
	cmd.MayOverride = rapid.Bool().Draw(t, "may override")
	return cmd
}

// credit enters a credit note on an invoice that was approved, and asks to
// approve it.
func (p *pair) credit(t *rapid.T) {
	approved := slices.DeleteFunc(p.model.invoices(ports.InvoiceFilter{Status: payables.Approved}), func(i payables.Invoice) bool { return i.Document != payables.Bill })
	if len(approved) == 0 {
		t.Skip("nothing is approved")
	}
	bill := p.model.invoice(rapid.SampledFrom(approved).Draw(t, "bill").ID)
	var lines []string
	for _, l := range bill.Lines {
		lines = append(lines, fmt.Sprintf("%d %s %s %s", l.OrderLine, rapid.SampledFrom([]string{"1", "0.5"}).Draw(t, "quantity"), l.Unit, l.UnitPrice.Major()))
	}
	note := noteOf(fmt.Sprintf("INV-%04d", rapid.IntRange(20, 29).Draw(t, "note")), rapid.SampledFrom([]string{"A-1", "N-1", "N-2", "N-3", "N-4"}).Draw(t, "number"), bill, lines...)
	p.ask(t, "operator", payables.ImportInvoices{Invoices: []payables.Invoice{note}})
	p.ask(t, someone.Draw(t, "principal"), p.model.route(note.ID.String(), "approve", "CLEAN_MATCH"))
}

// routeAtOnce runs several commands of one vendor at once, and on the model
// those that were done, one at a time in the order of the vendor's journal: a
// batch equals its writes.
func (p *pair) routeAtOnce(t *rapid.T) {
	if slices.Contains(p.store.lacks, Stamps) {
		t.Skip("the store names and dates by itself")
	}
	type attempt struct {
		op     operation.Operation
		cmd    ledger.Command
		answer ledger.Record
		number int64 // of its first entry
	}
	vendor := rapid.SampledFrom([]payables.VendorID{acme, bolt}).Draw(t, "vendor")
	var all []*attempt
	for n := range rapid.IntRange(2, 6).Draw(t, "commands") {
		a := &attempt{op: p.store.asked(fmt.Sprintf("at-once-%d-%d", len(p.asked), n))}
		if cmd := p.someRoute(t); cmd.Vendor == vendor {
			a.cmd = cmd
		} else if vendor == acme {
			a.cmd = payables.ImportReceipts{Receipts: []payables.Receipt{goodsOf(fmt.Sprintf("GR-%d", 10+rapid.IntRange(0, 3).Draw(t, "receipt")), someOrders[0], payables.Received, "1 1 EA")}}
		} else {
			continue
		}
		all = append(all, a)
	}
	errs := make([]error, len(all))
	atOnce(len(all), func(n int) {
		o, err := p.store.Do(p.store.ctx, all[n].op, all[n].cmd)
		all[n].answer, errs[n] = o.Answer, err
	})
	numbers := map[operation.ID]int64{}
	for _, e := range slices.Backward(p.store.vendorEntries(vendor)) {
		numbers[e.Operation().ID] = e.Number()
	}
	var booked []*attempt
	for n, a := range all {
		if err := errs[n]; err != nil {
			if f := faultOf(err); f == "" || f[:3] == "no " {
				t.Fatalf("at once: %v", err)
			}
		} else if a.number = numbers[a.op.ID]; a.number > 0 { // else it was done before
			booked = append(booked, a)
		}
	}
	slices.SortFunc(booked, func(a, b *attempt) int { return cmp.Compare(a.number, b.number) })
	var refs []ledger.Ref
	for _, a := range booked {
		o, err := p.model.Do(p.model.ctx, a.op, a.cmd)
		if err != nil {
			t.Fatalf("entry %d: done at once, alone: %v", a.number, err)
		}
		p.same(t, "the answer at once", a.answer, o.Answer)
		refs = append(append(refs, a.cmd.Reads()...), o.Ref())
	}
	for _, ref := range refs {
		p.load(t, ref)
	}
	p.entries(t, p.store.vendorEntries(vendor), p.model.vendorEntries(vendor))
}

func (p *pair) listInvoices(t *rapid.T) {
	f, after, limit := someFilter.Draw(t, "filter"), rapid.SampledFrom([]string{"", "INV-0003", "INV-00035", "x"}).Draw(t, "after"), rapid.IntRange(-1, 5).Draw(t, "limit")
	got, err := p.store.payables().ListInvoices(p.store.ctx, p.store.tenant, f, after, limit)
	want, _ := p.model.payables().ListInvoices(p.model.ctx, p.model.tenant, f, after, limit)
	lists(t, p, fmt.Sprintf("invoices of %+v", f), got, want, err)
	v := rapid.SampledFrom([]payables.VendorID{acme, bolt}).Draw(t, "vendor")
	before := rapid.Int64Range(-1, 12).Draw(t, "before")
	got, err = p.store.payables().LatestInvoices(p.store.ctx, p.store.tenant, v, before, limit)
	want, _ = p.model.payables().LatestInvoices(p.model.ctx, p.model.tenant, v, before, limit)
	lists(t, p, fmt.Sprintf("the latest invoices before %d", before), got, want, err)
}

func (p *pair) listDocuments(t *rapid.T) {
	limit := rapid.IntRange(-1, 3).Draw(t, "limit")
	vendors, err := p.store.payables().ListVendors(p.store.ctx, p.store.tenant, rapid.SampledFrom([]string{"", "ACME", "B"}).Draw(t, "after"), limit)
	for _, v := range vendors {
		p.same(t, "a vendor", v, p.model.vendor(v.ID))
	}
	if err != nil || len(vendors) > max(limit, 0) {
		t.Fatalf("a page of %d vendors: %d, %v", limit, len(vendors), err)
	}
	o, after := rapid.SampledFrom(someOrders).Draw(t, "order").ID, rapid.SampledFrom([]string{"", "GR-1", "GR-11"}).Draw(t, "after receipt")
	got, err := p.store.payables().ListReceipts(p.store.ctx, p.store.tenant, o, after, limit)
	want, _ := p.model.payables().ListReceipts(p.model.ctx, p.model.tenant, o, after, limit)
	lists(t, p, "receipts", got, want, err)
}

func (p *pair) readDocuments(t *rapid.T) {
	refs := []ledger.Ref{invoiceID(fmt.Sprintf("INV-%04d", someInvoiceNumber.Draw(t, "invoice"))).Ref(), payables.DecisionRef(acme, rapid.Int64Range(0, 12).Draw(t, "number")),
		rapid.SampledFrom(someOrders).Draw(t, "order").Ref(), acme.Ref(), bolt.Ref()}
	for _, ref := range refs {
		p.load(t, ref)
	}
}

func (p *pair) vendorJournal(t *rapid.T) {
	s, after, limit := rapid.SampledFrom([]journal.Subject{acme.Subject(), bolt.Subject()}).Draw(t, "subject"), rapid.Int64Range(-1, 12).Draw(t, "after"), rapid.IntRange(0, 5).Draw(t, "limit")
	got, err := p.store.ListEntries(p.store.ctx, p.store.tenant, s, after, limit)
	want, _ := p.model.ListEntries(p.model.ctx, p.model.tenant, s, after, limit)
	if err != nil {
		t.Fatalf("the entries: %v", err)
	}
	p.entries(t, got, want)
}

func (p *pair) sums(t *rapid.T) {
	got, err := p.store.payables().SumInvoices(p.store.ctx, p.store.tenant)
	want, _ := p.model.payables().SumInvoices(p.model.ctx, p.model.tenant)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("the sums: got %v, %v\nthe model %v", got, err, want)
	}
}

// finishPayables compares all documents there are, and proves them.
func (p *pair) finishPayables(t *rapid.T) {
	lists(t, p, "vendors", p.store.vendors(), p.model.vendors(), nil)
	for _, v := range p.model.vendors() {
		p.entries(t, p.store.vendorEntries(v.ID), p.model.vendorEntries(v.ID))
	}
	lists(t, p, "invoices", p.store.invoices(ports.InvoiceFilter{}), p.model.invoices(ports.InvoiceFilter{}), nil)
	for _, i := range p.model.invoices(ports.InvoiceFilter{}) {
		p.load(t, i.Ref())
		p.load(t, i.ClaimRef())
	}
	for _, o := range someOrders {
		p.load(t, o.Ref())
	}
	p.sums(t)
	p.store.provedPayables()
}
