package payables

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// MaxImport is how many documents one import may hold, and MaxImportLines how
// many lines they may have together.
const (
	MaxImport      = 50_000
	MaxImportLines = 200_000
)

// importFacts are the number of documents and a digest of them.
func importFacts(name string, n int, all []operation.Fact) []operation.Fact {
	return []operation.Fact{
		{Name: "documents", Value: strconv.Itoa(n)},
		{Name: factDigest, Value: digest(name, all)},
	}
}

const factDigest = "sha256"

func digest(name string, facts []operation.Fact) string {
	return fmt.Sprintf("%x", operation.FingerprintOf(name, facts))
}

// intake is the decision of an import under way. An import brings documents in,
// all or none. A document that is there already with the very same facts stays
// as it is, whatever has become of it since, so an import may be sent again; one
// with other facts is an issue. The path of an issue is the document's
// position, from 0, and the field.
type intake struct {
	op      operation.Operation
	command string
	view    ledger.View
	change  ledger.Change
	done    customers.Imported
	issues  []fault.Issue
	bad     map[int]bool                 // the documents that have an issue
	seen    map[ledger.Ref]bool          // the documents looked at so far
	records map[ledger.Ref]ledger.Record // as they are after what came in so far
	order   []ledger.Ref                 // of records, as they were first changed
}

// checked starts an import with what can be said of its documents alone: check
// looks at each.
func checked(command string, documents, lines int, check func(in *intake, at int)) (*intake, error) {
	in := &intake{command: command, bad: map[int]bool{}, seen: map[ledger.Ref]bool{}, records: map[ledger.Ref]ledger.Record{}}
	if documents == 0 || documents > MaxImport || lines > MaxImportLines {
		return in, fault.Invalid([]fault.Issue{{Path: []any{}, Code: "import_size",
			Message: fmt.Sprintf("an import holds 1 to %d documents with at most %d lines, not %d with %d", MaxImport, MaxImportLines, documents, lines)}})
	}
	for at := range documents {
		check(in, at)
	}
	return in, nil
}

// alone returns the issues of a start.
func alone(in *intake, err error) []fault.Issue {
	if f := fault.Of(err); f != nil {
		return f.Issues
	}
	return in.issues
}

// on sets the import to work on what is there.
func (in *intake) on(v ledger.View) {
	in.op, in.view = v.Op, v
	in.done = customers.Imported{ID: v.Op.ID, ImportedAt: v.Op.At}
}

func (in *intake) issue(at int, field, code, message string) {
	in.bad[at] = true
	in.issues = append(in.issues, fault.Issue{Path: []any{at, field}, Code: code, Message: field + " " + message})
}

// put keeps the new state of a record until the end.
func (in *intake) put(r ledger.Record) {
	ref := r.Ref()
	if _, changed := in.records[ref]; !changed {
		in.order = append(in.order, ref)
	}
	in.records[ref] = r
}

// current returns a record as the import has left it so far.
func current[R ledger.Record](in *intake, ref ledger.Ref) (R, bool) {
	if r, ok := in.records[ref]; ok {
		return r.(R), true
	}
	return ledger.Get[R](in.view, ref)
}

// twice finds an issue if the document stands in the import before.
func (in *intake) twice(at int, r ledger.Record) {
	ref := r.Ref()
	if ref.ID != "" && in.seen[ref] {
		in.issue(at, "id", "twice", ref.ID+" stands there twice")
	}
	in.seen[ref] = true
}

// known reports whether a document is there already, and finds an issue if it
// has other facts.
func known[R interface {
	ledger.Record
	facts() []operation.Fact
}](in *intake, at int, r R) bool {
	have, ok := ledger.Get[R](in.view, r.Ref())
	if !ok {
		return false
	}
	if !slices.Equal(have.facts(), r.facts()) {
		in.issue(at, "id", "conflict", r.Ref().ID+" exists already with other facts")
	}
	in.done.Unchanged++
	return true
}

