package main

import (
	"context"
	"runtime/debug"
	"testing"

	"github.com/refundledger/refundledger/evals/bench/internal/load"
)

// The product alone, for a profile:
//
//	go test -run - -bench Refunds/memory -benchmem -cpuprofile cpu.prof
func BenchmarkRefunds(b *testing.B) {
	ctx := context.Background()
	debug.SetGCPercent(collectorPercent)
	if _, err := mapMemory(ctx); err != nil {
		b.Fatal(err)
	}
	for _, x := range []struct {
		name    string
		clients int
		fresh   func(context.Context) (product, error)
	}{
		{"memory", 64, freshMemory},
		{"sqlite", 64, files{b.TempDir()}.freshProduct},
	} {
		for _, customers := range []int{1, load.Customers} {
			name := x.name + "/many"
			if customers == 1 {
				name = x.name + "/hot"
			}
			b.Run(name, func(b *testing.B) {
				p, err := x.fresh(ctx)
				if err != nil {
					b.Fatal(err)
				}
				if err := p.openAll(ctx, customers); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				if _, err := (load.Plan{Clients: x.clients, Customers: customers, Calls: b.N, Ordered: x.name != "memory"}).Run(ctx, p); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
