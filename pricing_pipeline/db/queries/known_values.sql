-- name: load
-- What an answer's values are judged by and stored with, for each symbol. Times of what is stored come as microseconds since
-- 1970: thousands of whole numbers are read in a tenth of the time.
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

-- name: trading
-- Volumes and closes of the twenty stored days before an answer's, for each symbol, the oldest first.
SELECT w.symbol, h.observed_at, h.amount * ('1e-' || h.scale)::numeric, h.volume
FROM unnest(CAST(:symbols AS text[]), CAST(:first_times AS timestamptz[])) AS w (symbol, first_at)
CROSS JOIN LATERAL (
    SELECT x.* FROM pricing.price_history x
    WHERE x.data_type = :data_type AND x.symbol = w.symbol AND x.observed_at < w.first_at AND x.volume > 0
    ORDER BY x.observed_at DESC LIMIT 20) h
ORDER BY w.symbol, h.observed_at;
