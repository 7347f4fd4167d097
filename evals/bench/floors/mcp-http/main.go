// Command mcp-http is the official SDK's stateless streamable HTTP server with
// one typed tool that echoes, used as its examples do: no token, no checks, no
// ledger. It is the floor that the product's speed over HTTP is compared with.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type text struct {
	Text string `json:"text"`
}

func echo(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, text, error) {
	return nil, in, nil
}

func main() {
	s := mcp.NewServer(&mcp.Implementation{Name: "mcp-http", Version: "0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Returns the text."}, echo)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	http.Handle("/mcp", h)
	if err := http.ListenAndServe(os.Getenv("MCP_HTTP_ADDR"), nil); err != nil {
		fmt.Fprintln(os.Stderr, "mcp-http:", err)
		os.Exit(1)
	}
}
