package main

// promises are what the project claims, each with the count that `make prove`
// runs. `make test` runs the same tests with small counts.
var promises = []promise{
	property("the schema that is advertised and the server accept the same documents", "TestSchemaAndServerAgree", "./adapters/mcpserver", "100000"),
	property("money is exact: parsing, printing and sums agree with a second implementation", ".", "./domain/money", "100000"),
	property("no sequence of refunds leaves a negative balance or an unbalanced journal", ".", "./domain/refunds", "20000"),
	property("a changed entry is found out", ".", "./domain/journal", "20000"),
	property("the ledger in memory agrees with itself, and its histories are linearizable", ".", "./adapters/memory", "2000"),
	property("SQLite answers as the ledger in memory does, whatever comes", ".", "./adapters/sqlite", "2000"),
	property("PostgreSQL answers as the ledger in memory does, whatever comes", ".", "./adapters/postgres", "2000"),
	property("the REST client and service answer as the ledger behind them does", ".", "./adapters/restclient", "300"),
	property("the match of an invoice is exact, whatever the order and the split of its lines, and no sequence of decisions pays twice", ".", "./domain/payables", "20000"),
	{says: "nothing acknowledged is lost and nothing happens twice: SQLite", count: "500 kills", run: []string{"go", "run", "./evals/crash"}},
	{says: "nothing acknowledged is lost and nothing happens twice: PostgreSQL", count: "300 kills of servers, 50 crashes of the database", run: []string{"go", "run", "./evals/crash", "-backend", "postgres"}},
	{says: "nothing acknowledged is lost and nothing happens twice: the service", count: "100 kills", run: []string{"go", "test", "./cmd/refund-ledgerd", "-count=1", "-timeout", "60m", "-run", "TestKilledInAStorm", "-args", "-kills", "100"}},
	{says: "no answer of the REST client is untrue, whatever the network does", count: "2,000 refunds through resets and delays", run: []string{"go", "test", "./adapters/restclient", "-count=1", "-timeout", "60m", "-run", "TestStorm", "-args", "-storm", "2000"}},
	{says: "replicas behind a balancer lose nothing when they are killed", count: "100 kills", run: []string{"go", "test", "./cmd/refund-mcp", "-count=1", "-timeout", "60m", "-run", "Replica"}, env: []string{"HTTP_FULL=1"}},
	{says: "over HTTP nobody gets another's answer, and each look-up beside slow clients is answered, none refused", count: "100,000 answers; more than 5,000 look-ups beside 5,000 slow connections", run: []string{"go", "test", "./adapters/mcpserver", "-count=1", "-timeout", "60m", "-run", "HTTP"}, env: []string{"HTTP_FULL=1"}},
	{says: "whole trajectories end as they must on every backend", count: "each case on 4 backends", run: []string{"make", "evals-all"}},
	fuzz("no line breaks the gate", "FuzzGate", "./adapters/mcpserver"),
	fuzz("no document breaks the JSON checker", "FuzzCheck", "./adapters/internal/strictjson"),
	fuzz("no document breaks the decoder of arguments", "FuzzDecode", "./adapters/internal/strictjson"),
	fuzz("no literal breaks the money parser", "FuzzParseDecimal", "./domain/money"),
	fuzz("no text breaks the rules of free text", "FuzzParse", "./domain/text"),
	fuzz("an invoice number has one normal form", "FuzzNumber", "./domain/payables"),
}
