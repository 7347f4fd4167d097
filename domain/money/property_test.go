package money_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	oracle "github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/money"
)

// minors draws minor units, the edges of 64 bits more often than chance would.
func minors() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64(),
		rapid.Int64Range(-2000, 2000),
		rapid.Int64Range(math.MaxInt64-2000, math.MaxInt64),
		rapid.Int64Range(math.MinInt64, math.MinInt64+2000),
		rapid.Custom(func(t *rapid.T) int64 { // around the powers of ten
			n := rapid.Int64Range(-2, 2).Draw(t, "offset")
			p := int64(1)
			for range rapid.IntRange(0, 18).Draw(t, "power") {
				p *= 10
			}
			return n + p*rapid.SampledFrom([]int64{-1, 1}).Draw(t, "sign")
		}),
	)
}

func currencies() *rapid.Generator[money.Currency] {
	return rapid.SampledFrom([]money.Currency{jpy, usd, kwd, clf})
}

// literals draws JSON numbers in all their spellings.
func literals() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,22})?`).Draw(t, "number")
		if rapid.Bool().Draw(t, "has exponent") {
			s += fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"e", "E", "e+0", "e-0", "E-"}).Draw(t, "e"), rapid.IntRange(0, 45).Draw(t, "exponent"))
		}
		return s
	})
}

// want is what a literal means by another implementation of exact decimals, and
// which error it deserves by the bounds that ParseDecimal promises.
func want(literal string) (oracle.Decimal, error) {
	d, err := oracle.NewFromString(literal)
	if err != nil {
		return oracle.Decimal{}, err
	}
	limit := oracle.New(1, money.MaxDigits)
	switch {
	case d.Cmp(limit) >= 0:
		return d, money.ErrTooLarge
	case d.Cmp(limit.Neg()) <= 0:
		return d, money.ErrTooSmall
	}
	digits := strings.TrimLeft(new(big.Int).Abs(d.Coefficient()).String(), "0")
	kept := strings.TrimRight(digits, "0")
	decimals := -int(d.Exponent()) - (len(digits) - len(kept))
	half := oracle.New(1, money.MaxDigits/2)
	switch {
	case len(kept) > money.MaxDigits && d.Cmp(half) >= 0:
		return d, money.ErrTooLarge
	case len(kept) > money.MaxDigits && d.Cmp(half.Neg()) <= 0:
		return d, money.ErrTooSmall
	}
	if kept != "" && (len(kept) > money.MaxDigits || decimals > money.MaxDigits) {
		return d, money.ErrTooPrecise
	}
	return d, nil
}

func agree(literal string) error {
	d, err := money.ParseDecimal(literal)
	exact, wantErr := want(literal)
	switch {
	case err != wantErr:
		return fmt.Errorf("ParseDecimal(%s): %v, want %v", literal, err, wantErr)
	case err != nil:
		return nil
	case d.String() != exact.String():
		return fmt.Errorf("ParseDecimal(%s) prints %s, want %s", literal, d, exact)
	case d.Sign() != exact.Sign():
		return fmt.Errorf("ParseDecimal(%s) has the sign %d", literal, d.Sign())
	case exact.Exponent() > 0 && d.Decimals() != 0, d.Decimals() > max(0, -int(exact.Exponent())):
		return fmt.Errorf("ParseDecimal(%s) has %d decimals", literal, d.Decimals())
	}
	again, err := money.ParseDecimal(d.String())
	if err != nil || again != d {
		return fmt.Errorf("%s, printed as %s, reads back as %s, %v", literal, d, again, err)
	}
	for _, c := range []money.Currency{jpy, usd, kwd} {
		a, err := d.In(c)
		units := exact.Shift(int32(c.Digits()))
		switch {
		case !units.IsInteger():
			if err != money.ErrPrecision {
				return fmt.Errorf("%s in %s: %s, %v; want %v", literal, c, a, err, money.ErrPrecision)
			}
		case !units.BigInt().IsInt64():
			if err != money.ErrOverflow {
				return fmt.Errorf("%s in %s: %s, %v; want %v", literal, c, a, err, money.ErrOverflow)
			}
		case err != nil || a.Minor() != units.IntPart():
			return fmt.Errorf("%s in %s is %d minor units, %v; want %s", literal, c, a.Minor(), err, units)
		}
	}
	return nil
}

func TestDecimalsMeanWhatAnotherImplementationSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := agree(literals().Draw(t, "literal")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestANumberIsTheSameHoweverItIsSpelt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.Int64Range(1, 99_999_999).Draw(t, "digits") * rapid.SampledFrom([]int64{-1, 1}).Draw(t, "sign")
		shift := rapid.IntRange(-9, 9).Draw(t, "shift")
		zeros := rapid.IntRange(0, 6).Draw(t, "zeros")
		plain := decimal(t, fmt.Sprintf("%de%d", digits, shift))
		padded := decimal(t, fmt.Sprintf("%d%s.%se%d", digits, strings.Repeat("0", zeros), strings.Repeat("0", zeros+1), shift-zeros))
		if plain != padded {
			t.Fatalf("%s and %s", plain, padded)
		}
	})
}

func TestDecimalsCompareWithWholeNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := money.ParseDecimal(literals().Draw(t, "literal"))
		if err != nil {
			t.Skip("out of bounds")
		}
		exact := oracle.RequireFromString(d.String())
		major := rapid.OneOf(minors(), rapid.Int64Range(exact.IntPart()-1, exact.IntPart()+1)).Draw(t, "major")
		if got := d.Cmp(major); got != exact.Cmp(oracle.NewFromInt(major)) {
			t.Fatalf("%s against %d is %d", d, major, got)
		}
	})
}

func TestAmountsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := money.FromMinor(minors().Draw(t, "minor"), currencies().Draw(t, "currency"))
		major := a.Major()
		if !json.Valid([]byte(major)) {
			t.Fatalf("%s is no JSON number", major)
		}
		if a.Minor() > 999_999_999_999_999_999 || a.Minor() < -999_999_999_999_999_999 {
			return // more digits than a Decimal has
		}
		if back := amount(t, major, a.Currency()); back != a {
			t.Fatalf("%s prints as %s and reads back as %s", a, major, back)
		}
		person, code, _ := strings.Cut(a.String(), " ")
		if back := amount(t, person, currency(code)); back != a {
			t.Fatalf("%s reads back as %s", a, back)
		}
		if decimals := strings.TrimPrefix(person[strings.IndexByte(person+".", '.'):], "."); len(decimals) != a.Currency().Digits() {
			t.Fatalf("%s shows %d decimals", a, len(decimals))
		}
	})
}

func TestArithmeticIsExactOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := minors().Draw(t, "x"), minors().Draw(t, "y")
		a, b := money.FromMinor(x, usd), money.FromMinor(y, usd)
		bx, by := big.NewInt(x), big.NewInt(y)
		for _, op := range []struct {
			name  string
			got   func() (money.Amount, error)
			exact *big.Int
		}{
			{"+", func() (money.Amount, error) { return a.Add(b) }, new(big.Int).Add(bx, by)},
			{"-", func() (money.Amount, error) { return a.Sub(b) }, new(big.Int).Sub(bx, by)},
		} {
			got, err := op.got()
			if !op.exact.IsInt64() {
				if err != money.ErrOverflow || got != (money.Amount{}) {
					t.Fatalf("%d %s %d = %s, %v; it does not fit", x, op.name, y, got, err)
				}
			} else if err != nil || got != money.FromMinor(op.exact.Int64(), usd) {
				t.Fatalf("%d %s %d = %s, %v; want %s", x, op.name, y, got, err, op.exact)
			}
		}
		if c, err := a.Cmp(b); err != nil || c != bx.Cmp(by) {
			t.Fatalf("%d against %d is %d, %v", x, y, c, err)
		}
		if a.Sign() != bx.Sign() {
			t.Fatalf("the sign of %d is %d", x, a.Sign())
		}
	})
}
