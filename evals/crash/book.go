package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/refundledger/refundledger/domain/money"
)

const (
	// opening is the balance of each customer, in major units: no storm uses it up.
	opening = 1_000_000_000
	// maxCents bounds a refund, in hundredths of the currency's unit.
	maxCents = 100_00
	// pageSize is how many refunds are listed at once, the most that the tool gives.
	pageSize = 100
	// maxNotes is how many findings are told in full.
	maxNotes = 20
)

// findings are what a run counted.
type findings struct {
	mu sync.Mutex

	// What happened.
	kills        int // servers killed in a storm
	early        int // servers killed while they started
	restarts     int // of the database server
	unanswered   int // calls in flight at a kill
	faults       int // answers that said to try again, while the database was away
	acknowledged int // in a storm
	resent       int // acknowledged when they were sent again, after a crash

	// What must not happen.
	lost       int // acknowledged, and not in the ledger
	twice      int // executed twice
	unbalanced int // balances that are not the opening less the refunds
	broken     int // verifications that failed
	different  int // acknowledgements that came back with other bytes
	denied     int // "nothing was done", and it was done
	wrong      int // any other answer that may not be

	notes []string // the first findings, in words
}

func (f *findings) count(counter *int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*counter++
}

// found counts a finding and keeps its words.
func (f *findings) found(counter *int, format string, args ...any) {
	f.count(counter)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.notes) < maxNotes {
		f.notes = append(f.notes, fmt.Sprintf(format, args...))
	}
}

func (f *findings) clean() bool {
	return f.lost+f.twice+f.unbalanced+f.broken+f.different+f.denied+f.wrong == 0
}

// print tells what happened, and all that must not have happened.
func (f *findings) print(w io.Writer) {
	for _, note := range f.notes {
		fmt.Fprintln(w, "FOUND:", note)
	}
	for _, row := range []struct {
		name    string
		n       int
		finding bool
	}{
		{"servers killed in a storm", f.kills, false},
		{"servers killed while they started", f.early, false},
		{"immediate restarts of the database", f.restarts, false},
		{"calls in flight at a kill", f.unanswered, false},
		{"told to try again while the database was away", f.faults, false},
		{"acknowledged in a storm", f.acknowledged, false},
		{"acknowledged when sent again", f.resent, false},
		{"acknowledged and lost", f.lost, true},
		{"executed twice", f.twice, true},
		{"unbalanced", f.unbalanced, true},
		{"chain broken", f.broken, true},
		{"acknowledged and answered differently later", f.different, true},
		{"nothing was done, by the answer, but it was", f.denied, true},
		{"wrong answers", f.wrong, true},
	} {
		if row.finding || row.n > 0 {
			fmt.Fprintf(w, "  %-46s %d\n", row.name, row.n)
		}
	}
}

// customer is a customer of the storm, and what was seen of their history.
type customer struct {
	id      string
	opening money.Amount
	balance money.Amount // the opening less the refunds that were seen
	seen    int64        // the last entry that was seen
}

// refund is a refund that was asked for, perhaps several times.
type refund struct {
	key      string
	customer *customer
	amount   money.Amount

	sent    int
	denied  int    // answers that said that nothing was done
	result  string // as it was acknowledged first, "" until then
	seen    bool   // in the customer's list
	touched bool   // since the last comparison
}

// arguments are those of trigger_refund. The reason names the key, so that a
// list of refunds shows which calls were executed.
func (r *refund) arguments() string {
	return `{"customer_id":"` + r.customer.id + `","amount":` + r.amount.Major() + `,"reason":"` + reasonPrefix + r.key + `"}`
}

const reasonPrefix = "asked under the key "

// book is all that was asked for and answered.
type book struct {
	findings
	customers []*customer
	refunds   []*refund
	byKey     map[string]*refund
}

