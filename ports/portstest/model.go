package portstest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

var tenants atomic.Int64

// Model runs random sequences of openings, refunds, refusals, repeats and
// reused keys, and of documents and decisions if the store keeps payables,
// against a store that open makes and one that model makes, step by
// step, and compares answers, faults, balances and journals. The model is the
// memory ledger. How many sequences and how long is rapid's -rapid.checks and
// -rapid.steps.
//
// A store that serves many tenants is made once, and each sequence has a tenant
// of its own; any other is made anew for each. One that has a method Restart, as
// the test of an adapter may give it, is restarted now and then.
func Model(t *testing.T, open, model func(testing.TB) Store, lacks ...Power) {
	var kept Store
	if !slices.Contains(lacks, ManyTenants) {
		kept = open(t)
	}
	check := func(t *testing.T, begin func(*pair, *rapid.T) map[string]func(*rapid.T)) {
		rapid.Check(t, func(rt *rapid.T) {
			store, tenant := kept, "acme"
			if store == nil {
				store = open(t)
			} else {
				tenant = fmt.Sprintf("tenant-%d", tenants.Add(1))
			}
			p := &pair{
				store: newWorld(rt, store, lacks).in(tenant),
				model: newWorld(rt, model(t), lacks).in(tenant),
			}
			actions := begin(p, rt)
			actions["repeat"], actions["reuse"], actions["look up"] = p.repeat, p.reuse, p.lookUp
			if s, ok := store.(restarter); ok {
				actions["restart"] = func(t *rapid.T) {
					if rapid.IntRange(0, 3).Draw(t, "in four") > 0 { // it takes its time
						t.Skip("not now")
					}
					if err := s.Restart(); err != nil {
						t.Fatalf("the restart: %v", err)
					}
				}
			}
			rt.Repeat(actions)
			p.finish(rt)
		})
	}
	t.Run("customers", func(t *testing.T) { check(t, (*pair).withCustomers) })
	t.Run("payables", func(t *testing.T) {
		if !keepsPayables(kept, lacks) {
			t.Skipf("the store can not %s", KeepsPayables)
		}
		check(t, (*pair).withPayables)
	})
}

// restarter is a store that a test can close and open again.
type restarter interface{ Restart() error }

func keepsPayables(s Store, lacks []Power) bool {
	_, keeps := s.(ports.Payables)
	return keeps && !slices.Contains(lacks, Operator)
}

// withCustomers begins a sequence of what is done with customers.
func (p *pair) withCustomers(t *rapid.T) map[string]func(*rapid.T) {
	for n := range customersAtFirst {
		p.do(t, request{"bot", fmt.Sprintf("first-%d", n), opening(n, cents(rapid.Int64Range(50, 5_000).Draw(t, "opening")))})
	}
	return map[string]func(*rapid.T){
		"open":     p.open,
		"refund":   p.refund,
		"refund 2": p.refund, // as often again, and often alike
		"refund 3": p.refund,
		"reverse":  p.reverse,
		"adjust":   p.adjust,
		"import":   p.imports,
		"read":     p.read,
		"list":     p.list,
		"journal":  p.journal,
		"accounts": p.accounts,
	}
}

// pair is a store, the model of it and what was asked of both.
type pair struct {
	store, model world
	asked        []request
}

type request struct {
	principal, key string
	cmd            ledger.Command
}

const customersAtFirst = 3

// Few customers, keys and amounts, so that they meet.
var (
	somebody   = rapid.IntRange(0, customersAtFirst+1)
	someone    = rapid.SampledFrom([]string{"bot", "bot", "other-bot"})
	someUnit   = rapid.SampledFrom([]money.Currency{usd, usd, usd, usd, usd, usd, must(money.ParseCurrency("JPY"))})
	someReason = rapid.SampledFrom([]string{"Arrived broken.", "kaputt 👩‍👩‍👧 gebracht", "It's \"late\";\n-- \\ % $1"})
	someMinor  = rapid.OneOf(rapid.Int64Range(1, 60), rapid.Int64Range(1, 60), rapid.Int64Range(0, 2_000),
		rapid.SampledFrom([]int64{-1, 0, 1_000_000_00, 1_000_000_01, 1<<53 + 1, 1<<63 - 1}))
	someMoney = rapid.Custom(func(t *rapid.T) money.Amount {
		return money.FromMinor(someMinor.Draw(t, "minor"), someUnit.Draw(t, "currency"))
	})
	someStatus = rapid.SampledFrom([]customers.Status{customers.Active, customers.Active, customers.Active, customers.Suspended})
)

