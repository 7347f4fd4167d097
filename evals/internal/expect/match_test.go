package expect

import (
	"testing"

	"github.com/refundledger/refundledger/evals/internal/jsontree"
)

func parse(t *testing.T, text string) *jsontree.Node {
	t.Helper()
	n, err := jsontree.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct{ law, want, got, err string }{
		{"other members do not matter", `{"a": 1}`, `{"a": 1, "b": 2}`, ``},
		{"a missing member does", `{"b": 2}`, `{"a": 1}`, `want b = 2, got nothing there`},
		{"null is not nothing", `{"b": null}`, `{"a": 1}`, `want b = null, got nothing there`},
		{"numbers are exact", `{"a": 10.00}`, `{"a": 1e1}`, ``},
		{"a text is no number", `{"a": 10}`, `{"a": "10"}`, `want a = 10, got "10"`},
		{"arrays have the same length", `{"a": []}`, `{"a": [1]}`, `want a = 0 elements, got 1: [1]`},
		{"the place is named", `{"a": [{"b": 1}, {"b": 2}]}`, `{"a": [{"b": 1}, {"b": 3}]}`, `want a[1].b = 2, got 3`},
		{"a variable takes a value and keeps it", `{"a": "$x", "b": "$x"}`, `{"a": 1, "b": 1.0}`, ``},
		{"and no other", `{"a": "$x", "b": "$x"}`, `{"a": 1, "b": 2}`, `want b = 1 ($x), got 2`},
		{"a variable needs a value", `{"a": "$x"}`, `{}`, `want a = "$x", got nothing there`},
		{"absent", `{"a": {"$absent": true}}`, `{"b": 1}`, ``},
		{"absent, and yet there", `{"a": {"$absent": true}}`, `{"a": null}`, `want a = absent, got null`},
		{"any", `{"a": {"$any": true}}`, `{"a": null}`, ``},
		{"any, and none there", `{"a": {"$any": true}}`, `{}`, `want a = any value, got nothing there`},
		{"a pattern", `{"a": {"$matches": "^x+$"}}`, `{"a": "xx"}`, ``},
		{"a pattern that fails", `{"a": {"$matches": "^x+$"}}`, `{"a": "xy"}`, `want a = a match of "^x+$", got "xy"`},
		{"a pattern is for texts", `{"a": {"$matches": "1"}}`, `{"a": 1}`, `want a = a match of "1", got 1`},
		{"not", `{"a": 1, "b": {"$not": 1}}`, `{"a": 1, "b": 2}`, ``},
		{"not another's", `{"a": "$x", "b": {"$not": "$x"}}`, `{"a": 1, "b": 1}`, `want b = anything but 1, got just that`},
		{"an operator that is none", `{"a": {"$lt": 1}}`, `{"a": 0}`, `$lt is no operator; there are $matches, $any, $absent, $not`},
	} {
		got := ""
		if err := (Variables{}).Match(parse(t, tt.want), parse(t, tt.got), ""); err != nil {
			got = err.Error()
		}
		if got != tt.err {
			t.Errorf("%s:\n got %q\nwant %q", tt.law, got, tt.err)
		}
	}
}

func TestLawsOfEveryAnswer(t *testing.T) {
	const key = `"_meta":{"refundledger.dev/operation-key":"k"}`
	for _, tt := range []struct{ law, answer, err string }{
		{"a success", `{"result":{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1},` + key + `}}`, ``},
		{"text and structure differ", `{"result":{"content":[{"type":"text","text":"{\"a\":2}"}],"structuredContent":{"a":1},` + key + `}}`,
			`the text and the structured content of a success differ`},
		{"no structure", `{"result":{"content":[{"type":"text","text":"{}"}],` + key + `}}`, `a success without structured content`},
		{"no key", `{"result":{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}}`, `want the key "k" in _meta, got nothing there`},
		{"a refusal", `{"result":{"isError":true,"content":[{"type":"text","text":"No."},{"type":"text","text":"{\"error\":{\"code\":\"CONFLICT\",\"reason\":\"x\",\"message\":\"No.\",\"retryable\":false}}"}],` + key + `}}`, ``},
		{"a refusal in one block", `{"result":{"isError":true,"content":[{"type":"text","text":"No."}],` + key + `}}`, `a refusal is a sentence and a JSON text {"error": …}`},
		{"a refusal of an unknown code", `{"result":{"isError":true,"content":[{"type":"text","text":"No."},{"type":"text","text":"{\"error\":{\"code\":\"NOPE\",\"reason\":\"x\",\"message\":\"No.\",\"retryable\":false}}"}],` + key + `}}`,
			`"NOPE" is no code of the closed list`},
		{"a refusal that says two things", `{"result":{"isError":true,"content":[{"type":"text","text":"No."},{"type":"text","text":"{\"error\":{\"code\":\"CONFLICT\",\"reason\":\"x\",\"message\":\"Yes.\",\"retryable\":false}}"}],` + key + `}}`,
			`a refusal's sentence and message differ`},
		{"an error", `{"error":{"code":-32602,"message":"no"}}`, ``},
		{"an error of no contract", `{"error":{"code":0,"message":"no"}}`, `a protocol error with a code that is not of the contract`},
	} {
		a, err := Read(tt.answer)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := a.laws("trigger_refund", true, "k"); err != nil {
			got = err.Error()
		}
		if got != tt.err {
			t.Errorf("%s:\n got %q\nwant %q", tt.law, got, tt.err)
		}
	}
}
