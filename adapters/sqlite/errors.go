package sqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/refundledger/refundledger/adapters/internal/committer"
)

// codeOf returns SQLite's primary result code, 0 if err is none of SQLite's.
func codeOf(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return code.SQLITE_OK
}

// Meaning implements sqlstore.DB. A constraint that does not hold is a refusal:
// under the one write lock nobody can have been first.
func (db *database) Meaning(err error) error {
	switch {
	case isLost(err):
		return committer.ErrLost
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return committer.ErrUnavailable
	}
	switch codeOf(err) {
	case code.SQLITE_BUSY, code.SQLITE_LOCKED, code.SQLITE_FULL, code.SQLITE_READONLY, code.SQLITE_CANTOPEN, code.SQLITE_NOMEM, code.SQLITE_PROTOCOL:
		return committer.ErrUnavailable
	}
	return nil
}

// isLost reports whether nobody can tell what of a write reached the disk.
func isLost(err error) bool {
	return codeOf(err) == code.SQLITE_IOERR || errors.Is(err, sqldriver.ErrBadConn)
}

// explain puts the usual problems with a file into words.
func explain(err error) error {
	switch codeOf(err) {
	case code.SQLITE_READONLY:
		return fmt.Errorf("it can not be written, or its folder can not: %w", err)
	case code.SQLITE_CANTOPEN:
		return fmt.Errorf("it can not be opened; is there such a folder, and may this program write to it? %w", err)
	case code.SQLITE_NOTADB:
		return fmt.Errorf("it is no SQLite file: %w", err)
	case code.SQLITE_BUSY:
		return fmt.Errorf("another process keeps it locked: %w", err)
	case code.SQLITE_FULL:
		return fmt.Errorf("the disk is full: %w", err)
	}
	return err
}
