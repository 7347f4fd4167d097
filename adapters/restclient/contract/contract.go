// Package contract checks whether a service keeps the contract of the REST
// system of record: promise by promise, over plain HTTP, so that it shows what
// the client of package restclient would hide. It refunds small amounts to one
// customer, and in the end all that the customer has: use one made for it. An
// invoice, if it is given one, is put on hold.
package contract

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/restwire"
	"github.com/refundledger/refundledger/adapters/restclient"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/domain/refunds"
)

const (
	// Timeout is how long one request may take.
	Timeout = 10 * time.Second
	// LeastBalance and MostBalance bound what the customer may have, in minor
	// units: enough for every promise, and no more than a mistake may cost.
	LeastBalance = 100
	MostBalance  = 1_000_000
	// atOnce is how many requests are sent at once where it matters.
	atOnce = 8
	reason = "Checking the contract of the service"
)

// Options say what is checked.
type Options struct {
	URL, Token string
	// Customer can be refunded, and has LeastBalance to MostBalance.
	Customer string
	// Invoice is open or on hold, and is put on hold; "": then payables are not
	// checked.
	Invoice string
	// Other is a token of another tenant, or "": then what needs it is not checked.
	Other string
}

// Finding is what came of one promise.
type Finding struct {
	Promise string
	Skipped string // why it was not checked
	Broken  error  // how it is broken; nil if it holds
	// LeftOut are the fields that invoices lack, as a thin backend's may, if that
	// was not said before.
	LeftOut []payables.Field
}

