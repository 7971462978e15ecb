-- Signs of life of the processes that tell people.

CREATE OR REPLACE FUNCTION pricing.note_notifier(by_worker text, has_looked boolean) RETURNS void
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '500ms' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
BEGIN
    IF NOT EXISTS (SELECT FROM pricing.notifiers n WHERE n.worker = by_worker) THEN
        INSERT INTO pricing.notifiers (worker) VALUES (by_worker) ON CONFLICT (worker) DO NOTHING;
    END IF;
    UPDATE pricing.notifiers n
    SET looked_at = CASE WHEN has_looked THEN now_ ELSE n.looked_at END,
        ran_at = CASE WHEN has_looked THEN n.ran_at ELSE now_ END
    FROM (SELECT x.worker FROM pricing.notifiers x WHERE x.worker = by_worker FOR UPDATE SKIP LOCKED) mine
    WHERE n.worker = mine.worker;
EXCEPTION WHEN lock_not_available THEN
    NULL; -- The next look notes it.
END $$;
COMMENT ON FUNCTION pricing.note_notifier(text, boolean) IS
    'Records that a notifier has just looked for trouble or messages; skips a locked row.';
