// Package memory keeps the ledger in the memory of one process: one lock,
// decide, apply. It is the reference model that the other adapters are compared
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
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
)

// Store is a ledger in memory. The zero value is not ready; use [New].
type Store struct {
	mu      sync.RWMutex
	tenants map[access.Tenant]*books
}

// books are the records of one tenant.
type books struct {
	records  map[ledger.Ref]ledger.Record
	outcomes map[scope]*ledger.Outcome
	entries  map[journal.Subject][]*journal.Entry
	refunds  map[customers.ID][]ledger.Record // the same values as in records, oldest first
	accounts []customers.ID                   // in order
	documents
}

// scope is where an operation key is unique.
type scope struct {
	principal string
	key       operation.Key
}

// New returns an empty ledger.
func New() *Store { return &Store{tenants: map[access.Tenant]*books{}} }

// Do decides and applies under one lock.
func (s *Store) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	if err := ledger.Check(op); err != nil {
		return ledger.Outcome{}, err
	}
	fingerprint := operation.FingerprintOf(cmd.Name(), cmd.Facts())
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.tenants[op.Tenant]
	if b == nil {
		b = &books{
			records: map[ledger.Ref]ledger.Record{}, outcomes: map[scope]*ledger.Outcome{},
			entries: map[journal.Subject][]*journal.Entry{}, refunds: map[customers.ID][]ledger.Record{},
		}
		s.tenants[op.Tenant] = b
	}
	at := scope{op.Principal, op.Key}
	if o, done := b.outcomes[at]; done {
		return o.Replay(cmd.Name(), fingerprint)
	}
	reads := cmd.Reads()
	v := ledger.NewView(op, len(reads))
	for _, ref := range reads {
		v.Put(ref, b.at(ref))
	}
	change, err := ledger.Decide(cmd, v)
	if err != nil {
		return ledger.Outcome{}, err
	}
	if err := b.apply(change); err != nil {
		return ledger.Outcome{}, err
	}
	o := &ledger.Outcome{Operation: op, Command: cmd.Name(), Fingerprint: fingerprint, Answer: change.Answer}
	b.outcomes[at] = o
	return *o, nil
}

// apply stores a change, whole or not at all: what it can not keep it finds
// before it stores anything. That the entries follow the histories is checked
// by [ledger.Decide], under the same lock.
func (b *books) apply(c ledger.Change) error {
	for _, r := range c.Put {
		if !kept(r) {
			return fmt.Errorf("memory: no place for a %T", r)
		}
	}
	if !kept(c.Answer) {
		return fmt.Errorf("memory: no place for a %T", c.Answer)
	}
	for _, r := range c.Put {
		b.put(r)
	}
	switch c.Answer.(type) {
	case refunds.Refund, payables.Decision:
		b.put(c.Answer)
	}
	for _, e := range c.Entries {
		b.entries[e.Subject()] = append(b.entries[e.Subject()], &e)
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

func (b *books) put(record ledger.Record) {
	ref := record.Ref()
	switch r := record.(type) {
	case customers.Account:
		if b.records[ref] == nil {
			at, _ := slices.BinarySearchFunc(b.accounts, r.ID, compareIDs)
			b.accounts = slices.Insert(b.accounts, at, r.ID)
		}
	case refunds.Refund:
		b.refunds[r.Customer] = append(b.refunds[r.Customer], record) // numbers only grow
	case refunds.Reversal:
		list := b.refunds[r.Customer]
		at, _ := slices.BinarySearchFunc(list, r.Refund, compareNumber)
		reversed := list[at].(refunds.Refund)
		reversed.Status = refunds.Reversed
		list[at] = reversed
		b.records[reversed.Ref()] = reversed
	case payables.Vendor, payables.Invoice, payables.Receipt:
		if b.records[ref] == nil {
			b.documents.add(record)
		}
	}
	b.records[ref] = record
}

func compareIDs(a, b customers.ID) int { return strings.Compare(a.String(), b.String()) }

func compareNumber(r ledger.Record, number int64) int {
	return cmp.Compare(r.(refunds.Refund).Number, number)
}

// Load reads under a shared lock.
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
	case ledger.OutcomeKind:
		return b.outcome(ref)
	case ledger.EntryKind:
		return b.entry(ref)
	}
	return b.records[ref]
}

func (b *books) entry(ref ledger.Ref) ledger.Record {
	subject, number, ok := ledger.ParseEntryRef(ref)
	if entries := b.entries[subject]; ok && number >= 1 && number <= int64(len(entries)) {
		return ledger.Booked{Entry: *entries[number-1]}
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

// ListRefunds implements ports.Refunds.
func (s *Store) ListRefunds(ctx context.Context, t access.Tenant, c customers.ID, before int64, limit int) ([]refunds.Refund, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.tenants[t]
	if b == nil {
		return nil, nil
	}
	list := b.refunds[c]
	end := len(list)
	if before > 0 {
		end, _ = slices.BinarySearchFunc(list, before, compareNumber)
	}
	var page []refunds.Refund
	for _, r := range slices.Backward(list[end-min(max(limit, 0), end) : end]) {
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
		page = append(page, b.records[id.Ref()].(customers.Account))
	}
	return page, nil
}

// ListEntries implements ports.Journal.
func (s *Store) ListEntries(ctx context.Context, t access.Tenant, subject journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.tenants[t]
	if b == nil {
		return nil, nil
	}
	all := b.entries[subject]
	rest := all[min(max(after, 0), int64(len(all))):] // entry n stands at n-1
	var page []journal.Entry
	for _, e := range rest[:min(max(limit, 0), len(rest))] {
		page = append(page, *e)
	}
	return page, nil
}
