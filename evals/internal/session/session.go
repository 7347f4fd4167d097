// Package session runs one server process and talks to it as a host does: with
// the SDK's client, and past it with raw lines on the same pipes for what that
// client would not send. Over HTTP each line is a request of its own.
package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refundledger/refundledger/evals/internal/expect"
	"github.com/refundledger/refundledger/evals/internal/jsontree"
)

const (
	// answerTimeout is how long any one answer may take.
	answerTimeout = 30 * time.Second
	// exitTimeout is how long the server may take to end after its input has.
	exitTimeout = 25 * time.Second
	// refusalTimeout is how long a server that must not start may take to say so.
	refusalTimeout = 10 * time.Second
	// settle is how long an answer that must not come is waited for.
	settle = 100 * time.Millisecond
	// maxLine is the longest answer that is read.
	maxLine = 64 << 20
	// maxStderr is how much of stderr is kept.
	maxStderr = 4 << 20
)

// Session is one server process and its client. Call may be used at once.
type Session struct {
	cmd       *exec.Cmd
	stdin     io.WriteCloser
	web       *web // over HTTP, else nil
	stderr    *tail
	exited    chan struct{} // closed when the process has ended and all is read
	client    *mcp.ClientSession
	toSDK     chan string   // answers to the SDK's client
	abandoned chan struct{} // closed when the process is killed: nobody reads toSDK
	giveUp    sync.Once
	tools     map[string]bool

	writing sync.Mutex // one line at a time; guards closed
	closed  bool

	mu        sync.Mutex
	waiting   map[string]*waiter // by the text of the id
	heard     strings.Builder    // every line of stdout
	violation error              // the first
	ids       int                // how many ids were made here
}

// waiter gets the answer to one request.
type waiter struct {
	line chan string
	raw  bool // not for the SDK's client
}

func newWaiter(raw bool) *waiter { return &waiter{make(chan string, 1), raw} }

// Start runs the server with exactly that environment (and where programs and
// temporary files are) and connects with that revision of the protocol, over
// stdio or HTTP.
func Start(ctx context.Context, server, protocol string, overHTTP bool, env map[string]string) (*Session, error) {
	if overHTTP {
		env = webEnvironment(env)
	}
	s := &Session{
		cmd:       command(server, env),
		stderr:    &tail{},
		exited:    make(chan struct{}),
		toSDK:     make(chan string),
		abandoned: make(chan struct{}),
		waiting:   map[string]*waiter{},
	}
	s.cmd.Stderr = s.stderr
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go s.listen(stdout)
	if overHTTP {
		if s.web, err = s.openWeb(ctx, protocol); err != nil {
			return nil, errors.Join(err, s.kill())
		}
	}
	if err := s.connect(ctx, protocol); err != nil {
		return nil, errors.Join(err, s.kill())
	}
	return s, nil
}

// RefuseToStart runs the server, which must end by itself with an exit code
// other than 0, and returns what it said on stderr.
func RefuseToStart(ctx context.Context, server string, env map[string]string) (stderr string, err error) {
	ctx, stop := context.WithTimeout(ctx, refusalTimeout)
	defer stop()
	cmd := command(server, env)
	var says tail
	cmd.Stderr = &says
	in, err := cmd.StdinPipe() // open, so that it is not the end of input that ends it
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-ended
		err = nil
	}
	_ = in.Close()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() <= 0 {
		return says.String(), &expect.Mismatch{Want: "a server that refuses to start", Got: "one that runs"}
	}
	return says.String(), nil
}

func command(server string, env map[string]string) *exec.Cmd {
	cmd := exec.Command(server)
	cmd.Env = []string{}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "SYSTEMROOT"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	return cmd
}

func (s *Session) connect(ctx context.Context, protocol string) error {
	ctx, stop := context.WithTimeout(ctx, answerTimeout)
	defer stop()
	client := mcp.NewClient(&mcp.Implementation{Name: "refundledger-evals", Version: "1"}, nil)
	var err error
	if s.client, err = client.Connect(ctx, transport{s}, &mcp.ClientSessionOptions{ProtocolVersion: protocol}); err != nil {
		return fmt.Errorf("connecting to the server: %w%s", err, s.lastWords())
	}
	if got := s.client.InitializeResult().ProtocolVersion; got != protocol {
		return &expect.Mismatch{Want: "protocol " + protocol, Got: got}
	}
	list, err := s.client.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("listing the tools: %w%s", err, s.lastWords())
	}
	s.tools = map[string]bool{}
	for _, t := range list.Tools {
		s.tools[t.Name] = t.Annotations == nil || !t.Annotations.ReadOnlyHint
	}
	return nil
}

