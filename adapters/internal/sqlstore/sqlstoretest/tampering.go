// Package sqlstoretest holds what the tests of both SQL adapters show: that a
// verification finds what somebody wrote into the database past the ledger.
package sqlstoretest

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

// Tampering is one change past the ledger and what a verification says of it.
type Tampering struct{ Does, SQL, Says string }

// Tamperings are those that are the same in every database. They are of a ledger
// with the demo records and what [Fill] adds.
var Tamperings = []Tampering{
	{"nothing", `SELECT 1`, "holds"},

	// What no history names.
	{"an order that nobody brought in",
		`INSERT INTO purchase_orders SELECT tenant, 'PO-9999', vendor, currency, digits, freight_limit_minor, tax_limit_micro, freight_billed_minor FROM purchase_orders WHERE id = 'PO-2010'`,
		"records of the kind purchase_order"},
	{"a receipt that nobody brought in",
		`INSERT INTO goods_receipts SELECT tenant, 'GR-9999', purchase_order, vendor, movement, received_at FROM goods_receipts LIMIT 1`,
		"records of the kind goods_receipt"},
	{"an invoice that nobody entered",
		`INSERT INTO invoices SELECT tenant, 'INV-9999', number, normal, document, credits, vendor, purchase_order, currency, digits, tax_minor, freight_minor, total_minor, invoice_date, 9999, 'open', 0, 0 FROM invoices WHERE id = 'INV-1001'`,
		"records of the kind invoice"},
	{"a decision that nobody made",
		`INSERT INTO decisions SELECT tenant, vendor, 9999, id, invoice, action, reason, override, note, decided_by, decided_at, omitted FROM decisions LIMIT 1`,
		"records of the kind decision"},
	{"a number that nobody claimed",
		`INSERT INTO number_claims SELECT tenant, vendor, document, 'planted', 1, invoice, rejected FROM number_claims LIMIT 1`,
		"records of the kind number_claim"},
	{"a reversal of a refund that stands",
		`INSERT INTO reversals SELECT tenant, customer, refund + 1, number + 1, id, 1, currency, digits, reason, reversed_at, remaining_minor FROM reversals`,
		"its refund shows as reversed, and no entry reversed it"},
	{"a reversal of no refund",
		`INSERT INTO reversals SELECT tenant, customer, 9998, 9999, id, 1, currency, digits, reason, reversed_at, remaining_minor FROM reversals`,
		"records of the kind reversal"},
	{"an adjustment that nobody made",
		`INSERT INTO adjustments SELECT tenant, customer, 9999, id, change_minor, currency, digits, why, adjusted_at, remaining_minor FROM adjustments`,
		"records of the kind adjustment"},
	{"an import that nobody asked for",
		`INSERT INTO imports SELECT tenant, (SELECT op FROM operations WHERE key = 'refund-1'), 0, unchanged, imported_at FROM imports LIMIT 1`,
		"records of the kind import"},
	{"an answer planted under a key",
		`INSERT INTO operations (tenant, principal, key, fingerprint, command, tool, via, op, at, answer_kind, answer_id, answer_number)
			SELECT tenant, principal, 'planted', fingerprint, command, tool, via, op, at, answer_kind, answer_id, answer_number FROM operations WHERE key = 'refund-1'`,
		"outcomes of the command refunds.trigger"},
	{"a decision that was not made, under a key of its own",
		`INSERT INTO operations (tenant, principal, key, fingerprint, command, tool, via, op, at, answer_kind, answer_id, answer_number)
			SELECT tenant, principal, 'planted', fingerprint, command, tool, via, op, at, answer_kind, answer_id, 9999 FROM operations WHERE command = 'payables.route' LIMIT 1`,
		"answers of outcomes of the command payables.route"},
	{"a refund as the answer of a decision, under a key of its own",
		`INSERT INTO operations (tenant, principal, key, fingerprint, command, tool, via, op, at, answer_kind, answer_id, answer_number)
			SELECT tenant, principal, 'planted', fingerprint, 'payables.route', tool, via, op, at, answer_kind, answer_id, answer_number FROM operations WHERE key = 'refund-1'`,
		"answers of outcomes of the command payables.route"},

	// What is gone, or of an earlier day.
	{"an account taken away", `DELETE FROM accounts WHERE id = 'CUST-00003'`, "entries of customers and vendors"},
	{"an account moved to another tenant", `UPDATE accounts SET tenant = 'other' WHERE id = 'CUST-00003'`, "entries of customers and vendors"},
	{"a vendor set back to before its last entry",
		`UPDATE vendors SET version = version - 1, head_hash = (SELECT e.previous FROM entries e
			WHERE e.tenant = vendors.tenant AND e.subject_kind = 'vendor' AND e.subject_id = vendors.id AND e.number = vendors.version) WHERE id = 'V-999'`,
		"it stands after the last entry that the record knows"},
	{"an import that brought in more", `UPDATE imports SET opened = 999 WHERE opened = 1`, "documents that imports brought in"},
	{"an operation of no command",
		`INSERT INTO operations (tenant, principal, key, fingerprint, command, tool, via, op, at, answer_kind, answer_id, answer_number)
			SELECT tenant, principal, 'planted', fingerprint, 'no.such', tool, via, op, at, answer_kind, answer_id, answer_number FROM operations WHERE key = 'refund-1'`,
		"1 outcomes of the command no.such"},
	{"a version without end", `UPDATE accounts SET version = 9223372036854775807 WHERE id = 'CUST-00002'`, "the record ends at entry 9223372036854775807"},
	{"a vendor's version without end", `UPDATE vendors SET version = 9223372036854775807 WHERE id = 'V-999'`, "the record ends at entry 9223372036854775807"},
	{"an adjustment taken away", `DELETE FROM adjustments`, "is gone"},
	{"an import taken away", `DELETE FROM imports`, "is gone"},

	{"an account without an id", `UPDATE accounts SET id = '' WHERE id = 'CUST-00003'`, "entries of customers and vendors"},

	// What makes no record.
	{"a unit of a line that is not there",
		`INSERT INTO conversions VALUES ('acme', 'PO-9000', 99, 1, 'BOX', 12, 1)`, "entry 2 of vendor V-999: what is on record can not be read"},
	{"the second claim on a number without a first", `UPDATE number_claims SET position = 7 WHERE invoice = 'INV-1001'`, "what is on record can not be read"},
	{"a lot of more than the balance", `UPDATE accounts SET balance_minor = 1 WHERE id = 'CUST-00002'`, "what is on record can not be read"},

	// What a record says beside its facts.
	{"the digits of an account without money", `UPDATE accounts SET digits = 3 WHERE id = 'CUST-00003'`, "another account than was opened"},
	{"the digits of an order", `UPDATE purchase_orders SET digits = 3 WHERE id = 'PO-2001'`, "what it entered is another one on record: purchase_order PO-2001"},
	{"the digits of an invoice", `UPDATE invoices SET digits = 3 WHERE id = 'INV-1001'`, "what it entered is another one on record: invoice INV-1001"},
	{"what a number counts as", `UPDATE invoices SET normal = 'another' WHERE id = 'INV-1001'`, "counts as another one on record: invoice INV-1001"},
	{"the entry of an invoice", `UPDATE invoices SET entered = 9999 WHERE id = 'INV-1001'`, "was entered by entry 9999 on record: invoice INV-1001"},
	{"the vendor of a receipt",
		`UPDATE goods_receipts SET vendor = 'V-999' WHERE id = (SELECT min(id) FROM goods_receipts)`, "is another vendor's on record"},

	// What stands under the keys.
	{"another request under a decision's key", `UPDATE operations SET fingerprint = (SELECT fingerprint FROM operations WHERE key = 'refund-1') WHERE command = 'payables.route'`,
		"the outcome under its operation key is that of another request"},
	{"an import as the answer of a refund",
		`UPDATE operations SET answer_kind = 'import', answer_id = (SELECT CAST(min(CAST(id AS text)) AS text) FROM imports), answer_number = 0 WHERE key = 'refund-1'`,
		"answers with another record"},
	{"the first refund as the answer of the second",
		`UPDATE operations SET answer_number = 2 WHERE key = 'refund-2'`, "answers with another record"},
	{"an answer that is none", `UPDATE operations SET answer_id = 'CUST-99999' WHERE key = 'refund-1'`, "is gone"},
}

