package payables_test

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func currency(code string) money.Currency { return must(money.ParseCurrency(code)) }

func amount(literal string, c money.Currency) money.Amount {
	return must(must(money.ParseDecimal(literal)).In(c))
}

func invoiceID(s string) payables.InvoiceID { return must(payables.ParseInvoiceID(s)) }

var (
	usd    = currency("USD")
	acme   = must(payables.ParseVendorID("ACME"))
	bolt   = must(payables.ParseVendorID("BOLT"))
	po1    = must(payables.ParseOrderID("PO-1"))
	po2    = must(payables.ParseOrderID("PO-2"))
	po3    = must(payables.ParseOrderID("PO-3"))
	widget = must(payables.ParseSKU("WIDGET"))
	march1 = must(payables.ParseDate("2026-03-01"))
	now    = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	op     = operation.Operation{
		ID: operation.ID{1}, Tenant: must(access.ParseTenant("acme")), Principal: "bot", Tool: "route_exception",
		Key: must(operation.ParseKey("k1")), At: now,
	}
	// tolerance is 2 percent and 5.00 of a currency with cents.
	tolerance = payables.Tolerance{Percent: must(payables.ParsePercent("2")), Minor: 500}
)

// quantity reads a literal, also one that no document may have.
func quantity(s string) payables.Quantity {
	r, ok := new(big.Rat).SetString(s)
	r.Mul(r, big.NewRat(1_000_000, 1))
	if !ok || !r.IsInt() {
		panic(s)
	}
	return payables.QuantityOfMicro(r.Num().Int64())
}

// ratio reads 10, 2.5 or 7/12.
func ratio(s string) payables.Ratio {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return must(payables.RestoreRatio(r.Num().Int64(), r.Denom().Int64()))
}

func rat(r payables.Ratio) *big.Rat { return big.NewRat(r.Fraction()) }

// times is quantity times price, rounded half up, computed another way than the
// package does.
func times(q payables.Quantity, price money.Amount) *big.Int {
	r := new(big.Rat).Mul(big.NewRat(q.Micro(), 1_000_000), big.NewRat(price.Minor(), 1))
	r.Add(r, big.NewRat(1, 2))
	return new(big.Int).Div(r.Num(), r.Denom())
}

// orderLine reads "1 10 EA 10.00 received=10 billed=2 BOX=12/1": line, quantity,
// unit and price, then what is there of the rest.
func orderLine(c money.Currency, spec string) payables.OrderLine {
	f := strings.Fields(spec)
	l := payables.OrderLine{
		Line: must(strconv.Atoi(f[0])), SKU: widget, Quantity: quantity(f[1]), Unit: must(payables.ParseUnit(f[2])), UnitPrice: amount(f[3], c),
	}
	for _, x := range f[4:] {
		name, value, _ := strings.Cut(x, "=")
		switch name {
		case "received":
			l.Received = ratio(value)
		case "billed":
			l.Billed = ratio(value)
		default:
			n, d, _ := strings.Cut(value, "/")
			l.Conversions = append(l.Conversions, payables.Conversion{
				Unit: must(payables.ParseUnit(name)), Numerator: must(strconv.ParseInt(n, 10, 64)), Denominator: must(strconv.ParseInt(d, 10, 64)),
			})
		}
	}
	return l
}

// order is PO-1 of ACME.
func order(c money.Currency, lines ...string) payables.Order {
	o := payables.Order{ID: po1, Vendor: acme, Currency: c, FreightLimit: money.FromMinor(0, c), FreightBilled: money.FromMinor(0, c)}
	for _, spec := range lines {
		o.Lines = append(o.Lines, orderLine(c, spec))
	}
	return o
}

// invoice is INV-1001 of ACME on PO-1, with lines of "1 10 EA 10.00": line of
// the order, quantity, unit and price. Amounts and total are right.
func invoice(c money.Currency, lines ...string) payables.Invoice {
	i := payables.Invoice{
		ID: invoiceID("INV-1001"), Number: must(payables.ParseNumber("A-1")), Document: payables.Bill, Vendor: acme, Order: po1, Currency: c, Date: march1,
		Tax: money.FromMinor(0, c), Freight: money.FromMinor(0, c), Credited: money.FromMinor(0, c), Status: payables.Open,
	}
	for n, spec := range lines {
		f := strings.Fields(spec)
		i.Lines = append(i.Lines, payables.InvoiceLine{
			Line: n + 1, OrderLine: must(strconv.Atoi(f[0])), Quantity: quantity(f[1]), Unit: must(payables.ParseUnit(f[2])), UnitPrice: amount(f[3], c),
		})
	}
	return priced(i)
}

