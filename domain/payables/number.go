package payables

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/text"
)

// MaxNumber bounds an invoice number, in code points.
const MaxNumber = 64

// Number is an invoice number as the vendor wrote it.
type Number struct{ written, normal string }

// ParseNumber accepts 1 to [MaxNumber] characters of one line, at least one of
// them a letter or a digit.
func ParseNumber(s string) (Number, error) {
	n := Number{s, normal(s)}
	if utf8.RuneCountInString(s) > MaxNumber || !utf8.ValidString(s) || strings.TrimSpace(s) != s || !text.IsLine(withoutFormat(s)) || n.normal == "" {
		return Number{}, fmt.Errorf("must be one line of 1 to %d characters, at least one of them a letter or a digit, without spaces around it", MaxNumber)
	}
	return n, nil
}

// String returns the number as the vendor wrote it.
func (n Number) String() string { return n.written }

// Normal returns what two spellings of one number have in common: compatibility
// forms (NFKC) and case folded, white space, invisible characters and dashes,
// slashes and dots gone, leading zeros stripped from each group of digits, and
// the boundaries between groups kept: 0071-000345 is 71-345, and 10-0 is not
// 1-00. A group of digits ends at a separator or a letter.
func (n Number) Normal() string { return n.normal }

func normal(s string) string {
	s = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s)))
	var groups []string
	var group strings.Builder
	var digits bool // the group is one of digits
	end := func() {
		if group.Len() == 0 {
			return
		}
		g := group.String()
		if digits {
			if g = strings.TrimLeft(g, "0"); g == "" {
				g = "0"
			}
		}
		groups = append(groups, g)
		group.Reset()
	}
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Cf, r): // nobody sees it, so it separates nothing
			continue
		case unicode.IsSpace(r), separates(r):
			end()
			continue
		}
		if d := unicode.IsDigit(r); d != digits {
			end()
			digits = d
		}
		group.WriteRune(r)
	}
	end()
	n := strings.Join(groups, "-")
	if !strings.ContainsFunc(n, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return ""
	}
	return n
}

// separates reports whether r is a dash, a slash or a dot.
func separates(r rune) bool {
	return unicode.In(r, unicode.Pd) || strings.ContainsRune(`/\.·_`+"\u2212\u2044\u2215\u30fb", r)
}

func withoutFormat(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
}

// NumberClaimKind is the kind of the records of invoice numbers.
var NumberClaimKind = ledger.Kind{Name: "number_claim"}

// MaxSameNumber is how many documents of one vendor may carry one number.
const MaxSameNumber = 100

// NumberClaim is the record of one invoice number of one vendor: who carries
// it, the invoice entered first at the front. Invoices and credit notes have
// numbers of their own.
type NumberClaim struct {
	Vendor   VendorID
	Document DocumentKind
	Normal   string
	Claims   []Claimed // in order of entry; must not be changed in place
}

// Claimed is one invoice that carries a number.
type Claimed struct {
	Invoice InvoiceID
	// Rejected: it does not count any more, so that a corrected one can be paid.
	Rejected bool
}

// ClaimRef names the record of a vendor's number for one kind of document.
func ClaimRef(v VendorID, k DocumentKind, number Number) ledger.Ref {
	return claimRef(v, k, number.normal)
}

func claimRef(v VendorID, k DocumentKind, normal string) ledger.Ref {
	return ledger.Ref{Kind: NumberClaimKind, ID: v.text + "/" + k.name + "/" + normal}
}

// Ref names the record.
func (c NumberClaim) Ref() ledger.Ref { return claimRef(c.Vendor, c.Document, c.Normal) }

// Before returns the invoice that was entered before id, carries the same
// number and is not rejected; ok is false if there is none, so id is the
// original.
func (c NumberClaim) Before(id InvoiceID) (first InvoiceID, ok bool) {
	for _, x := range c.Claims {
		if x.Invoice == id {
			break
		}
		if !x.Rejected {
			return x.Invoice, true
		}
	}
	return InvoiceID{}, false
}

// reject returns the claim after the rejection of id.
func (c NumberClaim) reject(id InvoiceID) NumberClaim {
	claims := make([]Claimed, len(c.Claims))
	copy(claims, c.Claims)
	for i := range claims {
		if claims[i].Invoice == id {
			claims[i].Rejected = true
		}
	}
	c.Claims = claims
	return c
}
