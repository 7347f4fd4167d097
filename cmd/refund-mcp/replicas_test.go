package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

const (
	// stormOpening is the balance of each customer in cents: no storm uses it up.
	stormOpening = 1_000_000_000
	stormClients = 8
	stormTenant  = "default"
	// stormTime bounds the test on a machine that does nothing else for long.
	stormTime = 4 * time.Minute
)

var stormCustomers = []string{"CUST-10001", "CUST-10002", "CUST-10003"}

// Two replicas on one database behind a proxy that hands requests to them in
// turn, one of them killed again and again at any moment of a storm of refunds:
// what was acknowledged is there, and nothing is there twice. What a client got
// no answer to it sends again under its key, wherever that arrives.
func TestHTTPReplicasAreKilledAndNothingIsLost(t *testing.T) {
	kills, between := 5, 40 // and about how many refunds are acknowledged between two kills
	if os.Getenv("HTTP_FULL") != "" {
		kills = 100
	}
	database := postgrestest.URL(t)
	if err := postgres.Migrate(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	tenant := mustBe(access.ParseTenant(stormTenant))
	dollar := mustBe(money.ParseCurrency("USD"))
	for _, id := range stormCustomers {
		op := operation.Operation{
			ID: system.IDs{}.NewID(), Tenant: tenant, Principal: "seed", Tool: "seed", Key: mustBe(operation.ParseKey("seed-" + id)),
			At: time.Now().UTC().Truncate(time.Millisecond),
		}
		if _, err := store.Do(t.Context(), op, customers.Open{
			ID: mustBe(customers.ParseID(id)), Profile: customers.Profile{Name: "Somebody", Email: "somebody@example.com"}, Status: customers.Active,
			Opening: money.FromMinor(stormOpening, dollar), CreatedAt: op.At,
		}); err != nil {
			t.Fatal(err)
		}
	}

	p := newRoundRobin(t)
	const token = "storm-token"
	environ := []string{
		"MCP_TRANSPORT=http", "LEDGER_BACKEND=postgres", "LEDGER_POSTGRES_URL=" + database, "AUTH_MODE=static", "AUTH_TOKENS=" + tokenFile(t, token),
		"MCP_PUBLIC_URL=" + p.server.URL + "/mcp", "REQUIRE_OPERATION_KEY=true",
	}
	var replicas [2]*replica
	for i := range replicas {
		replicas[i] = startReplica(t, environ)
		p.to[i].Store(replicas[i].address)
	}

	s := &storm{t: t, url: p.server.URL + "/mcp", token: token, deadline: time.Now().Add(stormTime)}
	var all sync.WaitGroup
	for i := range stormClients {
		all.Go(func() { s.client(i) })
	}
	defer func() { s.over.Store(true); all.Wait() }()
	for n := range kills {
		s.waitFor(&s.acknowledged, s.acknowledged.Load()+1+rand.Int64N(int64(2*between)))
		i := n % 2
		if rand.IntN(3) == 0 {
			i = rand.IntN(2)
		}
		inFlight, failed := p.inFlight.Load(), p.failed.Load()
		replicas[i].kill()
		t.Logf("killed replica %d with %d requests under way", i, inFlight)
		s.waitFor(&p.failed, failed+1) // the proxy meets it
		replicas[i] = startReplica(t, environ)
		p.to[i].Store(replicas[i].address)
	}
	s.waitFor(&s.acknowledged, s.acknowledged.Load()+int64(between)) // the last one is back too
	s.over.Store(true)
	all.Wait()
	if t.Failed() {
		return
	}
	t.Logf("%d refunds acknowledged, %d of them after they were sent again, %d found under their key by then; %d requests broke off",
		len(s.booked), s.again.Load(), s.replayed.Load(), p.failed.Load())

	// What is booked is what was acknowledged: each once, and nothing else.
	for _, id := range stormCustomers {
		customer, subject := mustBe(customers.ParseID(id)), journal.Subject{Kind: customers.Kind.Name, ID: id}
		head, booked, cents := journal.Head{}, map[string]int{}, int64(0)
		for {
			page, err := store.ListEntries(t.Context(), tenant, subject, head.Number, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				if head, err = journal.Verify(head, subject, e); err != nil {
					t.Fatal(err)
				}
				booked[e.Operation().Key.String()]++
			}
		}
		for before := int64(0); ; {
			page, err := store.ListRefunds(t.Context(), tenant, customer, before, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, r := range page {
				before = r.Number
				s.compare(r)
				cents += r.Amount.Minor()
			}
		}
		for key, n := range booked {
			if n != 1 {
				t.Errorf("%s is booked %d times", key, n)
			}
			if _, ok := s.keys[key]; !ok && !strings.HasPrefix(key, "seed-") {
				t.Errorf("%s is booked and was never acknowledged", key)
			}
			delete(s.keys, key)
		}
		accounts, err := store.ListAccounts(t.Context(), tenant, id[:len(id)-1], 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range accounts {
			if a.ID == customer && a.Balance().Minor() != stormOpening-cents {
				t.Errorf("the balance of %s is %d, not %d", id, a.Balance().Minor(), stormOpening-cents)
			}
		}
	}
	for key := range s.keys {
		t.Errorf("%s was acknowledged and is lost", key)
	}
	for id := range s.booked {
		t.Errorf("refund %s was acknowledged and is lost", id)
	}
}

func mustBe[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// replica is a server that runs, as its own process.
type replica struct {
	cmd     *exec.Cmd
	ended   chan struct{}
	address string
}

func startReplica(t *testing.T, environ []string) *replica {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), childMode + "=1", "MCP_HTTP_ADDR=127.0.0.1:0"}, environ...)
	log := &lockedBuffer{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &replica{cmd: cmd, ended: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(r.ended) }()
	t.Cleanup(r.kill)
	listens := regexp.MustCompile(`"msg":"serving".*"listens":"([^"]+)"`)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if found := listens.FindStringSubmatch(log.String()); found != nil {
			r.address = found[1]
			return r
		}
		select {
		case <-r.ended:
			t.Fatalf("a replica ends at once: %s", log)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("a replica does not listen: %s", log)
		}
	}
}

func (r *replica) kill() {
	_ = r.cmd.Process.Kill() // it may be gone
	<-r.ended
}

// roundRobin is a proxy that hands requests to two servers in turn, dead or
// alive, and never sends one twice.
type roundRobin struct {
	server           *httptest.Server
	to               [2]atomic.Value // their addresses
	turn             atomic.Uint64
	inFlight, failed atomic.Int64
}

func newRoundRobin(t *testing.T) *roundRobin {
	t.Helper()
	p := &roundRobin{}
	// Connections are not kept, so that none is sent into that a dead server left.
	transport := &http.Transport{DisableKeepAlives: true}
	p.server = httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			host := p.to[p.turn.Add(1)%2].Load().(string)
			r.SetURL(&url.URL{Scheme: "http", Host: host})
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			p.failed.Add(1)
			w.WriteHeader(http.StatusBadGateway)
		},
	})
	handler := p.server.Config.Handler
	p.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.inFlight.Add(1)
		defer p.inFlight.Add(-1)
		handler.ServeHTTP(w, r)
	})
	t.Cleanup(p.server.Close)
	return p
}

