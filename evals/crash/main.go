// Crash breaks what the ledger runs on, in the middle of a storm of refunds,
// and compares what was acknowledged with what is there.
//
//	go run ./evals/crash                     kill -9 of servers on a SQLite file
//	go run ./evals/crash -backend postgres   kill -9 of servers on PostgreSQL, crashes
//	                                         of its server, and several servers at once
//	                                         on one customer
//
// Real servers are driven over stdio by many callers, each call under an
// operation key, some of them under a key that was used before. After each
// crash another server is asked about every call: what was acknowledged is
// there, with the same bytes; what was not is sent again under its key and
// happened once; the balances are the openings less the refunds; the journal
// verifies. The seed decides what is asked and when it breaks, but not how the
// machine schedules it.
//
// The exit code is 0 if nothing was found, 1 if something was, and 2 if it
// could not be run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
)

// Exit codes.
const (
	exitClean  = 0
	exitFound  = 1
	exitNotRun = 2
)

// The full counts.
const (
	sqliteKills   = 500
	postgresKills = 300
	restarts      = 50
	hotRefunds    = 20_000
)

// carefree is a setting that loses the last commits in a crash, unless the
// ledger insists on its own. fsync stays on.
var carefree = []string{"synchronous_commit=off"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

type options struct {
	backend              string
	kills, restarts, hot int
	seed                 uint64
	verbose              bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("crash", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.backend, "backend", "sqlite", "where the ledger is: sqlite or postgres")
	flags.IntVar(&o.kills, "kills", -1, fmt.Sprintf("kill `N` servers (default %d with sqlite, %d with postgres)", sqliteKills, postgresKills))
	flags.IntVar(&o.restarts, "restarts", restarts, "crash the database server `N` times; postgres only")
	flags.IntVar(&o.hot, "refunds", hotRefunds, "`N` refunds of one customer by several servers; postgres only")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64(), "of what is asked and when it breaks; random if absent")
	flags.BoolVar(&o.verbose, "v", false, "print a line for each crash")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	switch o.backend {
	case "sqlite":
		if o.kills < 0 {
			o.kills = sqliteKills
		}
	case "postgres":
		if o.kills < 0 {
			o.kills = postgresKills
		}
	default:
		return o, fmt.Errorf("-backend %s: the backends are sqlite and postgres", o.backend)
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitClean
	}
	clean := false
	if err == nil {
		clean, err = crash(ctx, o, stdout, stderr)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "crash:", err)
		return exitNotRun
	case !clean:
		return exitFound
	}
	return exitClean
}

// crash reports whether nothing was found, or why it could not go on.
func crash(ctx context.Context, o options, stdout, stderr io.Writer) (clean bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends the servers that an error leaves
	folder, err := os.MkdirTemp("", "refundledger-crash-")
	if err != nil {
		return false, err
	}
	defer func() {
		if clean {
			_ = os.RemoveAll(folder) // a leftover in the temporary folder is no finding
		} else {
			fmt.Fprintln(stderr, "what is left is in", folder)
		}
	}()
	p, err := build(ctx, folder, stderr)
	if err != nil {
		return false, err
	}
	log := io.Discard
	if o.verbose {
		log = stdout
	}
	fmt.Fprintf(stdout, "%s, seed %d\n", o.backend, o.seed)
	if o.backend == "sqlite" {
		return crashSQLite(ctx, o, inFile(p, filepath.Join(folder, "ledger.db")), stdout, log)
	}
	return crashPostgres(ctx, o, p, stdout, log)
}

func crashSQLite(ctx context.Context, o options, l ledger, stdout, log io.Writer) (clean bool, err error) {
	s, err := newStorm(ctx, l, o.seed, log)
	if err != nil {
		return false, err
	}
	err = s.killServers(ctx, o.kills)
	if err == nil {
		err = s.finish(ctx)
	}
	s.print(stdout)
	return s.clean(), err
}

func crashPostgres(ctx context.Context, o options, p programs, stdout, log io.Writer) (clean bool, err error) {
	db, err := postgrestest.New(carefree)
	if err != nil {
		return false, err
	}
	defer db.Remove()
	url, _, err := postgrestest.Schema(db.URL()) // it goes with the server
	if err != nil {
		return false, err
	}
	l := inDatabase(p, url)
	if _, err := l.operate(ctx, "", "migrate"); err != nil {
		return false, err
	}
	s, err := newStorm(ctx, l, o.seed, log)
	if err != nil {
		return false, err
	}
	err = s.killServers(ctx, o.kills)
	if err == nil {
		err = s.restartDatabase(ctx, db, o.restarts)
	}
	if err == nil {
		err = s.finish(ctx)
	}
	s.print(stdout)
	if err != nil {
		return false, err
	}
	h, err := hot(ctx, l, o.hot, log)
	if err != nil {
		return false, err
	}
	h.print(stdout)
	return s.clean() && h.clean(), nil
}
