-- Who answers for a data type, as Dagster shows owners of assets: an email address, or a team.

ALTER TABLE pricing.data_type_registry ADD COLUMN owner text,
    ADD CONSTRAINT owner_is_email_or_team
        CHECK (owner ~ '^(team:[A-Za-z0-9_-]{1,100}|[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24})$');

COMMENT ON COLUMN pricing.data_type_registry.owner IS
    'Who answers for it: an email address, or team:<name>; NULL = nobody in particular. Dagster shows it with the assets.';
