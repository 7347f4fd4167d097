package customers_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
)

func reasonOf(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Code.String() + "/" + f.Reason
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestAdjust(t *testing.T) {
	two, _ := open(t, opening(func(c *customers.Open) { c.Opening = cents(100) }))
	two, _ = must2(two.Post(op, "test", nil, debit(journal.Captured, "", cents(80)), credit(own, "card", cents(80))))
	for _, tt := range []struct {
		name    string
		change  money.Amount
		why     string
		opening int64 // the lot of the opening balance after it
		refused string
	}{
		{"more", cents(5), "Goodwill.", 105, ""},
		{"less", cents(-5), "Goods came back unpaid.", 95, ""},
		{"all of the lot", cents(-100), "Closed.", 0, ""},
		{"the explanation is of 2000 bytes", cents(1), strings.Repeat("x", customers.MaxWhy), 101, ""},

		{"more than the lot has, though another lot would do", cents(-101), "Closed.", 0, "POLICY_VIOLATION/balance_exceeded"},
		{"nothing", cents(0), "Nothing.", 0, "INVALID_INPUT/invalid_adjustment"},
		{"another currency", money.FromMinor(5, jpy), "Goodwill.", 0, "POLICY_VIOLATION/currency_mismatch"},
		{"more than 64 bits hold", cents(math.MaxInt64), "Goodwill.", 0, "POLICY_VIOLATION/amount_out_of_range"},
		{"less than 64 bits hold", cents(math.MinInt64), "Goodwill.", 0, "POLICY_VIOLATION/amount_out_of_range"},
		{"no explanation", cents(5), "", 0, "INVALID_INPUT/invalid_adjustment"},
		{"an explanation of spaces", cents(5), "   ", 0, "INVALID_INPUT/invalid_adjustment"},
		{"an explanation that nobody sees", cents(5), strings.Repeat("\u200b", 12), 0, "INVALID_INPUT/invalid_adjustment"},
		{"an explanation of 2001 bytes", cents(5), strings.Repeat("x", customers.MaxWhy+1), 0, "INVALID_INPUT/invalid_adjustment"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := customers.Adjust{Customer: alice, Change: tt.change, Why: tt.why}
			v := ledger.NewView(op, 1)
			v.Put(alice.Ref(), two)
			change, err := ledger.Decide(cmd, v)
			if got := reasonOf(err); got != tt.refused {
				t.Fatalf("got %q, want %q", got, tt.refused)
			}
			if err != nil {
				return
			}
			after, a := change.Put[0].(customers.Account), change.Answer.(customers.Adjustment)
			if want := []customers.Lot{{Name: customers.OpeningLot, Balance: cents(tt.opening)}, {Name: "card", Balance: cents(80)}}; !slices.Equal(after.Lots, want) {
				t.Errorf("the lots are %+v", after.Lots)
			}
			if want := (customers.Adjustment{ID: op.ID, Customer: alice, Change: tt.change, Why: tt.why, AdjustedAt: op.At, Remaining: after.Balance(), Number: 3}); a != want {
				t.Errorf("answered %+v, want %+v", a, want)
			}
			if p := change.Entries[0].Postings(); !slices.ContainsFunc(p, func(p journal.Posting) bool { return p.Account == journal.Adjusted }) {
				t.Errorf("booked %+v", p)
			}
		})
	}
	t.Run("of a customer that is not there", func(t *testing.T) {
		v := ledger.NewView(op, 1)
		v.Put(alice.Ref(), nil)
		if _, err := ledger.Decide(customers.Adjust{Customer: alice, Change: cents(1), Why: "Goodwill."}, v); reasonOf(err) != "NOT_FOUND/customer_not_found" {
			t.Fatalf("got %v", err)
		}
	})
}

