// Package auth finds out who a bearer token speaks for: a token whose hash is
// in a file, or one that an OpenID Connect issuer signed.
//
// Its errors are for the log. A fault BACKEND_UNAVAILABLE says that nobody can
// tell now; any other error that the token proves nothing.
package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
)

// Limits of a file of tokens.
const (
	maxFile   = 4 << 20
	maxTokens = 10_000
	// checkEvery is how long a change of the file may go unnoticed.
	checkEvery = time.Second
)

// line is a token as it stands in the file, a JSON object a line. Only the hash
// of a token is there: who reads the file can not use it.
type line struct {
	SHA256 string   `json:"sha256"`
	Tenant string   `json:"tenant"`
	ID     string   `json:"id"`
	Kind   string   `json:"kind"`
	Scopes []string `json:"scopes"`
	Plan   *string  `json:"plan"`  // free if absent
	Owner  *string  `json:"owner"` // who answers for an agent
}

var lines = strictjson.Compile[line]("the token")

type digest [sha256.Size]byte

// Static knows the tokens whose hashes are in a file, which is read again when
// it has changed. A file that can not be read any more, or is not valid,
// changes nothing: who could call still can, and the log says so.
type Static struct {
	path string
	log  *slog.Logger

	known   atomic.Pointer[map[digest]access.Principal]
	checked atomic.Int64 // when the file was looked at last, in Unix nanoseconds

	mu   sync.Mutex // who looks at the file
	text []byte
	said string // the last trouble that was logged
}

var errUnknown = errors.New("no such token")

// OpenStatic reads the file, which must be there and valid.
func OpenStatic(path string, log *slog.Logger) (*Static, error) {
	s := &Static{path: path, log: log}
	if _, err := s.read(); err != nil {
		return nil, err
	}
	s.checked.Store(time.Now().UnixNano())
	return s, nil
}

// Verify finds the principal of a token. The table is asked for the hash, so
// how long that takes tells nothing of the tokens there are.
func (s *Static) Verify(_ context.Context, token string) (access.Principal, error) {
	s.refresh()
	if who, ok := (*s.known.Load())[sha256.Sum256([]byte(token))]; ok {
		return who, nil
	}
	return access.Principal{}, errUnknown
}

// refresh looks at the file from time to time. Nobody waits for who does.
func (s *Static) refresh() {
	if time.Now().UnixNano()-s.checked.Load() < int64(checkEvery) || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	changed, err := s.read()
	s.checked.Store(time.Now().UnixNano())
	switch {
	case err == nil && changed:
		s.said = ""
		s.log.Info("the file of tokens was read again", "tokens", len(*s.known.Load()))
	case err == nil:
		s.said = ""
	case err.Error() != s.said:
		s.said = err.Error()
		s.log.Error("the file of tokens can not be used; the tokens are what they were", "cause", s.said)
	}
}

// read takes in the file. It compares the whole text: a file of the same length
// and time may still be another.
func (s *Static) read() (changed bool, err error) {
	f, err := os.Open(s.path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return false, err
	case len(text) > maxFile:
		return false, fmt.Errorf("%s: more than %d bytes", s.path, maxFile)
	case s.known.Load() != nil && bytes.Equal(text, s.text):
		return false, nil
	}
	known, err := parse(text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", s.path, err)
	}
	s.text = text
	s.known.Store(&known)
	return true, nil
}

func parse(text []byte) (map[digest]access.Principal, error) {
	known := map[digest]access.Principal{}
	number := 0
	for each := range bytes.Lines(text) {
		number++
		if each = bytes.TrimSpace(each); len(each) == 0 {
			continue
		}
		hash, who, err := parseLine(each)
		if _, twice := known[hash]; err == nil && twice {
			err = errors.New("the token is there already")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if known[hash] = who; len(known) > maxTokens {
			return nil, fmt.Errorf("more than %d tokens", maxTokens)
		}
	}
	return known, nil
}

func parseLine(text []byte) (hash digest, who access.Principal, err error) {
	document, err := strictjson.Check(text)
	if err != nil {
		return hash, who, err
	}
	var l line
	if issues := lines.Decode(document, &l); len(issues) > 0 {
		return hash, who, errors.New(fault.Sentences(issues))
	}
	if n, err := hex.DecodeString(l.SHA256); err != nil || copy(hash[:], n) != len(hash) || len(n) != len(hash) {
		return hash, who, errors.New("sha256 must be 64 hexadecimal digits")
	}
	c := claims{tenant: l.Tenant, id: l.ID, kind: l.Kind, scopes: l.Scopes, plan: access.Free.String()}
	if l.Plan != nil {
		c.plan = *l.Plan
	}
	if l.Owner != nil {
		c.owner = *l.Owner
	}
	for _, name := range l.Scopes {
		if _, err := access.ParseScope(name); err != nil {
			return hash, who, err // a misspelt scope in our own file is a mistake
		}
	}
	who, err = c.principal()
	return hash, who, err
}

// claims is what is said of a principal.
type claims struct {
	tenant, id, kind, plan, owner string
	scopes                        []string
}

// principal makes the principal. Scopes that are none of ours mean nothing:
// a token may be good for other things too.
func (c claims) principal() (access.Principal, error) {
	tenant, err := access.ParseTenant(c.tenant)
	if err != nil {
		return access.Principal{}, err
	}
	kind, err := access.ParseKind(c.kind)
	if err != nil {
		return access.Principal{}, err
	}
	plan, err := access.ParsePlan(c.plan)
	if err != nil {
		return access.Principal{}, err
	}
	var scopes []access.Scope
	for _, name := range c.scopes {
		if s, err := access.ParseScope(name); err == nil {
			scopes = append(scopes, s)
		}
	}
	return access.NewPrincipal(tenant, c.id, kind, access.ScopesOf(scopes...), plan, c.owner)
}
