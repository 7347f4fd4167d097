package restclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

var (
	_ ports.Payables   = (*Client)(nil)
	_ ports.Tolerances = (*Client)(nil)
)

// Why a service is of no use for payables. No repetition helps.
var (
	// ErrNoPayables: the service has no such resource.
	ErrNoPayables = errors.New("the service keeps no payables")
	// ErrScope: the token may not read them.
	ErrScope = errors.New("the token may not read payables")
)

// KeepsPayables asks the service once whether it keeps payables and shows them
// to this client. Any error but those above says that it could not be asked.
func (c *Client) KeepsPayables(ctx context.Context) error {
	h := c.header("")
	h.Del(restwire.HeaderTenant) // the token's
	a, err := c.ask(ctx, restwire.ListInvoices.Path+"?limit=1", h)
	switch {
	case err != nil:
		return err
	case a.status == http.StatusNotFound:
		return ErrNoPayables // of whatever form: a service without the resource may say so in its own way
	case a.status == http.StatusForbidden && a.problem == nil && a.refused.Needs != (access.Scope{}):
		return fmt.Errorf("%w: it has not the scope %s", ErrScope, a.refused.Needs)
	case a.err != nil:
		return errors.New(cause(a.err))
	case a.status == http.StatusOK:
		return nil
	}
	return fmt.Errorf("the service answers with the status %d", a.status)
}

func loadVendor(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	if _, err := payables.ParseVendorID(ref.ID); err != nil {
		return nil, nil
	}
	return one(ctx, c, t, "", ref, restwire.GetVendor, c.forms.Vendor, ref.ID)
}

func loadReceipt(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	if _, err := payables.ParseReceiptID(ref.ID); err != nil {
		return nil, nil
	}
	return one(ctx, c, t, "", ref, restwire.GetReceipt, restwire.ReceiptForm, ref.ID)
}

func loadDecision(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	id, number, _ := strings.Cut(ref.ID, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if _, bad := payables.ParseVendorID(id); bad != nil || err != nil || strconv.FormatInt(n, 10) != number {
		return nil, nil
	}
	return one(ctx, c, t, "", ref, restwire.GetDecision, restwire.DecisionForm, id, number)
}

func loadClaim(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	id, rest, _ := strings.Cut(ref.ID, "/")
	kind, normal, _ := strings.Cut(rest, "/")
	_, bad := payables.ParseVendorID(id)
	_, worse := payables.ParseDocumentKind(kind)
	// What separates is gone from the normal form, so it is one step of a path.
	if bad != nil || worse != nil || normal == "" || strings.ContainsAny(normal, "/.") {
		return nil, nil
	}
	return one(ctx, c, t, "", ref, restwire.GetNumberClaim, restwire.ClaimForm, id, kind, normal)
}

func loadInvoice(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	if _, err := payables.ParseInvoiceID(ref.ID); err != nil {
		return nil, nil
	}
	return whole(ctx, c, t, ref, restwire.GetInvoice, restwire.GetInvoiceLines, c.forms.Invoice)
}

func loadOrder(ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	if _, err := payables.ParseOrderID(ref.ID); err != nil {
		return nil, nil
	}
	return whole(ctx, c, t, ref, restwire.GetOrder, restwire.GetOrderLines, restwire.OrderForm)
}

// How often a record is read again that has changed before all of its lines were
// there, and the wait before that.
const (
	rereads    = 5
	rereadWait = 20 * time.Millisecond
)

// whole reads a record with all its lines, part by part. Parts of different
// states never become one record: it is read again.
func whole[R ledger.Record, W, L, P any](ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref, head, rest restwire.Read, f restwire.Lined[R, W, L, P]) (ledger.Record, error) {
	for n := range rereads {
		if n > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(rereadWait << n):
			}
		}
		r, there, same, err := assemble(ctx, c, t, ref, head, rest, f)
		switch {
		case err != nil:
			return nil, err
		case same && !there:
			return nil, nil
		case same:
			return r, nil
		}
	}
	return nil, fault.New(fault.BackendUnavailable, "record_changing", "%s changed while it was read, again and again. Nothing has happened. Try again later.", ref.ID)
}

// assemble reads a record part by part. It is not the same if it changed
// meanwhile.
func assemble[R ledger.Record, W, L, P any](ctx context.Context, c *Client, t access.Tenant, ref ledger.Ref, head, rest restwire.Read, f restwire.Lined[R, W, L, P]) (r R, there, same bool, err error) {
	a, err := c.get(ctx, t, "", head, []string{ref.ID}, nil)
	if err != nil || a == nil {
		return r, false, true, err
	}
	bad := func(resource restwire.Read, err error) (R, bool, bool, error) {
		return r, false, false, c.unreadable(resource.Name, err)
	}
	tag := a.header.Get("ETag")
	if err := a.isJSON(); err != nil || !restwire.IsTag(tag) {
		return bad(head, errors.Join(err, errTag))
	}
	all, err := f.Begin(a.body)
	if err != nil {
		return bad(head, err)
	}
	for all.Next() != nil {
		a, err := c.get(ctx, t, "", rest, []string{ref.ID}, url.Values{"cursor": {*all.Next()}})
		if err != nil {
			return r, false, false, err
		}
		if a == nil {
			return bad(rest, errors.New("the lines are not there"))
		}
		if err := a.isJSON(); err != nil || !restwire.IsTag(a.header.Get("ETag")) {
			return bad(rest, errors.Join(err, errTag))
		}
		if a.header.Get("ETag") != tag {
			return r, true, false, nil
		}
		if err := all.Add(a.body, payables.MaxLines); err != nil {
			return bad(rest, err)
		}
	}
	if r, err = all.Record(t); err == nil && r.Ref() != ref {
		err = errAnother
	}
	if err != nil {
		return bad(head, err)
	}
	return r, true, true, nil
}

