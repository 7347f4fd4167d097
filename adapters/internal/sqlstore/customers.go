package sqlstore

import (
	"context"
	"fmt"
	"math"

	"github.com/refundledger/refundledger/adapters/internal/committer"
	"github.com/refundledger/refundledger/domain/access"
	"github.com/refundledger/refundledger/domain/customers"
	"github.com/refundledger/refundledger/domain/journal"
	"github.com/refundledger/refundledger/domain/ledger"
	"github.com/refundledger/refundledger/domain/money"
	"github.com/refundledger/refundledger/domain/operation"
)

// Accounts is the table of the accounts.
var Accounts = &Table{"accounts", []Column{
	{"tenant", Text, Key},
	{"id", Text, Key},
	{"name", Text, State},
	{"email", Text, State},
	{"status", Text, State},
	{"currency", Text, Fixed},
	{"digits", Int, Fixed},
	{"created_at", Time, Fixed},
	{"version", Int, State},
	{"balance_minor", Int, State},
	{"head_hash", Bytes, State},
}}

// Lots is the table of the lots. A lot is written with its account.
var Lots = &Table{"lots", []Column{
	{"tenant", Text, Key},
	{"account", Text, Key},
	{"lot", Text, Key},
	{"position", Int, Fixed},
	{"balance_minor", Int, State},
}}

// accountAnswerTable keeps, of an answer that was an account, what may change
// without leaving the old value in the journal.
var accountAnswerTable = Table{"account_answers", []Column{
	{"tenant", Text, Key},
	{"principal", Text, Key},
	{"key", Text, Key},
	{"name", Text, State},
	{"email", Text, State},
	{"status", Text, Fixed},
}}

type accountCodec struct {
	dialect                       Dialect
	byKey, byKeyLocked, lots      string
	page, pageLots                string
	answerProfiles, answerLots    string
	accountKeys, answerKeys, asOf []Column
}

func newAccountCodec(d Dialect) *accountCodec {
	c := &accountCodec{
		dialect:     d,
		accountKeys: []Column{{"tenant", Text, Key}, {"id", Text, Key}},
		answerKeys:  []Column{{"tenant", Text, Key}, {"principal", Text, Key}, {"key", Text, Key}, {"id", Text, Key}, {"number", Int, Key}},
		asOf:        []Column{{"tenant", Text, Key}, {"kind", Text, Key}, {"id", Text, Key}, {"number", Int, Key}, {"account", Text, Key}},
	}
	const columns = `r.id, r.name, r.email, r.status, r.currency, r.digits, r.created_at, r.version, r.balance_minor, r.head_hash`
	c.byKey = `SELECT k.n, ` + columns + `
		FROM ` + d.Keys(c.accountKeys...) + ` JOIN accounts r ON r.tenant = k.tenant AND r.id = k.id`
	c.byKeyLocked = c.byKey + d.Lock("r.tenant, r.id", customers.Kind.Shared)
	c.lots = `SELECT k.n, l.lot, l.balance_minor
		FROM ` + d.Keys(c.accountKeys...) + ` JOIN lots l ON l.tenant = k.tenant AND l.account = k.id
		ORDER BY k.n, l.position`
	c.page = `SELECT ` + columns + ` FROM accounts r
		WHERE r.tenant = $1 AND r.id > $2 ORDER BY r.id LIMIT $3`
	c.pageLots = `SELECT l.account, l.lot, l.balance_minor
		FROM (SELECT tenant, id FROM accounts WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3) r
		JOIN lots l ON l.tenant = r.tenant AND l.account = r.id
		ORDER BY l.account, l.position`
	c.answerProfiles = `SELECT k.n, r.id, w.name, w.email, w.status, r.currency, r.digits, r.created_at, e.hash
		FROM ` + d.Keys(c.answerKeys...) + `
		JOIN account_answers w ON w.tenant = k.tenant AND w.principal = k.principal AND w.key = k.key
		JOIN accounts r ON r.tenant = k.tenant AND r.id = k.id
		JOIN entries e ON e.tenant = k.tenant AND e.subject_kind = '` + customers.Kind.Name + `' AND e.subject_id = k.id AND e.number = k.number`
	c.answerLots = `SELECT k.n, p.lot, p.side, p.amount_minor
		FROM ` + d.Keys(c.asOf...) + `
		JOIN postings p ON p.tenant = k.tenant AND p.subject_kind = k.kind AND p.subject_id = k.id AND p.number <= k.number AND p.account = k.account
		ORDER BY k.n, p.number, p.position`
	return c
}

