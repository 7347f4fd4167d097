// Package portstest holds the laws that every ledger passes: each is a sentence
// and the code that shows it. An adapter's test gives a constructor and says
// what its store lacks, if anything:
//
//	func TestLaws(t *testing.T) {
//		portstest.Ledger(t, func(testing.TB) portstest.Store { return memory.New() })
//	}
//
//	func TestLikeMemory(t *testing.T) {
//		portstest.Model(t, open, func(testing.TB) portstest.Store { return memory.New() })
//	}
//
// There is one file for each subject; a new subject adds its own. The laws know
// nothing of how a store works and need no hurry: it may be across a network.
// Every law opens its customers with [customers.Open]; the test of a client
// whose server has no resource for that wraps the client and opens them behind
// it. What a ledger can not be asked to do, such as to lose an answer, is tested
// where the adapter is.
package portstest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

// Store is a ledger with its readers.
type Store interface {
	ports.Ledger
	ports.Refunds
	ports.Journal
}

// Power is what a law relies on and a store may lack. The laws that need it are
// skipped, and say so.
type Power string

const (
	// AnyCommand: the store runs every command of this process. A client that
	// sends commands to a server knows only those that have a form on the wire.
	AnyCommand Power = "run any command"
	// Operator: the store runs the commands of an operator, who corrects, reverses
	// and imports.
	Operator Power = "run the operator's commands"
	// ManyTenants: the store serves every tenant. A client whose token is one
	// tenant's does not.
	ManyTenants Power = "serve many tenants"
	// Stamps: what an operation creates is named by its id and dated by its time.
	// A client's server has ids and a clock of its own.
	Stamps Power = "name and date by the operation"
	// KeepsPayables: the store is a [ports.Payables] too. It is seen from the store
	// itself; nobody has to say so.
	KeepsPayables Power = "keep payables"
	// Counts: the store is a [ports.Census] too. That is seen from the store as well.
	Counts Power = "count what it holds"
)

// Ledger checks every law on stores that open makes: fresh and empty each time,
// closed, if need be, by a Cleanup.
func Ledger(t *testing.T, open func(testing.TB) Store, lacks ...Power) {
	for _, subject := range subjects {
		t.Run(subject.name, func(t *testing.T) { check(t, subject.laws, open, lacks) })
	}
}

// Payables checks the laws of payables alone.
func Payables(t *testing.T, open func(testing.TB) Store, lacks ...Power) {
	check(t, payablesLaws, open, lacks)
}

func check(t *testing.T, laws func(add), open func(testing.TB) Store, lacks []Power) {
	laws(func(sentence string, holds func(world), needs ...Power) {
		t.Run(sentence, func(t *testing.T) {
			for _, p := range needs {
				if slices.Contains(lacks, p) {
					t.Skipf("the store can not %s", p)
				}
			}
			store := open(t)
			if _, keeps := store.(ports.Payables); !keeps && slices.Contains(needs, KeepsPayables) {
				t.Skipf("the store can not %s", KeepsPayables)
			}
			if _, counts := store.(ports.Census); !counts && slices.Contains(needs, Counts) {
				t.Skipf("the store can not %s", Counts)
			}
			holds(newWorld(t, store, lacks))
		})
	})
}

var subjects = []struct {
	name string
	laws func(add)
}{
	{"operations", operationLaws},
	{"customers", customerLaws},
	{"refunds", refundLaws},
	{"journal", journalLaws},
	{"payables", payablesLaws},
	{"at once", concurrencyLaws},
}

// add adds a law to a subject.
type add func(sentence string, holds func(world), needs ...Power)

// world is where a law is shown: a store, one tenant of it, and a principal.
type world struct {
	rapid.TB // of a test, or of one check of a property
	Store
	ctx       context.Context
	tenant    access.Tenant
	principal string
	lacks     []Power
}

var (
	usd = must(money.ParseCurrency("USD"))
	// start is when the first operation of a test is asked; each further one is
	// a little later.
	start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	count atomic.Int64
)

func newWorld(t rapid.TB, s Store, lacks []Power) world {
	return world{t, s, context.Background(), must(access.ParseTenant("acme")), "bot", lacks}
}

// in is the world of another tenant of the same store.
func (w world) in(tenant string) world {
	w.tenant = must(access.ParseTenant(tenant))
	return w
}

// as is the world of another principal of the same tenant.
func (w world) as(principal string) world {
	w.principal = principal
	return w
}

// asked is a new attempt under the key.
func (w world) asked(key string) operation.Operation {
	op := operation.Operation{
		Tenant: w.tenant, Principal: w.principal, Tool: "trigger_refund", Key: must(operation.ParseKey(key)),
		At: start.Add(time.Duration(count.Add(1)) * time.Millisecond),
	}
	if _, err := rand.Read(op.ID[:]); err != nil {
		panic(err)
	}
	op.ID[6], op.ID[8] = op.ID[6]&0x0f|0x40, op.ID[8]&0x3f|0x80
	return op
}

