package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
)

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// callFunc is a toolCaller made of one function.
type callFunc func(ctx context.Context, c toolCall) ([]byte, *jsonrpc.Error)

func (f callFunc) Call(ctx context.Context, c toolCall) ([]byte, *jsonrpc.Error) { return f(ctx, c) }
func (f callFunc) Reads(tool string) bool                                        { return tool == "read" }

// echo answers every call with the name of its tool.
func echo(_ context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
	return append(strictjson.AppendString([]byte(`{"tool":`), c.Name), '}'), nil
}

// logLines is the log of a session, as text.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// rig is a client of a transport, and the transport.
type rig struct {
	t     testing.TB
	stdio *Stdio
	in    *io.PipeWriter
	out   chan string
	log   *logLines
	ended chan error // of the SDK's session
}

// newRig starts a session. The session is not initialized.
func newRig(t testing.TB, calls callFunc, drain time.Duration) *rig {
	return newRigTo(t, calls, drain, nil)
}

// newRigTo starts a session that writes to out.
func newRigTo(t testing.TB, calls callFunc, drain time.Duration, out io.Writer) *rig {
	t.Helper()
	inRead, inWrite := io.Pipe()
	r := &rig{t: t, in: inWrite, log: &logLines{}, ended: make(chan error, 1)}
	if out == nil {
		outRead, outWrite := io.Pipe()
		out = outWrite
		r.out = make(chan string)
		go func() {
			defer close(r.out)
			lines := bufio.NewReader(outRead)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				r.out <- strings.TrimSuffix(line, "\n")
			}
		}()
		t.Cleanup(func() {
			inWrite.Close()
			outWrite.Close()
			for range r.out {
			}
		})
	}
	t.Cleanup(func() { inRead.Close() })
	r.stdio = NewStdio(inRead, out, slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})), calls)
	r.stdio.drain = drain
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "session_tool", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "from the session"}}}, nil
		})
	server.AddTool(&mcp.Tool{Name: "broken_tool", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("secret of the inside")
		})
	session, err := server.Connect(t.Context(), r.stdio, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- session.Wait() }()
	return r
}

