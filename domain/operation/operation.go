// Package operation is one attempt at a command: who asked, through which
// tool, under which key, when. One key has at most one effect.
//
// The host of an agent chooses the [Key] of a logical write and sends it with
// each retry. What the key is bound to is the [Fingerprint] of what was asked:
// the same key and fingerprint is a repeat, another fingerprint a conflict.
package operation

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/refundledger/refundledger/domain/access"
)

// ID names an operation: a random UUID (RFC 9562, version 4). What the
// operation creates is named by it.
type ID [16]byte

// String returns the canonical form, 8-4-4-4-12 lower-case hexadecimal digits.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	b[8] = '-'
	hex.Encode(b[9:13], id[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], id[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], id[8:10])
	b[23] = '-'
	hex.Encode(b[24:], id[10:])
	return string(b[:])
}

// ParseID reads the canonical form that [ID.String] writes.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		h := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
		if _, err := hex.Decode(id[:], []byte(h)); err == nil && id.String() == s {
			return id, nil
		}
	}
	return ID{}, fmt.Errorf("an id is a UUID in lower case")
}

// MaxKeyLength is how many characters an operation key may have.
const MaxKeyLength = 80

// KeyPattern is the form of an operation key, as a regular expression.
const KeyPattern = `^[A-Za-z0-9_-]{1,80}$`

// Key is the host's name for one logical write, the same on each retry.
// The zero value is no key.
type Key struct{ text string }

// ParseKey accepts what matches [KeyPattern].
func ParseKey(s string) (Key, error) {
	if len(s) == 0 || len(s) > MaxKeyLength {
		return Key{}, errKey
	}
	for _, c := range []byte(s) {
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return Key{}, errKey
		}
	}
	return Key{s}, nil
}

var errKey = fmt.Errorf("an operation key is 1 to %d letters, digits, _ or -", MaxKeyLength)

// String returns the key's text.
func (k Key) String() string { return k.text }

// Operation is one attempt at a command.
type Operation struct {
	ID     ID
	Tenant access.Tenant
	// Principal is the id of who asked.
	Principal string
	// Via is the id of the service that asked on the principal's behalf, or "".
	Via string
	// Tool is the tool or resource through which it was asked.
	Tool string
	Key  Key
	// At is when it was asked: UTC, whole milliseconds.
	At time.Time
}

// Fact is one field of a command, as text.
type Fact struct{ Name, Value string }

// Without returns the facts but those of a name: what an earlier form of a command
// had.
func Without(facts []Fact, name string) []Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f Fact) bool { return f.Name == name })
}

// Fingerprint is the SHA-256 digest of what is asked: the command's name and
// its facts in order, each text preceded by its length in bytes as a big-endian
// uint32, so that no two commands share an encoding.
type Fingerprint [sha256.Size]byte

// FingerprintOf digests a command's name and facts.
func FingerprintOf(command string, facts []Fact) Fingerprint {
	b := make([]byte, 0, 256)
	b = AppendText(b, command)
	for _, f := range facts {
		b = AppendText(AppendText(b, f.Name), f.Value)
	}
	return sha256.Sum256(b)
}

// AppendText appends the length of s as a big-endian uint32 and s itself: the
// canonical form of a text in every digest of the ledger.
func AppendText(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}
