package committer

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// backend is a database in memory that fails as it is told.
type backend struct {
	mu       sync.Mutex
	records  map[Name]ledger.Record
	outcomes map[Key]ledger.Outcome
	batches  [][]Key // what each transaction that was begun named

	begin   func(n int) error            // before the n-th transaction begins
	commit  func(n int, c Changes) error // before its commit
	after   func(n int) error            // after its commit: the answer is lost
	resolve func() error                 // before keys are looked up
}

func newBackend() *backend {
	return &backend{records: map[Name]ledger.Record{}, outcomes: map[Key]ledger.Outcome{}}
}

func (b *backend) Keeps(k ledger.Kind) bool { return k.Name != "unicorn" }

func (b *backend) Stores(r ledger.Record) bool  { return b.Keeps(r.Ref().Kind) }
func (b *backend) Answers(r ledger.Record) bool { return b.Stores(r) }

func (b *backend) Implied(r ledger.Record) (ledger.Ref, func(ledger.Record) ledger.Record) {
	if v, ok := r.(refunds.Reversal); ok {
		return refunds.RefOf(v.Customer, v.Refund), func(r ledger.Record) ledger.Record {
			refund := r.(refunds.Refund)
			refund.Status = refunds.Reversed
			return refund
		}
	}
	return ledger.Ref{}, nil
}

func (b *backend) Begin(_ context.Context, names []Name, keys []Key) (State, Tx, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.batches)
	b.batches = append(b.batches, keys)
	if b.begin != nil {
		if err := b.begin(n); err != nil {
			return State{}, nil, err
		}
	}
	s := State{map[Name]ledger.Record{}, map[Key]ledger.Outcome{}}
	for _, name := range names {
		if r, there := b.records[name]; there {
			s.Records[name] = r
		}
	}
	for _, k := range keys {
		if o, there := b.outcomes[k]; there {
			s.Outcomes[k] = o
		}
	}
	return s, &tx{b, n}, nil
}

func (b *backend) Outcomes(_ context.Context, keys []Key) (map[Key]ledger.Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.resolve != nil {
		if err := b.resolve(); err != nil {
			return nil, err
		}
	}
	found := map[Key]ledger.Outcome{}
	for _, k := range keys {
		if o, there := b.outcomes[k]; there {
			found[k] = o
		}
	}
	return found, nil
}

type tx struct {
	b *backend
	n int
}

func (t *tx) Commit(_ context.Context, c Changes) error {
	b := t.b
	if b.commit != nil {
		if err := b.commit(t.n, c); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range c.Records {
		b.records[r.Name] = r.After
	}
	for _, e := range c.Entries {
		booked := ledger.Booked{Entry: e}
		b.records[Name{e.Operation().Tenant, booked.Ref()}] = booked
	}
	for _, o := range c.Outcomes {
		b.outcomes[KeyOf(o.Operation)] = o
	}
	if b.after != nil {
		return b.after(t.n)
	}
	return nil
}

func (t *tx) Rollback(context.Context) {}

// ask makes the operation under a key; every attempt has an id of its own.
func ask(key string) operation.Operation {
	attempt++
	return operation.Operation{
		ID: operation.ID{byte(attempt >> 8), byte(attempt)}, Tenant: must(access.ParseTenant("acme")), Principal: "bot", Tool: "test",
		Key: must(operation.ParseKey(key)), At: time.UnixMilli(1_770_000_000_000).UTC(),
	}
}

var attempt int

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var (
	usd   = must(money.ParseCurrency("USD"))
	alice = must(customers.ParseID("CUST-00001"))
	bob   = must(customers.ParseID("CUST-00002"))
)

func open(c customers.ID, cents int64) ledger.Command {
	return customers.Open{
		ID: c, Profile: customers.Profile{Name: "A", Email: "a@example.com"}, Status: customers.Active,
		Opening: money.FromMinor(cents, usd), CreatedAt: time.UnixMilli(0),
	}
}

func refund(c customers.ID, cents int64) ledger.Command {
	return refunds.Trigger{Request: refunds.Request{Customer: c, Amount: money.FromMinor(cents, usd), Reason: must(refunds.ParseReason("Arrived broken."))}}
}

// opened is a backend in which alice and bob have 100.00 each.
func opened(t *testing.T) *backend {
	t.Helper()
	b := newBackend()
	c := New(b, 1)
	defer c.Close()
	for _, id := range []customers.ID{alice, bob} {
		if _, err := c.Do(t.Context(), ask("open-"+id.String()), open(id, 100_00)); err != nil {
			t.Fatal(err)
		}
	}
	b.batches = nil
	return b
}

func (b *backend) balance(c customers.ID) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.records[Name{must(access.ParseTenant("acme")), c.Ref()}].(customers.Account).Balance().Minor()
}

