// Package ledger is the write port's vocabulary: a [Command] is a request to
// change something, as a value; it is decided where the data is, on the
// records it names, and what it decided is a [Change].
//
// A subject declares its commands and records. An adapter loads the records
// that a command names into a [View], calls [Decide], which also checks what
// the command promised, and commits the change with its [Outcome] in one step.
package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/operation"
)

// Kind is one sort of record. A shared kind (rules, switches, policies) is held
// still while a decision runs but not locked for change: any number of
// decisions read it at once.
type Kind struct {
	Name   string
	Shared bool
}

// Ref names one record of the operation's tenant.
type Ref struct {
	Kind Kind
	ID   string
}

// Record is the current state of one thing: an account, an order, a counter.
// Records are values; a change is a new value.
type Record interface{ Ref() Ref }

// Chained is a record with a history in the journal, under the subject that its
// kind and id name: every change of it is an entry.
type Chained interface {
	Record
	// Last is the end of the history, the zero value before the first entry.
	Last() journal.Head
}

// Command is a request to change something. It is a value: it can be stored,
// sent, hashed and decided again.
type Command interface {
	// Name is its name in the journal and on the wire: "refunds.trigger".
	Name() string
	// Facts are its typed fields as text, always the same ones in the same
	// order. With the name they are what an operation key is bound to.
	Facts() []operation.Fact
	// Reads names every record Decide looks at or changes, also those that must
	// not exist yet.
	Reads() []Ref
	// Decide is pure and may run again; an error is a refusal and changes nothing.
	Decide(View) (Change, error)
}

// View is what a decision sees: the records it named, as they are at its commit.
type View struct {
	// Op is who asks, under which key, when; Op.ID names what the decision creates.
	Op operation.Operation
	// Facts are those of the command, if they were made already; see [View.FactsOf].
	Facts []operation.Fact
	has   []slot // a short slice, not a map: this is the hot path
	// index finds a slot where there are many, as in an import; nil for few.
	index map[Ref]int
}

// fewSlots is how many slots are searched one by one.
const fewSlots = 16

type slot struct {
	ref    Ref
	record Record // nil: there is none yet
}

// NewView makes a view for op with room for n records.
func NewView(op operation.Operation, n int) View {
	v := View{Op: op, has: make([]slot, 0, n)}
	if n > fewSlots {
		v.index = make(map[Ref]int, n)
	}
	return v
}

// FactsOf returns the facts of the command that is decided. An adapter that made
// them for the fingerprint has put them into the view, so that the entry has the
// same ones.
func (v View) FactsOf(cmd Command) []operation.Fact {
	if v.Facts != nil {
		return v.Facts
	}
	return cmd.Facts()
}

// find returns the place of a ref, or -1.
func (v *View) find(ref Ref) int {
	if v.index != nil {
		if i, ok := v.index[ref]; ok {
			return i
		}
		return -1
	}
	for i := range v.has {
		if v.has[i].ref == ref {
			return i
		}
	}
	return -1
}

// Put adds what is at ref: a record, or nil for none. A ref that is there
// already gets the new state.
func (v *View) Put(ref Ref, r Record) {
	if i := v.find(ref); i >= 0 {
		v.has[i].record = r
		return
	}
	if v.index != nil {
		v.index[ref] = len(v.has)
	}
	v.has = append(v.has, slot{ref, r})
}

// Get returns the record at ref; ok is false if there is none yet. Asking for a
// ref that was not named, or for a record of another type, is a programming
// error: it panics, and [Decide] turns that into INTERNAL.
func Get[R Record](v View, ref Ref) (r R, ok bool) {
	if i := v.find(ref); i >= 0 {
		if v.has[i].record == nil {
			return r, false
		}
		r, ok = v.has[i].record.(R)
		if !ok {
			panic(fmt.Sprintf("ledger: the record %s %s is a %T", ref.Kind.Name, ref.ID, v.has[i].record))
		}
		return r, true
	}
	panic(fmt.Sprintf("ledger: %s %s was not named", ref.Kind.Name, ref.ID))
}

// Change is all that a decision does.
type Change struct {
	Put     []Record        // new states, of named refs only
	Entries []journal.Entry // balanced; one without postings records a decision that moved no money
	// Answer is kept under the operation key; a replay returns it. If it is a
	// record whose name only the decision can know, because the entry's number is
	// part of it, it is kept as a record too, without being named or put.
	Answer Record
}

// OutcomeKind is the kind of the outcomes kept under operation keys.
var OutcomeKind = Kind{Name: "outcome"}

// Outcome is what a key led to. It is a record like any other: Load finds it
// at [OutcomeRef].
type Outcome struct {
	Operation   operation.Operation
	Command     string
	Fingerprint operation.Fingerprint
	Answer      Record
	// Replayed is true when the outcome was there before and nothing ran.
	Replayed bool
}

