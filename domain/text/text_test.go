package text_test

import (
	"strings"
	"testing"

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
	} {
		if got, err := text.Parse(in, b); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("Parse(%q) = %q, %v; want %q", in, got, err, words)
		}
	}
}

func TestALineHoldsWhatAReaderSees(t *testing.T) {
	for in, want := range map[string]bool{
		"Acme Ltd": true, "": true, "ک\u200cب": true, "a\nb": false, "\u200bAcme": false, "a\u2028b": false, "a\u202eb": false, "a\xff": false,
	} {
		if text.IsLine(in) != want {
			t.Errorf("IsLine(%q) = %v", in, !want)
		}
	}
	if n := text.Visible("a\u200bb"); n != 2 {
		t.Errorf("%d visible characters", n)
	}
}
