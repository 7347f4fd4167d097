// Package ports says what the application needs from outside: interfaces only
// (neither network ports nor ports of other software). Package portstest holds
// the laws that every adapter of them passes.
package ports

import (
	"context"
	"math/big"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
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
	// outcome under a key is a record like any other. While a write of this store
	// under that key runs, its end is waited for: if there is no outcome then,
	// nothing will come of any write that had begun. Load is for answering and for
	// resolving links, never a ground for a decision.
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

// Census counts what a ledger holds, so that a verification finds what is more than
// the entries made. It reads all that there is of the tenant.
type Census interface {
	// Count counts all at one moment.
	Count(ctx context.Context, t access.Tenant) (Counts, error)
}

// Counts are how many there are of each.
type Counts struct {
	// Versions is the sum of the versions of all accounts and vendors.
	Versions int64
	// Entries are those of each command.
	Entries map[string]int64
	// Outcomes are those of each command; nil if an outcome is kept as part of its
	// entries.
	Outcomes map[string]int64
	// Answers are the outcomes whose answer is on record, of the kinds of answer that
	// an outcome without an entry has: decisions and imports. Nil as Outcomes is.
	Answers map[ledger.Kind]int64
	// Records are those of every kind that is kept but outcomes and entries. Each
	// document that carries a number is one claim.
	Records map[ledger.Kind]int64
	// Imported is the sum of what the imports opened.
	Imported int64
}

// Clock tells the time. The domain never asks it.
type Clock interface{ Now() time.Time }

// IDs makes ids that nobody can guess.
type IDs interface {
	// NewID returns a random UUID, version 4.
	NewID() operation.ID
}

// Payables reads what is for display and search in payables; decisions read
// records by key. Invoices come without their lines and decisions.
type Payables interface {
	// ListInvoices returns up to limit invoices that the filter matches and whose
	// id is greater than after, in order of id.
	ListInvoices(ctx context.Context, t access.Tenant, f InvoiceFilter, after string, limit int) ([]payables.Invoice, error)
	// LatestInvoices returns up to limit invoices of the vendor that were entered
	// before an entry number, the one entered last first; before <= 0 starts at
	// the newest.
	LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) ([]payables.Invoice, error)
	// SumInvoices returns how many invoices there are and their total, for each
	// currency, kind of document and status that there are, in this order.
	SumInvoices(ctx context.Context, t access.Tenant) ([]InvoiceSum, error)
	// ListReceipts returns up to limit receipts of the order whose id is greater
	// than after, in order of id.
	ListReceipts(ctx context.Context, t access.Tenant, o payables.OrderID, after string, limit int) ([]payables.Receipt, error)
	// ListVendors returns up to limit vendors whose id is greater than after, in
	// order of id.
	ListVendors(ctx context.Context, t access.Tenant, after string, limit int) ([]payables.Vendor, error)
}

// InvoiceFilter says which invoices a list has. A zero field matches all.
type InvoiceFilter struct {
	Status payables.Status
	Vendor payables.VendorID
	Order  payables.OrderID
	// Currency is what they are in, whatever its digits.
	Currency money.Currency
	// Undecided matches what is open or on hold.
	Undecided bool
}

// Tolerances is what a ledger has beside [Payables] that decides by itself,
// under a tolerance of its own: whoever shows a match shows it under this one.
type Tolerances interface {
	// Tolerance returns how far the invoiced prices of the tenant may differ from
	// ordered ones.
	Tolerance(ctx context.Context, t access.Tenant) (payables.Tolerance, error)
}

// InvoiceSum is one line of a summary.
type InvoiceSum struct {
	Currency money.Currency
	Document payables.DocumentKind
	Status   payables.Status
	Count    int64
	Minor    *big.Int // the sum of the totals in minor units
	// Synthesised is [payables.FieldCurrency] if the ledger does not say what they
	// are in, else nil; such invoices have a line of their own.
	Synthesised []payables.Field
}