// together runs the commands as one batch, in order: the first transaction is
// held until all wait. It returns what came of each.
func together(t *testing.T, b *backend, ops []operation.Operation, cmds []ledger.Command) []string {
	t.Helper()
	c := New(b, 1)
	defer c.Close()
	hold := make(chan struct{})
	commit := b.commit
	b.commit = func(n int, changes Changes) error {
		if n == 0 {
			<-hold
			return nil
		}
		if commit != nil {
			return commit(n, changes)
		}
		return nil
	}
	results := make([]string, len(cmds))
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := c.Do(t.Context(), ask("hold"), refund(bob, 1)); err != nil {
			t.Error(err)
		}
	})
	waitFor(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.batches) == 1 })
	for i := range cmds {
		all.Go(func() {
			o, err := c.Do(t.Context(), ops[i], cmds[i])
			results[i] = result(o, err)
		})
		waitFor(t, func() bool { return len(c.queues[0]) == i+1 })
	}
	close(hold)
	all.Wait()
	return results
}

func waitFor(t *testing.T, ready func() bool) {
	t.Helper()
	for range 5000 {
		if ready() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("it did not come to that")
}

func result(o ledger.Outcome, err error) string {
	switch f := fault.Of(err); {
	case f != nil:
		return f.Code.String() + "/" + f.Reason
	case err != nil:
		return "error"
	case o.Replayed:
		return "replayed"
	}
	return "done"
}

func keysOf(batches [][]Key) [][]string {
	var all [][]string
	for _, batch := range batches {
		var keys []string
		for _, k := range batch {
			keys = append(keys, k.Key.String())
		}
		all = append(all, keys)
	}
	return all
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

func TestWritesThatWaitAreOneBatch(t *testing.T) {
	b := opened(t)
	same := ask("same")
	got := together(t, b,
		[]operation.Operation{ask("a"), same, ask("same"), ask("same"), ask("too-much"), ask("b")},
		[]ledger.Command{refund(alice, 60_00), refund(alice, 10_00), refund(alice, 10_00), refund(alice, 11_00), refund(alice, 30_01), refund(alice, 30_00)})
	equal(t, got, []string{"done", "done", "replayed", "CONFLICT/operation_key_reused", "POLICY_VIOLATION/balance_exceeded", "done"})
	equal(t, keysOf(b.batches), [][]string{{"hold"}, {"a", "same", "too-much", "b"}})
	equal(t, b.balance(alice), 0)
}

func TestWhatABatchMadeIsSeenInIt(t *testing.T) {
	b := opened(t)
	reverse := refunds.Reverse{Customer: alice, Refund: 2, Reason: must(refunds.ParseReason("The payment failed."))}
	got := together(t, b,
		[]operation.Operation{ask("refund"), ask("reverse"), ask("again"), ask("open"), ask("open-twice"), ask("refund-2")},
		[]ledger.Command{refund(alice, 100_00), reverse, reverse, open(must(customers.ParseID("CUST-00003")), 5), open(must(customers.ParseID("CUST-00003")), 5), refund(alice, 100_00)})
	equal(t, got, []string{"done", "done", "CONFLICT/already_reversed", "done", "CONFLICT/customer_exists", "done"})
	equal(t, len(b.batches), 2)
	if r := b.outcomes[KeyOf(ask("refund"))].Answer.(refunds.Refund); r.Status != refunds.Processed {
		t.Error("the answer of the refund changed with its reversal")
	}
}

func TestNoBatchIsLargerThanTheLimit(t *testing.T) {
	b := opened(t)
	n := 2*MaxBatch + 1
	ops, cmds := make([]operation.Operation, n), make([]ledger.Command, n)
	for i := range n {
		ops[i], cmds[i] = ask(fmt.Sprintf("k%d", i)), refund(alice, 1)
	}
	for _, r := range together(t, b, ops, cmds) {
		if r != "done" {
			t.Fatal(r)
		}
	}
	var sizes []int
	for _, batch := range b.batches {
		sizes = append(sizes, len(batch))
	}
	equal(t, sizes, []int{1, MaxBatch, MaxBatch, 1})
}

func TestOneBadWriteHarmsNoNeighbour(t *testing.T) {
	b := opened(t)
	b.commit = func(_ int, c Changes) error {
		if slices.ContainsFunc(c.Outcomes, func(o ledger.Outcome) bool { return o.Operation.Key.String() == "bad" }) {
			return errors.New("a constraint does not hold")
		}
		return nil
	}
	got := together(t, b,
		[]operation.Operation{ask("a"), ask("bad"), ask("b"), ask("too-much")},
		[]ledger.Command{refund(alice, 1_00), refund(alice, 50_00), refund(alice, 2_00), refund(alice, 98_00)})
	equal(t, got, []string{"done", "error", "done", "POLICY_VIOLATION/balance_exceeded"})
	equal(t, keysOf(b.batches), [][]string{{"hold"}, {"a", "bad", "b", "too-much"}, {"a"}, {"bad"}, {"b"}, {"too-much"}})
	equal(t, b.balance(alice), 97_00)
}

func TestAnotherProcessWasFirst(t *testing.T) {
	b := opened(t)
	b.commit = func(n int, _ Changes) error {
		if n == 1 {
			return fmt.Errorf("%w: unique key", ErrConflict)
		}
		return nil
	}
	got := together(t, b, []operation.Operation{ask("a"), ask("b")}, []ledger.Command{refund(alice, 1_00), refund(bob, 2_00)})
	equal(t, got, []string{"done", "done"})
	equal(t, keysOf(b.batches), [][]string{{"hold"}, {"a", "b"}, {"a", "b"}})

	b = opened(t)
	b.commit = func(int, Changes) error { return ErrConflict }
	c := New(b, 1)
	defer c.Close()
	equal(t, result(c.Do(t.Context(), ask("k"), refund(alice, 1))), "BACKEND_UNAVAILABLE/store_busy")
	equal(t, len(b.batches), Tries)
}

func TestADatabaseThatCanNotBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t)
		down := true
		b.begin = func(n int) error {
			if down {
				return fmt.Errorf("%w: connection refused", ErrUnavailable)
			}
			return nil
		}
		c := New(b, 1)
		defer c.Close()
		_, err := c.Do(t.Context(), ask("k"), refund(alice, 1))
		f := fault.Of(err)
		if f == nil || f.Code != fault.BackendUnavailable || f.Reason != "store_unreachable" || !f.Retryable {
			t.Errorf("got %v", err)
		}
		equal(t, len(b.batches), Tries)

		b.begin = func(n int) error { // it recovers between two tries
			if n < Tries+2 {
				return ErrUnavailable
			}
			return nil
		}
		equal(t, result(c.Do(t.Context(), ask("k"), refund(alice, 1))), "done")
		down = false
	})
}

