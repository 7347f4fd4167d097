package app

import (
	"context"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// MaxPage is the most rows that one page of a list may have.
const MaxPage = 100

// ListRefunds returns up to limit (1 to MaxPage) refunds of a customer whose
// entry number is less than before, newest first, and whether there are more;
// before 0 starts at the newest.
func (a *App) ListRefunds(ctx context.Context, c Call, id customers.ID, before int64, limit int) (page []refunds.Refund, more bool, err error) {
	if err := access.Permit(c.Principal, access.RefundRead, access.Free); err != nil {
		return nil, false, err
	}
	if limit < 1 || limit > MaxPage {
		return nil, false, fault.New(fault.InvalidInput, "page_size", "A page has 1 to %d rows, not %d.", MaxPage, limit)
	}
	ctx, stop := context.WithTimeout(ctx, a.CallTimeout)
	defer stop()
	if _, err := a.account(ctx, c.Principal.Tenant(), id); err != nil {
		return nil, false, inTime(err)
	}
	page, err = a.Refunds.ListRefunds(ctx, c.Principal.Tenant(), id, before, limit+1)
	if err != nil {
		return nil, false, inTime(err)
	}
	if len(page) > limit {
		return page[:limit], true, nil
	}
	return page, false, nil
}

// OperationScopes are the scopes any of which is enough to look an operation of
// one's own up: who may write may know what became of it.
func OperationScopes() []access.Scope {
	return []access.Scope{access.RefundRead, access.RefundWrite, access.InvoiceRoute}
}

// Operation returns the outcome under a key of the caller, who has one of
// [OperationScopes]. known is false when the ledger could not be asked; a key
// that led to nothing is NOT_FOUND.
func (a *App) Operation(ctx context.Context, c Call, key operation.Key) (out ledger.Outcome, known bool, err error) {
	if err := access.PermitAny(c.Principal, access.Free, OperationScopes()...); err != nil {
		return ledger.Outcome{}, false, err
	}
	ctx, stop := context.WithTimeout(ctx, a.CallTimeout)
	defer stop()
	ref := ledger.OutcomeRef(c.Principal.ID(), key)
	view, err := a.Ledger.Load(ctx, c.Principal.Tenant(), ref)
	switch code := fault.CodeOf(inTime(err)); {
	case code == fault.BackendUnavailable || code == fault.OutcomeUnknown:
		return ledger.Outcome{}, false, nil
	case err != nil:
		return ledger.Outcome{}, false, err
	}
	out, ok := ledger.Get[ledger.Outcome](view, ref)
	if !ok {
		return ledger.Outcome{}, false, fault.New(fault.NotFound, "operation_not_found",
			"Nothing is booked under your key %s. A call whose answer was lost may still be under way: look again before anything else, and do not send it again yourself.", key)
	}
	return out, true, nil
}
