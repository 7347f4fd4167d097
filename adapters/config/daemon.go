package config

import (
	"errors"
	"log/slog"

	"github.com/refundledger/refundledger/domain/payables"
)

// Backend says where the ledger is kept.
type Backend string

// The backends there are.
const (
	Memory   Backend = "memory"
	SQLite   Backend = "sqlite"
	Postgres Backend = "postgres"
)

// Store says where the ledger is kept.
type Store struct {
	Backend     Backend
	MemoryData  string // the folder of files that the backend memory starts with; the demo records if empty
	SQLitePath  string
	PostgresURL string
	Service     Service // of the backend rest
}

// store checks that what the backend needs is there.
func (p *problems) store(backend, data, path, url string, allowed ...Backend) Store {
	var names []string
	for _, b := range allowed {
		names = append(names, string(b))
	}
	s := Store{Backend: Backend(p.one("LEDGER_BACKEND", backend, names...)), MemoryData: data, SQLitePath: path, PostgresURL: url}
	if s.Backend != Memory && data != "" {
		p.add("LEDGER_MEMORY_DATA", "is for the backend memory; the others have refund-ledgerd import")
	}
	if s.Backend == SQLite && path == "" {
		p.add("LEDGER_SQLITE_PATH", "is missing: the backend sqlite needs the path of its file")
	}
	if s.Backend == Postgres && url == "" {
		p.add("LEDGER_POSTGRES_URL", "is missing: the backend postgres needs the address of its database")
	}
	return s
}

// daemonVariables are what refund-ledgerd reads.
type daemonVariables struct {
	LogLevel         string `env:"LOG_LEVEL" envDefault:"info" doc:"debug, info, warn or error; anything else means info"`
	Backend          string `env:"LEDGER_BACKEND" envDefault:"sqlite" doc:"where the ledger is kept: sqlite or postgres; serve knows memory too, with the demo customers and invoices"`
	MemoryData       string `env:"LEDGER_MEMORY_DATA" doc:"a folder of import files that the backend memory starts with, in place of the demo records"`
	SQLitePath       string `env:"LEDGER_SQLITE_PATH" envDefault:"refund-ledger.db" doc:"the file of the backend sqlite; it is made if it is not there"`
	PostgresURL      string `env:"LEDGER_POSTGRES_URL" secret:"true" doc:"the database of the backend postgres: postgres://user:password@host:5432/name"`
	Addr             string `env:"LEDGERD_ADDR" envDefault:"127.0.0.1:3344" doc:"where serve listens, without TLS: what is beyond this machine needs a proxy with TLS before it"`
	Tokens           string `env:"LEDGERD_TOKENS" envDefault:"refund-ledger.tokens" doc:"the file of hashed tokens, made by token create; serve reads it again when it changes"`
	MaxInFlight      string `env:"LEDGERD_MAX_IN_FLIGHT" envDefault:"512" doc:"how many requests serve has at work at once; the next is answered 503"`
	TolerancePercent string `env:"PAYABLES_PRICE_TOLERANCE_PERCENT" envDefault:"2" doc:"for serve: how far an invoiced unit price may differ from the ordered one, in percent: 0 to 1000, at most 6 decimals; its decisions are made under this one, whatever its clients have"`
	ToleranceMinor   string `env:"PAYABLES_PRICE_TOLERANCE_MINOR" envDefault:"500" doc:"and at most by how many minor units (cents) for one unit; both must hold"`
	Token            string `env:"LEDGER_REST_TOKEN" secret:"true" doc:"the token that check uses"`
}

// Daemon is the environment of refund-ledgerd, checked.
type Daemon struct {
	LogLevel slog.Level
	Store    Store
	Serving  Serving
	// Tolerance is that of the decisions that serve makes.
	Tolerance payables.Tolerance
	// Token is that of a service to check, or empty.
	Token string
	// Shown are the effective settings, each variable and its value, secrets masked.
	Shown [][2]string
}

// ParseDaemon reads the environment, given as KEY=value. Its error names every
// variable that is wrong and the rule it breaks.
func ParseDaemon(environ []string) (Daemon, error) {
	v, err := parse[daemonVariables](environ)
	if err != nil {
		return Daemon{}, err
	}
	p := problems{}
	d := Daemon{
		LogLevel: level(v.LogLevel), Store: p.store(v.Backend, v.MemoryData, v.SQLitePath, v.PostgresURL, SQLite, Postgres, Memory),
		Serving: p.serving(v.Addr, v.Tokens, v.MaxInFlight), Tolerance: p.tolerance(v.TolerancePercent, v.ToleranceMinor), Token: v.Token, Shown: shown(v),
	}
	return d, errors.Join(p...)
}

// DaemonVariables documents what refund-ledgerd reads.
func DaemonVariables() []Variable { return documentation[daemonVariables]() }
