package contract

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/domain/payables"
)

// invoicePromises are about an invoice that nobody has decided about. It is put
// on hold, and never more: nothing is paid or refused.
var invoicePromises = []promise{
	{"An invoice is looked up with its lines, if they are kept, its decision and a strong ETag.", func(k *kit) error { _, _, err := k.bill(); return err }},
	{"An invoice that does not exist is a problem NOT_FOUND, also when it is decided about.", unknownInvoice},
	{"A decision is made once, and the same request again gets the same answer, marked.", decideOnce},
	{"The very same decision under another key changes nothing and is answered with the first.", decideAgain},
	{"A used key with another decision is refused.", decideOtherwise},
	{"A decision about an invoice that has changed since is refused.", decideOnStale},
	{"What a caller may, and what the match found, is not taken from the fields.", decideByFields},
	{"Invoices are listed in order of id, and only those that the filter matches.", listInvoices},
	{"The latest invoices of a vendor begin where the page before ended.", latestInvoices},
	{"The tolerance that decisions are made under is looked up.", lookUpPolicy},
}

var errNoInvoice = errors.New("it needs an invoice that is open or on hold, and a token that may decide")

// bill looks the invoice up.
func (k *kit) bill() (payables.Invoice, string, error) {
	if k.invoice == (payables.InvoiceID{}) {
		return payables.Invoice{}, "", errNoInvoice
	}
	got, err := k.ask(http.MethodGet, k.billPath(), "")
	if err != nil {
		return payables.Invoice{}, "", err
	}
	if got.status != http.StatusOK {
		return payables.Invoice{}, "", fmt.Errorf("a look-up is answered %s", got.say())
	}
	tag := got.header.Get("ETag")
	if err := got.isJSON(); err != nil || !restwire.IsTag(tag) {
		return payables.Invoice{}, "", errors.Join(err, fmt.Errorf("the ETag is %q", tag))
	}
	all, err := k.forms.Invoice.Begin(got.body)
	if err != nil {
		return payables.Invoice{}, "", err
	}
	for all.Next() != nil {
		part, err := k.ask(http.MethodGet, k.billPath()+"/lines?cursor="+*all.Next(), "")
		if err == nil && (part.status != http.StatusOK || part.header.Get("ETag") != tag) {
			err = fmt.Errorf("more lines are answered %s with the ETag %q", part.say(), part.header.Get("ETag"))
		}
		if err == nil {
			err = all.Add(part.body, payables.MaxLines)
		}
		if err != nil {
			return payables.Invoice{}, "", err
		}
	}
	i, err := all.Record(k.tenant)
	k.leaves(i.Synthesised)
	switch {
	case err == nil && i.ID != k.invoice:
		err = errors.New("it is another invoice")
	case err == nil && i.Status.Final():
		err = fmt.Errorf("the invoice is %s", i.Status)
	}
	return i, tag, err
}

// leaves notes what an invoice leaves out.
func (k *kit) leaves(fields []payables.Field) {
	for _, f := range fields {
		if !slices.Contains(k.left, f) {
			k.left = append(k.left, f)
		}
	}
}

func (k *kit) billPath() string { return "/v1/invoices/" + k.invoice.String() }

const (
	toHold    = `{"action":"hold","reasonCode":"NEEDS_REVIEW","override":false,"note":"` + reason + `"}`
	otherHold = `{"action":"hold","reasonCode":"CLEAN_MATCH","override":false,"note":"` + reason + `"}`
)

func (k *kit) decide(key, fields string, headers ...string) (reply, error) {
	return k.ask(http.MethodPost, k.billPath()+"/decision", fields, append([]string{restwire.HeaderKey, key}, headers...)...)
}

// held decides, which must work, and returns the answer.
func (k *kit) held(key, fields string, headers ...string) (reply, payables.Decision, error) {
	got, err := k.decide(key, fields, headers...)
	if err != nil {
		return got, payables.Decision{}, err
	}
	if got.status != http.StatusCreated {
		return got, payables.Decision{}, fmt.Errorf("a decision is answered %s, want 201", got.say())
	}
	out, err := restwire.OutcomeForm.Read(got.body, k.tenant)
	d, ok := out.Answer.(payables.Decision)
	if err == nil && (!ok || d.Invoice != k.invoice || d.Action != payables.Hold || out.Operation.Key.String() != key) {
		err = errors.New("it is the answer to another request")
	}
	return got, d, err
}

func unknownInvoice(k *kit) error {
	if _, _, err := k.bill(); err != nil {
		return err
	}
	for _, id := range []string{"INV-999999999999", "INV-999999999998"} {
		got, err := k.ask(http.MethodGet, "/v1/invoices/"+id, "")
		if err == nil && got.status == http.StatusOK {
			continue // there is such an invoice
		}
		if err := refused(got, err, http.StatusNotFound, "invoice_not_found"); err != nil {
			return err
		}
		got, err = k.ask(http.MethodPost, "/v1/invoices/"+id+"/decision", toHold, restwire.HeaderKey, k.key())
		return refused(got, err, http.StatusNotFound, "invoice_not_found")
	}
	return errors.New("every invoice exists")
}

