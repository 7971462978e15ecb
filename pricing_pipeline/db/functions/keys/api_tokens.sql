-- Tokens of the HTTP API. The owner makes and removes them; a worker only says that they were used.

CREATE OR REPLACE FUNCTION pricing.note_token_uses(used bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = '' SET lock_timeout = '1s' AS $$
    UPDATE pricing.api_tokens t SET last_used_at = pricing.clock()
    WHERE t.token_id = ANY (used)
      AND (t.last_used_at < pricing.clock() - interval '1 minute'
           OR t.last_used_at IS NULL
           OR t.last_used_at > pricing.clock())
$$;
COMMENT ON FUNCTION pricing.note_token_uses(bigint[]) IS 'Records that these tokens were just used.';
