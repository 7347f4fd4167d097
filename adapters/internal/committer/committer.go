// Package committer is group commit: the writes that wait are decided together
// and committed together, so that a busy account does not collapse and many
// writes share one sync of the disk. It knows nothing of SQL; a [Backend] is
// what it commits to.
//
// A worker takes what is waiting, at most [MaxBatch], without a timer: the first
// write of an idle ledger goes alone and at once, and while one batch commits
// the next one gathers; those who were just answered get a moment to join it. It
// loads what the batch names, decides in order of arrival, each write on what the
// ones before it left, commits, and answers only then. A refusal takes part in
// nothing.
//
// What can go wrong, and what then happens:
//
//   - the write waits until the time of its call is nearly over: nothing
//     happened; BACKEND_UNAVAILABLE
//   - the database can not be reached: nothing happened; tried again a few
//     times, then BACKEND_UNAVAILABLE
//   - another process was first (a deadlock, a key or an account that is there
//     by now): the batch is decided again, then each write of it alone
//   - the database refuses the batch: each write is tried alone, so that one bad
//     write harms no neighbour
//   - the connection is lost around COMMIT: each key is looked up; found, that is
//     the outcome; not found, the write is tried again under its key, where the
//     unique key decides; still no answer, OUTCOME_UNKNOWN
package committer

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// Limits.
const (
	// MaxBatch is how many writes are committed together.
	MaxBatch = 512
	// QueueLength is how many writes may wait for one worker.
	QueueLength = 4096
	// GatherPause is how long a worker waits for one more write of those who were
	// just answered: a small part of what a commit takes.
	GatherPause = 50 * time.Microsecond
	// gatherAfter is how long after its answers a worker expects their callers.
	gatherAfter = time.Millisecond
	// QueueWait bounds how long a write waits for a place in a full queue.
	QueueWait = 10 * time.Second
	// BatchWithin bounds one try of a batch, waiting for locks included; a batch
	// may hold an import of many thousand accounts.
	BatchWithin = 60 * time.Second
	// Tries is how often a batch is begun while the database can not be reached
	// or other processes are first. A write is not begun again, nor does a batch
	// wait, when the time of its call is nearly over: nothing has happened, and
	// there is time left to say so.
	Tries = 4
	// MaxLosses is how often the connection may be lost around the COMMIT of one
	// write before its outcome is called unknown.
	MaxLosses = 3
	// ResolveWithin bounds the look-up of keys after such a loss.
	ResolveWithin = 10 * time.Second
	// firstPause is the pause after the first try that did not reach the
	// database; each one after it is four times as long, at most maxPause.
	firstPause = 10 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// What the errors of a backend mean. An error that is none of these says that
// the database refused the batch; nothing happened.
var (
	// ErrUnavailable: the database could not be asked; nothing happened.
	ErrUnavailable = errors.New("the database can not be reached")
	// ErrConflict: another process was first; nothing happened, and the same
	// writes decided again may succeed.
	ErrConflict = errors.New("another process was first")
	// ErrLost: the connection was lost around COMMIT; it may have happened.
	ErrLost = errors.New("the answer of the database was lost")
)

// errWaited: the time of a call was nearly over before its write was begun.
var errWaited = errors.New("the time of the call passed while the write waited")

// Name is one record of one tenant.
type Name struct {
	Tenant access.Tenant
	Ref    ledger.Ref
}

// Key is an operation key in its scope.
type Key struct {
	Tenant    access.Tenant
	Principal string
	Key       operation.Key
}

// KeyOf returns the key of op in its scope.
func KeyOf(op operation.Operation) Key { return Key{op.Tenant, op.Principal, op.Key} }

// State is what a batch stands on. What is not there is not in the maps.
type State struct {
	Records  map[Name]ledger.Record
	Outcomes map[Key]ledger.Outcome
}

// Changed is a record that a batch gave a new state.
type Changed struct {
	Name
	Before ledger.Record // as loaded; nil if there was none, or if no write named it
	After  ledger.Record // the last state that the batch gave it
}

// Changes is all that a batch writes.
type Changes struct {
	Records  []Changed // each record once
	Entries  []journal.Entry
	Outcomes []ledger.Outcome
}

// Backend is a database that holds the ledger. Methods may be called at once.
type Backend interface {
	// Keeps reports whether there is a place for records of the kind.
	Keeps(ledger.Kind) bool
	// Stores reports whether a decision may make or change the record.
	Stores(ledger.Record) bool
	// Answers reports whether a decision may answer with the record, which then
	// stays as it was.
	Answers(ledger.Record) bool
	// Implied says which other record r changes by being there, and how; set is
	// nil if none. That record is not written: the backend reads it so.
	Implied(r ledger.Record) (ref ledger.Ref, set func(ledger.Record) ledger.Record)
	// Begin begins a transaction and returns the records named, locked until its
	// end, and the outcomes under the keys. If it fails, there is none.
	Begin(ctx context.Context, names []Name, keys []Key) (State, Tx, error)
	// Outcomes returns the committed outcomes under the keys, over a connection
	// that works.
	Outcomes(ctx context.Context, keys []Key) (map[Key]ledger.Outcome, error)
}

// Tx is a transaction. It ends with the first call.
type Tx interface {
	// Commit writes the changes and commits them, durably.
	Commit(ctx context.Context, c Changes) error
	// Rollback ends it without a trace.
	Rollback(ctx context.Context)
}

// Committer commits writes in groups. Make one with [New].
type Committer struct {
	backend Backend
	queues  []chan *write
	seed    maphash.Seed
	workers sync.WaitGroup

	mu     sync.RWMutex // held by a write while it queues
	closed bool

	running running
}

// New starts a committer with that many workers, each with its own queue. The
// first record that a write names decides the queue, so that two workers seldom
// wait for the same lock.
func New(b Backend, workers int) *Committer {
	c := &Committer{backend: b, queues: make([]chan *write, workers), seed: maphash.MakeSeed()}
	for i := range c.queues {
		q := make(chan *write, QueueLength)
		c.queues[i] = q
		c.workers.Go(func() { c.work(q) })
	}
	return c
}

// Close refuses new writes, finishes those that wait, and returns.
func (c *Committer) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		for _, q := range c.queues {
			close(q)
		}
	}
	c.mu.Unlock()
	c.workers.Wait()
}

