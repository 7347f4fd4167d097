package payables_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/payables"
)

func request(action, reason string) payables.Request {
	return payables.Request{Invoice: invoiceID("INV-1001"), Action: must(payables.ParseAction(action)), Reason: must(payables.ParseReasonCode(reason))}
}

// override asks with the note given, or with none.
func override(action, note string) payables.Request {
	r := request(action, "MANUAL_OVERRIDE")
	r.Override = true
	if note != "" {
		r.Note = must(payables.ParseNote(note))
	}
	return r
}

func vendor() payables.Vendor { return payables.Vendor{ID: acme, Name: "Acme Ltd"} }

func TestWhatMayBeDecided(t *testing.T) {
	clean := func() *setup { return usd10("1 10 EA 10.00") }
	dear := func() *setup { return usd10("1 10 EA 11.00") }
	duplicate := func() *setup { return usd10("1 10 EA 11.00").but(claims("INV-0900", "INV-1001")) }
	tolerated := func() *setup { return usd10("1 10 EA 10.10") }
	no := func(r payables.Request) payables.Request { r.Override = false; return r }
	because := func(r payables.Request, reason string) payables.Request {
		r.Reason = must(payables.ParseReasonCode(reason))
		return r
	}
	const why = "CFO agreed by mail"
	for _, tt := range []struct {
		name string
		*setup
		request  payables.Request
		override bool   // the principal may
		want     string // the status, or the reason of the refusal
		codes    string // its details
	}{
		{"approve what agrees", clean(), request("approve", "CLEAN_MATCH"), false, "approved", ""},
		{"after a review", clean(), request("approve", "NEEDS_REVIEW"), false, "approved", ""},
		{"approve within the tolerance", tolerated(), request("approve", "CLEAN_MATCH"), false, "approved", ""},
		{"approve for a finding that is not there", clean(), request("approve", "PRICE_VARIANCE"), false, "reason_without_finding", ""},
		{"approve what is blocked", dear(), request("approve", "CLEAN_MATCH"), false, "blocking_findings", "PRICE_VARIANCE"},
		{"approve for the finding that blocks", dear(), request("approve", "PRICE_VARIANCE"), false, "blocking_findings", "PRICE_VARIANCE"},
		{"approve what is blocked for another finding", dear(), request("approve", "NO_LINES"), false, "reason_without_finding", "PRICE_VARIANCE"},
		{"who may override still has to", dear(), request("approve", "CLEAN_MATCH"), true, "blocking_findings", "PRICE_VARIANCE"},
		{"each code is named once, in order", usd10("1 11 EA 11.00", "8 1 EA 1.00", "9 1 EA 1.00"), request("approve", "CLEAN_MATCH"), false, "blocking_findings", "UNKNOWN_PO_LINE BILLED_OVER_RECEIVED BILLED_OVER_ORDERED PRICE_VARIANCE"},

		{"a person approves what is blocked", dear(), override("approve", why), true, "approved", ""},
		{"a person overrides nothing", clean(), override("approve", why), true, "approved", ""},
		{"an agent may not", dear(), override("approve", why), false, "override_not_permitted", "PRICE_VARIANCE"},
		{"nor what agrees", clean(), override("approve", why), false, "override_not_permitted", ""},
		{"nor with an incomplete one", dear(), override("approve", ""), false, "override_incomplete", "PRICE_VARIANCE"},
		{"no note", dear(), override("approve", ""), true, "override_incomplete", "PRICE_VARIANCE"},
		{"9 characters", dear(), override("approve", "123456789"), true, "override_incomplete", "PRICE_VARIANCE"},
		{"10 characters", dear(), override("approve", "1234567890"), true, "approved", ""},
		{"10 characters of two bytes", dear(), override("approve", "éééééééééé"), true, "approved", ""},
		{"space around it does not count", dear(), override("approve", "  123456789 \n"), true, "override_incomplete", "PRICE_VARIANCE"},
		{"nor what has no width", dear(), override("approve", "12345\u200b\u200b\u200b\u200b\u200d\u206067"), true, "override_incomplete", "PRICE_VARIANCE"},
		{"nor what a display ignores", dear(), override("approve", "123456789\ufe0f\u034f\u3164\u115f\u17b4"), true, "override_incomplete", "PRICE_VARIANCE"},
		{"nor white space", dear(), override("approve", "a\n\n\n\n\n\n\n\nb"), true, "override_incomplete", "PRICE_VARIANCE"},
		{"nor a symbol without ink", dear(), override("approve", "1"+strings.Repeat("\u2800", 10)), true, "override_incomplete", "PRICE_VARIANCE"},
		{"nor marks", dear(), override("approve", "a"+strings.Repeat("\u0301", 10)), true, "override_incomplete", "PRICE_VARIANCE"},
		{"10 and some without width", dear(), override("approve", "12345\u200b67890"), true, "approved", ""},
		{"override is not set", dear(), no(override("approve", why)), true, "override_incomplete", "PRICE_VARIANCE"},
		{"another reason", dear(), because(override("approve", why), "CLEAN_MATCH"), true, "override_incomplete", "PRICE_VARIANCE"},
		{"a finding as the reason", dear(), because(override("approve", why), "PRICE_VARIANCE"), true, "override_incomplete", "PRICE_VARIANCE"},

		{"approve a duplicate", duplicate(), request("approve", "CLEAN_MATCH"), false, "duplicate_invoice", "DUPLICATE_INVOICE PRICE_VARIANCE"},
		{"approve a duplicate because it is one", duplicate(), request("approve", "DUPLICATE_INVOICE"), false, "duplicate_invoice", "DUPLICATE_INVOICE PRICE_VARIANCE"},
		{"not even a person may", duplicate(), override("approve", why), true, "duplicate_invoice", "DUPLICATE_INVOICE PRICE_VARIANCE"},
		{"that is said before what an override lacks", duplicate(), override("approve", ""), false, "duplicate_invoice", "DUPLICATE_INVOICE PRICE_VARIANCE"},
		{"hold a duplicate", duplicate(), request("hold", "NEEDS_REVIEW"), false, "on_hold", ""},
		{"reject a duplicate", duplicate(), request("reject", "DUPLICATE_INVOICE"), false, "rejected", ""},
		{"reject a duplicate for its price", duplicate(), request("reject", "PRICE_VARIANCE"), false, "rejected", ""},

		{"reject for the finding", dear(), request("reject", "PRICE_VARIANCE"), false, "rejected", ""},
		{"reject for a finding that is not there", dear(), request("reject", "TOTAL_MISMATCH"), false, "reason_without_finding", "PRICE_VARIANCE"},
		{"reject what agrees", clean(), request("reject", "PRICE_VARIANCE"), false, "reason_without_finding", ""},
		{"reject without evidence", dear(), request("reject", "NEEDS_REVIEW"), false, "reason_without_finding", "PRICE_VARIANCE"},
		{"reject as a clean match", clean(), request("reject", "CLEAN_MATCH"), false, "reason_without_finding", ""},
		{"reject within the tolerance", tolerated(), request("reject", "PRICE_VARIANCE"), false, "reason_without_finding", ""},
		{"a person rejects what agrees", clean(), override("reject", why), true, "rejected", ""},
		{"an agent may not reject so", clean(), override("reject", why), false, "override_not_permitted", ""},
		{"nor without a note", clean(), override("reject", ""), true, "override_incomplete", ""},

		{"hold what agrees", clean(), request("hold", "NEEDS_REVIEW"), false, "on_hold", ""},
		{"hold for a finding", dear(), request("hold", "PRICE_VARIANCE"), false, "on_hold", ""},
		{"hold for a finding that is not there", clean(), request("hold", "PRICE_VARIANCE"), false, "on_hold", ""},
		{"hold what was held", clean().but(status(payables.OnHold)), request("hold", "NEEDS_REVIEW"), false, "on_hold", ""},
		{"approve what was held", clean().but(status(payables.OnHold)), request("approve", "CLEAN_MATCH"), false, "approved", ""},

		{"approved is final", clean().but(status(payables.Approved)), request("hold", "NEEDS_REVIEW"), false, "already_decided", ""},
		{"rejected is final", dear().but(status(payables.Rejected)), override("approve", why), true, "already_decided", ""},
		{"that is said before anything else", duplicate().but(status(payables.Rejected)), override("approve", ""), false, "already_decided", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := payables.Decide(tt.invoice, vendor(), tt.facts, tt.request, payables.Authority{Tolerance: tt.t, MayOverride: tt.override}, op)
			if err != nil {
				f := fault.Of(err)
				want := "POLICY_VIOLATION/" + tt.want
				if tt.want == "already_decided" {
					want = "CONFLICT/" + tt.want
				} else if b, ok := f.Details.(payables.Blocked); !ok || strings.Join(b.Findings, " ") != tt.codes || b.Findings == nil {
					t.Errorf("details %+v, want %q", f.Details, tt.codes)
				}
				if got := reasonOf(err); got != want || f.Retryable {
					t.Errorf("refused with %v, want %s", err, want)
				}
				if note := tt.request.Note.String(); note != "" && strings.Contains(f.Message, note) {
					t.Errorf("the note is in %q", f.Message)
				}
				return
			}
			d := v.Decision
			if v.Invoice.Status.String() != tt.want || tt.want != tt.request.Action.Status().String() {
				t.Fatalf("%s, want %s", v.Invoice.Status, tt.want)
			}
			m := must(payables.Match(tt.invoice, tt.facts, tt.t))
			if !v.Changed || d.ID != op.ID || !d.DecidedAt.Equal(op.At) || d.DecidedBy != op.Principal || d.Number != 1 || d.Vendor != acme || d.Invoice != tt.request.Invoice ||
				d.Action != tt.request.Action || d.Reason != tt.request.Reason || d.Override != tt.request.Override || d.Note != tt.request.Note.String() ||
				!slices.EqualFunc(d.Findings, m.Findings, sameFinding) || v.Invoice.Decision == nil || !reflect.DeepEqual(*v.Invoice.Decision, d) {
				t.Errorf("decided %+v", d)
			}
			if err := d.Verify(true, v.Entry); err != nil {
				t.Error(err)
			}
			if (v.Order != nil) != (d.Action == payables.Approve) || (v.Claim != nil) != (d.Action == payables.Reject) || v.Credited != nil {
				t.Errorf("order %v, claim %v, credited %v", v.Order, v.Claim, v.Credited)
			}
			if v.Claim != nil {
				if at := slices.IndexFunc(v.Claim.Claims, func(c payables.Claimed) bool { return c.Invoice == d.Invoice }); at < 0 || !v.Claim.Claims[at].Rejected {
					t.Errorf("the number is not free: %+v", v.Claim)
				}
			}
		})
	}
}

