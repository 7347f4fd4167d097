package payables

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/text"
)

// MaxNumber bounds an invoice number, in bytes of UTF-8.
const MaxNumber = 36

// Number is an invoice number as the vendor wrote it.
type Number struct{ written, normal string }

var errNumber = fmt.Errorf("must be one line of 1 to %d bytes, at least one of them a letter or a digit, without spaces around it or characters that change the direction of text", MaxNumber)

// ParseNumber accepts one line of 1 to [MaxNumber] bytes, at least one of
// them a letter or a digit. Characters that nobody sees are kept, since the
// vendor wrote them, but not those that [text.Parse] refuses.
func ParseNumber(s string) (Number, error) {
	trimmed, err := text.Parse(s, text.Bounds{Min: 1, Max: MaxNumber, MaxCodePoints: MaxNumber})
	if err != nil || trimmed != s || len(s) > MaxNumber || !text.IsLine(text.Seen(s)) {
		return Number{}, errNumber
	}
	n := Number{s, normal(s)}
	if n.normal == "" {
		return Number{}, errNumber
	}
	return n, nil
}

// String returns the number as the vendor wrote it.
func (n Number) String() string { return n.written }

// Normal returns what two spellings of one number have in common: compatibility
// forms (NFKC) and case folded, white space, invisible characters, punctuation
// (dashes, slashes, dots) and symbols gone, leading zeros stripped from each group of digits, and
// the boundaries between groups kept: 0071-000345 is 71-345, and 10-0 is not
// 1-00. A group of digits ends at a separator or a letter; digits of other
// scripts are the figures that they are.
func (n Number) Normal() string { return n.normal }

func normal(s string) string {
	for range 4 { // what is taken out or folded may let its neighbours compose; twice does
		before := s
		s = norm.NFKC.String(strings.Map(cherokee, cases.Fold().String(norm.NFKD.String(text.Seen(s)))))
		if s == before {
			break
		}
	}
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
		if unicode.IsSpace(r) || separates(r) {
			end()
			continue
		}
		r, d := figure(r)
		if d != digits {
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

// cherokee returns the upper case of a Cherokee letter, which is the folded one:
// cases.Fold exchanges the two.
func cherokee(r rune) rune {
	if unicode.Is(unicode.Cherokee, r) {
		return unicode.ToUpper(r)
	}
	return r
}

// separates reports whether r is a dash, a slash or a dot, or what else stands
// between the parts of a number: 71:345, 71#345 and 71-345 are one number.
func separates(r rune) bool {
	return unicode.IsPunct(r) || unicode.IsSymbol(r) || r == blank
}

// blank is the braille pattern without dots: a symbol that looks like a space.
const blank = '\u2800'

// figure returns the ASCII digit that stands for a decimal digit of any script.
func figure(r rune) (rune, bool) {
	switch {
	case '0' <= r && r <= '9':
		return r, true
	case r < 0x80 || !unicode.IsDigit(r):
		return r, false
	}
	// The digits of a script stand together, the zero first.
	for _, x := range unicode.Nd.R16 {
		if rune(x.Lo) <= r && r <= rune(x.Hi) {
			return '0' + (r-rune(x.Lo))%10, true
		}
	}
	for _, x := range unicode.Nd.R32 {
		if rune(x.Lo) <= r && r <= rune(x.Hi) {
			return '0' + (r-rune(x.Lo))%10, true
		}
	}
	return r, false
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
