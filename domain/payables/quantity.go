package payables

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/money"
)

// Decimals is how many digits after the point a quantity or a percentage has.
const Decimals = 6

const micro = 1_000_000 // parts of one, by Decimals

// MaxQuantity is the most that a line may be of, in its unit.
const MaxQuantity = 1_000_000_000

// Quantity is an exact number of units with up to [Decimals] digits after the
// point.
type Quantity struct{ micro int64 }

// ParseQuantity reads the literal of a JSON number that is more than 0 and at
// most [MaxQuantity].
func ParseQuantity(literal string) (Quantity, error) {
	m, err := parseMicro(literal, MaxQuantity)
	if err == nil && m == 0 {
		err = fmt.Errorf("must be more than 0")
	}
	return Quantity{m}, err
}

// valid reports whether a document may say so.
func (q Quantity) valid() bool { return 0 < q.micro && q.micro <= MaxQuantity*micro }

// QuantityOfMicro makes a quantity of millionths, as a store keeps it.
func QuantityOfMicro(m int64) Quantity { return Quantity{m} }

// Micro returns the quantity in millionths of its unit.
func (q Quantity) Micro() int64 { return q.micro }

// String returns the number without trailing zeros.
func (q Quantity) String() string { return q.in(one).String() }

// in converts the quantity to the unit of which each of its own is c.
func (q Quantity) in(c conversion) Ratio {
	if c == one {
		return ratioOf(q.micro, micro)
	}
	r := new(big.Rat).SetFrac(
		new(big.Int).Mul(big.NewInt(q.micro), big.NewInt(c.numerator)),
		new(big.Int).Mul(big.NewInt(micro), big.NewInt(c.denominator)))
	return ratioOfBig(r)
}

// amount is the quantity times the price of one, rounded half up to a minor
// unit; ok is false if it does not fit in 64 bits.
func (q Quantity) amount(price money.Amount) (minor int64, ok bool) {
	hi, lo := bits.Mul64(uint64(q.micro), uint64(price.Minor()))
	lo, carry := bits.Add64(lo, micro/2, 0)
	if hi += carry; hi >= micro {
		return 0, false
	}
	n, _ := bits.Div64(hi, lo, micro)
	return int64(n), int64(n) >= 0
}

func parseMicro(literal string, most int64) (int64, error) {
	d, err := money.ParseDecimal(literal)
	if err != nil {
		return 0, fmt.Errorf("must be a number of at most %d with at most %d decimals", most, Decimals)
	}
	m, err := d.Scaled(Decimals)
	switch {
	case err == money.ErrPrecision:
		return 0, fmt.Errorf("must have at most %d decimals", Decimals)
	case d.Sign() < 0:
		return 0, fmt.Errorf("must not be negative")
	case err != nil || m > most*micro:
		return 0, fmt.Errorf("must be at most %d", most)
	}
	return m, nil
}

// MaxPercent is the most that a percentage may be.
const MaxPercent = 1000

// Percent is an exact percentage of 0 to [MaxPercent].
type Percent struct{ micro int64 }

// ParsePercent reads the literal of a JSON number of 0 to [MaxPercent].
func ParsePercent(literal string) (Percent, error) {
	m, err := parseMicro(literal, MaxPercent)
	return Percent{m}, err
}

// PercentOfMicro makes a percentage of millionths of a percent.
func PercentOfMicro(m int64) Percent { return Percent{m} }

// Micro returns the percentage in millionths of a percent.
func (p Percent) Micro() int64 { return p.micro }

// String returns the number without trailing zeros.
func (p Percent) String() string { return Quantity(p).String() }

// covers reports whether part is at most p percent of whole: both in the same
// minor units, none negative. Exactly on the limit is covered.
func (p Percent) covers(part, whole int64) bool {
	return product(part, 100*micro).atMost(product(p.micro, whole))
}

// wide is a number of 128 bits that is not negative.
type wide struct{ hi, lo uint64 }

func product(a, b int64) wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return wide{hi, lo}
}

// rounded reports whether part is at most p percent of whole, rounded half up.
func (p Percent) rounded(part, whole int64) bool {
	return product(part, 100*micro).atMost(product(p.micro, whole).plus(wide{lo: 50 * micro}))
}

func (w wide) plus(x wide) wide {
	lo, carry := bits.Add64(w.lo, x.lo, 0)
	hi, _ := bits.Add64(w.hi, x.hi, carry)
	return wide{hi, lo}
}

// minus returns w - x, x at most w.
func (w wide) minus(x wide) wide {
	lo, borrow := bits.Sub64(w.lo, x.lo, 0)
	hi, _ := bits.Sub64(w.hi, x.hi, borrow)
	return wide{hi, lo}
}

