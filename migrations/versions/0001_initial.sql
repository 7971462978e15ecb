-- The whole database in reading order. Words: docs/architecture.md. Functions live in
-- pricing_pipeline/db/functions/ and are deployed anew by each `db upgrade`; only the clock and the
-- trigger functions stand here, beside what depends on them.

COMMENT ON SCHEMA pricing IS 'Everything of the price-refresh pipeline. Times are timestamptz; money is an integer with its scale.';

CREATE FUNCTION pricing.clock() RETURNS timestamptz
    LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = ''
    AS 'SELECT pg_catalog.clock_timestamp()';
COMMENT ON FUNCTION pricing.clock() IS 'The only clock. Tests replace it to move time; nothing else may.';


-- ── Registry ───────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.data_type_registry (
    data_type                 text PRIMARY KEY
        CONSTRAINT data_type_is_plain_name CHECK (data_type ~ '^[a-z][a-z0-9_]{0,47}$'),
    description               text NOT NULL DEFAULT '',
    asset_class               text NOT NULL DEFAULT 'equity'
        CONSTRAINT asset_class_is_plain_name CHECK (asset_class ~ '^[a-z][a-z0-9_]{0,47}$'),
    fetcher                   text NOT NULL
        CONSTRAINT fetcher_is_known CHECK (fetcher IN ('quote', 'daily_bars', 'nav')),
    default_ttl_minutes       integer NOT NULL
        CONSTRAINT ttl_is_positive CHECK (default_ttl_minutes > 0),
    table_name                text NOT NULL DEFAULT '',
    symbol_column             text NOT NULL DEFAULT 'symbol',
    timestamp_column          text NOT NULL DEFAULT 'fetched_at',
    staleness_function        text NOT NULL DEFAULT 'is_data_stale',
    refresh_strategy          text NOT NULL DEFAULT 'on-demand'
        CONSTRAINT strategy_is_known CHECK (refresh_strategy IN ('on-demand', 'scheduled')),
    refresh_schedule          text,
    schedule_timezone         text NOT NULL DEFAULT 'UTC',
    history_from              date,
    estimated_data_size_bytes bigint NOT NULL DEFAULT 50000
        CONSTRAINT estimate_is_positive CHECK (estimated_data_size_bytes > 0),
    is_active                 boolean NOT NULL DEFAULT true,
    created_at                timestamptz NOT NULL DEFAULT pricing.clock(),
    -- PostgreSQL cuts longer identifiers without a word, and would find what they are cut to.
    CONSTRAINT names_are_not_cut CHECK (63 >= ALL (ARRAY[octet_length(table_name), octet_length(symbol_column),
                                                         octet_length(timestamp_column), octet_length(staleness_function)])),
    CONSTRAINT scheduled_types_have_a_schedule
        CHECK ((refresh_strategy = 'scheduled') = (refresh_schedule IS NOT NULL))
);
COMMENT ON TABLE pricing.data_type_registry IS
    'The single source of truth on data types. One INSERT adds a type: its storage, Dagster assets, freshness policy and refresh follow.';
COMMENT ON COLUMN pricing.data_type_registry.fetcher IS 'What is asked of a provider; provider_routing says which provider.';
COMMENT ON COLUMN pricing.data_type_registry.asset_class IS 'The instruments this type applies to: those of the same asset_class.';
COMMENT ON COLUMN pricing.data_type_registry.default_ttl_minutes IS 'How old a watched price may grow before it is due again.';
COMMENT ON COLUMN pricing.data_type_registry.table_name IS 'View or table the staleness function judges; empty = the view latest_price_<data_type>, made by a trigger.';
COMMENT ON COLUMN pricing.data_type_registry.refresh_schedule IS 'Cron expression of a scheduled type, in schedule_timezone.';
COMMENT ON COLUMN pricing.data_type_registry.history_from IS 'First day a backfill may ask for; NULL = the type keeps no history to backfill.';
COMMENT ON COLUMN pricing.data_type_registry.estimated_data_size_bytes IS 'Bytes on the wire per symbol, reserved against the quota before a call.';

