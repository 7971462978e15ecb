-- Price alerts: the transaction that stores a price adds a row for each alert, and the notifier looks at these rows.
-- Storing a price only reads alerts, so it never waits for one that is locked. The prices of a pair are stored one
-- after the other, behind the lock of its latest price, so their events are numbered in that order.

CREATE OR REPLACE FUNCTION pricing.admit_price_alert(user_id pricing.user_name) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    cap integer := (pricing.present_caps()).price_alerts_per_user;
    total bigint;
BEGIN
    PERFORM pricing.lock_allowance(user_id);
    -- A separate statement, to see what the user's other sessions have committed.
    SELECT count(*) INTO total FROM pricing.price_alerts a WHERE a.user_id = admit_price_alert.user_id;
    IF total > cap THEN
        RAISE EXCEPTION 'user % may have % price alerts, and would have %', left(user_id, 60), cap, total
            USING HINT = 'Remove some first, or raise the cap with `pricing-pipeline limit set-caps`.',
                  DETAIL = json_build_object('room', 0), CONSTRAINT = 'price_alerts_per_user',
                  ERRCODE = 'configuration_limit_exceeded';
    END IF;
    RETURN total;
END $$;
COMMENT ON FUNCTION pricing.admit_price_alert(pricing.user_name) IS
    'Refuses (53400) a new price alert beyond its user''s cap, one session of a user at a time; returns how many the '
    'user has.';


CREATE OR REPLACE FUNCTION pricing.take_price_events(most integer)
RETURNS TABLE (price_alert_id bigint, recipient text, user_id text, is_told boolean, data_type text, condition text,
               threshold numeric, hysteresis numeric, hysteresis_in text, told_at timestamptz, is_beyond boolean,
               seen_at timestamptz, reference numeric, reference_at timestamptz,
               split_days date[], split_new numeric[], split_old numeric[],
               symbol text, price numeric, currency text, observed_at timestamptz, provider text, call_id bigint)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
    ids bigint[];
BEGIN
    ids := ARRAY(
        SELECT a.price_alert_id FROM pricing.price_alerts a
        -- OFFSET 0 keeps this an index lookup for each alert: otherwise all prices that wait for a pace would be read.
        WHERE (coalesce(a.told_at + a.pace <= now_, true)
               AND EXISTS (SELECT FROM pricing.price_events e WHERE e.price_alert_id = a.price_alert_id OFFSET 0))
           -- A price that was stored, or being stored, while the alert was added has no event.
           OR (NOT a.is_caught_up
               AND (coalesce(a.caught_up_after <= pg_snapshot_xmin(pg_current_snapshot()), true) OR EXISTS (
                   SELECT FROM pricing.latest_prices l
                   WHERE (l.data_type, l.symbol) = (a.data_type, a.symbol)
                     AND (a.seen_at IS NULL
                          OR l.observed_at > a.seen_at
                          OR l.amount * ('1e-' || l.scale)::numeric <> a.seen))))
        ORDER BY a.price_alert_id LIMIT most FOR NO KEY UPDATE SKIP LOCKED);
    -- A separate statement, to see what was committed before the alerts were locked.
    RETURN QUERY
    WITH reach AS MATERIALIZED (
        -- A week's prices of many alerts, for which no notifier ran, would not fit into its memory.
        SELECT a.price_alert_id,
               (SELECT max(x.event_id)
                FROM (SELECT e.event_id FROM pricing.price_events e
                      WHERE e.price_alert_id = a.price_alert_id
                      ORDER BY e.event_id LIMIT CASE WHEN a.condition <> 'each' THEN 200 END) x) AS last_id
        FROM pricing.price_alerts a WHERE a.price_alert_id = ANY (ids)),
    gone AS (
        DELETE FROM pricing.price_events e USING reach r
        WHERE e.price_alert_id = r.price_alert_id AND e.event_id <= r.last_id
        RETURNING e.*),
    -- A transaction that stores a price without an event for the alert had begun before the alert was committed.
    -- After a restore into another server, transaction numbers start again.
    catching_up AS (
        UPDATE pricing.price_alerts a
        SET caught_up_after = least(a.caught_up_after, pg_snapshot_xmax(pg_current_snapshot())),
            is_caught_up = coalesce(a.caught_up_after,
                                    pg_snapshot_xmax(pg_current_snapshot())) <= pg_snapshot_xmin(pg_current_snapshot())
        WHERE a.price_alert_id = ANY (ids) AND NOT a.is_caught_up),
    found AS (
        SELECT g.price_alert_id, g.event_id, g.symbol, g.amount, g.scale, g.currency, g.observed_at, g.provider,
               g.call_id, row_number() OVER (PARTITION BY g.price_alert_id, g.symbol ORDER BY g.event_id DESC) AS place
        FROM gone g
        UNION ALL
        SELECT a.price_alert_id, NULL, l.symbol, l.amount, l.scale, l.currency, l.observed_at, l.provider, l.call_id, 1
        FROM reach r
        JOIN pricing.price_alerts a USING (price_alert_id)
        JOIN pricing.latest_prices l USING (data_type, symbol)
        WHERE NOT a.is_caught_up
          AND NOT EXISTS (SELECT FROM pricing.price_events e
                          WHERE e.price_alert_id = r.price_alert_id AND e.event_id > r.last_id))
    SELECT a.price_alert_id, a.recipient, a.user_id, r.is_active, a.data_type, a.condition, a.threshold,
           a.hysteresis, a.hysteresis_in, a.told_at, a.is_beyond, a.seen_at,
           a.reference, a.reference_at, splits.days, splits.new_, splits.old_,
           f.symbol, f.amount * ('1e-' || f.scale)::numeric, f.currency, f.observed_at, f.provider, f.call_id
    FROM found f
    JOIN pricing.price_alerts a USING (price_alert_id)
    JOIN pricing.recipients r USING (recipient)
    LEFT JOIN LATERAL (
        SELECT array_agg(c.ex_on ORDER BY c.ex_on) AS days, array_agg(c.new_shares ORDER BY c.ex_on) AS new_,
               array_agg(c.old_shares ORDER BY c.ex_on) AS old_
        FROM pricing.data_type_registry t
        JOIN pricing.corporate_actions c ON (c.asset_class, c.symbol) = (t.asset_class, a.symbol)
        WHERE c.new_shares IS NOT NULL
          AND t.data_type = a.data_type
          AND c.ex_on > (least(a.reference_at, a.seen_at) AT TIME ZONE 'UTC')::date) splits ON true
    -- Of the prices of one symbol that wait together, only the newest is told.
    WHERE a.condition <> 'each' OR f.place = 1
    ORDER BY a.price_alert_id, f.event_id NULLS LAST;
