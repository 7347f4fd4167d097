package restserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// request is a read while it is answered.
type request struct {
	*http.Request
	context.Context
	caller
	query url.Values
}

// read answers a resource that is only read. find returns its document.
func (s *Server) read(resource restwire.Read, find func(*Server, request, http.Header) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		document, err := func() (any, error) {
			who, err := s.caller(r)
			if err != nil {
				return nil, err
			}
			if err := who.permit(resource.Scope); err != nil {
				return nil, err
			}
			query, err := parameters(r, resource.Query)
			if err != nil {
				return nil, err
			}
			timeout, err := requestTimeout(r.Header)
			if err != nil {
				return nil, err
			}
			ctx, stop := context.WithTimeout(r.Context(), timeout)
			defer stop()
			return find(s, request{r, ctx, who, query}, w.Header())
		}()
		if err != nil {
			s.fail(w, err)
			return
		}
		answer(w, http.StatusOK, document)
	}
}

// parameters refuses a query parameter that the resource has not, or twice.
func parameters(r *http.Request, known []restwire.Query) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalidOne("query", "is not a well-formed query")
	}
	var issues []fault.Issue
	for name, values := range given {
		if !slices.ContainsFunc(known, func(q restwire.Query) bool { return q.Name == name }) {
			issues = append(issues, fault.Issue{Path: []any{"query"}, Code: "unknown_property", Message: "the query has a parameter that is not known"})
		} else if len(values) > 1 {
			issues = append(issues, fault.Issue{Path: []any{name}, Code: "duplicate_property", Message: name + " was sent more than once"})
		}
	}
	if len(issues) > 0 {
		return nil, invalid(issues)
	}
	return given, nil
}

// customer reads the customer's id from the path.
func (r request) customer() (customers.ID, error) {
	id, err := customers.ParseID(r.PathValue("id"))
	if err != nil {
		return id, invalidOne("id", "must be CUST- followed by five digits")
	}
	return id, nil
}

// number reads a whole number of the query, or 0 if it is absent.
func (r request) number(name string) (int64, error) {
	text := r.query.Get(name)
	if text == "" && !r.query.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, invalidOne(name, "must be a whole number, 0 or more")
	}
	return n, nil
}

func (r request) limit() (int, error) {
	if !r.query.Has("limit") {
		return restwire.DefaultPage, nil
	}
	n, err := r.number("limit")
	if err != nil || n < 1 || n > restwire.MaxPage {
		return 0, invalidOne("limit", fmt.Sprintf("must be 1 to %d", restwire.MaxPage))
	}
	return int(n), nil
}

func noSuch(reason, what string) error {
	return refuse(http.StatusNotFound, fault.NotFound, reason, "There is no such %s.", what)
}

func getCustomer(s *Server, r request, h http.Header) (any, error) {
	id, err := r.customer()
	if err != nil {
		return nil, err
	}
	t := r.Tenant()
	account, ok, err := load[customers.Account](s, r, id.Ref())
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, customers.NotFound(id)
	}
	h.Set("ETag", restwire.ETag(account.Version()))
	return restwire.CustomerOf(t, account), nil
}

// load reads one record.
func load[R ledger.Record](s *Server, r request, ref ledger.Ref) (record R, there bool, err error) {
	v, err := s.store.Load(r, r.Tenant(), ref)
	if err != nil {
		return record, false, err
	}
	record, there = ledger.Get[R](v, ref)
	return record, there, nil
}

func getOperation(s *Server, r request, _ http.Header) (any, error) {
	key, err := operation.ParseKey(r.PathValue("key"))
	if err != nil {
		return nil, invalidOne("key", "must match "+operation.KeyPattern)
	}
	out, ok, err := load[ledger.Outcome](s, r, ledger.OutcomeRef(r.ID(), key))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noSuch(restwire.ReasonOperation, "operation of this principal")
	}
	return restwire.OutcomeOf(out)
}

// booked reads the customer and the number of one of its refunds from the path.
func (r request) booked() (customers.ID, int64, error) {
	id, err := r.customer()
	if err != nil {
		return id, 0, err
	}
	n, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err != nil {
		return id, 0, invalidOne("number", "must be a whole number")
	}
	return id, n, nil
}

func getRefund(s *Server, r request, _ http.Header) (any, error) {
	id, n, err := r.booked()
	if err != nil {
		return nil, err
	}
	refund, ok, err := load[refunds.Refund](s, r, refunds.RefOf(id, n))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noSuch("refund_not_found", "refund")
	}
	return restwire.RefundOf(r.Tenant(), refund), nil
}

func getReversal(s *Server, r request, _ http.Header) (any, error) {
	id, n, err := r.booked()
	if err != nil {
		return nil, err
	}
	reversal, ok, err := load[refunds.Reversal](s, r, refunds.ReversalRef(id, n))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noSuch("reversal_not_found", "reversal")
	}
	return restwire.ReversalOf(r.Tenant(), reversal), nil
}

