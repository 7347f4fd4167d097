package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/evals/bench/floors/mutexmap"
	"github.com/refundledger/refundledger/evals/bench/internal/load"
	"github.com/refundledger/refundledger/evals/bench/internal/side"
	"github.com/refundledger/refundledger/evals/bench/internal/stdio"
)

func quick(large bool) options {
	return options{rounds: 1, calls: 200, time: 200 * time.Millisecond, run: regexp.MustCompile(""), large: large, entries: 2 * smallEntries}
}

// Without rounds nothing is measured, but every declaration is checked.
func TestEveryDeclarationHolds(t *testing.T) {
	names := map[string]bool{}
	for _, b := range slices.Concat(selected(quick(false), t.TempDir()), selected(quick(true), t.TempDir())) {
		if names[b.Name] {
			t.Errorf("two benchmarks are called %s", b.Name)
		}
		names[b.Name] = true
		b.Setup = nil
		if _, err := side.Run(t.Context(), b, 0); err != nil {
			t.Error(err)
		}
	}
}

// The floors and the product are really run, once each; figures do not matter.
func TestEveryRowGivesRightAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	o := quick(false)
	o.postgres = os.Getenv("LEDGER_TEST_POSTGRES_URL")
	dir := t.TempDir()
	if err := build(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	large := o
	large.large, large.run = true, regexp.MustCompile("memory") // the others take minutes to fill
	for _, b := range slices.Concat(selected(o, dir), selected(large, dir)) {
		t.Run(b.Name, func(t *testing.T) {
			outcome, err := side.Run(t.Context(), b, 1)
			if err != nil {
				t.Fatal(err)
			}
			if outcome.Skipped != "" {
				t.Skip(outcome.Skipped)
			}
		})
	}
}

// loses is a ledger that forgets what it acknowledged.
type loses struct{ load.Ledger }

func (l loses) Refunded(ctx context.Context) (int64, int64, error) {
	count, minor, err := l.Ledger.Refunded(ctx)
	return count / 2, minor, err
}

type fails struct{ load.Ledger }

var errFails = errors.New("no")

func (fails) Refund(context.Context, ...load.Refund) error { return errFails }

func TestALostOrFailedRefundIsAnError(t *testing.T) {
	p := load.Plan{Clients: 4, Calls: 100}
	if _, err := p.Run(t.Context(), loses{mutexmap.New()}); err == nil || !strings.Contains(err.Error(), "100 refunds") {
		t.Errorf("a ledger that loses refunds: %v", err)
	}
	if _, err := p.Run(t.Context(), fails{mutexmap.New()}); !errors.Is(err, errFails) {
		t.Errorf("a ledger that fails: %v", err)
	}
	if _, err := p.Run(t.Context(), mutexmap.New()); err != nil {
		t.Errorf("a ledger that works: %v", err)
	}
}

func TestAWrongServerIsAnError(t *testing.T) {
	for name, script := range map[string]string{
		"does not start": "exit 3",
		"lists nothing":  `read x; echo '{}'; read x; read x; echo '{"jsonrpc":"2.0","id":"list","result":{"tools":[]}}'; cat >/dev/null`,
		"refuses": `read x; echo '{}'; read x; read x; echo '{"id":"list","result":{"tools":["trigger_refund"]}}'
			read x; echo '{"jsonrpc":"2.0","id":0,"result":{"isError":true}}'; cat >/dev/null`,
		"answers another call": `read x; echo '{}'; read x; read x; echo '{"id":"list","result":{"tools":["trigger_refund"]}}'
			read x; echo '{"jsonrpc":"2.0","id":99,"result":{"structuredContent":{"remainingRefundableBalance":1}}}'; cat >/dev/null`,
	} {
		path := filepath.Join(t.TempDir(), "server")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if s, err := (stdio.Command{Path: path}).Calls(t.Context(), stdio.Refund, 1, 10, time.Second); err == nil {
			t.Errorf("a server that %s gives the figure %v", name, s.Value)
		}
	}
}
