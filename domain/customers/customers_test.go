package customers_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var (
	usd   = must(money.ParseCurrency("USD"))
	jpy   = must(money.ParseCurrency("JPY"))
	alice = must(customers.ParseID("CUST-00001"))
	own   = journal.Refundable("CUST-00001")
	other = journal.Refundable("CUST-00002")
	op    = operation.Operation{
		ID: operation.ID{1}, Tenant: must(access.ParseTenant("acme")), Principal: "ops", Tool: "import",
		Key: must(operation.ParseKey("k1")), At: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
	}
)

func cents(n int64) money.Amount { return money.FromMinor(n, usd) }

func debit(a journal.Account, lot string, m money.Amount) journal.Posting {
	return journal.Posting{Account: a, Lot: lot, Side: journal.Debit, Amount: m}
}

func credit(a journal.Account, lot string, m money.Amount) journal.Posting {
	return journal.Posting{Account: a, Lot: lot, Side: journal.Credit, Amount: m}
}

// opening is a command in order; a test changes what it is about.
func opening(change func(*customers.Open)) customers.Open {
	c := customers.Open{
		ID: alice, Profile: customers.Profile{Name: "Alice Johnson", Email: "alice@example.com"},
		Status: customers.Active, Opening: cents(500_00), CreatedAt: time.Date(2024, 1, 15, 9, 30, 0, 0, time.UTC),
	}
	change(&c)
	return c
}

func unchanged(*customers.Open) {}

func open(t testing.TB, c customers.Open) (customers.Account, journal.Entry) {
	t.Helper()
	v := ledger.NewView(op, 1)
	v.Put(c.ID.Ref(), nil)
	change, err := ledger.Decide(c, v)
	if err != nil {
		t.Fatal(err)
	}
	return change.Answer.(customers.Account), change.Entries[0]
}

func TestParseID(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		ok   bool
	}{
		{"CUST- and five digits", "CUST-00001", true},
		{"four digits", "CUST-0001", false},
		{"six digits", "CUST-000001", false},
		{"a letter among the digits", "CUST-0000a", false},
		{"lower case", "cust-00001", false},
		{"another prefix", "CUSP-00001", false},
		{"space around it", " CUST-00001", false},
		{"a line end after it", "CUST-00001\n", false},
		{"a sign", "CUST-+0001", false},
		{"digits of another script", "CUST-١٢٣٤٥", false},
		{"digits that are as many bytes", "CUST-00١1", false},
		{"nothing", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, err := customers.ParseID(tt.text)
			if (err == nil) != tt.ok || tt.ok && id.String() != tt.text || !tt.ok && id != (customers.ID{}) {
				t.Fatalf("%q gave %q, %v", tt.text, id, err)
			}
		})
	}
}

