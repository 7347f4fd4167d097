package restclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/mcpserver"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/restclient/internal/faulty"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

const (
	why      = "The buyer agreed by mail."
	override = `"action":"approve","reason_code":"MANUAL_OVERRIDE","override":true,"note":"` + why + `"`
	approve  = `"action":"approve","reason_code":"CLEAN_MATCH"`
	hold     = `"action":"hold","reason_code":"NEEDS_REVIEW"`
)

// mayLack is all that an invoice may lack, as it stands on the wire.
var mayLack = []string{"lines", "currency", "invoiceDate", "taxMinor", "freightMinor"}

// called is what stands for a member where it is missing.
var called = map[string]string{"lines": "lines", "currency": "currency", "invoiceDate": "invoiceDate", "taxMinor": "tax", "freightMinor": "freight"}

// synthesised is what a tool says of an invoice that lacks members.
func synthesised(members []string, but ...string) []any {
	var names []any
	for _, m := range members {
		if !slices.Contains(but, m) {
			names = append(names, called[m])
		}
	}
	return names
}

// started is a start of the process late on 27 February, which is the 28th in UTC.
var started = time.Date(2026, 2, 27, 23, 30, 0, 0, time.FixedZone("", -2*60*60))

// kept is a store with an order of 10 at 10.00, all received, and invoices on it
// of one each: INV-1001 agrees, with tax of 1.00 and freight of 0.50; INV-1002 is
// dearer; INV-1003 names no order; INV-1004 has the number of INV-1001.
func kept(t testing.TB) *memory.Store {
	t.Helper()
	s := opened(t)
	vendor, unit, sku := must(payables.ParseVendorID("V-1")), must(payables.ParseUnit("EA")), must(payables.ParseSKU("BOLT"))
	one, day := must(payables.ParseQuantity("1")), must(payables.ParseDate("2026-03-01"))
	usd := func(minor int64) money.Amount { return money.FromMinor(minor, usd) }
	order := payables.Order{
		ID: must(payables.ParseOrderID("PO-1")), Vendor: vendor, Currency: usd(0).Currency(), FreightLimit: usd(10_00), TaxLimit: must(payables.ParsePercent("10")),
		Lines: []payables.OrderLine{{Line: 1, SKU: sku, Unit: unit, Quantity: must(payables.ParseQuantity("10")), UnitPrice: usd(10_00)}},
	}
	bill := func(id, number string, order payables.OrderID, price, tax, freight int64) payables.Invoice {
		return payables.Invoice{
			ID: must(payables.ParseInvoiceID(id)), Number: must(payables.ParseNumber(number)), Document: payables.Bill, Vendor: vendor, Order: order, Currency: usd(0).Currency(),
			Tax: usd(tax), Freight: usd(freight), Total: usd(price + tax + freight), Date: day,
			Lines: []payables.InvoiceLine{{Line: 1, OrderLine: 1, SKU: sku, Unit: unit, Quantity: one, UnitPrice: usd(price), Amount: usd(price)}},
		}
	}
	for n, cmd := range []ledger.Command{
		payables.ImportVendors{Vendors: []payables.Vendor{{ID: vendor, Name: "Bolts & Co"}}}, payables.ImportOrders{Orders: []payables.Order{order}},
		payables.ImportReceipts{Receipts: []payables.Receipt{{
			ID: must(payables.ParseReceiptID("GR-1")), Order: order.ID, Vendor: vendor, Movement: payables.Received, ReceivedAt: day,
			Lines: []payables.ReceiptLine{{OrderLine: 1, Quantity: order.Lines[0].Quantity, Unit: unit}},
		}}},
		payables.ImportInvoices{Invoices: []payables.Invoice{
			bill("INV-1001", "A-1", order.ID, 10_00, 1_00, 50), bill("INV-1002", "A-2", order.ID, 11_50, 0, 0),
			bill("INV-1003", "A-3", payables.OrderID{}, 10_00, 0, 0), bill("INV-1004", "a 01", order.ID, 10_00, 0, 0),
		}},
	} {
		if _, err := s.Do(t.Context(), asked(fmt.Sprintf("kept-%d", n)), cmd); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// thin is a thin backend with the tools over it.
type thin struct {
	t       *testing.T
	store   *memory.Store
	service *faulty.Server
	client  *restclient.Client
	tools   *mcpserver.Server
}

// inUSD are the settings of a client of a backend that may not say a currency.
func inUSD(o *restclient.Options) { o.Currency, o.Started = usd, started }

func newThin(t *testing.T, defect faulty.Defect, change ...func(*restclient.Options)) *thin {
	t.Helper()
	w := &thin{t: t, store: kept(t)}
	w.service = faulty.New(newServer(t, w.store), defect)
	w.client = newClient(t, serveQuietly(t, w.service).URL, "acme", change...)
	a := &app.App{
		Ledger: w.client, Refunds: w.client, Payables: w.client, Journal: w.client, Clock: system.Clock{}, IDs: system.IDs{},
		CallTimeout: time.Minute, Tolerance: payables.DefaultTolerance(),
	}
	var err error
	if w.tools, err = mcpserver.New(a, mcpserver.Options{Version: "test", Toolsets: []string{"payables"}, Log: quiet}); err != nil {
		t.Fatal(err)
	}
	return w
}

// posts is how often it was asked to decide.
func (w *thin) posts() int { return len(w.service.Requests(http.MethodPost)) }

func (w *thin) status(id string) payables.Status {
	return invoice(w.t, w.store, must(payables.ParseInvoiceID(id))).Status
}

// words is an answer of a tool: what it says, or the error of a refusal.
type words map[string]any

// call calls a tool, as a person who may override or as an agent.
func (w *thin) call(person bool, tool, arguments string) words {
	w.t.Helper()
	who := must(access.NewPrincipal(acme, "bot", access.Agent, access.ScopesOf(access.InvoiceRead, access.InvoiceRoute), access.Pro, ""))
	if person {
		who = must(access.NewPrincipal(acme, "clerk", access.Human, access.ScopesOf(access.InvoiceRead, access.InvoiceRoute, access.InvoiceOverride), access.Pro, ""))
	}
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `","arguments":{` + arguments + `}}}
`
	var out bytes.Buffer
	if err := w.tools.ServeStdio(w.t.Context(), who, strings.NewReader(in), &out); err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID     int
			Result struct {
				StructuredContent words
				IsError           bool
				Content           []struct{ Text string }
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			w.t.Fatalf("%v in %s", err, line)
		}
		switch {
		case m.ID != 2:
		case m.Result.IsError:
			var refused struct{ Error words }
			if err := json.Unmarshal([]byte(m.Result.Content[1].Text), &refused); err != nil {
				w.t.Fatal(err)
			}
			return refused.Error
		default:
			return m.Result.StructuredContent
		}
	}
	w.t.Fatalf("no answer: %s", out.String())
	return nil
}

func (x words) list(name string) []words {
	all, _ := x[name].([]any)
	var list []words
	for _, element := range all {
		m, _ := element.(map[string]any)
		list = append(list, m)
	}
	return list
}

// same reports whether the fields have the values, given in turn; nil is absent.
func (x words) same(t *testing.T, fieldsAndValues ...any) {
	t.Helper()
	for i := 0; i < len(fieldsAndValues); i += 2 {
		name, want := fieldsAndValues[i].(string), fieldsAndValues[i+1]
		got, there := x[name]
		if list, ok := want.([]any); ok && list == nil {
			want = nil
		}
		if there != (want != nil) || there && !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, want %v in %v", name, got, want, x)
		}
	}
}

