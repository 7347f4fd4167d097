package sqlite_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports/portstest"
)

func TestLaws(t *testing.T) { portstest.Ledger(t, open) }

func TestLikeMemory(t *testing.T) {
	portstest.Model(t, func(t testing.TB) portstest.Store {
		path := filepath.Join(t.TempDir(), "ledger.db")
		s := &restarting{must(sqlite.Open(t.Context(), path)), path}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}, func(testing.TB) portstest.Store { return memory.New() })
}

// restarting is a store that is closed and opened again in between.
type restarting struct {
	*sqlite.Store
	path string
}

func (s *restarting) Restart() error {
	err := s.Close()
	if err == nil {
		s.Store, err = sqlite.Open(context.Background(), s.path)
	}
	return err
}

// open opens a ledger in a new file.
func open(t testing.TB) portstest.Store {
	return openAt(t, filepath.Join(t.TempDir(), "ledger.db"))
}

func openAt(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
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

func do(t testing.TB, s *sqlite.Store, key string, cmd ledger.Command) ledger.Outcome {
	t.Helper()
	o, err := s.Do(t.Context(), ask(key), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func account(t testing.TB, s *sqlite.Store) customers.Account {
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

func TestWhatIsAnsweredIsThereAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ledger? 100% #1.db")
	s := openAt(t, path)
	do(t, s, "open", opening(100_00))
	first := do(t, s, "k", refund(10_00))
	before := account(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), ask("late"), refund(1)); fault.CodeOf(err) != fault.BackendUnavailable {
		t.Errorf("a closed store answers %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}

	s = openAt(t, path)
	if after := account(t, s); after.Head != before.Head || after.Balance() != before.Balance() {
		t.Errorf("before %+v, after %+v", before, after)
	}
	again := do(t, s, "k", refund(10_00))
	if !again.Replayed || again.Answer != first.Answer || again.Operation != first.Operation {
		t.Errorf("first %+v, after a restart %+v", first, again)
	}
}

// writeTo is set in the environment of another process of this test.
const writeTo = "LEDGER_TEST_WRITE_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(writeTo); path != "" {
		if err := storm(context.Background(), path, fmt.Sprint(os.Getpid())); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const stormOf = 200

// storm makes many refunds of one cent from many callers.
func storm(ctx context.Context, path, name string) error {
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, stormOf)
	for i := range stormOf {
		all.Go(func() { _, errs[i] = s.Do(ctx, ask(fmt.Sprintf("%s-%d", name, i)), refund(1)) })
	}
	all.Wait()
	return errors.Join(append(errs, s.Close())...)
}

func TestSeveralProcessesShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	const processes = 3
	s := openAt(t, path)
	do(t, s, "open", opening(stormOf*(processes+1)+5))
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			c := exec.Command(must(os.Executable()))
			c.Env = append(os.Environ(), writeTo+"="+path)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	if err := storm(t.Context(), path, "here"); err != nil { // a second store in this process
		t.Error(err)
	}
	all.Wait()
	if a := account(t, s); a.Balance().Minor() != 5 || a.Version() != stormOf*(processes+1)+1 {
		t.Errorf("%s at version %d", a.Balance(), a.Version())
	}
}

// Another process that keeps the file locked costs a write no more than the time
// of its call, and the answer says that nothing happened.
func TestAFileThatIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := openAt(t, path)
	do(t, s, "open", opening(100))
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	patient, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	waiting := make(chan error, 1)
	go func() { _, err := s.Do(patient, ask("patient"), refund(2)); waiting <- err }()

	short, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	if _, err := s.Do(short, ask("hasty"), refund(1)); fault.CodeOf(err) != fault.BackendUnavailable {
		t.Errorf("a call that can not wait: %v", err)
	}
	if _, err := other.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Errorf("a call that can: %v", err)
	}
	if got := account(t, s).Balance().Minor(); got != 98 {
		t.Errorf("the balance is %d", got)
	}
}

func TestSeveralProcessesMakeTheFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := sqlite.Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			_ = s.Close()
		})
	}
	all.Wait()
}

