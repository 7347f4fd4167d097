package app_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

// billing is a ledger with an order of 100 EA at 10.00 that were received, and
// bills of one each, with a credit note on each: see bill and note.
func billing(t *testing.T, bills int) (*app.App, *asked) {
	t.Helper()
	a, w := payablesApp(t)
	s := &asked{Store: w.Store}
	a.Ledger, a.Payables, a.Journal = s, s, s
	operator := call(must(access.NewPrincipal(tenant, "op", access.Human, access.ScopesOf(access.ControlRules), access.Pro, "")), "")
	usd := must(money.ParseCurrency("USD"))
	none, ten := money.FromMinor(0, usd), money.FromMinor(10_00, usd)
	ea, day := must(payables.ParseUnit("EA")), must(payables.ParseDate("2026-03-01"))
	v := payables.Vendor{ID: must(payables.ParseVendorID("V-1")), Name: "Acme"}
	o := payables.Order{ID: must(payables.ParseOrderID("PO-1")), Vendor: v.ID, Currency: usd, FreightLimit: none, Lines: []payables.OrderLine{
		{Line: 1, SKU: must(payables.ParseSKU("W")), Unit: ea, Quantity: must(payables.ParseQuantity("100")), UnitPrice: ten},
	}}
	r := payables.Receipt{ID: must(payables.ParseReceiptID("GR-1")), Order: o.ID, Movement: payables.Received, ReceivedAt: day, Lines: []payables.ReceiptLine{
		{OrderLine: 1, Quantity: must(payables.ParseQuantity("100")), Unit: ea},
	}}
	var all, notes []payables.Invoice
	for n := range bills {
		i := payables.Invoice{
			ID: bill(n), Number: must(payables.ParseNumber(fmt.Sprint("A-", n))), Document: payables.Bill, Vendor: v.ID, Order: o.ID, Currency: usd,
			Tax: none, Freight: none, Total: ten, Date: day,
			Lines: []payables.InvoiceLine{{Line: 1, OrderLine: 1, Unit: ea, Quantity: must(payables.ParseQuantity("1")), UnitPrice: ten, Amount: ten}},
		}
		all = append(all, i)
		i.Document, i.Credits, i.ID, i.Order = payables.CreditNote, i.ID, note(n), payables.OrderID{}
		notes = append(notes, i)
	}
	_, err := a.ImportVendors(t.Context(), operator, []payables.Vendor{v})
	if err == nil {
		_, err = a.ImportOrders(t.Context(), operator, []payables.Order{o})
	}
	if err == nil {
		_, err = a.ImportReceipts(t.Context(), operator, []payables.Receipt{r})
	}
	if err == nil {
		_, err = a.ImportInvoices(t.Context(), operator, append(all, notes...))
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, s
}

func bill(n int) payables.InvoiceID { return must(payables.ParseInvoiceID(fmt.Sprint("INV-", 5000+n))) }
func note(n int) payables.InvoiceID { return must(payables.ParseInvoiceID(fmt.Sprint("INV-", 6000+n))) }

func approve(t testing.TB, a *app.App, id payables.InvoiceID) {
	t.Helper()
	r := payables.Request{Invoice: id, Action: payables.Approve, Reason: payables.CleanMatch}
	if _, _, _, err := a.RouteInvoice(t.Context(), call(agent, ""), r); err != nil {
		t.Error(err)
	}
}

// asked does something before it lists the invoices of an order and after it
// loaded records, and shows records that are not what was written.
type asked struct {
	*memory.Store
	before func()
	loaded func([]ledger.Ref)
	shows  func(ledger.Record) ledger.Record
}

func (s *asked) ListInvoices(ctx context.Context, t access.Tenant, f ports.InvoiceFilter, after string, limit int) ([]payables.Invoice, error) {
	if s.before != nil && f.Order.String() == "PO-1" {
		s.before()
	}
	return s.Store.ListInvoices(ctx, t, f, after, limit)
}

func (s *asked) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	view, err := s.Store.Load(ctx, t, refs...)
	if s.loaded != nil {
		s.loaded(refs)
	}
	if s.shows == nil || err != nil {
		return view, err
	}
	for _, ref := range refs {
		if o, ok := ledger.Get[ledger.Record](view, ref); ok {
			view.Put(ref, s.shows(o))
		}
	}
	return view, nil
}

