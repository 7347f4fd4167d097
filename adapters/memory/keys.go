package memory

import (
	"hash/maphash"
	"sync"

	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// scope is where an operation key is unique.
type scope struct {
	principal string
	key       operation.Key
}

// keys are the operation keys of a tenant.
type keys struct {
	seed  maphash.Seed
	parts [shards]keysPart
}

// keysPart are the keys whose hashes end alike. What is looked up is the hash:
// a map of texts that grows to millions reads every text again and again.
type keysPart struct {
	sync.Mutex
	first   map[uint64]*claim
	waiting int // how many wait until a claim ends
	ended   sync.Cond
}

// claim is a key that is used, and what it led to, or nothing yet while the
// write is decided. Who asked for what, through which tool and when is in the
// entry that was made; if none was, the answer is the whole outcome.
type claim struct {
	scope
	next        *claim // another key with the same hash
	fingerprint operation.Fingerprint
	answer      ledger.Record
	entry       journal.Entry
}

func (k *keys) init() {
	k.seed = maphash.MakeSeed()
	for i := range k.parts {
		p := &k.parts[i]
		p.first, p.ended.L = map[uint64]*claim{}, p
	}
}

// lock locks the part with the key, and returns it and the key's hash.
func (k *keys) lock(s scope) (p *keysPart, hash uint64) {
	hash = maphash.Comparable(k.seed, s)
	p = &k.parts[hash%shards]
	p.Lock()
	return p, hash
}

// of returns the claim of that scope, this one or one after it, or nil.
func (c *claim) of(s scope) *claim {
	for c != nil && c.scope != s {
		c = c.next
	}
	return c
}

// under returns the outcome under a key, or nil.
func (k *keys) under(s scope) *ledger.Outcome {
	p, hash := k.lock(s)
	defer p.Unlock()
	if c := p.first[hash].of(s); c != nil {
		return c.outcome()
	}
	return nil
}

// claim claims the key for a write that is about to be decided, or returns the
// outcome under it. Another write under the key is waited for.
func (k *keys) claim(s scope) (claimed *claim, before *ledger.Outcome) {
	p, hash := k.lock(s)
	defer p.Unlock()
	first := p.first[hash]
	for c := first.of(s); c != nil; c = first.of(s) {
		if before := c.outcome(); before != nil {
			return nil, before
		}
		p.waiting++
		p.ended.Wait()
		p.waiting--
		first = p.first[hash]
	}
	claimed = &claim{scope: s, next: first}
	p.first[hash] = claimed
	return claimed, nil
}

// settle ends a claim: with the outcome and the entries that were made, or
// without an answer, and the key is free again.
func (k *keys) settle(claimed *claim, o ledger.Outcome, entries []journal.Entry) {
	p, hash := k.lock(claimed.scope)
	defer p.Unlock()
	switch {
	case o.Answer == nil:
		p.free(hash, claimed)
	case len(entries) == 0:
		claimed.answer = o
	default:
		claimed.fingerprint, claimed.answer, claimed.entry = o.Fingerprint, o.Answer, entries[0]
	}
	if p.waiting > 0 {
		p.ended.Broadcast()
	}
}

func (p *keysPart) free(hash uint64, claimed *claim) {
	if p.first[hash] == claimed {
		if claimed.next == nil {
			delete(p.first, hash)
		} else {
			p.first[hash] = claimed.next
		}
		return
	}
	before := p.first[hash]
	for before.next != claimed {
		before = before.next
	}
	before.next = claimed.next
}

// outcome returns what the key led to, or nil if that is not known yet.
func (c *claim) outcome() *ledger.Outcome {
	switch answer := c.answer.(type) {
	case nil:
		return nil
	case ledger.Outcome:
		return &answer
	}
	return &ledger.Outcome{Operation: c.entry.Operation(), Command: c.entry.Command(), Fingerprint: c.fingerprint, Answer: c.answer}
}
