-- Trading calendars, gaps, and what a backfill costs.

-- ── When markets trade ─────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.calendars (
    calendar      text PRIMARY KEY CONSTRAINT calendar_is_plain_name CHECK (calendar ~ '^[A-Z0-9][A-Z0-9/]{1,11}$'),
    description   text NOT NULL DEFAULT '',
    sessions_from date,
    sessions_to   date,
    filled_at     timestamptz,
    CONSTRAINT known_span_is_upright CHECK ((sessions_from IS NULL) = (sessions_to IS NULL) AND sessions_from <= sessions_to)
);
COMMENT ON TABLE pricing.calendars IS
    'Trading calendars, by the ISO 10383 code of their exchange. FX (the week of foreign exchange) and 24/7 are our own.';
COMMENT ON COLUMN pricing.calendars.calendar IS 'Its name: what exchange-calendars knows it by.';
COMMENT ON COLUMN pricing.calendars.description IS 'For people.';
COMMENT ON COLUMN pricing.calendars.sessions_from IS 'First day whose sessions are known; NULL = none are yet.';
COMMENT ON COLUMN pricing.calendars.sessions_to IS 'Last day whose sessions are known. Beyond it only TTLs count.';
COMMENT ON COLUMN pricing.calendars.filled_at IS 'When its sessions were last written.';

CREATE TABLE pricing.calendar_sessions (
    calendar  text NOT NULL REFERENCES pricing.calendars ON DELETE CASCADE,
    session   date NOT NULL,
    opens_at  timestamptz NOT NULL,
    closes_at timestamptz NOT NULL,
    PRIMARY KEY (calendar, session),
    CONSTRAINT session_is_upright CHECK (opens_at < closes_at)
);
CREATE INDEX calendar_sessions_closing ON pricing.calendar_sessions (calendar, closes_at) INCLUDE (session, opens_at);
COMMENT ON TABLE pricing.calendar_sessions IS 'Each day on which a market trades, holidays left out, half days with their early close.';
COMMENT ON COLUMN pricing.calendar_sessions.calendar IS 'Whose session.';
COMMENT ON COLUMN pricing.calendar_sessions.session IS 'Its day, in the exchange''s own zone: the day that daily values carry.';
COMMENT ON COLUMN pricing.calendar_sessions.opens_at IS 'When trading begins.';
COMMENT ON COLUMN pricing.calendar_sessions.closes_at IS 'When trading ends.';

CREATE TABLE pricing.calendar_rules (
    asset_class text NOT NULL,
    ending      text NOT NULL DEFAULT '',
    currency    text NOT NULL DEFAULT '',
    calendar    text NOT NULL REFERENCES pricing.calendars,
    PRIMARY KEY (asset_class, ending, currency)
);
COMMENT ON TABLE pricing.calendar_rules IS
    'Which calendar an instrument gets when it becomes known: the rule with the longest fitting ending, and then one of its currency. No rule, no calendar.';
COMMENT ON COLUMN pricing.calendar_rules.asset_class IS 'Instruments of this class.';
COMMENT ON COLUMN pricing.calendar_rules.ending IS 'How their symbol ends, as providers mark an exchange; empty = any that marks none.';
COMMENT ON COLUMN pricing.calendar_rules.currency IS 'Their currency; empty = any.';
COMMENT ON COLUMN pricing.calendar_rules.calendar IS 'What they get.';

