package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/refundledger/refundledger/adapters/demo"
	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
)

// proper are arguments of each tool that its use case accepts, of a record that
// is there and of one that is not. A tool without a row fails the tests.
var proper = map[string]struct{ there, unknown string }{
	"get_customer_record": {`{"customer_id":"CUST-00001"}`, `{"customer_id":"CUST-77777"}`},
	"trigger_refund":      {ten, strings.Replace(ten, "00001", "77777", 1)},
	"list_refunds":        {`{"customer_id":"CUST-00001"}`, `{"customer_id":"CUST-77777"}`},
	"get_operation":       {`{"operation_key":"made-1"}`, `{"operation_key":"made-7"}`},
	"verify_ledger":       {`{"customer_id":"CUST-00001"}`, `{"customer_id":"CUST-77777"}`},

	"get_invoice":          {`{"invoice_id":"INV-1001"}`, `{"invoice_id":"INV-7777"}`},
	"match_invoice_to_po":  {`{"invoice_id":"INV-1001"}`, `{"invoice_id":"INV-7777"}`},
	"route_exception":      {`{"invoice_id":"INV-1001","action":"approve","reason_code":"CLEAN_MATCH"}`, `{"invoice_id":"INV-7777","action":"approve","reason_code":"CLEAN_MATCH"}`},
	"get_vendor_statement": {`{"vendor_id":"V-100"}`, `{"vendor_id":"V-777"}`},
	// These name nothing that has to be there: what is another tenant's is not in them.
	"list_invoices":      {`{"vendor_id":"V-100"}`, `{"vendor_id":"V-777"}`},
	"get_ledger_summary": {`{}`, `{"currency":"EUR"}`},
}

func arguments(t *testing.T, tool tool) (there, unknown string) {
	t.Helper()
	a, ok := proper[tool.name]
	if !ok {
		t.Fatalf("%s has no arguments here: add them to proper", tool.name)
	}
	return a.there, a.unknown
}

// transports carry one message to a server as a principal and bring the answer back.
var transports = map[string]func(t *testing.T, s *Server, who access.Principal, message string) string{
	"stdio": func(t *testing.T, s *Server, who access.Principal, message string) string {
		t.Helper()
		var out bytes.Buffer
		if err := s.ServeStdio(t.Context(), who, strings.NewReader(initializeLine+"\n"+initializedLine+"\n"+message+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		// Nobody waited for the answer to initialize, so either may come first.
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `"id":"init"`) })
		if len(lines) != 1 {
			t.Fatalf("%d answers: %s", len(lines), &out)
		}
		return lines[0]
	},
	"HTTP": func(t *testing.T, s *Server, who access.Principal, message string) string {
		t.Helper()
		return overHTTP(t, s, who, message, nil)
	},
	"HTTP in the new era": func(t *testing.T, s *Server, who access.Principal, message string) string {
		t.Helper()
		m := inspect([]byte(message))
		meta := sessionlessMeta("")
		if m.call.Meta.Raw() != nil {
			meta = sessionlessMeta("," + strings.Trim(string(m.call.Meta.Raw()), "{}"))
		}
		body := toolsCall(string(m.id.raw), m.call.Name, string(m.call.Arguments.Raw()), meta)
		return overHTTP(t, s, who, body, sessionlessHeaders("tools/call", m.call.Name))
	},
}

