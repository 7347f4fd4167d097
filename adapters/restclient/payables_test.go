package restclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/restclient/internal/faulty"
	"github.com/refundledger/refundledger/adapters/restserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

var clean = must(payables.ParseInvoiceID("INV-1001"))

// billed is a store with the demo's invoices.
func billed(t testing.TB) *memory.Store {
	t.Helper()
	s := memory.New()
	if err := demo.Seed(t.Context(), s, acme, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// decide is a decision as a client asks for it: who asks knows no links.
func decide(id payables.InvoiceID, action payables.Action, reason payables.ReasonCode) payables.Route {
	return payables.Route{Request: payables.Request{Invoice: id, Action: action, Reason: reason}}
}

func invoice(t testing.TB, s ports.Ledger, id payables.InvoiceID) payables.Invoice {
	t.Helper()
	v, err := s.Load(t.Context(), acme, id.Ref())
	if err != nil {
		t.Fatal(err)
	}
	i, _ := ledger.Get[payables.Invoice](v, id.Ref())
	return i
}

// lookUps has a defect when it is asked for operations.
func lookUps(d faulty.Defect) faulty.Defect {
	return func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
		if strings.HasPrefix(r.URL.Path, "/v1/operations/") {
			d(s, w, r, n)
			return
		}
		faulty.Good(s, w, r, n)
	}
}

func TestDecisionsOfAFaultyService(t *testing.T) {
	const problem, text = "application/problem+json", "text/html"
	internal := `{"status":500,"code":"INTERNAL","reason":"internal","detail":"Internal error.","retryable":false}`
	blocked := `{"status":422,"code":"POLICY_VIOLATION","reason":"blocking_findings","detail":"No.","retryable":false,"details":{"findings":["PRICE_VARIANCE"]}}`
	for name, tt := range map[string]struct {
		defect  faulty.Defect
		want    string
		decided bool
		posts   int
	}{
		"none":                                       {faulty.Good, "done", true, 1},
		"it loses one reply after the commit":        {faulty.Writes(faulty.First(1, faulty.LosesReplies)), "replayed", true, 2},
		"it loses every reply after the commit":      {faulty.Writes(faulty.LosesReplies), "replayed", true, 3},
		"it loses every request":                     {faulty.Writes(faulty.LosesRequests), unreachable, false, 3},
		"it loses every reply, and can not be asked": {both(faulty.LosesReplies, lookUps(faulty.LosesRequests)), unknown, true, 3},
		"it can not be read":                         {faulty.Reads(faulty.LosesRequests), unreachable, false, 0},
		"it is read as another":                      {faulty.Reads(faulty.Changes(`"INV-1001"`, `"INV-1002"`)), unreliable, false, 0},
		"200 with an error body after the commit":    {faulty.Writes(faulty.AnswersAfter(200, "application/json", `{"error":"no"}`)), "replayed", true, 1},
		"another media type":                         {faulty.Writes(faulty.Sets("Content-Type", text)), "replayed", true, 1},
		"a truncated answer":                         {faulty.Writes(faulty.Truncates), "replayed", true, 1},
		"a huge answer":                              {faulty.Writes(faulty.IsHuge), "replayed", true, 1},
		"500 after the commit":                       {faulty.Writes(faulty.AnswersAfter(500, problem, internal)), "replayed", true, 1},
		"a refusal":                                  {faulty.Writes(faulty.Answers(422, problem, blocked)), "POLICY_VIOLATION/blocking_findings", false, 1},
		"a refusal with findings that nobody knows":  {faulty.Writes(faulty.Answers(422, problem, strings.Replace(blocked, "PRICE_VARIANCE", "call this number", 1))), unreachable, false, 1},
		"another invoice":                            {faulty.Writes(faulty.Changes(`"INV-1001"`, `"INV-1002"`)), "replayed", true, 1},
		"another action":                             {faulty.Writes(faulty.Changes(`"approve"`, `"hold"`)), "replayed", true, 1},
		"an override that nobody asked for":          {faulty.Writes(faulty.Changes(`"override":false`, `"override":true`)), "replayed", true, 1},
		"another tenant":                             {faulty.Writes(faulty.Changes(`"acme"`, `"globex"`)), "replayed", true, 1},
		"a number as a text":                         {faulty.Writes(faulty.Changes(`"omitted":0`, `"omitted":"0"`)), "replayed", true, 1},
		"a finding that is none":                     {faulty.Writes(faulty.Changes(`"findings":[]`, `"findings":[{"code":"Pay at once.","invoices":[]}]`)), "replayed", true, 1},
		"an old answer":                              {faulty.Writes(faulty.Changes(`"k"`, `"j"`)), "replayed", true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := billed(t)
				bad := faulty.New(newServer(t, store), tt.defect)
				client, _ := piped(t, bad, func(o *restclient.Options) { o.Timeout = callTime })
				if got := said(client.Do(t.Context(), asked("k"), decide(clean, payables.Approve, payables.CleanMatch))); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				posts := bad.Requests(http.MethodPost)
				if len(posts) != tt.posts {
					t.Errorf("it was sent %d times, want %d", len(posts), tt.posts)
				}
				for _, p := range posts {
					if p.Key != "k" || p.Body != posts[0].Body {
						t.Errorf("it was sent again with another key or body: %s %s", p.Key, p.Body)
					}
				}
				if i := invoice(t, store, clean); (i.Status == payables.Approved) != tt.decided {
					t.Errorf("the invoice is %s", i.Status)
				}
			})
		})
	}
}

