package fault_test

import (
	"errors"
	"fmt"

	"github.com/refundledger/refundledger/domain/fault"
)

// A program looks at the code and the reason, a person or a model reads the
// message. What nobody classified is INTERNAL, and its text is not shown.
func Example() {
	show := func(err error) {
		if f := fault.Of(err); f != nil {
			fmt.Println(f.Code, f.Reason, f.Retryable, f.Message)
			return
		}
		fmt.Println(fault.CodeOf(err))
	}
	show(fault.New(fault.NotFound, "customer_not_found", "There is no customer %s.", "CUST-00009"))
	show(fault.New(fault.BackendUnavailable, "ledger_down", "The ledger can not be reached; nothing happened."))
	show(errors.New("dial tcp 10.0.0.7:5432: connection refused"))
	// Output:
	// NOT_FOUND customer_not_found false There is no customer CUST-00009.
	// BACKEND_UNAVAILABLE ledger_down true The ledger can not be reached; nothing happened.
	// INTERNAL
}
