package restserver

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

var operationReads = []route{
	record(restwire.GetOperation, restwire.OutcomeForm, func(r request) (ledger.Ref, error, error) {
		key, err := operation.ParseKey(r.PathValue("key"))
		if err != nil {
			return ledger.Ref{}, nil, invalidOne("key", "must match "+operation.KeyPattern)
		}
		return ledger.OutcomeRef(r.ID(), key), noSuch(restwire.ReasonOperation, "operation of this principal"), nil
	}),
}

var journalReads = []route{
	{restwire.ListJournal, listJournal},
	{restwire.ListEntries, listEntries},
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
	if err := r.mayRead(subject.Kind); err != nil {
		return nil, err
	}
	if !restwire.Subjects[subject.Kind](subject.ID) {
		return nil, invalidOne("id", "must be the id of a record of the kind "+subject.Kind)
	}
	rows, err := s.store.ListEntries(r, r.Tenant(), subject, after, limit+1)
	if err != nil {
		return nil, err
	}
	var out restwire.Entries
	out.Entries, out.Next = page(r.Tenant(), rows, limit, restwire.EntryForm, func(e journal.Entry) string { return strconv.FormatInt(e.Number(), 10) })
	return out, nil
}

// histories are the subjects of the journal: what may read them, and which there
// are.
var histories = map[string]struct {
	scope access.Scope
	list  func(ctx context.Context, s *Server, t access.Tenant, after string, limit int) (ids []string, err error)
}{
	customers.Kind.Name: {
		access.RefundRead,
		func(ctx context.Context, s *Server, t access.Tenant, after string, limit int) ([]string, error) {
			list, err := s.store.ListAccounts(ctx, t, after, limit)
			return idsOf(list), err
		},
	},
	payables.VendorKind.Name: {
		access.InvoiceRead,
		func(ctx context.Context, s *Server, t access.Tenant, after string, limit int) ([]string, error) {
			list, err := s.store.ListVendors(ctx, t, after, limit)
			return idsOf(list), err
		},
	},
}

func idsOf[R ledger.Record](list []R) []string {
	ids := make([]string, 0, len(list))
	for _, r := range list {
		ids = append(ids, r.Ref().ID)
	}
	return ids
}

// mayRead refuses a kind that has no histories, and a caller who may not read
// those of a kind.
func (r request) mayRead(kind string) error {
	h, ok := histories[kind]
	if !ok {
		return invalidOne("kind", "must be "+customers.Kind.Name+" or "+payables.VendorKind.Name)
	}
	return r.permit(h.scope)
}

// listJournal goes through the accounts, or the vendors, in order of id, and
// through the entries of each up to its head: what comes later is not part of
// the record as it was read, and is found by who asks again.
func listJournal(s *Server, r request, _ http.Header) (any, error) {
	kind := customers.Kind.Name
	if r.query.Has("kind") {
		kind = r.query.Get("kind")
	}
	if err := r.mayRead(kind); err != nil {
		return nil, err
	}
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	var at position
	if r.query.Has("after") {
		if at, err = parsePosition(r.query.Get("after"), restwire.Subjects[kind]); err != nil {
			return nil, err
		}
	}
	rows, err := s.entriesFrom(r, r.Tenant(), kind, at, limit+1)
	if err != nil {
		return nil, err
	}
	var out restwire.Entries
	out.Entries, out.Next = page(r.Tenant(), rows, limit, restwire.EntryForm, func(e journal.Entry) string { return position{e.Subject().ID, e.Number()}.String() })
	return out, nil
}

// position is a place in the journal of a tenant: behind an entry.
type position struct {
	id     string
	number int64
}

func (p position) String() string { return p.id + "/" + strconv.FormatInt(p.number, 10) }

func parsePosition(text string, named func(string) bool) (position, error) {
	id, rest, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(rest, 10, 64)
	if p := (position{id, n}); named(id) && err == nil && p.String() == text && n > 0 {
		return p, nil
	}
	return position{}, errPosition
}

var errPosition = invalidOne("after", "must be the next of the page before")

func (s *Server) entriesFrom(ctx context.Context, t access.Tenant, kind string, at position, limit int) ([]journal.Entry, error) {
	var rows []journal.Entry
	add := func(id string, after int64) error {
		found, err := s.store.ListEntries(ctx, t, journal.Subject{Kind: kind, ID: id}, after, limit-len(rows))
		rows = append(rows, found...)
		return err
	}
	if at.id != "" { // entries are for good, so the one that a page ended with is there
		begin, err := s.store.ListEntries(ctx, t, journal.Subject{Kind: kind, ID: at.id}, at.number-1, limit+1)
		if err != nil {
			return nil, err
		}
		if len(begin) == 0 || begin[0].Number() != at.number {
			return nil, errPosition
		}
		rows = begin[1:]
	}
	for after := at.id; len(rows) < limit; {
		ids, err := histories[kind].list(ctx, s, t, after, limit)
		if err != nil || len(ids) == 0 {
			return rows, err
		}
		for _, id := range ids {
			if after = id; len(rows) == limit {
				return rows, nil
			}
			if err := add(id, 0); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}
