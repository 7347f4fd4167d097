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

// parts is how many parts the records and the keys of a tenant have: more than
// a machine has cores, so that two writes of different records seldom meet.
const parts = 64

// books are the records of one tenant, in parts that are locked one by one.
//
// A write locks the decisions on the parts in which the records are that it
// names, reads, decides, and only then locks the parts themselves, to change
// them. So nobody who reads waits for a decision, and everybody sees a change
// whole. Locks are taken in this order, and of each sort by place: decisions,
// parts, and last of all a key or the lists.
type books struct {
	seed  maphash.Seed
	parts [parts]part
	keys  keys
	lists lists
}

// part is a part of the records: those whose names begin alike, so that all that
// belongs to one customer or one vendor is in one part.
type part struct {
	deciding     sync.Mutex
	sync.RWMutex                              // of what follows
	records      map[ledger.Ref]ledger.Record // but accounts, refunds and entries
	histories    map[journal.Subject]*history
	_            [16]byte // each on a cache line of its own
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
	for i := range b.parts {
		b.parts[i].records, b.parts[i].histories = map[ledger.Ref]ledger.Record{}, map[journal.Subject]*history{}
	}
	b.keys.init()
	return b
}

// place returns which part has the records of that name, or of names that
// continue it after a slash.
func (b *books) place(id string) int {
	first, _, _ := strings.Cut(id, "/")
	return int(maphash.String(b.seed, first) % parts)
}

func (b *books) placeOf(ref ledger.Ref) int {
	if ref.Kind == ledger.EntryKind {
		subject, _, _ := ledger.ParseEntryRef(ref)
		return b.place(subject.ID)
	}
	return b.place(ref.ID)
}

// places are parts of the books, a bit for each.
type places uint64

const everywhere = 1<<parts - 1

func (b *books) placesOf(refs []ledger.Ref) (all places) {
	for _, ref := range refs {
		all |= 1 << b.placeOf(ref)
	}
	return all
}

// each gives the parts to f, in order.
func (b *books) each(all places, f func(*part)) {
	for ; all != 0; all &= all - 1 {
		f(&b.parts[bits.TrailingZeros64(uint64(all))])
	}
}

func (b *books) decide(all places)  { b.each(all, func(p *part) { p.deciding.Lock() }) }
func (b *books) decided(all places) { b.each(all, func(p *part) { p.deciding.Unlock() }) }
func (b *books) read(all places)    { b.each(all, (*part).RLock) }
func (b *books) wasRead(all places) { b.each(all, (*part).RUnlock) }

// history returns the history of the subject, which may be empty yet.
func (b *books) history(s journal.Subject) *history {
	own := &b.parts[b.place(s.ID)]
	h := own.histories[s]
	if h == nil {
		h = &history{}
		own.histories[s] = h
	}
	return h
}

// apply books a change of records in those places.
func (b *books) apply(c ledger.Change, all places) {
	imported, isImport := c.Answer.(customers.Imported)
	if isImport { // which is named by its operation, and was not named
		all |= 1 << b.placeOf(imported.Ref())
	}
	b.each(all, (*part).Lock)
	defer b.each(all, (*part).Unlock)
	for _, r := range c.Put {
		b.put(r)
	}
	// An answer that was not named is a record that the decision made.
	switch r := c.Answer.(type) {
	case refunds.Refund:
		h := b.history(r.Customer.Subject())
		h.refunds = append(h.refunds, c.Answer) // numbers only grow
	case customers.Adjustment, customers.Imported, payables.Decision: // which may be an earlier one
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
	own := &b.parts[b.placeOf(ref)]
	if own.records[ref] == nil {
		b.lists.add(record)
	}
	own.records[ref] = record
}

// view is what there is at the refs, which are in those places.
func (b *books) view(op operation.Operation, facts []operation.Fact, refs []ledger.Ref, all places) ledger.View {
	v := ledger.NewView(op, len(refs))
	v.Facts = facts
	b.read(all)
	defer b.wasRead(all)
	for _, ref := range refs {
		v.Put(ref, b.at(ref))
	}
	return v
}

// at returns the record at ref, or nil.
func (b *books) at(ref ledger.Ref) ledger.Record {
	own := &b.parts[b.placeOf(ref)]
	switch ref.Kind {
	case customers.Kind:
		if h := own.histories[journal.Subject{Kind: ref.Kind.Name, ID: ref.ID}]; h != nil {
			return h.account
		}
		return nil
	case ledger.OutcomeKind:
		return b.outcome(ref)
	case ledger.EntryKind:
		return own.entry(ref)
	case refunds.Kind:
		return own.refund(ref)
	}
	return own.records[ref]
}

func (own *part) entry(ref ledger.Ref) ledger.Record {
	subject, number, ok := ledger.ParseEntryRef(ref)
	if h := own.histories[subject]; ok && h != nil && number >= 1 && number <= int64(len(h.entries)) {
		return ledger.Booked{Entry: h.entries[number-1]}
	}
	return nil
}

func (own *part) refund(ref ledger.Ref) ledger.Record {
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
	if key, ok := scopeOf(ref); ok {
		if o := b.keys.under(key); o != nil {
			return *o
		}
	}
	return nil
}
