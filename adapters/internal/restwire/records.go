package restwire

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// Customer is an account.
type Customer struct {
	Tenant       string `json:"tenant" doc:"The tenant it belongs to."`
	ID           string `json:"id" doc:"CUST- and five digits."`
	Name         string `json:"name" doc:"The customer's name."`
	Email        string `json:"email" doc:"The customer's e-mail address."`
	Status       string `json:"status" enum:"active,suspended" doc:"Only active accounts can be refunded."`
	Currency     string `json:"currency" doc:"ISO 4217 code of all amounts of this customer."`
	BalanceMinor int64  `json:"balanceMinor" doc:"What can be refunded, in minor units: the sum of the lots."`
	CreatedAt    string `json:"createdAt" format:"date-time" doc:"When the customer came: UTC, milliseconds."`
	Version      int64  `json:"version" doc:"Grows by one with each change; the number of the last entry."`
	Head         string `json:"head" doc:"The hash of the last entry, in hexadecimal."`
	Lots         []Lot  `json:"lots" nullable:"false" doc:"The money by origin, in the order it came."`
}

// Lot is money of one origin.
type Lot struct {
	Name         string `json:"name" doc:"Names the lot within the account."`
	BalanceMinor int64  `json:"balanceMinor" doc:"What is left of it, in minor units."`
}

// Refund is money given back.
type Refund struct {
	Tenant         string `json:"tenant" doc:"The tenant it belongs to."`
	ID             string `json:"id" doc:"The operation's id, a UUID."`
	CustomerID     string `json:"customerId" doc:"Whose refund it is."`
	AmountMinor    int64  `json:"amountMinor" doc:"The amount, in minor units."`
	Currency       string `json:"currency" doc:"ISO 4217 code."`
	Reason         string `json:"reason" doc:"Why it was given."`
	Status         string `json:"status" enum:"processed,reversed" doc:"reversed if the payment failed and the money is refundable again."`
	ProcessedAt    string `json:"processedAt" format:"date-time" doc:"When it was booked: UTC, milliseconds."`
	RemainingMinor int64  `json:"remainingMinor" doc:"The balance right after it, in minor units."`
	Number         int64  `json:"number" doc:"Of the entry that booked it, in the customer's history."`
}

// Reversal is a refund booked back.
type Reversal struct {
	Tenant         string `json:"tenant" doc:"The tenant it belongs to."`
	ID             string `json:"id" doc:"The operation's id, a UUID."`
	CustomerID     string `json:"customerId" doc:"Whose refund it was."`
	Refund         int64  `json:"refund" doc:"The number of the refund."`
	AmountMinor    int64  `json:"amountMinor" doc:"The amount, in minor units."`
	Currency       string `json:"currency" doc:"ISO 4217 code."`
	Reason         string `json:"reason" doc:"How it is known that the payment failed."`
	ReversedAt     string `json:"reversedAt" format:"date-time" doc:"When it was booked: UTC, milliseconds."`
	RemainingMinor int64  `json:"remainingMinor" doc:"The balance right after it, in minor units."`
	Number         int64  `json:"number" doc:"Of the entry that booked it."`
}

// Adjustment is a correction of a balance.
type Adjustment struct {
	Tenant         string `json:"tenant" doc:"The tenant it belongs to."`
	ID             string `json:"id" doc:"The operation's id, a UUID."`
	CustomerID     string `json:"customerId" doc:"Whose balance it is."`
	ChangeMinor    int64  `json:"changeMinor" doc:"Added to the balance, in minor units; negative if taken."`
	Currency       string `json:"currency" doc:"ISO 4217 code."`
	Why            string `json:"why" doc:"The explanation."`
	AdjustedAt     string `json:"adjustedAt" format:"date-time" doc:"When it was booked: UTC, milliseconds."`
	RemainingMinor int64  `json:"remainingMinor" doc:"The balance right after it, in minor units."`
	Number         int64  `json:"number" doc:"Of the entry that booked it."`
}

// Import says what an import did.
type Import struct {
	Tenant     string `json:"tenant" doc:"The tenant it belongs to."`
	ID         string `json:"id" doc:"The operation's id, a UUID."`
	Opened     int    `json:"opened" doc:"How many accounts are new."`
	Unchanged  int    `json:"unchanged" doc:"How many had been opened with the same facts."`
	ImportedAt string `json:"importedAt" format:"date-time" doc:"When: UTC, milliseconds."`
}

