package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs is the folder of the real programs.
type programs string

// build makes the programs in a folder.
func build(ctx context.Context, folder string, stderr io.Writer) (programs, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", folder+string(filepath.Separator), "./cmd/refund-mcp", "./cmd/refund-ledgerd")
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, stderr, stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building the programs: %w", err)
	}
	return programs(folder), nil
}

// moduleRoot is the folder of go.mod, upwards from where we are.
func moduleRoot() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", errors.New("run this inside the module")
		}
		at = up
	}
}

// ledger is a system of record, and the programs that work on it.
type ledger struct {
	programs programs
	at       string   // its file or its URL
	env      []string // points the programs at it
}

func inFile(p programs, path string) ledger {
	return ledger{p, path, []string{"LEDGER_BACKEND=sqlite", "LEDGER_SQLITE_PATH=" + path}}
}

func inDatabase(p programs, url string) ledger {
	return ledger{p, url, []string{"LEDGER_BACKEND=postgres", "LEDGER_POSTGRES_URL=" + url}}
}

// command is one of the programs, about to work on the ledger. It sees no other
// settings.
func (l ledger) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(string(l.programs), program), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TOOLSETS=all"}, l.env...)
	return cmd
}

// server is the MCP server, not started yet.
func (l ledger) server(ctx context.Context) *exec.Cmd { return l.command(ctx, "refund-mcp") }

// serve starts a server.
func (l ledger) serve(ctx context.Context) (*client, error) { return start(ctx, l.server(ctx)) }

// operate runs one of the operator's commands and returns what it printed.
func (l ledger) operate(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := l.command(ctx, "refund-ledgerd", args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("refund-ledgerd %s: %w: %s", strings.Join(args, " "), err, out.Bytes())
	}
	return out.String(), nil
}
