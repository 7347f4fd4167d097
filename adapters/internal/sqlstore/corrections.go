package sqlstore

import (
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

var adjustmentTable = Table{"adjustments", []Column{
	{"tenant", Text, Key},
	{"customer", Text, Key},
	{"number", Int, Key},
	{"id", ID, Fixed},
	{"change_minor", Int, Fixed},
	{"currency", Text, Fixed},
	{"digits", Int, Fixed},
	{"why", Text, Fixed},
	{"adjusted_at", Time, Fixed},
	{"remaining_minor", Int, Fixed},
}}

func newAdjustmentCodec(d Dialect) *fixed[customers.Adjustment] {
	const columns = `r.customer, r.number, r.id, r.change_minor, r.currency, r.digits, r.why, r.adjusted_at, r.remaining_minor`
	return &fixed[customers.Adjustment]{
		dialect: d, of: customers.AdjustmentKind, table: &adjustmentTable, keys: byNumber("number"),
		query: byKey(d, &adjustmentTable, columns, "", byNumber("number")),
		name:  numbered,
		key:   func(a customers.Adjustment) (string, int64) { return a.Customer.String(), a.Number },
		row: func(a customers.Adjustment) []any {
			return []any{a.Customer.String(), a.Number, a.ID, a.Change.Minor(), a.Change.Currency().String(), int64(a.Change.Currency().Digits()), a.Why, a.AdjustedAt, a.Remaining.Minor()}
		},
		fields: func() ([]any, func() (customers.Adjustment, error)) {
			var customer, currency, why string
			var number, change, remaining int64
			var digits int
			var id uuid
			var at timestamp
			return []any{&customer, &number, &id, &change, &currency, &digits, &why, &at, &remaining}, func() (a customers.Adjustment, err error) {
				a.ID, a.Number, a.Why, a.AdjustedAt = operation.ID(id), number, why, at.Time
				if a.Customer, err = customers.ParseID(customer); err != nil {
					return a, err
				}
				c, err := money.RestoreCurrency(currency, digits)
				a.Change, a.Remaining = money.FromMinor(change, c), money.FromMinor(remaining, c)
				return a, err
			}
		},
	}
}

var importTable = Table{"imports", []Column{
	{"tenant", Text, Key},
	{"id", Text, Key},
	{"opened", Int, Fixed},
	{"unchanged", Int, Fixed},
	{"imported_at", Time, Fixed},
}}

func newImportCodec(d Dialect) *fixed[customers.Imported] {
	const columns = `r.id, r.opened, r.unchanged, r.imported_at`
	keys := []Column{{"tenant", Text, Key}, {"id", Text, Key}}
	return &fixed[customers.Imported]{
		dialect: d, of: customers.ImportKind, table: &importTable, keys: keys,
		query: byKey(d, &importTable, columns, "", keys),
		name: func(id string) (string, int64, bool) {
			_, err := operation.ParseID(id)
			return id, 0, err == nil
		},
		key: func(i customers.Imported) (string, int64) { return i.ID.String(), 0 },
		row: func(i customers.Imported) []any {
			return []any{i.ID.String(), int64(i.Opened), int64(i.Unchanged), i.ImportedAt}
		},
		fields: func() ([]any, func() (customers.Imported, error)) {
			var opened, unchanged int
			var id uuid
			var at timestamp
			return []any{&id, &opened, &unchanged, &at}, func() (customers.Imported, error) {
				return customers.Imported{ID: operation.ID(id), Opened: opened, Unchanged: unchanged, ImportedAt: at.Time}, nil
			}
		},
	}
}
