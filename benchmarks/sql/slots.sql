-- name: arrange
-- A provider of slots and its data type, with so many products.
INSERT INTO pricing.data_collectors (provider, description, base_url) VALUES ('partner', 'slots', 'http://partner.invalid');
INSERT INTO pricing.data_type_registry (data_type, fetcher, asset_class, default_ttl_minutes, days_ahead)
VALUES ('slots_of_thirty_days', 'slots', 'inventory', 1440, 30);

-- name: products
WITH known AS (
    INSERT INTO pricing.instruments (asset_class, symbol) SELECT 'inventory', 'P' || n FROM generate_series(1, %(products)s::integer) n),
described AS (
    INSERT INTO pricing.products (symbol, provider, name, time_zone, call_id, recorded_at)
    SELECT 'P' || n, 'partner', 'Tour ' || n, 'Europe/London', 1, pricing.clock() FROM generate_series(1, %(products)s::integer) n
    RETURNING symbol),
options AS (
    INSERT INTO pricing.product_options (symbol, provider, option_id, name, call_id, recorded_at)
    SELECT d.symbol, 'partner', 'DEFAULT', 'Tour', 1, pricing.clock() FROM described d)
INSERT INTO pricing.pax_categories (symbol, provider, category_id, name, is_described, call_id, recorded_at)
SELECT d.symbol, 'partner', c, initcap(c), true, 1, pricing.clock() FROM described d CROSS JOIN unnest('{ADULT,CHILD}'::text[]) c;

-- name: slots
-- Ten slots a day for so many days of each product, in the order in which a daily sync of thirty days adds them: each
-- time the slots of one more day, product by product.
INSERT INTO pricing.slots (symbol, provider, option_id, slot_id, local_start, local_end, utc_offset, starts_at, ends_at, status, remaining,
                           capacity, call_id, recorded_at)
SELECT p.symbol, 'partner', 'DEFAULT', to_char(t.at, 'YYYY-MM-DD"T"HH24:MI:SS'), t.at, t.at + interval '1 hour', '0', t.at AT TIME ZONE 'UTC',
       (t.at + interval '1 hour') AT TIME ZONE 'UTC', 'available', 9, 10, 1, pricing.clock()
FROM pricing.products p
CROSS JOIN LATERAL (SELECT %(first)s::timestamp + make_interval(days => n / 10, hours => 8 + n %% 10) AS at
                    FROM generate_series(0, 10 * %(days)s::integer - 1) n) t
ORDER BY t.at::date, p.symbol, t.at;

-- name: availability
INSERT INTO pricing.pax_availability (slot_key, category_key, minimum, maximum, remaining, is_primary, call_id, recorded_at)
SELECT s.slot_key, c.category_key, 1, 9, 9, c.category_id = 'ADULT', 1, pricing.clock()
FROM pricing.slots s JOIN pricing.pax_categories c USING (symbol) ORDER BY s.slot_key, c.category_key;

-- name: prices
INSERT INTO pricing.slot_prices (slot_key, category_key, final_price, original_price, currency, scale, call_id, recorded_at)
SELECT s.slot_key, c.category_key, 2500, 3000, 'EUR', 2, 1, pricing.clock()
FROM pricing.slots s JOIN pricing.pax_categories c USING (symbol) ORDER BY s.slot_key, c.category_key;

-- name: plain_tables
-- The same rows and keys, without history, checks and references.
CREATE TABLE plain_slots (LIKE pricing.slots, PRIMARY KEY (symbol, option_id, slot_id));
CREATE TABLE plain_offers (slot_key bigint, category_key bigint, minimum integer, maximum integer, remaining integer, is_primary boolean,
                           final_price bigint, original_price bigint, currency text, scale smallint, recorded_at timestamptz,
                           PRIMARY KEY (slot_key, category_key));
INSERT INTO plain_slots SELECT * FROM pricing.slots ORDER BY slot_key;
INSERT INTO plain_offers
SELECT a.slot_key, a.category_key, a.minimum, a.maximum, a.remaining, a.is_primary, p.final_price, p.original_price, p.currency, p.scale, a.recorded_at
FROM pricing.pax_availability a JOIN pricing.slot_prices p USING (slot_key, category_key) ORDER BY 1, 2;

-- name: analyze
VACUUM (ANALYZE) pricing.products, pricing.slots, pricing.slot_prices, pricing.pax_availability, pricing.pax_categories, plain_slots, plain_offers;

-- name: count
SELECT count(*) FROM pricing.slots;

-- name: bare_query
-- What the tables have of a product's days, by their indexes, and nothing worked out.
SELECT s.slot_key, s.option_id, s.slot_id, s.local_start, s.local_end, s.starts_at, s.ends_at, s.utc_offset, s.time_zone, s.status, s.remaining,
       s.capacity, c.category_id, c.name, a.is_primary, a.minimum, a.maximum, a.remaining AS pax_remaining, p.final_price, p.original_price,
       p.discount, p.currency, p.scale, s.provider, s.recorded_at
FROM pricing.slots s
JOIN pricing.pax_availability a USING (slot_key)
JOIN pricing.slot_prices p USING (slot_key, category_key)
JOIN pricing.pax_categories c USING (category_key)
WHERE s.symbol = %(symbol)s AND s.local_day BETWEEN %(first_day)s AND %(last_day)s ORDER BY s.local_start, s.slot_id, c.category_id;

-- name: upsert_slots
INSERT INTO plain_slots (slot_key, symbol, provider, option_id, slot_id, local_day, local_start, local_end, utc_offset, starts_at, ends_at, status,
                         remaining, capacity, call_id, recorded_at)
SELECT 0, %(symbol)s, 'partner', 'DEFAULT', to_char(u.at, 'YYYY-MM-DD"T"HH24:MI:SS'), u.at::date, u.at, u.at + interval '1 hour', '0', u.at AT TIME ZONE 'UTC',
       (u.at + interval '1 hour') AT TIME ZONE 'UTC', 'available', u.remaining, 10, 1, clock_timestamp()
FROM unnest(%(starts)s::timestamp[], %(remaining)s::integer[]) AS u (at, remaining)
ON CONFLICT (symbol, option_id, slot_id) DO UPDATE
    SET local_start = excluded.local_start, local_end = excluded.local_end, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
        status = excluded.status, remaining = excluded.remaining, capacity = excluded.capacity, recorded_at = excluded.recorded_at
RETURNING slot_key;

-- name: upsert_offers
INSERT INTO plain_offers
SELECT s.slot_key, c.category_key, 1, 9, u.left_over, c.category_id = 'ADULT', 2500, 3000, 'EUR', 2, clock_timestamp()
FROM unnest(%(keys)s::bigint[], %(remaining)s::integer[]) AS u (slot_key, left_over)
JOIN plain_slots s ON s.slot_key = u.slot_key AND s.symbol = %(symbol)s JOIN pricing.pax_categories c ON c.symbol = s.symbol
ON CONFLICT (slot_key, category_key) DO UPDATE
    SET minimum = excluded.minimum, maximum = excluded.maximum, remaining = excluded.remaining, is_primary = excluded.is_primary,
        final_price = excluded.final_price, original_price = excluded.original_price, currency = excluded.currency, scale = excluded.scale,
        recorded_at = excluded.recorded_at;
