package restserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/restserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite openapi.json")

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var (
	acme = must(access.ParseTenant("acme"))
	usd  = must(money.ParseCurrency("USD"))
)

type tokens map[string]access.Principal

func (t tokens) Verify(_ context.Context, token string) (access.Principal, error) {
	if p, ok := t[token]; ok {
		return p, nil
	}
	return access.Principal{}, errors.New("no such token")
}

func principal(id string, kind access.Kind, scopes ...access.Scope) access.Principal {
	return must(access.NewPrincipal(acme, id, kind, access.ScopesOf(scopes...), access.Free, ""))
}

var known = tokens{
	"caller":   principal("caller", access.Service, access.CustomerRead, access.RefundRead, access.RefundWrite),
	"gateway":  principal("gateway", access.Service, access.CustomerRead, access.RefundRead, access.RefundWrite, access.PrincipalDelegate),
	"person":   principal("person", access.Human, access.RefundWrite, access.PrincipalDelegate),
	"operator": principal("operator", access.Human, access.ControlRules, access.RefundRead, access.CustomerRead),
	"nobody":   principal("nobody", access.Agent),
}

// world is a server over a ledger with one customer who has 100.00 USD.
type world struct {
	t     testing.TB
	store restserver.Store
	url   string
	log   *logged
	wire  *http.Transport
}

func newWorld(t testing.TB, change ...func(restserver.Store) restserver.Store) *world {
	t.Helper()
	var s restserver.Store = memory.New()
	op := operation.Operation{ID: system.IDs{}.NewID(), Tenant: acme, Principal: "operator", Tool: "test", Key: must(operation.ParseKey("open")), At: time.Now().UTC().Truncate(time.Millisecond)}
	if _, err := s.Do(t.Context(), op, customers.Open{
		ID: must(customers.ParseID("CUST-00001")), Profile: customers.Profile{Name: "Canary Name", Email: "canary@example.com"}, Status: customers.Active,
		Opening: money.FromMinor(100_00, usd), CreatedAt: time.Date(2024, 1, 15, 0, 0, 0, 0, time.UTC),
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		s = c(s)
	}
	w := &world{t: t, store: s, log: &logged{}, wire: &http.Transport{}}
	server := httptest.NewServer(w.server())
	t.Cleanup(server.Close)
	t.Cleanup(w.wire.CloseIdleConnections)
	w.url = server.URL
	return w
}

// inFlight is how many requests the servers of the tests take at once.
const inFlight = 4

func (w *world) server() *restserver.Server {
	log := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "calls 1") })
	return must(restserver.New(w.store, restserver.Options{Tokens: known, Clock: system.Clock{}, IDs: system.IDs{}, Log: log, Metrics: metrics, MaxInFlight: inFlight}))
}

// reply is an answer, its body read as JSON too.
type reply struct {
	status int
	header http.Header
	body   string
	json   map[string]any
}

// ask sends "METHOD /path" as a token, with the headers given, name and value
// in turn.
func (w *world) ask(request, token, body string, headers ...string) reply {
	w.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r := must(http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body)))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := w.wire.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	text := string(must(io.ReadAll(response.Body)))
	out := reply{status: response.StatusCode, header: response.Header, body: text}
	_ = json.Unmarshal([]byte(text), &out.json)
	return out
}

// is checks the status and, of a problem, the reason.
func (w *world) is(got reply, status int, reason string) {
	w.t.Helper()
	if said, _ := got.json["reason"].(string); got.status != status || reason != "" && said != reason {
		w.t.Errorf("got %d %s, want %d %s: %s", got.status, said, status, reason, got.body)
	}
	if got.status >= 400 && got.header.Get("Content-Type") != "application/problem+json" {
		w.t.Errorf("the problem is %s", got.header.Get("Content-Type"))
	}
}

func (w *world) balance() int64 {
	w.t.Helper()
	got := w.ask("GET /v1/customers/CUST-00001", "caller", "")
	n, ok := got.json["balanceMinor"].(float64)
	if !ok {
		w.t.Fatalf("no balance: %d %s", got.status, got.body)
	}
	return int64(n)
}

