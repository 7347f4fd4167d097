package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/refundledger/refundledger/evals/bench/internal/overhttp"
	"github.com/refundledger/refundledger/evals/bench/internal/side"
)

// The rows of the HTTP benchmarks.
const (
	staticRow = "product, static token"
	oidcRow   = "product, signed token"
	anyoneRow = "product, no token"
	sdkEcho   = "SDK's echo"
	httpWant  = 1.5 // of the SDK's echo, in the same protocol
	// The product with tokens, of itself without: a hash to look up, a signature to check.
	staticCost = 0.9
	signedCost = 0.5
	// callersHTTP is how many callers there are at once.
	callersHTTP = 16
	// centsHTTP is the balance of the customer who is refunded a cent at a time.
	centsHTTP  = 500_00
	tokenHTTP  = "bench-token"
	sessionKey = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}`
)

// era is a generation of the protocol.
type era struct {
	name        string
	sessionless bool
}

var eras = []era{{"2025-11-25", false}, {"2026-07-28", true}}

func (e era) headers(tool string) []string {
	if !e.sessionless {
		return []string{"Mcp-Protocol-Version: " + e.name}
	}
	return []string{"Mcp-Protocol-Version: " + e.name, "Mcp-Method: tools/call", "Mcp-Name: " + tool}
}

// body is the n-th call of a tool; key, if any, is its operation key.
func (e era) body(n int, tool, arguments, key string) string {
	meta := ""
	if e.sessionless {
		meta = sessionKey
	}
	if key != "" {
		if meta != "" {
			meta += ","
		}
		meta += `"refundledger.dev/operation-key":"` + key + `"`
	}
	return `{"jsonrpc":"2.0","id":` + strconv.Itoa(n) + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `,"_meta":{` + meta + `}}}`
}

// toolHTTP is a call to repeat.
type toolHTTP struct {
	name, arguments, holds string
	keyed                  bool
	cents                  int // what one call takes from the balance
}

var (
	lookHTTP   = toolHTTP{"get_customer_record", `{"customer_id":"CUST-00001"}`, `"refundableBalance"`, false, 0}
	refundHTTP = toolHTTP{"trigger_refund", `{"customer_id":"CUST-00001","amount":0.01,"reason":"damaged on arrival"}`, `"remainingRefundableBalance"`, true, 1}
	echoHTTP   = toolHTTP{"echo", `{"text":"damaged on arrival"}`, `damaged on arrival`, false, 0}
)

func (t toolHTTP) call(e era, token string) overhttp.Call {
	c := overhttp.Call{
		Headers: e.headers(t.name), Holds: t.holds,
		Body: func(n int) string {
			key := ""
			if t.keyed {
				key = "bench-" + strconv.Itoa(n)
			}
			return e.body(n, t.name, t.arguments, key)
		},
		Right: func(n int, answer []byte) error {
			var a struct {
				ID     int
				Result *struct{ StructuredContent map[string]any }
			}
			if err := json.Unmarshal(answer, &a); err != nil || a.ID != n || a.Result == nil || len(a.Result.StructuredContent) == 0 {
				return fmt.Errorf("a wrong answer: %s", answer)
			}
			return nil
		},
	}
	if token != "" {
		c.Headers = append(c.Headers, "Authorization: Bearer "+token)
	}
	return c
}

// balanced asks for the balance and compares it with the refunds made.
func balanced(t toolHTTP, token string) func(addr string, made int) error {
	return func(addr string, made int) error {
		answer, err := overhttp.Ask(addr, lookHTTP.call(eras[0], token))
		if err != nil {
			return err
		}
		var a struct {
			Result struct {
				StructuredContent struct{ RefundableBalance json.Number }
			}
		}
		want := strconv.FormatFloat(float64(centsHTTP-made*t.cents)/100, 'f', -1, 64)
		if err := json.Unmarshal(answer, &a); err != nil || a.Result.StructuredContent.RefundableBalance.String() != want {
			return fmt.Errorf("after %d calls of %s the balance must be %s: %s", made, t.name, want, answer)
		}
		return nil
	}
}

// httpBenchmarks compare the server over HTTP, with a token, all its checks,
// the journal and the operation records in memory, with an SDK server that has
// none, and with itself without tokens.
func httpBenchmarks(o options, dir string) []side.Benchmark {
	measure := func(program string, env func() []string, e era, t toolHTTP, token func() string, counted bool) func(context.Context) (side.Sample, error) {
		return func(ctx context.Context) (side.Sample, error) {
			c := overhttp.Command{Path: filepath.Join(dir, program), Env: env()}
			var check func(string, int) error
			if counted {
				check = balanced(t, token())
			}
			return c.Measure(ctx, t.call(e, token()), callersHTTP, o.calls, o.time, check)
		}
	}
	none := func() string { return "" }
	static := func() string { return tokenHTTP }
	tokens := filepath.Join(dir, "tokens")
	env := func(more ...string) func() []string {
		return func() []string { return append([]string{"MCP_TRANSPORT=http", "LOG_LEVEL=error"}, more...) }
	}
	withStatic := env("AUTH_MODE=static", "AUTH_TOKENS="+tokens)
	withNone := env("MCP_ALLOW_ANONYMOUS=true")
	var all []side.Benchmark
	for _, t := range []struct {
		name, about string
		tool        toolHTTP
	}{{"look", "get_customer_record calls", lookHTTP}, {"refund", "refunds, each under a key", refundHTTP}} {
		for _, e := range eras {
			all = append(all, side.Benchmark{
				Name: "http/" + t.name + "/" + e.name, About: fmt.Sprintf("%s over HTTP, protocol %s, %d callers", t.about, e.name, callersHTTP), Unit: side.PerSecond,
				Rows: []side.Row{
					{Name: staticRow, Measure: measure("refund-mcp", withStatic, e, t.tool, static, true)},
					{Name: sdkEcho, Measure: measure("mcp-http", func() []string { return nil }, e, echoHTTP, none, false)},
				},
				Wants: []side.Want{{Row: staticRow, Of: sdkEcho, AtLeast: httpWant}},
				Setup: func(context.Context) (func() error, error) { return func() error { return nil }, writeTokens(tokens) },
			})
		}
	}
	var issuer *issuer
	return append(all, side.Benchmark{
		Name: "http/auth", About: fmt.Sprintf("get_customer_record calls over HTTP, protocol %s, %d callers: what knowing who calls costs", eras[1].name, callersHTTP), Unit: side.PerSecond,
		Rows: []side.Row{
			{Name: staticRow, Measure: measure("refund-mcp", withStatic, eras[1], lookHTTP, static, true)},
			{Name: oidcRow, Measure: measure("refund-mcp", func() []string {
				return env("AUTH_MODE=oidc", "OIDC_ISSUER="+issuer.url, "OIDC_AUDIENCE="+audience)()
			}, eras[1], lookHTTP, func() string { return issuer.token }, true)},
			{Name: anyoneRow, Measure: measure("refund-mcp", withNone, eras[1], lookHTTP, none, true)},
		},
		Wants: []side.Want{{Row: staticRow, Of: anyoneRow, Aim: staticCost}, {Row: oidcRow, Of: anyoneRow, Aim: signedCost}},
		Setup: func(context.Context) (func() error, error) {
			if err := writeTokens(tokens); err != nil {
				return nil, err
			}
			var err error
			issuer, err = newIssuer()
			if err != nil {
				return nil, err
			}
			return issuer.close, nil
		},
	})
}

// writeTokens writes the file of the one static token.
func writeTokens(path string) error {
	hash := sha256.Sum256([]byte(tokenHTTP))
	line := `{"sha256":"` + hex.EncodeToString(hash[:]) + `","tenant":"default","id":"bench","kind":"agent","scopes":["customer:read","refund:write"],"plan":"pro"}`
	return os.WriteFile(path, []byte(line), 0o600)
}
