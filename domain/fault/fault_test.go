package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/refundledger/refundledger/domain/fault"
)

func TestCodeOf(t *testing.T) {
	var none *fault.Error
	for _, tt := range []struct {
		name string
		err  error
		want fault.Code
	}{
		{"no error has no code", nil, fault.Code{}},
		{"a fault has its own", fault.New(fault.Conflict, "taken", "Taken."), fault.Conflict},
		{"a wrapped fault keeps it", fmt.Errorf("while testing: %w", fault.New(fault.NotFound, "gone", "Gone.")), fault.NotFound},
		{"of two faults the outer one counts", errors.Join(fault.New(fault.Conflict, "taken", "Taken."), fault.New(fault.NotFound, "gone", "Gone.")), fault.Conflict},
		{"an error that nobody classified is internal", errors.New("no such host"), fault.Internal},
		{"a fault without a code was not classified", &fault.Error{Reason: "odd", Message: "secret"}, fault.Internal},
		{"a nil fault in an error is internal", error(none), fault.Internal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fault.CodeOf(tt.err); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEveryCodeReadsBack(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range fault.Codes() {
		back, ok := fault.ParseCode(c.String())
		if !ok || back != c || seen[c.String()] || c == (fault.Code{}) {
			t.Errorf("%q reads back as %q, %t", c, back, ok)
		}
		seen[c.String()] = true
	}
	for _, s := range []string{"", "not_found", "NOT_FOUND ", "OK"} {
		if c, ok := fault.ParseCode(s); ok {
			t.Errorf("%q is no code and gave %q", s, c)
		}
	}
}

func TestOnlyAnUnavailableBackendIsRetryableByItself(t *testing.T) {
	for _, c := range fault.Codes() {
		if got := fault.New(c, "r", "M.").Retryable; got != (c == fault.BackendUnavailable) {
			t.Errorf("%s is retryable: %t", c, got)
		}
	}
}

func TestWithLeavesTheOriginalAlone(t *testing.T) {
	plain := fault.New(fault.PolicyViolation, "balance_exceeded", "Too much.")
	rich := plain.With(struct{ N int }{7})
	if plain.Details != nil || rich.Details == nil || rich.Message != plain.Message {
		t.Fatalf("%+v, %+v", plain, rich)
	}
}

func TestFaultsAreEqualByCodeAndReason(t *testing.T) {
	a := fault.New(fault.PolicyViolation, "balance_exceeded", "A refund of 5 exceeds 4.")
	for _, tt := range []struct {
		name   string
		target error
		want   bool
	}{
		{"another sentence is the same fault", fault.New(fault.PolicyViolation, "balance_exceeded", "?"), true},
		{"another reason is another fault", fault.New(fault.PolicyViolation, "account_suspended", "?"), false},
		{"another code is another fault", fault.New(fault.Conflict, "balance_exceeded", "?"), false},
		{"another error is no fault", errors.New("balance_exceeded"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := errors.Is(fmt.Errorf("wrapped: %w", a), tt.target); got != tt.want {
				t.Fatalf("got %t", got)
			}
		})
	}
}

func TestInvalidNamesEveryIssue(t *testing.T) {
	issues := []fault.Issue{
		{Path: []any{"amount"}, Code: "too_small", Message: "amount must be more than 0"},
		{Path: []any{"lines", 2, "sku"}, Code: "required", Message: "sku is required"},
	}
	f := fault.Invalid(issues)
	if f.Message != "amount must be more than 0; sku is required" || fault.CodeOf(f) != fault.InvalidInput {
		t.Fatalf("%+v", f)
	}
	wire, err := json.Marshal(f.Issues)
	if want := `[{"path":["amount"],"code":"too_small","message":"amount must be more than 0"},{"path":["lines",2,"sku"],"code":"required","message":"sku is required"}]`; err != nil || string(wire) != want {
		t.Fatalf("%s, %v", wire, err)
	}
	if s := fault.Sentences(nil); s != "" {
		t.Fatalf("no issues say %q", s)
	}
}

// A message is built once, from a format: a percent sign in an argument is text.
func TestArgumentsAreNoFormat(t *testing.T) {
	if m := fault.New(fault.InvalidInput, "r", "The id %s is odd.", "100%s").Message; m != "The id 100%s is odd." {
		t.Fatal(m)
	}
	if m := fault.Invalid([]fault.Issue{{Message: "100%d is odd"}}).Message; m != "100%d is odd" {
		t.Fatal(m)
	}
}
