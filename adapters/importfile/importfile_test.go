package importfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/refundledger/refundledger/adapters/memory"
	"github.com/refundledger/refundledger/adapters/system"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/payables"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

const (
	header   = "id,name,email,status,currency,balance,created_at\n"
	dana     = `CUST-10001,"Dana ""D"" Scully",dana@example.com,active,JPY,7300,2024-01-15T09:30:00Z`
	danaJSON = `{"id":"CUST-10001","name":"Dana \"D\" Scully","email":"dana@example.com","status":"active","currency":"JPY","balance":7300,"created_at":"2024-01-15T09:30:00Z"}`
	order    = `{"id":"PO-1","vendor":"V-1","currency":"USD","freight_limit":12.5,"tax_limit_percent":8.25,"lines":[` +
		`{"line":1,"sku":"WIDGET","unit":"EA","quantity":10,"unit_price":9.99},` +
		`{"line":3,"sku":"NUTS","description":"Nuts","unit":"EA","quantity":0.5,"unit_price":1,"conversions":[{"unit":"BOX","numerator":12,"denominator":1}]}]}`
	receipt = `{"id":"GR-1","order":"PO-1","kind":"receipt","received_at":"2026-03-02","lines":[{"order_line":1,"quantity":4,"unit":"EA"}]}`
	bill    = `{"id":"INV-0001","number":"A 1","vendor":"V-1","order":"PO-1","currency":"USD","tax":0.5,"freight":1.25,"total":41.71,"date":"2026-03-03","lines":[` +
		`{"line":1,"order_line":1,"sku":"WIDGET","unit":"EA","quantity":4,"unit_price":9.99,"amount":39.96}]}`
	note = `{"id":"INV-0002","number":"C-1","kind":"credit_note","credits":"INV-0001","vendor":"V-1","currency":"USD","total":9.99,"date":"2026-03-04","lines":[` +
		`{"line":1,"unit":"EA","quantity":1,"unit_price":9.99,"amount":9.99}]}`
)

// said is what a file holds, or each problem, as one text.
func said[T any](f File[T], err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for n, r := range f.List {
		fmt.Fprintf(&b, "%d %+v\n", f.Lines[n], r)
	}
	for _, p := range f.Problems {
		fmt.Fprintf(&b, "%d! %s\n", p.Line, p.Why)
	}
	if f.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", f.More)
	}
	return b.String()
}

// reading reads a file of a sort, by its name, as one text.
var reading = map[string]func(io.Reader, Format) string{
	"customers": func(r io.Reader, f Format) string { return said(ReadCustomers(r, f, func(int) {})) },
	"vendors":   func(r io.Reader, f Format) string { return said(ReadVendors(r, f, func(int) {})) },
	"orders":    func(r io.Reader, f Format) string { return said(ReadOrders(r, f, func(int) {})) },
	"receipts":  func(r io.Reader, f Format) string { return said(ReadReceipts(r, f, func(int) {})) },
	"invoices":  func(r io.Reader, f Format) string { return said(ReadInvoices(r, f, func(int) {})) },
}

func TestFormatOf(t *testing.T) {
	for _, tt := range []struct {
		name, first string
		want        Format
	}{
		{"a.csv", "", CSV}, {"a.jsonl", "", JSONLines}, {"a.ndjson", "id", JSONLines}, {"a.txt", "id", CSV}, {"-", "", CSV},
		{"-", "id,", CSV}, {"-", "{", JSONLines}, {"-", "{\"id", JSONLines}, {"-", "\ufeff{", JSONLines}, {"-", "\ufeffi", CSV}, {"-", "\ufeff", CSV},
	} {
		if got := FormatOf(tt.name, []byte(tt.first)); got != tt.want {
			t.Errorf("%s that begins with %q is %v", tt.name, tt.first, got)
		}
	}
}

