package sqlstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/operation"
)

// writes are the rows of one commit, table by table.
type writes struct {
	tables []Rows
	// The places of the operations and of the entries, for the rows that refer to
	// them.
	operations map[operation.ID]int64
	entries    map[entryName]int64
}

type entryName struct {
	tenant  access.Tenant
	subject journal.Subject
	number  int64
}

// add adds a row, its values in the order of the table's columns.
func (w *writes) add(verb Verb, t *Table, row ...any) {
	for i := range w.tables {
		if have := &w.tables[i]; have.Table == t && have.Verb == verb {
			have.Rows = append(have.Rows, row)
			return
		}
	}
	w.tables = append(w.tables, Rows{verb, t, [][]any{row}})
}

// damaged is the error for rows that make no record: somebody changed them past
// the ledger. A verification reports it as its finding.
func damaged(s journal.Subject, number int64, err error) error {
	return fmt.Errorf("sqlstore: %w", &journal.Broken{Subject: s, Number: number, Why: "what is on record can not be read: " + err.Error()})
}

// unreadable is damaged for rows of which it is not known to which entry they
// belong. A verification finds that out.
func unreadable(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if _, known := errors.AsType[*journal.Broken](err); known {
		return fmt.Errorf("sqlstore: %w", err)
	}
	return fmt.Errorf("sqlstore: %w", &journal.Broken{Why: "what is on record can not be read: " + err.Error()})
}

// rows turns what a batch writes into rows.
func (s *Store) rows(c committer.Changes) *writes {
	w := &writes{operations: make(map[operation.ID]int64, len(c.Outcomes)), entries: make(map[entryName]int64, len(c.Entries))}
	s.outcomes.insert(w, c.Outcomes, s.codecOf)
	s.entries.insert(w, c.Entries)
	for _, r := range c.Records {
		s.codecOf(r.After).write(w, r)
	}
	return w
}

// steps makes the statements. Every process writes the tables in one order and
// each table's rows in order of key, so that two that insert the same keys wait
// for each other and never both for the other.
func (w *writes) steps(d Dialect) []Step {
	slices.SortStableFunc(w.tables, func(a, b Rows) int {
		return cmp.Or(cmp.Compare(slices.Index(Tables, a.Table), slices.Index(Tables, b.Table)), cmp.Compare(a.Verb, b.Verb))
	})
	for _, t := range w.tables {
		t.sort()
	}
	return d.Write(w.tables)
}

// Tables are all tables, in the order in which a commit writes them. What a
// record has many of stands before it, postings before their entries and lines
// before their documents: the database lets none be added to what is there.
var Tables = []*Table{Operations, Postings, Entries, Accounts, Lots,
	Refunds, &reversalTable, &adjustmentTable, &importTable, &accountAnswerTable,
	&vendorTable, &vendorBalanceTable, &orderLineTable, &conversionTable, &orderTable, &receiptLineTable, &receiptTable,
	&invoiceLineTable, &invoiceTable, &claimTable, &findingTable, &namedTable, &decisionTable}

// sort sorts the rows by the columns of the key.
func (t Rows) sort() {
	if t.Verb == Update {
		return // these rows are locked already
	}
	slices.SortFunc(t.Rows, func(a, b []any) int {
		for i, c := range t.Table.Columns {
			if c.Role != Key {
				continue
			}
			if order := compare(a[i], b[i]); order != 0 {
				return order
			}
		}
		return 0
	})
}

func compare(a, b any) int {
	switch a := a.(type) {
	case string:
		return cmp.Compare(a, b.(string))
	case int64:
		return cmp.Compare(a, b.(int64))
	case []byte:
		return bytes.Compare(a, b.([]byte))
	case operation.ID:
		other := b.(operation.ID)
		return bytes.Compare(a[:], other[:])
	case time.Time:
		return a.Compare(b.(time.Time))
	}
	panic("sqlstore: a row holds a value of no column type")
}
