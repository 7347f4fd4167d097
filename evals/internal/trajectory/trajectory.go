// Package trajectory is the form of the cases: what an agent does step by step,
// what it must get back, and what the ledger must look like afterwards.
//
// A file holds an array of cases:
//
//	[{
//	  "name": "a-suspended-customer-gets-nothing",
//	  "why": "A suspended account is under review; persistence must not pay it out.",
//	  "steps": [
//	    {"call": "trigger_refund",
//	     "with": {"customer_id": "CUST-00002", "amount": 10, "reason": "Arrived damaged"},
//	     "refused": "POLICY_VIOLATION/account_suspended"}
//	  ]
//	}]
//
// What a case does not say must not happen: customers that "end" leaves out
// keep their balance and get no refund, invoices keep their status, and nothing
// is decided. The fields of [Case] and [Step] are the
// whole language; an unknown one is an error.
package trajectory

import (
	"regexp"

	"github.com/refundledger/refundledger/evals/internal/jsontree"
)

// Case is one trajectory, against a fresh server and a fresh store.
type Case struct {
	// Name is unique among all cases, in-kebab-case.
	Name string `json:"name"`
	// Why is a sentence: what would go wrong without the rule.
	Why string `json:"why"`
	// Needs is empty, or "durable": the store must outlive the server.
	Needs string `json:"needs"`
	// Data names a folder SUBJECT/data/NAME of import files that the store begins
	// with, in place of the demo records.
	Data string `json:"data"`
	// Env adds to the server's environment, which else says only the backend
	// and TOOLSETS=all.
	Env map[string]string `json:"env"`
	// Protocol is the MCP revision the client asks for; 2025-11-25 if absent.
	Protocol string `json:"protocol"`
	// NoStart is for a server that must refuse to start: a pattern for what it
	// says on stderr. There are no steps then.
	NoStart string `json:"no_start"`
	Steps   []Step `json:"steps"`
	// End is the state afterwards, by customer.
	End map[string]Account `json:"end"`
	// Invoices is the status of each invoice afterwards, by id; those that are
	// left out have the one they had.
	Invoices map[string]string `json:"invoices"`
	// Decisions is how many decisions about invoices were made.
	Decisions int `json:"decisions"`
	// Never is what must not happen at any time.
	Never Never `json:"never"`

	Subject, File string
}

// Account is what a customer has at the end.
type Account struct {
	// Balance is the refundable balance; as at the start if absent.
	Balance *jsontree.Node `json:"balance"`
	// Refunds is how many refunds there are.
	Refunds int `json:"refunds"`
}

// Never lists forbidden effects.
type Never struct {
	// Said are texts that no answer may contain, wherever it is.
	Said []string `json:"said"`
	// Logged are texts that the server's stderr may not contain.
	Logged []string `json:"logged"`
	// Refunded are descriptions that no refund of the list may match.
	Refunded []*jsontree.Node `json:"refunded"`
}

// Step is one thing that is done and what must come of it.
//
// Exactly one of Call, Raw, Tools, Parallel and Restart says what is done. In
// the values sent, "$name" is a value seen earlier and {"$repeat": ["x", 500]}
// a long text. In the values expected, "$name" stands for any value when it is
// first met and for the same value from then on; the other operators are in
// package expect.
type Step struct {
	// Note is for the reader.
	Note string `json:"note"`

	// Call names a tool, called through the SDK's client.
	Call string `json:"call"`
	// With are its arguments; number literals are sent as they are written.
	With *jsontree.Node `json:"with"`
	// WithText are arguments that are sent as the text they are, past the SDK's
	// client: what it would not send, or would tidy up.
	WithText *string `json:"with_text"`
	// Key is the host's operation key. {n} in it is the number of the repetition.
	Key string `json:"key"`
	// Meta is the whole _meta of the call, in place of Key.
	Meta *jsontree.Node `json:"meta"`
	// Repeat makes the call that many times, one after the other, or at once in
	// a parallel group.
	Repeat int `json:"repeat"`
	// Raw is a whole line, past the SDK's client: an object, or a text for what
	// is no good JSON.
	Raw *jsontree.Node `json:"raw"`
	// ID is the id in a raw text that is answered.
	ID string `json:"id"`
	// Tools are the names of exactly the tools that are listed.
	Tools []string `json:"tools"`
	// Parallel are calls that are under way at the same time.
	Parallel []Step `json:"parallel"`
	// Restart ends the server and starts another on the same store.
	Restart *Restart `json:"restart"`

	// Want is a success: a deep subset of the structured content.
	Want *jsontree.Node `json:"want"`
	// Refused is a tool result that is an error: CODE/reason.
	Refused string `json:"refused"`
	// Details is a deep subset of a refusal's details.
	Details *jsontree.Node `json:"details"`
	// Retryable is what a refusal says about sending it again.
	Retryable *bool `json:"retryable"`
	// Invalid are the paths of all issues of invalid arguments, which are a
	// protocol error (or a refusal, if Refused is there too): "amount",
	// "lines.0.quantity", "arguments" for the whole.
	Invalid []string `json:"invalid"`
	// Denied is the protocol error for a missing scope or plan: a deep subset of its data.
	Denied *jsontree.Node `json:"denied"`
	// Error is the code of any other protocol error.
	Error int `json:"error"`
	// Result is a deep subset of the result of a raw line that calls no tool.
	Result *jsontree.Node `json:"result"`
	// Silent: a raw line is never answered.
	Silent bool `json:"silent"`

	// Says is a pattern for the message of a refusal or an error.
	Says string `json:"says"`
	// Replayed is whether the answer is marked as one given before.
	Replayed *bool `json:"replayed"`
	// Operation is the operation key in the answer's _meta, usually a "$name".
	Operation string `json:"operation"`
	// Tally counts the answers of a repetition or a parallel group: "done",
	// "CODE/reason" and "-32602" with how many there are, and no others.
	Tally map[string]int `json:"tally"`
	// Distinct is a member of the structured content that differs in all successes.
	Distinct string `json:"distinct"`

	At      jsontree.Place
	Pattern *regexp.Regexp // Says, compiled
}

// Restart says what is different after it.
type Restart struct {
	Env map[string]string `json:"env"`
}
