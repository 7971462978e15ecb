-- Price alerts of users: which recipients take them, and how many one user may have.
ALTER TABLE pricing.recipients
    ADD COLUMN user_id text CONSTRAINT recipient_user_is_sane CHECK (length(user_id) BETWEEN 1 AND 200),
    ADD COLUMN takes_any_user boolean NOT NULL DEFAULT false,
    -- squawk-ignore ban-drop-not-null
    ALTER COLUMN least_severity DROP NOT NULL,
    ADD CONSTRAINT recipient_is_of_one_or_any CHECK (user_id IS NULL OR NOT takes_any_user),
    ADD CONSTRAINT users_are_told_of_no_trouble CHECK ((least_severity IS NULL) = (user_id IS NOT NULL OR takes_any_user));
COMMENT ON COLUMN pricing.recipients.user_id IS 'The user whose price alerts it takes; NULL = no single one.';
COMMENT ON COLUMN pricing.recipients.takes_any_user IS 'Whether it takes the price alerts of any user, as an application''s does.';
COMMENT ON COLUMN pricing.recipients.least_severity IS
    'P0 = told of alerts of P0 alone; P1 = of P0 and P1; P2 = of all; NULL = of none, because it is for users.';

ALTER TABLE pricing.price_alerts
    ADD COLUMN user_id text CONSTRAINT price_alert_user_is_sane CHECK (length(user_id) BETWEEN 1 AND 200),
    ADD CONSTRAINT a_user_names_a_symbol CHECK (user_id IS NULL OR symbol IS NOT NULL),
    ADD CONSTRAINT a_user_is_told_once_a_minute CHECK (user_id IS NULL OR pace IS NULL OR pace >= interval '1 minute');
COMMENT ON COLUMN pricing.price_alerts.user_id IS 'The user who asked for it over HTTP; NULL = added with the command line.';
DROP INDEX pricing.price_alerts_once;
CREATE UNIQUE INDEX price_alerts_once ON pricing.price_alerts
    (recipient, data_type, symbol, condition, threshold, lasts, user_id) NULLS NOT DISTINCT;
CREATE INDEX price_alerts_of_user ON pricing.price_alerts (user_id, price_alert_id) WHERE user_id IS NOT NULL;

ALTER TABLE pricing.user_caps
    ADD COLUMN price_alerts_per_user integer NOT NULL DEFAULT 100
        CONSTRAINT price_alerts_per_user_is_positive CHECK (price_alerts_per_user > 0);
COMMENT ON COLUMN pricing.user_caps.price_alerts_per_user IS 'Price alerts one user may have.';

-- They return the user, too.
DROP FUNCTION IF EXISTS pricing.take_price_events(integer);
DROP FUNCTION IF EXISTS pricing.take_stale_pairs();
