package payables

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"github.com/refundledger/refundledger/domain/money"
)

// Tolerance is how far a unit price may differ from the ordered one. Both
// bounds must hold; exactly on one is within.
type Tolerance struct {
	Percent Percent // of the ordered price
	Minor   int64   // minor units for one unit of the order's line, >= 0
}

// DefaultTolerance is 2 % and 500 minor units.
func DefaultTolerance() Tolerance { return Tolerance{Percent{2 * micro}, 500} }

// Facts is what a match compares an invoice with, as it is on record.
type Facts struct {
	Claim    NumberClaim // of the invoice's number
	Order    *Order      // the order that the invoice names, nil if there is none; of a credit note, the credited invoice's
	Credited *Invoice    // the invoice that a credit note credits, nil if it names none
	// Rivals are other undecided invoices of the order, for display: a decision
	// does not see them, since it is made on what is there when it is made.
	Rivals []Rival
}

// Rival is an undecided invoice that names the same order.
type Rival struct {
	Invoice Invoice
	Claim   NumberClaim // of its number
}

// Matched is what a match found.
type Matched struct {
	Findings       []Finding // in the order of the codes, then of the lines
	Blocking       bool      // an approval needs an override, if it is not a duplicate: a finding is blocking, or something is synthesised
	Recommendation Action    // reject a duplicate, hold what is blocked, else approve
	Lacking        Lacking
}

// Match compares an invoice with its order, what was received and billed on it,
// and the other documents that carry its number. It is a function of its
// arguments: the order of lines does not matter, and a line that is split into
// parts whose amounts are exact adds up to the same findings; what rounding
// makes of many parts is compared with the tolerance. It fails only if a
// quantity can not be computed exactly (PolicyViolation quantity_out_of_range).
//
// What is synthesised is no evidence, be it of the invoice or of the one that it
// credits: a [TotalLine] is compared with nothing, amounts of a currency that was
// filled in with none of another document, and a total may hold tax or freight
// that is not known.
func Match(i Invoice, f Facts, t Tolerance) (Matched, error) {
	m, err := match(i, f, t)
	if err != nil {
		return Matched{}, err
	}
	return m, nil
}

// match returns, if a quantity can not be computed, what could be found without
// it beside the error.
func match(i Invoice, f Facts, t Tolerance) (Matched, error) {
	m := matcher{invoice: i, facts: f, tolerance: t}
	err := m.run()
	slices.SortStableFunc(m.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(reported[a.Code], reported[b.Code]), cmp.Compare(a.Line, b.Line))
	})
	out := Matched{Findings: m.findings, Recommendation: Approve, Lacking: lacking(i, f.Credited)}
	if out.Lacking.any() {
		out.Blocking, out.Recommendation = true, Hold
	}
	for _, x := range m.findings {
		switch {
		case x.Code == DuplicateInvoice:
			out.Blocking, out.Recommendation = true, Reject
		case x.Code.blocking && !out.Blocking:
			out.Blocking, out.Recommendation = true, Hold
		}
	}
	return out, err
}

// reported is the place of each code in the order of a report.
var reported = func() map[Code]int {
	places := map[Code]int{}
	for n, c := range FindingCodes() {
		places[c] = n
	}
	return places
}()

// Has reports whether the code was found.
func (m Matched) Has(c Code) bool {
	return slices.ContainsFunc(m.Findings, func(f Finding) bool { return f.Code == c })
}

type matcher struct {
	invoice   Invoice
	facts     Facts
	tolerance Tolerance
	findings  []Finding
}

func (m *matcher) find(f Finding) { m.findings = append(m.findings, f) }

// run looks at one thing after the other. If one can not be computed, it says
// so at the end and nothing is found about that one.
func (m *matcher) run() (err error) {
	step := func(find func()) {
		before := len(m.findings)
		if failed := exact(find); failed != nil {
			m.findings, err = m.findings[:before], failed
		}
	}
	i, o, c := m.invoice, m.facts.Order, m.facts.Credited
	if first, dup := m.facts.Claim.Before(i.ID); dup {
		m.find(Finding{Code: DuplicateInvoice, Invoices: []InvoiceID{first}})
	}
	if i.Document == Bill {
		if len(i.Lines) == 0 {
			m.find(Finding{Code: NoLines})
		}
		if o == nil {
			m.find(Finding{Code: MissingPO, Found: i.Order.text})
		} else {
			m.parties(o.Vendor, o.Currency, true)
			if !i.synthesised(FieldLines) {
				step(func() { m.lines(o) })
			}
			step(func() { m.charges(o) })
		}
	} else if c != nil {
		m.parties(c.Vendor, c.Currency, !c.synthesised(FieldCurrency), c.ID)
		step(func() { m.creditCap(c) })
	} else if o != nil {
		m.parties(o.Vendor, o.Currency, true)
	}
	m.total()
	if i.Status.Final() {
		m.find(Finding{Code: AlreadyDecided, Found: i.Status.name})
	}
	return err
}

