package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refundledger/refundledger/domain/access"
)

const (
	// tokenBytes is how much chance is in a token: more than anybody can try, so
	// that a plain hash of it may be kept.
	tokenBytes = 32
	// tokenPrefix is for those who search logs and repositories for secrets.
	tokenPrefix = "rl_"
	// gatewayScopes are what refund-mcp needs. It may override what it names a
	// principal for who may: the override is that person's.
	gatewayScopes = "customer:read,refund:read,refund:write,invoice:read,invoice:route,invoice:override,principal:delegate"
)

func tokenCommand() command {
	var kind, id, scopes string
	return command{
		"token create", "", 0, "make a token for refund-ledgerd serve: it is printed once, its hash is kept",
		func(f *flag.FlagSet, _ *settings) {
			f.StringVar(&kind, "kind", "service", "whose token it is: agent, human or service")
			f.StringVar(&id, "id", "refund-mcp", "the id of that principal")
			f.StringVar(&scopes, "scopes", gatewayScopes, "what it may do, with commas between")
		},
		func(_ context.Context, c console, s settings, _ []string) error {
			p, err := principal(s.tenant, kind, id, scopes)
			if err != nil {
				return err
			}
			token, err := createToken(s.Serving.Tokens, p)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.out, token)
			fmt.Fprintf(c.err, "the token of %s in the tenant %s; its hash is in %s, and nobody can show it again\n", p.ID(), p.Tenant(), s.Serving.Tokens)
			return nil
		},
	}
}

func principal(t access.Tenant, kind, id, scopes string) (access.Principal, error) {
	k, err := access.ParseKind(kind)
	if err != nil {
		return access.Principal{}, fmt.Errorf("--kind: %w", err)
	}
	var list []access.Scope
	for name := range strings.SplitSeq(scopes, ",") {
		scope, err := access.ParseScope(strings.TrimSpace(name))
		if err != nil {
			return access.Principal{}, fmt.Errorf("--scopes: %w", err)
		}
		list = append(list, scope)
	}
	return access.NewPrincipal(t, id, k, access.ScopesOf(list...), access.Free, "")
}

// createToken makes a token and adds its hash to the file, which is made if it
// is not there.
func createToken(path string, p access.Principal) (string, error) {
	var random [tokenBytes]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	token := tokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	scopes := []string{}
	for _, s := range p.Scopes().List() {
		scopes = append(scopes, s.String())
	}
	hash := sha256.Sum256([]byte(token))
	line, err := json.Marshal(struct {
		SHA256 string   `json:"sha256"`
		Tenant string   `json:"tenant"`
		ID     string   `json:"id"`
		Kind   string   `json:"kind"`
		Scopes []string `json:"scopes"`
	}{hex.EncodeToString(hash[:]), p.Tenant().String(), p.ID(), p.Kind().String(), scopes})
	if err != nil {
		return "", err
	}
	return token, replaceFile(path, append(append(text, line...), '\n'))
}

// replaceFile puts a new file in the place of an old one, so that no reader
// sees half of it.
func replaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tokens-*") // which only its owner can read
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
