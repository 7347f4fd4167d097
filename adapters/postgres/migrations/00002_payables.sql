-- +goose Up

-- Quantities are millionths of their unit. What is summed up over several units
-- (received, billed, credited) is an exact fraction in lowest terms. A day is a
-- text of the form 2026-03-31. An empty text is none.

CREATE TABLE vendors (
	tenant    text COLLATE "C" NOT NULL,
	id        text COLLATE "C" NOT NULL CHECK (id <> ''),
	name      text NOT NULL CHECK (name <> ''),
	version   bigint NOT NULL CHECK (version > 0), -- the number of its last entry
	head_hash bytea NOT NULL CHECK (length(head_hash) = 32), -- of its last entry
	PRIMARY KEY (tenant, id)
) WITH (fillfactor = 70);

-- What is owed to a vendor; below zero, what the vendor owes.
CREATE TABLE vendor_balances (
	tenant        text COLLATE "C" NOT NULL,
	vendor        text COLLATE "C" NOT NULL,
	currency      text COLLATE "C" NOT NULL CHECK (length(currency) = 3),
	digits        smallint NOT NULL CHECK (digits BETWEEN 0 AND 18),
	balance_minor bigint NOT NULL,
	PRIMARY KEY (tenant, vendor, currency),
	FOREIGN KEY (tenant, vendor) REFERENCES vendors (tenant, id)
) WITH (fillfactor = 70);

CREATE TABLE purchase_orders (
	tenant               text COLLATE "C" NOT NULL,
	id                   text COLLATE "C" NOT NULL CHECK (id <> ''),
	vendor               text COLLATE "C" NOT NULL,
	currency             text COLLATE "C" NOT NULL CHECK (length(currency) = 3),
	digits               smallint NOT NULL CHECK (digits BETWEEN 0 AND 18),
	freight_limit_minor  bigint NOT NULL CHECK (freight_limit_minor >= 0),
	tax_limit_micro      bigint NOT NULL CHECK (tax_limit_micro >= 0), -- millionths of a percent
	freight_billed_minor bigint NOT NULL CHECK (freight_billed_minor >= 0),
	PRIMARY KEY (tenant, id),
	FOREIGN KEY (tenant, vendor) REFERENCES vendors (tenant, id)
);

CREATE TABLE purchase_order_lines (
	tenant               text COLLATE "C" NOT NULL,
	purchase_order       text COLLATE "C" NOT NULL,
	line                 bigint NOT NULL CHECK (line > 0),
	sku                  text NOT NULL CHECK (sku <> ''),
	description          text NOT NULL,
	unit                 text NOT NULL CHECK (unit <> ''),
	quantity_micro       bigint NOT NULL CHECK (quantity_micro > 0),
	unit_price_minor     bigint NOT NULL CHECK (unit_price_minor >= 0),
	received_numerator   bigint NOT NULL CHECK (received_numerator >= 0), -- less what was sent back
	received_denominator bigint NOT NULL CHECK (received_denominator > 0),
	billed_numerator     bigint NOT NULL CHECK (billed_numerator >= 0), -- less credit notes
	billed_denominator   bigint NOT NULL CHECK (billed_denominator > 0),
	PRIMARY KEY (tenant, purchase_order, line)
) WITH (fillfactor = 80);

-- Other units of a line: one of them is numerator / denominator of the line's.
CREATE TABLE conversions (
	tenant         text COLLATE "C" NOT NULL,
	purchase_order text COLLATE "C" NOT NULL,
	line           bigint NOT NULL CHECK (line > 0),
	position       bigint NOT NULL CHECK (position > 0),
	unit           text NOT NULL CHECK (unit <> ''),
	numerator      bigint NOT NULL CHECK (numerator > 0),
	denominator    bigint NOT NULL CHECK (denominator > 0),
	PRIMARY KEY (tenant, purchase_order, line, position)
);

CREATE TABLE goods_receipts (
	tenant         text COLLATE "C" NOT NULL,
	id             text COLLATE "C" NOT NULL CHECK (id <> ''),
	purchase_order text COLLATE "C" NOT NULL,
	vendor         text COLLATE "C" NOT NULL,
	movement       text NOT NULL CHECK (movement IN ('receipt', 'return')),
	received_at    text NOT NULL CHECK (length(received_at) = 10),
	PRIMARY KEY (tenant, id),
	FOREIGN KEY (tenant, purchase_order) REFERENCES purchase_orders (tenant, id)
);

CREATE INDEX goods_receipts_of_order ON goods_receipts (tenant, purchase_order, id);

