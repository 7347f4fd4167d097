// Package postgres keeps the ledger in a PostgreSQL database, which any number
// of processes may share: the locks and the unique keys of the database are all
// that they need to agree.
package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/adapters/internal/sqlstore"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// Limits.
const (
	// Workers is how many batches one process has in flight. With 64 callers on two
	// processors one large batch beats two small ones (2,500 refunds/s of different
	// customers against 2,000, and 1,700 with four); from some 256 callers on, two
	// are a little better.
	Workers = 1
	// ConnectTimeout bounds the making of a connection, unless the URL says
	// connect_timeout.
	ConnectTimeout = 5 * time.Second
	// LockTimeout is how long a batch waits for the locks of other processes.
	LockTimeout = 10 * time.Second
	// IdleTimeout is how long a process that stops in the middle of a batch keeps
	// its locks.
	IdleTimeout = 10 * time.Second
	// Readers is how many connections read at once, unless the URL says
	// pool_max_conns.
	Readers = 8
	// analyzeFrom is how many records an import opens after which the planner is
	// told of the tables at once that have analyzeSize bytes. Else autovacuum tells
	// it, within a minute or so.
	analyzeFrom = 100
	analyzeSize = 80 << 10 // 10 pages, of which the planner starts
)

// MigrateCommand is what an operator runs to make or update the schema.
const MigrateCommand = "refund-ledgerd migrate"

// Store is a ledger in a database. Make one with [Open].
type Store struct {
	*sqlstore.Store
	db *database
}

//go:embed migrations/*.sql
var embedded embed.FS

func migrations() fs.FS {
	sub, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // the folder is in the program
	}
	return sub
}

// Open opens the ledger in the database at url. It changes nothing there: a
// schema of another version is an error that names what to run.
func Open(ctx context.Context, url string) (*Store, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	db := &database{}
	if db.readers, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	writing := config.Copy()
	writing.MaxConns, writing.MinConns = Workers, 0
	if db.writers, err = pgxpool.NewWithConfig(ctx, writing); err != nil {
		db.close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := db.check(ctx); err != nil {
		db.close()
		return nil, err
	}
	return &Store{sqlstore.New(db, dialect{}, Workers), db}, nil
}

// Do implements ports.Ledger. A large import is followed by an ANALYZE.
func (s *Store) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	o, err := s.Store.Do(ctx, op, cmd)
	if i, ok := o.Answer.(customers.Imported); ok && !o.Replayed && i.Opened >= analyzeFrom {
		s.db.analyze(ctx)
	}
	return o, err
}

// Close finishes the writes that wait and closes the connections.
func (s *Store) Close() error {
	s.Store.Close()
	s.db.close()
	return nil
}

// Who migrates while another does asks for the lock each migratePeriod, in
// seconds, up to migrateTries times.
const (
	migratePeriod = 1
	migrateTries  = 300
)

// Migrate makes the schema, or brings that of an older release up to date. It
// may run while the ledger is used, and twice at once.
func Migrate(ctx context.Context, url string) error {
	config, err := parse(url)
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config.ConnConfig)
	defer db.Close()
	if err := db.PingContext(ctx); err != nil {
		return unreachable(err)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(migratePeriod, migrateTries))
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations(), goose.WithTableName(sqlstore.VersionTable),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()), goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	have, want, err := p.GetVersions(ctx)
	if err == nil && have > want {
		return fmt.Errorf("postgres: %w", &sqlstore.VersionError{Have: have, Want: want})
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("postgres: migrate: %w", err)
	}
	return nil
}