// An order with more invoices than are read at once, and an invoice with more
// credit notes, add up.
func TestAVerificationAddsUpByThePage(t *testing.T) {
	a, _ := billing(t, 100)
	for n := range 100 {
		approve(t, a, bill(n))
	}
	for n := range 40 {
		approve(t, a, note(n))
	}
	operator := call(must(access.NewPrincipal(tenant, "op", access.Human, access.ScopesOf(access.ControlRules), access.Pro, "")), "")
	i, err := a.Invoice(t.Context(), call(agent, ""), bill(99))
	if err != nil {
		t.Fatal(err)
	}
	var more []payables.Invoice
	for n := range 120 {
		x := i.Invoice
		x.ID, x.Number = must(payables.ParseInvoiceID(fmt.Sprint("INV-", 7000+n))), must(payables.ParseNumber(fmt.Sprint("C-", n)))
		cent := money.FromMinor(1, x.Currency)
		x.Document, x.Credits, x.Order, x.Lines, x.Tax, x.Total = payables.CreditNote, bill(99), payables.OrderID{}, nil, cent, cent
		more = append(more, x)
	}
	for n := range 40 { // of what was given back
		x := i.Invoice
		x.ID, x.Number = must(payables.ParseInvoiceID(fmt.Sprint("INV-", 8000+n))), must(payables.ParseNumber(fmt.Sprint("D-", n)))
		more = append(more, x)
	}
	if _, err := a.ImportInvoices(t.Context(), operator, more); err != nil {
		t.Fatal(err)
	}
	for _, x := range more {
		approve(t, a, x.ID)
	}
	holds(t, a)
}

// What is decided while it reads does not make it find something, and what is
// wrong is found beside.
func TestAVerificationWhileInvoicesAreDecided(t *testing.T) {
	a, s := billing(t, 40)
	for n := range 3 {
		approve(t, a, bill(n))
	}
	next := 3
	once := func() { s.before = nil; approve(t, a, bill(next)); next++ }
	s.before = once
	holds(t, a)
	s.before = func() { once(); s.before = once } // while it reads the second time, too
	holds(t, a)
	s.before = func() { approve(t, a, bill(next)); next++ } // whenever it reads
	if v, err := a.VerifyLedger(t.Context(), call(operator, ""), customers.ID{}, 0); err != nil || v.Broken != nil || v.Left != 1 {
		t.Errorf("it leaves %d, and finds %v, %v", v.Left, v.Broken, err)
	}
	s.before = once
	s.shows = func(r ledger.Record) ledger.Record {
		if o, ok := r.(payables.Order); ok && o.ID.String() == "PO-1" {
			o.Lines = append([]payables.OrderLine{}, o.Lines...)
			o.Lines[0].Billed = payables.Ratio{}
			return o
		}
		return r
	}
	v, err := a.VerifyLedger(t.Context(), call(operator, ""), customers.ID{}, 0)
	if err != nil || v.Broken == nil || !strings.Contains(v.Broken.Why, "is on record as billed") {
		t.Errorf("it finds %v, %v", v.Broken, err)
	}
}

