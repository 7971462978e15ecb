-- name: to_tell
-- Alerts to tell recipients now.
SELECT t.alert_id, t.rule, t.subject, t.severity, t.says, t.since, t.is_over, t.is_repeated, t.has_news,
       pricing.alert_place(t.rule, t.subject, t.says) AS place
FROM pricing.alerts_to_tell() t ORDER BY t.severity, t.is_over, t.alert_id;

-- name: list
-- Alerts: open ones first, the most urgent first; by_id the newest first, older than one. silenced_until is the end of
-- the longest silence.
SELECT a.alert_id, a.rule, a.subject, a.severity, a.says, a.since, a.last_seen_at, a.raised_at, a.told_at,
       a.resolved_at, a.acknowledged_at, a.acknowledged_by,
       (SELECT max(s.until) FROM pricing.alert_silences s
        WHERE s.rule = a.rule
          AND coalesce(s.subject = a.subject, true)
          AND s.until > pricing.clock()) AS silenced_until
FROM pricing.alerts a
WHERE a.raised_at IS NOT NULL
  AND (:with_past OR a.resolved_at IS NULL)
  AND (CAST(:after_id AS bigint) IS NULL OR a.alert_id < :after_id)
ORDER BY CASE WHEN :by_id THEN a.alert_id END DESC,
         a.resolved_at IS NOT NULL, a.severity, a.alert_id DESC
LIMIT :most;

-- name: acknowledge
-- Acknowledge these open alerts, unless they were acknowledged before; returns those that were not.
UPDATE pricing.alerts a
SET acknowledged_at = coalesce(a.acknowledged_at, pricing.clock()),
    acknowledged_by = coalesce(a.acknowledged_by, :login)
WHERE a.alert_id = ANY (CAST(:ids AS bigint[])) AND a.resolved_at IS NULL
RETURNING a.alert_id;

-- name: open_subjects
-- What the open alerts of a rule are about.
SELECT a.subject FROM pricing.alerts a
WHERE a.rule = :rule AND a.raised_at IS NOT NULL AND a.resolved_at IS NULL
ORDER BY 1;

-- name: nobody_told_now
-- Why no recipient of alerts can be reached, unless somebody has silenced that.
SELECT a.says FROM pricing.alerts a
WHERE a.rule = 'nobody_told' AND a.raised_at IS NOT NULL AND a.resolved_at IS NULL
  AND NOT EXISTS (SELECT FROM pricing.alert_silences s
                  WHERE s.rule = a.rule AND coalesce(s.subject = a.subject, true) AND s.until > pricing.clock());

-- name: silence
-- Silence alerts of a rule for a while; returns until when.
INSERT INTO pricing.alert_silences (rule, subject, until, silenced_by, because, created_at)
VALUES (:rule, :subject, pricing.clock() + make_interval(secs => :seconds), :login, :reason, pricing.clock())
RETURNING until;

-- name: end_silences
-- End the silences of a rule, or those about one subject alone; returns how many.
WITH ended AS (
    UPDATE pricing.alert_silences s SET until = pricing.clock()
    WHERE s.rule = :rule
      AND coalesce(s.subject = CAST(:subject AS text), CAST(:subject AS text) IS NULL)
      AND s.until > pricing.clock()
    RETURNING 1)
SELECT count(*) FROM ended;

-- name: unhealthy
-- A part of the pipeline is late. The notifier reports it, but cannot report its own silence.
SELECT 'pipeline' AS subject,
       format('Late: %s. %s.', string_agg(replace(h.part, '_', ' '), ', ' ORDER BY h.place),
              string_agg(upper(left(h.says, 1)) || substr(h.says, 2), '. ' ORDER BY h.place)) AS says
FROM pricing.health() WITH ORDINALITY AS h (part, is_late, since, says, place)
WHERE h.is_late AND h.part <> 'notifier'
HAVING count(*) > 0;

-- name: duty_fails
-- A duty has failed since it last succeeded.
SELECT d.duty AS subject, format('The duty %s fails: %s', d.duty, d.last_error) AS says
FROM pricing.duties d
WHERE d.last_failure_at > coalesce(d.last_success_at, '-infinity')
  AND d.last_error IS NOT NULL
  AND d.duty <> 'follow_clock';

