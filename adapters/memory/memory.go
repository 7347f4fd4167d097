// Package memory keeps the ledger in the memory of one process: lock, decide,
// apply. It is the reference model that the other adapters are compared
// with, and what the server starts with when nothing is configured. Nothing
// survives the process.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
)

// Store is a ledger in memory. The zero value is not ready; use [New].
//
// A write holds the lock of each record that it names from before it reads them
// until it is applied, so that what it decided on can not change meanwhile;
// decisions on different records run at once. What is in the maps is read and
// changed under mu, which no decision holds: it is where the writes have their
// total order.
type Store struct {
	locks locks

	mu      sync.RWMutex
	tenants map[access.Tenant]*books
}

// books are the records of one tenant.
type books struct {
	records   map[ledger.Ref]ledger.Record // but accounts, refunds and entries
	outcomes  map[scope]*ledger.Outcome
	histories map[journal.Subject]*history
	accounts  []customers.ID // in order
	documents
}

// history is what was booked for one subject.
type history struct {
	entries []*journal.Entry
	// Of a customer there are the account too, and the refunds, oldest first.
	account ledger.Record
	refunds []ledger.Record
}

// scope is where an operation key is unique.
type scope struct {
	principal string
	key       operation.Key
}

// New returns an empty ledger.
func New() *Store { return &Store{locks: newLocks(), tenants: map[access.Tenant]*books{}} }

// Do decides under the locks of the records named, and applies.
func (s *Store) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	if err := ledger.Check(op); err != nil {
		return ledger.Outcome{}, err
	}
	if err := ctx.Err(); err != nil {
		return ledger.Outcome{}, fmt.Errorf("%w (%w)", fault.New(fault.BackendUnavailable, "call_ended", "The call ended before the write began. Nothing was done. Try again later."), err)
	}
	facts, reads := cmd.Facts(), cmd.Reads()
	o := &ledger.Outcome{Operation: op, Command: cmd.Name(), Fingerprint: operation.FingerprintOf(cmd.Name(), facts)}
	held := s.locks.lock(reads)
	defer s.locks.unlock(held)
	view, before := s.begin(op, reads)
	if before != nil {
		return before.Replay(o.Command, o.Fingerprint)
	}
	view.Facts = facts
	change, err := ledger.Decide(cmd, view)
	if err != nil {
		return ledger.Outcome{}, err
	}
	// An answer that was not named is a record that the decision made: its name
	// has the entry's number in it.
	if !slices.Contains(reads, change.Answer.Ref()) {
		change.Put = append(change.Put, change.Answer)
	}
	if err := placed(change); err != nil {
		return ledger.Outcome{}, err
	}
	o.Answer = change.Answer
	if before := s.apply(o, change); before != nil {
		return before.Replay(o.Command, o.Fingerprint)
	}
	return *o, nil
}

// begin reads what is named, or returns the outcome that there is under the key
// already.
func (s *Store) begin(op operation.Operation, reads []ledger.Ref) (ledger.View, *ledger.Outcome) {
	v := ledger.NewView(op, len(reads))
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.tenants[op.Tenant]
	if b == nil {
		b = &books{
			records: map[ledger.Ref]ledger.Record{}, outcomes: map[scope]*ledger.Outcome{}, histories: map[journal.Subject]*history{},
		}
		s.tenants[op.Tenant] = b
	}
	if o, done := b.outcomes[scope{op.Principal, op.Key}]; done {
		return v, o
	}
	for _, ref := range reads {
		v.Put(ref, b.at(ref))
	}
	return v, nil
}

// placed finds what can not be kept, before anything is. That the entries follow
// the histories is checked by [ledger.Decide], under the same locks.
func placed(c ledger.Change) error {
	for _, r := range c.Put {
		if !kept(r) {
			return fmt.Errorf("memory: no place for a %T", r)
		}
	}
	if !kept(c.Answer) {
		return fmt.Errorf("memory: no place for a %T", c.Answer)
	}
	return nil
}

// kept reports whether there is a place for the record.
func kept(r ledger.Record) bool {
	switch r.(type) {
	case customers.Account, customers.Adjustment, customers.Imported, refunds.Refund, refunds.Reversal,
		payables.Vendor, payables.Order, payables.Receipt, payables.Invoice, payables.NumberClaim, payables.Decision:
		return true
	}
	return false
}

// apply stores the change and its outcome, unless a write of other records was
// first under the key: then it stores nothing and returns that one's outcome.
func (s *Store) apply(o *ledger.Outcome, c ledger.Change) (before *ledger.Outcome) {
	at := scope{o.Operation.Principal, o.Operation.Key}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.tenants[o.Operation.Tenant]
	if before, done := b.outcomes[at]; done {
		return before
	}
	for _, r := range c.Put {
		b.put(r)
	}
	for i := range c.Entries {
		h := b.history(c.Entries[i].Subject())
		h.entries = append(h.entries, &c.Entries[i])
	}
	b.outcomes[at] = o
	return nil
}

// history returns the history of the subject, which may be empty yet.
func (b *books) history(s journal.Subject) *history {
	h := b.histories[s]
	if h == nil {
		h = &history{}
		b.histories[s] = h
	}
	return h
}

