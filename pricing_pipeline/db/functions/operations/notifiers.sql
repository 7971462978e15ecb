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
    SET looked_at = CASE WHEN has_looked THEN now_ ELSE n.looked_at END, ran_at = CASE WHEN has_looked THEN n.ran_at ELSE now_ END
    FROM (SELECT x.worker FROM pricing.notifiers x WHERE x.worker = by_worker FOR UPDATE SKIP LOCKED) mine
    WHERE n.worker = mine.worker;
EXCEPTION WHEN lock_not_available THEN
    NULL; -- The next look notes it.
END $$;
COMMENT ON FUNCTION pricing.note_notifier(text, boolean) IS
    'Notes that a notifier has just looked for trouble, or else for messages to send. Waits for nobody: what cannot be noted now is noted by the next look.';


CREATE OR REPLACE FUNCTION pricing.prune_notifiers(now_ timestamptz) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    DELETE FROM pricing.notifiers n WHERE n.worker IN (
        SELECT x.worker FROM pricing.notifiers x
        WHERE coalesce(greatest(x.looked_at, x.ran_at), '-infinity') < now_ - interval '1 day' FOR UPDATE SKIP LOCKED)
$$;
COMMENT ON FUNCTION pricing.prune_notifiers(timestamptz) IS 'Forgets notifiers that have been silent for a day.';


CREATE OR REPLACE FUNCTION pricing.move_notifiers(now_ timestamptz) RETURNS void
LANGUAGE sql SET search_path = '' SET lock_timeout = '1s' AS $$
    UPDATE pricing.notifiers n SET looked_at = least(n.looked_at, now_), ran_at = least(n.ran_at, now_)
    FROM (SELECT x.worker FROM pricing.notifiers x WHERE greatest(x.looked_at, x.ran_at) > now_ ORDER BY 1 FOR UPDATE) mine
    WHERE n.worker = mine.worker
$$;
COMMENT ON FUNCTION pricing.move_notifiers(timestamptz) IS 'The clock was set back: notifiers gave their last sign of life now at the latest.';
