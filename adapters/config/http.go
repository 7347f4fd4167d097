package config

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what is served over HTTP.
const (
	maxInFlight = 100_000
	maxRate     = 1_000_000
)

// noClaim is what stands for a claim that the tokens do not have.
const noClaim = "-"

// httpVariables are what refund-mcp reads too when it serves over HTTP.
type httpVariables struct {
	Addr         string `env:"MCP_HTTP_ADDR" envDefault:"127.0.0.1:3333" doc:"where to listen: the endpoint is /mcp, beside it are /healthz and /readyz"`
	PublicURL    string `env:"MCP_PUBLIC_URL" doc:"the address of the endpoint as clients know it, which is what their tokens are for; by default made from MCP_HTTP_ADDR"`
	Hosts        string `env:"MCP_ALLOWED_HOSTS" doc:"what the header Host may say, with commas between, each with its port if clients send one; by default the names of this machine for itself, the address it listens on and the host of MCP_PUBLIC_URL"`
	Origins      string `env:"MCP_ALLOWED_ORIGINS" doc:"pages that may call from a browser, with commas between, such as https://app.example.com; by default none"`
	TLSCert      string `env:"MCP_TLS_CERT" doc:"the file of the certificate, with the chain, for https; read again when it changes"`
	TLSKey       string `env:"MCP_TLS_KEY" doc:"the file of its key"`
	BehindProxy  string `env:"MCP_BEHIND_PROXY" envDefault:"false" doc:"true: serve without TLS on an address that others reach, since a proxy in front of it has TLS"`
	MaxInFlight  string `env:"MCP_MAX_IN_FLIGHT" envDefault:"256" doc:"how many requests may be at work at once; the next is answered 503"`
	MaxEach      string `env:"MCP_MAX_IN_FLIGHT_EACH" doc:"how many of them may be one principal's, when tokens say who calls; the next is told to wait; by default half"`
	RateLimit    string `env:"RATE_LIMIT" envDefault:"off" doc:"requests a second and at once for each principal, such as 20:40, or off"`
	MetricsAddr  string `env:"MCP_METRICS_ADDR" doc:"an address of this machine for itself to serve /metrics on, such as 127.0.0.1:9464"`
	MetricsToken string `env:"MCP_METRICS_TOKEN" secret:"true" doc:"the bearer token for /metrics on MCP_HTTP_ADDR; without one it is not there"`
	AuthMode     string `env:"AUTH_MODE" envDefault:"none" doc:"who calls over HTTP: static (AUTH_TOKENS), oidc (OIDC_ISSUER) or none, where everybody is the PRINCIPAL_ID"`
	Anonymous    string `env:"MCP_ALLOW_ANONYMOUS" envDefault:"false" doc:"true: AUTH_MODE none is meant; only on an address of this machine for itself"`
	Tokens       string `env:"AUTH_TOKENS" doc:"the file of hashed tokens for static, a JSON object a line: sha256, tenant, id, kind, scopes, plan; read again when it changes"`
	Issuer       string `env:"OIDC_ISSUER" doc:"the issuer whose tokens are believed"`
	Audience     string `env:"OIDC_AUDIENCE" doc:"what the claim aud must name; by default the MCP_PUBLIC_URL"`
	Algorithms   string `env:"OIDC_ALGORITHMS" envDefault:"RS256,ES256" doc:"how tokens may be signed, with commas between"`
	ClaimTenant  string `env:"OIDC_CLAIM_TENANT" envDefault:"tenant" doc:"the claim that names the tenant; - for PRINCIPAL_TENANT"`
	ClaimID      string `env:"OIDC_CLAIM_ID" envDefault:"sub" doc:"the claim that names the principal"`
	ClaimKind    string `env:"OIDC_CLAIM_KIND" envDefault:"-" doc:"the claim that says agent, human or service; - for PRINCIPAL_KIND"`
	ClaimPlan    string `env:"OIDC_CLAIM_PLAN" envDefault:"-" doc:"the claim that names the plan; - for PRINCIPAL_PLAN"`
	ClaimScopes  string `env:"OIDC_CLAIM_SCOPES" envDefault:"scope" doc:"the claim that lists the scopes"`
	ClaimOwner   string `env:"OIDC_CLAIM_OWNER" envDefault:"-" doc:"the claim that names the human who answers for an agent; - for none"`
}

