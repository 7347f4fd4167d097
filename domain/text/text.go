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
	// Min bounds the visible characters; see [Visible].
	Min int
	// Max bounds the length; see [Length].
	Max int
	// MaxCodePoints bounds all code points, format characters too: zero-width
	// joiners are kept, since emoji and Persian need them, but they are no way to
	// smuggle a second text.
	MaxCodePoints int
}

// Parse trims Unicode white space, then checks the bounds and refuses what a
// reader can not see or would see in another order: control characters other
// than tab, line feed and carriage return, the bidirectional embeddings and
// overrides U+202A to U+202E, unpaired isolates U+2066 to U+2069 (Unicode
// Standard Annex #9), and the ignorable characters of plane 14, U+E0000 to
// U+E0FFF: the Tags block and the supplement of variation selectors. One of the
// supplement may stand right after a Han character, whose variant it selects;
// no variation selector may stand right after another, so that no row of them
// is a text of its own. Nothing is normalised. The words of an error follow the
// name of the text: "must …".
func Parse(s string, b Bounds) (string, error) {
	s = strings.TrimSpace(s)
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("must be valid UTF-8")
	}
	visible, length, all, isolates := 0, 0, 0, 0
	previous := ' '
	for _, r := range s {
		all++
		switch {
		case r < 0x7f && r >= ' ', r == '\t', r == '\n', r == '\r':
			visible++
			length++
			previous = r
			continue
		case unicode.IsControl(r):
			return "", fmt.Errorf("must not contain the control character %U", r)
		case 0x202a <= r && r <= 0x202e:
			return "", fmt.Errorf("must not contain the text direction character %U", r)
		case 0xe0000 <= r && r <= 0xe007f:
			return "", fmt.Errorf("must not contain the invisible tag character %U", r)
		case smuggles(previous, r):
			return "", fmt.Errorf("must not contain the invisible character %U where nothing is seen of it", r)
		case 0x2066 <= r && r <= 0x2068:
			isolates++
		case r == 0x2069:
			if isolates--; isolates < 0 {
				return "", fmt.Errorf("contains a text direction isolate that is not paired")
			}
		}
		if !ignorable(r) && !blank(r) {
			visible++
		}
		if !unicode.Is(unicode.Cf, r) {
			length++
		}
		previous = r
	}
	switch {
	case isolates != 0:
		return "", fmt.Errorf("contains a text direction isolate that is not paired")
	case visible < b.Min:
		return "", fmt.Errorf("must have at least %d visible characters after trimming, not %d", b.Min, visible)
	case length > b.Max:
		return "", fmt.Errorf("must have at most %d characters after trimming, not %d", b.Max, length)
	case all > b.MaxCodePoints:
		return "", fmt.Errorf("must have at most %d code points in all, not %d", b.MaxCodePoints, all)
	}
	return s, nil
}

// Length counts the code points of s that are not format characters (Unicode
// category Cf): what upper bounds bound.
func Length(s string) int {
	return count(s, func(r rune) bool { return !unicode.Is(unicode.Cf, r) })
}

// Visible counts the code points of s that a reader sees, the white space
// between words among them: neither ignorable, see [Seen], nor blank, as the
// Braille pattern without dots is.
func Visible(s string) int {
	return count(s, func(r rune) bool { return !ignorable(r) && !blank(r) })
}

// Written counts the letters, digits, punctuation marks and symbols of s that a
// reader sees: what it takes to say something. White space and combining marks
// are visible, and say nothing by themselves.
func Written(s string) int {
	return count(s, func(r rune) bool {
		return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !ignorable(r) && !blank(r)
	})
}

// Seen returns s without the ignorable characters: format characters and what
// else Unicode lets a display ignore (Default_Ignorable_Code_Point), such as
// variation selectors and the Hangul fillers.
func Seen(s string) string {
	return strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return r
	}, s)
}

func count(s string, counts func(rune) bool) int {
	n := 0
	for _, r := range s {
		if counts(r) {
			n++
		}
	}
	return n
}

// ignorable reports whether a display may show nothing for r, not even a space.
func ignorable(r rune) bool {
	return r >= 0x80 && (unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || inPlane14(r))
}

// inPlane14 reports whether r is in the range that Unicode keeps for ignorable
// characters, those of later versions too.
func inPlane14(r rune) bool { return 0xe0000 <= r && r <= 0xe0fff }

// blank reports whether r is a symbol without ink: the Braille pattern blank or
// the null notehead.
func blank(r rune) bool { return r == '\u2800' || r == '\U0001d159' }

// smuggles reports whether r, after previous, is an invisible character that
// changes nothing of what is seen: a row of such is a hidden text.
func smuggles(previous, r rune) bool {
	selects := unicode.Is(unicode.Variation_Selector, r)
	return selects && unicode.Is(unicode.Variation_Selector, previous) || inPlane14(r) && !(selects && unicode.Is(unicode.Han, previous))
}

// IsLine reports whether a reader sees what s holds: one line of valid UTF-8
// without control and format characters, and without the invisible characters
// that [Parse] refuses. The zero-width joiners that Persian and Indic names need
// are format characters too: one may stand after a letter.
func IsLine(s string) bool {
	previous := ' '
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		joins := (r == zeroWidthNonJoiner || r == zeroWidthJoiner) && unicode.In(previous, unicode.L, unicode.M)
		hidden := smuggles(previous, r)
		previous = r
		return hidden || !joins && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp))
	})
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)
