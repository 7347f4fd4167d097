package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/internal/sqlstore"
	"github.com/refundledger/refundledger/adapters/internal/sqlstore/sqlstoretest"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

// verify has the ledger verified by a store that has read nothing of it before,
// and returns what is broken, or "holds".
func verify(t testing.TB, url string) string {
	t.Helper()
	s := openAt(t, url)
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

// exec writes past the store.
func exec(t testing.TB, url, statement string) {
	t.Helper()
	c := connect(t, url)
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// What is billed and credited may change, so no trigger keeps anybody from writing
// something else: a verification finds it.
func TestAVerificationFindsWhatIsBilledAndCredited(t *testing.T) {
	url := migrated(t)
	s := openAt(t, url)
	if err := demo.Seed(t.Context(), s, acme, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
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
	if got := verify(t, url); got != "holds" {
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
		exec(t, url, tt.change)
		if got := verify(t, url); !strings.Contains(got, tt.says) {
			t.Errorf("%s: %s", tt.change, got)
		}
		exec(t, url, tt.back)
	}
	if got := verify(t, url); got != "holds" {
		t.Error(got)
	}
}

// What was answered about an account may be changed too: a name may have to be
// erased one day, and then there is none.
func TestAVerificationFindsChangedFirstAnswers(t *testing.T) {
	url := migrated(t)
	s := openAt(t, url)
	do(t, s, "open", opening(100_00))
	for _, tt := range []struct{ change, says string }{
		{"UPDATE account_answers SET name = 'Alice'", "holds"},
		{"UPDATE account_answers SET status = 'suspended'", "answers with another account than was opened"},
		{"UPDATE account_answers SET status = 'active', name = 'Mallory'", "answers with another account than was opened"},
		{"UPDATE account_answers SET name = 'Alice', email = 'mallory@example.com'", "answers with another account than was opened"},
		{"UPDATE account_answers SET name = '', email = ''", "holds"},
	} {
		exec(t, url, tt.change)
		if got := verify(t, url); !strings.Contains(got, tt.says) {
			t.Errorf("%s: %s", tt.change, got)
		}
	}
}

// Whoever owns the database can switch the triggers off: what they write then is
// found.
func TestAVerificationFindsTampering(t *testing.T) {
	url, s := seeded(t)
	sqlstoretest.Fill(t, s, acme)
	const unguarded = "SET session_replication_role = replica; "
	keep, restore := "", unguarded
	for _, table := range sqlstore.Tables {
		keep += "CREATE TABLE kept_" + table.Name + " AS TABLE " + table.Name + "; "
		restore += "DELETE FROM " + table.Name + "; INSERT INTO " + table.Name + " TABLE kept_" + table.Name + "; "
	}
	exec(t, url, keep)
	sqlstoretest.Check(t, func(t testing.TB) (func(string), func() string) {
		exec(t, url, restore)
		return func(change string) { exec(t, url, unguarded+change) }, func() string { return verify(t, url) }
	},
		sqlstoretest.Tampering{Does: "an opening that looks like a refund",
			SQL: `INSERT INTO refunds SELECT tenant, customer, 1, id, amount_minor, currency, digits, reason, processed_at, remaining_minor FROM refunds WHERE number = 2`, Says: "records of the kind refund"},
		sqlstoretest.Tampering{Does: "an account set back to before its last entry",
			SQL: `UPDATE accounts SET version = 4, head_hash = (SELECT hash FROM entries WHERE subject_id = 'CUST-00001' AND number = 4),
				balance_minor = balance_minor - 100 WHERE id = 'CUST-00001'; UPDATE lots SET balance_minor = balance_minor - 100 WHERE account = 'CUST-00001'`,
			Says: "it stands after the last entry that the record knows"},
		sqlstoretest.Tampering{Does: "the digits of what a vendor is owed",
			SQL: `UPDATE postings SET digits = 3 WHERE subject_kind = 'vendor'; UPDATE vendor_balances SET digits = 3`, Says: "one with other digits"},
		sqlstoretest.Tampering{Does: "an entry that follows none",
			SQL: `INSERT INTO entries SELECT tenant, subject_kind, subject_id, 9999, op, principal, via, tool, key, at, command, facts, previous, hash
				FROM entries WHERE subject_id = 'CUST-00002'`, Says: "entries of customers and vendors"},
	)
}