// AuthMode says how callers over HTTP are known.
type AuthMode string

// The ways there are.
const (
	NoAuth     AuthMode = "none"
	StaticAuth AuthMode = "static"
	OIDCAuth   AuthMode = "oidc"
)

// HTTP is how the server is reached over HTTP, checked.
type HTTP struct {
	Addr string
	// PublicURL and Hosts are empty where they follow from what is listened on.
	PublicURL        string
	Hosts, Origins   []string
	TLSCert, TLSKey  string
	MaxInFlight      int
	MaxEach          int     // of MaxInFlight; 0 where all callers are one
	Rate             float64 // 0: no limit
	Burst            int
	MetricsAddr      string
	MetricsToken     string
	AuthMode         AuthMode
	Tokens           string
	Issuer, Audience string
	Algorithms       []string
	ClaimTenant      string // "" where the tokens have no such claim
	ClaimID          string
	ClaimKind        string
	ClaimPlan        string
	ClaimScopes      string
	ClaimOwner       string
	// Shown are the effective settings, each variable and its value, secrets masked.
	Shown [][2]string
}

// ParseHTTP reads what an HTTP server needs from the environment, given as
// KEY=value. algorithms are those that can be checked. What is not safe is an
// error, as every variable is that is wrong.
func ParseHTTP(environ, algorithms []string) (HTTP, error) {
	v, err := parse[httpVariables](environ)
	if err != nil {
		return HTTP{}, err
	}
	p := problems{}
	c := HTTP{
		Addr: v.Addr, PublicURL: v.PublicURL,
		Hosts:   p.each("MCP_ALLOWED_HOSTS", v.Hosts, hostForm, "a host such as refunds.example.com or localhost:3333"),
		Origins: p.each("MCP_ALLOWED_ORIGINS", v.Origins, originForm, "an origin such as https://app.example.com"),
		TLSCert: v.TLSCert, TLSKey: v.TLSKey,
		MaxInFlight: p.integer("MCP_MAX_IN_FLIGHT", v.MaxInFlight, maxInFlight),
		MetricsAddr: v.MetricsAddr, MetricsToken: v.MetricsToken,
		AuthMode: AuthMode(p.one("AUTH_MODE", v.AuthMode, string(NoAuth), string(StaticAuth), string(OIDCAuth))),
		Tokens:   v.Tokens, Issuer: v.Issuer, Audience: v.Audience,
		ClaimTenant: claim(v.ClaimTenant), ClaimID: claim(v.ClaimID), ClaimKind: claim(v.ClaimKind),
		ClaimPlan: claim(v.ClaimPlan), ClaimScopes: claim(v.ClaimScopes), ClaimOwner: claim(v.ClaimOwner),
		Shown: shown(v),
	}
	if c.AuthMode != NoAuth {
		c.MaxEach = (c.MaxInFlight + 1) / 2
	}
	if v.MaxEach != "" {
		c.MaxEach = p.integer("MCP_MAX_IN_FLIGHT_EACH", v.MaxEach, c.MaxInFlight)
	}
	c.Rate, c.Burst = p.rate("RATE_LIMIT", v.RateLimit)
	behindProxy, anonymous := p.boolean("MCP_BEHIND_PROXY", v.BehindProxy), p.boolean("MCP_ALLOW_ANONYMOUS", v.Anonymous)
	p.reach(c, behindProxy, anonymous)
	if c.AuthMode == StaticAuth && c.Tokens == "" {
		p.add("AUTH_TOKENS", "is missing: AUTH_MODE static needs the file of the hashed tokens")
	}
	if c.AuthMode == OIDCAuth {
		c.Algorithms = p.list("OIDC_ALGORITHMS", v.Algorithms, algorithms)
		if !private(c.Issuer) {
			p.add("OIDC_ISSUER", "must be the https URL of the issuer, or http on this machine, not %q", c.Issuer)
		}
		if c.ClaimID == "" {
			p.add("OIDC_CLAIM_ID", "must name a claim: who calls is in every token")
		}
	}
	return c, errors.Join(p...)
}

