-- A limit of a calendar day has a time zone that the database knows. A name that it does not know fails every claim of
-- every provider.

CREATE FUNCTION pricing.check_limit() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_timezone_names z WHERE z.name = NEW.day_timezone) THEN
        RAISE EXCEPTION 'limit % of %: unknown time zone %', NEW.name, NEW.provider, NEW.day_timezone
            USING HINT = 'Use a name such as UTC or America/New_York.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.check_limit() IS
    'Trigger: refuses a limit of a calendar day whose time zone the database does not know.';

CREATE TRIGGER check_limit BEFORE INSERT OR UPDATE ON pricing.provider_limits
    FOR EACH ROW WHEN (NEW.day_timezone IS NOT NULL) EXECUTE FUNCTION pricing.check_limit();
