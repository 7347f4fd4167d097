package restclient_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/restserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
)

// oneToken knows the token of one principal.
type oneToken struct{ access.Principal }

func (o oneToken) Verify(_ context.Context, token string) (access.Principal, error) {
	if token != "good"+tokenWord {
		return access.Principal{}, errors.New("no such token")
	}
	return o.Principal, nil
}

func TestAdmission(t *testing.T) {
	admit := func(token, tenant, principal string, scopes ...access.Scope) error {
		who := must(access.NewPrincipal(acme, "gateway", access.Service, access.ScopesOf(scopes...), access.Free, ""))
		server := httptest.NewServer(must(restserver.New(memory.New(), restserver.Options{Tokens: oneToken{who}, Clock: system.Clock{}, IDs: system.IDs{}, Log: quiet})))
		defer server.Close()
		client := newClient(t, server.URL, token)
		defer client.Close()
		return client.Admit(t.Context(), must(access.ParseTenant(tenant)), principal)
	}
	for name, tt := range map[string]struct{ got, want error }{
		"good":           {admit("good", "acme", "bot", access.PrincipalDelegate), nil},
		"another token":  {admit("bad", "acme", "bot", access.PrincipalDelegate), restclient.ErrToken},
		"another tenant": {admit("good", "globex", "bot", access.PrincipalDelegate), restclient.ErrTenant},
		"no delegation":  {admit("good", "acme", "bot", access.RefundWrite), restclient.ErrDelegation},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	err := newClient(t, gone.URL, "good").Admit(t.Context(), acme, "bot")
	if err == nil || errors.Is(err, restclient.ErrToken) || strings.Contains(err.Error(), tokenWord) {
		t.Errorf("a service that is gone: %v", err)
	}
}

// A service that lets the server in no more is the operator's to set right: the
// log says why, and nobody is asked to try again.
func TestWhoIsShutOutLater(t *testing.T) {
	who := must(access.NewPrincipal(acme, "gateway", access.Service, access.ScopesOf(access.PrincipalDelegate), access.Free, ""))
	server := httptest.NewServer(must(restserver.New(memory.New(), restserver.Options{Tokens: oneToken{who}, Clock: system.Clock{}, IDs: system.IDs{}, Log: quiet})))
	defer server.Close()
	for token, logs := range map[string]string{
		"bad":  `"resource":"customers.get","status":401,"reason":"token"`,
		"good": `"resource":"customers.get","status":403,"reason":"scope","scope":"customer:read"`,
	} {
		var lines logged
		client := newClient(t, server.URL, token, func(o *restclient.Options) { o.Log = slog.New(slog.NewJSONHandler(&lines, nil)) })
		_, err := client.Load(t.Context(), acme, customer.Ref())
		if f := fault.Of(err); f == nil || said(ledger.Outcome{}, err) != shutOut || f.Retryable {
			t.Errorf("%s: %v", token, err)
		}
		if !strings.Contains(lines.String(), logs) {
			t.Errorf("%s: the log says %s", token, &lines)
		}
	}
}
