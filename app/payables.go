package app

import (
	"context"
	"math/big"
	"slices"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// Bounds of what payables reads.
const (
	// MaxReceipts is how many receipts an invoice is shown with.
	MaxReceipts = 50
	// MaxRivals is how many other undecided invoices of an order a match looks at.
	MaxRivals = 50
	// MaxStatement is how many documents a statement lists.
	MaxStatement = 100
	// MaxSummarised is how many undecided invoices a summary matches.
	MaxSummarised = 1_000
)

// ListInvoices returns up to limit (1 to MaxPage) invoices that the filter
// matches and whose id is greater than after, and whether there are more. They
// come without their lines and decisions.
func (a *App) ListInvoices(ctx context.Context, c Call, f ports.InvoiceFilter, after string, limit int) (page []payables.Invoice, more bool, err error) {
	if err := access.Permit(c.Principal, access.InvoiceRead, access.Free); err != nil {
		return nil, false, err
	}
	if limit < 1 || limit > MaxPage {
		return nil, false, fault.New(fault.InvalidInput, "page_size", "A page has 1 to %d rows, not %d.", MaxPage, limit)
	}
	ctx, stop := context.WithTimeout(ctx, a.CallTimeout)
	defer stop()
	page, err = a.Payables.ListInvoices(ctx, c.Principal.Tenant(), f, after, limit+1)
	if err != nil {
		return nil, false, inTime(err)
	}
	if len(page) > limit {
		return page[:limit], true, nil
	}
	return page, false, nil
}

// InvoiceFile is an invoice with what it is matched with.
type InvoiceFile struct {
	Invoice  payables.Invoice
	Order    *payables.Order // that it names, or nil
	Receipts []payables.Receipt
	// MoreReceipts: the order has more than MaxReceipts.
	MoreReceipts bool
}

// Invoice returns an invoice with its order and receipts, or NOT_FOUND.
func (a *App) Invoice(ctx context.Context, c Call, id payables.InvoiceID) (InvoiceFile, error) {
	if err := access.Permit(c.Principal, access.InvoiceRead, access.Free); err != nil {
		return InvoiceFile{}, err
	}
	ctx, stop := context.WithTimeout(ctx, a.CallTimeout)
	defer stop()
	file, err := a.invoiceFile(ctx, c.Principal.Tenant(), id)
	return file, inTime(err)
}

func (a *App) invoiceFile(ctx context.Context, t access.Tenant, id payables.InvoiceID) (InvoiceFile, error) {
	var file InvoiceFile
	var err error
	if file.Invoice, err = a.invoice(ctx, t, id); err != nil || file.Invoice.Order == (payables.OrderID{}) {
		return file, err
	}
	ref := file.Invoice.Order.Ref()
	view, err := a.Ledger.Load(ctx, t, ref)
	if err != nil {
		return file, err
	}
	order, ok := ledger.Get[payables.Order](view, ref)
	if !ok {
		return file, nil
	}
	file.Order = &order
	file.Receipts, err = a.Payables.ListReceipts(ctx, t, order.ID, "", MaxReceipts+1)
	if len(file.Receipts) > MaxReceipts {
		file.Receipts, file.MoreReceipts = file.Receipts[:MaxReceipts], true
	}
	return file, err
}

func (a *App) invoice(ctx context.Context, t access.Tenant, id payables.InvoiceID) (payables.Invoice, error) {
	view, err := a.Ledger.Load(ctx, t, id.Ref())
	if err != nil {
		return payables.Invoice{}, err
	}
	i, ok := ledger.Get[payables.Invoice](view, id.Ref())
	if !ok {
		return payables.Invoice{}, payables.InvoiceNotFound(id)
	}
	return i, nil
}

// links returns an invoice with the links that it is decided with.
func (a *App) links(ctx context.Context, t access.Tenant, id payables.InvoiceID) (payables.Invoice, payables.Links, error) {
	i, err := a.invoice(ctx, t, id)
	if err != nil || i.Credits == (payables.InvoiceID{}) {
		return i, payables.LinksOf(i, nil), err
	}
	credited, err := a.invoice(ctx, t, i.Credits)
	if err != nil {
		return i, payables.Links{}, err
	}
	return i, payables.LinksOf(i, &credited), nil
}

// InvoiceMatch is the match of an invoice at a moment.
type InvoiceMatch struct {
	payables.Matched
	Invoice   payables.Invoice
	Tolerance payables.Tolerance
	AsOf      time.Time
}

// MatchInvoice matches an invoice with its order and receipts, as they are now.
func (a *App) MatchInvoice(ctx context.Context, c Call, id payables.InvoiceID) (InvoiceMatch, error) {
	if err := access.Permit(c.Principal, access.InvoiceRead, access.Free); err != nil {
		return InvoiceMatch{}, err
	}
	ctx, stop := context.WithTimeout(ctx, a.CallTimeout)
	defer stop()
	m, err := a.match(ctx, c.Principal.Tenant(), id)
	return m, inTime(err)
}

func (a *App) match(ctx context.Context, t access.Tenant, id payables.InvoiceID) (InvoiceMatch, error) {
	m := InvoiceMatch{AsOf: a.Clock.Now().UTC()}
	var err error
	if m.Tolerance, err = a.tolerance(ctx, t); err != nil {
		return m, err
	}
	_, links, err := a.links(ctx, t, id)
	if err != nil {
		return m, err
	}
	// One read: the invoice beside what it is compared with.
	view, err := a.Ledger.Load(ctx, t, append(links.Reads(), id.Ref())...)
	if err != nil {
		return m, err
	}
	var there bool
	if m.Invoice, there = ledger.Get[payables.Invoice](view, id.Ref()); !there {
		return m, payables.InvoiceNotFound(id)
	}
	facts := links.Facts(view)
	if links.Credits != (payables.InvoiceID{}) && facts.Credited == nil { // a note on nothing would be clean
		return m, payables.InvoiceNotFound(links.Credits)
	}
	if facts.Order != nil && m.Invoice.Document == payables.Bill && !m.Invoice.Status.Final() {
		if facts.Rivals, err = a.rivals(ctx, t, m.Invoice); err != nil {
			return m, err
		}
	}
	m.Matched, err = payables.Match(m.Invoice, facts, m.Tolerance)
	return m, err
}

// rivals reads the other undecided invoices of the order that an invoice names.
func (a *App) rivals(ctx context.Context, t access.Tenant, i payables.Invoice) ([]payables.Rival, error) {
	page, err := a.Payables.ListInvoices(ctx, t, ports.InvoiceFilter{Order: i.Order, Undecided: true}, "", MaxRivals+1)
	if err != nil {
		return nil, err
	}
	var refs []ledger.Ref
	var others []payables.Invoice
	for _, other := range page {
		if other.ID != i.ID && other.Document == payables.Bill {
			others = append(others, other)
			refs = append(refs, other.Ref(), other.ClaimRef())
		}
	}
	if len(others) == 0 {
		return nil, nil
	}
	view, err := a.Ledger.Load(ctx, t, refs...)
	if err != nil {
		return nil, err
	}
	var rivals []payables.Rival
	for _, other := range others {
		var r payables.Rival
		r.Invoice, _ = ledger.Get[payables.Invoice](view, other.Ref())
		r.Claim, _ = ledger.Get[payables.NumberClaim](view, other.ClaimRef())
		rivals = append(rivals, r)
	}
	return rivals, nil
}

// tolerance returns the one that decisions are made under: the ledger's, if it
// decides by itself.
func (a *App) tolerance(ctx context.Context, t access.Tenant) (payables.Tolerance, error) {
	if l, ok := a.Payables.(ports.Tolerances); ok {
		return l.Tolerance(ctx, t)
	}
	return a.Tolerance, nil
}

// RouteInvoice decides about an invoice, at most once under the call's key.
// changed is false if the very same had been decided before, by another call;
// replayed is true if it was this one. It refuses as [payables.Decide] does,
// after NOT_FOUND.
func (a *App) RouteInvoice(ctx context.Context, c Call, r payables.Request) (d payables.Decision, changed, replayed bool, err error) {
	out, err := a.write(ctx, c, access.InvoiceRoute, access.Free, func(ctx context.Context) (ledger.Command, error) {
		return a.Route(ctx, c, r)
	})
	if err != nil {
		return payables.Decision{}, false, false, err
	}
	d = out.Answer.(payables.Decision)
	return d, d.ID == out.Operation.ID, out.Replayed, nil
}

// Route makes the command of a request: with the links of the invoice as they
// are on record, and what the caller may. For [App.Write].
func (a *App) Route(ctx context.Context, c Call, r payables.Request) (ledger.Command, error) {
	_, links, err := a.links(ctx, c.Principal.Tenant(), r.Invoice)
	if err != nil {
		return nil, err
	}
	authority := payables.Authority{Tolerance: a.Tolerance, MayOverride: c.Principal.Scopes().Has(access.InvoiceOverride)}
	return payables.Route{Request: r, Links: links, Authority: authority}, nil
}

// Summary is where payables stand, one line for each currency.
type Summary struct {
	Currencies []CurrencySummary
	// Matched is how many undecided invoices were matched for the exceptions;
	// Complete is false if there are more.
	Matched  int
	Complete bool
}

// CurrencySummary is one currency of a summary. Credit notes count negative.
type CurrencySummary struct {
	Currency money.Currency
	// Synthesised is [payables.FieldCurrency] if the ledger does not say of some
	// that they are in it, of those summed up or of those matched, else nil.
	Synthesised []payables.Field
	Statuses    []StatusSummary
	Exposure    *big.Int // what is open and on hold, in minor units
	// Exceptions is how many undecided invoices have a blocking finding, by code.
	Exceptions map[payables.Code]int
}

// StatusSummary is how many invoices have a status, and their total in minor
// units.
type StatusSummary struct {
	Status payables.Status
	Count  int64
	Minor  *big.Int
}

// InvoiceSummary sums up the invoices of a currency, or of all if it is the zero
// value. It matches up to MaxSummarised undecided invoices.
func (a *App) InvoiceSummary(ctx context.Context, c Call, currency money.Currency) (Summary, error) {
	if err := access.Permit(c.Principal, access.InvoiceRead, access.Free); err != nil {
		return Summary{}, err
	}
	ctx, stop := context.WithTimeout(ctx, a.CallTimeout)
	defer stop()
	select {
	case summarising <- struct{}{}:
		defer func() { <-summarising }()
	case <-ctx.Done():
		return Summary{}, inTime(ctx.Err())
	}
	s, err := a.summary(ctx, c.Principal.Tenant(), currency)
	return s, inTime(err)
}

func (a *App) summary(ctx context.Context, t access.Tenant, only money.Currency) (Summary, error) {
	sums, err := a.Payables.SumInvoices(ctx, t)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Complete: true}
	at := map[money.Currency]int{}
	for _, sum := range sums {
		if only != (money.Currency{}) && sum.Currency != only {
			continue
		}
		n, known := at[sum.Currency]
		if !known {
			n = len(s.Currencies)
			at[sum.Currency] = n
			line := CurrencySummary{Currency: sum.Currency, Exposure: new(big.Int), Exceptions: map[payables.Code]int{}}
			for _, status := range payables.Statuses() {
				line.Statuses = append(line.Statuses, StatusSummary{Status: status, Minor: new(big.Int)})
			}
			s.Currencies = append(s.Currencies, line)
		}
		s.Currencies[n].add(sum)
		if len(sum.Synthesised) > 0 {
			s.Currencies[n].Synthesised = sum.Synthesised
		}
	}
	if len(at) == 0 {
		return s, nil
	}
	var undecided int64
	for _, line := range s.Currencies {
		for _, status := range line.Statuses {
			if !status.Status.Final() {
				undecided += status.Count
			}
		}
	}
	after := ""
	for {
		page, err := a.Payables.ListInvoices(ctx, t, ports.InvoiceFilter{Undecided: true, Currency: only}, after, summaryPage)
		if err != nil || len(page) == 0 {
			// Those of no currency on record may be summed up in another.
			s.Complete = s.Complete && int64(s.Matched) >= undecided
			return s, err
		}
		if s.Matched+len(page) > MaxSummarised {
			s.Complete = false
			return s, nil
		}
		matched, err := a.matchAll(ctx, t, page)
		if err != nil {
			return s, err
		}
		for _, i := range page {
			n, counted := at[i.Currency]
			if !counted {
				continue // newer than the sums
			}
			s.Matched++
			if slices.Contains(i.Synthesised, payables.FieldCurrency) {
				s.Currencies[n].Synthesised = []payables.Field{payables.FieldCurrency}
			}
			m, ok := matched[i.ID]
			if !ok { // it can not be computed, and can not be approved either
				s.Complete = false
			}
			for _, code := range payables.FindingCodes() {
				if code.Blocking() && m.Has(code) {
					s.Currencies[n].Exceptions[code]++
				}
			}
		}
		after = page[len(page)-1].ID.String()
	}
}

