package app

import (
	"context"
	"errors"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/refunds"
)

// ReverseRefund books back the refund of an entry, whose payment failed for
// good. It needs a scope that no agent can hold.
func (a *App) ReverseRefund(ctx context.Context, c Call, id customers.ID, entry int64, reason refunds.Reason) (refunds.Reversal, error) {
	out, err := a.write(ctx, c, access.ControlRules, access.Free, func(context.Context) (ledger.Command, error) {
		return refunds.Reverse{Customer: id, Refund: entry, Reason: reason}, nil
	})
	if err != nil {
		return refunds.Reversal{}, err
	}
	return out.Answer.(refunds.Reversal), nil
}

// AdjustCustomer adds change major units to what the customer can be refunded,
// or takes them if it is negative. It needs a scope that no agent can hold.
func (a *App) AdjustCustomer(ctx context.Context, c Call, id customers.ID, change money.Decimal, why string) (customers.Adjustment, error) {
	out, err := a.write(ctx, c, access.ControlRules, access.Free, func(ctx context.Context) (ledger.Command, error) {
		account, err := a.account(ctx, c.Principal.Tenant(), id)
		if err != nil {
			return nil, err
		}
		exact, err := change.In(account.Currency)
		if errors.Is(err, money.ErrPrecision) {
			return nil, refunds.Precision(account, change)
		}
		if err != nil {
			return nil, customers.OutOfRange(account)
		}
		return customers.Adjust{Customer: id, Change: exact, Why: why}, nil
	})
	if err != nil {
		return customers.Adjustment{}, err
	}
	return out.Answer.(customers.Adjustment), nil
}

// ImportCustomers opens accounts, all or none; see [customers.Import].
func (a *App) ImportCustomers(ctx context.Context, c Call, list []customers.Open) (customers.Imported, error) {
	out, err := a.write(ctx, c, access.ControlRules, access.Free, func(context.Context) (ledger.Command, error) {
		return customers.Import{Customers: list}, nil
	})
	if err != nil {
		return customers.Imported{}, err
	}
	return out.Answer.(customers.Imported), nil
}
