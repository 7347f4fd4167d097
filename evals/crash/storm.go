package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/refundledger/refundledger/domain/money"
)

const (
	// callers is how many calls are in flight to one server.
	callers = 48
	// maxServers is how many servers storm one ledger at once.
	maxServers = 3
	// longestStorm bounds the time from the first call to the kill.
	longestStorm = 400 * time.Millisecond
	// longestGap bounds the time between the kills of two servers.
	longestGap = 5 * time.Millisecond
	// longestStart bounds the age of a server that is killed while it starts.
	longestStart = 60 * time.Millisecond
	// longestDown bounds the time that the database stays away.
	longestDown = 300 * time.Millisecond
	// earlyEvery is how many storms there are to one kill during a start.
	earlyEvery = 8
	// repeatEvery is how many calls there are to one under a key that was used.
	repeatEvery = 8
	// recent is how far back half of the repeated keys go: to calls that are
	// still in flight, most likely.
	recent = 64
	// verifyEvery is how many storms there are to one verification of the whole
	// ledger. What is broken stays broken.
	verifyEvery = 25
	// retryPause is how long a caller waits who was told to try again later.
	retryPause = 100 * time.Millisecond
)

// storm drives a ledger and breaks what it runs on.
type storm struct {
	*book
	ledger ledger
	random *rand.Rand
	log    io.Writer // what happens, as it happens

	name    string    // of the run: a part of every key
	touched []*refund // asked for since the last comparison; guarded by mu
}

var stormCurrencies = []string{"USD", "USD", "USD", "EUR", "JPY", "KWD"}

// newStorm makes the customers of a storm in a new ledger.
func newStorm(ctx context.Context, l ledger, seed uint64, log io.Writer) (*storm, error) {
	b, err := openBook(ctx, l, 1, stormCurrencies...)
	if err != nil {
		return nil, err
	}
	return &storm{
		book: b, ledger: l, random: rand.New(rand.NewPCG(seed, 0)), log: log, name: fmt.Sprintf("storm-%d", seed),
	}, nil
}

// killServers storms the ledger and kills its servers, again and again, and
// compares after each time.
func (s *storm) killServers(ctx context.Context, kills int) error {
	for round := 1; s.kills < kills; round++ {
		if s.random.IntN(earlyEvery) == 0 {
			if err := s.killEarly(ctx); err != nil {
				return err
			}
		}
		servers, err := s.serve(ctx, 1+s.random.IntN(min(maxServers, kills-s.kills)))
		if err != nil {
			return err
		}
		// The servers that storm now had no part in the last storm.
		if err := s.settle(ctx, servers[0]); err != nil {
			return err
		}
		wait := s.storm(ctx, servers, false)
		time.Sleep(s.moment(longestStorm))
		inFlight := 0
		for _, c := range servers {
			s.mustRun(c)
			c.kill()
			inFlight += c.unanswered
			time.Sleep(s.moment(longestGap))
		}
		if err := wait(); err != nil {
			return err
		}
		s.kills += len(servers)
		s.unanswered += inFlight
		fmt.Fprintf(s.log, "storm %d: %d servers killed with %d calls in flight, %d acknowledged so far\n", round, len(servers), inFlight, s.acknowledged)
		if round%verifyEvery == 0 {
			s.verify(ctx, s.ledger)
		}
	}
	return nil
}

// killEarly kills a server while it opens the ledger.
func (s *storm) killEarly(ctx context.Context) error {
	c, err := spawn(s.ledger.server(ctx))
	if err != nil {
		return err
	}
	time.Sleep(s.moment(longestStart))
	s.mustRun(c)
	c.kill()
	s.early++
	return nil
}

// mustRun makes it a finding that a server ended by itself.
func (s *storm) mustRun(c *client) {
	if !c.running() {
		s.found(&s.wrong, "a server ended by itself: %v: %s", c.exit, c.log.String())
	}
}

// crashable is a database server that can be stopped as a crash does it.
type crashable interface {
	Stop() error
	Start() error
}

