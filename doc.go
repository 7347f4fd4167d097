// Package refundledger is the front door of Refund Ledger, through which an
// agent acts on money without being trusted: the agent proposes, the ledger
// decides on its own records, commits each decision once and can prove it
// afterwards. This package holds no code; choose where to start by how much you
// want to embed.
//
// The rules alone: package domain/refunds decides whether a refund may happen,
// as a function of an account, a request and an operation. Its example is
// twenty lines. Packages domain/money (exact amounts), domain/journal (entries
// that balance and are chained by hash) and domain/customers (accounts and
// their lots) are what it is made of. All of domain is pure: no clock, no
// store, no network.
//
// A ledger: ports.Ledger has one write, which runs a command on the records it
// names and commits what it decided under an operation key that takes effect
// once. Package adapters/memory keeps it in one process; its example opens an
// account, refunds, repeats and proves. The other adapters take its place
// without a change to the code that calls them. For a store of your own, write
// the methods of package ports and run the laws of ports/portstest on it.
//
// The use cases: package app adds who may do what, the clock and the ids.
//
// A server: cmd/refund-mcp serves the tools to agents over MCP, and
// cmd/refund-ledgerd is the system of record for several of them.
package refundledger
