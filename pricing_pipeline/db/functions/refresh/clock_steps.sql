-- What becomes of stored times when the database's clock is set. docs/maintainers/state-machine.md says what is
-- decided for each column.
-- Lock order: see queue.sql. The rows of clients, which a session of theirs may hold for long, are passed over if they
-- are locked.

CREATE OR REPLACE FUNCTION pricing.follow_clock(now_ timestamptz) RETURNS boolean
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    -- Its row of duties. last_success_at is when this last looked, at most five seconds ago. While a step is noted and
    -- not followed yet, last_failure_at is when it was noticed, and not_before the time as it would be.
    noted pricing.duties;
    known timestamptz;
    step interval;
BEGIN
    INSERT INTO pricing.duties (duty, last_success_at) SELECT 'follow_clock', now_
    WHERE NOT EXISTS (SELECT FROM pricing.duties d WHERE d.duty = 'follow_clock');
    SELECT * INTO noted FROM pricing.duties d WHERE d.duty = 'follow_clock' FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Once the clock is where it was again, there is nothing to follow.
    step := CASE WHEN noted.not_before > now_ THEN noted.not_before - noted.last_failure_at END;
    -- Calls may have been made since it last looked, on a clock that was ahead for that long. Before a step is
    -- followed, their times are those that it was noticed by.
    known := greatest(
        noted.last_success_at,
        CASE WHEN step IS NULL THEN (SELECT max(s.last_call_at) FROM pricing.provider_state s) END);
    IF known > now_ + interval '10 seconds' THEN
        -- Seconds, not days: a day may have 23 hours in the session's time zone.
        step := coalesce(step, '0') + make_interval(secs => extract(epoch FROM known - now_)::float8);
        PERFORM pricing.note_step(now_, known, step);
    ELSIF noted.last_success_at < now_ - interval '4 minutes' THEN
        PERFORM pricing.note_gap(now_, noted.last_success_at);
    ELSIF step IS NULL AND noted.not_before IS NOT NULL THEN
        PERFORM pricing.note_duty('follow_clock', NULL, NULL, NULL);
    END IF;
    UPDATE pricing.duties d SET last_success_at = now_
    WHERE d.duty = 'follow_clock' AND d.last_success_at NOT BETWEEN now_ - interval '5 seconds' AND now_;
    IF step IS NULL THEN
        RETURN false;
    END IF;
    BEGIN
        PERFORM pricing.move_times(now_, step);
        PERFORM pricing.note_duty('follow_clock', NULL, NULL, NULL);
        RETURN true;
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        PERFORM pricing.warn(
            'follow_clock', 'clock',
            'the database''s clock was set back; times are moved with it as soon as no other session has their rows '
            'locked: ' || SQLERRM, SQLSTATE);
        RETURN false;
    END;
END $$;
COMMENT ON FUNCTION pricing.follow_clock(timestamptz) IS
    'Follows a step of the clock since the last look; true = the transaction should end now, because it holds many '
    'rows.';


