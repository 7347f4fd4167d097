package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refundledger/refundledger/evals/bench/internal/load"
	"github.com/refundledger/refundledger/evals/bench/internal/side"
)

const allCustomers = "10,000 customers at random"

// warm is how long a database is used before the clock starts.
const warm = 300 * time.Millisecond

// opener makes a ledger with all customers and no refunds.
type opener func(context.Context, load.Plan) (load.Ledger, error)

// refundRows are two rows for one way to make refunds, each on fresh ledgers:
// of one hot customer, and of all customers.
func refundRows(name string, open opener, p load.Plan) []side.Row {
	how := fmt.Sprintf("%d clients", p.Clients)
	switch {
	case p.Batch > 1:
		how = fmt.Sprintf("%d a commit", p.Batch)
	case p.Clients == 1:
		how = "1 client"
	}
	hot := p
	hot.Customers = 1
	return []side.Row{
		{Name: name + ", hot, " + how, Measure: refunding(open, hot)},
		{Name: name + ", " + how, Measure: refunding(open, p)},
	}
}

// refunding measures a plan on a fresh ledger.
func refunding(open opener, p load.Plan) func(context.Context) (side.Sample, error) {
	return func(ctx context.Context) (side.Sample, error) {
		l, err := open(ctx, p)
		if err != nil {
			return side.Sample{}, err
		}
		s, err := p.Run(ctx, l)
		return s, errors.Join(err, l.Close())
	}
}
