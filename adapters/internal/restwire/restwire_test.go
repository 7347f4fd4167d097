package restwire

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Each command of the domain has one resource, and arrives as it was sent.
func TestCommandsArriveAsTheyWereSent(t *testing.T) {
	id, yen := must(customers.ParseID("CUST-00007")), must(money.ParseCurrency("JPY"))
	reason := must(refunds.ParseReason("“kaputt” 👩‍👩‍👧 \\ \u2028 <b>"))
	open := customers.Open{
		ID: id, Profile: customers.Profile{Name: `Zoë "Z" O'Brien`, Email: "z@example.com"}, Status: customers.Suspended,
		Opening: money.FromMinor(1<<62, yen), CreatedAt: time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("", -3600)),
	}
	vendor, order := must(payables.ParseVendorID("V-1")), must(payables.ParseOrderID("po.2_x"))
	sku, unit, day := must(payables.ParseSKU("A/4-x.1")), must(payables.ParseUnit("EA")), must(payables.ParseDate("2026-02-28"))
	commands := []ledger.Command{
		refunds.Trigger{Request: refunds.Request{Customer: id, Amount: money.FromMinor(-1<<63, yen), Reason: reason}},
		refunds.Reverse{Customer: id, Refund: -3, Reason: reason},
		open,
		customers.Import{Customers: []customers.Open{open, open}},
		customers.Import{},
		customers.Adjust{Customer: id, Change: money.FromMinor(-5, yen), Why: ""},
		payables.Route{Request: payables.Request{
			Invoice: must(payables.ParseInvoiceID("INV-0001")), Action: payables.Reject, Reason: payables.ManualOverride, Override: true,
			Note: must(payables.ParseNote("Fatura “iptal” edildi.\n\u2028 <b>")),
		}},
		payables.Route{Request: payables.Request{Invoice: must(payables.ParseInvoiceID("INV-123456789012")), Action: payables.Hold, Reason: payables.NeedsReview}},
		payables.ImportVendors{Vendors: []payables.Vendor{{ID: vendor, Name: `Zoë "Z" <b>`}}},
		payables.ImportOrders{Orders: []payables.Order{{
			ID: order, Vendor: vendor, Currency: yen, FreightLimit: money.FromMinor(7, yen), TaxLimit: must(payables.ParsePercent("7.125")),
			Lines: []payables.OrderLine{
				{Line: 3, SKU: sku, Description: "Ein „Ding“", Unit: unit, Quantity: must(payables.ParseQuantity("0.000001")), UnitPrice: money.FromMinor(payables.MaxMinor, yen),
					Conversions: []payables.Conversion{{Unit: must(payables.ParseUnit("PAL")), Numerator: 40, Denominator: 999_983}}},
				{Line: 4, SKU: sku, Unit: unit, Quantity: must(payables.ParseQuantity("1000000000")), UnitPrice: money.FromMinor(0, yen)},
			},
		}}},
		payables.ImportReceipts{Receipts: []payables.Receipt{{
			ID: must(payables.ParseReceiptID("GR-1")), Order: order, Movement: payables.Returned, ReceivedAt: day,
			Lines: []payables.ReceiptLine{{OrderLine: 3, Quantity: must(payables.ParseQuantity("2.5")), Unit: unit}},
		}}},
		payables.ImportInvoices{Invoices: []payables.Invoice{
			{ID: must(payables.ParseInvoiceID("INV-0001")), Number: must(payables.ParseNumber("R–2026／0071")), Document: payables.Bill, Vendor: vendor, Currency: yen,
				Tax: money.FromMinor(1, yen), Freight: money.FromMinor(2, yen), Total: money.FromMinor(3, yen), Date: day},
			{ID: must(payables.ParseInvoiceID("INV-0002")), Number: must(payables.ParseNumber("C-1")), Document: payables.CreditNote, Credits: must(payables.ParseInvoiceID("INV-0001")),
				Vendor: vendor, Order: order, Currency: yen, Tax: money.FromMinor(0, yen), Freight: money.FromMinor(0, yen), Total: money.FromMinor(9, yen), Date: day,
				Lines: []payables.InvoiceLine{
					{Line: 1, OrderLine: 3, SKU: sku, Unit: unit, Quantity: must(payables.ParseQuantity("1.5")), UnitPrice: money.FromMinor(4, yen), Amount: money.FromMinor(6, yen)},
					{Line: 2, Unit: unit, Quantity: must(payables.ParseQuantity("1")), UnitPrice: money.FromMinor(3, yen), Amount: money.FromMinor(3, yen)},
				}},
		}},
	}
	seen := map[string]bool{}
	for _, cmd := range commands {
		r, ok := Of(cmd.Name())
		if !ok {
			t.Fatalf("%s has no resource", cmd.Name())
		}
		seen[cmd.Name()] = true
		path, body, ok := r.Write(cmd)
		if !ok {
			t.Fatalf("%s can not be written", cmd.Name())
		}
		got, issues := r.Read(parameter(r.Path, path), body)
		if len(issues) > 0 || got.Name() != cmd.Name() || !slices.Equal(got.Facts(), cmd.Facts()) {
			t.Errorf("%s %s: got %+v %v, sent %+v", path, body, got, issues, cmd)
		}
	}
	if len(seen) != len(Commands()) {
		t.Errorf("%d resources, %d commands", len(Commands()), len(seen))
	}
	if _, _, ok := must2(Of(customers.AdjustName)).Write(customers.Adjust{Customer: id, Change: money.FromMinor(1, yen), Why: "half a \xff"}); ok {
		t.Error("a text that is not UTF-8 would arrive as another")
	}
}