// noLeaks fails the test if goroutines are left when it and its cleanup are done.
func noLeaks(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		// On a busy machine the last goroutines need their time to end.
		err := goleak.Find(current)
		for since := time.Now(); err != nil && time.Since(since) < patience; {
			err = goleak.Find(current)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

const (
	initializeLine  = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	newEraMeta      = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
)

// initializedRig starts a session and does the handshake.
func initializedRig(t testing.TB, calls callFunc, drain time.Duration) *rig {
	t.Helper()
	r := newRig(t, calls, drain)
	r.send(initializeLine, initializedLine)
	r.want(`{"jsonrpc":"2.0","id":"init","result":{`)
	return r
}

func (r *rig) send(lines ...string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, strings.Join(lines, "\n")+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

// next returns the next line of the output.
func (r *rig) next() string {
	r.t.Helper()
	select {
	case line, ok := <-r.out:
		if !ok {
			r.t.Fatal("the output ended")
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["jsonrpc"] != "2.0" {
			r.t.Fatalf("no message: %s", line)
		}
		return line
	case <-time.After(patience):
		r.t.Fatalf("nothing came; the log:\n%s", r.log)
	}
	return ""
}

// want reads the next line and compares its beginning.
func (r *rig) want(prefix string) {
	r.t.Helper()
	if line := r.next(); !strings.HasPrefix(line, prefix) {
		r.t.Fatalf("got  %s\nwant %s…", line, prefix)
	}
}

// pong shows that nothing is on its way but the answer to a ping.
func (r *rig) pong() {
	r.t.Helper()
	r.send(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	r.want(`{"jsonrpc":"2.0","id":"ping","result":{}}`)
}

// logged waits until the log holds the text.
func (r *rig) logged(text string) {
	r.t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(r.log.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("the log lacks %q:\n%s", text, r.log)
		}
	}
}

// wasLogged is logged for what must be there already.
func (r *rig) wasLogged(text string) {
	r.t.Helper()
	if !strings.Contains(r.log.String(), text) {
		r.t.Errorf("the log lacks %q:\n%s", text, r.log)
	}
}

// over waits for the end of the session.
func (r *rig) over(want Ending) {
	r.t.Helper()
	done := make(chan Ending, 1)
	go func() { done <- r.stdio.Wait() }()
	select {
	case got := <-done:
		if got != want {
			r.t.Errorf("the session ended with %v, want %v; the log:\n%s", got, want, r.log)
		}
	case <-time.After(patience):
		r.t.Fatalf("the session does not end; the log:\n%s", r.log)
	}
}

func call(id, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":{"a":1}}}`, id, tool)
}

func TestStdioAnswersCallsAndLeavesTheRestToTheSession(t *testing.T) {
	noLeaks(t)
	r := newRig(t, func(_ context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
		c.Key("operation-1")
		if c.Name == "fails" {
			return nil, &jsonrpc.Error{Code: -32602, Message: "no <b>\n", Data: json.RawMessage(`{"issues":[]}`)}
		}
		return fmt.Appendf(nil, `{"name":%q,"arguments":%q,"meta":%q}`, c.Name, c.Arguments.Raw(), c.Meta.Raw()), nil
	}, drainTime)
	r.send(initializeLine)
	r.want(`{"jsonrpc":"2.0","id":"init","result":{"capabilities":{`)
	r.send(initializedLine)
	for _, tt := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, `{"jsonrpc":"2.0","id":1,"result":{"name":"x","arguments":"","meta":""}}`},
		{`{"jsonrpc":"2.0","id":"\u0031","method":"tools/call","params":{"name":"x","arguments":[1],"_meta":{"k":1}}}`, `{"jsonrpc":"2.0","id":"\u0031","result":{"name":"x","arguments":"[1]","meta":"{\"k\":1}"}}`},
		{`{"jsonrpc":"2.0","id":-9007199254740991,"method":"tools/call","params":{"name":"fails"}}`, `{"jsonrpc":"2.0","id":-9007199254740991,"error":{"code":-32602,"message":"no <b>\n","data":{"issues":[]}}}`},
		{`{"jsonrpc":"2.0","id":"\u00e9\"","method":"ping"}`, `{"jsonrpc":"2.0","id":"\u00e9\"","result":{}}`},
		{`{"jsonrpc":"2.0","id":9007199254740991,"method":"ping","params":{}}`, `{"jsonrpc":"2.0","id":9007199254740991,"result":{}}`},
		{`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":2,"result":{`},
		{`{"jsonrpc":"2.0","id":3,"method":"nope","params":{}}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found"}}`},
		{`{"jsonrpc":"2.0","id":4,"method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"Invalid Request"}}`},
		{`{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"cursor":5}}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"Invalid params"}}`},
		{`{"jsonrpc":"2.0","id":6,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":`},
		{`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"session_tool","arguments":{},` + newEraMeta + `}}`, `{"jsonrpc":"2.0","id":7,"result":{`},
	} {
		r.send(tt.line)
		r.want(tt.want)
	}
	r.in.Close()
	r.over(Drained)
	if err := <-r.ended; err != nil {
		t.Errorf("the SDK's session ended with %v", err)
	}
}

func TestStdioKeepsWhatIsInsideInside(t *testing.T) {
	r := newRig(t, echo, drainTime)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"broken_tool","arguments":{"card":"4111"},` + newEraMeta + `}}`)
	line := r.next()
	var m struct {
		Error struct {
			Code    int
			Message string
			Data    map[string]string
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Error.Code != -32603 || m.Error.Message != "Internal error" || len(m.Error.Data) != 1 || m.Error.Data["id"] == "" {
		t.Fatalf("got %s", line)
	}
	r.logged(m.Error.Data["id"])
	r.logged("secret of the inside")
	if strings.Contains(r.log.String(), "4111") {
		t.Errorf("the log holds the arguments:\n%s", r.log)
	}
}

func TestStdioGuardsTheHandshake(t *testing.T) {
	const initializeAs = `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":%s,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	const first = `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid Request: initialize first"}}`
	badParams := `{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Invalid params: `
	for _, tt := range []struct {
		name string
		send []string
		want []string
	}{
		{"a call before initialize", []string{call("1", "x")}, []string{first}},
		{"a list before initialize", []string{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`}, []string{first}},
		{"an unknown method before initialize", []string{`{"jsonrpc":"2.0","id":1,"method":"nope"}`}, []string{first}},
		{"initialized before initialize", []string{initializedLine, call("1", "x")}, []string{first}},
		{"a call right behind initialize", []string{initializeLine, call("1", "x")}, []string{`{"jsonrpc":"2.0","id":"init","result":{`, `{"jsonrpc":"2.0","id":1,"result":{"tool":"x"}}`}},
		{"a second initialize", []string{initializeLine, fmt.Sprintf(initializeAs, `"2025-11-25"`), call("1", "x")},
			[]string{`{"jsonrpc":"2.0","id":"init","result":{`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"Invalid Request: the session has begun already"}}`, `{"jsonrpc":"2.0","id":1,"result":{"tool":"x"}}`}},
		{"no params", []string{`{"jsonrpc":"2.0","id":2,"method":"initialize"}`, call("1", "x")}, []string{badParams, first}},
		{"null params", []string{`{"jsonrpc":"2.0","id":2,"method":"initialize","params":null}`, initializeLine}, []string{badParams, `{"jsonrpc":"2.0","id":"init","result":{`}},
		{"no version", []string{`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"capabilities":{}}}`}, []string{badParams}},
		{"a number for a version", []string{fmt.Sprintf(initializeAs, "5")}, []string{badParams}},
		{"null for a version", []string{fmt.Sprintf(initializeAs, "null"), initializeLine}, []string{badParams, `{"jsonrpc":"2.0","id":"init","result":{`}},
		{"params the SDK can not read", []string{`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":"4111"}}`, call("1", "x"), initializeLine},
			[]string{`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Invalid params: initialize can not be understood"}}`, first, `{"jsonrpc":"2.0","id":"init","result":{`}},
		{"a sessionless call needs no initialize", []string{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_tool","arguments":{},` + newEraMeta + `}}`}, []string{`{"jsonrpc":"2.0","id":1,"result":{`}},
		{"a sessionless call does not begin a classic session", []string{`{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{` + newEraMeta + `}}`, "", call("1", "x")}, []string{`{"jsonrpc":"2.0","id":3,"result":{`, first}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, echo, drainTime)
			for i, line := range tt.send {
				r.send(line)
				if i < len(tt.want) && line != "" && !strings.Contains(line, `"notifications/`) && !strings.Contains(tt.name, "right behind") {
					r.want(tt.want[0])
					tt.want = tt.want[1:]
				}
			}
			for _, want := range tt.want {
				r.want(want)
			}
			r.pong()
			if strings.Contains(r.log.String(), "4111") {
				t.Errorf("the log holds params:\n%s", r.log)
			}
		})
	}
	for _, tt := range []struct{ asked, want string }{
		{"2024-11-05", "2024-11-05"}, {"2025-03-26", "2025-03-26"}, {"2025-06-18", "2025-06-18"}, {"2025-11-25", "2025-11-25"},
		{"2026-07-28", "2025-11-25"}, {"1999-01-01", "2025-11-25"}, {"2099-12-31", "2025-11-25"}, {"latest", "2025-11-25"}, {"", "2025-11-25"}, {`\u0032025-06-18`, "2025-06-18"},
	} {
		r := newRig(t, echo, drainTime)
		r.send(fmt.Sprintf(initializeAs, `"`+tt.asked+`"`))
		if line := r.next(); !strings.Contains(line, `"protocolVersion":"`+tt.want+`"`) {
			t.Errorf("asked for %s: %s", tt.asked, line)
		}
		r.send(call("1", "x"))
		r.want(`{"jsonrpc":"2.0","id":1,"result":{"tool":"x"}}`)
	}
}

