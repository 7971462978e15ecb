-- name: read
-- Corporate actions of an instrument, the newest first: now, or as believed at a time.
SELECT ex_on, kind, new_shares, old_shares, amount * CAST('1e-' || scale AS numeric) AS cash, currency, provider,
       call_id, recorded_at, entered_by, reason
FROM pricing.actions_as_of(:asset_class, :symbol, CAST(:as_of AS timestamptz));

-- name: revisions
-- Corporate actions of a day that are no longer believed, the newest first.
SELECT a.ex_on, a.kind, a.new_shares, a.old_shares, a.amount * CAST('1e-' || a.scale AS numeric) AS cash, a.currency,
       a.provider, a.call_id, a.recorded_at, a.entered_by, a.reason, r.revised_at, r.removed_by, r.removed_because
FROM pricing.revisions r CROSS JOIN jsonb_populate_record(CAST(NULL AS pricing.corporate_actions), r.old) a
WHERE (r.kind, r.key) = ('corporate_actions', ARRAY[:asset_class, :symbol])
  AND a.ex_on = CAST(:ex_on AS date)
ORDER BY r.revised_at DESC, a.kind, a.currency, a.amount;

-- name: classes
-- Asset classes in which there is an instrument of a symbol.
SELECT asset_class FROM pricing.instruments WHERE symbol = :symbol ORDER BY 1;

-- name: unjudged
-- Instruments with a known split by which quarantined values were not judged yet: their daily data types, until when.
SELECT a.asset_class, a.symbol, max(a.recorded_at) AS until,
       (SELECT array_agg(r.data_type ORDER BY r.data_type) FROM pricing.data_type_registry r
        WHERE r.asset_class = a.asset_class AND r.is_active AND pricing.is_daily(r.fetcher)) AS data_types,
       (array_agg(coalesce(a.entered_by, a.provider) ORDER BY a.recorded_at DESC))[1] AS by_whom,
       (array_agg(pg_catalog.format('judged again: a split of %s:%s on %s is known', trim_scale(a.new_shares),
                                    trim_scale(a.old_shares), a.ex_on)
                  ORDER BY a.recorded_at DESC))[1] AS why
FROM pricing.corporate_actions a
WHERE a.judged_at IS NULL
GROUP BY 1, 2
ORDER BY 3 LIMIT 20;