// openBook makes a customer in the ledger for each of the currencies, the first
// under that number, and a book about them.
func openBook(ctx context.Context, l ledger, first int, currencies ...string) (*book, error) {
	b := &book{byKey: map[string]*refund{}}
	var file strings.Builder
	for i, code := range currencies {
		currency, err := money.ParseCurrency(code)
		if err != nil {
			return nil, err
		}
		major, err := money.ParseDecimal(strconv.Itoa(opening))
		if err != nil {
			return nil, err
		}
		balance, err := major.In(currency)
		if err != nil {
			return nil, err
		}
		c := &customer{id: fmt.Sprintf("CUST-%05d", first+i), opening: balance, balance: balance, seen: openingEntry}
		b.customers = append(b.customers, c)
		fmt.Fprintf(&file, `{"id":%q,"name":"Storm %d","email":"storm%d@example.com","status":"active","currency":%q,"balance":%d,"created_at":"2024-01-15T09:30:00Z"}`+"\n",
			c.id, i, i, code, opening)
	}
	_, err := l.operate(ctx, file.String(), "import", "customers", "-")
	return b, err
}

// openingEntry is the number of the entry that opens an account.
const openingEntry = 1

// compare compares the ledger with what is known of the refunds given, through
// a server that had no part in them: what was acknowledged is there; what was
// not is sent again and then happened once. Then it reads the new entries of
// every customer.
func (b *book) compare(ctx context.Context, c *client, refunds []*refund) error {
	err := each(refunds, callers, func(i int, r *refund) error {
		acknowledged := r.result != ""
		// A replay tells the same as a look-up: one of the two is enough.
		if acknowledged && i%2 == 0 {
			return b.replay(ctx, c, r)
		}
		done, err := b.lookUp(ctx, c, r)
		switch {
		case err != nil:
			return err
		case !acknowledged:
			return b.replay(ctx, c, r)
		case !done:
			b.found(&b.lost, "%s was acknowledged with %s and is not there", r.key, r.result)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, cust := range b.customers {
		if err := b.readHistory(ctx, c, cust); err != nil {
			return err
		}
	}
	for _, r := range refunds {
		if r.result != "" && !r.seen {
			b.found(&b.lost, "%s was acknowledged with %s and is not in the list of refunds", r.key, r.result)
		}
	}
	return nil
}

// lookUp asks what became of r.
func (b *book) lookUp(ctx context.Context, c *client, r *refund) (done bool, err error) {
	a, err := c.call(ctx, "get_operation", `{"operation_key":"`+r.key+`"}`, "")
	if err != nil {
		return false, err
	}
	if a.code == "NOT_FOUND" {
		return false, nil
	}
	var found struct {
		Status string
		Result json.RawMessage
	}
	if !a.ok() || json.Unmarshal([]byte(a.structured), &found) != nil || found.Status != "done" {
		return false, fmt.Errorf("get_operation %s: %s", r.key, a)
	}
	switch {
	case r.result != "" && string(found.Result) != r.result:
		b.found(&b.different, "%s was acknowledged as %s and is kept as %s", r.key, r.result, found.Result)
	case r.result == "" && r.denied == r.sent:
		b.found(&b.denied, "every answer to %s said that nothing was done, and it is there: %s", r.key, found.Result)
	}
	return true, nil
}

// replay sends r again under its key.
func (b *book) replay(ctx context.Context, c *client, r *refund) error {
	_, err := b.refund(ctx, c, r, &b.resent, false)
	return err
}

// refund asks c for r, keeps the answer, and counts it if it is the first
// acknowledgement. While the database may be away, a fault that asks to try
// again is right.
func (b *book) refund(ctx context.Context, c *client, r *refund, acknowledged *int, away bool) (answer, error) {
	b.mu.Lock()
	r.sent++
	acknowledgedBefore := r.result != ""
	b.mu.Unlock()
	a, err := c.call(ctx, "trigger_refund", r.arguments(), r.key)
	if err != nil {
		return a, err
	}
	b.mu.Lock()
	before := r.result
	if a.ok() && before == "" {
		r.result = a.structured
		*acknowledged++
	}
	if a.code == "BACKEND_UNAVAILABLE" {
		r.denied++
	}
	b.mu.Unlock()
	switch {
	case !a.ok() && a.retryable && away:
		b.count(&b.faults)
	case !a.ok():
		b.found(&b.wrong, "%s was answered with %s", r.key, a)
	case before != "" && a.structured != before:
		b.found(&b.different, "%s was acknowledged as %s and later as %s", r.key, before, a.structured)
	case acknowledgedBefore && !a.replayed:
		b.found(&b.twice, "%s was acknowledged before it was sent, and is no replay: %s", r.key, a)
	}
	return a, nil
}

// listed is a row of list_refunds.
type listed struct {
	RefundID string
	Amount   json.Number
	Reason   string
	Entry    int64
}

// readHistory lists the refunds of a customer that were not seen yet, and
// compares them with what was asked for and answered, and with the balance.
func (b *book) readHistory(ctx context.Context, c *client, cust *customer) error {
	rows, err := list(ctx, c, cust, cust.seen)
	if err != nil {
		return err
	}
	for _, row := range slices.Backward(rows) {
		if row.Entry != cust.seen+1 {
			b.found(&b.lost, "the refund before entry %d of %s is not in the list", row.Entry, cust.id)
		}
		cust.seen = row.Entry
		if err := b.read(cust, row); err != nil {
			return err
		}
	}
	var record struct{ RefundableBalance json.Number }
	if err := c.ask(ctx, "get_customer_record", `{"customer_id":"`+cust.id+`"}`, &record); err != nil {
		return err
	}
	if record.RefundableBalance.String() != cust.balance.Major() {
		b.found(&b.unbalanced, "the balance of %s is %s; the opening less all refunds is %s", cust.id, record.RefundableBalance, cust.balance.Major())
	}
	return nil
}

// read compares one refund of the list with its acknowledgement.
func (b *book) read(cust *customer, row listed) error {
	major, err := money.ParseDecimal(row.Amount.String())
	if err != nil {
		return err
	}
	amount, err := major.In(cust.opening.Currency())
	if err != nil {
		return err
	}
	if cust.balance, err = cust.balance.Sub(amount); err != nil {
		return err
	}
	r := b.byKey[strings.TrimPrefix(row.Reason, reasonPrefix)]
	switch {
	case r == nil || r.customer != cust || r.amount != amount:
		b.found(&b.wrong, "nobody asked for entry %d of %s: %+v", row.Entry, cust.id, row)
		return nil
	case r.seen:
		b.found(&b.twice, "%s is in the list twice, the second time as entry %d", r.key, row.Entry)
	}
	r.seen = true
	if r.result == "" {
		return nil // the comparison gave up on it, and said so
	}
	var result struct {
		RefundID                   string
		RemainingRefundableBalance json.Number
	}
	if err := json.Unmarshal([]byte(r.result), &result); err != nil {
		return err
	}
	if result.RefundID != row.RefundID {
		b.found(&b.twice, "%s was acknowledged as refund %s and is in the list as %s", r.key, result.RefundID, row.RefundID)
	}
	if result.RemainingRefundableBalance.String() != cust.balance.Major() {
		b.found(&b.unbalanced, "%s left %s by its answer and %s by the refunds up to it", r.key, result.RemainingRefundableBalance, cust.balance.Major())
	}
	return nil
}

// list returns the refunds of a customer after an entry, newest first.
func list(ctx context.Context, c *client, cust *customer, after int64) ([]listed, error) {
	var rows []listed
	cursor := ""
	for {
		var page struct {
			Refunds    []listed
			NextCursor string
		}
		if err := c.ask(ctx, "list_refunds", fmt.Sprintf(`{"customer_id":%q,"limit":%d%s}`, cust.id, pageSize, cursor), &page); err != nil {
			return nil, err
		}
		for _, row := range page.Refunds {
			if row.Entry <= after {
				return rows, nil
			}
			rows = append(rows, row)
		}
		if page.NextCursor == "" {
			return rows, nil
		}
		cursor = `,"cursor":"` + page.NextCursor + `"`
	}
}

// recompare compares everything from the beginning, as a whole.
func (b *book) recompare(ctx context.Context, l ledger, c *client) error {
	for _, cust := range b.customers {
		cust.balance, cust.seen = cust.opening, openingEntry
	}
	for _, r := range b.refunds {
		r.seen = false
	}
	if err := b.compare(ctx, c, b.refunds); err != nil {
		return err
	}
	b.verify(ctx, l)
	return nil
}

// verify has the operator's command recompute the journal.
func (b *book) verify(ctx context.Context, l ledger) {
	if out, err := l.operate(ctx, "", "verify"); err != nil {
		b.found(&b.broken, "%v", err)
	} else if !strings.HasPrefix(out, "holds: ") {
		b.found(&b.broken, "refund-ledgerd verify: %s", out)
	}
}
