package config

import (
	"strings"
	"testing"
)

var algorithms = []string{"RS256", "ES256"}

func TestParseHTTP(t *testing.T) {
	for _, c := range []struct {
		name, environ string
		problem       string // "" where it is valid
	}{
		{"anonymous on this machine, on purpose", "MCP_ALLOW_ANONYMOUS=true", ""},
		{"anonymous by mistake", "", "AUTH_MODE is none: set it to static or oidc, or say MCP_ALLOW_ANONYMOUS=true"},
		{"anonymous for everybody", "MCP_ALLOW_ANONYMOUS=true MCP_HTTP_ADDR=0.0.0.0:3333 MCP_BEHIND_PROXY=true", "AUTH_MODE is none, and MCP_HTTP_ADDR is reached by others"},
		{"anonymous on every address", "MCP_ALLOW_ANONYMOUS=true MCP_HTTP_ADDR=:3333 MCP_BEHIND_PROXY=true", "AUTH_MODE is none, and MCP_HTTP_ADDR is reached by others"},
		{"anonymous on a name", "MCP_ALLOW_ANONYMOUS=true MCP_HTTP_ADDR=localhost.example.com:3333 MCP_BEHIND_PROXY=true", "AUTH_MODE is none, and MCP_HTTP_ADDR is reached by others"},
		{"localhost", "MCP_ALLOW_ANONYMOUS=true MCP_HTTP_ADDR=localhost:0", ""},
		{"IPv6", "MCP_ALLOW_ANONYMOUS=true MCP_HTTP_ADDR=[::1]:0", ""},
		{"no port", "MCP_ALLOW_ANONYMOUS=true MCP_HTTP_ADDR=127.0.0.1", `MCP_HTTP_ADDR must be a host and a port such as 127.0.0.1:3333, not "127.0.0.1"`},
		{"static", "AUTH_MODE=static AUTH_TOKENS=tokens", ""},
		{"static without a file", "AUTH_MODE=static", "AUTH_TOKENS is missing"},
		{"in the open", "AUTH_MODE=static AUTH_TOKENS=tokens MCP_HTTP_ADDR=10.0.0.1:3333", "MCP_HTTP_ADDR is reached by others, so MCP_TLS_CERT and MCP_TLS_KEY are needed"},
		{"behind a proxy", "AUTH_MODE=static AUTH_TOKENS=tokens MCP_HTTP_ADDR=0.0.0.0:3333 MCP_BEHIND_PROXY=true MCP_PUBLIC_URL=https://refunds.example.com/mcp", ""},
		{"nobody knows where", "AUTH_MODE=static AUTH_TOKENS=tokens MCP_HTTP_ADDR=0.0.0.0:3333 MCP_BEHIND_PROXY=true", "MCP_PUBLIC_URL is missing"},
		{"with TLS", "AUTH_MODE=static AUTH_TOKENS=tokens MCP_HTTP_ADDR=10.0.0.1:3333 MCP_TLS_CERT=c MCP_TLS_KEY=k", ""},
		{"half of TLS", "AUTH_MODE=static AUTH_TOKENS=tokens MCP_TLS_CERT=c", "MCP_TLS_CERT, MCP_TLS_KEY go together"},
		{"oidc", "AUTH_MODE=oidc OIDC_ISSUER=https://id.example.com", ""},
		{"oidc on this machine", "AUTH_MODE=oidc OIDC_ISSUER=http://127.0.0.1:9000", ""},
		{"oidc without an issuer", "AUTH_MODE=oidc", "OIDC_ISSUER must be the https URL of the issuer"},
		{"oidc in the open", "AUTH_MODE=oidc OIDC_ISSUER=http://id.example.com", "OIDC_ISSUER must be the https URL of the issuer"},
		{"a shared secret", "AUTH_MODE=oidc OIDC_ISSUER=https://id.example.com OIDC_ALGORITHMS=RS256,HS256", `not "HS256"`},
		{"nobody calls", "AUTH_MODE=oidc OIDC_ISSUER=https://id.example.com OIDC_CLAIM_ID=-", "OIDC_CLAIM_ID must name a claim"},
		{"another mode", "AUTH_MODE=basic", `AUTH_MODE must be none or static or oidc, not "basic"`},
		{"hosts", "MCP_ALLOW_ANONYMOUS=true MCP_ALLOWED_HOSTS=refunds.example.com,localhost:3333,[::1]:3333", ""},
		{"a star", "MCP_ALLOW_ANONYMOUS=true MCP_ALLOWED_HOSTS=*", "MCP_ALLOWED_HOSTS must list a host"},
		{"an address for a host", "MCP_ALLOW_ANONYMOUS=true MCP_ALLOWED_HOSTS=https://refunds.example.com", "MCP_ALLOWED_HOSTS must list a host"},
		{"origins", "MCP_ALLOW_ANONYMOUS=true MCP_ALLOWED_ORIGINS=https://app.example.com,http://localhost:8080", ""},
		{"every page", "MCP_ALLOW_ANONYMOUS=true MCP_ALLOWED_ORIGINS=*", "MCP_ALLOWED_ORIGINS must list an origin"},
		{"pages from nowhere", "MCP_ALLOW_ANONYMOUS=true MCP_ALLOWED_ORIGINS=null", "MCP_ALLOWED_ORIGINS must list an origin"},
		{"an origin with a path", "MCP_ALLOW_ANONYMOUS=true MCP_ALLOWED_ORIGINS=https://app.example.com/", "MCP_ALLOWED_ORIGINS must list an origin"},
		{"metrics for everybody", "MCP_ALLOW_ANONYMOUS=true MCP_METRICS_ADDR=0.0.0.0:9464", "MCP_METRICS_ADDR must be an address of this machine"},
		{"no room", "MCP_ALLOW_ANONYMOUS=true MCP_MAX_IN_FLIGHT=0", "MCP_MAX_IN_FLIGHT must be a whole number from 1"},
		{"a rate", "MCP_ALLOW_ANONYMOUS=true RATE_LIMIT=0.5:10", ""},
		{"a rate alone", "MCP_ALLOW_ANONYMOUS=true RATE_LIMIT=20", "RATE_LIMIT must be requests a second and at once"},
		{"no rate at all", "MCP_ALLOW_ANONYMOUS=true RATE_LIMIT=0:1", "RATE_LIMIT must be requests a second and at once"},
		{"a rate that is no number", "MCP_ALLOW_ANONYMOUS=true RATE_LIMIT=NaN:1", "RATE_LIMIT must be requests a second and at once"},
		{"a rate without end", "MCP_ALLOW_ANONYMOUS=true RATE_LIMIT=Inf:1", "RATE_LIMIT must be requests a second and at once"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseHTTP(strings.Fields(c.environ), algorithms)
			if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("it says %v", err)
			}
		})
	}
	_, err := ParseHTTP(strings.Fields("AUTH_MODE=x RATE_LIMIT=x MCP_MAX_IN_FLIGHT=x MCP_BEHIND_PROXY=x MCP_HTTP_ADDR=x"), algorithms)
	for _, name := range []string{"AUTH_MODE", "RATE_LIMIT", "MCP_MAX_IN_FLIGHT", "MCP_BEHIND_PROXY", "MCP_HTTP_ADDR"} {
		if err == nil || !strings.Contains(err.Error(), name+" must") {
			t.Errorf("%s is not among the problems: %v", name, err)
		}
	}
}

