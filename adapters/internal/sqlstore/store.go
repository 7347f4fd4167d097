// Package sqlstore is what the two SQL adapters share: which tables there are,
// how a record becomes rows and rows a record, and which statements one commit
// and one page need. An adapter adds its [Dialect], its [DB] and its schema.
//
// Each subject has one file. Where to look for a query: the accounts in
// customers.go, the refunds in refunds.go, entries and postings in journal.go,
// operation keys and their outcomes in operations.go; the INSERTs and UPDATEs
// follow from the tables declared there, by the adapter's Dialect.Write.
package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// Store is a ledger in a SQL database. Make one with [New].
type Store struct {
	db        DB
	dialect   Dialect
	codecs    []codec // in order of kind, which is the order of locks
	accounts  *accountCodec
	entries   *entryCodec
	outcomes  *outcomeCodec
	vendors   *vendorCodec
	receipts  *receiptCodec
	committer *committer.Committer
}

// codec keeps the records of one kind.
type codec interface {
	kind() ledger.Kind
	// stores reports whether a decision may make or change the record r.
	stores(r ledger.Record) bool
	// load makes the steps that read the records at refs, and what to do after
	// them. It gives each record that is there to put, by its place in refs.
	load(refs []committer.Name, lock bool, put func(i int, r ledger.Record)) (steps []Step, then func() error)
	// write adds the rows that make the record in the database the one after.
	write(w *writes, c committer.Changed)
	// answer says which record r is and in which state, and adds the rows that
	// keep of r, as the answer under o's key, what the record may lose later.
	answer(w *writes, o operation.Operation, r ledger.Record) answerRef
	// answers makes the steps that read the answers as they were given, and what
	// to do after them. It sets answer.record.
	answers(kept []*kept) (steps []Step, then func() error)
}

// New makes a store of an open database, whose writes go through that many
// workers.
func New(db DB, d Dialect, workers int) *Store {
	s := &Store{db: db, dialect: d, accounts: newAccountCodec(d), entries: newEntryCodec(d), outcomes: newOutcomeCodec(d),
		vendors: newVendorCodec(d), receipts: newReceiptCodec(d)}
	// In this order records are read and locked. Accounts and vendors come first:
	// who holds a vendor's lock reads what belongs to it as the one before left
	// it, also what was not there to be locked.
	s.codecs = []codec{s.accounts, s.vendors, newAdjustmentCodec(d), newDecisionCodec(d), s.entries, s.receipts, newImportCodec(d), newInvoiceCodec(d),
		newClaimCodec(d), newOrderCodec(d), newRefundCodec(d), newReversalCodec(d)}
	s.committer = committer.New(s, workers)
	return s
}

// Close finishes the writes that wait and refuses new ones. The database is the
// caller's to close, after that.
func (s *Store) Close() { s.committer.Close() }

func (s *Store) codec(kind string) codec {
	for _, c := range s.codecs {
		if c.kind().Name == kind {
			return c
		}
	}
	return nil
}

// Keeps implements committer.Backend.
func (s *Store) Keeps(k ledger.Kind) bool { return s.codec(k.Name) != nil }

// Stores implements committer.Backend.
func (s *Store) Stores(r ledger.Record) bool { return s.codecOf(r) != nil }

// Answers implements committer.Backend.
func (s *Store) Answers(r ledger.Record) bool {
	c, ok := s.codecOf(r).(interface{ answerable() bool })
	return s.Stores(r) && (!ok || c.answerable())
}

// codecOf returns the codec that stores r, or nil.
func (s *Store) codecOf(r ledger.Record) codec {
	for _, c := range s.codecs {
		if c.stores(r) {
			return c
		}
	}
	return nil
}

// Implied implements committer.Backend: a reversal makes its refund reversed.
func (s *Store) Implied(r ledger.Record) (ledger.Ref, func(ledger.Record) ledger.Record) {
	v, ok := r.(refunds.Reversal)
	if !ok {
		return ledger.Ref{}, nil
	}
	return refunds.RefOf(v.Customer, v.Refund), func(r ledger.Record) ledger.Record {
		refund := r.(refunds.Refund)
		refund.Status = refunds.Reversed
		return refund
	}
}

