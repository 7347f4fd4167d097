package app_test

import (
	"context"
	"testing"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// watched counts what is asked of a store, and can change it meanwhile.
type watched struct {
	*memory.Store
	lists, loads int
	writes       int
	meanwhile    func()
}

func (w *watched) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	w.writes++
	return w.Store.Do(ctx, op, cmd)
}

func (w *watched) ListInvoices(ctx context.Context, t access.Tenant, f ports.InvoiceFilter, after string, limit int) ([]payables.Invoice, error) {
	w.lists++
	return w.Store.ListInvoices(ctx, t, f, after, limit)
}

func (w *watched) LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) ([]payables.Invoice, error) {
	if w.meanwhile != nil {
		w.meanwhile()
	}
	return w.Store.LatestInvoices(ctx, t, v, before, limit)
}

func (w *watched) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	w.loads++
	return w.Store.Load(ctx, t, refs...)
}

// payablesApp has the demo invoices.
func payablesApp(t *testing.T) (*app.App, *watched) {
	t.Helper()
	s := memory.New()
	if err := demo.Seed(t.Context(), s, tenant, system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	w := &watched{Store: s}
	return &app.App{Ledger: w, Refunds: w, Payables: w, Journal: w, Census: w, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: patience, Tolerance: payables.DefaultTolerance()}, w
}

const patience = 30e9

// What a summary costs grows with pages, not with invoices, and a currency that
// there is not costs nothing.
func TestASummaryReadsByThePage(t *testing.T) {
	a, w := payablesApp(t)
	s, err := a.InvoiceSummary(t.Context(), call(agent, ""), money.Currency{})
	if err != nil || s.Matched != 9 || !s.Complete || len(s.Currencies) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if w.lists > 2 || w.loads > 2 {
		t.Errorf("nine invoices cost %d lists and %d reads", w.lists, w.loads)
	}
	w.lists, w.loads = 0, 0
	yen := must(money.ParseCurrency("JPY"))
	if s, err := a.InvoiceSummary(t.Context(), call(agent, ""), yen); err != nil || len(s.Currencies) != 0 || w.lists+w.loads != 0 {
		t.Errorf("%+v, %v after %d lists and %d reads", s, err, w.lists, w.loads)
	}
}

// What is wrong with documents alone is said before any ledger is asked: one
// elsewhere may not be sent all of it.
func TestAnImportIsCheckedBeforeItIsHandedOver(t *testing.T) {
	a, w := payablesApp(t)
	bill, err := a.Invoice(t.Context(), call(agent, ""), must(payables.ParseInvoiceID("INV-1001")))
	if err != nil {
		t.Fatal(err)
	}
	bill.Invoice.Synthesised = []payables.Field{payables.FieldDate}
	operator := must(access.NewPrincipal(tenant, "op", access.Human, access.ScopesOf(access.ControlRules), access.Pro, ""))
	_, err = a.ImportInvoices(t.Context(), call(operator, "k"), []payables.Invoice{bill.Invoice})
	refuse(t, err, fault.InvalidInput, "invalid_input")
	if w.writes > 0 {
		t.Errorf("it was handed over %d times", w.writes)
	}
}

// A statement is of one moment: an approval while it is read does not move the
// balances of other rows.
func TestAStatementIsOfOneMoment(t *testing.T) {
	a, w := payablesApp(t)
	vendor, approve := must(payables.ParseVendorID("V-100")), func() {
		w.meanwhile = nil
		r := payables.Request{Invoice: must(payables.ParseInvoiceID("INV-1001")), Action: payables.Approve, Reason: payables.CleanMatch}
		if _, _, _, err := a.RouteInvoice(t.Context(), call(agent, "k"), r); err != nil {
			t.Error(err)
		}
	}
	w.meanwhile = approve
	s, err := a.VendorStatement(t.Context(), call(agent, ""), vendor)
	if err != nil {
		t.Fatal(err)
	}
	if first, last := s.Rows[0], s.Rows[len(s.Rows)-1]; first.Balance != first.Invoice.Total || last.Balance != s.Vendor.Balances[0] || last.Balance.Minor() != 1352_00 {
		t.Errorf("the first row has %s, the last %s of %v", first.Balance, last.Balance, s.Vendor.Balances)
	}
	// One that never stands still is no statement.
	n := 0
	w.meanwhile = func() {
		n++
		reason := []payables.ReasonCode{payables.NeedsReview, payables.CleanMatch}[n%2]
		r := payables.Request{Invoice: must(payables.ParseInvoiceID("INV-1004")), Action: payables.Hold, Reason: reason}
		if _, _, _, err := a.RouteInvoice(t.Context(), call(agent, ""), r); err != nil {
			t.Error(err)
		}
	}
	_, err = a.VendorStatement(t.Context(), call(agent, ""), vendor)
	refuse(t, err, fault.BackendUnavailable, "record_changing")
}
