package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
)

const (
	// issuerTime is how long the issuer may take to answer.
	issuerTime = 5 * time.Second
	// maxIssuerBody is how long its answer may be.
	maxIssuerBody = 1 << 20
	// maxSkew is how far our clock may be behind the issuer's.
	maxSkew = 30 * time.Second
	// The keys are fetched again for a key that is not among them, which
	// anybody can claim: at most every keysEvery, after keysAtOnce at once.
	keysEvery  = 10 * time.Second
	keysAtOnce = 5
)

// Algorithms are those that tokens may be signed with: all of them with a
// private key. With a shared secret, who can check a token can make one.
func Algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}
}

// OIDCOptions say which tokens are believed and what their claims mean.
type OIDCOptions struct {
	Issuer string
	// Audience is this server, as it must stand in the claim aud.
	Audience string
	// Algorithms, of [Algorithms], that the issuer signs with.
	Algorithms []string
	Claims     ClaimNames
	// Fixed is whom a claim without a name is taken from.
	Fixed access.Principal
}

// ClaimNames are the claims that make up a principal. Without a name, tenant,
// kind and plan are the same for all, and there is no owner.
type ClaimNames struct{ Tenant, ID, Kind, Plan, Scopes, Owner string }

// OIDC believes the tokens of one issuer that are for this server.
type OIDC struct {
	o        OIDCOptions
	verifier *oidc.IDTokenVerifier
}

// DiscoverOIDC asks the issuer where its keys are. The issuer must be there.
func DiscoverOIDC(ctx context.Context, o OIDCOptions) (*OIDC, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // the issuer is asked a few times a day
	client := &http.Client{
		Timeout:   issuerTime,
		Transport: &issuer{next: transport, fetches: rate.NewLimiter(rate.Every(keysEvery), keysAtOnce)},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the issuer redirects")
		},
	}
	ctx = oidc.ClientContext(ctx, client)
	provider, err := oidc.NewProvider(ctx, o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("the issuer %s can not be used: %w", o.Issuer, err)
	}
	var found struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&found); err != nil {
		return nil, fmt.Errorf("the issuer %s can not be used: %w", o.Issuer, err)
	}
	if err := checkURL(found.Keys); err != nil {
		return nil, fmt.Errorf("the keys of the issuer %s: %w", o.Issuer, err)
	}
	return &OIDC{o, oidc.NewVerifier(o.Issuer, keys{oidc.NewRemoteKeySet(ctx, found.Keys)}, &oidc.Config{
		ClientID: o.Audience, SupportedSigningAlgs: o.Algorithms,
	})}, nil
}

// checkURL refuses an address where somebody on the way could give us another's
// keys: it must be https, unless it is on this machine.
func checkURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return errors.New("it must be an https URL")
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errors.New("it must be an https URL, or http on this machine")
}

// Verify checks a token: signature, algorithm, issuer, audience, times.
func (v *OIDC) Verify(ctx context.Context, token string) (access.Principal, error) {
	trouble := &keyTrouble{}
	t, err := v.verifier.Verify(context.WithValue(ctx, keyTroubleKey{}, trouble), token)
	if trouble.err != nil {
		return access.Principal{}, fault.New(fault.BackendUnavailable, "keys_unavailable", "the issuer's keys can not be fetched: %v", trouble.err)
	}
	if err != nil {
		return access.Principal{}, err
	}
	var all map[string]json.RawMessage
	if err := t.Claims(&all); err != nil {
		return access.Principal{}, err
	}
	if err := begun(all["nbf"], time.Now()); err != nil {
		return access.Principal{}, err
	}
	return v.principal(all)
}

// begun checks the time before which a token must not be used. The library
// lets five minutes pass.
func begun(nbf json.RawMessage, now time.Time) error {
	if nbf == nil {
		return nil
	}
	var seconds float64
	if err := json.Unmarshal(nbf, &seconds); err != nil {
		return errors.New("nbf is no time")
	}
	if float64(now.Add(maxSkew).Unix()) < seconds {
		return errors.New("the token is not valid yet")
	}
	return nil
}

func (v *OIDC) principal(all map[string]json.RawMessage) (access.Principal, error) {
	names, fixed := v.o.Claims, v.o.Fixed
	var c claims
	var err error
	for _, field := range []struct {
		name, fixed string
		into        *string
	}{
		{names.Tenant, fixed.Tenant().String(), &c.tenant},
		{names.ID, "", &c.id},
		{names.Kind, fixed.Kind().String(), &c.kind},
		{names.Plan, fixed.Plan().String(), &c.plan},
	} {
		if *field.into = field.fixed; field.name == "" {
			continue
		}
		if *field.into, err = text(all, field.name); err != nil {
			return access.Principal{}, err
		}
	}
	if names.Owner != "" && all[names.Owner] != nil {
		if c.owner, err = text(all, names.Owner); err != nil {
			return access.Principal{}, err
		}
	}
	if c.scopes, err = list(all[names.Scopes]); err != nil {
		return access.Principal{}, fmt.Errorf("the claim %s is neither a text nor a list of texts", names.Scopes)
	}
	return c.principal()
}

// text returns a claim that must be there and be a text.
func text(all map[string]json.RawMessage, name string) (string, error) {
	var s *string
	if err := json.Unmarshal(all[name], &s); err != nil || s == nil {
		return "", fmt.Errorf("the claim %s is missing or no text", name)
	}
	return *s, nil
}

// list reads the scopes, which issuers send as one text with spaces or as a list.
func list(claim json.RawMessage) ([]string, error) {
	if claim == nil {
		return nil, nil
	}
	var s string
	if json.Unmarshal(claim, &s) == nil {
		return strings.Fields(s), nil
	}
	var l []string
	err := json.Unmarshal(claim, &l)
	return l, err
}

// keys tells a signature that does not hold from keys that can not be fetched:
// the verifier around it makes a text of either.
type keys struct{ remote oidc.KeySet }

type keyTrouble struct{ err error }

var errFetched = errors.New("the keys were fetched a moment ago")

type keyTroubleKey struct{}

func (k keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.remote.VerifySignature(ctx, token)
	// Keys that were fetched a moment ago are as good as any: then it is the
	// token that is not.
	if _, ok := errors.AsType[*url.Error](err); ok && !errors.Is(err, errFetched) {
		if t, ok := ctx.Value(keyTroubleKey{}).(*keyTrouble); ok {
			t.err = err
		}
	}
	return payload, err
}

// issuer is the way to the issuer: bounded, and closed to those who would have
// its keys fetched over and over.
type issuer struct {
	next    http.RoundTripper
	fetches *rate.Limiter
}

func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if !i.fetches.Allow() {
		return nil, errFetched
	}
	a, err := i.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if a.StatusCode != http.StatusOK {
		a.Body.Close()
		return nil, fmt.Errorf("the issuer answers %s", a.Status)
	}
	a.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(a.Body, maxIssuerBody), a.Body}
	return a, nil
}