// key is one that no test has used.
func key() string { return fmt.Sprintf("key-%d", count.Add(1)) }

// do runs cmd under the key.
func (w world) do(key string, cmd ledger.Command) (ledger.Outcome, error) {
	return w.Do(w.ctx, w.asked(key), cmd)
}

// done runs cmd under a new key, which must work.
func (w world) done(cmd ledger.Command) ledger.Outcome {
	w.Helper()
	o, err := w.do(key(), cmd)
	if err != nil {
		w.Fatalf("%s: %v", cmd.Name(), err)
	}
	return o
}

// opening is the command that opens the customer of that number with so many
// minor units.
func opening(number int, balance money.Amount) customers.Open {
	return customers.Open{
		ID:      customer(number),
		Profile: customers.Profile{Name: fmt.Sprintf("Customer %d", number), Email: fmt.Sprintf("c%d@example.com", number)},
		Status:  customers.Active, Opening: balance, CreatedAt: time.Date(2024, 1, 15, 9, 30, 0, 0, time.UTC),
	}
}

func customer(number int) customers.ID {
	return must(customers.ParseID(fmt.Sprintf("CUST-%05d", number)))
}

func cents(n int64) money.Amount { return money.FromMinor(n, usd) }

// opened opens a customer with so many cents.
func (w world) opened(number int, minor int64) customers.ID {
	w.Helper()
	w.done(opening(number, cents(minor)))
	return customer(number)
}

func refund(c customers.ID, minor int64) refunds.Trigger {
	return refunds.Trigger{Request: refunds.Request{Customer: c, Amount: cents(minor), Reason: reason("Arrived broken.")}}
}

func reason(s string) refunds.Reason { return must(refunds.ParseReason(s)) }

// account loads the customer's account, which must be there.
func (w world) account(c customers.ID) customers.Account {
	w.Helper()
	a, ok := get[customers.Account](w, c.Ref())
	if !ok {
		w.Fatalf("there is no account %s", c)
	}
	return a
}

func get[R ledger.Record](w world, ref ledger.Ref) (R, bool) {
	w.Helper()
	v, err := w.Load(w.ctx, w.tenant, ref)
	if err != nil {
		w.Fatalf("Load(%s %s): %v", ref.Kind.Name, ref.ID, err)
	}
	return ledger.Get[R](v, ref)
}

// outcome loads what the principal's key led to.
func (w world) outcome(key string) (ledger.Outcome, bool) {
	w.Helper()
	return get[ledger.Outcome](w, ledger.OutcomeRef(w.principal, must(operation.ParseKey(key))))
}

// balance checks an account's balance in cents and its version.
func (w world) balance(c customers.ID, minor, version int64) {
	w.Helper()
	if a := w.account(c); a.Balance().Minor() != minor || a.Version() != version {
		w.Errorf("%s has %s at version %d, want %s at version %d", c, a.Balance(), a.Version(), money.FromMinor(minor, a.Currency), version)
	}
}

// refundsOf lists all refunds of a customer, newest first.
func (w world) refundsOf(c customers.ID) []refunds.Refund {
	w.Helper()
	list, err := w.ListRefunds(w.ctx, w.tenant, c, 0, math.MaxInt32)
	if err != nil {
		w.Fatalf("ListRefunds(%s): %v", c, err)
	}
	return list
}

// entriesOf lists all entries of a customer.
func (w world) entriesOf(c customers.ID) []journal.Entry {
	w.Helper()
	list, err := w.ListEntries(w.ctx, w.tenant, subject(c), 0, math.MaxInt32)
	if err != nil {
		w.Fatalf("ListEntries(%s): %v", c, err)
	}
	return list
}

// accounts lists all accounts of the tenant.
func (w world) accounts() []customers.Account {
	w.Helper()
	list, err := w.ListAccounts(w.ctx, w.tenant, "", math.MaxInt32)
	if err != nil {
		w.Fatalf("ListAccounts: %v", err)
	}
	return list
}

func subject(c customers.ID) journal.Subject {
	return journal.Subject{Kind: customers.Kind.Name, ID: c.String()}
}

// proved checks that the entries of each account of the tenant verify and add
// up to what is on record, and that its refunds are those its entries booked.
func (w world) proved() {
	w.Helper()
	for _, a := range w.accounts() {
		h := customers.NewHistory(a)
		var booked []int64
		for _, e := range w.entriesOf(a.ID) {
			if err := h.Add(e); err != nil {
				w.Fatal(err)
			}
			if e.Operation().Tenant != w.tenant {
				w.Fatalf("entry %d of %s is of the tenant %s", e.Number(), a.ID, e.Operation().Tenant)
			}
			if e.Command() == refunds.TriggerName {
				booked = append(booked, e.Number())
			}
		}
		if err := h.Close(); err != nil {
			w.Fatal(err)
		}
		slices.Reverse(booked)
		var listed []int64
		for _, r := range w.refundsOf(a.ID) {
			listed = append(listed, r.Number)
		}
		if !slices.Equal(booked, listed) {
			w.Fatalf("%s: the entries %v booked refunds, those listed are %v", a.ID, booked, listed)
		}
	}
}