// OutcomeRef names the outcome under a key. The scope of a key is the tenant
// and the principal. A principal's id holds no slash, so no two scopes share a
// name.
func OutcomeRef(principal string, key operation.Key) Ref {
	return Ref{OutcomeKind, principal + "/" + key.String()}
}

// Ref names the outcome.
func (o Outcome) Ref() Ref { return OutcomeRef(o.Operation.Principal, o.Operation.Key) }

// Replay returns the outcome as a repeat of the call gets it, or the CONFLICT
// operation_key_reused if the repeat asks for something else. The fault shows
// nothing of what was stored.
func (o Outcome) Replay(command string, f operation.Fingerprint) (Outcome, error) {
	if o.Command != command || o.Fingerprint != f {
		return Outcome{}, o.KeyReused()
	}
	o.Replayed = true
	return o, nil
}

// KeyReused is the fault for another request under the outcome's key.
func (o Outcome) KeyReused() error {
	return fault.New(fault.Conflict, "operation_key_reused",
		"The operation key %s was used for a different request before. Nothing was done. Send the first request unchanged, or use a new key for a new request.", o.Operation.Key)
}

// Decide runs cmd on v for an adapter and checks what it decided: there is an
// answer, it put only records it named, its entries are of this operation, and
// a [Chained] record and its history change together: each entry follows the
// one before it, none is missing and none is of a record that was not put.
// A panic or a broken promise is an error that is no fault, so INTERNAL.
func Decide(cmd Command, v View) (c Change, err error) {
	defer func() {
		if p := recover(); p != nil {
			c, err = Change{}, fmt.Errorf("ledger: deciding %s: panic: %v", cmd.Name(), p)
		}
	}()
	if c, err = cmd.Decide(v); err != nil {
		return Change{}, err
	}
	if err := check(cmd, v, c); err != nil {
		return Change{}, fmt.Errorf("ledger: %s %w", cmd.Name(), err)
	}
	return c, nil
}

func check(cmd Command, v View, c Change) error {
	if c.Answer == nil {
		return errors.New("decided without an answer")
	}
	for _, e := range c.Entries {
		if e.Operation() != v.Op || e.Command() != cmd.Name() {
			return errors.New("made an entry of another operation")
		}
	}
	// The entries of one record stand together, in the order of the records.
	entries := c.Entries
	if len(c.Put) > 1 {
		entries = bySubject(c)
	}
	changed := make([]bool, len(v.has))
	for _, r := range c.Put {
		ref := r.Ref()
		at := v.find(ref)
		switch {
		case at < 0:
			return fmt.Errorf("changed %s %s, which it did not name", ref.Kind.Name, ref.ID)
		case changed[at]:
			return fmt.Errorf("changed %s %s twice", ref.Kind.Name, ref.ID)
		}
		changed[at] = true
		after, ok := r.(Chained)
		if !ok {
			continue
		}
		var head journal.Head
		if before, ok := v.has[at].record.(Chained); ok {
			head = before.Last()
		}
		n := 0
		for ; n < len(entries) && entries[n].Subject() == (journal.Subject{Kind: ref.Kind.Name, ID: ref.ID}); n++ {
			if entries[n].Number() != head.Number+1 || entries[n].Previous() != head.Hash {
				return fmt.Errorf("made an entry of %s %s that does not follow its history", ref.Kind.Name, ref.ID)
			}
			head = entries[n].Head()
		}
		if n == 0 || head != after.Last() {
			return fmt.Errorf("changed %s %s without the entry", ref.Kind.Name, ref.ID)
		}
		entries = entries[n:]
	}
	if len(entries) > 0 {
		return errors.New("made an entry of a record that it did not change")
	}
	return nil
}

// bySubject returns the entries in the order in which their records are put;
// those of no such record come last.
func bySubject(c Change) []journal.Entry {
	place := make(map[journal.Subject]int, len(c.Put))
	for i, r := range c.Put {
		ref := r.Ref()
		place[journal.Subject{Kind: ref.Kind.Name, ID: ref.ID}] = i
	}
	of := func(e journal.Entry) int {
		if i, ok := place[e.Subject()]; ok {
			return i
		}
		return len(c.Put)
	}
	entries := slices.Clone(c.Entries)
	slices.SortStableFunc(entries, func(a, b journal.Entry) int { return cmp.Compare(of(a), of(b)) })
	return entries
}

// Check reports what an operation lacks, or a part that could not be kept and
// found again as it is. Adapters call it before they touch a record.
func Check(op operation.Operation) error {
	switch {
	case (op.Tenant == access.Tenant{}) || op.Principal == "" || (op.Key == operation.Key{}) || op.ID == (operation.ID{}) || op.At.IsZero():
		return errors.New("ledger: an operation needs a tenant, a principal, a key, an id and a time")
	case strings.Contains(op.Principal, "/"):
		return errors.New("ledger: a principal's id holds no slash")
	case op.At != time.UnixMilli(op.At.UnixMilli()).UTC():
		return errors.New("ledger: an operation's time is UTC in whole milliseconds")
	}
	return nil
}
