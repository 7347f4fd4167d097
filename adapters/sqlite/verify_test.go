package sqlite_test

import (
	"compress/gzip"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/sqlstore/sqlstoretest"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

// verify has the ledger verified by a store that has read nothing of it before,
// and returns what is broken, or "holds".
func verify(t testing.TB, path string) string {
	t.Helper()
	s := openAt(t, path)
	a := &app.App{Ledger: s, Refunds: s, Payables: s, Journal: s, Census: s, Clock: system.Clock{}, IDs: system.IDs{}}
	auditor := must(access.NewPrincipal(acme, "auditor", access.Human, access.ScopesOf(access.RefundRead), access.Free, ""))
	v, err := a.VerifyLedger(t.Context(), app.Call{Principal: auditor, Tool: "verify"}, customers.ID{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if v.Broken == nil {
		return "holds"
	}
	return v.Broken.Error()
}

// What is billed and credited may change, so no trigger keeps anybody from writing
// something else: a verification finds it.
func TestAVerificationFindsWhatIsBilledAndCredited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := seeded(t, path)
	bill := invoice(t, s, "INV-1010")
	credit := bill
	credit.ID, credit.Number, credit.Document = must(payables.ParseInvoiceID("INV-2010")), must(payables.ParseNumber("CN-1")), payables.CreditNote
	credit.Credits, credit.Order, credit.Status, credit.Decision = bill.ID, payables.OrderID{}, payables.Open, nil
	credit.Lines = slices.Clone(credit.Lines)
	credit.Lines[0].Quantity = must(payables.ParseQuantity("2"))
	credit.Total = money.FromMinor(62_00, credit.Currency)
	credit.Lines[0].Amount = credit.Total
	do(t, s, "note", payables.ImportInvoices{Invoices: []payables.Invoice{credit}})
	do(t, s, "credit", payables.Route{
		Request: payables.Request{Invoice: credit.ID, Action: payables.Approve, Reason: payables.CleanMatch},
		Links:   payables.LinksOf(credit, &bill), Authority: payables.Authority{Tolerance: payables.DefaultTolerance()},
	})
	if got := verify(t, path); got != "holds" {
		t.Fatal(got)
	}
	for _, tt := range []struct{ change, back, says string }{
		{"UPDATE purchase_order_lines SET billed_numerator = 0 WHERE purchase_order = 'PO-2010'",
			"UPDATE purchase_order_lines SET billed_numerator = 10 WHERE purchase_order = 'PO-2010'",
			"of line 1 of the order PO-2010 0 is on record as billed, its approved invoices come to 10"},
		{"UPDATE purchase_order_lines SET billed_denominator = 3 WHERE purchase_order = 'PO-2010'",
			"UPDATE purchase_order_lines SET billed_denominator = 1 WHERE purchase_order = 'PO-2010'",
			"of line 1 of the order PO-2010 10/3 is on record as billed"},
		{"UPDATE purchase_order_lines SET billed_numerator = 1 WHERE purchase_order = 'PO-2009'",
			"UPDATE purchase_order_lines SET billed_numerator = 0 WHERE purchase_order = 'PO-2009'",
			"of line 1 of the order PO-2009 1 is on record as billed, its approved invoices come to 0"},
		{"UPDATE purchase_orders SET freight_billed_minor = 1 WHERE id = 'PO-2010'",
			"UPDATE purchase_orders SET freight_billed_minor = 0 WHERE id = 'PO-2010'",
			"of the order PO-2010 0.01 USD is on record as freight billed, its approved invoices come to 0.00 USD"},
		{"UPDATE invoices SET credited_minor = 0 WHERE id = 'INV-1010'",
			"UPDATE invoices SET credited_minor = 6200 WHERE id = 'INV-1010'",
			"of the invoice INV-1010 0.00 USD is on record as credited, its approved credit notes come to 62.00 USD"},
		{"UPDATE invoices SET credited_minor = 1 WHERE id = 'INV-1001'",
			"UPDATE invoices SET credited_minor = 0 WHERE id = 'INV-1001'",
			"of the invoice INV-1001 0.01 USD is on record as credited, its approved credit notes come to 0.00 USD"},
		{"UPDATE invoice_lines SET credited_numerator = 0 WHERE invoice = 'INV-1010'",
			"UPDATE invoice_lines SET credited_numerator = 2 WHERE invoice = 'INV-1010'",
			"of line 1 of the invoice INV-1010 0 is on record as credited, its approved credit notes give back 2"},
		{"UPDATE invoice_lines SET credited_denominator = 3 WHERE invoice = 'INV-1010'",
			"UPDATE invoice_lines SET credited_denominator = 1 WHERE invoice = 'INV-1010'",
			"of line 1 of the invoice INV-1010 2/3 is on record as credited"},
	} {
		exec1(t, path, tt.change)
		if got := verify(t, path); !strings.Contains(got, tt.says) {
			t.Errorf("%s: %s", tt.change, got)
		}
		exec1(t, path, tt.back)
	}
	if got := verify(t, path); got != "holds" {
		t.Error(got)
	}
}

// What was answered about an account may be changed too: a name may have to be
// erased one day, and then there is none.
func TestAVerificationFindsChangedFirstAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := openAt(t, path)
	do(t, s, "open", opening(100_00))
	for _, tt := range []struct{ change, says string }{
		{"UPDATE account_answers SET name = 'Alice'", "holds"},
		{"UPDATE account_answers SET status = 'suspended'", "answers with another account than was opened"},
		{"UPDATE account_answers SET status = 'active', name = 'Mallory'", "answers with another account than was opened"},
		{"UPDATE account_answers SET name = 'Alice', email = 'mallory@example.com'", "answers with another account than was opened"},
		{"UPDATE account_answers SET name = '', email = ''", "holds"},
	} {
		exec1(t, path, tt.change)
		if got := verify(t, path); !strings.Contains(got, tt.says) {
			t.Errorf("%s: %s", tt.change, got)
		}
	}
}

// Whoever owns the file can take the triggers away: what they write then is found.
func TestAVerificationFindsTampering(t *testing.T) {
	filled := filepath.Join(t.TempDir(), "ledger.db")
	s := seeded(t, filled)
	sqlstoretest.Fill(t, s, acme)
	exec1(t, filled, `PRAGMA wal_checkpoint(TRUNCATE)`)
	whole := must(os.ReadFile(filled))
	var drops string
	for _, name := range names(t, filled, "trigger") {
		drops += "DROP TRIGGER " + name + "; "
	}
	sqlstoretest.Check(t, func(t testing.TB) (func(string), func() string) {
		path := filepath.Join(t.TempDir(), "ledger.db")
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		return func(change string) { exec1(t, path, drops+change) }, func() string { return verify(t, path) }
	},
		sqlstoretest.Tampering{Does: "an opening that looks like a refund",
			SQL: `UPDATE entry_rows SET reason = 'x', remaining_minor = 0 WHERE subject_id = 'CUST-00002' AND number = 1`, Says: "records of the kind refund"},
		sqlstoretest.Tampering{Does: "an account set back to before its last entry",
			SQL: `UPDATE accounts SET version = 4, head_hash = (SELECT hash FROM entries WHERE subject_id = 'CUST-00001' AND number = 4),
				balance_minor = balance_minor - 100, lot_minor = lot_minor - 100 WHERE id = 'CUST-00001'`, Says: "it stands after the last entry that the record knows"},
		sqlstoretest.Tampering{Does: "an account set back by far",
			SQL: `UPDATE accounts SET version = 1, head_hash = (SELECT hash FROM entries WHERE subject_id = 'CUST-00001' AND number = 1),
				balance_minor = 50000, lot_minor = 50000 WHERE id = 'CUST-00001'`, Says: "it stands after the last entry that the record knows"},
		sqlstoretest.Tampering{Does: "the digits of what a vendor is owed",
			SQL: `UPDATE entry_rows SET digits = 3 WHERE subject_kind = 'vendor' AND debit IS NOT NULL; UPDATE vendor_balances SET digits = 3`, Says: "one with other digits"},
		sqlstoretest.Tampering{Does: "an operation that is named by no id", SQL: `UPDATE operations SET op = 'x' WHERE key = 'refund-2'`,
			Says: "entry 3 of account CUST-00001: what is on record can not be read"},
		sqlstoretest.Tampering{Does: "an adjustment that is named by no id", SQL: `UPDATE adjustments SET id = 'x'`,
			Says: "entry 5 of account CUST-00001: what is on record can not be read"},
		sqlstoretest.Tampering{Does: "an entry that follows none",
			SQL: `INSERT INTO entry_rows (operation, tenant, subject_kind, subject_id, number, facts, previous, hash)
				SELECT operation, tenant, subject_kind, subject_id, 9999, facts, previous, hash FROM entry_rows WHERE subject_id = 'CUST-00002'`, Says: "entries of customers and vendors"},
	)
}

// names lists what the file has of a type.
func names(t testing.TB, path, kind string) (all []string) {
	t.Helper()
	db := must(sql.Open("sqlite", path))
	defer db.Close()
	rows := must(db.Query(`SELECT name FROM sqlite_schema WHERE type = $1`, kind))
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	return all
}

// A ledger that an earlier version wrote holds, and what was brought in then may be
// brought in again: the facts of a command may get more, and never others.
func TestALedgerOfAnEarlierVersion(t *testing.T) {
	compressed := must(os.Open("testdata/earlier.db.gz"))
	defer compressed.Close()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := os.WriteFile(path, must(io.ReadAll(must(gzip.NewReader(compressed)))), 0o600); err != nil {
		t.Fatal(err)
	}
	tenant := must(access.ParseTenant("default"))
	s := openAt(t, path)
	a := &app.App{Ledger: s, Refunds: s, Payables: s, Journal: s, Census: s, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: time.Minute}
	operator := app.Call{Principal: must(access.NewPrincipal(tenant, "operator", access.Human, access.ScopesOf(access.ControlRules, access.RefundRead), access.Free, "")), Tool: "test"}
	dora := customers.Open{
		ID: must(customers.ParseID("CUST-00011")), Profile: customers.Profile{Name: "Dora Lind", Email: "dora@example.com"}, Status: customers.Active,
		Opening: money.FromMinor(120_50, must(money.ParseCurrency("EUR"))), CreatedAt: time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC),
	}
	for _, again := range []func() (customers.Imported, error){
		func() (customers.Imported, error) {
			return a.ImportCustomers(t.Context(), operator, []customers.Open{dora})
		},
		func() (customers.Imported, error) {
			view := must(s.Load(t.Context(), tenant, must(payables.ParseOrderID("PO-2001")).Ref()))
			o, _ := ledger.Get[payables.Order](view, must(payables.ParseOrderID("PO-2001")).Ref())
			return a.ImportOrders(t.Context(), operator, []payables.Order{o})
		},
	} {
		if done, err := again(); err != nil || done.Opened != 0 || done.Unchanged != 1 {
			t.Errorf("it answers %+v, %v", done, err)
		}
	}
	v, err := a.VerifyLedger(t.Context(), operator, customers.ID{}, 0)
	if err != nil || v.Broken != nil || v.Customers != 5 || v.Vendors != 3 || !v.Counted {
		t.Errorf("it finds %+v, %v", v, err)
	}
	exec1(t, path, "DROP TRIGGER invoices_fixed; UPDATE invoices SET currency = 'EUR' WHERE id = 'INV-1001'")
	if v, err := a.VerifyLedger(t.Context(), operator, customers.ID{}, 0); err != nil || v.Broken == nil {
		t.Errorf("it finds %+v, %v", v, err)
	}
}