-- name: quota_ends
-- Quota of bytes that would end within a week at what is wanted; until it is ten days away.
SELECT s.provider AS subject,
       format('At what is wanted now the quota of %s would end at %s. %s '
              '`pricing-pipeline provider show %s` says how that is known.',
              s.provider, pricing.format_time(s.ends_at),
              CASE WHEN s.watched_factor > 1
                   THEN format('TTLs of what people watch are stretched %s times, and of the rest %s times, so that '
                               'it lasts.',
                               round(s.watched_factor::numeric, 1), round(s.background_factor::numeric, 1))
                   WHEN s.background_factor > 1
                   THEN format('Schedules and what is held only are refreshed %s times less often, so that it lasts.',
                               round(s.background_factor::numeric, 1))
                   ELSE 'TTLs are about to be stretched.' END,
              s.provider) AS says
FROM pricing.stretches_in_force(pricing.clock()) s JOIN pricing.data_collectors p USING (provider)
WHERE p.is_active
  AND s.ends_at < pricing.clock() + CASE
      WHEN EXISTS (SELECT FROM pricing.alerts a
                   WHERE a.rule = 'quota_ends' AND a.subject = s.provider
                     AND a.raised_at IS NOT NULL AND a.resolved_at IS NULL)
      THEN interval '10 days'
      ELSE interval '7 days' END;

-- name: quota_near
-- Quota of bytes used by 75 % or more.
SELECT p.provider AS subject,
       format('%s %% of the quota of %s is used: %s of %s bytes in 30 days.',
              (100 * u.used / p.quota_bytes), p.provider, u.used, p.quota_bytes) AS says
FROM pricing.data_collectors p
CROSS JOIN LATERAL (SELECT pricing.bytes_used(p.provider, pricing.clock()) AS used) u
WHERE p.is_active
  AND u.used >= pricing.quota_for(p.quota_bytes, -2)
  AND u.used < pricing.quota_for(p.quota_bytes, -1);

-- name: quota_short
-- Quota of bytes used by 90 % or more.
SELECT p.provider AS subject,
       format('%s %% of the quota of %s is used: %s of %s bytes in 30 days.',
              (100 * u.used / p.quota_bytes), p.provider, u.used, p.quota_bytes) AS says
FROM pricing.data_collectors p
CROSS JOIN LATERAL (SELECT pricing.bytes_used(p.provider, pricing.clock()) AS used) u
WHERE p.is_active AND u.used >= pricing.quota_for(p.quota_bytes, -1);

-- name: queue_deep
-- More than a thousand tasks wait.
SELECT 'queue' AS subject, format('%s tasks wait in the queue.', q.tasks) AS says
FROM (SELECT count(*) AS tasks FROM pricing.api_call_queue_live l WHERE l.status = 'pending') q
WHERE q.tasks > 1000;

-- name: nothing_completed
-- Watched pairs have been due for ten minutes at a provider that may be called, and nothing was completed meanwhile.
SELECT q.provider AS subject,
       format('Nothing was completed at %s for ten minutes, though it may be called. Tasks that are due there: %s.',
              q.provider, q.tasks) AS says
FROM pricing.stalled_providers() q;

-- name: pair_forgotten
-- A watched pair is due for a day, or for its TTL if that is longer, and no task is queued for it.
SELECT d.data_type AS subject,
       format('Watched pairs of %s that are due for more than a day, and nothing is queued for them: %s, '
              'such as %s.', d.data_type, count(*), min(d.symbol)) AS says
FROM pricing.demand d JOIN pricing.data_type_registry t USING (data_type)
WHERE t.is_active AND coalesce(d.backoff_until <= pricing.clock(), true)
  AND d.due_at < pricing.clock() - interval '1 day'
  AND d.due_at < pricing.clock() - make_interval(mins => pricing.pair_ttl(d.data_type, d.symbol))
  AND EXISTS (SELECT FROM pricing.active_subscriptions a WHERE (a.data_type, a.symbol) = (d.data_type, d.symbol))
  AND EXISTS (SELECT FROM pricing.instruments i
              WHERE (i.asset_class, i.symbol) = (t.asset_class, d.symbol) AND i.is_active AND i.update_mode = 'api')
  AND NOT EXISTS (SELECT FROM pricing.api_call_queue_live l WHERE (l.data_type, l.symbol) = (d.data_type, d.symbol))
GROUP BY 1;

-- name: breaker_open
-- All calls to a provider are stopped.
SELECT s.provider AS subject,
       format('All calls to %s are stopped since %s: %s', s.provider,
              pricing.format_time(coalesce(s.breaker_began_at, s.breaker_since)), s.breaker_reason) AS says
FROM pricing.provider_state s JOIN pricing.data_collectors p USING (provider)
WHERE p.is_active AND s.breaker <> 'closed';

-- name: provider_fails
-- A watched type's prices grow old because its provider does not answer.
SELECT o.provider || ' ' || o.data_type AS subject,
       format('%s has answered no call for %s since %s, and its watched prices grow old%s', o.provider, o.data_type,
              pricing.format_time(o.since), coalesce(': ' || last.error, '.')) AS says
