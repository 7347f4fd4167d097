// Package collector sets the garbage collector of the commands that serve.
package collector

import (
	"runtime/debug"
	"slices"
	"strings"
)

// percent lets the heap grow to five times what lives before it is collected:
// what a call leaves behind is small and dies at once, so that collecting it
// often only costs time.
const percent = 400

// Tune sets the garbage collector, unless the operator did in the environment,
// given as KEY=value.
func Tune(environ []string) {
	if !slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, "GOGC=") || strings.HasPrefix(e, "GOMEMLIMIT=") }) {
		debug.SetGCPercent(percent)
	}
}
