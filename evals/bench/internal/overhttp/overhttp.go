// Package overhttp starts an MCP server that is reached over HTTP and times
// it. Its clients keep a connection each, write requests that they made before
// and read answers with as little work as they can, so that they cost the same
// for every server and leave it the machine.
package overhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/refundledger/refundledger/evals/bench/internal/load"
	"github.com/refundledger/refundledger/evals/bench/internal/side"
)

const (
	// warmCalls are made before the clock starts.
	warmCalls = 1000
	// startTime is how long a server may take to listen, exitTime to end, and
	// answerTime to answer.
	startTime  = 20 * time.Second
	exitTime   = 30 * time.Second
	answerTime = 30 * time.Second
	// fullRead is of how many answers one is read in full.
	fullRead = 64
)

// Command is how to start a server, which listens on what MCP_HTTP_ADDR says.
type Command struct {
	Path string
	Env  []string // beside PATH, HOME and MCP_HTTP_ADDR
}

// Call is a request to repeat. Body makes the n-th one; its id is n.
type Call struct {
	Headers []string // whole lines, without their ends
	Body    func(n int) string
	// Right says whether the body of an answer is what the request was for. It
	// is asked of each fullRead-th; of the others, whether they hold Holds.
	Right func(n int, answer []byte) error
	Holds string
}

// Process is a server that runs.
type Process struct {
	Addr   string
	cmd    *exec.Cmd
	stderr bytes.Buffer // to be read when the process has ended
	ended  chan error
}

// Start starts the server and waits until it listens.
func (c Command) Start(ctx context.Context) (*Process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		return nil, err
	}
	p := &Process{Addr: l.Addr().String(), cmd: exec.CommandContext(ctx, c.Path), ended: make(chan error, 1)}
	if err := l.Close(); err != nil {
		return nil, err
	}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "MCP_HTTP_ADDR=" + p.Addr}, c.Env...)
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.ended <- p.cmd.Wait() }()
	for deadline := time.Now().Add(startTime); ; time.Sleep(2 * time.Millisecond) {
		conn, err := net.Dial("tcp", p.Addr)
		if err == nil {
			return p, conn.Close()
		}
		select {
		case err := <-p.ended:
			return nil, fmt.Errorf("%s ended at once: %v; its stderr: %s", c.Path, err, &p.stderr)
		default:
		}
		if time.Now().After(deadline) {
			return nil, p.fail(fmt.Errorf("%s does not listen: %w", c.Path, err))
		}
	}
}

// Stop ends the server as an operator does.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return p.fail(err)
	}
	select {
	case err := <-p.ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 {
			return nil // a floor that knows nothing of signals
		}
		return err
	case <-time.After(exitTime):
		return p.fail(errors.New("the server does not end"))
	}
}

// fail ends the server and says what it last logged.
func (p *Process) fail(err error) error {
	_ = p.cmd.Process.Kill()
	<-p.ended
	log := p.stderr.Bytes()
	return fmt.Errorf("%w; the server's stderr: %s", err, log[max(0, len(log)-4<<10):])
}

// Measure starts a server and measures calls, of callers that each wait for
// their answer before they ask again: how many are answered in a second, over n
// calls or the time, whichever ends first. check is asked at the end how many
// calls there were in all.
func (c Command) Measure(ctx context.Context, call Call, callers, n int, limit time.Duration, check func(addr string, made int) error) (side.Sample, error) {
	p, err := c.Start(ctx)
	if err != nil {
		return side.Sample{}, err
	}
	all := &run{call: call, addr: p.Addr, callers: make([]*caller, callers)}
	for i := range all.callers {
		conn, err := net.Dial("tcp", p.Addr)
		if err != nil {
			return side.Sample{}, p.fail(err)
		}
		defer conn.Close()
		all.callers[i] = &caller{run: all, conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}
	}
	if _, err := all.calls(warmCalls, limit); err != nil {
		return side.Sample{}, p.fail(err)
	}
	for _, c := range all.callers {
		c.latencies = c.latencies[:0]
	}
	cpu := p.cpu()
	began := time.Now()
	made, err := all.calls(n, limit)
	if err != nil {
		return side.Sample{}, p.fail(err)
	}
	took := time.Since(began)
	sample := side.Sample{Value: float64(made) / took.Seconds(), CPU: (p.cpu() - cpu) / time.Duration(made), MaxRSS: p.maxRSS()}
	var latencies []time.Duration
	for _, c := range all.callers {
		latencies = append(latencies, c.latencies...)
	}
	sample.P50, sample.P99 = load.Percentiles(latencies)
	if check != nil {
		if err := check(p.Addr, int(all.next.Load())); err != nil {
			return side.Sample{}, p.fail(err)
		}
	}
	return sample, p.Stop()
}

