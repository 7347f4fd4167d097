package config

import (
	"net"
	"time"

	"github.com/refundledger/refundledger/domain/money"
)

// REST is the backend that is a service: refund-ledgerd serve, or another that
// keeps the same contract.
const REST Backend = "rest"

// Service says where the ledger is a service.
type Service struct {
	URL, Token string
	Timeout    time.Duration
	// Currency is what invoices are in that come without one; the zero value: they
	// are refused.
	Currency money.Currency
}

// service checks that what the backend rest needs is there.
func (p *problems) service(backend Backend, url, token, timeout, currency string) Service {
	if backend == REST && url == "" {
		p.add("LEDGER_REST_URL", "is missing: the backend rest needs the address of the service")
	}
	if backend == REST && token == "" {
		p.add("LEDGER_REST_TOKEN", "is missing: the backend rest needs the token for the service")
	}
	s := Service{URL: url, Token: token, Timeout: p.duration("LEDGER_REST_TIMEOUT", timeout)}
	if currency != "" {
		var err error
		if s.Currency, err = money.ParseCurrency(currency); err != nil {
			p.add("LEDGER_DEFAULT_CURRENCY", "is not valid: %w", err)
		}
	}
	return s
}

// Serving says how refund-ledgerd serves.
type Serving struct {
	Addr        string
	Tokens      string
	MaxInFlight int
	Local       bool // only this machine can reach it
}

func (p *problems) serving(addr, tokens, inFlight string) Serving {
	s := Serving{Addr: addr, Tokens: tokens}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		p.add("LEDGERD_ADDR", "must be a host and a port such as 127.0.0.1:3344, not %q", addr)
	}
	ip := net.ParseIP(host)
	s.Local = host == "localhost" || ip != nil && ip.IsLoopback()
	if tokens == "" {
		p.add("LEDGERD_TOKENS", "must be the path of a file")
	}
	s.MaxInFlight = p.integer("LEDGERD_MAX_IN_FLIGHT", inFlight, maxInFlight)
	return s
}
