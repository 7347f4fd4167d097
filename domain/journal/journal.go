// Package journal is double-entry bookkeeping: an [Entry] records one decision
// as postings whose debits equal their credits, or as none if no money moved.
// An entry that does not balance can not be built, and none is ever changed.
//
// # The chain
//
// Each entry belongs to the history of one subject (a customer, a vendor) and
// carries its number there, from 1 without gaps, and the hash of the entry
// before it. The hash of an entry is SHA-256 over, in this order:
//
//   - the text "refundledger.entry.v1"
//   - the hash of the entry before it, 32 bytes; zeros for the first
//   - texts: tenant, kind and id of the subject
//   - uint64: the number
//   - the operation: its ID, 16 bytes; texts principal, via, tool, key; uint64
//     milliseconds since 1970-01-01 UTC
//   - text: the command's name
//   - uint32: how many facts; for each, texts name and value
//   - uint32: how many postings; for each, texts account and lot, one byte side
//     (0 debit, 1 credit), uint64 minor units, text currency
//
// A text is its length in bytes as uint32, then its bytes in UTF-8. All
// integers are big-endian.
package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// Hash is the SHA-256 digest of an entry. The zero value stands before the first.
type Hash [sha256.Size]byte

// String returns lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Account names an account of the books.
type Account string

// The contra accounts. They keep no running row, so no write locks them.
const (
	// Captured is money taken from customers and now refundable.
	Captured Account = "captured"
	// PaidOut is money given back.
	PaidOut Account = "paid_out"
	// Adjusted is money moved by a correction.
	Adjusted Account = "adjusted"
)

// Refundable is the account of what one customer can still be refunded: credits
// less debits. Every posting on it names a lot.
func Refundable(customer string) Account { return Account(refundable + customer) }

const refundable = "refundable:"

// Customer returns whose account it is; ok is false for a contra account.
func (a Account) Customer() (customer string, ok bool) {
	return strings.CutPrefix(string(a), refundable)
}

// Side is debit or credit.
type Side uint8

// The two sides of the books.
const (
	Debit Side = iota
	Credit
)

// String returns debit or credit.
func (s Side) String() string {
	if s == Debit {
		return "debit"
	}
	return "credit"
}

// Posting moves an amount on one side of one account.
type Posting struct {
	Account Account
	// Lot names the lot on a refundable account, and is empty on a contra account.
	Lot    string
	Side   Side
	Amount money.Amount // > 0
}

// Exchanged returns the postings with debit and credit exchanged: what undoes
// them.
func Exchanged(postings []Posting) []Posting {
	undo := make([]Posting, len(postings))
	for i, p := range postings {
		if p.Side == Debit {
			p.Side = Credit
		} else {
			p.Side = Debit
		}
		undo[i] = p
	}
	return undo
}

// Subject is whose history an entry belongs to: a kind of record and its id.
type Subject struct{ Kind, ID string }

// Head is the end of a subject's history: the last entry's number and hash.
// The zero value is a history without entries.
type Head struct {
	Number int64
	Hash   Hash
}

// Entry is an immutable record of one decision. [Next] makes one; [Restore]
// reads one back from a store. Copies share what they hold, so they cost
// nothing. The zero value is none, and has nothing to ask for.
type Entry struct{ *content }

// String names the entry for a reader of a log.
func (e Entry) String() string {
	if e.content == nil {
		return "no entry"
	}
	return fmt.Sprintf("entry %d of %s %s: %s, hash %s", e.number, e.subject.Kind, e.subject.ID, e.command, e.hash)
}

type content struct {
	subject   Subject
	number    int64
	operation operation.Operation
	command   string
	facts     []operation.Fact
	postings  []Posting
	previous  Hash
	hash      Hash
}

// ErrUnbalanced: the debits are not the credits, or a posting is not a positive
// amount of a currency on one of the two sides.
var ErrUnbalanced = errors.New("the postings of an entry must be positive and balance in each currency")

// Next makes the entry that follows head in the subject's history. It fails
// with [ErrUnbalanced] if the postings do not balance in each currency or if
// one is not positive. The slices are kept: the caller must not change them.
func Next(head Head, subject Subject, op operation.Operation, command string, facts []operation.Fact, postings ...Posting) (Entry, error) {
	if err := balanced(postings); err != nil {
		return Entry{}, err
	}
	c := &content{subject, head.Number + 1, op, command, facts, postings, head.Hash, Hash{}}
	c.hash = digest(c)
	return Entry{c}, nil
}

// Restore makes an entry from what a store holds. It computes nothing anew, so
// that [Verify] can tell a changed entry from the one that was written.
func Restore(number int64, previous, hash Hash, subject Subject, op operation.Operation, command string, facts []operation.Fact, postings []Posting) Entry {
	return Entry{&content{subject, number, op, command, facts, postings, previous, hash}}
}

