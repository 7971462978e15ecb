-- Sentences about old prices, and how they spell times, spans and places. Nothing is decided here.

CREATE OR REPLACE FUNCTION pricing.format_time(at timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT pg_catalog.to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC'
$$;
COMMENT ON FUNCTION pricing.format_time(timestamptz) IS 'A time for people, in UTC, to the second.';


CREATE OR REPLACE FUNCTION pricing.format_span(span interval) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE WHEN s.seconds < 120 THEN s.seconds || ' s'
                WHEN s.seconds < 7200 THEN s.seconds / 60 || ' min'
                WHEN s.seconds < 172800 THEN s.seconds / 3600 || ' h'
                ELSE s.seconds / 86400 || ' days' END
    FROM (SELECT greatest(floor(extract(epoch FROM span)), 0)::bigint AS seconds) s
$$;
COMMENT ON FUNCTION pricing.format_span(interval) IS 'A duration for people, in one unit, rounded down.';


CREATE OR REPLACE FUNCTION pricing.format_time_ahead(at timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT pricing.format_time(at) || ', in '
        || CASE WHEN w.minutes BETWEEN 120 AND 2879
                THEN pg_catalog.format('%s h %s min', w.minutes / 60, w.minutes % 60)
                ELSE pricing.format_span(w.span) END
    FROM (SELECT s.span, floor(extract(epoch FROM s.span) / 60)::bigint AS minutes
          FROM (SELECT at - pricing.clock() AS span) s) w
$$;
COMMENT ON FUNCTION pricing.format_time_ahead(timestamptz) IS
    'A future time for people, in UTC, with the time until then: "..., in 7 h 40 min".';


CREATE OR REPLACE FUNCTION pricing.format_ordinal(place integer) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT place || CASE WHEN place % 100 BETWEEN 11 AND 13 THEN 'th'
                         ELSE coalesce((ARRAY['st', 'nd', 'rd'])[nullif(place % 10, 0)], 'th') END
$$;
COMMENT ON FUNCTION pricing.format_ordinal(integer) IS 'An ordinal for people: 1st, 2nd, 3rd, 4th.';


CREATE OR REPLACE FUNCTION pricing.without_full_stop(message text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT nullif(pg_catalog.rtrim(message, '. '), '')
$$;
COMMENT ON FUNCTION pricing.without_full_stop(text) IS
    'A message without its final full stop, to be part of a sentence.';


CREATE OR REPLACE FUNCTION pricing.why_sentence(said text, VARIADIC words text[] DEFAULT '{}') RETURNS text
LANGUAGE sql STABLE SET search_path = '' AS $$
    SELECT pg_catalog.format(t.template, VARIADIC words) FROM (VALUES
        -- About the pair as a whole.
        ('unknown_type', 'there is no data type %s. `pricing-pipeline type list` lists them'),
        ('unknown_symbol', 'no %1$s instrument is called %2$s; %3$s'),
        ('retired', 'the data type %1$s is retired, so it is not fetched. This revives it: pricing-pipeline '
                    'type revive %1$s'),
        ('paused', '%1$s %2$s. This resumes it: pricing-pipeline instrument resume %1$s'),
        ('no_newer_value', 'no newer value can exist: its market (%s) %s, and the next value should be there at %s. '
                           'Nothing needs to be done'),
        ('quarantined', 'what %s sent at %s (%s) is not believed: %s. %s'),
        -- About its provider.
        ('provider_off', 'its provider %1$s is switched off, and no other serves it. `pricing-pipeline provider use` '
                         'brings one with its plan, and `pricing-pipeline provider change %1$s --active` switches it '
                         'on'),
        ('no_client_in_sandbox', '%1$s is not asked: this pipeline runs with the sandbox, which does not imitate '
                                 '%1$s. If the declaration of %1$s names a provider as `sandbox`, the sandbox answers '
                                 'like that one; a home with PRICING_SANDBOX=false asks %1$s itself'),
        ('no_client', '%1$s is not asked: no worker has a client for it. `pricing-pipeline provider list` shows the '
                      'providers of this version; the log of the worker says why a client cannot be made'),
        ('breaker_open', 'the breaker of %s is %s since %s (%s); %s. It closes by itself when the provider '
                         'works again'),
        ('no_key', 'no key of %1$s is active. `pricing-pipeline key set %1$s` stores one'),
        ('key_refused', '%1$s does not accept the key (%2$s); it is asked again at %3$s. `pricing-pipeline key set '
                        '%1$s` stores another one'),
        ('throttled', '%s has refused calls for speed (%s) and is left alone until %s. If that goes on, '
                      'lower its limit with `pricing-pipeline limit set`'),
        ('refused_always', '%s has answered none of our calls so far (%s) and is left alone until %s'),
        ('no_quota', 'the quota of %s is spent: %s of the %s bytes that such work may use in 30 days are used, and it '
                     'needs %s. They come back hour by hour; raise the quota with `pricing-pipeline provider change` '
                     'if your plan allows it'),
        ('window_used', '%s allows %s in %s, and %s are used; the next comes at %s'),
        ('day_used', '%s allows %s in a day, and %s are used; the next come at %s. `pricing-pipeline status` says '
                     'whether the watched pairs fit'),
        ('day_paced', '%s allows %s in a day: %s are used, and the others are spread over the rest of the trading '
                      'hours; the next comes at %s'),
        ('limit_shown', '%s has shown a limit of %s in %s for key %s at %s; the limit "%s" says %s. Correct it: %s'),
        ('units_used', 'the limits of %s are used up for the moment; the next call is made within a minute'),
        ('units_reported_used', '%s says that its limit is used up; the next call is made as soon as a minute '
                                'has passed. If that goes on, others use the key, or the limit is lower than '
                                '`pricing-pipeline limit list` says'),
        -- About its task.
        ('asking', '%s was asked at %s and has not answered yet. Look again in some seconds'),
        ('stopped', 'it has waited since %s, and %s'),
        ('retrying', 'its last attempt failed as %s (%s)%s; it is tried again at %s, for the %s time of %s. All '
                     'failures: pricing-pipeline task show %s'),
        ('no_worker', 'it has waited since %s, and no worker serves the queue. One starts within seconds while the '
                      'pipeline runs; to check: pricing-pipeline status'),
        ('queued', 'it has waited since %s, as number %s in the queue of %s. The queue: pricing-pipeline task list'),
        ('left_alone', '%s, so it is left alone until %s. %s'),
        ('owed_and_stopped', 'owed since %s, it is tried again at %s; %s, and %s'),
        ('owed', 'owed since %s, it is tried again at %s%s; %s%s. %s'),
        -- About a fresh pair.
        ('unjudged', 'pricing.%s fails on it, so it counts as stale and is asked for once per TTL, next after %s. '
                     '`pricing-pipeline status` shows why'),
        ('provider_has_none', 'its provider answered that it has no price of %1$s. It is asked again at %2$s. Route '
                              '%1$s elsewhere if another one has it'),
        ('source_frozen', '%s sends ever newer times with the same value since %s, so its source may be stuck. '
                          'Compare it with another, or route %s elsewhere'),
        ('source_old', '%s has nothing newer than %s. It is asked again at %s. If it should have newer ones, route %s '
                       'elsewhere'),
        ('market_closed', 'its market (%s) has been closed since %s and opens at %s. Nothing needs to be done'),
        ('no_trading_day', 'there is nothing newer before %s, by the trading days of %s. It is asked for then'),
        ('not_due', 'pricing.%s judges it fresh enough; it is checked again at %s. Nothing needs to be done'),
        ('fresh', 'it is fresh for %s, until %s'),
        -- About a stale pair without a task.
        ('no_route', 'no active provider serves %s %s; %s'),
        ('no_provider', 'no provider is in use: choose one of `pricing-pipeline provider list` with `pricing-pipeline '
                        'provider use NAME`'),
        ('forgotten', '%s does not know it, so the schedule %s. Correct the symbol, route it to a provider that knows '
                      'it, or have it asked for again: pricing-pipeline task list --status failed'),
        ('walk_waits', 'nobody watches it, and the slot of its schedule at %s has not queued it yet: %s. It is queued '
                       'as soon as there is room'),
        ('scheduled', 'nobody watches it, so it is refreshed by its schedule (%s, %s)%s. To queue all of the type now: '
                      'pricing-pipeline type refresh %s'),
        ('scheduled_less', 'nobody watches it, so it is refreshed by its schedule (%s, %s)%s, and now less often, '
                           'because the quota of %s %s. To see its progress: pricing-pipeline status'),
        ('stretched', 'its TTL is stretched: it is refreshed every %s instead of every %s, next at %s, because the '
                      'quota of %s %s. Raise the quota with `pricing-pipeline provider change` if your plan allows it, '
                      'or lengthen TTLs with `pricing-pipeline type set-ttl`'),
        ('unwatched', 'nobody watches or holds it, so it is not fetched. This fetches it once: pricing-pipeline '
                      'price show %2$s --type %1$s. This keeps it fresh: pricing-pipeline subscription watch %2$s '
                      '--type %1$s'),
        ('background', 'it is held and nobody watches it, so it is refreshed every %1$s, next after %2$s. Watching is '
                       'quicker: pricing-pipeline subscription watch %4$s --type %3$s'),
        ('unseen', 'it is held, but nobody has looked at it for 48 hours. Reading it asks for it: pricing-pipeline '
                   'price show %s'),
        ('no_room', 'it has been due since %s and is not queued: the quota of %s has no room left for viewers, or '
                    'waiting tasks need it. Bytes come back hour by hour; raise the quota with `pricing-pipeline '
                    'provider change` if your plan allows it'),
        ('due', 'it is due %s and not queued yet; the next staleness check queues it, within seconds while the '
                'pipeline runs. To check: pricing-pipeline status')
    ) AS t (said, template) WHERE t.said = why_sentence.said
$$;
COMMENT ON FUNCTION pricing.why_sentence(text, text[]) IS
    'One of the sentences that say why a price is old, with these words filled in.';
