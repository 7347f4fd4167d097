package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

var invoiceTable = Table{"invoices", []Column{
	{"tenant", Text, Key},
	{"id", Text, Key},
	{"number", Text, Fixed},
	{"normal", Text, Fixed},
	{"document", Text, Fixed},
	{"credits", Text, Fixed},
	{"vendor", Text, Fixed},
	{"purchase_order", Text, Fixed},
	{"currency", Text, Fixed},
	{"digits", Int, Fixed},
	{"tax_minor", Int, Fixed},
	{"freight_minor", Int, Fixed},
	{"total_minor", Int, Fixed},
	{"invoice_date", Text, Fixed},
	{"entered", Int, Fixed},
	{"status", Text, State},
	{"decision", Int, State},
	{"credited_minor", Int, State},
}}

var invoiceLineTable = Table{"invoice_lines", []Column{
	{"tenant", Text, Key},
	{"invoice", Text, Key},
	{"line", Int, Key},
	{"order_line", Int, Fixed},
	{"sku", Text, Fixed},
	{"unit", Text, Fixed},
	{"quantity_micro", Int, Fixed},
	{"unit_price_minor", Int, Fixed},
	{"amount_minor", Int, Fixed},
	{"credited_numerator", Int, State},
	{"credited_denominator", Int, State},
}}

const invoiceColumns = `r.id, r.number, r.normal, r.document, r.credits, r.vendor, r.purchase_order, r.currency, r.digits,
	r.tax_minor, r.freight_minor, r.total_minor, r.invoice_date, r.entered, r.status, r.decision, r.credited_minor`

// invoiceCodec keeps invoices. The decision of one is the row that it names.
type invoiceCodec struct {
	document[payables.Invoice, invoiceRow]
	unanswered
}

func newInvoiceCodec(d Dialect) *invoiceCodec {
	const lines = `l.line, l.order_line, l.sku, l.unit, l.quantity_micro, l.unit_price_minor, l.amount_minor, l.credited_numerator, l.credited_denominator`
	decided := func(columns, table, order string) string {
		return "SELECT k.n, " + columns + " FROM " + d.Keys(byID()...) + " JOIN invoices i ON i.tenant = k.tenant AND i.id = k.id JOIN " +
			table + " r ON r.tenant = i.tenant AND r.vendor = i.vendor AND r.number = i.decision" + order
	}
	return &invoiceCodec{document: document[payables.Invoice, invoiceRow]{
		dialect: d, of: payables.InvoiceKind, keys: byID(), name: isID,
		byKey: byIDQuery(d, "invoices", invoiceColumns),
		lock:  d.Lock("r.tenant, r.id", payables.InvoiceKind.Shared),
		head:  (*invoiceRow).fields,
		parts: []part[invoiceRow]{
			{partQuery(d, "invoice_lines", "invoice", lines, "l.line"), invoiceLineFields},
			{decided(decisionColumns, "decisions", ""), func() ([]any, func(*invoiceRow)) {
				var of decisionRow
				return of.fields(), func(i *invoiceRow) { copied := of; i.decided = &copied }
			}},
			{decided(findingColumns, "decision_findings", " ORDER BY k.n, r.position"), findingFields((*invoiceRow).last)},
			{decided(namedColumns, "decision_finding_invoices", " ORDER BY k.n, r.position, r.place"), namedFields((*invoiceRow).last)},
		},
		record: (*invoiceRow).invoice,
	}}
}

// write writes the row, if it changed, and the lines that changed: of ten
// thousand lines a decision changes none, a credit note those that it credits.
func (c *invoiceCodec) write(w *writes, ch committer.Changed) {
	i := ch.After.(payables.Invoice)
	t, id := ch.Tenant.String(), i.ID.String()
	before, there := ch.Before.(payables.Invoice)
	if !there || i.Status != before.Status || decisionOf(i) != decisionOf(before) || i.Credited != before.Credited {
		verb := Insert
		if there {
			verb = Update
		}
		w.add(verb, &invoiceTable, t, id, i.Number.String(), i.Number.Normal(), i.Document.String(), i.Credits.String(), i.Vendor.String(), i.Order.String(),
			i.Currency.String(), int64(i.Currency.Digits()), i.Tax.Minor(), i.Freight.Minor(), i.Total.Minor(), i.Date.String(), i.Entered,
			i.Status.String(), decisionOf(i), i.Credited.Minor())
	}
	for n, l := range i.Lines {
		verb := Insert
		if there {
			if l.Credited == before.Lines[n].Credited {
				continue
			}
			verb = Update
		}
		credited, creditedOf := l.Credited.Fraction()
		w.add(verb, &invoiceLineTable, t, id, int64(l.Line), int64(l.OrderLine), l.SKU.String(), l.Unit.String(), l.Quantity.Micro(), l.UnitPrice.Minor(), l.Amount.Minor(),
			credited, creditedOf)
	}
}

