package restwire

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

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

// Entries is a page of entries, in order.
type Entries struct {
	Entries []Entry `json:"entries" nullable:"false" doc:"The entries, in order."`
	Next    *string `json:"next" required:"false" nullable:"false" doc:"Send it as after to get the next page; absent on the last."`
}

// Subjects are the kinds of record that have histories, each with whether an id
// has the form of its ids.
var Subjects = map[string]func(id string) bool{
	customers.Kind.Name:      func(id string) bool { _, err := customers.ParseID(id); return err == nil },
	payables.VendorKind.Name: func(id string) bool { _, err := payables.ParseVendorID(id); return err == nil },
}

// How they are sent.
var (
	EntryForm  = form("the entry", entryOf, Entry.record)
	EntryPages = pages(EntryForm, func(p Entries) ([]Entry, *string) { return p.Entries, p.Next })
)

// What is read.
var (
	ListJournal = Read{
		Name: "journal.list", Path: "/v1/journal", Title: "Export the journal",
		About:  "All entries of the tenant's accounts, or of its vendors, one history after the other, each in order. Needs the scope refund:read, that of vendors invoice:read.",
		Query:  []Query{{"kind", "Whose: account, which is the customers', or vendor; account if absent.", false}, {"after", "Begin behind this entry: the next of the page before.", false}, limit},
		Answer: reflect.TypeFor[Entries](),
	}
	ListEntries = Read{
		Name: "journal.entries", Path: "/v1/journal/{kind}/{id}", Title: "List the entries of one subject",
		About:  "In order of number. The kind is account, a customer's, with the scope refund:read, or vendor, with the scope invoice:read.",
		Query:  []Query{{"after", "Begin behind this number.", true}, limit},
		Answer: reflect.TypeFor[Entries](),
	}
)

func entryOf(_ access.Tenant, e journal.Entry) Entry {
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

// record is the entry, or why the document is none. Whether it holds is for
// [journal.Verify] to say.
func (w Entry) record(t access.Tenant) (journal.Entry, error) {
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
