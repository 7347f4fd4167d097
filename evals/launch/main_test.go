//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
)

// What the test binary is when it is run again.
const (
	asLaunch = "LAUNCH_TEST_LAUNCH"
	asServer = "LAUNCH_TEST_SERVER"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asServer) != "" && !keeping(): // launch set it up, so it is the server now
		os.Exit(server(os.Getenv(asServer)))
	case os.Getenv(asLaunch) != "":
		main()
	}
	os.Exit(postgrestest.Main(m))
}

// keeping reports whether this process is launch or its keeper, which have a
// flag for the server; the server has none.
func keeping() bool { return len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-") }

// server is a stand-in for the MCP server.
func server(does string) int {
	switch does {
	case "code":
		fmt.Println("out", os.Getenv("LEDGER_BACKEND"), strings.Join(os.Args[1:], " "))
		fmt.Fprintln(os.Stderr, "err")
		return 7
	case "echo":
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			return 1
		}
		return 0
	case "wait": // for a signal, which it survives to say so, or for the end of stdin
		signals, over := make(chan os.Signal, 1), make(chan error, 1)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		fmt.Println(os.Getenv("LEDGER_SQLITE_PATH"))
		go func() {
			_, err := io.Copy(io.Discard, os.Stdin)
			over <- err
		}()
		select {
		case s := <-signals:
			fmt.Println(s)
		case <-over:
		}
		return 3
	case "cluster":
		fmt.Println(os.Getenv(postgrestest.ServerURL))
		return 0
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return 1
}

// patience is for a slow machine; nothing waits for it that works.
const patience = 2 * time.Minute

// command is launch over a temporary folder of its own, which must be empty
// in the end.
func command(t *testing.T, does string, args ...string) *exec.Cmd {
	t.Helper()
	folder := t.TempDir()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	t.Cleanup(stop)
	c := exec.CommandContext(ctx, os.Args[0], args...)
	c.Env = append(os.Environ(), asLaunch+"=1", asServer+"="+does, "TMPDIR="+folder)
	t.Cleanup(func() {
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			left, err := os.ReadDir(folder)
			if err == nil && len(left) == 0 {
				return
			}
			if time.Now().After(end) {
				t.Errorf("left behind: %v, %v", left, err)
				return
			}
		}
	})
	return c
}

func TestCodeAndSilence(t *testing.T) {
	for _, backend := range []string{"memory", "sqlite"} {
		c := command(t, "code", "-backend", backend, "-server", os.Args[0], "--", "a", "b")
		var out, err bytes.Buffer
		c.Stdout, c.Stderr = &out, &err
		bad := c.Run()
		if c.ProcessState.ExitCode() != 7 || out.String() != "out "+backend+" a b\n" || err.String() != "err\n" {
			t.Errorf("%s: %v, stdout %q, stderr %q", backend, bad, &out, &err)
		}
	}
}

func TestTheServerHasTheStandardFiles(t *testing.T) {
	c := command(t, "echo", "-backend", "sqlite", "-server", os.Args[0])
	c.Stdin = strings.NewReader("hello\n")
	if out, err := c.CombinedOutput(); err != nil || string(out) != "hello\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		c := command(t, "wait", "-backend", "sqlite", "-server", os.Args[0])
		out, lines := waiting(t, c)
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(out)
		err := c.Wait()
		if string(rest) != s.String()+"\n" || c.ProcessState.ExitCode() != 3 {
			t.Errorf("%s: %q, %v", s, rest, err)
		}
		if _, err := os.Stat(lines); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the ledger is still there: %v", err)
		}
	}
}

// waiting starts a server that waits, and returns when it does: what else it
// prints, and where its ledger is.
func waiting(t *testing.T, c *exec.Cmd) (io.Reader, string) {
	t.Helper()
	out, err1 := c.StdoutPipe()
	_, err2 := c.StdinPipe() // Wait closes it
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	var path string
	if _, err := fmt.Fscanln(out, &path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("there is no ledger: %v", err)
	}
	return out, path
}

func TestNothingIsLeftOfALaunchThatIsKilled(t *testing.T) {
	c := command(t, "wait", "-backend", "sqlite", "-server", os.Args[0])
	out, _ := waiting(t, c) // and command sees that its ledger goes away
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = out.(io.Closer).Close()
	_ = c.Wait()
}

func TestTheCodeOfAServerThatIsKilled(t *testing.T) {
	c := command(t, "die", "-server", os.Args[0])
	if out, err := c.CombinedOutput(); len(out) > 0 || c.ProcessState.ExitCode() != exitSignal+int(syscall.SIGKILL) {
		t.Errorf("%q, %v", out, err)
	}
}

func TestLaunchThatFails(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	for name, args := range map[string][]string{
		"no server":  {},
		"no program": {"-server", filepath.Join(t.TempDir(), "none")},
		"no backend": {"-server", os.Args[0], "-backend", "oracle"},
		"no ledgerd": {"-server", os.Args[0], "-backend", "rest"},
		"no daemon":  {"-server", os.Args[0], "-backend", "rest", "-ledgerd", filepath.Join(t.TempDir(), "none")},
		"no flag":    {"-log", log, "-fast"},
	} {
		_ = os.Remove(log)
		c := command(t, "code", append([]string{"-log", log}, args...)...)
		out, err := c.CombinedOutput()
		if len(out) > 0 || c.ProcessState.ExitCode() != exitLaunch {
			t.Errorf("%s: %q, %v", name, out, err)
		}
		if text, err := os.ReadFile(log); err != nil || !strings.HasPrefix(string(text), "launch: ") {
			t.Errorf("%s: the log is %q, %v", name, text, err)
		}
	}
}

func TestACluster(t *testing.T) {
	postgrestest.URL(t) // or there are no programs to start one
	c := command(t, "cluster", "-backend", "cluster", "-server", os.Args[0])
	// Its folder must be open to another user, so it is not the test's own.
	c.Env = append(c.Env, "TMPDIR="+os.TempDir())
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(strings.TrimSpace(string(out)))
	if err != nil || at.Query().Get("host") == "" {
		t.Fatalf("%q, %v", out, err)
	}
	if _, err := os.Stat(at.Query().Get("host")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server is still there: %v", err)
	}
}

// The real programs, on the backends that need more than a file.
func TestTheRealServer(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the commands")
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/...").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, args := range map[string][]string{
		"rest":     {"-backend", "rest", "-ledgerd", filepath.Join(bin, "refund-ledgerd")},
		"postgres": {"-backend", "postgres"},
	} {
		t.Run(name, func(t *testing.T) {
			c := command(t, "", append(args, "-server", filepath.Join(bin, "refund-mcp"))...)
			if name == "postgres" {
				// One that is here already, since the folder of a throw-away one must be
				// open to another user.
				c.Env = append(c.Env, postgrestest.ServerURL+"="+postgrestest.URL(t))
			}
			c.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"trigger_refund","arguments":{"customer_id":"CUST-00001","amount":5,"reason":"Item arrived damaged"}}}
`)
			out, err := c.Output()
			if err != nil || !strings.Contains(string(out), `"remainingRefundableBalance":495`) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
