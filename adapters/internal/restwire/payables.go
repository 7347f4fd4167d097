package restwire

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// Vendor is who sends invoices.
type Vendor struct {
	Tenant   string    `json:"tenant" doc:"The tenant it belongs to."`
	ID       string    `json:"id" doc:"1 to 24 letters, digits or ._-"`
	Name     string    `json:"name" doc:"The vendor's name."`
	Balances []Balance `json:"balances" nullable:"false" doc:"What is owed, one for each currency, in order of its code."`
	Version  int64     `json:"version" doc:"Grows by one with each entry; the number of the last one."`
	Head     string    `json:"head" doc:"The hash of the last entry, in hexadecimal."`
}

// Balance is what is owed in one currency.
type Balance struct {
	Currency     *string `json:"currency" nullable:"false" doc:"ISO 4217 code."`
	BalanceMinor int64   `json:"balanceMinor" doc:"What is owed, in minor units; negative if credited beyond it."`
}

// PurchaseOrder is what was agreed, and what of it has been received and billed.
type PurchaseOrder struct {
	Tenant             string      `json:"tenant" doc:"The tenant it belongs to."`
	ID                 string      `json:"id" doc:"1 to 24 letters, digits or ._-"`
	VendorID           string      `json:"vendorId" doc:"Who delivers."`
	Currency           string      `json:"currency" doc:"ISO 4217 code of all its amounts."`
	FreightLimitMinor  int64       `json:"freightLimitMinor" doc:"The most freight that all invoices together may charge, in minor units."`
	TaxLimitPercent    string      `json:"taxLimitPercent" doc:"The most tax on the lines of an invoice, in percent: an exact decimal."`
	FreightBilledMinor int64       `json:"freightBilledMinor" doc:"The freight on approved invoices, in minor units."`
	Lines              []OrderLine `json:"lines" nullable:"false" doc:"The lines in order, or the first of them; see next."`
	Next               *string     `json:"next" required:"false" nullable:"false" doc:"There are more lines: send it as cursor to the lines."`
}

// OrderLine is one line of an order.
type OrderLine struct {
	Line           int64        `json:"line" doc:"Its number, more than that of the line before."`
	SKU            string       `json:"sku" doc:"The article."`
	Description    *string      `json:"description" required:"false" nullable:"false" doc:"What it is."`
	Unit           string       `json:"unit" doc:"The unit of measure."`
	Quantity       string       `json:"quantity" doc:"How many were ordered: an exact decimal of at most 6 decimals, without trailing zeros."`
	UnitPriceMinor int64        `json:"unitPriceMinor" doc:"The price of one, in minor units."`
	Conversions    []Conversion `json:"conversions" nullable:"false" doc:"Other units in which it can be delivered or billed."`
	Received       *Fraction    `json:"received" required:"false" nullable:"false" doc:"How many have come, less what was sent back; absent if none. Not part of an import."`
	Billed         *Fraction    `json:"billed" required:"false" nullable:"false" doc:"How many are on approved invoices, less credit notes; absent if none. Not part of an import."`
}

// Conversion says that one of another unit is numerator/denominator of the
// line's own.
type Conversion struct {
	Unit        string `json:"unit" doc:"The other unit."`
	Numerator   int64  `json:"numerator" doc:"Of the fraction of the line's unit that one of it is."`
	Denominator int64  `json:"denominator" doc:"Of that fraction."`
}

// Fraction is an exact quantity, in lowest terms.
type Fraction struct {
	Numerator   int64 `json:"numerator" doc:"Any whole number but 0."`
	Denominator int64 `json:"denominator" doc:"1 or more."`
}

// OrderLines is a part of an order's lines.
type OrderLines struct {
	Lines []OrderLine `json:"lines" nullable:"false" doc:"The lines, in order."`
	Next  *string     `json:"next" required:"false" nullable:"false" doc:"Send it as cursor to get the next part; absent on the last."`
}

// Receipt is goods that came in or went back.
type Receipt struct {
	Tenant     string        `json:"tenant" doc:"The tenant it belongs to."`
	ID         string        `json:"id" doc:"1 to 24 letters, digits or ._-"`
	OrderID    string        `json:"orderId" doc:"The order of the goods."`
	VendorID   string        `json:"vendorId" doc:"The order's."`
	Kind       string        `json:"kind" enum:"receipt,return" doc:"receipt if they came, return if they went back."`
	ReceivedAt string        `json:"receivedAt" format:"date" doc:"On which day."`
	Lines      []ReceiptLine `json:"lines" nullable:"false" doc:"What came, line by line."`
}

// ReceiptLine is goods of one line of the order.
type ReceiptLine struct {
	OrderLine int64  `json:"orderLine" doc:"The number of the order's line."`
	Quantity  string `json:"quantity" doc:"How many: an exact decimal."`
	Unit      string `json:"unit" doc:"In which unit."`
}

// Receipts is a page of receipts, in order of id.
type Receipts struct {
	Receipts []Receipt `json:"receipts" nullable:"false" doc:"The receipts, in order of id."`
	Next     *string   `json:"next" required:"false" nullable:"false" doc:"Send it as cursor to get the next page; absent on the last."`
}

