package mcpserver

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/refundledger/refundledger/domain/access"
)

// maxCallers is how many principals the limiter remembers at least. It holds at
// most twice as many; one it has forgotten starts with a full bucket.
const maxCallers = 8192

// limiter gives each principal a bucket of its own.
type limiter struct {
	rate  rate.Limit
	burst int

	mu sync.Mutex
	// Who was seen since the older of the two filled up is in recent. Forgetting
	// all of older at once costs nothing and keeps those who call.
	recent, older map[caller]*rate.Limiter
}

type caller struct {
	tenant access.Tenant
	id     string
}

// newLimiter makes a limiter; without a rate, one that lets everything pass.
func newLimiter(perSecond float64, burst int) *limiter {
	if perSecond == 0 {
		return nil
	}
	return &limiter{rate: rate.Limit(perSecond), burst: burst, recent: map[caller]*rate.Limiter{}}
}

// take takes one request from the bucket of a principal. If it is empty, it
// returns how long until it is not.
func (l *limiter) take(p access.Principal) (wait time.Duration) {
	if l == nil {
		return 0
	}
	now := time.Now()
	r := l.bucket(caller{p.Tenant(), p.ID()}).ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

func (l *limiter) bucket(who caller) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.recent[who]; b != nil {
		return b
	}
	b := l.older[who]
	if b == nil {
		b = rate.NewLimiter(l.rate, l.burst)
	}
	if len(l.recent) == maxCallers {
		l.older, l.recent = l.recent, map[caller]*rate.Limiter{}
	}
	l.recent[who] = b
	return b
}
