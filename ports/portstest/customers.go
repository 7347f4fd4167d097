package portstest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// customerLaws are about accounts: how they are opened, corrected and listed.
func customerLaws(law add) {
	law("an account is kept as it was answered", func(w world) {
		for i, change := range []func(*customers.Open){
			func(*customers.Open) {},
			func(c *customers.Open) { c.Opening = cents(0) },
			func(c *customers.Open) { c.Status = customers.Suspended },
			func(c *customers.Open) { c.Profile.Name = `Zoë O'Brien-"Łuk" \ %s` },
			func(c *customers.Open) { c.Profile.Name = "علی\u200cرضا" },
			func(c *customers.Open) { c.Profile.Email = "o'brien+tag@example.com" },
			func(c *customers.Open) {
				c.CreatedAt = time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("", -3600))
			},
			func(c *customers.Open) { c.CreatedAt = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC) },
		} {
			cmd := opening(i, cents(100))
			change(&cmd)
			answer := w.done(cmd).Answer.(customers.Account)
			if answer.ID != cmd.ID || answer.Profile != cmd.Profile || answer.Status != cmd.Status || answer.Balance() != cmd.Opening ||
				answer.CreatedAt != cmd.CreatedAt.UTC().Truncate(time.Millisecond) || answer.Version() != 1 {
				w.Errorf("answered %+v", answer)
			}
			if a := w.account(cmd.ID); !w.same(a, answer) {
				w.Errorf("loaded   %+v\nanswered %+v", a, answer)
			}
			if list, err := w.ListAccounts(w.ctx, w.tenant, fmt.Sprintf("CUST-%05d", i-1), 1); i > 0 && (err != nil || len(list) != 1 || !w.same(list[0], answer)) {
				w.Errorf("listed   %+v, %v\nanswered %+v", list, err, answer)
			}
		}
		w.proved()
	})

	law("of many openings of one customer at once one is done", func(w world) {
		var seen tally
		atOnce(16, func(i int) {
			o, err := w.do(key(), opening(1, cents(int64(1+i))))
			seen.add(result(o, err))
		})
		w.want(&seen, "1 done", "15 CONFLICT/customer_exists")
		w.proved()
	})

	law("lots stay apart, in the order they came, also when they are empty", func(w world) {
		c := w.opened(1, 5_00)
		for i, lot := range []string{"gift", "card", "bank", "gift"} {
			w.done(captureCommand{c, lot, int64(1+i) * 1_00})
		}
		w.done(refund(c, 8_00)) // all of the opening balance, some of the gift card
		want := []customers.Lot{{Name: customers.OpeningLot, Balance: cents(0)}, {Name: "gift", Balance: cents(2_00)}, {Name: "card", Balance: cents(2_00)}, {Name: "bank", Balance: cents(3_00)}}
		if a := w.account(c); !slices.Equal(a.Lots, want) {
			w.Errorf("got %+v, want %+v", a.Lots, want)
		}
		if a := w.accounts()[0]; !slices.Equal(a.Lots, want) {
			w.Errorf("listed %+v, want %+v", a.Lots, want)
		}
		w.proved()
	}, AnyCommand)

	law("a correction is kept as it was answered", func(w world) {
		c := w.opened(1, 100_00)
		for i, cmd := range []customers.Adjust{
			{Customer: c, Change: cents(5_00), Why: "Goodwill, agreed on the phone."},
			{Customer: c, Change: cents(-105_00), Why: "It's \"closed\" – kaputt 100% \\ $1"},
		} {
			o := w.done(cmd)
			a := o.Answer.(customers.Adjustment)
			if a.Customer != c || a.Change != cmd.Change || a.Why != cmd.Why || a.Number != int64(2+i) {
				w.Errorf("answered %+v", a)
			}
			if loaded, ok := get[ledger.Outcome](w, o.Ref()); !ok || loaded.Answer != o.Answer {
				w.Errorf("loaded %+v, answered %+v", loaded.Answer, a)
			}
		}
		w.balance(c, 0, 3)
		_, err := w.do(key(), customers.Adjust{Customer: c, Change: cents(-1), Why: "A cent too much."})
		w.wantFault(err, "POLICY_VIOLATION/balance_exceeded")
		w.balance(c, 0, 3)
		w.proved()
	}, Operator)

	law("what a correction or an import made is a record that is found by its name", func(w world) {
		c := w.opened(1, 100_00)
		a := w.done(customers.Adjust{Customer: c, Change: cents(5), Why: "Goodwill."}).Answer.(customers.Adjustment)
		if record, ok := get[customers.Adjustment](w, a.Ref()); !ok || record != a {
			w.Errorf("the record is %+v, answered was %+v", record, a)
		}
		i := w.done(customers.Import{Customers: []customers.Open{opening(2, cents(1))}}).Answer.(customers.Imported)
		if record, ok := get[customers.Imported](w, i.Ref()); !ok || record != i {
			w.Errorf("the record is %+v, answered was %+v", record, i)
		}
	}, AnyCommand)

	law("an import opens all of its customers or none, and may be sent again", func(w world) {
		const n = 1_000
		all := customers.Import{}
		for i := range n {
			all.Customers = append(all.Customers, opening(i, cents(int64(i))))
		}
		first := w.done(all)
		answer := first.Answer.(customers.Imported)
		if answer.Opened != n || answer.Unchanged != 0 {
			w.Errorf("answered %+v", answer)
		}
		if loaded, ok := get[ledger.Outcome](w, first.Ref()); !ok || loaded.Answer != first.Answer {
			w.Errorf("loaded %+v, answered %+v", loaded.Answer, answer)
		}
		if list := w.accounts(); len(list) != n {
			w.Errorf("%d accounts", len(list))
		}
		for _, i := range []int{0, 1, 17, n - 1} {
			w.balance(customer(i), int64(i), 1)
			if e := w.entriesOf(customer(i)); len(e) != 1 || e[0].Command() != customers.ImportName || !slices.Equal(e[0].Facts(), all.Customers[i].Facts()) {
				w.Errorf("%s has the entries %+v", customer(i), e)
			}
		}

		w.done(refund(customer(7), 3)) // what became of it since is no matter
		all.Customers = append(all.Customers, opening(n, cents(1)))
		if again := w.done(all).Answer.(customers.Imported); again.Opened != 1 || again.Unchanged != n {
			w.Errorf("sent again with one more it is answered %+v", again)
		}
		w.balance(customer(7), 4, 2)

		other := customers.Import{Customers: []customers.Open{opening(n+1, cents(1)), opening(7, cents(8)), opening(n+2, cents(1))}}
		o, err := w.do("k", other)
		if f := fault.Of(err); f == nil || f.Code != fault.InvalidInput || len(f.Issues) != 1 || f.Issues[0].Path[0] != 1 {
			w.Errorf("with a customer who was opened otherwise: %s", result(o, err))
		}
		if list := w.accounts(); len(list) != n+1 {
			w.Errorf("%d accounts after an import that was refused", len(list))
		}
		if o, there := w.outcome("k"); there {
			w.Errorf("it left %+v under the key", o)
		}
	}, Operator)

	law("the list of accounts is in order of id, page by page", func(w world) {
		numbers := []int{12, 3, 99999, 0, 7, 100, 21, 4}
		for _, n := range numbers {
			w.opened(n, 1)
		}
		w.done(refund(customer(7), 1)) // a changed account keeps its place
		slices.Sort(numbers)
		var want []customers.ID
		for _, n := range numbers {
			want = append(want, customer(n))
		}
		for _, limit := range []int{1, 3, len(want), 100, math.MaxInt} {
			var got []customers.ID
			for after := ""; len(got) <= len(want); after = got[len(got)-1].String() {
				page, err := w.ListAccounts(w.ctx, w.tenant, after, limit)
				if err != nil || len(page) > limit {
					w.Fatalf("a page of %d after %q: %d, %v", limit, after, len(page), err)
				}
				if len(page) == 0 {
					break
				}
				for _, a := range page {
					got = append(got, a.ID)
					if loaded := w.account(a.ID); !w.same(a, loaded) {
						w.Errorf("listed %+v\nloaded %+v", a, loaded)
					}
				}
			}
			if !slices.Equal(got, want) {
				w.Errorf("pages of %d: got %v, want %v", limit, got, want)
			}
		}
		for _, limit := range []int{0, -1} {
			if page, err := w.ListAccounts(w.ctx, w.tenant, "", limit); err != nil || len(page) != 0 {
				w.Errorf("a page of %d: %d, %v", limit, len(page), err)
			}
		}
		// What an account is listed after need not exist.
		if page, err := w.ListAccounts(w.ctx, w.tenant, "CUST-00005", 1); err != nil || len(page) != 1 || page[0].ID != customer(7) {
			w.Errorf("after CUST-00005: %+v, %v", page, err)
		}
	})
}

// captureCommand adds so many cents to a lot of an account.
type captureCommand struct {
	customer customers.ID
	lot      string
	minor    int64
}

func (captureCommand) Name() string          { return "test.capture" }
func (c captureCommand) Reads() []ledger.Ref { return []ledger.Ref{c.customer.Ref()} }
func (c captureCommand) Facts() []operation.Fact {
	return []operation.Fact{{Name: "customer", Value: c.customer.String()}, {Name: "lot", Value: c.lot}, {Name: "minor", Value: fmt.Sprint(c.minor)}}
}

func (c captureCommand) Decide(v ledger.View) (ledger.Change, error) {
	a, _ := ledger.Get[customers.Account](v, c.customer.Ref())
	after, e, err := a.Post(v.Op, c.Name(), c.Facts(),
		journal.Posting{Account: journal.Captured, Side: journal.Debit, Amount: money.FromMinor(c.minor, a.Currency)},
		journal.Posting{Account: journal.Refundable(c.customer.String()), Lot: c.lot, Side: journal.Credit, Amount: money.FromMinor(c.minor, a.Currency)})
	return ledger.Change{Put: []ledger.Record{after}, Entries: []journal.Entry{e}, Answer: after}, err
}