// What is decided about after it was read is read again, and what is decided about
// whenever it is read is counted.
func TestAVerificationReadsAgainWhatWasDecided(t *testing.T) {
	invoice := func(id payables.InvoiceID, change func(*payables.Invoice)) func(ledger.Record) ledger.Record {
		return func(r ledger.Record) ledger.Record {
			if i, ok := r.(payables.Invoice); ok && i.ID == id {
				change(&i)
				return i
			}
			return r
		}
	}
	decide := func(a *app.App, r payables.Request) {
		if _, _, _, err := a.RouteInvoice(t.Context(), call(agent, ""), r); err != nil {
			t.Error(err)
		}
	}
	claim := payables.ClaimRef(must(payables.ParseVendorID("V-1")), payables.Bill, must(payables.ParseNumber("A-1")))
	credited := note(3) // on bill(0)
	for name, c := range map[string]struct {
		when  ledger.Ref // it is loaded among others
		times int        // that something is decided then
		what  func(a *app.App, n int)
		shows func(ledger.Record) ledger.Record
		left  int
		finds string
	}{
		"once": {bill(1).Ref(), 1, func(a *app.App, _ int) { approve(t, a, bill(1)) }, nil, 0, ""},
		"once, and it is wrong": {bill(1).Ref(), 1, func(a *app.App, _ int) { approve(t, a, bill(1)) },
			invoice(bill(1), func(i *payables.Invoice) { i.Status = payables.OnHold }), 0, "status of the invoice INV-5001"},
		"another that is wrong, whenever": {bill(2).Ref(), 99, func(a *app.App, n int) {
			decide(a, payables.Request{Invoice: bill(1), Action: payables.Hold, Reason: payables.NeedsReview, Note: must(payables.ParseNote(fmt.Sprint("For the ", n, "th time.")))})
		}, invoice(bill(2), func(i *payables.Invoice) { i.Status = payables.Rejected }), 0, "status of the invoice INV-5002"},
		"whenever it is read": {bill(1).Ref(), 99, func(a *app.App, n int) {
			decide(a, payables.Request{Invoice: bill(1), Action: payables.Hold, Reason: payables.NeedsReview, Note: must(payables.ParseNote(fmt.Sprint("For the ", n, "th time.")))})
		}, nil, 1, ""},
		"its number, once": {claim, 1, func(a *app.App, _ int) { approve(t, a, bill(1)) }, nil, 0, ""},
		"what is credited on it, once": {credited.Ref(), 2, func(a *app.App, n int) {
			if n == 2 { // the first is read among the states
				approve(t, a, note(4))
			}
		}, nil, 0, ""},
		"what is credited on it, and it is wrong": {credited.Ref(), 2, func(a *app.App, n int) {
			if n == 2 {
				approve(t, a, note(4))
			}
		}, invoice(bill(0), func(i *payables.Invoice) { i.Credited = money.FromMinor(3, i.Currency) }), 0, "of the invoice INV-5000 0.03 USD is on record as credited"},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := billing(t, 3)
			operator := call(must(access.NewPrincipal(tenant, "op", access.Human, access.ScopesOf(access.ControlRules), access.Pro, "")), "")
			again, err := a.Invoice(t.Context(), call(agent, ""), bill(0))
			if err != nil {
				t.Fatal(err)
			}
			var notes []payables.Invoice // of a cent each, on the first bill
			for n := range 2 {
				x := again.Invoice
				cent := money.FromMinor(1, x.Currency)
				x.ID, x.Number, x.Document, x.Credits = note(3+n), must(payables.ParseNumber(fmt.Sprint("N-", n))), payables.CreditNote, bill(0)
				x.Order, x.Lines, x.Tax, x.Total = payables.OrderID{}, nil, cent, cent
				notes = append(notes, x)
			}
			if _, err := a.ImportInvoices(t.Context(), operator, notes); err != nil {
				t.Fatal(err)
			}
			approve(t, a, bill(0))
			approve(t, a, note(3))
			n, busy := 0, false
			s.loaded = func(refs []ledger.Ref) {
				// Not where the entries are read, nor what decides reads for itself.
				if busy || n == c.times || !slices.Contains(refs, c.when) || slices.ContainsFunc(refs, func(r ledger.Ref) bool { return r.Kind == ledger.OutcomeKind }) {
					return
				}
				busy, n = true, n+1
				c.what(a, n)
				busy = false
			}
			s.shows = c.shows
			v, err := a.VerifyLedger(t.Context(), call(agent, ""), customers.ID{}, 0)
			finds := ""
			if v.Broken != nil {
				finds = v.Broken.Error()
			}
			if err != nil || v.Left != c.left || !strings.Contains(finds, c.finds) || (finds == "") != (c.finds == "") || n == 0 {
				t.Errorf("after %d decisions it leaves %d, want %d, and finds %q, %v", n, v.Left, c.left, finds, err)
			}
		})
	}
}

