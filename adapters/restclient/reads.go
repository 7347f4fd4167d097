package restclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// Load implements ports.Ledger: one request for each record.
func (c *Client) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	v := ledger.NewView(operation.Operation{Tenant: t}, len(refs))
	for _, ref := range refs {
		record, err := c.load(ctx, t, ref)
		if err != nil {
			return ledger.View{}, err
		}
		v.Put(ref, record)
	}
	return v, nil
}

// load reads one record; nil if there is none.
func (c *Client) load(ctx context.Context, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	switch ref.Kind {
	case customers.Kind:
		return c.account(ctx, t, ref)
	case refunds.Kind:
		id, number, ok := booked(ref)
		if !ok {
			return nil, nil
		}
		return one(ctx, c, t, restwire.GetRefund, []string{id.String(), number}, restwire.RefundDecoder, func(w restwire.Refund) (ledger.Record, error) {
			r, err := w.Record(t)
			return r, same(err, r.Ref(), ref)
		})
	case refunds.ReversalKind:
		id, number, ok := booked(ref)
		if !ok {
			return nil, nil
		}
		return one(ctx, c, t, restwire.GetReversal, []string{id.String(), number}, restwire.ReversalDecoder, func(w restwire.Reversal) (ledger.Record, error) {
			r, err := w.Record(t)
			return r, same(err, r.Ref(), ref)
		})
	case ledger.EntryKind:
		subject, number, ok := ledger.ParseEntryRef(ref)
		if !ok || number < 1 {
			return nil, nil
		}
		entries, err := c.ListEntries(ctx, t, subject, number-1, 1)
		if err != nil || len(entries) == 0 {
			return nil, err
		}
		return ledger.Booked{Entry: entries[0]}, nil
	case ledger.OutcomeKind:
		return c.outcome(ctx, t, ref)
	}
	return nil, fmt.Errorf("restclient: records of the kind %s have no resource", ref.Kind.Name)
}

// same refuses a record that was not asked for.
func same(err error, got, want ledger.Ref) error {
	if err == nil && got != want {
		return errAnother
	}
	return err
}

// booked takes apart the ref of a refund or of its reversal.
func booked(ref ledger.Ref) (id customers.ID, number string, ok bool) {
	text, number, _ := strings.Cut(ref.ID, "/")
	id, err := customers.ParseID(text)
	n, err2 := strconv.ParseInt(number, 10, 64)
	return id, number, err == nil && err2 == nil && strconv.FormatInt(n, 10) == number
}

func (c *Client) account(ctx context.Context, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	if _, err := customers.ParseID(ref.ID); err != nil {
		return nil, nil
	}
	a, err := c.get(ctx, t, "", restwire.GetCustomer, []string{ref.ID}, nil)
	if err != nil || a == nil {
		return nil, err
	}
	w, err := read(a, restwire.CustomerDecoder)
	if err == nil {
		var account customers.Account
		if account, err = w.Account(t); err == nil {
			err = same(nil, account.Ref(), ref)
		}
		if tag := a.header.Get("ETag"); err == nil && tag != restwire.ETag(account.Version()) {
			err = errors.New("the ETag is not that of the version")
		}
		if err == nil {
			return account, nil
		}
	}
	return nil, c.unreadable(restwire.GetCustomer.Name, err)
}

func (c *Client) outcome(ctx context.Context, t access.Tenant, ref ledger.Ref) (ledger.Record, error) {
	principal, text, _ := strings.Cut(ref.ID, "/")
	key, err := operation.ParseKey(text)
	if err != nil {
		return nil, nil
	}
	a, err := c.get(ctx, t, principal, restwire.GetOperation, []string{text}, nil)
	if err != nil || a == nil {
		return nil, err
	}
	out, err := c.operation(*a, t, principal, key)
	if err != nil {
		return nil, c.unreadable(restwire.GetOperation.Name, err)
	}
	return out, nil
}

// operation reads the outcome of an operation, which must be the one that was
// asked for.
func (c *Client) operation(a attempt, t access.Tenant, principal string, key operation.Key) (ledger.Outcome, error) {
	w, err := read(&a, restwire.OutcomeDecoder)
	if err != nil {
		return ledger.Outcome{}, err
	}
	out, err := w.Record(t)
	return out, same(err, out.Ref(), ledger.OutcomeRef(principal, key))
}

// one reads one document.
func one[W any](ctx context.Context, c *Client, t access.Tenant, resource restwire.Read, params []string, d *strictjson.Decoder[W], record func(W) (ledger.Record, error)) (ledger.Record, error) {
	a, err := c.get(ctx, t, "", resource, params, nil)
	if err != nil || a == nil {
		return nil, err
	}
	w, err := read(a, d)
	if err == nil {
		var r ledger.Record
		if r, err = record(w); err == nil {
			return r, nil
		}
	}
	return nil, c.unreadable(resource.Name, err)
}

