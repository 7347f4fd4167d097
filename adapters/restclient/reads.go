package restclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
)

// loaders read the records of each kind. Without an error and a record there is
// none.
var loaders = map[ledger.Kind]func(context.Context, *Client, access.Tenant, ledger.Ref) (ledger.Record, error){
	customers.Kind:       loadCustomer,
	refunds.Kind:         loadRefund,
	refunds.ReversalKind: loadReversal,
	ledger.EntryKind:     loadEntry,
	ledger.OutcomeKind:   loadOutcome,

	payables.VendorKind:      loadVendor,
	payables.OrderKind:       loadOrder,
	payables.ReceiptKind:     loadReceipt,
	payables.InvoiceKind:     loadInvoice,
	payables.DecisionKind:    loadDecision,
	payables.NumberClaimKind: loadClaim,
}

// Load implements ports.Ledger: one request for each record.
func (c *Client) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	v := ledger.NewView(operation.Operation{Tenant: t}, len(refs))
	for _, ref := range refs {
		load := loaders[ref.Kind]
		if load == nil {
			return ledger.View{}, fmt.Errorf("restclient: records of the kind %s have no resource", ref.Kind.Name)
		}
		record, err := load(ctx, c, t, ref)
		if err != nil {
			return ledger.View{}, err
		}
		v.Put(ref, record)
	}
	return v, nil
}

// one reads the record of a ref from its resource, as the principal, if it is
// one's own.
func one[R ledger.Record, W any](ctx context.Context, c *Client, t access.Tenant, principal string, ref ledger.Ref, resource restwire.Read, f restwire.Form[R, W], params ...string) (ledger.Record, error) {
	a, err := c.get(ctx, t, principal, resource, params, nil)
	if err != nil || a == nil {
		return nil, err
	}
	r, err := record(a, f, t, ref)
	if err == nil && resource.Tagged && a.header.Get("ETag") != restwire.ETag(any(r).(ledger.Chained).Last().Number) {
		err = errors.New("the ETag is not that of the version")
	}
	if err != nil {
		return nil, c.unreadable(resource.Name, err)
	}
	return r, nil
}

// record reads the record of an answer, which must be the one that was asked for.
func record[R ledger.Record, W any](a *attempt, f restwire.Form[R, W], t access.Tenant, ref ledger.Ref) (r R, err error) {
	if err = a.isJSON(); err != nil {
		return r, err
	}
	if r, err = f.Read(a.body, t); err == nil && r.Ref() != ref {
		err = errAnother
	}
	return r, err
}

// isJSON refuses an answer that does not say that it is.
func (a *attempt) isJSON() error {
	if !restwire.IsMedia(a.header, restwire.TypeJSON) {
		return fmt.Errorf("the answer is not %s", restwire.TypeJSON)
	}
	return nil
}

// list reads page after page until there are limit rows, or no next page. start
// is where the query begins; follows reports whether a row may come after the one
// before, or, if that is nil, after the start.
func list[R, W, P any](ctx context.Context, c *Client, t access.Tenant, resource restwire.Read, pages restwire.Pages[R, W, P], params []string, cursor, start string, limit int, follows func(before *R, row R) bool) ([]R, error) {
	return filtered(ctx, c, t, resource, pages, params, nil, nil, cursor, start, limit, follows)
}

// filtered is a list of what the service filters, and of these what is kept on
// this side; keep is nil for all.
func filtered[R, W, P any](ctx context.Context, c *Client, t access.Tenant, resource restwire.Read, pages restwire.Pages[R, W, P], params []string, filter url.Values, keep func(R) bool, cursor, start string, limit int, follows func(before *R, row R) bool) ([]R, error) {
	var rows []R
	var before *R
	for from := start; len(rows) < limit; {
		want := min(limit-len(rows), restwire.MaxPage)
		if keep != nil { // nobody knows how many to ask for
			want = min(max(limit, restwire.DefaultPage), restwire.MaxPage)
		}
		query := url.Values{"limit": {strconv.Itoa(want)}}
		maps.Copy(query, filter)
		if from != "" {
			query.Set(cursor, from)
		}
		a, err := c.get(ctx, t, "", resource, params, query)
		if err != nil {
			return nil, err
		}
		page, next, err := pageOf(a, pages, t)
		if err == nil && (len(page) > want || next != nil && len(page) == 0) {
			err = errOrder
		}
		for n, row := range page {
			if !follows(before, row) {
				err = errOrder
			}
			before = &page[n]
			if keep == nil || keep(row) {
				rows = append(rows, row)
			}
		}
		if err != nil {
			return nil, c.unreadable(resource.Name, err)
		}
		if next == nil {
			break
		}
		from = *next
	}
	return rows[:max(0, min(len(rows), limit))], nil
}