// parties compares the vendor and the currency with those of the order, or of
// the credited invoice, which is named then. known: the currency is on record.
func (m *matcher) parties(v VendorID, c money.Currency, known bool, credited ...InvoiceID) {
	if m.invoice.Vendor != v {
		m.find(Finding{Code: VendorMismatch, Expected: v.text, Found: m.invoice.Vendor.text, Invoices: credited})
	}
	if m.invoice.Currency != c && known && !m.invoice.synthesised(FieldCurrency) {
		m.find(Finding{Code: CurrencyMismatch, Expected: c.String(), Found: m.invoice.Currency.String(), Invoices: credited})
	}
}

// billed is what an invoice bills of one line of the order.
type billed struct {
	quantity Ratio
	amount   int64 // of the lines, each rounded, in minor units
	exact    wide  // quantity times price, in millionths of a minor unit
	strange  Unit  // a unit without a conversion, or none
	price    *Finding
	variance int64 // of price, to keep the worst one
	any      bool
}

// lines compares the lines of a bill with those of its order, all that share a
// line of the order together.
func (m *matcher) lines(o *Order) {
	i := m.invoice
	sums := make([]billed, len(o.Lines))
	unknown := map[int]bool{}
	samePrices := i.Currency == o.Currency && !i.synthesised(FieldCurrency)
	for _, l := range i.Lines {
		at := o.find(l.OrderLine)
		if at < 0 {
			if !unknown[l.OrderLine] {
				unknown[l.OrderLine] = true
				m.find(Finding{Code: UnknownPOLine, Line: l.OrderLine})
			}
			continue
		}
		b := &sums[at]
		b.any = true
		c, known := o.Lines[at].in(l.Unit)
		if !known {
			// The lowest of several, so that the order of lines does not matter.
			if b.strange == (Unit{}) || l.Unit.text < b.strange.text {
				b.strange = l.Unit
			}
			continue
		}
		b.quantity = b.quantity.plus(l.Quantity.in(c))
		if minor, ok := l.Quantity.amount(l.UnitPrice); ok && minor <= MaxMinor {
			b.amount += minor
			b.exact = b.exact.plus(product(l.Quantity.micro, l.UnitPrice.Minor()))
		}
		if samePrices {
			m.price(b, o.Lines[at], l, c)
		}
	}
	if samePrices {
		for at := range sums {
			m.rounding(&sums[at], o.Lines[at])
		}
	}
	rivals := m.rivals(o)
	for at, b := range sums {
		if b.any {
			m.line(o.Lines[at], b, rivals[at])
		}
	}
}

// line reports what was found about one line of the order.
func (m *matcher) line(l OrderLine, b billed, r rivalry) {
	undecided := !m.invoice.Status.Final()
	if b.strange != (Unit{}) {
		m.find(Finding{Code: UnitMismatch, Line: l.Line, Expected: l.Unit.text, Found: b.strange.text})
	}
	all := l.Billed // an approved invoice is in it
	if m.invoice.Status != Approved {
		all = all.plus(b.quantity)
	}
	switch {
	case l.Received.Sign() <= 0:
		m.find(Finding{Code: NoGoodsReceipt, Line: l.Line, Found: all.String()})
	case all.Cmp(l.Received) > 0:
		m.find(Finding{Code: BilledOverReceived, Line: l.Line, Expected: l.Received.String(), Found: all.String()})
	case undecided && b.quantity.Sign() > 0 && r.quantity.Sign() > 0:
		_ = exact(func() { // what can not be added up exactly is not told: it decides nothing
			if together := all.plus(r.quantity); together.Cmp(l.Received) > 0 {
				m.find(Finding{Code: CompetingClaim, Line: l.Line, Expected: l.Received.String(), Found: together.String(), Invoices: r.invoices})
			}
		})
	}
	if ordered := l.Quantity.in(one); all.Cmp(ordered) > 0 {
		m.find(Finding{Code: BilledOverOrdered, Line: l.Line, Expected: ordered.String(), Found: all.String()})
	}
	if b.price != nil {
		m.find(*b.price)
	}
}