// summaryPage is how many invoices are matched at once: each, and its order, may
// have thousands of lines.
const summaryPage = 50

// maxSummarising is how many summaries are made at the same time.
const maxSummarising = 2

var summarising = make(chan struct{}, maxSummarising)

// matchAll matches the invoices of a page of a list with two reads. Those whose
// match can not be computed are left out.
func (a *App) matchAll(ctx context.Context, t access.Tenant, page []payables.Invoice) (map[payables.InvoiceID]payables.Matched, error) {
	named := map[ledger.Ref]bool{}
	var refs []ledger.Ref
	name := func(more ...ledger.Ref) {
		for _, ref := range more {
			if !named[ref] {
				named[ref] = true
				refs = append(refs, ref)
			}
		}
	}
	for _, i := range page {
		if i.Credits != (payables.InvoiceID{}) {
			name(i.Credits.Ref())
		}
	}
	credited, err := a.Ledger.Load(ctx, t, refs...)
	if err != nil {
		return nil, err
	}
	links := map[payables.InvoiceID]payables.Links{}
	for _, i := range page {
		l := payables.LinksOf(i, nil)
		if i.Credits != (payables.InvoiceID{}) {
			if c, ok := ledger.Get[payables.Invoice](credited, i.Credits.Ref()); ok {
				l = payables.LinksOf(i, &c)
			}
		}
		links[i.ID] = l
		name(i.Ref())
		name(l.Reads()...)
	}
	view, err := a.Ledger.Load(ctx, t, refs...)
	if err != nil {
		return nil, err
	}
	tolerance, err := a.tolerance(ctx, t)
	if err != nil {
		return nil, err
	}
	all := map[payables.InvoiceID]payables.Matched{}
	for _, header := range page {
		i, ok := ledger.Get[payables.Invoice](view, header.Ref())
		if !ok {
			continue
		}
		if m, err := payables.Match(i, links[i.ID].Facts(view), tolerance); err == nil {
			all[i.ID] = m
		}
	}
	return all, nil
}