func must2[T any](v T, ok bool) T {
	if !ok {
		panic("there is none")
	}
	return v
}

// parameter takes a path apart as a mux does.
func parameter(pattern, path string) func(string) string {
	return func(name string) string {
		segments := strings.Split(path, "/")
		for i, s := range strings.Split(pattern, "/") {
			if s == "{"+name+"}" {
				return segments[i]
			}
		}
		return ""
	}
}

func TestStamps(t *testing.T) {
	for _, text := range []string{"2026-03-01T09:00:00.000Z", "0001-01-01T00:00:00.001Z", "9999-12-31T23:59:59.999Z", "2024-02-29T12:34:56.789Z"} {
		if at, err := parseStamp(text); err != nil || stamp(at) != text || at.Location() != time.UTC {
			t.Errorf("%s is read as %s, %v", text, at, err)
		}
	}
	for _, text := range []string{
		"", "2026-03-01T09:00:00Z", "2026-03-01T09:00:00.0000Z", "2026-03-01T09:00:00.000z", "2026-03-01 09:00:00.000Z", "2026-02-29T09:00:00.000Z",
		"2026-13-01T09:00:00.000Z", "2026-00-01T09:00:00.000Z", "2026-03-01T24:00:00.000Z", "2026-03-01T09:60:00.000Z", "2026-03-01T23:59:60.000Z",
		"+026-03-01T09:00:00.000Z", "2026-03-01T09:00:00,000Z", "2026-03-01T09:00:00.-01Z", "２-03-01T09:00:00.000Z..", "2026-03-01T09:00:00.000+",
	} {
		if at, err := parseStamp(text); err == nil {
			t.Errorf("%q is read as %s", text, at)
		}
	}
}

func TestETags(t *testing.T) {
	for text, want := range map[string]int64{`"1"`: 1, `"9223372036854775807"`: 1<<63 - 1, `1`: 0, `"01"`: 0, `"0"`: 0, `"-1"`: 0, `W/"1"`: 0, `*`: 0, `"1", "2"`: 0, ``: 0, `"`: 0} {
		if n, ok := ParseETag(text); ok != (want > 0) || ok && n != want {
			t.Errorf("%s: %d %t", text, n, ok)
		}
	}
}

