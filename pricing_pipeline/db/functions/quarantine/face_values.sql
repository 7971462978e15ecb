-- Changes of face value: a fund's units are merged or divided by ten, a hundred or a thousand, and no source says so.
-- The values after it are quarantined as being in another unit, until there are enough to be sure of the change.

CREATE OR REPLACE FUNCTION pricing.face_value_rule() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = '' AS $$ SELECT 'face value rule' $$;
COMMENT ON FUNCTION pricing.face_value_rule() IS 'The name under which recognized changes of face value are entered.';


CREATE OR REPLACE FUNCTION pricing.face_value_changes()
RETURNS TABLE (asset_class text, symbol text, changed_on date, navs bigint, before_nav numeric, after_nav numeric)
LANGUAGE sql STABLE SET search_path = '' AS $$
    WITH doubted AS (
        SELECT r.asset_class, q.data_type, q.symbol, q.provider, q.value_id, q.observed_at,
               (q.bar ->> 'close')::numeric AS nav
        FROM pricing.data_type_registry r JOIN pricing.quarantined_values q USING (data_type)
        JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, q.symbol)
        WHERE r.is_active AND r.fetcher = 'nav' AND q.status = 'quarantined' AND q.kind = 'unit'
          AND q.observed_at IS NOT NULL AND q.bar IS NOT NULL),
    steps AS (
        SELECT d.*, lag(d.nav) OVER pair AS nav_before, lag(d.observed_at) OVER pair AS at_before
        FROM doubted d
        WINDOW pair AS (PARTITION BY d.data_type, d.symbol, d.provider ORDER BY d.observed_at, d.value_id)),
    parted AS (
        SELECT s.*, count(*) FILTER (
                   WHERE greatest(s.nav / s.nav_before, s.nav_before / s.nav) > 1.3
                      OR EXISTS (SELECT FROM pricing.price_history h
                                 WHERE h.data_type = s.data_type AND h.symbol = s.symbol
                                   AND h.observed_at > s.at_before AND h.observed_at < s.observed_at))
               OVER (PARTITION BY s.data_type, s.symbol, s.provider ORDER BY s.observed_at, s.value_id) AS level
        FROM steps s),
    levels AS (
        SELECT p.asset_class, p.data_type, p.symbol, p.provider, count(DISTINCT p.observed_at) AS navs,
               min(p.observed_at) AS first_at, max(p.observed_at) AS last_at,
               (array_agg(p.nav ORDER BY p.observed_at))[1] AS first_nav,
               (array_agg(p.nav ORDER BY p.observed_at DESC))[1] AS last_nav,
               array_agg(p.value_id) AS ids
        FROM parted p
        GROUP BY p.asset_class, p.data_type, p.symbol, p.provider, p.level
        HAVING count(DISTINCT p.observed_at) >= 20),
    -- Believed values are on one side of the level only: prices that return are no change of face value.
    facing AS (
        SELECT l.*, coalesce(earlier.at, l.last_at) AS before_at, coalesce(earlier.nav, l.last_nav) AS before_nav,
               coalesce(later.at, l.first_at) AS after_at, coalesce(later.nav, l.first_nav) AS after_nav
        FROM levels l
        LEFT JOIN LATERAL (
            SELECT h.observed_at AS at, h.amount * ('1e-' || h.scale)::numeric AS nav FROM pricing.price_history h
            WHERE h.data_type = l.data_type AND h.symbol = l.symbol AND h.observed_at <= l.first_at
            ORDER BY h.observed_at DESC LIMIT 1) earlier ON true
        LEFT JOIN LATERAL (
            SELECT h.observed_at AS at, h.amount * ('1e-' || h.scale)::numeric AS nav FROM pricing.price_history h
            WHERE h.data_type = l.data_type AND h.symbol = l.symbol AND h.observed_at >= l.last_at
            ORDER BY h.observed_at LIMIT 1) later ON true
        WHERE (earlier.at IS NULL) <> (later.at IS NULL))
    SELECT f.asset_class, f.symbol, (f.after_at AT TIME ZONE 'UTC')::date, f.navs, f.before_nav, f.after_nav
    FROM facing f
    WHERE f.before_nav > 0
      AND f.after_nav > 0
      AND f.after_at - f.before_at <= interval '30 days'
      -- A whole power of ten, apart from the move of the days between the two.
      AND abs(round(log(f.after_nav / f.before_nav))) BETWEEN 1 AND 4
      AND abs(log(f.after_nav / f.before_nav) - round(log(f.after_nav / f.before_nav))) < log(1.1)
      -- Among several levels, the one beside the believed values comes first.
      AND NOT EXISTS (SELECT FROM doubted d
                      WHERE (d.data_type, d.symbol, d.provider) = (f.data_type, f.symbol, f.provider)
                        AND d.observed_at > f.before_at AND d.observed_at < f.after_at)
      AND NOT EXISTS (SELECT FROM pricing.second_opinions o
                      WHERE o.value_id = ANY (f.ids) AND o.ratio NOT BETWEEN 0.9 AND 1.1)
$$;
COMMENT ON FUNCTION pricing.face_value_changes() IS
    'Changes of face value that quarantined NAVs show: twenty days at one end of the history, a power of ten from the '
    'adjacent believed value, and not contradicted by another provider.';