const (
	refunds = "POST /v1/customers/CUST-00001/refunds"
	ten     = `{"amountMinor":1000,"currency":"USD","reason":"Canary: arrived broken."}`
)

type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// openapi.json is what the server publishes: others build on it.
func TestOpenAPI(t *testing.T) {
	w := newWorld(t)
	got := w.ask("GET /openapi.json", "", "")
	if *update {
		if err := os.WriteFile("openapi.json", []byte(got.body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if got.body != string(want) {
		t.Error("openapi.json is not what the server publishes; after a change on purpose run this test with -update")
	}
	if !strings.HasPrefix(got.json["openapi"].(string), "3.1") {
		t.Errorf("it is OpenAPI %v", got.json["openapi"])
	}
}

// The document and the routes are one: each path and method that is published
// is there, and asks for a token.
func TestWhatIsPublishedIsThere(t *testing.T) {
	w := newWorld(t)
	paths := w.ask("GET /openapi.json", "", "").json["paths"].(map[string]any)
	fill := strings.NewReplacer("{id}", "CUST-00001", "{number}", "2", "{key}", "k", "{kind}", "account")
	for path, methods := range paths {
		for method, about := range methods.(map[string]any) {
			request := strings.ToUpper(method) + " " + fill.Replace(path)
			got := w.ask(request, "", "")
			if open := len(about.(map[string]any)["security"].([]any)) == 0; open {
				if got.status >= 400 {
					t.Errorf("%s: %d", request, got.status)
				}
				continue
			}
			w.is(got, http.StatusUnauthorized, "token")
			if !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s: no WWW-Authenticate", request)
			}
			w.is(w.ask("DELETE "+fill.Replace(path), "caller", ""), http.StatusMethodNotAllowed, "method_not_allowed")
		}
	}
	if got := w.ask("GET /metrics", "", ""); got.status != http.StatusOK || got.body != "calls 1" {
		t.Errorf("/metrics: %d", got.status)
	}
	if len(paths) < 12 {
		t.Errorf("%d paths", len(paths))
	}
}

func TestARefundAndItsRepeat(t *testing.T) {
	w := newWorld(t)
	first := w.ask(refunds, "caller", ten, "Idempotency-Key", "k")
	w.is(first, http.StatusCreated, "")
	if first.header.Get("Cache-Control") != "no-store" || first.header.Get("Content-Type") != "application/json" {
		t.Errorf("headers: %v", first.header)
	}
	again := w.ask(refunds, "caller", ten, "Idempotency-Key", "k")
	w.is(again, http.StatusOK, "")
	if again.header.Get("Idempotent-Replayed") != "true" || again.body != first.body {
		t.Errorf("the repeat: %v %s", again.header, again.body)
	}
	if found := w.ask("GET /v1/operations/k", "caller", ""); found.body != first.body {
		t.Errorf("looked up: %s", found.body)
	}
	o := first.json["operation"].(map[string]any)
	if o["principal"] != "caller" || o["via"] != nil || o["tool"] != "refunds.trigger" || o["tenant"] != "acme" {
		t.Errorf("the operation: %v", o)
	}
	got := w.ask("GET /v1/customers/CUST-00001", "caller", "")
	if got.header.Get("ETag") != `"2"` || got.json["balanceMinor"] != 90_00.0 {
		t.Errorf("%s %s", got.header.Get("ETag"), got.body)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	key := []string{"Idempotency-Key", "k"}
	with := func(more ...string) []string { return append(append([]string{}, key...), more...) }
	for name, tt := range map[string]struct {
		request, token, body string
		headers              []string
		status               int
		reason               string
	}{
		"no token":                       {refunds, "", ten, key, 401, "token"},
		"another token":                  {refunds, "guess", ten, key, 401, "token"},
		"two tokens":                     {refunds, "caller", ten, with("Authorization", "Bearer gateway"), 401, "token"},
		"a token that may not":           {refunds, "nobody", ten, key, 403, "scope"},
		"a command of the operator":      {"POST /v1/customers/CUST-00001/adjustments", "caller", `{"changeMinor":1,"currency":"USD","why":"x"}`, key, 403, "scope"},
		"no key":                         {refunds, "caller", ten, nil, 400, "operation_key_missing"},
		"two keys":                       {refunds, "caller", ten, with("Idempotency-Key", "j"), 400, "invalid_input"},
		"a key out of form":              {refunds, "caller", ten, []string{"Idempotency-Key", "a/b"}, 400, "invalid_input"},
		"another tenant":                 {refunds, "caller", ten, with("Ledger-Tenant", "globex"), 403, "tenant"},
		"a principal, without the right": {refunds, "caller", ten, with("Ledger-Principal", "bot"), 403, "delegation"},
		"a tool, without the right":      {refunds, "caller", ten, with("Ledger-Tool", "t"), 403, "delegation"},
		"a person who names another":     {refunds, "person", ten, with("Ledger-Principal", "bot"), 403, "delegation"},
		"a person who names itself":      {refunds, "person", ten, with("Ledger-Principal", "person"), 403, "delegation"},
		"a person who names a tool":      {refunds, "person", ten, with("Ledger-Tool", "t"), 403, "delegation"},
		"a principal out of form":        {refunds, "gateway", ten, with("Ledger-Principal", "a/b"), 400, "invalid_input"},
		"an empty principal":             {refunds, "gateway", ten, with("Ledger-Principal", ""), 400, "invalid_input"},
		"two principals":                 {refunds, "gateway", ten, with("Ledger-Principal", "a", "Ledger-Principal", "b"), 400, "invalid_input"},
		"a tool out of form":             {refunds, "gateway", ten, with("Ledger-Tool", "a b"), 400, "invalid_input"},
		"no JSON":                        {refunds, "caller", `{`, key, 400, "invalid_input"},
		"a float":                        {refunds, "caller", strings.Replace(ten, "1000", "1000.5", 1), key, 400, "invalid_input"},
		"null":                           {refunds, "caller", strings.Replace(ten, "1000", "null", 1), key, 400, "invalid_input"},
		"compressed":                     {refunds, "caller", ten, with("Content-Encoding", "gzip"), 415, "unsupported_media_type"},
		"compressed as well":             {refunds, "caller", ten, with("Content-Encoding", "identity", "Content-Encoding", "gzip"), 415, "unsupported_media_type"},
		"compressed behind nothing":      {refunds, "caller", ten, with("Content-Encoding", "", "Content-Encoding", "gzip"), 415, "unsupported_media_type"},
		"compressed in a list":           {refunds, "caller", ten, with("Content-Encoding", "identity, gzip"), 415, "unsupported_media_type"},
		"not compressed, and too much":   {refunds, "caller", strings.Replace(ten, "1000", "10001", 1), with("Content-Encoding", "Identity"), 422, "balance_exceeded"},
		"another media type":             {refunds, "caller", ten, with("Content-Type", "text/plain"), 415, "unsupported_media_type"},
		"the media type twice":           {refunds, "caller", ten, with("Content-Type", "application/json"), 415, "unsupported_media_type"},
		"too large":                      {refunds, "caller", ten + strings.Repeat(" ", 1<<20), key, 413, "body_too_large"},
		"a customer out of form":         {"POST /v1/customers/me/refunds", "caller", ten, key, 400, "invalid_input"},
		"an unknown customer":            {"POST /v1/customers/CUST-00009/refunds", "caller", ten, key, 404, "customer_not_found"},
		"more than there is":             {refunds, "caller", strings.Replace(ten, "1000", "10001", 1), key, 422, "balance_exceeded"},
		"a weak ETag":                    {refunds, "caller", ten, with("If-Match", `W/"1"`), 400, "invalid_input"},
		"a stale version":                {refunds, "caller", ten, with("If-Match", `"2"`), 412, "version_mismatch"},
		"a time out of range":            {refunds, "caller", ten, with("Request-Timeout", "60001"), 400, "invalid_input"},
		"a time that is none":            {refunds, "caller", ten, with("Request-Timeout", "1.5"), 400, "invalid_input"},
		"an empty step in a path":        {"GET //v1/customers", "caller", "", nil, 404, "no_such_resource"},
		"nothing but empty steps":        {"GET //", "caller", "", nil, 404, "no_such_resource"},
		"one at its end":                 {"GET /v1/customers//", "caller", "", nil, 404, "no_such_resource"},
		"an empty step of a command":     {"POST /v1/customers/CUST-00001//refunds", "caller", ten, key, 404, "no_such_resource"},
		"a step back":                    {"GET /v1/x/../customers", "caller", "", nil, 404, "no_such_resource"},
		"an escaped step back":           {"GET /v1/x/%2e%2e/customers", "caller", "", nil, 404, "no_such_resource"},
		"a step nowhere":                 {"GET /v1/./customers", "caller", "", nil, 404, "no_such_resource"},
		"an escaped step nowhere":        {"GET /v1/customers/%2e/refunds", "caller", "", nil, 400, "invalid_input"},
		"a slash at the end":             {"GET /v1/customers/", "caller", "", nil, 404, "no_such_resource"},
		"no such resource":               {"GET /v1/nothing", "caller", "", nil, 404, "no_such_resource"},
		"no such operation":              {"GET /v1/operations/none", "caller", "", nil, 404, "operation_not_found"},
		"a parameter nobody knows":       {"GET /v1/customers/CUST-00001/refunds?page=1", "caller", "", nil, 400, "invalid_input"},
		"a parameter twice":              {"GET /v1/customers/CUST-00001/refunds?limit=1&limit=2", "caller", "", nil, 400, "invalid_input"},
		"a limit out of range":           {"GET /v1/customers/CUST-00001/refunds?limit=1001", "caller", "", nil, 400, "invalid_input"},
		"a cursor that is none":          {"GET /v1/customers/CUST-00001/refunds?cursor=x", "caller", "", nil, 400, "invalid_input"},
		"a place that is none":           {"GET /v1/journal?after=x", "caller", "", nil, 400, "invalid_input"},
		"reading without the right":      {"GET /v1/customers", "nobody", "", nil, 403, "scope"},
		"no such reversal":               {"GET /v1/customers/CUST-00001/refunds/2/reversal", "caller", "", nil, 404, "reversal_not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			w.is(w.ask(tt.request, tt.token, tt.body, tt.headers...), tt.status, tt.reason)
		})
	}
	if n := w.balance(); n != 100_00 {
		t.Errorf("something was done: %d", n)
	}
	w.is(w.ask("GET /v1/operations/k", "caller", ""), http.StatusNotFound, "operation_not_found")
	for _, secret := range []string{"anary", "Bearer", "guess", "CUST-"} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log holds %q: %s", secret, w.log)
		}
	}
}

