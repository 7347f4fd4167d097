package strictjson

import (
	"bytes"
	"errors"
	"iter"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the type of a JSON value. The zero kind is that of no value.
type Kind uint8

const (
	KindAbsent Kind = iota
	KindNull
	KindBoolean
	KindNumber
	KindString
	KindArray
	KindObject
)

// String names the kind as a sentence does: "a string".
func (k Kind) String() string {
	switch k {
	case KindNull:
		return "null"
	case KindBoolean:
		return "a boolean"
	case KindNumber:
		return "a number"
	case KindString:
		return "a string"
	case KindArray:
		return "an array"
	case KindObject:
		return "an object"
	}
	return "nothing"
}

// kindOf tells the kind of a checked value from its first byte.
func kindOf(c byte) Kind {
	switch c {
	case '{':
		return KindObject
	case '[':
		return KindArray
	case '"':
		return KindString
	case 't', 'f':
		return KindBoolean
	case 'n':
		return KindNull
	}
	return KindNumber
}

var (
	// ErrSurrogate is the error for an escape like \ud800 that is half of a
	// character: it stands for no text.
	ErrSurrogate = errors.New("unpaired surrogate escape")
	// ErrNotString is the error for asking another value for its text.
	ErrNotString = errors.New("not a string")
)

// Value is a JSON value in a document that [Check] accepted. It refers to the
// document's bytes, which must not change while it is in use. The zero Value
// is no value; its kind is [KindAbsent].
type Value struct {
	raw     []byte
	depth   int32 // how many arrays and objects stand in each other, this one included
	kind    Kind
	escaped bool // a string with at least one escape
}

// Kind returns what v is.
func (v Value) Kind() Kind { return v.kind }

// Raw returns v as it was sent. It must not be changed.
func (v Value) Raw() []byte { return v.raw }

// Depth returns how many arrays and objects are nested in v, v included: 0 for
// a scalar, 1 for {}.
func (v Value) Depth() int { return int(v.depth) }

// IsTrue reports whether v is the literal true.
func (v Value) IsTrue() bool { return v.kind == KindBoolean && v.raw[0] == 't' }

// Text returns the string that v stands for, as a copy.
func (v Value) Text() (string, error) {
	if v.kind != KindString {
		return "", ErrNotString
	}
	return Name{v.raw, v.escaped}.Text()
}

// Is reports whether v is a string and stands for exactly s.
func (v Value) Is(s string) bool {
	return v.kind == KindString && Name{v.raw, v.escaped}.Is(s)
}

// Members returns the members of an object in the order they were sent,
// duplicates included; nothing for another value.
func (v Value) Members() iter.Seq2[Name, Value] {
	return func(yield func(Name, Value) bool) {
		for w := v.walk(KindObject); w.more(); {
			name := w.name()
			if !yield(name, w.value()) {
				return
			}
		}
	}
}

// Elements returns the elements of an array with their positions; nothing for
// another value.
func (v Value) Elements() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		n := 0
		for w := v.walk(KindArray); w.more(); n++ {
			if !yield(n, w.value()) {
				return
			}
		}
	}
}

// Lookup returns the first member of an object whose name is exactly name, or
// no value.
func (v Value) Lookup(name string) Value {
	for w := v.walk(KindObject); w.more(); {
		n := w.name()
		if member := w.value(); n.Is(name) {
			return member
		}
	}
	return Value{}
}

// Name is the name of a member. Names are compared by what they stand for:
// "a" and "\u0061" are the same, "a" and "A" are not.
type Name struct {
	raw     []byte // quotes included
	escaped bool
}

// Is reports whether n stands for exactly s.
func (n Name) Is(s string) bool {
	if !n.escaped {
		return string(n.raw[1:len(n.raw)-1]) == s
	}
	text, err := n.Text()
	return err == nil && text == s
}

// Text returns what n stands for, as a copy.
func (n Name) Text() (string, error) {
	inner := n.raw[1 : len(n.raw)-1]
	if !n.escaped {
		return string(inner), nil
	}
	text, paired := appendUnescaped(make([]byte, 0, len(inner)), inner)
	if !paired {
		return "", ErrSurrogate
	}
	return string(text), nil
}

