package restwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/domain/text"
)

// Reasons that only the wire has.
const (
	ReasonKeyMissing = "operation_key_missing"
	ReasonRunning    = "operation_running"
	ReasonTimeout    = "request_timeout"
	ReasonStale      = "version_mismatch"
	ReasonNoResource = "no_such_resource"
	ReasonMethod     = "method_not_allowed"
	ReasonTooLarge   = "body_too_large"
	ReasonSlow       = "body_timeout"
	ReasonMedia      = "unsupported_media_type"
	ReasonOperation  = "operation_not_found"
	ReasonBusy       = "server_busy"
	// Why a caller is not let in, where it is not a scope.
	ReasonToken      = "token"
	ReasonTenant     = "tenant"
	ReasonDelegation = "delegation"
)

// Problem is an error (RFC 9457). What a caller may not do has no code: it is
// no fault, since the request never reached the rules.
type Problem struct {
	Type      string          `json:"type" doc:"Always about:blank: code and reason say what it is."`
	Title     string          `json:"title" doc:"The words of the status."`
	Status    int             `json:"status" doc:"The status."`
	Detail    string          `json:"detail" doc:"One sentence that says what was wrong and what to do."`
	Code      *string         `json:"code" required:"false" nullable:"false" enum:"NOT_FOUND,INVALID_INPUT,POLICY_VIOLATION,CONFLICT,BACKEND_UNAVAILABLE,OUTCOME_UNKNOWN,INTERNAL" doc:"What sort of fault it is. Absent if the caller was not let in."`
	Reason    string          `json:"reason" doc:"Finer than the code, stable, in snake_case."`
	Retryable bool            `json:"retryable" doc:"Whether the same request may succeed later."`
	Required  *string         `json:"required" required:"false" nullable:"false" doc:"The scope that is missing."`
	ID        *string         `json:"id" required:"false" nullable:"false" doc:"Names an INTERNAL problem in the log of the server."`
	Details   json.RawMessage `json:"details" required:"false" doc:"An object declared for the reason: balance_exceeded has requested, available and currency."`
	Issues    *[]Issue        `json:"issues" required:"false" nullable:"false" doc:"The single problems of an INVALID_INPUT."`
}

// Issue is one problem of an input.
type Issue struct {
	Pointer string `json:"pointer" doc:"Where it is: a JSON pointer (RFC 6901) into the body, or the name of a parameter or header after a slash."`
	Code    string `json:"code" doc:"What sort of problem it is, stable, in snake_case."`
	Message string `json:"message" doc:"Names the field and the rule."`
}

// ProblemOf puts a fault into words.
func ProblemOf(status int, f *fault.Error) Problem {
	p := Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: f.Message,
		Code: new(f.Code.String()), Reason: f.Reason, Retryable: f.Retryable,
	}
	if f.Details != nil {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(f.Details); err != nil {
			panic(err) // details are structs of texts and numbers
		}
		p.Details = bytes.TrimSpace(b.Bytes())
	}
	if len(f.Issues) > 0 {
		issues := make([]Issue, 0, len(f.Issues))
		for _, i := range f.Issues {
			issues = append(issues, Issue{pointer(i.Path), i.Code, i.Message})
		}
		p.Issues = &issues
	}
	return p
}

var escapePointer, unescapePointer = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

func pointer(path []any) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		b.WriteString(escapePointer.Replace(fmt.Sprint(step)))
	}
	return b.String()
}

func parsePointer(s string) ([]any, bool) {
	path := []any{}
	if s == "" {
		return path, true
	}
	text, ok := strings.CutPrefix(s, "/")
	for step := range strings.SplitSeq(text, "/") {
		if n, err := strconv.Atoi(step); err == nil && strconv.Itoa(n) == step {
			path = append(path, n)
		} else {
			path = append(path, unescapePointer.Replace(step))
		}
	}
	return path, ok
}

// Limits of what a client takes from a problem.
const (
	maxReason = 80
	maxDetail = 4096
	maxIssues = strictjson.MaxIssues + 1
)

