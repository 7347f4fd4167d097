package journal_test

import (
	"fmt"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// Book money and its refund, read the entries back from a store and prove them.
func Example() {
	tenant, _ := access.ParseTenant("acme")
	key, _ := operation.ParseKey("order-7-damaged")
	usd, _ := money.ParseCurrency("USD")
	op := operation.Operation{
		ID: operation.ID{1}, Tenant: tenant, Principal: "support-bot", Tool: "trigger_refund", Key: key,
		At: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
	}
	customer := journal.Subject{Kind: "account", ID: "CUST-00001"}
	balance := journal.Refundable(customer.ID)

	opened, err := journal.Next(journal.Head{}, customer, op, "customers.open", nil,
		journal.Posting{Account: journal.Captured, Side: journal.Debit, Amount: money.FromMinor(500_00, usd)},
		journal.Posting{Account: balance, Lot: "opening", Side: journal.Credit, Amount: money.FromMinor(500_00, usd)})
	if err != nil {
		fmt.Println(err)
		return
	}
	refunded, err := journal.Next(opened.Head(), customer, op, "refunds.trigger",
		[]operation.Fact{{Name: "reason", Value: "Arrived broken."}},
		journal.Posting{Account: balance, Lot: "opening", Side: journal.Debit, Amount: money.FromMinor(20_00, usd)},
		journal.Posting{Account: journal.PaidOut, Side: journal.Credit, Amount: money.FromMinor(20_00, usd)})
	if err != nil {
		fmt.Println(err)
		return
	}
	head, err := journal.Verify(journal.Head{}, customer, opened)
	fmt.Println(head.Number, err)
	head, err = journal.Verify(head, customer, refunded)
	fmt.Println(head.Number, err)

	// Somebody edits the reason in the store, and leaves the rest alone.
	changed := journal.Restore(refunded.Number(), refunded.Previous(), refunded.Hash(), customer, op, refunded.Command(),
		[]operation.Fact{{Name: "reason", Value: "Goodwill, says the CFO."}}, refunded.Postings())
	_, err = journal.Verify(opened.Head(), customer, changed)
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// entry 2 of account CUST-00001: its hash is not that of its content
}

// An entry that does not balance can not be made.
func ExampleNext() {
	usd, _ := money.ParseCurrency("USD")
	_, err := journal.Next(journal.Head{}, journal.Subject{Kind: "account", ID: "CUST-00001"}, operation.Operation{}, "refunds.trigger", nil,
		journal.Posting{Account: journal.Refundable("CUST-00001"), Lot: "opening", Side: journal.Debit, Amount: money.FromMinor(20_00, usd)},
		journal.Posting{Account: journal.PaidOut, Side: journal.Credit, Amount: money.FromMinor(19_99, usd)})
	fmt.Println(err)
	// Output: the postings of an entry must be positive and balance in each currency
}
