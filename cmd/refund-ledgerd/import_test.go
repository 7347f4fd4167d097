package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What an operator brings in, in this order.
const (
	someVendors = "id,name\nV-1,Acme\nV-2,\"Bolt, Ltd\"\n"
	someOrders  = `{"id":"PO-1","vendor":"V-1","currency":"USD","freight_limit":5,"tax_limit_percent":10,"lines":[{"line":1,"sku":"WIDGET","unit":"EA","quantity":10,"unit_price":9.99}]}
{"id":"PO-2","vendor":"V-2","currency":"EUR","lines":[{"line":1,"sku":"BOLTS","unit":"BOX","quantity":4,"unit_price":25}]}
`
	someReceipts = `{"id":"GR-1","order":"PO-1","kind":"receipt","received_at":"2026-03-02","lines":[{"order_line":1,"quantity":10,"unit":"EA"}]}
{"id":"GR-2","order":"PO-2","kind":"receipt","received_at":"2026-03-02","lines":[{"order_line":1,"quantity":4,"unit":"BOX"}]}
`
	someInvoices = `{"id":"INV-0001","number":"A-1","vendor":"V-1","order":"PO-1","currency":"USD","total":39.96,"date":"2026-03-03","lines":[{"line":1,"order_line":1,"sku":"WIDGET","unit":"EA","quantity":4,"unit_price":9.99,"amount":39.96}]}
{"id":"INV-0002","number":"B-1","vendor":"V-2","order":"PO-2","currency":"EUR","total":25,"date":"2026-03-03","lines":[{"line":1,"order_line":1,"unit":"BOX","quantity":1,"unit_price":25,"amount":25}]}
`
)

// intake is one sort of documents.
type intake struct {
	noun, file, done string
	entries          string // what verify counts after it, beginning with the entries of the sorts before
	// one is a part of the file's second record, other what makes it other facts,
	// and conflict what is said about it.
	one, other, conflict string
	// bad makes the second record bad in itself, or by what is on record.
	bad []badRecord
}

type badRecord struct{ old, with, words string }

var intakes = []intake{
	{"vendors", someVendors, "2 vendors brought in", "2 vendors, 2 entries", `"Bolt, Ltd"`, "Bolt", "line 3: id V-2 exists already with other facts", []badRecord{
		{"V-2", "V 2", "line 3: id: "}, {"V-2,", "V-2,x,", "line 3: it has 3 fields, the header 2"}, {`"Bolt, Ltd"`, "", "line 3: name must have"},
		{"V-2", "V-1", "line 3: id V-1 stands there twice"}, {"id,name", "id,nom", "line 1: the header must name exactly"},
	}},
	{"orders", someOrders, "2 orders brought in", "2 vendors, 4 entries", `"unit_price":25`, `"unit_price":26`, "line 2: id PO-2 exists already with other facts", []badRecord{
		{`"PO-2"`, `"PO-1"`, "line 2: id PO-1 stands there twice"}, {`"V-2"`, `"V-9"`, "line 2: vendor is not known"}, {`"EUR"`, `"eur"`, "line 2: currency: "},
		{`"unit_price":25`, `"unit_price":25.001`, "line 2: lines[0].unit_price: the amount has more decimals"}, {`"quantity":4`, `"quantity":"4"`, "must be a number, not a string"},
		{`"vendor":"V-2"`, `"vendor":"V-2","vendor":"V-2"`, "line 2: "}, {`"vendor":"V-2"`, `"vendor":"V-2","vip":1`, `line 2: unknown property "vip"`},
		{`{"id":"PO-2"`, `"id":"PO-2"`, "line 2: it is not JSON"},
	}},
	{"receipts", someReceipts, "2 receipts booked in", "2 vendors, 6 entries", `"quantity":4`, `"quantity":3`, "line 2: id GR-2 exists already with other facts", []badRecord{
		{`"GR-2"`, `"GR-1"`, "line 2: id GR-1 stands there twice"}, {`"PO-2"`, `"PO-9"`, "line 2: order is not known"}, {`"BOX"`, `"PAL"`, "line 2: lines[0] must have a quantity in a unit of the order's line"},
		{`"order":"PO-2","kind":"receipt"`, `"order":"PO-2","kind":"return"`, "line 2: lines[0].quantity is more than was received"}, {`"order_line":1,"quantity":4`, `"order_line":7,"quantity":4`, "line 2: lines[0].order_line is no line of the order"},
		{"2026-03-02\",\"lines\":[{\"order_line\":1,\"quantity\":4", "2026-02-30\",\"lines\":[{\"order_line\":1,\"quantity\":4", "line 2: received_at: "},
	}},
	{"invoices", someInvoices, "2 invoices entered", "2 vendors, 8 entries", `"total":25,`, `"total":26,`, "line 2: id INV-0002 exists already with other facts", []badRecord{
		{`"INV-0002"`, `"INV-0001"`, "line 2: id INV-0001 stands there twice"}, {`"V-2"`, `"V-9"`, "line 2: vendor is not known"}, {`"B-1"`, `""`, "line 2: number: "},
		{`"number":"B-1"`, `"number":"B-1","kind":"credit_note","credits":"INV-0099"`, "line 2: credits must be an invoice that is known"},
		{`"number":"B-1"`, `"number":"B-1","credits":"INV-0001"`, "line 2: credits is for a credit note"}, {`"total":25,`, `"total":-25,`, "line 2: "},
	}},
}

