// Command mcp-typed is what the official SDK's typed tools do when used as its
// examples do: two tools over stdio, a map in memory, no journal. It is the
// floor that the product's speed over MCP is compared with.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type getIn struct {
	CustomerID string `json:"customer_id" jsonschema:"customer id, CUST- and five digits"`
}

type customer struct {
	CustomerID        string  `json:"customerId"`
	Name              string  `json:"name"`
	Email             string  `json:"email"`
	Status            string  `json:"status"`
	Currency          string  `json:"currency"`
	RefundableBalance float64 `json:"refundableBalance"`
	CreatedAt         string  `json:"createdAt"`
}

type refundIn struct {
	CustomerID string  `json:"customer_id"`
	Amount     float64 `json:"amount"`
	Reason     string  `json:"reason"`
}

type refund struct {
	RefundID    string  `json:"refundId"`
	CustomerID  string  `json:"customerId"`
	Amount      float64 `json:"amount"`
	Currency    string  `json:"currency"`
	Reason      string  `json:"reason"`
	Status      string  `json:"status"`
	ProcessedAt string  `json:"processedAt"`
	Remaining   float64 `json:"remainingRefundableBalance"`
}

type account struct {
	customer
	cents int64
}

// desk is the whole ledger of this server.
type desk struct {
	mu       sync.Mutex
	accounts map[string]*account
}

func (d *desk) get(_ context.Context, _ *mcp.CallToolRequest, in getIn) (*mcp.CallToolResult, customer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.accounts[in.CustomerID]
	if a == nil {
		return nil, customer{}, fmt.Errorf("customer %s not found", in.CustomerID)
	}
	c := a.customer
	c.RefundableBalance = float64(a.cents) / 100
	return nil, c, nil
}

func (d *desk) refund(_ context.Context, _ *mcp.CallToolRequest, in refundIn) (*mcp.CallToolResult, refund, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.accounts[in.CustomerID]
	cents := int64(in.Amount*100 + 0.5)
	if a == nil || a.Status != "active" || a.cents < cents {
		return nil, refund{}, fmt.Errorf("refund declined")
	}
	a.cents -= cents
	return nil, refund{rand.Text(), in.CustomerID, in.Amount, a.Currency, in.Reason, "processed", time.Now().UTC().Format(time.RFC3339Nano), float64(a.cents) / 100}, nil
}

func main() {
	const since = "2024-01-15T09:30:00.000Z"
	d := &desk{accounts: map[string]*account{
		"CUST-00001": {customer{"CUST-00001", "Alice Johnson", "alice.johnson@example.com", "active", "USD", 0, since}, 500_00},
		"CUST-00002": {customer{"CUST-00002", "Bruno Keller", "bruno.keller@example.com", "suspended", "USD", 0, since}, 200_00},
	}}
	s := mcp.NewServer(&mcp.Implementation{Name: "mcp-typed", Version: "0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "get_customer_record", Description: "Returns a customer record by id."}, d.get)
	mcp.AddTool(s, &mcp.Tool{Name: "trigger_refund", Description: "Issues a refund."}, d.refund)
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "mcp-typed:", err)
		os.Exit(1)
	}
}
