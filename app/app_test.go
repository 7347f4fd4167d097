package app_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/app"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/refunds"
	"github.com/refundledger/refundledger/ports"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var (
	tenant   = must(access.ParseTenant("acme"))
	agent    = must(access.NewPrincipal(tenant, "agent", access.Agent, access.AgentScopes(), access.Pro, ""))
	operator = must(access.NewPrincipal(tenant, "operator", access.Human, access.ScopesOf(access.ControlRules, access.RefundRead, access.CustomerRead), access.Pro, ""))
	damaged  = must(refunds.ParseReason("Item arrived damaged"))
)

func id(n int) customers.ID { return must(customers.ParseID(fmt.Sprintf("CUST-%05d", n))) }

func decimal(s string) money.Decimal { return must(money.ParseDecimal(s)) }

// customer is what an import file says of customer n.
func customer(n int, amount, currency string, status customers.Status) customers.Open {
	return customers.Open{
		ID: id(n), Profile: customers.Profile{Name: fmt.Sprint("Customer ", n), Email: fmt.Sprintf("c%d@example.com", n)},
		Status: status, Opening: must(decimal(amount).In(must(money.ParseCurrency(currency)))), CreatedAt: time.Date(2024, 1, 15, 0, 0, 0, 0, time.UTC),
	}
}

func newApp(t *testing.T, list ...customers.Open) *app.App {
	t.Helper()
	s := memory.New()
	a := &app.App{Ledger: s, Refunds: s, Journal: s, Census: s, Clock: system.Clock{}, IDs: system.IDs{}, CallTimeout: 5 * time.Second}
	if len(list) > 0 {
		if _, err := a.ImportCustomers(t.Context(), call(operator, ""), list); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func call(who access.Principal, key string) app.Call {
	c := app.Call{Principal: who, Tool: "test"}
	if key != "" {
		c.Key = must(operation.ParseKey(key))
	}
	return c
}

func refuse(t *testing.T, err error, code fault.Code, reason string) {
	t.Helper()
	if !errors.Is(err, fault.New(code, reason, "")) {
		t.Errorf("it is %v, not %s/%s", err, code, reason)
	}
}

func balance(t *testing.T, a *app.App, n int) string {
	t.Helper()
	account, err := a.Customer(t.Context(), call(operator, ""), id(n))
	if err != nil {
		t.Fatal(err)
	}
	return account.Balance().String()
}

func holds(t *testing.T, a *app.App) {
	t.Helper()
	v, err := a.VerifyLedger(t.Context(), call(operator, ""), customers.ID{}, 0)
	if err != nil || v.Broken != nil {
		t.Errorf("the ledger does not hold: %v %v", err, v.Broken)
	}
}

func TestZeroDecimalsMeanNone(t *testing.T) {
	a := newApp(t, customer(1, "7300", "JPY", customers.Active))
	r, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("2400"), damaged)
	if err != nil || r.Amount.String() != "2400 JPY" || r.Remaining.String() != "4900 JPY" {
		t.Errorf("%v, %v left, %v", r.Amount, r.Remaining, err)
	}
	_, _, err = a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("2400.5"), damaged)
	refuse(t, err, fault.PolicyViolation, "amount_precision")
	if b := balance(t, a, 1); b != "4900 JPY" {
		t.Error(b)
	}
}

func TestRefusalsComeInOrder(t *testing.T) {
	a := newApp(t, customer(1, "100", "JPY", customers.Suspended), customer(2, "100", "JPY", customers.Active))
	for _, c := range []struct {
		name   string
		id     int
		amount string
		code   fault.Code
		reason string
	}{
		{"an unknown customer before all else", 9, "0.5", fault.NotFound, "customer_not_found"},
		{"a suspended account before the decimals", 1, "1000.5", fault.PolicyViolation, "account_suspended"},
		{"the decimals before the balance", 2, "1000.5", fault.PolicyViolation, "amount_precision"},
		{"the balance last", 2, "101", fault.PolicyViolation, "balance_exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(c.id), decimal(c.amount), damaged)
			refuse(t, err, c.code, c.reason)
		})
	}
}

