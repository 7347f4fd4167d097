package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/adapters/internal/strictjson"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// Entries is the table of the entries. Its rows are written in the order of their
// places.
var Entries = &Table{"entries", []Column{
	{"seq", EntryPlace, Fixed},
	{"operation", OperationPlace, Fixed},
	{"tenant", Text, Key},
	{"subject_kind", Text, Key},
	{"subject_id", Text, Key},
	{"number", Int, Key},
	{"op", ID, Fixed},
	{"principal", Text, Fixed},
	{"via", Text, Fixed},
	{"tool", Text, Fixed},
	{"key", Text, Fixed},
	{"at", Time, Fixed},
	{"command", Text, Fixed},
	{"facts", JSON, Fixed},
	{"previous", Bytes, Fixed},
	{"hash", Bytes, Fixed},
}}

// Postings is the table of the postings.
var Postings = &Table{"postings", []Column{
	{"entry", EntryPlace, Fixed},
	{"tenant", Text, Key},
	{"subject_kind", Text, Key},
	{"subject_id", Text, Key},
	{"number", Int, Key},
	{"position", Int, Key},
	{"account", Text, Fixed},
	{"lot", Text, Fixed},
	{"side", Text, Fixed},
	{"amount_minor", Int, Fixed},
	{"currency", Text, Fixed},
	{"digits", Int, Fixed},
}}

const entryColumns = `r.number, r.op, r.principal, r.via, r.tool, r.key, r.at, r.command, r.facts, r.previous, r.hash`

const (
	entryPage = `SELECT ` + entryColumns + ` FROM entries r
		WHERE r.tenant = $1 AND r.subject_kind = $2 AND r.subject_id = $3 AND r.number > $4 AND r.number <= $5 ORDER BY r.number`
	postingPage = `SELECT p.number, p.account, p.lot, p.side, p.amount_minor, p.currency, p.digits FROM postings p
		WHERE p.tenant = $1 AND p.subject_kind = $2 AND p.subject_id = $3 AND p.number > $4 AND p.number <= $5 ORDER BY p.number, p.position`
)

// entryCodec keeps the journal. An entry never changes, so there is nothing to
// lock.
type entryCodec struct {
	dialect         Dialect
	keys            []Column
	query, postings string
}

func newEntryCodec(d Dialect) *entryCodec {
	keys := []Column{{"tenant", Text, Key}, {"subject_kind", Text, Key}, {"subject_id", Text, Key}, {"number", Int, Key}}
	return &entryCodec{d, keys,
		byKey(d, Entries, entryColumns, "", keys),
		byKey(d, Postings, `r.account, r.lot, r.side, r.amount_minor, r.currency, r.digits`, `ORDER BY k.n, r.position`, keys),
	}
}

func (c *entryCodec) kind() ledger.Kind { return ledger.EntryKind }

// stores is false: an entry is made by being in [ledger.Change.Entries].
func (c *entryCodec) stores(ledger.Record) bool { return false }

func (c *entryCodec) write(*writes, committer.Changed) {}

func (c *entryCodec) answer(*writes, operation.Operation, ledger.Record) answerRef {
	return answerRef{}
}

func (c *entryCodec) answers([]*kept) ([]Step, func() error) { return nil, nothing }

func (c *entryCodec) load(refs []committer.Name, _ bool, put func(int, ledger.Record)) ([]Step, func() error) {
	var keys [][]any
	var at []int // the place in refs of each key
	subjects := make([]journal.Subject, len(refs))
	for i, n := range refs {
		if s, number, ok := ledger.ParseEntryRef(n.Ref); ok {
			keys, at, subjects[i] = append(keys, []any{n.Tenant.String(), s.Kind, s.ID, number}), append(at, i), s
		}
	}
	if len(keys) == 0 {
		return nil, nothing
	}
	rows := make([]*entryRow, len(keys))
	args := c.dialect.KeyArgs(c.keys, keys)
	steps := []Step{
		{c.query, args, func(r Row) error {
			var n int
			var e entryRow
			if err := r.Scan(append([]any{&n}, e.fields()...)...); err != nil {
				return err
			}
			rows[n-1] = &e
			return nil
		}},
		{c.postings, args, func(r Row) error {
			var n int
			var p postingRow
			if err := r.Scan(append([]any{&n}, p.fields()...)...); err != nil {
				return err
			}
			// An entry that came since the first statement is not there yet.
			if row := rows[n-1]; row != nil {
				row.postings = append(row.postings, p)
			}
			return nil
		}},
	}
	return steps, func() error {
		for k, row := range rows {
			if row == nil {
				continue
			}
			e, err := row.entry(refs[at[k]].Tenant, subjects[at[k]])
			if err != nil {
				return err
			}
			put(at[k], ledger.Booked{Entry: e})
		}
		return nil
	}
}

