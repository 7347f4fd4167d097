package memory_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports/portstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(testing.TB) portstest.Store { return memory.New() }

func TestLaws(t *testing.T) { portstest.Ledger(t, open) }

// The model agrees with itself: no answer depends on a map's order, a clock or
// chance, and what it keeps adds up after any sequence.
func TestModel(t *testing.T) { portstest.Model(t, open, open) }

// opening is a write that opens the account of a customer.
func opening(t *testing.T, customer, under string) (operation.Operation, customers.Open) {
	t.Helper()
	id, err1 := customers.ParseID(customer)
	usd, err2 := money.ParseCurrency("USD")
	tenant, err3 := access.ParseTenant("acme")
	key, err4 := operation.ParseKey(under)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return operation.Operation{ID: operation.ID{1}, Tenant: tenant, Principal: "bot", Tool: "test", Key: key, At: time.UnixMilli(1).UTC()}, customers.Open{
		ID: id, Profile: customers.Profile{Name: "A", Email: "a@example.com"}, Status: customers.Active,
		Opening: money.FromMinor(1, usd), CreatedAt: time.UnixMilli(0),
	}
}

// isOver checks that a call ended and did nothing.
func isOver(t *testing.T, err, cause error) {
	t.Helper()
	if f := fault.Of(err); f == nil || f.Code != fault.BackendUnavailable || f.Reason != "call_ended" || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// A call that is over before it begins does nothing and says so.
func TestACallThatIsOver(t *testing.T) {
	op, cmd := opening(t, "CUST-00001", "k")
	tenant, id := op.Tenant, cmd.ID
	s := memory.New()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := s.Do(ctx, op, cmd)
	isOver(t, err, context.Canceled)
	v, err := s.Load(t.Context(), tenant, id.Ref())
	if _, there := ledger.Get[customers.Account](v, id.Ref()); there || err != nil {
		t.Errorf("it happened, or %v", err)
	}
	if o, err := s.Do(t.Context(), op, cmd); err != nil || o.Replayed {
		t.Errorf("again: %+v, %v", o, err)
	}
}

// slow is a command whose decision takes until it is let go.
type slow struct {
	ledger.Command
	began, end chan struct{}
}

func (c slow) Decide(v ledger.View) (ledger.Change, error) {
	close(c.began)
	<-c.end
	return c.Command.Decide(v)
}

// While a decision takes its time nobody who reads waits, and a write of the
// same record or under the same key waits no longer than its call lasts.
func TestADecisionThatTakesItsTime(t *testing.T) {
	const patience = 10 * time.Second
	s := memory.New()
	op, cmd := opening(t, "CUST-00001", "k")
	first, ended := slow{cmd, make(chan struct{}), make(chan struct{})}, make(chan error, 1)
	go func() {
		_, err := s.Do(t.Context(), op, first)
		ended <- err
	}()
	<-first.began

	ctx := t.Context()
	var none payables.OrderID
	for name, read := range map[string]func() (there int, err error){
		"the record": func() (int, error) {
			v, err := s.Load(ctx, op.Tenant, cmd.ID.Ref())
			if _, ok := ledger.Get[customers.Account](v, cmd.ID.Ref()); ok {
				return 1, err
			}
			return 0, err
		},
		"accounts": func() (int, error) { l, err := s.ListAccounts(ctx, op.Tenant, "", 10); return len(l), err },
		"refunds":  func() (int, error) { l, err := s.ListRefunds(ctx, op.Tenant, cmd.ID, 0, 10); return len(l), err },
		"entries": func() (int, error) {
			l, err := s.ListEntries(ctx, op.Tenant, cmd.ID.Subject(), 0, 10)
			return len(l), err
		},
		"receipts": func() (int, error) { l, err := s.ListReceipts(ctx, op.Tenant, none, "", 10); return len(l), err },
		"sums":     func() (int, error) { l, err := s.SumInvoices(ctx, op.Tenant); return len(l), err },
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if n, err := read(); n != 0 || err != nil {
				t.Errorf("%s: %d are there before they are decided, %v", name, n, err)
			}
		}()
		select {
		case <-done:
		case <-time.After(patience):
			t.Errorf("who reads %s waits for the decision", name)
		}
	}

	sameKey, stop := context.WithTimeout(ctx, time.Millisecond)
	defer stop()
	_, err := s.Do(sameKey, op, cmd)
	isOver(t, err, context.DeadlineExceeded)

	another, same := opening(t, "CUST-00001", "l")
	sameRecord, cancel := context.WithCancel(ctx)
	waits := make(chan error, 1)
	go func() {
		_, err := s.Do(sameRecord, another, same)
		waits <- err
	}()
	cancel()
	close(first.end)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	isOver(t, <-waits, context.Canceled)
	if _, err := s.Do(ctx, op, cmd); err != nil {
		t.Error(err)
	}
}

// Who finds the record that a write made finds what its key led to: it is one
// step.
func TestARecordAndItsOutcomeComeTogether(t *testing.T) {
	const imports = 2_000
	s := memory.New()
	op, cmd := opening(t, "CUST-00001", "k")
	var at atomic.Int64
	under := func(n int64) operation.Operation {
		o := op
		key, err := operation.ParseKey("k" + strconv.FormatInt(n, 10))
		if err != nil {
			t.Error(err)
		}
		o.Key = key
		binary.BigEndian.PutUint64(o.ID[:], uint64(n)+1)
		return o
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := at.Load(); n < imports; n = at.Load() {
			op := under(n)
			record, outcome := customers.Imported{ID: op.ID}.Ref(), ledger.OutcomeRef(op.Principal, op.Key)
			for there := false; !there && at.Load() == n; {
				v, _ := s.Load(t.Context(), op.Tenant, record)
				if _, there = ledger.Get[customers.Imported](v, record); !there {
					continue
				}
				v, _ = s.Load(t.Context(), op.Tenant, outcome)
				if _, settled := ledger.Get[ledger.Outcome](v, outcome); !settled {
					t.Errorf("import %d is on record, and nothing under its key", n)
				}
			}
		}
	}()
	for n := range int64(imports) {
		at.Store(n)
		if _, err := s.Do(t.Context(), under(n), customers.Import{Customers: []customers.Open{cmd}}); err != nil {
			t.Error(err)
		}
	}
	at.Store(imports)
	<-done
}
