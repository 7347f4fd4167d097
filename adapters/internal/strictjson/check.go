// Package strictjson reads JSON as it was written: nothing is coerced, folded,
// dropped or guessed, so that what was checked is what is used. A document is
// checked once, by [Check]; the values in it are then walked in place, without
// copies.
package strictjson

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"
)

// SyntaxError says why a document is not JSON. It holds nothing of the document.
type SyntaxError struct {
	At     int // the offset of the byte that can not stand there
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.At) }

// ErrNotUTF8 is the error for a document that is not UTF-8 text.
var ErrNotUTF8 = errors.New("not UTF-8")

// inlineLevels is how deep a document may be before checking it allocates.
const inlineLevels = 1024

// Check reports whether doc is exactly one JSON value by the grammar of RFC
// 8259, in valid UTF-8, with nothing but white space around it. It does not
// judge the depth, which it notes on the value, duplicate names or unpaired
// surrogate escapes: see [Value.Wellformed] and [Decoder].
//
// It keeps one bit for each open array or object and does not recurse, so a
// document of nothing but brackets costs an eighth of its length.
func Check(doc []byte) (Value, error) {
	if len(doc) > math.MaxInt32 {
		return Value{}, &SyntaxError{At: math.MaxInt32, Reason: "document too long"}
	}
	var few [inlineLevels / 64]uint64
	objects := few[:] // bit n tells whether the container at level n is an object
	depth, deepest := 0, 0

	start := skipSpace(doc, 0)
	i := start
	escaped := false
	for want := wantValue; want != wantNothing; {
		i = skipSpace(doc, i)
		switch c := byteAt(doc, i); want {
		case wantValue, wantValueOrEnd:
			switch {
			case c == '"':
				var err error
				if i, escaped, err = checkString(doc, i); err != nil {
					return Value{}, err
				}
			case c == '-' || '0' <= c && c <= '9':
				end, ok := checkNumber(doc, i)
				if !ok {
					return Value{}, unexpected(doc, end, "malformed number")
				}
				i = end
			case c == '{' || c == '[':
				if depth/64 == len(objects) {
					objects = append(objects, 0)
				}
				if c == '{' {
					objects[depth/64] |= 1 << (depth % 64)
					want = wantNameOrEnd
				} else {
					objects[depth/64] &^= 1 << (depth % 64)
					want = wantValueOrEnd
				}
				depth++
				deepest = max(deepest, depth)
				i++
				continue
			case c == ']' && want == wantValueOrEnd:
				depth--
				i++
			default:
				word := literal(c)
				if word == "" || len(doc)-i < len(word) || string(doc[i:i+len(word)]) != word {
					return Value{}, unexpected(doc, i, "no value")
				}
				i += len(word)
			}
			want = wantNext
		case wantName, wantNameOrEnd:
			switch {
			case c == '"':
				end, _, err := checkString(doc, i)
				if err != nil {
					return Value{}, err
				}
				i = skipSpace(doc, end)
				if byteAt(doc, i) != ':' {
					return Value{}, unexpected(doc, i, "no colon after a name")
				}
				i++
				want = wantValue
			case c == '}' && want == wantNameOrEnd:
				depth--
				i++
				want = wantNext
			default:
				return Value{}, unexpected(doc, i, "no name")
			}
		case wantNext:
			inObject := depth > 0 && objects[(depth-1)/64]>>((depth-1)%64)&1 == 1
			switch {
			case depth == 0:
				want = wantNothing
			case c == ',' && inObject:
				i++
				want = wantName
			case c == ',':
				i++
				want = wantValue
			case c == '}' && inObject, c == ']' && !inObject:
				depth--
				i++
			default:
				return Value{}, unexpected(doc, i, "no comma or closing bracket")
			}
		}
	}
	if i != len(doc) {
		return Value{}, unexpected(doc, i, "more after the value")
	}
	raw := trimSpaceEnd(doc[start:])
	return Value{raw: raw, kind: kindOf(raw[0]), escaped: escaped && raw[0] == '"', depth: int32(deepest)}, nil
}

// What Check expects next.
const (
	wantValue = iota
	wantValueOrEnd
	wantName
	wantNameOrEnd
	wantNext
	wantNothing
)