// enter writes the entry of one document into the history of its vendor.
func (in *intake) enter(v Vendor, facts []operation.Fact) (int64, error) {
	v, e, err := v.post(in.op, in.command, facts)
	if err != nil {
		return 0, err
	}
	in.put(v)
	in.change.Entries = append(in.change.Entries, e)
	in.done.Opened++
	return e.Number(), nil
}

// end returns the change, or the issues.
func (in *intake) end() (ledger.Change, error) {
	if len(in.issues) > 0 {
		slices.SortStableFunc(in.issues, func(a, b fault.Issue) int { return cmp.Compare(a.Path[0].(int), b.Path[0].(int)) })
		return ledger.Change{}, fault.Invalid(in.issues)
	}
	for _, ref := range in.order {
		in.change.Put = append(in.change.Put, in.records[ref])
	}
	in.change.Answer = in.done
	return in.change, nil
}

// entered are the facts of the entry of a document: which one, and a digest of
// all that it says.
func entered(kind ledger.Kind, id string, facts []operation.Fact) []operation.Fact {
	return []operation.Fact{{Name: kind.Name, Value: id}, {Name: factDigest, Value: digest(kind.Name, facts)}}
}

// ImportVendorsName is the name of the command [ImportVendors].
const ImportVendorsName = "payables.import_vendors"

// ImportVendors is the command that brings vendors in: their ids and names.
type ImportVendors struct{ Vendors []Vendor }

// Name is [ImportVendorsName].
func (ImportVendors) Name() string { return ImportVendorsName }

// Facts are the number of vendors and a digest of them.
func (c ImportVendors) Facts() []operation.Fact {
	var all []operation.Fact
	for _, v := range c.Vendors {
		all = append(all, v.facts()...)
	}
	return importFacts(c.Name(), len(c.Vendors), all)
}

func (v Vendor) facts() []operation.Fact {
	return []operation.Fact{{Name: "vendor", Value: v.ID.text}, {Name: "name", Value: v.Name}}
}

// Reads names each vendor.
func (c ImportVendors) Reads() []ledger.Ref {
	return refsOf(func(add func(ledger.Ref)) {
		for _, v := range c.Vendors {
			add(v.Ref())
		}
	})
}

// refsOf collects refs, each once.
func refsOf(each func(add func(ledger.Ref))) []ledger.Ref {
	var refs []ledger.Ref
	seen := map[ledger.Ref]bool{}
	each(func(r ledger.Ref) {
		if !seen[r] {
			seen[r] = true
			refs = append(refs, r)
		}
	})
	return refs
}

// Decide refuses InvalidInput with all issues. The answer is a
// [customers.Imported].
func (c ImportVendors) Decide(v ledger.View) (ledger.Change, error) {
	in, err := c.start()
	if err != nil {
		return ledger.Change{}, err
	}
	in.on(v)
	for at, vendor := range c.Vendors {
		if in.bad[at] || known(in, at, vendor) {
			continue
		}
		if _, err := in.enter(Vendor{ID: vendor.ID, Name: vendor.Name}, entered(VendorKind, vendor.ID.text, vendor.facts())); err != nil {
			return ledger.Change{}, err
		}
	}
	return in.end()
}

// Check returns the issues that can be seen without a ledger.
func (c ImportVendors) Check() []fault.Issue { return alone(c.start()) }

func (c ImportVendors) start() (*intake, error) {
	return checked(c.Name(), len(c.Vendors), 0, func(in *intake, at int) {
		vendor := c.Vendors[at]
		in.twice(at, vendor)
		if vendor.ID == (VendorID{}) {
			in.issue(at, "id", "required", "is missing")
		}
		if !IsName(vendor.Name) {
			in.issue(at, "name", "invalid", fmt.Sprintf("must have 1 to %d characters of one line that a reader sees, without spaces around them", MaxName))
		}
	})
}

// ImportOrdersName is the name of the command [ImportOrders].
const ImportOrdersName = "payables.import_orders"

