package ledger_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var op = operation.Operation{
	ID: operation.ID{1}, Tenant: must(access.ParseTenant("acme")), Principal: "bot", Tool: "test",
	Key: must(operation.ParseKey("k1")), At: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
}

// note is a record without a history, count one with.
type (
	note  struct{ id, text string }
	count struct {
		id   string
		n    int
		head journal.Head
	}
)

func (n note) Ref() ledger.Ref     { return ledger.Ref{Kind: ledger.Kind{Name: "note"}, ID: n.id} }
func (c count) Ref() ledger.Ref    { return ledger.Ref{Kind: ledger.Kind{Name: "count"}, ID: c.id} }
func (c count) Last() journal.Head { return c.head }

// next is the count after one more, with its entry.
func (c count) next(op operation.Operation, command string) (count, journal.Entry) {
	e := must(journal.Next(c.head, journal.Subject{Kind: "count", ID: c.id}, op, command, nil))
	return count{c.id, c.n + 1, e.Head()}, e
}

// command decides as its function says, on the counts a and b and the note n.
type command func(ledger.View) (ledger.Change, error)

func (command) Name() string            { return "test" }
func (command) Facts() []operation.Fact { return nil }
func (command) Reads() []ledger.Ref {
	return []ledger.Ref{count{id: "a"}.Ref(), count{id: "b"}.Ref(), note{id: "n"}.Ref()}
}
func (c command) Decide(v ledger.View) (ledger.Change, error) { return c(v) }

func TestDecide(t *testing.T) {
	a, first := count{id: "a"}.next(op, "test") // on record
	view := ledger.NewView(op, 3)
	for _, ref := range command(nil).Reads() {
		view.Put(ref, nil)
	}
	view.Put(a.Ref(), a)

	after, second := a.next(op, "test")
	last, third := after.next(op, "test")
	b, firstOfB := count{id: "b"}.next(op, "test")
	_, firstOfC := count{id: "c"}.next(op, "test")
	later := op
	later.At = op.At.Add(time.Millisecond)
	_, foreign := a.next(later, "test")
	_, misnamed := a.next(op, "another")
	refusal := fault.New(fault.PolicyViolation, "no", "No.")

	put := func(r ...ledger.Record) []ledger.Record { return r }
	entries := func(e ...journal.Entry) []journal.Entry { return e }
	answer := note{"n", "done"}
	for _, tt := range []struct {
		name   string
		change ledger.Change
		broken string // what the error says, or "" if it stands
	}{
		{"a record and its entry", ledger.Change{Put: put(after), Entries: entries(second), Answer: answer}, ""},
		{"a record that is new", ledger.Change{Put: put(b), Entries: entries(firstOfB), Answer: answer}, ""},
		{"two records", ledger.Change{Put: put(b, after), Entries: entries(second, firstOfB), Answer: answer}, ""},
		{"two entries of one record", ledger.Change{Put: put(last), Entries: entries(second, third), Answer: answer}, ""},
		{"a record without a history", ledger.Change{Put: put(note{"n", "x"}), Answer: answer}, ""},
		{"nothing to change and an answer", ledger.Change{Answer: answer}, ""},

		{"no answer", ledger.Change{Put: put(after), Entries: entries(second)}, "without an answer"},
		{"a record that was not named", ledger.Change{Put: put(note{"m", "x"}), Answer: answer}, "note m, which it did not name"},
		{"no record at all among the records", ledger.Change{Put: put(nil), Answer: answer}, "panic"},
		{"a record twice", ledger.Change{Put: put(note{"n", "x"}, note{"n", "y"}), Answer: answer}, "note n twice"},
		{"a record without its entry", ledger.Change{Put: put(after), Answer: answer}, "count a without the entry"},
		{"a record changed in place", ledger.Change{Put: put(count{"a", 99, a.head}), Answer: answer}, "count a without the entry"},
		{"a record with the entry of another", ledger.Change{Put: put(after), Entries: entries(firstOfB), Answer: answer}, "count a without the entry"},
		{"a record that stops short of its entries", ledger.Change{Put: put(after), Entries: entries(second, third), Answer: answer}, "count a without the entry"},
		{"a record ahead of its entries", ledger.Change{Put: put(last), Entries: entries(second), Answer: answer}, "count a without the entry"},
		{"a record at another hash than its entry", ledger.Change{Put: put(count{"a", 2, journal.Head{Number: 2, Hash: journal.Hash{9}}}), Entries: entries(second), Answer: answer}, "count a without the entry"},
		{"an entry without its record", ledger.Change{Put: put(after), Entries: entries(second, firstOfB), Answer: answer}, "a record that it did not change"},
		{"an entry of a record that was not named", ledger.Change{Entries: entries(firstOfC), Answer: answer}, "a record that it did not change"},
		{"an entry that is there already", ledger.Change{Put: put(a), Entries: entries(first), Answer: answer}, "does not follow its history"},
		{"an entry that leaves a gap", ledger.Change{Put: put(last), Entries: entries(third), Answer: answer}, "does not follow its history"},
		{"entries in the wrong order", ledger.Change{Put: put(last), Entries: entries(third, second), Answer: answer}, "does not follow its history"},
		{"an entry on another hash", ledger.Change{Put: put(count{"b", 1, journal.Head{Number: 1, Hash: first.Hash()}}), Entries: entries(
			journal.Restore(1, journal.Hash{1}, first.Hash(), journal.Subject{Kind: "count", ID: "b"}, op, "test", nil, nil)), Answer: answer}, "does not follow its history"},
		{"an entry of another operation", ledger.Change{Put: put(after), Entries: entries(foreign), Answer: answer}, "another operation"},
		{"an entry of another command", ledger.Change{Put: put(after), Entries: entries(misnamed), Answer: answer}, "another operation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ledger.Decide(command(func(ledger.View) (ledger.Change, error) { return tt.change, nil }), view)
			if tt.broken == "" {
				if err != nil || got.Answer != tt.change.Answer {
					t.Fatalf("got %+v, %v", got, err)
				}
				return
			}
			if err == nil || fault.Of(err) != nil || !strings.Contains(err.Error(), tt.broken) {
				t.Fatalf("got %v, want an error that is no fault and says %q", err, tt.broken)
			}
			if got.Answer != nil || got.Put != nil || got.Entries != nil {
				t.Fatalf("a broken promise still changes something: %+v", got)
			}
		})
	}

	for _, tt := range []struct {
		name   string
		decide command
		fault  bool
	}{
		{"a refusal comes back as it was given", func(ledger.View) (ledger.Change, error) {
			return ledger.Change{Put: put(after), Answer: answer}, refusal
		}, true},
		{"a panic is an error", func(ledger.View) (ledger.Change, error) { panic("boom") }, false},
		{"a panic with a fault is no refusal", func(ledger.View) (ledger.Change, error) { panic(refusal) }, false},
		{"a look at a record that was not named", func(v ledger.View) (ledger.Change, error) {
			ledger.Get[note](v, note{id: "m"}.Ref())
			return ledger.Change{Answer: answer}, nil
		}, false},
		{"a record taken for another type", func(v ledger.View) (ledger.Change, error) {
			ledger.Get[note](v, a.Ref())
			return ledger.Change{Answer: answer}, nil
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ledger.Decide(tt.decide, view)
			if err == nil || (fault.Of(err) != nil) != tt.fault || tt.fault && !errors.Is(err, refusal) {
				t.Fatalf("got %v", err)
			}
			if got.Answer != nil || got.Put != nil {
				t.Fatalf("it still changes something: %+v", got)
			}
		})
	}
}

