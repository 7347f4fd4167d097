package sqlite

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is committed is in the files themselves, for SQLite without our file
// system too; so is a transaction that is larger than the cache, whose pages
// come to the log early and are read from there.
func TestTheLogIsWritten(t *testing.T) {
	if err := setUp(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "a.db")
	db := open(path, "&_pragma=cache_size(10)")
	defer db.Close()
	db.SetMaxOpenConns(1)
	run := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.Exec(statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	run("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)")
	fill := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			run("INSERT INTO t VALUES (?, ?)", n, strings.Repeat("x", 1000))
		}
		var all int
		if err := db.QueryRow("SELECT count(*) FROM t WHERE length(text) = 1000").Scan(&all); err != nil || all != to {
			t.Errorf("%d rows, not %d: %v", all, to, err)
		}
	}
	for round, want := range []int{1, 2, 2000, 2000, 2001} {
		run("BEGIN IMMEDIATE")
		switch round {
		case 0, 1, 4:
			fill(want-1, want)
		case 2:
			fill(2, want)
			run("UPDATE t SET text = lower(text)") // pages that are in the log already
		case 3:
			fill(2000, 4000)
			run("ROLLBACK")
			run("BEGIN IMMEDIATE")
		}
		run("COMMIT")
		copied := filepath.Join(folder, fmt.Sprint(round)+".db")
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(path + suffix)
			if err == nil {
				err = os.WriteFile(copied+suffix, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var rows int
		var check string
		other, err := sql.Open("sqlite", copied)
		if err == nil {
			err = other.QueryRow("SELECT count(*) FROM t").Scan(&rows)
		}
		if err == nil {
			err = other.QueryRow("PRAGMA integrity_check").Scan(&check)
		}
		if err != nil || rows != want || check != "ok" {
			t.Errorf("after %d commits there are %d rows, not %d; %s, %v", round+1, rows, want, check, err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}
