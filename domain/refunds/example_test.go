package refunds_test

import (
	"fmt"
	"time"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// The rules alone, without a ledger: an account as your system keeps it, what
// is asked, and the decision. Nothing is stored and no clock is read.
func Example() {
	usd, _ := money.ParseCurrency("USD")
	customer, _ := customers.ParseID("CUST-00001")
	account := customers.Account{
		ID: customer, Status: customers.Active, Currency: usd,
		Lots: []customers.Lot{{Name: "order-7-card", Balance: money.FromMinor(80_00, usd)}},
	}
	op := operation.Operation{ID: operation.ID{1}, Principal: "support-bot", At: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}

	asked, _ := money.ParseDecimal("19.99")
	reason, _ := refunds.ParseReason("Arrived broken, photo in ticket 4711.")
	request, err := refunds.Resolve(account, asked, reason)
	if err != nil {
		fmt.Println(err)
		return
	}
	refund, after, entry, err := refunds.Decide(account, request, op)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(refund.Amount, refund.Status, "remaining", refund.Remaining)
	fmt.Println(after.Balance(), "after entry", entry.Number(), entry.Postings()[0].Side, entry.Postings()[0].Lot)
	// Output:
	// 19.99 USD processed remaining 60.01 USD
	// 60.01 USD after entry 1 debit order-7-card
}

// A refusal is a fault: a code and a reason for programs, a sentence that a
// model can act on, and the figures.
func ExampleDecide_refused() {
	usd, _ := money.ParseCurrency("USD")
	customer, _ := customers.ParseID("CUST-00001")
	account := customers.Account{
		ID: customer, Status: customers.Active, Currency: usd,
		Lots: []customers.Lot{{Name: "order-7-card", Balance: money.FromMinor(80_00, usd)}},
	}
	reason, _ := refunds.ParseReason("Arrived broken.")
	_, _, _, err := refunds.Decide(account, refunds.Request{Customer: customer, Amount: money.FromMinor(80_01, usd), Reason: reason}, operation.Operation{})

	refused := fault.Of(err)
	fmt.Println(refused.Code, refused.Reason)
	fmt.Println(refused.Message)
	fmt.Printf("%+v\n", refused.Details)
	// Output:
	// POLICY_VIOLATION balance_exceeded
	// A refund of 80.01 USD exceeds the refundable balance of CUST-00001, which is 80.00 USD. Ask for at most that.
	// {Requested:80.01 Available:80 Currency:USD}
}

// What a reader can not see is not counted, and what would deceive one is refused.
func ExampleParseReason() {
	for _, text := range []string{"  kaputt 👩‍👩‍👧 gebracht\n", "\u200b\u200b\u200b\u200b\u200b\u200b\u200b\u200b\u200b\u200b", "refund \u202E00.01"} {
		reason, err := refunds.ParseReason(text)
		fmt.Printf("%q %v\n", reason, err)
	}
	// Output:
	// "kaputt 👩\u200d👩\u200d👧 gebracht" <nil>
	// "" the reason must have at least 10 visible characters after trimming, not 0
	// "" the reason must not contain the text direction character U+202E
}