// ImportOrders is the command that brings purchase orders in. What was received
// and billed on them is not looked at: it starts at nothing.
type ImportOrders struct{ Orders []Order }

// Name is [ImportOrdersName].
func (ImportOrders) Name() string { return ImportOrdersName }

// Facts are the number of orders and a digest of them.
func (c ImportOrders) Facts() []operation.Fact {
	var all []operation.Fact
	for _, o := range c.Orders {
		all = append(all, o.facts()...)
	}
	return importFacts(c.Name(), len(c.Orders), all)
}

func (o Order) facts() []operation.Fact {
	facts := []operation.Fact{
		{Name: "order", Value: o.ID.text}, {Name: "vendor", Value: o.Vendor.text}, {Name: "currency", Value: o.Currency.String()}, digits(o.Currency),
		{Name: "freight_limit_minor", Value: minor(o.FreightLimit)}, {Name: "tax_limit_percent", Value: o.TaxLimit.String()},
	}
	for _, l := range o.Lines {
		facts = append(facts,
			operation.Fact{Name: "line", Value: strconv.Itoa(l.Line)}, operation.Fact{Name: "sku", Value: l.SKU.text},
			operation.Fact{Name: "description", Value: l.Description}, operation.Fact{Name: "unit", Value: l.Unit.text},
			operation.Fact{Name: "quantity", Value: l.Quantity.String()}, operation.Fact{Name: "unit_price_minor", Value: minor(l.UnitPrice)})
		for _, x := range l.Conversions {
			facts = append(facts, operation.Fact{Name: "conversion", Value: fmt.Sprintf("%s=%d/%d", x.Unit, x.Numerator, x.Denominator)})
		}
	}
	return facts
}

// factDigits stands in the digests of newer ledgers: documents entered before say
// no digits.
const factDigits = "digits"

// digits says what the minor units of a document are.
func digits(c money.Currency) operation.Fact {
	return operation.Fact{Name: factDigits, Value: strconv.Itoa(c.Digits())}
}

func minor(a money.Amount) string { return strconv.FormatInt(a.Minor(), 10) }

// Reads names each order and its vendor.
func (c ImportOrders) Reads() []ledger.Ref {
	return refsOf(func(add func(ledger.Ref)) {
		for _, o := range c.Orders {
			add(o.Ref())
			add(o.Vendor.Ref())
		}
	})
}

// Decide refuses InvalidInput with all issues. The answer is a
// [customers.Imported].
func (c ImportOrders) Decide(v ledger.View) (ledger.Change, error) {
	in, err := c.start()
	if err != nil {
		return ledger.Change{}, err
	}
	in.on(v)
	for at, o := range c.Orders {
		vendor, ok := current[Vendor](in, o.Vendor.Ref())
		if !ok {
			in.issue(at, "vendor", "unknown", "is not known")
		}
		if in.bad[at] || known(in, at, o) {
			continue
		}
		o = o.withLines()
		o.FreightBilled = money.FromMinor(0, o.Currency)
		for n := range o.Lines {
			o.Lines[n].Received, o.Lines[n].Billed = Ratio{}, Ratio{}
		}
		in.put(o)
		if _, err := in.enter(vendor, entered(OrderKind, o.ID.text, o.facts())); err != nil {
			return ledger.Change{}, err
		}
	}
	return in.end()
}

// Check returns the issues that can be seen without a ledger.
func (c ImportOrders) Check() []fault.Issue { return alone(c.start()) }

func (c ImportOrders) start() (*intake, error) {
	lines := 0
	for _, x := range c.Orders {
		lines += len(x.Lines)
	}
	return checked(c.Name(), len(c.Orders), lines, func(in *intake, at int) {
		in.twice(at, c.Orders[at])
		checkOrder(in, at, c.Orders[at])
	})
}