// Invoice is an invoice or a credit note. Lists leave its lines and its decision
// out.
type Invoice struct {
	Tenant        string         `json:"tenant" doc:"The tenant it belongs to."`
	ID            string         `json:"id" doc:"INV- and 4 to 12 digits."`
	Number        string         `json:"number" doc:"The number as the vendor wrote it."`
	NormalNumber  string         `json:"normalNumber" doc:"What spellings of one number have in common; number claims go by it."`
	Kind          string         `json:"kind" enum:"invoice,credit_note" doc:"Which way the money goes."`
	CreditsID     *string        `json:"creditsId" required:"false" nullable:"false" doc:"The invoice that a credit note credits, if it names one."`
	VendorID      string         `json:"vendorId" doc:"Who sent it."`
	OrderID       *string        `json:"orderId" required:"false" nullable:"false" doc:"The order that it names, if it does; there may be no such order."`
	Currency      *string        `json:"currency" nullable:"false" doc:"ISO 4217 code of all its amounts."`
	TaxMinor      *int64         `json:"taxMinor" nullable:"false" doc:"Tax as declared, in minor units."`
	FreightMinor  *int64         `json:"freightMinor" nullable:"false" doc:"Freight as declared, in minor units."`
	TotalMinor    int64          `json:"totalMinor" doc:"The total as declared, in minor units."`
	InvoiceDate   *string        `json:"invoiceDate" nullable:"false" format:"date" doc:"The day that it is of."`
	Entered       int64          `json:"entered" doc:"The number of the entry that entered it, in its vendor's history."`
	Status        string         `json:"status" enum:"open,on_hold,approved,rejected" doc:"Where it stands; approved and rejected are final."`
	CreditedMinor int64          `json:"creditedMinor" doc:"What approved credit notes gave back, in minor units."`
	Decision      *Decision      `json:"decision" required:"false" nullable:"false" doc:"The last one, if there is one. Absent in lists."`
	Lines         *[]InvoiceLine `json:"lines" required:"false" nullable:"false" doc:"The lines in order, or the first of them; see next. Absent in lists."`
	Next          *string        `json:"next" required:"false" nullable:"false" doc:"There are more lines: send it as cursor to the lines."`
}

// InvoiceLine is one line of an invoice.
type InvoiceLine struct {
	Line           int64     `json:"line" doc:"Its number, more than that of the line before."`
	OrderLine      *int64    `json:"orderLine" required:"false" nullable:"false" doc:"The line of the order that it bills, if it names one."`
	SKU            *string   `json:"sku" required:"false" nullable:"false" doc:"The article, if it names one."`
	Unit           string    `json:"unit" doc:"The unit of measure."`
	Quantity       string    `json:"quantity" doc:"How many are billed: an exact decimal of at most 6 decimals, without trailing zeros."`
	UnitPriceMinor int64     `json:"unitPriceMinor" doc:"The price of one, in minor units."`
	AmountMinor    int64     `json:"amountMinor" doc:"The amount as declared, in minor units."`
	Credited       *Fraction `json:"credited" required:"false" nullable:"false" doc:"How many of the order line's unit approved credit notes gave back; absent if none. Not part of an import."`
}

// InvoiceLines is a part of an invoice's lines.
type InvoiceLines struct {
	Lines []InvoiceLine `json:"lines" nullable:"false" doc:"The lines, in order."`
	Next  *string       `json:"next" required:"false" nullable:"false" doc:"Send it as cursor to get the next part; absent on the last."`
}

// Invoices is a page of invoices without their lines and decisions.
type Invoices struct {
	Invoices []Invoice `json:"invoices" nullable:"false" doc:"The invoices, in the order of the list."`
	Next     *string   `json:"next" required:"false" nullable:"false" doc:"Send it as cursor to get the next page; absent on the last."`
}

// Vendors is a page of vendors, in order of id.
type Vendors struct {
	Vendors []Vendor `json:"vendors" nullable:"false" doc:"The vendors, in order of id."`
	Next    *string  `json:"next" required:"false" nullable:"false" doc:"Send it as cursor to get the next page; absent on the last."`
}

// Decision is what was decided about an invoice.
type Decision struct {
	Tenant     string    `json:"tenant" doc:"The tenant it belongs to."`
	ID         string    `json:"id" doc:"The operation's id, a UUID."`
	InvoiceID  string    `json:"invoiceId" doc:"What it is about."`
	VendorID   string    `json:"vendorId" doc:"The invoice's vendor."`
	Number     int64     `json:"number" doc:"Of the entry that recorded it, in the vendor's history."`
	Action     string    `json:"action" enum:"approve,hold,reject" doc:"What was decided."`
	ReasonCode string    `json:"reasonCode" doc:"Why: the code of a blocking finding, CLEAN_MATCH, NEEDS_REVIEW or MANUAL_OVERRIDE."`
	Override   bool      `json:"override" doc:"Whether a person decided against the findings."`
	Note       *string   `json:"note" required:"false" nullable:"false" doc:"What that person wrote, if anything."`
	DecidedBy  string    `json:"decidedBy" doc:"The principal."`
	DecidedAt  string    `json:"decidedAt" format:"date-time" doc:"When: UTC, milliseconds."`
	Findings   []Finding `json:"findings" nullable:"false" doc:"What the match found at the decision, at most 100."`
	Omitted    int64     `json:"omitted" doc:"How many more findings there were."`
}

// Finding is one thing that a match found.
type Finding struct {
	Code     string   `json:"code" doc:"What it is, for example PRICE_VARIANCE."`
	Line     *int64   `json:"line" required:"false" nullable:"false" doc:"The line of the order that it is about; absent if it is about the whole invoice."`
	Expected *string  `json:"expected" required:"false" nullable:"false" doc:"A figure, a code or an id."`
	Found    *string  `json:"found" required:"false" nullable:"false" doc:"A figure, a code or an id."`
	Invoices []string `json:"invoices" nullable:"false" doc:"Other invoices that it is about."`
}

// NumberClaim says which documents of a vendor carry one number.
type NumberClaim struct {
	Tenant       string    `json:"tenant" doc:"The tenant it belongs to."`
	VendorID     string    `json:"vendorId" doc:"Whose number it is."`
	Kind         string    `json:"kind" enum:"invoice,credit_note" doc:"Invoices and credit notes have numbers of their own."`
	NormalNumber string    `json:"normalNumber" doc:"What spellings of the number have in common."`
	Claims       []Claimed `json:"claims" nullable:"false" doc:"Who carries it, the one entered first at the front."`
}

// Claimed is a document that carries a number.
type Claimed struct {
	InvoiceID string `json:"invoiceId" doc:"The document."`
	Rejected  bool   `json:"rejected" doc:"It was rejected, so it does not count any more."`
}

// InvoiceSums is how many invoices there are.
type InvoiceSums struct {
	Tenant string       `json:"tenant" doc:"The tenant they belong to."`
	Sums   []InvoiceSum `json:"sums" nullable:"false" doc:"One for each currency, kind and status that there are, in this order."`
}

