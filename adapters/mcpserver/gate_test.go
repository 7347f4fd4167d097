package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// secret stands in bad lines wherever a client's data would stand.
const secret = "4111-1111"

// wrap puts the text of an amount into a call that is good otherwise.
func wrap(amount string) string {
	return `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"trigger_refund","arguments":{"customer_id":"` + secret + `","amount":` + amount + `}}}`
}

// unreadableLines are logged with the reason, and never answered.
var unreadableLines = []struct{ name, line, reason string }{
	{"text", "garbage " + secret, "not JSON"},
	{"an open object", `{`, "not JSON"},
	{"a closing brace", `}`, "not JSON"},
	{"a cut-off message", `{"jsonrpc":"2.0","method":"` + secret + `","params":`, "not JSON"},
	{"a trailing comma", `{"jsonrpc":"2.0","id":79,"method":"ping",}`, "not JSON"},
	{"trailing text", `{"jsonrpc":"2.0","id":80,"method":"ping"} x`, "not JSON"},
	{"two messages", `{"jsonrpc":"2.0","id":81,"method":"ping"}{"jsonrpc":"2.0","id":82,"method":"ping"}`, "not JSON"},
	{"a comment", `{"jsonrpc":"2.0","id":85,"method":"ping"} // hi`, "not JSON"},
	{"an unquoted name", `{jsonrpc:"2.0","id":86,"method":"ping"}`, "not JSON"},
	{"single quotes", `{'jsonrpc':'2.0','id':86,'method':'ping'}`, "not JSON"},
	{"a tab in a string", "{\"jsonrpc\":\"2.0\",\"id\":89,\"method\":\"pi\tng\"}", "not JSON"},
	{"a carriage return between two messages", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}", "not JSON"},
	{"NUL bytes", "\x00\x00\x00\x00", "not JSON"},
	{"a byte order mark", "\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "not JSON"},
	{"a form feed around", "\f" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "not JSON"},
	{"a no-break space around", "\u00a0" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "not JSON"},
	{"a bad escape", `{"jsonrpc":"2.0","id":1,"method":"\x70ing"}`, "not JSON"},
	{"a short escape", `{"jsonrpc":"2.0","id":1,"method":"\u70"}`, "not JSON"},
	{"bytes that are no text", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/\xff\xfe\"}", "not UTF-8"},
	{"an overlong slash", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools\xc0\xafcall\"}", "not UTF-8"},
	{"half a character in UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xed\xa0\x80\"}", "not UTF-8"},
	{"Latin-1", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"caf\xe9\"}", "not UTF-8"},
	{"terminal codes", "\x1b[2J\"quoted\\", "not JSON"},
	{"UTF-16", "{\x00}\x00", "not JSON"},
	{"brackets without end", strings.Repeat("[", 200000), "not JSON"},
	{"objects without end", strings.Repeat(`{"a":`, 100000), "not JSON"},
	{"NaN", wrap("NaN"), "not JSON"},
	{"Infinity", wrap("Infinity"), "not JSON"},
	{"-Infinity", wrap("-Infinity"), "not JSON"},
	{"hexadecimal", wrap("0x10"), "not JSON"},
	{"a leading zero", wrap("010"), "not JSON"},
	{"a plus", wrap("+10"), "not JSON"},
	{"a leading point", wrap(".5"), "not JSON"},
	{"a trailing point", wrap("5."), "not JSON"},
	{"an underscore", wrap("1_000"), "not JSON"},
	{"a minus alone", wrap("-"), "not JSON"},
	{"two minuses", wrap("--5"), "not JSON"},
	{"full-width digits", wrap("１０"), "not JSON"},
	{"an exponent without digits", wrap("1e"), "not JSON"},
	{"undefined", wrap("undefined"), "not JSON"},
	{"Python's None", wrap("None"), "not JSON"},
	{"Python's True", wrap("True"), "not JSON"},
	{"no value", wrap(""), "not JSON"},

	{"an empty batch", `[]`, "an array"},
	{"a batch of a refund", `[` + wrap("10") + `]`, "an array"},
	{"a batch of two", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, "an array"},
	{"brackets, far too deep", strings.Repeat("[", 60000) + strings.Repeat("]", 60000), "an array"},
	{"a number", `42`, "not an object"},
	{"a string", `"ping"`, "not an object"},
	{"null", `null`, "not an object"},
	{"true", `true`, "not an object"},

	{"an empty object", `{}`, `jsonrpc is not "2.0"`},
	{"another object", `{"foo":1}`, `jsonrpc is not "2.0"`},
	{"no version", `{"id":90,"method":"ping"}`, `jsonrpc is not "2.0"`},
	{"version 1.0", `{"jsonrpc":"1.0","id":91,"method":"ping"}`, `jsonrpc is not "2.0"`},
	{"version 2.0 as a number", `{"jsonrpc":2.0,"id":92,"method":"ping"}`, `jsonrpc is not "2.0"`},
	{"version 2", `{"jsonrpc":"2","id":92,"method":"ping"}`, `jsonrpc is not "2.0"`},
	{"version with a space", `{"jsonrpc":"2.0 ","id":92,"method":"ping"}`, `jsonrpc is not "2.0"`},
	{"version null", `{"jsonrpc":null,"id":92,"method":"ping"}`, `jsonrpc is not "2.0"`},
	{"names in upper case", `{"JSONRPC":"2.0","ID":100,"METHOD":"ping"}`, `jsonrpc is not "2.0"`},
	{"a name with a look-alike", `{"jſonrpc":"2.0","id":100,"method":"ping"}`, `jsonrpc is not "2.0"`},

	{"an id of null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, "the id is"},
	{"a refund under the id null", strings.Replace(wrap("10"), "77", "null", 1), "the id is"},
	{"an id of true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, "the id is"},
	{"an object as an id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, "the id is"},
	{"an array as an id", `{"jsonrpc":"2.0","id":[96],"method":"ping"}`, "the id is"},
	{"a fraction as an id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, "the id is"},
	{"1.0 as an id", `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`, "the id is"},
	{"1e3 as an id", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, "the id is"},
	{"1E3 as an id", `{"jsonrpc":"2.0","id":1E3,"method":"ping"}`, "the id is"},
	{"-0 as an id", `{"jsonrpc":"2.0","id":-0,"method":"ping"}`, "the id is"},
	{"2^53 as an id", `{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}`, "the id is"},
	{"-2^53 as an id", `{"jsonrpc":"2.0","id":-9007199254740992,"method":"ping"}`, "the id is"},
	{"2^63 as an id", `{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}`, "the id is"},
	{"a huge id", `{"jsonrpc":"2.0","id":` + strings.Repeat("9", 400) + `,"method":"ping"}`, "the id is"},
	{"half a character as an id", `{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`, "the id is"},
	{"two ids", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, "more than one id"},
	{"two ids, one escaped", `{"jsonrpc":"2.0","id":1,"\u0069d":1,"method":"ping"}`, "more than one id"},

	{"no method", `{"jsonrpc":"2.0","id":93}`, "neither a request nor a response"},
	{"a version alone", `{"jsonrpc":"2.0"}`, "neither a request nor a response"},
	{"Method", `{"jsonrpc":"2.0","id":93,"Method":"ping"}`, "neither a request nor a response"},
	{"a result without an id", `{"jsonrpc":"2.0","result":{}}`, "neither a request nor a response"},
	{"a method of null", `{"jsonrpc":"2.0","id":94,"method":null}`, "the method is not a string"},
	{"a number as a method", `{"jsonrpc":"2.0","id":94,"method":5}`, "the method is not a string"},
	{"an array as a method", `{"jsonrpc":"2.0","id":94,"method":["ping"]}`, "the method is not a string"},
	{"a method and a result", `{"jsonrpc":"2.0","id":94,"method":"ping","result":{}}`, "both a request and a response"},
	{"a method and an error", `{"jsonrpc":"2.0","id":94,"method":"ping","error":null}`, "both a request and a response"},

	{"a string as params", `{"jsonrpc":"2.0","id":98,"method":"ping","params":"` + secret + `"}`, "params is not an object"},
	{"a number as params", `{"jsonrpc":"2.0","id":99,"method":"ping","params":5}`, "params is not an object"},
	{"an array as params", `{"jsonrpc":"2.0","id":99,"method":"tools/call","params":["x",{}]}`, "params is not an object"},
	{"false as params", `{"jsonrpc":"2.0","id":99,"method":"ping","params":false}`, "params is not an object"},

	{"a notification with a name twice", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}`, "duplicate member name"},
	{"a notification with half a character", `{"jsonrpc":"2.0","method":"notifications/\ud800"}`, "unpaired surrogate"},
	{"a notification that is too deep", `{"jsonrpc":"2.0","method":"notifications/x","params":{"a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}}`, "nested too deeply"},
	{"a call without an id, its arguments too deep", `{"jsonrpc":"2.0","method":"ping","params":{"arguments":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}}`, "nested too deeply"},
}

// refusedLines get an error under the id 77.
var refusedLines = []struct {
	name, line string
	code       int64
	message    string
}{
	{"the method twice", `{"jsonrpc":"2.0","id":77,"method":"ping","method":"ping"}`, -32600, "Invalid Request: duplicate member name"},
	{"the version twice", `{"jsonrpc":"2.0","jsonrpc":"2.0","id":77,"method":"ping"}`, -32600, "Invalid Request: duplicate member name"},
	{"the params twice", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"x"},"params":{"name":"y"}}`, -32600, "Invalid Request: duplicate member name"},
	{"the name twice", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"x","n\u0061me":"y"}}`, -32600, "Invalid Request: duplicate member name"},
	{"the arguments twice", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"x","arguments":{},"arguments":{}}}`, -32600, "Invalid Request: duplicate member name"},
	{"a name in _meta twice", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"x","_meta":{"a":1,"a":2}}}`, -32600, "Invalid Request: duplicate member name"},
	{"a foreign name twice", `{"jsonrpc":"2.0","id":77,"method":"ping","x":1,"x":1}`, -32600, "Invalid Request: duplicate member name"},
	{"arguments of another method", `{"jsonrpc":"2.0","id":77,"method":"ping","params":{"arguments":{"a":1,"a":1}}}`, -32600, "Invalid Request: duplicate member name"},
	{"half a character in the method", `{"jsonrpc":"2.0","id":77,"method":"\ud800"}`, -32600, "Invalid Request: unpaired surrogate escape"},
	{"half a character in the tool's name", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"\ud800"}}`, -32600, "Invalid Request: unpaired surrogate escape"},
	{"half a character in a name", `{"jsonrpc":"2.0","id":77,"method":"ping","\udc00":1}`, -32600, "Invalid Request: unpaired surrogate escape"},
	{"too deep", `{"jsonrpc":"2.0","id":77,"method":"ping","params":{"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}}`, -32600, "Invalid Request: nested too deeply"},
	{"_meta too deep", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"x","_meta":` + strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000) + `}}`, -32600, "Invalid Request: nested too deeply"},
	{"too many members", `{"jsonrpc":"2.0","id":77,"method":"ping"` + manyMembers(5000) + `}`, -32600, "Invalid Request: too many members in one object"},
	{"a call without params", `{"jsonrpc":"2.0","id":77,"method":"tools/call"}`, -32602, "Invalid params: tools/call needs the name of a tool, a string"},
	{"a call with params null", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":null}`, -32602, "Invalid params: params must be an object, not null"},
	{"a ping with params null", `{"jsonrpc":"2.0","id":77,"method":"ping","params":null}`, -32602, "Invalid params: params must be an object, not null"},
	{"a call without a name", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"arguments":{}}}`, -32602, "Invalid params: tools/call needs the name of a tool, a string"},
	{"a call with Name", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"Name":"x"}}`, -32602, "Invalid params: tools/call needs the name of a tool, a string"},
	{"a number as a name", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":5}}`, -32602, "Invalid params: tools/call needs the name of a tool, a string"},
	{"_meta null", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"x","_meta":null}}`, -32602, "Invalid params: _meta must be an object"},
	{"_meta a string", `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"x","_meta":"2026-07-28"}}`, -32602, "Invalid params: _meta must be an object"},
	{"initialize without params", `{"jsonrpc":"2.0","id":77,"method":"initialize"}`, -32602, "Invalid params: initialize needs a protocolVersion, a string"},
	{"half a character in the version", `{"jsonrpc":"2.0","id":77,"method":"initialize","params":{"protocolVersion":"\ud800"}}`, -32600, "Invalid Request: unpaired surrogate escape"},
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":0`, i)
	}
	return b.String()
}

