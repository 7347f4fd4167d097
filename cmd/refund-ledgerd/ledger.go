package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/cmd/internal/store"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
)

// operatorTimeout bounds one write of a command.
const operatorTimeout = 10 * time.Minute

// pageSize is how many rows a command reads at once.
const pageSize = 1000

func migrate(ctx context.Context, c console, s settings, _ []string) error {
	if s.Store.Backend == config.Postgres {
		if err := postgres.Migrate(ctx, s.Store.PostgresURL); err != nil {
			return err
		}
	}
	// A file of SQLite is brought up to date when it is opened.
	st, err := store.Open(ctx, s.Store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, "the tables are up to date")
	return st.Close()
}

// with opens the store, runs f, and closes it.
func with(ctx context.Context, s settings, f func(store.Store) error) error {
	st, err := store.Open(ctx, s.Store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(f(st), st.Close())
}

// withExisting is with, for commands that would find nothing in a new ledger:
// they make none.
func withExisting(ctx context.Context, s settings, f func(store.Store) error) error {
	if s.Store.Backend == config.SQLite {
		if _, err := os.Stat(s.Store.SQLitePath); err != nil {
			return fmt.Errorf("the ledger file: %w", err)
		}
	}
	st, err := store.OpenExisting(ctx, s.Store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(f(st), st.Close())
}

func seed(ctx context.Context, c console, s settings, _ []string) error {
	return with(ctx, s, func(st store.Store) error {
		if err := demo.Seed(ctx, st, s.tenant, system.Clock{}, system.IDs{}); err != nil {
			return err
		}
		fmt.Fprintf(c.out, "the demo customers of the tenant %s are there\n", s.tenant)
		return nil
	})
}

// operator is who acts when a command writes: a person at the console.
func (s settings) operator() (app.Call, error) {
	scopes := access.ScopesOf(access.ControlRules, access.RefundRead, access.CustomerRead)
	who, err := access.NewPrincipal(s.tenant, s.as, access.Human, scopes, access.Pro, "")
	if err != nil {
		return app.Call{}, fmt.Errorf("--as: %w", err)
	}
	call := app.Call{Principal: who, Tool: "refund-ledgerd"}
	if s.key != "" {
		if call.Key, err = operation.ParseKey(s.key); err != nil {
			return app.Call{}, fmt.Errorf("--key: %w", err)
		}
	}
	return call, nil
}

func application(st store.Store) *app.App {
	return &app.App{Ledger: st, Refunds: st, Payables: st, Journal: st, Census: store.Census(st), Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: operatorTimeout}
}

// operatorFlags are of every command that writes.
func operatorFlags(f *flag.FlagSet, s *settings) {
	f.StringVar(&s.as, "as", "operator", "who you are: your id stands in the journal")
	f.StringVar(&s.key, "key", "", "an operation key of your own: a command that is repeated with its key happens once")
}

func correctionFlags(f *flag.FlagSet, s *settings) {
	operatorFlags(f, s)
	f.StringVar(&s.reason, "reason", "", "why, kept in the journal (needed)")
}

func reverse(ctx context.Context, c console, s settings, args []string) error {
	id, err := customers.ParseID(args[0])
	if err != nil {
		return err
	}
	entry, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return fmt.Errorf("ENTRY is the number of the entry that booked the refund, not %q", args[1])
	}
	reason, err := refunds.ParseReason(s.reason)
	if err != nil {
		return fmt.Errorf("--reason: %w", err)
	}
	return withExisting(ctx, s, func(st store.Store) error {
		call, err := s.operator()
		if err != nil {
			return err
		}
		r, err := application(st).ReverseRefund(ctx, call, id, entry, reason)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s of %s can be refunded again; the balance is %s (entry %d)\n", r.Amount, r.Customer, r.Remaining, r.Number)
		return nil
	})
}

func adjust(ctx context.Context, c console, s settings, args []string) error {
	id, err := customers.ParseID(args[0])
	if err != nil {
		return err
	}
	amount, err := money.ParseDecimal(args[1])
	if err != nil {
		return fmt.Errorf("AMOUNT is a number of major units such as 12.50 or -3, not %q", args[1])
	}
	return withExisting(ctx, s, func(st store.Store) error {
		call, err := s.operator()
		if err != nil {
			return err
		}
		a, err := application(st).AdjustCustomer(ctx, call, id, amount, s.reason)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "the balance of %s is %s (entry %d)\n", a.Customer, a.Remaining, a.Number)
		return nil
	})
}

// verify checks every account and every vendor of the tenant, however many entries there are.
func verify(ctx context.Context, c console, s settings, _ []string) error {
	return withExisting(ctx, s, func(st store.Store) error {
		call, err := s.operator()
		if err != nil {
			return err
		}
		v, err := application(st).VerifyLedger(ctx, call, customers.ID{}, 0)
		switch {
		case err != nil:
			return err
		case v.Broken != nil:
			fmt.Fprintf(c.out, "BROKEN: %v\n", v.Broken)
			return errors.New("the ledger does not hold")
		case v.Customers+v.Vendors == 0:
			return fmt.Errorf("there are no customers and no vendors of the tenant %s", s.tenant)
		}
		fmt.Fprintf(c.out, "holds: %d customers, %d vendors, %d entries, %d postings: numbers, links, hashes, debits and credits, balances, refunds, decisions, documents, answers\n", v.Customers, v.Vendors, v.Entries, v.Postings)
		if v.Counted {
			fmt.Fprintln(c.out, "counted: nothing is there that no entry made")
		}
		if v.Left > 0 {
			fmt.Fprintf(c.out, "left: %d documents and numbers, decided about whenever they were read; verify again at a quieter time\n", v.Left)
		}
		return nil
	})
}

