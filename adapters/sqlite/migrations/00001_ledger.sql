-- +goose Up

-- Money is whole minor units of its currency, which had so many digits after the
-- point when the row was written. Times are whole milliseconds since 1970-01-01
-- UTC: datetime(at / 1000, 'unixepoch') shows one. Ids are UUIDs.
--
-- What happens often is kept once and in few rows: a row refers to the one that
-- has the rest, or has itself what most have one of, and a view shows it as if
-- it stood alone. Read entries, postings, refunds and lots; where they are kept
-- is said below.

CREATE TABLE accounts (
	tenant        TEXT NOT NULL,
	id            TEXT NOT NULL,
	name          TEXT NOT NULL,
	email         TEXT NOT NULL,
	status        TEXT NOT NULL CHECK (status IN ('active', 'suspended')),
	currency      TEXT NOT NULL CHECK (length(currency) = 3),
	digits        INTEGER NOT NULL CHECK (digits BETWEEN 0 AND 18),
	created_at    INTEGER NOT NULL,
	version       INTEGER NOT NULL CHECK (version > 0),        -- the number of its last entry
	balance_minor INTEGER NOT NULL CHECK (balance_minor >= 0), -- the sum of its lots
	head_hash     BLOB NOT NULL CHECK (length(head_hash) = 32), -- of its last entry
	lot           TEXT CHECK (lot <> ''), -- its first
	lot_minor     INTEGER CHECK (lot_minor >= 0),
	CHECK ((lot IS NULL) = (lot_minor IS NULL)),
	PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- The lots after an account's first.
CREATE TABLE lot_rows (
	tenant        TEXT NOT NULL,
	account       TEXT NOT NULL,
	lot           TEXT NOT NULL CHECK (lot <> ''),
	position      INTEGER NOT NULL CHECK (position > 1), -- in the order they came
	balance_minor INTEGER NOT NULL CHECK (balance_minor >= 0),
	PRIMARY KEY (tenant, account, lot)
) STRICT, WITHOUT ROWID;

CREATE VIEW lots AS
	SELECT a.tenant, a.id AS account, CASE WHEN part.first THEN a.lot ELSE l.lot END AS lot,
		CASE WHEN part.first THEN 1 ELSE l.position END AS position, CASE WHEN part.first THEN a.lot_minor ELSE l.balance_minor END AS balance_minor
	FROM accounts a CROSS JOIN (SELECT true AS first UNION ALL SELECT false) part
	LEFT JOIN lot_rows l ON NOT part.first AND l.tenant = a.tenant AND l.account = a.id
	WHERE CASE WHEN part.first THEN a.lot ELSE l.lot END IS NOT NULL;

-- What each operation key led to. The row is the claim on the key. seq is the
-- order of the commits.
CREATE TABLE operations (
	seq           INTEGER PRIMARY KEY,
	tenant        TEXT NOT NULL,
	principal     TEXT NOT NULL,
	key           TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 80),
	fingerprint   BLOB NOT NULL CHECK (length(fingerprint) = 32),
	command       TEXT NOT NULL,
	tool          TEXT NOT NULL,
	via           TEXT NOT NULL,
	op            TEXT NOT NULL,
	at            INTEGER NOT NULL,
	answer_kind   TEXT NOT NULL,
	answer_id     TEXT NOT NULL,
	answer_number INTEGER NOT NULL, -- an entry of its history, 0 if it has none
	UNIQUE (tenant, principal, key)
) STRICT;

