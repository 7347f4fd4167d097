// Package app holds the use cases: what a caller may do, in which order it is
// checked, and where time and ids come from. One file per subject; write.go is
// the one road of every write.
package app

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
	"github.com/refundledger/refundledger/ports"
)

// App is the application. All fields are needed, Payables only for payables,
// and Census only where a verification can count, which a client of a ledger
// service can not; all methods may be called at once.
type App struct {
	Ledger   ports.Ledger
	Refunds  ports.Refunds
	Payables ports.Payables
	Journal  ports.Journal
	Census   ports.Census
	Clock    ports.Clock
	IDs      ports.IDs
	// Tolerance is how far invoiced prices may differ from ordered ones.
	Tolerance payables.Tolerance
	// CallTimeout bounds each call, > 0.
	CallTimeout time.Duration
	// RequireOperationKey refuses calls that change state and whose host sent no
	// operation key.
	RequireOperationKey bool
}

// Call is who asks, through which tool, under which key.
type Call struct {
	Principal access.Principal
	Tool      string
	// Key is the host's operation key, in other words its idempotency key. A call
	// that changes state and has none gets one from [App.Begin].
	Key operation.Key
	// Via is the service that asks on the principal's behalf, if one does.
	Via string
	// Timeout is how long the caller of this call waits, if that is less than
	// [App.CallTimeout]; 0 if it did not say.
	Timeout time.Duration
	// Minted is true when the key is not the host's, so that no retry can name it.
	Minted bool
}

// Begin returns the call with an operation key: the host's, or a new one. That
// begins with the time, so that a database adds it at the end of its index of keys.
func (a *App) Begin(c Call) Call {
	if c.Key == (operation.Key{}) {
		key, err := operation.ParseKey(strconv.FormatInt(a.Clock.Now().UnixMilli(), 16) + "-" + a.IDs.NewID().String())
		if err != nil {
			panic(err) // it has the form of a key
		}
		c.Key, c.Minted = key, true
	}
	return c
}

// inTime puts an end of the call's time into words, before anything was handed
// to the ledger: nothing has happened.
func inTime(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && fault.Of(err) == nil {
		return fault.New(fault.BackendUnavailable, "call_timeout", "The ledger did not answer in time. Nothing has happened. Try again later.")
	}
	if errors.Is(err, context.Canceled) && fault.Of(err) == nil {
		return fault.New(fault.BackendUnavailable, "call_cancelled", "The call was cancelled before anything happened.")
	}
	return err
}
