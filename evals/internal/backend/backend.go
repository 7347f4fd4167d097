// Package backend makes fresh stores with the demo customers in them, one for
// each run of a server, in every backend there is.
package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/importfile"
	ledgermemory "github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
	"github.com/refundledger/refundledger/adapters/restserver"
	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// Backend makes stores. Fresh may be called at once.
type Backend interface {
	// Durable reports whether a store outlives the server.
	Durable() bool
	// Fresh makes a store with the demo records in it, or with the import files
	// of a folder. A store that is a service has the settings of the environment.
	Fresh(folder string, env map[string]string) (Store, error)
	// Close lets go of what the stores shared.
	Close()
}

// Store is the system of record of one run.
type Store interface {
	// Env is what points a server at the store.
	Env() map[string]string
	// Discard removes the store.
	Discard() error
}

// Names are the backends there are.
var Names = []string{"memory", "sqlite", "postgres", "rest"}

// New returns the backend of that name.
func New(name string) (Backend, error) {
	switch name {
	case "memory":
		return memory{}, nil
	case "sqlite":
		return inFile{}, nil
	case "postgres":
		return &inDatabase{}, nil
	case "rest":
		return inService{}, nil
	}
	return nil, fmt.Errorf("-backend %s: the backends are %s", name, strings.Join(Names, ", "))
}

// memory: the server makes the store when it starts, and it ends with the server.
type memory struct{}

func (memory) Durable() bool                                           { return false }
func (memory) Close()                                                  {}
func (memory) Fresh(folder string, _ map[string]string) (Store, error) { return inServer{folder}, nil }

// inServer is the folder that the server starts with.
type inServer struct{ folder string }

func (s inServer) Env() map[string]string {
	return map[string]string{"LEDGER_BACKEND": "memory", "LEDGER_MEMORY_DATA": s.folder}
}
func (inServer) Discard() error { return nil }

// inFile: each case has a SQLite file in a folder of its own.
type inFile struct{}

func (inFile) Durable() bool { return true }
func (inFile) Close()        {}

func (inFile) Fresh(data string, _ map[string]string) (Store, error) {
	folder, err := os.MkdirTemp("", "refundledger-eval-")
	if err != nil {
		return nil, err
	}
	f := file{folder}
	s, err := sqlite.Open(context.Background(), f.path())
	if err == nil {
		err = errors.Join(seed(s, data), s.Close())
	}
	if err != nil {
		return nil, errors.Join(err, f.Discard())
	}
	return f, nil
}

type file struct{ folder string }

func (f file) path() string { return filepath.Join(f.folder, "ledger.db") }
func (f file) Env() map[string]string {
	return map[string]string{"LEDGER_BACKEND": "sqlite", "LEDGER_SQLITE_PATH": f.path()}
}
func (f file) Discard() error { return os.RemoveAll(f.folder) }

// inDatabase: each case has a schema of its own in one PostgreSQL server, the
// one that LEDGER_TEST_POSTGRES_URL names or a throw-away one.
type inDatabase struct {
	once   sync.Once
	url    string
	server *postgrestest.Server
	err    error
}

func (*inDatabase) Durable() bool { return true }

func (d *inDatabase) Fresh(data string, _ map[string]string) (Store, error) {
	d.once.Do(func() {
		if d.url = os.Getenv(postgrestest.ServerURL); d.url == "" {
			if d.server, d.err = postgrestest.New(postgrestest.Fast); d.err == nil {
				d.url = d.server.URL()
			}
		}
	})
	if d.err != nil {
		return nil, d.err
	}
	to, drop, err := postgrestest.Schema(d.url)
	if err != nil {
		return nil, err
	}
	t := tables{to, drop}
	ctx := context.Background()
	if err := postgres.Migrate(ctx, to); err != nil {
		return nil, errors.Join(err, drop())
	}
	s, err := postgres.Open(ctx, to)
	if err == nil {
		err = errors.Join(seed(s, data), s.Close())
	}
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	return t, nil
}

func (d *inDatabase) Close() {
	if d.server != nil {
		d.server.Remove()
	}
}

type tables struct {
	url  string
	drop func() error
}

func (t tables) Env() map[string]string {
	return map[string]string{"LEDGER_BACKEND": "postgres", "LEDGER_POSTGRES_URL": t.url}
}
func (t tables) Discard() error { return t.drop() }

// inService: each case has a REST service of its own, over a ledger in memory.
type inService struct{}

func (inService) Durable() bool { return true } // the service outlives the server
func (inService) Close()        {}

func (inService) Fresh(data string, env map[string]string) (Store, error) {
	settings, err := config.ParseDaemon(lines(env))
	if err != nil {
		settings.Tolerance = payables.DefaultTolerance() // the case is about a server that says so
	}
	s := ledgermemory.New()
	if err := seed(s, data); err != nil {
		return nil, err
	}
	server, err := restserver.New(s, restserver.Options{Tokens: token{}, Clock: system.Clock{}, IDs: system.IDs{}, Log: slog.New(slog.DiscardHandler), Tolerance: settings.Tolerance})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	return service{"http://" + l.Addr().String(), stop, ended}, nil
}

// lines are the settings that a server and its service share.
func lines(env map[string]string) []string {
	var all []string
	for name, value := range env {
		if strings.HasPrefix(name, "PAYABLES_") {
			all = append(all, name+"="+value)
		}
	}
	return all
}

type service struct {
	url   string
	stop  context.CancelFunc
	ended chan error
}

func (s service) Env() map[string]string {
	return map[string]string{"LEDGER_BACKEND": "rest", "LEDGER_REST_URL": s.url, "LEDGER_REST_TOKEN": theToken}
}

func (s service) Discard() error {
	s.stop()
	return <-s.ended
}

// theToken is the only one that the services of the evals take.
const theToken = "evals-only"

type token struct{}

// Verify implements restserver.Tokens: the server acts for whom it names.
func (token) Verify(_ context.Context, t string) (access.Principal, error) {
	if t != theToken {
		return access.Principal{}, errors.New("an unknown token")
	}
	tenant, err := access.ParseTenant("default")
	if err != nil {
		return access.Principal{}, err
	}
	scopes := access.ScopesOf(access.CustomerRead, access.RefundRead, access.RefundWrite, access.InvoiceRead, access.InvoiceRoute, access.InvoiceOverride, access.ControlRules, access.PrincipalDelegate)
	return access.NewPrincipal(tenant, "refund-mcp", access.Service, scopes, access.Pro, "")
}

// seed fills the tenant of a server without settings.
func seed(l ports.Ledger, folder string) error {
	tenant, err := access.ParseTenant("default")
	if err != nil {
		return err
	}
	if folder != "" {
		return importfile.Load(context.Background(), l, tenant, folder, system.Clock{}, system.IDs{})
	}
	return demo.Seed(context.Background(), l, tenant, system.Clock{}, system.IDs{})
}
