package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/ports"
)

// The tokens that the tests' verifier knows.
const (
	allToken    = "token-of-all"
	readerToken = "token-of-the-reader"
	otherToken  = "token-of-the-other-tenant"
)

// tokens verifies what it holds, and counts how often it was asked.
type tokens struct {
	known map[string]access.Principal
	asked atomic.Int64
	fails error // in place of "no such token"
}

func (v *tokens) Verify(_ context.Context, token string) (access.Principal, error) {
	v.asked.Add(1)
	if who, ok := v.known[token]; ok {
		return who, nil
	}
	if v.fails != nil {
		return access.Principal{}, v.fails
	}
	return access.Principal{}, errors.New("the verifier says hunter2")
}

func principal(t testing.TB, tenant, id string, plan access.Plan, scopes access.Scopes) access.Principal {
	t.Helper()
	of, err := access.ParseTenant(tenant)
	if err != nil {
		t.Fatal(err)
	}
	who, err := access.NewPrincipal(of, id, access.Agent, scopes, plan, "")
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// site is a server that listens.
type site struct {
	t        testing.TB
	h        *HTTP
	desk     desk
	verifier *tokens
	addr     string
	log      *logLines
	client   *http.Client
	stop     func() error // ends Serve and returns its error
}

// newSite serves a fresh ledger. change may change the options before.
func newSite(t testing.TB, change func(*Options, *HTTPOptions)) *site {
	t.Helper()
	return newSiteOn(t, "127.0.0.1", change)
}

// newSiteOn is a site that listens on an address of this machine, and is
// reached on its own for itself.
func newSiteOn(t testing.TB, host string, change func(*Options, *HTTPOptions)) *site {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{
		t: t, addr: net.JoinHostPort("127.0.0.1", port), log: &logLines{}, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		verifier: &tokens{known: map[string]access.Principal{
			allToken:    principal(t, "default", "local", access.Pro, access.AgentScopes()),
			readerToken: principal(t, "default", "reader", access.Pro, access.ScopesOf(access.CustomerRead)),
			otherToken:  principal(t, "other", "local", access.Pro, access.AgentScopes()),
		}},
	}
	o := HTTPOptions{
		Hosts: LocalHosts(l.Addr().String()), Verifier: s.verifier, PublicURL: "http://" + s.addr + pathMCP, Issuer: "https://issuer.example",
		MaxInFlight: 64, Ready: func(context.Context) error { return nil },
	}
	s.desk = newServer(t, func(options *Options) {
		options.Log = slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		if change != nil {
			change(options, &o)
		}
	})
	if s.h, err = s.desk.HTTP(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.h.Serve(ctx, l, nil) }()
	s.stop = func() error {
		cancel()
		s.client.CloseIdleConnections()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() { _ = s.stop() })
	return s
}

// reply is an answer over HTTP.
type reply struct {
	status int
	header http.Header
	body   string
	id     string // as it was sent
	result json.RawMessage
	code   int64
	words  string
	data   string
}

// do sends a request; headers are pairs, of which an empty value takes one away.
func (s *site) do(method, path, body string, headers ...string) reply {
	s.t.Helper()
	r, err := s.try(method, path, body, headers...)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *site) try(method, path, body string, headers ...string) (reply, error) {
	req, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+allToken)
	for i := 0; i < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Add(name, value)
			if name == "Authorization" || name == "Content-Type" || name == "Accept" {
				req.Header.Set(name, value)
			}
		}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: resp.StatusCode, header: resp.Header, body: string(b)}
	var m struct {
		ID     json.RawMessage
		Result json.RawMessage
		Error  *struct {
			Code    int64
			Message string
			Data    json.RawMessage
		}
	}
	if json.Unmarshal(b, &m) == nil {
		r.id, r.result = string(m.ID), m.Result
		if m.Error != nil {
			r.code, r.words, r.data = m.Error.Code, m.Error.Message, string(m.Error.Data)
		}
	}
	return r, nil
}

func (s *site) post(body string, headers ...string) reply {
	s.t.Helper()
	return s.do(http.MethodPost, pathMCP, body, headers...)
}

func (s *site) as(token, body string, headers ...string) reply {
	s.t.Helper()
	return s.post(body, append(headers, "Authorization", "Bearer "+token)...)
}

// toolsCall is a message that calls a tool; meta may be empty.
func toolsCall(id, tool, arguments, meta string) string {
	m := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments
	if meta != "" {
		m += `,"_meta":` + meta
	}
	return m + `}}`
}

// sessionlessMeta marks a request of the sessionless protocol; more is further members.
func sessionlessMeta(more string) string {
	return `{"` + metaVersion + `":"` + sessionless + `","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}` + more + `}`
}

