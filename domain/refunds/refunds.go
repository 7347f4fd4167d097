// Package refunds holds the rules of giving money back. [Decide] is the whole
// of them, a function of the account, the request and the operation; [Trigger]
// is the command that a ledger runs.
//
// To use the rules alone, read what is asked with [money.ParseDecimal] and
// [ParseReason], make a [Request] of it with [Resolve], and store what [Decide]
// returns in one transaction: the account after it, the entry and the refund. A
// refusal is a [fault.Error] whose message is meant for the one who asked; any
// other error is a mistake of the caller.
package refunds

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/text"
)

// Bounds of a reason.
const (
	// MinReason is how many visible characters a reason has at least, see
	// [text.Visible], and MaxReason how many that are not format characters
	// (Unicode category Cf) at most.
	MinReason = 10
	MaxReason = 500
	// MaxReasonCodePoints bounds all code points of a reason, format characters
	// too: zero-width joiners are kept, since emoji and Persian need them, but
	// they are no way to smuggle a second text.
	MaxReasonCodePoints = 2000
)

// Reason is why a refund is given, as it was written, without the white space
// around it. The zero value is none.
type Reason struct{ text string }

// String returns the text.
func (r Reason) String() string { return r.text }

// ParseReason trims white space and refuses what [text.Parse] refuses.
func ParseReason(s string) (Reason, error) {
	t, err := text.Parse(s, text.Bounds{Min: MinReason, Max: MaxReason, MaxCodePoints: MaxReasonCodePoints})
	if err != nil {
		return Reason{}, fmt.Errorf("the reason %w", err)
	}
	return Reason{t}, nil
}

// RestoreReason returns the reason of a record. It was checked when the record
// was made, by the rules of that time, and is not checked again.
func RestoreReason(s string) (Reason, error) {
	if s == "" {
		return Reason{}, errors.New("a record has a reason")
	}
	return Reason{s}, nil
}

// MaxMajor is the most that one refund may be, in major units of its currency.
const MaxMajor = 1_000_000

// Request is what is asked: give the customer the amount back.
type Request struct {
	Customer customers.ID
	Amount   money.Amount // > 0, at most MaxMajor major units
	Reason   Reason
}

// Resolve makes the request to give amount major units back to the customer of
// the account. It refuses, as PolicyViolation, an amount that the account's
// currency can not express (amount_precision) or that no refund may have
// (amount_out_of_range); a suspended account is named first, as in [Decide].
func Resolve(a customers.Account, amount money.Decimal, reason Reason) (Request, error) {
	exact, err := amount.In(a.Currency)
	if err == nil {
		return Request{a.ID, exact, reason}, nil
	}
	switch {
	case a.Status != customers.Active:
		return Request{}, suspended(a)
	case !errors.Is(err, money.ErrPrecision):
		return Request{}, outOfRange(a)
	}
	return Request{}, Precision(a, amount)
}

// Precision is the fault for an amount with more decimals than the account's
// currency has.
func Precision(a customers.Account, amount money.Decimal) error {
	return fault.New(fault.PolicyViolation, "amount_precision",
		"%s has %d decimals, so %s can not be paid in it. Ask for an amount with at most %d decimals.",
		a.Currency, a.Currency.Digits(), amount, a.Currency.Digits()).
		With(AmountPrecision{a.Currency.String(), a.Currency.Digits()})
}

// Status says where a refund stands.
type Status struct{ name string }

var (
	// Processed: the money is booked as paid out.
	Processed = Status{"processed"}
	// Reversed: the payment failed and the money is refundable again.
	Reversed = Status{"reversed"}
)

// ParseStatus accepts processed and reversed.
func ParseStatus(s string) (Status, error) {
	for _, x := range []Status{Processed, Reversed} {
		if x.name == s {
			return x, nil
		}
	}
	return Status{}, fmt.Errorf("a refund's status is processed or reversed")
}

// String returns processed or reversed.
func (s Status) String() string { return s.name }

// Kind is the kind of a refund record.
var Kind = ledger.Kind{Name: "refund"}

// Refund is the record of money given back.
type Refund struct {
	ID          operation.ID // the operation's
	Customer    customers.ID
	Amount      money.Amount
	Reason      Reason
	Status      Status
	ProcessedAt time.Time    // the operation's time
	Remaining   money.Amount // the customer's balance right after it
	Number      int64        // of the entry that booked it, in the customer's history
}

// Ref names the record by its customer and entry number.
func (r Refund) Ref() ledger.Ref { return RefOf(r.Customer, r.Number) }

// RefOf names the refund that the entry of that number booked. Refunds have no
// look-up by id: no decision needs one.
func RefOf(c customers.ID, number int64) ledger.Ref {
	return ledger.Ref{Kind: Kind, ID: c.String() + "/" + strconv.FormatInt(number, 10)}
}

// ParseRef takes apart what [RefOf] put together.
func ParseRef(ref ledger.Ref) (c customers.ID, number int64, ok bool) {
	customer, digits, _ := strings.Cut(ref.ID, "/")
	c, err := customers.ParseID(customer)
	if err != nil || ref.Kind != Kind {
		return customers.ID{}, 0, false
	}
	number, err = strconv.ParseInt(digits, 10, 64)
	return c, number, err == nil && RefOf(c, number) == ref // one refund has one name
}

// Decide reports the refund, the account after it and the entry that books it,
// or why it may not happen: PolicyViolation account_suspended,
// currency_mismatch, amount_out_of_range or balance_exceeded, in this order.
// The balance that the account shows is what counts. An account of another
// customer, or a request without a reason, is a mistake of the caller: the
// error is no fault.
func Decide(a customers.Account, r Request, op operation.Operation) (Refund, customers.Account, journal.Entry, error) {
	return decide(a, r, op, r.facts())
}

