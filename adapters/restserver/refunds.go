package restserver

import (
	"net/http"
	"strconv"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/refunds"
)

var refundReads = []route{
	{restwire.ListRefunds, listRefunds},
	record(restwire.GetRefund, restwire.RefundForm, booked(refunds.RefOf, "refund")),
	record(restwire.GetReversal, restwire.ReversalForm, booked(refunds.ReversalRef, "reversal")),
}

// booked reads the customer and the number of one of its refunds from the path.
func booked(ref func(customers.ID, int64) ledger.Ref, what string) func(request) (ledger.Ref, error, error) {
	return func(r request) (ledger.Ref, error, error) {
		id, err := r.customer()
		if err != nil {
			return ledger.Ref{}, nil, err
		}
		n, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
		if err != nil {
			return ledger.Ref{}, nil, invalidOne("number", "must be a whole number")
		}
		return ref(id, n), noSuch(what+"_not_found", what), nil
	}
}

func listRefunds(s *Server, r request, _ http.Header) (any, error) {
	id, err := r.customer()
	if err != nil {
		return nil, err
	}
	cursor, err := r.below()
	if err != nil {
		return nil, err
	}
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	rows, err := s.store.ListRefunds(r, r.Tenant(), id, cursor, limit+1)
	if err != nil {
		return nil, err
	}
	var out restwire.Refunds
	out.Refunds, out.Next = page(r.Tenant(), rows, limit, restwire.RefundForm, func(x refunds.Refund) string { return strconv.FormatInt(x.Number, 10) })
	return out, nil
}
