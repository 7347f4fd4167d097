package mcpserver

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The public face is a golden file: what a model sees changes only on purpose.
func TestToolsAreAsPublished(t *testing.T) {
	for _, tool := range allTools() {
		got, err := json.MarshalIndent(tool.listing(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		file := filepath.Join("testdata", "tools", tool.name+".json")
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not as published; if that is on purpose, run make golden:\n%s", tool.name, got)
		}
	}
}

// Every tool keeps the promises that a declaration can break.
func TestDeclarations(t *testing.T) {
	seen := map[string]bool{}
	for _, tool := range allTools() {
		t.Run(tool.name, func(t *testing.T) {
			if seen[tool.name] {
				t.Error("the name is taken")
			}
			seen[tool.name] = true
			switch {
			case tool.title == "" || tool.about == "":
				t.Error("it has no words")
			case tool.scope == (access.Scope{}):
				t.Error("it needs no scope, so anyone may call it")
			case tool.destructive && !tool.changes:
				t.Error("it destroys without changing anything")
			}
			if !tool.changes && !bytes.Contains([]byte(tool.about), []byte("Changes nothing")) {
				t.Error("its words do not say that it changes nothing")
			}
		})
	}
}

// newServer is a server over a fresh memory ledger with the demo customers.
func newServer(t testing.TB, change func(*Options)) desk {
	t.Helper()
	tenant, err := access.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	who, err := access.NewPrincipal(tenant, "local", access.Agent, access.AgentScopes(), access.Pro, "")
	if err != nil {
		t.Fatal(err)
	}
	return newServerFor(t, who, change)
}

func newServerFor(t testing.TB, who access.Principal, change func(*Options)) desk {
	t.Helper()
	store := memory.New()
	if err := demo.Seed(t.Context(), store, who.Tenant(), system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	o := Options{Version: "test", Toolsets: Toolsets(), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	s, err := New(&app.App{Ledger: store, Refunds: store, Payables: store, Journal: store, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: 10 * time.Second}, o)
	if err != nil {
		t.Fatal(err)
	}
	return desk{Server: s, principal: who}
}