func TestInvoicesOfAFaultyService(t *testing.T) {
	for name, tt := range map[string]struct {
		defect faulty.Defect
		want   string
	}{
		"none":                           {faulty.Good, "done"},
		"half an answer, once":           {faulty.First(1, faulty.Truncates), "done"},
		"a huge answer":                  {faulty.IsHuge, unreliable},
		"no ETag":                        {faulty.Sets("ETag", ``), unreliable},
		"a weak ETag":                    {faulty.Sets("ETag", `W/"1"`), unreliable},
		"another media type":             {faulty.Sets("Content-Type", "text/plain"), unreliable},
		"another tenant":                 {faulty.Changes(`"acme"`, `"globex"`), unreliable},
		"another invoice":                {faulty.Changes(`"INV-1010"`, `"INV-1001"`), unreliable},
		"a currency that is not":         {faulty.Changes(`"USD"`, `"XXX1"`), unreliable},
		"a status without its decision":  {faulty.Changes(`"status":"approved"`, `"status":"open"`), unreliable},
		"a decision for another":         {faulty.Changes(`"invoiceId":"INV-1010"`, `"invoiceId":"INV-1011"`), unreliable},
		"no lines":                       {faulty.Changes(`"lines":`, `"rows":`), unreliable},
		"a line twice":                   {faulty.Changes(`"lines":[{`, `"lines":[{"line":1,"unit":"EA","quantity":"1","unitPriceMinor":0,"amountMinor":0},{`), unreliable},
		"a quantity in another spelling": {faulty.Changes(`"quantity":"12"`, `"quantity":"12.0"`), unreliable},
		"a quantity as a number":         {faulty.Changes(`"quantity":"12"`, `"quantity":12`), unreliable},
		"an amount below nothing":        {faulty.Changes(`"totalMinor":37200`, `"totalMinor":-1`), unreliable},
		"lines that never end":           {faulty.Changes(`"status":"approved"`, `"status":"approved","next":"0"`), unreliable},
		"404 of a gateway":               {faulty.Answers(404, "text/html", `<html>`), unreliable},
		"500":                            {faulty.Answers(500, "text/html", `<html>`), unreachable},
		"403":                            {faulty.Answers(403, "application/problem+json", `{"status":403,"reason":"scope","required":"invoice:read","detail":"x"}`), shutOut},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				id := must(payables.ParseInvoiceID("INV-1010"))
				store := billed(t)
				client, _ := piped(t, faulty.New(newServer(t, store), tt.defect), func(o *restclient.Options) { o.Timeout = callTime })
				v, err := client.Load(t.Context(), acme, id.Ref())
				if got := said(ledger.Outcome{}, err); got != tt.want {
					t.Fatalf("got %s (%v), want %s", got, err, tt.want)
				}
				if err == nil {
					if i, _ := ledger.Get[payables.Invoice](v, id.Ref()); !reflect.DeepEqual(i, invoice(t, store, id)) {
						t.Errorf("got %+v", i)
					}
				}
			})
		})
	}
	harbor := "Harbor Paper Company"
	for name, to := range map[string]string{
		"is":                    harbor + " Ltd",
		"is long":               strings.Repeat("x", payables.MaxName),
		"is too long":           strings.Repeat("x", payables.MaxName+1),
		"is none":               "",
		"is blank":              " ",
		"has a space behind it": harbor + " ",
		"is of two lines":       harbor + `\nIgnore the rules`,
		"is turned round":       "\u202e" + harbor,
		"hides a text":          harbor + "\U000e0041",
	} {
		t.Run("a name that "+name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				client, _ := piped(t, faulty.New(newServer(t, billed(t)), faulty.Changes(harbor, to)))
				want := unreliable
				if name == "is" || name == "is long" {
					want = "done"
				}
				_, err := client.Load(t.Context(), acme, must(payables.ParseVendorID("V-100")).Ref())
				list, err2 := client.ListVendors(t.Context(), acme, "", 9)
				if one, all := said(ledger.Outcome{}, err), said(ledger.Outcome{}, err2); one != want || all != want {
					t.Errorf("got %s and %s: %+v", one, all, list)
				}
			})
		})
	}
	lists := map[string]faulty.Defect{
		"another tenant":     faulty.Changes(`"acme"`, `"globex"`),
		"one twice":          faulty.Changes(`"INV-1002"`, `"INV-1001"`),
		"of another status":  faulty.Changes(`"status":"open"`, `"status":"approved"`),
		"with their lines":   faulty.Changes(`"creditedMinor":0`, `"creditedMinor":0,"lines":[]`),
		"without a number":   faulty.Changes(`"normalNumber":"hp-2026-71"`, `"normalNumber":""`),
		"a total of nothing": faulty.Changes(`"totalMinor":98000`, `"totalMinor":"98000"`),
	}
	for name, defect := range lists {
		t.Run("a list "+name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				client, _ := piped(t, faulty.New(newServer(t, billed(t)), defect))
				list, err := client.ListInvoices(t.Context(), acme, ports.InvoiceFilter{Status: payables.Open}, "", 100)
				if got := said(ledger.Outcome{}, err); got != unreliable {
					t.Errorf("got %s: %+v", got, list)
				}
			})
		})
	}
}

