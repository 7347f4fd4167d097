package restwire

import (
	"reflect"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/text"
)

// Customer is an account.
type Customer struct {
	Tenant       string `json:"tenant" doc:"The tenant it belongs to."`
	ID           string `json:"id" doc:"CUST- and five digits."`
	Name         string `json:"name" doc:"The customer's name."`
	Email        string `json:"email" doc:"The customer's e-mail address."`
	Status       string `json:"status" enum:"active,suspended" doc:"Only active accounts can be refunded."`
	Currency     string `json:"currency" doc:"ISO 4217 code of all amounts of this customer."`
	BalanceMinor int64  `json:"balanceMinor" doc:"What can be refunded, in minor units: the sum of the lots."`
	CreatedAt    string `json:"createdAt" format:"date-time" doc:"When the customer came: UTC, milliseconds."`
	Version      int64  `json:"version" doc:"Grows by one with each change; the number of the last entry."`
	Head         string `json:"head" doc:"The hash of the last entry, in hexadecimal."`
	Lots         []Lot  `json:"lots" nullable:"false" doc:"The money by origin, in the order it came."`
}

// Lot is money of one origin.
type Lot struct {
	Name         string `json:"name" doc:"Names the lot within the account."`
	BalanceMinor int64  `json:"balanceMinor" doc:"What is left of it, in minor units."`
}

// Adjustment is a correction of a balance.
type Adjustment struct {
	Tenant         string `json:"tenant" doc:"The tenant it belongs to."`
	ID             string `json:"id" doc:"The operation's id, a UUID."`
	CustomerID     string `json:"customerId" doc:"Whose balance it is."`
	ChangeMinor    int64  `json:"changeMinor" doc:"Added to the balance, in minor units; negative if taken."`
	Currency       string `json:"currency" doc:"ISO 4217 code."`
	Why            string `json:"why" doc:"The explanation."`
	AdjustedAt     string `json:"adjustedAt" format:"date-time" doc:"When it was booked: UTC, milliseconds."`
	RemainingMinor int64  `json:"remainingMinor" doc:"The balance right after it, in minor units."`
	Number         int64  `json:"number" doc:"Of the entry that booked it."`
}

// Import says what an import did.
type Import struct {
	Tenant     string `json:"tenant" doc:"The tenant it belongs to."`
	ID         string `json:"id" doc:"The operation's id, a UUID."`
	Opened     int    `json:"opened" doc:"How many accounts are new."`
	Unchanged  int    `json:"unchanged" doc:"How many had been opened with the same facts."`
	ImportedAt string `json:"importedAt" format:"date-time" doc:"When: UTC, milliseconds."`
}

// Customers is a page of accounts, in order of id.
type Customers struct {
	Customers []Customer `json:"customers" nullable:"false" doc:"The accounts, in order of id."`
	Next      *string    `json:"next" required:"false" nullable:"false" doc:"Send it as after to get the next page; absent on the last."`
}

// How they are sent.
var (
	CustomerForm  = form("the customer", customerOf, Customer.record)
	CustomerPages = pages(CustomerForm, func(p Customers) ([]Customer, *string) { return p.Customers, p.Next })
	adjustments   = form("the adjustment", adjustmentOf, Adjustment.record)
	imports       = form("the import", importOf, Import.record)
)

var customerAnswers = []answer{
	answerOf(func(w *Outcome) **Customer { return &w.Customer }, CustomerForm, nil),
	answerOf(func(w *Outcome) **Adjustment { return &w.Adjustment }, adjustments, func(a customers.Adjustment) operation.ID { return a.ID }),
	answerOf(func(w *Outcome) **Import { return &w.Import }, imports, func(i customers.Imported) operation.ID { return i.ID }),
}

// What is read.
var (
	ListCustomers = Read{
		Name: "customers.list", Path: "/v1/customers", Title: "List the accounts",
		About:  "All accounts of the tenant, in order of id.",
		Scope:  access.CustomerRead,
		Query:  []Query{{"after", "Begin behind this id.", false}, limit},
		Answer: reflect.TypeFor[Customers](),
	}
	GetCustomer = Read{
		Name: "customers.get", Path: "/v1/customers/{id}", Title: "Look up a customer",
		About:  "The account, with its version as a strong ETag.",
		Scope:  access.CustomerRead,
		Answer: reflect.TypeFor[Customer](),
		Tagged: true,
	}
)