INSERT INTO pricing.calendars (calendar, description) VALUES
    ('24/7', 'Always: crypto, and what is sold around the clock'), ('FX', 'Foreign exchange: Sunday to Friday, 17:00 in New York'),
    ('XNYS', 'New York Stock Exchange, and Nasdaq with the same days'), ('XLON', 'London Stock Exchange'), ('XETR', 'Xetra'),
    ('XPAR', 'Euronext Paris'), ('XAMS', 'Euronext Amsterdam'), ('XBRU', 'Euronext Brussels'), ('XMIL', 'Borsa Italiana'),
    ('XMAD', 'Bolsa de Madrid'), ('XSTO', 'Nasdaq Stockholm'), ('XSWX', 'SIX Swiss Exchange'), ('XTSE', 'Toronto Stock Exchange'),
    ('XTKS', 'Tokyo Stock Exchange'), ('XHKG', 'Hong Kong Stock Exchange'), ('XASX', 'Australian Securities Exchange'),
    ('XBOM', 'Bombay Stock Exchange, and India''s National Stock Exchange with the same days');

-- A symbol that marks no exchange is American at Twelve Data, Yahoo and FMP alike.
INSERT INTO pricing.calendar_rules (asset_class, ending, currency, calendar) VALUES
    ('equity', '', '', 'XNYS'), ('equity', '.L', '', 'XLON'), ('equity', ':LSE', '', 'XLON'), ('equity', '.DE', '', 'XETR'),
    ('equity', ':XETR', '', 'XETR'), ('equity', '.PA', '', 'XPAR'), ('equity', '.AS', '', 'XAMS'), ('equity', '.BR', '', 'XBRU'),
    ('equity', '.MI', '', 'XMIL'), ('equity', '.MC', '', 'XMAD'), ('equity', '.ST', '', 'XSTO'), ('equity', '.SW', '', 'XSWX'),
    ('equity', '.TO', '', 'XTSE'), ('equity', ':TSX', '', 'XTSE'), ('equity', '.T', '', 'XTKS'), ('equity', '.HK', '', 'XHKG'),
    ('equity', '.AX', '', 'XASX'), ('equity', ':ASX', '', 'XASX'), ('equity', '.NS', '', 'XBOM'), ('equity', ':NSE', '', 'XBOM'),
    ('equity', '.BO', '', 'XBOM'), ('equity', ':BSE', '', 'XBOM'),
    ('fund', '', 'INR', 'XBOM'), ('fund', '', 'USD', 'XNYS'), ('fund', '', 'GBP', 'XLON'), ('fund', '', 'CAD', 'XTSE'),
    ('fx', '', '', 'FX'), ('crypto', '', '', '24/7'), ('inventory', '', '', '24/7');

ALTER TABLE pricing.instruments
    ADD COLUMN calendar text CONSTRAINT instrument_has_calendar REFERENCES pricing.calendars,
    ADD COLUMN listed_on date;
COMMENT ON COLUMN pricing.instruments.calendar IS
    'When it trades or is valued; chosen by pricing.calendar_rules unless given. NULL = not known, so only TTLs count.';
COMMENT ON COLUMN pricing.instruments.listed_on IS
    'First day of trading, where a person has given it; no backfill asks for earlier days. pricing.listed_from also knows what answers have shown.';

CREATE FUNCTION pricing.choose_calendar() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- An exchange that no rule knows is not America: .XY says where, and we do not know when that trades. A single
    -- letter is a class of shares, BRK.B.
    NEW.calendar := (
        SELECT r.calendar FROM pricing.calendar_rules r
        WHERE r.asset_class = NEW.asset_class AND NEW.symbol LIKE '%' || r.ending AND r.currency IN ('', NEW.currency)
          AND (r.ending <> '' OR NEW.asset_class <> 'equity' OR NEW.symbol !~ '(\.[A-Z]{2,}|:[A-Z]+)$')
        ORDER BY length(r.ending) DESC, r.currency DESC LIMIT 1);
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.choose_calendar() IS 'Gives an instrument the calendar that the rules name, unless it has one.';
CREATE TRIGGER choose_calendar BEFORE INSERT OR UPDATE OF currency ON pricing.instruments
    FOR EACH ROW WHEN (NEW.calendar IS NULL) EXECUTE FUNCTION pricing.choose_calendar();
UPDATE pricing.instruments SET currency = currency;

