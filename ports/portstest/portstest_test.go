package portstest

import (
	"context"
	"fmt"
	"math/big"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/adapters/memory"
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

// faulty is a memory ledger with a fault: what is not nil replaces a method.
type faulty struct {
	Store
	do       func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error)
	load     func(s Store, ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error)
	refunds  func(s Store, c customers.ID, before int64, limit int, all []refunds.Refund) []refunds.Refund
	entries  func([]journal.Entry) []journal.Entry
	accounts func([]customers.Account) []customers.Account
	invoices func([]payables.Invoice) []payables.Invoice
	filter   func(ports.InvoiceFilter) ports.InvoiceFilter
	before   func(int64) int64
	sums     func([]ports.InvoiceSum) []ports.InvoiceSum
	counts   func(ports.Counts) ports.Counts
}

func (f faulty) Count(ctx context.Context, t access.Tenant) (ports.Counts, error) {
	n, err := f.Store.(ports.Census).Count(ctx, t)
	if f.counts != nil {
		n = f.counts(n)
	}
	return n, err
}

func (f faulty) payables() ports.Payables { return f.Store.(ports.Payables) }

func (f faulty) ListInvoices(ctx context.Context, t access.Tenant, by ports.InvoiceFilter, after string, limit int) ([]payables.Invoice, error) {
	if f.filter != nil {
		by = f.filter(by)
	}
	page, err := f.payables().ListInvoices(ctx, t, by, after, limit)
	if f.invoices != nil {
		page = f.invoices(page)
	}
	return page, err
}

func (f faulty) LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) ([]payables.Invoice, error) {
	if f.before != nil {
		before = f.before(before)
	}
	return f.payables().LatestInvoices(ctx, t, v, before, limit)
}

func (f faulty) SumInvoices(ctx context.Context, t access.Tenant) ([]ports.InvoiceSum, error) {
	sums, err := f.payables().SumInvoices(ctx, t)
	if f.sums != nil {
		sums = f.sums(sums)
	}
	return sums, err
}

func (f faulty) ListReceipts(ctx context.Context, t access.Tenant, o payables.OrderID, after string, limit int) ([]payables.Receipt, error) {
	return f.payables().ListReceipts(ctx, t, o, after, limit)
}

func (f faulty) ListVendors(ctx context.Context, t access.Tenant, after string, limit int) ([]payables.Vendor, error) {
	return f.payables().ListVendors(ctx, t, after, limit)
}

// put changes the records that a decision about payables puts.
func put(change func(before ledger.View, r ledger.Record) ledger.Record) func(Store, context.Context, operation.Operation, ledger.Command) (ledger.Outcome, error) {
	return decided(func(v ledger.View, cmd ledger.Command) (ledger.Change, error) {
		c, err := cmd.Decide(v)
		for n, r := range c.Put {
			c.Put[n] = change(v, r)
		}
		return c, err
	})
}

// orders changes the orders that are put.
func orders(change func(before, after payables.Order) payables.Order) func(Store, context.Context, operation.Operation, ledger.Command) (ledger.Outcome, error) {
	return put(func(v ledger.View, r ledger.Record) ledger.Record {
		o, ok := r.(payables.Order)
		if !ok {
			return r
		}
		before, _ := ledger.Get[payables.Order](v, o.Ref())
		o.Lines = slices.Clone(o.Lines)
		return change(before, o)
	})
}

// documentsLoaded changes what is loaded of payables.
func documentsLoaded(change func(ledger.Record) ledger.Record) func(Store, context.Context, access.Tenant, ...ledger.Ref) (ledger.View, error) {
	return func(s Store, ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
		v, err := s.Load(ctx, t, refs...)
		for _, ref := range refs {
			if r, _ := ledger.Get[ledger.Record](v, ref); r != nil {
				v.Put(ref, change(r))
			}
		}
		return v, err
	}
}

func (f faulty) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	if f.do == nil {
		return f.Store.Do(ctx, op, cmd)
	}
	return f.do(f.Store, ctx, op, cmd)
}

