package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
)

const audience = "https://refunds.example.com/mcp"

// issuerServer is an OpenID Connect issuer: discovery and keys.
type issuerServer struct {
	*httptest.Server
	mu      sync.Mutex
	keys    []jose.JSONWebKey
	down    bool
	fetched int
}

func newIssuer(t testing.TB, keys ...jose.JSONWebKey) *issuerServer {
	t.Helper()
	s := &issuerServer{keys: keys}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.down {
			http.Error(w, "down", http.StatusInternalServerError)
			return
		}
		var answer any
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			answer = map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys", "authorization_endpoint": s.URL + "/a", "token_endpoint": s.URL + "/t", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}}
		case "/keys":
			s.fetched++
			answer = jose.JSONWebKeySet{Keys: s.keys}
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *issuerServer) rotate(keys ...jose.JSONWebKey) {
	s.mu.Lock()
	s.keys = keys
	s.mu.Unlock()
}

func rsaKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func public(id string, key crypto.Signer) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: id, Use: "sig"}
}

type m = map[string]any

// good is what the issuer says of an agent.
func (s *issuerServer) good(change m) m {
	now := time.Now()
	c := m{
		"iss": s.URL, "aud": audience, "sub": "agent-1", "tenant": "acme", "scope": "openid customer:read refund:write",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	for k, v := range change {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

func sign(t testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims m) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("JWT")
	if id != "" {
		o = o.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// unsigned is a token with alg none, or any other header, and a signature.
func unsigned(t testing.TB, header string, claims m, signature string) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	return b64([]byte(header)) + "." + b64(body) + "." + signature
}

func fixed(t testing.TB) access.Principal {
	t.Helper()
	tenant, err := access.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	who, err := access.NewPrincipal(tenant, "local", access.Agent, access.Scopes{}, access.Growth, "")
	if err != nil {
		t.Fatal(err)
	}
	return who
}

func discover(t testing.TB, s *issuerServer, change func(*OIDCOptions)) *OIDC {
	t.Helper()
	o := OIDCOptions{
		Issuer: s.URL, Audience: audience, Algorithms: []string{"RS256", "ES256"}, Fixed: fixed(t),
		Claims: ClaimNames{Tenant: "tenant", ID: "sub", Scopes: "scope"},
	}
	if change != nil {
		change(&o)
	}
	v, err := DiscoverOIDC(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOIDCBelievesItsIssuer(t *testing.T) {
	key := rsaKey(t)
	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := newIssuer(t, public("k1", key), public("k2", elliptical))
	v := discover(t, s, nil)
	for name, token := range map[string]string{
		"RS256":             sign(t, jose.RS256, key, "k1", s.good(nil)),
		"ES256":             sign(t, jose.ES256, elliptical, "k2", s.good(nil)),
		"no kid":            sign(t, jose.RS256, key, "", s.good(nil)),
		"a list of us":      sign(t, jose.RS256, key, "k1", s.good(m{"aud": []string{audience}})),
		"us among others":   sign(t, jose.RS256, key, "k1", s.good(m{"aud": []string{"https://other.example", audience}})),
		"a list of scopes":  sign(t, jose.RS256, key, "k1", s.good(m{"scope": []string{"customer:read", "refund:write", "email"}})),
		"no nbf":            sign(t, jose.RS256, key, "k1", s.good(m{"nbf": nil})),
		"a clock in front":  sign(t, jose.RS256, key, "k1", s.good(m{"nbf": time.Now().Add(maxSkew / 2).Unix()})),
		"a second to spare": sign(t, jose.RS256, key, "k1", s.good(m{"exp": time.Now().Add(2 * time.Second).Unix()})),
	} {
		who, err := v.Verify(t.Context(), token)
		if err != nil || who.ID() != "agent-1" || who.Tenant().String() != "acme" || who.Kind() != access.Agent || who.Plan() != access.Growth ||
			who.Scopes() != access.ScopesOf(access.CustomerRead, access.RefundWrite) {
			t.Errorf("%s: %+v %v", name, who, err)
		}
	}
}

// zoo is a good token of an issuer whose key k1 is key, and all sorts of others.
func zoo(t testing.TB, s *issuerServer, key *rsa.PrivateKey) (good string, bad map[string]string) {
	t.Helper()
	stranger := rsaKey(t)
	other := newIssuer(t, public("k1", stranger))
	published, err := json.Marshal(public("k1", key))
	if err != nil {
		t.Fatal(err)
	}
	modulus := key.N.Bytes()
	good = sign(t, jose.RS256, key, "k1", s.good(nil))
	parts := strings.Split(good, ".")
	return good, map[string]string{
		"nothing":                          "",
		"no token":                         "abc",
		"two parts":                        parts[0] + "." + parts[1],
		"no signature":                     parts[0] + "." + parts[1] + ".",
		"four parts":                       good + ".x",
		"another's signature":              sign(t, jose.RS256, stranger, "k1", s.good(nil)),
		"an unknown key":                   sign(t, jose.RS256, stranger, "k9", s.good(nil)),
		"a claim changed":                  parts[0] + "." + strings.Split(sign(t, jose.RS256, stranger, "k1", s.good(m{"sub": "admin"})), ".")[1] + "." + parts[2],
		"alg none":                         unsigned(t, `{"alg":"none"}`, s.good(nil), ""),
		"alg None":                         unsigned(t, `{"alg":"None","kid":"k1"}`, s.good(nil), ""),
		"alg none with a signature":        unsigned(t, `{"alg":"none","kid":"k1"}`, s.good(nil), parts[2]),
		"no alg":                           unsigned(t, `{"kid":"k1"}`, s.good(nil), parts[2]),
		"HS256 with the public key":        sign(t, jose.HS256, modulus, "k1", s.good(nil)),
		"HS256 with the published key":     sign(t, jose.HS256, published, "k1", s.good(nil)),
		"an algorithm not allowed":         sign(t, jose.RS512, key, "k1", s.good(nil)),
		"its own key in the header":        unsigned(t, `{"alg":"RS256","jwk":`+string(published)+`}`, s.good(nil), parts[2]),
		"a part that must be understood":   unsigned(t, `{"alg":"RS256","kid":"k1","crit":["b64"],"b64":false}`, s.good(nil), parts[2]),
		"another issuer":                   sign(t, jose.RS256, stranger, "k1", other.good(nil)),
		"another issuer's name, our key":   sign(t, jose.RS256, key, "k1", s.good(m{"iss": other.URL})),
		"our issuer with a slash":          sign(t, jose.RS256, key, "k1", s.good(m{"iss": s.URL + "/"})),
		"no issuer":                        sign(t, jose.RS256, key, "k1", s.good(m{"iss": nil})),
		"another audience":                 sign(t, jose.RS256, key, "k1", s.good(m{"aud": "https://other.example/mcp"})),
		"a list without us":                sign(t, jose.RS256, key, "k1", s.good(m{"aud": []string{"https://other.example/mcp", "x"}})),
		"our address and more":             sign(t, jose.RS256, key, "k1", s.good(m{"aud": audience + "/admin"})),
		"no audience":                      sign(t, jose.RS256, key, "k1", s.good(m{"aud": nil})),
		"an empty list":                    sign(t, jose.RS256, key, "k1", s.good(m{"aud": []string{}})),
		"expired":                          sign(t, jose.RS256, key, "k1", s.good(m{"exp": time.Now().Add(-time.Second).Unix()})),
		"no expiry":                        sign(t, jose.RS256, key, "k1", s.good(m{"exp": nil})),
		"not valid yet":                    sign(t, jose.RS256, key, "k1", s.good(m{"nbf": time.Now().Add(2 * maxSkew).Unix()})),
		"nbf is a text":                    sign(t, jose.RS256, key, "k1", s.good(m{"nbf": "soon"})),
		"no subject":                       sign(t, jose.RS256, key, "k1", s.good(m{"sub": nil})),
		"a subject that breaks logs":       sign(t, jose.RS256, key, "k1", s.good(m{"sub": "a\nb"})),
		"no tenant":                        sign(t, jose.RS256, key, "k1", s.good(m{"tenant": nil})),
		"a tenant that is a list":          sign(t, jose.RS256, key, "k1", s.good(m{"tenant": []string{"acme"}})),
		"scopes that are a number":         sign(t, jose.RS256, key, "k1", s.good(m{"scope": 7})),
		"a scope that is never an agent's": sign(t, jose.RS256, key, "k1", s.good(m{"scope": "refund:write approve:vote"})),
		"a scope for controls":             sign(t, jose.RS256, key, "k1", s.good(m{"scope": "control:halt"})),
	}
}

func TestOIDCZoo(t *testing.T) {
	key := rsaKey(t)
	s := newIssuer(t, public("k1", key))
	v := discover(t, s, nil)
	good, bad := zoo(t, s, key)
	for name, token := range bad {
		t.Run(name, func(t *testing.T) {
			who, err := v.Verify(t.Context(), token)
			if err == nil {
				t.Fatalf("it is believed: %+v", who)
			}
			if fault.Of(err) != nil {
				t.Errorf("the keys are blamed: %v", err)
			}
			if token != "" && len(token) > 20 && strings.Contains(err.Error(), strings.Split(token, ".")[1]) {
				t.Errorf("the error repeats the token: %v", err)
			}
		})
	}
	if _, err := v.Verify(t.Context(), good); err != nil {
		t.Errorf("the good one, afterwards: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetched > keysAtOnce {
		t.Errorf("bad tokens had the keys fetched %d times", s.fetched)
	}
}

func TestOIDCFollowsARotation(t *testing.T) {
	before, after := rsaKey(t), rsaKey(t)
	s := newIssuer(t, public("k1", before))
	v := discover(t, s, nil)
	old, fresh := sign(t, jose.RS256, before, "k1", s.good(nil)), sign(t, jose.RS256, after, "k2", s.good(nil))
	if _, err := v.Verify(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), fresh); err == nil {
		t.Fatal("a key that is not out yet is believed")
	}
	// Whoever has the keys fetched is answered a moment before they are those of
	// all, and before the next fetch can begin.
	eventually := func(what string, is func(n int) bool) {
		t.Helper()
		patience := time.Now().Add(20 * time.Second)
		for n := 0; !is(n); n++ {
			if time.Now().After(patience) {
				t.Fatal(what)
			}
			time.Sleep(time.Millisecond)
		}
	}
	believed := func(token string) bool {
		_, err := v.Verify(t.Context(), token)
		return err == nil
	}
	s.rotate(public("k1", before), public("k2", after))
	eventually("a new key is not believed", func(int) bool { return believed(fresh) })
	eventually("the key before it is not believed any more", func(int) bool { return believed(old) })
	s.rotate(public("k2", after))
	unknown := sign(t, jose.RS256, rsaKey(t), "k3", s.good(nil))
	eventually("a key that was withdrawn is believed", func(n int) bool {
		if n%1000 == 0 && believed(unknown) { // the old key goes with the next fetch
			t.Error("an unknown key is believed")
		}
		return !believed(old)
	})
	eventually("the new key is not believed any more", func(int) bool { return believed(fresh) })
}

func TestOIDCTellsKeysItCanNotFetchFromABadToken(t *testing.T) {
	key := rsaKey(t)
	s := newIssuer(t, public("k1", key))
	v := discover(t, s, nil)
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	if _, err := v.Verify(t.Context(), sign(t, jose.RS256, key, "k1", s.good(nil))); fault.CodeOf(err) != fault.BackendUnavailable {
		t.Errorf("it says %v", err)
	}
	if _, err := v.Verify(t.Context(), sign(t, jose.HS256, make([]byte, 32), "k1", s.good(nil))); fault.Of(err) != nil {
		t.Errorf("a bad token is no question of keys: %v", err)
	}
}

func TestOIDCMapsClaims(t *testing.T) {
	key := rsaKey(t)
	s := newIssuer(t, public("k1", key))
	v := discover(t, s, func(o *OIDCOptions) {
		o.Claims = ClaimNames{ID: "azp", Kind: "role", Plan: "tier", Scopes: "scp", Owner: "on_behalf_of"}
	})
	claims := s.good(m{"azp": "client-9", "role": "agent", "tier": "pro", "scp": []string{"refund:read"}, "on_behalf_of": "ada"})
	who, err := v.Verify(t.Context(), sign(t, jose.RS256, key, "k1", claims))
	if err != nil || who.ID() != "client-9" || who.Tenant().String() != "default" || who.Plan() != access.Pro || who.Owner() != "ada" || who.Scopes() != access.ScopesOf(access.RefundRead) {
		t.Errorf("%+v %v", who, err)
	}
	claims["role"], claims["scp"] = "human", "invoice:override"
	delete(claims, "on_behalf_of")
	if who, err = v.Verify(t.Context(), sign(t, jose.RS256, key, "k1", claims)); err != nil || who.Kind() != access.Human || !who.Scopes().Has(access.InvoiceOverride) {
		t.Errorf("%+v %v", who, err)
	}
	delete(claims, "role")
	if who, err = v.Verify(t.Context(), sign(t, jose.RS256, key, "k1", claims)); err == nil {
		t.Errorf("a claim that is missing has a default: %+v", who)
	}
}

func TestOIDCNeedsItsIssuer(t *testing.T) {
	s := newIssuer(t)
	for name, issuer := range map[string]string{"another name": s.URL + "/", "nobody": "http://127.0.0.1:1"} {
		if _, err := DiscoverOIDC(t.Context(), OIDCOptions{Issuer: issuer, Audience: audience}); err == nil {
			t.Errorf("%s will do", name)
		}
	}
	for _, address := range []string{"http://issuer.example/keys", "ftp://127.0.0.1/keys", "/keys", "https://user@issuer.example/keys", ""} {
		if checkURL(address) == nil {
			t.Errorf("keys from %q are believed", address)
		}
	}
}

func BenchmarkOIDC(b *testing.B) {
	key := rsaKey(b)
	s := newIssuer(b, public("k1", key))
	v := discover(b, s, nil)
	token := sign(b, jose.RS256, key, "k1", s.good(nil))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
}
