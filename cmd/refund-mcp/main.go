// Command refund-mcp is the MCP server: it serves the tools of the refund
// ledger to one client over stdin and stdout. Settings come from the
// environment; see `refund-mcp --help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/refundledger/refundledger/adapters/auth"
	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/mcpserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/adapters/telemetry"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/cmd/internal/collector"
	"github.com/refundledger/refundledger/cmd/internal/release"
	"github.com/refundledger/refundledger/cmd/internal/store"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // could not start, or left accepted calls unanswered
	exitUsage  = 2
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // an unwritable stdout is an error to handle, not the end
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr, openStore))
}

// openStore opens the backend that is configured. A ledger in memory starts
// with the demo records, or with those of a folder.
func openStore(ctx context.Context, c config.Server, log *slog.Logger) (store.Store, error) {
	s, err := store.Open(ctx, c.Store, log)
	if err == nil && c.Store.Backend == config.Memory {
		err = store.Fill(ctx, s, c.Store, c.Principal.Tenant())
	}
	if err == nil && c.Transport == config.OverStdio { // over HTTP the callers are not known yet
		err = store.Admit(ctx, s, c.Principal, log)
	}
	return s, err
}

func run(args, environ []string, stdin, stdout, stderr *os.File, open func(context.Context, config.Server, *slog.Logger) (store.Store, error)) int {
	switch {
	case len(args) == 0:
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h" || args[0] == "help"):
		usage(stdout)
		return exitOK
	case len(args) == 1 && args[0] == "--version":
		fmt.Fprintln(stdout, "refund-mcp", release.Version())
		return exitOK
	case len(args) == 1 && args[0] == "config":
	default:
		fmt.Fprintf(stderr, "refund-mcp: unknown argument %q; it takes none to serve, or --help, --version, config\n", args[0])
		return exitUsage
	}
	c, err := config.ParseServer(environ, mcpserver.Toolsets())
	var web config.HTTP
	if c.Transport == config.OverHTTP {
		var bad error
		web, bad = config.ParseHTTP(environ, auth.Algorithms())
		err = errors.Join(err, bad)
	}
	if err != nil {
		fmt.Fprintln(stderr, "refund-mcp: the environment is not valid:")
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	if len(args) == 1 {
		settings(stdout, slices.Concat(c.Shown, web.Shown))
		return exitOK
	}
	if c.Transport == config.OverStdio && isNull(stdout) {
		fmt.Fprintln(stderr, "refund-mcp: stdout is closed: nobody could read an answer")
		return exitFailed
	}
	protocol, err := protocolOutput(stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "refund-mcp: setting stdout aside:", err)
		return exitFailed
	}
	collector.Tune(environ)
	log := system.NewLog(stderr, c.LogLevel)
	defer log.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := open(ctx, c, log.Logger)
	if err != nil {
		log.Error("the ledger can not be opened", "backend", string(c.Store.Backend), "cause", err.Error())
		return exitFailed
	}
	defer closeStore(s, log)
	a := &app.App{Ledger: s, Refunds: s, Journal: s, Census: store.Census(s), Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: c.CallTimeout, RequireOperationKey: c.RequireOperationKey, Tolerance: c.Tolerance}
	if slices.Contains(c.Toolsets, "payables") {
		a.Payables = store.Payables(ctx, s, log.Logger)
	}
	o := mcpserver.Options{
		Version: release.Version(), Toolsets: c.Toolsets, ReadOnly: c.ReadOnly, InputErrorsAsResults: c.InputErrorsAsResults,
		Log: log.Logger,
	}
	traces, err := telemetry.OpenTraces(environ, log.Logger)
	if err != nil {
		log.Error("there can be no traces", "cause", err.Error())
		return exitFailed
	}
	if traces != nil {
		defer closeTraces(traces, log)
		a.Ledger, a.Refunds, a.Journal = traces.Ledger(a.Ledger), traces.Refunds(a.Refunds), traces.Journal(a.Journal)
		a.Census, a.Payables = traces.Census(a.Census), traces.Payables(a.Payables)
		o.Tracer = traces
	}
	var metrics *telemetry.Metrics
	if c.Transport == config.OverHTTP {
		if metrics, err = telemetry.New(); err != nil {
			log.Error("the metrics can not be made", "cause", err.Error())
			return exitFailed
		}
		a.Ledger, o.Meter = metrics.Ledger(a.Ledger), metrics
	}
	server, err := mcpserver.New(a, o)
	if err != nil {
		log.Error("the server can not start", "cause", err.Error())
		return exitFailed
	}
	if c.Transport == config.OverHTTP {
		if err := serveHTTP(ctx, web, c.Principal, server, a.Ledger, metrics, log.Logger); err != nil {
			log.Error("the server did not end cleanly", "cause", err.Error())
			return exitFailed
		}
		return exitOK
	}
	if err := server.ServeStdio(ctx, c.Principal, stdin, protocol); err != nil {
		log.Error("the session did not end cleanly", "cause", err.Error())
		return exitFailed
	}
	return exitOK
}

// isNull reports whether a file is the null device, which is also what the
// runtime opens in place of a standard file that was closed at start.
func isNull(f *os.File) bool {
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && os.SameFile(null, info)
}

// tracesWait bounds how long the end of the process waits for the collector.
const tracesWait = 3 * time.Second

func closeTraces(t *telemetry.Traces, log *system.Log) {
	ctx, stop := context.WithTimeout(context.Background(), tracesWait)
	defer stop()
	if err := t.Close(ctx); err != nil {
		log.Warn("traces are lost", "cause", err.Error())
	}
}

// closeWait bounds how long the end of the process waits for the store. A write
// that is not committed by then leaves no trace, as after a crash.
const closeWait = 3 * time.Second

func closeStore(s store.Store, log *system.Log) {
	done := make(chan error, 1)
	go func() { done <- s.Close() }()
	select {
	case err := <-done:
		if err != nil {
			log.Error("the ledger did not close cleanly", "cause", err.Error())
		}
	case <-time.After(closeWait):
		log.Error("the ledger did not close in time", "after", closeWait.String())
	}
}
