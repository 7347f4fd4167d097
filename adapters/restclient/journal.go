package restclient

import (
	"context"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

func loadEntry(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	subject, number, ok := ledger.ParseEntryRef(ref)
	if !ok || number < 1 {
		return nil, nil
	}
	entries, err := c.ListEntries(ctx, t, subject, number-1, 1)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return ledger.Booked{Entry: entries[0]}, nil
}

func loadOutcome(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	principal, key, _ := strings.Cut(ref.ID, "/")
	if _, err := operation.ParseKey(key); err != nil {
		return nil, nil
	}
	return one(ctx, c, t, principal, ref, restwire.GetOperation, restwire.OutcomeForm, key)
}

// ListEntries implements ports.Journal.
func (c *Client) ListEntries(ctx context.Context, t access.Tenant, s journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	if named := restwire.Subjects[s.Kind]; named == nil || !named(s.ID) {
		return nil, nil // there is no history of it, and a service would not know the name
	}
	after = max(after, 0)
	return list(ctx, c, t, restwire.ListEntries, restwire.EntryPages, []string{s.Kind, s.ID}, "after", strconv.FormatInt(after, 10), limit, func(before *journal.Entry, e journal.Entry) bool {
		if before != nil {
			return e.Subject() == s && e.Number() > before.Number()
		}
		return e.Subject() == s && e.Number() > after
	})
}