// What HTTP allows in place of a path names no resource either.
func TestTargetsThatAreNoPath(t *testing.T) {
	w := newWorld(t)
	for _, target := range []string{"GET *", "CONNECT ledger.example.com:443", "GET " + w.url, "POST " + w.url + "//v1/customers"} {
		conn := must(net.Dial("tcp", strings.TrimPrefix(w.url, "http://")))
		defer conn.Close()
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer caller\r\nContent-Length: 0\r\n\r\n", target)
		r := must(http.ReadResponse(bufio.NewReader(conn), nil))
		if r.StatusCode != http.StatusNotFound || r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", target, r.StatusCode, r.Header.Get("Content-Type"))
		}
		r.Body.Close()
	}
}

// A problem says what it is about and what would be right.
func TestProblemsNameWhatTheyAreAbout(t *testing.T) {
	w := newWorld(t, withDemo(t))
	order := func(line string) string {
		return `{"orders":[{"id":"PO-1","vendorId":"V-100","currency":"USD","freightLimitMinor":0,"taxLimitPercent":"0","lines":[` +
			`{"line":1,"sku":"S","unit":"EA","quantity":"1","unitPriceMinor":1,"conversions":[]},` + line + `]}]}`
	}
	for _, tt := range []struct{ name, request, token, body, says string }{
		{"an unknown parameter", "GET /v1/invoices?page=2", "reader", "", `unknown query parameter "page"; the resource has status, vendor, order, currency, undecided, cursor, limit`},
		{"two", "GET /v1/vendors?b=2&a=1", "reader", "", `unknown query parameter "a"; the resource has cursor, limit; unknown query parameter "b"; the resource has cursor, limit`},
		{"where there is none", "GET /v1/vendors/V-100?fields=id", "reader", "", `unknown query parameter "fields"; the resource has none`},
		{"of a command", refunds + "?dryRun=true", "caller", ten, `unknown query parameter "dryRun"; the resource has none`},
		{"a name that is long", "GET /v1/vendors?" + strings.Repeat("x", 5000), "reader", "", `unknown query parameter "` + strings.Repeat("x", 64) + `"; the`},
		{"a name that is no text", "GET /v1/vendors?%00%1b%E2%80%AE%ff", "reader", "", `unknown query parameter "\x00\x1b\u202e\xff"; the`},
		{"a currency in lower case", "GET /v1/invoices?currency=usd", "reader", "", "currency must be a code of three upper-case letters such as USD"},
		{"a quantity", "POST /v1/imports/purchase-orders", "operator", order(`{"line":2,"sku":"S","unit":"EA","quantity":"x","unitPriceMinor":1,"conversions":[]}`), "orders[0].lines[1].quantity: "},
		{"a unit", "POST /v1/imports/purchase-orders", "operator", order(`{"line":2,"sku":"S","unit":"EA","quantity":"1","unitPriceMinor":1,"conversions":[{"unit":"-","numerator":1,"denominator":1}]}`), "orders[0].lines[1].conversions[0].unit: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := *w
			w.t = t
			got := w.ask(tt.request, tt.token, tt.body, "Idempotency-Key", "k")
			w.is(got, http.StatusBadRequest, "invalid_input")
			if detail, _ := got.json["detail"].(string); !strings.Contains(detail, tt.says) {
				t.Errorf("it says %s", detail)
			}
		})
	}
}

