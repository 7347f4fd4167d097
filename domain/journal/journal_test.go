package journal_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/journal"
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
	alice = journal.Subject{Kind: "account", ID: "CUST-00001"}
	own   = journal.Refundable("CUST-00001")
)

func asked(id byte) operation.Operation {
	return operation.Operation{
		ID: operation.ID{id}, Tenant: must(access.ParseTenant("acme")), Principal: "bot", Via: "mcp", Tool: "trigger_refund",
		Key: must(operation.ParseKey("k1")), At: time.Date(2026, 3, 1, 9, 0, 0, int(250*time.Millisecond), time.UTC),
	}
}

func cents(n int64) money.Amount { return money.FromMinor(n, usd) }
func yen(n int64) money.Amount   { return money.FromMinor(n, jpy) }

func debit(a journal.Account, lot string, m money.Amount) journal.Posting {
	return journal.Posting{Account: a, Lot: lot, Side: journal.Debit, Amount: m}
}

func credit(a journal.Account, lot string, m money.Amount) journal.Posting {
	return journal.Posting{Account: a, Lot: lot, Side: journal.Credit, Amount: m}
}

func TestNext(t *testing.T) {
	for _, tt := range []struct {
		name     string
		postings []journal.Posting
		ok       bool
	}{
		{"no postings: a decision that moved no money", nil, true},
		{"a debit and its credit", []journal.Posting{debit(own, "opening", cents(500)), credit(journal.PaidOut, "", cents(500))}, true},
		{"two lots and their sum", []journal.Posting{debit(own, "a", cents(300)), debit(own, "b", cents(200)), credit(journal.PaidOut, "", cents(500))}, true},
		{"two currencies, each balanced", []journal.Posting{debit(own, "a", cents(1)), debit(own, "b", yen(2)), credit(journal.PaidOut, "", cents(1)), credit(journal.PaidOut, "", yen(2))}, true},

		{"a cent short", []journal.Posting{debit(own, "opening", cents(500)), credit(journal.PaidOut, "", cents(499))}, false},
		{"a debit alone", []journal.Posting{debit(own, "opening", cents(500))}, false},
		{"two debits", []journal.Posting{debit(own, "opening", cents(500)), debit(journal.PaidOut, "", cents(500))}, false},
		{"two currencies are not one sum", []journal.Posting{debit(own, "opening", cents(500)), credit(journal.PaidOut, "", yen(500))}, false},
		{"nothing is not moved", []journal.Posting{debit(own, "opening", cents(0)), credit(journal.PaidOut, "", cents(0))}, false},
		{"less than nothing is not moved", []journal.Posting{debit(own, "opening", cents(-5)), credit(journal.PaidOut, "", cents(-5))}, false},
		{"an amount without a currency is not money", []journal.Posting{debit(own, "opening", money.FromMinor(5, money.Currency{})), credit(journal.PaidOut, "", money.FromMinor(5, money.Currency{}))}, false},
		{"there is no third side", []journal.Posting{debit(own, "opening", cents(5)), {Account: journal.PaidOut, Side: 2, Amount: cents(5)}}, false},
		{"a sum that does not fit does not wrap into balance", []journal.Posting{
			debit(own, "a", cents(math.MaxInt64)), debit(own, "b", cents(math.MaxInt64)), debit(own, "c", cents(2))}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := journal.Next(journal.Head{}, alice, asked(1), "refunds.trigger", nil, tt.postings...)
			if (err == nil) != tt.ok {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				if _, err := journal.Verify(journal.Head{}, alice, e); err != nil {
					t.Fatal(err)
				}
				return
			}
			if e != (journal.Entry{}) {
				t.Fatalf("it was refused and still made: %+v", e)
			}
			// What can not be made can not be read back either.
			restored := journal.Restore(1, journal.Hash{}, journal.Hash{}, alice, asked(1), "refunds.trigger", nil, tt.postings)
			if _, err := journal.Verify(journal.Head{}, alice, restored); err == nil {
				t.Fatal("a store may hold it")
			}
		})
	}
}

