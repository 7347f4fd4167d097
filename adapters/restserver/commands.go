package restserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// scope is where an operation key is unique.
type scope struct {
	tenant    access.Tenant
	principal string
	key       operation.Key
}

// command runs the command of a resource, on the one road of every write.
func (s *Server) command(resource restwire.Resource) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := s.run(w, r, resource)
		if err != nil {
			s.fail(w, err)
			return
		}
		status := http.StatusCreated
		if out.Replayed {
			status = http.StatusOK
			w.Header().Set(restwire.HeaderReplayed, "true")
		}
		answer(w, status, restwire.OutcomeForm.Of(out.Operation.Tenant, out))
	}
}

func (s *Server) run(w http.ResponseWriter, r *http.Request, resource restwire.Resource) (ledger.Outcome, error) {
	began := s.clock.Now()
	who, err := s.caller(r)
	if err != nil {
		return ledger.Outcome{}, err
	}
	if _, err := parameters(r, nil); err != nil { // a client that sends one expects something of it
		return ledger.Outcome{}, err
	}
	key, err := operationKey(r.Header)
	if err != nil {
		return ledger.Outcome{}, err
	}
	timeout, err := requestTimeout(r.Header)
	if err != nil {
		return ledger.Outcome{}, err
	}
	tool := who.tool
	if tool == "" {
		tool = resource.Command
	}
	leave := free
	defer func() { leave() }()
	// The store may take a little longer than the request, to say what became of it.
	call := app.Call{Principal: who.Principal, Via: who.via, Tool: tool, Key: key, Timeout: timeout + storeGrace}
	out, err := s.app.Write(r.Context(), call, resource.Scope, func(ctx context.Context) (ledger.Command, error) {
		body, err := readBody(w, r, min(bodyTimeout, timeout))
		if err != nil {
			return nil, err
		}
		cmd, issues := resource.Read(r.PathValue, body)
		if len(issues) > 0 {
			return nil, invalid(issues)
		}
		g := guarded{Command: cmd, clock: s.clock, until: began.Add(timeout)}
		if resource.Guards != nil {
			g.record = resource.Guards(cmd)
			if g.tag, err = ifMatch(r.Header); err != nil {
				return nil, err
			}
		}
		if leave, err = s.enter(ctx, scope{who.Tenant(), who.ID(), key}, min(joinTimeout, timeout/2)); err != nil {
			return nil, err
		}
		if complete := completions[resource.Command]; complete != nil {
			g.Command, err = complete(ctx, s.app, call, cmd)
		}
		return g, err
	})
	if fault.CodeOf(err) == fault.OutcomeUnknown {
		s.log.Warn("the outcome of a write is not known", "key", key.String(), "cause", err.Error())
		f := fault.New(fault.OutcomeUnknown, "outcome_unknown",
			"The answer of the store was lost, so this may or may not have happened. Look the key up at /v1/operations/%s, or send the same request again, with the same key.", key)
		f.Retryable = true
		return out, f
	}
	return out, err
}

// completions give a command what is not the client's to say: what is on record,
// the settings of the service, what the caller may.
var completions = map[string]func(context.Context, *app.App, app.Call, ledger.Command) (ledger.Command, error){
	payables.RouteName: func(ctx context.Context, a *app.App, c app.Call, cmd ledger.Command) (ledger.Command, error) {
		return a.Route(ctx, c, cmd.(payables.Route).Request)
	},
	payables.ImportReceiptsName: func(ctx context.Context, a *app.App, c app.Call, cmd ledger.Command) (ledger.Command, error) {
		return payables.ReceiptsOf(cmd.(payables.ImportReceipts).Receipts, func(refs ...ledger.Ref) (ledger.View, error) {
			return a.Ledger.Load(ctx, c.Principal.Tenant(), refs...)
		})
	},
}

// enter waits while another request of the same key runs, then lets this one
// run: it will find what the other left. After the time given the client is
// asked to come again.
func (s *Server) enter(ctx context.Context, k scope, wait time.Duration) (leave func(), err error) {
	s.mu.Lock()
	running, busy := s.running[k]
	if !busy {
		done := make(chan struct{})
		s.running[k] = done
		s.mu.Unlock()
		return func() {
			s.mu.Lock()
			delete(s.running, k)
			s.mu.Unlock()
			close(done)
		}, nil
	}
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	select {
	case <-running:
		return free, nil
	case <-ctx.Done():
		p := problem{http.StatusConflict, fault.New(fault.Conflict, restwire.ReasonRunning, "A request with this operation key is still running. Send the same request again, with the same key.")}
		p.fault.Retryable = true
		return free, &p
	}
}

