package strictjson

import (
	"errors"
	"math"
)

var (
	errFraction = errors.New("not an integer")
	errRange    = errors.New("out of range")
)

const (
	// maxExponent is where an exponent is as good as endless: no document is
	// long enough for its digits to make up for it.
	maxExponent = 1 << 40
	// maxInt64Digits is how many digits the largest int64 has.
	maxInt64Digits = 19
)

// integer reads a checked JSON number that is an integer, however it is
// written: 100, 100.0 and 1e2 are the same. No power of ten is ever computed,
// so the length of the exponent does not matter.
func integer(number []byte) (int64, error) {
	negative := number[0] == '-'
	if negative {
		number = number[1:]
	}
	// The value is the digits, whole and fraction, times ten to the power of
	// scale. The first pass finds the scale and the last digit that counts.
	var scale int64
	digits, last, point := 0, 0, -1
	end := len(number)
	for i, c := range number {
		if c == '.' {
			point = digits
			continue
		}
		if c == 'e' || c == 'E' {
			scale, end = exponent(number[i+1:]), i
			break
		}
		digits++
		if c != '0' {
			last = digits
		}
	}
	if last == 0 {
		return 0, nil
	}
	if point >= 0 {
		scale -= int64(digits - point)
	}
	scale += int64(digits - last)
	if scale < 0 {
		return 0, errFraction
	}
	n, significant, taken := uint64(0), 0, 0
	for _, c := range number[:end] {
		if c == '.' {
			continue
		}
		if taken++; taken > last {
			break
		}
		if significant > 0 || c != '0' {
			significant++
		}
		if int64(significant)+scale > maxInt64Digits {
			return 0, errRange
		}
		n = n*10 + uint64(c-'0')
	}
	for range scale {
		n *= 10
	}
	switch {
	case negative && n <= -math.MinInt64:
		return -int64(n), nil
	case n <= math.MaxInt64:
		return int64(n), nil
	}
	return 0, errRange
}

// exponent reads what follows the e of a checked number, up to maxExponent.
func exponent(s []byte) int64 {
	negative := s[0] == '-'
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	n := int64(0)
	for _, c := range s {
		n = min(n*10+int64(c-'0'), maxExponent)
	}
	if negative {
		return -n
	}
	return n
}
