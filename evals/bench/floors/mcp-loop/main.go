// Command mcp-loop is the floor of a stdio MCP server in Go: two tools, a
// hand-written JSON-RPC loop on encoding/json, one goroutine, no rules and no
// journal. It shows what is possible; it is no server to use.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type callParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type getIn struct {
	CustomerID string `json:"customer_id"`
}

type refundIn struct {
	CustomerID string      `json:"customer_id"`
	Amount     json.Number `json:"amount"`
	Reason     string      `json:"reason"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type result struct {
	Content           []content       `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
}

type reply struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
}

type customer struct {
	CustomerID        string      `json:"customerId"`
	Name              string      `json:"name"`
	Email             string      `json:"email"`
	Status            string      `json:"status"`
	Currency          string      `json:"currency"`
	RefundableBalance json.Number `json:"refundableBalance"`
	CreatedAt         string      `json:"createdAt"`
}

type refund struct {
	RefundID    string      `json:"refundId"`
	CustomerID  string      `json:"customerId"`
	Amount      json.Number `json:"amount"`
	Currency    string      `json:"currency"`
	Reason      string      `json:"reason"`
	Status      string      `json:"status"`
	ProcessedAt string      `json:"processedAt"`
	Remaining   json.Number `json:"remainingRefundableBalance"`
}

var (
	initialized = json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"mcp-loop","version":"0"}}`)
	tools       = json.RawMessage(`{"tools":[{"name":"get_customer_record","inputSchema":{"type":"object"}},{"name":"trigger_refund","inputSchema":{"type":"object"}}]}`)
)

var balance int64 = 500_00

func main() {
	if err := serve(bufio.NewReaderSize(os.Stdin, 64<<10), bufio.NewWriterSize(os.Stdout, 64<<10)); err != nil {
		fmt.Fprintln(os.Stderr, "mcp-loop:", err)
		os.Exit(1)
	}
}

func serve(in *bufio.Reader, out *bufio.Writer) error {
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		if r.ID == nil {
			continue
		}
		answer, err := handle(r)
		if err != nil {
			return err
		}
		b, err := json.Marshal(reply{"2.0", r.ID, answer})
		if err != nil {
			return err
		}
		_, _ = out.Write(b) // Flush reports it
		_ = out.WriteByte('\n')
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func handle(r request) (any, error) {
	switch r.Method {
	case "initialize":
		return initialized, nil
	case "tools/list":
		return tools, nil
	case "tools/call":
		var p callParams
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return nil, err
		}
		v, err := call(p)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(v)
		return result{[]content{{"text", string(b)}}, b}, err
	}
	return nil, fmt.Errorf("unknown method %s", r.Method)
}

func call(p callParams) (any, error) {
	switch p.Name {
	case "get_customer_record":
		var in getIn
		err := strict(p.Arguments, &in)
		return customer{in.CustomerID, "Alice Johnson", "alice.johnson@example.com", "active", "USD", major(balance), "2024-01-15T09:30:00.000Z"}, err
	case "trigger_refund":
		var in refundIn
		if err := strict(p.Arguments, &in); err != nil {
			return nil, err
		}
		f, err := in.Amount.Float64()
		balance -= int64(f*100 + 0.5)
		return refund{rand.Text(), in.CustomerID, in.Amount, "USD", in.Reason, "processed", time.Now().UTC().Format(time.RFC3339Nano), major(balance)}, err
	}
	return nil, fmt.Errorf("unknown tool %s", p.Name)
}

func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func major(cents int64) json.Number {
	return json.Number(strconv.FormatFloat(float64(cents)/100, 'f', -1, 64))
}
