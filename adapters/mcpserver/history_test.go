package mcpserver

import (
	"context"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/ports"
)

// torn has no entries to show, or counts one more than there is.
type torn struct {
	ports.Journal
	empty bool
}

func (j torn) ListEntries(ctx context.Context, t access.Tenant, s journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	if !j.empty {
		return j.Journal.ListEntries(ctx, t, s, after, limit)
	}
	return nil, nil
}

func (j torn) Count(context.Context, access.Tenant) (ports.Counts, error) {
	return ports.Counts{Versions: 1}, nil
}

// What does not hold is told with its customer or vendor and its entry, if it is in
// a history at all.
func TestWhatDoesNotHoldIsNamed(t *testing.T) {
	for _, tt := range []struct {
		arguments string
		empty     bool
		want      string
	}{
		{`{"customer_id":"CUST-00001"}`, true, `"firstBadEntry":{"customerId":"CUST-00001","entry":1,"why":"the record ends at entry 1`},
		{`{}`, false, `"firstBadEntry":{"why":"0 entries of customers and vendors are on record, and there should be 1"}`},
	} {
		s := newServer(t, nil)
		a := *s.app
		j := torn{a.Journal, tt.empty}
		a.Journal, a.Census = j, j
		s.app = &a
		out := callTool(t, s, "verify_ledger", tt.arguments, "")
		if out.failed != nil || out.IsError || !strings.Contains(string(out.raw), `"holds":false`) || !strings.Contains(string(out.raw), tt.want) {
			t.Errorf("%s: it answers %s %+v", tt.arguments, out.raw, out.failed)
		}
	}
}
