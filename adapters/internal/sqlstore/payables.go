package sqlstore

import (
	"context"
	"fmt"
	"math"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

var _ ports.Payables = (*Store)(nil)

// document reads records that are a row each, and rows of other tables for
// their parts. B is a record as the database holds it. However many records
// there are, one query reads the rows and one each table of parts.
type document[R ledger.Record, B any] struct {
	dialect Dialect
	of      ledger.Kind
	keys    []Column
	byKey   string // the rows r with the keys
	lock    string // what ends byKey if the rows are locked, "" if nothing of them changes
	head    func(*B) []any
	parts   []part[B]
	record  func(*B) (R, error)
	// name takes the id of a ref apart into the key after the tenant; what is no
	// name names nothing.
	name func(id string) ([]any, bool)
}

// part is one table of parts: a query by the same keys, which gives them in
// order, where a row of it is scanned to, after the key's place, and what then
// takes it in.
type part[B any] struct {
	query  string
	fields func() (dest []any, add func(*B))
}

func (c *document[R, B]) kind() ledger.Kind { return c.of }

func (c *document[R, B]) stores(r ledger.Record) bool {
	_, ok := r.(R)
	return ok
}

func (c *document[R, B]) load(refs []committer.Name, lock bool, put func(int, ledger.Record)) ([]Step, func() error) {
	var keys [][]any
	var at []int // the place in refs of each key
	for i, n := range refs {
		if key, ok := c.name(n.Ref.ID); ok {
			keys, at = append(keys, append([]any{n.Tenant.String()}, key...)), append(at, i)
		}
	}
	return c.find(keys, lock, func(i int, r R) { put(at[i], r) })
}

// find makes the steps that read the records with the keys, and what gives them
// to found after that.
func (c *document[R, B]) find(keys [][]any, lock bool, found func(i int, r R)) ([]Step, func() error) {
	if len(keys) == 0 {
		return nil, nothing
	}
	args := c.dialect.KeyArgs(c.keys, keys)
	rows := make([]*B, len(keys))
	query := c.byKey
	if lock {
		query += c.lock
	}
	steps := []Step{{query, args, func(r Row) error {
		var n int
		b := new(B)
		if err := r.Scan(append([]any{&n}, c.head(b)...)...); err != nil {
			return err
		}
		rows[n-1] = b
		return nil
	}}}
	// Statements of their own, after the lock: they see what was committed while
	// the first one waited.
	for _, p := range c.parts {
		var n int
		dest, add := p.fields()
		dest = append([]any{&n}, dest...)
		steps = append(steps, Step{p.query, args, func(r Row) error {
			if err := r.Scan(dest...); err != nil {
				return err
			}
			// What came since the first statement is not there yet: whoever makes it
			// too will find its key taken.
			if b := rows[n-1]; b != nil {
				add(b)
			}
			return nil
		}})
	}
	return steps, func() error {
		for i, b := range rows {
			if b == nil {
				continue
			}
			r, err := c.record(b)
			if err != nil {
				return unreadable("%s %v: %w", c.of.Name, keys[i][1:], err)
			}
			found(i, r)
		}
		return nil
	}
}

// page reads records with other queries: that of the rows, and those of the
// parts, whose first column is the id of the record instead of the key's place.
func (c *document[R, B]) page(ctx context.Context, s *Store, id func(*B) string, head string, parts []string, args []any) ([]R, error) {
	var rows []*B
	byID := map[string]*B{}
	steps := []Step{{head, args, func(r Row) error {
		b := new(B)
		if err := r.Scan(c.head(b)...); err != nil {
			return err
		}
		rows, byID[id(b)] = append(rows, b), b
		return nil
	}}}
	for i, query := range parts {
		var of string
		dest, add := c.parts[i].fields()
		dest = append([]any{&of}, dest...)
		steps = append(steps, Step{query, args, func(r Row) error {
			if err := r.Scan(dest...); err != nil {
				return err
			}
			b := byID[of]
			if b == nil {
				return unreadable("a part of the %s %s, which is not there", c.of.Name, of)
			}
			add(b)
			return nil
		}})
	}
	var list []R
	err := s.read(ctx, func() error {
		for _, b := range rows {
			r, err := c.record(b)
			if err != nil {
				return unreadable("%s %s: %w", c.of.Name, id(b), err)
			}
			list = append(list, r)
		}
		return nil
	}, steps...)
	return list, err
}

// unanswered is part of the codecs of records that no command answers with:
// they change, and nothing is kept of what they were.
type unanswered struct{}

func (unanswered) answerable() bool                                             { return false }
func (unanswered) answer(*writes, operation.Operation, ledger.Record) answerRef { return answerRef{} }
func (unanswered) answers([]*kept) (steps []Step, then func() error)            { return nil, nothing }

// byID is the key of what is named by its id.
func byID() []Column { return []Column{{"tenant", Text, Key}, {"id", Text, Key}} }

func isID(id string) ([]any, bool) { return []any{id}, true }

// byIDQuery reads columns of the rows r of a table by their ids.
func byIDQuery(d Dialect, table, columns string) string {
	return "SELECT k.n, " + columns + " FROM " + d.Keys(byID()...) + " JOIN " + table + " r ON r.tenant = k.tenant AND r.id = k.id"
}

// partQuery reads columns of the parts l of what has the ids; owner is the
// column of l that holds the id, order what they are in order of.
func partQuery(d Dialect, table, owner, columns, order string) string {
	return "SELECT k.n, " + columns + " FROM " + d.Keys(byID()...) + " JOIN " + table + " l ON l.tenant = k.tenant AND l." + owner + " = k.id ORDER BY k.n, " + order
}

// flag reads a truth as either database holds it: its own type, or 0 and 1.
type flag bool

// Scan implements sql.Scanner.
func (f *flag) Scan(from any) error {
	switch v := from.(type) {
	case bool:
		*f = flag(v)
	case int64:
		*f = v != 0
	default:
		return fmt.Errorf("sqlstore: a %T is no truth", from)
	}
	return nil
}

// ratio is a fraction as two columns hold it.
type ratio struct{ numerator, denominator int64 }

func (r ratio) restore() (payables.Ratio, error) {
	return payables.RestoreRatio(r.numerator, r.denominator)
}

// pageArgs are the parameters of a page, or ok is false if it is empty without
// asking.
func pageArgs(t access.Tenant, after string, limit int) (args []any, ok bool) {
	return []any{t.String(), after, int64(min(limit, math.MaxInt32))}, limit > 0 && storable(after)
}