func TestAProblemArrivesAsTheFaultItWas(t *testing.T) {
	f := fault.New(fault.PolicyViolation, "balance_exceeded", "Too much.").With(refunds.BalanceExceeded{Requested: "10", Available: "0.1", Currency: "USD"})
	f.Issues = []fault.Issue{{Path: []any{"customers", 3, "a/b~c"}, Code: "invalid", Message: "no"}, {Path: []any{}, Code: "more_issues", Message: "and more"}}
	got, err := ParseProblem(422, Append(nil, ProblemOf(422, f)))
	if err != nil || got.Fault.Error() != f.Error() || got.Fault.Details != f.Details || got.Fault.Retryable != f.Retryable {
		t.Fatalf("%+v %v", got.Fault, err)
	}
	for i, issue := range got.Fault.Issues {
		if !slices.Equal(issue.Path, f.Issues[i].Path) || issue.Code != f.Issues[i].Code || issue.Message != f.Issues[i].Message {
			t.Errorf("issue %d is %+v", i, issue)
		}
	}
	if _, err := ParseProblem(422, []byte(`{"status":422,"code":"POLICY_VIOLATION","reason":"balance_exceeded","detail":"x","details":{"requested":1,"note":"free text"}}`)); err == nil {
		t.Error("details that nobody declared are taken")
	}
}

// What a service sends is read or refused, never a panic.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"status":422,"code":"CONFLICT","reason":"x","detail":"y","issues":[{"pointer":"/0","code":"c","message":"m"}]}`))
	f.Add([]byte(`{"operation":{"tenant":"acme","id":"45dd64d2-3324-4911-9049-5bdf316eb834","principal":"bot","tool":"t","key":"k","at":"2026-11-30T20:02:12.421Z"},"command":"c","fingerprint":"f1","customer":{"lots":[{"name":"a","balanceMinor":9223372036854775807}]}}`))
	f.Add([]byte(`{"operation":{"tenant":"acme","id":"45dd64d2-3324-4911-9049-5bdf316eb834","principal":"bot","tool":"t","key":"k","at":"2026-11-30T20:02:12.421Z"},"command":"payables.route","fingerprint":"f1e2b349d33e176b9adb319e7f7c4fe0be4b000c63f5cda88a11bba2624dbea4","decision":{"tenant":"acme","id":"45dd64d2-3324-4911-9049-5bdf316eb834","invoiceId":"INV-0001","vendorId":"V-1","number":7,"action":"hold","reasonCode":"PRICE_VARIANCE","override":false,"note":"Ask.","decidedBy":"bot","decidedAt":"2026-11-30T20:02:12.421Z","findings":[{"code":"PRICE_VARIANCE","line":1,"expected":"1.5","found":"2","invoices":["INV-0002"]}],"omitted":1}}`))
	f.Add([]byte(`{"tenant":"acme","id":"INV-0001","number":"N–1","normalNumber":"n-1","kind":"invoice","vendorId":"V-1","orderId":"PO-1","currency":"USD","taxMinor":1,"freightMinor":2,"totalMinor":9,"invoiceDate":"2026-03-01","entered":4,"status":"open","creditedMinor":0,"lines":[{"line":1,"orderLine":2,"sku":"A","unit":"EA","quantity":"1.5","unitPriceMinor":4,"amountMinor":6,"credited":{"numerator":1,"denominator":2}}]}`))
	f.Add([]byte(`{"tenant":"acme","id":"PO-1","vendorId":"V-1","currency":"USD","freightLimitMinor":0,"taxLimitPercent":"7.125","freightBilledMinor":0,"lines":[{"line":1,"sku":"A","description":"Ein „Ding“","unit":"EA","quantity":"10","unitPriceMinor":5,"conversions":[{"unit":"BOX","numerator":12,"denominator":1}],"received":{"numerator":5,"denominator":2}}]}`))
	f.Add([]byte(`{"tenant":"acme","id":"INV-0001","number":"N–1","normalNumber":"n-1","kind":"invoice","vendorId":"V-1","totalMinor":9,"entered":4,"status":"open","creditedMinor":0}`))
	acme := must(access.ParseTenant("acme"))
	thin := PayablesWith(Fallback{must(money.ParseCurrency("KWD")), must(payables.ParseDate("2026-02-28"))})
	f.Fuzz(func(t *testing.T, doc []byte) {
		_, _ = ParseProblem(422, doc)
		if w, err := OutcomeForm.Document(doc); err == nil {
			if out, err := w.Record(acme); err == nil {
				again := OutcomeForm.Of(acme, out)
				if string(Append(nil, again)) != string(Append(nil, w)) {
					t.Errorf("%s is written %s", Append(nil, w), Append(nil, again))
				}
			}
		}
		if i, err := thin.Invoice.Read(doc, acme); err == nil {
			i.Synthesised = nil // never sent
			if again, err := Complete.Invoice.Read(Append(nil, Complete.Invoice.Of(acme, i)), acme); err != nil || !reflect.DeepEqual(again, i) {
				t.Errorf("%+v is read again as %+v, %v", i, again, err)
			}
		}
		if o, err := OrderForm.Read(doc, acme); err == nil {
			if again, err := OrderForm.Read(Append(nil, OrderForm.Of(acme, o)), acme); err != nil || !reflect.DeepEqual(again, o) {
				t.Errorf("%+v is read again as %+v, %v", o, again, err)
			}
		}
		_, _ = thin.Vendor.Read(doc, acme)
		_, _ = ReceiptForm.Read(doc, acme)
		_, _ = ClaimForm.Read(doc, acme)
		_, _ = thin.Sums.Read(doc, acme)
		_, _ = PolicyForm.Read(doc, acme)
		_, _, _ = thin.Invoices.Read(doc, acme)
		for _, c := range Commands() {
			_, _ = c.Read(func(string) string { return "1" }, doc)
		}
		_, _, _ = EntryPages.Read(doc, acme)
		_, _, _ = CustomerPages.Read(doc, acme)
	})
}