func TestOpenCheck(t *testing.T) {
	named := func(name string) customers.Open {
		return opening(func(c *customers.Open) { c.Profile.Name = name })
	}
	mailed := func(email string) customers.Open {
		return opening(func(c *customers.Open) { c.Profile.Email = email })
	}
	for _, tt := range []struct {
		name string
		open customers.Open
		bad  string // the field, or "" if all is in order
	}{
		{"all in order", opening(unchanged), ""},
		{"an opening balance of nothing", opening(func(c *customers.Open) { c.Opening = cents(0) }), ""},
		{"a suspended customer", opening(func(c *customers.Open) { c.Status = customers.Suspended }), ""},
		{"no id", opening(func(c *customers.Open) { c.ID = customers.ID{} }), "id"},
		{"no status", opening(func(c *customers.Open) { c.Status = customers.Status{} }), "status"},
		{"no currency", opening(func(c *customers.Open) { c.Opening = money.Amount{} }), "currency"},
		{"a debt is no opening balance", opening(func(c *customers.Open) { c.Opening = cents(-1) }), "balance"},
		{"no date", opening(func(c *customers.Open) { c.CreatedAt = time.Time{} }), "created_at"},

		{"a name of one letter", named("X"), ""},
		{"a name with an apostrophe, a hyphen and a letter that is not ASCII", named("Zoë O’Brien-Łuk"), ""},
		{"a Persian name with a zero-width non-joiner", named("علی\u200cرضا"), ""},
		{"a Sinhala name with a zero-width joiner", named("ශ්\u200dරී"), ""},
		{"a name of 200 characters", named(strings.Repeat("é", 200)), ""},
		{"a name of 201 characters", named(strings.Repeat("e", 201)), "name"},
		{"no name", named(""), "name"},
		{"a name of spaces", named("   "), "name"},
		{"space around a name", named("Alice "), "name"},
		{"two lines are no name", named("Alice\nJohnson"), "name"},
		{"a line separator is a line end", named("Alice\u2028Johnson"), "name"},
		{"a NUL in a name", named("Alice\x00"), "name"},
		{"a name that nobody sees", named(strings.Repeat("\u200b", 12)), "name"},
		{"a name of joiners", named("\u200d\u200d"), "name"},
		{"a second text behind a joiner", named("Alice\u200d\u200d\u200c\u200d"), "name"},
		{"a name that turns the line around", named("Alice\u202egro"), "name"},
		{"a name without ink", named("\u3164\u2800"), "name"},
		{"a text in variation selectors", named("Alice\U000e0141\U000e0142"), "name"},
		{"a text in the Tags block", named("Alice\U000e0041\U000e0042"), "name"},
		{"bytes that are no text", named("Alice\xff"), "name"},

		{"an address with a tag", mailed("a.b+c@example.com"), ""},
		{"no address", mailed(""), "email"},
		{"no @", mailed("alice.example.com"), "email"},
		{"two @", mailed("alice@example.com@example.org"), "email"},
		{"nothing before the @", mailed("@example.com"), "email"},
		{"nothing after the @", mailed("alice@"), "email"},
		{"a space in an address", mailed("alice @example.com"), "email"},
		{"a header in an address", mailed("alice@example.com\r\nBcc: x@y"), "email"},
		{"an invisible letter in an address", mailed("ali\u200cce@example.com"), "email"},
		{"an address of 254 bytes", mailed("a@" + strings.Repeat("b", 252)), ""},
		{"an address of 255 bytes", mailed("a@" + strings.Repeat("b", 253)), "email"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var fields []string
			for _, i := range tt.open.Check() {
				fields = append(fields, i.Path[0].(string))
			}
			if got := strings.Join(fields, " "); got != tt.bad {
				t.Fatalf("issues of %q, want %q", got, tt.bad)
			}
			v := ledger.NewView(op, 1)
			v.Put(tt.open.ID.Ref(), nil)
			_, err := tt.open.Decide(v)
			if (err == nil) != (tt.bad == "") || err != nil && !errors.Is(err, fault.New(fault.InvalidInput, "invalid_input", "")) {
				t.Fatalf("decided %v", err)
			}
		})
	}
	if all := (customers.Open{Opening: cents(-1)}).Check(); len(all) != 6 {
		t.Errorf("not every problem is reported at once: %v", all)
	}
}

