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
	rows, err := s.store.ListEntries(r, r.Tenant(), subject, after, limit+1)
	if err != nil {
		return nil, err
	}
	var out restwire.Entries
	out.Entries, out.Next = page(r.Tenant(), rows, limit, restwire.EntryForm, func(e journal.Entry) string { return strconv.FormatInt(e.Number(), 10) })
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
	var out restwire.Entries
	out.Entries, out.Next = page(r.Tenant(), rows, limit, restwire.EntryForm, func(e journal.Entry) string { return position{e.Subject().ID, e.Number()}.String() })
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
