package restclient

import (
	"context"
	"errors"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/payables"
)

// rule says whether a command may be sent at all, on what the service shows.
type rule func(context.Context, *Client, access.Tenant, ledger.Command) error

// rules are about what is synthesised, which a service knows nothing of: it is
// not on the wire. A command of a type that the name does not promise has no form
// there either, and is refused for that.
var rules = map[string]rule{payables.RouteName: withhold, payables.ImportInvoicesName: keepOut}

// ruled asks a rule, in half of the time at most. What it refuses has not
// happened, unless it had under the same key: then that is the outcome.
func (w *write) ruled(ctx context.Context, allows rule) (out ledger.Outcome, done bool, err error) {
	ctx, stop := context.WithTimeout(ctx, time.Until(w.end)/2)
	defer stop()
	err = allows(ctx, w.c, w.op.Tenant, w.cmd)
	switch fault.CodeOf(err) {
	case fault.PolicyViolation, fault.Conflict, fault.NotFound, fault.InvalidInput:
		before, found, unknown := w.lookUp(ctx)
		switch {
		case errors.Is(unknown, errAnother):
			err = w.c.unreadable(restwire.GetOperation.Name, unknown)
		case unknown != nil:
			w.c.log.Warn("a key could not be looked up", "key", w.op.Key.String(), "cause", cause(unknown))
			err = unreachable()
		case found:
			out, err = before.Replay(w.cmd.Name(), w.fingerprint)
			return out, true, err
		}
	}
	if ctx.Err() != nil { // nothing was sent: who ran out of time is not to think that it may have been
		err = unreachable()
	}
	return out, false, err
}

// withhold refuses to approve what the service does not show whole, or does not
// show at all, unless it is overridden. What a note credits is part of it.
func withhold(ctx context.Context, c *Client, t access.Tenant, cmd ledger.Command) error {
	r, ok := cmd.(payables.Route)
	if !ok || r.Action != payables.Approve || r.Overrides(r.Authority) {
		return nil
	}
	i, err := shown(ctx, c, t, r.Invoice)
	if err != nil {
		return err
	}
	if i.Credits == (payables.InvoiceID{}) {
		return payables.Withhold(i, nil, r.Request, r.Authority)
	}
	credited, err := shown(ctx, c, t, i.Credits)
	if err != nil {
		return err
	}
	return payables.Withhold(i, &credited, r.Request, r.Authority)
}

// shown is an invoice with the first of its lines, which say whether there are
// any.
func shown(ctx context.Context, c *Client, t access.Tenant, id payables.InvoiceID) (payables.Invoice, error) {
	a, err := c.get(ctx, t, "", restwire.GetInvoice, []string{id.String()}, nil)
	if err != nil {
		return payables.Invoice{}, err
	}
	if a == nil {
		return payables.Invoice{}, payables.InvoiceNotFound(id)
	}
	i, err := record(a, c.forms.Invoice.Form, t, id.Ref())
	if err != nil {
		return payables.Invoice{}, c.unreadable(restwire.GetInvoice.Name, err)
	}
	return i, nil
}

// keepOut refuses to bring in what was filled in: on the wire it would be as good
// as what is on record. All else that is wrong the service says.
func keepOut(_ context.Context, _ *Client, _ access.Tenant, cmd ledger.Command) error {
	c, ok := cmd.(payables.ImportInvoices)
	if !ok || !c.Synthesised() {
		return nil
	}
	return fault.Invalid(c.Check())
}