// decisionOf is the number of the last decision, or 0.
func decisionOf(i payables.Invoice) int64 {
	if i.Decision == nil {
		return 0
	}
	return i.Decision.Number
}

// invoiceRow is an invoice as the database holds it.
type invoiceRow struct {
	id, number, normal, document, credits, vendor, order, currency string
	digits                                                         int
	tax, freight, total                                            int64
	date                                                           string
	entered                                                        int64
	status                                                         string
	decision, credited                                             int64
	lines                                                          []invoiceLineRow
	decided                                                        *decisionRow
}

type invoiceLineRow struct {
	line, orderLine         int
	sku, unit               string
	quantity, price, amount int64
	credited                ratio
}

func (i *invoiceRow) fields() []any {
	return []any{&i.id, &i.number, &i.normal, &i.document, &i.credits, &i.vendor, &i.order, &i.currency, &i.digits,
		&i.tax, &i.freight, &i.total, &i.date, &i.entered, &i.status, &i.decision, &i.credited}
}

func (i *invoiceRow) last() *decisionRow { return i.decided }

func invoiceLineFields() ([]any, func(*invoiceRow)) {
	var l invoiceLineRow
	return []any{&l.line, &l.orderLine, &l.sku, &l.unit, &l.quantity, &l.price, &l.amount, &l.credited.numerator, &l.credited.denominator},
		func(i *invoiceRow) { i.lines = append(i.lines, l) }
}

func (i *invoiceRow) invoice() (payables.Invoice, error) {
	r, err := i.header()
	if err != nil {
		return r, err
	}
	r.Lines = make([]payables.InvoiceLine, len(i.lines))
	for n, l := range i.lines {
		line := payables.InvoiceLine{
			Line: l.line, OrderLine: l.orderLine, SKU: payables.Restore[payables.SKU](l.sku), Unit: payables.Restore[payables.Unit](l.unit),
			Quantity: payables.QuantityOfMicro(l.quantity), UnitPrice: money.FromMinor(l.price, r.Currency), Amount: money.FromMinor(l.amount, r.Currency),
		}
		if line.Credited, err = l.credited.restore(); err != nil {
			return r, err
		}
		r.Lines[n] = line
	}
	switch {
	case i.decided != nil:
		d, err := i.decided.decision()
		r.Decision = &d
		return r, err
	case i.decision != 0:
		return r, fmt.Errorf("its decision %d is not there", i.decision)
	}
	return r, nil
}

// header is the invoice without its lines and its decision.
func (i *invoiceRow) header() (payables.Invoice, error) {
	c, err := money.RestoreCurrency(i.currency, i.digits)
	if err != nil {
		return payables.Invoice{}, err
	}
	r := payables.Invoice{
		ID: payables.Restore[payables.InvoiceID](i.id), Number: payables.RestoreNumber(i.number, i.normal), Credits: payables.Restore[payables.InvoiceID](i.credits),
		Vendor: payables.Restore[payables.VendorID](i.vendor), Order: payables.Restore[payables.OrderID](i.order), Currency: c,
		Tax: money.FromMinor(i.tax, c), Freight: money.FromMinor(i.freight, c), Total: money.FromMinor(i.total, c),
		Date: payables.Restore[payables.Date](i.date), Entered: i.entered, Credited: money.FromMinor(i.credited, c),
	}
	if r.Document, err = payables.ParseDocumentKind(i.document); err != nil {
		return r, err
	}
	r.Status, err = payables.ParseStatus(i.status)
	return r, err
}

