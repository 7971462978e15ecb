-- Price alerts: new prices reach them in the transaction that stores the price, and are looked at by the notifier.
-- Whoever stores a price only reads alerts and adds rows: it waits for nobody who has an alert locked. One pair's prices are
-- stored one after the other, behind the lock of its latest price, so their events are numbered in that order.

CREATE OR REPLACE FUNCTION pricing.lock_latest(given pricing.price_history[]) RETURNS pricing.latest_prices[]
LANGUAGE sql SET search_path = '' AS $$
    -- In the order in which storing locks them.
    SELECT coalesce(array_agg(b.was), '{}') FROM (
        SELECT l AS was FROM pricing.latest_prices l
        WHERE l.data_type = (given[1]).data_type AND l.symbol = ANY (ARRAY(SELECT g.symbol FROM unnest(given) g))
        ORDER BY l.symbol FOR NO KEY UPDATE) b
$$;
COMMENT ON FUNCTION pricing.lock_latest(pricing.price_history[]) IS
    'The latest prices that the given ones may replace, as they are until then.';


CREATE OR REPLACE FUNCTION pricing.admit_price_alert(user_id pricing.user_name) RETURNS bigint
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    cap integer := (pricing.present_caps()).price_alerts_per_user;
    total bigint;
BEGIN
    PERFORM pricing.lock_allowance(user_id);
    -- A statement of its own: it sees what the user's other sessions have committed.
    SELECT count(*) INTO total FROM pricing.price_alerts a WHERE a.user_id = admit_price_alert.user_id;
    IF total > cap THEN
        RAISE EXCEPTION 'user % may have % price alerts, and would have %', left(user_id, 60), cap, total
            USING HINT = 'Remove some first, or raise the cap with `pricing-pipeline limit set-caps`.',
                  DETAIL = json_build_object('room', 0), CONSTRAINT = 'price_alerts_per_user', ERRCODE = 'configuration_limit_exceeded';
    END IF;
    RETURN total;
END $$;
COMMENT ON FUNCTION pricing.admit_price_alert(pricing.user_name) IS
    'Refuses (53400) a price alert that has just been added, if its user has more of them than one user may have; returns how many. The sessions of one user take turns.';


CREATE OR REPLACE FUNCTION pricing.note_price_events(given pricing.price_history[], shown text[], were pricing.latest_prices[]) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    INSERT INTO pricing.price_events (price_alert_id, symbol, amount, scale, currency, observed_at, provider, call_id, stored_at)
    SELECT asking.price_alert_id, n.symbol, n.amount, n.scale, n.currency, n.observed_at, n.provider, n.call_id, pricing.clock()
    FROM (SELECT DISTINCT ON (g.symbol) g.* FROM unnest(given) g ORDER BY g.symbol, g.observed_at DESC) n
    LEFT JOIN unnest(were) w ON w.symbol = n.symbol
    CROSS JOIN LATERAL (
        SELECT a.price_alert_id FROM pricing.price_alerts a
        WHERE a.data_type = n.data_type AND a.symbol = n.symbol AND a.condition <> 'stale'
        UNION ALL
        SELECT a.price_alert_id FROM pricing.price_alerts a WHERE a.data_type = n.data_type AND a.symbol IS NULL) asking
    WHERE n.symbol = ANY (shown)
      AND (w.symbol IS NULL OR w.observed_at < n.observed_at OR NOT pricing.same_amount(w.amount, w.scale, n.amount, n.scale));
END $$;
COMMENT ON FUNCTION pricing.note_price_events(pricing.price_history[], text[], pricing.latest_prices[]) IS
    'Notes new latest prices for the alerts that ask for them: those with a later time, or another value, than the price before.';