func (c *accountCodec) kind() ledger.Kind { return customers.Kind }

func (c *accountCodec) stores(r ledger.Record) bool {
	_, ok := r.(customers.Account)
	return ok
}

func (c *accountCodec) load(refs []committer.Name, lock bool, put func(int, ledger.Record)) ([]Step, func() error) {
	keys := make([][]any, len(refs))
	for i, n := range refs {
		keys[i] = []any{n.Tenant.String(), n.Ref.ID}
	}
	rows := make([]*accountRow, len(refs))
	query := c.byKey
	if lock {
		query = c.byKeyLocked
	}
	args := c.dialect.KeyArgs(c.accountKeys, keys)
	steps := []Step{
		{query, args, func(r Row) error {
			var n int
			var a accountRow
			if err := r.Scan(append([]any{&n}, a.fields()...)...); err != nil {
				return err
			}
			rows[n-1] = &a
			return nil
		}},
		// A statement of its own, after the lock: it sees what was committed while
		// the first one waited.
		{c.lots, args, func(r Row) error {
			var n int
			var l lotRow
			if err := r.Scan(&n, &l.name, &l.balance); err != nil {
				return err
			}
			// An account that was opened since the first statement is not there yet:
			// whoever opens it too will find its key taken.
			if row := rows[n-1]; row != nil {
				row.lots = append(row.lots, l)
			}
			return nil
		}},
	}
	return steps, func() error {
		for i, row := range rows {
			if row == nil {
				continue
			}
			a, err := row.account()
			if err != nil {
				return err
			}
			put(i, a)
		}
		return nil
	}
}

func (c *accountCodec) write(w *writes, ch committer.Changed) {
	a := ch.After.(customers.Account)
	t := ch.Tenant.String()
	before, there := ch.Before.(customers.Account)
	verb := Insert
	if there {
		verb = Update
	}
	w.add(verb, Accounts, t, a.ID.String(), a.Name, a.Email, a.Status.String(), a.Currency.String(), int64(a.Currency.Digits()),
		a.CreatedAt, a.Version(), a.Balance().Minor(), a.Head.Hash[:])
	for i, l := range a.Lots {
		switch {
		case i >= len(before.Lots):
			w.add(Insert, Lots, t, a.ID.String(), l.Name, int64(i+1), l.Balance.Minor())
		case l != before.Lots[i]:
			w.add(Update, Lots, t, a.ID.String(), l.Name, int64(i+1), l.Balance.Minor())
		}
	}
}

// answer keeps profile and status, which may change; the lots of then are the
// sums of the postings up to the version.
func (c *accountCodec) answer(w *writes, o operation.Operation, r ledger.Record) answerRef {
	a := r.(customers.Account)
	w.add(Insert, &accountAnswerTable, o.Tenant.String(), o.Principal, o.Key.String(), a.Name, a.Email, a.Status.String())
	return answerRef{customers.Kind.Name, a.ID.String(), a.Version()}
}

func (c *accountCodec) answers(list []*kept) ([]Step, func() error) {
	profiles, lots := make([][]any, len(list)), make([][]any, len(list))
	for i, k := range list {
		o := k.outcome.Operation
		profiles[i] = []any{o.Tenant.String(), o.Principal, o.Key.String(), k.answer.id, k.answer.number}
		lots[i] = []any{o.Tenant.String(), customers.Kind.Name, k.answer.id, k.answer.number, string(journal.Refundable(k.answer.id))}
	}
	rows := make([]*accountRow, len(list))
	steps := []Step{
		{c.answerProfiles, c.dialect.KeyArgs(c.answerKeys, profiles), func(r Row) error {
			var n int
			var a accountRow
			if err := r.Scan(&n, &a.id, &a.name, &a.email, &a.status, &a.currency, &a.digits, &a.createdAt, &a.hash); err != nil {
				return err
			}
			a.version = list[n-1].answer.number
			rows[n-1] = &a
			return nil
		}},
		{c.answerLots, c.dialect.KeyArgs(c.asOf, lots), func(r Row) error {
			var n int
			var lot, side string
			var amount int64
			if err := r.Scan(&n, &lot, &side, &amount); err != nil || rows[n-1] == nil {
				return err
			}
			if side == journal.Debit.String() {
				amount = -amount
			}
			rows[n-1].move(lot, amount)
			return nil
		}},
	}
	return steps, func() error {
		for i, row := range rows {
			if row == nil {
				continue
			}
			a, err := row.account()
			if err != nil {
				return err
			}
			list[i].outcome.Answer = a
		}
		return nil
	}
}

