package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	// hotServers is how many servers refund one customer at once.
	hotServers = 4
	// hotRounds is how often they take turns with a single server.
	hotRounds = 5
)

// heat is what several servers did to one customer.
type heat struct {
	*book
	single, several []time.Duration // of each round, the same work
}

// hot refunds one customer n times through several servers at once and, in
// turns with it, another one as often through one server.
func hot(ctx context.Context, l ledger, n int, log io.Writer) (*heat, error) {
	const first = 50_000 // a number that the storm's customers do not have
	b, err := openBook(ctx, l, first, "USD", "USD")
	if err != nil {
		return nil, err
	}
	h := &heat{book: b}
	servers := make([]*client, hotServers)
	for i := range servers {
		if servers[i], err = l.serve(ctx); err != nil {
			return nil, err
		}
	}
	for round := range hotRounds {
		share := n*(round+1)/hotRounds - n*round/hotRounds
		several, err := h.refundAll(ctx, servers, b.customers[0], share)
		if err != nil {
			return nil, err
		}
		single, err := h.refundAll(ctx, servers[:1], b.customers[1], share)
		if err != nil {
			return nil, err
		}
		h.several, h.single = append(h.several, several), append(h.single, single)
		fmt.Fprintf(log, "round %d: %d refunds of one customer: %d servers %s, one server %s\n", round+1, share, hotServers, several, single)
	}
	for _, c := range servers {
		err = errors.Join(err, c.close())
	}
	if err != nil {
		return nil, err
	}
	fresh, err := l.serve(ctx)
	if err != nil {
		return nil, err
	}
	return h, errors.Join(h.recompare(ctx, l, fresh), fresh.close())
}

// hotCallers is how many calls are in flight to one server.
const hotCallers = 64

// refundAll asks for n refunds of the customer and returns how long that took.
func (h *heat) refundAll(ctx context.Context, servers []*client, cust *customer, n int) (time.Duration, error) {
	refunds := make([]*refund, n)
	for i := range refunds {
		refunds[i] = h.add(cust, fmt.Sprintf("hot-%d", len(h.refunds)), 1)
	}
	began := time.Now()
	err := each(refunds, hotCallers*len(servers), func(i int, r *refund) error {
		_, err := h.refund(ctx, servers[i%len(servers)], r, &h.acknowledged, false)
		return err
	})
	return time.Since(began), err
}

// ratio is the throughput of several servers to that of one, the median of the
// rounds.
func (h *heat) ratio() float64 {
	ratios := make([]float64, len(h.single))
	for i := range ratios {
		ratios[i] = h.single[i].Seconds() / h.several[i].Seconds()
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func (h *heat) print(w io.Writer) {
	fmt.Fprintf(w, "%d servers, one customer: throughput to that of one server %.2f (median of %d rounds)\n", hotServers, h.ratio(), hotRounds)
	h.findings.print(w)
}
