package postgres_test

import (
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/pgtest"
	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

var seqN atomic.Uint64

func opOf() operation.Operation {
	t, _ := access.ParseTenant("default")
	k, _ := operation.ParseKey(fmt.Sprintf("1829f0abc-%016d-%08x", seqN.Add(1), mrand.Uint32()))
	op := operation.Operation{Tenant: t, Principal: "local", Tool: "trigger_refund", Key: k, At: time.Now().UTC().Truncate(time.Millisecond)}
	rand.Read(op.ID[:])
	return op
}

var why, _ = refunds.ParseReason("damaged on arrival, customer sent photos")

func cust(n int) customers.ID { id, _ := customers.ParseID(fmt.Sprintf("CUST-%05d", n)); return id }

func fill(t testing.TB, s ports.Ledger, n int) {
	var wg sync.WaitGroup
	for w := range 256 {
		wg.Go(func() {
			for i := w; i < n; i += 256 {
				_, err := s.Do(t.Context(), opOf(), customers.Open{ID: cust(i), Profile: customers.Profile{Name: "Ada Lovelace", Email: "ada@example.com"}, Status: customers.Active, Opening: money.FromMinor(1_000_000_000_000, usd), CreatedAt: time.Unix(0, 0)})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func loadRun(t testing.TB, s ports.Ledger, name string, clients int, hot bool, d time.Duration) {
	var stop atomic.Bool
	var done, failed atomic.Int64
	var wg sync.WaitGroup
	c0 := cpu()
	t0 := time.Now()
	for range clients {
		wg.Go(func() {
			for !stop.Load() {
				c := 1
				if !hot {
					c = mrand.IntN(10000)
				}
				_, err := s.Do(t.Context(), opOf(), refunds.Trigger{Request: refunds.Request{Customer: cust(c), Amount: money.FromMinor(1+mrand.Int64N(500), usd), Reason: why}})
				if err != nil {
					failed.Add(1)
					t.Log(err)
				}
				done.Add(1)
			}
		})
	}
	time.Sleep(d)
	stop.Store(true)
	wg.Wait()
	el, c := time.Since(t0), cpu()-c0
	n := done.Load()
	t.Logf("%-8s hot=%-5v c=%-3d tps=%-8.0f wall-us=%-7.1f cpu-us=%-7.1f failed=%d", name, hot, clients, float64(n)/el.Seconds(), float64(el.Microseconds())/float64(n), float64(c.Microseconds())/float64(n), failed.Load())
}

func TestZZ(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		t.Skip()
	}
	d, _ := time.ParseDuration(os.Getenv("ZZ"))
	clients := 64
	if c := os.Getenv("CLIENTS"); c != "" {
		clients, _ = strconv.Atoi(c)
	}
	for _, hot := range []bool{false, true} {
		url := pgtest.URL(t)
		if err := postgres.Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		s := openAt(t, url)
		fill(t, s, 10000)
		loadRun(t, s, "postgres", clients, hot, d)
	}
}