func TestAUsedKeyIsAConflictEvenIfTheRequestCanNotBeResolved(t *testing.T) {
	a := newApp(t, customer(1, "100", "USD", customers.Active), customer(2, "100", "JPY", customers.Active))
	if _, _, err := a.TriggerRefund(t.Context(), call(agent, "k"), id(1), decimal("1"), damaged); err != nil {
		t.Fatal(err)
	}
	_, _, err := a.TriggerRefund(t.Context(), call(agent, "k"), id(9), decimal("1"), damaged)
	refuse(t, err, fault.Conflict, "operation_key_reused")
	_, _, err = a.TriggerRefund(t.Context(), call(agent, "k"), id(2), decimal("0.5"), damaged)
	refuse(t, err, fault.Conflict, "operation_key_reused")
	_, _, err = a.TriggerRefund(t.Context(), call(agent, "fresh"), id(9), decimal("1"), damaged)
	refuse(t, err, fault.NotFound, "customer_not_found")
}

// A refund whose payment failed gives its amount back; one whose fate is not
// known goes on counting, since nobody reverses it.
func TestAFailedRefundIsRefundableAgain(t *testing.T) {
	a := newApp(t, customer(1, "22.85", "USD", customers.Active))
	r, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("22.85"), damaged)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("22.85"), damaged)
	refuse(t, err, fault.PolicyViolation, "balance_exceeded")

	bounced := must(refunds.ParseReason("The bank returned the payment"))
	_, err = a.ReverseRefund(t.Context(), call(agent, ""), id(1), r.Number, bounced)
	if denied, ok := errors.AsType[*access.Denied](err); !ok || denied.Scope != access.ControlRules {
		t.Errorf("an agent may reverse: %v", err)
	}
	back, err := a.ReverseRefund(t.Context(), call(operator, "reverse-1"), id(1), r.Number, bounced)
	if err != nil || back.Amount.String() != "22.85 USD" || back.Remaining.String() != "22.85 USD" {
		t.Fatalf("%+v %v", back, err)
	}
	again, err := a.ReverseRefund(t.Context(), call(operator, "reverse-1"), id(1), r.Number, bounced)
	if err != nil || again != back {
		t.Errorf("a replay gives %+v, %v", again, err)
	}
	_, err = a.ReverseRefund(t.Context(), call(operator, "reverse-2"), id(1), r.Number, bounced)
	refuse(t, err, fault.Conflict, "already_reversed")
	_, err = a.ReverseRefund(t.Context(), call(operator, ""), id(1), 1, bounced)
	refuse(t, err, fault.NotFound, "refund_not_found")

	page, _, err := a.ListRefunds(t.Context(), call(operator, ""), id(1), 0, 10)
	if err != nil || len(page) != 1 || page[0].Status != refunds.Reversed {
		t.Errorf("%+v %v", page, err)
	}
	if _, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("22.85"), damaged); err != nil {
		t.Errorf("a new refund of the same amount: %v", err)
	}
	if b := balance(t, a, 1); b != "0.00 USD" {
		t.Error(b)
	}
	holds(t, a)
}

func TestAdjustments(t *testing.T) {
	a := newApp(t, customer(1, "10", "USD", customers.Active), customer(2, "0", "USD", customers.Active))
	for _, c := range []struct {
		id           int
		change, left string
		code         fault.Code
		reason       string
	}{
		{1, "5.50", "15.50 USD", fault.Code{}, ""},
		{1, "-15.50", "0.00 USD", fault.Code{}, ""},
		{1, "-0.01", "0.00 USD", fault.PolicyViolation, "balance_exceeded"},
		{1, "0", "0.00 USD", fault.InvalidInput, "invalid_adjustment"},
		{1, "0.005", "0.00 USD", fault.PolicyViolation, "amount_precision"},
		{2, "7", "7.00 USD", fault.Code{}, ""},
	} {
		_, err := a.AdjustCustomer(t.Context(), call(operator, ""), id(c.id), decimal(c.change), "counted again")
		if c.code != (fault.Code{}) {
			refuse(t, err, c.code, c.reason)
		} else if err != nil {
			t.Errorf("%s: %v", c.change, err)
		}
		if b := balance(t, a, c.id); b != c.left {
			t.Errorf("after %s the balance is %s", c.change, b)
		}
	}
	_, err := a.AdjustCustomer(t.Context(), call(operator, ""), id(1), decimal("1"), "")
	refuse(t, err, fault.InvalidInput, "invalid_adjustment")
	holds(t, a)
}