// parse reads the URL and adds the settings that every connection has.
func parse(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The error of the parser can show parts of what it did not understand, a
		// password among them.
		return nil, errors.New("postgres: the database URL can not be understood; it has the form postgres://user:password@host:5432/database?sslmode=verify-full")
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = Readers
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = ConnectTimeout
	}
	if _, set := config.ConnConfig.RuntimeParams["application_name"]; !set {
		config.ConnConfig.RuntimeParams["application_name"] = "refundledger"
	}
	for name, value := range map[string]string{
		"lock_timeout":                        milliseconds(LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(IdleTimeout),
		"timezone":                            "UTC",
		// Every statement finds its rows by key. A plan that was made while a table
		// was small must not become a scan when it has grown.
		"plan_cache_mode":  "force_generic_plan",
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"jit":              "off",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		// A server may be set up not to wait for the disk; what is answered here is
		// durable. Stricter settings than on stay.
		_, err := c.Exec(ctx, `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`)
		return err
	}
	return config, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// database implements sqlstore.DB.
type database struct{ readers, writers *pgxpool.Pool }

func (db *database) close() {
	db.readers.Close()
	if db.writers != nil {
		db.writers.Close()
	}
}

// check compares the schema of the database with the one this program knows.
func (db *database) check(ctx context.Context) error {
	want, err := sqlstore.Newest(migrations())
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	var have int64
	err = db.readers.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM `+sqlstore.VersionTable+` WHERE is_applied`).Scan(&have)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == undefinedTable {
		err = nil // there is no schema yet
	}
	switch {
	case err != nil && db.Meaning(err) != nil:
		return unreachable(err)
	case err != nil:
		return fmt.Errorf("postgres: %w", err)
	case have != want:
		return fmt.Errorf("postgres: %w", &sqlstore.VersionError{Have: have, Want: want, Migrate: MigrateCommand})
	}
	return nil
}

// analyze tells the planner of the tables that have grown: the plans of one that
// was empty may read all of it. One that is small still is left as it is, since of
// a table that it knows to be empty the planner thinks that it stays so. Who may
// not do it is refused; autovacuum does it later.
func (db *database) analyze(ctx context.Context) {
	names := make([]string, len(sqlstore.Tables))
	for i, t := range sqlstore.Tables {
		names[i] = t.Name
	}
	var grown *string
	err := db.readers.QueryRow(ctx, `SELECT string_agg(name, ', ') FROM unnest($1::text[]) AS name WHERE pg_relation_size(name::regclass) >= $2`, names, analyzeSize).Scan(&grown)
	if err == nil && grown != nil {
		_, _ = db.readers.Exec(ctx, "ANALYZE "+*grown)
	}
}

// unreachable is the fault of a start without a database.
func unreachable(err error) error {
	return fmt.Errorf("postgres: %w (%w)", fault.New(fault.BackendUnavailable, "store_unreachable", "The ledger's database can not be reached. Try again later."), err)
}

// conn implements sqlstore.Conn.
type conn struct{ *pgxpool.Conn }

// acquire takes a connection of the pool. Whatever is in the way, nothing has
// been asked of the database yet: also a connection that turns out to be closed.
func acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	c, err := pool.Acquire(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", committer.ErrUnavailable, err)
	}
	return c, err
}

// Writer waits for a connection to write with.
func (db *database) Writer(ctx context.Context) (sqlstore.Conn, error) {
	c, err := acquire(ctx, db.writers)
	if err != nil {
		return nil, err
	}
	return conn{c}, nil
}

// Run sends all steps at once and reads their answers.
func (c conn) Run(ctx context.Context, steps ...sqlstore.Step) error {
	var b pgx.Batch
	for _, s := range steps {
		b.Queue(s.SQL, s.Args...)
	}
	err := answers(c.SendBatch(ctx, &b), steps)
	if err != nil && c.Conn.Conn().IsClosed() {
		if _, refused := errors.AsType[*pgconn.PgError](err); !refused {
			return fmt.Errorf("%w: %w", committer.ErrLost, err)
		}
	}
	return err
}

// answers reads the answer of each step.
func answers(results pgx.BatchResults, steps []sqlstore.Step) error {
	for _, s := range steps {
		if err := answer(results, s); err != nil {
			_ = results.Close()
			return err
		}
	}
	return results.Close()
}

func answer(results pgx.BatchResults, s sqlstore.Step) error {
	if s.Row == nil {
		_, err := results.Exec()
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := s.Row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Read runs the steps on one state of the database, in one round trip.
func (db *database) Read(ctx context.Context, steps ...sqlstore.Step) error {
	c, err := acquire(ctx, db.readers)
	if err != nil {
		return err
	}
	defer c.Release()
	if len(steps) > 1 {
		steps = append(append([]sqlstore.Step{{SQL: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}}, steps...), sqlstore.Step{SQL: "COMMIT"})
	}
	return conn{c}.Run(ctx, steps...)
}