FROM pricing.outages o
LEFT JOIN LATERAL (SELECT c.error FROM pricing.collector_call_log c
                   WHERE c.provider = o.provider AND c.data_type = o.data_type AND c.failure_kind IS NOT NULL
                     AND c.started_at >= o.since - interval '1 minute'
                   ORDER BY c.started_at DESC LIMIT 1) last ON true
WHERE o.answered_at IS NULL
  -- breaker_open tells it, unless this was told before the breaker opened: then it lasts.
  AND (NOT EXISTS (SELECT FROM pricing.provider_state s WHERE s.provider = o.provider AND s.breaker <> 'closed')
       OR EXISTS (SELECT FROM pricing.alerts a
                  WHERE a.rule = 'provider_fails' AND a.subject = o.provider || ' ' || o.data_type
                    AND a.raised_at IS NOT NULL AND a.resolved_at IS NULL))
  AND EXISTS (SELECT FROM pricing.active_subscriptions a WHERE a.data_type = o.data_type);

-- name: price_fetch_failed
-- Wanted pairs whose tasks have failed for good by trouble that is not their symbol's, by provider.
SELECT coalesce(d.provider, 'no provider') AS subject,
       format('Pairs that could not be fetched from %s: %s, such as %s: %s',
              coalesce(d.provider, 'any provider'), count(*),
              (array_agg(d.data_type || ' ' || d.symbol ORDER BY d.id DESC))[1],
              (array_agg(d.reason ORDER BY d.id DESC))[1]) AS says
FROM (SELECT DISTINCT ON (x.data_type, x.symbol)
             x.id, x.provider, x.data_type, x.symbol, x.failure_kind, x.errors -> -1 ->> 'message' AS reason
      FROM pricing.api_call_queue_dead x
      WHERE x.status = 'failed' AND x.resolved_at IS NULL
        AND (EXISTS (SELECT FROM pricing.demand w WHERE (w.data_type, w.symbol) = (x.data_type, x.symbol))
             OR EXISTS (SELECT FROM pricing.universe u
                        WHERE (u.data_type, u.symbol) = (x.data_type, x.symbol) AND u.left_out IS NULL))
      ORDER BY x.data_type, x.symbol, x.id DESC) d
WHERE NOT pricing.is_symbol_fault(d.failure_kind)
GROUP BY d.provider;

-- name: symbols_unknown
-- A provider refuses too many symbols of a data type at once for the symbols to be at fault.
SELECT r.provider || ' ' || r.data_type AS subject,
       format('%s refuses many symbols of %s at once: %s, of which %s had a price before, such as %s: %s',
              r.provider, r.data_type, r.refused, r.vanished, r.example, r.reason) AS says
FROM pricing.refused_symbols() r WHERE r.is_fault;

-- name: symbol_vanished
-- Wanted symbols that were priced before and that their provider refuses now. A symbol that never had a price raises no
-- alert.
SELECT r.provider || ' ' || r.data_type AS subject,
       format('Symbols of %s that were priced before, and that %s refuses now: %s, such as %s: %s',
              r.data_type, r.provider, r.vanished, r.example, r.reason) AS says
FROM pricing.refused_symbols() r WHERE r.vanished > 0 AND NOT r.is_fault;

-- name: source_old
-- Sources that have had no new value of watched or held pairs for four days, although trading days have passed.
SELECT l.provider || ' ' || l.data_type AS subject,
       format('%s confirms prices of %s that are older than they should be: %s, such as %s, whose newest is of %s.',
              l.provider, l.data_type, count(*), (array_agg(l.symbol ORDER BY l.observed_at, l.symbol))[1],
              pricing.format_time(min(l.observed_at))) AS says
FROM pricing.demand d
JOIN pricing.data_type_registry r USING (data_type)
JOIN pricing.instruments i USING (asset_class, symbol)
JOIN pricing.latest_prices l USING (data_type, symbol)
WHERE r.is_active AND i.is_active AND i.update_mode = 'api'
  -- Four days are longer than nearly all weekends and holidays, so that few calendars are looked at.
  AND CASE WHEN l.observed_at < l.fetched_at - interval '4 days'
           THEN pricing.is_source_old(r, l.symbol, l.observed_at, l.fetched_at,
                                      pricing.pair_ttl(l.data_type, l.symbol)) END
GROUP BY l.provider, l.data_type;