-- ── When values appear ─────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.publish_lags (
    data_type    text NOT NULL,
    symbol       text NOT NULL,
    lag          interval NOT NULL CONSTRAINT lag_is_sane CHECK (lag BETWEEN interval '0' AND interval '24 hours'),
    measurements integer NOT NULL DEFAULT 1,
    learned_at   timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol)
);
COMMENT ON TABLE pricing.publish_lags IS 'How long after a session''s end its daily value appears at the provider, learned for each pair.';
COMMENT ON COLUMN pricing.publish_lags.data_type IS 'Whose values.';
COMMENT ON COLUMN pricing.publish_lags.symbol IS 'Whose values.';
COMMENT ON COLUMN pricing.publish_lags.lag IS 'From the close until the value is asked for.';
COMMENT ON COLUMN pricing.publish_lags.measurements IS 'How many sessions it was learned from.';
COMMENT ON COLUMN pricing.publish_lags.learned_at IS 'When it was last corrected.';

CREATE FUNCTION pricing.usual_publish_lag(fetcher text) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE fetcher WHEN 'nav' THEN interval '6 hours' ELSE interval '15 minutes' END
$$;
COMMENT ON FUNCTION pricing.usual_publish_lag(text) IS 'How long after the close a daily value is looked for while nothing was learned. Funds are valued in the evening.';

CREATE FUNCTION pricing.learn_publish_lag() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    closed timestamptz;
    usual interval;
    known interval;
    seen interval;
BEGIN
    SELECT s.closes_at, pricing.usual_publish_lag(r.fetcher) INTO closed, usual
    FROM pricing.data_type_registry r JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, NEW.symbol)
    JOIN pricing.calendar_sessions s ON (s.calendar, s.session) = (i.calendar, (NEW.observed_at AT TIME ZONE 'UTC')::date)
    WHERE r.data_type = NEW.data_type AND r.fetcher <> 'quote';
    -- What comes before the close is a bar that is still growing.
    IF closed IS NULL OR NEW.fetched_at <= closed THEN
        RETURN NULL;
    END IF;
    SELECT p.lag INTO known FROM pricing.publish_lags p WHERE (p.data_type, p.symbol) = (NEW.data_type, NEW.symbol);
    seen := least(NEW.fetched_at - closed, interval '24 hours');
    IF OLD.fetched_at > closed THEN
        -- It was asked for after the close and was not there yet.
        known := CASE WHEN known IS NULL THEN seen ELSE (known + seen) / 2 END;
    ELSIF seen <= coalesce(known, usual) * 1.25 + interval '10 minutes' THEN
        -- It was there at the first look: next time a little earlier.
        known := coalesce(known, usual) * 0.95;
    ELSE
        RETURN NULL; -- nobody looked until long after
    END IF;
    INSERT INTO pricing.publish_lags AS p (data_type, symbol, lag, learned_at)
    VALUES (NEW.data_type, NEW.symbol, known, NEW.fetched_at)
    ON CONFLICT ON CONSTRAINT publish_lags_pkey
        DO UPDATE SET lag = excluded.lag, measurements = p.measurements + 1, learned_at = excluded.learned_at;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.learn_publish_lag() IS 'Learns from when a daily value first appeared how long after the close to look for it.';
-- Daily values are stamped midnight UTC; quotes end at this condition.
CREATE TRIGGER learn_publish_lag AFTER UPDATE OF observed_at ON pricing.latest_prices
    FOR EACH ROW WHEN (OLD.observed_at < NEW.observed_at AND NEW.observed_at = date_trunc('day', NEW.observed_at, 'UTC'))
    EXECUTE FUNCTION pricing.learn_publish_lag();

-- ── Backfills that people follow ───────────────────────────────────────────────────────────────────────

ALTER TABLE pricing.backfills ADD COLUMN cancelled_at timestamptz;
COMMENT ON COLUMN pricing.backfills.cancelled_at IS 'When a person cancelled it; NULL = nobody did.';