func TestTheConnectionIsLostAroundCommit(t *testing.T) {
	lost := fmt.Errorf("%w: connection reset", ErrLost)
	ops := func() []operation.Operation { return []operation.Operation{ask("a"), ask("too-much"), ask("b")} }
	cmds := []ledger.Command{refund(alice, 90_00), refund(alice, 11_00), refund(alice, 1_00)}

	t.Run("it had happened: each key's outcome is found, and is no replay", func(t *testing.T) {
		b := opened(t)
		b.after = func(n int) error {
			if n == 1 {
				return lost
			}
			return nil
		}
		equal(t, together(t, b, ops(), cmds), []string{"done", "POLICY_VIOLATION/balance_exceeded", "done"})
		equal(t, b.balance(alice), 9_00)
		// What was refused left no outcome, so it is decided again.
		equal(t, keysOf(b.batches), [][]string{{"hold"}, {"a", "too-much", "b"}, {"too-much"}})
	})
	t.Run("it had not happened: all of it is tried again, what was refused too", func(t *testing.T) {
		b := opened(t)
		b.commit = func(n int, _ Changes) error {
			if n == 1 {
				return lost
			}
			return nil
		}
		equal(t, together(t, b, ops(), cmds), []string{"done", "POLICY_VIOLATION/balance_exceeded", "done"})
		equal(t, b.balance(alice), 9_00)
		equal(t, len(b.batches), 3)
	})
	t.Run("nobody answers: the outcome is unknown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := opened(t)
			b.commit = func(int, Changes) error { return lost }
			b.resolve = func() error { return ErrUnavailable }
			c := New(b, 1)
			defer c.Close()
			began := time.Now()
			_, err := c.Do(t.Context(), ask("k"), refund(alice, 1))
			if f := fault.Of(err); f == nil || f.Code != fault.OutcomeUnknown || f.Retryable {
				t.Errorf("got %v", err)
			}
			if d := time.Since(began); d > ResolveWithin+time.Second {
				t.Errorf("it took %s", d)
			}
		})
	})
	t.Run("it is lost again and again: the outcome is unknown", func(t *testing.T) {
		b := opened(t)
		b.commit = func(int, Changes) error { return lost }
		c := New(b, 1)
		defer c.Close()
		equal(t, result(c.Do(t.Context(), ask("k"), refund(alice, 1))), "OUTCOME_UNKNOWN/outcome_unknown")
		equal(t, len(b.batches), MaxLosses+1)
	})
	t.Run("lost once and then unreachable: still unknown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := opened(t)
			b.commit = func(int, Changes) error { return lost }
			b.begin = func(n int) error {
				if n > 0 {
					return ErrUnavailable
				}
				return nil
			}
			c := New(b, 1)
			defer c.Close()
			equal(t, result(c.Do(t.Context(), ask("k"), refund(alice, 1))), "OUTCOME_UNKNOWN/outcome_unknown")
		})
	})
	t.Run("another request had the key meanwhile: it conflicts", func(t *testing.T) {
		b := opened(t)
		other := ask("k")
		b.commit = func(n int, _ Changes) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.outcomes[KeyOf(other)] = ledger.Outcome{Operation: other, Command: "other"}
			return lost
		}
		c := New(b, 1)
		defer c.Close()
		equal(t, result(c.Do(t.Context(), ask("k"), refund(alice, 1))), "CONFLICT/operation_key_reused")
	})
}

