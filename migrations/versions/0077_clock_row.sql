-- Until now the latest time of any duty told whether the clock was set, and a second step hid behind the first.
INSERT INTO pricing.duties AS d (duty, last_success_at)
SELECT 'follow_clock', max(greatest(o.last_success_at, o.last_failure_at)) FROM pricing.duties o
WHERE o.duty <> 'follow_clock' HAVING count(*) > 0
ON CONFLICT ON CONSTRAINT duties_pkey DO UPDATE SET last_success_at = excluded.last_success_at;

COMMENT ON TABLE pricing.duties IS
    'When each periodic duty last succeeded and last failed. The row of follow_clock tells when the database''s clock was last looked at: a time in the future means that the clock was set back since.';
