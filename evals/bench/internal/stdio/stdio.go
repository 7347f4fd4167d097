// Package stdio starts an MCP server and times it. It writes raw lines and
// reads answers with as little work as it can, so that it costs the same for
// every server and leaves them the machine.
package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/refundledger/refundledger/evals/bench/internal/load"
	"github.com/refundledger/refundledger/evals/bench/internal/side"
)

const (
	initialize  = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}` + "\n"
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	list        = `{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{}}` + "\n"

	// openingCents is the balance of the one customer that is refunded, and so
	// how many refunds of a cent a server can make before it must be started anew.
	openingCents = 500_00
	// warmCalls are made before the clock starts.
	warmCalls = 1000
	// MaxCalls is how many calls may be counted.
	MaxCalls = openingCents - warmCalls
	// exitTimeout is how long a server may take to end after its input has.
	exitTimeout = 10 * time.Second
)

// Command is how to start a server.
type Command struct {
	Path string
	Env  []string // beside PATH and HOME
}

// Tool is a call to repeat.
type Tool struct {
	Name, Arguments string
	answers         string // stands in every right answer
	cents           int64  // what one call takes from the balance
}

// The two tools.
var (
	Look   = Tool{"get_customer_record", `{"customer_id":"CUST-00001"}`, "refundableBalance", 0}
	Refund = Tool{"trigger_refund", `{"customer_id":"CUST-00001","amount":0.01,"reason":"damaged on arrival"}`, "remainingRefundableBalance", 1}
)

type server struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr tail // to be read when the process has ended
}

func (c Command) start(ctx context.Context) (*server, error) {
	s := &server{cmd: exec.CommandContext(ctx, c.Path)}
	s.cmd.Stderr = &s.stderr
	s.cmd.WaitDelay = time.Second // a child of the server may keep stderr open
	s.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, c.Env...)
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.in, s.out = in, bufio.NewReaderSize(out, 1<<20)
	return s, nil
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	const kept = 4 << 10
	t.b = append(t.b, p[max(0, len(p)-kept):]...)
	t.b = t.b[max(0, len(t.b)-kept):]
	return len(p), nil
}

// hello opens the session and returns when the tools are listed.
func (s *server) hello() error {
	if _, err := io.WriteString(s.in, initialize); err != nil {
		return err
	}
	if _, err := s.out.ReadSlice('\n'); err != nil {
		return err
	}
	if _, err := io.WriteString(s.in, initialized+list); err != nil {
		return err
	}
	answer, err := s.out.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, []byte(Refund.Name)) {
		return fmt.Errorf("tools/list answered %s", answer)
	}
	return nil
}

// stop ends the server as a host does, by ending its input.
func (s *server) stop() error {
	err := s.in.Close()
	kill := time.AfterFunc(exitTimeout, func() { _ = s.cmd.Process.Kill() })
	defer kill.Stop()
	_, _ = io.Copy(io.Discard, s.out)
	if e := s.cmd.Wait(); e != nil {
		err = fmt.Errorf("the server ended with %w; its stderr: %s", e, s.stderr.b)
	}
	return err
}

// fail ends the server and says what it last logged.
func (s *server) fail(err error) error {
	_ = s.in.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	return fmt.Errorf("%w; the server's stderr: %s", err, s.stderr.b)
}

// Start measures from starting the process to the first tools/list answer: the
// median of several starts, in milliseconds.
func (c Command) Start(ctx context.Context) (side.Sample, error) {
	const starts = 5
	var took []float64
	for range starts {
		began := time.Now()
		s, err := c.start(ctx)
		if err != nil {
			return side.Sample{}, err
		}
		if err := s.hello(); err != nil {
			return side.Sample{}, s.fail(err)
		}
		took = append(took, side.In(time.Since(began)))
		if err := s.stop(); err != nil {
			return side.Sample{}, err
		}
	}
	return side.Sample{Value: side.SpreadOf(took).Median}, nil
}

// IdleMemory measures the most memory the process has held by the time it has
// listed its tools and waits, in MB.
func (c Command) IdleMemory(ctx context.Context) (side.Sample, error) {
	s, err := c.start(ctx)
	if err != nil {
		return side.Sample{}, err
	}
	if err := s.hello(); err != nil {
		return side.Sample{}, s.fail(err)
	}
	most, err := s.maxRSS()
	if err != nil {
		return side.Sample{}, s.fail(err)
	}
	return side.Sample{Value: most}, s.stop()
}

// maxRSS is the peak of the resident memory, in MB. (What wait4 reports would
// not do: it counts this program's own memory at the fork.)
func (s *server) maxRSS() (float64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
			return kib * 1024 / 1e6, err
		}
	}
	return 0, errors.New("no VmHWM in /proc")
}

// Calls measures a tool with window calls in flight: calls answered in a
// second, over n calls or the time, whichever ends first. Every answer is
// looked at, and the balance at the end must be what the refunds left.
func (c Command) Calls(ctx context.Context, t Tool, window, n int, limit time.Duration) (side.Sample, error) {
	s, err := c.start(ctx)
	if err != nil {
		return side.Sample{}, err
	}
	if err := s.hello(); err != nil {
		return side.Sample{}, s.fail(err)
	}
	d := driver{server: s, tool: t, window: window}
	if _, err := d.calls(warmCalls, limit); err != nil {
		return side.Sample{}, s.fail(err)
	}
	d.latencies = make([]time.Duration, 0, n)
	cpu := s.cpu()
	began := time.Now()
	done, err := d.calls(n, limit)
	if err != nil {
		return side.Sample{}, s.fail(err)
	}
	took := time.Since(began)
	sample := side.Sample{Value: float64(done) / took.Seconds(), CPU: (s.cpu() - cpu) / time.Duration(done)}
	sample.P50, sample.P99 = load.Percentiles(d.latencies)
	sample.MaxRSS, _ = s.maxRSS() // 0, not shown, where there is no /proc
	if err := d.balanced(); err != nil {
		return side.Sample{}, s.fail(err)
	}
	return sample, s.stop()
}

// cpu is what the process has used so far, to 10 ms; 0 where there is no /proc.
func (s *server) cpu() time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go runs on
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	// The second field is the program's name, in parentheses; utime and stime
	// are the 14th and 15th.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

// driver makes calls on one server, numbered from 0 over all its life.
type driver struct {
	*server
	tool      Tool
	window    int
	next      int // the id of the next call
	sent      []time.Time
	answered  []bool
	latencies []time.Duration
}

// calls makes up to n calls and returns how many it made, all of them answered.
func (d *driver) calls(n int, limit time.Duration) (int, error) {
	first := d.next
	d.sent = append(d.sent, make([]time.Time, n)...)
	d.answered = append(d.answered, make([]bool, n)...)
	var line []byte
	write := func(count int) error {
		line = line[:0]
		now := time.Now()
		for range count {
			d.sent[d.next] = now
			line = append(line, `{"jsonrpc":"2.0","id":`...)
			line = strconv.AppendInt(line, int64(d.next), 10)
			line = append(line, `,"method":"tools/call","params":{"name":"`...)
			line = append(line, d.tool.Name...)
			line = append(line, `","arguments":`...)
			line = append(line, d.tool.Arguments...)
			line = append(line, "}}\n"...)
			d.next++
		}
		_, err := d.in.Write(line)
		return err
	}
	if err := write(min(d.window, n)); err != nil {
		return 0, err
	}
	deadline := time.Now().Add(limit)
	for done, free := 0, 0; first+done < d.next; {
		if err := d.answer(); err != nil {
			return 0, err
		}
		done++
		free++
		// As a busy host does, send what may be sent once all that came is read.
		if d.out.Buffered() == 0 && time.Now().Before(deadline) {
			if free = min(free, first+n-d.next); free > 0 {
				if err := write(free); err != nil {
					return 0, err
				}
			}
			free = 0
		}
	}
	made := d.next - first
	d.sent, d.answered = d.sent[:d.next], d.answered[:d.next]
	return made, nil
}

