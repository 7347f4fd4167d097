package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/domain/fault"
)

type refund struct {
	Customer string `json:"customer_id"`
	Amount   Number `json:"amount"`
	Reason   string `json:"reason"`
}

type line struct {
	Item  string  `json:"item"`
	Count int     `json:"count"`
	Note  *string `json:"note"`
}

type everything struct {
	Text   string   `json:"text"`
	Flag   bool     `json:"flag"`
	Count  int      `json:"count"`
	Wide   int64    `json:"wide"`
	Money  Number   `json:"money"`
	Line   line     `json:"line"`
	Lines  []line   `json:"lines"`
	Tags   []string `json:"tags"`
	Maybe  *string  `json:"maybe"`
	Number *Number  `json:"number"`
	Yes    *bool    `json:"yes"`
	Many   *int64   `json:"many"`
	Other  *line    `json:"other"`
	More   *[]line  `json:"more"`
}

// issue is an issue in a line: its path, its code, its message.
func issue(i fault.Issue) string {
	path, _ := json.Marshal(i.Path)
	return fmt.Sprintf("%s %s: %s", path, i.Code, i.Message)
}

func lines(issues []fault.Issue) string {
	var b strings.Builder
	for _, i := range issues {
		b.WriteString(issue(i) + "\n")
	}
	return b.String()
}

