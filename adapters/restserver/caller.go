package restserver

import (
	"net/http"
	"slices"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
)

// maxToken bounds what is looked at as a token.
const maxToken = 256

// caller is who asks.
type caller struct {
	access.Principal        // for whom, with the scopes of the token
	via              string // the token's principal, if it named another
	tool             string // "" if the request names none
}

// caller finds out who asks, and refuses a request without a good token, or
// one that acts for others and may not.
func (s *Server) caller(r *http.Request) (caller, error) {
	token, ok := bearer(r.Header)
	if !ok {
		return caller{}, &denied{http.StatusUnauthorized, restwire.ReasonToken, "The request needs one header Authorization: Bearer with a token."}
	}
	who, err := s.tokens.Verify(r.Context(), token)
	if fault.CodeOf(err) == fault.BackendUnavailable {
		return caller{}, err
	}
	if err != nil {
		return caller{}, &denied{http.StatusUnauthorized, restwire.ReasonToken, "The token is not known. refund-ledgerd token create makes one."}
	}
	c := caller{Principal: who}
	tenant, named, err := single(r.Header, restwire.HeaderTenant)
	if err != nil {
		return caller{}, err
	}
	if named && tenant != who.Tenant().String() {
		return caller{}, &denied{http.StatusForbidden, restwire.ReasonTenant, "The token is of another tenant than the request."}
	}
	principal, hasPrincipal, err := single(r.Header, restwire.HeaderPrincipal)
	if err != nil {
		return caller{}, err
	}
	tool, hasTool, err := single(r.Header, restwire.HeaderTool)
	if err != nil {
		return caller{}, err
	}
	override, hasOverride, err := single(r.Header, restwire.HeaderOverride)
	if err != nil {
		return caller{}, err
	}
	if hasOverride && (override != "true" || !hasPrincipal) {
		return caller{}, invalidOne(restwire.HeaderOverride, "must be true, about a principal that is named")
	}
	if !hasPrincipal && !hasTool {
		return c, nil
	}
	if who.Kind() != access.Service || !who.Scopes().Has(access.PrincipalDelegate) {
		return caller{}, &denied{http.StatusForbidden, restwire.ReasonDelegation, "Only a service whose token has the scope principal:delegate may name a principal or a tool."}
	}
	if hasPrincipal {
		c.via = who.ID()
		scopes := who.Scopes()
		if !hasOverride { // that is a person's to decide, not the service's
			scopes = without(scopes, access.InvoiceOverride)
		}
		if c.Principal, err = access.NewPrincipal(who.Tenant(), principal, who.Kind(), scopes, who.Plan(), who.Owner()); err != nil {
			return caller{}, invalidOne(restwire.HeaderPrincipal, "must be the id of a principal")
		}
	}
	if hasTool {
		if !restwire.ValidTool(tool) {
			return caller{}, invalidOne(restwire.HeaderTool, "must be the name of a tool in visible ASCII")
		}
		c.tool = tool
	}
	return c, nil
}

func without(s access.Scopes, x access.Scope) access.Scopes {
	return access.ScopesOf(slices.DeleteFunc(s.List(), func(y access.Scope) bool { return y == x })...)
}

// permit refuses a caller whose token has not the scope; the zero scope is
// everybody's.
func (c caller) permit(scope access.Scope) error {
	if scope == (access.Scope{}) {
		return nil
	}
	return access.Permit(c.Principal, scope, access.Free)
}

func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != "" && len(token) <= maxToken
}

// single returns the one value of a header. Two could be understood as either.
func single(h http.Header, name string) (value string, there bool, err error) {
	values := h.Values(name)
	if len(values) > 1 {
		return "", false, invalidOne(name, "must be sent once")
	}
	if len(values) == 0 {
		return "", false, nil
	}
	return values[0], true, nil
}
