-- A client's read locks nothing: what it asks for is counted where workers serve it.

ALTER TABLE pricing.pair_requests ADD COLUMN user_id pricing.user_name;
COMMENT ON COLUMN pricing.pair_requests.user_id IS 'Whose read it is, against whose allowance it counts; NULL = no read of a client.';
DROP FUNCTION IF EXISTS pricing.request_pairs(text, text[], text[]);
DROP FUNCTION IF EXISTS pricing.admit_reads(text, integer);

CREATE TABLE pricing.read_charges (
    user_id    pricing.user_name,
    charged_at timestamptz,
    pairs      integer NOT NULL CONSTRAINT pairs_are_positive CHECK (pairs > 0),
    PRIMARY KEY (user_id, charged_at)
);
COMMENT ON TABLE pricing.read_charges IS
    'What workers have served of the reads of each user in the last minute. Only workers write it, one at a time, so no client keeps it locked.';
COMMENT ON COLUMN pricing.read_charges.user_id IS 'Who has read what had to be fetched.';
COMMENT ON COLUMN pricing.read_charges.charged_at IS 'When it was served.';
COMMENT ON COLUMN pricing.read_charges.pairs IS 'How many pairs that were.';
COMMENT ON COLUMN pricing.user_allowances.user_id IS 'Who has begun to watch or hold something lately.';

-- Funds that trade on exchanges follow those.
CREATE OR REPLACE FUNCTION pricing.choose_calendar() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- An exchange that no rule knows is not America: .XY says where, and we do not know when that trades. A single
    -- letter is a class of shares, BRK.B.
    NEW.calendar := (
        SELECT r.calendar FROM pricing.calendar_rules r
        WHERE r.asset_class IN (NEW.asset_class, CASE NEW.asset_class WHEN 'etf' THEN 'equity' END)
          AND NEW.symbol LIKE '%' || r.ending AND r.currency IN ('', NEW.currency)
          AND (r.ending <> '' OR NEW.asset_class NOT IN ('equity', 'etf') OR NEW.symbol !~ '(\.[A-Z]{2,}|:[A-Z]+)$')
        ORDER BY r.asset_class = NEW.asset_class DESC, length(r.ending) DESC, r.currency DESC LIMIT 1);
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.choose_calendar() IS
    'Gives an instrument the calendar that the rules name, unless it has one. Where none of its own fits, an ETF follows those of equities.';
UPDATE pricing.instruments SET currency = currency WHERE asset_class = 'etf' AND calendar IS NULL;

-- What is watched or stored is found by class and symbol.
CREATE FUNCTION pricing.keep_class() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF EXISTS (
        SELECT FROM pricing.data_type_registry r
        WHERE r.asset_class = OLD.asset_class
          AND (EXISTS (SELECT FROM pricing.demand d WHERE (d.data_type, d.symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.active_subscriptions a WHERE (a.data_type, a.symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.holdings h WHERE (h.data_type, h.active_symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.latest_prices l WHERE (l.data_type, l.symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = r.data_type AND h.symbol = OLD.symbol))) THEN
        RAISE EXCEPTION 'the % % is watched, held or priced, so it stays one', OLD.asset_class, OLD.symbol
            USING HINT = 'Add an instrument of the other class or name, watch that, and pause this one.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.keep_class() IS
    'Refuses another class or symbol for an instrument that is watched, held or priced: its pairs would go on without an instrument.';
CREATE TRIGGER keep_class BEFORE UPDATE OF asset_class, symbol ON pricing.instruments
    FOR EACH ROW WHEN ((OLD.asset_class, OLD.symbol) IS DISTINCT FROM (NEW.asset_class, NEW.symbol)) EXECUTE FUNCTION pricing.keep_class();

-- A request may be of nobody's read; the grants make this policy again, for all tables of users alike.
DROP POLICY IF EXISTS reader_sees_own ON pricing.active_subscriptions;
DROP POLICY IF EXISTS reader_sees_own ON pricing.holdings;
DROP POLICY IF EXISTS reader_sees_own ON pricing.user_allowances;