func TestStdioSkipsBadLinesAndGoesOn(t *testing.T) {
	r := initializedRig(t, echo, drainTime)
	for _, bad := range unreadableLines {
		r.send(bad.line)
	}
	r.send("", " ", "\t", "\r", " \t \r")
	r.pong()
	if got := strings.Count(r.log.String(), `msg="line skipped"`); got != len(unreadableLines) {
		t.Errorf("%d lines logged, want %d", got, len(unreadableLines))
	}
	if strings.Contains(r.log.String(), secret) {
		t.Errorf("the log holds what the lines hold:\n%s", r.log)
	}
	for _, bad := range refusedLines {
		r.send(bad.line)
		r.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":77,"error":{"code":%d,"message":"`, bad.code))
	}
	r.pong()
}

func TestStdioSurvivesRandomLines(t *testing.T) {
	r := initializedRig(t, echo, drainTime)
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []byte(`{}[]",:\/ 0123456789.eE+-truefalsn` + "\x00\x1f\xff\xc3\xa9\r")
	var b bytes.Buffer
	for range 10000 {
		for range random.IntN(60) {
			b.WriteByte(alphabet[random.IntN(len(alphabet))])
		}
		b.WriteByte('\n')
	}
	r.send(b.String())
	r.pong()
}

// repeated is a stream of n bytes, all of them c.
type repeated struct {
	c byte
	n int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	p = p[:min(len(p), r.n)]
	for i := range p {
		p[i] = r.c
	}
	r.n -= len(p)
	return len(p), nil
}

// heapGrowth returns by how much f made the heap grow at its highest.
func heapGrowth(f func()) int64 {
	debug.FreeOSMemory()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.HeapSys - after.HeapReleased - (before.HeapSys - before.HeapReleased))
}

