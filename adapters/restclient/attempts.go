package restclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/sony/gobreaker/v2"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/fault"
)

// call is one request with all its attempts.
type call struct {
	write bool
	until time.Time // the last attempt ends here

	last attempt
	sent int // attempts that reached a connection
	// open: one of the attempts may have happened, or may still do so until then.
	open bool
	// running: another request of the same key was running, for who knows how long.
	running bool
	// doubted: the last attempt was refused, and one before it may be why.
	doubted bool
	// connected: the attempt that is made has reached a connection.
	connected atomic.Bool
	// came: the last attempt is news to the retrying client.
	came bool
}

// attempt is what came of sending a request once.
type attempt struct {
	status int // 0: no answer
	header http.Header
	body   []byte
	err    error // no answer, or not all of it
	// refused is what a problem says, if the answer is one.
	refused restwire.Refusal
	problem error // why the answer is no problem; nil if it is
}

// ok reports whether the answer is that of a success, whole or not.
func (a attempt) ok() bool { return a.status >= 200 && a.status < 300 }

// known reports whether the attempt certainly did nothing.
func (a attempt) known() bool {
	if a.status < http.StatusBadRequest || a.problem != nil {
		return false
	}
	f := a.refused.Fault
	return f == nil || f.Code == fault.BackendUnavailable ||
		a.status < http.StatusInternalServerError && f.Code != fault.OutcomeUnknown && f.Code != fault.Internal
}

// running reports whether the answer is that another request of the key runs. A
// service may give it any reason, or none: what counts is the status, and that
// nothing says that it is final.
func (a attempt) running() bool {
	if a.status != http.StatusConflict {
		return false
	}
	final := a.problem == nil && a.refused.Fault != nil && !a.refused.Fault.Retryable
	return !final || a.header.Get("Retry-After") != ""
}

type callKey struct{}

// send sends a request until there is an answer that another attempt would not
// change, or no time or attempt is left.
func (c *Client) send(ctx context.Context, k *call, method, path string, header http.Header, body []byte) attempt {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { k.connected.Store(true) }})
	ctx, stop := context.WithDeadline(ctx, k.until)
	defer stop()
	// The usual call is one attempt, and does not need the retrying client.
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return attempt{err: errors.New("the request can not be made")}
	}
	r.Header = header
	c.attempt(k, r)
	if !k.again(ctx) {
		return k.last
	}
	k.came = true
	var content any // of no type, or a body of no bytes would be sent
	if body != nil {
		content = body
	}
	retried, err := retryablehttp.NewRequestWithContext(context.WithValue(ctx, callKey{}, k), method, c.base+path, content)
	if err != nil {
		return k.last
	}
	retried.Header = header
	_, _ = c.retry.Do(retried) // what came is in the call; the body of the response is empty
	return k.last
}

// Values of headers that never change; nobody appends to them.
var (
	mediaJSON = []string{restwire.TypeJSON}
	userAgent = []string{"refundledger"}
)

// header is what every request has.
func (c *Client) header(tenant string) http.Header {
	h := make(http.Header, 12)
	h["Authorization"], h["Accept"], h["User-Agent"] = c.authorization, mediaJSON, userAgent
	h[restwire.HeaderTenant] = []string{tenant}
	return h
}

// attempts makes the attempts of the retrying client. It has no
// CloseIdleConnections on purpose: one failure would close those of all.
type attempts struct{ c *Client }