func overHTTP(t *testing.T, s *Server, who access.Principal, message string, headers []string) string {
	t.Helper()
	h, err := s.HTTP(HTTPOptions{
		Hosts: []string{"example.com"}, PublicURL: "http://example.com/mcp", MaxInFlight: 1,
		Verifier: &tokens{known: map[string]access.Principal{"token": who}}, Ready: func(context.Context) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, pathMCP, strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer token")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

// books is everything that is booked in the tenants of the tests.
func books(t *testing.T, store *memory.Store) string {
	t.Helper()
	var all []any
	for _, name := range []string{"default", "other", "nobody"} {
		tenant, err := access.ParseTenant(name)
		if err != nil {
			t.Fatal(err)
		}
		accounts, err := store.ListAccounts(t.Context(), tenant, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range accounts {
			entries, err := store.ListEntries(t.Context(), tenant, journal.Subject{Kind: customers.Kind.Name, ID: a.ID.String()}, 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, name, a, entries)
		}
		vendors, err := store.ListVendors(t.Context(), tenant, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vendors {
			entries, err := store.ListEntries(t.Context(), tenant, v.ID.Subject(), 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, name, v, entries)
		}
	}
	return fmt.Sprintf("%+v", all)
}

// matrix is a server over a ledger that has one refund, under the key made-1.
func matrix(t *testing.T, readOnly bool) (*Server, *memory.Store) {
	t.Helper()
	store := memory.New()
	who := principal(t, "default", "local", access.Pro, access.AgentScopes())
	if err := demo.Seed(t.Context(), store, who.Tenant(), system.Clock{}, system.IDs{}); err != nil {
		t.Fatal(err)
	}
	a := &app.App{Ledger: store, Refunds: store, Payables: store, Journal: store, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: patience}
	s, err := New(a, Options{Version: "test", Toolsets: Toolsets(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	seeded := books(t, store)
	if out := callTool(t, desk{Server: s, principal: who}, "trigger_refund", ten, keyed(`"made-1"`)); out.failed != nil || out.IsError {
		t.Fatalf("%s", out.raw)
	}
	if books(t, store) == seeded {
		t.Fatal("the books do not show what is booked")
	}
	if s, err = New(a, Options{Version: "test", Toolsets: Toolsets(), ReadOnly: readOnly, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return s, store
}

func without(scopes access.Scopes, taken ...access.Scope) access.Scopes {
	var left []access.Scope
	for _, s := range scopes.List() {
		if !slices.Contains(taken, s) {
			left = append(left, s)
		}
	}
	return access.ScopesOf(left...)
}

// Every tool, without its scope (or those of which any will do) and on every lower plan, on every transport:
// denied, whatever else the caller may do, and nothing is booked.
func TestMatrixWhatIsMissingDenies(t *testing.T) {
	s, store := matrix(t, false)
	before := books(t, store)
	for _, tool := range allTools() {
		there, _ := arguments(t, tool)
		message := toolsCall("1", tool.name, there, keyed(`"matrix"`))
		type row struct {
			name string
			who  access.Principal
			want string
		}
		rows := []row{
			{"every scope but its own", principal(t, "default", "local", access.Pro, without(access.AgentScopes(), tool.scopes...)),
				`"error":{"code":-32001,"message":"The scope ` + tool.scope.String() + ` is needed to use this tool.","data":{"reason":"scope","required":["` + tool.scope.String() + `"]}}`},
			{"no scope", principal(t, "default", "local", access.Pro, access.Scopes{}), `"data":{"reason":"scope","required":["` + tool.scope.String() + `"]}}`},
		}
		for plan := range tool.plan {
			upper := strings.ToUpper(tool.plan.String())
			rows = append(rows,
				row{"the plan " + plan.String(), principal(t, "default", "local", plan, access.AgentScopes()),
					`"error":{"code":-32001,"message":"Upgrade to ` + upper + ` plan to use this tool.","data":{"reason":"plan","required":"` + tool.plan.String() + `"}}`},
				row{"the plan " + plan.String() + " and no scope", principal(t, "default", "local", plan, access.Scopes{}), `"reason":"scope"`})
		}
		for transport, carry := range transports {
			for _, r := range rows {
				t.Run(tool.name+"/"+r.name+"/"+transport, func(t *testing.T) {
					if got := carry(t, s, r.who, message); !strings.Contains(got, r.want) || strings.Contains(got, `"result"`) {
						t.Errorf("it answers %s\nnot %s", got, r.want)
					}
					if after := books(t, store); after != before {
						t.Fatalf("something is booked:\n%s\n%s", before, after)
					}
				})
			}
		}
	}
}

// The law of plans, on a tool that has one.
func TestMatrixALowerPlanDenies(t *testing.T) {
	s, store := matrix(t, false)
	s.tools = maps.Clone(s.tools)
	dear := s.tools["trigger_refund"]
	dear.plan = access.Pro
	s.tools["trigger_refund"] = dear
	before := books(t, store)
	for transport, carry := range transports {
		for _, plan := range []access.Plan{access.Free, access.Growth} {
			got := carry(t, s, principal(t, "default", "local", plan, access.AgentScopes()), toolsCall("1", "trigger_refund", `{"nonsense":1}`, keyed(`"matrix"`)))
			if !strings.Contains(got, `"error":{"code":-32001,"message":"Upgrade to PRO plan to use this tool.","data":{"reason":"plan","required":"pro"}}`) {
				t.Errorf("%s, %s: %s", transport, plan, got)
			}
		}
	}
	if books(t, store) != before {
		t.Error("something is booked")
	}
}

// Another tenant's ids answer, byte for byte, like ids that are nobody's.
func TestMatrixForeignIDsAreUnknown(t *testing.T) {
	s, store := matrix(t, false)
	before := books(t, store)
	stranger := principal(t, "other", "local", access.Pro, access.AgentScopes())
	for _, tool := range allTools() {
		there, unknown := arguments(t, tool)
		for transport, carry := range transports {
			t.Run(tool.name+"/"+transport, func(t *testing.T) {
				foreign := carry(t, s, stranger, toolsCall("1", tool.name, there, keyed(`"matrix"`)))
				nobodys := carry(t, s, stranger, toolsCall("1", tool.name, unknown, keyed(`"matrix"`)))
				nobodys = strings.NewReplacer("CUST-77777", "CUST-00001", "made-7", "made-1", "INV-7777", "INV-1001", "V-777", "V-100").Replace(nobodys)
				empty := strings.Contains(foreign, `"invoices":[]`) || strings.Contains(foreign, `"currencies":[]`)
				if foreign != nobodys || !empty && !strings.Contains(foreign, "NOT_FOUND") {
					t.Errorf("a foreign id: %s\nan unknown one: %s", foreign, nobodys)
				}
				if after := books(t, store); after != before {
					t.Fatalf("something is booked:\n%s\n%s", before, after)
				}
			})
		}
	}
}

func TestMatrixReadOnlyHoldsEverywhere(t *testing.T) {
	s, store := matrix(t, true)
	before := books(t, store)
	who := principal(t, "default", "local", access.Pro, access.AgentScopes())
	for _, tool := range allTools() {
		there, _ := arguments(t, tool)
		for transport, carry := range transports {
			got := carry(t, s, who, toolsCall("1", tool.name, there, ""))
			if tool.changes != strings.Contains(got, `"message":"Unknown tool: `+tool.name+`"`) || tool.changes == strings.Contains(got, `"result"`) {
				t.Errorf("%s on %s: %s", tool.name, transport, got)
			}
		}
	}
	if books(t, store) != before {
		t.Error("something is booked")
	}
	for _, list := range []string{
		transports["stdio"](t, s, who, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`),
		overHTTP(t, s, who, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil),
	} {
		var m struct {
			Result struct{ Tools []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(list), &m); err != nil || len(m.Result.Tools) != len(s.tools) || strings.Contains(list, `"trigger_refund","outputSchema"`) {
			t.Errorf("it lists %s", list)
		}
	}
}
