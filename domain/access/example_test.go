package access_test

import (
	"fmt"

	"github.com/refundledger/refundledger/domain/access"
)

// A principal is made from configuration or a verified token. Whatever an agent
// is configured to hold, it can not be made one that approves its own proposals.
func Example() {
	tenant, _ := access.ParseTenant("acme")
	agent, err := access.NewPrincipal(tenant, "support-bot", access.Agent, access.AgentScopes(), access.Growth, "lee")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(access.Permit(agent, access.RefundWrite, access.Free))
	fmt.Println(access.Permit(agent, access.InvoiceOverride, access.Free))
	fmt.Println(access.Permit(agent, access.RefundWrite, access.Pro))

	_, err = access.NewPrincipal(tenant, "support-bot", access.Agent, access.ScopesOf(access.InvoiceOverride), access.Pro, "")
	fmt.Println(err)
	// Output:
	// <nil>
	// The scope invoice:override is needed to use this tool.
	// Upgrade to PRO plan to use this tool.
	// the scope invoice:override can not be held by a principal of kind agent
}
