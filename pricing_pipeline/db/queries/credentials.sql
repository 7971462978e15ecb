-- name: next_version
-- A version for a row that is about to be sealed; no row for a provider that is not known.
SELECT nextval('pricing.credential_version_seq') FROM pricing.data_collectors p WHERE p.provider = :provider;

-- name: providers
-- Names of all providers.
SELECT provider FROM pricing.data_collectors ORDER BY 1;

-- name: store
-- Store a sealed key; true when it replaced one.
SELECT pricing.store_credential(:provider, :key_name, :row_version, :master_key_id, :key_nonce, :wrapped_key,
                                :secret_nonce, :ciphertext);

-- name: set_limits
-- Say what a key's own plan allows.
INSERT INTO pricing.provider_key_limits (provider, key_name, name, units)
SELECT :provider, :key_name, n.name, n.units
FROM unnest(CAST(:names AS text[]), CAST(:units AS integer[])) AS n (name, units) ORDER BY n.name
ON CONFLICT ON CONSTRAINT provider_key_limits_pkey DO UPDATE SET units = excluded.units;

-- name: reseal
-- Replace a row by the same secret, sealed again; false when it has changed meanwhile.
SELECT pricing.reseal_credential(:provider, :key_name, :found_version, :row_version, :master_key_id, :key_nonce,
                                 :wrapped_key, :secret_nonce, :ciphertext);

-- name: remove
-- Forget a stored key; false when none is stored.
SELECT pricing.remove_credential(:provider, :key_name);

-- name: use_name
-- Let calls be made with a key of this name.
UPDATE pricing.provider_keys SET is_active = true WHERE (provider, key_name) = (:provider, :key_name);

-- name: stored
-- All sealed keys, of one provider or of all, with what is known of them.
SELECT c.provider, c.key_name, c.row_version, c.master_key_id, c.key_nonce, c.wrapped_key, c.secret_nonce, c.ciphertext,
       c.created_at, c.replaced_at, c.sealed_at, k.is_active
FROM pricing.provider_credentials c JOIN pricing.provider_keys k USING (provider, key_name)
WHERE coalesce(c.provider = CAST(:provider AS text), true) ORDER BY 1, 2;

-- name: warn
-- Note that a stored key cannot be used.
SELECT pricing.warn('provider key', :about, :message, 'XX001');
