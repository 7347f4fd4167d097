package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/refundledger/refundledger/evals/internal/trajectory"
)

// The test's own program stands in for the server where a saboteur is needed.
func TestMain(m *testing.M) {
	if mode, ok := saboteurMode(os.Args[0]); ok {
		os.Exit(sabotage(mode, os.Args[0]))
	}
	code := m.Run()
	if serverDir != "" {
		_ = os.RemoveAll(serverDir) // a leftover in the temporary folder is no failure
	}
	os.Exit(code)
}

var serverDir string

// server builds the real server, once.
var server = sync.OnceValues(func() (path string, err error) {
	if serverDir, err = os.MkdirTemp("", "refundledger-evals-test-"); err != nil {
		return "", err
	}
	return build(context.Background(), serverDir, os.Stderr)
})

func realServer(t *testing.T) string {
	t.Helper()
	path, err := server()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// evals runs the program with those arguments.
func evals(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// caseFile writes a folder with one file of cases.
func caseFile(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "refunds"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "refunds", "x.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAllCommittedCasesAreRead(t *testing.T) {
	cases, err := trajectory.Load(os.DirFS("cases"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range cases {
		count[c.Subject]++
	}
	if count["refunds"] < 30 || count["history"] < 5 {
		t.Errorf("cases were lost: %v", count)
	}
}

const (
	look   = `{"call": "get_customer_record", "with": {"customer_id": "CUST-00001"}, `
	refund = `{"call": "trigger_refund", "key": "k", "with": {"customer_id": "CUST-00001", "amount": 10, "reason": "Item arrived damaged"}, `
)

func TestAWrongExpectationFails(t *testing.T) {
	for _, tt := range []struct{ law, steps, more, want string }{
		{"content that differs", look + `"want": {"refundableBalance": 501}}`, ``,
			`FAIL  wrong: step 1: want refundableBalance = 501, got 500`},
		{"success instead of a refusal", refund + `"refused": "POLICY_VIOLATION/account_suspended"}`, ``,
			`FAIL  wrong: step 1: want refused POLICY_VIOLATION/account_suspended, got done {"refundId":`},
		{"another refusal", `{"call": "trigger_refund", "with": {"customer_id": "CUST-00002", "amount": 10, "reason": "Item arrived damaged"}, "refused": "POLICY_VIOLATION/balance_exceeded"}`, ``,
			`FAIL  wrong: step 1: want refused POLICY_VIOLATION/balance_exceeded, got refused POLICY_VIOLATION/account_suspended "Customer CUST-00002 is suspended.`},
		{"a refusal instead of success", `{"call": "trigger_refund", "with": {"customer_id": "CUST-00002", "amount": 10, "reason": "Item arrived damaged"}, "want": {}}`, ``,
			`FAIL  wrong: step 1: want success {}, got refused POLICY_VIOLATION/account_suspended`},
		{"an issue that is not there", `{"call": "trigger_refund", "with": {"customer_id": "CUST-00001", "amount": -1, "reason": "Item arrived damaged"}, "invalid": ["amount", "reason"]}`, ``,
			`FAIL  wrong: step 1: want issues on amount, reason, got amount: [{"path":["amount"]`},
		{"an issue that is not expected", `{"call": "trigger_refund", "with": {"customer_id": "CUST-00001", "amount": -1, "reason": "short"}, "invalid": ["amount"]}`, ``,
			`FAIL  wrong: step 1: want issues on amount, got amount, reason: [`},
		{"another protocol error", `{"call": "pay_vendor", "with": {}, "error": -32601}`, ``,
			`FAIL  wrong: step 1: want error -32601, got error {"code":-32602,`},
		{"another message", `{"call": "pay_vendor", "with": {}, "error": -32602, "says": "denied"}`, ``,
			`FAIL  wrong: step 1: want a message like "denied", got "Unknown tool: pay_vendor"`},
		{"no denial", refund + `"denied": {"reason": "scope"}}`, ``,
			`FAIL  wrong: step 1: want denied {"reason":"scope"}, got done`},
		{"a replay that is none", refund + `"want": {}, "replayed": true}`, ``,
			`FAIL  wrong: step 1: want replayed = true, got false`},
		{"another key", refund + `"want": {}, "operation": "other"}`, ``,
			`FAIL  wrong: step 1: want _meta.refundledger.dev/operation-key = "other", got "k"`},
		{"a captured value that changed", `{"call": "trigger_refund", "with": {"customer_id": "CUST-00001", "amount": 10, "reason": "Item arrived damaged"}, "repeat": 2, "want": {"refundId": "$id"}}`, ``,
			`FAIL  wrong: step 1: call 2 of 2: want refundId = "`},
		{"another tally", `{"parallel": [{"call": "trigger_refund", "repeat": 3, "with": {"customer_id": "CUST-00001", "amount": 200, "reason": "Item arrived damaged"}}], "tally": {"done": 3}}`, ``,
			`FAIL  wrong: step 1: want 3 done, got 1 POLICY_VIOLATION/balance_exceeded and 2 done`},
		{"other tools", `{"tools": ["get_customer_record"]}`, ``,
			`FAIL  wrong: step 1: want the tools [get_customer_record], got [get_customer_record get_invoice`},
		{"an answer where silence is due", `{"raw": {"jsonrpc": "2.0", "id": "loud", "method": "ping"}, "silent": true}`, ``,
			`FAIL  wrong: step 1: an answer nobody waits for, with the id "loud": {`},
		{"a later step", look + `"want": {}}, ` + look + `"want": {"status": "suspended"}}`, ``,
			`FAIL  wrong: step 2: want status = "suspended", got "active"`},
		{"a refund that the case does not mention", refund + `"want": {}}`, ``,
			`FAIL  wrong: at the end: want CUST-00001: balance 500, got 490`},
		{"a balance that differs", refund + `"want": {}}`, `, "end": {"CUST-00001": {"balance": 489.99, "refunds": 1}}`,
			`FAIL  wrong: at the end: want CUST-00001: balance 489.99, got 490`},
		{"a number of refunds that differs", refund + `"want": {}}`, `, "end": {"CUST-00001": {"balance": 490, "refunds": 2}}`,
			`FAIL  wrong: at the end: want CUST-00001: 2 refunds, got 1`},
		{"a customer that is not there", look + `"want": {}}`, `, "end": {"CUST-00009": {"refunds": 1}}`,
			`FAIL  wrong: at the end: CUST-00009 is no customer of the demo data`},
		{"a forbidden refund", refund + `"want": {}}`, `, "end": {"CUST-00001": {"balance": 490, "refunds": 1}}, "never": {"refunded": [{"amount": 10.00}]}`,
			`FAIL  wrong: at the end: want CUST-00001: no refund like {"amount":10.00}, got {"refundId":`},
		{"a forbidden answer", look + `"want": {}}`, `, "never": {"said": ["alice.johnson@"]}`,
			`FAIL  wrong: want no answer that contains "alice.johnson@", got {`},
		{"a forbidden log line", look + `"want": {}}`, `, "never": {"logged": ["get_customer_record"]}`,
			`FAIL  wrong: want no log line that contains "get_customer_record", got {`},
		{"what the principal can not see", refund + `"want": {}}`, `, "env": {"PRINCIPAL_SCOPES": "refund:write"}, "end": {"CUST-00001": {"balance": 490}}`,
			`FAIL  wrong: at the end: CUST-00001: the balance can not be seen`},
	} {
		t.Run(tt.law, func(t *testing.T) {
			t.Parallel()
			dir := caseFile(t, `[{"name": "wrong", "why": "It is wrong.", "steps": [`+tt.steps+`]`+tt.more+`}]`)
			code, out, errs := evals(t, "-server", realServer(t), "-cases", dir)
			if code != exitFailed || !strings.HasPrefix(out, tt.want) {
				t.Errorf("exit code %d, %s%s\nwant exit code 1, %s", code, out, errs, tt.want)
			}
			if !strings.HasSuffix(out, "\n0/1 cases passed (0.0%)\n0 passed, 1 failed\n") {
				t.Errorf("the last lines are wrong:\n%s", out)
			}
		})
	}
}

func TestAServerThatStartsWhereItMustNotFails(t *testing.T) {
	dir := caseFile(t, `[
		{"name": "healthy", "why": "It starts.", "env": {"MCP_TRANSPORT": "carrier-pigeon"}, "no_start": "MCP_TRANSPORT"},
		{"name": "other-words", "why": "It says something else.", "env": {"MCP_TRANSPORT": "carrier-pigeon"}, "no_start": "LEDGER_BACKEND"}
	]`)
	code, out, _ := evals(t, "-server", realServer(t), "-cases", dir)
	if code != exitFailed || !strings.HasPrefix(out, "PASS  healthy\nFAIL  other-words: want stderr like \"LEDGER_BACKEND\", got ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if !strings.HasSuffix(out, "\n1/2 cases passed (50.0%)\n1 passed, 1 failed\n") {
		t.Errorf("the last lines are wrong:\n%s", out)
	}
}

func TestWhatCanNotBeRunExitsWith2(t *testing.T) {
	wrong := caseFile(t, "[{\"name\": \"typo\", \"why\": \"It has one.\", \"steps\": [\n  {\"tool\": \"x\"}]}]")
	twice := caseFile(t, `[{"name": "twin", "why": "One.", "steps": [{"tools": []}]}, {"name": "twin", "why": "Two.", "steps": [{"tools": []}]}]`)
	for _, tt := range []struct {
		law  string
		args []string
		want string
	}{
		{"an unknown field", []string{"-cases", wrong}, `refunds/x.json:2:4: case "typo": steps[0].tool: unknown field "tool"; there are note, call,`},
		{"a name twice", []string{"-cases", twice}, `refunds/x.json: the name "twin" is taken by a case in refunds/x.json`},
		{"an unknown flag", []string{"-jobs", "2"}, `flag provided but not defined: -jobs`},
		{"an argument too many", []string{"suspended"}, `unexpected argument "suspended"; -run REGEXP selects cases`},
		{"a pattern that is none", []string{"-run", "("}, `-run: error parsing regexp`},
		{"a pattern that no case matches", []string{"-run", "^no-such-case$"}, `no case matches`},
		{"no jobs", []string{"-j", "0"}, `-j 0: at least one`},
		{"an unknown backend", []string{"-backend", "oracle"}, `the backends are memory, sqlite, postgres, rest`},
		{"no server there", []string{"-server", "no/such/file"}, `-server: stat `},
		{"no cases there", []string{"-cases", t.TempDir()}, `there are no case files SUBJECT/*.json`},
	} {
		code, out, errs := evals(t, tt.args...)
		if code != exitNotRun || !strings.Contains(errs, tt.want) || out != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr\n%swant %s", tt.law, code, out, errs, tt.want)
		}
	}
}

func TestListRunsNothing(t *testing.T) {
	code, out, _ := evals(t, "-list", "-run", "^refunds/overdraw-in-one")
	if want := "refunds/overdraw-in-one-step\n      No refund is larger than the balance"; code != exitPassed || !strings.HasPrefix(out, want) {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

func TestReportsSayWhatTheLinesSay(t *testing.T) {
	dir := caseFile(t, `[
		{"name": "good", "why": "It holds.", "steps": [`+look+`"want": {}}]},
		{"name": "bad", "why": "It does not.", "steps": [`+look+`"want": {"status": "suspended"}}]},
		{"name": "later", "why": "It can not be run here.", "needs": "durable", "steps": [{"restart": {}}]}
	]`)
	files := t.TempDir()
	asJSON, asXML := filepath.Join(files, "r.json"), filepath.Join(files, "r.xml")
	code, out, errs := evals(t, "-server", realServer(t), "-cases", dir, "-j", "3", "-json", asJSON, "-junit", asXML)
	want := "PASS  good\n" +
		"FAIL  bad: step 1: want status = \"suspended\", got \"active\"\n" +
		"SKIP  later: needs a store that outlives the server\n" +
		"\n1/2 cases passed (50.0%)\n1 skipped\n1 passed, 1 failed\n"
	if code != exitFailed || out != want {
		t.Errorf("exit code %d, got\n%s%swant\n%s", code, out, errs, want)
	}

	var report struct {
		Passed, Failed, Skipped int
		Cases                   []struct{ Subject, Name, Status, Detail string }
	}
	read(t, asJSON, json.Unmarshal, &report)
	if report.Passed != 1 || report.Failed != 1 || report.Skipped != 1 || report.Cases[1].Status != "failed" || report.Cases[1].Subject != "refunds" ||
		report.Cases[1].Detail != `step 1: want status = "suspended", got "active"` || report.Cases[2].Status != "skipped" {
		t.Errorf("JSON: %+v", report)
	}

	var suites struct {
		Suite []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Skipped  int    `xml:"skipped,attr"`
			Case     []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	read(t, asXML, xml.Unmarshal, &suites)
	if s := suites.Suite[0]; s.Name != "evals/refunds" || s.Tests != 3 || s.Failures != 1 || s.Skipped != 1 ||
		s.Case[0].Failure != nil || s.Case[1].Failure == nil || !strings.Contains(s.Case[1].Failure.Message, "got \"active\"") {
		t.Errorf("JUnit: %+v", suites)
	}
}

func read(t *testing.T, file string, unmarshal func([]byte, any) error, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
