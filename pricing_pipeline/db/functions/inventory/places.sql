-- When slots take place: local times, the zone of a product, and instants.

CREATE OR REPLACE FUNCTION pricing.instant_of(local timestamp, zone text) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$ -- no SET search_path, so that it is inlined
    -- PostgreSQL takes the second of two equal local times and moves a missing one on by the gap, as RFC 5545 does.
    SELECT (local AT TIME ZONE zone) - CASE
        WHEN ((local AT TIME ZONE zone) - interval '1 hour') AT TIME ZONE zone = local THEN interval '1 hour'
        WHEN ((local AT TIME ZONE zone) - interval '30 minutes') AT TIME ZONE zone = local THEN interval '30 minutes'
        -- Antarctica/Troll
        WHEN ((local AT TIME ZONE zone) - interval '2 hours') AT TIME ZONE zone = local THEN interval '2 hours'
        ELSE interval '0' END
$$;
COMMENT ON FUNCTION pricing.instant_of(timestamp, text) IS
    'The instant of a local time by RFC 5545: the first of two, and for a skipped one the time after the jump.';


CREATE OR REPLACE FUNCTION pricing.zone_of(product pricing.products) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT coalesce((product).set_time_zone, (product).time_zone) $$;
COMMENT ON FUNCTION pricing.zone_of(pricing.products) IS 'The time zone of a product; NULL = unknown.';


CREATE OR REPLACE FUNCTION pricing.doubt_slots(wanted_symbol text, except_of text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    doubted text;
BEGIN
    FOR doubted IN
        UPDATE pricing.confirmed_pairs c
        -- Too old for every reader, even where TTLs are stretched the most, and no age that looks like a fault.
        SET fetched_at = least(c.fetched_at, pricing.clock() - (pricing.most_stretched() + 1)
                                             * make_interval(mins => pricing.pair_ttl(c.data_type, c.symbol)))
        FROM pricing.data_type_registry r
        WHERE (c.data_type, c.symbol) = (r.data_type, wanted_symbol)
          AND r.fetcher = 'slots'
          AND c.provider IS DISTINCT FROM except_of
        RETURNING c.data_type
    LOOP
        PERFORM pricing.look_again(doubted, wanted_symbol);
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.doubt_slots(text, text) IS
    'Makes confirmed slots of a product stale, except those that one provider confirmed, after its provider or its '
    'time zone changed.';


CREATE OR REPLACE FUNCTION pricing.place_slots(wanted_symbol text, from_call bigint, now_ timestamptz) RETURNS integer
LANGUAGE plpgsql SET search_path = '' SET enable_seqscan = off AS $$
DECLARE
    zone text := (SELECT pricing.zone_of(p) FROM pricing.products p WHERE p.symbol = wanted_symbol);
    placed integer;
BEGIN
    -- A new zone corrects a wrong one far more often than a product moves. Past slots stay as they were sold.
    UPDATE pricing.slots s
    SET time_zone = zone, starts_at = pricing.instant_of(s.local_start, zone),
        ends_at = greatest(pricing.instant_of(s.local_start, zone), pricing.instant_of(s.local_end, zone)),
        call_id = coalesce(from_call, s.call_id), recorded_at = now_
    WHERE s.symbol = wanted_symbol AND s.local_day >= (now_ AT TIME ZONE zone)::date AND s.time_zone <> zone;
    GET DIAGNOSTICS placed = ROW_COUNT;
    PERFORM pricing.note_shared_changes(wanted_symbol, 'slots', placed);
    -- Its slots may now be on other local days.
    PERFORM pricing.doubt_slots(wanted_symbol);
    RETURN placed;
END $$;
COMMENT ON FUNCTION pricing.place_slots(text, bigint, timestamptz) IS
    'Places a product''s slots without an offset by its zone, from today on, as revisions; returns how many.';


CREATE OR REPLACE FUNCTION pricing.set_product_zone(wanted_symbol text, zone text) RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz;
    route text;
BEGIN
    IF zone IS NOT NULL AND NOT pricing.is_time_zone(zone) THEN
        RAISE EXCEPTION '% is not a time zone', left(zone, 60)
            USING HINT = 'Give a name of the IANA database, such as Europe/London.',
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT r.provider INTO route
    FROM pricing.data_type_registry t
    JOIN pricing.instruments i USING (asset_class)
    LEFT JOIN pricing.provider_routing r ON r.data_type = t.data_type
    WHERE t.contents = 'inventory' AND i.symbol = wanted_symbol
    ORDER BY r.symbol IS NULL, r.rank LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO pricing.products (symbol, provider, recorded_at)
    VALUES (wanted_symbol, coalesce(route, ''), pricing.clock()) ON CONFLICT DO NOTHING;
    PERFORM FROM pricing.products p WHERE p.symbol = wanted_symbol FOR NO KEY UPDATE;
    now_ := pricing.clock();
    UPDATE pricing.products p SET set_time_zone = zone, call_id = NULL, recorded_at = now_
    WHERE p.symbol = wanted_symbol AND p.set_time_zone IS DISTINCT FROM zone;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    PERFORM pricing.note_shared_changes(wanted_symbol, 'product', 1);
    RETURN pricing.place_slots(wanted_symbol, NULL, now_);
END $$;
COMMENT ON FUNCTION pricing.set_product_zone(text, text) IS
    'Sets a product''s time zone by hand (NULL undoes it) and moves its coming slots; returns how many, NULL if '
    'there is no such product.';