// ordered is a filtered list in order of id, of the rows behind after. Only an id
// is a cursor: behind another text the list is read from its beginning, and what
// does not come after it left out. of reports whether a row is one of the list.
func ordered[R, ID, W, P any](ctx context.Context, c *Client, t access.Tenant, resource restwire.Read, pages restwire.Pages[R, W, P], params []string, filter url.Values, keep func(R) bool, cursor, after string, limit int, parse func(string) (ID, error), id func(R) string, of func(R) bool) ([]R, error) {
	start := after
	if _, err := parse(after); err != nil && after != "" {
		start = ""
		kept := keep
		keep = func(r R) bool { return id(r) > after && (kept == nil || kept(r)) }
	}
	return filtered(ctx, c, t, resource, pages, params, filter, keep, cursor, start, limit, func(before *R, r R) bool {
		from := start
		if before != nil {
			from = id(*before)
		}
		return id(r) > from && of(r)
	})
}

func pageOf[R, W, P any](a *attempt, pages restwire.Pages[R, W, P], t access.Tenant) ([]R, *string, error) {
	if a == nil {
		return nil, nil, errors.New("the list is not there")
	}
	if err := a.isJSON(); err != nil {
		return nil, nil, err
	}
	return pages.Read(a.body, t)
}

var errOrder = errors.New("the rows of a page are not in their order, or not those asked for")

// get asks for a resource. Without an error and an answer there is none.
func (c *Client) get(ctx context.Context, t access.Tenant, principal string, resource restwire.Read, params []string, query url.Values) (*attempt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := restwire.Expand(resource.Path, params...)
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	a := c.send(ctx, &call{until: c.until(ctx)}, http.MethodGet, path, c.lookUpHeader(t.String(), principal), nil)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case a.status == http.StatusOK && a.err == nil:
		return &a, nil
	case a.status == http.StatusOK && errors.Is(a.err, restwire.ErrTooLarge):
		return nil, c.unreadable(resource.Name, a.err)
	case errors.Is(a.err, errEcho):
		return nil, c.unreadable(resource.Name, a.err)
	case a.err != nil || a.status >= http.StatusInternalServerError || a.status == http.StatusTooManyRequests:
		return nil, unreachable()
	case a.status < http.StatusBadRequest:
		return nil, c.unreadable(resource.Name, fmt.Errorf("the status is %d", a.status))
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden: // of whatever form
		return nil, c.shutOut(resource.Name, a)
	case a.problem != nil:
		return nil, c.unreadable(resource.Name, a.problem)
	}
	switch f := a.refused.Fault; {
	case f.Code == fault.NotFound && f.Reason != restwire.ReasonNoResource:
		return nil, nil
	case f.Code == fault.BackendUnavailable:
		return nil, unreachable()
	}
	return nil, c.misunderstood(resource.Name, a)
}

// ask reads once, past the breaker.
func (c *Client) ask(ctx context.Context, path string, header http.Header) (attempt, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return attempt{}, errors.New("the request can not be made")
	}
	r.Header = header
	return c.once(r), nil
}

// lookUpHeader is that of a read on behalf of a principal, or of nobody.
func (c *Client) lookUpHeader(tenant, principal string) http.Header {
	h := c.header(tenant)
	if principal != "" {
		h.Set(restwire.HeaderPrincipal, principal)
	}
	return h
}
