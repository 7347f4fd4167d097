package payables_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

// override approves against the findings, as a person may.
func (b *books) override(id string) string {
	_, err := b.run(b.route(payables.Request{
		Invoice: invoiceID(id), Action: payables.Approve, Reason: payables.ManualOverride, Override: true, Note: must(payables.ParseNote("agreed with the CFO")),
	}, true))
	return reasonOf(err)
}

// of is the invoice under the name of another vendor.
func of(v payables.VendorID, i payables.Invoice) payables.Invoice {
	i.Vendor = v
	return i
}

func carriage(i payables.Invoice, literal string) payables.Invoice {
	i.Freight = amount(literal, i.Currency)
	return priced(i)
}

// What is billed and credited, one decision after the other, and that it can be
// recomputed after each.
func TestWhatIsBilledAndCreditedCanBeRecomputed(t *testing.T) {
	bill, eur := invoice(usd, "1 4 EA 10.00", "1 6 EA 10.00"), currency("EUR")
	for name, tt := range map[string]struct {
		documents []payables.Invoice
		decide    string // the ids to approve, ! with an override
		billed    string // of the lines of PO-1, and freight
		credited  string // of INV-1001, and of its lines
	}{
		"lines that share a line of the order": {[]payables.Invoice{bill, note("INV-1002", "C-1", "INV-1001", "1 5 EA 10.00")},
			"1001 1002", "5 0 0", "50 4 1"},
		"two notes": {[]payables.Invoice{bill, note("INV-1002", "C-1", "INV-1001", "1 3 EA 10.00"), note("INV-1003", "C-2", "INV-1001", "1 4 EA 10.00")},
			"1001 1003 1002", "3 0 0", "70 4 3"},
		"more than was billed": {[]payables.Invoice{bill, note("INV-1002", "C-1", "INV-1001", "1 99 EA 10.00"), note("INV-1003", "C-2", "INV-1001", "1 4 EA 10.00")},
			"1001 1002! 1003!", "0 0 0", "1030 4 6"},
		"a note before its invoice": {[]payables.Invoice{bill, note("INV-1002", "C-1", "INV-1001", "1 3 EA 10.00"), note("INV-1003", "C-2", "INV-1001", "1 4 EA 10.00")},
			"1002! 1001 1003", "6 0 0", "70 4 0"},
		"a note on an invoice that is open": {[]payables.Invoice{bill, note("INV-1002", "C-1", "INV-1001", "1 3 EA 10.00")},
			"1002!", "0 0 0", "30 0 0"},
		"a lower price": {[]payables.Invoice{bill, note("INV-1002", "C-1", "INV-1001", "1 3 EA 1.00")},
			"1001 1002", "10 0 0", "3 0 0"},
		"a note in another currency": {[]payables.Invoice{bill, func() payables.Invoice {
			n := as(invoice(eur, "1 3 EA 10.00"), "INV-1002", "C-1")
			n.Document, n.Credits, n.Order = payables.CreditNote, bill.ID, payables.OrderID{}
			return n
		}()}, "1001 1002!", "7 0 0", "0 3 0"},
		"another vendor's note": {[]payables.Invoice{bill, of(bolt, note("INV-1002", "C-1", "INV-1001", "1 3 EA 10.00"))},
			"1001 1002!", "10 0 0", "0 0 0"},
		"another vendor's note, before": {[]payables.Invoice{bill, of(bolt, note("INV-1002", "C-1", "INV-1001", "1 3 EA 10.00"))},
			"1002! 1001", "10 0 0", "0 0 0"},
		"other units": {[]payables.Invoice{invoice(usd, "2 1 PAL 70.00", "2 8 EA 1.00"), note("INV-1002", "C-1", "INV-1001", "2 5 EA 5.84"), note("INV-1003", "C-2", "INV-1001", "2 1 BOX 70.00")},
			"1001! 1002! 1003!", "0 6.25 0", "99.2 17/12 0"},
		"freight, of which none is given back": {[]payables.Invoice{carriage(bill, "7"), carriage(note("INV-1002", "C-1", "INV-1001", "1 3 EA 10.00"), "2"), carriage(as(invoice(usd, "1 1 EA 10.00"), "INV-1003", "A-3"), "5")},
			"1001! 1002 1003!", "8 0 12", "32 3 0"},
		"freight in another currency": {[]payables.Invoice{bill, carriage(as(invoice(eur, "1 1 EA 10.00"), "INV-1003", "A-3"), "5")},
			"1001 1003!", "11 0 0", "0 0 0"},
		"another vendor's bill": {[]payables.Invoice{bill, of(bolt, as(invoice(usd, "1 2 EA 10.00"), "INV-1003", "A-3")), of(bolt, note("INV-1004", "C-1", "INV-1003", "1 1 EA 10.00"))},
			"1001 1003! 1004", "11 0 0", "0 0 0"},
		"lines that are not known": {[]payables.Invoice{invoice(usd, "7 2 EA 10.00", "1 3 kg 10.00"), note("INV-1002", "C-1", "INV-1001", "7 2 EA 10.00", "1 1 kg 10.00")},
			"1001! 1002", "0 0 0", "30 0 0"},
	} {
		b := newBooks()
		b.bring(payables.Vendor{ID: acme, Name: "Acme Ltd"}, payables.Vendor{ID: bolt, Name: "Bolt KG"},
			order(usd, "1 10 EA 10.00", "2 20 BOX 12.00 EA=1/12 PAL=7/1"), goods("GR-1", payables.Received, "1 10 EA", "2 20 BOX"))
		for _, i := range tt.documents {
			b.bring(i)
		}
		for id := range strings.FieldsSeq(tt.decide) {
			id, against := strings.CutSuffix("INV-"+id, "!")
			approve := b.approve
			if against {
				approve = b.override
			}
			if got := approve(id); got != "" {
				t.Errorf("%s: %s: %s", name, id, got)
			}
			for _, v := range []payables.VendorID{acme, bolt} {
				if err := b.verify(v); err != nil {
					t.Errorf("%s: after %s: %v", name, id, err)
				}
			}
		}
		o, i := b.order(po1), b.invoice(bill.ID)
		if got := o.Lines[0].Billed.String() + " " + o.Lines[1].Billed.String() + " " + o.FreightBilled.Major(); got != tt.billed {
			t.Errorf("%s: billed %s, want %s", name, got, tt.billed)
		}
		got := i.Credited.Major()
		for _, l := range i.Lines {
			got += " " + l.Credited.String()
		}
		if got != tt.credited {
			t.Errorf("%s: credited %s, want %s", name, got, tt.credited)
		}
	}
}

