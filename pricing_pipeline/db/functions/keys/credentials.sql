-- Storing sealed keys. What arrives here is encrypted; only the owner may write it. Lock order: provider_keys, provider_credentials.

CREATE OR REPLACE FUNCTION pricing.store_credential(
    wanted_provider text, wanted_key text, version bigint, master_key_id text, nonce_of_key bytea, key_wrapped bytea,
    nonce_of_secret bytea, secret_sealed bytea) RETURNS boolean
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    now_ timestamptz := pricing.clock();
    replaced boolean;
BEGIN
    -- What a provider said of the old key says nothing about the new one.
    INSERT INTO pricing.provider_keys AS k (provider, key_name) VALUES (wanted_provider, wanted_key)
    ON CONFLICT ON CONSTRAINT provider_keys_pkey
        DO UPDATE SET is_active = true, blocked_until = NULL, blocked_reason = NULL, throttles = 0, reported_left = NULL, reported_at = NULL,
                      foreign_units = 0, foreign_until = NULL;
    DELETE FROM pricing.shown_limits s WHERE (s.provider, s.key_name) = (wanted_provider, wanted_key);
    INSERT INTO pricing.provider_credentials AS c
        (provider, key_name, row_version, master_key_id, key_nonce, wrapped_key, secret_nonce, ciphertext, created_at, sealed_at)
    VALUES (wanted_provider, wanted_key, version, store_credential.master_key_id, nonce_of_key, key_wrapped, nonce_of_secret, secret_sealed, now_, now_)
    ON CONFLICT ON CONSTRAINT provider_credentials_pkey DO UPDATE
    SET row_version = excluded.row_version, master_key_id = excluded.master_key_id, key_nonce = excluded.key_nonce,
        wrapped_key = excluded.wrapped_key, secret_nonce = excluded.secret_nonce, ciphertext = excluded.ciphertext,
        replaced_at = now_, sealed_at = now_
    RETURNING c.replaced_at IS NOT NULL INTO replaced;
    RETURN replaced;
END $$;
COMMENT ON FUNCTION pricing.store_credential(text, text, bigint, text, bytea, bytea, bytea, bytea) IS
    'Stores a sealed key, new or in the place of another, and makes its name usable: active, without pauses. True when it replaced one.';


CREATE OR REPLACE FUNCTION pricing.set_key_limits(wanted_provider text, wanted_key text, names text[], units integer[]) RETURNS void
LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO pricing.provider_key_limits (provider, key_name, name, units)
    SELECT wanted_provider, wanted_key, n.name, n.units FROM unnest(names, units) AS n (name, units) ORDER BY n.name
    ON CONFLICT ON CONSTRAINT provider_key_limits_pkey DO UPDATE SET units = excluded.units
$$;
COMMENT ON FUNCTION pricing.set_key_limits(text, text, text[], integer[]) IS 'Says what a key''s own plan allows, for limits of its provider by name.';


CREATE OR REPLACE FUNCTION pricing.reseal_credential(
    wanted_provider text, wanted_key text, found_version bigint, version bigint, master_key_id text, nonce_of_key bytea, key_wrapped bytea,
    nonce_of_secret bytea, secret_sealed bytea) RETURNS boolean
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.provider_credentials c
    SET row_version = version, master_key_id = reseal_credential.master_key_id, key_nonce = nonce_of_key, wrapped_key = key_wrapped,
        secret_nonce = nonce_of_secret, ciphertext = secret_sealed, sealed_at = pricing.clock()
    WHERE (c.provider, c.key_name) = (wanted_provider, wanted_key) AND c.row_version = found_version;
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION pricing.reseal_credential(text, text, bigint, bigint, text, bytea, bytea, bytea, bytea) IS
    'Puts the same secret, sealed anew, in the place of found_version; false when the row is no longer that one.';


CREATE OR REPLACE FUNCTION pricing.remove_credential(wanted_provider text, wanted_key text) RETURNS boolean
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.provider_keys k SET is_active = false
    WHERE (k.provider, k.key_name) = (wanted_provider, wanted_key)
      AND EXISTS (SELECT FROM pricing.provider_credentials c WHERE (c.provider, c.key_name) = (wanted_provider, wanted_key));
    DELETE FROM pricing.provider_credentials c WHERE (c.provider, c.key_name) = (wanted_provider, wanted_key);
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION pricing.remove_credential(text, text) IS 'Forgets a stored key and makes its name inactive; false when none is stored.';
