package faulty

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Trouble is what a [Proxy] does to connections, each with a chance of 0 to 1.
type Trouble struct {
	Refuse      float64 // end the connection at once
	ResetBefore float64 // reset when a request comes, before it is passed on
	ResetAfter  float64 // reset when the answer comes, before it is passed on
	ResetInside float64 // reset in the middle of the answer
	Delay       float64 // hold a piece back for a while, up to MaxDelay
	Slice       float64 // pass a piece on in small parts
	MaxDelay    time.Duration
}

// Proxy passes TCP on to an address, and makes trouble.
type Proxy struct {
	listener net.Listener
	to       string
	trouble  Trouble

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
	Made   map[string]int // how often which trouble was made
	all    sync.WaitGroup
}

// NewProxy listens on this machine.
func NewProxy(to string, t Trouble) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, to: to, trouble: t, conns: map[net.Conn]bool{}, Made: map[string]int{}}
	p.all.Go(p.run)
	return p, nil
}

// URL is where the proxy listens.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Close ends all connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
}

func (p *Proxy) run() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.happens("refuse", p.trouble.Refuse) {
			reset(c)
			continue
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			reset(c)
			continue
		}
		p.mu.Lock()
		if p.closed { // it was accepted while Close ended the others
			p.mu.Unlock()
			reset(c)
			reset(server)
			return
		}
		p.conns[c], p.conns[server] = true, true
		p.mu.Unlock()
		p.all.Go(func() { p.pass(c, server, false) })
		p.all.Go(func() { p.pass(server, c, true) })
	}
}

func (p *Proxy) happens(what string, chance float64) bool {
	if rand.Float64() >= chance {
		return false
	}
	p.mu.Lock()
	p.Made[what]++
	p.mu.Unlock()
	return true
}

var errReset = errors.New("reset")

// pass copies one direction of a connection.
func (p *Proxy) pass(from, to net.Conn, answer bool) {
	defer func() {
		for _, c := range []net.Conn{from, to} {
			_ = c.Close()
			p.mu.Lock()
			delete(p.conns, c)
			p.mu.Unlock()
		}
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if p.piece(to, buffer[:n], answer) != nil {
				reset(from)
				reset(to)
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) piece(to net.Conn, b []byte, answer bool) error {
	if p.happens("delay", p.trouble.Delay) {
		time.Sleep(rand.N(p.trouble.MaxDelay))
	}
	switch {
	case !answer && p.happens("reset before", p.trouble.ResetBefore):
		return errReset
	case answer && p.happens("reset after", p.trouble.ResetAfter):
		return errReset
	case answer && p.happens("reset inside", p.trouble.ResetInside):
		_, _ = to.Write(b[:len(b)/2])
		return errReset
	}
	if p.happens("slice", p.trouble.Slice) {
		for len(b) > 0 {
			n := min(len(b), 1+rand.N(64))
			if _, err := to.Write(b[:n]); err != nil {
				return err
			}
			b = b[n:]
		}
		return nil
	}
	_, err := to.Write(b)
	return err
}

// reset ends a connection so that the other side sees it as broken.
func reset(c io.Closer) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
