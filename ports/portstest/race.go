//go:build race

package portstest

import "flag"

// raceSequences is how many random sequences a test runs under the race detector,
// which makes each five times as long: races show in few. -rapid.checks has the
// last word.
const raceSequences = "25"

func init() {
	if err := flag.Set("rapid.checks", raceSequences); err != nil {
		panic(err) // rapid has made the flag before
	}
}
