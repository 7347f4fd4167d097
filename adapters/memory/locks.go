package memory

import (
	"hash/maphash"
	"math/bits"
	"sync"

	"github.com/refundledger/refundledger/domain/ledger"
)

// locks are the locks of all records. A record's name decides which of them is
// its own; several records may share one.
type locks struct {
	seed maphash.Seed
	all  *[64]lock
}

// lock is a mutex on a cache line of its own.
type lock struct {
	sync.Mutex
	_ [56]byte
}

func newLocks() locks { return locks{maphash.MakeSeed(), new([64]lock)} }

// lock takes the locks of the records, in one order for all writes, so that no
// two wait for each other. It returns which, a bit for each.
func (l locks) lock(refs []ledger.Ref) (held uint64) {
	for _, ref := range refs {
		held |= 1 << (maphash.String(l.seed, ref.ID) % 64)
	}
	for rest := held; rest != 0; rest &= rest - 1 {
		l.all[bits.TrailingZeros64(rest)].Lock()
	}
	return held
}

func (l locks) unlock(held uint64) {
	for ; held != 0; held &= held - 1 {
		l.all[bits.TrailingZeros64(held)].Unlock()
	}
}
