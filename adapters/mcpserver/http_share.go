package mcpserver

import (
	"sync"

	"github.com/refundledger/refundledger/domain/access"
)

// shares bound how much of what there is room for one principal has at once, so
// that none can shut out the others.
type shares struct {
	most int

	mu   sync.Mutex
	held map[caller]int // of those who have any
}

// newShares makes shares; with 0, everybody may have everything.
func newShares(most int) *shares {
	if most == 0 {
		return nil
	}
	return &shares{most: most, held: map[caller]int{}}
}

// take takes one more for a principal, if that is within its share.
func (s *shares) take(p access.Principal) bool {
	if s == nil {
		return true
	}
	who := caller{p.Tenant(), p.ID()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[who] >= s.most {
		return false
	}
	s.held[who]++
	return true
}

// give gives back what take took.
func (s *shares) give(p access.Principal) {
	if s == nil {
		return
	}
	who := caller{p.Tenant(), p.ID()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[who]--; s.held[who] == 0 {
		delete(s.held, who)
	}
}
