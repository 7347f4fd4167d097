package strictjson

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/domain/fault"
)

const (
	// MaxIssues is how many issues [Decoder.Decode] spells out. One more says
	// how many are left.
	MaxIssues = 100
	// MaxNumber is how long the literal of a number may be, in bytes.
	MaxNumber = 4096
	// MaxText is how long a string may be, in bytes and with its escapes.
	MaxText = 2 << 20
	// MaxElements is how many elements one array may have: as many as an invoice
	// has lines.
	MaxElements = 10_000
	// maxNameRunes is how much of an unknown name an issue repeats.
	maxNameRunes = 64
	// maxFields is how many fields a struct may have: one bit each.
	maxFields = 64
)

// The codes of the issues.
const (
	CodeType       = "invalid_type"
	CodeUnknown    = "unknown_property"
	CodeDuplicate  = "duplicate_property"
	CodeRequired   = "required"
	CodeText       = "invalid_string"
	CodeRange      = "out_of_range"
	CodeLength     = "too_long"
	CodeDepth      = "too_deep"
	CodeMembers    = "too_many_members"
	CodeElements   = "too_many_elements"
	CodeMoreIssues = "more_issues"
)

// Number is a JSON number as it was sent, digit by digit.
type Number string

// Decoder reads JSON objects into structs of the type T, which must hold
// exactly what the struct declares. It is safe to use from many goroutines.
type Decoder[T any] struct {
	noun string
	root *shape
}

// Compile prepares a decoder for the struct T. The noun says in messages what
// the whole is, in the plural: "arguments must be an object".
//
// Every field carries its name in a json tag. Fields are required, unless they
// are pointers, which stay nil if the member is absent. A field is a string, a
// bool, an int, an int64, a [Number], such a struct, a slice of those, or a
// pointer to those. Compile panics on anything else: maps, untagged or
// unexported fields, and options like omitempty, whose meaning for input
// nobody agrees on.
func Compile[T any](noun string) *Decoder[T] {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("strictjson: %s is not a struct", t))
	}
	return &Decoder[T]{noun, compile(t, nil)}
}

// Decode reads v into the struct and returns all that is wrong with it, or
// nothing. What is wrong with declared fields comes first. A field that has an
// issue holds nothing to rely on.
func (d *Decoder[T]) Decode(v Value, into *T) []fault.Issue {
	var p problems
	if v.Depth() > MaxDepth {
		p.deepMembers(v)
	}
	p.decode(d.root, v, reflect.ValueOf(into).Elem())
	return p.issues(d.noun)
}

// shape is what a type accepts, worked out once.
type shape struct {
	kind    Kind         // what the JSON value must be
	integer bool         // a number without a fraction
	pointer bool         // holds a pointer to the value
	typ     reflect.Type // without the pointer
	fields  []field      // of an object
	element *shape       // of an array
}

// field is one member that an object may have.
type field struct {
	name  string
	index int
	shape *shape
}

func (f *field) required() bool { return !f.shape.pointer }

// compile works out the shape of t, which stands in the structs of above.
func compile(t reflect.Type, above []reflect.Type) *shape {
	s := &shape{typ: t}
	if t.Kind() == reflect.Pointer {
		s.pointer, s.typ = true, t.Elem()
	}
	switch s.typ.Kind() {
	case reflect.String:
		s.kind = KindString
		if s.typ == reflect.TypeFor[Number]() {
			s.kind = KindNumber
		}
	case reflect.Bool:
		s.kind = KindBoolean
	case reflect.Int, reflect.Int64:
		s.kind, s.integer = KindNumber, true
	case reflect.Slice:
		s.kind = KindArray
		if s.element = compile(s.typ.Elem(), above); s.element.pointer {
			panic(fmt.Sprintf("strictjson: %s has pointers for elements, which can not be absent", s.typ))
		}
	case reflect.Struct:
		s.kind = KindObject
		s.fields = compileFields(s.typ, above)
	default:
		panic(fmt.Sprintf("strictjson: the type %s is not supported", t))
	}
	return s
}