// restartDatabase storms the ledger and crashes the database under it. Its
// servers live on: they have to find their way back by themselves.
func (s *storm) restartDatabase(ctx context.Context, db crashable, restarts int) error {
	servers, err := s.serve(ctx, maxServers)
	if err != nil {
		return err
	}
	for round := 1; round <= restarts; round++ {
		wait := s.storm(ctx, servers, true)
		time.Sleep(s.moment(longestStorm))
		if err := db.Stop(); err != nil {
			return err
		}
		time.Sleep(s.moment(longestDown))
		if err := db.Start(); err != nil {
			return err
		}
		s.restarts++
		back := time.Now()
		time.Sleep(s.moment(longestStorm))
		if err := wait(); err != nil {
			return err
		}
		took := time.Since(back).Round(time.Millisecond)
		for _, c := range servers {
			s.mustRun(c)
		}
		fmt.Fprintf(s.log, "restart %d: all answered %s after it; %d acknowledged so far, %d told to try again\n", round, took, s.acknowledged, s.faults)
		fresh, err := s.ledger.serve(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(s.settle(ctx, fresh), fresh.close()); err != nil {
			return err
		}
		if round%verifyEvery == 0 {
			s.verify(ctx, s.ledger)
		}
	}
	for _, c := range servers {
		if err := c.close(); err != nil {
			return err
		}
	}
	return nil
}

// finish compares everything once more, through a server that then ends as it
// should.
func (s *storm) finish(ctx context.Context) error {
	c, err := s.ledger.serve(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.settle(ctx, c), s.recompare(ctx, s.ledger, c), c.close())
}

// moment is a random time up to a bound.
func (s *storm) moment(longest time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(longest)))
}

// serve starts servers, all at once.
func (s *storm) serve(ctx context.Context, n int) ([]*client, error) {
	servers := make([]*client, n)
	err := each(servers, len(servers), func(i int, _ *client) (err error) {
		servers[i], err = s.ledger.serve(ctx)
		return err
	})
	return servers, err
}

// settle compares what was asked since the last comparison.
func (s *storm) settle(ctx context.Context, c *client) error {
	refunds := s.touched
	s.touched = nil
	for _, r := range refunds {
		r.touched = false
	}
	return s.compare(ctx, c, refunds)
}

// storm sends refunds to the servers until they are gone, or until the wait
// that it returns is called; then all calls have ended. away says that the
// database may be away in the meantime.
func (s *storm) storm(ctx context.Context, servers []*client, away bool) (wait func() error) {
	stop := make(chan struct{})
	var callersDone sync.WaitGroup
	failures := make(chan error, len(servers)*callers)
	for _, c := range servers {
		for range callers {
			random := rand.New(rand.NewPCG(s.random.Uint64(), 0))
			callersDone.Go(func() {
				if err := s.caller(ctx, c, random, stop, away); err != nil && !errors.Is(err, errEnded) {
					failures <- err
				}
			})
		}
	}
	return func() error {
		close(stop)
		callersDone.Wait()
		close(failures)
		return <-failures // nil if there is none
	}
}

// caller sends one refund after the other.
func (s *storm) caller(ctx context.Context, c *client, random *rand.Rand, stop <-chan struct{}, away bool) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		a, err := s.refund(ctx, c, s.pick(random), &s.acknowledged, away)
		if err != nil {
			return err
		}
		if !a.ok() {
			time.Sleep(retryPause)
		}
	}
}

// pick returns a new refund, or one that was asked for before.
func (s *storm) pick(random *rand.Rand) *refund {
	s.mu.Lock()
	defer s.mu.Unlock()
	var r *refund
	if n := len(s.refunds); n > 0 && random.IntN(repeatEvery) == 0 {
		back := n
		if random.IntN(2) == 0 {
			back = min(n, recent)
		}
		r = s.refunds[n-1-random.IntN(back)]
	} else {
		cust := s.customers[random.IntN(len(s.customers))]
		r = s.add(cust, fmt.Sprintf("%s-%d", s.name, n), 1+random.Int64N(maxCents))
	}
	if !r.touched {
		r.touched = true
		s.touched = append(s.touched, r)
	}
	return r
}

// add makes a refund that was not asked for yet.
func (b *book) add(cust *customer, key string, cents int64) *refund {
	currency := cust.opening.Currency()
	minor := cents
	if currency.Digits() > centDigits { // the tool takes two decimals of these
		minor *= 10
	}
	r := &refund{key: key, customer: cust, amount: money.FromMinor(minor, currency)}
	b.refunds = append(b.refunds, r)
	b.byKey[key] = r
	return r
}

const centDigits = 2

// each calls f on every item, atOnce of them at a time, and returns an error if
// there is one.
func each[T any](items []T, atOnce int, f func(i int, item T) error) error {
	var working sync.WaitGroup
	next := make(chan int)
	failures := make(chan error, len(items))
	for range min(atOnce, len(items)) {
		working.Go(func() {
			for i := range next {
				if err := f(i, items[i]); err != nil {
					failures <- err
				}
			}
		})
	}
	for i := range items {
		next <- i
	}
	close(next)
	working.Wait()
	close(failures)
	return <-failures // nil if there is none
}
