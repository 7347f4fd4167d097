package refunds_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/refunds"
)

// One customer, any sequence of opening, captures into lots and refunds: the
// books balance after each, and a refusal changes nothing.
func TestNoSequenceOverdrawsOrUnbalances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]money.Currency{currency("JPY"), currency("USD"), currency("KWD")}).Draw(t, "currency")
		most := amount("1000000", c).Minor()
		minor := rapid.OneOf(rapid.Int64Range(-3, 300), rapid.Int64Range(0, 2_000_000_000), rapid.Int64())
		var (
			record  ledger.Record // nil until the account is opened
			entries []journal.Entry
			op      = op
		)
		state := func() customers.Account {
			a, _ := record.(customers.Account)
			return a
		}
		run := func(t *rapid.T, cmd ledger.Command) error {
			op.ID[15]++
			op.At = op.At.Add(time.Millisecond)
			before := state()
			view := ledger.NewView(op, 1)
			view.Put(alice.Ref(), record)
			change, err := ledger.Decide(cmd, view)
			if err != nil {
				if fault.CodeOf(err) == fault.Internal {
					t.Fatalf("%s: %v", cmd.Name(), err)
				}
				return err
			}
			if len(change.Put) != 1 || len(change.Entries) != 1 {
				t.Fatalf("%s changed %d records with %d entries", cmd.Name(), len(change.Put), len(change.Entries))
			}
			record, entries = change.Put[0], append(entries, change.Entries[0])
			if r, ok := change.Answer.(refunds.Refund); ok {
				if left, err := before.Balance().Sub(r.Amount); err != nil || left != r.Remaining || r.Remaining != state().Balance() {
					t.Fatalf("%s less %s leaves %s on the refund and %s on the account", before.Balance(), r.Amount, r.Remaining, state().Balance())
				}
				if r.Amount.Sign() <= 0 || r.ID != op.ID || r.ProcessedAt != op.At {
					t.Fatalf("%+v", r)
				}
			}
			return nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				n := minor.Draw(t, "opening")
				err := run(t, customers.Open{
					ID: alice, Profile: customers.Profile{Name: "Alice", Email: "a@example.com"}, CreatedAt: now,
					Status:  rapid.SampledFrom([]customers.Status{customers.Active, customers.Active, customers.Active, customers.Suspended}).Draw(t, "status"),
					Opening: money.FromMinor(n, c),
				})
				if n < 0 && err == nil {
					t.Fatal("a debt was opened")
				}
			},
			"capture": func(t *rapid.T) {
				a := state()
				n := minor.Draw(t, "captured")
				after, e, err := a.Post(op, "test.capture", nil,
					journal.Posting{Account: journal.Captured, Side: journal.Debit, Amount: money.FromMinor(n, c)},
					journal.Posting{Account: journal.Refundable(alice.String()), Lot: rapid.SampledFrom([]string{"card", "gift", customers.OpeningLot}).Draw(t, "lot"), Side: journal.Credit, Amount: money.FromMinor(n, c)})
				if record == nil {
					return
				}
				fits := n > 0 && a.Balance().Minor() <= math.MaxInt64-n
				if (err == nil) != fits {
					t.Fatalf("%d on top of %s: %v", n, a.Balance(), err)
				}
				if err == nil {
					record, entries = after, append(entries, e)
				}
			},
			"refund": func(t *rapid.T) {
				a := state()
				asked := money.FromMinor(rapid.OneOf(minor, rapid.Just(a.Balance().Minor())).Draw(t, "minor"), rapid.SampledFrom([]money.Currency{c, c, c, currency("EUR")}).Draw(t, "asked in"))
				err := run(t, refunds.Trigger{Request: refunds.Request{Customer: alice, Amount: asked, Reason: broken}})
				allowed := record != nil && a.Status == customers.Active && asked.Currency() == c && asked.Sign() > 0 &&
					asked.Minor() <= min(a.Balance().Minor(), most)
				if (err == nil) != allowed {
					t.Fatalf("%s of %s: %v", asked, a.Balance(), err)
				}
			},
			"": func(t *rapid.T) {
				if record == nil {
					return
				}
				prove(t, state(), entries)
			},
		})
	})
}

// prove adds the entries up, by the postings alone.
func prove(t rapid.TB, a customers.Account, entries []journal.Entry) {
	t.Helper()
	lots := map[string]int64{}
	books := map[journal.Account]int64{}
	var head journal.Head
	for _, e := range entries {
		var err error
		if head, err = journal.Verify(head, journal.Subject{Kind: "account", ID: a.ID.String()}, e); err != nil {
			t.Fatal(err)
		}
		for _, p := range e.Postings() {
			n := p.Amount.Minor()
			if p.Side == journal.Debit {
				n = -n
			}
			books[p.Account] += n // wraps alike on both sides, so the sum is still zero
			if p.Account == journal.Refundable(a.ID.String()) {
				lots[p.Lot] += n
			}
		}
	}
	var sum, all int64
	for _, l := range a.Lots {
		if l.Balance.Sign() < 0 || lots[l.Name] != l.Balance.Minor() || l.Balance.Currency() != a.Currency {
			t.Fatalf("the lot %s is %s, its entries say %d", l.Name, l.Balance, lots[l.Name])
		}
		delete(lots, l.Name)
		sum += l.Balance.Minor()
	}
	for _, n := range books {
		all += n
	}
	if len(lots) != 0 || a.Balance() != money.FromMinor(sum, a.Currency) || sum != books[journal.Refundable(a.ID.String())] || all != 0 || head != a.Head {
		t.Fatalf("%+v is not what the entries say: %v", a, books)
	}
}