func sessionlessHeaders(method, name string) []string {
	h := []string{headerOfVersion, sessionless, "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return h
}

const lookUp = `{"customer_id":"CUST-00001"}`

func TestHTTPAnswersBothProtocols(t *testing.T) {
	s := newSite(t, nil)
	init := s.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if init.status != 200 || !strings.Contains(string(init.result), `"protocolVersion":"2025-06-18"`) || init.header.Get("Content-Type") != "application/json" || init.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("initialize: %+v", init)
	}
	if r := s.post(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`); !strings.Contains(string(r.result), `"protocolVersion":"2025-11-25"`) {
		t.Errorf("initialize in the new era: %+v", r)
	}
	if r := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); r.status != http.StatusAccepted || r.body != "" {
		t.Errorf("a notification: %+v", r)
	}
	if r := s.post(`{"jsonrpc":"2.0","id":"p","method":"ping"}`); r.status != 200 || r.id != `"p"` || string(r.result) != "{}" {
		t.Errorf("ping: %+v", r)
	}
	list := s.post(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	for _, tool := range allTools() {
		if !strings.Contains(string(list.result), `"name":"`+tool.name+`"`) {
			t.Errorf("tools/list lacks %s", tool.name)
		}
	}
	classic := s.post(toolsCall("7", "get_customer_record", lookUp, ""))
	newEra := s.post(toolsCall("7", "get_customer_record", lookUp, sessionlessMeta("")), sessionlessHeaders("tools/call", "get_customer_record")...)
	for _, r := range []reply{classic, newEra} {
		if r.status != 200 || r.id != "7" || !strings.Contains(string(r.result), `"refundableBalance":500`) {
			t.Errorf("a call: %+v", r)
		}
	}
	if r := s.post(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":`+sessionlessMeta("")+`}}`, sessionlessHeaders("server/discover", "")...); r.status != 200 || !strings.Contains(string(r.result), sessionless) {
		t.Errorf("server/discover: %+v", r)
	}
	for name, r := range map[string]reply{
		"a version of the header alone": s.post(toolsCall("1", "get_customer_record", lookUp, ""), sessionlessHeaders("tools/call", "get_customer_record")...),
		"a version of _meta alone":      s.post(toolsCall("1", "get_customer_record", lookUp, sessionlessMeta(""))),
		"another name in the header":    s.post(toolsCall("1", "trigger_refund", ten, sessionlessMeta("")), sessionlessHeaders("tools/call", "get_customer_record")...),
		"a version that never was":      s.post(toolsCall("1", "get_customer_record", lookUp, ""), headerOfVersion, "2025-01-01"),
	} {
		if r.status != http.StatusBadRequest || r.code == 0 || r.id != "1" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/destroy"}`); r.code != -32601 || r.id != "1" {
		t.Errorf("an unknown method: %+v", r)
	}
	if r := s.post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":`+sessionlessMeta("")+`}}`, sessionlessHeaders("subscriptions/listen", "")...); r.status != http.StatusNotFound || r.code != -32601 {
		t.Errorf("subscriptions/listen: %+v", r)
	}
	if b := balance(t, s.desk); b != "500" {
		t.Errorf("the balance is %s", b)
	}
}

// The Go SDK's own client, with a token, over both protocols.
func TestHTTPServesTheGoClient(t *testing.T) {
	s := newSite(t, nil)
	for _, version := range []string{"2025-03-26", "2025-06-18", newestClassic, sessionless} {
		t.Run(version, func(t *testing.T) {
			session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: "http://" + s.addr + pathMCP, HTTPClient: &http.Client{Transport: withToken{allToken, s.client.Transport}},
			}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := session.InitializeResult(); version != sessionless && got.ProtocolVersion != version {
				t.Errorf("it speaks %s", got.ProtocolVersion)
			}
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != len(allTools()) {
				t.Fatalf("%v %v", tools, err)
			}
			for range 2 { // the second is a replay
				out, err := session.CallTool(t.Context(), &mcp.CallToolParams{
					Meta: mcp.Meta{MetaKey: "key-" + version}, Name: "trigger_refund", Arguments: json.RawMessage(ten),
				})
				if err != nil || out.IsError || out.Meta[MetaKey] != "key-"+version {
					t.Fatalf("%+v %v", out, err)
				}
			}
		})
	}
	if b := balance(t, s.desk); b != "460" {
		t.Errorf("the balance is %s", b)
	}
}

type withToken struct {
	token string
	next  http.RoundTripper
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.next.RoundTrip(r)
}

func TestHTTPMethodsAndForms(t *testing.T) {
	s := newSite(t, nil)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
	}{
		{"GET", "GET", pathMCP, "", nil, 405},
		{"DELETE", "DELETE", pathMCP, "", nil, 405},
		{"PUT", "PUT", pathMCP, ping, nil, 405},
		{"OPTIONS without a page", "OPTIONS", pathMCP, "", nil, 405},
		{"the method comes before the host", "GET", pathMCP, "", []string{"Host", "evil.example"}, 405},
		{"POST to a probe", "POST", pathHealth, ping, nil, 405},
		{"nothing", "POST", "/", ping, nil, 404},
		{"a path below", "POST", pathMCP + "/", ping, nil, 404},
		{"no metrics without their token", "GET", pathMetrics, "", nil, 404},
		{"text", "POST", pathMCP, ping, []string{"Content-Type", "text/plain"}, 415},
		{"a form", "POST", pathMCP, ping, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"a type that only begins right", "POST", pathMCP, ping, []string{"Content-Type", "application/json-patch+json"}, 415},
		{"no type", "POST", pathMCP, ping, []string{"Content-Type", ""}, 415},
		{"packed", "POST", pathMCP, ping, []string{"Content-Encoding", "gzip"}, 415},
		{"with a charset", "POST", pathMCP, ping, []string{"Content-Type", "application/json; charset=utf-8"}, 200},
		{"a client that accepts anything", "POST", pathMCP, ping, []string{"Accept", "*/*"}, 200},
		{"a client that does not say", "POST", pathMCP, ping, []string{"Accept", ""}, 200},
		{"a client that wants HTML", "POST", pathMCP, ping, []string{"Accept", "text/html"}, 406},
		{"health", "GET", pathHealth, "", []string{"Authorization", ""}, 200},
		{"readiness", "GET", pathReady, "", []string{"Authorization", ""}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.do(c.method, c.path, c.body, c.headers...)
			if r.status != c.status || r.status >= 400 && (r.code != -32600 || r.id != "null") {
				t.Errorf("it answers %d %s", r.status, r.body)
			}
			if r.status == 405 && r.header.Get("Allow") == "" {
				t.Error("it does not say which method is allowed")
			}
		})
	}
}

