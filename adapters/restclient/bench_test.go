//go:build unix

package restclient_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
// and on many, beside a bare handler and a bare client that exchange the same
// bytes.
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
				store := kind.open(b)
				var ids []customers.ID
				for i := range accounts {
					id := must(customers.ParseID(fmt.Sprintf("CUST-%05d", i)))
					open(b, store, id, 1<<50)
					ids = append(ids, id)
				}
				server := httptest.NewServer(newServer(b, store))
				defer server.Close()
				client := newClient(b, server.URL, "acme", func(o *restclient.Options) { o.Timeout = time.Minute })
				atOnce(b, func(n int64) error {
					_, err := client.Do(b.Context(), asked(fmt.Sprintf("k-%d", n)), refund(ids[int(n)%len(ids)], 1))
					return err
				})
			})
		}
	}
	b.Run("bare", func(b *testing.B) {
		const body = `{"amountMinor":1,"currency":"USD","reason":"Canary reason: arrived broken."}`
		answer := []byte(`{"operation":{"tenant":"acme","id":"45dd64d2-3324-4911-9049-5bdf316eb834","principal":"bot","via":"gateway","tool":"trigger_refund","key":"k-1000000","at":"2026-11-30T20:02:12.421Z"},"command":"refunds.trigger","fingerprint":"f1e2b349d33e176b9adb319e7f7c4fe0be4b000c63f5cda88a11bba2624dbea4","refund":{"tenant":"acme","id":"45dd64d2-3324-4911-9049-5bdf316eb834","customerId":"CUST-00001","amountMinor":1,"currency":"USD","reason":"Canary reason: arrived broken.","status":"processed","processedAt":"2026-11-30T20:02:12.421Z","remainingMinor":1125899906842623,"number":100}}`)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(answer)
		}))
		defer server.Close()
		wire := &http.Transport{MaxIdleConnsPerHost: benchClients}
		defer wire.CloseIdleConnections()
		client := &http.Client{Transport: wire}
		atOnce(b, func(int64) error {
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
		})
	})
}

// atOnce calls b.N times from benchClients goroutines.
func atOnce(b *testing.B, call func(n int64) error) {
	var next atomic.Int64
	var all sync.WaitGroup
	took := make([][]time.Duration, benchClients)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpu(b)
	for i := range benchClients {
		all.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				began := time.Now()
				if err := call(n); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/op") // what a busy machine does not change much
	sorted := slices.Concat(took...)
	slices.Sort(sorted)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(sorted[len(sorted)*99/100].Microseconds())/1000, "p99-ms")
}

// cpu is the time that the process has computed.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
