package sqlite

import (
	"database/sql"
	"flag"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
	"github.com/refundledger/refundledger/ports/portstest"
)

// Every statement that the laws made the store run finds its rows by key: what
// it prepared is asked for its plan.
func TestNoStatementScans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	fewer(t)
	portstest.Model(t, func(testing.TB) portstest.Store { return s }, func(testing.TB) portstest.Store { return memory.New() })
	ask(t, s)
	texts := map[string]bool{}
	for text := range s.db.conn.statements {
		texts[text] = true
	}
	s.db.read.Range(func(text, _ any) bool { texts[text.(string)] = true; return true })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	asked := 0
	for text := range texts {
		if !regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE)`).MatchString(text) {
			continue
		}
		asked++
		plan := planOf(t, db, text)
		for _, line := range strings.Split(plan, "\n") {
			// The keys themselves are a list in the parameter.
			if regexp.MustCompile(`^(SCAN|.*TEMP B-TREE)`).MatchString(line) && !allowed(text, line) {
				t.Errorf("%s\nhas the plan\n%s", text, plan)
				break
			}
		}
	}
	if asked < 30 {
		t.Errorf("only %d statements were asked", asked)
	}
	// Each question about invoices has its index, however many there are: the
	// number above all.
	for part, want := range map[string]string{
		"JOIN number_claims r ":                                     "SEARCH r USING PRIMARY KEY (tenant=? AND vendor=? AND document=? AND normal=?)",
		"FROM invoices r WHERE r.tenant = $1 AND r.id > $2":         "SEARCH r USING INDEX sqlite_autoindex_invoices_1 (tenant=? AND id>?)",
		"AND r.status = $4 AND r.id > $2":                           "SEARCH r USING INDEX invoices_by_status (tenant=? AND status=? AND id>?)",
		"AND r.status = $4 AND r.vendor = $5 AND r.id > $2":         "SEARCH r USING INDEX invoices_of_vendor (tenant=? AND vendor=? AND status=? AND id>?)",
		"AND r.status = $4 AND r.purchase_order = $5 AND r.id > $2": "SEARCH r USING INDEX invoices_of_order (tenant=? AND purchase_order=? AND status=? AND id>?)",
		"AND r.purchase_order = $5 AND r.vendor = $6 AND r.id > $2": "SEARCH r USING INDEX invoices_of_", // either's
		"ORDER BY r.entered DESC":                                   "SEARCH r USING INDEX invoices_as_entered (tenant=? AND vendor=? AND entered<?)",
		"FROM goods_receipts r":                                     "SEARCH r USING INDEX goods_receipts_of_order (tenant=? AND purchase_order=? AND id>?)",
		"JOIN invoice_lines l":                                      "SEARCH l USING PRIMARY KEY (tenant=? AND invoice=?)",
		"JOIN decision_findings r ON r.tenant = i.tenant":           "SEARCH r USING PRIMARY KEY (tenant=? AND vendor=? AND number=?)",
		"JOIN decision_finding_invoices r ON r.tenant = k.tenant":   "SEARCH r USING PRIMARY KEY (tenant=? AND vendor=? AND number=?)",
		"JOIN vendor_balances l ON l.tenant = k.tenant":             "SEARCH l USING PRIMARY KEY (tenant=? AND vendor=?)",
		"JOIN purchase_order_lines l":                               "SEARCH l USING PRIMARY KEY (tenant=? AND purchase_order=?)",
	} {
		found := false
		for text := range texts {
			if !strings.Contains(text, part) {
				continue
			}
			found = true
			if plan := planOf(t, db, text); !strings.Contains(plan, want) {
				t.Errorf("%s\nhas the plan\n%s\nwithout %s", text, plan, want)
			}
		}
		if !found {
			t.Errorf("nothing was asked with %q", part)
		}
	}
}

// ask asks each question about invoices that random sequences may leave out.
func ask(t *testing.T, s *Store) {
	tenant, err := access.ParseTenant("demo")
	if err == nil {
		err = demo.Seed(t.Context(), s, tenant, system.Clock{}, system.IDs{})
	}
	if err != nil {
		t.Fatal(err)
	}
	vendor, order := payables.Restore[payables.VendorID]("V-100"), payables.Restore[payables.OrderID]("PO-2001")
	for _, f := range []ports.InvoiceFilter{
		{}, {Status: payables.Open}, {Status: payables.Open, Vendor: vendor}, {Status: payables.Open, Order: order},
		{Order: order, Vendor: vendor}, {Undecided: true}, {Undecided: true, Order: order}, {Undecided: true, Vendor: vendor},
	} {
		if _, err := s.ListInvoices(t.Context(), tenant, f, "", 10); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.LatestInvoices(t.Context(), tenant, vendor, 0, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ListReceipts(t.Context(), tenant, order, "", 10); err != nil {
		t.Fatal(err)
	}
	decided := payables.Restore[payables.InvoiceID]("INV-1011")
	if _, err := s.Load(t.Context(), tenant, decided.Ref(), vendor.Ref(), order.Ref(), payables.DecisionRef(payables.Restore[payables.VendorID]("V-200"), 1)); err != nil {
		t.Fatal(err)
	}
}

// allowed are the scans and sorts of what is small by its nature: the keys in
// the parameter, one page of a list, what was found of them, the parts of a row
// that a view shows as rows, and sums.
func allowed(text, line string) bool {
	if line == "SCAN part" || strings.Contains(line, "FOR LAST TERM OF ORDER BY") { // of one row, or the postings of one entry
		return true
	}
	bounded := strings.Contains(text, "json_each") || strings.Contains(text, "LIMIT $3) r") || strings.Contains(text, "LIMIT $4) r")
	if strings.Contains(text, "sum(") {
		return strings.Contains(line, "FOR GROUP BY") || strings.Contains(line, "FOR ORDER BY") // a line for each currency and status
	}
	return strings.Contains(line, "json_each") || strings.Contains(line, "CONSTANT ROW") ||
		bounded && (line == "SCAN r" || strings.Contains(line, "FOR ORDER BY"))
}

func planOf(t *testing.T, db *sql.DB, text string) string {
	t.Helper()
	rows, err := db.Query("EXPLAIN QUERY PLAN "+text, make([]any, parameters(text))...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, detail)
	}
	return strings.Join(lines, "\n")
}

// parameters counts the parameters of a statement: all ? or $1, $2 and so on.
func parameters(text string) int {
	if n := strings.Count(text, "?"); n > 0 {
		return n
	}
	n := 0
	for strings.Contains(text, "$"+string(rune('1'+n))) {
		n++
	}
	return n
}

// fewer makes the sequences of this test few: they are here for their
// statements.
func fewer(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	t.Cleanup(func() { _ = checks.Value.Set(before) })
	if err := checks.Value.Set("40"); err != nil {
		t.Fatal(err)
	}
}
