package mcpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refundledger/refundledger/domain/access"
)

// The paths that are served.
const (
	pathMCP      = "/mcp"
	pathHealth   = "/healthz"
	pathReady    = "/readyz"
	pathMetrics  = "/metrics"
	pathResource = "/.well-known/oauth-protected-resource"
)

const (
	// headerTime is how long a client may take to send the header of a request,
	// readTime the whole request.
	headerTime = 5 * time.Second
	readTime   = 10 * time.Second
	// writeTime is how long a client may take to read an answer.
	writeTime = 10 * time.Second
	// idleTime is how long a connection may wait for its next request.
	idleTime = 60 * time.Second
	// maxHeader is how long the header of a request may be: room for a large token.
	maxHeader = 32 << 10
	// readyTime is how long the ledger may take to show that it is there, and
	// readyFor how long that is believed: anybody may ask.
	readyTime = 2 * time.Second
	readyFor  = time.Second
)

// Verifier knows who a bearer token speaks for.
type Verifier interface {
	// Verify returns the principal of a token. A fault BACKEND_UNAVAILABLE says
	// that nobody can tell now; any other error that the token proves nothing.
	// Neither's text leaves the process.
	Verify(ctx context.Context, token string) (access.Principal, error)
}

// HTTPOptions configure the server as it is reached over HTTP.
type HTTPOptions struct {
	// Hosts are what the header Host may say, with the port where the client
	// sends one; see [LocalHosts].
	Hosts []string
	// Origins are the pages, as scheme://host or scheme://host:port, that a
	// browser may call from. Without any, no page may.
	Origins []string
	// Verifier checks the tokens. Without one everybody is Anonymous.
	Verifier  Verifier
	Anonymous access.Principal
	// PublicURL is the address of the endpoint as clients know it: what their
	// tokens are for.
	PublicURL string
	// Issuer is who gives out tokens, for the metadata; "" if that is nobody's business.
	Issuer string
	// Rate is how many requests a second a principal may send for long, and
	// Burst how many at once. No Rate, no limit.
	Rate  float64
	Burst int
	// MaxInFlight is how many requests may be at work at once, > 0.
	MaxInFlight int
	// MaxEach is how many of them may be one principal's; 0: all.
	MaxEach int
	// Ready reports whether the ledger can be asked.
	Ready func(context.Context) error
	// Metrics is served to who has the token. Without a token it is not served.
	Metrics      http.Handler
	MetricsToken string
}

// HTTP is the server over streamable HTTP: stateless, each request on its own,
// each answer JSON. What comes in passes one wall after the other (host,
// origin, token, form, gate, rate) before it is a call.
type HTTP struct {
	*Server
	o         HTTPOptions
	doors     doors
	cors      *http.CrossOriginProtection
	routes    map[string]route
	challenge string // of WWW-Authenticate, up to what is wrong
	limits    *limiter
	slots     chan struct{} // one for each request at work
	each      *shares       // of them
	large     chan struct{} // one for each large body that is read or at work
	largeEach *shares       // of them
	sdk       *mcp.StreamableHTTPHandler
	shapes    shapes
	ready     readiness
	drain     time.Duration
	draining  atomic.Bool

	mu     sync.Mutex
	visits map[*visit]struct{}
}

// route is what a path serves.
type route struct {
	method string
	serve  http.HandlerFunc
}

// HTTP puts the server behind an HTTP handler.
func (s *Server) HTTP(o HTTPOptions) (*HTTP, error) {
	public, err := url.Parse(o.PublicURL)
	if err != nil || public.Host == "" {
		return nil, fmt.Errorf("the public address %q is no URL", o.PublicURL)
	}
	h := &HTTP{
		Server: s, o: o, doors: newDoors(o.Hosts, o.Origins), cors: http.NewCrossOriginProtection(),
		limits: newLimiter(o.Rate, o.Burst),
		slots:  make(chan struct{}, o.MaxInFlight), large: make(chan struct{}, maxLargeBodies),
		each:  newShares(o.MaxEach),
		drain: drainTime, visits: map[*visit]struct{}{},
	}
	if o.MaxEach > 0 {
		h.largeEach = newShares(maxLargeEach)
	}
	for _, origin := range o.Origins {
		if err := h.cors.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	h.sdk = mcp.NewStreamableHTTPHandler(h.sessionServer, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: true, // the host was checked, against names the SDK does not know
	})
	h.routes = map[string]route{
		pathMCP:    {http.MethodPost, h.post},
		pathHealth: {http.MethodGet, func(w http.ResponseWriter, _ *http.Request) { status(w, http.StatusOK, "ok") }},
		pathReady:  {http.MethodGet, h.serveReady},
	}
	if o.Metrics != nil && o.MetricsToken != "" {
		h.routes[pathMetrics] = route{http.MethodGet, h.serveMetrics}
	}
	if o.Verifier != nil {
		// Clients look for the metadata at the root and below it at the path of
		// the endpoint.
		serve := h.metadata()
		h.routes[pathResource] = route{http.MethodGet, serve}
		h.routes[pathResource+cmp.Or(public.EscapedPath(), "/")] = route{http.MethodGet, serve}
		h.challenge = `Bearer resource_metadata="` + (&url.URL{Scheme: public.Scheme, Host: public.Host, Path: pathResource}).String() + `"`
	}
	return h, nil
}

