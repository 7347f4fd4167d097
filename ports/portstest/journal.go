package portstest

import (
	"maps"
	"math"
	"slices"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

// journalLaws are about the books.
func journalLaws(law add) {
	law("the journal explains every balance", func(w world) {
		for n := range 5 {
			w.opened(n, int64(n)*50)
		}
		atOnce(50, func(i int) {
			_, _ = w.do(key(), refund(customer(i%5), int64(i))) // some are refused
		})
		books := map[journal.Account]int64{}
		for _, a := range w.accounts() {
			lots := map[string]int64{}
			for _, e := range w.entriesOf(a.ID) {
				for _, p := range e.Postings() {
					n := p.Amount.Minor()
					if p.Side == journal.Debit {
						n = -n
					}
					books[p.Account] += n
					if p.Account == journal.Refundable(a.ID.String()) {
						lots[p.Lot] += n
					}
				}
			}
			for _, l := range a.Lots {
				if lots[l.Name] != l.Balance.Minor() {
					w.Errorf("the lot %s of %s is %s, its postings say %d", l.Name, a.ID, l.Balance, lots[l.Name])
				}
			}
			if n := books[journal.Refundable(a.ID.String())]; n != a.Balance().Minor() {
				w.Errorf("%s has %s, its postings say %d", a.ID, a.Balance(), n)
			}
		}
		if sum := books[journal.Captured] + 50 + 100 + 150 + 200; sum != 0 {
			w.Errorf("captured is off by %d", sum)
		}
		var all int64
		for _, n := range books {
			all += n
		}
		if all != 0 {
			w.Errorf("debits and credits are off by %d: %v", all, books)
		}
		w.proved()
	})

	law("entries read back verify, from the first to the account's head", func(w world) {
		c := w.opened(1, 100_00)
		for n := range 5 {
			w.done(refund(c, int64(1+n)))
		}
		a, entries := w.account(c), w.entriesOf(c)
		var head journal.Head
		for _, e := range entries {
			var err error
			if head, err = journal.Verify(head, subject(c), e); err != nil {
				w.Fatal(err)
			}
		}
		if head != a.Head || head.Number != 6 {
			w.Errorf("the entries end at %d %s, the account at %d %s", head.Number, head.Hash, a.Head.Number, a.Head.Hash)
		}
		empty := w.opened(2, 0)
		if e := w.entriesOf(empty); len(e) != 1 || len(e[0].Postings()) != 0 || e[0].Command() != customers.OpenName {
			w.Errorf("an account without money has the entries %+v", e)
		}
		w.proved()
	})

	law("the list of entries begins and ends where it was asked to", func(w world) {
		c := w.opened(1, 100_00)
		w.opened(2, 100_00)
		for range 4 {
			w.done(refund(c, 1))
		}
		for _, tt := range []struct {
			name    string
			subject journal.Subject
			after   int64
			limit   int
			want    []int64
		}{
			{"from the first", subject(c), 0, 2, []int64{1, 2}},
			{"below zero is the first too", subject(c), -7, 2, []int64{1, 2}},
			{"from the middle", subject(c), 2, 2, []int64{3, 4}},
			{"what is left", subject(c), 4, 2, []int64{5}},
			{"nothing is left", subject(c), 5, 2, nil},
			{"beyond the last", subject(c), 1000, 2, nil},
			{"from as far as can be", subject(c), math.MaxInt64, 2, nil},
			{"all", subject(c), 0, 100, []int64{1, 2, 3, 4, 5}},
			{"all, however many", subject(c), 1, math.MaxInt, []int64{2, 3, 4, 5}},
			{"none", subject(c), 0, 0, nil},
			{"fewer than none", subject(c), 0, -1, nil},
			{"another's", subject(customer(2)), 0, 9, []int64{1}},
			{"of nobody", subject(customer(9)), 0, 9, nil},
			{"of another kind of that id", journal.Subject{Kind: "vendor", ID: c.String()}, 0, 9, nil},
		} {
			page, err := w.ListEntries(w.ctx, w.tenant, tt.subject, tt.after, tt.limit)
			var got []int64
			for _, e := range page {
				got = append(got, e.Number())
				if e.Subject() != tt.subject {
					w.Errorf("%s: an entry of %+v", tt.name, e.Subject())
				}
			}
			if err != nil || !slices.Equal(got, tt.want) {
				w.Errorf("%s: got %v, %v; want %v", tt.name, got, err, tt.want)
			}
		}
	})

	law("a view is of one moment: balance, version and head belong together", func(w world) {
		c := w.opened(1, 100_00)
		atOnce(4, func(i int) {
			for range 10 {
				if i < 2 {
					if o, err := w.do(key(), refund(c, 1_00)); err != nil {
						w.Errorf("a refund: %s", result(o, err))
					}
					continue
				}
				v, err := w.Load(w.ctx, w.tenant, c.Ref())
				if err != nil {
					w.Errorf("Load: %v", err)
					continue
				}
				if a, _ := ledger.Get[customers.Account](v, c.Ref()); a.Balance().Minor() != 100_00-1_00*(a.Version()-1) {
					w.Errorf("%s at version %d", a.Balance(), a.Version())
				}
			}
		})
		w.balance(c, 80_00, 21)
	})

	law("everything is counted, each kind of record and each command by itself", func(w world) {
		c := w.opened(1, 100_00)
		w.done(customers.Import{Customers: []customers.Open{opening(2, cents(0)), opening(3, cents(5))}})
		for range 3 {
			w.done(refund(c, 1_00))
		}
		w.done(refunds.Reverse{Customer: c, Refund: 3, Reason: reason("The bank sent it back.")})
		w.done(customers.Adjust{Customer: c, Change: cents(7), Why: "An error."})
		if _, err := w.do(key(), refund(c, 1_000_00)); err == nil {
			w.Fatal("more than there is was refunded")
		}
		w.in("other").opened(1, 1) // which is not counted
		n := w.counted()
		if n.Versions != 8 || n.Imported != 2 {
			w.Errorf("the versions sum to %d, and %d customers were imported", n.Versions, n.Imported)
		}
		commands := map[string]int64{customers.OpenName: 1, customers.ImportName: 2, refunds.TriggerName: 3, refunds.ReverseName: 1, customers.AdjustName: 1}
		if !maps.Equal(n.Entries, commands) {
			w.Errorf("the entries are %v", n.Entries)
		}
		commands[customers.ImportName] = 1 // whatever it brings in, it is one
		if n.Outcomes != nil && !maps.Equal(n.Outcomes, commands) {
			w.Errorf("the outcomes are %v", n.Outcomes)
		}
		if n.Outcomes != nil && n.Answers[customers.ImportKind] != 1 {
			w.Errorf("the answers are %v", n.Answers)
		}
		for kind, want := range map[ledger.Kind]int64{customers.Kind: 3, customers.ImportKind: 1, customers.AdjustmentKind: 1, refunds.Kind: 3, refunds.ReversalKind: 1} {
			if n.Records[kind] != want {
				w.Errorf("there are %d records of the kind %s, want %d", n.Records[kind], kind.Name, want)
			}
		}
	}, Operator, ManyTenants, Counts)
}

func (w world) counted() ports.Counts {
	w.Helper()
	n, err := w.Store.(ports.Census).Count(w.ctx, w.tenant)
	if err != nil {
		w.Errorf("Count: %v", err)
	}
	return n
}
