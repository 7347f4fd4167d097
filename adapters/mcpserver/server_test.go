package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/ports"
)

// called is an answer as a client reads it.
type called struct {
	Content []struct{ Type, Text string }
	Result  map[string]any `json:"structuredContent"`
	IsError bool
	Meta    map[string]any `json:"_meta"`
	failed  *jsonrpc.Error
	raw     []byte
}

// refusal is the second block of a refusal.
func (c called) refusal(t *testing.T) (code, reason string, retryable bool) {
	t.Helper()
	if !c.IsError || len(c.Content) != 2 {
		t.Fatalf("it is no refusal: %s %+v", c.raw, c.failed)
	}
	var r refusal
	if err := json.Unmarshal([]byte(c.Content[1].Text), &r); err != nil {
		t.Fatal(err)
	}
	if r.Error.Message != c.Content[0].Text {
		t.Errorf("two messages: %q and %q", r.Error.Message, c.Content[0].Text)
	}
	return r.Error.Code, r.Error.Reason, r.Error.Retryable
}

// issues are the paths and codes of invalid arguments.
func (c called) issues(t *testing.T) string {
	t.Helper()
	if c.failed == nil || c.failed.Code != jsonrpc.CodeInvalidParams {
		t.Fatalf("the arguments are not refused: %s %+v", c.raw, c.failed)
	}
	var data struct{ Issues []fault.Issue }
	if err := json.Unmarshal(c.failed.Data, &data); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, i := range data.Issues {
		path, err := json.Marshal(i.Path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(path)+" "+i.Code)
		if !strings.Contains(c.failed.Message, i.Message) {
			t.Errorf("the message does not repeat %q", i.Message)
		}
	}
	return strings.Join(lines, "; ")
}

func callTool(t *testing.T, s desk, tool, arguments, meta string) called {
	t.Helper()
	c := toolCall{Name: tool, Key: func(string) {}}
	for _, part := range []struct {
		text string
		into *strictjson.Value
	}{{arguments, &c.Arguments}, {meta, &c.Meta}} {
		if part.text == "" {
			continue
		}
		v, err := strictjson.Check([]byte(part.text))
		if err != nil {
			t.Fatal(err)
		}
		*part.into = v
	}
	var out called
	out.raw, out.failed = s.Call(t.Context(), c)
	if out.failed == nil {
		if err := json.Unmarshal(out.raw, &out); err != nil {
			t.Fatalf("%v in %s", err, out.raw)
		}
	}
	return out
}

func keyed(key string) string { return `{"` + MetaKey + `":` + key + `}` }

const ten = `{"customer_id":"CUST-00001","amount":10,"reason":"Item arrived damaged"}`

func balance(t *testing.T, s desk) string {
	t.Helper()
	out := callTool(t, s, "get_customer_record", `{"customer_id":"CUST-00001"}`, "")
	_, rest, _ := strings.Cut(string(out.raw), `"structuredContent":`)
	_, rest, _ = strings.Cut(rest, `"refundableBalance":`)
	amount, _, _ := strings.Cut(rest, ",")
	return amount
}

