// Command bench measures Refund Ledger beside floors: programs that do the same
// work with less care, or all the care that costs nothing. One run measures
// both, so that the ratios hold on whatever machine it runs on.
//
//	go -C evals/bench run .                      what is promised of every day
//	go -C evals/bench run . -run memory          one benchmark
//	go -C evals/bench run . -large               promises of a ledger with a million entries
//	go -C evals/bench run . -pg postgres://...   PostgreSQL too; the user must be able to create databases
//
// The benchmarks are declared in mcp.go, http.go, memory.go, sqlite.go, postgres.go,
// payables.go and large.go: what is measured, what it is compared with, which ratio is wanted.
// The floors are in floors/, with a module of their own, so that nothing they
// need reaches the product. A missed ratio is printed and is no failure (see
// -strict); a wrong answer is.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/refundledger/refundledger/evals/bench/internal/side"
	"github.com/refundledger/refundledger/evals/bench/internal/stdio"
)

// options are the flags.
type options struct {
	rounds   int
	calls    int
	time     time.Duration
	run      *regexp.Regexp
	json     string
	postgres string
	large    bool
	entries  int
	strict   bool
	list     bool
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 5, "how often each row is measured; fewer than 5 show little")
	f.IntVar(&o.calls, "calls", 20_000, fmt.Sprintf("the most calls of one MCP measurement, up to %d", stdio.MaxCalls))
	f.DurationVar(&o.time, "time", 1500*time.Millisecond, "the longest that one measurement of calls or commits runs")
	run := f.String("run", "", "measure the benchmarks whose name matches this regular expression")
	f.StringVar(&o.json, "json", "", "write every sample to this file")
	f.StringVar(&o.postgres, "pg", "", "URL of a PostgreSQL server whose user may create databases; it gets some of its own and drops them")
	f.BoolVar(&o.large, "large", false, "measure what is promised of large ledgers instead; takes minutes and a few GB of disk")
	f.IntVar(&o.entries, "entries", 1_000_000, fmt.Sprintf("how many entries a large ledger has, at least %d", 2*smallEntries))
	f.BoolVar(&o.strict, "strict", false, "exit 1 if a wanted ratio is missed")
	f.BoolVar(&o.list, "list", false, "print the benchmarks and their rows")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.rounds < 1 || o.calls < 1 || o.calls > stdio.MaxCalls || o.time <= 0 || o.entries < 2*smallEntries {
		return o, errors.New("no arguments, and -rounds, -calls, -time and -entries within their bounds; see -help")
	}
	o.run, err = regexp.Compile(*run)
	return o, err
}

// collectorPercent is what the server sets. The floors that run in this process
// have it too.
const collectorPercent = 400

func main() {
	debug.SetGCPercent(collectorPercent)
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if missed > 0 && o.strict {
		os.Exit(1)
	}
}

// run measures and prints. Benchmarks that broke are left out of the figures
// and are the error.
func run(ctx context.Context, o options) (missed int, err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	all := selected(o, dir)
	if o.list || len(all) == 0 {
		return 0, list(all)
	}
	m, err := thisMachine(dir)
	if err != nil {
		return 0, err
	}
	m.print(os.Stdout)
	fmt.Printf("rounds     %d; each row once a round, the order rotated; figures are medians over the rounds\n\n", o.rounds)
	if slices.ContainsFunc(all, needsPrograms) {
		if err := build(ctx, dir); err != nil {
			return 0, err
		}
	}
	var outcomes []side.Outcome
	for _, b := range all {
		fmt.Fprintf(os.Stderr, "%s ...", b.Name)
		outcome, e := side.Run(ctx, b, o.rounds)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		fmt.Fprintf(os.Stderr, " %v\n", outcome.Took.Round(time.Second/10))
		if e != nil {
			fmt.Fprintln(os.Stderr, "bench:", e)
			err = errors.Join(err, e)
			continue
		}
		outcome.Figures(os.Stdout)
		outcomes = append(outcomes, outcome)
	}
	fmt.Println("Ratios of the medians (in brackets: of the worst and the best single round)")
	missed = side.Ratios(os.Stdout, outcomes)
	return missed, errors.Join(err, export(o, m, outcomes))
}

// selected returns the benchmarks to measure. Programs are looked for in dir.
func selected(o options, dir string) []side.Benchmark {
	all := slices.Concat(mcpBenchmarks(o, dir), httpBenchmarks(o, dir), memoryBenchmarks(), sqliteBenchmarks(o, dir), postgresBenchmarks(o), payablesBenchmarks(o, dir))
	if o.large {
		all = append(largeBenchmarks(o, dir), largePayables(o, dir))
	}
	return slices.DeleteFunc(all, func(b side.Benchmark) bool { return !o.run.MatchString(b.Name) })
}

func list(all []side.Benchmark) error {
	if len(all) == 0 {
		return errors.New("-run matches no benchmark; -list shows them")
	}
	for _, b := range all {
		fmt.Printf("%s: %s\n", b.Name, b.About)
		for _, r := range b.Rows {
			fmt.Println("  " + r.Name)
		}
	}
	return nil
}

func export(o options, m machine, outcomes []side.Outcome) error {
	if o.json == "" {
		return nil
	}
	out := struct {
		Machine    machine
		Rounds     int
		Benchmarks []json.Marshaler
	}{Machine: m, Rounds: o.rounds}
	for _, x := range outcomes {
		out.Benchmarks = append(out.Benchmarks, x.JSON())
	}
	b, err := json.MarshalIndent(out, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(b, '\n'), 0o644)
}
