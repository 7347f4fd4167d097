package sqlstore

import (
	"context"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/payables"
)

var vendorTable = Table{"vendors", []Column{
	{"tenant", Text, Key},
	{"id", Text, Key},
	{"name", Text, State},
	{"version", Int, State},
	{"head_hash", Bytes, State},
}}

var vendorBalanceTable = Table{"vendor_balances", []Column{
	{"tenant", Text, Key},
	{"vendor", Text, Key},
	{"currency", Text, Key},
	{"digits", Int, Fixed},
	{"balance_minor", Int, State},
}}

const (
	vendorColumns  = `r.id, r.name, r.version, r.head_hash`
	balanceColumns = `l.currency, l.digits, l.balance_minor`
	vendorPage     = `SELECT ` + vendorColumns + ` FROM vendors r
		WHERE r.tenant = $1 AND r.id > $2 ORDER BY r.id LIMIT $3`
	vendorPageBalances = `SELECT l.vendor, ` + balanceColumns + `
		FROM (SELECT tenant, id FROM vendors WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3) r
		JOIN vendor_balances l ON l.tenant = r.tenant AND l.vendor = r.id
		ORDER BY l.vendor, l.currency`
)

type vendorCodec struct {
	document[payables.Vendor, vendorRow]
	unanswered
}

func newVendorCodec(d Dialect) *vendorCodec {
	return &vendorCodec{document: document[payables.Vendor, vendorRow]{
		dialect: d, of: payables.VendorKind, keys: byID(), name: isID,
		byKey: byIDQuery(d, "vendors", vendorColumns),
		lock:  d.Lock("r.tenant, r.id", payables.VendorKind.Shared),
		head:  func(v *vendorRow) []any { return []any{&v.id, &v.name, &v.version, &v.hash} },
		parts: []part[vendorRow]{{partQuery(d, "vendor_balances", "vendor", balanceColumns, "l.currency"), balanceFields}},
		record: func(v *vendorRow) (payables.Vendor, error) {
			r, err := v.vendor()
			if err != nil {
				err = damaged(journal.Subject{Kind: payables.VendorKind.Name, ID: v.id}, v.version, err)
			}
			return r, err
		},
	}}
}

func (c *vendorCodec) write(w *writes, ch committer.Changed) {
	v := ch.After.(payables.Vendor)
	t := ch.Tenant.String()
	before, there := ch.Before.(payables.Vendor)
	verb := Insert
	if there {
		verb = Update
	}
	w.add(verb, &vendorTable, t, v.ID.String(), v.Name, v.Head.Number, v.Head.Hash[:])
	had := make(map[string]money.Amount, len(before.Balances))
	for _, b := range before.Balances {
		had[b.Currency().String()] = b
	}
	for _, b := range v.Balances {
		verb := Insert
		if old, there := had[b.Currency().String()]; there {
			if old == b {
				continue
			}
			verb = Update
		}
		w.add(verb, &vendorBalanceTable, t, v.ID.String(), b.Currency().String(), int64(b.Currency().Digits()), b.Minor())
	}
}

// vendorRow is a vendor as the database holds it.
type vendorRow struct {
	id, name string
	version  int64
	hash     []byte
	balances []balanceRow
}

type balanceRow struct {
	currency string
	digits   int
	minor    int64
}

func balanceFields() ([]any, func(*vendorRow)) {
	var b balanceRow
	return []any{&b.currency, &b.digits, &b.minor}, func(v *vendorRow) { v.balances = append(v.balances, b) }
}

func (v *vendorRow) vendor() (payables.Vendor, error) {
	r := payables.Vendor{ID: payables.Restore[payables.VendorID](v.id), Name: v.name, Head: journal.Head{Number: v.version}}
	var err error
	if r.Head.Hash, err = hash(v.hash); err != nil {
		return r, err
	}
	for _, b := range v.balances {
		c, err := money.RestoreCurrency(b.currency, b.digits)
		if err != nil {
			return r, err
		}
		r.Balances = append(r.Balances, money.FromMinor(b.minor, c))
	}
	return r, nil
}

// ListVendors implements ports.Payables.
func (s *Store) ListVendors(ctx context.Context, t access.Tenant, after string, limit int) ([]payables.Vendor, error) {
	args, ok := pageArgs(t, after, limit)
	if !ok {
		return nil, nil
	}
	return s.vendors.page(ctx, s, func(v *vendorRow) string { return v.id }, vendorPage, []string{vendorPageBalances}, args)
}
