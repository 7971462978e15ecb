-- name: settle
-- Close a call and book its wire bytes, once; what it says about its provider counts if its claim still owned a task.
SELECT pricing.settle_call(:call_id, :outcome, CAST(:http_status AS integer), :wire_bytes, CAST(:error AS text),
                           CAST(:kind AS text), :is_owned, CAST(:units_left AS integer), CAST(:shown_units AS integer),
                           CAST(:shown_seconds AS integer), :is_unannounced);

-- name: throttle
-- Stop all calls with a key for a while; returns the pause in seconds.
SELECT extract(epoch FROM pricing.throttle(
    :provider, :key_name, make_interval(secs => CAST(:retry_after AS float8)), :reason))::float8;

-- name: key_states
-- Whether keys of a provider are used, and until when they pause.
SELECT key_name, is_active, CASE WHEN blocked_until > pricing.clock() THEN blocked_until END AS blocked_until,
       CASE WHEN blocked_until > pricing.clock() THEN blocked_reason END AS blocked_reason
FROM pricing.provider_keys WHERE provider = :provider ORDER BY key_name;

-- name: add_keys
-- Write rows for keys that no worker has registered yet.
INSERT INTO pricing.provider_keys (provider, key_name)
SELECT :provider, n FROM unnest(CAST(:names AS text[])) AS n
ORDER BY n
ON CONFLICT DO NOTHING;

-- name: change_key
-- Use a key or stop using it, and end its pause.
UPDATE pricing.provider_keys
SET is_active = coalesce(CAST(:is_active AS boolean), is_active),
    blocked_until = CASE WHEN :unblock THEN NULL ELSE blocked_until END,
    blocked_reason = CASE WHEN :unblock THEN NULL ELSE blocked_reason END,
    throttles = CASE WHEN :unblock THEN 0 ELSE throttles END,
    foreign_units = CASE WHEN :unblock THEN 0 ELSE foreign_units END,
    foreign_until = CASE WHEN :unblock THEN NULL ELSE foreign_until END
WHERE provider = :provider AND key_name = :key_name;

-- name: forget_shown
-- Forget what a provider has shown of a key's limits.
DELETE FROM pricing.shown_limits WHERE provider = :provider AND key_name = :key_name;

-- name: forecasts
-- When quotas will be used up, on what basis that is known, and by how much TTLs are stretched.
SELECT f.provider, f.quota_bytes, f.used_bytes, f.day_bytes, f.week_bytes, f.pairs, f.watched_bytes,
       f.background_bytes, f.basis, f.bytes_an_hour, f.outlook, f.sustained_bytes, f.backfills_stop_at,
       f.schedules_stop_at, f.ends_at,
       coalesce(s.watched_factor, 1) AS watched_factor, coalesce(s.background_factor, 1) AS background_factor
FROM pricing.quota_forecasts(CAST(:providers AS text[])) f
LEFT JOIN pricing.stretches_in_force(pricing.clock()) s USING (provider)
ORDER BY 1;

-- name: standings
-- Of some providers, or of all active ones: what stops each from being called for a viewer, in a sentence; how much of
-- each limit and quota is used; the units left now and the pause of all active keys, each key, and the breaker.
SELECT p.provider, w.state,
       CASE w.state
           WHEN 'provider_off' THEN pg_catalog.format(
               '%1$s is switched off; `pricing-pipeline provider change %1$s --active` switches it on', p.provider)
           ELSE w.sentence END AS sentence,
       w.next_at, pricing.describe_outages(p.provider) AS outages, p.quota_bytes,
       pricing.bytes_used(p.provider, n.at) AS used_bytes,
       EXISTS (SELECT FROM pricing.provider_capabilities c
               WHERE c.provider = p.provider AND c.units_per_symbol > 0) AS is_in_credits,
       (SELECT jsonb_agg(jsonb_build_object('used', u.used, 'units', u.units, 'window_seconds', u.window_seconds)
                         ORDER BY u.window_seconds NULLS LAST)
        FROM (SELECT l.window_seconds,
                     (SELECT sum(pricing.units_in_force(l, k.name, n.at)) FROM unnest(room.key_names) AS k (name))
                         AS units,
                     (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
                      WHERE c.provider = p.provider AND c.counted_at > pricing.limit_start(l, n.at)) AS used
              FROM pricing.provider_limits l WHERE l.provider = p.provider) u
        WHERE u.units IS NOT NULL) AS limits,
       room.units_left, room.units_limit,
       room.blocked_seconds, CASE WHEN room.blocked_seconds IS NOT NULL THEN room.blocked_reason END AS blocked_reason,
       room.keys,
       s.breaker,
       CASE WHEN s.breaker <> 'closed'
            THEN greatest(extract(epoch FROM pricing.next_probe_at(s) - n.at), 0)::float8 END AS breaker_seconds,
       s.breaker_reason,
       (SELECT count(*) FROM pricing.collector_call_log c
        WHERE c.provider = p.provider AND c.is_unannounced
          AND c.started_at > n.at - interval '24 hours') AS unannounced_calls
FROM (SELECT pricing.clock() AS at) n
CROSS JOIN pricing.data_collectors p JOIN pricing.provider_state s USING (provider)
CROSS JOIN LATERAL pricing.why_not_called(p.provider, 1, 0) w
CROSS JOIN LATERAL (
    -- A provider is blocked if each of its keys is.
    SELECT coalesce(sum(k.units_left) FILTER (WHERE k.is_active AND k.blocked_seconds IS NULL), 0)::bigint
               AS units_left,
           sum(k.units_limit) FILTER (WHERE k.is_active)::bigint AS units_limit,
           CASE WHEN bool_and(k.blocked_seconds IS NOT NULL) FILTER (WHERE k.is_active)
                THEN min(k.blocked_seconds) FILTER (WHERE k.is_active) END AS blocked_seconds,
           (array_agg(k.blocked_reason ORDER BY k.blocked_seconds) FILTER (WHERE k.is_active))[1] AS blocked_reason,
           array_agg(k.key_name) FILTER (WHERE k.is_active) AS key_names,
           jsonb_agg(to_jsonb(k) ORDER BY k.key_name) AS keys
    FROM (SELECT p.provider, x.key_name, x.is_active, greatest(x.units_left, 0) AS units_left, x.units_limit,
                 CASE WHEN x.blocked_until > n.at
                      THEN extract(epoch FROM x.blocked_until - n.at)::float8 END AS blocked_seconds,
                 CASE WHEN x.blocked_until > n.at THEN x.blocked_reason END AS blocked_reason
          FROM pricing.key_allowances(p.provider, n.at) x) k) room
WHERE CASE WHEN CAST(:providers AS text[]) IS NULL THEN p.is_active
           ELSE p.provider = ANY (CAST(:providers AS text[])) END
ORDER BY 1;

-- name: shown
-- Limits that providers have shown to be lower than what is written down.
SELECT provider, key_name, name, units, shown_units, shown_at, sentence AS words, correction
FROM pricing.limits_shown();
