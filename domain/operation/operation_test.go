package operation_test

import (
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/operation"
)

func TestParseKey(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		ok   bool
	}{
		{"one character", "k", true},
		{"letters, digits, underscore and hyphen", "Order_7-refund-1", true},
		{"eighty characters", strings.Repeat("k", 80), true},
		{"eighty-one are too many", strings.Repeat("k", 81), false},
		{"nothing is no key", "", false},
		{"a space", "a b", false},
		{"a space around it", " a", false},
		{"a line end after it", "a\n", false},
		{"a slash, which parts a principal from its key", "a/b", false},
		{"a NUL", "a\x00", false},
		{"a letter that is not ASCII", "ké", false},
		{"a Kelvin sign is no K", "\u212aey", false},
		{"bytes that are no text", "\xff", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, err := operation.ParseKey(tt.text)
			if (err == nil) != tt.ok || tt.ok && k.String() != tt.text || !tt.ok && k != (operation.Key{}) {
				t.Fatalf("%q gave %q, %v", tt.text, k, err)
			}
		})
	}
}

func TestParseID(t *testing.T) {
	const canonical = "0d9a5b1e-3c52-4f1b-9d0f-6a7b8c9d0e1f"
	for _, tt := range []struct {
		name string
		text string
		ok   bool
	}{
		{"the canonical form", canonical, true},
		{"upper case is another text", strings.ToUpper(canonical), false},
		{"without hyphens", strings.ReplaceAll(canonical, "-", ""), false},
		{"in braces", "{" + canonical + "}", false},
		{"as a URN", "urn:uuid:" + canonical, false},
		{"a hyphen out of place", "0d9a5b1e3-c52-4f1b-9d0f-6a7b8c9d0e1f", false},
		{"a digit short", canonical[:35], false},
		{"a digit too many", canonical + "0", false},
		{"no digit", "0d9a5b1e-3c52-4f1b-9d0f-6a7b8c9d0e1g", false},
		{"nothing", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, err := operation.ParseID(tt.text)
			if (err == nil) != tt.ok || tt.ok && id.String() != tt.text || !tt.ok && id != (operation.ID{}) {
				t.Fatalf("%q gave %s, %v", tt.text, id, err)
			}
		})
	}
}

func TestFingerprintOf(t *testing.T) {
	facts := func(texts ...string) (f []operation.Fact) {
		for i := 0; i < len(texts); i += 2 {
			f = append(f, operation.Fact{Name: texts[i], Value: texts[i+1]})
		}
		return f
	}
	first := operation.FingerprintOf("refund", facts("a", "1", "b", "2"))
	for _, tt := range []struct {
		name    string
		command string
		facts   []operation.Fact
	}{
		{"another command", "refunds", facts("a", "1", "b", "2")},
		{"another value", "refund", facts("a", "1", "b", "3")},
		{"another field", "refund", facts("a", "1", "c", "2")},
		{"values changed over", "refund", facts("a", "2", "b", "1")},
		{"another order", "refund", facts("b", "2", "a", "1")},
		{"a field less", "refund", facts("a", "1")},
		{"an empty field more", "refund", facts("a", "1", "b", "2", "", "")},
		{"a letter moved from a value to the next name", "refund", facts("a", "", "1b", "2")},
		{"a letter moved from the command to a name", "refun", facts("da", "1", "b", "2")},
		{"one fact that spells two", "refund", facts("a", "1\x00\x00\x00\x01b\x00\x00\x00\x012")},
		{"a space", "refund", facts("a", "1", "b", "2 ")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if operation.FingerprintOf(tt.command, tt.facts) == first {
				t.Fatal("it has the fingerprint of another request")
			}
		})
	}
	if operation.FingerprintOf("refund", facts("a", "1", "b", "2")) != first {
		t.Error("the same request has two fingerprints")
	}
}

