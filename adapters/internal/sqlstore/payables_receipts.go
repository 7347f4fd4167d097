package sqlstore

import (
	"context"
	"math"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/payables"
)

var receiptTable = Table{"goods_receipts", []Column{
	{"tenant", Text, Key},
	{"id", Text, Key},
	{"purchase_order", Text, Fixed},
	{"vendor", Text, Fixed},
	{"movement", Text, Fixed},
	{"received_at", Text, Fixed},
}}

var receiptLineTable = Table{"goods_receipt_lines", []Column{
	{"tenant", Text, Key},
	{"receipt", Text, Key},
	{"position", Int, Key},
	{"order_line", Int, Fixed},
	{"quantity_micro", Int, Fixed},
	{"unit", Text, Fixed},
}}

const (
	receiptColumns     = `r.id, r.purchase_order, r.vendor, r.movement, r.received_at`
	receiptLineColumns = `l.order_line, l.quantity_micro, l.unit`
	receiptPage        = `SELECT ` + receiptColumns + ` FROM goods_receipts r
		WHERE r.tenant = $1 AND r.purchase_order = $2 AND r.id > $3 ORDER BY r.id LIMIT $4`
	receiptPageLines = `SELECT l.receipt, ` + receiptLineColumns + `
		FROM (SELECT tenant, id FROM goods_receipts WHERE tenant = $1 AND purchase_order = $2 AND id > $3 ORDER BY id LIMIT $4) r
		JOIN goods_receipt_lines l ON l.tenant = r.tenant AND l.receipt = r.id
		ORDER BY l.receipt, l.position`
)

// receiptCodec keeps receipts. They never change, so there is nothing to lock.
type receiptCodec struct {
	document[payables.Receipt, receiptRow]
	unanswered
}

func newReceiptCodec(d Dialect) *receiptCodec {
	return &receiptCodec{document: document[payables.Receipt, receiptRow]{
		dialect: d, of: payables.ReceiptKind, keys: byID(), name: isID,
		byKey:  byIDQuery(d, "goods_receipts", receiptColumns),
		head:   func(r *receiptRow) []any { return []any{&r.id, &r.order, &r.vendor, &r.movement, &r.at} },
		parts:  []part[receiptRow]{{partQuery(d, "goods_receipt_lines", "receipt", receiptLineColumns, "l.position"), receiptLineFields}},
		record: (*receiptRow).receipt,
	}}
}

func (c *receiptCodec) write(w *writes, ch committer.Changed) {
	r := ch.After.(payables.Receipt)
	t, id := ch.Tenant.String(), r.ID.String()
	w.add(Insert, &receiptTable, t, id, r.Order.String(), r.Vendor.String(), r.Movement.String(), r.ReceivedAt.String())
	for i, l := range r.Lines {
		w.add(Insert, &receiptLineTable, t, id, int64(i+1), int64(l.OrderLine), l.Quantity.Micro(), l.Unit.String())
	}
}

// receiptRow is a receipt as the database holds it.
type receiptRow struct {
	id, order, vendor, movement, at string
	lines                           []payables.ReceiptLine
}

func receiptLineFields() ([]any, func(*receiptRow)) {
	var line int
	var quantity int64
	var unit string
	return []any{&line, &quantity, &unit}, func(r *receiptRow) {
		r.lines = append(r.lines, payables.ReceiptLine{OrderLine: line, Quantity: payables.QuantityOfMicro(quantity), Unit: payables.Restore[payables.Unit](unit)})
	}
}

func (r *receiptRow) receipt() (payables.Receipt, error) {
	movement, err := payables.ParseMovement(r.movement)
	return payables.Receipt{
		ID: payables.Restore[payables.ReceiptID](r.id), Order: payables.Restore[payables.OrderID](r.order), Vendor: payables.Restore[payables.VendorID](r.vendor),
		Movement: movement, ReceivedAt: payables.Restore[payables.Date](r.at), Lines: r.lines,
	}, err
}

// ListReceipts implements ports.Payables.
func (s *Store) ListReceipts(ctx context.Context, t access.Tenant, o payables.OrderID, after string, limit int) ([]payables.Receipt, error) {
	if limit <= 0 || !storable(after) {
		return nil, nil
	}
	args := []any{t.String(), o.String(), after, int64(min(limit, math.MaxInt32))}
	return s.receipts.page(ctx, s, func(r *receiptRow) string { return r.id }, receiptPage, []string{receiptPageLines}, args)
}