// Do implements ports.Ledger.
func (s *Store) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	return s.committer.Do(ctx, op, cmd)
}

// Load implements ports.Ledger.
func (s *Store) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	v := ledger.NewView(operation.Operation{Tenant: t}, len(refs))
	names := make([]committer.Name, 0, len(refs))
	keys := make([]committer.Key, 0, 1)
	for _, ref := range refs {
		v.Put(ref, nil)
		switch {
		case !storable(ref.ID):
		case ref.Kind == ledger.OutcomeKind:
			principal, text, _ := strings.Cut(ref.ID, "/")
			if key, err := operation.ParseKey(text); err == nil {
				keys = append(keys, committer.Key{Tenant: t, Principal: principal, Key: key})
			}
		case s.Keeps(ref.Kind):
			names = append(names, committer.Name{Tenant: t, Ref: ref})
		default:
			return ledger.View{}, fmt.Errorf("sqlstore: no place for records of the kind %s", ref.Kind.Name)
		}
	}
	for _, k := range keys {
		if err := s.committer.Settled(ctx, k); err != nil {
			return ledger.View{}, err
		}
	}
	steps, then := s.load(names, false, func(n committer.Name, r ledger.Record) { v.Put(n.Ref, r) })
	if err := s.read(ctx, then, steps...); err != nil {
		return ledger.View{}, err
	}
	outcomes, err := s.loadOutcomes(ctx, s.read, keys)
	if err != nil {
		return ledger.View{}, err
	}
	for k, o := range outcomes {
		v.Put(ledger.OutcomeRef(k.Principal, k.Key), o)
	}
	return v, nil
}

// storable reports whether a database can hold the text of an id; what it can
// not hold is not there.
func storable(id string) bool { return utf8.ValidString(id) && strings.IndexByte(id, 0) < 0 }

// load makes the steps that read the records named.
func (s *Store) load(names []committer.Name, lock bool, put func(committer.Name, ledger.Record)) ([]Step, func() error) {
	var steps []Step
	var thens []func() error
	for _, c := range s.codecs {
		var refs []committer.Name
		for _, n := range names {
			if n.Ref.Kind.Name == c.kind().Name {
				refs = append(refs, n)
			}
		}
		if len(refs) == 0 {
			continue
		}
		more, then := c.load(refs, lock, func(i int, r ledger.Record) { put(refs[i], r) })
		steps, thens = append(steps, more...), append(thens, then)
	}
	return steps, func() error { return inOrder(thens) }
}

// inOrder calls each function until one fails.
func inOrder(thens []func() error) error {
	for _, then := range thens {
		if err := then(); err != nil {
			return err
		}
	}
	return nil
}

// run runs steps in one round trip, and then what comes after them.
type run func(ctx context.Context, then func() error, steps ...Step) error

// loadOutcomes reads the outcomes under keys: their operations, then the
// answers, kind by kind. Keys are seldom known, so most often that is one
// round trip that gives nothing.
func (s *Store) loadOutcomes(ctx context.Context, run run, keys []committer.Key) (map[committer.Key]ledger.Outcome, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	found := make([]*kept, 0)
	if err := run(ctx, nil, s.outcomes.find(keys, &found)); err != nil {
		return nil, err
	}
	return s.loadAnswers(ctx, run, found)
}

// loadAnswers completes the outcomes found.
func (s *Store) loadAnswers(ctx context.Context, run run, found []*kept) (map[committer.Key]ledger.Outcome, error) {
	outcomes := make(map[committer.Key]ledger.Outcome, len(found))
	if len(found) == 0 {
		return outcomes, nil
	}
	var steps []Step
	var thens []func() error
	for _, c := range s.codecs {
		var mine []*kept
		for _, k := range found {
			if k.answer.kind == c.kind().Name {
				mine = append(mine, k)
			}
		}
		if len(mine) > 0 {
			more, then := c.answers(mine)
			steps, thens = append(steps, more...), append(thens, then)
		}
	}
	if err := run(ctx, func() error { return inOrder(thens) }, steps...); err != nil {
		return nil, err
	}
	for _, k := range found {
		if k.outcome.Answer == nil {
			return nil, unreadable("the answer of an operation is gone: %s %s", k.answer.kind, k.answer.id)
		}
		outcomes[committer.KeyOf(k.outcome.Operation)] = k.outcome
	}
	return outcomes, nil
}

