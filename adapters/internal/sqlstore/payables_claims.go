package sqlstore

import (
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/payables"
)

// claimTable has a row for each document that carries a number.
var claimTable = Table{"number_claims", []Column{
	{"tenant", Text, Key},
	{"vendor", Text, Key},
	{"document", Text, Key},
	{"normal", Text, Key},
	{"position", Int, Key},
	{"invoice", Text, Fixed},
	{"rejected", Bool, State},
}}

// claimCodec keeps the claims on numbers. A record is all rows of one number, so
// it is found by the start of their key. Another process that adds to a number
// at the same time finds the position taken.
type claimCodec struct {
	unanswered
	dialect            Dialect
	keys               []Column
	byKey, byKeyLocked string
}

func newClaimCodec(d Dialect) *claimCodec {
	c := &claimCodec{dialect: d, keys: []Column{{"tenant", Text, Key}, {"vendor", Text, Key}, {"document", Text, Key}, {"normal", Text, Key}}}
	c.byKey = byKey(d, &claimTable, `r.position, r.invoice, r.rejected`, "ORDER BY r.tenant, r.vendor, r.document, r.normal, r.position", c.keys)
	c.byKeyLocked = c.byKey + d.Lock("", payables.NumberClaimKind.Shared)
	return c
}

func (c *claimCodec) kind() ledger.Kind { return payables.NumberClaimKind }

func (c *claimCodec) stores(r ledger.Record) bool {
	_, ok := r.(payables.NumberClaim)
	return ok
}

func (c *claimCodec) load(refs []committer.Name, lock bool, put func(int, ledger.Record)) ([]Step, func() error) {
	var keys [][]any
	var claims []*payables.NumberClaim
	var at []int // the place in refs of each key
	for i, n := range refs {
		// Only the number itself may hold a slash.
		vendor, rest, _ := strings.Cut(n.Ref.ID, "/")
		document, normal, _ := strings.Cut(rest, "/")
		kind, err := payables.ParseDocumentKind(document)
		if err != nil {
			continue
		}
		keys, at = append(keys, []any{n.Tenant.String(), vendor, document, normal}), append(at, i)
		claims = append(claims, &payables.NumberClaim{Vendor: payables.Restore[payables.VendorID](vendor), Document: kind, Normal: normal})
	}
	if len(keys) == 0 {
		return nil, nothing
	}
	query := c.byKey
	if lock {
		query = c.byKeyLocked
	}
	step := Step{query, c.dialect.KeyArgs(c.keys, keys), func(r Row) error {
		var n, position int
		var invoice string
		var rejected flag
		if err := r.Scan(&n, &position, &invoice, &rejected); err != nil {
			return err
		}
		claim := claims[n-1]
		if position != len(claim.Claims)+1 {
			return unreadable("the claim %d on the number %q is not there", len(claim.Claims)+1, claim.Normal)
		}
		claim.Claims = append(claim.Claims, payables.Claimed{Invoice: payables.Restore[payables.InvoiceID](invoice), Rejected: bool(rejected)})
		return nil
	}}
	return []Step{step}, func() error {
		for k, claim := range claims {
			if len(claim.Claims) > 0 {
				put(at[k], *claim)
			}
		}
		return nil
	}
}

func (c *claimCodec) write(w *writes, ch committer.Changed) {
	claim := ch.After.(payables.NumberClaim)
	before, _ := ch.Before.(payables.NumberClaim)
	for i, x := range claim.Claims {
		verb := Insert
		if i < len(before.Claims) {
			if x == before.Claims[i] {
				continue
			}
			verb = Update
		}
		w.add(verb, &claimTable, ch.Tenant.String(), claim.Vendor.String(), claim.Document.String(), claim.Normal, int64(i+1), x.Invoice.String(), x.Rejected)
	}
}
