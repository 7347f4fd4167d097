package payables

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/money"
)

// wideInt draws small numbers, large ones and the ends of 64 bits.
func wideInt(least, most int64) *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(max(least, -1000), min(most, 1000)),
		rapid.Int64Range(least, most),
		rapid.SampledFrom([]int64{least, least + 1, most - 1, most}))
}

func drawRatio(t *rapid.T, name string) Ratio {
	return ratioOf(wideInt(-math.MaxInt64, math.MaxInt64).Draw(t, name), wideInt(1, math.MaxInt64).Draw(t, name+" denominator"))
}

func TestRatioIsAnExactFraction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRatio(t, "a"), drawRatio(t, "b")
		if rapid.Bool().Draw(t, "one denominator") {
			_, d := a.Fraction()
			b = ratioOf(b.numerator, d)
		}
		for name, op := range map[string]struct {
			ours   func() Ratio
			theirs *big.Rat
		}{
			"plus":  {func() Ratio { return a.plus(b) }, new(big.Rat).Add(a.big(), b.big())},
			"minus": {func() Ratio { return a.minus(b) }, new(big.Rat).Sub(a.big(), b.big())},
		} {
			want := op.theirs
			fits := want.Num().IsInt64() && want.Num().Int64() != math.MinInt64 && want.Denom().IsInt64()
			var got Ratio
			err := exact(func() { got = op.ours() })
			if (err == nil) != fits {
				t.Fatalf("%s %s %s = %s: %v", a, name, b, want, err)
			}
			if err != nil {
				continue
			}
			if got.big().Cmp(want) != 0 || got.Sign() != want.Sign() {
				t.Fatalf("%s %s %s = %s, not %s", a, name, b, got, want)
			}
			n, d := got.Fraction()
			if back, err := RestoreRatio(n, d); err != nil || back != got {
				t.Fatalf("%d/%d is restored as %v, %v", n, d, back, err)
			}
			if s, ok := new(big.Rat).SetString(got.String()); !ok || s.Cmp(want) != 0 {
				t.Fatalf("%s is written %s", want, got)
			}
		}
		if a.Cmp(b) != a.big().Cmp(b.big()) || (a.Cmp(b) == 0) != (a == b) {
			t.Fatalf("%s against %s is %d", a, b, a.Cmp(b))
		}
	})
}

func TestRatioAtTheEnds(t *testing.T) {
	most, half := Ratio{math.MaxInt64, 0}, Ratio{1, 2}
	if got := most.minus(most); got != (Ratio{}) || got.String() != "0" {
		t.Errorf("%v", got)
	}
	for name, compute := range map[string]func(){
		"too large":                  func() { most.plus(Ratio{1, 0}) },
		"too small":                  func() { (Ratio{-math.MaxInt64, 0}).minus(Ratio{2, 0}) },
		"has no number of its minus": func() { (Ratio{-math.MaxInt64, 0}).minus(Ratio{1, 0}) },
		"the same of sevenths":       func() { (Ratio{-math.MaxInt64, 7}).minus(Ratio{1, 7}) },
		"too fine":                   func() { most.plus(half) },
	} {
		if err := exact(compute); err != errTooFine {
			t.Errorf("%s: %v", name, err)
		}
	}
	defer func() {
		if p := recover(); p != "another" {
			t.Errorf("recovered %v", p)
		}
	}()
	_ = exact(func() { panic("another") })
}

func TestRestoreRatioRefuses(t *testing.T) {
	for _, x := range [][2]int64{{1, 0}, {1, -1}, {2, 2}, {0, 2}, {-4, 6}, {math.MinInt64, 1}, {math.MinInt64, 7}, {math.MinInt64, 2}, {math.MaxInt64, math.MaxInt64}} {
		if r, err := RestoreRatio(x[0], x[1]); err == nil || r != (Ratio{}) {
			t.Errorf("%d/%d is restored as %v, %v", x[0], x[1], r, err)
		}
	}
	for _, x := range [][2]int64{{0, 1}, {-1, 2}, {7, 12}, {math.MaxInt64, 2}, {-math.MaxInt64, math.MaxInt64 - 1}} {
		r, err := RestoreRatio(x[0], x[1])
		if n, d := r.Fraction(); err != nil || n != x[0] || d != x[1] {
			t.Errorf("%d/%d is restored as %d/%d, %v", x[0], x[1], n, d, err)
		}
	}
}

func TestRatioAsText(t *testing.T) {
	for want, r := range map[string]Ratio{"0": {}, "2.5": ratioOf(5, 2), "-2.5": ratioOf(-5, 2), "7/12": ratioOf(7, 12), "-1/3": ratioOf(-1, 3),
		"0.000001": ratioOf(1, micro), "1/2000000": ratioOf(1, 2*micro), "120": ratioOf(240, 2), "1.656": ratioOf(1656, 1000), "100000": ratioOf(100000, 1)} {
		if got := r.String(); got != want {
			t.Errorf("%s is written %s", want, got)
		}
	}
}

// Whatever the conversion, the quantity is converted as a fraction.
func TestConversionIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Quantity{wideInt(1, MaxQuantity*micro).Draw(t, "micro")}
		c := conversion{wideInt(1, MaxFactor).Draw(t, "numerator"), wideInt(1, MaxFactor).Draw(t, "denominator")}
		want := new(big.Rat).Mul(big.NewRat(q.micro, micro), big.NewRat(c.numerator, c.denominator))
		var got Ratio
		err := exact(func() { got = q.in(c) })
		if fits := want.Num().IsInt64() && want.Denom().IsInt64(); (err == nil) != fits || fits && got.big().Cmp(want) != 0 {
			t.Fatalf("%s x %d/%d = %s, not %s: %v", q, c.numerator, c.denominator, got, want, err)
		}
	})
}

func TestPercentCoversAsIntegersDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Percent{wideInt(0, MaxPercent*micro).Draw(t, "percent")}
		whole := wideInt(0, MaxMinor*MaxLines).Draw(t, "whole")
		// Around the edge, or anywhere.
		edge := new(big.Int).Mul(big.NewInt(p.micro), big.NewInt(whole))
		edge.Div(edge, big.NewInt(100*micro))
		part := wideInt(0, MaxMinor*MaxLines).Draw(t, "part")
		if edge.IsInt64() && rapid.Bool().Draw(t, "at the edge") {
			part = max(0, edge.Int64()+rapid.Int64Range(-2, 2).Draw(t, "off"))
		}
		left := new(big.Int).Mul(big.NewInt(part), big.NewInt(100*micro))
		right := new(big.Int).Mul(big.NewInt(p.micro), big.NewInt(whole))
		if got, want := p.covers(part, whole), left.Cmp(right) <= 0; got != want {
			t.Fatalf("%s%% of %d covers %d: %t", p, whole, part, got)
		}
	})
}

// A tolerance is the same comparison in fractions of the order's unit.
func TestToleranceHoldsAsFractionsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := conversion{wideInt(1, MaxFactor).Draw(t, "numerator"), wideInt(1, MaxFactor).Draw(t, "denominator")}
		if rapid.Bool().Draw(t, "the same unit") {
			c = one
		}
		tolerance := Tolerance{Percent{wideInt(0, MaxPercent*micro).Draw(t, "percent")}, wideInt(0, MaxMinor).Draw(t, "cap")}
		price, ordered := wideInt(0, MaxMinor).Draw(t, "price"), wideInt(0, MaxMinor).Draw(t, "ordered")
		// One invoiced unit is c of the order's: price / c for one of the order's.
		gap := new(big.Rat).Mul(big.NewRat(price, 1), big.NewRat(c.denominator, c.numerator))
		gap.Abs(gap.Sub(gap, big.NewRat(ordered, 1)))
		percent := new(big.Rat).Mul(big.NewRat(tolerance.Percent.micro, 100*micro), big.NewRat(ordered, 1))
		want := gap.Cmp(big.NewRat(tolerance.Minor, 1)) <= 0 && gap.Cmp(percent) <= 0
		within, difference := tolerance.holds(price, ordered, c)
		if within != want || (difference == 0) != (gap.Sign() == 0) || difference < 0 {
			t.Fatalf("%d for %d in %d/%d within %s%% and %d: %t, %d", price, ordered, c.numerator, c.denominator, tolerance.Percent, tolerance.Minor, within, difference)
		}
	})
}

func TestAmountIsRoundedHalfUp(t *testing.T) {
	usd, _ := money.ParseCurrency("USD")
	rapid.Check(t, func(t *rapid.T) {
		q := Quantity{wideInt(1, MaxQuantity*micro).Draw(t, "micro")}
		price := wideInt(0, MaxMinor).Draw(t, "price")
		want := new(big.Int).Mul(big.NewInt(q.micro), big.NewInt(price))
		want.Div(want.Add(want, big.NewInt(micro/2)), big.NewInt(micro))
		got, ok := q.amount(money.FromMinor(price, usd))
		if ok != want.IsInt64() || ok && got != want.Int64() {
			t.Fatalf("%s x %d = %d, %t; want %s", q, price, got, ok, want)
		}
	})
}

func TestQuantityReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := wideInt(1, MaxQuantity*micro).Draw(t, "micro")
		q := QuantityOfMicro(m)
		if back, err := ParseQuantity(q.String()); err != nil || back != q || back.Micro() != m {
			t.Fatalf("%d is written %s and read as %s, %v", m, q, back, err)
		}
		p := PercentOfMicro(m % (MaxPercent*micro + 1))
		if back, err := ParsePercent(p.String()); err != nil || back != p {
			t.Fatalf("%s is read as %s, %v", p, back, err)
		}
	})
}

func TestParseQuantity(t *testing.T) {
	for in, want := range map[string]string{"1": "1", "1.500000": "1.5", "0.000001": "0.000001", "1e3": "1000", "1E-6": "0.000001", "1000000000": "1000000000", "999999999.999999": "999999999.999999", "12.0": "12"} {
		if q, err := ParseQuantity(in); err != nil || q.String() != want {
			t.Errorf("%s: %s, %v", in, q, err)
		}
	}
	for in, words := range map[string]string{
		"0": "must be more than 0", "-0": "must be more than 0", "-1": "must not be negative", "0.0000001": "must have at most 6 decimals", "1e-7": "must have at most 6 decimals",
		"1000000000.000001": "must be at most 1000000000", "1000000001": "must be at most 1000000000", "1e17": "must be at most 1000000000",
		"": "must be a number of at most 1000000000 with at most 6 decimals", "1e99": "must be a number of at most 1000000000 with at most 6 decimals", "0x1": "must be a number of at most 1000000000 with at most 6 decimals",
		"٣": "must be a number of at most 1000000000 with at most 6 decimals", "1,5": "must be a number of at most 1000000000 with at most 6 decimals",
	} {
		if q, err := ParseQuantity(in); err == nil || err.Error() != words || q != (Quantity{}) {
			t.Errorf("%s: %s, %v; want %q", in, q, err, words)
		}
	}
	for in, ok := range map[string]bool{"0": true, "1000": true, "1000.000001": false, "8.25": true, "-1": false, "0.0000001": false} {
		if p, err := ParsePercent(in); (err == nil) != ok || err != nil && p != (Percent{}) {
			t.Errorf("%s percent: %s, %v", in, p, err)
		}
	}
}
