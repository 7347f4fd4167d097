package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// Write is the one road for servers that are sent commands whole: read makes
// the command of what was sent, once the caller is known to be permitted it. A
// plan is of tools, so there is none to have here.
func (a *App) Write(ctx context.Context, c Call, scope access.Scope, read func(context.Context) (ledger.Command, error)) (ledger.Outcome, error) {
	return a.write(ctx, c, scope, access.Free, read)
}

// write is the one road of every write: permit, build the command, do it once.
// build may read, to resolve ids into what the command carries; what it read is
// no ground for the decision.
func (a *App) write(ctx context.Context, c Call, scope access.Scope, plan access.Plan, build func(context.Context) (ledger.Command, error)) (ledger.Outcome, error) {
	if err := access.Permit(c.Principal, scope, plan); err != nil {
		return ledger.Outcome{}, err
	}
	// The client may go away: a write that is under way is made and answered all
	// the same. Only the time of the call ends it.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), a.timeout(c))
	defer stop()
	if a.RequireOperationKey && (c.Minted || c.Key == (operation.Key{})) {
		return ledger.Outcome{}, fault.New(fault.InvalidInput, "operation_key_required", "The host must send an operation key with every call that changes state. Nothing has happened.")
	}
	c = a.Begin(c)
	op := operation.Operation{
		ID:        a.IDs.NewID(),
		Tenant:    c.Principal.Tenant(),
		Principal: c.Principal.ID(),
		Via:       c.Via,
		Tool:      c.Tool,
		Key:       c.Key,
		At:        a.Clock.Now().UTC().Truncate(time.Millisecond),
	}
	cmd, err := build(ctx)
	if err != nil {
		return ledger.Outcome{}, inTime(a.keyFirst(ctx, c, err))
	}
	out, err := a.Ledger.Do(ctx, op, cmd)
	if fault.CodeOf(err) == fault.OutcomeUnknown || ended(err) {
		return out, fmt.Errorf("%w (%w)", unknown(c), err) // the cause is for the log
	}
	return out, err
}

func (a *App) timeout(c Call) time.Duration {
	if c.Timeout > 0 {
		return min(c.Timeout, a.CallTimeout)
	}
	return a.CallTimeout
}

// ended reports that the time of a call was over while the ledger had the
// write, and that the ledger did not say what became of it: it may have
// happened.
func ended(err error) bool {
	return fault.Of(err) == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
}

// keyFirst returns refused, which came from resolving what was asked, unless
// the host's key has an outcome already: what can not be resolved is not what
// was done then, so the key is used for another request.
func (a *App) keyFirst(ctx context.Context, c Call, refused error) error {
	switch fault.CodeOf(refused) {
	case fault.NotFound, fault.PolicyViolation:
	default: // the ledger could not be asked, or worse
		return refused
	}
	if c.Minted {
		return refused
	}
	ref := ledger.OutcomeRef(c.Principal.ID(), c.Key)
	view, err := a.Ledger.Load(ctx, c.Principal.Tenant(), ref)
	if err != nil {
		return err
	}
	if out, used := ledger.Get[ledger.Outcome](view, ref); used {
		return out.KeyReused()
	}
	return refused
}

// unknown says what to do when nobody knows whether the write happened. A
// repeat under the host's key is safe, and the host's to make: a model can send
// no key, so that its repeat is a second write. A server that has a tool to look
// the key up adds that.
func unknown(c Call) error {
	if !c.Minted {
		f := fault.New(fault.OutcomeUnknown, "outcome_unknown",
			"The answer of the ledger was lost, so this may or may not have happened. Do not send it again yourself. The host can repeat it safely under its operation key %s.", c.Key)
		f.Retryable = true
		return f
	}
	return fault.New(fault.OutcomeUnknown, "outcome_unknown",
		"The answer of the ledger was lost, so this may or may not have happened. Do not send it again. What became of it is on record under the operation key %s: ask the operator.", c.Key)
}
