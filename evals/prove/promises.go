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
	{"nothing acknowledged is lost and nothing happens twice: SQLite", "500 kills", []string{"go", "run", "./evals/crash"}},
	{"nothing acknowledged is lost and nothing happens twice: PostgreSQL", "300 kills of servers, 50 crashes of the database", []string{"go", "run", "./evals/crash", "-backend", "postgres"}},
	{"whole trajectories end as they must on every backend", "85 cases on 4 backends", []string{"make", "evals-all"}},
	fuzz("no line breaks the gate", "FuzzGate", "./adapters/mcpserver"),
	fuzz("no document breaks the JSON checker", "FuzzCheck", "./adapters/internal/strictjson"),
	fuzz("no document breaks the decoder of arguments", "FuzzDecode", "./adapters/internal/strictjson"),
	fuzz("no literal breaks the money parser", "FuzzParseDecimal", "./domain/money"),
	fuzz("no text breaks the reason's rules", "FuzzParseReason", "./domain/refunds"),
}