// What is read is what the file says.
func TestWhatIsRead(t *testing.T) {
	const who = `CUST-10001 Dana "D" Scully dana@example.com active 7300 JPY 2024-01-15 `
	for name, tt := range map[string]struct {
		format     Format
		file, want string
	}{
		"a customer of CSV":   {CSV, header + dana + "\n", "2 " + who + "09:30:00 +0000 UTC\n"},
		"a customer of JSON":  {JSONLines, danaJSON, "1 " + who + "09:30:00 +0000 UTC\n"},
		"a time of elsewhere": {CSV, header + strings.Replace(dana, "09:30:00Z", "10:30:00.5+01:00", 1), "2 " + who + "09:30:00.5 +0000 UTC\n"},
	} {
		file := must(ReadCustomers(strings.NewReader(tt.file), tt.format, func(int) {}))
		if len(file.List) != 1 || len(file.Problems) > 0 {
			t.Errorf("%s: %+v", name, file)
			continue
		}
		o := file.List[0]
		if got := fmt.Sprintln(file.Lines[0], o.ID, o.Profile.Name, o.Profile.Email, o.Status, o.Opening, o.CreatedAt); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
	for format, text := range map[Format]string{CSV: "name,id\n\"A, B\",V-1\n", JSONLines: `{"name":"A, B","id":"V-1"}`} {
		v := must(ReadVendors(strings.NewReader(text), format, func(int) {}))
		if len(v.List) != 1 || v.List[0].ID.String() != "V-1" || v.List[0].Name != "A, B" {
			t.Errorf("a vendor %+v", v)
		}
	}
	o := must(ReadOrders(strings.NewReader(order), JSONLines, func(int) {})).List[0]
	if got, want := fmt.Sprint(o.ID, o.Vendor, o.Currency, o.FreightLimit.Minor(), o.TaxLimit, len(o.Lines)), "PO-1 V-1 USD 1250 8.25 2"; got != want {
		t.Errorf("the order is %s", got)
	}
	for n, want := range []string{"1 WIDGET  EA 10 999 []", "3 NUTS Nuts EA 0.5 100 [{BOX 12 1}]"} {
		if l := o.Lines[n]; fmt.Sprint(l.Line, " ", l.SKU, " ", l.Description, " ", l.Unit, " ", l.Quantity, " ", l.UnitPrice.Minor(), " ", l.Conversions) != want {
			t.Errorf("line %d of the order is %+v", n, l)
		}
	}
	r := must(ReadReceipts(strings.NewReader(receipt), JSONLines, func(int) {})).List[0]
	if got, want := fmt.Sprint(r.ID, r.Order, r.Movement, r.ReceivedAt, r.Lines), "GR-1 PO-1 receipt 2026-03-02 [{1 4 EA}]"; got != want {
		t.Errorf("the receipt is %s", got)
	}
	list := must(ReadInvoices(strings.NewReader(bill+"\n"+note), JSONLines, func(int) {})).List
	for n, want := range []string{"INV-0001 A 1 invoice  V-1 PO-1 50 125 4171 2026-03-03", "INV-0002 C-1 credit_note INV-0001 V-1  0 0 999 2026-03-04"} {
		i := list[n]
		got := fmt.Sprint(i.ID, " ", i.Number, " ", i.Document, " ", i.Credits, " ", i.Vendor, " ", i.Order, " ", i.Tax.Minor(), " ", i.Freight.Minor(), " ", i.Total.Minor(), " ", i.Date)
		if got != want {
			t.Errorf("the invoice is %s, want %s", got, want)
		}
	}
	if l := list[0].Lines[0]; l.OrderLine != 1 || l.SKU.String() != "WIDGET" || l.UnitPrice.Minor() != 999 || l.Amount.Minor() != 3996 || l.Quantity.String() != "4" {
		t.Errorf("its line is %+v", l)
	}
	if l := list[1].Lines[0]; l.OrderLine != 0 || l.SKU.String() != "" || l.Amount.Minor() != 999 {
		t.Errorf("the line of the credit note is %+v", l)
	}
}

// A mark in front, ends of lines of any system, blank lines and columns in
// another order change nothing of what is read.
func TestFilesOfAnySystem(t *testing.T) {
	plain := map[string]string{"customers": header + dana + "\n", "vendors": "id,name\nV-1,Acme\nV-2,Bolt\n"}
	for sort, text := range plain {
		want := reading[sort](strings.NewReader(text), CSV)
		if strings.Contains(want, "!") || want == "" {
			t.Fatalf("%s: %s", sort, want)
		}
		for name, other := range map[string]string{
			"a mark": mark + text, "CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "no last end": strings.TrimSuffix(text, "\n"),
			"all of it": mark + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\r\n"), "a mark before a quote": mark + `"id"` + strings.TrimPrefix(text, "id"),
			"blank lines at the end": text + "\n\n",
		} {
			if got := reading[sort](strings.NewReader(other), CSV); got != want {
				t.Errorf("%s, %s: got %s, want %s", sort, name, got, want)
			}
		}
	}
	for sort, text := range map[string]string{"customers": danaJSON, "vendors": `{"id":"V-1","name":"Acme"}`, "orders": order, "receipts": receipt, "invoices": bill} {
		want := reading[sort](strings.NewReader(text+"\n"), JSONLines)
		if strings.Contains(want, "1! ") || want == "" {
			t.Fatalf("%s: %s", sort, want)
		}
		for name, other := range map[string]string{
			"a mark": mark + text, "CRLF": text + "\r\n", "no end": text, "blanks around": " \t" + text + " \r\n", "blank lines": text + "\n\n  \n",
		} {
			if got := reading[sort](strings.NewReader(other), JSONLines); got != want {
				t.Errorf("%s, %s: got %s, want %s", sort, name, got, want)
			}
		}
		// However the bytes come.
		if got := reading[sort](iotest.OneByteReader(strings.NewReader(mark+text)), JSONLines); got != want {
			t.Errorf("%s, byte by byte: %s", sort, got)
		}
	}
	quoted := "id,name\nV-1,\"A\nB\"\nV-2,C\n"
	if f := must(ReadVendors(strings.NewReader(quoted), CSV, func(int) {})); fmt.Sprint(f.Lines) != "[2 4]" {
		t.Errorf("a field of two lines: %+v", f)
	}
	if f := must(ReadVendors(strings.NewReader("\n\n{\"id\":\"V-1\",\"name\":\"A\"}\n\n{\"id\":\"V-2\",\"name\":\"B\"}"), JSONLines, func(int) {})); fmt.Sprint(f.Lines) != "[3 5]" {
		t.Errorf("blank lines count: %+v", f)
	}
}

// Every bad line is named, with its number and all that is wrong with it; the
// others are still read.
func TestBadLines(t *testing.T) {
	change := func(text, old, with string) string {
		if !strings.Contains(text, old) {
			panic(old)
		}
		return strings.Replace(text, old, with, 1)
	}
	names := "the header must name exactly the columns id, name, not "
	for _, tt := range []struct {
		name, sort string
		format     Format
		file       string
		want       string // problems, those of a line on a line
	}{
		{"an empty file", "vendors", CSV, "", "1! the file is empty"},
		{"only a mark", "vendors", CSV, mark, "1! the file is empty"},
		{"no header", "vendors", CSV, "V-1,Acme\n", "1! " + names + `"V-1, Acme"`},
		{"a column missing", "vendors", CSV, "id\nV-1\n", "1! " + names + `"id"`},
		{"a column more", "vendors", CSV, "id,name,vip\nV-1,A,1\n", "1! " + names + `"id, name, vip"`},
		{"a column twice", "vendors", CSV, "id,id\nV-1,A\n", "1! " + names + `"id, id"`},
		{"a column in capitals", "vendors", CSV, "ID,name\nV-1,A\n", "1! " + names + `"ID, name"`},
		{"other separators", "vendors", CSV, "id;name\nV-1;A\n", "1! " + names + `"id;name"`},
		{"a header with half a quote", "vendors", CSV, "id,\"name\nV-1,A\n", "1! the header: extraneous or missing \" in quoted-field"},
		{"a header that is a book", "vendors", CSV, strings.Repeat("é", 5000) + "\n", "1! " + names + `"` + strings.Repeat("é", 200) + `"`},
		{"a header that moves the cursor", "vendors", CSV, "id,\x1b[2J\u202e\xff\n", "1! " + names + `"id, \x1b[2J\u202e\xff"`},
		{"fields missing and too many", "vendors", CSV, "id,name\nV-1\nV-2,B,C\nV-3,C\n", "2! it has 1 fields, the header 2\n3! it has 3 fields, the header 2"},
		{"half a quote", "vendors", CSV, "id,name\nV-1,\"A\n", "2! extraneous or missing \" in quoted-field"},
		{"a quote within", "vendors", CSV, "id,name\nV-1,A\"B\nV-2,\n", "2! bare \" in non-quoted-field"},
		{"bad ids", "vendors", CSV, "id,name\nV 1,A\n,B\n", "2! id: \n3! id: "},
		{"orders as a table", "orders", CSV, "id,vendor\n", "1! orders have lines of their own, so they are written as JSON Lines, in a file named .jsonl"},
		{"receipts as a table", "receipts", CSV, "", "1! receipts have lines of their own"},
		{"invoices as a table", "invoices", CSV, "", "1! invoices have lines of their own"},
		{"not JSON", "vendors", JSONLines, "{\"id\":\nV-1,A\n[]\n{\"id\":\"V-1\",\"name\":\"A\"} x\nnull", "1! it is not JSON: \n2! it is not JSON: \n3! the line must be an object\n4! it is not JSON: \n5! the line must be an object"},
		{"JSON that is no text", "vendors", JSONLines, "{\"id\":\"V-1\",\"name\":\"\xff\"}", "1! it is not JSON: "},
		{"a member twice", "vendors", JSONLines, `{"id":"V-1","name":"A","id":"V-2"}`, "1! "},
		{"a member that nobody knows", "vendors", JSONLines, `{"id":"V-1","name":"A","vip":true}`, `1! unknown property "vip"`},
		{"members missing", "vendors", JSONLines, `{}`, "1! id is required"},
		{"null", "vendors", JSONLines, `{"id":null,"name":"A"}`, "1! id must be a string, not null"},
		{"a number as an id", "vendors", JSONLines, `{"id":1,"name":"A"}`, "1! id must be a string, not a number"},
		{"a name in capitals", "vendors", JSONLines, `{"ID":"V-1","name":"A"}`, "1! id is required"},
		{"a good one after a bad one", "vendors", JSONLines, "x\n{\"id\":\"V-1\",\"name\":\"A\"}", "1! it is not JSON: "},
		{"all of a customer", "customers", CSV, header + "1,A,b,closed,jpy,x,2024\n", "2! id: * status: * currency: * balance: * created_at: "},
		{"a balance too fine", "customers", CSV, header + change(dana, "7300", "7300.5"), "2! balance: the amount has more decimals"},
		{"a balance as a text", "customers", JSONLines, change(danaJSON, "7300", `"7300"`), "1! balance must be a number, not a string"},
		{"a balance beyond", "customers", JSONLines, change(danaJSON, "7300", "1e400"), "1! "},
		{"a time too fine", "customers", CSV, header + change(dana, "00Z", "00.0001Z"), "2! created_at: it must not be finer than milliseconds"},
		{"an unknown member of an order", "orders", JSONLines, change(order, `"vendor"`, `"buyer":"x","vendor"`), `1! unknown property "buyer"`},
		{"an unknown member of its line", "orders", JSONLines, change(order, `"sku"`, `"colour":"x","sku"`), `1! unknown property "colour"`},
		{"an unknown member of a conversion", "orders", JSONLines, change(order, `"numerator"`, `"factor":1,"numerator"`), `1! unknown property "factor"`},
		{"all of an order", "orders", JSONLines, `{"id":"","vendor":" ","currency":"XYZ","freight_limit":1,"tax_limit_percent":-1,"lines":[{"line":1,"sku":"","unit":"","quantity":-1,"unit_price":1}]}`,
			"1! id: * vendor: * currency: * tax_limit_percent: * lines[0].sku: * lines[0].unit: * lines[0].quantity: "},
		{"a price too fine", "orders", JSONLines, change(order, "9.99", "9.999"), "1! lines[0].unit_price: the amount has more decimals"},
		{"a quantity of the second line", "orders", JSONLines, change(order, `"quantity":0.5`, `"quantity":-0.5`), "1! lines[1].quantity: "},
		{"a unit of a conversion", "orders", JSONLines, change(order, `"unit":"BOX"`, `"unit":"-"`), "1! lines[1].conversions[0].unit: "},
		{"a line that is a fraction", "orders", JSONLines, change(order, `"line":1`, `"line":1.5`), "1! lines[0].line must be an integer"},
		{"lines that are none", "orders", JSONLines, `{"id":"PO-1","vendor":"V-1","currency":"USD","lines":{}}`, "1! lines must be an array"},
		{"all of a receipt", "receipts", JSONLines, `{"id":"","order":"","kind":"gift","received_at":"2026-02-30","lines":[{"order_line":1,"quantity":1e9,"unit":"EA"}]}`, "1! id: * order: * kind: * received_at: "},
		{"an unknown member of a receipt", "receipts", JSONLines, change(receipt, `"kind"`, `"vendor":"V-1","kind"`), `1! unknown property "vendor"`},
		{"all of an invoice", "invoices", JSONLines, `{"id":"1","number":"","kind":"bill","credits":"2","vendor":"","order":"","currency":"","total":1,"date":"3 March","lines":[{"line":1,"sku":"","unit":"","quantity":1,"unit_price":1,"amount":1}]}`,
			"1! id: * number: * kind: * credits: * vendor: * order: * currency: * date: * lines[0].sku: * lines[0].unit: "},
		{"an unknown member of an invoice", "invoices", JSONLines, change(bill, `"vendor"`, `"status":"approved","vendor"`), `1! unknown property "status"`},
		{"a total as a text", "invoices", JSONLines, change(bill, "41.71", `"41.71"`), "1! total must be a number, not a string"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := reading[tt.sort](strings.NewReader(tt.file), tt.format)
			var problems []string
			for line := range strings.Lines(got) {
				if strings.Contains(line, "! ") {
					problems = append(problems, line)
				}
			}
			want := strings.Split(tt.want, "\n")
			if len(problems) != len(want) {
				t.Fatalf("got %s\nwant %d bad lines", got, len(want))
			}
			for n, p := range problems {
				rest := p
				for k, part := range strings.Split(want[n], "* ") {
					at := strings.Index(rest, part)
					if at < 0 || k == 0 && at > 0 {
						t.Errorf("got %q, want %q", p, want[n])
						break
					}
					rest = rest[at+len(part):]
				}
			}
		})
	}
}