// kept checks what every accepted reason is, whatever it was made from.
func kept(text string) error {
	r, err := refunds.ParseReason(text)
	if err != nil {
		if r != (refunds.Reason{}) {
			return fmt.Errorf("%q was refused and kept as %q", text, r)
		}
		return nil
	}
	s := r.String()
	i := strings.Index(text, s)
	switch {
	case i < 0:
		return fmt.Errorf("%q was kept as %q", text, s)
	case strings.TrimSpace(text[:i])+strings.TrimSpace(text[i+len(s):]) != "":
		return fmt.Errorf("%q was cut to %q", text, s)
	case strings.TrimSpace(s) != s:
		return fmt.Errorf("%q was kept with the space around it", s)
	case !utf8.ValidString(s):
		return fmt.Errorf("%q is no text", s)
	}
	visible, length, all, open := 0, 0, 0, 0
	var before rune
	for _, c := range s {
		all++
		if !unicode.Is(unicode.Cf, c) {
			length++
		}
		if !hidden(c) {
			visible++
		}
		last := before
		before = c
		switch {
		case unicode.Is(unicode.Cc, c) && !strings.ContainsRune("\t\n\r", c),
			unicode.Is(bidi, c), unicode.Is(plane14, c) && !(c >= 0xe0100 && c <= 0xe01ef && unicode.Is(unicode.Han, last)):
			return fmt.Errorf("%q was kept with %U", s, c)
		case unicode.Is(isolates, c):
			open++
		case c == '\u2069':
			if open--; open < 0 {
				return fmt.Errorf("%q closes what it did not open", s)
			}
		}
	}
	if visible < 10 || length > 500 || all > 2000 || open != 0 {
		return fmt.Errorf("%q was kept with %d visible characters, %d in all, %d isolates open", s, visible, all, open)
	}
	if again, err := refunds.ParseReason(s); again != r || err != nil {
		return fmt.Errorf("%q was kept as %q, which reads back as %q, %v", text, s, again, err)
	}
	return nil
}

var (
	bidi     = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x202a, Hi: 0x202e, Stride: 1}}}
	isolates = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x2066, Hi: 0x2068, Stride: 1}}}
	plane14  = &unicode.RangeTable{R32: []unicode.Range32{{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}}}
)

// hidden reports whether a reader sees nothing of c.
func hidden(c rune) bool {
	return c == '\u2800' || c == '\U0001d159' || unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

func TestAReasonIsTrimmedAndNothingElse(t *testing.T) {
	odd := rapid.SampledFrom([]rune("ab 9é한😀👩\u200d\u200c\u200b\ufeff\u00ad\u00a0\u3000\t\n\r\v\u0085\x00\u001b\u202a\u202e\u2066\u2067\u2068\u2069\U000e0041\u0301\ufe0f\u2800\u3164葛\U000e0100"))
	common := rapid.SampledFrom([]rune("abcdefgh é한😀"))
	rapid.Check(t, func(t *rapid.T) {
		runes := rapid.SliceOfN(rapid.OneOf(common, common, common, odd, rapid.Rune()), 0, 40).Draw(t, "runes")
		text := string(runes)
		if rapid.Bool().Draw(t, "long") {
			text += strings.Repeat(string(common.Draw(t, "filler")), rapid.IntRange(440, 520).Draw(t, "length"))
		}
		if err := kept(text); err != nil {
			t.Fatal(err)
		}
	})
}

// Any text of 10 to 500 letters, marks, numbers and signs that are seen is accepted.
func TestAnOrdinaryReasonIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen := rapid.RuneFrom(nil, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S).Filter(func(c rune) bool { return !hidden(c) })
		text := rapid.StringOfN(seen, 10, 500, -1).Draw(t, "text")
		r, err := refunds.ParseReason(" " + text + "\n")
		if err != nil || r.String() != text {
			t.Fatalf("%q: %q, %v", text, r, err)
		}
	})
}

func FuzzParseReason(f *testing.F) {
	for _, s := range []string{
		"", "Arrived broken.", "  padded reason \n", strings.Repeat("\u200b", 12), "ok" + strings.Repeat("\U000e0041", 20), "refund \u202E00.01", "a\x00bcdefghij", "a\u0085bcdefghij",
		"kaputt 👩‍👩‍👧 gebracht", "abc \u2067שלום\u2069 def ghi", "abc \u2069 def ghi", strings.Repeat("x", 501), "0123456789" + strings.Repeat("\u200d", 1991), "Arrived broken\xff.",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := kept(s); err != nil {
			t.Fatal(err)
		}
		// What is accepted alone is accepted after a sentence.
		if _, err := refunds.ParseReason(s); err == nil && len(s) < 400 {
			if _, err := refunds.ParseReason("Arrived broken. " + s); err != nil {
				t.Fatalf("%q is refused after a sentence: %v", s, err)
			}
		}
	})
}
