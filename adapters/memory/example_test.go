package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

// A whole ledger in one process: open an account, give money back, send the
// same call again, ask for too much, and prove the books. Any other adapter
// takes the place of memory.New without a change to the rest.
func Example() {
	var book ports.Ledger = memory.New()
	ctx := context.Background()
	tenant, _ := access.ParseTenant("acme")
	usd, _ := money.ParseCurrency("USD")
	alice, _ := customers.ParseID("CUST-00001")
	reason, _ := refunds.ParseReason("Arrived broken.")

	// An attempt has an id and a time of its own; the key is the host's, the
	// same on each retry.
	attempts := byte(0)
	under := func(key string) operation.Operation {
		attempts++
		k, _ := operation.ParseKey(key)
		return operation.Operation{
			ID: operation.ID{attempts}, Tenant: tenant, Principal: "support-bot", Tool: "example", Key: k,
			At: time.Date(2026, 3, 1, 9, 0, int(attempts), 0, time.UTC),
		}
	}
	refund := func(key string, cents int64) {
		request := refunds.Request{Customer: alice, Amount: money.FromMinor(cents, usd), Reason: reason}
		out, err := book.Do(ctx, under(key), refunds.Trigger{Request: request})
		if err != nil {
			fmt.Println(key, "refused:", fault.CodeOf(err), fault.Of(err).Reason)
			return
		}
		r := out.Answer.(refunds.Refund)
		fmt.Println(key, r.Amount, "remaining", r.Remaining, "replayed", out.Replayed)
	}

	_, err := book.Do(ctx, under("open-alice"), customers.Open{
		ID: alice, Profile: customers.Profile{Name: "Alice Johnson", Email: "alice@example.com"},
		Status: customers.Active, Opening: money.FromMinor(100_00, usd), CreatedAt: time.Date(2024, 1, 15, 9, 30, 0, 0, time.UTC),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	refund("order-7", 30_00)
	refund("order-7", 30_00) // the answer was lost, so the host sends it again
	refund("order-7", 45_00) // the same key for something else
	refund("order-8", 70_01) // a cent too much
	refund("order-8", 70_00) // a refusal left the key free

	view, err := book.Load(ctx, tenant, alice.Ref())
	if err != nil {
		fmt.Println(err)
		return
	}
	account, _ := ledger.Get[customers.Account](view, alice.Ref())
	history := customers.NewHistory(account)
	entries, _ := book.(ports.Journal).ListEntries(ctx, tenant, journal.Subject{Kind: customers.Kind.Name, ID: alice.String()}, 0, 100)
	for _, e := range entries {
		if err := history.Add(e); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(account.Balance(), "after", len(entries), "entries; broken:", history.Close())
	// Output:
	// order-7 30.00 USD remaining 70.00 USD replayed false
	// order-7 30.00 USD remaining 70.00 USD replayed true
	// order-7 refused: CONFLICT operation_key_reused
	// order-8 refused: POLICY_VIOLATION balance_exceeded
	// order-8 70.00 USD remaining 0.00 USD replayed false
	// 0.00 USD after 3 entries; broken: <nil>
}
