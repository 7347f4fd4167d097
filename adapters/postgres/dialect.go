package postgres

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/sqlstore"
	"github.com/refundledger/refundledger/domain/operation"
)

// dialect is PostgreSQL's way to say it. Many rows are one parameter for each
// column, an array that unnest makes rows of again: the text of a statement is
// the same for one row and for a thousand, so it is prepared once.
type dialect struct{}

func (dialect) Keys(columns ...sqlstore.Column) string {
	all := make([]int, len(columns))
	for i := range columns {
		all[i] = i
	}
	// The places are a parameter too: the planner takes an array for ten rows and
	// looks each up by key, where of generate_subscripts it expects a thousand.
	n := sqlstore.Column{Name: "n", Type: sqlstore.Int}
	return "(SELECT " + strings.Join(unnest(append(slices.Clip(columns), n), append(all, len(columns))), ", ") + ") k"
}

func (dialect) KeyArgs(columns []sqlstore.Column, keys [][]any) []any {
	args := make([]any, len(columns), len(columns)+1)
	for i, c := range columns {
		args[i] = array(c.Type, keys, i)
	}
	places := make([]int64, len(keys))
	for i := range places {
		places[i] = int64(i + 1)
	}
	return append(args, places)
}

func (dialect) Lock(order string, shared bool) string {
	if order != "" {
		order = " ORDER BY " + order
	}
	if shared {
		return order + " FOR SHARE OF r"
	}
	return order + " FOR UPDATE OF r"
}

func (dialect) Begin() string    { return "BEGIN" }
func (dialect) Commit() string   { return "COMMIT" }
func (dialect) Rollback() string { return "ROLLBACK" }

// Write makes one step for all rows of a table.
func (dialect) Write(all []sqlstore.Rows) []sqlstore.Step {
	steps := make([]sqlstore.Step, len(all))
	for i, r := range all {
		s := statements[statementKey{r.Verb, r.Table}]
		args := make([]any, len(s.columns))
		for k, c := range s.columns {
			args[k] = array(r.Table.Columns[c].Type, r.Rows, c)
		}
		steps[i] = sqlstore.Step{SQL: s.sql, Args: args}
	}
	return steps
}

// arrayTypes are the types of the parameters, by the type of the column.
var arrayTypes = map[sqlstore.Type]string{
	sqlstore.Text: "text", sqlstore.Int: "bigint", sqlstore.Bytes: "bytea", sqlstore.Time: "timestamptz", sqlstore.ID: "uuid", sqlstore.JSON: "text", sqlstore.Bool: "boolean",
}

// unnest makes rows of the arrays that are the parameters from $1 on: one item of
// a SELECT list for each. They stand there and not in FROM, where PostgreSQL
// would keep a table for each: 16 kB a column, which for one refund is most of
// what it does.
func unnest(columns []sqlstore.Column, which []int) []string {
	items := make([]string, len(which))
	for i, c := range which {
		items[i] = "unnest(" + param(columns[c], i+1) + ")"
		if columns[c].Type == sqlstore.JSON {
			items[i] += "::json"
		}
		items[i] += " AS " + columns[c].Name
	}
	return items
}

// param is the n-th parameter, an array of a column's values.
func param(c sqlstore.Column, n int) string {
	return "$" + strconv.Itoa(n) + "::" + arrayTypes[c.Type] + "[]"
}

// array is the parameter for a column: its values in all rows.
func array(t sqlstore.Type, rows [][]any, column int) any {
	switch t {
	case sqlstore.Int:
		return pick[int64](rows, column)
	case sqlstore.Bool:
		return pick[bool](rows, column)
	case sqlstore.Bytes:
		return pick[[]byte](rows, column)
	case sqlstore.Time:
		return pick[time.Time](rows, column)
	case sqlstore.ID:
		ids := make([][16]byte, len(rows))
		for i, row := range rows {
			ids[i] = row[column].(operation.ID)
		}
		return ids
	}
	return pick[string](rows, column)
}

func pick[T any](rows [][]any, column int) []T {
	values := make([]T, len(rows))
	for i, row := range rows {
		values[i] = row[column].(T)
	}
	return values
}

type statementKey struct {
	verb  sqlstore.Verb
	table *sqlstore.Table
}

// statement is the text that writes rows, and which of their values are its
// parameters.
type statement struct {
	sql     string
	columns []int
}

// statements are those of every table and verb.
var statements = func() map[statementKey]statement {
	all := map[statementKey]statement{}
	for _, t := range sqlstore.Tables {
		all[statementKey{sqlstore.Insert, t}] = insert(t)
		all[statementKey{sqlstore.Update, t}] = update(t)
	}
	return all
}()

func insert(t *sqlstore.Table) statement {
	var s statement
	var names []string
	for i, c := range t.Columns {
		if c.Type == sqlstore.EntryPlace || c.Type == sqlstore.OperationPlace {
			continue // an entry is named by its key
		}
		s.columns, names = append(s.columns, i), append(names, c.Name)
	}
	s.sql = "INSERT INTO " + t.Name + " (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(unnest(t.Columns, s.columns), ", ")
	return s
}

func update(t *sqlstore.Table) statement {
	var s statement
	var set, where []string
	for i, c := range t.Columns {
		if c.Role == sqlstore.Fixed {
			continue
		}
		s.columns = append(s.columns, i)
		if c.Role == sqlstore.Key {
			where = append(where, "r."+c.Name+" = v."+c.Name)
		} else {
			set = append(set, c.Name+" = v."+c.Name)
		}
	}
	s.sql = "UPDATE " + t.Name + " r SET " + strings.Join(set, ", ") +
		" FROM (SELECT " + strings.Join(unnest(t.Columns, s.columns), ", ") + ") v WHERE " + strings.Join(where, " AND ")
	return s
}