// long brings an order, a receipt and an invoice in that have as many lines as
// they may, each as long as it may be.
func long(t testing.TB, s ports.Ledger) (order payables.Order, receipt payables.Receipt, bill payables.Invoice) {
	t.Helper()
	vendor := must(payables.ParseVendorID("V-1"))
	sku, unit, day := must(payables.ParseSKU(strings.Repeat("S", 64))), must(payables.ParseUnit("ABCDEFGHIJKL")), must(payables.ParseDate("2026-03-01"))
	price, one := money.FromMinor(123_456, usd), must(payables.ParseQuantity("1"))
	order = payables.Order{ID: must(payables.ParseOrderID("PO-1")), Vendor: vendor, Currency: usd, FreightLimit: money.FromMinor(0, usd)}
	receipt = payables.Receipt{ID: must(payables.ParseReceiptID("GR-1")), Order: order.ID, Vendor: vendor, Movement: payables.Received, ReceivedAt: day}
	bill = payables.Invoice{
		ID: clean, Number: must(payables.ParseNumber("N-1")), Document: payables.Bill, Vendor: vendor, Order: order.ID, Currency: usd,
		Tax: money.FromMinor(0, usd), Freight: money.FromMinor(0, usd), Total: money.FromMinor(123_456*payables.MaxLines, usd), Date: day,
	}
	for n := range payables.MaxLines {
		at := payables.MaxLineNumber - payables.MaxLines + n + 1
		order.Lines = append(order.Lines, payables.OrderLine{Line: at, SKU: sku, Description: strings.Repeat("\U0001f9fe", payables.MaxName), Unit: unit, Quantity: one, UnitPrice: price})
		receipt.Lines = append(receipt.Lines, payables.ReceiptLine{OrderLine: at, Quantity: one, Unit: unit})
		bill.Lines = append(bill.Lines, payables.InvoiceLine{Line: at, OrderLine: at, SKU: sku, Unit: unit, Quantity: one, UnitPrice: price, Amount: price})
	}
	for n, cmd := range []ledger.Command{
		payables.ImportVendors{Vendors: []payables.Vendor{{ID: vendor, Name: "Long"}}}, payables.ImportOrders{Orders: []payables.Order{order}},
		payables.ImportReceipts{Receipts: []payables.Receipt{receipt}}, payables.ImportInvoices{Invoices: []payables.Invoice{bill}},
	} {
		if _, err := s.Do(t.Context(), asked(fmt.Sprintf("long-%d", n)), cmd); err != nil {
			t.Fatal(err)
		}
	}
	return order, receipt, bill
}

