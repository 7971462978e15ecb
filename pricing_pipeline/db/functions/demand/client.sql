-- Most of the functions of the role pricing_client; grants.sql lists all. They run with the owner's rights, so each
-- acts for the login of the session alone: nothing inside a session can change session_user. (With a name's own
-- collation no index of text would be used.) They write rows of that user, and requests, so nobody waits for a
-- client's open transaction.

CREATE OR REPLACE FUNCTION pricing.heartbeat(data_types text[], symbols text[]) RETURNS jsonb
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    SELECT pricing.heartbeat(session_user::pg_catalog.text COLLATE pg_catalog."default", data_types, symbols, false)
$$;
COMMENT ON FUNCTION pricing.heartbeat(text[], text[]) IS
    'Says that the session''s user is looking at these pairs, and answers each pair (see answer_pairs).';


CREATE OR REPLACE FUNCTION pricing.unsubscribe(data_types text[], symbols text[]) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
    SELECT pricing.unsubscribe(session_user::pg_catalog.text COLLATE pg_catalog."default", data_types, symbols, false)
$$;
COMMENT ON FUNCTION pricing.unsubscribe(text[], text[]) IS
    'Says that the session''s user has left these pairs; returns how many subscriptions ended.';


CREATE OR REPLACE FUNCTION pricing.hold(data_types text[], symbols text[], quantities numeric[] DEFAULT NULL)
RETURNS jsonb
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    SELECT pricing.hold(session_user::pg_catalog.text COLLATE pg_catalog."default", data_types, symbols, quantities,
                        false)
$$;
COMMENT ON FUNCTION pricing.hold(text[], text[], numeric[]) IS
    'Says that the session''s user holds these pairs, in these quantities, and answers each pair (see answer_pairs).';


CREATE OR REPLACE FUNCTION pricing.release(data_types text[], symbols text[]) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$
    SELECT pricing.release(session_user::pg_catalog.text COLLATE pg_catalog."default", data_types, symbols)
$$;
COMMENT ON FUNCTION pricing.release(text[], text[]) IS
    'Says that the session''s user no longer holds these pairs; returns how many holdings ended.';


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
    -- The answer is complete; missing or stale prices are requested afterwards. A replica only answers.
    IF NOT current_setting('transaction_read_only')::boolean THEN
        PERFORM pricing.request_reads(session_user::pg_catalog.text COLLATE pg_catalog."default",
                                      array_agg(r.data_type), array_agg(wanted_symbol))
        FROM pricing.data_type_registry r
        WHERE r.is_active AND r.contents = 'prices'
          AND EXISTS (SELECT FROM pricing.instruments i
                      WHERE i.asset_class = r.asset_class AND i.symbol = wanted_symbol OFFSET 0);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.price(text) IS
    'The newest known price of a symbol in each of its data types, with times and freshness; queues what is missing '
    'or stale, and never waits.';


CREATE OR REPLACE FUNCTION pricing.history(
    wanted_type text, wanted_symbol text, first_day date, last_day date, as_of timestamptz DEFAULT NULL,
    adjust text DEFAULT NULL)
RETURNS TABLE (observed_at timestamptz, open numeric, high numeric, low numeric, close numeric, volume numeric,
               currency text, provider text, fetched_at timestamptz, adjustment text, call_id bigint, quality text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
    SELECT h.observed_at, h.open, h.high, h.low, h.close, h.volume, h.currency, h.provider, h.recorded_at, h.adjustment,
           h.call_id, h.quality
    FROM pricing.adjusted_prices(wanted_type, pricing.spelled(wanted_symbol), first_day, last_day, as_of, adjust) h
    ORDER BY h.observed_at
$$;
COMMENT ON FUNCTION pricing.history(text, text, date, date, timestamptz, text) IS
    'Values of a symbol between two UTC days, both included, oldest first: as believed at as_of (NULL = now), and '
    'raw, adjusted for splits or for total return by adjust (NULL = as stored).';


CREATE OR REPLACE FUNCTION pricing.document(wanted_type text, wanted_symbol text, as_of timestamptz DEFAULT NULL)
RETURNS TABLE (period date, body jsonb, recorded_at timestamptz, fetched_at timestamptz, fresh boolean, provider text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (SELECT FROM pricing.data_type_registry r
                   WHERE r.data_type = wanted_type AND r.contents = 'documents') THEN
        RAISE EXCEPTION '% is not a data type of documents', left(wanted_type, 60)
            USING HINT = 'pricing.price and pricing.history read prices; pricing-pipeline type list shows all types.',
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    wanted_symbol := pricing.spelled(wanted_symbol);
    RETURN QUERY
    SELECT d.period, d.body, d.recorded_at, p.fetched_at,
           pricing.verdict_on(wanted_type, wanted_symbol) = 'fresh', d.provider
    FROM pricing.documents_as_of(wanted_type, wanted_symbol, as_of) d
    JOIN pricing.confirmed_pairs p ON (p.data_type, p.symbol) = (wanted_type, wanted_symbol);
    -- The answer is complete; missing or stale documents are requested afterwards. A replica only answers, and a read
    -- of the past requests nothing.
    IF as_of IS NULL AND NOT current_setting('transaction_read_only')::boolean THEN
        PERFORM pricing.request_reads(session_user::pg_catalog.text COLLATE pg_catalog."default", ARRAY[wanted_type],
                                      ARRAY[wanted_symbol]);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.document(text, text, timestamptz) IS
    'A symbol''s documents in one data type, newest period first, as believed now or at a time; queues what is '
    'missing or stale, and never waits.';
