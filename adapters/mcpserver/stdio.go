package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
)

const (
	// maxLine is the longest line that is read.
	maxLine = 4 << 20
	// readSize is how much is read at a time.
	readSize = 64 << 10
	// maxEmptyReads is how often in a row a reader may return nothing.
	maxEmptyReads = 100
	// maxInFlight is how many requests may be accepted and not yet answered.
	// Then reading pauses.
	maxInFlight = 1024
	// maxInFlightBytes is how long the lines of those requests may be together.
	maxInFlightBytes = 8 << 20
	// maxReads is how many answers of tools that read may be made and not yet
	// written, so that a client that asks for pages and does not read them costs a
	// bounded amount of memory.
	maxReads = 128
	// drainTime is how long the accepted requests have when reading has ended.
	drainTime = 20 * time.Second
	// maxLogged is how many bytes of a client's word are logged.
	maxLogged = 64
	// maxCause is how many bytes of an error are logged.
	maxCause = 300
)

// codeCancelled answers a request that its client gave up.
const codeCancelled = -32800

// toolCall is a tools/call that the gate let through.
type toolCall struct {
	Name      string
	Arguments strictjson.Value // absent if none were sent
	Meta      strictjson.Value // params._meta, absent or an object
	// HeaderKeys are the values of the header Idempotency-Key, over HTTP.
	HeaderKeys []string
	// Key is told the operation key under which the call runs, so that the log
	// can name it if the answer never gets out.
	Key func(operationKey string)
}

// toolCaller answers tool calls, many at once. It never panics and always
// answers. It keeps nothing of the call once it has answered.
type toolCaller interface {
	// Call returns the result object, in one line, or the error.
	Call(ctx context.Context, c toolCall) (result []byte, err *jsonrpc.Error)
	// Reads reports whether the tool only reads. Its answer may be a page long,
	// where that of a write is short.
	Reads(tool string) bool
}

// Ending says how a session ended.
type Ending int

const (
	// Drained: everything that was accepted has been answered.
	Drained Ending = iota
	// GaveUp: some answers did not come in time.
	GaveUp
	// OutputBroken: nobody reads the answers any more.
	OutputBroken
)

// accepted is a request that will be answered.
type accepted struct {
	id     messageID
	size   int                // of its line
	cancel context.CancelFunc // of a call that is answered here; nil for the session's

	reads      bool // it has a place among maxReads, once it runs
	initialize bool
	listen     bool // it waits in the session until it is cancelled
	newEra     bool

	// Guarded by Stdio.mu.
	operation string // the operation key, once it is known
	handed    bool   // the session has it
	cancelled bool
}

// phase is how far the classic handshake is.
type phase uint8

const (
	uninitialized phase = iota
	initializing
	initialized
)

// Stdio is the transport over two streams, one line a message. It is as strict
// as the SDK's own is lenient: a line that is no message is logged and skipped,
// and whatever was accepted is answered before the session ends.
//
// Classic tools/call requests are answered by a toolCaller, each in its own
// goroutine. All else goes through the SDK's session.
type Stdio struct {
	lines   *lineReader
	log     *slog.Logger
	calls   toolCaller
	answers *answers
	drain   time.Duration

	reads   chan struct{} // holds a value for each read that is made and not yet written
	session chan handover // what the session is to read
	ended   chan struct{} // closed when reading ends
	over    chan struct{} // closed when the session is over
	sawEnd  bool          // of Read alone

	mu       sync.Mutex
	changed  sync.Cond // something that admit waits for
	ids      map[string]*accepted
	leaving  []*accepted // their ids are free again, their answers on the way
	inFlight int
	bytes    int
	phase    phase
	greeted  bool // notifications/initialized has come
	newEra   bool // a sessionless request was answered: the SDK takes no initialize any more
	stopped  bool // ended is closed
	finished bool // over is closed
	how      Ending
	giveUp   *time.Timer
}

// handover is a message for the session, and the request if it is one.
type handover struct {
	message *jsonrpc.Request
	request *accepted
}

