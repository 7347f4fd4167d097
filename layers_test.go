package refundledger_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/refundledger/refundledger"

// What each package of the domain is. A new one is added here.
var (
	words    = []string{"access", "fault", "journal", "ledger", "money", "operation", "text"}
	records  = []string{"customers"}
	subjects = []string{"payables", "refunds"}
)

// What the domain may use of others, beside the standard library.
var domainVendors = []string{"github.com/bojanz/currency", "golang.org/x/text"}

// Packages of the standard library that the domain must not use, each with its
// packages below, and why.
var impure = map[string]string{
	"context":      "a decision is a function: it neither waits nor is cancelled",
	"database/sql": "the domain knows no store",
	"net":          "the domain knows no network",
	"os":           "the domain knows no machine",
	"log":          "the domain writes no log",
	"math/rand":    "a decision that runs again gives the same answer",
	"crypto/rand":  "a decision that runs again gives the same answer",
}

// What only one adapter may use.
var owned = map[string]string{
	"github.com/modelcontextprotocol/go-sdk": "adapters/mcpserver",
}

// rule returns the rule that is broken if one package imports another, or "".
// Both are import paths; test files are not its business.
func rule(importer, imported string) string {
	own, ours := strings.CutPrefix(imported, module+"/")
	vendor := !ours && imported != module && strings.Contains(strings.Split(imported, "/")[0], ".")
	from := strings.TrimPrefix(strings.TrimPrefix(importer, module), "/")
	ring, rest, _ := strings.Cut(from, "/")

	switch {
	case ring == "cmd" || ring == "evals":
		return ""
	case within(own, "cmd") || within(own, "evals"):
		return "cmd and evals wire everything, and nothing imports them"
	}
	for path, owner := range owned {
		if within(imported, path) && from != owner {
			return "only " + owner + ", cmd and evals may import " + path
		}
	}
	switch ring {
	case "domain":
		return domainRule(rest, imported, own, ours, vendor)
	case "ports":
		switch {
		case ours && !within(own, "domain") && !(within(rest, "portstest") && own == "ports"):
			return "ports imports only domain, and portstest only ports and domain"
		case vendor && !within(rest, "portstest"):
			return "ports imports no vendor"
		}
	case "app":
		switch {
		case ours && !within(own, "domain") && own != "ports":
			return "app imports only domain and ports"
		case vendor:
			return "app imports no vendor"
		}
	case "adapters":
		name, _, _ := strings.Cut(rest, "/")
		self := "adapters/" + name
		switch {
		case !ours, within(own, "domain"), own == "ports", within(own, self), within(own, "adapters/internal"):
		case within(own, "app"):
			if self != "adapters/mcpserver" && self != "adapters/restserver" {
				return "only adapters/mcpserver and adapters/restserver may import app"
			}
		case within(own, "adapters"):
			return "an adapter imports no other adapter, except in tests"
		default:
			return "an adapter imports domain, ports, its vendor and adapters/internal"
		}
	case "":
		return "the package at the root holds no code"
	default:
		return "the rings are domain, ports, app, adapters, cmd and evals; " + ring + " is none"
	}
	return ""
}

func domainRule(name, imported, own string, ours, vendor bool) string {
	name, _, _ = strings.Cut(name, "/")
	target := strings.TrimPrefix(own, "domain/")
	target, _, _ = strings.Cut(target, "/")
	switch {
	case !slices.Contains(slices.Concat(words, records, subjects), name):
		return "domain/" + name + " is no word, record or subject yet: say which in the layer test"
	case ours && !within(own, "domain"):
		return "domain imports no other ring"
	case vendor && !slices.ContainsFunc(domainVendors, func(v string) bool { return within(imported, v) }):
		return "domain imports no vendor but the ISO 4217 table and golang.org/x/text"
	case ours && target == name, ours && slices.Contains(words, target):
		return ""
	case ours && slices.Contains(words, name):
		return "words import only words"
	case ours && slices.Contains(records, name):
		return "records import only words"
	case ours && slices.Contains(subjects, target):
		return "subjects never import each other"
	}
	for path, why := range impure {
		if !ours && within(imported, path) {
			return why
		}
	}
	return ""
}