func (f faulty) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	if f.load == nil {
		return f.Store.Load(ctx, t, refs...)
	}
	return f.load(f.Store, ctx, t, refs...)
}

func (f faulty) ListRefunds(ctx context.Context, t access.Tenant, c customers.ID, before int64, limit int) ([]refunds.Refund, error) {
	if f.refunds == nil {
		return f.Store.ListRefunds(ctx, t, c, before, limit)
	}
	all, err := f.Store.ListRefunds(ctx, t, c, 0, 1000)
	return f.refunds(f.Store, c, before, limit, all), err
}

func (f faulty) ListEntries(ctx context.Context, t access.Tenant, s journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	page, err := f.Store.ListEntries(ctx, t, s, after, limit)
	if f.entries != nil {
		page = f.entries(page)
	}
	return page, err
}

func (f faulty) ListAccounts(ctx context.Context, t access.Tenant, after string, limit int) ([]customers.Account, error) {
	page, err := f.Store.ListAccounts(ctx, t, after, limit)
	if f.accounts != nil {
		page = f.accounts(page)
	}
	return page, err
}

// decided runs cmd with another decision.
func decided(decide func(ledger.View, ledger.Command) (ledger.Change, error)) func(Store, context.Context, operation.Operation, ledger.Command) (ledger.Outcome, error) {
	return func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
		return s.Do(ctx, op, command{cmd, func(v ledger.View) (ledger.Change, error) { return decide(v, cmd) }})
	}
}

// answered changes the answer of what is done.
func answered(change func(refunds.Refund) refunds.Refund) func(Store, context.Context, operation.Operation, ledger.Command) (ledger.Outcome, error) {
	return decided(func(v ledger.View, cmd ledger.Command) (ledger.Change, error) {
		c, err := cmd.Decide(v)
		if r, ok := c.Answer.(refunds.Refund); ok {
			c.Answer = change(r)
		}
		return c, err
	})
}

// countedApart has the records of the count before, as if they were counted first.
func countedApart() func(ports.Counts) ports.Counts {
	var before map[ledger.Kind]int64
	return func(n ports.Counts) ports.Counts {
		if before == nil {
			before = n.Records
		}
		n.Records, before = before, n.Records
		return n
	}
}

// renamed is a command with facts of its own.
type renamed struct {
	ledger.Command
	facts []operation.Fact
}

func (r renamed) Facts() []operation.Fact { return r.facts }