// wantFault checks that err is a fault of the code and reason, written
// CODE/reason.
func (w world) wantFault(err error, want string) {
	w.Helper()
	if got := faultOf(err); got != want {
		w.Errorf("got %q (%v), want %s", got, err, want)
	}
}

// faultOf is the code and reason of err, "" for none, and the text of an error
// that is no fault.
func faultOf(err error) string {
	if err == nil {
		return ""
	}
	if f := fault.Of(err); f != nil {
		return f.Code.String() + "/" + f.Reason
	}
	return "no fault: " + err.Error()
}

// shown is all that a caller gets to see of an error.
func shown(err error) string {
	f := fault.Of(err)
	if f == nil {
		return err.Error()
	}
	details, _ := json.Marshal(f.Details)
	issues, _ := json.Marshal(f.Issues)
	return f.Message + " " + string(details) + " " + string(issues)
}

// same reports whether two records are alike in all that the store must keep.
func (w world) same(a, b ledger.Record) bool { return reflect.DeepEqual(w.plain(a), w.plain(b)) }

// plain is a record without what has no meaning (whether an empty list is nil)
// and what the store decides by itself.
func (w world) plain(r ledger.Record) ledger.Record {
	foreign := slices.Contains(w.lacks, Stamps)
	switch r := r.(type) {
	case customers.Account:
		if len(r.Lots) == 0 {
			r.Lots = nil
		}
		if foreign {
			r.Head.Hash = journal.Hash{}
		}
		return r
	case ledger.Booked:
		return ledger.Booked{Entry: journal.Restore(r.Number(), r.Previous(), r.Hash(), r.Subject(), r.Operation(), r.Command(), slices.Clone(r.Facts()), slices.Clone(r.Postings()))}
	case refunds.Refund:
		if foreign {
			r.ID, r.ProcessedAt = operation.ID{}, time.Time{}
		}
		return r
	case payables.Vendor:
		if len(r.Balances) == 0 {
			r.Balances = nil
		}
		if foreign {
			r.Head.Hash = journal.Hash{}
		}
		return r
	case payables.Order:
		r.Lines = slices.Clone(r.Lines)
		for n := range r.Lines {
			if len(r.Lines[n].Conversions) == 0 {
				r.Lines[n].Conversions = nil
			}
		}
		return r
	case payables.Invoice:
		if len(r.Lines) == 0 {
			r.Lines = nil
		}
		if r.Decision != nil {
			d := w.plain(*r.Decision).(payables.Decision)
			r.Decision = &d
		}
		return r
	case payables.Decision:
		r.Findings = slices.Clone(r.Findings)
		for n := range r.Findings {
			if len(r.Findings[n].Invoices) == 0 {
				r.Findings[n].Invoices = nil
			}
		}
		if len(r.Findings) == 0 {
			r.Findings = nil
		}
		if foreign {
			r.ID, r.DecidedAt = operation.ID{}, time.Time{}
		}
		return r
	case customers.Imported:
		if foreign {
			r.ID, r.ImportedAt = operation.ID{}, time.Time{}
		}
		return r
	case ledger.Outcome:
		r.Answer = w.plain(r.Answer)
		if foreign {
			r.Operation.ID, r.Operation.At, r.Operation.Via = operation.ID{}, time.Time{}, ""
		}
		return r
	}
	return r
}

// atOnce calls do n times at once and waits for all.
func atOnce(n int, do func(i int)) {
	var ready, all sync.WaitGroup
	ready.Add(n)
	for i := range n {
		all.Go(func() {
			ready.Done()
			ready.Wait()
			do(i)
		})
	}
	all.Wait()
}

// tally counts what comes of many calls.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[what]++
}

func (c *tally) String() string {
	var lines []string
	for what, n := range c.n {
		lines = append(lines, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// want checks the tally: how often what came.
func (w world) want(c *tally, lines ...string) {
	w.Helper()
	slices.Sort(lines)
	if want := strings.Join(lines, "\n"); c.String() != want {
		w.Errorf("got:\n%s\nwant:\n%s", c, want)
	}
}

// result says in a word what came of a call.
func result(o ledger.Outcome, err error) string {
	switch {
	case err != nil:
		return faultOf(err)
	case o.Replayed:
		return "replayed"
	}
	return "done"
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
