package restserver

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

var payablesReads = []route{
	{restwire.ListInvoices, listInvoices},
	whole(restwire.GetInvoice, restwire.Complete.Invoice, invoiceRef),
	part(restwire.GetInvoiceLines, restwire.Complete.Invoice, invoiceRef),
	{restwire.SumInvoices, sumInvoices},
	{restwire.GetPolicy, getPolicy},
	whole(restwire.GetOrder, restwire.OrderForm, orderRef),
	part(restwire.GetOrderLines, restwire.OrderForm, orderRef),
	{restwire.ListReceipts, listReceipts},
	record(restwire.GetReceipt, restwire.ReceiptForm, func(r request) (ledger.Ref, error, error) {
		id, err := named(r, payables.ParseReceiptID)
		return id.Ref(), noSuch("receipt_not_found", "goods receipt"), err
	}),
	{restwire.ListVendors, listVendors},
	record(restwire.GetVendor, restwire.Complete.Vendor, func(r request) (ledger.Ref, error, error) {
		id, err := named(r, payables.ParseVendorID)
		return id.Ref(), payables.VendorNotFound(id), err
	}),
	{restwire.LatestInvoices, latestInvoices},
	record(restwire.GetDecision, restwire.DecisionForm, func(r request) (ledger.Ref, error, error) {
		id, err := named(r, payables.ParseVendorID)
		if err != nil {
			return ledger.Ref{}, nil, err
		}
		n, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
		if err != nil {
			return ledger.Ref{}, nil, invalidOne("number", "must be a whole number")
		}
		return payables.DecisionRef(id, n), noSuch("decision_not_found", "decision"), nil
	}),
	record(restwire.GetNumberClaim, restwire.ClaimForm, func(r request) (ledger.Ref, error, error) {
		id, err := named(r, payables.ParseVendorID)
		if err != nil {
			return ledger.Ref{}, nil, err
		}
		kind, err := payables.ParseDocumentKind(r.PathValue("kind"))
		if err != nil {
			return ledger.Ref{}, nil, invalidOne("kind", err.Error())
		}
		claim := payables.NumberClaim{Vendor: id, Document: kind, Normal: r.PathValue("normal")}
		return claim.Ref(), noSuch("number_not_found", "number"), nil
	}),
}

func invoiceRef(r request) (ledger.Ref, error, error) {
	id, err := named(r, payables.ParseInvoiceID)
	return id.Ref(), payables.InvoiceNotFound(id), err
}

func orderRef(r request) (ledger.Ref, error, error) {
	id, err := named(r, payables.ParseOrderID)
	return id.Ref(), noSuch("order_not_found", "purchase order"), err
}

// named reads the id of the path.
func named[ID any](r request, parse func(string) (ID, error)) (ID, error) {
	id, err := parse(r.PathValue("id"))
	if err != nil {
		err = invalidOne("id", err.Error())
	}
	return id, err
}

// whole finds a record and sends it with its first lines.
func whole[R ledger.Record, W, L, P any](to restwire.Read, f restwire.Lined[R, W, L, P], named func(request) (ref ledger.Ref, missing, err error)) route {
	return route{to, func(s *Server, r request, h http.Header) (any, error) {
		found, err := lookUp[R](s, r, named)
		if err != nil {
			return nil, err
		}
		document, tag := f.First(r.Tenant(), found)
		h.Set("ETag", tag)
		return document, nil
	}}
}

// part finds a record and sends the lines after the cursor.
func part[R ledger.Record, W, L, P any](to restwire.Read, f restwire.Lined[R, W, L, P], named func(request) (ref ledger.Ref, missing, err error)) route {
	return route{to, func(s *Server, r request, h http.Header) (any, error) {
		after, err := r.number("cursor")
		if err != nil {
			return nil, err
		}
		found, err := lookUp[R](s, r, named)
		if err != nil {
			return nil, err
		}
		lines, tag, ok := f.After(r.Tenant(), found, after)
		if !ok {
			return nil, invalidOne("cursor", "must be the next of the part before")
		}
		h.Set("ETag", tag)
		return lines, nil
	}}
}