// within reports whether a path is at or below another.
func within(path, above string) bool {
	return path == above || strings.HasPrefix(path, above+"/")
}

func TestLayers(t *testing.T) {
	list := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", "./...")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	packages := 0
	for d := json.NewDecoder(bytes.NewReader(out)); ; packages++ {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, imported := range p.Imports {
			if why := rule(p.ImportPath, imported); why != "" {
				t.Errorf("%s imports %s: %s", short(p.ImportPath), short(imported), why)
			}
		}
	}
	if packages < len(words) {
		t.Errorf("go list found %d packages", packages)
	}
}

func short(path string) string { return strings.TrimPrefix(path, module+"/") }

func TestRule(t *testing.T) {
	for _, tt := range []struct {
		importer, imported string
		broken             string // part of the rule, or "" if it is allowed
	}{
		{"domain/money", "math", ""},
		{"domain/money", "github.com/bojanz/currency", ""},
		{"domain/refunds", "golang.org/x/text/unicode/norm", ""},
		{"domain/journal", "@domain/money", ""},
		{"domain/customers", "@domain/ledger", ""},
		{"domain/refunds", "@domain/customers", ""},
		{"domain/refunds", "@domain/money", ""},
		{"domain/refunds", "@domain/refunds/internal/text", ""},
		{"domain/money", "@domain/customers", "words import only words"},
		{"domain/ledger", "@domain/refunds", "words import only words"},
		{"domain/customers", "@domain/refunds", "records import only words"},
		{"domain/refunds", "@domain/payables", "subjects never import each other"},
		{"domain/payables", "@domain/refunds", "subjects never import each other"},
		{"domain/refunds", "@ports", "domain imports no other ring"},
		{"domain/refunds", "@app", "domain imports no other ring"},
		{"domain/refunds", "@adapters/memory", "domain imports no other ring"},
		{"domain/refunds", "github.com/google/uuid", "no vendor"},
		{"domain/refunds", "github.com/bojanz/currencyconverter", "no vendor"},
		{"domain/refunds", "context", "neither waits"},
		{"domain/refunds", "database/sql", "no store"},
		{"domain/refunds", "database/sql/driver", "no store"},
		{"domain/refunds", "net/http", "no network"},
		{"domain/refunds", "log/slog", "no log"},
		{"domain/refunds", "math/rand/v2", "the same answer"},
		{"domain/refunds", "github.com/modelcontextprotocol/go-sdk/mcp", "only adapters/mcpserver"},
		{"domain/surprises", "math", "no word, record or subject yet"},

		{"ports", "context", ""},
		{"ports", "@domain/refunds", ""},
		{"ports/portstest", "@ports", ""},
		{"ports/portstest", "@domain/refunds", ""},
		{"ports/portstest", "pgregory.net/rapid", ""},
		{"ports", "pgregory.net/rapid", "ports imports no vendor"},
		{"ports", "@app", "ports imports only domain"},
		{"ports/portstest", "@adapters/memory", "portstest only ports and domain"},

		{"app", "context", ""},
		{"app", "@domain/refunds", ""},
		{"app", "@ports", ""},
		{"app", "@adapters/memory", "app imports only domain and ports"},
		{"app", "@ports/portstest", "app imports only domain and ports"},
		{"app", "github.com/google/uuid", "app imports no vendor"},
		{"app", "@cmd/refund-mcp", "nothing imports them"},

		{"adapters/postgres", "@domain/refunds", ""},
		{"adapters/postgres", "@ports", ""},
		{"adapters/postgres", "database/sql", ""},
		{"adapters/postgres", "github.com/jackc/pgx/v5", ""},
		{"adapters/postgres", "@adapters/internal/committer", ""},
		{"adapters/postgres", "@adapters/postgres/internal/rows", ""},
		{"adapters/internal/sqlstore", "@adapters/internal/committer", ""},
		{"adapters/mcpserver", "@app", ""},
		{"adapters/restserver", "@app", ""},
		{"adapters/mcpserver", "github.com/modelcontextprotocol/go-sdk/mcp", ""},
		{"adapters/postgres", "@app", "only adapters/mcpserver and adapters/restserver"},
		{"adapters/postgres", "@adapters/sqlite", "no other adapter"},
		{"adapters/sqlite", "@adapters/sqlite2", "no other adapter"},
		{"adapters/internal/committer", "@adapters/postgres", "no other adapter"},
		{"adapters/postgres", "@ports/portstest", "an adapter imports domain, ports"},
		{"adapters/postgres", "@evals", "nothing imports them"},
		{"adapters/restserver", "github.com/modelcontextprotocol/go-sdk/mcp", "only adapters/mcpserver"},

		{"cmd/refund-mcp", "@adapters/postgres", ""},
		{"cmd/refund-mcp", "github.com/modelcontextprotocol/go-sdk/mcp", ""},
		{"evals", "@cmd/refund-mcp", ""},
		{"evals/crash", "@adapters/memory", ""},
		{"util", "fmt", "util is none"},
		{"", "fmt", "holds no code"},
	} {
		from, to := module+"/"+tt.importer, strings.Replace(tt.imported, "@", module+"/", 1)
		if tt.importer == "" {
			from = module
		}
		got := rule(from, to)
		if (got == "") != (tt.broken == "") || !strings.Contains(got, tt.broken) {
			t.Errorf("%s imports %s: got %q, want %q", tt.importer, tt.imported, got, tt.broken)
		}
	}
}

