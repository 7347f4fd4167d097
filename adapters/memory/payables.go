package memory

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"strings"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// documents are the ids of what payables lists, each list in order.
type documents struct {
	vendors  []string
	invoices []string
	receipts map[payables.OrderID][]string
	entered  map[payables.VendorID][]payables.InvoiceID // as they came
}

// add takes in a record that is new.
func (d *documents) add(record ledger.Record) {
	switch r := record.(type) {
	case payables.Vendor:
		insert(&d.vendors, r.ID.String())
	case payables.Invoice:
		insert(&d.invoices, r.ID.String())
		if d.entered == nil {
			d.entered = map[payables.VendorID][]payables.InvoiceID{}
		}
		d.entered[r.Vendor] = append(d.entered[r.Vendor], r.ID)
	case payables.Receipt:
		if d.receipts == nil {
			d.receipts = map[payables.OrderID][]string{}
		}
		list := d.receipts[r.Order]
		insert(&list, r.ID.String())
		d.receipts[r.Order] = list
	}
}

func insert(list *[]string, id string) {
	at, _ := slices.BinarySearch(*list, id)
	*list = slices.Insert(*list, at, id)
}

// beyond returns the part of a list that is greater than after.
func beyond(list []string, after string) []string {
	at, found := slices.BinarySearch(list, after)
	if found {
		at++
	}
	return list[at:]
}

// header is an invoice as lists have it.
func header(i payables.Invoice) payables.Invoice {
	i.Lines, i.Decision = nil, nil
	return i
}

func (b *books) invoice(id string) payables.Invoice {
	return b.records[ledger.Ref{Kind: payables.InvoiceKind, ID: id}].(payables.Invoice)
}

// ListInvoices implements ports.Payables.
func (s *Store) ListInvoices(ctx context.Context, t access.Tenant, f ports.InvoiceFilter, after string, limit int) ([]payables.Invoice, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.tenants[t]
	if b == nil {
		return nil, nil
	}
	var page []payables.Invoice
	for _, id := range beyond(b.documents.invoices, after) {
		if len(page) >= limit {
			break
		}
		i := b.invoice(id)
		if (f.Status == payables.Status{} || f.Status == i.Status) && (f.Vendor == payables.VendorID{} || f.Vendor == i.Vendor) &&
			(f.Order == payables.OrderID{} || f.Order == i.Order) && (f.Currency == money.Currency{} || f.Currency.String() == i.Currency.String()) && !(f.Undecided && i.Status.Final()) {
			page = append(page, header(i))
		}
	}
	return page, nil
}

// LatestInvoices implements ports.Payables.
func (s *Store) LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) ([]payables.Invoice, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.tenants[t]
	if b == nil {
		return nil, nil
	}
	entered := b.documents.entered[v]
	if before > 0 {
		at, _ := slices.BinarySearchFunc(entered, before, func(id payables.InvoiceID, n int64) int { return cmp.Compare(b.invoice(id.String()).Entered, n) })
		entered = entered[:at]
	}
	var page []payables.Invoice
	for _, id := range slices.Backward(entered) {
		if len(page) >= limit {
			break
		}
		page = append(page, header(b.invoice(id.String())))
	}
	return page, nil
}

// SumInvoices implements ports.Payables.
func (s *Store) SumInvoices(ctx context.Context, t access.Tenant) ([]ports.InvoiceSum, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.tenants[t]
	if b == nil {
		return nil, nil
	}
	var sums []ports.InvoiceSum
	for _, id := range b.documents.invoices {
		i := b.invoice(id)
		at := slices.IndexFunc(sums, func(s ports.InvoiceSum) bool {
			return s.Currency == i.Currency && s.Document == i.Document && s.Status == i.Status
		})
		if at < 0 {
			at = len(sums)
			sums = append(sums, ports.InvoiceSum{Currency: i.Currency, Document: i.Document, Status: i.Status, Minor: new(big.Int)})
		}
		sums[at].Count++
		sums[at].Minor.Add(sums[at].Minor, big.NewInt(i.Total.Minor()))
	}
	slices.SortFunc(sums, func(a, b ports.InvoiceSum) int {
		return cmp.Or(strings.Compare(a.Currency.String(), b.Currency.String()),
			strings.Compare(a.Document.String(), b.Document.String()), strings.Compare(a.Status.String(), b.Status.String()))
	})
	return sums, nil
}

// ListReceipts implements ports.Payables.
func (s *Store) ListReceipts(ctx context.Context, t access.Tenant, o payables.OrderID, after string, limit int) ([]payables.Receipt, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.tenants[t]
	if b == nil {
		return nil, nil
	}
	rest := beyond(b.documents.receipts[o], after)
	var page []payables.Receipt
	for _, id := range rest[:min(max(limit, 0), len(rest))] {
		page = append(page, b.records[ledger.Ref{Kind: payables.ReceiptKind, ID: id}].(payables.Receipt))
	}
	return page, nil
}

// ListVendors implements ports.Payables.
func (s *Store) ListVendors(ctx context.Context, t access.Tenant, after string, limit int) ([]payables.Vendor, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.tenants[t]
	if b == nil {
		return nil, nil
	}
	rest := beyond(b.documents.vendors, after)
	var page []payables.Vendor
	for _, id := range rest[:min(max(limit, 0), len(rest))] {
		page = append(page, b.records[ledger.Ref{Kind: payables.VendorKind, ID: id}].(payables.Vendor))
	}
	return page, nil
}