func sameFinding(a, b payables.Finding) bool { return reflect.DeepEqual(a, b) }

func TestDetailsOfADecisionThatStands(t *testing.T) {
	b := stocked()
	b.bring(invoice(usd, "1 10 EA 10.00"))
	if err := b.decide("INV-1001", "approve", "CLEAN_MATCH"); err != nil {
		t.Fatal(err)
	}
	f := fault.Of(b.decide("INV-1001", "reject", "PRICE_VARIANCE"))
	if f == nil || f.Details != (payables.Decided{Status: "approved", Action: "approve", ReasonCode: "CLEAN_MATCH"}) {
		t.Fatalf("%+v", f)
	}
	if f := fault.Of(b.decide("INV-1001", "approve", "NEEDS_REVIEW")); f == nil || f.Reason != "already_decided" {
		t.Errorf("approved again for another reason: %v", f)
	}
}

func TestTheIdenticalDecisionChangesNothing(t *testing.T) {
	b := stocked()
	b.bring(invoice(usd, "1 10 EA 10.00"))
	note := must(payables.ParseNote("seen"))
	held := payables.Request{Invoice: invoiceID("INV-1001"), Action: payables.Hold, Reason: payables.NeedsReview, Note: note}
	again := func(r payables.Request, same bool) payables.Decision {
		t.Helper()
		before, entries := b.invoice(r.Invoice).Decision, len(b.entries[acme.Subject()])
		change := must(b.run(b.route(r, false)))
		d := change.Answer.(payables.Decision)
		if same != (before != nil && reflect.DeepEqual(d, *before)) || same != (len(change.Put) == 0) || same != (len(b.entries[acme.Subject()]) == entries) {
			t.Fatalf("the same: %t, but %d records changed, %+v after %+v", !same, len(change.Put), d, before)
		}
		return d
	}
	first := again(held, false)
	second := again(held, true)
	if !second.DecidedAt.Equal(first.DecidedAt) {
		t.Error("a repeat has another time")
	}
	other := held
	other.Note = payables.Note{}
	again(other, false) // the note is part of it
	again(held, false)  // back: not the last decision, so a new one
	other = held
	other.Reason = must(payables.ParseReasonCode("PRICE_VARIANCE"))
	again(other, false)
	again(other, true)
	approve := request("approve", "CLEAN_MATCH")
	again(approve, false)
	again(approve, true)
	if o := b.order(po1); o.Lines[0].Billed != ratio("10") {
		t.Errorf("%s billed", o.Lines[0].Billed)
	}
	// One who may not override gets the decision of one who may, not a refusal.
	b.bring(as(invoice(usd, "1 1 EA 10.00"), "INV-1002", "A-2"))
	over := override("approve", "agreed with the CFO")
	over.Invoice = invoiceID("INV-1002")
	must(b.run(b.route(over, true)))
	if change, err := b.run(b.route(over, false)); err != nil || len(change.Put) > 0 {
		t.Errorf("%+v, %v", change, err)
	}
}

