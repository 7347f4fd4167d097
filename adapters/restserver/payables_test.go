package restserver_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/restserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

func init() {
	known["reader"] = principal("reader", access.Service, access.InvoiceRead)
	known["auditor"] = principal("auditor", access.Human, access.InvoiceRead, access.CustomerRead, access.RefundRead)
	known["clerk"] = principal("clerk", access.Human, access.InvoiceRead, access.InvoiceRoute)
	known["chief"] = principal("chief", access.Human, access.InvoiceRead, access.InvoiceRoute, access.InvoiceOverride)
	known["desk"] = principal("desk", access.Service, access.InvoiceRead, access.InvoiceRoute, access.InvoiceOverride, access.PrincipalDelegate)
	known["counter"] = principal("counter", access.Service, access.InvoiceRead, access.InvoiceRoute, access.PrincipalDelegate)
}

// withDemo is a store with the demo's records in place of the other one.
func withDemo(t testing.TB) func(restserver.Store) restserver.Store {
	return func(restserver.Store) restserver.Store {
		s := memory.New()
		if err := demo.Seed(t.Context(), s, acme, system.Clock{}, system.IDs{}); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

const (
	approval = `{"action":"approve","reasonCode":"CLEAN_MATCH","override":false}`
	overrule = `{"action":"approve","reasonCode":"MANUAL_OVERRIDE","override":true,"note":"Agreed with the buyer by phone."}`
)

// Who may override is the token's, or the token's and the principal's: never
// what the fields say.
func TestWhoMayOverride(t *testing.T) {
	as := func(more ...string) []string {
		return append([]string{"Idempotency-Key", "k", "Ledger-Principal", "alice"}, more...)
	}
	for name, tt := range map[string]struct {
		token, body string
		headers     []string
		status      int
		reason      string
	}{
		"of its own, with the scope":        {"chief", overrule, []string{"Idempotency-Key", "k"}, 201, ""},
		"of its own, without":               {"clerk", overrule, []string{"Idempotency-Key", "k"}, 422, "override_not_permitted"},
		"of its own, and it says so":        {"clerk", overrule, []string{"Idempotency-Key", "k", "Ledger-May-Override", "true"}, 400, "invalid_input"},
		"for another, and it says so":       {"clerk", overrule, as("Ledger-May-Override", "true"), 403, "delegation"},
		"a delegate for who may":            {"desk", overrule, as("Ledger-May-Override", "true"), 201, ""},
		"a delegate for who may not":        {"desk", overrule, as(), 422, "override_not_permitted"},
		"a delegate for itself":             {"desk", overrule, []string{"Idempotency-Key", "k"}, 201, ""},
		"a delegate who says something":     {"desk", overrule, as("Ledger-May-Override", "yes"), 400, "invalid_input"},
		"a delegate who says it twice":      {"desk", overrule, as("Ledger-May-Override", "true", "Ledger-May-Override", "true"), 400, "invalid_input"},
		"a delegate without, for who may":   {"counter", overrule, as("Ledger-May-Override", "true"), 422, "override_not_permitted"},
		"the fields say so":                 {"clerk", strings.Replace(overrule, `"override"`, `"mayOverride":true,"override"`, 1), []string{"Idempotency-Key", "k"}, 400, "invalid_input"},
		"the fields have another tolerance": {"clerk", `{"action":"approve","reasonCode":"CLEAN_MATCH","override":false,"tolerance":{"percent":"100"}}`, []string{"Idempotency-Key", "k"}, 400, "invalid_input"},
		"nothing of it":                     {"reader", overrule, []string{"Idempotency-Key", "k"}, 403, "scope"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withDemo(t))
			got := w.ask("POST /v1/invoices/INV-1003/decision", tt.token, tt.body, tt.headers...)
			if reason, _ := got.json["reason"].(string); got.status != tt.status || reason != tt.reason {
				t.Errorf("got %d %s", got.status, got.body)
			}
			status := w.ask("GET /v1/invoices/INV-1003", "reader", "").json["status"]
			if (status == "approved") != (tt.status == 201) {
				t.Errorf("the invoice is %v", status)
			}
		})
	}
}

