// Package mutexmap is the floor of a ledger in memory: one mutex around a map
// of balances, a set of keys and an append-only list. No hash, no rules but the
// balance, no postings.
package mutexmap

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/refundledger/refundledger/evals/bench/internal/load"
)

// Ledger is one mutex around a map.
type Ledger struct {
	mu      sync.Mutex
	account map[int64]*account
	keys    map[string]int64
	journal [][]entry
	last    int64
}

type account struct{ balance, version int64 }

type entry struct {
	id, customer, minor, after int64
	at                         int64
	key, reason                string
}

var (
	errReplay   = errors.New("the key is used")
	errDeclined = errors.New("declined")
)

// New returns a ledger with all customers.
func New() *Ledger {
	l := &Ledger{account: map[int64]*account{}, keys: map[string]int64{}}
	for c := range int64(load.Customers) {
		l.account[c] = &account{load.Opening, 1}
	}
	return l
}

// Refund makes the refunds one by one.
func (l *Ledger) Refund(_ context.Context, refunds ...load.Refund) error {
	for _, r := range refunds {
		if err := l.one(r); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) one(r load.Refund) error {
	at := time.Now().UnixMicro()
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, used := l.keys[r.Key]; used {
		return errReplay
	}
	a := l.account[int64(r.Customer)]
	if a == nil || a.balance < r.Minor {
		return errDeclined
	}
	a.balance -= r.Minor
	a.version++
	l.last++
	l.keys[r.Key] = l.last
	l.append(entry{l.last, int64(r.Customer), r.Minor, a.balance, at, r.Key, load.Reason})
	return nil
}

// append grows the journal by chunks, so that it is never copied.
func (l *Ledger) append(e entry) {
	if n := len(l.journal); n == 0 || len(l.journal[n-1]) == cap(l.journal[n-1]) {
		l.journal = append(l.journal, make([]entry, 0, 4096))
	}
	chunk := &l.journal[len(l.journal)-1]
	*chunk = append(*chunk, e)
}

// Refunded counts by the accounts.
func (l *Ledger) Refunded(context.Context) (count, minor int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.account {
		count += a.version - 1
		minor += load.Opening - a.balance
	}
	return count, minor, nil
}

// Close does nothing.
func (l *Ledger) Close() error { return nil }