func TestAnImportIsAllOrNothingAndMayBeSentAgain(t *testing.T) {
	list := []customers.Open{customer(1, "10", "USD", customers.Active), customer(2, "20.5", "KWD", customers.Suspended)}
	a := newApp(t, list...)
	if _, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("4"), damaged); err != nil {
		t.Fatal(err)
	}
	done, err := a.ImportCustomers(t.Context(), call(operator, ""), append(list, customer(3, "1", "USD", customers.Active)))
	if err != nil || done.Opened != 1 || done.Unchanged != 2 {
		t.Errorf("%+v %v", done, err)
	}
	if b := balance(t, a, 1); b != "6.00 USD" {
		t.Errorf("an import that was sent again changed a balance to %s", b)
	}
	other := customer(2, "20.501", "KWD", customers.Suspended)
	_, err = a.ImportCustomers(t.Context(), call(operator, ""), []customers.Open{customer(4, "1", "USD", customers.Active), other, customer(4, "1", "USD", customers.Active)})
	if f := fault.Of(err); f == nil || len(f.Issues) != 2 || f.Issues[0].Path[0] != 1 || f.Issues[1].Path[0] != 2 {
		t.Errorf("%+v", err)
	}
	if _, err := a.Customer(t.Context(), call(operator, ""), id(4)); fault.CodeOf(err) != fault.NotFound {
		t.Error("half an import was kept")
	}
	holds(t, a)
}

// slowLedger holds each write until it is let go.
type slowLedger struct {
	ports.Ledger
	begun, let chan struct{}
}

func (s slowLedger) Do(ctx context.Context, op operation.Operation, cmd ledger.Command) (ledger.Outcome, error) {
	s.begun <- struct{}{}
	<-s.let
	if ctx.Err() != nil {
		return ledger.Outcome{}, ctx.Err()
	}
	return s.Ledger.Do(ctx, op, cmd)
}

func TestAClientThatGoesAwayDoesNotStopAWrite(t *testing.T) {
	a := newApp(t, customer(1, "10", "USD", customers.Active))
	slow := slowLedger{a.Ledger, make(chan struct{}), make(chan struct{})}
	a.Ledger = slow
	ctx, leave := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, _, err := a.TriggerRefund(ctx, call(agent, "k"), id(1), decimal("4"), damaged)
		result <- err
	}()
	<-slow.begun
	leave()
	close(slow.let)
	if err := <-result; err != nil {
		t.Error(err)
	}
	a.Ledger = slow.Ledger
	if b := balance(t, a, 1); b != "6.00 USD" {
		t.Error(b)
	}
}

func TestEachUseCasePermitsByItself(t *testing.T) {
	nobody := must(access.NewPrincipal(tenant, "nobody", access.Agent, access.Scopes{}, access.Pro, ""))
	a := newApp(t, customer(1, "10", "USD", customers.Active))
	c := call(nobody, "")
	for name, err := range map[string]error{
		"Customer":        second(a.Customer(t.Context(), c, id(1))),
		"TriggerRefund":   third(a.TriggerRefund(t.Context(), c, id(1), decimal("1"), damaged)),
		"ListRefunds":     third(a.ListRefunds(t.Context(), c, id(1), 0, 1)),
		"Operation":       third(a.Operation(t.Context(), c, must(operation.ParseKey("k")))),
		"VerifyLedger":    second(a.VerifyLedger(t.Context(), c, id(1), 0)),
		"ReverseRefund":   second(a.ReverseRefund(t.Context(), c, id(1), 1, damaged)),
		"AdjustCustomer":  second(a.AdjustCustomer(t.Context(), c, id(1), decimal("1"), "x")),
		"ImportCustomers": second(a.ImportCustomers(t.Context(), c, nil)),
	} {
		if _, ok := errors.AsType[*access.Denied](err); !ok {
			t.Errorf("%s is not denied: %v", name, err)
		}
	}
	if b := balance(t, a, 1); b != "10.00 USD" {
		t.Error(b)
	}
}

