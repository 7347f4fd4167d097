//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// serviceLines finds the lines of the README that set up the service.
var serviceLines = regexp.MustCompile("(?s)### As a service.*?```sh\n(.*?)```")

// TestScripts runs testdata/script with the commands built into $WORK/bin, and
// service.sh beside them: the README's lines as they stand there, but for the
// port, which may be another's on this machine.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the commands")
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := serviceLines.FindSubmatch(readme)
	if found == nil {
		t.Fatal("README.md has no lines that set up a service")
	}
	lines := string(found[1])
	const port = ":3344"
	if n := strings.Count(lines, "\n"); n != 5 || strings.Count(lines, port) != 1 {
		t.Fatalf("the README has %d lines:\n%s", n, lines)
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../...").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			addr, err := freeAddr()
			if err != nil {
				return err
			}
			e.Setenv("LEDGERD_ADDR", addr)
			e.Setenv("LEDGER_REST_TIMEOUT", "30s") // for a slow machine
			if err := os.Symlink(bin, filepath.Join(e.WorkDir, "bin")); err != nil {
				return err
			}
			_, own, err := net.SplitHostPort(addr)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(e.WorkDir, "service.sh"), []byte(strings.Replace(lines, port, ":"+own, 1)), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"converse": converse, "ready": ready},
	})
}

// freeAddr finds an address for a server that is another process. It is not one
// that the system gives to clients: one of those could take it before the server
// does, or, while the server is down, be connected to itself.
func freeAddr() (string, error) {
	var last error
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
		last = err
	}
	return "", last
}

// patience is for a slow machine; nothing waits for it that works.
const patience = 2 * time.Minute

// ready waits until the service at LEDGERD_ADDR is.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: ready")
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if r, err := http.Get("http://" + ts.Getenv("LEDGERD_ADDR") + "/readyz"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusNoContent {
				return
			}
		}
		if time.Now().After(end) {
			ts.Fatalf("there is no service")
		}
	}
}

// converse runs a shell script as a host would that starts an MCP server:
//
//	converse SCRIPT REQUESTS ANSWERS
//
// It sends the lines of the file REQUESTS once the service at LEDGERD_ADDR is
// ready, writes as many lines of answers to the file ANSWERS, ends the input,
// and then ends what the script left running.
func converse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: converse SCRIPT REQUESTS ANSWERS")
	}
	c := exec.Command("sh", "-e", ts.MkAbs(args[0]))
	c.Dir = ts.MkAbs(".")
	c.Env = append(os.Environ(), "LEDGERD_ADDR="+ts.Getenv("LEDGERD_ADDR"), "LEDGER_REST_TIMEOUT="+ts.Getenv("LEDGER_REST_TIMEOUT"))
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(ts.MkAbs("log"))
	ts.Check(err)
	defer log.Close()
	c.Stderr = log
	in, err := c.StdinPipe()
	ts.Check(err)
	out, err := c.StdoutPipe()
	ts.Check(err)
	ts.Check(c.Start())
	all := func(s syscall.Signal) { _ = syscall.Kill(-c.Process.Pid, s) }
	late := time.AfterFunc(2*patience, func() { all(syscall.SIGKILL) })
	defer late.Stop()
	ts.Defer(func() { all(syscall.SIGKILL) })

	ready(ts, false, nil)
	_, err = io.WriteString(in, ts.ReadFile(args[1]))
	ts.Check(err)
	answers, err := os.Create(ts.MkAbs(args[2]))
	ts.Check(err)
	defer answers.Close()
	lines := bufio.NewScanner(out)
	for want := strings.Count(ts.ReadFile(args[1]), `"id"`); want > 0 && lines.Scan(); {
		fmt.Fprintln(answers, lines.Text())
		if strings.HasPrefix(lines.Text(), "{") { // the service says where it is on the same stdout
			want--
		}
	}
	ts.Check(in.Close())
	state, err := c.Process.Wait() // not for the output, which the service keeps open
	ts.Check(err)
	if !state.Success() {
		ts.Fatalf("the script ends with %s: %s", state, ts.ReadFile("log"))
	}
	all(syscall.SIGTERM)
	rest, _ := io.ReadAll(out) // until the service has ended too
	fmt.Fprintf(answers, "%s", rest)
}