// stream is a session whose input is made while it is read, so that a test can
// measure what the transport alone takes.
func stream(t *testing.T, calls callFunc, parts ...io.Reader) (*Stdio, *logLines, *countingWriter) {
	t.Helper()
	in := io.MultiReader(append([]io.Reader{strings.NewReader(initializeLine + "\n")}, parts...)...)
	log, out := &logLines{}, &countingWriter{}
	s := NewStdio(in, out, slog.New(slog.NewTextHandler(log, nil)), calls)
	if _, err := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	return s, log, out
}

// countingWriter counts lines.
type countingWriter struct{ lines atomic.Int64 }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.lines.Add(int64(bytes.Count(p, []byte("\n"))))
	return len(p), nil
}

func TestStdioTakesHostileInputInBoundedMemory(t *testing.T) {
	const allowed = 64 << 20
	line := func(c byte, n int) io.Reader {
		return io.MultiReader(&repeated{c, n}, strings.NewReader("\n"))
	}
	// bigCall is a call whose line has n bytes.
	bigCall := func(id, n int) io.Reader {
		head := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x","arguments":"`, id)
		tail := `"}}`
		return io.MultiReader(strings.NewReader(head), &repeated{'a', n - len(head) - len(tail)}, strings.NewReader(tail+"\n"))
	}
	var smallCalls, bigCalls []io.Reader
	for i := range maxInFlight {
		smallCalls = append(smallCalls, strings.NewReader(call(fmt.Sprint(i), "x")+"\n"))
	}
	const big = 6
	for i := range big {
		bigCalls = append(bigCalls, bigCall(i, maxLine))
	}
	for _, tt := range []struct {
		name    string
		in      io.Reader
		answers int64
		tooLong int
		skipped int
	}{
		{"a line of 64 MB", line('x', 64<<20), 0, 1, 1},
		{"64 MB of brackets", line('[', 64<<20), 0, 1, 1},
		{"the longest line", line('[', maxLine), 0, 0, 1},
		{"one byte more", line('[', maxLine+1), 0, 1, 1},
		{"the longest call", bigCall(1, maxLine), 1, 0, 0},
		{"a call one byte longer", bigCall(1, maxLine+1), 0, 1, 1},
		{"a call of two buffers", bigCall(1, 2*readSize), 1, 0, 0},
		{"a call of one buffer", bigCall(1, readSize-1), 1, 0, 0},
		{"64 MB of white space", line(' ', 64<<20), 0, 1, 1},
		{"4 MB of white space", line(' ', maxLine), 0, 0, 0},
		{"8 MB of blank lines", &repeated{'\n', 8 << 20}, 0, 0, 0},
		{"10,000 bad lines", strings.NewReader(strings.Repeat("garbage\n", 10000)), 0, 0, 10000},
		{"as many calls as may run", io.MultiReader(smallCalls...), maxInFlight, 0, 0},
		{"more long calls than may run", io.MultiReader(bigCalls...), big, 0, 0},
		{"no end of the line", &repeated{'x', 8 << 20}, 0, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log *logLines
			var out *countingWriter
			growth := heapGrowth(func() {
				var s *Stdio
				s, log, out = stream(t, func(ctx context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
					time.Sleep(50 * time.Millisecond) // so that they are in flight together
					return echo(ctx, c)
				}, tt.in)
				if how := s.Wait(); how != Drained {
					t.Errorf("the session ended with %v", how)
				}
			})
			t.Logf("the heap grew by %d MiB", growth>>20)
			if growth > allowed {
				t.Errorf("the heap grew by %d MiB", growth>>20)
			}
			if got := out.lines.Load(); got != tt.answers+1 {
				t.Errorf("%d answers, want %d", got-1, tt.answers)
			}
			if got := strings.Count(log.String(), "line too long"); got != tt.tooLong {
				t.Errorf("%d lines were too long, want %d", got, tt.tooLong)
			}
			if got := strings.Count(log.String(), "line skipped"); got != tt.skipped {
				t.Errorf("%d lines skipped, want %d", got, tt.skipped)
			}
		})
	}
}

