package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

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
	// Counted: it was counted too that nothing is there that no entry made. That
	// needs the whole ledger, and one that can count.
	Counted bool
	// Left is how many documents and numbers were decided about whenever they were
	// read, so that not all of them was compared.
	Left int
	// Broken is the first bad entry, or nil if everything holds.
	Broken *journal.Broken
}

// VerifyLedger recomputes the chain, the postings and the balances of one
// customer, or of all and of all vendors if id is the zero value, and compares
// each refund, each decision and each document on record with its entry. Of
// vendors it adds up again what was received, billed and credited; of the whole
// ledger it counts whether there is more than the entries made. More than most
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
			break
		}
		after = page[len(page)-1].ID.String()
	}
	if err := v.vendors(ctx); err != nil || v.Broken != nil {
		return err
	}
	return v.counts(ctx)
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
	h := customers.NewHistory(account)
	reversed := map[int64]bool{} // refunds that show as reversed, before the entry that reverses them
	s := subject{
		of: account.ID.Subject(), head: account.Head, history: h,
		now: func() (journal.Head, error) {
			again, err := v.app.account(ctx, v.tenant, account.ID)
			return again.Head, err
		},
		beside: func(e journal.Entry) (ref ledger.Ref, ok bool) {
			switch e.Command() {
			case refunds.TriggerName:
				return refunds.RefOf(account.ID, e.Number()), true
			case refunds.ReverseName, customers.AdjustName, customers.OpenName:
				return outcomeRef(e), true
			}
			return ledger.Ref{}, false
		},
		compare: func(view ledger.View, ref ledger.Ref, e journal.Entry) error {
			if e.Command() == refunds.TriggerName {
				r, there := ledger.Get[refunds.Refund](view, ref)
				if r.Status == refunds.Reversed {
					reversed[e.Number()] = true
				}
				return refunds.Verify(r, there, e, h.Balance())
			}
			o, _ := ledger.Get[ledger.Outcome](view, ref)
			switch made := o.Answer.(type) {
			case customers.Account:
				return h.CompareAnswer(made)
			case customers.Adjustment:
				return made.Verify(e, h.Balance())
			case refunds.Reversal:
				delete(reversed, made.Refund)
				return made.Verify(e, h.Balance())
			}
			return broken(e, answersWrong)
		},
	}
	if err := v.subject(ctx, s); err != nil || v.Broken != nil || len(reversed) == 0 {
		return err
	}
	switch now, err := s.now(); { // has it been reversed meanwhile?
	case err != nil:
		return err
	case now != s.head:
		return nil
	}
	return v.found(&journal.Broken{Subject: s.of, Number: slices.Min(slices.Collect(maps.Keys(reversed))), Why: "its refund shows as reversed, and no entry reversed it"})
}

func outcomeRef(e journal.Entry) ledger.Ref {
	return ledger.OutcomeRef(e.Operation().Principal, e.Operation().Key)
}

func broken(e journal.Entry, why string) error {
	return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: why}
}

// vendor verifies one vendor, its documents and the decisions on record.
func (v *verifier) vendor(ctx context.Context, vendor payables.Vendor) error {
	v.Vendors++
	h := payables.NewHistory(vendor)
	s := subject{
		of: vendor.ID.Subject(), head: vendor.Head, history: h, beside: h.Beside, compare: h.Compare,
		now: func() (journal.Head, error) {
			again, err := v.app.vendor(ctx, v.tenant, vendor.ID)
			return again.Head, err
		},
	}
	if err := v.subject(ctx, s); err != nil || v.Broken != nil {
		return err
	}
	follow := func() error {
		again, err := v.app.vendor(ctx, v.tenant, vendor.ID)
		if err != nil || again.Head == s.head {
			return err
		}
		h.Continue(again)
		s.head = again.Head
		return v.subject(ctx, s)
	}
	for _, part := range []func() error{
		func() error { return v.settled(h, h.States(), v.states(ctx, h.CompareState), follow) },
		func() error { return v.settled(h, h.Numbers(), v.states(ctx, h.CompareNumber), follow) },
		func() error { return v.settled(h, h.Credited(), v.credits(ctx, h), follow) },
		func() error { return v.billed(ctx, h) },
	} {
		if err := v.found(placed(part(), vendor.ID.Subject(), s.head.Number)); err != nil || v.Broken != nil {
			return err
		}
	}
	return nil
}

