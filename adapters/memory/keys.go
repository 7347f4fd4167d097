package memory

import (
	"context"
	"hash/maphash"
	"strings"
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

// scopeOf takes apart the name of an outcome. Neither part holds a slash.
func scopeOf(ref ledger.Ref) (s scope, ok bool) {
	principal, text, _ := strings.Cut(ref.ID, "/")
	key, err := operation.ParseKey(text)
	return scope{principal, key}, err == nil && ref.Kind == ledger.OutcomeKind
}

// keys are the operation keys of a tenant. A key is claimed before any record is
// locked; the locks here are taken last and held for no time.
type keys struct {
	hash  func(scope) uint64
	parts [parts]keysPart
}

// keysPart are the keys whose hashes end alike. What is looked up is the hash:
// a map of texts that grows to millions reads every text again and again.
type keysPart struct {
	sync.Mutex
	first map[uint64]*claim
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
	ended       chan struct{} // closed when the claim ends, if somebody waits for it
}

func (k *keys) init() {
	seed := maphash.MakeSeed()
	k.hash = func(s scope) uint64 { return maphash.Comparable(seed, s) }
	for i := range k.parts {
		k.parts[i].first = map[uint64]*claim{}
	}
}

// lock locks the part with the key, and returns it and the key's hash.
func (k *keys) lock(s scope) (p *keysPart, hash uint64) {
	hash = k.hash(s)
	p = &k.parts[hash%parts]
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

// wait waits until no write under the key is being decided.
func (k *keys) wait(ctx context.Context, s scope) error {
	for {
		p, hash := k.lock(s)
		c := p.first[hash].of(s)
		if c == nil || c.outcome() != nil {
			p.Unlock()
			return nil
		}
		ended := c.ends()
		p.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// claim claims the key for a write that is about to be decided, or returns the
// outcome under it. Another write under the key is waited for, as long as the
// context lets it.
func (k *keys) claim(ctx context.Context, s scope) (claimed *claim, before *ledger.Outcome, err error) {
	for {
		claimed, before, ended := k.tryClaim(s)
		if ended == nil {
			return claimed, before, nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// tryClaim returns what tells the end of another write under the key, if there
// is one.
func (k *keys) tryClaim(s scope) (claimed *claim, before *ledger.Outcome, ended <-chan struct{}) {
	p, hash := k.lock(s)
	defer p.Unlock()
	first := p.first[hash]
	c := first.of(s)
	if c == nil {
		claimed = &claim{scope: s, next: first}
		p.first[hash] = claimed
		return claimed, nil, nil
	}
	if before = c.outcome(); before != nil {
		return nil, before, nil
	}
	return nil, nil, c.ends()
}

// ends returns what tells the end of the claim.
func (c *claim) ends() <-chan struct{} {
	if c.ended == nil {
		c.ended = make(chan struct{})
	}
	return c.ended
}

// settle ends a claim with the outcome and the entries that were made.
func (k *keys) settle(c *claim, o ledger.Outcome, entries []journal.Entry) {
	p, _ := k.lock(c.scope)
	defer p.Unlock()
	if len(entries) == 0 {
		c.answer = o
	} else {
		c.fingerprint, c.answer, c.entry = o.Fingerprint, o.Answer, entries[0]
	}
	c.end()
}

// free ends a claim without an outcome: the key may be used again.
func (k *keys) free(c *claim) {
	p, hash := k.lock(c.scope)
	defer p.Unlock()
	if before := p.first[hash]; before != c {
		for before.next != c {
			before = before.next
		}
		before.next = c.next
	} else if c.next != nil {
		p.first[hash] = c.next
	} else {
		delete(p.first, hash)
	}
	c.end()
}

func (c *claim) end() {
	if c.ended != nil {
		close(c.ended)
		c.ended = nil
	}
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
