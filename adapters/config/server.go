package config

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/payables"
)

// serverVariables are what refund-mcp reads.
type serverVariables struct {
	LogLevel         string `env:"LOG_LEVEL" envDefault:"info" doc:"debug, info, warn or error; anything else means info"`
	Transport        string `env:"MCP_TRANSPORT" envDefault:"stdio" doc:"how clients reach the server: stdio or http"`
	Toolsets         string `env:"TOOLSETS" envDefault:"refunds" doc:"toolsets to offer, with commas between them, or all: refunds, history, payables"`
	ReadOnly         string `env:"READ_ONLY" envDefault:"false" doc:"true: tools that change state are neither listed nor callable"`
	InputErrors      string `env:"INPUT_ERRORS" envDefault:"protocol" doc:"protocol: invalid arguments are JSON-RPC errors; tool: tool results with isError, for hosts that hide protocol errors from the model"`
	CallTimeout      string `env:"CALL_TIMEOUT" envDefault:"30s" doc:"how long one call may take, 100ms to 10m"`
	RequireKey       string `env:"REQUIRE_OPERATION_KEY" envDefault:"false" doc:"true: refuse calls that change state and whose host sent no operation key"`
	Backend          string `env:"LEDGER_BACKEND" envDefault:"memory" doc:"where the ledger is kept: memory (the demo customers and invoices, gone at exit), sqlite, postgres or rest (a service)"`
	MemoryData       string `env:"LEDGER_MEMORY_DATA" doc:"a folder of import files (customers, vendors, orders, receipts, invoices; .csv or .jsonl) that the backend memory starts with, in place of the demo records"`
	SQLitePath       string `env:"LEDGER_SQLITE_PATH" doc:"the file of the backend sqlite; it is made if it is not there"`
	PostgresURL      string `env:"LEDGER_POSTGRES_URL" secret:"true" doc:"the database of the backend postgres: postgres://user:password@host:5432/name"`
	RESTURL          string `env:"LEDGER_REST_URL" doc:"the service of the backend rest, such as https://ledger.example.com; http only on this machine"`
	RESTToken        string `env:"LEDGER_REST_TOKEN" secret:"true" doc:"the token for it, from refund-ledgerd token create"`
	RESTTimeout      string `env:"LEDGER_REST_TIMEOUT" envDefault:"10s" doc:"how long the service may take for one look-up or one write, retries included; a tool may need several of them. Below 5s it may be too short to be sure that nothing happened"`
	DefaultCurrency  string `env:"LEDGER_DEFAULT_CURRENCY" doc:"what invoices of the service are in that come without a currency, such as USD; without it they are refused"`
	TolerancePercent string `env:"PAYABLES_PRICE_TOLERANCE_PERCENT" envDefault:"2" doc:"how far an invoiced unit price may differ from the ordered one, in percent: 0 to 1000, at most 6 decimals"`
	ToleranceMinor   string `env:"PAYABLES_PRICE_TOLERANCE_MINOR" envDefault:"500" doc:"and at most by how many minor units (cents) for one unit; both must hold. With the backend rest those of the service count"`
	PrincipalID      string `env:"PRINCIPAL_ID" envDefault:"local" doc:"who calls on stdio"`
	Kind             string `env:"PRINCIPAL_KIND" envDefault:"agent" doc:"agent, human or service"`
	Tenant           string `env:"PRINCIPAL_TENANT" envDefault:"default" doc:"the tenant whose records are seen"`
	Scopes           string `env:"PRINCIPAL_SCOPES" envDefault:"all" doc:"what the caller may do, with commas between, or all: every scope that an agent may hold"`
	Plan             string `env:"PRINCIPAL_PLAN" envDefault:"pro" doc:"free, growth or pro"`
}

// Transport says how clients reach the server.
type Transport string

// The transports there are.
const (
	OverStdio Transport = "stdio"
	OverHTTP  Transport = "http"
)

