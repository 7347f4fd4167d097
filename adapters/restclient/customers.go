package restclient

import (
	"context"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
)

func loadCustomer(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	if _, err := customers.ParseID(ref.ID); err != nil {
		return nil, nil
	}
	return one(ctx, c, t, "", ref, restwire.GetCustomer, restwire.CustomerForm, ref.ID)
}

// ListAccounts implements ports.Journal.
func (c *Client) ListAccounts(ctx context.Context, t access.Tenant, after string, limit int) ([]customers.Account, error) {
	return ordered(ctx, c, t, restwire.ListCustomers, restwire.CustomerPages, nil, nil, nil, "after", after, limit, customers.ParseID,
		func(a customers.Account) string { return a.ID.String() }, func(customers.Account) bool { return true })
}