// price compares the unit price of a line with the ordered one, both for one
// unit of the order's line, and keeps the worst finding of those that share it.
// Of p for each invoiced unit, of which c is one, p × denominator is compared
// with the ordered price × numerator: whole numbers.
func (m *matcher) price(b *billed, o OrderLine, l InvoiceLine, c conversion) {
	within, difference := m.tolerance.holds(l.UnitPrice.Minor(), o.UnitPrice.Minor(), c)
	if difference == 0 {
		return
	}
	found := Finding{Code: PriceVariance, Line: o.Line, Expected: o.UnitPrice.Major(), Found: l.UnitPrice.Major()}
	if c != one {
		found.Found += "/" + l.Unit.text
	}
	if within {
		found.Code = PriceWithinTolerance
	}
	worse := b.price == nil ||
		found.Code == PriceVariance && b.price.Code == PriceWithinTolerance ||
		found.Code == b.price.Code && (difference > b.variance || difference == b.variance && found.Found < b.price.Found)
	if worse {
		b.price, b.variance = &found, difference
	}
}

// rounding looks at what the amounts of many lines come to: each is rounded to
// a minor unit, so that thousands of small ones could double the price. What
// rounding moves by more than one minor unit in all has to be within the
// tolerance of the ordered price.
func (m *matcher) rounding(b *billed, o OrderLine) {
	var moved wide
	if paid := product(b.amount, micro); b.exact.atMost(paid) {
		moved = paid.minus(b.exact)
	} else {
		moved = b.exact.minus(paid)
	}
	if moved.atMost(wide{lo: micro}) || b.price != nil && b.price.Code == PriceVariance {
		return
	}
	agreed := b.quantity.big()
	agreed.Mul(agreed, new(big.Rat).SetInt64(o.UnitPrice.Minor()))
	gap := new(big.Rat).SetInt64(b.amount)
	gap.Abs(gap.Sub(gap, agreed))
	most := b.quantity.big()
	most.Mul(most, new(big.Rat).SetInt64(m.tolerance.Minor))
	part := new(big.Rat).Mul(agreed, big.NewRat(m.tolerance.Percent.micro, 100*micro))
	if gap.Cmp(most) <= 0 && gap.Cmp(part) <= 0 {
		return
	}
	paid := money.FromMinor(b.amount, m.invoice.Currency)
	b.price = &Finding{Code: PriceVariance, Line: o.Line, Expected: o.UnitPrice.Major(), Found: paid.Major() + " for " + b.quantity.String()}
}

// holds reports whether a price is within the tolerance of the ordered one, and
// by how much it differs: in minor units for one unit of the order's line,
// rounded up and at most what 64 bits hold, for an order among differences only.
func (t Tolerance) holds(price, ordered int64, c conversion) (within bool, difference int64) {
	if c == one {
		difference = price - ordered
		if difference < 0 {
			difference = -difference
		}
		return difference <= t.Minor && t.Percent.covers(difference, ordered), difference
	}
	num, den := big.NewInt(c.numerator), big.NewInt(c.denominator)
	agreed := new(big.Int).Mul(big.NewInt(ordered), num)
	gap := new(big.Int).Mul(big.NewInt(price), den)
	gap.Abs(gap.Sub(gap, agreed))
	inCap := gap.Cmp(new(big.Int).Mul(big.NewInt(t.Minor), num)) <= 0
	part := new(big.Int).Mul(gap, big.NewInt(100*micro))
	inPercent := part.Cmp(agreed.Mul(agreed, big.NewInt(t.Percent.micro))) <= 0
	up := new(big.Int).Add(gap, new(big.Int).Sub(num, big.NewInt(1)))
	difference = math.MaxInt64
	if up.Div(up, num); up.IsInt64() {
		difference = up.Int64()
	}
	return inCap && inPercent, difference
}

// rivalry is what other open invoices bill of one line of the order.
type rivalry struct {
	quantity Ratio
	invoices []InvoiceID
}

