package mcpserver

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
)

// rule is one row of the table that maps a validate tag to its check, its JSON
// Schema keyword and its words. All that a tag means stands in its row.
type rule struct {
	// holds is the check; nil for tags that the validator brings along.
	holds func(value, param string) bool
	// keyword adds to the advertised schema what it can say of the rule.
	keyword func(s *jsonschema.Schema, param string)
	// code and words are the issue when the rule is broken; words follow the
	// name of the field.
	code  string
	words func(value, param string) string
}

// rules are the validate tags that inputs may use. required and omitempty are
// missing on purpose: zero is not absent, so what may be absent is a pointer.
var rules = map[string]rule{
	"omitnil": {},
	"min": {
		keyword: func(s *jsonschema.Schema, param string) { s.Minimum = float(param) },
		code:    "too_small",
		words:   func(_, param string) string { return "must be at least " + param },
	},
	"max": {
		keyword: func(s *jsonschema.Schema, param string) { s.Maximum = float(param) },
		code:    "too_big",
		words:   func(_, param string) string { return "must be at most " + param },
	},
	"more_than": {
		holds: func(value, param string) bool {
			d, err := money.ParseDecimal(value)
			switch {
			case errors.Is(err, money.ErrTooPrecise):
				return !strings.HasPrefix(value, "-")
			case err != nil:
				return errors.Is(err, money.ErrTooLarge)
			}
			return d.Cmp(whole(param)) > 0
		},
		keyword: func(s *jsonschema.Schema, param string) { s.ExclusiveMinimum = float(param) },
		code:    "too_small",
		words:   func(_, param string) string { return "must be greater than " + param },
	},
	"at_most": {
		holds: func(value, param string) bool {
			d, err := money.ParseDecimal(value)
			if errors.Is(err, money.ErrTooPrecise) {
				return true // refused by decimals
			}
			return (err == nil || errors.Is(err, money.ErrTooSmall)) && d.Cmp(whole(param)) <= 0
		},
		keyword: func(s *jsonschema.Schema, param string) { s.Maximum = float(param) },
		code:    "too_big",
		words:   func(_, param string) string { return "must be at most " + param },
	},
	"decimals": { // no keyword: multipleOf is computed in floats by most validators
		holds: func(value, param string) bool {
			d, err := money.ParseDecimal(value)
			return !errors.Is(err, money.ErrTooPrecise) && int64(d.Decimals()) <= whole(param)
		},
		code:  "too_many_decimals",
		words: func(_, param string) string { return "must have at most " + param + " decimal places" },
	},
	"customer_id": {
		holds:   func(value, _ string) bool { _, err := customers.ParseID(value); return err == nil },
		keyword: func(s *jsonschema.Schema, _ string) { s.Pattern = customers.IDPattern },
		code:    "invalid_format",
		words: func(_, _ string) string {
			return "must be CUST- followed by exactly five digits, for example CUST-00001"
		},
	},
	"operation_key": {
		holds:   func(value, _ string) bool { _, err := operation.ParseKey(value); return err == nil },
		keyword: func(s *jsonschema.Schema, _ string) { s.Pattern = operation.KeyPattern },
		code:    "invalid_format",
		words: func(_, _ string) string {
			return fmt.Sprintf("must be 1 to %d letters, digits, underscores or hyphens", operation.MaxKeyLength)
		},
	},
	"cursor": {
		holds:   func(value, _ string) bool { _, err := parseCursor(value); return err == nil },
		keyword: func(s *jsonschema.Schema, _ string) { s.Pattern = cursorPattern },
		code:    "invalid_format",
		words:   func(_, _ string) string { return "must be the nextCursor of the page before" },
	},
	"invoice_id": {
		holds:   func(value, _ string) bool { _, err := payables.ParseInvoiceID(value); return err == nil },
		keyword: func(s *jsonschema.Schema, _ string) { s.Pattern = payables.InvoiceIDPattern },
		code:    "invalid_format",
		words:   func(_, _ string) string { return "must be INV- followed by 4 to 12 digits, for example INV-1001" },
	},
	"vendor_id": {
		holds:   func(value, _ string) bool { _, err := payables.ParseVendorID(value); return err == nil },
		keyword: func(s *jsonschema.Schema, _ string) { s.Pattern = payables.PartyIDPattern },
		code:    "invalid_format",
		words: func(_, _ string) string {
			return "must be 1 to 24 letters, digits or ._- and start with a letter or digit"
		},
	},
	"invoice_cursor": {
		holds:   func(value, _ string) bool { _, err := payables.ParseInvoiceID(value); return err == nil },
		keyword: func(s *jsonschema.Schema, _ string) { s.Pattern = payables.InvoiceIDPattern },
		code:    "invalid_format",
		words:   func(_, _ string) string { return "must be the nextCursor of the page before" },
	},
	"currency": { // the form alone: which codes there are changes, a schema stays
		holds:   func(value, _ string) bool { return currencyForm.MatchString(value) },
		keyword: func(s *jsonschema.Schema, _ string) { s.Pattern = currencyForm.String() },
		code:    "invalid_format",
		words:   func(_, _ string) string { return "must be an upper-case ISO 4217 code such as USD" },
	},
	"invoice_status": oneOf(payables.Statuses()...),
	"action":         oneOf(payables.Approve, payables.Hold, payables.Reject),
	"reason_code":    oneOf(payables.ReasonCodes()...),
	"note": { // as for a reason
		holds: func(value, _ string) bool { _, err := payables.ParseNote(value); return err == nil },
		keyword: func(s *jsonschema.Schema, _ string) {
			s.MinLength, s.MaxLength = new(1), new(payables.MaxNote)
		},
		code: "invalid_text",
		words: func(value, _ string) string {
			_, err := payables.ParseNote(value)
			return err.Error()
		},
	},
	"reason": { // the schema counts code points of what is sent; trimming and format characters are the server's
		holds: func(value, _ string) bool { _, err := refunds.ParseReason(value); return err == nil },
		keyword: func(s *jsonschema.Schema, _ string) {
			s.MinLength, s.MaxLength = new(refunds.MinReason), new(refunds.MaxReason)
		},
		code: "invalid_text",
		words: func(value, _ string) string {
			_, err := refunds.ParseReason(value)
			return strings.TrimPrefix(err.Error(), "the reason ")
		},
	},
}

var currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)

// oneOf is the rule of a closed list.
func oneOf[T fmt.Stringer](all ...T) rule {
	var names []string
	for _, x := range all {
		names = append(names, x.String())
	}
	return rule{
		holds: func(value, _ string) bool { return slices.Contains(names, value) },
		keyword: func(s *jsonschema.Schema, _ string) {
			for _, n := range names {
				s.Enum = append(s.Enum, n)
			}
		},
		code:  "invalid_value",
		words: func(_, _ string) string { return "must be one of " + strings.Join(names, ", ") },
	}
}

func whole(param string) int64 {
	n, err := strconv.ParseInt(param, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("the parameter %q of a rule is no whole number", param))
	}
	return n
}

func float(param string) *float64 { return new(float64(whole(param))) }

// newValidator knows the rules of the table, and the fields by their JSON names.
var newValidator = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
	for tag, r := range rules {
		if r.holds == nil {
			continue
		}
		check := func(f validator.FieldLevel) bool { return r.holds(f.Field().String(), f.Param()) }
		if err := v.RegisterValidation(tag, check); err != nil {
			panic(err)
		}
	}
	return v
})

// tags splits the validate tag of a field into the rules it names, and panics
// on one that has no row in the table.
func tags(f reflect.StructField) (names, params []string) {
	text := f.Tag.Get("validate")
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, param, _ := strings.Cut(part, "=")
		if _, ok := rules[name]; !ok {
			panic(fmt.Sprintf("the validate tag %q of the field %s has no row in the table of rules", name, f.Name))
		}
		names, params = append(names, name), append(params, param)
	}
	return names, params
}

// addKeywords puts into the schema what it can say of the field's rules.
func addKeywords(s *jsonschema.Schema, f reflect.StructField) {
	names, params := tags(f)
	for i, name := range names {
		if k := rules[name].keyword; k != nil {
			k(s, params[i])
		}
	}
}

// checker applies the rules of one input struct.
type checker struct {
	validate *validator.Validate
	fields   map[string]ruled // by their JSON names
}

// ruled are the rules of one field.
type ruled struct {
	name          string
	names, params []string
}

// compileRules looks at each tag of the struct once, so that a mistake in a
// declaration shows at start.
func compileRules[T any]() checker {
	t := reflect.TypeFor[T]()
	c := checker{newValidator(), map[string]ruled{}}
	for i := range t.NumField() {
		f := t.Field(i)
		names, params := tags(f)
		if f.Type.Kind() == reflect.Pointer && (len(names) == 0 || names[0] != "omitnil") && len(names) > 0 {
			panic(fmt.Sprintf("the rules of the optional field %s must start with omitnil", f.Name))
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		c.fields[name] = ruled{name, names, params}
	}
	_ = c.validate.Struct(reflect.New(t).Interface()) // it reflects over a type once, at its first sight: here, not in a call
	return c
}

// check returns an issue for each rule that a field breaks, except for fields
// that have an issue already: what could not be read holds nothing to rely on.
func (c checker) check(in any, already []fault.Issue) []fault.Issue {
	err := c.validate.Struct(in)
	if err == nil {
		return nil
	}
	var found validator.ValidationErrors
	if !errors.As(err, &found) {
		panic(err) // the input is no struct
	}
	var issues []fault.Issue
	for _, e := range found {
		if !reported(already, e.Field()) {
			issues = append(issues, c.broken(c.fields[e.Field()], e.Value())...)
		}
	}
	return issues
}

// broken returns an issue for each rule that the value breaks: the validator
// stops at a field's first.
func (c checker) broken(f ruled, value any) []fault.Issue {
	var issues []fault.Issue
	for i, name := range f.names {
		tag := name
		if f.params[i] != "" {
			tag += "=" + f.params[i]
		}
		if c.validate.Var(value, tag) != nil {
			r := rules[name]
			issues = append(issues, fault.Issue{Path: []any{f.name}, Code: r.code, Message: f.name + " " + r.words(text(value), f.params[i])})
		}
	}
	return issues
}

func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case strictjson.Number:
		return string(v)
	}
	return fmt.Sprint(value)
}

func reported(issues []fault.Issue, field any) bool {
	for _, i := range issues {
		if len(i.Path) == 0 || i.Path[0] == field {
			return true
		}
	}
	return false
}
