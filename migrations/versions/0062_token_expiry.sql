-- Tokens that end by themselves.
ALTER TABLE pricing.api_tokens ADD COLUMN expires_at timestamptz;
COMMENT ON COLUMN pricing.api_tokens.expires_at IS 'When it ends by itself: requests with it are refused from then on. NULL = it lasts until it is removed.';
