// Command prove runs the full count behind every promise of the project and
// prints the table of promises with their figures. It takes hours; it runs in
// chunks and goes on where it stopped, as long as the commit is the same.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
)

// promise is a sentence, the count that is behind it, and how to run it.
type promise struct {
	says  string
	count string
	run   []string // a command, run in the root of the project
	env   []string // added to the environment
	// forgives looks at the output of a command that failed: it may be no failure.
	forgives func(output string) bool
}

// fuzz runs one fuzz target for the full time.
func fuzz(says, target, dir string) promise {
	return promise{says: says, count: fuzzTime + " of fuzzing",
		run: []string{"go", "test", dir, "-run", "^$", "-fuzz", "^" + target + "$", "-fuzztime", fuzzTime}, forgives: timeWasUp}
}

// timeWasUp tells the end of the time from a finding: before Go 1.27 the fuzz
// engine can report that its own deadline passed as a failure, and then names
// no input (go.dev/issue/75804).
func timeWasUp(output string) bool {
	return strings.Contains(output, "context deadline exceeded") && !strings.Contains(output, "Failing input written") &&
		!strings.Contains(output, "panic") && !strings.Contains(output, "_test.go:")
}

// property runs property tests of a package with a count of checks.
func property(says, tests, dir, checks string) promise {
	return promise{says: says, count: checks + " generated cases for each", run: []string{"go", "test", dir, "-count=1", "-timeout", "60m", "-run", tests, "-rapid.checks", checks}}
}

const fuzzTime = "5m"

// done is what has been proved of a commit.
type done struct {
	Commit  string
	Seconds map[string]float64
}

func main() {
	pattern := flag.String("run", "", "only promises that match this regular expression")
	list := flag.Bool("list", false, "list the promises and exit")
	state := flag.String("state", "bin/prove.json", "where it is kept what is proved already")
	flag.Parse()
	filter, err := regexp.Compile(*pattern)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prove: -run:", err)
		os.Exit(2)
	}
	if *list {
		for _, p := range promises {
			fmt.Printf("%s: %s\n    %s\n", p.says, p.count, strings.Join(p.run, " "))
		}
		return
	}
	d := load(*state)
	failed := 0
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, p := range promises {
		if !filter.MatchString(p.says) {
			continue
		}
		seconds, proved := d.Seconds[p.says]
		if !proved {
			fmt.Printf("proving: %s (%s)\n", p.says, p.count)
			began := time.Now()
			c := exec.Command(p.run[0], p.run[1:]...)
			c.Env = append(os.Environ(), p.env...)
			output, err := c.CombinedOutput()
			seconds = time.Since(began).Seconds()
			if err != nil && !(p.forgives != nil && p.forgives(string(output))) {
				failed++
				fmt.Printf("%s\n%v\n", output, err)
				fmt.Fprintf(t, "BROKEN\t%s\t%s\t%.0f s\n", p.says, p.count, seconds)
				continue
			}
			d.Seconds[p.says] = seconds
			save(*state, d)
		}
		fmt.Fprintf(t, "holds\t%s\t%s\t%.0f s\n", p.says, p.count, seconds)
	}
	_ = t.Flush()
	if failed > 0 {
		os.Exit(1)
	}
}

// load returns what is proved of the commit that is checked out. A tree with
// changes is a commit of its own each time.
func load(file string) done {
	fresh := done{Commit: commit(), Seconds: map[string]float64{}}
	b, err := os.ReadFile(file)
	if err != nil {
		return fresh
	}
	var d done
	if json.Unmarshal(b, &d) != nil || d.Commit != fresh.Commit || d.Seconds == nil {
		return fresh
	}
	return d
}

func save(file string, d done) {
	if err := write(file, d); err != nil {
		fmt.Fprintln(os.Stderr, "prove: what is proved can not be kept:", err)
	}
}

func write(file string, d done) error {
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

func commit() string {
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	changes, err2 := exec.Command("git", "status", "--porcelain").Output()
	if err != nil || err2 != nil || len(changes) > 0 {
		return fmt.Sprintf("changed at %d", time.Now().UnixNano())
	}
	return strings.TrimSpace(string(head))
}