func TestHTTPReadinessFollowsTheLedger(t *testing.T) {
	s := newSite(t, func(_ *Options, o *HTTPOptions) {
		o.Ready = func(context.Context) error { return errors.New("password=hunter2") }
	})
	if r := s.do("GET", pathReady, "", "Authorization", ""); r.status != http.StatusServiceUnavailable || strings.Contains(r.body, "hunter2") {
		t.Errorf("it answers %d %s", r.status, r.body)
	}
}

// The gate of HTTP is that of stdio: what stdio skips is answered 400 with a
// null id here, since nobody else can be meant.
func TestHTTPGateIsThatOfStdio(t *testing.T) {
	s := newSite(t, nil)
	for _, c := range unreadableLines {
		r := s.post(c.line)
		if len(c.line) > maxBody {
			continue
		}
		if r.status != 400 || r.id != "null" || r.code != -32700 && r.code != -32600 {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
		if strings.Contains(r.body, secret) {
			t.Errorf("%s: the answer repeats the message: %s", c.name, r.body)
		}
	}
	for _, c := range []struct {
		name, body string
		code       int64
	}{
		{"nothing", "", -32700},
		{"half an object", `{"jsonrpc":"2.0"`, -32700},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", -32700},
		{"two messages", `{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, -32700},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600},
		{"a text", `"ping"`, -32600},
		{"another version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600},
		{"a name twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_customer_record","name":"trigger_refund"}}`, -32600},
		{"very deep", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`, -32600},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := s.post(c.body); r.status != 400 || r.id != "null" || r.code != c.code {
				t.Errorf("it answers %d %s", r.status, r.body)
			}
		})
	}
	if r := s.post(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"arguments":{}}}`); r.status != 200 || r.id != "9" || r.code != -32602 {
		t.Errorf("a call without a name: %d %s", r.status, r.body)
	}
	if r := s.post(toolsCall("9", "trigger_refund", strings.Repeat(`{"a":`, 2000)+"1"+strings.Repeat("}", 2000), "")); r.status != 200 || r.id != "9" || r.code != -32602 {
		t.Errorf("deep arguments: %d %s", r.status, r.body)
	}
}

// The SDK answers in goroutines of its own, where a panic would be the end of
// the process: so whatever gets past the gate must be harmless there.
func TestHTTPSurvivesAnyParams(t *testing.T) {
	s := newSite(t, nil)
	methods := []string{
		"initialize", "ping", "tools/list", "tools/call", "server/discover", "logging/setLevel", "resources/list", "resources/read", "resources/templates/list",
		"resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete", "notifications/initialized",
		"notifications/cancelled", "notifications/progress", "notifications/roots/list_changed", "roots/list", "sampling/createMessage", "rpc.discover", "",
	}
	members := []string{
		``, `"x":1`, `"_meta":null`, `"_meta":{}`, `"_meta":[]`, `"_meta":{"progressToken":{}}`, `"cursor":7`, `"cursor":"x"`, `"name":null`, `"name":{}`,
		`"name":"trigger_refund","arguments":null`, `"name":"trigger_refund","arguments":[]`, `"uri":null`, `"level":"loud"`, `"ref":null,"argument":null`, `"ref":{"type":"ref/x"}`,
		`"protocolVersion":null`, `"protocolVersion":"2025-06-18","capabilities":null,"clientInfo":null`, `"protocolVersion":"2025-06-18","capabilities":{"sampling":null,"roots":[]},"clientInfo":{"name":1}`,
		`"requestId":null`, `"requestId":1.5`,
	}
	for _, method := range methods {
		for _, member := range members {
			for _, era := range []bool{false, true} {
				params, headers := "{"+member+"}", []string(nil)
				if era {
					headers = sessionlessHeaders(method, "trigger_refund")
					if !strings.Contains(member, "_meta") {
						params = strings.TrimSuffix("{"+`"_meta":`+sessionlessMeta("")+","+member, ",") + "}"
					}
				}
				for _, id := range []string{`"id":1,`, ``} {
					body := `{"jsonrpc":"2.0",` + id + `"method":` + quoted(method) + `,"params":` + params + `}`
					r, err := s.try("POST", pathMCP, body, headers...)
					if err != nil {
						t.Fatalf("%s: %v", body, err)
					}
					if r.status != http.StatusAccepted && !json.Valid([]byte(r.body)) || r.status >= 500 || r.result == nil && r.code == 0 && r.status != http.StatusAccepted {
						t.Errorf("%s: %d %s", body, r.status, r.body)
					}
				}
			}
		}
	}
	if b := balance(t, s.desk); b != "500" {
		t.Errorf("the balance is %s", b)
	}
}

func TestHTTPBodiesAreBounded(t *testing.T) {
	s := newSite(t, nil)
	fits := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	fits += strings.Repeat(" ", maxBody-len(fits))
	if r := s.post(fits); r.status != 200 {
		t.Errorf("1 MiB: %d %s", r.status, r.body)
	}
	if r := s.post(fits + " "); r.status != http.StatusRequestEntityTooLarge || r.code != -32600 {
		t.Errorf("1 MiB and a byte: %d %s", r.status, r.body)
	}
	// Without a length, the bound holds all the same.
	req, err := http.NewRequest("POST", "http://"+s.addr+pathMCP, io.MultiReader(strings.NewReader(fits), strings.NewReader(" ")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+allToken)
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("in chunks: %d", resp.StatusCode)
	}
}

// What comes from elsewhere is refused before a token is looked at, wherever the
// server listens.
func TestHTTPDoors(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "0.0.0.0"} {
		t.Run(host, func(t *testing.T) { testDoors(t, host) })
	}
}

func testDoors(t *testing.T, host string) {
	s := newSiteOn(t, host, func(_ *Options, o *HTTPOptions) {
		o.Hosts = append(o.Hosts, "Refunds.example.com", "[2001:db8::1]:8443")
		o.Origins = []string{"https://app.example.com"}
	})
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	message := toolsCall("1", "trigger_refund", ten, "")
	for _, c := range []struct {
		name, host, origin string
		allowed            bool
	}{
		{"its address", s.addr, "", true},
		{"localhost", "localhost:" + port, "", true},
		{"LOCALHOST", "LOCALHOST:" + port, "", true},
		{"IPv6", "[::1]:" + port, "", true},
		{"its public name", "refunds.example.com", "", true},
		{"its public address", "[2001:db8::1]:8443", "", true},
		{"an allowed page", "refunds.example.com", "https://app.example.com", true},
		{"evil", "evil.example", "", false},
		{"rebinding", "evil.example:" + port, "http://evil.example:" + port, false},
		{"another port", "localhost:1" + port, "", false},
		{"no port", "localhost", "", false},
		{"an empty port", "localhost:", "", false},
		{"a port with a zero", "localhost:0" + port, "", false},
		{"the public name with a port", "refunds.example.com:" + port, "", false},
		{"a suffix", "localhost.evil.example:" + port, "", false},
		{"a prefix", "evillocalhost:" + port, "", false},
		{"the public name in front", "refunds.example.com.evil.example", "", false},
		{"the public name behind", "evil.refunds.example.com", "", false},
		{"a dot at the end", "localhost.:" + port, "", false},
		{"the machine as a number", "2130706433:" + port, "", false},
		{"the machine in short", "127.1:" + port, "", false},
		{"every address", "0.0.0.0:" + port, "", false},
		{"an evil page", s.addr, "https://evil.example", false},
		{"a page from nowhere", s.addr, "null", false},
		{"a page of this host", s.addr, "http://" + s.addr, false},
		{"an allowed page without TLS", s.addr, "http://app.example.com", false},
		{"an allowed page on another port", s.addr, "https://app.example.com:444", false},
		{"an allowed name in front", s.addr, "https://app.example.com.evil.example", false},
		{"an allowed name behind", s.addr, "https://evilapp.example.com", false},
		{"an allowed page with a path", s.addr, "https://app.example.com/", false},
		{"a user in the page", s.addr, "https://app.example.com@evil.example", false},
		{"two pages in one", s.addr, "https://app.example.com, https://evil.example", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, to := range []struct{ method, path, body string }{
				{"POST", pathMCP, message}, {"GET", pathHealth, ""}, {"GET", pathReady, ""}, {"GET", pathResource, ""}, {"POST", "/nothing", ""},
			} {
				before := s.verifier.asked.Load()
				headers := []string{"Host", c.host}
				if c.origin != "" {
					headers = append(headers, "Origin", c.origin)
				}
				r := s.do(to.method, to.path, to.body, headers...)
				if !c.allowed && (r.status != http.StatusForbidden || s.verifier.asked.Load() != before) {
					t.Errorf("%s: %d %s", to.path, r.status, r.body)
				}
				if c.allowed && r.status != http.StatusOK && to.path != "/nothing" {
					t.Errorf("%s: %d %s", to.path, r.status, r.body)
				}
				if allow := r.header.Get("Access-Control-Allow-Origin"); !c.allowed && allow != "" || c.allowed && allow != c.origin && to.path != "/nothing" {
					t.Errorf("%s: a page from %q may read: %q", to.path, c.origin, allow)
				}
			}
		})
	}
	if r := s.post(message, "Origin", "https://app.example.com", "Origin", "https://evil.example"); r.status != http.StatusForbidden {
		t.Errorf("two pages: %d", r.status)
	}
	if r := s.post(message, "Sec-Fetch-Site", "cross-site"); r.status != http.StatusForbidden {
		t.Errorf("a browser that hides the page: %d", r.status)
	}
	pre := []string{"Access-Control-Request-Method", "POST", "Authorization", ""}
	if r := s.do("OPTIONS", pathMCP, "", append(pre, "Origin", "https://app.example.com")...); r.status != http.StatusNoContent || !strings.Contains(r.header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("an allowed page asks first: %d %v", r.status, r.header)
	}
	if r := s.do("OPTIONS", pathMCP, "", append(pre, "Origin", "https://evil.example")...); r.status != http.StatusForbidden || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("an evil page asks first: %d %v", r.status, r.header)
	}
}

