package auth

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/mcpserver"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
)

// serve puts a verifier in front of a server over a fresh ledger of a tenant.
func serve(t *testing.T, v mcpserver.Verifier, tenant string, log *slog.Logger) http.Handler {
	t.Helper()
	store := memory.New()
	of, err := access.ParseTenant(tenant)
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Seed(t.Context(), store, of, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	a := &app.App{Ledger: store, Refunds: store, Journal: store, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: 10 * time.Second}
	s, err := mcpserver.New(a, mcpserver.Options{Version: "test", Toolsets: mcpserver.Toolsets(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.HTTP(mcpserver.HTTPOptions{
		Hosts: []string{"refunds.example.com"}, PublicURL: audience, Verifier: v, MaxInFlight: 1, Ready: func(context.Context) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func post(h http.Handler, token, tool, arguments string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, audience, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const refund = `{"customer_id":"CUST-00001","amount":10,"reason":"Item arrived damaged"}`

// Whatever is wrong with a token, the world learns that it is not valid and
// where to get one, and the log does not learn the token.
func TestOIDCZooOverHTTP(t *testing.T) {
	key := rsaKey(t)
	s := newIssuer(t, public("k1", key))
	good, bad := zoo(t, s, key)
	var log bytes.Buffer
	h := serve(t, discover(t, s, nil), "acme", slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if w := post(h, good, "trigger_refund", refund); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"status":"processed"`) {
		t.Fatalf("the good one: %d %s", w.Code, w.Body)
	}
	const invalid = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: the bearer token is not valid"}}`
	for name, token := range bad {
		if token == "" {
			continue // no token at all is another story
		}
		w := post(h, token, "trigger_refund", refund)
		challenge := w.Header().Get("WWW-Authenticate")
		if w.Code != http.StatusUnauthorized || challenge != `Bearer resource_metadata="https://refunds.example.com/.well-known/oauth-protected-resource", error="invalid_token"` || w.Body.String() != invalid {
			t.Errorf("%s: %d %q %s", name, w.Code, challenge, w.Body)
		}
	}
	for _, token := range slices.AppendSeq([]string{good}, maps.Values(bad)) {
		for part := range strings.SplitSeq(token, ".") {
			if len(part) > 20 && strings.Contains(log.String(), part) {
				t.Fatalf("the log holds %s of a token:\n%s", part, &log)
			}
		}
	}
	if w := post(h, good, "get_customer_record", `{"customer_id":"CUST-00001"}`); !strings.Contains(w.Body.String(), `"refundableBalance":490`) {
		t.Errorf("the balance: %s", w.Body)
	}
	if w := post(h, good, "verify_ledger", `{}`); w.Code != http.StatusForbidden || !strings.HasSuffix(w.Header().Get("WWW-Authenticate"), `error="insufficient_scope", scope="refund:read"`) {
		t.Errorf("a scope that is missing: %d %q %s", w.Code, w.Header().Get("WWW-Authenticate"), w.Body)
	}
}