// An invoice that was approved before its order came in is not billed on it, and
// nothing of it can be given back.
func TestAnOrderThatComesLate(t *testing.T) {
	b := newBooks()
	b.bring(payables.Vendor{ID: acme, Name: "Acme Ltd"}, carriage(invoice(usd, "1 10 EA 10.00"), "5"),
		note("INV-1002", "C-1", "INV-1001", "1 3 EA 10.00"), note("INV-1003", "C-2", "INV-1001", "1 4 EA 10.00"))
	if got := b.override("INV-1001") + b.approve("INV-1002"); got != "" {
		t.Fatal(got)
	}
	b.bring(order(usd, "1 10 EA 10.00"), goods("GR-1", payables.Received, "1 10 EA"))
	if got := b.approve("INV-1003"); got != "" {
		t.Fatal(got)
	}
	o, i := b.order(po1), b.invoice(invoiceID("INV-1001"))
	if o.Lines[0].Billed.Sign() != 0 || o.FreightBilled.Sign() != 0 || i.Credited != amount("70", usd) || i.Lines[0].Credited.Sign() != 0 {
		t.Errorf("billed %s and %s, credited %s and %s", o.Lines[0].Billed, o.FreightBilled, i.Credited, i.Lines[0].Credited)
	}
	if err := b.verify(acme); err != nil {
		t.Error(err)
	}
}

