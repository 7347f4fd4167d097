package money_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/refundledger/refundledger/domain/money"
)

var (
	jpy = currency("JPY") // no decimals
	usd = currency("USD") // two
	kwd = currency("KWD") // three
	clf = currency("CLF") // four
)

func currency(code string) money.Currency {
	c, err := money.ParseCurrency(code)
	if err != nil {
		panic(err)
	}
	return c
}

func decimal(t rapid.TB, literal string) money.Decimal {
	t.Helper()
	d, err := money.ParseDecimal(literal)
	if err != nil {
		t.Fatalf("ParseDecimal(%s): %v", literal, err)
	}
	return d
}

// amount reads major units of c, as a refund is asked for.
func amount(t rapid.TB, literal string, c money.Currency) money.Amount {
	t.Helper()
	a, err := decimal(t, literal).In(c)
	if err != nil {
		t.Fatalf("%s in %s: %v", literal, c, err)
	}
	return a
}

func TestParseCurrency(t *testing.T) {
	for _, tt := range []struct {
		name   string
		code   string
		digits int // -1: refused
	}{
		{"the dollar has cents", "USD", 2},
		{"the yen has no fraction", "JPY", 0},
		{"the Kuwaiti dinar has three decimals", "KWD", 3},
		{"the unidad de fomento has four", "CLF", 4},
		{"the rupiah has two by ISO 4217, though none are coined", "IDR", 2},
		{"lower case is not a code", "usd", -1},
		{"nothing is not a code", "", -1},
		{"spaces are not trimmed", " USD", -1},
		{"a code is three letters", "USDT", -1},
		{"a code that ISO 4217 does not list is refused", "ABC", -1},
		{"a code that ISO 4217 has withdrawn is refused", "DEM", -1},
		{"the code for no currency is refused", "XXX", -1},
		{"a look-alike letter is another code", "ＵSD", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := money.ParseCurrency(tt.code)
			switch {
			case tt.digits < 0 && err == nil:
				t.Fatalf("%q was accepted as %s", tt.code, c)
			case tt.digits < 0 && c != (money.Currency{}):
				t.Fatalf("%q was refused and still gave %s", tt.code, c)
			case tt.digits >= 0 && (err != nil || c.String() != tt.code || c.Digits() != tt.digits):
				t.Fatalf("got %s with %d digits, %v; want %d digits", c, c.Digits(), err, tt.digits)
			}
		})
	}
}

func TestParseDecimal(t *testing.T) {
	for _, tt := range []struct {
		name    string
		literal string
		want    string // what it prints as
		err     error
	}{
		{"an integer", "500", "500", nil},
		{"a fraction", "0.1", "0.1", nil},
		{"trailing zeros do not change a number", "10.000", "10", nil},
		{"an exponent is another spelling", "1e2", "100", nil},
		{"a negative exponent too", "12345E-2", "123.45", nil},
		{"an exponent may have zeros in front", "1e+0002", "100", nil},
		{"a negative number", "-5.00", "-5", nil},
		{"minus zero is zero", "-0", "0", nil},
		{"minus zero with decimals is zero", "-0.00", "0", nil},
		{"zero stays zero whatever its exponent", "0e999999999999999999999", "0", nil},
		{"eighteen digits fit", "999999999999999999", "999999999999999999", nil},
		{"eighteen decimals fit", "0.000000000000000001", "0.000000000000000001", nil},
		{"zeros in front do not count as digits", "0.00100e3", "1", nil},

		{"nineteen digits are too large", "1000000000000000000", "", money.ErrTooLarge},
		{"an exponent alone can be too large", "1e18", "", money.ErrTooLarge},
		{"an enormous exponent costs nothing", "1e999999999999999999999", "", money.ErrTooLarge},
		{"too large below zero is too small", "-1e18", "", money.ErrTooSmall},
		{"the digits of a float's error are refused, not cut", "0.1000000000000000055", "", money.ErrTooPrecise},
		{"nineteen decimals are too many", "1e-19", "", money.ErrTooPrecise},
		{"an enormous negative exponent costs nothing", "1e-999999999999999999999", "", money.ErrTooPrecise},
		{"nineteen digits on both sides of the point are too many", "1234567890.123456789", "", money.ErrTooLarge},

		{"nothing is not a number", "", "", money.ErrSyntax},
		{"null is not zero", "null", "", money.ErrSyntax},
		{"a string is not a number", `"0.00"`, "", money.ErrSyntax},
		{"a sign alone", "-", "", money.ErrSyntax},
		{"a plus sign", "+1", "", money.ErrSyntax},
		{"two signs", "--1", "", money.ErrSyntax},
		{"a zero in front", "01", "", money.ErrSyntax},
		{"a zero in front below zero", "-01", "", money.ErrSyntax},
		{"no digit before the point", ".5", "", money.ErrSyntax},
		{"no digit after the point", "5.", "", money.ErrSyntax},
		{"no digit between point and exponent", "5.e1", "", money.ErrSyntax},
		{"no digit in the exponent", "1e", "", money.ErrSyntax},
		{"no digit after the exponent's sign", "1e+", "", money.ErrSyntax},
		{"two points", "1.2.3", "", money.ErrSyntax},
		{"a point in the exponent", "1e2.0", "", money.ErrSyntax},
		{"a decimal comma", "1,50", "", money.ErrSyntax},
		{"a thousands separator", "1_000", "", money.ErrSyntax},
		{"space around it", " 1", "", money.ErrSyntax},
		{"a line end after it", "1\n", "", money.ErrSyntax},
		{"hexadecimal", "0x10", "", money.ErrSyntax},
		{"not a number", "NaN", "", money.ErrSyntax},
		{"infinity", "Infinity", "", money.ErrSyntax},
		{"digits of another script", "١٢", "", money.ErrSyntax},
		{"full-width digits", "１", "", money.ErrSyntax},
		{"a minus that is not ASCII", "−1", "", money.ErrSyntax},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := money.ParseDecimal(tt.literal)
			if err != tt.err || err == nil && d.String() != tt.want || err != nil && d != (money.Decimal{}) {
				t.Fatalf("ParseDecimal(%q) = %s, %v; want %s, %v", tt.literal, d, err, tt.want, tt.err)
			}
		})
	}
}