func TestOpen(t *testing.T) {
	t.Run("the opening balance is one lot, explained by an entry", func(t *testing.T) {
		a, e := open(t, opening(unchanged))
		if a.Balance() != cents(500_00) || a.Version() != 1 || !slices.Equal(a.Lots, []customers.Lot{{Name: customers.OpeningLot, Balance: cents(500_00)}}) {
			t.Fatalf("%+v", a)
		}
		if !slices.Equal(e.Postings(), []journal.Posting{debit(journal.Captured, "", cents(500_00)), credit(own, customers.OpeningLot, cents(500_00))}) {
			t.Fatalf("%+v", e.Postings())
		}
	})
	t.Run("an account without money has an entry too", func(t *testing.T) {
		a, e := open(t, opening(func(c *customers.Open) { c.Opening = cents(0) }))
		if a.Balance() != cents(0) || len(a.Lots) != 0 || a.Version() != 1 || len(e.Postings()) != 0 {
			t.Fatalf("%+v, %+v", a, e.Postings())
		}
	})
	t.Run("the day a customer came is kept in UTC and whole milliseconds", func(t *testing.T) {
		berlin := time.FixedZone("CET", 3600)
		a, _ := open(t, opening(func(c *customers.Open) { c.CreatedAt = time.Date(2024, 1, 15, 10, 30, 0, 1_999_999, berlin) }))
		if a.CreatedAt != time.Date(2024, 1, 15, 9, 30, 0, 1_000_000, time.UTC) {
			t.Fatal(a.CreatedAt)
		}
	})
	t.Run("a customer is opened once", func(t *testing.T) {
		c := opening(unchanged)
		a, _ := open(t, c)
		v := ledger.NewView(op, 1)
		v.Put(c.ID.Ref(), a)
		if _, err := c.Decide(v); !errors.Is(err, fault.New(fault.Conflict, "customer_exists", "")) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("the journal holds no name and no address", func(t *testing.T) {
		_, e := open(t, opening(unchanged))
		for _, f := range e.Facts() {
			if strings.Contains(f.Value, "Alice") || strings.Contains(f.Value, "@") {
				t.Errorf("%s: %s", f.Name, f.Value)
			}
		}
	})
	t.Run("each field is part of what a key is bound to", func(t *testing.T) {
		first := operation.FingerprintOf(customers.OpenName, opening(unchanged).Facts())
		for name, change := range map[string]func(*customers.Open){
			"id":       func(c *customers.Open) { c.ID = must(customers.ParseID("CUST-00002")) },
			"name":     func(c *customers.Open) { c.Profile.Name = "Alice Johnso" },
			"email":    func(c *customers.Open) { c.Profile.Email = "nalice@example.com" },
			"status":   func(c *customers.Open) { c.Status = customers.Suspended },
			"amount":   func(c *customers.Open) { c.Opening = cents(500_01) },
			"currency": func(c *customers.Open) { c.Opening = money.FromMinor(500_00, jpy) },
			"date":     func(c *customers.Open) { c.CreatedAt = c.CreatedAt.Add(time.Millisecond) },
		} {
			if operation.FingerprintOf(customers.OpenName, opening(change).Facts()) == first {
				t.Errorf("another %s has the same fingerprint", name)
			}
		}
	})
}

func TestPost(t *testing.T) {
	yen := func(n int64) money.Amount { return money.FromMinor(n, jpy) }
	for _, tt := range []struct {
		name     string
		postings []journal.Posting
		lots     []customers.Lot // nil: refused
	}{
		{"money out of a lot", []journal.Posting{debit(own, "opening", cents(120)), credit(journal.PaidOut, "", cents(120))},
			[]customers.Lot{{Name: "opening", Balance: cents(380)}}},
		{"an empty lot stays", []journal.Posting{debit(own, "opening", cents(500)), credit(journal.PaidOut, "", cents(500))},
			[]customers.Lot{{Name: "opening", Balance: cents(0)}}},
		{"money into a new lot", []journal.Posting{debit(journal.Captured, "", cents(80)), credit(own, "card", cents(80))},
			[]customers.Lot{{Name: "opening", Balance: cents(500)}, {Name: "card", Balance: cents(80)}}},
		{"no postings", []journal.Posting{}, []customers.Lot{{Name: "opening", Balance: cents(500)}}},

		{"a lot never falls below zero", []journal.Posting{debit(own, "opening", cents(501)), credit(journal.PaidOut, "", cents(501))}, nil},
		{"a lot that is not there has nothing to give", []journal.Posting{debit(own, "card", cents(1)), credit(journal.PaidOut, "", cents(1))}, nil},
		{"every posting on the account names a lot", []journal.Posting{debit(journal.Captured, "", cents(80)), credit(own, "", cents(80))}, nil},
		{"another currency", []journal.Posting{debit(journal.Captured, "", yen(80)), credit(own, "card", yen(80))}, nil},
		{"another currency, from others to others", []journal.Posting{debit(journal.Captured, "", yen(80)), credit(journal.PaidOut, "", yen(80))}, nil},
		{"out of balance", []journal.Posting{debit(own, "opening", cents(120))}, nil},
		{"another customer's balance has another history", []journal.Posting{debit(own, "opening", cents(120)), credit(other, "opening", cents(120))}, nil},
		{"the lots together must fit in 64 bits", []journal.Posting{debit(journal.Captured, "", cents(math.MaxInt64)), credit(own, "card", cents(math.MaxInt64))}, nil},
		{"a lot must fit in 64 bits", []journal.Posting{debit(journal.Captured, "", cents(math.MaxInt64)), credit(own, "opening", cents(math.MaxInt64))}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, _ := open(t, opening(func(c *customers.Open) { c.Opening = cents(500) }))
			kept := slices.Clone(before.Lots)
			after, e, err := before.Post(op, "test", nil, tt.postings...)
			if !slices.Equal(before.Lots, kept) || before.Version() != 1 {
				t.Fatalf("the account before it was changed: %+v", before)
			}
			if tt.lots == nil {
				if err == nil || e != (journal.Entry{}) || after.ID != (customers.ID{}) {
					t.Fatalf("got %+v, %v", after, err)
				}
				return
			}
			if err != nil || !slices.Equal(after.Lots, tt.lots) || after.Head != e.Head() || e.Previous() != before.Head.Hash || after.Version() != 2 {
				t.Fatalf("got %+v, %v", after, err)
			}
		})
	}
}

func TestHistory(t *testing.T) {
	a, first := open(t, opening(func(c *customers.Open) { c.Opening = cents(500) }))
	b, second := must2(a.Post(op, "test", nil, debit(journal.Captured, "", cents(80)), credit(own, "card", cents(80))))
	c, third := must2(b.Post(op, "test", nil, debit(own, "opening", cents(120)), credit(journal.PaidOut, "", cents(120))))
	all := []journal.Entry{first, second, third}
	record := func(change func(*customers.Account)) customers.Account {
		r := c
		r.Lots = slices.Clone(c.Lots)
		change(&r)
		return r
	}
	for _, tt := range []struct {
		name    string
		record  customers.Account
		entries []journal.Entry
		broken  int64 // the number of the bad entry, 0 if it all holds
	}{
		{"the record is what its entries add up to", c, all, 0},
		{"a balance that was raised", record(func(a *customers.Account) { a.Lots[0].Balance = cents(381) }), all, 3},
		{"money moved from lot to lot", record(func(a *customers.Account) { a.Lots[0].Balance, a.Lots[1].Balance = cents(379), cents(81) }), all, 3},
		{"another name", record(func(a *customers.Account) { a.Name = "Mallory" }), all, 3},
		{"another e-mail", record(func(a *customers.Account) { a.Email = "mallory@example.com" }), all, 3},
		{"a name without its e-mail", record(func(a *customers.Account) { a.Email = "" }), all, 3},
		{"a profile that was erased", record(func(a *customers.Account) { a.Profile = customers.Profile{} }), all, 0},
		{"a lot that is gone", record(func(a *customers.Account) { a.Lots = a.Lots[:1] }), all, 3},
		{"a record behind its entries", b, all, 2},
		{"a record ahead of its entries", c, all[:2], 3},
		{"no entries", c, nil, 3},
		{"an entry is gone", c, []journal.Entry{first, third}, 2},
		{"another hash on record", record(func(a *customers.Account) { a.Head.Hash[0] ^= 1 }), all, 3},
		{"an entry changed and its hash left", c, []journal.Entry{first,
			journal.Restore(2, second.Previous(), second.Hash(), second.Subject(), second.Operation(), second.Command(), nil,
				[]journal.Posting{debit(journal.Captured, "", cents(90)), credit(own, "card", cents(90))}), third}, 2},
		{"an entry made anew", c, []journal.Entry{first,
			must(journal.Next(first.Head(), first.Subject(), op, "test", nil, debit(journal.Captured, "", cents(90)), credit(own, "card", cents(90)))), third}, 3},
		{"an entry that overdraws, with a hash of its own", c, []journal.Entry{first,
			must(journal.Next(first.Head(), first.Subject(), op, "test", nil, debit(own, "opening", cents(501)), credit(journal.PaidOut, "", cents(501))))}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := customers.NewHistory(tt.record)
			var err error
			for _, e := range tt.entries {
				if err = h.Add(e); err != nil {
					break
				}
			}
			if err == nil {
				err = h.Close()
			}
			broken, _ := errors.AsType[*journal.Broken](err)
			switch {
			case tt.broken == 0 && err != nil:
				t.Fatal(err)
			case tt.broken != 0 && (broken == nil || broken.Number != tt.broken):
				t.Fatalf("got %v, want entry %d", err, tt.broken)
			}
		})
	}
}

