package contract_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/restclient/contract"
	"github.com/refundledger/refundledger/adapters/restclient/internal/faulty"
	"github.com/refundledger/refundledger/adapters/restserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var (
	acme    = must(access.ParseTenant("acme"))
	globex  = must(access.ParseTenant("globex"))
	id      = must(customers.ParseID("CUST-00001"))
	vendor  = must(payables.ParseVendorID("V-1"))
	caller  = access.ScopesOf(access.CustomerRead, access.RefundRead, access.RefundWrite, access.InvoiceRead, access.InvoiceRoute)
	gateway = access.ScopesOf(access.CustomerRead, access.RefundRead, access.RefundWrite, access.InvoiceRead, access.InvoiceRoute, access.InvoiceOverride, access.PrincipalDelegate)
)

// tokens are known by heart.
type tokens map[string]access.Principal

func (t tokens) Verify(_ context.Context, token string) (access.Principal, error) {
	if p, ok := t[token]; ok {
		return p, nil
	}
	return access.Principal{}, errors.New("no such token")
}

var known = tokens{
	"plain":   must(access.NewPrincipal(acme, "caller", access.Service, caller, access.Free, "")),
	"gateway": must(access.NewPrincipal(acme, "gateway", access.Service, gateway, access.Free, "")),
	"globex":  must(access.NewPrincipal(globex, "caller", access.Service, caller, access.Free, "")),
}

func bill(id, number string, c money.Currency) payables.Invoice {
	return payables.Invoice{
		ID: must(payables.ParseInvoiceID(id)), Number: must(payables.ParseNumber(number)), Document: payables.Bill, Vendor: vendor, Currency: c,
		Tax: money.FromMinor(0, c), Freight: money.FromMinor(0, c), Total: money.FromMinor(1, c), Date: must(payables.ParseDate("2026-03-01")),
	}
}

