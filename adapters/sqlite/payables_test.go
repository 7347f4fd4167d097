package sqlite_test

import (
	"maps"
	"math"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// seeded opens a ledger with the demo invoices, the duplicate rejected.
func seeded(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s := openAt(t, path)
	if err := demo.Seed(t.Context(), s, acme, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	i := invoice(t, s, "INV-1005")
	do(t, s, "duplicate", payables.Route{
		Request: payables.Request{Invoice: i.ID, Action: payables.Reject, Reason: must(payables.ParseReasonCode("DUPLICATE_INVOICE"))},
		Links:   payables.LinksOf(i, nil), Authority: payables.Authority{Tolerance: payables.DefaultTolerance()},
	})
	return s
}

func invoice(t testing.TB, s *sqlite.Store, id string) payables.Invoice {
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

func TestTheDatabaseChecksPayablesAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := seeded(t, path)
	violations := replacements("vendors", "vendor_balances", "purchase_orders", "purchase_order_lines", "goods_receipts", "goods_receipt_lines",
		"invoices", "invoice_lines", "number_claims", "decisions", "decision_findings", "decision_finding_invoices")
	maps.Copy(violations, payablesViolations)
	for name, statement := range violations {
		if err := try(path, "BEGIN; "+statement+"; COMMIT"); !violates(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if i := invoice(t, s, "INV-1010"); i.Status != payables.Approved || i.Total.Minor() != 372_00 {
		t.Errorf("%+v", i)
	}
}

// payablesViolations are what nobody may do past the ledger.
var payablesViolations = map[string]string{
	"a total changed":                    `UPDATE invoices SET total_minor = 1`,
	"a number changed":                   `UPDATE invoices SET normal = 'x'`,
	"an approval taken back":             `UPDATE invoices SET status = 'open', decision = 0 WHERE status = 'approved'`,
	"an approval turned":                 `UPDATE invoices SET status = 'rejected' WHERE status = 'approved'`,
	"a rejection decided again":          `UPDATE invoices SET decision = decision + 1 WHERE status = 'rejected'`,
	"an approval without a decision":     `UPDATE invoices SET status = 'approved' WHERE status = 'open'`,
	"a status nobody knows":              `UPDATE invoices SET status = 'paid', decision = 99 WHERE status = 'open'`,
	"credited below zero":                `UPDATE invoices SET credited_minor = -1`,
	"an invoice deleted":                 `DELETE FROM invoices`,
	"an invoice's line changed":          `UPDATE invoice_lines SET amount_minor = 1`,
	"an invoice's line deleted":          `DELETE FROM invoice_lines`,
	"a fraction without denominator":     `UPDATE invoice_lines SET credited_denominator = 0`,
	"another quantity ordered":           `UPDATE purchase_order_lines SET quantity_micro = 1`,
	"received a fraction of nothing":     `UPDATE purchase_order_lines SET received_denominator = 0`,
	"billed below zero":                  `UPDATE purchase_order_lines SET billed_numerator = -1`,
	"an order's line deleted":            `DELETE FROM purchase_order_lines`,
	"another currency":                   `UPDATE purchase_orders SET currency = 'EUR'`,
	"an order deleted":                   `DELETE FROM purchase_orders`,
	"a receipt turned":                   `UPDATE goods_receipts SET movement = 'return'`,
	"a receipt deleted":                  `DELETE FROM goods_receipts`,
	"a receipt's line changed":           `UPDATE goods_receipt_lines SET quantity_micro = 1`,
	"a receipt's line deleted":           `DELETE FROM goods_receipt_lines`,
	"a decision changed":                 `UPDATE decisions SET note = 'x'`,
	"a decision deleted":                 `DELETE FROM decisions`,
	"a finding changed":                  `UPDATE decision_findings SET code = 'NO_LINES'`,
	"a finding deleted":                  `DELETE FROM decision_findings`,
	"a finding about another invoice":    `UPDATE decision_finding_invoices SET invoice = 'INV-1002'`,
	"a named invoice deleted":            `DELETE FROM decision_finding_invoices`,
	"a number of another invoice":        `UPDATE number_claims SET invoice = 'INV-1002'`,
	"a rejection forgotten":              `UPDATE number_claims SET rejected = false WHERE rejected`,
	"a number free again":                `DELETE FROM number_claims`,
	"a claim twice":                      `INSERT INTO number_claims SELECT * FROM number_claims`,
	"a vendor's version stands still":    `UPDATE vendors SET name = 'x'`,
	"another vendor":                     `UPDATE vendors SET id = 'x', version = version + 1`,
	"a vendor deleted":                   `DELETE FROM vendors`,
	"a balance in another unit":          `UPDATE vendor_balances SET digits = 3`,
	"a balance deleted":                  `DELETE FROM vendor_balances`,
	"an invoice's line added":            `INSERT INTO invoice_lines SELECT tenant, invoice, 99, order_line, sku, unit, quantity_micro, unit_price_minor, amount_minor, 0, 1 FROM invoice_lines LIMIT 1`,
	"an order's line added":              `INSERT INTO purchase_order_lines SELECT tenant, purchase_order, 99, sku, description, unit, quantity_micro, unit_price_minor, 0, 1, 0, 1 FROM purchase_order_lines LIMIT 1`,
	"a conversion added":                 `INSERT INTO conversions SELECT tenant, purchase_order, line, 99, 'box', 12, 1 FROM purchase_order_lines LIMIT 1`,
	"a receipt's line added":             `INSERT INTO goods_receipt_lines SELECT tenant, receipt, 99, order_line, quantity_micro, unit FROM goods_receipt_lines LIMIT 1`,
	"a finding added":                    `INSERT INTO decision_findings SELECT tenant, vendor, number, 99, 'NO_LINES', 0, '', '' FROM decisions LIMIT 1`,
	"an invoice named later":             `INSERT INTO decision_finding_invoices SELECT tenant, vendor, number, 1, 99, 'INV-1002' FROM decisions LIMIT 1`,
	"an invoice in the place of another": `INSERT OR REPLACE INTO invoices SELECT tenant, 'INV-X', number, normal, document, credits, vendor, purchase_order, currency, digits, tax_minor, freight_minor, total_minor, invoice_date, entered, status, decision, credited_minor FROM invoices LIMIT 1`,
	"an invoice in the row of another": `INSERT OR REPLACE INTO invoices (rowid, tenant, id, number, normal, document, credits, vendor, purchase_order, currency, digits, tax_minor, freight_minor, total_minor, invoice_date, entered, status, decision, credited_minor)
	SELECT rowid, tenant, 'INV-X', number, normal, document, credits, vendor, purchase_order, currency, digits, tax_minor, freight_minor, total_minor, invoice_date, 999, status, decision, credited_minor FROM invoices LIMIT 1`,
	"an invoice moved to the row of another": `UPDATE OR REPLACE invoices SET rowid = 2 WHERE rowid = 1`,
	"a receipt in the row of another": `INSERT OR REPLACE INTO goods_receipts (rowid, tenant, id, purchase_order, vendor, movement, received_at)
	SELECT rowid, tenant, 'GR-X', purchase_order, vendor, movement, received_at FROM goods_receipts LIMIT 1`,
}

// What came in by the rules of its day stays readable, and its number stays the
// number that it was.
func TestDocumentsOutliveTheRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := seeded(t, path)
	exec1(t, path, `DROP TRIGGER invoices_fixed; DROP TRIGGER invoice_lines_fixed; DROP TRIGGER number_claims_fixed;
		UPDATE invoices SET number = ' ´old´ ', normal = 'once', currency = 'DEM', digits = 3, invoice_date = 'yesterday.', purchase_order = '#1' WHERE id = 'INV-1002';
		UPDATE invoice_lines SET sku = '?', unit = 'two words' WHERE invoice = 'INV-1002';
		UPDATE number_claims SET normal = 'once' WHERE invoice = 'INV-1002'`)
	i := invoice(t, s, "INV-1002")
	if i.Number.String() != " ´old´ " || i.Number.Normal() != "once" || i.Total.String() != "130.500 DEM" || i.Date.String() != "yesterday." ||
		i.Order.String() != "#1" || i.Lines[0].SKU.String() != "?" || i.Lines[0].Unit.String() != "two words" {
		t.Errorf("%+v", i)
	}
	v, err := s.Load(t.Context(), acme, i.ClaimRef())
	if claim, ok := ledger.Get[payables.NumberClaim](v, i.ClaimRef()); !ok || err != nil || len(claim.Claims) != 1 || claim.Claims[0].Invoice != i.ID {
		t.Errorf("%+v, %v", claim, err)
	}
	if list, err := s.ListInvoices(t.Context(), acme, ports.InvoiceFilter{Order: i.Order}, "", 9); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A document whose rows were changed past the store is an error for those who
// ask for it.
func TestADocumentThatIsCorrupt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := seeded(t, path)
	exec1(t, path, `DROP TRIGGER decision_findings_no_delete; DELETE FROM decision_findings;
		DROP TRIGGER number_claims_no_delete; DELETE FROM number_claims WHERE invoice = 'INV-1001';
		DROP TRIGGER decisions_no_delete; DELETE FROM decisions WHERE invoice = 'INV-1010';
		UPDATE purchase_order_lines SET received_numerator = 2, received_denominator = 4`)
	for name, ref := range map[string]ledger.Ref{
		"a decision without its finding":  must(payables.ParseInvoiceID("INV-1005")).Ref(),
		"an invoice without its decision": must(payables.ParseInvoiceID("INV-1010")).Ref(),
		"a claim without the first":       payables.ClaimRef(must(payables.ParseVendorID("V-100")), payables.Bill, must(payables.ParseNumber("HP-2026-0071"))),
		"a fraction that is none":         must(payables.ParseOrderID("PO-2001")).Ref(),
	} {
		if v, err := s.Load(t.Context(), acme, ref); err == nil {
			r, _ := ledger.Get[ledger.Record](v, ref)
			t.Errorf("%s is %+v", name, r)
		}
	}
}

// Sums are exact beyond 64 bits.
func TestSumsDoNotOverflow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := seeded(t, path)
	exec1(t, path, `INSERT INTO invoices SELECT tenant, invoices.id || value, number, normal, document, credits, vendor, purchase_order, 'JPY', 0, tax_minor, freight_minor,
		9223372036854775807, invoice_date, 1000 + value, status, decision, credited_minor FROM invoices, json_each('[1,2,3,4,5]') WHERE invoices.id = 'INV-1010'`)
	sums, err := s.SumInvoices(t.Context(), acme)
	if err != nil || len(sums) != 5 {
		t.Fatalf("%v, %v", sums, err)
	}
	want := new(big.Int).Mul(big.NewInt(5), big.NewInt(math.MaxInt64))
	if got := sums[1]; got.Currency.String() != "JPY" || got.Count != 5 || got.Minor.Cmp(want) != 0 {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// The demo invoices can be seeded again, and another day.
func TestTheDemoIsSeededOnce(t *testing.T) {
	s := seeded(t, filepath.Join(t.TempDir(), "ledger.db"))
	before := invoice(t, s, "INV-1011")
	if err := demo.Seed(t.Context(), s, acme, later{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	if after := invoice(t, s, "INV-1011"); after.Decision.ID != before.Decision.ID {
		t.Errorf("%+v became %+v", before, after)
	}
}

type later struct{}

func (later) Now() time.Time { return time.Now().Add(24 * time.Hour) }
