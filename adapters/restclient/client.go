// Package restclient keeps the ledger in a REST service: it sends each command
// to the resource that is declared for it, and reads answers strictly. Its rule
// for writes is never to repeat blindly, and never to say that something failed
// that may have happened: see [Client.Do].
package restclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/sony/gobreaker/v2"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

// DefaultTimeout is how long a call may take, all attempts and look-ups included.
const DefaultTimeout = 10 * time.Second

// Limits of the client.
const (
	maxToken    = 256
	dialTimeout = 3 * time.Second
	idleTimeout = 90 * time.Second
	maxIdle     = 256 // connections that are kept open
	// maxAttempts is how often one request is sent.
	maxAttempts = 3
	// minWait and maxWait bound the wait between two attempts, which is drawn
	// between nothing and a bound that doubles.
	minWait = 50 * time.Millisecond
	maxWait = time.Second
	// The breaker opens when this share of the last requests failed, at least so
	// many, and lets one try again after a while.
	breakerWindow  = 10 * time.Second
	breakerBucket  = time.Second
	breakerLeast   = 20
	breakerPercent = 90
	breakerOpen    = 2 * time.Second
)

// Options are what a client needs. URL and Token are needed.
type Options struct {
	// URL is where the service is: https, or http on this machine.
	URL   string
	Token string
	// Timeout is how long a call may take; DefaultTimeout if 0.
	Timeout time.Duration
	// Currency is what invoices are in of which a thin backend does not say it, or
	// the zero value: then such an answer is refused.
	Currency money.Currency
	// Started is when the process did: the date of invoices of which a thin backend
	// says none. Now if it is zero.
	Started time.Time
	// Log takes a line for each trouble with the service. It never gets a token,
	// a body or an address with what is asked for.
	Log *slog.Logger
}

// Client is a ledger in a REST service. All methods may be called at once.
type Client struct {
	base          string
	token         []byte // to find it where it must not be
	authorization []string
	timeout       time.Duration
	log           *slog.Logger
	wire          *http.Transport
	retry         *retryablehttp.Client
	breaker       *gobreaker.CircuitBreaker[attempt]
	forms         restwire.Payables
	fallback      money.Currency // what stands in for a currency, or the zero value
}

// New makes a client. It does not connect yet.
func New(o Options) (*Client, error) {
	base, err := Address(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Token == "" || len(o.Token) > maxToken || strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("restclient: the token must be 1 to 256 visible ASCII characters")
	}
	c := &Client{base: base, timeout: o.Timeout, log: o.Log, token: []byte(o.Token), authorization: []string{"Bearer " + o.Token}, fallback: o.Currency}
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	if o.Started.IsZero() {
		o.Started = time.Now()
	}
	date, err := payables.ParseDate(o.Started.UTC().Format(time.DateOnly))
	if err != nil {
		return nil, fmt.Errorf("restclient: the time of the start: %w", err)
	}
	c.forms = restwire.PayablesWith(restwire.Fallback{Currency: o.Currency, Date: date})
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	c.wire = &http.Transport{
		Proxy:                  nil, // a proxy of the environment would see the token
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: restwire.MaxHeader,
		DisableCompression:     true, // so that the limit of a body is one of what was sent
		ForceAttemptHTTP2:      true,
	}
	c.breaker = gobreaker.NewCircuitBreaker[attempt](gobreaker.Settings{
		Interval: breakerWindow, BucketPeriod: breakerBucket, Timeout: breakerOpen,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			return n.Requests >= breakerLeast && n.TotalFailures*100 >= n.Requests*breakerPercent
		},
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			c.log.Warn("the breaker of the ledger service changed", "state", to.String())
		},
	})
	c.retry = &retryablehttp.Client{
		// The attempts are made by the client itself, below; what they left is in
		// the context of the request.
		HTTPClient: &http.Client{
			Transport: attempts{c},
			// A redirect would take the token, and a command, to somebody else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RetryMax:     maxAttempts - 1,
		CheckRetry:   again,
		Backoff:      backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return c, nil
}

// Close lets go of the connections.
func (c *Client) Close() error {
	c.wire.CloseIdleConnections()
	return nil
}

// Address checks where a service is: https, or http on this machine.
func Address(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return "", errors.New("restclient: the address must be one like https://ledger.example.com") // err would repeat a password
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("restclient: the address must not hold a user, a query or a fragment")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", fmt.Errorf("restclient: http is for this machine alone; %s needs https", u.Hostname())
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("restclient: the address must begin with https://")
	}
	return strings.TrimSuffix(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// until is when a call that begins now must end.
func (c *Client) until(ctx context.Context) time.Time {
	end := time.Now().Add(c.timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		return d
	}
	return end
}

// unreachable is the fault when the service gave no answer and nothing happened.
func unreachable() error {
	return fault.New(fault.BackendUnavailable, "ledger_unreachable", "The ledger did not answer. Nothing has happened. Try again later.")
}

// shutOut is the fault when the service does not take the token, or not for this.
// The log says which, for the operator: no repetition helps.
func (c *Client) shutOut(resource string, a attempt) error {
	c.log.Error("the ledger service refuses the token", "resource", resource, "status", a.status, "reason", a.refused.Reason, "scope", a.refused.Needs.String())
	f := fault.New(fault.BackendUnavailable, "ledger_credentials_refused",
		"The ledger service refuses the credentials of this server. Nothing has happened. The operator has to set them right, until then no repetition helps.")
	f.Retryable = false
	return f
}

// misunderstood is the fault when the service can make nothing of a request that
// this side made up: one of the two is not what the other takes it for.
func (c *Client) misunderstood(resource string, a attempt) error {
	c.log.Error("the ledger service does not understand a request", "resource", resource, "status", a.status, "reason", a.refused.Reason)
	f := fault.New(fault.BackendUnavailable, "ledger_request_refused",
		"The ledger service does not understand the request of this server. Nothing has happened. The operator has to look into it, until then no repetition helps.")
	f.Retryable = false
	return f
}

// unreadable is the fault when what came is no answer of a ledger.
func (c *Client) unreadable(resource string, cause error) error {
	c.log.Error("an answer of the ledger service is not valid", "resource", resource, "cause", cause.Error())
	if errors.Is(cause, restwire.ErrNoCurrency) {
		f := fault.New(fault.BackendUnavailable, "currency_missing",
			"The ledger does not say which currency an amount is in. Nothing has happened. The operator can say it, with the setting LEDGER_DEFAULT_CURRENCY.")
		f.Retryable = false // until there is another setting
		return f
	}
	return fault.New(fault.BackendUnavailable, "ledger_answer_invalid", "The ledger gave an answer that can not be relied on. Nothing has happened. Try again later.")
}
