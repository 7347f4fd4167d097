// Package sqlitefloor is the floor of a ledger on SQLite: four small tables, the
// rules in the order of the statements, one connection behind a mutex, WAL and
// synchronous=FULL. One refund at a time it is one commit for each; many at once
// it is the fastest that a group commit can hope for.
package sqlitefloor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/refundledger/refundledger/evals/bench/internal/load"
)

const schema = `
create table customers(id integer primary key, balance integer not null check(balance>=0), version integer not null, status integer not null);
create table idem(key text primary key, fingerprint blob not null, refund_id text not null, at integer not null) without rowid;
create table journal(id integer primary key, refund_id text not null, customer_id integer not null, amount integer not null, balance_after integer not null, reason text not null, at integer not null);
create table audit(id integer primary key, actor text not null, action text not null, customer_id integer not null, refund_id text not null, outcome text not null, at integer not null);
with recursive g(i) as (select 0 union all select i+1 from g where i<?1-1) insert into customers select i, ?2, 1, 1 from g;
`

// Ledger is one connection with its statements prepared.
type Ledger struct {
	mu   sync.Mutex
	db   *sql.DB
	conn *sql.Conn

	statements                        []*sql.Stmt // all of these
	idem, get, update, journal, audit *sql.Stmt
	begin, commit, rollback           *sql.Stmt
}

var (
	errReplay   = errors.New("the key is used")
	errDeclined = errors.New("declined")
)

// Open makes a new ledger in a file that does not exist.
func Open(ctx context.Context, path string) (*Ledger, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	l := &Ledger{db: db}
	if err := l.prepare(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return l, nil
}

func (l *Ledger) prepare(ctx context.Context) (err error) {
	if l.conn, err = l.db.Conn(ctx); err != nil {
		return err
	}
	for _, pragma := range []string{"journal_mode=wal", "synchronous=full"} {
		if _, err := l.conn.ExecContext(ctx, "pragma "+pragma); err != nil {
			return err
		}
	}
	if _, err := l.conn.ExecContext(ctx, schema, load.Customers, load.Opening); err != nil {
		return err
	}
	for _, s := range []struct {
		text string
		at   **sql.Stmt
	}{
		{`insert into idem(key,fingerprint,refund_id,at) values(?1,?2,?3,?4) on conflict do nothing`, &l.idem},
		{`select balance,version,status from customers where id=?1`, &l.get},
		{`update customers set balance=?2, version=?3 where id=?1`, &l.update},
		{`insert into journal(refund_id,customer_id,amount,balance_after,reason,at) values(?1,?2,?3,?4,?5,?6)`, &l.journal},
		{`insert into audit(actor,action,customer_id,refund_id,outcome,at) values(?1,?2,?3,?4,?5,?6)`, &l.audit},
		{"begin immediate", &l.begin}, {"commit", &l.commit}, {"rollback", &l.rollback},
	} {
		if *s.at, err = l.conn.PrepareContext(ctx, s.text); err != nil {
			return err
		}
		l.statements = append(l.statements, *s.at)
	}
	return nil
}

// Refund makes the refunds in one commit.
func (l *Ledger) Refund(ctx context.Context, refunds ...load.Refund) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.begin.ExecContext(ctx); err != nil {
		return err
	}
	for _, r := range refunds {
		if err := l.apply(ctx, r); err != nil {
			_, failed := l.rollback.ExecContext(ctx)
			return errors.Join(err, failed)
		}
	}
	_, err := l.commit.ExecContext(ctx)
	return err
}

var fingerprint = make([]byte, 32)

func (l *Ledger) apply(ctx context.Context, r load.Refund) error {
	at, id := time.Now().UnixMicro(), "refund-"+r.Key
	done, err := l.idem.ExecContext(ctx, r.Key, fingerprint, id, at)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errReplay)
	}
	var balance, version, status int64
	if err := l.get.QueryRowContext(ctx, r.Customer).Scan(&balance, &version, &status); err != nil {
		return err
	}
	if status != 1 || balance < r.Minor {
		return errDeclined
	}
	balance -= r.Minor
	if _, err := l.update.ExecContext(ctx, r.Customer, balance, version+1); err != nil {
		return err
	}
	if _, err := l.journal.ExecContext(ctx, id, r.Customer, r.Minor, balance, load.Reason, at); err != nil {
		return err
	}
	_, err = l.audit.ExecContext(ctx, "agent", "trigger_refund", r.Customer, id, "processed", at)
	return err
}

// Refunded counts by the accounts, after it has compared them with the journal.
func (l *Ledger) Refunded(ctx context.Context) (count, minor int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var booked, bookedMinor int64
	err = errors.Join(
		l.conn.QueryRowContext(ctx, `select sum(version-1), sum(?1-balance) from customers`, load.Opening).Scan(&count, &minor),
		l.conn.QueryRowContext(ctx, `select count(*), coalesce(sum(amount),0) from journal`).Scan(&booked, &bookedMinor))
	if err == nil && (count != booked || minor != bookedMinor) {
		err = fmt.Errorf("the journal holds %d refunds of %d, the accounts %d of %d", booked, bookedMinor, count, minor)
	}
	return count, minor, err
}

// Close closes the file. Statements of a connection are not closed with it.
func (l *Ledger) Close() error {
	var err error
	for _, s := range l.statements {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, l.conn.Close(), l.db.Close())
}
