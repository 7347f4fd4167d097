package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/refundledger/refundledger/adapters/importfile"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/cmd/internal/store"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/payables"
)

func importFlags(f *flag.FlagSet, s *settings) {
	operatorFlags(f, s)
	f.BoolVar(&s.dryRun, "dry-run", false, "check the file and change nothing")
}

func importCommands() []command {
	return []command{
		importCommand("customers", "open the customers of a CSV or JSON Lines file, all or none; - is stdin", "opened", importfile.ReadCustomers, (*app.App).ImportCustomers,
			func(list []customers.Open) []fault.Issue { return customers.Import{Customers: list}.Check() }),
		importCommand("vendors", "bring in the vendors of a CSV or JSON Lines file, all or none; - is stdin", "brought in", importfile.ReadVendors, (*app.App).ImportVendors,
			func(list []payables.Vendor) []fault.Issue { return payables.ImportVendors{Vendors: list}.Check() }),
		importCommand("orders", "bring in the purchase orders of a JSON Lines file, all or none; - is stdin", "brought in", importfile.ReadOrders, (*app.App).ImportOrders,
			func(list []payables.Order) []fault.Issue { return payables.ImportOrders{Orders: list}.Check() }),
		importCommand("receipts", "book in the goods receipts of a JSON Lines file, all or none; - is stdin", "booked in", importfile.ReadReceipts, (*app.App).ImportReceipts,
			func(list []payables.Receipt) []fault.Issue { return payables.ImportReceipts{Receipts: list}.Check() }),
		importCommand("invoices", "enter the invoices and credit notes of a JSON Lines file, all or none; - is stdin", "entered", importfile.ReadInvoices, (*app.App).ImportInvoices,
			func(list []payables.Invoice) []fault.Issue { return payables.ImportInvoices{Invoices: list}.Check() }),
	}
}

// importCommand makes the subcommand that imports records of one sort. check
// finds what is wrong with them without the ledger.
func importCommand[T any](noun, about, done string,
	read func(io.Reader, importfile.Format, func(int)) (importfile.File[T], error),
	bring func(*app.App, context.Context, app.Call, []T) (customers.Imported, error),
	check func([]T) []fault.Issue) command {
	run := func(ctx context.Context, c console, s settings, args []string) error {
		file, err := readFile(c, args[0], read)
		if err != nil {
			return err
		}
		if err := inTheWay(c, file.Lines, check(file.List)); err != nil {
			return err
		}
		if s.dryRun {
			fmt.Fprintf(c.out, "%d %s, all of them well formed; nothing was imported\n", len(file.List), noun)
			return nil
		}
		return with(ctx, s, func(st store.Store) error {
			call, err := s.operator()
			if err != nil {
				return err
			}
			imported, err := bring(application(st), ctx, call, file.List)
			if f := fault.Of(err); f != nil && len(f.Issues) > 0 {
				return inTheWay(c, file.Lines, f.Issues)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "%d %s %s, %d were there already with the same facts\n", imported.Opened, noun, done, imported.Unchanged)
			return nil
		})
	}
	return command{"import " + noun, "FILE", 1, about, importFlags, run}
}

// progressEvery is how many lines there are between two signs of progress.
const progressEvery = 1000

// readFile reads a file, or stdin, and names every bad line.
func readFile[T any](c console, name string, read func(io.Reader, importfile.Format, func(int)) (importfile.File[T], error)) (importfile.File[T], error) {
	var none importfile.File[T]
	in := c.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return none, err
		}
		defer f.Close()
		in = f
	}
	progress := func(int) {}
	if terminal(c.err) {
		progress = func(n int) {
			if n%progressEvery == 0 {
				fmt.Fprintf(c.err, "\r%d lines read", n)
			}
		}
	}
	buffered := bufio.NewReader(in)
	first, err := buffered.Peek(importfile.Sniff)
	if err != nil && err != io.EOF {
		return none, err
	}
	file, err := read(buffered, importfile.FormatOf(name, first), progress)
	if err != nil {
		return none, err
	}
	if terminal(c.err) {
		fmt.Fprint(c.err, "\r")
	}
	if n := len(file.Problems) + file.More; n > 0 {
		for _, p := range file.Problems {
			fmt.Fprintf(c.err, "line %d: %s\n", p.Line, p.Why)
		}
		if file.More > 0 {
			fmt.Fprintf(c.err, "and %d more\n", file.More)
		}
		return none, fmt.Errorf("%d bad lines; nothing was imported", n)
	}
	return file, nil
}

// inTheWay names the lines that issues are about. It returns nil if there are none.
func inTheWay(c console, lines []int, issues []fault.Issue) error {
	for _, i := range issues {
		if len(i.Path) == 0 {
			return errors.New(i.Message)
		}
		fmt.Fprintf(c.err, "line %d: %s\n", lines[i.Path[0].(int)], i.Message)
	}
	if len(issues) > 0 {
		return fmt.Errorf("%d problems; nothing was imported", len(issues))
	}
	return nil
}

// terminal reports whether a person watches w.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