// Tools lists the names of the tools, sorted.
func (s *Session) Tools() []string { return slices.Sorted(maps.Keys(s.tools)) }

// Offers reports whether there is a tool of that name.
func (s *Session) Offers(tool string) bool { _, ok := s.tools[tool]; return ok }

// Changes reports whether a tool of that name is listed and changes state.
func (s *Session) Changes(tool string) bool { return s.tools[tool] }

type waiterKey struct{}

// Call calls a tool through the SDK's client and returns what came over the
// wire. The arguments are sent as they are.
func (s *Session) Call(ctx context.Context, tool, arguments string, meta map[string]string) (expect.Answer, error) {
	ctx, stop := context.WithTimeout(ctx, answerTimeout)
	defer stop()
	w := newWaiter(false)
	params := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)}
	if len(meta) > 0 {
		params.Meta = mcp.Meta{}
		for name, raw := range meta {
			params.Meta[name] = json.RawMessage(raw)
		}
	}
	_, err := s.client.CallTool(context.WithValue(ctx, waiterKey{}, w), params)
	select {
	case line := <-w.line:
		if protocol, ok := errors.AsType[*jsonrpc.Error](err); err != nil && (!ok || protocol == nil) {
			return expect.Answer{}, fmt.Errorf("the SDK's client can not use the answer: %w", err)
		}
		return expect.Read(line)
	default:
		return expect.Answer{}, fmt.Errorf("no answer: %w%s", err, s.lastWords())
	}
}

// CallRaw calls a tool past the SDK's client, with arguments that need not be
// what that client would send, or not even JSON.
func (s *Session) CallRaw(ctx context.Context, tool, arguments string, meta map[string]string) (expect.Answer, error) {
	params := `{"name":` + jsontree.Quote(tool) + `,"arguments":` + arguments
	if len(meta) > 0 {
		var members []string
		for _, name := range slices.Sorted(maps.Keys(meta)) {
			members = append(members, jsontree.Quote(name)+":"+meta[name])
		}
		params += `,"_meta":{` + strings.Join(members, ",") + "}"
	}
	id := s.newID()
	return s.Send(ctx, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":`+params+"}}", id)
}

// newID returns the text of an id that is not used yet.
func (s *Session) newID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return fmt.Sprintf(`"evals-%d"`, s.ids)
}

// Send writes a line past the SDK's client. With an id, the text of a JSON
// string, it waits for the answer; with "" it makes sure that none comes.
func (s *Session) Send(ctx context.Context, line, id string) (expect.Answer, error) {
	if id == "" {
		if err := s.write([]byte(line), "", nil); err != nil {
			return expect.Answer{}, err
		}
		return expect.Answer{}, s.quiet(ctx)
	}
	w := newWaiter(true)
	if err := s.write([]byte(line), id, w); err != nil {
		return expect.Answer{}, err
	}
	ctx, stop := context.WithTimeout(ctx, answerTimeout)
	defer stop()
	select {
	case line := <-w.line:
		return expect.Read(line)
	case <-s.exited:
		return expect.Answer{}, errors.New("no answer: the server has ended" + s.lastWords())
	case <-ctx.Done():
		return expect.Answer{}, fmt.Errorf("no answer within %s%s", answerTimeout, s.lastWords())
	}
}

