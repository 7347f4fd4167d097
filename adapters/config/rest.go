package config

import (
	"errors"
	"net"
	"time"
)

// REST is the backend that is a service: refund-ledgerd serve, or another that
// keeps the same contract.
const REST Backend = "rest"

// Service says where the ledger is a service.
type Service struct {
	URL, Token string
	Timeout    time.Duration
}

// service checks that what the backend rest needs is there.
func (p *problems) service(backend Backend, url, token, timeout string) Service {
	if backend == REST && url == "" {
		p.add("LEDGER_REST_URL", "is missing: the backend rest needs the address of the service")
	}
	if backend == REST && token == "" {
		p.add("LEDGER_REST_TOKEN", "is missing: the backend rest needs the token for the service")
	}
	return Service{url, token, p.duration("LEDGER_REST_TIMEOUT", timeout)}
}

// servingVariables are what refund-ledgerd reads too when it serves.
type servingVariables struct {
	Addr   string `env:"LEDGERD_ADDR" envDefault:"127.0.0.1:3344" doc:"where refund-ledgerd serve listens, without TLS: what is beyond this machine needs a proxy with TLS before it"`
	Tokens string `env:"LEDGERD_TOKENS" envDefault:"refund-ledger.tokens" doc:"the file of hashed tokens, made by refund-ledgerd token create; read again when it changes"`
}

// Serving says how refund-ledgerd serves.
type Serving struct {
	Addr   string
	Tokens string
	Local  bool // only this machine can reach it
}

// ParseServing reads the environment, given as KEY=value.
func ParseServing(environ []string) (Serving, error) {
	v, err := parse[servingVariables](environ)
	if err != nil {
		return Serving{}, err
	}
	p := problems{}
	s := Serving{Addr: v.Addr, Tokens: v.Tokens}
	host, _, err := net.SplitHostPort(v.Addr)
	if err != nil {
		p.add("LEDGERD_ADDR", "must be a host and a port such as 127.0.0.1:3344, not %q", v.Addr)
	}
	ip := net.ParseIP(host)
	s.Local = host == "localhost" || ip != nil && ip.IsLoopback()
	if v.Tokens == "" {
		p.add("LEDGERD_TOKENS", "must be the path of a file")
	}
	return s, errors.Join(p...)
}