func TestStdioBoundsTheBytesInFlight(t *testing.T) {
	b := blocker{make(chan struct{})}
	var parts []io.Reader
	const calls, size = 6, maxLine - 100
	for i := range calls {
		parts = append(parts, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x","arguments":"`, i)), &repeated{'a', size}, strings.NewReader("\"}}\n"))
	}
	s, _, out := stream(t, b.call, parts...)
	inFlight := func() (requests, bytes int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.inFlight, s.bytes
	}
	for n, _ := inFlight(); n < maxInFlightBytes/maxLine; n, _ = inFlight() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	if n, bytes := inFlight(); n != maxInFlightBytes/maxLine || bytes > maxInFlightBytes {
		t.Errorf("%d requests of %d bytes in flight", n, bytes)
	}
	close(b.open)
	if how := s.Wait(); how != Drained || out.lines.Load() != calls+1 {
		t.Errorf("the session ended with %v after %d answers", how, out.lines.Load()-1)
	}
}

func TestStdioTakesLinesAsTheyCome(t *testing.T) {
	r := initializedRig(t, echo, drainTime)
	for _, c := range []byte(call("1", "x") + "\r\n") {
		if _, err := r.in.Write([]byte{c}); err != nil {
			t.Fatal(err)
		}
	}
	r.want(`{"jsonrpc":"2.0","id":1,"result":{"tool":"x"}}`)
	r.send("\r\n" + call("2", "y") + "\r")
	r.want(`{"jsonrpc":"2.0","id":2,"result":{"tool":"y"}}`)
	r.send(" \t" + call("3", "z") + " \t")
	r.want(`{"jsonrpc":"2.0","id":3,"result":{"tool":"z"}}`)
}

func TestStdioReadsTheLastLineWithoutABreak(t *testing.T) {
	r := initializedRig(t, echo, drainTime)
	io.WriteString(r.in, call("1", "x"))
	r.in.Close()
	r.want(`{"jsonrpc":"2.0","id":1,"result":{"tool":"x"}}`)
	r.over(Drained)

	r = initializedRig(t, echo, drainTime)
	io.WriteString(r.in, call("1", "x")[:30])
	r.in.Close()
	r.over(Drained)
	r.wasLogged("end of the document")
}

// blocker holds calls back until it is opened.
type blocker struct{ open chan struct{} }

func (b blocker) call(ctx context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
	c.Key("op-" + c.Name)
	<-b.open
	return echo(ctx, c)
}

func TestStdioAnswersAllItAcceptedAtTheEnd(t *testing.T) {
	const calls = 500
	for name, end := range map[string]func(*rig){
		"end of input": func(r *rig) { r.in.Close() },
		"signal":       func(r *rig) { r.stdio.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			b := blocker{make(chan struct{})}
			r := initializedRig(t, b.call, drainTime)
			for i := range calls {
				r.send(call(fmt.Sprint(i), "x"))
			}
			r.pong()
			end(r)
			time.Sleep(10 * time.Millisecond)
			close(b.open)
			seen := map[string]bool{}
			for range calls {
				seen[r.next()] = true
			}
			if len(seen) != calls {
				t.Errorf("%d answers, want %d", len(seen), calls)
			}
			r.over(Drained)
			if err := <-r.ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStdioDropsAnIncompleteLineAtASignal(t *testing.T) {
	r := initializedRig(t, echo, drainTime)
	io.WriteString(r.in, call("1", "x")[:40])
	for r.stdio.lines.partial.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	r.stdio.Stop() // the read of the input is still blocked
	r.over(Drained)
	r.wasLogged(`msg="incomplete line dropped" bytes=40`)
}

func TestStdioGivesUpInTheEnd(t *testing.T) {
	b := blocker{make(chan struct{})}
	defer close(b.open)
	r := initializedRig(t, b.call, 50*time.Millisecond)
	r.send(call("1", "a"), call("2", "b"))
	r.pong()
	for !strings.Contains(keys(r.stdio), "op-a") || !strings.Contains(keys(r.stdio), "op-b") {
		time.Sleep(time.Millisecond)
	}
	r.in.Close()
	r.over(GaveUp)
	r.wasLogged(`level=ERROR msg="operation not answered" operation=op-a`)
	r.wasLogged(`level=ERROR msg="operation not answered" operation=op-b`)
	r.wasLogged("unanswered=2")
	<-r.ended
}

// keys lists the operation keys that the transport knows.
func keys(s *Stdio) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, r := range s.ids {
		b.WriteString(r.operation + " ")
	}
	return b.String()
}

// stuckWriter blocks until it is opened.
type stuckWriter struct {
	open    chan struct{}
	entered chan struct{}
	once    sync.Once
	n       atomic.Int64
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.entered) })
	<-w.open
	w.n.Add(int64(bytes.Count(p, []byte("\n"))))
	return len(p), nil
}

func TestStdioStopsReadingWhenNobodyReadsTheAnswers(t *testing.T) {
	w := &stuckWriter{open: make(chan struct{}), entered: make(chan struct{})}
	r := newRigTo(t, echo, drainTime, w)
	r.send(initializeLine, initializedLine)
	<-w.entered
	written := make(chan int)
	go func() {
		n := 0
		for i := range 3 * maxInFlight {
			r.send(call(fmt.Sprint(i), "x"))
			n++
		}
		r.in.Close()
		written <- n
	}()
	inFlight := func() (n, ids int) {
		r.stdio.mu.Lock()
		defer r.stdio.mu.Unlock()
		return r.stdio.inFlight, len(r.stdio.ids)
	}
	for n, _ := inFlight(); n < maxInFlight; n, _ = inFlight() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	if n, _ := inFlight(); n != maxInFlight {
		t.Errorf("%d requests in flight, want %d", n, maxInFlight)
	}
	close(w.open)
	if n := <-written; n != 3*maxInFlight {
		t.Errorf("%d calls sent", n)
	}
	r.over(Drained)
	if got := w.n.Load(); got != 3*maxInFlight+1 {
		t.Errorf("%d lines written, want %d", got, 3*maxInFlight+1)
	}
}

func TestStdioGivesUpOnAStuckOutput(t *testing.T) {
	w := &stuckWriter{open: make(chan struct{}), entered: make(chan struct{})}
	defer close(w.open)
	r := newRigTo(t, func(ctx context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
		c.Key("op-" + c.Name)
		return echo(ctx, c)
	}, 50*time.Millisecond, w)
	r.send(initializeLine)
	<-w.entered
	r.send(call("1", "a"), call("2", "b"))
	for !strings.Contains(keys(r.stdio), "op-a") || !strings.Contains(keys(r.stdio), "op-b") {
		time.Sleep(time.Millisecond)
	}
	r.stdio.Stop()
	r.over(GaveUp)
	r.wasLogged("operation=op-a")
	r.wasLogged("operation=op-b")
	r.wasLogged("unanswered=3")
	r.in.Close()
	<-r.ended
}

func TestStdioAnIDIsFreeAsSoonAsItsAnswerIsRead(t *testing.T) {
	r := initializedRig(t, echo, drainTime)
	for range 2000 {
		r.send(call("1", "x"))
		r.want(`{"jsonrpc":"2.0","id":1,"result":{"tool":"x"}}`)
	}
	for range 200 {
		r.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		r.want(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	}
}

func TestStdioAnIDInFlightIsNotTakenTwice(t *testing.T) {
	b := blocker{make(chan struct{})}
	var calls atomic.Int64
	r := initializedRig(t, func(ctx context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
		calls.Add(1)
		return b.call(ctx, c)
	}, drainTime)
	r.send(call("1", "a"), call(`"1"`, "b"), call("1", "c"), call(`"\u0031"`, "d"),
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,                                         // another method, the same id
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`,                       // would be refused
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"},"params":{}}`) // would be refused
	r.pong()
	close(b.open)
	got := r.next() + r.next()
	for _, want := range []string{`{"jsonrpc":"2.0","id":1,"result":{"tool":"a"}}`, `{"jsonrpc":"2.0","id":"1","result":{"tool":"b"}}`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	r.pong()
	if n := strings.Count(r.log.String(), "its id is in flight"); n != 5 || calls.Load() != 2 {
		t.Errorf("%d requests logged as duplicates, want 5; %d calls, want 2", n, calls.Load())
	}
}

func TestStdioCancelsCalls(t *testing.T) {
	r := initializedRig(t, func(ctx context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
		<-ctx.Done()
		return []byte(`{"cancelled":true}`), nil
	}, drainTime)
	r.send(call("1", "a"), call(`"1"`, "b"),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	r.want(`{"jsonrpc":"2.0","id":1,"result":{"cancelled":true}}`)
	r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345,"reason":"none"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	r.pong()
	r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0031","reason":"none"}}`)
	r.want(`{"jsonrpc":"2.0","id":"1","result":{"cancelled":true}}`)
}

func TestStdioNotificationsDoNothing(t *testing.T) {
	var calls atomic.Int64
	r := initializedRig(t, func(ctx context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
		calls.Add(1)
		return echo(ctx, c)
	}, drainTime)
	r.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x","arguments":{}}}`,
		`{"jsonrpc":"2.0","method":"ping"}`, `{"jsonrpc":"2.0","method":"tools/list","params":{}}`, `{"jsonrpc":"2.0","method":"notifications/does-not-exist"}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`, initializedLine,
		`{"jsonrpc":"2.0","id":55,"result":{}}`, `{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"no"}}`)
	r.pong()
	if calls.Load() != 0 {
		t.Error("a notification called a tool")
	}
}

func TestStdioEndsThoughAListenerWaits(t *testing.T) {
	listen := `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + newEraMeta + `}}`
	for name, end := range map[string]func(*rig){
		"end of input": func(r *rig) { r.in.Close() },
		"signal":       func(r *rig) { r.stdio.Stop() },
		"cancelled": func(r *rig) {
			r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}`)
			r.in.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, echo, drainTime)
			r.send(listen)
			r.want(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"`)
			end(r)
			r.want(`{"jsonrpc":"2.0","id":"l","result":{`)
			r.over(Drained)
			if err := <-r.ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		r := newRig(t, echo, drainTime)
		r.send(listen)
		r.in.Close()
		for !strings.HasPrefix(r.next(), `{"jsonrpc":"2.0","id":"l",`) {
		}
		r.over(Drained)
	})
}