// What was answered when an account was opened is the account of then.
func TestHistoryOfTheFirstAnswer(t *testing.T) {
	a, first := open(t, opening(func(c *customers.Open) { c.Opening = cents(500) }))
	for name, tt := range map[string]struct {
		change func(*customers.Account)
		holds  bool
	}{
		"nothing":   {func(*customers.Account) {}, true},
		"erased":    {func(a *customers.Account) { a.Profile = customers.Profile{} }, true},
		"a name":    {func(a *customers.Account) { a.Name = "Mallory" }, false},
		"an e-mail": {func(a *customers.Account) { a.Email = "mallory@example.com" }, false},
		"a status":  {func(a *customers.Account) { a.Status = customers.Suspended }, false},
		"a time":    {func(a *customers.Account) { a.CreatedAt = a.CreatedAt.Add(time.Hour) }, false},
		"a balance": {func(a *customers.Account) {
			a.Lots = []customers.Lot{{Name: customers.OpeningLot, Balance: cents(501)}}
		}, false},
		"a version":      {func(a *customers.Account) { a.Head.Number++ }, false},
		"another's":      {func(a *customers.Account) { a.ID = must(customers.ParseID("CUST-99999")) }, false},
		"another record": {func(a *customers.Account) { *a = customers.Account{} }, false},
	} {
		h := customers.NewHistory(a)
		if err := h.Add(first); err != nil {
			t.Fatal(err)
		}
		answer := a
		tt.change(&answer)
		err := h.CompareAnswer(answer)
		if broken, ok := errors.AsType[*journal.Broken](err); tt.holds != (err == nil) || err != nil && (!ok || broken.Number != 1) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func must2[A, B any](a A, b B, err error) (A, B) {
	if err != nil {
		panic(err)
	}
	return a, b
}
