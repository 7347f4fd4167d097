// Package sqlite keeps the ledger in one SQLite file, for one machine: WAL,
// synchronous=FULL, one connection that writes in groups and a few that read.
// Another process may have the same file open; each decision is made inside
// BEGIN IMMEDIATE, on what is in the file at that moment.
package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/refundledger/refundledger/adapters/internal/sqlstore"
)

// Limits and settings.
const (
	// BusyTimeout is how long a statement waits for another process.
	BusyTimeout = 10 * time.Second
	// Readers is how many connections read at once.
	Readers = 4
	// checkpointPages is how long the write-ahead log grows before it is copied
	// into the file: a page that is written often is copied once.
	checkpointPages = 8000
	// cacheKiB is the page cache of each connection.
	cacheKiB = 16 << 10
)

// Store is a ledger in a file. Make one with [Open].
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

var once sync.Once

// Open opens the ledger in the file at path, and makes it if it is not there.
// The schema of an older release is brought up to date; that of a newer one is
// refused.
func Open(ctx context.Context, path string) (*Store, error) {
	once.Do(func() {
		// Where these are not available, SQLite's own way is right too.
		_, _ = driver.Fdatasync(true)  // as durable as fsync, and faster
		_, _ = driver.OFDLocking(true) // locks survive a close of the file elsewhere in the process
	})
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if err := prepare(ctx, path); err != nil {
		return nil, fmt.Errorf("sqlite: the ledger file %s: %w", path, explain(err))
	}
	writer, err := driver.NewConnector(dsn(path))
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	db := &database{readers: open(path, "&_pragma=query_only(true)"), writer: writer, turn: make(chan struct{}, 1)}
	db.readers.SetMaxOpenConns(Readers)
	db.readers.SetMaxIdleConns(Readers)
	return &Store{sqlstore.New(db, dialect{}, 1), db}, nil
}

// OpenExisting is [Open] for a file that must be a ledger already, of this
// release or an older one. Nothing becomes of any other file.
func OpenExisting(ctx context.Context, path string) (*Store, error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	// Without the settings of the others, which would make the file a ledger's.
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: at}).String()+"?mode=ro&_pragma=busy_timeout("+strconv.FormatInt(BusyTimeout.Milliseconds(), 10)+")")
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	have, err := version(ctx, db)
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, fmt.Errorf("sqlite: the ledger file %s: %w", at, explain(err))
	}
	if have == 0 {
		return nil, fmt.Errorf("sqlite: the file %s is no ledger: it has none of its tables", at)
	}
	return Open(ctx, path)
}

// Close finishes the writes that wait and closes the file.
func (s *Store) Close() error {
	s.Store.Close()
	return s.db.close()
}

// dsn names the file and what each connection to it sets.
func dsn(path string) string {
	at := url.URL{Scheme: "file", Path: path}
	pragma := func(name, value string) string { return "&_pragma=" + name + "(" + value + ")" }
	return at.String() + "?_dqs=0" +
		pragma("busy_timeout", strconv.FormatInt(BusyTimeout.Milliseconds(), 10)) +
		pragma("journal_mode", "wal") +
		pragma("synchronous", "full") +
		pragma("wal_autocheckpoint", strconv.Itoa(checkpointPages)) +
		pragma("cache_size", "-"+strconv.Itoa(cacheKiB)) +
		pragma("foreign_keys", "on") +
		pragma("trusted_schema", "off")
}

// open makes a pool of connections to the file; it opens none yet.
func open(path, more string) *sql.DB {
	db, err := sql.Open("sqlite", dsn(path)+more)
	if err != nil {
		panic(err) // the driver is in the program
	}
	return db
}

// migrateTries is how often a migration is begun while other processes do the
// same: the one that is second finds the work done.
const migrateTries = 5

// busyPause is the pause after a file that was busy without a wait.
const busyPause = 10 * time.Millisecond

// prepare makes the file and its schema, and makes sure that it can be written.
func prepare(ctx context.Context, path string) error {
	// The file holds names and addresses: nobody else on the machine reads it.
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err == nil {
		_ = f.Close()
	}
	db := open(path, "&_txlock=immediate")
	defer db.Close()
	want, err := sqlstore.Newest(migrations())
	if err != nil {
		return err
	}
	began := time.Now()
	for try := 1; ; try++ {
		have, err := version(ctx, db)
		if err == nil && have == want {
			if err = writable(ctx, db); err == nil {
				return nil
			}
		}
		switch {
		case codeOf(err) == code.SQLITE_BUSY && time.Since(began) < BusyTimeout && ctx.Err() == nil:
			// SQLite does not wait where it could wait for ever, as when two make the
			// write-ahead log at once.
			time.Sleep(busyPause)
			try--
			continue
		case err != nil:
			return err
		case have > want:
			return &sqlstore.VersionError{Have: have, Want: want}
		case try > migrateTries:
			return fmt.Errorf("the schema has version %d still, after the migrations to %d: its table %s is damaged", have, want, sqlstore.VersionTable)
		}
		p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations(), goose.WithTableName(sqlstore.VersionTable),
			goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
		if err != nil {
			return err
		}
		if _, err = p.Up(ctx); err != nil && try == migrateTries {
			return err
		}
	}
}

// version returns the version of the schema, 0 if there is none.
func version(ctx context.Context, db *sql.DB) (int64, error) {
	var there bool
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = $1`, sqlstore.VersionTable).Scan(&there); err != nil || !there {
		return 0, err
	}
	var have int64
	err := db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+sqlstore.VersionTable+` WHERE is_applied`).Scan(&have)
	return have, err
}

// writable begins a write and leaves it.
func writable(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	return tx.Rollback()
}

// database implements sqlstore.DB.
type database struct {
	readers *sql.DB
	read    sync.Map // text of a query -> *sql.Stmt of readers

	writer sqldriver.Connector
	turn   chan struct{} // holds one value while conn is in use
	conn   *conn         // nil until it is needed, and after it broke
}

// Read runs the steps on one state of the file.
func (db *database) Read(ctx context.Context, steps ...sqlstore.Step) error {
	// Prepared before a connection is held: to prepare takes one too, and the pool
	// could be full of readers that each wait for a second.
	prepared := make([]*sql.Stmt, len(steps))
	for i, s := range steps {
		var err error
		if prepared[i], err = db.prepared(ctx, s.SQL); err != nil {
			return err
		}
	}
	if len(steps) == 1 {
		return query(ctx, prepared[0], steps[0])
	}
	tx, err := db.readers.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for i, s := range steps {
		if err := query(ctx, tx.StmtContext(ctx, prepared[i]), s); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// prepared returns the statement for a query, prepared once.
func (db *database) prepared(ctx context.Context, sqlText string) (*sql.Stmt, error) {
	if stmt, there := db.read.Load(sqlText); there {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := db.readers.PrepareContext(ctx, sqlText)
	if err != nil {
		return nil, err
	}
	first, there := db.read.LoadOrStore(sqlText, stmt)
	if there {
		_ = stmt.Close() // another reader was first
	}
	return first.(*sql.Stmt), nil
}

func query(ctx context.Context, stmt *sql.Stmt, s sqlstore.Step) error {
	rows, err := stmt.QueryContext(ctx, s.Args...)
	if err != nil {
		return err
	}
	return each(rows, s.Row)
}

// each gives every row to f.
func each(rows *sql.Rows, f func(sqlstore.Row) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// close lets go of the readers first: the last connection to close copies the
// write-ahead log into the file, and a reader may not.
func (db *database) close() error {
	err := db.readers.Close()
	if db.conn != nil {
		db.conn.close()
	}
	return err
}