// NewStdio makes a transport for one session, whose tool calls s answers.
func NewStdio(in io.Reader, out io.Writer, log *slog.Logger, s toolCaller) *Stdio {
	t := &Stdio{
		lines:   &lineReader{in: in, buffer: make([]byte, readSize)},
		log:     log,
		calls:   s,
		drain:   drainTime,
		reads:   make(chan struct{}, maxReads),
		session: make(chan handover),
		ended:   make(chan struct{}),
		over:    make(chan struct{}),
		ids:     map[string]*accepted{},
	}
	t.changed.L = &t.mu
	t.answers = newAnswers(out, t.release, t.retire)
	return t
}

// Connect starts the session.
func (t *Stdio) Connect(context.Context) (mcp.Connection, error) {
	go t.answers.run()
	go t.readLines()
	return t, nil
}

// Stop ends reading. What was accepted is still answered.
func (t *Stdio) Stop() {
	if n := t.lines.partial.Load(); n > 0 {
		t.log.Warn("incomplete line dropped", "bytes", n)
	}
	t.end()
}

// Wait returns when the session is over.
func (t *Stdio) Wait() Ending {
	<-t.over
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.how
}

// SessionID is part of the SDK's interface.
func (t *Stdio) SessionID() string { return "" }

// Close is called by the SDK when its side of the session has ended.
func (t *Stdio) Close() error {
	t.end()
	return nil
}