// priced is the invoice with the amounts and the total that follow from the rest.
func priced(i payables.Invoice) payables.Invoice {
	i.Lines = slices.Clone(i.Lines)
	total := i.Tax.Minor() + i.Freight.Minor()
	for n := range i.Lines {
		l := &i.Lines[n]
		l.Amount = money.FromMinor(times(l.Quantity, l.UnitPrice).Int64(), i.Currency)
		total += l.Amount.Minor()
	}
	i.Total = money.FromMinor(total, i.Currency)
	return i
}

func claim(ids ...string) payables.NumberClaim {
	c := payables.NumberClaim{Vendor: acme, Document: payables.Bill, Normal: "a-1"}
	for _, id := range ids {
		id, rejected := strings.CutSuffix(id, " rejected")
		c.Claims = append(c.Claims, payables.Claimed{Invoice: invoiceID(id), Rejected: rejected})
	}
	return c
}

// found writes findings as "CODE:line found|expected", the parts that are there.
func found(findings []payables.Finding) []string {
	all := []string{}
	for _, f := range findings {
		s := f.Code.String()
		if f.Line > 0 {
			s += ":" + strconv.Itoa(f.Line)
		}
		if f.Found+f.Expected != "" {
			s += " " + f.Found + "|" + f.Expected
		}
		all = append(all, s)
	}
	return all
}

// codesOf writes findings as "CODE:line".
func codesOf(findings []payables.Finding) []string {
	all := []string{}
	for _, f := range findings {
		all = append(all, fmt.Sprintf("%s:%d", f.Code, f.Line))
	}
	return all
}

func reasonOf(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Code.String() + "/" + f.Reason
	}
	if err != nil {
		return "unclassified: " + err.Error()
	}
	return ""
}

// books is a ledger in a map: what a command decides is there at once.
type books struct {
	records map[ledger.Ref]ledger.Record
	entries map[journal.Subject][]journal.Entry
	op      operation.Operation
}

func newBooks() *books {
	return &books{map[ledger.Ref]ledger.Record{}, map[journal.Subject][]journal.Entry{}, op}
}

// run decides a command by a new operation and keeps what it changed.
func (b *books) run(cmd ledger.Command) (ledger.Change, error) {
	b.op.ID[14], b.op.ID[15] = b.op.ID[14]+b.op.ID[15]/255, b.op.ID[15]+1
	b.op.At = b.op.At.Add(time.Millisecond)
	refs := cmd.Reads()
	view := ledger.NewView(b.op, len(refs))
	for _, ref := range refs {
		view.Put(ref, b.records[ref])
	}
	change, err := ledger.Decide(cmd, view)
	if err != nil {
		return change, err
	}
	for _, r := range change.Put {
		b.records[r.Ref()] = r
	}
	if d, ok := change.Answer.(payables.Decision); ok {
		b.records[d.Ref()] = d
	}
	for _, e := range change.Entries {
		b.entries[e.Subject()] = append(b.entries[e.Subject()], e)
	}
	return change, nil
}

// verify recomputes a vendor, its documents and their states from its entries.
func (b *books) verify(id payables.VendorID) error {
	h := payables.NewHistory(b.vendor(id))
	at := func(ref ledger.Ref) ledger.View {
		view := ledger.NewView(b.op, 1)
		view.Put(ref, b.records[ref])
		return view
	}
	for _, e := range b.entries[id.Subject()] {
		if err := h.Add(e); err != nil {
			return err
		}
		ref, ok := h.Beside(e)
		if !ok {
			return fmt.Errorf("the entry %d is about nothing", e.Number())
		}
		if err := h.Compare(at(ref), ref, e); err != nil {
			return err
		}
	}
	if err := h.Close(); err != nil {
		return err
	}
	for _, ref := range h.States() {
		if err := h.CompareState(at(ref), ref); err != nil {
			return err
		}
	}
	for _, ref := range h.Numbers() {
		if err := h.CompareNumber(at(ref), ref); err != nil {
			return err
		}
	}
	for _, ref := range h.Credited() {
		c, err := h.Crediting(at(ref), ref)
		if err != nil {
			return err
		}
		for _, note := range c.Notes() {
			view := at(note)
			if o := c.Order(); o != (payables.OrderID{}) {
				view.Put(o.Ref(), b.records[o.Ref()])
			}
			if err := c.Add(view, note); err != nil {
				return err
			}
		}
		if err := c.Compare(); err != nil {
			return err
		}
	}
	for _, ref := range h.Orders() {
		sum, err := h.Billing(at(ref), ref)
		if err != nil {
			return err
		}
		for _, r := range b.records {
			if i, ok := r.(payables.Invoice); ok {
				if err := sum.Add(i); err != nil {
					return err
				}
			}
		}
		if err := sum.Compare(at(ref)); err != nil {
			return err
		}
	}
	return nil
}

