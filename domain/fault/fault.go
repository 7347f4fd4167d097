// Package fault holds every error a caller may expect: a closed list of codes
// for programs, a reason finer than the code, one sentence for a person or a
// model. An error that is not an [*Error] is an accident: its code is
// [Internal] and its text must not leave the process.
package fault

import (
	"errors"
	"fmt"
)

// Code says what sort of fault it is. Only the values below exist; the zero
// value means none.
type Code struct{ name string }

var (
	// NotFound: the thing asked for does not exist, or belongs to another
	// tenant: the two answer alike.
	NotFound = Code{"NOT_FOUND"}
	// InvalidInput: what was sent can not be understood or breaks a rule of form.
	InvalidInput = Code{"INVALID_INPUT"}
	// PolicyViolation: the request is well formed and the rules forbid it.
	PolicyViolation = Code{"POLICY_VIOLATION"}
	// Conflict: the request contradicts something decided before.
	Conflict = Code{"CONFLICT"}
	// BackendUnavailable: the system of record could not be asked; nothing happened.
	BackendUnavailable = Code{"BACKEND_UNAVAILABLE"}
	// OutcomeUnknown: the write may or may not have happened; its key tells.
	OutcomeUnknown = Code{"OUTCOME_UNKNOWN"}
	// Internal: a defect. Never shown with its cause.
	Internal = Code{"INTERNAL"}
)

// Codes lists every code there is.
func Codes() []Code {
	return []Code{NotFound, InvalidInput, PolicyViolation, Conflict, BackendUnavailable, OutcomeUnknown, Internal}
}

// String returns the code as it stands on the wire, for example NOT_FOUND.
func (c Code) String() string { return c.name }

// ParseCode finds the code that is written name on the wire.
func ParseCode(name string) (Code, bool) {
	for _, c := range Codes() {
		if c.name == name {
			return c, true
		}
	}
	return Code{}, false
}

// Error is an expected error: a refusal by the rules, or a failure that the
// caller can act on.
type Error struct {
	Code Code
	// Reason is finer than the code and stable, in snake_case: balance_exceeded.
	Reason string
	// Message is one sentence a model can act on. It holds no free text from records.
	Message string
	// Details is nil or a struct declared for the reason, which encodes as a
	// JSON object. It holds no free text from records.
	Details any
	// Retryable says whether the same call may succeed later without a change.
	Retryable bool
	// Issues are the single problems of an InvalidInput.
	Issues []Issue
}

// New makes a fault. Faults of the code [BackendUnavailable] are retryable.
func New(code Code, reason, format string, args ...any) *Error {
	return &Error{Code: code, Reason: reason, Message: fmt.Sprintf(format, args...), Retryable: code == BackendUnavailable}
}

// With returns a copy of e that carries details.
func (e *Error) With(details any) *Error {
	c := *e
	c.Details = details
	return &c
}

// Error returns the code, the reason and the message.
func (e *Error) Error() string { return e.Code.name + "/" + e.Reason + ": " + e.Message }

// Is makes errors.Is hold for two faults of the same code and reason.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Reason == e.Reason
}

// Of returns the fault in err's chain, or nil if nobody classified err.
func Of(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return nil
}

// CodeOf reports the code of err: none for nil, Internal if nobody gave it one.
func CodeOf(err error) Code {
	if err == nil {
		return Code{}
	}
	if e := Of(err); e != nil && e.Code != (Code{}) {
		return e.Code
	}
	return Internal
}

// Issue is one problem of an input: where it is, a stable code, a sentence.
type Issue struct {
	// Path leads to the value: names (string) and positions (int) from the root.
	Path []any `json:"path"`
	// Code is stable, in snake_case: required, unknown_property, too_small.
	Code string `json:"code"`
	// Message names the field and the rule.
	Message string `json:"message"`
}

// Invalid makes an InvalidInput fault of the reason invalid_input from issues;
// its message is theirs, joined.
func Invalid(issues []Issue) *Error {
	e := New(InvalidInput, "invalid_input", "%s", Sentences(issues))
	e.Issues = issues
	return e
}

// Sentences joins the messages of issues with "; ".
func Sentences(issues []Issue) string {
	n := 0
	for _, i := range issues {
		n += len(i.Message) + 2
	}
	b := make([]byte, 0, n)
	for k, i := range issues {
		if k > 0 {
			b = append(b, "; "...)
		}
		b = append(b, i.Message...)
	}
	return string(b)
}