// Operation says who asked, under which key, when.
type Operation struct {
	Tenant    string  `json:"tenant" doc:"The tenant."`
	ID        string  `json:"id" doc:"A UUID of the server's."`
	Principal string  `json:"principal" doc:"Who asked."`
	Via       *string `json:"via" required:"false" nullable:"false" doc:"The service that asked on the principal's behalf."`
	Tool      string  `json:"tool" doc:"The tool, or the command if it was sent here directly."`
	Key       string  `json:"key" doc:"The operation key, unique for the principal."`
	At        string  `json:"at" format:"date-time" doc:"When it was asked, by the server's clock: UTC, milliseconds."`
}

// Outcome is what a key led to: the answer of every command, then and later.
type Outcome struct {
	Operation   Operation   `json:"operation" doc:"Who asked."`
	Command     string      `json:"command" doc:"What was asked: the command's name."`
	Fingerprint string      `json:"fingerprint" doc:"SHA-256 of the command's name and fields, in hexadecimal."`
	Customer    *Customer   `json:"customer" required:"false" nullable:"false" doc:"The answer of customers.open."`
	Refund      *Refund     `json:"refund" required:"false" nullable:"false" doc:"The answer of refunds.trigger, as it was then."`
	Reversal    *Reversal   `json:"reversal" required:"false" nullable:"false" doc:"The answer of refunds.reverse."`
	Adjustment  *Adjustment `json:"adjustment" required:"false" nullable:"false" doc:"The answer of customers.adjust."`
	Import      *Import     `json:"import" required:"false" nullable:"false" doc:"The answer of customers.import."`
}

// Entry is an immutable record of one decision.
type Entry struct {
	SubjectKind string    `json:"subjectKind" doc:"Whose history it is in: the kind of record."`
	SubjectID   string    `json:"subjectId" doc:"Whose history it is in: the record's id."`
	Number      int64     `json:"number" doc:"Its place there, from 1."`
	Operation   Operation `json:"operation" doc:"Who asked."`
	Command     string    `json:"command" doc:"The command's name."`
	Facts       []Fact    `json:"facts" nullable:"false" doc:"The command's fields."`
	Postings    []Posting `json:"postings" nullable:"false" doc:"Debits and credits, equal in each currency; none if no money moved."`
	Previous    string    `json:"previous" doc:"The hash of the entry before it, zeros for the first."`
	Hash        string    `json:"hash" doc:"Its own hash, in hexadecimal."`
}

// Fact is one field of a command, as text.
type Fact struct {
	Name  string `json:"name" doc:"The field."`
	Value string `json:"value" doc:"Its value."`
}

// Posting moves an amount on one side of one account.
type Posting struct {
	Account     string  `json:"account" doc:"An account of the books."`
	Lot         *string `json:"lot" required:"false" nullable:"false" doc:"The lot, on a refundable account."`
	Side        string  `json:"side" enum:"debit,credit" doc:"Which side."`
	AmountMinor int64   `json:"amountMinor" doc:"The amount, in minor units."`
	Currency    string  `json:"currency" doc:"ISO 4217 code."`
}

// Customers is a page of accounts, in order of id.
type Customers struct {
	Customers []Customer `json:"customers" nullable:"false" doc:"The accounts, in order of id."`
	Next      *string    `json:"next" required:"false" nullable:"false" doc:"Send it as after to get the next page; absent on the last."`
}

// Refunds is a page of refunds, newest first.
type Refunds struct {
	Refunds []Refund `json:"refunds" nullable:"false" doc:"The refunds, newest first."`
	Next    *string  `json:"next" required:"false" nullable:"false" doc:"Send it as cursor to get the next page; absent on the last."`
}

// Entries is a page of entries, in order.
type Entries struct {
	Entries []Entry `json:"entries" nullable:"false" doc:"The entries, in order."`
	Next    *string `json:"next" required:"false" nullable:"false" doc:"Send it as after to get the next page; absent on the last."`
}

const stampForm = "2006-01-02T15:04:05.000Z"

func stamp(t time.Time) string { return t.UTC().Format(stampForm) }

func parseStamp(s string) (time.Time, error) {
	t, err := time.Parse(stampForm, s)
	if err != nil || stamp(t) != s {
		return time.Time{}, fmt.Errorf("a time is UTC with milliseconds, for example 2026-03-01T09:00:00.000Z")
	}
	return t, nil
}