var customerCommands = []Resource{
	declare(declaration[customers.Open, customerFields, customers.Account]{
		Path: "/v1/customers", Title: "Open an account", Scope: access.ControlRules,
		About: "Opens the account of a customer with what can be refunded at first.",
		Write: func(c customers.Open) ([]string, customerFields) { return nil, customerFieldsOf(c) },
		Read:  func(in *input, f customerFields) customers.Open { return f.read(in) },
		Answers: func(c customers.Open, a customers.Account) bool {
			return a.ID == c.ID && a.Profile == c.Profile && a.Status == c.Status && a.Balance() == c.Opening
		},
	}),
	declare(declaration[customers.Import, importFields, customers.Imported]{
		Path: "/v1/imports", Title: "Open many accounts", Scope: access.ControlRules,
		About: "Opens all of the accounts or none. One that was opened with the very same facts stays as it is.",
		Write: func(c customers.Import) ([]string, importFields) {
			all := importFields{Customers: make([]customerFields, 0, len(c.Customers))}
			for _, o := range c.Customers {
				all.Customers = append(all.Customers, customerFieldsOf(o))
			}
			return nil, all
		},
		Read: func(in *input, f importFields) customers.Import {
			var c customers.Import
			for i, one := range f.Customers {
				in.at = []any{"customers", i}
				c.Customers = append(c.Customers, one.read(in))
			}
			return c
		},
		Answers: func(c customers.Import, i customers.Imported) bool { return i.Opened+i.Unchanged == len(c.Customers) },
	}),
	declare(declaration[customers.Adjust, adjustFields, customers.Adjustment]{
		Path: "/v1/customers/{id}/adjustments", Title: "Correct a balance", Scope: access.ControlRules,
		About: "Adds to what the customer can be refunded, or takes from it.",
		Write: func(c customers.Adjust) ([]string, adjustFields) {
			return []string{c.Customer.String()}, adjustFields{c.Change.Minor(), c.Change.Currency().String(), c.Why}
		},
		Read: func(in *input, f adjustFields) customers.Adjust {
			return customers.Adjust{
				Customer: parse(in, "id", in.param("id"), customers.ParseID),
				Change:   in.amount(f.ChangeMinor, f.Currency), Why: f.Why,
			}
		},
		Guards: func(c customers.Adjust) ledger.Ref { return c.Customer.Ref() },
		Answers: func(c customers.Adjust, a customers.Adjustment) bool {
			return a.Customer == c.Customer && a.Change == c.Change && a.Why == c.Why
		},
	}),
}

type customerFields struct {
	ID           string `json:"id" pattern:"^CUST-\\d{5}$" doc:"CUST- and five digits."`
	Name         string `json:"name" doc:"1 to 200 characters."`
	Email        string `json:"email" doc:"An address of at most 254 bytes."`
	Status       string `json:"status" enum:"active,suspended" doc:"Only active accounts can be refunded."`
	Currency     string `json:"currency" doc:"ISO 4217 code of the account, for good."`
	OpeningMinor int64  `json:"openingMinor" doc:"What can be refunded at first, in minor units."`
	CreatedAt    string `json:"createdAt" format:"date-time" doc:"When the customer came: UTC, milliseconds."`
}

type importFields struct {
	Customers []customerFields `json:"customers" nullable:"false" doc:"The accounts to open."`
}

type adjustFields struct {
	ChangeMinor int64  `json:"changeMinor" doc:"Added to the balance, in minor units; negative takes from it."`
	Currency    string `json:"currency" doc:"ISO 4217 code; must be the account's."`
	Why         string `json:"why" doc:"The explanation, 1 to 2000 bytes."`
}

func customerFieldsOf(c customers.Open) customerFields {
	return customerFields{
		ID: c.ID.String(), Name: c.Profile.Name, Email: c.Profile.Email, Status: c.Status.String(),
		Currency: c.Opening.Currency().String(), OpeningMinor: c.Opening.Minor(), CreatedAt: stamp(c.CreatedAt),
	}
}

func (f customerFields) read(in *input) customers.Open {
	return customers.Open{
		ID:      parse(in, "id", f.ID, customers.ParseID),
		Profile: customers.Profile{Name: f.Name, Email: f.Email},
		Status:  parse(in, "status", f.Status, customers.ParseStatus),
		Opening: in.amount(f.OpeningMinor, f.Currency), CreatedAt: parse(in, "createdAt", f.CreatedAt, parseStamp),
	}
}

