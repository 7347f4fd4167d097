package payables_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

// issues writes the issues of a refusal as "position field code".
func issues(err error) []string {
	f := fault.Of(err)
	if f == nil || f.Code != fault.InvalidInput {
		return []string{fmt.Sprint(err)}
	}
	all := []string{}
	for _, i := range f.Issues {
		if len(i.Path) == 2 {
			all = append(all, fmt.Sprintf("%d %s %s", i.Path[0], i.Path[1], i.Code))
		} else {
			all = append(all, fmt.Sprint(i.Path, i.Code))
		}
		if !strings.Contains(f.Message, i.Message) || len(i.Path) == 2 && !strings.HasPrefix(i.Message, i.Path[1].(string)+" ") {
			all = append(all, i.Message)
		}
	}
	return all
}

func vendors(v ...payables.Vendor) ledger.Command   { return payables.ImportVendors{Vendors: v} }
func orders(o ...payables.Order) ledger.Command     { return payables.ImportOrders{Orders: o} }
func receipts(r ...payables.Receipt) ledger.Command { return payables.ImportReceipts{Receipts: r} }
func invoices(i ...payables.Invoice) ledger.Command { return payables.ImportInvoices{Invoices: i} }
func changed[T any](v T, change ...func(*T)) T {
	for _, c := range change {
		c(&v)
	}
	return v
}