// Read gives the SDK what is not answered here. It returns io.EOF when all that
// was accepted has been answered, not before: afterwards the SDK writes no more.
func (t *Stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		ended := t.ended
		if t.sawEnd {
			if cancel := t.cancelListener(); cancel != nil {
				return cancel, nil
			}
			ended = nil
		}
		select {
		case h := <-t.session:
			if h.request != nil && h.request.listen {
				t.mu.Lock()
				h.request.handed = true
				t.mu.Unlock()
			}
			return h.message, nil
		case <-ended:
			t.sawEnd = true
		case <-t.over:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// cancelListener returns a cancellation for a request that waits in the session
// for no other reason than to be cancelled, or nil if there is none.
func (t *Stdio) cancelListener() *jsonrpc.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.ids {
		if r.listen && r.handed && !r.cancelled {
			r.cancelled = true
			return &jsonrpc.Request{Method: notifyCancelled, Params: cancellation(r)}
		}
	}
	return nil
}

func cancellation(r *accepted) json.RawMessage {
	return append(append([]byte(`{"requestId":`), r.id.raw...), '}')
}

// Write takes what the SDK has to say.
func (t *Stdio) Write(_ context.Context, m jsonrpc.Message) error {
	answer, ok := m.(*jsonrpc.Response)
	if !ok {
		encoded, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		t.answers.message(encoded)
		return nil
	}
	t.mu.Lock()
	r := t.ids[keyOf(answer.ID)]
	if r != nil && r.initialize {
		t.phase = initialized
		if answer.Error != nil {
			t.phase = uninitialized
		}
		t.changed.Broadcast()
	}
	if r != nil && r.newEra && answer.Error == nil {
		t.newEra = true
	}
	t.mu.Unlock()
	switch {
	case r == nil:
		t.log.Error("answer to no request", "cause", clip(errorText(answer.Error), maxCause))
	case answer.Error != nil:
		t.answers.failure(r, t.plain(r, answer.Error))
	default:
		t.answers.result(r, answer.Result)
	}
	return nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// plain makes an error of the SDK fit to leave: a wrapped one repeats the
// params, and one that is not JSON-RPC's has the code 0 and tells of the inside.
func (t *Stdio) plain(r *accepted, err error) *jsonrpc.Error {
	if e, ok := err.(*jsonrpc.Error); ok && e.Code != 0 {
		return e
	}
	if errors.Is(err, context.Canceled) {
		return &jsonrpc.Error{Code: codeCancelled, Message: "Request cancelled"}
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		switch e.Code {
		case jsonrpc.CodeMethodNotFound:
			return &jsonrpc.Error{Code: e.Code, Message: "Method not found"}
		case jsonrpc.CodeInvalidParams:
			return &jsonrpc.Error{Code: e.Code, Message: "Invalid params"}
		case jsonrpc.CodeInvalidRequest:
			return &jsonrpc.Error{Code: e.Code, Message: "Invalid Request"}
		}
	}
	if r.initialize {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params: initialize can not be understood"}
	}
	id := rand.Text()
	t.log.Error("request failed", "id", id, "cause", clip(err.Error(), maxCause))
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "Internal error", Data: json.RawMessage(`{"id":"` + id + `"}`)}
}

// clip cuts a text for the log.
func clip(s string, bound int) string {
	if len(s) > bound {
		return s[:bound] + "…"
	}
	return s
}

// readLines reads until the input ends, or the session.
func (t *Stdio) readLines() {
	defer t.end()
	for {
		line, err := t.lines.next()
		switch {
		case err == nil:
		case err == errLineTooLong:
			t.log.Warn("line skipped", "reason", err.Error(), "limit", maxLine)
			continue
		case err == io.EOF:
			return
		default:
			t.log.Error("reading failed", "cause", err.Error())
			return
		}
		if !t.take(line) {
			t.log.Warn("lines dropped at the end", "bytes", len(line)+t.lines.unread())
			return
		}
	}
}

// take does what a line asks. It returns false if the line came too late.
func (t *Stdio) take(line []byte) bool {
	m := inspect(line)
	switch m.sort {
	case unreadable:
		t.log.Warn("line skipped", "reason", m.reason, "bytes", len(line))
	case response:
		t.log.Debug("response ignored", "bytes", len(line))
	case notification:
		return t.notified(m)
	case request, refused:
		return t.requested(m, len(line))
	}
	return true
}

// requested answers a request, or hands it over to who does.
func (t *Stdio) requested(m message, size int) bool {
	r := &accepted{id: m.id, size: size, listen: m.method == methodListen, newEra: m.newEra}
	direct := m.method == methodToolsCall && m.sort == request && !m.newEra
	ctx := context.Background()
	if direct {
		ctx, r.cancel = context.WithCancel(ctx)
	}
	switch t.admit(r, &m) {
	case tooLate:
		return false
	case idInFlight:
		// An error would be taken for the answer to the request that runs.
		t.log.Warn("request skipped", "reason", "its id is in flight", "bytes", size)
		return true
	}
	if m.sort == refused {
		t.answers.failure(r, m.failed)
		return true
	}
	if t.log.Enabled(ctx, slog.LevelDebug) {
		attrs := []slog.Attr{slog.String("method", clip(m.method, maxLogged))}
		if m.method == methodToolsCall {
			attrs = append(attrs, slog.String("tool", clip(m.call.Name, maxLogged)))
		}
		t.log.LogAttrs(ctx, slog.LevelDebug, "accepted", attrs...)
	}
	if direct {
		go t.call(ctx, r, m.call)
		return true
	}
	id, err := m.id.forSession()
	if err != nil {
		t.answers.failure(r, t.plain(r, err))
		return true
	}
	extra := &mcp.RequestExtra{Header: http.Header{headerRequest: {r.id.key}}}
	t.hand(handover{&jsonrpc.Request{ID: id, Method: m.method, Params: m.params.Raw(), Extra: extra}, r})
	return true
}

// call answers a tools/call.
func (t *Stdio) call(ctx context.Context, r *accepted, c toolCall) {
	defer r.cancel()
	c.Key = func(operation string) {
		t.mu.Lock()
		r.operation = operation
		t.mu.Unlock()
	}
	if t.calls.Reads(c.Name) {
		t.reads <- struct{}{}
		r.reads = true
	}
	result, failed := t.calls.Call(ctx, c)
	if failed != nil {
		t.answers.failure(r, failed)
		return
	}
	t.answers.result(r, result)
}

// headerRequest carries the id of a request through the SDK, so that began can
// find it again. It never leaves the process.
const headerRequest = "Refundledger-Request"

// began notes the operation key of a request that went through the session.
func (t *Stdio) began(request, operationKey string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.ids[request]; r != nil {
		r.operation = operationKey
	}
}

// hand gives the session a message.
func (t *Stdio) hand(h handover) {
	select {
	case t.session <- h:
	case <-t.over:
	}
}

// notified handles a notification. It gets no answer, so it moves nothing: all
// that is heard is the end of the handshake and the wish to cancel. Nothing else
// means anything to the session, and its queue has no bound.
func (t *Stdio) notified(m message) bool {
	t.mu.Lock()
	t.awaitHandshake()
	late := t.stopped
	var forward *jsonrpc.Request
	var cancel context.CancelFunc
	switch m.method {
	case notifyInitialized:
		if t.phase == initialized && !t.greeted {
			t.greeted = true
			forward = &jsonrpc.Request{Method: m.method, Params: m.params.Raw()}
		}
	case notifyCancelled:
		key, ok := cancelledKey(m.params)
		r := t.ids[key]
		if !ok || r == nil || r.cancelled || r.initialize {
			break
		}
		r.cancelled = true
		if cancel = r.cancel; cancel == nil {
			forward = &jsonrpc.Request{Method: m.method, Params: cancellation(r)}
		}
	}
	t.mu.Unlock()
	switch {
	case late:
		return false
	case cancel != nil:
		cancel()
	case forward != nil:
		t.hand(handover{message: forward})
	default:
		t.log.Debug("notification ignored", "method", clip(m.method, maxLogged))
	}
	return true
}

// admission is whether a request is accepted.
type admission uint8

const (
	admitted admission = iota
	idInFlight
	tooLate
)

// admit accepts a request as soon as there is room, and refuses what the state
// of the session does not allow.
func (t *Stdio) admit(r *accepted, m *message) admission {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.awaitHandshake()
	for !t.stopped && (t.inFlight == maxInFlight || t.inFlight > 0 && t.bytes+r.size > maxInFlightBytes) {
		t.changed.Wait()
	}
	if t.stopped {
		return tooLate
	}
	if t.ids[r.id.key] != nil {
		return idInFlight
	}
	switch {
	case m.sort == refused || m.newEra || m.method == methodPing:
	case m.method == methodInitialize && (t.phase == initialized || t.newEra):
		m.refuseState("the session has begun already")
	case m.method == methodInitialize:
		r.initialize = true
		t.phase = initializing
	case t.phase == uninitialized:
		m.refuseState("initialize first")
	}
	t.ids[r.id.key] = r
	t.inFlight++
	t.bytes += r.size
	return admitted
}

// refuseState refuses a request that comes at the wrong time.
func (m *message) refuseState(why string) {
	m.sort, m.failed = refused, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid Request: " + why}
}

// awaitHandshake waits until initialize is answered, with mu held: what comes
// right behind it depends on the answer.
func (t *Stdio) awaitHandshake() {
	for t.phase == initializing && !t.stopped {
		t.changed.Wait()
	}
}

// release frees the ids of requests whose answers are about to be written: the
// client may use them again as soon as it has read the answer.
func (t *Stdio) release(batch []*accepted) {
	t.mu.Lock()
	for _, r := range batch {
		delete(t.ids, r.id.key)
	}
	t.leaving = batch
	t.mu.Unlock()
}

// retire gives back the room of requests whose answers are written, or lost.
func (t *Stdio) retire(batch []*accepted, err error) {
	if err != nil {
		t.lose(batch, err) // before the session can end: its owner may exit then
	}
	t.mu.Lock()
	t.leaving = nil
	for _, r := range batch {
		t.inFlight--
		t.bytes -= r.size
	}
	t.changed.Signal()
	t.finishIfDrained()
	t.mu.Unlock()
	for _, r := range batch {
		if r.reads {
			<-t.reads
		}
	}
}

// lose ends reading, as nobody reads the answers, and logs those of the batch.
func (t *Stdio) lose(batch []*accepted, err error) {
	t.mu.Lock()
	if t.finished { // they have been logged
		t.mu.Unlock()
		return
	}
	first := t.how != OutputBroken
	t.how = OutputBroken
	operations := operationsOf(slices.Values(batch))
	t.mu.Unlock()
	if first {
		t.log.Error("writing failed", "cause", err.Error())
	}
	t.logUnanswered(operations)
	t.end()
}

// operationsOf lists the operation keys of requests, with mu held.
func operationsOf(requests iter.Seq[*accepted]) (keys []string) {
	for r := range requests {
		if r.operation != "" {
			keys = append(keys, r.operation)
		}
	}
	return keys
}

func (t *Stdio) logUnanswered(operations []string) {
	for _, key := range operations {
		t.log.Error("operation not answered", "operation", key)
	}
}

// end stops reading.
func (t *Stdio) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	t.stopped = true
	close(t.ended)
	t.giveUp = time.AfterFunc(t.drain, t.abandon)
	t.changed.Broadcast()
	t.finishIfDrained()
}

