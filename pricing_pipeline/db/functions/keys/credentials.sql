-- Storing sealed keys. What arrives here is encrypted; only the owner may write it. Lock order: provider_keys,
-- provider_credentials.

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
        DO UPDATE SET is_active = true, blocked_until = NULL, blocked_reason = NULL, throttles = 0,
                      reported_left = NULL, reported_at = NULL, foreign_units = 0, foreign_until = NULL;
    DELETE FROM pricing.shown_limits s WHERE (s.provider, s.key_name) = (wanted_provider, wanted_key);
    INSERT INTO pricing.provider_credentials AS c
        (provider, key_name, row_version, master_key_id, key_nonce, wrapped_key, secret_nonce, ciphertext,
         created_at, sealed_at)
    VALUES (wanted_provider, wanted_key, version, store_credential.master_key_id, nonce_of_key, key_wrapped,
            nonce_of_secret, secret_sealed, now_, now_)
    ON CONFLICT ON CONSTRAINT provider_credentials_pkey DO UPDATE
    SET row_version = excluded.row_version, master_key_id = excluded.master_key_id, key_nonce = excluded.key_nonce,
        wrapped_key = excluded.wrapped_key, secret_nonce = excluded.secret_nonce, ciphertext = excluded.ciphertext,
        replaced_at = now_, sealed_at = now_
    RETURNING c.replaced_at IS NOT NULL INTO replaced;
    RETURN replaced;
END $$;
COMMENT ON FUNCTION pricing.store_credential(text, text, bigint, text, bytea, bytea, bytea, bytea) IS
    'Stores a sealed key, new or as a replacement, and activates its name; true = it replaced one.';


CREATE OR REPLACE FUNCTION pricing.remove_credential(wanted_provider text, wanted_key text) RETURNS boolean
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.provider_keys k SET is_active = false
    WHERE (k.provider, k.key_name) = (wanted_provider, wanted_key)
      AND EXISTS (SELECT FROM pricing.provider_credentials c
                  WHERE (c.provider, c.key_name) = (wanted_provider, wanted_key));
    DELETE FROM pricing.provider_credentials c WHERE (c.provider, c.key_name) = (wanted_provider, wanted_key);
    RETURN FOUND;
END $$;
COMMENT ON FUNCTION pricing.remove_credential(text, text) IS
    'Deletes a stored key and deactivates its name; false = none is stored.';


CREATE OR REPLACE FUNCTION pricing.keep_key_at_host() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.provider_credentials c WHERE c.provider = NEW.provider) THEN
        RAISE EXCEPTION 'a key of % is stored, which was given for % and would go to %. Remove it first, '
                        'with key remove', NEW.provider, OLD.host, NEW.host
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.keep_key_at_host() IS
    'Refuses to send a stored key to another host than the one it was given for.';

CREATE TRIGGER keep_key_at_host
    BEFORE UPDATE ON pricing.provider_declarations
    FOR EACH ROW WHEN (NEW.host <> OLD.host OR NEW.provider <> OLD.provider)
    EXECUTE FUNCTION pricing.keep_key_at_host();
