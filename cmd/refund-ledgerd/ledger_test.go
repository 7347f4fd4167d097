package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// desk runs commands on a SQLite file of its own.
type desk struct {
	t       *testing.T
	environ []string
}

func newDesk(t *testing.T) desk {
	t.Helper()
	return desk{t, []string{"LEDGER_SQLITE_PATH=" + filepath.Join(t.TempDir(), "ledger.db")}}
}

// does runs a command that must end with the code and say the words.
func (d desk) does(stdin string, code int, words string, args ...string) string {
	d.t.Helper()
	var out, errs bytes.Buffer
	got := run(d.t.Context(), args, d.environ, console{strings.NewReader(stdin), &out, &errs})
	said := out.String() + errs.String()
	if got != code || !strings.Contains(said, words) {
		d.t.Errorf("%s: exit code %d, not %d, and it says\n%s\nwithout %q", strings.Join(args, " "), got, code, said, words)
	}
	return out.String()
}

const people = `id,name,email,status,currency,balance,created_at
CUST-10001,"Dana ""D"" Scully",dana@example.com,active,JPY,7300,2024-01-15T09:30:00Z
CUST-10002,Émile,emile@example.com,suspended,KWD,1.234,2024-01-15T10:30:00.5+01:00
`

func TestAnOperatorsDay(t *testing.T) {
	d := newDesk(t)
	d.does("", 1, "no such file", "verify")
	d.does("", 0, "up to date", "migrate")
	d.does("", 1, "no customers and no vendors of the tenant default", "verify")
	d.does("", 0, "are there", "seed")
	d.does("", 0, "are there", "seed")
	d.does("", 0, "holds: 3 customers, 3 vendors, 36 entries, 6 postings", "verify")
	d.does(people, 0, "2 customers, all of them well formed", "import", "customers", "--dry-run", "-")
	d.does(people, 0, "2 customers opened, 0 were there already", "import", "customers", "-")
	d.does(people, 0, "0 customers opened, 2 were there already", "import", "customers", "-")
	d.does(strings.Replace(people, "7300", "7301", 1), 1, "line 2: CUST-10001 exists already", "import", "customers", "-")
}

func TestCorrectionsAreNamedAndHappenOnce(t *testing.T) {
	d := newDesk(t)
	d.does("", 0, "", "seed")
	adjust := []string{"adjust", "--as", "ada", "--key", "ticket-7", "--reason", "counted again", "CUST-00001", "-12.50"}
	d.does("", 0, "is 487.50 USD (entry 2)", adjust...)
	d.does("", 0, "is 487.50 USD (entry 2)", adjust...)
	d.does("", 1, "operation_key_reused", "adjust", "--as", "ada", "--key", "ticket-7", "--reason", "counted again", "CUST-00001", "5")
	d.does("", 1, "--as", "adjust", "--as", "a b", "--reason", "x", "CUST-00001", "5")
	d.does("", 1, "invalid_adjustment", "adjust", "CUST-00001", "5")
	d.does("", 1, "amount_out_of_range", "adjust", "--reason", "x", "CUST-00001", "99999999999999999")
	d.does("", 1, "refund_not_found", "reverse", "--reason", "The bank returned it", "CUST-00001", "2")
	d.does("", 2, "usage", "reverse", "CUST-00001")
	if journal := d.does("", 0, `"principal":"ada"`, "export", "journal"); !strings.Contains(journal, `"key":"ticket-7"`) || !strings.Contains(journal, `"subject":"vendor/V-300"`) {
		t.Error(journal)
	}
	d.does("", 0, "holds: 3 customers, 3 vendors, 37 entries", "verify")
}

func TestEveryBadLineIsNamed(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct{ name, file, words string }{
		{"an empty file", "", "line 1: the file is empty"},
		{"another header", "id,name\n", "line 1: the header must name exactly"},
		{"a header alone", "id,name,email,status,currency,balance,created_at\n", "an import holds 1 to 50000 customers, not 0"},
		{"a bare quote", "id,name,email,status,currency,balance,created_at\nCU\"ST-00007,A,a@b.c,active,USD,1,2024-01-15T09:30:00Z\n", `line 2: bare "`},
		{"too few fields", strings.Replace(people, ",active", "", 1), "line 2: it has 6 fields, the header 7"},
		{"a fraction of a yen", strings.Replace(people, "7300", "7300.5", 1), "line 2: balance: the amount has more decimals"},
		{"a negative balance", strings.Replace(people, "7300", "-1", 1), "line 2: balance must not be negative"},
		{"a currency in lower case", strings.Replace(people, "JPY", "jpy", 1), "line 2: currency:"},
		{"a status nobody knows", strings.Replace(people, "suspended", "closed", 1), "line 3: status:"},
		{"a day without a time", strings.Replace(people, "2024-01-15T09:30:00Z", "2024-01-15", 1), "line 2: created_at:"},
		{"a customer twice", people + strings.Split(people, "\n")[1] + "\n", "line 4: CUST-10001 stands there twice"},
		{"JSON with a name nobody knows", `{"id":"CUST-10001","name":"A","email":"a@b.c","status":"active","currency":"USD","balance":1,"created_at":"2024-01-15T09:30:00Z","vip":true}`, `unknown property "vip"`},
		{"JSON with a balance as a text", `{"id":"CUST-10001","name":"A","email":"a@b.c","status":"active","currency":"USD","balance":"1","created_at":"2024-01-15T09:30:00Z"}`, "line 1: balance must be a number"},
		{"half a line of JSON", `{"id":`, "line 1: it is not JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := desk{t, d.environ}
			d.does(c.file, 1, c.words, "import", "customers", "--dry-run", "-")
			d.does(c.file, 1, c.words, "import", "customers", "-")
		})
	}
	d.does("", 1, "no such file", "verify") // not even a file was made
}