// Each tool over a backend that leaves something out: what is missing has
// something in its place and is named, and only what is missing.
func TestToolsOverAThinBackend(t *testing.T) {
	sets := [][]string{{}, mayLack}
	for _, m := range mayLack {
		sets = append(sets, []string{m})
	}
	for _, out := range sets {
		lacks := func(m string) bool { return slices.Contains(out, m) }
		either := func(m string, without, with any) any {
			if lacks(m) {
				return without
			}
			return with
		}
		date := either("invoiceDate", "2026-02-28", "2026-03-01")
		marked, rows, currency := synthesised(out), synthesised(out, "lines"), synthesised(out, "lines", "invoiceDate", "taxMinor", "freightMinor")
		t.Run("without "+strings.Join(out, ", "), func(t *testing.T) {
			t.Parallel()
			w := newThin(t, faulty.LeavesOut(out...), inUSD)

			list := w.call(false, "list_invoices", ``).list("invoices")
			if len(list) != 4 {
				t.Fatalf("%d invoices", len(list))
			}
			for _, row := range list {
				row.same(t, "currency", "USD", "invoiceDate", date, "synthesised", rows)
			}
			list[0].same(t, "id", "INV-1001", "total", 11.5, "status", "open")

			i := w.call(false, "get_invoice", `"invoice_id":"INV-1001"`)
			i.same(t, "currency", "USD", "invoiceDate", date, "total", 11.5, "tax", either("taxMinor", 0.0, 1.0), "freight", either("freightMinor", 0.0, 0.5), "synthesised", marked)
			if i["purchaseOrder"] == nil || len(i.list("receipts")) != 1 || len(i.list("lines")) != 1 {
				t.Errorf("it has not all that is kept: %v", i)
			} else if lacks("lines") {
				rest := 10 + either("taxMinor", 1.0, 0.0).(float64) + either("freightMinor", 0.5, 0.0).(float64)
				i.list("lines")[0].same(t, "line", 1.0, "sku", "TOTAL", "quantity", 1.0, "unitPrice", rest, "amount", rest, "orderLine", nil)
			} else {
				i.list("lines")[0].same(t, "line", 1.0, "sku", "BOLT", "unitPrice", 10.0, "orderLine", 1.0)
			}

			for id, want := range map[string]struct {
				findings  string
				recommend string
			}{
				"INV-1001": {"", "approve"},                                                                  // its total may hold tax and freight that are left out
				"INV-1002": {either("lines", "", either("currency", "", "PRICE_VARIANCE")).(string), "hold"}, // no price is compared in a currency that nobody wrote
				"INV-1003": {"MISSING_PO", "hold"},
				"INV-1004": {"DUPLICATE_INVOICE", "reject"},
			} {
				recommend := want.recommend
				if len(out) > 0 && recommend == "approve" {
					recommend = "hold"
				}
				m := w.call(false, "match_invoice_to_po", `"invoice_id":"`+id+`"`)
				m.same(t, "recommendation", recommend, "blocking", recommend != "approve", "synthesised", marked)
				var codes []string
				for _, f := range m.list("findings") {
					codes = append(codes, f["code"].(string))
				}
				if got := strings.Join(codes, " "); got != want.findings {
					t.Errorf("%s has the findings %s, want %s", id, got, want.findings)
				}
			}

			for _, name := range []string{``, `"currency":"USD"`} {
				sums := w.call(false, "get_ledger_summary", name)
				sums.same(t, "matched", 4.0, "complete", true)
				if lines := sums.list("currencies"); len(lines) != 1 {
					t.Errorf("the summary is %v", sums)
				} else {
					lines[0].same(t, "currency", "USD", "exposure", 43.0, "synthesised", currency)
				}
			}

			// The rule, on what is not decided yet.
			asked := w.call(false, "route_exception", `"invoice_id":"INV-1001",`+approve)
			if len(out) == 0 {
				asked.same(t, "status", "approved")
				return
			}
			asked.same(t, "code", "POLICY_VIOLATION", "reason", "synthesised_invoice", "retryable", false, "details", map[string]any{"synthesised": marked})
			w.call(false, "route_exception", `"invoice_id":"INV-1001",`+override).same(t, "reason", "synthesised_invoice")
			w.call(true, "route_exception", `"invoice_id":"INV-1001",`+approve).same(t, "reason", "synthesised_invoice")
			w.call(true, "route_exception", `"invoice_id":"INV-1001",`+strings.Replace(override, why, "short", 1)).same(t, "reason", "synthesised_invoice")
			w.call(true, "route_exception", `"invoice_id":"INV-1003",`+approve).same(t, "reason", "synthesised_invoice")
			if w.posts() > 0 || w.status("INV-1001") != payables.Open {
				t.Fatalf("it was sent %d times, and the invoice is %s", w.posts(), w.status("INV-1001"))
			}
			w.call(false, "route_exception", `"invoice_id":"INV-1001",`+hold).same(t, "status", "on_hold", "changed", true)
			w.call(false, "route_exception", `"invoice_id":"INV-1003","action":"reject","reason_code":"MISSING_PO"`).same(t, "status", "rejected")
			w.call(true, "route_exception", `"invoice_id":"INV-1004",`+override).same(t, "reason", "duplicate_invoice")
			w.call(true, "route_exception", `"invoice_id":"INV-1001",`+override).same(t, "status", "approved", "changed", true)
			// What is final is answered as ever.
			w.call(true, "route_exception", `"invoice_id":"INV-1001",`+override).same(t, "status", "approved", "changed", false)
			sent := w.posts()
			w.call(false, "route_exception", `"invoice_id":"INV-1001",`+approve).same(t, "code", "CONFLICT", "reason", "already_decided")
			if w.posts() > sent {
				t.Error("an approval was sent because the service shows another")
			}
			i = w.call(false, "get_invoice", `"invoice_id":"INV-1001"`)
			i.same(t, "status", "approved", "synthesised", marked)
			if d, _ := i["decision"].(map[string]any); d["override"] != true || d["note"] != why || d["decidedBy"] != "clerk" {
				t.Errorf("the decision is %v", i["decision"])
			}

			s := w.call(false, "get_vendor_statement", `"vendor_id":"V-1"`)
			s.same(t, "name", "Bolts & Co", "balances", []any{map[string]any{"currency": "USD", "balance": 11.5}}, "synthesised", currency)
			if lines := s.list("rows"); len(lines) != 4 {
				t.Errorf("the statement is %v", s)
			} else {
				lines[0].same(t, "id", "INV-1001", "currency", "USD", "balance", 11.5, "invoiceDate", date, "synthesised", rows)
			}
		})
	}
}