func TestAnImportListsAllIssues(t *testing.T) {
	long := strings.Repeat("x", payables.MaxName+1)
	acmeLtd := payables.Vendor{ID: acme, Name: "Acme Ltd"}
	po := func(change ...func(*payables.Order)) payables.Order {
		return changed(order(usd, "1 10 EA 10.00", "2 5 EA 1.00"), append([]func(*payables.Order){func(o *payables.Order) { o.ID = po2 }}, change...)...)
	}
	bill := func(change ...func(*payables.Invoice)) payables.Invoice {
		return changed(as(invoice(usd, "1 10 EA 10.00", "1 1 EA 1.00"), "INV-3001", "B-1"), change...)
	}
	line := func(change func(*payables.InvoiceLine)) func(*payables.Invoice) {
		return func(i *payables.Invoice) { i.Lines = slices.Clone(i.Lines); change(&i.Lines[1]) }
	}
	for _, tt := range []struct {
		name string
		cmd  ledger.Command
		want []string
	}{
		{"no vendors", vendors(), []string{"[]import_size"}},
		{"no orders", orders(), []string{"[]import_size"}},
		{"no receipts", receipts(), []string{"[]import_size"}},
		{"no invoices", invoices(), []string{"[]import_size"}},
		{"too many vendors", vendors(make([]payables.Vendor, payables.MaxImport+1)...), []string{"[]import_size"}},
		{"too many lines", invoices(func() (all []payables.Invoice) {
			for range payables.MaxImportLines/payables.MaxLines + 1 {
				all = append(all, payables.Invoice{Lines: make([]payables.InvoiceLine, payables.MaxLines)})
			}
			return all
		}()...), []string{"[]import_size"}},

		{"vendors", vendors(payables.Vendor{}, payables.Vendor{ID: bolt, Name: " x"}, payables.Vendor{ID: acme, Name: "Another"}, payables.Vendor{ID: must(payables.ParseVendorID("V")), Name: long}, payables.Vendor{ID: bolt, Name: "B\nC"}),
			[]string{"0 id required", "0 name invalid", "1 name invalid", "2 id conflict", "3 name invalid", "4 id twice", "4 name invalid"}},
		{"names that nobody sees", vendors(payables.Vendor{ID: bolt, Name: " "}, payables.Vendor{ID: acme, Name: "\u3164"}, payables.Vendor{ID: must(payables.ParseVendorID("V")), Name: "a\u202eb"}), []string{"0 name invalid", "1 name invalid", "2 name invalid"}},
		{"a vendor that is there, twice in one file", vendors(acmeLtd, acmeLtd), []string{"1 id twice"}},
		{"a new vendor, twice in one file", vendors(changed(acmeLtd, func(v *payables.Vendor) { v.ID = must(payables.ParseVendorID("V")) }), changed(acmeLtd, func(v *payables.Vendor) { v.ID = must(payables.ParseVendorID("V")) })), []string{"1 id twice"}},

		{"an order of nothing", orders(payables.Order{}), []string{"0 id required", "0 currency required", "0 lines size", "0 vendor unknown"}},
		{"an order twice", orders(po(), po()), []string{"1 id twice"}},
		{"an order with other facts", orders(po(func(o *payables.Order) { o.ID = po1 })), []string{"0 id conflict"}},
		{"an order of a vendor that is not known", orders(po(func(o *payables.Order) { o.Vendor = must(payables.ParseVendorID("NOBODY")) })), []string{"0 vendor unknown"}},
		{"limits out of range", orders(po(func(o *payables.Order) {
			o.FreightLimit = money.FromMinor(-1, usd)
			o.TaxLimit = payables.PercentOfMicro(payables.MaxPercent*1_000_000 + 1)
		})), []string{"0 freight_limit out_of_range", "0 tax_limit out_of_range"}},
		{"amounts in another currency", orders(po(func(o *payables.Order) {
			o.FreightLimit = amount("1", currency("EUR"))
			o.Lines[0].UnitPrice = amount("1", currency("EUR"))
		})), []string{"0 freight_limit out_of_range", "0 lines[0].unit_price out_of_range"}},
		{"lines of an order", orders(po(func(o *payables.Order) {
			o.Lines[0] = payables.OrderLine{Line: 0, UnitPrice: money.FromMinor(payables.MaxMinor+1, usd), Description: "a\nb"}
			o.Lines[1].Line = -1
			o.Lines[1].Quantity = payables.QuantityOfMicro(payables.MaxQuantity*1_000_000 + 1)
		})), []string{"0 lines[0].line order", "0 lines[1].line order", "0 lines[0].unit_price out_of_range", "0 lines[0] required", "0 lines[0].description invalid", "0 lines[1] required"}},
		{"two lines of one number, and one beyond", orders(po(func(o *payables.Order) { o.Lines[1].Line = 1 }), po(func(o *payables.Order) {
			o.ID = must(payables.ParseOrderID("PO-3"))
			o.Lines[1].Line = payables.MaxLineNumber + 1
		})), []string{"0 lines[1].line order", "1 lines[1].line order"}},
		{"conversions", orders(po(func(o *payables.Order) {
			x := func(unit string, n, d int64) payables.Conversion {
				return payables.Conversion{Unit: must(payables.ParseUnit(unit)), Numerator: n, Denominator: d}
			}
			o.Lines[0].Conversions = []payables.Conversion{x("EA", 1, 1), x("BOX", 0, 1), x("C", 1, 0), x("D", payables.MaxFactor+1, 1), x("E", 1, -1), x("F", 1, 1), x("F", 1, 1), {Numerator: 1, Denominator: 1}, x("OK", payables.MaxFactor, payables.MaxFactor)}
		})), []string{"0 lines[0].conversions[0] invalid", "0 lines[0].conversions[1] invalid", "0 lines[0].conversions[2] invalid", "0 lines[0].conversions[3] invalid", "0 lines[0].conversions[4] invalid", "0 lines[0].conversions[6] invalid", "0 lines[0].conversions[7] invalid"}},
		{"too many conversions", orders(po(func(o *payables.Order) {
			for n := range payables.MaxConversions + 1 {
				o.Lines[0].Conversions = append(o.Lines[0].Conversions, payables.Conversion{Unit: must(payables.ParseUnit(fmt.Sprint("U", n))), Numerator: 1, Denominator: 1})
			}
		})), []string{"0 lines[0].conversions too_many"}},
		{"too many lines of an order", orders(po(func(o *payables.Order) {
			o.Lines = nil
			for n := range payables.MaxLines + 1 {
				o.Lines = append(o.Lines, changed(orderLine(usd, "1 1 EA 1.00"), func(l *payables.OrderLine) { l.Line = n + 1 }))
			}
		})), []string{"0 lines size"}},

		{"receipts", receipts(changed(goods("GR-2", payables.Received), func(r *payables.Receipt) { r.ID, r.ReceivedAt = payables.ReceiptID{}, payables.Date{} }),
			changed(goods("GR-3", payables.Received, "1 1 EA"), func(r *payables.Receipt) { r.Order, r.Vendor = po2, payables.VendorID{} }),
			goods("GR-4", payables.Received, "1 1 kg", "9 1 EA", "1 0 EA", "1 -1 EA", "1 1000000001 EA"),
			changed(goods("GR-5", payables.Movement{}, "1 1 kg"))),
			[]string{"0 id required", "0 lines size", "1 order unknown", "2 lines[0] unit", "2 lines[1].order_line unknown", "2 lines[2] unit", "2 lines[3] unit", "2 lines[4] unit", "3 id required", "3 lines[0] unit"}},
		{"more sent back than was received", receipts(goods("RET-1", payables.Returned, "1 10.000001 EA")), []string{"0 lines[0].quantity too_big"}},
		{"more sent back on two lines", receipts(goods("RET-1", payables.Returned, "1 6 EA", "1 5 EA")), []string{"0 lines[1].quantity too_big"}},
		{"more sent back by two documents", receipts(goods("RET-1", payables.Returned, "1 6 EA"), goods("RET-2", payables.Returned, "1 5 EA")), []string{"1 lines[0].quantity too_big"}},
		{"a receipt with other facts", receipts(goods("GR-1", payables.Received, "1 9 EA")), []string{"0 id conflict"}},
		{"a receipt that is there, sent back", receipts(goods("GR-1", payables.Returned, "1 10 EA")), []string{"0 id conflict"}},
		{"a receipt twice", receipts(goods("GR-2", payables.Received, "1 1 EA"), goods("GR-2", payables.Received, "1 1 EA")), []string{"1 id twice"}},
		{"a receipt that is there, twice", receipts(goods("GR-1", payables.Received, "1 10 EA"), goods("GR-1", payables.Received, "1 10 EA")), []string{"1 id twice"}},

		{"an invoice of nothing", invoices(payables.Invoice{}), []string{"0 id required", "0 currency required", "0 vendor unknown"}},
		{"an invoice twice", invoices(bill(), bill()), []string{"1 id twice"}},
		{"an invoice with other facts", invoices(bill(func(i *payables.Invoice) { i.ID = invoiceID("INV-1001") })), []string{"0 id conflict"}},
		{"only the spelling of the number differs", invoices(as(invoice(usd, "1 10 EA 10.00"), "INV-1001", "A 1")), []string{"0 id conflict"}},
		{"an invoice of a vendor that is not known", invoices(bill(func(i *payables.Invoice) { i.Vendor = must(payables.ParseVendorID("NOBODY")) })), []string{"0 vendor unknown"}},
		{"amounts out of range", invoices(bill(func(i *payables.Invoice) {
			i.Tax, i.Freight, i.Total = money.FromMinor(-1, usd), amount("1", currency("EUR")), money.FromMinor(payables.MaxMinor+1, usd)
		}, line(func(l *payables.InvoiceLine) {
			l.UnitPrice, l.Amount = money.FromMinor(-1, usd), money.FromMinor(-1, usd)
		}))),
			[]string{"0 tax out_of_range", "0 freight out_of_range", "0 total out_of_range", "0 lines[1].unit_price out_of_range", "0 lines[1].amount out_of_range"}},
		{"lines of an invoice", invoices(bill(line(func(l *payables.InvoiceLine) {
			*l = payables.InvoiceLine{Line: 1, OrderLine: -1, UnitPrice: money.FromMinor(0, usd), Amount: money.FromMinor(0, usd)}
		})), bill(func(i *payables.Invoice) { *i = as(*i, "INV-3002", "B-2") }, line(func(l *payables.InvoiceLine) { l.OrderLine = payables.MaxLineNumber + 1 }))),
			[]string{"0 lines[1].line order", "0 lines[1] required", "0 lines[1].order_line out_of_range", "1 lines[1].order_line out_of_range"}},

		{"a bill that credits", invoices(bill(func(i *payables.Invoice) { i.Credits = invoiceID("INV-1001") })), []string{"0 credits invalid"}},
		{"a note on an invoice that is not known", invoices(note("INV-3001", "C-1", "INV-9999", "1 1 EA 10.00")), []string{"0 credits unknown"}},
		{"a note on a note", invoices(note("INV-3001", "C-1", "INV-1002", "1 1 EA 10.00")), []string{"0 credits unknown"}},
		{"a note on itself", invoices(note("INV-3001", "C-1", "INV-3001", "1 1 EA 10.00")), []string{"0 credits unknown"}},
		{"a note on a later one of the file", invoices(note("INV-3002", "C-1", "INV-3001", "1 1 EA 10.00"), bill()), []string{"0 credits unknown"}},
		{"a note on another order", invoices(changed(note("INV-3001", "C-1", "INV-1001", "1 1 EA 10.00"), func(i *payables.Invoice) { i.Order = po2 })), []string{"0 order conflict"}},
		{"all of a note is looked at", invoices(changed(note("INV-3001", "C-1", "INV-9999", "1 1 EA 10.00"), func(i *payables.Invoice) { i.Date = payables.Date{} })), []string{"0 id required", "0 credits unknown"}},
		{"issues stand in the order of the documents", invoices(bill(func(i *payables.Invoice) { i.Vendor = must(payables.ParseVendorID("NOBODY")) }), payables.Invoice{}, note("INV-3002", "C-1", "INV-9999")), []string{"0 vendor unknown", "1 id required", "1 currency required", "1 vendor unknown", "2 credits unknown"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := stocked()
			b.bring(invoice(usd, "1 10 EA 10.00"), note("INV-1002", "CN-1", "INV-1001", "1 1 EA 10.00"))
			_, err := b.run(tt.cmd)
			if got := issues(err); !slices.Equal(got, tt.want) {
				t.Errorf("issues %q, want %q", got, tt.want)
			}
		})
	}
}