// quiet waits until the server has answered a ping and a little longer.
func (s *Session) quiet(ctx context.Context) error {
	id := s.newID()
	if _, err := s.Send(ctx, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`, id); err != nil {
		return fmt.Errorf("a ping afterwards: %w", err)
	}
	time.Sleep(settle)
	return s.Violation()
}

// Violation returns the first thing on stdout that has no business there.
func (s *Session) Violation() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.violation
}

// Heard returns everything that came on stdout, Logged what came on stderr.
func (s *Session) Heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard.String()
}

// Logged returns what came on stderr so far.
func (s *Session) Logged() string { return s.stderr.String() }

// Close ends the input, or over HTTP sends SIGTERM. The server must then end by
// itself with exit code 0.
func (s *Session) Close() error {
	if err := s.closeInput(); err != nil {
		return errors.Join(err, s.kill())
	}
	if s.web != nil {
		if err := s.web.stop(s.cmd.Process); err != nil {
			return errors.Join(err, s.kill())
		}
	}
	select {
	case <-s.exited:
	case <-time.After(exitTimeout):
		return errors.Join(fmt.Errorf("the server does not end within %s after its input", exitTimeout), s.kill())
	}
	_ = s.client.Close() // nothing is left to close but its goroutines
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%w%s", &expect.Mismatch{Want: "exit code 0 at the end of input", Got: fmt.Sprint(code)}, s.lastWords())
	}
	return s.Violation()
}

func (s *Session) closeInput() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.stdin.Close()
}

func (s *Session) kill() error {
	s.giveUp.Do(func() { close(s.abandoned) })
	_ = s.closeInput()
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.exited
	return nil
}

// lastWords returns the end of stderr, to be put behind an error.
func (s *Session) lastWords() string {
	said := strings.TrimSpace(s.stderr.String())
	if said == "" {
		return ""
	}
	lines := strings.Split(said, "\n")
	return "; stderr ends with: " + expect.Shorten(lines[len(lines)-1])
}

// write sends a line; w will get the answer under id.
func (s *Session) write(line []byte, id string, w *waiter) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return errors.New("the session is closed")
	}
	if w != nil {
		s.mu.Lock()
		s.waiting[id] = w
		s.mu.Unlock()
	}
	if s.web != nil {
		go s.post(line)
		return nil
	}
	if _, err := s.stdin.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing to the server: %w%s", err, s.lastWords())
	}
	return nil
}

// listen hands every line of stdout to whom it is for.
func (s *Session) listen(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		s.hear(lines.Text())
	}
	if err := lines.Err(); err != nil {
		s.violate(err)
		_, _ = io.Copy(io.Discard, stdout) // or the server could not end
	}
	_ = s.cmd.Wait() // its exit code is looked at in Close
	close(s.exited)
	close(s.toSDK)
}

func (s *Session) violate(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.violation == nil {
		s.violation = err
	}
}

func (s *Session) hear(line string) {
	s.mu.Lock()
	s.heard.WriteString(line)
	s.heard.WriteByte('\n')
	s.mu.Unlock()
	n, err := jsontree.Parse([]byte(line))
	if err != nil || n.Kind != jsontree.Object || n.Get("jsonrpc").Str() != "2.0" {
		s.violate(fmt.Errorf("a line on stdout is no JSON-RPC message: %s", expect.Shorten(line)))
		return
	}
	if n.Get("method") != nil { // a notification or a request of the server's
		s.forward(line)
		return
	}
	id := "none"
	if n.Get("id") != nil {
		id = n.Get("id").Raw
	}
	s.mu.Lock()
	w := s.waiting[id]
	delete(s.waiting, id)
	s.mu.Unlock()
	if w == nil {
		s.violate(fmt.Errorf("an answer nobody waits for, with the id %s: %s", id, expect.Shorten(line)))
		return
	}
	w.line <- line
	if !w.raw {
		s.forward(line)
	}
}

func (s *Session) forward(line string) {
	select {
	case s.toSDK <- line:
	case <-s.abandoned:
	}
}

// transport is how the SDK's client reaches the process.
type transport struct{ s *Session }

func (t transport) Connect(context.Context) (mcp.Connection, error) { return connection(t), nil }

type connection struct{ s *Session }

func (c connection) SessionID() string { return "" }

func (c connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case line, ok := <-c.s.toSDK:
		if !ok {
			return nil, io.EOF
		}
		return jsonrpc.DecodeMessage([]byte(line))
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c connection) Write(ctx context.Context, msg jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	request, ok := msg.(*jsonrpc.Request)
	if !ok || !request.IsCall() {
		return c.s.write(line, "", nil)
	}
	id, err := json.Marshal(request.ID.Raw())
	if err != nil {
		return err
	}
	w, ok := ctx.Value(waiterKey{}).(*waiter)
	if !ok {
		w = newWaiter(false)
	}
	return c.s.write(line, string(id), w)
}

func (c connection) Close() error { return c.s.closeInput() }

// tail keeps the last part of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if extra := t.buf.Len() - maxStderr; extra > 0 {
		t.buf.Next(extra)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