// Verifications beside approvals and credit notes of many find nothing.
func TestVerificationsBesideDecisions(t *testing.T) {
	const bills, clients = 60, 4
	a, _ := billing(t, bills)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			for n := c; n < bills; n += clients {
				approve(t, a, bill(n))
				approve(t, a, note(n))
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		holds(t, a)
	}
}

// What is billed and credited on record is compared with the documents.
func TestAVerificationFindsWhatWasBilledAndCredited(t *testing.T) {
	order := func(change func(*payables.Order)) func(ledger.Record) ledger.Record {
		return func(r ledger.Record) ledger.Record {
			if o, ok := r.(payables.Order); ok && o.ID.String() == "PO-1" {
				o.Lines = append([]payables.OrderLine{}, o.Lines...)
				change(&o)
				return o
			}
			return r
		}
	}
	invoice := func(id payables.InvoiceID, change func(*payables.Invoice)) func(ledger.Record) ledger.Record {
		return func(r ledger.Record) ledger.Record {
			if i, ok := r.(payables.Invoice); ok && i.ID == id {
				i.Lines = append([]payables.InvoiceLine{}, i.Lines...)
				change(&i)
				return i
			}
			return r
		}
	}
	usd := must(money.ParseCurrency("USD"))
	two := must(payables.RestoreRatio(2, 1))
	for says, shows := range map[string]func(ledger.Record) ledger.Record{
		"of line 1 of the order PO-1 0 is on record as billed":               order(func(o *payables.Order) { o.Lines[0].Billed = payables.Ratio{} }),
		"of the order PO-1 1.00 USD is on record as freight billed":          order(func(o *payables.Order) { o.FreightBilled = money.FromMinor(100, usd) }),
		"of the invoice INV-5000 0.00 USD is on record as credited":          invoice(bill(0), func(i *payables.Invoice) { i.Credited = money.FromMinor(0, usd) }),
		"of line 1 of the invoice INV-5000 2 is on record as credited":       invoice(bill(0), func(i *payables.Invoice) { i.Lines[0].Credited = two }),
		"of the invoice INV-5001 0.01 USD is on record as credited":          invoice(bill(1), func(i *payables.Invoice) { i.Credited = money.FromMinor(1, usd) }),
		"of line 1 of the invoice INV-5002 2 is on record as credited":       invoice(bill(2), func(i *payables.Invoice) { i.Lines[0].Credited = two }),
		"of the invoice INV-6000 0.01 USD is on record as credited, its app": invoice(note(0), func(i *payables.Invoice) { i.Credited = money.FromMinor(1, usd) }),
	} {
		a, s := billing(t, 3)
		approve(t, a, bill(0))
		approve(t, a, bill(1))
		approve(t, a, note(0))
		holds(t, a)
		s.shows = shows
		v, err := a.VerifyLedger(t.Context(), call(operator, ""), customers.ID{}, 0)
		if err != nil || v.Broken == nil || !strings.Contains(v.Broken.Why, says) {
			t.Errorf("%s: it finds %v, %v", says, v.Broken, err)
		}
	}
}