func TestRoute(t *testing.T) {
	b := stocked()
	b.bring(invoice(usd, "1 10 EA 10.00"))
	if _, err := b.run(b.route(payables.Request{Invoice: invoiceID("INV-9999"), Action: payables.Hold, Reason: payables.NeedsReview}, false)); reasonOf(err) != "NOT_FOUND/invoice_not_found" {
		t.Errorf("no invoice: %v", err)
	}
	stale := b.route(request("hold", "NEEDS_REVIEW"), false)
	stale.Links.Order = payables.OrderID{}
	if _, err := b.run(stale); fault.CodeOf(err) != fault.Internal {
		t.Errorf("other links: %v", err)
	}
	stale = b.route(request("hold", "NEEDS_REVIEW"), false)
	stale.Links.Vendor = must(payables.ParseVendorID("NOBODY"))
	if _, err := b.run(stale); fault.CodeOf(err) != fault.Internal {
		t.Errorf("no vendor: %v", err)
	}
	for _, r := range []payables.Request{
		{Invoice: invoiceID("INV-1001"), Reason: payables.CleanMatch},
		{Invoice: invoiceID("INV-1001"), Action: payables.Approve},
	} {
		if _, err := b.run(b.route(r, true)); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%+v: %v", r, err)
		}
	}
	s := usd10("1 10 EA 10.00")
	if _, err := payables.Decide(s.invoice, payables.Vendor{ID: bolt}, s.facts, request("hold", "NEEDS_REVIEW"), payables.Authority{}, op); err == nil {
		t.Error("another vendor decided")
	}
	cmd := b.route(override("approve", "0123456789"), true)
	want := []operation.Fact{{Name: "invoice", Value: "INV-1001"}, {Name: "action", Value: "approve"}, {Name: "reason_code", Value: "MANUAL_OVERRIDE"}, {Name: "override", Value: "true"}, {Name: "note", Value: "0123456789"}}
	if got := cmd.Facts(); !slices.Equal(got, want) || cmd.Name() != "payables.route" {
		t.Errorf("%s: %v", cmd.Name(), got)
	}
	// What the one who asks may do is not what is asked.
	free := cmd
	free.MayOverride, free.Tolerance = false, payables.Tolerance{}
	if !slices.Equal(free.Facts(), want) {
		t.Error("the authority is part of the request")
	}
}

