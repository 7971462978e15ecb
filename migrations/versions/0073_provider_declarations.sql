-- Providers that are declared instead of coded.
CREATE TABLE pricing.provider_declarations (
    provider    text PRIMARY KEY REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    host        text NOT NULL UNIQUE CONSTRAINT host_is_plain CHECK (host ~ '^[a-z0-9.-]{1,253}$'),
    content     text NOT NULL CONSTRAINT content_is_short CHECK (length(content) BETWEEN 1 AND 64000),
    declared_at timestamptz NOT NULL DEFAULT pricing.clock()
);
COMMENT ON TABLE pricing.provider_declarations IS
    'Declarations of providers (`provider declare`). A provider without one is part of the code. Workers make calls and read answers as they say.';
COMMENT ON COLUMN pricing.provider_declarations.provider IS 'Who is declared.';
COMMENT ON COLUMN pricing.provider_declarations.host IS 'Host of its base URL, where its keys go; no other provider has it.';
COMMENT ON COLUMN pricing.provider_declarations.content IS 'The file, in YAML, as it was declared.';
COMMENT ON COLUMN pricing.provider_declarations.declared_at IS 'When it was last declared.';

CREATE FUNCTION pricing.keep_key_at_host() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.provider_credentials c WHERE c.provider = NEW.provider) THEN
        RAISE EXCEPTION 'a key of % is stored, which was given for % and would go to %. Remove it first, with key remove', NEW.provider, OLD.host, NEW.host
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.keep_key_at_host() IS 'A stored key is never sent to another host than the one for which it was given.';

CREATE TRIGGER keep_key_at_host BEFORE UPDATE ON pricing.provider_declarations FOR EACH ROW
    WHEN (NEW.host <> OLD.host OR NEW.provider <> OLD.provider) EXECUTE FUNCTION pricing.keep_key_at_host();