// Who may write may know what became of it, whatever else it may not read.
func TestWhoWritesLooksItsOwnOperationUp(t *testing.T) {
	a := newApp(t, customer(1, "10", "USD", customers.Active))
	for scope, permitted := range map[access.Scope]bool{
		access.RefundRead: true, access.RefundWrite: true, access.InvoiceRoute: true,
		access.CustomerRead: false, access.InvoiceRead: false,
	} {
		who := must(access.NewPrincipal(tenant, "one", access.Agent, access.ScopesOf(scope), access.Free, ""))
		_, _, err := a.Operation(t.Context(), call(who, ""), must(operation.ParseKey("k")))
		_, denied := errors.AsType[*access.Denied](err)
		if denied == permitted || permitted && fault.CodeOf(err) != fault.NotFound {
			t.Errorf("with %s: %v", scope, err)
		}
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

// lyingLedger shows records that are not what was written.
type lyingLedger struct {
	*memory.Store
	record func(ledger.Ref, ledger.Record) ledger.Record
	entry  func(journal.Entry) journal.Entry
}

func (l lyingLedger) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	truth, err := l.Store.Load(ctx, t, refs...)
	v := ledger.NewView(truth.Op, len(refs))
	for _, ref := range refs {
		var r ledger.Record
		switch ref.Kind {
		case customers.Kind:
			r, _ = ledger.Get[customers.Account](truth, ref)
		case refunds.Kind:
			r, _ = ledger.Get[refunds.Refund](truth, ref)
		case ledger.OutcomeKind:
			r, _ = ledger.Get[ledger.Outcome](truth, ref)
		}
		v.Put(ref, l.record(ref, r))
	}
	return v, err
}

func (l lyingLedger) ListEntries(ctx context.Context, t access.Tenant, s journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	page, err := l.Store.ListEntries(ctx, t, s, after, limit)
	for i := range page {
		page[i] = l.entry(page[i])
	}
	return page, err
}

func TestAVerificationFindsWhatWasChanged(t *testing.T) {
	same := func(_ ledger.Ref, r ledger.Record) ledger.Record { return r }
	kept := func(e journal.Entry) journal.Entry { return e }
	account := func(change func(*customers.Account)) func(ledger.Ref, ledger.Record) ledger.Record {
		return func(_ ledger.Ref, r ledger.Record) ledger.Record {
			if a, ok := r.(customers.Account); ok {
				change(&a)
				return a
			}
			return r
		}
	}
	refund := func(change func(*refunds.Refund)) func(ledger.Ref, ledger.Record) ledger.Record {
		return func(_ ledger.Ref, r ledger.Record) ledger.Record {
			if x, ok := r.(refunds.Refund); ok {
				change(&x)
				return x
			}
			return r
		}
	}
	for name, c := range map[string]struct {
		record func(ledger.Ref, ledger.Record) ledger.Record
		entry  func(journal.Entry) journal.Entry
		number int64
	}{
		"a status": {account(func(a *customers.Account) { a.Status = customers.Suspended }), kept, 2},
		"a balance": {account(func(a *customers.Account) {
			a.Lots = []customers.Lot{{Name: customers.OpeningLot, Balance: must(decimal("99").In(a.Currency))}}
		}), kept, 2},
		"a name":                {account(func(a *customers.Account) { a.Name = "Mallory" }), kept, 2},
		"an e-mail":             {account(func(a *customers.Account) { a.Email = "mallory@example.com" }), kept, 2},
		"a time of creation":    {account(func(a *customers.Account) { a.CreatedAt = a.CreatedAt.Add(time.Hour) }), kept, 2},
		"an amount of a refund": {refund(func(r *refunds.Refund) { r.Amount = must(decimal("1").In(r.Amount.Currency())) }), kept, 2},
		"a reason of a refund":  {refund(func(r *refunds.Refund) { r.Reason = must(refunds.ParseReason("Another reason")) }), kept, 2},
		"a refund that is gone": {func(ref ledger.Ref, r ledger.Record) ledger.Record {
			if ref.Kind == refunds.Kind {
				return nil
			}
			return r
		}, kept, 2},
		"an outcome that is gone": {func(ref ledger.Ref, r ledger.Record) ledger.Record {
			if ref.Kind == ledger.OutcomeKind {
				return nil
			}
			return r
		}, kept, 1},
		"an outcome of another operation": {func(_ ledger.Ref, r ledger.Record) ledger.Record {
			if o, ok := r.(ledger.Outcome); ok {
				o.Operation.ID[0]++
				return o
			}
			return r
		}, kept, 1},
		"a fact of an entry": {same, func(e journal.Entry) journal.Entry {
			if e.Number() != 2 {
				return e
			}
			facts := append([]operation.Fact{}, e.Facts()...)
			facts[1].Value = "1"
			return journal.Restore(e.Number(), e.Previous(), e.Hash(), e.Subject(), e.Operation(), e.Command(), facts, e.Postings())
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, customer(1, "10", "USD", customers.Active))
			if _, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("4"), damaged); err != nil {
				t.Fatal(err)
			}
			holds(t, a)
			lies := lyingLedger{a.Ledger.(*memory.Store), c.record, c.entry}
			a.Ledger, a.Journal = lies, lies
			v, err := a.VerifyLedger(t.Context(), call(operator, ""), id(1), 0)
			if err != nil || v.Broken == nil || v.Broken.Number != c.number || v.Broken.Why == "" {
				t.Errorf("it finds %+v, %v", v.Broken, err)
			}
		})
	}
}