func TestADecisionOnlyOnWhatWasSeen(t *testing.T) {
	w := newWorld(t, withDemo(t))
	tag := w.ask("GET /v1/invoices/INV-1001", "clerk", "").header.Get("ETag")
	hold := `{"action":"hold","reasonCode":"NEEDS_REVIEW","override":false}`
	if got := w.ask("POST /v1/invoices/INV-1001/decision", "clerk", hold, "Idempotency-Key", "a", "If-Match", tag); got.status != 201 {
		t.Errorf("with its tag %d %s", got.status, got.body)
	}
	if got := w.ask("POST /v1/invoices/INV-1001/decision", "clerk", approval, "Idempotency-Key", "b", "If-Match", tag); got.status != 412 || got.json["reason"] != "version_mismatch" {
		t.Errorf("with a stale tag %d %s", got.status, got.body)
	}
	if got := w.ask("POST /v1/invoices/INV-1001/decision", "clerk", approval, "Idempotency-Key", "b", "If-Match", "W/"+tag); got.status != 400 {
		t.Errorf("with a weak tag %d %s", got.status, got.body)
	}
	again := w.ask("POST /v1/invoices/INV-1001/decision", "clerk", hold, "Idempotency-Key", "a", "If-Match", tag)
	if again.status != 200 || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same again %d %s", again.status, again.body)
	}
	other := w.ask("POST /v1/invoices/INV-1001/decision", "chief", hold, "Idempotency-Key", "c")
	if d, _ := other.json["decision"].(map[string]any); other.status != 201 || d["decidedBy"] != "clerk" {
		t.Errorf("the same by another %d %s", other.status, other.body)
	}
	// The service of the tests has no tolerance, whatever its clients would allow.
	if got := w.ask("POST /v1/invoices/INV-1002/decision", "clerk", approval, "Idempotency-Key", "e"); got.status != 422 || !strings.Contains(got.body, `"details":{"findings":["PRICE_VARIANCE"]}`) {
		t.Errorf("a price beyond the tolerance %d %s", got.status, got.body)
	}
	if got := w.ask("POST /v1/invoices/INV-9999/decision", "clerk", hold, "Idempotency-Key", "d"); got.status != 404 || got.json["reason"] != "invoice_not_found" {
		t.Errorf("an unknown invoice %d %s", got.status, got.body)
	}
	if got := w.ask("POST /v1/invoices/INV-9999/decision", "clerk", hold, "Idempotency-Key", "a"); got.status != 422 || got.json["reason"] != "operation_key_reused" {
		t.Errorf("an unknown invoice under a used key %d %s", got.status, got.body)
	}
}