func compileFields(t reflect.Type, above []reflect.Type) []field {
	for _, outer := range above {
		if t == outer {
			panic(fmt.Sprintf("strictjson: %s holds itself", t))
		}
	}
	if t.NumField() > maxFields {
		panic(fmt.Sprintf("strictjson: %s has over %d fields", t, maxFields))
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "" || name == "-" || options != "" {
			panic(fmt.Sprintf("strictjson: field %s of %s must be exported and have a json tag that is only a name", f.Name, t))
		}
		for _, other := range fields {
			if other.name == name {
				panic(fmt.Sprintf("strictjson: %s has two fields named %q", t, name))
			}
		}
		fields = append(fields, field{name, i, compile(f.Type, append(above, t))})
	}
	return fields
}

// problems collects what is wrong, unknown members apart: a caller who must not
// miss what is wrong with a declared field finds it before the bound.
//
// Where a problem is gets noted on the way out, level by level, so that paths
// cost nothing as long as there is none.
type problems struct {
	declared []problem
	unknown  []problem
	more     int
}

type problem struct {
	path []any // from the inside out
	code string
	text string
}

func (p *problems) add(list *[]problem, code, format string, args ...any) {
	if len(*list) == MaxIssues {
		p.more++
		return
	}
	*list = append(*list, problem{code: code, text: fmt.Sprintf(format, args...)})
}

// declare adds a problem of a declared value; its text continues a sentence
// that begins with the value.
func (p *problems) declare(code, format string, args ...any) {
	p.add(&p.declared, code, format, args...)
}

// count is how many problems there are.
func (p *problems) count() (n counts) { return counts{len(p.declared), len(p.unknown)} }

type counts struct{ declared, unknown int }

// inside notes that all problems since then are inside step, a name or a
// position.
func (p *problems) inside(step any, since counts) {
	for i := range p.declared[since.declared:] {
		p.declared[since.declared+i].within(step)
	}
	for i := range p.unknown[since.unknown:] {
		p.unknown[since.unknown+i].within(step)
	}
}

func (p *problem) within(step any) { p.path = append(p.path, step) }

// issues puts the problems into words: at most MaxIssues, and one issue that
// counts the rest.
func (p *problems) issues(noun string) []fault.Issue {
	all := append(p.declared, p.unknown...)
	if len(all) == 0 {
		return nil
	}
	if len(all) > MaxIssues {
		p.more += len(all) - MaxIssues
		all = all[:MaxIssues]
	}
	list := make([]fault.Issue, 0, len(all)+1)
	for i, found := range all {
		slices.Reverse(found.path)
		message := Label(noun, found.path) + " " + found.text
		if i >= len(p.declared) {
			message = found.text
			if outer := found.path[:len(found.path)-1]; len(outer) > 0 {
				message += " in " + Label(noun, outer)
			}
		}
		list = append(list, fault.Issue{Path: append([]any{}, found.path...), Code: found.code, Message: message})
	}
	if p.more > 0 {
		list = append(list, fault.Issue{Path: []any{}, Code: CodeMoreIssues, Message: fmt.Sprintf("and %d more problems", p.more)})
	}
	return list
}

