package demo

import (
	"fmt"

	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

// step is one command of the seed, under a key of its own.
type step struct {
	key string
	cmd ledger.Command
}

// payablesSteps bring in eleven invoices, INV-1001 to INV-1011, one scenario
// each: a clean match, a price within the tolerance, one 15 % over, more billed
// than received, a duplicate of the first under a number written differently,
// nothing received, another currency, an order that is not known, an order of
// another vendor, and two that are decided already.
func payablesSteps() []step {
	d := documents{}
	d.vendor("V-100", "Harbor Paper Company")
	d.vendor("V-200", "Pinecrest Tools")
	d.vendor("V-300", "Silverline Logistics")

	d.order("PO-2001", "V-100", "PAPER-A4", "Copy paper A4, box", "BOX", "40", 24_50)
	d.receive("GR-3001", "PO-2001", "40", "BOX")
	d.bill("INV-1001", "HP-2026-0071", "V-100", "PO-2001", "USD", "PAPER-A4", "BOX", "40", 24_50, 980_00, "2026-01-12")

	d.order("PO-2002", "V-200", "DRILL-18V", "Cordless drill 18 V", "EA", "10", 129_00)
	d.receive("GR-3002", "PO-2002", "10", "EA")
	d.bill("INV-1002", "PT/4410", "V-200", "PO-2002", "USD", "DRILL-18V", "EA", "10", 130_50, 1305_00, "2026-01-14")

	d.order("PO-2003", "V-200", "SAW-210", "Circular saw 210 mm", "EA", "8", 180_00)
	d.receive("GR-3003", "PO-2003", "8", "EA")
	d.bill("INV-1003", "PT/4423", "V-200", "PO-2003", "USD", "SAW-210", "EA", "8", 207_00, 1656_00, "2026-01-19")

	d.order("PO-2004", "V-100", "ENVELOPE-C5", "Envelopes C5, pack", "PK", "100", 6_20)
	d.receive("GR-3004", "PO-2004", "60", "PK")
	d.bill("INV-1004", "HP-2026-0088", "V-100", "PO-2004", "USD", "ENVELOPE-C5", "PK", "100", 6_20, 620_00, "2026-01-21")

	d.bill("INV-1005", "hp 2026/71", "V-100", "PO-2001", "USD", "PAPER-A4", "BOX", "40", 24_50, 980_00, "2026-01-26")

	d.order("PO-2006", "V-200", "GRINDER-125", "Angle grinder 125 mm", "EA", "5", 84_00)
	d.bill("INV-1006", "PT/4431", "V-200", "PO-2006", "USD", "GRINDER-125", "EA", "5", 84_00, 420_00, "2026-01-27")

	d.order("PO-2007", "V-300", "FREIGHT-EU", "Pallet freight, Europe", "PAL", "6", 210_00)
	d.receive("GR-3007", "PO-2007", "6", "PAL")
	d.bill("INV-1007", "SL-90012", "V-300", "PO-2007", "EUR", "FREIGHT-EU", "PAL", "6", 210_00, 1260_00, "2026-02-02")

	d.bill("INV-1008", "HP-2026-0102", "V-100", "PO-9999", "USD", "TONER-BK", "EA", "4", 61_00, 244_00, "2026-02-03")

	d.order("PO-2009", "V-200", "LADDER-3M", "Ladder 3 m", "EA", "3", 142_00)
	d.receive("GR-3009", "PO-2009", "3", "EA")
	d.bill("INV-1009", "SL-90027", "V-300", "PO-2009", "USD", "LADDER-3M", "EA", "3", 142_00, 426_00, "2026-02-05")

	d.order("PO-2010", "V-100", "BINDER-A4", "Ring binder A4, box", "BOX", "12", 31_00)
	d.receive("GR-3010", "PO-2010", "12", "BOX")
	d.bill("INV-1010", "HP-2026-0117", "V-100", "PO-2010", "USD", "BINDER-A4", "BOX", "12", 31_00, 372_00, "2026-02-09")

	d.order("PO-2011", "V-200", "VISE-100", "Bench vise 100 mm", "EA", "2", 95_00)
	d.receive("GR-3011", "PO-2011", "2", "EA")
	d.bill("INV-1011", "PT/4450", "V-200", "PO-2011", "USD", "VISE-100", "EA", "2", 130_00, 260_00, "2026-02-11")

	return []step{
		{"seed-vendors", payables.ImportVendors{Vendors: d.vendors}},
		{"seed-orders", payables.ImportOrders{Orders: d.orders}},
		{"seed-receipts", payables.ImportReceipts{Receipts: d.receipts}},
		{"seed-invoices", payables.ImportInvoices{Invoices: d.invoices}},
		d.decide("INV-1010", payables.Approve, "CLEAN_MATCH"),
		d.decide("INV-1011", payables.Reject, "PRICE_VARIANCE"),
	}
}

// documents are what is brought in, each of one line.
type documents struct {
	vendors  []payables.Vendor
	orders   []payables.Order
	receipts []payables.Receipt
	invoices []payables.Invoice
}

func (d *documents) vendor(id, name string) {
	d.vendors = append(d.vendors, payables.Vendor{ID: must(payables.ParseVendorID(id)), Name: name})
}

func (d *documents) order(id, vendor, sku, description, unit, quantity string, cents int64) {
	usd := must(money.ParseCurrency("USD"))
	d.orders = append(d.orders, payables.Order{
		ID: must(payables.ParseOrderID(id)), Vendor: must(payables.ParseVendorID(vendor)), Currency: usd, FreightLimit: money.FromMinor(0, usd),
		Lines: []payables.OrderLine{{
			Line: 1, SKU: must(payables.ParseSKU(sku)), Description: description,
			Unit: must(payables.ParseUnit(unit)), Quantity: must(payables.ParseQuantity(quantity)), UnitPrice: money.FromMinor(cents, usd),
		}},
	})
}

func (d *documents) receive(id, order, quantity, unit string) {
	at := d.orders[len(d.orders)-1]
	if at.ID.String() != order {
		panic(fmt.Sprintf("demo: %s is not received after its order", order))
	}
	d.receipts = append(d.receipts, payables.Receipt{
		ID: must(payables.ParseReceiptID(id)), Order: at.ID, Vendor: at.Vendor, Movement: payables.Received, ReceivedAt: must(payables.ParseDate("2026-01-09")),
		Lines: []payables.ReceiptLine{{OrderLine: 1, Quantity: must(payables.ParseQuantity(quantity)), Unit: must(payables.ParseUnit(unit))}},
	})
}

func (d *documents) bill(id, number, vendor, order, currency, sku, unit, quantity string, cents, total int64, date string) {
	c := must(money.ParseCurrency(currency))
	d.invoices = append(d.invoices, payables.Invoice{
		ID: must(payables.ParseInvoiceID(id)), Number: must(payables.ParseNumber(number)), Document: payables.Bill,
		Vendor: must(payables.ParseVendorID(vendor)), Order: must(payables.ParseOrderID(order)), Currency: c,
		Lines: []payables.InvoiceLine{{
			Line: 1, OrderLine: 1, SKU: must(payables.ParseSKU(sku)), Unit: must(payables.ParseUnit(unit)),
			Quantity: must(payables.ParseQuantity(quantity)), UnitPrice: money.FromMinor(cents, c), Amount: money.FromMinor(total, c),
		}},
		Tax: money.FromMinor(0, c), Freight: money.FromMinor(0, c), Total: money.FromMinor(total, c), Date: must(payables.ParseDate(date)),
	})
}

func (d *documents) decide(id string, action payables.Action, reason string) step {
	for _, i := range d.invoices {
		if i.ID.String() == id {
			return step{"seed-decide-" + id, payables.Route{
				Request:   payables.Request{Invoice: i.ID, Action: action, Reason: must(payables.ParseReasonCode(reason))},
				Links:     payables.LinksOf(i, nil),
				Authority: payables.Authority{Tolerance: payables.DefaultTolerance()},
			}}
		}
	}
	panic("demo: no invoice " + id)
}