// CustomerOf puts an account into words.
func CustomerOf(t access.Tenant, a customers.Account) Customer {
	lots := make([]Lot, 0, len(a.Lots))
	for _, l := range a.Lots {
		lots = append(lots, Lot{l.Name, l.Balance.Minor()})
	}
	return Customer{
		Tenant: t.String(), ID: a.ID.String(), Name: a.Name, Email: a.Email, Status: a.Status.String(), Currency: a.Currency.String(),
		BalanceMinor: a.Balance().Minor(), CreatedAt: stamp(a.CreatedAt), Version: a.Version(), Head: a.Head.Hash.String(), Lots: lots,
	}
}

// RefundOf puts a refund into words.
func RefundOf(t access.Tenant, r refunds.Refund) Refund {
	return Refund{
		Tenant: t.String(), ID: r.ID.String(), CustomerID: r.Customer.String(), AmountMinor: r.Amount.Minor(), Currency: r.Amount.Currency().String(),
		Reason: r.Reason.String(), Status: r.Status.String(), ProcessedAt: stamp(r.ProcessedAt), RemainingMinor: r.Remaining.Minor(), Number: r.Number,
	}
}

// ReversalOf puts a reversal into words.
func ReversalOf(t access.Tenant, r refunds.Reversal) Reversal {
	return Reversal{
		Tenant: t.String(), ID: r.ID.String(), CustomerID: r.Customer.String(), Refund: r.Refund, AmountMinor: r.Amount.Minor(), Currency: r.Amount.Currency().String(),
		Reason: r.Reason.String(), ReversedAt: stamp(r.ReversedAt), RemainingMinor: r.Remaining.Minor(), Number: r.Number,
	}
}

func adjustmentOf(t access.Tenant, a customers.Adjustment) Adjustment {
	return Adjustment{
		Tenant: t.String(), ID: a.ID.String(), CustomerID: a.Customer.String(), ChangeMinor: a.Change.Minor(), Currency: a.Change.Currency().String(),
		Why: a.Why, AdjustedAt: stamp(a.AdjustedAt), RemainingMinor: a.Remaining.Minor(), Number: a.Number,
	}
}

func operationOf(o operation.Operation) Operation {
	w := Operation{Tenant: o.Tenant.String(), ID: o.ID.String(), Principal: o.Principal, Tool: o.Tool, Key: o.Key.String(), At: stamp(o.At)}
	if o.Via != "" {
		w.Via = &o.Via
	}
	return w
}

// OutcomeOf puts an outcome into words. It fails on an answer that has none.
func OutcomeOf(o ledger.Outcome) (Outcome, error) {
	w := Outcome{Operation: operationOf(o.Operation), Command: o.Command, Fingerprint: hex.EncodeToString(o.Fingerprint[:])}
	t := o.Operation.Tenant
	switch a := o.Answer.(type) {
	case customers.Account:
		w.Customer = new(CustomerOf(t, a))
	case refunds.Refund:
		w.Refund = new(RefundOf(t, a))
	case refunds.Reversal:
		w.Reversal = new(ReversalOf(t, a))
	case customers.Adjustment:
		w.Adjustment = new(adjustmentOf(t, a))
	case customers.Imported:
		w.Import = &Import{t.String(), a.ID.String(), a.Opened, a.Unchanged, stamp(a.ImportedAt)}
	default:
		return Outcome{}, fmt.Errorf("restwire: no words for a %T", a)
	}
	return w, nil
}

// EntryOf puts an entry into words.
func EntryOf(e journal.Entry) Entry {
	w := Entry{
		SubjectKind: e.Subject().Kind, SubjectID: e.Subject().ID, Number: e.Number(), Operation: operationOf(e.Operation()), Command: e.Command(),
		Facts: make([]Fact, 0, len(e.Facts())), Postings: make([]Posting, 0, len(e.Postings())), Previous: e.Previous().String(), Hash: e.Hash().String(),
	}
	for _, f := range e.Facts() {
		w.Facts = append(w.Facts, Fact(f))
	}
	for _, p := range e.Postings() {
		posting := Posting{Account: string(p.Account), Side: p.Side.String(), AmountMinor: p.Amount.Minor(), Currency: p.Amount.Currency().String()}
		if p.Lot != "" {
			posting.Lot = new(p.Lot)
		}
		w.Postings = append(w.Postings, posting)
	}
	return w
}

