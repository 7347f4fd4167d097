package app

import (
	"context"
	"errors"
	"slices"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
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

// MaxVerified is the most entries that one call verifies for an agent.
const MaxVerified = 200_000

// maxVerifying is how many verifications run at the same time.
const maxVerifying = 2

var verifying = make(chan struct{}, maxVerifying)

// Verification says what was checked and whether it holds.
type Verification struct {
	Customers int
	Vendors   int
	Entries   int
	Postings  int
	// Broken is the first bad entry, or nil if everything holds.
	Broken *journal.Broken
}

// VerifyLedger recomputes the chain, the postings and the balances of one
// customer, or of all and of all vendors if id is the zero value, and compares
// each refund, each decision and each document on record with its entry. Of
// vendors it adds up again what was received, billed and credited. More than most
// entries are refused as POLICY_VIOLATION too_many_entries; most 0 is no bound,
// neither of entries nor of time.
func (a *App) VerifyLedger(ctx context.Context, c Call, id customers.ID, most int) (Verification, error) {
	if err := access.Permit(c.Principal, access.RefundRead, access.Free); err != nil {
		return Verification{}, err
	}
	if most > 0 { // else an operator waits for it, however long it takes
		bounded, stop := context.WithTimeout(ctx, a.CallTimeout)
		defer stop()
		ctx = bounded
	}
	select {
	case verifying <- struct{}{}:
		defer func() { <-verifying }()
	case <-ctx.Done():
		return Verification{}, inTime(ctx.Err())
	}
	v := verifier{app: a, tenant: c.Principal.Tenant(), most: most}
	err := v.found(v.run(ctx, id)) // an adapter finds what can not be read at all
	if most > 0 && errors.Is(err, context.DeadlineExceeded) {
		err = tooManyEntries()
	}
	return v.Verification, inTime(err)
}

func tooManyEntries() error {
	return fault.New(fault.PolicyViolation, "too_many_entries",
		"There is more to verify than one call can. Verify one customer at a time, or ask the operator to run refund-ledgerd verify.")
}

// verifier is a verification under way.
type verifier struct {
	Verification
	app    *App
	tenant access.Tenant
	most   int
}

func (v *verifier) run(ctx context.Context, id customers.ID) error {
	if id != (customers.ID{}) {
		account, err := v.app.account(ctx, v.tenant, id)
		if err != nil {
			return err
		}
		return v.account(ctx, account)
	}
	after := ""
	for {
		page, err := v.app.Journal.ListAccounts(ctx, v.tenant, after, MaxPage)
		if err != nil {
			return err
		}
		for _, account := range page {
			if err := v.account(ctx, account); err != nil || v.Broken != nil {
				return err
			}
		}
		if len(page) == 0 {
			return v.vendors(ctx)
		}
		after = page[len(page)-1].ID.String()
	}
}

func (v *verifier) vendors(ctx context.Context) error {
	if v.app.Payables == nil {
		return nil
	}
	after := ""
	for {
		page, err := v.app.Payables.ListVendors(ctx, v.tenant, after, MaxPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, vendor := range page {
			if err := v.vendor(ctx, vendor); err != nil || v.Broken != nil {
				return err
			}
		}
		after = page[len(page)-1].ID.String()
	}
}

// account verifies one account and what its entries made beside: refunds,
// reversals and adjustments, and what was answered when it was opened. What stands
// under a key is the record that is kept.
func (v *verifier) account(ctx context.Context, account customers.Account) error {
	v.Customers++
	history := customers.NewHistory(account)
	beside := func(e journal.Entry) (ref ledger.Ref, ok bool) {
		switch e.Command() {
		case refunds.TriggerName:
			return refunds.RefOf(account.ID, e.Number()), true
		case refunds.ReverseName, customers.AdjustName, customers.OpenName:
			return outcomeRef(e), true
		}
		return ledger.Ref{}, false
	}
	return v.subject(ctx, account.ID.Subject(), account.Head, history, beside, func(view ledger.View, ref ledger.Ref, e journal.Entry) error {
		o, _ := ledger.Get[ledger.Outcome](view, outcomeRef(e))
		// What was asked is in these entries word for word.
		if o.Fingerprint != operation.FingerprintOf(e.Command(), e.Facts()) {
			return broken(e, "the outcome under its operation key is that of another request")
		}
		if e.Command() == refunds.TriggerName {
			r, there := ledger.Get[refunds.Refund](view, ref)
			return refunds.Verify(r, there, e, history.Balance())
		}
		if opened, ok := o.Answer.(customers.Account); ok && e.Command() == customers.OpenName {
			return history.CompareAnswer(opened)
		}
		made, ok := o.Answer.(interface {
			Verify(journal.Entry, money.Amount) error
		})
		if !ok {
			return broken(e, "the outcome under its operation key answers with another record")
		}
		return made.Verify(e, history.Balance())
	})
}

func outcomeRef(e journal.Entry) ledger.Ref {
	return ledger.OutcomeRef(e.Operation().Principal, e.Operation().Key)
}

func broken(e journal.Entry, why string) error {
	return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: why}
}

// vendor verifies one vendor, its documents and the decisions on record. The
// state of its orders and invoices is compared if nothing changes meanwhile.
func (v *verifier) vendor(ctx context.Context, vendor payables.Vendor) error {
	v.Vendors++
	h := payables.NewHistory(vendor)
	if err := v.subject(ctx, vendor.ID.Subject(), vendor.Head, h, h.Beside, h.Compare); err != nil || v.Broken != nil {
		return err
	}
	for _, part := range []func(context.Context, payables.Vendor, *payables.History) error{v.states, v.credits, v.billed} {
		if err := part(ctx, vendor, h); err != nil || v.Broken != nil {
			return v.found(err)
		}
	}
	return nil
}

// states compares what follows from the entries of a vendor alone.
func (v *verifier) states(ctx context.Context, vendor payables.Vendor, h *payables.History) error {
	for _, part := range []struct {
		refs    func() []ledger.Ref
		compare func(ledger.View, ledger.Ref) error
	}{{h.States, h.CompareState}, {h.Numbers, h.CompareNumber}} {
		for page := range slices.Chunk(part.refs(), statesPage) {
			view, err := v.app.Ledger.Load(ctx, v.tenant, page...)
			if err != nil {
				return err
			}
			if same, err := v.stands(ctx, vendor); err != nil || !same {
				return err
			}
			for _, ref := range page {
				if err := part.compare(view, ref); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// stands reports whether the vendor is still as it was read at first.
func (v *verifier) stands(ctx context.Context, vendor payables.Vendor) (bool, error) {
	now, err := v.app.vendor(ctx, v.tenant, vendor.ID)
	return now.Head == vendor.Head, err
}

// credits compares what is credited on the invoices of a vendor with its credit
// notes.
func (v *verifier) credits(ctx context.Context, vendor payables.Vendor, h *payables.History) error {
	for _, ref := range h.Credited() {
		view, err := v.app.Ledger.Load(ctx, v.tenant, ref)
		if err != nil {
			return err
		}
		c, err := h.Crediting(view, ref)
		if err != nil {
			return err
		}
		for page := range slices.Chunk(c.Notes(), statesPage) {
			reads := page
			if c.Order() != (payables.OrderID{}) {
				reads = append(slices.Clip(page), c.Order().Ref())
			}
			view, err := v.app.Ledger.Load(ctx, v.tenant, reads...)
			if err != nil {
				return err
			}
			for _, note := range page {
				if err := c.Add(view, note); err != nil {
					return err
				}
			}
		}
		if same, err := v.stands(ctx, vendor); err != nil || !same {
			return err
		}
		if err := c.Compare(); err != nil {
			return err
		}
	}
	return nil
}

// billed compares what is billed on the orders of a vendor with the approved
// invoices that name them, whoever's they are.
func (v *verifier) billed(ctx context.Context, _ payables.Vendor, h *payables.History) error {
	for page := range slices.Chunk(h.Orders(), statesPage) {
		view, err := v.app.Ledger.Load(ctx, v.tenant, page...)
		if err != nil {
			return err
		}
		sums, err := v.sums(ctx, h, view, page)
		if err != nil {
			return err
		}
		for n, sum := range sums {
			if sum.Compare(view) == nil {
				continue
			}
			if err := v.billedAtOnce(ctx, h, page[n], sum); err != nil {
				return err
			}
		}
	}
	return nil
}

// readings is how often an order is read that is decided about meanwhile.
const readings = 3

// billedAtOnce compares what is billed on an order with its invoices if nothing is
// decided about it between one sum of them and the next.
func (v *verifier) billedAtOnce(ctx context.Context, h *payables.History, order ledger.Ref, sum *payables.Billing) error {
	for range readings {
		view, err := v.app.Ledger.Load(ctx, v.tenant, order)
		if err != nil {
			return err
		}
		again, err := v.sums(ctx, h, view, []ledger.Ref{order})
		if err != nil {
			return err
		}
		if again[0].Same(sum) {
			return sum.Compare(view)
		}
		sum = again[0]
	}
	return nil
}

// sums adds up, of each of the orders, the approved invoices that name it.
func (v *verifier) sums(ctx context.Context, h *payables.History, view ledger.View, orders []ledger.Ref) (sums []*payables.Billing, err error) {
	var refs []ledger.Ref
	of := map[ledger.Ref]*payables.Billing{}
	add := func() error {
		view, err := v.app.Ledger.Load(ctx, v.tenant, refs...)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			if i, ok := ledger.Get[payables.Invoice](view, ref); ok {
				if err := of[ref].Add(i); err != nil {
					return err
				}
			}
		}
		refs = refs[:0]
		clear(of)
		return nil
	}
	for _, order := range orders {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sum, err := h.Billing(view, order)
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
		for after, more := "", true; more; {
			page, err := v.app.Payables.ListInvoices(ctx, v.tenant, ports.InvoiceFilter{Order: sum.Order(), Status: payables.Approved}, after, statesPage)
			if err != nil {
				return nil, err
			}
			for _, i := range page {
				refs, of[i.Ref()] = append(refs, i.Ref()), sum
				if len(refs) < statesPage {
					continue
				}
				if err := add(); err != nil {
					return nil, err
				}
			}
			if more = len(page) == statesPage; more {
				after = page[len(page)-1].ID.String()
			}
		}
	}
	if len(refs) > 0 {
		err = add()
	}
	return sums, err
}

// statesPage is how many documents are read at once: each may have thousands of
// lines.
const statesPage = 100

// history recomputes a record from its entries.
type history interface {
	Head() journal.Head
	Add(journal.Entry) error
	Close() error
}

// verifyPage is how many entries are read at once, with what stands beside them.
const verifyPage = 200

// subject verifies the history of one record up to its head. Entries that came
// after the record was read are left out: those up to its head can not change
// any more. beside names the record that an entry made beside, if it made one,
// and compare compares the two.
func (v *verifier) subject(ctx context.Context, s journal.Subject, head journal.Head, h history,
	beside func(journal.Entry) (ledger.Ref, bool), compare func(ledger.View, ledger.Ref, journal.Entry) error) error {
	for h.Head().Number < head.Number {
		if err := ctx.Err(); err != nil {
			return err
		}
		if v.most > 0 && v.Entries >= v.most {
			return tooManyEntries()
		}
		limit := min(verifyPage, head.Number-h.Head().Number)
		page, err := v.app.Journal.ListEntries(ctx, v.tenant, s, h.Head().Number, int(limit))
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break // the entries end before the record does: Close says so
		}
		var refs []ledger.Ref
		for _, e := range page {
			refs = append(refs, outcomeRef(e))
			if ref, ok := beside(e); ok && ref.Kind != ledger.OutcomeKind {
				refs = append(refs, ref)
			}
		}
		view, err := v.app.Ledger.Load(ctx, v.tenant, refs...)
		if err != nil {
			return err
		}
		for _, e := range page {
			v.Entries++
			v.Postings += len(e.Postings())
			err := h.Add(e)
			if err == nil {
				err = outcomeOf(view, e)
			}
			if ref, ok := beside(e); ok && err == nil {
				err = compare(view, ref, e)
			}
			if err != nil {
				return v.found(err)
			}
		}
	}
	return v.found(h.Close())
}

// outcomeOf compares an entry with the outcome under its operation's key, which
// keeps the operation from happening twice.
func outcomeOf(view ledger.View, e journal.Entry) error {
	o, ok := ledger.Get[ledger.Outcome](view, outcomeRef(e))
	switch {
	case !ok:
		return broken(e, "there is no outcome under its operation key")
	case o.Operation != e.Operation() || o.Command != e.Command():
		return broken(e, "the outcome under its operation key is another operation's")
	}
	if r, ok := o.Answer.(refunds.Refund); ok && r.ID != e.Operation().ID {
		return broken(e, "the outcome under its operation key answers with another refund")
	}
	if d, ok := o.Answer.(payables.Decision); ok && d.ID != e.Operation().ID {
		return broken(e, "the outcome under its operation key answers with another decision")
	}
	return nil
}

// found keeps the finding of a verification and returns any other error.
func (v *verifier) found(err error) error {
	if errors.As(err, &v.Broken) {
		return nil
	}
	return err
}