// listRefunds prints the refunds of a customer, newest first.
func listRefunds(ctx context.Context, c console, s settings, args []string) error {
	id, err := customers.ParseID(args[0])
	if err != nil {
		return err
	}
	return withExisting(ctx, s, func(st store.Store) error {
		call, err := s.operator()
		if err != nil {
			return err
		}
		t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ENTRY\tTIME\tAMOUNT\tSTATUS\tREFUND")
		for before, more := int64(0), true; more; {
			var page []refunds.Refund
			if page, more, err = application(st).ListRefunds(ctx, call, id, before, app.MaxPage); err != nil {
				return err
			}
			for _, r := range page {
				fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", r.Number, r.ProcessedAt.Format(time.RFC3339), r.Amount, r.Status, r.ID)
				before = r.Number
			}
		}
		return t.Flush()
	})
}

func eachAccount(ctx context.Context, st store.Store, t access.Tenant, f func(customers.Account) error) error {
	after := ""
	for {
		page, err := st.ListAccounts(ctx, t, after, pageSize)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, a := range page {
			if err := f(a); err != nil {
				return err
			}
		}
		after = page[len(page)-1].ID.String()
	}
}

func eachVendor(ctx context.Context, st store.Store, t access.Tenant, f func(payables.Vendor) error) error {
	after := ""
	for {
		page, err := st.ListVendors(ctx, t, after, pageSize)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, v := range page {
			if err := f(v); err != nil {
				return err
			}
		}
		after = page[len(page)-1].ID.String()
	}
}

// eachEntry goes through the entries of an account or a vendor up to its head:
// what comes later is not part of the record as it was read.
func eachEntry(ctx context.Context, st store.Store, t access.Tenant, s journal.Subject, head journal.Head, f func(journal.Entry) error) error {
	for at := int64(0); at < head.Number; {
		page, err := st.ListEntries(ctx, t, s, at, int(min(pageSize, head.Number-at)))
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if err := f(e); err != nil {
				return err
			}
		}
		at = page[len(page)-1].Number()
	}
	return nil
}

// exported is an entry as a line of the export: all that its hash is made of,
// so that the chain can be recomputed from the lines alone; package journal
// says how.
type exported struct {
	Tenant    string    `json:"tenant"`
	Subject   string    `json:"subject"`
	Number    int64     `json:"number"`
	Operation string    `json:"operation"`
	Principal string    `json:"principal"`
	Via       string    `json:"via,omitempty"`
	Tool      string    `json:"tool"`
	Key       string    `json:"key"`
	At        time.Time `json:"at"`
	Command   string    `json:"command"`
	Facts     []fact    `json:"facts"`
	Postings  []posting `json:"postings"`
	Previous  string    `json:"previous"`
	Hash      string    `json:"hash"`
}

// fact is a field of the command; their order counts, for it is hashed.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type posting struct {
	Account     string `json:"account"`
	Lot         string `json:"lot,omitempty"`
	Side        string `json:"side"`
	AmountMinor int64  `json:"amountMinor"`
	Currency    string `json:"currency"`
}

func exportJournal(ctx context.Context, c console, s settings, _ []string) error {
	return withExisting(ctx, s, func(st store.Store) error {
		out := bufio.NewWriter(c.out)
		lines := json.NewEncoder(out)
		lines.SetEscapeHTML(false)
		line := func(e journal.Entry) error { return lines.Encode(export(e)) }
		err := eachAccount(ctx, st, s.tenant, func(a customers.Account) error {
			return eachEntry(ctx, st, s.tenant, a.ID.Subject(), a.Head, line)
		})
		if err == nil {
			err = eachVendor(ctx, st, s.tenant, func(v payables.Vendor) error {
				return eachEntry(ctx, st, s.tenant, v.ID.Subject(), v.Head, line)
			})
		}
		return errors.Join(err, out.Flush())
	})
}

func export(e journal.Entry) exported {
	o := e.Operation()
	x := exported{
		Tenant: o.Tenant.String(), Subject: e.Subject().Kind + "/" + e.Subject().ID, Number: e.Number(), Operation: o.ID.String(), Principal: o.Principal,
		Via: o.Via, Tool: o.Tool, Key: o.Key.String(), At: o.At, Command: e.Command(), Facts: []fact{},
		Postings: []posting{}, Previous: e.Previous().String(), Hash: e.Hash().String(),
	}
	for _, f := range e.Facts() {
		x.Facts = append(x.Facts, fact{f.Name, f.Value})
	}
	for _, p := range e.Postings() {
		x.Postings = append(x.Postings, posting{string(p.Account), p.Lot, p.Side.String(), p.Amount.Minor(), p.Amount.Currency().String()})
	}
	return x
}