// clock lists where a source file reads the time or waits for it. The domain is
// given the time; app has a port for it.
func clock(name, source string) ([]string, error) {
	files := token.NewFileSet()
	var text any
	if source != "" {
		text = source
	}
	file, err := parser.ParseFile(files, name, text, 0)
	if err != nil {
		return nil, err
	}
	as := "" // what the file calls package time
	for _, i := range file.Imports {
		if i.Path.Value != `"time"` {
			continue
		}
		as = "time"
		if i.Name != nil {
			as = i.Name.Name
		}
		if as == "." {
			return []string{fmt.Sprintf("%s: package time without its name", files.Position(i.Pos()))}, nil
		}
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		if ok && as != "" && x.Name == as && x.Obj == nil && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, s.Sel.Name) {
			found = append(found, fmt.Sprintf("%s: time.%s", files.Position(s.Pos()), s.Sel.Name))
		}
		return true
	})
	return found, nil
}

func TestDomainAndAppReadNoClock(t *testing.T) {
	for _, ring := range []string{"domain", "app"} {
		err := filepath.WalkDir(ring, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			found, err := clock(path, "")
			for _, f := range found {
				t.Errorf("%s: %s is given the time", f, ring)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestClock(t *testing.T) {
	for _, tt := range []struct {
		name   string
		source string
		found  int
	}{
		{"reading it", `package p; import "time"; var x = time.Now()`, 1},
		{"reading it by another name", `package p; import clock "time"; var x = clock.Now()`, 1},
		{"reading it as a value", `package p; import "time"; var now = time.Now`, 1},
		{"measuring with it", `package p; import "time"; func f(t time.Time) { _ = time.Since(t); _ = time.Until(t) }`, 2},
		{"waiting for it", `package p; import "time"; func f() { time.Sleep(1); <-time.After(1) }`, 2},
		{"hiding it", `package p; import . "time"; var x = Now()`, 1},
		{"counting with given times", `package p; import "time"; func f(t time.Time) time.Time { return t.Add(time.Hour).Truncate(time.Millisecond) }`, 0},
		{"another package's Now", `package p; import "x/clock"; var x = clock.Now()`, 0},
		{"a value called time", `package p; import "time"; func f(time struct{ Now func() }) { time.Now() }; var _ time.Time`, 0},
		{"words in a comment", `package p // time.Now()`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := clock("p.go", tt.source)
			if err != nil || len(found) != tt.found {
				t.Fatalf("found %q, %v; want %d", found, err, tt.found)
			}
		})
	}
}
