package sqlstore

import (
	"context"

	"github.com/refundledger/refundledger/adapters/internal/committer"
)

// Type is what a column holds, and the Go type of its values in a row.
type Type uint8

// The types of columns.
const (
	Text  Type = iota // string
	Int               // int64
	Bytes             // []byte
	Time              // time.Time, UTC, whole milliseconds
	ID                // operation.ID
	JSON              // string
	Bool              // bool; never part of a key
	// The place of an entry, or of an operation, in its batch: int64, from 1. A
	// database that numbers its rows keeps it as a reference to the row; the
	// others leave it out.
	EntryPlace
	OperationPlace
)

// Role is what a column is to its table.
type Role uint8

// The roles of columns.
const (
	Fixed Role = iota // never changes
	Key               // never changes; together the name of the row
	State             // may change
)

// Column is one column of a table.
type Column struct {
	Name string
	Type Type
	Role Role
}

// Table is one table as the store writes it.
type Table struct {
	Name    string
	Columns []Column
}

// Verb is what is done with the rows of a table.
type Verb uint8

// The verbs.
const (
	Insert Verb = iota // the rows are new; a row that is there is an error
	Update             // the rows are there; their State columns change
)

// Rows are the rows of one table with which a commit does the same.
type Rows struct {
	Verb  Verb
	Table *Table
	Rows  [][]any // values in the order of the columns
}

// Step is one statement of a round trip.
type Step struct {
	SQL  string
	Args []any
	// Row takes each row of the answer; nil for a statement that gives none.
	Row func(Row) error
}

// Row is one row of an answer.
type Row interface{ Scan(dest ...any) error }

// Dialect is how one database says what the store means. Parameters are $1, $2
// and so on in all SQL that the store makes.
type Dialect interface {
	// Keys is an item of a FROM list named k: a list of keys, which is the
	// parameters from $1 on, with a column n that counts from 1.
	Keys(columns ...Column) string
	// KeyArgs are the parameters for Keys.
	KeyArgs(columns []Column, keys [][]any) []any
	// Lock ends a SELECT from the table named r so that its rows are locked, in
	// that order; "" if it says its order already.
	Lock(order string, shared bool) string
	// Write makes the steps that write all rows of a commit, in this order. What
	// the store reads it reads under the names of the tables and columns; a
	// database that keeps a table in another way shows it so in a view.
	Write(all []Rows) []Step
	// Begin, Commit and Rollback bound a transaction that writes.
	Begin() string
	Commit() string
	Rollback() string
}

// DB is a database that is open.
type DB interface {
	// Writer waits for a connection to write with.
	Writer(ctx context.Context) (Conn, error)
	// Read runs the steps on one state of the database.
	Read(ctx context.Context, steps ...Step) error
	// Meaning is what an error of a connection means: [committer.ErrUnavailable],
	// [committer.ErrConflict], [committer.ErrLost] if nobody can tell how the
	// statements ended, or nil if the database refused them.
	Meaning(err error) error
}

// Conn is one connection to write with.
type Conn interface {
	// Run runs the steps in order, in one round trip. The first error ends it.
	Run(ctx context.Context, steps ...Step) error
	// Release gives the connection back; one that is broken is thrown away.
	Release()
}

var _ committer.Backend = (*Store)(nil)
