package payables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// VendorKind is the kind of a vendor record.
var VendorKind = ledger.Kind{Name: "vendor"}

// Vendor is the record of one vendor. It changes only by an entry of its
// history, so what it shows can be recomputed; see [History]. Treat it as a
// value.
type Vendor struct {
	ID       VendorID
	Name     string         // 1 to MaxName characters of one line; data of others
	Balances []money.Amount // what is owed, one for each currency, in order of its code; must not be changed in place
	Head     journal.Head   // the last entry of its history; Head.Number is its version
	// Synthesised is [FieldCurrency] if its ledger does not say what a balance is
	// in, else nil.
	Synthesised []Field
}

// Subject is whose history the entries of a vendor are.
func (id VendorID) Subject() journal.Subject {
	return journal.Subject{Kind: VendorKind.Name, ID: id.text}
}

// Ref names the record.
func (v Vendor) Ref() ledger.Ref { return v.ID.Ref() }

// Last is the end of the vendor's history.
func (v Vendor) Last() journal.Head { return v.Head }

// Payable is the account of what one vendor is owed: credits less debits.
func Payable(v VendorID) journal.Account { return journal.Account(payablePrefix + v.text) }

const payablePrefix = "payable:"

// post makes the next entry of the vendor's history and returns the vendor
// after it.
func (v Vendor) post(op operation.Operation, command string, facts []operation.Fact, postings ...journal.Posting) (Vendor, journal.Entry, error) {
	e, err := journal.Next(v.Head, v.ID.Subject(), op, command, facts, postings...)
	if err != nil {
		return Vendor{}, journal.Entry{}, err
	}
	v, err = v.apply(e)
	return v, e, err
}

// apply returns the vendor after e.
func (v Vendor) apply(e journal.Entry) (Vendor, error) {
	own := Payable(v.ID)
	balances := slices.Clone(v.Balances)
	for _, p := range e.Postings() {
		if p.Account != own {
			if strings.HasPrefix(string(p.Account), payablePrefix) {
				return Vendor{}, fmt.Errorf("payables: an entry of %s has a posting on %s", v.ID, p.Account)
			}
			continue
		}
		at, found := slices.BinarySearchFunc(balances, p.Amount.Currency(), func(b money.Amount, c money.Currency) int {
			return strings.Compare(b.Currency().String(), c.String())
		})
		if !found {
			balances = slices.Insert(balances, at, money.FromMinor(0, p.Amount.Currency()))
		}
		var err error
		if p.Side == journal.Credit {
			balances[at], err = balances[at].Add(p.Amount)
		} else {
			balances[at], err = balances[at].Sub(p.Amount)
		}
		if err != nil {
			return Vendor{}, err
		}
	}
	v.Balances, v.Head = balances, e.Head()
	return v, nil
}
