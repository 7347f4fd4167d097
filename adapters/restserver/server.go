// Package restserver serves a ledger over HTTP: the system of record that
// several processes share. What is asked is decided here, on the server's
// records and by its clock; nothing that a client computed is evidence.
//
// Routes and the OpenAPI document come from one declaration for each resource,
// in package restwire, by way of huma. Bodies are read by package strictjson
// and not by huma, which takes the last of two members of one name and sends
// numbers through floats.
package restserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// Limits of the server, beside those of the wire.
const (
	// DefaultTimeout is the time of a request that names none.
	DefaultTimeout = 30 * time.Second
	// readTimeout bounds how long a client may take to send a request, headerTimeout
	// its header, and bodyTimeout a body that a request at work waits for.
	readTimeout   = 30 * time.Second
	headerTimeout = 5 * time.Second
	bodyTimeout   = 5 * time.Second
	idleTimeout   = 2 * time.Minute
	// writeTimeout bounds how long an answer takes from the end of the header on:
	// the longest request and then some.
	writeTimeout = restwire.MaxTimeout + 2*restwire.Grace + readTimeout
	// storeGrace is how long after a request's time the store may take to say
	// what became of it. Nothing is decided in it any more.
	storeGrace = restwire.Grace * 3 / 4
	// shutdownTimeout is how long requests that were accepted may run on.
	shutdownTimeout = 20 * time.Second
	// DefaultInFlight is how many requests may be at work at once: as many as one
	// group commit takes. Each may hold a body.
	DefaultInFlight = 512
	// joinTimeout is how long a request waits for another of the same key.
	joinTimeout = 5 * time.Second
)

// Store is the ledger that is served.
type Store interface {
	ports.Ledger
	ports.Refunds
	ports.Journal
	ports.Payables
}

// Tokens knows who may call.
type Tokens interface {
	// Verify returns the principal whose token it is. A fault BACKEND_UNAVAILABLE
	// says that nobody can tell now, any other error that the token proves nothing.
	Verify(ctx context.Context, token string) (access.Principal, error)
}

// Server serves a ledger. Make one with [New].
type Server struct {
	store  Store
	app    *app.App
	tokens Tokens
	clock  ports.Clock
	ids    ports.IDs
	log    *slog.Logger

	mux      *http.ServeMux
	document []byte
	leaving  atomic.Bool
	slots    chan struct{} // one for each request at work

	mu      sync.Mutex
	running map[scope]chan struct{} // closed when the request ends
}

// Options are what a server needs.
type Options struct {
	Tokens Tokens
	Clock  ports.Clock
	IDs    ports.IDs
	Log    *slog.Logger
	// Tolerance is how far invoiced prices may differ from ordered ones.
	Tolerance payables.Tolerance
	// Metrics is served at /metrics to everybody; nil: there are none.
	Metrics http.Handler
	// MaxInFlight bounds the requests at work at once; DefaultInFlight if 0. Those
	// beyond it are told to come again, before anything of them is read.
	MaxInFlight int
}

// New makes a server.
func New(store Store, o Options) (*Server, error) {
	s := &Server{
		store: store, tokens: o.Tokens, clock: o.Clock, ids: o.IDs, log: o.Log, mux: http.NewServeMux(), running: map[scope]chan struct{}{},
		app: &app.App{Ledger: store, Refunds: store, Payables: store, Journal: store, Tolerance: o.Tolerance, Clock: o.Clock, IDs: o.IDs, CallTimeout: restwire.MaxTimeout + storeGrace},
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = DefaultInFlight
	}
	s.slots = make(chan struct{}, o.MaxInFlight)
	document, err := s.routes()
	if err != nil {
		return nil, fmt.Errorf("restserver: %w", err)
	}
	s.document = document
	if o.Metrics != nil {
		s.mux.Handle("GET /metrics", o.Metrics)
	}
	return s, nil
}

// OpenAPI is the document that the server publishes at /openapi.json.
func (s *Server) OpenAPI() []byte { return s.document }

// Values of headers that never change; nobody appends to them.
var (
	noStore = []string{"no-store"}
	noSniff = []string{"nosniff"}
	isJSON  = []string{restwire.TypeJSON}
)

// ServeHTTP answers one request. A panic is answered as any accident is.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			s.accident(w, fmt.Errorf("panic: %v", p))
		}
	}()
	header := w.Header()
	header["Cache-Control"], header["X-Content-Type-Options"] = noStore, noSniff
	if !canonical(r.URL.EscapedPath()) {
		s.noResource(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// canonical reports whether a path is written as the paths of resources are: all
// of it from the root, no step empty, back or nowhere. The mux would redirect any
// other, and a client is not to send its token and its command a second time.
func canonical(p string) bool {
	clean := path.Clean(p)
	return strings.HasPrefix(p, "/") && (p == clean || clean != "/" && p == clean+"/")
}

func (s *Server) noResource(w http.ResponseWriter, _ *http.Request) {
	s.fail(w, refuse(http.StatusNotFound, fault.NotFound, restwire.ReasonNoResource, "There is no such resource. /openapi.json names those there are."))
}

// Serve serves until ctx ends; then it finishes what it accepted, within
// shutdownTimeout, and returns.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadTimeout:       readTimeout,
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    restwire.MaxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what clients do wrong on the way
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.leaving.Store(true)
	rest, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	err := server.Shutdown(rest)
	if err != nil {
		err = errors.Join(fmt.Errorf("restserver: requests were still running: %w", err), server.Close())
	}
	<-ended
	return err
}

// bounded serves a resource as long as there are slots.
func (s *Server) bounded(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
			serve(w, r)
		default:
			s.fail(w, refuse(http.StatusServiceUnavailable, fault.BackendUnavailable, restwire.ReasonBusy,
				"The server has as many requests as it takes at once. Nothing has happened. Try again later."))
		}
	}
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusNoContent)
}

// readyTimeout bounds how long the store may take to show that it is there.
const readyTimeout = 2 * time.Second

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithTimeout(r.Context(), readyTimeout)
	defer stop()
	if _, err := s.store.ListAccounts(ctx, probe, "", 1); err != nil || s.leaving.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// probe is a tenant that readiness asks for: any does, and none is looked at.
var probe = func() access.Tenant {
	t, err := access.ParseTenant("readyz")
	if err != nil {
		panic(err)
	}
	return t
}()

func (s *Server) openAPI(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", restwire.TypeJSON)
	_, _ = w.Write(s.document)
}

// answer writes a document.
func answer(w http.ResponseWriter, status int, document any) {
	w.Header()["Content-Type"] = isJSON
	write(w, status, restwire.Append(make([]byte, 0, 1024), document))
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone looks the key up
}

// indent makes a document that people compare line by line.
func indent(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	return append(b, '\n'), err
}
