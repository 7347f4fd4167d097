package restwire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
)

// Lined is how a record is sent that may have more lines than fit in an answer:
// as the document W with the first lines L, and as parts P with those that
// follow. All have the same tag as long as the record is the same.
type Lined[R, W, L, P any] struct {
	Form[R, W] // with all lines in one document
	parts      parts[R, W, L, P]
	decoder    *strictjson.Decoder[P]
}

// parts is all that there is to say about it.
type parts[R, W, L, P any] struct {
	form Form[R, W]
	of   func(*W) (lines *[]L, next **string) // where they stand; lines is nil if there is no such member
	part func([]L, *string) P
	rows func(P) ([]L, *string)
	line func(L) int64 // its number
}

func lined[R, W, L, P any](p parts[R, W, L, P]) Lined[R, W, L, P] {
	return Lined[R, W, L, P]{p.form, p, strictjson.Compile[P]("the part")}
}

// Tag is the strong entity tag of a record of the tenant.
func (f Lined[R, W, L, P]) Tag(t access.Tenant, r R) string {
	_, tag := f.whole(t, r)
	return tag
}

// whole is the record in words, and its tag.
func (f Lined[R, W, L, P]) whole(t access.Tenant, r R) (W, string) {
	w := f.Of(t, r)
	sum := sha256.Sum256(Append(nil, w))
	return w, `"` + hex.EncodeToString(sum[:]) + `"`
}

// First is the document with as many lines as fit.
func (f Lined[R, W, L, P]) First(t access.Tenant, r R) (document W, tag string) {
	w, tag := f.whole(t, r)
	lines, next := f.parts.of(&w)
	*lines, *next = f.cut(*lines, 0)
	return w, tag
}

// After is the part with the lines that come after the one of that number, 0 for
// all. It is false if there is no such line.
func (f Lined[R, W, L, P]) After(t access.Tenant, r R, number int64) (part P, tag string, ok bool) {
	w, tag := f.whole(t, r)
	lines, _ := f.parts.of(&w)
	ok = number == 0 || slices.ContainsFunc(*lines, func(l L) bool { return f.parts.line(l) == number })
	return f.parts.part(f.cut(*lines, number)), tag, ok
}

// cut takes the lines after a number that fit in MaxPageBytes, one at least.
func (f Lined[R, W, L, P]) cut(lines []L, after int64) (some []L, next *string) {
	some = make([]L, 0, len(lines))
	bytes := 0
	var scratch []byte
	for _, l := range lines {
		if f.parts.line(l) <= after {
			continue
		}
		scratch = Append(scratch[:0], l)
		if bytes += len(scratch) + 1; bytes > MaxPageBytes && len(some) > 0 {
			return some, new(strconv.FormatInt(f.parts.line(some[len(some)-1]), 10))
		}
		some = append(some, l)
	}
	return some, nil
}

// Assembly is a document whose parts come one by one.
type Assembly[R, W, L, P any] struct {
	f Lined[R, W, L, P]
	w W
}

// Begin reads the document, as the first lines came with it. It repeats nothing
// of it in an error.
func (f Lined[R, W, L, P]) Begin(doc []byte) (*Assembly[R, W, L, P], error) {
	w, err := f.Document(doc)
	if lines, next := f.parts.of(&w); err == nil && lines == nil && *next != nil {
		err = errors.New("there are more lines, and no list of the first")
	}
	return &Assembly[R, W, L, P]{f, w}, err
}

// Next is the cursor of the part that is missing, or nil if none is.
func (a *Assembly[R, W, L, P]) Next() *string {
	_, next := a.f.parts.of(&a.w)
	return *next
}

// Add reads the part that was missing. There is an end to how many there are: no
// document has more than most lines.
func (a *Assembly[R, W, L, P]) Add(doc []byte, most int) error {
	p, err := exactly(a.f.decoder, doc)
	if err != nil {
		return err
	}
	lines, next := a.f.parts.of(&a.w)
	more, after := a.f.parts.rows(p)
	if len(more) == 0 || len(*lines)+len(more) > most {
		return errors.New("a part has no lines, or too many")
	}
	*lines, *next = append(*lines, more...), after
	return nil
}

// Record is the record of the tenant, once nothing is missing.
func (a *Assembly[R, W, L, P]) Record(t access.Tenant) (R, error) {
	return a.f.Record(a.w, t)
}

// TagOf is the strong entity tag of a record that has one.
func TagOf(t access.Tenant, r ledger.Record) string {
	for _, tag := range tags {
		if text, ok := tag(t, r); ok {
			return text
		}
	}
	if c, ok := r.(ledger.Chained); ok {
		return ETag(c.Last().Number)
	}
	return ""
}

// IsTag reports whether s is a strong entity tag (RFC 9110, section 8.8.3).
func IsTag(s string) bool {
	if len(s) < 3 || s[0] != '"' || s[len(s)-1] != '"' || len(s) > maxTag {
		return false
	}
	for _, c := range []byte(s[1 : len(s)-1]) {
		if c <= ' ' || c > '~' || c == '"' {
			return false
		}
	}
	return true
}

const maxTag = 256