// InvoiceSum is one line of the sums.
type InvoiceSum struct {
	Currency   *string `json:"currency" nullable:"false" doc:"ISO 4217 code."`
	Kind       string  `json:"kind" enum:"invoice,credit_note" doc:"Which documents."`
	Status     string  `json:"status" enum:"open,on_hold,approved,rejected" doc:"Where they stand."`
	Count      int64   `json:"count" doc:"How many there are."`
	TotalMinor string  `json:"totalMinor" pattern:"^(0|[1-9][0-9]*)$" doc:"The sum of their totals, in minor units: digits in a text, since it may be more than 64 bits hold."`
}

// PayablesPolicy is what decisions about invoices are made under.
type PayablesPolicy struct {
	Tenant         string         `json:"tenant" doc:"The tenant it is for."`
	PriceTolerance PriceTolerance `json:"priceTolerance" doc:"How far an invoiced unit price may differ from the ordered one. Both bounds must hold."`
}

// PriceTolerance is how far a price may differ.
type PriceTolerance struct {
	Percent string `json:"percent" pattern:"^[0-9]+(\\.[0-9]+)?$" doc:"Of the ordered price."`
	Minor   int64  `json:"minor" minimum:"0" doc:"In minor units, for one unit of the order's line."`
}

// How they are sent.
var (
	OrderForm = lined(parts[payables.Order, PurchaseOrder, OrderLine, OrderLines]{
		form: form("the order", orderOf, PurchaseOrder.record),
		of:   func(o *PurchaseOrder) (*[]OrderLine, **string) { return &o.Lines, &o.Next },
		part: func(lines []OrderLine, next *string) OrderLines { return OrderLines{lines, next} },
		rows: func(p OrderLines) ([]OrderLine, *string) { return p.Lines, p.Next },
		line: func(l OrderLine) int64 { return l.Line },
	})
	ReceiptForm  = form("the receipt", receiptOf, Receipt.record)
	ReceiptPages = pages(ReceiptForm, func(p Receipts) ([]Receipt, *string) { return p.Receipts, p.Next })
	DecisionForm = form("the decision", decisionOf, Decision.record)
	ClaimForm    = form("the number", claimOf, NumberClaim.record)
	PolicyForm   = form("the policy", policyOf, PayablesPolicy.record)
)

// Payables are how the documents are sent of which a thin backend leaves
// something out: one that keeps less and serves it in the same documents.
type Payables struct {
	Vendor   Form[payables.Vendor, Vendor]
	Vendors  Pages[payables.Vendor, Vendor, Vendors]
	Invoice  Lined[payables.Invoice, Invoice, InvoiceLine, InvoiceLines]
	Header   Form[payables.Invoice, Invoice]
	Invoices Pages[payables.Invoice, Invoice, Invoices] // of headers
	Sums     Form[[]ports.InvoiceSum, InvoiceSums]
}

// Fallback is what stands in for what is left out: members that are pointers
// and required all the same. Lines, tax and freight need none. What something
// stands in for is named in the record; see [payables.Field].
type Fallback struct {
	Currency money.Currency // the zero value: what has no currency is refused
	Date     payables.Date  // likewise
}

// PayablesWith returns the forms that read with a fallback.
func PayablesWith(f Fallback) Payables {
	p := Payables{
		Vendor: form("the vendor", vendorOf, f.vendor),
		Invoice: lined(parts[payables.Invoice, Invoice, InvoiceLine, InvoiceLines]{
			form: form("the invoice", invoiceOf, f.invoice),
			of:   func(i *Invoice) (*[]InvoiceLine, **string) { return i.Lines, &i.Next },
			part: func(lines []InvoiceLine, next *string) InvoiceLines { return InvoiceLines{lines, next} },
			rows: func(p InvoiceLines) ([]InvoiceLine, *string) { return p.Lines, p.Next },
			line: func(l InvoiceLine) int64 { return l.Line },
		}),
		Header: form("the invoice", headerOf, f.header),
		Sums:   form("the sums", sumsOf, f.sums),
	}
	p.Vendors = pages(p.Vendor, func(p Vendors) ([]Vendor, *string) { return p.Vendors, p.Next })
	p.Invoices = pages(p.Header, func(p Invoices) ([]Invoice, *string) { return p.Invoices, p.Next })
	return p
}

// Complete are the forms of a backend that leaves nothing out, for sending.
var Complete = PayablesWith(Fallback{})

// ErrNoCurrency is the error for a document without a currency, where nothing
// stands in for it.
var ErrNoCurrency = errors.New("the currency is left out")

// currency reads what may be left out.
func (f Fallback) currency(r *reader, code *string) (c money.Currency, synthesised []payables.Field) {
	if code != nil {
		return read(r, *code, money.ParseCurrency), nil
	}
	if f.Currency == (money.Currency{}) {
		r.fail(ErrNoCurrency)
	}
	return f.Currency, []payables.Field{payables.FieldCurrency}
}

// A decision that was asked for again is answered with the first one, which is
// another operation's.
var payablesAnswers = []answer{
	answerOf(func(w *Outcome) **Decision { return &w.Decision }, DecisionForm, nil),
}

var cursorID = Query{"cursor", "Begin behind this id: the next of the page before.", false}

