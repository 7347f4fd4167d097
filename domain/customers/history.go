package customers

import (
	"fmt"
	"slices"

	"github.com/refundledger/refundledger/domain/journal"
)

// History recomputes an account from its entries: start one for the account as
// it is on record, add every entry in order, then ask whether the result is
// what the record says.
type History struct {
	record  Account
	rebuilt Account
}

// NewHistory starts the history of the account a, as it is on record.
func NewHistory(a Account) *History {
	return &History{record: a, rebuilt: Account{ID: a.ID, Currency: a.Currency}}
}

// Head returns the last entry added.
func (h *History) Head() journal.Head { return h.rebuilt.Head }

// Add verifies the next entry and applies its postings. It returns a
// [*journal.Broken] if the entry does not hold.
func (h *History) Add(e journal.Entry) error {
	subject := journal.Subject{Kind: Kind.Name, ID: h.record.ID.text}
	if _, err := journal.Verify(h.rebuilt.Head, subject, e); err != nil {
		return err
	}
	next, err := h.rebuilt.apply(e)
	if err != nil {
		return &journal.Broken{Subject: subject, Number: e.Number(), Why: err.Error()}
	}
	h.rebuilt = next
	return nil
}

// Close compares what the entries add up to with the record: the version, the
// head and each lot. It returns a [*journal.Broken] at the record's version if
// they differ.
func (h *History) Close() error {
	why := ""
	switch {
	case h.rebuilt.Head != h.record.Head:
		why = fmt.Sprintf("the record ends at entry %d, the entries at %d, or their hashes differ", h.record.Head.Number, h.rebuilt.Head.Number)
	case !slices.Equal(h.rebuilt.Lots, h.record.Lots):
		why = "the balance on record is not what the entries add up to"
	default:
		return nil
	}
	return &journal.Broken{Subject: journal.Subject{Kind: Kind.Name, ID: h.record.ID.text}, Number: h.record.Head.Number, Why: why}
}
