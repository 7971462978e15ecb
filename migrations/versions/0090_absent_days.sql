-- Trading days for which a provider has answered without a value are asked for again, less and less often.
CREATE TABLE pricing.absent_days (
    data_type text NOT NULL,
    symbol    text NOT NULL,
    day       date NOT NULL,
    asked     integer NOT NULL DEFAULT 0,
    ask_at    timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol, day)
);
COMMENT ON TABLE pricing.absent_days IS
    'Trading days, recent ones or between stored ones, that an answer should have had a value of and had none, '
    'until a value comes.';
COMMENT ON COLUMN pricing.absent_days.data_type IS 'What is missing.';
COMMENT ON COLUMN pricing.absent_days.symbol IS 'Of what it is missing.';
COMMENT ON COLUMN pricing.absent_days.day IS 'The trading day.';
COMMENT ON COLUMN pricing.absent_days.asked IS 'How often it was asked for again.';
COMMENT ON COLUMN pricing.absent_days.ask_at IS 'When it is asked for next, if no answer brings it before.';
CREATE INDEX absent_days_due ON pricing.absent_days (ask_at);

DROP FUNCTION IF EXISTS pricing.fitting_refetches();
DROP FUNCTION IF EXISTS pricing.refetches();

-- A price that goes to and fro around a threshold need not be told each time.
ALTER TABLE pricing.price_alerts
    ADD COLUMN hysteresis numeric NOT NULL DEFAULT 0
        CONSTRAINT hysteresis_is_sane CHECK (hysteresis >= 0 AND hysteresis <= 1e18 AND scale(hysteresis) <= 12),
    ADD COLUMN hysteresis_in text NOT NULL DEFAULT 'amount'
        CONSTRAINT hysteresis_unit_is_known CHECK (hysteresis_in IN ('amount', 'percent')),
    ADD CONSTRAINT only_thresholds_have_hysteresis CHECK (hysteresis = 0 OR condition IN ('above', 'below')),
    ADD CONSTRAINT hysteresis_leaves_a_way_back CHECK (
        hysteresis = 0 OR CASE hysteresis_in WHEN 'percent' THEN hysteresis < 100 ELSE condition <> 'above' OR hysteresis < threshold END);
COMMENT ON COLUMN pricing.price_alerts.hysteresis IS
    'How far beyond the threshold a price must come back before a crossing is told again; 0 = to the threshold.';
COMMENT ON COLUMN pricing.price_alerts.hysteresis_in IS
    'What hysteresis is: an amount of the price, or percent of the threshold.';
DROP FUNCTION IF EXISTS pricing.take_price_events(integer);