func TestGateSkipsWhatIsNoMessage(t *testing.T) {
	if len(unreadableLines) < 90 {
		t.Errorf("only %d kinds of bad lines", len(unreadableLines))
	}
	for _, tt := range unreadableLines {
		t.Run(tt.name, func(t *testing.T) {
			m := inspect([]byte(tt.line))
			if m.sort != unreadable || !strings.HasPrefix(m.reason, tt.reason) {
				t.Errorf("inspect = %v %q, want %q", m.sort, m.reason, tt.reason)
			}
			if strings.Contains(m.reason, secret) {
				t.Errorf("the reason repeats the line: %s", m.reason)
			}
		})
	}
}

func TestGateRefusesUnderTheID(t *testing.T) {
	for _, tt := range refusedLines {
		t.Run(tt.name, func(t *testing.T) {
			m := inspect([]byte(tt.line))
			if m.sort != refused || m.failed == nil || m.failed.Code != tt.code || m.failed.Message != tt.message || string(m.id.raw) != "77" {
				t.Errorf("inspect = %v %q %+v, want %d %s", m.sort, m.reason, m.failed, tt.code, tt.message)
			}
		})
	}
}

func TestGateLetsMessagesThrough(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for _, tt := range []struct {
		name, line string
		want       lineSort
		newEra     bool
	}{
		{"a ping", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, request, false},
		{"white space", " \t{ \"jsonrpc\" : \"2.0\" , \"id\" : \"ws\" , \"method\" : \"ping\" } \r", request, false},
		{"an escaped version", `{"jsonrpc":"\u0032.0","id":1,"method":"ping"}`, request, false},
		{"foreign members", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"x","foo":{}}`, request, false},
		{"an empty id", `{"jsonrpc":"2.0","id":"","method":"ping"}`, request, false},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, notification, false},
		{"a response", `{"jsonrpc":"2.0","id":1,"result":{}}`, response, false},
		{"an error", `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":""}}`, response, false},
		{"a call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`, request, false},
		{"an escaped call", `{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"x","arguments":{}}}`, request, false},
		{"names twice in the arguments are the tool's to judge", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1,"a":2}}}`, request, false},
		{"deep arguments too", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":` + deep + `}}`, request, false},
		{"half characters too", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":"\ud800"}}}`, request, false},
		{"sessionless", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",` + newEraMeta + `}}`, request, true},
		{"sessionless list", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + newEraMeta + `}}`, request, true},
		{"later than sessionless", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}}`, request, true},
		{"a classic version in _meta", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}}`, request, false},
		{"a version that is no string", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":20260728}}}`, request, false},
		{"a sessionless initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` + newEraMeta + `}}`, request, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := inspect([]byte(tt.line))
			if m.sort != tt.want || m.newEra != tt.newEra {
				t.Errorf("inspect = %v %q, newEra %v, want %v, %v", m.sort, m.reason, m.newEra, tt.want, tt.newEra)
			}
		})
	}
}

