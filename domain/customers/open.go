package customers

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/refundledger/refundledger/domain/fault"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
	"github.com/refundledger/refundledger/domain/text"
)

// Bounds of the texts of an account.
const (
	MaxName  = 200 // code points
	MaxEmail = 254 // bytes: RFC 5321, section 4.5.3.1.3, less the angle brackets
)

// OpenName is the name of the command [Open].
const OpenName = "customers.open"

// Open is the command that makes an account with its opening balance.
type Open struct {
	ID        ID
	Profile   Profile
	Status    Status
	Opening   money.Amount // >= 0; its currency is the account's for good
	CreatedAt time.Time    // when the customer came, not when the record was made
}

// Check returns a problem for each field of the command that breaks its rule.
func (c Open) Check() []fault.Issue {
	var issues []fault.Issue
	bad := func(field, message string) {
		issues = append(issues, fault.Issue{Path: []any{field}, Code: "invalid", Message: field + " " + message})
	}
	if c.ID == (ID{}) {
		bad("id", "is missing")
	}
	if n := utf8.RuneCountInString(c.Profile.Name); text.Written(c.Profile.Name) == 0 || n > MaxName || !text.IsLine(c.Profile.Name) || strings.TrimSpace(c.Profile.Name) != c.Profile.Name {
		bad("name", fmt.Sprintf("must have 1 to %d characters, none of them control or invisible characters, no spaces around them", MaxName))
	}
	if at := strings.IndexByte(c.Profile.Email, '@'); at < 1 || at != strings.LastIndexByte(c.Profile.Email, '@') || at == len(c.Profile.Email)-1 ||
		len(c.Profile.Email) > MaxEmail || !text.IsLine(c.Profile.Email) || strings.ContainsFunc(c.Profile.Email, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }) {
		bad("email", fmt.Sprintf("must be an address of at most %d bytes with one @", MaxEmail))
	}
	if c.Status == (Status{}) {
		bad("status", "must be active or suspended")
	}
	if c.Opening.Currency() == (money.Currency{}) {
		bad("currency", "must be an upper-case ISO 4217 code such as USD")
	}
	if c.Opening.Sign() < 0 {
		bad("balance", "must not be negative")
	}
	if c.CreatedAt.IsZero() {
		bad("created_at", "is missing")
	}
	return issues
}

// Facts that stand in the entry that opened an account and not on its record.
const (
	factProfile = "profile_sha256"
	factOpening = "opening_minor"
)

// factDigits stands in the entries of newer ledgers: those opened before say no
// digits.
const factDigits = "digits"

// digest stands for the profile where it must not be kept itself: an import
// that is sent again is recognised by it. It is a pseudonym, not a secret: who
// has a list of names and addresses can find out whether one of them is meant.
func (p Profile) digest() string {
	f := operation.FingerprintOf("customers.profile", []operation.Fact{{Name: "name", Value: p.Name}, {Name: "email", Value: p.Email}})
	return hex.EncodeToString(f[:])
}

// Name is [OpenName].
func (Open) Name() string { return OpenName }

// Facts are the command's fields; of the profile there is only a digest.
func (c Open) Facts() []operation.Fact {
	return []operation.Fact{
		{Name: "customer", Value: c.ID.text},
		{Name: factProfile, Value: c.Profile.digest()},
		{Name: "status", Value: c.Status.name},
		{Name: "currency", Value: c.Opening.Currency().String()},
		{Name: factDigits, Value: strconv.Itoa(c.Opening.Currency().Digits())},
		{Name: factOpening, Value: strconv.FormatInt(c.Opening.Minor(), 10)},
		{Name: "created_at_ms", Value: strconv.FormatInt(c.CreatedAt.UnixMilli(), 10)},
	}
}

// Reads names the account, which must not exist yet.
func (c Open) Reads() []ledger.Ref { return []ledger.Ref{c.ID.Ref()} }

// Decide refuses what [Open.Check] finds, and CONFLICT customer_exists. The
// answer is the account.
func (c Open) Decide(v ledger.View) (ledger.Change, error) {
	if issues := c.Check(); len(issues) > 0 {
		return ledger.Change{}, fault.Invalid(issues)
	}
	if _, exists := ledger.Get[Account](v, c.ID.Ref()); exists {
		return ledger.Change{}, fault.New(fault.Conflict, "customer_exists", "The customer %s exists already.", c.ID)
	}
	a, e, err := c.open(v.Op, OpenName)
	if err != nil {
		return ledger.Change{}, err
	}
	return ledger.Change{Put: []ledger.Record{a}, Entries: []journal.Entry{e}, Answer: a}, nil
}

// open makes the account and the first entry of its history.
func (c Open) open(op operation.Operation, command string) (Account, journal.Entry, error) {
	a := Account{
		ID: c.ID, Profile: c.Profile, Status: c.Status,
		Currency: c.Opening.Currency(), CreatedAt: c.CreatedAt.UTC().Truncate(time.Millisecond),
	}
	var postings []journal.Posting
	if c.Opening.Sign() > 0 {
		postings = []journal.Posting{
			{Account: journal.Captured, Side: journal.Debit, Amount: c.Opening},
			{Account: journal.Refundable(c.ID.text), Lot: OpeningLot, Side: journal.Credit, Amount: c.Opening},
		}
	}
	return a.Post(op, command, c.Facts(), postings...)
}
