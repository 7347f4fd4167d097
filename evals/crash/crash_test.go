package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
)

var seed = flag.Uint64("seed", rand.Uint64(), "of the storms; random if absent")

// What the tests share. It is made when the first test needs it.
var (
	folder  string
	started *postgrestest.Server

	buildOnce = sync.OnceValues(func() (programs, error) { return build(context.Background(), folder, os.Stderr) })
	startOnce = sync.OnceValue(func() (err error) { started, err = postgrestest.New(carefree); return err })
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "refundledger-crash-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitNotRun
	}
	defer func() {
		_ = os.RemoveAll(folder) // a leftover in the temporary folder is no failure
		if started != nil {
			started.Remove()
		}
	}()
	return m.Run()
}

// realPrograms are the programs under test.
func realPrograms(t *testing.T) programs {
	t.Helper()
	p, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// file is a new ledger in a file.
func file(t *testing.T) (l ledger, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ledger.db")
	return inFile(realPrograms(t), path), path
}

// database is a ledger in a new schema of a server that the tests share.
func database(t *testing.T) (l ledger, db *postgrestest.Server) {
	t.Helper()
	p := realPrograms(t)
	if err := startOnce(); err != nil {
		postgrestest.Skip(t, err)
	}
	url, _, err := postgrestest.Schema(started.URL()) // it goes with the server
	if err != nil {
		t.Fatal(err)
	}
	return inDatabase(p, url), started
}

// migrated makes the tables of a ledger in a database.
func migrated(t *testing.T, l ledger) ledger {
	t.Helper()
	if _, err := l.operate(t.Context(), "", "migrate"); err != nil {
		t.Fatal(err)
	}
	return l
}

// mustServe starts a server that is killed after the test.
func mustServe(t *testing.T, l ledger) *client {
	t.Helper()
	c, err := l.serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

// calm makes a storm on the ledger that has not begun.
func calm(t *testing.T, l ledger) *storm {
	t.Helper()
	t.Logf("seed %d (repeat it with -args -seed %d)", *seed, *seed)
	s, err := newStorm(t.Context(), l, *seed, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustBeClean fails the test if anything was found.
func mustBeClean(t *testing.T, f *findings) {
	t.Helper()
	f.print(t.Output())
	if !f.clean() {
		t.Error("something was found")
	}
}

func TestKillsOnSQLite(t *testing.T) {
	const kills = 6
	l, _ := file(t)
	s := calm(t, l)
	if err := errors.Join(s.killServers(t.Context(), kills), s.finish(t.Context())); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, &s.findings)
}

func TestKillsAndRestartsOnPostgres(t *testing.T) {
	const kills, restarts = 3, 2
	l, db := database(t)
	s := calm(t, migrated(t, l))
	if err := errors.Join(s.killServers(t.Context(), kills), s.restartDatabase(t.Context(), db, restarts), s.finish(t.Context())); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, &s.findings)
}

func TestSeveralServersOneCustomer(t *testing.T) {
	const refunds = 500
	l, _ := database(t)
	h, err := hot(t.Context(), migrated(t, l), refunds, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	h.print(t.Output())
	if h.acknowledged != 2*refunds || !h.clean() {
		t.Error("something was found")
	}
}

// TestComparison breaks a ledger on purpose: each kind of damage is found, and
// counted as what it is.
func TestComparison(t *testing.T) {
	const refunds = 12
	for _, tt := range []struct {
		name string
		// harm harms the ledger after its refunds, of which r is one.
		harm  func(t *testing.T, path string, s *storm, r *refund)
		count func(*findings) int
	}{
		{"nothing", func(*testing.T, string, *storm, *refund) {}, func(f *findings) int { return f.acknowledged - refunds }},
		{"the file of before the last refunds", func(t *testing.T, path string, s *storm, _ *refund) {
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			drive(t, s, refunds)
			if err := os.WriteFile(path, before, 0o600); err != nil {
				t.Fatal(err)
			}
		}, func(f *findings) int { return f.lost }},
		{"a forgotten key that is sent again", func(t *testing.T, path string, s *storm, r *refund) {
			alter(t, path, `UPDATE operations SET principal = 'nobody' WHERE key = ?`, r.key)
			r.result = "" // so that it is sent again
		}, func(f *findings) int { return f.twice }},
		{"money gone from a balance", func(t *testing.T, path string, s *storm, r *refund) {
			alter(t, path, `UPDATE accounts SET balance_minor = balance_minor - 1, lot_minor = lot_minor - 1 WHERE id = ?`, r.customer.id)
		}, func(f *findings) int { return f.unbalanced }},
		{"an entry that was changed", func(t *testing.T, path string, s *storm, r *refund) {
			alter(t, path, `UPDATE operations SET at = at + 1 WHERE key = ?`, r.key)
		}, func(f *findings) int { return f.broken }},
		{"an answer that was changed", func(t *testing.T, path string, s *storm, r *refund) {
			alter(t, path, `UPDATE entry_rows SET remaining_minor = remaining_minor + 1 WHERE reason IS NOT NULL AND subject_id = ?`, r.customer.id)
		}, func(f *findings) int { return f.different }},
		{"a refund that was denied and done", func(t *testing.T, path string, s *storm, r *refund) {
			r.result, r.denied = "", r.sent
		}, func(f *findings) int { return f.denied }},
		{"a refund that nobody asked for", func(t *testing.T, path string, s *storm, r *refund) {
			delete(s.byKey, r.key)
		}, func(f *findings) int { return f.wrong }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, path := file(t)
			s := calm(t, l)
			drive(t, s, refunds)
			tt.harm(t, path, s, s.refunds[rand.IntN(refunds)])
			if err := s.finish(t.Context()); err != nil {
				t.Log(err) // damage may be too much for a comparison to go on
			}
			s.print(t.Output())
			harmed := tt.name != "nothing"
			if found := tt.count(&s.findings) > 0; found != harmed || s.clean() == harmed {
				t.Errorf("found: %t, want %t", found, harmed)
			}
		})
	}
}

// drive makes refunds through a server that ends as it should.
func drive(t *testing.T, s *storm, n int) {
	t.Helper()
	c := mustServe(t, s.ledger)
	refunds := make([]*refund, n)
	for i := range refunds {
		cust := s.customers[s.random.IntN(len(s.customers))]
		refunds[i] = s.add(cust, fmt.Sprintf("%s-%d", s.name, len(s.refunds)), 1+s.random.Int64N(maxCents))
	}
	err := each(refunds, n, func(_ int, r *refund) error {
		_, err := s.refund(t.Context(), c, r, &s.acknowledged, false)
		return err
	})
	if err := errors.Join(err, c.close()); err != nil {
		t.Fatal(err)
	}
}

// alter changes rows that the ledger itself never would.
func alter(t *testing.T, path, statement string, args ...any) {
	t.Helper()
	withFile(t, path, func(db *sql.DB) error {
		rows, err := db.Query(`SELECT 'DROP TRIGGER ' || name || ';' FROM sqlite_schema WHERE type = 'trigger'`)
		if err != nil {
			return err
		}
		defer rows.Close()
		drop := ""
		for rows.Next() {
			var one string
			if err := rows.Scan(&one); err != nil {
				return err
			}
			drop += one
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if _, err := db.Exec(drop); err != nil {
			return err
		}
		done, err := db.Exec(statement, args...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("%s: %d rows: %w", statement, n, err)
		}
		return nil
	})
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"-backend", "memory"}, {"-kills", "many"}, {"more"}} {
		if code := run(t.Context(), args, io.Discard, io.Discard); code != exitNotRun {
			t.Errorf("%s: exit code %d", args, code)
		}
	}
}
