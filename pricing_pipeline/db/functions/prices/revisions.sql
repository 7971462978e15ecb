-- Revisions of everything but prices: former rows, kept by a trigger and read as of a time.

CREATE OR REPLACE FUNCTION pricing.keep_revision() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- A row that was believed for no time at all can never be read.
    EXECUTE pg_catalog.format(
        'INSERT INTO pricing.revisions (kind, key, recorded_at, revised_at, revised_by, old) '
        'SELECT %L, ARRAY[%s], o.recorded_at, n.recorded_at, n.call_id, to_jsonb(o) '
        'FROM old_rows o JOIN new_rows n USING (%s) WHERE o.recorded_at <> n.recorded_at',
        TG_TABLE_NAME, TG_ARGV[1], TG_ARGV[0]);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.keep_revision() IS
    'Trigger: keeps changed rows, matched by their identity (first argument), under the key that reads look them up by '
    '(second argument).';


CREATE OR REPLACE FUNCTION pricing.revisions_as_of(
    wanted_kind text, first_key text[], last_key text[], as_of timestamptz)
RETURNS SETOF jsonb
LANGUAGE sql STABLE AS $$ -- no SET search_path, so that it is inlined
    -- NULL comes after everything: longer keys that begin like the last one are included.
    SELECT r.old FROM pricing.revisions r
    WHERE r.kind = wanted_kind AND r.key >= first_key AND r.key <= last_key || NULL::pg_catalog.text
      AND r.revised_at > as_of AND r.recorded_at <= as_of
$$;
COMMENT ON FUNCTION pricing.revisions_as_of(text, text[], text[], timestamptz) IS
    'Former rows of a table between two keys or beginnings of keys, both included, that were believed at a time.';

CREATE TRIGGER keep_revision
    AFTER UPDATE ON pricing.commodity_prices
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.keep_revision('symbol, commodity_id, quality', 'o.symbol, o.commodity_id::text');

CREATE TRIGGER keep_revision
    AFTER UPDATE ON pricing.documents
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.keep_revision('data_type, symbol, period', 'o.data_type, o.symbol');

CREATE TRIGGER keep_revision
    AFTER UPDATE ON pricing.pax_availability
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.keep_revision('slot_key, category_key', 'o.slot_key::text');

CREATE TRIGGER keep_revision
    AFTER UPDATE ON pricing.pax_categories
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.keep_revision('category_key', 'o.symbol');

CREATE TRIGGER keep_revision
    AFTER UPDATE ON pricing.product_options
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.keep_revision('symbol, provider, option_id', 'o.symbol');

CREATE TRIGGER keep_revision
    AFTER UPDATE ON pricing.products
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.keep_revision('symbol', 'o.symbol');

CREATE TRIGGER keep_revision
    AFTER UPDATE ON pricing.slot_prices
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.keep_revision('slot_key, category_key', 'o.slot_key::text');

CREATE TRIGGER keep_revision
    AFTER UPDATE ON pricing.slots
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.keep_revision('slot_key', 'o.symbol, to_char(o.local_day, ''YYYY-MM-DD'')');