// rivals adds up what other undecided invoices bill, line by line. A duplicate
// can not be approved, so it is nobody's rival and has none.
func (m *matcher) rivals(o *Order) []rivalry {
	all := make([]rivalry, len(o.Lines))
	if _, dup := m.facts.Claim.Before(m.invoice.ID); dup {
		return all
	}
	others := slices.Clone(m.facts.Rivals)
	slices.SortFunc(others, func(a, b Rival) int { return cmp.Compare(a.Invoice.ID.text, b.Invoice.ID.text) })
	for _, r := range others {
		i := r.Invoice
		_, dup := r.Claim.Before(i.ID)
		if dup || i.ID == m.invoice.ID || i.Order != o.ID || i.Document != Bill || i.Status.Final() {
			continue
		}
		with := slices.Clone(all)
		tooFine := exact(func() {
			for at, q := range claims(i, o) {
				if q.Sign() == 0 {
					continue
				}
				with[at].quantity = with[at].quantity.plus(q)
				if len(with[at].invoices) < MaxNamed {
					with[at].invoices = append(slices.Clip(with[at].invoices), i.ID)
				}
			}
		})
		if tooFine == nil { // else it can not be approved, and is nobody's rival
			all = with
		}
	}
	return all
}

// claims is what the lines of a document come to on each line of the order, in
// its unit. Lines of no line of the order, or in a unit without a conversion,
// come to nothing.
func claims(i Invoice, o *Order) []Ratio {
	sums := make([]Ratio, len(o.Lines))
	for _, l := range i.Lines {
		at := o.find(l.OrderLine)
		if at < 0 {
			continue
		}
		if c, known := o.Lines[at].in(l.Unit); known {
			sums[at] = sums[at].plus(l.Quantity.in(c))
		}
	}
	return sums
}

// charges compares freight and tax with what was agreed. Freight in another
// currency than the order's is not comparable, and blocked by that; nor is it in
// one that nobody wrote, nor tax on lines that nobody wrote.
func (m *matcher) charges(o *Order) {
	i := m.invoice
	if i.Currency == o.Currency && !i.synthesised(FieldCurrency) {
		freight := o.FreightBilled
		if i.Status != Approved { // an approved invoice is in it
			var err error
			if freight, err = add(freight, i.Freight); err != nil {
				panic(errTooFine)
			}
		}
		if freight.Minor() > o.FreightLimit.Minor() && i.Freight.Sign() > 0 {
			m.find(Finding{Code: ChargeNotOrdered, Expected: "freight of " + o.FreightLimit.Major(), Found: "freight of " + freight.Major()})
			return // one finding for the whole invoice
		}
	}
	if i.synthesised(FieldLines) {
		return
	}
	if lines := i.lines(); !o.TaxLimit.rounded(i.Tax.Minor(), lines.Minor()) {
		m.find(Finding{Code: ChargeNotOrdered, Expected: "tax of " + o.TaxLimit.String() + "% of " + lines.Major(), Found: "tax of " + i.Tax.Major()})
	}
}

// lines is the sum of the declared amounts of the lines.
func (i Invoice) lines() money.Amount {
	all := money.FromMinor(0, i.Currency)
	for _, l := range i.Lines {
		all = sum(all, l.Amount)
	}
	return all
}

// sum adds amounts of a document: MaxMinor and MaxLines keep them in 64 bits.
func sum(a, b money.Amount) money.Amount {
	s, err := add(a, b)
	if err != nil {
		panic("payables: " + err.Error())
	}
	return s
}

// add returns a + b. The zero value, of no currency, adds nothing.
func add(a, b money.Amount) (money.Amount, error) {
	switch {
	case b == money.Amount{}:
		return a, nil
	case a == money.Amount{}:
		return b, nil
	}
	return a.Add(b)
}

// total checks the document against itself: each amount is quantity times
// price, and the total is the sum of lines, tax and freight.
func (m *matcher) total() {
	i := m.invoice
	right := money.FromMinor(0, i.Currency)
	wrong := false
	for _, l := range i.Lines {
		minor, ok := l.Quantity.amount(l.UnitPrice)
		wrong = wrong || !ok || minor != l.Amount.Minor()
		if ok && minor <= MaxMinor {
			right = sum(right, money.FromMinor(minor, i.Currency))
		}
	}
	right = sum(sum(right, i.Tax), i.Freight)
	more := i.synthesised(FieldTax) || i.synthesised(FieldFreight) // than is known may be in the total
	if wrong || right.Minor() > i.Total.Minor() || right.Minor() < i.Total.Minor() && !more {
		m.find(Finding{Code: TotalMismatch, Expected: right.Major(), Found: i.Total.Major()})
	}
}

