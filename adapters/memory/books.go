package memory

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
)

// shards is how many parts the records and the keys of a tenant have: more than
// a machine has cores, so that two writes of different records seldom meet.
const shards = 64

// books are the records of one tenant, in parts that are locked one by one:
// records first, then keys, then lists.
type books struct {
	seed    maphash.Seed
	records [shards]shard
	keys    keys
	lists   lists
}

// shard is a part of the records: those whose names begin alike, so that all
// that belongs to one customer or one vendor is in one part.
type shard struct {
	sync.Mutex
	records   map[ledger.Ref]ledger.Record // but accounts, refunds and entries
	histories map[journal.Subject]*history
	_         [40]byte // each lock on a cache line of its own
}

// history is what was booked for one subject.
type history struct {
	entries []journal.Entry
	// Of a customer there are the account too, and the refunds, oldest first.
	account ledger.Record
	refunds []ledger.Record
}

func newBooks() *books {
	b := &books{seed: maphash.MakeSeed(), lists: newLists()}
	for i := range b.records {
		b.records[i].records, b.records[i].histories = map[ledger.Ref]ledger.Record{}, map[journal.Subject]*history{}
	}
	b.keys.init()
	return b
}

// place returns where the records of that name, or of names that continue it
// after a slash, are.
func (b *books) place(id string) int {
	first, _, _ := strings.Cut(id, "/")
	return int(maphash.String(b.seed, first) % shards)
}

func (b *books) placeOf(ref ledger.Ref) int {
	if ref.Kind == ledger.EntryKind {
		subject, _, _ := ledger.ParseEntryRef(ref)
		return b.place(subject.ID)
	}
	return b.place(ref.ID)
}

// lock locks where the records are, in one order for all, so that no two wait
// for each other. It returns what is held, a bit for each.
func (b *books) lock(refs []ledger.Ref) (held uint64) {
	for _, ref := range refs {
		held |= 1 << b.placeOf(ref)
	}
	b.lockAll(held)
	return held
}

const everything = 1<<shards - 1

func (b *books) lockAll(held uint64) {
	for ; held != 0; held &= held - 1 {
		b.records[bits.TrailingZeros64(held)].Lock()
	}
}

func (b *books) unlock(held uint64) {
	for ; held != 0; held &= held - 1 {
		b.records[bits.TrailingZeros64(held)].Unlock()
	}
}

// history returns the history of the subject, which may be empty yet.
func (b *books) history(s journal.Subject) *history {
	own := &b.records[b.place(s.ID)]
	h := own.histories[s]
	if h == nil {
		h = &history{}
		own.histories[s] = h
	}
	return h
}

// apply books a change.
func (b *books) apply(c ledger.Change) {
	for _, r := range c.Put {
		b.put(r)
	}
	// An answer that was not named is a record that the decision made.
	switch r := c.Answer.(type) {
	case refunds.Refund:
		h := b.history(r.Customer.Subject())
		h.refunds = append(h.refunds, c.Answer) // numbers only grow
	case customers.Imported:
		b.lists.keep(r)
	case customers.Adjustment, payables.Decision: // which may be an earlier one
		b.put(c.Answer)
	}
	for _, e := range c.Entries {
		h := b.history(e.Subject())
		h.entries = append(h.entries, e)
	}
}

func (b *books) put(record ledger.Record) {
	switch r := record.(type) {
	case customers.Account:
		h := b.history(r.ID.Subject())
		if h.account == nil {
			b.lists.add(record)
		}
		h.account = record
		return
	case refunds.Reversal:
		list := b.history(r.Customer.Subject()).refunds
		at, _ := slices.BinarySearchFunc(list, r.Refund, compareNumber)
		reversed := list[at].(refunds.Refund)
		reversed.Status = refunds.Reversed
		list[at] = reversed
	}
	ref := record.Ref()
	own := &b.records[b.placeOf(ref)]
	if own.records[ref] == nil {
		b.lists.add(record)
	}
	own.records[ref] = record
}

// at returns the record at ref, or nil.
func (b *books) at(ref ledger.Ref) ledger.Record {
	own := &b.records[b.placeOf(ref)]
	switch ref.Kind {
	case customers.Kind:
		if h := own.histories[journal.Subject{Kind: ref.Kind.Name, ID: ref.ID}]; h != nil {
			return h.account
		}
		return nil
	case customers.ImportKind:
		return b.lists.imported(ref)
	case ledger.OutcomeKind:
		return b.outcome(ref)
	case ledger.EntryKind:
		return own.entry(ref)
	case refunds.Kind:
		return own.refund(ref)
	}
	return own.records[ref]
}

func (own *shard) entry(ref ledger.Ref) ledger.Record {
	subject, number, ok := ledger.ParseEntryRef(ref)
	if h := own.histories[subject]; ok && h != nil && number >= 1 && number <= int64(len(h.entries)) {
		return ledger.Booked{Entry: h.entries[number-1]}
	}
	return nil
}

func (own *shard) refund(ref ledger.Ref) ledger.Record {
	customer, number, ok := refunds.ParseRef(ref)
	h := own.histories[customer.Subject()]
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
	if o := b.keys.under(scope{principal, key}); o != nil {
		return *o
	}
	return nil
}