func (p *pair) open(t *rapid.T) {
	cmd := opening(somebody.Draw(t, "customer"), someMoney.Draw(t, "opening"))
	cmd.Status = someStatus.Draw(t, "status")
	p.do(t, request{someone.Draw(t, "principal"), fmt.Sprintf("own-%d", len(p.asked)), cmd})
}

func (p *pair) refund(t *rapid.T) {
	cmd := refund(customer(somebody.Draw(t, "customer")), 0)
	cmd.Amount, cmd.Reason = someMoney.Draw(t, "amount"), reason(someReason.Draw(t, "reason"))
	p.do(t, request{someone.Draw(t, "principal"), fmt.Sprintf("own-%d", len(p.asked)), cmd})
}

func (p *pair) reverse(t *rapid.T) {
	p.operator(t, refunds.Reverse{Customer: customer(somebody.Draw(t, "customer")), Refund: rapid.Int64Range(0, 6).Draw(t, "number"), Reason: reason(someReason.Draw(t, "reason"))})
}

func (p *pair) adjust(t *rapid.T) {
	change := someMoney.Draw(t, "change")
	if rapid.Bool().Draw(t, "less") {
		change = money.FromMinor(-change.Minor(), change.Currency())
	}
	p.operator(t, customers.Adjust{Customer: customer(somebody.Draw(t, "customer")), Change: change, Why: rapid.SampledFrom([]string{"Goodwill.", "It's \"late\" – \\ % $1", ""}).Draw(t, "why")})
}

func (p *pair) imports(t *rapid.T) {
	var cmd customers.Import
	for range rapid.IntRange(0, 4).Draw(t, "customers") {
		// Few balances, so that some are there already with the same facts.
		cmd.Customers = append(cmd.Customers, opening(rapid.IntRange(customersAtFirst, customersAtFirst+5).Draw(t, "customer"), cents(rapid.Int64Range(99, 100).Draw(t, "opening"))))
	}
	p.operator(t, cmd)
}

// operator runs a command that no client sends, if the store runs any.
func (p *pair) operator(t *rapid.T, cmd ledger.Command) {
	if slices.Contains(p.store.lacks, Operator) {
		t.Skip("the store can not run it")
	}
	p.do(t, request{"operator", fmt.Sprintf("own-%d", len(p.asked)), cmd})
}

// repeat asks what was asked before, under its key.
func (p *pair) repeat(t *rapid.T) {
	if len(p.asked) == 0 {
		t.Skip("nothing to repeat")
	}
	p.do(t, rapid.SampledFrom(p.asked).Draw(t, "request"))
}

// reuse asks something under a key that was used, by the same principal or another.
func (p *pair) reuse(t *rapid.T) {
	if len(p.asked) == 0 {
		t.Skip("no key to reuse")
	}
	r := rapid.SampledFrom(p.asked).Draw(t, "request")
	r.cmd = rapid.SampledFrom(p.asked).Draw(t, "payload").cmd
	r.principal = someone.Draw(t, "principal")
	p.do(t, r)
}

// do runs a request on both and compares what came of it.
func (p *pair) do(t *rapid.T, r request) {
	if c, ok := r.cmd.(payables.Route); ok && slices.Contains(p.store.lacks, AnyCommand) {
		// A server finds the links by itself, so an old command has those of today.
		c.Links = p.model.route(c.Invoice.String(), c.Action.String(), c.Reason.String()).Links
		r.cmd = c
	}
	op := p.store.as(r.principal).asked(r.key)
	got, gotErr := p.store.Do(p.store.ctx, op, r.cmd)
	want, wantErr := p.model.Do(p.model.ctx, op, r.cmd)
	switch {
	case faultOf(gotErr) != faultOf(wantErr):
		t.Fatalf("got %v, the model %v", gotErr, wantErr)
	case wantErr != nil && shown(gotErr) != shown(wantErr):
		t.Fatalf("got   %s\nmodel %s", shown(gotErr), shown(wantErr))
	case wantErr == nil:
		p.same(t, "the outcome", got, want)
		p.load(t, want.Ref())
	}
	p.asked = append(p.asked, r)
	for _, ref := range r.cmd.Reads() {
		p.load(t, ref)
	}
}

