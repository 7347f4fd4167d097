package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/refundledger/refundledger/adapters/restclient/contract"
)

func checkCommand() command {
	var o contract.Options
	return command{
		"check", "", 0, "check any service against the contract, a line per promise; exit 1 if one is broken",
		func(f *flag.FlagSet, _ *settings) {
			f.StringVar(&o.URL, "url", "http://127.0.0.1:3344", "where the service is")
			f.StringVar(&o.Token, "token", "", "a token for it; by default LEDGER_REST_TOKEN")
			f.StringVar(&o.Customer, "customer", "", "a customer made for it, whose balance is used up (needed)")
			f.StringVar(&o.Invoice, "invoice", "", "an invoice that is open or on hold, to check payables too: it is put on hold")
			f.StringVar(&o.Other, "other-token", "", "a token of another tenant, to see that the two are apart")
		},
		func(ctx context.Context, c console, s settings, _ []string) error {
			if o.Token == "" {
				o.Token = s.Token // a flag is seen by everybody on the machine
			}
			return check(ctx, c, o)
		},
	}
}

func check(ctx context.Context, c console, o contract.Options) error {
	if o.Token == "" || o.Customer == "" {
		return errors.New("--token and --customer are needed")
	}
	checked := 0
	broken, err := contract.Check(ctx, o, func(f contract.Finding) {
		switch {
		case f.Skipped != "":
			fmt.Fprintf(c.out, "not checked  %s (%s)\n", f.Promise, f.Skipped)
			return
		case f.Broken != nil:
			fmt.Fprintf(c.out, "BROKEN       %s %v\n", f.Promise, f.Broken)
		default:
			fmt.Fprintf(c.out, "holds        %s\n", f.Promise)
		}
		for _, field := range f.LeftOut {
			fmt.Fprintf(c.out, "left out     %s: such an invoice can not be approved without an override\n", field)
		}
		checked++
	})
	if err != nil {
		return err
	}
	if broken > 0 {
		return fmt.Errorf("%d of %d promises are broken", broken, checked)
	}
	fmt.Fprintf(c.out, "all %d promises that were checked hold\n", checked)
	return nil
}
