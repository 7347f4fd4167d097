package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/evals/bench/floors/pgfloor"
	"github.com/refundledger/refundledger/evals/bench/internal/load"
	"github.com/refundledger/refundledger/evals/bench/internal/side"
)

// postgresBenchmarks compare the ledger in PostgreSQL with the best that one
// statement for each refund does, and with as many refunds a commit as there
// are clients.
func postgresBenchmarks(o options) []side.Benchmark {
	const one, bulk = "one statement a refund", "bulk"
	d := &databases{server: o.postgres}
	var rows []side.Row
	for _, clients := range []int{1, 8, 64} {
		p := load.Plan{Clients: clients, Warm: warm, For: o.time, Every: 1, Ordered: true}
		rows = slices.Concat(rows, refundRows("product", d.openProduct, p), refundRows(one, d.openFloor, p))
		if clients > 1 {
			rows = slices.Concat(rows, refundRows(bulk, d.openFloor, load.Plan{Clients: 1, Batch: clients, Warm: warm, For: o.time, Ordered: true}))
		}
	}
	return []side.Benchmark{{
		Name: "postgres", About: "durable refunds in PostgreSQL; hot: of one customer, else of " + allCustomers, Unit: side.PerSecond,
		Setup: d.setup, Rows: rows,
		Wants: []side.Want{
			{Row: "product, hot, 64 clients", Of: one + ", hot, 64 clients", AtLeast: 8, Aim: 20},
			{Row: "product, 64 clients", Of: one + ", 64 clients", AtLeast: 1.5, Aim: 3},
			{Row: "product, hot, 1 client", Of: one + ", hot, 1 client", AtLeast: 0.5},
			{Row: "product, 1 client", Of: one + ", 1 client", AtLeast: 0.5},
			{Row: "product, 8 clients", Of: one + ", 8 clients", AtLeast: 0.55, Aim: 0.9},
			{Row: "product, hot, 64 clients", Of: "product, 64 clients", AtLeast: 0.8},
		},
	}}
}

// databases makes databases on a server: templates once, a copy for each
// measurement.
type databases struct {
	server string // URL, "" for none
	admin  *pgx.Conn
	prefix string
	copies atomic.Int64
}

// The templates.
const (
	productTemplate = "product"
	floorTemplate   = "floor"
)

// connect opens the server and says how it syncs.
func (d *databases) connect(ctx context.Context) (err error) {
	if d.server == "" {
		return side.Skip{Why: "no PostgreSQL; name one with -pg postgres://user@host/database"}
	}
	if d.admin, err = pgx.Connect(ctx, d.server); err != nil {
		return err
	}
	d.prefix = "refundledger_bench_" + strconv.FormatInt(time.Now().UnixNano(), 36) + "_"
	var version, fsync, commit string
	err = d.admin.QueryRow(ctx, `select current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')`).Scan(&version, &fsync, &commit)
	fmt.Printf("PostgreSQL %s, fsync %s, synchronous_commit %s\n", version, fsync, commit)
	return err
}

// setup makes both templates, and returns what drops them.
func (d *databases) setup(ctx context.Context) (func() error, error) {
	if err := d.connect(ctx); err != nil {
		return nil, err
	}
	err := errors.Join(
		d.template(ctx, floorTemplate, pgfloor.Create),
		d.template(ctx, productTemplate, func(ctx context.Context, url string) error {
			p, err := d.product(ctx, url)
			if err != nil {
				return err
			}
			return errors.Join(p.openAll(ctx, load.Customers), p.Close())
		}))
	if err != nil {
		return nil, errors.Join(err, d.tidy())
	}
	return d.tidy, nil
}

// tidy drops the templates, also after an interrupt.
func (d *databases) tidy() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	return errors.Join(d.drop(ctx, floorTemplate), d.drop(ctx, productTemplate), d.admin.Close(ctx))
}

// url is that of one of our databases.
func (d *databases) url(name string) (string, error) {
	u, err := url.Parse(d.server)
	if err != nil {
		return "", errors.New("-pg must be a URL: postgres://user@host/database")
	}
	u.Path = "/" + d.prefix + name
	return u.String(), nil
}

// product makes the product's schema, if it is not there, and opens it.
func (d *databases) product(ctx context.Context, url string) (product, error) {
	if err := postgres.Migrate(ctx, url); err != nil {
		return product{}, err
	}
	s, err := postgres.Open(ctx, url)
	if err != nil {
		return product{}, err
	}
	return product{s, s.Close}, nil
}

// template makes a database, fills it and leaves it as a quiet one would be.
func (d *databases) template(ctx context.Context, name string, fill func(ctx context.Context, url string) error) error {
	if err := d.create(ctx, name, "template1"); err != nil {
		return err
	}
	url, err := d.url(name)
	if err != nil {
		return err
	}
	if err := fill(ctx, url); err != nil {
		return err
	}
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, "vacuum analyze")
	return errors.Join(err, c.Close(ctx))
}

func (d *databases) create(ctx context.Context, name, template string) error {
	const objectInUse = "55006" // somebody is still leaving the template
	for try := 0; ; try++ {
		_, err := d.admin.Exec(ctx, "create database "+pgx.Identifier{d.prefix + name}.Sanitize()+" template "+pgx.Identifier{template}.Sanitize())
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != objectInUse || try == 50 {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (d *databases) drop(ctx context.Context, name string) error {
	_, err := d.admin.Exec(ctx, "drop database if exists "+pgx.Identifier{d.prefix + name}.Sanitize()+" with (force)")
	return err
}

// copied opens a copy of a template.
func (d *databases) copied(ctx context.Context, template string, open func(ctx context.Context, url string) (load.Ledger, error)) (load.Ledger, error) {
	name := "run" + strconv.FormatInt(d.copies.Add(1), 10)
	if err := d.create(ctx, name, d.prefix+template); err != nil {
		return nil, err
	}
	if _, err := d.admin.Exec(ctx, "checkpoint"); err != nil {
		// Not every user may. The server then writes in a measurement what the
		// ones before it left.
		fmt.Fprintln(os.Stderr, "bench: no checkpoint before a measurement:", err)
	}
	url, err := d.url(name)
	if err != nil {
		return nil, err
	}
	l, err := open(ctx, url)
	if err != nil {
		return nil, errors.Join(err, d.drop(ctx, name))
	}
	return dropped{l, func() error { return d.drop(context.WithoutCancel(ctx), name) }}, nil
}

func (d *databases) openProduct(ctx context.Context, _ load.Plan) (load.Ledger, error) {
	return d.copied(ctx, productTemplate, func(ctx context.Context, url string) (load.Ledger, error) {
		return d.product(ctx, url)
	})
}

func (d *databases) openFloor(ctx context.Context, p load.Plan) (load.Ledger, error) {
	return d.copied(ctx, floorTemplate, func(ctx context.Context, url string) (load.Ledger, error) {
		if p.Batch > 1 {
			return pgfloor.OpenBulk(ctx, url)
		}
		return pgfloor.Open(ctx, url, p.Clients)
	})
}

// dropped is a ledger whose database goes when it is closed.
type dropped struct {
	load.Ledger
	drop func() error
}

func (d dropped) Close() error { return errors.Join(d.Ledger.Close(), d.drop()) }