// What is there has to be right: only what is absent has something in its place.
func TestWhatIsThereIsNotAbsent(t *testing.T) {
	t.Parallel()
	lines := `"lines":[{"line":1,"orderLine":1,"sku":"BOLT","unit":"EA","quantity":"1","unitPriceMinor":1000,"amountMinor":1000}]`
	for name, tt := range map[string]struct {
		old, new string
		want     string
	}{
		"nothing is wrong":           {`"x"`, `"x"`, "done"},
		"no lines":                   {`,` + lines, ``, "done"},
		"lines that are null":        {lines, `"lines":null`, unreliable},
		"lines that are a text":      {lines, `"lines":"none"`, unreliable},
		"no lines, and more of them": {lines, `"next":"1"`, unreliable},
		"a currency that is null":    {`"currency":"USD"`, `"currency":null`, unreliable},
		"an empty currency":          {`"currency":"USD"`, `"currency":""`, unreliable},
		"a currency in small":        {`"currency":"USD"`, `"currency":"usd"`, unreliable},
		"a currency as a number":     {`"currency":"USD"`, `"currency":840`, unreliable},
		"a date that is null":        {`"invoiceDate":"2026-03-01"`, `"invoiceDate":null`, unreliable},
		"an empty date":              {`"invoiceDate":"2026-03-01"`, `"invoiceDate":""`, unreliable},
		"a date that is none":        {`"invoiceDate":"2026-03-01"`, `"invoiceDate":"2026-02-30"`, unreliable},
		"tax that is null":           {`"taxMinor":100`, `"taxMinor":null`, unreliable},
		"tax as a text":              {`"taxMinor":100`, `"taxMinor":"100"`, unreliable},
		"tax below nothing":          {`"taxMinor":100`, `"taxMinor":-1`, unreliable},
		"freight that is null":       {`"freightMinor":50`, `"freightMinor":null`, unreliable},
		"freight below nothing":      {`"freightMinor":50`, `"freightMinor":-1`, unreliable},
		"no total":                   {`"totalMinor":1150,`, ``, unreliable},
		"no id":                      {`"id":"INV-1001",`, ``, unreliable},
		"no tenant":                  {`{"tenant":"acme",`, `{`, unreliable},
		"no vendor":                  {`"vendorId":"V-1",`, ``, unreliable},
		"no number":                  {`"number":"A-1",`, ``, unreliable},
		"no normal number":           {`"normalNumber":"a-1",`, ``, unreliable},
		"no status":                  {`"status":"open",`, ``, unreliable},
		"no number of its entry":     {`"entered":4,`, ``, unreliable},
		"nothing of what it credits": {`"creditedMinor":0,`, ``, unreliable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := false
			w := newThin(t, func(s *faulty.Server, out http.ResponseWriter, r *http.Request, n int) {
				faulty.Changes(tt.old, tt.new)(s, recorded{out, func(body string) { changed = changed || tt.old != tt.new && strings.Contains(body, tt.new) }}, r, n)
			}, inUSD)
			_, err := w.client.Load(t.Context(), acme, clean.Ref())
			if got := said(ledger.Outcome{}, err); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if tt.want != "done" && !changed {
				t.Fatal("nothing was changed")
			}
		})
	}
	t.Run("an empty list of lines", func(t *testing.T) {
		t.Parallel()
		w := newThin(t, faulty.Changes(lines, `"lines":[]`), inUSD)
		m := w.call(false, "match_invoice_to_po", `"invoice_id":"INV-1001"`)
		m.same(t, "recommendation", "hold", "synthesised", nil)
		if f := m.list("findings"); len(f) == 0 || f[0]["code"] != "NO_LINES" {
			t.Errorf("found %v", f)
		}
	})
}