// Check checks every promise in turn and gives each finding to report. It fails
// if there is nothing to check: no service, or no such customer.
func Check(ctx context.Context, o Options, report func(Finding)) (broken int, err error) {
	base, err := restclient.Address(o.URL)
	if err != nil {
		return 0, err
	}
	id, err := customers.ParseID(o.Customer)
	if err != nil {
		return 0, err
	}
	k := &kit{
		ctx: ctx, base: base, token: o.Token, other: o.Other, id: id, run: rand.Text()[:8],
		http: &http.Client{
			Timeout:       Timeout,
			Transport:     &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: restwire.MaxHeader, MaxIdleConnsPerHost: atOnce},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	defer k.http.CloseIdleConnections()
	a, err := k.account()
	if err != nil {
		return 0, fmt.Errorf("the customer can not be looked up: %w", err)
	}
	if n := a.Balance().Minor(); a.Status != customers.Active || n < LeastBalance || n > MostBalance {
		return 0, fmt.Errorf("the customer must be active and have %d to %d minor units; it is %s and has %s", LeastBalance, MostBalance, a.Status, a.Balance())
	}
	k.currency = a.Currency.String()
	today, err := payables.ParseDate(time.Now().UTC().Format(time.DateOnly))
	if err != nil {
		return 0, err
	}
	k.forms = restwire.PayablesWith(restwire.Fallback{Currency: a.Currency, Date: today})
	if o.Invoice != "" {
		if k.invoice, err = payables.ParseInvoiceID(o.Invoice); err != nil {
			return 0, err
		}
	}
	for _, p := range slices.Concat(invoicePromises, promises) {
		f, said := Finding{Promise: p.says}, len(k.left)
		if err := p.check(k); errors.Is(err, errSkipped) || errors.Is(err, errNoInvoice) {
			f.Skipped = err.Error()
		} else if f.Broken = err; err != nil {
			broken++
		}
		f.LeftOut = k.left[said:]
		report(f)
	}
	return broken, nil
}

var errSkipped = errors.New("it needs the token of another tenant")

// kit asks a service.
type kit struct {
	ctx          context.Context
	base         string
	token, other string
	id           customers.ID
	tenant       access.Tenant // whose the customer is
	currency     string        // of the account
	invoice      payables.InvoiceID
	run          string // makes keys of its own
	keys         int
	http         *http.Client
	made         []int64 // numbers of the refunds that were made
	forms        restwire.Payables
	left         []payables.Field // what invoices leave out
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (k *kit) key() string {
	k.keys++
	return "check-" + k.run + "-" + strconv.Itoa(k.keys)
}

// ask sends a request with the headers given, name and value in turn.
func (k *kit) ask(method, path, body string, headers ...string) (reply, error) {
	r, err := http.NewRequestWithContext(k.ctx, method, k.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return reply{}, err
	}
	r.GetBody = nil // or the transport sends what has a key again by itself
	r.Header.Set("Authorization", "Bearer "+k.token)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", restwire.TypeJSON)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := k.http.Do(r)
	if err != nil {
		return reply{}, errors.New("no answer to " + method)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, restwire.MaxBody+1))
	if err != nil || len(text) > restwire.MaxBody {
		return reply{}, errors.New("an answer that ends too early or not within the limit")
	}
	return reply{response.StatusCode, response.Header, text}, nil
}

func (k *kit) path() string { return "/v1/customers/" + k.id.String() }

// refund asks for a refund of so many minor units of the account's currency.
func (k *kit) refund(key string, minor int64, headers ...string) (reply, error) {
	return k.ask(http.MethodPost, k.path()+"/refunds", k.fields(strconv.FormatInt(minor, 10)), append([]string{restwire.HeaderKey, key}, headers...)...)
}

// fields is the body of a refund.
func (k *kit) fields(amount string) string { return k.fieldsIn(amount, k.currency) }

func (k *kit) fieldsIn(amount, currency string) string {
	return `{"amountMinor":` + amount + `,"currency":"` + currency + `","reason":"` + reason + `"}`
}

// account looks the customer up.
func (k *kit) account() (customers.Account, error) {
	got, err := k.ask(http.MethodGet, k.path(), "")
	if err != nil {
		return customers.Account{}, err
	}
	if got.status != http.StatusOK {
		return customers.Account{}, fmt.Errorf("the status is %d", got.status)
	}
	if err := got.isJSON(); err != nil {
		return customers.Account{}, err
	}
	w, err := restwire.CustomerForm.Document(got.body)
	if err != nil {
		return customers.Account{}, err
	}
	t, err := access.ParseTenant(w.Tenant)
	if err != nil {
		return customers.Account{}, err
	}
	if k.tenant == (access.Tenant{}) {
		k.tenant = t // the first look-up says it
	}
	if t != k.tenant {
		return customers.Account{}, errors.New("the customer is of another tenant now")
	}
	a, err := restwire.CustomerForm.Record(w, t)
	switch {
	case err != nil:
		return a, err
	case a.ID != k.id:
		return a, errors.New("it is another customer")
	case got.header.Get("ETag") != restwire.ETag(a.Version()):
		return a, fmt.Errorf("the ETag is %s at version %d", got.header.Get("ETag"), a.Version())
	}
	return a, nil
}

func (got reply) isJSON() error {
	if !restwire.IsMedia(got.header, restwire.TypeJSON) {
		return fmt.Errorf("the Content-Type is %q", got.header.Get("Content-Type"))
	}
	return nil
}

// outcome reads the answer to a refund.
func (k *kit) outcome(got reply, key string) (ledger.Outcome, refunds.Refund, error) {
	if err := got.isJSON(); err != nil {
		return ledger.Outcome{}, refunds.Refund{}, err
	}
	out, err := restwire.OutcomeForm.Read(got.body, k.tenant)
	r, ok := out.Answer.(refunds.Refund)
	switch {
	case err != nil:
		return out, r, err
	case !ok || r.Customer != k.id:
		return out, r, errors.New("it is no refund of the customer")
	case out.Operation.Key.String() != key:
		return out, r, errors.New("it is the answer to another key")
	}
	return out, r, nil
}

// done wants a refund that was made now.
func (k *kit) done(got reply, err error, key string, minor int64) (refunds.Refund, error) {
	if err != nil {
		return refunds.Refund{}, err
	}
	if got.status != http.StatusCreated || got.header.Get(restwire.HeaderReplayed) != "" {
		return refunds.Refund{}, fmt.Errorf("a refund is answered %s, want 201", got.say())
	}
	_, r, err := k.outcome(got, key)
	if err == nil && r.Amount.Minor() != minor {
		err = fmt.Errorf("%d minor units are asked for, %d refunded", minor, r.Amount.Minor())
	}
	if err == nil {
		k.made = append(k.made, r.Number)
	}
	return r, err
}

// say is an answer in a word, without what it holds.
func (r reply) say() string {
	if p, err := restwire.ParseProblem(r.status, r.body); err == nil && r.status >= http.StatusBadRequest {
		return strconv.Itoa(r.status) + " " + p.Reason
	}
	return strconv.Itoa(r.status)
}

// refused wants a problem of one of the reasons, or of any if none is given.
func refused(got reply, err error, status int, reasons ...string) error {
	if err != nil {
		return err
	}
	if got.status != status {
		return fmt.Errorf("the answer is %s, want %d", got.say(), status)
	}
	if !restwire.IsMedia(got.header, restwire.TypeProblem) {
		return fmt.Errorf("the Content-Type of a problem is %q", got.header.Get("Content-Type"))
	}
	p, err := restwire.ParseProblem(got.status, got.body)
	if err != nil {
		return err
	}
	for _, r := range reasons {
		if p.Reason == r {
			return nil
		}
	}
	if len(reasons) > 0 {
		return fmt.Errorf("the reason is %s, want %s", p.Reason, reasons[0])
	}
	return nil
}

// unchanged wants that f changes nothing.
func (k *kit) unchanged(f func() error) error { return k.moves(0, 0, f) }

// moves wants that f takes so much from the balance in so many changes.
func (k *kit) moves(minor, changes int64, f func() error) error {
	before, err := k.account()
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := k.account()
	if err != nil {
		return err
	}
	if took := before.Balance().Minor() - after.Balance().Minor(); took != minor {
		return fmt.Errorf("it took %d minor units from the balance, want %d", took, minor)
	}
	if n := after.Version() - before.Version(); n != changes {
		return fmt.Errorf("it made %d changes, want %d", n, changes)
	}
	return nil
}

// lookUp asks what a key led to.
func (k *kit) lookUp(key string, headers ...string) (reply, error) {
	return k.ask(http.MethodGet, "/v1/operations/"+key, "", headers...)
}

// free wants that nothing is found under a key.
func (k *kit) free(key string) error {
	got, err := k.lookUp(key)
	if err := refused(got, err, http.StatusNotFound, restwire.ReasonOperation); err != nil {
		return fmt.Errorf("looking up a key under which nothing happened: %w", err)
	}
	return nil
}
