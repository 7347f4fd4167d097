package refunds_test

import (
	"slices"
	"testing"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/refunds"
)

// bookOf is what a ledger holds of one customer, for a decision to look at.
type bookOf map[ledger.Ref]ledger.Record

func (b bookOf) run(t *testing.T, cmd ledger.Command) (ledger.Record, error) {
	t.Helper()
	op.ID[1]++
	v := ledger.NewView(op, len(cmd.Reads()))
	for _, ref := range cmd.Reads() {
		v.Put(ref, b[ref])
	}
	c, err := ledger.Decide(cmd, v)
	if err != nil {
		return nil, err
	}
	for _, r := range append(c.Put, c.Answer) {
		b[r.Ref()] = r
	}
	for _, e := range c.Entries {
		b[ledger.EntryRef(e.Subject(), e.Number())] = ledger.Booked{Entry: e}
	}
	return c.Answer, nil
}

func TestAPaymentThatFailedIsRefundableAgain(t *testing.T) {
	usd := currency("USD")
	all := refunds.Trigger{Request: refunds.Request{Customer: alice, Amount: amount("22.85", usd), Reason: broken}}
	reverse := refunds.Reverse{Customer: alice, Refund: 1, Reason: must(refunds.ParseReason("The bank returned it: account closed."))}
	start := account("0", usd)
	start.Lots = []customers.Lot{{Name: "gift", Balance: amount("10", usd)}, {Name: "card", Balance: amount("12.85", usd)}}
	b := bookOf{alice.Ref(): start}

	if _, err := b.run(t, all); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(t, all); reasonOf(err) != "POLICY_VIOLATION/balance_exceeded" {
		t.Fatalf("while the payment is on its way the money is taken: %v", err)
	}
	answer, err := b.run(t, reverse)
	if err != nil {
		t.Fatal(err)
	}
	if r := answer.(refunds.Reversal); r.Refund != 1 || r.Number != 2 || r.Amount != all.Amount || r.Remaining != all.Amount || r.Reason != reverse.Reason || r.ReversedAt != now || r.ID != op.ID {
		t.Errorf("answered %+v", r)
	}
	if a := b[alice.Ref()].(customers.Account); !slices.Equal(a.Lots, start.Lots) {
		t.Errorf("the money is not back in the lots it came from: %+v", a.Lots)
	}
	if _, err := b.run(t, reverse); reasonOf(err) != "CONFLICT/already_reversed" {
		t.Errorf("a refund is reversed once: %v", err)
	}
	if _, err := b.run(t, all); err != nil {
		t.Errorf("the money can not be refunded again: %v", err)
	}
}

func TestReverse(t *testing.T) {
	usd := currency("USD")
	why := must(refunds.ParseReason("The bank returned it."))
	refunded := func(t *testing.T, change func(*customers.Account)) bookOf {
		b := bookOf{alice.Ref(): account("80", usd)}
		for range 2 {
			if _, err := b.run(t, refunds.Trigger{Request: refunds.Request{Customer: alice, Amount: amount("20", usd), Reason: broken}}); err != nil {
				t.Fatal(err)
			}
		}
		a := b[alice.Ref()].(customers.Account)
		change(&a)
		b[alice.Ref()] = a
		return b
	}
	for _, tt := range []struct {
		name    string
		cmd     refunds.Reverse
		change  func(*customers.Account)
		refused string
	}{
		{"the newest", refunds.Reverse{Customer: alice, Refund: 2, Reason: why}, func(*customers.Account) {}, ""},
		{"an older one", refunds.Reverse{Customer: alice, Refund: 1, Reason: why}, func(*customers.Account) {}, ""},
		{"of a customer who was suspended since", refunds.Reverse{Customer: alice, Refund: 1, Reason: why}, func(a *customers.Account) { a.Status = customers.Suspended }, ""},
		{"an entry that is not there", refunds.Reverse{Customer: alice, Refund: 3, Reason: why}, func(*customers.Account) {}, "NOT_FOUND/refund_not_found"},
		{"no entry", refunds.Reverse{Customer: alice, Refund: 0, Reason: why}, func(*customers.Account) {}, "NOT_FOUND/refund_not_found"},
		{"a number below zero", refunds.Reverse{Customer: alice, Refund: -1, Reason: why}, func(*customers.Account) {}, "NOT_FOUND/refund_not_found"},
		{"another customer's", refunds.Reverse{Customer: must(customers.ParseID("CUST-00002")), Refund: 1, Reason: why}, func(*customers.Account) {}, "NOT_FOUND/customer_not_found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := refunded(t, tt.change)
			answer, err := b.run(t, tt.cmd)
			if got := reasonOf(err); got != tt.refused {
				t.Fatalf("got %v, want %q", err, tt.refused)
			}
			want := amount("40", usd)
			if err == nil {
				want = amount("60", usd)
				if p := b[ledger.EntryRef(journal.Subject{Kind: "account", ID: alice.String()}, 3)].(ledger.Booked).Postings(); !slices.Equal(p, []journal.Posting{
					{Account: journal.Refundable(alice.String()), Lot: customers.OpeningLot, Side: journal.Credit, Amount: amount("20", usd)},
					{Account: journal.PaidOut, Side: journal.Debit, Amount: amount("20", usd)},
				}) {
					t.Errorf("booked %+v", p)
				}
				if again, err := b.run(t, refunds.Reverse{Customer: alice, Refund: answer.(refunds.Reversal).Number, Reason: why}); reasonOf(err) != "NOT_FOUND/refund_not_found" {
					t.Errorf("a reversal was reversed: %+v, %v", again, err)
				}
			}
			if a := b[alice.Ref()].(customers.Account); a.Balance() != want {
				t.Errorf("%s is left, want %s", a.Balance(), want)
			}
		})
	}
	t.Run("without a reason it is a mistake", func(t *testing.T) {
		if _, err := refunded(t, func(*customers.Account) {}).run(t, refunds.Reverse{Customer: alice, Refund: 1}); err == nil || fault.Of(err) != nil {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("each field is part of what a key is bound to", func(t *testing.T) {
		first := refunds.Reverse{Customer: alice, Refund: 1, Reason: why}
		for name, other := range map[string]refunds.Reverse{
			"customer": {Customer: must(customers.ParseID("CUST-00002")), Refund: 1, Reason: why},
			"refund":   {Customer: alice, Refund: 2, Reason: why},
			"reason":   {Customer: alice, Refund: 1, Reason: broken},
		} {
			if slices.Equal(first.Facts(), other.Facts()) {
				t.Errorf("another %s has the same facts", name)
			}
		}
	})
}

// Reversing is a refund's exact opposite, whatever lots it drew on.
func TestExchangedPostingsUndo(t *testing.T) {
	usd := currency("USD")
	p := []journal.Posting{
		{Account: journal.Refundable("x"), Lot: "a", Side: journal.Debit, Amount: money.FromMinor(3, usd)},
		{Account: journal.PaidOut, Side: journal.Credit, Amount: money.FromMinor(3, usd)},
	}
	undo := journal.Exchanged(p)
	if undo[0].Side != journal.Credit || undo[1].Side != journal.Debit || undo[0].Lot != "a" || undo[0].Amount != p[0].Amount {
		t.Errorf("got %+v", undo)
	}
	if p[0].Side != journal.Debit || !slices.Equal(journal.Exchanged(undo), p) {
		t.Errorf("exchanged twice: %+v", journal.Exchanged(undo))
	}
}
