package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/mcpserver"
	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
	"github.com/refundledger/refundledger/cmd/internal/store"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// The tests run the server as a process of its own: this test binary, which is
// the server when childMode is set.
const (
	childMode = "REFUND_MCP_TEST_CHILD"
	// gateFile names a file: refunds wait in the store until it exists.
	gateFile = "REFUND_MCP_TEST_GATE"
	// chatty makes a dependency print where it must not.
	chatty = "REFUND_MCP_TEST_CHATTY"
)

// captured is what a careless dependency would keep: os.Stdout as it was before
// main had a chance to set it aside.
var captured = os.Stdout

func TestMain(m *testing.M) {
	if os.Getenv(childMode) == "" {
		os.Exit(postgrestest.Main(m))
	}
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr,
		func(ctx context.Context, c config.Server, log *slog.Logger) (store.Store, error) {
			s, err := openStore(ctx, c, log)
			return testStore{s}, err
		}))
}

// testStore is the real store behind a gate, and it prints where it must not.
type testStore struct{ store.Store }

func (s testStore) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	if os.Getenv(chatty) != "" {
		fmt.Println("a dependency prints")
		fmt.Fprintln(captured, "a dependency prints to the stdout it kept")
		_, _ = syscall.Write(1, []byte("a dependency writes to descriptor 1\n"))
	}
	if gate := os.Getenv(gateFile); gate != "" && cmd.Name() == refunds.TriggerName {
		for {
			if _, err := os.Stat(gate); err == nil {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	return s.Store.Do(ctx, op, cmd)
}

// server is a running child.
type server struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File // the reading end; nil once collected
	logged *lockedBuffer
	hold   atomic.Bool // stderr is not read any more
	lines  *bufio.Reader
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs the server with more environment and says hello to it.
func start(t *testing.T, environ ...string) *server {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), childMode + "=1"}, environ...) // nothing of who runs the tests
	pipe := func() (*os.File, *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{inR, outW, errW} {
		f.Close()
	}
	s := &server{t: t, cmd: cmd, stdin: inW, stdout: outR, stderr: errR, logged: &lockedBuffer{}, lines: bufio.NewReaderSize(outR, 1<<20)}
	go func() {
		b := make([]byte, 32<<10)
		for !s.hold.Load() {
			n, err := errR.Read(b)
			s.logged.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		for _, f := range []*os.File{inW, outR, errR} {
			f.Close()
		}
	})
	s.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	s.answer("hello")
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *server) send(lines ...string) {
	s.t.Helper()
	if _, err := s.stdin.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      any             `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// next returns the next line of stdout, which must be a message, or io.EOF.
func (s *server) next() (message, error) {
	s.t.Helper()
	s.stdout.SetReadDeadline(time.Now().Add(30 * time.Second))
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		return message{}, err
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" {
		s.t.Fatalf("stdout carries %q", line)
	}
	return m, nil
}

func (s *server) answer(id any) message {
	s.t.Helper()
	m, err := s.next()
	if err != nil {
		s.t.Fatalf("no answer for %v: %v\n%s", id, err, s.logged)
	}
	if m.ID != id {
		s.t.Fatalf("an answer for %v, not %v", m.ID, id)
	}
	return m
}

// exit waits for the end of the process and returns its code.
func (s *server) exit(within time.Duration) int {
	s.t.Helper()
	done := make(chan struct{})
	go func() { s.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(within):
		s.t.Fatalf("the process does not end\n%s", s.logged)
	}
	return s.cmd.ProcessState.ExitCode()
}

func (s *server) waitForLog(text string, count int) {
	s.t.Helper()
	for range 3000 {
		if strings.Count(s.logged.String(), text) >= count {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.t.Fatalf("%q is logged %d times, not %d", text, strings.Count(s.logged.String(), text), count)
}

func refund(id int, amount string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"trigger_refund","arguments":{"customer_id":"CUST-00001","amount":%s,"reason":"Item arrived damaged"},"_meta":{"refundledger.dev/operation-key":"key-%d"}}}`, id, amount, id)
}

func ping(id string) string { return `{"jsonrpc":"2.0","id":"` + id + `","method":"ping"}` }

