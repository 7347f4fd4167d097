// Package customers holds the account of a customer: who it is, whether it may
// be refunded, and the money that can still be given back, lot by lot.
//
// An account changes only by posting an entry to it ([Account.Post]), so its
// balance is what its entries say and its version is their number; [History]
// proves it from the entries. [Open] is the command that makes one.
package customers

import (
	"fmt"
	"slices"
	"time"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// Kind is the kind of an account record.
var Kind = ledger.Kind{Name: "account"}

// IDPattern is the form of a customer id, as a regular expression: CUST- and
// five ASCII digits, nothing around it.
const IDPattern = `^CUST-\d{5}$`

// ID names a customer within its tenant. The zero value is none.
type ID struct{ text string }

// ParseID accepts what matches [IDPattern].
func ParseID(s string) (ID, error) {
	const prefix = "CUST-"
	if len(s) != len(prefix)+5 || s[:len(prefix)] != prefix {
		return ID{}, errID
	}
	for _, c := range []byte(s[len(prefix):]) {
		if c < '0' || c > '9' {
			return ID{}, errID
		}
	}
	return ID{s}, nil
}

var errID = fmt.Errorf("a customer id is CUST- followed by exactly five digits, for example CUST-00001")

// String returns the id as it is written.
func (id ID) String() string { return id.text }

// Subject is whose history the entries of the customer's account are.
func (id ID) Subject() journal.Subject { return journal.Subject{Kind: Kind.Name, ID: id.text} }

// Ref names the account record of the customer.
func (id ID) Ref() ledger.Ref { return ledger.Ref{Kind: Kind, ID: id.text} }

// Status says whether a customer may be refunded.
type Status struct{ name string }

var (
	// Active accounts can be refunded.
	Active = Status{"active"}
	// Suspended accounts can not.
	Suspended = Status{"suspended"}
)

// ParseStatus accepts active and suspended.
func ParseStatus(s string) (Status, error) {
	for _, x := range []Status{Active, Suspended} {
		if x.name == s {
			return x, nil
		}
	}
	return Status{}, fmt.Errorf("a customer's status is active or suspended")
}

// String returns active or suspended.
func (s Status) String() string { return s.name }

// Profile is what is known of the person. It stands on the record alone, never
// in the journal, which is never changed: a name may have to be erased one day. No
// account is opened with the zero value: it is a profile that was erased.
type Profile struct {
	Name  string // 1 to MaxName code points, no control characters
	Email string // at most MaxEmail bytes around one @, no white space
}

// Lot is money of one origin: of one tender taken by one capture, or the
// opening balance.
type Lot struct {
	Name    string
	Balance money.Amount // >= 0
}

// OpeningLot names the lot of an opening balance.
const OpeningLot = "opening"

// Account is the record of one customer. Treat it as a value: the methods
// return a new one.
type Account struct {
	ID ID
	Profile
	Status    Status
	Currency  money.Currency // never changes
	CreatedAt time.Time      // UTC, whole milliseconds
	Lots      []Lot          // in the order they came; must not be changed in place
	Head      journal.Head   // the last entry of its history; Head.Number is its version
}

// Ref names the record.
func (a Account) Ref() ledger.Ref { return a.ID.Ref() }

// Version grows by one with each change.
func (a Account) Version() int64 { return a.Head.Number }

// Balance is what can still be refunded: the sum of the lots.
func (a Account) Balance() money.Amount {
	sum := money.FromMinor(0, a.Currency)
	for _, l := range a.Lots {
		var err error
		if sum, err = sum.Add(l.Balance); err != nil {
			// Post checks the sum, so that only a corrupted record gets here.
			panic("customers: " + a.ID.String() + ": " + err.Error())
		}
	}
	return sum
}

// Last is the end of the account's history: a ledger commits no change of an
// account without its entry.
func (a Account) Last() journal.Head { return a.Head }

// Post makes the next entry of the account's history from postings and returns
// the account after it. It fails if the postings do not balance, or if one is
// in another currency, names no lot, would leave a lot below zero, or is on
// another customer's account.
func (a Account) Post(op operation.Operation, command string, facts []operation.Fact, postings ...journal.Posting) (Account, journal.Entry, error) {
	e, err := journal.Next(a.Head, a.ID.Subject(), op, command, facts, postings...)
	if err != nil {
		return Account{}, journal.Entry{}, err
	}
	if a, err = a.apply(e); err != nil {
		return Account{}, journal.Entry{}, err
	}
	return a, e, nil
}

// apply returns the account after e: its lots moved by the postings on its own
// account, its head at e.
func (a Account) apply(e journal.Entry) (Account, error) {
	lots := slices.Clone(a.Lots)
	for _, p := range e.Postings() {
		if p.Amount.Currency() != a.Currency {
			return Account{}, fmt.Errorf("customers: %s is in %s, a posting in %s", a.ID, a.Currency, p.Amount.Currency())
		}
		switch whose, refundable := p.Account.Customer(); {
		case !refundable:
			continue
		case whose != a.ID.text:
			// Another customer's balance would move without its own history.
			return Account{}, fmt.Errorf("customers: an entry of %s has a posting on %s", a.ID, p.Account)
		case p.Lot == "":
			return Account{}, fmt.Errorf("customers: a posting on %s names no lot", p.Account)
		}
		i := 0
		for i < len(lots) && lots[i].Name != p.Lot {
			i++
		}
		if i == len(lots) {
			lots = append(lots, Lot{p.Lot, money.FromMinor(0, a.Currency)})
		}
		var err error
		if p.Side == journal.Credit {
			lots[i].Balance, err = lots[i].Balance.Add(p.Amount)
		} else {
			lots[i].Balance, err = lots[i].Balance.Sub(p.Amount)
		}
		if err != nil {
			return Account{}, err
		}
		if lots[i].Balance.Sign() < 0 {
			return Account{}, fmt.Errorf("customers: the lot %s of %s would fall below zero", p.Lot, a.ID)
		}
	}
	sum := money.FromMinor(0, a.Currency)
	for _, l := range lots {
		var err error
		if sum, err = sum.Add(l.Balance); err != nil {
			return Account{}, err
		}
	}
	a.Lots, a.Head = lots, e.Head()
	return a, nil
}

// NotFound is the fault for a customer that does not exist in the tenant.
func NotFound(id ID) error {
	return fault.New(fault.NotFound, "customer_not_found",
		"There is no customer %s. Check the id; it is CUST- followed by five digits.", id)
}
