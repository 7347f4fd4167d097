-- +goose Up

-- Money is whole minor units of its currency, which had so many digits after the
-- point when the row was written. Times are UTC, whole milliseconds.
-- Names and ids are compared byte by byte (COLLATE "C"), as the program does.

CREATE TABLE accounts (
	tenant        text COLLATE "C" NOT NULL,
	id            text COLLATE "C" NOT NULL,
	name          text NOT NULL,
	email         text NOT NULL,
	status        text NOT NULL CHECK (status IN ('active', 'suspended')),
	currency      text NOT NULL CHECK (length(currency) = 3),
	digits        smallint NOT NULL CHECK (digits BETWEEN 0 AND 18),
	created_at    timestamptz(3) NOT NULL,
	version       bigint NOT NULL CHECK (version > 0),        -- the number of its last entry
	balance_minor bigint NOT NULL CHECK (balance_minor >= 0), -- the sum of its lots
	head_hash     bytea NOT NULL CHECK (length(head_hash) = 32), -- of its last entry
	PRIMARY KEY (tenant, id)
) WITH (fillfactor = 70); -- room for the next version on the same page

CREATE TABLE lots (
	tenant        text COLLATE "C" NOT NULL,
	account       text COLLATE "C" NOT NULL,
	lot           text COLLATE "C" NOT NULL CHECK (lot <> ''),
	position      bigint NOT NULL CHECK (position > 0), -- in the order they came
	balance_minor bigint NOT NULL CHECK (balance_minor >= 0),
	PRIMARY KEY (tenant, account, lot)
) WITH (fillfactor = 70);

-- The journal. number is an entry's place in the history of its subject, without
-- gaps.
CREATE TABLE entries (
	tenant       text COLLATE "C" NOT NULL,
	subject_kind text COLLATE "C" NOT NULL,
	subject_id   text COLLATE "C" NOT NULL,
	number       bigint NOT NULL CHECK (number > 0),
	op           uuid NOT NULL,
	principal    text NOT NULL,
	via          text NOT NULL,
	tool         text NOT NULL,
	key          text NOT NULL,
	at           timestamptz(3) NOT NULL,
	command      text NOT NULL,
	facts        json NOT NULL, -- an object of texts; their order counts, so it is not jsonb
	previous     bytea NOT NULL CHECK (length(previous) = 32),
	hash         bytea NOT NULL CHECK (length(hash) = 32),
	PRIMARY KEY (tenant, subject_kind, subject_id, number)
);

-- The lines of the entries. They are written before their entries, all those of
-- an entry at once.
CREATE TABLE postings (
	tenant       text COLLATE "C" NOT NULL,
	subject_kind text COLLATE "C" NOT NULL,
	subject_id   text COLLATE "C" NOT NULL,
	number       bigint NOT NULL,
	position     bigint NOT NULL CHECK (position > 0),
	account      text COLLATE "C" NOT NULL CHECK (account <> ''),
	lot          text NOT NULL,
	side         text NOT NULL CHECK (side IN ('debit', 'credit')),
	amount_minor bigint NOT NULL CHECK (amount_minor > 0),
	currency     text NOT NULL CHECK (length(currency) = 3),
	digits       smallint NOT NULL CHECK (digits BETWEEN 0 AND 18),
	PRIMARY KEY (tenant, subject_kind, subject_id, number, position)
);

CREATE TABLE refunds (
	tenant          text COLLATE "C" NOT NULL,
	customer        text COLLATE "C" NOT NULL,
	number          bigint NOT NULL CHECK (number > 0), -- of the entry that booked it
	id              uuid NOT NULL,
	amount_minor    bigint NOT NULL CHECK (amount_minor > 0),
	currency        text NOT NULL CHECK (length(currency) = 3),
	digits          smallint NOT NULL CHECK (digits BETWEEN 0 AND 18),
	reason          text NOT NULL CHECK (reason <> ''),
	processed_at    timestamptz(3) NOT NULL,
	remaining_minor bigint NOT NULL CHECK (remaining_minor >= 0), -- the balance right after it
	PRIMARY KEY (tenant, customer, number)
);

-- A refund whose payment failed. Its row in refunds stays as it is.
CREATE TABLE reversals (
	tenant          text COLLATE "C" NOT NULL,
	customer        text COLLATE "C" NOT NULL,
	refund          bigint NOT NULL CHECK (refund > 0),      -- refunds.number
	number          bigint NOT NULL CHECK (number > refund), -- of the entry that booked it
	id              uuid NOT NULL,
	amount_minor    bigint NOT NULL CHECK (amount_minor > 0),
	currency        text NOT NULL CHECK (length(currency) = 3),
	digits          smallint NOT NULL CHECK (digits BETWEEN 0 AND 18),
	reason          text NOT NULL CHECK (reason <> ''),
	reversed_at     timestamptz(3) NOT NULL,
	remaining_minor bigint NOT NULL CHECK (remaining_minor >= amount_minor),
	PRIMARY KEY (tenant, customer, refund),
	FOREIGN KEY (tenant, customer, refund) REFERENCES refunds (tenant, customer, number)
);

