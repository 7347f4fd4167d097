package memory

import (
	"context"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

// Count implements ports.Census. Outcomes are not counted: one that made entries
// is kept as the first of them. No write is applied meanwhile.
func (s *Store) Count(ctx context.Context, t access.Tenant) (ports.Counts, error) {
	c := ports.Counts{Entries: map[string]int64{}, Records: map[ledger.Kind]int64{}}
	s.readAll(t, func(b *books) {
		for i := range b.parts {
			b.parts[i].count(&c)
		}
	})
	return c, nil
}

// count adds what is in the part.
func (own *part) count(c *ports.Counts) {
	for _, h := range own.histories {
		for _, e := range h.entries {
			c.Entries[e.Command()]++
		}
		if account, ok := h.account.(customers.Account); ok {
			c.Records[customers.Kind]++
			c.Versions += account.Version()
		}
		c.Records[refunds.Kind] += int64(len(h.refunds))
	}
	for ref, record := range own.records {
		switch r := record.(type) {
		case payables.Vendor:
			c.Versions += r.Head.Number
		case customers.Imported:
			c.Imported += int64(r.Opened)
		case payables.NumberClaim:
			c.Records[ref.Kind] += int64(len(r.Claims))
			continue
		}
		c.Records[ref.Kind]++
	}
}
