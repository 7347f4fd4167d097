package restwire

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// Form is how a value is sent: as the document W.
type Form[R, W any] struct {
	// Of puts a value of the tenant into words.
	Of func(access.Tenant, R) W
	// Record is the value, or why the document is none of the tenant's.
	Record  func(W, access.Tenant) (R, error)
	decoder *strictjson.Decoder[W]
}

func form[R, W any](name string, of func(access.Tenant, R) W, record func(W, access.Tenant) (R, error)) Form[R, W] {
	return Form[R, W]{of, record, strictjson.Compile[W](name)}
}

// Document reads what must be exactly a W. Its error repeats nothing of it, but
// the name of a member that nobody declared if it is written like one.
func (f Form[R, W]) Document(doc []byte) (W, error) { return exactly(f.decoder, doc) }

// Read reads the document of a value of the tenant.
func (f Form[R, W]) Read(doc []byte, t access.Tenant) (r R, err error) {
	w, err := f.Document(doc)
	if err != nil {
		return r, err
	}
	return f.Record(w, t)
}

func exactly[W any](d *strictjson.Decoder[W], doc []byte) (W, error) {
	w, issues := Decode(d, doc)
	if len(issues) == 0 {
		return w, nil
	}
	// The message repeats the last name of the path, which may be what was sent:
	// then it is shown if it looks like a name, and not if it could be anything.
	path := issues[0].Path
	if last := len(path) - 1; last >= 0 {
		if name, ok := path[last].(string); ok && !isName(name) {
			return w, fmt.Errorf("a member that nobody declared in %s", strictjson.Label("the document", path[:last]))
		}
	}
	return w, errors.New(issues[0].Message)
}

// isName reports whether s is written as members are named: in ASCII letters,
// digits and underscores.
func isName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

// Pages are lists of documents W, a page P at a time.
type Pages[R, W, P any] struct {
	form    Form[R, W]
	decoder *strictjson.Decoder[P]
	rows    func(P) ([]W, *string)
}

func pages[R, W, P any](f Form[R, W], rows func(P) ([]W, *string)) Pages[R, W, P] {
	return Pages[R, W, P]{f, strictjson.Compile[P]("the page"), rows}
}

// Read reads a page: its rows, and where the next begins, if there is one.
func (p Pages[R, W, P]) Read(doc []byte, t access.Tenant) (rows []R, next *string, err error) {
	page, err := exactly(p.decoder, doc)
	if err != nil {
		return nil, nil, err
	}
	words, next := p.rows(page)
	rows = make([]R, 0, len(words))
	for _, w := range words {
		r, err := p.form.Record(w, t)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, r)
	}
	return rows, next, nil
}

// answer is how one type of answer stands in an outcome.
type answer struct {
	// put puts it there; it is false for another type.
	put func(w *Outcome, t access.Tenant, a ledger.Record) bool
	// get takes it out, and the id of the operation that it names, if it does.
	get func(w Outcome, t access.Tenant) (a ledger.Record, named *operation.ID, there bool, err error)
}

// answerOf declares the member of an outcome that an answer is. id is the
// operation that the answer names, nil if it names none.
func answerOf[A ledger.Record, W any](member func(*Outcome) **W, f Form[A, W], id func(A) operation.ID) answer {
	return answer{
		put: func(w *Outcome, t access.Tenant, a ledger.Record) bool {
			record, ok := a.(A)
			if ok {
				*member(w) = new(f.Of(t, record))
			}
			return ok
		},
		get: func(w Outcome, t access.Tenant) (ledger.Record, *operation.ID, bool, error) {
			document := *member(&w)
			if document == nil {
				return nil, nil, false, nil
			}
			a, err := f.Record(*document, t)
			if id == nil {
				return a, nil, true, err
			}
			return a, new(id(a)), true, err
		},
	}
}

const stampForm = "2006-01-02T15:04:05.000Z"

func stamp(t time.Time) string { return t.UTC().Format(stampForm) }

// parseStamp reads what [stamp] writes. By hand, for each answer has some: the
// general way takes as long as the rest of the answer.
func parseStamp(s string) (time.Time, error) {
	if len(s) == len(stampForm) {
		year, month, day := digits(s[0:4]), digits(s[5:7]), digits(s[8:10])
		hour, minute, second, milli := digits(s[11:13]), digits(s[14:16]), digits(s[17:19]), digits(s[20:23])
		t := time.Date(year, time.Month(month), day, hour, minute, second, milli*int(time.Millisecond), time.UTC)
		// A part that is out of range would have moved another, and the punctuation
		// is not looked at yet.
		var again [len(stampForm)]byte
		if string(t.AppendFormat(again[:0], stampForm)) == s {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("a time is UTC with milliseconds, for example 2026-03-01T09:00:00.000Z")
}

// digits is the value of s, or one that no date has.
func digits(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = 10*n + int(s[i]-'0')
	}
	return n
}

// reader turns texts into values of the domain and keeps the first error.
type reader struct{ err error }

func read[T any](r *reader, text string, parse func(string) (T, error)) T {
	v, err := parse(text)
	r.fail(err)
	return v
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) want(holds bool, what string) {
	if !holds {
		r.fail(fmt.Errorf("%s", what))
	}
}

func (r *reader) amount(minor int64, currency string) money.Amount {
	return money.FromMinor(minor, read(r, currency, money.ParseCurrency))
}

func parseHash(s string) (h [32]byte, err error) {
	if len(s) != hex.EncodedLen(len(h)) {
		return h, fmt.Errorf("a hash is 64 hexadecimal digits")
	}
	_, err = hex.Decode(h[:], []byte(s))
	return h, err
}