// An invoice that can not be computed is not stuck: it is held, or rejected for
// what was found.
func TestAnInvoiceThatCanNotBeMatched(t *testing.T) {
	s := with(order(usd, "1 10 EA 10.00 received=10 A=1/999983 B=1/999979 C=1/999961 D=1/999959"),
		invoice(usd, "1 0.000001 A 10.00", "1 0.000001 B 10.00", "1 0.000001 C 10.00", "1 0.000001 D 10.00"), claims("INV-0900", "INV-1001"))
	original := with(s.order, s.invoice)
	for _, tt := range []struct {
		*setup
		payables.Request
		want string
	}{
		{s, request("hold", "NEEDS_REVIEW"), ""},
		{s, request("reject", "DUPLICATE_INVOICE"), ""},
		{s, request("approve", "CLEAN_MATCH"), "POLICY_VIOLATION/duplicate_invoice"},
		{original, request("approve", "CLEAN_MATCH"), "POLICY_VIOLATION/quantity_out_of_range"},
		{original, override("approve", "agreed with the CFO"), "POLICY_VIOLATION/quantity_out_of_range"},
		{original, override("reject", "agreed with the CFO"), ""},
		{original, request("reject", "PRICE_VARIANCE"), "POLICY_VIOLATION/reason_without_finding"},
		{original, request("hold", "NEEDS_REVIEW"), ""},
	} {
		_, err := payables.Decide(tt.invoice, vendor(), tt.facts, tt.Request, payables.Authority{Tolerance: tt.t, MayOverride: true}, op)
		if reasonOf(err) != tt.want {
			t.Errorf("%s %s: %v, want %s", tt.Action, tt.Reason, err, tt.want)
		}
	}
}

