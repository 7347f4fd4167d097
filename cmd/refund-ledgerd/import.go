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
	"github.com/refundledger/refundledger/cmd/internal/store"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
)

func importFlags(f *flag.FlagSet, s *settings) {
	operatorFlags(f, s)
	f.BoolVar(&s.dryRun, "dry-run", false, "check the file and change nothing")
}

// progressEvery is how many lines there are between two signs of progress.
const progressEvery = 1000

func importCustomers(ctx context.Context, c console, s settings, args []string) error {
	in := c.in
	if args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return err
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
	first, err := buffered.Peek(1)
	if err != nil && err != io.EOF {
		return err
	}
	file, err := importfile.ReadCustomers(buffered, importfile.FormatOf(args[0], first), progress)
	if err != nil {
		return err
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
		return fmt.Errorf("%d bad lines; nothing was imported", n)
	}
	request := customers.Import{Customers: file.List}
	if err := inTheWay(c, file, request.Check()); err != nil {
		return err
	}
	if s.dryRun {
		fmt.Fprintf(c.out, "%d customers, all of them well formed; nothing was imported\n", len(file.List))
		return nil
	}
	return with(ctx, s, func(st store.Store) error {
		call, err := s.operator()
		if err != nil {
			return err
		}
		done, err := application(st).ImportCustomers(ctx, call, file.List)
		if f := fault.Of(err); f != nil && len(f.Issues) > 0 {
			return inTheWay(c, file, f.Issues)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%d customers opened, %d were there already with the same facts\n", done.Opened, done.Unchanged)
		return nil
	})
}

// inTheWay names the lines that issues are about. It returns nil if there are none.
func inTheWay(c console, file importfile.Customers, issues []fault.Issue) error {
	for _, i := range issues {
		if len(i.Path) == 0 {
			return errors.New(i.Message)
		}
		fmt.Fprintf(c.err, "line %d: %s\n", file.Lines[i.Path[0].(int)], i.Message)
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