// Decoders of the answers.
var (
	CustomerDecoder  = strictjson.Compile[Customer]("the customer")
	RefundDecoder    = strictjson.Compile[Refund]("the refund")
	ReversalDecoder  = strictjson.Compile[Reversal]("the reversal")
	OutcomeDecoder   = strictjson.Compile[Outcome]("the outcome")
	CustomersDecoder = strictjson.Compile[Customers]("the page")
	RefundsDecoder   = strictjson.Compile[Refunds]("the page")
	EntriesDecoder   = strictjson.Compile[Entries]("the page")
)

// reader turns texts into values of the domain and keeps the first error.
type reader struct{ err error }

func read[T any](r *reader, text string, parse func(string) (T, error)) T {
	v, err := parse(text)
	r.fail(err)
	return v
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) want(holds bool, what string) {
	if !holds {
		r.fail(fmt.Errorf("%s", what))
	}
}

func (r *reader) amount(minor int64, currency string) money.Amount {
	return money.FromMinor(minor, read(r, currency, money.ParseCurrency))
}

func parseHash(s string) (h [32]byte, err error) {
	if len(s) != hex.EncodedLen(len(h)) {
		return h, fmt.Errorf("a hash is 64 hexadecimal digits")
	}
	_, err = hex.Decode(h[:], []byte(s))
	return h, err
}

// Account is the account of the tenant, or why the document is none.
func (c Customer) Account(t access.Tenant) (customers.Account, error) {
	r := reader{}
	currency := read(&r, c.Currency, money.ParseCurrency)
	a := customers.Account{
		ID: read(&r, c.ID, customers.ParseID), Profile: customers.Profile{Name: c.Name, Email: c.Email}, Status: read(&r, c.Status, customers.ParseStatus),
		Currency: currency, CreatedAt: read(&r, c.CreatedAt, parseStamp), Head: journal.Head{Number: c.Version, Hash: read(&r, c.Head, parseHash)},
	}
	sum := money.FromMinor(0, currency)
	for _, l := range c.Lots {
		balance := money.FromMinor(l.BalanceMinor, currency)
		a.Lots = append(a.Lots, customers.Lot{Name: l.Name, Balance: balance})
		var err error
		sum, err = sum.Add(balance)
		r.fail(err)
		r.want(l.Name != "" && l.BalanceMinor >= 0, "a lot has no name, or less than nothing")
	}
	r.want(c.Tenant == t.String(), "the customer is of another tenant")
	r.want(sum.Minor() == c.BalanceMinor, "the balance is not the sum of the lots")
	r.want(c.Version > 0, "the version is not positive")
	return a, r.err
}

// Record is the refund, or why the document is none.
func (w Refund) Record(t access.Tenant) (refunds.Refund, error) {
	r := reader{}
	refund := refunds.Refund{
		ID: read(&r, w.ID, operation.ParseID), Customer: read(&r, w.CustomerID, customers.ParseID), Amount: r.amount(w.AmountMinor, w.Currency),
		Reason: read(&r, w.Reason, refunds.ParseReason), Status: read(&r, w.Status, refunds.ParseStatus), ProcessedAt: read(&r, w.ProcessedAt, parseStamp),
		Remaining: r.amount(w.RemainingMinor, w.Currency), Number: w.Number,
	}
	r.want(w.Tenant == t.String(), "the refund is of another tenant")
	r.want(w.AmountMinor > 0 && w.RemainingMinor >= 0 && w.Number > 0, "an amount or the number of the refund is out of range")
	return refund, r.err
}

// Record is the reversal, or why the document is none.
func (w Reversal) Record(t access.Tenant) (refunds.Reversal, error) {
	r := reader{}
	reversal := refunds.Reversal{
		ID: read(&r, w.ID, operation.ParseID), Customer: read(&r, w.CustomerID, customers.ParseID), Refund: w.Refund, Amount: r.amount(w.AmountMinor, w.Currency),
		Reason: read(&r, w.Reason, refunds.ParseReason), ReversedAt: read(&r, w.ReversedAt, parseStamp), Remaining: r.amount(w.RemainingMinor, w.Currency), Number: w.Number,
	}
	r.want(w.Tenant == t.String(), "the reversal is of another tenant")
	r.want(w.AmountMinor > 0 && w.RemainingMinor >= 0 && w.Number > w.Refund && w.Refund > 0, "an amount or a number of the reversal is out of range")
	return reversal, r.err
}

