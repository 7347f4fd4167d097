package refunds

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// ReversalKind is the kind of a reversal record. A refund has at most one.
var ReversalKind = ledger.Kind{Name: "reversal"}

// Reversal is the record that a refund's payment failed, so that its money is
// refundable again. The refund itself never changes: it counts as [Reversed]
// when it has a reversal.
type Reversal struct {
	ID         operation.ID // the operation's
	Customer   customers.ID
	Refund     int64 // the number of the entry that booked the refund
	Amount     money.Amount
	Reason     Reason
	ReversedAt time.Time    // the operation's time
	Remaining  money.Amount // the customer's balance right after it
	Number     int64        // of the entry that booked it, in the customer's history
}

// Ref names the record by the refund it reverses.
func (r Reversal) Ref() ledger.Ref { return ReversalRef(r.Customer, r.Refund) }

// ReversalRef names the reversal of the refund that the entry of that number booked.
func ReversalRef(c customers.ID, refund int64) ledger.Ref {
	return ledger.Ref{Kind: ReversalKind, ID: c.String() + "/" + strconv.FormatInt(refund, 10)}
}

// ReverseName is the name of the command [Reverse].
const ReverseName = "refunds.reverse"

// Reverse is the command that books a refund back whose payment failed for
// good. A payment whose fate is unknown must not be reversed: its money stays
// taken until somebody knows.
type Reverse struct {
	Customer customers.ID
	Refund   int64  // the number of the entry that booked the refund
	Reason   Reason // how it is known that the payment failed
}

// Name is [ReverseName].
func (Reverse) Name() string { return ReverseName }

// Facts are the command's fields.
func (c Reverse) Facts() []operation.Fact {
	return []operation.Fact{
		{Name: "customer", Value: c.Customer.String()},
		{Name: "refund", Value: strconv.FormatInt(c.Refund, 10)},
		{Name: "reason", Value: c.Reason.text},
	}
}

// Reads names the account, the refund, the entry that booked it, and its
// reversal, which must not exist yet.
func (c Reverse) Reads() []ledger.Ref {
	return []ledger.Ref{
		c.Customer.Ref(), RefOf(c.Customer, c.Refund),
		ledger.EntryRef(c.Customer.Subject(), c.Refund), ReversalRef(c.Customer, c.Refund),
	}
}

// Verify compares the record of a reversal with the entry that booked it and the
// balance after that entry. It returns a [*journal.Broken] if it differs.
func (r Reversal) Verify(e journal.Entry, balance money.Amount) error {
	why := ""
	switch op := e.Operation(); {
	case r.ID != op.ID || !r.ReversedAt.Equal(op.At) || r.Number != e.Number():
		why = "the reversal on record has another id, time or number"
	case r.Remaining != balance:
		why = "the reversal on record left another balance"
	case !slices.Equal(Reverse{r.Customer, r.Refund, r.Reason}.Facts(), e.Facts()):
		why = "the reversal on record is of another refund, or for another reason"
	case !slices.Contains(e.Postings(), journal.Posting{Account: journal.PaidOut, Side: journal.Debit, Amount: r.Amount}):
		why = "the reversal on record has another amount"
	default:
		return nil
	}
	return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: why}
}

// Decide refuses NotFound customer_not_found or refund_not_found, and Conflict
// already_reversed. The postings are those of the refund with the sides
// exchanged, so that the money is back in the lots it came from; that is so for
// a suspended account too. The answer is the reversal.
func (c Reverse) Decide(v ledger.View) (ledger.Change, error) {
	if c.Reason == (Reason{}) {
		return ledger.Change{}, errors.New("refunds: the reversal gives no reason")
	}
	a, ok := ledger.Get[customers.Account](v, c.Customer.Ref())
	if !ok {
		return ledger.Change{}, customers.NotFound(c.Customer)
	}
	refund, ok := ledger.Get[Refund](v, RefOf(c.Customer, c.Refund))
	booked, booking := ledger.Get[ledger.Booked](v, ledger.EntryRef(c.Customer.Subject(), c.Refund))
	if !ok || !booking {
		return ledger.Change{}, fault.New(fault.NotFound, "refund_not_found",
			"Entry %d of %s is no refund.", c.Refund, c.Customer)
	}
	if _, reversed := ledger.Get[Reversal](v, ReversalRef(c.Customer, c.Refund)); reversed {
		return ledger.Change{}, fault.New(fault.Conflict, "already_reversed", "The refund of entry %d of %s is reversed already.", c.Refund, c.Customer)
	}
	after, entry, err := a.Post(v.Op, ReverseName, c.Facts(), journal.Exchanged(booked.Postings())...)
	if err != nil {
		return ledger.Change{}, err
	}
	reversal := Reversal{
		ID: v.Op.ID, Customer: c.Customer, Refund: c.Refund, Amount: refund.Amount, Reason: c.Reason,
		ReversedAt: v.Op.At, Remaining: after.Balance(), Number: entry.Number(),
	}
	return ledger.Change{Put: []ledger.Record{after, reversal}, Entries: []journal.Entry{entry}, Answer: reversal}, nil
}
