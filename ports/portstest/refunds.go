package portstest

import (
	"math"
	"slices"
	"strings"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/refunds"
)

// refundLaws are about giving money back, and the list of it.
func refundLaws(law add) {
	law("20 refunds of 15.00 at once on 80.00: exactly 5 succeed", func(w world) {
		c := w.opened(1, 80_00)
		var seen tally
		atOnce(20, func(int) {
			o, err := w.do(key(), refund(c, 15_00))
			seen.add(result(o, err))
		})
		w.want(&seen, "15 POLICY_VIOLATION/balance_exceeded", "5 done")
		w.balance(c, 5_00, 6)
		w.proved()
	})

	law("each of many refunds at once shows the balance it left", func(w world) {
		c, other := w.opened(1, 100_00), w.opened(2, 100_00)
		atOnce(60, func(i int) {
			who := []customers.ID{c, c, other}[i%3]
			o, err := w.do(key(), refund(who, 1_00))
			if err != nil {
				w.Errorf("refund %d: %v", i, err)
				return
			}
			if r := o.Answer.(refunds.Refund); r.Customer != who || r.Remaining.Minor() != 100_00-1_00*(r.Number-1) {
				w.Errorf("refund %d of %s leaves %s", r.Number, r.Customer, r.Remaining)
			}
		})
		w.balance(c, 60_00, 41)
		w.balance(other, 80_00, 21)
		w.proved()
	})

	law("a refund is kept as it was answered", func(w world) {
		c := w.opened(1, 100_00)
		for i, text := range []string{
			"plain text",
			"kaputt 👩‍👩‍👧 gebracht",
			"کالا شکسته رسید و نمی\u200cخواهم",
			"abc \u2067שלום\u2069 def ghi",
			"line one\r\n\tline two\n",
			`quotes ' " and ` + "`" + ` \ \' \u0000 %s %d {} $1 ?`,
			"'); DROP TABLE refunds; --",
			"re\u0301fe\u0301re\u0301e \ufffd \u2028 \ufeff end",
			"<b>&amp;</b> not escaped",
			strings.Repeat("😀", 500),
			strings.Repeat("\u0301", 500),
		} {
			cmd := refund(c, int64(1+i))
			cmd.Reason = reason(text)
			r := w.done(cmd).Answer.(refunds.Refund)
			if r.Customer != c || r.Amount != cmd.Amount || r.Reason != cmd.Reason || r.Status != refunds.Processed || r.Number != int64(2+i) {
				w.Errorf("answered %+v", r)
			}
			if list := w.refundsOf(c); len(list) != i+1 || list[0] != r {
				w.Errorf("listed %+v, answered %+v", list[0], r)
			}
			if loaded, ok := get[refunds.Refund](w, r.Ref()); !ok || loaded != r {
				w.Errorf("loaded %+v, answered %+v", loaded, r)
			}
			facts := w.entriesOf(c)[i+1].Facts()
			if !slices.Equal(facts, cmd.Facts()) {
				w.Errorf("booked %q, asked %q", facts, cmd.Facts())
			}
		}
		w.proved()
	})

	law("a refund whose payment failed is booked back once, and its money is refundable again", func(w world) {
		c := w.opened(1, 22_85)
		first, err := w.do("k", refund(c, 22_85))
		if err != nil {
			w.Fatal(err)
		}
		paid := first.Answer.(refunds.Refund)
		_, err = w.do(key(), refund(c, 1))
		w.wantFault(err, "POLICY_VIOLATION/balance_exceeded") // the money is taken until it is known that it came back

		reverse := refunds.Reverse{Customer: c, Refund: paid.Number, Reason: reason("The bank returned it: account closed.")}
		o, err := w.do("r", reverse)
		if err != nil {
			w.Fatal(err)
		}
		r := o.Answer.(refunds.Reversal)
		if r.Customer != c || r.Refund != paid.Number || r.Amount != paid.Amount || r.Remaining != cents(22_85) || r.Reason != reverse.Reason || r.Number != 3 {
			w.Errorf("answered %+v", r)
		}
		if loaded, ok := get[refunds.Reversal](w, r.Ref()); !ok || loaded != r {
			w.Errorf("loaded %+v, answered %+v", loaded, r)
		}
		if again, err := w.do("r", reverse); err != nil || !again.Replayed || again.Answer != o.Answer {
			w.Errorf("the repeat: %s", result(again, err))
		}
		_, err = w.do(key(), reverse)
		w.wantFault(err, "CONFLICT/already_reversed")
		w.balance(c, 22_85, 3)

		now := paid
		now.Status = refunds.Reversed
		if list := w.refundsOf(c); len(list) != 1 || list[0] != now {
			w.Errorf("listed %+v", list)
		}
		if loaded, ok := get[refunds.Refund](w, paid.Ref()); !ok || loaded != now {
			w.Errorf("loaded %+v", loaded)
		}
		// The answer under the refund's key is what it was.
		if again, err := w.do("k", refund(c, 22_85)); err != nil || !again.Replayed || again.Answer != first.Answer {
			w.Errorf("the refund's repeat: %s, %+v", result(again, err), again.Answer)
		}
		w.done(refund(c, 22_85))
		w.balance(c, 0, 4)
		w.proved()
	}, Operator)

	law("of many reversals of one refund at once one is done", func(w world) {
		c := w.opened(1, 100_00)
		w.done(refund(c, 10_00))
		w.done(refund(c, 20_00))
		var seen tally
		atOnce(24, func(i int) {
			o, err := w.do(key(), refunds.Reverse{Customer: c, Refund: int64(2 + i%2), Reason: reason("The bank returned it.")})
			seen.add(result(o, err))
		})
		w.want(&seen, "2 done", "22 CONFLICT/already_reversed")
		w.balance(c, 100_00, 5)
		w.proved()
	}, Operator)

	law("only a refund is reversed", func(w world) {
		c, other := w.opened(1, 100_00), w.opened(2, 100_00)
		w.done(refund(c, 10_00))
		for name, cmd := range map[string]refunds.Reverse{
			"the opening balance":        {Customer: c, Refund: 1},
			"an entry that is not there": {Customer: c, Refund: 3},
			"no entry":                   {Customer: c, Refund: 0},
			"less than no entry":         {Customer: c, Refund: -1},
			"another customer's":         {Customer: other, Refund: 2},
		} {
			cmd.Reason = reason("The bank returned it.")
			if _, err := w.do(key(), cmd); faultOf(err) != "NOT_FOUND/refund_not_found" {
				w.Errorf("%s: %v", name, err)
			}
		}
		w.balance(c, 90_00, 2)
		w.proved()
	}, Operator)

	law("amounts are exact in any currency, up to 64 bits", func(w world) {
		for i, tt := range []struct {
			currency       string
			opening, minor int64
		}{
			{"JPY", 7300, 2400},
			{"KWD", 5_000, 1},
			{"CLF", 1, 1},
			{"USD", math.MaxInt64, 1},
			{"JPY", math.MaxInt64, 1_000_000},
			{"USD", 1<<53 + 2, 1}, // a float would not tell the difference
			{"USD", 1_000_000_00, 1_000_000_00},
		} {
			c := must(money.ParseCurrency(tt.currency))
			w.done(opening(i, money.FromMinor(tt.opening, c)))
			cmd := refund(customer(i), 0)
			cmd.Amount = money.FromMinor(tt.minor, c)
			left := money.FromMinor(tt.opening-tt.minor, c)
			if r := w.done(cmd).Answer.(refunds.Refund); r.Amount != cmd.Amount || r.Remaining != left {
				w.Errorf("%s of %d %s leaves %s", r.Amount, tt.opening, c, r.Remaining)
			}
			if a := w.account(customer(i)); a.Balance() != left || a.Currency != c {
				w.Errorf("%s of %d %s leaves %s on the account", cmd.Amount, tt.opening, c, a.Balance())
			}
			if r := w.refundsOf(customer(i))[0]; r.Amount != cmd.Amount || r.Remaining != left {
				w.Errorf("%s of %d %s is listed as %s, %s left", cmd.Amount, tt.opening, c, r.Amount, r.Remaining)
			}
		}
		w.proved()
	})

	law("the rules refuse in one order", func(w world) {
		c := w.opened(1, 100_00)
		suspended := opening(2, cents(100_00))
		suspended.Status = customers.Suspended
		w.done(suspended)
		euros := func(id customers.ID, minor int64) ledger.Command {
			t := refund(id, 0)
			t.Amount = money.FromMinor(minor, must(money.ParseCurrency("EUR")))
			return t
		}
		for _, tt := range []struct {
			name string
			cmd  ledger.Command
			want string
		}{
			{"nobody, in another currency", euros(customer(9), 0), "NOT_FOUND/customer_not_found"},
			{"suspended, in another currency", euros(suspended.ID, 0), "POLICY_VIOLATION/account_suspended"},
			{"another currency, out of range", euros(c, 0), "POLICY_VIOLATION/currency_mismatch"},
			{"nothing", refund(c, 0), "POLICY_VIOLATION/amount_out_of_range"},
			{"less than nothing", refund(c, -1), "POLICY_VIOLATION/amount_out_of_range"},
			{"more than the most, and than there is", refund(c, 1_000_000_01), "POLICY_VIOLATION/amount_out_of_range"},
			{"more than there is", refund(c, 100_01), "POLICY_VIOLATION/balance_exceeded"},
			{"opened before", opening(1, cents(1)), "CONFLICT/customer_exists"},
			{"opened with a debt", opening(3, cents(-1)), "INVALID_INPUT/invalid_input"},
		} {
			o, err := w.do(key(), tt.cmd)
			if got := faultOf(err); got != tt.want || o.Answer != nil {
				w.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
		}
		w.balance(c, 100_00, 1)
		w.proved()
	})

	law("the list of refunds begins and ends where it was asked to", func(w world) {
		c := w.opened(1, 100_00) // entry 1; its refunds are 2 to 6
		for range 5 {
			w.done(refund(c, 1_00))
		}
		w.opened(2, 100_00)
		w.done(refund(customer(2), 1))
		for _, tt := range []struct {
			name     string
			customer customers.ID
			before   int64
			limit    int
			want     []int64
		}{
			{"from the newest", c, 0, 2, []int64{6, 5}},
			{"below zero is the newest too", c, -7, 2, []int64{6, 5}},
			{"from the middle", c, 5, 2, []int64{4, 3}},
			{"what is left", c, 3, 2, []int64{2}},
			{"nothing is left", c, 2, 2, nil},
			{"before the first entry", c, 1, 2, nil},
			{"beyond the newest", c, 1000, 2, []int64{6, 5}},
			{"from as far as can be", c, math.MaxInt64, 2, []int64{6, 5}},
			{"all", c, 0, 100, []int64{6, 5, 4, 3, 2}},
			{"all, however many", c, 0, math.MaxInt, []int64{6, 5, 4, 3, 2}},
			{"none", c, 0, 0, nil},
			{"fewer than none", c, 0, -1, nil},
			{"another's", customer(2), 0, 9, []int64{2}},
			{"of nobody", customer(9), 0, 9, nil},
		} {
			page, err := w.ListRefunds(w.ctx, w.tenant, tt.customer, tt.before, tt.limit)
			var got []int64
			for _, r := range page {
				got = append(got, r.Number)
				if r.Customer != tt.customer {
					w.Errorf("%s: a refund of %s", tt.name, r.Customer)
				}
			}
			if err != nil || !slices.Equal(got, tt.want) {
				w.Errorf("%s: got %v, %v; want %v", tt.name, got, err, tt.want)
			}
		}
	})

	law("paging through refunds has no gaps and no doubles while more arrive", func(w world) {
		c := w.opened(1, 100_00)
		for range 20 {
			w.done(refund(c, 1))
		}
		var seen []int64
		atOnce(2, func(i int) {
			if i == 0 {
				for range 20 {
					if o, err := w.do(key(), refund(c, 1)); err != nil {
						w.Errorf("a refund: %s", result(o, err))
					}
				}
				return
			}
			for before := int64(0); len(seen) <= 40; {
				page, err := w.ListRefunds(w.ctx, w.tenant, c, before, 3)
				if err != nil {
					w.Errorf("a page: %v", err)
				}
				if len(page) == 0 {
					return
				}
				for _, r := range page {
					seen = append(seen, r.Number)
				}
				before = seen[len(seen)-1]
			}
		})
		if len(seen) < 20 {
			w.Errorf("the pages have %v", seen)
		}
		for i, n := range seen {
			if want := int64(1 + len(seen) - i); n != want {
				w.Errorf("the pages have %v: number %d where %d belongs", seen, n, want)
				break
			}
		}
		w.balance(c, 100_00-40, 41)
	})
}