func TestAllProblemsOfARequestAreReportedAtOnce(t *testing.T) {
	w := newWorld(t)
	got := w.ask("POST /v1/customers/me/refunds", "caller", `{"amountMinor":"1","currency":"usd","reason":"short","note":1}`, "Idempotency-Key", "k")
	w.is(got, http.StatusBadRequest, "invalid_input")
	var pointers []string
	for _, i := range got.json["issues"].([]any) {
		pointers = append(pointers, i.(map[string]any)["pointer"].(string))
	}
	if want := "/amountMinor /note /id /currency /reason"; strings.Join(pointers, " ") != want {
		t.Errorf("the issues are of %v, want %s", pointers, want)
	}
}

func TestAServiceActsForItsPrincipals(t *testing.T) {
	w := newWorld(t)
	as := func(principal string) []string {
		return []string{"Idempotency-Key", "k", "Ledger-Principal", principal, "Ledger-Tool", "trigger_refund", "Ledger-Tenant", "acme"}
	}
	for _, who := range []string{"bot", "other-bot"} { // the same key is another operation
		got := w.ask(refunds, "gateway", ten, as(who)...)
		w.is(got, http.StatusCreated, "")
		if o := got.json["operation"].(map[string]any); o["principal"] != who || o["via"] != "gateway" || o["tool"] != "trigger_refund" {
			t.Errorf("the operation: %v", o)
		}
	}
	w.is(w.ask("GET /v1/operations/k", "gateway", ""), http.StatusNotFound, "operation_not_found")
	w.is(w.ask("GET /v1/operations/k", "gateway", "", "Ledger-Principal", "bot"), http.StatusOK, "")
	if n := w.balance(); n != 80_00 {
		t.Errorf("the balance is %d", n)
	}
}

