package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/refundledger/refundledger/adapters/internal/committer"
)

// SQLSTATE codes, from the appendix "PostgreSQL Error Codes" of its manual.
const (
	undefinedTable       = "42P01"
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"
	readOnlyTransaction  = "25006"
	// insufficientResources is a class: disk full, out of memory, too many connections.
	insufficientResources = "53"
	// operatorIntervention is a class: shutting down, starting up.
	operatorIntervention = "57P"
)

// Meaning implements sqlstore.DB.
func (db *database) Meaning(err error) error {
	if errors.Is(err, committer.ErrLost) {
		return committer.ErrLost
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || errors.Is(err, committer.ErrUnavailable) {
		return committer.ErrUnavailable
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
		return committer.ErrUnavailable // no connection was to be had in time
	case !ok:
		return nil
	case e.SeverityUnlocalized != "ERROR":
		// FATAL ends the connection, and can come after the commit.
		return committer.ErrLost
	}
	switch e.Code {
	case uniqueViolation, serializationFailure, deadlockDetected:
		return committer.ErrConflict
	case lockNotAvailable, queryCanceled, readOnlyTransaction:
		return committer.ErrUnavailable
	}
	if strings.HasPrefix(e.Code, insufficientResources) || strings.HasPrefix(e.Code, operatorIntervention) {
		return committer.ErrUnavailable
	}
	return nil
}