// What is brought in again stays as it is, whatever has become of it since.
func TestAnImportMayBeSentAgain(t *testing.T) {
	b := newBooks()
	commands := []ledger.Command{
		vendors(payables.Vendor{ID: acme, Name: "Acme Ltd"}, payables.Vendor{ID: bolt, Name: "Bolt KG"}),
		orders(changed(order(usd, "1 10 EA 10.00 received=99 billed=7 BOX=12/1"), func(o *payables.Order) { o.FreightBilled = amount("9", usd) })),
		receipts(goods("GR-1", payables.Received, "1 6 EA", "1 0.5 BOX"), goods("RET-1", payables.Returned, "1 2 EA")),
		invoices(
			changed(invoice(usd, "1 10 EA 10.00"), func(i *payables.Invoice) {
				i.Status, i.Entered, i.Credited, i.Decision = payables.Approved, 99, amount("5", usd), &payables.Decision{Note: "pay it"}
				i.Lines[0].Credited = ratio("3")
			}),
			note("INV-1002", "CN-1", "INV-1001", "1 1 EA 10.00"), as(invoice(usd, "1 1 EA 10.00"), "INV-1003", "a.01"),
		),
	}
	opened := []int{2, 1, 2, 3}
	for n, cmd := range commands {
		change := must(b.run(cmd))
		if got := change.Answer.(customers.Imported); got != (customers.Imported{ID: b.op.ID, Opened: opened[n], ImportedAt: b.op.At}) || len(change.Entries) != opened[n] {
			t.Errorf("%s: %+v, %d entries", cmd.Name(), got, len(change.Entries))
		}
	}
	o, i := b.order(po1), b.invoice(invoiceID("INV-1001"))
	if o.Lines[0].Received != ratio("10") || o.Lines[0].Billed != (payables.Ratio{}) || o.FreightBilled != amount("0", usd) {
		t.Errorf("the order starts as %+v", o)
	}
	if i.Status != payables.Open || i.Decision != nil || i.Credited != amount("0", usd) || i.Lines[0].Credited != (payables.Ratio{}) || i.Entered != 5 {
		t.Errorf("the invoice starts as %+v", i)
	}
	if c := b.records[i.ClaimRef()].(payables.NumberClaim); !slices.Equal(c.Claims, claim("INV-1001", "INV-1003").Claims) {
		t.Errorf("claimed %+v", c)
	}
	if err := b.decide("INV-1001", "approve", "CLEAN_MATCH"); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%+v", b.records)
	for n, cmd := range commands {
		change := must(b.run(cmd))
		if got := change.Answer.(customers.Imported); got.Opened != 0 || got.Unchanged != opened[n] || len(change.Put)+len(change.Entries) > 0 {
			t.Errorf("%s again: %+v, %d records", cmd.Name(), got, len(change.Put))
		}
	}
	if after := fmt.Sprintf("%+v", b.records); after != before {
		t.Errorf("%s\nbecame %s", before, after)
	}
	// Some that are there and some that are new.
	change := must(b.run(receipts(goods("GR-1", payables.Received, "1 6 EA", "1 0.5 BOX"), goods("GR-2", payables.Received, "1 1 BOX"))))
	if got := change.Answer.(customers.Imported); got.Opened != 1 || got.Unchanged != 1 || b.order(po1).Lines[0].Received != ratio("22") {
		t.Errorf("%+v", got)
	}
	prove(t, b)
}

