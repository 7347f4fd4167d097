// Package config reads the environment, once, and reports every problem of it
// together. The same declarations print the tables of --help and of the README.
package config

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// parse reads the environment, given as KEY=value, into a struct whose fields
// are texts with the tags env, envDefault, doc and, to mask it where settings
// are shown, secret.
func parse[T any](environ []string) (T, error) {
	given := map[string]string{}
	for _, e := range environ {
		if k, v, ok := strings.Cut(e, "="); ok {
			given[k] = v
		}
	}
	return env.ParseAsWithOptions[T](env.Options{Environment: given})
}

// Bounds of durations.
const (
	minTimeout = 100 * time.Millisecond
	maxTimeout = 10 * time.Minute
)

// level falls back to info without a word: a log line at start would be one
// that nobody asked for.
func level(s string) slog.Level {
	switch s {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// problems collects what is wrong, one error for each variable.
type problems []error

func (p *problems) add(name, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s "+format, append([]any{name}, args...)...))
}

func (p *problems) one(name, value string, allowed ...string) string {
	if !slices.Contains(allowed, value) {
		p.add(name, "must be %s, not %q", strings.Join(allowed, " or "), value)
	}
	return value
}

func (p *problems) boolean(name, value string) bool {
	return p.one(name, value, "true", "false") == "true"
}

func (p *problems) duration(name, value string) time.Duration {
	d, err := time.ParseDuration(value)
	if err != nil || d < minTimeout || d > maxTimeout {
		p.add(name, "must be a duration from %s to %s such as 30s, not %q", minTimeout, maxTimeout, value)
	}
	return d
}

func (p *problems) list(name, value string, allowed []string) []string {
	if strings.TrimSpace(value) == "all" {
		return allowed
	}
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if !slices.Contains(allowed, item) {
			p.add(name, "knows %s and all, not %q", strings.Join(allowed, ", "), item)
		}
		items = append(items, item)
	}
	return items
}

// Variable is one row of the documentation.
type Variable struct{ Name, Default, Meaning string }

func documentation[T any]() []Variable {
	var rows []Variable
	for f := range reflect.TypeFor[T]().Fields() {
		rows = append(rows, Variable{f.Tag.Get("env"), f.Tag.Get("envDefault"), f.Tag.Get("doc")})
	}
	return rows
}

// shown lists each variable and its value, secrets masked.
func shown(variables any) [][2]string {
	var rows [][2]string
	values := reflect.ValueOf(variables)
	for i := range values.NumField() {
		f := values.Type().Field(i)
		value := values.Field(i).String()
		if f.Tag.Get("secret") != "" && value != "" {
			value = "***"
		}
		rows = append(rows, [2]string{f.Tag.Get("env"), value})
	}
	return rows
}
