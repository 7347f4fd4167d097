// Package demo holds the customers and invoices that a fresh memory ledger
// starts with and that `refund-ledgerd seed` writes: enough to try every answer
// of the tools.
package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/ports"
)

// Customers returns one active customer with money, one suspended, one active
// without money.
func Customers() []customers.Open {
	usd := must(money.ParseCurrency("USD"))
	created := time.Date(2024, 1, 15, 9, 30, 0, 0, time.UTC)
	open := func(id, name, email string, status customers.Status, cents int64, created time.Time) customers.Open {
		return customers.Open{
			ID: must(customers.ParseID(id)), Profile: customers.Profile{Name: name, Email: email},
			Status: status, Opening: money.FromMinor(cents, usd), CreatedAt: created,
		}
	}
	return []customers.Open{
		open("CUST-00001", "Alice Johnson", "alice.johnson@example.com", customers.Active, 500_00, created),
		open("CUST-00002", "Bruno Keller", "bruno.keller@example.com", customers.Suspended, 200_00, created.AddDate(0, 2, 7)),
		open("CUST-00003", "Chiara Rossi", "chiara.rossi@example.com", customers.Active, 0, created.AddDate(0, 5, 19)),
	}
}

// Seed opens the demo customers in the tenant and, if the ledger keeps
// payables, brings in the demo invoices, under keys of their own: seeding twice
// changes nothing. It goes to the ledger directly, as part of setting it up:
// there is no caller yet whom the application could permit it.
func Seed(ctx context.Context, l ports.Ledger, t access.Tenant, clock ports.Clock, ids ports.IDs) error {
	var steps []step
	for _, open := range Customers() {
		steps = append(steps, step{"seed-" + open.ID.String(), open})
	}
	if _, ok := l.(ports.Payables); ok {
		steps = append(steps, payablesSteps()...)
	}
	for _, s := range steps {
		op := operation.Operation{
			ID: ids.NewID(), Tenant: t, Principal: "seed", Tool: "seed",
			Key: must(operation.ParseKey(s.key)),
			At:  clock.Now().UTC().Truncate(time.Millisecond),
		}
		if _, err := l.Do(ctx, op, s.cmd); err != nil {
			return fmt.Errorf("seeding %s: %w", s.key, err)
		}
	}
	return nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