func TestTheCallEnds(t *testing.T) {
	b := opened(t)
	hold := make(chan struct{})
	b.commit = func(int, Changes) error { <-hold; return nil }
	c := New(b, 1)
	ended, end := context.WithCancel(t.Context())
	results := make(chan string, 2)
	do := func(key string) {
		go func() { results <- result(c.Do(ended, ask(key), refund(alice, 1_00))) }()
	}
	do("runs")
	waitFor(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.batches) == 1 })
	do("waits")
	waitFor(t, func() bool { return len(c.queues[0]) == 1 })
	end()
	got := []string{<-results, <-results}
	slices.Sort(got)
	equal(t, got, []string{"BACKEND_UNAVAILABLE/call_ended", "OUTCOME_UNKNOWN/outcome_unknown"})
	close(hold)
	c.Close()
	equal(t, b.balance(alice), 99_00) // the one that ran ran on, the other one did not begin
	if _, there := b.outcomes[KeyOf(ask("waits"))]; there {
		t.Error("a withdrawn write was made")
	}
	equal(t, result(c.Do(ended, ask("late"), refund(alice, 1))), "BACKEND_UNAVAILABLE/store_closed")
}

func TestAFullQueueIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t)
		c := &Committer{backend: b, queues: []chan *write{make(chan *write)}, seed: maphash.MakeSeed()} // nobody works
		began := time.Now()
		equal(t, result(c.Do(t.Context(), ask("k"), refund(alice, 1))), "BACKEND_UNAVAILABLE/store_busy")
		equal(t, time.Since(began), QueueWait)
	})
}

