package restclient_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/restclient/internal/faulty"
	"github.com/refundledger/refundledger/adapters/restserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

func TestAddresses(t *testing.T) {
	for address, good := range map[string]bool{
		"https://ledger.example.com":          true,
		"https://ledger.example.com/api/":     true,
		"http://127.0.0.1:3344":               true,
		"http://localhost:3344":               true,
		"http://[::1]:3344":                   true,
		"http://ledger.example.com":           false,
		"http://10.0.0.1":                     false,
		"http://127.0.0.1.example.com":        false,
		"http://localhost.example.com":        false,
		"https://user:secret@example.com":     false,
		"https://example.com?token=secret":    false,
		"https://example.com#secret":          false,
		"ftp://example.com":                   false,
		"ledger.example.com":                  false,
		"https:ledger.example.com":            false,
		"":                                    false,
		"https://example.com:secret":          false,
		"https://%zz.example.com/secret":      false,
		"https:///path-without-a-host/secret": false,
	} {
		_, err := restclient.New(restclient.Options{URL: address, Token: "t"})
		if (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error shows it: %v", address, err)
		}
	}
	for _, token := range []string{"", "two words", "line\n", "ä", strings.Repeat("t", 257)} {
		if _, err := restclient.New(restclient.Options{URL: "https://example.com", Token: token}); err == nil {
			t.Errorf("the token %q is taken", token)
		}
	}
}

// Once most calls fail the breaker keeps new ones back at once; what is known
// of a call is no failure; look-ups of unknown outcomes pass it.
func TestBreaker(t *testing.T) { inBubble(t, breaker) }

func breaker(t *testing.T) {
	internal := `{"status":500,"code":"INTERNAL","reason":"internal","detail":"Internal error.","retryable":false}`
	store := opened(t)
	bad := faulty.New(newServer(t, store), faulty.Writes(faulty.AnswersAfter(500, "application/problem+json", internal)))
	client, _ := piped(t, bad)
	seen := map[string]int64{}
	const calls = 60
	for n := range calls {
		seen[said(client.Do(t.Context(), asked(fmt.Sprintf("k-%d", n)), refund(customer, 1)))]++
	}
	executed := opening - balance(t, store, customer)
	if seen["replayed"] != executed || seen[unreachable] != calls-executed || executed < 20 || executed > 40 {
		t.Errorf("%v, executed %d", seen, executed)
	}
	if n := int64(len(bad.Requests(http.MethodPost))); n != executed {
		t.Errorf("%d were sent", n)
	}

	refusing := faulty.New(newServer(t, store), faulty.Good)
	client, _ = piped(t, refusing)
	for n := range calls {
		if got := said(client.Do(t.Context(), asked(fmt.Sprintf("r-%d", n)), refund(customer, opening+1))); got != "POLICY_VIOLATION/balance_exceeded" {
			t.Fatal(got)
		}
	}
	if got := said(client.Do(t.Context(), asked("after"), refund(customer, 1))); got != "done" {
		t.Errorf("refusals opened the breaker: %s", got)
	}
}

// Nobody listens: nothing was sent, so nothing can have happened.
func TestNobodyListens(t *testing.T) { inBubble(t, nobodyListens) }

func nobodyListens(t *testing.T) {
	client, stop := piped(t, http.NotFoundHandler())
	stop()
	began := time.Now()
	if got := said(client.Do(t.Context(), asked("k"), refund(customer, 1))); got != unreachable {
		t.Error(got)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s to find out", took)
	}
}

