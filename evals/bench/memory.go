package main

import (
	"context"
	"runtime"
	"slices"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/evals/bench/floors/mutexmap"
	"github.com/refundledger/refundledger/evals/bench/internal/load"
	"github.com/refundledger/refundledger/evals/bench/internal/side"
)

// memoryBenchmarks compare the ledger in memory, with journal, chain hash,
// operation records and all checks, with one mutex around a map.
func memoryBenchmarks() []side.Benchmark {
	const floor = "one mutex around a map"
	plan := load.Plan{Clients: 64, Calls: 100_000, Every: 64}
	mutexMap := func(context.Context, load.Plan) (load.Ledger, error) { return mutexmap.New(), nil }
	return []side.Benchmark{{
		Name: "memory", About: "refunds in memory; hot: of one customer, else of " + allCustomers, Unit: side.PerSecond,
		Setup: mapMemory,
		Rows: slices.Concat(
			refundRows("product", openMemory, plan),
			refundRows(floor, mutexMap, plan),
		),
		Wants: []side.Want{
			{Row: "product, hot, 64 clients", Of: floor + ", hot, 64 clients", AtLeast: 0.30},
			{Row: "product, 64 clients", Of: floor + ", 64 clients", AtLeast: 0.30},
		},
	}}
}

func openMemory(ctx context.Context, _ load.Plan) (load.Ledger, error) {
	p := product{memory.New(), func() error { return nil }}
	return p, p.openAll(ctx, load.Customers)
}

// mapMemory has the operating system map memory before anything is measured.
// Where a page fault is dear, as on many virtual machines, the rows that come
// first would else pay for those that come later.
func mapMemory(context.Context) (func() error, error) {
	const total, chunk, page = 768 << 20, 1 << 20, 4 << 10
	all := make([][]byte, total/chunk)
	for i := range all {
		all[i] = make([]byte, chunk)
		for at := 0; at < chunk; at += page {
			all[i][at] = 1
		}
	}
	runtime.KeepAlive(all)
	return func() error { return nil }, nil
}