// brokenWriter takes some lines and then fails.
type brokenWriter struct {
	mu    sync.Mutex
	lines int
}

var errClosedOutput = errors.New("the output is closed")

func (w *brokenWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lines -= bytes.Count(p, []byte("\n")); w.lines < 0 {
		return 0, errClosedOutput
	}
	return len(p), nil
}

func TestStdioFinishesWhatRunsWhenTheOutputIsClosed(t *testing.T) {
	noLeaks(t)
	b := blocker{make(chan struct{})}
	finished := atomic.Bool{}
	r := newRigTo(t, func(ctx context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
		if c.Name == "slow" {
			defer finished.Store(true)
			return b.call(ctx, c)
		}
		c.Key("op-quick")
		return echo(ctx, c)
	}, drainTime, &brokenWriter{lines: 1})
	r.send(initializeLine, call("1", "slow"), call("2", "quick"))
	r.logged("operation=op-quick")
	go io.WriteString(r.in, call("3", "late")+"\n") // nobody may read it any more
	select {
	case <-r.stdio.over:
		t.Error("the session ended while a call ran")
	case <-time.After(20 * time.Millisecond):
	}
	close(b.open)
	r.over(OutputBroken)
	r.wasLogged("operation=op-slow")
	r.wasLogged("the output is closed")
	if !finished.Load() {
		t.Error("the call did not finish")
	}
	if strings.Contains(r.log.String(), "late") {
		t.Error("a call was accepted after the output broke")
	}
	r.in.Close()
	<-r.ended
}

