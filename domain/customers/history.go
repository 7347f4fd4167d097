package customers

import (
	"fmt"
	"slices"

	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// History recomputes an account from its entries: start one for the account as
// it is on record, add every entry in order, then ask whether the result is
// what the record says.
type History struct {
	record  Account
	rebuilt Account
	opened  []operation.Fact // of the entry that opened the account
}

// NewHistory starts the history of the account a, as it is on record.
func NewHistory(a Account) *History {
	return &History{record: a, rebuilt: Account{ID: a.ID, Currency: a.Currency}}
}

// Head returns the last entry added.
func (h *History) Head() journal.Head { return h.rebuilt.Head }

// Balance returns what the entries added so far leave to be refunded.
func (h *History) Balance() money.Amount { return h.rebuilt.Balance() }

// Add verifies the next entry and applies its postings. It returns a
// [*journal.Broken] if the entry does not hold.
func (h *History) Add(e journal.Entry) error {
	subject := h.record.ID.Subject()
	if _, err := journal.Verify(h.rebuilt.Head, subject, e); err != nil {
		return err
	}
	next, err := h.rebuilt.apply(e)
	if err != nil {
		return &journal.Broken{Subject: subject, Number: e.Number(), Why: err.Error()}
	}
	if e.Number() == 1 {
		h.opened = e.Facts()
	}
	h.rebuilt = next
	return nil
}

// CompareAnswer compares what the command that opened the account answered with
// the account after its entry, the last one added. It returns a [*journal.Broken]
// if they differ.
func (h *History) CompareAnswer(a Account) error {
	if a.Head == h.rebuilt.Head && slices.Equal(a.Lots, h.rebuilt.Lots) && slices.Equal(h.opened, h.expected(a)) {
		return nil
	}
	return &journal.Broken{Subject: h.record.ID.Subject(), Number: h.rebuilt.Head.Number, Why: "the outcome under its operation key answers with another account than was opened"}
}

// Close compares what the entries add up to with the record: the version, the
// head, each lot, and what the account was opened with and no command changes
// (name and e-mail, status, currency, time of creation). It returns a
// [*journal.Broken] at the record's version if they differ. A [Profile] that was
// erased is not compared.
func (h *History) Close() error {
	why := ""
	switch {
	case h.rebuilt.Head != h.record.Head:
		why = fmt.Sprintf("the record ends at entry %d, the entries at %d, or their hashes differ", h.record.Head.Number, h.rebuilt.Head.Number)
	case !slices.Equal(h.rebuilt.Lots, h.record.Lots):
		why = "the balance on record is not what the entries add up to"
	case !slices.Equal(h.opened, h.expected(h.record)):
		why = "the name, e-mail, status, currency or time of creation on record is not what the account was opened with"
	default:
		return nil
	}
	return &journal.Broken{Subject: h.record.ID.Subject(), Number: h.record.Head.Number, Why: why}
}

// expected are the facts of the opening entry as the account has them; those
// that it does not have are taken as they are.
func (h *History) expected(a Account) []operation.Fact {
	facts := slices.Clone(h.opened)
	of := Open{ID: a.ID, Profile: a.Profile, Status: a.Status, Opening: money.FromMinor(0, a.Currency), CreatedAt: a.CreatedAt}.Facts()
	for i, f := range facts {
		if f.Name == factProfile && a.Profile == (Profile{}) || f.Name == factOpening {
			continue
		}
		at := slices.IndexFunc(of, func(o operation.Fact) bool { return o.Name == f.Name })
		if at >= 0 {
			facts[i] = of[at]
		}
	}
	return facts
}