// The form is fixed: keys that are stored were bound by it.
func TestFingerprintsKeepTheirForm(t *testing.T) {
	f := operation.FingerprintOf("refunds.trigger", []operation.Fact{{Name: "customer", Value: "CUST-00001"}, {Name: "reason", Value: "kaputt 👩‍👩‍👧"}})
	// printf '\0\0\0\17refunds.trigger\0\0\0\10customer\0\0\0\12CUST-00001\0\0\0\6reason\0\0\0\31kaputt 👩‍👩‍👧' | sha256sum
	const want = "b28a44591845035264ed0d8ef576a7708109bc4c5e873f20af7b1c1819f85e0a"
	if got := hex.EncodeToString(f[:]); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// texts draws a request as the list of its texts: the command, then a name and
// a value for each fact. Few letters, lengths among them, so that texts run into
// each other.
func texts() *rapid.Generator[[]string] {
	text := rapid.OneOf(rapid.StringOfN(rapid.RuneFrom([]rune{'a', 'b', 0, 1}), 0, 6, -1), rapid.String())
	return rapid.Custom(func(t *rapid.T) []string {
		facts := rapid.IntRange(0, 3).Draw(t, "facts")
		return rapid.SliceOfN(text, 1+2*facts, 1+2*facts).Draw(t, "texts")
	})
}

func fingerprint(list []string) operation.Fingerprint {
	var facts []operation.Fact
	for i := 1; i+1 < len(list); i += 2 {
		facts = append(facts, operation.Fact{Name: list[i], Value: list[i+1]})
	}
	return operation.FingerprintOf(list[0], facts)
}

func encode(list []string) (b []byte) {
	for _, s := range list {
		b = operation.AppendText(b, s)
	}
	return b
}

// decode undoes encode, so that no two lists have one encoding.
func decode(b []byte) (list []string) {
	for len(b) >= 4 {
		n := int(binary.BigEndian.Uint32(b))
		if n > len(b)-4 {
			return nil
		}
		list, b = append(list, string(b[4:4+n])), b[4+n:]
	}
	return list
}

func TestNoTwoRequestsShareAnEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, two := texts().Draw(t, "one"), texts().Draw(t, "two")
		if back := decode(encode(one)); !slices.Equal(back, one) {
			t.Fatalf("%q decodes as %q", one, back)
		}
		if slices.Equal(one, two) != (fingerprint(one) == fingerprint(two)) {
			t.Fatalf("%q and %q: one fingerprint", one, two)
		}
		// Cut the same bytes at other places: the same letters in the same order.
		joined := strings.Join(one, "")
		cut := make([]string, len(one))
		for i := range cut {
			n := rapid.IntRange(0, len(joined)).Draw(t, "cut")
			cut[i], joined = joined[:n], joined[n:]
		}
		cut[len(cut)-1] += joined
		if !slices.Equal(cut, one) && fingerprint(cut) == fingerprint(one) {
			t.Fatalf("%q and %q: one fingerprint", one, cut)
		}
	})
}

func TestIDsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := operation.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if back, err := operation.ParseID(id.String()); back != id || err != nil {
			t.Fatalf("%s reads back as %s, %v", id, back, err)
		}
	})
}

var keyForm = regexp.MustCompile(operation.KeyPattern)

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"", "k", "a_b-C9", "a b", "a\n", "é", strings.Repeat("k", 80), strings.Repeat("k", 81)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := operation.ParseKey(s)
		if (err == nil) != keyForm.MatchString(s) {
			t.Fatalf("%q: %v", s, err)
		}
		if err == nil && k.String() != s || err != nil && k != (operation.Key{}) {
			t.Fatalf("%q gave %q, %v", s, k, err)
		}
	})
}

var idForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "0d9a5b1e-3c52-4f1b-9d0f-6a7b8c9d0e1f", "0D9A5B1E-3C52-4F1B-9D0F-6A7B8C9D0E1F", "{0d9a5b1e-3c52-4f1b-9d0f-6a7b8c9d0e1f}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := operation.ParseID(s)
		if (err == nil) != idForm.MatchString(s) {
			t.Fatalf("%q: %v", s, err)
		}
		if err == nil && id.String() != s || err != nil && id != (operation.ID{}) {
			t.Fatalf("%q gave %s, %v", s, id, err)
		}
	})
}