// What was answered when an account was opened is compared with its entry.
func TestAVerificationFindsAChangedFirstAnswer(t *testing.T) {
	a := newApp(t)
	store := a.Ledger.(*memory.Store)
	o := operation.Operation{ID: a.IDs.NewID(), Tenant: tenant, Principal: "operator", Tool: "test", Key: must(operation.ParseKey("open")), At: time.UnixMilli(1_770_000_000_123).UTC()}
	if _, err := store.Do(t.Context(), o, customer(1, "10", "USD", customers.Active)); err != nil {
		t.Fatal(err)
	}
	holds(t, a)
	for name, change := range map[string]func(customers.Account) ledger.Record{
		"a status":       func(a customers.Account) ledger.Record { a.Status = customers.Suspended; return a },
		"a name":         func(a customers.Account) ledger.Record { a.Name = "Mallory"; return a },
		"another record": func(customers.Account) ledger.Record { return customers.Imported{} },
	} {
		lies := lyingLedger{store, func(_ ledger.Ref, r ledger.Record) ledger.Record {
			if o, ok := r.(ledger.Outcome); ok {
				o.Answer = change(o.Answer.(customers.Account))
				return o
			}
			return r
		}, func(e journal.Entry) journal.Entry { return e }}
		a.Ledger, a.Journal = lies, lies
		v, err := a.VerifyLedger(t.Context(), call(operator, ""), id(1), 0)
		if err != nil || v.Broken == nil || v.Broken.Number != 1 || v.Broken.Why == "" {
			t.Errorf("%s: it finds %+v, %v", name, v.Broken, err)
		}
	}
}

// miscounted counts something wrong.
type miscounted struct {
	ports.Census
	change func(*ports.Counts)
}

func (m miscounted) Count(ctx context.Context, t access.Tenant) (ports.Counts, error) {
	n, err := m.Census.Count(ctx, t)
	if err == nil {
		n.Outcomes = maps.Clone(n.Entries)
		n.Outcomes[payables.RouteName] += 7 // decided again
		for _, command := range []string{payables.ImportOrdersName, payables.ImportReceiptsName, payables.ImportInvoicesName} {
			n.Outcomes[command] = 0
		}
		n.Outcomes[payables.ImportVendorsName] = n.Records[customers.ImportKind] // however many they bring in
		n.Answers = map[ledger.Kind]int64{customers.ImportKind: n.Records[customers.ImportKind], payables.DecisionKind: n.Outcomes[payables.RouteName]}
		m.change(&n)
	}
	return n, err
}

// What belongs to no history is found by counting, of every kind.
func TestAVerificationCounts(t *testing.T) {
	a, s := billing(t, 3)
	approve(t, a, bill(0))
	all := call(operator, "")
	more := func(kind ledger.Kind) func(*ports.Counts) { return func(n *ports.Counts) { n.Records[kind]++ } }
	for says, change := range map[string]func(*ports.Counts){
		"":                                   func(*ports.Counts) {},
		"of the kind account":                func(n *ports.Counts) { n.Records[customers.Kind]++ },
		"1 entries of the command another ":  func(n *ports.Counts) { n.Entries["another"]++ },
		"entries of customers and vendors":   func(n *ports.Counts) { n.Versions-- },
		"1 outcomes of the command another ": func(n *ports.Counts) { n.Outcomes["another"]++ },
		"1 outcomes of the command " + refunds.TriggerName + " are on record, and there should be 0": func(n *ports.Counts) { n.Outcomes[refunds.TriggerName]++ },
		"outcomes of the command " + refunds.ReverseName:                                             func(n *ports.Counts) { n.Outcomes[refunds.ReverseName]++ },
		"outcomes of the command " + customers.AdjustName:                                            func(n *ports.Counts) { n.Outcomes[customers.AdjustName]++ },
		"outcomes of the command " + customers.OpenName:                                              func(n *ports.Counts) { n.Outcomes[customers.OpenName]++ },
		"records of the kind import are on record":                                                   func(n *ports.Counts) { n.Outcomes[customers.ImportName]++ },
		"answers of outcomes of imports":                                                             func(n *ports.Counts) { n.Answers[customers.ImportKind]-- },
		"answers of outcomes of the command " + payables.RouteName:                                   func(n *ports.Counts) { n.Answers[payables.DecisionKind]-- },
		"documents that imports brought in":                                                          func(n *ports.Counts) { n.Imported++ },
		"1 records of the kind page ":                                                                more(ledger.Kind{Name: "page"}),
		"records of the kind adjustment ":                                                            more(customers.AdjustmentKind),
		"records of the kind refund ":                                                                more(refunds.Kind),
		"records of the kind reversal ":                                                              more(refunds.ReversalKind),
		"records of the kind vendor ":                                                                more(payables.VendorKind),
		"records of the kind purchase_order ":                                                        more(payables.OrderKind),
		"records of the kind goods_receipt ":                                                         more(payables.ReceiptKind),
		"records of the kind invoice ":                                                               more(payables.InvoiceKind),
		"records of the kind number_claim ":                                                          more(payables.NumberClaimKind),
		"records of the kind decision ":                                                              more(payables.DecisionKind),
		"records of the kind import ":                                                                more(customers.ImportKind),
	} {
		a.Census = miscounted{s.Store, change}
		v, err := a.VerifyLedger(t.Context(), all, customers.ID{}, 0)
		got := ""
		if v.Broken != nil {
			got = v.Broken.Error()
		}
		if err != nil || !v.Counted || !strings.Contains(got, says) || (says == "") != (got == "") {
			t.Errorf("%q: it finds %q, %v", says, got, err)
		}
	}
	a.Census = nil // it can not
	if v, err := a.VerifyLedger(t.Context(), all, customers.ID{}, 0); err != nil || v.Broken != nil || v.Counted {
		t.Errorf("it finds %+v, %v", v, err)
	}
	a.Census = miscounted{s.Store, more(refunds.Kind)} // of the whole, which one customer is not
	if v, err := a.VerifyLedger(t.Context(), all, id(1), 0); err != nil || v.Broken != nil || v.Counted {
		t.Errorf("it finds %+v, %v", v, err)
	}
}