// write is one write on its way.
type write struct {
	op          operation.Operation
	cmd         ledger.Command
	facts       []operation.Fact
	fingerprint operation.Fingerprint
	reads       []ledger.Ref

	until  time.Time   // it is not begun later; zero for no bound
	taken  atomic.Bool // by a worker, or by the caller who withdraws it
	losses int         // how often the connection was lost around its COMMIT
	answer answer      // not given before the commit
	done   chan answer
	leave  func() // tells that nothing will come of it any more; once, before it is answered
}

// end answers the write.
func (w *write) end(a answer) {
	w.leave()
	w.done <- a
}

type answer struct {
	outcome ledger.Outcome
	err     error
}

// Do implements ports.Ledger.
func (c *Committer) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	if err := ledger.Check(op); err != nil {
		return ledger.Outcome{}, err
	}
	w := &write{op: op, cmd: cmd, facts: cmd.Facts(), reads: cmd.Reads(), done: make(chan answer, 1)}
	w.fingerprint = operation.FingerprintOf(cmd.Name(), w.facts)
	if end, bound := ctx.Deadline(); bound {
		w.until = end.Add(-time.Until(end) / 10)
	}
	for _, ref := range w.reads {
		if !c.backend.Keeps(ref.Kind) {
			return ledger.Outcome{}, fmt.Errorf("committer: no place for records of the kind %s", ref.Kind.Name)
		}
	}
	w.leave = c.running.enter(KeyOf(op))
	if err := c.queue(ctx, w); err != nil {
		w.leave()
		return ledger.Outcome{}, err
	}
	select {
	case a := <-w.done:
		return a.outcome, a.err
	case <-ctx.Done():
	}
	if w.taken.CompareAndSwap(false, true) {
		w.leave()
		return ledger.Outcome{}, unavailable("call_ended", "The call ended while the write waited. Nothing was done. Try again later.", ctx.Err())
	}
	select {
	case a := <-w.done: // both were ready
		return a.outcome, a.err
	default:
		return ledger.Outcome{}, unknown(op.Key, ctx.Err())
	}
}

