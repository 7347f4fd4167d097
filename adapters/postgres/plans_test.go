package postgres

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/postgres/postgrestest"
	"github.com/refundledger/refundledger/ports/portstest"
)

// Every statement that random sequences made the store prepare finds its rows by
// key: each is asked for the plan that it has for any parameters.
func TestNoStatementScans(t *testing.T) {
	url := postgrestest.URL(t)
	if err := Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	portstest.Model(t, func(testing.TB) portstest.Store { return s }, func(testing.TB) portstest.Store { return memory.New() })
	asked := map[string]bool{}
	for _, pool := range []*pgxpool.Pool{s.db.writers, s.db.readers} {
		for _, c := range pool.AcquireAllIdle(t.Context()) {
			check(t, c, asked)
			c.Release()
		}
	}
	if len(asked) < 15 {
		t.Errorf("only %d statements were asked", len(asked))
	}
}

func check(t *testing.T, c *pgxpool.Conn, asked map[string]bool) {
	type statement struct {
		name, text string
		parameters int
	}
	var all []statement
	rows, err := c.Query(t.Context(), `SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var s statement
		if err := rows.Scan(&s.name, &s.text, &s.parameters); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if asked[s.text] || !regexp.MustCompile(`^(SELECT k|SELECT r|SELECT p|SELECT l|INSERT|UPDATE)`).MatchString(s.text) {
			continue
		}
		asked[s.text] = true
		nulls := strings.TrimSuffix(strings.Repeat("NULL, ", s.parameters), ", ")
		var plan []byte
		if err := c.QueryRow(t.Context(), fmt.Sprintf(`EXPLAIN (FORMAT JSON) EXECUTE %q (%s)`, s.name, nulls)).Scan(&plan); err != nil {
			t.Fatalf("%s: %v", s.text, err)
		}
		var explained []struct{ Plan node }
		if err := json.Unmarshal(plan, &explained); err != nil {
			t.Fatal(err)
		}
		if scan := explained[0].Plan.scan(); scan != "" {
			t.Errorf("%s\nhas a %s:\n%s", s.text, scan, plan)
		}
	}
}

// node is a node of a plan.
type node struct {
	Type  string `json:"Node Type"`
	Table string `json:"Relation Name"`
	Cond  string `json:"Index Cond"`
	Plans []node
}

// scan names a node that reads a table other than by key.
func (n node) scan() string {
	if n.Table != "" && strings.HasSuffix(n.Type, "Scan") && n.Cond == "" && n.Type != "Bitmap Heap Scan" {
		return n.Type + " of " + n.Table
	}
	for _, p := range n.Plans {
		if s := p.scan(); s != "" {
			return s
		}
	}
	return ""
}
