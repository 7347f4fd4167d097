package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/refundledger/refundledger/adapters/auth"
	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/restserver"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/adapters/telemetry"
	"github.com/refundledger/refundledger/cmd/internal/store"
	"github.com/refundledger/refundledger/ports"
)

func serveCommand() command {
	return command{"serve", "", 0, "serve the ledger over HTTP to those who have a token, until a signal", nil, serve}
}

func serve(ctx context.Context, c console, s settings, _ []string) error {
	o := s.Serving
	log := system.NewLog(c.err, s.LogLevel)
	defer log.Close()
	tokens, err := auth.OpenStatic(o.Tokens, log.Logger)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no file of tokens %s; make a token with refund-ledgerd token create", o.Tokens)
	}
	if err != nil {
		return fmt.Errorf("the file of tokens: %w", err)
	}
	return with(ctx, s, func(st store.Store) error {
		if s.Store.Backend == config.Memory { // it would be empty, and nothing of it outlives the process
			if err := store.Fill(ctx, st, s.Store, s.tenant); err != nil {
				return err
			}
		}
		metrics, err := telemetry.New()
		if err != nil {
			return err
		}
		server, err := restserver.New(measured{metrics.Ledger(st), st, st, st}, restserver.Options{
			Tokens: tokens, Clock: system.Clock{}, IDs: system.IDs{}, Log: log.Logger, Metrics: metrics.Handler(), MaxInFlight: o.MaxInFlight, Tolerance: s.Tolerance,
		})
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", o.Addr)
		if err != nil {
			return err
		}
		if !o.Local {
			log.Warn("others can reach this address, and there is no TLS: put a proxy with TLS before it", "addr", o.Addr)
		}
		fmt.Fprintf(c.out, "serving the ledger on http://%s\n", listener.Addr())
		return server.Serve(ctx, listener)
	})
}

// measured is a store whose writes and look-ups are counted.
type measured struct {
	ports.Ledger
	ports.Refunds
	ports.Journal
	ports.Payables
}
