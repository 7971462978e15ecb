-- Holdings, pauses, caps, and schedules that catch up.

ALTER TABLE pricing.data_type_registry
    ADD COLUMN background_ttl_minutes integer NOT NULL DEFAULT 1440
        CONSTRAINT background_ttl_is_positive CHECK (background_ttl_minutes > 0);
COMMENT ON COLUMN pricing.data_type_registry.background_ttl_minutes IS
    'How old the price of a held pair may grow while nobody watches it.';

ALTER TABLE pricing.demand ADD COLUMN read_at timestamptz;
COMMENT ON COLUMN pricing.demand.read_at IS
    'When a read last queued the pair: it keeps a pair that nobody watches for five minutes more.';

-- Looked at by the commit, so that a heartbeat for known pairs is one statement.
ALTER TABLE pricing.active_subscriptions ALTER CONSTRAINT subscription_has_demand DEFERRABLE INITIALLY DEFERRED;

CREATE TABLE pricing.holdings (
    user_id       text NOT NULL CONSTRAINT user_is_sane CHECK (length(user_id) BETWEEN 1 AND 200),
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    status        text NOT NULL DEFAULT 'active' CONSTRAINT status_is_known CHECK (status IN ('active', 'closed')),
    since         timestamptz NOT NULL DEFAULT pricing.clock(),
    closed_at     timestamptz,
    active_symbol text GENERATED ALWAYS AS (CASE WHEN status = 'active' THEN symbol END) STORED,
    PRIMARY KEY (user_id, data_type, symbol),
    CONSTRAINT closed_holding_has_time CHECK ((status = 'closed') = (closed_at IS NOT NULL)),
    CONSTRAINT active_holding_has_demand FOREIGN KEY (data_type, active_symbol) REFERENCES pricing.demand
);
CREATE INDEX holdings_active ON pricing.holdings (data_type, active_symbol) WHERE active_symbol IS NOT NULL;
COMMENT ON TABLE pricing.holdings IS 'Who holds what. While any holding of a pair is active, its price is kept fresh by the background TTL.';
COMMENT ON COLUMN pricing.holdings.user_id IS 'Who holds it.';
COMMENT ON COLUMN pricing.holdings.data_type IS 'What is held.';
COMMENT ON COLUMN pricing.holdings.symbol IS 'What is held.';
COMMENT ON COLUMN pricing.holdings.status IS 'active, or closed: kept as a record.';
COMMENT ON COLUMN pricing.holdings.closed_at IS 'When it was released.';
COMMENT ON COLUMN pricing.holdings.since IS 'Since when it is held; begins anew when a closed holding is opened again.';
COMMENT ON COLUMN pricing.holdings.active_symbol IS 'The symbol while the holding is active: what is held has a row of demand, and what was held needs none.';