// recorded tells what is written.
type recorded struct {
	http.ResponseWriter
	tell func(string)
}

func (r recorded) Write(b []byte) (int, error) {
	r.tell(string(b))
	return r.ResponseWriter.Write(b)
}

// Without a setting nothing stands in for a currency, and the fault names the
// setting; nothing is decided on such an answer.
func TestNoCurrencyToFallBackOn(t *testing.T) {
	t.Parallel()
	w := newThin(t, faulty.LeavesOut("currency"), func(o *restclient.Options) { o.Started = started })
	for tool, arguments := range map[string]string{
		"list_invoices": ``, "get_invoice": `"invoice_id":"INV-1001"`, "match_invoice_to_po": `"invoice_id":"INV-1001"`, "get_ledger_summary": ``,
		"get_vendor_statement": `"vendor_id":"V-1"`, "route_exception": `"invoice_id":"INV-1001",` + approve,
	} {
		got := w.call(true, tool, arguments)
		got.same(t, "code", "BACKEND_UNAVAILABLE", "reason", "currency_missing", "retryable", false)
		if text, _ := got["message"].(string); !strings.Contains(text, "LEDGER_DEFAULT_CURRENCY") {
			t.Errorf("%s says %q", tool, text)
		}
	}
	if got := said(w.client.Do(t.Context(), asked("k"), decide(clean, payables.Approve, payables.CleanMatch))); got != "BACKEND_UNAVAILABLE/currency_missing" {
		t.Error(got)
	}
	if w.posts() > 0 {
		t.Errorf("it was sent %d times", w.posts())
	}
}

// A refund has no mark and no lock, so nothing stands in for the currency of a
// customer, or for a day; nor for those of an order, a receipt or a decision.
func TestOnlyInvoicesMayBeThin(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		out string
		ref ledger.Ref
	}{
		"the currency of a customer": {`"currency":"USD",`, customer.Ref()},
		"the day of a customer":      {`"createdAt":"2024-01-15T00:00:00.000Z",`, customer.Ref()},
		"the currency of an order":   {`"currency":"USD",`, must(payables.ParseOrderID("PO-1")).Ref()},
		"the day of a receipt":       {`"receivedAt":"2026-03-01",`, must(payables.ParseReceiptID("GR-1")).Ref()},
	} {
		for out, want := range map[string]string{tt.out: unreliable, "nothing": "done"} {
			w := newThin(t, faulty.Changes(out, ``), inUSD)
			if _, err := w.client.Load(t.Context(), acme, tt.ref); said(ledger.Outcome{}, err) != want {
				t.Errorf("%s, without %s: %v, want %s", name, out, err, want)
			}
		}
	}
}

// What balances are in is filled in once: two of one currency are no answer.
func TestASecondBalanceInTheCurrencyThatIsFilledIn(t *testing.T) {
	t.Parallel()
	store := kept(t)
	cmd := decide(clean, payables.Approve, payables.CleanMatch)
	cmd.Links = payables.LinksOf(invoice(t, store, clean), nil)
	if _, err := store.Do(t.Context(), asked("k"), cmd); err != nil {
		t.Fatal(err)
	}
	for balances, want := range map[string]string{
		`[{"balanceMinor":1150}]`: "done",
		`[{"balanceMinor":1150},{"currency":"USD","balanceMinor":1150}]`: unreliable,
		`[{"balanceMinor":1150},{"balanceMinor":1150}]`:                  unreliable,
		// Its place is the first on the wire, whatever is filled in.
		`[{"balanceMinor":1150},{"currency":"EUR","balanceMinor":1150}]`: "done",
		`[{"currency":"EUR","balanceMinor":1150},{"balanceMinor":1150}]`: unreliable,
	} {
		service := faulty.New(newServer(t, store), faulty.Changes(`[{"currency":"USD","balanceMinor":1150}]`, balances))
		client := newClient(t, serveQuietly(t, service).URL, "acme", inUSD)
		if _, err := client.Load(t.Context(), acme, must(payables.ParseVendorID("V-1")).Ref()); said(ledger.Outcome{}, err) != want {
			t.Errorf("%s: %v, want %s", balances, err, want)
		}
	}
}

func overridden(id payables.InvoiceID) payables.Route {
	r := decide(id, payables.Approve, payables.ManualOverride)
	r.Override, r.Note, r.MayOverride = true, must(payables.ParseNote(why)), true
	return r
}

// The rule costs one look-up, and only where it may refuse.
func TestWhatTheRuleCosts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cmd  payables.Route
		gets int
	}{
		"an approval": {decide(clean, payables.Approve, payables.CleanMatch), 1},
		"an override": {overridden(clean), 0},
		"a hold":      {decide(clean, payables.Hold, payables.NeedsReview), 0},
	} {
		w := newThin(t, faulty.Good, inUSD)
		if got := said(w.client.Do(t.Context(), asked("k"), tt.cmd)); got != "done" || len(w.service.Requests(http.MethodGet)) != tt.gets || w.posts() != 1 {
			t.Errorf("%s: %s after %d look-ups, sent %d times", name, got, len(w.service.Requests(http.MethodGet)), w.posts())
		}
	}
}

