package ledger

import (
	"strconv"
	"strings"

	"github.com/refundledger/refundledger/domain/journal"
)

// EntryKind is the kind of the entries of the journal. Entries are records that
// never change: a command reads one by its subject and number, to undo it.
var EntryKind = Kind{Name: "entry"}

// Booked is an entry as a record.
type Booked struct{ journal.Entry }

// EntryRef names the entry of that number in the subject's history.
func EntryRef(s journal.Subject, number int64) Ref {
	return Ref{EntryKind, s.Kind + "/" + s.ID + "/" + strconv.FormatInt(number, 10)}
}

// Ref names the entry.
func (b Booked) Ref() Ref { return EntryRef(b.Subject(), b.Number()) }

// ParseEntryRef takes apart what [EntryRef] put together.
func ParseEntryRef(ref Ref) (s journal.Subject, number int64, ok bool) {
	kind, rest, _ := strings.Cut(ref.ID, "/")
	i := strings.LastIndexByte(rest, '/')
	if ref.Kind != EntryKind || i < 0 {
		return journal.Subject{}, 0, false
	}
	s = journal.Subject{Kind: kind, ID: rest[:i]}
	number, err := strconv.ParseInt(rest[i+1:], 10, 64)
	return s, number, err == nil && EntryRef(s, number) == ref // one entry has one name
}
