// Package ports says what the application needs from outside: interfaces only
// (neither network ports nor ports of other software). Package portstest holds
// the laws that every adapter of them passes.
package ports

import (
	"context"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// Ledger is the system of record. All methods may be called at once.
//
// Errors are faults: what the rules refused, as the decision gave it; CONFLICT
// operation_key_reused; BACKEND_UNAVAILABLE if nothing happened and the same
// call may work later; OUTCOME_UNKNOWN if a write may have happened. Any other
// error is a defect, and nothing happened.
type Ledger interface {
	// Do runs cmd.Decide on the records it names, as they are at the commit, and
	// commits what it returned (new states, entries, the answer under op) as one
	// atomic, durable step. If op's key has an outcome already, nothing runs and
	// that outcome comes back, marked replayed; if that outcome is another
	// command's, CONFLICT. A refusal leaves no trace and the key free.
	//
	// Once the write has been handed to the store it runs on even if ctx ends;
	// Do then may return OUTCOME_UNKNOWN.
	Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error)

	// Load reads records by ref, each as of a moment after the call began; the
	// outcome under a key is a record like any other. It is for answering and
	// for resolving links, never a ground for a decision.
	Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error)
}

// Refunds reads the refunds of a customer for display.
type Refunds interface {
	// ListRefunds returns up to limit refunds of the customer whose entry number
	// is less than before, newest entry first; before <= 0 starts at the newest.
	// A customer without refunds, or unknown, has an empty list.
	ListRefunds(ctx context.Context, t access.Tenant, c customers.ID, before int64, limit int) ([]refunds.Refund, error)
}

// Journal reads what is booked, for verification and export.
type Journal interface {
	// ListAccounts returns up to limit accounts whose id is greater than after,
	// in order of id.
	ListAccounts(ctx context.Context, t access.Tenant, after string, limit int) ([]customers.Account, error)
	// ListEntries returns up to limit entries of the subject whose number is
	// greater than after, in order of number.
	ListEntries(ctx context.Context, t access.Tenant, s journal.Subject, after int64, limit int) ([]journal.Entry, error)
}

// Clock tells the time. The domain never asks it.
type Clock interface{ Now() time.Time }

// IDs makes ids that nobody can guess.
type IDs interface {
	// NewID returns a random UUID, version 4.
	NewID() operation.ID
}