// A list is read whole, however long its rows are: pages end before the limit
// of a body.
func TestLongLists(t *testing.T) {
	t.Parallel()
	store := memory.New()
	open(t, store, customer, 1_000_000)
	// As long on the wire as a reason can be.
	reason := must(refunds.ParseReason("a" + strings.Repeat("\u2028", refunds.MaxReason-2) + "b"))
	const many = 600
	for n := range many {
		cmd := refund(customer, 1)
		cmd.Reason = reason
		if _, err := store.Do(t.Context(), asked(fmt.Sprintf("k-%d", n)), cmd); err != nil {
			t.Fatal(err)
		}
	}
	bad := faulty.New(newServer(t, store), faulty.Good)
	client := newClient(t, serveQuietly(t, bad).URL, "acme")
	list, err := client.ListRefunds(t.Context(), acme, customer, 0, math.MaxInt)
	if err != nil || len(list) != many {
		t.Errorf("%d refunds, %v", len(list), err)
	}
	entries, err := client.ListEntries(t.Context(), acme, journal.Subject{Kind: customers.Kind.Name, ID: customer.String()}, 0, math.MaxInt)
	if err != nil || len(entries) != many+1 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if n := len(bad.Requests(http.MethodGet)); n < 4 {
		t.Errorf("all of it came in %d pages", n)
	}
}

// A list begins behind any text, also one that a service takes for no cursor, and
// of what has no history there are no entries.
func TestListsBehindWhatIsNoID(t *testing.T) {
	t.Parallel()
	store := memory.New()
	if err := demo.Seed(t.Context(), store, acme, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	client := newClient(t, serveQuietly(t, newServer(t, store)).URL, "acme")
	order := must(payables.ParseOrderID("PO-2001"))
	for _, after := range []string{"", "CUST-0000", "CUST-00001 ", "INV-100", "INV-1001/", "V-", "V 1", "GR-3/", "\x00", "~", "-", strings.Repeat("x", 80)} {
		for _, limit := range []int{0, 1, 2, 99} {
			for name, list := range map[string]func(restserver.Store) (any, error){
				"accounts": func(s restserver.Store) (any, error) { return s.ListAccounts(t.Context(), acme, after, limit) },
				"vendors":  func(s restserver.Store) (any, error) { return s.ListVendors(t.Context(), acme, after, limit) },
				"receipts": func(s restserver.Store) (any, error) { return s.ListReceipts(t.Context(), acme, order, after, limit) },
				"invoices": func(s restserver.Store) (any, error) {
					return s.ListInvoices(t.Context(), acme, ports.InvoiceFilter{Undecided: true}, after, limit)
				},
				"entries": func(s restserver.Store) (any, error) {
					return s.ListEntries(t.Context(), acme, journal.Subject{Kind: customers.Kind.Name, ID: after}, 0, limit)
				},
				"entries of a kind": func(s restserver.Store) (any, error) {
					return s.ListEntries(t.Context(), acme, journal.Subject{Kind: "a" + after, ID: "V-100"}, 0, limit)
				},
			} {
				got, err := list(client)
				want, _ := list(store)
				if fmt.Sprint(got) != fmt.Sprint(want) || err != nil {
					t.Errorf("%d %s behind %q: %v, %v, want %v", limit, name, after, got, err, want)
				}
			}
		}
	}
}

// What does not fit is refused before it is sent.
func TestARequestThatIsTooLarge(t *testing.T) {
	t.Parallel()
	bad := faulty.New(newServer(t, memory.New()), faulty.Good)
	client := newClient(t, serveQuietly(t, bad).URL, "acme")
	var cmd customers.Import
	for i := range 20_000 {
		cmd.Customers = append(cmd.Customers, customers.Open{
			ID: must(customers.ParseID(fmt.Sprintf("CUST-%05d", i))), Profile: customers.Profile{Name: "Test", Email: "t@example.com"},
			Status: customers.Active, Opening: money.FromMinor(1, usd), CreatedAt: time.Date(2024, 1, 15, 0, 0, 0, 0, time.UTC),
		})
	}
	if _, err := client.Do(t.Context(), asked("k"), cmd); fault.CodeOf(err) != fault.InvalidInput {
		t.Error(err)
	}
	if n := len(bad.Requests(http.MethodPost)); n != 0 {
		t.Errorf("%d were sent", n)
	}
}
