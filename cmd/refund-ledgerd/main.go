// Command refund-ledgerd is the operator's side of the ledger: it makes and
// fills its database, proves it and takes it out. Settings come from the
// environment; see `refund-ledgerd --help`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/cmd/internal/collector"
	"github.com/refundledger/refundledger/cmd/internal/release"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // it could not be done, or what was checked does not hold
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	collector.Tune(os.Environ())
	os.Exit(run(ctx, os.Args[1:], os.Environ(), console{os.Stdin, os.Stdout, os.Stderr}))
}

// console is where a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
}

// command is one subcommand.
type command struct {
	name  string
	args  string // what follows the flags
	count int    // how many arguments that are
	about string
	flags func(*flag.FlagSet, *settings)
	run   func(ctx context.Context, c console, s settings, args []string) error
}

// settings are the environment and the flags of a command.
type settings struct {
	config.Daemon
	tenant          access.Tenant
	dryRun          bool
	as, key, reason string
}

func commands() []command {
	return slices.Concat([]command{
		{"migrate", "", 0, "make the tables, or bring them up to date", nil, migrate},
		{"seed", "", 0, "open the demo customers and bring in the demo invoices", nil, seed},
	}, importCommands(), []command{
		{"verify", "", 0, "recompute every hash, posting and balance, compare every record, count what no entry made; exit 1 if one does not hold", operatorFlags, verify},
		{"export journal", "", 0, "write the journal to stdout, an entry a line, as JSON", nil, exportJournal},
		{"refunds", "CUSTOMER", 1, "list the refunds of a customer with the entries that booked them", operatorFlags, listRefunds},
		{"reverse", "CUSTOMER ENTRY", 2, "book back a refund whose payment failed for good", correctionFlags, reverse},
		{"adjust", "CUSTOMER AMOUNT", 2, "correct what a customer can be refunded, by an amount in major units", correctionFlags, adjust},
		serveCommand(),
		tokenCommand(),
		checkCommand(),
		{"config", "", 0, "print the effective settings, secrets masked", nil, showConfig},
	})
}

func run(ctx context.Context, args, environ []string, c console) int {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Fprintln(c.out, "refund-ledgerd", release.Version())
		return exitOK
	}
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
		usage(c.out)
		if len(args) == 0 {
			return exitUsage
		}
		return exitOK
	}
	cmd, rest, ok := find(args)
	if !ok {
		fmt.Fprintf(c.err, "refund-ledgerd: %s; see refund-ledgerd --help\n", unknown(args))
		return exitUsage
	}
	var s settings
	flags := flag.NewFlagSet("refund-ledgerd "+cmd.name, flag.ContinueOnError)
	flags.SetOutput(c.err)
	tenant := flags.String("tenant", "default", "whose ledger")
	if cmd.flags != nil {
		cmd.flags(flags, &s)
	}
	if err := flags.Parse(rest); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage // the flag set has said why
	}
	if flags.NArg() != cmd.count {
		fmt.Fprintf(c.err, "usage: refund-ledgerd %s [flags] %s\n", cmd.name, cmd.args)
		return exitUsage
	}
	var err error
	if s.tenant, err = access.ParseTenant(*tenant); err != nil {
		fmt.Fprintln(c.err, "refund-ledgerd: --tenant:", err)
		return exitUsage
	}
	if s.Daemon, err = config.ParseDaemon(environ); err != nil {
		fmt.Fprintf(c.err, "refund-ledgerd: the environment is not valid:\n%v\n", err)
		return exitFailed
	}
	if err := cmd.run(ctx, c, s, flags.Args()); err != nil {
		fmt.Fprintf(c.err, "refund-ledgerd: %s: %v\n", cmd.name, err)
		if f := fault.Of(err); f != nil && f.Code == fault.OutcomeUnknown {
			fmt.Fprintln(c.err, "Run verify and look at the refunds or the export before you repeat it; with --key a repeat is safe.")
		}
		return exitFailed
	}
	return exitOK
}

// find takes the command off the front of args: its name is one word or two.
func find(args []string) (command, []string, bool) {
	for _, c := range commands() {
		if args[0] == c.name {
			return c, args[1:], true
		}
		if len(args) > 1 && args[0]+" "+args[1] == c.name {
			return c, args[2:], true
		}
	}
	return command{}, nil, false
}

// maxWord is how much of a word that is no command is repeated, in code points.
const maxWord = 64

// unknown says which word of args is no command, and what could stand there.
func unknown(args []string) string {
	var words []string
	for _, c := range commands() {
		if second, ok := strings.CutPrefix(c.name, args[0]+" "); ok {
			words = append(words, second)
		}
	}
	known := strings.Join(words, ", ")
	switch {
	case len(words) == 0:
		return fmt.Sprintf("there is no command %.*q", maxWord, args[0])
	case len(args) == 1:
		return fmt.Sprintf("%s needs a word more: %s", args[0], known)
	}
	return fmt.Sprintf("%s can not be followed by %.*q, but by: %s", args[0], maxWord, args[1], known)
}

func usage(w io.Writer) {
	fmt.Fprint(w, "refund-ledgerd keeps the ledger's database.\n\nUsage:\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(t, "  refund-ledgerd %s %s\t%s\n", c.name, c.args, c.about)
	}
	_ = t.Flush()
	fmt.Fprint(w, "\nEvery command takes --tenant NAME; without it the tenant is default.\nSettings come from the environment:\n\n")
	for _, v := range config.DaemonVariables() {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", v.Name, v.Default, v.Meaning)
	}
	_ = t.Flush()
}

func showConfig(_ context.Context, c console, s settings, _ []string) error {
	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, row := range s.Shown {
		fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
	}
	return t.Flush()
}