// What is read.
var (
	ListInvoices = Read{
		Name: "invoices.list", Path: "/v1/invoices", Title: "List invoices",
		About: "Invoices and credit notes in order of id, without their lines and decisions.",
		Scope: access.InvoiceRead,
		Query: []Query{
			{"status", "Only those that stand so: open, on_hold, approved or rejected.", false}, {"vendor", "Only those of this vendor.", false},
			{"order", "Only those that name this order.", false}, {"currency", "Only those in this currency, an ISO 4217 code.", false}, {"undecided", "true: only what is open or on hold.", false}, cursorID, limit,
		},
		Answer: reflect.TypeFor[Invoices](),
	}
	GetInvoice = Read{
		Name: "invoices.get", Path: "/v1/invoices/{id}", Title: "Look up an invoice",
		About: "With its lines and the last decision. The strong ETag is of all of it.",
		Scope: access.InvoiceRead, Answer: reflect.TypeFor[Invoice](), Tagged: true,
	}
	GetInvoiceLines = Read{
		Name: "invoices.lines", Path: "/v1/invoices/{id}/lines", Title: "Go on with the lines of an invoice",
		About: "As many as fit. The ETag is the invoice's: parts with different ones are of different states.",
		Scope: access.InvoiceRead, Query: []Query{{"cursor", "Begin behind this line: the next of the part before.", true}}, Answer: reflect.TypeFor[InvoiceLines](), Tagged: true,
	}
	SumInvoices = Read{
		Name: "invoices.sums", Path: "/v1/invoice-sums", Title: "Sum up the invoices",
		About: "How many invoices there are and their total, for each currency, kind and status.",
		Scope: access.InvoiceRead, Answer: reflect.TypeFor[InvoiceSums](),
	}
	GetPolicy = Read{
		Name: "payables.policy", Path: "/v1/payables-policy", Title: "Look up what decisions are made under",
		About: "A match that is computed elsewhere agrees with the decisions only under the same tolerance.",
		Scope: access.InvoiceRead, Answer: reflect.TypeFor[PayablesPolicy](),
	}
	GetOrder = Read{
		Name: "orders.get", Path: "/v1/purchase-orders/{id}", Title: "Look up a purchase order",
		About: "With what has been received and billed of each line. The strong ETag is of all of it.",
		Scope: access.InvoiceRead, Answer: reflect.TypeFor[PurchaseOrder](), Tagged: true,
	}
	GetOrderLines = Read{
		Name: "orders.lines", Path: "/v1/purchase-orders/{id}/lines", Title: "Go on with the lines of a purchase order",
		About: "As many as fit. The ETag is the order's: parts with different ones are of different states.",
		Scope: access.InvoiceRead, Query: []Query{{"cursor", "Begin behind this line: the next of the part before.", true}}, Answer: reflect.TypeFor[OrderLines](), Tagged: true,
	}
	ListReceipts = Read{
		Name: "orders.receipts", Path: "/v1/purchase-orders/{id}/receipts", Title: "List the goods receipts of an order",
		About: "In order of id. Nobody's list is empty.",
		Scope: access.InvoiceRead, Query: []Query{cursorID, limit}, Answer: reflect.TypeFor[Receipts](),
	}
	GetReceipt = Read{
		Name: "receipts.get", Path: "/v1/goods-receipts/{id}", Title: "Look up a goods receipt",
		About: "It never changes.",
		Scope: access.InvoiceRead, Answer: reflect.TypeFor[Receipt](),
	}
	ListVendors = Read{
		Name: "vendors.list", Path: "/v1/vendors", Title: "List the vendors",
		About: "All vendors of the tenant, in order of id.",
		Scope: access.InvoiceRead, Query: []Query{cursorID, limit}, Answer: reflect.TypeFor[Vendors](),
	}
	GetVendor = Read{
		Name: "vendors.get", Path: "/v1/vendors/{id}", Title: "Look up a vendor",
		About: "With what is owed, and its version as a strong ETag.",
		Scope: access.InvoiceRead, Answer: reflect.TypeFor[Vendor](), Tagged: true,
	}
	LatestInvoices = Read{
		Name: "vendors.invoices", Path: "/v1/vendors/{id}/invoices", Title: "List the latest invoices of a vendor",
		About: "The one entered last first, without lines and decisions. Nobody's list is empty.",
		Scope: access.InvoiceRead, Query: []Query{{"cursor", "Begin below this entry number: the next of the page before.", true}, limit}, Answer: reflect.TypeFor[Invoices](),
	}
	GetDecision = Read{
		Name: "vendors.decision", Path: "/v1/vendors/{id}/decisions/{number}", Title: "Look up a decision",
		About: "The decision that the entry of that number recorded.",
		Scope: access.InvoiceRead, Answer: reflect.TypeFor[Decision](),
	}
	GetNumberClaim = Read{
		Name: "vendors.number", Path: "/v1/vendors/{id}/numbers/{kind}/{normal}", Title: "Look up an invoice number",
		About: "Which documents of the vendor carry the number, given as normalNumber has it.",
		Scope: access.InvoiceRead, Answer: reflect.TypeFor[NumberClaim](),
	}
)

var payablesCommands = []Resource{
	declare(declaration[payables.Route, decisionFields, payables.Decision]{
		Path: "/v1/invoices/{id}/decision", Title: "Decide about an invoice", Scope: access.InvoiceRoute,
		About: "Matches the invoice again, on the records and under the tolerance of the service, and records the decision if the match allows it. " +
			"The very same decision again is answered with the first one. An override also needs the scope invoice:override.",
		Write: func(c payables.Route) ([]string, decisionFields) {
			return []string{c.Invoice.String()}, decisionFields{c.Action.String(), c.Reason.String(), c.Override, optional(c.Note.String())}
		},
		Read: func(in *input, f decisionFields) payables.Route {
			return payables.Route{Request: payables.Request{
				Invoice:  parse(in, "id", in.param("id"), payables.ParseInvoiceID),
				Action:   parse(in, "action", f.Action, payables.ParseAction),
				Reason:   parse(in, "reasonCode", f.ReasonCode, payables.ParseReasonCode),
				Override: f.Override, Note: parseOptional(in, "note", f.Note, payables.ParseNote),
			}}
		},
		Guards:    func(c payables.Route) ledger.Ref { return c.Invoice.Ref() },
		Overrides: func(c payables.Route) bool { return c.MayOverride },
		Answers: func(c payables.Route, d payables.Decision) bool {
			return d.Invoice == c.Invoice && d.Action == c.Action && d.Reason == c.Reason && d.Override == c.Override && d.Note == c.Note.String()
		},
	}),
}

