module github.com/refundledger/refundledger

go 1.26.0

require (
	github.com/bojanz/currency v1.5.1 // indirect
	github.com/cockroachdb/apd/v3 v3.2.3 // indirect
)