func TestDecimalIn(t *testing.T) {
	for _, tt := range []struct {
		name    string
		literal string
		in      money.Currency
		minor   int64
		err     error
	}{
		// Cutting a float times 100 gives one cent less for each of these.
		{"8.20 is 820 cents", "8.20", usd, 820, nil},
		{"19.99 is 1999 cents", "19.99", usd, 1999, nil},
		{"4.35 is 435 cents", "4.35", usd, 435, nil},
		{"1.15 is 115 cents", "1.15", usd, 115, nil},

		{"2400 yen are 2400 yen, not 24 and not 240000", "2400", jpy, 2400, nil},
		{"the yen has no fraction", "2400.5", jpy, 0, money.ErrPrecision},
		{"half a cent is refused, not cut and not rounded", "10.005", usd, 0, money.ErrPrecision},
		{"a whole number is whole however it is spelt", "1000.0", jpy, 1000, nil},
		{"three decimals of a three-digit currency", "1.234", kwd, 1234, nil},
		{"a fourth decimal is too many there", "1.2345", kwd, 0, money.ErrPrecision},
		{"zero is zero in any currency", "-0.00", usd, 0, nil},
		{"the sign is kept", "-5.00", usd, -500, nil},
		{"nineteen digits are too many, though 64 bits would hold them", "922337203685477.5807", clf, 0, money.ErrTooLarge},
		{"too many yen for a decimal", "9223372036854775807", jpy, 0, money.ErrTooLarge},
		{"more cents than 64 bits hold", "100000000000000000", usd, 0, money.ErrOverflow},
		{"fewer cents than 64 bits hold", "-100000000000000000", usd, 0, money.ErrOverflow},
		{"just as many cents as 64 bits hold in whole dollars", "92233720368547758", usd, 9223372036854775800, nil},
		{"one dollar more does not fit", "92233720368547759", usd, 0, money.ErrOverflow},
		{"as few cents as 64 bits hold in whole dollars", "-92233720368547758", usd, -9223372036854775800, nil},
		{"one dollar less does not fit", "-92233720368547759", usd, 0, money.ErrOverflow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := money.ParseDecimal(tt.literal)
			var a money.Amount
			if err == nil {
				a, err = d.In(tt.in)
			}
			if err != tt.err || err == nil && a != money.FromMinor(tt.minor, tt.in) {
				t.Fatalf("%s in %s = %s (%d), %v; want %d, %v", tt.literal, tt.in, a, a.Minor(), err, tt.minor, tt.err)
			}
		})
	}
}

func TestDecimalCmp(t *testing.T) {
	for _, tt := range []struct {
		name    string
		literal string
		major   int64
		want    int
	}{
		{"equal", "1000000", 1_000_000, 0},
		{"a cent over the bound is over", "1000000.01", 1_000_000, 1},
		{"a cent under the bound is under", "999999.99", 1_000_000, -1},
		{"the smallest number above zero is above", "0.000000000000000001", 0, 1},
		{"the largest number below zero is below", "-0.000000000000000001", 0, -1},
		{"minus zero is zero", "-0.0", 0, 0},
		{"a fraction below a negative bound is below", "-1.5", -1, -1},
		{"a fraction above a negative bound is above", "-1.5", -2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := decimal(t, tt.literal).Cmp(tt.major); got != tt.want {
				t.Fatalf("%s against %d is %d, want %d", tt.literal, tt.major, got, tt.want)
			}
		})
	}
}

func TestDecimalDecimals(t *testing.T) {
	for literal, want := range map[string]int{"0": 0, "-0.00": 0, "1.20": 1, "1.23": 2, "12e-3": 3, "100": 0, "1e-18": 18} {
		if d := decimal(t, literal); d.Decimals() != want {
			t.Errorf("%s has %d decimals, want %d", literal, d.Decimals(), want)
		}
	}
}