type decisionFields struct {
	Action     string  `json:"action" enum:"approve,hold,reject" doc:"What to do with it; approve and reject are final."`
	ReasonCode string  `json:"reasonCode" doc:"Why: the code of a blocking finding, CLEAN_MATCH, NEEDS_REVIEW or MANUAL_OVERRIDE."`
	Override   bool    `json:"override" doc:"true: decide against the findings, with the reason MANUAL_OVERRIDE and a note."`
	Note       *string `json:"note" required:"false" nullable:"false" doc:"Words of a person, at most 1000 visible characters; 10 at least for an override."`
}

func vendorOf(t access.Tenant, v payables.Vendor) Vendor {
	w := Vendor{Tenant: t.String(), ID: v.ID.String(), Name: v.Name, Balances: make([]Balance, 0, len(v.Balances)), Version: v.Head.Number, Head: v.Head.Hash.String()}
	for _, b := range v.Balances {
		w.Balances = append(w.Balances, Balance{new(b.Currency().String()), b.Minor()})
	}
	return w
}

func (f Fallback) vendor(w Vendor, t access.Tenant) (payables.Vendor, error) {
	r := reader{}
	v := payables.Vendor{ID: read(&r, w.ID, payables.ParseVendorID), Name: w.Name, Head: journal.Head{Number: w.Version, Hash: read(&r, w.Head, parseHash)}}
	for i, b := range w.Balances {
		c, synthesised := f.currency(&r, b.Currency)
		v.Balances = append(v.Balances, money.FromMinor(b.BalanceMinor, c))
		v.Synthesised = append(v.Synthesised, synthesised...)
		r.want(i == 0 || given(w.Balances[i-1].Currency) < given(b.Currency), "the balances are not in order of their currencies")
	}
	// The one without a currency comes first on the wire.
	slices.SortStableFunc(v.Balances, func(a, b money.Amount) int { return strings.Compare(a.Currency().String(), b.Currency().String()) })
	for i := 1; i < len(v.Balances); i++ {
		r.want(v.Balances[i-1].Currency() != v.Balances[i].Currency(), "two balances are in the currency that is filled in")
	}
	r.want(w.Tenant == t.String(), "the vendor is of another tenant")
	r.want(payables.IsName(w.Name) && w.Version > 0, "the vendor has no name that one could be brought in with, or no version")
	return v, r.err
}

func orderOf(t access.Tenant, o payables.Order) PurchaseOrder {
	w := PurchaseOrder{
		Tenant: t.String(), ID: o.ID.String(), VendorID: o.Vendor.String(), Currency: o.Currency.String(), FreightLimitMinor: o.FreightLimit.Minor(),
		TaxLimitPercent: o.TaxLimit.String(), FreightBilledMinor: o.FreightBilled.Minor(), Lines: make([]OrderLine, 0, len(o.Lines)),
	}
	for _, l := range o.Lines {
		w.Lines = append(w.Lines, orderLineOf(l))
	}
	return w
}

func orderLineOf(l payables.OrderLine) OrderLine {
	w := OrderLine{
		Line: int64(l.Line), SKU: l.SKU.String(), Description: optional(l.Description), Unit: l.Unit.String(), Quantity: l.Quantity.String(), UnitPriceMinor: l.UnitPrice.Minor(),
		Conversions: make([]Conversion, 0, len(l.Conversions)), Received: fractionOf(l.Received), Billed: fractionOf(l.Billed),
	}
	for _, x := range l.Conversions {
		w.Conversions = append(w.Conversions, Conversion{x.Unit.String(), x.Numerator, x.Denominator})
	}
	return w
}

func (w PurchaseOrder) record(t access.Tenant) (payables.Order, error) {
	r := reader{}
	c := read(&r, w.Currency, money.ParseCurrency)
	o := payables.Order{
		ID: read(&r, w.ID, payables.ParseOrderID), Vendor: read(&r, w.VendorID, payables.ParseVendorID), Currency: c, FreightLimit: money.FromMinor(w.FreightLimitMinor, c),
		TaxLimit: read(&r, w.TaxLimitPercent, canonical(payables.ParsePercent)), FreightBilled: money.FromMinor(w.FreightBilledMinor, c),
		Lines: make([]payables.OrderLine, 0, len(w.Lines)),
	}
	for i, l := range w.Lines {
		line := payables.OrderLine{
			Line: int(l.Line), SKU: read(&r, l.SKU, payables.ParseSKU), Description: r.given(l.Description), Unit: read(&r, l.Unit, payables.ParseUnit),
			Quantity: read(&r, l.Quantity, canonical(payables.ParseQuantity)), UnitPrice: money.FromMinor(l.UnitPriceMinor, c),
			Received: r.ratio(l.Received), Billed: r.ratio(l.Billed),
		}
		for _, x := range l.Conversions {
			line.Conversions = append(line.Conversions, payables.Conversion{Unit: read(&r, x.Unit, payables.ParseUnit), Numerator: x.Numerator, Denominator: x.Denominator})
			r.want(isFactor(x.Numerator) && isFactor(x.Denominator), "a factor of a conversion is out of range")
		}
		o.Lines = append(o.Lines, line)
		r.want(l.Line > 0 && l.Line <= payables.MaxLineNumber && (i == 0 || w.Lines[i-1].Line < l.Line), "the lines are not in order of their numbers")
		r.want(isAmount(l.UnitPriceMinor), "a price of the order is out of range")
		r.want(l.Description == nil || payables.IsName(line.Description), "the description of a line is out of form")
	}
	r.want(w.Tenant == t.String(), "the order is of another tenant")
	r.want(len(w.Lines) > 0 && len(w.Lines) <= payables.MaxLines, "the order has no lines, or too many")
	r.want(isAmount(w.FreightLimitMinor) && w.FreightBilledMinor >= 0, "an amount of the order is out of range")
	return o, r.err
}

func receiptOf(t access.Tenant, x payables.Receipt) Receipt {
	w := Receipt{
		Tenant: t.String(), ID: x.ID.String(), OrderID: x.Order.String(), VendorID: x.Vendor.String(), Kind: x.Movement.String(), ReceivedAt: x.ReceivedAt.String(),
		Lines: make([]ReceiptLine, 0, len(x.Lines)),
	}
	for _, l := range x.Lines {
		w.Lines = append(w.Lines, ReceiptLine{int64(l.OrderLine), l.Quantity.String(), l.Unit.String()})
	}
	return w
}

