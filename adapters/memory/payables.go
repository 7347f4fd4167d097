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

// header is an invoice as lists have it.
func header(i payables.Invoice) payables.Invoice {
	i.Lines, i.Decision = nil, nil
	return i
}

func (b *books) invoice(id string) payables.Invoice {
	return b.at(ledger.Ref{Kind: payables.InvoiceKind, ID: id}).(payables.Invoice)
}

// ListInvoices implements ports.Payables.
func (s *Store) ListInvoices(ctx context.Context, t access.Tenant, f ports.InvoiceFilter, after string, limit int) (page []payables.Invoice, err error) {
	s.readAll(t, func(b *books) {
		for _, id := range beyond(b.lists.invoices, after) {
			if len(page) >= limit {
				break
			}
			i := b.invoice(id)
			if (f.Status == payables.Status{} || f.Status == i.Status) && (f.Vendor == payables.VendorID{} || f.Vendor == i.Vendor) &&
				(f.Order == payables.OrderID{} || f.Order == i.Order) && (f.Currency == money.Currency{} || f.Currency.String() == i.Currency.String()) && !(f.Undecided && i.Status.Final()) {
				page = append(page, header(i))
			}
		}
	})
	return page, nil
}

// LatestInvoices implements ports.Payables.
func (s *Store) LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) (page []payables.Invoice, err error) {
	s.readAll(t, func(b *books) {
		entered := b.lists.entered[v]
		if before > 0 {
			at, _ := slices.BinarySearchFunc(entered, before, func(id payables.InvoiceID, n int64) int { return cmp.Compare(b.invoice(id.String()).Entered, n) })
			entered = entered[:at]
		}
		for _, id := range slices.Backward(entered) {
			if len(page) >= limit {
				break
			}
			page = append(page, header(b.invoice(id.String())))
		}
	})
	return page, nil
}

// SumInvoices implements ports.Payables.
func (s *Store) SumInvoices(ctx context.Context, t access.Tenant) (sums []ports.InvoiceSum, err error) {
	s.readAll(t, func(b *books) {
		for _, id := range b.lists.invoices {
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
	})
	return sums, nil
}

// ListReceipts implements ports.Payables.
func (s *Store) ListReceipts(ctx context.Context, t access.Tenant, o payables.OrderID, after string, limit int) (page []payables.Receipt, err error) {
	s.readAll(t, func(b *books) {
		rest := beyond(b.lists.receipts[o], after)
		for _, id := range rest[:min(max(limit, 0), len(rest))] {
			page = append(page, b.at(ledger.Ref{Kind: payables.ReceiptKind, ID: id}).(payables.Receipt))
		}
	})
	return page, nil
}

// ListVendors implements ports.Payables.
func (s *Store) ListVendors(ctx context.Context, t access.Tenant, after string, limit int) (page []payables.Vendor, err error) {
	s.readAll(t, func(b *books) {
		rest := beyond(b.lists.vendors, after)
		for _, id := range rest[:min(max(limit, 0), len(rest))] {
			page = append(page, b.at(ledger.Ref{Kind: payables.VendorKind, ID: id}).(payables.Vendor))
		}
	})
	return page, nil
}
