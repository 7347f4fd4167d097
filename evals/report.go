package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// report prints results as they come and keeps them for the files.
type report struct {
	out     io.Writer
	backend string
	results []result
}

func (r *report) add(res result) {
	r.results = append(r.results, res)
	switch {
	case res.Skipped != "":
		fmt.Fprintf(r.out, "SKIP  %s: %s\n", res.Case.Name, res.Skipped)
	case res.Err != nil:
		fmt.Fprintf(r.out, "FAIL  %s: %s\n", res.Case.Name, oneLine(res.Err))
	default:
		fmt.Fprintf(r.out, "PASS  %s\n", res.Case.Name)
	}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (r *report) counts() (passed, failed, skipped int) {
	for _, res := range r.results {
		switch {
		case res.Skipped != "":
			skipped++
		case res.Err != nil:
			failed++
		default:
			passed++
		}
	}
	return passed, failed, skipped
}

// close prints the figures. Skipped cases are not part of the rate.
func (r *report) close() {
	passed, failed, skipped := r.counts()
	rate := 100.0
	if passed+failed > 0 {
		rate = 100 * float64(passed) / float64(passed+failed)
	}
	fmt.Fprintf(r.out, "\n%d/%d cases passed (%.1f%%)\n", passed, passed+failed, rate)
	if skipped > 0 {
		fmt.Fprintf(r.out, "%d skipped\n", skipped)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed\n", passed, failed)
}

func (res result) status() string {
	switch {
	case res.Skipped != "":
		return "skipped"
	case res.Err != nil:
		return "failed"
	}
	return "passed"
}

// detail is why a case failed or was skipped.
func (res result) detail() string {
	if res.Err != nil {
		return oneLine(res.Err)
	}
	return res.Skipped
}

func (r *report) writeJSON(file string) error {
	type row struct {
		Subject string  `json:"subject"`
		Name    string  `json:"name"`
		Why     string  `json:"why"`
		File    string  `json:"file"`
		Status  string  `json:"status"`
		Detail  string  `json:"detail,omitempty"`
		Seconds float64 `json:"seconds"`
	}
	doc := struct {
		Backend string `json:"backend"`
		Passed  int    `json:"passed"`
		Failed  int    `json:"failed"`
		Skipped int    `json:"skipped"`
		Cases   []row  `json:"cases"`
	}{Backend: r.backend}
	doc.Passed, doc.Failed, doc.Skipped = r.counts()
	for _, res := range r.results {
		c := res.Case
		doc.Cases = append(doc.Cases, row{c.Subject, c.Name, c.Why, c.File, res.status(), res.detail(), seconds(res.Took)})
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

func (r *report) writeJUnit(file string) error {
	type text struct {
		Message string `xml:"message,attr"`
	}
	type testcase struct {
		Class   string  `xml:"classname,attr"`
		Name    string  `xml:"name,attr"`
		Seconds float64 `xml:"time,attr"`
		Failure *text   `xml:"failure"`
		Skipped *text   `xml:"skipped"`
		Stderr  string  `xml:"system-err,omitempty"`
	}
	type suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	var doc struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []*suite `xml:"testsuite"`
	}
	suites := map[string]*suite{}
	for _, res := range r.results {
		s := suites[res.Case.Subject]
		if s == nil {
			s = &suite{Name: "evals/" + res.Case.Subject}
			suites[res.Case.Subject] = s
			doc.Suites = append(doc.Suites, s)
		}
		row := testcase{Class: s.Name, Name: res.Case.Name, Seconds: seconds(res.Took)}
		s.Tests++
		switch res.status() {
		case "skipped":
			s.Skipped++
			row.Skipped = &text{res.Skipped}
		case "failed":
			s.Failures++
			row.Failure, row.Stderr = &text{res.detail()}, res.Logged
		}
		s.Cases = append(s.Cases, row)
	}
	data, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(xml.Header+string(data)+"\n"), 0o644)
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
