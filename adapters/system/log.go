package system

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxPendingLog bounds the log lines that wait for a slow reader, in bytes.
	maxPendingLog = 1 << 20
	// errorRoom is kept free for errors: they name the operations that were not
	// answered, and are what is looked for afterwards.
	errorRoom = 256 << 10
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
	room := maxPendingLog
	if !bytes.Contains(line, []byte(`"level":"ERROR"`)) {
		room -= errorRoom
	}
	l.mu.Lock()
	if l.closed || len(l.pending)+len(line) > room {
		l.dropped++
	} else {
		l.pending = append(l.countDropped(l.pending), line...)
	}
	l.mu.Unlock()
	l.wake()
	return len(line), nil
}

// countDropped adds a line that says how many were dropped, if any.
func (l *lines) countDropped(b []byte) []byte {
	if l.dropped > 0 {
		b = fmt.Appendf(b, `{"time":%q,"level":"WARN","msg":"log lines dropped","lines":%d}`+"\n", time.Now().Format(time.RFC3339Nano), l.dropped)
		l.dropped = 0
	}
	return b
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
		if closed {
			out = l.countDropped(out)
		}
		l.mu.Unlock()
		if len(out) > 0 {
			_, _ = w.Write(out) // nobody is left to tell
		}
		if closed {
			return
		}
	}
}