// page encodes rows until there are limit of them or MaxPageBytes. rows are one
// more than limit if there is more. It returns how many fit, and whether others
// follow.
func page[R, W any](rows []R, limit int, words func(R) W) (shown []W, more bool) {
	shown = make([]W, 0, min(len(rows), limit))
	bytes := 0
	var scratch []byte
	for _, row := range rows {
		if len(shown) == limit || bytes > restwire.MaxPageBytes {
			return shown, true
		}
		w := words(row)
		scratch = restwire.Append(scratch[:0], w)
		bytes += len(scratch)
		shown = append(shown, w)
	}
	return shown, false
}

func listCustomers(s *Server, r request, _ http.Header) (any, error) {
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	t := r.Tenant()
	rows, err := s.store.ListAccounts(r, t, r.query.Get("after"), limit+1)
	if err != nil {
		return nil, err
	}
	shown, more := page(rows, limit, func(a customers.Account) restwire.Customer { return restwire.CustomerOf(t, a) })
	out := restwire.Customers{Customers: shown}
	if more {
		out.Next = new(shown[len(shown)-1].ID)
	}
	return out, nil
}

func listRefunds(s *Server, r request, _ http.Header) (any, error) {
	id, err := r.customer()
	if err != nil {
		return nil, err
	}
	cursor, err := r.number("cursor")
	if err != nil {
		return nil, err
	}
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	t := r.Tenant()
	rows, err := s.store.ListRefunds(r, t, id, cursor, limit+1)
	if err != nil {
		return nil, err
	}
	shown, more := page(rows, limit, func(x refunds.Refund) restwire.Refund { return restwire.RefundOf(t, x) })
	out := restwire.Refunds{Refunds: shown}
	if more {
		out.Next = new(strconv.FormatInt(shown[len(shown)-1].Number, 10))
	}
	return out, nil
}

func listEntries(s *Server, r request, _ http.Header) (any, error) {
	after, err := r.number("after")
	if err != nil {
		return nil, err
	}
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	subject := journal.Subject{Kind: r.PathValue("kind"), ID: r.PathValue("id")}
	rows, err := s.store.ListEntries(r, r.Tenant(), subject, after, limit+1)
	if err != nil {
		return nil, err
	}
	shown, more := page(rows, limit, restwire.EntryOf)
	out := restwire.Entries{Entries: shown}
	if more {
		out.Next = new(strconv.FormatInt(shown[len(shown)-1].Number, 10))
	}
	return out, nil
}

// listJournal goes through the accounts in order of id, and through the entries
// of each up to its head: what comes later is not part of the account as it was
// read, and is found by who asks again.
func listJournal(s *Server, r request, _ http.Header) (any, error) {
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	at, err := parsePosition(r.query.Get("after"))
	if err != nil {
		return nil, err
	}
	rows, err := s.entriesFrom(r, r.Tenant(), at, limit+1)
	if err != nil {
		return nil, err
	}
	shown, more := page(rows, limit, restwire.EntryOf)
	out := restwire.Entries{Entries: shown}
	if more {
		last := shown[len(shown)-1]
		out.Next = new(position{last.SubjectID, last.Number}.String())
	}
	return out, nil
}

// position is a place in the journal of a tenant: behind an entry.
type position struct {
	account string
	number  int64
}

func (p position) String() string { return p.account + "/" + strconv.FormatInt(p.number, 10) }

func parsePosition(text string) (position, error) {
	if text == "" {
		return position{}, nil
	}
	account, rest, _ := strings.Cut(text, "/")
	_, err := customers.ParseID(account)
	n, err2 := strconv.ParseInt(rest, 10, 64)
	if p := (position{account, n}); err == nil && err2 == nil && p.String() == text && n > 0 {
		return p, nil
	}
	return position{}, invalidOne("after", "must be the next of the page before")
}

func (s *Server) entriesFrom(ctx context.Context, t access.Tenant, at position, limit int) ([]journal.Entry, error) {
	subject := func(account string) journal.Subject {
		return journal.Subject{Kind: customers.Kind.Name, ID: account}
	}
	var rows []journal.Entry
	add := func(account string, after int64) error {
		found, err := s.store.ListEntries(ctx, t, subject(account), after, limit-len(rows))
		rows = append(rows, found...)
		return err
	}
	if at.account != "" {
		if err := add(at.account, at.number); err != nil {
			return nil, err
		}
	}
	for after := at.account; len(rows) < limit; {
		accounts, err := s.store.ListAccounts(ctx, t, after, limit)
		if err != nil || len(accounts) == 0 {
			return rows, err
		}
		for _, a := range accounts {
			if after = a.ID.String(); len(rows) == limit {
				return rows, nil
			}
			if err := add(after, 0); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}
