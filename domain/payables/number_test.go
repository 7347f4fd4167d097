package payables_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/payables"
)

// Each row is spellings of one number; numbers of two rows differ.
var spellings = [][]string{
	{"71-345", "0071-000345", "71/345", "71.345", "71 345", "71\u00a0345", "71\u2003345", "71_345", `71\345`, "71--345", "71 - 345", "-71-345-", "71-0345",
		"71\u2010345", "71\u2011345", "71\u2012345", "71\u2013345", "71\u2014345", "71\u2015345", "71\u2212345", "71\ufe58345", "71\ufe63345", "71\uff0d345", "71\u2e3a345", "71\u207b345", // dashes
		"71\u02d7345", "71\u2043345", "71\u2796345", "71\u2053345", "71\u30fb345", "71\uff65345", // what serves as one
		"71\u2044345", "71\u2215345", "71\uff0f345", "71\u29f8345", "71\u2216345", // slashes
		"71\uff0e345", "71\u00b7345", "71\u2024345", "71\u2027345", "71\u2022345", "71\u3002345", // dots
		"７１－３４５", "71-\u200b345", "7\u200b1-3\u200d4\u20605", "\ufeff71-345", "71-3\u00ad45", "7\ufe0f1-345", "7\u034f1-345", "٧١-٣٤٥", "٠٧١-٠٠٣٤٥", "७१/३४५", "𝟕𝟏-𝟑𝟒𝟓"},
	{"71345", "0071345", "７１３４５", "7\u200b1345"},
	{"7-1345", "7.1345"},
	{"3411", "003411", "０３４１１", "٠٣٤١١"},
	{"A3411", "a3411", "A03411", "A-3411", "a 3411", "Ａ３４１１", "a/003411", "A\u20093411"},
	{"3411A", "03411a", "3411-A"},
	{"A34B11", "a34b011", "A-34-B-11"},
	{"A3-411", "a03.0411"},
	{"10-0", "010-00", "10.000"},
	{"1-00", "01-0", "1/0"},
	{"100", "0100"},
	{"0", "00", "000"},
	{"1", "01"},
	{"10", "010"},
	{"O-1", "o1"}, // the letter
	{"0-1", "00-01"},
	{"I1", "i1"},
	{"INV-2026/0001", "inv 2026 1", "Inv.2026-1", "INV2026-01", "ＩＮＶ２０２６／０００１", "inv-\u200f2026-1"},
	{"INV-20260001", "inv20260001"},
	{"2026/INV/1", "2026inv1"},
	{"RE-Strasse-1", "re straße 1", "RE-STRASSE-01", "RE-STRAẞE-1"},
	{"é1", "É1", "e\u03011", "E\u03011", "e\u200b\u03011"},
	{"e1", "E-1"},
	{"ﬁ-7", "FI7", "fi-07"},
	{"Σ1", "σ1", "ς01"},
	{"№7", "No7", "no-7"},
	{"Ⅷ-1", "viii1", "VIII-01"},
	{"5", "#5", "# 5", "5#", "(5)", "5\u2800"},
	{"AB-2026-0071", "AB:2026:0071", "AB,2026,71", "AB#2026#0071", "(AB) 2026 71*", "AB+2026=71", "AB|2026~71"},
	{"請求書-12", "請求書12", "請求書/0012"},
	{"ク1", "ｸ1"}, // half width kana
	{"1,5", "01,05", "1.5", "1-5"},
	{"15"},
	{"R\u212a", "RK", "rk"}, // the sign of kelvin
	{"Ꭰ1", "ꭰ1"},
	{"\u1f88\u03021", "\u1f08\u0302\u03451", "\u1f80\u03021"},
	{"а1"}, // Cyrillic: another letter, though it looks like a Latin one
	{"a1", "A1", "A-01"},
	{"00A", "0a"},
	{"A00", "a0"},
	{"A"},
	{"AB", "a\u00adb"},
	{"A-B", "a.b", "a b"},
}