// What an operator corrected is compared with its entry too, and with what the
// key says was asked.
func TestAVerificationFindsChangedCorrections(t *testing.T) {
	outcome := func(of string, change func(*ledger.Outcome)) func(ledger.Ref, ledger.Record) ledger.Record {
		return func(_ ledger.Ref, r ledger.Record) ledger.Record {
			if o, ok := r.(ledger.Outcome); ok && o.Command == of {
				change(&o)
				return o
			}
			return r
		}
	}
	adjustment := func(change func(*customers.Adjustment)) func(ledger.Ref, ledger.Record) ledger.Record {
		return outcome(customers.AdjustName, func(o *ledger.Outcome) {
			a := o.Answer.(customers.Adjustment)
			change(&a)
			o.Answer = a
		})
	}
	reversal := func(change func(*refunds.Reversal)) func(ledger.Ref, ledger.Record) ledger.Record {
		return outcome(refunds.ReverseName, func(o *ledger.Outcome) {
			r := o.Answer.(refunds.Reversal)
			change(&r)
			o.Answer = r
		})
	}
	cent := must(decimal("0.01").In(must(money.ParseCurrency("USD"))))
	for name, c := range map[string]struct {
		record func(ledger.Ref, ledger.Record) ledger.Record
		number int64
	}{
		"an adjustment's amount":       {adjustment(func(a *customers.Adjustment) { a.Change = cent }), 3},
		"an adjustment's explanation":  {adjustment(func(a *customers.Adjustment) { a.Why = "forged" }), 3},
		"an adjustment's balance":      {adjustment(func(a *customers.Adjustment) { a.Remaining = cent }), 3},
		"an adjustment's time":         {adjustment(func(a *customers.Adjustment) { a.AdjustedAt = a.AdjustedAt.Add(time.Hour) }), 3},
		"a reversal's amount":          {reversal(func(r *refunds.Reversal) { r.Amount = cent }), 4},
		"a reversal's reason":          {reversal(func(r *refunds.Reversal) { r.Reason = must(refunds.ParseReason("Another reason")) }), 4},
		"a reversal's refund":          {reversal(func(r *refunds.Reversal) { r.Refund++ }), 4},
		"a reversal's balance":         {reversal(func(r *refunds.Reversal) { r.Remaining = cent }), 4},
		"an answer of another kind":    {outcome(refunds.ReverseName, func(o *ledger.Outcome) { o.Answer = customers.Imported{} }), 4},
		"what a refund's key is for":   {outcome(refunds.TriggerName, func(o *ledger.Outcome) { o.Fingerprint[0]++ }), 2},
		"what a reversal's key is for": {outcome(refunds.ReverseName, func(o *ledger.Outcome) { o.Fingerprint[0]++ }), 4},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, customer(1, "10", "USD", customers.Active))
			if _, _, err := a.TriggerRefund(t.Context(), call(agent, ""), id(1), decimal("4"), damaged); err != nil {
				t.Fatal(err)
			}
			if _, err := a.AdjustCustomer(t.Context(), call(operator, ""), id(1), decimal("5"), "found in an audit"); err != nil {
				t.Fatal(err)
			}
			if _, err := a.ReverseRefund(t.Context(), call(operator, ""), id(1), 2, damaged); err != nil {
				t.Fatal(err)
			}
			holds(t, a)
			lies := lyingLedger{a.Ledger.(*memory.Store), c.record, func(e journal.Entry) journal.Entry { return e }}
			a.Ledger, a.Journal = lies, lies
			v, err := a.VerifyLedger(t.Context(), call(operator, ""), id(1), 0)
			if err != nil || v.Broken == nil || v.Broken.Number != c.number || v.Broken.Why == "" {
				t.Errorf("it finds %+v, %v", v.Broken, err)
			}
		})
	}
}

