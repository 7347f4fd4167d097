package restclient

import (
	"context"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/refunds"
)

func loadRefund(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	return booked(ctx, c, t, ref, restwire.GetRefund, restwire.RefundForm)
}

func loadReversal(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	return booked(ctx, c, t, ref, restwire.GetReversal, restwire.ReversalForm)
}

// booked reads what is named by a customer and the number of an entry.
func booked[R ledger.Record, W any](ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref, resource restwire.Read, f restwire.Form[R, W]) (ledger.Record, error) {
	id, number, _ := strings.Cut(ref.ID, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if _, bad := customers.ParseID(id); bad != nil || err != nil || strconv.FormatInt(n, 10) != number {
		return nil, nil
	}
	return one(ctx, c, t, "", ref, resource, f, id, number)
}

// ListRefunds implements ports.Refunds.
func (c *Client) ListRefunds(ctx context.Context, t access.Tenant, id customers.ID, before int64, limit int) ([]refunds.Refund, error) {
	from := ""
	if before > 0 {
		from = strconv.FormatInt(before, 10)
	}
	return list(ctx, c, t, restwire.ListRefunds, restwire.RefundPages, []string{id.String()}, "cursor", from, limit, func(last *refunds.Refund, r refunds.Refund) bool {
		if last != nil {
			return r.Customer == id && r.Number < last.Number
		}
		return r.Customer == id && (before <= 0 || r.Number < before)
	})
}