func TestRefusalsSayWhatAModelCanActOn(t *testing.T) {
	for _, c := range []struct {
		name, arguments string
		code, reason    string
		words, details  string
	}{
		{"an unknown customer", `{"customer_id":"CUST-99999","amount":10,"reason":"Item arrived damaged"}`, "NOT_FOUND", "customer_not_found", "no customer CUST-99999", ""},
		{"a suspended customer", `{"customer_id":"CUST-00002","amount":10,"reason":"Item arrived damaged"}`, "POLICY_VIOLATION", "account_suspended", "CUST-00002 is suspended", ""},
		{"more than the balance", `{"customer_id":"CUST-00001","amount":500.01,"reason":"Item arrived damaged"}`, "POLICY_VIOLATION", "balance_exceeded", "500.01 USD exceeds the refundable balance of CUST-00001, which is 500.00 USD", `"details":{"requested":500.01,"available":500,"currency":"USD"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, nil)
			out := callTool(t, s, "trigger_refund", c.arguments, "")
			code, reason, retryable := out.refusal(t)
			if code != c.code || reason != c.reason || retryable {
				t.Errorf("it is %s/%s, retryable %v", code, reason, retryable)
			}
			if !strings.Contains(out.Content[0].Text, c.words) || !strings.Contains(out.Content[1].Text, c.details) {
				t.Errorf("it says %q and %s", out.Content[0].Text, out.Content[1].Text)
			}
			if out.Result != nil {
				t.Error("a refusal has structured content, which clients check against the output schema")
			}
			if out.Meta[MetaKey] == nil {
				t.Error("the refusal of a write does not name its operation key")
			}
			if b := balance(t, s); b != "500" {
				t.Errorf("the balance is %s", b)
			}
		})
	}
}

func TestArgumentsAreRefusedWithAllThatIsWrong(t *testing.T) {
	s := newServer(t, nil)
	for _, c := range []struct{ name, arguments, issues string }{
		{"everything at once", `{"customer_id":"cust-1","amount":"10","reason":"short","bogus":1}`,
			`["amount"] invalid_type; ["bogus"] unknown_property; ["customer_id"] invalid_format; ["reason"] invalid_text`},
		{"none", ``, `[] required`},
		{"null", `null`, `[] invalid_type`},
		{"a list", `[]`, `[] invalid_type`},
		{"nothing in them", `{}`, `["customer_id"] required; ["amount"] required; ["reason"] required`},
		{"another case, another name", `{"customer_id":"CUST-00001","Amount":10,"reason":"Item arrived damaged"}`, `["amount"] required; ["Amount"] unknown_property`},
		{"a letter that folds to s", `{"customer_id":"CUST-00001","amount":10,"rea` + "\u017f" + `on":"Item arrived damaged"}`, `["reason"] required; ["rea` + "\u017f" + `on"] unknown_property`},
		{"a misspelt name", `{"customer_id":"CUST-00001","amout":10,"reason":"Item arrived damaged"}`, `["amount"] required; ["amout"] unknown_property`},
		{"a name twice", `{"customer_id":"CUST-00001","amount":1,"amount":400,"reason":"Item arrived damaged"}`, `["amount"] duplicate_property`},
		{"a name twice, once escaped", `{"customer_id":"CUST-00001","amount":1,"\u0061mount":400,"reason":"Item arrived damaged"}`, `["amount"] duplicate_property`},
		{"the key among the arguments", `{"customer_id":"CUST-00001","amount":1,"reason":"Item arrived damaged","operation_key":"k"}`, `["operation_key"] unknown_property`},
		{"zero", `{"customer_id":"CUST-00001","amount":0,"reason":"Item arrived damaged"}`, `["amount"] too_small`},
		{"minus zero", `{"customer_id":"CUST-00001","amount":-0.0,"reason":"Item arrived damaged"}`, `["amount"] too_small`},
		{"negative", `{"customer_id":"CUST-00001","amount":-5,"reason":"Item arrived damaged"}`, `["amount"] too_small`},
		{"negative beyond all bounds", `{"customer_id":"CUST-00001","amount":-1e999999999,"reason":"Item arrived damaged"}`, `["amount"] too_small`},
		{"a third decimal", `{"customer_id":"CUST-00001","amount":10.005,"reason":"Item arrived damaged"}`, `["amount"] too_many_decimals`},
		{"a decimal that a float can not hold", `{"customer_id":"CUST-00001","amount":0.1000000000000000055,"reason":"Item arrived damaged"}`, `["amount"] too_many_decimals`},
		{"over the limit and too precise", `{"customer_id":"CUST-00001","amount":1000000.005,"reason":"Item arrived damaged"}`, `["amount"] too_big; ["amount"] too_many_decimals`},
		{"as large as its two decimals allow", `{"customer_id":"CUST-00001","amount":92233720368547758.08,"reason":"Item arrived damaged"}`, `["amount"] too_big`},
		{"negative and too precise", `{"customer_id":"CUST-00001","amount":-0.001,"reason":"Item arrived damaged"}`, `["amount"] too_small; ["amount"] too_many_decimals`},
		{"a literal beyond all lengths", `{"customer_id":"CUST-00001","amount":` + strings.Repeat("1", 5000) + `,"reason":"Item arrived damaged"}`, `["amount"] too_long`},
		{"over the limit", `{"customer_id":"CUST-00001","amount":1000000.01,"reason":"Item arrived damaged"}`, `["amount"] too_big`},
		{"beyond all bounds", `{"customer_id":"CUST-00001","amount":1e999999999,"reason":"Item arrived damaged"}`, `["amount"] too_big`},
		{"zero width characters", `{"customer_id":"CUST-00001","amount":10,"reason":"` + strings.Repeat("\u200b", 12) + `"}`, `["reason"] invalid_text`},
		{"an unpaired surrogate", `{"customer_id":"CUST-00001","amount":10,"reason":"Item arrived \ud83d damaged"}`, `["reason"] invalid_string`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := callTool(t, s, "trigger_refund", c.arguments, "").issues(t); got != c.issues {
				t.Errorf("the issues are %s\nnot            %s", got, c.issues)
			}
		})
	}
	if b := balance(t, s); b != "500" {
		t.Errorf("the balance is %s", b)
	}
}

func TestAmountsAreReadDigitByDigit(t *testing.T) {
	for _, c := range []struct{ amount, refunded, left string }{
		{"1e2", "100", "400"},
		{"10.000", "10", "490"},
		{"8.20", "8.2", "491.8"},
		{"19.99", "19.99", "480.01"},
		{"4.35", "4.35", "495.65"},
		{"1.15", "1.15", "498.85"},
		{"0.1", "0.1", "499.9"},
		{"500", "500", "0"},
	} {
		t.Run(c.amount, func(t *testing.T) {
			s := newServer(t, nil)
			out := callTool(t, s, "trigger_refund", `{"customer_id":"CUST-00001","amount":`+c.amount+`,"reason":"Item arrived damaged"}`, "")
			if !bytes.Contains(out.raw, []byte(`"amount":`+c.refunded+`,`)) || !bytes.Contains(out.raw, []byte(`"remainingRefundableBalance":`+c.left+`}`)) {
				t.Errorf("it answers %s", out.raw)
			}
		})
	}
}

func TestOneKeyHasOneEffect(t *testing.T) {
	s := newServer(t, nil)
	first := callTool(t, s, "trigger_refund", ten, keyed(`"k1"`))
	reordered := callTool(t, s, "trigger_refund", `{"reason":"  Item arrived damaged ","amount":1.0e1,"customer_id":"CUST-00001"}`, keyed(`"k1"`))
	if reordered.Meta[MetaReplayed] != true || first.Meta[MetaReplayed] != nil || first.Meta[MetaKey] != "k1" {
		t.Errorf("_meta is %v, then %v", first.Meta, reordered.Meta)
	}
	if first.Content[0].Text != reordered.Content[0].Text {
		t.Errorf("a replay differs: %s and %s", first.Content[0].Text, reordered.Content[0].Text)
	}
	other := callTool(t, s, "trigger_refund", strings.Replace(ten, "10", "15", 1), keyed(`"k1"`))
	if code, reason, _ := other.refusal(t); code != "CONFLICT" || reason != "operation_key_reused" {
		t.Errorf("it is %s/%s", code, reason)
	}
	if b := balance(t, s); b != "490" {
		t.Errorf("the balance is %s", b)
	}
	done := callTool(t, s, "get_operation", `{"operation_key":"k1"}`, "")
	if done.Result["status"] != "done" || !strings.Contains(done.Content[0].Text, `"result":`+first.Content[0].Text) {
		t.Errorf("get_operation says %s", done.Content[0].Text)
	}
}

func TestKeysOutOfFormAreRefused(t *testing.T) {
	s := newServer(t, nil)
	s.app.RequireOperationKey = true
	for meta, code := range map[string]string{
		keyed(`""`):    "invalid_format",
		keyed(`"a b"`): "invalid_format",
		keyed(`"` + strings.Repeat("k", 81) + `"`): "invalid_format",
		keyed(`17`):   "invalid_type",
		keyed(`null`): "invalid_type",
		`{}`:          "required",
		``:            "required",
	} {
		if got := callTool(t, s, "trigger_refund", ten, meta).issues(t); got != `["_meta","`+MetaKey+`"] `+code {
			t.Errorf("%s: %s", meta, got)
		}
	}
	if out := callTool(t, s, "get_customer_record", `{"customer_id":"CUST-00001"}`, ""); out.failed != nil {
		t.Errorf("a read needs no key: %v", out.failed)
	}
}

func TestHostsThatHideProtocolErrorsGetResults(t *testing.T) {
	s := newServer(t, func(o *Options) { o.InputErrorsAsResults = true })
	out := callTool(t, s, "trigger_refund", `{"customer_id":"x","amount":0,"reason":"short"}`, "")
	if code, _, _ := out.refusal(t); code != "INVALID_INPUT" {
		t.Errorf("the code is %s", code)
	}
	for _, field := range []string{"customer_id", "amount", "reason"} {
		if !strings.Contains(out.Content[0].Text, field) || !strings.Contains(out.Content[1].Text, `"path":["`+field+`"]`) {
			t.Errorf("%s is missing in %s and %s", field, out.Content[0].Text, out.Content[1].Text)
		}
	}
}

func TestWhatMayNotBeUsedIsDenied(t *testing.T) {
	tenant, err := access.ParseTenant("default")
	if err != nil {
		t.Fatal(err)
	}
	who, err := access.NewPrincipal(tenant, "reader", access.Agent, access.ScopesOf(access.CustomerRead), access.Free, "")
	if err != nil {
		t.Fatal(err)
	}
	s := newServerFor(t, who, nil)
	out := callTool(t, s, "trigger_refund", `not even arguments`[:0], "")
	if out.failed == nil || out.failed.Code != codeDenied || string(out.failed.Data) != `{"reason":"scope","required":["refund:write"]}` {
		t.Errorf("it answers %s %+v", out.raw, out.failed)
	}
	if out := callTool(t, s, "get_customer_record", `{"customer_id":"CUST-00001"}`, ""); out.failed != nil {
		t.Error(out.failed)
	}
	if got := names(t, s); got != "get_customer_record" {
		t.Errorf("it lists %s", got)
	}
}

func TestAReadOnlyServerHasNoToolsThatChange(t *testing.T) {
	s := newServer(t, func(o *Options) { o.ReadOnly = true })
	out := callTool(t, s, "trigger_refund", ten, "")
	if out.failed == nil || out.failed.Message != "Unknown tool: trigger_refund" {
		t.Errorf("it answers %s %+v", out.raw, out.failed)
	}
	if got := names(t, s); got != "get_customer_record get_invoice get_ledger_summary get_operation get_vendor_statement list_invoices list_refunds match_invoice_to_po verify_ledger" {
		t.Errorf("it lists %s", got)
	}
}

func names(t *testing.T, s desk) string {
	t.Helper()
	var l []string
	for tool, err := range connect(t, s).Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, tool.Name)
	}
	return strings.Join(l, " ")
}

// connect is a client of the SDK's side of the server.
func connect(t *testing.T, s desk) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.protocol().Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// A call may come through the SDK's session or past it; the answers are one.
func TestBothRoadsGiveOneAnswer(t *testing.T) {
	s := newServer(t, nil)
	session := connect(t, s)
	if out := callTool(t, s, "trigger_refund", ten, keyed(`"k"`)); out.IsError || out.failed != nil {
		t.Fatalf("%s %v", out.raw, out.failed)
	}
	for _, c := range []struct{ name, tool, arguments, key string }{
		{"a replay", "trigger_refund", ten, "k"},
		{"a read", "get_customer_record", `{"customer_id":"CUST-00001"}`, ""},
		{"a refusal", "trigger_refund", strings.Replace(ten, "10", "900", 1), "k2"},
		{"an issue", "trigger_refund", strings.Replace(ten, "10", `"10"`, 1), "k3"},
		{"an unknown tool", "refund", `{}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.arguments)}
			meta := ""
			if c.key != "" {
				params.Meta, meta = mcp.Meta{MetaKey: c.key}, keyed(`"`+c.key+`"`)
			}
			direct := callTool(t, s, c.tool, c.arguments, meta)
			result, err := session.CallTool(t.Context(), params)
			if direct.failed != nil {
				e, ok := errors.AsType[*jsonrpc.Error](err)
				if !ok || e.Code != direct.failed.Code || !strings.HasSuffix(err.Error(), direct.failed.Message) || string(e.Data) != string(direct.failed.Data) {
					t.Errorf("%+v and %+v", err, direct.failed)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Content) != len(direct.Content) || result.IsError != direct.IsError {
				t.Fatalf("%+v and %s", result, direct.raw)
			}
			for i, block := range result.Content {
				if text := block.(*mcp.TextContent).Text; text != direct.Content[i].Text {
					t.Errorf("%s and %s", text, direct.Content[i].Text)
				}
			}
			if result.Meta[MetaKey] != direct.Meta[MetaKey] || result.Meta[MetaReplayed] != direct.Meta[MetaReplayed] {
				t.Errorf("%v and %v", result.Meta, direct.Meta)
			}
		})
	}
}

