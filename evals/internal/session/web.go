package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/refundledger/refundledger/evals/internal/expect"
	"github.com/refundledger/refundledger/evals/internal/jsontree"
)

// web is how messages reach a server over HTTP: each is a request, and what
// comes back is heard like a line of stdout.
type web struct {
	url      string
	protocol string
	client   *http.Client
}

// webEnvironment has the server listen on this machine, for anybody: everybody
// is the principal of the case.
func webEnvironment(env map[string]string) map[string]string {
	env = maps.Clone(env)
	env["MCP_TRANSPORT"], env["MCP_HTTP_ADDR"], env["MCP_ALLOW_ANONYMOUS"] = "http", "127.0.0.1:0", "true"
	return env
}

// openWeb waits until the server says where it listens.
func (s *Session) openWeb(ctx context.Context, protocol string) (*web, error) {
	ctx, stop := context.WithTimeout(ctx, answerTimeout)
	defer stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		for line := range strings.Lines(s.Logged()) {
			n, err := jsontree.Parse([]byte(line))
			if err != nil || n.Get("listens") == nil {
				continue
			}
			return &web{"http://" + n.Get("listens").Str() + "/mcp", protocol, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}, nil
		}
		select {
		case <-s.exited:
			return nil, errors.New("the server has ended" + s.lastWords())
		case <-ctx.Done():
			return nil, fmt.Errorf("the server does not say where it listens%s", s.lastWords())
		case <-tick.C:
		}
	}
}

// post sends a message and hears the answer, if there is one.
func (s *Session) post(line []byte) {
	ctx, stop := context.WithTimeout(context.Background(), answerTimeout)
	defer stop()
	body, err := s.web.post(ctx, line)
	switch {
	case err != nil:
		s.violate(err)
	case len(bytes.TrimSpace(body)) > 0:
		s.hear(string(bytes.TrimSpace(body)))
	}
}

func (w *web) post(ctx context.Context, line []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	// What is no good JSON is the call of a tool, in an era without these headers.
	if n, err := jsontree.Parse(line); err != nil || n.Get("method").Str() != "initialize" {
		r.Header.Set("MCP-Protocol-Version", w.protocol)
		if err == nil && w.protocol >= stateless {
			r.Header.Set("Mcp-Method", n.Get("method").Str())
			if p := n.Get("params"); p != nil && p.Get("name") != nil {
				r.Header.Set("Mcp-Name", p.Get("name").Str())
			}
		}
	}
	answer, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxLine))
	if err == nil && answer.StatusCode >= 400 && !bytes.Contains(body, []byte(`"jsonrpc"`)) {
		err = &expect.Mismatch{Want: "a JSON-RPC message", Got: answer.Status + ": " + expect.Shorten(string(body))}
	}
	return body, err
}

// stateless is the first revision whose requests repeat in headers what they ask.
const stateless = "2026-07-28"

// stop asks the server to end.
func (w *web) stop(p *os.Process) error {
	w.client.CloseIdleConnections()
	return p.Signal(syscall.SIGTERM)
}