func TestWhatIsReadOfPayables(t *testing.T) {
	w := newWorld(t, withDemo(t))
	for request, want := range map[string]struct {
		token  string
		status int
		holds  string
	}{
		"GET /v1/invoices": {"reader", 200, `"INV-1011"`},
		"GET /v1/invoices?status=open&vendor=V-100&order=PO-2001&undecided=true&limit=1": {"reader", 200, `"next":"INV-1001"`},
		"GET /v1/invoices?cursor=INV-1001&vendor=V-100&order=PO-2001":                    {"reader", 200, `"id":"INV-1005"`},
		"GET /v1/invoices?status=lost":                                                   {"reader", 400, `"/status"`},
		"GET /v1/invoices?vendor=%20":                                                    {"reader", 400, `"/vendor"`},
		"GET /v1/invoices?order=":                                                        {"reader", 400, `"/order"`},
		"GET /v1/invoices?undecided=1":                                                   {"reader", 400, `"/undecided"`},
		"GET /v1/invoices?limit=0":                                                       {"reader", 400, `"/limit"`},
		"GET /v1/invoices/1":                                                             {"reader", 400, `"/id"`},
		"GET /v1/invoices/INV-9999":                                                      {"reader", 404, `invoice_not_found`},
		"GET /v1/invoices/INV-1001/lines?cursor=1":                                       {"reader", 200, `{"lines":[]}`},
		"GET /v1/invoices/INV-1001/lines?cursor=x":                                       {"reader", 400, `"/cursor"`},
		"GET /v1/purchase-orders/PO-2010":                                                {"reader", 200, `"billed":{"numerator":12,"denominator":1}`},
		"GET /v1/purchase-orders/PO-9999":                                                {"reader", 404, `order_not_found`},
		"GET /v1/purchase-orders/PO-2001/receipts":                                       {"reader", 200, `"GR-3001"`},
		"GET /v1/goods-receipts/GR-3001":                                                 {"reader", 200, `"quantity":"40"`},
		"GET /v1/vendors?limit=2":                                                        {"reader", 200, `"next":"V-200"`},
		"GET /v1/vendors/V-100":                                                          {"reader", 200, `"balanceMinor":37200`},
		"GET /v1/vendors/V-1":                                                            {"reader", 404, `vendor_not_found`},
		"GET /v1/vendors/V-1/invoices":                                                   {"reader", 200, `{"invoices":[]}`},
		"GET /v1/vendors/V-100/decisions/1":                                              {"reader", 404, `decision_not_found`},
		"GET /v1/vendors/V-100/numbers/invoice/" + url.PathEscape("hp-2026-71"):          {"reader", 200, `"claims":[{"invoiceId":"INV-1001","rejected":false},{"invoiceId":"INV-1005"`},
		"GET /v1/vendors/V-100/numbers/bill/1":                                           {"reader", 400, `"/kind"`},
		"GET /v1/vendors/V-100/numbers/invoice/1":                                        {"reader", 404, `number_not_found`},
		"GET /v1/invoice-sums":                                                           {"reader", 200, `{"currency":"EUR","kind":"invoice","status":"open","count":1,"totalMinor":"126000"}`},
		"GET /v1/invoices?currency=EUR":                                                  {"reader", 200, `"EUR"`},
		"GET /v1/invoices?currency=XAF":                                                  {"reader", 200, `{"invoices":[]}`},
		"GET /v1/invoices?currency=eur":                                                  {"reader", 400, `"/currency"`},
		"GET /v1/payables-policy":                                                        {"reader", 200, `{"tenant":"acme","priceTolerance":{"percent":"0","minor":0}}`},
		"GET /v1/payables-policy?limit=1":                                                {"reader", 400, `"/query"`},
		"GET /v1/journal?kind=vendor&limit=1":                                            {"reader", 200, `"subjectId":"V-100"`},
		"GET /v1/journal?kind=vendor&after=CUST-00001/x":                                 {"reader", 400, `"/after"`},
		"GET /v1/journal?kind=order":                                                     {"reader", 400, `"/kind"`},
		"GET /v1/journal/vendor/V-200?after=1&limit=1":                                   {"reader", 200, `"number":2`},
		"GET /v1/journal?limit=1":                                                        {"reader", 403, `"refund:read"`},
		"GET /v1/journal/account/CUST-00001":                                             {"reader", 403, `"refund:read"`},
		"GET /v1/journal/customer/CUST-00001":                                            {"reader", 400, `"/kind"`},
		"GET /v1/journal/order/PO-2001":                                                  {"reader", 400, `"/kind"`},
		"GET /v1/journal/vendor/%20":                                                     {"reader", 400, `"/id"`},
		"GET /v1/journal/vendor/V-1":                                                     {"reader", 200, `{"entries":[]}`},
		"GET /v1/journal/vendor/V-100":                                                   {"caller", 403, `"invoice:read"`},
		"GET /v1/journal?kind=vendor":                                                    {"caller", 403, `"invoice:read"`},
		"GET /v1/invoices?limit=2":                                                       {"caller", 403, `"invoice:read"`},
		"GET /v1/vendors/V-100/invoices?limit=2":                                         {"nobody", 403, `"invoice:read"`},
	} {
		if got := w.ask(request, want.token, ""); got.status != want.status || !strings.Contains(got.body, want.holds) {
			t.Errorf("%s: %d %s", request, got.status, got.body)
		}
	}
}