// readings is how often a record is read that is decided about meanwhile, before
// it is left.
const readings = 3

// reader reads records and returns what compares each.
type reader func([]ledger.Ref) (compare func(ledger.Ref) error, err error)

// settled compares records with what follows from the entries of a vendor. When a
// page of them is read, the history follows to where the vendor stands by then:
// those that an entry changed meanwhile are read again.
func (v *verifier) settled(h *payables.History, refs []ledger.Ref, read reader, follow func() error) error {
	for range readings {
		var again []ledger.Ref
		for page := range slices.Chunk(refs, statesPage) {
			known := h.Head().Number
			compare, err := read(page)
			if err == nil {
				err = follow()
			}
			if err != nil || v.Broken != nil {
				return err
			}
			for _, ref := range page {
				if h.Changed(ref) > known {
					again = append(again, ref)
				} else if err := compare(ref); err != nil {
					return err
				}
			}
		}
		refs = again
	}
	v.Left += len(refs)
	return nil
}

// states reads what follows from the entries of a vendor alone.
func (v *verifier) states(ctx context.Context, compare func(ledger.View, ledger.Ref) error) reader {
	return func(page []ledger.Ref) (func(ledger.Ref) error, error) {
		view, err := v.app.Ledger.Load(ctx, v.tenant, page...)
		return func(ref ledger.Ref) error { return compare(view, ref) }, err
	}
}

// credits reads what is credited on the invoices of a vendor, and its credit notes.
func (v *verifier) credits(ctx context.Context, h *payables.History) reader {
	return func(page []ledger.Ref) (func(ledger.Ref) error, error) {
		credited := map[ledger.Ref]*payables.Crediting{}
		for _, ref := range page {
			c, err := v.crediting(ctx, h, ref)
			if err != nil {
				return nil, err
			}
			credited[ref] = c
		}
		return func(ref ledger.Ref) error { return credited[ref].Compare() }, nil
	}
}

