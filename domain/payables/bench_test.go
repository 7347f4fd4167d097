package payables_test

import (
	"fmt"
	"testing"

	"github.com/refundledger/refundledger/domain/payables"
)

// BenchmarkMatch matches an invoice with an order of as many lines: all agree,
// every fourth in another unit, or every line is found to be wrong.
func BenchmarkMatch(b *testing.B) {
	for _, kind := range []struct{ name, unit, price string }{{"agrees", "EA", "10.00"}, {"units", "EA", "10.00"}, {"wrong", "EA", "11.00"}} {
		for _, n := range []int{10, 100, 1_000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, n), func(b *testing.B) {
				o, i := order(usd), invoice(usd)
				for k := range n {
					unit, price := kind.unit, kind.price
					if kind.name == "units" && k%4 == 0 {
						unit, price = "DOZEN", "120.00"
					}
					l := orderLine(usd, "1 24 EA 10.00 received=24 DOZEN=12/1")
					l.Line = k + 1
					o.Lines = append(o.Lines, l)
					x := invoice(usd, "1 2 "+unit+" "+price).Lines[0]
					x.Line, x.OrderLine = k+1, n-k // the other way round
					i.Lines = append(i.Lines, x)
				}
				i = priced(i)
				facts := payables.Facts{Order: &o}
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					m, err := payables.Match(i, facts, tolerance)
					if err != nil || m.Blocking != (kind.name == "wrong") {
						b.Fatal(m, err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/line")
			})
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	s := usd10("1 10 EA 10.00")
	r := request("approve", "CLEAN_MATCH")
	for b.Loop() {
		if _, err := payables.Decide(s.invoice, vendor(), s.facts, r, payables.Authority{Tolerance: s.t}, op); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseNumber(b *testing.B) {
	for b.Loop() {
		if _, err := payables.ParseNumber("INV-0071/000345"); err != nil {
			b.Fatal(err)
		}
	}
}
