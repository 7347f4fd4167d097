package restclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
)

// Why a service does not let a client in. No repetition helps: the settings are
// wrong.
var (
	ErrToken      = errors.New("the service does not take the token")
	ErrTenant     = errors.New("the token is of another tenant")
	ErrDelegation = errors.New("the token may not name a principal")
)

// admitKey is looked up to see who is let in. What it leads to does not matter.
const admitKey = "admission"

// Admit asks the service once whether it takes the token for the principal. Any
// error but those above says that it could not be asked.
func (c *Client) Admit(ctx context.Context, t access.Tenant, principal string) error {
	a, err := c.ask(ctx, restwire.Expand(restwire.GetOperation.Path, admitKey), c.lookUpHeader(t.String(), principal))
	switch {
	case err != nil:
		return err
	case a.status == http.StatusUnauthorized:
		return ErrToken
	case a.status == http.StatusForbidden && a.problem == nil:
		switch a.refused.Reason {
		case restwire.ReasonTenant:
			return ErrTenant
		case restwire.ReasonDelegation:
			return ErrDelegation
		}
		return ErrToken
	case a.err != nil:
		return errors.New(cause(a.err))
	case a.status == http.StatusOK, a.status == http.StatusNotFound && a.problem == nil && a.refused.Reason == restwire.ReasonOperation:
		return nil
	}
	return fmt.Errorf("the service answers with the status %d", a.status)
}
