-- Nothing is skipped silently. What schedules and backfills of a whole type ask for is one view, and it says why it leaves
-- out what it leaves out.

CREATE VIEW pricing.universe AS
    SELECT r.data_type, i.symbol, i.calendar,
           CASE WHEN NOT i.is_active OR i.update_mode <> 'api' THEN 'paused'
                -- Its provider has said so, and nobody has changed symbol or route since.
                WHEN i.verified_at IS NULL AND EXISTS (
                    SELECT FROM pricing.api_call_queue_dead d
                    WHERE d.data_type = r.data_type AND d.symbol = i.symbol AND d.status = 'failed'
                      AND d.failure_kind = 'unknown_symbol' AND d.resolved_at IS NULL) THEN 'unknown_symbol'
           END AS left_out
    FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class);
COMMENT ON VIEW pricing.universe IS
    'The instruments of each data type: what its schedule walks over, and what a backfill of the whole type asks for. Verified or not, none is left out but for a reason.';
COMMENT ON COLUMN pricing.universe.data_type IS 'What may be asked for.';
COMMENT ON COLUMN pricing.universe.symbol IS 'Of what.';
COMMENT ON COLUMN pricing.universe.calendar IS 'Its trading calendar.';
COMMENT ON COLUMN pricing.universe.left_out IS
    'Why schedules and whole backfills leave it out: paused, or unknown_symbol = no answer ever came, and its provider does not know it. NULL = it is asked for.';

ALTER TABLE pricing.backfills ADD COLUMN left_out jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pricing.backfills.left_out IS
    'How many of the instruments were left out, by reason: those of pricing.universe, or no_instrument for a name that is none.';
-- Producers ask queue_room.
DROP FUNCTION IF EXISTS pricing.spent_quota_of(text, integer);
-- It returns one column more.
DROP FUNCTION IF EXISTS pricing.plan_backfill(text, date, date, text[], text);