func TestView(t *testing.T) {
	v := ledger.NewView(op, 2)
	v.Put(note{id: "n"}.Ref(), nil)
	v.Put(count{id: "a"}.Ref(), count{id: "a", n: 1})
	if n, ok := ledger.Get[note](v, note{id: "n"}.Ref()); ok || n != (note{}) {
		t.Errorf("there is none, and got %+v", n)
	}
	v.Put(count{id: "a"}.Ref(), count{id: "a", n: 2})
	if c, ok := ledger.Get[count](v, count{id: "a"}.Ref()); !ok || c.n != 2 {
		t.Errorf("got %+v, %t; the later state counts", c, ok)
	}
	if r, ok := ledger.Get[ledger.Record](v, count{id: "a"}.Ref()); !ok || r.Ref().ID != "a" {
		t.Errorf("any record may be taken as a Record: %+v, %t", r, ok)
	}
	copied := v
	copied.Put(note{id: "m"}.Ref(), note{"m", ""})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a view grew through its copy")
			}
		}()
		ledger.Get[note](v, note{id: "m"}.Ref())
	}()
}

func TestReplay(t *testing.T) {
	f := operation.FingerprintOf("test", nil)
	o := ledger.Outcome{Operation: op, Command: "test", Fingerprint: f, Answer: note{"n", "4711 secret"}}
	if got, err := o.Replay("test", f); err != nil || !got.Replayed || got.Answer != o.Answer || got.Operation != op || o.Replayed {
		t.Errorf("the same request: %+v, %v", got, err)
	}
	for name, ask := range map[string]func() (ledger.Outcome, error){
		"other fields":    func() (ledger.Outcome, error) { return o.Replay("test", operation.Fingerprint{1}) },
		"another command": func() (ledger.Outcome, error) { return o.Replay("other", f) },
	} {
		got, err := ask()
		if !errors.Is(err, fault.New(fault.Conflict, "operation_key_reused", "")) || got.Answer != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: it shows what was stored: %v", name, err)
		}
	}
}