func TestAnOperatorBringsDocumentsIn(t *testing.T) {
	d := newDesk(t)
	for n, in := range intakes {
		if !strings.Contains(in.file, in.one) {
			t.Fatal(in.one)
		}
		// How it stood before, so that nothing of what is refused remains.
		stands := func() {
			t.Helper()
			if n == 0 {
				d.does("", 1, "no customers and no vendors", "verify")
			} else {
				d.does("", 0, "holds: 0 customers, "+intakes[n-1].entries, "verify")
			}
		}
		if n == 0 {
			d.does("", 0, "up to date", "migrate")
		}
		for _, bad := range in.bad {
			at := strings.LastIndex(in.file, bad.old)
			if at < 0 {
				t.Fatal(bad.old)
			}
			text := in.file[:at] + bad.with + in.file[at+len(bad.old):]
			out := d.does(text, 1, bad.words, "import", in.noun, "-")
			d.does(text, 1, "nothing was imported", "import", in.noun, "-")
			if out != "" {
				t.Errorf("%s with a bad line: %s", in.noun, out)
			}
			stands()
		}
		d.does(in.file, 0, "2 "+in.noun+", all of them well formed; nothing was imported", "import", in.noun, "--dry-run", "-")
		stands()
		d.does("", 1, "", "import", in.noun, "-")
		stands()

		path := filepath.Join(t.TempDir(), in.noun+map[bool]string{true: ".csv", false: ".jsonl"}[n == 0])
		if err := os.WriteFile(path, []byte(in.file), 0o600); err != nil {
			t.Fatal(err)
		}
		d.does("", 0, in.done+", 0 were there already with the same facts", "import", in.noun, path)
		d.does("", 0, "holds: 0 customers, "+in.entries, "verify")
		// Again: the file, stdin, with a mark in front and other ends of lines.
		for _, text := range []string{in.file, "\ufeff" + in.file, strings.ReplaceAll(in.file, "\n", "\r\n")} {
			d.does(text, 0, strings.Replace(in.done, "2", "0", 1)+", 2 were there already with the same facts", "import", in.noun, "-")
		}
		d.does("", 0, "2 were there already", "import", in.noun, path)
		d.does(strings.Replace(in.file, in.one, in.other, 1), 1, in.conflict, "import", in.noun, "-")
		d.does(strings.Replace(in.file, in.one, in.other, 1), 1, "nothing was imported", "import", in.noun, "-")
		d.does("", 0, "holds: 0 customers, "+in.entries, "verify")
		d.does("", 1, "no such file", "import", in.noun, path+".not")
		d.does("", 2, "usage", "import", in.noun)
	}
	// Another tenant has none of it.
	d.does(someOrders, 1, "line 1: vendor is not known", "import", "orders", "--tenant", "globex", "-")
	d.does("", 1, "no customers and no vendors of the tenant globex", "verify", "--tenant", "globex")
}

// A file is of one sort, and of one format.
func TestFilesOfAnotherSort(t *testing.T) {
	d := newDesk(t)
	for _, in := range intakes[1:] {
		d.does(someVendors, 1, in.noun+" have lines of their own", "import", in.noun, "-")
		d.does(`{"id":"V-1","name":"Acme"}`, 1, `unknown property "name"`, "import", in.noun, "-")
	}
	d.does(someOrders, 1, `line 1: `, "import", "vendors", "-")
	d.does(`{"id":"V-1","name":"Acme"}`+"\n", 0, "1 vendors brought in", "import", "vendors", "-")
}

// A key of one's own makes an import happen once, and is of that import.
func TestAnImportUnderAKey(t *testing.T) {
	d := newDesk(t)
	d.does(someVendors, 0, "2 vendors brought in", "import", "vendors", "--as", "ada", "--key", "monday", "-")
	d.does(someVendors, 0, "2 vendors brought in", "import", "vendors", "--as", "ada", "--key", "monday", "-")
	d.does("id,name\nV-3,C\n", 1, "operation_key_reused", "import", "vendors", "--as", "ada", "--key", "monday", "-")
	if lines := d.does("", 0, `"key":"monday"`, "export", "journal"); strings.Count(lines, "\n") != 2 || strings.Count(lines, `"principal":"ada"`) != 2 {
		t.Error(lines)
	}
	d.does(someVendors, 1, "--key", "import", "vendors", "--key", "a b", "-")
	d.does(someVendors, 1, "--as", "import", "vendors", "--as", "a b", "-")
}

// Only a signal ends a verification: no bound of its own, and no advice to run
// what is running.
func TestAVerificationEndsOnASignalOnly(t *testing.T) {
	d := newDesk(t)
	d.does("", 0, "", "seed")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var said strings.Builder
	if code := run(ctx, []string{"verify"}, d.environ, console{strings.NewReader(""), &said, &said}); code != 1 || strings.Contains(said.String(), "refund-ledgerd verify.") || strings.Contains(said.String(), "holds:") {
		t.Errorf("exit code %d: %s", code, said.String())
	}
}
