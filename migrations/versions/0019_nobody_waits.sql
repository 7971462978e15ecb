-- Workers no longer wait for each other's writes to reach the disk.

-- A row that each settled call changed was held until its transaction was on the disk, and the next one waited for it.
ALTER TABLE pricing.api_data_usage ADD COLUMN slot integer NOT NULL DEFAULT 0;
ALTER TABLE pricing.api_data_usage DROP CONSTRAINT api_data_usage_pkey;
ALTER TABLE pricing.api_data_usage ADD CONSTRAINT api_data_usage_pkey PRIMARY KEY (provider, hour, slot);
COMMENT ON TABLE pricing.api_data_usage IS
    'Wire bytes per provider and UTC hour, of which the quota sums the last 720 and the one that is not over. An hour has as many rows as calls were ever settled at the same moment in it.';
COMMENT ON COLUMN pricing.api_data_usage.slot IS
    'Tells the rows of an hour apart. A call is booked in any row that nobody holds at that moment; only their sum means anything.';

-- A parameter more.
DROP FUNCTION IF EXISTS pricing.claim_calls(text, text, integer, interval, text, text[]);
