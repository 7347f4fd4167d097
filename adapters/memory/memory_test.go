package memory_test

import (
	"context"
	"errors"
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
	"github.com/refundledger/refundledger/ports/portstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(testing.TB) portstest.Store { return memory.New() }

func TestLaws(t *testing.T) { portstest.Ledger(t, open) }

// The model agrees with itself: no answer depends on a map's order, a clock or
// chance, and what it keeps adds up after any sequence.
func TestModel(t *testing.T) { portstest.Model(t, open, open) }

// A call that is over before it begins does nothing and says so.
func TestACallThatIsOver(t *testing.T) {
	id, err1 := customers.ParseID("CUST-00001")
	usd, err2 := money.ParseCurrency("USD")
	tenant, err3 := access.ParseTenant("acme")
	key, err4 := operation.ParseKey("k")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	op := operation.Operation{ID: operation.ID{1}, Tenant: tenant, Principal: "bot", Tool: "test", Key: key, At: time.UnixMilli(1).UTC()}
	cmd := customers.Open{
		ID: id, Profile: customers.Profile{Name: "A", Email: "a@example.com"}, Status: customers.Active,
		Opening: money.FromMinor(1, usd), CreatedAt: time.UnixMilli(0),
	}
	s := memory.New()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := s.Do(ctx, op, cmd)
	if f := fault.Of(err); f == nil || f.Code != fault.BackendUnavailable || f.Reason != "call_ended" || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	v, err := s.Load(t.Context(), tenant, id.Ref())
	if _, there := ledger.Get[customers.Account](v, id.Ref()); there || err != nil {
		t.Errorf("it happened, or %v", err)
	}
	if o, err := s.Do(t.Context(), op, cmd); err != nil || o.Replayed {
		t.Errorf("again: %+v, %v", o, err)
	}
}
