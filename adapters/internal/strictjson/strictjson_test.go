package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// check is Check for documents that a test knows to be good.
func check(t testing.TB, doc string) Value {
	t.Helper()
	v, err := Check([]byte(doc))
	if err != nil {
		t.Fatalf("Check(%.80q): %v", doc, err)
	}
	return v
}

var goodDocuments = []string{
	`{}`, `[]`, `""`, `0`, `-0`, `1`, `-1.5e+10`, `1E5`, `0.1`, `true`, `false`, `null`,
	" \t\r\n{ \"a\" : [ 1 , 2 ] } \n", `{"a":{"b":[{},[],""]}}`, `"\u00e9\n\"\\\/\b\f\r\t"`,
	`"\ud83d\ude00"`, `"\ud800"`, `{"a":1,"a":2}`, `"é😀"`, `[[[[]]],{}]`, `"0123456789abcdef\"0123456"`,
	`[true,false,null]`, `10`, `"` + strings.Repeat("x", 100) + `"`, `"ÿ"`,
}

var badDocuments = []string{
	``, ` `, `{`, `}`, `[`, `]`, `"`, `"a`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,1]`, `{,}`, `{a:1}`, `{'a':1}`,
	`01`, `-`, `+1`, `.5`, `5.`, `1e`, `1e+`, `0x10`, `1_000`, `--5`, `NaN`, `Infinity`, `-Infinity`, `１０`,
	`tru`, `truex`, `nul`, `True`, `{} x`, `{}{}`, `1 2`, `{} // hi`, "\"a\tb\"", "\"\x00\"", `"\x"`, `"\u12"`, `"\u12g4"`, `"\`,
	"\"\xff\"", "\xef\xbb\xbf{}", "\"\xed\xa0\x80\"", "{\xff", "\x00\x00", `[1}`, `{"a":1]`, `[}`, `{]`, `{"a" 1}`, `{"a":1 "b":2}`, `[1 2]`, `{1:2}`, `{"a":1,,"b":2}`,
	"\"\xc3\"", "\"0123456\x80\"", "\u00a0{}", `{"a":[}`, `"a""b"`,
}

func TestCheckKnowsJSON(t *testing.T) {
	for _, doc := range goodDocuments {
		if v, err := Check([]byte(doc)); err != nil {
			t.Errorf("Check(%q) = %v", doc, err)
		} else if want := strings.TrimSpace(doc); string(v.Raw()) != want {
			t.Errorf("Check(%q).Raw() = %q", doc, v.Raw())
		}
	}
	for _, doc := range badDocuments {
		if _, err := Check([]byte(doc)); err == nil {
			t.Errorf("Check(%q) accepted it", doc)
		}
	}
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{`{"a":1,}`, "no name at byte 7"},
		{`{"a":`, "end of the document at byte 5"},
		{`{"a":01}`, "no comma or closing bracket at byte 6"},
		{`[-x]`, "malformed number at byte 2"},
		{`{} x`, "more after the value at byte 3"},
		{"\"a\x01\"", "control character in a string at byte 2"},
		{`"\q"`, "malformed escape at byte 1"},
		{`{"a"}`, "no colon after a name at byte 4"},
		{"[\xff]", "not UTF-8"},
		{"\"\xff\"", "not UTF-8"},
	} {
		if _, err := Check([]byte(tt.doc)); err == nil || err.Error() != tt.want {
			t.Errorf("Check(%q) = %v, want %s", tt.doc, err, tt.want)
		}
	}
}

func TestDepthIsNoted(t *testing.T) {
	for _, tt := range []struct {
		doc  string
		want int
	}{{`1`, 0}, {`""`, 0}, {`{}`, 1}, {`[[],[[]]]`, 3}, {`{"a":{"b":[1]},"c":"[[[["}`, 3}} {
		v := check(t, tt.doc)
		if v.Depth() != tt.want {
			t.Errorf("Check(%s).Depth() = %d, want %d", tt.doc, v.Depth(), tt.want)
		}
		inner := check(t, `[`+tt.doc+`]`)
		for _, e := range inner.Elements() {
			if e.Depth() != tt.want {
				t.Errorf("the element %s has the depth %d, want %d", tt.doc, e.Depth(), tt.want)
			}
		}
	}
}

func TestMillionsOfBracketsNeedNoRecursion(t *testing.T) {
	const n = 2 << 20
	deep := strings.Repeat("[", n) + strings.Repeat("]", n)
	v := check(t, deep)
	if v.Depth() != n {
		t.Errorf("Depth() = %d, want %d", v.Depth(), n)
	}
	if err := v.Wellformed(); err != ErrDepth {
		t.Errorf("Wellformed() = %v, want %v", err, ErrDepth)
	}
	for _, doc := range []string{deep[:n], strings.Repeat(`{"a":`, n), strings.Repeat("[", n) + strings.Repeat("}", n)} {
		if _, err := Check([]byte(doc)); err == nil {
			t.Errorf("Check(%.20q…) accepted it", doc)
		}
	}
	mixed := strings.Repeat(`[{"a":`, inlineLevels) + "1" + strings.Repeat("}]", inlineLevels)
	if v := check(t, mixed); v.Depth() != 2*inlineLevels {
		t.Errorf("Depth() = %d, want %d", v.Depth(), 2*inlineLevels)
	}
}

