-- +goose Up

-- The guards cost less of a write that is alone. A trigger of some columns is
-- passed over by a statement that sets others; the condition of one of all columns
-- is parsed for every statement.

DROP TRIGGER fixed ON accounts;
CREATE TRIGGER fixed BEFORE UPDATE OF tenant, id, currency, digits, created_at ON accounts FOR EACH ROW
	WHEN ((OLD.tenant, OLD.id, OLD.currency, OLD.digits, OLD.created_at) IS DISTINCT FROM (NEW.tenant, NEW.id, NEW.currency, NEW.digits, NEW.created_at))
	EXECUTE FUNCTION never('the id, the currency and the age never change');
CREATE TRIGGER goes_on BEFORE UPDATE ON accounts FOR EACH ROW
	WHEN (NEW.version <= OLD.version)
	EXECUTE FUNCTION never('the version grows');

DROP TRIGGER fixed ON lots;
CREATE TRIGGER fixed BEFORE UPDATE OF tenant, account, lot, position ON lots FOR EACH ROW
	WHEN ((OLD.tenant, OLD.account, OLD.lot, OLD.position) IS DISTINCT FROM (NEW.tenant, NEW.account, NEW.lot, NEW.position))
	EXECUTE FUNCTION never('only the balance changes');

DROP TRIGGER fixed ON vendors;
CREATE TRIGGER fixed BEFORE UPDATE OF tenant, id ON vendors FOR EACH ROW
	WHEN ((OLD.tenant, OLD.id) IS DISTINCT FROM (NEW.tenant, NEW.id))
	EXECUTE FUNCTION never('the id of a vendor never changes');
CREATE TRIGGER goes_on BEFORE UPDATE ON vendors FOR EACH ROW
	WHEN (NEW.version <= OLD.version)
	EXECUTE FUNCTION never('the version grows');

DROP TRIGGER fixed ON vendor_balances;
CREATE TRIGGER fixed BEFORE UPDATE OF tenant, vendor, currency, digits ON vendor_balances FOR EACH ROW
	WHEN ((OLD.tenant, OLD.vendor, OLD.currency, OLD.digits) IS DISTINCT FROM (NEW.tenant, NEW.vendor, NEW.currency, NEW.digits))
	EXECUTE FUNCTION never('of a balance only the amount changes');

DROP TRIGGER fixed ON purchase_orders;
CREATE TRIGGER fixed BEFORE UPDATE OF tenant, id, vendor, currency, digits, freight_limit_minor, tax_limit_micro ON purchase_orders FOR EACH ROW
	WHEN ((OLD.tenant, OLD.id, OLD.vendor, OLD.currency, OLD.digits, OLD.freight_limit_minor, OLD.tax_limit_micro)
		IS DISTINCT FROM (NEW.tenant, NEW.id, NEW.vendor, NEW.currency, NEW.digits, NEW.freight_limit_minor, NEW.tax_limit_micro))
	EXECUTE FUNCTION never('of an order only what is billed changes');

DROP TRIGGER fixed ON purchase_order_lines;
CREATE TRIGGER fixed BEFORE UPDATE OF tenant, purchase_order, line, sku, description, unit, quantity_micro, unit_price_minor ON purchase_order_lines FOR EACH ROW
	WHEN ((OLD.tenant, OLD.purchase_order, OLD.line, OLD.sku, OLD.description, OLD.unit, OLD.quantity_micro, OLD.unit_price_minor)
		IS DISTINCT FROM (NEW.tenant, NEW.purchase_order, NEW.line, NEW.sku, NEW.description, NEW.unit, NEW.quantity_micro, NEW.unit_price_minor))
	EXECUTE FUNCTION never('of a line only what is received and billed changes');

DROP TRIGGER fixed ON invoices;
CREATE TRIGGER fixed BEFORE UPDATE OF tenant, id, number, normal, document, credits, vendor, purchase_order, currency, digits, tax_minor, freight_minor, total_minor, invoice_date, entered ON invoices FOR EACH ROW
	WHEN ((OLD.tenant, OLD.id, OLD.number, OLD.normal, OLD.document, OLD.credits, OLD.vendor, OLD.purchase_order, OLD.currency, OLD.digits, OLD.tax_minor, OLD.freight_minor, OLD.total_minor, OLD.invoice_date, OLD.entered)
		IS DISTINCT FROM (NEW.tenant, NEW.id, NEW.number, NEW.normal, NEW.document, NEW.credits, NEW.vendor, NEW.purchase_order, NEW.currency, NEW.digits, NEW.tax_minor, NEW.freight_minor, NEW.total_minor, NEW.invoice_date, NEW.entered))
	EXECUTE FUNCTION never('what the vendor sent never changes');
CREATE TRIGGER goes_on BEFORE UPDATE ON invoices FOR EACH ROW
	WHEN (NEW.decision < OLD.decision OR (OLD.status IN ('approved', 'rejected') AND (NEW.status <> OLD.status OR NEW.decision <> OLD.decision)))
	EXECUTE FUNCTION never('an approval or a rejection is final');

DROP TRIGGER fixed ON invoice_lines;
CREATE TRIGGER fixed BEFORE UPDATE OF tenant, invoice, line, order_line, sku, unit, quantity_micro, unit_price_minor, amount_minor ON invoice_lines FOR EACH ROW
	WHEN ((OLD.tenant, OLD.invoice, OLD.line, OLD.order_line, OLD.sku, OLD.unit, OLD.quantity_micro, OLD.unit_price_minor, OLD.amount_minor)
		IS DISTINCT FROM (NEW.tenant, NEW.invoice, NEW.line, NEW.order_line, NEW.sku, NEW.unit, NEW.quantity_micro, NEW.unit_price_minor, NEW.amount_minor))
	EXECUTE FUNCTION never('of a line only what is credited changes');

DROP TRIGGER fixed ON number_claims;
CREATE TRIGGER fixed BEFORE UPDATE OF tenant, vendor, document, normal, position, invoice ON number_claims FOR EACH ROW
	WHEN ((OLD.tenant, OLD.vendor, OLD.document, OLD.normal, OLD.position, OLD.invoice)
		IS DISTINCT FROM (NEW.tenant, NEW.vendor, NEW.document, NEW.normal, NEW.position, NEW.invoice))
	EXECUTE FUNCTION never('a claim never changes but by the rejection of its invoice');
CREATE TRIGGER goes_on BEFORE UPDATE ON number_claims FOR EACH ROW
	WHEN (OLD.rejected AND NOT NEW.rejected)
	EXECUTE FUNCTION never('a rejection is final');

-- Without a DISTINCT, whose table is larger than all that it saves.

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION postings_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (
		SELECT FROM written GROUP BY tenant, subject_kind, subject_id, number, currency, digits
		HAVING sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) <> 0
	) THEN
		RAISE EXCEPTION 'the postings of an entry must be written at once and balance in each currency'
			USING ERRCODE = 'check_violation';
	END IF;
	IF EXISTS (
		SELECT FROM written w
		JOIN entries e ON e.tenant = w.tenant AND e.subject_kind = w.subject_kind AND e.subject_id = w.subject_id AND e.number = w.number
	) THEN
		RAISE EXCEPTION 'an entry that is there gets no more postings' USING ERRCODE = 'unique_violation';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
