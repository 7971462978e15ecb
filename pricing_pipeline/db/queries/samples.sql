-- name: inventory
-- A few products of a data type, the most watched first, with the slots of the requested days. Bookable are slots that
-- pricing.availability calls sellable.
SELECT w.symbol, p.name, w.first_day, w.last_day, w.fetched_at, s.slots, b.bookable, s.remaining, s.capacity
FROM (SELECT x.* FROM pricing.slot_windows x
      WHERE x.data_type = :data_type
      ORDER BY (SELECT count(*) FROM pricing.active_subscriptions a
                WHERE (a.data_type, a.symbol) = (x.data_type, x.symbol)) DESC, x.symbol
      LIMIT :at_most) w
JOIN pricing.products p USING (symbol)
CROSS JOIN LATERAL (
    SELECT count(*) AS slots, sum(x.remaining) AS remaining, sum(x.capacity) AS capacity FROM pricing.slots x
    WHERE x.symbol = w.symbol AND x.local_day BETWEEN w.first_day AND w.last_day AND x.status <> 'vanished') s
CROSS JOIN LATERAL (
    SELECT count(DISTINCT (r.provider, r.option_id, r.slot_id)) AS bookable
    FROM pricing.slots_to_read(w.symbol, w.first_day, w.last_day, 1, NULL, true, NULL) r) b;

-- name: product_with_places
-- The most watched product of a data type whose slots, on the days that were asked for, say how many places there are.
SELECT w.symbol, p.name
FROM pricing.slot_windows w JOIN pricing.products p USING (symbol)
WHERE w.data_type = :data_type
  AND EXISTS (SELECT FROM pricing.slots s
              WHERE s.symbol = w.symbol AND s.local_day BETWEEN w.first_day AND w.last_day
                AND s.capacity > 0 AND s.status NOT IN ('vanished', 'closed'))
ORDER BY (SELECT count(*) FROM pricing.active_subscriptions a
          WHERE (a.data_type, a.symbol) = (w.data_type, w.symbol)) DESC, w.symbol
LIMIT 1;

-- name: products
-- A few products that a data type describes, with their options and categories.
SELECT p.symbol, p.name, coalesce(p.set_time_zone, p.time_zone) AS time_zone, c.fetched_at,
       (SELECT count(*) FROM pricing.product_options o WHERE o.symbol = p.symbol AND o.is_listed) AS options,
       (SELECT string_agg(x.name, ', ' ORDER BY x.name) FROM pricing.pax_categories x
        WHERE x.symbol = p.symbol AND x.is_listed) AS categories
FROM pricing.confirmed_pairs c JOIN pricing.products p USING (symbol)
WHERE c.data_type = :data_type
ORDER BY c.fetched_at DESC, p.symbol LIMIT :at_most;

-- name: days_of_product
-- The local days of a product that a data type has asked for, oldest first: how full they are, and the lowest price of
-- a category that the product is made for.
SELECT s.local_day AS day, count(*) AS slots, sum(s.capacity - s.remaining) AS taken, sum(s.capacity) AS capacity,
       min(o.price) AS lowest, min(o.currency) AS currency
FROM pricing.slot_windows w
JOIN pricing.slots s ON s.symbol = w.symbol AND s.local_day BETWEEN w.first_day AND w.last_day
LEFT JOIN LATERAL (
    SELECT min(p.final_price * ('1e-' || p.scale)::numeric) AS price, min(p.currency) AS currency
    FROM pricing.slot_prices p JOIN pricing.pax_availability a USING (slot_key, category_key)
    WHERE p.slot_key = s.slot_key AND a.is_primary AND a.is_offered) o ON true
WHERE (w.data_type, w.symbol) = (:data_type, :symbol) AND s.status NOT IN ('vanished', 'closed')
GROUP BY 1
ORDER BY 1;

-- name: trade_routes
-- The best ways to earn with commodities.
SELECT r.commodity_id, r.commodity, r.from_terminal, r.to_terminal, r.buy, r.sell, r.quantity, r.total
FROM pricing.trade_routes r
ORDER BY r.total DESC NULLS LAST, r.margin DESC, r.commodity_id, r.from_symbol, r.to_symbol LIMIT :at_most;

-- name: terminals_of_commodity
-- What a commodity costs at each terminal that trades it, the dearest first.
SELECT t.name AS terminal, p.buy::float8 AS buy, p.sell::float8 AS sell
FROM pricing.commodity_prices p JOIN pricing.terminals t USING (symbol)
WHERE p.commodity_id = :commodity_id AND (p.buy IS NOT NULL OR p.sell IS NOT NULL) AND t.vanished_at IS NULL
  AND p.game_version IS NOT DISTINCT FROM (SELECT v.version FROM pricing.game_version_in_play v)
ORDER BY coalesce(p.sell, p.buy) DESC, t.name;

-- name: vanished_slots
-- By data type, about the slots of requested days: how many there are, how many vanished within a day, and the products
-- that lost more than half. A slot also vanishes when its provider no longer has its product or option.
SELECT w.data_type, sum(s.listed)::bigint AS listed, sum(s.vanished)::bigint AS vanished,
       array_agg(w.symbol ORDER BY w.symbol) FILTER (WHERE s.vanished > s.listed) AS emptied
FROM pricing.slot_windows w
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE v.at IS NULL) AS listed,
           count(*) FILTER (WHERE v.at > pricing.clock() - interval '1 day') AS vanished
    FROM pricing.slots x JOIN pricing.products p USING (symbol)
    LEFT JOIN pricing.product_options o ON (o.symbol, o.provider, o.option_id) = (x.symbol, x.provider, x.option_id)
    CROSS JOIN LATERAL (
        SELECT least(CASE WHEN x.status = 'vanished' THEN x.recorded_at END,
                     CASE WHEN NOT p.is_listed THEN p.recorded_at END,
                     CASE WHEN NOT o.is_listed THEN o.recorded_at END) AS at) v
    WHERE x.symbol = w.symbol AND x.local_day BETWEEN w.first_day AND w.last_day) s
WHERE w.data_type = ANY (CAST(:data_types AS text[]))
GROUP BY 1
ORDER BY 1;

-- name: old_versions
-- How many prices of commodities there are, and how many are of another version of the game than people play.
SELECT count(*) AS prices, count(*) FILTER (WHERE p.game_version IS DISTINCT FROM v.version) AS older,
       min(v.version) AS version
FROM pricing.commodity_prices p LEFT JOIN pricing.game_version_in_play v ON true
WHERE p.buy IS NOT NULL OR p.sell IS NOT NULL;
