// Package config reads the environment, once, and reports every problem of it
// together. The same declarations print the table of `refund-mcp --help` and of
// the README.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/refundledger/refundledger/domain/access"
)

// variables are the environment as it is written. A tag secret masks the value
// where settings are shown.
type variables struct {
	LogLevel    string `env:"LOG_LEVEL" envDefault:"info" doc:"debug, info, warn or error; anything else means info"`
	Transport   string `env:"MCP_TRANSPORT" envDefault:"stdio" doc:"how clients reach the server: stdio"`
	Toolsets    string `env:"TOOLSETS" envDefault:"refunds" doc:"toolsets to offer, with commas between them, or all: refunds, history"`
	ReadOnly    string `env:"READ_ONLY" envDefault:"false" doc:"true: tools that change state are neither listed nor callable"`
	InputErrors string `env:"INPUT_ERRORS" envDefault:"protocol" doc:"protocol: invalid arguments are JSON-RPC errors; tool: tool results with isError, for hosts that hide protocol errors from the model"`
	CallTimeout string `env:"CALL_TIMEOUT" envDefault:"30s" doc:"how long one call may take, 100ms to 10m"`
	RequireKey  string `env:"REQUIRE_OPERATION_KEY" envDefault:"false" doc:"true: refuse calls that change state and whose host sent no operation key"`
	Backend     string `env:"LEDGER_BACKEND" envDefault:"memory" doc:"where the ledger is: memory (demo data, gone at exit)"`
	PrincipalID string `env:"PRINCIPAL_ID" envDefault:"local" doc:"who calls on stdio"`
	Kind        string `env:"PRINCIPAL_KIND" envDefault:"agent" doc:"agent, human or service"`
	Tenant      string `env:"PRINCIPAL_TENANT" envDefault:"default" doc:"the tenant whose records are seen"`
	Scopes      string `env:"PRINCIPAL_SCOPES" envDefault:"all" doc:"what the caller may do, with commas between: every scope that an agent may hold is all"`
	Plan        string `env:"PRINCIPAL_PLAN" envDefault:"pro" doc:"free, growth or pro"`
}

// Backend says where the ledger is kept.
type Backend string

// The backends there are.
const (
	Memory Backend = "memory"
)

// Config is the environment, checked.
type Config struct {
	LogLevel             slog.Level
	Toolsets             []string
	ReadOnly             bool
	InputErrorsAsResults bool
	CallTimeout          time.Duration
	RequireOperationKey  bool
	Backend              Backend
	Principal            access.Principal

	shown [][2]string
}

// Bounds of CALL_TIMEOUT.
const (
	minCallTimeout = 100 * time.Millisecond
	maxCallTimeout = 10 * time.Minute
)

// Parse reads the environment, given as KEY=value. toolsets are those there
// are. Its error names every variable that is wrong and the rule it breaks.
func Parse(environ, toolsets []string) (Config, error) {
	given := map[string]string{}
	for _, e := range environ {
		if k, v, ok := strings.Cut(e, "="); ok {
			given[k] = v
		}
	}
	v, err := env.ParseAsWithOptions[variables](env.Options{Environment: given})
	if err != nil {
		return Config{}, err
	}
	p := problems{}
	c := Config{
		LogLevel:             level(v.LogLevel),
		Toolsets:             p.list("TOOLSETS", v.Toolsets, toolsets),
		ReadOnly:             p.boolean("READ_ONLY", v.ReadOnly),
		InputErrorsAsResults: p.one("INPUT_ERRORS", v.InputErrors, "protocol", "tool") == "tool",
		CallTimeout:          p.duration("CALL_TIMEOUT", v.CallTimeout),
		RequireOperationKey:  p.boolean("REQUIRE_OPERATION_KEY", v.RequireKey),
		Backend:              Backend(p.one("LEDGER_BACKEND", v.Backend, string(Memory))),
	}
	p.one("MCP_TRANSPORT", v.Transport, "stdio")
	c.Principal = p.principal(v)
	c.shown = v.table()
	return c, errors.Join(p...)
}

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
	if err != nil || d < minCallTimeout || d > maxCallTimeout {
		p.add(name, "must be a duration from %s to %s such as 30s, not %q", minCallTimeout, maxCallTimeout, value)
	}
	return d
}

func (p *problems) list(name, value string, allowed []string) []string {
	if value == "all" {
		return allowed
	}
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		if !slices.Contains(allowed, item) {
			p.add(name, "knows %s, not %q", strings.Join(allowed, ", "), item)
		}
		items = append(items, item)
	}
	return items
}

func (p *problems) principal(v variables) access.Principal {
	before := len(*p)
	tenant, err := access.ParseTenant(v.Tenant)
	if err != nil {
		p.add("PRINCIPAL_TENANT", "is not valid: %w", err)
	}
	kind, err := access.ParseKind(v.Kind)
	if err != nil {
		p.add("PRINCIPAL_KIND", "is not valid: %w", err)
	}
	plan, err := access.ParsePlan(v.Plan)
	if err != nil {
		p.add("PRINCIPAL_PLAN", "is not valid: %w", err)
	}
	scopes := access.AgentScopes()
	if v.Scopes != "all" {
		var list []access.Scope
		for name := range strings.SplitSeq(v.Scopes, ",") {
			scope, err := access.ParseScope(strings.TrimSpace(name))
			if err != nil {
				p.add("PRINCIPAL_SCOPES", "is not valid: %w", err)
			}
			list = append(list, scope)
		}
		scopes = access.ScopesOf(list...)
	}
	if len(*p) > before {
		return access.Principal{}
	}
	who, err := access.NewPrincipal(tenant, v.PrincipalID, kind, scopes, plan, "")
	if err != nil {
		p.add("PRINCIPAL_ID, PRINCIPAL_KIND and PRINCIPAL_SCOPES", "do not go together: %w", err)
	}
	return who
}

// Shown returns the effective settings, each variable and its value, secrets masked.
func (c Config) Shown() [][2]string { return c.shown }

func (v variables) table() [][2]string {
	var rows [][2]string
	values := reflect.ValueOf(v)
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

// Variable is one row of the documentation.
type Variable struct{ Name, Default, Meaning string }

// Variables returns what can be configured, for --help and the README.
func Variables() []Variable {
	var rows []Variable
	for f := range reflect.TypeFor[variables]().Fields() {
		rows = append(rows, Variable{f.Tag.Get("env"), f.Tag.Get("envDefault"), f.Tag.Get("doc")})
	}
	return rows
}
