package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"io"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/sqlstore"
	"github.com/refundledger/refundledger/domain/operation"
)

// conn is the connection that writes, with its prepared statements. It uses the
// driver without database/sql, which would cost a good part of each small
// statement.
type conn struct {
	db         *database
	c          sqldriver.Conn
	statements map[string]statementConn
	args       []sqldriver.NamedValue
	last       *last // nil until it is asked for
	broken     bool
}

// last are the numbers of the newest rows before a batch. The rows of the batch
// follow, each at its place.
type last struct{ operation, entry int64 }

const lastRows = `SELECT (SELECT coalesce(max(seq), 0) FROM operations), (SELECT coalesce(max(seq), 0) FROM entry_rows)`

// statementConn is what the driver's statements can do.
type statementConn interface {
	sqldriver.Stmt
	sqldriver.StmtExecContext
	sqldriver.StmtQueryContext
}

// Writer waits for the one connection that writes.
func (db *database) Writer(ctx context.Context) (sqlstore.Conn, error) {
	select {
	case db.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if db.conn == nil {
		c, err := db.writer.Connect(ctx)
		if err != nil {
			<-db.turn
			return nil, err
		}
		db.conn = &conn{db: db, c: c, statements: map[string]statementConn{}}
	}
	return db.conn, nil
}

// Release lets the next one write. A broken connection is closed first, which
// rolls back what it had begun.
func (c *conn) Release() {
	c.last = nil
	if c.broken {
		c.close()
		c.db.conn = nil
	}
	<-c.db.turn
}

func (c *conn) close() {
	for _, s := range c.statements {
		_ = s.Close()
	}
	_ = c.c.Close()
}

// Run runs the steps. The context bounds the wait for another process, which is
// that of BEGIN IMMEDIATE: what comes after it has the lock. To watch it costs a
// goroutine for each statement.
func (c *conn) Run(ctx context.Context, steps ...sqlstore.Step) error {
	for _, s := range steps {
		waits := context.Background()
		if s.SQL == (dialect{}).Begin() {
			waits = ctx
		}
		if err := c.step(waits, s); err != nil {
			// After some errors nobody knows what the connection is worth.
			c.broken = c.broken || isLost(err)
			return err
		}
	}
	return nil
}

func (c *conn) step(ctx context.Context, s sqlstore.Step) error {
	stmt := c.statements[s.SQL]
	if stmt == nil {
		prepared, err := c.c.Prepare(s.SQL)
		if err != nil {
			return err
		}
		stmt = prepared.(statementConn)
		c.statements[s.SQL] = stmt
	}
	if len(s.Args) == 1 {
		if many, ok := s.Args[0].(manyRows); ok {
			return c.runEach(stmt, many)
		}
	}
	c.args = c.args[:0]
	for i, v := range s.Args {
		c.args = append(c.args, sqldriver.NamedValue{Ordinal: i + 1, Value: v})
	}
	if s.Row == nil {
		_, err := stmt.ExecContext(ctx, c.args)
		return err
	}
	rows, err := stmt.QueryContext(ctx, c.args)
	if err != nil {
		return err
	}
	defer rows.Close()
	values := make(row, len(rows.Columns()))
	for {
		switch err := rows.Next(values); err {
		case nil:
			if err := s.Row(values); err != nil {
				return err
			}
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// runEach runs the statement for each row.
func (c *conn) runEach(stmt statementConn, many manyRows) error {
	if c.last == nil {
		var l last
		if err := c.step(context.Background(), sqlstore.Step{SQL: lastRows, Row: func(r sqlstore.Row) error { return r.Scan(&l.operation, &l.entry) }}); err != nil {
			return err
		}
		c.last = &l
	}
	for _, row := range many.rows {
		c.args = c.args[:0]
		for i, column := range many.columns {
			c.args = append(c.args, sqldriver.NamedValue{Ordinal: i + 1, Value: c.value(row[column.at], column.of)})
		}
		if _, err := stmt.ExecContext(context.Background(), c.args); err != nil {
			return err
		}
	}
	return nil
}

// value turns a value of a row into what SQLite stores.
func (c *conn) value(v any, t sqlstore.Type) any {
	switch t {
	case sqlstore.Time:
		return v.(time.Time).UnixMilli()
	case sqlstore.Bool:
		if v.(bool) {
			return int64(1)
		}
		return int64(0)
	case sqlstore.ID:
		return v.(operation.ID).String()
	case sqlstore.OperationPlace:
		return c.last.operation + v.(int64)
	case sqlstore.EntryPlace:
		return c.last.entry + v.(int64)
	}
	return v
}

// row is a row of an answer.
type row []sqldriver.Value

// Scan implements sqlstore.Row for the types that its rows have.
func (r row) Scan(dest ...any) error {
	if len(dest) != len(r) {
		return fmt.Errorf("sqlite: a row of %d values for %d", len(r), len(dest))
	}
	for i, d := range dest {
		ok := true
		switch d := d.(type) {
		case *string:
			*d, ok = r[i].(string)
		case *int64:
			*d, ok = r[i].(int64)
		case *int:
			var n int64
			n, ok = r[i].(int64)
			*d = int(n)
		case *[]byte:
			*d, ok = r[i].([]byte)
		case sql.Scanner:
			if err := d.Scan(r[i]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("sqlite: no way to scan into a %T", d)
		}
		if !ok {
			return fmt.Errorf("sqlite: a %T for a %T", r[i], d)
		}
	}
	return nil
}