func (w Receipt) record(t access.Tenant) (payables.Receipt, error) {
	r := reader{}
	x := payables.Receipt{
		ID: read(&r, w.ID, payables.ParseReceiptID), Order: read(&r, w.OrderID, payables.ParseOrderID), Vendor: read(&r, w.VendorID, payables.ParseVendorID),
		Movement: read(&r, w.Kind, payables.ParseMovement), ReceivedAt: read(&r, w.ReceivedAt, payables.ParseDate), Lines: make([]payables.ReceiptLine, 0, len(w.Lines)),
	}
	for _, l := range w.Lines {
		x.Lines = append(x.Lines, payables.ReceiptLine{
			OrderLine: int(l.OrderLine), Quantity: read(&r, l.Quantity, canonical(payables.ParseQuantity)), Unit: read(&r, l.Unit, payables.ParseUnit),
		})
		r.want(l.OrderLine > 0 && l.OrderLine <= payables.MaxLineNumber, "the number of a line is out of range")
	}
	r.want(w.Tenant == t.String(), "the receipt is of another tenant")
	r.want(len(w.Lines) > 0 && len(w.Lines) <= payables.MaxLines, "the receipt has no lines, or too many")
	return x, r.err
}

func headerOf(t access.Tenant, i payables.Invoice) Invoice {
	return Invoice{
		Tenant: t.String(), ID: i.ID.String(), Number: i.Number.String(), NormalNumber: i.Number.Normal(), Kind: i.Document.String(), CreditsID: optional(i.Credits.String()),
		VendorID: i.Vendor.String(), OrderID: optional(i.Order.String()), Currency: new(i.Currency.String()), TaxMinor: new(i.Tax.Minor()), FreightMinor: new(i.Freight.Minor()),
		TotalMinor: i.Total.Minor(), InvoiceDate: new(i.Date.String()), Entered: i.Entered, Status: i.Status.String(), CreditedMinor: i.Credited.Minor(),
	}
}

func invoiceOf(t access.Tenant, i payables.Invoice) Invoice {
	w, lines := headerOf(t, i), make([]InvoiceLine, 0, len(i.Lines))
	for _, l := range i.Lines {
		lines = append(lines, invoiceLineOf(l))
	}
	w.Lines = &lines
	if i.Decision != nil {
		w.Decision = new(decisionOf(t, *i.Decision))
	}
	return w
}

func invoiceLineOf(l payables.InvoiceLine) InvoiceLine {
	w := InvoiceLine{
		Line: int64(l.Line), SKU: optional(l.SKU.String()), Unit: l.Unit.String(), Quantity: l.Quantity.String(), UnitPriceMinor: l.UnitPrice.Minor(),
		AmountMinor: l.Amount.Minor(), Credited: fractionOf(l.Credited),
	}
	if l.OrderLine != 0 {
		w.OrderLine = new(int64(l.OrderLine))
	}
	return w
}

// head reads what a list has too.
func (f Fallback) head(r *reader, w Invoice, t access.Tenant) payables.Invoice {
	c, synthesised := f.currency(r, w.Currency)
	i := payables.Invoice{
		ID: read(r, w.ID, payables.ParseInvoiceID), Number: payables.RestoreNumber(w.Number, w.NormalNumber), Document: read(r, w.Kind, payables.ParseDocumentKind),
		Credits: readOptional(r, w.CreditsID, payables.ParseInvoiceID), Vendor: read(r, w.VendorID, payables.ParseVendorID), Order: readOptional(r, w.OrderID, payables.ParseOrderID),
		Currency: c, Tax: money.FromMinor(0, c), Freight: money.FromMinor(0, c), Total: money.FromMinor(w.TotalMinor, c),
		Date: f.Date, Entered: w.Entered, Status: read(r, w.Status, payables.ParseStatus), Credited: money.FromMinor(w.CreditedMinor, c),
	}
	if w.InvoiceDate != nil {
		i.Date = read(r, *w.InvoiceDate, payables.ParseDate)
	} else {
		r.want(f.Date != payables.Date{}, "the date is left out")
		synthesised = append(synthesised, payables.FieldDate)
	}
	for _, charge := range []struct {
		minor *int64
		to    *money.Amount
		field payables.Field
	}{{w.TaxMinor, &i.Tax, payables.FieldTax}, {w.FreightMinor, &i.Freight, payables.FieldFreight}} {
		if charge.minor == nil {
			synthesised = append(synthesised, charge.field)
			continue
		}
		*charge.to = money.FromMinor(*charge.minor, c)
		r.want(isAmount(*charge.minor), "tax or freight of the invoice is out of range")
	}
	i.Synthesised = synthesised
	_, err := payables.ParseNumber(w.Number)
	r.fail(err)
	r.want(w.Tenant == t.String(), "the invoice is of another tenant")
	r.want(isNormal(w.NormalNumber) && w.Entered > 0, "the invoice has no normal number, or was not entered")
	r.want(isAmount(w.TotalMinor) && w.CreditedMinor >= 0, "an amount of the invoice is out of range")
	return i
}

func (f Fallback) header(w Invoice, t access.Tenant) (payables.Invoice, error) {
	r := reader{}
	i := f.head(&r, w, t)
	r.want(w.Lines == nil && w.Decision == nil && w.Next == nil, "an invoice of a list has lines or a decision")
	return i, r.err
}

func (f Fallback) invoice(w Invoice, t access.Tenant) (payables.Invoice, error) {
	r := reader{}
	i := f.head(&r, w, t)
	if w.Lines == nil {
		i.Lines = []payables.InvoiceLine{payables.TotalLine(i.Total, i.Tax, i.Freight)}
		i.Synthesised = slices.Insert(i.Synthesised, 0, payables.FieldLines)
	} else {
		i.Lines = r.lines(*w.Lines, i.Currency)
	}
	if w.Decision != nil {
		d, err := w.Decision.record(t)
		r.fail(err)
		i.Decision = &d
		r.want(d.Invoice == i.ID && d.Vendor == i.Vendor && d.Action.Status() == i.Status && d.Number > i.Entered, "the decision is not the invoice's")
	}
	r.want((i.Decision == nil) == (i.Status == payables.Open), "the decision is not that of the status")
	return i, r.err
}

