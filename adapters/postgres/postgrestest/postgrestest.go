// Package postgrestest gives tests a PostgreSQL database: in the server that
// LEDGER_TEST_POSTGRES_URL names, or in a throw-away server of the binaries
// that are installed. Without either, tests are skipped, and say so; with
// LEDGER_TEST_REQUIRE_POSTGRES=1 that is a failure.
package postgrestest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The variables of the environment.
const (
	// ServerURL names a server, and a database in it where schemas may be made.
	ServerURL = "LEDGER_TEST_POSTGRES_URL"
	// Require makes a test that finds no server fail.
	Require = "LEDGER_TEST_REQUIRE_POSTGRES"
)

// patience is how long a server may take to start or to stop.
const patience = 60 * time.Second

// Fast are settings for tests that do not need what they write to survive a
// crash of the machine.
var Fast = []string{"fsync=off", "full_page_writes=off", "autovacuum=off"}

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests of a package and then stops the server that they shared:
//
//	func TestMain(m *testing.M) { os.Exit(postgrestest.Main(m)) }
func Main(m *testing.M) int {
	defer func() {
		if shared.server != nil {
			shared.server.Remove()
		}
	}()
	return m.Run()
}

// URL returns the URL of an empty schema of its own, which is dropped after the
// test.
func URL(t testing.TB) string {
	t.Helper()
	if at := os.Getenv(ServerURL); at != "" {
		return schema(t, at)
	}
	shared.once.Do(func() { shared.server, shared.err = New(Fast) })
	if shared.err != nil {
		Skip(t, shared.err)
	}
	return schema(t, shared.server.URL())
}

// Start returns a running server of the test's own, with the settings that make
// it fast or others. It is removed after the test.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := New(append(slices.Clone(Fast), settings...))
	if err != nil {
		Skip(t, err)
	}
	t.Cleanup(s.Remove)
	return s
}

// Skip skips a test that finds no server, loudly, or fails it if one is required.
func Skip(t testing.TB, why error) {
	t.Helper()
	message := fmt.Sprintf("NO POSTGRESQL, NOTHING WAS TESTED: %v. Install it (apt-get install postgresql) or set %s.", why, ServerURL)
	if os.Getenv(Require) == "1" {
		t.Fatal(message)
	}
	t.Skip(message)
}

func schema(t testing.TB, at string) string {
	t.Helper()
	to, drop, err := Schema(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	return to
}

// Schema makes an empty schema in the database at the URL, and returns the URL
// that leads to it and how to drop it.
func Schema(at string) (to string, drop func() error, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", nil, fmt.Errorf("%s is no URL", ServerURL) // the error would show the password
	}
	name := "test_" + strings.ToLower(rand.Text())
	admin := func(sql string) error {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		c, err := pgx.Connect(ctx, at)
		if err != nil {
			return err
		}
		defer c.Close(ctx)
		_, err = c.Exec(ctx, sql)
		return err
	}
	if err := admin("CREATE SCHEMA " + name); err != nil {
		return "", nil, err
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String(), func() error { return admin("DROP SCHEMA " + name + " CASCADE") }, nil
}

// Server is a throw-away server. It listens on a socket in its folder only.
type Server struct {
	folder   string
	bin      string
	settings []string
	as       *syscall.Credential // nil: as this process
	process  *exec.Cmd
	ended    chan struct{}
	log      bytes.Buffer
}

// URL leads to the server's database postgres.
func (s *Server) URL() string {
	q := url.Values{"host": {s.folder}, "sslmode": {"disable"}}
	return "postgres://ledger@/postgres?" + q.Encode()
}

// New starts a server that must be removed, with the settings given.
func New(settings []string) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, settings: settings}
	if s.folder, err = os.MkdirTemp("", "pg"); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

// start makes the data of the server and starts it. PostgreSQL refuses to run
// as root.
func (s *Server) start() error {
	if os.Getuid() == 0 {
		u, err := other()
		if err != nil {
			return err
		}
		s.as = u
		if err := os.Chown(s.folder, int(u.Uid), int(u.Gid)); err != nil {
			return err
		}
	}
	initdb := s.command("initdb", "-D", s.data(), "-U", "ledger", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return s.Start()
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = s.folder
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	return c
}

// Start starts the server after a Stop.
func (s *Server) Start() error {
	args := []string{"-D", s.data(), "-k", s.folder, "-c", "listen_addresses="}
	for _, v := range s.settings {
		args = append(args, "-c", v)
	}
	s.log.Reset()
	s.process = s.command("postgres", args...)
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	if err := s.process.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.ended = ended
	go func(c *exec.Cmd) { _ = c.Wait(); close(ended) }(s.process)
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	for {
		c, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ended:
			return fmt.Errorf("postgres ended at once: %s", s.log.Bytes())
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop stops the server as if it crashed: without a word to its clients, and
// with the log still to be replayed.
func (s *Server) Stop() error {
	if err := s.process.Process.Signal(syscall.SIGQUIT); err != nil {
		return err
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(patience):
		return errors.New("postgres did not stop")
	}
}

// Remove stops the server and removes all that it had.
func (s *Server) Remove() {
	if s.process != nil && s.process.Process != nil {
		_ = s.Stop()
	}
	_ = os.RemoveAll(s.folder)
}

// binaries finds the folder with initdb and postgres, the newest version last.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.SortFunc(found, func(a, b string) int { return release(a) - release(b) })
	if p, err := exec.LookPath("initdb"); err == nil {
		found = append(found, filepath.Dir(p))
	}
	for _, folder := range slices.Backward(found) {
		_, err1 := os.Stat(filepath.Join(folder, "initdb"))
		_, err2 := os.Stat(filepath.Join(folder, "postgres"))
		if err1 == nil && err2 == nil {
			return folder, nil
		}
	}
	return "", errors.New("initdb and postgres are neither in PATH nor in /usr/lib/postgresql")
}

func release(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

// other is the user to run a server as in place of root.
func other() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}
