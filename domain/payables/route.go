package payables

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/text"
)

// Bounds of a note.
const (
	MaxNote = 1000 // without format characters
	// MinOverrideNote is how many letters, digits, punctuation marks and symbols
	// the note of an override has at least; see [text.Written].
	MinOverrideNote = 10
	maxNotePoints   = 4000 // code points
)

// Note is what somebody wrote about a decision. The zero value is none.
type Note struct{ text string }

// ParseNote trims white space and refuses what [text.Parse] refuses.
func ParseNote(s string) (Note, error) {
	t, err := text.Parse(s, text.Bounds{Min: 1, Max: MaxNote, MaxCodePoints: maxNotePoints})
	return Note{t}, err
}

// String returns the text.
func (n Note) String() string { return n.text }

// Request is what is asked: decide about an invoice.
type Request struct {
	Invoice  InvoiceID
	Action   Action
	Reason   ReasonCode
	Override bool
	Note     Note
}

// Authority is what the one who asks may do, and under which tolerance: not part
// of what is asked, and never from its arguments.
type Authority struct {
	Tolerance Tolerance
	// MayOverride: the principal may decide against the findings.
	MayOverride bool
}

// Verdict is what a decision changes.
type Verdict struct {
	Decision Decision
	// Changed is false if the very same had been decided before: Decision is
	// that one, and nothing else is set.
	Changed  bool
	Invoice  Invoice
	Vendor   Vendor
	Order    *Order       // if what is billed on it changed
	Credited *Invoice     // if what is credited on it changed
	Claim    *NumberClaim // if the number is free again
	Entry    journal.Entry
}

// Decide matches the invoice again and reports what the request changes, or why
// it may not, the first of these that holds: Conflict already_decided;
// PolicyViolation duplicate_invoice, synthesised_invoice,
// override_incomplete, override_not_permitted, reason_without_finding or
// blocking_findings, and quantity_out_of_range if the match can not be computed. An invoice that can
// not be matched can still be held, and rejected for what was found. The vendor
// is the invoice's.
func Decide(i Invoice, v Vendor, f Facts, r Request, a Authority, op operation.Operation) (Verdict, error) {
	switch {
	case i.ID != r.Invoice || v.ID != i.Vendor:
		return Verdict{}, fmt.Errorf("payables: a request about %s, the invoice %s and the vendor %s", r.Invoice, i.ID, v.ID)
	case r.Action == Action{} || r.Reason == ReasonCode{}:
		return Verdict{}, fmt.Errorf("payables: a request about %s without an action or a reason", r.Invoice)
	}
	if d := i.Decision; d != nil && d.same(r) {
		return Verdict{Decision: *d}, nil
	}
	if i.Status.Final() {
		return Verdict{}, decidedAlready(i)
	}
	f.Rivals = nil
	m, unmatched := match(i, f, a.Tolerance)
	err := permitted(i, f.Credited, m, r, a)
	if err == nil && r.Action == Approve {
		err = unmatched
	}
	if err != nil {
		return Verdict{}, err
	}
	var out Verdict
	if tooFine := exact(func() { out, err = settle(i, v, f, m, r, a, op) }); tooFine != nil {
		return Verdict{}, tooFine
	}
	return out, err
}

// decidedAlready is the fault for another decision on an invoice that has a
// final one.
func decidedAlready(i Invoice) error {
	d := Decided{Status: i.Status.name}
	if i.Decision != nil {
		d.Action, d.ReasonCode = i.Decision.Action.name, i.Decision.Reason.name
	}
	return fault.New(fault.Conflict, "already_decided",
		"The invoice %s is %s, which is final. Do not try again; tell the user who decided and when, as get_invoice shows it.", i.ID, i.Status).With(d)
}

// same reports whether the request asks for what was decided.
func (d *Decision) same(r Request) bool {
	return d.Action == r.Action && d.Reason == r.Reason && d.Override == r.Override && d.Note == r.Note.text
}

// Decided are the details of the reason already_decided.
type Decided struct {
	Status     string `json:"status"`
	Action     string `json:"action"`
	ReasonCode string `json:"reasonCode"`
}

