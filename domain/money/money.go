// Package money is exact money: whole minor units of an ISO 4217 currency,
// checked for overflow, never a float and never two currencies in one sum.
//
// An [Amount] knows its currency. A [Decimal] is a number of major units whose
// currency is not known yet, as a person or a model writes it; [Decimal.In]
// turns it into an Amount or refuses, it never rounds.
package money

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/bojanz/currency"
)

// Currency is an ISO 4217 currency. The zero value is none.
type Currency struct {
	code   [3]byte
	digits uint8
}

// ParseCurrency accepts the upper-case alphabetic code of a currency that ISO
// 4217 lists today: USD, not usd.
func ParseCurrency(code string) (Currency, error) {
	digits, known := currency.GetDigits(code)
	if !known || len(code) != 3 {
		return Currency{}, fmt.Errorf("a currency is an upper-case ISO 4217 code such as USD")
	}
	return Currency{[3]byte([]byte(code)), digits}, nil
}

// RestoreCurrency returns the currency that a record was made in: its code and
// how many decimals it had. ISO 4217 withdraws and changes currencies; what was
// booked stays as it was.
func RestoreCurrency(code string, digits int) (Currency, error) {
	isLetter := func(i int) bool { return 'A' <= code[i] && code[i] <= 'Z' }
	if len(code) != 3 || !isLetter(0) || !isLetter(1) || !isLetter(2) || digits < 0 || digits > MaxDigits {
		return Currency{}, fmt.Errorf("a currency on record has a code of three upper-case letters and 0 to %d decimals", MaxDigits)
	}
	return Currency{[3]byte([]byte(code)), uint8(digits)}, nil
}

// String returns the alphabetic code, for example USD, or "" for none.
func (c Currency) String() string {
	if c == (Currency{}) {
		return ""
	}
	return string(c.code[:])
}

// Digits returns how many decimals the minor unit has: 0 for JPY, 2 for USD, 3 for KWD.
func (c Currency) Digits() int { return int(c.digits) }

// Errors of arithmetic. All of them mean that nothing was computed.
var (
	// ErrOverflow: the result does not fit in 64 bits of minor units.
	ErrOverflow = errors.New("the amount is too large")
	// ErrMismatch: the operands are of two currencies.
	ErrMismatch = errors.New("the amounts are of two currencies")
	// ErrPrecision: the currency has fewer decimals than the number.
	ErrPrecision = errors.New("the amount has more decimals than its currency")
)

// Amount is a whole number of minor units (cents, yen, fils) of a currency.
type Amount struct {
	minor    int64
	currency Currency
}

// FromMinor makes the amount of minor units of c.
func FromMinor(minor int64, c Currency) Amount { return Amount{minor, c} }

// Minor returns the number of minor units.
func (a Amount) Minor() int64 { return a.minor }

// Currency returns the currency.
func (a Amount) Currency() Currency { return a.currency }

// Sign returns -1, 0 or 1.
func (a Amount) Sign() int { return sign(a.minor) }

// Add returns a + b, or ErrMismatch or ErrOverflow.
func (a Amount) Add(b Amount) (Amount, error) {
	if a.currency != b.currency {
		return Amount{}, ErrMismatch
	}
	sum := a.minor + b.minor
	if (sum > a.minor) != (b.minor > 0) && b.minor != 0 {
		return Amount{}, ErrOverflow
	}
	return Amount{sum, a.currency}, nil
}

// Sub returns a - b, or ErrMismatch or ErrOverflow.
func (a Amount) Sub(b Amount) (Amount, error) {
	if a.currency != b.currency {
		return Amount{}, ErrMismatch
	}
	diff := a.minor - b.minor
	if (diff < a.minor) != (b.minor > 0) && b.minor != 0 {
		return Amount{}, ErrOverflow
	}
	return Amount{diff, a.currency}, nil
}

// Cmp returns -1, 0 or 1 as a is less than, equal to or more than b, or ErrMismatch.
func (a Amount) Cmp(b Amount) (int, error) {
	if a.currency != b.currency {
		return 0, ErrMismatch
	}
	switch {
	case a.minor < b.minor:
		return -1, nil
	case a.minor > b.minor:
		return 1, nil
	}
	return 0, nil
}

// Major returns the number of major units as an exact JSON number without
// trailing zeros: 500, 0.1, 499.9.
func (a Amount) Major() string { return string(a.appendMajor(nil, true)) }

// String returns the amount for a reader: "499.90 USD", "2400 JPY".
func (a Amount) String() string {
	b := a.appendMajor(make([]byte, 0, 24), false)
	if a.currency != (Currency{}) {
		b = append(append(b, ' '), a.currency.code[:]...)
	}
	return string(b)
}

func (a Amount) appendMajor(b []byte, trim bool) []byte {
	u := uint64(a.minor)
	if a.minor < 0 {
		b = append(b, '-')
		u = -u // two's complement: right for math.MinInt64 too
	}
	d := int(a.currency.digits)
	var scratch [24]byte
	s := strconv.AppendUint(scratch[:0], u, 10)
	for len(s) <= d { // 5 cents are 005, of which two digits are decimals
		s = append(s, 0)
		copy(s[1:], s)
		s[0] = '0'
	}
	b = append(b, s[:len(s)-d]...)
	fraction := s[len(s)-d:]
	for trim && len(fraction) > 0 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	if len(fraction) > 0 {
		b = append(append(b, '.'), fraction...)
	}
	return b
}

// MaxDigits is how many significant digits a [Decimal] may have.
const MaxDigits = 18

