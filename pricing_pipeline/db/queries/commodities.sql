-- name: merge
-- Store prices of terminals.
SELECT symbol, added, revised, is_stale_source FROM pricing.merge_commodity_prices(
    :provider, :call_id, CAST(:terminals AS text[]), CAST(:terminal_names AS text[]), CAST(:terminal_codes AS text[]),
    CAST(:whole AS boolean[]), CAST(:symbols AS text[]), CAST(:commodity_ids AS bigint[]), CAST(:qualities AS text[]),
    CAST(:names AS text[]), CAST(:codes AS text[]), CAST(:slugs AS text[]), CAST(:buys AS numeric[]),
    CAST(:sells AS numeric[]), CAST(:stocks AS bigint[]), CAST(:demands AS bigint[]), CAST(:versions AS text[]),
    CAST(:stamps AS timestamptz[]));

-- name: confirm
-- Note that a provider has answered for these terminals, whatever it said; their instruments are known to it.
SELECT pricing.confirm_pairs(:data_type, CAST(:symbols AS text[]), :provider, :call_id),
       pricing.verify_instruments(:data_type, CAST(:symbols AS text[]), NULL);

-- name: types
-- The active data types of prices of terminals, by name.
SELECT data_type FROM pricing.data_type_registry WHERE is_active AND fetcher = 'terminal_prices' ORDER BY data_type;

-- name: note_test_version
-- The provider says that this version of the game is for tests.
INSERT INTO pricing.game_versions AS v (version, seen_at, is_test) VALUES (:version, pricing.clock(), true)
ON CONFLICT (version) DO UPDATE SET is_test = true
    WHERE NOT v.is_test AND (v.live_since IS NULL OR v.live_until IS NOT NULL);

-- name: warn
-- Note what went wrong in an ETL.
INSERT INTO pricing.etl_warnings (etl, run, step, kind, message, warned_at)
VALUES (:etl, :run, :step, :kind, left(:message, 1000), pricing.clock());

-- name: forget_warnings
-- Delete warnings that are older than 90 days.
DELETE FROM pricing.etl_warnings WHERE warned_at < pricing.clock() - interval '90 days';

-- name: all
-- Commodities by name: where each can be bought and sold now, and the best prices, in the version that people play.
SELECT c.commodity_id, c.name, c.code, c.slug, c.kind, c.is_available AND c.vanished_at IS NULL AS is_available,
       count(p.buy) AS sold_at, min(p.buy) AS cheapest, count(p.sell) AS bought_at, max(p.sell) AS dearest,
       max(coalesce(p.modified_at, p.recorded_at)) AS newest_at
FROM pricing.commodities c
LEFT JOIN (SELECT x.* FROM pricing.commodity_prices x JOIN pricing.terminals t USING (symbol)
           WHERE t.is_available AND t.vanished_at IS NULL
             AND x.game_version IS NOT DISTINCT FROM (SELECT v.version FROM pricing.game_version_in_play v)) p
    USING (commodity_id)
GROUP BY c.commodity_id
ORDER BY lower(c.name), c.commodity_id;

-- name: find
-- The commodity of a slug, code, name or number.
SELECT c.commodity_id, c.name, c.code, c.slug
FROM pricing.commodities c
WHERE c.commodity_id = pricing.commodity_of(:word);

-- name: like_terminal
-- Names of listed terminals that have a word in them.
SELECT t.name FROM pricing.terminals t
WHERE t.vanished_at IS NULL AND strpos(lower(t.name), lower(:word)) > 0
ORDER BY t.name LIMIT 3;

-- name: prices
-- What is traded, of a commodity or at a terminal, as believed now or at a time.
SELECT p.commodity, p.slug, p.symbol, p.terminal, p.code, p.system, p.place, p.is_available, p.quality, p.buy, p.sell,
       p.stock, p.demand, p.game_version, p.is_of_other_version, p.modified_at, p.recorded_at, p.provider,
       extract(epoch FROM n.at - coalesce(p.modified_at, p.recorded_at))::float8 AS age_seconds
FROM pricing.traded_prices(CAST(:commodity_id AS bigint), CAST(:terminal AS text), CAST(:as_of AS timestamptz))
    WITH ORDINALITY p
CROSS JOIN (SELECT coalesce(CAST(:as_of AS timestamptz), pricing.clock()) AS at) n
ORDER BY p.ordinality;

-- name: routes
-- The best routes, or those from one terminal.
SELECT commodity, slug, quality, from_symbol, from_terminal, from_system, to_symbol, to_terminal, to_system, buy, sell,
       margin, margin_percent, stock, demand, quantity, total, game_version,
       extract(epoch FROM pricing.clock() - oldest_at)::float8 AS age_seconds
FROM pricing.best_routes(CAST(:from_symbol AS text), :at_most) WITH ORDINALITY r
ORDER BY ordinality;

-- name: state
-- The version of the game that people play, and since when the last prices are confirmed.
SELECT (SELECT v.version FROM pricing.game_version_in_play v) AS game_version,
       (SELECT max(p.fetched_at) FROM pricing.confirmed_pairs p JOIN pricing.data_type_registry r USING (data_type)
        WHERE r.fetcher = 'terminal_prices') AS fetched_at;