func TestEachFaultBreaksALaw(t *testing.T) {
	acme := must(access.ParseTenant("acme"))
	for _, tt := range []struct {
		fault string
		store faulty
		law   string // part of the sentence of one that it breaks
	}{
		{"it knows no keys", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			op.Key = must(operation.ParseKey(key()))
			return s.Do(ctx, op, cmd)
		}}, "the same key and payload"},
		{"it looks at the key alone", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			return s.Do(ctx, op, renamed{cmd, nil})
		}}, "another payload under a key"},
		{"it looks at the key before the store does", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			ref := ledger.OutcomeRef(op.Principal, op.Key)
			if v, err := s.Load(ctx, op.Tenant, ref); err == nil && op.Key.String() == "k" {
				if o, there := ledger.Get[ledger.Outcome](v, ref); there {
					return o.Replay(cmd.Name(), operation.FingerprintOf(cmd.Name(), cmd.Facts()))
				}
				time.Sleep(time.Millisecond)
				op.Key = must(operation.ParseKey(key()))
			}
			return s.Do(ctx, op, cmd)
		}}, "256 calls at once"},
		{"it takes what was filled in for what is on record", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			if c, ok := cmd.(payables.ImportInvoices); ok {
				c.Invoices = slices.Clone(c.Invoices)
				for n := range c.Invoices {
					c.Invoices[n].Synthesised = nil
				}
				cmd = c
			}
			return s.Do(ctx, op, cmd)
		}}, "takes a synthesised invoice"},
		{"its keys are everybody's", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			op.Principal = "bot"
			return s.Do(ctx, op, cmd)
		}}, "another principal's key"},
		{"its tenants are one", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			op.Tenant = acme
			return s.Do(ctx, op, cmd)
		}, load: func(s Store, ctx context.Context, _ access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
			return s.Load(ctx, acme, refs...)
		}}, "tenants are walled"},
		{"a refusal takes the key", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			o, err := s.Do(ctx, op, cmd)
			if f := fault.Of(err); f != nil && f.Code == fault.PolicyViolation {
				_, _ = s.Do(ctx, op, opening(77777, cents(1)))
			}
			return o, err
		}}, "a refusal leaves no row"},
		{"a repeat is not marked", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			o, err := s.Do(ctx, op, cmd)
			o.Replayed = false
			return o, err
		}}, "the same key and payload"},
		{"a repeat is answered with the balance of today", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			o, err := s.Do(ctx, op, cmd)
			if r, ok := o.Answer.(refunds.Refund); ok && o.Replayed {
				v, _ := s.Load(ctx, op.Tenant, r.Customer.Ref())
				a, _ := ledger.Get[customers.Account](v, r.Customer.Ref())
				r.Remaining = a.Balance()
				o.Answer = r
			}
			return o, err
		}}, "the same key and payload"},
		{"a refusal is told in its own words", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			o, err := s.Do(ctx, op, cmd)
			if f := fault.Of(err); f != nil {
				err = fault.New(f.Code, f.Reason, "constraint balance_minor_check violated")
			}
			return o, err
		}}, "what the rules refuse"},
		{"a refusal loses its code", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			o, err := s.Do(ctx, op, cmd)
			if err != nil {
				err = fmt.Errorf("the transaction was rolled back: %v", err)
			}
			return o, err
		}}, "the rules refuse in one order"},
		{"it decides on what it read before", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			before, err := s.Load(ctx, op.Tenant, cmd.Reads()...)
			if err != nil {
				return ledger.Outcome{}, err
			}
			time.Sleep(time.Millisecond)
			before.Op = op
			return s.Do(ctx, op, command{cmd, func(ledger.View) (ledger.Change, error) { return cmd.Decide(before) }})
		}}, "20 refunds of 15.00"},
		{"it commits twice", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			o, err := s.Do(ctx, op, cmd)
			if err == nil && !o.Replayed {
				op.Key = must(operation.ParseKey(key()))
				_, _ = s.Do(ctx, op, cmd)
			}
			return o, err
		}}, "256 calls at once"},
		{"it answers before it wrote, and does not write", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			if k := op.Key.String(); !strings.HasSuffix(k, "3") && !strings.HasSuffix(k, "4") {
				return s.Do(ctx, op, cmd)
			}
			v, err := s.Load(ctx, op.Tenant, cmd.Reads()...)
			if err != nil {
				return ledger.Outcome{}, err
			}
			v.Op = op
			c, err := ledger.Decide(cmd, v)
			return ledger.Outcome{Operation: op, Command: cmd.Name(), Answer: c.Answer}, err
		}}, "each of many refunds at once"},
		{"it gives up when the caller does, after it committed", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			o, err := s.Do(context.WithoutCancel(ctx), op, cmd)
			if err == nil && ctx.Err() != nil {
				return ledger.Outcome{}, fault.New(fault.BackendUnavailable, "cancelled", "Cancelled.")
			}
			return o, err
		}}, "a call whose context has ended"},
		{"it lets a panic through as a refusal", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			o, err := s.Do(ctx, op, cmd)
			if err != nil && fault.Of(err) == nil {
				err = fault.New(fault.PolicyViolation, "boom", "Boom.")
			}
			return o, err
		}}, "a panic or a broken promise"},
		{"it says that there is no outcome while the write runs", faulty{load: func(s Store, ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
			hasty, stop := context.WithTimeout(ctx, time.Millisecond)
			defer stop()
			v, err := s.Load(hasty, t, refs...)
			if f := fault.Of(err); f == nil || f.Reason != "write_running" {
				return v, err
			}
			v = ledger.NewView(operation.Operation{Tenant: t}, len(refs))
			for _, ref := range refs {
				v.Put(ref, nil)
			}
			return v, nil
		}}, "waits for its end"},
		{"it names what is created by itself", faulty{do: answered(func(r refunds.Refund) refunds.Refund { r.ID[0] ^= 1; return r })}, "named by its id"},
		{"it dates what is created by itself", faulty{do: answered(func(r refunds.Refund) refunds.Refund { r.ProcessedAt = r.ProcessedAt.Add(time.Millisecond); return r })}, "dated by its time"},
		{"it keeps money in a float", faulty{do: answered(func(r refunds.Refund) refunds.Refund {
			r.Remaining = money.FromMinor(int64(float64(r.Remaining.Minor())), r.Remaining.Currency())
			return r
		})}, "amounts are exact"},
		{"it folds line ends", faulty{do: answered(func(r refunds.Refund) refunds.Refund {
			r.Reason = reason(strings.ReplaceAll(r.Reason.String(), "\r\n", "\n"))
			return r
		})}, "a refund is kept"},
		{"it lists what it did not answer", faulty{refunds: func(_ Store, _ customers.ID, before int64, limit int, all []refunds.Refund) []refunds.Refund {
			for i := range all {
				all[i].ProcessedAt = all[i].ProcessedAt.Local().Add(1)
			}
			return all
		}}, "a refund is kept"},
		{"its pages begin with the last of the page before", faulty{refunds: func(_ Store, _ customers.ID, before int64, limit int, all []refunds.Refund) []refunds.Refund {
			i := 0
			for before > 0 && i < len(all) && all[i].Number > before {
				i++
			}
			return all[i:min(len(all), i+max(limit, 0))]
		}}, "the list of refunds begins and ends"},
		{"its pages are by offset", faulty{refunds: func(s Store, c customers.ID, before int64, limit int, all []refunds.Refund) []refunds.Refund {
			if before <= 0 || len(all) == 0 {
				return all[:min(len(all), max(limit, 0))]
			}
			_, _ = newWorld(nil, s, nil).do(key(), refund(c, 1)) // one more arrives just now
			i := slices.IndexFunc(all, func(r refunds.Refund) bool { return r.Number < before })
			if i < 0 {
				return nil
			}
			i++
			return all[min(len(all), i):min(len(all), i+max(limit, 0))]
		}}, "paging through refunds"},
		{"its refunds are the oldest first", faulty{refunds: func(_ Store, _ customers.ID, _ int64, limit int, all []refunds.Refund) []refunds.Refund {
			slices.Reverse(all)
			return all[:min(len(all), max(limit, 0))]
		}}, "the list of refunds begins and ends"},
		{"an entry is gone", faulty{entries: func(e []journal.Entry) []journal.Entry {
			return slices.DeleteFunc(e, func(e journal.Entry) bool { return e.Number() == 4 })
		}}, "entries read back verify"},
		{"an entry is changed", faulty{entries: func(page []journal.Entry) []journal.Entry {
			for i, e := range page {
				if e.Number() == 2 {
					page[i] = journal.Restore(2, e.Previous(), e.Hash(), e.Subject(), e.Operation(), e.Command(), e.Facts()[1:], e.Postings())
				}
			}
			return page
		}}, "entries read back verify"},
		{"a time loses its milliseconds", faulty{entries: func(page []journal.Entry) []journal.Entry {
			for i, e := range page {
				op := e.Operation()
				op.At = op.At.Truncate(time.Second)
				page[i] = journal.Restore(e.Number(), e.Previous(), e.Hash(), e.Subject(), op, e.Command(), e.Facts(), e.Postings())
			}
			return page
		}}, "entries read back verify"},
		{"its accounts are in the order they came", faulty{accounts: func(page []customers.Account) []customers.Account {
			slices.SortFunc(page, func(a, b customers.Account) int { return len(a.Email) - len(b.Email) })
			slices.Reverse(page)
			return page
		}}, "the list of accounts is in order"},
		{"an account loses its lots", faulty{load: func(s Store, ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
			return loaded(s, ctx, t, refs, func(a customers.Account) customers.Account {
				a.Lots = []customers.Lot{{Name: "all", Balance: a.Balance()}}
				return a
			})
		}}, "an account is kept"},
		{"a day is in the zone of the machine", faulty{load: func(s Store, ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
			return loaded(s, ctx, t, refs, func(a customers.Account) customers.Account {
				a.CreatedAt = a.CreatedAt.In(time.FixedZone("CET", 3600))
				return a
			})
		}}, "an account is kept"},
		{"its reads are behind its writes", behind(), "every history of refunds"},
		{"it counts a reversed refund no more", faulty{counts: func(n ports.Counts) ports.Counts {
			n.Records[refunds.Kind] -= n.Records[refunds.ReversalKind]
			return n
		}}, "everything is counted"},
		{"it counts one table after the other", faulty{counts: countedApart()}, "a count is of one moment"},
		{"it counts numbers, and not who carries them", faulty{counts: func(n ports.Counts) ports.Counts {
			n.Records[payables.NumberClaimKind]--
			return n
		}}, "payables are counted"},
		{"an approval consumes nothing", faulty{do: orders(func(before, after payables.Order) payables.Order {
			for n := range before.Lines {
				after.Lines[n].Billed = before.Lines[n].Billed
			}
			return after
		})}, "both approved by many at once"},
		{"an approval consumes nothing, at once with others", faulty{do: orders(func(before, after payables.Order) payables.Order {
			for n := range before.Lines {
				after.Lines[n].Billed = before.Lines[n].Billed
			}
			return after
		})}, "every history of competing approvals"},
		{"a credit note gives nothing back", faulty{do: orders(func(before, after payables.Order) payables.Order {
			for n := range before.Lines {
				if before.Lines[n].Billed.Cmp(after.Lines[n].Billed) > 0 {
					after.Lines[n].Billed = before.Lines[n].Billed
				}
			}
			return after
		})}, "a credit note gives back"},
		{"a rejection frees no number", faulty{do: put(func(v ledger.View, r ledger.Record) ledger.Record {
			if claim, ok := r.(payables.NumberClaim); ok {
				if before, there := ledger.Get[payables.NumberClaim](v, claim.Ref()); there && len(before.Claims) == len(claim.Claims) {
					return before
				}
			}
			return r
		})}, "a rejected original frees its number"},
		{"numbers are claimed as they are written", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			if c, ok := cmd.(payables.ImportInvoices); ok {
				c.Invoices = slices.Clone(c.Invoices)
				for n, i := range c.Invoices {
					c.Invoices[n].Number = payables.RestoreNumber(i.Number.String(), i.Number.String())
				}
				cmd = c
			}
			return s.Do(ctx, op, cmd)
		}}, "a duplicate is never approved"},
		{"the last decision is the answer of every repeat", faulty{do: func(s Store, ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
			o, err := s.Do(ctx, op, cmd)
			if d, ok := o.Answer.(payables.Decision); ok {
				v, _ := s.Load(ctx, op.Tenant, d.Invoice.Ref())
				i, _ := ledger.Get[payables.Invoice](v, d.Invoice.Ref())
				o.Answer = *i.Decision
			}
			return o, err
		}}, "whatever was decided since"},
		{"findings lose the invoices they name", faulty{load: documentsLoaded(func(r ledger.Record) ledger.Record {
			if d, ok := r.(payables.Decision); ok {
				d.Findings = slices.Clone(d.Findings)
				for n := range d.Findings {
					d.Findings[n].Invoices = nil
				}
				return d
			}
			return r
		})}, "a decision is kept with its findings"},
		{"conversions lose their order", faulty{load: documentsLoaded(func(r ledger.Record) ledger.Record {
			if o, ok := r.(payables.Order); ok {
				o.Lines = slices.Clone(o.Lines)
				for n := range o.Lines {
					o.Lines[n].Conversions = slices.Clone(o.Lines[n].Conversions)
					slices.Reverse(o.Lines[n].Conversions)
				}
				return o
			}
			return r
		})}, "documents come back"},
		{"lists have the lines", faulty{invoices: func(page []payables.Invoice) []payables.Invoice {
			for n := range page {
				page[n].Lines = []payables.InvoiceLine{{Line: 1}}
			}
			return page
		}}, "documents come back"},
		{"what is undecided is open", faulty{filter: func(f ports.InvoiceFilter) ports.InvoiceFilter {
			if f.Undecided && f.Status == (payables.Status{}) {
				f.Undecided, f.Status = false, payables.Open
			}
			return f
		}}, "lists of documents page"},
		{"all currencies are one", faulty{filter: func(f ports.InvoiceFilter) ports.InvoiceFilter {
			f.Currency = money.Currency{}
			return f
		}}, "lists of documents page"},
		{"the latest are always the newest", faulty{before: func(int64) int64 { return 0 }}, "lists of documents page"},
		{"what was entered at the number is before it", faulty{before: func(n int64) int64 { return n + min(n, 1) }}, "lists of documents page"},
		{"sums are of 32 bits", faulty{sums: func(sums []ports.InvoiceSum) []ports.InvoiceSum {
			for n := range sums {
				sums[n].Minor = big.NewInt(int64(int32(sums[n].Minor.Int64())))
			}
			return sums
		}}, "the sums of the invoices"},
		{"what is not there is an error", faulty{load: func(s Store, ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
			v, err := s.Load(ctx, t, refs...)
			for _, ref := range refs {
				if _, there := ledger.Get[ledger.Record](v, ref); !there {
					return v, fmt.Errorf("no rows in the result set")
				}
			}
			return v, err
		}}, "Load of what is not there"},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			if !broken(t, tt.law, func() Store {
				s := tt.store
				s.Store = memory.New()
				return s
			}) {
				t.Errorf("it breaks no law that %q", tt.law)
			}
			if broken(t, tt.law, func() Store { return memory.New() }) {
				t.Errorf("the memory ledger breaks a law that %q", tt.law)
			}
		})
	}
}

