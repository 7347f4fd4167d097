package ledger_test

import (
	"fmt"

	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/operation"
)

// page is a record: the current state of one thing.
type page struct{ ID, Text string }

func (p page) Ref() ledger.Ref { return ledger.Ref{Kind: ledger.Kind{Name: "page"}, ID: p.ID} }

// write is a command: it names what it reads, and decides.
type write struct{ page }

func (w write) Name() string        { return "pages.write" }
func (w write) Reads() []ledger.Ref { return []ledger.Ref{w.Ref()} }
func (w write) Facts() []operation.Fact {
	return []operation.Fact{{Name: "id", Value: w.ID}, {Name: "text", Value: w.Text}}
}

func (w write) Decide(v ledger.View) (ledger.Change, error) {
	before, exists := ledger.Get[page](v, w.Ref())
	after := w.page
	if exists {
		after.Text = before.Text + " " + w.Text
	}
	return ledger.Change{Put: []ledger.Record{after}, Answer: after}, nil
}

// An adapter makes the view of the records that the command names, decides, and
// commits the change in one step.
func Example() {
	records := map[ledger.Ref]ledger.Record{}
	for _, cmd := range []ledger.Command{write{page{"p1", "Once"}}, write{page{"p1", "upon a time"}}} {
		v := ledger.NewView(operation.Operation{}, 1)
		for _, ref := range cmd.Reads() {
			v.Put(ref, records[ref])
		}
		change, err := ledger.Decide(cmd, v)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, r := range change.Put {
			records[r.Ref()] = r
		}
		fmt.Println(change.Answer)
	}
	// Output:
	// {p1 Once}
	// {p1 Once upon a time}
}