// Blocked are the details of a refusal that findings are the cause of.
type Blocked struct {
	Findings []string `json:"findings"`
}

func permitted(i Invoice, credited *Invoice, m Matched, r Request, a Authority) error {
	if r.Action == Hold {
		return nil
	}
	blocking := blockingCodes(m)
	override := r.Override || r.Reason == ManualOverride
	withheld := Withhold(i, credited, r, a)
	switch {
	case r.Action == Approve && m.Has(DuplicateInvoice):
		return fault.New(fault.PolicyViolation, "duplicate_invoice",
			"The invoice %s is a duplicate and can never be approved, not by an override either. Reject it with the reason DUPLICATE_INVOICE.", i.ID).With(blocking)
	case withheld != nil:
		return withheld
	case override && !r.complete():
		return fault.New(fault.PolicyViolation, "override_incomplete",
			"An override needs override true, the reason MANUAL_OVERRIDE and a note of at least %d letters and signs, by a person who may. Hold the invoice instead.", MinOverrideNote).With(blocking)
	case override && !a.MayOverride:
		return fault.New(fault.PolicyViolation, "override_not_permitted",
			"You may not override the findings of the match: a person with the scope invoice:override has to. Hold the invoice instead.").With(blocking)
	case override:
		return nil
	}
	code, evidence := r.Reason.finding()
	if evidence && m.Has(code) {
		evidence = false // the reason is a finding that is there
	} else if evidence {
		return fault.New(fault.PolicyViolation, "reason_without_finding",
			"The match of %s has no finding %s. Call match_invoice_to_po and give a reason that it found, or hold the invoice.", i.ID, r.Reason).With(blocking)
	}
	switch {
	case r.Action == Approve && m.Blocking:
		return fault.New(fault.PolicyViolation, "blocking_findings",
			"The invoice %s can not be approved: %s. Hold it, or reject it for one of these.", i.ID, strings.Join(blocking.Findings, ", ")).With(blocking)
	case r.Action == Reject && (code == Code{}):
		return fault.New(fault.PolicyViolation, "reason_without_finding",
			"A rejection is final and needs evidence: a reason that is a blocking finding of the match of %s. Hold the invoice instead.", i.ID).With(blocking)
	}
	return nil
}

func blockingCodes(m Matched) Blocked {
	b := Blocked{[]string{}}
	for _, f := range m.Findings {
		if f.Code.blocking && !slices.Contains(b.Findings, f.Code.name) {
			b.Findings = append(b.Findings, f.Code.name)
		}
	}
	return b
}

// settle makes the decision and moves what it moves. It may panic with
// errTooFine; see [exact].
func settle(i Invoice, v Vendor, f Facts, m Matched, r Request, a Authority, op operation.Operation) (Verdict, error) {
	out := Verdict{Changed: true}
	var postings []journal.Posting
	var err error
	switch r.Action {
	case Approve:
		if postings, err = bookings(i); err != nil {
			return Verdict{}, err
		}
		if i.Document == Bill {
			out.Order, err = consume(i, f.Order)
		} else {
			out.Order, out.Credited = giveBack(i, f)
		}
		if err != nil {
			return Verdict{}, err
		}
	case Reject:
		claim := f.Claim.reject(i.ID)
		out.Claim = &claim
	}
	if out.Vendor, out.Entry, err = v.post(op, RouteName, r.evidence(m, a), postings...); errors.Is(err, money.ErrOverflow) {
		return Verdict{}, outOfRange(v)
	} else if err != nil {
		return Verdict{}, err
	}
	out.Decision = Decision{
		ID: op.ID, Invoice: i.ID, Vendor: v.ID, Number: out.Entry.Number(),
		Action: r.Action, Reason: r.Reason, Override: r.Override, Note: r.Note.text,
		DecidedBy: op.Principal, DecidedAt: op.At, Findings: kept(m), Omitted: len(m.Findings) - len(kept(m)),
	}
	i.Status, i.Decision = r.Action.Status(), &out.Decision
	out.Invoice = i
	return out, nil
}