CREATE TABLE goods_receipt_lines (
	tenant         text COLLATE "C" NOT NULL,
	receipt        text COLLATE "C" NOT NULL,
	position       bigint NOT NULL CHECK (position > 0),
	order_line     bigint NOT NULL CHECK (order_line > 0),
	quantity_micro bigint NOT NULL CHECK (quantity_micro > 0),
	unit           text NOT NULL CHECK (unit <> ''),
	PRIMARY KEY (tenant, receipt, position)
);

CREATE TABLE invoices (
	tenant         text COLLATE "C" NOT NULL,
	id             text COLLATE "C" NOT NULL CHECK (id <> ''),
	number         text NOT NULL CHECK (number <> ''), -- as the vendor wrote it
	normal         text NOT NULL CHECK (normal <> ''), -- as number_claims has it
	document       text COLLATE "C" NOT NULL CHECK (document IN ('invoice', 'credit_note')),
	credits        text NOT NULL CHECK (credits = '' OR document = 'credit_note'), -- the invoice credited
	vendor         text COLLATE "C" NOT NULL,
	purchase_order text COLLATE "C" NOT NULL, -- that it names; it may not exist
	currency       text COLLATE "C" NOT NULL CHECK (length(currency) = 3),
	digits         smallint NOT NULL CHECK (digits BETWEEN 0 AND 18),
	tax_minor      bigint NOT NULL CHECK (tax_minor >= 0),
	freight_minor  bigint NOT NULL CHECK (freight_minor >= 0),
	total_minor    bigint NOT NULL CHECK (total_minor >= 0),
	invoice_date   text NOT NULL CHECK (length(invoice_date) = 10),
	entered        bigint NOT NULL CHECK (entered > 0), -- the number of the entry that entered it
	status         text COLLATE "C" NOT NULL CHECK (status IN ('open', 'on_hold', 'approved', 'rejected')),
	decision       bigint NOT NULL CHECK (decision >= 0), -- the number of the last one, 0 for none
	credited_minor bigint NOT NULL CHECK (credited_minor >= 0),
	CHECK ((status = 'open') = (decision = 0)),
	PRIMARY KEY (tenant, id),
	FOREIGN KEY (tenant, vendor) REFERENCES vendors (tenant, id)
);

CREATE INDEX invoices_by_status ON invoices (tenant, status, id);
CREATE INDEX invoices_of_vendor ON invoices (tenant, vendor, status, id);
CREATE INDEX invoices_of_order ON invoices (tenant, purchase_order, status, id);
CREATE UNIQUE INDEX invoices_as_entered ON invoices (tenant, vendor, entered);

CREATE TABLE invoice_lines (
	tenant               text COLLATE "C" NOT NULL,
	invoice              text COLLATE "C" NOT NULL,
	line                 bigint NOT NULL CHECK (line > 0),
	order_line           bigint NOT NULL CHECK (order_line >= 0), -- 0 for none
	sku                  text NOT NULL,
	unit                 text NOT NULL CHECK (unit <> ''),
	quantity_micro       bigint NOT NULL CHECK (quantity_micro > 0),
	unit_price_minor     bigint NOT NULL CHECK (unit_price_minor >= 0),
	amount_minor         bigint NOT NULL CHECK (amount_minor >= 0),
	credited_numerator   bigint NOT NULL CHECK (credited_numerator >= 0), -- in the unit of the order's line
	credited_denominator bigint NOT NULL CHECK (credited_denominator > 0),
	PRIMARY KEY (tenant, invoice, line)
);

-- Which documents carry a number, in order of entry. The key is the claim: a
-- number is looked up by it, however many invoices there are.
CREATE TABLE number_claims (
	tenant   text COLLATE "C" NOT NULL,
	vendor   text COLLATE "C" NOT NULL,
	document text COLLATE "C" NOT NULL CHECK (document IN ('invoice', 'credit_note')),
	normal   text COLLATE "C" NOT NULL CHECK (normal <> ''),
	position bigint NOT NULL CHECK (position > 0),
	invoice  text COLLATE "C" NOT NULL,
	rejected boolean NOT NULL,
	PRIMARY KEY (tenant, vendor, document, normal, position),
	FOREIGN KEY (tenant, invoice) REFERENCES invoices (tenant, id)
);

CREATE TABLE decisions (
	tenant     text COLLATE "C" NOT NULL,
	vendor     text COLLATE "C" NOT NULL,
	number     bigint NOT NULL CHECK (number > 0), -- of the entry that recorded it
	id         uuid NOT NULL,
	invoice    text COLLATE "C" NOT NULL,
	action     text NOT NULL CHECK (action IN ('approve', 'hold', 'reject')),
	reason     text NOT NULL CHECK (reason <> ''),
	override   boolean NOT NULL,
	note       text NOT NULL,
	decided_by text NOT NULL CHECK (decided_by <> ''),
	decided_at timestamptz(3) NOT NULL,
	omitted    bigint NOT NULL CHECK (omitted >= 0), -- findings that are not kept
	PRIMARY KEY (tenant, vendor, number),
	FOREIGN KEY (tenant, invoice) REFERENCES invoices (tenant, id)
);

