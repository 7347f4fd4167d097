package sqlstore

import (
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// fixed is the codec of records that never change: one row each, named by its
// tenant, an id and a number. So there is nothing to lock, and an answer that
// was such a record is the record.
type fixed[R ledger.Record] struct {
	dialect Dialect
	of      ledger.Kind
	table   *Table
	keys    []Column
	query   string // of the rows with the keys
	// name takes the id of a ref apart; what is no name names nothing.
	name func(id string) (part string, number int64, ok bool)
	// key is the name of a record.
	key func(R) (part string, number int64)
	// row is a record as a row of the table, without the tenant.
	row func(R) []any
	// fields are where a row of the query is scanned to, after the key's place,
	// and what makes the record of them.
	fields func() (dest []any, record func() (R, error))
}

// byKey makes the query that reads columns of the rows r with the keys.
func byKey(d Dialect, t *Table, columns, join string, keys []Column) string {
	on := make([]string, len(keys))
	for i, k := range keys {
		on[i] = "r." + k.Name + " = k." + k.Name
	}
	return "SELECT k.n, " + columns + " FROM " + d.Keys(keys...) + " JOIN " + t.Name + " r ON " + strings.Join(on, " AND ") + " " + join
}

func (c *fixed[R]) kind() ledger.Kind { return c.of }

func (c *fixed[R]) stores(r ledger.Record) bool {
	_, ok := r.(R)
	return ok
}

func (c *fixed[R]) load(refs []committer.Name, _ bool, put func(int, ledger.Record)) ([]Step, func() error) {
	var keys [][]any
	var at []int // the place in refs of each key
	for i, n := range refs {
		if part, number, ok := c.name(n.Ref.ID); ok {
			keys, at = append(keys, c.keyRow(n.Tenant.String(), part, number)), append(at, i)
		}
	}
	return c.find(keys, func(i int, r R) { put(at[i], r) }), nothing
}

// keyRow is a row of keys, which may have no number.
func (c *fixed[R]) keyRow(tenant, part string, number int64) []any {
	return []any{tenant, part, number}[:len(c.keys)]
}

// find makes the steps that read the records with the keys.
func (c *fixed[R]) find(keys [][]any, found func(i int, r R)) []Step {
	if len(keys) == 0 {
		return nil
	}
	return []Step{{c.query, c.dialect.KeyArgs(c.keys, keys), func(row Row) error {
		var n int
		dest, record := c.fields()
		if err := row.Scan(append([]any{&n}, dest...)...); err != nil {
			return err
		}
		r, err := record()
		if err != nil {
			return unreadable("%s %v: %w", c.of.Name, keys[n-1], err)
		}
		found(n-1, r)
		return nil
	}}}
}

func (c *fixed[R]) write(w *writes, ch committer.Changed) {
	w.add(Insert, c.table, append([]any{ch.Tenant.String()}, c.row(ch.After.(R))...)...)
}

func (c *fixed[R]) answer(_ *writes, _ operation.Operation, r ledger.Record) answerRef {
	part, number := c.key(r.(R))
	return answerRef{c.of.Name, part, number}
}

func (c *fixed[R]) answers(list []*kept) ([]Step, func() error) {
	keys := make([][]any, len(list))
	for i, k := range list {
		keys[i] = c.keyRow(k.outcome.Operation.Tenant.String(), k.answer.id, k.answer.number)
	}
	return c.find(keys, func(i int, r R) { list[i].outcome.Answer = r }), nothing
}

func nothing() error { return nil }

// numbered takes apart a name that is a customer's id and the number of an entry.
func numbered(id string) (customer string, number int64, ok bool) {
	customer, text, _ := strings.Cut(id, "/")
	number, err := strconv.ParseInt(text, 10, 64)
	return customer, number, err == nil && strconv.FormatInt(number, 10) == text // one record has one name
}

// byNumber are the columns of the key of what is named by a customer and the
// number of an entry.
func byNumber(number string) []Column {
	return []Column{{"tenant", Text, Key}, {"customer", Text, Key}, {number, Int, Key}}
}