-- The journal. seq is the order of the commits; number is an entry's place in
-- the history of its subject, without gaps. Most entries have two postings of
-- one amount, which so balance and are kept here; the postings of the others are
-- in posting_rows. What a refund adds to its entry is kept here too.
CREATE TABLE entry_rows (
	seq          INTEGER PRIMARY KEY,
	operation    INTEGER NOT NULL REFERENCES operations (seq),
	tenant       TEXT NOT NULL,
	subject_kind TEXT NOT NULL,
	subject_id   TEXT NOT NULL,
	number       INTEGER NOT NULL CHECK (number > 0),
	facts        TEXT NOT NULL CHECK (facts LIKE '{%}'), -- a JSON object of texts; their order counts
	previous     BLOB NOT NULL CHECK (length(previous) = 32),
	hash         BLOB NOT NULL CHECK (length(hash) = 32),
	debit           TEXT CHECK (debit <> ''), -- the accounts of the two postings
	debit_lot       TEXT,
	credit          TEXT CHECK (credit <> ''),
	credit_lot      TEXT,
	amount_minor    INTEGER CHECK (amount_minor > 0), -- of both postings, and of the refund
	currency        TEXT CHECK (length(currency) = 3),
	digits          INTEGER CHECK (digits BETWEEN 0 AND 18),
	reason          TEXT CHECK (reason <> ''), -- of the refund
	remaining_minor INTEGER CHECK (remaining_minor >= 0), -- the balance right after it
	CHECK ((debit IS NULL) = (debit_lot IS NULL) AND (debit IS NULL) = (credit IS NULL) AND (debit IS NULL) = (credit_lot IS NULL)),
	CHECK ((reason IS NULL) = (remaining_minor IS NULL)),
	CHECK ((amount_minor IS NULL) = (debit IS NULL AND reason IS NULL) AND (amount_minor IS NULL) = (currency IS NULL) AND (amount_minor IS NULL) = (digits IS NULL)),
	UNIQUE (tenant, subject_kind, subject_id, number)
) STRICT;

CREATE VIEW entries AS
	SELECT e.seq, e.tenant, e.subject_kind, e.subject_id, e.number, o.op, o.principal, o.via, o.tool, o.key, o.at, o.command, e.facts, e.previous, e.hash
	FROM entry_rows e JOIN operations o ON o.seq = e.operation;

-- The postings of entries that have not two of one amount. They are written
-- before their entry, which checks that they balance.
CREATE TABLE posting_rows (
	entry        INTEGER NOT NULL, -- entry_rows.seq
	position     INTEGER NOT NULL CHECK (position > 0),
	account      TEXT NOT NULL CHECK (account <> ''),
	lot          TEXT NOT NULL,
	side         TEXT NOT NULL CHECK (side IN ('debit', 'credit')),
	amount_minor INTEGER NOT NULL CHECK (amount_minor > 0),
	currency     TEXT NOT NULL CHECK (length(currency) = 3),
	digits       INTEGER NOT NULL CHECK (digits BETWEEN 0 AND 18),
	PRIMARY KEY (entry, position)
) STRICT, WITHOUT ROWID;

CREATE VIEW postings AS
	SELECT e.tenant, e.subject_kind, e.subject_id, e.number,
		CASE part.side WHEN 'debit' THEN 1 WHEN 'credit' THEN 2 ELSE p.position END AS position,
		CASE part.side WHEN 'debit' THEN e.debit WHEN 'credit' THEN e.credit ELSE p.account END AS account,
		CASE part.side WHEN 'debit' THEN e.debit_lot WHEN 'credit' THEN e.credit_lot ELSE p.lot END AS lot,
		coalesce(p.side, part.side) AS side,
		coalesce(p.amount_minor, e.amount_minor) AS amount_minor,
		coalesce(p.currency, e.currency) AS currency,
		coalesce(p.digits, e.digits) AS digits
	FROM entry_rows e CROSS JOIN (SELECT 'debit' AS side UNION ALL SELECT 'credit' UNION ALL SELECT 'row') part
	LEFT JOIN posting_rows p ON part.side = 'row' AND p.entry = e.seq
	WHERE CASE WHEN e.debit IS NULL THEN p.entry IS NOT NULL ELSE part.side <> 'row' END;

CREATE VIEW refunds AS
	SELECT e.tenant, e.subject_id AS customer, e.number, o.op AS id, e.amount_minor, e.currency, e.digits, e.reason, o.at AS processed_at, e.remaining_minor
	FROM entry_rows e JOIN operations o ON o.seq = e.operation
	WHERE e.subject_kind = 'account' AND e.reason IS NOT NULL;

