package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/evals/internal/expect"
	"github.com/refundledger/refundledger/evals/internal/jsontree"
)

// state is what the tools show of the ledger. What the principal may not see,
// or the server does not offer, is nil.
type state struct {
	balances map[string]*jsontree.Node
	refunds  map[string][]*jsontree.Node // a customer that was looked at has a list, perhaps empty
	invoices map[string]string           // the status of each
	entries  *int
}

// look reads the state through the tools an agent has.
func (p *play) look(ctx context.Context) (state, error) {
	s := state{balances: map[string]*jsontree.Node{}, refunds: map[string][]*jsontree.Node{}}
	for _, c := range customers {
		record, err := p.ask(ctx, "get_customer_record", `{"customer_id":`+jsontree.Quote(c)+`}`)
		if err != nil {
			return s, err
		}
		if record != nil {
			s.balances[c] = record.Get("refundableBalance")
		}
		if err := p.listRefunds(ctx, c, s.refunds); err != nil {
			return s, err
		}
	}
	var err error
	if s.invoices, err = p.listInvoices(ctx); err != nil {
		return s, err
	}
	verified, err := p.ask(ctx, "verify_ledger", "{}")
	if err != nil || verified == nil {
		return s, err
	}
	if h := verified.Get("holds"); h == nil || h.Raw != "true" {
		return s, &expect.Mismatch{Want: "a ledger that holds", Got: verified.Compact(nil)}
	}
	n, err := strconv.Atoi(verified.Get("entries").Raw)
	if err != nil {
		return s, fmt.Errorf("verify_ledger: %w", err)
	}
	s.entries = &n
	return s, nil
}

// listRefunds collects all pages of a customer's refunds.
func (p *play) listRefunds(ctx context.Context, customer string, into map[string][]*jsontree.Node) error {
	list := []*jsontree.Node{}
	cursor := ""
	for {
		page, err := p.ask(ctx, "list_refunds", fmt.Sprintf(`{"customer_id":%s,"limit":100%s}`, jsontree.Quote(customer), cursor))
		if err != nil || page == nil {
			return err
		}
		list = append(list, page.Get("refunds").Elements...)
		next := page.Get("nextCursor")
		if next == nil {
			into[customer] = list
			return nil
		}
		cursor = `,"cursor":` + next.Raw
	}
}

// listInvoices collects the status of all invoices.
func (p *play) listInvoices(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	cursor := ""
	for {
		page, err := p.ask(ctx, "list_invoices", `{"limit":100`+cursor+`}`)
		if err != nil || page == nil {
			return nil, err
		}
		for _, i := range page.Get("invoices").Elements {
			all[i.Get("id").Str()] = i.Get("status").Str()
		}
		next := page.Get("nextCursor")
		if next == nil {
			return all, nil
		}
		cursor = `,"cursor":` + next.Raw
	}
}

// ask calls a reading tool. It returns nil if there is no such tool, or the
// principal may not use it.
func (p *play) ask(ctx context.Context, tool, arguments string) (*jsontree.Node, error) {
	if !p.server.Offers(tool) {
		return nil, nil
	}
	answer, err := p.server.Call(ctx, tool, arguments, nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", tool, err)
	case answer.Kind() == "done":
		return answer.Content(), nil
	case answer.Code() == "-32001":
		return nil, nil
	}
	return nil, fmt.Errorf("%s: %w", tool, &expect.Mismatch{Want: "success", Got: answer.String()})
}

// audit compares the state after the steps with what the case says, and with
// what must follow from it: a customer that is not named keeps everything, the
// balance fell by the sum of the refunds, each refund is one journal entry.
func (p *play) audit(before, after state) error {
	for c := range p.c.End {
		if !slices.Contains(customers, c) {
			return fmt.Errorf("%s is no customer of the demo data", c)
		}
	}
	refunds := 0
	for _, c := range customers {
		want := p.c.End[c]
		if want.Balance == nil {
			want.Balance = before.balances[c]
		}
		if err := p.auditBalance(c, want.Balance, after); err != nil {
			return err
		}
		list, seen := after.refunds[c]
		if !seen && want.Refunds > 0 {
			return fmt.Errorf("%s: the refunds can not be seen, so the case can not say how many there are", c)
		}
		if seen && len(list) != want.Refunds {
			return &expect.Mismatch{Want: fmt.Sprintf("%s: %d refunds", c, want.Refunds), Got: fmt.Sprint(len(list))}
		}
		refunds += len(list)
		if err := balanced(c, before.balances[c], after.balances[c], list); seen && err != nil {
			return err
		}
		if err := p.neverRefunded(c, list); err != nil {
			return err
		}
	}
	if before.entries != nil && after.entries != nil && len(after.refunds) == len(customers) {
		if more := *after.entries - *before.entries; more != refunds+p.c.Decisions {
			return &expect.Mismatch{Want: fmt.Sprintf("%d journal entries more, one for each refund and decision", refunds+p.c.Decisions), Got: fmt.Sprint(more)}
		}
	}
	return p.auditInvoices(before, after)
}

