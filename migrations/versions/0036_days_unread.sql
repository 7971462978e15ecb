-- Days of which only a value came that could not be read were covered by the answer that brought it: now they can be
-- asked for again.
UPDATE pricing.history_coverage h SET covered = h.covered - unread.days
FROM (SELECT q.data_type, q.symbol, range_agg(daterange(d.day, d.day, '[]')) AS days
      FROM pricing.quarantined_values q CROSS JOIN LATERAL (SELECT (q.observed_at AT TIME ZONE 'UTC')::date AS day) d
      WHERE q.kind = 'refused' AND q.bar IS NULL AND q.observed_at IS NOT NULL AND isfinite(q.observed_at)
        AND NOT EXISTS (SELECT FROM pricing.price_history p
                        WHERE p.data_type = q.data_type AND p.symbol = q.symbol AND p.observed_at = d.day::timestamp AT TIME ZONE 'UTC')
      GROUP BY 1, 2) unread
WHERE (h.data_type, h.symbol) = (unread.data_type, unread.symbol) AND h.covered && unread.days;

COMMENT ON COLUMN pricing.quarantined_values.resolved_at IS 'When that was decided.';
COMMENT ON COLUMN pricing.quarantined_values.resolved_by IS
    'Who has decided: a person, or a call whose answer brought it again and was believed.';
COMMENT ON COLUMN pricing.quarantined_values.resolution IS 'Why so, in words.';