func (c *CurrencySummary) add(sum ports.InvoiceSum) {
	minor := sum.Minor
	if sum.Document == payables.CreditNote {
		minor = new(big.Int).Neg(minor)
	}
	for i := range c.Statuses {
		if x := &c.Statuses[i]; x.Status == sum.Status {
			x.Count += sum.Count
			x.Minor.Add(x.Minor, minor)
		}
	}
	if !sum.Status.Final() {
		c.Exposure.Add(c.Exposure, minor)
	}
}

// Statement is what a vendor sent and what is owed.
type Statement struct {
	Vendor payables.Vendor
	Rows   []StatementRow // the newest MaxStatement documents, in order of entry
	// More: there are older ones.
	More bool
	// Balanced: the rows have balances. They have none if the ledger does not say
	// which balance some document is part of.
	Balanced bool
}

// StatementRow is one document. Balance is what was owed in its currency after
// it, of the approved documents in order of entry; the last one of a currency
// is what is owed now.
type StatementRow struct {
	Invoice payables.Invoice
	Balance money.Amount
}

// VendorStatement lists the documents of a vendor with a running balance.
func (a *App) VendorStatement(ctx context.Context, c Call, id payables.VendorID) (Statement, error) {
	if err := access.Permit(c.Principal, access.InvoiceRead, access.Free); err != nil {
		return Statement{}, err
	}
	ctx, stop := context.WithTimeout(ctx, a.CallTimeout)
	defer stop()
	s, err := a.statement(ctx, c.Principal.Tenant(), id)
	return s, inTime(err)
}