// Check says before what Decide would say about the documents alone.
func TestCheckNeedsNoLedger(t *testing.T) {
	type checks interface {
		ledger.Command
		Check() []fault.Issue
	}
	for _, cmd := range []checks{
		payables.ImportVendors{}, payables.ImportOrders{}, payables.ImportReceipts{}, payables.ImportInvoices{},
		payables.ImportVendors{Vendors: []payables.Vendor{{Name: "x"}, {ID: bolt, Name: "Bolt KG"}, {ID: bolt, Name: "\n"}}},
	} {
		_, err := newBooks().run(cmd)
		if f := fault.Of(err); f == nil || len(f.Issues) == 0 || !reflect.DeepEqual(cmd.Check(), f.Issues) {
			t.Errorf("%s: %v, then %v", cmd.Name(), cmd.Check(), err)
		}
	}
	for _, cmd := range []checks{
		payables.ImportVendors{Vendors: []payables.Vendor{{ID: acme, Name: "Acme Ltd"}}}, payables.ImportOrders{Orders: []payables.Order{order(usd, "1 10 EA 10.00")}},
		payables.ImportReceipts{Receipts: []payables.Receipt{goods("GR-1", payables.Received, "1 10 EA")}}, payables.ImportInvoices{Invoices: []payables.Invoice{invoice(usd, "1 10 EA 10.00")}},
	} {
		if issues := cmd.Check(); len(issues) > 0 {
			t.Errorf("%s: %v", cmd.Name(), issues)
		}
		if f := cmd.Facts(); len(f) != 2 || f[0].Name != "documents" || f[0].Value != "1" || len(f[1].Value) != 64 {
			t.Errorf("%s: %v", cmd.Name(), f)
		}
	}
}