// The form is fixed: anyone may recompute a chain that was written years ago.
func TestHashesKeepTheirForm(t *testing.T) {
	facts := []operation.Fact{{Name: "customer", Value: "CUST-00001"}, {Name: "reason", Value: "kaputt gebracht"}}
	first := must(journal.Next(journal.Head{}, alice, asked(1), "customers.open", nil,
		debit(journal.Captured, "", cents(500)), credit(own, "opening", cents(500))))
	second := must(journal.Next(first.Head(), alice, asked(2), "refunds.trigger", facts,
		debit(own, "opening", cents(120)), credit(journal.PaidOut, "", cents(120))))
	for _, tt := range []struct {
		name  string
		entry journal.Entry
		want  string
	}{
		{"the first entry", first, "22eb64c41e0fd282165aaa89f078c7373a3a84996e4e53b27892913b2eaa948a"},
		{"an entry that follows", second, "547e1e372d4e657c860807b23145047c3342344f525bbeec2c8d1efc859fe24e"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.entry.Hash().String(); got != tt.want {
				t.Fatalf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestBrokenNamesTheEntry(t *testing.T) {
	first := must(journal.Next(journal.Head{}, alice, asked(1), "a", nil))
	_, err := journal.Verify(first.Head(), alice, first)
	broken, ok := errors.AsType[*journal.Broken](err)
	if !ok || broken.Number != 2 || broken.Subject != alice || err.Error() != "entry 2 of account CUST-00001: its number is 1" {
		t.Fatalf("got %v", err)
	}
}

// histories draws the entries of one subject, at least one.
func histories() *rapid.Generator[[]journal.Entry] {
	text := rapid.StringN(0, 8, -1)
	return rapid.Custom(func(t *rapid.T) []journal.Entry {
		var entries []journal.Entry
		head := journal.Head{}
		for range rapid.IntRange(1, 5).Draw(t, "length") {
			op := asked(rapid.Byte().Draw(t, "id"))
			op.Principal, op.Via, op.Tool = text.Draw(t, "principal"), text.Draw(t, "via"), text.Draw(t, "tool")
			op.At = time.UnixMilli(rapid.Int64Range(-1e12, 4e12).Draw(t, "at")).UTC()
			var facts []operation.Fact
			for range rapid.IntRange(0, 3).Draw(t, "facts") {
				facts = append(facts, operation.Fact{Name: text.Draw(t, "fact"), Value: text.Draw(t, "value")})
			}
			var postings []journal.Posting
			for range rapid.IntRange(0, 2).Draw(t, "pairs") {
				m := money.FromMinor(rapid.Int64Range(1, 1e12).Draw(t, "minor"), rapid.SampledFrom([]money.Currency{usd, jpy}).Draw(t, "currency"))
				postings = append(postings, debit(own, text.Draw(t, "lot"), m), credit(journal.PaidOut, "", m))
			}
			e, err := journal.Next(head, alice, op, text.Draw(t, "command"), facts, postings...)
			if err != nil {
				t.Fatal(err)
			}
			entries, head = append(entries, e), e.Head()
		}
		return entries
	})
}

func verify(entries []journal.Entry) (journal.Head, error) {
	var head journal.Head
	for _, e := range entries {
		var err error
		if head, err = journal.Verify(head, alice, e); err != nil {
			return head, err
		}
	}
	return head, nil
}

// stored is an entry as a store holds it, each part open to change.
type stored struct {
	number         int64
	previous, hash journal.Hash
	subject        journal.Subject
	op             operation.Operation
	command        string
	facts          []operation.Fact
	postings       []journal.Posting
}

func store(e journal.Entry) *stored {
	return &stored{e.Number(), e.Previous(), e.Hash(), e.Subject(), e.Operation(), e.Command(), slices.Clone(e.Facts()), slices.Clone(e.Postings())}
}

func (s *stored) restore() journal.Entry {
	return journal.Restore(s.number, s.previous, s.hash, s.subject, s.op, s.command, s.facts, s.postings)
}

// bend changes one byte of s, or adds one, or takes one away.
func bend(t *rapid.T, s *string) {
	b := []byte(*s)
	at := rapid.IntRange(0, len(b)).Draw(t, "at")
	switch how := rapid.IntRange(0, 2).Draw(t, "how"); {
	case how == 0 || at == len(b):
		b = slices.Insert(b, at, rapid.Byte().Draw(t, "byte"))
	case how == 1:
		b = slices.Delete(b, at, at+1)
	default:
		b[at] ^= rapid.ByteRange(1, 255).Draw(t, "flip")
	}
	*s = string(b)
}

func flip(t *rapid.T, b []byte) {
	b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= rapid.ByteRange(1, 255).Draw(t, "flip")
}

func number(t *rapid.T, n *int64) {
	*n ^= 1 << rapid.IntRange(0, 63).Draw(t, "bit")
}

// changes are all the ways to change one part of what a store holds. Each
// reports whether there was anything to change.
var changes = map[string]func(*rapid.T, *stored) bool{
	"number":       func(t *rapid.T, s *stored) bool { number(t, &s.number); return true },
	"previous":     func(t *rapid.T, s *stored) bool { flip(t, s.previous[:]); return true },
	"hash":         func(t *rapid.T, s *stored) bool { flip(t, s.hash[:]); return true },
	"subject kind": func(t *rapid.T, s *stored) bool { bend(t, &s.subject.Kind); return true },
	"subject id":   func(t *rapid.T, s *stored) bool { bend(t, &s.subject.ID); return true },
	"operation id": func(t *rapid.T, s *stored) bool { flip(t, s.op.ID[:]); return true },
	"tenant": func(t *rapid.T, s *stored) bool {
		s.op.Tenant = must(access.ParseTenant(rapid.SampledFrom([]string{"acme2", "acm", "Acme"}).Draw(t, "tenant")))
		return true
	},
	"principal": func(t *rapid.T, s *stored) bool { bend(t, &s.op.Principal); return true },
	"via":       func(t *rapid.T, s *stored) bool { bend(t, &s.op.Via); return true },
	"tool":      func(t *rapid.T, s *stored) bool { bend(t, &s.op.Tool); return true },
	"key": func(t *rapid.T, s *stored) bool {
		s.op.Key = must(operation.ParseKey(rapid.SampledFrom([]string{"k2", "k", "k11", "K1"}).Draw(t, "key")))
		return true
	},
	"time": func(t *rapid.T, s *stored) bool {
		s.op.At = s.op.At.Add(time.Duration(rapid.SampledFrom([]int{-3_600_000, -1, 1, 86_400_000}).Draw(t, "ms")) * time.Millisecond)
		return true
	},
	"command": func(t *rapid.T, s *stored) bool { bend(t, &s.command); return true },
	"fact": func(t *rapid.T, s *stored) bool {
		if len(s.facts) == 0 {
			return false
		}
		f := &s.facts[rapid.IntRange(0, len(s.facts)-1).Draw(t, "which")]
		bend(t, rapid.SampledFrom([]*string{&f.Name, &f.Value}).Draw(t, "part"))
		return true
	},
	"a fact more": func(t *rapid.T, s *stored) bool { s.facts = append(s.facts, operation.Fact{}); return true },
	"a fact less": func(t *rapid.T, s *stored) bool {
		if len(s.facts) == 0 {
			return false
		}
		s.facts = s.facts[:len(s.facts)-1]
		return true
	},
	"posting's account": posting(func(t *rapid.T, p *journal.Posting) {
		a := string(p.Account)
		bend(t, &a)
		p.Account = journal.Account(a)
	}),
	"posting's lot":  posting(func(t *rapid.T, p *journal.Posting) { bend(t, &p.Lot) }),
	"posting's side": posting(func(t *rapid.T, p *journal.Posting) { p.Side ^= journal.Side(rapid.ByteRange(1, 255).Draw(t, "flip")) }),
	"posting's amount": posting(func(t *rapid.T, p *journal.Posting) {
		n := p.Amount.Minor()
		number(t, &n)
		p.Amount = money.FromMinor(n, p.Amount.Currency())
	}),
	"posting's currency": posting(func(t *rapid.T, p *journal.Posting) {
		p.Amount = money.FromMinor(p.Amount.Minor(), must(money.ParseCurrency("EUR")))
	}),
	// These keep the balance, so that only the hash can tell.
	"both sides' amount": pair(func(t *rapid.T, d, c *journal.Posting) {
		d.Amount = must(d.Amount.Add(money.FromMinor(1, d.Amount.Currency())))
		c.Amount = d.Amount
	}),
	"both sides' currency": pair(func(t *rapid.T, d, c *journal.Posting) {
		d.Amount = money.FromMinor(d.Amount.Minor(), must(money.ParseCurrency("EUR")))
		c.Amount = d.Amount
	}),
	"the direction": pair(func(t *rapid.T, d, c *journal.Posting) { d.Side, c.Side = c.Side, d.Side }),
	"the order":     pair(func(t *rapid.T, d, c *journal.Posting) { *d, *c = *c, *d }),
	"two postings more": func(t *rapid.T, s *stored) bool {
		s.postings = append(s.postings, debit(own, "x", cents(1)), credit(journal.PaidOut, "", cents(1)))
		return true
	},
	"two postings less": func(t *rapid.T, s *stored) bool {
		n := len(s.postings)
		s.postings = s.postings[:max(0, n-2)]
		return n > 0
	},
	"the account of a lot": pair(func(t *rapid.T, d, c *journal.Posting) {
		d.Account, d.Lot = journal.Refundable("CUST-00001opening"), ""
	}),
}

func posting(change func(*rapid.T, *journal.Posting)) func(*rapid.T, *stored) bool {
	return func(t *rapid.T, s *stored) bool {
		if len(s.postings) == 0 {
			return false
		}
		change(t, &s.postings[rapid.IntRange(0, len(s.postings)-1).Draw(t, "which")])
		return true
	}
}

func pair(change func(t *rapid.T, debit, credit *journal.Posting)) func(*rapid.T, *stored) bool {
	return func(t *rapid.T, s *stored) bool {
		if len(s.postings) == 0 {
			return false
		}
		change(t, &s.postings[0], &s.postings[1])
		return true
	}
}

func TestAnyChangeToAStoredEntryShows(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				entries := histories().Draw(t, "history")
				i := rapid.IntRange(0, len(entries)-1).Draw(t, "entry")
				held := store(entries[i])
				entries[i] = held.restore()
				if _, err := verify(entries); err != nil {
					t.Fatalf("unchanged: %v", err)
				}
				if !change(t, held) {
					t.Skip("nothing to change")
				}
				entries[i] = held.restore()
				_, err := verify(entries)
				if broken, ok := errors.AsType[*journal.Broken](err); !ok || broken.Number != int64(i+1) {
					t.Fatalf("entry %d was changed, found: %v", i+1, err)
				}
			})
		})
	}
}

