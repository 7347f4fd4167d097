package importfile

import (
	"fmt"
	"io"

	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

type vendorRow struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

var vendorForm = form[vendorRow, payables.Vendor]{
	noun: "vendors", most: payables.MaxImport,
	json: strictjson.Compile[vendorRow]("the line"),
	columns: []column[vendorRow]{
		{"id", func(r *vendorRow, s string) { r.ID = s }},
		{"name", func(r *vendorRow, s string) { r.Name = s }},
	},
	parse: func(row vendorRow, w *wrong) payables.Vendor {
		id, err := payables.ParseVendorID(row.ID)
		w.about("id", err)
		return payables.Vendor{ID: id, Name: row.Name}
	},
}

// ReadVendors reads vendors: id and name.
func ReadVendors(r io.Reader, f Format, progress func(lines int)) (File[payables.Vendor], error) {
	return vendorForm.read(r, f, progress)
}

type orderRow struct {
	ID           string             `json:"id"`
	Vendor       string             `json:"vendor"`
	Currency     string             `json:"currency"`
	FreightLimit *strictjson.Number `json:"freight_limit"`
	TaxLimit     *strictjson.Number `json:"tax_limit_percent"`
	Lines        []orderLineRow     `json:"lines"`
}

type orderLineRow struct {
	Line        int64             `json:"line"`
	SKU         string            `json:"sku"`
	Description *string           `json:"description"`
	Unit        string            `json:"unit"`
	Quantity    strictjson.Number `json:"quantity"`
	UnitPrice   strictjson.Number `json:"unit_price"`
	Conversions *[]conversionRow  `json:"conversions"`
}

type conversionRow struct {
	Unit        string `json:"unit"`
	Numerator   int64  `json:"numerator"`
	Denominator int64  `json:"denominator"`
}

var orderForm = form[orderRow, payables.Order]{
	noun: "orders", most: payables.MaxImport,
	json: strictjson.Compile[orderRow]("the line"), parse: parseOrder,
}

// ReadOrders reads purchase orders, as JSON Lines: id, vendor, currency,
// freight_limit (major units) and tax_limit_percent (each 0 if absent), and
// lines with line, sku, description (may be absent), unit, quantity, unit_price
// (major units) and conversions (may be absent): unit, numerator and denominator
// say that one of the unit is so much of the line's.
func ReadOrders(r io.Reader, f Format, progress func(lines int)) (File[payables.Order], error) {
	return orderForm.read(r, f, progress)
}

func parseOrder(row orderRow, w *wrong) payables.Order {
	var o payables.Order
	var err error
	o.ID, err = payables.ParseOrderID(row.ID)
	w.about("id", err)
	o.Vendor, err = payables.ParseVendorID(row.Vendor)
	w.about("vendor", err)
	o.Currency, err = money.ParseCurrency(row.Currency)
	w.about("currency", err)
	o.FreightLimit = w.amount("freight_limit", or(row.FreightLimit, "0"), o.Currency)
	o.TaxLimit, err = payables.ParsePercent(string(or(row.TaxLimit, "0")))
	w.about("tax_limit_percent", err)
	each(w, row.Lines, func(l orderLineRow) {
		line := payables.OrderLine{Line: int(l.Line), Description: or(l.Description, "")}
		line.SKU, err = payables.ParseSKU(l.SKU)
		w.about("sku", err)
		line.Unit, line.Quantity = w.quantity(l.Unit, l.Quantity)
		line.UnitPrice = w.amount("unit_price", l.UnitPrice, o.Currency)
		for k, x := range or(l.Conversions, nil) {
			unit, err := payables.ParseUnit(x.Unit)
			w.about(fmt.Sprintf("conversions[%d].unit", k), err)
			line.Conversions = append(line.Conversions, payables.Conversion{Unit: unit, Numerator: x.Numerator, Denominator: x.Denominator})
		}
		o.Lines = append(o.Lines, line)
	})
	return o
}

// or returns what a pointer points to, or the value for an absent member.
func or[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}

func (w *wrong) quantity(unit string, literal strictjson.Number) (payables.Unit, payables.Quantity) {
	u, err := payables.ParseUnit(unit)
	w.about("unit", err)
	q, err := payables.ParseQuantity(string(literal))
	w.about("quantity", err)
	return u, q
}

type receiptRow struct {
	ID         string           `json:"id"`
	Order      string           `json:"order"`
	Kind       string           `json:"kind"`
	ReceivedAt string           `json:"received_at"`
	Lines      []receiptLineRow `json:"lines"`
}

type receiptLineRow struct {
	OrderLine int64             `json:"order_line"`
	Quantity  strictjson.Number `json:"quantity"`
	Unit      string            `json:"unit"`
}

var receiptForm = form[receiptRow, payables.Receipt]{
	noun: "receipts", most: payables.MaxImport,
	json: strictjson.Compile[receiptRow]("the line"), parse: parseReceipt,
}

// ReadReceipts reads goods receipts, as JSON Lines: id, order, kind (receipt or
// return), received_at (a date), and lines with order_line, quantity and unit.
func ReadReceipts(r io.Reader, f Format, progress func(lines int)) (File[payables.Receipt], error) {
	return receiptForm.read(r, f, progress)
}

func parseReceipt(row receiptRow, w *wrong) payables.Receipt {
	var x payables.Receipt
	var err error
	x.ID, err = payables.ParseReceiptID(row.ID)
	w.about("id", err)
	x.Order, err = payables.ParseOrderID(row.Order)
	w.about("order", err)
	x.Movement, err = payables.ParseMovement(row.Kind)
	w.about("kind", err)
	x.ReceivedAt, err = payables.ParseDate(row.ReceivedAt)
	w.about("received_at", err)
	each(w, row.Lines, func(l receiptLineRow) {
		line := payables.ReceiptLine{OrderLine: int(l.OrderLine)}
		line.Unit, line.Quantity = w.quantity(l.Unit, l.Quantity)
		x.Lines = append(x.Lines, line)
	})
	return x
}

type invoiceRow struct {
	ID       string             `json:"id"`
	Number   string             `json:"number"`
	Kind     *string            `json:"kind"`
	Credits  *string            `json:"credits"`
	Vendor   string             `json:"vendor"`
	Order    *string            `json:"order"`
	Currency string             `json:"currency"`
	Lines    []invoiceLineRow   `json:"lines"`
	Tax      *strictjson.Number `json:"tax"`
	Freight  *strictjson.Number `json:"freight"`
	Total    strictjson.Number  `json:"total"`
	Date     string             `json:"date"`
}

type invoiceLineRow struct {
	Line      int64             `json:"line"`
	OrderLine *int64            `json:"order_line"`
	SKU       *string           `json:"sku"`
	Unit      string            `json:"unit"`
	Quantity  strictjson.Number `json:"quantity"`
	UnitPrice strictjson.Number `json:"unit_price"`
	Amount    strictjson.Number `json:"amount"`
}

var invoiceForm = form[invoiceRow, payables.Invoice]{
	noun: "invoices", most: payables.MaxImport,
	json: strictjson.Compile[invoiceRow]("the line"), parse: parseInvoice,
}

// ReadInvoices reads invoices and credit notes, as JSON Lines: id, number (as
// the vendor wrote it), kind (invoice or credit_note; invoice if absent),
// credits (the invoice that a credit note credits), vendor, order (may be
// absent), currency, tax and freight (each 0 if absent), total, date, and lines
// with line, order_line and sku (each may be absent), unit, quantity,
// unit_price and amount. Amounts are major units.
func ReadInvoices(r io.Reader, f Format, progress func(lines int)) (File[payables.Invoice], error) {
	return invoiceForm.read(r, f, progress)
}

func parseInvoice(row invoiceRow, w *wrong) payables.Invoice {
	var i payables.Invoice
	var err error
	i.ID, err = payables.ParseInvoiceID(row.ID)
	w.about("id", err)
	i.Number, err = payables.ParseNumber(row.Number)
	w.about("number", err)
	i.Document, err = payables.ParseDocumentKind(or(row.Kind, payables.Bill.String()))
	w.about("kind", err)
	if row.Credits != nil {
		i.Credits, err = payables.ParseInvoiceID(*row.Credits)
		w.about("credits", err)
	}
	i.Vendor, err = payables.ParseVendorID(row.Vendor)
	w.about("vendor", err)
	if row.Order != nil {
		i.Order, err = payables.ParseOrderID(*row.Order)
		w.about("order", err)
	}
	i.Currency, err = money.ParseCurrency(row.Currency)
	w.about("currency", err)
	i.Tax = w.amount("tax", or(row.Tax, "0"), i.Currency)
	i.Freight = w.amount("freight", or(row.Freight, "0"), i.Currency)
	i.Total = w.amount("total", row.Total, i.Currency)
	i.Date, err = payables.ParseDate(row.Date)
	w.about("date", err)
	each(w, row.Lines, func(l invoiceLineRow) {
		line := payables.InvoiceLine{Line: int(l.Line), OrderLine: int(or(l.OrderLine, 0))}
		if l.SKU != nil {
			line.SKU, err = payables.ParseSKU(*l.SKU)
			w.about("sku", err)
		}
		line.Unit, line.Quantity = w.quantity(l.Unit, l.Quantity)
		line.UnitPrice = w.amount("unit_price", l.UnitPrice, i.Currency)
		line.Amount = w.amount("amount", l.Amount, i.Currency)
		i.Lines = append(i.Lines, line)
	})
	return i
}