// accountRow is an account as the database holds it.
type accountRow struct {
	id, name, email, status, currency string
	digits                            int
	createdAt                         timestamp
	version, balance                  int64
	hash                              []byte
	lots                              []lotRow
}

type lotRow struct {
	name    string
	balance int64
}

func (a *accountRow) fields() []any {
	return []any{&a.id, &a.name, &a.email, &a.status, &a.currency, &a.digits, &a.createdAt, &a.version, &a.balance, &a.hash}
}

// move adds amount to a lot and to the balance.
func (a *accountRow) move(lot string, amount int64) {
	a.balance += amount
	for i := range a.lots {
		if a.lots[i].name == lot {
			a.lots[i].balance += amount
			return
		}
	}
	a.lots = append(a.lots, lotRow{lot, amount})
}

// account makes the record, or says why the rows are none.
func (a *accountRow) account() (customers.Account, error) {
	wrong := func(err error) (customers.Account, error) {
		return customers.Account{}, damaged(journal.Subject{Kind: customers.Kind.Name, ID: a.id}, a.version, err)
	}
	id, err := customers.ParseID(a.id)
	if err != nil {
		return wrong(err)
	}
	status, err := customers.ParseStatus(a.status)
	if err != nil {
		return wrong(err)
	}
	currency, err := money.RestoreCurrency(a.currency, a.digits)
	if err != nil {
		return wrong(err)
	}
	head := journal.Head{Number: a.version}
	if head.Hash, err = hash(a.hash); err != nil {
		return wrong(err)
	}
	var lots []customers.Lot
	if len(a.lots) > 0 {
		lots = make([]customers.Lot, len(a.lots))
	}
	left := a.balance
	for i, l := range a.lots {
		if l.balance < 0 || l.balance > left {
			return wrong(fmt.Errorf("its lots do not sum to its balance"))
		}
		left -= l.balance
		lots[i] = customers.Lot{Name: l.name, Balance: money.FromMinor(l.balance, currency)}
	}
	if left != 0 {
		return wrong(fmt.Errorf("its lots do not sum to its balance"))
	}
	return customers.Account{
		ID: id, Profile: customers.Profile{Name: a.name, Email: a.email}, Status: status,
		Currency: currency, CreatedAt: a.createdAt.Time, Lots: lots, Head: head,
	}, nil
}

// ListAccounts implements ports.Journal.
func (s *Store) ListAccounts(ctx context.Context, t access.Tenant, after string, limit int) ([]customers.Account, error) {
	if limit <= 0 || !storable(after) {
		return nil, nil
	}
	args := []any{t.String(), after, int64(min(limit, math.MaxInt32))}
	var rows []*accountRow
	at := 0 // both answers are in order of id
	var list []customers.Account
	err := s.read(ctx, func() error {
		for _, row := range rows {
			a, err := row.account()
			if err != nil {
				return err
			}
			list = append(list, a)
		}
		return nil
	}, Step{s.accounts.page, args, func(r Row) error {
		var a accountRow
		if err := r.Scan(a.fields()...); err != nil {
			return err
		}
		rows = append(rows, &a)
		return nil
	}}, Step{s.accounts.pageLots, args, func(r Row) error {
		var id string
		var l lotRow
		if err := r.Scan(&id, &l.name, &l.balance); err != nil {
			return err
		}
		for at < len(rows) && rows[at].id != id {
			at++
		}
		if at == len(rows) {
			return unreadable("lots of the account %s, which is not there", id)
		}
		rows[at].lots = append(rows[at].lots, l)
		return nil
	}})
	return list, err
}
