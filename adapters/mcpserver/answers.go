package mcpserver

import (
	"io"
	"runtime"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
)

const (
	// flushAt is how much may be waiting before it is written, even if there is
	// more to come at once.
	flushAt = 64 << 10
	// keepBuffer is the largest buffer that is kept for later.
	keepBuffer = 256 << 10
)

// answers writes lines, one goroutine for all who have something to say. It
// knows nothing of who reads: what comes together goes out together, and what
// is waiting is bounded by the requests that are accepted.
type answers struct {
	out io.Writer
	// leaving is called before the answers to these requests are written, left
	// when they were, or could not be.
	leaving func([]*accepted)
	left    func([]*accepted, error)

	wake chan struct{}

	mu      sync.Mutex
	waiting []byte      // whole lines
	to      []*accepted // whose answers they are
	closed  bool
}

func newAnswers(out io.Writer, leaving func([]*accepted), left func([]*accepted, error)) *answers {
	return &answers{out: out, leaving: leaving, left: left, wake: make(chan struct{}, 1)}
}

// result answers a request. The result is a JSON object without line breaks.
func (a *answers) result(r *accepted, result []byte) {
	a.mu.Lock()
	b := appendEnvelope(a.waiting, r)
	b = append(b, `,"result":`...)
	b = append(b, result...)
	a.waiting = append(b, '}', '\n')
	a.to = append(a.to, r)
	a.mu.Unlock()
	a.rouse()
}

// failure answers a request with an error.
func (a *answers) failure(r *accepted, e *jsonrpc.Error) {
	a.mu.Lock()
	b := appendEnvelope(a.waiting, r)
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, e.Code, 10)
	b = append(b, `,"message":`...)
	b = strictjson.AppendString(b, e.Message)
	if len(e.Data) > 0 {
		b = append(b, `,"data":`...)
		b = append(b, e.Data...)
	}
	a.waiting = append(b, '}', '}', '\n')
	a.to = append(a.to, r)
	a.mu.Unlock()
	a.rouse()
}

func appendEnvelope(b []byte, r *accepted) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	return append(b, r.id.raw...)
}

// message writes a message that answers nothing.
func (a *answers) message(encoded []byte) {
	a.mu.Lock()
	a.waiting = append(append(a.waiting, encoded...), '\n')
	a.mu.Unlock()
	a.rouse()
}

// close lets run end when nothing is waiting.
func (a *answers) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.rouse()
}

func (a *answers) rouse() {
	select {
	case a.wake <- struct{}{}:
	default: // it is awake, and will look again
	}
}

// run writes until close. After the first error nothing is written any more:
// half a line may be out.
func (a *answers) run() {
	var spare []byte
	var batch []*accepted
	var broken error
	for range a.wake {
		for {
			a.mu.Lock()
			if n := len(a.waiting); 0 < n && n < flushAt {
				// Others who are about to answer shall go with this write.
				a.mu.Unlock()
				runtime.Gosched()
				a.mu.Lock()
			}
			lines := a.waiting
			a.waiting, spare = spare[:0], nil
			batch, a.to = a.to, batch[:0]
			closed := a.closed
			a.mu.Unlock()
			if len(lines) == 0 {
				spare = lines
				if closed {
					return
				}
				break
			}
			a.leaving(batch)
			if broken == nil {
				_, broken = a.out.Write(lines)
			}
			a.left(batch, broken)
			clear(batch) // what is answered must not be kept alive
			if cap(lines) <= keepBuffer {
				spare = lines
			}
		}
	}
}
