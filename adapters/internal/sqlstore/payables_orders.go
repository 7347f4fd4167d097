package sqlstore

import (
	"fmt"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

var orderTable = Table{"purchase_orders", []Column{
	{"tenant", Text, Key},
	{"id", Text, Key},
	{"vendor", Text, Fixed},
	{"currency", Text, Fixed},
	{"digits", Int, Fixed},
	{"freight_limit_minor", Int, Fixed},
	{"tax_limit_micro", Int, Fixed},
	{"freight_billed_minor", Int, State},
}}

var orderLineTable = Table{"purchase_order_lines", []Column{
	{"tenant", Text, Key},
	{"purchase_order", Text, Key},
	{"line", Int, Key},
	{"sku", Text, Fixed},
	{"description", Text, Fixed},
	{"unit", Text, Fixed},
	{"quantity_micro", Int, Fixed},
	{"unit_price_minor", Int, Fixed},
	{"received_numerator", Int, State},
	{"received_denominator", Int, State},
	{"billed_numerator", Int, State},
	{"billed_denominator", Int, State},
}}

var conversionTable = Table{"conversions", []Column{
	{"tenant", Text, Key},
	{"purchase_order", Text, Key},
	{"line", Int, Key},
	{"position", Int, Key},
	{"unit", Text, Fixed},
	{"numerator", Int, Fixed},
	{"denominator", Int, Fixed},
}}

type orderCodec struct {
	document[payables.Order, orderRow]
	unanswered
}

func newOrderCodec(d Dialect) *orderCodec {
	const lines = `l.line, l.sku, l.description, l.unit, l.quantity_micro, l.unit_price_minor,
		l.received_numerator, l.received_denominator, l.billed_numerator, l.billed_denominator`
	return &orderCodec{document: document[payables.Order, orderRow]{
		dialect: d, of: payables.OrderKind, keys: byID(), name: isID,
		byKey: byIDQuery(d, "purchase_orders", `r.id, r.vendor, r.currency, r.digits, r.freight_limit_minor, r.tax_limit_micro, r.freight_billed_minor`),
		lock:  d.Lock("r.tenant, r.id", payables.OrderKind.Shared),
		head: func(o *orderRow) []any {
			return []any{&o.id, &o.vendor, &o.currency, &o.digits, &o.freightLimit, &o.taxLimit, &o.freightBilled}
		},
		parts: []part[orderRow]{
			{partQuery(d, "purchase_order_lines", "purchase_order", lines, "l.line"), orderLineFields},
			{partQuery(d, "conversions", "purchase_order", `l.line, l.unit, l.numerator, l.denominator`, "l.line, l.position"), conversionFields},
		},
		record: (*orderRow).order,
	}}
}

func (c *orderCodec) write(w *writes, ch committer.Changed) {
	o := ch.After.(payables.Order)
	t, id := ch.Tenant.String(), o.ID.String()
	before, there := ch.Before.(payables.Order)
	head := []any{t, id, o.Vendor.String(), o.Currency.String(), int64(o.Currency.Digits()), o.FreightLimit.Minor(), o.TaxLimit.Micro(), o.FreightBilled.Minor()}
	switch {
	case !there:
		w.add(Insert, &orderTable, head...)
	case o.FreightBilled != before.FreightBilled:
		w.add(Update, &orderTable, head...)
	}
	for i, l := range o.Lines {
		verb := Insert
		if there {
			if l.Received == before.Lines[i].Received && l.Billed == before.Lines[i].Billed {
				continue
			}
			verb = Update
		}
		received, receivedOf := l.Received.Fraction()
		billed, billedOf := l.Billed.Fraction()
		w.add(verb, &orderLineTable, t, id, int64(l.Line), l.SKU.String(), l.Description, l.Unit.String(), l.Quantity.Micro(), l.UnitPrice.Minor(),
			received, receivedOf, billed, billedOf)
		if verb == Update {
			continue // its conversions never change
		}
		for k, x := range l.Conversions {
			w.add(Insert, &conversionTable, t, id, int64(l.Line), int64(k+1), x.Unit.String(), x.Numerator, x.Denominator)
		}
	}
}

// orderRow is an order as the database holds it.
type orderRow struct {
	id, vendor, currency                  string
	digits                                int
	freightLimit, taxLimit, freightBilled int64
	lines                                 []orderLineRow
	conversions                           []conversionRow // in order of their lines
}

type orderLineRow struct {
	line                   int
	sku, description, unit string
	quantity, price        int64
	received, billed       ratio
}

type conversionRow struct {
	line                   int
	unit                   string
	numerator, denominator int64
}

func orderLineFields() ([]any, func(*orderRow)) {
	var l orderLineRow
	return []any{&l.line, &l.sku, &l.description, &l.unit, &l.quantity, &l.price,
			&l.received.numerator, &l.received.denominator, &l.billed.numerator, &l.billed.denominator},
		func(o *orderRow) { o.lines = append(o.lines, l) }
}

func conversionFields() ([]any, func(*orderRow)) {
	var x conversionRow
	return []any{&x.line, &x.unit, &x.numerator, &x.denominator}, func(o *orderRow) { o.conversions = append(o.conversions, x) }
}

func (o *orderRow) order() (payables.Order, error) {
	c, err := money.RestoreCurrency(o.currency, o.digits)
	if err != nil {
		return payables.Order{}, err
	}
	r := payables.Order{
		ID: payables.Restore[payables.OrderID](o.id), Vendor: payables.Restore[payables.VendorID](o.vendor), Currency: c,
		FreightLimit: money.FromMinor(o.freightLimit, c), TaxLimit: payables.PercentOfMicro(o.taxLimit), FreightBilled: money.FromMinor(o.freightBilled, c),
		Lines: make([]payables.OrderLine, len(o.lines)),
	}
	rest := o.conversions
	for i, l := range o.lines {
		line := payables.OrderLine{
			Line: l.line, SKU: payables.Restore[payables.SKU](l.sku), Description: l.description, Unit: payables.Restore[payables.Unit](l.unit),
			Quantity: payables.QuantityOfMicro(l.quantity), UnitPrice: money.FromMinor(l.price, c),
		}
		if line.Received, err = l.received.restore(); err != nil {
			return r, err
		}
		if line.Billed, err = l.billed.restore(); err != nil {
			return r, err
		}
		for len(rest) > 0 && rest[0].line == l.line {
			line.Conversions = append(line.Conversions, payables.Conversion{Unit: payables.Restore[payables.Unit](rest[0].unit), Numerator: rest[0].numerator, Denominator: rest[0].denominator})
			rest = rest[1:]
		}
		r.Lines[i] = line
	}
	if len(rest) > 0 {
		return r, fmt.Errorf("a conversion of line %d, which is not there", rest[0].line)
	}
	return r, nil
}
