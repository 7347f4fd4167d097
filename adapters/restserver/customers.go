package restserver

import (
	"net/http"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
)

var customerReads = []route{
	{restwire.ListCustomers, listCustomers},
	record(restwire.GetCustomer, restwire.CustomerForm, func(r request) (ledger.Ref, error, error) {
		id, err := r.customer()
		return id.Ref(), customers.NotFound(id), err
	}),
}

// customer reads the customer's id from the path.
func (r request) customer() (customers.ID, error) {
	id, err := customers.ParseID(r.PathValue("id"))
	if err != nil {
		return id, invalidOne("id", "must be CUST- followed by five digits")
	}
	return id, nil
}

func listCustomers(s *Server, r request, _ http.Header) (any, error) {
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	after, err := filter(r, "after", customers.ParseID)
	if err != nil {
		return nil, err
	}
	rows, err := s.store.ListAccounts(r, r.Tenant(), after.String(), limit+1)
	if err != nil {
		return nil, err
	}
	var out restwire.Customers
	out.Customers, out.Next = page(r.Tenant(), rows, limit, restwire.CustomerForm, func(a customers.Account) string { return a.ID.String() })
	return out, nil
}
