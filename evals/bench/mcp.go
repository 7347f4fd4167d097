package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/refundledger/refundledger/evals/bench/internal/side"
	"github.com/refundledger/refundledger/evals/bench/internal/stdio"
)

// The rows of the MCP benchmarks.
const (
	productMCP   = "product"
	productInfo  = "product, a log line a call"
	typedSDKTool = "typed SDK tool"
	handWritten  = "hand-written loop"
)

// mcpBenchmarks compare the server over stdio, with all its checks, the journal
// and the operation records in memory, with servers that have none.
func mcpBenchmarks(o options, dir string) []side.Benchmark {
	rows := func(measure func(stdio.Command, context.Context) (side.Sample, error)) []side.Row {
		row := func(name, program string, env ...string) side.Row {
			c := stdio.Command{Path: filepath.Join(dir, program), Env: env}
			return side.Row{Name: name, Measure: func(ctx context.Context) (side.Sample, error) { return measure(c, ctx) }}
		}
		return []side.Row{
			row(productMCP, "refund-mcp", "LOG_LEVEL=error"),
			row(productInfo, "refund-mcp", "LOG_LEVEL=info"),
			row(typedSDKTool, "mcp-typed"),
			row(handWritten, "mcp-loop"),
		}
	}
	calls := func(tool stdio.Tool, window int) []side.Row {
		return rows(func(c stdio.Command, ctx context.Context) (side.Sample, error) {
			return c.Calls(ctx, tool, window, o.calls, o.time)
		})
	}
	const pipelined = 64
	atLeast := func(times float64) []side.Want {
		return []side.Want{{Row: productMCP, Of: typedSDKTool, AtLeast: times}}
	}
	half := side.Want{Row: productMCP, Of: handWritten, Aim: 0.5}
	return []side.Benchmark{
		{Name: "mcp/start", About: "from starting the process to the first tools/list answer", Unit: side.Milliseconds,
			Rows: rows(stdio.Command.Start), Wants: []side.Want{{Row: productMCP, Of: typedSDKTool, AtMost: 3}}},
		{Name: "mcp/memory", About: "most memory held when it has listed its tools and waits", Unit: side.Megabytes,
			Rows: rows(stdio.Command.IdleMemory), Wants: []side.Want{{Row: productMCP, AtMost: 25}}},
		{Name: "mcp/refund/sequential", About: "refund calls, one at a time", Unit: side.PerSecond,
			Rows: calls(stdio.Refund, 1), Wants: atLeast(2)},
		{Name: "mcp/refund/pipelined", About: fmt.Sprintf("refund calls, %d in flight", pipelined), Unit: side.PerSecond,
			Rows: calls(stdio.Refund, pipelined), Wants: append(atLeast(4), half)},
		{Name: "mcp/look/sequential", About: "get_customer_record calls, one at a time", Unit: side.PerSecond,
			Rows: calls(stdio.Look, 1), Wants: atLeast(2)},
		{Name: "mcp/look/pipelined", About: fmt.Sprintf("get_customer_record calls, %d in flight", pipelined), Unit: side.PerSecond,
			Rows: calls(stdio.Look, pipelined), Wants: append(atLeast(4), half)},
	}
}

func needsPrograms(b side.Benchmark) bool {
	return strings.HasPrefix(b.Name, "mcp/") || strings.HasPrefix(b.Name, "http/")
}

// build compiles the product's server and the floors that are programs into dir.
func build(ctx context.Context, dir string) error {
	root, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/refundledger/refundledger")
	if err != nil {
		return err
	}
	if _, err := output(ctx, "go", "-C", root, "build", "-o", dir, "./cmd/refund-mcp"); err != nil {
		return err
	}
	_, err = output(ctx, "go", "build", "-o", dir, "./floors/mcp-typed", "./floors/mcp-loop", "./floors/mcp-http")
	return err
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0") // as `make build` builds
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", c, err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