func TestGateKeepsEveryID(t *testing.T) {
	for _, raw := range []string{"0", "1", "-1", "9007199254740991", "-9007199254740991", `""`, `"a"`, `"1"`, `"\u0031"`, `"é"`, `"\ud83d\ude00"`, `"a b"`, `"\""`} {
		m := inspect([]byte(`{"jsonrpc":"2.0","id":` + raw + `,"method":"ping"}`))
		if m.sort != request || string(m.id.raw) != raw {
			t.Errorf("the id %s is kept as %s", raw, m.id.raw)
			continue
		}
		id, err := m.id.forSession()
		if err != nil || keyOf(id) != m.id.key {
			t.Errorf("the id %s comes back as %q, %v, not as %q", raw, keyOf(id), err, m.id.key)
		}
	}
}

func FuzzGate(f *testing.F) {
	const longest = 2000 // the fuzzer spends all its time on making longer seeds shorter
	for _, l := range unreadableLines {
		if len(l.line) <= longest {
			f.Add([]byte(l.line))
		}
	}
	for _, l := range refusedLines {
		if len(l.line) <= longest {
			f.Add([]byte(l.line))
		}
	}
	for _, l := range []string{initializeLine, initializedLine, call("1", "x"), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",` + newEraMeta + `}}`} {
		f.Add([]byte(l))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m := inspect(line)
		if m.sort == unreadable {
			if m.reason == "" {
				t.Fatalf("no reason for %q", line)
			}
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(line, &members); err != nil || !utf8.Valid(line) {
			t.Fatalf("%q passes as %v, but: %v", line, m.sort, err)
		}
		text := func(name string) (s string) {
			json.Unmarshal(members[name], &s)
			return s
		}
		if text("jsonrpc") != "2.0" {
			t.Fatalf("%q passes with the version %s", line, members["jsonrpc"])
		}
		id, hasID := members["id"]
		switch m.sort {
		case response:
			if members["method"] != nil || !hasID {
				t.Fatalf("%q is no response", line)
			}
			return
		case notification:
			if hasID {
				t.Fatalf("%q has an id", line)
			}
		case request, refused:
			if string(id) != string(m.id.raw) {
				t.Fatalf("the id of %q is read as %s", line, m.id.raw)
			}
			session, err := m.id.forSession()
			if err != nil || keyOf(session) != m.id.key {
				t.Fatalf("the id of %q does not come back: %q, %v", line, keyOf(session), err)
			}
		}
		if m.sort == refused {
			if m.failed == nil || m.failed.Code == 0 {
				t.Fatalf("%q is refused without a reason", line)
			}
			return
		}
		if text("method") != m.method {
			t.Fatalf("the method of %q is read as %q", line, m.method)
		}
		var params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if p := members["params"]; p != nil && string(p) != "null" {
			var object map[string]json.RawMessage
			if err := json.Unmarshal(p, &object); err != nil {
				t.Fatalf("the params of %q pass: %v", line, err)
			}
			json.Unmarshal(object["name"], &params.Name)
			params.Arguments = object["arguments"]
		}
		if m.sort == request && m.method == methodToolsCall && (params.Name != m.call.Name || string(params.Arguments) != string(m.call.Arguments.Raw())) {
			t.Fatalf("the call of %q is read as %q with %s", line, m.call.Name, m.call.Arguments.Raw())
		}
	})
}

func BenchmarkGate(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","id":1234567,"method":"tools/call","params":{"name":"trigger_refund","arguments":{"customer_id":"CUST-00001","amount":10.50,"reason":"Item arrived damaged, the customer sent photos"},"_meta":{"progressToken":"t-1","refundledger.dev/operation-key":"k-0123456789"}}}`)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if m := inspect(line); m.sort != request {
			b.Fatal(m.reason)
		}
	}
}