func TestHTTPLocalHosts(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:3333": "localhost:3333 127.0.0.1:3333 [::1]:3333",
		"0.0.0.0:3333":   "localhost:3333 127.0.0.1:3333 [::1]:3333",
		"[::]:3333":      "localhost:3333 127.0.0.1:3333 [::1]:3333",
		"10.1.2.3:80":    "localhost:80 localhost 127.0.0.1:80 127.0.0.1 [::1]:80 [::1] 10.1.2.3:80 10.1.2.3",
	} {
		if got := strings.Join(LocalHosts(addr), " "); got != want {
			t.Errorf("%s: %s", addr, got)
		}
	}
}

func TestHTTPWantsAToken(t *testing.T) {
	s := newSite(t, nil)
	message := toolsCall("1", "trigger_refund", ten, "")
	metadata := `Bearer resource_metadata="http://` + s.addr + pathResource + `"`
	for _, c := range []struct {
		name      string
		path      string
		headers   []string
		challenge string
	}{
		{"none", pathMCP, []string{"Authorization", ""}, metadata},
		{"in the address", pathMCP + "?access_token=" + allToken, []string{"Authorization", ""}, metadata},
		{"another scheme", pathMCP, []string{"Authorization", "Basic " + allToken}, metadata + `, error="invalid_request"`},
		{"no scheme", pathMCP, []string{"Authorization", allToken}, metadata + `, error="invalid_request"`},
		{"empty", pathMCP, []string{"Authorization", "Bearer "}, metadata + `, error="invalid_request"`},
		{"two tokens in one", pathMCP, []string{"Authorization", "Bearer " + allToken + ", Bearer x"}, metadata + `, error="invalid_request"`},
		{"too long", pathMCP, []string{"Authorization", "Bearer " + strings.Repeat("a", maxToken+1)}, metadata + `, error="invalid_request"`},
		{"unknown", pathMCP, []string{"Authorization", "Bearer nonsense"}, metadata + `, error="invalid_token"`},
		{"known but for a letter", pathMCP, []string{"Authorization", "Bearer " + allToken + "x"}, metadata + `, error="invalid_token"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.do("POST", c.path, message, c.headers...)
			if r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") != c.challenge || r.code != -32600 {
				t.Errorf("it answers %d %q %s", r.status, r.header.Get("WWW-Authenticate"), r.body)
			}
			if strings.Contains(r.body, "hunter2") {
				t.Errorf("what the verifier says leaves: %s", r.body)
			}
		})
	}
	if b := balance(t, s.desk); b != "500" {
		t.Errorf("the balance is %s", b)
	}
	if r := s.post(message, "Authorization", "bearer "+allToken); r.status != 200 {
		t.Errorf("the scheme in lower case: %d", r.status)
	}
	if strings.Contains(s.log.String(), allToken) || strings.Contains(s.log.String(), "nonsense") {
		t.Error("a token is in the log")
	}
	var scopes []string
	for _, tool := range allTools() {
		scopes = append(scopes, tool.scope.String())
	}
	slices.Sort(scopes)
	scopes = slices.Compact(scopes)
	for _, path := range []string{pathResource, pathResource + pathMCP} {
		r := s.do("GET", path, "", "Authorization", "")
		var m struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		if err := json.Unmarshal([]byte(r.body), &m); err != nil || m.Resource != "http://"+s.addr+pathMCP || fmt.Sprint(m.Servers) != "[https://issuer.example]" || !slices.Equal(m.Scopes, scopes) {
			t.Errorf("%s: %s", path, r.body)
		}
	}
}

func TestHTTPTellsABrokenVerifierFromABadToken(t *testing.T) {
	s := newSite(t, nil)
	s.verifier.fails = fault.New(fault.BackendUnavailable, "keys_unavailable", "dial tcp 10.0.0.7: hunter2")
	r := s.as("unknown", toolsCall("1", "get_customer_record", lookUp, ""))
	if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || strings.Contains(r.body, "hunter2") {
		t.Errorf("it answers %d %s", r.status, r.body)
	}
}

func TestHTTPNamesTheMissingScope(t *testing.T) {
	s := newSite(t, nil)
	for name, r := range map[string]reply{
		"classic": s.as(readerToken, toolsCall("5", "trigger_refund", ten, "")),
		"new era": s.as(readerToken, toolsCall("5", "trigger_refund", ten, sessionlessMeta("")), sessionlessHeaders("tools/call", "trigger_refund")...),
	} {
		want := `Bearer resource_metadata="http://` + s.addr + pathResource + `", error="insufficient_scope", scope="refund:write"`
		if r.status != http.StatusForbidden || r.id != "5" || r.code != codeDenied || r.data != `{"reason":"scope","required":["refund:write"]}` || r.header.Get("WWW-Authenticate") != want {
			t.Errorf("%s: %d %q %s", name, r.status, r.header.Get("WWW-Authenticate"), r.body)
		}
	}
	if r := s.as(readerToken, toolsCall("5", "get_customer_record", lookUp, "")); r.status != 200 || r.result == nil {
		t.Errorf("what it may: %d %s", r.status, r.body)
	}
	// What is listed is each principal's own, whoever asked before.
	for token, want := range map[string]int{readerToken: 1, allToken: len(allTools())} {
		r := s.as(token, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if n := strings.Count(string(r.result), `"inputSchema"`); n != want {
			t.Errorf("%s lists %d tools: %s", token, n, r.body)
		}
	}
}

func TestHTTPIdempotencyKey(t *testing.T) {
	s := newSite(t, nil)
	s.desk.app.RequireOperationKey = true
	newEra := sessionlessHeaders("tools/call", "trigger_refund")
	for _, c := range []struct {
		name, meta string
		headers    []string
		code       int64
		key        string
		replayed   bool
	}{
		{"none", "", nil, -32602, "", false},
		{"in the header", "", []string{headerOfKey, "k1"}, 0, "k1", false},
		{"again, in _meta", keyed(`"k1"`), nil, 0, "k1", true},
		{"in both", keyed(`"k1"`), []string{headerOfKey, "k1"}, 0, "k1", true},
		{"another in the header", keyed(`"k1"`), []string{headerOfKey, "k2"}, -32602, "", false},
		{"out of form", "", []string{headerOfKey, "a b"}, -32602, "", false},
		{"out of form in the header, though _meta has one", keyed(`"k1"`), []string{headerOfKey, "a b"}, -32602, "", false},
		{"out of form in _meta, though the header has one", keyed(`7`), []string{headerOfKey, "k1"}, -32602, "", false},
		{"twice in the header", "", []string{headerOfKey, "k1", headerOfKey, "k1"}, -32602, "", false},
		{"in the header, in the new era", sessionlessMeta(""), append([]string{headerOfKey, "k1"}, newEra...), 0, "k1", true},
		{"another in the header, in the new era", sessionlessMeta(`,"` + MetaKey + `":"k2"`), append([]string{headerOfKey, "k1"}, newEra...), -32602, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.post(toolsCall("1", "trigger_refund", ten, c.meta), c.headers...)
			var out called
			if r.result != nil {
				if err := json.Unmarshal(r.result, &out); err != nil {
					t.Fatal(err)
				}
			}
			key, _ := out.Meta[MetaKey].(string)
			// In the new era an error of the arguments is one of HTTP too.
			if r.status != 200 && r.code == 0 || r.code != c.code || key != c.key || (out.Meta[MetaReplayed] == true) != c.replayed {
				t.Errorf("it answers %d %s", r.status, r.body)
			}
		})
	}
	if r := s.post(toolsCall("1", "get_customer_record", lookUp, ""), headerOfKey, "a b"); r.code != 0 {
		t.Errorf("a read has no key to be wrong: %s", r.body)
	}
	if b := balance(t, s.desk); b != "490" {
		t.Errorf("the balance is %s", b)
	}
}

func TestHTTPRateIsEachPrincipalsOwn(t *testing.T) {
	s := newSite(t, func(_ *Options, o *HTTPOptions) { o.Rate, o.Burst = 0.001, 5 })
	message := toolsCall("3", "get_customer_record", lookUp, "")
	for i := range 5 {
		if r := s.as(readerToken, message); r.status != 200 || r.code != 0 {
			t.Fatalf("call %d: %d %s", i, r.status, r.body)
		}
	}
	for range 20 {
		r := s.as(readerToken, message)
		var data struct{ RetryAfterMs int64 }
		if err := json.Unmarshal([]byte(r.data), &data); err != nil || r.status != 200 || r.id != "3" || r.code != codeRateLimited || data.RetryAfterMs < 900_000 || data.RetryAfterMs > 1_000_000 {
			t.Fatalf("over the limit: %d %s", r.status, r.body)
		}
	}
	if r := s.as(readerToken, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" {
		t.Errorf("a notification over the limit: %d %s", r.status, r.body)
	}
	for i := range 5 {
		if r := s.as(allToken, message); r.status != 200 || r.code != 0 {
			t.Errorf("another's call %d: %d %s", i, r.status, r.body)
		}
	}
	// A namesake in another tenant is another principal.
	if r := s.as(otherToken, message); r.code != 0 {
		t.Errorf("a namesake: %d %s", r.status, r.body)
	}
}

func TestRateLimiterForgets(t *testing.T) {
	l := newLimiter(0.001, 1)
	kept := principal(t, "default", "kept", access.Free, access.Scopes{})
	if l.take(kept) > 0 || l.take(kept) == 0 {
		t.Fatal("one and no more")
	}
	for i := range 3 * maxCallers {
		l.take(principal(t, "default", fmt.Sprint("p", i), access.Free, access.Scopes{}))
		if i%1000 == 0 && l.take(kept) == 0 {
			t.Fatal("who calls all the time is forgotten")
		}
	}
	if n := len(l.recent) + len(l.older); n > 2*maxCallers {
		t.Errorf("it remembers %d", n)
	}
}

// gated is a ledger whose writes wait until they are let through.
type gated struct {
	ports.Ledger
	arrived chan struct{}
	open    chan struct{}
}

func gate(s desk) *gated {
	g := &gated{s.app.Ledger, make(chan struct{}, 1000), make(chan struct{})}
	s.app.Ledger = g
	return g
}

func (g *gated) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	g.arrived <- struct{}{}
	select {
	case <-g.open:
	case <-ctx.Done():
		return ledger.Outcome{}, ctx.Err()
	}
	return g.Ledger.Do(ctx, op, cmd)
}

func TestHTTPRefusesWhatItHasNoRoomFor(t *testing.T) {
	s := newSite(t, func(_ *Options, o *HTTPOptions) { o.MaxInFlight = 2 })
	g := gate(s.desk)
	done := make(chan reply, 2)
	for i := range 2 {
		go func() {
			r, err := s.try("POST", pathMCP, toolsCall("1", "trigger_refund", ten, keyed(fmt.Sprintf(`"k%d"`, i))))
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
		<-g.arrived
	}
	r := s.post(toolsCall("1", "get_customer_record", lookUp, ""))
	if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") != "1" || r.code != codeBusy {
		t.Errorf("the third: %d %s", r.status, r.body)
	}
	if r := s.do("GET", pathHealth, ""); r.status != 200 {
		t.Errorf("health: %d", r.status)
	}
	close(g.open)
	for range 2 {
		if r := <-done; r.status != 200 || r.code != 0 {
			t.Errorf("the first two: %d %s", r.status, r.body)
		}
	}
	if r := s.post(toolsCall("1", "get_customer_record", lookUp, "")); r.status != 200 {
		t.Errorf("afterwards: %d %s", r.status, r.body)
	}
}

// One principal can not have all the room there is.
func TestHTTPRoomIsShared(t *testing.T) {
	s := newSite(t, func(_ *Options, o *HTTPOptions) { o.MaxInFlight, o.MaxEach = 8, 2 })
	g := gate(s.desk)
	done := make(chan reply, 2)
	for i := range 2 {
		go func() {
			r, err := s.try("POST", pathMCP, toolsCall("1", "trigger_refund", ten, keyed(fmt.Sprintf(`"k%d"`, i))))
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
		<-g.arrived
	}
	message := toolsCall("3", "get_customer_record", lookUp, "")
	if r := s.post(message); r.status != 200 || r.id != "3" || r.code != codeRateLimited || r.data != `{"retryAfterMs":1000}` {
		t.Errorf("the third: %d %s", r.status, r.body)
	}
	for _, token := range []string{readerToken, otherToken} { // the other is a namesake in another tenant
		if r := s.as(token, message); r.status != 200 || r.code != 0 {
			t.Errorf("another's: %d %s", r.status, r.body)
		}
	}
	close(g.open)
	for range 2 {
		if r := <-done; r.status != 200 || r.code != 0 {
			t.Errorf("the first two: %d %s", r.status, r.body)
		}
	}
	if r := s.post(message); r.status != 200 || r.code != 0 {
		t.Errorf("afterwards: %d %s", r.status, r.body)
	}
	if err := s.stop(); err != nil || len(s.h.each.held) > 0 {
		t.Errorf("%v; not given back: %v", err, s.h.each.held)
	}
}

// Nor all the room for large messages.
func TestHTTPRoomForLargeBodiesIsShared(t *testing.T) {
	s := newSite(t, func(_ *Options, o *HTTPOptions) { o.MaxEach = 64 })
	all := s.verifier.known[allToken]
	for range maxLargeEach { // as those hold that send slowly
		if !s.h.largeEach.take(all) {
			t.Fatal("it has less than its share")
		}
		s.h.large <- struct{}{}
	}
	large := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + strings.Repeat(" ", smallBody)
	if r := s.post(large); r.status != http.StatusServiceUnavailable || r.code != codeBusy {
		t.Errorf("one more: %d %s", r.status, r.body)
	}
	if r := s.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); r.status != 200 {
		t.Errorf("a small one: %d %s", r.status, r.body)
	}
	for range maxLargeEach {
		if r := s.as(readerToken, large); r.status != 200 {
			t.Fatalf("another's: %d %s", r.status, r.body)
		}
	}
	if len(s.h.large) != maxLargeEach || len(s.h.largeEach.held) != 1 {
		t.Errorf("not given back: %d %v", len(s.h.large), s.h.largeEach.held)
	}
}

// A client that goes away does not take back its refund: it completes, and its
// key tells so.
func TestHTTPAClientThatGoesAway(t *testing.T) {
	for _, c := range []struct {
		name, meta string
		headers    []string
	}{
		{"classic", keyed(`"k"`), nil},
		{"new era", sessionlessMeta(`,"` + MetaKey + `":"k"`), sessionlessHeaders("tools/call", "trigger_refund")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, nil)
			g := gate(s.desk)
			ctx, leave := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.addr+pathMCP, strings.NewReader(toolsCall("1", "trigger_refund", ten, c.meta)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+allToken)
			for i := 0; i < len(c.headers); i += 2 {
				req.Header.Set(c.headers[i], c.headers[i+1])
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				if resp, err := s.client.Do(req); err == nil {
					resp.Body.Close()
					t.Error("it was answered")
				}
			}()
			<-g.arrived
			leave()
			<-gone
			time.Sleep(20 * time.Millisecond) // the server hears of it
			ended := make(chan error, 1)
			go func() { ended <- s.stop() }()
			select {
			case err := <-ended:
				t.Fatalf("the server stops though a refund is under way: %v", err)
			case <-time.After(50 * time.Millisecond):
			}
			close(g.open)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			out := callTool(t, s.desk, "get_operation", `{"operation_key":"k"}`, "")
			if out.Result["status"] != "done" || balance(t, s.desk) != "490" {
				t.Errorf("its key tells %s", out.raw)
			}
		})
	}
}

func TestHTTPAnswersWhatRunsWhenItStops(t *testing.T) {
	s := newSite(t, nil)
	g := gate(s.desk)
	const calls = 20
	replies := make(chan reply, calls)
	for i := range calls {
		go func() {
			r, err := s.try("POST", pathMCP, toolsCall(fmt.Sprint(i), "trigger_refund", strings.Replace(ten, "10", "1", 1), keyed(fmt.Sprintf(`"k%d"`, i))))
			if err != nil {
				t.Error(err)
			}
			replies <- r
		}()
		<-g.arrived
	}
	ended := make(chan error, 1)
	go func() { ended <- s.stop() }()
	for s.h.draining.Load() == false {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	if c, err := net.Dial("tcp", s.addr); err == nil {
		c.Close()
		t.Error("it still accepts")
	}
	close(g.open)
	for range calls {
		if r := <-replies; r.status != 200 || r.result == nil {
			t.Errorf("it answers %d %s", r.status, r.body)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if b := balance(t, s.desk); b != "480" {
		t.Errorf("the balance is %s", b)
	}
}

func TestHTTPGivesUpInTheEnd(t *testing.T) {
	s := newSite(t, nil)
	s.h.drain = 50 * time.Millisecond
	g := gate(s.desk)
	go func() { _, _ = s.try("POST", pathMCP, toolsCall("1", "trigger_refund", ten, keyed(`"lost-1"`))) }()
	<-g.arrived
	if err := s.stop(); err == nil {
		t.Error("it ends as if all were well")
	}
	if !strings.Contains(s.log.String(), `"operation":"lost-1"`) {
		t.Errorf("the log does not name the operation: %s", s.log)
	}
	close(g.open)
}

func TestHTTPAccidentsTellNothing(t *testing.T) {
	s := newSite(t, nil)
	s.desk.app.Ledger = brokenLedger{s.desk.app.Ledger, func(context.Context) (ledger.Outcome, error) { panic("password=hunter2") }}
	for name, r := range map[string]reply{
		"classic": s.post(toolsCall("1", "trigger_refund", ten, "")),
		"new era": s.post(toolsCall("1", "trigger_refund", ten, sessionlessMeta("")), sessionlessHeaders("tools/call", "trigger_refund")...),
	} {
		if r.code != -32603 || r.words != "Internal error" || strings.Contains(r.body, "hunter2") {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	s.verifier.known = nil
	s.verifier.fails = panicky{}
	if r := s.post(`{}`); r.status != http.StatusInternalServerError || r.code != -32603 || strings.Contains(r.body, "hunter2") {
		t.Errorf("a verifier that panics: %d %s", r.status, r.body)
	}
	if !strings.Contains(s.log.String(), "hunter2") {
		t.Error("the log does not tell the cause")
	}
}

// panicky is an error that can not even be read.
type panicky struct{}

func (panicky) Error() string { panic("hunter2") }

func TestHTTPMetricsNeedTheirToken(t *testing.T) {
	s := newSite(t, func(_ *Options, o *HTTPOptions) {
		o.Metrics, o.MetricsToken = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "numbers") }), "the-metrics-token"
	})
	if r := s.do("GET", pathMetrics, "", "Authorization", "Bearer the-metrics-token"); r.status != 200 || r.body != "numbers" {
		t.Errorf("with it: %d %s", r.status, r.body)
	}
	for _, token := range []string{"", "Bearer " + allToken, "Bearer ", "Basic the-metrics-token"} {
		if r := s.do("GET", pathMetrics, "", "Authorization", token); r.status != http.StatusUnauthorized || bytes.Contains([]byte(r.body), []byte("numbers")) {
			t.Errorf("%q: %d %s", token, r.status, r.body)
		}
	}
	if r := s.do("GET", pathMetrics, "", "Authorization", "Bearer the-metrics-token", "Host", "evil.example"); r.status != http.StatusForbidden {
		t.Errorf("from elsewhere: %d", r.status)
	}
}

func TestHTTPWithoutAuthEverybodyIsTheOne(t *testing.T) {
	s := newSite(t, func(_ *Options, o *HTTPOptions) {
		o.Verifier, o.Anonymous = nil, principal(t, "default", "anybody", access.Free, access.ScopesOf(access.CustomerRead))
	})
	if r := s.post(toolsCall("1", "get_customer_record", lookUp, ""), "Authorization", ""); r.status != 200 || r.code != 0 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.post(toolsCall("1", "trigger_refund", ten, ""), "Authorization", ""); r.status != 200 || r.code != codeDenied || r.header.Get("WWW-Authenticate") != "" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.do("GET", pathResource, ""); r.status != 404 {
		t.Errorf("metadata: %d", r.status)
	}
}