func TestStdioLogsWhatItAccepts(t *testing.T) {
	r := initializedRig(t, echo, drainTime)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x\nFORGED","arguments":{"card":"4111"}}}`)
	r.next()
	r.send(`{"jsonrpc":"2.0","id":2,"method":"` + strings.Repeat("m", 1000) + `"}`)
	r.next()
	r.logged(`level=DEBUG msg=accepted method=tools/call tool="x\nFORGED"`)
	r.logged(`level=DEBUG msg=accepted method=` + strings.Repeat("m", maxLogged) + "…\n")
	if strings.Contains(r.log.String(), "4111") {
		t.Errorf("the log holds arguments:\n%s", r.log)
	}
}

func TestStdioEndsBeforeItBegan(t *testing.T) {
	noLeaks(t)
	r := newRig(t, echo, drainTime)
	r.in.Close()
	r.over(Drained)
	<-r.ended
	if r.log.String() != "" {
		t.Errorf("the log: %s", r.log)
	}
}

// Calls, pings, cancellations and bad lines from several writers at once: every
// request is answered, once.
func TestStdioUnderLoad(t *testing.T) {
	const writers, each = 4, 1000
	var calls atomic.Int64
	r := initializedRig(t, func(ctx context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
		calls.Add(1)
		c.Key("k")
		if calls.Load()%10 == 0 {
			runtime.Gosched()
		}
		return echo(ctx, c)
	}, drainTime)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d", w*each+i)
				io.WriteString(r.in, call(id, "x")+"\n"+`{"jsonrpc":"2.0","id":"p`+id+`","method":"ping"}`+"\ngarbage\n"+
					`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`+"\n"+
					`{"jsonrpc":"2.0","id":"d`+id+`","id":1,"method":"ping"}`+"\n"+`{"jsonrpc":"2.0","id":"r`+id+`","method":"ping","method":"ping"}`+"\n")
			}
		})
	}
	go func() {
		writing.Wait()
		r.in.Close()
	}()
	seen := map[string]bool{}
	for range 3 * writers * each {
		line := r.next()
		if seen[line] {
			t.Fatalf("twice: %s", line)
		}
		seen[line] = true
	}
	r.over(Drained)
	if calls.Load() != writers*each {
		t.Errorf("%d calls, want %d", calls.Load(), writers*each)
	}
}

