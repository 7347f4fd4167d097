package config

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/refundledger/refundledger/domain/access"
)

// serverVariables are what refund-mcp reads.
type serverVariables struct {
	LogLevel    string `env:"LOG_LEVEL" envDefault:"info" doc:"debug, info, warn or error; anything else means info"`
	Transport   string `env:"MCP_TRANSPORT" envDefault:"stdio" doc:"how clients reach the server: stdio"`
	Toolsets    string `env:"TOOLSETS" envDefault:"refunds" doc:"toolsets to offer, with commas between them, or all: refunds, history"`
	ReadOnly    string `env:"READ_ONLY" envDefault:"false" doc:"true: tools that change state are neither listed nor callable"`
	InputErrors string `env:"INPUT_ERRORS" envDefault:"protocol" doc:"protocol: invalid arguments are JSON-RPC errors; tool: tool results with isError, for hosts that hide protocol errors from the model"`
	CallTimeout string `env:"CALL_TIMEOUT" envDefault:"30s" doc:"how long one call may take, 100ms to 10m"`
	RequireKey  string `env:"REQUIRE_OPERATION_KEY" envDefault:"false" doc:"true: refuse calls that change state and whose host sent no operation key"`
	Backend     string `env:"LEDGER_BACKEND" envDefault:"memory" doc:"where the ledger is kept: memory (the demo customers, gone at exit), sqlite or postgres"`
	SQLitePath  string `env:"LEDGER_SQLITE_PATH" doc:"the file of the backend sqlite; it is made if it is not there"`
	PostgresURL string `env:"LEDGER_POSTGRES_URL" secret:"true" doc:"the database of the backend postgres: postgres://user:password@host:5432/name"`
	PrincipalID string `env:"PRINCIPAL_ID" envDefault:"local" doc:"who calls on stdio"`
	Kind        string `env:"PRINCIPAL_KIND" envDefault:"agent" doc:"agent, human or service"`
	Tenant      string `env:"PRINCIPAL_TENANT" envDefault:"default" doc:"the tenant whose records are seen"`
	Scopes      string `env:"PRINCIPAL_SCOPES" envDefault:"all" doc:"what the caller may do, with commas between: every scope that an agent may hold is all"`
	Plan        string `env:"PRINCIPAL_PLAN" envDefault:"pro" doc:"free, growth or pro"`
}

// Server is the environment of refund-mcp, checked.
type Server struct {
	LogLevel             slog.Level
	Toolsets             []string
	ReadOnly             bool
	InputErrorsAsResults bool
	CallTimeout          time.Duration
	RequireOperationKey  bool
	Store                Store
	Principal            access.Principal
	// Shown are the effective settings, each variable and its value, secrets masked.
	Shown [][2]string
}

// ParseServer reads the environment, given as KEY=value. toolsets are those
// there are. Its error names every variable that is wrong and the rule it breaks.
func ParseServer(environ, toolsets []string) (Server, error) {
	v, err := parse[serverVariables](environ)
	if err != nil {
		return Server{}, err
	}
	p := problems{}
	c := Server{
		LogLevel:             level(v.LogLevel),
		Toolsets:             p.list("TOOLSETS", v.Toolsets, toolsets),
		ReadOnly:             p.boolean("READ_ONLY", v.ReadOnly),
		InputErrorsAsResults: p.one("INPUT_ERRORS", v.InputErrors, "protocol", "tool") == "tool",
		CallTimeout:          p.duration("CALL_TIMEOUT", v.CallTimeout),
		RequireOperationKey:  p.boolean("REQUIRE_OPERATION_KEY", v.RequireKey),
		Store:                p.store(v.Backend, v.SQLitePath, v.PostgresURL, Memory, SQLite, Postgres),
		Shown:                shown(v),
	}
	p.one("MCP_TRANSPORT", v.Transport, "stdio")
	c.Principal = p.principal(v)
	return c, errors.Join(p...)
}

// ServerVariables documents what refund-mcp reads.
func ServerVariables() []Variable { return documentation[serverVariables]() }

func (p *problems) principal(v serverVariables) access.Principal {
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