func TestImport(t *testing.T) {
	bob := opening(func(c *customers.Open) {
		c.ID, c.Profile.Name = must(customers.ParseID("CUST-00002")), "Bob"
	})
	first := opening(unchanged)
	known, booked := open(t, first)
	known, _ = must2(known.Post(op, "test", nil, debit(own, customers.OpeningLot, cents(1)), credit(journal.PaidOut, "", cents(1))))
	invalid := bob
	invalid.Profile.Email, invalid.Status = "", customers.Status{}
	for _, tt := range []struct {
		name              string
		customers         []customers.Open
		known             bool // the first is there already
		opened, unchanged int
		issues            []string // or what is wrong: position, field
	}{
		{"two that are new", []customers.Open{first, bob}, false, 2, 0, nil},
		{"one that is there, with the same facts, whatever became of it", []customers.Open{first, bob}, true, 1, 1, nil},
		{"all are there", []customers.Open{first}, true, 0, 1, nil},

		{"one that is there, with another opening balance", []customers.Open{opening(func(c *customers.Open) { c.Opening = cents(500_01) }), bob}, true, 0, 0, []string{"0 id"}},
		{"one that is there, with another name", []customers.Open{opening(func(c *customers.Open) { c.Profile.Name = "Mallory" }), bob}, true, 0, 0, []string{"0 id"}},
		{"one stands there twice", []customers.Open{bob, first, bob}, false, 0, 0, []string{"2 id"}},
		{"one is out of form: all its problems, and the others'", []customers.Open{first, invalid, first}, false, 0, 0, []string{"1 email", "1 status", "2 id"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := customers.Import{Customers: tt.customers}
			v := ledger.NewView(op, len(cmd.Reads()))
			for _, ref := range cmd.Reads() {
				v.Put(ref, nil)
			}
			if tt.known {
				v.Put(known.Ref(), known)
				v.Put(ledger.EntryRef(booked.Subject(), 1), ledger.Booked{Entry: booked})
			}
			change, err := ledger.Decide(cmd, v)
			if tt.issues != nil {
				var got []string
				for _, i := range fault.Of(err).Issues {
					got = append(got, strings.TrimSpace(strings.Join([]string{string(rune('0' + i.Path[0].(int))), i.Path[1].(string)}, " ")))
				}
				if fault.CodeOf(err) != fault.InvalidInput || !slices.Equal(got, tt.issues) {
					t.Fatalf("got %v, %q; want %q", err, got, tt.issues)
				}
				return
			}
			if want := (customers.Imported{ID: op.ID, Opened: tt.opened, Unchanged: tt.unchanged, ImportedAt: op.At}); err != nil || change.Answer != want || len(change.Put) != tt.opened || len(change.Entries) != tt.opened {
				t.Fatalf("got %+v, %v; want %+v", change, err, want)
			}
		})
	}
	for name, n := range map[string]int{"none": 0, "too many": customers.MaxImport + 1} {
		if _, err := (customers.Import{Customers: make([]customers.Open, n)}).Decide(ledger.NewView(op, 0)); reasonOf(err) != "INVALID_INPUT/invalid_input" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestOperatorsCommandsAreBoundToTheirFields(t *testing.T) {
	adjust := customers.Adjust{Customer: alice, Change: cents(5), Why: "Goodwill."}
	for name, other := range map[string]customers.Adjust{
		"customer": {Customer: must(customers.ParseID("CUST-00002")), Change: cents(5), Why: "Goodwill."},
		"sign":     {Customer: alice, Change: cents(-5), Why: "Goodwill."},
		"currency": {Customer: alice, Change: money.FromMinor(5, jpy), Why: "Goodwill."},
		"why":      {Customer: alice, Change: cents(5), Why: "Goodwill!"},
	} {
		if slices.Equal(adjust.Facts(), other.Facts()) {
			t.Errorf("another %s has the same facts", name)
		}
	}
	one, two := opening(unchanged), opening(func(c *customers.Open) { c.CreatedAt = c.CreatedAt.Add(time.Millisecond) })
	for name, other := range map[string]customers.Import{
		"order":  {Customers: []customers.Open{two, one}},
		"length": {Customers: []customers.Open{one}},
		"field":  {Customers: []customers.Open{one, one}},
	} {
		if slices.Equal(customers.Import{Customers: []customers.Open{one, two}}.Facts(), other.Facts()) {
			t.Errorf("another %s has the same facts", name)
		}
	}
}
