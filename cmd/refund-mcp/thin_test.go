package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/restserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/payables"
)

// gateway is who the server is to its service, whatever the token.
type gateway struct{ access.Principal }

func (g gateway) Verify(context.Context, string) (access.Principal, error) { return g.Principal, nil }

var leftOut = regexp.MustCompile(`"currency":"USD",|"invoiceDate":"[0-9-]+",|,"lines":\[[^\]]*\]`)

// Over a service that keeps headers alone the setting says the currency, the
// start the date, and the rule is kept.
func TestAServiceThatKeepsHeadersAlone(t *testing.T) {
	tenant, err := access.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	scopes := access.ScopesOf(access.InvoiceRead, access.InvoiceRoute, access.InvoiceOverride, access.PrincipalDelegate)
	who, err := access.NewPrincipal(tenant, "gateway", access.Service, scopes, access.Free, "")
	if err != nil {
		t.Fatal(err)
	}
	ledger := memory.New()
	if err := demo.Seed(t.Context(), ledger, tenant, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	full, err := restserver.New(ledger, restserver.Options{
		Tokens: gateway{who}, Clock: system.Clock{}, IDs: system.IDs{}, Log: slog.New(slog.DiscardHandler), Tolerance: payables.DefaultTolerance(),
	})
	if err != nil {
		t.Fatal(err)
	}
	var posts atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
		}
		if !strings.HasPrefix(r.URL.Path, "/v1/invoices") || r.Method != http.MethodGet {
			full.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		full.ServeHTTP(rec, r)
		for _, name := range []string{"Content-Type", "ETag"} {
			w.Header().Set(name, rec.Header().Get(name))
		}
		w.WriteHeader(rec.Code)
		_, _ = io.WriteString(w, leftOut.ReplaceAllString(rec.Body.String(), ""))
	}))
	t.Cleanup(service.Close)

	run := func(wants map[string]string, environ ...string) {
		t.Helper()
		s := start(t, append(environ, "TOOLSETS=payables", "LEDGER_BACKEND=rest", "LEDGER_REST_URL="+service.URL, "LEDGER_REST_TOKEN=canary-91c4")...)
		for call, want := range wants {
			tool, arguments, _ := strings.Cut(call, " ")
			s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, call, tool, arguments))
			got := strings.ReplaceAll(string(s.answer(call).Result), `\"`, `"`) // an error is JSON in a text
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s\n%s", call, got, want, s.logged)
			}
		}
	}
	const approve = `"invoice_id":"INV-1001","action":"approve"`
	run(map[string]string{
		`get_invoice {"invoice_id":"INV-1001"}`:                            `"synthesised":["lines","currency","invoiceDate"]`,
		`match_invoice_to_po {"invoice_id":"INV-1001"}`:                    `"recommendation":"hold"`,
		`route_exception {` + approve + `,"reason_code":"CLEAN_MATCH"}`:    `"reason":"synthesised_invoice"`,
		`list_invoices {"limit":1}`:                                        `"synthesised":["currency","invoiceDate"]`,
		`route_exception {` + approve + `,"reason_code":"PRICE_VARIANCE"}`: `"details":{"synthesised":["lines","currency","invoiceDate"]}`,
	}, "LEDGER_DEFAULT_CURRENCY=USD")
	if n := posts.Load(); n > 0 {
		t.Errorf("it was sent %d times", n)
	}
	run(map[string]string{`get_invoice {"invoice_id":"INV-1001"}`: `LEDGER_DEFAULT_CURRENCY`})
	override := `route_exception {` + approve + `,"reason_code":"MANUAL_OVERRIDE","override":true,"note":"The buyer agreed by mail."}`
	run(map[string]string{override: `"status":"approved"`}, "LEDGER_DEFAULT_CURRENCY=USD", "PRINCIPAL_KIND=human", "PRINCIPAL_SCOPES=invoice:read,invoice:route,invoice:override")
}