// insert adds the rows of the entries and their postings.
func (c *entryCodec) insert(w *writes, entries []journal.Entry) {
	// In order of key, so that the places are in the order of the rows.
	slices.SortFunc(entries, func(a, b journal.Entry) int {
		return cmp.Or(strings.Compare(a.Operation().Tenant.String(), b.Operation().Tenant.String()),
			strings.Compare(a.Subject().Kind, b.Subject().Kind),
			strings.Compare(a.Subject().ID, b.Subject().ID),
			cmp.Compare(a.Number(), b.Number()))
	})
	for i, e := range entries {
		o, s := e.Operation(), e.Subject()
		t, place := o.Tenant.String(), int64(i+1)
		w.entries[entryName{o.Tenant, s, e.Number()}] = place
		previous, hash := e.Previous(), e.Hash()
		w.add(Insert, Entries, place, w.operations[o.ID], t, s.Kind, s.ID, e.Number(), o.ID, o.Principal, o.Via, o.Tool, o.Key.String(), o.At,
			e.Command(), encodeFacts(e.Facts()), previous[:], hash[:])
		for k, p := range e.Postings() {
			w.add(Insert, Postings, place, t, s.Kind, s.ID, e.Number(), int64(k+1), string(p.Account), p.Lot,
				p.Side.String(), p.Amount.Minor(), p.Amount.Currency().String(), int64(p.Amount.Currency().Digits()))
		}
	}
}

// encodeFacts makes a JSON object of the facts, in their order.
func encodeFacts(facts []operation.Fact) string {
	b := append(make([]byte, 0, 256), '{')
	for i, f := range facts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, f.Name), ':')
		b = strictjson.AppendString(b, f.Value)
	}
	return string(append(b, '}'))
}

// decodeFacts reads what encodeFacts made; the order is that of the text.
func decodeFacts(text string) ([]operation.Fact, error) {
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("its facts are no JSON object")
	}
	var facts []operation.Fact
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := d.Token()
		if err != nil {
			return nil, err
		}
		n, isName := name.(string)
		v, isText := value.(string)
		if !isName || !isText {
			return nil, fmt.Errorf("its facts are no object of texts")
		}
		facts = append(facts, operation.Fact{Name: n, Value: v})
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more after its facts")
	}
	return facts, nil
}

// ListEntries implements ports.Journal.
func (s *Store) ListEntries(ctx context.Context, t access.Tenant, subject journal.Subject, after int64, limit int) ([]journal.Entry, error) {
	after = max(after, 0)
	if limit <= 0 || after == math.MaxInt64 || !storable(subject.Kind) || !storable(subject.ID) {
		return nil, nil
	}
	last := int64(math.MaxInt64) // numbers have no gaps
	if int64(limit) < last-after {
		last = after + int64(limit)
	}
	args := []any{t.String(), subject.Kind, subject.ID, after, last}
	var rows []*entryRow
	at := 0 // both answers are in order of number
	var list []journal.Entry
	err := s.read(ctx, func() error {
		for _, row := range rows {
			e, err := row.entry(t, subject)
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		return nil
	}, Step{entryPage, args, func(r Row) error {
		var e entryRow
		if err := r.Scan(e.fields()...); err != nil {
			return err
		}
		rows = append(rows, &e)
		return nil
	}}, Step{postingPage, args, func(r Row) error {
		var number int64
		var p postingRow
		if err := r.Scan(append([]any{&number}, p.fields()...)...); err != nil {
			return err
		}
		for at < len(rows) && rows[at].number != number {
			at++
		}
		if at == len(rows) {
			return unreadable("postings of entry %d of %s %s, which is not there", number, subject.Kind, subject.ID)
		}
		rows[at].postings = append(rows[at].postings, p)
		return nil
	}})
	return list, err
}

// entryRow is an entry as the database holds it.
type entryRow struct {
	number                                    int64
	op                                        uuid
	principal, via, tool, key, command, facts string
	at                                        timestamp
	previous, hash                            []byte
	postings                                  []postingRow
}

func (e *entryRow) fields() []any {
	return []any{&e.number, &e.op, &e.principal, &e.via, &e.tool, &e.key, &e.at, &e.command, &e.facts, &e.previous, &e.hash}
}

type postingRow struct {
	account, lot, side, currency string
	amount                       int64
	digits                       int
}

func (p *postingRow) fields() []any {
	return []any{&p.account, &p.lot, &p.side, &p.amount, &p.currency, &p.digits}
}

// entry makes the entry, or says why the rows are none. It computes nothing
// anew: journal.Verify does.
func (e *entryRow) entry(t access.Tenant, subject journal.Subject) (journal.Entry, error) {
	wrong := func(err error) (journal.Entry, error) {
		return journal.Entry{}, damaged(subject, e.number, err)
	}
	key, err := operation.ParseKey(e.key)
	if err != nil {
		return wrong(err)
	}
	facts, err := decodeFacts(e.facts)
	if err != nil {
		return wrong(err)
	}
	previous, err := hash(e.previous)
	if err != nil {
		return wrong(err)
	}
	own, err := hash(e.hash)
	if err != nil {
		return wrong(err)
	}
	var postings []journal.Posting
	for _, p := range e.postings {
		currency, err := money.RestoreCurrency(p.currency, p.digits)
		if err != nil {
			return wrong(err)
		}
		side := journal.Debit
		if p.side == journal.Credit.String() {
			side = journal.Credit
		}
		postings = append(postings, journal.Posting{Account: journal.Account(p.account), Lot: p.lot, Side: side, Amount: money.FromMinor(p.amount, currency)})
	}
	op := operation.Operation{ID: operation.ID(e.op), Tenant: t, Principal: e.principal, Via: e.via, Tool: e.tool, Key: key, At: e.at.Time}
	return journal.Restore(e.number, previous, own, subject, op, e.command, facts, postings), nil
}
