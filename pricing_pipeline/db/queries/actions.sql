-- name: merge
-- Store splits and dividends of one call.
SELECT pricing.merge_actions(:data_type, :provider, :call_id, CAST(:actions AS jsonb), CAST(:symbols AS text[]), CAST(:since AS date[]));

-- name: read
-- Splits and dividends of an instrument, the newest first: now, or as believed at a time.
SELECT ex_on, kind, new_shares, old_shares, amount * CAST('1e-' || scale AS numeric) AS cash, currency, provider, call_id, recorded_at,
       entered_by, reason
FROM pricing.actions_as_of(:asset_class, :symbol, CAST(:as_of AS timestamptz));

-- name: revisions
-- Splits and dividends of a day that are believed no more, the newest first.
SELECT ex_on, kind, new_shares, old_shares, amount * CAST('1e-' || scale AS numeric) AS cash, currency, provider, call_id, recorded_at,
       entered_by, reason, revised_at, removed_by, removed_because
FROM pricing.corporate_action_revisions WHERE (asset_class, symbol, ex_on) = (:asset_class, :symbol, CAST(:ex_on AS date))
ORDER BY revised_at DESC, kind;

-- name: untold_splits
-- Steps of a history that look like a split of which nobody has told.
SELECT ex_on, new_shares, old_shares FROM pricing.untold_splits(:data_type, :symbol, CAST(:first_day AS date), CAST(:last_day AS date));

-- name: classes
-- Asset classes in which there is an instrument of a symbol.
SELECT asset_class FROM pricing.instruments WHERE symbol = :symbol ORDER BY 1;

-- name: enter
-- Enter a split or dividend by hand; returns what became of it.
SELECT pricing.enter_action(:asset_class, :symbol, :ex_on, :kind, CAST(:new_shares AS numeric), CAST(:old_shares AS numeric),
                            CAST(:cash AS numeric), CAST(:currency AS text), :by_whom, CAST(:why AS text));

-- name: remove
-- Take back a split or dividend; returns removed or unknown.
SELECT pricing.remove_action(:asset_class, :symbol, :ex_on, :kind, :by_whom, CAST(:why AS text));

-- name: doubted
-- Dividends of an answer that are not believed, and why.
SELECT symbol, ex_on, cash, reason FROM pricing.doubted_dividends(:data_type, CAST(:actions AS jsonb));

-- name: refuted
-- Splits of an answer that a person has taken back or replaced.
SELECT s.symbol, s.ex_on FROM pricing.actions_of_answer(CAST(:actions AS jsonb)) s JOIN pricing.data_type_registry r ON r.data_type = :data_type
WHERE pricing.is_refuted(r.asset_class, s.symbol, s.ex_on, s.kind, :provider, s.new_shares, s.old_shares, s.amount, s.scale);

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