// An import says nothing of what was filled in, so it has no form then.
func TestWhatIsSynthesisedIsNotWrittenDown(t *testing.T) {
	resource, _ := Of(payables.ImportInvoicesName)
	for _, fields := range [][]payables.Field{nil, payables.Fields(), {payables.FieldDate}} {
		cmd := payables.ImportInvoices{Invoices: []payables.Invoice{{}, {Synthesised: fields}}}
		if _, _, ok := resource.Write(cmd); ok != (fields == nil) {
			t.Errorf("with %v it is written down: %t", fields, ok)
		}
	}
}

// What is wrong with a document is said with its place in it, and with nothing
// that could be anybody's.
func TestWhatIsWrongWithADocumentHasAPlace(t *testing.T) {
	const document = `{"tenant":"acme","id":"GR-1","orderId":"PO-1","vendorId":"V-1","kind":"receipt","receivedAt":"2026-03-01","lines":[{"orderLine":1,"quantity":"1","unit":"EA"}]}`
	for _, tt := range []struct{ name, old, with, want string }{
		{"a member that nobody declared", `"kind"`, `"colour":1,"kind"`, `unknown property "colour"`},
		{"one of a line", `"unit"`, `"colour":1,"unit"`, `unknown property "colour" in lines[0]`},
		{"one twice", `"unit"`, `"colour":1,"colour":1,"unit"`, `unknown property "colour" in lines[0]`},
		{"one that is an address", `"kind"`, `"canary@example.com":1,"kind"`, "a member that nobody declared in the document"},
		{"one of a line that is an address", `"unit"`, `"canary@example.com":1,"unit"`, "a member that nobody declared in lines[0]"},
		{"one that is a book", `"kind"`, `"` + strings.Repeat("x", 5000) + `":1,"kind"`, "a member that nobody declared in the document"},
		{"one that is missing", `"quantity":"1",`, ``, "lines[0].quantity is required"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(document, tt.old) {
				t.Fatal(tt.old)
			}
			_, err := ReceiptForm.Document([]byte(strings.Replace(document, tt.old, tt.with, 1)))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