func checkOrder(in *intake, at int, o Order) {
	if o.ID == (OrderID{}) {
		in.issue(at, "id", "required", "is missing")
	}
	if o.Currency == (money.Currency{}) {
		in.issue(at, "currency", "required", "is missing")
	}
	checkAmount(in, at, "freight_limit", o.FreightLimit, o.Currency)
	if o.TaxLimit.micro < 0 || o.TaxLimit.micro > MaxPercent*micro {
		in.issue(at, "tax_limit", "out_of_range", fmt.Sprintf("must be 0 to %d percent", MaxPercent))
	}
	checkLines(in, at, len(o.Lines), 1, func(n int) int { return o.Lines[n].Line })
	for n, l := range o.Lines {
		field := fmt.Sprintf("lines[%d]", n)
		checkAmount(in, at, field+".unit_price", l.UnitPrice, o.Currency)
		if l.SKU == (SKU{}) || l.Unit == (Unit{}) || !l.Quantity.valid() {
			in.issue(at, field, "required", "must have a sku, a unit and a quantity")
		}
		if l.Description != "" && !IsName(l.Description) {
			in.issue(at, field+".description", "invalid", fmt.Sprintf("must have at most %d characters of one line that a reader sees, without spaces around them", MaxName))
		}
		if len(l.Conversions) > MaxConversions {
			in.issue(at, field+".conversions", "too_many", fmt.Sprintf("must be at most %d", MaxConversions))
		}
		for k, x := range l.Conversions {
			twice := x.Unit == l.Unit || slices.ContainsFunc(l.Conversions[:k], func(y Conversion) bool { return y.Unit == x.Unit })
			if x.Unit == (Unit{}) || twice || !isFactor(x.Numerator) || !isFactor(x.Denominator) {
				in.issue(at, fmt.Sprintf("%s.conversions[%d]", field, k), "invalid", fmt.Sprintf("must name another unit, once, and have factors of 1 to %d", MaxFactor))
			}
		}
	}
}

func isFactor(n int64) bool { return 1 <= n && n <= MaxFactor }

// checkLines finds an issue unless there are at least `least` lines and their
// numbers grow.
func checkLines(in *intake, at, n, least int, number func(int) int) {
	if n < least || n > MaxLines {
		in.issue(at, "lines", "size", fmt.Sprintf("must be %d to %d, not %d", least, MaxLines, n))
	}
	for k := range n {
		if number(k) < 1 || number(k) > MaxLineNumber || k > 0 && number(k) <= number(k-1) {
			in.issue(at, fmt.Sprintf("lines[%d].line", k), "order", fmt.Sprintf("must be 1 to %d and more than that of the line before", MaxLineNumber))
		}
	}
}

// MaxLineNumber bounds the number of a line.
const MaxLineNumber = 1_000_000

func checkAmount(in *intake, at int, field string, a money.Amount, c money.Currency) {
	if a.Sign() < 0 || a.Minor() > MaxMinor || a.Currency() != c {
		in.issue(at, field, "out_of_range", fmt.Sprintf("must be 0 to %s in the currency of the document", money.FromMinor(MaxMinor, c).Major()))
	}
}

// ImportReceiptsName is the name of the command [ImportReceipts].
const ImportReceiptsName = "payables.import_receipts"

// ImportReceipts is the command that books goods in, or back out. The vendor of
// each is its order's.
type ImportReceipts struct{ Receipts []Receipt }

// Name is [ImportReceiptsName].
func (ImportReceipts) Name() string { return ImportReceiptsName }

// Facts are the number of receipts and a digest of them.
func (c ImportReceipts) Facts() []operation.Fact {
	var all []operation.Fact
	for _, r := range c.Receipts {
		all = append(all, r.facts()...)
	}
	return importFacts(c.Name(), len(c.Receipts), all)
}

