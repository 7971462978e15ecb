-- name: settle
-- Close a call and book its wire bytes, once.
SELECT pricing.settle_call(:call_id, :outcome, CAST(:http_status AS integer), :wire_bytes, CAST(:error AS text));

-- name: throttle
-- Stop all calls to a provider for a while; returns the pause in seconds.
SELECT extract(epoch FROM pricing.throttle(:provider, make_interval(secs => CAST(:retry_after AS float8)), :reason))::float8;

-- name: unthrottle
-- The provider answers again.
SELECT pricing.unthrottle(:provider);

-- name: quota
-- Per provider: bytes used of the 30-day allowance, units left now, calls and refusals today.
SELECT p.provider, p.quota_bytes, pricing.bytes_used(p.provider, n.at) AS used_bytes,
       pricing.units_available(p.provider, n.at) AS units_left,
       (SELECT min(l.units) FROM pricing.provider_limits l WHERE l.provider = p.provider) AS units_limit,
       CASE WHEN s.blocked_until > n.at THEN extract(epoch FROM s.blocked_until - n.at)::float8 END AS blocked_seconds,
       CASE WHEN s.blocked_until > n.at THEN s.blocked_reason END AS blocked_reason
FROM pricing.data_collectors p JOIN pricing.provider_state s USING (provider)
CROSS JOIN (SELECT pricing.clock() AS at OFFSET 0) n
WHERE p.is_active ORDER BY p.provider;