CREATE TABLE pricing.registry_state (
    singleton boolean PRIMARY KEY DEFAULT true CONSTRAINT one_row CHECK (singleton),
    version   bigint NOT NULL
);
COMMENT ON TABLE pricing.registry_state IS 'Counts changes of the registry, so that the sensor knows when to reload the code location.';
INSERT INTO pricing.registry_state (version) VALUES (1);


-- ── Instruments and demand ─────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.instruments (
    asset_class text NOT NULL,
    symbol      text NOT NULL
        CONSTRAINT symbol_is_sane CHECK (length(symbol) BETWEEN 1 AND 40 AND symbol ~ '^[A-Za-z0-9^][A-Za-z0-9./:=^_-]*$'),
    name        text,
    currency    text CONSTRAINT currency_is_iso CHECK (currency ~ '^[A-Z]{3}$'),
    scale       smallint NOT NULL DEFAULT 2 CONSTRAINT scale_is_sane CHECK (scale BETWEEN 0 AND 12),
    update_mode text NOT NULL DEFAULT 'api' CONSTRAINT update_mode_is_known CHECK (update_mode IN ('api', 'manual')),
    is_active   boolean NOT NULL DEFAULT true,
    verified_at timestamptz,
    created_at  timestamptz NOT NULL DEFAULT pricing.clock(),
    PRIMARY KEY (asset_class, symbol)
);
COMMENT ON TABLE pricing.instruments IS 'What can be priced.';
COMMENT ON COLUMN pricing.instruments.scale IS 'Least number of decimals its prices are stored with; a source with more keeps more.';
COMMENT ON COLUMN pricing.instruments.verified_at IS 'First valid answer of a provider; NULL = made by a subscription and not yet confirmed.';

