package text_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/refundledger/refundledger/domain/text"
)

func TestParseKeepsWhatAReaderSees(t *testing.T) {
	b := text.Bounds{Min: 3, Max: 5, MaxCodePoints: 8}
	for in, want := range map[string]string{
		"  abc\n":          "abc",
		"a\tb\u200dc":      "a\tb\u200dc",
		"\u2066abc\u2069":  "\u2066abc\u2069",
		"é\u0301xyz"[:6]:   "é\u0301xy",
		"\u3000abc\u00a0 ": "abc",
		"a\u2764\ufe0fb":   "a\u2764\ufe0fb",  // an emoji
		"葛\U000e0100城市":    "葛\U000e0100城市",   // the form of a Han character
		"ab1\ufe0f\u20e3":  "ab1\ufe0f\u20e3", // a keycap
		"\u1820\u180bab":   "\u1820\u180bab",  // a Mongolian letter
		"abc\u115f\u1161":  "abc\u115f\u1161", // a vowel of Hangul alone
		"a\u2800\u2800bc":  "a\u2800\u2800bc", // counted towards no minimum, but kept
	} {
		if got, err := text.Parse(in, b); err != nil || got != want {
			t.Errorf("Parse(%q) = %q, %v", in, got, err)
		}
	}
	for in, words := range map[string]string{
		"ab":                                "at least 3 visible characters after trimming, not 2",
		"a\u200b\u200bb":                    "at least 3",
		"abcdef":                            "at most 5",
		"abc" + strings.Repeat("\u200d", 6): "at most 8 code points",
		"ab\x00c":                           "control character U+0000",
		"ab\u202ec":                         "text direction character U+202E",
		"ab\u2067c":                         "not paired",
		"abc\u2069":                         "not paired",
		"abc\U000e0041":                     "tag character",
		"abc\xff":                           "UTF-8",
		"abc\U000e0100":                     "invisible character U+E0100",
		"葛\U000e0100\U000e0101城市":           "invisible character U+E0101",
		"abc\U000e01f0":                     "invisible character U+E01F0", // not assigned, and ignored all the same
		"abc\ufe0f\ufe00":                   "invisible character U+FE00",
		"a\u2800\u2800\u2800":               "at least 3 visible characters after trimming, not 1",
		"a\u3164\u115f\u1160":               "at least 3 visible characters after trimming, not 1",
		"a\uffa0\u034fb":                    "at least 3 visible characters after trimming, not 2",
		"a\ufe0fb\ufe0f":                    "at least 3 visible characters after trimming, not 2",
		"abcd\ufe0fe\ufe0f":                 "at most 5 characters after trimming, not 7",
	} {
		if got, err := text.Parse(in, b); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("Parse(%q) = %q, %v; want %q", in, got, err, words)
		}
	}
}

// Both ends of each bound, and every character at the edge of a range.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		in string
		b  text.Bounds
		ok bool
	}{
		{"", text.Bounds{Max: 1, MaxCodePoints: 1}, true},
		{" \n", text.Bounds{Max: 1, MaxCodePoints: 1}, true},
		{"", text.Bounds{Min: 1, Max: 1, MaxCodePoints: 1}, false},
		{"é", text.Bounds{Min: 1, Max: 1, MaxCodePoints: 1}, true},
		{"éa", text.Bounds{Min: 1, Max: 1, MaxCodePoints: 9}, false},
		{"\u200b", text.Bounds{Min: 1, Max: 1, MaxCodePoints: 9}, false},
		{"a\u200b", text.Bounds{Min: 1, Max: 1, MaxCodePoints: 2}, true},
		{"a\u200b\u200b", text.Bounds{Min: 1, Max: 1, MaxCodePoints: 2}, false},
		{"a b", text.Bounds{Min: 3, Max: 3, MaxCodePoints: 3}, true}, // a space between is seen
		{"a\r\n\tb", text.Bounds{Min: 5, Max: 5, MaxCodePoints: 5}, true},
		{"👩\u200d👧", text.Bounds{Min: 2, Max: 2, MaxCodePoints: 3}, true},
	} {
		if got, err := text.Parse(tt.in, tt.b); (err == nil) != tt.ok || err != nil && got != "" {
			t.Errorf("Parse(%q, %+v) = %q, %v", tt.in, tt.b, got, err)
		}
	}
}

func TestParseByCharacter(t *testing.T) {
	refused := func(r rune) bool {
		switch {
		case r == '\t', r == '\n', r == '\r':
			return false
		case r < ' ', 0x7f <= r && r <= 0x9f, 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069, 0xe0000 <= r && r <= 0xe0fff:
			return true
		}
		return false
	}
	b := text.Bounds{Min: 2, Max: 3, MaxCodePoints: 3}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		in := "a" + string(r) + "b"
		got, err := text.Parse(in, b)
		if (err != nil) != refused(r) || err == nil && got != in {
			t.Fatalf("Parse(%q) = %q, %v", in, got, err)
		}
	}
}

