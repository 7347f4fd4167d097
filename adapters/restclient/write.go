package restclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// lookUpTimeout bounds one look-up of a key, so that one that hangs leaves time
// for another.
const lookUpTimeout = 2 * time.Second

// reservePart is which part of a call is kept for the look-up that decides.
const reservePart = 10

// write is a command on its way.
type write struct {
	c           *Client
	op          operation.Operation
	cmd         ledger.Command
	resource    restwire.Resource
	fingerprint operation.Fingerprint
	call        *call
	end         time.Time // of the whole call
}

// Do implements ports.Ledger. The command is sent with its key, and again with
// the same key only where nothing, or the same thing, can come of it: after a
// connection that failed, 429, 502, 503, 504, and 409 while it runs. When no
// attempt is left, or an answer can not be read, the key is looked up: what is
// found there is the outcome. What is not found, after the time in which the
// service may still commit, has not happened. What can not be asked is
// OUTCOME_UNKNOWN.
//
// Answers that certainly did nothing are taken at their word. The ids and times
// of the outcome are the service's.
//
// What the [rules] refuse is not sent.
func (c *Client) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	if err := ledger.Check(op); err != nil {
		return ledger.Outcome{}, err
	}
	resource, ok := restwire.Of(cmd.Name())
	if !ok {
		return ledger.Outcome{}, fmt.Errorf("restclient: the command %s has no resource", cmd.Name())
	}
	if err := ctx.Err(); err != nil {
		return ledger.Outcome{}, err
	}
	w := &write{c: c, op: op, cmd: cmd, resource: resource, fingerprint: operation.FingerprintOf(cmd.Name(), cmd.Facts()), end: c.until(ctx)}
	if rule := rules[cmd.Name()]; rule != nil {
		if out, done, err := w.ruled(ctx, rule); done || err != nil {
			return out, err
		}
	}
	path, body, ok := resource.Write(cmd)
	if !ok || !restwire.ValidTool(op.Tool) {
		return ledger.Outcome{}, fmt.Errorf("restclient: the command %s or its tool can not be written down", cmd.Name())
	}
	if len(body) > restwire.MaxBody {
		return ledger.Outcome{}, fault.New(fault.InvalidInput, restwire.ReasonTooLarge,
			"The request has more than %d bytes. Nothing has happened. Send it in parts.", restwire.MaxBody)
	}
	now := time.Now()
	w.call = &call{write: true, until: now.Add(window(w.end.Sub(now)))}
	header := c.header(op.Tenant.String())
	header["Content-Type"] = mediaJSON
	values := []string{op.Key.String(), op.Principal, op.Tool}
	header[restwire.HeaderKey], header[restwire.HeaderPrincipal], header[restwire.HeaderTool] = values[0:1:1], values[1:2:2], values[2:3:3]
	if resource.Overrides != nil && resource.Overrides(cmd) {
		header.Set(restwire.HeaderOverride, "true")
	}
	// What is handed over runs on, whoever stops waiting.
	ctx = context.WithoutCancel(ctx)
	return w.settle(ctx, c.send(ctx, w.call, restwire.Method, path, header, body))
}

// window is how much of the time of a call its attempts may take. The rest is
// for knowing what came of them; half is the least they get.
func window(all time.Duration) time.Duration {
	return max(all/2, all-restwire.Grace-min(all/reservePart, time.Second))
}

// settle says what came of the last attempt, and of those before it.
func (w *write) settle(ctx context.Context, a attempt) (ledger.Outcome, error) {
	switch {
	case a.ok():
		out, err := w.outcome(a, a.status == http.StatusOK)
		if err == nil {
			return out, nil
		}
		w.c.log.Error("the answer to a write is not valid", "resource", w.resource.Command, "key", w.op.Key.String(), "cause", err.Error())
		return w.resolve(ctx, unreachable())
	case w.call.sent == 0:
		return ledger.Outcome{}, unreachable()
	case a.known() && !w.call.running:
		return w.refused(ctx, a)
	}
	return w.resolve(ctx, unreachable())
}