// read reads the document of an answer.
func read[W any](a *attempt, d *strictjson.Decoder[W]) (W, error) {
	var w W
	if !restwire.IsMedia(a.header.Get("Content-Type"), restwire.TypeJSON) {
		return w, fmt.Errorf("the answer is not %s", restwire.TypeJSON)
	}
	w, issues := restwire.Decode(d, a.body)
	if len(issues) == 0 {
		return w, nil
	}
	if issues[0].Code == strictjson.CodeUnknown { // whose message repeats what the service sent
		return w, errors.New("a member that nobody declared")
	}
	return w, errors.New(issues[0].Message)
}

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
	case a.problem != nil:
		return nil, c.unreadable(resource.Name, a.problem)
	}
	err := refusal(a)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, nil
	}
	if fault.CodeOf(err) == fault.InvalidInput {
		return nil, fmt.Errorf("restclient: the service does not understand the request: %w", errors.New(err.Error()))
	}
	return nil, err
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

// refusal is what a problem says, as this side means it: a fault, or a mistake
// in how the service is set up.
func refusal(a attempt) error {
	f := a.refused.Fault
	switch {
	case f == nil && a.refused.Needs != (access.Scope{}):
		return fmt.Errorf("restclient: the service refuses the token: it has not the scope %s", a.refused.Needs)
	case f == nil:
		return fmt.Errorf("restclient: the service refuses the token: status %d, reason %s", a.status, a.refused.Reason)
	case f.Reason == restwire.ReasonNoResource || f.Reason == restwire.ReasonMethod || f.Reason == restwire.ReasonMedia:
		return fmt.Errorf("restclient: the service has not the resource: status %d, reason %s", a.status, f.Reason)
	}
	return f
}

// ListAccounts implements ports.Journal.
func (c *Client) ListAccounts(ctx context.Context, t access.Tenant, after string, limit int) ([]customers.Account, error) {
	return list(ctx, c, t, restwire.ListCustomers, nil, "after", after, limit, restwire.CustomersDecoder,
		func(page restwire.Customers, before []customers.Account) ([]customers.Account, *string, error) {
			for _, w := range page.Customers {
				a, err := w.Account(t)
				if n := len(before); err == nil && (n > 0 && a.ID.String() <= before[n-1].ID.String() || a.ID.String() <= after) {
					err = errOrder
				}
				if err != nil {
					return nil, nil, err
				}
				before = append(before, a)
			}
			return before, page.Next, nil
		})
}

var errOrder = errors.New("the rows of a page are not in their order, or not those asked for")

// ListRefunds implements ports.Refunds.
func (c *Client) ListRefunds(ctx context.Context, t access.Tenant, id customers.ID, before int64, limit int) ([]refunds.Refund, error) {
	from := ""
	if before > 0 {
		from = strconv.FormatInt(before, 10)
	}
	return list(ctx, c, t, restwire.ListRefunds, []string{id.String()}, "cursor", from, limit, restwire.RefundsDecoder,
		func(page restwire.Refunds, rows []refunds.Refund) ([]refunds.Refund, *string, error) {
			for _, w := range page.Refunds {
				r, err := w.Record(t)
				if n := len(rows); err == nil && (r.Customer != id || n > 0 && r.Number >= rows[n-1].Number || before > 0 && r.Number >= before) {
					err = errOrder
				}
				if err != nil {
					return nil, nil, err
				}
				rows = append(rows, r)
			}
			return rows, page.Next, nil
		})
}

// ListEntries implements ports.Journal.
func (c *Client) ListEntries(ctx context.Context, t access.Tenant, s journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	after = max(after, 0)
	last := after
	return list(ctx, c, t, restwire.ListEntries, []string{s.Kind, s.ID}, "after", strconv.FormatInt(after, 10), limit, restwire.EntriesDecoder,
		func(page restwire.Entries, rows []journal.Entry) ([]journal.Entry, *string, error) {
			for _, w := range page.Entries {
				e, err := w.Record(t)
				if n := len(rows); n > 0 {
					last = rows[n-1].Number()
				}
				if err == nil && (e.Subject() != s || e.Number() <= last) {
					err = errOrder
				}
				if err != nil {
					return nil, nil, err
				}
				rows = append(rows, e)
			}
			return rows, page.Next, nil
		})
}

// list reads page after page until there are limit rows, or no next page. add
// checks the rows of a page and appends them to those before.
func list[W, R any](ctx context.Context, c *Client, t access.Tenant, resource restwire.Read, params []string, cursor, from string, limit int, d *strictjson.Decoder[W], add func(W, []R) ([]R, *string, error)) ([]R, error) {
	var rows []R
	for len(rows) < limit {
		want := min(limit-len(rows), restwire.MaxPage)
		query := url.Values{"limit": {strconv.Itoa(want)}}
		if from != "" {
			query.Set(cursor, from)
		}
		a, err := c.get(ctx, t, "", resource, params, query)
		if err != nil {
			return nil, err
		}
		if a == nil {
			return nil, c.unreadable(resource.Name, errors.New("the list is not there"))
		}
		page, err := read(a, d)
		if err != nil {
			return nil, c.unreadable(resource.Name, err)
		}
		before := len(rows)
		var next *string
		rows, next, err = add(page, rows)
		if err == nil && (len(rows)-before > want || next != nil && len(rows) == before) {
			err = errOrder
		}
		if err != nil {
			return nil, c.unreadable(resource.Name, err)
		}
		if next == nil {
			return rows, nil
		}
		from = *next
	}
	return rows, nil
}