CREATE TABLE pricing.pair_views (
    data_type text NOT NULL,
    symbol    text NOT NULL,
    viewed_at timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.pair_views IS
    'When each pair was last looked at, to ten minutes: written when a viewer leaves and by reads, never by heartbeats. Kept for 48 hours.';
COMMENT ON COLUMN pricing.pair_views.data_type IS 'What was looked at.';
COMMENT ON COLUMN pricing.pair_views.symbol IS 'What was looked at.';
COMMENT ON COLUMN pricing.pair_views.viewed_at IS 'The last look that was noted.';

CREATE TABLE pricing.user_caps (
    singleton            boolean PRIMARY KEY DEFAULT true CONSTRAINT one_row CHECK (singleton),
    pairs_per_user       integer NOT NULL DEFAULT 10000 CONSTRAINT pairs_per_user_is_positive CHECK (pairs_per_user > 0),
    new_pairs_per_minute integer NOT NULL DEFAULT 5000
        CONSTRAINT new_pairs_per_minute_is_positive CHECK (new_pairs_per_minute > 0)
);
COMMENT ON TABLE pricing.user_caps IS 'What one user may ask for. The one row may be changed at any time; it counts from the next heartbeat.';
COMMENT ON COLUMN pricing.user_caps.singleton IS 'Keeps it at one row.';
COMMENT ON COLUMN pricing.user_caps.pairs_per_user IS 'Pairs one user may watch at once, and as many may be held.';
COMMENT ON COLUMN pricing.user_caps.new_pairs_per_minute IS 'Pairs one user may begin to watch or hold in a minute.';
INSERT INTO pricing.user_caps DEFAULT VALUES;

CREATE TABLE pricing.user_allowances (
    user_id     text PRIMARY KEY,
    spent_until timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.user_allowances IS
    'What users have used of their new pairs a minute. Leaving gives nothing back, so coming and going is bounded, too.';
COMMENT ON COLUMN pricing.user_allowances.user_id IS 'Who has begun to watch or hold something lately.';
COMMENT ON COLUMN pricing.user_allowances.spent_until IS
    'Each new pair moves it on by its share of a minute; at most a minute ahead of now. In the past: nothing is used.';

CREATE TABLE pricing.schedule_walks (
    data_type   text PRIMARY KEY REFERENCES pricing.data_type_registry ON DELETE CASCADE,
    served_slot timestamptz NOT NULL,
    walk_slot   timestamptz,
    walk_after  text NOT NULL DEFAULT '',
    lap_start   text NOT NULL DEFAULT '',
    wrapped     boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE pricing.schedule_walks IS 'For each scheduled data type: the slot of its schedule that was served last, and how far the walk over its instruments is.';
COMMENT ON COLUMN pricing.schedule_walks.data_type IS 'The scheduled data type.';
COMMENT ON COLUMN pricing.schedule_walks.served_slot IS 'No slot up to this one is owed: it was served, or passed before the type had this schedule.';
COMMENT ON COLUMN pricing.schedule_walks.walk_slot IS 'The slot whose walk is under way; NULL when none is.';
COMMENT ON COLUMN pricing.schedule_walks.walk_after IS 'The walk goes on after this symbol.';
COMMENT ON COLUMN pricing.schedule_walks.lap_start IS 'Where the lap began: behind the unfinished walk of an earlier slot. It ends there, too.';
COMMENT ON COLUMN pricing.schedule_walks.wrapped IS 'The lap has passed the last symbol and goes on from the first.';
INSERT INTO pricing.schedule_walks (data_type, served_slot)
SELECT data_type, pricing.clock() FROM pricing.data_type_registry WHERE refresh_strategy = 'scheduled';

-- What is paused is looked up for each pair that is due; this index holds nothing else.
CREATE INDEX instruments_paused ON pricing.instruments (asset_class, symbol) WHERE update_mode <> 'api' OR NOT is_active;
CREATE INDEX latest_prices_own_ttl ON pricing.latest_prices (data_type, symbol) WHERE cache_ttl_minutes IS NOT NULL;

-- Their parameters have changed.
DROP FUNCTION IF EXISTS pricing.enqueue_scheduled(text);
DROP FUNCTION IF EXISTS pricing.enqueue_due_of_type(text, text[], integer);


-- ── Triggers ───────────────────────────────────────────────────────────────────────────────────────

CREATE OR REPLACE FUNCTION pricing.ttl_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Locked first and changed by a statement of its own, which sees what a worker has just set by the old TTL.
    PERFORM FROM pricing.demand d WHERE d.data_type = NEW.data_type ORDER BY d.data_type, d.symbol FOR NO KEY UPDATE;
    PERFORM pricing.look_again(NEW.data_type);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.ttl_changed() IS
    'Makes a new TTL or staleness function take effect at the next staleness check, and starts what is wanted of a revived type.';
DROP TRIGGER ttl_changed ON pricing.data_type_registry;
CREATE TRIGGER ttl_changed AFTER UPDATE OF default_ttl_minutes, background_ttl_minutes, staleness_function, table_name,
    symbol_column, timestamp_column, is_active ON pricing.data_type_registry
    FOR EACH ROW WHEN ((OLD.default_ttl_minutes, OLD.background_ttl_minutes, OLD.staleness_function, OLD.table_name,
                        OLD.symbol_column, OLD.timestamp_column, OLD.is_active)
        IS DISTINCT FROM (NEW.default_ttl_minutes, NEW.background_ttl_minutes, NEW.staleness_function, NEW.table_name,
                          NEW.symbol_column, NEW.timestamp_column, NEW.is_active))
    EXECUTE FUNCTION pricing.ttl_changed();

CREATE OR REPLACE FUNCTION pricing.own_ttl_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Without waiting: a worker that stores this very price holds its demand and waits for us. What is missed
    -- here, reconcile_demand finds.
    UPDATE pricing.demand d SET due_at = pricing.clock()
    FROM (SELECT x.data_type, x.symbol FROM pricing.demand x
          WHERE (x.data_type, x.symbol) = (NEW.data_type, NEW.symbol) AND x.due_at <> 'infinity'
            AND (x.held_until IS NULL OR x.held_until <= pricing.clock())
          FOR NO KEY UPDATE SKIP LOCKED) pair
    WHERE (d.data_type, d.symbol) = (pair.data_type, pair.symbol);
    RETURN NULL;
END $$;

CREATE FUNCTION pricing.instrument_paused() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM FROM pricing.demand d JOIN pricing.data_type_registry r USING (data_type)
    WHERE r.asset_class = NEW.asset_class AND d.symbol = NEW.symbol ORDER BY d.data_type, d.symbol FOR NO KEY UPDATE OF d;
    IF NEW.update_mode <> 'api' OR NOT NEW.is_active THEN
        PERFORM pricing.stop_paused(NEW.asset_class, NEW.symbol);
    END IF;
    PERFORM pricing.look_again(r.data_type, NEW.symbol) FROM pricing.data_type_registry r WHERE r.asset_class = NEW.asset_class;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.instrument_paused() IS 'Stops the waiting tasks of a paused instrument; makes the pairs of a resumed one due at once.';
CREATE TRIGGER instrument_paused AFTER UPDATE OF update_mode, is_active ON pricing.instruments
    FOR EACH ROW WHEN ((OLD.update_mode, OLD.is_active) IS DISTINCT FROM (NEW.update_mode, NEW.is_active))
    EXECUTE FUNCTION pricing.instrument_paused();

CREATE FUNCTION pricing.schedule_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF NEW.refresh_strategy <> 'scheduled' OR NOT NEW.is_active THEN
        UPDATE pricing.schedule_walks SET walk_slot = NULL, walk_after = '', lap_start = '', wrapped = false
        WHERE data_type = NEW.data_type;
    ELSE
        INSERT INTO pricing.schedule_walks AS w (data_type, served_slot) VALUES (NEW.data_type, pricing.clock())
        ON CONFLICT (data_type) DO UPDATE SET served_slot = greatest(w.served_slot, excluded.served_slot);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.schedule_changed() IS 'Slots that passed before a type had this schedule, or while it was retired, are not owed.';
CREATE TRIGGER schedule_added AFTER INSERT ON pricing.data_type_registry
    FOR EACH ROW EXECUTE FUNCTION pricing.schedule_changed();
CREATE TRIGGER schedule_changed AFTER UPDATE OF refresh_strategy, refresh_schedule, schedule_timezone, is_active
    ON pricing.data_type_registry
    FOR EACH ROW WHEN ((OLD.refresh_strategy, OLD.refresh_schedule, OLD.schedule_timezone, OLD.is_active)
        IS DISTINCT FROM (NEW.refresh_strategy, NEW.refresh_schedule, NEW.schedule_timezone, NEW.is_active))
    EXECUTE FUNCTION pricing.schedule_changed();
