package restwire

import (
	"reflect"

	"github.com/refundledger/refundledger/domain/access"
)

// Read is a resource that is only read.
type Read struct {
	Name, Path, Title, About string
	Scope                    access.Scope // the zero value: a valid token is enough
	Query                    []Query
	Answer                   reflect.Type
}

// Query is a parameter after the question mark.
type Query struct {
	Name, About string
	Number      bool
}

var limit = Query{"limit", "How many rows at most, 1 to 1000; 100 if absent. A page may have fewer: go on as long as there is a next.", true}

// What is read.
var (
	ListCustomers = Read{
		"customers.list", "/v1/customers", "List the accounts", "All accounts of the tenant, in order of id.",
		access.CustomerRead, []Query{{"after", "Begin behind this id.", false}, limit}, reflect.TypeFor[Customers](),
	}
	GetCustomer = Read{
		"customers.get", "/v1/customers/{id}", "Look up a customer", "The account, with its version as a strong ETag.",
		access.CustomerRead, nil, reflect.TypeFor[Customer](),
	}
	ListRefunds = Read{
		"refunds.list", "/v1/customers/{id}/refunds", "List the refunds of a customer", "Newest first. Nobody's list is empty.",
		access.RefundRead, []Query{{"cursor", "Begin below this entry number: the next of the page before.", true}, limit}, reflect.TypeFor[Refunds](),
	}
	GetRefund = Read{
		"refunds.get", "/v1/customers/{id}/refunds/{number}", "Look up a refund", "The refund that the entry of that number booked.",
		access.RefundRead, nil, reflect.TypeFor[Refund](),
	}
	GetReversal = Read{
		"refunds.reversal", "/v1/customers/{id}/refunds/{number}/reversal", "Look up a reversal", "The reversal of the refund, if there is one.",
		access.RefundRead, nil, reflect.TypeFor[Reversal](),
	}
	GetOperation = Read{
		"operations.get", "/v1/operations/{key}", "Look up an operation",
		"What a key of the calling principal led to: how a lost answer is resolved. 404 if nothing has happened under it.",
		access.Scope{}, nil, reflect.TypeFor[Outcome](),
	}
	ListJournal = Read{
		"journal.list", "/v1/journal", "Export the journal", "All entries of the tenant, account by account, each in order.",
		access.RefundRead, []Query{{"after", "Begin behind this entry: the next of the page before.", false}, limit}, reflect.TypeFor[Entries](),
	}
	ListEntries = Read{
		"journal.entries", "/v1/journal/{kind}/{id}", "List the entries of one subject", "In order of number.",
		access.RefundRead, []Query{{"after", "Begin behind this number.", true}, limit}, reflect.TypeFor[Entries](),
	}
)
