package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/evals/bench/internal/load"
	"github.com/refundledger/refundledger/evals/bench/internal/side"
)

const (
	// smallEntries is how many entries a small ledger has; -entries says how many
	// a large one has.
	smallEntries = 5_000
	// Of the entries of a large ledger every tenth is a refund of customer manyOf,
	// and fewRefunds are of customer fewOf; the rest is spread over the others.
	largeCustomers = 1_000
	others         = largeCustomers - 2
	manyOf, fewOf  = others, others + 1
	fewRefunds     = 100
	// page is how many refunds a listed page has.
	page = 50
)

// backend is where empty ledgers come from.
type backend struct {
	name string
	// setup prepares for fresh, and returns what tidies up.
	setup func(context.Context) (func() error, error)
	// fresh makes an empty ledger, which is gone when it is closed.
	fresh func(context.Context) (product, error)
}

// largeBenchmarks compare the product with itself: neither a refund nor a page
// of a list may cost more because much is there already.
func largeBenchmarks(o options, dir string) []side.Benchmark {
	nothing := func(context.Context) (func() error, error) { return func() error { return nil }, nil }
	files, server := files{dir}, &databases{server: o.postgres}
	return []side.Benchmark{
		large(o, backend{"memory", nothing, freshMemory}),
		large(o, backend{"sqlite", nothing, files.freshProduct}),
		large(o, backend{"postgres", server.connected, server.freshProduct}),
	}
}

func large(o options, on backend) side.Benchmark {
	manyRefunds := o.entries / 10
	refundsSmall, refundsLarge := fmt.Sprintf("refunds at %d entries", smallEntries), fmt.Sprintf("refunds at %d entries", o.entries)
	pageFew, pageMany := fmt.Sprintf("newest page of %d refunds", fewRefunds), fmt.Sprintf("newest page of %d refunds", manyRefunds)
	pageMiddle := fmt.Sprintf("middle page of %d refunds", manyRefunds)
	plan := load.Plan{Clients: 64, Customers: others, Warm: warm, For: o.time, Every: 1, Ordered: true}
	small := func(ctx context.Context, _ load.Plan) (load.Ledger, error) {
		p, err := on.fresh(ctx)
		if err != nil {
			return nil, err
		}
		if err := p.fillUp(ctx, smallEntries, 0, 0); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		return p, nil
	}
	var full product // for all rounds: filling it takes minutes
	setup := func(ctx context.Context) (func() error, error) {
		tidy, err := on.setup(ctx)
		if err != nil {
			return nil, err
		}
		if full, err = on.fresh(ctx); err != nil {
			return nil, errors.Join(err, tidy())
		}
		if err := full.fillUp(ctx, o.entries, manyRefunds, fewRefunds); err != nil {
			return nil, errors.Join(err, full.Close(), tidy())
		}
		return func() error {
			err := full.Close()
			full = product{} // the next backend is not to be measured beside a full memory
			return errors.Join(err, tidy())
		}, nil
	}
	compared := &pages{of: []listed{{fewOf, 0}, {manyOf, 0}, {manyOf, int64(manyRefunds / 2)}}}
	paging := func(own int) func(context.Context) (side.Sample, error) {
		return func(ctx context.Context) (side.Sample, error) { return compared.sample(ctx, full, own, o.time) }
	}
	return side.Benchmark{
		Name: "large/" + on.name, About: fmt.Sprintf("refunds from 64 clients, and pages of %d of list_refunds for one", page), Unit: side.PerSecond,
		Setup: setup,
		Rows: []side.Row{
			{Name: refundsSmall, Measure: refunding(small, plan)},
			{Name: refundsLarge, Measure: func(ctx context.Context) (side.Sample, error) { return plan.Run(ctx, full) }},
			{Name: pageFew, Measure: paging(0)},
			{Name: pageMany, Measure: paging(1)},
			{Name: pageMiddle, Measure: paging(2)},
		},
		Wants: []side.Want{
			{Row: refundsLarge, Of: refundsSmall, AtLeast: 0.8},
			{Row: pageMany, Of: pageFew, AtLeast: 0.8, Aim: 1},
			{Row: pageMiddle, Of: pageFew, AtLeast: 0.8, Aim: 1},
		},
	}
}

