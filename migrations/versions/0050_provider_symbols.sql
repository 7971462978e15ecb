-- One symbol, many spellings: providers have rules for them, and people may correct a rule for one symbol.
CREATE TABLE pricing.provider_symbols (
    provider    text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    asset_class text NOT NULL,
    symbol      text NOT NULL,
    spelling    text NOT NULL CONSTRAINT spelling_is_sane CHECK (spelling ~ '^[!-+\--~]{1,64}$'),
    PRIMARY KEY (provider, asset_class, symbol),
    CONSTRAINT spelling_is_of_one_symbol UNIQUE (provider, asset_class, spelling),
    CONSTRAINT spelling_has_instrument FOREIGN KEY (asset_class, symbol) REFERENCES pricing.instruments(asset_class, symbol) ON DELETE CASCADE
);
CREATE INDEX provider_symbols_of_instrument ON pricing.provider_symbols (asset_class, symbol);
COMMENT ON TABLE pricing.provider_symbols IS
    'Spellings that people have given (`instrument spell`). Where none is given, the rule of the provider holds.';
COMMENT ON COLUMN pricing.provider_symbols.provider IS 'Who spells it so.';
COMMENT ON COLUMN pricing.provider_symbols.asset_class IS 'Of the instrument.';
COMMENT ON COLUMN pricing.provider_symbols.symbol IS 'The instrument''s canonical symbol.';
COMMENT ON COLUMN pricing.provider_symbols.spelling IS 'What the provider is asked for.';

CREATE FUNCTION pricing.spelling_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    spelled pricing.provider_symbols := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    -- With its instrument everything goes that could wait.
    IF EXISTS (SELECT FROM pricing.instruments i WHERE (i.asset_class, i.symbol) = (spelled.asset_class, spelled.symbol)) THEN
        PERFORM pricing.forget_route(r.data_type, spelled.symbol) FROM pricing.data_type_registry r
        WHERE r.asset_class = spelled.asset_class;
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.spelling_changed() IS
    'A provider may know under the new spelling what it did not know: ends the back-off of the instrument''s pairs, as a change of their route does.';

CREATE TRIGGER spelling_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_symbols FOR EACH ROW
    EXECUTE FUNCTION pricing.spelling_changed();

-- A share of an exchange trades when the exchange does, whether a provider's code or the MIC names it.
INSERT INTO pricing.calendar_rules (asset_class, ending, calendar)
SELECT DISTINCT r.asset_class, ':' || r.calendar, r.calendar FROM pricing.calendar_rules r
WHERE r.asset_class = 'equity' AND r.ending <> '' ON CONFLICT DO NOTHING;

COMMENT ON COLUMN pricing.instruments.symbol IS 'Its canonical symbol: docs/providers.md. Providers may spell it otherwise.';

-- What a provider did not know because it was asked in another spelling than its own may be asked of it again.
DELETE FROM pricing.route_refusals WHERE kind = 'unknown_symbol' AND symbol ~ '[./:]';