func TestDecodeFillsTheStruct(t *testing.T) {
	d := Compile[everything]("arguments")
	var got everything
	issues := d.Decode(check(t, `{"text":"a\u00e9","flag":true,"count":-3,"wide":1.0e2,"money":10.50,"line":{"item":"x","count":1},
		"lines":[{"item":"y","count":2,"note":""},{"note":"n","count":3.0,"item":"z"}],"tags":["p","q"],"m\u0061ybe":"","number":1e400,"yes":false,
		"many":9223372036854775807,"other":{"count":0,"item":""},"more":[]}`), &got)
	if issues != nil {
		t.Fatal(lines(issues))
	}
	empty, note, number, yes, many := "", "n", Number("1e400"), false, int64(math.MaxInt64)
	want := everything{"aé", true, -3, 100, "10.50", line{"x", 1, nil}, []line{{"y", 2, &empty}, {"z", 3, &note}}, []string{"p", "q"},
		&empty, &number, &yes, &many, &line{}, &[]line{}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	got = everything{}
	if issues := d.Decode(check(t, `{"text":"","flag":false,"count":0,"wide":0,"money":0,"line":{"item":"","count":0},"lines":[],"tags":[]}`), &got); issues != nil {
		t.Error("what is optional may be absent:", lines(issues))
	}
	if got.Maybe != nil || got.Other != nil || got.More != nil {
		t.Errorf("an absent member is not nil: %+v", got)
	}
}

func TestDecodeReportsEveryProblemAtOnce(t *testing.T) {
	for _, tt := range []struct{ name, doc, want string }{
		{"several", `{"customer_id":5,"amount":"10","bogus":1}`, `["customer_id"] invalid_type: customer_id must be a string, not a number
["amount"] invalid_type: amount must be a number, not a string
["reason"] required: reason is required
["bogus"] unknown_property: unknown property "bogus"
`},
		{"an empty object", `{}`, `["customer_id"] required: customer_id is required
["amount"] required: amount is required
["reason"] required: reason is required
`},
		{"null is no value", `{"customer_id":null,"amount":null,"reason":null,"x":null}`, `["customer_id"] invalid_type: customer_id must be a string, not null
["amount"] invalid_type: amount must be a number, not null
["reason"] invalid_type: reason must be a string, not null
["x"] unknown_property: unknown property "x"
`},
		{"twice", `{"customer_id":"a","amount":1,"reason":"r","\u0061mount":2}`, `["amount"] duplicate_property: amount was sent more than once
`},
		{"an unknown one twice", `{"customer_id":"a","x":1,"amount":1,"reason":"r","\u0078":2}`, `["x"] unknown_property: unknown property "x"
["x"] duplicate_property: more than one property "x"
`},
		{"another case and look-alikes", `{"Customer_ID":"a","AMOUNT":1,"rea\u017fon":"r","amount":1}`, `["customer_id"] required: customer_id is required
["reason"] required: reason is required
["Customer_ID"] unknown_property: unknown property "Customer_ID"
["AMOUNT"] unknown_property: unknown property "AMOUNT"
["reaſon"] unknown_property: unknown property "reaſon"
`},
		{"names that JavaScript knows", `{"customer_id":"a","amount":1,"reason":"r","__proto__":{},"":1}`, `["__proto__"] unknown_property: unknown property "__proto__"
[""] unknown_property: unknown property ""
`},
		{"half a character", `{"customer_id":"\ud800","amount":1,"reason":"r"}`, `["customer_id"] invalid_string: customer_id holds half of a character (an unpaired surrogate escape)
`},
		{"half a character in a name", `{"customer_id":"a","amount":1,"reason":"r","\ud800":1}`, `["�"] unknown_property: unknown property "�"
`},
		{"control characters in a name", `{"customer_id":"a","amount":1,"reason":"r","\n\u202e":1}`, "[\"\\n\u202e\"] unknown_property: unknown property \"\\n\\u202e\"\n"},
		{"no object", `[{}]`, `[] invalid_type: arguments must be an object, not an array
`},
		{"a string", `"{}"`, `[] invalid_type: arguments must be an object, not a string
`},
		{"null", `null`, `[] invalid_type: arguments must be an object, not null
`},
		{"true", `true`, `[] invalid_type: arguments must be an object, not a boolean
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var into refund
			if got := lines(Compile[refund]("arguments").Decode(check(t, tt.doc), &into)); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
	var into refund
	want := "[] required: arguments must be an object, but nothing was sent\n"
	if got := lines(Compile[refund]("arguments").Decode(Value{}, &into)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDecodeReportsWhereInside(t *testing.T) {
	type nested struct {
		Lines []line  `json:"lines"`
		Grid  [][]int `json:"grid"`
		Other *line   `json:"other"`
	}
	var into nested
	got := lines(Compile[nested]("arguments").Decode(check(t, `{"lines":[{"item":"a","count":1},{"item":2,"count":1.5,"x":1,"item":"b"},null],
		"grid":[[1],[2,"3"],[9223372036854775808]],"other":{"item":"a"}}`), &into))
	want := `["lines",1,"item"] invalid_type: lines[1].item must be a string, not a number
["lines",1,"count"] invalid_type: lines[1].count must be an integer, not a fraction
["lines",1,"item"] duplicate_property: lines[1].item was sent more than once
["lines",2] invalid_type: lines[2] must be an object, not null
["grid",1,1] invalid_type: grid[1][1] must be an integer, not a string
["grid",2,0] out_of_range: grid[2][0] is out of range
["other","count"] required: other.count is required
["lines",1,"x"] unknown_property: unknown property "x" in lines[1]
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestDecodeBoundsWhatItReports(t *testing.T) {
	d := Compile[refund]("arguments")
	var into refund

	issues := d.Decode(check(t, object(MaxMembers+1, false)), &into)
	if len(issues) != MaxIssues+1 {
		t.Errorf("%d issues, want %d", len(issues), MaxIssues+1)
	}
	for i, want := range []string{`["customer_id"] required: `, `["amount"] required: `, `["reason"] required: `, `[] too_many_members: arguments must have no more than 4096 members`, `["k0"] unknown_property: `} {
		if got := issue(issues[i]); !strings.HasPrefix(got, want) {
			t.Errorf("issue %d is %s, want %s…", i, got, want)
		}
	}
	want := fmt.Sprintf("[] more_issues: and %d more problems", 4+MaxMembers+1-MaxIssues)
	if got := issue(issues[MaxIssues]); got != want {
		t.Errorf("the last issue is %q, want %q", got, want)
	}

	long := strings.Repeat("é", 1<<20)
	issues = d.Decode(check(t, `{"customer_id":"a","amount":1,"reason":"r","`+long+`":1,"`+long[:2*maxNameRunes]+`":1}`), &into)
	for i, want := range []string{long[:2*maxNameRunes] + "…", long[:2*maxNameRunes]} {
		if got := issues[i].Path[0]; got != want || issues[i].Message != `unknown property "`+want+`"` {
			t.Errorf("a long name is repeated as %q", got)
		}
	}

	for _, tt := range []struct {
		doc  string
		want []string
	}{
		{`{"customer_id":"a","amount":1,"reason":"r","x":` + nest(MaxDepth-1) + `}`, []string{`["x"] unknown_property`}},
		{`{"customer_id":"a","amount":1,"reason":"r","x":` + nest(MaxDepth) + `}`, []string{`["x"] too_deep: property "x" is nested over 1000 levels deep`, `["x"] unknown_property`}},
		{`{"customer_id":` + nest(MaxDepth) + `,"amount":1,"reason":"r"}`, []string{`["customer_id"] invalid_type`, `["customer_id"] too_deep: property "customer_id" is nested`}},
	} {
		issues := d.Decode(check(t, tt.doc), &into)
		if len(issues) != len(tt.want) {
			t.Errorf("got %s", lines(issues))
			continue
		}
		for i, want := range tt.want {
			if got := issue(issues[i]); !strings.HasPrefix(got, want) {
				t.Errorf("issue %d is %s, want %s…", i, got, want)
			}
		}
	}

	type list struct {
		Of []int `json:"of"`
	}
	var full list
	doc := `{"of":[0` + strings.Repeat(",0", MaxElements-1) + `]}`
	if issues := Compile[list]("arguments").Decode(check(t, doc), &full); issues != nil || len(full.Of) != MaxElements {
		t.Errorf("%d elements, %s", len(full.Of), lines(issues))
	}
	doc = `{"of":[0` + strings.Repeat(",0", MaxElements) + `]}`
	if got, want := lines(Compile[list]("arguments").Decode(check(t, doc), &full)), "[\"of\"] too_many_elements: of has over 10000 elements\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	doc = `{"of":[""` + strings.Repeat(`,""`, MaxElements-1) + `]}`
	if issues := Compile[list]("arguments").Decode(check(t, doc), &full); len(issues) != MaxIssues+1 {
		t.Errorf("%d issues, want %d", len(issues), MaxIssues+1)
	}
}

func TestIntegersMeanWhatJSONSchemaMeans(t *testing.T) {
	zeros := strings.Repeat("0", 1000)
	for _, tt := range []struct {
		number string
		want   int64
		err    error
	}{
		{"0", 0, nil}, {"-0", 0, nil}, {"0.0", 0, nil}, {"0e99999999999999999999", 0, nil}, {"-0.000e-5", 0, nil},
		{"1", 1, nil}, {"1.0", 1, nil}, {"1e2", 100, nil}, {"1E+2", 100, nil}, {"100e-2", 1, nil}, {"1.50e1", 15, nil}, {"12.340e2", 1234, nil}, {"-7.000", -7, nil},
		{"0.001e3", 1, nil}, {"1" + zeros + "e-1000", 1, nil}, {"0." + zeros + "1e1001", 1, nil},
		{"9223372036854775807", math.MaxInt64, nil}, {"-9223372036854775808", math.MinInt64, nil}, {"9.223372036854775807e18", math.MaxInt64, nil},
		{"9223372036854775808", 0, errRange}, {"-9223372036854775809", 0, errRange}, {"99999999999999999999", 0, errRange}, {"1e19", 0, errRange}, {"1e400", 0, errRange},
		{"1e99999999999999999999999999", 0, errRange}, {"-1e999999999", 0, errRange}, {"18446744073709551616", 0, errRange},
		{"1.5", 0, errFraction}, {"1e-1", 0, errFraction}, {"1e-99999999999999999999999999", 0, errFraction}, {"0.1", 0, errFraction}, {"100e-3", 0, errFraction},
		{"0.1000000000000000055", 0, errFraction},
	} {
		if got, err := integer([]byte(tt.number)); got != tt.want || err != tt.err {
			t.Errorf("integer(%.40s) = %d, %v, want %d, %v", tt.number, got, err, tt.want, tt.err)
		}
	}
}

func TestCompilePanicsOnWhatItCanNotPromise(t *testing.T) {
	type loop struct {
		Self *loop `json:"self"`
	}
	field := func(name, tag string, t reflect.Type) reflect.StructField {
		f := reflect.StructField{Name: name, Type: t, Tag: reflect.StructTag(`json:"` + tag + `"`)}
		if name == strings.ToLower(name) {
			f.PkgPath = "unexported"
		}
		return f
	}
	number := reflect.TypeFor[int]()
	many := make([]reflect.StructField, maxFields+1)
	for i := range many {
		many[i] = field(fmt.Sprintf("F%d", i), fmt.Sprintf("f%d", i), number)
	}
	embedded := field("A", "a", reflect.TypeFor[refund]())
	embedded.Anonymous = true
	for name, fields := range map[string][]reflect.StructField{
		"a map":           {field("A", "a", reflect.TypeFor[map[string]int]())},
		"a float":         {field("A", "a", reflect.TypeFor[float64]())},
		"an interface":    {field("A", "a", reflect.TypeFor[any]())},
		"omitempty":       {field("A", "a,omitempty", number)},
		"a dash":          {field("A", "-", number)},
		"no tag":          {field("A", "", number)},
		"unexported":      {field("a", "a", number)},
		"embedded":        {embedded},
		"two of one name": {field("A", "a", number), field("B", "a", number)},
		"itself":          {field("A", "a", reflect.TypeFor[loop]())},
		"pointer element": {field("A", "a", reflect.TypeFor[[]*int]())},
		"double pointer":  {field("A", "a", reflect.TypeFor[**int]())},
		"inside": {field("A", "a", reflect.TypeFor[[]struct {
			B uint `json:"b"`
		}]())},
		"too many fields": many,
	} {
		t.Run(name, func(t *testing.T) {
			mustPanic(t, func() { compile(reflect.StructOf(fields), nil) })
		})
	}
	mustPanic(t, func() { Compile[int]("x") })
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "strictjson: ") {
			t.Errorf("recovered %v", r)
		}
	}()
	f()
}

func FuzzDecode(f *testing.F) {
	for _, doc := range []string{
		`{"text":"a","flag":true,"count":1,"wide":1.0,"money":1e2,"line":{"item":"x","count":1},"lines":[],"tags":["a"]}`,
		`{"text":"a","flag":false,"count":1,"wide":-1,"money":0,"line":{"item":"\u00e9","count":1,"note":"n"},"lines":[{"item":"","count":2}],"tags":[],"maybe":"","number":1,"yes":true,"many":5,"other":{"item":"x","count":1},"more":[{"item":"x","count":1}]}`,
		`{"text":null,"x":1,"x":2}`, `[]`, `{"text":"\ud800"}`, `{"lines":[{"x":[[[]]]}]}`,
	} {
		f.Add([]byte(doc))
	}
	d := Compile[everything]("arguments")
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := Check(doc)
		if err != nil {
			return
		}
		var got everything
		if issues := d.Decode(v, &got); issues != nil {
			if len(issues) > MaxIssues+1 {
				t.Fatalf("%d issues", len(issues))
			}
			for _, i := range issues {
				if i.Path == nil || i.Code == "" || i.Message == "" {
					t.Fatalf("an empty issue: %+v", i)
				}
			}
			return
		}
		var want map[string]any
		dec := json.NewDecoder(bytes.NewReader(doc))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("encoding/json refuses %q: %v", doc, err)
		}
		sameValue(t, reflect.ValueOf(got), want)
	})
}