CREATE OR REPLACE FUNCTION pricing.enter_face_values() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    change record;
    factor numeric;
    entered integer := 0;
BEGIN
    FOR change IN
        SELECT c.* FROM pricing.face_value_changes() c
        -- A person's decision about this day stands, including that there was no change.
        WHERE NOT EXISTS (SELECT FROM pricing.corporate_actions a
                          WHERE (a.asset_class, a.symbol, a.ex_on) = (c.asset_class, c.symbol, c.changed_on)
                            AND a.new_shares IS NOT NULL)
          AND NOT EXISTS (SELECT FROM pricing.revisions r
                          CROSS JOIN jsonb_populate_record(NULL::pricing.corporate_actions, r.old) a
                          WHERE (r.kind, r.key) = ('corporate_actions', ARRAY[c.asset_class, c.symbol])
                            AND r.removed_by IS NOT NULL
                            AND a.ex_on = c.changed_on AND a.new_shares IS NOT NULL)
        ORDER BY c.asset_class, c.symbol, c.changed_on
    LOOP
        factor := 10 ^ abs(round(log(change.after_nav / change.before_nav)));
        PERFORM pricing.enter_action(
            change.asset_class, change.symbol, change.changed_on, 'split',
            CASE WHEN change.after_nav < change.before_nav THEN factor ELSE 1 END,
            CASE WHEN change.after_nav < change.before_nav THEN 1 ELSE factor END,
            NULL, NULL, pricing.face_value_rule(),
            pg_catalog.format('restated: the NAV went from %s to %s, and %s days stand on the other level. '
                              '`pricing-pipeline action remove %s %s --kind split` quarantines them again',
                              change.before_nav, change.after_nav, change.navs, change.symbol, change.changed_on));
        entered := entered + 1;
    END LOOP;
    RETURN entered;
END $$;
COMMENT ON FUNCTION pricing.enter_face_values() IS
    'Enters recognized changes of face value as splits, so that quarantined NAVs are judged again; returns how many.';


CREATE OR REPLACE FUNCTION pricing.quarantine_face_value(change pricing.corporate_actions) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    changed_at timestamptz := change.ex_on::timestamp AT TIME ZONE 'UTC';
    pair record;
    is_before boolean;
    were pricing.price_history[];
    newest pricing.price_history;
    taken integer := 0;
BEGIN
    FOR pair IN
        SELECT r.data_type, bool_or(q.observed_at < changed_at) AS is_before
        FROM pricing.data_type_registry r JOIN pricing.quarantined_values q USING (data_type)
        WHERE r.asset_class = change.asset_class AND q.symbol = change.symbol AND q.status = 'released'
          AND q.resolved_by = pricing.face_value_rule()
        GROUP BY r.data_type ORDER BY r.data_type
    LOOP
        -- Including later values that were believed because of these.
        WITH gone AS (
            DELETE FROM pricing.price_history h
            WHERE h.data_type = pair.data_type AND h.symbol = change.symbol
              AND (h.observed_at < changed_at) = pair.is_before
            RETURNING h AS old)
        SELECT array_agg(g.old) INTO were FROM gone g;
        CONTINUE WHEN were IS NULL;
        PERFORM pricing.keep_revisions(were, now_, 0);
        INSERT INTO pricing.quarantined_values AS q
            (data_type, symbol, provider, observed_at, kind, value, reason, bar, call_id, recorded_at, last_seen_at,
             last_call_id)
        SELECT w.data_type, w.symbol, w.provider, w.observed_at, 'unit',
               coalesce(w.source_text, (w.amount * ('1e-' || w.scale)::numeric)::text),
               pg_catalog.format('the change of face value on %s was removed', change.ex_on),
               jsonb_strip_nulls(jsonb_build_object(
                   'close', (w.amount * ('1e-' || w.scale)::numeric)::text, 'currency', w.currency,
                   'adjustment', w.adjustment, 'quality', w.quality)),
               w.call_id, now_, now_, w.call_id
        FROM unnest(were) w ORDER BY w.observed_at
        ON CONFLICT ON CONSTRAINT same_value_is_one_row DO UPDATE
            SET (status, resolved_at, resolved_by, resolution) = ('quarantined', NULL, NULL, NULL);
        taken := taken + cardinality(were);
        -- The newest believed value is the latest price again.
        IF NOT pair.is_before THEN
            SELECT * INTO newest FROM pricing.price_history h
            WHERE h.data_type = pair.data_type AND h.symbol = change.symbol ORDER BY h.observed_at DESC LIMIT 1;
            DELETE FROM pricing.latest_prices l WHERE l.data_type = pair.data_type AND l.symbol = change.symbol;
            PERFORM pricing.note_latest_changes(pair.data_type, 1);
            PERFORM pricing.show_latest(ARRAY[newest], newest.fetched_at) WHERE newest.symbol IS NOT NULL;
        END IF;
    END LOOP;
    RETURN taken;
END $$;
COMMENT ON FUNCTION pricing.quarantine_face_value(pricing.corporate_actions) IS
    'Quarantines again what a recognized change of face value released, when a person removes it; returns how many.';