func decide(a customers.Account, r Request, op operation.Operation, facts []operation.Fact) (Refund, customers.Account, journal.Entry, error) {
	if err := permitted(a, r); err != nil {
		return Refund{}, customers.Account{}, journal.Entry{}, err
	}
	after, entry, err := a.Post(op, TriggerName, facts, debits(a, r.Amount)...)
	if err != nil {
		return Refund{}, customers.Account{}, journal.Entry{}, err
	}
	return Refund{
		ID: op.ID, Customer: a.ID, Amount: r.Amount, Reason: r.Reason, Status: Processed,
		ProcessedAt: op.At, Remaining: after.Balance(), Number: entry.Number(),
	}, after, entry, nil
}

func permitted(a customers.Account, r Request) error {
	switch {
	case r.Customer != a.ID:
		return fmt.Errorf("refunds: the request is for %q, the account is %q", r.Customer, a.ID)
	case r.Reason == Reason{}:
		return errors.New("refunds: the request gives no reason")
	}
	if a.Status != customers.Active {
		return suspended(a)
	}
	if r.Amount.Currency() != a.Currency {
		return fault.New(fault.PolicyViolation, "currency_mismatch",
			"The account of %s is in %s, so %s can not be refunded to it. Ask for an amount in %s.",
			a.ID, a.Currency, r.Amount, a.Currency).
			With(CurrencyMismatch{r.Amount.Currency().String(), a.Currency.String()})
	}
	if most, err := maximum.In(a.Currency); err != nil || r.Amount.Sign() <= 0 || r.Amount.Minor() > most.Minor() {
		return outOfRange(a)
	}
	balance := a.Balance()
	if r.Amount.Minor() > balance.Minor() {
		return fault.New(fault.PolicyViolation, "balance_exceeded",
			"A refund of %s exceeds the refundable balance of %s, which is %s. Ask for at most that.",
			r.Amount, a.ID, balance).
			With(BalanceExceeded{number(r.Amount), number(balance), a.Currency.String()})
	}
	return nil
}

// maximum is [MaxMajor].
var maximum = func() money.Decimal {
	d, err := money.ParseDecimal(strconv.Itoa(MaxMajor))
	if err != nil {
		panic(err) // it is a number
	}
	return d
}()

func outOfRange(a customers.Account) error {
	return fault.New(fault.PolicyViolation, "amount_out_of_range",
		"A refund must be more than 0 and at most %d %s.", MaxMajor, a.Currency)
}

func suspended(a customers.Account) error {
	return fault.New(fault.PolicyViolation, "account_suspended",
		"Customer %s is suspended. Refunds can only be issued to active accounts.", a.ID)
}

// debits takes the amount from the account's lots, the oldest first, and
// credits paid out with the sum.
func debits(a customers.Account, amount money.Amount) []journal.Posting {
	own := journal.Refundable(a.ID.String())
	postings := make([]journal.Posting, 0, 2)
	left := amount.Minor()
	for _, l := range a.Lots {
		if take := min(left, l.Balance.Minor()); take > 0 {
			left -= take
			postings = append(postings, journal.Posting{Account: own, Lot: l.Name, Side: journal.Debit, Amount: money.FromMinor(take, a.Currency)})
		}
	}
	return append(postings, journal.Posting{Account: journal.PaidOut, Side: journal.Credit, Amount: amount})
}

// Verify compares the record of a refund with the entry that booked it and the
// balance after that entry. It returns a [*journal.Broken] if the record is not
// there or differs.
func Verify(r Refund, there bool, e journal.Entry, balance money.Amount) error {
	why := ""
	switch op := e.Operation(); {
	case !there:
		why = "the refund that it booked is not on record"
	case r.ID != op.ID || !r.ProcessedAt.Equal(op.At) || r.Number != e.Number():
		why = "the refund on record has another id, time or number"
	case r.Remaining != balance:
		why = "the refund on record left another balance"
	case !slices.Equal(Request{r.Customer, r.Amount, r.Reason}.facts(), e.Facts()):
		why = "the refund on record has another amount or reason"
	default:
		return nil
	}
	return &journal.Broken{Subject: e.Subject(), Number: e.Number(), Why: why}
}

// TriggerName is the name of the command [Trigger].
const TriggerName = "refunds.trigger"

// Trigger is the command that gives money back.
type Trigger struct{ Request }

// Name is [TriggerName].
func (Trigger) Name() string { return TriggerName }

// Facts are the request's fields.
func (t Trigger) Facts() []operation.Fact { return t.facts() }

func (r Request) facts() []operation.Fact {
	return []operation.Fact{
		{Name: "customer", Value: r.Customer.String()},
		{Name: "amount_minor", Value: strconv.FormatInt(r.Amount.Minor(), 10)},
		{Name: "currency", Value: r.Amount.Currency().String()},
		{Name: "reason", Value: r.Reason.text},
	}
}

// Reads names the account. The refund is new with its entry's number, which the
// account alone decides.
func (t Trigger) Reads() []ledger.Ref { return []ledger.Ref{t.Customer.Ref()} }

// Decide runs [Decide] on the account; without one it refuses with NotFound
// customer_not_found. The answer is the refund.
func (t Trigger) Decide(v ledger.View) (ledger.Change, error) {
	a, ok := ledger.Get[customers.Account](v, t.Customer.Ref())
	if !ok {
		return ledger.Change{}, customers.NotFound(t.Customer)
	}
	refund, after, entry, err := decide(a, t.Request, v.Op, v.FactsOf(t))
	if err != nil {
		return ledger.Change{}, err
	}
	return ledger.Change{Put: []ledger.Record{after}, Entries: []journal.Entry{entry}, Answer: refund}, nil
}