func TestAmountPrints(t *testing.T) {
	for _, tt := range []struct {
		name          string
		amount        money.Amount
		major, string string
	}{
		{"a JSON number has no trailing zeros, a person's has", money.FromMinor(49990, usd), "499.9", "499.90 USD"},
		{"whole units have no point in JSON", money.FromMinor(50000, usd), "500", "500.00 USD"},
		{"less than a unit has a zero before the point", money.FromMinor(5, usd), "0.05", "0.05 USD"},
		{"nothing", money.FromMinor(0, usd), "0", "0.00 USD"},
		{"less than nothing", money.FromMinor(-5, usd), "-0.05", "-0.05 USD"},
		{"no point without decimals, and zeros that count stay", money.FromMinor(2400, jpy), "2400", "2400 JPY"},
		{"three decimals", money.FromMinor(1, kwd), "0.001", "0.001 KWD"},
		{"the largest", money.FromMinor(math.MaxInt64, usd), "92233720368547758.07", "92233720368547758.07 USD"},
		{"the smallest", money.FromMinor(math.MinInt64, usd), "-92233720368547758.08", "-92233720368547758.08 USD"},
		{"no currency", money.Amount{}, "0", "0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if m, s := tt.amount.Major(), tt.amount.String(); m != tt.major || s != tt.string {
				t.Fatalf("got %s and %q, want %s and %q", m, s, tt.major, tt.string)
			}
		})
	}
}

func TestArithmetic(t *testing.T) {
	cents := func(n int64) money.Amount { return money.FromMinor(n, usd) }
	for _, tt := range []struct {
		name string
		do   func() (money.Amount, error)
		want money.Amount
		err  error
	}{
		{"a sum that fits exactly", func() (money.Amount, error) { return cents(math.MaxInt64 - 1).Add(cents(1)) }, cents(math.MaxInt64), nil},
		{"a sum one too large does not wrap", func() (money.Amount, error) { return cents(math.MaxInt64).Add(cents(1)) }, money.Amount{}, money.ErrOverflow},
		{"a sum one too small does not wrap", func() (money.Amount, error) { return cents(math.MinInt64).Add(cents(-1)) }, money.Amount{}, money.ErrOverflow},
		{"a difference that fits exactly", func() (money.Amount, error) { return cents(-1).Sub(cents(math.MinInt64)) }, cents(math.MaxInt64), nil},
		{"a difference one too large does not wrap", func() (money.Amount, error) { return cents(0).Sub(cents(math.MinInt64)) }, money.Amount{}, money.ErrOverflow},
		{"the smallest less itself is nothing", func() (money.Amount, error) { return cents(math.MinInt64).Sub(cents(math.MinInt64)) }, cents(0), nil},
		{"two currencies are not added", func() (money.Amount, error) { return cents(1).Add(money.FromMinor(1, jpy)) }, money.Amount{}, money.ErrMismatch},
		{"two currencies are not subtracted", func() (money.Amount, error) { return cents(1).Sub(money.FromMinor(1, jpy)) }, money.Amount{}, money.ErrMismatch},
		{"no currency is a currency of its own", func() (money.Amount, error) { return cents(1).Add(money.Amount{}) }, money.Amount{}, money.ErrMismatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := tt.do(); got != tt.want || err != tt.err {
				t.Fatalf("got %s, %v; want %s, %v", got, err, tt.want, tt.err)
			}
		})
	}
	if _, err := cents(1).Cmp(money.FromMinor(1, jpy)); !errors.Is(err, money.ErrMismatch) {
		t.Errorf("two currencies were compared: %v", err)
	}
}

func TestThreeTimesTenCentsAreThirty(t *testing.T) {
	left := amount(t, "0.30", usd)
	for range 3 {
		var err error
		if left, err = left.Sub(amount(t, "0.10", usd)); err != nil {
			t.Fatal(err)
		}
	}
	if left.Sign() != 0 {
		t.Fatalf("%s is left of 0.30 less three times 0.10", left)
	}
}

func TestACurrencyOnRecordStays(t *testing.T) {
	for _, tt := range []struct {
		code   string
		digits int
		ok     bool
	}{
		{"USD", 2, true}, {"DEM", 2, true}, {"ISK", 2, true}, {"XXX", money.MaxDigits, true},
		{"usd", 2, false}, {"", 2, false}, {"US", 2, false}, {"USDX", 2, false}, {"USD", -1, false}, {"USD", money.MaxDigits + 1, false},
	} {
		c, err := money.RestoreCurrency(tt.code, tt.digits)
		if (err == nil) != tt.ok {
			t.Errorf("%q with %d digits: %v", tt.code, tt.digits, err)
		}
		if tt.ok && (c.String() != tt.code || c.Digits() != tt.digits) {
			t.Errorf("%q with %d digits became %s with %d", tt.code, tt.digits, c, c.Digits())
		}
	}
	usd, err := money.ParseCurrency("USD")
	if err != nil {
		t.Fatal(err)
	}
	if c, _ := money.RestoreCurrency("USD", 2); c != usd {
		t.Error("a currency that is still listed is not itself when it is restored")
	}
}