// RoundTrip is an attempt: the first is the one that was made already.
func (a attempts) RoundTrip(r *http.Request) (*http.Response, error) {
	k := r.Context().Value(callKey{}).(*call)
	if k.came {
		k.came = false
	} else {
		once := r.WithContext(r.Context())
		once.Header = r.Header.Clone() // the one of the attempt before may still be in use
		a.c.attempt(k, once)
	}
	if k.last.status == 0 {
		return nil, k.last.err
	}
	return &http.Response{
		Status: http.StatusText(k.last.status), StatusCode: k.last.status, Header: k.last.header, Body: http.NoBody,
		Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// attempt sends a request once, through the breaker. The answer is read here,
// whole and within bounds, and kept in the call. The request is its own.
func (c *Client) attempt(k *call, r *http.Request) {
	left := time.Until(k.until)
	if left < restwire.MinTimeout {
		k.last = attempt{err: context.DeadlineExceeded}
		return
	}
	r.GetBody = nil // or the transport sends it again by itself
	r.Header[restwire.HeaderTimeout] = []string{strconv.FormatInt(min(left, restwire.MaxTimeout).Milliseconds(), 10)}
	k.connected.Store(false)
	got, err := c.breaker.Execute(func() (attempt, error) {
		got := c.once(r)
		if got.err == nil && got.status >= http.StatusInternalServerError {
			return got, errStatus
		}
		return got, got.err
	})
	if got.status == 0 && got.err == nil {
		got.err = err // the breaker is open
	}
	k.last = got
	if k.connected.Load() {
		k.sent++
		k.open = k.open || !got.known()
	}
	k.running = k.running || got.running()
	if got.err != nil {
		c.log.Warn("the ledger service did not answer", "attempt", k.sent, "cause", cause(got.err))
	}
}

// errStatus is what an answer that says the service is in trouble is to the breaker.
var errStatus = errors.New("the service is in trouble")

// once sends a request and reads the answer.
func (c *Client) once(r *http.Request) attempt {
	response, err := c.wire.RoundTrip(r)
	if err != nil {
		return attempt{err: err}
	}
	defer response.Body.Close()
	a := attempt{status: response.StatusCode, header: response.Header}
	a.body, a.err = restwire.ReadBody(response.Body, response.ContentLength)
	if bytes.Contains(a.body, c.token) {
		a.body, a.err = nil, errEcho
	}
	switch {
	case a.status < http.StatusBadRequest:
	case a.err != nil:
		a.problem = a.err
	case !restwire.IsMedia(a.header, restwire.TypeProblem):
		a.problem = errors.New("the answer is an error, and no problem document")
	default:
		a.refused, a.problem = restwire.ParseProblem(a.status, a.body)
	}
	return a
}

// errEcho is the error for an answer that must be shown to nobody.
var errEcho = errors.New("the answer repeats the token")

// broken reports whether the breaker kept a request back.
func broken(err error) bool {
	return errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests)
}

// cause says why there is no answer, in words that are not the service's: what
// it sent might be anything, and the address names what was asked for.
func cause(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	for _, known := range []error{
		context.DeadlineExceeded, context.Canceled, io.ErrUnexpectedEOF, io.EOF, restwire.ErrTooLarge,
		gobreaker.ErrOpenState, gobreaker.ErrTooManyRequests, errEcho, errAnother,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return bad.Error()
	}
	return "the answer can not be understood"
}

// again is what the retrying client asks.
func again(ctx context.Context, _ *http.Response, _ error) (bool, error) {
	return ctx.Value(callKey{}).(*call).again(ctx), nil
}

// again decides whether another attempt is made: it must be able to change
// something, and for a write it must be sure that the key makes it safe.
func (k *call) again(ctx context.Context) bool {
	a := k.last
	switch {
	case ctx.Err() != nil || time.Until(k.until) < restwire.MinTimeout:
		return false
	case a.status == 0:
		if errors.Is(a.err, context.DeadlineExceeded) || errors.Is(a.err, context.Canceled) || broken(a.err) {
			return false
		}
		return true
	case a.ok():
		// Half an answer to a read is asked for again. That to a write is looked up.
		return a.err != nil && !k.write && !errors.Is(a.err, restwire.ErrTooLarge) && !errors.Is(a.err, errEcho)
	}
	switch a.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	case http.StatusConflict:
		if !a.running() {
			return false
		}
	default:
		return false
	}
	wait, _ := retryAfter(a.header)
	return time.Until(k.until) > wait+restwire.MinTimeout // else fail at once
}

// backoff is the wait before the next attempt: what the service asks for, or
// else full jitter.
func backoff(_, _ time.Duration, n int, r *http.Response) time.Duration {
	wait := rand.N(min(maxWait, minWait<<n))
	if r != nil {
		if asked, ok := retryAfter(r.Header); ok {
			return asked + wait // not all at the same moment
		}
	}
	return wait
}

// retryAfter reads a Retry-After, in seconds or as a date.
func retryAfter(h http.Header) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at)), true
	}
	return 0, false
}