// creditCap compares a credit note with what is left of the invoice it credits:
// its total, and of each line the quantity that was billed. Only what has been
// approved can be credited. Totals are compared only in a currency that both say.
// A note of another vendor credits nothing of it; see [giveBack].
func (m *matcher) creditCap(c *Invoice) {
	note := m.invoice
	if note.Vendor != c.Vendor {
		return
	}
	of := []InvoiceID{c.ID}
	limit := money.FromMinor(0, c.Currency)
	if c.Status == Approved {
		limit = c.Total
	}
	if note.Currency == c.Currency && !note.synthesised(FieldCurrency) && !c.synthesised(FieldCurrency) {
		all := c.Credited // an approved note is in it
		if note.Status != Approved {
			var err error
			if all, err = add(all, note.Total); err != nil {
				panic(errTooFine)
			}
		}
		if all.Minor() > limit.Minor() {
			m.find(Finding{Code: CreditExceedsInvoice, Expected: limit.Major(), Found: all.Major(), Invoices: of})
		}
	}
	o := m.facts.Order
	if o == nil || note.Status == Approved || c.Status == Approved && !c.consumed() {
		return
	}
	billed, credited := claims(*c, o), creditedOn(*c, o)
	if c.Status != Approved {
		billed = make([]Ratio, len(o.Lines))
	}
	for at, q := range givenBack(note, *c, o) {
		if all := credited[at].plus(q); q.Sign() > 0 && all.Cmp(billed[at]) > 0 {
			m.find(Finding{Code: CreditExceedsInvoice, Line: o.Lines[at].Line, Expected: billed[at].String(), Found: all.String(), Invoices: of})
		}
	}
}

// givenBack is what a credit note gives back of each line of the order. A line
// that credits less for one than the invoice charged corrects its price and
// gives nothing back, and so do lines whose amounts do not come to that price,
// or a note without the tax on them: else goods could be given back for a cent,
// or their tax be paid again. Nor does a note of which that is not known, or on an
// invoice of which it is not.
func givenBack(note, c Invoice, o *Order) []Ratio {
	for _, f := range []Field{FieldLines, FieldCurrency, FieldTax} {
		if note.synthesised(f) || c.synthesised(f) {
			return make([]Ratio, len(o.Lines))
		}
	}
	charged := make([]*big.Rat, len(o.Lines)) // the highest price billed for one
	each := func(i Invoice, line func(at int, q Ratio, price *big.Rat, l InvoiceLine)) {
		for _, l := range i.Lines {
			at := o.find(l.OrderLine)
			if at < 0 {
				continue
			}
			if u, known := o.Lines[at].in(l.Unit); known {
				price := new(big.Rat).SetInt64(l.UnitPrice.Minor())
				line(at, l.Quantity.in(u), price.Mul(price, big.NewRat(u.denominator, u.numerator)), l)
			}
		}
	}
	each(c, func(at int, _ Ratio, price *big.Rat, _ InvoiceLine) {
		if charged[at] == nil || price.Cmp(charged[at]) > 0 {
			charged[at] = price
		}
	})
	back, credited := make([]Ratio, len(o.Lines)), make([]int64, len(o.Lines))
	each(note, func(at int, q Ratio, price *big.Rat, l InvoiceLine) {
		if charged[at] == nil || price.Cmp(charged[at]) >= 0 {
			back[at] = back[at].plus(q)
			credited[at] += l.Amount.Minor()
		}
	})
	for at := range back {
		if charged[at] == nil {
			continue
		}
		worth := back[at].big()
		worth.Mul(worth, charged[at])
		if worth.Sub(worth, big.NewRat(1, 2)).Cmp(new(big.Rat).SetInt64(credited[at])) > 0 {
			back[at] = Ratio{}
		}
	}
	if !taxCredited(note, c, credited) {
		return make([]Ratio, len(o.Lines))
	}
	return back
}

// taxCredited reports whether a credit note gives the tax back that was charged
// on what it credits, rounded half up.
func taxCredited(note, c Invoice, credited []int64) bool {
	var goods int64
	for _, n := range credited {
		goods += n
	}
	lines := c.lines().Minor()
	if lines == 0 {
		return true
	}
	share := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(c.Tax.Minor()), big.NewInt(goods)), big.NewInt(lines))
	return share.Sub(share, big.NewRat(1, 2)).Cmp(new(big.Rat).SetInt64(note.Tax.Minor())) <= 0
}

// creditedOn is what has been credited of an invoice on each line of the order.
func creditedOn(i Invoice, o *Order) []Ratio {
	sums := make([]Ratio, len(o.Lines))
	for _, l := range i.Lines {
		if at := o.find(l.OrderLine); at >= 0 {
			sums[at] = sums[at].plus(l.Credited)
		}
	}
	return sums
}
