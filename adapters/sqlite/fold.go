package sqlite

import (
	"slices"

	"github.com/refundledger/refundledger/adapters/internal/sqlstore"
)

// A row costs more than the columns it has, so few rows are written. What most
// entries and accounts have one of is kept in their own row: the two postings of
// one amount, the refund, the first lot. Views show each as a row of its table.

// kept is where the rows of a table are kept.
type kept struct {
	name string
	// elsewhere are the columns that the row referred to has.
	elsewhere []string
	// more are columns for rows of other tables, after the table's own. In a row
	// of a commit they are nil if it has none.
	more []sqlstore.Column
}

// keptIn says where the rows of t are kept: most under the name that they are
// read by.
func keptIn(t *sqlstore.Table) kept {
	switch t {
	case sqlstore.Entries:
		return kept{"entry_rows", []string{"op", "principal", "via", "tool", "key", "at", "command"}, []sqlstore.Column{
			debit: {Name: "debit"}, debitLot: {Name: "debit_lot"}, credit: {Name: "credit"}, creditLot: {Name: "credit_lot"},
			amount: {Name: "amount_minor", Type: sqlstore.Int}, currency: {Name: "currency"}, digits: {Name: "digits", Type: sqlstore.Int},
			reason: {Name: "reason"}, remaining: {Name: "remaining_minor", Type: sqlstore.Int},
		}}
	case sqlstore.Accounts:
		return kept{"accounts", nil, []sqlstore.Column{lot: {Name: "lot"}, lotMinor: {Name: "lot_minor", Type: sqlstore.Int}}}
	case sqlstore.Postings:
		return kept{name: "posting_rows", elsewhere: []string{"tenant", "subject_kind", "subject_id", "number"}}
	case sqlstore.Lots:
		return kept{name: "lot_rows"}
	}
	return kept{name: t.Name}
}

// Places in more of an entry, and of an account.
const (
	debit = iota
	debitLot
	credit
	creditLot
	amount
	currency
	digits
	reason
	remaining

	lot      = 0
	lotMinor = 1
)

// place returns the place of a column in a row of t.
func place(t *sqlstore.Table, name string) int {
	i := slices.IndexFunc(t.Columns, func(c sqlstore.Column) bool { return c.Name == name })
	if i < 0 {
		panic("sqlite: " + t.Name + " has no column " + name)
	}
	return i
}

var (
	entrySeq = place(sqlstore.Entries, "seq")

	postingEntry    = place(sqlstore.Postings, "entry")
	postingAccount  = place(sqlstore.Postings, "account")
	postingLot      = place(sqlstore.Postings, "lot")
	postingSide     = place(sqlstore.Postings, "side")
	postingAmount   = place(sqlstore.Postings, "amount_minor")
	postingCurrency = place(sqlstore.Postings, "currency")
	postingDigits   = place(sqlstore.Postings, "digits")

	refundEntry     = place(sqlstore.Refunds, "entry")
	refundAmount    = place(sqlstore.Refunds, "amount_minor")
	refundCurrency  = place(sqlstore.Refunds, "currency")
	refundDigits    = place(sqlstore.Refunds, "digits")
	refundReason    = place(sqlstore.Refunds, "reason")
	refundRemaining = place(sqlstore.Refunds, "remaining_minor")

	accountTenant = place(sqlstore.Accounts, "tenant")
	accountID     = place(sqlstore.Accounts, "id")

	lotTenant   = place(sqlstore.Lots, "tenant")
	lotAccount  = place(sqlstore.Lots, "account")
	lotName     = place(sqlstore.Lots, "lot")
	lotPosition = place(sqlstore.Lots, "position")
	lotBalance  = place(sqlstore.Lots, "balance_minor")
)

// folded puts the rows of a commit that are kept in others into those.
func folded(all []sqlstore.Rows) []sqlstore.Rows {
	type name struct{ tenant, id any }
	entries := map[any][]any{}   // by place, what they have of more
	accounts := map[name][]any{} // likewise
	for _, r := range all {
		width := len(r.Table.Columns)
		switch r.Table {
		case sqlstore.Entries:
			for i := range r.Rows {
				r.Rows[i] = widened(r.Rows[i], remaining+1)
				entries[r.Rows[i][entrySeq]] = r.Rows[i][width:]
			}
		case sqlstore.Accounts:
			for i := range r.Rows {
				r.Rows[i] = widened(r.Rows[i], lotMinor+1)
				accounts[name{r.Rows[i][accountTenant], r.Rows[i][accountID]}] = r.Rows[i][width:]
			}
		}
	}
	left := make([]sqlstore.Rows, 0, len(all))
	for _, r := range all {
		switch r.Table {
		case sqlstore.Postings:
			r.Rows = foldPostings(r.Rows, entries)
		case sqlstore.Refunds:
			for _, row := range r.Rows {
				e := entries[row[refundEntry]]
				e[amount], e[currency], e[digits] = row[refundAmount], row[refundCurrency], row[refundDigits]
				e[reason], e[remaining] = row[refundReason], row[refundRemaining]
			}
			r.Rows = nil
		case sqlstore.Lots:
			r.Rows = slices.DeleteFunc(r.Rows, func(row []any) bool {
				if row[lotPosition] != int64(1) {
					return false
				}
				a := accounts[name{row[lotTenant], row[lotAccount]}]
				a[lot], a[lotMinor] = row[lotName], row[lotBalance]
				return true
			})
		}
		if len(r.Rows) > 0 {
			left = append(left, r)
		}
	}
	return left
}

func widened(row []any, by int) []any {
	return append(make([]any, 0, len(row)+by), row...)[:len(row)+by]
}

// foldPostings returns the postings that are kept as rows: those of entries that
// have not just a debit and then a credit of the same amount. An entry's
// postings stand together.
func foldPostings(rows [][]any, entries map[any][]any) [][]any {
	left := rows[:0]
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n][postingEntry] == rows[0][postingEntry] {
			n++
		}
		if n == 2 && rows[0][postingSide] == "debit" && rows[1][postingSide] == "credit" && rows[0][postingAmount] == rows[1][postingAmount] &&
			rows[0][postingCurrency] == rows[1][postingCurrency] && rows[0][postingDigits] == rows[1][postingDigits] {
			e, d, c := entries[rows[0][postingEntry]], rows[0], rows[1]
			e[debit], e[debitLot], e[credit], e[creditLot] = d[postingAccount], d[postingLot], c[postingAccount], c[postingLot]
			e[amount], e[currency], e[digits] = d[postingAmount], d[postingCurrency], d[postingDigits]
		} else {
			left = append(left, rows[:n]...)
		}
		rows = rows[n:]
	}
	return left
}
