package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/ports"
)

// counts of the tests below: short by default, in full with HTTP_FULL=1.
func count(short, full int) int {
	if os.Getenv("HTTP_FULL") != "" {
		return full
	}
	return short
}

// Clients that all use the same ids, each with a secret of its own, never see
// another's: the key of the operation goes out in one place and comes back in
// another.
func TestHTTPAnswersNeverMix(t *testing.T) {
	noLeaks(t)
	clients, calls := count(40, 200), count(50, 500)
	s := newSite(t, func(_ *Options, o *HTTPOptions) { o.MaxInFlight = 1024 })
	for i := range clients {
		s.verifier.known[fmt.Sprint("token-", i)] = principal(t, "default", fmt.Sprint("client-", i), access.Pro, access.AgentScopes())
	}
	// A connection that the server ends while the client takes it up again is no
	// answer: the call is sent again, on another.
	ask := func(body string, headers ...string) (reply, error) {
		var r reply
		var err error
		for range 5 {
			if r, err = s.try("POST", pathMCP, body, headers...); err == nil {
				break
			}
		}
		return r, err
	}
	var answers atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			as := []string{"Authorization", fmt.Sprint("Bearer token-", i)}
			for call := range calls {
				var r reply
				var err error
				id, secret := strconv.Itoa(call), fmt.Sprintf("secret-%d-%d-x", i, call)
				switch call % 4 {
				case 0: // refused, with the key in _meta
					r, err = ask(toolsCall(id, "trigger_refund", strings.Replace(ten, "10", "900", 1), keyed(`"`+secret+`"`)), as...)
				case 1: // an issue, which names it
					r, err = ask(toolsCall(id, "get_customer_record", `{"customer_id":"CUST-00001","`+secret+`":1}`, ""), as...)
				case 2: // not found, in the sessionless protocol
					r, err = ask(toolsCall(id, "get_operation", `{"operation_key":"`+secret+`"}`, sessionlessMeta("")), append(sessionlessHeaders("tools/call", "get_operation"), as...)...)
				case 3: // the same through the SDK, which answers a header that comes twice
					r, err = ask(toolsCall(id, "get_operation", `{"operation_key":"`+secret+`"}`, sessionlessMeta("")), append(sessionlessHeaders("tools/call", "get_operation"), append(as, headerOfName, "x")...)...)
				}
				if err != nil {
					t.Error(err)
					return
				}
				answers.Add(1)
				if r.id != id || !strings.Contains(r.body, secret) || strings.Count(r.body, "secret-") != strings.Count(r.body, secret) {
					t.Errorf("client %d, call %d: %s", i, call, r.body)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d clients, %d answers", clients, answers.Load())
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// slowLedger takes a moment for each look-up, so that calls overlap.
type slowLedger struct{ ports.Ledger }

func (l slowLedger) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	time.Sleep(time.Millisecond)
	return l.Ledger.Load(ctx, t, refs...)
}

// Those who send nothing, half a header, half a body, or read nothing, cost a
// connection and no more: while they come and while they are there each look-up
// of the others is answered and none refused, none of them is put off before its
// time, and all of it is gone at the end.
func TestHTTPSlowClientsHarmNobody(t *testing.T) {
	noLeaks(t)
	each := count(50, 1250)
	s := newSite(t, func(_ *Options, o *HTTPOptions) { o.MaxInFlight = 8 })
	s.desk.app.Ledger = slowLedger{s.desk.app.Ledger}
	alone, before := s.p99(), inUse()
	var comes atomic.Bool // slow clients come
	comes.Store(true)
	var quick sync.WaitGroup
	var answered atomic.Int64
	quick.Go(func() {
		for comes.Load() && s.lookUp() {
			answered.Add(1)
		}
	})
	header := "POST /mcp HTTP/1.1\r\nHost: " + s.addr + "\r\nContent-Type: application/json\r\nAuthorization: Bearer " + allToken + "\r\n"
	type slow struct {
		net.Conn
		began time.Time     // before the server can have begun to wait
		has   time.Duration // how long the server waits
	}
	var conns []slow
	defer func() {
		comes.Store(false)
		quick.Wait()
		for _, c := range conns {
			c.Close()
		}
	}()
	for range each {
		for first, has := range map[string]time.Duration{
			"":                                       headerTime,
			"POST /mcp HTTP/1.1\r\nHost: ":           headerTime,
			header + "Content-Length: 1000\r\n\r\n{": readTime,
			header + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n": readTime,
		} {
			began := time.Now()
			c, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, slow{c, began, has})
			if _, err := c.Write([]byte(first)); err != nil {
				t.Fatal(err)
			}
		}
	}
	beside := s.p99()
	comes.Store(false)
	quick.Wait()
	cost := (inUse() - before) / int64(len(conns))
	there := 0
	for _, c := range conns {
		if err := c.SetReadDeadline(time.Now().Add(time.Microsecond)); err != nil {
			t.Fatal(err)
		}
		_, err := c.Read(make([]byte, 1))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			there++
		} else if lasted := time.Since(c.began); lasted < c.has {
			t.Errorf("a slow client that has %s is put off after %s: %v", c.has, lasted, err)
		}
	}
	t.Logf("p99 of a look-up: %s alone, %s beside %d slow clients, who take %d bytes each; %d look-ups were answered while they came and were there, %d of them to the end",
		alone, beside, len(conns), cost, answered.Load()+int64(count(200, 5000)), there)
	if answered.Load() == 0 {
		t.Error("nobody looked anything up while they came")
	}
	if cost > maxSlowClient {
		t.Errorf("a slow client takes %d bytes", cost)
	}
	// Half a header is not waited for longer than headerTime.
	half, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if _, err := half.Write([]byte("POST /mcp HTTP/1.1\r\nHost: ")); err != nil {
		t.Fatal(err)
	}
	if err := half.SetReadDeadline(time.Now().Add(headerTime + patience)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if resp, err := http.ReadResponse(bufio.NewReader(half), nil); err == nil {
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("half a header is answered %d", resp.StatusCode)
		}
	}
	if waited := time.Since(began); waited > headerTime+patience/2 {
		t.Errorf("it was waited for %s", waited)
	}
	for _, c := range conns {
		c.Close()
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// maxSlowClient is what a client that sends nothing may take, with both ends of
// its connection, in this process.
const maxSlowClient = 64 << 10

// inUse is the memory that is used, without what only waits to be collected.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// lookUp looks a customer up and reports whether it was answered.
func (s *site) lookUp() bool {
	s.t.Helper()
	r, err := s.try("POST", pathMCP, toolsCall("1", "get_customer_record", lookUp, ""))
	if err != nil || r.status != 200 || r.code != 0 {
		s.t.Errorf("a look-up is answered %d %s %v", r.status, r.body, err)
		return false
	}
	return true
}

// p99 is how long one in a hundred of some calls takes.
func (s *site) p99() time.Duration {
	s.t.Helper()
	took := make([]time.Duration, count(200, 5000))
	for i := range took {
		began := time.Now()
		if !s.lookUp() {
			s.t.FailNow()
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// An abusive principal is told to wait; its victim loses nothing.
func TestHTTPAnAbuserSlowsNobody(t *testing.T) {
	// Nothing to speak of is filled up while the test runs, however slow it is.
	s := newSite(t, func(_ *Options, o *HTTPOptions) { o.Rate, o.Burst = 0.01, 20 })
	ctx, stop := context.WithCancel(t.Context())
	var abuse sync.WaitGroup
	var mu sync.Mutex
	codes := map[int64]int{}
	refused := func() int {
		mu.Lock()
		defer mu.Unlock()
		return codes[codeRateLimited]
	}
	for range 8 {
		abuse.Go(func() {
			for ctx.Err() == nil {
				r, err := s.try("POST", pathMCP, toolsCall("1", "get_customer_record", lookUp, ""), "Authorization", "Bearer "+readerToken)
				if err != nil {
					continue
				}
				mu.Lock()
				codes[r.code]++
				mu.Unlock()
				var data struct{ RetryAfterMs int64 }
				if r.code == codeRateLimited && (json.Unmarshal([]byte(r.data), &data) != nil || data.RetryAfterMs <= 0 || r.id != "1") {
					t.Errorf("it is not told when: %s", r.body)
				}
			}
		})
	}
	for i := range 15 {
		for before := refused(); refused() == before && !t.Failed(); { // the abuse goes on all the time
			time.Sleep(time.Millisecond)
		}
		if r := s.post(toolsCall("1", "trigger_refund", strings.Replace(ten, "10", "1", 1), keyed(fmt.Sprintf(`"v%d"`, i)))); r.status != 200 || r.code != 0 {
			t.Errorf("the victim's call %d: %d %s", i, r.status, r.body)
		}
	}
	stop()
	abuse.Wait()
	if codes[0] != 20 || codes[codeRateLimited] < 15 || len(codes) != 2 {
		t.Errorf("the abuser is answered %v, of which it should have 20 calls", codes)
	}
	if b := balance(t, s.desk); b != "485" {
		t.Errorf("the victim's refunds left %s", b)
	}
}

// countingMeter remembers what it was told.
type countingMeter struct {
	mu   sync.Mutex
	said []string
}

func (m *countingMeter) say(words ...string) {
	m.mu.Lock()
	m.said = append(m.said, strings.Join(words, " "))
	m.mu.Unlock()
}

func (m *countingMeter) Began(string)                                {}
func (m *countingMeter) Ended(tool, outcome string, _ time.Duration) { m.say(tool, outcome) }
func (m *countingMeter) Refused(why string)                          { m.say(why) }

func TestMeterIsToldHowCallsWent(t *testing.T) {
	m := &countingMeter{}
	s := newSite(t, func(o *Options, _ *HTTPOptions) { o.Meter = m })
	s.post(toolsCall("1", "get_customer_record", lookUp, ""))
	s.post(toolsCall("1", "get_customer_record", `{}`, ""))
	s.post(toolsCall("1", "trigger_refund", strings.Replace(ten, "10", "900", 1), ""))
	s.post(toolsCall("1", "no_such_tool", `{}`, ""))
	s.as(readerToken, toolsCall("1", "trigger_refund", ten, ""))
	s.as("bad", "{}")
	s.post("{")
	s.post("{}", "Host", "evil.example")
	want := []string{"get_customer_record OK", "get_customer_record INVALID_INPUT", "trigger_refund POLICY_VIOLATION", "unknown UNKNOWN_TOOL", "trigger_refund DENIED", "token", "gate", "host"}
	if !slices.Equal(m.said, want) {
		t.Errorf("it was told %q", m.said)
	}
}

// BenchmarkHTTP is 16 callers who keep their connections: what to profile.
// evals/bench compares the built server with others.
func BenchmarkHTTP(b *testing.B) {
	const callers = 16
	for _, c := range []struct {
		name    string
		message func(n int64) string
		headers []string
	}{
		{"look-up", func(int64) string { return toolsCall("1", "get_customer_record", lookUp, "") }, nil},
		{"look-up in the new era", func(int64) string { return toolsCall("1", "get_customer_record", lookUp, sessionlessMeta("")) },
			sessionlessHeaders("tools/call", "get_customer_record")},
		{"refund", func(n int64) string {
			return toolsCall("1", "trigger_refund", strings.Replace(ten, "10", "0.01", 1), keyed(fmt.Sprintf(`"k%d"`, n)))
		}, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newSite(b, func(o *Options, _ *HTTPOptions) { o.Log = slog.New(slog.DiscardHandler) })
			var n atomic.Int64
			b.SetParallelism((callers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r, err := s.try("POST", pathMCP, c.message(n.Add(1)), c.headers...)
					if err != nil || r.status != 200 || r.code != 0 {
						b.Errorf("%d %s %v", r.status, r.body, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