func (w Adjustment) record(t access.Tenant) (customers.Adjustment, error) {
	r := reader{}
	a := customers.Adjustment{
		ID: read(&r, w.ID, operation.ParseID), Customer: read(&r, w.CustomerID, customers.ParseID), Change: r.amount(w.ChangeMinor, w.Currency), Why: w.Why,
		AdjustedAt: read(&r, w.AdjustedAt, parseStamp), Remaining: r.amount(w.RemainingMinor, w.Currency), Number: w.Number,
	}
	r.want(w.Tenant == t.String(), "the adjustment is of another tenant")
	r.want(w.RemainingMinor >= 0 && w.Number > 0, "an amount or the number of the adjustment is out of range")
	return a, r.err
}

func (w Import) record(t access.Tenant) (customers.Imported, error) {
	r := reader{}
	i := customers.Imported{ID: read(&r, w.ID, operation.ParseID), Opened: w.Opened, Unchanged: w.Unchanged, ImportedAt: read(&r, w.ImportedAt, parseStamp)}
	r.want(w.Tenant == t.String(), "the import is of another tenant")
	r.want(w.Opened >= 0 && w.Unchanged >= 0, "a count of the import is negative")
	return i, r.err
}

func (r *reader) operation(w Operation) operation.Operation {
	o := operation.Operation{
		ID: read(r, w.ID, operation.ParseID), Tenant: read(r, w.Tenant, access.ParseTenant), Principal: w.Principal, Tool: w.Tool,
		Key: read(r, w.Key, operation.ParseKey), At: read(r, w.At, parseStamp),
	}
	if w.Via != nil {
		o.Via = *w.Via
	}
	r.fail(ledger.Check(o))
	return o
}

// Record is the outcome of an operation of the tenant, or why the document is none.
func (w Outcome) Record(t access.Tenant) (ledger.Outcome, error) {
	r := reader{}
	o := ledger.Outcome{Operation: r.operation(w.Operation), Command: w.Command, Fingerprint: read(&r, w.Fingerprint, parseHash)}
	r.want(o.Operation.Tenant == t, "the operation is of another tenant")
	answers := 0
	answer := func(a ledger.Record, err error) {
		o.Answer = a
		answers++
		r.fail(err)
	}
	if w.Customer != nil {
		a, err := w.Customer.Account(t)
		answer(a, err)
	}
	if w.Refund != nil {
		a, err := w.Refund.Record(t)
		answer(a, err)
		r.want(a.ID == o.Operation.ID, "the refund is of another operation")
	}
	if w.Reversal != nil {
		a, err := w.Reversal.Record(t)
		answer(a, err)
		r.want(a.ID == o.Operation.ID, "the reversal is of another operation")
	}
	if w.Adjustment != nil {
		a, err := w.Adjustment.record(t)
		answer(a, err)
		r.want(a.ID == o.Operation.ID, "the adjustment is of another operation")
	}
	if w.Import != nil {
		a, err := w.Import.record(t)
		answer(a, err)
		r.want(a.ID == o.Operation.ID, "the import is of another operation")
	}
	r.want(answers == 1, "the outcome has not one answer")
	return o, r.err
}

// Record is the entry, or why the document is none. Whether it holds is for
// [journal.Verify] to say.
func (w Entry) Record(t access.Tenant) (journal.Entry, error) {
	r := reader{}
	op := r.operation(w.Operation)
	r.want(op.Tenant == t, "the entry is of another tenant")
	facts := slices.Grow([]operation.Fact(nil), len(w.Facts)) // none stays nil
	for _, f := range w.Facts {
		facts = append(facts, operation.Fact(f))
	}
	postings := slices.Grow([]journal.Posting(nil), len(w.Postings))
	for _, p := range w.Postings {
		posting := journal.Posting{Account: journal.Account(p.Account), Amount: r.amount(p.AmountMinor, p.Currency)}
		if p.Lot != nil {
			posting.Lot = *p.Lot
		}
		switch p.Side {
		case journal.Debit.String():
		case journal.Credit.String():
			posting.Side = journal.Credit
		default:
			r.fail(fmt.Errorf("a posting has no side"))
		}
		postings = append(postings, posting)
	}
	previous, hash := read(&r, w.Previous, parseHash), read(&r, w.Hash, parseHash)
	return journal.Restore(w.Number, previous, hash, journal.Subject{Kind: w.SubjectKind, ID: w.SubjectID}, op, w.Command, facts, postings), r.err
}