func TestParseHTTPShares(t *testing.T) {
	for environ, want := range map[string]int{
		"MCP_ALLOW_ANONYMOUS=true":                                                          0,
		"AUTH_MODE=static AUTH_TOKENS=tokens":                                               128,
		"AUTH_MODE=static AUTH_TOKENS=tokens MCP_MAX_IN_FLIGHT=1":                           1,
		"AUTH_MODE=static AUTH_TOKENS=tokens MCP_MAX_IN_FLIGHT_EACH=256":                    256,
		"AUTH_MODE=static AUTH_TOKENS=tokens MCP_MAX_IN_FLIGHT=9 MCP_MAX_IN_FLIGHT_EACH=9":  9,
		"AUTH_MODE=static AUTH_TOKENS=tokens MCP_MAX_IN_FLIGHT=9 MCP_MAX_IN_FLIGHT_EACH=10": -1,
	} {
		c, err := ParseHTTP(strings.Fields(environ), algorithms)
		if want < 0 && err == nil || want >= 0 && (err != nil || c.MaxEach != want) {
			t.Errorf("%s: %d %v", environ, c.MaxEach, err)
		}
	}
}

func TestHTTPShowsNoSecret(t *testing.T) {
	c, err := ParseHTTP([]string{"MCP_ALLOW_ANONYMOUS=true", "MCP_METRICS_TOKEN=hunter2"}, algorithms)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Shown {
		if s[1] == "hunter2" {
			t.Errorf("%s is shown", s[0])
		}
	}
}