// Settled waits until no write under the key is on its way, so that what is under
// it then is all that comes of those that had begun. It fails when the call ends.
func (c *Committer) Settled(ctx context.Context, k Key) error {
	for {
		ended := c.running.under(k)
		if ended == nil {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return unavailable("write_running", "A write under this operation key is still being committed. Look it up again later.", ctx.Err())
		}
	}
}

// queue hands w to a worker.
func (c *Committer) queue(ctx context.Context, w *write) error {
	var h uint64
	if len(w.reads) > 0 {
		h = maphash.String(c.seed, w.reads[0].ID)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return unavailable("store_closed", "The ledger is shutting down. Nothing was done. Try again later.", nil)
	}
	if err := ctx.Err(); err != nil {
		return unavailable("call_ended", "The call ended before the write began. Nothing was done. Try again later.", err)
	}
	q := c.queues[h%uint64(len(c.queues))]
	select {
	case q <- w:
		return nil
	default:
	}
	full := time.NewTimer(QueueWait)
	defer full.Stop()
	select {
	case q <- w:
		return nil
	case <-full.C:
		return unavailable("store_busy", "Too many writes are waiting for the ledger. Nothing was done. Try again later.", nil)
	case <-ctx.Done():
		return unavailable("call_ended", "The call ended before the write began. Nothing was done. Try again later.", ctx.Err())
	}
}

// work commits what comes through q until it is closed and empty.
func (c *Committer) work(q chan *write) {
	batch := make([]*write, 0, MaxBatch)
	var answered time.Time
	for w := range q {
		more := len(batch) - 1
		batch = take(batch[:0], w)
		gather(q, more, answered)
	fill:
		for len(batch) < MaxBatch {
			select {
			case w, open := <-q:
				if !open {
					break fill
				}
				batch = take(batch, w)
			default:
				break fill
			}
		}
		if len(batch) > 0 {
			c.commit(batch)
			answered = time.Now()
		}
	}
}

// gather lets those who were answered a moment ago queue their next write, so
// that all of them share the next commit and not two groups take turns: it yields
// until so many more wait, or none came for GatherPause. Who is alone, or comes to
// an idle ledger, waits for nobody.
func gather(q chan *write, more int, answered time.Time) {
	idle := time.Since(answered) > gatherAfter
	runtime.Gosched()
	if idle {
		return
	}
	since := time.Now()
	for have := len(q); have < more && time.Since(since) < GatherPause; {
		runtime.Gosched()
		if n := len(q); n > have {
			have, since = n, time.Now()
		}
	}
}

// take adds w to the batch unless its caller has withdrawn it.
func take(batch []*write, w *write) []*write {
	if w.taken.CompareAndSwap(false, true) {
		return append(batch, w)
	}
	return batch
}

// commit commits the batch, however many tries it takes, and answers each write.
func (c *Committer) commit(batch []*write) {
	err := errWaited
	for n := 0; n < Tries; n++ {
		all := len(batch)
		if batch = inTime(batch, err); len(batch) == 0 {
			return
		}
		if n > 0 && len(batch) < all {
			n-- // the last try ended for those who are gone, and is not held against the others
		}
		err = c.try(batch)
		switch {
		case err == nil:
			for _, w := range batch {
				w.end(w.answer)
			}
			return
		case errors.Is(err, ErrLost):
			c.resolve(batch, err)
			return
		case errors.Is(err, ErrUnavailable):
			// A pooled connection may have been dead: the next one may live.
			pause(n)
		case errors.Is(err, ErrConflict) && (n == 0 || len(batch) == 1):
			// Decide again, on what the other process left.
		case len(batch) > 1:
			for i := range batch {
				c.commit(batch[i : i+1])
			}
			return
		default:
			fail(batch, err)
			return
		}
	}
	fail(batch, err)
}

// inTime fails the writes that can not be begun again in the time of their call,
// and returns the others.
func inTime(batch []*write, err error) []*write {
	now := time.Now()
	left := make([]*write, 0, len(batch))
	for _, w := range batch {
		if w.until.IsZero() || now.Before(w.until) {
			left = append(left, w)
		} else {
			fail([]*write{w}, err)
		}
	}
	return left
}

// pause waits after the n-th try, counted from 0.
func pause(n int) {
	d := maxPause
	if n < 3 {
		d = firstPause << (2 * n)
	}
	time.Sleep(d)
}