// Fill adds what the demo records have none of.
func Fill(t testing.TB, s ports.Ledger, tenant access.Tenant) {
	t.Helper()
	alice := must(customers.ParseID("CUST-00001"))
	usd := must(money.ParseCurrency("USD"))
	reason := must(refunds.ParseReason("Arrived broken."))
	refund := refunds.Trigger{Request: refunds.Request{Customer: alice, Amount: money.FromMinor(10_00, usd), Reason: reason}}
	for _, step := range []struct {
		key string
		cmd ledger.Command
	}{
		{"refund-1", refund},
		{"refund-2", refund},
		{"reversal", refunds.Reverse{Customer: alice, Refund: 2, Reason: reason}},
		{"adjustment", customers.Adjust{Customer: alice, Change: money.FromMinor(1_00, usd), Why: "An error."}},
		{"vendor", payables.ImportVendors{Vendors: []payables.Vendor{{ID: must(payables.ParseVendorID("V-999")), Name: "Zulu"}}}},
		{"order", payables.ImportOrders{Orders: []payables.Order{{
			ID: must(payables.ParseOrderID("PO-9000")), Vendor: must(payables.ParseVendorID("V-999")), Currency: usd, FreightLimit: money.FromMinor(0, usd),
			Lines: []payables.OrderLine{{Line: 1, SKU: must(payables.ParseSKU("W")), Unit: must(payables.ParseUnit("EA")), Quantity: must(payables.ParseQuantity("1")), UnitPrice: money.FromMinor(1_00, usd)}},
		}}}},
	} {
		op := operation.Operation{
			Tenant: tenant, Principal: "bot", Tool: "test", Key: must(operation.ParseKey(step.key)),
			At: time.Now().UTC().Truncate(time.Millisecond),
		}
		_, _ = rand.Read(op.ID[:])
		if _, err := s.Do(t.Context(), op, step.cmd); err != nil {
			t.Fatal(err)
		}
	}
}

// Check does each tampering to a ledger of its own, that fresh makes, and verifies;
// verify says "holds" or what does not. The database must let everything be
// written: no trigger and no reference to another table keeps anybody from it.
func Check(t *testing.T, fresh func(testing.TB) (tamper func(sql string), verify func() string), more ...Tampering) {
	for _, c := range append(more, Tamperings...) {
		t.Run(c.Does, func(t *testing.T) {
			tamper, verify := fresh(t)
			tamper(c.SQL)
			if got := verify(); !strings.Contains(got, c.Says) {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