// The slices of a command stay as they are, and so do the records before.
func TestAnImportChangesNothingInPlace(t *testing.T) {
	b := stocked()
	o := b.order(po1)
	b.bring(goods("GR-2", payables.Received, "1 5 EA"))
	if o.Lines[0].Received != ratio("10") || b.order(po1).Lines[0].Received != ratio("15") {
		t.Errorf("%s before, %s after", o.Lines[0].Received, b.order(po1).Lines[0].Received)
	}
	i := changed(invoice(usd, "1 1 EA 10.00"), func(i *payables.Invoice) { i.Lines[0].Credited = ratio("1") })
	b.bring(i)
	c := b.records[i.ClaimRef()].(payables.NumberClaim)
	b.bring(as(i, "INV-1002", "A-1"), as(i, "INV-1003", "A-1"))
	if i.Lines[0].Credited != ratio("1") || len(c.Claims) != 1 {
		t.Errorf("%+v, %+v", i.Lines[0], c)
	}
	before := b.invoice(i.ID)
	o = b.order(po1)
	if err := b.decide("INV-1001", "approve", "CLEAN_MATCH"); err != nil {
		t.Fatal(err)
	}
	if before.Status != payables.Open || o.Lines[0].Billed != (payables.Ratio{}) {
		t.Errorf("%+v, %+v", before, o)
	}
}

func TestANumberMayBeCarriedByAHundred(t *testing.T) {
	b := stocked()
	var all []payables.Invoice
	for n := range payables.MaxSameNumber + 1 {
		all = append(all, as(invoice(usd, "1 1 EA 10.00"), fmt.Sprintf("INV-%04d", n), "A-1"))
	}
	if _, err := b.run(invoices(all...)); !slices.Equal(issues(err), []string{"100 number too_many"}) {
		t.Errorf("%q", issues(err))
	}
	must(b.run(invoices(all[:payables.MaxSameNumber]...)))
	if _, err := b.run(invoices(all[payables.MaxSameNumber])); !slices.Equal(issues(err), []string{"0 number too_many"}) {
		t.Errorf("%q", issues(err))
	}
}