// Server is the environment of refund-mcp, checked.
type Server struct {
	Transport            Transport
	LogLevel             slog.Level
	Toolsets             []string
	ReadOnly             bool
	InputErrorsAsResults bool
	CallTimeout          time.Duration
	RequireOperationKey  bool
	Store                Store
	Principal            access.Principal
	Tolerance            payables.Tolerance
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
	if slices.Contains(environ, "PRINCIPAL_SCOPES=") {
		v.Scopes = "" // empty is not absent here: the default would give every scope
	}
	p := problems{}
	c := Server{
		LogLevel:             level(v.LogLevel),
		Transport:            Transport(p.one("MCP_TRANSPORT", v.Transport, string(OverStdio), string(OverHTTP))),
		Toolsets:             p.list("TOOLSETS", v.Toolsets, toolsets),
		ReadOnly:             p.boolean("READ_ONLY", v.ReadOnly),
		InputErrorsAsResults: p.one("INPUT_ERRORS", v.InputErrors, "protocol", "tool") == "tool",
		CallTimeout:          p.duration("CALL_TIMEOUT", v.CallTimeout),
		RequireOperationKey:  p.boolean("REQUIRE_OPERATION_KEY", v.RequireKey),
		Store:                p.store(v.Backend, v.MemoryData, v.SQLitePath, v.PostgresURL, Memory, SQLite, Postgres, REST),
		Shown:                shown(v),
	}
	c.Store.Service = p.service(c.Store.Backend, v.RESTURL, v.RESTToken, v.RESTTimeout, v.DefaultCurrency)
	c.Principal = p.principal(v)
	c.Tolerance = p.tolerance(v.TolerancePercent, v.ToleranceMinor)
	return c, errors.Join(p...)
}

// tolerance reads how far prices may differ.
func (p *problems) tolerance(percent, minor string) payables.Tolerance {
	part, err := payables.ParsePercent(percent)
	if err != nil {
		p.add("PAYABLES_PRICE_TOLERANCE_PERCENT", "%w", err)
	}
	most, err := strconv.ParseInt(minor, 10, 64)
	if err != nil || most < 0 || most > payables.MaxMinor {
		p.add("PAYABLES_PRICE_TOLERANCE_MINOR", "must be a whole number of 0 to %d", int64(payables.MaxMinor))
	}
	return payables.Tolerance{Percent: part, Minor: most}
}

// ServerVariables documents what refund-mcp reads.
func ServerVariables() []Variable { return documentation[serverVariables]() }

func (p *problems) principal(v serverVariables) access.Principal {
	before := len(*p)
	tenant, err := access.ParseTenant(v.Tenant)
	if err != nil {
		p.add("PRINCIPAL_TENANT", "is not valid: %w", err)
	}
	if err := access.CheckID(v.PrincipalID); err != nil {
		p.add("PRINCIPAL_ID", "is not valid: %w", err)
	}
	kind, err := access.ParseKind(v.Kind)
	if err != nil {
		p.add("PRINCIPAL_KIND", "is not valid: %w", err)
	}
	plan, err := access.ParsePlan(v.Plan)
	if err != nil {
		p.add("PRINCIPAL_PLAN", "is not valid: %w", err)
	}
	scopes := p.scopes(v.Scopes)
	if forbidden := access.Forbidden(kind, scopes); len(forbidden) > 0 {
		p.add("PRINCIPAL_SCOPES", "can not be held by a principal of kind %s: %s", kind, strings.Join(forbidden, ", "))
	}
	if len(*p) > before {
		return access.Principal{}
	}
	who, err := access.NewPrincipal(tenant, v.PrincipalID, kind, scopes, plan, "")
	if err != nil {
		p.add("PRINCIPAL_ID", "makes no principal: %w", err)
	}
	return who
}

// scopes reads a list of scopes. An empty list is no list: who clears it does
// not mean all.
func (p *problems) scopes(list string) access.Scopes {
	if strings.TrimSpace(list) == "all" {
		return access.AgentScopes()
	}
	var scopes []access.Scope
	for name := range strings.SplitSeq(list, ",") {
		scope, err := access.ParseScope(strings.TrimSpace(name))
		if err != nil {
			p.add("PRINCIPAL_SCOPES", "is not valid: %w", err)
		}
		scopes = append(scopes, scope)
	}
	return access.ScopesOf(scopes...)
}
