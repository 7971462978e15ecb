-- What becomes of stored times when the database's clock is set. docs/maintainers/state-machine.md says what is
-- decided for each column.
-- Lock order: see queue.sql. The rows of clients, which a session of theirs may hold for long, are passed over if they are locked.

CREATE OR REPLACE FUNCTION pricing.follow_clock(now_ timestamptz) RETURNS boolean
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    -- Its row of duties. last_success_at is when this last looked, at most five seconds ago. While a step is noted and not
    -- followed yet, last_failure_at is when it was noticed, and not_before the time as it would be.
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
    -- Calls may have been made since it last looked, on a clock that was ahead for that long. Before a step is followed,
    -- their times are those that it was noticed by.
    known := greatest(noted.last_success_at, CASE WHEN step IS NULL THEN (SELECT max(s.last_call_at) FROM pricing.provider_state s) END);
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
        PERFORM pricing.warn('follow_clock', 'clock', 'the database''s clock was set back; times are moved with it as soon as no other session has their rows locked: ' || SQLERRM, SQLSTATE);
        RETURN false;
    END;
END $$;
COMMENT ON FUNCTION pricing.follow_clock(timestamptz) IS
    'Looks whether the database''s clock was set since this last looked. Set back: notes the step, and moves all '
    'times that work waits for with it, now or as soon as their rows are free. Set forward: keeps what cannot be '
    'undone from being done at once. Returns true if the transaction should end now, because it holds many rows.';