// processed counts the answers until the end of stdout; each must be a refund.
func (s *server) processed() int {
	s.t.Helper()
	n, seen := 0, map[any]bool{}
	for {
		m, err := s.next()
		if err == io.EOF {
			return n
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if seen[m.ID] || !bytes.Contains(m.Result, []byte(`"status":"processed"`)) {
			s.t.Fatalf("answer for %v: %s %s", m.ID, m.Result, m.Error)
		}
		seen[m.ID] = true
		n++
	}
}

func TestOnlyTheProtocolIsOnStdout(t *testing.T) {
	s := start(t, "LOG_LEVEL=debug", chatty+"=1")
	s.send("garbage", refund(1, "1"), ping("p"))
	for range 2 {
		if _, err := s.next(); err != nil {
			t.Fatal(err)
		}
	}
	s.stdin.Close()
	if _, err := s.next(); err != io.EOF {
		t.Fatalf("after the end: %v", err)
	}
	if code := s.exit(10 * time.Second); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, text := range []string{"a dependency prints\n", "a dependency prints to the stdout it kept\n", "a dependency writes to descriptor 1\n"} {
		if !strings.Contains(s.logged.String(), text) {
			t.Errorf("stderr lacks %q", text)
		}
	}
}

func TestWhatWasAcceptedIsAnswered(t *testing.T) {
	for _, end := range []struct {
		name  string
		calls int
		end   func(*server)
	}{
		{"at the end of input", 500, func(s *server) { s.stdin.Close() }},
		{"at SIGTERM", 100, func(s *server) { s.cmd.Process.Signal(syscall.SIGTERM) }},
		{"at SIGINT", 100, func(s *server) { s.cmd.Process.Signal(syscall.SIGINT) }},
	} {
		t.Run(end.name, func(t *testing.T) {
			gate := t.TempDir() + "/open"
			s := start(t, "LOG_LEVEL=debug", gateFile+"="+gate)
			for id := range end.calls {
				s.send(refund(id, "0.01"))
			}
			s.waitForLog("trigger_refund", end.calls) // each is accepted, none is done
			end.end(s)
			time.Sleep(100 * time.Millisecond)
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if n := s.processed(); n != end.calls {
				t.Errorf("%d answers for %d calls", n, end.calls)
			}
			if code := s.exit(10 * time.Second); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestAStderrThatNobodyReadsStopsNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*server)
	}{
		{"closed", func(s *server) { s.stderr.Close() }},
		{"open and full", func(s *server) { s.hold.Store(true) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, "LOG_LEVEL=debug")
			c.do(s)
			for id := range 300 {
				s.send(refund(id, "0.01"))
			}
			s.stdin.Close()
			if n := s.processed(); n != 300 {
				t.Errorf("%d answers for 300 calls", n)
			}
			if code := s.exit(10 * time.Second); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestAnUnwritableStdoutIsTheEnd(t *testing.T) {
	gate := t.TempDir() + "/open"
	s := start(t, "LOG_LEVEL=debug", gateFile+"="+gate)
	const calls = 20
	for id := range calls {
		s.send(refund(id, "0.01"))
	}
	s.waitForLog("trigger_refund", calls)
	s.stdout.Close()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := s.exit(20 * time.Second); code != 1 {
		t.Errorf("exit code %d, not 1", code)
	}
	// The refunds were made and nobody could be told: the log names their keys.
	log := s.logged.String()
	for id := range calls {
		if !strings.Contains(log, fmt.Sprintf(`"msg":"operation not answered","operation":"key-%d"`, id)) {
			t.Errorf("the log does not name key-%d", id)
		}
	}
}

func TestHostileInputCostsLittleMemory(t *testing.T) {
	s := start(t, "LOG_LEVEL=error")
	s.send(ping("warm"))
	s.answer("warm")
	before := s.resident()
	rng := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for range 10_000 {
		line := make([]byte, rng.IntN(300))
		for i := range line {
			if line[i] = byte(rng.UintN(256)); line[i] == '\n' {
				line[i] = ' '
			}
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	s.send(b.String(), ping("random"))
	s.answer("random")
	long := bytes.Repeat([]byte("x"), 1<<20)
	for range 64 {
		if _, err := s.stdin.Write(long); err != nil {
			t.Fatal(err)
		}
	}
	s.send("", ping("long"))
	s.answer("long")
	s.send(strings.Repeat("[", 4<<20-1), ping("deep"))
	s.answer("deep")
	limit := 64 << 20
	if raced {
		limit *= 4
	}
	if rise := s.resident() - before; rise > limit {
		t.Errorf("the resident set rose by %d MiB", rise>>20)
	}
}

// resident is the largest resident set so far, in bytes.
func (s *server) resident() int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Skip("no /proc on this system: the resident set can not be read")
	}
	for line := range strings.Lines(string(b)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	s.t.Fatal("no VmHWM")
	return 0
}

// What a call did is at the collector when the process has ended, under the
// span that the host named; with a collector that is not there, all goes on.
func TestTraces(t *testing.T) {
	bodies := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- string(b)
	}))
	defer collector.Close()
	for _, endpoint := range []string{collector.URL, "http://127.0.0.1:1"} {
		s := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT=500")
		s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"trigger_refund","arguments":{"customer_id":"CUST-00001","amount":10,"reason":"Item arrived damaged"},` +
			`"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}`)
		if m := s.answer(1.0); m.Error != nil {
			t.Errorf("%s: %s", endpoint, m.Error)
		}
		s.stdin.Close()
		if code := s.exit(30 * time.Second); code != 0 {
			t.Errorf("%s: exit code %d\n%s", endpoint, code, s.logged)
		}
	}
	close(bodies)
	var all strings.Builder
	for b := range bodies {
		all.WriteString(b)
	}
	for _, want := range []string{`"traceId":"0af7651916cd43dd8448eb211c80319c"`, `"parentSpanId":"b7ad6b7169203331","name":"tools/call trigger_refund"`, `"name":"ledger refunds.trigger"`} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the collector was not told %s: %s", want, &all)
		}
	}
	if strings.Contains(all.String(), "CUST-") || strings.Contains(all.String(), "damaged") {
		t.Errorf("the collector was told too much: %s", &all)
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		args    []string
		environ []string
		code    int
		stdout  string
		stderr  string
	}{
		{[]string{"--version"}, nil, 0, "refund-mcp dev", ""},
		{[]string{"--help"}, nil, 0, "LEDGER_BACKEND", ""},
		{[]string{"config"}, []string{"TOOLSETS=all"}, 0, "TOOLSETS all", ""},
		{[]string{"serve"}, nil, 2, "", `unknown argument "serve"`},
		{[]string{"config"}, []string{"TOOLSETS=refund", "READ_ONLY=yes", "CALL_TIMEOUT=5", "LEDGER_BACKEND=disk"}, 1, "", `TOOLSETS knows ` + strings.Join(mcpserver.Toolsets(), ", ") + ` and all, not "refund"
READ_ONLY must be true or false, not "yes"
CALL_TIMEOUT must be a duration from 100ms to 10m0s such as 30s, not "5"
LEDGER_BACKEND must be memory or sqlite or postgres or rest, not "disk"`},
		{[]string{}, []string{"PRINCIPAL_SCOPES=invoice:override"}, 1, "", "can not be held by a principal of kind agent"},
		{[]string{"config"}, []string{"LEDGER_DEFAULT_CURRENCY=KWD"}, 0, "LEDGER_DEFAULT_CURRENCY KWD", ""},
		{[]string{}, []string{"LEDGER_DEFAULT_CURRENCY=usd"}, 1, "", "LEDGER_DEFAULT_CURRENCY is not valid: "},
		{[]string{}, []string{"MCP_TRANSPORT=carrier"}, 1, "", "MCP_TRANSPORT must be stdio or http"},
	} {
		t.Run(strings.Join(append(c.environ, c.args...), " "), func(t *testing.T) {
			cmd := exec.Command(os.Args[0], c.args...)
			cmd.Env = append([]string{childMode + "=1"}, c.environ...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, not %d: %v", code, c.code, err)
			}
			if words := strings.Join(strings.Fields(stdout.String()), " "); !strings.Contains(words, c.stdout) || c.stdout == "" && stdout.Len() > 0 {
				t.Errorf("stdout is %q", &stdout)
			}
			if !strings.Contains(stderr.String(), c.stderr) || c.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr is %q", &stderr)
			}
		})
	}
}
