package sqlstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

// A commit writes the rows that changed, however many lines the documents have.
func TestADecisionWritesWhatItChanges(t *testing.T) {
	s := New(nil, noDialect{}, 1)
	defer s.Close()
	usd, err := money.ParseCurrency("USD")
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := access.ParseTenant("acme")
	if err != nil {
		t.Fatal(err)
	}
	half, err := payables.RestoreRatio(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	invoice := payables.Invoice{ID: payables.Restore[payables.InvoiceID]("INV-1001"), Currency: usd, Status: payables.Open}
	order := payables.Order{ID: payables.Restore[payables.OrderID]("PO-1"), Currency: usd}
	for n := range payables.MaxLines {
		invoice.Lines = append(invoice.Lines, payables.InvoiceLine{Line: n + 1})
		order.Lines = append(order.Lines, payables.OrderLine{Line: n + 1, Conversions: []payables.Conversion{{Numerator: 1, Denominator: 2}}})
	}
	decision := payables.Decision{ID: operation.ID{1}, Number: 7, Findings: []payables.Finding{{Code: payables.NoLines, Invoices: []payables.InvoiceID{invoice.ID, invoice.ID}}}}
	approved := invoice
	approved.Status, approved.Decision = payables.Approved, &decision
	credited := approved
	credited.Lines, credited.Credited = slices.Clone(approved.Lines), money.FromMinor(5, usd)
	credited.Lines[4711].Credited = half
	billed := order
	billed.Lines = slices.Clone(order.Lines)
	billed.Lines[3].Billed, billed.Lines[4].Billed = half, half
	claim := payables.NumberClaim{Normal: "1", Claims: []payables.Claimed{{Invoice: invoice.ID}, {}}}
	rejected := claim
	rejected.Claims = append([]payables.Claimed{{Invoice: invoice.ID, Rejected: true}}, claim.Claims[1], payables.Claimed{})

	for _, tt := range []struct {
		name          string
		before, after ledger.Record
		want          string
	}{
		{"an invoice comes in", nil, invoice, "[insert 1 invoices insert 10000 invoice_lines]"},
		{"it is approved", invoice, approved, "[update 1 invoices]"},
		{"nothing changes", approved, approved, "[]"},
		{"a line is credited", approved, credited, "[update 1 invoices update 1 invoice_lines]"},
		{"an order comes in", nil, order, "[insert 1 purchase_orders insert 10000 purchase_order_lines insert 10000 conversions]"},
		{"two of its lines are billed", order, billed, "[update 2 purchase_order_lines]"},
		{"a number is freed and taken again", claim, rejected, "[update 1 number_claims insert 1 number_claims]"},
		{"a decision is made", nil, decision, "[insert 1 decisions insert 1 decision_findings insert 2 decision_finding_invoices]"},
		{"a decision was made before", nil, payables.Decision{ID: operation.ID{2}}, "[]"},
	} {
		op := operation.Operation{ID: operation.ID{1}, Tenant: tenant}
		w := s.rows(committer.Changes{
			Records:  []committer.Changed{{Name: committer.Name{Tenant: tenant, Ref: tt.after.Ref()}, Before: tt.before, After: tt.after}},
			Outcomes: []ledger.Outcome{{Operation: op, Answer: decision}},
		})
		got := []string{}
		for _, r := range w.tables {
			if r.Table != Operations {
				got = append(got, fmt.Sprintf("%s %d %s", []string{"insert", "update"}[r.Verb], len(r.Rows), r.Table.Name))
			}
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, got, tt.want)
		}
	}
}

// No command answers with a record that changes and of which nothing is kept.
func TestAnswersAreKept(t *testing.T) {
	s := New(nil, noDialect{}, 1)
	defer s.Close()
	for _, r := range []ledger.Record{payables.Vendor{}, payables.Order{}, payables.Receipt{}, payables.Invoice{}, payables.NumberClaim{}} {
		if !s.Stores(r) || s.Answers(r) {
			t.Errorf("%T: stored %t, an answer %t", r, s.Stores(r), s.Answers(r))
		}
	}
	if !s.Answers(payables.Decision{}) {
		t.Error("a decision is no answer")
	}
}