// details reads the details of each reason that has some.
var details = map[string]func([]byte) (any, error){
	"balance_exceeded": declared(func(r *reader, d refunds.BalanceExceeded) {
		read(r, d.Currency, money.ParseCurrency)
		r.want(len(d.Requested) <= maxFigure && len(d.Available) <= maxFigure, "an amount of the details is too long")
	}),
	"amount_precision": declared(func(r *reader, d refunds.AmountPrecision) { read(r, d.Currency, money.ParseCurrency) }),
	"currency_mismatch": declared(func(r *reader, d refunds.CurrencyMismatch) {
		read(r, d.Requested, money.ParseCurrency)
		read(r, d.Account, money.ParseCurrency)
	}),

	"already_decided":        declared(decided),
	"duplicate_invoice":      declared(blocked),
	"synthesised_invoice":    declared(withheld),
	"override_incomplete":    declared(blocked),
	"override_not_permitted": declared(blocked),
	"reason_without_finding": declared(blocked),
	"blocking_findings":      declared(blocked),
}

// declared reads details that must be exactly a T, and such as check accepts.
func declared[T any](check func(*reader, T)) func([]byte) (any, error) {
	return func(raw []byte) (any, error) {
		var d T
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&d); err != nil {
			return nil, err
		}
		r := reader{}
		check(&r, d)
		return d, r.err
	}
}

// isWord reports whether s is a reason or a code, in snake_case.
func isWord(s string) bool {
	return s != "" && len(s) <= maxReason && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// isShown reports whether a reader sees what s says, within most bytes.
func isShown(s string, most int) bool {
	_, err := text.Parse(s, text.Bounds{Min: 1, Max: most, MaxCodePoints: most})
	return err == nil && len(s) <= most
}

// Refusal is a problem as a client reads it: a fault, or the reason why the
// caller was not let in.
type Refusal struct {
	Fault  *fault.Error // nil: the caller was not let in
	Reason string
	Needs  access.Scope // the scope that is missing, if that is the reason
}

// ParseProblem reads a problem. Members that it does not know are left alone,
// as RFC 9457 asks.
func ParseProblem(status int, doc []byte) (Refusal, error) {
	v, err := strictjson.Check(doc)
	if err != nil {
		return Refusal{}, err
	}
	if v.Kind() != strictjson.KindObject {
		return Refusal{}, fmt.Errorf("the problem is %s", v.Kind())
	}
	if err := v.Wellformed(); err != nil {
		return Refusal{}, err
	}
	if said := v.Lookup("status"); string(said.Raw()) != strconv.Itoa(status) {
		return Refusal{}, fmt.Errorf("the problem is of another status than the answer")
	}
	reason, err := v.Lookup("reason").Text()
	if err != nil || !isWord(reason) {
		return Refusal{}, fmt.Errorf("the problem gives no reason in snake_case")
	}
	if v.Lookup("code").Kind() == strictjson.KindAbsent && (status == http.StatusUnauthorized || status == http.StatusForbidden) {
		name, _ := v.Lookup("required").Text()
		needs, _ := access.ParseScope(name) // what is no scope is none
		return Refusal{Reason: reason, Needs: needs}, nil
	}
	name, _ := v.Lookup("code").Text()
	code, known := fault.ParseCode(name)
	message, err := v.Lookup("detail").Text()
	if !known || err != nil || len(message) > maxDetail*maxIssues {
		return Refusal{}, fmt.Errorf("the problem has no code of ours, or no detail")
	}
	f := &fault.Error{Code: code, Reason: reason, Message: message, Retryable: v.Lookup("retryable").IsTrue()}
	if d := v.Lookup("details"); d.Kind() != strictjson.KindAbsent {
		if read := details[reason]; read != nil { // details nobody declared are nobody's to show
			if f.Details, err = read(d.Raw()); err != nil {
				return Refusal{}, fmt.Errorf("the details are not those of %s", reason)
			}
		}
	}
	for i, issue := range v.Lookup("issues").Elements() {
		at, err := issue.Lookup("pointer").Text()
		path, ok := parsePointer(at)
		code, err2 := issue.Lookup("code").Text()
		said, err3 := issue.Lookup("message").Text()
		if err != nil || err2 != nil || err3 != nil || !ok || at != "" && !isShown(at, maxDetail) || !isWord(code) || !isShown(said, maxDetail) {
			return Refusal{}, fmt.Errorf("an issue of the problem is out of form")
		}
		if i == maxIssues {
			break
		}
		f.Issues = append(f.Issues, fault.Issue{Path: path, Code: code, Message: said})
	}
	if !isShown(message, maxDetail*max(1, len(f.Issues))) { // it may say what each of them says
		return Refusal{}, fmt.Errorf("the detail of the problem is nothing that can be shown")
	}
	return Refusal{Fault: f, Reason: reason}, nil
}