func postings(e journal.Entry) string {
	var all []string
	for _, p := range e.Postings() {
		all = append(all, p.Side.String()+" "+string(p.Account)+" "+p.Amount.Major())
	}
	return strings.Join(all, ", ")
}

func TestBookings(t *testing.T) {
	for want, s := range map[string]*setup{
		"debit goods_received_not_invoiced 100, credit payable:ACME 100":                                     usd10("1 10 EA 10.00"),
		"debit goods_received_not_invoiced 100, debit input_tax 8, debit freight 5, credit payable:ACME 113": usd10("1 10 EA 10.00").but(tax("8"), freight("5")),
		"debit goods_received_not_invoiced 100, debit invoice_variance 1, credit payable:ACME 101":           usd10("1 10 EA 10.00").but(total("101")),
		"debit goods_received_not_invoiced 100, credit invoice_variance 1, credit payable:ACME 99":           usd10("1 10 EA 10.00").but(total("99")),
		"debit goods_received_not_invoiced 100, credit invoice_variance 100":                                 usd10("1 10 EA 10.00").but(total("0")),
		"debit freight 5, credit payable:ACME 5":                                                             usd10().but(freight("5")),
		"":                                                                                                   usd10("1 10 EA 0"),
		"credit goods_received_not_invoiced 10, credit input_tax 1, credit freight 2, debit payable:ACME 13": usd10("1 1 EA 10.00").but(credits(nil, "1 10 EA 10.00"), tax("1"), freight("2")),
		"credit goods_received_not_invoiced 10, debit invoice_variance 3, debit payable:ACME 7":              usd10("1 1 EA 10.00").but(credits(nil, "1 10 EA 10.00"), total("7")),
	} {
		v, err := payables.Decide(s.invoice, vendor(), s.facts, override("approve", "0123456789"), payables.Authority{Tolerance: s.t, MayOverride: true}, op)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got := postings(v.Entry); got != want {
			t.Errorf("posted %q, want %q", got, want)
		}
		owed := int64(0)
		for _, p := range v.Entry.Postings() {
			if p.Account == payables.Payable(acme) {
				owed = s.invoice.Total.Minor()
				if s.invoice.Document == payables.CreditNote {
					owed = -owed
				}
			}
		}
		if owed != 0 && (len(v.Vendor.Balances) != 1 || v.Vendor.Balances[0].Minor() != owed) {
			t.Errorf("%v is owed, want %d", v.Vendor.Balances, owed)
		}
	}
}

func TestABalanceThatDoesNotFit(t *testing.T) {
	s := usd10("1 10 EA 10.00")
	v := vendor()
	v.Balances = []money.Amount{money.FromMinor(9_223_372_036_854_775_807-9_999, usd)}
	_, err := payables.Decide(s.invoice, v, s.facts, request("approve", "CLEAN_MATCH"), payables.Authority{Tolerance: s.t}, op)
	if reasonOf(err) != "POLICY_VIOLATION/amount_out_of_range" {
		t.Error(err)
	}
}

