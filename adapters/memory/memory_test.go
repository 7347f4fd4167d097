package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/ports/portstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(testing.TB) portstest.Store { return memory.New() }

func TestLaws(t *testing.T) { portstest.Ledger(t, open) }

// The model agrees with itself: no answer depends on a map's order, a clock or
// chance, and what it keeps adds up after any sequence.
func TestModel(t *testing.T) { portstest.Model(t, open, open) }
