//go:build unix

package restclient_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/ports/portstest"
)

// benchClients is how many clients call at once.
const benchClients = 64

// BenchmarkRefund is a refund through the client and the server, on one account
// and on many.
func BenchmarkRefund(b *testing.B) {
	for _, kind := range []struct {
		name string
		open func(testing.TB) portstest.Store
	}{
		{"memory", func(testing.TB) portstest.Store { return memory.New() }},
		{"sqlite", inFile},
	} {
		for _, accounts := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/accounts=%d", kind.name, accounts), func(b *testing.B) {
				call := product(b, kind.open(b), accounts)
				b.ReportAllocs()
				b.ResetTimer()
				var m measured
				m.atOnce(b, b.N, call)
				b.StopTimer()
				m.report(b, "")
			})
		}
	}
}

// BenchmarkRefundBesideBare is a refund in memory, and beside it, turn by turn,
// since a machine is never as busy as it was, a bare handler and a bare client
// that exchange the same bytes. The ratios are what the product does of what the
// bare ones do: in calls, and in calls for the same computing time.
func BenchmarkRefundBesideBare(b *testing.B) {
	const turn = 2_000
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the commands have it, for both
	ours, theirs := product(b, memory.New(), 1000), bare(b)
	var m, floor measured
	b.ResetTimer()
	for n := 0; n < b.N; n += turn {
		m.atOnce(b, min(turn, b.N-n), ours)
		floor.atOnce(b, min(turn, b.N-n), theirs)
	}
	b.StopTimer()
	m.report(b, "")
	floor.report(b, "bare-")
	b.ReportMetric(floor.elapsed.Seconds()/m.elapsed.Seconds(), "ratio")
	b.ReportMetric(floor.cpu.Seconds()/m.cpu.Seconds(), "cpu-ratio")
}

// product is a refund through the client and the server over a store with so
// many accounts.
func product(b *testing.B, store portstest.Store, accounts int) func(n int64) error {
	var ids []customers.ID
	for i := range accounts {
		id := must(customers.ParseID(fmt.Sprintf("CUST-%05d", i)))
		open(b, store, id, 1<<50)
		ids = append(ids, id)
	}
	server := httptest.NewServer(newServer(b, store))
	b.Cleanup(server.Close)
	client := newClient(b, server.URL, "acme", func(o *restclient.Options) { o.Timeout = time.Minute })
	return func(n int64) error {
		_, err := client.Do(b.Context(), asked(fmt.Sprintf("k-%d", n)), refund(ids[int(n)%len(ids)], 1))
		return err
	}
}

// bare is an exchange of the same bytes.
func bare(b *testing.B) func(int64) error {
	const body = `{"amountMinor":1,"currency":"USD","reason":"Canary reason: arrived broken."}`
	answer := []byte(`{"operation":{"tenant":"acme","id":"45dd64d2-3324-4911-9049-5bdf316eb834","principal":"bot","via":"gateway","tool":"trigger_refund","key":"k-1000000","at":"2026-11-30T20:02:12.421Z"},"command":"refunds.trigger","fingerprint":"f1e2b349d33e176b9adb319e7f7c4fe0be4b000c63f5cda88a11bba2624dbea4","refund":{"tenant":"acme","id":"45dd64d2-3324-4911-9049-5bdf316eb834","customerId":"CUST-00001","amountMinor":1,"currency":"USD","reason":"Canary reason: arrived broken.","status":"processed","processedAt":"2026-11-30T20:02:12.421Z","remainingMinor":1125899906842623,"number":100}}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(answer)
	}))
	b.Cleanup(server.Close)
	wire := &http.Transport{MaxIdleConnsPerHost: benchClients}
	b.Cleanup(wire.CloseIdleConnections)
	client := &http.Client{Transport: wire}
	return func(int64) error {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/v1/customers/CUST-00001/refunds", strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer acme"+tokenWord)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k-1000000")
		response, err := client.Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
}

// measured is what calls took, together and one by one.
type measured struct {
	elapsed, cpu time.Duration
	took         []time.Duration
}

// atOnce makes n more calls from benchClients goroutines.
func (m *measured) atOnce(b *testing.B, n int, call func(n int64) error) {
	first := int64(len(m.took))
	var next atomic.Int64
	var all sync.WaitGroup
	took := make([][]time.Duration, benchClients)
	began, before := time.Now(), cpu(b)
	for i := range benchClients {
		all.Go(func() {
			for k := next.Add(1); k <= int64(n); k = next.Add(1) {
				began := time.Now()
				if err := call(first + k); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	all.Wait()
	m.elapsed += time.Since(began)
	m.cpu += cpu(b) - before
	m.took = append(m.took, slices.Concat(took...)...)
}

func (m *measured) report(b *testing.B, what string) {
	n := len(m.took)
	if n == 0 {
		b.Fatal("nothing was done")
	}
	slices.Sort(m.took)
	b.ReportMetric(float64(m.cpu.Microseconds())/float64(n), what+"cpu-µs/op") // what a busy machine does not change much
	b.ReportMetric(float64(n)/m.elapsed.Seconds(), what+"calls/s")
	b.ReportMetric(float64(m.took[n*99/100].Microseconds())/1000, what+"p99-ms")
}

// cpu is the time that the process has computed.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
