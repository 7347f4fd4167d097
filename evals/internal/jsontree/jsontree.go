// Package jsontree reads JSON so that nothing of it is lost: numbers keep their
// digits, members their order, every value its place in the file. A duplicate
// name is an error, since two readers may take different ones.
package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Kind is the type of a JSON value.
type Kind uint8

// The kinds of JSON.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String names the kind as a sentence does: "an object".
func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// Place is where something stands in a file; both count from 1, columns in bytes.
type Place struct{ Line, Column int }

// String returns line:column.
func (p Place) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

// Node is one value.
type Node struct {
	Kind Kind
	At   Place
	// Raw is the value as it was written.
	Raw string
	// Text is what a string stands for.
	Text string
	// Members are an object's, in the order they were written.
	Members []Member
	// Elements are an array's.
	Elements []*Node
}

// Member is one member of an object.
type Member struct {
	Name  string
	At    Place
	Value *Node
}

// Get returns the member of an object, or nil; on nil it returns nil.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	for _, m := range n.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Str returns the text of a string, or "" for anything else, nil too.
func (n *Node) Str() string {
	if n == nil {
		return ""
	}
	return n.Text
}

// Problem is one thing wrong with a document.
type Problem struct {
	At   Place
	Path string // steps[2].want, or ""
	Says string
}

// Error returns the place, the path and what is wrong.
func (p *Problem) Error() string {
	if p.Path == "" {
		return fmt.Sprintf("%s: %s", p.At, p.Says)
	}
	return fmt.Sprintf("%s: %s: %s", p.At, p.Path, p.Says)
}

// Parse reads one document. Its error is a [*Problem].
func Parse(src []byte) (*Node, error) {
	if i := invalidUTF8(src); i >= 0 {
		return nil, &Problem{At: placeOf(src, i), Says: "not UTF-8"}
	}
	// The whole is checked first: the tokens that follow can then be trusted.
	if err := json.Unmarshal(src, new(json.RawMessage)); err != nil {
		at := len(src)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && syntax.Offset > 0 {
			at = int(syntax.Offset) - 1
		}
		return nil, &Problem{At: placeOf(src, at), Says: err.Error()}
	}
	p := &parser{src: src, dec: json.NewDecoder(bytes.NewReader(src)), at: Place{1, 1}}
	p.dec.UseNumber()
	return p.value()
}

func invalidUTF8(src []byte) int {
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func placeOf(src []byte, offset int) Place {
	before := src[:min(offset, len(src))]
	return Place{1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')}
}

type parser struct {
	src  []byte
	dec  *json.Decoder
	seen int   // offset to which at was advanced
	at   Place // place of src[seen]
}

// next returns the next token and where it begins and ends.
func (p *parser) next() (token json.Token, start int, at Place, err error) {
	from := int(p.dec.InputOffset())
	token, err = p.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, 0, Place{}, &Problem{At: placeOf(p.src, from), Says: err.Error()}
	}
	start = from
	for strings.IndexByte(" \t\r\n,:", p.src[start]) >= 0 {
		start++
	}
	for ; p.seen < start; p.seen++ {
		p.at.Column++
		if p.src[p.seen] == '\n' {
			p.at = Place{p.at.Line + 1, 1}
		}
	}
	return token, start, p.at, nil
}

func (p *parser) value() (*Node, error) {
	token, start, at, err := p.next()
	if err != nil {
		return nil, err
	}
	return p.rest(token, start, at)
}

// rest reads the value that begins with token.
func (p *parser) rest(token json.Token, start int, at Place) (*Node, error) {
	n := &Node{At: at}
	switch t := token.(type) {
	case nil:
		n.Kind = Null
	case bool:
		n.Kind = Bool
	case json.Number:
		n.Kind = Number
	case string:
		n.Kind, n.Text = String, t
	case json.Delim:
		if err := p.inside(n, t); err != nil {
			return nil, err
		}
	}
	n.Raw = string(p.src[start:p.dec.InputOffset()])
	return n, nil
}

func (p *parser) inside(n *Node, open json.Delim) error {
	n.Kind = Array
	if open == '{' {
		n.Kind = Object
	}
	names := map[string]bool{}
	for {
		token, start, at, err := p.next()
		if err != nil {
			return err
		}
		if d, ok := token.(json.Delim); ok && (d == '}' || d == ']') {
			return nil
		}
		if n.Kind == Array {
			element, err := p.rest(token, start, at)
			if err != nil {
				return err
			}
			n.Elements = append(n.Elements, element)
			continue
		}
		name := token.(string)
		if names[name] {
			return &Problem{At: at, Says: fmt.Sprintf("duplicate key %q", name)}
		}
		names[name] = true
		value, err := p.value()
		if err != nil {
			return err
		}
		n.Members = append(n.Members, Member{name, at, value})
	}
}

// Compact writes n without white space between its tokens. Scalars stay as they
// were written; swap may give the text of a value in its place.
func (n *Node) Compact(swap func(*Node) (string, bool)) string {
	var b strings.Builder
	n.compact(&b, swap)
	return b.String()
}

func (n *Node) compact(b *strings.Builder, swap func(*Node) (string, bool)) {
	if swap != nil {
		if text, ok := swap(n); ok {
			b.WriteString(text)
			return
		}
	}
	switch n.Kind {
	case Array:
		b.WriteByte('[')
		for i, e := range n.Elements {
			if i > 0 {
				b.WriteByte(',')
			}
			e.compact(b, swap)
		}
		b.WriteByte(']')
	case Object:
		b.WriteByte('{')
		for i, m := range n.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(Quote(m.Name))
			b.WriteByte(':')
			m.Value.compact(b, swap)
		}
		b.WriteByte('}')
	default:
		b.WriteString(n.Raw)
	}
}

// Quote writes s as a JSON string, as readable as may be.
func Quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}
