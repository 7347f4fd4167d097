package mcpserver

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// recordingWriter keeps what is written, and how often.
type recordingWriter struct {
	bytes.Buffer
	writes int
	fail   error
}

func (w *recordingWriter) Write(p []byte) (int, error) {
	w.writes++
	if w.fail != nil {
		return 0, w.fail
	}
	return w.Buffer.Write(p)
}

// runAnswers runs a writer until f and all it wrote are done.
func runAnswers(out *recordingWriter, leaving func([]*accepted), left func([]*accepted, error), f func(*answers)) {
	a := newAnswers(out, leaving, left)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.run()
	}()
	f(a)
	a.close()
	<-done
}

func TestAnswersAreWholeLinesAndEachLeavesOnce(t *testing.T) {
	const writers, each = 8, 500
	out := &recordingWriter{}
	leaving, left := map[*accepted]int{}, map[*accepted]int{}
	runAnswers(out, func(batch []*accepted) {
		for _, r := range batch {
			leaving[r]++
		}
	}, func(batch []*accepted, err error) {
		if err != nil {
			t.Error(err)
		}
		for _, r := range batch {
			if left[r]++; leaving[r] != 1 {
				t.Error("an answer was written before its request left")
			}
		}
	}, func(a *answers) {
		var wait sync.WaitGroup
		for w := range writers {
			wait.Go(func() {
				for i := range each {
					r := &accepted{id: messageID{raw: fmt.Appendf(nil, "%d", w*each+i)}}
					switch i % 3 {
					case 0:
						a.result(r, []byte(`{"pad":"`+strings.Repeat("x", i*10)+`"}`))
					case 1:
						a.failure(r, &jsonrpc.Error{Code: -32602, Message: "no \"quotes\"\n", Data: []byte(`{}`)})
					case 2:
						a.failure(r, &jsonrpc.Error{Code: -1})
						a.message([]byte(`{"jsonrpc":"2.0","method":"note"}`))
					}
				}
			})
		}
		wait.Wait()
	})
	if len(left) != writers*each {
		t.Errorf("%d answers left, want %d", len(left), writers*each)
	}
	seen := map[string]bool{}
	notes := 0
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, `"note"`) {
			notes++
			continue
		}
		seen[line] = true
	}
	if len(seen) != writers*each || notes != writers*(each/3) {
		t.Errorf("%d answers and %d notes were written", len(seen), notes)
	}
	if !seen[`{"jsonrpc":"2.0","id":0,"result":{"pad":""}}`+"\n"] || !seen[`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no \"quotes\"\n","data":{}}}`+"\n"] || !seen[`{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":""}}`+"\n"] {
		t.Error("the first three answers are not as they should be")
	}
}

func TestAnswersAreNotWrittenAfterAnError(t *testing.T) {
	out := &recordingWriter{fail: errors.New("closed")}
	lost := 0
	runAnswers(out, func([]*accepted) {}, func(batch []*accepted, err error) {
		if err != out.fail {
			t.Errorf("left with %v", err)
		}
		lost += len(batch)
	}, func(a *answers) {
		for range 100 {
			a.result(&accepted{}, []byte(`{}`))
			a.message([]byte(`{}`))
		}
	})
	if lost != 100 || out.writes != 1 {
		t.Errorf("%d answers lost in %d writes, want 100 in 1", lost, out.writes)
	}
}

func BenchmarkAnswers(b *testing.B) {
	result := []byte(`{"content":[{"type":"text","text":"{\"refundId\":\"r-1\",\"amount\":10.5}"}],"structuredContent":{"refundId":"r-1","amount":10.5}}`)
	b.ReportAllocs()
	runAnswers(&recordingWriter{fail: errors.New("nothing is kept")}, func([]*accepted) {}, func([]*accepted, error) {}, func(a *answers) {
		r := &accepted{id: messageID{raw: []byte("1234567")}}
		for b.Loop() {
			a.result(r, result)
		}
	})
}
