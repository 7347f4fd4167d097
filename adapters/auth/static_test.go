package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/refundledger/refundledger/domain/access"
)

func hashed(token string) string {
	h := sha256.Sum256([]byte(token))
	return hex.EncodeToString(h[:])
}

func row(token, id, more string) string {
	return fmt.Sprintf(`{"sha256":%q,"tenant":"acme","id":%q,"kind":"agent","scopes":["customer:read","refund:write"]%s}`+"\n", hashed(token), id, more)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStaticKnowsTheTokensOfItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, row("one", "agent-1", "")+"\n"+row("two", "agent-2", `,"plan":"pro","owner":"ada"`))
	s, err := OpenStatic(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	one, err := s.Verify(t.Context(), "one")
	if err != nil || one.ID() != "agent-1" || one.Tenant().String() != "acme" || one.Plan() != access.Free || one.Kind() != access.Agent || !one.Scopes().Has(access.RefundWrite) || one.Scopes().Has(access.RefundRead) {
		t.Errorf("%+v %v", one, err)
	}
	two, err := s.Verify(t.Context(), "two")
	if err != nil || two.ID() != "agent-2" || two.Plan() != access.Pro || two.Owner() != "ada" {
		t.Errorf("%+v %v", two, err)
	}
	for _, token := range []string{"", "three", "One", "one ", hashed("one")} {
		if who, err := s.Verify(t.Context(), token); err == nil {
			t.Errorf("%q is %+v", token, who)
		}
	}
}

func TestStaticReadsItsFileAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, row("one", "agent-1", ""))
	var log bytes.Buffer
	s, err := OpenStatic(path, slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	later := func() { s.checked.Store(0) }
	knows := func(token string, want bool) {
		t.Helper()
		if _, err := s.Verify(t.Context(), token); (err == nil) != want {
			t.Errorf("%s: %v", token, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// Another token in a file of the same length and time.
	write(t, path, row("two", "agent-1", ""))
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	later()
	knows("two", true)
	knows("one", false)
	// What is not valid any more changes nothing, and is said once.
	write(t, path, "{")
	for range 3 {
		later()
		knows("two", true)
	}
	if n := strings.Count(log.String(), "the tokens are what they were"); n != 1 {
		t.Errorf("it is said %d times: %s", n, &log)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	later()
	knows("two", true)
	write(t, path, row("three", "agent-3", ""))
	later()
	knows("three", true)
	knows("two", false)
	write(t, path, "")
	later()
	knows("three", false)
}

func TestStaticReadsWhileItIsAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, row("one", "agent-1", ""))
	s, err := OpenStatic(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				s.checked.Store(0)
				if _, err := s.Verify(t.Context(), "one"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestStaticRefusesABadFile(t *testing.T) {
	for _, c := range []struct{ name, text, words string }{
		{"no hash", `{"sha256":"abc","tenant":"acme","id":"a","kind":"agent","scopes":[]}`, "line 1: sha256 must be 64 hexadecimal digits"},
		{"a hash that is too long", `{"sha256":"` + hashed("x") + `00","tenant":"acme","id":"a","kind":"agent","scopes":[]}`, "sha256 must be 64 hexadecimal digits"},
		{"no tenant", `{"sha256":"` + hashed("x") + `","id":"a","kind":"agent","scopes":[]}`, "tenant"},
		{"a member that means nothing", row("x", "a", `,"admin":true`), "admin"},
		{"a member twice", row("x", "a", `,"id":"b"`), "id"},
		{"a misspelt scope", strings.Replace(row("x", "a", ""), "refund:write", "refunds:write", 1), `"refunds:write" is no scope`},
		{"a scope that is never an agent's", strings.Replace(row("x", "a", ""), "refund:write", "approve:vote", 1), "can not be held by a principal of kind agent"},
		{"a token twice", row("x", "a", "") + row("x", "b", ""), "line 2: the token is there already"},
		{"an unknown plan", row("x", "a", `,"plan":"gold"`), "a plan is free, growth or pro"},
		{"a token in the open", "secret-token\n", "line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tokens")
			write(t, path, c.text)
			_, err := OpenStatic(path, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "secret-token") {
				t.Errorf("it says %v", err)
			}
		})
	}
	if _, err := OpenStatic(filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file that is not there is no trouble")
	}
}