// What Verify finds: every field of a decision, changed.
func TestVerifyFindsAnyChange(t *testing.T) {
	s := usd10("1 11 EA 11.00").but(func(s *setup) { s.facts.Claim = claim("INV-0900", "INV-1001") })
	r := request("reject", "DUPLICATE_INVOICE")
	r.Note = must(payables.ParseNote("seen twice"))
	v := must(payables.Decide(s.invoice, vendor(), s.facts, r, payables.Authority{Tolerance: s.t}, op))
	if err := v.Decision.Verify(true, v.Entry); err != nil {
		t.Fatal(err)
	}
	changes := map[string][]func(*payables.Decision){
		"ID":        {func(d *payables.Decision) { d.ID[3]++ }},
		"Invoice":   {func(d *payables.Decision) { d.Invoice = invoiceID("INV-1002") }},
		"Vendor":    {func(d *payables.Decision) { d.Vendor = bolt }},
		"Number":    {func(d *payables.Decision) { d.Number++ }},
		"Action":    {func(d *payables.Decision) { d.Action = payables.Approve }},
		"Reason":    {func(d *payables.Decision) { d.Reason = payables.NeedsReview }},
		"Override":  {func(d *payables.Decision) { d.Override = true }},
		"Note":      {func(d *payables.Decision) { d.Note += "!" }, func(d *payables.Decision) { d.Note = "" }},
		"DecidedBy": {func(d *payables.Decision) { d.DecidedBy = "eve" }},
		"DecidedAt": {func(d *payables.Decision) { d.DecidedAt = d.DecidedAt.Add(time.Millisecond) }},
		"Omitted":   {func(d *payables.Decision) { d.Omitted = 1 }},
		"Findings": {
			func(d *payables.Decision) { d.Findings = nil },
			func(d *payables.Decision) { d.Findings = d.Findings[1:] },
			func(d *payables.Decision) { d.Findings[1], d.Findings[2] = d.Findings[2], d.Findings[1] },
			func(d *payables.Decision) { d.Findings[1].Code = payables.NoLines },
			func(d *payables.Decision) { d.Findings[1].Line = 2 },
			func(d *payables.Decision) { d.Findings[1].Found = "10.5" },
			func(d *payables.Decision) { d.Findings[1].Expected = "11" },
			func(d *payables.Decision) { d.Findings[0].Invoices = nil },
			func(d *payables.Decision) { d.Findings[0].Invoices = []payables.InvoiceID{invoiceID("INV-0901")} },
		},
	}
	fields := reflect.TypeOf(v.Decision)
	for i := range fields.NumField() {
		if len(changes[fields.Field(i).Name]) == 0 {
			t.Errorf("no change of %s is tried", fields.Field(i).Name)
		}
	}
	for name, all := range changes {
		for n, change := range all {
			d := v.Decision
			d.Findings = slices.Clone(d.Findings)
			change(&d)
			if broken, ok := d.Verify(true, v.Entry).(*journal.Broken); !ok || broken.Number != 1 || broken.Subject != acme.Subject() {
				t.Errorf("%s, change %d: %v", name, n, broken)
			}
		}
	}
	if err := v.Decision.Verify(false, v.Entry); err == nil {
		t.Error("a decision that is gone is not missed")
	}
	// As a store brings it back: no list instead of an empty one, another zone.
	clean := usd10("1 10 EA 10.00")
	v = must(payables.Decide(clean.invoice, vendor(), clean.facts, request("approve", "CLEAN_MATCH"), payables.Authority{Tolerance: s.t}, op))
	d := v.Decision
	d.Findings, d.DecidedAt = []payables.Finding{}, d.DecidedAt.In(time.FixedZone("CET", 3600))
	if err := d.Verify(true, v.Entry); err != nil {
		t.Error(err)
	}
}

func TestManyFindingsAreKeptUpToABound(t *testing.T) {
	s := usd10()
	for n := range payables.MaxFindings + 20 {
		l := invoice(usd, "7 1 EA 1.00").Lines[0]
		l.Line, l.OrderLine = n+1, n+100
		s.invoice.Lines = append(s.invoice.Lines, l)
	}
	s.invoice = priced(s.invoice)
	v := must(payables.Decide(s.invoice, vendor(), s.facts, request("hold", "NEEDS_REVIEW"), payables.Authority{Tolerance: s.t}, op))
	if n := len(v.Decision.Findings); n != payables.MaxFindings || v.Decision.Omitted != 20 {
		t.Errorf("%d kept, %d omitted", n, v.Decision.Omitted)
	}
	if err := v.Decision.Verify(true, v.Entry); err != nil {
		t.Error(err)
	}
	f := fault.Of(must2(payables.Decide(s.invoice, vendor(), s.facts, request("approve", "CLEAN_MATCH"), payables.Authority{Tolerance: s.t}, op)))
	if f == nil || !reflect.DeepEqual(f.Details, payables.Blocked{Findings: []string{"UNKNOWN_PO_LINE"}}) {
		t.Errorf("%+v", f)
	}
}