func customerOf(t access.Tenant, a customers.Account) Customer {
	lots := make([]Lot, 0, len(a.Lots))
	for _, l := range a.Lots {
		lots = append(lots, Lot{l.Name, l.Balance.Minor()})
	}
	return Customer{
		Tenant: t.String(), ID: a.ID.String(), Name: a.Name, Email: a.Email, Status: a.Status.String(), Currency: a.Currency.String(),
		BalanceMinor: a.Balance().Minor(), CreatedAt: stamp(a.CreatedAt), Version: a.Version(), Head: a.Head.Hash.String(), Lots: lots,
	}
}

func (c Customer) record(t access.Tenant) (customers.Account, error) {
	r := reader{}
	currency := read(&r, c.Currency, money.ParseCurrency)
	a := customers.Account{
		ID: read(&r, c.ID, customers.ParseID), Profile: customers.Profile{Name: c.Name, Email: c.Email}, Status: read(&r, c.Status, customers.ParseStatus),
		Currency: currency, CreatedAt: read(&r, c.CreatedAt, parseStamp), Head: journal.Head{Number: c.Version, Hash: read(&r, c.Head, parseHash)},
	}
	sum := money.FromMinor(0, currency)
	for _, l := range c.Lots {
		balance := money.FromMinor(l.BalanceMinor, currency)
		a.Lots = append(a.Lots, customers.Lot{Name: l.Name, Balance: balance})
		var err error
		sum, err = sum.Add(balance)
		r.fail(err)
		r.want(l.Name != "" && l.BalanceMinor >= 0, "a lot has no name, or less than nothing")
	}
	if a.Profile != (customers.Profile{}) { // else it was erased
		opened := customers.Open{ID: a.ID, Profile: a.Profile, Status: a.Status, Opening: money.FromMinor(0, currency), CreatedAt: a.CreatedAt}
		r.want(len(opened.Check()) == 0, "no account could be opened with the name or the e-mail address")
	}
	r.want(c.Tenant == t.String(), "the customer is of another tenant")
	r.want(sum.Minor() == c.BalanceMinor, "the balance is not the sum of the lots")
	r.want(c.Version > 0, "the version is not positive")
	return a, r.err
}

func adjustmentOf(t access.Tenant, a customers.Adjustment) Adjustment {
	return Adjustment{
		Tenant: t.String(), ID: a.ID.String(), CustomerID: a.Customer.String(), ChangeMinor: a.Change.Minor(), Currency: a.Change.Currency().String(),
		Why: a.Why, AdjustedAt: stamp(a.AdjustedAt), RemainingMinor: a.Remaining.Minor(), Number: a.Number,
	}
}

func (w Adjustment) record(t access.Tenant) (customers.Adjustment, error) {
	r := reader{}
	a := customers.Adjustment{
		ID: read(&r, w.ID, operation.ParseID), Customer: read(&r, w.CustomerID, customers.ParseID), Change: r.amount(w.ChangeMinor, w.Currency), Why: w.Why,
		AdjustedAt: read(&r, w.AdjustedAt, parseStamp), Remaining: r.amount(w.RemainingMinor, w.Currency), Number: w.Number,
	}
	r.want(w.Tenant == t.String(), "the adjustment is of another tenant")
	r.want(text.Written(w.Why) > 0 && len(w.Why) <= customers.MaxWhy && text.IsLine(w.Why), "the explanation of the adjustment is out of form")
	r.want(w.RemainingMinor >= 0 && w.Number > 0, "an amount or the number of the adjustment is out of range")
	return a, r.err
}

func importOf(t access.Tenant, i customers.Imported) Import {
	return Import{t.String(), i.ID.String(), i.Opened, i.Unchanged, stamp(i.ImportedAt)}
}

func (w Import) record(t access.Tenant) (customers.Imported, error) {
	r := reader{}
	i := customers.Imported{ID: read(&r, w.ID, operation.ParseID), Opened: w.Opened, Unchanged: w.Unchanged, ImportedAt: read(&r, w.ImportedAt, parseStamp)}
	r.want(w.Tenant == t.String(), "the import is of another tenant")
	r.want(w.Opened >= 0 && w.Unchanged >= 0, "a count of the import is negative")
	return i, r.err
}