CREATE OR REPLACE FUNCTION pricing.note_step(now_ timestamptz, known timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.duties d
    SET last_success_at = d.last_success_at - s.by, last_failure_at = d.last_failure_at - s.by,
        not_before = d.not_before - s.by
    FROM (SELECT x.duty, known - now_ AS by FROM pricing.duties x
          WHERE x.duty <> 'follow_clock'
          ORDER BY 1 FOR UPDATE SKIP LOCKED) s
    -- Where none has run on the clock that was ahead, their times are right.
    WHERE d.duty = s.duty
      AND EXISTS (SELECT FROM pricing.duties x
                  WHERE x.duty <> 'follow_clock' AND greatest(x.last_success_at, x.last_failure_at) > now_);
    PERFORM pricing.note_duty('follow_clock', now_, 'the clock was set back, and times are not moved yet', now_ + step);
    PERFORM pricing.warn('follow_clock', 'clock', pg_catalog.format(
        'the database''s clock was set back by about %s, from %s: pauses, leases and schedules are moved with it, '
        'and prices keep their age',
        pricing.format_span(known - now_), pricing.format_time(known)), '01000');
END $$;
COMMENT ON FUNCTION pricing.note_step(timestamptz, timestamptz, interval) IS
    'Records that the clock was set back and by how much to move times, and moves those of the duties so that they go '
    'on.';


CREATE OR REPLACE FUNCTION pricing.note_gap(now_ timestamptz, known timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Give every part time to continue before it counts as late.
    PERFORM pricing.note_life('start');
    -- Viewers, who send a heartbeat every minute, seem silent: give them time for one.
    PERFORM pricing.note_duty(v.name, d.last_failure_at, d.last_error, now_ + v.wait)
    FROM (VALUES
        ('clean_subscriptions', interval '2 minutes', interval '0'),
        ('forget_views', interval '1 hour', interval '1 day'),
        ('prune', interval '1 hour', interval '1 day'),
        ('prune_calls', interval '1 hour', interval '1 day'),
        ('thin_history', interval '1 hour', interval '1 day')) AS v (name, wait, gap)
    LEFT JOIN pricing.duties d ON d.duty = v.name
    WHERE known < now_ - v.gap
    ORDER BY v.name;
    -- A task that is snoozed again and again gives up when it is a day old. The time that nobody worked is not its
    -- fault.
    UPDATE pricing.api_call_queue_live q
    SET enqueued_at = q.enqueued_at + make_interval(secs => extract(epoch FROM now_ - known)::float8)
    FROM (SELECT x.id FROM pricing.api_call_queue_live x
          WHERE x.errors <> '[]' AND x.enqueued_at <= known
          ORDER BY x.id FOR UPDATE SKIP LOCKED) mine
    WHERE q.id = mine.id AND known < now_ - interval '1 hour';
    IF known < now_ - interval '1 day' THEN
        PERFORM pricing.warn('follow_clock', 'clock', pg_catalog.format(
            'duties last ran %s ago, by the database''s clock: the pipeline was off, or the clock was set forward. '
            'If the clock is wrong, set it right before %s: until then nothing is pruned or thinned',
            pricing.format_span(now_ - known), pricing.format_time(now_ + interval '1 hour')), '01000');
    END IF;
END $$;
COMMENT ON FUNCTION pricing.note_gap(timestamptz, timestamptz) IS
    'After the clock was set forward, or the pipeline was off, delays for a while what cannot be undone.';


CREATE OR REPLACE FUNCTION pricing.note_duty(
    name text, failed_at timestamptz, error text, until timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.duties d SET last_failure_at = failed_at, last_error = error, not_before = until
    FROM (SELECT x.duty FROM pricing.duties x WHERE x.duty = note_duty.name FOR UPDATE SKIP LOCKED) mine
    WHERE d.duty = mine.duty;
    IF NOT FOUND AND NOT EXISTS (SELECT FROM pricing.duties d WHERE d.duty = note_duty.name) THEN
        INSERT INTO pricing.duties (duty, last_failure_at, last_error, not_before)
        VALUES (note_duty.name, failed_at, error, until);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.note_duty(text, timestamptz, text, timestamptz) IS
    'Records how a duty failed and until when it waits; skips a locked row.';


CREATE OR REPLACE FUNCTION pricing.move_times(now_ timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
DECLARE
    place record;
BEGIN
    FOR place IN
        -- Each table with its key, the columns whose future times move, by the step or to now, and what is done about
        -- locked rows. A time that ends within a minute does not move by the step: it may be new, and nobody waits
        -- long for it.
        SELECT v.name, v.key, string_to_array(v.columns, ', ') AS columns, v.locked,
               CASE v.rule WHEN 'step' THEN '$1 + interval ''1 minute''' ELSE '$1' END AS latest,
               CASE v.rule WHEN 'step' THEN 't.%1$I - $2' ELSE '$1' END AS moved
        FROM (VALUES
            -- Besides heartbeats nothing else touches last_seen_at: a viewer who has left would watch until then.
            ('active_subscriptions', 'user_id, data_type, symbol', 'now', 'last_seen_at, subscribed_at', 'SKIP LOCKED'),
            ('pair_views', 'data_type, symbol', 'now', 'viewed_at', 'SKIP LOCKED'),
            ('demand', 'data_type, symbol', 'step',
             'due_at, became_due_at, owed_since, backoff_until, stretched_from, created_at, read_at', ''),
            ('user_allowances', 'user_id', 'step', 'spent_until', 'SKIP LOCKED'),
            ('api_call_queue_live', 'id', 'step', 'run_after, lease_until, claimed_at, enqueued_at', ''),
            -- A dead task shows what its pair waits for.
            ('api_call_queue_dead', 'id', 'step', 'claimed_at, finished_at', ''),
            ('async_operations_live', 'id', 'step', 'due_at, lease_until, claimed_at, enqueued_at', ''),
            ('failing_recipients', 'operation_type, recipient', 'now', 'since, failed_at', ''),
            ('failing_recipients', 'operation_type, recipient', 'step', 'breaker_until', ''),
            ('alerts', 'alert_id', 'now', 'since, last_seen_at, told_at, newest_at, told_newest_at', ''),
            ('alert_silences', 'silence_id', 'step', 'until', ''),
            ('price_alerts', 'price_alert_id', 'now', 'told_at', 'SKIP LOCKED'),
            ('signs_of_life', 'part', 'now', 'began_at, ended_at', ''),
            ('dagster_failures', 'kind, name', 'now', 'failed_at', 'SKIP LOCKED'),
            -- Slots are times of the day, not pauses: those that come again are owed again.
            ('schedule_walks', 'data_type', 'now', 'served_slot, walk_slot', ''),
            ('route_refusals', 'data_type, symbol, provider', 'step', 'refused_until', ''),
            ('quarantined_values', 'value_id', 'step', 'ask_at', ''),
            ('provisional_bars', 'data_type, symbol, observed_at', 'step', 'ask_at', ''),
            ('absent_days', 'data_type, symbol, day', 'step', 'ask_at', ''),
            -- When a price was last confirmed says how old it is. Its history keeps the times that it got.
            ('latest_prices', 'data_type, symbol', 'step', 'fetched_at', 'SKIP LOCKED'),
            ('empty_answers', 'data_type, symbol', 'step', 'fetched_at', 'SKIP LOCKED'),
            ('confirmed_pairs', 'data_type, symbol', 'step', 'fetched_at', 'SKIP LOCKED'),
            ('calendars', 'calendar', 'now', 'filled_at', ''),
            ('provider_state', 'provider', 'step', 'breaker_since, breaker_began_at, breaker_until', ''),
            ('provider_state', 'provider', 'now', 'last_call_at', ''),
            ('outages', 'outage_id', 'step', 'since, last_fault_at, probed_at, answered_at', ''),
            ('provider_keys', 'provider, key_name', 'step', 'blocked_until, reported_at, foreign_until', ''),
            ('shown_limits', 'provider, key_name, name', 'step', 'shown_at', ''),
            ('shown_batches', 'provider, fetcher, is_of_days', 'step', 'shown_at', ''))
            AS v (name, key, rule, columns, locked)
    LOOP
        EXECUTE (
            SELECT format('UPDATE pricing.%1$I t SET %2$s FROM (SELECT %3$s FROM pricing.%1$I t WHERE %4$s '
                          'ORDER BY %3$s FOR NO KEY UPDATE %5$s) mine WHERE %6$s', place.name,
                          string_agg(format('%1$I = CASE WHEN t.%1$I > ' || place.latest || ' THEN ' || place.moved
                                            || ' ELSE t.%1$I END', c), ', '),
                          place.key, string_agg(format('t.%I > ', c) || place.latest, ' OR '), place.locked,
                          (SELECT string_agg(format('t.%1$I = mine.%1$I', k), ' AND ')
                           FROM string_to_table(place.key, ', ') AS k))
            FROM unnest(place.columns) AS c)
        USING now_, step;
    END LOOP;
    -- All is judged again, now or when its back-off ends: that finds prices of the time that comes again.
    UPDATE pricing.demand d SET due_at = greatest(now_, d.backoff_until)
    WHERE d.due_at > greatest(now_, d.backoff_until);
    DELETE FROM pricing.check_marks;
    PERFORM pricing.move_calls(now_, step);
    PERFORM pricing.move_days(now_, step);
END $$;
COMMENT ON FUNCTION pricing.move_times(timestamptz, interval) IS
    'After the clock was set back, moves all times that work waits for back by the step, or to now.';


CREATE OR REPLACE FUNCTION pricing.move_calls(now_ timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Sessions that count calls hold their provider's row.
    PERFORM FROM pricing.provider_state s ORDER BY s.provider FOR UPDATE;
    DELETE FROM pricing.limit_counts;
    -- Calls that counted go on counting for as long as before. Calls that no longer counted must not count again,
    -- although their time comes again.
    UPDATE pricing.collector_call_log c
    SET moved_to = CASE WHEN coalesce(c.moved_to, c.started_at) > reach.before
                        THEN coalesce(c.moved_to, c.started_at) - step ELSE '-infinity' END
    FROM (SELECT p.provider,
                 least(min(pricing.limit_start(l, now_ + step)), now_ + step - interval '10 minutes') AS before,
                 least(min(pricing.limit_start(l, now_)), now_ - interval '10 minutes') AS after
          FROM pricing.data_collectors p LEFT JOIN pricing.provider_limits l USING (provider) GROUP BY 1) reach
    WHERE c.provider = reach.provider AND coalesce(c.moved_to, c.started_at) > reach.after - interval '1 second';
    -- Hours that come again would be counted twice, so their use is booked before them.
    WITH ahead AS (DELETE FROM pricing.api_data_usage u WHERE u.hour > now_ RETURNING u.*)
    INSERT INTO pricing.api_data_usage AS u (provider, hour, slot, calls, units, bytes)
    SELECT a.provider, date_trunc('hour', a.hour - step, 'UTC'), a.slot, sum(a.calls), sum(a.units), sum(a.bytes)
    FROM ahead a GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT ON CONSTRAINT api_data_usage_pkey
        DO UPDATE SET calls = u.calls + excluded.calls, units = u.units + excluded.units,
                      bytes = u.bytes + excluded.bytes;
END $$;
COMMENT ON FUNCTION pricing.move_calls(timestamptz, interval) IS
    'After the clock was set back, counts earlier calls against limits, quota and breaker for as long as before.';


CREATE OR REPLACE FUNCTION pricing.move_days(now_ timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    today date := (now_ AT TIME ZONE 'UTC')::date;
BEGIN
    UPDATE pricing.drains d
    SET started_at = d.started_at - step, ends_at = d.ends_at - step,
        -- One that is alive may have renewed its lease by now.
        lease_until = CASE WHEN d.lease_until > now_ + interval '15 seconds' THEN d.lease_until - step
                           ELSE d.lease_until END
    WHERE d.finished_at IS NULL
      AND d.ends_at > now_
      AND greatest(d.started_at, d.lease_until - interval '15 seconds') > now_;
    UPDATE pricing.thinned t SET until = date_trunc('day', now_, 'UTC') WHERE t.until > now_;
    -- Days that seemed over are still to come.
    UPDATE pricing.history_coverage h SET covered = h.covered - datemultirange(daterange(today, NULL))
    WHERE h.covered && daterange(today, NULL);
    UPDATE pricing.corporate_action_pairs p
    SET covered = p.covered - datemultirange(daterange(today + 1, NULL)),
        gains_covered = p.gains_covered - datemultirange(daterange(today + 1, NULL))
    WHERE p.covered && daterange(today + 1, NULL);
END $$;
COMMENT ON FUNCTION pricing.move_days(timestamptz, interval) IS
    'After the clock was set back, moves drains by the step, and uncovers days that are still to come.';