func must2[T any](_ T, err error) error { return err }

func TestNotes(t *testing.T) {
	for in, want := range map[string]string{" seen \n": "seen", "a\nb": "a\nb", strings.Repeat("x", payables.MaxNote): strings.Repeat("x", payables.MaxNote)} {
		if n, err := payables.ParseNote(in); err != nil || n.String() != want {
			t.Errorf("%q: %q, %v", in, n, err)
		}
	}
	for _, in := range []string{"", "  ", "\u200b", strings.Repeat("x", payables.MaxNote+1), "pay \u202e now", "a\x00b", "a\U000e0041"} {
		if n, err := payables.ParseNote(in); err == nil || n != (payables.Note{}) {
			t.Errorf("%q is kept as %q", in, n)
		}
	}
}

func TestWordsOfTheWire(t *testing.T) {
	words := func(name string, parse func(string) (string, error), all ...string) {
		for _, s := range all {
			if got, err := parse(s); err != nil || got != s {
				t.Errorf("%s %q: %q, %v", name, s, got, err)
			}
			if got, err := parse(strings.ToTitle(s) + " "); err == nil || got != "" {
				t.Errorf("%s %q is %q", name, strings.ToTitle(s)+" ", got)
			}
		}
		if got, err := parse(""); err == nil || got != "" {
			t.Errorf("%s \"\" is %q", name, got)
		}
	}
	words("status", text(payables.ParseStatus), "open", "on_hold", "approved", "rejected")
	words("action", text(payables.ParseAction), "approve", "hold", "reject")
	words("kind", text(payables.ParseDocumentKind), "invoice", "credit_note")
	words("movement", text(payables.ParseMovement), "receipt", "return")
	words("date", text(payables.ParseDate), "2026-03-31", "2024-02-29")
	words("invoice", text(payables.ParseInvoiceID), "INV-1001", "INV-0001")
	words("vendor", text(payables.ParseVendorID), "A", "7.b_c-D")
	words("order", text(payables.ParseOrderID), "PO-1")
	words("receipt", text(payables.ParseReceiptID), "GR-1")
	words("unit", text(payables.ParseUnit), "EA", "kg", "m2")
	words("sku", text(payables.ParseSKU), "A/B-1.2_3")
	for _, s := range []string{"2026-02-30", "2026-2-3", "31.03.2026", "2026-03-31T00:00:00Z"} {
		if d, err := payables.ParseDate(s); err == nil || d != (payables.Date{}) {
			t.Errorf("%q is a date", s)
		}
	}
	for _, s := range []string{"INV-1", "INV-001", "inv-1001", "INV-1001\n", "INV-１００１", "INV--1001", "1001"} {
		if id, err := payables.ParseInvoiceID(s); err == nil || id != (payables.InvoiceID{}) {
			t.Errorf("%q is an invoice", s)
		}
	}
	for _, s := range []string{"-A", "A B", "A/B", "é", strings.Repeat("A", 100), "A\n"} {
		if id, err := payables.ParseVendorID(s); err == nil || id != (payables.VendorID{}) {
			t.Errorf("%q is a vendor", s)
		}
		if id, err := payables.ParseOrderID(s); err == nil || id != (payables.OrderID{}) {
			t.Errorf("%q is an order", s)
		}
		if id, err := payables.ParseReceiptID(s); err == nil || id != (payables.ReceiptID{}) {
			t.Errorf("%q is a receipt", s)
		}
	}
}

func text[T interface{ String() string }](parse func(string) (T, error)) func(string) (string, error) {
	return func(s string) (string, error) {
		v, err := parse(s)
		return v.String(), err
	}
}
