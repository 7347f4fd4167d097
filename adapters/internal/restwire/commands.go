package restwire

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/refunds"
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
	// Guarded: the request may name the version of the customer it is about.
	Guarded bool
	// Read makes the command of the path's parameters and the body, or says all
	// that is wrong with them.
	Read func(param func(string) string, body []byte) (ledger.Command, []fault.Issue)
	// Write makes the path and the body of a command; it is false for a command
	// that has no form here.
	Write func(cmd ledger.Command) (path string, body []byte, ok bool)
	// Account names the record whose version guards the command.
	Account func(cmd ledger.Command) ledger.Ref
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

var resources = []Resource{
	declare(declaration[refunds.Trigger, refundFields, refunds.Refund]{
		Path: "/v1/customers/{id}/refunds", Title: "Give money back", Scope: access.RefundWrite,
		About: "Refunds the customer, once under the key, if the account is active, in that currency, and has as much.",
		Write: func(c refunds.Trigger) ([]string, refundFields) {
			return []string{c.Customer.String()}, refundFields{c.Amount.Minor(), c.Amount.Currency().String(), c.Reason.String()}
		},
		Read: func(in *input, f refundFields) refunds.Trigger {
			return refunds.Trigger{Request: refunds.Request{
				Customer: parse(in, "id", in.param("id"), customers.ParseID),
				Amount:   in.amount(f.AmountMinor, f.Currency),
				Reason:   parse(in, "reason", f.Reason, refunds.ParseReason),
			}}
		},
		Account: func(c refunds.Trigger) ledger.Ref { return c.Customer.Ref() },
		Answers: func(c refunds.Trigger, r refunds.Refund) bool {
			return r.Customer == c.Customer && r.Amount == c.Amount && r.Reason == c.Reason
		},
	}),
	declare(declaration[refunds.Reverse, reverseFields, refunds.Reversal]{
		Path: "/v1/customers/{id}/refunds/{number}/reversal", Title: "Book a refund back", Scope: access.ControlRules,
		About: "Makes the money of a refund whose payment failed for good refundable again. Once for each refund.",
		Write: func(c refunds.Reverse) ([]string, reverseFields) {
			return []string{c.Customer.String(), strconv.FormatInt(c.Refund, 10)}, reverseFields{c.Reason.String()}
		},
		Read: func(in *input, f reverseFields) refunds.Reverse {
			return refunds.Reverse{
				Customer: parse(in, "id", in.param("id"), customers.ParseID),
				Refund:   parse(in, "number", in.param("number"), parseNumber),
				Reason:   parse(in, "reason", f.Reason, refunds.ParseReason),
			}
		},
		Account: func(c refunds.Reverse) ledger.Ref { return c.Customer.Ref() },
		Answers: func(c refunds.Reverse, r refunds.Reversal) bool {
			return r.Customer == c.Customer && r.Refund == c.Refund && r.Reason == c.Reason
		},
	}),
	declare(declaration[customers.Open, customerFields, customers.Account]{
		Path: "/v1/customers", Title: "Open an account", Scope: access.ControlRules,
		About: "Opens the account of a customer with what can be refunded at first.",
		Write: func(c customers.Open) ([]string, customerFields) { return nil, customerFieldsOf(c) },
		Read:  func(in *input, f customerFields) customers.Open { return f.read(in) },
		Answers: func(c customers.Open, a customers.Account) bool {
			return a.ID == c.ID && a.Profile == c.Profile && a.Status == c.Status && a.Balance() == c.Opening
		},
	}),
	declare(declaration[customers.Import, importFields, customers.Imported]{
		Path: "/v1/imports", Title: "Open many accounts", Scope: access.ControlRules,
		About: "Opens all of the accounts or none. One that was opened with the very same facts stays as it is.",
		Write: func(c customers.Import) ([]string, importFields) {
			all := importFields{Customers: make([]customerFields, 0, len(c.Customers))}
			for _, o := range c.Customers {
				all.Customers = append(all.Customers, customerFieldsOf(o))
			}
			return nil, all
		},
		Read: func(in *input, f importFields) customers.Import {
			var c customers.Import
			for i, one := range f.Customers {
				in.at = []any{"customers", i}
				c.Customers = append(c.Customers, one.read(in))
			}
			return c
		},
		Answers: func(c customers.Import, i customers.Imported) bool { return i.Opened+i.Unchanged == len(c.Customers) },
	}),
	declare(declaration[customers.Adjust, adjustFields, customers.Adjustment]{
		Path: "/v1/customers/{id}/adjustments", Title: "Correct a balance", Scope: access.ControlRules,
		About: "Adds to what the customer can be refunded, or takes from it.",
		Write: func(c customers.Adjust) ([]string, adjustFields) {
			return []string{c.Customer.String()}, adjustFields{c.Change.Minor(), c.Change.Currency().String(), c.Why}
		},
		Read: func(in *input, f adjustFields) customers.Adjust {
			return customers.Adjust{
				Customer: parse(in, "id", in.param("id"), customers.ParseID),
				Change:   in.amount(f.ChangeMinor, f.Currency), Why: f.Why,
			}
		},
		Account: func(c customers.Adjust) ledger.Ref { return c.Customer.Ref() },
		Answers: func(c customers.Adjust, a customers.Adjustment) bool {
			return a.Customer == c.Customer && a.Change == c.Change && a.Why == c.Why
		},
	}),
}

