package payables_test

import (
	"testing"

	"github.com/refundledger/refundledger/domain/payables"
)

// prove adds each vendor's entries up and compares every decision with its entry.
func prove(t testing.TB, b *books) {
	t.Helper()
	for _, r := range b.records {
		v, ok := r.(payables.Vendor)
		if !ok {
			continue
		}
		h := payables.NewHistory(v)
		for _, e := range b.entries[v.ID.Subject()] {
			if err := h.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