// A cursor is the place of a row: what names none, or a place of another list, is
// refused by its name and never answered with a page.
func TestCursorsThatAreNone(t *testing.T) {
	w := newWorld(t, withDemo(t))
	for list, bad := range map[string][]string{
		"/v1/customers?after=":                         {"", "x", "CUST-1", "CUST-00001%20", "V-100", "1"},
		"/v1/vendors?cursor=":                          {"", "%20", "V%2F1", "CUST-00001/1", strings.Repeat("x", 25)},
		"/v1/invoices?cursor=":                         {"", "V-100", "CUST-00001", "1001", "INV-1001%00"},
		"/v1/purchase-orders/PO-2001/receipts?cursor=": {"", "-", "GR%0A", "INV-1001/1"},
		"/v1/vendors/V-100/invoices?cursor=":           {"", "0", "-1", "x", "01", "%2B1", "INV-1001", "9223372036854775808"},
		"/v1/customers/CUST-00001/refunds?cursor=":     {"", "0", "-1", "x", "01", "%2B1", "1.0", "9223372036854775808"},
		"/v1/invoices/INV-1001/lines?cursor=":          {"", "-1", "99", "x", "01"},
		"/v1/purchase-orders/PO-2001/lines?cursor=":    {"", "-1", "99", "x", "01"},
		"/v1/journal/account/CUST-00001?after=":        {"", "-1", "x", "CUST-00001/1"},
		"/v1/journal?after=":                           {"", "x", "V-100/1", "CUST-00001", "CUST-00001/0", "CUST-00001/01", "CUST-00001/1000", "CUST-99999/1"},
		"/v1/journal?kind=vendor&after=":               {"", "CUST-00001/1", "V-100/1000", "V-1/1"},
	} {
		name := list[strings.LastIndexAny(list, "?&")+1 : len(list)-1]
		for _, cursor := range bad {
			got := w.ask("GET "+list+cursor, "auditor", "")
			if got.status != 400 || got.json["reason"] != "invalid_input" || !strings.Contains(got.body, `"pointer":"/`+name+`"`) {
				t.Errorf("%s%s: %d %.200s", list, cursor, got.status, got.body)
			}
		}
	}
}

// loads counts the rows that a store is asked for.
type loads struct {
	restserver.Store
	invoices, receipts, asked int
}

func (l *loads) LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) ([]payables.Invoice, error) {
	list, err := l.Store.LatestInvoices(ctx, t, v, before, limit)
	l.invoices += len(list)
	return list, err
}

func (l *loads) ListReceipts(ctx context.Context, t access.Tenant, o payables.OrderID, after string, limit int) ([]payables.Receipt, error) {
	list, err := l.Store.ListReceipts(ctx, t, o, after, limit)
	l.receipts, l.asked = l.receipts+len(list), l.asked+1
	return list, err
}

// withLoads counts what the world's store loads of what fill brought in.
func withLoads(t *testing.T, fill ...ledger.Command) (*world, *loads) {
	var counted loads
	w := newWorld(t, func(restserver.Store) restserver.Store {
		counted.Store = withDemo(t)(nil)
		for n, cmd := range fill {
			op := operation.Operation{ID: system.IDs{}.NewID(), Tenant: acme, Principal: "seed", Tool: "test", Key: must(operation.ParseKey(fmt.Sprintf("fill-%d", n))), At: system.Clock{}.Now().UTC().Truncate(time.Millisecond)}
			if _, err := counted.Do(t.Context(), op, cmd); err != nil {
				t.Fatal(err)
			}
		}
		return &counted
	})
	return w, &counted
}

// A page far down a list costs what one at its beginning does.
func TestAPageOfTheLatestLoadsThatPage(t *testing.T) {
	w, counted := withLoads(t)
	for cursor, want := range map[string]string{"": "INV-1010", "?cursor=2": "INV-1001"} {
		counted.invoices = 0
		query := "?limit=1"
		if cursor != "" {
			entered := int64(w.ask("GET /v1/invoices?vendor=V-100&limit=2", "reader", "").json["invoices"].([]any)[1].(map[string]any)["entered"].(float64))
			query = fmt.Sprintf("?limit=1&cursor=%d", entered)
		}
		got := w.ask("GET /v1/vendors/V-100/invoices"+query, "reader", "")
		if rows, _ := got.json["invoices"].([]any); len(rows) != 1 || rows[0].(map[string]any)["id"] != want || counted.invoices > 2 {
			t.Errorf("%s loads %d invoices: %d %s", query, counted.invoices, got.status, got.body)
		}
	}
}

