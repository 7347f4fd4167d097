package app

import (
	"context"
	"errors"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
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

// Operation returns the outcome under a key of the caller. known is false when
// the ledger could not be asked; a key that led to nothing is NOT_FOUND.
func (a *App) Operation(ctx context.Context, c Call, key operation.Key) (out ledger.Outcome, known bool, err error) {
	if err := access.Permit(c.Principal, access.RefundRead, access.Free); err != nil {
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
			"No operation of yours has the key %s. A call that was refused leaves none, so it may be sent again.", key)
	}
	return out, true, nil
}

// MaxVerified is the most entries that one call verifies.
const MaxVerified = 200_000

// Verification says what was checked and whether it holds.
type Verification struct {
	Customers int
	Entries   int
	Postings  int
	// Broken is the first bad entry, or nil if everything holds.
	Broken *journal.Broken
}

// VerifyLedger recomputes the chain, the postings and the balances of one
// customer, or of all if id is the zero value. More than MaxVerified entries
// are refused as POLICY_VIOLATION too_many_entries.
func (a *App) VerifyLedger(ctx context.Context, c Call, id customers.ID) (Verification, error) {
	if err := access.Permit(c.Principal, access.RefundRead, access.Free); err != nil {
		return Verification{}, err
	}
	ctx, stop := context.WithTimeout(ctx, a.CallTimeout)
	defer stop()
	v, err := a.verifyLedger(ctx, c.Principal.Tenant(), id)
	return v, inTime(err)
}

func (a *App) verifyLedger(ctx context.Context, t access.Tenant, id customers.ID) (v Verification, err error) {
	if id != (customers.ID{}) {
		account, err := a.account(ctx, t, id)
		if err != nil {
			return v, err
		}
		err = a.verify(ctx, t, account, &v)
		return v, err
	}
	after := ""
	for {
		page, err := a.Journal.ListAccounts(ctx, t, after, MaxPage)
		if err != nil || len(page) == 0 {
			return v, err
		}
		for _, account := range page {
			if err := a.verify(ctx, t, account, &v); err != nil || v.Broken != nil {
				return v, err
			}
		}
		after = page[len(page)-1].ID.String()
	}
}

// verify adds one account to v. Entries that came after the account was read
// are left out: those up to its head can not change any more.
func (a *App) verify(ctx context.Context, t access.Tenant, account customers.Account, v *Verification) error {
	subject := journal.Subject{Kind: customers.Kind.Name, ID: account.ID.String()}
	history := customers.NewHistory(account)
	v.Customers++
	for history.Head().Number < account.Head.Number {
		if v.Entries >= MaxVerified {
			return fault.New(fault.PolicyViolation, "too_many_entries",
				"There are more than %d entries to verify in one call. Verify one customer at a time, or run refund-ledgerd verify.", MaxVerified)
		}
		limit := min(1000, account.Head.Number-history.Head().Number)
		page, err := a.Journal.ListEntries(ctx, t, subject, history.Head().Number, int(limit))
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break // the entries end before the record does: Close says so
		}
		for _, e := range page {
			v.Entries++
			v.Postings += len(e.Postings())
			if err := history.Add(e); err != nil {
				return broken(err, v)
			}
		}
	}
	return broken(history.Close(), v)
}

// broken keeps the finding of a verification in v and returns any other error.
func broken(err error, v *Verification) error {
	if errors.As(err, &v.Broken) {
		return nil
	}
	return err
}
