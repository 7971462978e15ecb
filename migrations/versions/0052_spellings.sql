-- What a spelling was given for, and instruments that come later under a spelling that another one has.
ALTER TABLE pricing.provider_symbols ADD COLUMN given_at timestamptz NOT NULL DEFAULT now();
COMMENT ON COLUMN pricing.provider_symbols.given_at IS 'When it was given; for older ones, when this column came.';

CREATE FUNCTION pricing.check_given_spelling() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    taken record;
BEGIN
    -- Whoever gives a spelling and whoever adds an instrument at the same time would not see each other.
    LOCK TABLE pricing.instruments IN SHARE ROW EXCLUSIVE MODE;
    SELECT i.asset_class, i.symbol INTO taken FROM pricing.instruments i
    WHERE (i.asset_class, i.symbol) = (NEW.asset_class, NEW.spelling) AND i.symbol <> NEW.symbol AND i.is_active
      AND NOT EXISTS (SELECT FROM pricing.provider_symbols s WHERE (s.provider, s.asset_class, s.symbol) = (NEW.provider, i.asset_class, i.symbol));
    IF FOUND THEN
        RAISE EXCEPTION '% is asked for % as %: two symbols would get one answer', NEW.provider, taken.symbol, NEW.spelling
            USING HINT = pg_catalog.format('`pricing-pipeline instrument spell %1$s --at %2$s --as SPELLING` gives %1$s another one.',
                                           taken.symbol, NEW.provider),
                  ERRCODE = 'check_violation', CONSTRAINT = 'spelling_is_free';
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.check_given_spelling() IS
    'Refuses a spelling that is the symbol of another instrument of the class, and waits for those who add instruments.';
CREATE TRIGGER check_given_spelling AFTER INSERT OR UPDATE OF spelling ON pricing.provider_symbols
    FOR EACH ROW EXECUTE FUNCTION pricing.check_given_spelling();

CREATE FUNCTION pricing.check_new_symbols() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    taken record;
BEGIN
    SELECT s.* INTO taken FROM pricing.provider_symbols s
    JOIN added a ON (a.asset_class, a.symbol) = (s.asset_class, s.spelling)
    WHERE a.symbol <> s.symbol AND a.is_active LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% is asked for % (%) as %, so no other instrument can be called % (%)',
            taken.provider, taken.symbol, taken.asset_class, taken.spelling, taken.spelling, taken.asset_class
            USING HINT = pg_catalog.format('`pricing-pipeline instrument spell %s --at %s --undo` takes that spelling back.',
                                           taken.symbol, taken.provider),
                  ERRCODE = 'check_violation', CONSTRAINT = 'spelling_is_free';
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.check_new_symbols() IS
    'Refuses an instrument whose symbol is how a provider is asked for another one: two would get one answer.';
CREATE TRIGGER check_new_symbols AFTER INSERT ON pricing.instruments REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.check_new_symbols();

-- The other exchanges of domain/exchanges.toml trade by their own days.
INSERT INTO pricing.calendars (calendar, description) VALUES
    ('XCSE', 'Nasdaq Copenhagen'), ('XHEL', 'Nasdaq Helsinki'), ('XOSL', 'Oslo Stock Exchange') ON CONFLICT DO NOTHING;
INSERT INTO pricing.calendar_rules (asset_class, ending, calendar) VALUES
    ('equity', '.CO', 'XCSE'), ('equity', ':XCSE', 'XCSE'), ('equity', '.HE', 'XHEL'), ('equity', ':XHEL', 'XHEL'),
    ('equity', '.OL', 'XOSL'), ('equity', ':XOSL', 'XOSL'), ('equity', ':XNSE', 'XBOM') ON CONFLICT DO NOTHING;

-- While nobody watches, a claim that asks what is watched reads none of the pairs that are only held.
CREATE INDEX demand_watched ON pricing.demand (data_type) WHERE NOT is_background;