func BenchmarkStdioCall(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","id":1234567,"method":"tools/call","params":{"name":"trigger_refund","arguments":{"customer_id":"CUST-00001","amount":10.50,"reason":"Item arrived damaged, the customer sent photos"},"_meta":{"progressToken":"t-1","refundledger.dev/operation-key":"k-0123456789"}}}` + "\n")
	answer := []byte(`{"content":[{"type":"text","text":"{\"refundId\":\"r-1\",\"amount\":10.5}"}],"structuredContent":{"refundId":"r-1","amount":10.5}}`)
	in := &callStream{line: line, left: b.N}
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelInfo}))
	s := NewStdio(io.MultiReader(strings.NewReader(initializeLine+"\n"), in), io.Discard, log, callFunc(func(_ context.Context, c toolCall) ([]byte, *jsonrpc.Error) {
		c.Key("k")
		return answer, nil
	}))
	b.ReportAllocs()
	session, err := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(b.Context(), s, nil)
	if err != nil {
		b.Fatal(err)
	}
	s.Wait()
	session.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// callStream is a client that sends the same call again and again, each time
// under the next id.
type callStream struct {
	line []byte
	left int
	id   int
	rest []byte
}

func (s *callStream) Read(p []byte) (int, error) {
	if s.left == 0 && len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	for s.left > 0 && n < len(p) {
		s.left--
		s.id++
		copy(s.line[len(`{"jsonrpc":"2.0","id":`):], fmt.Appendf(nil, "%07d", 1000000+s.id%1000000))
		m := copy(p[n:], s.line)
		n += m
		s.rest = append(s.rest[:0:0], s.line[m:]...)
	}
	return n, nil
}
