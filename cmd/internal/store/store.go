// Package store opens the backend that is configured, for the commands.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/importfile"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/postgres"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/adapters/sqlite"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/ports"
)

// Store is what the commands need of a backend.
type Store interface {
	ports.Ledger
	ports.Refunds
	ports.Journal
	ports.Payables
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
		return restclient.New(restclient.Options{
			URL: c.Service.URL, Token: c.Service.Token, Timeout: c.Service.Timeout,
			Currency: c.Service.Currency, Started: system.Clock{}.Now(), Log: log,
		})
	}
	return nil, fmt.Errorf("no backend %q", c.Backend)
}

// OpenExisting is [Open], but makes no ledger where there is none.
func OpenExisting(ctx context.Context, c config.Store, log *slog.Logger) (Store, error) {
	if c.Backend == config.SQLite {
		return sqlite.OpenExisting(ctx, c.SQLitePath)
	}
	return Open(ctx, c, log)
}

// admitTimeout bounds how long a service may take to say whom it lets in.
const admitTimeout = 3 * time.Second

// Admit checks that a service lets the principal in, so that a wrong setting is
// an error at the start and not of each call. A service that does not answer
// now may do so later.
func Admit(ctx context.Context, s Store, who access.Principal, log *slog.Logger) error {
	client, ok := s.(*restclient.Client)
	if !ok {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, admitTimeout)
	defer stop()
	err := client.Admit(ctx, who.Tenant(), who.ID())
	switch {
	case errors.Is(err, restclient.ErrToken):
		return fmt.Errorf("LEDGER_REST_TOKEN: %w: is it of the service at LEDGER_REST_URL?", err)
	case errors.Is(err, restclient.ErrTenant):
		return fmt.Errorf("LEDGER_REST_TOKEN: %w: PRINCIPAL_TENANT is %s", err, who.Tenant())
	case errors.Is(err, restclient.ErrDelegation):
		return fmt.Errorf("LEDGER_REST_TOKEN: %w: it must be of a service with the scope %s, to act for PRINCIPAL_ID %s", err, access.PrincipalDelegate, who.ID())
	case err != nil:
		log.Warn("the ledger service does not answer yet", "cause", err.Error())
	}
	return nil
}

// Payables returns the reader of the payables of a store, or nil if they are not
// to be offered: a service may keep none, or not show them to its client. A
// service that does not answer now may do so later.
func Payables(ctx context.Context, s Store, log *slog.Logger) ports.Payables {
	client, ok := s.(*restclient.Client)
	if !ok {
		return s
	}
	ctx, stop := context.WithTimeout(ctx, admitTimeout)
	defer stop()
	err := client.KeepsPayables(ctx)
	switch {
	case errors.Is(err, restclient.ErrNoPayables), errors.Is(err, restclient.ErrScope):
		log.Warn("the toolset payables is not offered", "cause", err.Error())
		return nil
	case err != nil:
		log.Warn("the ledger service does not answer yet", "cause", err.Error())
	}
	return client
}

// Census returns the census of a store, or nil if it keeps none.
func Census(s Store) ports.Census {
	c, _ := s.(ports.Census)
	return c
}

// Fill gives an empty ledger what it starts with: the files of a folder, or the
// demo records.
func Fill(ctx context.Context, s Store, c config.Store, t access.Tenant) error {
	if c.MemoryData != "" {
		return importfile.Load(ctx, s, t, c.MemoryData, system.Clock{}, system.IDs{})
	}
	return demo.Seed(ctx, s, t, system.Clock{}, system.IDs{})
}

type inMemory struct{ *memory.Store }

// Close has nothing to let go of.
func (inMemory) Close() error { return nil }
