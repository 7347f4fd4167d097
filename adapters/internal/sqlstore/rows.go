package sqlstore

import (
	"bytes"
	"cmp"
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
	tables []*tableRows
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

type tableRows struct {
	verb  Verb
	table *Table
	rows  [][]any
}

// add adds a row, its values in the order of the table's columns.
func (w *writes) add(verb Verb, t *Table, row ...any) {
	for _, have := range w.tables {
		if have.table == t && have.verb == verb {
			have.rows = append(have.rows, row)
			return
		}
	}
	w.tables = append(w.tables, &tableRows{verb, t, [][]any{row}})
}

// damaged is the error for rows that make no record: somebody changed them past
// the ledger. A verification reports it as its finding.
func damaged(s journal.Subject, number int64, err error) error {
	return fmt.Errorf("sqlstore: %w", &journal.Broken{Subject: s, Number: number, Why: "what is on record can not be read: " + err.Error()})
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
	slices.SortStableFunc(w.tables, func(a, b *tableRows) int {
		return cmp.Or(cmp.Compare(slices.Index(Tables, a.table), slices.Index(Tables, b.table)), cmp.Compare(a.verb, b.verb))
	})
	var steps []Step
	for _, t := range w.tables {
		t.sort()
		steps = append(steps, d.Write(t.verb, t.table, t.rows)...)
	}
	return steps
}

// Tables are all tables, in the order in which a commit writes them. What a
// record has many of stands before it, postings before their entries and lines
// before their documents: the database lets none be added to what is there.
var Tables = []*Table{Operations, Postings, Entries, &accountTable, &lotTable,
	Refunds, &reversalTable, &adjustmentTable, &importTable, &accountAnswerTable,
	&vendorTable, &vendorBalanceTable, &orderLineTable, &conversionTable, &orderTable, &receiptLineTable, &receiptTable,
	&invoiceLineTable, &invoiceTable, &claimTable, &findingTable, &namedTable, &decisionTable}

// sort sorts the rows by the columns of the key.
func (t *tableRows) sort() {
	if t.verb == Update {
		return // these rows are locked already
	}
	slices.SortFunc(t.rows, func(a, b []any) int {
		for i, c := range t.table.Columns {
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
