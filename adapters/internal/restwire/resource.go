package restwire

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
)

// The subjects. Each has a file of its own with its documents, its commands, its
// answers and its reads.
var (
	resources = slices.Concat(refundCommands, customerCommands, payablesCommands, importCommands)
	answers   = slices.Concat(refundAnswers, customerAnswers, payablesAnswers)
)

// Method is how every command is sent.
const Method = http.MethodPost

// Resource is where a command is sent, and in which form.
type Resource struct {
	Command string // its name
	Path    string
	Title   string
	About   string
	Scope   access.Scope
	Fields  reflect.Type // the struct of the body
	// Read makes the command of the path's parameters and the body, or says all
	// that is wrong with them.
	Read func(param func(string) string, body []byte) (ledger.Command, []fault.Issue)
	// Write makes the path and the body of a command; it is false for a command
	// that has no form here.
	Write func(cmd ledger.Command) (path string, body []byte, ok bool)
	// Guards names the record whose version the request may ask for; nil: it has
	// none.
	Guards func(cmd ledger.Command) ledger.Ref
	// Overrides reports whether the command says that the one who asks may
	// override; nil: there is nothing to override.
	Overrides func(cmd ledger.Command) bool
	// Answers reports whether an answer is one to the command.
	Answers func(cmd ledger.Command, answer ledger.Record) bool
}

// Commands are the resources of all commands.
func Commands() []Resource { return resources }

// Of returns the resource of a command, by its name.
func Of(command string) (Resource, bool) {
	for _, r := range resources {
		if r.Command == command {
			return r, true
		}
	}
	return Resource{}, false
}

// declaration is all that there is to say about the resource of a command.
type declaration[C ledger.Command, F any, A ledger.Record] struct {
	Path, Title, About string
	Scope              access.Scope
	// Refuses says that the form would lose what the command says, or is nil.
	Refuses func(C) bool
	// Write takes a command apart: the parameters of the path, in order, and the
	// fields of the body.
	Write func(C) ([]string, F)
	// Read puts it together again.
	Read func(*input, F) C
	// Guards names the record whose tag ([TagOf]) If-Match is about, or is nil.
	Guards func(C) ledger.Ref
	// Overrides says that the command's authority is to override, or is nil. The
	// fields of the body never do.
	Overrides func(C) bool
	// Answers compares the answer with what was asked.
	Answers func(C, A) bool
}

func declare[C ledger.Command, F any, A ledger.Record](d declaration[C, F, A]) Resource {
	var zero C
	decoder := strictjson.Compile[F]("the body")
	r := Resource{
		Command: zero.Name(), Path: d.Path, Title: d.Title, About: d.About, Scope: d.Scope, Fields: reflect.TypeFor[F](),
		Read: func(param func(string) string, body []byte) (ledger.Command, []fault.Issue) {
			fields, issues := Decode(decoder, body)
			in := &input{param: param, issues: issues, form: len(issues)}
			cmd := d.Read(in, fields)
			return cmd, in.issues
		},
		Write: func(cmd ledger.Command) (string, []byte, bool) {
			c, ok := cmd.(C)
			if !ok || d.Refuses != nil && d.Refuses(c) {
				return "", nil, false
			}
			params, fields := d.Write(c)
			if !texts(reflect.ValueOf(fields)) {
				return "", nil, false
			}
			return Expand(d.Path, params...), Append(make([]byte, 0, 256), fields), true
		},
	}
	r.Answers = func(cmd ledger.Command, answer ledger.Record) bool {
		a, ok := answer.(A)
		return ok && d.Answers(cmd.(C), a)
	}
	if d.Guards != nil {
		r.Guards = func(cmd ledger.Command) ledger.Ref { return d.Guards(cmd.(C)) }
	}
	if d.Overrides != nil {
		r.Overrides = func(cmd ledger.Command) bool { return d.Overrides(cmd.(C)) }
	}
	return r
}

// texts reports whether every text in v is UTF-8: JSON has no other, so what is
// not would arrive as something else.
func texts(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Struct:
		for i := range v.NumField() {
			if !texts(v.Field(i)) {
				return false
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if !texts(v.Index(i)) {
				return false
			}
		}
	case reflect.Pointer:
		return v.IsNil() || texts(v.Elem())
	}
	return true
}

// input is a request while it is read.
type input struct {
	param  func(string) string
	at     []any // where in the body the fields are
	issues []fault.Issue
	form   int // how many issues the form of the body has: its fields hold nothing to rely on
}

func (in *input) bad(name string, err error) {
	path := append(append([]any{}, in.at...), name)
	for _, i := range in.issues[:in.form] {
		if len(i.Path) <= len(path) && fmt.Sprint(i.Path...) == fmt.Sprint(path[:len(i.Path)]...) {
			return // reported already
		}
	}
	in.issues = append(in.issues, fault.Issue{Path: path, Code: "invalid", Message: strictjson.Label("", path) + ": " + err.Error()})
}

func parse[T any](in *input, name, text string, parse func(string) (T, error)) T {
	v, err := parse(text)
	if err != nil {
		in.bad(name, err)
	}
	return v
}

func (in *input) amount(minor int64, currency string) money.Amount {
	return money.FromMinor(minor, parse(in, "currency", currency, money.ParseCurrency))
}

func parseNumber(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("the number of an entry is a whole number")
	}
	return n, nil
}

// Read is a resource that is only read.
type Read struct {
	Name, Path, Title, About string
	Scope                    access.Scope // the zero value: a valid token is enough
	Query                    []Query
	Answer                   reflect.Type
	// Tagged: the answer has the tag of the record as its ETag: its version, if it is
	// [ledger.Chained].
	Tagged bool
}

// Query is a parameter after the question mark.
type Query struct {
	Name, About string
	Number      bool
}

var limit = Query{"limit", "How many rows at most, 1 to 1000; 100 if absent. A page may have fewer: go on as long as there is a next.", true}
