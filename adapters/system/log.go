package system

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxPendingLog bounds the log lines that wait for a slow reader, in bytes.
	maxPendingLog = 1 << 20
	// logFlushWait bounds how long the end of the process waits for them.
	logFlushWait = 2 * time.Second
)

// Log writes JSON lines to w from a goroutine of its own, so that a reader who
// does not read (a host that ignores the server's stderr) can not stop a refund
// half way. Lines that do not fit in maxPendingLog bytes are dropped and counted.
type Log struct {
	*slog.Logger
	lines *lines
}

// NewLog starts a log at a level. Close writes what waits.
func NewLog(w io.Writer, level slog.Level) *Log {
	l := &lines{more: make(chan struct{}, 1), done: make(chan struct{})}
	go l.run(w)
	return &Log{slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: level})), l}
}

// Close stops the log and waits, at most logFlushWait, until its lines are written.
func (l *Log) Close() {
	l.lines.mu.Lock()
	l.lines.closed = true
	l.lines.mu.Unlock()
	l.lines.wake()
	select {
	case <-l.lines.done:
	case <-time.After(logFlushWait):
	}
}

type lines struct {
	mu      sync.Mutex
	pending []byte
	dropped int
	closed  bool
	more    chan struct{}
	done    chan struct{}
}

// Write takes one line. It never waits and never fails: a log that can not be
// written is no reason to refuse money.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	switch {
	case l.closed || len(l.pending)+len(line) > maxPendingLog:
		l.dropped++
	default:
		if l.dropped > 0 {
			l.pending = fmt.Appendf(l.pending, `{"time":%q,"level":"WARN","msg":"log lines dropped","lines":%d}`+"\n", time.Now().Format(time.RFC3339Nano), l.dropped)
			l.dropped = 0
		}
		l.pending = append(l.pending, line...)
	}
	l.mu.Unlock()
	l.wake()
	return len(line), nil
}

func (l *lines) wake() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *lines) run(w io.Writer) {
	defer close(l.done)
	var out []byte
	for range l.more {
		l.mu.Lock()
		out, l.pending = l.pending, out[:0]
		closed := l.closed
		l.mu.Unlock()
		if len(out) > 0 {
			_, _ = w.Write(out) // nobody is left to tell
		}
		if closed {
			return
		}
	}
}
