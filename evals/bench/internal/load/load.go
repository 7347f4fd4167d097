// Package load makes refunds in a closed loop: each client sends its next when
// its last is answered.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refundledger/refundledger/evals/bench/internal/side"
)

const (
	// Customers is how many customers a ledger has, numbered from 0.
	Customers = 10_000
	// Opening is the balance of each at the start, in minor units: more than
	// any run takes.
	Opening = 1_000_000_000_000
	// MaxMinor is the most that one refund takes.
	MaxMinor = 500
	// Reason is the reason of every refund.
	Reason = "damaged on arrival, customer sent photos"
)

// Refund is one refund to make, in the words of every ledger and floor.
type Refund struct {
	Key      string // a new one each time
	Customer int    // below Customers
	Minor    int64  // 1 to MaxMinor
}

// Ledger is what makes refunds: the product or a floor.
type Ledger interface {
	// Refund makes the refunds, in one commit. Anything but success is an error.
	Refund(ctx context.Context, refunds ...Refund) error
	// Refunded reports how many refunds the accounts say there were, and their sum.
	Refunded(ctx context.Context) (count, minor int64, err error)
	Close() error
}

// Plan says how many refunds come, how fast and to whom.
type Plan struct {
	Clients int
	// Batch is how many refunds a client hands over at once; 0 means 1. With
	// more than one it is the floor of any group commit.
	Batch int
	// Customers is how many are refunded, at random: 1 is a hot one; 0 means all.
	Customers int
	// Calls ends the run after so many refunds; 0 is no bound.
	Calls int
	// For ends the run after Warm, which is not counted, and this; 0 is no bound.
	Warm, For time.Duration
	// Every is at which of a client's calls the clock is read: 1 for all, more
	// where reading it would be a good part of the call.
	Every int
	// Ordered keys come in one order, whatever client they are of, as those do
	// that begin with the time: what is inserted into an index of them is the same
	// for one client as for many. Else each client counts its own.
	Ordered bool
}

var (
	run      atomic.Int64 // no two runs of the process share a key
	sequence atomic.Int64 // of ordered keys
)

// Run makes the refunds on l and counts those acknowledged in a second. It is
// an error if one fails, or if the accounts at the end say anything else than
// what was acknowledged.
func (p Plan) Run(ctx context.Context, l Ledger) (side.Sample, error) {
	count, minor, err := l.Refunded(ctx)
	if err != nil {
		return side.Sample{}, err
	}
	runtime.GC() // what the row before left behind is not this one's to collect
	all, sample, err := p.drive(ctx, l)
	if err != nil {
		return side.Sample{}, err
	}
	countAfter, minorAfter, err := l.Refunded(ctx)
	if err != nil {
		return side.Sample{}, err
	}
	if countAfter-count != all.made || minorAfter-minor != all.minor {
		return side.Sample{}, fmt.Errorf("%d refunds of %d minor units in all were acknowledged, but the accounts say %d of %d", all.made, all.minor, countAfter-count, minorAfter-minor)
	}
	return sample, nil
}

// drive runs the clients and returns what they made together.
func (p Plan) drive(ctx context.Context, l Ledger) (all tally, s side.Sample, err error) {
	clients := make([]client, p.Clients)
	var stop, counting atomic.Bool
	counting.Store(p.Warm == 0)
	prefix := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.FormatInt(run.Add(1), 36) + "-"
	began, used := time.Now(), cpu()
	var group sync.WaitGroup
	for i := range clients {
		c := &clients[i]
		if c.plan, c.prefix = p, prefix; !p.Ordered {
			c.prefix += strconv.Itoa(i) + "-"
		}
		c.random = rand.New(rand.NewPCG(uint64(i), uint64(began.UnixNano())))
		if p.Calls > 0 {
			c.quota = max(1, p.Calls/p.Clients)
		}
		group.Go(func() {
			if c.run(ctx, l, &stop, &counting); c.err != nil {
				stop.Store(true)
			}
		})
	}
	finished := make(chan struct{})
	go func() { group.Wait(); close(finished) }()
	if p.Warm > 0 {
		pause(finished, p.Warm)
		began, used = time.Now(), cpu()
		counting.Store(true)
	}
	pause(finished, p.For)
	took, used := time.Since(began), cpu()-used
	counting.Store(false)
	stop.Store(true)
	<-finished
	for _, c := range clients {
		all.made, all.minor, all.counted = all.made+c.made, all.minor+c.minor, all.counted+c.counted
		all.latencies = append(all.latencies, c.latencies...)
		err = errors.Join(err, c.err)
	}
	if err == nil && all.counted == 0 {
		err = errors.New("no refund was acknowledged in time")
	}
	if err != nil {
		return all, s, err
	}
	s = side.Sample{Value: float64(all.counted) / took.Seconds(), CPU: used / time.Duration(all.counted)}
	s.P50, s.P99 = Percentiles(all.latencies)
	return all, s, nil
}

// pause waits for a time, or for the end if the time is 0.
func pause(finished <-chan struct{}, d time.Duration) {
	if d == 0 {
		<-finished
		return
	}
	select {
	case <-finished:
	case <-time.After(d):
	}
}

// Percentiles returns the median and the 99th percentile, 0 of nothing. It sorts.
func Percentiles(d []time.Duration) (p50, p99 time.Duration) {
	if len(d) == 0 {
		return 0, 0
	}
	slices.Sort(d)
	return d[len(d)/2], d[min(len(d)-1, len(d)*99/100)]
}

// tally is what one client made, or all of them.
type tally struct {
	made, minor int64 // all that was acknowledged
	counted     int64 // of it, while the clock ran
	latencies   []time.Duration
}

type client struct {
	tally
	plan   Plan
	prefix string // of its keys
	random *rand.Rand
	quota  int // how many refunds it makes; 0: until it is stopped
	err    error
	_      [64]byte // each client counts on its own cache line
}

func (c *client) run(ctx context.Context, l Ledger, stop, counting *atomic.Bool) {
	batch := make([]Refund, max(1, c.plan.Batch))
	for n := 0; !stop.Load() && (c.quota == 0 || c.made < int64(c.quota)); n++ {
		var sum int64
		for i := range batch {
			batch[i] = c.next(n*len(batch) + i)
			sum += batch[i].Minor
		}
		timed := c.plan.Every > 0 && n%c.plan.Every == 0
		var began time.Time
		if timed {
			began = time.Now()
		}
		if c.err = l.Refund(ctx, batch...); c.err != nil {
			return
		}
		c.made += int64(len(batch))
		c.minor += sum
		if counting.Load() {
			c.counted += int64(len(batch))
			if timed {
				c.latencies = append(c.latencies, time.Since(began))
			}
		}
	}
}

func (c *client) next(n int) Refund {
	key := strconv.Itoa(n)
	if c.plan.Ordered {
		key = fmt.Sprintf("%016d", sequence.Add(1))
	}
	r := Refund{Key: c.prefix + key, Customer: 0, Minor: 1 + int64(n%MaxMinor)}
	if c.plan.Customers != 1 {
		r.Customer = c.random.IntN(cmp.Or(c.plan.Customers, Customers))
	}
	return r
}
