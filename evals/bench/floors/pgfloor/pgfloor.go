// Package pgfloor is the floor of a ledger on PostgreSQL: four small tables. One
// refund is one statement that inserts the key, takes the money and books it
// ([Open]); many at once are written as a group commit would, from one
// goroutine that never waits for a client ([OpenBulk]).
package pgfloor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/refundledger/refundledger/evals/bench/internal/load"
)

const schema = `
create table customers(id bigint primary key, balance bigint not null check(balance>=0), version bigint not null, status smallint not null) with (fillfactor=50);
create table idem(key text primary key, fingerprint bytea not null, refund_id text not null, at timestamptz not null default now());
create table journal(id bigint generated always as identity primary key, refund_id text not null, customer_id bigint not null, amount bigint not null, balance_after bigint not null, reason text not null, at timestamptz not null default now());
create table audit(id bigint generated always as identity primary key, actor text not null, action text not null, customer_id bigint not null, refund_id text not null, outcome text not null, at timestamptz not null default now());
`

// Create makes the tables and the customers in an empty database.
func Create(ctx context.Context, url string) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, schema); err != nil {
		return err
	}
	_, err = c.Exec(ctx, `insert into customers select g, $1, 1, 1 from generate_series(0, $2::bigint - 1) g`, int64(load.Opening), load.Customers)
	return err
}

// Ledger is what [Create] made.
type Ledger struct {
	pool *pgxpool.Pool
	bulk bool
}

// Open makes one statement of each refund, on a connection for each client.
func Open(ctx context.Context, url string, clients int) (*Ledger, error) {
	return open(ctx, url, clients, false)
}

// OpenBulk makes two round trips of many refunds, on one connection.
func OpenBulk(ctx context.Context, url string) (*Ledger, error) { return open(ctx, url, 1, true) }

func open(ctx context.Context, url string, connections int, bulk bool) (*Ledger, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	c.MaxConns, c.MinConns = int32(connections), int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Ledger{pool, bulk}, pool.Ping(ctx)
}

var (
	errReplay   = errors.New("the key is used")
	errDeclined = errors.New("declined")
	fingerprint = make([]byte, 32)
)

const one = `with k as (insert into idem(key,fingerprint,refund_id) values($1,$2,$3) on conflict do nothing returning key),
u as (update customers set balance=balance-$5, version=version+1 where id=$4 and status=1 and balance>=$5 and exists(select 1 from k) returning balance),
j as (insert into journal(refund_id,customer_id,amount,balance_after,reason) select $3,$4,$5,balance,$6 from u),
a as (insert into audit(actor,action,customer_id,refund_id,outcome) select 'agent','trigger_refund',$4,$3,'processed' from u)
select balance from u`

// Refund makes the refunds in one commit.
func (l *Ledger) Refund(ctx context.Context, refunds ...load.Refund) error {
	if l.bulk {
		return l.all(ctx, refunds)
	}
	for _, r := range refunds {
		var left int64
		err := l.pool.QueryRow(ctx, one, r.Key, fingerprint, "refund-"+r.Key, r.Customer, r.Minor, load.Reason).Scan(&left)
		if errors.Is(err, pgx.ErrNoRows) {
			return errDeclined
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	lock  = `select id,balance,version,status from customers where id=any($1) order by id for update`
	known = `select key from idem where key=any($1)`
	write = `with k as (insert into idem(key,fingerprint,refund_id) select * from unnest($1::text[],$2::bytea[],$3::text[])),
u as (update customers c set balance=v.b, version=v.ver from unnest($8::bigint[],$9::bigint[],$10::bigint[]) v(id,b,ver) where c.id=v.id),
j as (insert into journal(refund_id,customer_id,amount,balance_after,reason) select * from unnest($3::text[],$4::bigint[],$5::bigint[],$6::bigint[],$7::text[])),
a as (insert into audit(actor,action,customer_id,refund_id,outcome) select 'agent','trigger_refund',c,r,'processed' from unnest($3::text[],$4::bigint[]) v(r,c))
select 1`
)

type account struct {
	balance, version int64
	status           int16
}

func (l *Ledger) all(ctx context.Context, refunds []load.Refund) error {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	keys, customers := make([]string, len(refunds)), make([]int64, len(refunds))
	for i, r := range refunds {
		keys[i], customers[i] = r.Key, int64(r.Customer)
	}
	slices.Sort(customers)
	customers = slices.Compact(customers)
	accounts, err := begin(ctx, conn.Conn(), keys, customers)
	if err != nil {
		return err
	}
	n := len(refunds)
	fingerprints, ids, reasons := make([][]byte, n), make([]string, n), make([]string, n)
	of, minor, after := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, r := range refunds {
		a := accounts[int64(r.Customer)]
		if a == nil || a.status != 1 || a.balance < r.Minor {
			return errDeclined
		}
		a.balance -= r.Minor
		a.version++
		fingerprints[i], ids[i], reasons[i] = fingerprint, "refund-"+r.Key, load.Reason
		of[i], minor[i], after[i] = int64(r.Customer), r.Minor, a.balance
	}
	balances, versions := make([]int64, len(customers)), make([]int64, len(customers))
	for i, c := range customers {
		balances[i], versions[i] = accounts[c].balance, accounts[c].version
	}
	var b pgx.Batch
	b.Queue(write, keys, fingerprints, ids, of, minor, after, reasons, customers, balances, versions)
	b.Queue("commit")
	return conn.SendBatch(ctx, &b).Close()
}

// begin opens a transaction, locks the accounts and looks for the keys, in one
// round trip.
func begin(ctx context.Context, conn *pgx.Conn, keys []string, customers []int64) (map[int64]*account, error) {
	var b pgx.Batch
	b.Queue("begin")
	b.Queue(lock, customers)
	b.Queue(known, keys)
	answers := conn.SendBatch(ctx, &b)
	defer answers.Close()
	if _, err := answers.Exec(); err != nil {
		return nil, err
	}
	accounts := make(map[int64]*account, len(customers))
	rows, err := answers.Query()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var id int64
		var a account
		if err := rows.Scan(&id, &a.balance, &a.version, &a.status); err != nil {
			return nil, err
		}
		accounts[id] = &a
	}
	if rows.Err() != nil {
		return nil, rows.Err()
	}
	if rows, err = answers.Query(); err != nil {
		return nil, err
	}
	if rows.Next() {
		return nil, errReplay
	}
	rows.Close()
	return accounts, rows.Err()
}

// Refunded counts by the accounts, after it has compared them with the journal.
func (l *Ledger) Refunded(ctx context.Context) (count, minor int64, err error) {
	var booked, bookedMinor int64
	err = errors.Join(
		l.pool.QueryRow(ctx, `select sum(version-1)::bigint, sum($1-balance)::bigint from customers`, int64(load.Opening)).Scan(&count, &minor),
		l.pool.QueryRow(ctx, `select count(*), coalesce(sum(amount),0)::bigint from journal`).Scan(&booked, &bookedMinor))
	if err == nil && (count != booked || minor != bookedMinor) {
		err = fmt.Errorf("the journal holds %d refunds of %d, the accounts %d of %d", booked, bookedMinor, count, minor)
	}
	return count, minor, err
}

// Close closes the connections.
func (l *Ledger) Close() error {
	l.pool.Close()
	return nil
}
