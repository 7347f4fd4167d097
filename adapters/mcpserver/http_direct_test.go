package mcpserver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/operation"
)

// still is a clock that stands.
type still struct{}

func (still) Now() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

// counted are ids in a row.
type counted struct{ n *uint32 }

func (c counted) NewID() operation.ID {
	*c.n++
	id := operation.ID{6: 0x40, 8: 0x80}
	binary.BigEndian.PutUint32(id[12:], *c.n)
	return id
}

// twin is a server that answers what another one of its kind answers: its
// ledger, its clock and its ids are the same.
func twin(t *testing.T, change func(*Options)) (*HTTP, access.Principal) {
	t.Helper()
	who := principal(t, "default", "local", access.Pro, access.AgentScopes())
	store, ids := memory.New(), counted{new(uint32)}
	if err := demo.Seed(t.Context(), store, who.Tenant(), still{}, ids); err != nil {
		t.Fatal(err)
	}
	o := Options{Version: "test <1>", Toolsets: Toolsets(), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	s, err := New(&app.App{Ledger: store, Refunds: store, Payables: store, Journal: store, Clock: still{}, IDs: ids, CallTimeout: patience}, o)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.HTTP(HTTPOptions{Hosts: []string{"example.com"}, PublicURL: "http://example.com/mcp", MaxInFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	return h, who
}

// roads answer a message that came through the gate: as the server does, and
// all through the SDK.
var roads = [2]func(*HTTP, http.ResponseWriter, *http.Request, *visit, message){(*HTTP).message, (*HTTP).throughSDK}

// A call of the sessionless protocol is answered as the SDK would have it
// answered: same status, same result or error. direct says whether the SDK is
// left out.
func TestHTTPDirectAnswersAreThoseOfTheSDK(t *testing.T) {
	const caps = `"io.modelcontextprotocol/clientCapabilities":`
	const info = `"io.modelcontextprotocol/clientInfo":`
	const version = `"` + metaVersion + `":"` + sessionless + `"`
	meta := func(members ...string) string { return `{` + strings.Join(members, ",") + `}` }
	plain := meta(version, caps+`{}`)
	params := func(name, arguments, meta string) string {
		return `{"name":` + name + `,"arguments":` + arguments + `,"_meta":` + meta + `}`
	}
	const record, refund = `"get_customer_record"`, `"trigger_refund"`
	withKey := func(key string) string { return meta(version, caps+`{}`, `"`+MetaKey+`":`+key) }
	headers := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	usual := func(name string) http.Header { return headers(sessionlessHeaders("tools/call", name)...) }
	looks, refunds := usual("get_customer_record"), usual("trigger_refund")
	good := params(record, lookUp, plain)
	for _, c := range []struct {
		name, params string
		header       http.Header
		direct       bool
		status       int
		change       func(*Options)
	}{
		{name: "a look-up", params: good, header: looks, direct: true, status: 200},
		{name: "a refund", params: params(refund, ten, plain), header: refunds, direct: true, status: 200},
		{name: "a refund with a key", params: params(refund, ten, withKey(`"k1"`)), header: refunds, direct: true, status: 200},
		{name: "a key with escapes", params: params(refund, ten, withKey(`"\u006b1"`)), header: refunds, direct: true, status: 200},
		{name: "a key that is none", params: params(refund, ten, withKey(`7`)), header: refunds, direct: true, status: 400},
		{name: "a key that is null", params: params(refund, ten, withKey(`null`)), header: refunds, direct: true, status: 400},
		{name: "a key out of form", params: params(refund, ten, withKey(`"a b"`)), header: refunds, direct: true, status: 400},
		{name: "a key in the header", params: params(refund, ten, plain), header: headers(append(sessionlessHeaders("tools/call", "trigger_refund"), headerOfKey, "k1")...), direct: true, status: 200},
		{name: "a refusal", params: params(refund, strings.Replace(ten, "10", "9999", 1), withKey(`"k1"`)), header: refunds, direct: true, status: 200},
		{name: "a refusal without a key", params: params(refund, strings.Replace(ten, "00001", "00002", 1), plain), header: refunds, direct: true, status: 200},
		{name: "nobody", params: params(record, `{"customer_id":"CUST-77777"}`, plain), header: looks, direct: true, status: 200},
		{name: "invalid arguments", params: params(refund, `{"customer_id":7,"amount":"<10>","x&":1}`, plain), header: refunds, direct: true, status: 400},
		{name: "invalid arguments as a result", params: params(refund, `{"customer_id":7,"amount":"<10>","x&":1}`, plain), header: refunds, direct: true, status: 200,
			change: func(o *Options) { o.InputErrorsAsResults = true }},
		{name: "no arguments", params: `{"name":"get_customer_record","_meta":` + plain + `}`, header: looks, direct: true, status: 400},
		{name: "null arguments", params: params(record, `null`, plain), header: looks, direct: true, status: 400},
		{name: "a list of arguments", params: params(record, `[]`, plain), header: looks, direct: true, status: 400},
		{name: "an argument twice", params: params(record, `{"customer_id":"CUST-00001","customer_id":"CUST-00002"}`, plain), header: looks, direct: true, status: 400},
		{name: "deep arguments", params: params(record, strings.Repeat(`{"a":`, 900)+"1"+strings.Repeat("}", 900), plain), header: looks, direct: true, status: 400},
		{name: "a text that is half a pair", params: params(record, `{"customer_id":"\ud800"}`, plain), header: looks, direct: true, status: 400},
		{name: "an unknown tool", params: params(`"no_such_tool"`, `{}`, plain), header: usual("no_such_tool"), direct: true, status: 400},
		{name: "a name with escapes", params: params(`"\u0067et_customer_record"`, lookUp, plain), header: looks, direct: true, status: 200},
		{name: "a client that says who it is", params: params(record, lookUp, meta(version, caps+`{}`, info+`{"name":"c","version":"1","title":"C"}`)), header: looks, direct: true, status: 200},
		{name: "with icons", params: params(record, lookUp, meta(version, caps+`{}`, info+`{"name":"c","version":"1","icons":[{"src":"x"}]}`)), header: looks, direct: true, status: 200},
		{name: "a client that says it wrong", params: params(record, lookUp, meta(version, caps+`{}`, info+`{"name":7}`)), header: looks, status: 400},
		{name: "with wrong icons", params: params(record, lookUp, meta(version, caps+`{}`, info+`{"name":"c","icons":"x"}`)), header: looks, status: 400},
		{name: "a client that is null", params: params(record, lookUp, meta(version, caps+`{}`, info+`null`)), header: looks, status: 400},
		{name: "a client that is a text", params: params(record, lookUp, meta(version, caps+`{}`, info+`"c"`)), header: looks, status: 400},
		{name: "a client that can do much", params: params(record, lookUp, meta(version, caps+`{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{}},"experimental":{"x":1},"extensions":{"a/b":{}}}`)), header: looks, direct: true, status: 200},
		{name: "no capabilities", params: params(record, lookUp, meta(version)), header: looks, status: 400},
		{name: "null capabilities", params: params(record, lookUp, meta(version, caps+`null`)), header: looks, status: 400},
		{name: "a list of capabilities", params: params(record, lookUp, meta(version, caps+`[]`)), header: looks, status: 400},
		{name: "capabilities out of form", params: params(record, lookUp, meta(version, caps+`{"sampling":7}`)), header: looks, status: 400},
		{name: "a progress token", params: params(record, lookUp, meta(version, caps+`{}`, `"progressToken":{}`, `"x":[1,{"y":null}]`)), header: looks, direct: true, status: 200},
		{name: "a level of logs out of form", params: params(record, lookUp, meta(version, caps+`{}`, `"io.modelcontextprotocol/logLevel":7`)), header: looks, direct: true, status: 200},
		{name: "a later version", params: params(record, lookUp, strings.ReplaceAll(plain, sessionless, "2027-01-01")), header: headers(headerOfVersion, "2027-01-01", headerOfMethod, "tools/call", headerOfName, "get_customer_record"), status: 400},
		{name: "a later version in the body", params: params(record, lookUp, strings.ReplaceAll(plain, sessionless, "2027-01-01")), header: looks, status: 400},
		{name: "a classic version in the header", params: good, header: headers(headerOfVersion, newestClassic, headerOfMethod, "tools/call", headerOfName, "get_customer_record"), status: 400},
		{name: "no version in the header", params: good, header: headers(headerOfMethod, "tools/call", headerOfName, "get_customer_record"), status: 400},
		{name: "no version in the body", params: params(record, lookUp, meta(caps+`{}`)), header: looks, status: 400},
		{name: "no method in the header", params: good, header: headers(headerOfVersion, sessionless, headerOfName, "get_customer_record"), status: 400},
		{name: "another method in the header", params: good, header: headers(headerOfVersion, sessionless, headerOfMethod, "tools/list", headerOfName, "get_customer_record"), status: 400},
		{name: "no name in the header", params: good, header: headers(headerOfVersion, sessionless, headerOfMethod, "tools/call"), status: 400},
		{name: "another name in the header", params: params(refund, ten, plain), header: looks, status: 400},
		{name: "two names in the header", params: good, header: headers(append(sessionlessHeaders("tools/call", "get_customer_record"), headerOfName, "x")...), status: 200},
		{name: "an event to go on from", params: good, header: headers(append(sessionlessHeaders("tools/call", "get_customer_record"), headerOfLastEvent, "1")...), status: 400},
		{name: "more params", params: strings.TrimSuffix(good, "}") + `,"requestState":"x"}`, header: looks, status: 200},
		{name: "params out of form", params: strings.TrimSuffix(good, "}") + `,"requestState":7}`, header: looks, status: 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			var twins [len(roads)]*HTTP
			var who access.Principal
			for i := range twins {
				twins[i], who = twin(t, c.change)
			}
			for _, id := range []string{`7`, `"\u0061<"`} { // the second of a refund with a key is a replay
				m := inspect([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":` + c.params + `}`))
				if m.sort != request {
					t.Fatalf("the gate says %v", m.failed)
				}
				if plainCall(c.header, m) != c.direct {
					t.Errorf("answered without the SDK: %v", !c.direct)
				}
				var answers [len(roads)]*httptest.ResponseRecorder
				for i, road := range roads {
					r := httptest.NewRequest(http.MethodPost, pathMCP, nil)
					r.Header = c.header.Clone()
					r.Header.Set("Content-Type", "application/json")
					answers[i] = httptest.NewRecorder()
					road(twins[i], answers[i], r, &visit{principal: who, headerKeys: c.header[headerOfKey]}, m)
				}
				got, want := answers[0], answers[1]
				if got.Code != c.status || want.Code != c.status || !reflect.DeepEqual(read(t, got), read(t, want)) {
					t.Errorf("it answers\n%d %s, the SDK\n%d %s", got.Code, got.Body, want.Code, want.Body)
				}
			}
		})
	}
}

func read(t *testing.T, w *httptest.ResponseRecorder) any {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return v
}