// statementTries is how often a statement is read while the vendor changes.
const statementTries = 5

// owedTo reads a vendor and its newest documents as they were at one moment.
func (a *App) owedTo(ctx context.Context, t access.Tenant, id payables.VendorID) (v payables.Vendor, latest []payables.Invoice, err error) {
	if v, err = a.vendor(ctx, t, id); err != nil {
		return v, nil, err
	}
	for range statementTries {
		if latest, err = a.Payables.LatestInvoices(ctx, t, id, 0, MaxStatement+1); err != nil {
			return v, nil, err
		}
		before := v
		if v, err = a.vendor(ctx, t, id); err != nil || v.Head == before.Head {
			return v, latest, err
		}
	}
	return v, nil, fault.New(fault.BackendUnavailable, "record_changing", "The vendor %s is changing all the time. Try again.", id)
}

func (a *App) vendor(ctx context.Context, t access.Tenant, id payables.VendorID) (payables.Vendor, error) {
	view, err := a.Ledger.Load(ctx, t, id.Ref())
	if err != nil {
		return payables.Vendor{}, err
	}
	v, ok := ledger.Get[payables.Vendor](view, id.Ref())
	if !ok {
		return payables.Vendor{}, payables.VendorNotFound(id)
	}
	return v, nil
}

func (a *App) statement(ctx context.Context, t access.Tenant, id payables.VendorID) (Statement, error) {
	vendor, latest, err := a.owedTo(ctx, t, id)
	if err != nil {
		return Statement{}, err
	}
	s := Statement{Vendor: vendor}
	if len(latest) > MaxStatement {
		latest, s.More = latest[:MaxStatement], true
	}
	s.Balanced = balanced(vendor, latest)
	owed := map[money.Currency]money.Amount{}
	for _, b := range vendor.Balances {
		owed[b.Currency()] = b
	}
	s.Rows = make([]StatementRow, len(latest))
	for n, i := range latest { // the newest first, back from what is owed now
		after, ok := owed[i.Currency]
		if !ok {
			after = money.FromMinor(0, i.Currency)
		}
		row := &s.Rows[len(latest)-1-n]
		row.Invoice = i
		if !s.Balanced {
			continue
		}
		row.Balance = after
		if i.Status == payables.Approved {
			before := after.Sub
			if i.Document == payables.CreditNote {
				before = after.Add
			}
			if after, err = before(i.Total); err != nil {
				return Statement{}, err
			}
		}
		owed[i.Currency] = after
	}
	return s, nil
}

