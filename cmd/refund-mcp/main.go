// Command refund-mcp is the MCP server: it serves the tools of the refund
// ledger to one client over stdin and stdout. Settings come from the
// environment; see `refund-mcp --help`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/mcpserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
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
// with the demo customers.
func openStore(ctx context.Context, c config.Server) (store.Store, error) {
	s, err := store.Open(ctx, c.Store)
	if err == nil && c.Store.Backend == config.Memory {
		err = demo.Seed(ctx, s, c.Principal.Tenant(), system.Clock{}, system.IDs{})
	}
	return s, err
}

func run(args, environ []string, stdin, stdout, stderr *os.File, open func(context.Context, config.Server) (store.Store, error)) int {
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
	if err != nil {
		fmt.Fprintln(stderr, "refund-mcp: the environment is not valid:")
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	if len(args) == 1 {
		settings(stdout, c)
		return exitOK
	}
	protocol, err := protocolOutput(stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "refund-mcp: setting stdout aside:", err)
		return exitFailed
	}
	tuneCollector(environ)
	log := system.NewLog(stderr, c.LogLevel)
	defer log.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := open(ctx, c)
	if err != nil {
		log.Error("the ledger can not be opened", "backend", string(c.Store.Backend), "cause", err.Error())
		return exitFailed
	}
	defer s.Close() // what it could not finish is in the log
	a := &app.App{Ledger: s, Refunds: s, Journal: s, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: c.CallTimeout}
	server, err := mcpserver.New(a, mcpserver.Options{
		Version: release.Version(), Toolsets: c.Toolsets, ReadOnly: c.ReadOnly, InputErrorsAsResults: c.InputErrorsAsResults,
		RequireOperationKey: c.RequireOperationKey, Log: log.Logger,
	})
	if err != nil {
		log.Error("the server can not start", "cause", err.Error())
		return exitFailed
	}
	if err := server.ServeStdio(ctx, c.Principal, stdin, protocol); err != nil {
		log.Error("the session did not end cleanly", "cause", err.Error())
		return exitFailed
	}
	return exitOK
}