func (b *books) put(record ledger.Record) {
	switch r := record.(type) {
	case refunds.Refund:
		h := b.history(r.Customer.Subject())
		h.refunds = append(h.refunds, record) // numbers only grow
		return
	case customers.Account:
		h := b.history(r.ID.Subject())
		if h.account == nil {
			at, _ := slices.BinarySearchFunc(b.accounts, r.ID, compareIDs)
			b.accounts = slices.Insert(b.accounts, at, r.ID)
		}
		h.account = record
		return
	case refunds.Reversal:
		list := b.history(r.Customer.Subject()).refunds
		at, _ := slices.BinarySearchFunc(list, r.Refund, compareNumber)
		reversed := list[at].(refunds.Refund)
		reversed.Status = refunds.Reversed
		list[at] = reversed
	case payables.Vendor, payables.Invoice, payables.Receipt:
		if b.records[record.Ref()] == nil {
			b.documents.add(record)
		}
	}
	b.records[record.Ref()] = record
}

func compareIDs(a, b customers.ID) int { return strings.Compare(a.String(), b.String()) }

func compareNumber(r ledger.Record, number int64) int {
	return cmp.Compare(r.(refunds.Refund).Number, number)
}

// Load implements ports.Ledger.
func (s *Store) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	v := ledger.NewView(operation.Operation{Tenant: t}, len(refs))
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.tenants[t]
	for _, ref := range refs {
		if b == nil {
			v.Put(ref, nil)
		} else {
			v.Put(ref, b.at(ref))
		}
	}
	return v, nil
}

// at returns the record at ref, or nil.
func (b *books) at(ref ledger.Ref) ledger.Record {
	switch ref.Kind {
	case customers.Kind:
		if h := b.histories[journal.Subject{Kind: ref.Kind.Name, ID: ref.ID}]; h != nil {
			return h.account
		}
		return nil
	case ledger.OutcomeKind:
		return b.outcome(ref)
	case ledger.EntryKind:
		return b.entry(ref)
	case refunds.Kind:
		return b.refund(ref)
	}
	return b.records[ref]
}

func (b *books) entry(ref ledger.Ref) ledger.Record {
	subject, number, ok := ledger.ParseEntryRef(ref)
	if h := b.histories[subject]; ok && h != nil && number >= 1 && number <= int64(len(h.entries)) {
		return ledger.Booked{Entry: *h.entries[number-1]}
	}
	return nil
}

func (b *books) refund(ref ledger.Ref) ledger.Record {
	customer, number, ok := refunds.ParseRef(ref)
	h := b.histories[customer.Subject()]
	if !ok || h == nil {
		return nil
	}
	if at, found := slices.BinarySearchFunc(h.refunds, number, compareNumber); found {
		return h.refunds[at]
	}
	return nil
}

func (b *books) outcome(ref ledger.Ref) ledger.Record {
	principal, text, _ := strings.Cut(ref.ID, "/")
	key, err := operation.ParseKey(text) // neither part holds a slash
	if err != nil {
		return nil
	}
	if o, done := b.outcomes[scope{principal, key}]; done {
		return *o
	}
	return nil
}

// history returns what was booked for the subject, if anything was. The caller
// holds mu.
func (s *Store) history(t access.Tenant, subject journal.Subject) history {
	if b := s.tenants[t]; b != nil {
		if h := b.histories[subject]; h != nil {
			return *h
		}
	}
	return history{}
}

// ListRefunds implements ports.Refunds.
func (s *Store) ListRefunds(ctx context.Context, t access.Tenant, c customers.ID, before int64, limit int) ([]refunds.Refund, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := s.history(t, c.Subject()).refunds
	end := len(list)
	if before > 0 {
		end, _ = slices.BinarySearchFunc(list, before, compareNumber)
	}
	rest := list[end-min(max(limit, 0), end) : end]
	page := make([]refunds.Refund, 0, len(rest))
	for _, r := range slices.Backward(rest) {
		page = append(page, r.(refunds.Refund))
	}
	return page, nil
}

// ListAccounts implements ports.Journal.
func (s *Store) ListAccounts(ctx context.Context, t access.Tenant, after string, limit int) ([]customers.Account, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.tenants[t]
	if b == nil {
		return nil, nil
	}
	at, found := slices.BinarySearchFunc(b.accounts, after, func(id customers.ID, after string) int { return strings.Compare(id.String(), after) })
	if found {
		at++
	}
	var page []customers.Account
	rest := b.accounts[at:]
	for _, id := range rest[:min(max(limit, 0), len(rest))] {
		page = append(page, b.histories[id.Subject()].account.(customers.Account))
	}
	return page, nil
}

// ListEntries implements ports.Journal.
func (s *Store) ListEntries(ctx context.Context, t access.Tenant, subject journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := s.history(t, subject).entries
	rest := all[min(max(after, 0), int64(len(all))):] // entry n stands at n-1
	var page []journal.Entry
	for _, e := range rest[:min(max(limit, 0), len(rest))] {
		page = append(page, *e)
	}
	return page, nil
}