func TestValuesAreWalkedInPlace(t *testing.T) {
	v := check(t, ` { "a" : 1.50 , "\u0062":"x\ny","c":[ true,null , {"d":[]} ,"]"],"":{} ,"e\"}":"{\\"} `)
	var got []string
	for name, member := range v.Members() {
		text, err := name.Text()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s=%s %s", text, member.Raw(), member.Kind()))
	}
	want := []string{`a=1.50 a number`, `b="x\ny" a string`, `c=[ true,null , {"d":[]} ,"]"] an array`, `={} an object`, `e"}="{\\" a string`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("Members() =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	got = nil
	for i, e := range v.Lookup("c").Elements() {
		got = append(got, fmt.Sprintf("%d %s %s", i, e.Raw(), e.Kind()))
	}
	want = []string{"0 true a boolean", "1 null null", `2 {"d":[]} an object`, `3 "]" a string`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("Elements() =\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if b := v.Lookup("b"); !b.Is("x\ny") || b.Is(`x\ny`) {
		t.Errorf("Lookup(b) = %s", b.Raw())
	}
	if got := v.Lookup("B"); got.Kind() != KindAbsent {
		t.Errorf("Lookup(B) = %s", got.Raw())
	}
	for range v.Members() {
		break
	}
	for range v.Lookup("a").Members() {
		t.Error("a number has no members")
	}
	for range v.Elements() {
		t.Error("an object has no elements")
	}
}

func TestTextIsExactOrAnError(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{`""`, ""}, {`"a"`, "a"}, {`"\u0041\u00e9\u20AC"`, "Aé€"}, {`"\ud83d\ude00!"`, "😀!"}, {`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{`"\u0000"`, "\x00"}, {`"\\ud800"`, `\ud800`}, {`"\ufffd"`, "\ufffd"}, {`"é\n😀"`, "é\n😀"},
	} {
		if got, err := check(t, tt.doc).Text(); err != nil || got != tt.want {
			t.Errorf("Text(%s) = %q, %v, want %q", tt.doc, got, err, tt.want)
		}
	}
	for _, doc := range []string{`"\ud800"`, `"\udc00"`, `"\udc00\ud800"`, `"\ud800\ud800\udc00"`, `"\ud800x\udc00"`, `"\ud800\n"`, `"a\ud83d"`, `"\ud83d\u0041"`} {
		v := check(t, doc)
		if got, err := v.Text(); err != ErrSurrogate {
			t.Errorf("Text(%s) = %q, %v, want %v", doc, got, err, ErrSurrogate)
		}
		if v.Is("\ufffd") {
			t.Errorf("%s is not a replacement character", doc)
		}
	}
	if _, err := check(t, `1`).Text(); err != ErrNotString {
		t.Errorf("Text(1) = %v, want %v", err, ErrNotString)
	}
}

// object writes an object with the given number of members, one name of which
// comes again at the end if twice is set.
func object(members int, twice bool) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range members {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	if twice {
		b.WriteString(`"\u006b0":0,`)
	}
	return strings.TrimSuffix(b.String(), ",") + "}"
}

func nest(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func TestWellformed(t *testing.T) {
	for _, tt := range []struct {
		name string
		doc  string
		want error
	}{
		{"plain", `{"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}]}`, nil},
		{"scalars", `"x"`, nil},
		{"the same name twice", `{"a":1,"b":2,"a":3}`, ErrDuplicate},
		{"the same name written in two ways", `{"a":1,"\u0061":2}`, ErrDuplicate},
		{"escaped both times", `{"\u0061":1,"\u0061":2}`, ErrDuplicate},
		{"another case is another name", `{"a":1,"A":2}`, nil},
		{"twice in a nested object", `{"x":[{"a":1,"a":2}]}`, ErrDuplicate},
		{"twice around a nested object", `{"a":{"b":1},"a":2}`, ErrDuplicate},
		{"twice around a nested object with escapes", `{"\u0061":{"\u0062":1,"\u0063":1},"a":2}`, ErrDuplicate},
		{"values do not count as names", `{"a":"b","b":"a","c":["a","a"]}`, nil},
		{"empty names", `{"":1,"":2}`, ErrDuplicate},
		{"twice in a large object", object(3000, true), ErrDuplicate},
		{"a large object", object(3000, false), nil},
		{"as many members as allowed", object(MaxMembers, false), nil},
		{"one member too many", object(MaxMembers+1, false), ErrMembers},
		{"as deep as allowed", nest(MaxDepth), nil},
		{"one level too deep", nest(MaxDepth + 1), ErrDepth},
		{"half a character in a string", `{"a":"\ud800"}`, ErrSurrogate},
		{"half a character in an element", `["\udc00"]`, ErrSurrogate},
		{"half a character in a name", `{"\ud800":1}`, ErrSurrogate},
		{"half a character alone", `"\ud800"`, ErrSurrogate},
		{"a whole character", `{"\ud83d\ude00":"\ud83d\ude00"}`, nil},
		{"an escaped backslash", `"\\ud800"`, nil},
		{"seventeen names, the last twice", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"p":1}`, ErrDuplicate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := check(t, tt.doc)
			if got := v.Wellformed(); got != tt.want {
				t.Errorf("Wellformed() = %v, want %v", got, tt.want)
			}
			hidden := check(t, `{"id":1,"params":{"name":"x","arguments":`+tt.doc+`,"more":1},"arguments":{}}`)
			if got := hidden.Wellformed("params", "arguments"); got != nil {
				t.Errorf("left out, Wellformed() = %v", got)
			}
			for _, elsewhere := range []string{`{"params":{"Arguments":%s}}`, `{"arguments":%s}`, `{"params":[{"arguments":%s}]}`, `{"params":{"x":{"arguments":%s}}}`,
				`{"x":{"arguments":%s}}`, `{"params":{},"x":{"arguments":%s}}`, `{"params":{"arguments":{}},"x":{"arguments":%s}}`, `[{"params":{"arguments":%s}}]`} {
				got := check(t, fmt.Sprintf(elsewhere, tt.doc)).Wellformed("params", "arguments")
				if tt.name != "as deep as allowed" && got != tt.want {
					t.Errorf("in %s Wellformed() = %v, want %v", elsewhere, got, tt.want)
				}
			}
		})
	}
}

func TestWellformedStaysCheapOnHostileDocuments(t *testing.T) {
	var b strings.Builder
	objects := 0
	for b.Len() < 3<<20 { // objects in objects, each with as many escaped names as it may have
		b.WriteByte('{')
		for i := range MaxMembers - 1 {
			fmt.Fprintf(&b, `"\u0061%d":0,`, i)
		}
		b.WriteString(`"x":`)
		objects++
	}
	doc := b.String() + "0" + strings.Repeat("}", objects)
	v := check(t, doc)
	if err := v.Wellformed(); err != nil {
		t.Error(err)
	}
	escapes := check(t, `["`+strings.Repeat(`a\n`, 1<<20)+`"]`)
	for range escapes.Elements() {
	}
	if err := escapes.Wellformed(); err != nil {
		t.Error(err)
	}
	chain := check(t, strings.Repeat(`{"a":`, MaxDepth)+"0"+strings.Repeat("}", MaxDepth))
	if err := chain.Wellformed(); err != nil {
		t.Error(err)
	}
}

func TestAppendString(t *testing.T) {
	for _, tt := range []struct{ s, want string }{
		{"", `""`}, {"a", `"a"`}, {`"\`, `"\"\\"`}, {"<&>", `"<&>"`}, {"\n\r\t\x00\x1f\x7f", "\"\\n\\r\\t\\u0000\\u001f\x7f\""},
		{"\u2028\u2029", `"\u2028\u2029"`}, {"é😀", `"é😀"`}, {"a\xffb", "\"a\ufffdb\""}, {"\xed\xa0\x80", "\"\ufffd\ufffd\ufffd\""},
		{`{"amount":499.9,"currency":"USD"}`, `"{\"amount\":499.9,\"currency\":\"USD\"}"`}, {"0123456789abcdefé0123456789", `"0123456789abcdefé0123456789"`},
		{"\xc3", "\"\ufffd\""},
	} {
		if got := string(AppendString([]byte("x"), tt.s)); got != "x"+tt.want {
			t.Errorf("AppendString(%q) = %s, want %s", tt.s, got[1:], tt.want)
		}
		if got := string(AppendString(nil, []byte(tt.s))); got != tt.want {
			t.Errorf("AppendString([]byte(%q)) = %s, want %s", tt.s, got, tt.want)
		}
	}
	for at := range 20 { // every special byte at every offset of the eight-byte steps
		for c := range 256 {
			s := strings.Repeat("x", at) + string([]byte{byte(c)}) + "tail of the text"
			var got string
			if err := json.Unmarshal(AppendString(nil, s), &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") {
				t.Fatalf("AppendString(%q) reads as %q, %v", s, got, err)
			}
		}
	}
}

func TestAWalkAllocatesNothing(t *testing.T) {
	doc := []byte(benchLine)
	n := testing.AllocsPerRun(100, func() {
		v, err := Check(doc)
		if err != nil || v.Wellformed("params", "arguments") != nil {
			t.Fatal("the document is good")
		}
		for name, member := range v.Lookup("params").Members() {
			if name.Is("nope") || member.Kind() == KindAbsent {
				t.Fatal("no such member")
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCheck(f *testing.F) {
	for _, doc := range goodDocuments {
		f.Add([]byte(doc))
	}
	for _, doc := range badDocuments {
		f.Add([]byte(doc))
	}
	f.Add([]byte(benchLine))
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := Check(doc)
		// encoding/json stops at 10,000 levels, and it lets broken UTF-8 pass.
		if good := json.Valid(doc) && utf8.Valid(doc); good != (err == nil) && bytes.Count(doc, []byte("["))+bytes.Count(doc, []byte("{")) < 10000 {
			t.Fatalf("Check(%q) = %v, but json.Valid says %v", doc, err, good)
		}
		if err != nil {
			return
		}
		sameAsStandard(t, v)
		if got := AppendString(nil, doc); !json.Valid(got) {
			t.Fatalf("AppendString(%q) = %s", doc, got)
		}
		v.Wellformed("params", "arguments")
		if wellformed := v.Wellformed(); wellformed != slowWellformed(v) {
			t.Fatalf("Wellformed(%q) = %v, want %v", doc, wellformed, slowWellformed(v))
		}
	})
}

// sameAsStandard compares a walk through v with what encoding/json reads.
func sameAsStandard(t *testing.T, v Value) {
	switch v.Kind() {
	case KindString:
		var want string
		if err := json.Unmarshal(v.Raw(), &want); err != nil {
			t.Fatal(err)
		}
		if got, err := v.Text(); err == nil && got != want || err != nil && !errors.Is(err, ErrSurrogate) {
			t.Fatalf("Text(%s) = %q, %v, want %q", v.Raw(), got, err, want)
		}
	case KindArray:
		var want []json.RawMessage
		if err := json.Unmarshal(v.Raw(), &want); err != nil {
			t.Fatal(err)
		}
		n := 0
		for i, e := range v.Elements() {
			if !bytes.Equal(e.Raw(), want[i]) {
				t.Fatalf("element %d is %s, want %s", i, e.Raw(), want[i])
			}
			sameAsStandard(t, e)
			n++
		}
		if n != len(want) {
			t.Fatalf("%d elements, want %d", n, len(want))
		}
	case KindObject:
		var want map[string]json.RawMessage
		if err := json.Unmarshal(v.Raw(), &want); err != nil {
			t.Fatal(err)
		}
		got := map[string]Value{}
		for name, member := range v.Members() {
			text, err := name.Text()
			if err != nil {
				return
			}
			got[text] = member // the last one, as encoding/json does it
			sameAsStandard(t, member)
		}
		if len(got) != len(want) {
			t.Fatalf("%d members, want %d", len(got), len(want))
		}
		for name, member := range got {
			if !bytes.Equal(member.Raw(), want[name]) {
				t.Fatalf("member %q is %s, want %s", name, member.Raw(), want[name])
			}
		}
	}
}

// slowWellformed is the plain way to say what Wellformed says, as far as both
// agree on which of several reasons comes first.
func slowWellformed(v Value) error {
	if v.Depth() > MaxDepth {
		return v.Wellformed() // which reason comes first depends on the order
	}
	var reasons []error
	var visit func(Value)
	visit = func(v Value) {
		if _, err := v.Text(); err == ErrSurrogate {
			reasons = append(reasons, err)
		}
		for _, e := range v.Elements() {
			visit(e)
		}
		seen := map[string]bool{}
		for name, member := range v.Members() {
			text, err := name.Text()
			if err != nil {
				reasons = append(reasons, err)
			} else if seen[text] {
				reasons = append(reasons, ErrDuplicate)
			}
			seen[text] = true
			visit(member)
		}
	}
	visit(v)
	got := v.Wellformed()
	for _, r := range reasons {
		if r == got {
			return got
		}
	}
	if len(reasons) > 0 {
		return reasons[0]
	}
	return nil
}

const benchLine = `{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"trigger_refund","arguments":{"customer_id":"CUST-00001","amount":10.50,"reason":"Item arrived damaged, the customer sent photos"},"_meta":{"progressToken":"t-1","refundledger.dev/operation-key":"k-0123456789"}}}`

func BenchmarkCheck(b *testing.B) {
	doc := []byte(benchLine)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Check(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWellformed(b *testing.B) {
	v := check(b, benchLine)
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Wellformed("params", "arguments"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendString(b *testing.B) {
	doc := []byte(benchLine)
	var dst []byte
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendString(dst[:0], doc)
	}
}