// storm is what was asked for and acknowledged.
type storm struct {
	t          *testing.T
	url, token string
	deadline   time.Time
	over       atomic.Bool

	acknowledged, again, replayed atomic.Int64

	mu     sync.Mutex
	booked map[string]asked  // by the id of the refund
	keys   map[string]string // ids of refunds
}

type asked struct {
	customer string
	cents    int64
}

// waitFor waits until a counter is there. In the end the test fails, by the
// clients, which are then all gone.
func (s *storm) waitFor(counter *atomic.Int64, count int64) {
	for counter.Load() < count && !s.late() {
		time.Sleep(time.Millisecond)
	}
}

func (s *storm) late() bool { return time.Now().After(s.deadline) }

// client refunds until the storm is over, each until it is acknowledged.
func (s *storm) client(n int) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	for i := 0; !s.over.Load() && !s.t.Failed(); i++ {
		key := fmt.Sprintf("storm-%d-%d", n, i)
		a := asked{stormCustomers[rand.IntN(len(stormCustomers))], 1 + rand.Int64N(300)}
		id, replayed := s.untilAcknowledged(client, key, a)
		if id == "" {
			return
		}
		if replayed {
			s.replayed.Add(1)
		}
		if i%4 == 0 { // once more, of the other replica as a rule
			if other, replayed := s.untilAcknowledged(client, key, a); other != id || !replayed {
				s.t.Errorf("%s is %s, and then %s (replayed: %v)", key, id, other, replayed)
				return
			}
		}
		s.mu.Lock()
		if s.booked == nil {
			s.booked, s.keys = map[string]asked{}, map[string]string{}
		}
		if _, twice := s.booked[id]; twice {
			s.t.Errorf("two keys have the refund %s", id)
		}
		s.booked[id], s.keys[key] = a, id
		s.mu.Unlock()
		s.acknowledged.Add(1)
	}
}