// read runs steps outside of any write.
func (s *Store) read(ctx context.Context, then func() error, steps ...Step) error {
	if len(steps) == 0 {
		return nil
	}
	steps = slices.Clone(steps)
	for i := range steps {
		row := steps[i].Row
		steps[i].Row = func(r Row) error { return row(readable{r}) }
	}
	err := s.db.Read(ctx, steps...)
	switch {
	case err == nil && then != nil:
		return then()
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w (%w)", fault.New(fault.BackendUnavailable, "call_ended", "The call ended before the ledger answered. Try again later."), ctx.Err())
	case s.db.Meaning(err) != nil:
		return fmt.Errorf("%w (%w)", fault.New(fault.BackendUnavailable, "store_unreachable", "The ledger's database can not be reached. Try again later."), err)
	}
	return err
}

// readable is a row that makes a finding of what is not of its column's type.
type readable struct{ Row }

// Scan implements Row.
func (r readable) Scan(dest ...any) error {
	if err := r.Row.Scan(dest...); err != nil {
		return unreadable("%w", err)
	}
	return nil
}

// Begin implements committer.Backend: one round trip begins, locks the records
// and finds the known keys. The keys come last: a key that another process wrote
// while this one waited for its lock is seen.
func (s *Store) Begin(ctx context.Context, names []committer.Name, keys []committer.Key) (committer.State, committer.Tx, error) {
	conn, err := s.db.Writer(ctx)
	if err != nil {
		return committer.State{}, nil, s.meaning(err, committer.ErrUnavailable)
	}
	tx := &tx{s, conn}
	state := committer.State{Records: make(map[committer.Name]ledger.Record, len(names))}
	var found []*kept
	loads, then := s.load(names, true, func(n committer.Name, r ledger.Record) { state.Records[n] = r })
	steps := append(append([]Step{{SQL: s.dialect.Begin()}}, loads...), s.outcomes.find(keys, &found))
	err = tx.run(ctx, then, steps...)
	if err == nil {
		state.Outcomes, err = s.loadAnswers(ctx, tx.run, found)
	}
	if err != nil {
		tx.Rollback(ctx)
		return committer.State{}, nil, s.meaning(err, committer.ErrUnavailable)
	}
	return state, tx, nil
}

// Outcomes implements committer.Backend.
func (s *Store) Outcomes(ctx context.Context, keys []committer.Key) (map[committer.Key]ledger.Outcome, error) {
	return s.loadOutcomes(ctx, s.read, keys)
}

// meaning says what err means to the committer; lost is what it means if nobody
// can tell how the statements ended. Of err only the words stay, so that the
// chain holds one meaning.
func (s *Store) meaning(err, lost error) error {
	m := s.db.Meaning(err)
	if m == nil {
		return err
	}
	if errors.Is(m, committer.ErrLost) {
		m = lost
	}
	return fmt.Errorf("%w: %v", m, err)
}

// tx is a transaction of the committer.
type tx struct {
	store *Store
	conn  Conn
}

func (t *tx) run(ctx context.Context, then func() error, steps ...Step) error {
	if err := t.conn.Run(ctx, steps...); err != nil {
		return err
	}
	if then == nil {
		return nil
	}
	return then()
}

// Commit implements committer.Tx: one round trip writes and commits.
func (t *tx) Commit(ctx context.Context, c committer.Changes) error {
	steps := append(t.store.rows(c).steps(t.store.dialect), Step{SQL: t.store.dialect.Commit()})
	if err := t.conn.Run(ctx, steps...); err != nil {
		t.Rollback(ctx)
		return t.store.meaning(err, committer.ErrLost)
	}
	t.conn.Release()
	return nil
}

// Rollback implements committer.Tx. If it fails, the connection is broken and
// the database has rolled back by itself.
func (t *tx) Rollback(ctx context.Context) {
	_ = t.conn.Run(ctx, Step{SQL: t.store.dialect.Rollback()})
	t.conn.Release()
}
