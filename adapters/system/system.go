// Package system is the clock and the source of ids of the running machine.
package system

import (
	"time"

	"github.com/google/uuid"

	"github.com/refundledger/refundledger/domain/operation"
)

// Clock tells the machine's time.
type Clock struct{}

// Now returns the time.
func (Clock) Now() time.Time { return time.Now() }

// IDs makes random UUIDs from the operating system's entropy.
type IDs struct{}

// NewID returns a UUID of version 4. It panics if the operating system has no
// entropy to give, since nothing may be decided under a guessable id.
func (IDs) NewID() operation.ID { return operation.ID(uuid.New()) }
