-- Prices of coins are in USDT, USDC or FDUSD as often as in dollars. Which codes there are, the providers' parsers know
-- (providers/currencies.py); here only what is no code at all is refused.

ALTER TABLE pricing.instruments DROP CONSTRAINT currency_is_iso,
    ADD CONSTRAINT currency_is_code CHECK (currency ~ '^[A-Z]{3,5}$');

COMMENT ON COLUMN pricing.instruments.currency IS
    'ISO 4217 or a coin (USDT); learned from the first answer where it is not given. Values in another currency are held.';
COMMENT ON COLUMN pricing.latest_prices.currency IS 'ISO 4217 or a coin (USDT); NULL = the source names none.';
COMMENT ON COLUMN pricing.price_history.currency IS 'ISO 4217 or a coin (USDT); NULL = the source names none.';
COMMENT ON COLUMN pricing.price_revisions.currency IS 'As in price_history.';
COMMENT ON COLUMN pricing.corporate_actions.currency IS
    'Of a dividend: ISO 4217 or a coin (USDT); NULL = that of the prices.';
