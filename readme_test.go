package refundledger_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/adapters/config"
	"github.com/refundledger/refundledger/adapters/mcpserver"
)

var update = flag.Bool("update", false, "rewrite the generated parts of README.md")

// The tables of the README are made from the declarations, so they can not lie.
func TestReadmeSaysWhatIs(t *testing.T) {
	var tools, settings strings.Builder
	tools.WriteString("| tool | toolset | what for | scope | changes state |\n|---|---|---|---|---|\n")
	for _, r := range mcpserver.Table() {
		fmt.Fprintf(&tools, "| `%s` | `%s` | %s | `%s` | %s |\n", r.Name, r.Toolset, r.Title, strings.Join(r.Scopes, "` or `"), r.Changes)
	}
	settings.WriteString("| variable | default | meaning |\n|---|---|---|\n")
	for _, v := range slices.Concat(config.ServerVariables(), config.HTTPVariables()) {
		fmt.Fprintf(&settings, "| `%s` | %s | %s |\n", v.Name, code(v.Default), v.Meaning)
	}
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := replace(t, replace(t, string(b), "tools", tools.String()), "settings", settings.String())
	if string(b) == want {
		return
	}
	if !*update {
		t.Fatal("README.md is behind the declarations; run make golden")
	}
	if err := os.WriteFile("README.md", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// code shows a value as code, and no value as nothing.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// replace puts text between the markers of a generated part.
func replace(t *testing.T, readme, part, text string) string {
	t.Helper()
	begin, end := "<!-- generated: "+part+" -->\n", "<!-- end -->"
	head, rest, ok := strings.Cut(readme, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md has no generated part %q", part)
	}
	return head + begin + text + end + tail
}