CREATE TABLE pricing.demand (
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    due_at        timestamptz NOT NULL,
    became_due_at timestamptz,
    failures      integer NOT NULL DEFAULT 0,
    held_until    timestamptz,
    last_failure  text,
    created_at    timestamptz NOT NULL DEFAULT pricing.clock(),
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
CREATE INDEX demand_due ON pricing.demand (data_type, due_at);
COMMENT ON TABLE pricing.demand IS 'One row for each wanted (data_type, symbol), so that the staleness check costs what is due, not what is watched.';
COMMENT ON COLUMN pricing.demand.due_at IS 'When to look at the pair next; infinity while a task for it is live.';
COMMENT ON COLUMN pricing.demand.became_due_at IS 'Since when the live task is owed; NULL = nothing owed.';
COMMENT ON COLUMN pricing.demand.held_until IS 'A pair whose task died is left alone until then: 1 h, doubling to 24 h.';

CREATE TABLE pricing.active_subscriptions (
    user_id       text NOT NULL CONSTRAINT user_is_sane CHECK (length(user_id) BETWEEN 1 AND 200),
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    subscribed_at timestamptz NOT NULL DEFAULT pricing.clock(),
    last_seen_at  timestamptz NOT NULL DEFAULT pricing.clock(),
    PRIMARY KEY (user_id, data_type, symbol),
    CONSTRAINT subscription_has_demand FOREIGN KEY (data_type, symbol) REFERENCES pricing.demand
) WITH (fillfactor = 70);
-- No index on last_seen_at: heartbeats must stay heap-only updates.
CREATE INDEX active_subscriptions_pair ON pricing.active_subscriptions (data_type, symbol);
COMMENT ON TABLE pricing.active_subscriptions IS 'Who looks at what, kept alive by heartbeats; removed on leave or after 5 silent minutes.';


-- ── Providers ──────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.data_collectors (
    provider       text PRIMARY KEY CONSTRAINT provider_is_plain_name CHECK (provider ~ '^[a-z][a-z0-9_]{0,47}$'),
    description    text NOT NULL DEFAULT '',
    base_url       text NOT NULL,
    is_active      boolean NOT NULL DEFAULT true,
    max_in_flight  integer NOT NULL DEFAULT 10 CONSTRAINT in_flight_is_sane CHECK (max_in_flight BETWEEN 1 AND 10),
    throttle_pause_seconds integer NOT NULL DEFAULT 5 CONSTRAINT pause_is_positive CHECK (throttle_pause_seconds > 0),
    quota_bytes    bigint NOT NULL DEFAULT 20 * 2::bigint ^ 30 CONSTRAINT quota_is_positive CHECK (quota_bytes > 0)
);
COMMENT ON TABLE pricing.data_collectors IS 'Providers, their address and their allowances.';
COMMENT ON COLUMN pricing.data_collectors.quota_bytes IS 'Bytes allowed in any 720 hours (30 days of exactly 24 hours).';
COMMENT ON COLUMN pricing.data_collectors.throttle_pause_seconds IS 'First pause after a refusal for speed that names no time; doubles while refusals go on.';

CREATE TABLE pricing.provider_capabilities (
    provider          text NOT NULL REFERENCES pricing.data_collectors,
    fetcher           text NOT NULL,
    batch_size        integer NOT NULL CONSTRAINT batch_is_positive CHECK (batch_size > 0),
    window_batch_size integer NOT NULL DEFAULT 1 CONSTRAINT window_batch_is_positive CHECK (window_batch_size > 0),
    units_per_call    integer NOT NULL DEFAULT 0,
    units_per_symbol  integer NOT NULL DEFAULT 0,
    max_window_days   integer NOT NULL DEFAULT 1 CONSTRAINT window_is_positive CHECK (max_window_days > 0),
    bytes_per_day     integer NOT NULL DEFAULT 150,
    PRIMARY KEY (provider, fetcher),
    CONSTRAINT a_call_costs_something CHECK (units_per_call >= 0 AND units_per_symbol >= 0 AND units_per_call + units_per_symbol > 0)
);
COMMENT ON TABLE pricing.provider_capabilities IS 'What a provider can fetch, in which batches, at what cost in its own units. Claims plan calls from it.';
COMMENT ON COLUMN pricing.provider_capabilities.window_batch_size IS 'Symbols in one call for a span of days, where answers are long.';
COMMENT ON COLUMN pricing.provider_capabilities.max_window_days IS 'Longest span one call may ask for, so that an answer is never cut at a page.';

CREATE TABLE pricing.provider_limits (
    provider       text NOT NULL REFERENCES pricing.data_collectors,
    name           text NOT NULL,
    units          integer NOT NULL CONSTRAINT limit_is_positive CHECK (units > 0),
    window_seconds integer CONSTRAINT limit_window_is_positive CHECK (window_seconds > 0),
    day_timezone   text,
    PRIMARY KEY (provider, name),
    CONSTRAINT limit_has_one_window CHECK ((window_seconds IS NULL) <> (day_timezone IS NULL))
);
COMMENT ON TABLE pricing.provider_limits IS 'Rate limits in the provider''s units: in any window_seconds, or per calendar day of day_timezone. All must have room.';

CREATE TABLE pricing.provider_state (
    provider       text PRIMARY KEY REFERENCES pricing.data_collectors ON DELETE CASCADE,
    blocked_until  timestamptz,
    blocked_reason text,
    throttles      integer NOT NULL DEFAULT 0,
    claims         bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.provider_state IS 'The row whose lock makes looking at the limits and taking from them one step.';
COMMENT ON COLUMN pricing.provider_state.claims IS 'Counts claims, so that every tenth can begin with a backfill.';

CREATE TABLE pricing.provider_routing (
    data_type text NOT NULL REFERENCES pricing.data_type_registry ON DELETE CASCADE,
    symbol    text,
    provider  text NOT NULL REFERENCES pricing.data_collectors,
    is_active boolean NOT NULL DEFAULT true
);
CREATE UNIQUE INDEX provider_routing_broad ON pricing.provider_routing (data_type) WHERE symbol IS NULL;
CREATE UNIQUE INDEX provider_routing_symbol ON pricing.provider_routing (data_type, symbol) WHERE symbol IS NOT NULL;
COMMENT ON TABLE pricing.provider_routing IS 'Which provider serves a data type (symbol NULL), or one symbol of it.';

CREATE SEQUENCE pricing.call_id_seq;
CREATE TABLE pricing.collector_call_log (
    call_id        bigint PRIMARY KEY DEFAULT nextval('pricing.call_id_seq'),
    provider       text NOT NULL,
    data_type      text NOT NULL,
    symbols        text[] NOT NULL,
    window_start   date NOT NULL,
    window_end     date NOT NULL,
    units          integer NOT NULL,
    reserved_bytes bigint NOT NULL,
    run_id         text,
    worker         text NOT NULL,
    started_at     timestamptz NOT NULL,
    finished_at    timestamptz,
    outcome        text NOT NULL DEFAULT 'open'
        CONSTRAINT outcome_is_known CHECK (outcome IN ('open', 'ok', 'failed', 'unknown')),
    http_status    integer,
    wire_bytes     bigint,
    error          text,
    CONSTRAINT open_calls_are_unfinished CHECK ((outcome = 'open') = (finished_at IS NULL))
) WITH (fillfactor = 80);
CREATE INDEX collector_call_log_rate ON pricing.collector_call_log (provider, started_at) INCLUDE (units);
CREATE INDEX collector_call_log_open ON pricing.collector_call_log (provider) INCLUDE (reserved_bytes) WHERE finished_at IS NULL;
COMMENT ON TABLE pricing.collector_call_log IS
    'Every call to a provider: committed before it is made, completed after. It is also the rate limit''s memory and, while open, the quota''s reservation.';
COMMENT ON COLUMN pricing.collector_call_log.outcome IS 'unknown = the worker was lost; the estimate was booked as used.';
COMMENT ON COLUMN pricing.collector_call_log.wire_bytes IS 'Headers and body as they were sent, compressed.';

CREATE TABLE pricing.api_data_usage (
    provider text NOT NULL,
    hour     timestamptz NOT NULL,
    calls    bigint NOT NULL DEFAULT 0,
    units    bigint NOT NULL DEFAULT 0,
    bytes    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, hour)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.api_data_usage IS 'Wire bytes per provider and UTC hour, of which the quota sums the last 720 and the one that is not over.';


-- ── Queue ──────────────────────────────────────────────────────────────────────────────────────────
-- pending ⇄ scheduled, pending → processing → completed | failed | cancelled. The three live states share
-- one table partition: a change among them never moves the row, which SKIP LOCKED needs, and the unique
-- key of live work can stand there.

CREATE SEQUENCE pricing.task_id_seq;
CREATE TABLE pricing.api_call_queue (
    id              bigint NOT NULL DEFAULT nextval('pricing.task_id_seq'),
    data_type       text NOT NULL,
    symbol          text NOT NULL,
    window_start    date NOT NULL DEFAULT '-infinity',
    window_end      date NOT NULL DEFAULT 'infinity',
    provider        text,
    status          text NOT NULL DEFAULT 'pending',
    priority        integer NOT NULL DEFAULT 1,
    cadence_minutes integer NOT NULL DEFAULT 0,
    est_bytes       bigint NOT NULL DEFAULT 50000,
    enqueued_at     timestamptz NOT NULL DEFAULT pricing.clock(),
    run_after       timestamptz,
    attempt         smallint NOT NULL DEFAULT 0,
    max_attempts    smallint NOT NULL DEFAULT 4,
    claim_token     uuid,
    claimed_at      timestamptz,
    lease_until     timestamptz,
    worker          text,
    call_id         bigint,
    backfill_id     uuid,
    errors          jsonb NOT NULL DEFAULT '[]',
    finished_at     timestamptz,
    failure_kind    text,
    ring            smallint NOT NULL DEFAULT 0
) PARTITION BY LIST (status);
COMMENT ON TABLE pricing.api_call_queue IS 'The fetch queue. A row is a task: fetch one symbol of one data type, now or for a span of days.';
COMMENT ON COLUMN pricing.api_call_queue.window_start IS '-infinity..infinity = the latest price; otherwise days to backfill, both included.';
COMMENT ON COLUMN pricing.api_call_queue.priority IS 'Distinct viewers (at least 1); 0 held; -1 scheduled; -2 backfill. Higher goes first.';
COMMENT ON COLUMN pricing.api_call_queue.claim_token IS 'Fresh with every claim; completing, failing and storing prices require it.';
COMMENT ON COLUMN pricing.api_call_queue.attempt IS 'Counted at claim, so that a task which kills its worker still dies.';
COMMENT ON COLUMN pricing.api_call_queue.errors IS 'Array of {at, attempt, kind, message}, oldest first.';
COMMENT ON COLUMN pricing.api_call_queue.ring IS 'Week of finishing modulo 8: the leaf of a completed task.';

CREATE TABLE pricing.api_call_queue_live PARTITION OF pricing.api_call_queue (
    PRIMARY KEY (id),
    CONSTRAINT live_task_is_unique UNIQUE (data_type, symbol, window_start, window_end),
    CONSTRAINT live_task_has_provider CHECK (provider IS NOT NULL),
    CONSTRAINT processing_is_claimed CHECK ((status = 'processing') = (claim_token IS NOT NULL)),
    CONSTRAINT processing_has_lease CHECK ((status = 'processing') = (lease_until IS NOT NULL)),
    CONSTRAINT scheduled_has_time CHECK ((status = 'scheduled') = (run_after IS NOT NULL))
) FOR VALUES IN ('pending', 'processing', 'scheduled')
  WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
CREATE INDEX live_claim ON pricing.api_call_queue_live (provider, priority DESC, cadence_minutes, id) WHERE status = 'pending';
CREATE INDEX live_scheduled ON pricing.api_call_queue_live (run_after) WHERE status = 'scheduled';
CREATE INDEX live_processing ON pricing.api_call_queue_live (symbol) INCLUDE (lease_until) WHERE status = 'processing';
CREATE INDEX live_backfill ON pricing.api_call_queue_live (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_dead PARTITION OF pricing.api_call_queue (
    PRIMARY KEY (id),
    CONSTRAINT dead_task_is_finished CHECK (finished_at IS NOT NULL)
) FOR VALUES IN ('failed', 'cancelled');
CREATE INDEX dead_pair ON pricing.api_call_queue_dead (data_type, symbol);
CREATE INDEX dead_backfill ON pricing.api_call_queue_dead (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_completed PARTITION OF pricing.api_call_queue
    FOR VALUES IN ('completed') PARTITION BY LIST (ring);
DO $$
BEGIN
    FOR leaf IN 0..7 LOOP
        EXECUTE format('CREATE TABLE pricing.api_call_queue_completed_%1$s PARTITION OF pricing.api_call_queue_completed '
                       '(PRIMARY KEY (id)) FOR VALUES IN (%1$s)', leaf);
        EXECUTE format('CREATE INDEX completed_%1$s_backfill ON pricing.api_call_queue_completed_%1$s (backfill_id) '
                       'WHERE backfill_id IS NOT NULL', leaf);
    END LOOP;
END $$;

CREATE TABLE pricing.backfills (
    backfill_id  uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    data_type    text NOT NULL,
    window_start date NOT NULL,
    window_end   date NOT NULL,
    symbols      text[],
    run_id       text,
    requested_at timestamptz NOT NULL DEFAULT pricing.clock(),
    finished_at  timestamptz,
    tasks        integer NOT NULL DEFAULT 0,
    CONSTRAINT backfill_window_is_upright CHECK (window_start <= window_end)
);
COMMENT ON TABLE pricing.backfills IS 'One row for each backfill someone asked for; its tasks carry its id.';

CREATE TABLE pricing.history_coverage (
    data_type text NOT NULL,
    symbol    text NOT NULL,
    covered   datemultirange NOT NULL DEFAULT '{}',
    PRIMARY KEY (data_type, symbol)
);
COMMENT ON TABLE pricing.history_coverage IS 'Days for which the provider has answered, with bars or with nothing; a backfill asks only for the rest.';


-- ── Prices ─────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.latest_prices (
    data_type         text NOT NULL,
    symbol            text NOT NULL,
    amount            bigint NOT NULL,
    scale             smallint NOT NULL CONSTRAINT scale_is_sane CHECK (scale BETWEEN 0 AND 18),
    currency          text,
    observed_at       timestamptz NOT NULL,
    fetched_at        timestamptz NOT NULL,
    provider          text NOT NULL,
    call_id           bigint NOT NULL,
    source_text       text NOT NULL,
    cache_ttl_minutes integer CONSTRAINT cache_ttl_is_positive CHECK (cache_ttl_minutes > 0),
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.latest_prices IS 'The newest known price of each pair. price = amount / 10^scale, exactly.';
COMMENT ON COLUMN pricing.latest_prices.observed_at IS 'The source''s time; midnight UTC of the trading day for daily values.';
COMMENT ON COLUMN pricing.latest_prices.fetched_at IS 'When a provider last confirmed it; advances with every valid answer.';
COMMENT ON COLUMN pricing.latest_prices.call_id IS 'The call that brought it: collector_call_log has its run, time and bytes.';
COMMENT ON COLUMN pricing.latest_prices.cache_ttl_minutes IS 'Overrides the registry''s TTL for this pair; refreshes never touch it.';

CREATE TABLE pricing.price_history (
    data_type   text NOT NULL,
    symbol      text NOT NULL,
    observed_at timestamptz NOT NULL,
    amount      bigint NOT NULL,
    open_amount bigint,
    high_amount bigint,
    low_amount  bigint,
    scale       smallint NOT NULL,
    currency    text,
    volume      numeric,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    fetched_at  timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol, observed_at)
) PARTITION BY LIST (data_type);
COMMENT ON TABLE pricing.price_history IS 'Current belief about every past value, unadjusted; one table partition per data type. amount is the close, NAV or quote.';

CREATE TABLE pricing.price_revisions (
    data_type   text NOT NULL,
    symbol      text NOT NULL,
    observed_at timestamptz NOT NULL,
    amount      bigint NOT NULL,
    open_amount bigint,
    high_amount bigint,
    low_amount  bigint,
    scale       smallint NOT NULL,
    currency    text,
    volume      numeric,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    revised_at  timestamptz NOT NULL,
    revised_by  bigint NOT NULL,
    PRIMARY KEY (data_type, symbol, observed_at, revised_at)
);
COMMENT ON TABLE pricing.price_revisions IS 'What we believed before: the old value of every history row that changed, from recorded_at until revised_at.';


-- ── Drains and duties ──────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.drains (
    drain_id    uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    run_id      text,
    worker      text NOT NULL,
    started_at  timestamptz NOT NULL,
    ends_at     timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    finished_at timestamptz
);
CREATE INDEX drains_alive ON pricing.drains (lease_until) WHERE finished_at IS NULL;
COMMENT ON TABLE pricing.drains IS 'Workers that drain the queue. Alive = not finished and the lease not run out; run status says nothing about it.';

CREATE TABLE pricing.duties (
    duty            text PRIMARY KEY,
    last_success_at timestamptz NOT NULL
);
COMMENT ON TABLE pricing.duties IS 'When each periodic duty last succeeded.';


-- ── Triggers ───────────────────────────────────────────────────────────────────────────────────────

CREATE FUNCTION pricing.check_data_type() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    missing text;
BEGIN
    IF NEW.table_name IN ('', 'latest_price_' || NEW.data_type) THEN
        NEW.table_name := 'latest_price_' || NEW.data_type;
        NEW.symbol_column := 'symbol';
        NEW.timestamp_column := 'fetched_at';
    ELSIF pg_catalog.to_regclass(pg_catalog.format('pricing.%I', NEW.table_name)) IS NULL THEN
        RAISE EXCEPTION 'data type %: table pricing.% does not exist', NEW.data_type, NEW.table_name
            USING HINT = 'Create the table first, or leave table_name empty to get one.', ERRCODE = 'undefined_table';
    ELSE
        SELECT pg_catalog.string_agg(wanted.name, ', ') INTO missing
        FROM (VALUES (NEW.symbol_column), (NEW.timestamp_column), ('cache_ttl_minutes')) AS wanted (name)
        WHERE NOT EXISTS (
            SELECT FROM pg_catalog.pg_attribute a
            WHERE a.attrelid = pg_catalog.to_regclass(pg_catalog.format('pricing.%I', NEW.table_name))
              AND a.attname = wanted.name AND a.attnum > 0 AND NOT a.attisdropped);
        IF missing IS NOT NULL THEN
            RAISE EXCEPTION 'data type %: pricing.% lacks column(s) %', NEW.data_type, NEW.table_name, missing
                USING HINT = 'symbol_column, timestamp_column and cache_ttl_minutes must exist.', ERRCODE = 'undefined_column';
        END IF;
    END IF;
    IF pg_catalog.to_regprocedure(pg_catalog.format('pricing.%I(timestamptz,integer)', NEW.staleness_function)) IS NULL THEN
        RAISE EXCEPTION 'data type %: staleness function pricing.%(timestamptz, integer) does not exist',
            NEW.data_type, NEW.staleness_function
            USING HINT = 'Use is_data_stale, or create the function first.', ERRCODE = 'undefined_function';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_timezone_names WHERE name = NEW.schedule_timezone) THEN
        RAISE EXCEPTION 'data type %: unknown time zone %', NEW.data_type, NEW.schedule_timezone
            USING HINT = 'Use a name such as UTC or Asia/Kolkata.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.check_data_type() IS 'Refuses a registry row whose table, columns, function or time zone do not exist.';
CREATE TRIGGER check_data_type BEFORE INSERT OR UPDATE ON pricing.data_type_registry
    FOR EACH ROW EXECUTE FUNCTION pricing.check_data_type();

CREATE FUNCTION pricing.make_storage() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    history text := 'price_history_' || NEW.data_type;
BEGIN
    -- LIKE + ATTACH: CREATE ... PARTITION OF would lock out every writer of price_history meanwhile.
    IF pg_catalog.to_regclass(pg_catalog.format('pricing.%I', history)) IS NULL THEN
        EXECUTE pg_catalog.format('CREATE TABLE pricing.%I (LIKE pricing.price_history INCLUDING ALL)', history);
        EXECUTE pg_catalog.format('ALTER TABLE pricing.price_history ATTACH PARTITION pricing.%I FOR VALUES IN (%L)',
                                  history, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON TABLE pricing.%I IS %L', history, 'History of ' || NEW.data_type || '.');
    END IF;
    IF pg_catalog.to_regclass(pg_catalog.format('pricing.%I', NEW.table_name)) IS NULL THEN
        EXECUTE pg_catalog.format(
            'CREATE VIEW pricing.%I AS SELECT symbol, amount, scale, currency, observed_at, fetched_at, provider, '
            'call_id, source_text, cache_ttl_minutes FROM pricing.latest_prices WHERE data_type = %L',
            NEW.table_name, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON VIEW pricing.%I IS %L', NEW.table_name,
                                  'Latest prices of ' || NEW.data_type || '.');
    END IF;
    -- Without a route nothing would be fetched; the first provider able to serve the fetcher gets a visible rule.
    INSERT INTO pricing.provider_routing (data_type, provider)
    SELECT NEW.data_type, c.provider
    FROM pricing.provider_capabilities c JOIN pricing.data_collectors d USING (provider)
    WHERE c.fetcher = NEW.fetcher AND d.is_active
    ORDER BY c.provider LIMIT 1
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.make_storage() IS 'Gives a new data type its history partition, its view and a route.';
CREATE TRIGGER make_storage AFTER INSERT ON pricing.data_type_registry
    FOR EACH ROW EXECUTE FUNCTION pricing.make_storage();

CREATE FUNCTION pricing.drop_storage() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.latest_prices l WHERE l.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.demand d WHERE d.data_type = OLD.data_type) THEN
        RAISE EXCEPTION 'data type % holds prices or is watched and cannot be deleted', OLD.data_type
            USING HINT = 'Retire it instead: UPDATE pricing.data_type_registry SET is_active = false.',
                  ERRCODE = 'restrict_violation';
    END IF;
    EXECUTE pg_catalog.format('DROP TABLE IF EXISTS pricing.%I', 'price_history_' || OLD.data_type);
    EXECUTE pg_catalog.format('DROP VIEW IF EXISTS pricing.%I', 'latest_price_' || OLD.data_type);
    RETURN OLD;
END $$;
COMMENT ON FUNCTION pricing.drop_storage() IS 'Refuses to delete a data type that holds data; otherwise removes its empty storage.';
CREATE TRIGGER drop_storage BEFORE DELETE ON pricing.data_type_registry
    FOR EACH ROW EXECUTE FUNCTION pricing.drop_storage();

CREATE FUNCTION pricing.registry_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.registry_state SET version = version + 1;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.registry_changed() IS 'Counts the change, so that the sensor reloads the code location.';
CREATE TRIGGER registry_changed AFTER INSERT OR UPDATE OR DELETE ON pricing.data_type_registry
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.registry_changed();

CREATE FUNCTION pricing.ttl_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Look again at once: what was fresh under the old TTL may be stale under the new one.
    UPDATE pricing.demand SET due_at = pricing.clock()
    WHERE data_type = NEW.data_type AND due_at <> 'infinity' AND held_until IS NULL;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.ttl_changed() IS 'Makes a new TTL take effect at the next staleness check.';
CREATE TRIGGER ttl_changed AFTER UPDATE OF default_ttl_minutes, staleness_function ON pricing.data_type_registry
    FOR EACH ROW EXECUTE FUNCTION pricing.ttl_changed();

CREATE FUNCTION pricing.own_ttl_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.demand SET due_at = pricing.clock()
    WHERE (data_type, symbol) = (NEW.data_type, NEW.symbol) AND due_at <> 'infinity' AND held_until IS NULL;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.own_ttl_changed() IS 'Makes a pair''s own TTL take effect at the next staleness check.';
CREATE TRIGGER own_ttl_changed AFTER UPDATE OF cache_ttl_minutes ON pricing.latest_prices
    FOR EACH ROW WHEN (OLD.cache_ttl_minutes IS DISTINCT FROM NEW.cache_ttl_minutes)
    EXECUTE FUNCTION pricing.own_ttl_changed();

CREATE FUNCTION pricing.add_provider_state() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO pricing.provider_state (provider) VALUES (NEW.provider) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.add_provider_state() IS 'Every provider has the row that its claims lock.';
CREATE TRIGGER add_provider_state AFTER INSERT ON pricing.data_collectors
    FOR EACH ROW EXECUTE FUNCTION pricing.add_provider_state();