func (w wide) atMost(x wide) bool { return w.hi < x.hi || w.hi == x.hi && w.lo <= x.lo }

// Ratio is an exact fraction in lowest terms: a quantity in the unit of an
// order's line, into which those of other documents are converted. The zero
// value is 0.
type Ratio struct {
	numerator   int64
	denominator int64 // 0 stands for 1, so that the zero value is a number
}

// RestoreRatio makes a fraction of what a store keeps. It refuses one that is
// not in lowest terms with a denominator above 0.
func RestoreRatio(numerator, denominator int64) (Ratio, error) {
	if denominator < 1 || numerator == math.MinInt64 || gcd(max(numerator, -numerator), denominator) != 1 {
		return Ratio{}, fmt.Errorf("payables: %d/%d is no fraction in lowest terms", numerator, denominator)
	}
	return ratioOf(numerator, denominator), nil
}

// Fraction returns the numerator and the denominator, which is above 0.
func (r Ratio) Fraction() (numerator, denominator int64) {
	return r.numerator, max(r.denominator, 1)
}

// ratioOf reduces n/d, d > 0 and n more than the least 64 bits hold, so that -n
// fits too.
func ratioOf(n, d int64) Ratio {
	g := gcd(max(n, -n), d)
	if d /= g; d == 1 {
		d = 0
	}
	return Ratio{n / g, d}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// ratioOfBig panics with errTooFine on what does not fit: [exact] turns it into
// a fault.
func ratioOfBig(r *big.Rat) Ratio {
	if !r.Num().IsInt64() || !r.Denom().IsInt64() || r.Num().Int64() == math.MinInt64 {
		panic(errTooFine)
	}
	return ratioOf(r.Num().Int64(), r.Denom().Int64())
}

// errTooFine: quantities in units whose conversions have no common fraction of
// 64 bits.
var errTooFine = fault.New(fault.PolicyViolation, "quantity_out_of_range",
	"The quantities of this document can not be computed exactly in 64 bits. Ask for one in fewer different units.")

// exact runs a computation and returns errTooFine if a fraction did not fit.
func exact(compute func()) (err error) {
	defer func() {
		if p := recover(); p == errTooFine {
			err = errTooFine
		} else if p != nil {
			panic(p)
		}
	}()
	compute()
	return nil
}

func (r Ratio) big() *big.Rat { return big.NewRat(r.Fraction()) }

// plus returns r + x.
func (r Ratio) plus(x Ratio) Ratio {
	n, d := r.Fraction()
	m, e := x.Fraction()
	if sum := n + m; d == e && (sum > n) == (m > 0) && sum != math.MinInt64 {
		return ratioOf(sum, d)
	}
	return ratioOfBig(new(big.Rat).Add(r.big(), x.big()))
}

// minus returns r - x.
func (r Ratio) minus(x Ratio) Ratio { return r.plus(Ratio{-x.numerator, x.denominator}) }

// Sign returns -1, 0 or 1.
func (r Ratio) Sign() int {
	switch {
	case r.numerator < 0:
		return -1
	case r.numerator > 0:
		return 1
	}
	return 0
}

// Cmp returns -1, 0 or 1 as r is less than, equal to or more than x.
func (r Ratio) Cmp(x Ratio) int {
	n, d := r.Fraction()
	m, e := x.Fraction()
	if d == e {
		switch {
		case n < m:
			return -1
		case n > m:
			return 1
		}
		return 0
	}
	return r.big().Cmp(x.big())
}

// String returns an exact decimal of up to [Decimals] digits if there is one
// ("2.5"), else the fraction ("7/12").
func (r Ratio) String() string {
	n, d := r.Fraction()
	if micro%d != 0 {
		return strconv.FormatInt(n, 10) + "/" + strconv.FormatInt(d, 10)
	}
	s := r.big().FloatString(Decimals)
	if d == 1 {
		return s[:len(s)-Decimals-1]
	}
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	return s
}

// conversion says what one of another unit is in a line's own: numerator /
// denominator of it.
type conversion struct{ numerator, denominator int64 }

// one converts nothing.
var one = conversion{1, 1}

// MaxFactor bounds both sides of a conversion.
const MaxFactor = 1_000_000

// Conversion says that one Unit is Numerator/Denominator of the unit of the
// order's line: on a line in BOX of 12, one EA is 1/12.
type Conversion struct {
	Unit                   Unit
	Numerator, Denominator int64 // 1 to MaxFactor
}