// finishIfDrained ends the session if nothing is left to do, with mu held.
func (t *Stdio) finishIfDrained() {
	if t.stopped && t.inFlight == 0 {
		t.finish()
	}
}

func (t *Stdio) finish() {
	if t.finished {
		return
	}
	t.finished = true
	t.giveUp.Stop()
	t.answers.close()
	close(t.over)
}

// abandon ends the session although there are requests without an answer.
func (t *Stdio) abandon() {
	t.mu.Lock()
	if t.finished {
		t.mu.Unlock()
		return
	}
	if t.how == Drained {
		t.how = GaveUp
	}
	unanswered := t.inFlight
	operations := append(operationsOf(maps.Values(t.ids)), operationsOf(slices.Values(t.leaving))...)
	t.mu.Unlock()
	t.log.Error("gave up", "unanswered", unanswered, "after", t.drain.String())
	t.logUnanswered(operations)
	t.mu.Lock()
	t.finish()
	t.mu.Unlock()
}

// errLineTooLong is returned once for a line over maxLine.
var errLineTooLong = errors.New("line too long")

// lineReader takes lines from a stream in bounded memory.
type lineReader struct {
	in         io.Reader
	buffer     []byte
	start, end int    // what of the buffer is not taken yet
	searched   int    // up to here there is no line break
	long       []byte // the beginning of a line that is longer than the buffer
	skipping   bool   // over the rest of a line that is too long
	err        error  // of the stream, once what came before it is taken

	// partial is how much of an unfinished line is there while next waits.
	partial atomic.Int64
}

