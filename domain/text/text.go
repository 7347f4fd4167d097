// Package text holds the rules of free text that people and models write: what
// is kept is what a reader sees, in the order in which a reader sees it.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a text.
type Bounds struct {
	// Min and Max bound the visible characters: code points that are not format
	// characters (Unicode category Cf).
	Min, Max int
	// MaxCodePoints bounds all code points, format characters too: zero-width
	// joiners are kept, since emoji and Persian need them, but they are no way to
	// smuggle a second text.
	MaxCodePoints int
}

// Parse trims Unicode white space, then checks the bounds and refuses what a
// reader can not see or would see in another order: control characters other
// than tab, line feed and carriage return, the bidirectional embeddings and
// overrides U+202A to U+202E, unpaired isolates U+2066 to U+2069 (Unicode
// Standard Annex #9) and the Tags block U+E0000 to U+E007F. Nothing is
// normalised. The words of an error follow the name of the text: "must …".
func Parse(s string, b Bounds) (string, error) {
	s = strings.TrimSpace(s)
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("must be valid UTF-8")
	}
	visible, all, isolates := 0, 0, 0
	for _, r := range s {
		all++
		switch {
		case r < 0x7f && r >= ' ':
			visible++
			continue
		case r == '\t' || r == '\n' || r == '\r':
			visible++
			continue
		case unicode.IsControl(r):
			return "", fmt.Errorf("must not contain the control character %U", r)
		case 0x202a <= r && r <= 0x202e:
			return "", fmt.Errorf("must not contain the text direction character %U", r)
		case 0xe0000 <= r && r <= 0xe007f:
			return "", fmt.Errorf("must not contain the invisible tag character %U", r)
		case 0x2066 <= r && r <= 0x2068:
			isolates++
		case r == 0x2069:
			if isolates--; isolates < 0 {
				return "", fmt.Errorf("contains a text direction isolate that is not paired")
			}
		}
		if !unicode.Is(unicode.Cf, r) {
			visible++
		}
	}
	switch {
	case isolates != 0:
		return "", fmt.Errorf("contains a text direction isolate that is not paired")
	case visible < b.Min:
		return "", fmt.Errorf("must have at least %d visible characters after trimming, not %d", b.Min, visible)
	case visible > b.Max:
		return "", fmt.Errorf("must have at most %d characters after trimming, not %d", b.Max, visible)
	case all > b.MaxCodePoints:
		return "", fmt.Errorf("must have at most %d code points in all, not %d", b.MaxCodePoints, all)
	}
	return s, nil
}

// Visible counts the visible characters of s.
func Visible(s string) int {
	n := 0
	for _, r := range s {
		if !unicode.Is(unicode.Cf, r) {
			n++
		}
	}
	return n
}

// IsLine reports whether a reader sees what s holds: one line of valid UTF-8
// without control and format characters. The zero-width joiners that Persian
// and Indic names need are format characters too: one may stand after a letter.
func IsLine(s string) bool {
	previous := ' '
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		joins := (r == zeroWidthNonJoiner || r == zeroWidthJoiner) && unicode.In(previous, unicode.L, unicode.M)
		previous = r
		return !joins && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp))
	})
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)