// ReceiptsOf makes the command: each receipt is given the vendor of its order,
// which never changes and load reads.
func ReceiptsOf(list []Receipt, load func(...ledger.Ref) (ledger.View, error)) (ImportReceipts, error) {
	orders := refsOf(func(add func(ledger.Ref)) {
		for _, r := range list {
			add(r.Order.Ref())
		}
	})
	view, err := load(orders...)
	if err != nil {
		return ImportReceipts{}, err
	}
	list = slices.Clone(list)
	for n, r := range list {
		if o, ok := ledger.Get[Order](view, r.Order.Ref()); ok {
			list[n].Vendor = o.Vendor
		}
	}
	return ImportReceipts{list}, nil
}

func (r Receipt) facts() []operation.Fact {
	facts := []operation.Fact{
		{Name: "receipt", Value: r.ID.text}, {Name: "order", Value: r.Order.text}, {Name: "movement", Value: r.Movement.name}, {Name: "received_at", Value: r.ReceivedAt.text},
	}
	for _, l := range r.Lines {
		facts = append(facts, operation.Fact{Name: "order_line", Value: strconv.Itoa(l.OrderLine)},
			operation.Fact{Name: "quantity", Value: l.Quantity.String()}, operation.Fact{Name: "unit", Value: l.Unit.text})
	}
	return facts
}

// Reads names each receipt, its order and its vendor.
func (c ImportReceipts) Reads() []ledger.Ref {
	return refsOf(func(add func(ledger.Ref)) {
		for _, r := range c.Receipts {
			add(r.Ref())
			add(r.Order.Ref())
			if r.Vendor != (VendorID{}) { // the order is unknown
				add(r.Vendor.Ref())
			}
		}
	})
}

// Decide refuses InvalidInput with all issues: unknown orders and lines, units
// without a conversion, and more sent back than was received. The answer is a
// [customers.Imported].
func (c ImportReceipts) Decide(v ledger.View) (ledger.Change, error) {
	in, err := c.start()
	if err != nil {
		return ledger.Change{}, err
	}
	in.on(v)
	for at, r := range c.Receipts {
		order, ok := current[Order](in, r.Order.Ref())
		if !ok || r.Vendor == (VendorID{}) { // it was not known when the vendor was looked up
			in.issue(at, "order", "unknown", "is not known")
			continue
		}
		if !in.bad[at] && known(in, at, r) {
			continue
		}
		var after Order
		if err := exact(func() { after = receive(in, at, order, r) }); err != nil {
			in.issue(at, "lines", "quantity_out_of_range", "can not be computed exactly")
		}
		if in.bad[at] {
			continue
		}
		vendor, ok := current[Vendor](in, r.Vendor.Ref())
		if !ok || r.Vendor != order.Vendor {
			return ledger.Change{}, fmt.Errorf("payables: the receipt %s is not of the vendor of its order", r.ID)
		}
		in.put(after)
		in.put(r)
		if _, err := in.enter(vendor, entered(ReceiptKind, r.ID.text, r.facts())); err != nil {
			return ledger.Change{}, err
		}
	}
	return in.end()
}

// Check returns the issues that can be seen without a ledger.
func (c ImportReceipts) Check() []fault.Issue { return alone(c.start()) }

func (c ImportReceipts) start() (*intake, error) {
	lines := 0
	for _, x := range c.Receipts {
		lines += len(x.Lines)
	}
	return checked(c.Name(), len(c.Receipts), lines, func(in *intake, at int) {
		in.twice(at, c.Receipts[at])
		checkReceipt(in, at, c.Receipts[at])
	})
}

func checkReceipt(in *intake, at int, r Receipt) {
	if r.ID == (ReceiptID{}) || r.Movement == (Movement{}) || r.ReceivedAt == (Date{}) {
		in.issue(at, "id", "required", "must be there, with a kind and received_at")
	}
	if n := len(r.Lines); n < 1 || n > MaxLines {
		in.issue(at, "lines", "size", fmt.Sprintf("must be 1 to %d, not %d", MaxLines, n))
	}
}