// Decimal is an exact number of major units, at most [MaxDigits] significant
// digits, no more than [MaxDigits] of them after the point.
type Decimal struct {
	coefficient int64 // the value is coefficient / 10^scale
	scale       uint8 // 0 when coefficient is; the last digit is not 0 when scale > 0
}

// Errors of [ParseDecimal].
var (
	// ErrSyntax: not a JSON number.
	ErrSyntax = errors.New("not a number")
	// ErrTooLarge: the value is 10^18 or more, or it is 10^9 or more and needs more
	// than MaxDigits digits.
	ErrTooLarge = errors.New("the number is too large")
	// ErrTooSmall: the same below zero.
	ErrTooSmall = errors.New("the number is too small")
	// ErrTooPrecise: the value is between those and needs more than MaxDigits
	// digits, or more than MaxDigits after the point.
	ErrTooPrecise = errors.New("the number has too many digits")
)

// ParseDecimal reads the literal of a JSON number (RFC 8259, section 6)
// exactly: 1e2 is 100, 10.000 is 10, 0.1000000000000000055 is ErrTooPrecise.
// Its cost grows with the length of the literal, never with the exponent.
func ParseDecimal(literal string) (Decimal, error) {
	whole, fraction, exponent, negative, ok := scan(literal)
	if !ok || len(literal) > maxLiteral {
		return Decimal{}, ErrSyntax
	}
	// The significant digits are digit(0) to digit(n-1); the point stands
	// after the first `point` of them.
	digit := func(i int) byte {
		if i < len(whole) {
			return whole[i]
		}
		return fraction[i-len(whole)]
	}
	n := len(whole) + len(fraction)
	first := 0
	for first < n && digit(first) == '0' {
		first++
	}
	if first == n {
		return Decimal{}, nil // any zero, also -0 and 0e999
	}
	for digit(n-1) == '0' {
		n--
	}
	point := len(whole) - first + exponent
	count := n - first
	tooLarge := point > MaxDigits || count > MaxDigits && point > MaxDigits/2
	switch {
	case tooLarge && negative:
		return Decimal{}, ErrTooSmall
	case tooLarge:
		return Decimal{}, ErrTooLarge
	case count-point > MaxDigits || count > MaxDigits:
		return Decimal{}, ErrTooPrecise
	}
	var c int64
	for i := range count {
		c = c*10 + int64(digit(first+i)-'0')
	}
	scale := count - point
	for ; scale < 0; scale++ {
		c *= 10 // point <= MaxDigits, so this stays below 10^18
	}
	if negative {
		c = -c
	}
	return Decimal{c, uint8(scale)}, nil
}

const (
	// maxLiteral bounds the length of a literal in bytes.
	maxLiteral = 1 << 26
	// maxExponent bounds what is read of an exponent: beyond it the value is out
	// of range, however many zeros the literal has, and int does not overflow.
	maxExponent = 1 << 27
)

// scan splits the literal of a JSON number into the digits before and after
// the point, the exponent (clamped to ±maxExponent) and the sign.
func scan(s string) (whole, fraction string, exponent int, negative, ok bool) {
	if s != "" && s[0] == '-' {
		negative, s = true, s[1:]
	}
	n := digits(s)
	if n == 0 || n > 1 && s[0] == '0' {
		return "", "", 0, false, false
	}
	whole, s = s[:n], s[n:]
	if s != "" && s[0] == '.' {
		if n = digits(s[1:]); n == 0 {
			return "", "", 0, false, false
		}
		fraction, s = s[1:1+n], s[1+n:]
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		minus := s != "" && s[0] == '-'
		if minus || s != "" && s[0] == '+' {
			s = s[1:]
		}
		if n = digits(s); n == 0 {
			return "", "", 0, false, false
		}
		for _, c := range []byte(s[:n]) {
			if exponent = exponent*10 + int(c-'0'); exponent > maxExponent {
				exponent = maxExponent
			}
		}
		if minus {
			exponent = -exponent
		}
		s = s[n:]
	}
	return whole, fraction, exponent, negative, s == ""
}

// digits counts the ASCII digits at the start of s.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int { return sign(d.coefficient) }

// Decimals returns how many digits stand after the point, without trailing zeros.
func (d Decimal) Decimals() int { return int(d.scale) }

// Cmp compares d with a whole number of major units: -1, 0 or 1.
func (d Decimal) Cmp(major int64) int {
	whole, rest := d.coefficient/pow10[d.scale], d.coefficient%pow10[d.scale]
	switch {
	case whole < major:
		return -1
	case whole > major:
		return 1
	}
	return sign(rest)
}

// In returns the amount of d major units of c, or ErrPrecision if c has fewer
// decimals, or ErrOverflow. It never rounds.
func (d Decimal) In(c Currency) (Amount, error) {
	minor, err := d.Scaled(c.Digits())
	if err != nil {
		return Amount{}, err
	}
	return Amount{minor, c}, nil
}

// Scaled returns d times 10 to the power of digits (0 to [MaxDigits]), or
// ErrPrecision if that is no whole number, or ErrOverflow.
func (d Decimal) Scaled(digits int) (int64, error) {
	up := digits - int(d.scale)
	if up < 0 {
		return 0, ErrPrecision
	}
	f := pow10[up]
	if d.coefficient > math.MaxInt64/f || d.coefficient < math.MinInt64/f {
		return 0, ErrOverflow
	}
	return d.coefficient * f, nil
}

// String returns the number without an exponent or trailing zeros.
func (d Decimal) String() string {
	return Amount{d.coefficient, Currency{digits: d.scale}}.Major()
}

var pow10 = func() (p [MaxDigits + 1]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

func sign(n int64) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