CREATE OR REPLACE FUNCTION pricing.note_step(now_ timestamptz, known timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.duties d SET last_success_at = d.last_success_at - s.by, last_failure_at = d.last_failure_at - s.by, not_before = d.not_before - s.by
    FROM (SELECT x.duty, known - now_ AS by FROM pricing.duties x WHERE x.duty <> 'follow_clock' ORDER BY 1 FOR UPDATE SKIP LOCKED) s
    -- Where none has run on the clock that was ahead, their times are right.
    WHERE d.duty = s.duty AND EXISTS (SELECT FROM pricing.duties x WHERE x.duty <> 'follow_clock' AND greatest(x.last_success_at, x.last_failure_at) > now_);
    PERFORM pricing.note_duty('follow_clock', now_, 'the clock was set back, and times are not moved yet', now_ + step);
    PERFORM pricing.warn('follow_clock', 'clock', pg_catalog.format(
        'the database''s clock was set back by about %s, from %s: pauses, leases and schedules are moved with it, '
        'and prices keep their age',
        pricing.format_span(known - now_), pricing.format_time(known)), '01000');
END $$;
COMMENT ON FUNCTION pricing.note_step(timestamptz, timestamptz, interval) IS
    'Notes that the clock was set back and by how much times are to be moved, and moves those of the duties, so that '
    'they go on.';


CREATE OR REPLACE FUNCTION pricing.note_gap(now_ timestamptz, known timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Nothing is late that had no time yet to go on.
    PERFORM pricing.note_life('start');
    -- Viewers, who say each minute that they are there, seem to be silent: they have time for a heartbeat.
    PERFORM pricing.note_duty(v.name, d.last_failure_at, d.last_error, now_ + v.wait)
    FROM (VALUES
        ('clean_subscriptions', interval '2 minutes', interval '0'), ('forget_views', interval '1 hour', interval '1 day'),
        ('prune', interval '1 hour', interval '1 day'), ('prune_calls', interval '1 hour', interval '1 day'), ('thin_history', interval '1 hour', interval '1 day')) AS v (name, wait, gap)
    LEFT JOIN pricing.duties d ON d.duty = v.name
    WHERE known < now_ - v.gap ORDER BY v.name;
    -- A task that is snoozed again and again gives up when it is a day old. The time that nobody worked is not its fault.
    UPDATE pricing.api_call_queue_live q SET enqueued_at = q.enqueued_at + make_interval(secs => extract(epoch FROM now_ - known)::float8)
    FROM (SELECT x.id FROM pricing.api_call_queue_live x WHERE x.errors <> '[]' AND x.enqueued_at <= known ORDER BY x.id FOR UPDATE SKIP LOCKED) mine
    WHERE q.id = mine.id AND known < now_ - interval '1 hour';
    IF known < now_ - interval '1 day' THEN
        PERFORM pricing.warn('follow_clock', 'clock', pg_catalog.format(
            'duties last ran %s ago, by the database''s clock: the pipeline was off, or the clock was set forward. '
            'If the clock is wrong, set it right before %s: until then nothing is pruned or thinned',
            pricing.format_span(now_ - known), pricing.format_time(now_ + interval '1 hour')), '01000');
    END IF;
END $$;
COMMENT ON FUNCTION pricing.note_gap(timestamptz, timestamptz) IS
    'The clock was set forward, or the pipeline was off: keeps what cannot be undone from being done for a while.';


CREATE OR REPLACE FUNCTION pricing.note_duty(name text, failed_at timestamptz, error text, until timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.duties d SET last_failure_at = failed_at, last_error = error, not_before = until
    FROM (SELECT x.duty FROM pricing.duties x WHERE x.duty = note_duty.name FOR UPDATE SKIP LOCKED) mine
    WHERE d.duty = mine.duty;
    IF NOT FOUND AND NOT EXISTS (SELECT FROM pricing.duties d WHERE d.duty = note_duty.name) THEN
        INSERT INTO pricing.duties (duty, last_failure_at, last_error, not_before) VALUES (note_duty.name, failed_at, error, until);
    END IF;
END $$;
COMMENT ON FUNCTION pricing.note_duty(text, timestamptz, text, timestamptz) IS
    'Notes how a duty failed and until when it is to wait; not, if another session has its row locked.';


CREATE OR REPLACE FUNCTION pricing.move_times(now_ timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM pricing.move_demand(now_, step);
    PERFORM pricing.move_tasks(now_, step);
    PERFORM pricing.move_operations(now_, step);
    PERFORM pricing.move_alerts(now_, step);
    PERFORM pricing.move_price_alerts(now_);
    PERFORM pricing.move_notifiers(now_);
    PERFORM pricing.move_signs_of_life(now_);
    PERFORM pricing.move_dagster_failures(now_);
    PERFORM pricing.move_calls(now_, step);
    PERFORM pricing.move_plans(now_, step);
    PERFORM pricing.move_providers(now_, step);
END $$;
COMMENT ON FUNCTION pricing.move_times(timestamptz, interval) IS 'Moves all times that work waits for back by a step.';


CREATE OR REPLACE FUNCTION pricing.moved_back(at timestamptz, now_ timestamptz, step interval) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = '' AS $$
BEGIN
    -- What is over within a minute is left alone: it may be new, and nobody waits long for it.
    RETURN CASE WHEN at > now_ + interval '1 minute' THEN at - step ELSE at END;
END $$;
COMMENT ON FUNCTION pricing.moved_back(timestamptz, timestamptz, interval) IS
    'A time that was stored before the clock was set back, on the clock as it is now. What does not lie more than a '
    'minute ahead stays.';


CREATE OR REPLACE FUNCTION pricing.move_demand(now_ timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    -- Besides heartbeats nothing else touches last_seen_at: a viewer who has left would watch until that time comes.
    UPDATE pricing.active_subscriptions a SET last_seen_at = now_, subscribed_at = least(a.subscribed_at, now_)
    FROM (SELECT x.user_id, x.data_type, x.symbol FROM pricing.active_subscriptions x WHERE x.last_seen_at > now_
          ORDER BY x.data_type, x.symbol, x.user_id FOR UPDATE SKIP LOCKED) seen
    WHERE (a.user_id, a.data_type, a.symbol) = (seen.user_id, seen.data_type, seen.symbol);
    UPDATE pricing.pair_views p SET viewed_at = now_
    FROM (SELECT x.data_type, x.symbol FROM pricing.pair_views x WHERE x.viewed_at > now_
          ORDER BY x.data_type, x.symbol FOR UPDATE SKIP LOCKED) seen
    WHERE (p.data_type, p.symbol) = (seen.data_type, seen.symbol);
    UPDATE pricing.demand d
    -- All is judged anew, at once or when its back-off ends: that finds prices of the time that comes once more.
    SET due_at = least(pricing.moved_back(d.due_at, now_, step), greatest(now_, pricing.moved_back(d.backoff_until, now_, step))),
        became_due_at = pricing.moved_back(d.became_due_at, now_, step), owed_since = pricing.moved_back(d.owed_since, now_, step),
        backoff_until = pricing.moved_back(d.backoff_until, now_, step), stretched_from = pricing.moved_back(d.stretched_from, now_, step),
        created_at = pricing.moved_back(d.created_at, now_, step), read_at = pricing.moved_back(d.read_at, now_, step)
    FROM (SELECT x.data_type, x.symbol FROM pricing.demand x
          WHERE greatest(x.due_at, x.became_due_at, x.owed_since, x.backoff_until, x.stretched_from, x.created_at, x.read_at) > now_
          ORDER BY x.data_type, x.symbol FOR NO KEY UPDATE) pair
    WHERE (d.data_type, d.symbol) = (pair.data_type, pair.symbol);
    DELETE FROM pricing.check_marks;
    UPDATE pricing.user_allowances a SET spent_until = a.spent_until - step
    FROM (SELECT x.user_id FROM pricing.user_allowances x WHERE x.spent_until > now_ + interval '1 minute'
          ORDER BY 1 FOR UPDATE SKIP LOCKED) spent
    WHERE a.user_id = spent.user_id;
END $$;
COMMENT ON FUNCTION pricing.move_demand(timestamptz, interval) IS
    'The clock was set back: who watches is seen now, back-offs end when they would have, and all that is wanted is '
    'judged anew.';


CREATE OR REPLACE FUNCTION pricing.move_tasks(now_ timestamptz, step interval) RETURNS void
LANGUAGE sql SET search_path = '' SET lock_timeout = '1s' AS $$
    UPDATE pricing.api_call_queue_live q
    SET run_after = pricing.moved_back(q.run_after, now_, step), lease_until = pricing.moved_back(q.lease_until, now_, step),
        claimed_at = pricing.moved_back(q.claimed_at, now_, step), enqueued_at = pricing.moved_back(q.enqueued_at, now_, step)
    FROM (SELECT x.id FROM pricing.api_call_queue_live x
          WHERE greatest(x.run_after, x.lease_until, x.claimed_at, x.enqueued_at) > now_ ORDER BY x.id FOR UPDATE) mine
    WHERE q.id = mine.id;
    -- A dead task tells what its pair waits for, so its times count until it is resolved.
    UPDATE pricing.api_call_queue_dead q
    SET claimed_at = pricing.moved_back(q.claimed_at, now_, step), finished_at = pricing.moved_back(q.finished_at, now_, step)
    FROM (SELECT x.id FROM pricing.api_call_queue_dead x WHERE x.finished_at > now_ AND x.resolved_at IS NULL ORDER BY x.id FOR UPDATE) mine
    WHERE q.id = mine.id
$$;
COMMENT ON FUNCTION pricing.move_tasks(timestamptz, interval) IS
    'The clock was set back: leases and pauses of live tasks end when they would have.';


CREATE OR REPLACE FUNCTION pricing.move_calls(now_ timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    -- What counted goes on counting for as long as it would have. What counted no more must not come back: its time does.
    UPDATE pricing.collector_call_log c
    SET moved_to = CASE WHEN coalesce(c.moved_to, c.started_at) > reach.before
                        THEN coalesce(c.moved_to, c.started_at) - step ELSE '-infinity' END
    FROM (SELECT p.provider, least(min(pricing.limit_start(l, now_ + step)), now_ + step - interval '10 minutes') AS before,
                 least(min(pricing.limit_start(l, now_)), now_ - interval '10 minutes') AS after
          FROM pricing.data_collectors p LEFT JOIN pricing.provider_limits l USING (provider) GROUP BY 1) reach
    WHERE c.provider = reach.provider AND coalesce(c.moved_to, c.started_at) > reach.after - interval '1 second';
    -- Hours that come once more would be counted twice: what was used in them was used before.
    WITH ahead AS (DELETE FROM pricing.api_data_usage u WHERE u.hour > now_ RETURNING u.*)
    INSERT INTO pricing.api_data_usage AS u (provider, hour, slot, calls, units, bytes)
    SELECT a.provider, date_trunc('hour', a.hour - step, 'UTC'), a.slot, sum(a.calls), sum(a.units), sum(a.bytes)
    FROM ahead a GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT ON CONSTRAINT api_data_usage_pkey
        DO UPDATE SET calls = u.calls + excluded.calls, units = u.units + excluded.units, bytes = u.bytes + excluded.bytes;
END $$;
COMMENT ON FUNCTION pricing.move_calls(timestamptz, interval) IS
    'The clock was set back: what was called before counts against limits, quota and breaker for as long as it would '
    'have.';


CREATE OR REPLACE FUNCTION pricing.move_providers(now_ timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    UPDATE pricing.provider_state s
    SET breaker_since = pricing.moved_back(s.breaker_since, now_, step), breaker_began_at = pricing.moved_back(s.breaker_began_at, now_, step),
        breaker_until = pricing.moved_back(s.breaker_until, now_, step),
        last_call_at = CASE WHEN s.last_call_at > now_ THEN least(s.last_call_at - step, now_) ELSE s.last_call_at END
    FROM (SELECT x.provider FROM pricing.provider_state x ORDER BY 1 FOR UPDATE) mine
    WHERE s.provider = mine.provider;
    UPDATE pricing.outages o
    SET since = pricing.moved_back(o.since, now_, step), last_fault_at = pricing.moved_back(o.last_fault_at, now_, step),
        probed_at = pricing.moved_back(o.probed_at, now_, step), answered_at = pricing.moved_back(o.answered_at, now_, step)
    FROM (SELECT x.outage_id FROM pricing.outages x ORDER BY 1 FOR UPDATE) mine
    WHERE o.outage_id = mine.outage_id;
    UPDATE pricing.shown_limits s SET shown_at = pricing.moved_back(s.shown_at, now_, step)
    FROM (SELECT x.provider, x.key_name, x.name FROM pricing.shown_limits x ORDER BY 1, 2, 3 FOR UPDATE) mine
    WHERE (s.provider, s.key_name, s.name) = (mine.provider, mine.key_name, mine.name);
    UPDATE pricing.provider_keys k
    SET blocked_until = pricing.moved_back(k.blocked_until, now_, step), reported_at = pricing.moved_back(k.reported_at, now_, step),
        foreign_until = pricing.moved_back(k.foreign_until, now_, step)
    FROM (SELECT x.provider, x.key_name FROM pricing.provider_keys x ORDER BY 1, 2 FOR UPDATE) mine
    WHERE (k.provider, k.key_name) = (mine.provider, mine.key_name);
    UPDATE pricing.shown_batches s SET shown_at = pricing.moved_back(s.shown_at, now_, step)
    FROM (SELECT x.provider, x.fetcher, x.is_of_days FROM pricing.shown_batches x ORDER BY 1, 2, 3 FOR UPDATE) mine
    WHERE (s.provider, s.fetcher, s.is_of_days) = (mine.provider, mine.fetcher, mine.is_of_days);
    DELETE FROM pricing.limit_counts;
END $$;
COMMENT ON FUNCTION pricing.move_providers(timestamptz, interval) IS
    'The clock was set back: breakers, outages, pauses and delays of providers end when they would have, and limits '
    'are counted anew.';


CREATE OR REPLACE FUNCTION pricing.move_plans(now_ timestamptz, step interval) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
DECLARE
    today date := (now_ AT TIME ZONE 'UTC')::date;
BEGIN
    UPDATE pricing.drains d
    SET started_at = d.started_at - step, ends_at = d.ends_at - step,
        -- One that is alive may have renewed its lease by now.
        lease_until = CASE
            WHEN d.lease_until > now_ + interval '15 seconds' THEN d.lease_until - step
            ELSE d.lease_until END
    WHERE d.finished_at IS NULL
      AND d.ends_at > now_
      AND greatest(d.started_at, d.lease_until - interval '15 seconds') > now_;
    -- Slots are times of the day, not pauses: those that come once more are owed once more.
    UPDATE pricing.schedule_walks w
    SET served_slot = least(w.served_slot, now_), walk_slot = CASE
        WHEN w.walk_slot > now_ THEN now_
        ELSE w.walk_slot END
    WHERE greatest(w.served_slot, w.walk_slot) > now_;
    UPDATE pricing.route_refusals f
    SET refused_at = pricing.moved_back(f.refused_at, now_, step), refused_until = f.refused_until - step
    WHERE f.refused_until > now_ + interval '1 minute';
    UPDATE pricing.quarantined_values q SET ask_at = q.ask_at - step WHERE q.ask_at > now_ + interval '1 minute';
    UPDATE pricing.provisional_bars b SET ask_at = b.ask_at - step WHERE b.ask_at > now_ + interval '1 minute';
    UPDATE pricing.absent_days a SET ask_at = a.ask_at - step WHERE a.ask_at > now_ + interval '1 minute';
    -- When a price was last confirmed says how old it is. Its history keeps the times that it got.
    UPDATE pricing.latest_prices l SET fetched_at = pricing.moved_back(l.fetched_at, now_, step)
    FROM (SELECT x.data_type, x.symbol FROM pricing.latest_prices x WHERE x.fetched_at > now_ + interval '1 minute'
          ORDER BY 1, 2 FOR NO KEY UPDATE SKIP LOCKED) mine
    WHERE (l.data_type, l.symbol) = (mine.data_type, mine.symbol);
    UPDATE pricing.empty_answers e SET fetched_at = pricing.moved_back(e.fetched_at, now_, step)
    FROM (SELECT x.data_type, x.symbol FROM pricing.empty_answers x WHERE x.fetched_at > now_ + interval '1 minute'
          ORDER BY 1, 2 FOR NO KEY UPDATE SKIP LOCKED) mine
    WHERE (e.data_type, e.symbol) = (mine.data_type, mine.symbol);
    UPDATE pricing.confirmed_pairs p SET fetched_at = pricing.moved_back(p.fetched_at, now_, step)
    FROM (SELECT x.data_type, x.symbol FROM pricing.confirmed_pairs x WHERE x.fetched_at > now_ + interval '1 minute'
          ORDER BY 1, 2 FOR NO KEY UPDATE SKIP LOCKED) mine
    WHERE (p.data_type, p.symbol) = (mine.data_type, mine.symbol);
    UPDATE pricing.calendars c SET filled_at = now_ WHERE c.filled_at > now_;
    UPDATE pricing.thinned t SET until = date_trunc('day', now_, 'UTC') WHERE t.until > now_;
    -- Days that were taken for over are to come.
    UPDATE pricing.history_coverage h SET covered = h.covered - datemultirange(daterange(today, NULL))
    WHERE h.covered && daterange(today, NULL);
    UPDATE pricing.corporate_action_pairs p
    SET covered = p.covered - datemultirange(daterange(today + 1, NULL)),
        gains_covered = p.gains_covered - datemultirange(daterange(today + 1, NULL))
    WHERE p.covered && daterange(today + 1, NULL);
END $$;
COMMENT ON FUNCTION pricing.move_plans(timestamptz, interval) IS
    'The clock was set back: drains, schedules, refusals and what is to be asked again go by it, and days that are '
    'to come are not covered.';
