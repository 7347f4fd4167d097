package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/money"
)

// Whatever document comes, the server accepts it if and only if the schema that
// it advertises does. The exceptions stand in one place, beyondSchema.
func TestSchemaAndServerAgree(t *testing.T) {
	server := newServer(t, nil)
	for _, tool := range allTools() {
		resolved, err := tool.input.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		fields := document(tool.input)
		t.Run(tool.name, rapid.MakeCheck(func(t *rapid.T) {
			doc := fields.Draw(t, "document")
			var value any
			if err := json.Unmarshal([]byte(doc), &value); err != nil {
				t.Fatalf("the generator made %s: %v", doc, err)
			}
			if beyondSchema(value, doc) {
				return
			}
			schema := resolved.Validate(value)
			issues := judge(t, server, tool, doc)
			if (schema == nil) != (len(issues) == 0) {
				t.Fatalf("%s\nthe schema says %v\nthe server says %v", doc, schema, issues)
			}
			for _, i := range issues {
				if i.Code == "" || i.Message == "" || i.Path == nil {
					t.Fatalf("an issue says too little: %+v", i)
				}
			}
		}))
	}
}

// judge returns the issues of a document, whatever the use case makes of it.
func judge(t *rapid.T, s desk, tool tool, doc string) []fault.Issue {
	args, err := strictjson.Check([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	out, err := tool.serve(t.Context(), s.app, s.app.Begin(app.Call{Principal: s.principal, Tool: tool.name}), args, nil)
	if err != nil && fault.Of(err) == nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return out.issues
}

// beyondSchema reports whether a document is judged by a rule that JSON Schema
// can not say, so that the two may differ: the decimals of an amount, and what
// a reason or a note is trimmed of, does not count or may not contain.
func beyondSchema(value any, doc string) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	if _, ok := object["amount"].(float64); ok {
		v, err := strictjson.Check([]byte(doc))
		if err != nil {
			return true
		}
		d, err := money.ParseDecimal(string(v.Lookup("amount").Raw()))
		if err != nil || d.Decimals() > 2 {
			return true
		}
	}
	for _, name := range []string{"reason", "note"} {
		text, ok := object[name].(string)
		if ok && (strings.TrimSpace(text) != text || strings.ContainsFunc(text, func(r rune) bool {
			return unicode.Is(unicode.Cf, r) || unicode.IsControl(r) || 0xe0000 <= r && r <= 0xe007f
		})) {
			return true
		}
	}
	return false
}

// document generates the text of a JSON document near what the schema asks for:
// valid values, edges, wrong types, missing and unknown names.
func document(s *jsonschema.Schema) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 49).Draw(t, "shape") == 0 {
			return rapid.SampledFrom([]string{`null`, `[]`, `"x"`, `1`, `true`, `[{}]`, `{}`}).Draw(t, "other")
		}
		var members []string
		for _, name := range s.PropertyOrder {
			switch rapid.IntRange(0, 19).Draw(t, name) {
			case 0: // absent
			case 1:
				members = append(members, quoted(name)+":"+anything().Draw(t, name+" anything"))
			case 2:
				members = append(members, quoted(strings.ToUpper(name))+":"+plausible(s.Properties[name]).Draw(t, name+" value"))
			default:
				members = append(members, quoted(name)+":"+plausible(s.Properties[name]).Draw(t, name+" value"))
			}
		}
		if rapid.IntRange(0, 19).Draw(t, "extra") == 0 {
			name := rapid.SampledFrom([]string{"x", "", "_meta", "customer_id ", "Amount", "rea\u017fon", "__proto__"}).Draw(t, "extra name")
			if !slices.ContainsFunc(members, func(m string) bool { return strings.HasPrefix(m, quoted(name)+":") }) {
				members = append(members, quoted(name)+":"+anything().Draw(t, "extra value"))
			}
		}
		return "{" + strings.Join(rapid.Permutation(members).Draw(t, "order"), ",") + "}"
	})
}

func anything() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{`null`, `true`, `false`, `0`, `-1`, `1e3`, `""`, `"10.00"`, `[]`, `{}`, `[[[]]]`, `{"a":{"b":null}}`, `"CUST-00001"`})
}

func plausible(s *jsonschema.Schema) *rapid.Generator[string] {
	switch s.Type {
	case "number":
		return rapid.OneOf(
			rapid.SampledFrom([]string{`0`, `-0`, `0.0`, `-0.0`, `0e5`, `0.01`, `0.009`, `1e-2`, `10.00`, `10.000`, `1e2`, `1E+2`, `999999.99`, `1000000`, `1000000.00`, `1e6`, `1000000.01`, `1e7`, `1e300`, `-1e300`, `-0.01`, `100.75`, `10.005`}),
			rapid.Custom(func(t *rapid.T) string {
				return money.FromMinor(rapid.Int64Range(-200, 100_000_200).Draw(t, "cents"), dollars).Major()
			}))
	case "integer":
		return rapid.OneOf(
			rapid.SampledFrom([]string{`0`, `1`, `100`, `101`, `-1`, `1.0`, `1e2`, `2.5`, `100.0`, `1e2.0`[:3], `99999999999`}),
			rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(-3, 103).Draw(t, "n")) }))
	case "boolean":
		return rapid.SampledFrom([]string{`true`, `false`})
	case "string":
		texts := []*rapid.Generator[string]{
			rapid.SampledFrom([]string{"", " ", "CUST-00001", "CUST-00002", "CUST-99999", "cust-00001", "CUST-1", "CUST-000010", " CUST-00001", "CUST-00001\n", "CUST-٠٠٠٠١", "1", "0", "17", "a-b_C9", "a b", "Item arrived damaged", "short", "123456789", "1234567890", "zehn\u00fcml\u00e4u", "\U0001F468\u200d\U0001F469 broke it", "x\x00y and more text", "refund \u202e00.01 now"}),
			rapid.StringMatching(`CUST-[0-9]{4,6}`),
			rapid.StringMatching(`[0-9]{1,20}`),
			rapid.StringMatching(`[A-Za-z0-9_-]{1,85}`),
			rapid.Custom(func(t *rapid.T) string {
				n := rapid.OneOf(rapid.IntRange(8, 12), rapid.IntRange(498, 502), rapid.IntRange(998, 1002)).Draw(t, "length")
				return strings.Repeat(rapid.SampledFrom([]string{"x", "ü", "\U0001F600", "漢"}).Draw(t, "letter"), n)
			}),
		}
		if s.Pattern != "" {
			texts = append(texts, rapid.StringMatching(s.Pattern))
		}
		if len(s.Enum) > 0 {
			texts = append(texts, rapid.Map(rapid.SampledFrom(s.Enum), func(v any) string { return v.(string) }))
		}
		return rapid.Map(rapid.OneOf(texts...), quoted)
	}
	panic("no values for " + s.Type)
}

var dollars = func() money.Currency {
	c, err := money.ParseCurrency("USD")
	if err != nil {
		panic(err)
	}
	return c
}()

func quoted(s string) string { return string(strictjson.AppendString(nil, s)) }