// An entry after the last that an account knows is found, unless the account goes
// on meanwhile.
func TestAVerificationFindsAnEntryAfterTheLast(t *testing.T) {
	a := newApp(t, customer(1, "10", "USD", customers.Active))
	refund := func() {
		if _, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("1"), damaged); err != nil {
			t.Fatal(err)
		}
	}
	store := a.Ledger.(*memory.Store)
	refund()
	then, err := store.ListAccounts(t.Context(), tenant, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	refund()
	stale := lyingLedger{store, func(ref ledger.Ref, r ledger.Record) ledger.Record {
		if ref.Kind == customers.Kind {
			return then[0]
		}
		return r
	}, func(e journal.Entry) journal.Entry { return e }}
	a.Ledger = stale
	v, err := a.VerifyLedger(t.Context(), call(operator, ""), id(1), 0)
	if err != nil || v.Broken == nil || v.Broken.Number != 3 || !strings.Contains(v.Broken.Why, "after the last entry") {
		t.Errorf("it finds %v, %v", v.Broken, err)
	}
	a.Ledger = &once{Ledger: store, first: stale}
	if v, err := a.VerifyLedger(t.Context(), call(operator, ""), id(1), 0); err != nil || v.Broken != nil || v.Entries != 2 {
		t.Errorf("it finds %+v, %v", v, err)
	}
}

// A refund that shows as reversed is reversed by an entry, this one or one that
// came meanwhile.
func TestAVerificationFindsAReversalWithoutAnEntry(t *testing.T) {
	a := newApp(t, customer(1, "10", "USD", customers.Active))
	for range 3 {
		if _, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("1"), damaged); err != nil {
			t.Fatal(err)
		}
	}
	reverse := func(entry int64) {
		if _, err := a.ReverseRefund(t.Context(), call(operator, ""), id(1), entry, damaged); err != nil {
			t.Fatal(err)
		}
	}
	reverse(2)
	holds(t, a)
	store := a.Ledger.(*memory.Store)
	lies := lyingLedger{store, func(_ ledger.Ref, r ledger.Record) ledger.Record {
		if r, ok := r.(refunds.Refund); ok {
			r.Status = refunds.Reversed
			return r
		}
		return r
	}, func(e journal.Entry) journal.Entry { return e }}
	a.Ledger = lies
	v, err := a.VerifyLedger(t.Context(), call(operator, ""), id(1), 0)
	if err != nil || v.Broken == nil || *v.Broken != (journal.Broken{Subject: id(1).Subject(), Number: 3, Why: "its refund shows as reversed, and no entry reversed it"}) {
		t.Errorf("it finds %v, %v", v.Broken, err)
	}
	then, err := store.Load(t.Context(), tenant, id(1).Ref())
	if err != nil {
		t.Fatal(err)
	}
	a.Ledger = store
	reverse(3)
	a.Ledger = &once{Ledger: store, first: past{view: then}}
	if v, err := a.VerifyLedger(t.Context(), call(operator, ""), id(1), 0); err != nil || v.Broken != nil || v.Entries != 5 {
		t.Errorf("it finds %+v, %v", v, err)
	}
}