// sameValue compares what Decode filled with what encoding/json read.
func sameValue(t *testing.T, got reflect.Value, want any) {
	switch got.Kind() {
	case reflect.Pointer:
		if got.IsNil() != (want == nil) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if !got.IsNil() {
			sameValue(t, got.Elem(), want)
		}
	case reflect.Struct:
		members := want.(map[string]any)
		for i := range got.NumField() {
			sameValue(t, got.Field(i), members[got.Type().Field(i).Tag.Get("json")])
			delete(members, got.Type().Field(i).Tag.Get("json"))
		}
		if len(members) > 0 {
			t.Fatalf("unknown members were accepted: %v", members)
		}
	case reflect.Slice:
		elements := want.([]any)
		if len(elements) != got.Len() {
			t.Fatalf("%d elements, want %d", got.Len(), len(elements))
		}
		for i := range elements {
			sameValue(t, got.Index(i), elements[i])
		}
	case reflect.Int, reflect.Int64:
		const longest = 40 // of what big.Rat may compute in reasonable time
		literal := want.(json.Number).String()
		if len(literal) > longest || strings.Count(literal, "9") > longest/4 {
			return
		}
		if e := strings.IndexAny(literal, "eE"); e >= 0 && len(literal)-e > 5 {
			return
		}
		r, ok := new(big.Rat).SetString(literal)
		if !ok || r.Cmp(new(big.Rat).SetInt64(got.Int())) != 0 {
			t.Fatalf("%s became %d", literal, got.Int())
		}
	case reflect.String:
		if n, ok := want.(json.Number); ok {
			want = n.String()
		}
		if got.String() != want {
			t.Fatalf("got %q, want %v", got, want)
		}
	default:
		if got.Interface() != want {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	d := Compile[refund]("arguments")
	v := check(b, benchLine).Lookup("params").Lookup("arguments")
	b.ReportAllocs()
	for b.Loop() {
		var into refund
		if issues := d.Decode(v, &into); issues != nil {
			b.Fatal(issues)
		}
	}
}
