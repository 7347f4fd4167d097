package portstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// operationLaws are about keys, writes and look-ups.
func operationLaws(law add) {
	law("the same key and payload have one effect and one answer, marked replayed", func(w world) {
		c := w.opened(1, 100_00)
		first, err := w.do("k", refund(c, 10_00))
		if err != nil || first.Replayed {
			w.Fatalf("the first call: %s", result(first, err))
		}
		w.done(refund(c, 5_00)) // a replay is answered as it was then, whatever came after
		for range 3 {
			again, err := w.do("k", refund(c, 10_00))
			if err != nil || !again.Replayed {
				w.Fatalf("a repeat: %s", result(again, err))
			}
			again.Replayed = false
			if again.Answer != first.Answer || !w.same(again, first) {
				w.Errorf("a repeat is answered %+v, the first was %+v", again, first)
			}
		}
		w.balance(c, 85_00, 3)
		w.proved()
	})

	law("another payload under a key is a conflict, has no effect and shows nothing stored", func(w world) {
		c, other := w.opened(1, 100_00), w.opened(2, 100_00)
		cmd := refund(c, 12_34)
		cmd.Reason = reason("The reason is confidential.")
		first, err := w.do("k", cmd)
		if err != nil {
			w.Fatal(err)
		}
		with := func(change func(*refunds.Trigger)) ledger.Command {
			changed := cmd
			change(&changed)
			return changed
		}
		for name, changed := range map[string]ledger.Command{
			"another amount":   with(func(t *refunds.Trigger) { t.Amount = cents(15_00) }),
			"another customer": with(func(t *refunds.Trigger) { t.Customer = other }),
			"another reason":   with(func(t *refunds.Trigger) { t.Reason = reason("Another reason.") }),
			"another currency": with(func(t *refunds.Trigger) {
				t.Amount = money.FromMinor(12_34, must(money.ParseCurrency("EUR")))
			}),
			"what the rules refuse": with(func(t *refunds.Trigger) { t.Amount = cents(999_99) }),
			"an unknown customer":   with(func(t *refunds.Trigger) { t.Customer = customer(99) }),
			"another command":       opening(3, cents(1)),
		} {
			o, err := w.do("k", changed)
			if faultOf(err) != "CONFLICT/operation_key_reused" || o.Answer != nil {
				w.Errorf("%s: %s, %+v", name, result(o, err), o.Answer)
				continue
			}
			for _, stored := range []string{"12.34", "1234", "confidential", c.String(), first.Answer.(refunds.Refund).ID.String()} {
				if strings.Contains(shown(err), stored) {
					w.Errorf("%s: the conflict shows %q: %s", name, stored, shown(err))
				}
			}
		}
		if again, err := w.do("k", cmd); err != nil || !again.Replayed || again.Answer != first.Answer {
			w.Errorf("the first request does not replay after that: %s", result(again, err))
		}
		w.balance(c, 87_66, 2)
		w.balance(other, 100_00, 1)
		if _, there := get[customers.Account](w, customer(3).Ref()); there {
			w.Error("a conflict opened an account")
		}
		w.proved()
	})

	law("256 calls at once under one key have one effect", func(w world) {
		c := w.opened(1, 100_00)
		var seen tally
		var answers sync.Map
		atOnce(256, func(int) {
			o, err := w.do("k", refund(c, 12_00))
			seen.add(result(o, err))
			if err == nil {
				answers.Store(o.Answer, nil)
			}
		})
		w.want(&seen, "1 done", "255 replayed")
		distinct := 0
		answers.Range(func(any, any) bool { distinct++; return true })
		if distinct != 1 {
			w.Errorf("%d different answers", distinct)
		}
		w.balance(c, 88_00, 2)
		w.proved()
	})

	law("of many requests at once under one key one is done, and the others conflict", func(w world) {
		c := w.opened(1, 100_00)
		var seen tally
		atOnce(32, func(i int) {
			o, err := w.do("k", refund(c, int64(1+i)))
			seen.add(result(o, err))
		})
		w.want(&seen, "1 done", "31 CONFLICT/operation_key_reused")
		if n := w.account(c).Version(); n != 2 {
			w.Errorf("the account is at version %d", n)
		}
		w.proved()
	})

	law("another principal's key is its own and leaks nothing", func(w world) {
		c := w.opened(1, 100_00)
		first, err := w.do("k", refund(c, 10_00))
		if err != nil {
			w.Fatal(err)
		}
		other := w.as("other-bot")
		if o, there := other.outcome("k"); there {
			w.Errorf("the other looks up %+v", o.Answer)
		}
		second, err := other.do("k", refund(c, 20_00))
		if err != nil || second.Replayed || second.Answer.(refunds.Refund).Amount != cents(20_00) {
			w.Fatalf("the other's write: %s", result(second, err))
		}
		for who, want := range map[*world]ledger.Outcome{&w: first, &other: second} {
			if o, err := who.do("k", refund(c, want.Answer.(refunds.Refund).Amount.Minor())); err != nil || !o.Replayed || o.Answer != want.Answer {
				w.Errorf("%s repeats: %s, %+v", who.principal, result(o, err), o.Answer)
			}
			if o, there := who.outcome("k"); !there || o.Answer != want.Answer || o.Operation.Principal != who.principal {
				w.Errorf("%s looks up %+v", who.principal, o)
			}
		}
		w.balance(c, 70_00, 3)
	})

	law("tenants are walled: another's records, keys and lists do not exist", func(w world) {
		other := w.in("globex")
		c := w.opened(1, 100_00)
		if _, err := w.do("k", refund(c, 10_00)); err != nil {
			w.Fatal(err)
		}
		if _, there := get[customers.Account](other, c.Ref()); there {
			w.Error("the other loads the account")
		}
		if _, there := get[refunds.Refund](other, refunds.RefOf(c, 2)); there {
			w.Error("the other loads the refund")
		}
		if o, there := other.outcome("k"); there {
			w.Errorf("the other looks up %+v", o.Answer)
		}
		if r, e, a := other.refundsOf(c), other.entriesOf(c), other.accounts(); len(r)+len(e)+len(a) != 0 {
			w.Errorf("the other lists %d refunds, %d entries, %d accounts", len(r), len(e), len(a))
		}
		_, err := other.do("k", refund(c, 10_00))
		w.wantFault(err, "NOT_FOUND/customer_not_found")
		w.balance(c, 90_00, 2)

		// The same id and the same key are another customer and another operation.
		other.opened(1, 7_00)
		if o, err := other.do("k", refund(c, 1_00)); err != nil || o.Replayed {
			w.Errorf("the other's write: %s", result(o, err))
		}
		other.balance(c, 6_00, 2)
		w.balance(c, 90_00, 2)
		w.proved()
		other.proved()
	}, ManyTenants)

	law("a refusal leaves no row and the key free", func(w world) {
		c := w.opened(1, 100_00)
		before := w.account(c)
		for name, cmd := range map[string]ledger.Command{
			"too much":            refund(c, 100_01),
			"nothing":             refund(c, 0),
			"an unknown customer": refund(customer(99), 1),
			"opened before":       opening(1, cents(5)),
			"out of form":         opening(2, cents(-5)),
		} {
			if o, err := w.do("k", cmd); fault.Of(err) == nil {
				w.Errorf("%s: %s", name, result(o, err))
			}
			if o, there := w.outcome("k"); there {
				w.Errorf("%s: it left %+v under the key", name, o)
			}
		}
		if after := w.account(c); !w.same(before, after) || len(w.entriesOf(c)) != 1 || len(w.refundsOf(c)) != 0 || len(w.accounts()) != 1 {
			w.Errorf("a refusal changed %+v into %+v", before, after)
		}
		if o, err := w.do("k", refund(c, 100_00)); err != nil || o.Replayed {
			w.Errorf("the key is not free: %s", result(o, err))
		}
		w.proved()
	})

	law("a refusal disturbs no neighbour", func(w world) {
		c, poor := w.opened(1, 100_00), w.opened(2, 0)
		suspended := opening(3, cents(100_00))
		suspended.Status = customers.Suspended
		w.done(suspended)
		var seen tally
		atOnce(60, func(i int) {
			cmd := []refunds.Trigger{refund(c, 1_00), refund(poor, 1), refund(customer(99), 1), refund(c, 100_01), refund(suspended.ID, 1), refund(c, 2_00)}[i%6]
			o, err := w.do(key(), cmd)
			seen.add(result(o, err))
		})
		w.want(&seen, "10 NOT_FOUND/customer_not_found", "10 POLICY_VIOLATION/account_suspended", "20 POLICY_VIOLATION/balance_exceeded", "20 done")
		w.balance(c, 70_00, 21)
		w.balance(poor, 0, 1)
		w.proved()
	})

	law("what the rules refuse comes back as they said it", func(w world) {
		c := w.opened(1, 100_00)
		_, _, _, want := refunds.Decide(w.account(c), refund(c, 100_01).Request, w.asked("k"))
		_, err := w.do("k", refund(c, 100_01))
		w.wantFault(err, "POLICY_VIOLATION/balance_exceeded")
		if err != nil && shown(err) != shown(want) {
			w.Errorf("got  %s\nwant %s", shown(err), shown(want))
		}
	})

	law("an operation that lacks a part is a defect, and nothing happens", func(w world) {
		c := w.opened(1, 100_00)
		for name, change := range map[string]func(*operation.Operation){
			"tenant":    func(o *operation.Operation) { o.Tenant = access.Tenant{} },
			"principal": func(o *operation.Operation) { o.Principal = "" },
			"key":       func(o *operation.Operation) { o.Key = operation.Key{} },
			"id":        func(o *operation.Operation) { o.ID = operation.ID{} },
			"time":      func(o *operation.Operation) { o.At = o.At.Add(1) },
		} {
			op := w.asked("k")
			change(&op)
			if o, err := w.Do(w.ctx, op, refund(c, 1)); err == nil || fault.Of(err) != nil {
				w.Errorf("%s: %s", name, result(o, err))
			}
		}
		w.balance(c, 100_00, 1)
	})

	law("a call whose context has ended has its whole effect or none", func(w world) {
		c := w.opened(1, 100_00)
		ended, end := context.WithCancel(w.ctx)
		end()
		o, err := w.Do(ended, w.asked("k"), refund(c, 10_00))
		if _, there := w.outcome("k"); fault.CodeOf(err) != fault.OutcomeUnknown && there != (err == nil) {
			w.Errorf("%s, and an outcome is there: %t", result(o, err), there)
		}
		if o, err := w.do("k", refund(c, 10_00)); err != nil {
			w.Errorf("the repeat: %s", result(o, err))
		}
		w.balance(c, 90_00, 2)
		w.proved()
	})

	law("what an operation creates is named by its id and dated by its time", func(w world) {
		c := w.opened(1, 100_00)
		op := w.asked("k")
		op.Via, op.Tool = "gateway", "a_tool"
		o, err := w.Do(w.ctx, op, refund(c, 10_00))
		if err != nil {
			w.Fatal(err)
		}
		if r := o.Answer.(refunds.Refund); r.ID != op.ID || r.ProcessedAt != op.At || o.Operation != op {
			w.Errorf("%+v of %+v", r, o.Operation)
		}
		if e := w.entriesOf(c)[1]; e.Operation() != op || e.Command() != refunds.TriggerName {
			w.Errorf("the entry is of %+v", e.Operation())
		}
	}, Stamps)

	law("Load of what is not there is nothing", func(w world) {
		check := func(w world) {
			refs := []ledger.Ref{customer(1).Ref(), refunds.RefOf(customer(1), 2), ledger.OutcomeRef(w.principal, must(operation.ParseKey("k"))), customer(1).Ref()}
			v, err := w.Load(w.ctx, w.tenant, refs...)
			if err != nil {
				w.Fatal(err)
			}
			for _, ref := range refs {
				if r, there := ledger.Get[ledger.Record](v, ref); there || r != nil {
					w.Errorf("%s %s is %+v", ref.Kind.Name, ref.ID, r)
				}
			}
			if _, err := w.Load(w.ctx, w.tenant); err != nil {
				w.Errorf("Load of nothing: %v", err)
			}
		}
		check(w)         // of a tenant that has never written
		w.opened(2, 100) // and of one that has
		check(w)
	})

	law("Load gives each record it was asked for, in one call", func(w world) {
		a, b := w.opened(1, 100_00), w.opened(2, 50_00)
		first, err := w.do("k", refund(a, 10_00))
		if err != nil {
			w.Fatal(err)
		}
		r := first.Answer.(refunds.Refund)
		v, err := w.Load(w.ctx, w.tenant, b.Ref(), first.Ref(), customer(9).Ref(), r.Ref(), a.Ref(), b.Ref())
		if err != nil {
			w.Fatal(err)
		}
		if got, ok := ledger.Get[customers.Account](v, b.Ref()); !ok || got.ID != b || got.Balance() != cents(50_00) {
			w.Errorf("got %+v", got)
		}
		if got, ok := ledger.Get[customers.Account](v, a.Ref()); !ok || got.ID != a || got.Balance() != cents(90_00) {
			w.Errorf("got %+v", got)
		}
		if got, ok := ledger.Get[refunds.Refund](v, r.Ref()); !ok || got != r {
			w.Errorf("got %+v, want %+v", got, r)
		}
		if got, ok := ledger.Get[ledger.Outcome](v, first.Ref()); !ok || !w.same(got, first) {
			w.Errorf("got %+v, want %+v", got, first)
		}
		if got, ok := ledger.Get[customers.Account](v, customer(9).Ref()); ok {
			w.Errorf("got %+v", got)
		}
	})

	law("an outcome is loaded by its key", func(w world) {
		c := w.opened(1, 100_00)
		cmd := refund(c, 10_00)
		first, err := w.do("k", cmd)
		if err != nil {
			w.Fatal(err)
		}
		w.done(refund(c, 5_00))
		o, there := w.outcome("k")
		if !there || !w.same(o, first) || o.Answer != first.Answer || o.Replayed {
			w.Errorf("got %+v, want %+v", o, first)
		}
		if o.Command != refunds.TriggerName || o.Fingerprint != operation.FingerprintOf(cmd.Name(), cmd.Facts()) || o.Operation.Key != first.Operation.Key || o.Operation.Principal != w.principal || o.Operation.Tenant != w.tenant {
			w.Errorf("got %+v", o)
		}
		opened := w.done(opening(2, cents(7)))
		if o, there := get[ledger.Outcome](w, opened.Ref()); !there || !w.same(o.Answer, opened.Answer) {
			w.Errorf("got %+v, want %+v", o.Answer, opened.Answer)
		}
	})

	law("a decision may run more than once and has one effect", func(w world) {
		c := w.opened(1, 100_00)
		var runs atomic.Int64
		cmd := command{refund(c, 10_00), func(v ledger.View) (ledger.Change, error) {
			runs.Add(1)
			if _, err := refund(c, 10_00).Decide(v); err != nil { // decided, and thrown away
				return ledger.Change{}, err
			}
			return refund(c, 10_00).Decide(v)
		}}
		first, err := w.do("k", cmd)
		if err != nil {
			w.Fatal(err)
		}
		before := runs.Load()
		again, err := w.do("k", cmd)
		if err != nil || !again.Replayed || again.Answer != first.Answer || before < 1 || runs.Load() != before {
			w.Errorf("decided %d times, then %d times; the repeat: %s", before, runs.Load()-before, result(again, err))
		}
		w.balance(c, 90_00, 2)
		w.proved()
	}, AnyCommand)

	law("a panic or a broken promise is an error that is no fault and changes nothing", func(w world) {
		a, b := w.opened(1, 100_00), w.opened(2, 100_00)
		cmd, stale := refund(a, 10_00), w.account(b)
		for name, decide := range map[string]func(ledger.View) (ledger.Change, error){
			"it panics":                   func(ledger.View) (ledger.Change, error) { panic("boom") },
			"it panics with a fault":      func(ledger.View) (ledger.Change, error) { panic(fault.New(fault.Conflict, "boom", "Boom.")) },
			"it panics with an error":     func(ledger.View) (ledger.Change, error) { panic(errors.New("boom")) },
			"it fails without a fault":    func(ledger.View) (ledger.Change, error) { return ledger.Change{}, errors.New("boom") },
			"it gives no answer":          func(v ledger.View) (ledger.Change, error) { c, err := cmd.Decide(v); c.Answer = nil; return c, err },
			"its answer has no place":     func(v ledger.View) (ledger.Change, error) { c, err := cmd.Decide(v); c.Answer = stray{}; return c, err },
			"it reads what was not named": func(v ledger.View) (ledger.Change, error) { return refund(b, 10_00).Decide(v) },
			"it changes what was not named": func(v ledger.View) (ledger.Change, error) {
				c, err := cmd.Decide(v)
				other, e, _ := stale.Post(v.Op, cmd.Name(), nil)
				c.Put, c.Entries = append(c.Put, other), append(c.Entries, e)
				return c, err
			},
			"it books on an account that was not named": func(v ledger.View) (ledger.Change, error) {
				c, err := cmd.Decide(v)
				_, e, _ := stale.Post(v.Op, cmd.Name(), nil)
				c.Entries = append(c.Entries, e)
				return c, err
			},
			"it changes a balance without an entry": func(v ledger.View) (ledger.Change, error) {
				c, err := cmd.Decide(v)
				c.Entries = nil
				return c, err
			},
			"it books an entry without its balance": func(v ledger.View) (ledger.Change, error) {
				c, err := cmd.Decide(v)
				c.Put = nil
				return c, err
			},
			"its entry is of another operation": func(v ledger.View) (ledger.Change, error) {
				v.Op = w.asked("another")
				return cmd.Decide(v)
			},
		} {
			var seen tally
			atOnce(4, func(i int) {
				if i == 0 {
					o, err := w.do("k", command{cmd, decide})
					if err == nil || fault.Of(err) != nil {
						w.Errorf("%s: %s", name, result(o, err))
					}
					return
				}
				o, err := w.do(key(), refund(b, 1))
				seen.add(result(o, err))
			})
			if seen.String() != "3 done" {
				w.Errorf("%s: its neighbours: %s", name, &seen)
			}
			if o, there := w.outcome("k"); there {
				w.Errorf("%s: it left %+v under the key", name, o)
			}
			w.balance(a, 100_00, 1)
		}
		if o, err := w.do("k", cmd); err != nil || o.Replayed {
			w.Errorf("the key is not free: %s", result(o, err))
		}
		w.proved()
	}, AnyCommand)

	law("whoever looks up the outcome of a write that runs waits for its end", func(w world) {
		a := w.opened(1, 100_00)
		cmd := refund(a, 10_00)
		for _, refused := range []bool{true, false} {
			began, end, once := make(chan struct{}), make(chan struct{}), sync.Once{}
			written := make(chan error, 1)
			go func() {
				_, err := w.do("k", command{cmd, func(v ledger.View) (ledger.Change, error) {
					once.Do(func() { close(began) }) // it may be decided again
					<-end
					if refused {
						return ledger.Change{}, fault.New(fault.PolicyViolation, "refused", "No.")
					}
					return cmd.Decide(v)
				}})
				written <- err
			}()
			<-began
			op := w.asked("k")
			ref := ledger.OutcomeRef(op.Principal, op.Key)
			hasty, stop := context.WithTimeout(w.ctx, 10*time.Millisecond)
			_, err := w.Load(hasty, op.Tenant, ref)
			stop()
			w.wantFault(err, "BACKEND_UNAVAILABLE/write_running")
			found := make(chan bool, 1)
			go func() {
				_, there := w.outcome("k")
				found <- there
			}()
			select {
			case <-found:
				close(end)
				w.Fatal("the look-up was answered while the write ran")
			case <-time.After(10 * time.Millisecond):
			}
			close(end)
			if err := <-written; (err != nil) != refused {
				w.Errorf("the write: %v", err)
			}
			if there := <-found; there == refused {
				w.Errorf("refused: %t, and an outcome: %t", refused, there)
			}
		}
		w.balance(a, 90_00, 2)
		w.proved()
	}, AnyCommand)

	law("one command may change several accounts, and book several entries on one", func(w world) {
		a, b := w.opened(1, 100_00), w.opened(2, 100_00)
		o, err := w.do("k", both(a, b, 10_00))
		if err != nil {
			w.Fatal(err)
		}
		w.balance(a, 80_00, 3)
		w.balance(b, 90_00, 2)
		again, err := w.do("k", both(a, b, 10_00))
		if err != nil || !again.Replayed || !w.same(again.Answer, o.Answer) {
			w.Errorf("the repeat: %s", result(again, err))
		}
		w.proved()
	}, AnyCommand)

	law("a command that is refused on its second account changes the first no more", func(w world) {
		a, b := w.opened(1, 100_00), w.opened(2, 5_00)
		_, err := w.do("k", both(a, b, 10_00))
		w.wantFault(err, "POLICY_VIOLATION/balance_exceeded")
		w.balance(a, 100_00, 1)
		w.balance(b, 5_00, 1)
		w.proved()
	}, AnyCommand)

	law("commands that name the same accounts in another order do not block each other", func(w world) {
		a, b := w.opened(1, 100_00), w.opened(2, 100_00)
		var seen tally
		atOnce(40, func(i int) {
			x, y := a, b
			if i%2 == 1 {
				x, y = b, a
			}
			o, err := w.do(key(), both(x, y, 1))
			seen.add(result(o, err))
		})
		w.want(&seen, "40 done")
		w.balance(a, 99_40, 61)
		w.balance(b, 99_40, 61)
		w.proved()
	}, AnyCommand)
}

