// Package importfile reads files of records, line by line and strictly: a file
// with one bad line is refused, and every bad line is named with its number and
// reason.
package importfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/money"
)

// Format is how the records of a file are written.
type Format int

// The formats: a table with a header line, or a JSON object on each line.
const (
	CSV Format = iota
	JSONLines
)

// FormatOf tells the format from a file's name, and of stdin ("-") from nothing:
// there it is JSON Lines if the first byte is a brace.
func FormatOf(name string, first []byte) Format {
	if strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".ndjson") || len(first) > 0 && first[0] == '{' {
		return JSONLines
	}
	return CSV
}

// Bounds.
const (
	// maxLine is the longest line, in bytes.
	maxLine = 64 << 10
	// MaxProblems is how many bad lines are named.
	MaxProblems = 1000
)

// Problem is a bad line.
type Problem struct {
	Line int // from 1
	Why  string
}

// Customers is what a file of customers holds.
type Customers struct {
	List     []customers.Open
	Lines    []int // of each customer
	Problems []Problem
	// More is how many bad lines there are beyond MaxProblems.
	More int
}

func (c *Customers) bad(line int, why string) {
	if len(c.Problems) == MaxProblems {
		c.More++
		return
	}
	c.Problems = append(c.Problems, Problem{line, why})
}

// full reports that there is one customer more than an import may hold, so that
// nothing more needs to be read.
func (c *Customers) full() bool { return len(c.List) > customers.MaxImport }

// customerRow is a customer as a file writes it.
type customerRow struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Email     string            `json:"email"`
	Status    string            `json:"status"`
	Currency  string            `json:"currency"`
	Balance   strictjson.Number `json:"balance"`
	CreatedAt string            `json:"created_at"`
}

var (
	customerColumns = []string{"id", "name", "email", "status", "currency", "balance", "created_at"}
	customerDecoder = strictjson.Compile[customerRow]("the line")
)

// ReadCustomers reads customers until r ends. The columns of a CSV file, and
// the members of a JSON object, are exactly id, name, email, status, currency,
// balance (major units) and created_at (RFC 3339). progress is called with the
// number of lines read, now and then. An error says that r could not be read.
func ReadCustomers(r io.Reader, f Format, progress func(lines int)) (Customers, error) {
	if f == JSONLines {
		return readJSONLines(r, progress)
	}
	return readCSV(r, progress)
}

func readJSONLines(r io.Reader, progress func(int)) (Customers, error) {
	var c Customers
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	n := 0
	for lines.Scan() {
		n++
		progress(n)
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if c.full() {
			return c, nil
		}
		doc, err := strictjson.Check(line)
		if err != nil {
			c.bad(n, "it is not JSON: "+err.Error())
			continue
		}
		var row customerRow
		if issues := customerDecoder.Decode(doc, &row); len(issues) > 0 {
			c.bad(n, fault.Sentences(issues))
			continue
		}
		c.add(n, row)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		c.bad(n+1, fmt.Sprintf("it is longer than %d bytes; nothing behind it was read", maxLine))
		return c, nil
	}
	return c, lines.Err()
}

func readCSV(r io.Reader, progress func(int)) (Customers, error) {
	var c Customers
	table := csv.NewReader(r)
	table.FieldsPerRecord = -1 // a wrong number of fields is a bad line, not the end
	table.ReuseRecord = true
	header, err := table.Read()
	if err == io.EOF {
		c.bad(1, "the file is empty")
		return c, nil
	}
	if err != nil {
		return c, err
	}
	header = slices.Clone(header)
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // spreadsheets put it there
	sorted := slices.Sorted(slices.Values(header))
	if !slices.Equal(sorted, slices.Sorted(slices.Values(customerColumns))) {
		c.bad(1, fmt.Sprintf("the header must name exactly the columns %s, not %s", strings.Join(customerColumns, ", "), strings.Join(header, ", ")))
		return c, nil
	}
	for {
		fields, err := table.Read()
		switch parse := (*csv.ParseError)(nil); {
		case err == io.EOF:
			return c, nil
		case errors.As(err, &parse):
			c.bad(parse.StartLine, parse.Err.Error())
			continue
		case err != nil:
			return c, err
		}
		line, _ := table.FieldPos(0)
		progress(line)
		switch {
		case len(fields) != len(header):
			c.bad(line, fmt.Sprintf("it has %d fields, the header %d", len(fields), len(header)))
			continue
		case c.full():
			return c, nil
		}
		var row customerRow
		for i, name := range header {
			value := strings.Clone(fields[i])
			switch name {
			case "id":
				row.ID = value
			case "name":
				row.Name = value
			case "email":
				row.Email = value
			case "status":
				row.Status = value
			case "currency":
				row.Currency = value
			case "balance":
				row.Balance = strictjson.Number(value)
			case "created_at":
				row.CreatedAt = value
			}
		}
		c.add(line, row)
	}
}

// add parses a row, or reports all that is wrong with it.
func (c *Customers) add(line int, row customerRow) {
	var wrong []string
	check := func(field string, err error) {
		if err != nil {
			wrong = append(wrong, field+": "+err.Error())
		}
	}
	var o customers.Open
	var err error
	o.ID, err = customers.ParseID(row.ID)
	check("id", err)
	o.Status, err = customers.ParseStatus(row.Status)
	check("status", err)
	currency, err := money.ParseCurrency(row.Currency)
	check("currency", err)
	amount, amountErr := money.ParseDecimal(string(row.Balance))
	check("balance", amountErr)
	if err == nil && amountErr == nil {
		o.Opening, err = amount.In(currency)
		check("balance", err)
	}
	o.CreatedAt, err = time.Parse(time.RFC3339, row.CreatedAt)
	if err != nil {
		check("created_at", errors.New("it must be a time such as 2024-01-15T09:30:00Z"))
	} else if !o.CreatedAt.Equal(o.CreatedAt.Truncate(time.Millisecond)) {
		check("created_at", errors.New("it must not be finer than milliseconds"))
	}
	o.CreatedAt = o.CreatedAt.UTC()
	o.Profile = customers.Profile{Name: row.Name, Email: row.Email}
	if len(wrong) == 0 {
		for _, i := range o.Check() {
			wrong = append(wrong, i.Message)
		}
	}
	if len(wrong) > 0 {
		c.bad(line, strings.Join(wrong, "; "))
		return
	}
	c.List, c.Lines = append(c.List, o), append(c.Lines, line)
}
