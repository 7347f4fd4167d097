// Evals runs whole trajectories of tool calls against the real server: those an
// agent should make, and those it must be stopped from making. Each case has a
// fresh server process, a fresh store and a real MCP client; no model is asked,
// so what is measured is the server, not how well a model chooses tools.
//
//	go run ./evals                       every case in evals/cases
//	go run ./evals -run suspended        the cases whose subject/name matches
//	go run ./evals -list                 their names and why they exist
//
// The exit code is 0 if every case passed, 1 if one failed, and 2 if nothing was
// run: wrong usage, a case file with an error, a server that can not be built.
// Package trajectory describes the cases.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/refundledger/refundledger/evals/internal/backend"
	"github.com/refundledger/refundledger/evals/internal/trajectory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitPassed = 0
	exitFailed = 1
	exitNotRun = 2
)

type options struct {
	run           *regexp.Regexp
	list          bool
	json, junit   string
	backend       backend.Backend
	backendName   string
	server, cases string
	jobs          int
	http          bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitPassed
	}
	var failed int
	if err == nil {
		failed, err = evaluate(ctx, o, stdout, stderr)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitNotRun
	case failed > 0:
		return exitFailed
	}
	return exitPassed
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("evals", flag.ContinueOnError)
	flags.SetOutput(stderr)
	pattern := flags.String("run", "", "run only the cases whose subject/name matches the `REGEXP`")
	flags.BoolVar(&o.list, "list", false, "list the cases and run none")
	flags.StringVar(&o.json, "json", "", "also write the results as JSON to `FILE`")
	flags.StringVar(&o.junit, "junit", "", "also write the results as JUnit XML to `FILE`")
	flags.StringVar(&o.backendName, "backend", "memory", "the system of record: "+strings.Join(backend.Names, ", "))
	transport := flags.String("transport", "stdio", "how the server is reached: stdio, http")
	flags.StringVar(&o.server, "server", "", "the refund-mcp binary at `PATH`; built from ./cmd/refund-mcp if absent")
	flags.StringVar(&o.cases, "cases", "", "the folder of the cases; evals/cases of this module if absent")
	flags.IntVar(&o.jobs, "j", runtime.NumCPU(), "run `N` cases at the same time")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errors.New("evals -h lists the flags") // what is wrong is printed already
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; -run REGEXP selects cases", flags.Arg(0))
	}
	if o.http = *transport == "http"; !o.http && *transport != "stdio" {
		return o, fmt.Errorf("-transport %s: it is stdio or http", *transport)
	}
	if o.jobs < 1 {
		return o, fmt.Errorf("-j %d: at least one case at a time", o.jobs)
	}
	var err error
	if o.run, err = regexp.Compile(*pattern); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	if o.backend, err = backend.New(o.backendName); err != nil {
		return o, err
	}
	return o, nil
}

// evaluate returns how many cases failed, or why nothing could be run.
func evaluate(ctx context.Context, o options, stdout, stderr io.Writer) (failed int, err error) {
	if o.cases == "" {
		root, err := moduleRoot()
		if err != nil {
			return 0, err
		}
		o.cases = filepath.Join(root, "evals", "cases")
	}
	if o.cases, err = filepath.Abs(o.cases); err != nil {
		return 0, err
	}
	cases, err := trajectory.Load(os.DirFS(o.cases))
	if err != nil {
		return 0, err
	}
	cases = slices.DeleteFunc(cases, func(c trajectory.Case) bool { return !o.run.MatchString(c.Subject + "/" + c.Name) })
	if len(cases) == 0 {
		return 0, fmt.Errorf("-run %s: no case matches; -list shows them", o.run)
	}
	if o.list {
		for _, c := range cases {
			fmt.Fprintf(stdout, "%s/%s\n      %s\n", c.Subject, c.Name, c.Why)
		}
		return 0, nil
	}
	if o.server != "" {
		if o.server, err = filepath.Abs(o.server); err != nil {
			return 0, err
		}
		if _, err := os.Stat(o.server); err != nil {
			return 0, fmt.Errorf("-server: %w", err)
		}
	} else {
		dir, err := os.MkdirTemp("", "refundledger-evals-")
		if err != nil {
			return 0, err
		}
		defer func() { _ = os.RemoveAll(dir) }() // a leftover in the temporary folder is no failure
		if o.server, err = build(ctx, dir, stderr); err != nil {
			return 0, err
		}
	}
	r := report{out: stdout, backend: o.backendName}
	defer o.backend.Close()
	runner{o.server, o.cases, o.backend, o.jobs, o.http}.all(ctx, cases, r.add)
	r.close()
	if o.json != "" {
		err = errors.Join(err, r.writeJSON(o.json))
	}
	if o.junit != "" {
		err = errors.Join(err, r.writeJUnit(o.junit))
	}
	_, failed, _ = r.counts()
	return failed, err
}

// build makes the server in dir, once for all cases.
func build(ctx context.Context, dir string, stderr io.Writer) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	server := filepath.Join(dir, "refund-mcp")
	if runtime.GOOS == "windows" {
		server += ".exe"
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", server, "./cmd/refund-mcp")
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, stderr, stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building ./cmd/refund-mcp: %w", err)
	}
	return server, nil
}

// moduleRoot is the folder of go.mod, upwards from where we are.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("run evals inside the module, or with -server and -cases")
		}
		dir = up
	}
}