func TestIsolatesArePaired(t *testing.T) {
	b := text.Bounds{Min: 1, Max: 9, MaxCodePoints: 20}
	for in, ok := range map[string]bool{
		"\u2066a\u2069": true, "\u2067a\u2068b\u2069c\u2069": true, "a\u2066\u2069": true, "\u2066a\u2069\u2066b\u2069": true,
		"\u2069a\u2066": false, "\u2066a": false, "a\u2069": false, "\u2066\u2067a\u2069": false, "\u2066a\u2069\u2069": false,
	} {
		if _, err := text.Parse(in, b); (err == nil) != ok {
			t.Errorf("Parse(%q): %v", in, err)
		}
	}
}

func TestALineHoldsWhatAReaderSees(t *testing.T) {
	for in, want := range map[string]bool{
		"Acme Ltd": true, "": true, "ک\u200cب": true, "a\nb": false, "\u200bAcme": false, "a\u2028b": false, "a\u2029b": false, "a\u202eb": false, "a\xff": false,
		"a\tb": false, "a\rb": false, "a\x7f": false, "a\u0085b": false, "\u200cک": false, "1\u200c2": false, "क\u094d\u200dष": true, // a joiner after a mark
		"a\u200d\u200d": false, "a\u00adb": false, "a\ufeffb": false, "a\U000e0041": false, "Zoë & Söhne": true, "株式会社": true, "👩\u200d👧": false,
		"葛\U000e0100城": true, "Acme\U000e0100": false, "葛\U000e0100\U000e0101": false, "a\U000e01f0": false, "\u2764\ufe0f": true, "\u2764\ufe0f\ufe0e": false,
	} {
		if text.IsLine(in) != want {
			t.Errorf("IsLine(%q) = %v", in, !want)
		}
	}
}

// Each count, and what a display may ignore.
func TestCounts(t *testing.T) {
	for _, tt := range []struct {
		in                       string
		length, visible, written int
	}{
		{"", 0, 0, 0},
		{"a\u200bb", 2, 2, 2},
		{"é", 1, 1, 1},
		{"e\u0301", 2, 2, 1},
		{"a b\n", 4, 4, 2},
		{"\u2066\u2069\u00ad", 0, 0, 0},
		{"👩\u200d👧", 2, 2, 2},
		{"\u2764\ufe0f", 2, 1, 1},
		{"葛\U000e0100", 2, 1, 1},
		{"\u2800\u2800", 2, 0, 0},
		{"\u3164\u115f\u1160\uffa0\u034f\u17b4", 6, 0, 0},
		{"\u3000\u00a0", 2, 2, 0},
		{"a\n\n\n\n\n\n\n\nb", 10, 10, 2},
		{"€5, 100 %.", 10, 10, 8},
	} {
		if l, v, w := text.Length(tt.in), text.Visible(tt.in), text.Written(tt.in); l != tt.length || v != tt.visible || w != tt.written {
			t.Errorf("%q has the length %d, %d visible and %d written characters", tt.in, l, v, w)
		}
	}
	for in, want := range map[string]string{"a b\n": "a b\n", "7\ufe0f1\u200b-\u34f3\u034f\u3164": "71-\u34f3", "\u2800": "\u2800", "a\U000e0100\U000e01f0": "a"} {
		if got := text.Seen(in); got != want {
			t.Errorf("of %q is seen %q", in, got)
		}
	}
}

// What is kept is kept as it is, whatever it was made from.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", " a ", "a\u200bb", "\u2066a\u2069", "\u2069", "a\x00", "a\xff", "\u00a0a\u3000", "a\U000e0041", "葛\U000e0100", "\u2764\ufe0f\ufe0f", "\u2800\u3164"} {
		f.Add(s)
	}
	b := text.Bounds{Min: 1, Max: 20, MaxCodePoints: 40}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := text.Parse(s, b)
		if err != nil {
			if got != "" {
				t.Fatalf("%q was refused and kept as %q", s, got)
			}
			return
		}
		if again, err := text.Parse(got, b); again != got || err != nil || strings.TrimSpace(s) != got {
			t.Fatalf("%q was kept as %q, which reads back as %q, %v", s, got, again, err)
		}
		if n := text.Visible(got); n < b.Min || text.Length(got) > b.Max || utf8.RuneCountInString(got) > b.MaxCodePoints {
			t.Fatalf("%q has %d visible characters", got, n)
		}
	})
}
