package main

// promises are what the project claims, each with the count that `make prove`
// runs. `make test` runs the same tests with small counts.
var promises = []promise{
	property("the schema that is advertised and the server accept the same documents", "TestSchemaAndServerAgree", "./adapters/mcpserver", "100000"),
	property("money is exact: parsing, printing and sums agree with a second implementation", ".", "./domain/money", "100000"),
	property("no sequence of refunds leaves a negative balance or an unbalanced journal", ".", "./domain/refunds", "20000"),
	property("a changed entry is found out", ".", "./domain/journal", "20000"),
	fuzz("no line breaks the gate", "FuzzGate", "./adapters/mcpserver"),
	fuzz("no document breaks the JSON checker", "FuzzCheck", "./adapters/internal/strictjson"),
	fuzz("no document breaks the decoder of arguments", "FuzzDecode", "./adapters/internal/strictjson"),
	fuzz("no literal breaks the money parser", "FuzzParseDecimal", "./domain/money"),
	fuzz("no text breaks the reason's rules", "FuzzParseReason", "./domain/refunds"),
}
