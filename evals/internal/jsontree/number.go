package jsontree

import (
	"math/big"
	"strings"
)

// Equal reports whether a and b are the same value: numbers by what they are
// worth, exactly, objects without regard to the order of their members.
func Equal(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case Number:
		return SameNumber(a.Raw, b.Raw)
	case String:
		return a.Text == b.Text
	case Array:
		if len(a.Elements) != len(b.Elements) {
			return false
		}
		for i := range a.Elements {
			if !Equal(a.Elements[i], b.Elements[i]) {
				return false
			}
		}
		return true
	case Object:
		if len(a.Members) != len(b.Members) {
			return false
		}
		for _, m := range a.Members {
			if !Equal(m.Value, b.Get(m.Name)) {
				return false
			}
		}
		return true
	}
	return a.Raw == b.Raw
}

// SameNumber reports whether two JSON numbers are worth the same: 10.00 and 1e1
// are, 0.1 and 0.1000000000000000055 are not. No power of ten is computed, so
// 1e400 and 1e999999999 are as cheap as 1.
func SameNumber(a, b string) bool {
	signA, digitsA, expA := split(a)
	signB, digitsB, expB := split(b)
	return signA == signB && digitsA == digitsB && expA.Cmp(expB) == 0
}

// split writes a JSON number as sign, digits without zeros at either end, and
// the power of ten they are to be multiplied by.
func split(number string) (sign, digits string, exponent *big.Int) {
	exponent = new(big.Int)
	number, negative := strings.CutPrefix(number, "-")
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		exponent.SetString(strings.TrimPrefix(number[i+1:], "+"), 10)
		number = number[:i]
	}
	whole, fraction, _ := strings.Cut(number, ".")
	exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(short))))
	if short == "" {
		return "", "0", new(big.Int)
	}
	if negative {
		sign = "-"
	}
	return sign, short, exponent
}

// Rat returns the number exactly, or nil if n is none or is far beyond money.
func (n *Node) Rat() *big.Rat {
	const longest = 40 // an exponent of any size would take that much memory
	if n == nil || n.Kind != Number || len(n.Raw) > longest {
		return nil
	}
	if i := strings.IndexAny(n.Raw, "eE"); i >= 0 && len(n.Raw)-i > len("e99") {
		return nil
	}
	r, ok := new(big.Rat).SetString(n.Raw)
	if !ok {
		return nil
	}
	return r
}
