package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/ports"
)

// customers are the demo customers that every store of a case begins with.
var customers = []string{"CUST-00001", "CUST-00002", "CUST-00003"}

// backend makes stores. fresh may be called at once.
type backend interface {
	// durable reports whether a store outlives the server.
	durable() bool
	// fresh makes an empty store with the demo customers in it.
	fresh() (store, error)
}

// store is the system of record of one case.
type store interface {
	// env is what points a server at the store.
	env() map[string]string
	// discard removes the store.
	discard() error
}

// backendNames are the backends there are or will be.
var backendNames = []string{"memory", "sqlite", "postgres", "rest"}

func newBackend(name string) (backend, error) {
	switch name {
	case "memory":
		return memory{}, nil
	case "sqlite":
		return inFile{}, nil
	case "postgres", "rest":
		return nil, fmt.Errorf("-backend %s: evals can not make a fresh store of that kind yet, which takes refund-ledgerd seed; use -backend memory", name)
	}
	return nil, fmt.Errorf("-backend %s: the backends are %s", name, strings.Join(backendNames, ", "))
}

// memory: the server makes the store when it starts, and it ends with the server.
type memory struct{}

func (memory) durable() bool          { return false }
func (memory) fresh() (store, error)  { return memory{}, nil }
func (memory) env() map[string]string { return map[string]string{"LEDGER_BACKEND": "memory"} }
func (memory) discard() error         { return nil }

// inFile: each case has a SQLite file in a folder of its own.
type inFile struct{}

func (inFile) durable() bool { return true }

func (inFile) fresh() (store, error) {
	folder, err := os.MkdirTemp("", "refundledger-eval-")
	if err != nil {
		return nil, err
	}
	f := file{folder}
	s, err := sqlite.Open(context.Background(), f.path())
	if err == nil {
		err = errors.Join(seed(s), s.Close())
	}
	if err != nil {
		return nil, errors.Join(err, f.discard())
	}
	return f, nil
}

type file struct{ folder string }

func (f file) path() string { return filepath.Join(f.folder, "ledger.db") }
func (f file) env() map[string]string {
	return map[string]string{"LEDGER_BACKEND": "sqlite", "LEDGER_SQLITE_PATH": f.path()}
}
func (f file) discard() error { return os.RemoveAll(f.folder) }

// seed opens the demo customers in the tenant of a server without settings.
func seed(l ports.Ledger) error {
	tenant, err := access.ParseTenant("default")
	if err != nil {
		return err
	}
	return demo.Seed(context.Background(), l, tenant, system.Clock{}, system.IDs{})
}

// environment is a server's: the store's, the usual settings, then what the
// case adds, each layer over the one before.
func environment(layers ...map[string]string) map[string]string {
	env := map[string]string{"TOOLSETS": "all"}
	for _, l := range layers {
		maps.Copy(env, l)
	}
	return env
}
