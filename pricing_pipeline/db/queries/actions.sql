-- name: merge
-- Store corporate actions of one call.
SELECT pricing.merge_actions(:data_type, :provider, :call_id, CAST(:actions AS jsonb), CAST(:symbols AS text[]),
                             CAST(:since AS date[]),
                             CAST(:gains_told AS text[]));

-- name: read
-- Corporate actions of an instrument, the newest first: now, or as believed at a time.
SELECT ex_on, kind, new_shares, old_shares, amount * CAST('1e-' || scale AS numeric) AS cash, currency, provider,
       call_id, recorded_at,
       entered_by, reason
FROM pricing.actions_as_of(:asset_class, :symbol, CAST(:as_of AS timestamptz));

-- name: revisions
-- Corporate actions of a day that are believed no more, the newest first.
SELECT ex_on, kind, new_shares, old_shares, amount * CAST('1e-' || scale AS numeric) AS cash, currency, provider,
       call_id, recorded_at,
       entered_by, reason, revised_at, removed_by, removed_because
FROM pricing.corporate_action_revisions
WHERE (asset_class, symbol, ex_on) = (:asset_class, :symbol, CAST(:ex_on AS date))
ORDER BY revised_at DESC, kind, currency, amount;

-- name: untold_splits
-- Steps of a history that look like a split of which nobody has told.
SELECT ex_on, new_shares, old_shares FROM pricing.untold_splits(:data_type, :symbol, CAST(:first_day AS date), CAST(:last_day AS date));

-- name: classes
-- Asset classes in which there is an instrument of a symbol.
SELECT asset_class FROM pricing.instruments WHERE symbol = :symbol ORDER BY 1;

-- name: enter
-- Enter a corporate action by hand; returns what became of it.
SELECT pricing.enter_action(:asset_class, :symbol, :ex_on, :kind, CAST(:new_shares AS numeric),
                            CAST(:old_shares AS numeric),
                            CAST(:cash AS numeric), CAST(:currency AS text), :by_whom, CAST(:why AS text), :is_further);

-- name: remove
-- Take back a corporate action; returns removed or unknown.
SELECT pricing.remove_action(:asset_class, :symbol, :ex_on, :kind, :by_whom, CAST(:why AS text),
                             CAST(:currency AS text));

-- name: doubted
-- Payments of an answer that are not believed, and why.
SELECT symbol, ex_on, kind, cash, currency, reason FROM pricing.doubted_payments(:data_type, CAST(:actions AS jsonb));

-- name: refuted
-- Splits of an answer that a person has taken back or replaced.
SELECT s.symbol, s.ex_on
FROM pricing.data_type_registry r
CROSS JOIN LATERAL pricing.actions_of_answer(r.asset_class, :provider, 0, CAST(:actions AS jsonb)) s
WHERE r.data_type = :data_type AND pricing.is_refuted(s);

-- name: unjudged
-- Instruments of which a split is known that quarantined values were not judged with yet: their daily data types, and until when.
SELECT a.asset_class, a.symbol, max(a.recorded_at) AS until,
       (SELECT array_agg(r.data_type ORDER BY r.data_type) FROM pricing.data_type_registry r
        WHERE r.asset_class = a.asset_class AND r.is_active AND r.fetcher IN ('daily_bars', 'nav')) AS data_types,
       (array_agg(coalesce(a.entered_by, a.provider) ORDER BY a.recorded_at DESC))[1] AS by_whom,
       (array_agg(pg_catalog.format('judged anew: a split of %s:%s on %s is known', trim_scale(a.new_shares), trim_scale(a.old_shares), a.ex_on)
                  ORDER BY a.recorded_at DESC))[1] AS why
FROM pricing.corporate_actions a WHERE a.judged_at IS NULL GROUP BY 1, 2 ORDER BY 3 LIMIT 20;

-- name: note_judged
-- Quarantined values of an instrument were judged anew with what was known of it until then.
SELECT pricing.note_judged(:asset_class, :symbol, CAST(:until AS timestamptz));

-- name: known_basis
-- What tells a restated bar from a corrected one, for each symbol of an answer.
SELECT symbol, (SELECT pricing.has_splits(r.asset_class) FROM pricing.data_type_registry r WHERE r.data_type = :data_type),
       adjustment, split_days, split_ratios, newest_recorded, earlier_recorded, same_times, same_recorded
FROM pricing.known_basis(:data_type, CAST(:symbols AS text[]), CAST(:first_times AS timestamptz[]), CAST(:last_times AS timestamptz[]));

-- name: note_overlap
-- Record restatements of one call, and which of its bars are not final.
SELECT pricing.note_overlap(:data_type, :provider, :call_id, CAST(:restated AS jsonb), CAST(:symbols AS text[]), CAST(:times AS timestamptz[]));