// crediting credits an invoice again.
func (v *verifier) crediting(ctx context.Context, h *payables.History, ref ledger.Ref) (*payables.Crediting, error) {
	view, err := v.app.Ledger.Load(ctx, v.tenant, ref)
	if err != nil {
		return nil, err
	}
	c, err := h.Crediting(view, ref)
	if err != nil {
		return nil, err
	}
	for page := range slices.Chunk(c.Notes(), statesPage) {
		reads := page
		if c.Order() != (payables.OrderID{}) {
			reads = append(slices.Clip(page), c.Order().Ref())
		}
		view, err := v.app.Ledger.Load(ctx, v.tenant, reads...)
		if err != nil {
			return nil, err
		}
		for _, note := range page {
			if err := c.Add(view, note); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// billed compares what is billed on the orders of a vendor with the approved
// invoices that name them, whoever's they are.
func (v *verifier) billed(ctx context.Context, h *payables.History) error {
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

// billedAtOnce compares what is billed on an order with its invoices once nothing
// is decided about it between one sum of them and the next.
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
	v.Left++
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

// subject is a record with a history, to be verified.
type subject struct {
	of      journal.Subject
	head    journal.Head // of the record as it was read at first
	history history
	now     func() (journal.Head, error) // reads the record again
	// beside names the record that an entry made beside, if it made one, and compare
	// compares the two.
	beside  func(journal.Entry) (ledger.Ref, bool)
	compare func(ledger.View, ledger.Ref, journal.Entry) error
}

// subject verifies a history up to the head of its record. Entries that came after
// the record was read are left out: those up to its head can not change any more.
func (v *verifier) subject(ctx context.Context, s subject) error {
	size := verifyPage
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		last := s.history.Head().Number
		if last > s.head.Number {
			return v.found(s.history.Close())
		}
		limit := size
		if rest := s.head.Number - last; rest < int64(limit) {
			limit = int(rest) + 1 // and the one after the head, if there is one
		}
		page, err := v.app.Journal.ListEntries(ctx, v.tenant, s.of, last, limit)
		switch {
		case nowhere(err) && limit > 1: // one by one, to find which
			size = 1
			continue
		case err != nil:
			return placed(err, s.of, last+1)
		}
		whole := len(page) < limit // the entries may end before the record does: Close says so
		if n := len(page) - 1; n >= 0 && page[n].Number() > s.head.Number {
			if err := afterHead(s, page[n]); err != nil {
				return v.found(err)
			}
			page, whole = page[:n], true
		}
		if v.most > 0 && v.Entries+len(page) > v.most {
			return tooManyEntries()
		}
		if err := v.page(ctx, s, page); err != nil || v.Broken != nil {
			return err
		}
		if whole {
			return v.found(s.history.Close())
		}
	}
}

// afterHead finds fault with an entry after the last that the record knows, unless
// the record has gone on meanwhile.
func afterHead(s subject, e journal.Entry) error {
	switch now, err := s.now(); {
	case err != nil:
		return err
	case now == s.head:
		return broken(e, "it stands after the last entry that the record knows")
	}
	return nil
}

// page verifies entries that follow each other.
func (v *verifier) page(ctx context.Context, s subject, page []journal.Entry) error {
	view, err := v.load(ctx, s, page)
	if err != nil {
		return v.found(err)
	}
	for _, e := range page {
		v.Entries++
		v.Postings += len(e.Postings())
		err := s.history.Add(e)
		if err == nil {
			err = outcomeOf(view, e)
		}
		if ref, ok := s.beside(e); ok && err == nil {
			err = s.compare(view, ref, e)
		}
		if err != nil {
			return v.found(err)
		}
	}
	return nil
}

// load reads what stands beside entries. If something can not be read, it says of
// which entry.
func (v *verifier) load(ctx context.Context, s subject, page []journal.Entry) (ledger.View, error) {
	var refs []ledger.Ref
	for _, e := range page {
		refs = append(refs, outcomeRef(e))
		if ref, ok := s.beside(e); ok && ref.Kind != ledger.OutcomeKind {
			refs = append(refs, ref)
		}
	}
	view, err := v.app.Ledger.Load(ctx, v.tenant, refs...)
	if !nowhere(err) {
		return view, err
	}
	if len(page) == 1 {
		return view, placed(err, s.of, page[0].Number())
	}
	for n := range page {
		if _, err := v.load(ctx, s, page[n:n+1]); err != nil {
			return view, err
		}
	}
	return view, err
}

// nowhere reports whether err is a finding that does not say where.
func nowhere(err error) bool {
	b, ok := errors.AsType[*journal.Broken](err)
	return ok && b.Subject == (journal.Subject{})
}

// placed returns err, which if it does not say where it is gets a place.
func placed(err error, s journal.Subject, number int64) error {
	if !nowhere(err) {
		return err
	}
	b, _ := errors.AsType[*journal.Broken](err)
	return &journal.Broken{Subject: s, Number: number, Why: b.Why}
}

// outcomeOf compares an entry with the outcome under its operation's key, which
// keeps the operation from happening twice.
func outcomeOf(view ledger.View, e journal.Entry) error {
	o, ok := ledger.Get[ledger.Outcome](view, outcomeRef(e))
	asked := e.Facts() // word for word, but for what a decision found beside
	if e.Command() == payables.RouteName {
		asked = payables.Asked(asked)
	}
	switch {
	case !ok:
		return broken(e, "there is no outcome under its operation key")
	case o.Operation != e.Operation() || o.Command != e.Command():
		return broken(e, "the outcome under its operation key is another operation's")
	case !answers(o.Answer, e):
		return broken(e, answersWrong)
	// What an import asked for is no entry's facts.
	case !slices.Contains(imports, e.Command()) && o.Fingerprint != operation.FingerprintOf(e.Command(), asked):
		return broken(e, "the outcome under its operation key is that of another request")
	}
	return nil
}

const answersWrong = "the outcome under its operation key answers with another record"

// answers reports whether the answer is one to the command of the entry, and names
// its operation.
func answers(answer ledger.Record, e journal.Entry) bool {
	op := e.Operation()
	switch answer := answer.(type) {
	case refunds.Refund:
		return e.Command() == refunds.TriggerName && answer.ID == op.ID
	case refunds.Reversal:
		return e.Command() == refunds.ReverseName && answer.ID == op.ID
	case customers.Adjustment:
		return e.Command() == customers.AdjustName && answer.ID == op.ID
	case customers.Account:
		return e.Command() == customers.OpenName
	case customers.Imported:
		return slices.Contains(imports, e.Command()) && answer.ID == op.ID && answer.ImportedAt.Equal(op.At)
	case payables.Decision:
		return e.Command() == payables.RouteName && answer.ID == op.ID
	}
	return false
}

// imports are the commands that answer with an import.
var imports = []string{customers.ImportName, payables.ImportVendorsName, payables.ImportOrdersName, payables.ImportReceiptsName, payables.ImportInvoicesName}

// recorded says which commands make a record of a kind with each of their entries.
// A new kind of record is added here: one that is not is a finding.
var recorded = []struct {
	kind     ledger.Kind
	commands []string
}{
	{customers.Kind, []string{customers.OpenName, customers.ImportName}},
	{customers.AdjustmentKind, []string{customers.AdjustName}},
	{refunds.Kind, []string{refunds.TriggerName}},
	{refunds.ReversalKind, []string{refunds.ReverseName}},
	{payables.VendorKind, []string{payables.ImportVendorsName}},
	{payables.OrderKind, []string{payables.ImportOrdersName}},
	{payables.ReceiptKind, []string{payables.ImportReceiptsName}},
	{payables.InvoiceKind, []string{payables.ImportInvoicesName}},
	{payables.NumberClaimKind, []string{payables.ImportInvoicesName}},
	{payables.DecisionKind, []string{payables.RouteName}},
}

// booked are the commands that make one entry whenever they are done.
var booked = []string{customers.OpenName, customers.AdjustName, refunds.TriggerName, refunds.ReverseName}

// counts compares how many records, entries and outcomes there are. The histories
// have shown that each entry has its records and its outcome: what is more belongs
// to no entry.
func (v *verifier) counts(ctx context.Context) error {
	if v.app.Census == nil || v.app.Payables == nil { // without the vendors it is not the whole
		return nil
	}
	c, err := v.app.Census.Count(ctx, v.tenant)
	if err != nil {
		return err
	}
	v.Counted = true
	for _, equal := range counted(c) {
		if equal.have != equal.want {
			return v.found(&journal.Broken{Why: fmt.Sprintf("%d %s are on record, and there should be %d", equal.have, equal.what, equal.want)})
		}
	}
	return nil
}

// equation says how many of something there are and should be.
type equation struct {
	have, want int64
	what       string
}

// counted returns what holds of the counts of a ledger.
func counted(c ports.Counts) (all []equation) {
	equal := func(have, want int64, what string) { all = append(all, equation{have, want, what}) }
	of := func(counts map[string]int64, commands []string) (sum int64) {
		for _, command := range commands {
			sum += counts[command]
		}
		return sum
	}
	known := slices.Concat(booked, imports, []string{payables.RouteName})
	unknown := func(counts map[string]int64, what string) {
		for command, n := range counts {
			if !slices.Contains(known, command) {
				equal(n, 0, what+" of the command "+command)
			}
		}
	}
	unknown(c.Entries, "entries")
	equal(of(c.Entries, known), c.Versions, "entries of customers and vendors")
	kinds := []ledger.Kind{customers.ImportKind}
	for _, r := range recorded {
		kinds = append(kinds, r.kind)
		equal(c.Records[r.kind], of(c.Entries, r.commands), "records of the kind "+r.kind.Name)
	}
	for kind, n := range c.Records {
		if !slices.Contains(kinds, kind) {
			equal(n, 0, "records of the kind "+kind.Name)
		}
	}
	equal(c.Imported, of(c.Entries, imports), "documents that imports brought in")
	if c.Outcomes == nil {
		return all
	}
	unknown(c.Outcomes, "outcomes")
	for _, command := range booked {
		equal(c.Outcomes[command], c.Entries[command], "outcomes of the command "+command)
	}
	equal(c.Records[customers.ImportKind], of(c.Outcomes, imports), "records of the kind "+customers.ImportKind.Name)
	equal(c.Answers[customers.ImportKind], of(c.Outcomes, imports), "answers of outcomes of imports")
	equal(c.Answers[payables.DecisionKind], c.Outcomes[payables.RouteName], "answers of outcomes of the command "+payables.RouteName)
	return all
}

// found keeps the finding of a verification and returns any other error.
func (v *verifier) found(err error) error {
	if errors.As(err, &v.Broken) {
		return nil
	}
	return err
}