// What is loaded of receipts is what a page shows, and one chunk at most.
func TestAPageOfReceiptsLoadsAChunkMoreAtMost(t *testing.T) {
	const many, chunk = 100, 16
	vendor, id := must(payables.ParseVendorID("V-100")), must(payables.ParseOrderID("PO-LONG"))
	usd, day := must(money.ParseCurrency("USD")), must(payables.ParseDate("2026-03-01"))
	unit, one := must(payables.ParseUnit("EA")), must(payables.ParseQuantity("1"))
	order := payables.Order{ID: id, Vendor: vendor, Currency: usd, FreightLimit: money.FromMinor(0, usd)}
	var lines []payables.ReceiptLine
	for n := range 3000 {
		order.Lines = append(order.Lines, payables.OrderLine{Line: n + 1, SKU: must(payables.ParseSKU("S")), Unit: unit, Quantity: one, UnitPrice: money.FromMinor(1, usd)})
		lines = append(lines, payables.ReceiptLine{OrderLine: n + 1, Quantity: one, Unit: unit})
	}
	fill := []ledger.Command{payables.ImportOrders{Orders: []payables.Order{order}}}
	for n := range many {
		of := lines[:1]
		if n%25 == 20 { // a long one now and then, and then nothing but long ones
			of = lines
		}
		if n >= many-chunk {
			of = lines
		}
		fill = append(fill, payables.ImportReceipts{Receipts: []payables.Receipt{{ID: must(payables.ParseReceiptID(fmt.Sprintf("LONG-%03d", n))), Order: id, Vendor: vendor, Movement: payables.Received, ReceivedAt: day, Lines: of}}})
	}
	w, counted := withLoads(t, fill...)
	var ids []string
	for cursor := ""; ; {
		counted.receipts = 0
		got := w.ask("GET /v1/purchase-orders/PO-LONG/receipts?limit=1000"+cursor, "reader", "")
		rows, ok := got.json["receipts"].([]any)
		if got.status != 200 || !ok || len(rows) == 0 {
			t.Fatalf("%d %.200s", got.status, got.body)
		}
		for _, r := range rows {
			ids = append(ids, r.(map[string]any)["id"].(string))
		}
		if counted.receipts > len(rows)+chunk {
			t.Errorf("%d receipts were loaded to show %d", counted.receipts, len(rows))
		}
		next, more := got.json["next"].(string)
		if !more {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(next)
	}
	if len(ids) != many || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != many {
		t.Errorf("%d receipts: %v", len(ids), ids)
	}
	// A limit ends it too, also where chunks meet.
	for _, limit := range []int{1, chunk - 1, chunk, chunk + 1} {
		got := w.ask(fmt.Sprintf("GET /v1/purchase-orders/PO-LONG/receipts?limit=%d", limit), "reader", "")
		if rows, _ := got.json["receipts"].([]any); len(rows) != limit || got.json["next"] != ids[limit-1] {
			t.Errorf("limit %d: %d rows, next %v", limit, len(rows), got.json["next"])
		}
	}
	got := w.ask("GET /v1/purchase-orders/PO-LONG/receipts?limit=1&cursor="+ids[many-1], "reader", "")
	if got.body != `{"receipts":[]}` {
		t.Errorf("behind the last: %d %s", got.status, got.body)
	}
}

// The pages of a list are the list.
func TestPagesOfPayables(t *testing.T) {
	w := newWorld(t, withDemo(t))
	all := func(path, member string, key func(map[string]any) string) (ids []string) {
		name := "cursor"
		if strings.HasPrefix(path, "/v1/journal") {
			name = "after"
		}
		cursor := ""
		for {
			got := w.ask("GET "+path+cursor, "reader", "")
			rows, ok := got.json[member].([]any)
			if got.status != 200 || !ok {
				t.Fatalf("%s%s: %d %s", path, cursor, got.status, got.body)
			}
			for _, r := range rows {
				ids = append(ids, key(r.(map[string]any)))
			}
			next, more := got.json["next"].(string)
			if !more {
				return ids
			}
			cursor = "&" + name + "=" + url.QueryEscape(next)
		}
	}
	id := func(r map[string]any) string { return r["id"].(string) }
	if got := all("/v1/invoices?limit=2", "invoices", id); len(got) != 11 || got[0] != "INV-1001" || got[10] != "INV-1011" {
		t.Errorf("invoices %v", got)
	}
	if got := fmt.Sprint(all("/v1/vendors/V-100/invoices?limit=2", "invoices", id)); got != "[INV-1010 INV-1008 INV-1005 INV-1004 INV-1001]" {
		t.Errorf("the latest %s", got)
	}
	if got := fmt.Sprint(all("/v1/vendors?limit=1", "vendors", id)); got != "[V-100 V-200 V-300]" {
		t.Errorf("vendors %s", got)
	}
	entry := func(r map[string]any) string { return fmt.Sprint(r["subjectId"], "/", r["number"]) }
	one, many := all("/v1/journal?kind=vendor&limit=1", "entries", entry), all("/v1/journal?kind=vendor&limit=1000", "entries", entry)
	if fmt.Sprint(one) != fmt.Sprint(many) || len(one) < 30 {
		t.Errorf("one by one %v, at once %v", one, many)
	}
}
