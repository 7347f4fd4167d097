-- +goose Up

-- Quantities are millionths of their unit. What is summed up over several units
-- (received, billed, credited) is an exact fraction in lowest terms. A day is a
-- text of the form 2026-03-31. An empty text is none.

CREATE TABLE vendors (
	tenant    TEXT NOT NULL,
	id        TEXT NOT NULL CHECK (id <> ''),
	name      TEXT NOT NULL CHECK (name <> ''),
	version   INTEGER NOT NULL CHECK (version > 0), -- the number of its last entry
	head_hash BLOB NOT NULL CHECK (length(head_hash) = 32), -- of its last entry
	PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- What is owed to a vendor; below zero, what the vendor owes.
CREATE TABLE vendor_balances (
	tenant        TEXT NOT NULL,
	vendor        TEXT NOT NULL,
	currency      TEXT NOT NULL CHECK (length(currency) = 3),
	digits        INTEGER NOT NULL CHECK (digits BETWEEN 0 AND 18),
	balance_minor INTEGER NOT NULL,
	PRIMARY KEY (tenant, vendor, currency),
	FOREIGN KEY (tenant, vendor) REFERENCES vendors (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE purchase_orders (
	tenant               TEXT NOT NULL,
	id                   TEXT NOT NULL CHECK (id <> ''),
	vendor               TEXT NOT NULL,
	currency             TEXT NOT NULL CHECK (length(currency) = 3),
	digits               INTEGER NOT NULL CHECK (digits BETWEEN 0 AND 18),
	freight_limit_minor  INTEGER NOT NULL CHECK (freight_limit_minor >= 0),
	tax_limit_micro      INTEGER NOT NULL CHECK (tax_limit_micro >= 0), -- millionths of a percent
	freight_billed_minor INTEGER NOT NULL CHECK (freight_billed_minor >= 0),
	PRIMARY KEY (tenant, id),
	FOREIGN KEY (tenant, vendor) REFERENCES vendors (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE purchase_order_lines (
	tenant               TEXT NOT NULL,
	purchase_order       TEXT NOT NULL,
	line                 INTEGER NOT NULL CHECK (line > 0),
	sku                  TEXT NOT NULL CHECK (sku <> ''),
	description          TEXT NOT NULL,
	unit                 TEXT NOT NULL CHECK (unit <> ''),
	quantity_micro       INTEGER NOT NULL CHECK (quantity_micro > 0),
	unit_price_minor     INTEGER NOT NULL CHECK (unit_price_minor >= 0),
	received_numerator   INTEGER NOT NULL CHECK (received_numerator >= 0), -- less what was sent back
	received_denominator INTEGER NOT NULL CHECK (received_denominator > 0),
	billed_numerator     INTEGER NOT NULL CHECK (billed_numerator >= 0), -- less credit notes
	billed_denominator   INTEGER NOT NULL CHECK (billed_denominator > 0),
	PRIMARY KEY (tenant, purchase_order, line)
) STRICT, WITHOUT ROWID;

-- Other units of a line: one of them is numerator / denominator of the line's.
CREATE TABLE conversions (
	tenant         TEXT NOT NULL,
	purchase_order TEXT NOT NULL,
	line           INTEGER NOT NULL CHECK (line > 0),
	position       INTEGER NOT NULL CHECK (position > 0),
	unit           TEXT NOT NULL CHECK (unit <> ''),
	numerator      INTEGER NOT NULL CHECK (numerator > 0),
	denominator    INTEGER NOT NULL CHECK (denominator > 0),
	PRIMARY KEY (tenant, purchase_order, line, position)
) STRICT, WITHOUT ROWID;

-- This table and invoices have rowids: SQLite would rather walk a table that is
-- kept in order of its key than use an index that says more.
CREATE TABLE goods_receipts (
	tenant         TEXT NOT NULL,
	id             TEXT NOT NULL CHECK (id <> ''),
	purchase_order TEXT NOT NULL,
	vendor         TEXT NOT NULL,
	movement       TEXT NOT NULL CHECK (movement IN ('receipt', 'return')),
	received_at    TEXT NOT NULL CHECK (length(received_at) = 10),
	PRIMARY KEY (tenant, id),
	FOREIGN KEY (tenant, purchase_order) REFERENCES purchase_orders (tenant, id)
) STRICT;

CREATE INDEX goods_receipts_of_order ON goods_receipts (tenant, purchase_order, id);

CREATE TABLE goods_receipt_lines (
	tenant         TEXT NOT NULL,
	receipt        TEXT NOT NULL,
	position       INTEGER NOT NULL CHECK (position > 0),
	order_line     INTEGER NOT NULL CHECK (order_line > 0),
	quantity_micro INTEGER NOT NULL CHECK (quantity_micro > 0),
	unit           TEXT NOT NULL CHECK (unit <> ''),
	PRIMARY KEY (tenant, receipt, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE invoices (
	tenant         TEXT NOT NULL,
	id             TEXT NOT NULL CHECK (id <> ''),
	number         TEXT NOT NULL CHECK (number <> ''), -- as the vendor wrote it
	normal         TEXT NOT NULL CHECK (normal <> ''), -- as number_claims has it
	document       TEXT NOT NULL CHECK (document IN ('invoice', 'credit_note')),
	credits        TEXT NOT NULL CHECK (credits = '' OR document = 'credit_note'), -- the invoice credited
	vendor         TEXT NOT NULL,
	purchase_order TEXT NOT NULL, -- that it names; it may not exist
	currency       TEXT NOT NULL CHECK (length(currency) = 3),
	digits         INTEGER NOT NULL CHECK (digits BETWEEN 0 AND 18),
	tax_minor      INTEGER NOT NULL CHECK (tax_minor >= 0),
	freight_minor  INTEGER NOT NULL CHECK (freight_minor >= 0),
	total_minor    INTEGER NOT NULL CHECK (total_minor >= 0),
	invoice_date   TEXT NOT NULL CHECK (length(invoice_date) = 10),
	entered        INTEGER NOT NULL CHECK (entered > 0), -- the number of the entry that entered it
	status         TEXT NOT NULL CHECK (status IN ('open', 'on_hold', 'approved', 'rejected')),
	decision       INTEGER NOT NULL CHECK (decision >= 0), -- the number of the last one, 0 for none
	credited_minor INTEGER NOT NULL CHECK (credited_minor >= 0),
	CHECK ((status = 'open') = (decision = 0)),
	PRIMARY KEY (tenant, id),
	FOREIGN KEY (tenant, vendor) REFERENCES vendors (tenant, id)
) STRICT;

CREATE INDEX invoices_by_status ON invoices (tenant, status, id);
CREATE INDEX invoices_of_vendor ON invoices (tenant, vendor, status, id);
CREATE INDEX invoices_of_order ON invoices (tenant, purchase_order, status, id);
CREATE UNIQUE INDEX invoices_as_entered ON invoices (tenant, vendor, entered);

CREATE TABLE invoice_lines (
	tenant               TEXT NOT NULL,
	invoice              TEXT NOT NULL,
	line                 INTEGER NOT NULL CHECK (line > 0),
	order_line           INTEGER NOT NULL CHECK (order_line >= 0), -- 0 for none
	sku                  TEXT NOT NULL,
	unit                 TEXT NOT NULL CHECK (unit <> ''),
	quantity_micro       INTEGER NOT NULL CHECK (quantity_micro > 0),
	unit_price_minor     INTEGER NOT NULL CHECK (unit_price_minor >= 0),
	amount_minor         INTEGER NOT NULL CHECK (amount_minor >= 0),
	credited_numerator   INTEGER NOT NULL CHECK (credited_numerator >= 0), -- in the unit of the order's line
	credited_denominator INTEGER NOT NULL CHECK (credited_denominator > 0),
	PRIMARY KEY (tenant, invoice, line)
) STRICT, WITHOUT ROWID;

-- Which documents carry a number, in order of entry. The key is the claim: a
-- number is looked up by it, however many invoices there are.
CREATE TABLE number_claims (
	tenant   TEXT NOT NULL,
	vendor   TEXT NOT NULL,
	document TEXT NOT NULL CHECK (document IN ('invoice', 'credit_note')),
	normal   TEXT NOT NULL CHECK (normal <> ''),
	position INTEGER NOT NULL CHECK (position > 0),
	invoice  TEXT NOT NULL,
	rejected INTEGER NOT NULL CHECK (rejected IN (0, 1)),
	PRIMARY KEY (tenant, vendor, document, normal, position),
	FOREIGN KEY (tenant, invoice) REFERENCES invoices (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE decisions (
	tenant     TEXT NOT NULL,
	vendor     TEXT NOT NULL,
	number     INTEGER NOT NULL CHECK (number > 0), -- of the entry that recorded it
	id         TEXT NOT NULL,
	invoice    TEXT NOT NULL,
	action     TEXT NOT NULL CHECK (action IN ('approve', 'hold', 'reject')),
	reason     TEXT NOT NULL CHECK (reason <> ''),
	override   INTEGER NOT NULL CHECK (override IN (0, 1)),
	note       TEXT NOT NULL,
	decided_by TEXT NOT NULL CHECK (decided_by <> ''),
	decided_at INTEGER NOT NULL,
	omitted    INTEGER NOT NULL CHECK (omitted >= 0), -- findings that are not kept
	PRIMARY KEY (tenant, vendor, number),
	FOREIGN KEY (tenant, invoice) REFERENCES invoices (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE decision_findings (
	tenant   TEXT NOT NULL,
	vendor   TEXT NOT NULL,
	number   INTEGER NOT NULL CHECK (number > 0),
	position INTEGER NOT NULL CHECK (position > 0),
	code     TEXT NOT NULL CHECK (code <> ''),
	line     INTEGER NOT NULL CHECK (line >= 0), -- of the order, 0 for the whole invoice
	expected TEXT NOT NULL,
	found    TEXT NOT NULL,
	PRIMARY KEY (tenant, vendor, number, position)
) STRICT, WITHOUT ROWID;

-- The other invoices that a finding names.
CREATE TABLE decision_finding_invoices (
	tenant   TEXT NOT NULL,
	vendor   TEXT NOT NULL,
	number   INTEGER NOT NULL CHECK (number > 0),
	position INTEGER NOT NULL CHECK (position > 0), -- decision_findings.position
	place    INTEGER NOT NULL CHECK (place > 0),
	invoice  TEXT NOT NULL CHECK (invoice <> ''),
	PRIMARY KEY (tenant, vendor, number, position, place)
) STRICT, WITHOUT ROWID;

-- What is written stays as it is.

-- +goose StatementBegin
CREATE TRIGGER conversions_no_update BEFORE UPDATE ON conversions BEGIN SELECT RAISE(ABORT, 'conversions are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER conversions_no_delete BEFORE DELETE ON conversions BEGIN SELECT RAISE(ABORT, 'conversions are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER goods_receipts_no_update BEFORE UPDATE ON goods_receipts BEGIN SELECT RAISE(ABORT, 'goods receipts are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER goods_receipts_no_delete BEFORE DELETE ON goods_receipts BEGIN SELECT RAISE(ABORT, 'goods receipts are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER goods_receipt_lines_no_update BEFORE UPDATE ON goods_receipt_lines BEGIN SELECT RAISE(ABORT, 'goods receipt lines are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER goods_receipt_lines_no_delete BEFORE DELETE ON goods_receipt_lines BEGIN SELECT RAISE(ABORT, 'goods receipt lines are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER decisions_no_update BEFORE UPDATE ON decisions BEGIN SELECT RAISE(ABORT, 'decisions are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER decisions_no_delete BEFORE DELETE ON decisions BEGIN SELECT RAISE(ABORT, 'decisions are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER decision_findings_no_update BEFORE UPDATE ON decision_findings BEGIN SELECT RAISE(ABORT, 'decision findings are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER decision_findings_no_delete BEFORE DELETE ON decision_findings BEGIN SELECT RAISE(ABORT, 'decision findings are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER decision_finding_invoices_no_update BEFORE UPDATE ON decision_finding_invoices BEGIN SELECT RAISE(ABORT, 'decision finding invoices are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER decision_finding_invoices_no_delete BEFORE DELETE ON decision_finding_invoices BEGIN SELECT RAISE(ABORT, 'decision finding invoices are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER vendors_fixed BEFORE UPDATE OF tenant, id ON vendors BEGIN
	SELECT RAISE(ABORT, 'the id of a vendor never changes, and the version grows');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER vendors_go_on BEFORE UPDATE ON vendors
	WHEN NEW.version <= OLD.version
BEGIN
	SELECT RAISE(ABORT, 'the id of a vendor never changes, and the version grows');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER vendors_no_delete BEFORE DELETE ON vendors BEGIN SELECT RAISE(ABORT, 'vendors are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER vendor_balances_fixed BEFORE UPDATE OF tenant, vendor, currency, digits ON vendor_balances BEGIN
	SELECT RAISE(ABORT, 'of a balance only the amount changes');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER vendor_balances_no_delete BEFORE DELETE ON vendor_balances BEGIN SELECT RAISE(ABORT, 'vendor balances are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER purchase_orders_fixed BEFORE UPDATE OF tenant, id, vendor, currency, digits, freight_limit_minor, tax_limit_micro ON purchase_orders BEGIN
	SELECT RAISE(ABORT, 'of an order only what is billed changes');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER purchase_orders_no_delete BEFORE DELETE ON purchase_orders BEGIN SELECT RAISE(ABORT, 'purchase orders are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER purchase_order_lines_fixed BEFORE UPDATE OF tenant, purchase_order, line, sku, description, unit, quantity_micro, unit_price_minor ON purchase_order_lines BEGIN
	SELECT RAISE(ABORT, 'of a line only what is received and billed changes');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER purchase_order_lines_no_delete BEFORE DELETE ON purchase_order_lines BEGIN SELECT RAISE(ABORT, 'purchase order lines are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invoices_fixed BEFORE UPDATE OF tenant, id, number, normal, document, credits, vendor, purchase_order, currency, digits, tax_minor, freight_minor, total_minor, invoice_date, entered ON invoices BEGIN
	SELECT RAISE(ABORT, 'what the vendor sent never changes, and an approval or a rejection is final');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invoices_go_on BEFORE UPDATE ON invoices
	WHEN NEW.rowid <> OLD.rowid OR NEW.decision < OLD.decision OR (OLD.status IN ('approved', 'rejected') AND (NEW.status <> OLD.status OR NEW.decision <> OLD.decision))
BEGIN
	SELECT RAISE(ABORT, 'what the vendor sent never changes, and an approval or a rejection is final');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invoices_no_delete BEFORE DELETE ON invoices BEGIN SELECT RAISE(ABORT, 'invoices are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invoice_lines_fixed BEFORE UPDATE OF tenant, invoice, line, order_line, sku, unit, quantity_micro, unit_price_minor, amount_minor ON invoice_lines BEGIN
	SELECT RAISE(ABORT, 'of a line only what is credited changes');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invoice_lines_no_delete BEFORE DELETE ON invoice_lines BEGIN SELECT RAISE(ABORT, 'invoice lines are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER number_claims_fixed BEFORE UPDATE OF tenant, vendor, document, normal, position, invoice ON number_claims BEGIN
	SELECT RAISE(ABORT, 'a claim never changes but by the rejection of its invoice');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER number_claims_go_on BEFORE UPDATE ON number_claims
	WHEN OLD.rejected AND NOT NEW.rejected
BEGIN
	SELECT RAISE(ABORT, 'a claim never changes but by the rejection of its invoice');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER number_claims_no_delete BEFORE DELETE ON number_claims BEGIN SELECT RAISE(ABORT, 'number claims are never deleted'); END;
-- +goose StatementEnd

-- Nor is a row replaced, by its key or by its rowid.

-- +goose StatementBegin
CREATE TRIGGER vendors_no_replace BEFORE INSERT ON vendors
	WHEN EXISTS (SELECT 1 FROM vendors WHERE tenant = NEW.tenant AND id = NEW.id)
BEGIN
	SELECT RAISE(ABORT, 'vendors are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER vendor_balances_no_replace BEFORE INSERT ON vendor_balances
	WHEN EXISTS (SELECT 1 FROM vendor_balances WHERE tenant = NEW.tenant AND vendor = NEW.vendor AND currency = NEW.currency)
BEGIN
	SELECT RAISE(ABORT, 'vendor balances are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER purchase_orders_no_replace BEFORE INSERT ON purchase_orders
	WHEN EXISTS (SELECT 1 FROM purchase_orders WHERE tenant = NEW.tenant AND id = NEW.id)
BEGIN
	SELECT RAISE(ABORT, 'purchase orders are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER goods_receipts_no_replace BEFORE INSERT ON goods_receipts
	WHEN EXISTS (SELECT 1 FROM goods_receipts WHERE rowid = NEW.rowid)
		OR EXISTS (SELECT 1 FROM goods_receipts WHERE tenant = NEW.tenant AND id = NEW.id)
BEGIN
	SELECT RAISE(ABORT, 'goods receipts are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invoices_no_replace BEFORE INSERT ON invoices
	WHEN EXISTS (SELECT 1 FROM invoices WHERE rowid = NEW.rowid)
		OR EXISTS (SELECT 1 FROM invoices WHERE tenant = NEW.tenant AND id = NEW.id)
		OR EXISTS (SELECT 1 FROM invoices WHERE tenant = NEW.tenant AND vendor = NEW.vendor AND entered = NEW.entered)
BEGIN
	SELECT RAISE(ABORT, 'invoices are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER number_claims_no_replace BEFORE INSERT ON number_claims
	WHEN EXISTS (SELECT 1 FROM number_claims WHERE tenant = NEW.tenant AND vendor = NEW.vendor AND document = NEW.document AND normal = NEW.normal AND position = NEW.position)
BEGIN
	SELECT RAISE(ABORT, 'number claims are never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER decisions_no_replace BEFORE INSERT ON decisions
	WHEN EXISTS (SELECT 1 FROM decisions WHERE tenant = NEW.tenant AND vendor = NEW.vendor AND number = NEW.number)
BEGIN
	SELECT RAISE(ABORT, 'decisions are never replaced');
END;
-- +goose StatementEnd

-- Lines are written before what they belong to: once it is there, no line is
-- added or replaced.

-- +goose StatementBegin
CREATE TRIGGER purchase_order_lines_before_order BEFORE INSERT ON purchase_order_lines
	WHEN EXISTS (SELECT 1 FROM purchase_orders WHERE tenant = NEW.tenant AND id = NEW.purchase_order)
BEGIN
	SELECT RAISE(ABORT, 'an order that is there gets no more purchase order lines');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER conversions_before_order BEFORE INSERT ON conversions
	WHEN EXISTS (SELECT 1 FROM purchase_orders WHERE tenant = NEW.tenant AND id = NEW.purchase_order)
BEGIN
	SELECT RAISE(ABORT, 'an order that is there gets no more conversions');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER goods_receipt_lines_before_receipt BEFORE INSERT ON goods_receipt_lines
	WHEN EXISTS (SELECT 1 FROM goods_receipts WHERE tenant = NEW.tenant AND id = NEW.receipt)
BEGIN
	SELECT RAISE(ABORT, 'a receipt that is there gets no more goods receipt lines');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER invoice_lines_before_invoice BEFORE INSERT ON invoice_lines
	WHEN EXISTS (SELECT 1 FROM invoices WHERE tenant = NEW.tenant AND id = NEW.invoice)
BEGIN
	SELECT RAISE(ABORT, 'an invoice that is there gets no more invoice lines');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER decision_findings_before_decision BEFORE INSERT ON decision_findings
	WHEN EXISTS (SELECT 1 FROM decisions WHERE tenant = NEW.tenant AND vendor = NEW.vendor AND number = NEW.number)
BEGIN
	SELECT RAISE(ABORT, 'a decision that is there gets no more decision findings');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER decision_finding_invoices_before_decision BEFORE INSERT ON decision_finding_invoices
	WHEN EXISTS (SELECT 1 FROM decisions WHERE tenant = NEW.tenant AND vendor = NEW.vendor AND number = NEW.number)
BEGIN
	SELECT RAISE(ABORT, 'a decision that is there gets no more decision finding invoices');
END;
-- +goose StatementEnd
