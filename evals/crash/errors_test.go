package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// canary is a password that must not be seen again.
const canary = "CANARY-8d1f3c"

// refusalTimeout is how long a server that must not start may take to say so.
const refusalTimeout = 15 * time.Second

// refusesToStart makes sure that the server on the ledger ends with exit code 1
// and says why, and returns what it said.
func refusesToStart(t *testing.T, l ledger) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), refusalTimeout)
	defer stop()
	cmd := l.server(ctx)
	in, err := cmd.StdinPipe() // open, so that it is not its end that ends the server
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Fatalf("the server ended with %v, want exit code 1: %s", err, out)
	}
	if strings.Contains(string(out), canary) {
		t.Errorf("the password is in the log: %s", out)
	}
	return string(out)
}

func TestRefusesToStart(t *testing.T) {
	p := realPrograms(t)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	newer, path := file(t)
	if _, err := newer.operate(t.Context(), "", "seed"); err != nil {
		t.Fatal(err)
	}
	withFile(t, path, func(db *sql.DB) error {
		var table string
		if err := db.QueryRow(`SELECT s.name FROM sqlite_schema s JOIN pragma_table_info(s.name) c WHERE c.name = 'version_id'`).Scan(&table); err != nil {
			return err
		}
		_, err := db.Exec(`INSERT INTO ` + table + ` (version_id, is_applied) VALUES (99, 1)`)
		return err
	})
	for _, tt := range []struct {
		name   string
		ledger ledger
		says   string
	}{
		{"no such folder", inFile(p, filepath.Join(t.TempDir(), "none", "ledger.db")), "can not be opened"},
		{"a folder in place of a file", inFile(p, t.TempDir()), "can not be opened"},
		{"a file of something else", inFile(p, text), "is no SQLite file"},
		{"a file of a newer release", newer, "use a newer release"},
		{"a database that can not be reached", inDatabase(p, "postgres://ledger:"+canary+"@127.0.0.1:1/ledger"), "can not be reached"},
		{"an address with a space", inDatabase(p, "postgres://ledger:"+canary+"@no host/ledger"), "can not be understood"},
		{"a port that is none", inDatabase(p, "postgres://ledger:"+canary+"@127.0.0.1:port/ledger"), "can not be understood"},
		{"a setting that is none", inDatabase(p, "postgres://ledger:"+canary+"@127.0.0.1/ledger?sslmode="+canary), "can not be understood"},
		{"a password alone", inDatabase(p, canary), "can not be understood"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if said := refusesToStart(t, tt.ledger); !strings.Contains(said, tt.says) {
				t.Errorf("the server said %s, want something with %q", said, tt.says)
			}
		})
	}
}

func TestRefusesOtherSchemas(t *testing.T) {
	l, _ := database(t)
	if said := refusesToStart(t, l); !strings.Contains(said, "refund-ledgerd migrate") {
		t.Errorf("without tables the server said %s, want the command that makes them", said)
	}
	migrated(t, l)
	mustServe(t, l).kill()
	conn, err := pgx.Connect(t.Context(), l.at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var table string
	if err := conn.QueryRow(t.Context(), `SELECT table_name FROM information_schema.columns WHERE column_name = 'version_id'`).Scan(&table); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `INSERT INTO `+table+` (version_id, is_applied) VALUES (99, true)`); err != nil {
		t.Fatal(err)
	}
	if said := refusesToStart(t, l); !strings.Contains(said, "use a newer release") {
		t.Errorf("with newer tables the server said %s, want that it is too old", said)
	}
}

// TestDatabaseComesBack takes the database away from a server that runs: what is
// asked in the meantime is told to try again, with nothing done, and nothing has
// to be started again after.
func TestDatabaseComesBack(t *testing.T) {
	l, db := database(t)
	b, err := openBook(t.Context(), migrated(t, l), 1, "USD")
	if err != nil {
		t.Fatal(err)
	}
	c := mustServe(t, l)
	refund := func(key string) (*refund, answer) {
		t.Helper()
		r := b.add(b.customers[0], key, 1)
		a, err := b.refund(t.Context(), c, r, &b.acknowledged, true)
		if err != nil {
			t.Fatal(err)
		}
		return r, a
	}
	if _, a := refund("before"); !a.ok() {
		t.Fatal(a)
	}
	if err := db.Stop(); err != nil {
		t.Fatal(err)
	}
	away, a := refund("away")
	if a.code != "BACKEND_UNAVAILABLE" || !a.retryable {
		t.Errorf("without its database the server answers %s, want BACKEND_UNAVAILABLE, retryable", a)
	}
	found, err := c.call(t.Context(), "get_operation", `{"operation_key":"before"}`, "")
	if err != nil || found.structured != `{"operationKey":"before","status":"unknown"}` {
		t.Errorf("without its database the server says of an operation: %s, %v", found, err)
	}
	if err := db.Start(); err != nil {
		t.Fatal(err)
	}
	// "away" is sent again under its key, "before" is a replay.
	if err := b.compare(t.Context(), c, b.refunds); err != nil {
		t.Fatal(err)
	}
	if away.result == "" {
		t.Error("with its database back the server does not do what it could not")
	}
	if _, a := refund("after"); !a.ok() {
		t.Error(a)
	}
	if err := errors.Join(b.recompare(t.Context(), l, c), c.close()); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, &b.findings)
}

// withFile opens a ledger's file past the ledger.
func withFile(t *testing.T, path string, f func(*sql.DB) error) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		err = errors.Join(f(db), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