// loaded changes the accounts that are loaded.
func loaded(s Store, ctx context.Context, t access.Tenant, refs []ledger.Ref, change func(customers.Account) customers.Account) (ledger.View, error) {
	v, err := s.Load(ctx, t, refs...)
	for _, ref := range refs {
		if r, _ := ledger.Get[ledger.Record](v, ref); r != nil {
			if a, ok := r.(customers.Account); ok {
				v.Put(ref, change(a))
			}
		}
	}
	return v, err
}

// behind is a store whose reads show each account as it was one read before.
func behind() faulty {
	var mu sync.Mutex
	last := map[customers.ID]customers.Account{}
	return faulty{load: func(s Store, ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
		return loaded(s, ctx, t, refs, func(a customers.Account) customers.Account {
			mu.Lock()
			defer mu.Unlock()
			before, seen := last[a.ID]
			last[a.ID] = a
			if seen {
				return before
			}
			return a
		})
	}}
}

// broken reports whether a store breaks a law whose sentence has the text.
func broken(t *testing.T, text string, open func() Store) bool {
	found, failed := false, false
	for _, subject := range subjects {
		subject.laws(func(sentence string, holds func(world), _ ...Power) {
			if !strings.Contains(sentence, text) {
				return
			}
			found = true
			r := &recorder{}
			done := make(chan struct{})
			go func() { // a law that fails for good ends its goroutine
				defer close(done)
				defer func() {
					if p := recover(); p != nil {
						r.Error(p)
					}
				}()
				holds(newWorld(r, open(), nil))
			}()
			<-done
			failed = failed || r.Failed()
		})
	}
	if !found {
		t.Fatalf("there is no law that %q", text)
	}
	return failed
}

// recorder is a test that only notes whether it failed.
type recorder struct {
	rapid.TB
	mu     sync.Mutex
	failed bool
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Error(...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Errorf(string, ...any) { r.Error() }

func (r *recorder) Fatal(...any) {
	r.Error()
	runtime.Goexit()
}

func (r *recorder) Fatalf(string, ...any) { r.Fatal() }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// What a store lacks is said, and only the laws that need it are skipped.
func TestAStoreMayLackAPower(t *testing.T) {
	open := func(testing.TB) Store { return memory.New() }
	Ledger(t, open, AnyCommand, Operator, ManyTenants, Stamps, KeepsPayables)
	Model(t, open, open, AnyCommand, Operator, ManyTenants, Stamps)
}
