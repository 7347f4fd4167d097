package importfile

import (
	"errors"
	"io"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/money"
)

// customerRow is a customer as a file writes it.
type customerRow struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Email     string            `json:"email"`
	Status    string            `json:"status"`
	Currency  string            `json:"currency"`
	Balance   strictjson.Number `json:"balance"`
	CreatedAt string            `json:"created_at"`
}

var customerForm = form[customerRow, customers.Open]{
	noun: "customers", most: customers.MaxImport,
	json: strictjson.Compile[customerRow]("the line"),
	columns: []column[customerRow]{
		{"id", func(r *customerRow, s string) { r.ID = s }},
		{"name", func(r *customerRow, s string) { r.Name = s }},
		{"email", func(r *customerRow, s string) { r.Email = s }},
		{"status", func(r *customerRow, s string) { r.Status = s }},
		{"currency", func(r *customerRow, s string) { r.Currency = s }},
		{"balance", func(r *customerRow, s string) { r.Balance = strictjson.Number(s) }},
		{"created_at", func(r *customerRow, s string) { r.CreatedAt = s }},
	},
	parse: parseCustomer,
}

// ReadCustomers reads customers until r ends. The columns of a CSV file, and
// the members of a JSON object, are exactly id, name, email, status, currency,
// balance (major units) and created_at (RFC 3339). progress is called with the
// number of lines read, now and then. An error says that r could not be read.
func ReadCustomers(r io.Reader, f Format, progress func(lines int)) (File[customers.Open], error) {
	return customerForm.read(r, f, progress)
}

func parseCustomer(row customerRow, w *wrong) customers.Open {
	var o customers.Open
	var err error
	o.ID, err = customers.ParseID(row.ID)
	w.about("id", err)
	o.Status, err = customers.ParseStatus(row.Status)
	w.about("status", err)
	currency, err := money.ParseCurrency(row.Currency)
	w.about("currency", err)
	o.Opening = w.amount("balance", row.Balance, currency)
	o.CreatedAt, err = time.Parse(time.RFC3339, row.CreatedAt)
	if err != nil {
		w.about("created_at", errors.New("it must be a time such as 2024-01-15T09:30:00Z"))
	} else if !o.CreatedAt.Equal(o.CreatedAt.Truncate(time.Millisecond)) {
		w.about("created_at", errors.New("it must not be finer than milliseconds"))
	}
	o.CreatedAt = o.CreatedAt.UTC()
	o.Profile = customers.Profile{Name: row.Name, Email: row.Email}
	if len(w.all) == 0 {
		for _, i := range o.Check() {
			w.all = append(w.all, i.Message)
		}
	}
	return o
}