// next returns the next line that is not blank, as a slice of its own. What
// stands behind the last line break counts as a line.
func (l *lineReader) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buffer[l.searched:l.end], '\n'); i >= 0 {
			piece := l.buffer[l.start : l.searched+i]
			l.start = l.searched + i + 1
			l.searched = l.start
			if line, err := l.line(piece); line != nil || err != nil {
				return line, err
			}
			continue
		}
		l.searched = l.end
		if l.err != nil {
			piece := l.buffer[l.start:l.end]
			l.start = l.end
			if line, err := l.line(piece); line != nil || err != nil {
				return line, err
			}
			return nil, l.err
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}

// line puts a whole line together, of which piece is the end. It returns
// nothing for a blank line, and for one that is being skipped.
func (l *lineReader) line(piece []byte) ([]byte, error) {
	whole := l.long
	l.long = nil
	switch {
	case l.skipping:
		l.skipping = false
		return nil, nil
	case len(whole)+len(piece) > maxLine:
		return nil, errLineTooLong
	case whole != nil:
		whole = lengthen(whole, piece)
	case len(bytes.Trim(piece, " \t\r")) > 0:
		return bytes.Clone(piece), nil
	}
	if len(bytes.Trim(whole, " \t\r")) == 0 {
		return nil, nil
	}
	return whole, nil
}

// lengthen appends to a long line, in fewer steps and with less to throw away
// than append takes for slices of this size.
func lengthen(long, piece []byte) []byte {
	if len(long)+len(piece) > cap(long) {
		long = slices.Grow(long, max(len(piece), min(len(long), maxLine-len(long))))
	}
	return append(long, piece...)
}

// fill reads more behind what is there.
func (l *lineReader) fill() error {
	if l.start > 0 {
		copy(l.buffer, l.buffer[l.start:l.end])
		l.start, l.end, l.searched = 0, l.end-l.start, l.searched-l.start
	}
	if l.end == len(l.buffer) { // all of it one line that goes on
		l.start, l.end, l.searched = 0, 0, 0
		switch {
		case l.skipping:
		case len(l.long)+len(l.buffer) > maxLine:
			l.long, l.skipping = nil, true
			return errLineTooLong
		default:
			l.long = lengthen(l.long, l.buffer)
		}
	}
	l.partial.Store(int64(l.unread()))
	defer l.partial.Store(0)
	for range maxEmptyReads {
		n, err := l.in.Read(l.buffer[l.end:])
		l.end += n
		l.err = err
		if n > 0 || err != nil {
			return nil
		}
	}
	l.err = io.ErrNoProgress
	return nil
}

// unread is how much was read and not taken.
func (l *lineReader) unread() int { return len(l.long) + l.end - l.start }