CREATE TABLE decision_findings (
	tenant   text COLLATE "C" NOT NULL,
	vendor   text COLLATE "C" NOT NULL,
	number   bigint NOT NULL CHECK (number > 0),
	position bigint NOT NULL CHECK (position > 0),
	code     text NOT NULL CHECK (code <> ''),
	line     bigint NOT NULL CHECK (line >= 0), -- of the order, 0 for the whole invoice
	expected text NOT NULL,
	found    text NOT NULL,
	PRIMARY KEY (tenant, vendor, number, position)
);

-- The other invoices that a finding names.
CREATE TABLE decision_finding_invoices (
	tenant   text COLLATE "C" NOT NULL,
	vendor   text COLLATE "C" NOT NULL,
	number   bigint NOT NULL CHECK (number > 0),
	position bigint NOT NULL CHECK (position > 0), -- decision_findings.position
	place    bigint NOT NULL CHECK (place > 0),
	invoice  text NOT NULL CHECK (invoice <> ''),
	PRIMARY KEY (tenant, vendor, number, position, place)
);

-- What is written stays as it is.

CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON conversions
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON goods_receipts
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON goods_receipt_lines
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON decisions
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON decision_findings
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON decision_finding_invoices
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never changed');
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON vendors
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never deleted');
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON vendor_balances
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never deleted');
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON purchase_orders
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never deleted');
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON purchase_order_lines
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never deleted');
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON invoices
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never deleted');
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON invoice_lines
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never deleted');
CREATE TRIGGER never_deleted BEFORE DELETE OR TRUNCATE ON number_claims
	FOR EACH STATEMENT EXECUTE FUNCTION never('a row is never deleted');

CREATE TRIGGER fixed BEFORE UPDATE ON vendors FOR EACH ROW
	WHEN ((OLD.tenant, OLD.id)
		IS DISTINCT FROM (NEW.tenant, NEW.id)
		OR NEW.version <= OLD.version)
	EXECUTE FUNCTION never('the id of a vendor never changes, and the version grows');
CREATE TRIGGER fixed BEFORE UPDATE ON vendor_balances FOR EACH ROW
	WHEN ((OLD.tenant, OLD.vendor, OLD.currency, OLD.digits)
		IS DISTINCT FROM (NEW.tenant, NEW.vendor, NEW.currency, NEW.digits))
	EXECUTE FUNCTION never('of a balance only the amount changes');
CREATE TRIGGER fixed BEFORE UPDATE ON purchase_orders FOR EACH ROW
	WHEN ((OLD.tenant, OLD.id, OLD.vendor, OLD.currency, OLD.digits, OLD.freight_limit_minor, OLD.tax_limit_micro)
		IS DISTINCT FROM (NEW.tenant, NEW.id, NEW.vendor, NEW.currency, NEW.digits, NEW.freight_limit_minor, NEW.tax_limit_micro))
	EXECUTE FUNCTION never('of an order only what is billed changes');
CREATE TRIGGER fixed BEFORE UPDATE ON purchase_order_lines FOR EACH ROW
	WHEN ((OLD.tenant, OLD.purchase_order, OLD.line, OLD.sku, OLD.description, OLD.unit, OLD.quantity_micro, OLD.unit_price_minor)
		IS DISTINCT FROM (NEW.tenant, NEW.purchase_order, NEW.line, NEW.sku, NEW.description, NEW.unit, NEW.quantity_micro, NEW.unit_price_minor))
	EXECUTE FUNCTION never('of a line only what is received and billed changes');
CREATE TRIGGER fixed BEFORE UPDATE ON invoices FOR EACH ROW
	WHEN ((OLD.tenant, OLD.id, OLD.number, OLD.normal, OLD.document, OLD.credits, OLD.vendor, OLD.purchase_order, OLD.currency, OLD.digits, OLD.tax_minor, OLD.freight_minor, OLD.total_minor, OLD.invoice_date, OLD.entered)
		IS DISTINCT FROM (NEW.tenant, NEW.id, NEW.number, NEW.normal, NEW.document, NEW.credits, NEW.vendor, NEW.purchase_order, NEW.currency, NEW.digits, NEW.tax_minor, NEW.freight_minor, NEW.total_minor, NEW.invoice_date, NEW.entered)
		OR NEW.decision < OLD.decision OR (OLD.status IN ('approved', 'rejected') AND (NEW.status <> OLD.status OR NEW.decision <> OLD.decision)))
	EXECUTE FUNCTION never('what the vendor sent never changes, and an approval or a rejection is final');