func TestAVerificationIsBounded(t *testing.T) {
	a := newApp(t, customer(1, "10", "USD", customers.Active), customer(2, "10", "USD", customers.Active))
	_, err := a.VerifyLedger(t.Context(), call(operator, ""), customers.ID{}, 1)
	refuse(t, err, fault.PolicyViolation, "too_many_entries")
}

func TestAHostThatMustSendAKeyMust(t *testing.T) {
	a := newApp(t, customer(1, "10", "USD", customers.Active))
	a.RequireOperationKey = true
	_, _, err := a.TriggerRefund(t.Context(), a.Begin(call(agent, "")), id(1), decimal("4"), damaged)
	refuse(t, err, fault.InvalidInput, "operation_key_required")
	if _, _, err := a.TriggerRefund(t.Context(), call(agent, "k"), id(1), decimal("4"), damaged); err != nil {
		t.Error(err)
	}
}

// blinkingLedger can not be asked the first time.
type blinkingLedger struct {
	ports.Ledger
	seen *bool
}

func (b blinkingLedger) Load(ctx context.Context, t access.Tenant, refs ...ledger.Ref) (ledger.View, error) {
	if !*b.seen {
		*b.seen = true
		return ledger.View{}, fault.New(fault.BackendUnavailable, "store_unreachable", "Try again later.")
	}
	return b.Ledger.Load(ctx, t, refs...)
}

func TestALedgerThatBlinksIsNoConflict(t *testing.T) {
	a := newApp(t, customer(1, "10", "USD", customers.Active))
	if _, _, err := a.TriggerRefund(t.Context(), call(agent, "k"), id(1), decimal("4"), damaged); err != nil {
		t.Fatal(err)
	}
	a.Ledger = blinkingLedger{a.Ledger, new(bool)}
	_, _, err := a.TriggerRefund(t.Context(), call(agent, "k"), id(1), decimal("4"), damaged)
	refuse(t, err, fault.BackendUnavailable, "store_unreachable")
	if _, replayed, err := a.TriggerRefund(t.Context(), call(agent, "k"), id(1), decimal("4"), damaged); err != nil || !replayed {
		t.Errorf("then: replayed %v, %v", replayed, err)
	}
}

// at is a clock that stands.
type at time.Time

func (a at) Now() time.Time { return time.Time(a) }

// A key that is made comes after those of earlier calls and is no other call's.
func TestKeysThatAreMade(t *testing.T) {
	a := newApp(t)
	made := map[string]bool{}
	last := ""
	for n := range 3 {
		a.Clock = at(time.Date(2026, 3, 1, 0, 0, 0, n*1_000_000, time.UTC))
		before := last
		for range 2 {
			c := a.Begin(call(agent, ""))
			if key := c.Key.String(); !c.Minted || made[key] || key <= before {
				t.Errorf("%s after %s", key, before)
			}
			made[c.Key.String()] = true
			last = max(last, c.Key.String())
		}
	}
	if c := a.Begin(call(agent, "own")); c.Minted || c.Key.String() != "own" {
		t.Errorf("the host's key became %s", c.Key)
	}
}
