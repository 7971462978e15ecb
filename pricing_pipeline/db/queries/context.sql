-- name: known_values
-- The facts by which an answer's values are judged and stored, for each symbol. Times of what is stored come as
-- microseconds since 1970: thousands of whole numbers are read in a tenth of the time.
SELECT symbol, scale, currency, adjustment, lowest, highest, jumps_are_trusted, newest_at, newest_amount, newest_scale,
       earlier_at, earlier_amount, earlier_scale, later_at, later_amount, later_scale, kin_at, kin_amount, kin_scale,
       (SELECT array_agg((date_part('epoch', t.at) * 1000000)::bigint) FROM unnest(same_times) AS t (at)) AS same_times,
       same_amounts, same_scales, other_times, other_values, other_providers, rejected_times, rejected_values,
       peer_at, peer_value, peer_low, peer_high, peer_currency, peer_type, peer_is_bar, peer_splits
FROM pricing.known_values(:data_type, :provider, CAST(:symbols AS text[]), CAST(:first_times AS timestamptz[]),
                          CAST(:last_times AS timestamptz[]), :is_latest) k
LEFT JOIN LATERAL (
    SELECT array_agg(q.observed_at) AS rejected_times, array_agg((q.bar ->> 'close')::numeric) AS rejected_values
    FROM pricing.quarantined_values q
    WHERE q.data_type = :data_type AND q.symbol = k.symbol AND q.provider = :provider AND q.status = 'rejected'
      AND q.observed_at IS NOT NULL AND q.bar IS NOT NULL) r ON true
LEFT JOIN pricing.peers(:data_type, CAST(:symbols AS text[]), CAST(:first_times AS timestamptz[]),
                        CAST(:last_times AS timestamptz[])) p ON :is_latest AND p.peer_symbol = k.symbol;

-- name: known_basis
-- The facts that distinguish a restated bar from a corrected one, for each symbol of an answer.
SELECT symbol,
       (SELECT pricing.has_splits(r.asset_class) FROM pricing.data_type_registry r WHERE r.data_type = :data_type),
       adjustment, split_days, split_ratios, newest_recorded, earlier_recorded, same_times, same_recorded
FROM pricing.known_basis(:data_type, CAST(:symbols AS text[]), CAST(:first_times AS timestamptz[]),
                         CAST(:last_times AS timestamptz[]));

-- name: refuted
-- Splits of an answer that a person has taken back or replaced.
SELECT s.symbol, s.ex_on
FROM pricing.data_type_registry r
CROSS JOIN LATERAL pricing.actions_of_answer(r.asset_class, :provider, 0, CAST(:actions AS jsonb)) s
WHERE r.data_type = :data_type AND pricing.is_refuted(s);

-- name: share_basis
-- Keep the bases of some histories as they are until the transaction ends.
SELECT 1 FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class)
WHERE r.data_type = :data_type AND i.symbol = ANY (CAST(:symbols AS text[])) ORDER BY i.symbol FOR KEY SHARE OF i;

-- name: trading
-- Volumes and closes of the twenty stored days before an answer's, for each symbol, the oldest first.
SELECT w.symbol, h.observed_at, h.amount * ('1e-' || h.scale)::numeric, h.volume
FROM unnest(CAST(:symbols AS text[]), CAST(:first_times AS timestamptz[])) AS w (symbol, first_at)
CROSS JOIN LATERAL (
    SELECT x.* FROM pricing.price_history x
    WHERE x.data_type = :data_type AND x.symbol = w.symbol AND x.observed_at < w.first_at AND x.volume > 0
    ORDER BY x.observed_at DESC LIMIT 20) h
ORDER BY w.symbol, h.observed_at;

-- name: witnesses
-- Values of some symbols that were quarantined because they are far from the last one, within two weeks, oldest first.
SELECT q.symbol, q.observed_at, (q.bar ->> 'close')::numeric AS value
FROM (SELECT pricing.clock() AS at) n
JOIN pricing.quarantined_values q ON q.last_seen_at > n.at - interval '14 days'
WHERE q.data_type = :data_type AND q.provider = :provider AND q.symbol = ANY (CAST(:symbols AS text[]))
  AND q.status = 'quarantined' AND q.kind IN ('jump', 'split', 'spike') AND q.observed_at IS NOT NULL
ORDER BY q.symbol, q.observed_at;

-- name: rivals
-- Other providers' quarantined values for the same times of some symbols: the newest of each provider, on the same
-- basis. Quotes may be a quarter of an hour apart, if their provider has no later believed one.
SELECT DISTINCT ON (q.symbol, q.data_type, q.provider, CASE WHEN NOT k.is_quote THEN q.observed_at END)
       q.symbol, q.observed_at, (q.bar ->> 'close')::numeric AS value, q.provider
FROM (SELECT r.fetcher = 'quote' AS is_quote,
             CASE WHEN r.fetcher = 'quote' THEN interval '15 minutes' ELSE interval '0' END AS around,
             pricing.types_alike(:data_type) || CAST(:data_type AS text) AS types
      FROM pricing.data_type_registry r WHERE r.data_type = :data_type OFFSET 0) k
CROSS JOIN unnest(CAST(:symbols AS text[]), CAST(:first_times AS timestamptz[]), CAST(:last_times AS timestamptz[]),
                  CAST(:currencies AS text[]), CAST(:bases AS text[])) AS w (symbol, first_at, last_at, currency, basis)
JOIN pricing.quarantined_values q ON q.data_type = ANY (k.types) AND q.symbol = w.symbol
     AND q.observed_at BETWEEN w.first_at - k.around AND w.last_at + k.around
WHERE q.provider <> :provider AND q.status = 'quarantined' AND q.bar IS NOT NULL AND (q.bar ->> 'close')::numeric > 0
  AND (pricing.is_of_level(q.kind) OR q.kind = 'disagreement')
  AND (q.bar ->> 'currency' = w.currency) IS NOT FALSE AND q.bar ->> 'adjustment' = w.basis
  AND NOT EXISTS (SELECT FROM pricing.price_history h
                  WHERE (h.data_type, h.symbol, h.provider) = (q.data_type, q.symbol, q.provider)
                    AND h.observed_at >= q.observed_at AND (k.is_quote OR h.observed_at = q.observed_at))
ORDER BY q.symbol, q.data_type, q.provider, CASE WHEN NOT k.is_quote THEN q.observed_at END, q.observed_at DESC,
         q.last_seen_at DESC;

-- name: released
-- Doubted values that people have released.
SELECT q.symbol, q.observed_at, (q.bar ->> 'close')::numeric AS value FROM pricing.quarantined_values q
WHERE q.data_type = :data_type AND q.provider = :provider AND q.symbol = ANY (CAST(:symbols AS text[]))
  AND q.status = 'released' AND q.bar IS NOT NULL;

-- name: lacking
-- Which of these past days have no value yet; days before the history or the listing do not count.
SELECT u.symbol, u.day
FROM unnest(CAST(:symbols AS text[]), CAST(:days AS date[])) AS u (symbol, day)
JOIN pricing.data_type_registry r ON r.data_type = :data_type
JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, u.symbol)
WHERE u.day >= greatest(r.history_from, i.listed_on) AND u.day < (pricing.clock() AT TIME ZONE 'UTC')::date
  AND NOT EXISTS (SELECT FROM pricing.price_history h
                  WHERE h.data_type = r.data_type AND h.symbol = u.symbol
                    AND h.observed_at = u.day::timestamp AT TIME ZONE 'UTC')
  AND NOT pricing.has_moved(r.data_type, u.symbol, u.day);