// Only a service delegates: to a person the scope gives nothing, and takes nothing.
func TestAPersonWithTheScopeToDelegateIsItself(t *testing.T) {
	w := newWorld(t)
	got := w.ask(refunds, "person", ten, "Idempotency-Key", "k")
	w.is(got, http.StatusCreated, "")
	if o := got.json["operation"].(map[string]any); o["principal"] != "person" || o["via"] != nil || o["tool"] != "refunds.trigger" {
		t.Errorf("the operation: %v", o)
	}
}

func TestTheCommandsOfAnOperator(t *testing.T) {
	w := newWorld(t)
	w.is(w.ask(refunds, "caller", ten, "Idempotency-Key", "r"), http.StatusCreated, "")
	for i, tt := range []struct{ request, body, answer string }{
		{"POST /v1/customers/CUST-00001/refunds/2/reversal", `{"reason":"The bank returned it."}`, "reversal"},
		{"POST /v1/customers/CUST-00001/adjustments", `{"changeMinor":-5,"currency":"USD","why":"counted again"}`, "adjustment"},
		{"POST /v1/customers", `{"id":"CUST-00002","name":"Zoë","email":"z@example.com","status":"active","currency":"JPY","openingMinor":7300,"createdAt":"2024-01-15T00:00:00.000Z"}`, "customer"},
		{"POST /v1/imports", `{"customers":[{"id":"CUST-00003","name":"Bo","email":"b@example.com","status":"suspended","currency":"KWD","openingMinor":1,"createdAt":"2024-01-15T00:00:00.000Z"}]}`, "import"},
	} {
		got := w.ask(tt.request, "operator", tt.body, "Idempotency-Key", fmt.Sprint("o-", i))
		w.is(got, http.StatusCreated, "")
		if got.json[tt.answer] == nil {
			t.Errorf("%s: no %s in %s", tt.request, tt.answer, got.body)
		}
	}
	if n := w.balance(); n != 100_00-5 {
		t.Errorf("the balance is %d", n)
	}
	got := w.ask("POST /v1/imports", "operator", `{"customers":[{"id":"x","name":"Bo","email":"b@example.com","status":"fine","currency":"KWD","openingMinor":1,"createdAt":"yesterday"}]}`, "Idempotency-Key", "bad")
	w.is(got, http.StatusBadRequest, "invalid_input")
	if !strings.Contains(got.body, `"/customers/0/createdAt"`) {
		t.Errorf("the issues: %s", got.body)
	}

	// The journal, a few entries at a time, is all of them in order.
	var places []string
	after := ""
	for range 10 {
		page := w.ask("GET /v1/journal?limit=2"+after, "operator", "")
		w.is(page, http.StatusOK, "")
		for _, e := range page.json["entries"].([]any) {
			e := e.(map[string]any)
			places = append(places, fmt.Sprint(e["subjectId"], "/", e["number"]))
		}
		next, more := page.json["next"].(string)
		if !more {
			break
		}
		after = "&after=" + next
	}
	if want := "CUST-00001/1 CUST-00001/2 CUST-00001/3 CUST-00001/4 CUST-00002/1 CUST-00003/1"; strings.Join(places, " ") != want {
		t.Errorf("the journal is %v, want %s", places, want)
	}
}