// Lines, files and lists of problems have bounds.
func TestBounds(t *testing.T) {
	vendor := func(n int) string { return fmt.Sprintf(`{"id":"V-%d","name":"A"}`, n) }
	long := `{"id":"V-1","name":"` + strings.Repeat("A", maxLine) + `"}`
	if got := reading["vendors"](strings.NewReader(vendor(1)+"\n"+long+"\n"+vendor(3)), JSONLines); !strings.HasSuffix(got, fmt.Sprintf("\n2! it is longer than %d bytes; nothing behind it was read\n", maxLine)) {
		t.Errorf("a long line: %.300s", got)
	}
	// As long as may be: it is the name that is refused, if anything.
	fits := `{"id":"V-1","name":"A"}` + strings.Repeat(" ", maxLine-100)
	if got := reading["vendors"](strings.NewReader(fits+"\n"+vendor(2)), JSONLines); strings.Count(got, "\n") != 2 || strings.Contains(got, "!") {
		t.Errorf("a line that fits: %.300s", got)
	}

	for format, line := range map[Format]func(int) string{JSONLines: vendor, CSV: func(n int) string { return fmt.Sprintf("V-%d,A", n) }} {
		var b strings.Builder
		b.WriteString(map[Format]string{CSV: "id,name\n"}[format])
		for n := range payables.MaxImport + 100 {
			b.WriteString(line(n) + "\n")
		}
		read := 0
		f, err := ReadVendors(strings.NewReader(b.String()), format, func(n int) { read = n })
		if err != nil || len(f.List) != payables.MaxImport+1 || len(f.Problems) > 0 || read > payables.MaxImport+3 {
			t.Errorf("too many: %d of %d lines, %v", len(f.List), read, err)
		}
		if issues := (payables.ImportVendors{Vendors: f.List}).Check(); len(issues) != 1 || len(issues[0].Path) != 0 {
			t.Errorf("too many are refused with %v", issues)
		}
	}

	bad := strings.Repeat("x\n", MaxProblems+7)
	f, err := ReadVendors(strings.NewReader(bad), JSONLines, func(int) {})
	if err != nil || len(f.Problems) != MaxProblems || f.More != 7 || f.Problems[MaxProblems-1].Line != MaxProblems {
		t.Errorf("%d problems and %d more, %v", len(f.Problems), f.More, err)
	}
}

