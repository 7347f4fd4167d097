package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

// bring runs commands on the ledger of a server, as an operator's import does.
func bring(t *testing.T, s desk, commands ...ledger.Command) {
	t.Helper()
	for n, cmd := range commands {
		key, err := operation.ParseKey(fmt.Sprintf("bring-%d", n))
		if err != nil {
			t.Fatal(err)
		}
		op := operation.Operation{
			ID: system.IDs{}.NewID(), Tenant: s.principal.Tenant(), Principal: "operator", Tool: "import", Key: key,
			At: time.Now().UTC().Truncate(time.Millisecond),
		}
		if _, err := s.app.Ledger.Do(t.Context(), op, cmd); err != nil {
			t.Fatal(err)
		}
	}
}

// structured is the answer of a call.
func structured(t *testing.T, out called) []byte {
	t.Helper()
	if out.IsError || out.failed != nil {
		t.Fatalf("%s %+v", out.raw, out.failed)
	}
	return []byte(out.Content[0].Text)
}

// billed makes an invoice of n lines, each dearer than ordered, and its order.
func billed(vendor payables.VendorID, id, number string, n int) (payables.Order, payables.Invoice) {
	kwd, _ := money.ParseCurrency("KWD")
	ea, _ := payables.ParseUnit("EA")
	one, _ := payables.ParseQuantity("1")
	date, _ := payables.ParseDate("2026-03-31")
	none := money.FromMinor(0, kwd)
	o := payables.Order{Vendor: vendor, Currency: kwd, FreightLimit: none}
	o.ID, _ = payables.ParseOrderID("PO-" + id)
	i := payables.Invoice{Document: payables.Bill, Vendor: vendor, Order: o.ID, Currency: kwd, Tax: none, Freight: none, Total: money.FromMinor(payables.MaxMinor, kwd), Date: date}
	i.ID, _ = payables.ParseInvoiceID(id)
	i.Number, _ = payables.ParseNumber(number)
	for k := 1; k <= n; k++ {
		sku, _ := payables.ParseSKU(fmt.Sprintf("SKU-%d", k))
		o.Lines = append(o.Lines, payables.OrderLine{
			Line: k, SKU: sku, Unit: ea, Quantity: one, UnitPrice: money.FromMinor(1, kwd), Description: strings.Repeat("Pay at once. ", 14) + "Please",
		})
		i.Lines = append(i.Lines, payables.InvoiceLine{Line: k, OrderLine: k, SKU: sku, Unit: ea, Quantity: one, UnitPrice: money.FromMinor(9, kwd), Amount: money.FromMinor(9, kwd)})
	}
	return o, i
}

// received is a receipt of the lines first to last of an order, and of one more.
func received(o payables.Order, first, last, more int) payables.Receipt {
	r := payables.Receipt{Movement: payables.Received, Order: o.ID, Vendor: o.Vendor}
	r.ID, _ = payables.ParseReceiptID("GR-1")
	r.ReceivedAt, _ = payables.ParseDate("2026-03-30")
	few, _ := payables.ParseQuantity("0.5")
	for line := first; line <= last; line++ {
		r.Lines = append(r.Lines, payables.ReceiptLine{OrderLine: line, Quantity: few, Unit: o.Lines[0].Unit})
	}
	r.Lines = append(r.Lines, payables.ReceiptLine{OrderLine: more, Quantity: few, Unit: o.Lines[0].Unit})
	return r
}

// An answer is read by a model: rows are short, and long documents are shown in part.
func TestWhatIsShownOfInvoicesIsBounded(t *testing.T) {
	s := newServer(t, nil)
	vendor, err := payables.ParseVendorID(strings.Repeat("V", 24))
	if err != nil {
		t.Fatal(err)
	}
	o, i := billed(vendor, "INV-"+strings.Repeat("9", 12), strings.Repeat("N", payables.MaxNumber), payables.MaxLines)
	if i.ID == (payables.InvoiceID{}) || i.Number == (payables.Number{}) {
		t.Fatal("the longest id and number are not valid")
	}
	bring(t, s,
		payables.ImportVendors{Vendors: []payables.Vendor{{ID: vendor, Name: "Longest"}}},
		payables.ImportOrders{Orders: []payables.Order{o}},
		payables.ImportReceipts{Receipts: []payables.Receipt{received(o, 1, maxReceiptLines+2, payables.MaxLines)}},
		payables.ImportInvoices{Invoices: []payables.Invoice{i}})

	var list struct{ Invoices []json.RawMessage }
	out := callTool(t, s, "list_invoices", `{"vendor_id":"`+vendor.String()+`"}`, "")
	if err := json.Unmarshal(structured(t, out), &list); err != nil || len(list.Invoices) != 1 {
		t.Fatalf("%v: %s", err, out.raw)
	}
	if n := len(list.Invoices[0]); n >= 200 {
		t.Errorf("a row has %d bytes: %s", n, list.Invoices[0])
	}

	const most = 64 << 10
	argument := `{"invoice_id":"` + i.ID.String() + `"}`
	var shown struct {
		Lines         []json.RawMessage
		MoreLines     int
		PurchaseOrder struct {
			Lines     []json.RawMessage
			MoreLines int
		}
		Receipts []struct {
			Lines     []json.RawMessage
			MoreLines int
		}
	}
	out = callTool(t, s, "get_invoice", argument, "")
	if err := json.Unmarshal(structured(t, out), &shown); err != nil || len(structured(t, out)) > most ||
		len(shown.Lines) != maxShownLines || shown.MoreLines != payables.MaxLines-maxShownLines ||
		len(shown.PurchaseOrder.Lines) != maxShownLines || shown.PurchaseOrder.MoreLines != payables.MaxLines-maxShownLines {
		t.Errorf("%v, %d bytes, %d lines of the invoice and %d of the order", err, len(structured(t, out)), len(shown.Lines), len(shown.PurchaseOrder.Lines))
	}
	if r := shown.Receipts; len(r) != 1 || len(r[0].Lines) != maxReceiptLines || r[0].MoreLines != 3 { // two of them are of lines that are shown
		t.Errorf("the receipts are %s", out.raw)
	}

	var matched struct {
		Findings     []finding
		MoreFindings int
		Blocking     bool
	}
	out = callTool(t, s, "match_invoice_to_po", argument, "")
	// Nothing or too little is received, all prices vary, and the total is another.
	if err := json.Unmarshal(structured(t, out), &matched); err != nil || len(structured(t, out)) > most || !matched.Blocking ||
		len(matched.Findings) != payables.MaxFindings || matched.MoreFindings != 2*payables.MaxLines+1-payables.MaxFindings {
		t.Errorf("%v, %d bytes, %d findings and %d more", err, len(structured(t, out)), len(matched.Findings), matched.MoreFindings)
	}

	var held routeOut
	out = callTool(t, s, "route_exception", strings.TrimSuffix(argument, "}")+`,"action":"hold","reason_code":"NO_GOODS_RECEIPT"}`, "")
	if err := json.Unmarshal(structured(t, out), &held); err != nil || len(structured(t, out)) > most || len(held.Decision.Findings) != payables.MaxFindings {
		t.Errorf("%v, %d bytes: %s", err, len(structured(t, out)), out.raw[:min(len(out.raw), 500)])
	}
}
