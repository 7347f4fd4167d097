package customers_test

import (
	"fmt"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// An account changes by entries alone, so its entries prove it.
func Example() {
	usd, _ := money.ParseCurrency("USD")
	id, _ := customers.ParseID("CUST-00001")
	empty := customers.Account{ID: id, Status: customers.Active, Currency: usd}

	paid := money.FromMinor(80_00, usd)
	account, entry, err := empty.Post(operation.Operation{}, "orders.capture", nil,
		journal.Posting{Account: journal.Captured, Side: journal.Debit, Amount: paid},
		journal.Posting{Account: journal.Refundable(id.String()), Lot: "order-7-card", Side: journal.Credit, Amount: paid})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(account.Balance(), account.Lots[0].Name, "version", account.Version())

	history := customers.NewHistory(account)
	fmt.Println(history.Add(entry), history.Close())

	account.Lots[0].Balance = money.FromMinor(90_00, usd) // somebody helps himself
	history = customers.NewHistory(account)
	fmt.Println(history.Add(entry), history.Close())
	// Output:
	// 80.00 USD order-7-card version 1
	// <nil> <nil>
	// <nil> entry 1 of account CUST-00001: the balance on record is not what the entries add up to
}