func TestWhatIsInTheWayIsSaid(t *testing.T) {
	folder := t.TempDir()
	refused := func(name, path string, want ...string) {
		t.Helper()
		s, err := sqlite.Open(t.Context(), path)
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: opened", name)
			return
		}
		for _, w := range append(want, path) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v does not say %q", name, err, w)
			}
		}
	}
	refused("no such folder", filepath.Join(folder, "none", "ledger.db"), "can not be opened", "folder")
	text := filepath.Join(folder, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("This is no database. ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("another sort of file", text, "no SQLite file")
	refused("a folder", folder, "can not be opened")

	newer := filepath.Join(folder, "newer.db")
	_ = openAt(t, newer)
	exec1(t, newer, `INSERT INTO schema_version (version_id, is_applied) VALUES (99, 1)`)
	refused("a newer schema", newer, "version 99", "newer release")
}

// A user who may only read gets an error at the start. Root may always write,
// so the test runs itself as somebody else.
func TestAFileThatCanNotBeWritten(t *testing.T) {
	if path := os.Getenv("LEDGER_TEST_READ_ONLY"); path != "" {
		_, err := sqlite.Open(t.Context(), path)
		fmt.Println("says:", err)
		return
	}
	folder, err := os.MkdirTemp("", "readonly")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "ledger.db")
	s := openAt(t, path)
	do(t, s, "open", opening(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	test := filepath.Join(folder, "test")
	if out, err := exec.Command("cp", must(os.Executable()), test).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, mode := range map[string]fs.FileMode{path: 0o444, folder: 0o555} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(test, "-test.run", "^TestAFileThatCanNotBeWritten$")
	c.Dir = "/"
	c.Env = append(os.Environ(), "LEDGER_TEST_READ_ONLY="+path)
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := c.CombinedOutput()
	if err != nil || !regexp.MustCompile(`says: sqlite: the ledger file .*can not be (written|opened)`).Match(out) {
		t.Errorf("%v: %s", err, out)
	}
}

// exec1 runs a statement past the store, as an operator might.
func exec1(t testing.TB, path, statement string, args ...any) {
	t.Helper()
	if err := try(path, statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func try(path, statement string, args ...any) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(statement, args...)
	return err
}

// violates reports whether err says that a constraint does not hold. A statement
// that is wrong proves nothing.
func violates(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Code()&0xff == code.SQLITE_CONSTRAINT
}

// replacements put a row of the table in the place of each that is there.
func replacements(tables ...string) map[string]string {
	all := map[string]string{}
	for _, t := range tables {
		all["a row of "+t+" replaced"] = "INSERT OR REPLACE INTO " + t + " SELECT * FROM " + t
	}
	return all
}

func TestTheDatabaseChecksAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := openAt(t, path)
	do(t, s, "open", opening(100_00))
	do(t, s, "k", refund(10_00))
	do(t, s, "r", refunds.Reverse{Customer: alice, Refund: 2, Reason: must(refunds.ParseReason("The payment failed."))})
	do(t, s, "a", customers.Adjust{Customer: alice, Change: money.FromMinor(-5, usd), Why: "A cent too many."})
	// No customer has a second lot yet, and none of these entries three postings.
	exec1(t, path, `INSERT INTO lot_rows VALUES ('acme', 'CUST-00001', 'second', 2, 0); INSERT INTO posting_rows VALUES (9, 1, 'captured', '', 'debit', 5, 'USD', 2)`)
	zeros := "zeroblob(32)"
	for _, tt := range []struct{ name, statement string }{
		{"a balance below zero", `UPDATE accounts SET balance_minor = -1, version = version + 1`},
		{"a lot below zero", `UPDATE accounts SET lot_minor = -1, version = version + 1`},
		{"another name for a lot", `UPDATE accounts SET lot = 'other', version = version + 1`},
		{"an account that loses its lot", `UPDATE accounts SET lot = NULL, lot_minor = NULL, version = version + 1`},
		{"a version that stands still", `UPDATE accounts SET balance_minor = 1`},
		{"another currency", `UPDATE accounts SET currency = 'EUR', version = version + 1`},
		{"a status nobody knows", `UPDATE accounts SET status = 'happy', version = version + 1`},
		{"an account deleted", `DELETE FROM accounts`},
		{"a lot deleted", `DELETE FROM lot_rows`},
		{"an entry changed", `UPDATE entry_rows SET facts = 'x'`},
		{"an entry deleted", `DELETE FROM entry_rows`},
		{"a posting changed", `UPDATE posting_rows SET amount_minor = 1`},
		{"a posting deleted", `DELETE FROM posting_rows`},
		{"the amount of two postings changed", `UPDATE entry_rows SET amount_minor = 1`},
		{"an operation changed", `UPDATE operations SET fingerprint = ` + zeros},
		{"an operation deleted", `DELETE FROM operations`},
		{"a refund changed", `UPDATE entry_rows SET reason = 'Another one.' WHERE reason IS NOT NULL`},
		{"a reversal changed", `UPDATE reversals SET amount_minor = 1`},
		{"an adjustment changed", `UPDATE adjustments SET change_minor = 1`},
		{"a key twice", `INSERT INTO operations SELECT 99, tenant, principal, key, fingerprint, command, tool, via, op, at, answer_kind, answer_id, answer_number FROM operations LIMIT 1`},
		{"an entry's number twice", `INSERT INTO entry_rows (seq, operation, tenant, subject_kind, subject_id, number, facts, previous, hash) SELECT 99, operation, tenant, subject_kind, subject_id, number, facts, previous, hash FROM entry_rows LIMIT 1`},
		{"an entry that does not balance", `INSERT INTO posting_rows VALUES (99, 1, 'captured', '', 'debit', 5, 'USD', 2), (99, 2, 'paid_out', '', 'credit', 4, 'USD', 2);
			INSERT INTO entry_rows (seq, operation, tenant, subject_kind, subject_id, number, facts, previous, hash) SELECT 99, operation, tenant, subject_kind, subject_id, 5, facts, previous, hash FROM entry_rows LIMIT 1`},
		{"an entry that balances over two currencies only", `INSERT INTO posting_rows VALUES (99, 1, 'captured', '', 'debit', 5, 'USD', 2), (99, 2, 'paid_out', '', 'credit', 5, 'EUR', 2);
			INSERT INTO entry_rows (seq, operation, tenant, subject_kind, subject_id, number, facts, previous, hash) SELECT 99, operation, tenant, subject_kind, subject_id, 5, facts, previous, hash FROM entry_rows LIMIT 1`},
		{"a gap in the numbers", `INSERT INTO entry_rows (seq, operation, tenant, subject_kind, subject_id, number, facts, previous, hash) SELECT 99, operation, tenant, subject_kind, subject_id, 6, facts, previous, hash FROM entry_rows LIMIT 1`},
		{"one posting of two", `INSERT INTO entry_rows (seq, operation, tenant, subject_kind, subject_id, number, facts, previous, hash, debit, amount_minor, currency, digits) SELECT 99, operation, tenant, subject_kind, subject_id, 5, facts, previous, hash, 'captured', 5, 'USD', 2 FROM entry_rows LIMIT 1`},
		{"two postings of no amount", `INSERT INTO entry_rows (seq, operation, tenant, subject_kind, subject_id, number, facts, previous, hash, debit, debit_lot, credit, credit_lot) SELECT 99, operation, tenant, subject_kind, subject_id, 5, facts, previous, hash, 'captured', '', 'paid_out', '' FROM entry_rows LIMIT 1`},
		{"a refund of no amount", `INSERT INTO entry_rows (seq, operation, tenant, subject_kind, subject_id, number, facts, previous, hash, reason, remaining_minor) SELECT 99, operation, tenant, subject_kind, subject_id, 5, facts, previous, hash, 'Broken.', 1 FROM entry_rows LIMIT 1`},
		{"a posting for an entry that is there", `INSERT INTO posting_rows VALUES (1, 7, 'captured', '', 'debit', 5, 'USD', 2)`},
		{"a key replaced", `INSERT OR REPLACE INTO operations SELECT 99, tenant, principal, key, ` + zeros + `, command, tool, via, op, at, answer_kind, answer_id, answer_number FROM operations LIMIT 1`},
		{"an operation replaced by its place", `INSERT OR REPLACE INTO operations SELECT seq, tenant, principal, 'new', fingerprint, command, tool, via, op, at, answer_kind, answer_id, answer_number FROM operations LIMIT 1`},
		{"an entry's number replaced", `INSERT OR REPLACE INTO entry_rows (seq, operation, tenant, subject_kind, subject_id, number, facts, previous, hash) SELECT 99, operation, tenant, subject_kind, subject_id, number, facts, previous, hash FROM entry_rows LIMIT 1`},
		{"an entry replaced by its place", `INSERT OR REPLACE INTO entry_rows (seq, operation, tenant, subject_kind, subject_id, number, facts, previous, hash) SELECT seq, operation, tenant, subject_kind, subject_id, 5, facts, previous, hash FROM entry_rows LIMIT 1`},
		{"a posting of nothing", `INSERT INTO posting_rows VALUES (99, 1, 'captured', '', 'debit', 0, 'USD', 2)`},
		{"a text for a number", `UPDATE lot_rows SET balance_minor = 'much'`},
	} {
		if err := try(path, "BEGIN; "+tt.statement+"; COMMIT"); !violates(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	exec1(t, path, `INSERT INTO imports VALUES ('acme', 'once', 1, 0, 0)`)
	for name, statement := range replacements("accounts", "lot_rows", "operations", "entry_rows", "posting_rows", "reversals", "adjustments", "imports") {
		if err := try(path, statement); !violates(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a := account(t, s); a.Version() != 4 || len(a.Lots) != 2 || a.Lots[1].Name != "second" {
		t.Errorf("%+v", a)
	}
}

// A record that was changed past the store is an error for those who ask for
// it, and for nobody else.
func TestARecordThatIsCorrupt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := openAt(t, path)
	do(t, s, "open", opening(100_00))
	bob := customers.Open{ID: must(customers.ParseID("CUST-00002")), Profile: customers.Profile{Name: "B", Email: "b@c"}, Status: customers.Active, Opening: money.FromMinor(7, usd), CreatedAt: time.UnixMilli(0)}
	do(t, s, "bob", bob)
	exec1(t, path, `DROP TRIGGER accounts_version_grows; UPDATE accounts SET lot_minor = 99 WHERE id = 'CUST-00001'`)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if i%2 == 0 {
				if _, err := s.Do(t.Context(), ask(fmt.Sprintf("a%d", i)), refund(1)); err == nil || fault.Of(err) != nil {
					t.Errorf("a corrupt account: %v", err)
				}
				return
			}
			cmd := refund(1).(refunds.Trigger)
			cmd.Customer = bob.ID
			_, err := s.Do(t.Context(), ask(fmt.Sprintf("b%d", i)), cmd)
			if f := fault.Of(err); err != nil && (f == nil || f.Reason != "balance_exceeded") {
				t.Errorf("its neighbour: %v", err)
			}
		})
	}
	all.Wait()
	if _, err := s.Load(t.Context(), acme, alice.Ref()); err == nil || !strings.Contains(err.Error(), "lots do not sum") {
		t.Errorf("Load: %v", err)
	}
}

// What was booked by the rules of its day stays readable: a currency that is
// withdrawn, a reason that is too short by now.
func TestRecordsOutliveTheRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := openAt(t, path)
	do(t, s, "open", opening(100_00))
	do(t, s, "k", refund(10_00))
	exec1(t, path, `DROP TRIGGER accounts_fixed; DROP TRIGGER accounts_version_grows; DROP TRIGGER entries_no_update;
		UPDATE accounts SET currency = 'DEM'; UPDATE entry_rows SET currency = 'DEM'; UPDATE entry_rows SET reason = 'broken' WHERE reason IS NOT NULL`)
	if got := account(t, s).Balance().String(); got != "90.00 DEM" {
		t.Errorf("the balance is %s", got)
	}
	list, err := s.ListRefunds(t.Context(), acme, alice, 0, 10)
	if err != nil || len(list) != 1 || list[0].Amount.String() != "10.00 DEM" || list[0].Reason.String() != "broken" {
		t.Errorf("the refunds are %+v, %v", list, err)
	}
	entries, err := s.ListEntries(t.Context(), acme, alice.Subject(), 0, 10)
	if err != nil || len(entries) != 2 || entries[1].Postings()[0].Amount.String() != "10.00 DEM" {
		t.Errorf("the entries are %+v, %v", entries, err)
	}
}

// A table of versions that says less than there is ends the migrations, and does
// not begin them again and again.
func TestADamagedVersionIsSaid(t *testing.T) {
	for _, damage := range []string{"UPDATE schema_version SET is_applied = 0 WHERE version_id = 2", "DELETE FROM schema_version WHERE version_id = 2"} {
		path := filepath.Join(t.TempDir(), "ledger.db")
		if err := must(sqlite.Open(t.Context(), path)).Close(); err != nil {
			t.Fatal(err)
		}
		exec1(t, path, damage)
		if s, err := sqlite.Open(t.Context(), path); err == nil {
			t.Errorf("%s: it opens", damage)
			_ = s.Close()
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", damage, err)
		}
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
