package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
)

const (
	// maxBody is how long a message may be.
	maxBody = 1 << 20
	// smallBody is a length that every connection may use at once. Of longer
	// messages, and those that do not tell, maxLargeBodies may be there at once.
	smallBody      = 64 << 10
	maxLargeBodies = 64
	// maxLargeEach is how many of them may be one principal's, where there are
	// many principals.
	maxLargeEach = maxLargeBodies / 2
	// maxToken is how long a token may be.
	maxToken = 8 << 10
	// busyWait is after how long a client may try again that found no room.
	busyWait = time.Second
	// maxShapes is how many of the SDK's servers are kept. There are as many as
	// there are different rights.
	maxShapes = 64
	// sdkTime is how much longer than a call the SDK may take for it.
	sdkTime = 5 * time.Second
)

// Headers of a request.
const (
	headerOfKey     = "Idempotency-Key"
	headerOfVersion = "Mcp-Protocol-Version"
)

// JSON-RPC errors of the transport.
const (
	codeBusy        = -32000
	codeRateLimited = -32029
)

// visit is a request on its way, and what it brings beside its message.
type visit struct {
	principal  access.Principal
	headerKeys []string
	operation  atomic.Pointer[string] // its operation key, once there is one
}

type visitKey struct{}

func (v *visit) began(operationKey string) { v.operation.Store(&operationKey) }

// post answers one message.
func (h *HTTP) post(w http.ResponseWriter, r *http.Request) {
	who, ok := h.authenticate(w, r)
	if !ok {
		return
	}
	body, release, ok := h.read(w, r, who)
	if !ok {
		return
	}
	defer release()
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		h.busy(w)
		return
	}
	m := inspect(body)
	if !h.each.take(who) {
		h.limited(w, m, "share", busyWait)
		return
	}
	defer h.each.give(who)
	if wait := h.limits.take(who); wait > 0 {
		h.limited(w, m, "rate", wait)
		return
	}
	v := &visit{principal: who, headerKeys: r.Header[headerOfKey]}
	h.enter(v)
	defer h.leave(v)
	h.message(w, r, v, m)
}

func (h *HTTP) enter(v *visit) {
	h.mu.Lock()
	h.visits[v] = struct{}{}
	h.mu.Unlock()
}

func (h *HTTP) leave(v *visit) {
	h.mu.Lock()
	delete(h.visits, v)
	h.mu.Unlock()
}