// A repeat under the same key gets the first outcome, also one that the rule
// would refuse now.
func TestReplayOverAThinBackend(t *testing.T) {
	t.Parallel()
	leaves := faulty.LeavesOut(mayLack...)
	t.Run("after a lost answer", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			store := kept(t)
			service := faulty.New(newServer(t, store), both(faulty.First(1, faulty.LosesReplies), leaves))
			client, _ := piped(t, service, inUSD)
			op := asked("k")
			first, err := client.Do(t.Context(), op, overridden(clean))
			if got := said(first, err); got != "replayed" {
				t.Fatal(got)
			}
			again, err := client.Do(t.Context(), op, overridden(clean))
			if got := said(again, err); got != "replayed" || !reflect.DeepEqual(again, first) {
				t.Errorf("%s, and another answer: %+v", got, again)
			}
			if i := invoice(t, store, clean); i.Status != payables.Approved || i.Decision.Number != first.Answer.(payables.Decision).Number {
				t.Errorf("the invoice is %s", i.Status)
			}
		})
	})
	t.Run("of an approval when the backend kept more", func(t *testing.T) {
		w := newThin(t, leaves, inUSD)
		full := newClient(t, serveQuietly(t, newServer(t, w.store)).URL, "acme")
		op, cmd := asked("k"), decide(clean, payables.Approve, payables.CleanMatch)
		first, err := full.Do(t.Context(), op, cmd)
		if err != nil {
			t.Fatal(err)
		}
		again, err := w.client.Do(t.Context(), op, cmd)
		if got := said(again, err); got != "replayed" || !reflect.DeepEqual(again.Answer, first.Answer) {
			t.Errorf("%s with %+v", got, again.Answer)
		}
	})
	for name, tt := range map[string]struct {
		records, operations faulty.Defect
		want                string
	}{
		"of an approval when the invoice is not shown any more": {noInvoice, faulty.Good, "replayed"},
		"whose outcome is about another invoice":                {stale(t, leaves), faulty.Changes(`"invoiceId":"INV-1001"`, `"invoiceId":"INV-1003"`), unreliable},
		"whose outcome is another decision":                     {stale(t, leaves), faulty.Changes(`"action":"approve"`, `"action":"hold"`), unreliable},
		"whose outcome is right, to compare":                    {stale(t, leaves), faulty.Good, "replayed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newThin(t, faulty.Reads(mixed(tt.records, tt.operations)), inUSD)
			full := newClient(t, serveQuietly(t, newServer(t, w.store)).URL, "acme")
			op, cmd := asked("k"), decide(clean, payables.Approve, payables.CleanMatch)
			if got := said(full.Do(t.Context(), op, cmd)); got != "done" {
				t.Fatal(got)
			}
			if got := said(w.client.Do(t.Context(), op, cmd)); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if w.posts() > 0 {
				t.Errorf("it was sent %d times", w.posts())
			}
		})
	}
	t.Run("under a key that was used otherwise", func(t *testing.T) {
		w := newThin(t, leaves, inUSD)
		op, dear := asked("k"), must(payables.ParseInvoiceID("INV-1002"))
		if got := said(w.client.Do(t.Context(), op, decide(dear, payables.Hold, payables.NeedsReview))); got != "done" {
			t.Fatal(got)
		}
		if got := said(w.client.Do(t.Context(), op, decide(clean, payables.Approve, payables.CleanMatch))); got != "CONFLICT/operation_key_reused" {
			t.Error(got)
		}
		if w.posts() != 1 {
			t.Errorf("it was sent %d times", w.posts())
		}
	})
}

// noInvoice is what a replica says that lags behind.
var noInvoice = faulty.Answers(404, "application/problem+json", `{"status":404,"code":"NOT_FOUND","reason":"invoice_not_found","detail":"x","retryable":false}`)

// As long as nothing was sent nothing has happened, whatever came of the look-up.
func TestTheRuleCanNotBeAsked(t *testing.T) {
	leaves := faulty.LeavesOut(mayLack...)
	slow := faulty.SlowToBegin(callTime + time.Second)
	for name, tt := range map[string]struct {
		reads faulty.Defect
		want  string
	}{
		"it can":              {leaves, "POLICY_VIOLATION/synthesised_invoice"},
		"the service is slow": {slow, unreachable},
		"it takes more than half of the time, though all is there": {mixed(faulty.SlowToBegin(callTime*6/10), faulty.Good), unreachable},
		"the invoice is lost":                                      {faulty.LosesRequests, unreachable},
		"the invoice is a page":                                    {faulty.Answers(200, "text/html", `<html>`), unreliable},
		"the key can not be looked up":                             {mixed(leaves, faulty.LosesRequests), unreachable},
		"the look-up of the key is slow":                           {mixed(leaves, slow), unreachable},
		"the invoice is unknown":                                   {mixed(noInvoice, faulty.Good), "NOT_FOUND/invoice_not_found"},
		"the invoice is unknown, and the key can not be looked up": {mixed(noInvoice, faulty.LosesRequests), unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				service := faulty.New(newServer(t, kept(t)), faulty.Reads(tt.reads))
				client, _ := piped(t, service, inUSD, func(o *restclient.Options) { o.Timeout = callTime })
				began := time.Now()
				if got := said(client.Do(t.Context(), asked("k"), decide(clean, payables.Approve, payables.CleanMatch))); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				if n := len(service.Requests(http.MethodPost)); n > 0 {
					t.Errorf("it was sent %d times", n)
				}
				if took := time.Since(began); exceeds(took) {
					t.Errorf("it took %s of %s", took, callTime)
				}
			})
		})
	}
}