// same compares two records.
func (p *pair) same(t *rapid.T, what string, got, want ledger.Record) {
	if got == nil && want == nil {
		return
	}
	if got == nil || want == nil || !p.store.same(got, want) {
		t.Fatalf("%s: got %+v, the model %+v", what, got, want)
	}
}

// load compares what is at a ref.
func (p *pair) load(t *rapid.T, ref ledger.Ref) {
	got, _ := get[ledger.Record](p.store, ref)
	want, _ := get[ledger.Record](p.model, ref)
	p.same(t, ref.Kind.Name+" "+ref.ID, got, want)
}

func (p *pair) lookUp(t *rapid.T) {
	if len(p.asked) == 0 {
		t.Skip("no key to look up")
	}
	r := rapid.SampledFrom(p.asked).Draw(t, "request")
	p.load(t, ledger.OutcomeRef(someone.Draw(t, "principal"), must(operation.ParseKey(r.key))))
}

func (p *pair) read(t *rapid.T) {
	c := customer(somebody.Draw(t, "customer"))
	p.load(t, c.Ref())
	p.load(t, refunds.RefOf(c, rapid.Int64Range(0, 6).Draw(t, "number")))
}

func (p *pair) list(t *rapid.T) {
	c, before, limit := customer(somebody.Draw(t, "customer")), rapid.Int64Range(-1, 8).Draw(t, "before"), rapid.IntRange(0, 4).Draw(t, "limit")
	got, err := p.store.ListRefunds(p.store.ctx, p.store.tenant, c, before, limit)
	want, _ := p.model.ListRefunds(p.model.ctx, p.model.tenant, c, before, limit)
	lists(t, p, "refunds", got, want, err)
}

func (p *pair) accounts(t *rapid.T) {
	after, limit := rapid.SampledFrom([]string{"", "CUST-00000", "CUST-00001", "CUST-00002", "CUST-00009"}).Draw(t, "after"), rapid.IntRange(0, 4).Draw(t, "limit")
	got, err := p.store.ListAccounts(p.store.ctx, p.store.tenant, after, limit)
	want, _ := p.model.ListAccounts(p.model.ctx, p.model.tenant, after, limit)
	lists(t, p, "accounts", got, want, err)
}

func (p *pair) journal(t *rapid.T) {
	c, after, limit := customer(somebody.Draw(t, "customer")), rapid.Int64Range(-1, 8).Draw(t, "after"), rapid.IntRange(0, 4).Draw(t, "limit")
	got, err := p.store.ListEntries(p.store.ctx, p.store.tenant, subject(c), after, limit)
	want, _ := p.model.ListEntries(p.model.ctx, p.model.tenant, subject(c), after, limit)
	if err != nil {
		t.Fatalf("the entries: %v", err)
	}
	p.entries(t, got, want)
}

// entries compares what was booked, and the hashes if both are of one operation.
func (p *pair) entries(t *rapid.T, got, want []journal.Entry) {
	alike := func(a, b journal.Entry) bool {
		return a.Number() == b.Number() && a.Subject() == b.Subject() && a.Command() == b.Command() &&
			slices.Equal(a.Facts(), b.Facts()) && slices.Equal(a.Postings(), b.Postings()) &&
			(slices.Contains(p.store.lacks, Stamps) || a.Hash() == b.Hash() && a.Previous() == b.Previous() && a.Operation() == b.Operation())
	}
	if !slices.EqualFunc(got, want, alike) {
		t.Fatalf("the entries: got %+v\nthe model %+v", got, want)
	}
}

func lists[R ledger.Record](t *rapid.T, p *pair, what string, got, want []R, err error) {
	alike := func(a, b R) bool { return p.store.same(a, b) }
	if err != nil || !slices.EqualFunc(got, want, alike) {
		t.Fatalf("the %s: got %+v, %v\nthe model %+v", what, got, err, want)
	}
}

// finish compares all there is, and proves it.
func (p *pair) finish(t *rapid.T) {
	lists(t, p, "accounts", p.store.accounts(), p.model.accounts(), nil)
	for _, a := range p.model.accounts() {
		lists(t, p, "refunds", p.store.refundsOf(a.ID), p.model.refundsOf(a.ID), nil)
		p.entries(t, p.store.entriesOf(a.ID), p.model.entriesOf(a.ID))
	}
	for _, r := range p.asked {
		p.load(t, ledger.OutcomeRef(r.principal, must(operation.ParseKey(r.key))))
	}
	if keepsPayables(p.store.Store, p.store.lacks) {
		p.finishPayables(t)
	}
	p.store.proved()
}
