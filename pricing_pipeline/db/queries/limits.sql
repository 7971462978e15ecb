-- name: settle
-- Close a call and book its wire bytes, once; what it says about its provider counts if its claim still held.
SELECT pricing.settle_call(:call_id, :outcome, CAST(:http_status AS integer), :wire_bytes, CAST(:error AS text), CAST(:kind AS text)),
       CASE WHEN :is_held THEN pricing.judge_call(:call_id, CAST(:units_left AS integer)) END;

-- name: throttle
-- Stop all calls with a key for a while; returns the pause in seconds.
SELECT extract(epoch FROM pricing.throttle(:provider, :key_name, make_interval(secs => CAST(:retry_after AS float8)), :reason))::float8;

-- name: register_keys
-- Say which keys a worker holds; returns how many are new.
SELECT pricing.register_keys(:provider, CAST(:names AS text[]));

-- name: quota
-- Per provider: bytes used of the 30-day allowance, units left now over all keys, and why it is not called, if so.
SELECT p.provider, p.quota_bytes, pricing.bytes_used(p.provider, n.at) AS used_bytes, room.units_left, room.units_limit,
       CASE WHEN room.blocked_until > n.at THEN extract(epoch FROM room.blocked_until - n.at)::float8 END AS blocked_seconds,
       CASE WHEN room.blocked_until > n.at THEN room.blocked_reason END AS blocked_reason,
       s.breaker, CASE WHEN s.breaker <> 'closed' THEN greatest(extract(epoch FROM pricing.next_probe_at(s) - n.at), 0)::float8 END AS breaker_seconds,
       s.breaker_reason, pricing.said_outages(p.provider) AS outages,
       (SELECT count(*) FROM pricing.collector_call_log c
        WHERE c.provider = p.provider AND c.is_unannounced AND c.started_at > n.at - interval '24 hours') AS unannounced_calls
FROM pricing.data_collectors p JOIN pricing.provider_state s USING (provider)
CROSS JOIN (SELECT pricing.clock() AS at OFFSET 0) n
CROSS JOIN LATERAL (
    -- Blocked is a provider of which every key is.
    SELECT coalesce(sum(greatest(k.units_left, 0)) FILTER (WHERE coalesce(k.blocked_until, '-infinity') <= n.at), 0)::bigint AS units_left,
           sum(k.units_limit)::bigint AS units_limit,
           CASE WHEN bool_and(coalesce(k.blocked_until > n.at, false)) THEN min(k.blocked_until) END AS blocked_until,
           (array_agg(k.blocked_reason ORDER BY k.blocked_until))[1] AS blocked_reason
    FROM pricing.key_room(p.provider, n.at) k WHERE k.is_active) room
WHERE p.is_active ORDER BY p.provider;

-- name: note_unannounced
-- Note that the answer of a call came without a length.
SELECT pricing.note_unannounced(:call_id);

-- name: unqueued
-- Pairs that are due and not queued, because the quota of their provider has no room for them.
SELECT provider, data_type, pairs FROM pricing.unqueued_pairs();

-- name: keys
-- The keys of each active provider, with their units and pauses.
SELECT p.provider, k.key_name, k.is_active, k.units_left, k.units_limit,
       CASE WHEN k.blocked_until > n.at THEN extract(epoch FROM k.blocked_until - n.at)::float8 END AS blocked_seconds,
       CASE WHEN k.blocked_until > n.at THEN k.blocked_reason END AS blocked_reason
FROM pricing.data_collectors p
CROSS JOIN (SELECT pricing.clock() AS at OFFSET 0) n
CROSS JOIN LATERAL pricing.key_room(p.provider, n.at) k
WHERE p.is_active ORDER BY p.provider, k.key_name;

-- name: budget
-- What is watched against what its providers allow.
SELECT provider, pairs, units_needed, units_allowed, bytes_needed, bytes_allowed FROM pricing.budget();