// receive returns the order after the receipt.
func receive(in *intake, at int, o Order, r Receipt) Order {
	o = o.withLines()
	for n, l := range r.Lines {
		field := fmt.Sprintf("lines[%d]", n)
		place := o.find(l.OrderLine)
		if place < 0 {
			in.issue(at, field+".order_line", "unknown", "is no line of the order")
			continue
		}
		line := &o.Lines[place]
		c, known := line.in(l.Unit)
		if !known || !l.Quantity.valid() {
			in.issue(at, field, "unit", "must have a quantity in a unit of the order's line, or one with a conversion")
			continue
		}
		q := l.Quantity.in(c)
		switch r.Movement {
		case Received:
			line.Received = line.Received.plus(q)
		case Returned:
			if line.Received = line.Received.minus(q); line.Received.Sign() < 0 {
				in.issue(at, field+".quantity", "too_big", "is more than was received")
			}
		}
	}
	return o
}

// ImportInvoicesName is the name of the command [ImportInvoices].
const ImportInvoicesName = "payables.import_invoices"

// ImportInvoices is the command that enters invoices and credit notes. What was
// decided about them is not looked at: they start open.
type ImportInvoices struct{ Invoices []Invoice }

// Name is [ImportInvoicesName].
func (ImportInvoices) Name() string { return ImportInvoicesName }

// Facts are the number of invoices and a digest of them.
func (c ImportInvoices) Facts() []operation.Fact {
	var all []operation.Fact
	for _, i := range c.Invoices {
		all = append(all, i.facts()...)
	}
	return importFacts(c.Name(), len(c.Invoices), all)
}

func (i Invoice) facts() []operation.Fact {
	facts := []operation.Fact{
		{Name: "invoice", Value: i.ID.text}, {Name: "number", Value: i.Number.written}, {Name: "kind", Value: i.Document.name}, {Name: "credits", Value: i.Credits.text},
		{Name: "vendor", Value: i.Vendor.text}, {Name: "order", Value: i.Order.text}, {Name: "currency", Value: i.Currency.String()}, digits(i.Currency),
		{Name: "tax_minor", Value: minor(i.Tax)}, {Name: "freight_minor", Value: minor(i.Freight)}, {Name: "total_minor", Value: minor(i.Total)}, {Name: "date", Value: i.Date.text},
	}
	for _, l := range i.Lines {
		facts = append(facts,
			operation.Fact{Name: "line", Value: strconv.Itoa(l.Line)}, operation.Fact{Name: "order_line", Value: strconv.Itoa(l.OrderLine)},
			operation.Fact{Name: "sku", Value: l.SKU.text}, operation.Fact{Name: "unit", Value: l.Unit.text}, operation.Fact{Name: "quantity", Value: l.Quantity.String()},
			operation.Fact{Name: "unit_price_minor", Value: minor(l.UnitPrice)}, operation.Fact{Name: "amount_minor", Value: minor(l.Amount)})
	}
	return facts
}

// Reads names each invoice, its vendor, its number and the invoice it credits.
func (c ImportInvoices) Reads() []ledger.Ref {
	return refsOf(func(add func(ledger.Ref)) {
		for _, i := range c.Invoices {
			add(i.Ref())
			add(i.Vendor.Ref())
			add(i.ClaimRef())
			if i.Credits != (InvoiceID{}) {
				add(i.Credits.Ref())
			}
		}
	})
}

