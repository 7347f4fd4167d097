// Launch runs the MCP server on a fresh ledger with the demo customers, for test
// suites that start a stdio server by its command and expect the same beginning
// every time:
//
//	launch -backend sqlite -server bin/refund-mcp [-- ARGS]
//	launch -backend rest -server bin/refund-mcp -ledgerd bin/refund-ledgerd [-- ARGS]
//	launch -backend postgres -server bin/refund-mcp [-- ARGS]
//
// The server has the standard files of launch and its environment, with
// LEDGER_* set for the backend: a SQLite file in a temporary folder, a schema of
// its own in PostgreSQL, or a refund-ledgerd serve over a SQLite file, with a
// token. Launch passes SIGINT, SIGTERM and SIGHUP on, removes the ledger when the
// server has ended, and exits with its code, or with 128 and the number of the
// signal that killed it. It writes nothing itself to stdout or stderr: what goes
// wrong with launch is appended to the file -log names, and its code is 125.
//
// PostgreSQL is the server that LEDGER_TEST_POSTGRES_URL names, or a throw-away
// one. A suite shares one of those for all its starts like this:
//
//	launch -backend cluster -server SUITE -- ARGS
//
// Suites kill what hangs. So that nothing is left behind then either, the ledger
// belongs to a second process, the keeper, which removes it when it sees that
// launch is gone.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
	"github.com/refundledger/refundledger/evals/internal/backend"
)

// Exit codes, beside those of the server.
const (
	exitLaunch = 125 // launch itself failed
	exitSignal = 128 // and the number of the signal
)

func main() {
	// Before anything is made that would be left behind.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	o, err := parse(os.Args[1:])
	code := exitLaunch
	switch {
	case err != nil:
	case o.keep:
		if err = keep(o, os.Stdin, os.Stdout); err == nil {
			code = 0
		}
	default:
		code, err = launch(o, signals)
	}
	if err != nil && o.log != "" {
		report(o.log, err)
	}
	os.Exit(code)
}

type options struct {
	backend, server, ledgerd, log string
	keep                          bool
	args                          []string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("launch", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.log, "log", "", "the file for what goes wrong with launch")
	flags.StringVar(&o.backend, "backend", "memory", "memory, sqlite, postgres or rest; cluster: a PostgreSQL server for launches that the program makes")
	flags.StringVar(&o.server, "server", "", "the program to run")
	flags.StringVar(&o.ledgerd, "ledgerd", "", "the refund-ledgerd of the backend rest")
	flags.BoolVar(&o.keep, "keep", false, "be the keeper")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.args = flags.Args()
	if o.server == "" || o.backend == "rest" && o.ledgerd == "" {
		return o, errors.New("-server is needed, and -ledgerd for the backend rest")
	}
	return o, nil
}

// keep makes the ledger, says where it is, waits until in ends, and removes it.
func keep(o options, in io.Reader, out io.Writer) error {
	var b backend.Backend
	var err error
	switch o.backend {
	case "rest":
		b = backend.Daemon(o.ledgerd)
	case "cluster":
		b = &cluster{}
	default:
		if b, err = backend.New(o.backend); err != nil {
			return err
		}
	}
	defer b.Close()
	s, err := b.Fresh("", nil)
	if err != nil {
		return err
	}
	err = json.NewEncoder(out).Encode(s.Env())
	_, _ = io.Copy(io.Discard, in)
	return errors.Join(err, s.Discard())
}

// cluster is a PostgreSQL server without a ledger.
type cluster struct{ *postgrestest.Server }

func (*cluster) Durable() bool { return true }
func (*cluster) Close()        {}

func (c *cluster) Fresh(string, map[string]string) (_ backend.Store, err error) {
	c.Server, err = postgrestest.New(postgrestest.Fast)
	return c, err
}

func (c *cluster) Env() map[string]string { return map[string]string{postgrestest.ServerURL: c.URL()} }

func (c *cluster) Discard() error {
	c.Remove()
	return nil
}

// launch starts the keeper, runs the server on its ledger, and lets the keeper
// remove it. A ledger that can not be removed, or a service that did not end
// cleanly, is an error of launch, whatever the server said.
func launch(o options, signals <-chan os.Signal) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return exitLaunch, err
	}
	keeper := exec.Command(self, append([]string{"-keep"}, os.Args[1:]...)...)
	apart(keeper)
	var said bytes.Buffer
	keeper.Stderr = &said
	in, err1 := keeper.StdinPipe()
	out, err2 := keeper.StdoutPipe()
	if err := errors.Join(err1, err2, keeper.Start()); err != nil {
		return exitLaunch, err
	}
	defer func() {
		_ = in.Close()
		if bad := keeper.Wait(); bad != nil {
			code, err = exitLaunch, errors.Join(err, fmt.Errorf("the keeper of the ledger: %w %s", bad, &said))
		}
	}()
	var env map[string]string
	if err := json.NewDecoder(out).Decode(&env); err != nil {
		return exitLaunch, err
	}
	return run(o, env, signals)
}

// run runs the server to its end and returns its exit code.
func run(o options, env map[string]string, signals <-chan os.Signal) (int, error) {
	select {
	case s := <-signals: // a server that has not begun has nothing to finish
		return exitSignal + int(s.(syscall.Signal)), nil
	default:
	}
	c := exec.Command(o.server, o.args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = os.Environ()
	for name, value := range env {
		c.Env = append(c.Env, name+"="+value)
	}
	if err := c.Start(); err != nil {
		return exitLaunch, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = c.Process.Signal(s) // one that has ended needs none
		case err := <-ended:
			state := c.ProcessState
			if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
				return exitSignal + int(w.Signal()), nil
			}
			if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
				return exitLaunch, err
			}
			return state.ExitCode(), nil
		}
	}
}

func report(path string, problem error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return // there is nobody left to tell
	}
	defer f.Close()
	fmt.Fprintln(f, "launch:", problem)
}
