package main

import (
	"fmt"
	"maps"
	"strings"
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
	case "sqlite", "postgres", "rest":
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

// environment is a server's: the store's, the usual settings, then what the
// case adds, each layer over the one before.
func environment(layers ...map[string]string) map[string]string {
	env := map[string]string{"TOOLSETS": "all"}
	for _, l := range layers {
		maps.Copy(env, l)
	}
	return env
}
