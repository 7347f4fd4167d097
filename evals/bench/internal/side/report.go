package side

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Figures prints a benchmark's rows as a table.
func (o Outcome) Figures(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", o.Name, o.About)
	if o.Skipped != "" {
		fmt.Fprintf(w, "  SKIPPED: %s\n\n", o.Skipped)
		return
	}
	extras := []struct {
		title string
		text  func(row int) string
	}{
		{"p50", func(row int) string { return o.middle(row, func(s Sample) time.Duration { return s.P50 }) }},
		{"p99", func(row int) string { return o.middle(row, func(s Sample) time.Duration { return s.P99 }) }},
		{"CPU a call", func(row int) string { return o.middle(row, func(s Sample) time.Duration { return s.CPU }) }},
		{"peak memory", func(row int) string {
			if v := o.Spread(row, func(s Sample) float64 { return s.MaxRSS }).Median; v > 0 {
				return Megabytes.Text(v)
			}
			return ""
		}},
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.DiscardEmptyColumns)
	width := 0
	for _, r := range o.Rows {
		width = max(width, len(r.Name))
	}
	pad := func(s string) string { return "  " + s + strings.Repeat(" ", width-len(s)) }
	fmt.Fprint(t, pad(""), "\tmedian\tleast\tmost\t")
	for _, e := range extras {
		if e.text(0) != "" {
			fmt.Fprint(t, e.title, "\t")
		}
	}
	fmt.Fprintln(t)
	for i, r := range o.Rows {
		s := o.Spread(i, Value)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t", pad(r.Name), o.Unit.Text(s.Median), o.Unit.Text(s.Min), o.Unit.Text(s.Max))
		for _, e := range extras {
			if e.text(0) != "" {
				fmt.Fprint(t, e.text(i), "\t")
			}
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // to where the rest is printed
	fmt.Fprintln(w)
}

func (o Outcome) middle(row int, part func(Sample) time.Duration) string {
	return short(time.Duration(o.Spread(row, func(s Sample) float64 { return float64(part(s)) }).Median))
}

// Ratios prints the targets of all outcomes, each beside what was measured, and
// returns how many were missed.
func Ratios(w io.Writer, all []Outcome) (missed int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, o := range all {
		if o.Skipped != "" {
			fmt.Fprintf(t, "%s\tSKIPPED: %s\n", o.Name, o.Skipped)
			continue
		}
		for _, v := range o.Verdicts() {
			if !v.OK {
				missed++
			}
			fmt.Fprintln(t, strings.Join(o.line(v), "\t"))
		}
	}
	_ = t.Flush() // to where the rest is printed
	return missed
}

func (o Outcome) line(v Verdict) []string {
	base, ratio := "", ""
	number := func(x float64) string { return o.Unit.Text(x) }
	if v.Of != "" {
		number = func(x float64) string { return fmt.Sprintf("%.2f", x) }
		base = v.Of + " " + o.Unit.Text(v.Base)
		ratio = fmt.Sprintf("ratio %s (%s to %s)", number(v.Ratio), number(v.Least), number(v.Most))
	}
	var bounds []string
	verdict := ""
	if v.AtLeast > 0 {
		bounds, verdict = append(bounds, "want >= "+number(v.AtLeast)), "below"
	}
	if v.AtMost > 0 {
		bounds, verdict = append(bounds, "want <= "+number(v.AtMost)), "above"
	}
	if v.OK && verdict != "" {
		verdict = "ok"
	}
	if v.Aim > 0 {
		bounds = append(bounds, "aim "+number(v.Aim))
	}
	return []string{o.Name, v.Row + " " + o.Unit.Text(v.Figure), base, ratio, strings.Join(bounds, ", "), verdict}
}

// JSON returns an outcome for programs.
func (o Outcome) JSON() json.Marshaler { return outcomeJSON{o} }

type outcomeJSON struct{ o Outcome }

func (j outcomeJSON) MarshalJSON() ([]byte, error) {
	type row struct {
		Name             string
		Median, Min, Max float64
		Samples          []Sample // durations are nanoseconds
	}
	out := struct {
		Name, About string
		Unit        Unit
		Skipped     string `json:",omitempty"`
		Rows        []row
		Verdicts    []Verdict
	}{Name: j.o.Name, About: j.o.About, Unit: j.o.Unit, Skipped: j.o.Skipped}
	if j.o.Skipped == "" {
		out.Verdicts = j.o.Verdicts()
		for i, r := range j.o.Rows {
			s := j.o.Spread(i, Value)
			out.Rows = append(out.Rows, row{r.Name, s.Median, s.Min, s.Max, j.o.Samples[i]})
		}
	}
	return json.Marshal(out)
}