// auditInvoices compares the status of each invoice with what the case says.
func (p *play) auditInvoices(before, after state) error {
	if after.invoices == nil && len(p.c.Invoices) > 0 {
		return errors.New("the invoices can not be seen, so the case can not say where they stand")
	}
	for id := range p.c.Invoices {
		if _, there := after.invoices[id]; !there {
			return fmt.Errorf("%s is no invoice of the data", id)
		}
	}
	if len(after.invoices) != len(before.invoices) {
		return &expect.Mismatch{Want: fmt.Sprintf("%d invoices", len(before.invoices)), Got: fmt.Sprint(len(after.invoices))}
	}
	for _, id := range slices.Sorted(maps.Keys(after.invoices)) {
		want, said := p.c.Invoices[id]
		if !said {
			want = before.invoices[id]
		}
		if got := after.invoices[id]; got != want {
			return &expect.Mismatch{Want: id + " " + want, Got: got}
		}
	}
	return nil
}

func (p *play) auditBalance(c string, want *jsontree.Node, after state) error {
	got := after.balances[c]
	if got == nil {
		if p.c.End[c].Balance != nil {
			return fmt.Errorf("%s: the balance can not be seen, so the case can not say what it is", c)
		}
		return nil
	}
	if !jsontree.Equal(want, got) {
		return &expect.Mismatch{Want: c + ": balance " + want.Raw, Got: got.Raw}
	}
	return nil
}

// balanced checks that what is gone is what was refunded.
func balanced(c string, before, after *jsontree.Node, refunds []*jsontree.Node) error {
	if before == nil || after == nil {
		return nil
	}
	left, end := before.Rat(), after.Rat()
	sum := new(big.Rat)
	for _, r := range refunds {
		amount := r.Get("amount").Rat()
		if amount == nil || amount.Sign() <= 0 {
			return fmt.Errorf("%s: a refund without an amount: %s", c, r.Compact(nil))
		}
		sum.Add(sum, amount)
	}
	if left == nil || end == nil || end.Sign() < 0 || left.Sub(left, sum).Cmp(end) != 0 {
		return &expect.Mismatch{
			Want: fmt.Sprintf("%s: %s less refunds of %s", c, before.Raw, sum.FloatString(3)),
			Got:  after.Raw,
		}
	}
	return nil
}

func (p *play) neverRefunded(c string, list []*jsontree.Node) error {
	for _, forbidden := range p.c.Never.Refunded {
		for _, r := range list {
			if p.vars.Match(forbidden, r, "") == nil {
				return &expect.Mismatch{Want: c + ": no refund like " + forbidden.Compact(nil), Got: r.Compact(nil)}
			}
		}
	}
	return nil
}

// neverSaid looks for forbidden texts in all that the servers wrote: as they
// stand in the line, and as the strings in it read.
func (p *play) neverSaid() error {
	if len(p.c.Never.Said) > 0 {
		for line := range strings.Lines(p.heard.String()) {
			texts := []string{line}
			if n, err := jsontree.Parse([]byte(line)); err == nil {
				texts = append(texts, strings.Join(allText(n), "\n"))
			}
			for _, forbidden := range p.c.Never.Said {
				for _, text := range texts {
					if strings.Contains(text, forbidden) {
						return &expect.Mismatch{Want: fmt.Sprintf("no answer that contains %q", forbidden), Got: expect.Shorten(line)}
					}
				}
			}
		}
	}
	for _, forbidden := range p.c.Never.Logged {
		for line := range strings.Lines(p.logged.String()) {
			if strings.Contains(line, forbidden) {
				return &expect.Mismatch{Want: fmt.Sprintf("no log line that contains %q", forbidden), Got: expect.Shorten(line)}
			}
		}
	}
	return nil
}

// allText lists the names and strings in n.
func allText(n *jsontree.Node) []string {
	var all []string
	if n.Kind == jsontree.String {
		all = append(all, n.Text)
	}
	for _, m := range n.Members {
		all = append(append(all, m.Name), allText(m.Value)...)
	}
	for _, e := range n.Elements {
		all = append(all, allText(e)...)
	}
	return all
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