func decideOnce(k *kit) error {
	before, _, err := k.bill()
	if err != nil {
		return err
	}
	// Another reason than the one it has, so that it is a change.
	fields := toHold
	if d := before.Decision; d != nil && d.Reason == payables.NeedsReview {
		fields = otherHold
	}
	key := k.key()
	first, d, err := k.held(key, fields)
	if err != nil {
		return err
	}
	after, _, err := k.bill()
	switch {
	case err != nil:
		return err
	case after.Status != payables.OnHold || after.Decision == nil || after.Decision.ID != d.ID:
		return errors.New("the invoice does not show the decision")
	}
	again, err := k.decide(key, fields)
	if err == nil && (again.status != http.StatusOK || again.header.Get(restwire.HeaderReplayed) != "true" || !bytes.Equal(again.body, first.body)) {
		err = fmt.Errorf("the repeat is answered %s, or otherwise than the first", again.say())
	}
	if err != nil {
		return err
	}
	found, err := k.lookUp(key)
	if err == nil && (found.status != http.StatusOK || !bytes.Equal(found.body, first.body)) {
		err = fmt.Errorf("the look-up is answered %s, or otherwise than the decision was", found.say())
	}
	return err
}

func decideAgain(k *kit) error {
	if _, _, err := k.bill(); err != nil {
		return err
	}
	_, first, err := k.held(k.key(), toHold)
	if err != nil {
		return err
	}
	before, tag, err := k.bill()
	if err != nil {
		return err
	}
	_, second, err := k.held(k.key(), toHold)
	if err == nil && second.ID != first.ID {
		err = errors.New("there is a second decision")
	}
	if err != nil {
		return err
	}
	after, same, err := k.bill()
	if err == nil && (same != tag || after.Decision.Number != before.Decision.Number) {
		err = errors.New("the invoice changed")
	}
	return err
}

func decideOtherwise(k *kit) error {
	if _, _, err := k.bill(); err != nil {
		return err
	}
	key := k.key()
	if _, _, err := k.held(key, toHold); err != nil {
		return err
	}
	got, err := k.decide(key, otherHold)
	return refused(got, err, http.StatusUnprocessableEntity, "operation_key_reused")
}

func decideOnStale(k *kit) error {
	if _, _, err := k.bill(); err != nil {
		return err
	}
	if _, _, err := k.held(k.key(), toHold); err != nil {
		return err
	}
	_, tag, err := k.bill()
	if err != nil {
		return err
	}
	if _, _, err := k.held(k.key(), otherHold, "If-Match", tag); err != nil {
		return fmt.Errorf("with the right ETag: %w", err)
	}
	got, err := k.decide(k.key(), toHold, "If-Match", tag)
	return refused(got, err, http.StatusPreconditionFailed)
}

func decideByFields(k *kit) error {
	_, tag, err := k.bill()
	if err != nil {
		return err
	}
	for _, more := range []string{`"mayOverride":true`, `"tolerance":{"percent":"100"}`, `"findings":[]`, `"decidedBy":"somebody"`} {
		got, err := k.decide(k.key(), strings.Replace(toHold, "{", "{"+more+",", 1))
		if err := refused(got, err, http.StatusBadRequest); err != nil {
			return fmt.Errorf("with %s: %w", more, err)
		}
	}
	if _, same, err := k.bill(); err != nil || same != tag {
		return errors.Join(err, errors.New("the invoice changed"))
	}
	return nil
}

func listInvoices(k *kit) error {
	i, _, err := k.bill()
	if err != nil {
		return err
	}
	path := "/v1/invoices?limit=1&status=" + i.Status.String() + "&vendor=" + i.Vendor.String()
	if !slices.Contains(i.Synthesised, payables.FieldCurrency) {
		path += "&currency=" + i.Currency.String()
	}
	last, found := "", false
	for cursor := ""; ; {
		got, err := k.ask(http.MethodGet, path+cursor, "")
		if err != nil {
			return err
		}
		if got.status != http.StatusOK {
			return fmt.Errorf("a list is answered %s", got.say())
		}
		page, next, err := k.forms.Invoices.Read(got.body, k.tenant)
		if err != nil {
			return err
		}
		for _, x := range page {
			k.leaves(x.Synthesised)
			if x.ID.String() <= last || x.Status != i.Status || x.Vendor != i.Vendor || x.Currency != i.Currency {
				return errors.New("a row is out of order, or not asked for")
			}
			last, found = x.ID.String(), found || x.ID == i.ID
		}
		if next == nil || len(page) == 0 {
			break
		}
		cursor = "&cursor=" + *next
	}
	if !found {
		return errors.New("the invoice is not listed")
	}
	return nil
}

func latestInvoices(k *kit) error {
	i, _, err := k.bill()
	if err != nil {
		return err
	}
	path, before := "/v1/vendors/"+i.Vendor.String()+"/invoices?limit=1", int64(0)
	for range maxPages {
		query := path
		if before > 0 {
			query += fmt.Sprintf("&cursor=%d", before)
		}
		got, err := k.ask(http.MethodGet, query, "")
		if err != nil {
			return err
		}
		if got.status != http.StatusOK {
			return fmt.Errorf("a list is answered %s", got.say())
		}
		page, next, err := k.forms.Invoices.Read(got.body, k.tenant)
		if err != nil {
			return err
		}
		for _, x := range page {
			if x.Vendor != i.Vendor || before > 0 && x.Entered >= before {
				return errors.New("a row is out of order, or not asked for")
			}
			before = x.Entered
		}
		switch {
		case next == nil && before > i.Entered:
			return errors.New("the invoice is not listed")
		case next == nil || before <= i.Entered:
			return nil
		case *next != strconv.FormatInt(before, 10):
			return errors.New("the next page does not begin below the last row")
		}
	}
	return nil
}

func lookUpPolicy(k *kit) error {
	if _, _, err := k.bill(); err != nil {
		return err
	}
	got, err := k.ask(http.MethodGet, restwire.GetPolicy.Path, "")
	if err != nil {
		return err
	}
	if got.status != http.StatusOK {
		return fmt.Errorf("a look-up is answered %s", got.say())
	}
	if err := got.isJSON(); err != nil {
		return err
	}
	_, err = restwire.PolicyForm.Read(got.body, k.tenant)
	return err
}