// Subject returns whose history the entry belongs to.
func (e Entry) Subject() Subject { return e.subject }

// Number returns the entry's place in its subject's history, from 1.
func (e Entry) Number() int64 { return e.number }

// Operation returns who asked for it, under which key, when.
func (e Entry) Operation() operation.Operation { return e.operation }

// Command returns the name of the command that was decided.
func (e Entry) Command() string { return e.command }

// Facts returns the command's fields. The caller must not change them.
func (e Entry) Facts() []operation.Fact { return e.facts }

// Postings returns the postings. The caller must not change them.
func (e Entry) Postings() []Posting { return e.postings }

// Previous returns the hash of the entry before it.
func (e Entry) Previous() Hash { return e.previous }

// Hash returns the entry's hash.
func (e Entry) Hash() Hash { return e.hash }

// Head returns the end of the history after this entry.
func (e Entry) Head() Head { return Head{e.number, e.hash} }

func balanced(postings []Posting) error {
	for i, p := range postings {
		c := p.Amount.Currency()
		if p.Amount.Sign() <= 0 || c == (money.Currency{}) || p.Side > Credit {
			return ErrUnbalanced
		}
		seen := false
		for _, q := range postings[:i] {
			seen = seen || q.Amount.Currency() == c
		}
		if seen {
			continue // this currency is summed already
		}
		sum := money.FromMinor(0, c)
		for _, q := range postings[i:] {
			if q.Amount.Currency() != c {
				continue
			}
			var err error
			if q.Side == Debit {
				sum, err = sum.Add(q.Amount)
			} else {
				sum, err = sum.Sub(q.Amount)
			}
			if err != nil {
				return err
			}
		}
		if sum.Sign() != 0 {
			return ErrUnbalanced
		}
	}
	return nil
}

const encoding = "refundledger.entry.v1"

func digest(e *content) Hash {
	b := make([]byte, 0, 768)
	b = operation.AppendText(b, encoding)
	b = append(b, e.previous[:]...)
	b = operation.AppendText(b, e.operation.Tenant.String())
	b = operation.AppendText(b, e.subject.Kind)
	b = operation.AppendText(b, e.subject.ID)
	b = binary.BigEndian.AppendUint64(b, uint64(e.number))
	b = append(b, e.operation.ID[:]...)
	b = operation.AppendText(b, e.operation.Principal)
	b = operation.AppendText(b, e.operation.Via)
	b = operation.AppendText(b, e.operation.Tool)
	b = operation.AppendText(b, e.operation.Key.String())
	b = binary.BigEndian.AppendUint64(b, uint64(e.operation.At.UnixMilli()))
	b = operation.AppendText(b, e.command)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.facts)))
	for _, f := range e.facts {
		b = operation.AppendText(operation.AppendText(b, f.Name), f.Value)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.postings)))
	for _, p := range e.postings {
		b = operation.AppendText(operation.AppendText(b, string(p.Account)), p.Lot)
		b = append(b, byte(p.Side))
		b = binary.BigEndian.AppendUint64(b, uint64(p.Amount.Minor()))
		b = operation.AppendText(b, p.Amount.Currency().String())
	}
	return sha256.Sum256(b)
}

// Broken says which entry of a history does not hold, and why. The zero subject
// is none: what does not hold is in no history.
type Broken struct {
	Subject Subject
	Number  int64
	Why     string
}

// Error names the entry and the reason.
func (b *Broken) Error() string {
	if b.Subject == (Subject{}) {
		return b.Why
	}
	return fmt.Sprintf("entry %d of %s %s: %s", b.Number, b.Subject.Kind, b.Subject.ID, b.Why)
}

// Verify recomputes one entry against the head before it: its subject, its
// number, its link, its balance and its hash. It returns the head after it, or
// a [*Broken].
func Verify(before Head, subject Subject, e Entry) (Head, error) {
	broken := func(why string) (Head, error) { return before, &Broken{subject, before.Number + 1, why} }
	switch {
	case e.content == nil:
		return broken("there is none")
	case e.subject != subject:
		return broken("it belongs to " + e.subject.Kind + " " + e.subject.ID)
	case e.number != before.Number+1:
		return broken(fmt.Sprintf("its number is %d", e.number))
	case e.previous != before.Hash:
		return broken("it does not name the hash of the entry before it")
	case balanced(e.postings) != nil:
		return broken("its postings do not balance")
	case digest(e.content) != e.hash:
		return broken("its hash is not that of its content")
	}
	return e.Head(), nil
}
