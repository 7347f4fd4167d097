package app

import (
	"context"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/refunds"
)

// Customer returns the account of a customer, or NOT_FOUND.
func (a *App) Customer(ctx context.Context, c Call, id customers.ID) (customers.Account, error) {
	if err := access.Permit(c.Principal, access.CustomerRead, access.Free); err != nil {
		return customers.Account{}, err
	}
	ctx, stop := context.WithTimeout(ctx, a.CallTimeout)
	defer stop()
	account, err := a.account(ctx, c.Principal.Tenant(), id)
	return account, inTime(err)
}

func (a *App) account(ctx context.Context, t access.Tenant, id customers.ID) (customers.Account, error) {
	view, err := a.Ledger.Load(ctx, t, id.Ref())
	if err != nil {
		return customers.Account{}, err
	}
	account, ok := ledger.Get[customers.Account](view, id.Ref())
	if !ok {
		return customers.Account{}, customers.NotFound(id)
	}
	return account, nil
}

// TriggerRefund gives the customer amount major units back, at most once under
// the call's key. replayed is true if it had happened before. It refuses as
// [refunds.Decide] does, after NOT_FOUND and before amount_precision.
func (a *App) TriggerRefund(ctx context.Context, c Call, id customers.ID, amount money.Decimal, reason refunds.Reason) (r refunds.Refund, replayed bool, err error) {
	out, err := a.write(ctx, c, access.RefundWrite, access.Free, func(ctx context.Context) (ledger.Command, error) {
		// The currency of an account never changes, so it may be read ahead.
		account, err := a.account(ctx, c.Principal.Tenant(), id)
		if err != nil {
			return nil, err
		}
		request, err := refunds.Resolve(account, amount, reason)
		if err != nil {
			return nil, err
		}
		return refunds.Trigger{Request: request}, nil
	})
	if err != nil {
		return refunds.Refund{}, false, err
	}
	return out.Answer.(refunds.Refund), out.Replayed, nil
}