func TestOutcomesAreNamedByPrincipalAndKey(t *testing.T) {
	o := ledger.Outcome{Operation: op}
	if o.Ref() != ledger.OutcomeRef("bot", op.Key) || o.Ref() != (ledger.Ref{Kind: ledger.OutcomeKind, ID: "bot/k1"}) {
		t.Fatalf("got %+v", o.Ref())
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*operation.Operation)
		ok     bool
	}{
		{"all in order", func(o *operation.Operation) {}, true},
		{"nobody asked on the principal's behalf", func(o *operation.Operation) { o.Via = "" }, true},
		{"no tenant", func(o *operation.Operation) { o.Tenant = access.Tenant{} }, false},
		{"no principal", func(o *operation.Operation) { o.Principal = "" }, false},
		{"no key", func(o *operation.Operation) { o.Key = operation.Key{} }, false},
		{"no id", func(o *operation.Operation) { o.ID = operation.ID{} }, false},
		{"no time", func(o *operation.Operation) { o.At = time.Time{} }, false},
		{"a principal that could be taken for another and its key", func(o *operation.Operation) { o.Principal = "bot/k1" }, false},
		{"a time that a store would cut", func(o *operation.Operation) { o.At = o.At.Add(time.Microsecond) }, false},
		{"a time in a zone", func(o *operation.Operation) { o.At = o.At.In(time.FixedZone("CET", 3600)) }, false},
		{"a reading of the monotonic clock", func(o *operation.Operation) { o.At = time.Now() }, false},
		{"the time as an application takes it", func(o *operation.Operation) { o.At = time.Now().UTC().Truncate(time.Millisecond) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := op
			tt.change(&o)
			if err := ledger.Check(o); (err == nil) != tt.ok {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestEntriesAreNamedBySubjectAndNumber(t *testing.T) {
	for _, tt := range []struct {
		name string
		ref  ledger.Ref
		want journal.Subject
		n    int64
		ok   bool
	}{
		{"what EntryRef writes", ledger.EntryRef(journal.Subject{Kind: "count", ID: "a"}, 7), journal.Subject{Kind: "count", ID: "a"}, 7, true},
		{"an id with slashes", ledger.EntryRef(journal.Subject{Kind: "count", ID: "a/b/1"}, 7), journal.Subject{Kind: "count", ID: "a/b/1"}, 7, true},
		{"another kind of record", ledger.Ref{Kind: ledger.Kind{Name: "note"}, ID: "count/a/7"}, journal.Subject{}, 0, false},
		{"no number", ledger.Ref{Kind: ledger.EntryKind, ID: "count/a/b"}, journal.Subject{}, 0, false},
		{"no subject", ledger.Ref{Kind: ledger.EntryKind, ID: "7"}, journal.Subject{}, 0, false},
		{"a kind and a number alone", ledger.Ref{Kind: ledger.EntryKind, ID: "count/7"}, journal.Subject{}, 0, false},
		{"another spelling of the number", ledger.Ref{Kind: ledger.EntryKind, ID: "count/a/+07"}, journal.Subject{}, 0, false},
		{"nothing", ledger.Ref{Kind: ledger.EntryKind}, journal.Subject{}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, n, ok := ledger.ParseEntryRef(tt.ref)
			if ok != tt.ok || ok && (s != tt.want || n != tt.n) {
				t.Fatalf("got %+v, %d, %t", s, n, ok)
			}
		})
	}
	_, e := count{id: "a"}.next(op, "test")
	if got := (ledger.Booked{Entry: e}).Ref(); got != ledger.EntryRef(journal.Subject{Kind: "count", ID: "a"}, 1) {
		t.Errorf("got %+v", got)
	}
}

// A command may name more records than are searched one by one.
func TestAViewOfMany(t *testing.T) {
	v := ledger.NewView(op, 1000)
	for i := range 1000 {
		id := strconv.Itoa(i)
		if i%2 == 0 {
			v.Put(note{id: id}.Ref(), nil)
		}
		v.Put(note{id: id}.Ref(), note{id, id})
	}
	for _, id := range []string{"0", "1", "15", "16", "17", "999"} {
		if n, ok := ledger.Get[note](v, note{id: id}.Ref()); !ok || n.text != id {
			t.Errorf("at %s there is %+v, %t", id, n, ok)
		}
	}
}
