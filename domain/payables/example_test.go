package payables_test

import (
	"fmt"
	"time"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

// The rules alone, without a ledger: an order with what was received of it, an
// invoice, the match, and a decision. Nothing is stored and no clock is read.
func Example() {
	usd, _ := money.ParseCurrency("USD")
	vendor, _ := payables.ParseVendorID("ACME")
	po, _ := payables.ParseOrderID("PO-7")
	id, _ := payables.ParseInvoiceID("INV-1001")
	number, _ := payables.ParseNumber("0071-000345")
	ea, _ := payables.ParseUnit("EA")
	ten, _ := payables.ParseQuantity("10")
	received, _ := payables.RestoreRatio(10, 1)
	percent, _ := payables.ParsePercent("2")

	order := payables.Order{ID: po, Vendor: vendor, Currency: usd, Lines: []payables.OrderLine{
		{Line: 1, Unit: ea, Quantity: ten, UnitPrice: money.FromMinor(10_00, usd), Received: received},
	}}
	invoice := payables.Invoice{ID: id, Number: number, Document: payables.Bill, Vendor: vendor, Order: po, Currency: usd, Status: payables.Open,
		Lines: []payables.InvoiceLine{{Line: 1, OrderLine: 1, Unit: ea, Quantity: ten, UnitPrice: money.FromMinor(11_50, usd), Amount: money.FromMinor(115_00, usd)}},
		Total: money.FromMinor(115_00, usd),
	}
	facts := payables.Facts{Order: &order}
	may := payables.Authority{Tolerance: payables.Tolerance{Percent: percent, Minor: 5_00}}
	op := operation.Operation{ID: operation.ID{1}, Principal: "ap-bot", At: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}

	matched, _ := payables.Match(invoice, facts, may.Tolerance)
	fmt.Println(matched.Recommendation, matched.Findings[0].Code, matched.Findings[0].Message())
	_, err := payables.Decide(invoice, payables.Vendor{ID: vendor}, facts, payables.Request{Invoice: id, Action: payables.Approve, Reason: payables.CleanMatch}, may, op)
	fmt.Println(fault.Of(err).Reason, fault.Of(err).Details)
	held, err := payables.Decide(invoice, payables.Vendor{ID: vendor}, facts, payables.Request{Invoice: id, Action: payables.Hold, Reason: payables.NeedsReview}, may, op)
	fmt.Println(held.Invoice.Status, "by", held.Decision.DecidedBy, "in entry", held.Entry.Number(), err)
	// Output:
	// hold PRICE_VARIANCE Order line 1: The unit price is 11.5, ordered at 10: more than the tolerance.
	// blocking_findings {[PRICE_VARIANCE]}
	// on_hold by ap-bot in entry 1 <nil>
}

// Two spellings of one number have one normal form; two numbers have two.
func ExampleNumber_Normal() {
	for _, written := range []string{"0071-000345", "71/345", "71345", "10-0", "1-00", "INV2026-001", "inv 2026 1"} {
		n, _ := payables.ParseNumber(written)
		fmt.Println(n, "is", n.Normal())
	}
	// Output:
	// 0071-000345 is 71-345
	// 71/345 is 71-345
	// 71345 is 71345
	// 10-0 is 10-0
	// 1-00 is 1-0
	// INV2026-001 is inv-2026-1
	// inv 2026 1 is inv-2026-1
}