// unexpected is the error for what stands at offset i.
func unexpected(doc []byte, i int, reason string) error {
	if i < len(doc) && doc[i] >= utf8.RuneSelf {
		if r, n := utf8.DecodeRune(doc[i:]); r == utf8.RuneError && n <= 1 {
			return ErrNotUTF8
		}
	}
	if i >= len(doc) {
		reason = "end of the document"
	}
	return &SyntaxError{At: i, Reason: reason}
}

// byteAt returns the byte at i, or 0, which no rule of the grammar accepts, at
// the end.
func byteAt(doc []byte, i int) byte {
	if i < len(doc) {
		return doc[i]
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func skipSpace(doc []byte, i int) int {
	for i < len(doc) && isSpace(doc[i]) {
		i++
	}
	return i
}

func trimSpaceEnd(doc []byte) []byte {
	for len(doc) > 0 && isSpace(doc[len(doc)-1]) {
		doc = doc[:len(doc)-1]
	}
	return doc
}

// literal returns the literal that begins with c, or nothing.
func literal(c byte) string {
	switch c {
	case 't':
		return "true"
	case 'f':
		return "false"
	case 'n':
		return "null"
	}
	return ""
}

// checkNumber returns the offset behind the number at i, or the offset where
// it breaks the grammar.
func checkNumber(doc []byte, i int) (end int, ok bool) {
	if doc[i] == '-' {
		i++
	}
	if byteAt(doc, i) == '0' {
		i++
	} else if i, ok = checkDigits(doc, i); !ok {
		return i, false
	}
	if byteAt(doc, i) == '.' {
		if i, ok = checkDigits(doc, i+1); !ok {
			return i, false
		}
	}
	if c := byteAt(doc, i); c == 'e' || c == 'E' {
		i++
		if c := byteAt(doc, i); c == '+' || c == '-' {
			i++
		}
		return checkDigits(doc, i)
	}
	return i, true
}

// checkDigits passes over one digit or more.
func checkDigits(doc []byte, i int) (end int, ok bool) {
	start := i
	for i < len(doc) && '0' <= doc[i] && doc[i] <= '9' {
		i++
	}
	return i, i > start
}

// checkString returns the offset behind the string whose opening quote stands
// at i, and whether it holds an escape.
func checkString(doc []byte, i int) (end int, escaped bool, err error) {
	i++
	for {
		i += plainRun(doc[i:])
		switch c := byteAt(doc, i); {
		case i >= len(doc):
			return 0, false, unexpected(doc, i, "")
		case c == '"':
			return i + 1, escaped, nil
		case c == '\\':
			escaped = true
			n := escapeLength(doc[i:])
			if n == 0 {
				return 0, false, unexpected(doc, i, "malformed escape")
			}
			i += n
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(doc[i:])
			if r == utf8.RuneError && n == 1 {
				return 0, false, ErrNotUTF8
			}
			i += n
		default:
			return 0, false, unexpected(doc, i, "control character in a string")
		}
	}
}

// escapeLength returns the length of the escape that s begins with, or 0 if it
// is none.
func escapeLength(s []byte) int {
	switch byteAt(s, 1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) < unicodeEscape {
			return 0
		}
		for _, c := range s[2:unicodeEscape] {
			if _, ok := hexDigit(c); !ok {
				return 0
			}
		}
		return unicodeEscape
	}
	return 0
}

// unicodeEscape is the length of an escape like \u20ac.
const unicodeEscape = 6

func hexDigit(c byte) (rune, bool) {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0'), true
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}

// plainRun counts the bytes at the front of s that stand for themselves in a
// JSON string: ASCII, no control character, no quote, no backslash. It looks
// at eight bytes at a time, because most of what passes here is long and plain.
func plainRun[T ~string | ~[]byte](s T) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, backslash := w^ones*'"', w^ones*'\\'
		// Subtracting sets the high bit of each byte that was below what is
		// subtracted. A borrow can only spoil the bytes behind such a byte, so
		// the first high bit is always right.
		if stop := (w | (w - ones*' ') | (quote - ones) | (backslash - ones)) & highs; stop != 0 {
			return i + bits.TrailingZeros64(stop)/8
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] < utf8.RuneSelf && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}