// try runs the batch once.
func (c *Committer) try(batch []*write) error {
	ctx, stop := context.WithTimeout(context.Background(), BatchWithin)
	defer stop()
	names, keys := named(batch)
	state, tx, err := c.begin(ctx, batch, names, keys)
	if err != nil {
		return err
	}
	g := ground{backend: c.backend, records: make(map[Name]*slot, len(names)), outcomes: state.Outcomes}
	if g.outcomes == nil {
		g.outcomes = make(map[Key]ledger.Outcome, len(batch))
	}
	for _, n := range names {
		g.records[n] = &slot{before: state.Records[n], now: state.Records[n]}
		g.readsEntries = g.readsEntries || n.Ref.Kind == ledger.EntryKind
	}
	for _, w := range batch {
		w.answer.outcome, w.answer.err = g.decide(w)
	}
	if len(g.done) == 0 {
		tx.Rollback(ctx)
		return nil
	}
	return tx.Commit(ctx, g.changes())
}

// begin begins the transaction of a batch. It waits no longer than until the
// first of its writes has to be answered.
func (c *Committer) begin(ctx context.Context, batch []*write, names []Name, keys []Key) (State, Tx, error) {
	var first time.Time
	for _, w := range batch {
		if !w.until.IsZero() && (first.IsZero() || w.until.Before(first)) {
			first = w.until
		}
	}
	if !first.IsZero() {
		bound, stop := context.WithDeadline(ctx, first)
		defer stop()
		ctx = bound
	}
	return c.backend.Begin(ctx, names, keys)
}

// named returns the records and the keys that the batch names, each once.
func named(batch []*write) ([]Name, []Key) {
	names := make([]Name, 0, len(batch))
	keys := make([]Key, 0, len(batch))
	seenNames := make(map[Name]bool, len(batch))
	seenKeys := make(map[Key]bool, len(batch))
	for _, w := range batch {
		if k := KeyOf(w.op); !seenKeys[k] {
			seenKeys[k] = true
			keys = append(keys, k)
		}
		for _, ref := range w.reads {
			if n := (Name{w.op.Tenant, ref}); !seenNames[n] {
				seenNames[n] = true
				names = append(names, n)
			}
		}
	}
	return names, keys
}

// ground is what the next write of a batch is decided on.
type ground struct {
	backend  Backend
	records  map[Name]*slot
	outcomes map[Key]ledger.Outcome
	// readsEntries is true if a write of the batch names an entry.
	readsEntries bool

	changed []Name // in order of their first change
	entries []journal.Entry
	done    []ledger.Outcome
}

type slot struct {
	before, now ledger.Record
	changed     bool
}

// decide decides w and keeps what it decided for those after it.
func (g *ground) decide(w *write) (ledger.Outcome, error) {
	key := KeyOf(w.op)
	if o, there := g.outcomes[key]; there {
		return w.found(o)
	}
	view := ledger.NewView(w.op, len(w.reads))
	view.Facts = w.facts
	for _, ref := range w.reads {
		view.Put(ref, g.records[Name{w.op.Tenant, ref}].now)
	}
	change, err := ledger.Decide(w.cmd, view)
	if err != nil {
		return ledger.Outcome{}, err
	}
	for _, r := range change.Put {
		if !g.backend.Stores(r) {
			return ledger.Outcome{}, noPlace(r)
		}
	}
	if !g.backend.Answers(change.Answer) {
		return ledger.Outcome{}, noPlace(change.Answer)
	}
	for _, r := range change.Put {
		g.put(Name{w.op.Tenant, r.Ref()}, r)
	}
	// An answer that the command did not name is a record that it made: a refund
	// is numbered by the decision.
	if ref := change.Answer.Ref(); !slices.Contains(w.reads, ref) {
		g.put(Name{w.op.Tenant, ref}, change.Answer)
	}
	o := ledger.Outcome{Operation: w.op, Command: w.cmd.Name(), Fingerprint: w.fingerprint, Answer: change.Answer}
	if g.readsEntries {
		for _, e := range change.Entries {
			booked := ledger.Booked{Entry: e}
			if s := g.records[Name{w.op.Tenant, booked.Ref()}]; s != nil {
				s.now = booked
			}
		}
	}
	g.entries = append(g.entries, change.Entries...)
	g.done = append(g.done, o)
	g.outcomes[key] = o
	return o, nil
}

