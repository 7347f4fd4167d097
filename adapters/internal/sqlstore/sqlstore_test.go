package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// Every kind of record that the domain declares has a codec. The kinds are read
// from its source, so that a new one fails here before it fails in a store.
func TestEveryKindHasACodec(t *testing.T) {
	s := New(nil, noDialect{}, 1)
	defer s.Close()
	kinds := declared(t, "../../../domain")
	if len(kinds) < 7 {
		t.Errorf("found only the kinds %v", kinds)
	}
	for _, k := range kinds {
		if k != ledger.OutcomeKind.Name && s.codec(k) == nil {
			t.Errorf("the kind %s has no codec in adapters/internal/sqlstore", k)
		}
	}
	for _, c := range s.codecs {
		if !slices.Contains(kinds, c.kind().Name) {
			t.Errorf("no package of the domain declares the kind %s", c.kind().Name)
		}
	}
	// After the two whose records others belong to.
	if s.codecs[0] != s.accounts || s.codecs[1] != s.vendors ||
		!slices.IsSortedFunc(s.codecs[2:], func(a, b codec) int { return strings.Compare(a.kind().Name, b.kind().Name) }) {
		t.Error("the codecs are not in order, so two releases could lock in different orders")
	}
}

// declared returns the names of all kinds: composite literals of the type Kind
// of package ledger with a field Name.
func declared(t *testing.T, folder string) (kinds []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			switch of := lit.Type.(type) {
			case *ast.SelectorExpr:
				if x, ok := of.X.(*ast.Ident); !ok || x.Name != "ledger" || of.Sel.Name != "Kind" {
					return true
				}
			case *ast.Ident:
				if file.Name.Name != "ledger" || of.Name != "Kind" {
					return true
				}
			default:
				return true
			}
			for _, e := range lit.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "Name" {
					name, err := strconv.Unquote(kv.Value.(*ast.BasicLit).Value)
					if err != nil {
						t.Error(err)
					}
					kinds = append(kinds, name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// noDialect says nothing.
type noDialect struct{}

func (noDialect) Keys(...Column) string           { return "" }
func (noDialect) KeyArgs([]Column, [][]any) []any { return nil }
func (noDialect) Lock(string, bool) string        { return "" }
func (noDialect) Write([]Rows) []Step             { return nil }
func (noDialect) Begin() string                   { return "" }
func (noDialect) Commit() string                  { return "" }
func (noDialect) Rollback() string                { return "" }

// lostDB loses every answer, whatever it was asked.
type lostDB struct{ DB }

func (lostDB) Writer(context.Context) (Conn, error) { return lostConn{}, nil }
func (lostDB) Meaning(err error) error {
	if errors.Is(err, committer.ErrLost) {
		return committer.ErrLost
	}
	return nil
}

type lostConn struct{}

func (lostConn) Run(context.Context, ...Step) error {
	return fmt.Errorf("%w: connection reset", committer.ErrLost)
}
func (lostConn) Release() {}

// An error has one meaning: what was lost before anything was written is not
// lost at all, and what was lost around COMMIT is.
func TestAnErrorHasOneMeaning(t *testing.T) {
	s := New(lostDB{}, noDialect{}, 1)
	defer s.Close()
	_, _, err := s.Begin(t.Context(), nil, nil)
	if !errors.Is(err, committer.ErrUnavailable) || errors.Is(err, committer.ErrLost) || !strings.Contains(err.Error(), "connection reset") {
		t.Errorf("Begin: %v", err)
	}
	err = (&tx{s, lostConn{}}).Commit(t.Context(), committer.Changes{})
	if errors.Is(err, committer.ErrUnavailable) || !errors.Is(err, committer.ErrLost) {
		t.Errorf("Commit: %v", err)
	}
}

func FuzzFacts(f *testing.F) {
	f.Add("customer", "CUST-00001", "reason", "Zoë \"quoted\" \\ \u2028 \u200c </script> 😀\n\t")
	f.Add("", "", "a", "\x00")
	f.Fuzz(func(t *testing.T, n1, v1, n2, v2 string) {
		for _, s := range []string{n1, v1, n2, v2} {
			if !storable(s) {
				t.Skip()
			}
		}
		facts := []operation.Fact{{Name: n1, Value: v1}, {Name: n2, Value: v2}}
		got, err := decodeFacts(encodeFacts(facts))
		if err != nil || !slices.Equal(got, facts) {
			t.Errorf("%q became %q, %v", facts, got, err)
		}
	})
}

func TestFactsThatAreNone(t *testing.T) {
	for _, text := range []string{`{"a":"b"}x`, `{"a":"b"} {}`, "", "null", "[]", `{"a":1}`, `{"a":{}}`, `{"a":null}`, `{"a":"b"`} {
		if facts, err := decodeFacts(text); err == nil {
			t.Errorf("%s became %q", text, facts)
		}
	}
}

func TestNewest(t *testing.T) {
	n, err := Newest(fstest.MapFS{"00001_a.sql": {}, "00012_b.sql": {}, "readme.md": {}})
	if n != 12 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := Newest(fstest.MapFS{"x.sql": {}}); err == nil {
		t.Error("a migration without a number passes")
	}
}