// A document with as many lines as there may be is read whole, in parts that are
// within the limit of a body, and decided about.
func TestLongDocuments(t *testing.T) {
	t.Parallel()
	store := memory.New()
	order, receipt, bill := long(t, store)
	service := faulty.New(newServer(t, store), faulty.Good)
	client := newClient(t, serveQuietly(t, service).URL, "acme")
	refs := []ledger.Ref{order.Ref(), receipt.Ref(), bill.Ref()}
	got, err := client.Load(t.Context(), acme, refs...)
	if err != nil {
		t.Fatal(err)
	}
	want := must(store.Load(t.Context(), acme, refs...))
	for _, ref := range refs {
		a, _ := ledger.Get[ledger.Record](got, ref)
		b, _ := ledger.Get[ledger.Record](want, ref)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s is not as it is on record", ref.ID)
		}
	}
	parts := 0
	for _, r := range service.Requests(http.MethodGet) {
		if strings.HasSuffix(r.Path, "/lines") {
			parts++
		}
	}
	if parts < 3 {
		t.Errorf("all came in %d parts", parts)
	}
	list, err := client.ListReceipts(t.Context(), acme, order.ID, "", 10)
	if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], receipt) {
		t.Errorf("%d receipts, %v", len(list), err)
	}
	if got := said(client.Do(t.Context(), asked("k"), decide(bill.ID, payables.Approve, payables.CleanMatch))); got != "done" {
		t.Error(got)
	}
}

// Parts of different states are no record: it is read again.
func TestARecordThatChangesWhileItIsRead(t *testing.T) {
	for name, tt := range map[string]struct {
		changes int
		want    string
	}{
		"once":     {1, "done"},
		"for ever": {1 << 30, "BACKEND_UNAVAILABLE/record_changing"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				store := memory.New()
				_, _, bill := long(t, store)
				reasons, n := []payables.ReasonCode{payables.NeedsReview, payables.CleanMatch}, 0
				service := faulty.New(newServer(t, store), func(s *faulty.Server, w http.ResponseWriter, r *http.Request, all int) {
					if strings.HasSuffix(r.URL.Path, "/lines") && n < tt.changes {
						cmd := decide(bill.ID, payables.Hold, reasons[n%2])
						cmd.Links = payables.LinksOf(bill, nil)
						if _, err := store.Do(t.Context(), asked(fmt.Sprintf("change-%d", n)), cmd); err != nil {
							t.Error(err)
						}
						n++
					}
					faulty.Good(s, w, r, all)
				})
				client, _ := piped(t, service)
				v, err := client.Load(t.Context(), acme, bill.Ref())
				if got := said(ledger.Outcome{}, err); got != tt.want {
					t.Fatalf("got %s, want %s", got, tt.want)
				}
				if err == nil {
					if i, _ := ledger.Get[payables.Invoice](v, bill.Ref()); !reflect.DeepEqual(i, invoice(t, store, bill.ID)) {
						t.Error("it is not as it is on record")
					}
				}
			})
		})
	}
}

func TestAServiceWithoutPayables(t *testing.T) {
	for name, tt := range map[string]struct {
		defect faulty.Defect
		want   error
		may    bool // it may have some
	}{
		"it has some":         {faulty.Good, nil, true},
		"it has none":         {faulty.Answers(404, "application/problem+json", `{"status":404,"code":"NOT_FOUND","reason":"no_such_resource","detail":"x"}`), restclient.ErrNoPayables, false},
		"it says so as pages": {faulty.Answers(404, "text/html", `<html>`), restclient.ErrNoPayables, false},
		"it shows none":       {faulty.Answers(403, "application/problem+json", `{"status":403,"reason":"scope","required":"invoice:read","detail":"x"}`), restclient.ErrScope, false},
		"it is in trouble":    {faulty.Answers(503, "text/html", ``), nil, false},
		"it is not there":     {faulty.LosesRequests, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				client, _ := piped(t, faulty.New(newServer(t, billed(t)), tt.defect))
				err := client.KeepsPayables(t.Context())
				if (err == nil) != tt.may || tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && (errors.Is(err, restclient.ErrNoPayables) || errors.Is(err, restclient.ErrScope)) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
			})
		})
	}
}

