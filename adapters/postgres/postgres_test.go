package postgres_test

import (
	"os"
	"testing"

	"github.com/refundledger/refundledger/adapters/internal/pgtest"
	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/ports/portstest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestLaws(t *testing.T) { portstest.Ledger(t, open) }

// open opens a ledger in a new schema.
func open(t testing.TB) portstest.Store {
	url := pgtest.URL(t)
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	return openAt(t, url)
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