// Who goes away while the rule is asked leaves nothing behind.
func TestACallThatEndsBeforeAnythingIsSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		service := faulty.New(newServer(t, kept(t)), faulty.Reads(faulty.SlowToBegin(time.Second)))
		client, _ := piped(t, service, inUSD, func(o *restclient.Options) { o.Timeout = callTime })
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Second/2, cancel).Stop()
		if got := said(client.Do(ctx, asked("k"), decide(clean, payables.Approve, payables.CleanMatch))); got != unreachable {
			t.Error(got)
		}
		time.Sleep(time.Second)
		if n := len(service.Requests(http.MethodPost)); n > 0 {
			t.Errorf("it was sent %d times", n)
		}
	})
}

// mixed has one defect where it is asked for records, and another for operations.
func mixed(records, operations faulty.Defect) faulty.Defect {
	return func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
		if strings.HasPrefix(r.URL.Path, "/v1/operations/") {
			operations(s, w, r, n)
			return
		}
		records(s, w, r, n)
	}
}

// A backend that knows the rule says it in the same words.
func TestABackendThatKnowsTheRule(t *testing.T) {
	const problem = "application/problem+json"
	body := `{"status":422,"code":"POLICY_VIOLATION","reason":"synthesised_invoice","detail":"No.","retryable":false,"details":{"synthesised":["lines","currency"]}}`
	credited := strings.Replace(body, `"details":{`, `"details":{"credited":["tax"],`, 1)
	inBubble(t, func(t *testing.T) {
		for text, want := range map[string]string{body: "POLICY_VIOLATION/synthesised_invoice", credited: "POLICY_VIOLATION/synthesised_invoice",
			strings.Replace(credited, `"tax"`, `"call this number"`, 1): unreachable, strings.Replace(body, `"currency"`, `"call this number"`, 1): unreachable} {
			service := faulty.New(newServer(t, kept(t)), faulty.Writes(faulty.Answers(422, problem, text)))
			client, _ := piped(t, service, func(o *restclient.Options) { o.Timeout = callTime })
			_, err := client.Do(t.Context(), asked("k"), overridden(clean))
			if got := said(ledger.Outcome{}, err); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if d, ok := fault.Of(err).Details.(payables.Synthesised); ok != (want != unreachable) || ok && (len(d.Credited) == 1) != (text == credited) || ok && !slices.Equal(d.Synthesised, []string{"lines", "currency"}) {
				t.Errorf("the details are %+v", fault.Of(err).Details)
			}
		}
	})
}

// stale is a service of invoices on which nothing is decided, with a defect.
func stale(t *testing.T, d faulty.Defect) faulty.Defect {
	t.Helper()
	service := faulty.New(newServer(t, kept(t)), d)
	return func(_ *faulty.Server, w http.ResponseWriter, r *http.Request, _ int) { service.ServeHTTP(w, r) }
}

// at has one defect where it is asked for the path, and another elsewhere.
func at(path string, there, elsewhere faulty.Defect) faulty.Defect {
	return func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
		if r.URL.Path == path {
			there(s, w, r, n)
			return
		}
		elsewhere(s, w, r, n)
	}
}

// What a note credits is part of what it is decided on: the note itself is whole
// here, and only the credited invoice is not.
func TestANoteOnAnInvoiceThatIsNotAllKept(t *testing.T) {
	t.Parallel()
	noted := func(t *testing.T, defect faulty.Defect) *thin {
		w := newThin(t, defect, inUSD)
		full := newClient(t, serveQuietly(t, newServer(t, w.store)).URL, "acme")
		bill := invoice(t, w.store, clean)
		note := bill
		note.ID, note.Number, note.Document, note.Credits = must(payables.ParseInvoiceID("INV-2001")), must(payables.ParseNumber("N-1")), payables.CreditNote, clean
		huge := note
		huge.ID, huge.Number = must(payables.ParseInvoiceID("INV-2002")), must(payables.ParseNumber("N-2"))
		huge.Total = money.FromMinor(1_000_000_00, usd)
		for n, cmd := range []ledger.Command{decide(clean, payables.Approve, payables.CleanMatch), payables.ImportInvoices{Invoices: []payables.Invoice{note, huge}}} {
			if got := said(full.Do(t.Context(), asked(fmt.Sprintf("noted-%d", n)), cmd)); got != "done" {
				t.Fatal(got)
			}
		}
		return w
	}
	for _, m := range mayLack {
		t.Run("without "+m, func(t *testing.T) {
			t.Parallel()
			w := noted(t, at("/v1/invoices/INV-1001", faulty.LeavesOut(m), faulty.Good))
			marked := []any{called[m]}
			match := w.call(false, "match_invoice_to_po", `"invoice_id":"INV-2001"`)
			match.same(t, "recommendation", "hold", "blocking", true, "synthesised", nil, "creditedSynthesised", marked, "findings", []any{})
			w.call(false, "match_invoice_to_po", `"invoice_id":"INV-2002"`).same(t, "recommendation", "hold", "creditedSynthesised", marked)
			for _, id := range []string{"INV-2001", "INV-2002"} {
				w.call(false, "route_exception", `"invoice_id":"`+id+`",`+approve).same(t, "reason", "synthesised_invoice", "details", map[string]any{"synthesised": []any{}, "credited": marked})
			}
			if w.posts() > 0 {
				t.Fatalf("it was sent %d times", w.posts())
			}
			w.call(false, "route_exception", `"invoice_id":"INV-2002",`+hold).same(t, "status", "on_hold")
			w.call(true, "route_exception", `"invoice_id":"INV-2001",`+override).same(t, "status", "approved")
		})
	}
	t.Run("that is whole, to compare", func(t *testing.T) {
		t.Parallel()
		w := noted(t, faulty.Good)
		w.call(false, "match_invoice_to_po", `"invoice_id":"INV-2001"`).same(t, "recommendation", "approve", "creditedSynthesised", nil)
		w.call(false, "route_exception", `"invoice_id":"INV-2001",`+approve).same(t, "status", "approved")
	})
	t.Run("that is not shown", func(t *testing.T) {
		t.Parallel()
		w := noted(t, at("/v1/invoices/INV-1001", noInvoice, faulty.Good))
		if got := said(w.client.Do(t.Context(), asked("k"), decide(must(payables.ParseInvoiceID("INV-2001")), payables.Approve, payables.CleanMatch))); got != "NOT_FOUND/invoice_not_found" || w.posts() > 0 {
			t.Errorf("%s, sent %d times", got, w.posts())
		}
	})
}

