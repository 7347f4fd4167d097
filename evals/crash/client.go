package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refundledger/refundledger/adapters/mcpserver"
)

const (
	// answerTimeout is how long any one answer may take: longer than the longest
	// call that the server allows itself.
	answerTimeout = 60 * time.Second
	// exitTimeout is how long a server may take to end after its input has.
	exitTimeout = 30 * time.Second
	// maxLog is how much of the end of a server's log is kept.
	maxLog = 32 << 10
	// logTries is how often a log is searched, with logPause in between.
	logTries = 10
	logPause = 20 * time.Millisecond
	// bufferSize holds the answers that one write of the server brings.
	bufferSize = 64 << 10
)

// errEnded says that the server ended before it answered.
var errEnded = errors.New("the server ended without an answer")

// client is one server process and the calls it has not answered. Its methods
// may be called at once: calls are pipelined.
type client struct {
	cmd   *exec.Cmd
	log   tail
	ended chan struct{} // closed when the process is gone and all it wrote is read
	exit  error         // how it ended, once it has

	writing sync.Mutex // one line at a time
	stdin   io.WriteCloser

	mu         sync.Mutex
	waiting    map[int64]chan answer // by id; nil when nobody will answer any more
	ids        int64
	unanswered int // calls in flight when the process ended
}

// answer is an answer to tools/call.
type answer struct {
	structured string // the structured content, as the bytes that came
	replayed   bool
	code       string // of a fault
	retryable  bool
	message    string // of a fault or of a JSON-RPC error
	failed     bool   // a JSON-RPC error
	logged     string // what the log says about it
}

// failure is a JSON-RPC error. The id of an internal one is in the log too.
type failure struct {
	Message string
	Data    struct{ ID string }
}

// ok reports whether the call did what it was asked.
func (a answer) ok() bool { return !a.failed && a.code == "" }

func (a answer) String() string {
	switch {
	case a.failed:
		return "JSON-RPC error: " + a.message + " " + a.logged
	case a.code != "":
		return a.code + ": " + a.message
	}
	return a.structured
}

// start runs the command, which is a server, and says hello to it.
func start(ctx context.Context, cmd *exec.Cmd) (*client, error) {
	c, err := spawn(cmd)
	if err != nil {
		return nil, err
	}
	if _, err := c.request(ctx, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"crash","version":"1"}}`); err != nil {
		c.kill()
		return nil, fmt.Errorf("the server did not start: %w: %s", err, c.log.String())
	}
	return c, c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// spawn runs the command and reads what it answers.
func spawn(cmd *exec.Cmd) (*client, error) {
	c := &client{cmd: cmd, ended: make(chan struct{}), waiting: map[int64]chan answer{}}
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = &c.log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go c.listen(stdout)
	return c, nil
}

// listen reads answers until the process ends. What it had written by then was
// acknowledged, also if the process was killed since; half a line was not.
func (c *client) listen(stdout io.Reader) {
	lines := bufio.NewReaderSize(stdout, bufferSize)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		c.heard(line)
	}
	c.exit = c.cmd.Wait()
	c.mu.Lock()
	c.unanswered = len(c.waiting)
	for _, w := range c.waiting {
		close(w)
	}
	c.waiting = nil
	c.mu.Unlock()
	close(c.ended)
}

func (c *client) heard(line []byte) {
	var m struct {
		ID     int64
		Error  *failure
		Result struct {
			Content           []struct{ Text string }
			StructuredContent json.RawMessage
			IsError           bool
			Meta              map[string]any `json:"_meta"`
		}
	}
	if err := json.Unmarshal(line, &m); err != nil {
		m.Error = &failure{Message: fmt.Sprintf("not an answer: %v: %s", err, line)}
	}
	a := answer{structured: string(m.Result.StructuredContent)}
	switch content := m.Result.Content; {
	case m.Error != nil:
		a.failed, a.message, a.logged = true, m.Error.Message, c.log.line(m.Error.Data.ID)
	case m.Result.IsError:
		var refusal struct {
			Error struct {
				Code, Message string
				Retryable     bool
			}
		}
		if len(content) < 2 || json.Unmarshal([]byte(content[1].Text), &refusal) != nil {
			a.failed, a.message = true, "a fault without its code: "+string(line)
			break
		}
		a.code, a.message, a.retryable = refusal.Error.Code, refusal.Error.Message, refusal.Error.Retryable
	case len(content) > 0 && content[0].Text != a.structured:
		a.failed, a.message = true, "the text is not the structured content: "+string(line)
	}
	a.replayed = m.Result.Meta[mcpserver.MetaReplayed] == true
	c.mu.Lock()
	w := c.waiting[m.ID]
	delete(c.waiting, m.ID)
	c.mu.Unlock()
	if w != nil {
		w <- a
	}
}

// request sends a request and waits for its answer.
func (c *client) request(ctx context.Context, method, params string) (answer, error) {
	w := make(chan answer, 1)
	c.mu.Lock()
	if c.waiting == nil {
		c.mu.Unlock()
		return answer{}, errEnded
	}
	c.ids++
	id := c.ids
	c.waiting[id] = w
	c.mu.Unlock()
	// If it can not be written, the process has ended, and the reader says so.
	_ = c.send(`{"jsonrpc":"2.0","id":` + strconv.FormatInt(id, 10) + `,"method":"` + method + `","params":` + params + `}`)
	late := time.NewTimer(answerTimeout)
	defer late.Stop()
	select {
	case a, answered := <-w:
		if !answered {
			return answer{}, errEnded
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	case <-late.C:
		return answer{}, fmt.Errorf("no answer within %s to %s", answerTimeout, params)
	}
}

func (c *client) send(line string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := io.WriteString(c.stdin, line+"\n")
	return err
}

// call calls a tool; key is the operation key, "" for a tool that changes nothing.
func (c *client) call(ctx context.Context, tool, arguments, key string) (answer, error) {
	meta := ""
	if key != "" {
		meta = `,"_meta":{"` + mcpserver.MetaKey + `":"` + key + `"}`
	}
	return c.request(ctx, "tools/call", `{"name":"`+tool+`","arguments":`+arguments+meta+`}`)
}

// ask calls a tool that must answer, and reads the answer into out.
func (c *client) ask(ctx context.Context, tool, arguments string, out any) error {
	a, err := c.call(ctx, tool, arguments, "")
	if err == nil && !a.ok() {
		err = errors.New(a.String())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", tool, arguments, err)
	}
	return json.Unmarshal([]byte(a.structured), out)
}

// kill ends the process at once, as a crash does.
func (c *client) kill() {
	_ = c.cmd.Process.Kill() // it may have ended by itself
	<-c.ended
}

// close ends the input; the server has to answer what it accepted and to exit
// with 0.
func (c *client) close() error {
	c.writing.Lock()
	_ = c.stdin.Close()
	c.writing.Unlock()
	select {
	case <-c.ended:
	case <-time.After(exitTimeout):
		c.kill()
		return fmt.Errorf("the server did not end within %s of its input", exitTimeout)
	}
	if c.exit != nil {
		return fmt.Errorf("the server ended with %w: %s", c.exit, c.log.String())
	}
	return nil
}

// running reports whether the process has not ended.
func (c *client) running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// tail keeps the last of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxLog; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// line returns the line with that text in it. A server logs behind its answers,
// so it is waited for.
func (t *tail) line(text string) string {
	if text == "" {
		return ""
	}
	for range logTries {
		for line := range strings.SplitSeq(t.String(), "\n") {
			if strings.Contains(line, text) {
				return line
			}
		}
		time.Sleep(logPause)
	}
	return ""
}