END $$;
COMMENT ON FUNCTION pricing.take_price_events(integer) IS
    'Takes this many alerts'' new prices in the order in which they were stored, at most 200 of one, and skips locked '
    'alerts.';


CREATE OR REPLACE FUNCTION pricing.stale_since(wanted_type text, wanted_symbol text, at_least timestamptz)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SET search_path = '' AS $$
DECLARE
    kind pricing.data_type_registry;
    answer pricing.latest_answers;
BEGIN
    IF NOT pricing.is_pair_stale(wanted_type, wanted_symbol) THEN
        RETURN NULL;
    END IF;
    SELECT * INTO STRICT kind FROM pricing.data_type_registry r WHERE r.data_type = wanted_type;
    SELECT * INTO answer FROM pricing.latest_answers a WHERE (a.data_type, a.symbol) = (wanted_type, wanted_symbol);
    RETURN least(pricing.clock(), coalesce(
        (SELECT due.at FROM pricing.stale_at(
             kind, wanted_symbol, answer.fetched_at, pricing.pair_ttl(wanted_type, wanted_symbol)) due),
        at_least));
END $$;
COMMENT ON FUNCTION pricing.stale_since(text, text, timestamptz) IS
    'Since when a pair is stale, from the given time if nobody ever answered for it; NULL = it is fresh.';


CREATE OR REPLACE FUNCTION pricing.take_stale_pairs()
RETURNS TABLE (price_alert_id bigint, recipient text, user_id text, data_type text, symbol text, lasts interval,
               since timestamptz, sentence text, price numeric, currency text, observed_at timestamptz, provider text,
               call_id bigint)
LANGUAGE plpgsql SET search_path = '' AS $$
#variable_conflict use_column
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    RETURN QUERY
    WITH judged AS MATERIALIZED (
        SELECT a.price_alert_id, a.is_beyond, pricing.stale_since(a.data_type, a.symbol, a.created_at) AS since
        FROM pricing.price_alerts a WHERE a.condition = 'stale'),
    mine AS (
        SELECT a.price_alert_id, j.since FROM pricing.price_alerts a JOIN judged j USING (price_alert_id)
        WHERE a.is_beyond = j.is_beyond
          AND CASE WHEN j.is_beyond THEN j.since IS NULL ELSE j.since <= now_ - a.lasts END
        ORDER BY a.price_alert_id FOR NO KEY UPDATE OF a SKIP LOCKED),
    changed AS (
        UPDATE pricing.price_alerts a
        SET is_beyond = NOT a.is_beyond,
            told_at = CASE WHEN a.is_beyond OR NOT r.is_active THEN a.told_at ELSE now_ END
        FROM mine m, pricing.recipients r
        WHERE a.price_alert_id = m.price_alert_id AND r.recipient = a.recipient
        RETURNING a.*, m.since, r.is_active)
    SELECT c.price_alert_id, c.recipient, c.user_id, c.data_type, c.symbol, c.lasts, c.since,
           (pricing.why_old(c.data_type, c.symbol)).sentence,
           l.amount * ('1e-' || l.scale)::numeric, l.currency, l.observed_at, l.provider, l.call_id
    FROM changed c LEFT JOIN pricing.latest_prices l USING (data_type, symbol)
    WHERE c.is_beyond AND c.is_active
    ORDER BY c.price_alert_id;
END $$;
COMMENT ON FUNCTION pricing.take_stale_pairs() IS
    'Takes the alerts whose pair has been stale for too long, and resets those whose pair is fresh again.';
