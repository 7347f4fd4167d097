package restwire

import (
	"reflect"
	"strconv"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
)

// Refund is money given back.
type Refund struct {
	Tenant         string `json:"tenant" doc:"The tenant it belongs to."`
	ID             string `json:"id" doc:"The operation's id, a UUID."`
	CustomerID     string `json:"customerId" doc:"Whose refund it is."`
	AmountMinor    int64  `json:"amountMinor" doc:"The amount, in minor units."`
	Currency       string `json:"currency" doc:"ISO 4217 code."`
	Reason         string `json:"reason" doc:"Why it was given."`
	Status         string `json:"status" enum:"processed,reversed" doc:"reversed if the payment failed and the money is refundable again."`
	ProcessedAt    string `json:"processedAt" format:"date-time" doc:"When it was booked: UTC, milliseconds."`
	RemainingMinor int64  `json:"remainingMinor" doc:"The balance right after it, in minor units."`
	Number         int64  `json:"number" doc:"Of the entry that booked it, in the customer's history."`
}

// Reversal is a refund booked back.
type Reversal struct {
	Tenant         string `json:"tenant" doc:"The tenant it belongs to."`
	ID             string `json:"id" doc:"The operation's id, a UUID."`
	CustomerID     string `json:"customerId" doc:"Whose refund it was."`
	Refund         int64  `json:"refund" doc:"The number of the refund."`
	AmountMinor    int64  `json:"amountMinor" doc:"The amount, in minor units."`
	Currency       string `json:"currency" doc:"ISO 4217 code."`
	Reason         string `json:"reason" doc:"How it is known that the payment failed."`
	ReversedAt     string `json:"reversedAt" format:"date-time" doc:"When it was booked: UTC, milliseconds."`
	RemainingMinor int64  `json:"remainingMinor" doc:"The balance right after it, in minor units."`
	Number         int64  `json:"number" doc:"Of the entry that booked it."`
}

// Refunds is a page of refunds, newest first.
type Refunds struct {
	Refunds []Refund `json:"refunds" nullable:"false" doc:"The refunds, newest first."`
	Next    *string  `json:"next" required:"false" nullable:"false" doc:"Send it as cursor to get the next page; absent on the last."`
}

// How they are sent.
var (
	RefundForm   = form("the refund", refundOf, Refund.record)
	RefundPages  = pages(RefundForm, func(p Refunds) ([]Refund, *string) { return p.Refunds, p.Next })
	ReversalForm = form("the reversal", reversalOf, Reversal.record)
)

var refundAnswers = []answer{
	answerOf(func(w *Outcome) **Refund { return &w.Refund }, RefundForm, func(r refunds.Refund) operation.ID { return r.ID }),
	answerOf(func(w *Outcome) **Reversal { return &w.Reversal }, ReversalForm, func(r refunds.Reversal) operation.ID { return r.ID }),
}

// What is read.
var (
	ListRefunds = Read{
		Name: "refunds.list", Path: "/v1/customers/{id}/refunds", Title: "List the refunds of a customer",
		About:  "Newest first. Nobody's list is empty.",
		Scope:  access.RefundRead,
		Query:  []Query{{"cursor", "Begin below this entry number: the next of the page before.", true}, limit},
		Answer: reflect.TypeFor[Refunds](),
	}
	GetRefund = Read{
		Name: "refunds.get", Path: "/v1/customers/{id}/refunds/{number}", Title: "Look up a refund",
		About:  "The refund that the entry of that number booked.",
		Scope:  access.RefundRead,
		Answer: reflect.TypeFor[Refund](),
	}
	GetReversal = Read{
		Name: "refunds.reversal", Path: "/v1/customers/{id}/refunds/{number}/reversal", Title: "Look up a reversal",
		About:  "The reversal of the refund, if there is one.",
		Scope:  access.RefundRead,
		Answer: reflect.TypeFor[Reversal](),
	}
)

