package restwire

import (
	"encoding/hex"
	"fmt"
	"reflect"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// Operation says who asked, under which key, when.
type Operation struct {
	Tenant    string  `json:"tenant" doc:"The tenant."`
	ID        string  `json:"id" doc:"A UUID of the server's."`
	Principal string  `json:"principal" doc:"Who asked."`
	Via       *string `json:"via" required:"false" nullable:"false" doc:"The service that asked on the principal's behalf."`
	Tool      string  `json:"tool" doc:"The tool, or the command if it was sent here directly."`
	Key       string  `json:"key" doc:"The operation key, unique for the principal."`
	At        string  `json:"at" format:"date-time" doc:"When it was asked, by the server's clock: UTC, milliseconds."`
}

// Outcome is what a key led to: the answer of every command, then and later. Of
// the pointers one is set.
type Outcome struct {
	Operation   Operation   `json:"operation" doc:"Who asked."`
	Command     string      `json:"command" doc:"What was asked: the command's name."`
	Fingerprint string      `json:"fingerprint" doc:"SHA-256 of the command's name and fields, in hexadecimal."`
	Customer    *Customer   `json:"customer" required:"false" nullable:"false" doc:"The answer of customers.open."`
	Refund      *Refund     `json:"refund" required:"false" nullable:"false" doc:"The answer of refunds.trigger, as it was then."`
	Reversal    *Reversal   `json:"reversal" required:"false" nullable:"false" doc:"The answer of refunds.reverse."`
	Adjustment  *Adjustment `json:"adjustment" required:"false" nullable:"false" doc:"The answer of customers.adjust."`
	Import      *Import     `json:"import" required:"false" nullable:"false" doc:"The answer of an import."`
	Decision    *Decision   `json:"decision" required:"false" nullable:"false" doc:"The answer of payables.route: the first decision, if the same was decided before."`
}

// OutcomeForm is how an outcome is sent.
var OutcomeForm = form("the outcome", func(_ access.Tenant, o ledger.Outcome) Outcome { return outcomeOf(o) }, Outcome.Record)

// GetOperation resolves lost answers.
var GetOperation = Read{
	Name: "operations.get", Path: "/v1/operations/{key}", Title: "Look up an operation",
	About:  "What a key of the calling principal led to: how a lost answer is resolved. 404 if nothing has happened under it.",
	Answer: reflect.TypeFor[Outcome](),
}

func operationOf(o operation.Operation) Operation {
	w := Operation{Tenant: o.Tenant.String(), ID: o.ID.String(), Principal: o.Principal, Tool: o.Tool, Key: o.Key.String(), At: stamp(o.At)}
	if o.Via != "" {
		w.Via = &o.Via
	}
	return w
}

func outcomeOf(o ledger.Outcome) Outcome {
	w := Outcome{Operation: operationOf(o.Operation), Command: o.Command, Fingerprint: hex.EncodeToString(o.Fingerprint[:])}
	for _, form := range answers {
		if form.put(&w, o.Operation.Tenant, o.Answer) {
			return w
		}
	}
	panic(fmt.Sprintf("restwire: no words for a %T", o.Answer)) // each command has its answer declared
}

func (r *reader) operation(w Operation) operation.Operation {
	o := operation.Operation{
		ID: read(r, w.ID, operation.ParseID), Tenant: read(r, w.Tenant, access.ParseTenant), Principal: w.Principal, Tool: w.Tool,
		Key: read(r, w.Key, operation.ParseKey), At: read(r, w.At, parseStamp),
	}
	if w.Via != nil {
		o.Via = *w.Via
	}
	r.fail(ledger.Check(o))
	return o
}

// Record is the outcome of an operation of the tenant, or why the document is none.
func (w Outcome) Record(t access.Tenant) (ledger.Outcome, error) {
	r := reader{}
	o := ledger.Outcome{Operation: r.operation(w.Operation), Command: w.Command, Fingerprint: read(&r, w.Fingerprint, parseHash)}
	r.want(o.Operation.Tenant == t, "the operation is of another tenant")
	found := 0
	for _, form := range answers {
		a, named, there, err := form.get(w, t)
		if !there {
			continue
		}
		found++
		o.Answer = a
		r.fail(err)
		r.want(named == nil || *named == o.Operation.ID, "the answer is of another operation")
	}
	r.want(found == 1, "the outcome has not one answer")
	return o, r.err
}