// balanced reports whether the documents are in the currencies of the balances:
// all of them say it, or none does and nor does the balance, which then is one of
// whatever currency it is.
func balanced(v payables.Vendor, documents []payables.Invoice) bool {
	filled := 0
	for _, i := range documents {
		if slices.Contains(i.Synthesised, payables.FieldCurrency) {
			filled++
		}
	}
	if filled == 0 && len(v.Synthesised) == 0 {
		return true
	}
	return filled == len(documents) && (len(v.Balances) == 0 || len(v.Balances) == 1 && len(v.Synthesised) > 0)
}

// ImportVendors brings vendors in, all or none; see [payables.ImportVendors].
func (a *App) ImportVendors(ctx context.Context, c Call, list []payables.Vendor) (customers.Imported, error) {
	return a.importDocuments(ctx, c, func(context.Context) (ledger.Command, error) {
		return payables.ImportVendors{Vendors: list}, nil
	})
}

// ImportOrders brings purchase orders in, all or none; see
// [payables.ImportOrders].
func (a *App) ImportOrders(ctx context.Context, c Call, list []payables.Order) (customers.Imported, error) {
	return a.importDocuments(ctx, c, func(context.Context) (ledger.Command, error) {
		return payables.ImportOrders{Orders: list}, nil
	})
}

// ImportReceipts books goods in, or back out, all or none; see
// [payables.ImportReceipts].
func (a *App) ImportReceipts(ctx context.Context, c Call, list []payables.Receipt) (customers.Imported, error) {
	return a.importDocuments(ctx, c, func(ctx context.Context) (ledger.Command, error) {
		return payables.ReceiptsOf(list, func(refs ...ledger.Ref) (ledger.View, error) {
			return a.Ledger.Load(ctx, c.Principal.Tenant(), refs...)
		})
	})
}

// ImportInvoices enters invoices and credit notes, all or none; see
// [payables.ImportInvoices].
func (a *App) ImportInvoices(ctx context.Context, c Call, list []payables.Invoice) (customers.Imported, error) {
	return a.importDocuments(ctx, c, func(context.Context) (ledger.Command, error) {
		return payables.ImportInvoices{Invoices: list}, nil
	})
}

func (a *App) importDocuments(ctx context.Context, c Call, build func(context.Context) (ledger.Command, error)) (customers.Imported, error) {
	out, err := a.write(ctx, c, access.ControlRules, access.Free, func(ctx context.Context) (ledger.Command, error) {
		cmd, err := build(ctx)
		if err != nil {
			return nil, err
		}
		// A ledger elsewhere may not be sent all that is wrong.
		if checked, ok := cmd.(interface{ Check() []fault.Issue }); ok {
			if issues := checked.Check(); len(issues) > 0 {
				return nil, fault.Invalid(issues)
			}
		}
		return cmd, nil
	})
	if err != nil {
		return customers.Imported{}, err
	}
	return out.Answer.(customers.Imported), nil
}