// past is a ledger as it was.
type past struct {
	ports.Ledger
	view ledger.View
}

func (p past) Load(context.Context, access.Tenant, ...ledger.Ref) (ledger.View, error) {
	return p.view, nil
}

// once answers the first load from elsewhere.
type once struct {
	ports.Ledger
	first ports.Ledger
}

func (o *once) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	from := o.Ledger
	if o.first != nil {
		from, o.first = o.first, nil
	}
	return from.Load(ctx, t, refs...)
}

// A history that fills its last page is read to its end.
func TestAVerificationReadsAFullPage(t *testing.T) {
	for _, entries := range []int{199, 200, 201, 400} {
		a := newApp(t, customer(1, "500", "USD", customers.Active))
		for range entries - 1 {
			if _, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("1"), damaged); err != nil {
				t.Fatal(err)
			}
		}
		for most, refused := range map[int]bool{0: false, entries: false, entries - 1: true} {
			v, err := a.VerifyLedger(t.Context(), call(operator, ""), customers.ID{}, most)
			if tooMany := errors.Is(err, fault.New(fault.PolicyViolation, "too_many_entries", "")); tooMany != refused || !refused && (err != nil || v.Broken != nil || v.Entries != entries) {
				t.Errorf("%d, at most %d: it finds %+v, %v", entries, most, v, err)
			}
		}
	}
}

// A version that is too large is found, and not run after.
func TestAVerificationOfTheLargestVersionEnds(t *testing.T) {
	a := newApp(t, customer(1, "10", "USD", customers.Active))
	a.Ledger = lyingLedger{a.Ledger.(*memory.Store), func(_ ledger.Ref, r ledger.Record) ledger.Record {
		if account, ok := r.(customers.Account); ok {
			account.Head.Number = math.MaxInt64
			return account
		}
		return r
	}, func(e journal.Entry) journal.Entry { return e }}
	v, err := a.VerifyLedger(t.Context(), call(operator, ""), id(1), 0)
	if err != nil || v.Broken == nil || !strings.Contains(v.Broken.Why, "the record ends at entry 9223372036854775807") {
		t.Errorf("it finds %v, %v", v.Broken, err)
	}
}

// What can not be read is said with the entry that it belongs to.
func TestAVerificationSaysWhereSomethingCanNotBeRead(t *testing.T) {
	a := newApp(t, customer(1, "10", "USD", customers.Active))
	for range 3 {
		if _, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("1"), damaged); err != nil {
			t.Fatal(err)
		}
	}
	a.Ledger = torn{a.Ledger, refunds.RefOf(id(1), 3)}
	v, err := a.VerifyLedger(t.Context(), call(operator, ""), id(1), 0)
	if err != nil || v.Broken == nil || *v.Broken != (journal.Broken{Subject: id(1).Subject(), Number: 3, Why: "torn"}) {
		t.Errorf("it finds %v, %v", v.Broken, err)
	}
}

// torn can not read one record.
type torn struct {
	ports.Ledger
	at ledger.Ref
}

func (l torn) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	for _, ref := range refs {
		if ref == l.at {
			return ledger.View{}, fmt.Errorf("store: %w", &journal.Broken{Why: "torn"})
		}
	}
	return l.Ledger.Load(ctx, t, refs...)
}