-- name: limit_near
-- More than 83 % of the units of all keys of a provider are used.
SELECT p.provider AS subject,
       format('%s of %s units of %s are used.', u.all_units - u.units_left, u.all_units, p.provider) AS says
FROM pricing.data_collectors p
CROSS JOIN LATERAL (SELECT sum(greatest(k.units_left, 0)) AS units_left, sum(k.units_limit) AS all_units
                    FROM pricing.key_allowances(p.provider, pricing.clock()) k WHERE k.is_usable) u
WHERE p.is_active AND u.units_left < 0.17 * u.all_units;

-- name: estimate_wrong
-- An answer within the last hour was twice as long as expected, or longer.
SELECT s.provider || ' ' || s.data_type AS subject,
       format('An answer of %s for %s was %s times as long as expected, so that a backfill may cost more than it says.',
              s.provider, s.data_type, round(s.last_overrun_ratio::numeric, 1)) AS says
FROM pricing.size_estimates s
WHERE s.last_overrun_at > pricing.clock() - interval '1 hour' AND s.last_overrun_at <= pricing.clock();

-- name: size_unannounced
-- Answers of the last day came without their length.
SELECT c.provider AS subject,
       format('Answers of %s since yesterday that did not say how long they are: %s.', c.provider, count(*)) AS says
FROM pricing.collector_call_log c
WHERE c.is_unannounced AND c.started_at > pricing.clock() - interval '1 day'
GROUP BY 1;

-- name: many_warnings
-- Five warnings or more about one thing within an hour.
SELECT w.subject,
       format('%s warnings in an hour about %s; the last: %s', sum(w.times), w.subject,
              (array_agg(w.message ORDER BY w.last_at DESC))[1]) AS says
FROM pricing.recent_warnings('1 hour') w
GROUP BY w.subject
HAVING sum(w.times) >= 5;

-- name: message_dead
-- Messages that could not be sent, by recipient.
SELECT coalesce(o.payload ->> 'recipient', o.operation_type) AS subject,
       format('%s could not be sent to %s by %s since yesterday. The last failed so: %s',
              CASE count(*) WHEN 1 THEN '1 message' ELSE count(*) || ' messages' END,
              coalesce(o.payload ->> 'recipient', 'nobody'), min(o.operation_type),
              (array_agg(o.errors -> -1 ->> 'message' ORDER BY o.finished_at DESC))[1]) AS says,
       max(o.finished_at)::text AS newest_at
FROM pricing.async_operations_dead o
WHERE o.status = 'failed' AND o.finished_at > pricing.clock() - interval '1 day'
GROUP BY coalesce(o.payload ->> 'recipient', o.operation_type), o.payload ->> 'recipient';

-- name: nobody_told
-- Recipients of alerts, if none of them can be reached; the channel `log` does not count.
SELECT 'recipients' AS subject,
       format('No recipient can be reached: %s.',
              string_agg(format('messages to %s by %s have failed since %s (%s)', r.recipient, r.channel,
                                pricing.format_time(f.since), f.last_error), '; ' ORDER BY r.recipient)) AS says
FROM pricing.recipients r JOIN pricing.operation_types t ON t.operation_type = r.channel
LEFT JOIN pricing.failing_recipients f ON (f.operation_type, f.recipient) = (r.channel, r.recipient)
-- Recipients of an inactive channel do not count: the owner switched it off.
WHERE r.is_active AND t.is_active AND r.least_severity IS NOT NULL AND r.channel <> 'log'
HAVING count(*) > 0 AND bool_and(coalesce(f.is_dead, false));

-- name: price_alerts_wait
-- New prices have waited for ten minutes for an alert that may be told now.
SELECT 'price_alerts' AS subject,
       format('Price alerts that have not looked at a new price for ten minutes: %s, such as price alert %s. '
              'These price alerts are not sent.', count(*), min(a.price_alert_id)) AS says
FROM (SELECT pricing.clock() - interval '10 minutes' AS at) n
CROSS JOIN pricing.price_alerts a
CROSS JOIN LATERAL (SELECT e.stored_at FROM pricing.price_events e
                    WHERE e.price_alert_id = a.price_alert_id
                    ORDER BY e.event_id LIMIT 1) e
WHERE e.stored_at < n.at AND coalesce(a.told_at + a.pace < n.at, true)
HAVING count(*) > 0;

-- name: operation_unhandled
-- Operations of a user's own type that have been due for ten minutes and were never attempted, nor was any other of
-- the type in that time.
WITH n AS MATERIALIZED (SELECT pricing.clock() - interval '10 minutes' AS at)
SELECT w.operation_type AS subject,
       format('Operations of the type %s that have been due for ten minutes and were never attempted: %s. %s',
              w.operation_type, w.operations,
              CASE WHEN t.operation_type IS NULL THEN 'There is no such type any more.'
                   ELSE format('No notifier has a handler for it, or its handler hangs: '
                               '`pricing-pipeline operation-type show %s` says more.', w.operation_type) END) AS says
