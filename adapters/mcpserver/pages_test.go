package mcpserver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A client that asks for pages and reads none holds back the making of more.
func TestPagesThatNobodyReadsAreBounded(t *testing.T) {
	var made atomic.Int64
	caller := callFunc(func(context.Context, toolCall) ([]byte, *jsonrpc.Error) {
		made.Add(1)
		return []byte(`{"page":"` + strings.Repeat("x", 10_000) + `"}`), nil
	})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := NewStdio(inR, outW, slog.New(slog.DiscardHandler), caller)
	s.drain = 2 * time.Minute
	if _, err := newServer(t, nil).protocol().Connect(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	go func() {
		fmt.Fprintln(inW, initializeLine)
		for i := range 1000 {
			fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read"}}`+"\n", i)
		}
		inW.Close()
	}()
	if _, err := outR.Read(make([]byte, 1)); err != nil { // the answer to initialize has begun
		t.Fatal(err)
	}
	for was := int64(-1); was != made.Load(); time.Sleep(200 * time.Millisecond) {
		was = made.Load()
	}
	if n := made.Load(); n > maxReads {
		t.Errorf("%d pages are made and not read", n)
	}
	go io.Copy(io.Discard, outR)
	if how := s.Wait(); how != Drained || made.Load() != 1000 {
		t.Errorf("it ended as %d with %d pages", how, made.Load())
	}
}
