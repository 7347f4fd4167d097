package operation_test

import (
	"fmt"

	"github.com/refundledger/refundledger/domain/operation"
)

// The same request has the same fingerprint, and no other request has it.
func ExampleFingerprintOf() {
	ask := func(amount string) operation.Fingerprint {
		return operation.FingerprintOf("refunds.trigger", []operation.Fact{{Name: "customer", Value: "CUST-00001"}, {Name: "amount_minor", Value: amount}})
	}
	first, again, other := ask("1999"), ask("1999"), ask("199")
	fmt.Println(first == again, first == other)
	// Output: true false
}

// A key is a word of the host, in a form that fits logs, headers and paths.
func ExampleParseKey() {
	key, err := operation.ParseKey("order-7-refund-1")
	fmt.Println(key, err)
	_, err = operation.ParseKey("order 7")
	fmt.Println(err)
	// Output:
	// order-7-refund-1 <nil>
	// an operation key is 1 to 80 letters, digits, _ or -
}
