package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/evals/bench/internal/load"
	"github.com/refundledger/refundledger/evals/bench/internal/side"
	"github.com/refundledger/refundledger/ports"
)

// payablesBenchmarks compare the match of long documents with that of short
// ones, and decisions that are committed together with decisions one at a time.
func payablesBenchmarks(o options, dir string) []side.Benchmark {
	sizes := []int{10, 100, 1_000, 10_000}
	lines := func(n int) string { return fmt.Sprintf("%d lines", n) }
	var rows []side.Row
	for _, n := range sizes {
		i, f := document(n)
		rows = append(rows, side.Row{Name: lines(n), Measure: func(ctx context.Context) (side.Sample, error) { return matching(ctx, i, f, o.time) }})
	}
	deciding := func(open func(context.Context) (desk, error), callers int) func(context.Context) (side.Sample, error) {
		return func(ctx context.Context) (side.Sample, error) {
			d, err := open(ctx)
			if err != nil {
				return side.Sample{}, err
			}
			s, err := d.decide(ctx, callers, o.time)
			return s, errors.Join(err, d.close())
		}
	}
	const one, many = "sqlite, 1 caller", "sqlite, 64 callers, one vendor"
	onFile := func(ctx context.Context) (desk, error) { return openDesk(ctx, dir, fewInvoices) }
	return []side.Benchmark{
		{
			Name: "payables/match", About: "lines matched against orders of the same size", Unit: side.PerSecond, Rows: rows,
			Wants: []side.Want{{Row: lines(10_000), Of: lines(100), AtLeast: 0.8}, {Row: lines(10_000), Of: lines(1_000), AtLeast: 0.8}},
		},
		{
			Name: "payables/route", About: "decisions about invoices: each is matched again and booked", Unit: side.PerSecond,
			Rows: []side.Row{
				{Name: "memory, 64 callers, one vendor", Measure: deciding(func(ctx context.Context) (desk, error) {
					s := memory.New()
					d := desk{store: s, close: func() error { return nil }}
					return d, d.fill(ctx, fewInvoices)
				}, 64)},
				{Name: one, Measure: deciding(onFile, 1)},
				{Name: many, Measure: deciding(onFile, 64)},
			},
			Wants: []side.Want{{Row: many, Of: one, AtLeast: 2}},
		},
	}
}

// largePayables compare the look-up of a number, and a decision, in a ledger of
// many invoices with those in one of few.
func largePayables(o options, dir string) side.Benchmark {
	name := func(what string, n int) string { return fmt.Sprintf("%s of %d", what, n) }
	desks := map[int]desk{}
	setup := func(ctx context.Context) (func() error, error) {
		tidy := func() error {
			var all []error
			for _, d := range desks {
				all = append(all, d.close())
			}
			return errors.Join(all...)
		}
		for _, n := range []int{fewInvoices, manyInvoices} {
			d, err := openDesk(ctx, dir, n)
			if err != nil {
				return nil, errors.Join(err, tidy())
			}
			desks[n] = d
		}
		return tidy, nil
	}
	rows := []side.Row{}
	for _, n := range []int{fewInvoices, manyInvoices} {
		rows = append(rows,
			side.Row{Name: name("number look-ups", n), Measure: func(ctx context.Context) (side.Sample, error) { return desks[n].lookUp(ctx, o.time) }},
			side.Row{Name: name("decisions", n), Measure: func(ctx context.Context) (side.Sample, error) { return desks[n].decide(ctx, 64, o.time) }})
	}
	return side.Benchmark{
		Name: "large/payables", About: "invoices in a SQLite file", Unit: side.PerSecond, Setup: setup, Rows: rows,
		Wants: []side.Want{
			{Row: name("number look-ups", manyInvoices), Of: name("number look-ups", fewInvoices), AtLeast: 1 / 1.5},
			{Row: name("decisions", manyInvoices), Of: name("decisions", fewInvoices), AtLeast: 1 / 1.5},
		},
	}
}

const fewInvoices, manyInvoices = 200, 200_000

// document makes an invoice of n lines that matches an order of n lines, and
// the order.
func document(n int) (payables.Invoice, payables.Facts) {
	ea, q := must(payables.ParseUnit("EA")), must(payables.ParseQuantity("3"))
	o := payables.Order{ID: must(payables.ParseOrderID("PO-1")), Vendor: must(payables.ParseVendorID("V-1")), Currency: usd, FreightLimit: cents(0)}
	i := payables.Invoice{
		ID: must(payables.ParseInvoiceID("INV-1000")), Number: must(payables.ParseNumber("1000")), Document: payables.Bill, Vendor: o.Vendor, Order: o.ID,
		Currency: usd, Tax: cents(0), Freight: cents(0), Total: cents(int64(n) * 3 * 251), Date: must(payables.ParseDate("2026-01-01")), Status: payables.Open,
	}
	received := must(payables.RestoreRatio(3, 1))
	for k := 1; k <= n; k++ {
		sku := must(payables.ParseSKU("SKU-" + strconv.Itoa(k)))
		o.Lines = append(o.Lines, payables.OrderLine{Line: k, SKU: sku, Unit: ea, Quantity: q, UnitPrice: cents(250), Received: received})
		i.Lines = append(i.Lines, payables.InvoiceLine{Line: k, OrderLine: k, SKU: sku, Unit: ea, Quantity: q, UnitPrice: cents(251), Amount: cents(3 * 251)})
	}
	return i, payables.Facts{Order: &o}
}

