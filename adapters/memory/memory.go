// Package memory keeps the ledger in the memory of one process: lock, decide,
// apply. It is the reference model that the other adapters are compared
// with, and what the server starts with when nothing is configured. Nothing
// survives the process.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

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
// A write claims its key, and no other write decides on the records that it
// names until it is done; decisions on different records run at once. See books
// for the locks.
type Store struct {
	adding  sync.Mutex
	tenants atomic.Pointer[map[access.Tenant]*books] // a new map for a new tenant
}

// New returns an empty ledger.
func New() *Store {
	s := &Store{}
	s.tenants.Store(&map[access.Tenant]*books{})
	return s
}

// books returns the books of a tenant, or nil if nothing was booked.
func (s *Store) books(t access.Tenant) *books { return (*s.tenants.Load())[t] }

// opened returns the books of a tenant.
func (s *Store) opened(t access.Tenant) *books {
	if b := s.books(t); b != nil {
		return b
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	if b := s.books(t); b != nil {
		return b
	}
	all := maps.Clone(*s.tenants.Load())
	all[t] = newBooks()
	s.tenants.Store(&all)
	return all[t]
}

// Do decides under the locks of the records named, and applies.
func (s *Store) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	if err := ledger.Check(op); err != nil {
		return ledger.Outcome{}, err
	}
	if err := ctx.Err(); err != nil {
		return ledger.Outcome{}, over(err)
	}
	facts, reads := cmd.Facts(), cmd.Reads()
	fingerprint := operation.FingerprintOf(cmd.Name(), facts)
	b := s.opened(op.Tenant)
	claimed, before, err := b.keys.claim(ctx, scope{op.Principal, op.Key})
	switch {
	case err != nil:
		return ledger.Outcome{}, over(err)
	case before != nil:
		return before.Replay(cmd.Name(), fingerprint)
	}
	o, entries, err := b.run(ctx, op, cmd, facts, reads)
	if err != nil {
		b.keys.free(claimed)
		return ledger.Outcome{}, err
	}
	o.Fingerprint = fingerprint
	// Who sees the change before this and looks the key up waits for the claim.
	b.keys.settle(claimed, o, entries)
	return o, nil
}

// run decides and applies.
func (b *books) run(ctx context.Context, op operation.Operation, cmd ledger.Command, facts []operation.Fact, reads []ledger.Ref) (ledger.Outcome, []journal.Entry, error) {
	all := b.placesOf(reads)
	b.decide(all)
	defer b.decided(all)
	if err := ctx.Err(); err != nil {
		return ledger.Outcome{}, nil, over(err)
	}
	change, err := ledger.Decide(cmd, b.view(op, facts, reads, all))
	if err != nil {
		return ledger.Outcome{}, nil, err
	}
	if err := placed(change); err != nil {
		return ledger.Outcome{}, nil, err
	}
	b.apply(change, all)
	return ledger.Outcome{Operation: op, Command: cmd.Name(), Answer: change.Answer}, change.Entries, nil
}

// over is the fault for a call whose time was over before anything was decided.
func over(err error) error {
	return fmt.Errorf("%w (%w)", fault.New(fault.BackendUnavailable, "call_ended", "The call ended before the write began. Nothing was done. Try again later."), err)
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

func compareNumber(r ledger.Record, number int64) int {
	return cmp.Compare(r.(refunds.Refund).Number, number)
}

// Load implements ports.Ledger.
func (s *Store) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	op := operation.Operation{Tenant: t}
	if b := s.books(t); b != nil {
		for _, ref := range refs {
			if key, ok := scopeOf(ref); ok {
				if err := b.keys.wait(ctx, key); err != nil {
					return ledger.View{}, fmt.Errorf("%w (%w)", fault.New(fault.BackendUnavailable, "write_running", "A write under this operation key is still being decided. Look it up again later."), err)
				}
			}
		}
		return b.view(op, nil, refs, b.placesOf(refs)), nil
	}
	v := ledger.NewView(op, len(refs))
	for _, ref := range refs {
		v.Put(ref, nil)
	}
	return v, nil
}

// read gives what was booked for the subject, if anything was, to f, and keeps
// it still meanwhile.
func (s *Store) read(t access.Tenant, subject journal.Subject, f func(*history)) {
	b := s.books(t)
	if b == nil {
		return
	}
	own := &b.parts[b.place(subject.ID)]
	own.RLock()
	defer own.RUnlock()
	if h := own.histories[subject]; h != nil {
		f(h)
	}
}

// readAll gives the books of the tenant, if there are any, to f, and keeps them
// still meanwhile.
func (s *Store) readAll(t access.Tenant, f func(*books)) {
	b := s.books(t)
	if b == nil {
		return
	}
	b.read(everywhere)
	defer b.wasRead(everywhere)
	f(b)
}

// ListRefunds implements ports.Refunds.
func (s *Store) ListRefunds(ctx context.Context, t access.Tenant, c customers.ID, before int64, limit int) (page []refunds.Refund, err error) {
	s.read(t, c.Subject(), func(h *history) {
		end := len(h.refunds)
		if before > 0 {
			end, _ = slices.BinarySearchFunc(h.refunds, before, compareNumber)
		}
		rest := h.refunds[end-min(max(limit, 0), end) : end]
		page = make([]refunds.Refund, 0, len(rest))
		for _, r := range slices.Backward(rest) {
			page = append(page, r.(refunds.Refund))
		}
	})
	return page, nil
}

// ListAccounts implements ports.Journal.
func (s *Store) ListAccounts(ctx context.Context, t access.Tenant, after string, limit int) (page []customers.Account, err error) {
	s.readAll(t, func(b *books) {
		rest := beyond(b.lists.accounts, after)
		for _, id := range rest[:min(max(limit, 0), len(rest))] {
			page = append(page, b.at(ledger.Ref{Kind: customers.Kind, ID: id}).(customers.Account))
		}
	})
	return page, nil
}

// ListEntries implements ports.Journal.
func (s *Store) ListEntries(ctx context.Context, t access.Tenant, subject journal.Subject, after int64, limit int) (page []journal.Entry, err error) {
	s.read(t, subject, func(h *history) {
		rest := h.entries[min(max(after, 0), int64(len(h.entries))):] // entry n stands at n-1
		page = slices.Clone(rest[:min(max(limit, 0), len(rest))])
	})
	return page, nil
}