func outOfRange(v Vendor) error {
	return fault.New(fault.PolicyViolation, "amount_out_of_range", "The balance of the vendor %s would not fit in 64 bits of minor units.", v.ID)
}

// The accounts that an approval debits; the credit is the vendor's.
const (
	// GoodsReceived is what goods that were received and not invoiced yet cost.
	GoodsReceived journal.Account = "goods_received_not_invoiced"
	// Tax is tax that vendors charge.
	Tax journal.Account = "input_tax"
	// Freight is what vendors charge for carriage.
	Freight journal.Account = "freight"
	// Variance is what a total differs from its lines, tax and freight, if a
	// person approved it all the same.
	Variance journal.Account = "invoice_variance"
)

// bookings are the postings of an approved document.
func bookings(i Invoice) ([]journal.Posting, error) {
	lines := i.lines()
	explained := sum(sum(lines, i.Tax), i.Freight)
	rest, err := i.Total.Sub(explained)
	if err != nil {
		return nil, err
	}
	var all []journal.Posting
	book := func(account journal.Account, side journal.Side, amount money.Amount) {
		if amount.Sign() > 0 {
			all = append(all, journal.Posting{Account: account, Side: side, Amount: amount})
		}
	}
	book(GoodsReceived, journal.Debit, lines)
	book(Tax, journal.Debit, i.Tax)
	book(Freight, journal.Debit, i.Freight)
	book(Variance, journal.Debit, rest)
	book(Variance, journal.Credit, money.FromMinor(-rest.Minor(), i.Currency))
	book(Payable(i.Vendor), journal.Credit, i.Total)
	if i.Document == CreditNote {
		all = journal.Exchanged(all)
	}
	return all, nil
}

// consume returns the order after the bill is approved, or nil if there is none.
func consume(i Invoice, o *Order) (*Order, error) {
	if o == nil {
		return nil, nil
	}
	after := o.withLines()
	for at, q := range claims(i, o) {
		after.Lines[at].Billed = after.Lines[at].Billed.plus(q)
	}
	if i.Currency == o.Currency {
		var err error
		if after.FreightBilled, err = add(o.FreightBilled, i.Freight); err != nil {
			return nil, errTooFine
		}
	}
	return &after, nil
}

// giveBack returns the order and the credited invoice after the credit note is
// approved, nil for what it leaves as it is. A note that names no invoice, or one
// of another vendor, gives back money only: so what is credited on an invoice
// follows from the history of its own vendor. It may panic with errTooFine; see
// [exact].
func giveBack(note Invoice, f Facts) (*Order, *Invoice) {
	if f.Credited == nil || f.Credited.Vendor != note.Vendor {
		return nil, nil
	}
	invoice, back := credit(note, *f.Credited, f.Order)
	if back == nil {
		return nil, &invoice
	}
	order := f.Order.withLines()
	for at, q := range back {
		order.Lines[at].Billed = order.Lines[at].Billed.minus(q)
	}
	return &order, &invoice
}

// credit returns the invoice after the credit note on it is approved, and what
// that gives back of each line of the order, nil if the invoice has used up
// nothing of one. Of a line not more is given back than was billed there and is
// not given back yet; see [givenBack]. It may panic with errTooFine; see [exact].
func credit(note, invoice Invoice, o *Order) (Invoice, []Ratio) {
	invoice = invoice.withLines()
	if note.Currency == invoice.Currency {
		all, err := add(invoice.Credited, note.Total)
		if err != nil {
			panic(errTooFine)
		}
		invoice.Credited = all
	}
	if o == nil || !invoice.consumed() {
		return invoice, nil
	}
	rest, back := givenBack(note, invoice, o), make([]Ratio, len(o.Lines))
	for n := range invoice.Lines {
		l := &invoice.Lines[n]
		at := o.find(l.OrderLine)
		if at < 0 || rest[at].Sign() == 0 {
			continue
		}
		c, known := o.Lines[at].in(l.Unit)
		if !known {
			continue
		}
		q := rest[at]
		if left := l.Quantity.in(c).minus(l.Credited); q.Cmp(left) > 0 {
			q = left
		}
		rest[at] = rest[at].minus(q)
		l.Credited = l.Credited.plus(q)
		back[at] = back[at].plus(q)
	}
	return invoice, back
}

