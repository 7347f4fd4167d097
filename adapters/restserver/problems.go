package restserver

import (
	"context"
	"errors"
	"net/http"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
)

// retryAfter is what a client is asked to wait, in seconds.
const retryAfter = "1"

// problem is an error with the status it is sent with.
type problem struct {
	status int
	fault  *fault.Error
}

func (p *problem) Error() string { return p.fault.Error() }

func refuse(status int, code fault.Code, reason, format string, args ...any) error {
	return &problem{status, fault.New(code, reason, format, args...)}
}

// invalid refuses what a request says.
func invalid(issues []fault.Issue) error {
	return &problem{http.StatusBadRequest, fault.Invalid(issues)}
}

func invalidOne(name, message string) error {
	return invalid([]fault.Issue{{Path: []any{name}, Code: "invalid", Message: name + " " + message}})
}

// denied keeps out a caller, for a reason that no scope is.
type denied struct {
	status int
	reason string
	detail string
}

func (d *denied) Error() string { return d.detail }

// statuses is how the faults of the ledger are sent; CONFLICT is not 409, which
// asks for the same request again.
var statuses = map[fault.Code]int{
	fault.NotFound:           http.StatusNotFound,
	fault.InvalidInput:       http.StatusUnprocessableEntity,
	fault.PolicyViolation:    http.StatusUnprocessableEntity,
	fault.Conflict:           http.StatusUnprocessableEntity,
	fault.BackendUnavailable: http.StatusServiceUnavailable,
	fault.OutcomeUnknown:     http.StatusInternalServerError,
}

// statusOf is the status that a fault is sent with.
func statusOf(f *fault.Error) int {
	switch f.Reason {
	case restwire.ReasonTimeout:
		return http.StatusGatewayTimeout
	case restwire.ReasonStale:
		return http.StatusPreconditionFailed
	}
	return statuses[f.Code]
}

// fail answers with an error.
func (s *Server) fail(w http.ResponseWriter, err error) {
	if p, ok := errors.AsType[*problem](err); ok {
		send(w, restwire.ProblemOf(p.status, shortened(p.fault)))
		return
	}
	if d, ok := errors.AsType[*denied](err); ok {
		send(w, restwire.Problem{Type: "about:blank", Title: http.StatusText(d.status), Status: d.status, Detail: d.detail, Reason: d.reason})
		return
	}
	if d, ok := errors.AsType[*access.Denied](err); ok {
		p := restwire.Problem{Type: "about:blank", Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden, Detail: d.Error(), Reason: d.Reason()}
		if d.Scope != (access.Scope{}) {
			p.Required = new(d.Scope.String())
		}
		send(w, p)
		return
	}
	if f := fault.Of(err); f != nil && f.Code != fault.Internal {
		send(w, restwire.ProblemOf(statusOf(f), shortened(f)))
		return
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		// A store that had begun a write says OUTCOME_UNKNOWN itself.
		send(w, restwire.ProblemOf(http.StatusServiceUnavailable,
			fault.New(fault.BackendUnavailable, "store_timeout", "The store did not answer in time. Nothing has happened. Try again later.")))
		return
	}
	s.accident(w, err)
}

// accident answers an error that nobody expected: what it says stays here.
func (s *Server) accident(w http.ResponseWriter, err error) {
	id := s.ids.NewID().String()
	s.log.Error("a request failed", "id", id, "cause", err.Error())
	p := restwire.ProblemOf(http.StatusInternalServerError, &fault.Error{Code: fault.Internal, Reason: "internal", Message: "Internal error."})
	p.ID = &id
	send(w, p)
}

// shortened leaves out issues that nobody reads, so that a problem stays within
// the limits of a body.
func shortened(f *fault.Error) *fault.Error {
	if len(f.Issues) <= strictjson.MaxIssues {
		return f
	}
	issues := append([]fault.Issue{}, f.Issues[:strictjson.MaxIssues]...)
	short := *fault.Invalid(append(issues, fault.Issue{Path: []any{}, Code: strictjson.CodeMoreIssues, Message: "and more problems"}))
	short.Code, short.Reason = f.Code, f.Reason
	return &short
}

func send(w http.ResponseWriter, p restwire.Problem) {
	h := w.Header()
	h.Set("Content-Type", restwire.TypeProblem)
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="refund-ledger"`)
	case http.StatusConflict, http.StatusServiceUnavailable:
		h.Set("Retry-After", retryAfter)
	}
	write(w, p.Status, restwire.Append(make([]byte, 0, 512), p))
}
