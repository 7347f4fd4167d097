package strictjson

import (
	"bytes"
	"errors"
	"slices"
)

const (
	// MaxDepth is how many arrays and objects may stand in each other.
	MaxDepth = 1000
	// MaxMembers is how many members one object may have.
	MaxMembers = 4096
)

// What [Value.Wellformed] finds, besides [ErrSurrogate].
var (
	ErrDuplicate = errors.New("duplicate member name")
	ErrDepth     = errors.New("nested too deeply")
	ErrMembers   = errors.New("too many members in one object")
)

// Most documents are this small, and need no memory but the stack's.
const (
	fewOpen  = 16
	fewNames = 32
)

// opened is an array or object whose end has not come yet.
type opened struct {
	object bool
	since  mark // where its names begin
}

// Wellformed reports the first reason why two readers of v could understand it
// differently, or why reading it would cost too much: an object with the same
// name twice or with more than [MaxMembers] members, an unpaired surrogate
// escape, arrays and objects nested beyond [MaxDepth].
//
// leaveOut names one member by its path from v, whose value is not looked at.
//
// It takes one pass. What it remembers is bounded by MaxDepth and by the names
// in the objects that are open at the same time.
func (v Value) Wellformed(leaveOut ...string) error {
	var openSpace [fewOpen]opened
	var nameSpace [fewNames]nameAt
	open := openSpace[:0]
	known := names{doc: v.raw, list: nameSpace[:0]}
	matched := 0 // how many names of leaveOut lead to the innermost open object
	doc := v.raw
	for i := 0; i < len(doc); {
		switch c := doc[i]; c {
		case '{', '[':
			if len(open) == MaxDepth {
				return ErrDepth
			}
			open = append(open, opened{c == '{', known.mark()})
			i++
		case '}', ']':
			last := open[len(open)-1]
			open = open[:len(open)-1]
			if last.object && known.haveTwins(last.since) {
				return ErrDuplicate
			}
			known = known.backTo(last.since)
			matched = min(matched, max(len(open)-1, 0))
			i++
		case '"':
			end, escaped := skipString(doc, i)
			name := Name{doc[i:end], escaped}
			if !name.paired() {
				return ErrSurrogate
			}
			if len(open) == 0 || !open[len(open)-1].object {
				i = end
				continue
			}
			var err error
			if known, err = known.with(name, i, open[len(open)-1].since); err != nil {
				return err
			}
			i = skipSpace(doc, skipSpace(doc, end)+1)
			if matched < len(leaveOut) && len(open) == matched+1 && name.Is(leaveOut[matched]) {
				if matched == len(leaveOut)-1 {
					_, i = valueAt(doc, i)
					continue
				}
				if doc[i] == '{' {
					matched++
				}
			}
			if doc[i] == '"' { // here, so that it is not taken for a name
				end, escaped := skipString(doc, i)
				if !(Name{doc[i:end], escaped}).paired() {
					return ErrSurrogate
				}
				i = end
			}
		default: // a number, a literal, white space or a comma
			i++
		}
	}
	return nil
}

// linearNames is how many names of one object are compared with each other one
// by one; above it they are sorted.
const linearNames = 16

// names are the names of all open objects, the innermost last.
type names struct {
	doc  []byte
	list []nameAt
	text []byte // the names that had to be unescaped
}

// nameAt is where a name stands: offsets, because hostile documents have many.
type nameAt struct {
	at, end   int32
	unescaped bool // in the text, not in the document
}

// mark is how much of the names there is at some moment.
type mark struct{ list, text int32 }

func (n names) mark() mark { return mark{int32(len(n.list)), int32(len(n.text))} }

// backTo forgets what was added since the mark.
func (n names) backTo(m mark) names {
	n.list, n.text = n.list[:m.list], n.text[:m.text]
	return n
}

// with adds the name at offset at, which belongs to the object whose names
// began at since.
func (n names) with(name Name, at int, since mark) (names, error) {
	entry := nameAt{at: int32(at + 1), end: int32(at + len(name.raw) - 1)}
	if name.escaped {
		start := len(n.text)
		n.text, _ = appendUnescaped(n.text, name.raw[1:len(name.raw)-1])
		entry = nameAt{int32(start), int32(len(n.text)), true}
	}
	same := n.list[since.list:]
	if len(same) == MaxMembers {
		return n, ErrMembers
	}
	if len(same) < linearNames {
		for _, other := range same {
			if bytes.Equal(n.bytes(entry), n.bytes(other)) {
				return n, ErrDuplicate
			}
		}
	}
	n.list = append(n.list, entry)
	return n, nil
}

// haveTwins reports whether an object that ends has a name twice, if it has so
// many that they were not all compared when they came.
func (n names) haveTwins(since mark) bool {
	same := n.list[since.list:]
	if len(same) <= linearNames {
		return false
	}
	slices.SortFunc(same, func(a, b nameAt) int { return bytes.Compare(n.bytes(a), n.bytes(b)) })
	for i := 1; i < len(same); i++ {
		if bytes.Equal(n.bytes(same[i-1]), n.bytes(same[i])) {
			return true
		}
	}
	return false
}

// bytes returns what a name stands for.
func (n names) bytes(e nameAt) []byte {
	if e.unescaped {
		return n.text[e.at:e.end]
	}
	return n.doc[e.at:e.end]
}

// paired reports whether no half of a character stands in n.
func (n Name) paired() bool {
	if !n.escaped {
		return true
	}
	for s := n.raw; ; {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return true
		}
		_, size, ok := escapeAt(s[i:])
		if !ok {
			return false
		}
		s = s[i+size:]
	}
}