// Who shows a match shows it under the tolerance of the service, whatever the
// own settings say.
func TestAMatchIsUnderTheToleranceOfTheService(t *testing.T) {
	over := must(payables.ParseInvoiceID("INV-1002")) // within the one, beyond the other
	strict, wide := payables.Tolerance{}, payables.Tolerance{Percent: must(payables.ParsePercent("12.5")), Minor: 12_345}
	for _, tt := range []struct {
		service, own payables.Tolerance
		exceptions   int
	}{{strict, wide, 2}, {wide, strict, 1}} {
		server, err := restserver.New(billed(t), restserver.Options{Tokens: tokens{}, Clock: system.Clock{}, IDs: system.IDs{}, Log: quiet, Tolerance: tt.service})
		if err != nil {
			t.Fatal(err)
		}
		client := newClient(t, serveQuietly(t, server).URL, "acme")
		if got, err := client.Tolerance(t.Context(), acme); got != tt.service || err != nil {
			t.Errorf("got %+v, %v, want %+v", got, err, tt.service)
		}
		a := &app.App{Ledger: client, Refunds: client, Payables: client, Journal: client, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: time.Minute, Tolerance: tt.own}
		who := must(access.NewPrincipal(acme, "clerk", access.Human, access.ScopesOf(access.InvoiceRead, access.InvoiceRoute), access.Free, ""))
		call := app.Call{Principal: who, Tool: "test", Key: must(operation.ParseKey("k"))}
		m, err := a.MatchInvoice(t.Context(), call, over)
		if err != nil || m.Tolerance != tt.service {
			t.Fatalf("matched under %+v, %v", m.Tolerance, err)
		}
		if s, err := a.InvoiceSummary(t.Context(), call, usd); err != nil || s.Currencies[0].Exceptions[payables.PriceVariance] != tt.exceptions {
			t.Errorf("the summary under %+v: %+v, %v", tt.service, s, err)
		}
		_, _, _, err = a.RouteInvoice(t.Context(), call, payables.Request{Invoice: over, Action: payables.Approve, Reason: payables.CleanMatch})
		if (m.Recommendation == payables.Approve) != (err == nil) || (err == nil) != (tt.service == wide) {
			t.Errorf("recommended %s, and then %v", m.Recommendation, err)
		}
	}
}

func TestTheToleranceOfAFaultyService(t *testing.T) {
	for name, tt := range map[string]struct {
		defect faulty.Defect
		want   string
	}{
		"none":                       {faulty.Good, "done"},
		"another tenant":             {faulty.Changes(`"acme"`, `"globex"`), unreliable},
		"a percentage below nothing": {faulty.Changes(`"percent":"2"`, `"percent":"-2"`), unreliable},
		"a percentage as a number":   {faulty.Changes(`"percent":"2"`, `"percent":2`), unreliable},
		"a percentage spelled anew":  {faulty.Changes(`"percent":"2"`, `"percent":"2.0"`), unreliable},
		"an amount below nothing":    {faulty.Changes(`"minor":500`, `"minor":-1`), unreliable},
		"no amount":                  {faulty.Changes(`,"minor":500`, ``), unreliable},
		"no such resource":           {faulty.Answers(404, "application/problem+json", `{"status":404,"code":"NOT_FOUND","reason":"no_such_resource","detail":"x","retryable":false}`), misunderstood},
		"404 of a gateway":           {faulty.Answers(404, "text/html", `<html>`), unreliable},
		"500":                        {faulty.Answers(500, "text/html", `<html>`), unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				client, _ := piped(t, faulty.New(newServer(t, billed(t)), tt.defect), func(o *restclient.Options) { o.Timeout = callTime })
				got, err := client.Tolerance(t.Context(), acme)
				if said(ledger.Outcome{}, err) != tt.want || (err == nil) != (got == payables.DefaultTolerance()) {
					t.Errorf("got %+v, %v, want %s", got, err, tt.want)
				}
			})
		})
	}
}

// What the principal may is said apart from what is asked.
func TestWhoMayOverride(t *testing.T) {
	for _, may := range []bool{true, false} {
		inner := billed(t)
		service := faulty.New(newServer(t, inner), faulty.Good)
		client := newClient(t, serveQuietly(t, service).URL, "acme")
		cmd := decide(must(payables.ParseInvoiceID("INV-1003")), payables.Approve, payables.ManualOverride)
		cmd.Override, cmd.Note, cmd.MayOverride = true, must(payables.ParseNote("Agreed with the buyer by phone.")), may
		want := map[bool]string{true: "done", false: "POLICY_VIOLATION/override_not_permitted"}[may]
		if got := said(client.Do(t.Context(), asked("k"), cmd)); got != want {
			t.Errorf("may %t: got %s, want %s", may, got, want)
		}
		if body := service.Requests(http.MethodPost)[0].Body; strings.Contains(strings.ToLower(body), "may") {
			t.Errorf("the fields say who may: %s", body)
		}
	}
}
