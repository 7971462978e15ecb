-- name: add
-- Add a price alert; none when its recipient has it already for the same user.
INSERT INTO pricing.price_alerts
    (recipient, user_id, data_type, symbol, condition, threshold, hysteresis, hysteresis_in, lasts, pace, is_caught_up,
     created_at, created_by)
VALUES (:recipient, :user_id, :data_type, :symbol, :condition, :threshold, :hysteresis, :hysteresis_in,
        make_interval(secs => CAST(:lasts AS float8)), make_interval(secs => CAST(:pace AS float8)),
        :condition IN ('each', 'stale'), pricing.clock(), :created_by)
ON CONFLICT (recipient, data_type, symbol, condition, threshold, lasts, user_id) DO NOTHING
RETURNING price_alert_id;

-- name: same
-- The price alert that another one would repeat.
SELECT a.price_alert_id FROM pricing.price_alerts a
WHERE (a.recipient, a.data_type, a.condition) = (:recipient, :data_type, :condition)
  AND (a.user_id, a.symbol, a.threshold, a.lasts) IS NOT DISTINCT FROM (
      CAST(:user_id AS text), CAST(:symbol AS text), CAST(:threshold AS numeric),
      make_interval(secs => CAST(:lasts AS float8)));

-- name: list
-- Price alerts by id, of one recipient, user or id, or all, and whether anything fetches their prices.
SELECT a.price_alert_id, a.recipient, a.user_id, r.is_active AS recipient_is_active, a.data_type, a.symbol, a.condition,
       a.threshold, a.hysteresis, a.hysteresis_in, a.lasts, a.pace, a.is_beyond, a.seen, a.seen_at, a.reference,
       a.reference_at, a.told_at, a.created_at, a.created_by,
       t.is_active
       AND (t.refresh_strategy = 'scheduled'
            OR EXISTS (SELECT FROM pricing.active_subscriptions s
                       WHERE s.data_type = a.data_type AND coalesce(s.symbol = a.symbol, true))
            OR EXISTS (SELECT FROM pricing.holdings h
                       WHERE h.data_type = a.data_type AND h.status = 'active'
                         AND coalesce(h.symbol = a.symbol, true))) AS is_fetched
FROM pricing.price_alerts a
JOIN pricing.recipients r USING (recipient)
JOIN pricing.data_type_registry t USING (data_type)
WHERE coalesce(a.recipient = CAST(:recipient AS text), true)
  AND coalesce(a.price_alert_id = CAST(:id AS bigint), true)
  AND coalesce(a.user_id = CAST(:user_id AS text), CAST(:user_id AS text) IS NULL)
  AND coalesce(a.price_alert_id > CAST(:after_id AS bigint), true)
ORDER BY a.price_alert_id LIMIT :most;

-- name: note_looks
-- Store what locked alerts have seen, and which were sent.
UPDATE pricing.price_alerts a
SET (is_beyond, seen, seen_at, reference, reference_at, told_at)
    = (k.is_beyond, k.seen, k.seen_at, k.reference, k.reference_at,
       CASE WHEN k.is_told THEN pricing.clock() ELSE a.told_at END)
FROM jsonb_to_recordset(CAST(:looks AS jsonb))
    AS k (price_alert_id bigint, is_beyond boolean, seen numeric, seen_at timestamptz, reference numeric,
          reference_at timestamptz, is_told boolean)
WHERE a.price_alert_id = k.price_alert_id;

-- name: remove
-- End a price alert; no row for an unknown one.
DELETE FROM pricing.price_alerts
WHERE price_alert_id = :id
  AND coalesce(user_id = CAST(:user_id AS text), CAST(:user_id AS text) IS NULL)
RETURNING price_alert_id;