// fillUp makes an empty ledger one of so many entries, among them the refunds
// of two customers; the rest is spread over the others.
func (p product) fillUp(ctx context.Context, entries, many, few int) error {
	return errors.Join(
		p.openAll(ctx, largeCustomers),
		p.fill(ctx, "many", many, func(int) int { return manyOf }),
		p.fill(ctx, "few", few, func(int) int { return fewOf }),
		p.fill(ctx, "rest", entries-largeCustomers-many-few, func(i int) int { return i % others }))
}

// pages are pages of lists that are compared.
type pages struct {
	of   []listed
	left map[int]side.Sample // of the last time they were listed, those not given yet
}

// listed is a page of the refunds of a customer.
type listed struct {
	customer int
	before   int64
}

// turn is how many times a page is listed before it is the next one's turn.
const turn = 100

// sample returns pages in a second for the one at place own. All pages are
// listed in turns, and measured once for all of them: an answer is new memory,
// which takes much longer while the operating system has to map it first, and
// then does for every page.
func (x *pages) sample(ctx context.Context, p product, own int, limit time.Duration) (side.Sample, error) {
	if _, there := x.left[own]; !there {
		var err error
		if x.left, err = x.list(ctx, p, limit); err != nil {
			return side.Sample{}, err
		}
	}
	s := x.left[own]
	delete(x.left, own)
	return s, nil
}

// list lists the pages for the time that each of them has.
func (x *pages) list(ctx context.Context, p product, limit time.Duration) (map[int]side.Sample, error) {
	took, latencies := make([]time.Duration, len(x.of)), make([][]time.Duration, len(x.of))
	for began := time.Now(); time.Since(began) < limit*time.Duration(len(x.of)) && ctx.Err() == nil; {
		for i, l := range x.of {
			began := time.Now()
			for range turn {
				asked := time.Now()
				list, err := p.store.ListRefunds(ctx, tenant, ids[l.customer], l.before, page)
				if err != nil {
					return nil, err
				}
				latencies[i] = append(latencies[i], time.Since(asked))
				if len(list) != page || list[0].Customer != ids[l.customer] || list[0].Number != list[page-1].Number+page-1 || l.before > 0 && list[0].Number != l.before-1 {
					return nil, fmt.Errorf("a wrong page: %d refunds of %s before %d", len(list), ids[l.customer], l.before)
				}
			}
			took[i] += time.Since(began)
		}
	}
	samples := map[int]side.Sample{}
	for i := range x.of {
		s := side.Sample{Value: float64(len(latencies[i])) / took[i].Seconds()}
		s.P50, s.P99 = load.Percentiles(latencies[i])
		samples[i] = s
	}
	return samples, nil
}

func freshMemory(context.Context) (product, error) {
	return product{memory.New(), func() error { return nil }}, nil
}

func (f files) freshProduct(ctx context.Context) (product, error) {
	to, err := f.fresh()
	if err != nil {
		return product{}, err
	}
	p, err := to.product(ctx, "ledger")
	if err != nil {
		return product{}, err
	}
	return product{p.store, thrownAway{p, to.dir}.Close}, nil
}

func (d *databases) connected(ctx context.Context) (func() error, error) {
	return func() error { return d.admin.Close(context.WithoutCancel(ctx)) }, d.connect(ctx)
}

func (d *databases) freshProduct(ctx context.Context) (product, error) {
	name := "large" + strconv.FormatInt(d.copies.Add(1), 10)
	if err := d.create(ctx, name, "template1"); err != nil {
		return product{}, err
	}
	url, err := d.url(name)
	if err != nil {
		return product{}, err
	}
	drop := func() error { return d.drop(context.WithoutCancel(ctx), name) }
	p, err := d.product(ctx, url)
	if err != nil {
		return product{}, errors.Join(err, drop())
	}
	return product{p.store, dropped{p, drop}.Close}, nil
}