// refused deals with an answer that certainly did nothing.
func (w *write) refused(ctx context.Context, a attempt) (ledger.Outcome, error) {
	f := a.refused.Fault
	transient := a.status == http.StatusTooManyRequests || f != nil && f.Code == fault.BackendUnavailable
	var err error = f
	switch {
	case transient:
		err = unreachable()
	case f == nil:
		err = w.c.shutOut(w.resource.Command, a)
	case f.Reason == restwire.ReasonNoResource || f.Reason == restwire.ReasonMethod || f.Reason == restwire.ReasonMedia:
		err = w.c.misunderstood(w.resource.Command, a)
	}
	// What refuses a repeat may be what the first attempt did, whatever the answer
	// to that one said.
	w.call.doubted = w.call.sent > 1 && !transient
	if w.call.open || w.call.doubted || transient {
		return w.resolve(ctx, err)
	}
	return ledger.Outcome{}, err
}

// resolve looks the key up until it is found, or until nothing can come of the
// attempts any more: then otherwise is what happened. Look-ups pass the breaker.
func (w *write) resolve(ctx context.Context, otherwise error) (ledger.Outcome, error) {
	sure := time.Now()
	switch {
	case w.call.running:
		sure = w.end // the other request has a time of its own, which nobody knows
	case w.call.open:
		sure = w.call.until.Add(restwire.Grace)
	}
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		asked := time.Now()
		out, found, err := w.lookUp(ctx)
		switch {
		case err == nil && found:
			return out.Replay(w.cmd.Name(), w.fingerprint)
		case !asked.Before(sure) && (err == nil || !w.call.open && !w.call.running && !w.call.doubted):
			return ledger.Outcome{}, otherwise
		case err != nil:
			w.c.log.Warn("a key could not be looked up", "key", w.op.Key.String(), "cause", cause(err))
		}
		now := time.Now()
		if now.Before(sure) {
			wait = min(wait, sure.Sub(now))
		}
		if !now.Add(wait).Before(w.end) {
			return ledger.Outcome{}, fault.New(fault.OutcomeUnknown, "outcome_unknown",
				"The answer of the ledger was lost, so this may or may not have happened. Look the operation key %s up.", w.op.Key)
		}
		time.Sleep(wait)
	}
}

// lookUp asks once what the key led to.
func (w *write) lookUp(ctx context.Context) (out ledger.Outcome, found bool, err error) {
	end := time.Now().Add(lookUpTimeout)
	if w.end.Before(end) {
		end = w.end
	}
	ctx, stop := context.WithDeadline(ctx, end)
	defer stop()
	a, err := w.c.ask(ctx, restwire.Expand(restwire.GetOperation.Path, w.op.Key.String()), w.c.lookUpHeader(w.op.Tenant.String(), w.op.Principal))
	if err != nil {
		return ledger.Outcome{}, false, err
	}
	switch {
	case a.err != nil:
		return ledger.Outcome{}, false, a.err
	case a.status == http.StatusOK:
		out, err = w.outcome(a, true)
		// Another command's outcome is not this one's answer, and proves that the
		// key is taken.
		if err != nil {
			out, err = record(&a, restwire.OutcomeForm, w.op.Tenant, ledger.OutcomeRef(w.op.Principal, w.op.Key))
			if err == nil && out.Command == w.cmd.Name() && out.Fingerprint == w.fingerprint {
				err = errAnother
			}
		}
		return out, err == nil, err
	case a.status == http.StatusNotFound && a.problem == nil && a.refused.Reason == restwire.ReasonOperation:
		return ledger.Outcome{}, false, nil
	}
	return ledger.Outcome{}, false, fmt.Errorf("the service answers a look-up with the status %d", a.status)
}

var errAnother = errors.New("the answer is to another request")

// outcome reads the answer to the command.
func (w *write) outcome(a attempt, replayed bool) (ledger.Outcome, error) {
	if a.err != nil {
		return ledger.Outcome{}, a.err
	}
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		return ledger.Outcome{}, fmt.Errorf("a command is not answered with the status %d", a.status)
	}
	out, err := record(&a, restwire.OutcomeForm, w.op.Tenant, ledger.OutcomeRef(w.op.Principal, w.op.Key))
	if err != nil {
		return ledger.Outcome{}, err
	}
	if out.Command != w.cmd.Name() || out.Fingerprint != w.fingerprint || !w.resource.Answers(w.cmd, out.Answer) {
		return ledger.Outcome{}, errAnother
	}
	out.Replayed = replayed
	return out, nil
}
