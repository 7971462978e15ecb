-- Prices that people and programs want to be told of.
CREATE TABLE pricing.price_alerts (
    price_alert_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recipient      text NOT NULL REFERENCES pricing.recipients (recipient) ON DELETE CASCADE,
    data_type      text NOT NULL REFERENCES pricing.data_type_registry (data_type) ON DELETE CASCADE,
    symbol         text,
    condition      text NOT NULL CONSTRAINT price_condition_is_known CHECK (condition IN ('above', 'below', 'moved', 'stale', 'each')),
    threshold      numeric CONSTRAINT threshold_is_positive CHECK (threshold > 0 AND threshold <= 1e18 AND scale(threshold) <= 12),
    lasts          interval CONSTRAINT lasts_is_sane CHECK (lasts BETWEEN '1 minute' AND '30 days'),
    pace           interval CONSTRAINT pace_is_sane CHECK (pace BETWEEN '1 second' AND '1 hour'),
    is_beyond      boolean NOT NULL DEFAULT false,
    seen           numeric,
    seen_at        timestamptz,
    reference      numeric,
    reference_at   timestamptz,
    told_at        timestamptz,
    created_at     timestamptz NOT NULL,
    created_by     text NOT NULL,
    CONSTRAINT only_each_is_of_all_symbols CHECK (symbol IS NOT NULL OR condition = 'each'),
    CONSTRAINT price_condition_has_its_values CHECK ((condition IN ('above', 'below', 'moved')) = (threshold IS NOT NULL)
        AND (condition = 'stale') = (lasts IS NOT NULL) AND (condition = 'each') = (pace IS NOT NULL)),
    CONSTRAINT seen_price_has_time CHECK ((seen IS NULL) = (seen_at IS NULL) AND (reference IS NULL) = (reference_at IS NULL))
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.price_alerts IS 'Who is to be told of which prices, and what was last seen and told.';
COMMENT ON COLUMN pricing.price_alerts.price_alert_id IS 'In the order in which they were added.';
COMMENT ON COLUMN pricing.price_alerts.recipient IS 'Who is told.';
COMMENT ON COLUMN pricing.price_alerts.data_type IS 'Of prices of this data type.';
COMMENT ON COLUMN pricing.price_alerts.symbol IS 'Of this symbol; NULL = of all symbols of the data type.';
COMMENT ON COLUMN pricing.price_alerts.condition IS
    'above, below = the price crosses the threshold; moved = by so many percent; stale = for so long; each = every new price.';
COMMENT ON COLUMN pricing.price_alerts.threshold IS 'A price, or for moved a percentage.';
COMMENT ON COLUMN pricing.price_alerts.lasts IS 'For how long a pair is stale before it is told.';
COMMENT ON COLUMN pricing.price_alerts.pace IS 'New prices are told together, at most once in this time.';
COMMENT ON COLUMN pricing.price_alerts.is_beyond IS 'Whether the last price was beyond the threshold, or the pair was stale for too long: that was told.';
COMMENT ON COLUMN pricing.price_alerts.seen IS 'The last price that was looked at; NULL = none yet.';
COMMENT ON COLUMN pricing.price_alerts.seen_at IS 'Its time at the source.';
COMMENT ON COLUMN pricing.price_alerts.reference IS 'For moved, the price from which the move counts.';
COMMENT ON COLUMN pricing.price_alerts.reference_at IS 'Its time at the source.';
COMMENT ON COLUMN pricing.price_alerts.told_at IS 'When its recipient was last told.';
COMMENT ON COLUMN pricing.price_alerts.created_at IS 'When it was added.';
COMMENT ON COLUMN pricing.price_alerts.created_by IS 'Who added it.';
CREATE UNIQUE INDEX price_alerts_once ON pricing.price_alerts (recipient, data_type, symbol, condition, threshold, lasts) NULLS NOT DISTINCT;
COMMENT ON INDEX pricing.price_alerts_once IS 'Nobody is told twice of one thing.';
CREATE INDEX price_alerts_of_pair ON pricing.price_alerts (data_type, symbol);
COMMENT ON INDEX pricing.price_alerts_of_pair IS 'What asks for a price that is being stored.';

CREATE TABLE pricing.price_events (
    event_id       bigint GENERATED ALWAYS AS IDENTITY,
    -- No reference: it would wait for whoever has the alert's row locked, and a price waits for nobody.
    price_alert_id bigint NOT NULL,
    symbol         text NOT NULL,
    amount         bigint NOT NULL,
    scale          smallint NOT NULL,
    currency       text,
    observed_at    timestamptz NOT NULL,
    provider       text NOT NULL,
    call_id        bigint NOT NULL,
    stored_at      timestamptz NOT NULL,
    PRIMARY KEY (price_alert_id, event_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE pricing.price_events IS 'New prices that an alert has not looked at yet: a row for each price and alert that asks for it, added in the transaction that stores the price.';
COMMENT ON COLUMN pricing.price_events.event_id IS 'Rises; of one pair in the order in which its prices were stored.';
COMMENT ON COLUMN pricing.price_events.price_alert_id IS 'The alert that asks for it.';
COMMENT ON COLUMN pricing.price_events.symbol IS 'The symbol whose price it is.';
COMMENT ON COLUMN pricing.price_events.amount IS 'The price in units of its last decimal.';
COMMENT ON COLUMN pricing.price_events.scale IS 'How many decimals the price has.';
COMMENT ON COLUMN pricing.price_events.currency IS 'NULL = the provider named none.';
COMMENT ON COLUMN pricing.price_events.observed_at IS 'The price''s time at the source.';
COMMENT ON COLUMN pricing.price_events.provider IS 'Who sent it.';
COMMENT ON COLUMN pricing.price_events.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.price_events.stored_at IS 'When it was stored.';