func free() {}

// guarded is a command under the conditions of its request.
type guarded struct {
	ledger.Command
	clock  ports.Clock
	until  time.Time  // when the client stops waiting
	record ledger.Ref // whose tag is asked for
	tag    string     // "": any
}

// Decide refuses a command that comes too late, or about a record that has
// changed since the client looked.
func (g guarded) Decide(v ledger.View) (ledger.Change, error) {
	if g.clock.Now().After(g.until) {
		return ledger.Change{}, fault.New(fault.BackendUnavailable, restwire.ReasonTimeout,
			"The time of the request was over before it was decided. Nothing has happened. Try again later.")
	}
	if g.tag != "" {
		if r, ok := ledger.Get[ledger.Record](v, g.record); ok && restwire.TagOf(v.Op.Tenant, r) != g.tag {
			return ledger.Change{}, fault.New(fault.Conflict, restwire.ReasonStale, "%s has changed since. Look it up again.", g.record.ID)
		}
	}
	return g.Command.Decide(v)
}

func operationKey(h http.Header) (operation.Key, error) {
	text, there, err := single(h, restwire.HeaderKey)
	if err != nil {
		return operation.Key{}, err
	}
	if !there {
		return operation.Key{}, refuse(http.StatusBadRequest, fault.InvalidInput, restwire.ReasonKeyMissing,
			"The request needs the header %s: a name of your own for this write, the same when you send it again.", restwire.HeaderKey)
	}
	key, err := operation.ParseKey(text)
	if err != nil {
		return operation.Key{}, invalidOne(restwire.HeaderKey, "must match "+operation.KeyPattern)
	}
	return key, nil
}

func requestTimeout(h http.Header) (time.Duration, error) {
	text, there, err := single(h, restwire.HeaderTimeout)
	if err != nil || !there {
		return DefaultTimeout, err
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < restwire.MinTimeout.Milliseconds() || ms > restwire.MaxTimeout.Milliseconds() {
		return 0, invalidOne(restwire.HeaderTimeout, fmt.Sprintf("must be milliseconds, 1 to %d", restwire.MaxTimeout.Milliseconds()))
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func ifMatch(h http.Header) (string, error) {
	tag, there, err := single(h, "If-Match")
	if err != nil || !there {
		return "", err
	}
	if !restwire.IsTag(tag) {
		return "", invalidOne("If-Match", "must be one strong ETag, as the look-up gave it")
	}
	return tag, nil
}

// readBody reads the body of a request, which has to come within a time: a
// client that sends a byte now and then would hold the place of another.
func readBody(w http.ResponseWriter, r *http.Request, within time.Duration) ([]byte, error) {
	if !restwire.IsMedia(r.Header, restwire.TypeJSON) {
		return nil, refuse(http.StatusUnsupportedMediaType, fault.InvalidInput, restwire.ReasonMedia, "The body must be %s in UTF-8, as one header Content-Type says.", restwire.TypeJSON)
	}
	for _, coding := range r.Header["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return nil, refuse(http.StatusUnsupportedMediaType, fault.InvalidInput, restwire.ReasonMedia, "The body must not be compressed: no Content-Encoding but identity.")
		}
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(within)) // a connection without deadlines has the server's bounds
	body, err := restwire.ReadBody(r.Body, r.ContentLength)
	if err == nil {
		_ = conn.SetReadDeadline(time.Time{}) // the answer may take longer
	}
	switch {
	case errors.Is(err, restwire.ErrTooLarge):
		return nil, refuse(http.StatusRequestEntityTooLarge, fault.InvalidInput, restwire.ReasonTooLarge, "The body must have at most %d bytes.", restwire.MaxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, fault.BackendUnavailable, restwire.ReasonSlow,
			"The body did not come within %d milliseconds. Nothing has happened. Send the same request again, with the same key.", within.Milliseconds())
	case err != nil:
		return nil, refuse(http.StatusBadRequest, fault.InvalidInput, "body_incomplete", "The body ended before its length.")
	}
	return body, nil
}