var refundCommands = []Resource{
	declare(declaration[refunds.Trigger, refundFields, refunds.Refund]{
		Path: "/v1/customers/{id}/refunds", Title: "Give money back", Scope: access.RefundWrite,
		About: "Refunds the customer, once under the key, if the account is active, in that currency, and has as much.",
		Write: func(c refunds.Trigger) ([]string, refundFields) {
			return []string{c.Customer.String()}, refundFields{c.Amount.Minor(), c.Amount.Currency().String(), c.Reason.String()}
		},
		Read: func(in *input, f refundFields) refunds.Trigger {
			return refunds.Trigger{Request: refunds.Request{
				Customer: parse(in, "id", in.param("id"), customers.ParseID),
				Amount:   in.amount(f.AmountMinor, f.Currency),
				Reason:   parse(in, "reason", f.Reason, refunds.ParseReason),
			}}
		},
		Guards: func(c refunds.Trigger) ledger.Ref { return c.Customer.Ref() },
		Answers: func(c refunds.Trigger, r refunds.Refund) bool {
			return r.Customer == c.Customer && r.Amount == c.Amount && r.Reason == c.Reason
		},
	}),
	declare(declaration[refunds.Reverse, reverseFields, refunds.Reversal]{
		Path: "/v1/customers/{id}/refunds/{number}/reversal", Title: "Book a refund back", Scope: access.ControlRules,
		About: "Makes the money of a refund whose payment failed for good refundable again. Once for each refund.",
		Write: func(c refunds.Reverse) ([]string, reverseFields) {
			return []string{c.Customer.String(), strconv.FormatInt(c.Refund, 10)}, reverseFields{c.Reason.String()}
		},
		Read: func(in *input, f reverseFields) refunds.Reverse {
			return refunds.Reverse{
				Customer: parse(in, "id", in.param("id"), customers.ParseID),
				Refund:   parse(in, "number", in.param("number"), parseNumber),
				Reason:   parse(in, "reason", f.Reason, refunds.ParseReason),
			}
		},
		Guards: func(c refunds.Reverse) ledger.Ref { return c.Customer.Ref() },
		Answers: func(c refunds.Reverse, r refunds.Reversal) bool {
			return r.Customer == c.Customer && r.Refund == c.Refund && r.Reason == c.Reason
		},
	}),
}

type refundFields struct {
	AmountMinor int64  `json:"amountMinor" doc:"How much, in minor units of the currency: 1250 is 12.50 USD."`
	Currency    string `json:"currency" doc:"ISO 4217 code; must be the account's."`
	Reason      string `json:"reason" doc:"Why, in 10 to 500 visible characters."`
}

type reverseFields struct {
	Reason string `json:"reason" doc:"How it is known that the payment failed, in 10 to 500 visible characters."`
}

func refundOf(t access.Tenant, r refunds.Refund) Refund {
	return Refund{
		Tenant: t.String(), ID: r.ID.String(), CustomerID: r.Customer.String(), AmountMinor: r.Amount.Minor(), Currency: r.Amount.Currency().String(),
		Reason: r.Reason.String(), Status: r.Status.String(), ProcessedAt: stamp(r.ProcessedAt), RemainingMinor: r.Remaining.Minor(), Number: r.Number,
	}
}

func (w Refund) record(t access.Tenant) (refunds.Refund, error) {
	r := reader{}
	refund := refunds.Refund{
		ID: read(&r, w.ID, operation.ParseID), Customer: read(&r, w.CustomerID, customers.ParseID), Amount: r.amount(w.AmountMinor, w.Currency),
		Reason: read(&r, w.Reason, refunds.ParseReason), Status: read(&r, w.Status, refunds.ParseStatus), ProcessedAt: read(&r, w.ProcessedAt, parseStamp),
		Remaining: r.amount(w.RemainingMinor, w.Currency), Number: w.Number,
	}
	r.want(w.Tenant == t.String(), "the refund is of another tenant")
	r.want(w.AmountMinor > 0 && w.RemainingMinor >= 0 && w.Number > 0, "an amount or the number of the refund is out of range")
	return refund, r.err
}

func reversalOf(t access.Tenant, r refunds.Reversal) Reversal {
	return Reversal{
		Tenant: t.String(), ID: r.ID.String(), CustomerID: r.Customer.String(), Refund: r.Refund, AmountMinor: r.Amount.Minor(), Currency: r.Amount.Currency().String(),
		Reason: r.Reason.String(), ReversedAt: stamp(r.ReversedAt), RemainingMinor: r.Remaining.Minor(), Number: r.Number,
	}
}

func (w Reversal) record(t access.Tenant) (refunds.Reversal, error) {
	r := reader{}
	reversal := refunds.Reversal{
		ID: read(&r, w.ID, operation.ParseID), Customer: read(&r, w.CustomerID, customers.ParseID), Refund: w.Refund, Amount: r.amount(w.AmountMinor, w.Currency),
		Reason: read(&r, w.Reason, refunds.ParseReason), ReversedAt: read(&r, w.ReversedAt, parseStamp), Remaining: r.amount(w.RemainingMinor, w.Currency), Number: w.Number,
	}
	r.want(w.Tenant == t.String(), "the reversal is of another tenant")
	r.want(w.AmountMinor > 0 && w.RemainingMinor >= 0 && w.Number > w.Refund && w.Refund > 0, "an amount or a number of the reversal is out of range")
	return reversal, r.err
}
