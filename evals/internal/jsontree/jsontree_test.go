package jsontree

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNumbersAreComparedByWorthExactly(t *testing.T) {
	for _, tt := range []struct {
		law  string
		a, b string
		same bool
	}{
		{"zeros at the end count nothing", "10", "10.00", true},
		{"an exponent is only a spelling", "10", "1e1", true},
		{"so is a negative one", "0.01", "1E-2", true},
		{"minus zero is zero", "-0.0", "0", true},
		{"zero has no exponent", "0e99", "0", true},
		{"the sign counts", "-1", "1", false},
		{"digits beyond a float count", "0.1", "0.1000000000000000055", false},
		{"beyond 64 bits too", "9007199254740993", "9007199254740992", false},
		{"an exponent of any size costs nothing", "1e99999999999999999999", "10e99999999999999999998", true},
		{"and is told from the next one", "1e99999999999999999999", "1e99999999999999999998", false},
	} {
		if got := SameNumber(tt.a, tt.b); got != tt.same {
			t.Errorf("%s: SameNumber(%s, %s) = %t", tt.law, tt.a, tt.b, got)
		}
	}
}

func TestRatRefusesWhatIsFarBeyondMoney(t *testing.T) {
	for raw, want := range map[string]string{"499.79": "49979/100", "1e3": "1000/1", "1e400": "", "1e999999999": "", "-0.5": "-1/2"} {
		n, err := Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if r := n.Rat(); r != nil {
			got = r.String()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}

func TestProblemsNameTheirPlace(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"{\n  \"a\": 1,\n  \"a\": 2\n}", `3:3: duplicate key "a"`},
		{`{"a": {"b": 1, "\u0062": 2}}`, `1:16: duplicate key "b"`},
		{"[1,\n 2,\n x]", `3:2: invalid character 'x' looking for beginning of value`},
		{"[1,", `1:3: unexpected end of JSON input`},
		{"{} {}", `1:4: invalid character '{' after top-level value`},
		{"[\"a\xff\"]", `1:4: not UTF-8`},
	} {
		if _, err := Parse([]byte(tt.src)); err == nil || err.Error() != tt.want {
			t.Errorf("%q:\n got %v\nwant %s", tt.src, err, tt.want)
		}
	}
}

func TestDecodeReportsEveryProblemWithItsPath(t *testing.T) {
	var into struct {
		Name  string            `json:"name"`
		Times int               `json:"times"`
		Flag  *bool             `json:"flag"`
		Env   map[string]string `json:"env"`
		Rows  []struct {
			Any *Node `json:"any"`
		} `json:"rows"`
		hidden string
	}
	n, err := Parse([]byte(`{
  "name": null, "times": 1.5, "flag": "yes", "env": {"A": 1},
  "rows": [{"any": null}, {"Any": 1}], "hidden": "x"
}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range n.Decode(&into) {
		got = append(got, p.Error())
	}
	want := []string{
		"2:11: name: must be a string, not null",
		"2:26: times: must be an integer, not 1.5",
		"2:39: flag: must be a boolean, not a string",
		"2:59: env.A: must be a string, not a number",
		`3:28: rows[1].Any: unknown field "Any"; there are any`,
		`3:40: hidden: unknown field "hidden"; there are name, times, flag, env, rows`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if into.Rows[0].Any == nil || into.Rows[0].Any.Kind != Null || into.hidden != "" {
		t.Error("a *Node takes null as it is")
	}
}

// FuzzParse compares with encoding/json: what that reads is read, unless a name
// comes twice, and writing it compactly gives the same document.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.50,{"b":null}],"c":"\u00e9"}`, `[]`, ` 1e400 `, `{"a":1,"a":2}`, `"\ud800"`, `[1,]`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		n, err := Parse(src)
		if err != nil {
			if json.Valid(src) && utf8.Valid(src) && !strings.Contains(err.Error(), "duplicate key") && !strings.Contains(err.Error(), "exceeded max depth") {
				t.Fatalf("%q: %v", src, err)
			}
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, src); err != nil {
			t.Fatalf("%q was read and is no JSON: %v", src, err)
		}
		again, err := Parse([]byte(n.Compact(nil)))
		if err != nil || !Equal(n, again) {
			t.Fatalf("%q: compact %q: %v", src, n.Compact(nil), err)
		}
		other, err := Parse(want.Bytes())
		if err != nil || !Equal(n, other) {
			t.Fatalf("%q: json.Compact %q: %v", src, want.Bytes(), err)
		}
	})
}