// On the wire nothing would say what was filled in, so it is not brought into
// another ledger; what is left of it is not approved there.
func TestWhatWasFilledInIsNotBroughtIn(t *testing.T) {
	t.Parallel()
	for _, m := range mayLack {
		w := newThin(t, faulty.LeavesOut(m), inUSD)
		cmd := payables.ImportInvoices{Invoices: []payables.Invoice{invoice(t, w.client, clean)}}
		full := faulty.New(newServer(t, opened(t)), faulty.Good)
		_, err := newClient(t, serveQuietly(t, full).URL, "acme").Do(t.Context(), asked("k"), cmd)
		if f := fault.Of(err); f == nil || f.Code != fault.InvalidInput || !reflect.DeepEqual(f.Issues, cmd.Check()) || len(full.Requests(http.MethodPost)) > 0 {
			t.Errorf("without %s: %v, sent %d times", m, err, len(full.Requests(http.MethodPost)))
		}
		a := &app.App{Ledger: w.client, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: time.Minute}
		operator := must(access.NewPrincipal(acme, "op", access.Human, access.ScopesOf(access.ControlRules), access.Pro, ""))
		if _, err := a.ImportInvoices(t.Context(), app.Call{Principal: operator, Tool: "import"}, cmd.Invoices); fault.CodeOf(err) != fault.InvalidInput || w.posts() > 0 {
			t.Errorf("without %s: %v, sent %d times", m, err, w.posts())
		}
	}
}

// A service that keeps no currencies has nothing to filter by: it may find none
// in one, or not understand the question.
func TestASummaryInACurrencyThatIsNotKept(t *testing.T) {
	t.Parallel()
	leaves := faulty.LeavesOut("currency")
	for name, list := range map[string]faulty.Defect{
		"it ignores the filter": func(s *faulty.Server, out http.ResponseWriter, r *http.Request, n int) {
			q := r.URL.Query()
			q.Del("currency")
			r.URL.RawQuery = q.Encode()
			leaves(s, out, r, n)
		},
		"it finds none": func(s *faulty.Server, out http.ResponseWriter, r *http.Request, n int) {
			if r.URL.Query().Has("currency") {
				faulty.Answers(200, "application/json", `{"invoices":[]}`)(s, out, r, n)
				return
			}
			leaves(s, out, r, n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newThin(t, at("/v1/invoices", list, leaves), inUSD)
			all := w.call(false, "get_ledger_summary", ``)
			all.same(t, "matched", 4.0, "complete", true)
			if in := w.call(false, "get_ledger_summary", `"currency":"USD"`); !reflect.DeepEqual(in, all) {
				t.Errorf("in USD it is %v, and in all %v", in, all)
			}
			w.call(false, "get_ledger_summary", `"currency":"EUR"`).same(t, "matched", 0.0, "complete", true, "currencies", []any{})
		})
	}
}

// What is in a currency is told apart on this side then, page by page.
func TestAListInACurrencyThatIsNotKept(t *testing.T) {
	t.Parallel()
	store, eur := kept(t), must(money.ParseCurrency("EUR"))
	var list []payables.Invoice
	for n := range 300 { // each second one in euros, and those from 3300 on in nothing else
		i := invoice(t, store, clean)
		i.ID, i.Number, i.Order = must(payables.ParseInvoiceID(fmt.Sprintf("INV-%d", 3000+n))), must(payables.ParseNumber(fmt.Sprintf("B-%d", n))), payables.OrderID{}
		if n%2 == 1 {
			zero := money.FromMinor(0, eur)
			i.Currency, i.Tax, i.Freight, i.Total, i.Lines = eur, zero, zero, money.FromMinor(1, eur), nil
		}
		list = append(list, i)
	}
	if _, err := store.Do(t.Context(), asked("more"), payables.ImportInvoices{Invoices: list}); err != nil {
		t.Fatal(err)
	}
	client := newClient(t, serveQuietly(t, faulty.New(newServer(t, store), faulty.Changes(`"currency":"USD",`, ``))).URL, "acme", inUSD)
	for _, c := range []money.Currency{usd, eur} {
		f := ports.InvoiceFilter{Currency: c}
		want, err := store.ListInvoices(t.Context(), acme, f, "", 1000)
		if err != nil || len(want) < 150 {
			t.Fatal(len(want), err)
		}
		for _, limit := range []int{1, 7, 120, 1000} {
			var got []payables.Invoice
			for after := ""; ; after = got[len(got)-1].ID.String() {
				page, err := client.ListInvoices(t.Context(), acme, f, after, limit)
				if err != nil || len(page) > limit {
					t.Fatal(len(page), err)
				}
				got = append(got, page...)
				if len(page) < limit {
					break
				}
			}
			if !slices.EqualFunc(got, want, func(a, b payables.Invoice) bool { return a.ID == b.ID && a.Currency == b.Currency }) {
				t.Errorf("%d in %s by pages of %d, not %d", len(got), c, limit, len(want))
			}
		}
	}
	// Rows that are not kept have their order too: it does not go on for ever.
	same := faulty.New(newServer(t, store), func(s *faulty.Server, out http.ResponseWriter, r *http.Request, n int) {
		r.URL.RawQuery = "limit=100"
		faulty.Good(s, out, r, n)
	})
	client = newClient(t, serveQuietly(t, same).URL, "acme", inUSD)
	if _, err := client.ListInvoices(t.Context(), acme, ports.InvoiceFilter{Currency: eur}, "", 1000); said(ledger.Outcome{}, err) != unreliable || len(same.Requests(http.MethodGet)) > 2 {
		t.Errorf("%v after %d pages", err, len(same.Requests(http.MethodGet)))
	}
}

