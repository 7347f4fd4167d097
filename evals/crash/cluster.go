package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience is how long a database server may take to start or to stop.
const patience = 60 * time.Second

// dialEvery is how often a server that starts is asked whether it is ready.
const dialEvery = 20 * time.Millisecond

// carefree is a setting that loses the last commits in a crash, unless the
// ledger insists on its own. fsync stays on.
const carefree = "synchronous_commit=off"

// cluster is a throw-away PostgreSQL server. It listens on a socket in its
// folder only.
type cluster struct {
	folder, bin string
	as          *syscall.Credential // nil: as this process
	process     *exec.Cmd
	ended       chan struct{}
	log         bytes.Buffer
	databases   int
}

// errNoPostgres says that there is nothing to start a server from.
var errNoPostgres = errors.New("initdb and postgres are neither in PATH nor in /usr/lib/postgresql; install PostgreSQL, for example with apt-get install postgresql")

// newCluster makes a server and starts it.
func newCluster() (*cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	c := &cluster{bin: bin}
	if c.folder, err = os.MkdirTemp("", "pg"); err != nil {
		return nil, err
	}
	if err := c.initialize(); err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

func (c *cluster) initialize() error {
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		u, err := other()
		if err != nil {
			return err
		}
		c.as = u
		if err := os.Chown(c.folder, int(u.Uid), int(u.Gid)); err != nil {
			return err
		}
	}
	initdb := c.command("initdb", "-D", c.data(), "-U", "ledger", "-A", "trust", "-E", "UTF8", "--locale=C")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return c.Start()
}

// url leads to one of the databases.
func (c *cluster) url(database string) string {
	return "postgres://ledger@/" + database + "?" + url.Values{"host": {c.folder}, "sslmode": {"disable"}}.Encode()
}

// newDatabase makes a database and returns its URL.
func (c *cluster) newDatabase(ctx context.Context) (string, error) {
	conn, err := pgx.Connect(ctx, c.url("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	c.databases++
	name := fmt.Sprintf("ledger%d", c.databases)
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	return c.url(name), err
}

func (c *cluster) data() string { return filepath.Join(c.folder, "data") }

func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}
	return cmd
}

// Start starts the server, and returns when it can be used.
func (c *cluster) Start() error {
	c.log.Reset()
	c.process = c.command("postgres", "-D", c.data(), "-k", c.folder, "-c", "listen_addresses=", "-c", carefree)
	c.process.Stdout, c.process.Stderr = &c.log, &c.log
	if err := c.process.Start(); err != nil {
		return err
	}
	c.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) { _ = cmd.Wait(); close(ended) }(c.process, c.ended)
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	for {
		conn, err := pgx.Connect(ctx, c.url("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-c.ended:
			return fmt.Errorf("postgres ended at once: %s", c.log.Bytes())
		case <-ctx.Done():
			return err
		case <-time.After(dialEvery):
		}
	}
}

// Stop stops the server as `pg_ctl stop -m immediate` does: as if it crashed,
// with its log still to be replayed.
func (c *cluster) Stop() error {
	if err := c.process.Process.Signal(syscall.SIGQUIT); err != nil {
		return err
	}
	select {
	case <-c.ended:
		return nil
	case <-time.After(patience):
		return errors.New("postgres did not stop")
	}
}

func (c *cluster) remove() {
	if c.process != nil && c.process.Process != nil {
		_ = c.Stop() // it may be down already
	}
	_ = os.RemoveAll(c.folder) // a leftover in the temporary folder is no finding
}

// binaries finds the folder with initdb and postgres.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	release := func(bin string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return release(b) - release(a) })
	if p, err := exec.LookPath("initdb"); err == nil {
		found = append([]string{filepath.Dir(p)}, found...)
	}
	for _, folder := range found {
		_, err1 := os.Stat(filepath.Join(folder, "initdb"))
		_, err2 := os.Stat(filepath.Join(folder, "postgres"))
		if err1 == nil && err2 == nil {
			return folder, nil
		}
	}
	return "", errNoPostgres
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
