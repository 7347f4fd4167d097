package money_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/domain/money"
)

// FuzzParseDecimal compares with encoding/json on what a number is, and with
// another implementation of exact decimals on what it means.
func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"0", "-0", "0.10", "1e2", "1E-2", "10.000", "01", ".5", "1e", "-", "8.20", "2400.5", "1e99", "0.1000000000000000055",
		"999999999999999999", "1000000000000000000", "-1e18", "1e-18", "null", `"1"`, "1 "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, err := money.ParseDecimal(s)
		number := s != "" && (s[0] == '-' || '0' <= s[0] && s[0] <= '9') &&
			json.Valid([]byte(s)) && strings.TrimRight(s, " \t\r\n") == s
		if number != (err != money.ErrSyntax) {
			t.Fatalf("ParseDecimal(%q): %v; it is a JSON number: %t", s, err, number)
		}
		// The other implementation builds the number that an exponent names, and
		// reads some strings that are not JSON numbers.
		if _, exponent, has := strings.Cut(strings.ToLower(s), "e"); number && has {
			if n, err := strconv.Atoi(exponent); err != nil || n > 1000 || n < -1000 {
				return
			}
		}
		if number {
			if err := agree(s); err != nil {
				t.Fatal(err)
			}
		}
	})
}