// command is another with a decision of its own.
type command struct {
	ledger.Command
	decide func(ledger.View) (ledger.Change, error)
}

func (c command) Decide(v ledger.View) (ledger.Change, error) { return c.decide(v) }

// stray is a record that no store has a place for.
type stray struct{}

func (stray) Ref() ledger.Ref { return ledger.Ref{Kind: ledger.Kind{Name: "stray"}, ID: "1"} }

// bothCommand pays so many cents out of one account twice and out of another once.
type bothCommand struct {
	twice, once customers.ID
	minor       int64
}

func both(twice, once customers.ID, minor int64) bothCommand {
	return bothCommand{twice, once, minor}
}

func (bothCommand) Name() string          { return "test.both" }
func (c bothCommand) Reads() []ledger.Ref { return []ledger.Ref{c.twice.Ref(), c.once.Ref()} }
func (c bothCommand) Facts() []operation.Fact {
	return []operation.Fact{{Name: "twice", Value: c.twice.String()}, {Name: "once", Value: c.once.String()}, {Name: "minor", Value: fmt.Sprint(c.minor)}}
}

func (c bothCommand) Decide(v ledger.View) (ledger.Change, error) {
	var change ledger.Change
	accounts := map[customers.ID]customers.Account{}
	for _, id := range []customers.ID{c.twice, c.twice, c.once} {
		a, seen := accounts[id]
		if !seen {
			a, _ = ledger.Get[customers.Account](v, id.Ref())
		}
		if a.Balance().Minor() < c.minor {
			return ledger.Change{}, fault.New(fault.PolicyViolation, "balance_exceeded", "Too much.")
		}
		after, e, err := a.Post(v.Op, c.Name(), c.Facts(),
			journal.Posting{Account: journal.Refundable(id.String()), Lot: customers.OpeningLot, Side: journal.Debit, Amount: cents(c.minor)},
			journal.Posting{Account: journal.PaidOut, Side: journal.Credit, Amount: cents(c.minor)})
		if err != nil {
			return ledger.Change{}, err
		}
		accounts[id], change.Entries = after, append(change.Entries, e)
	}
	change.Put = []ledger.Record{accounts[c.twice], accounts[c.once]}
	change.Answer = accounts[c.once]
	return change, nil
}
