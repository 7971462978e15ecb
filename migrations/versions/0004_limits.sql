-- Several keys, breakers, pacing and budgets.

-- ── Keys ───────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.provider_keys (
    provider       text NOT NULL REFERENCES pricing.data_collectors ON DELETE CASCADE,
    key_name       text NOT NULL CONSTRAINT key_name_is_plain CHECK (key_name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    is_active      boolean NOT NULL DEFAULT true,
    blocked_until  timestamptz,
    blocked_reason text,
    throttles      integer NOT NULL DEFAULT 0,
    reported_left  integer,
    reported_at    timestamptz,
    foreign_units  integer NOT NULL DEFAULT 0 CONSTRAINT foreign_units_are_counted CHECK (foreign_units >= 0),
    foreign_until  timestamptz,
    PRIMARY KEY (provider, key_name)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.provider_keys IS
    'API keys of a provider by name, each with its own rate limits. A provider without rows has one key named default. Secrets are not here.';
COMMENT ON COLUMN pricing.provider_keys.is_active IS 'False = no call is made with it.';
COMMENT ON COLUMN pricing.provider_keys.blocked_until IS 'No worker uses the key before: the provider refused it, for speed or altogether.';
COMMENT ON COLUMN pricing.provider_keys.throttles IS 'Refusals in a row. Until the next good answer the pause grows, and one call at a time feels the way.';
COMMENT ON COLUMN pricing.provider_keys.reported_left IS 'Units that the provider last said are left; only kept while there are few.';
COMMENT ON COLUMN pricing.provider_keys.foreign_units IS
    'Units that the provider counts and we do not: somebody else uses the key, or its plan is smaller than our limit. They are taken off until foreign_until.';

CREATE TABLE pricing.provider_key_limits (
    provider text NOT NULL,
    key_name text NOT NULL,
    name     text NOT NULL,
    units    integer NOT NULL CONSTRAINT key_limit_is_positive CHECK (units > 0),
    PRIMARY KEY (provider, key_name, name),
    CONSTRAINT key_limit_has_key FOREIGN KEY (provider, key_name) REFERENCES pricing.provider_keys ON DELETE CASCADE,
    CONSTRAINT key_limit_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits ON DELETE CASCADE
);
COMMENT ON TABLE pricing.provider_key_limits IS 'Keys whose plan differs: other units than provider_limits says, in the same window.';

INSERT INTO pricing.provider_keys (provider, key_name, blocked_until, blocked_reason, throttles)
SELECT s.provider, 'default', s.blocked_until, s.blocked_reason, s.throttles
FROM pricing.provider_state s WHERE s.throttles > 0 OR s.blocked_until > pricing.clock();
ALTER TABLE pricing.provider_state DROP COLUMN blocked_until, DROP COLUMN blocked_reason, DROP COLUMN throttles;
COMMENT ON TABLE pricing.provider_limits IS
    'Rate limits of each key, in the provider''s units: in any window_seconds, or per calendar day of day_timezone. All must have room.';

CREATE TABLE pricing.limit_counts (
    provider     text NOT NULL,
    key_name     text NOT NULL,
    name         text NOT NULL,
    counted_from timestamptz NOT NULL,
    counted_to   timestamptz NOT NULL,
    units        bigint NOT NULL,
    PRIMARY KEY (provider, key_name, name),
    CONSTRAINT count_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits ON DELETE CASCADE,
    CONSTRAINT count_is_upright CHECK (counted_from < counted_to)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.limit_counts IS
    'Units of the logged calls after counted_from and before counted_to, counted anew now and then, so that a claim counts only what has come and gone since. Rows may be deleted at any time.';
COMMENT ON COLUMN pricing.limit_counts.provider IS 'Whose calls are counted.';
COMMENT ON COLUMN pricing.limit_counts.key_name IS 'The key they were made with.';
COMMENT ON COLUMN pricing.limit_counts.name IS 'The limit of provider_limits whose window this is.';
COMMENT ON COLUMN pricing.limit_counts.counted_from IS 'Calls after this moment are counted.';
COMMENT ON COLUMN pricing.limit_counts.counted_to IS 'Calls before this moment are counted.';
COMMENT ON COLUMN pricing.limit_counts.units IS 'What the counted calls were charged.';

ALTER TABLE pricing.collector_call_log
    ADD COLUMN key_name text NOT NULL DEFAULT 'default',
    ADD COLUMN failure_kind text;
COMMENT ON COLUMN pricing.collector_call_log.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.collector_call_log.failure_kind IS
    'Why the call brought nothing, for the most of its symbols at least. pricing.is_provider_fault says which kinds the breaker counts. Empty when a lost worker was late to tell.';
DROP INDEX pricing.collector_call_log_rate;
CREATE INDEX collector_call_log_rate ON pricing.collector_call_log (provider, started_at) INCLUDE (units, key_name);
CREATE INDEX collector_call_log_failed ON pricing.collector_call_log (provider, started_at) WHERE failure_kind IS NOT NULL;


-- ── Breaker and pacing ─────────────────────────────────────────────────────────────────────────────

ALTER TABLE pricing.data_collectors
    ADD COLUMN request_delay_ms integer NOT NULL DEFAULT 0
        CONSTRAINT delay_is_sane CHECK (request_delay_ms BETWEEN 0 AND 3600000);
COMMENT ON COLUMN pricing.data_collectors.request_delay_ms IS
    'Least time between two calls of all workers together; twice as long while the provider says that 5 units or fewer are left.';

ALTER TABLE pricing.provider_state
    ADD COLUMN breaker text NOT NULL DEFAULT 'closed'
        CONSTRAINT breaker_is_known CHECK (breaker IN ('closed', 'open', 'half_open')),
    ADD COLUMN breaker_since timestamptz,
    ADD COLUMN breaker_until timestamptz,
    ADD COLUMN breaker_openings integer NOT NULL DEFAULT 0,
    ADD COLUMN breaker_reason text,
    ADD COLUMN probe_call bigint,
    ADD COLUMN last_call_at timestamptz,
    ADD CONSTRAINT breaker_has_end CHECK ((breaker = 'closed') = (breaker_until IS NULL)),
    ADD CONSTRAINT probing_has_call CHECK ((breaker = 'half_open') = (probe_call IS NOT NULL));
COMMENT ON COLUMN pricing.provider_state.breaker IS 'open = no calls before breaker_until; then one probe is made (half_open), whose success closes it.';
COMMENT ON COLUMN pricing.provider_state.breaker_since IS 'Its last change. What happened before it was closed does not count against the provider.';
COMMENT ON COLUMN pricing.provider_state.breaker_until IS 'Open: when a probe may be made. Half open: when the probe counts as lost.';
COMMENT ON COLUMN pricing.provider_state.breaker_openings IS 'Openings in a row; the wait is 60 s, doubling to 10 min.';
COMMENT ON COLUMN pricing.provider_state.probe_call IS 'The one call that decides.';
COMMENT ON COLUMN pricing.provider_state.last_call_at IS 'When calls were last claimed, for request_delay_ms.';


-- ── Sizes ──────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.size_estimates (
    provider           text NOT NULL REFERENCES pricing.data_collectors ON DELETE CASCADE,
    data_type          text NOT NULL,
    per                text NOT NULL CONSTRAINT size_is_per_symbol_or_day CHECK (per IN ('symbol', 'day')),
    bytes              double precision NOT NULL CONSTRAINT size_is_positive CHECK (bytes > 0 AND bytes < 1e12),
    measurements       bigint NOT NULL DEFAULT 1,
    measured_at        timestamptz NOT NULL,
    overruns           bigint NOT NULL DEFAULT 0,
    last_overrun_at    timestamptz,
    last_overrun_ratio double precision,
    PRIMARY KEY (provider, data_type, per)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.size_estimates IS
    'Wire bytes as measured: of a latest price per symbol, of history per symbol and day. The first measurement is taken whole, each later one counts a tenth.';
COMMENT ON COLUMN pricing.size_estimates.overruns IS 'Answers of more than twice the bytes that were reserved for them.';
COMMENT ON COLUMN pricing.size_estimates.last_overrun_ratio IS 'Bytes that came for each byte reserved, at the last overrun.';

-- Functions whose signature or result has changed are deployed anew after this.
DROP FUNCTION IF EXISTS pricing.claim_calls(text, text, integer, interval, text);
DROP FUNCTION IF EXISTS pricing.settle_call(bigint, text, integer, bigint, text);
DROP FUNCTION IF EXISTS pricing.throttle(text, interval, text);
DROP FUNCTION IF EXISTS pricing.unthrottle(text);