-- A refund whose payment failed. Its row in refunds stays as it is.
CREATE TABLE reversals (
	tenant          TEXT NOT NULL,
	customer        TEXT NOT NULL,
	refund          INTEGER NOT NULL CHECK (refund > 0),      -- refunds.number
	number          INTEGER NOT NULL CHECK (number > refund), -- of the entry that booked it
	id              TEXT NOT NULL,
	amount_minor    INTEGER NOT NULL CHECK (amount_minor > 0),
	currency        TEXT NOT NULL CHECK (length(currency) = 3),
	digits          INTEGER NOT NULL CHECK (digits BETWEEN 0 AND 18),
	reason          TEXT NOT NULL CHECK (reason <> ''),
	reversed_at     INTEGER NOT NULL,
	remaining_minor INTEGER NOT NULL CHECK (remaining_minor >= amount_minor),
	PRIMARY KEY (tenant, customer, refund)
) STRICT, WITHOUT ROWID;

CREATE TABLE adjustments (
	tenant          TEXT NOT NULL,
	customer        TEXT NOT NULL,
	number          INTEGER NOT NULL CHECK (number > 0), -- of the entry that booked it
	id              TEXT NOT NULL,
	change_minor    INTEGER NOT NULL CHECK (change_minor <> 0),
	currency        TEXT NOT NULL CHECK (length(currency) = 3),
	digits          INTEGER NOT NULL CHECK (digits BETWEEN 0 AND 18),
	why             TEXT NOT NULL CHECK (why <> ''),
	adjusted_at     INTEGER NOT NULL,
	remaining_minor INTEGER NOT NULL CHECK (remaining_minor >= 0),
	PRIMARY KEY (tenant, customer, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE imports (
	tenant      TEXT NOT NULL,
	id          TEXT NOT NULL,
	opened      INTEGER NOT NULL CHECK (opened >= 0),
	unchanged   INTEGER NOT NULL CHECK (unchanged >= 0),
	imported_at INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- What was answered about an account and may change without a trace in the
-- journal. These rows may be changed: a name may have to be erased one day.
CREATE TABLE account_answers (
	tenant    TEXT NOT NULL,
	principal TEXT NOT NULL,
	key       TEXT NOT NULL,
	name      TEXT NOT NULL,
	email     TEXT NOT NULL,
	status    TEXT NOT NULL CHECK (status IN ('active', 'suspended')),
	PRIMARY KEY (tenant, principal, key)
) STRICT, WITHOUT ROWID;

-- What is written stays as it is.

-- +goose StatementBegin
CREATE TRIGGER entries_balance AFTER INSERT ON entry_rows WHEN NEW.debit IS NULL BEGIN
	SELECT RAISE(ABORT, 'the postings of an entry must balance in each currency')
	FROM posting_rows WHERE entry = NEW.seq
	GROUP BY currency, digits HAVING sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) <> 0;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER postings_before_entry BEFORE INSERT ON posting_rows WHEN NEW.entry <= (SELECT max(seq) FROM entry_rows) BEGIN
	SELECT RAISE(ABORT, 'an entry that is there gets no more postings');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER entries_no_update BEFORE UPDATE ON entry_rows BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER entries_no_delete BEFORE DELETE ON entry_rows BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER postings_no_update BEFORE UPDATE ON posting_rows BEGIN SELECT RAISE(ABORT, 'postings are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER postings_no_delete BEFORE DELETE ON posting_rows BEGIN SELECT RAISE(ABORT, 'postings are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER operations_no_update BEFORE UPDATE ON operations BEGIN SELECT RAISE(ABORT, 'operations are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER operations_no_delete BEFORE DELETE ON operations BEGIN SELECT RAISE(ABORT, 'operations are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER reversals_no_update BEFORE UPDATE ON reversals BEGIN SELECT RAISE(ABORT, 'reversals are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER reversals_no_delete BEFORE DELETE ON reversals BEGIN SELECT RAISE(ABORT, 'reversals are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER adjustments_no_update BEFORE UPDATE ON adjustments BEGIN SELECT RAISE(ABORT, 'adjustments are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER adjustments_no_delete BEFORE DELETE ON adjustments BEGIN SELECT RAISE(ABORT, 'adjustments are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER imports_no_update BEFORE UPDATE ON imports BEGIN SELECT RAISE(ABORT, 'imports are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER imports_no_delete BEFORE DELETE ON imports BEGIN SELECT RAISE(ABORT, 'imports are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER accounts_fixed BEFORE UPDATE OF tenant, id, currency, digits, created_at ON accounts BEGIN
	SELECT RAISE(ABORT, 'the name, the currency and the age of an account never change');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER accounts_version_grows BEFORE UPDATE ON accounts WHEN NEW.version <= OLD.version OR NEW.lot IS NOT OLD.lot AND OLD.lot IS NOT NULL BEGIN
	SELECT RAISE(ABORT, 'the version of an account grows with each change, and its first lot stays');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER accounts_no_delete BEFORE DELETE ON accounts BEGIN SELECT RAISE(ABORT, 'accounts are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER lots_fixed BEFORE UPDATE OF tenant, account, lot, position ON lot_rows BEGIN
	SELECT RAISE(ABORT, 'of a lot only the balance changes');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER lots_no_delete BEFORE DELETE ON lot_rows BEGIN SELECT RAISE(ABORT, 'lots are never deleted'); END;
-- +goose StatementEnd

-- INSERT OR REPLACE deletes rows without a word to the triggers of DELETE: a row
-- whose key is there is refused first. Postings are refused above.

-- +goose StatementBegin
CREATE TRIGGER accounts_no_replace BEFORE INSERT ON accounts
	WHEN EXISTS (SELECT 1 FROM accounts WHERE tenant = NEW.tenant AND id = NEW.id)
BEGIN
	SELECT RAISE(ABORT, 'accounts are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER lots_no_replace BEFORE INSERT ON lot_rows
	WHEN EXISTS (SELECT 1 FROM lot_rows WHERE tenant = NEW.tenant AND account = NEW.account AND lot = NEW.lot)
BEGIN
	SELECT RAISE(ABORT, 'lots are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER operations_no_replace BEFORE INSERT ON operations
	WHEN NEW.seq <= (SELECT max(seq) FROM operations)
		OR EXISTS (SELECT 1 FROM operations WHERE tenant = NEW.tenant AND principal = NEW.principal AND key = NEW.key)
BEGIN
	SELECT RAISE(ABORT, 'operations are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER entries_no_replace BEFORE INSERT ON entry_rows
	WHEN NEW.seq <= (SELECT max(seq) FROM entry_rows)
		OR NEW.number <> 1 + coalesce((SELECT max(number) FROM entry_rows WHERE tenant = NEW.tenant AND subject_kind = NEW.subject_kind AND subject_id = NEW.subject_id), 0)
BEGIN
	SELECT RAISE(ABORT, 'an entry comes after the last of its subject');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER reversals_no_replace BEFORE INSERT ON reversals
	WHEN EXISTS (SELECT 1 FROM reversals WHERE tenant = NEW.tenant AND customer = NEW.customer AND refund = NEW.refund)
BEGIN
	SELECT RAISE(ABORT, 'reversals are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER adjustments_no_replace BEFORE INSERT ON adjustments
	WHEN EXISTS (SELECT 1 FROM adjustments WHERE tenant = NEW.tenant AND customer = NEW.customer AND number = NEW.number)
BEGIN
	SELECT RAISE(ABORT, 'adjustments are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER imports_no_replace BEFORE INSERT ON imports
	WHEN EXISTS (SELECT 1 FROM imports WHERE tenant = NEW.tenant AND id = NEW.id)
BEGIN
	SELECT RAISE(ABORT, 'imports are never replaced');
END;
-- +goose StatementEnd
