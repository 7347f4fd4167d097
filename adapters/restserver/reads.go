package restserver

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// route is a resource that is only read, and what finds its document.
type route struct {
	restwire.Read
	find func(*Server, request, http.Header) (any, error)
}

// reads are the routes of all subjects.
var reads = slices.Concat(customerReads, refundReads, payablesReads, operationReads, journalReads)

// request is a read while it is answered.
type request struct {
	*http.Request
	context.Context
	caller
	query url.Values
}

// read answers a route.
func (s *Server) read(to route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 { // or a long answer waits for a body that nobody reads
			w.Header().Set("Connection", "close")
		}
		document, err := func() (any, error) {
			who, err := s.caller(r)
			if err != nil {
				return nil, err
			}
			if err := who.permit(to.Scope); err != nil {
				return nil, err
			}
			query, err := parameters(r, to.Query)
			if err != nil {
				return nil, err
			}
			timeout, err := requestTimeout(r.Header)
			if err != nil {
				return nil, err
			}
			ctx, stop := context.WithTimeout(r.Context(), timeout)
			defer stop()
			return to.find(s, request{r, ctx, who, query}, w.Header())
		}()
		if err != nil {
			s.fail(w, err)
			return
		}
		answer(w, http.StatusOK, document)
	}
}

// maxName is how much of an unknown parameter's name is repeated, in code points.
const maxName = 64

// parameters refuses a query parameter that the resource has not, or twice. An
// unknown name is repeated quoted and up to maxName; the known ones are listed.
func parameters(r *http.Request, known []restwire.Query) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalidOne("query", "is not a well-formed query")
	}
	var names []string
	for _, q := range known {
		names = append(names, q.Name)
	}
	hint := "the resource has none"
	if len(names) > 0 {
		hint = "the resource has " + strings.Join(names, ", ")
	}
	var issues []fault.Issue
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			issues = append(issues, fault.Issue{Path: []any{"query"}, Code: "unknown_property", Message: fmt.Sprintf("unknown query parameter %.*q; %s", maxName, name, hint)})
		} else if len(given[name]) > 1 {
			issues = append(issues, fault.Issue{Path: []any{name}, Code: "duplicate_property", Message: name + " was sent more than once"})
		}
	}
	if len(issues) > 0 {
		return nil, invalid(issues)
	}
	return given, nil
}

// number reads a whole number of the query, or 0 if it is absent.
func (r request) number(name string) (int64, error) {
	text := r.query.Get(name)
	if text == "" && !r.query.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, invalidOne(name, "must be a whole number, 0 or more")
	}
	return n, nil
}

// below reads the entry number that a list with the newest first begins below, or
// 0 if it is absent. To a store 0 is the newest, so nobody may ask for it.
func (r request) below() (int64, error) {
	n, err := r.number("cursor")
	if err == nil && n == 0 && r.query.Has("cursor") {
		err = invalidOne("cursor", "must be the next of the page before")
	}
	return n, err
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

// record finds the record that the path names. named reads the path; missing is
// the error if there is no such record.
func record[R ledger.Record, W any](to restwire.Read, f restwire.Form[R, W], named func(request) (ref ledger.Ref, missing, err error)) route {
	return route{to, func(s *Server, r request, h http.Header) (any, error) {
		found, err := lookUp[R](s, r, named)
		if err != nil {
			return nil, err
		}
		if to.Tagged {
			h.Set("ETag", restwire.TagOf(r.Tenant(), found))
		}
		return f.Of(r.Tenant(), found), nil
	}}
}

func lookUp[R ledger.Record](s *Server, r request, named func(request) (ref ledger.Ref, missing, err error)) (found R, err error) {
	ref, missing, err := named(r)
	if err != nil {
		return found, err
	}
	v, err := s.store.Load(r, r.Tenant(), ref)
	if err != nil {
		return found, err
	}
	found, ok := ledger.Get[R](v, ref)
	if !ok {
		return found, missing
	}
	return found, complete(found)
}

// kept are rows that are complete.
func kept[R any](rows []R, err error) ([]R, error) {
	for _, row := range rows {
		if err == nil {
			err = complete(row)
		}
	}
	return rows, err
}

// complete refuses a record of which the store has filled something in: on the
// wire nothing would say so.
func complete(record any) error {
	var synthesised []payables.Field
	switch r := record.(type) {
	case payables.Invoice:
		synthesised = r.Synthesised
	case payables.Vendor:
		synthesised = r.Synthesised
	case ports.InvoiceSum:
		synthesised = r.Synthesised
	}
	if len(synthesised) > 0 {
		return fmt.Errorf("restserver: the store does not keep %v of a %T but fills it in", synthesised, record)
	}
	return nil
}

// page makes the documents of a page, of rows that are one more than limit if
// there are more. A page ends after limit rows or MaxPageBytes, whatever one row
// has; then next is where the one after it begins, as after its last row.
func page[R, W any](t access.Tenant, rows []R, limit int, f restwire.Form[R, W], after func(R) string) (shown []W, next *string) {
	return pageOf(t, slices.Values(rows), limit, f, after)
}

// pageOf is page, of rows that are asked for only as long as the page has room.
func pageOf[R, W any](t access.Tenant, rows iter.Seq[R], limit int, f restwire.Form[R, W], after func(R) string) (shown []W, next *string) {
	shown = []W{}
	bytes := 0
	var scratch []byte
	var last R
	for row := range rows {
		if len(shown) == limit {
			return shown, new(after(last))
		}
		w := f.Of(t, row)
		scratch = restwire.Append(scratch[:0], w)
		if bytes += len(scratch) + 1; bytes > restwire.MaxPageBytes && len(shown) > 0 {
			return shown, new(after(last))
		}
		shown, last = append(shown, w), row
	}
	return shown, nil
}

// inChunks gives up to most rows, loaded chunk by chunk as they are asked for.
// They begin behind the id from, and end with what load returns short of n.
func inChunks[R any](from string, chunk, most int, id func(R) string, load func(after string, n int) []R) iter.Seq[R] {
	return func(yield func(R) bool) {
		for most > 0 {
			n := min(chunk, most)
			rows := load(from, n)
			for _, row := range rows {
				if !yield(row) {
					return
				}
			}
			if len(rows) < n {
				return
			}
			most -= n
			from = id(rows[n-1])
		}
	}
}
