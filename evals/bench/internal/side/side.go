// Package side measures a product and its floors side by side: in rounds, every
// row once a round and the order rotated, so that whatever else the machine
// does falls on all of them alike. Then it compares their medians.
package side

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Benchmark is one question: how does the product compare with the floors?
type Benchmark struct {
	Name  string // what -run matches
	About string // what one figure is
	Unit  Unit
	Rows  []Row
	Wants []Want
	// Setup, if any, runs before the first round, and what it returns after the
	// last. With [Skip] it leaves the benchmark out.
	Setup func(context.Context) (teardown func() error, err error)
}

// Row is one way to do the work: the product's or a floor's.
type Row struct {
	Name string
	// Measure does the work once and checks its answers: a wrong one is an error.
	Measure func(context.Context) (Sample, error)
}

// Sample is what one measurement of a row gave. All but Value may be zero.
type Sample struct {
	Value    float64       // in the benchmark's unit
	P50, P99 time.Duration // of one call
	CPU      time.Duration // of the server, for one call
	MaxRSS   float64       // of the server at the end, in MB
}

// Want is a target: the row's median over the median of the row Of, or the
// row's median itself if Of is empty, is at least or at most a number.
type Want struct {
	Row, Of         string
	AtLeast, AtMost float64 // one of them, or none where there is only an aim
	Aim             float64 // what is hoped for; shown, never judged
}

// Skip is the error of a Setup that leaves its benchmark out.
type Skip struct{ Why string }

func (s Skip) Error() string { return "skipped: " + s.Why }

// Outcome is what came of a benchmark.
type Outcome struct {
	Benchmark
	Samples [][]Sample // by row, then by round
	Skipped string     // why nothing was measured, or ""
	Took    time.Duration
}

// Run measures a benchmark in rounds. An error says which row broke.
func Run(ctx context.Context, b Benchmark, rounds int) (o Outcome, err error) {
	began := time.Now()
	o = Outcome{Benchmark: b, Samples: make([][]Sample, len(b.Rows))}
	if err := b.check(); err != nil {
		return o, err
	}
	if b.Setup != nil {
		teardown, err := b.Setup(ctx)
		if skip, ok := errors.AsType[Skip](err); ok {
			o.Skipped = skip.Why
			return o, nil
		}
		if err != nil {
			return o, fmt.Errorf("%s: setting up: %w", b.Name, err)
		}
		defer func() {
			if e := teardown(); e != nil && err == nil {
				err = fmt.Errorf("%s: tidying up: %w", b.Name, e)
			}
		}()
	}
	for round := range rounds {
		for i := range b.Rows {
			row := (i + round) % len(b.Rows)
			s, err := b.Rows[row].Measure(ctx)
			if err != nil {
				return o, fmt.Errorf("%s: %s: %w", b.Name, b.Rows[row].Name, err)
			}
			o.Samples[row] = append(o.Samples[row], s)
		}
	}
	o.Took = time.Since(began)
	return o, nil
}

// check finds a want that names no row, or wants nothing.
func (b Benchmark) check() error {
	for _, w := range b.Wants {
		if b.row(w.Row) < 0 || w.Of != "" && b.row(w.Of) < 0 {
			return fmt.Errorf("%s: a want compares %q with %q; the rows are %q", b.Name, w.Row, w.Of, b.names())
		}
		if w.AtLeast > 0 && w.AtMost > 0 || w.AtLeast == 0 && w.AtMost == 0 && w.Aim == 0 {
			return fmt.Errorf("%s: the want of %q is one of AtLeast and AtMost, or an Aim", b.Name, w.Row)
		}
	}
	return nil
}

func (b Benchmark) row(name string) int {
	return slices.IndexFunc(b.Rows, func(r Row) bool { return r.Name == name })
}

func (b Benchmark) names() []string {
	var names []string
	for _, r := range b.Rows {
		names = append(names, r.Name)
	}
	return names
}

// Spread is the middle, the least and the most of some figures.
type Spread struct{ Median, Min, Max float64 }

// SpreadOf needs at least one figure. Of an even number the lower middle counts.
func SpreadOf(figures []float64) Spread {
	s := slices.Sorted(slices.Values(figures))
	return Spread{s[(len(s)-1)/2], s[0], s[len(s)-1]}
}

// Spread returns the spread of one part of a row's samples.
func (o Outcome) Spread(row int, part func(Sample) float64) Spread {
	var figures []float64
	for _, s := range o.Samples[row] {
		figures = append(figures, part(s))
	}
	return SpreadOf(figures)
}

// Value is the part of a sample that is compared.
func Value(s Sample) float64 { return s.Value }

// Verdict is a want beside what was measured.
type Verdict struct {
	Want
	Figure, Base float64 // the medians of the two rows; Base is 1 without Of
	Ratio        float64
	Least, Most  float64 // the ratio in its worst and best single round
	OK           bool
}

// Verdicts judges the wants.
func (o Outcome) Verdicts() []Verdict {
	var all []Verdict
	for _, w := range o.Wants {
		row := o.row(w.Row)
		v := Verdict{Want: w, Figure: o.Spread(row, Value).Median, Base: 1}
		var by []float64
		for round, s := range o.Samples[row] {
			base := 1.0
			if w.Of != "" {
				base = o.Samples[o.row(w.Of)][round].Value
			}
			by = append(by, s.Value/base)
		}
		if w.Of != "" {
			v.Base = o.Spread(o.row(w.Of), Value).Median
		}
		spread := SpreadOf(by)
		v.Ratio, v.Least, v.Most = v.Figure/v.Base, spread.Min, spread.Max
		v.OK = v.Ratio >= w.AtLeast && (w.AtMost == 0 || v.Ratio <= w.AtMost)
		all = append(all, v)
	}
	return all
}