// What can not be read is no bad line.
func TestAFileThatCanNotBeRead(t *testing.T) {
	broken := errors.New("the disk is gone")
	for sort, read := range reading {
		for _, text := range []string{"", "id,name\nV-1,A\n", `{"id":"V-1","name":"A"}` + "\n"} {
			format := FormatOf("-", []byte(text))
			if format == CSV && sort != "vendors" && sort != "customers" || sort == "customers" && text != "" {
				continue
			}
			if got := read(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), format); got != "error: the disk is gone" {
				t.Errorf("%s after %q: %s", sort, text, got)
			}
		}
	}
}

// Whatever the bytes are, every line is one record or one problem at most.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{header + dana, danaJSON, order, receipt, bill, note, mark, "id,name\nV,\"", "{\"id\":\"V-1\",\"name\":\"A\"}\r\n\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []Format{CSV, JSONLines} {
			file, err := ReadVendors(strings.NewReader(string(data)), format, func(int) {})
			if err != nil || len(file.List) != len(file.Lines) {
				t.Fatalf("%+v, %v", file, err)
			}
			lines := slices.Clone(file.Lines)
			for _, p := range file.Problems {
				lines = append(lines, p.Line)
			}
			slices.Sort(lines)
			if n := 1 + strings.Count(string(data), "\n"); len(slices.Compact(lines)) != len(file.List)+len(file.Problems) || len(lines) > 0 && (lines[0] < 1 || lines[len(lines)-1] > n) {
				t.Fatalf("lines %v of %d", lines, n)
			}
			for _, read := range reading {
				read(strings.NewReader(string(data)), format)
			}
		}
	})
}

