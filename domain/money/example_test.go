package money_test

import (
	"fmt"

	"github.com/refundledger/refundledger/domain/money"
)

// What a person or a model writes is a Decimal; with a currency it becomes an
// Amount, exactly or not at all.
func Example() {
	usd, err := money.ParseCurrency("USD")
	if err != nil {
		fmt.Println(err)
		return
	}
	asked, err := money.ParseDecimal("19.99")
	if err != nil {
		fmt.Println(err)
		return
	}
	refund, err := asked.In(usd)
	if err != nil {
		fmt.Println(err)
		return
	}
	left, err := money.FromMinor(500_00, usd).Sub(refund)
	fmt.Println(refund.Minor(), refund, left.Major(), err)
	// Output: 1999 19.99 USD 480.01 <nil>
}

// A fraction of a minor unit is refused, never cut and never rounded.
func ExampleDecimal_In() {
	jpy, _ := money.ParseCurrency("JPY")
	for _, literal := range []string{"2400", "2400.0", "24e2", "2400.5"} {
		d, _ := money.ParseDecimal(literal)
		a, err := d.In(jpy)
		fmt.Println(literal, "->", a.Minor(), err)
	}
	// Output:
	// 2400 -> 2400 <nil>
	// 2400.0 -> 2400 <nil>
	// 24e2 -> 2400 <nil>
	// 2400.5 -> 0 the amount has more decimals than its currency
}

// The literal of the JSON number is read as it was written, so the error of a
// float shows instead of hiding.
func ExampleParseDecimal() {
	for _, literal := range []string{"0.1", "1e2", "-0.00", "0.1000000000000000055", "1e999999999", "01"} {
		d, err := money.ParseDecimal(literal)
		fmt.Println(literal, "->", d, err)
	}
	// Output:
	// 0.1 -> 0.1 <nil>
	// 1e2 -> 100 <nil>
	// -0.00 -> 0 <nil>
	// 0.1000000000000000055 -> 0 the number has too many digits
	// 1e999999999 -> 0 the number is too large
	// 01 -> 0 not a number
}

// Amounts of two currencies are never added.
func ExampleAmount_Add() {
	usd, _ := money.ParseCurrency("USD")
	eur, _ := money.ParseCurrency("EUR")
	_, err := money.FromMinor(100, usd).Add(money.FromMinor(100, eur))
	fmt.Println(err)
	// Output: the amounts are of two currencies
}
