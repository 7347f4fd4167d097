// Package store opens the backend that is configured, for the commands.
package store

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/ports"
)

// Store is what the commands need of a backend.
type Store interface {
	ports.Ledger
	ports.Refunds
	ports.Journal
	// Close finishes the writes that wait and lets go of the backend.
	Close() error
}

// Open opens the backend. log takes what its client has to say.
func Open(ctx context.Context, c config.Store, log *slog.Logger) (Store, error) {
	switch c.Backend {
	case config.Memory:
		return inMemory{memory.New()}, nil
	case config.SQLite:
		return sqlite.Open(ctx, c.SQLitePath)
	case config.Postgres:
		return postgres.Open(ctx, c.PostgresURL)
	case config.REST:
		return restclient.New(restclient.Options{URL: c.Service.URL, Token: c.Service.Token, Timeout: c.Service.Timeout, Log: log})
	}
	return nil, fmt.Errorf("no backend %q", c.Backend)
}

type inMemory struct{ *memory.Store }

// Close has nothing to let go of.
func (inMemory) Close() error { return nil }