// held is a store whose writes wait to be let go.
type held struct {
	restserver.Store
	begun, let chan struct{}
}

func (h held) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	h.begun <- struct{}{}
	<-h.let
	return h.Store.Do(ctx, op, cmd)
}

func newHeld(t testing.TB) (*world, held) {
	h := held{begun: make(chan struct{}, 8), let: make(chan struct{})}
	w := newWorld(t, func(s restserver.Store) restserver.Store { h.Store = s; return h })
	return w, h
}

func TestNothingIsCommittedAfterTheTimeOfARequest(t *testing.T) {
	w, h := newHeld(t)
	answer := make(chan reply)
	go func() { answer <- w.ask(refunds, "caller", ten, "Idempotency-Key", "k", "Request-Timeout", "50") }()
	<-h.begun
	time.Sleep(60 * time.Millisecond)
	close(h.let)
	got := <-answer
	w.is(got, http.StatusGatewayTimeout, "request_timeout")
	if got.json["code"] != "BACKEND_UNAVAILABLE" || got.json["retryable"] != true {
		t.Error(got.body)
	}
	w.is(w.ask("GET /v1/operations/k", "caller", ""), http.StatusNotFound, "operation_not_found")
	if n := w.balance(); n != 100_00 {
		t.Errorf("the balance is %d", n)
	}
}

