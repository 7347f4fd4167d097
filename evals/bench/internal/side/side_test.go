package side

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// fixed is a row that gives its figures in order, and notes that it was asked.
func fixed(name string, asked *[]string, figures ...float64) Row {
	return Row{Name: name, Measure: func(context.Context) (Sample, error) {
		*asked = append(*asked, name)
		s := Sample{Value: figures[0], P50: time.Millisecond}
		figures = figures[1:]
		return s, nil
	}}
}

func TestEachRowComesOnceARoundAndEachIsFirstInTurn(t *testing.T) {
	var asked []string
	b := Benchmark{Name: "b", Unit: PerSecond, Rows: []Row{fixed("x", &asked, 1, 1, 1), fixed("y", &asked, 1, 1, 1), fixed("z", &asked, 1, 1, 1)}}
	if _, err := Run(t.Context(), b, 3); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(asked, ""), "xyz"+"yzx"+"zxy"; got != want {
		t.Errorf("measured in the order %s, want %s", got, want)
	}
}

func TestReport(t *testing.T) {
	var asked []string
	o, err := Run(t.Context(), Benchmark{
		Name: "speed", About: "things made", Unit: PerSecond,
		Rows: []Row{fixed("product", &asked, 61_000, 40_000, 70_000), fixed("floor", &asked, 5_000, 4_000, 10_000)},
		Wants: []Want{
			{Row: "product", Of: "floor", AtLeast: 4},
			{Row: "product", Of: "floor", AtLeast: 20, Aim: 30},
			{Row: "product", Of: "floor", AtMost: 2},
			{Row: "product", Of: "floor", Aim: 13},
			{Row: "product", AtMost: 100_000},
		},
	}, 3)
	if err != nil {
		t.Fatal(err)
	}
	skipped := Outcome{Benchmark: Benchmark{Name: "other", About: "else"}, Skipped: "no server"}
	var got strings.Builder
	o.Figures(&got)
	skipped.Figures(&got)
	missed := Ratios(&got, []Outcome{o, skipped})
	fmt.Fprintln(&got, "missed:", missed)
	const want = `speed: things made
              median     least      most     p50
    product  61,000/s  40,000/s  70,000/s  1.0 ms
    floor     5,000/s   4,000/s  10,000/s  1.0 ms

other: else
  SKIPPED: no server

speed  product 61,000/s   floor 5,000/s        ratio 12.20 (7.00 to 12.20)  want >= 4.00             ok
speed  product 61,000/s   floor 5,000/s        ratio 12.20 (7.00 to 12.20)  want >= 20.00, aim 30.00 below
speed  product 61,000/s   floor 5,000/s        ratio 12.20 (7.00 to 12.20)  want <= 2.00             above
speed  product 61,000/s   floor 5,000/s        ratio 12.20 (7.00 to 12.20)  aim 13.00
speed  product 61,000/s                                                     want <= 100,000/s        ok
other  SKIPPED: no server
missed: 2
`
	if words(got.String()) != words(want) {
		t.Errorf("printed\n%s\nwant (but for spaces)\n%s", got.String(), want)
	}
}

// words leaves the widths of columns out of it.
func words(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestASetupThatSkipsLeavesTheBenchmarkOut(t *testing.T) {
	o, err := Run(t.Context(), Benchmark{Name: "b", Setup: func(context.Context) (func() error, error) { return nil, Skip{"no server"} }}, 3)
	if err != nil || o.Skipped != "no server" {
		t.Errorf("skipped for %q, error %v", o.Skipped, err)
	}
}

func TestABrokenRowIsAnErrorAndIsTidiedUpAfter(t *testing.T) {
	wrong, tidied := errors.New("a wrong answer"), false
	_, err := Run(t.Context(), Benchmark{
		Name:  "b",
		Setup: func(context.Context) (func() error, error) { return func() error { tidied = true; return nil }, nil },
		Rows:  []Row{{"row", func(context.Context) (Sample, error) { return Sample{}, wrong }}},
	}, 3)
	if !errors.Is(err, wrong) || !strings.Contains(err.Error(), "b: row:") || !tidied {
		t.Errorf("error %v, tidied up: %v", err, tidied)
	}
}

func TestAWantThatNamesNoRowOrWantsNothingIsAnError(t *testing.T) {
	rows := []Row{{Name: "x"}, {Name: "y"}}
	for _, w := range []Want{{Row: "X", Of: "y", AtLeast: 1}, {Row: "x", Of: "z", AtLeast: 1}, {Row: "x", Of: "y"}, {Row: "x", AtLeast: 1, AtMost: 2}} {
		if _, err := Run(t.Context(), Benchmark{Name: "b", Rows: rows, Wants: []Want{w}}, 0); err == nil {
			t.Errorf("%+v is accepted", w)
		}
	}
}