// Serve answers on the listener until ctx ends, then answers what has begun and
// returns. An error says that something could not be answered any more, or that
// the listener broke.
func (h *HTTP) Serve(ctx context.Context, l net.Listener, t *tls.Config) error {
	server := &http.Server{
		Handler: h, TLSConfig: t,
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		WriteTimeout: readTime + h.app.CallTimeout + writeTime,
		ErrorLog:     slog.NewLogLogger(h.options.Log.Handler(), slog.LevelDebug), // of what clients do to their connections
	}
	ended := make(chan error, 1)
	go func() {
		if t != nil {
			ended <- server.ServeTLS(l, "", "")
		} else {
			ended <- server.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	h.draining.Store(true)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.drain)
	defer cancel()
	if err := server.Shutdown(stop); err != nil {
		h.abandon()
		_ = server.Close() // what is left was given up
		return errors.New("accepted requests were left unanswered")
	}
	return nil
}

// abandon logs what will not be answered.
func (h *HTTP) abandon() {
	h.mu.Lock()
	var operations []string
	for v := range h.visits {
		if key := v.operation.Load(); key != nil {
			operations = append(operations, *key)
		}
	}
	unanswered := len(h.visits)
	h.mu.Unlock()
	h.options.Log.Error("gave up", "unanswered", unanswered, "after", h.drain.String())
	for _, key := range operations {
		h.options.Log.Error("operation not answered", "operation", key)
	}
}

// ServeHTTP lets in what may come in: the method, the host and the origin are
// checked on every path, those that need no token too.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			id := rand.Text()
			h.options.Log.Error("request failed", "id", id, "cause", fmt.Sprintf("panic: %v", p), "stack", string(debug.Stack()))
			h.fail(w, http.StatusInternalServerError, nil, internal(id, ""))
		}
	}()
	to, known := h.routes[r.URL.Path]
	preflight := known && r.Method == http.MethodOptions && len(r.Header["Origin"]) > 0 && r.Header.Get("Access-Control-Request-Method") != ""
	if known && r.Method != to.method && !preflight {
		w.Header().Set("Allow", to.method)
		h.refuse(w, http.StatusMethodNotAllowed, "method", "the method is "+to.method)
		return
	}
	origin, why := h.doors.admit(r)
	if why == "" && !preflight && h.cors.Check(r) != nil {
		why = "origin"
	}
	switch {
	case why == "host":
		h.refuse(w, http.StatusForbidden, why, "this Host is not allowed")
	case why != "":
		h.refuse(w, http.StatusForbidden, why, "calls from this Origin are not allowed")
	case !known:
		h.refuse(w, http.StatusNotFound, "path", "there is nothing here; the endpoint is "+pathMCP)
	default:
		if origin != "" {
			allowOrigin(w.Header(), origin, to.method)
		}
		if preflight {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		to.serve(w, r)
	}
}

// refuse answers what never became a message.
func (h *HTTP) refuse(w http.ResponseWriter, code int, why, words string) {
	h.options.Meter.Refused(why)
	h.fail(w, code, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: " + words})
}

// fail answers with a JSON-RPC error; without an id, with a null one.
func (h *HTTP) fail(w http.ResponseWriter, code int, id []byte, e *jsonrpc.Error) {
	if id == nil {
		id = []byte("null")
	}
	body, err := encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, e})
	if err != nil {
		panic(err) // an error is texts and checked JSON
	}
	send(w, code, body)
}

// send writes a JSON answer that nobody may keep.
func send(w http.ResponseWriter, code int, body []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone; what was done is done
}

// status answers a probe.
func status(w http.ResponseWriter, code int, word string) {
	send(w, code, []byte(`{"status":"`+word+`"}`))
}

// metadata is what RFC 9728 says of a protected resource.
func (h *HTTP) metadata() http.HandlerFunc {
	var scopes []string
	for _, t := range h.tools {
		if name := t.scope.String(); !slices.Contains(scopes, name) {
			scopes = append(scopes, name)
		}
	}
	slices.Sort(scopes)
	m := struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers,omitempty"`
		Scopes   []string `json:"scopes_supported"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{h.o.PublicURL, nil, scopes, []string{"header"}, "Refund Ledger"}
	if h.o.Issuer != "" {
		m.Servers = []string{h.o.Issuer}
	}
	body, err := encode(m)
	if err != nil {
		panic(err) // it is texts
	}
	return func(w http.ResponseWriter, _ *http.Request) { send(w, http.StatusOK, body) }
}

func (h *HTTP) serveMetrics(w http.ResponseWriter, r *http.Request) {
	token, _ := bearer(r.Header)
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(h.o.MetricsToken))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		h.refuse(w, http.StatusUnauthorized, "token", "the metrics need their token")
		return
	}
	h.o.Metrics.ServeHTTP(w, r)
}

// readiness remembers for a moment whether the ledger can be asked.
type readiness struct {
	mu    sync.Mutex
	at    time.Time
	ready bool
}

func (h *HTTP) serveReady(w http.ResponseWriter, r *http.Request) {
	switch {
	case h.draining.Load():
		status(w, http.StatusServiceUnavailable, "stopping")
	case !h.isReady(r.Context()):
		status(w, http.StatusServiceUnavailable, "the ledger can not be asked")
	default:
		status(w, http.StatusOK, "ready")
	}
}

func (h *HTTP) isReady(ctx context.Context) bool {
	h.ready.mu.Lock()
	defer h.ready.mu.Unlock()
	if time.Since(h.ready.at) < readyFor {
		return h.ready.ready
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime)
	defer cancel()
	err := h.o.Ready(ctx)
	if err != nil {
		h.options.Log.Warn("not ready", "cause", clip(err.Error(), maxCause))
	}
	h.ready.at, h.ready.ready = time.Now(), err == nil
	return h.ready.ready
}