func TestSpellingsOfANumber(t *testing.T) {
	of := map[string]string{} // the first spelling by the normal form
	for _, row := range spellings {
		first := must(payables.ParseNumber(row[0]))
		if other, twice := of[first.Normal()]; twice {
			t.Errorf("%q is taken for %q", row[0], other)
		}
		of[first.Normal()] = row[0]
		for _, s := range row {
			n, err := payables.ParseNumber(s)
			if err != nil || n.String() != s {
				t.Errorf("ParseNumber(%q) = %q, %v", s, n, err)
			}
			if n.Normal() != first.Normal() {
				t.Errorf("%q is %q, but %q is %q", s, n.Normal(), row[0], first.Normal())
			}
		}
	}
}

func TestNormalForm(t *testing.T) {
	for in, want := range map[string]string{"0071-000345": "71-345", "10-0": "10-0", "1-00": "1-0", "A3411": "a-3411", "INV 2026/0001": "inv-2026-1", "٠٣": "3", "RE.": "re"} {
		if got := must(payables.ParseNumber(in)).Normal(); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestWhatIsNoNumber(t *testing.T) {
	for _, s := range []string{
		"", " ", "-", "./-", "#", "\u200b", "\u200b\u200d", "\u3164", "\u115f", "\u0301", "💶", " 1", "1 ", "\t1", "1\n", "1\n2", "1\u20282", "1\u00852", "1\x002", "1\xff",
		"1\u202e2", "1\u20672", "1\u2066x2", "1\U000e00412", strings.Repeat("1", payables.MaxNumber+1), strings.Repeat("é", payables.MaxNumber/2+1),
	} {
		if n, err := payables.ParseNumber(s); err == nil || n != (payables.Number{}) {
			t.Errorf("ParseNumber(%q) = %q, %v", s, n, err)
		}
	}
	for _, s := range []string{"1", "a", "é", strings.Repeat("1", payables.MaxNumber), strings.Repeat("é", payables.MaxNumber/2)} {
		if _, err := payables.ParseNumber(s); err != nil {
			t.Errorf("ParseNumber(%q): %v", s, err)
		}
	}
}

// Numbers, invoices and credit notes of two vendors have claims of their own.
func TestClaimsDoNotMix(t *testing.T) {
	a, b := must(payables.ParseNumber("A-1")), must(payables.ParseNumber("A-2"))
	refs := map[string]bool{}
	for _, v := range []payables.VendorID{acme, bolt} {
		for _, k := range []payables.DocumentKind{payables.Bill, payables.CreditNote} {
			for _, n := range []payables.Number{a, b} {
				ref := payables.ClaimRef(v, k, n)
				refs[ref.ID] = true
				if c := (payables.NumberClaim{Vendor: v, Document: k, Normal: n.Normal()}); c.Ref() != ref {
					t.Errorf("%v is not %v", c.Ref(), ref)
				}
			}
		}
	}
	if len(refs) != 8 {
		t.Errorf("8 claims have %d names", len(refs))
	}
	if payables.ClaimRef(acme, payables.Bill, a) != payables.ClaimRef(acme, payables.Bill, must(payables.ParseNumber("a 001"))) {
		t.Error("two spellings have two claims")
	}
}

// numbered checks what every number is, whatever it was made from.
func numbered(t rapid.TB, s string) {
	t.Helper()
	n, err := payables.ParseNumber(s)
	if err != nil {
		if n != (payables.Number{}) {
			t.Fatalf("%q was refused and kept as %q", s, n)
		}
		return
	}
	normal := n.Normal()
	if n.String() != s || !utf8.ValidString(normal) || normal == "" || strings.ToLower(normal) == "" {
		t.Fatalf("%q was kept as %q, %q", s, n, normal)
	}
	groups := strings.Split(normal, "-")
	for _, g := range groups {
		digits := strings.Trim(g, "0123456789") == ""
		if g == "" || digits && len(g) > 1 && g[0] == '0' || !digits && strings.ContainsFunc(g, unicode.IsDigit) {
			t.Fatalf("%q is %q, with the group %q", s, normal, g)
		}
	}
	if strings.ContainsFunc(normal, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		t.Fatalf("%q is %q", s, normal)
	}
	// The normal form is its own, and so is that of other spellings of it.
	same := func(how, again string) {
		if len(again) > payables.MaxNumber {
			return
		}
		if m, err := payables.ParseNumber(again); err != nil || m.Normal() != normal {
			t.Fatalf("%q is %q, but %s %q is %q, %v", s, normal, how, again, m.Normal(), err)
		}
	}
	same("its normal form", normal)
	if !strings.ContainsRune(norm.NFD.String(s), '\u0345') { // a mark that folds to a letter: what comes first matters
		same("folded", cases.Fold().String(norm.NFD.String(s)))
	}
	same("composed", norm.NFC.String(s))
	same("decomposed", norm.NFD.String(s))
	same("in compatibility form", strings.TrimSpace(norm.NFKC.String(s)))
	for i, r := range s {
		if 0 < i && r != utf8.RuneError {
			same("with an invisible space", s[:i]+"\u200b"+s[i:])
		}
	}
	same("with a joiner at the end", s+"\u2060")
	same("with a dash around", "-"+s+"-")
	for i, g := range groups {
		if strings.Trim(g, "0123456789") == "" {
			padded := append(append(groups[:i:i], "000"+g), groups[i+1:]...)
			same("padded", strings.Join(padded, "/"))
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, row := range spellings {
		for _, s := range row {
			f.Add(s)
		}
	}
	for _, s := range []string{"", "\ufdfa1", "1\u0301", "\u0345a", "\u1e9e", "İ1", "ﷺ", "a\u200b\u0301", "ᄀ\u115fᅡ", "\u00b41", "½", "①", "1\u20e3", "\U0001f1e6"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { numbered(t, s) })
}

func TestAnyNumberHasOneNormalForm(t *testing.T) {
	odd := rapid.SampledFrom([]rune("0019aAzÉé-–—/. _\u200b\u200d\u00ad\ufe0f\u0301\u0345\u1160\u3164ßẞſKİıΣς٠٣०①½ﬁﷺ㎏가가#,+\u202e"))
	rapid.Check(t, func(t *rapid.T) {
		numbered(t, string(rapid.SliceOfN(rapid.OneOf(odd, odd, rapid.Rune()), 1, 12).Draw(t, "runes")))
	})
}

// Every character, between two others, of the many that are alike one in a
// hundred: the normal form is stable, and every digit of any script is a figure.
func TestEveryCharacter(t *testing.T) {
	figures := 0
	for r := rune(1); r <= unicode.MaxRune; r++ {
		alike := 0x3400 <= r && r < 0xa000 || 0xac00 <= r && r < 0xf900 || 0x17000 <= r && r < 0x18d00 || 0x1fc00 <= r && r < 0xe0000 || 0xe0200 <= r
		if alike && r%101 > 0 {
			continue
		}
		n, err := payables.ParseNumber("a" + string(r) + "1")
		if err != nil {
			continue // a control character, a surrogate, a direction
		}
		if again, err := payables.ParseNumber(n.Normal()); err != nil || again.Normal() != n.Normal() {
			t.Fatalf("%q is %q, and that is %q, %v", n, n.Normal(), again.Normal(), err)
		}
		if unicode.IsDigit(r) {
			if strings.Trim(n.Normal(), "a-0123456789") != "" {
				t.Fatalf("%q is %q", n, n.Normal())
			}
			figures++
		}
	}
	if figures < 600 {
		t.Errorf("%d digits were tried", figures)
	}
}

func TestClaimBefore(t *testing.T) {
	for _, tt := range []struct {
		claims []string
		id     string
		first  string // or none
	}{
		{nil, "INV-1001", ""},
		{[]string{"INV-1001"}, "INV-1001", ""},
		{[]string{"INV-1001", "INV-1002"}, "INV-1002", "INV-1001"},
		{[]string{"INV-1001 rejected", "INV-1002"}, "INV-1002", ""},
		{[]string{"INV-1001 rejected", "INV-1002", "INV-1003"}, "INV-1003", "INV-1002"},
		{[]string{"INV-1001", "INV-1002 rejected"}, "INV-1002", "INV-1001"},
		{[]string{"INV-1001", "INV-1002"}, "INV-1009", "INV-1001"}, // not entered yet
	} {
		c := claim(tt.claims...)
		before := slices.Clone(c.Claims)
		first, dup := c.Before(invoiceID(tt.id))
		if first.String() != tt.first || dup != (tt.first != "") || !slices.Equal(c.Claims, before) {
			t.Errorf("%q before %s: %q, %t", tt.claims, tt.id, first, dup)
		}
	}
}