func TestQuantitiesOfReceiptsThatDoNotFit(t *testing.T) {
	b := newBooks()
	b.bring(payables.Vendor{ID: acme, Name: "Acme Ltd"}, order(usd, "1 10 EA 10.00 A=1/999983 B=1/999979 C=1/999961 D=1/999959"))
	_, err := b.run(receipts(goods("GR-1", payables.Received, "1 0.000001 A", "1 0.000001 B", "1 0.000001 C", "1 0.000001 D")))
	if !slices.Equal(issues(err), []string{"0 lines quantity_out_of_range"}) {
		t.Errorf("%q", issues(err))
	}
}

func TestAReceiptHasTheVendorOfItsOrder(t *testing.T) {
	b := stocked()
	r := goods("GR-2", payables.Received, "1 1 EA")
	r.Vendor = bolt
	if _, err := b.run(receipts(r)); fault.CodeOf(err) != fault.Internal {
		t.Errorf("%v", err)
	}
	load := func(refs ...ledger.Ref) (ledger.View, error) {
		v := ledger.NewView(b.op, len(refs))
		for _, ref := range refs {
			v.Put(ref, b.records[ref])
		}
		return v, nil
	}
	unknown := goods("GR-3", payables.Received, "1 1 EA")
	unknown.Order, unknown.Vendor = po2, payables.VendorID{}
	list := []payables.Receipt{r, unknown}
	cmd := must(payables.ReceiptsOf(list, load))
	if cmd.Receipts[0].Vendor != acme || cmd.Receipts[1].Vendor != (payables.VendorID{}) || list[0].Vendor != bolt {
		t.Errorf("%+v", cmd.Receipts)
	}
}

// An import is bound to all that its documents say.
func TestFactsOfAnImport(t *testing.T) {
	base := as(invoice(usd, "1 10 EA 10.00", "1 1 EA 1.00"), "INV-1001", "A-1")
	digests := map[string]string{}
	for name, i := range map[string]payables.Invoice{
		"base": base, "number": as(base, "INV-1001", "A 1"), "id": as(base, "INV-1002", "A-1"),
		"total":    changed(base, func(i *payables.Invoice) { i.Total = amount("1", usd) }),
		"tax":      changed(base, func(i *payables.Invoice) { i.Tax = amount("1", usd) }),
		"freight":  changed(base, func(i *payables.Invoice) { i.Freight = amount("1", usd) }),
		"date":     changed(base, func(i *payables.Invoice) { i.Date = must(payables.ParseDate("2026-03-02")) }),
		"order":    changed(base, func(i *payables.Invoice) { i.Order = po2 }),
		"vendor":   changed(base, func(i *payables.Invoice) { i.Vendor = bolt }),
		"kind":     changed(base, func(i *payables.Invoice) { i.Document = payables.CreditNote }),
		"credits":  changed(base, func(i *payables.Invoice) { i.Credits = invoiceID("INV-1002") }),
		"currency": changed(base, func(i *payables.Invoice) { i.Currency = currency("EUR") }),
		"a line":   changed(base, func(i *payables.Invoice) { i.Lines = i.Lines[:1] }),
		"sku":      changed(base, func(i *payables.Invoice) { i.Lines = slices.Clone(i.Lines); i.Lines[1].SKU = widget }),
		"amount":   changed(base, func(i *payables.Invoice) { i.Lines = slices.Clone(i.Lines); i.Lines[1].Amount = amount("3", usd) }),
	} {
		f := invoices(i).Facts()
		if other, same := digests[f[1].Value]; same || f[0].Value != "1" {
			t.Errorf("%s is %s: %v", name, other, f)
		}
		digests[f[1].Value] = name
	}
	decided := changed(base, func(i *payables.Invoice) { i.Status, i.Entered = payables.Approved, 9 })
	if !reflect.DeepEqual(invoices(decided).Facts(), invoices(base).Facts()) {
		t.Error("what was decided is part of an import")
	}
}