// Label names a place in a sentence: lines[2].amount, or the noun if the path is
// empty. It repeats the names of the path as they are.
func Label(noun string, path []any) string {
	if len(path) == 0 {
		return noun
	}
	var b strings.Builder
	for i, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

// decode reads v into dst, which has the shape s.
func (p *problems) decode(s *shape, v Value, dst reflect.Value) {
	if v.kind != s.kind {
		p.wrongKind(s, v)
		return
	}
	if s.pointer {
		fresh := reflect.New(s.typ)
		dst.Set(fresh)
		dst = fresh.Elem()
	}
	switch s.kind {
	case KindString:
		if len(v.raw) > MaxText {
			p.declare(CodeLength, "must be at most %d bytes long", MaxText)
			return
		}
		text, err := v.Text()
		if err != nil {
			p.declare(CodeText, "holds half of a character (an unpaired surrogate escape)")
			return
		}
		dst.SetString(text)
	case KindBoolean:
		dst.SetBool(v.IsTrue())
	case KindNumber:
		if len(v.raw) > MaxNumber {
			p.declare(CodeLength, "must be written with at most %d characters", MaxNumber)
			return
		}
		if !s.integer {
			dst.SetString(string(v.raw))
			return
		}
		n, err := integer(v.raw)
		switch {
		case err == errFraction:
			p.declare(CodeType, "must be an integer, not a fraction")
		case err != nil || dst.OverflowInt(n):
			p.declare(CodeRange, "is out of range")
		default:
			dst.SetInt(n)
		}
	case KindArray:
		p.decodeArray(s, v, dst)
	case KindObject:
		p.decodeObject(s, v, dst)
	}
}

func (p *problems) wrongKind(s *shape, v Value) {
	want := s.kind.String()
	if s.integer {
		want = "an integer"
	}
	if v.kind == KindAbsent {
		p.declare(CodeRequired, "must be %s, but nothing was sent", want)
		return
	}
	p.declare(CodeType, "must be %s, not %s", want, v.kind)
}

func (p *problems) decodeArray(s *shape, v Value, dst reflect.Value) {
	n := 0
	for w := v.walk(KindArray); w.more() && n <= MaxElements; n++ {
		w.value()
	}
	if n > MaxElements {
		p.declare(CodeElements, "has over %d elements", MaxElements)
		return
	}
	list := reflect.MakeSlice(s.typ, n, n)
	i := 0
	for w := v.walk(KindArray); w.more(); i++ {
		before := p.count()
		p.decode(s.element, w.value(), list.Index(i))
		if p.count() != before {
			p.inside(i, before)
		}
	}
	dst.Set(list)
}

func (p *problems) decodeObject(s *shape, v Value, dst reflect.Value) {
	var seen uint64
	strangers, members := false, 0
	for w := v.walk(KindObject); w.more(); members++ {
		name := w.name()
		member := w.value()
		// Members mostly come in the order they are declared in.
		i := indexOf(s.fields, name, members)
		if i < 0 {
			strangers = true
			continue
		}
		f := &s.fields[i]
		before := p.count()
		if seen>>i&1 == 1 {
			p.declare(CodeDuplicate, "was sent more than once")
		} else {
			p.decode(f.shape, member, dst.Field(f.index))
		}
		seen |= 1 << i
		if p.count() != before {
			p.inside(f.name, before)
		}
	}
	for i := range s.fields {
		if f := &s.fields[i]; f.required() && seen>>i&1 == 0 {
			before := p.count()
			p.declare(CodeRequired, "is required")
			p.inside(f.name, before)
		}
	}
	if members > MaxMembers {
		p.declare(CodeMembers, "must have no more than %d members", MaxMembers)
	}
	if strangers {
		p.unknownMembers(s, v)
	}
}

// indexOf finds the field called name, looking at field guess first.
func indexOf(fields []field, name Name, guess int) int {
	if guess < len(fields) && name.Is(fields[guess].name) {
		return guess
	}
	for i := range fields {
		if i != guess && name.Is(fields[i].name) {
			return i
		}
	}
	return -1
}

// unknownMembers reports the members of v that s does not declare.
func (p *problems) unknownMembers(s *shape, v Value) {
	sent := map[string]bool{}
	for w := v.walk(KindObject); w.more(); w.value() {
		name := w.name()
		if indexOf(s.fields, name, 0) >= 0 {
			continue
		}
		if len(p.unknown) == MaxIssues { // before the name is copied
			p.more++
			continue
		}
		full, shown := name.shown()
		before := p.count()
		if sent[full] {
			p.add(&p.unknown, CodeDuplicate, "more than one property %s", strconv.Quote(shown))
		} else {
			p.add(&p.unknown, CodeUnknown, "unknown property %s", strconv.Quote(shown))
		}
		sent[full] = true
		p.inside(shown, before)
	}
}

// deepMembers reports the members of v, declared or not, that make it deeper
// than it may be.
func (p *problems) deepMembers(v Value) {
	for w := v.walk(KindObject); w.more(); {
		name := w.name()
		if w.value().Depth() < MaxDepth {
			continue
		}
		_, shown := name.shown()
		before := p.count()
		p.add(&p.unknown, CodeDepth, "property %s is nested over %d levels deep", strconv.Quote(shown), MaxDepth)
		p.inside(shown, before)
	}
}

// shown returns the name, and as much of it as an issue repeats. Halves of
// characters become U+FFFD.
func (n Name) shown() (full, shown string) {
	text, _ := appendUnescaped(nil, n.raw[1:len(n.raw)-1])
	full = string(text)
	runes := 0
	for i := range full {
		if runes++; runes > maxNameRunes {
			return full, full[:i] + "…"
		}
	}
	return full, full
}
