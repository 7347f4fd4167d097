package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/evals/bench/floors/sqlitefloor"
	"github.com/refundledger/refundledger/evals/bench/internal/load"
	"github.com/refundledger/refundledger/evals/bench/internal/side"
)

// sqliteBenchmarks compare the ledger in a SQLite file with one commit for each
// refund, and with as many refunds a commit as there are clients.
func sqliteBenchmarks(o options, dir string) []side.Benchmark {
	const one, bulk = "one commit a refund", "bulk"
	f := files{dir}
	var rows []side.Row
	for _, clients := range []int{1, 8, 64} {
		p := load.Plan{Clients: clients, Warm: warm, For: o.time, Every: 1, Ordered: true}
		rows = slices.Concat(rows, refundRows("product", f.openProduct, p), refundRows(one, f.openFloor, p))
		if clients > 1 {
			rows = slices.Concat(rows, refundRows(bulk, f.openFloor, load.Plan{Clients: 1, Batch: clients, Warm: warm, For: o.time, Ordered: true}))
		}
	}
	return []side.Benchmark{{
		Name: "sqlite", About: "durable refunds in a SQLite file; hot: of one customer, else of " + allCustomers, Unit: side.PerSecond,
		Setup: f.setup, Rows: rows,
		Wants: []side.Want{
			{Row: "product, hot, 64 clients", Of: one + ", hot, 64 clients", AtLeast: 6},
			{Row: "product, 64 clients", Of: one + ", 64 clients", AtLeast: 6},
			{Row: "product, hot, 64 clients", Of: bulk + ", hot, 64 a commit", AtLeast: 0.55},
			{Row: "product, 64 clients", Of: bulk + ", 64 a commit", AtLeast: 0.55},
			{Row: "product, hot, 64 clients", Of: "product, 64 clients", AtLeast: 0.8},
		},
	}}
}

// files makes ledgers in files of a directory.
type files struct{ dir string }

func (f files) path(name string) string { return filepath.Join(f.dir, name+".db") }

// setup makes the product's file that the measurements start from. It also
// comes before any floor: how the driver syncs is set once for the process.
func (f files) setup(ctx context.Context) (func() error, error) {
	p, err := f.product(ctx, "customers")
	if err != nil {
		return nil, err
	}
	return func() error { return nil }, errors.Join(p.openAll(ctx, load.Customers), p.Close())
}

// product opens the product's ledger in a file.
func (f files) product(ctx context.Context, name string) (product, error) {
	s, err := sqlite.Open(ctx, f.path(name))
	if err != nil {
		return product{}, err
	}
	return product{s, s.Close}, nil
}

// copied opens the product's ledger in a copy of a file and of its log, if it
// left one.
func (f files) copied(ctx context.Context, name string) (load.Ledger, error) {
	to, err := f.fresh()
	if err != nil {
		return nil, err
	}
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(f.path(name) + suffix)
		if errors.Is(err, os.ErrNotExist) && suffix != "" {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(to.path(name)+suffix, b, 0o600); err != nil {
			return nil, err
		}
	}
	p, err := to.product(ctx, name)
	if err != nil {
		return nil, err
	}
	return thrownAway{p, to.dir}, nil
}

func (f files) openProduct(ctx context.Context, _ load.Plan) (load.Ledger, error) {
	return f.copied(ctx, "customers")
}

func (f files) openFloor(ctx context.Context, _ load.Plan) (load.Ledger, error) {
	to, err := f.fresh()
	if err != nil {
		return nil, err
	}
	l, err := sqlitefloor.Open(ctx, to.path("floor"))
	if err != nil {
		return nil, err
	}
	return thrownAway{l, to.dir}, nil
}

func (f files) fresh() (files, error) {
	dir, err := os.MkdirTemp(f.dir, "")
	return files{dir}, err
}

// thrownAway is a ledger whose directory goes when it is closed.
type thrownAway struct {
	load.Ledger
	dir string
}

func (t thrownAway) Close() error {
	err := t.Ledger.Close()
	if e := os.RemoveAll(t.dir); e != nil {
		return errors.Join(err, fmt.Errorf("removing the measured files: %w", e))
	}
	return err
}