CREATE OR REPLACE FUNCTION pricing.take_price_events(most integer)
RETURNS TABLE (price_alert_id bigint, recipient text, user_id text, is_told boolean, data_type text, condition text,
               threshold numeric,
               hysteresis numeric, hysteresis_in text, told_at timestamptz, is_beyond boolean, seen_at timestamptz,
               reference numeric, reference_at timestamptz,
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
        -- OFFSET 0 keeps it a look into the index for each alert: of an hour's prices that wait for a pace, all would
        -- be read.
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
    -- A statement of its own: it sees what was committed until the alerts were locked.
    RETURN QUERY
    WITH reach AS MATERIALIZED (
        -- A week's prices of many alerts, for which no notifier ran, would not fit into its memory.
        SELECT a.price_alert_id, (SELECT max(x.event_id) FROM (
            SELECT e.event_id FROM pricing.price_events e WHERE e.price_alert_id = a.price_alert_id
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
               g.call_id,
               row_number() OVER (PARTITION BY g.price_alert_id, g.symbol ORDER BY g.event_id DESC) AS place
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
    FROM found f JOIN pricing.price_alerts a USING (price_alert_id) JOIN pricing.recipients r USING (recipient)
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
    'Takes the new prices of so many alerts, in the order in which they were stored, at most 200 of one; of alerts '
    'that another session has locked, nothing. Rows of one alert come together, with its state, and with the splits '
    'since it last looked. An alert of every price gets the newest of each symbol, of all, once its pace allows it. An '
    'alert that has not caught up gets the latest price, too, and has caught up when all transactions have ended that '
    'were open at its first look.';


CREATE OR REPLACE FUNCTION pricing.note_price_looks(looks jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    UPDATE pricing.price_alerts a
    SET is_beyond = k.is_beyond, seen = k.seen, seen_at = k.seen_at, reference = k.reference, reference_at = k.reference_at,
        told_at = CASE WHEN k.is_told THEN now_ ELSE a.told_at END
    FROM jsonb_to_recordset(looks)
        AS k (price_alert_id bigint, is_beyond boolean, seen numeric, seen_at timestamptz, reference numeric, reference_at timestamptz, is_told boolean)
    WHERE a.price_alert_id = k.price_alert_id;
END $$;
COMMENT ON FUNCTION pricing.note_price_looks(jsonb) IS 'Notes what alerts, whose rows are locked, have seen, and which were told.';


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
        pricing.stale_at(kind, wanted_symbol, answer.fetched_at, pricing.pair_ttl(wanted_type, wanted_symbol)),
            at_least));
END $$;
COMMENT ON FUNCTION pricing.stale_since(text, text, timestamptz) IS
    'Since when a pair is stale; NULL = it is fresh. A pair that nobody ever answered for is stale since the given time.';


CREATE OR REPLACE FUNCTION pricing.take_stale_pairs()
RETURNS TABLE (price_alert_id bigint, recipient text, user_id text, data_type text, symbol text, lasts interval, since timestamptz, sentence text,
               price numeric, currency text, observed_at timestamptz, provider text, call_id bigint)
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
        WHERE a.is_beyond = j.is_beyond AND CASE WHEN j.is_beyond THEN j.since IS NULL ELSE j.since <= now_ - a.lasts END
        ORDER BY a.price_alert_id FOR NO KEY UPDATE OF a SKIP LOCKED),
    changed AS (
        UPDATE pricing.price_alerts a SET is_beyond = NOT a.is_beyond, told_at = CASE WHEN a.is_beyond OR NOT r.is_active THEN a.told_at ELSE now_ END
        FROM mine m, pricing.recipients r
        WHERE a.price_alert_id = m.price_alert_id AND r.recipient = a.recipient
        RETURNING a.*, m.since, r.is_active)
    SELECT c.price_alert_id, c.recipient, c.user_id, c.data_type, c.symbol, c.lasts, c.since, (pricing.why_old(c.data_type, c.symbol)).sentence,
           l.amount * ('1e-' || l.scale)::numeric, l.currency, l.observed_at, l.provider, l.call_id
    FROM changed c LEFT JOIN pricing.latest_prices l USING (data_type, symbol)
    WHERE c.is_beyond AND c.is_active ORDER BY c.price_alert_id;
END $$;
COMMENT ON FUNCTION pricing.take_stale_pairs() IS
    'Alerts whose pair has become stale for longer than they allow, which it notes as told, with why it is so; those whose pair is fresh again may be told once more.';


CREATE OR REPLACE FUNCTION pricing.prune_price_events(now_ timestamptz) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    pruned integer;
BEGIN
    DELETE FROM pricing.price_events e WHERE (e.price_alert_id, e.event_id) IN (
        SELECT x.price_alert_id, x.event_id FROM pricing.price_events x
        WHERE x.stored_at < now_ - interval '7 days'
           OR NOT EXISTS (SELECT FROM pricing.price_alerts a WHERE a.price_alert_id = x.price_alert_id)
        LIMIT 50000 FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END $$;
COMMENT ON FUNCTION pricing.prune_price_events(timestamptz) IS
    'Deletes new prices that no alert has looked at for seven days, because no notifier runs, and those of removed alerts. Returns how many.';


CREATE OR REPLACE FUNCTION pricing.move_price_alerts(now_ timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.price_alerts a SET told_at = now_
    FROM (SELECT x.price_alert_id FROM pricing.price_alerts x WHERE x.told_at > now_ ORDER BY 1 FOR NO KEY UPDATE SKIP LOCKED) mine
    WHERE a.price_alert_id = mine.price_alert_id;
END $$;
COMMENT ON FUNCTION pricing.move_price_alerts(timestamptz) IS
    'The clock was set back: recipients of price alerts were told now at the latest, so that no pace becomes longer. A row that is locked is left: its alert waits until the clock has caught up.';
