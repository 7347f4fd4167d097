package customers

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/text"
)

// AdjustmentKind is the kind of an adjustment record.
var AdjustmentKind = ledger.Kind{Name: "adjustment"}

// Adjustment is the record of a correction of what can be refunded.
type Adjustment struct {
	ID         operation.ID // the operation's
	Customer   ID
	Change     money.Amount // added to the balance; negative if taken from it
	Why        string
	AdjustedAt time.Time    // the operation's time
	Remaining  money.Amount // the balance right after it
	Number     int64        // of the entry that booked it
}

// Ref names the record by its customer and entry number.
func (a Adjustment) Ref() ledger.Ref {
	return ledger.Ref{Kind: AdjustmentKind, ID: a.Customer.text + "/" + strconv.FormatInt(a.Number, 10)}
}

// AdjustName is the name of the command [Adjust].
const AdjustName = "customers.adjust"

// MaxWhy bounds the explanation of an adjustment, in bytes of UTF-8.
const MaxWhy = 2000

// Adjust is the command that corrects what a customer can be refunded, in the
// lot of the opening balance. It is an operator's, not an agent's.
type Adjust struct {
	Customer ID
	Change   money.Amount // not zero; negative takes from the balance
	Why      string       // 1 to MaxWhy bytes that a reader sees
}

// Name is [AdjustName].
func (Adjust) Name() string { return AdjustName }

// Facts are the command's fields.
func (c Adjust) Facts() []operation.Fact {
	return []operation.Fact{
		{Name: "customer", Value: c.Customer.text},
		{Name: "change_minor", Value: strconv.FormatInt(c.Change.Minor(), 10)},
		{Name: "currency", Value: c.Change.Currency().String()},
		{Name: "why", Value: c.Why},
	}
}

// Verify compares the record of an adjustment with the entry that booked it and
// the balance after that entry. It returns a [*journal.Broken] if it differs.
func (a Adjustment) Verify(e journal.Entry, balance money.Amount) error {
	why := ""
	switch op := e.Operation(); {
	case a.ID != op.ID || !a.AdjustedAt.Equal(op.At) || a.Number != e.Number():
		why = "the adjustment on record has another id, time or number"
	case a.Remaining != balance:
		why = "the adjustment on record left another balance"
	case !slices.Equal(Adjust{a.Customer, a.Change, a.Why}.Facts(), e.Facts()):
		why = "the adjustment on record has another amount or explanation"
	default:
		return nil
	}
	return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: why}
}

// Reads names the account.
func (c Adjust) Reads() []ledger.Ref { return []ledger.Ref{c.Customer.Ref()} }

// Decide refuses InvalidInput without a change or an explanation, NotFound
// customer_not_found, and PolicyViolation currency_mismatch, balance_exceeded
// or amount_out_of_range. The answer is the adjustment.
func (c Adjust) Decide(v ledger.View) (ledger.Change, error) {
	if c.Change.Sign() == 0 || text.Written(c.Why) == 0 || len(c.Why) > MaxWhy || !text.IsLine(c.Why) {
		return ledger.Change{}, fault.New(fault.InvalidInput, "invalid_adjustment",
			"An adjustment needs an amount other than zero and an explanation of 1 to %d visible bytes.", MaxWhy)
	}
	a, ok := ledger.Get[Account](v, c.Customer.Ref())
	if !ok {
		return ledger.Change{}, NotFound(c.Customer)
	}
	if c.Change.Currency() != a.Currency {
		return ledger.Change{}, fault.New(fault.PolicyViolation, "currency_mismatch", "The account of %s is in %s.", a.ID, a.Currency)
	}
	amount, add := c.Change, c.Change.Sign() > 0
	if !add {
		var err error
		if amount, err = money.FromMinor(0, a.Currency).Sub(c.Change); err != nil {
			return ledger.Change{}, OutOfRange(a)
		}
	}
	postings := []journal.Posting{
		{Account: journal.Adjusted, Side: journal.Debit, Amount: amount},
		{Account: journal.Refundable(a.ID.text), Lot: OpeningLot, Side: journal.Credit, Amount: amount},
	}
	if !add {
		if amount.Minor() > a.lot(OpeningLot) {
			return ledger.Change{}, fault.New(fault.PolicyViolation, "balance_exceeded",
				"Taking %s from %s exceeds what can be refunded.", amount, a.ID)
		}
		postings = journal.Exchanged(postings)
	}
	after, entry, err := a.Post(v.Op, AdjustName, c.Facts(), postings...)
	if errors.Is(err, money.ErrOverflow) {
		return ledger.Change{}, OutOfRange(a)
	}
	if err != nil {
		return ledger.Change{}, err
	}
	adjustment := Adjustment{
		ID: v.Op.ID, Customer: a.ID, Change: c.Change, Why: c.Why,
		AdjustedAt: v.Op.At, Remaining: after.Balance(), Number: entry.Number(),
	}
	return ledger.Change{Put: []ledger.Record{after}, Entries: []journal.Entry{entry}, Answer: adjustment}, nil
}

// OutOfRange is the fault for a balance or a change that is too large to keep.
func OutOfRange(a Account) error {
	return fault.New(fault.PolicyViolation, "amount_out_of_range", "The balance of %s would not fit in 64 bits of minor units.", a.ID)
}

// lot is the balance of a lot in minor units, 0 if there is none of the name.
func (a Account) lot(name string) int64 {
	for _, l := range a.Lots {
		if l.Name == name {
			return l.Balance.Minor()
		}
	}
	return 0
}