func noPlace(r ledger.Record) error {
	return fmt.Errorf("committer: no place for the %T of the kind %s", r, r.Ref().Kind.Name)
}

func (g *ground) put(n Name, r ledger.Record) {
	s := g.records[n]
	if s == nil {
		s = &slot{}
		g.records[n] = s
	}
	if !s.changed {
		s.changed = true
		g.changed = append(g.changed, n)
	}
	s.now = r
	if ref, set := g.backend.Implied(r); set != nil {
		if other := g.records[Name{n.Tenant, ref}]; other != nil && other.now != nil {
			other.now = set(other.now)
		}
	}
}

func (g *ground) changes() Changes {
	c := Changes{Records: make([]Changed, len(g.changed)), Entries: g.entries, Outcomes: g.done}
	for i, n := range g.changed {
		c.Records[i] = Changed{n, g.records[n].before, g.records[n].now}
	}
	return c
}

// found is what w gets when there is an outcome under its key. One that an
// earlier try of w made, whose answer was lost, is no replay.
func (w *write) found(o ledger.Outcome) (ledger.Outcome, error) {
	o, err := o.Replay(w.cmd.Name(), w.fingerprint)
	if err == nil && w.losses > 0 && o.Operation.ID == w.op.ID {
		o.Replayed = false
	}
	return o, err
}

// resolve finds out what became of a batch whose COMMIT was not answered. The
// refused writes of the batch are decided again too: what refused them may not
// have been committed.
func (c *Committer) resolve(batch []*write, lost error) {
	keys := make([]Key, len(batch))
	for i, w := range batch {
		w.losses++
		keys[i] = KeyOf(w.op)
	}
	ctx, stop := context.WithTimeout(context.Background(), ResolveWithin)
	defer stop()
	for n := 0; ; n++ {
		found, err := c.backend.Outcomes(ctx, keys)
		if err == nil {
			c.settle(batch, found, lost)
			return
		}
		if pause(n); ctx.Err() != nil {
			fail(batch, errors.Join(lost, err))
			return
		}
	}
}

// settle answers the writes whose outcome was found and tries the others again.
func (c *Committer) settle(batch []*write, found map[Key]ledger.Outcome, lost error) {
	var again []*write
	for _, w := range batch {
		o, there := found[KeyOf(w.op)]
		switch {
		case there:
			w.answer.outcome, w.answer.err = w.found(o)
			w.end(w.answer)
		case w.losses > MaxLosses:
			fail([]*write{w}, lost)
		default:
			again = append(again, w)
		}
	}
	if len(again) > 0 {
		c.commit(again)
	}
}

// fail answers every write of the batch with what err means to its caller.
func fail(batch []*write, err error) {
	for _, w := range batch {
		switch {
		case w.losses > 0:
			w.end(answer{err: unknown(w.op.Key, err)})
		case errors.Is(err, errWaited):
			w.end(answer{err: unavailable("store_busy", "Other writes were first for as long as the call could wait. Nothing was done. Try again later.", err)})
		case errors.Is(err, ErrUnavailable):
			w.end(answer{err: unavailable("store_unreachable", "The ledger's database can not be reached or written to. Nothing was done. Try again later.", err)})
		case errors.Is(err, ErrConflict):
			w.end(answer{err: unavailable("store_busy", "Other writes to the same records were first. Nothing was done. Try again.", err)})
		default:
			w.end(answer{err: err})
		}
	}
}

// unavailable is the fault for a write that did not happen. The cause stays in
// the chain for the log.
func unavailable(reason, message string, cause error) error {
	return because(fault.New(fault.BackendUnavailable, reason, "%s", message), cause)
}

// unknown is the fault for a write that may have happened. Whether a repeat is
// safe depends on who made the key, so the store says no; the application, which
// knows, may say yes.
func unknown(key operation.Key, cause error) error {
	return because(fault.New(fault.OutcomeUnknown, "outcome_unknown",
		"It is not known whether the write under the key %s happened. Do not repeat it under another key. Look the key up.", key), cause)
}

func because(f *fault.Error, cause error) error {
	if cause == nil {
		return f
	}
	return fmt.Errorf("%w (%w)", f, cause)
}
