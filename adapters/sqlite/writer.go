package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"io"

	"github.com/refundledger/refundledger/adapters/internal/sqlstore"
)

// conn is the connection that writes, with its prepared statements. It uses the
// driver without database/sql, which would cost a good part of each small
// statement.
type conn struct {
	db         *database
	c          sqldriver.Conn
	statements map[string]statementConn
	args       []sqldriver.NamedValue
	broken     bool
}

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

// Run runs the steps. It does not look at the context: a statement waits at
// most BusyTimeout, and then only for another process.
func (c *conn) Run(_ context.Context, steps ...sqlstore.Step) error {
	for _, s := range steps {
		if err := c.step(s); err != nil {
			// After some errors nobody knows what the connection is worth.
			c.broken = c.broken || isLost(err)
			return err
		}
	}
	return nil
}

func (c *conn) step(s sqlstore.Step) error {
	ctx := context.Background()
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
	for _, row := range many.rows {
		c.args = c.args[:0]
		for i, column := range many.columns {
			c.args = append(c.args, sqldriver.NamedValue{Ordinal: i + 1, Value: value(row[column])})
		}
		if _, err := stmt.ExecContext(context.Background(), c.args); err != nil {
			return err
		}
	}
	return nil
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