// brokenLedger fails in the way it is told.
type brokenLedger struct {
	ports.Ledger
	do func(context.Context) (ledger.Outcome, error)
}

func (b brokenLedger) Do(ctx context.Context, _ operation.Operation, _ ledger.Command) (ledger.Outcome, error) {
	return b.do(ctx)
}

func TestAccidentsTellNothing(t *testing.T) {
	const secret = "dial tcp 10.0.0.7: password=hunter2"
	for name, do := range map[string]func(context.Context) (ledger.Outcome, error){
		"a panic":                  func(context.Context) (ledger.Outcome, error) { panic(secret) },
		"an error nobody expected": func(context.Context) (ledger.Outcome, error) { return ledger.Outcome{}, errors.New(secret) },
		"a fault that is a defect": func(context.Context) (ledger.Outcome, error) {
			return ledger.Outcome{}, fault.New(fault.Internal, "x", secret)
		},
		"an answer of another type": func(context.Context) (ledger.Outcome, error) { return ledger.Outcome{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			s := newServer(t, func(o *Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
			s.app.Ledger = brokenLedger{s.app.Ledger, do}
			out := callTool(t, s, "trigger_refund", ten, keyed(`"k1"`))
			if out.failed == nil || out.failed.Code != jsonrpc.CodeInternalError || out.failed.Message != "Internal error" {
				t.Fatalf("it answers %s %+v", out.raw, out.failed)
			}
			var data struct {
				ID   string
				Meta map[string]string `json:"_meta"`
			}
			if err := json.Unmarshal(out.failed.Data, &data); err != nil {
				t.Fatal(err)
			}
			if data.ID == "" || !strings.Contains(log.String(), data.ID) || data.Meta[MetaKey] != "k1" {
				t.Errorf("the data is %s, the log %s", out.failed.Data, &log)
			}
			if strings.Contains(string(out.failed.Data), "hunter2") {
				t.Error("the cause leaves the process")
			}
			if name != "an answer of another type" && !strings.Contains(log.String(), "hunter2") {
				t.Errorf("the log does not tell the cause: %s", &log)
			}
		})
	}
}

func TestALostAnswerSaysWhatToDo(t *testing.T) {
	lost := func(context.Context) (ledger.Outcome, error) {
		return ledger.Outcome{}, fault.New(fault.OutcomeUnknown, "outcome_unknown", "lost")
	}
	s := newServer(t, nil)
	s.app.Ledger = brokenLedger{s.app.Ledger, lost}
	hosts := callTool(t, s, "trigger_refund", ten, keyed(`"k1"`))
	if code, _, retryable := hosts.refusal(t); code != "OUTCOME_UNKNOWN" || !retryable || !strings.Contains(hosts.Content[0].Text, "The host can repeat it safely under its operation key k1") {
		t.Errorf("with the host's key: %s, retryable %v: %s", code, retryable, hosts.Content[0].Text)
	}
	minted := callTool(t, s, "trigger_refund", ten, "")
	key, _ := minted.Meta[MetaKey].(string)
	if code, _, retryable := minted.refusal(t); code != "OUTCOME_UNKNOWN" || retryable || key == "" || !strings.Contains(minted.Content[0].Text, "Do not send it again. What became of it is on record under the operation key "+key+": ask the operator.") {
		t.Errorf("with a key of ours: %s, retryable %v: %s", code, retryable, minted.Content[0].Text)
	}
}

// A lost answer names the tool that finds it, where there is one.
func TestALostAnswerNamesNoToolThatIsNotThere(t *testing.T) {
	lost := func(context.Context) (ledger.Outcome, error) {
		return ledger.Outcome{}, fault.New(fault.OutcomeUnknown, "outcome_unknown", "lost")
	}
	route := proper["route_exception"].there
	for _, tt := range []struct {
		toolsets []string
		scopes   access.Scopes
		tool     string
		call     string
		named    bool
	}{
		{[]string{"refunds"}, access.AgentScopes(), "trigger_refund", ten, false},
		{[]string{"payables"}, access.AgentScopes(), "route_exception", route, false},
		{[]string{"refunds", "history"}, access.AgentScopes(), "trigger_refund", ten, true},
		{[]string{"payables", "history"}, access.AgentScopes(), "route_exception", route, true},
		{[]string{"payables", "history"}, access.ScopesOf(access.InvoiceRead, access.InvoiceRoute), "route_exception", route, true},
	} {
		s := newServerFor(t, principal(t, "default", "local", access.Pro, tt.scopes), func(o *Options) { o.Toolsets = tt.toolsets })
		a := *s.app
		a.Ledger = brokenLedger{a.Ledger, lost}
		s.app = &a
		for _, meta := range []string{"", keyed(`"k1"`)} {
			out := callTool(t, s, tt.tool, tt.call, meta)
			if code, _, _ := out.refusal(t); code != "OUTCOME_UNKNOWN" || strings.Contains(string(out.raw), lookUpTool) != tt.named || s.listed(lookUpTool) != tt.named {
				t.Errorf("%v: %s", tt.toolsets, out.raw)
			}
		}
	}
}

// Who may only decide about invoices finds its own decision again, and nothing else.
func TestALostDecisionIsFoundWithoutTheScopesOfRefunds(t *testing.T) {
	s := newServerFor(t, principal(t, "default", "local", access.Free, access.ScopesOf(access.InvoiceRead, access.InvoiceRoute)), nil)
	if out := callTool(t, s, "route_exception", proper["route_exception"].there, keyed(`"k1"`)); out.failed != nil || out.IsError {
		t.Fatal(out.raw)
	}
	if out := callTool(t, s, "get_operation", `{"operation_key":"k1"}`, ""); out.failed != nil || out.IsError || !strings.Contains(string(out.raw), `"decision":{"invoiceId":"INV-1001"`) {
		t.Errorf("it answers %s %+v", out.raw, out.failed)
	}
	if got := names(t, s); got != "get_invoice get_ledger_summary get_operation get_vendor_statement list_invoices match_invoice_to_po route_exception" {
		t.Errorf("it lists %s", got)
	}
}

func TestTheTimeOfACallIsBounded(t *testing.T) {
	s := newServer(t, nil)
	s.app = &app.App{
		Ledger: brokenLedger{s.app.Ledger, func(ctx context.Context) (ledger.Outcome, error) {
			<-ctx.Done()
			return ledger.Outcome{}, ctx.Err()
		}},
		Refunds: s.app.Refunds, Journal: s.app.Journal, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: 20 * time.Millisecond,
	}
	// The ledger had the write, and did not say what became of it.
	out := callTool(t, s, "trigger_refund", ten, "")
	if code, reason, retryable := out.refusal(t); code != "OUTCOME_UNKNOWN" || reason != "outcome_unknown" || retryable {
		t.Errorf("it is %s/%s, retryable %v", code, reason, retryable)
	}
	s.app.Ledger = deafLedger{s.app.Ledger}
	for tool, arguments := range map[string]string{"trigger_refund": ten, "get_customer_record": `{"customer_id":"CUST-00001"}`} {
		out := callTool(t, s, tool, arguments, "")
		if code, reason, retryable := out.refusal(t); code != "BACKEND_UNAVAILABLE" || reason != "call_timeout" || !retryable {
			t.Errorf("%s: it is %s/%s, retryable %v", tool, code, reason, retryable)
		}
	}
}

// deafLedger never answers a read.
type deafLedger struct{ ports.Ledger }

func (deafLedger) Load(ctx context.Context, _ access.Tenant, _ ...ledger.Ref) (ledger.View, error) {
	<-ctx.Done()
	return ledger.View{}, ctx.Err()
}

// What is logged of a call tells an operator everything but the customer.
func TestLogLinesHoldNoPersonalData(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	callTool(t, s, "get_customer_record", `{"customer_id":"CUST-00001"}`, "")
	callTool(t, s, "trigger_refund", ten, keyed(`"k1"`))
	callTool(t, s, "trigger_refund", strings.Replace(ten, "10", "900", 1), keyed(`"k2"`))
	callTool(t, s, "trigger_refund", `{"customer_id":"CUST-00001","amount":-1,"reason":"Alice's dog"}`, "")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines: %s", len(lines), &log)
	}
	for _, personal := range []string{"Alice", "alice", "damaged", "CUST-00001"} {
		if strings.Contains(log.String(), personal) {
			t.Errorf("the log holds %q: %s", personal, &log)
		}
	}
	for _, want := range []string{`"tool":"trigger_refund"`, `"tenant":"default"`, `"principal":"local"`, `"operation":"k1"`, `"outcome":"OK"`, `"duration_ms":`} {
		if !strings.Contains(lines[1], want) {
			t.Errorf("the line lacks %s: %s", want, lines[1])
		}
	}
	if !strings.Contains(lines[2], `"outcome":"POLICY_VIOLATION"`) || !strings.Contains(lines[2], `"reason":"balance_exceeded"`) {
		t.Error(lines[2])
	}
}