func listInvoices(s *Server, r request, _ http.Header) (any, error) {
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	var f ports.InvoiceFilter
	if f.Status, err = filter(r, "status", payables.ParseStatus); err != nil {
		return nil, err
	}
	if f.Vendor, err = filter(r, "vendor", payables.ParseVendorID); err != nil {
		return nil, err
	}
	if f.Order, err = filter(r, "order", payables.ParseOrderID); err != nil {
		return nil, err
	}
	if f.Currency, err = filter(r, "currency", recorded); err != nil {
		return nil, err
	}
	switch text := r.query.Get("undecided"); {
	case text == "true":
		f.Undecided = true
	case text != "false" && r.query.Has("undecided"):
		return nil, invalidOne("undecided", "must be true or false")
	}
	after, err := filter(r, "cursor", payables.ParseInvoiceID)
	if err != nil {
		return nil, err
	}
	rows, err := kept(s.store.ListInvoices(r, r.Tenant(), f, after.String(), limit+1))
	if err != nil {
		return nil, err
	}
	var out restwire.Invoices
	out.Invoices, out.Next = page(r.Tenant(), rows, limit, restwire.Complete.Header, func(i payables.Invoice) string { return i.ID.String() })
	return out, nil
}

// recorded reads the code of a currency that may be on record, also of one that
// ISO 4217 lists no more. Its digits are not asked for.
func recorded(code string) (money.Currency, error) {
	c, err := money.RestoreCurrency(code, 0)
	if err != nil {
		err = errors.New("must be a code of three upper-case letters such as USD")
	}
	return c, err
}

// filter reads what a list is of, or the id that it begins behind, or nothing if
// it is not asked for.
func filter[T any](r request, name string, parse func(string) (T, error)) (v T, err error) {
	if !r.query.Has(name) {
		return v, nil
	}
	if v, err = parse(r.query.Get(name)); err != nil {
		err = invalidOne(name, err.Error())
	}
	return v, err
}

func latestInvoices(s *Server, r request, _ http.Header) (any, error) {
	id, err := named(r, payables.ParseVendorID)
	if err != nil {
		return nil, err
	}
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	before, err := r.below()
	if err != nil {
		return nil, err
	}
	rows, err := kept(s.store.LatestInvoices(r, r.Tenant(), id, before, limit+1))
	if err != nil {
		return nil, err
	}
	var out restwire.Invoices
	out.Invoices, out.Next = page(r.Tenant(), rows, limit, restwire.Complete.Header, func(i payables.Invoice) string { return strconv.FormatInt(i.Entered, 10) })
	return out, nil
}

func sumInvoices(s *Server, r request, _ http.Header) (any, error) {
	sums, err := kept(s.store.SumInvoices(r, r.Tenant()))
	if err != nil {
		return nil, err
	}
	return restwire.Complete.Sums.Of(r.Tenant(), sums), nil
}

func getPolicy(s *Server, r request, _ http.Header) (any, error) {
	return restwire.PolicyForm.Of(r.Tenant(), s.app.Tolerance), nil
}

// receiptChunk is how many receipts are loaded at once: each may have 10,000
// lines, and a page is full with a few of those.
const receiptChunk = 16

func listReceipts(s *Server, r request, _ http.Header) (any, error) {
	id, err := named(r, payables.ParseOrderID)
	if err != nil {
		return nil, err
	}
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	from, err := filter(r, "cursor", payables.ParseReceiptID)
	if err != nil {
		return nil, err
	}
	after := func(x payables.Receipt) string { return x.ID.String() }
	rows := inChunks(from.String(), receiptChunk, limit+1, after, func(after string, n int) (list []payables.Receipt) {
		list, err = s.store.ListReceipts(r, r.Tenant(), id, after, n)
		return list
	})
	var out restwire.Receipts
	out.Receipts, out.Next = pageOf(r.Tenant(), rows, limit, restwire.ReceiptForm, after)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func listVendors(s *Server, r request, _ http.Header) (any, error) {
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	after, err := filter(r, "cursor", payables.ParseVendorID)
	if err != nil {
		return nil, err
	}
	rows, err := kept(s.store.ListVendors(r, r.Tenant(), after.String(), limit+1))
	if err != nil {
		return nil, err
	}
	var out restwire.Vendors
	out.Vendors, out.Next = page(r.Tenant(), rows, limit, restwire.Complete.Vendor, func(v payables.Vendor) string { return v.ID.String() })
	return out, nil
}