// folder makes a folder of files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolders(t *testing.T) {
	acme := must(access.ParseTenant("acme"))
	vendors := "id,name\nV-1,Acme\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // a part of the error; - is none
		holds []ledger.Ref
	}{
		{"nothing of it", map[string]string{"vendor.csv": vendors, "notes.txt": "x"}, "holds none of the files customers, vendors, orders, receipts and invoices, .csv or .jsonl", nil},
		{"one file", map[string]string{"vendors.csv": vendors}, "-", []ledger.Ref{must(payables.ParseVendorID("V-1")).Ref()}},
		{"everything", map[string]string{"vendors.csv": vendors, "customers.csv": header + dana, "orders.jsonl": order, "receipts.jsonl": receipt, "invoices.jsonl": bill + "\n" + note + "\n"}, "-", []ledger.Ref{
			must(customers.ParseID("CUST-10001")).Ref(), must(payables.ParseVendorID("V-1")).Ref(), must(payables.ParseOrderID("PO-1")).Ref(), must(payables.ParseReceiptID("GR-1")).Ref(),
			must(payables.ParseInvoiceID("INV-0001")).Ref(), must(payables.ParseInvoiceID("INV-0002")).Ref()}},
		{"a sort in two files", map[string]string{"vendors.csv": vendors, "vendors.jsonl": `{"id":"V-2","name":"Bolt"}`, "customers.csv": header + dana, "customers.jsonl": strings.Replace(danaJSON, "10001", "10002", 1)}, "-", []ledger.Ref{
			must(payables.ParseVendorID("V-1")).Ref(), must(payables.ParseVendorID("V-2")).Ref(), must(customers.ParseID("CUST-10001")).Ref(), must(customers.ParseID("CUST-10002")).Ref()}},
		{"the same in two files", map[string]string{"vendors.csv": vendors, "vendors.jsonl": `{"id":"V-1","name":"Acme"}`}, "-", []ledger.Ref{must(payables.ParseVendorID("V-1")).Ref()}},
		{"other facts in two files", map[string]string{"vendors.csv": vendors, "vendors.jsonl": `{"id":"V-1","name":"Other"}`}, "vendors.jsonl: line 1: id V-1 exists already with other facts", nil},
		{"a bad line", map[string]string{"vendors.csv": vendors + "V 2,B\n"}, "vendors.csv: line 3: id: ", nil},
		{"a name of nothing", map[string]string{"vendors.csv": vendors + "V-2,\n"}, "vendors.csv: line 3: name must have ", nil},
		{"an order of nobody", map[string]string{"orders.jsonl": "\n" + order}, "orders.jsonl: line 2: vendor is not known", nil},
		{"a receipt of no order", map[string]string{"vendors.csv": vendors, "receipts.jsonl": receipt}, "receipts.jsonl: line 1: order is not known", nil},
		{"an invoice of nobody", map[string]string{"invoices.jsonl": bill}, "invoices.jsonl: line 1: vendor is not known", nil},
		{"orders as a table", map[string]string{"orders.csv": "id\n"}, "orders.csv: line 1: orders have lines of their own", nil},
		{"an empty file", map[string]string{"invoices.jsonl": ""}, "invoices.jsonl: ", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, dir := memory.New(), folder(t, tt.files)
			err := Load(t.Context(), s, acme, dir, system.Clock{}, system.IDs{})
			if tt.want == "-" {
				if err != nil {
					t.Fatal(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %s", err, tt.want)
			}
			view, err := s.Load(t.Context(), acme, tt.holds...)
			if err != nil {
				t.Fatal(err)
			}
			for _, ref := range tt.holds {
				if _, ok := ledger.Get[ledger.Record](view, ref); !ok {
					t.Errorf("%s is not there", ref.ID)
				}
			}
		})
	}
	if err := Load(t.Context(), memory.New(), acme, filepath.Join(t.TempDir(), "none"), system.Clock{}, system.IDs{}); err == nil {
		t.Error("a folder that is not there was loaded")
	}
}

// The texts of these tests are JSON that others read too.
func TestTheTextsAreJSON(t *testing.T) {
	for _, text := range []string{danaJSON, order, receipt, bill, note} {
		if !json.Valid([]byte(text)) {
			t.Error(text)
		}
	}
}