// The lists of invoices. Those with a filter are of one status each, so that an
// index has their rows in order of id.
const (
	invoicePage      = `SELECT ` + invoiceColumns + ` FROM invoices r WHERE r.tenant = $1 AND r.id > $2 ORDER BY r.id LIMIT $3`
	invoicePageStart = `SELECT ` + invoiceColumns + ` FROM invoices r WHERE r.tenant = $1 AND r.status = $4`
	invoicePageEnd   = ` ORDER BY r.id LIMIT $3`
	invoicesOfStatus = invoicePageStart + ` AND r.id > $2 AND ($5 = '' OR r.currency = $5)` + invoicePageEnd
	invoicesOfVendor = invoicePageStart + ` AND r.vendor = $5 AND r.id > $2 AND ($6 = '' OR r.currency = $6)` + invoicePageEnd
	invoicesOfOrder  = invoicePageStart + ` AND r.purchase_order = $5 AND r.id > $2 AND ($6 = '' OR r.currency = $6)` + invoicePageEnd
	invoicesOfBoth   = invoicePageStart + ` AND r.purchase_order = $5 AND r.vendor = $6 AND r.id > $2 AND ($7 = '' OR r.currency = $7)` + invoicePageEnd

	latestInvoices = `SELECT ` + invoiceColumns + ` FROM invoices r WHERE r.tenant = $1 AND r.vendor = $2 AND r.entered < $4 ORDER BY r.entered DESC LIMIT $3`

	// Sums of halves of 32 bits: neither overflows, however large the totals are.
	invoiceSums = `SELECT r.currency, r.digits, r.document, r.status, count(*),
		CAST(sum(r.total_minor >> 32) AS bigint), CAST(sum(r.total_minor & 4294967295) AS bigint)
		FROM invoices r WHERE r.tenant = $1
		GROUP BY r.currency, r.digits, r.document, r.status
		ORDER BY r.currency, r.document, r.status`
)

// ListInvoices implements ports.Payables.
func (s *Store) ListInvoices(ctx context.Context, t access.Tenant, f ports.InvoiceFilter, after string, limit int) ([]payables.Invoice, error) {
	args, ok := pageArgs(t, after, limit)
	if !ok {
		return nil, nil
	}
	if f == (ports.InvoiceFilter{}) {
		return s.invoiceHeaders(ctx, limit, Step{SQL: invoicePage, Args: args})
	}
	query := invoicesOfStatus
	var by []any
	switch of, from := f.Order != (payables.OrderID{}), f.Vendor != (payables.VendorID{}); {
	case of && from:
		query, by = invoicesOfBoth, []any{f.Order.String(), f.Vendor.String()}
	case of:
		query, by = invoicesOfOrder, []any{f.Order.String()}
	case from:
		query, by = invoicesOfVendor, []any{f.Vendor.String()}
	}
	by = append(by, f.Currency.String())
	var steps []Step
	for _, status := range payables.Statuses() {
		if (f.Status == payables.Status{} || f.Status == status) && !(f.Undecided && status.Final()) {
			steps = append(steps, Step{SQL: query, Args: append(append(slices.Clip(args), status.String()), by...)})
		}
	}
	return s.invoiceHeaders(ctx, limit, steps...)
}

// LatestInvoices implements ports.Payables.
func (s *Store) LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) ([]payables.Invoice, error) {
	if limit <= 0 {
		return nil, nil
	}
	if before <= 0 {
		before = math.MaxInt64
	}
	return s.invoiceHeaders(ctx, limit, Step{SQL: latestInvoices, Args: []any{t.String(), v.String(), int64(min(limit, math.MaxInt32)), before}})
}

// invoiceHeaders reads up to limit invoices without their lines and decisions;
// what several steps give is put in order of id.
func (s *Store) invoiceHeaders(ctx context.Context, limit int, steps ...Step) ([]payables.Invoice, error) {
	var list []payables.Invoice
	for n := range steps {
		steps[n].Row = func(r Row) error {
			var row invoiceRow
			if err := r.Scan(row.fields()...); err != nil {
				return err
			}
			i, err := row.header()
			if err != nil {
				return unreadable("invoice %s: %w", row.id, err)
			}
			list = append(list, i)
			return nil
		}
	}
	if err := s.read(ctx, nothing, steps...); err != nil {
		return nil, err
	}
	if len(steps) > 1 {
		slices.SortFunc(list, func(a, b payables.Invoice) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	}
	return list[:min(limit, len(list))], nil
}

// SumInvoices implements ports.Payables.
func (s *Store) SumInvoices(ctx context.Context, t access.Tenant) ([]ports.InvoiceSum, error) {
	var sums []ports.InvoiceSum
	err := s.read(ctx, nothing, Step{invoiceSums, []any{t.String()}, func(r Row) error {
		var currency, document, status string
		var digits int
		var count, high, low int64
		if err := r.Scan(&currency, &digits, &document, &status, &count, &high, &low); err != nil {
			return err
		}
		sum := ports.InvoiceSum{Count: count, Minor: new(big.Int).Lsh(big.NewInt(high), 32)}
		sum.Minor.Add(sum.Minor, big.NewInt(low))
		var err error
		if sum.Currency, err = money.RestoreCurrency(currency, digits); err != nil {
			return err
		}
		if sum.Document, err = payables.ParseDocumentKind(document); err != nil {
			return err
		}
		if sum.Status, err = payables.ParseStatus(status); err != nil {
			return err
		}
		sums = append(sums, sum)
		return nil
	}})
	return sums, err
}