// consumed reports whether the approval of a bill has used its order up. An
// order that came in later was not there to be.
func (i Invoice) consumed() bool {
	missing := i.Decision != nil && slices.ContainsFunc(i.Decision.Findings, func(f Finding) bool { return f.Code == MissingPO })
	return i.Status == Approved && !missing
}

// RouteName is the name of the command [Route].
const RouteName = "payables.route"

// Route is the command that decides about an invoice.
type Route struct {
	Request
	Links
	Authority
}

// Links are the records that an invoice is decided with. They never change, so
// they are resolved before; see [LinksOf].
type Links struct {
	Vendor   VendorID
	Document DocumentKind
	Number   Number
	Order    OrderID   // that a bill names, or that the credited invoice names; or none
	Credits  InvoiceID // or none
}

// LinksOf returns the links of an invoice and the one it credits, if any.
func LinksOf(i Invoice, credited *Invoice) Links {
	l := Links{i.Vendor, i.Document, i.Number, i.Order, i.Credits}
	if credited != nil {
		l.Order = credited.Order
	}
	return l
}

// Reads names the records of the links.
func (l Links) Reads() []ledger.Ref {
	refs := []ledger.Ref{l.Vendor.Ref(), ClaimRef(l.Vendor, l.Document, l.Number)}
	if l.Order != (OrderID{}) {
		refs = append(refs, l.Order.Ref())
	}
	if l.Credits != (InvoiceID{}) {
		refs = append(refs, l.Credits.Ref())
	}
	return refs
}

// Facts takes the facts of a match out of a view that has what Reads names.
func (l Links) Facts(v ledger.View) Facts {
	var f Facts
	f.Claim, _ = ledger.Get[NumberClaim](v, ClaimRef(l.Vendor, l.Document, l.Number))
	if l.Order != (OrderID{}) {
		if o, ok := ledger.Get[Order](v, l.Order.Ref()); ok {
			f.Order = &o
		}
	}
	if l.Credits != (InvoiceID{}) {
		if c, ok := ledger.Get[Invoice](v, l.Credits.Ref()); ok {
			f.Credited = &c
		}
	}
	return f
}

// Name is [RouteName].
func (Route) Name() string { return RouteName }

// Facts are the request's fields.
func (c Route) Facts() []operation.Fact { return c.Request.facts() }

func (r Request) facts() []operation.Fact {
	return []operation.Fact{
		{Name: "invoice", Value: r.Invoice.text},
		{Name: "action", Value: r.Action.name},
		{Name: "reason_code", Value: r.Reason.name},
		{Name: "override", Value: strconv.FormatBool(r.Override)},
		{Name: "note", Value: r.Note.text},
	}
}

// Asked returns the facts of the request out of those of a decision's entry: what
// the operation key is bound to.
func Asked(entry []operation.Fact) []operation.Fact {
	return entry[:min(len(entry), len(Request{}.facts()))]
}

// evidence is what the entry of a decision proves: the request, the tolerance
// it was decided under, what the match found, each code with its lines, and what
// was not on record.
func (r Request) evidence(m Matched, a Authority) []operation.Fact {
	facts := append(r.facts(),
		operation.Fact{Name: "tolerance_percent", Value: a.Tolerance.Percent.String()},
		operation.Fact{Name: "tolerance_minor", Value: strconv.FormatInt(a.Tolerance.Minor, 10)},
		operation.Fact{Name: factFindings, Value: codes(kept(m))},
		operation.Fact{Name: factDigest, Value: findingsDigest(kept(m), len(m.Findings)-len(kept(m)))})
	return append(facts, m.Lacking.facts()...)
}

const factFindings = "findings"

// kept are the findings that are kept with a decision.
func kept(m Matched) []Finding { return m.Findings[:min(len(m.Findings), MaxFindings)] }