// untilAcknowledged asks under one key until it is told the refund's id.
func (s *storm) untilAcknowledged(client *http.Client, key string, a asked) (id string, replayed bool) {
	const meta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},`
	arguments := fmt.Sprintf(`{"customer_id":%q,"amount":%d.%02d,"reason":"Item arrived damaged"}`, a.customer, a.cents/100, a.cents%100)
	for try := 0; ; try++ {
		if s.late() || s.t.Failed() {
			s.t.Errorf("%s was not acknowledged in time, after %d tries", key, try)
			return "", false
		}
		if try > 0 {
			time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
		}
		sessionless := rand.IntN(2) == 0 // both protocols
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"trigger_refund","arguments":` + arguments + `,"_meta":{`
		if sessionless {
			body += meta
		}
		body += `"refundledger.dev/operation-key":"` + key + `"}}}`
		req := mustBe(http.NewRequestWithContext(context.Background(), http.MethodPost, s.url, strings.NewReader(body)))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + s.token}}
		if sessionless {
			req.Header["Mcp-Protocol-Version"], req.Header["Mcp-Method"], req.Header["Mcp-Name"] = []string{"2026-07-28"}, []string{"tools/call"}, []string{"trigger_refund"}
		}
		resp, err := client.Do(req)
		if err != nil {
			continue // no answer
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusServiceUnavailable {
			continue
		}
		var m struct {
			Result *struct {
				StructuredContent struct{ RefundID string }
				Content           []struct{ Text string }
				IsError           bool
				Meta              map[string]any `json:"_meta"`
			}
		}
		if err := json.Unmarshal(b, &m); err != nil || m.Result == nil {
			s.t.Errorf("%s: %d %s", key, resp.StatusCode, b)
			return "", false
		}
		if m.Result.IsError {
			if text := fmt.Sprint(m.Result.Content); strings.Contains(text, `"OUTCOME_UNKNOWN"`) || strings.Contains(text, `"BACKEND_UNAVAILABLE"`) {
				continue
			}
			s.t.Errorf("%s: %s", key, b)
			return "", false
		}
		if try > 0 {
			s.again.Add(1)
		}
		return m.Result.StructuredContent.RefundID, m.Result.Meta["refundledger.dev/replayed"] == true
	}
}

// compare crosses a refund that is booked off the acknowledged ones.
func (s *storm) compare(r refunds.Refund) {
	id := r.ID.String()
	a, ok := s.booked[id]
	if !ok || a.customer != r.Customer.String() || a.cents != r.Amount.Minor() {
		s.t.Errorf("refund %s of %s is booked; acknowledged was %v", id, r.Amount, a)
	}
	delete(s.booked, id)
}