func TestASecondRequestOfAKeyWaitsAndThenComesAgain(t *testing.T) {
	w, h := newHeld(t)
	first, second := make(chan reply), make(chan reply)
	go func() { first <- w.ask(refunds, "caller", ten, "Idempotency-Key", "k") }()
	<-h.begun
	got := w.ask(refunds, "caller", ten, "Idempotency-Key", "k", "Request-Timeout", "100")
	w.is(got, http.StatusConflict, "operation_running")
	if got.header.Get("Retry-After") == "" || got.json["retryable"] != true {
		t.Errorf("%v %s", got.header, got.body)
	}
	go func() { second <- w.ask(refunds, "caller", ten, "Idempotency-Key", "k") }()
	time.Sleep(20 * time.Millisecond)
	close(h.let)
	w.is(<-first, http.StatusCreated, "")
	w.is(<-second, http.StatusOK, "")
	if n := w.balance(); n != 90_00 {
		t.Errorf("the balance is %d", n)
	}
}

func TestRequestsBeyondTheBoundComeAgain(t *testing.T) {
	w, h := newHeld(t)
	answers := make(chan reply)
	for i := range inFlight {
		go func() { answers <- w.ask(refunds, "caller", ten, "Idempotency-Key", fmt.Sprint("k-", i)) }()
		<-h.begun
	}
	// The answer comes although the body never does.
	conn := must(net.Dial("tcp", strings.TrimPrefix(w.url, "http://")))
	defer conn.Close()
	fmt.Fprint(conn, "POST /v1/customers/CUST-00001/refunds HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer caller\r\nIdempotency-Key: late\r\nContent-Length: 1000000\r\n\r\n{")
	r := must(http.ReadResponse(bufio.NewReader(conn), nil))
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d, Retry-After %q", r.StatusCode, r.Header.Get("Retry-After"))
	}
	got := w.ask("GET /v1/customers/CUST-00001", "caller", "")
	w.is(got, http.StatusServiceUnavailable, "server_busy")
	if got.json["code"] != "BACKEND_UNAVAILABLE" || got.json["retryable"] != true {
		t.Error(got.body)
	}
	if live := w.ask("GET /healthz", "", ""); live.status != http.StatusNoContent {
		t.Errorf("healthz: %d", live.status)
	}
	close(h.let)
	for range inFlight {
		w.is(<-answers, http.StatusCreated, "")
	}
	w.is(w.ask(refunds, "caller", ten, "Idempotency-Key", "late"), http.StatusCreated, "")
}

// A client that sends its body a byte at a time holds no place for long.
func TestABodyThatTrickles(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorld(t, withDemo(t))
	address := strings.TrimPrefix(w.url, "http://")
	for name, tt := range map[string]struct {
		request, headers string
		within           time.Duration
		status           int
	}{
		"of a command":                  {refunds, "Authorization: Bearer caller\r\nIdempotency-Key: k\r\n", 6 * time.Second, http.StatusRequestTimeout},
		"of a command that has no time": {refunds, "Authorization: Bearer caller\r\nIdempotency-Key: k\r\nRequest-Timeout: 500\r\n", 2 * time.Second, http.StatusRequestTimeout},
		"of a read":                     {"GET /v1/journal?kind=vendor", "Authorization: Bearer reader\r\n", 2 * time.Second, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := must(net.Dial("tcp", address))
			began := time.Now()
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: 1000\r\n\r\n", tt.request, tt.headers)
			over, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				for {
					select {
					case <-over:
						return
					case <-time.After(100 * time.Millisecond):
						fmt.Fprint(conn, " ")
					}
				}
			}()
			defer func() { close(over); <-ended; conn.Close() }()
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body := string(must(io.ReadAll(r.Body)))
			if r.StatusCode != tt.status || time.Since(began) > tt.within {
				t.Errorf("%d after %s: %.200s", r.StatusCode, time.Since(began), body)
			}
			if tt.status >= 400 && (r.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(body, `"reason":"body_timeout","retryable":true`)) {
				t.Errorf("%s %s", r.Header.Get("Content-Type"), body)
			}
		})
	}
}