// findingsDigest is the digest of all that findings say, and of how many more
// there were.
func findingsDigest(findings []Finding, omitted int) string {
	facts := []operation.Fact{{Name: "omitted", Value: strconv.Itoa(omitted)}}
	for _, f := range findings {
		facts = append(facts,
			operation.Fact{Name: "finding", Value: f.Code.name}, operation.Fact{Name: "line", Value: strconv.Itoa(f.Line)},
			operation.Fact{Name: "expected", Value: f.Expected}, operation.Fact{Name: "found", Value: f.Found}, operation.Fact{Name: "invoices", Value: f.names()})
	}
	return digest(factFindings, facts)
}

// codes are the codes of findings, each with its line.
func codes(findings []Finding) string {
	var all []string
	for _, f := range findings {
		s := f.Code.name
		if f.Line > 0 {
			s += ":" + strconv.Itoa(f.Line)
		}
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

// Reads names the invoice and its links.
func (c Route) Reads() []ledger.Ref { return append(c.Links.Reads(), c.Invoice.Ref()) }

// Decide runs [Decide] on the records; without the invoice it refuses with
// NotFound invoice_not_found. The answer is the [Decision], the first one if the
// same had been decided before.
func (c Route) Decide(v ledger.View) (ledger.Change, error) {
	i, ok := ledger.Get[Invoice](v, c.Invoice.Ref())
	if !ok {
		return ledger.Change{}, InvoiceNotFound(c.Invoice)
	}
	vendor, ok := ledger.Get[Vendor](v, c.Vendor.Ref())
	if !ok {
		return ledger.Change{}, fmt.Errorf("payables: the vendor %s of %s is not there", c.Vendor, i.ID)
	}
	facts := c.Links.Facts(v)
	if LinksOf(i, facts.Credited) != c.Links {
		return ledger.Change{}, fmt.Errorf("payables: the links of %s are others", i.ID)
	}
	out, err := Decide(i, vendor, facts, c.Request, c.Authority, v.Op)
	if err != nil {
		return ledger.Change{}, err
	}
	if !out.Changed {
		return ledger.Change{Answer: out.Decision}, nil
	}
	change := ledger.Change{Put: []ledger.Record{out.Vendor, out.Invoice}, Entries: []journal.Entry{out.Entry}, Answer: out.Decision}
	if out.Order != nil {
		change.Put = append(change.Put, *out.Order)
	}
	if out.Credited != nil {
		change.Put = append(change.Put, *out.Credited)
	}
	if out.Claim != nil {
		change.Put = append(change.Put, *out.Claim)
	}
	return change, nil
}

// DecisionRef names the decision that the entry of that number recorded.
func DecisionRef(v VendorID, number int64) ledger.Ref {
	return ledger.Ref{Kind: DecisionKind, ID: v.text + "/" + strconv.FormatInt(number, 10)}
}

// Verify compares the record of a decision with the entry that recorded it. It
// returns a [*journal.Broken] if the record is not there or differs.
func (d Decision) Verify(there bool, e journal.Entry) error {
	why := ""
	facts := e.Facts()
	switch op := e.Operation(); {
	case !there:
		why = "the decision that it recorded is not on record"
	case d.ID != op.ID || !d.DecidedAt.Equal(op.At) || d.DecidedBy != op.Principal || d.Vendor.Subject() != e.Subject() || d.Number != e.Number():
		why = "the decision on record has another id, time, principal, vendor or number"
	case e.Command() != RouteName || !startsWith(facts, Request{d.Invoice, d.Action, d.Reason, d.Override, Note{d.Note}}.facts()):
		why = "the decision on record has another request"
	case !slices.Contains(facts, operation.Fact{Name: factFindings, Value: codes(d.Findings)}),
		!slices.Contains(facts, operation.Fact{Name: factDigest, Value: findingsDigest(d.Findings, d.Omitted)}):
		why = "the decision on record has other findings"
	default:
		return nil
	}
	return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: why}
}

func startsWith(facts, start []operation.Fact) bool {
	return len(facts) >= len(start) && slices.Equal(facts[:len(start)], start)
}
