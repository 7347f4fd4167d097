// Package importfile reads files of records, line by line and strictly: a file
// with one bad line is refused, and every bad line is named with its number and
// reason. It also loads a folder of such files into a ledger.
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

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
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

// mark is what spreadsheets and editors put in front of UTF-8.
const mark = "\ufeff"

// Sniff is how many bytes of the beginning [FormatOf] looks at.
const Sniff = len(mark) + 1

// FormatOf tells the format from a file's name, and of stdin ("-") from its
// first bytes: it is JSON Lines if it begins with a brace.
func FormatOf(name string, first []byte) Format {
	if strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".ndjson") || bytes.HasPrefix(bytes.TrimPrefix(first, []byte(mark)), []byte("{")) {
		return JSONLines
	}
	return CSV
}

// Bounds.
const (
	// maxLine is the longest line, in bytes: an invoice of 10,000 lines fits.
	maxLine = 4 << 20
	// MaxProblems is how many bad lines are named.
	MaxProblems = 1000
)

// Problem is a bad line.
type Problem struct {
	Line int // from 1
	Why  string
}

// File is what a file of records holds.
type File[T any] struct {
	List     []T
	Lines    []int // of each record
	Problems []Problem
	// More is how many bad lines there are beyond MaxProblems.
	More int
}

func (f *File[T]) bad(line int, why string) {
	if len(f.Problems) == MaxProblems {
		f.More++
		return
	}
	f.Problems = append(f.Problems, Problem{line, why})
}

// form is how records of one sort are written: R is a row as it is read, T what
// it means.
type form[R, T any] struct {
	noun string
	most int // how many an import may hold
	json *strictjson.Decoder[R]
	// columns are those of a CSV file, each with where its text goes; none if
	// there are only JSON Lines, since the records have lines of their own.
	columns []column[R]
	// parse says what a row means, or all that is wrong with it.
	parse func(R, *wrong) T
}

type column[R any] struct {
	name string
	set  func(*R, string)
}

// wrong collects what is wrong with a row.
type wrong struct {
	all []string
	at  string // what stands before the names of fields: "lines[3]."
}

// about adds an error of a field, if it is one.
func (w *wrong) about(field string, err error) {
	if err != nil {
		w.all = append(w.all, w.at+field+": "+err.Error())
	}
}

// each reads the lines of a record, and says of each problem in which line it is.
func each[L any](w *wrong, lines []L, read func(L)) {
	for n, l := range lines {
		w.at = fmt.Sprintf("lines[%d].", n)
		read(l)
	}
	w.at = ""
}

// amount reads major units of a currency; the zero value is none, whose problem
// is named already.
func (w *wrong) amount(field string, literal strictjson.Number, c money.Currency) money.Amount {
	d, err := money.ParseDecimal(string(literal))
	if err != nil || c == (money.Currency{}) {
		w.about(field, err)
		return money.Amount{}
	}
	a, err := d.In(c)
	w.about(field, err)
	return a
}

// read reads records until r ends. progress is called with the number of lines
// read, now and then. An error says that r could not be read. One record more
// than an import may hold ends it: nothing more needs to be read.
func (d form[R, T]) read(r io.Reader, f Format, progress func(lines int)) (File[T], error) {
	unmarked := bufio.NewReader(r)
	if first, _ := unmarked.Peek(len(mark)); string(first) == mark { // an error comes again
		_, _ = unmarked.Discard(len(mark))
	}
	r = unmarked
	if f == JSONLines {
		return d.readJSONLines(r, progress)
	}
	if d.columns == nil {
		var file File[T]
		file.bad(1, fmt.Sprintf("%s have lines of their own, so they are written as JSON Lines, in a file named .jsonl", d.noun))
		return file, nil
	}
	return d.readCSV(r, progress)
}

func (d form[R, T]) readJSONLines(r io.Reader, progress func(int)) (File[T], error) {
	var file File[T]
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
		if len(file.List) > d.most {
			return file, nil
		}
		doc, err := strictjson.Check(bytes.Clone(line)) // the row keeps parts of it
		if err != nil {
			file.bad(n, "it is not JSON: "+err.Error())
			continue
		}
		var row R
		if issues := d.json.Decode(doc, &row); len(issues) > 0 {
			file.bad(n, fault.Sentences(issues))
			continue
		}
		d.add(&file, n, row)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		file.bad(n+1, fmt.Sprintf("it is longer than %d bytes; nothing behind it was read", maxLine))
		return file, nil
	}
	return file, lines.Err()
}

func (d form[R, T]) readCSV(r io.Reader, progress func(int)) (File[T], error) {
	var file File[T]
	table := csv.NewReader(r)
	table.FieldsPerRecord = -1 // a wrong number of fields is a bad line, not the end
	table.ReuseRecord = true
	header, err := table.Read()
	switch parse := (*csv.ParseError)(nil); {
	case err == io.EOF:
		file.bad(1, "the file is empty")
		return file, nil
	case errors.As(err, &parse):
		file.bad(parse.StartLine, "the header: "+parse.Err.Error())
		return file, nil
	case err != nil:
		return file, err
	}
	header = slices.Clone(header)
	set, ok := d.setters(header)
	if !ok {
		var names []string
		for _, c := range d.columns {
			names = append(names, c.name)
		}
		file.bad(1, fmt.Sprintf("the header must name exactly the columns %s, not %.*q", strings.Join(names, ", "), maxExcerpt, strings.Join(header, ", ")))
		return file, nil
	}
	for {
		fields, err := table.Read()
		switch parse := (*csv.ParseError)(nil); {
		case err == io.EOF:
			return file, nil
		case errors.As(err, &parse):
			file.bad(parse.StartLine, parse.Err.Error())
			continue
		case err != nil:
			return file, err
		}
		line, _ := table.FieldPos(0)
		progress(line)
		switch {
		case len(fields) != len(header):
			file.bad(line, fmt.Sprintf("it has %d fields, the header %d", len(fields), len(header)))
			continue
		case len(file.List) > d.most:
			return file, nil
		}
		var row R
		for i := range fields {
			set[i](&row, strings.Clone(fields[i]))
		}
		d.add(&file, line, row)
	}
}

// maxExcerpt is how much of a header that is none is shown, quoted, in code points.
const maxExcerpt = 200

// setters puts the columns in the order of the header; ok is false unless it
// names each of them once.
func (d form[R, T]) setters(header []string) (set []func(*R, string), ok bool) {
	for _, name := range header {
		for _, c := range d.columns {
			if c.name == name && !slices.Contains(header[:len(set)], name) {
				set = append(set, c.set)
				break
			}
		}
	}
	return set, len(set) == len(header) && len(header) == len(d.columns)
}

func (d form[R, T]) add(file *File[T], line int, row R) {
	var w wrong
	record := d.parse(row, &w)
	if len(w.all) > 0 {
		file.bad(line, strings.Join(w.all, "; "))
		return
	}
	file.List, file.Lines = append(file.List, record), append(file.Lines, line)
}
