package postgres

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
	"github.com/refundledger/refundledger/ports/portstest"
)

// Every statement that random sequences made the store prepare finds its rows by
// key: each is asked for the plan that it has for any parameters.
func TestNoStatementScans(t *testing.T) {
	s := empty(t)
	fewer(t)
	portstest.Model(t, func(testing.TB) portstest.Store { return s }, func(testing.TB) portstest.Store { return memory.New() })
	fill(t, s)
	ask(t, s)
	asked := map[string]string{}
	for _, pool := range []*pgxpool.Pool{s.db.writers, s.db.readers} {
		for _, c := range pool.AcquireAllIdle(t.Context()) {
			check(t, c, asked)
			c.Release()
		}
	}
	if len(asked) < 30 {
		t.Errorf("only %d statements were asked", len(asked))
	}
	// Each question about invoices has its index, however many there are: the
	// number above all.
	for part, want := range map[string]string{
		"JOIN number_claims r ":                                     "number_claims_pkey tenant vendor document normal",
		"FROM invoices r WHERE r.tenant = $1 AND r.id > $2":         "invoices_pkey tenant id",
		"AND r.status = $4 AND r.id > $2":                           "invoices_by_status tenant status id",
		"AND r.status = $4 AND r.vendor = $5 AND r.id > $2":         "invoices_of_vendor tenant vendor status id",
		"AND r.status = $4 AND r.purchase_order = $5 AND r.id > $2": "invoices_of_order tenant purchase_order status id",
		"AND r.purchase_order = $5 AND r.vendor = $6 AND r.id > $2": "invoices_of_order tenant purchase_order status id",
		"ORDER BY r.entered DESC":                                   "invoices_as_entered tenant vendor entered",
		"FROM goods_receipts r":                                     "goods_receipts_of_order tenant purchase_order id",
		"JOIN invoice_lines l":                                      "invoice_lines_pkey tenant invoice",
		"JOIN invoices i ON":                                        "invoices_pkey tenant id",
		"JOIN decisions r ON":                                       "decisions_pkey tenant vendor number",
	} {
		uses(t, asked, part, want)
	}
}