// A write that waited in the queue until its call was nearly over is not told
// that the database can not be reached: it was never asked.
func TestTheTimeOfACallPassesInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t)
		b.commit = func(int, Changes) error { time.Sleep(time.Second); return nil }
		c := New(b, 1)
		defer c.Close()
		go func() { _, _ = c.Do(t.Context(), ask("slow"), refund(bob, 1)) }()
		synctest.Wait()
		ctx, stop := context.WithTimeout(t.Context(), time.Second+50*time.Millisecond)
		defer stop()
		_, err := c.Do(ctx, ask("k"), refund(alice, 1))
		equal(t, result(ledger.Outcome{}, err), "BACKEND_UNAVAILABLE/store_busy")
		if f := fault.Of(err); f == nil || !f.Retryable {
			t.Errorf("got %v", err)
		}
		equal(t, keysOf(b.batches), [][]string{{"slow"}})
	})
}

func TestCloseFinishesWhatWaits(t *testing.T) {
	b := opened(t)
	hold := make(chan struct{})
	b.commit = func(n int, _ Changes) error {
		if n == 0 {
			<-hold
		}
		return nil
	}
	c := New(b, 1)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			if _, err := c.Do(t.Context(), operation.Operation{
				ID: operation.ID{99, byte(i)}, Tenant: must(access.ParseTenant("acme")), Principal: "bot",
				Key: must(operation.ParseKey(fmt.Sprintf("c%d", i))), At: time.UnixMilli(1).UTC(),
			}, refund(alice, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.batches) == 1 && len(b.batches[0])+len(c.queues[0]) == 10
	})
	all.Go(c.Close)
	close(hold)
	all.Wait()
	equal(t, b.balance(alice), 99_90)
	c.Close() // twice is fine
}

// unicorns reads or makes a record that the backend has no place for.
type unicorns struct {
	ledger.Command
	reads, makes bool
}

type unicorn struct{}

func (unicorn) Ref() ledger.Ref { return ledger.Ref{Kind: ledger.Kind{Name: "unicorn"}, ID: "1"} }

func (u unicorns) Reads() []ledger.Ref {
	if u.reads {
		return append(u.Command.Reads(), unicorn{}.Ref())
	}
	return u.Command.Reads()
}

func (u unicorns) Decide(v ledger.View) (ledger.Change, error) {
	c, err := u.Command.Decide(v)
	if u.makes {
		c.Answer = unicorn{}
	}
	return c, err
}

func TestNoPlaceForAKind(t *testing.T) {
	reads, makes := unicorns{refund(alice, 1), true, false}, unicorns{refund(alice, 1), false, true}
	b := opened(t)
	got := together(t, b, []operation.Operation{ask("a"), ask("u"), ask("b")}, []ledger.Command{refund(alice, 1_00), makes, refund(alice, 1_00)})
	equal(t, got, []string{"done", "error", "done"})
	c := New(b, 1)
	defer c.Close()
	equal(t, result(c.Do(t.Context(), ask("r"), reads)), "error")
	equal(t, b.balance(alice), 98_00)
}
