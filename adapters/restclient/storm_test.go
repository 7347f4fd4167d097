package restclient_test

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/restclient/internal/faulty"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

var storm = flag.Int("storm", 200, "how many refunds go through the storm")

// Through a network that drops, delays, slices and resets, before and after the
// commit, nothing is executed twice, and nothing that happened is called failed.
func TestStorm(t *testing.T) {
	const clients, accounts = 32, 4
	store := opened(t)
	for i := range accounts {
		open(t, store, must(customers.ParseID(fmt.Sprintf("CUST-1000%d", i))), 1_000_000)
	}
	server := serveQuietly(t, newServer(t, store))
	proxy, err := faulty.NewProxy(strings.TrimPrefix(server.URL, "http://"), faulty.Trouble{
		Refuse: 0.05, ResetBefore: 0.1, ResetAfter: 0.25, ResetInside: 0.05, Delay: 0.1, Slice: 0.1, MaxDelay: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	client := newClient(t, proxy.URL(), "acme", func(o *restclient.Options) { o.Timeout = callTime })

	var mu sync.Mutex
	seen := map[string]int{}
	answers := map[string]string{} // by key
	began := time.Now()
	var all sync.WaitGroup
	next := make(chan int)
	for range clients {
		all.Go(func() {
			for n := range next {
				key := fmt.Sprintf("storm-%d", n)
				got := said(client.Do(t.Context(), asked(key), refund(must(customers.ParseID(fmt.Sprintf("CUST-1000%d", n%accounts))), int64(1+n%50))))
				mu.Lock()
				seen[got]++
				answers[key] = got
				mu.Unlock()
			}
		})
	}
	for n := range *storm {
		next <- n
	}
	close(next)
	all.Wait()
	took := time.Since(began)
	proxy.Close() // it counts what it made until then

	executed := map[string]int{}
	for i := range accounts {
		entries, err := store.ListEntries(t.Context(), acme, journal.Subject{Kind: customers.Kind.Name, ID: fmt.Sprintf("CUST-1000%d", i)}, 0, math.MaxInt32)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Command() == refunds.TriggerName {
				executed[e.Operation().Key.String()]++
			}
		}
	}
	calm := newClient(t, server.URL, "acme")
	twice, lies, unknowns := 0, 0, 0
	for key, got := range answers {
		if executed[key] > 1 {
			twice++
		}
		happened := got == "done" || got == "replayed"
		if got == unknown {
			ref := ledger.OutcomeRef("bot", must(operation.ParseKey(key)))
			v, err := calm.Load(t.Context(), acme, ref)
			if err != nil {
				unknowns++
				continue
			}
			_, happened = ledger.Get[ledger.Outcome](v, ref)
		}
		if happened != (executed[key] == 1) {
			lies++
			t.Errorf("%s: answered %s, executed %d times", key, got, executed[key])
		}
	}
	t.Logf("%d refunds in %s, trouble %v, answers %v: executed twice %d, answers that are not true %d, unknown after the look-up %d",
		*storm, took.Round(time.Millisecond), proxy.Made, seen, twice, lies, unknowns)
	if twice+lies+unknowns > 0 || seen["done"]+seen["replayed"] == 0 {
		t.Fail()
	}
}