func (b *books) invoice(id payables.InvoiceID) payables.Invoice {
	return b.records[id.Ref()].(payables.Invoice)
}

func (b *books) order(id payables.OrderID) payables.Order {
	return b.records[id.Ref()].(payables.Order)
}

func (b *books) vendor(id payables.VendorID) payables.Vendor {
	return b.records[id.Ref()].(payables.Vendor)
}

// route is the command about an invoice on record.
func (b *books) route(r payables.Request, mayOverride bool) payables.Route {
	return payables.Route{Request: r, Links: b.links(r.Invoice), Authority: payables.Authority{Tolerance: tolerance, MayOverride: mayOverride}}
}

func (b *books) links(id payables.InvoiceID) payables.Links {
	i, ok := b.records[id.Ref()].(payables.Invoice)
	if !ok {
		return payables.Links{}
	}
	if c, ok := b.records[i.Credits.Ref()].(payables.Invoice); ok {
		return payables.LinksOf(i, &c)
	}
	return payables.LinksOf(i, nil)
}

// match matches an invoice on record with all that is there.
func (b *books) match(id payables.InvoiceID) payables.Matched {
	links := b.links(id)
	view := ledger.NewView(b.op, 5)
	for _, ref := range links.Reads() {
		view.Put(ref, b.records[ref])
	}
	facts := links.Facts(view)
	for _, r := range b.records {
		if i, ok := r.(payables.Invoice); ok && i.Order == links.Order {
			c, _ := b.records[i.ClaimRef()].(payables.NumberClaim)
			facts.Rivals = append(facts.Rivals, payables.Rival{Invoice: i, Claim: c})
		}
	}
	return must(payables.Match(b.invoice(id), facts, tolerance))
}

// decide asks for a decision as an agent does: no override.
func (b *books) decide(id, action, reason string) error {
	_, err := b.run(b.route(payables.Request{Invoice: invoiceID(id), Action: must(payables.ParseAction(action)), Reason: must(payables.ParseReasonCode(reason))}, false))
	return err
}

// bring imports documents; it panics on an issue.
func (b *books) bring(documents ...ledger.Record) {
	for _, d := range documents {
		var cmd ledger.Command
		switch d := d.(type) {
		case payables.Vendor:
			cmd = payables.ImportVendors{Vendors: []payables.Vendor{d}}
		case payables.Order:
			cmd = payables.ImportOrders{Orders: []payables.Order{d}}
		case payables.Receipt:
			cmd = payables.ImportReceipts{Receipts: []payables.Receipt{d}}
		case payables.Invoice:
			cmd = payables.ImportInvoices{Invoices: []payables.Invoice{d}}
		}
		must(b.run(cmd))
	}
}

// goods is a receipt of ACME on PO-1, or a return, with lines of "1 10 EA".
func goods(id string, way payables.Movement, lines ...string) payables.Receipt {
	r := payables.Receipt{ID: must(payables.ParseReceiptID(id)), Order: po1, Vendor: acme, Movement: way, ReceivedAt: march1}
	for _, spec := range lines {
		f := strings.Fields(spec)
		r.Lines = append(r.Lines, payables.ReceiptLine{OrderLine: must(strconv.Atoi(f[0])), Quantity: quantity(f[1]), Unit: must(payables.ParseUnit(f[2]))})
	}
	return r
}

// as is the invoice under another id and number.
func as(i payables.Invoice, id, number string) payables.Invoice {
	i.ID, i.Number = invoiceID(id), must(payables.ParseNumber(number))
	return i
}

// note is a credit note on an invoice.
func note(id, number, credits string, lines ...string) payables.Invoice {
	n := as(invoice(usd, lines...), id, number)
	n.Document, n.Credits, n.Order = payables.CreditNote, invoiceID(credits), payables.OrderID{}
	return n
}

// stocked is a ledger with ACME, BOLT, and PO-1 of 10 EA at 10.00, 10 received.
func stocked() *books {
	b := newBooks()
	b.bring(payables.Vendor{ID: acme, Name: "Acme Ltd"}, payables.Vendor{ID: bolt, Name: "Bolt KG"},
		order(usd, "1 10 EA 10.00"), goods("GR-1", payables.Received, "1 10 EA"))
	return b
}