CREATE TRIGGER fixed BEFORE UPDATE ON invoice_lines FOR EACH ROW
	WHEN ((OLD.tenant, OLD.invoice, OLD.line, OLD.order_line, OLD.sku, OLD.unit, OLD.quantity_micro, OLD.unit_price_minor, OLD.amount_minor)
		IS DISTINCT FROM (NEW.tenant, NEW.invoice, NEW.line, NEW.order_line, NEW.sku, NEW.unit, NEW.quantity_micro, NEW.unit_price_minor, NEW.amount_minor))
	EXECUTE FUNCTION never('of a line only what is credited changes');
CREATE TRIGGER fixed BEFORE UPDATE ON number_claims FOR EACH ROW
	WHEN ((OLD.tenant, OLD.vendor, OLD.document, OLD.normal, OLD.position, OLD.invoice)
		IS DISTINCT FROM (NEW.tenant, NEW.vendor, NEW.document, NEW.normal, NEW.position, NEW.invoice)
		OR OLD.rejected AND NOT NEW.rejected)
	EXECUTE FUNCTION never('a claim never changes but by the rejection of its invoice');

-- Lines are written before what they belong to: once it is there, no line is
-- added. The code is that of a key that is taken: another process may have been
-- first with the same document.

-- +goose StatementBegin
CREATE FUNCTION purchase_order_lines_come_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM (SELECT DISTINCT tenant, purchase_order FROM written) w JOIN purchase_orders d ON d.tenant = w.tenant AND d.id = w.purchase_order) THEN
		RAISE EXCEPTION 'an order that is there gets no more %', TG_TABLE_NAME USING ERRCODE = 'unique_violation';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER come_first AFTER INSERT ON purchase_order_lines
	REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION purchase_order_lines_come_first();
-- +goose StatementBegin
CREATE FUNCTION conversions_come_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM (SELECT DISTINCT tenant, purchase_order FROM written) w JOIN purchase_orders d ON d.tenant = w.tenant AND d.id = w.purchase_order) THEN
		RAISE EXCEPTION 'an order that is there gets no more %', TG_TABLE_NAME USING ERRCODE = 'unique_violation';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER come_first AFTER INSERT ON conversions
	REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION conversions_come_first();
-- +goose StatementBegin
CREATE FUNCTION goods_receipt_lines_come_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM (SELECT DISTINCT tenant, receipt FROM written) w JOIN goods_receipts d ON d.tenant = w.tenant AND d.id = w.receipt) THEN
		RAISE EXCEPTION 'a receipt that is there gets no more %', TG_TABLE_NAME USING ERRCODE = 'unique_violation';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER come_first AFTER INSERT ON goods_receipt_lines
	REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION goods_receipt_lines_come_first();
-- +goose StatementBegin
CREATE FUNCTION invoice_lines_come_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM (SELECT DISTINCT tenant, invoice FROM written) w JOIN invoices d ON d.tenant = w.tenant AND d.id = w.invoice) THEN
		RAISE EXCEPTION 'an invoice that is there gets no more %', TG_TABLE_NAME USING ERRCODE = 'unique_violation';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER come_first AFTER INSERT ON invoice_lines
	REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION invoice_lines_come_first();
-- +goose StatementBegin
CREATE FUNCTION decision_findings_come_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM (SELECT DISTINCT tenant, vendor, number FROM written) w JOIN decisions d ON d.tenant = w.tenant AND d.vendor = w.vendor AND d.number = w.number) THEN
		RAISE EXCEPTION 'a decision that is there gets no more %', TG_TABLE_NAME USING ERRCODE = 'unique_violation';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER come_first AFTER INSERT ON decision_findings
	REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION decision_findings_come_first();
-- +goose StatementBegin
CREATE FUNCTION decision_finding_invoices_come_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM (SELECT DISTINCT tenant, vendor, number FROM written) w JOIN decisions d ON d.tenant = w.tenant AND d.vendor = w.vendor AND d.number = w.number) THEN
		RAISE EXCEPTION 'a decision that is there gets no more %', TG_TABLE_NAME USING ERRCODE = 'unique_violation';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER come_first AFTER INSERT ON decision_finding_invoices
	REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION decision_finding_invoices_come_first();
