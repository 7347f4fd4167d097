package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/evals/bench/internal/load"
	"github.com/refundledger/refundledger/ports"
)

// store is the product's side of a benchmark: any of its ledgers.
type store interface {
	ports.Ledger
	ports.Journal
	ports.Refunds
}

// product makes refunds on a store as the application does: ids and times are
// made for each, the command is decided where the data is.
type product struct {
	store store
	close func() error
}

const principal = "bench"

var (
	tenant = must(access.ParseTenant("bench"))
	usd    = must(money.ParseCurrency("USD"))
	reason = must(refunds.ParseReason(load.Reason))
	ids    = func() []customers.ID {
		all := make([]customers.ID, load.Customers)
		for i := range all {
			all[i] = must(customers.ParseID(fmt.Sprintf("CUST-%05d", i)))
		}
		return all
	}()
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newOperation(key string) (operation.Operation, error) {
	k, err := operation.ParseKey(key)
	return operation.Operation{
		ID: system.IDs{}.NewID(), Tenant: tenant, Principal: principal, Tool: "bench", Key: k,
		At: system.Clock{}.Now().UTC().Truncate(time.Millisecond),
	}, err
}

// open opens the account of a customer.
func (p product) open(ctx context.Context, customer int) error {
	id := ids[customer]
	op, err := newOperation("open-" + id.String())
	if err != nil {
		return err
	}
	_, err = p.store.Do(ctx, op, customers.Open{
		ID: id, Profile: customers.Profile{Name: "Alice Johnson", Email: "alice.johnson@example.com"},
		Status: customers.Active, Opening: money.FromMinor(load.Opening, usd), CreatedAt: op.At,
	})
	return err
}

// openAll opens the accounts of the first n customers.
func (p product) openAll(ctx context.Context, n int) error {
	return each(n, func(i int) error { return p.open(ctx, i) })
}

// fill makes n refunds of a cent. customer says whose the i-th is.
func (p product) fill(ctx context.Context, name string, n int, customer func(i int) int) error {
	return each(n, func(i int) error {
		return p.Refund(ctx, load.Refund{Key: "fill-" + name + "-" + strconv.Itoa(i), Customer: customer(i), Minor: 1})
	})
}

// each does n things, 256 at once, and returns the first error.
func each(n int, do func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	for range min(n, 256) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Refund makes the refunds one by one.
func (p product) Refund(ctx context.Context, all ...load.Refund) error {
	for _, r := range all {
		op, err := newOperation(r.Key)
		if err != nil {
			return err
		}
		cmd := refunds.Trigger{Request: refunds.Request{Customer: ids[r.Customer], Amount: money.FromMinor(r.Minor, usd), Reason: reason}}
		if _, err := p.store.Do(ctx, op, cmd); err != nil {
			return err
		}
	}
	return nil
}

// Refunded counts by the accounts.
func (p product) Refunded(ctx context.Context) (count, minor int64, err error) {
	after := ""
	for {
		page, err := p.store.ListAccounts(ctx, tenant, after, 1000)
		if err != nil || len(page) == 0 {
			return count, minor, err
		}
		for _, a := range page {
			count += a.Version() - 1
			minor += load.Opening - a.Balance().Minor()
		}
		after = page[len(page)-1].ID.String()
	}
}

// Close closes the store.
func (p product) Close() error { return p.close() }