// appendUnescaped appends what the inside of a checked string stands for.
// Half a character becomes U+FFFD, and the second result is false.
func appendUnescaped(dst, s []byte) (text []byte, paired bool) {
	paired = true
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...), paired
		}
		dst = append(dst, s[:i]...)
		r, size, ok := escapeAt(s[i:])
		paired = paired && ok
		dst = utf8.AppendRune(dst, r)
		s = s[i+size:]
	}
}

// escapeAt returns the character that the checked escape at the front of s
// stands for, with its other half if it takes two, and their length. Half a
// character is U+FFFD, and not ok.
func escapeAt(s []byte) (r rune, size int, ok bool) {
	if s[1] != 'u' {
		return unescape(s[1]), 2, true
	}
	r = hexRune(s)
	if !utf16.IsSurrogate(r) {
		return r, unicodeEscape, true
	}
	if other := s[unicodeEscape:]; len(other) >= unicodeEscape && other[0] == '\\' && other[1] == 'u' {
		if r = utf16.DecodeRune(r, hexRune(other)); r != utf8.RuneError {
			return r, 2 * unicodeEscape, true
		}
	}
	return utf8.RuneError, unicodeEscape, false
}

// hexRune reads the four digits of a checked escape like \u20ac.
func hexRune(s []byte) rune {
	var r rune
	for _, c := range s[2:unicodeEscape] {
		d, _ := hexDigit(c)
		r = r<<4 | d
	}
	return r
}

// unescape returns the character that a backslash and c stand for.
func unescape(c byte) rune {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return rune(c) // a quote, a backslash or a slash
}

// walk steps through the members or elements of a checked value.
type walk struct {
	doc []byte
	at  int
}

// walk begins with the first thing in v, or ends at once if v is not of kind.
func (v Value) walk(kind Kind) walk {
	if v.kind != kind {
		return walk{}
	}
	return walk{v.raw, 1}
}

// more moves to the next thing and reports whether there is one.
func (w *walk) more() bool {
	if w.at >= len(w.doc) {
		return false
	}
	w.at = skipSpace(w.doc, w.at)
	switch w.doc[w.at] {
	case ',':
		w.at = skipSpace(w.doc, w.at+1)
	case '}', ']':
		w.at = len(w.doc)
		return false
	}
	return true
}

// name takes the name of the member that more found.
func (w *walk) name() Name {
	end, escaped := skipString(w.doc, w.at)
	n := Name{w.doc[w.at:end:end], escaped}
	colon := skipSpace(w.doc, end)
	w.at = skipSpace(w.doc, colon+1)
	return n
}

// value takes the value that follows.
func (w *walk) value() Value {
	v, end := valueAt(w.doc, w.at)
	w.at = end
	return v
}

// valueAt returns the checked value at i and the offset behind it.
func valueAt(doc []byte, i int) (v Value, end int) {
	v.kind = kindOf(doc[i])
	switch v.kind {
	case KindString:
		end, v.escaped = skipString(doc, i)
	case KindArray, KindObject:
		end, v.depth = skipNested(doc, i)
	default:
		for end = i; end < len(doc) && !endsScalar(doc[end]); {
			end++
		}
	}
	v.raw = doc[i:end:end]
	return v, end
}

func endsScalar(c byte) bool { return c == ',' || c == '}' || c == ']' || isSpace(c) }

// skipString returns the offset behind the checked string at i, and whether it
// holds an escape.
func skipString(doc []byte, i int) (end int, escaped bool) {
	for end = i + 1; ; {
		end += plainRun(doc[end:])
		switch doc[end] {
		case '"':
			return end + 1, escaped
		case '\\':
			escaped = true
			end += 2
		default: // part of a character beyond ASCII
			end++
		}
	}
}

// skipNested returns the offset behind the checked array or object at i, and
// its depth.
func skipNested(doc []byte, i int) (end int, deepest int32) {
	depth := int32(0)
	for {
		switch doc[i] {
		case '"':
			i, _ = skipString(doc, i)
			continue
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, deepest
			}
		}
		i++
	}
}
