package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/refundledger/refundledger/adapters/config"
)

func usage(w io.Writer) {
	fmt.Fprint(w, `refund-mcp serves the tools of the refund ledger to MCP clients, over stdin and stdout or over HTTP.

Usage:
  refund-mcp             serve until SIGINT or SIGTERM, or stdin ends
  refund-mcp config      print the effective settings, secrets masked
  refund-mcp --version   print the version
  refund-mcp --help      print this

Settings come from the environment:

`)
	var rows [][]string
	for _, v := range config.ServerVariables() {
		rows = append(rows, []string{"  " + v.Name, v.Default, v.Meaning})
	}
	columns(w, rows)
	fmt.Fprint(w, "\nWith MCP_TRANSPORT=http also:\n\n")
	rows = nil
	for _, v := range config.HTTPVariables() {
		rows = append(rows, []string{"  " + v.Name, v.Default, v.Meaning})
	}
	columns(w, rows)
}

func settings(w io.Writer, shown [][2]string) {
	var rows [][]string
	for _, s := range shown {
		rows = append(rows, s[:])
	}
	columns(w, rows)
}

func columns(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	_ = t.Flush() // to a terminal or a pipe that is gone
}