// check checks a good service behind a defect, and returns what is broken and
// what invoices leave out.
func check(t *testing.T, defect faulty.Defect, token, other string) (broken, left []string) {
	t.Helper()
	store := memory.New()
	usd := must(money.ParseCurrency("USD"))
	op := operation.Operation{ID: system.IDs{}.NewID(), Tenant: acme, Principal: "operator", Tool: "test", Key: must(operation.ParseKey("open")), At: time.Now().UTC().Truncate(time.Millisecond)}
	if _, err := store.Do(t.Context(), op, customers.Open{
		ID: id, Profile: customers.Profile{Name: "Test", Email: "test@example.com"}, Status: customers.Active,
		Opening: money.FromMinor(500, usd), CreatedAt: time.Date(2024, 1, 15, 0, 0, 0, 0, time.UTC),
	}); err != nil {
		t.Fatal(err)
	}
	for n, cmd := range []ledger.Command{
		payables.ImportVendors{Vendors: []payables.Vendor{{ID: vendor, Name: "Test"}}},
		payables.ImportInvoices{Invoices: []payables.Invoice{bill("INV-1001", "N-1", usd), bill("INV-1002", "N-2", usd)}},
	} {
		op.ID, op.Key = system.IDs{}.NewID(), must(operation.ParseKey(fmt.Sprintf("bring-%d", n)))
		if _, err := store.Do(t.Context(), op, cmd); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	good, err := restserver.New(store, restserver.Options{Tokens: known, Clock: system.Clock{}, IDs: system.IDs{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(faulty.New(good, defect))
	server.Config.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	server.Start()
	defer server.Close()
	n, err := contract.Check(t.Context(), contract.Options{URL: server.URL, Token: token, Other: other, Customer: id.String(), Invoice: "INV-1001"}, func(f contract.Finding) {
		if f.Broken != nil {
			broken = append(broken, f.Promise+" "+f.Broken.Error())
		}
		for _, field := range f.LeftOut {
			left = append(left, field.String())
		}
	})
	if err != nil {
		return []string{err.Error()}, left
	}
	if n != len(broken) {
		t.Errorf("%d are counted, %d reported", n, len(broken))
	}
	return broken, left
}

func TestOurServiceKeepsTheContract(t *testing.T) {
	for _, token := range []string{"plain", "gateway"} {
		if broken, left := check(t, faulty.Good, token, "globex"); len(broken)+len(left) > 0 {
			t.Errorf("with the token %s: %s, left out %s", token, strings.Join(broken, "\n"), left)
		}
	}
}

// What a thin backend leaves out is said, and breaks nothing.
func TestAThinServiceKeepsTheContract(t *testing.T) {
	for _, tt := range []struct {
		out, want string
	}{
		{"lines", "lines"}, {"currency", "currency"}, {"invoiceDate", "invoiceDate"}, {"taxMinor", "tax"}, {"freightMinor", "freight"},
		{"lines currency invoiceDate taxMinor freightMinor", "lines currency invoiceDate tax freight"},
	} {
		broken, left := check(t, faulty.LeavesOut(strings.Fields(tt.out)...), "plain", "globex")
		if len(broken) > 0 || strings.Join(left, " ") != tt.want {
			t.Errorf("without %s: left out %s, broken %s", tt.out, left, strings.Join(broken, "\n"))
		}
	}
	if broken, left := check(t, faulty.LeavesOut("totalMinor"), "plain", "globex"); len(broken) == 0 || len(left) > 0 {
		t.Errorf("without a total: left out %s, broken %s", left, broken)
	}
}

func TestAFaultyServiceIsFoundOut(t *testing.T) {
	var posts atomic.Int64
	for name, tt := range map[string]struct {
		defect faulty.Defect
		want   string // part of what is reported
	}{
		"it applies twice":  {faulty.Writes(faulty.AppliesTwice), "takes its amount from the balance. it took 2"},
		"it ignores keys":   {faulty.Writes(faulty.IgnoresKeys), "does nothing. the repeat is answered 201"},
		"it repeats itself": {faulty.Writes(faulty.RepeatsItself), "want"},
		"a stale ETag":      {faulty.Reads(faulty.Sets("ETag", `"1"`)), "the ETag is"},
		"replays unmarked":  {faulty.Sets(http.CanonicalHeaderKey("Idempotent-Replayed"), ""), "does nothing. the repeat"},
		"errors are pages":  {faulty.Changes(`"reason":"balance_exceeded"`, `"x":"y"`), "leaves nothing, and the key free."},
		"it takes any token": {func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			r.Header.Set("Authorization", "Bearer plain")
			faulty.Good(s, w, r, n)
		}, "Without a good token"},
		"every tenant is one": {func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			if r.Header.Get("Authorization") == "Bearer globex" {
				r.Header.Set("Authorization", "Bearer plain")
			}
			faulty.Good(s, w, r, n)
		}, "Another tenant sees nothing of it."},
		"it makes up keys": {func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			if r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") == "" {
				r.Header.Set("Idempotency-Key", "made-up")
			}
			faulty.Good(s, w, r, n)
		}, "Without a key nothing is done."},
		"it ignores If-Match": {func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			r.Header.Del("If-Match")
			faulty.Good(s, w, r, n)
		}, "A stale If-Match is refused"},
		"it forgets what it did": {faulty.Reads(func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			if strings.HasPrefix(r.URL.Path, "/v1/operations/") {
				r.URL.Path += "x"
			}
			faulty.Good(s, w, r, n)
		}), "What a key led to can be looked up."},
		"it ignores the cursor": {faulty.Reads(func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			r.URL.RawQuery, _, _ = strings.Cut(r.URL.RawQuery, "&")
			faulty.Good(s, w, r, n)
		}), "Refunds are listed newest first"},
		"a reply is lost": {faulty.Writes(func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			if posts.Add(1)%20 == 0 {
				faulty.LosesReplies(s, w, r, n)
			}
			faulty.Good(s, w, r, n)
		}), "no answer"},
		"it believes the fields": {faulty.Writes(func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			if body, err := io.ReadAll(r.Body); err == nil {
				body = bytes.Replace(body, []byte(`"mayOverride":true,`), nil, 1)
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			faulty.Good(s, w, r, n)
		}), "is not taken from the fields. with"},
		"invoices of all": {faulty.Reads(func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			if r.URL.Path == "/v1/invoices" {
				r.URL.RawQuery = "status=rejected"
			}
			faulty.Good(s, w, r, n)
		}), "Invoices are listed in order"},
		"the latest are the newest": {faulty.Reads(func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			if strings.HasPrefix(r.URL.Path, "/v1/vendors/") {
				r.URL.RawQuery, _, _ = strings.Cut(r.URL.RawQuery, "&")
			}
			faulty.Good(s, w, r, n)
		}), "begin where the page before ended. a row is out of order"},
		"the latest are one": {faulty.Changes(`,"next":`, `,"more":`), "begin where the page before ended."},
		"it keeps its tolerance to itself": {faulty.Reads(func(s *faulty.Server, w http.ResponseWriter, r *http.Request, n int) {
			r.URL.Path = strings.Replace(r.URL.Path, "payables-policy", "policy", 1)
			faulty.Good(s, w, r, n)
		}), "is looked up. a look-up is answered 404"},
		"its tolerance is a word": {faulty.Changes(`"percent":"0"`, `"percent":"none"`), "is looked up. "},
		"it is not there":         {faulty.LosesRequests, "can not be looked up"},
	} {
		t.Run(name, func(t *testing.T) {
			broken, _ := check(t, tt.defect, "plain", "globex")
			if !strings.Contains(strings.Join(broken, "\n"), tt.want) {
				t.Errorf("it is not found out, but: %s", strings.Join(broken, "\n"))
			}
		})
	}
}