// Sums and balances may say their currency though the invoices do not: what is
// counted by the invoices says that theirs is filled in, and is not mixed with
// what is in another.
func TestInvoicesOfACurrencyThatOnlyTheirSumSays(t *testing.T) {
	t.Parallel()
	leaves := faulty.LeavesOut("currency")
	euros := faulty.Changes(`"currency":"USD"`, `"currency":"EUR"`)
	summary := func(sums faulty.Defect, currency string) words {
		return newThin(t, at("/v1/invoice-sums", sums, leaves), inUSD).call(false, "get_ledger_summary", currency)
	}
	line := summary(faulty.Good, ``)
	line.same(t, "matched", 4.0, "complete", true)
	line.list("currencies")[0].same(t, "currency", "USD", "synthesised", []any{"currency"})
	if len(line.list("currencies")[0].list("exceptions")) == 0 {
		t.Errorf("there are no exceptions: %v", line)
	}
	for _, currency := range []string{``, `"currency":"EUR"`} {
		line := summary(euros, currency)
		line.same(t, "matched", 0.0, "complete", false)
		line.list("currencies")[0].same(t, "currency", "EUR", "synthesised", nil, "exceptions", []any{})
	}

	for name, tt := range map[string]struct {
		vendor, rows faulty.Defect
		balance      any
	}{
		"both say it":                       {faulty.Good, faulty.Good, 11.5},
		"neither does":                      {leaves, leaves, 11.5},
		"only the balance":                  {faulty.Good, leaves, nil},
		"only the balance, and it is other": {euros, leaves, nil},
		"only the invoices":                 {leaves, faulty.Good, nil},
		"one of the invoices does not":      {faulty.Good, faulty.Changes(`"vendorId":"V-1","currency":"USD"`, `"vendorId":"V-1"`), nil},
	} {
		w := newThin(t, at("/v1/vendors/V-1", tt.vendor, at("/v1/vendors/V-1/invoices", tt.rows, faulty.Good)), inUSD)
		cmd := decide(clean, payables.Approve, payables.CleanMatch)
		cmd.Links = payables.LinksOf(invoice(t, w.store, clean), nil)
		if _, err := w.store.Do(t.Context(), asked("k"), cmd); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			s := w.call(false, "get_vendor_statement", `"vendor_id":"V-1"`)
			if len(s.list("rows")) != 4 || len(s.list("balances")) != 1 {
				t.Fatalf("%v", s)
			}
			for _, row := range s.list("rows") {
				row.same(t, "balance", tt.balance)
			}
		})
	}
}

// A service over a thin one sends nothing that was filled in, and takes no
// approval of it.
func TestAServiceOverAThinOne(t *testing.T) {
	t.Parallel()
	for _, out := range [][]string{{}, mayLack} {
		w := newThin(t, faulty.LeavesOut(out...), inUSD)
		cmd := decide(clean, payables.Approve, payables.CleanMatch)
		cmd.Links = payables.LinksOf(invoice(t, w.store, clean), nil)
		if _, err := w.store.Do(t.Context(), asked("k"), cmd); err != nil {
			t.Fatal(err)
		}
		second := newClient(t, serveQuietly(t, newServer(t, w.client)).URL, "acme")
		vendor := must(payables.ParseVendorID("V-1"))
		load := func(ref ledger.Ref) func() error {
			return func() error { _, err := second.Load(t.Context(), acme, ref); return err }
		}
		for name, read := range map[string]func() error{
			"an invoice": load(clean.Ref()), "a vendor": load(vendor.Ref()), "the sums": func() error { _, err := second.SumInvoices(t.Context(), acme); return err },
			"the invoices": func() error {
				_, err := second.ListInvoices(t.Context(), acme, ports.InvoiceFilter{}, "", 9)
				return err
			},
			"the latest":    func() error { _, err := second.LatestInvoices(t.Context(), acme, vendor, 0, 9); return err },
			"the vendors":   func() error { _, err := second.ListVendors(t.Context(), acme, "", 9); return err },
			"what is whole": load(must(payables.ParseOrderID("PO-1")).Ref()),
		} {
			want := unreachable
			if len(out) == 0 || name == "what is whole" {
				want = "done"
			}
			if got := said(ledger.Outcome{}, read()); got != want {
				t.Errorf("%s without %s: %s, want %s", name, out, got, want)
			}
		}
		if dear := must(payables.ParseInvoiceID("INV-1002")); len(out) > 0 {
			if got := said(second.Do(t.Context(), asked("x"), decide(dear, payables.Approve, payables.CleanMatch))); got == "done" || w.posts() > 0 {
				t.Errorf("%s, sent %d times", got, w.posts())
			}
		}
	}
}
