package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports/portstest"
)

// The laws hold for callers whose calls go to several processes, in turn.
func TestPayablesOverSeveralStores(t *testing.T) {
	portstest.Payables(t, func(t testing.TB) portstest.Store {
		all := stores(t, 3)
		return &several{Store: all[0], all: all}
	})
}

type several struct {
	*postgres.Store
	all  []*postgres.Store
	turn atomic.Int64
}

func (s *several) next() *postgres.Store { return s.all[int(s.turn.Add(1))%len(s.all)] }

func (s *several) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	return s.next().Do(ctx, op, cmd)
}

func (s *several) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	return s.next().Load(ctx, t, refs...)
}

func invoice(t testing.TB, s *postgres.Store, id string) payables.Invoice {
	t.Helper()
	ref := must(payables.ParseInvoiceID(id)).Ref()
	v, err := s.Load(t.Context(), acme, ref)
	if err != nil {
		t.Fatal(err)
	}
	i, ok := ledger.Get[payables.Invoice](v, ref)
	if !ok {
		t.Fatalf("there is no %s", id)
	}
	return i
}

// seeded makes a ledger of the demo records and one rejection.
func seeded(t testing.TB) (url string, s *postgres.Store) {
	t.Helper()
	url = migrated(t)
	s = openAt(t, url)
	if err := demo.Seed(t.Context(), s, acme, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	i := invoice(t, s, "INV-1005")
	do(t, s, "duplicate", payables.Route{
		Request: payables.Request{Invoice: i.ID, Action: payables.Reject, Reason: must(payables.ParseReasonCode("DUPLICATE_INVOICE"))},
		Links:   payables.LinksOf(i, nil), Authority: payables.Authority{Tolerance: payables.DefaultTolerance()},
	})
	return url, s
}

func TestTheDatabaseChecksPayablesAgain(t *testing.T) {
	url, s := seeded(t)
	c := connect(t, url)
	defer c.Close(t.Context())
	for name, statement := range map[string]string{
		"a total changed":                 `UPDATE invoices SET total_minor = 1`,
		"a number changed":                `UPDATE invoices SET normal = 'x'`,
		"an approval taken back":          `UPDATE invoices SET status = 'open', decision = 0 WHERE status = 'approved'`,
		"an approval turned":              `UPDATE invoices SET status = 'rejected' WHERE status = 'approved'`,
		"a rejection decided again":       `UPDATE invoices SET decision = decision + 1 WHERE status = 'rejected'`,
		"an approval without a decision":  `UPDATE invoices SET status = 'approved' WHERE status = 'open'`,
		"a status nobody knows":           `UPDATE invoices SET status = 'paid', decision = 99 WHERE status = 'open'`,
		"credited below zero":             `UPDATE invoices SET credited_minor = -1`,
		"an invoice deleted":              `DELETE FROM invoices`,
		"an invoice's line changed":       `UPDATE invoice_lines SET amount_minor = 1`,
		"an invoice's line deleted":       `DELETE FROM invoice_lines`,
		"a fraction without denominator":  `UPDATE invoice_lines SET credited_denominator = 0`,
		"another quantity ordered":        `UPDATE purchase_order_lines SET quantity_micro = 1`,
		"received a fraction of nothing":  `UPDATE purchase_order_lines SET received_denominator = 0`,
		"billed below zero":               `UPDATE purchase_order_lines SET billed_numerator = -1`,
		"an order's line deleted":         `DELETE FROM purchase_order_lines`,
		"another currency":                `UPDATE purchase_orders SET currency = 'EUR'`,
		"an order of nobody":              `INSERT INTO purchase_orders SELECT tenant, 'PO-X', 'nobody', currency, digits, 0, 0, 0 FROM purchase_orders LIMIT 1`,
		"an order deleted":                `DELETE FROM purchase_orders`,
		"a conversion emptied":            `TRUNCATE conversions`,
		"a receipt turned":                `UPDATE goods_receipts SET movement = 'return'`,
		"a receipt deleted":               `DELETE FROM goods_receipts`,
		"a receipt's line changed":        `UPDATE goods_receipt_lines SET quantity_micro = 1`,
		"a receipt's line deleted":        `DELETE FROM goods_receipt_lines`,
		"a decision changed":              `UPDATE decisions SET note = 'x'`,
		"a decision deleted":              `DELETE FROM decisions`,
		"a decision about nothing":        `INSERT INTO decisions SELECT tenant, vendor, 99, id, 'INV-9999', action, reason, override, note, decided_by, decided_at, omitted FROM decisions LIMIT 1`,
		"a finding changed":               `UPDATE decision_findings SET code = 'NO_LINES'`,
		"a finding deleted":               `DELETE FROM decision_findings`,
		"a finding about another invoice": `UPDATE decision_finding_invoices SET invoice = 'INV-1002'`,
		"a named invoice deleted":         `DELETE FROM decision_finding_invoices`,
		"a number of another invoice":     `UPDATE number_claims SET invoice = 'INV-1002'`,
		"a rejection forgotten":           `UPDATE number_claims SET rejected = false WHERE rejected`,
		"a number free again":             `DELETE FROM number_claims`,
		"a claim twice":                   `INSERT INTO number_claims SELECT * FROM number_claims`,
		"a vendor's version stands still": `UPDATE vendors SET name = 'x'`,
		"another vendor":                  `UPDATE vendors SET id = 'x', version = version + 1`,
		"a vendor deleted":                `DELETE FROM vendors`,
		"a balance in another unit":       `UPDATE vendor_balances SET digits = 3`,
		"a balance deleted":               `DELETE FROM vendor_balances`,
		"an invoice's line added":         `INSERT INTO invoice_lines SELECT tenant, invoice, 99, order_line, sku, unit, quantity_micro, unit_price_minor, amount_minor, 0, 1 FROM invoice_lines LIMIT 1`,
		"an order's line added":           `INSERT INTO purchase_order_lines SELECT tenant, purchase_order, 99, sku, description, unit, quantity_micro, unit_price_minor, 0, 1, 0, 1 FROM purchase_order_lines LIMIT 1`,
		"a conversion added":              `INSERT INTO conversions SELECT tenant, purchase_order, line, 99, 'box', 12, 1 FROM purchase_order_lines LIMIT 1`,
		"a receipt's line added":          `INSERT INTO goods_receipt_lines SELECT tenant, receipt, 99, order_line, quantity_micro, unit FROM goods_receipt_lines LIMIT 1`,
		"a finding added":                 `INSERT INTO decision_findings SELECT tenant, vendor, number, 99, 'NO_LINES', 0, '', '' FROM decisions LIMIT 1`,
		"an invoice named later":          `INSERT INTO decision_finding_invoices SELECT tenant, vendor, number, 1, 99, 'INV-1002' FROM decisions LIMIT 1`,
	} {
		if _, err := c.Exec(t.Context(), statement); !violates(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if i := invoice(t, s, "INV-1005"); i.Status != payables.Rejected || len(i.Decision.Findings) == 0 || len(i.Decision.Findings[0].Invoices) != 1 {
		t.Errorf("%+v", i)
	}
}