// HTTPVariables documents what refund-mcp reads when it serves over HTTP.
func HTTPVariables() []Variable { return documentation[httpVariables]() }

// reach refuses ways to be reached that are not safe.
func (p *problems) reach(c HTTP, behindProxy, anonymous bool) {
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		p.add("MCP_HTTP_ADDR", "must be a host and a port such as 127.0.0.1:3333, not %q", c.Addr)
		return
	}
	local := loopback(host)
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		p.add("MCP_TLS_CERT, MCP_TLS_KEY", "go together: one of them is missing")
	case !local && c.TLSCert == "" && !behindProxy:
		p.add("MCP_HTTP_ADDR", "is reached by others, so MCP_TLS_CERT and MCP_TLS_KEY are needed, or MCP_BEHIND_PROXY=true where a proxy has TLS")
	}
	switch {
	case c.AuthMode != NoAuth:
	case !local:
		p.add("AUTH_MODE", "is none, and MCP_HTTP_ADDR is reached by others: set it to static or oidc")
	case !anonymous:
		p.add("AUTH_MODE", "is none: set it to static or oidc, or say MCP_ALLOW_ANONYMOUS=true if every program of this machine may call")
	}
	if ip, err := netip.ParseAddr(host); c.PublicURL == "" && c.AuthMode != NoAuth && (host == "" || err == nil && ip.IsUnspecified()) {
		p.add("MCP_PUBLIC_URL", "is missing: %s does not say where clients find the server", c.Addr)
	}
	if u, err := url.Parse(c.PublicURL); c.PublicURL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		p.add("MCP_PUBLIC_URL", "must be an https URL such as https://refunds.example.com/mcp, not %q", c.PublicURL)
	}
	if host, _, err := net.SplitHostPort(c.MetricsAddr); c.MetricsAddr != "" && (err != nil || !loopback(host)) {
		p.add("MCP_METRICS_ADDR", "must be an address of this machine for itself, such as 127.0.0.1:9464, not %q", c.MetricsAddr)
	}
}

// loopback reports whether only this machine reaches a host.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// private reports whether nobody on the way reads or changes what is sent to an
// address.
func private(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()))
}

func claim(name string) string {
	if name == noClaim {
		return ""
	}
	return name
}

var (
	hostForm   = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)
	originForm = regexp.MustCompile(`^https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)
)

// each splits a list and checks the form of what is in it.
func (p *problems) each(name, value string, form *regexp.Regexp, words string) []string {
	if value == "" {
		return nil
	}
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if !form.MatchString(item) {
			p.add(name, "must list %s, not %q", words, item)
		}
		if !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return items
}

func (p *problems) integer(name, value string, most int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		p.add(name, "must be a whole number from 1 to %d, not %q", most, value)
	}
	return n
}

// rate reads requests a second and at once.
func (p *problems) rate(name, value string) (perSecond float64, burst int) {
	if value == "off" {
		return 0, 0
	}
	first, second, _ := strings.Cut(value, ":")
	perSecond, err := strconv.ParseFloat(first, 64)
	burst, err2 := strconv.Atoi(second)
	if err != nil || err2 != nil || !(perSecond > 0 && perSecond <= maxRate) || burst < 1 || burst > maxRate {
		p.add(name, "must be requests a second and at once such as 20:40, or off, not %q", value)
	}
	return perSecond, burst
}
