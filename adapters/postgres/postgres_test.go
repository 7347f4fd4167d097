package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
	"github.com/refundledger/refundledger/ports/portstest"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }

func TestLaws(t *testing.T) { portstest.Ledger(t, open) }

func TestLikeMemory(t *testing.T) {
	portstest.Model(t, func(t testing.TB) portstest.Store {
		url := migrated(t)
		s := &restarting{must(postgres.Open(t.Context(), url)), url}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}, func(testing.TB) portstest.Store { return memory.New() })
}

// restarting is a store that is closed and opened again in between.
type restarting struct {
	*postgres.Store
	url string
}

func (s *restarting) Restart() error {
	err := s.Close()
	if err == nil {
		s.Store, err = postgres.Open(context.Background(), s.url)
	}
	return err
}

// The laws hold while connections are killed, the ones that commit among them,
// for callers who ask again under the same key.
func TestLawsWhileConnectionsAreKilled(t *testing.T) {
	const each = 4 // for each law, so that it comes to its end
	var kills atomic.Int64
	portstest.Ledger(t, func(t testing.TB) portstest.Store {
		url := migrated(t)
		s := stubborn{openAt(t, url)}
		stop := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			c := connect(t, url)
			defer c.Close(context.Background())
			for n := int64(0); n < each; {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(mathrand.Int64N(int64(20 * time.Millisecond)))):
				}
				// One at a time, whatever it does at that moment.
				tag, err := c.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE pid <> pg_backend_pid() AND application_name = $1 AND state <> 'idle' ORDER BY random() LIMIT 1`, applicationName(url))
				if err != nil {
					t.Error(err)
					return
				}
				n += tag.RowsAffected()
				kills.Add(tag.RowsAffected())
			}
		})
		t.Cleanup(func() { close(stop); all.Wait() })
		return s
	})
	t.Logf("%d connections were killed while they worked", kills.Load())
	if kills.Load() < 20 {
		t.Errorf("only %d connections were killed", kills.Load())
	}
}

// stubborn asks again, under the same key, when the ledger can not be reached or
// does not know, until the call ends.
type stubborn struct{ *postgres.Store }

// repeated reads until it is answered.
func repeated[R any](ctx context.Context, read func() (R, error)) (R, error) {
	for {
		if r, err := read(); !again(ctx, err) {
			return r, err
		}
	}
}

func (s stubborn) ListInvoices(ctx context.Context, t access.Tenant, f ports.InvoiceFilter, after string, limit int) ([]payables.Invoice, error) {
	return repeated(ctx, func() ([]payables.Invoice, error) { return s.Store.ListInvoices(ctx, t, f, after, limit) })
}

func (s stubborn) LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) ([]payables.Invoice, error) {
	return repeated(ctx, func() ([]payables.Invoice, error) { return s.Store.LatestInvoices(ctx, t, v, before, limit) })
}

func (s stubborn) SumInvoices(ctx context.Context, t access.Tenant) ([]ports.InvoiceSum, error) {
	return repeated(ctx, func() ([]ports.InvoiceSum, error) { return s.Store.SumInvoices(ctx, t) })
}

func (s stubborn) ListReceipts(ctx context.Context, t access.Tenant, o payables.OrderID, after string, limit int) ([]payables.Receipt, error) {
	return repeated(ctx, func() ([]payables.Receipt, error) { return s.Store.ListReceipts(ctx, t, o, after, limit) })
}

func (s stubborn) ListVendors(ctx context.Context, t access.Tenant, after string, limit int) ([]payables.Vendor, error) {
	return repeated(ctx, func() ([]payables.Vendor, error) { return s.Store.ListVendors(ctx, t, after, limit) })
}

func (s stubborn) Count(ctx context.Context, t access.Tenant) (ports.Counts, error) {
	return repeated(ctx, func() (ports.Counts, error) { return s.Store.Count(ctx, t) })
}

func again(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (fault.CodeOf(err) == fault.BackendUnavailable || fault.CodeOf(err) == fault.OutcomeUnknown)
}

func (s stubborn) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	for {
		o, err := s.Store.Do(ctx, op, cmd)
		if again(ctx, err) {
			continue
		}
		if err == nil && o.Operation.ID == op.ID {
			o.Replayed = false // an earlier one of these calls did it
		}
		return o, err
	}
}

func (s stubborn) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	for {
		if v, err := s.Store.Load(ctx, t, refs...); !again(ctx, err) {
			return v, err
		}
	}
}

func (s stubborn) ListRefunds(ctx context.Context, t access.Tenant, c customers.ID, before int64, limit int) ([]refunds.Refund, error) {
	for {
		if l, err := s.Store.ListRefunds(ctx, t, c, before, limit); !again(ctx, err) {
			return l, err
		}
	}
}

func (s stubborn) ListAccounts(ctx context.Context, t access.Tenant, after string, limit int) ([]customers.Account, error) {
	for {
		if l, err := s.Store.ListAccounts(ctx, t, after, limit); !again(ctx, err) {
			return l, err
		}
	}
}

func (s stubborn) ListEntries(ctx context.Context, t access.Tenant, subject journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	for {
		if l, err := s.Store.ListEntries(ctx, t, subject, after, limit); !again(ctx, err) {
			return l, err
		}
	}
}

// open opens a ledger in a new schema.
func open(t testing.TB) portstest.Store { return openAt(t, migrated(t)) }

// migrated returns the URL of a new schema that is ready.
func migrated(t testing.TB) string {
	t.Helper()
	url := postgrestest.URL(t)
	// The name tells this test's connections from those of others.
	url += "&application_name=ledger_" + rand.Text()
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	return url
}

func applicationName(url string) string {
	_, name, _ := strings.Cut(url, "&application_name=")
	return name
}

func openAt(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// connect makes a connection past the store, under another name.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	c.RuntimeParams["application_name"] = "operator"
	conn, err := pgx.ConnectConfig(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

var (
	acme  = must(access.ParseTenant("acme"))
	usd   = must(money.ParseCurrency("USD"))
	alice = must(customers.ParseID("CUST-00001"))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ask(key string) operation.Operation {
	op := operation.Operation{Tenant: acme, Principal: "bot", Via: "desk", Tool: "trigger_refund", Key: must(operation.ParseKey(key)), At: time.UnixMilli(1_770_000_000_123).UTC()}
	_, _ = rand.Read(op.ID[:])
	return op
}

func opening(cents int64) ledger.Command {
	return customers.Open{
		ID: alice, Profile: customers.Profile{Name: "Alice", Email: "alice@example.com"}, Status: customers.Active,
		Opening: money.FromMinor(cents, usd), CreatedAt: time.UnixMilli(0),
	}
}

func refund(cents int64) ledger.Command {
	return refunds.Trigger{Request: refunds.Request{Customer: alice, Amount: money.FromMinor(cents, usd), Reason: must(refunds.ParseReason("Arrived broken."))}}
}

func do(t testing.TB, s *postgres.Store, key string, cmd ledger.Command) ledger.Outcome {
	t.Helper()
	o, err := s.Do(t.Context(), ask(key), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func account(t testing.TB, s *postgres.Store) customers.Account {
	t.Helper()
	v, err := s.Load(t.Context(), acme, alice.Ref())
	if err != nil {
		t.Fatal(err)
	}
	a, ok := ledger.Get[customers.Account](v, alice.Ref())
	if !ok {
		t.Fatal("there is no account")
	}
	return a
}

// Each of these stores knows of the others as little as another process would.
func stores(t testing.TB, n int) []*postgres.Store {
	url := migrated(t)
	all := make([]*postgres.Store, n)
	for i := range all {
		all[i] = openAt(t, url)
	}
	return all
}

func TestManyStoresOneBusyCustomer(t *testing.T) {
	const processes, callers, each = 4, 16, 20
	s := stores(t, processes)
	do(t, s[0], "open", opening(processes*callers*each+7))
	var all sync.WaitGroup
	for p := range s {
		for c := range callers {
			all.Go(func() {
				for n := range each {
					if _, err := s[p].Do(t.Context(), ask(fmt.Sprintf("%d-%d-%d", p, c, n)), refund(1)); err != nil {
						t.Errorf("%v", err)
					}
				}
			})
		}
	}
	all.Wait()
	if a := account(t, s[0]); a.Balance().Minor() != 7 || a.Version() != processes*callers*each+1 {
		t.Errorf("%s at version %d", a.Balance(), a.Version())
	}
}

// Captured 80.00, twenty refunds of 15.00 at once: five succeed.
func TestParallelRefundsNeverExceedTheBalance(t *testing.T) {
	s := stores(t, 4)
	do(t, s[0], "open", opening(80_00))
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for i := range 20 {
		all.Go(func() {
			_, err := s[i%4].Do(t.Context(), ask(fmt.Sprintf("k%d", i)), refund(15_00))
			mu.Lock()
			defer mu.Unlock()
			seen[reason(err)]++
		})
	}
	all.Wait()
	if a := account(t, s[0]); seen["done"] != 5 || seen["balance_exceeded"] != 15 || a.Balance().Minor() != 5_00 {
		t.Errorf("%v, remaining %s", seen, a.Balance())
	}
}

// One key in four processes at the same moment: one effect, one answer. Another
// request under the key conflicts, whichever process it comes to.
func TestOneKeyInManyStores(t *testing.T) {
	s := stores(t, 4)
	do(t, s[0], "open", opening(100_00))
	for round := range 10 {
		var all sync.WaitGroup
		var mu sync.Mutex
		seen, answers := map[string]int{}, map[ledger.Record]int{}
		for i := range 32 {
			all.Go(func() {
				o, err := s[i%4].Do(t.Context(), ask(fmt.Sprintf("k%d", round)), refund(1))
				mu.Lock()
				defer mu.Unlock()
				if o.Replayed {
					seen["replayed"]++
				} else {
					seen[reason(err)]++
				}
				if err == nil {
					answers[o.Answer]++
				}
			})
		}
		all.Wait()
		if seen["done"] != 1 || seen["replayed"] != 31 || len(answers) != 1 {
			t.Fatalf("round %d: %v, %d answers", round, seen, len(answers))
		}
	}
	if a := account(t, s[0]); a.Version() != 11 {
		t.Errorf("version %d", a.Version())
	}
	if _, err := s[3].Do(t.Context(), ask("k0"), refund(2)); reason(err) != "operation_key_reused" {
		t.Errorf("got %v", err)
	}
}

// Processes open the same accounts and use the same keys in different orders:
// whoever waits for whom, nobody gets to see a deadlock.
func TestNoDeadlockReachesACaller(t *testing.T) {
	s := stores(t, 4)
	var all sync.WaitGroup
	for i := range s {
		for n := range 40 {
			all.Go(func() {
				if i%2 == 1 {
					n = 39 - n
				}
				cmd := opening(100).(customers.Open)
				cmd.ID = must(customers.ParseID(fmt.Sprintf("CUST-%05d", n)))
				_, err := s[i].Do(t.Context(), ask(fmt.Sprintf("open-%d", n)), cmd)
				if err != nil {
					t.Errorf("open %d: %v", n, err)
				}
			})
		}
	}
	all.Wait()
	list, err := s[0].ListAccounts(t.Context(), acme, "", 100)
	if err != nil || len(list) != 40 {
		t.Errorf("%d accounts, %v", len(list), err)
	}
}

func reason(err error) string {
	switch f := fault.Of(err); {
	case f != nil:
		return f.Reason
	case err != nil:
		return err.Error()
	}
	return "done"
}

func TestOpenSaysWhatIsInTheWay(t *testing.T) {
	url := postgrestest.URL(t)
	_, err := postgres.Open(t.Context(), url)
	if err == nil || !strings.Contains(err.Error(), "`refund-ledgerd migrate`") && !strings.Contains(err.Error(), "refund-ledgerd migrate") {
		t.Errorf("without a schema: %v", err)
	}
	for range 2 { // twice is fine
		if err := postgres.Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	s := openAt(t, url)
	_ = s.Close()

	c := connect(t, url)
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), `INSERT INTO schema_version (version_id, is_applied) VALUES (99, true)`); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() error{
		"open":    func() error { _, err := postgres.Open(t.Context(), url); return err },
		"migrate": func() error { return postgres.Migrate(t.Context(), url) },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "version 99") || !strings.Contains(err.Error(), "newer release") {
			t.Errorf("%s with a newer schema: %v", name, err)
		}
	}

	const secret = "s3cr3t-word"
	for _, bad := range []string{
		"postgres://ledger:" + secret + "%zz@localhost/db", "postgres://ledger:" + secret + "@local host:54x2/db",
		"host=localhost port=x password=" + secret, "user=ledger password='" + secret, "mysql://ledger:" + secret + "@localhost/db",
	} {
		if _, err := postgres.Open(t.Context(), bad); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := fmt.Sprintf("postgres://ledger:%s@%s/db", secret, closed.Addr())
	_ = closed.Close()
	for name, open := range map[string]func() error{
		"open":    func() error { _, err := postgres.Open(t.Context(), nobody); return err },
		"migrate": func() error { return postgres.Migrate(t.Context(), nobody) },
	} {
		if err := open(); fault.CodeOf(err) != fault.BackendUnavailable || !fault.Of(err).Retryable || strings.Contains(err.Error(), secret) {
			t.Errorf("%s without a server: %v", name, err)
		}
	}
}

// The server crashes and comes back: what was acknowledged is there, what was
// not is known by its key, and the store goes on by itself.
func TestTheServerGoesAndComesBack(t *testing.T) {
	server := postgrestest.Start(t, "fsync=on", "full_page_writes=on")
	url := server.URL()
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, url)
	const callers = 8
	do(t, s, "open", opening(1_000_000))
	stop := make(chan struct{})
	var all sync.WaitGroup
	var mu sync.Mutex
	acknowledged, codes := map[string]ledger.Record{}, map[string]int{}
	for c := range callers {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("%d-%d", c, n)
				for ctx := context.Background(); ; {
					o, err := s.Do(ctx, ask(key), refund(1))
					mu.Lock()
					codes[fault.CodeOf(err).String()]++
					if err == nil {
						acknowledged[key] = o.Answer
					}
					mu.Unlock()
					if err == nil {
						break
					}
					if !again(ctx, err) {
						t.Errorf("%v", err)
						return
					}
				}
			}
		})
	}
	for range 3 {
		time.Sleep(300 * time.Millisecond)
		if err := errors.Join(server.Stop(), server.Start()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond)
	close(stop)
	all.Wait()
	t.Logf("%d acknowledged, calls by code: %v", len(acknowledged), codes)
	calm := stubborn{s} // who reads over a connection of before is told to ask again
	view, err := calm.Load(t.Context(), acme, alice.Ref())
	if err != nil {
		t.Fatal(err)
	}
	a, _ := ledger.Get[customers.Account](view, alice.Ref())
	if n := int(a.Version() - 1); n != len(acknowledged) || a.Balance().Minor() != int64(1_000_000-n) {
		t.Errorf("%d refunds acknowledged, %d made", len(acknowledged), n)
	}
	for key, answer := range acknowledged {
		v, err := calm.Load(t.Context(), acme, ledger.OutcomeRef("bot", must(operation.ParseKey(key))))
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := ledger.Get[ledger.Outcome](v, ledger.OutcomeRef("bot", must(operation.ParseKey(key)))); !ok || o.Answer != answer {
			t.Errorf("%s: acknowledged %+v, kept %+v", key, answer, o.Answer)
		}
	}
}

// A process that stops in the middle of a batch loses its locks, and another
// one that waits for them is not kept for ever.
func TestLocksAreNotWaitedForForEver(t *testing.T) {
	url := migrated(t)
	s := openAt(t, url)
	do(t, s, "open", opening(100))
	c := connect(t, url)
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), `BEGIN; SELECT FROM accounts FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	// The last tenth of the call is the ledger's time to say that nothing happened:
	// enough of it on a slow machine too.
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	if _, err := s.Do(ctx, ask("k"), refund(1)); fault.CodeOf(err) != fault.BackendUnavailable {
		t.Errorf("got %v", err)
	}
	if _, err := c.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if o := do(t, s, "k", refund(1)); o.Replayed {
		t.Error("it was said that nothing happened, and it had")
	}
}

// violates reports whether err says that a constraint does not hold: class 23 of
// the SQLSTATE codes. A statement that is wrong proves nothing.
func violates(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(e.Code, "23")
}

func TestTheDatabaseChecksAgain(t *testing.T) {
	url := migrated(t)
	s := openAt(t, url)
	do(t, s, "open", opening(100_00))
	do(t, s, "k", refund(10_00))
	do(t, s, "r", refunds.Reverse{Customer: alice, Refund: 2, Reason: must(refunds.ParseReason("The payment failed."))})
	do(t, s, "a", customers.Adjust{Customer: alice, Change: money.FromMinor(-5, usd), Why: "A cent too many."})
	c := connect(t, url)
	defer c.Close(t.Context())
	for _, tt := range []struct{ name, statement string }{
		{"a balance below zero", `UPDATE accounts SET balance_minor = -1, version = version + 1`},
		{"a lot below zero", `UPDATE lots SET balance_minor = -1`},
		{"a version that stands still", `UPDATE accounts SET balance_minor = 1`},
		{"another currency", `UPDATE accounts SET currency = 'EUR', version = version + 1`},
		{"a status nobody knows", `UPDATE accounts SET status = 'happy', version = version + 1`},
		{"an account deleted", `DELETE FROM accounts`},
		{"a lot deleted", `DELETE FROM lots`},
		{"an entry changed", `UPDATE entries SET command = 'x'`},
		{"an entry deleted", `DELETE FROM entries`},
		{"the entries emptied", `TRUNCATE entries`},
		{"a posting changed", `UPDATE postings SET amount_minor = 1`},
		{"a posting deleted", `DELETE FROM postings`},
		{"an operation changed", `UPDATE operations SET command = 'x'`},
		{"an operation deleted", `DELETE FROM operations`},
		{"a refund changed", `UPDATE refunds SET amount_minor = 1`},
		{"a refund deleted", `DELETE FROM refunds`},
		{"a reversal changed", `UPDATE reversals SET amount_minor = 1`},
		{"a reversal of nothing", `INSERT INTO reversals SELECT tenant, customer, 77, 78, id, amount_minor, currency, digits, reason, reversed_at, remaining_minor FROM reversals`},
		{"an adjustment changed", `UPDATE adjustments SET change_minor = 1`},
		{"a key twice", `INSERT INTO operations SELECT * FROM operations`},
		{"an entry's number twice", `INSERT INTO entries SELECT * FROM entries`},
		{"postings that do not balance", `INSERT INTO postings VALUES ('acme','account','CUST-00001',99,1,'captured','','debit',5,'USD',2), ('acme','account','CUST-00001',99,2,'paid_out','','credit',4,'USD',2)`},
		{"postings that balance over two currencies only", `INSERT INTO postings VALUES ('acme','account','CUST-00001',99,1,'captured','','debit',5,'USD',2), ('acme','account','CUST-00001',99,2,'paid_out','','credit',5,'EUR',2)`},
		{"a posting of nothing", `INSERT INTO postings VALUES ('acme','account','CUST-00001',99,1,'captured','','debit',0,'USD',2)`},
		{"postings for an entry that is there", `INSERT INTO postings VALUES ('acme','account','CUST-00001',1,7,'captured','','debit',5,'USD',2), ('acme','account','CUST-00001',1,8,'paid_out','','credit',5,'USD',2)`},
	} {
		if _, err := c.Exec(t.Context(), tt.statement); !violates(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if a := account(t, s); a.Version() != 4 {
		t.Errorf("%+v", a)
	}
}

func TestMigrationsGoForwardOnly(t *testing.T) {
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "+goose Down") {
			t.Errorf("%s goes back", f)
		}
	}
}
