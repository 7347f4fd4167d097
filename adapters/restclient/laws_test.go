package restclient_test

import (
	"flag"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/ports/portstest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "64"); err != nil { // they wait more than they work
		panic(err)
	}
	goleak.VerifyTestMain(tests(func() int { return postgrestest.Main(m) }))
}

// tests are what goleak runs before it looks for what is left.
type tests func() int

func (t tests) Run() int { return t() }

// A client knows the commands that have a resource, and its server has ids and
// a clock of its own.
var lacks = []portstest.Power{portstest.AnyCommand, portstest.Stamps}

func overMemory(t testing.TB) portstest.Store { return served(t, memory.New()) }

func overSQLite(t testing.TB) portstest.Store { return served(t, inFile(t)) }

func inMemory(testing.TB) portstest.Store { return memory.New() }

func inFile(t testing.TB) portstest.Store {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
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

func TestLawsOverMemory(t *testing.T) { portstest.Ledger(t, overMemory, lacks...) }

func TestLawsOverSQLite(t *testing.T) { portstest.Ledger(t, overSQLite, lacks...) }

func overPostgres(t testing.TB) portstest.Store { return served(t, inDatabase(t)) }

func inDatabase(t testing.TB) portstest.Store {
	url := postgrestest.URL(t)
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), url)
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

func TestLawsOverPostgres(t *testing.T) { portstest.Ledger(t, overPostgres, lacks...) }

func TestModelOverMemory(t *testing.T) {
	portstest.Model(t, func(t testing.TB) portstest.Store { return servedWithStamps(t, memory.New()) }, inMemory, portstest.AnyCommand)
}

func TestModelOverSQLite(t *testing.T) {
	portstest.Model(t, func(t testing.TB) portstest.Store { return servedWithStamps(t, inFile(t)) }, inMemory, portstest.AnyCommand)
}
