-- Rate limits and quota. The call log is the memory of both.

CREATE OR REPLACE FUNCTION pricing.units_available(wanted_provider text, now_ timestamptz) RETURNS bigint
LANGUAGE sql STABLE SET search_path = '' AS $$
    -- A call reaches the provider a little after it was logged, so a window is taken longer by a margin.
    SELECT coalesce(min(l.units - coalesce((
        SELECT sum(c.units) FROM pricing.collector_call_log c
        WHERE c.provider = l.provider
          AND c.started_at > CASE
              WHEN l.window_seconds IS NOT NULL
              THEN now_ - make_interval(secs => l.window_seconds + least(0.5, greatest(0.05, 0.02 * l.window_seconds)))
              ELSE date_trunc('day', now_, l.day_timezone) - interval '0.5 seconds' END), 0)), 1000000000)::bigint
    FROM pricing.provider_limits l WHERE l.provider = wanted_provider
$$;
COMMENT ON FUNCTION pricing.units_available(text, timestamptz) IS 'Units the provider may be charged now, the least over its limits. Exact only under the lock of its provider_state row.';


CREATE OR REPLACE FUNCTION pricing.bytes_used(wanted_provider text, now_ timestamptz) RETURNS bigint
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT (coalesce((SELECT sum(u.bytes) FROM pricing.api_data_usage u
                      WHERE u.provider = wanted_provider AND u.hour > now_ - make_interval(hours => 721)), 0)
          + coalesce((SELECT sum(c.reserved_bytes) FROM pricing.collector_call_log c
                      WHERE c.provider = wanted_provider AND c.finished_at IS NULL), 0))::bigint
$$;
COMMENT ON FUNCTION pricing.bytes_used(text, timestamptz) IS 'Bytes of the last 720 hours (an hour that is partly in counts whole), calls in flight included at their estimate.';


CREATE OR REPLACE FUNCTION pricing.settle_call(
    settled bigint, result text, status integer, bytes bigint, message text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    call pricing.collector_call_log;
BEGIN
    UPDATE pricing.collector_call_log c
    SET outcome = result, http_status = status, wire_bytes = bytes, error = left(message, 500), finished_at = now_
    WHERE c.call_id = settled AND c.finished_at IS NULL
    RETURNING * INTO call;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO pricing.api_data_usage AS u (provider, hour, calls, units, bytes)
    VALUES (call.provider, date_trunc('hour', now_, 'UTC'), 1, call.units, bytes)
    ON CONFLICT ON CONSTRAINT api_data_usage_pkey
        DO UPDATE SET calls = u.calls + 1, units = u.units + excluded.units, bytes = u.bytes + excluded.bytes;
    RETURN true;
END $$;
COMMENT ON FUNCTION pricing.settle_call(bigint, text, integer, bigint, text) IS 'Closes a call and books its wire bytes, once; false when it was closed before.';


CREATE OR REPLACE FUNCTION pricing.expire_calls() RETURNS integer
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    forgotten bigint;
    expired integer := 0;
BEGIN
    FOR forgotten IN
        SELECT c.call_id FROM pricing.collector_call_log c
        WHERE c.finished_at IS NULL AND c.started_at < now_ - interval '60 seconds'
          AND NOT EXISTS (SELECT FROM pricing.api_call_queue_live q WHERE q.call_id = c.call_id AND q.status = 'processing')
        ORDER BY c.call_id
    LOOP
        PERFORM pricing.settle_call(c.call_id, 'unknown', NULL, c.reserved_bytes, 'the worker was lost during the call; its estimate is booked')
        FROM pricing.collector_call_log c WHERE c.call_id = forgotten;
        expired := expired + 1;
    END LOOP;
    RETURN expired;
END $$;
COMMENT ON FUNCTION pricing.expire_calls() IS 'Closes calls whose worker was lost, booking their estimate: their fate is unknown, so they count as made.';


CREATE OR REPLACE FUNCTION pricing.throttle(wanted_provider text, pause interval, reason text) RETURNS interval
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    chosen interval;
BEGIN
    UPDATE pricing.provider_state s
    SET throttles = s.throttles + 1, blocked_reason = left(reason, 500),
        -- Not coalesce(least(pause, ...), ...): least() passes over NULL.
        blocked_until = greatest(s.blocked_until, now_ + CASE
            WHEN pause IS NOT NULL THEN least(pause, interval '1 hour')
            ELSE least(make_interval(secs => p.throttle_pause_seconds) * 2 ^ least(s.throttles, 6), interval '60 seconds') END)
    FROM pricing.data_collectors p
    WHERE s.provider = wanted_provider AND p.provider = s.provider
    RETURNING s.blocked_until - now_ INTO chosen;
    RETURN chosen;
END $$;
COMMENT ON FUNCTION pricing.throttle(text, interval, text) IS 'Stops all workers'' calls to a provider for as long as it asked (1 h at most), or for a growing pause. Returns the pause.';


CREATE OR REPLACE FUNCTION pricing.unthrottle(wanted_provider text) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    UPDATE pricing.provider_state SET throttles = 0, blocked_reason = NULL
    WHERE provider = wanted_provider AND throttles > 0 AND blocked_until <= pricing.clock()
$$;
COMMENT ON FUNCTION pricing.unthrottle(text) IS 'The provider answers again: forget the growing pause.';