// Whoever writes past the ledger what was billed or credited is found.
func TestHistoryFindsChangedSums(t *testing.T) {
	bill := func(change func(*payables.Invoice)) func(*books) {
		return func(b *books) {
			put(b, changed(b.invoice(invoiceID("INV-1001")), func(i *payables.Invoice) { i.Lines = lines(i.Lines); change(i) }))
		}
	}
	ordered := func(change func(*payables.Order)) func(*books) {
		return func(b *books) {
			put(b, changed(b.order(po1), func(o *payables.Order) { o.Lines = lines(o.Lines); change(o) }))
		}
	}
	for name, tt := range map[string]struct {
		change func(*books)
		says   string
	}{
		"billed nothing":        {ordered(func(o *payables.Order) { o.Lines[0].Billed = payables.Ratio{} }), "of line 1 of the order PO-1 0 is on record as billed, its approved invoices come to 8"},
		"billed more":           {ordered(func(o *payables.Order) { o.Lines[1].Billed = ratio("1/12") }), "of line 2 of the order PO-1 1/12 is on record as billed"},
		"freight billed":        {ordered(func(o *payables.Order) { o.FreightBilled = amount("0", usd) }), "0.00 USD is on record as freight billed, its approved invoices come to 5.00 USD"},
		"credited nothing":      {bill(func(i *payables.Invoice) { i.Credited = amount("0", usd) }), "of the invoice INV-1001 0.00 USD is on record as credited, its approved credit notes come to 30.00 USD"},
		"credited more":         {bill(func(i *payables.Invoice) { i.Credited = amount("31", usd) }), "31.00 USD is on record as credited"},
		"a line credited":       {bill(func(i *payables.Invoice) { i.Lines[0].Credited = ratio("4") }), "of line 1 of the invoice INV-1001 4 is on record as credited, its approved credit notes give back 3"},
		"a line not credited":   {bill(func(i *payables.Invoice) { i.Lines[0].Credited = payables.Ratio{} }), "of line 1 of the invoice INV-1001 0"},
		"another line credited": {bill(func(i *payables.Invoice) { i.Lines[1].Credited = ratio("1") }), "of line 2 of the invoice INV-1001 1"},
		"credited without a note": {func(b *books) {
			put(b, changed(b.invoice(invoiceID("INV-1003")), func(i *payables.Invoice) { i.Credited = amount("1", usd) }))
		}, "of the invoice INV-1003 1.00 USD is on record as credited, its approved credit notes come to 0.00 USD"},
		"a line credited without a note": {func(b *books) {
			put(b, changed(b.invoice(invoiceID("INV-1003")), func(i *payables.Invoice) { i.Lines = lines(i.Lines); i.Lines[0].Credited = ratio("1") }))
		}, "of line 1 of the invoice INV-1003 1"},
		"both, so that they agree": {func(b *books) {
			ordered(func(o *payables.Order) { o.Lines[0].Billed = payables.Ratio{} })(b)
			bill(func(i *payables.Invoice) { i.Lines[0].Credited = ratio("10") })(b)
		}, "of line 1 of the invoice INV-1001 10 is on record as credited"},
	} {
		b := newBooks()
		b.bring(payables.Vendor{ID: acme, Name: "Acme Ltd"}, order(usd, "1 10 EA 10.00", "2 5 BOX 12.00 EA=1/12"), goods("GR-1", payables.Received, "1 10 EA", "2 5 BOX"),
			carriage(invoice(usd, "1 10 EA 10.00", "1 1 EA 10.00"), "5"), note("INV-1002", "C-1", "INV-1001", "1 3 EA 10.00"), as(invoice(usd, "1 1 EA 10.00"), "INV-1003", "A-3"))
		if got := b.override("INV-1001") + b.approve("INV-1002"); got != "" {
			t.Fatal(got)
		}
		if err := b.verify(acme); err != nil {
			t.Fatal(err)
		}
		tt.change(b)
		var broken *journal.Broken
		if err := b.verify(acme); !errors.As(err, &broken) || broken.Number != b.vendor(acme).Head.Number || !strings.Contains(broken.Why, tt.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is not there, or can not be added up, is damage and no failure.
func TestSumsOfWhatIsDamaged(t *testing.T) {
	b := newBooks()
	b.bring(payables.Vendor{ID: acme, Name: "Acme Ltd"}, order(usd, "1 10 EA 10.00 BOX=999983/999979"))
	h := payables.NewHistory(b.vendor(acme))
	view := ledger.NewView(b.op, 2)
	ref, bill := po1.Ref(), invoice(usd, "1 1 EA 10.00")
	gone := invoiceID("INV-9999").Ref()
	view.Put(ref, nil)
	view.Put(gone, nil)
	_, noOrder := h.Billing(view, ref)
	_, noInvoice := h.Crediting(view, gone)
	view.Put(ref, b.records[ref])
	view.Put(bill.Ref(), bill)
	sum := must(h.Billing(view, ref))
	approved := func(i payables.Invoice) payables.Invoice { i.Status = payables.Approved; return i }
	tooFine := changed(invoice(usd, "1 1 BOX 10.00"), func(i *payables.Invoice) { i.Lines[0].Quantity = quantity("999999999.999999") })
	tooMuch := changed(invoice(usd), func(i *payables.Invoice) { i.Freight = money.FromMinor(math.MaxInt64, usd) })
	credit := must(h.Crediting(view, bill.Ref()))
	note := changed(note("INV-1002", "C-1", "INV-1001"), func(i *payables.Invoice) { i.Total = money.FromMinor(math.MaxInt64, usd) })
	view.Put(note.Ref(), note)
	for name, err := range map[string]error{
		"an order that is gone":       noOrder,
		"an invoice that is gone":     noInvoice,
		"a note that is gone":         credit.Add(view, gone),
		"a quantity that is too fine": sum.Add(approved(tooFine)),
		"freight beyond 64 bits":      errors.Join(sum.Add(approved(carriage(bill, "1"))), sum.Add(approved(tooMuch))),
		"credit notes beyond 64 bits": errors.Join(credit.Add(view, note.Ref()), credit.Add(view, note.Ref())),
	} {
		if _, ok := errors.AsType[*journal.Broken](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two sums are the same only if nothing was decided in between, though as much is
// billed as before.
func TestSumsOfAnOrderTellWhetherItChanged(t *testing.T) {
	b := stocked()
	b.bring(invoice(usd, "1 1 EA 10.00"), as(invoice(usd, "1 1 EA 10.00"), "INV-1002", "A-2"), note("INV-1003", "C-1", "INV-1001", "1 1 EA 10.00"),
		carriage(as(invoice(usd), "INV-1004", "A-4"), "1"))
	h, view := payables.NewHistory(b.vendor(acme)), ledger.NewView(b.op, 1)
	sum := func() *payables.Billing {
		view.Put(po1.Ref(), b.records[po1.Ref()])
		s := must(h.Billing(view, po1.Ref()))
		for _, r := range b.records {
			if i, ok := r.(payables.Invoice); ok {
				if err := s.Add(i); err != nil {
					t.Fatal(err)
				}
			}
		}
		return s
	}
	for _, ids := range []string{"INV-1001", "INV-1002 INV-1003", "INV-1004"} {
		before := sum()
		if !before.Same(sum()) {
			t.Error("nothing was decided")
		}
		for id := range strings.FieldsSeq(ids) {
			if got := b.override(id); got != "" {
				t.Fatal(got)
			}
		}
		if after := sum(); before.Same(after) || after.Compare(view) != nil {
			t.Errorf("%s was approved: %v", ids, after.Compare(view))
		}
	}
}