func cents(n int64) money.Amount { return money.FromMinor(n, usd) }

func matching(ctx context.Context, i payables.Invoice, f payables.Facts, limit time.Duration) (side.Sample, error) {
	tolerance := payables.DefaultTolerance()
	var latencies []time.Duration
	began := time.Now()
	for time.Since(began) < limit && ctx.Err() == nil {
		asked := time.Now()
		m, err := payables.Match(i, f, tolerance)
		latencies = append(latencies, time.Since(asked))
		if err != nil || m.Blocking || len(m.Findings) != len(i.Lines) {
			return side.Sample{}, fmt.Errorf("a wrong match: %d findings, %w", len(m.Findings), err)
		}
	}
	s := side.Sample{Value: float64(len(latencies)*len(i.Lines)) / time.Since(began).Seconds()}
	s.P50, s.P99 = load.Percentiles(latencies)
	return s, ctx.Err()
}

// desk decides about the invoices of a ledger.
type desk struct {
	store    ports.Ledger
	close    func() error
	invoices []payables.Invoice
}

func openDesk(ctx context.Context, dir string, n int) (desk, error) {
	to, err := files{dir}.fresh()
	if err != nil {
		return desk{}, err
	}
	s, err := sqlite.Open(ctx, to.path("ledger"))
	if err != nil {
		return desk{}, err
	}
	d := desk{store: s, close: func() error { return errors.Join(s.Close(), os.RemoveAll(to.dir)) }}
	if err := d.fill(ctx, n); err != nil {
		return desk{}, errors.Join(err, d.close())
	}
	return d, nil
}

// fill brings in n invoices of one vendor, each with a number of its own and of
// one line; they name no order.
func (d *desk) fill(ctx context.Context, n int) error {
	vendor := payables.Vendor{ID: must(payables.ParseVendorID("V-1")), Name: "Northgate Fasteners"}
	if err := d.do(ctx, "vendors", payables.ImportVendors{Vendors: []payables.Vendor{vendor}}); err != nil {
		return err
	}
	for k := range n {
		i, _ := document(1)
		i.ID = must(payables.ParseInvoiceID(fmt.Sprintf("INV-%07d", k)))
		i.Number, i.Order = must(payables.ParseNumber(strconv.Itoa(k+1))), payables.OrderID{}
		d.invoices = append(d.invoices, i)
	}
	const each = 20_000
	for from := 0; from < n; from += each {
		part := d.invoices[from:min(n, from+each)]
		if err := d.do(ctx, "invoices-"+strconv.Itoa(from), payables.ImportInvoices{Invoices: part}); err != nil {
			return err
		}
	}
	return nil
}

func (d *desk) do(ctx context.Context, key string, cmd ledger.Command) error {
	op, err := newOperation(key)
	if err == nil {
		_, err = d.store.Do(ctx, op, cmd)
	}
	return err
}

var decisions atomic.Int64 // no two of the process are the same

// decide holds invoices, one after the other and each for another reason than
// before, from so many callers.
func (d desk) decide(ctx context.Context, callers int, limit time.Duration) (side.Sample, error) {
	reasons := []payables.ReasonCode{payables.NeedsReview, must(payables.ParseReasonCode("MISSING_PO"))}
	var mu sync.Mutex
	var latencies []time.Duration
	var failed error
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		all.Go(func() {
			var own []time.Duration
			var err error
			for time.Since(began) < limit && err == nil {
				n := decisions.Add(1)
				i := d.invoices[int(n)%len(d.invoices)]
				cmd := payables.Route{
					Request:   payables.Request{Invoice: i.ID, Action: payables.Hold, Reason: reasons[int(n)/len(d.invoices)%2]},
					Links:     payables.LinksOf(i, nil),
					Authority: payables.Authority{Tolerance: payables.DefaultTolerance()},
				}
				asked := time.Now()
				err = d.do(ctx, "decide-"+strconv.FormatInt(n, 10), cmd)
				own = append(own, time.Since(asked))
			}
			mu.Lock()
			defer mu.Unlock()
			latencies, failed = append(latencies, own...), errors.Join(failed, err)
		})
	}
	all.Wait()
	s := side.Sample{Value: float64(len(latencies)) / time.Since(began).Seconds()}
	s.P50, s.P99 = load.Percentiles(latencies)
	return s, failed
}

// lookUp reads who carries a number.
func (d desk) lookUp(ctx context.Context, limit time.Duration) (side.Sample, error) {
	var latencies []time.Duration
	began := time.Now()
	for time.Since(began) < limit {
		i := d.invoices[len(latencies)*7919%len(d.invoices)]
		asked := time.Now()
		v, err := d.store.Load(ctx, tenant, i.ClaimRef())
		latencies = append(latencies, time.Since(asked))
		if err != nil {
			return side.Sample{}, err
		}
		if c, ok := ledger.Get[payables.NumberClaim](v, i.ClaimRef()); !ok || c.Claims[0].Invoice != i.ID {
			return side.Sample{}, fmt.Errorf("the number of %s is not its own", i.ID)
		}
	}
	s := side.Sample{Value: float64(len(latencies)) / time.Since(began).Seconds()}
	s.P50, s.P99 = load.Percentiles(latencies)
	return s, nil
}
