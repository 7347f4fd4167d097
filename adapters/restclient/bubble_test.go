package restclient_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/refundledger/refundledger/adapters/restclient"
)

// inBubble runs a test in a bubble, where time passes only while everybody
// waits: what takes long takes no time, and how long it took is exact, however
// slow the machine is. Its network must be one of [pipes].
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, test)
}

// pipes are a listener that is reached within the process.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// piped serves a handler in the bubble, until the test ends or stop is called,
// and makes a client of it.
func piped(t *testing.T, h http.Handler, change ...func(*restclient.Options)) (client *restclient.Client, stop func()) {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(quiet.Handler(), slog.LevelDebug)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(p) }()
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil { // time passes for those who sleep
			t.Error(err)
		}
		<-ended
	})
	client = newClient(t, "http://127.0.0.1", "acme", change...)
	client.DialWith(p.dial)
	return client, func() { _ = p.Close() }
}