var errTag = errors.New("the ETag is not a strong one")

// ListInvoices implements ports.Payables. Where something stands in for a
// currency, the service can not tell what is in one: it is asked for all, and
// they are told apart here.
func (c *Client) ListInvoices(ctx context.Context, t access.Tenant, f ports.InvoiceFilter, after string, limit int) ([]payables.Invoice, error) {
	filter := url.Values{}
	for name, value := range map[string]string{"status": f.Status.String(), "vendor": f.Vendor.String(), "order": f.Order.String(), "currency": f.Currency.String()} {
		if value != "" {
			filter.Set(name, value)
		}
	}
	if f.Undecided {
		filter.Set("undecided", "true")
	}
	inCurrency := func(i payables.Invoice) bool { return i.Currency.String() == f.Currency.String() }
	var keep func(payables.Invoice) bool
	if c.fallback != (money.Currency{}) && f.Currency != (money.Currency{}) {
		keep = inCurrency
		filter.Del("currency")
	}
	return ordered(ctx, c, t, restwire.ListInvoices, c.forms.Invoices, nil, filter, keep, "cursor", after, limit, payables.ParseInvoiceID, func(i payables.Invoice) string { return i.ID.String() }, func(i payables.Invoice) bool {
		return (f.Status == payables.Status{} || i.Status == f.Status) && (f.Vendor == payables.VendorID{} || i.Vendor == f.Vendor) &&
			(f.Order == payables.OrderID{} || i.Order == f.Order) && (f.Currency == money.Currency{} || keep != nil || inCurrency(i)) && !(f.Undecided && i.Status.Final())
	})
}

// LatestInvoices implements ports.Payables.
func (c *Client) LatestInvoices(ctx context.Context, t access.Tenant, v payables.VendorID, before int64, limit int) ([]payables.Invoice, error) {
	if v == (payables.VendorID{}) {
		return nil, nil
	}
	from := ""
	if before > 0 {
		from = strconv.FormatInt(before, 10)
	}
	return list(ctx, c, t, restwire.LatestInvoices, c.forms.Invoices, []string{v.String()}, "cursor", from, limit, func(last *payables.Invoice, i payables.Invoice) bool {
		if last != nil {
			return i.Vendor == v && i.Entered < last.Entered
		}
		return i.Vendor == v && (before <= 0 || i.Entered < before)
	})
}

// SumInvoices implements ports.Payables.
func (c *Client) SumInvoices(ctx context.Context, t access.Tenant) ([]ports.InvoiceSum, error) {
	return single(ctx, c, t, restwire.SumInvoices, c.forms.Sums)
}

// Tolerance implements ports.Tolerances: the service's, under which it decides.
func (c *Client) Tolerance(ctx context.Context, t access.Tenant) (payables.Tolerance, error) {
	return single(ctx, c, t, restwire.GetPolicy, restwire.PolicyForm)
}

// single reads what there is one of for each tenant.
func single[R, W any](ctx context.Context, c *Client, t access.Tenant, resource restwire.Read, f restwire.Form[R, W]) (r R, err error) {
	a, err := c.get(ctx, t, "", resource, nil, nil)
	if err != nil {
		return r, err
	}
	if a == nil {
		return r, c.unreadable(resource.Name, errors.New("it is not there"))
	}
	if err = a.isJSON(); err == nil {
		if r, err = f.Read(a.body, t); err == nil {
			return r, nil
		}
	}
	var none R
	return none, c.unreadable(resource.Name, err)
}

// ListReceipts implements ports.Payables.
func (c *Client) ListReceipts(ctx context.Context, t access.Tenant, o payables.OrderID, after string, limit int) ([]payables.Receipt, error) {
	if o == (payables.OrderID{}) {
		return nil, nil
	}
	return ordered(ctx, c, t, restwire.ListReceipts, restwire.ReceiptPages, []string{o.String()}, nil, nil, "cursor", after, limit, payables.ParseReceiptID,
		func(r payables.Receipt) string { return r.ID.String() }, func(r payables.Receipt) bool { return r.Order == o })
}

// ListVendors implements ports.Payables.
func (c *Client) ListVendors(ctx context.Context, t access.Tenant, after string, limit int) ([]payables.Vendor, error) {
	return ordered(ctx, c, t, restwire.ListVendors, c.forms.Vendors, nil, nil, nil, "cursor", after, limit, payables.ParseVendorID,
		func(v payables.Vendor) string { return v.ID.String() }, func(payables.Vendor) bool { return true })
}
