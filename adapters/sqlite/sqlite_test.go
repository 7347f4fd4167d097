package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/ports/portstest"
)

func TestLaws(t *testing.T) { portstest.Ledger(t, open) }

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