FROM n CROSS JOIN LATERAL (
    SELECT l.operation_type, sum(l.operations) AS operations
    FROM (SELECT o.operation_type, o.recipient, o.priority, count(*) AS operations
          FROM pricing.async_operations_live o
          WHERE o.status = 'pending' AND o.attempt = 0 AND o.due_at <= n.at
          GROUP BY 1, 2, 3) l
    WHERE pricing.why_waiting(l.operation_type, l.recipient, l.priority, 0, n.at + interval '10 minutes') IS NULL
    GROUP BY 1) w
LEFT JOIN pricing.operation_types t USING (operation_type)
WHERE coalesce(t.is_active AND NOT t.is_built_in, true)
  AND NOT EXISTS (SELECT FROM pricing.async_operations_live o
                  WHERE o.operation_type = w.operation_type AND o.claimed_at > n.at)
  AND NOT EXISTS (SELECT FROM pricing.async_operations_dead o
                  WHERE o.operation_type = w.operation_type AND o.finished_at > n.at AND o.claimed_at > n.at)
  AND NOT EXISTS (SELECT FROM pricing.async_operations_completed o
                  WHERE o.operation_type = w.operation_type AND o.finished_at > n.at AND o.claimed_at > n.at);

-- name: run_fails
-- The last run of a job has failed, or the last one that was started on some assets.
SELECT d.name AS subject,
       format('Run %s of %s failed at %s: %s', d.run_id, d.name, pricing.format_time(d.failed_at), d.reason) AS says
FROM pricing.dagster_failures d WHERE d.kind = 'run';

-- name: tick_fails
-- A sensor or schedule of Dagster fails.
SELECT d.name AS subject,
       format('%s of Dagster fails since %s: %s', d.name, pricing.format_time(d.failed_at), d.reason) AS says
FROM pricing.dagster_failures d WHERE d.kind = 'tick';

-- name: concerning
-- Open alerts that are sent at once (P0, P1), and the data types that they concern, also by a provider.
SELECT t.data_type, a.alert_id, a.rule, a.subject, a.severity, a.says, a.since, a.acknowledged_by
FROM pricing.alerts a
JOIN pricing.data_type_registry t
  ON a.subject = t.data_type
  OR EXISTS (SELECT FROM pricing.provider_routing r
             WHERE r.data_type = t.data_type AND r.is_active
               AND a.subject IN (r.provider, r.provider || ' ' || t.data_type))
WHERE a.raised_at IS NOT NULL AND a.resolved_at IS NULL AND a.severity < 'P2'
  AND t.data_type = ANY (CAST(:data_types AS text[]))
ORDER BY t.data_type, a.severity, a.alert_id;

-- name: show
-- Everything about one alert, with the page of the Dagster UI that it is about.
SELECT a.alert_id, a.rule, a.subject, a.severity, a.says, a.is_repeated, a.since, a.last_seen_at, a.raised_at,
       a.told_at, a.resolved_at, a.end_told_at, a.acknowledged_at, a.acknowledged_by,
       pricing.alert_place(a.rule, a.subject, a.says) AS place
FROM pricing.alerts a
WHERE a.alert_id = :alert_id AND a.raised_at IS NOT NULL;

-- name: silences
-- Silences that concern an alert and have not ended, the longest first.
SELECT s.silence_id, s.subject, s.until, s.silenced_by, s.because AS reason
FROM pricing.alert_silences s
WHERE s.rule = :rule AND coalesce(s.subject = :subject, true) AND s.until > pricing.clock()
ORDER BY s.until DESC, s.silence_id;

-- name: note_message
-- Store which operation notifies a recipient of these alerts.
UPDATE pricing.alerts a
SET message_ids = (a.message_ids || CAST(:operation_id AS bigint))[greatest(cardinality(a.message_ids) - 48, 1):]
WHERE a.alert_id = ANY (CAST(:alert_ids AS bigint[]));

-- name: messages
-- The operations that told recipients of an alert, as far as they are still kept.
SELECT o.id, o.payload ->> 'recipient' AS recipient, o.operation_type AS channel, o.status, o.enqueued_at
FROM pricing.async_operations o
WHERE o.id = ANY (ARRAY(SELECT unnest(a.message_ids) FROM pricing.alerts a WHERE a.alert_id = :alert_id))
ORDER BY o.id;
