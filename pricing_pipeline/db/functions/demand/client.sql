-- Most of what the role pricing_client may call; grants.sql lists all.
-- They run with the owner's rights, so each one acts for the login of the
-- session and for nobody else; session_user is what nothing inside a session can change. (With a name's own collation no
-- index of text would be used.) They write rows of that user,
-- and requests: whatever a client's open transaction keeps locked, nobody else waits for it.

CREATE OR REPLACE FUNCTION pricing.heartbeat(data_types text[], symbols text[]) RETURNS jsonb
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    SELECT pricing.heartbeat(session_user::pg_catalog.text COLLATE pg_catalog."default", data_types, symbols, false)
$$;
COMMENT ON FUNCTION pricing.heartbeat(text[], text[]) IS
    'Says that the user of this session looks at these pairs now (two lists of the same length). Answers each pair '
    '(see answer_pairs).';


CREATE OR REPLACE FUNCTION pricing.unsubscribe(data_types text[], symbols text[]) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
    SELECT pricing.unsubscribe(session_user::pg_catalog.text COLLATE pg_catalog."default", data_types, symbols, false)
$$;
COMMENT ON FUNCTION pricing.unsubscribe(text[], text[]) IS
    'Says that the user of this session has left these pairs. Returns how many subscriptions ended.';


CREATE OR REPLACE FUNCTION pricing.hold(data_types text[], symbols text[]) RETURNS jsonb
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    SELECT pricing.hold(session_user::pg_catalog.text COLLATE pg_catalog."default", data_types, symbols, false)
$$;
COMMENT ON FUNCTION pricing.hold(text[], text[]) IS
    'Says that the user of this session holds these pairs from now on. Answers each pair (see answer_pairs).';


CREATE OR REPLACE FUNCTION pricing.release(data_types text[], symbols text[]) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    SELECT pricing.release(session_user::pg_catalog.text COLLATE pg_catalog."default", data_types, symbols)
$$;
COMMENT ON FUNCTION pricing.release(text[], text[]) IS
    'Says that the user of this session no longer holds these pairs. Returns how many holdings ended.';


CREATE OR REPLACE FUNCTION pricing.price(wanted_symbol text)
RETURNS TABLE (data_type text, symbol text, price numeric, currency text, observed_at timestamptz,
               fetched_at timestamptz, fresh boolean, provider text, provider_active boolean, frozen_since timestamptz)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
#variable_conflict use_column
BEGIN
    wanted_symbol := pricing.spelled(wanted_symbol);
    RETURN QUERY
    -- Multiplied by a power of ten, not divided: a quotient is rounded to 16 digits.
    SELECT l.data_type, l.symbol, l.amount * ('1e-' || l.scale)::pg_catalog.numeric, l.currency, l.observed_at,
           l.fetched_at,
           pricing.verdict_on(l.data_type, l.symbol) = 'fresh', l.provider,
           coalesce((SELECT p.is_active FROM pricing.data_collectors p WHERE p.provider = l.provider), false),
           CASE WHEN l.observed_at - l.changed_at > pricing.frozen_after(r.fetcher) THEN l.changed_at END
    FROM pricing.latest_prices l JOIN pricing.data_type_registry r USING (data_type)
    WHERE l.symbol = wanted_symbol ORDER BY l.data_type;
    -- The answer is complete; what is missing or stale comes later. A replica only answers.
    IF NOT current_setting('transaction_read_only')::boolean THEN
        PERFORM pricing.request_reads(session_user::pg_catalog.text COLLATE pg_catalog."default",
                                      array_agg(r.data_type),
                                      array_agg(wanted_symbol))
        FROM pricing.data_type_registry r
        WHERE r.is_active AND r.contents = 'prices'
          AND EXISTS (SELECT FROM pricing.instruments i
                      WHERE i.asset_class = r.asset_class AND i.symbol = wanted_symbol OFFSET 0);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.price(text) IS
    'The newest known price of a symbol in each data type that has one: exact decimals, source''s time, when last '
    'confirmed, whether that is within its TTL, whether its provider is still switched on, and since when it is '
    'suspiciously the same. Queues what is missing or stale, and waits for nothing.';


CREATE OR REPLACE FUNCTION pricing.history(
    wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamptz DEFAULT NULL, adjust text DEFAULT NULL)
RETURNS TABLE (observed_at timestamptz, open numeric, high numeric, low numeric, close numeric, volume numeric,
               currency text, provider text, fetched_at timestamptz, adjustment text, call_id bigint, quality text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
    SELECT h.observed_at, h.open, h.high, h.low, h.close, h.volume, h.currency, h.provider, h.recorded_at, h.adjustment, h.call_id, h.quality
    FROM pricing.adjusted_prices(wanted_type, pricing.spelled(wanted_symbol), first_day, last_day, as_of, adjust) h ORDER BY h.observed_at
$$;
COMMENT ON FUNCTION pricing.history(text, text, date, date, timestamptz, text) IS
    'Values of a symbol between two UTC days, both included, oldest first; exact decimals. as_of: as we believed them '
    'then. adjust: raw (as traded), splits (divided by later splits) or total (also without later dividends and '
    'capital gains); without it as stored, and adjustment says which that is. Quotes and NAVs have a close only; '
    'quality says which parts of a bar were dropped, and why, and with total which later payments are not counted.';


CREATE OR REPLACE FUNCTION pricing.document(wanted_type text, wanted_symbol text, as_of timestamptz DEFAULT NULL)
RETURNS TABLE (period date, body jsonb, recorded_at timestamptz, fetched_at timestamptz, fresh boolean, provider text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (SELECT FROM pricing.data_type_registry r
                   WHERE r.data_type = wanted_type AND r.contents = 'documents') THEN
        RAISE EXCEPTION '% is no data type of documents', left(wanted_type, 60)
            USING HINT = 'pricing.price and pricing.history read prices; pricing-pipeline type list shows all types.',
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    wanted_symbol := pricing.spelled(wanted_symbol);
    RETURN QUERY
    SELECT d.period, d.body, d.recorded_at, p.fetched_at,
           pricing.verdict_on(wanted_type, wanted_symbol) = 'fresh', d.provider
    FROM pricing.documents_as_of(wanted_type, wanted_symbol, as_of) d
    JOIN pricing.confirmed_pairs p ON (p.data_type, p.symbol) = (wanted_type, wanted_symbol);
    -- The answer is complete; what is missing or stale comes later. A replica only answers, and the past is over.
    IF as_of IS NULL AND NOT current_setting('transaction_read_only')::boolean THEN
        PERFORM pricing.request_reads(session_user::pg_catalog.text COLLATE pg_catalog."default", ARRAY[wanted_type],
                                      ARRAY[wanted_symbol]);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.document(text, text, timestamptz) IS
    'The documents of a symbol in one data type, the newest period first: bodies with the provider''s own names and '
    'digits, since when we believe each, when it was last confirmed, and whether that is within its TTL. Queues what '
    'is missing or stale, and waits for nothing. With a time: as we believed them then.';