func (r *reader) lines(lines []InvoiceLine, c money.Currency) []payables.InvoiceLine {
	all := make([]payables.InvoiceLine, 0, len(lines))
	for n, l := range lines {
		line := payables.InvoiceLine{
			Line: int(l.Line), SKU: readOptional(r, l.SKU, payables.ParseSKU), Unit: read(r, l.Unit, payables.ParseUnit), Quantity: read(r, l.Quantity, canonical(payables.ParseQuantity)),
			UnitPrice: money.FromMinor(l.UnitPriceMinor, c), Amount: money.FromMinor(l.AmountMinor, c), Credited: r.ratio(l.Credited),
		}
		if l.OrderLine != nil {
			line.OrderLine = int(*l.OrderLine)
			r.want(*l.OrderLine > 0 && *l.OrderLine <= payables.MaxLineNumber, "the number of a line is out of range")
		}
		all = append(all, line)
		r.want(l.Line > 0 && l.Line <= payables.MaxLineNumber && (n == 0 || lines[n-1].Line < l.Line), "the lines are not in order of their numbers")
		r.want(isAmount(l.UnitPriceMinor) && isAmount(l.AmountMinor), "an amount of a line is out of range")
	}
	r.want(len(lines) <= payables.MaxLines, "the invoice has too many lines")
	return all
}

func decisionOf(t access.Tenant, d payables.Decision) Decision {
	w := Decision{
		Tenant: t.String(), ID: d.ID.String(), InvoiceID: d.Invoice.String(), VendorID: d.Vendor.String(), Number: d.Number, Action: d.Action.String(), ReasonCode: d.Reason.String(),
		Override: d.Override, Note: optional(d.Note), DecidedBy: d.DecidedBy, DecidedAt: stamp(d.DecidedAt), Findings: make([]Finding, 0, len(d.Findings)), Omitted: int64(d.Omitted),
	}
	for _, f := range d.Findings {
		words := Finding{Code: f.Code.String(), Expected: optional(f.Expected), Found: optional(f.Found), Invoices: make([]string, 0, len(f.Invoices))}
		if f.Line != 0 {
			words.Line = new(int64(f.Line))
		}
		for _, id := range f.Invoices {
			words.Invoices = append(words.Invoices, id.String())
		}
		w.Findings = append(w.Findings, words)
	}
	return w
}

func (w Decision) record(t access.Tenant) (payables.Decision, error) {
	r := reader{}
	d := payables.Decision{
		ID: read(&r, w.ID, operation.ParseID), Invoice: read(&r, w.InvoiceID, payables.ParseInvoiceID), Vendor: read(&r, w.VendorID, payables.ParseVendorID), Number: w.Number,
		Action: read(&r, w.Action, payables.ParseAction), Reason: read(&r, w.ReasonCode, payables.ParseReasonCode), Override: w.Override,
		Note: readOptional(&r, w.Note, payables.ParseNote).String(), DecidedBy: w.DecidedBy, DecidedAt: read(&r, w.DecidedAt, parseStamp), Omitted: int(w.Omitted),
	}
	for _, f := range w.Findings {
		finding := payables.Finding{Code: read(&r, f.Code, payables.ParseCode), Expected: r.given(f.Expected), Found: r.given(f.Found)}
		if f.Line != nil {
			finding.Line = int(*f.Line)
			r.want(*f.Line > 0 && *f.Line <= payables.MaxLineNumber, "the line of a finding is out of range")
		}
		for _, id := range f.Invoices {
			finding.Invoices = append(finding.Invoices, read(&r, id, payables.ParseInvoiceID))
		}
		d.Findings = append(d.Findings, finding)
		r.want(isFigure(finding.Expected) && isFigure(finding.Found) && len(f.Invoices) <= payables.MaxNamed, "a finding names what is no figure, or too much")
	}
	r.fail(access.CheckID(w.DecidedBy))
	r.want(w.Tenant == t.String(), "the decision is of another tenant")
	r.want(d.Note == given(w.Note), "the note of the decision has white space around it")
	r.want(w.Number > 0 && w.Omitted >= 0 && len(w.Findings) <= payables.MaxFindings, "a number of the decision is out of range")
	return d, r.err
}

func claimOf(t access.Tenant, c payables.NumberClaim) NumberClaim {
	w := NumberClaim{Tenant: t.String(), VendorID: c.Vendor.String(), Kind: c.Document.String(), NormalNumber: c.Normal, Claims: make([]Claimed, 0, len(c.Claims))}
	for _, x := range c.Claims {
		w.Claims = append(w.Claims, Claimed{x.Invoice.String(), x.Rejected})
	}
	return w
}

func (w NumberClaim) record(t access.Tenant) (payables.NumberClaim, error) {
	r := reader{}
	c := payables.NumberClaim{
		Vendor: read(&r, w.VendorID, payables.ParseVendorID), Document: read(&r, w.Kind, payables.ParseDocumentKind), Normal: w.NormalNumber,
		Claims: make([]payables.Claimed, 0, len(w.Claims)),
	}
	for _, x := range w.Claims {
		c.Claims = append(c.Claims, payables.Claimed{Invoice: read(&r, x.InvoiceID, payables.ParseInvoiceID), Rejected: x.Rejected})
	}
	r.want(w.Tenant == t.String(), "the number is of another tenant")
	r.want(isNormal(w.NormalNumber) && len(w.Claims) > 0 && len(w.Claims) <= payables.MaxSameNumber, "nobody carries the number, or too many do")
	return c, r.err
}