// Who has the export and the description of the encoding can recompute the
// chain, without a line of this program's stores.
func TestTheExportProvesItself(t *testing.T) {
	d := newDesk(t)
	d.does(people, 0, "", "import", "customers", "-")
	d.does("", 0, "", "adjust", "--reason", "counted again", "CUST-10002", "-1.2")
	lines := bufio.NewScanner(strings.NewReader(d.does("", 0, "", "export", "journal")))
	heads := map[string]journal.Head{}
	n := 0
	for lines.Scan() {
		var x exported
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		kind, id, _ := strings.Cut(x.Subject, "/")
		subject := journal.Subject{Kind: kind, ID: id}
		head, err := journal.Verify(heads[x.Subject], subject, restored(t, x, subject))
		if err != nil {
			t.Fatal(err)
		}
		heads[x.Subject] = head
		n++
	}
	if n != 3 {
		t.Errorf("%d lines", n)
	}
}

func restored(t *testing.T, x exported, subject journal.Subject) journal.Entry {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tenant, err := access.ParseTenant(x.Tenant)
	must(err)
	opID, err := operation.ParseID(x.Operation)
	must(err)
	key, err := operation.ParseKey(x.Key)
	must(err)
	var facts []operation.Fact
	for _, f := range x.Facts {
		facts = append(facts, operation.Fact{Name: f.Name, Value: f.Value})
	}
	var postings []journal.Posting
	for _, p := range x.Postings {
		c, err := money.ParseCurrency(p.Currency)
		must(err)
		side := journal.Debit
		if p.Side == "credit" {
			side = journal.Credit
		}
		postings = append(postings, journal.Posting{Account: journal.Account(p.Account), Lot: p.Lot, Side: side, Amount: money.FromMinor(p.AmountMinor, c)})
	}
	hash := func(s string) (h journal.Hash) {
		_, err := hex.Decode(h[:], []byte(s))
		must(err)
		return h
	}
	op := operation.Operation{ID: opID, Tenant: tenant, Principal: x.Principal, Via: x.Via, Tool: x.Tool, Key: key, At: x.At.UTC()}
	return journal.Restore(x.Number, hash(x.Previous), hash(x.Hash), subject, op, x.Command, facts, postings)
}

func TestUsage(t *testing.T) {
	d := newDesk(t)
	d.does("", 0, "refund-ledgerd verify", "--help")
	d.does("", 0, "refund-ledgerd dev", "--version")
	d.does("", 2, `there is no command "pay"`, "pay")
	d.does("", 2, `there is no command "`+strings.Repeat("x", 64)+`";`, strings.Repeat("x", 5000))
	d.does("", 2, `import can not be followed by "custmers", but by: customers, vendors, orders, receipts, invoices;`, "import", "custmers", "-")
	d.does("", 2, `export can not be followed by "\x1b[2J", but by: journal;`, "export", "\x1b[2J")
	d.does("", 2, "token needs a word more: create;", "token")
	d.does("", 2, "--tenant", "verify", "--tenant", "a b")
	d.environ = append(d.environ, "LEDGER_BACKEND=disk")
	d.does("", 1, "LEDGER_BACKEND must be", "verify")
	d.environ = append(d.environ, "LEDGER_BACKEND=postgres", "LEDGER_POSTGRES_URL=postgres://u:hunter2@127.0.0.1:1/x?connect_timeout=1")
	if out := d.does("", 1, "", "verify"); strings.Contains(out, "hunter2") {
		t.Error("the password is shown")
	}
	d.does("", 0, "LEDGER_POSTGRES_URL", "config")
}

func TestTheFileOfTheLedgerIsPrivate(t *testing.T) {
	d := newDesk(t)
	d.does("", 0, "", "seed")
	info, err := os.Stat(strings.TrimPrefix(d.environ[0], "LEDGER_SQLITE_PATH="))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// Who only looks makes nothing: neither the file nor tables in somebody else's.
func TestALookMakesNoLedger(t *testing.T) {
	folder := t.TempDir()
	elses := filepath.Join(folder, "else.db")
	db, err := sql.Open("sqlite", elses)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = db.Exec("CREATE TABLE notes (text)"); errors.Join(err, db.Close()) != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty.db": "", "text.db": "Dear diary\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held := func() map[string]string {
		texts := map[string]string{}
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(folder, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			texts[f.Name()] = string(text)
		}
		return texts
	}
	before := held()
	for name, words := range map[string]string{"empty.db": "is no ledger", "else.db": "is no ledger", "text.db": "it is no SQLite file", "none.db": "no such file"} {
		d := desk{t, []string{"LEDGER_SQLITE_PATH=" + filepath.Join(folder, name)}}
		for _, args := range [][]string{
			{"verify"}, {"export", "journal"}, {"refunds", "CUST-00001"}, {"adjust", "--reason", "counted again", "CUST-00001", "5"},
			{"reverse", "--reason", "The bank returned it", "CUST-00001", "2"},
		} {
			d.does("", 1, words, args...)
		}
	}
	if after := held(); !maps.Equal(after, before) {
		t.Errorf("there are %v now, and were %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}
