package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
)

// declaration is all that there is to say about a tool. The schema that is
// advertised, the checks that are enforced, the annotations, the README's table
// and the golden file follow from it.
type declaration[In, Out any] struct {
	Name    string
	Toolset string
	Title   string
	// About is for the model: when to call, what comes back, what is refused,
	// whether anything changes.
	About string
	Scope access.Scope
	// Or are scopes each of which will do as well as Scope.
	Or   []access.Scope
	Plan access.Plan
	// Changes: the tool changes state. Such a tool runs under an operation key
	// and does not exist on a read-only server.
	Changes bool
	// Destructive: what it does can not be taken back by another call.
	Destructive bool
	// Idempotent: the same call again changes nothing more, key or no key.
	Idempotent bool
	// Run calls the use case and puts its answer into words. replayed is true
	// if it had happened before, under the same key.
	Run func(ctx context.Context, a *app.App, c app.Call, in In) (out Out, replayed bool, err error)
}

// tool is a declaration made ready: what can be worked out once is.
type tool struct {
	name, toolset, title, about      string
	scope                            access.Scope   // what is told to be missing
	scopes                           []access.Scope // of which any will do, scope the first
	plan                             access.Plan
	changes, destructive, idempotent bool

	input, output *jsonschema.Schema
	// serve checks the arguments and runs the use case, unless there are issues,
	// of the arguments or those found before.
	serve func(ctx context.Context, a *app.App, c app.Call, args strictjson.Value, found []fault.Issue) (served, error)
}

// served is the outcome of a call that reached the use case, or the issues that
// kept it from there.
type served struct {
	structured []byte // the answer, encoded once
	replayed   bool
	issues     []fault.Issue
}

// declare makes a declaration ready. It panics on a mistake in the declaration:
// such a server must not start.
func declare[In, Out any](d declaration[In, Out]) tool {
	decoder := strictjson.Compile[In]("arguments")
	rules := compileRules[In]()
	return tool{
		name: d.Name, toolset: d.Toolset, title: d.Title, about: d.About, scope: d.Scope, scopes: append([]access.Scope{d.Scope}, d.Or...), plan: d.Plan,
		changes: d.Changes, destructive: d.Destructive, idempotent: d.Idempotent,
		input: inputSchema[In](), output: outputSchema[Out](),
		serve: func(ctx context.Context, a *app.App, c app.Call, args strictjson.Value, found []fault.Issue) (served, error) {
			var in In
			issues := decoder.Decode(args, &in)
			issues = append(issues, rules.check(&in, issues)...)
			if issues = append(issues, found...); len(issues) > 0 {
				return served{issues: issues}, nil
			}
			out, replayed, err := d.Run(ctx, a, c, in)
			if err != nil {
				return served{}, err
			}
			structured, err := encode(out)
			return served{structured: structured, replayed: replayed}, err
		},
	}
}

// buffers are used again: an answer is encoded into one and copied out once.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode writes v as JSON without the HTML escapes that json.Marshal adds.
func encode(v any) ([]byte, error) {
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.Clone(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// permit returns nil if the principal may use the tool, else an [access.Denied].
func (t tool) permit(p access.Principal) error { return access.PermitAny(p, t.plan, t.scopes...) }

// listing is the tool as tools/list shows it.
func (t tool) listing() *mcp.Tool {
	closed := false
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.about,
		InputSchema: t.input, OutputSchema: t.output,
		Annotations: &mcp.ToolAnnotations{
			Title:           t.title,
			ReadOnlyHint:    !t.changes,
			DestructiveHint: &t.destructive,
			IdempotentHint:  t.idempotent,
			OpenWorldHint:   &closed, // no tool reaches beyond the ledger
		},
	}
}

// allTools is every tool of the server, in the order of the documentation.
func allTools() []tool {
	return slices.Concat(refundTools(), historyTools(), payablesTools())
}

// Toolsets returns the names of the toolsets there are.
func Toolsets() []string {
	var names []string
	for _, t := range allTools() {
		if !slices.Contains(names, t.toolset) {
			names = append(names, t.toolset)
		}
	}
	return names
}

// Row is one tool in the README's table. Any of the scopes will do.
type Row struct {
	Name, Toolset, Title string
	Scopes               []string
	Changes              string
}

// Table returns a row for each tool, for the README.
func Table() []Row {
	var rows []Row
	for _, t := range allTools() {
		changes := "no"
		if t.changes {
			changes = "yes"
		}
		var scopes []string
		for _, s := range t.scopes {
			scopes = append(scopes, s.String())
		}
		rows = append(rows, Row{t.name, t.toolset, t.title, scopes, changes})
	}
	return rows
}

func selectTools(toolsets []string, readOnly bool) (map[string]tool, error) {
	known := Toolsets()
	selected := map[string]tool{}
	for _, name := range toolsets {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no toolset %q; the toolsets are %v", name, known)
		}
	}
	for _, t := range allTools() {
		if slices.Contains(toolsets, t.toolset) && !(readOnly && t.changes) {
			selected[t.name] = t
		}
	}
	return selected, nil
}
