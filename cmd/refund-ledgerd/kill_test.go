//go:build unix

package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// serveChild makes the test binary the server that is killed.
const serveChild = "REFUND_LEDGERD_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveChild) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(run(ctx, []string{"serve"}, os.Environ(), console{os.Stdin, os.Stdout, os.Stderr}))
	}
	os.Exit(postgrestest.Main(m))
}

var kills = flag.Int("kills", 3, "how often the server is killed")

// A server that is killed in a storm of refunds loses none that was answered,
// and none is called failed that happened.
func TestKilledInAStorm(t *testing.T) {
	const clients = 16
	const least, most = 20, 400 * time.Millisecond // refunds that are answered between two kills, and then some time
	dir := t.TempDir()
	path, tokens := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "tokens")
	tenant, err := access.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := principal(tenant, "service", "refund-mcp", gatewayScopes)
	if err != nil {
		t.Fatal(err)
	}
	token, err := createToken(tokens, gateway)
	if err != nil {
		t.Fatal(err)
	}
	id, err := customers.ParseID("CUST-00001")
	if err != nil {
		t.Fatal(err)
	}
	usd, err := money.ParseCurrency("USD")
	if err != nil {
		t.Fatal(err)
	}
	why, err := refunds.ParseReason("Arrived broken.")
	if err != nil {
		t.Fatal(err)
	}
	asked := func(key string) operation.Operation {
		k, err := operation.ParseKey(key)
		if err != nil {
			panic(err)
		}
		return operation.Operation{ID: system.IDs{}.NewID(), Tenant: tenant, Principal: "bot", Tool: "test", Key: k, At: time.Now().UTC().Truncate(time.Millisecond)}
	}
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	open := customers.Open{ID: id, Profile: customers.Profile{Name: "Test", Email: "t@example.com"}, Status: customers.Active, Opening: money.FromMinor(1<<40, usd), CreatedAt: time.Date(2024, 1, 15, 0, 0, 0, 0, time.UTC)}
	if _, err := store.Do(t.Context(), asked("open"), open); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	start := func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), serveChild+"=1", "LEDGER_BACKEND=sqlite", "LEDGER_SQLITE_PATH="+path, "LEDGERD_TOKENS="+tokens, "LEDGERD_ADDR="+addr, "LOG_LEVEL=error")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); time.Now().Before(end); {
			if conn, err := net.Dial("tcp", addr); err == nil {
				_ = conn.Close()
				return c
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatal("it does not listen")
		return nil
	}
	client, err := restclient.New(restclient.Options{URL: "http://" + addr, Token: token, Timeout: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	var mu sync.Mutex
	answers := map[string]fault.Code{} // no code: it was done
	var done atomic.Int64
	ended := make(chan struct{})
	var all sync.WaitGroup
	server := start()
	for i := range clients {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				default:
				}
				key := fmt.Sprintf("kill-%d-%d", i, n)
				_, err := client.Do(t.Context(), asked(key), refunds.Trigger{Request: refunds.Request{Customer: id, Amount: money.FromMinor(1, usd), Reason: why}})
				mu.Lock()
				answers[key] = fault.CodeOf(err)
				mu.Unlock()
				if err != nil {
					time.Sleep(20 * time.Millisecond)
				} else {
					done.Add(1)
				}
			}
		})
	}
	storm := func() {
		for from, end := done.Load(), time.Now().Add(patience); done.Load() < from+least; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("nothing is done")
			}
		}
		time.Sleep(rand.N(most))
	}
	for range *kills {
		storm()
		if err := server.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = server.Wait()
		server = start()
	}
	storm()
	close(ended)
	all.Wait()
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("it did not end cleanly: %v", err)
	}

	if store, err = sqlite.Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	entries, err := store.ListEntries(t.Context(), tenant, journal.Subject{Kind: customers.Kind.Name, ID: id.String()}, 0, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	executed := map[string]int{}
	for _, e := range entries {
		executed[e.Operation().Key.String()]++
	}
	seen := map[string]int{}
	for key, code := range answers {
		switch {
		case executed[key] > 1:
			t.Errorf("%s was executed %d times", key, executed[key])
		case code == fault.Code{} && executed[key] != 1:
			t.Errorf("%s was answered, and is lost", key)
		case code == fault.BackendUnavailable && executed[key] != 0:
			t.Errorf("%s was called failed, and happened", key)
		case code != fault.Code{} && code != fault.BackendUnavailable && code != fault.OutcomeUnknown:
			t.Errorf("%s: %s", key, code)
		}
		seen[code.String()]++
	}
	v, err := store.Load(t.Context(), tenant, id.Ref())
	if err != nil {
		t.Fatal(err)
	}
	a, _ := ledger.Get[customers.Account](v, id.Ref())
	if took := int64(1<<40) - a.Balance().Minor(); took != int64(len(entries)-1) {
		t.Errorf("%d were taken in %d entries", took, len(entries)-1)
	}
	t.Logf("%d kills, answers %v, %d entries", *kills, seen, len(entries))
}