// Decide refuses InvalidInput with all issues. An order that does not exist is
// none: the match finds it. The answer is a [customers.Imported].
func (c ImportInvoices) Decide(v ledger.View) (ledger.Change, error) {
	in, err := c.start()
	if err != nil {
		return ledger.Change{}, err
	}
	in.on(v)
	for at, i := range c.Invoices {
		vendor, ok := current[Vendor](in, i.Vendor.Ref())
		if !ok {
			in.issue(at, "vendor", "unknown", "is not known")
		}
		checkCredited(in, at, i)
		if in.bad[at] || known(in, at, i) {
			continue
		}
		claim, ok := current[NumberClaim](in, i.ClaimRef())
		if !ok {
			claim = NumberClaim{Vendor: i.Vendor, Document: i.Document, Normal: i.Number.normal}
		}
		if len(claim.Claims) >= MaxSameNumber {
			in.issue(at, "number", "too_many", fmt.Sprintf("is carried by %d documents of the vendor already", MaxSameNumber))
		}
		if in.bad[at] {
			continue
		}
		claim.Claims = append(slices.Clip(claim.Claims), Claimed{Invoice: i.ID})
		in.put(claim)
		i = i.withLines()
		for n := range i.Lines {
			i.Lines[n].Credited = Ratio{}
		}
		i.Status, i.Decision, i.Credited = Open, nil, money.FromMinor(0, i.Currency)
		if i.Entered, err = in.enter(vendor, entered(InvoiceKind, i.ID.text, i.facts())); err != nil {
			return ledger.Change{}, err
		}
		in.put(i)
	}
	return in.end()
}

// Synthesised reports whether something of an invoice is, which Check finds.
func (c ImportInvoices) Synthesised() bool {
	return slices.ContainsFunc(c.Invoices, func(i Invoice) bool { return len(i.Synthesised) > 0 })
}

// Check returns the issues that can be seen without a ledger.
func (c ImportInvoices) Check() []fault.Issue { return alone(c.start()) }

func (c ImportInvoices) start() (*intake, error) {
	lines := 0
	for _, x := range c.Invoices {
		lines += len(x.Lines)
	}
	return checked(c.Name(), len(c.Invoices), lines, func(in *intake, at int) {
		in.twice(at, c.Invoices[at])
		checkInvoice(in, at, c.Invoices[at])
	})
}

func checkInvoice(in *intake, at int, i Invoice) {
	if i.ID == (InvoiceID{}) || i.Number == (Number{}) || i.Document == (DocumentKind{}) || i.Date == (Date{}) {
		in.issue(at, "id", "required", "must be there, with a number, a kind and a date")
	}
	if i.Currency == (money.Currency{}) {
		in.issue(at, "currency", "required", "is missing")
	}
	if len(i.Synthesised) > 0 {
		in.issue(at, "synthesised", "invalid", "must be empty: what a ledger does not keep can not be brought in")
	}
	if (i.Credits != InvoiceID{}) && i.Document != CreditNote {
		in.issue(at, "credits", "invalid", "is for a credit note")
	}
	checkAmount(in, at, "tax", i.Tax, i.Currency)
	checkAmount(in, at, "freight", i.Freight, i.Currency)
	checkAmount(in, at, "total", i.Total, i.Currency)
	checkLines(in, at, len(i.Lines), 0, func(n int) int { return i.Lines[n].Line })
	for n, l := range i.Lines {
		field := fmt.Sprintf("lines[%d]", n)
		checkAmount(in, at, field+".unit_price", l.UnitPrice, i.Currency)
		checkAmount(in, at, field+".amount", l.Amount, i.Currency)
		if l.Unit == (Unit{}) || !l.Quantity.valid() {
			in.issue(at, field, "required", "must have a unit and a quantity")
		}
		if l.OrderLine < 0 || l.OrderLine > MaxLineNumber {
			in.issue(at, field+".order_line", "out_of_range", fmt.Sprintf("must be 1 to %d, or absent", MaxLineNumber))
		}
	}
}

// checkCredited compares a credit note with the invoice it credits: that has to
// be there, and a note names no other order.
func checkCredited(in *intake, at int, note Invoice) {
	if note.Credits == (InvoiceID{}) || note.Document != CreditNote {
		return
	}
	c, ok := current[Invoice](in, note.Credits.Ref())
	switch {
	case !ok || c.Document != Bill:
		in.issue(at, "credits", "unknown", "must be an invoice that is known")
	case note.Order != (OrderID{}) && note.Order != c.Order:
		in.issue(at, "order", "conflict", "must be that of the invoice credited, or absent")
	}
}