// run is all the callers of one server. Their calls are numbered from 0 over
// its whole life.
type run struct {
	call    Call
	addr    string
	callers []*caller
	next    atomic.Int64
}

// caller is one connection.
type caller struct {
	*run
	conn      net.Conn
	in        *bufio.Reader
	out       []byte
	latencies []time.Duration
}

// calls makes up to n calls and returns how many it made, all of them answered.
func (r *run) calls(n int, limit time.Duration) (int, error) {
	first := r.next.Load()
	deadline := time.Now().Add(limit)
	var left atomic.Int64
	left.Store(int64(n))
	errs := make([]error, len(r.callers))
	var all sync.WaitGroup
	for i, c := range r.callers {
		all.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 && time.Now().Before(deadline) {
				errs[i] = c.one(int(r.next.Add(1)) - 1)
			}
		})
	}
	all.Wait()
	return int(r.next.Load() - first), errors.Join(errs...)
}

// one makes the n-th call.
func (c *caller) one(n int) error {
	body := c.call.Body(n)
	c.out = append(c.out[:0], "POST /mcp HTTP/1.1\r\nHost: "...)
	c.out = append(c.out, c.addr...)
	c.out = append(c.out, "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...)
	for _, header := range c.call.Headers {
		c.out = append(append(c.out, header...), "\r\n"...)
	}
	c.out = append(c.out, "Content-Length: "...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(append(c.out, "\r\n\r\n"...), body...)
	began := time.Now()
	if err := c.conn.SetDeadline(began.Add(answerTime)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return err
	}
	status, answer, err := c.read()
	c.latencies = append(c.latencies, time.Since(began))
	switch {
	case err != nil:
		return fmt.Errorf("an answer that can not be read: %w", err)
	case status != "200" || !bytes.Contains(answer, []byte(c.call.Holds)) || bytes.Contains(answer, []byte(`"isError":true`)) ||
		!bytes.Contains(answer, []byte(`"id":`+strconv.Itoa(n)+`,`)):
		return fmt.Errorf("a wrong answer to %s: %s %s", body, status, answer)
	case n%fullRead == 0:
		return c.call.Right(n, answer)
	}
	return nil
}

// read reads an answer whose length is told, which all are that fit into a
// server's buffer. The body is there until the next one is read.
func (c *caller) read() (status string, body []byte, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return "", nil, err
	}
	fields := bytes.Fields(line)
	if len(fields) < 2 {
		return "", nil, fmt.Errorf("a status line %q", line)
	}
	status = string(fields[1])
	length := -1
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return "", nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if strings.EqualFold(string(name), "Content-Length") {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return "", nil, err
			}
		}
	}
	if length < 0 || length > c.in.Size() {
		return "", nil, fmt.Errorf("a body of unknown length, or over %d bytes", c.in.Size())
	}
	if body, err = c.in.Peek(length); err != nil {
		return "", nil, err
	}
	_, err = c.in.Discard(length)
	return status, body, err
}

// Ask makes one call on a connection of its own and returns the answer.
func Ask(addr string, call Call) ([]byte, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var answer []byte
	call.Right = func(_ int, b []byte) error {
		answer = bytes.Clone(b)
		return nil
	}
	c := &caller{run: &run{call: call, addr: addr}, conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}
	err = c.one(0)
	return answer, err
}

// cpu is what the process has used so far, to 10 ms; 0 where there is no /proc.
func (p *Process) cpu() time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go runs on
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

// maxRSS is the peak of the resident memory in MB, 0 where there is no /proc.
func (p *Process) maxRSS() float64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(text)[0], 64)
			return kib * 1024 / 1e6
		}
	}
	return 0
}