// authenticate finds out who calls, or answers that this is not known.
func (h *HTTP) authenticate(w http.ResponseWriter, r *http.Request) (access.Principal, bool) {
	if h.o.Verifier == nil {
		return h.o.Anonymous, true
	}
	token, sent := bearer(r.Header)
	if token == "" {
		challenge := h.challenge
		if sent {
			challenge += `, error="invalid_request"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		h.refuse(w, http.StatusUnauthorized, "token", "a bearer token is needed, in the header Authorization")
		return access.Principal{}, false
	}
	who, err := h.o.Verifier.Verify(r.Context(), token)
	switch {
	case err == nil:
		return who, true
	case fault.CodeOf(err) == fault.BackendUnavailable:
		h.options.Log.Warn("tokens can not be verified", "cause", clip(err.Error(), maxCause))
		retryAfter(w, busyWait)
		h.options.Meter.Refused("verifier")
		h.fail(w, http.StatusServiceUnavailable, nil, &jsonrpc.Error{Code: codeBusy, Message: "Tokens can not be verified now"})
	default:
		h.options.Log.Debug("token refused", "cause", clip(err.Error(), maxCause))
		w.Header().Set("WWW-Authenticate", h.challenge+`, error="invalid_token"`)
		h.refuse(w, http.StatusUnauthorized, "token", "the bearer token is not valid")
	}
	return access.Principal{}, false
}

// bearer returns the token of the header Authorization, "" if there is none or
// it is no token, and whether the header was sent at all. Tokens elsewhere, in
// the address for example, are not looked at: addresses are logged by everybody.
func bearer(header http.Header) (token string, sent bool) {
	values := header["Authorization"]
	if len(values) != 1 {
		return "", len(values) > 0
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || len(token) > maxToken || strings.ContainsFunc(token, notInTokens) {
		return "", true
	}
	return token, true
}

func notInTokens(c rune) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return false
	}
	return !strings.ContainsRune("-._~+/=", c)
}

// read takes the body in. release gives back the room that it had.
func (h *HTTP) read(w http.ResponseWriter, r *http.Request, who access.Principal) (body []byte, release func(), ok bool) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil || media != "application/json" || len(r.Header["Content-Type"]) > 1:
		h.refuse(w, http.StatusUnsupportedMediaType, "content_type", "the Content-Type is application/json")
		return nil, nil, false
	case len(r.Header["Content-Encoding"]) > 0:
		h.refuse(w, http.StatusUnsupportedMediaType, "content_type", "no Content-Encoding is supported")
		return nil, nil, false
	case !acceptsJSON(r.Header["Accept"]):
		h.refuse(w, http.StatusNotAcceptable, "accept", "answers are application/json")
		return nil, nil, false
	case r.ContentLength > maxBody:
		h.tooLarge(w)
		return nil, nil, false
	}
	release = func() {}
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		if !h.largeEach.take(who) {
			h.busy(w)
			return nil, nil, false
		}
		select {
		case h.large <- struct{}{}:
			release = func() { <-h.large; h.largeEach.give(who) }
		default:
			h.largeEach.give(who)
			h.busy(w)
			return nil, nil, false
		}
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		return body, release, true
	}
	release()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		h.tooLarge(w)
	} else {
		h.refuse(w, http.StatusBadRequest, "body", "the body can not be read")
	}
	return nil, nil, false
}

// tooLarge also ends the connection: the rest of the body is not worth reading.
func (h *HTTP) tooLarge(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	h.refuse(w, http.StatusRequestEntityTooLarge, "body", "the body is over "+strconv.Itoa(maxBody)+" bytes")
}

// acceptsJSON reports whether a client that says what it accepts accepts JSON.
func acceptsJSON(accept []string) bool {
	if len(accept) == 0 {
		return true
	}
	for _, list := range accept {
		for each := range strings.SplitSeq(list, ",") {
			media, _, _ := strings.Cut(each, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "application/json", "application/*", "*/*":
				return true
			}
		}
	}
	return false
}

func (h *HTTP) busy(w http.ResponseWriter) {
	h.options.Meter.Refused("busy")
	retryAfter(w, busyWait)
	h.fail(w, http.StatusServiceUnavailable, nil, &jsonrpc.Error{Code: codeBusy, Message: "The server is busy. Nothing has happened. Try again later.", Data: retryData(busyWait)})
}

// limited answers a principal that asks too often, or too much at once: a
// request under its id, in an answer that every client hands on to its host.
func (h *HTTP) limited(w http.ResponseWriter, m message, why string, wait time.Duration) {
	h.options.Meter.Refused(why)
	retryAfter(w, wait)
	code, id := http.StatusTooManyRequests, []byte(nil)
	if m.sort == request || m.sort == refused {
		code, id = http.StatusOK, m.id.raw
	}
	h.fail(w, code, id, &jsonrpc.Error{Code: codeRateLimited, Message: "Too many requests. Nothing has happened. Try again later.", Data: retryData(wait)})
}

// retryAfter says it in whole seconds, as the header wants.
func retryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
}

func retryData(wait time.Duration) json.RawMessage {
	ms := int64((wait + time.Millisecond - 1) / time.Millisecond)
	return json.RawMessage(`{"retryAfterMs":` + strconv.FormatInt(ms, 10) + `}`)
}

// message answers what the gate made of a body.
func (h *HTTP) message(w http.ResponseWriter, r *http.Request, v *visit, m message) {
	version := r.Header.Get(headerOfVersion)
	classic := version == "" || slices.Contains(classicVersions, version)
	switch {
	case m.sort == unreadable && m.noJSON:
		h.options.Meter.Refused("gate")
		h.fail(w, http.StatusBadRequest, nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "Parse error: " + m.reason})
	case m.sort == unreadable:
		h.refuse(w, http.StatusBadRequest, "gate", m.reason)
	case m.sort == refused && m.failed.Code == jsonrpc.CodeInvalidRequest:
		h.options.Meter.Refused("gate")
		h.fail(w, http.StatusBadRequest, nil, m.failed)
	case m.sort == refused:
		h.fail(w, http.StatusOK, m.id.raw, m.failed)
	case m.sort == response, m.sort == notification && classic:
		w.WriteHeader(http.StatusAccepted) // nothing is kept that it could move
	case m.method == methodListen:
		// There is nothing to listen to: the tools never change.
		h.fail(w, http.StatusNotFound, m.id.raw, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found"})
	case m.sort == request && m.method == methodToolsCall:
		missing := h.missingScope(v.principal, m.call.Name)
		if missing == (access.Scope{}) && (m.newEra || !classic) && !plainCall(r.Header, m) {
			h.throughSDK(w, r, v, m)
			return
		}
		h.call(w, r, v, m, missing)
	default:
		h.throughSDK(w, r, v, m)
	}
}

// missingScope returns the scope that a principal lacks for a tool, if it is a
// scope that it lacks.
func (s *Server) missingScope(who access.Principal, name string) access.Scope {
	t, known := s.tools[name]
	if !known {
		return access.Scope{}
	}
	d, _ := errors.AsType[*access.Denied](t.permit(who))
	if d == nil {
		return access.Scope{}
	}
	return d.Scope
}

// call answers a tools/call past the SDK. A missing scope is also told the way
// OAuth has it, so that a client can ask for more.
func (h *HTTP) call(w http.ResponseWriter, r *http.Request, v *visit, m message, missing access.Scope) {
	call := m.call
	call.HeaderKeys, call.Key = v.headerKeys, v.began
	result, failed := desk{Server: h.Server, principal: v.principal, sessionless: m.newEra}.Call(r.Context(), call)
	switch {
	case failed != nil && missing != (access.Scope{}) && h.o.Verifier != nil:
		w.Header().Set("WWW-Authenticate", h.challenge+`, error="insufficient_scope", scope="`+missing.String()+`"`)
		h.fail(w, http.StatusForbidden, m.id.raw, failed)
	case failed != nil && failed.Code == jsonrpc.CodeInvalidParams && m.newEra:
		h.fail(w, http.StatusBadRequest, m.id.raw, failed) // as the sessionless protocol has it
	case failed != nil:
		h.fail(w, http.StatusOK, m.id.raw, failed)
	default:
		body := make([]byte, 0, len(result)+len(m.id.raw)+64)
		body = append(body, `{"jsonrpc":"2.0","id":`...)
		body = append(body, m.id.raw...)
		body = append(body, `,"result":`...)
		body = append(body, result...)
		send(w, http.StatusOK, append(body, '}'))
	}
}

// throughSDK lets the SDK answer, which knows the versions of the protocol.
//
// It is told nothing of a client that goes away: it would leave the call alone,
// and the end of the process would not wait for it.
func (h *HTTP) throughSDK(w http.ResponseWriter, r *http.Request, v *visit, m message) {
	ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(r.Context()), visitKey{}, v), h.app.CallTimeout+sdkTime)
	defer cancel()
	body := m.encode()
	inner := r.Clone(ctx)
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	inner.Header.Del("Authorization") // the SDK hands the headers on
	inner.Header["Accept"] = []string{"application/json, text/event-stream"}
	answer := &held{header: http.Header{}, code: http.StatusOK}
	h.sdk.ServeHTTP(answer, inner)
	h.relay(w, m, answer)
}

// encode writes the message as the gate understood it.
func (m message) encode() []byte {
	b := []byte(`{"jsonrpc":"2.0"`)
	if m.sort == request {
		b = append(append(b, `,"id":`...), m.id.raw...)
	}
	method, err := json.Marshal(m.method)
	if err != nil {
		panic(err) // it is a text
	}
	b = append(append(b, `,"method":`...), method...)
	if raw := m.params.Raw(); raw != nil {
		b = append(append(b, `,"params":`...), raw...)
	}
	return append(b, '}')
}

// held is an answer of the SDK that has not left yet.
type held struct {
	header http.Header
	code   int
	wrote  bool
	body   bytes.Buffer
}

func (a *held) Header() http.Header { return a.header }

func (a *held) WriteHeader(code int) {
	if !a.wrote {
		a.code, a.wrote = code, true
	}
}

func (a *held) Write(p []byte) (int, error) {
	a.wrote = true
	return a.body.Write(p)
}

// notHandled is how the SDK begins the text of its error for a method that it
// does not know.
const notHandled = "JSON RPC not handled"

// relay sends the SDK's answer on. Its errors in plain text become JSON-RPC
// errors, and one that is none, whose code is 0 and whose text tells of the
// inside, stays inside.
func (h *HTTP) relay(w http.ResponseWriter, m message, a *held) {
	body := a.body.Bytes()
	if len(body) == 0 && a.code < http.StatusBadRequest {
		w.WriteHeader(a.code)
		return
	}
	if a.header.Get("Content-Type") != "application/json" {
		text := strings.TrimSpace(string(body))
		switch {
		case strings.HasPrefix(text, notHandled) && m.sort == request:
			h.fail(w, http.StatusOK, m.id.raw, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found"})
		case http.StatusBadRequest <= a.code && a.code < http.StatusInternalServerError:
			h.fail(w, a.code, m.id.raw, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: " + text})
		default:
			h.accident(w, m, text)
		}
		return
	}
	if bytes.Contains(body, []byte(`"error"`)) { // few answers have one, so few are read
		var answer struct{ Error *jsonrpc.Error }
		if err := json.Unmarshal(body, &answer); err != nil || answer.Error != nil && answer.Error.Code == 0 {
			h.accident(w, m, string(body))
			return
		}
	}
	send(w, a.code, body)
}

// accident answers what nobody expected, and tells the log.
func (h *HTTP) accident(w http.ResponseWriter, m message, cause string) {
	id := rand.Text()
	h.options.Log.Error("request failed", "id", id, "cause", clip(cause, maxCause))
	h.fail(w, http.StatusOK, m.id.raw, internal(id, ""))
}

// shapes keeps the SDK's servers, one for each set of rights: what they list
// depends on nothing else.
type shapes struct {
	mu      sync.Mutex
	servers map[shape]*mcp.Server
}

type shape struct {
	scopes access.Scopes
	plan   access.Plan
}

// sessionServer returns the SDK's server for a request.
func (h *HTTP) sessionServer(r *http.Request) *mcp.Server {
	v, ok := r.Context().Value(visitKey{}).(*visit)
	if !ok {
		return nil
	}
	key := shape{v.principal.Scopes(), v.principal.Plan()}
	h.shapes.mu.Lock()
	defer h.shapes.mu.Unlock()
	if s := h.shapes.servers[key]; s != nil {
		return s
	}
	if h.shapes.servers == nil || len(h.shapes.servers) == maxShapes {
		h.shapes.servers = map[shape]*mcp.Server{}
	}
	s := desk{Server: h.Server, principal: nobody(key)}.protocol()
	h.shapes.servers[key] = s
	return s
}

// nobody has rights and no records: each call brings its own principal, and one
// that did not would find nothing.
func nobody(s shape) access.Principal {
	tenant, err := access.ParseTenant("nobody")
	if err != nil {
		panic(err)
	}
	who, err := access.NewPrincipal(tenant, "nobody", access.Service, s.scopes, s.plan, "")
	if err != nil {
		panic(err) // a service may hold every scope
	}
	return who
}