func TestAClientThatGoesAwayDoesNotStopAWrite(t *testing.T) {
	w, h := newHeld(t)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		r := must(http.NewRequestWithContext(ctx, http.MethodPost, w.url+strings.TrimPrefix(refunds, "POST "), strings.NewReader(ten)))
		r.Header = http.Header{"Authorization": {"Bearer caller"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
		if response, err := w.wire.RoundTrip(r); err == nil {
			response.Body.Close()
		}
	}()
	<-h.begun
	leave()
	<-gone
	close(h.let)
	for range 100 {
		if got := w.ask("GET /v1/operations/k", "caller", ""); got.status == http.StatusOK {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the write was lost")
}

// accidents is a store that fails in ways nobody expects.
type accidents struct{ restserver.Store }

func (accidents) Load(context.Context, access.Tenant, ...ledger.Ref) (ledger.View, error) {
	return ledger.View{}, errors.New("the disk is on fire")
}

func (accidents) Do(context.Context, operation.Operation, ledger.Command) (ledger.Outcome, error) {
	panic("the disk is on fire")
}

func TestAnAccidentSaysNothing(t *testing.T) {
	w := newWorld(t, func(s restserver.Store) restserver.Store { return accidents{s} })
	for _, got := range []reply{
		w.ask("GET /v1/customers/CUST-00001", "caller", ""),
		w.ask(refunds, "caller", ten, "Idempotency-Key", "k"),
	} {
		w.is(got, http.StatusInternalServerError, "internal")
		id, _ := got.json["id"].(string)
		if strings.Contains(got.body, "fire") || id == "" || !strings.Contains(w.log.String(), id) {
			t.Errorf("%s\nlog: %s", got.body, w.log)
		}
	}
	got := w.ask("GET /readyz", "", "")
	if got.status != http.StatusNoContent {
		t.Errorf("readyz: %d", got.status)
	}
}

// lost is a store whose answer to a write does not come.
type lost struct{ restserver.Store }

func (lost) Do(ctx context.Context, _ operation.Operation, _ ledger.Command) (ledger.Outcome, error) {
	<-ctx.Done()
	return ledger.Outcome{}, ctx.Err()
}

func TestAStoreThatDoesNotAnswerAWriteMayHaveMadeIt(t *testing.T) {
	t.Parallel() // it waits more than it works
	w := newWorld(t, func(s restserver.Store) restserver.Store { return lost{s} })
	got := w.ask(refunds, "caller", ten, "Idempotency-Key", "k", "Request-Timeout", "1")
	w.is(got, http.StatusInternalServerError, "outcome_unknown")
	if got.json["code"] != "OUTCOME_UNKNOWN" || !strings.Contains(got.body, "/v1/operations/k") {
		t.Error(got.body)
	}
	if !strings.Contains(w.log.String(), "deadline") {
		t.Errorf("the log does not say why: %s", w.log)
	}
}

func TestTheServerFinishesWhatItAccepted(t *testing.T) {
	w, h := newHeld(t)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	w.url = "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	ended, answer := make(chan error), make(chan reply)
	go func() { ended <- w.server().Serve(ctx, listener) }()
	go func() { answer <- w.ask(refunds, "caller", ten, "Idempotency-Key", "k") }()
	<-h.begun
	stop()
	time.Sleep(50 * time.Millisecond)
	close(h.let)
	w.is(<-answer, http.StatusCreated, "")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}
