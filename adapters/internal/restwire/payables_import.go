package restwire

import (
	"errors"
	"fmt"

	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

type vendorFields struct {
	ID   string `json:"id" doc:"1 to 24 letters, digits or ._-"`
	Name string `json:"name" doc:"1 to 200 characters of one line."`
}

type orderFields struct {
	ID                string      `json:"id" doc:"1 to 24 letters, digits or ._-"`
	VendorID          string      `json:"vendorId" doc:"Who delivers."`
	Currency          string      `json:"currency" doc:"ISO 4217 code of all its amounts."`
	FreightLimitMinor int64       `json:"freightLimitMinor" doc:"The most freight that all invoices together may charge, in minor units."`
	TaxLimitPercent   string      `json:"taxLimitPercent" doc:"The most tax on the lines of an invoice, in percent: an exact decimal."`
	Lines             []OrderLine `json:"lines" nullable:"false" doc:"The lines, in order of their numbers."`
}

type receiptFields struct {
	ID         string        `json:"id" doc:"1 to 24 letters, digits or ._-"`
	OrderID    string        `json:"orderId" doc:"The order of the goods."`
	Kind       string        `json:"kind" enum:"receipt,return" doc:"receipt if they came, return if they went back."`
	ReceivedAt string        `json:"receivedAt" format:"date" doc:"On which day."`
	Lines      []ReceiptLine `json:"lines" nullable:"false" doc:"What came, line by line."`
}

type invoiceFields struct {
	ID           string        `json:"id" doc:"INV- and 4 to 12 digits."`
	Number       string        `json:"number" doc:"The number as the vendor wrote it."`
	Kind         string        `json:"kind" enum:"invoice,credit_note" doc:"Which way the money goes."`
	CreditsID    *string       `json:"creditsId" required:"false" nullable:"false" doc:"The invoice that a credit note credits, if it names one."`
	VendorID     string        `json:"vendorId" doc:"Who sent it."`
	OrderID      *string       `json:"orderId" required:"false" nullable:"false" doc:"The order that it names, if it does."`
	Currency     string        `json:"currency" doc:"ISO 4217 code of all its amounts."`
	TaxMinor     int64         `json:"taxMinor" doc:"Tax as declared, in minor units."`
	FreightMinor int64         `json:"freightMinor" doc:"Freight as declared, in minor units."`
	TotalMinor   int64         `json:"totalMinor" doc:"The total as declared, in minor units."`
	InvoiceDate  string        `json:"invoiceDate" format:"date" doc:"The day that it is of."`
	Lines        []InvoiceLine `json:"lines" nullable:"false" doc:"The lines, in order of their numbers."`
}

type vendorImport struct {
	Vendors []vendorFields `json:"vendors" nullable:"false" doc:"The vendors to bring in."`
}

type orderImport struct {
	Orders []orderFields `json:"orders" nullable:"false" doc:"The orders to bring in."`
}

type receiptImport struct {
	Receipts []receiptFields `json:"receipts" nullable:"false" doc:"The receipts to book."`
}

type invoiceImport struct {
	Invoices []invoiceFields `json:"invoices" nullable:"false" doc:"The invoices and credit notes to enter."`
}

// The imports of documents. What the records add to them is not the client's to
// say: which vendor an order has, what has been received, billed and credited.
var importCommands = []Resource{
	declare(declaration[payables.ImportVendors, vendorImport, customers.Imported]{
		Path: "/v1/imports/vendors", Title: "Bring vendors in", Scope: access.ControlRules,
		About: "All of the vendors or none. One that is there with the very same facts stays as it is.",
		Write: func(c payables.ImportVendors) ([]string, vendorImport) {
			all := vendorImport{make([]vendorFields, 0, len(c.Vendors))}
			for _, v := range c.Vendors {
				all.Vendors = append(all.Vendors, vendorFields{v.ID.String(), v.Name})
			}
			return nil, all
		},
		Read: func(in *input, f vendorImport) payables.ImportVendors {
			var c payables.ImportVendors
			for i, v := range f.Vendors {
				in.at = []any{"vendors", i}
				c.Vendors = append(c.Vendors, payables.Vendor{ID: parseNamed(in, "id", v.ID, payables.ParseVendorID), Name: v.Name})
			}
			return c
		},
		Answers: func(c payables.ImportVendors, i customers.Imported) bool {
			return i.Opened+i.Unchanged == len(c.Vendors)
		},
	}),
	declare(declaration[payables.ImportOrders, orderImport, customers.Imported]{
		Path: "/v1/imports/purchase-orders", Title: "Bring purchase orders in", Scope: access.ControlRules,
		About: "All of the orders or none. One that is there with the very same facts stays as it is.",
		Write: func(c payables.ImportOrders) ([]string, orderImport) {
			all := orderImport{make([]orderFields, 0, len(c.Orders))}
			for _, o := range c.Orders {
				f := orderFields{o.ID.String(), o.Vendor.String(), o.Currency.String(), o.FreightLimit.Minor(), o.TaxLimit.String(), make([]OrderLine, 0, len(o.Lines))}
				for _, l := range o.Lines {
					l.Received, l.Billed = payables.Ratio{}, payables.Ratio{}
					f.Lines = append(f.Lines, orderLineOf(l))
				}
				all.Orders = append(all.Orders, f)
			}
			return nil, all
		},
		Read: func(in *input, f orderImport) payables.ImportOrders {
			var c payables.ImportOrders
			for i, o := range f.Orders {
				in.at = []any{"orders", i}
				c.Orders = append(c.Orders, o.read(in))
			}
			return c
		},
		Answers: func(c payables.ImportOrders, i customers.Imported) bool { return i.Opened+i.Unchanged == len(c.Orders) },
	}),
	declare(declaration[payables.ImportReceipts, receiptImport, customers.Imported]{
		Path: "/v1/imports/goods-receipts", Title: "Book goods in, or back out", Scope: access.ControlRules,
		About: "All of the receipts or none. One that is there with the very same facts stays as it is.",
		Write: func(c payables.ImportReceipts) ([]string, receiptImport) {
			all := receiptImport{make([]receiptFields, 0, len(c.Receipts))}
			for _, x := range c.Receipts {
				f := receiptFields{x.ID.String(), x.Order.String(), x.Movement.String(), x.ReceivedAt.String(), make([]ReceiptLine, 0, len(x.Lines))}
				for _, l := range x.Lines {
					f.Lines = append(f.Lines, ReceiptLine{int64(l.OrderLine), l.Quantity.String(), l.Unit.String()})
				}
				all.Receipts = append(all.Receipts, f)
			}
			return nil, all
		},
		Read: func(in *input, f receiptImport) payables.ImportReceipts {
			var c payables.ImportReceipts
			for i, x := range f.Receipts {
				in.at = []any{"receipts", i}
				c.Receipts = append(c.Receipts, x.read(in))
			}
			return c
		},
		Answers: func(c payables.ImportReceipts, i customers.Imported) bool {
			return i.Opened+i.Unchanged == len(c.Receipts)
		},
	}),
	declare(declaration[payables.ImportInvoices, invoiceImport, customers.Imported]{
		Path: "/v1/imports/invoices", Title: "Enter invoices and credit notes", Scope: access.ControlRules,
		About: "All of them or none. One that is there with the very same facts stays as it is, whatever was decided about it since.",
		// What was filled in can not be told from what is on record here.
		Refuses: payables.ImportInvoices.Synthesised,
		Write: func(c payables.ImportInvoices) ([]string, invoiceImport) {
			all := invoiceImport{make([]invoiceFields, 0, len(c.Invoices))}
			for _, i := range c.Invoices {
				f := invoiceFields{
					i.ID.String(), i.Number.String(), i.Document.String(), optional(i.Credits.String()), i.Vendor.String(), optional(i.Order.String()), i.Currency.String(),
					i.Tax.Minor(), i.Freight.Minor(), i.Total.Minor(), i.Date.String(), make([]InvoiceLine, 0, len(i.Lines)),
				}
				for _, l := range i.Lines {
					l.Credited = payables.Ratio{}
					f.Lines = append(f.Lines, invoiceLineOf(l))
				}
				all.Invoices = append(all.Invoices, f)
			}
			return nil, all
		},
		Read: func(in *input, f invoiceImport) payables.ImportInvoices {
			var c payables.ImportInvoices
			for i, x := range f.Invoices {
				in.at = []any{"invoices", i}
				c.Invoices = append(c.Invoices, x.read(in))
			}
			return c
		},
		Answers: func(c payables.ImportInvoices, i customers.Imported) bool {
			return i.Opened+i.Unchanged == len(c.Invoices)
		},
	}),
}

func (f orderFields) read(in *input) payables.Order {
	currency := parseNamed(in, "currency", f.Currency, money.ParseCurrency)
	o := payables.Order{
		ID: parseNamed(in, "id", f.ID, payables.ParseOrderID), Vendor: parseNamed(in, "vendorId", f.VendorID, payables.ParseVendorID), Currency: currency,
		FreightLimit: money.FromMinor(f.FreightLimitMinor, currency), TaxLimit: parseNamed(in, "taxLimitPercent", f.TaxLimitPercent, payables.ParsePercent),
	}
	each(in, "lines", f.Lines, func(l OrderLine) {
		line := payables.OrderLine{
			Line: int(l.Line), SKU: parseNamed(in, "sku", l.SKU, payables.ParseSKU), Description: given(l.Description), Unit: parseNamed(in, "unit", l.Unit, payables.ParseUnit),
			Quantity: parseNamed(in, "quantity", l.Quantity, payables.ParseQuantity), UnitPrice: money.FromMinor(l.UnitPriceMinor, currency),
		}
		each(in, "conversions", l.Conversions, func(x Conversion) {
			line.Conversions = append(line.Conversions, payables.Conversion{Unit: parseNamed(in, "unit", x.Unit, payables.ParseUnit), Numerator: x.Numerator, Denominator: x.Denominator})
		})
		in.none("received", l.Received)
		in.none("billed", l.Billed)
		o.Lines = append(o.Lines, line)
	})
	return o
}

func (f receiptFields) read(in *input) payables.Receipt {
	x := payables.Receipt{
		ID: parseNamed(in, "id", f.ID, payables.ParseReceiptID), Order: parseNamed(in, "orderId", f.OrderID, payables.ParseOrderID),
		Movement: parseNamed(in, "kind", f.Kind, payables.ParseMovement), ReceivedAt: parseNamed(in, "receivedAt", f.ReceivedAt, payables.ParseDate),
	}
	each(in, "lines", f.Lines, func(l ReceiptLine) {
		x.Lines = append(x.Lines, payables.ReceiptLine{
			OrderLine: int(l.OrderLine), Quantity: parseNamed(in, "quantity", l.Quantity, payables.ParseQuantity), Unit: parseNamed(in, "unit", l.Unit, payables.ParseUnit),
		})
	})
	return x
}

func (f invoiceFields) read(in *input) payables.Invoice {
	currency := parseNamed(in, "currency", f.Currency, money.ParseCurrency)
	i := payables.Invoice{
		ID: parseNamed(in, "id", f.ID, payables.ParseInvoiceID), Number: parseNamed(in, "number", f.Number, payables.ParseNumber), Document: parseNamed(in, "kind", f.Kind, payables.ParseDocumentKind),
		Credits: parseOptional(in, "creditsId", f.CreditsID, payables.ParseInvoiceID), Vendor: parseNamed(in, "vendorId", f.VendorID, payables.ParseVendorID),
		Order: parseOptional(in, "orderId", f.OrderID, payables.ParseOrderID), Currency: currency, Tax: money.FromMinor(f.TaxMinor, currency),
		Freight: money.FromMinor(f.FreightMinor, currency), Total: money.FromMinor(f.TotalMinor, currency), Date: parseNamed(in, "invoiceDate", f.InvoiceDate, payables.ParseDate),
	}
	each(in, "lines", f.Lines, func(l InvoiceLine) {
		line := payables.InvoiceLine{
			Line: int(l.Line), SKU: parseOptional(in, "sku", l.SKU, payables.ParseSKU), Unit: parseNamed(in, "unit", l.Unit, payables.ParseUnit),
			Quantity: parseNamed(in, "quantity", l.Quantity, payables.ParseQuantity), UnitPrice: money.FromMinor(l.UnitPriceMinor, currency), Amount: money.FromMinor(l.AmountMinor, currency),
		}
		if l.OrderLine != nil {
			line.OrderLine = int(*l.OrderLine)
		}
		in.none("credited", l.Credited)
		i.Lines = append(i.Lines, line)
	})
	return i
}

// parseNamed reads a value that an import may lack: the zero value is for the
// rules to refuse, in their own words.
func parseNamed[T fmt.Stringer](in *input, name, text string, how func(string) (T, error)) T {
	var none T
	if text == none.String() {
		return none
	}
	return parse(in, name, text, how)
}

// each reads the rows of a member.
func each[L any](in *input, member string, rows []L, read func(L)) {
	above := in.at
	for n, l := range rows {
		in.at = append(append([]any{}, above...), member, n)
		read(l)
	}
	in.at = above
}

var errNotImported = errors.New("follows from other documents and can not be brought in")

// none refuses what is not the client's to say.
func (in *input) none(name string, f *Fraction) {
	if f != nil {
		in.bad(name, errNotImported)
	}
}
