-- Identifiers by which people know an instrument without knowing its symbol.
ALTER TABLE pricing.instruments ADD COLUMN isin text
    CONSTRAINT isin_looks_like_one CHECK (isin ~ '^[A-Z]{2}[A-Z0-9]{9}[0-9]$');
COMMENT ON COLUMN pricing.instruments.isin IS
    'Its ISIN (ISO 6166), as a person gave it; several exchanges may trade what it names. NULL = not known.';
ALTER TABLE pricing.instruments ADD COLUMN figi text
    CONSTRAINT figi_looks_like_one CHECK (figi ~ '^[B-DF-HJ-NP-TV-Z]{2}G[B-DF-HJ-NP-TV-Z0-9]{8}[0-9]$');
COMMENT ON COLUMN pricing.instruments.figi IS 'Its FIGI (ANSI X9.145), as a person gave it; NULL = not known.';
CREATE INDEX instruments_by_isin ON pricing.instruments (isin) WHERE isin IS NOT NULL;
CREATE INDEX instruments_by_figi ON pricing.instruments (figi) WHERE figi IS NOT NULL;

-- Symbols are judged by pricing.judge_symbols alone.
DROP FUNCTION IF EXISTS pricing.meant_symbol(text, text);
DROP FUNCTION IF EXISTS pricing.say_meant(text, text);
DROP FUNCTION IF EXISTS pricing.check_symbols(text[]);

CREATE TABLE pricing.symbol_aliases (
    asset_class text NOT NULL,
    alias       text NOT NULL,
    symbol      text NOT NULL,
    PRIMARY KEY (asset_class, alias),
    CONSTRAINT alias_has_instrument FOREIGN KEY (asset_class, symbol)
        REFERENCES pricing.instruments (asset_class, symbol) ON DELETE CASCADE
);
CREATE INDEX symbol_aliases_of_instrument ON pricing.symbol_aliases (asset_class, symbol);
COMMENT ON TABLE pricing.symbol_aliases IS
    'Symbols of instruments that were merged into others, which they mean now. No rule of spelling leads to them.';
COMMENT ON COLUMN pricing.symbol_aliases.asset_class IS 'The class of both.';
COMMENT ON COLUMN pricing.symbol_aliases.alias IS 'What somebody may still write.';
COMMENT ON COLUMN pricing.symbol_aliases.symbol IS 'The instrument that is meant.';