// Who rewrites an entry and its hash must rewrite all that follow, and the head
// that the record keeps.
func TestARewrittenEntryChangesTheHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := histories().Draw(t, "history")
		last := entries[len(entries)-1].Head()
		i := rapid.IntRange(0, len(entries)-1).Draw(t, "entry")
		var before journal.Head
		if i > 0 {
			before = entries[i-1].Head()
		}
		forged := must(journal.Next(before, alice, entries[i].Operation(), entries[i].Command(), append(slices.Clone(entries[i].Facts()), operation.Fact{}), entries[i].Postings()...))
		entries[i] = forged
		if head, err := verify(entries); err == nil && head == last {
			t.Fatal("a rewritten entry goes unnoticed")
		}
	})
}

func TestAHistoryHasNoGapsAndOneOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := histories().Filter(func(e []journal.Entry) bool { return len(e) > 2 }).Draw(t, "history")
		i := rapid.IntRange(0, len(entries)-2).Draw(t, "entry")
		for name, changed := range map[string][]journal.Entry{
			"one entry is gone":       slices.Delete(slices.Clone(entries), i, i+1),
			"one entry stands twice":  slices.Insert(slices.Clone(entries), i, entries[i]),
			"two entries change over": slices.Concat(entries[:i], []journal.Entry{entries[i+1], entries[i]}, entries[i+2:]),
		} {
			if _, err := verify(changed); err == nil {
				t.Fatal(name)
			}
		}
		if _, err := journal.Verify(journal.Head{}, journal.Subject{Kind: "account", ID: "CUST-00002"}, entries[0]); err == nil {
			t.Fatal("it was taken for another subject's entry")
		}
	})
}

// No entry is told from one, and has a name all the same.
func TestNoEntry(t *testing.T) {
	var broken *journal.Broken
	if _, err := journal.Verify(journal.Head{}, alice, journal.Entry{}); !errors.As(err, &broken) || broken.Number != 1 {
		t.Errorf("got %v", err)
	}
	if got := (journal.Entry{}).String(); got != "no entry" {
		t.Errorf("got %q", got)
	}
	e, err := journal.Next(journal.Head{}, alice, asked(1), "test", nil)
	if want := fmt.Sprintf("entry 1 of account %s: test, hash %s", alice.ID, e.Hash()); err != nil || e.String() != want {
		t.Errorf("got %q, %v, want %q", e, err, want)
	}
}