// empty opens a new ledger.
func empty(t *testing.T) *Store {
	t.Helper()
	url := postgrestest.URL(t)
	if err := Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// uses looks for an index in the plans of the statements that say part.
func uses(t *testing.T, asked map[string]string, part, want string) {
	t.Helper()
	found := false
	for text, indexes := range asked {
		if !strings.Contains(text, part) {
			continue
		}
		found = true
		if !strings.Contains(indexes, want) {
			t.Errorf("%s\nuses %s\nand not %s", text, indexes, want)
		}
	}
	if !found {
		t.Errorf("nothing was asked with %q", part)
	}
}

// The plans of a ledger that was empty when it was opened are right as soon as a
// large import is done, and not when autovacuum comes by.
func TestPlansAfterALargeImport(t *testing.T) {
	s := empty(t)
	usd := must(money.ParseCurrency("USD"))
	none := money.FromMinor(0, usd)
	vendor := payables.Vendor{ID: must(payables.ParseVendorID("V-1")), Name: "Acme"}
	acme := must(access.ParseTenant("acme"))
	var invoices []payables.Invoice
	var refs []ledger.Ref
	for n := range 2000 {
		i := payables.Invoice{
			ID: must(payables.ParseInvoiceID(fmt.Sprint("INV-", 10000+n))), Number: must(payables.ParseNumber(fmt.Sprint("A-", n))), Document: payables.Bill, Vendor: vendor.ID,
			Currency: usd, Tax: none, Freight: none, Total: none, Date: must(payables.ParseDate("2026-03-01")),
			Lines: []payables.InvoiceLine{{Line: 1, Unit: must(payables.ParseUnit("EA")), Quantity: must(payables.ParseQuantity("1")), UnitPrice: none, Amount: none}},
		}
		invoices, refs = append(invoices, i), append(refs, i.Ref())
	}
	load := func() {
		if _, err := s.Load(t.Context(), acme, append(refs[:3:3], vendor.ID.Ref())...); err != nil {
			t.Fatal(err)
		}
	}
	load()
	for n, cmd := range []ledger.Command{payables.ImportVendors{Vendors: []payables.Vendor{vendor}}, payables.ImportInvoices{Invoices: invoices}} {
		op := operation.Operation{ID: operation.ID{byte(n + 1)}, Tenant: acme, Principal: "op", Tool: "test", Key: must(operation.ParseKey(fmt.Sprint("import-", n))), At: time.Now().UTC().Truncate(time.Millisecond)}
		if _, err := s.Do(t.Context(), op, cmd); err != nil {
			t.Fatal(err)
		}
	}
	load()
	asked := map[string]string{}
	for _, c := range s.db.readers.AcquireAllIdle(t.Context()) {
		check(t, c, asked)
		c.Release()
	}
	uses(t, asked, "JOIN invoices r ON", "invoices_pkey tenant id")
	uses(t, asked, "JOIN invoices i ON", "invoices_pkey tenant id")
	uses(t, asked, "JOIN decisions r ON", "decisions_pkey tenant vendor number")
}

// ask asks each question about invoices that random sequences may leave out.
func ask(t *testing.T, s *Store) {
	large, vendor, order := must(access.ParseTenant("large")), must(payables.ParseVendorID("V")), must(payables.ParseOrderID("PO-1"))
	for _, f := range []ports.InvoiceFilter{
		{}, {Status: payables.Open}, {Status: payables.Open, Vendor: vendor}, {Status: payables.Open, Order: order},
		{Order: order, Vendor: vendor}, {Undecided: true}, {Undecided: true, Order: order}, {Undecided: true, Vendor: vendor},
	} {
		if _, err := s.ListInvoices(t.Context(), large, f, "", 10); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.LatestInvoices(t.Context(), large, vendor, 0, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ListReceipts(t.Context(), large, order, "", 10); err != nil {
		t.Fatal(err)
	}
}

// fill makes one vendor large: the plans are those of a ledger that has grown.
func fill(t *testing.T, s *Store) {
	for _, statement := range []string{
		`INSERT INTO vendors VALUES ('large', 'V', 'V', 1, decode(repeat('00', 32), 'hex'))`,
		`INSERT INTO purchase_orders SELECT 'large', 'PO-' || n, 'V', 'USD', 2, 0, 0, 0 FROM generate_series(1, 2000) n`,
		`INSERT INTO goods_receipts SELECT 'large', 'GR-' || n, 'PO-' || (n % 2000 + 1), 'V', 'receipt', '2026-03-01' FROM generate_series(1, 4000) n`,
		`INSERT INTO invoice_lines SELECT 'large', 'INV-' || (100000 + n), 1, 1, '', 'EA', 1, 1, 1, 0, 1 FROM generate_series(1, 20000) n`,
		`INSERT INTO invoices SELECT 'large', 'INV-' || (100000 + n), 'N' || n, 'n-' || n, 'invoice', '', 'V', 'PO-' || (n % 2000 + 1), 'USD', 2, 0, 0, 9223372036854775807, '2026-03-01', n,
			CASE WHEN n % 100 = 0 THEN 'open' ELSE 'approved' END, CASE WHEN n % 100 = 0 THEN 0 ELSE n END, 0 FROM generate_series(1, 20000) n`,
		`INSERT INTO number_claims SELECT 'large', 'V', 'invoice', 'n-' || n, 1, 'INV-' || (100000 + n), false FROM generate_series(1, 20000) n`,
		// These only: of a table of two rows it is right to read both.
		`ANALYZE purchase_orders, goods_receipts, invoices, invoice_lines, number_claims`,
	} {
		if _, err := s.db.readers.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	// Together they are more than 64 bits hold.
	sums, err := s.SumInvoices(t.Context(), must(access.ParseTenant("large")))
	if err != nil || fmt.Sprint(sums) == "" || len(sums) != 2 {
		t.Fatalf("%v, %v", sums, err)
	}
	for _, sum := range sums {
		if want := new(big.Int).Mul(big.NewInt(sum.Count), big.NewInt(math.MaxInt64)); sum.Minor.Cmp(want) != 0 {
			t.Errorf("%d invoices sum up to %s, not %s", sum.Count, sum.Minor, want)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(t *testing.T, c *pgxpool.Conn, asked map[string]string) {
	type statement struct {
		name, text string
		parameters int
	}
	var all []statement
	rows, err := c.Query(t.Context(), `SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var s statement
		if err := rows.Scan(&s.name, &s.text, &s.parameters); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if _, done := asked[s.text]; done || !regexp.MustCompile(`^(SELECT k|SELECT r|SELECT p|SELECT l|INSERT|UPDATE)`).MatchString(s.text) {
			continue
		}
		nulls := strings.TrimSuffix(strings.Repeat("NULL, ", s.parameters), ", ")
		var plan []byte
		if err := c.QueryRow(t.Context(), fmt.Sprintf(`EXPLAIN (FORMAT JSON) EXECUTE %q (%s)`, s.name, nulls)).Scan(&plan); err != nil {
			t.Fatalf("%s: %v", s.text, err)
		}
		var explained []struct{ Plan node }
		if err := json.Unmarshal(plan, &explained); err != nil {
			t.Fatal(err)
		}
		asked[s.text] = explained[0].Plan.indexes()
		if scan := explained[0].Plan.scan(); scan != "" {
			t.Errorf("%s\nhas a %s:\n%s", s.text, scan, plan)
		}
	}
}

// node is a node of a plan.
type node struct {
	Type  string `json:"Node Type"`
	Table string `json:"Relation Name"`
	Cond  string `json:"Index Cond"`
	Index string `json:"Index Name"`
	Plans []node
}

// scan names a node that reads a table other than by key.
func (n node) scan() string {
	if n.Table != "" && strings.HasSuffix(n.Type, "Scan") && n.Cond == "" && n.Type != "Bitmap Heap Scan" {
		return n.Type + " of " + n.Table
	}
	for _, p := range n.Plans {
		if s := p.scan(); s != "" {
			return s
		}
	}
	return ""
}

// indexes names the indexes of the plan, each with the columns that it is
// entered by, in a stable way.
func (n node) indexes() string {
	var all string
	if n.Index != "" {
		all = n.Index
		for _, c := range conditions.FindAllStringSubmatch(n.Cond, -1) {
			all += " " + c[1]
		}
		all += ";"
	}
	for _, p := range n.Plans {
		all += p.indexes()
	}
	return all
}

// conditions are the columns of an index condition.
var conditions = regexp.MustCompile(`\(+(?:r\.|l\.)?(\w+)(?:\)::text)? [=<>]`)

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