// answer reads one answer. All are searched for what a right one has; each
// 64th is read in full.
func (d *driver) answer() error {
	line, err := d.out.ReadSlice('\n')
	if err != nil {
		return err
	}
	id, ok := idOf(line)
	switch {
	case !ok || id >= d.next || d.answered[id]:
		return fmt.Errorf("an answer to nothing that was asked: %s", line)
	case !bytes.Contains(line, []byte(d.tool.answers)) || bytes.Contains(line, []byte(`"isError":true`)):
		return fmt.Errorf("a wrong answer: %s", line)
	}
	d.answered[id] = true
	if d.latencies != nil {
		d.latencies = append(d.latencies, time.Since(d.sent[id]))
	}
	if id%64 == 0 {
		_, err = parse(line)
	}
	return err
}

// idOf finds the number after the first "id" of a line.
func idOf(line []byte) (id int, ok bool) {
	const name = `"id":`
	at := bytes.Index(line, []byte(name))
	if at < 0 {
		return 0, false
	}
	for _, c := range line[at+len(name):] {
		if c < '0' || c > '9' {
			break
		}
		id, ok = id*10+int(c-'0'), true
	}
	return id, ok
}

type record struct {
	CustomerID string       `json:"customerId"`
	Balance    *json.Number `json:"refundableBalance"`
}

func parse(line []byte) (record, error) {
	var answer struct {
		Error  json.RawMessage `json:"error"`
		Result struct {
			IsError           bool   `json:"isError"`
			StructuredContent record `json:"structuredContent"`
		} `json:"result"`
	}
	err := json.Unmarshal(line, &answer)
	r := answer.Result.StructuredContent
	if err != nil || answer.Error != nil || answer.Result.IsError || r.CustomerID != "CUST-00001" {
		return record{}, fmt.Errorf("a wrong answer: %s", line)
	}
	return r, nil
}

// balanced asks for the balance and compares it with the refunds made.
func (d *driver) balanced() error {
	left := int64(openingCents) - int64(d.next)*d.tool.cents
	ask := `{"jsonrpc":"2.0","id":` + strconv.Itoa(d.next) + `,"method":"tools/call","params":{"name":"` + Look.Name + `","arguments":` + Look.Arguments + "}}\n"
	if _, err := io.WriteString(d.in, ask); err != nil {
		return err
	}
	line, err := d.out.ReadSlice('\n')
	if err != nil {
		return err
	}
	r, err := parse(line)
	if err != nil {
		return err
	}
	want := strconv.FormatFloat(float64(left)/100, 'f', -1, 64)
	if r.Balance == nil || r.Balance.String() != want {
		return fmt.Errorf("after %d calls of %s the balance must be %s: %s", d.next, d.tool.Name, want, line)
	}
	return nil
}