type refundFields struct {
	AmountMinor int64  `json:"amountMinor" doc:"How much, in minor units of the currency: 1250 is 12.50 USD."`
	Currency    string `json:"currency" doc:"ISO 4217 code; must be the account's."`
	Reason      string `json:"reason" doc:"Why, in 10 to 500 visible characters."`
}

type reverseFields struct {
	Reason string `json:"reason" doc:"How it is known that the payment failed, in 10 to 500 visible characters."`
}

type customerFields struct {
	ID           string `json:"id" pattern:"^CUST-\\d{5}$" doc:"CUST- and five digits."`
	Name         string `json:"name" doc:"1 to 200 characters."`
	Email        string `json:"email" doc:"An address of at most 254 bytes."`
	Status       string `json:"status" enum:"active,suspended" doc:"Only active accounts can be refunded."`
	Currency     string `json:"currency" doc:"ISO 4217 code of the account, for good."`
	OpeningMinor int64  `json:"openingMinor" doc:"What can be refunded at first, in minor units."`
	CreatedAt    string `json:"createdAt" format:"date-time" doc:"When the customer came: UTC, milliseconds."`
}

type importFields struct {
	Customers []customerFields `json:"customers" nullable:"false" doc:"The accounts to open."`
}

type adjustFields struct {
	ChangeMinor int64  `json:"changeMinor" doc:"Added to the balance, in minor units; negative takes from it."`
	Currency    string `json:"currency" doc:"ISO 4217 code; must be the account's."`
	Why         string `json:"why" doc:"The explanation, 1 to 2000 bytes."`
}

func customerFieldsOf(c customers.Open) customerFields {
	return customerFields{
		ID: c.ID.String(), Name: c.Profile.Name, Email: c.Profile.Email, Status: c.Status.String(),
		Currency: c.Opening.Currency().String(), OpeningMinor: c.Opening.Minor(), CreatedAt: stamp(c.CreatedAt),
	}
}

func (f customerFields) read(in *input) customers.Open {
	return customers.Open{
		ID:      parse(in, "id", f.ID, customers.ParseID),
		Profile: customers.Profile{Name: f.Name, Email: f.Email},
		Status:  parse(in, "status", f.Status, customers.ParseStatus),
		Opening: in.amount(f.OpeningMinor, f.Currency), CreatedAt: parse(in, "createdAt", f.CreatedAt, parseStamp),
	}
}

// declaration is all that there is to say about the resource of a command.
type declaration[C ledger.Command, F any, A ledger.Record] struct {
	Path, Title, About string
	Scope              access.Scope
	// Write takes a command apart: the parameters of the path, in order, and the
	// fields of the body.
	Write func(C) ([]string, F)
	// Read puts it together again.
	Read func(*input, F) C
	// Account names what If-Match guards, or is nil.
	Account func(C) ledger.Ref
	// Answers compares the answer with what was asked.
	Answers func(C, A) bool
}

func declare[C ledger.Command, F any, A ledger.Record](d declaration[C, F, A]) Resource {
	var zero C
	decoder := strictjson.Compile[F]("the body")
	r := Resource{
		Command: zero.Name(), Path: d.Path, Title: d.Title, About: d.About, Scope: d.Scope, Fields: reflect.TypeFor[F](), Guarded: d.Account != nil,
		Read: func(param func(string) string, body []byte) (ledger.Command, []fault.Issue) {
			fields, issues := Decode(decoder, body)
			in := &input{param: param, issues: issues, form: len(issues)}
			cmd := d.Read(in, fields)
			return cmd, in.issues
		},
		Write: func(cmd ledger.Command) (string, []byte, bool) {
			c, ok := cmd.(C)
			if !ok {
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
	if d.Account != nil {
		r.Account = func(cmd ledger.Command) ledger.Ref { return d.Account(cmd.(C)) }
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
	in.issues = append(in.issues, fault.Issue{Path: path, Code: "invalid", Message: name + ": " + err.Error()})
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
