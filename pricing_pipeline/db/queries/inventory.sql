-- name: placeless
-- Which of some products have no known zone.
SELECT u.symbol FROM unnest(CAST(:symbols AS text[])) AS u (symbol)
WHERE NOT EXISTS (SELECT FROM pricing.products p WHERE p.symbol = u.symbol AND pricing.zone_of(p) IS NOT NULL);

-- name: known
-- The facts that a request for some products needs: currency, if a person has set one, zone and local day.
SELECT u.symbol, pricing.zone_of(p) AS time_zone, p.set_time_zone IS NOT NULL AS is_zone_set,
       pricing.product_day(u.symbol) AS today,
       (SELECT i.currency FROM pricing.instruments i JOIN pricing.data_type_registry r USING (asset_class)
        WHERE r.data_type = :data_type AND i.symbol = u.symbol) AS currency
FROM unnest(CAST(:symbols AS text[])) AS u (symbol) LEFT JOIN pricing.products p USING (symbol);

-- name: days_ahead
-- How many local days a data type asks for.
SELECT days_ahead FROM pricing.data_type_registry WHERE data_type = :data_type;

-- name: products
-- Products by symbol, after one: what is known of them, and whether they are paused; those of one symbol, or all.
SELECT i.symbol, coalesce(p.name, i.name) AS name,
       CASE WHEN coalesce(p.name, w.provider) IS NOT NULL THEN p.provider END AS provider,
       pricing.zone_of(p) AS time_zone, p.set_time_zone IS NOT NULL AS is_set_by_hand,
       i.update_mode <> 'api' OR NOT i.is_active AS paused,
       coalesce(p.is_listed, true) AS is_listed, p.recorded_at, w.fetched_at, w.first_day, w.last_day
FROM pricing.instruments i
LEFT JOIN pricing.products p USING (symbol)
LEFT JOIN LATERAL (SELECT max(x.provider) AS provider, max(x.fetched_at) AS fetched_at, min(x.first_day) AS first_day,
                          max(x.last_day) AS last_day
                   FROM pricing.slot_windows x
                   WHERE x.symbol = i.symbol) w ON true
WHERE i.asset_class IN (SELECT r.asset_class FROM pricing.data_type_registry r WHERE r.contents = 'inventory')
  AND i.symbol > :after
  AND (CAST(:symbol AS text) IS NULL OR i.symbol = :symbol)
ORDER BY i.symbol LIMIT :at_most;

-- name: options
-- The options of a product, the default first, as believed now or at a time.
SELECT o.option_id, o.name, o.is_default, o.is_listed, o.provider
FROM pricing.options_as_of(:symbol, CAST(:as_of AS timestamptz)) o
ORDER BY o.is_listed DESC, o.is_default DESC, o.option_id;

-- name: categories
-- The categories of a product, as believed now or at a time.
SELECT c.category_id, c.name, c.kind, c.age_from, c.age_to, c.pax_count, c.is_listed, c.provider
FROM pricing.categories_as_of(:symbol, CAST(:as_of AS timestamptz)) c
ORDER BY c.is_listed DESC, c.category_id;

-- name: doubts
-- The parts of each data type's last answer about a product that are not believed, the newest first.
SELECT q.value_id, q.reason, q.times, q.recorded_at, q.last_seen_at
FROM pricing.quarantined_values q
JOIN pricing.data_type_registry r USING (data_type)
LEFT JOIN pricing.slot_windows w USING (data_type, symbol)
WHERE q.symbol = :symbol
  AND r.contents = 'inventory'
  AND q.status = 'quarantined'
  AND q.last_call_id >= coalesce(w.call_id, 0)
ORDER BY q.last_seen_at DESC, q.value_id DESC LIMIT 100;

-- name: slots
-- The slots of a product on local days in order, a row for each category: the day, the fields of StoredSlot and Offer.
SELECT s.local_day, s.slot_id, s.option_id, s.option_name, s.local_start, s.local_end, s.starts_at, s.ends_at,
       s.time_zone, s.status, s.remaining, s.capacity, s.sellable, s.provider, s.recorded_at,
       s.category_id, s.category, s.is_primary, s.minimum, s.maximum, s.pax_remaining, s.final, s.original, s.discount,
       s.currency
FROM pricing.slots_to_read(:symbol, CAST(:first_day AS date), CAST(:last_day AS date), :pax, CAST(:currency AS text),
                           :sellable, CAST(:as_of AS timestamptz)) s
LIMIT :at_most;

-- name: days
-- When the slots of each local day were last confirmed, with age in seconds, freshness, and the data type that asks.
SELECT d.day, d.fetched_at, extract(epoch FROM pricing.clock() - d.fetched_at)::float8 AS age_seconds, d.fresh,
       d.data_type
FROM pricing.slot_days(:symbol, CAST(:first_day AS date), CAST(:last_day AS date)) d
ORDER BY 1;

-- name: request
-- A read asks for what is missing or stale; returns how many are queued.
SELECT pricing.request_prices(w.types, array_fill(CAST(:symbol AS text), ARRAY[cardinality(w.types)]))
FROM (SELECT pricing.slot_types_to_request(:symbol, CAST(:last_day AS date)) AS types) w
WHERE cardinality(w.types) > 0;

-- name: request_for
-- The same for one user, within the caps of a user; a worker serves it.
SELECT count(pricing.request_reads(:user_id, w.types, array_fill(CAST(:symbol AS text), ARRAY[cardinality(w.types)])))
FROM (SELECT pricing.slot_types_to_request(:symbol, CAST(:last_day AS date)) AS types) w
WHERE cardinality(w.types) > 0;