CREATE TABLE adjustments (
	tenant          text COLLATE "C" NOT NULL,
	customer        text COLLATE "C" NOT NULL,
	number          bigint NOT NULL CHECK (number > 0), -- of the entry that booked it
	id              uuid NOT NULL,
	change_minor    bigint NOT NULL CHECK (change_minor <> 0),
	currency        text NOT NULL CHECK (length(currency) = 3),
	digits          smallint NOT NULL CHECK (digits BETWEEN 0 AND 18),
	why             text NOT NULL CHECK (why <> ''),
	adjusted_at     timestamptz(3) NOT NULL,
	remaining_minor bigint NOT NULL CHECK (remaining_minor >= 0),
	PRIMARY KEY (tenant, customer, number)
);

CREATE TABLE imports (
	tenant      text COLLATE "C" NOT NULL,
	id          text COLLATE "C" NOT NULL,
	opened      bigint NOT NULL CHECK (opened >= 0),
	unchanged   bigint NOT NULL CHECK (unchanged >= 0),
	imported_at timestamptz(3) NOT NULL,
	PRIMARY KEY (tenant, id)
);

-- What each operation key led to. The row is the claim on the key.
CREATE TABLE operations (
	tenant        text COLLATE "C" NOT NULL,
	principal     text COLLATE "C" NOT NULL,
	key           text COLLATE "C" NOT NULL CHECK (length(key) BETWEEN 1 AND 80),
	fingerprint   bytea NOT NULL CHECK (length(fingerprint) = 32),
	command       text NOT NULL,
	tool          text NOT NULL,
	via           text NOT NULL,
	op            uuid NOT NULL,
	at            timestamptz(3) NOT NULL,
	answer_kind   text NOT NULL,
	answer_id     text NOT NULL,
	answer_number bigint NOT NULL, -- an entry of its history, 0 if it has none
	PRIMARY KEY (tenant, principal, key)
);

-- What was answered about an account and may change without a trace in the
-- journal. These rows may be changed: a name may have to be erased one day.
CREATE TABLE account_answers (
	tenant    text COLLATE "C" NOT NULL,
	principal text COLLATE "C" NOT NULL,
	key       text COLLATE "C" NOT NULL,
	name      text NOT NULL,
	email     text NOT NULL,
	status    text NOT NULL CHECK (status IN ('active', 'suspended')),
	PRIMARY KEY (tenant, principal, key)
);

-- +goose StatementBegin
CREATE FUNCTION postings_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (
		SELECT FROM written GROUP BY tenant, subject_kind, subject_id, number, currency, digits
		HAVING sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) <> 0
	) THEN
		RAISE EXCEPTION 'the postings of an entry must be written at once and balance in each currency'
			USING ERRCODE = 'check_violation';
	END IF;
	IF EXISTS (
		SELECT FROM (SELECT DISTINCT tenant, subject_kind, subject_id, number FROM written) w
		JOIN entries e ON e.tenant = w.tenant AND e.subject_kind = w.subject_kind AND e.subject_id = w.subject_id AND e.number = w.number
	) THEN
		RAISE EXCEPTION 'an entry that is there gets no more postings' USING ERRCODE = 'unique_violation';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER postings_balance AFTER INSERT ON postings
	REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION postings_balance();

-- What is written stays as it is.

-- +goose StatementBegin
CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END $$;
-- +goose StatementEnd

CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON postings
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON operations
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON refunds
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON reversals
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON adjustments
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON imports
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON accounts
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never deleted');
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON lots
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never deleted');

CREATE TRIGGER fixed BEFORE UPDATE ON accounts FOR EACH ROW
	WHEN ((OLD.tenant, OLD.id, OLD.currency, OLD.digits, OLD.created_at) IS DISTINCT FROM (NEW.tenant, NEW.id, NEW.currency, NEW.digits, NEW.created_at)
		OR NEW.version <= OLD.version)
	EXECUTE FUNCTION never('the id, the currency and the age never change, and the version grows');
CREATE TRIGGER fixed BEFORE UPDATE ON lots FOR EACH ROW
	WHEN ((OLD.tenant, OLD.account, OLD.lot, OLD.position) IS DISTINCT FROM (NEW.tenant, NEW.account, NEW.lot, NEW.position))
	EXECUTE FUNCTION never('only the balance changes');