// sums are a list that is one document.
func sumsOf(t access.Tenant, sums []ports.InvoiceSum) InvoiceSums {
	w := InvoiceSums{t.String(), make([]InvoiceSum, 0, len(sums))}
	for _, s := range sums {
		w.Sums = append(w.Sums, InvoiceSum{new(s.Currency.String()), s.Document.String(), s.Status.String(), s.Count, s.Minor.String()})
	}
	return w
}

func (f Fallback) sums(w InvoiceSums, t access.Tenant) ([]ports.InvoiceSum, error) {
	r := reader{}
	sums := make([]ports.InvoiceSum, 0, len(w.Sums))
	for i, s := range w.Sums {
		sum := ports.InvoiceSum{Document: read(&r, s.Kind, payables.ParseDocumentKind), Status: read(&r, s.Status, payables.ParseStatus), Count: s.Count, Minor: read(&r, s.TotalMinor, parseTotal)}
		sum.Currency, sum.Synthesised = f.currency(&r, s.Currency)
		r.want(i == 0 || bySum(w.Sums[i-1], s) < 0, "the sums are not in order")
		r.want(s.Count > 0, "a sum is of nothing")
		sums = append(sums, sum)
	}
	// Those without a currency come first on the wire.
	slices.SortStableFunc(sums, func(a, b ports.InvoiceSum) int { return strings.Compare(a.Currency.String(), b.Currency.String()) })
	r.want(w.Tenant == t.String(), "the sums are of another tenant")
	return sums, r.err
}

// bySum is the order of sums.
func bySum(a, b InvoiceSum) int {
	return cmp.Or(strings.Compare(given(a.Currency), given(b.Currency)), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Status, b.Status))
}

// maxTotal is how long a sum may be, in digits: that of as many invoices as 64
// bits count, each of the most that there can be.
const maxTotal = 40

func parseTotal(s string) (*big.Int, error) {
	n, ok := new(big.Int), len(s) <= maxTotal
	if ok {
		n, ok = n.SetString(s, 10)
	}
	if !ok || n.Sign() < 0 || n.String() != s {
		return new(big.Int), fmt.Errorf("a total is a whole number, 0 or more")
	}
	return n, nil
}

func fractionOf(r payables.Ratio) *Fraction {
	if r.Sign() == 0 {
		return nil
	}
	n, d := r.Fraction()
	return &Fraction{n, d}
}

func (r *reader) ratio(f *Fraction) payables.Ratio {
	if f == nil {
		return payables.Ratio{}
	}
	x, err := payables.RestoreRatio(f.Numerator, f.Denominator)
	r.fail(err)
	r.want(f.Numerator != 0, "a fraction is nothing")
	return x
}

// optional is a text that is left out if there is none.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func given(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// given reads a text that is left out if there is none.
func (r *reader) given(s *string) string {
	r.want(s == nil || *s != "", "a text is there and empty")
	return given(s)
}

func readOptional[T any](r *reader, s *string, parse func(string) (T, error)) (none T) {
	if s == nil {
		return none
	}
	return read(r, *s, parse)
}

func parseOptional[T any](in *input, name string, s *string, how func(string) (T, error)) (none T) {
	if s == nil {
		return none
	}
	return parse(in, name, *s, how)
}

// canonical refuses a number that is not written as it always is.
func canonical[T fmt.Stringer](parse func(string) (T, error)) func(string) (T, error) {
	return func(s string) (T, error) {
		v, err := parse(s)
		if err == nil && v.String() != s {
			err = fmt.Errorf("a number is not written without what it does not need")
		}
		return v, err
	}
}

func policyOf(t access.Tenant, p payables.Tolerance) PayablesPolicy {
	return PayablesPolicy{t.String(), PriceTolerance{p.Percent.String(), p.Minor}}
}

func (w PayablesPolicy) record(t access.Tenant) (payables.Tolerance, error) {
	r := reader{}
	p := payables.Tolerance{Percent: read(&r, w.PriceTolerance.Percent, canonical(payables.ParsePercent)), Minor: w.PriceTolerance.Minor}
	r.want(w.Tenant == t.String(), "the policy is of another tenant")
	r.want(p.Minor >= 0, "the tolerance is below nothing")
	return p, r.err
}

func isAmount(minor int64) bool { return minor >= 0 && minor <= payables.MaxMinor }

func isFactor(n int64) bool { return n >= 1 && n <= payables.MaxFactor }

// maxFigure bounds what a finding compares: figures and ids, in bytes.
const maxFigure = 200

// maxNormal is how long a normal number may be, in bytes: compatibility forms are
// up to 11 times as long (Unicode Standard Annex #15), folded ones 3 times, and a
// boundary may stand after each sign.
const maxNormal = 11 * 3 * 2 * payables.MaxNumber

func isNormal(s string) bool { return s != "" && len(s) <= maxNormal }

// isFigure reports whether s can be what a finding compares: never free text.
func isFigure(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= maxFigure
}

// tags are those of records that have no version.
var tags = []func(access.Tenant, ledger.Record) (string, bool){
	func(t access.Tenant, r ledger.Record) (string, bool) {
		i, ok := r.(payables.Invoice)
		if !ok {
			return "", false
		}
		return Complete.Invoice.Tag(t, i), true
	},
}

// blocked, withheld and decided read details, which name codes and fields, and
// nothing else.
func blocked(r *reader, d payables.Blocked) {
	r.want(d.Findings != nil && len(d.Findings) <= len(payables.FindingCodes()), "the details have no findings, or too many")
	for _, name := range d.Findings {
		read(r, name, payables.ParseCode)
	}
}

func withheld(r *reader, d payables.Synthesised) {
	most := len(payables.Fields())
	r.want(len(d.Synthesised)+len(d.Credited) > 0 && len(d.Synthesised) <= most && len(d.Credited) <= most, "the details have no fields, or too many")
	for _, name := range slices.Concat(d.Synthesised, d.Credited) {
		read(r, name, payables.ParseField)
	}
}

func decided(r *reader, d payables.Decided) {
	read(r, d.Status, payables.ParseStatus)
	if d.Action != "" || d.ReasonCode != "" {
		read(r, d.Action, payables.ParseAction)
		read(r, d.ReasonCode, payables.ParseReasonCode)
	}
}
