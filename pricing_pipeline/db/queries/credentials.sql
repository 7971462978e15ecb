-- name: next_version
-- A version for a row that is about to be sealed; no row for a provider that is not known.
SELECT nextval('pricing.credential_version_seq') FROM pricing.data_collectors p WHERE p.provider = :provider;

-- name: providers
-- Names of all providers.
SELECT provider FROM pricing.data_collectors ORDER BY 1;

-- name: set_limits
-- Set the units that a key's own plan allows.
INSERT INTO pricing.provider_key_limits (provider, key_name, name, units)
SELECT :provider, :key_name, n.name, n.units
FROM unnest(CAST(:names AS text[]), CAST(:units AS integer[])) AS n (name, units) ORDER BY n.name
ON CONFLICT ON CONSTRAINT provider_key_limits_pkey DO UPDATE SET units = excluded.units;

-- name: reseal
-- Replace a row by the same secret, sealed again; no row when it has changed meanwhile.
UPDATE pricing.provider_credentials
SET (row_version, master_key_id, key_nonce, wrapped_key, secret_nonce, ciphertext, sealed_at)
    = (:row_version, :master_key_id, :key_nonce, :wrapped_key, :secret_nonce, :ciphertext, pricing.clock())
WHERE (provider, key_name) = (:provider, :key_name) AND row_version = :found_version
RETURNING true;

-- name: use_name
-- Let calls be made with a key of this name.
UPDATE pricing.provider_keys SET is_active = true WHERE (provider, key_name) = (:provider, :key_name);

-- name: stored
-- All sealed keys, of one provider or of all, with what is known of them.
SELECT c.provider, c.key_name, c.row_version, c.master_key_id, c.key_nonce, c.wrapped_key, c.secret_nonce, c.ciphertext,
       c.created_at, c.replaced_at, c.sealed_at, k.is_active
FROM pricing.provider_credentials c JOIN pricing.provider_keys k USING (provider, key_name)
WHERE coalesce(c.provider = CAST(:provider AS text), true) ORDER BY 1, 2;
