-- The whole database in reading order. Words: docs/maintainers/architecture.md. Functions stand in
-- pricing_pipeline/db/functions/ and are deployed anew by each `db upgrade`, and rights in
-- pricing_pipeline/db/grants.sql. Only the clock and what triggers run stand here, beside their tables. Numbers of migrations begin with this one's: those before it had no users.

COMMENT ON SCHEMA pricing IS
    'Everything of the price-refresh pipeline. Times are timestamptz; money is an integer with its scale.';

-- ── The clock, and domains ──────────────────────────────────────────────────────────────────────────────

CREATE FUNCTION pricing.clock() RETURNS timestamptz
LANGUAGE sql PARALLEL SAFE AS $$SELECT pg_catalog.clock_timestamp()$$;
COMMENT ON FUNCTION pricing.clock() IS
    'The only clock. Tests replace it to move time; nothing else may.';

CREATE DOMAIN pricing.breaker_position AS text
    CONSTRAINT breaker_is_known CHECK (VALUE IN ('closed', 'open', 'half_open'));
COMMENT ON DOMAIN pricing.breaker_position IS
    'What a breaker lets through: closed = all calls, open = none, half_open = one probe.';

CREATE DOMAIN pricing.call_outcome AS text
    CONSTRAINT outcome_is_known CHECK (VALUE IN ('open', 'ok', 'failed', 'unknown'));
COMMENT ON DOMAIN pricing.call_outcome IS
    'What became of a call: open = nothing yet, ok = answered, failed = not answered or refused, unknown = its worker was lost.';

CREATE DOMAIN pricing.user_name AS text
    CONSTRAINT user_is_sane CHECK (length(VALUE) BETWEEN 1 AND 200);
COMMENT ON DOMAIN pricing.user_name IS
    'Who watches or holds something: 1 to 200 characters.';

-- ── Registry: what kinds of data there are ──────────────────────────────────────────────────────────────

CREATE TABLE pricing.data_type_registry (
    data_type                 text PRIMARY KEY
        CONSTRAINT data_type_is_plain_name CHECK (data_type ~ '^[a-z][a-z0-9_]{0,47}$'),
    description               text NOT NULL DEFAULT '',
    asset_class               text NOT NULL DEFAULT 'equity'
        CONSTRAINT asset_class_is_plain_name CHECK (asset_class ~ '^[a-z][a-z0-9_]{0,47}$'),
    fetcher                   text NOT NULL
        CONSTRAINT fetcher_is_known CHECK (fetcher IN ('quote', 'daily_bars', 'nav', 'profile', 'earnings', 'income_statement', 'dividends', 'splits')),
    default_ttl_minutes       integer NOT NULL CONSTRAINT ttl_is_positive CHECK (default_ttl_minutes > 0),
    table_name                text NOT NULL DEFAULT '',
    symbol_column             text NOT NULL DEFAULT 'symbol',
    timestamp_column          text NOT NULL DEFAULT 'fetched_at',
    staleness_function        text NOT NULL DEFAULT '',
    refresh_strategy          text NOT NULL DEFAULT 'on-demand'
        CONSTRAINT strategy_is_known CHECK (refresh_strategy IN ('on-demand', 'scheduled')),
    refresh_schedule          text,
    schedule_timezone         text NOT NULL DEFAULT 'UTC',
    history_from              date,
    estimated_data_size_bytes bigint NOT NULL DEFAULT 50000
        CONSTRAINT estimate_is_positive CHECK (estimated_data_size_bytes > 0),
    is_active                 boolean NOT NULL DEFAULT true,
    created_at                timestamptz NOT NULL DEFAULT pricing.clock(),
    background_ttl_minutes    integer NOT NULL DEFAULT 1440
        CONSTRAINT background_ttl_is_positive CHECK (background_ttl_minutes > 0),
    thin_after_days           integer CONSTRAINT thin_after_is_positive CHECK (thin_after_days > 0),
    thin_to_minutes           integer NOT NULL DEFAULT 1440
        CONSTRAINT thinning_divides_a_day CHECK (thin_to_minutes > 0 AND thin_to_minutes <= 1440 AND ((1440 % thin_to_minutes) = 0)),
    owner                     text
        CONSTRAINT owner_is_email_or_team CHECK (owner ~ '^(team:[A-Za-z0-9_-]{1,100}|[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24})$'),
    CONSTRAINT documents_have_no_backfill CHECK (fetcher IN ('quote', 'daily_bars', 'nav') OR history_from IS NULL),
    CONSTRAINT names_are_not_cut CHECK (63 >= ALL (ARRAY[octet_length(table_name), octet_length(symbol_column), octet_length(timestamp_column), octet_length(staleness_function)])),
    CONSTRAINT only_quotes_are_thinned CHECK (thin_after_days IS NULL OR fetcher = 'quote'),
    CONSTRAINT scheduled_types_have_a_schedule CHECK ((refresh_strategy = 'scheduled') = (refresh_schedule IS NOT NULL))
);
COMMENT ON TABLE pricing.data_type_registry IS
    'The single source of truth on data types. One INSERT adds a type: its storage, Dagster assets, freshness policy and refresh follow.';
COMMENT ON COLUMN pricing.data_type_registry.data_type IS 'Its name; it cannot be changed.';
COMMENT ON COLUMN pricing.data_type_registry.description IS 'For people.';
COMMENT ON COLUMN pricing.data_type_registry.asset_class IS
    'The instruments this type applies to: those of the same asset_class.';
COMMENT ON COLUMN pricing.data_type_registry.fetcher IS
    'What is asked of a provider; provider_routing says which provider.';
COMMENT ON COLUMN pricing.data_type_registry.default_ttl_minutes IS
    'How old a watched price may grow before it is due again.';
COMMENT ON COLUMN pricing.data_type_registry.table_name IS
    'View or table the staleness function judges; empty = the view latest_price_<data_type>, of a document type document_<data_type>, made by a trigger.';
COMMENT ON COLUMN pricing.data_type_registry.symbol_column IS 'Column of table_name with the symbol, text.';
COMMENT ON COLUMN pricing.data_type_registry.timestamp_column IS
    'Column of table_name that staleness is judged by, timestamptz.';
COMMENT ON COLUMN pricing.data_type_registry.staleness_function IS
    'Function (timestamptz, integer) returning boolean in this schema; it gets the timestamp and the TTL in minutes.';
COMMENT ON COLUMN pricing.data_type_registry.refresh_strategy IS
    'on-demand = while somebody watches; scheduled = by refresh_schedule too.';
COMMENT ON COLUMN pricing.data_type_registry.refresh_schedule IS
    'Cron expression of a scheduled type, in schedule_timezone.';
COMMENT ON COLUMN pricing.data_type_registry.schedule_timezone IS 'Time zone of refresh_schedule.';
COMMENT ON COLUMN pricing.data_type_registry.history_from IS
    'First day a backfill may ask for; NULL = the type keeps no history to backfill.';
COMMENT ON COLUMN pricing.data_type_registry.estimated_data_size_bytes IS
    'Bytes on the wire per symbol, reserved against the quota before a call.';
COMMENT ON COLUMN pricing.data_type_registry.is_active IS 'False = retired: not queued any more; its prices stay.';
COMMENT ON COLUMN pricing.data_type_registry.created_at IS 'When it was added.';
COMMENT ON COLUMN pricing.data_type_registry.background_ttl_minutes IS
    'How old the price of a held pair may grow while nobody watches it.';
COMMENT ON COLUMN pricing.data_type_registry.thin_after_days IS
    'Quotes older than so many days are thinned to one for every thin_to_minutes; NULL = all are kept for ever.';
COMMENT ON COLUMN pricing.data_type_registry.thin_to_minutes IS
    'Of each such span of a UTC day the last quote stays; it divides a day, which is the default.';
COMMENT ON COLUMN pricing.data_type_registry.owner IS
    'Who answers for it: an email address, or team:<name>; NULL = nobody in particular. Dagster shows it with the assets.';

CREATE TABLE pricing.registry_state (
    singleton boolean DEFAULT true PRIMARY KEY CONSTRAINT one_row CHECK (singleton),
    version   bigint NOT NULL
);
COMMENT ON TABLE pricing.registry_state IS
    'Counts changes of the registry, so that the sensor knows when to reload the code location.';
COMMENT ON COLUMN pricing.registry_state.singleton IS 'There is one row.';
COMMENT ON COLUMN pricing.registry_state.version IS 'Rises with every change of the registry.';
INSERT INTO pricing.registry_state (singleton, version) VALUES
    (true, 1);

-- ── Calendars: when markets trade ───────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.calendars (
    calendar      text PRIMARY KEY CONSTRAINT calendar_is_plain_name CHECK (calendar ~ '^[A-Z0-9][A-Z0-9/]{1,11}$'),
    description   text NOT NULL DEFAULT '',
    sessions_from date,
    sessions_to   date,
    filled_at     timestamptz,
    CONSTRAINT known_span_is_upright CHECK (((sessions_from IS NULL) = (sessions_to IS NULL)) AND sessions_from <= sessions_to)
);
COMMENT ON TABLE pricing.calendars IS
    'Trading calendars, by the ISO 10383 code of their exchange. FX (the week of foreign exchange) and 24/7 are our own.';
COMMENT ON COLUMN pricing.calendars.calendar IS 'Its name: what exchange-calendars knows it by.';
COMMENT ON COLUMN pricing.calendars.description IS 'For people.';
COMMENT ON COLUMN pricing.calendars.sessions_from IS 'First day whose sessions are known; NULL = none are yet.';
COMMENT ON COLUMN pricing.calendars.sessions_to IS 'Last day whose sessions are known. Beyond it only TTLs count.';
COMMENT ON COLUMN pricing.calendars.filled_at IS 'When its sessions were last written.';
INSERT INTO pricing.calendars (calendar, description) VALUES
    ('24/7', 'Always: crypto, and what is sold around the clock'),
    ('FX', 'Foreign exchange: Sunday to Friday, 17:00 in New York'),
    ('XNYS', 'New York Stock Exchange, and Nasdaq with the same days'),
    ('XLON', 'London Stock Exchange'),
    ('XETR', 'Xetra'),
    ('XPAR', 'Euronext Paris'),
    ('XAMS', 'Euronext Amsterdam'),
    ('XBRU', 'Euronext Brussels'),
    ('XMIL', 'Borsa Italiana'),
    ('XMAD', 'Bolsa de Madrid'),
    ('XSTO', 'Nasdaq Stockholm'),
    ('XSWX', 'SIX Swiss Exchange'),
    ('XTSE', 'Toronto Stock Exchange'),
    ('XTKS', 'Tokyo Stock Exchange'),
    ('XHKG', 'Hong Kong Stock Exchange'),
    ('XASX', 'Australian Securities Exchange'),
    ('XBOM', 'Bombay Stock Exchange, and India''s National Stock Exchange with the same days');

CREATE TABLE pricing.calendar_sessions (
    calendar  text NOT NULL REFERENCES pricing.calendars(calendar) ON DELETE CASCADE,
    session   date NOT NULL,
    opens_at  timestamptz NOT NULL,
    closes_at timestamptz NOT NULL,
    PRIMARY KEY (calendar, session),
    CONSTRAINT session_is_upright CHECK (opens_at < closes_at)
);
COMMENT ON TABLE pricing.calendar_sessions IS
    'Each day on which a market trades, holidays left out, half days with their early close.';
COMMENT ON COLUMN pricing.calendar_sessions.calendar IS 'Whose session.';
COMMENT ON COLUMN pricing.calendar_sessions.session IS
    'Its day, in the exchange''s own zone: the day that daily values carry.';
COMMENT ON COLUMN pricing.calendar_sessions.opens_at IS 'When trading begins.';
COMMENT ON COLUMN pricing.calendar_sessions.closes_at IS 'When trading ends.';
CREATE INDEX calendar_sessions_closing ON pricing.calendar_sessions (calendar, closes_at) INCLUDE (session, opens_at);

CREATE TABLE pricing.calendar_rules (
    asset_class text NOT NULL,
    ending      text NOT NULL DEFAULT '',
    currency    text NOT NULL DEFAULT '',
    calendar    text NOT NULL REFERENCES pricing.calendars(calendar),
    PRIMARY KEY (asset_class, ending, currency)
);
COMMENT ON TABLE pricing.calendar_rules IS
    'Which calendar an instrument gets when it becomes known: the rule with the longest fitting ending, and then one of its currency. No rule, no calendar.';
COMMENT ON COLUMN pricing.calendar_rules.asset_class IS 'Instruments of this class.';
COMMENT ON COLUMN pricing.calendar_rules.ending IS
    'How their symbol ends, as providers mark an exchange; empty = any that marks none.';
COMMENT ON COLUMN pricing.calendar_rules.currency IS 'Their currency; empty = any.';
COMMENT ON COLUMN pricing.calendar_rules.calendar IS 'What they get.';
INSERT INTO pricing.calendar_rules (asset_class, ending, currency, calendar) VALUES
    ('equity', '', '', 'XNYS'),
    ('equity', '.L', '', 'XLON'),
    ('equity', ':LSE', '', 'XLON'),
    ('equity', '.DE', '', 'XETR'),
    ('equity', ':XETR', '', 'XETR'),
    ('equity', '.PA', '', 'XPAR'),
    ('equity', '.AS', '', 'XAMS'),
    ('equity', '.BR', '', 'XBRU'),
    ('equity', '.MI', '', 'XMIL'),
    ('equity', '.MC', '', 'XMAD'),
    ('equity', '.ST', '', 'XSTO'),
    ('equity', '.SW', '', 'XSWX'),
    ('equity', '.TO', '', 'XTSE'),
    ('equity', ':TSX', '', 'XTSE'),
    ('equity', '.T', '', 'XTKS'),
    ('equity', '.HK', '', 'XHKG'),
    ('equity', '.AX', '', 'XASX'),
    ('equity', ':ASX', '', 'XASX'),
    ('equity', '.NS', '', 'XBOM'),
    ('equity', ':NSE', '', 'XBOM'),
    ('equity', '.BO', '', 'XBOM'),
    ('equity', ':BSE', '', 'XBOM'),
    ('fund', '', 'INR', 'XBOM'),
    ('fund', '', 'USD', 'XNYS'),
    ('fund', '', 'GBP', 'XLON'),
    ('fund', '', 'CAD', 'XTSE'),
    ('fx', '', '', 'FX'),
    ('crypto', '', '', '24/7'),
    ('inventory', '', '', '24/7');

CREATE TABLE pricing.publish_lags (
    data_type    text NOT NULL,
    symbol       text NOT NULL,
    lag          interval NOT NULL
        CONSTRAINT lag_is_sane CHECK (lag BETWEEN '00:00:00'::interval AND '24:00:00'::interval),
    measurements integer NOT NULL DEFAULT 1,
    learned_at   timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol)
);
COMMENT ON TABLE pricing.publish_lags IS
    'How long after a session''s end its daily value appears at the provider, learned for each pair.';
COMMENT ON COLUMN pricing.publish_lags.data_type IS 'Whose values.';
COMMENT ON COLUMN pricing.publish_lags.symbol IS 'Whose values.';
COMMENT ON COLUMN pricing.publish_lags.lag IS 'From the close until the value is asked for.';
COMMENT ON COLUMN pricing.publish_lags.measurements IS 'How many sessions it was learned from.';
COMMENT ON COLUMN pricing.publish_lags.learned_at IS 'When it was last corrected.';

-- ── Instruments: what can be priced ─────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.instruments (
    asset_class text NOT NULL,
    symbol      text NOT NULL
        CONSTRAINT symbol_is_sane CHECK (length(symbol) BETWEEN 1 AND 40 AND symbol ~ '^[A-Za-z0-9^][A-Za-z0-9./:=^_-]*$'),
    name        text,
    currency    text CONSTRAINT currency_is_code CHECK (currency ~ '^[A-Z]{3,5}$'),
    scale       smallint NOT NULL DEFAULT 2 CONSTRAINT scale_is_sane CHECK (scale BETWEEN 0 AND 12),
    update_mode text NOT NULL DEFAULT 'api' CONSTRAINT update_mode_is_known CHECK (update_mode IN ('api', 'manual')),
    is_active   boolean NOT NULL DEFAULT true,
    verified_at timestamptz,
    created_at  timestamptz NOT NULL DEFAULT pricing.clock(),
    calendar    text CONSTRAINT instrument_has_calendar REFERENCES pricing.calendars(calendar),
    listed_on   date,
    PRIMARY KEY (asset_class, symbol)
);
COMMENT ON TABLE pricing.instruments IS
    'What can be priced.';
COMMENT ON COLUMN pricing.instruments.asset_class IS 'Which data types it belongs to: those of the same class.';
COMMENT ON COLUMN pricing.instruments.symbol IS 'Its name at the providers.';
COMMENT ON COLUMN pricing.instruments.name IS 'For people.';
COMMENT ON COLUMN pricing.instruments.currency IS
    'ISO 4217 or a coin (USDT); learned from the first answer where it is not given. Values in another currency are held.';
COMMENT ON COLUMN pricing.instruments.scale IS
    'Least number of decimals its prices are stored with; a source with more keeps more.';
COMMENT ON COLUMN pricing.instruments.update_mode IS 'api = refreshed; manual = left alone.';
COMMENT ON COLUMN pricing.instruments.is_active IS 'False = left alone.';
COMMENT ON COLUMN pricing.instruments.verified_at IS
    'First valid answer of a provider; NULL = made by a subscription and not yet confirmed.';
COMMENT ON COLUMN pricing.instruments.created_at IS 'When it became known.';
COMMENT ON COLUMN pricing.instruments.calendar IS
    'When it trades or is valued; chosen by pricing.calendar_rules unless given. NULL = not known, so only TTLs count.';
COMMENT ON COLUMN pricing.instruments.listed_on IS
    'First day of trading, where a person has given it; no backfill asks for earlier days. pricing.listed_from also knows what answers have shown.';
CREATE INDEX instruments_paused ON pricing.instruments (asset_class, symbol) WHERE update_mode <> 'api' OR NOT is_active;

CREATE TABLE pricing.plausibility_bounds (
    data_type           text NOT NULL REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    symbol              text,
    lowest              numeric CONSTRAINT lowest_is_a_price CHECK ((lowest >= 0) AND lowest < 'Infinity'::numeric),
    highest             numeric CONSTRAINT highest_is_a_price CHECK ((highest > 0) AND highest < 'Infinity'::numeric),
    jumps_trusted_until timestamptz,
    CONSTRAINT bounds_are_upright CHECK (lowest <= highest)
);
COMMENT ON TABLE pricing.plausibility_bounds IS
    'What people know of a symbol''s prices, or of all of a data type (symbol NULL). A symbol''s own row replaces the broad one. No row = no bounds.';
COMMENT ON COLUMN pricing.plausibility_bounds.data_type IS 'Whose values they bound.';
COMMENT ON COLUMN pricing.plausibility_bounds.symbol IS 'NULL = every symbol of the type without a row of its own.';
COMMENT ON COLUMN pricing.plausibility_bounds.lowest IS 'Lower prices are held.';
COMMENT ON COLUMN pricing.plausibility_bounds.highest IS 'Higher prices are held.';
COMMENT ON COLUMN pricing.plausibility_bounds.jumps_trusted_until IS
    'Until then no value is held for being far from the last one: after a split or a change of unit that a person has checked.';
CREATE UNIQUE INDEX plausibility_bounds_pair ON pricing.plausibility_bounds (data_type, symbol) NULLS NOT DISTINCT;

-- ── Demand: who wants what, and when it is due ──────────────────────────────────────────────────────────

CREATE TABLE pricing.demand (
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    due_at        timestamptz NOT NULL,
    became_due_at timestamptz,
    failures      integer NOT NULL DEFAULT 0,
    held_until    timestamptz,
    last_failure  text,
    created_at    timestamptz NOT NULL DEFAULT pricing.clock(),
    read_at       timestamptz,
    owed_since    timestamptz,
    is_background boolean NOT NULL DEFAULT false,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.demand IS
    'One row for each wanted (data_type, symbol), so that the staleness check costs what is due, not what is watched.';
COMMENT ON COLUMN pricing.demand.data_type IS 'What is wanted.';
COMMENT ON COLUMN pricing.demand.symbol IS 'What is wanted.';
COMMENT ON COLUMN pricing.demand.due_at IS
    'When to look at the pair next. While a task for it is live, it is not looked at.';
COMMENT ON COLUMN pricing.demand.became_due_at IS 'A task for the pair is live, and owed since then; NULL = none is.';
COMMENT ON COLUMN pricing.demand.failures IS 'Dead tasks in a row.';
COMMENT ON COLUMN pricing.demand.held_until IS
    'A pair whose task died backs off until then: up to 10 min after trouble, 1 h after a cancel by hand, 1 h doubling to 24 h after a fault of its symbol.';
COMMENT ON COLUMN pricing.demand.last_failure IS 'Why the last task died.';
COMMENT ON COLUMN pricing.demand.created_at IS 'Since when somebody wants it.';
COMMENT ON COLUMN pricing.demand.read_at IS
    'A read has asked for the pair, last at this time, and is not served yet: it counts as a viewer. NULL = none waits.';
COMMENT ON COLUMN pricing.demand.owed_since IS
    'Since when the pair is owed a price that trouble keeps away: a task for it died, by no fault of its symbol. NULL = no such trouble.';
COMMENT ON COLUMN pricing.demand.is_background IS
    'The pair was judged last while nobody watched: due_at may be by the background TTL, and says nothing to a viewer.';
CREATE INDEX demand_due ON pricing.demand (data_type, due_at);
CREATE INDEX demand_owed ON pricing.demand (data_type, due_at) WHERE owed_since IS NOT NULL;

CREATE TABLE pricing.active_subscriptions (
    user_id       pricing.user_name NOT NULL,
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    subscribed_at timestamptz NOT NULL DEFAULT pricing.clock(),
    last_seen_at  timestamptz NOT NULL DEFAULT pricing.clock(),
    PRIMARY KEY (user_id, data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.active_subscriptions IS
    'Who looks at what, kept alive by heartbeats; removed on leave or after 5 silent minutes.';
COMMENT ON COLUMN pricing.active_subscriptions.user_id IS 'Who looks: the login of a session, or whom a worker names.';
COMMENT ON COLUMN pricing.active_subscriptions.data_type IS 'What is looked at.';
COMMENT ON COLUMN pricing.active_subscriptions.symbol IS 'What is looked at.';
COMMENT ON COLUMN pricing.active_subscriptions.subscribed_at IS 'Since when, without a pause of five minutes.';
COMMENT ON COLUMN pricing.active_subscriptions.last_seen_at IS
    'The last heartbeat, stamped by the database. Nothing else changes it, but for the moment at which a clock that was set back is noticed.';
CREATE INDEX active_subscriptions_pair ON pricing.active_subscriptions (data_type, symbol);

CREATE TABLE pricing.holdings (
    user_id       pricing.user_name NOT NULL,
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    status        text NOT NULL DEFAULT 'active' CONSTRAINT status_is_known CHECK (status IN ('active', 'closed')),
    since         timestamptz NOT NULL DEFAULT pricing.clock(),
    closed_at     timestamptz,
    active_symbol text GENERATED ALWAYS AS (
CASE
    WHEN (status = 'active') THEN symbol
    ELSE NULL
END) STORED,
    PRIMARY KEY (user_id, data_type, symbol),
    CONSTRAINT closed_holding_has_time CHECK ((status = 'closed') = (closed_at IS NOT NULL))
);
COMMENT ON TABLE pricing.holdings IS
    'Who holds what. While any holding of a pair is active, its price is kept fresh by the background TTL.';
COMMENT ON COLUMN pricing.holdings.user_id IS 'Who holds it.';
COMMENT ON COLUMN pricing.holdings.data_type IS 'What is held.';
COMMENT ON COLUMN pricing.holdings.symbol IS 'What is held.';
COMMENT ON COLUMN pricing.holdings.status IS 'active, or closed: kept as a record.';
COMMENT ON COLUMN pricing.holdings.since IS 'Since when it is held; begins anew when a closed holding is opened again.';
COMMENT ON COLUMN pricing.holdings.closed_at IS 'When it was released.';
COMMENT ON COLUMN pricing.holdings.active_symbol IS 'The symbol while the holding is active.';
CREATE INDEX holdings_active ON pricing.holdings (data_type, active_symbol) WHERE active_symbol IS NOT NULL;

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
    singleton            boolean DEFAULT true PRIMARY KEY CONSTRAINT one_row CHECK (singleton),
    pairs_per_user       integer NOT NULL DEFAULT 10000
        CONSTRAINT pairs_per_user_is_positive CHECK (pairs_per_user > 0),
    new_pairs_per_minute integer NOT NULL DEFAULT 5000
        CONSTRAINT new_pairs_per_minute_is_positive CHECK (new_pairs_per_minute > 0)
);
COMMENT ON TABLE pricing.user_caps IS
    'What one user may ask for. The one row may be changed at any time; it counts from the next heartbeat.';
COMMENT ON COLUMN pricing.user_caps.singleton IS 'Keeps it at one row.';
COMMENT ON COLUMN pricing.user_caps.pairs_per_user IS
    'Pairs one user may watch at once, and as many may be held; reads have no more fetched in a minute.';
COMMENT ON COLUMN pricing.user_caps.new_pairs_per_minute IS
    'Pairs one user may begin to watch or hold, or have fetched by reads, in a minute.';
INSERT INTO pricing.user_caps (singleton, pairs_per_user, new_pairs_per_minute) VALUES
    (true, 10000, 5000);

CREATE TABLE pricing.user_allowances (
    user_id     text PRIMARY KEY,
    spent_until timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.user_allowances IS
    'What users have used of their new pairs a minute. Leaving gives nothing back, so coming and going is bounded, too.';
COMMENT ON COLUMN pricing.user_allowances.user_id IS 'Who has begun to watch or hold something lately.';
COMMENT ON COLUMN pricing.user_allowances.spent_until IS
    'Each new pair moves it on by its share of a minute; at most a minute ahead of now. In the past: nothing is used.';

CREATE TABLE pricing.read_charges (
    user_id    pricing.user_name NOT NULL,
    charged_at timestamptz NOT NULL,
    pairs      integer NOT NULL CONSTRAINT pairs_are_positive CHECK (pairs > 0),
    PRIMARY KEY (user_id, charged_at)
);
COMMENT ON TABLE pricing.read_charges IS
    'What workers have served of the reads of each user in the last minute. Only workers write it, one at a time, so no client keeps it locked.';
COMMENT ON COLUMN pricing.read_charges.user_id IS 'Who has read what had to be fetched.';
COMMENT ON COLUMN pricing.read_charges.charged_at IS 'When it was served.';
COMMENT ON COLUMN pricing.read_charges.pairs IS 'How many pairs that were.';

CREATE TABLE pricing.pair_requests (
    request_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    data_type    text NOT NULL,
    symbol       text NOT NULL CONSTRAINT symbol_is_sane CHECK (length(symbol) <= 40),
    kind         text NOT NULL
        CONSTRAINT kind_is_known CHECK (kind IN ('watched', 'held', 'read', 'seen', 'scheduled')),
    requested_at timestamptz NOT NULL DEFAULT pricing.clock(),
    user_id      pricing.user_name
);
COMMENT ON TABLE pricing.pair_requests IS
    'What clients, and walks that met a lock, ask for, until a worker serves it (serve_requests): rows are only added and deleted, so that nobody waits for anybody.';
COMMENT ON COLUMN pricing.pair_requests.request_id IS 'Requests are served in this order.';
COMMENT ON COLUMN pricing.pair_requests.data_type IS 'What is asked for.';
COMMENT ON COLUMN pricing.pair_requests.symbol IS 'What is asked for.';
COMMENT ON COLUMN pricing.pair_requests.kind IS
    'watched, held = a user has begun to; read = it was read while missing or stale; seen = it was looked at; scheduled = a walk came by it and could not queue it: its provider can take no more, or another session was in the way.';
COMMENT ON COLUMN pricing.pair_requests.requested_at IS 'When it was asked for.';
COMMENT ON COLUMN pricing.pair_requests.user_id IS
    'Whose read it is, against whose allowance it counts; NULL = no read of a client.';
CREATE INDEX pair_requests_pair ON pricing.pair_requests (data_type, symbol);

CREATE TABLE pricing.check_marks (
    data_type    text PRIMARY KEY REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    queued_until timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.check_marks IS
    'Where the staleness check of a data type begins, so that it does not pass by a backlog each time. No row: at the beginning.';
COMMENT ON COLUMN pricing.check_marks.data_type IS 'What is checked.';
COMMENT ON COLUMN pricing.check_marks.queued_until IS 'What fell due before was queued.';

CREATE TABLE pricing.schedule_walks (
    data_type   text PRIMARY KEY REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    served_slot timestamptz NOT NULL,
    walk_slot   timestamptz,
    walk_after  text NOT NULL DEFAULT '',
    lap_start   text NOT NULL DEFAULT '',
    wrapped     boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE pricing.schedule_walks IS
    'For each scheduled data type: the slot of its schedule that was served last, and how far the walk over its instruments is.';
COMMENT ON COLUMN pricing.schedule_walks.data_type IS 'The scheduled data type.';
COMMENT ON COLUMN pricing.schedule_walks.served_slot IS
    'No slot up to this one is owed: it was served, or passed before the type had this schedule.';
COMMENT ON COLUMN pricing.schedule_walks.walk_slot IS 'The slot whose walk is under way; NULL when none is.';
COMMENT ON COLUMN pricing.schedule_walks.walk_after IS 'The walk goes on after this symbol.';
COMMENT ON COLUMN pricing.schedule_walks.lap_start IS
    'Where the lap began: behind the unfinished walk of an earlier slot. It ends there, too.';
COMMENT ON COLUMN pricing.schedule_walks.wrapped IS 'The lap has passed the last symbol and goes on from the first.';

CREATE TABLE pricing.freshness_samples (
    data_type  text NOT NULL,
    at         timestamptz NOT NULL,
    watched    integer NOT NULL,
    fresh      integer NOT NULL,
    late       integer NOT NULL,
    oldest_age interval,
    PRIMARY KEY (data_type, at)
);
COMMENT ON TABLE pricing.freshness_samples IS
    'How each watched data type served its viewers, looked at every five minutes and kept for seven days: what plots are drawn from.';
COMMENT ON COLUMN pricing.freshness_samples.data_type IS 'Of which pairs.';
COMMENT ON COLUMN pricing.freshness_samples.at IS 'When it was looked at.';
COMMENT ON COLUMN pricing.freshness_samples.watched IS 'How many pairs somebody watched.';
COMMENT ON COLUMN pricing.freshness_samples.fresh IS 'How many of them were within their TTL.';
COMMENT ON COLUMN pricing.freshness_samples.late IS 'How many were owed a price for more than max(30 s, TTL/4).';
COMMENT ON COLUMN pricing.freshness_samples.oldest_age IS 'Age of the oldest of their prices; NULL when none has one.';

-- ── Providers: addresses, keys, limits and routes ───────────────────────────────────────────────────────

CREATE TABLE pricing.data_collectors (
    provider               text PRIMARY KEY
        CONSTRAINT provider_is_plain_name CHECK (provider ~ '^[a-z][a-z0-9_]{0,47}$'),
    description            text NOT NULL DEFAULT '',
    base_url               text NOT NULL,
    is_active              boolean NOT NULL DEFAULT true,
    max_in_flight          integer NOT NULL DEFAULT 10
        CONSTRAINT in_flight_is_sane CHECK (max_in_flight BETWEEN 1 AND 10),
    throttle_pause_seconds integer NOT NULL DEFAULT 5 CONSTRAINT pause_is_positive CHECK (throttle_pause_seconds > 0),
    quota_bytes            bigint NOT NULL DEFAULT 21474836480 CONSTRAINT quota_is_positive CHECK (quota_bytes > 0),
    request_delay_ms       integer NOT NULL DEFAULT 0
        CONSTRAINT delay_is_sane CHECK (request_delay_ms BETWEEN 0 AND 3600000)
);
COMMENT ON TABLE pricing.data_collectors IS
    'Providers, their address and their allowances.';
COMMENT ON COLUMN pricing.data_collectors.provider IS 'Its name, as routes and calls have it.';
COMMENT ON COLUMN pricing.data_collectors.description IS 'For people.';
COMMENT ON COLUMN pricing.data_collectors.base_url IS
    'Where it answers; the sandbox''s address takes its place while the sandbox is on.';
COMMENT ON COLUMN pricing.data_collectors.is_active IS
    'False = it is not called; what it alone serves fails as misconfigured.';
COMMENT ON COLUMN pricing.data_collectors.max_in_flight IS 'Calls of one process that may be under way at once.';
COMMENT ON COLUMN pricing.data_collectors.throttle_pause_seconds IS
    'First pause after a refusal for speed that names no time; doubles while refusals go on.';
COMMENT ON COLUMN pricing.data_collectors.quota_bytes IS
    'Bytes allowed in any 720 hours (30 days of exactly 24 hours).';
COMMENT ON COLUMN pricing.data_collectors.request_delay_ms IS
    'Least time between two calls of all workers together; twice as long while the provider says that 5 units or fewer are left.';

CREATE TABLE pricing.provider_capabilities (
    provider             text NOT NULL REFERENCES pricing.data_collectors(provider),
    fetcher              text NOT NULL,
    batch_size           integer NOT NULL CONSTRAINT batch_is_positive CHECK (batch_size > 0),
    window_batch_size    integer NOT NULL DEFAULT 1 CONSTRAINT window_batch_is_positive CHECK (window_batch_size > 0),
    units_per_call       integer NOT NULL DEFAULT 0,
    units_per_symbol     integer NOT NULL DEFAULT 0,
    max_window_days      integer NOT NULL DEFAULT 1 CONSTRAINT window_is_positive CHECK (max_window_days > 0),
    bytes_per_day        integer NOT NULL DEFAULT 150,
    routes_new_types     boolean NOT NULL DEFAULT true,
    window_days_per_call integer CONSTRAINT window_days_are_positive CHECK (window_days_per_call > 0),
    batch_from           integer NOT NULL DEFAULT 1 CONSTRAINT batch_from_is_positive CHECK (batch_from > 0),
    PRIMARY KEY (provider, fetcher),
    CONSTRAINT a_call_costs_something CHECK (units_per_call >= 0 AND units_per_symbol >= 0 AND ((units_per_call + units_per_symbol) > 0)),
    CONSTRAINT batch_from_is_at_most_batch_size CHECK (batch_from <= batch_size)
);
COMMENT ON TABLE pricing.provider_capabilities IS
    'What a provider can fetch, in which batches, at what cost in its own units. Claims plan calls from it.';
COMMENT ON COLUMN pricing.provider_capabilities.provider IS 'Who can.';
COMMENT ON COLUMN pricing.provider_capabilities.fetcher IS 'What it can be asked for.';
COMMENT ON COLUMN pricing.provider_capabilities.batch_size IS 'Symbols in one call for latest prices.';
COMMENT ON COLUMN pricing.provider_capabilities.window_batch_size IS
    'Symbols in one call for a span of days, where answers are long.';
COMMENT ON COLUMN pricing.provider_capabilities.units_per_call IS 'Cost of a call, in the provider''s units.';
COMMENT ON COLUMN pricing.provider_capabilities.units_per_symbol IS
    'Cost of each symbol of a call, in the provider''s units.';
COMMENT ON COLUMN pricing.provider_capabilities.max_window_days IS
    'Longest span one call may ask for, so that an answer is never cut at a page.';
COMMENT ON COLUMN pricing.provider_capabilities.bytes_per_day IS
    'Bytes on the wire for a day of history of one symbol, as an estimate.';
COMMENT ON COLUMN pricing.provider_capabilities.routes_new_types IS
    'Whether a new data type of this fetcher may find its route to this provider by itself. False = only who says so comes here.';
COMMENT ON COLUMN pricing.provider_capabilities.window_days_per_call IS
    'The most days that one call for a span may ask for, over all its symbols: a long span travels alone. NULL = window_batch_size alone decides.';
COMMENT ON COLUMN pricing.provider_capabilities.batch_from IS
    'The fewest symbols that share a call for latest prices; fewer are asked for one by one, as is what has failed before. 1 = any number shares a call.';

CREATE TABLE pricing.provider_limits (
    provider       text NOT NULL REFERENCES pricing.data_collectors(provider),
    name           text NOT NULL,
    units          integer NOT NULL CONSTRAINT limit_is_positive CHECK (units > 0),
    window_seconds integer CONSTRAINT limit_window_is_positive CHECK (window_seconds > 0),
    day_timezone   text,
    PRIMARY KEY (provider, name),
    CONSTRAINT limit_has_one_window CHECK ((window_seconds IS NULL) <> (day_timezone IS NULL))
);
COMMENT ON TABLE pricing.provider_limits IS
    'Rate limits of each key, in the provider''s units: in any window_seconds, or per calendar day of day_timezone. All must have room.';
COMMENT ON COLUMN pricing.provider_limits.provider IS 'Whose limit.';
COMMENT ON COLUMN pricing.provider_limits.name IS 'Its name.';
COMMENT ON COLUMN pricing.provider_limits.units IS 'Units allowed in the window.';
COMMENT ON COLUMN pricing.provider_limits.window_seconds IS
    'Length of a sliding window in seconds; NULL = a calendar day.';
COMMENT ON COLUMN pricing.provider_limits.day_timezone IS
    'Time zone whose midnight ends the day; NULL = a sliding window.';

CREATE TABLE pricing.provider_keys (
    provider       text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
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
    'API keys of a provider by name, each with its own rate limits. A provider without rows has one key named default. Secrets are in provider_credentials, encrypted, or in settings.';
COMMENT ON COLUMN pricing.provider_keys.provider IS 'Whose key.';
COMMENT ON COLUMN pricing.provider_keys.key_name IS 'Its name.';
COMMENT ON COLUMN pricing.provider_keys.is_active IS 'False = no call is made with it.';
COMMENT ON COLUMN pricing.provider_keys.blocked_until IS
    'No worker uses the key before: the provider refused it, for speed or altogether.';
COMMENT ON COLUMN pricing.provider_keys.blocked_reason IS 'Why it is blocked, for people.';
COMMENT ON COLUMN pricing.provider_keys.throttles IS
    'Refusals in a row. Until the next good answer the pause grows, and one call at a time feels the way.';
COMMENT ON COLUMN pricing.provider_keys.reported_left IS
    'Units that the provider last said are left; only kept while there are few.';
COMMENT ON COLUMN pricing.provider_keys.reported_at IS 'When the provider said so.';
COMMENT ON COLUMN pricing.provider_keys.foreign_units IS
    'Units that the provider counts and we do not: somebody else uses the key, or its plan is smaller than our limit. They are taken off until foreign_until.';
COMMENT ON COLUMN pricing.provider_keys.foreign_until IS 'Until when foreign_units are taken off.';

CREATE TABLE pricing.provider_key_limits (
    provider text NOT NULL,
    key_name text NOT NULL,
    name     text NOT NULL,
    units    integer NOT NULL CONSTRAINT key_limit_is_positive CHECK (units > 0),
    PRIMARY KEY (provider, key_name, name),
    CONSTRAINT key_limit_has_key FOREIGN KEY (provider, key_name) REFERENCES pricing.provider_keys(provider, key_name) ON DELETE CASCADE,
    CONSTRAINT key_limit_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits(provider, name) ON DELETE CASCADE
);
COMMENT ON TABLE pricing.provider_key_limits IS
    'Keys whose plan differs: other units than provider_limits says, in the same window.';
COMMENT ON COLUMN pricing.provider_key_limits.provider IS 'Whose limit.';
COMMENT ON COLUMN pricing.provider_key_limits.key_name IS 'The key that differs.';
COMMENT ON COLUMN pricing.provider_key_limits.name IS 'The limit''s name in provider_limits, which has its window.';
COMMENT ON COLUMN pricing.provider_key_limits.units IS 'Units allowed to this key in the window.';

CREATE SEQUENCE pricing.credential_version_seq;
COMMENT ON SEQUENCE pricing.credential_version_seq IS
    'Versions of rows of provider_credentials. None is used twice, so that no two ciphertexts are bound to the same.';
CREATE TABLE pricing.provider_credentials (
    provider      text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    key_name      text NOT NULL,
    row_version   bigint NOT NULL,
    master_key_id text NOT NULL CONSTRAINT master_key_id_is_plain CHECK (master_key_id ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    key_nonce     bytea NOT NULL CONSTRAINT key_nonce_has_96_bits CHECK (octet_length(key_nonce) = 12),
    wrapped_key   bytea NOT NULL CONSTRAINT wrapped_key_has_key_and_tag CHECK (octet_length(wrapped_key) = 48),
    secret_nonce  bytea NOT NULL CONSTRAINT secret_nonce_has_96_bits CHECK (octet_length(secret_nonce) = 12),
    ciphertext    bytea NOT NULL
        CONSTRAINT ciphertext_is_padded CHECK (octet_length(ciphertext) BETWEEN 80 AND 4176 AND ((octet_length(ciphertext) % 64) = 16)),
    created_at    timestamptz NOT NULL,
    rotated_at    timestamptz,
    sealed_at     timestamptz NOT NULL,
    PRIMARY KEY (provider, key_name),
    CONSTRAINT credential_version_is_unique UNIQUE (row_version),
    CONSTRAINT credential_has_key FOREIGN KEY (provider, key_name) REFERENCES pricing.provider_keys(provider, key_name),
    CONSTRAINT nonces_differ CHECK (key_nonce <> secret_nonce)
);
COMMENT ON TABLE pricing.provider_credentials IS
    'API keys of providers under AES-256-GCM. Each row has a data key of its own, wrapped by a master key that is not in the database. Both ciphertexts are bound to provider, key_name, row_version and master_key_id: in any other row they do not open.';
COMMENT ON COLUMN pricing.provider_credentials.provider IS 'Whose key.';
COMMENT ON COLUMN pricing.provider_credentials.key_name IS
    'Its name, under which provider_keys has its limits and pauses.';
COMMENT ON COLUMN pricing.provider_credentials.row_version IS 'Another one each time the row is sealed.';
COMMENT ON COLUMN pricing.provider_credentials.master_key_id IS 'The master key that wraps wrapped_key.';
COMMENT ON COLUMN pricing.provider_credentials.key_nonce IS 'Nonce of wrapped_key, random.';
COMMENT ON COLUMN pricing.provider_credentials.wrapped_key IS
    'The data key, encrypted with the master key, and its tag.';
COMMENT ON COLUMN pricing.provider_credentials.secret_nonce IS 'Nonce of ciphertext, random.';
COMMENT ON COLUMN pricing.provider_credentials.ciphertext IS
    'The API key, padded, encrypted with the data key, and its tag.';
COMMENT ON COLUMN pricing.provider_credentials.created_at IS 'When a key of this name was first stored.';
COMMENT ON COLUMN pricing.provider_credentials.rotated_at IS 'When it was last replaced by another; NULL = never.';
COMMENT ON COLUMN pricing.provider_credentials.sealed_at IS
    'When the row was last encrypted, be it for a new master key only.';

CREATE TABLE pricing.provider_state (
    provider         text PRIMARY KEY REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    claims           bigint NOT NULL DEFAULT 0,
    breaker          pricing.breaker_position NOT NULL DEFAULT 'closed',
    breaker_since    timestamptz,
    breaker_until    timestamptz,
    breaker_openings integer NOT NULL DEFAULT 0,
    breaker_reason   text,
    probe_call       bigint,
    last_call_at     timestamptz,
    trouble          text,
    passed_at        timestamptz,
    passed_priority  integer,
    passed_cadence   integer,
    passed_id        bigint,
    CONSTRAINT breaker_has_end CHECK (((breaker) = 'closed') = (breaker_until IS NULL)),
    CONSTRAINT probing_has_call CHECK (((breaker) = 'half_open') = (probe_call IS NOT NULL))
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.provider_state IS
    'The row whose lock makes looking at the limits and taking from them one step.';
COMMENT ON COLUMN pricing.provider_state.provider IS 'Whose state.';
COMMENT ON COLUMN pricing.provider_state.claims IS 'Counts claims, so that every tenth can begin with a backfill.';
COMMENT ON COLUMN pricing.provider_state.breaker IS
    'open = no calls before breaker_until; then one probe is made (half_open), whose success closes it.';
COMMENT ON COLUMN pricing.provider_state.breaker_since IS
    'Its last change. What happened before it was closed does not count against the provider.';
COMMENT ON COLUMN pricing.provider_state.breaker_until IS
    'Open: when a probe may be made. Half open: when the probe counts as lost.';
COMMENT ON COLUMN pricing.provider_state.breaker_openings IS 'Openings in a row; the wait is 60 s, doubling to 10 min.';
COMMENT ON COLUMN pricing.provider_state.breaker_reason IS 'Why the breaker last opened, for people.';
COMMENT ON COLUMN pricing.provider_state.probe_call IS 'The one call that decides.';
COMMENT ON COLUMN pricing.provider_state.last_call_at IS 'When calls were last claimed, for request_delay_ms.';
COMMENT ON COLUMN pricing.provider_state.trouble IS
    'Why others are asked before it where a route names some: breaker open for minutes, quota spent, keys refused. Looked at every 10 s (watch_providers).';
COMMENT ON COLUMN pricing.provider_state.passed_at IS
    'When a claim last looked from the first task on; for 250 ms from then claims may begin after the last one. NULL = the next one looks from the first on.';
COMMENT ON COLUMN pricing.provider_state.passed_priority IS 'Priority of the task that was claimed last.';
COMMENT ON COLUMN pricing.provider_state.passed_cadence IS 'Its cadence_minutes.';
COMMENT ON COLUMN pricing.provider_state.passed_id IS 'Its id.';

CREATE TABLE pricing.provider_routing (
    data_type text NOT NULL REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    symbol    text,
    provider  text NOT NULL REFERENCES pricing.data_collectors(provider),
    is_active boolean NOT NULL DEFAULT true,
    rank      smallint NOT NULL DEFAULT 1 CONSTRAINT rank_is_positive CHECK (rank > 0)
);
COMMENT ON TABLE pricing.provider_routing IS
    'Which providers serve a data type (symbol NULL), or one symbol of it, in which order. A symbol''s own come first.';
COMMENT ON COLUMN pricing.provider_routing.data_type IS 'What is routed.';
COMMENT ON COLUMN pricing.provider_routing.symbol IS
    'The one symbol it is for; NULL = all that have no rule of their own.';
COMMENT ON COLUMN pricing.provider_routing.provider IS 'Who serves it.';
COMMENT ON COLUMN pricing.provider_routing.is_active IS 'False = the rule does not count.';
COMMENT ON COLUMN pricing.provider_routing.rank IS 'The lowest is asked; the next, when it cannot serve.';
CREATE UNIQUE INDEX provider_routing_once ON pricing.provider_routing (data_type, symbol, provider) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX provider_routing_order ON pricing.provider_routing (data_type, symbol, rank) NULLS NOT DISTINCT;

CREATE TABLE pricing.route_refusals (
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    provider      text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    kind          text NOT NULL,
    reason        text NOT NULL,
    refused_at    timestamptz NOT NULL,
    refused_until timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol, provider)
);
COMMENT ON TABLE pricing.route_refusals IS
    'Pairs that a provider said it does not serve, where another one may: it is asked again after a week, or when a route changes.';
COMMENT ON COLUMN pricing.route_refusals.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.route_refusals.symbol IS 'What was asked for.';
COMMENT ON COLUMN pricing.route_refusals.provider IS 'Who does not serve it.';
COMMENT ON COLUMN pricing.route_refusals.kind IS 'unknown_symbol, plan_restricted or endpoint_restricted.';
COMMENT ON COLUMN pricing.route_refusals.reason IS 'What it said.';
COMMENT ON COLUMN pricing.route_refusals.refused_at IS 'When it said so last.';
COMMENT ON COLUMN pricing.route_refusals.refused_until IS 'Until then others are asked before it.';

-- ── Calls: the memory of limits and quota ───────────────────────────────────────────────────────────────

CREATE SEQUENCE pricing.call_id_seq;
COMMENT ON SEQUENCE pricing.call_id_seq IS 'Numbers calls.';
CREATE TABLE pricing.collector_call_log (
    call_id        bigint DEFAULT nextval('pricing.call_id_seq') PRIMARY KEY,
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
    outcome        pricing.call_outcome NOT NULL DEFAULT 'open',
    http_status    integer,
    wire_bytes     bigint,
    error          text,
    key_name       text NOT NULL DEFAULT 'default',
    failure_kind   text,
    moved_to       timestamptz,
    is_unannounced boolean NOT NULL DEFAULT false,
    CONSTRAINT open_calls_are_unfinished CHECK (((outcome) = 'open') = (finished_at IS NULL))
) WITH (fillfactor = 80);
COMMENT ON TABLE pricing.collector_call_log IS
    'Every call to a provider: committed before it is made, completed after. It is also the rate limit''s memory and, while open, the quota''s reservation.';
COMMENT ON COLUMN pricing.collector_call_log.call_id IS 'Rises with each call; prices carry it.';
COMMENT ON COLUMN pricing.collector_call_log.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.collector_call_log.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.collector_call_log.symbols IS 'What was asked for, in the order of the request.';
COMMENT ON COLUMN pricing.collector_call_log.window_start IS 'First day asked for; -infinity = the latest price.';
COMMENT ON COLUMN pricing.collector_call_log.window_end IS 'Last day asked for, included; infinity = the latest price.';
COMMENT ON COLUMN pricing.collector_call_log.units IS 'What it costs, in the provider''s units.';
COMMENT ON COLUMN pricing.collector_call_log.reserved_bytes IS 'Bytes held against the quota until it is settled.';
COMMENT ON COLUMN pricing.collector_call_log.run_id IS 'Dagster''s id of the run that made it.';
COMMENT ON COLUMN pricing.collector_call_log.worker IS 'Who made it: host and process.';
COMMENT ON COLUMN pricing.collector_call_log.started_at IS 'When it was claimed, before it was made.';
COMMENT ON COLUMN pricing.collector_call_log.finished_at IS 'When it was settled; NULL = open.';
COMMENT ON COLUMN pricing.collector_call_log.outcome IS
    'unknown = the worker was lost; the estimate was booked as used.';
COMMENT ON COLUMN pricing.collector_call_log.http_status IS 'Status of the answer; NULL = no answer, or none known.';
COMMENT ON COLUMN pricing.collector_call_log.wire_bytes IS 'Headers and body as they were sent, compressed.';
COMMENT ON COLUMN pricing.collector_call_log.error IS 'Why it brought nothing, without secrets.';
COMMENT ON COLUMN pricing.collector_call_log.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.collector_call_log.failure_kind IS
    'Why the call brought nothing, for the most of its symbols at least. pricing.is_provider_fault says which kinds the breaker counts. Empty when a lost worker was late to tell.';
COMMENT ON COLUMN pricing.collector_call_log.moved_to IS
    'started_at on the clock as it is now, where that was set back since; -infinity = the call counts no more. NULL = it was not.';
COMMENT ON COLUMN pricing.collector_call_log.is_unannounced IS
    'Its answer came without a Content-Length. Its bytes were counted as they arrived; `status` counts such calls.';
CREATE INDEX collector_call_log_failed ON pricing.collector_call_log (provider, started_at) WHERE failure_kind IS NOT NULL;
CREATE INDEX collector_call_log_moved ON pricing.collector_call_log (provider, moved_to) INCLUDE (units, key_name) WHERE moved_to IS NOT NULL;
CREATE INDEX collector_call_log_open ON pricing.collector_call_log (provider) INCLUDE (reserved_bytes) WHERE finished_at IS NULL;
CREATE INDEX collector_call_log_rate ON pricing.collector_call_log (provider, started_at) INCLUDE (units, key_name) WHERE moved_to IS NULL;
CREATE INDEX collector_call_log_unannounced ON pricing.collector_call_log (provider, started_at) WHERE is_unannounced;

CREATE TABLE pricing.past_calls (
    call_id      bigint PRIMARY KEY,
    provider     text NOT NULL,
    key_name     text NOT NULL,
    data_type    text NOT NULL,
    window_start date,
    window_end   date,
    symbols      integer NOT NULL,
    run_id       text,
    worker       text NOT NULL,
    started_at   timestamptz NOT NULL,
    finished_at  timestamptz NOT NULL,
    http_status  integer,
    wire_bytes   bigint
);
COMMENT ON TABLE pricing.past_calls IS
    'Calls that were answered, once they leave collector_call_log: what a price that they brought needs to be traced. They are kept for good, as prices are.';
COMMENT ON COLUMN pricing.past_calls.call_id IS 'Its number, which prices carry.';
COMMENT ON COLUMN pricing.past_calls.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.past_calls.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.past_calls.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.past_calls.window_start IS 'First day asked for; NULL = the latest price.';
COMMENT ON COLUMN pricing.past_calls.window_end IS 'Last day asked for, included; NULL = the latest price.';
COMMENT ON COLUMN pricing.past_calls.symbols IS 'How many symbols were asked for.';
COMMENT ON COLUMN pricing.past_calls.run_id IS
    'Dagster''s id of the run that made it, also when Dagster has forgotten that run. NULL = none of Dagster''s.';
COMMENT ON COLUMN pricing.past_calls.worker IS 'Who made it: host and process.';
COMMENT ON COLUMN pricing.past_calls.started_at IS 'When it was claimed.';
COMMENT ON COLUMN pricing.past_calls.finished_at IS 'When its answer was settled.';
COMMENT ON COLUMN pricing.past_calls.http_status IS 'Status of the answer.';
COMMENT ON COLUMN pricing.past_calls.wire_bytes IS 'Headers and body as they were sent, compressed.';

CREATE TABLE pricing.api_data_usage (
    provider text NOT NULL,
    hour     timestamptz NOT NULL,
    calls    bigint NOT NULL DEFAULT 0,
    units    bigint NOT NULL DEFAULT 0,
    bytes    bigint NOT NULL DEFAULT 0,
    slot     integer NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, hour, slot)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.api_data_usage IS
    'Wire bytes per provider and UTC hour, of which the quota sums the last 720 and the one that is not over. An hour has as many rows as calls were ever settled at the same moment in it.';
COMMENT ON COLUMN pricing.api_data_usage.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.api_data_usage.hour IS 'Beginning of the hour, UTC.';
COMMENT ON COLUMN pricing.api_data_usage.calls IS 'Calls settled in the hour.';
COMMENT ON COLUMN pricing.api_data_usage.units IS 'What they cost, in the provider''s units.';
COMMENT ON COLUMN pricing.api_data_usage.bytes IS 'Bytes on the wire; of calls whose worker was lost, their estimate.';
COMMENT ON COLUMN pricing.api_data_usage.slot IS
    'Tells the rows of an hour apart. A call is booked in any row that nobody holds at that moment; only their sum means anything.';

CREATE TABLE pricing.limit_counts (
    provider     text NOT NULL,
    key_name     text NOT NULL,
    name         text NOT NULL,
    counted_from timestamptz NOT NULL,
    counted_to   timestamptz NOT NULL,
    units        bigint NOT NULL,
    PRIMARY KEY (provider, key_name, name),
    CONSTRAINT count_has_limit FOREIGN KEY (provider, name) REFERENCES pricing.provider_limits(provider, name) ON DELETE CASCADE,
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

CREATE TABLE pricing.size_estimates (
    provider           text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    data_type          text NOT NULL,
    per                text NOT NULL CONSTRAINT size_is_per_symbol_or_day CHECK (per IN ('symbol', 'day')),
    bytes              double precision NOT NULL
        CONSTRAINT size_is_positive CHECK ((bytes > (0)::double precision) AND (bytes < ('1000000000000'::numeric)::double precision)),
    measurements       bigint NOT NULL DEFAULT 1,
    measured_at        timestamptz NOT NULL,
    overruns           bigint NOT NULL DEFAULT 0,
    last_overrun_at    timestamptz,
    last_overrun_ratio double precision,
    PRIMARY KEY (provider, data_type, per)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.size_estimates IS
    'Wire bytes as measured: of a latest price per symbol, of history per symbol and day. The first measurement is taken whole, each later one counts a tenth.';
COMMENT ON COLUMN pricing.size_estimates.provider IS 'Whose answers.';
COMMENT ON COLUMN pricing.size_estimates.data_type IS 'Of what.';
COMMENT ON COLUMN pricing.size_estimates.per IS
    'What the bytes are of: a symbol''s latest price, or a day of a symbol''s history.';
COMMENT ON COLUMN pricing.size_estimates.bytes IS 'Bytes on the wire, as a moving average.';
COMMENT ON COLUMN pricing.size_estimates.measurements IS 'Answers measured.';
COMMENT ON COLUMN pricing.size_estimates.measured_at IS 'When the last of them came.';
COMMENT ON COLUMN pricing.size_estimates.overruns IS
    'Answers of more than twice the bytes that were reserved for them.';
COMMENT ON COLUMN pricing.size_estimates.last_overrun_at IS 'When an answer last took more than twice its estimate.';
COMMENT ON COLUMN pricing.size_estimates.last_overrun_ratio IS
    'Bytes that came for each byte reserved, at the last overrun.';

CREATE TABLE pricing.outages (
    outage_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provider      text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    data_type     text NOT NULL REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    since         timestamptz NOT NULL,
    last_fault_at timestamptz NOT NULL,
    probed_at     timestamptz,
    answered_at   timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.outages IS
    'Spans in which every call to a provider for a data type failed of trouble that others may have, too. A row goes 15 s after the provider has answered again, or when no call has failed for 24 hours.';
COMMENT ON COLUMN pricing.outages.outage_id IS 'In the order of their beginnings.';
COMMENT ON COLUMN pricing.outages.provider IS 'Who does not answer.';
COMMENT ON COLUMN pricing.outages.data_type IS 'What it does not answer for.';
COMMENT ON COLUMN pricing.outages.since IS 'When the first of the calls began that failed.';
COMMENT ON COLUMN pricing.outages.last_fault_at IS 'When the last call failed.';
COMMENT ON COLUMN pricing.outages.probed_at IS
    'When it was last seen to that somebody who waits is asked for ahead of the pauses. NULL = not yet.';
COMMENT ON COLUMN pricing.outages.answered_at IS 'When the provider answered again. NULL = it does not yet.';
CREATE UNIQUE INDEX one_open_outage ON pricing.outages (provider, data_type) WHERE answered_at IS NULL;
CREATE INDEX outages_data_type ON pricing.outages (data_type);

-- ── The queue and its drains ────────────────────────────────────────────────────────────────────────────

CREATE SEQUENCE pricing.task_id_seq;
COMMENT ON SEQUENCE pricing.task_id_seq IS 'Numbers tasks.';
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
    ring            smallint NOT NULL DEFAULT 0,
    resolved_at     timestamptz
) PARTITION BY LIST (status);
COMMENT ON TABLE pricing.api_call_queue IS
    'The fetch queue. A row is a task: fetch one symbol of one data type, now or for a span of days.';
COMMENT ON COLUMN pricing.api_call_queue.id IS 'Rises with each task, over all states.';
COMMENT ON COLUMN pricing.api_call_queue.data_type IS 'What is fetched.';
COMMENT ON COLUMN pricing.api_call_queue.symbol IS 'What is fetched.';
COMMENT ON COLUMN pricing.api_call_queue.window_start IS
    '-infinity..infinity = the latest price; otherwise days to backfill, both included.';
COMMENT ON COLUMN pricing.api_call_queue.window_end IS 'Last day, included; see window_start.';
COMMENT ON COLUMN pricing.api_call_queue.provider IS
    'Who is asked, by the route at the time of queueing; NULL only for what had no route.';
COMMENT ON COLUMN pricing.api_call_queue.status IS
    'pending, processing, scheduled (waits until run_after), completed, failed or cancelled. '
    'docs/maintainers/state-machine.md draws it.';
COMMENT ON COLUMN pricing.api_call_queue.priority IS
    'Distinct viewers (at least 1); 0 held; -1 scheduled; -2 backfill. Higher goes first.';
COMMENT ON COLUMN pricing.api_call_queue.cadence_minutes IS
    'TTL of the type in minutes: among tasks of one priority the shorter goes first.';
COMMENT ON COLUMN pricing.api_call_queue.est_bytes IS
    'Bytes on the wire that the answer is expected to take, reserved when it is claimed.';
COMMENT ON COLUMN pricing.api_call_queue.enqueued_at IS 'When it was queued.';
COMMENT ON COLUMN pricing.api_call_queue.run_after IS 'Scheduled tasks only: not to be claimed before.';
COMMENT ON COLUMN pricing.api_call_queue.attempt IS
    'Counted at claim, so that a task which kills its worker still dies.';
COMMENT ON COLUMN pricing.api_call_queue.max_attempts IS 'Claims after which a failure is final.';
COMMENT ON COLUMN pricing.api_call_queue.claim_token IS
    'Fresh with every claim; completing, failing and storing prices require it.';
COMMENT ON COLUMN pricing.api_call_queue.claimed_at IS 'When it was last claimed.';
COMMENT ON COLUMN pricing.api_call_queue.lease_until IS
    'Until then the claim holds without a sign of life from its worker.';
COMMENT ON COLUMN pricing.api_call_queue.worker IS 'Who claimed it last: host and process.';
COMMENT ON COLUMN pricing.api_call_queue.call_id IS 'The call of its last claim, in collector_call_log.';
COMMENT ON COLUMN pricing.api_call_queue.backfill_id IS 'The backfill that queued it; NULL for live work.';
COMMENT ON COLUMN pricing.api_call_queue.errors IS 'Array of {at, attempt, kind, message}, oldest first.';
COMMENT ON COLUMN pricing.api_call_queue.finished_at IS 'When it was completed, failed or cancelled.';
COMMENT ON COLUMN pricing.api_call_queue.failure_kind IS
    'Why it is dead, in one word; docs/maintainers/state-machine.md lists them.';
COMMENT ON COLUMN pricing.api_call_queue.ring IS 'Week of finishing modulo 8: the leaf of a completed task.';
COMMENT ON COLUMN pricing.api_call_queue.resolved_at IS
    'Since when a dead task needs nobody any more: it was cancelled, or its work has succeeded since. It is kept 90 days longer.';

CREATE TABLE pricing.api_call_queue_completed PARTITION OF pricing.api_call_queue FOR VALUES IN ('completed') PARTITION BY LIST (ring);
COMMENT ON TABLE pricing.api_call_queue_completed IS
    'Finished tasks: a ring of eight weeks, of which pruning empties the old ones.';

CREATE TABLE pricing.api_call_queue_completed_0 PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) FOR VALUES IN ('0');
COMMENT ON TABLE pricing.api_call_queue_completed_0 IS 'Tasks finished in weeks whose number since 1970 is 0 modulo 8.';
CREATE INDEX completed_0_backfill ON pricing.api_call_queue_completed_0 (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_completed_1 PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) FOR VALUES IN ('1');
COMMENT ON TABLE pricing.api_call_queue_completed_1 IS 'Tasks finished in weeks whose number since 1970 is 1 modulo 8.';
CREATE INDEX completed_1_backfill ON pricing.api_call_queue_completed_1 (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_completed_2 PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) FOR VALUES IN ('2');
COMMENT ON TABLE pricing.api_call_queue_completed_2 IS 'Tasks finished in weeks whose number since 1970 is 2 modulo 8.';
CREATE INDEX completed_2_backfill ON pricing.api_call_queue_completed_2 (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_completed_3 PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) FOR VALUES IN ('3');
COMMENT ON TABLE pricing.api_call_queue_completed_3 IS 'Tasks finished in weeks whose number since 1970 is 3 modulo 8.';
CREATE INDEX completed_3_backfill ON pricing.api_call_queue_completed_3 (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_completed_4 PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) FOR VALUES IN ('4');
COMMENT ON TABLE pricing.api_call_queue_completed_4 IS 'Tasks finished in weeks whose number since 1970 is 4 modulo 8.';
CREATE INDEX completed_4_backfill ON pricing.api_call_queue_completed_4 (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_completed_5 PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) FOR VALUES IN ('5');
COMMENT ON TABLE pricing.api_call_queue_completed_5 IS 'Tasks finished in weeks whose number since 1970 is 5 modulo 8.';
CREATE INDEX completed_5_backfill ON pricing.api_call_queue_completed_5 (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_completed_6 PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) FOR VALUES IN ('6');
COMMENT ON TABLE pricing.api_call_queue_completed_6 IS 'Tasks finished in weeks whose number since 1970 is 6 modulo 8.';
CREATE INDEX completed_6_backfill ON pricing.api_call_queue_completed_6 (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_completed_7 PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) FOR VALUES IN ('7');
COMMENT ON TABLE pricing.api_call_queue_completed_7 IS 'Tasks finished in weeks whose number since 1970 is 7 modulo 8.';
CREATE INDEX completed_7_backfill ON pricing.api_call_queue_completed_7 (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_completed_rest PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) DEFAULT;
COMMENT ON TABLE pricing.api_call_queue_completed_rest IS
    'Finished tasks of a week whose leaf is missing. Empty, unless somebody has dropped one.';
CREATE INDEX completed_rest_backfill ON pricing.api_call_queue_completed_rest (backfill_id) WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.api_call_queue_dead PARTITION OF pricing.api_call_queue (
    PRIMARY KEY (id),
    CONSTRAINT dead_task_is_finished CHECK (finished_at IS NOT NULL)
) FOR VALUES IN ('failed', 'cancelled');
COMMENT ON TABLE pricing.api_call_queue_dead IS 'Tasks that failed or were cancelled, with all their errors.';
CREATE INDEX dead_backfill ON pricing.api_call_queue_dead (backfill_id) WHERE backfill_id IS NOT NULL;
CREATE INDEX dead_pair ON pricing.api_call_queue_dead (data_type, symbol);
CREATE INDEX dead_unresolved ON pricing.api_call_queue_dead (id) WHERE resolved_at IS NULL;

CREATE TABLE pricing.api_call_queue_live PARTITION OF pricing.api_call_queue (
    provider NOT NULL,
    PRIMARY KEY (id) WITH (fillfactor=45, deduplicate_items=off),
    CONSTRAINT estimate_is_positive CHECK (est_bytes > 0),
    CONSTRAINT live_task_is_unique UNIQUE (data_type, symbol, window_start, window_end) WITH (fillfactor=45, deduplicate_items=off),
    CONSTRAINT status_has_its_columns CHECK (((status = 'processing') = (claim_token IS NOT NULL)) AND ((claim_token IS NULL) = (lease_until IS NULL)) AND ((status = 'scheduled') = (run_after IS NOT NULL)))
) FOR VALUES IN ('pending', 'processing', 'scheduled') WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, fillfactor = 40);
COMMENT ON TABLE pricing.api_call_queue_live IS 'Tasks that are pending, scheduled or processing.';
CREATE INDEX live_backfill ON pricing.api_call_queue_live (backfill_id) WHERE backfill_id IS NOT NULL;
CREATE INDEX live_claim ON pricing.api_call_queue_live (provider, ((- priority)), cadence_minutes, id) WHERE run_after IS NULL;
COMMENT ON INDEX pricing.live_claim IS 'The order in which tasks are claimed.';
CREATE INDEX live_scheduled ON pricing.api_call_queue_live (run_after) WHERE run_after IS NOT NULL;

CREATE TABLE pricing.drains (
    drain_id    uuid DEFAULT gen_random_uuid() PRIMARY KEY,
    run_id      text,
    worker      text NOT NULL,
    started_at  timestamptz NOT NULL,
    ends_at     timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    finished_at timestamptz
);
COMMENT ON TABLE pricing.drains IS
    'Workers that drain the queue. Alive = not finished and the lease not run out; run status says nothing about it.';
COMMENT ON COLUMN pricing.drains.drain_id IS 'Its name.';
COMMENT ON COLUMN pricing.drains.run_id IS 'Dagster''s id of the run that drains.';
COMMENT ON COLUMN pricing.drains.worker IS 'Host and process.';
COMMENT ON COLUMN pricing.drains.started_at IS 'When it began.';
COMMENT ON COLUMN pricing.drains.ends_at IS 'When it hands over to a successor.';
COMMENT ON COLUMN pricing.drains.lease_until IS 'Alive until then without a sign of life.';
COMMENT ON COLUMN pricing.drains.finished_at IS 'When it ended in good order.';
CREATE INDEX drains_alive ON pricing.drains (lease_until) WHERE finished_at IS NULL;

CREATE TABLE pricing.turns (
    name text PRIMARY KEY
);
COMMENT ON TABLE pricing.turns IS
    'One row for each kind of work that must not run twice at once; whoever does it has the row locked. A new row is made when it is needed.';
COMMENT ON COLUMN pricing.turns.name IS 'The work.';
INSERT INTO pricing.turns (name) VALUES
    ('claim'),
    ('begin_drain'),
    ('run_duties'),
    ('walk_schedules');

CREATE TABLE pricing.duties (
    duty            text PRIMARY KEY,
    last_success_at timestamptz,
    last_failure_at timestamptz,
    last_error      text,
    not_before      timestamptz
);
COMMENT ON TABLE pricing.duties IS
    'When each periodic duty last succeeded and last failed. The latest of these times tells whether the database''s clock was set back since.';
COMMENT ON COLUMN pricing.duties.duty IS 'The function''s name.';
COMMENT ON COLUMN pricing.duties.last_success_at IS 'NULL = never yet.';
COMMENT ON COLUMN pricing.duties.last_failure_at IS 'NULL = never yet.';
COMMENT ON COLUMN pricing.duties.last_error IS 'Why it last failed, in the database''s words.';
COMMENT ON COLUMN pricing.duties.not_before IS
    'It is not run before: the clock was set forward, or the pipeline was off for days, and what it throws away cannot be brought back.';

CREATE TABLE pricing.warnings (
    warning_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    source     text NOT NULL,
    subject    text NOT NULL,
    sqlstate   text,
    message    text NOT NULL
);
COMMENT ON TABLE pricing.warnings IS
    'What went wrong without stopping anything else, at most one row a minute for the same trouble; kept 30 days.';
COMMENT ON COLUMN pricing.warnings.warning_id IS 'Rises with each warning.';
COMMENT ON COLUMN pricing.warnings.at IS 'When it was given.';
COMMENT ON COLUMN pricing.warnings.source IS 'The function that warned: enqueue_due, run_duties.';
COMMENT ON COLUMN pricing.warnings.subject IS 'What it was about: a data type, a duty.';
COMMENT ON COLUMN pricing.warnings.sqlstate IS 'The error behind it, as PostgreSQL numbers errors; NULL = none.';
COMMENT ON COLUMN pricing.warnings.message IS 'What happened, in the database''s words.';
CREATE INDEX warnings_newest ON pricing.warnings (source, subject, at DESC);

-- ── Backfills: which days were asked for and answered ───────────────────────────────────────────────────

CREATE TABLE pricing.backfills (
    backfill_id  uuid DEFAULT gen_random_uuid() PRIMARY KEY,
    data_type    text NOT NULL,
    window_start date NOT NULL,
    window_end   date NOT NULL,
    symbols      text[],
    run_id       text,
    requested_at timestamptz NOT NULL DEFAULT pricing.clock(),
    finished_at  timestamptz,
    tasks        integer NOT NULL DEFAULT 0,
    cancelled_at timestamptz,
    left_out     jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT backfill_window_is_upright CHECK (window_start <= window_end)
);
COMMENT ON TABLE pricing.backfills IS
    'One row for each backfill someone asked for; its tasks carry its id.';
COMMENT ON COLUMN pricing.backfills.backfill_id IS 'Carried by its tasks.';
COMMENT ON COLUMN pricing.backfills.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.backfills.window_start IS 'First day, included.';
COMMENT ON COLUMN pricing.backfills.window_end IS 'Last day, included.';
COMMENT ON COLUMN pricing.backfills.symbols IS 'Which instruments; NULL = all that a provider has confirmed.';
COMMENT ON COLUMN pricing.backfills.run_id IS 'Dagster''s id of the run that asked.';
COMMENT ON COLUMN pricing.backfills.requested_at IS 'When it was planned.';
COMMENT ON COLUMN pricing.backfills.finished_at IS 'When none of its tasks was open any more.';
COMMENT ON COLUMN pricing.backfills.tasks IS
    'How many tasks it waits for, those of earlier backfills of the same days included.';
COMMENT ON COLUMN pricing.backfills.cancelled_at IS 'When a person cancelled it; NULL = nobody did.';
COMMENT ON COLUMN pricing.backfills.left_out IS
    'How many of the instruments were left out, by reason: those of pricing.universe, or no_instrument for a name that is none.';

CREATE TABLE pricing.history_coverage (
    data_type text NOT NULL,
    symbol    text NOT NULL,
    covered   datemultirange NOT NULL DEFAULT '{}'::datemultirange,
    PRIMARY KEY (data_type, symbol)
);
COMMENT ON TABLE pricing.history_coverage IS
    'Days for which the provider has answered, with bars or with nothing; a backfill asks only for the rest.';
COMMENT ON COLUMN pricing.history_coverage.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.history_coverage.symbol IS 'What was asked for.';
COMMENT ON COLUMN pricing.history_coverage.covered IS 'Days that were answered for.';

CREATE TABLE pricing.empty_answers (
    data_type  text NOT NULL,
    symbol     text NOT NULL,
    fetched_at timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol)
);
COMMENT ON TABLE pricing.empty_answers IS
    'Pairs without a price of which a provider has validly said that it has none. The row stays when a price comes, and says nothing then.';
COMMENT ON COLUMN pricing.empty_answers.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.empty_answers.symbol IS 'What was asked for.';
COMMENT ON COLUMN pricing.empty_answers.fetched_at IS 'When a provider last said so.';

-- ── Prices ──────────────────────────────────────────────────────────────────────────────────────────────

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
    adjustment        text NOT NULL DEFAULT 'raw'
        CONSTRAINT adjustment_is_known CHECK (adjustment IN ('raw', 'splits')),
    changed_at        timestamptz,
    quality           text,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.latest_prices IS
    'The newest known price of each pair. price = amount / 10^scale, exactly.';
COMMENT ON COLUMN pricing.latest_prices.data_type IS 'What it is the price of.';
COMMENT ON COLUMN pricing.latest_prices.symbol IS 'What it is the price of.';
COMMENT ON COLUMN pricing.latest_prices.amount IS 'Price in units of 10^-scale.';
COMMENT ON COLUMN pricing.latest_prices.scale IS 'Decimals of amount.';
COMMENT ON COLUMN pricing.latest_prices.currency IS 'ISO 4217 or a coin (USDT); NULL = the source names none.';
COMMENT ON COLUMN pricing.latest_prices.observed_at IS
    'The source''s time; midnight UTC of the trading day for daily values.';
COMMENT ON COLUMN pricing.latest_prices.fetched_at IS
    'When a provider last confirmed it; advances with every valid answer.';
COMMENT ON COLUMN pricing.latest_prices.provider IS 'Who said so.';
COMMENT ON COLUMN pricing.latest_prices.call_id IS
    'The call that brought it: collector_call_log has its run, time and bytes.';
COMMENT ON COLUMN pricing.latest_prices.source_text IS 'The price in the source''s own digits.';
COMMENT ON COLUMN pricing.latest_prices.cache_ttl_minutes IS
    'Overrides the registry''s TTL for this pair; refreshes never touch it.';
COMMENT ON COLUMN pricing.latest_prices.adjustment IS
    'That of the pair''s history. The newest value is the same on every basis.';
COMMENT ON COLUMN pricing.latest_prices.changed_at IS
    'observed_at with which this value first came. A price whose observed_at runs far ahead of it may be frozen at its source.';
COMMENT ON COLUMN pricing.latest_prices.quality IS 'As in price_history, of the bar whose close it is.';
CREATE INDEX latest_prices_own_ttl ON pricing.latest_prices (data_type, symbol) WHERE cache_ttl_minutes IS NOT NULL;

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
    adjustment  text NOT NULL DEFAULT 'raw' CONSTRAINT adjustment_is_known CHECK (adjustment IN ('raw', 'splits')),
    quality     text,
    source_text text,
    PRIMARY KEY (data_type, symbol, observed_at)
) PARTITION BY LIST (data_type);
COMMENT ON TABLE pricing.price_history IS
    'Current belief about every past value; one table partition per data type. amount is the close, NAV or quote.';
COMMENT ON COLUMN pricing.price_history.data_type IS 'What it is the price of.';
COMMENT ON COLUMN pricing.price_history.symbol IS 'What it is the price of.';
COMMENT ON COLUMN pricing.price_history.observed_at IS
    'The source''s time; midnight UTC of the trading day for daily values.';
COMMENT ON COLUMN pricing.price_history.amount IS 'Close, NAV or quote, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.open_amount IS 'Open of a daily bar, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.high_amount IS 'High of a daily bar, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.low_amount IS 'Low of a daily bar, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.scale IS 'Decimals of the amounts.';
COMMENT ON COLUMN pricing.price_history.currency IS 'ISO 4217 or a coin (USDT); NULL = the source names none.';
COMMENT ON COLUMN pricing.price_history.volume IS 'Traded volume of a daily bar, in shares or contracts.';
COMMENT ON COLUMN pricing.price_history.provider IS 'Who said so.';
COMMENT ON COLUMN pricing.price_history.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.price_history.fetched_at IS 'When we came to believe it.';
COMMENT ON COLUMN pricing.price_history.adjustment IS
    'raw = as traded on its day; splits = divided by every split since. One for all values of a symbol in a data type.';
COMMENT ON COLUMN pricing.price_history.quality IS
    'Which parts of the source''s bar were dropped, because they cannot be true beside its close, and why; NULL = none.';
COMMENT ON COLUMN pricing.price_history.source_text IS
    'The source''s own spelling of amount; NULL = amount with scale decimals, as in 146.50, is how it was spelled, or it was stored before spellings were kept.';

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
    adjustment  text NOT NULL DEFAULT 'raw' CONSTRAINT adjustment_is_known CHECK (adjustment IN ('raw', 'splits')),
    quality     text,
    source_text text,
    PRIMARY KEY (data_type, symbol, observed_at, revised_at)
);
COMMENT ON TABLE pricing.price_revisions IS
    'What we believed before: the old value of every history row that changed, from recorded_at until revised_at.';
COMMENT ON COLUMN pricing.price_revisions.data_type IS 'What it was the price of.';
COMMENT ON COLUMN pricing.price_revisions.symbol IS 'What it was the price of.';
COMMENT ON COLUMN pricing.price_revisions.observed_at IS 'The source''s time.';
COMMENT ON COLUMN pricing.price_revisions.amount IS 'What we believed, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.open_amount IS 'Open, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.high_amount IS 'High, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.low_amount IS 'Low, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.scale IS 'Decimals of the amounts.';
COMMENT ON COLUMN pricing.price_revisions.currency IS 'As in price_history.';
COMMENT ON COLUMN pricing.price_revisions.volume IS 'Traded volume.';
COMMENT ON COLUMN pricing.price_revisions.provider IS 'Who had said so.';
COMMENT ON COLUMN pricing.price_revisions.call_id IS 'The call that had brought it.';
COMMENT ON COLUMN pricing.price_revisions.recorded_at IS 'Since when we believed it.';
COMMENT ON COLUMN pricing.price_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.price_revisions.revised_by IS 'The call that brought another value.';
COMMENT ON COLUMN pricing.price_revisions.adjustment IS 'As in price_history.';
COMMENT ON COLUMN pricing.price_revisions.quality IS 'As in price_history.';
COMMENT ON COLUMN pricing.price_revisions.source_text IS 'As in price_history.';
CREATE INDEX price_revisions_recent ON pricing.price_revisions (data_type, revised_at);

CREATE TABLE pricing.provisional_bars (
    data_type   text NOT NULL,
    symbol      text NOT NULL,
    observed_at timestamptz NOT NULL,
    noted_at    timestamptz NOT NULL,
    asked       integer NOT NULL DEFAULT 0,
    ask_at      timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol, observed_at)
);
COMMENT ON TABLE pricing.provisional_bars IS
    'Stored bars that came before their day was over, until they have come again after it.';
COMMENT ON COLUMN pricing.provisional_bars.data_type IS 'Whose bar it is.';
COMMENT ON COLUMN pricing.provisional_bars.symbol IS 'Whose bar it is.';
COMMENT ON COLUMN pricing.provisional_bars.observed_at IS 'Its day, as in price_history.';
COMMENT ON COLUMN pricing.provisional_bars.noted_at IS 'When it was first stored before its day was over.';
COMMENT ON COLUMN pricing.provisional_bars.asked IS
    'How often it was asked for on its own; after six times it is left as it is.';
COMMENT ON COLUMN pricing.provisional_bars.ask_at IS 'When it is asked for next, if no refresh brings it before.';
CREATE INDEX provisional_bars_due ON pricing.provisional_bars (ask_at);

CREATE TABLE pricing.restatements (
    restatement_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    data_type      text NOT NULL,
    symbol         text NOT NULL,
    provider       text NOT NULL,
    kind           text NOT NULL CONSTRAINT kind_is_known CHECK (kind IN ('split', 'dividend', 'scattered', 'basis')),
    ratio          numeric,
    days           integer NOT NULL,
    largest        numeric NOT NULL,
    first_on       date NOT NULL,
    last_on        date NOT NULL,
    call_id        bigint NOT NULL,
    recorded_at    timestamptz NOT NULL,
    times          bigint NOT NULL DEFAULT 1,
    last_seen_at   timestamptz NOT NULL,
    backfill_id    uuid,
    reopened_at    timestamptz,
    CONSTRAINT ratio_is_of_one_ratio CHECK ((kind = 'scattered') = (ratio IS NULL))
);
COMMENT ON TABLE pricing.restatements IS
    'Answers in which stored days came with other values: docs/truth.md. By one ratio they are held, and the history is fetched again once; scattered ones are stored, and price_revisions has what was believed.';
COMMENT ON COLUMN pricing.restatements.restatement_id IS 'Numbers restatements.';
COMMENT ON COLUMN pricing.restatements.data_type IS 'Whose history it is about.';
COMMENT ON COLUMN pricing.restatements.symbol IS 'Whose history it is about.';
COMMENT ON COLUMN pricing.restatements.provider IS 'Who sent it.';
COMMENT ON COLUMN pricing.restatements.kind IS
    'split = by one ratio that companies split by; dividend = by another one; scattered = single days; basis = as traded, of a history that is divided by splits.';
COMMENT ON COLUMN pricing.restatements.ratio IS 'What the stored values are divided by; of a basis 1.';
COMMENT ON COLUMN pricing.restatements.days IS 'How many stored days came with another value, the last time.';
COMMENT ON COLUMN pricing.restatements.largest IS 'The largest change as a share of the stored value.';
COMMENT ON COLUMN pricing.restatements.first_on IS 'The first of these days.';
COMMENT ON COLUMN pricing.restatements.last_on IS 'The last of these days.';
COMMENT ON COLUMN pricing.restatements.call_id IS 'The first call that brought it.';
COMMENT ON COLUMN pricing.restatements.recorded_at IS 'When it first came.';
COMMENT ON COLUMN pricing.restatements.times IS 'In how many answers it came.';
COMMENT ON COLUMN pricing.restatements.last_seen_at IS 'When it last came.';
COMMENT ON COLUMN pricing.restatements.backfill_id IS
    'The backfill that fetches the history again; NULL = not planned (yet).';
COMMENT ON COLUMN pricing.restatements.reopened_at IS
    'When a split became known, or the other basis came again, after which the history is fetched once more; NULL = neither did.';
CREATE INDEX restatements_pair ON pricing.restatements (data_type, symbol, last_seen_at);
CREATE INDEX restatements_unasked ON pricing.restatements (recorded_at) WHERE ratio IS NOT NULL AND backfill_id IS NULL;

CREATE TABLE pricing.thinned (
    data_type text NOT NULL,
    symbol    text NOT NULL,
    until     timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.thinned IS
    'How far the history of each pair is thinned, so that nothing is read twice for it.';
COMMENT ON COLUMN pricing.thinned.data_type IS 'Whose history.';
COMMENT ON COLUMN pricing.thinned.symbol IS 'Whose history.';
COMMENT ON COLUMN pricing.thinned.until IS 'Midnight UTC; quotes before it were thinned.';

-- ── Corporate actions ───────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.corporate_actions (
    asset_class text NOT NULL,
    symbol      text NOT NULL,
    ex_on       date NOT NULL,
    kind        text NOT NULL CONSTRAINT kind_is_known CHECK (kind IN ('split', 'dividend')),
    new_shares  numeric,
    old_shares  numeric,
    amount      bigint CONSTRAINT amount_is_positive CHECK (amount > 0),
    scale       smallint,
    currency    text,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    entered_by  text,
    reason      text CONSTRAINT reason_is_short CHECK (length(reason) <= 500),
    judged_at   timestamptz,
    PRIMARY KEY (asset_class, symbol, ex_on, kind),
    CONSTRAINT dividend_has_amount CHECK ((kind = 'dividend') = (amount IS NOT NULL AND scale IS NOT NULL)),
    CONSTRAINT shares_are_positive CHECK ((new_shares > 0) AND (old_shares > 0) AND new_shares < 'Infinity'::numeric AND old_shares < 'Infinity'::numeric),
    CONSTRAINT split_has_shares CHECK ((kind = 'split') = (new_shares IS NOT NULL AND old_shares IS NOT NULL))
);
COMMENT ON TABLE pricing.corporate_actions IS
    'What happened to shares: splits and cash dividends, as we believe them now. Stored prices are never changed by them; reads apply them.';
COMMENT ON COLUMN pricing.corporate_actions.asset_class IS 'With symbol: the instrument.';
COMMENT ON COLUMN pricing.corporate_actions.symbol IS 'With asset_class: the instrument.';
COMMENT ON COLUMN pricing.corporate_actions.ex_on IS
    'The first trading day without it: prices before this day are those that it adjusts.';
COMMENT ON COLUMN pricing.corporate_actions.kind IS 'split or dividend.';
COMMENT ON COLUMN pricing.corporate_actions.new_shares IS 'Of a split: so many new shares ...';
COMMENT ON COLUMN pricing.corporate_actions.old_shares IS '... for so many old ones.';
COMMENT ON COLUMN pricing.corporate_actions.amount IS
    'Of a dividend: cash for one share as it was on that day, before taxes, in units of 10^-scale. Several of one day are one.';
COMMENT ON COLUMN pricing.corporate_actions.scale IS 'Decimals of amount.';
COMMENT ON COLUMN pricing.corporate_actions.currency IS
    'Of a dividend: ISO 4217 or a coin (USDT); NULL = that of the prices.';
COMMENT ON COLUMN pricing.corporate_actions.provider IS 'Who said so; "by hand" is a person, named by entered_by.';
COMMENT ON COLUMN pricing.corporate_actions.call_id IS 'The call that brought it; 0 = none, it was entered by hand.';
COMMENT ON COLUMN pricing.corporate_actions.recorded_at IS 'When we came to believe it.';
COMMENT ON COLUMN pricing.corporate_actions.entered_by IS 'Who entered it by hand; NULL = a provider told it.';
COMMENT ON COLUMN pricing.corporate_actions.reason IS 'Why so, in that person''s words.';
COMMENT ON COLUMN pricing.corporate_actions.judged_at IS
    'When held values of the instrument were judged anew with it; NULL = a worker will.';
CREATE INDEX corporate_actions_unjudged ON pricing.corporate_actions (recorded_at) WHERE judged_at IS NULL;

CREATE TABLE pricing.corporate_action_revisions (
    asset_class     text NOT NULL,
    symbol          text NOT NULL,
    ex_on           date NOT NULL,
    kind            text NOT NULL,
    new_shares      numeric,
    old_shares      numeric,
    amount          bigint,
    scale           smallint,
    currency        text,
    provider        text NOT NULL,
    call_id         bigint NOT NULL,
    recorded_at     timestamptz NOT NULL,
    revised_at      timestamptz NOT NULL,
    revised_by      bigint NOT NULL,
    entered_by      text,
    reason          text,
    removed_by      text,
    removed_because text CONSTRAINT because_is_short CHECK (length(removed_because) <= 500),
    PRIMARY KEY (asset_class, symbol, ex_on, kind, revised_at)
);
COMMENT ON TABLE pricing.corporate_action_revisions IS
    'What we believed before, from recorded_at until revised_at.';
COMMENT ON COLUMN pricing.corporate_action_revisions.asset_class IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.symbol IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.ex_on IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.kind IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.new_shares IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.old_shares IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.amount IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.scale IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.currency IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.provider IS 'Who had said so.';
COMMENT ON COLUMN pricing.corporate_action_revisions.call_id IS 'The call that had brought it.';
COMMENT ON COLUMN pricing.corporate_action_revisions.recorded_at IS 'Since when we believed it.';
COMMENT ON COLUMN pricing.corporate_action_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.corporate_action_revisions.revised_by IS
    'The call that brought another one; 0 = a person removed or replaced it.';
COMMENT ON COLUMN pricing.corporate_action_revisions.entered_by IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.reason IS 'As in corporate_actions.';
COMMENT ON COLUMN pricing.corporate_action_revisions.removed_by IS
    'Who removed or replaced it by hand; its provider is not believed when it says the same again.';
COMMENT ON COLUMN pricing.corporate_action_revisions.removed_because IS 'Why, in that person''s words.';

CREATE TABLE pricing.corporate_action_pairs (
    asset_class text NOT NULL,
    symbol      text NOT NULL,
    covered     datemultirange NOT NULL,
    fetched_at  timestamptz NOT NULL,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    PRIMARY KEY (asset_class, symbol)
);
COMMENT ON TABLE pricing.corporate_action_pairs IS
    'Of which days providers have told all splits and dividends of an instrument. Of other days nothing is known, which is not the same as none.';
COMMENT ON COLUMN pricing.corporate_action_pairs.asset_class IS 'With symbol: the instrument.';
COMMENT ON COLUMN pricing.corporate_action_pairs.symbol IS 'With asset_class: the instrument.';
COMMENT ON COLUMN pricing.corporate_action_pairs.covered IS 'The days of which they were told.';
COMMENT ON COLUMN pricing.corporate_action_pairs.fetched_at IS 'When they were last told.';
COMMENT ON COLUMN pricing.corporate_action_pairs.provider IS 'Who told them last.';
COMMENT ON COLUMN pricing.corporate_action_pairs.call_id IS 'The call in which they were told last.';

-- ── Documents ───────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.documents (
    data_type   text NOT NULL,
    symbol      text NOT NULL,
    period      date NOT NULL DEFAULT '-infinity',
    body        jsonb CONSTRAINT body_is_an_object CHECK (jsonb_typeof(body) = 'object'),
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol, period)
);
COMMENT ON TABLE pricing.documents IS
    'Current belief: one document for each pair and fiscal period. When a pair was last confirmed is in document_pairs.';
COMMENT ON COLUMN pricing.documents.data_type IS 'What kind of document it is.';
COMMENT ON COLUMN pricing.documents.symbol IS 'Whom it is about.';
COMMENT ON COLUMN pricing.documents.period IS
    'The day the provider files it under: of an earnings report, or the last of a fiscal year; -infinity = it is about no period.';
COMMENT ON COLUMN pricing.documents.body IS
    'The answer as it was checked, with the provider''s own names and digits; NULL = the provider has withdrawn it.';
COMMENT ON COLUMN pricing.documents.provider IS 'Who said so.';
COMMENT ON COLUMN pricing.documents.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.documents.recorded_at IS 'Since when we believe it.';

CREATE TABLE pricing.document_revisions (
    data_type   text NOT NULL,
    symbol      text NOT NULL,
    period      date NOT NULL,
    body        jsonb,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    revised_at  timestamptz NOT NULL,
    revised_by  bigint NOT NULL,
    PRIMARY KEY (data_type, symbol, period, revised_at)
);
COMMENT ON TABLE pricing.document_revisions IS
    'What we believed before: the old body of every document that changed, from recorded_at until revised_at.';
COMMENT ON COLUMN pricing.document_revisions.data_type IS 'What kind of document it was.';
COMMENT ON COLUMN pricing.document_revisions.symbol IS 'Whom it was about.';
COMMENT ON COLUMN pricing.document_revisions.period IS
    'The day the provider filed it under; -infinity = it was about no period.';
COMMENT ON COLUMN pricing.document_revisions.body IS 'What we believed; NULL = the provider had withdrawn it.';
COMMENT ON COLUMN pricing.document_revisions.provider IS 'Who had said so.';
COMMENT ON COLUMN pricing.document_revisions.call_id IS 'The call that had brought it.';
COMMENT ON COLUMN pricing.document_revisions.recorded_at IS 'Since when we believed it.';
COMMENT ON COLUMN pricing.document_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.document_revisions.revised_by IS 'The call that brought another body, or none.';

CREATE TABLE pricing.document_pairs (
    data_type         text NOT NULL,
    symbol            text NOT NULL,
    fetched_at        timestamptz NOT NULL,
    provider          text NOT NULL,
    call_id           bigint NOT NULL,
    cache_ttl_minutes integer CONSTRAINT document_ttl_is_positive CHECK (cache_ttl_minutes > 0),
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.document_pairs IS
    'When the documents of each pair were last confirmed: what its staleness is judged by.';
COMMENT ON COLUMN pricing.document_pairs.data_type IS 'What kind of documents.';
COMMENT ON COLUMN pricing.document_pairs.symbol IS 'Whom they are about.';
COMMENT ON COLUMN pricing.document_pairs.fetched_at IS
    'When a provider last answered; advances with every valid answer.';
COMMENT ON COLUMN pricing.document_pairs.provider IS 'Who answered.';
COMMENT ON COLUMN pricing.document_pairs.call_id IS
    'The call that was answered: collector_call_log has its run, time and bytes.';
COMMENT ON COLUMN pricing.document_pairs.cache_ttl_minutes IS
    'Overrides the registry''s TTL for this pair; refreshes never touch it.';

-- ── Quarantine: values that are not believed ────────────────────────────────────────────────────────────

CREATE TABLE pricing.quarantined_values (
    value_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    data_type    text NOT NULL,
    symbol       text NOT NULL,
    provider     text NOT NULL,
    observed_at  timestamptz,
    kind         text NOT NULL,
    value        text NOT NULL CONSTRAINT value_is_short CHECK (length(value) <= 100),
    reason       text NOT NULL,
    bar          jsonb,
    call_id      bigint NOT NULL,
    recorded_at  timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    last_call_id bigint NOT NULL,
    times        bigint NOT NULL DEFAULT 1,
    status       text NOT NULL DEFAULT 'held'
        CONSTRAINT status_is_known CHECK (status IN ('held', 'released', 'rejected')),
    resolved_at  timestamptz,
    resolved_by  text,
    resolution   text,
    ask_at       timestamptz,
    asked        smallint NOT NULL DEFAULT 0,
    CONSTRAINT same_value_is_one_row UNIQUE NULLS NOT DISTINCT (data_type, symbol, observed_at, kind, value, provider),
    CONSTRAINT held_is_unresolved CHECK ((status = 'held') = (resolved_at IS NULL))
);
COMMENT ON TABLE pricing.quarantined_values IS
    'Values that a provider sent and that are not believed: never prices, kept for people. The same value is one row, however often it comes.';
COMMENT ON COLUMN pricing.quarantined_values.value_id IS 'Numbers held values.';
COMMENT ON COLUMN pricing.quarantined_values.data_type IS 'What it was sent as.';
COMMENT ON COLUMN pricing.quarantined_values.symbol IS 'What was asked for.';
COMMENT ON COLUMN pricing.quarantined_values.provider IS 'Who sent it.';
COMMENT ON COLUMN pricing.quarantined_values.observed_at IS 'The source''s time; NULL when it names none that can be.';
COMMENT ON COLUMN pricing.quarantined_values.kind IS
    'refused, currency, bounds, unit, jump, spike, split, dividend or disagreement: docs/truth.md.';
COMMENT ON COLUMN pricing.quarantined_values.value IS
    'The source''s own spelling of the price; empty where the answer as a whole was refused.';
COMMENT ON COLUMN pricing.quarantined_values.reason IS 'Why it is not believed, in words.';
COMMENT ON COLUMN pricing.quarantined_values.bar IS
    'All that would be stored if it were true: close, open, high, low, volume, currency, adjustment, as text. NULL when it could not be read.';
COMMENT ON COLUMN pricing.quarantined_values.call_id IS
    'The first call that brought it; quarantined_bodies may have its body.';
COMMENT ON COLUMN pricing.quarantined_values.recorded_at IS 'When it first came.';
COMMENT ON COLUMN pricing.quarantined_values.last_seen_at IS 'When it last came.';
COMMENT ON COLUMN pricing.quarantined_values.last_call_id IS 'The last call that brought it.';
COMMENT ON COLUMN pricing.quarantined_values.times IS 'In how many answers it came.';
COMMENT ON COLUMN pricing.quarantined_values.status IS
    'held = waits for a person; released = believed after all and stored; rejected = wrong for good.';
COMMENT ON COLUMN pricing.quarantined_values.resolved_at IS 'When that was decided.';
COMMENT ON COLUMN pricing.quarantined_values.resolved_by IS
    'Who has decided: a person, or a call whose answer brought it again and was believed.';
COMMENT ON COLUMN pricing.quarantined_values.resolution IS 'Why so, in words.';
COMMENT ON COLUMN pricing.quarantined_values.ask_at IS
    'When workers ask a second provider about it; NULL = it has answered, or nobody is asked any more.';
COMMENT ON COLUMN pricing.quarantined_values.asked IS
    'How often workers have asked; after four times in vain nobody is.';
CREATE INDEX quarantined_values_seen ON pricing.quarantined_values (last_seen_at);
CREATE INDEX quarantined_values_to_ask ON pricing.quarantined_values (ask_at) WHERE ask_at IS NOT NULL AND status = 'held';

CREATE TABLE pricing.quarantined_bodies (
    call_id     bigint PRIMARY KEY,
    body        bytea NOT NULL CONSTRAINT body_is_bounded CHECK (octet_length(body) <= 1100000),
    size        integer NOT NULL,
    http_status integer,
    recorded_at timestamptz NOT NULL
);
COMMENT ON TABLE pricing.quarantined_bodies IS
    'Answers that brought values which are held: one for each call that brought a new one. API keys are blotted out.';
COMMENT ON COLUMN pricing.quarantined_bodies.call_id IS 'The call, in collector_call_log as long as that is kept.';
COMMENT ON COLUMN pricing.quarantined_bodies.body IS 'Compressed by zlib: the first 1,000,000 bytes of the body.';
COMMENT ON COLUMN pricing.quarantined_bodies.size IS 'Bytes of the whole body, uncompressed.';
COMMENT ON COLUMN pricing.quarantined_bodies.http_status IS 'The status it came with.';
COMMENT ON COLUMN pricing.quarantined_bodies.recorded_at IS 'When it came.';

CREATE TABLE pricing.second_opinions (
    value_id    bigint NOT NULL
        CONSTRAINT opinion_is_on_a_value REFERENCES pricing.quarantined_values(value_id) ON DELETE CASCADE,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    asked_at    timestamptz NOT NULL,
    answered_at timestamptz,
    observed_at timestamptz,
    value       numeric,
    currency    text,
    failure     text,
    adjustment  text CONSTRAINT adjustment_is_known CHECK (adjustment IN ('raw', 'splits')),
    ratio       numeric CONSTRAINT ratio_is_positive CHECK ((ratio > 0) AND ratio < 'Infinity'::numeric),
    PRIMARY KEY (value_id, provider)
);
COMMENT ON TABLE pricing.second_opinions IS
    'What other providers said when they were asked about a held value, by workers or by a person. An opinion helps a person decide; it is never stored as a price.';
COMMENT ON COLUMN pricing.second_opinions.value_id IS 'The held value it is about.';
COMMENT ON COLUMN pricing.second_opinions.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.second_opinions.call_id IS 'The call, in collector_call_log as long as that is kept.';
COMMENT ON COLUMN pricing.second_opinions.asked_at IS 'When it was asked last.';
COMMENT ON COLUMN pricing.second_opinions.answered_at IS
    'When it answered; NULL = it has not, or whoever asked was lost.';
COMMENT ON COLUMN pricing.second_opinions.observed_at IS 'The time that it gives its value.';
COMMENT ON COLUMN pricing.second_opinions.value IS 'What it says; NULL when it has nothing.';
COMMENT ON COLUMN pricing.second_opinions.currency IS 'In which currency, where it says so.';
COMMENT ON COLUMN pricing.second_opinions.failure IS 'Why it says nothing.';
COMMENT ON COLUMN pricing.second_opinions.adjustment IS
    'On which basis the value is: raw or splits, as in price_history.';
COMMENT ON COLUMN pricing.second_opinions.ratio IS
    'The held value as a multiple of this one, on one basis: near 1 they agree. NULL = they cannot be compared.';
CREATE INDEX second_opinions_call ON pricing.second_opinions (call_id);
CREATE INDEX second_opinions_recent ON pricing.second_opinions (answered_at) WHERE ratio IS NOT NULL;

COMMENT ON TABLE pricing.alembic_version IS 'Which migrations the database has had.';
COMMENT ON COLUMN pricing.alembic_version.version_num IS 'The last migration that was run.';

-- ── Types and views that functions share ────────────────────────────────────────────────────────────────

CREATE TYPE pricing.call_allowance AS (
    key_name       text,
    units_left     bigint,
    bytes_used     bigint,
    quota_bytes    bigint,
    is_probe       boolean,
    is_single      boolean,
    most_calls     integer,
    most_tasks     integer,
    units_limit    integer,
    is_scarce      boolean,
    before_urgency integer,
    before_cadence integer,
    before_id      bigint,
    most_listed    integer
);
COMMENT ON TYPE pricing.call_allowance IS
    'What a provider allows a claim: the key, its units and bytes, how many calls and tasks.';
COMMENT ON COLUMN pricing.call_allowance.key_name IS 'The key with the most room; NULL = no call is allowed.';
COMMENT ON COLUMN pricing.call_allowance.units_left IS 'Units that the key may be charged now.';
COMMENT ON COLUMN pricing.call_allowance.bytes_used IS 'Bytes of the last 720 hours, calls in flight included.';
COMMENT ON COLUMN pricing.call_allowance.quota_bytes IS 'Bytes allowed in 720 hours.';
COMMENT ON COLUMN pricing.call_allowance.is_probe IS 'The call decides whether the breaker closes.';
COMMENT ON COLUMN pricing.call_allowance.is_single IS
    'Only one call may be made at a time: a probe, after a refusal, a delay between calls, max_in_flight 1.';
COMMENT ON COLUMN pricing.call_allowance.most_calls IS 'Calls that the claim may plan.';
COMMENT ON COLUMN pricing.call_allowance.most_tasks IS 'Tasks that are worth locking for them.';
COMMENT ON COLUMN pricing.call_allowance.units_limit IS
    'Units that the key''s narrowest limit allows in its window; NULL = no limit.';
COMMENT ON COLUMN pricing.call_allowance.is_scarce IS 'Some data type costs more units than are left.';
COMMENT ON COLUMN pricing.call_allowance.before_urgency IS
    'Only tasks before this place in the claim''s order are picked: units are saved for the task there. This is its -priority.';
COMMENT ON COLUMN pricing.call_allowance.before_cadence IS 'Its cadence in minutes.';
COMMENT ON COLUMN pricing.call_allowance.before_id IS 'Its id.';
COMMENT ON COLUMN pricing.call_allowance.most_listed IS
    'Tasks that are worth locking where lists of latest prices (batch_from) may serve them; 0 = the provider has no list.';

CREATE TYPE pricing.picked_task AS (
    place           tid,
    id              bigint,
    data_type       text,
    symbol          text,
    window_start    date,
    window_end      date,
    priority        integer,
    cadence_minutes integer,
    est_bytes       bigint,
    attempt         smallint,
    parts           integer
);
COMMENT ON TYPE pricing.picked_task IS
    'A pending task that a claim has locked.';
COMMENT ON COLUMN pricing.picked_task.place IS 'Where its row is (ctid), by which it is updated.';
COMMENT ON COLUMN pricing.picked_task.id IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.data_type IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.symbol IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.window_start IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.window_end IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.priority IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.cadence_minutes IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.est_bytes IS 'As in api_call_queue.';
COMMENT ON COLUMN pricing.picked_task.attempt IS 'Attempts before this one.';
COMMENT ON COLUMN pricing.picked_task.parts IS 'By how much smaller its calls are after refusals of whole batches.';

CREATE VIEW pricing.counted_calls AS
SELECT c.call_id, c.provider, c.key_name, c.started_at AS counted_at, c.finished_at, c.outcome, c.failure_kind, c.units, c.data_type, c.symbols
FROM pricing.collector_call_log c WHERE c.moved_to IS NULL
UNION ALL
SELECT c.call_id, c.provider, c.key_name, c.moved_to, c.finished_at, c.outcome, c.failure_kind, c.units, c.data_type, c.symbols
FROM pricing.collector_call_log c WHERE c.moved_to IS NOT NULL;
COMMENT ON VIEW pricing.counted_calls IS
    'Calls as limits and breakers count them: by the clock as it is now.';
COMMENT ON COLUMN pricing.counted_calls.call_id IS 'Its number in collector_call_log.';
COMMENT ON COLUMN pricing.counted_calls.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.counted_calls.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.counted_calls.counted_at IS
    'When it was claimed, by the clock as it is now; -infinity = it counts no more.';
COMMENT ON COLUMN pricing.counted_calls.finished_at IS 'When it was settled; NULL = open.';
COMMENT ON COLUMN pricing.counted_calls.outcome IS 'How it ended.';
COMMENT ON COLUMN pricing.counted_calls.failure_kind IS 'Why it brought nothing.';
COMMENT ON COLUMN pricing.counted_calls.units IS 'What it costs, in the provider''s units.';
COMMENT ON COLUMN pricing.counted_calls.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.counted_calls.symbols IS 'What was asked for.';

CREATE VIEW pricing.calls AS
    SELECT c.call_id, c.provider, c.key_name, c.data_type, nullif(c.window_start, '-infinity') AS window_start,
           nullif(c.window_end, 'infinity') AS window_end, cardinality(c.symbols) AS symbols, c.run_id, c.worker,
           c.started_at, c.finished_at, c.http_status, c.wire_bytes
    FROM pricing.collector_call_log c
    UNION ALL
    SELECT p.call_id, p.provider, p.key_name, p.data_type, p.window_start, p.window_end, p.symbols, p.run_id, p.worker,
           p.started_at, p.finished_at, p.http_status, p.wire_bytes
    FROM pricing.past_calls p;
COMMENT ON VIEW pricing.calls IS
    'Every call that a price may name, of the log and of before: the place to trace a price from.';
COMMENT ON COLUMN pricing.calls.call_id IS 'Its number, which prices carry.';
COMMENT ON COLUMN pricing.calls.provider IS 'Who was asked.';
COMMENT ON COLUMN pricing.calls.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.calls.data_type IS 'What was asked for.';
COMMENT ON COLUMN pricing.calls.window_start IS 'First day asked for; NULL = the latest price.';
COMMENT ON COLUMN pricing.calls.window_end IS 'Last day asked for, included; NULL = the latest price.';
COMMENT ON COLUMN pricing.calls.symbols IS 'How many symbols were asked for.';
COMMENT ON COLUMN pricing.calls.run_id IS 'Dagster''s id of the run that made it. NULL = none of Dagster''s.';
COMMENT ON COLUMN pricing.calls.worker IS 'Who made it: host and process.';
COMMENT ON COLUMN pricing.calls.started_at IS 'When it was claimed.';
COMMENT ON COLUMN pricing.calls.finished_at IS 'When it was settled; NULL = open.';
COMMENT ON COLUMN pricing.calls.http_status IS 'Status of the answer.';
COMMENT ON COLUMN pricing.calls.wire_bytes IS 'Headers and body as they were sent, compressed.';

CREATE VIEW pricing.chosen_routes AS
    SELECT DISTINCT ON (r.data_type, r.symbol) r.data_type, r.symbol, r.provider
    FROM pricing.provider_routing r
    JOIN pricing.data_type_registry k ON k.data_type = r.data_type
    JOIN pricing.data_collectors p ON p.provider = r.provider AND p.is_active
    JOIN pricing.provider_capabilities c ON c.provider = r.provider AND c.fetcher = k.fetcher
    WHERE r.is_active
    ORDER BY r.data_type, r.symbol, r.rank;
COMMENT ON VIEW pricing.chosen_routes IS
    'The first provider of each rule that is switched on and able to fetch the type.';
COMMENT ON COLUMN pricing.chosen_routes.data_type IS 'What it serves.';
COMMENT ON COLUMN pricing.chosen_routes.symbol IS 'NULL = every symbol without a rule of its own.';
COMMENT ON COLUMN pricing.chosen_routes.provider IS 'Who is asked, unless it is in trouble or has refused the pair.';

CREATE VIEW pricing.latest_answers AS
    SELECT data_type, symbol, fetched_at, cache_ttl_minutes FROM pricing.latest_prices
    UNION ALL
    SELECT data_type, symbol, fetched_at, cache_ttl_minutes FROM pricing.document_pairs
    UNION ALL
    SELECT e.data_type, e.symbol, e.fetched_at, NULL::integer FROM pricing.empty_answers e
    WHERE NOT EXISTS (SELECT FROM pricing.latest_prices l WHERE l.data_type = e.data_type AND l.symbol = e.symbol OFFSET 0);
COMMENT ON VIEW pricing.latest_answers IS
    'When each pair was last confirmed, of whatever kind it is; also where the answer was that there is nothing.';
COMMENT ON COLUMN pricing.latest_answers.data_type IS 'What was fetched.';
COMMENT ON COLUMN pricing.latest_answers.symbol IS 'What was fetched.';
COMMENT ON COLUMN pricing.latest_answers.fetched_at IS 'When a provider last confirmed it.';
COMMENT ON COLUMN pricing.latest_answers.cache_ttl_minutes IS 'TTL of this pair, if it has its own.';

CREATE VIEW pricing.universe AS
    SELECT r.data_type, i.symbol, i.calendar,
           CASE WHEN NOT i.is_active OR i.update_mode <> 'api' THEN 'paused'
                -- Its provider has said so, and nobody has changed symbol or route since.
                WHEN i.verified_at IS NULL AND EXISTS (
                    SELECT FROM pricing.api_call_queue_dead d
                    WHERE d.data_type = r.data_type AND d.symbol = i.symbol AND d.status = 'failed'
                      AND d.failure_kind = 'unknown_symbol' AND d.resolved_at IS NULL) THEN 'unknown_symbol'
           END AS left_out
    FROM pricing.data_type_registry r JOIN pricing.instruments i USING (asset_class);
COMMENT ON VIEW pricing.universe IS
    'The instruments of each data type: what its schedule walks over, and what a backfill of the whole type asks for. Verified or not, none is left out but for a reason.';
COMMENT ON COLUMN pricing.universe.data_type IS 'What may be asked for.';
COMMENT ON COLUMN pricing.universe.symbol IS 'Of what.';
COMMENT ON COLUMN pricing.universe.calendar IS 'Its trading calendar.';
COMMENT ON COLUMN pricing.universe.left_out IS
    'Why schedules and whole backfills leave it out: paused, or unknown_symbol = no answer ever came, and its provider does not know it. NULL = it is asked for.';

-- ── What happens by itself when rows change ─────────────────────────────────────────────────────────────

CREATE FUNCTION pricing.usual_publish_lag(fetcher text) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = '' AS $$
    SELECT CASE fetcher WHEN 'nav' THEN interval '6 hours' ELSE interval '15 minutes' END
$$;
COMMENT ON FUNCTION pricing.usual_publish_lag(text) IS
    'How long after the close a daily value is looked for while nothing was learned. Funds are valued in the evening.';

CREATE FUNCTION pricing.comment_columns(view_name text) RETURNS void
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT pg_catalog.format('COMMENT ON COLUMN pricing.%I.%I IS %L', view_name, a.attname,
                                 pg_catalog.col_description('pricing.latest_prices'::pg_catalog.regclass, a.attnum))
        FROM pg_catalog.pg_attribute v JOIN pg_catalog.pg_attribute a
            ON a.attrelid = 'pricing.latest_prices'::pg_catalog.regclass AND a.attname = v.attname
        WHERE v.attrelid = pg_catalog.format('pricing.%I', view_name)::pg_catalog.regclass
        ORDER BY v.attnum
    LOOP
        EXECUTE statement;
    END LOOP;
END $$;
COMMENT ON FUNCTION pricing.comment_columns(text) IS
    'Gives the columns of a view of latest prices the words of the table.';

CREATE FUNCTION pricing.apply_fetcher() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    classes text[] := CASE WHEN NEW.fetcher = 'nav' THEN ARRAY['fund', 'etf']
                           WHEN pricing.is_document(NEW.fetcher) THEN ARRAY['equity', 'etf', 'fund'] END;
BEGIN
    IF NEW.staleness_function = '' THEN
        NEW.staleness_function := CASE WHEN NEW.fetcher IN ('daily_bars', 'nav') THEN 'is_market_stale' ELSE 'is_data_stale' END;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.fetcher, NEW.asset_class) = (OLD.fetcher, OLD.asset_class) THEN
        RETURN NEW; -- what stands may go on, and be retired
    END IF;
    IF NEW.asset_class <> ALL (classes) THEN
        RAISE EXCEPTION 'data type %: the fetcher % does not fit the asset class %: only instruments of % have what it asks for',
            NEW.data_type, NEW.fetcher, NEW.asset_class, pg_catalog.array_to_string(classes, ', ')
            USING HINT = 'Name another fetcher (quote and daily_bars fit every class), or the asset class of the instruments that are meant.',
                  ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.apply_fetcher() IS
    'Refuses a data type whose fetcher does not fit its asset class, and names the judge of its staleness where the row does not: the market for daily values, the TTL for all else.';

CREATE TRIGGER apply_fetcher BEFORE INSERT OR UPDATE ON pricing.data_type_registry FOR EACH ROW
    EXECUTE FUNCTION pricing.apply_fetcher();

CREATE FUNCTION pricing.check_data_type() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    own_view text := CASE WHEN pricing.is_document(NEW.fetcher) THEN 'document_' ELSE 'latest_price_' END || NEW.data_type;
    missing text;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.data_type <> OLD.data_type THEN
            RAISE EXCEPTION 'data type % cannot be renamed', OLD.data_type
                USING HINT = 'Add the new name and retire this one.', ERRCODE = 'invalid_parameter_value';
        ELSIF pricing.is_document(NEW.fetcher) <> pricing.is_document(OLD.fetcher) THEN
            RAISE EXCEPTION 'data type % cannot become one of %', OLD.data_type,
                CASE WHEN pricing.is_document(NEW.fetcher) THEN 'documents' ELSE 'prices' END
                USING HINT = 'Its storage is of the other kind. Add a new data type and retire this one.',
                      ERRCODE = 'invalid_parameter_value';
        ELSIF (NEW.table_name, NEW.symbol_column, NEW.timestamp_column, NEW.staleness_function, NEW.schedule_timezone)
              = (OLD.table_name, OLD.symbol_column, OLD.timestamp_column, OLD.staleness_function, OLD.schedule_timezone)
              AND NEW.is_active <= OLD.is_active THEN
            RETURN NEW; -- a type whose table has vanished can still be retired
        END IF;
    ELSIF NOT pricing.is_document(NEW.fetcher) AND EXISTS (SELECT FROM pg_catalog.pg_class c
                  WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = 'price_history_' || NEW.data_type
                    AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i
                                    WHERE i.inhrelid = c.oid AND i.inhparent = 'pricing.price_history'::pg_catalog.regclass)) THEN
        -- The index of one type's history could be called as another type's history.
        RAISE EXCEPTION 'data type %: the name pricing.price_history_% is taken', NEW.data_type, NEW.data_type
            USING HINT = 'Choose another name for the data type.', ERRCODE = 'duplicate_table';
    END IF;

    IF NEW.table_name IN ('', own_view) THEN
        NEW.table_name := own_view;
        NEW.symbol_column := 'symbol';
        NEW.timestamp_column := 'fetched_at';
    END IF;
    -- What may be named: a table or view of this schema that its owner made, in the shape that staleness can be judged by.
    -- Of the pipeline's own only three have that shape, and they hold all types.
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c
                   WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = NEW.table_name) THEN
        IF NEW.table_name <> own_view OR TG_OP = 'UPDATE' THEN
            RAISE EXCEPTION 'data type %: table pricing.% does not exist', NEW.data_type, NEW.table_name
                USING HINT = 'Create the table first, or leave table_name empty to get one.', ERRCODE = 'undefined_table';
        END IF;
    ELSE
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                       WHERE n.nspname = 'pricing' AND c.relname::text = NEW.table_name AND c.relowner = n.nspowner
                         AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NEW.table_name NOT IN ('latest_prices', 'document_pairs', 'latest_answers')) THEN
            RAISE EXCEPTION 'data type %: pricing.% is no table or view that a data type may name', NEW.data_type, NEW.table_name
                USING HINT = 'Name a table or view of your own that the owner of the schema made.', ERRCODE = 'wrong_object_type';
        END IF;
        SELECT pg_catalog.string_agg(wanted.name, ', ' ORDER BY wanted.name) INTO missing
        FROM (VALUES (NEW.symbol_column, ARRAY['text', 'varchar']), (NEW.timestamp_column, ARRAY['timestamptz']),
                     ('cache_ttl_minutes', ARRAY['integer'])) AS wanted (name, types)
        WHERE NOT EXISTS (
            SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
            WHERE c.relnamespace = 'pricing'::pg_catalog.regnamespace AND c.relname::text = NEW.table_name
              AND a.attname::text = wanted.name AND a.attnum > 0 AND NOT a.attisdropped
              AND a.atttypid = ANY (wanted.types::pg_catalog.regtype[]));
        IF missing IS NOT NULL THEN
            RAISE EXCEPTION 'data type %: pricing.% lacks column(s) %', NEW.data_type, NEW.table_name, missing
                USING HINT = 'symbol_column (text), timestamp_column (timestamptz) and cache_ttl_minutes (integer) must exist.',
                      ERRCODE = 'undefined_column';
        END IF;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
                   WHERE n.nspname = 'pricing' AND p.proname::text = NEW.staleness_function AND p.proowner = n.nspowner
                     AND p.proargtypes::text = '1184 23' AND p.prorettype = 'boolean'::pg_catalog.regtype
                     AND p.prokind = 'f' AND NOT p.proretset) THEN
        RAISE EXCEPTION 'data type %: staleness function pricing.%(timestamptz, integer) does not exist',
            NEW.data_type, NEW.staleness_function
            USING HINT = 'Use is_data_stale, or let the owner of the schema create the function, returning boolean, first.',
                  ERRCODE = 'undefined_function';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_timezone_names WHERE name = NEW.schedule_timezone) THEN
        RAISE EXCEPTION 'data type %: unknown time zone %', NEW.data_type, NEW.schedule_timezone
            USING HINT = 'Use a name such as UTC or Asia/Kolkata.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.check_data_type() IS
    'Refuses a registry row whose names are not on the list: a table or view of the owner in the right shape, a staleness function, a time zone.';

CREATE TRIGGER check_data_type BEFORE INSERT OR UPDATE ON pricing.data_type_registry FOR EACH ROW
    EXECUTE FUNCTION pricing.check_data_type();

CREATE FUNCTION pricing.drop_storage() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' SET lock_timeout = '1s' AS $$
BEGIN
    IF EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.latest_prices l WHERE l.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.document_pairs p WHERE p.data_type = OLD.data_type)
       OR EXISTS (SELECT FROM pricing.demand d WHERE d.data_type = OLD.data_type) THEN
        RAISE EXCEPTION 'data type % holds prices or documents or is watched and cannot be deleted', OLD.data_type
            USING HINT = pg_catalog.format('Retire it instead: UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = %L',
                                           OLD.data_type),
                  ERRCODE = 'restrict_violation';
    END IF;
    IF pricing.is_document(OLD.fetcher) THEN
        EXECUTE pg_catalog.format('DROP VIEW IF EXISTS pricing.%I', 'document_' || OLD.data_type);
    ELSE
        EXECUTE pg_catalog.format('DROP TABLE IF EXISTS pricing.%I', 'price_history_' || OLD.data_type);
        EXECUTE pg_catalog.format('DROP VIEW IF EXISTS pricing.%I', 'latest_price_' || OLD.data_type);
    END IF;
    RETURN OLD;
EXCEPTION WHEN lock_not_available THEN
    -- Dropping its table needs all histories for a moment, and whoever comes would wait behind a wait for them.
    RAISE EXCEPTION 'data type % cannot be deleted now: somebody is reading or storing prices in a transaction that stays open', OLD.data_type
        USING HINT = 'Try again; docs/operations.md, "Something is locked", tells how to find the session.', ERRCODE = 'lock_not_available';
END $$;
COMMENT ON FUNCTION pricing.drop_storage() IS
    'Refuses to delete a data type that holds data; otherwise removes its empty storage.';

CREATE TRIGGER drop_storage BEFORE DELETE ON pricing.data_type_registry FOR EACH ROW
    EXECUTE FUNCTION pricing.drop_storage();

CREATE FUNCTION pricing.fetcher_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM pricing.end_hold_off(NEW.data_type);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.fetcher_changed() IS
    'Something else is asked for: ends the hold-off of all pairs of the type.';

CREATE TRIGGER fetcher_changed AFTER UPDATE OF fetcher ON pricing.data_type_registry FOR EACH ROW WHEN (OLD.fetcher <> NEW.fetcher)
    EXECUTE FUNCTION pricing.fetcher_changed();

CREATE FUNCTION pricing.make_storage() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    history text := 'price_history_' || NEW.data_type;
    is_document boolean := pricing.is_document(NEW.fetcher);
    about record;
BEGIN
    IF is_document AND pg_catalog.to_regclass(pg_catalog.format('pricing.%I', NEW.table_name)) IS NULL THEN
        EXECUTE pg_catalog.format(
            'CREATE VIEW pricing.%I AS SELECT p.symbol, '
            '(SELECT jsonb_agg(d.body ORDER BY d.period DESC) FROM pricing.documents d '
            'WHERE (d.data_type, d.symbol) = (p.data_type, p.symbol) AND d.body IS NOT NULL) AS documents, '
            'p.fetched_at, p.provider, p.call_id, p.cache_ttl_minutes FROM pricing.document_pairs p WHERE p.data_type = %L',
            NEW.table_name, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON VIEW pricing.%I IS %L', NEW.table_name, 'Documents of ' || NEW.data_type || '.');
        FOR about IN
            SELECT v.attname, coalesce(pg_catalog.col_description(p.attrelid, p.attnum), 'Current documents, the newest period first.') AS words
            FROM pg_catalog.pg_attribute v LEFT JOIN pg_catalog.pg_attribute p
                ON p.attrelid = 'pricing.document_pairs'::pg_catalog.regclass AND p.attname = v.attname
            WHERE v.attrelid = pg_catalog.format('pricing.%I', NEW.table_name)::pg_catalog.regclass ORDER BY v.attnum
        LOOP
            EXECUTE pg_catalog.format('COMMENT ON COLUMN pricing.%I.%I IS %L', NEW.table_name, about.attname, about.words);
        END LOOP;
    END IF;
    -- LIKE + ATTACH: CREATE ... PARTITION OF would lock out every writer of price_history meanwhile.
    IF NOT is_document AND pg_catalog.to_regclass(pg_catalog.format('pricing.%I', history)) IS NULL THEN
        EXECUTE pg_catalog.format('CREATE TABLE pricing.%I (LIKE pricing.price_history INCLUDING ALL)', history);
        EXECUTE pg_catalog.format('ALTER TABLE pricing.price_history ATTACH PARTITION pricing.%I FOR VALUES IN (%L)',
                                  history, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON TABLE pricing.%I IS %L', history, 'History of ' || NEW.data_type || '.');
    END IF;
    IF NOT is_document AND pg_catalog.to_regclass(pg_catalog.format('pricing.%I', NEW.table_name)) IS NULL THEN
        EXECUTE pg_catalog.format(
            'CREATE VIEW pricing.%I AS SELECT symbol, amount, scale, currency, observed_at, fetched_at, provider, '
            'call_id, source_text, cache_ttl_minutes FROM pricing.latest_prices WHERE data_type = %L',
            NEW.table_name, NEW.data_type);
        EXECUTE pg_catalog.format('COMMENT ON VIEW pricing.%I IS %L', NEW.table_name,
                                  'Latest prices of ' || NEW.data_type || '.');
        PERFORM pricing.comment_columns(NEW.table_name);
    END IF;
    -- Without a route nothing would be fetched; the first provider able and willing to serve the fetcher gets a visible rule.
    INSERT INTO pricing.provider_routing (data_type, provider)
    SELECT NEW.data_type, c.provider
    FROM pricing.provider_capabilities c JOIN pricing.data_collectors d USING (provider)
    WHERE c.fetcher = NEW.fetcher AND c.routes_new_types AND d.is_active
    ORDER BY c.provider LIMIT 1
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.make_storage() IS
    'Gives a new data type its history partition and its view of latest prices, or its view of documents; and a route.';

CREATE TRIGGER make_storage AFTER INSERT ON pricing.data_type_registry FOR EACH ROW
    EXECUTE FUNCTION pricing.make_storage();

CREATE FUNCTION pricing.registry_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    UPDATE pricing.registry_state SET version = version + 1;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.registry_changed() IS
    'Counts the change, so that the sensor reloads the code location.';

CREATE TRIGGER registry_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.data_type_registry FOR EACH STATEMENT
    EXECUTE FUNCTION pricing.registry_changed();

CREATE FUNCTION pricing.schedule_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
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
COMMENT ON FUNCTION pricing.schedule_changed() IS
    'Slots that passed before a type had this schedule, or while it was retired, are not owed.';

CREATE TRIGGER schedule_added AFTER INSERT ON pricing.data_type_registry FOR EACH ROW
    EXECUTE FUNCTION pricing.schedule_changed();

CREATE TRIGGER schedule_changed AFTER UPDATE OF refresh_strategy, refresh_schedule, schedule_timezone, is_active ON pricing.data_type_registry FOR EACH ROW WHEN (OLD.refresh_strategy IS DISTINCT FROM NEW.refresh_strategy OR OLD.refresh_schedule IS DISTINCT FROM NEW.refresh_schedule OR OLD.schedule_timezone IS DISTINCT FROM NEW.schedule_timezone OR OLD.is_active IS DISTINCT FROM NEW.is_active)
    EXECUTE FUNCTION pricing.schedule_changed();

CREATE FUNCTION pricing.ttl_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Locked first and changed by a statement of its own, which sees what a worker has just set by the old TTL.
    PERFORM FROM pricing.demand d WHERE d.data_type = NEW.data_type ORDER BY d.data_type, d.symbol FOR NO KEY UPDATE;
    PERFORM pricing.look_again(NEW.data_type);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.ttl_changed() IS
    'Makes a new TTL or staleness function take effect at the next staleness check, and starts what is wanted of a revived type.';

CREATE TRIGGER ttl_changed AFTER UPDATE OF default_ttl_minutes, background_ttl_minutes, staleness_function, table_name, symbol_column, timestamp_column, is_active ON pricing.data_type_registry FOR EACH ROW WHEN (OLD.default_ttl_minutes IS DISTINCT FROM NEW.default_ttl_minutes OR OLD.background_ttl_minutes IS DISTINCT FROM NEW.background_ttl_minutes OR OLD.staleness_function IS DISTINCT FROM NEW.staleness_function OR OLD.table_name IS DISTINCT FROM NEW.table_name OR OLD.symbol_column IS DISTINCT FROM NEW.symbol_column OR OLD.timestamp_column IS DISTINCT FROM NEW.timestamp_column OR OLD.is_active IS DISTINCT FROM NEW.is_active)
    EXECUTE FUNCTION pricing.ttl_changed();

CREATE FUNCTION pricing.type_retired() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM pricing.retire_tasks();
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.type_retired() IS
    'Cancels what is queued of a data type that is retired or deleted.';

CREATE TRIGGER type_deleted AFTER DELETE ON pricing.data_type_registry FOR EACH ROW
    EXECUTE FUNCTION pricing.type_retired();

CREATE TRIGGER type_retired AFTER UPDATE OF is_active ON pricing.data_type_registry FOR EACH ROW WHEN ((OLD.is_active AND (NOT NEW.is_active)))
    EXECUTE FUNCTION pricing.type_retired();

CREATE FUNCTION pricing.choose_calendar() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- An exchange that no rule knows is not America: .XY says where, and we do not know when that trades. A single
    -- letter is a class of shares, BRK.B.
    NEW.calendar := (
        SELECT r.calendar FROM pricing.calendar_rules r
        WHERE r.asset_class IN (NEW.asset_class, CASE NEW.asset_class WHEN 'etf' THEN 'equity' END)
          AND NEW.symbol LIKE '%' || r.ending AND r.currency IN ('', NEW.currency)
          AND (r.ending <> '' OR NEW.asset_class NOT IN ('equity', 'etf') OR NEW.symbol !~ '(\.[A-Z]{2,}|:[A-Z]+)$')
        ORDER BY r.asset_class = NEW.asset_class DESC, length(r.ending) DESC, r.currency DESC LIMIT 1);
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.choose_calendar() IS
    'Gives an instrument the calendar that the rules name, unless it has one. Where none of its own fits, an ETF follows those of equities.';

CREATE TRIGGER choose_calendar BEFORE INSERT OR UPDATE OF currency ON pricing.instruments FOR EACH ROW WHEN (NEW.calendar IS NULL)
    EXECUTE FUNCTION pricing.choose_calendar();

CREATE FUNCTION pricing.instrument_paused() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    PERFORM FROM pricing.demand d JOIN pricing.data_type_registry r USING (data_type)
    WHERE r.asset_class = NEW.asset_class AND d.symbol = NEW.symbol ORDER BY d.data_type, d.symbol FOR NO KEY UPDATE OF d;
    IF NEW.update_mode <> 'api' OR NOT NEW.is_active THEN
        PERFORM pricing.stop_paused(NEW.asset_class, NEW.symbol);
    END IF;
    PERFORM pricing.look_again(r.data_type, NEW.symbol) FROM pricing.data_type_registry r WHERE r.asset_class = NEW.asset_class;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.instrument_paused() IS
    'Stops the waiting tasks of a paused instrument; makes the pairs of a resumed one due at once.';

CREATE TRIGGER instrument_paused AFTER UPDATE OF update_mode, is_active ON pricing.instruments FOR EACH ROW WHEN (OLD.update_mode IS DISTINCT FROM NEW.update_mode OR OLD.is_active IS DISTINCT FROM NEW.is_active)
    EXECUTE FUNCTION pricing.instrument_paused();

CREATE FUNCTION pricing.keep_class() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF EXISTS (
        SELECT FROM pricing.data_type_registry r
        WHERE r.asset_class = OLD.asset_class
          AND (EXISTS (SELECT FROM pricing.demand d WHERE (d.data_type, d.symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.active_subscriptions a WHERE (a.data_type, a.symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.holdings h WHERE (h.data_type, h.active_symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.latest_prices l WHERE (l.data_type, l.symbol) = (r.data_type, OLD.symbol))
               OR EXISTS (SELECT FROM pricing.price_history h WHERE h.data_type = r.data_type AND h.symbol = OLD.symbol))) THEN
        RAISE EXCEPTION 'the % % is watched, held or priced, so it stays one', OLD.asset_class, OLD.symbol
            USING HINT = 'Add an instrument of the other class or name, watch that, and pause this one.', ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION pricing.keep_class() IS
    'Refuses another class or symbol for an instrument that is watched, held or priced: its pairs would go on without an instrument.';

CREATE TRIGGER keep_class BEFORE UPDATE OF asset_class, symbol ON pricing.instruments FOR EACH ROW WHEN (OLD.asset_class IS DISTINCT FROM NEW.asset_class OR OLD.symbol IS DISTINCT FROM NEW.symbol)
    EXECUTE FUNCTION pricing.keep_class();

CREATE FUNCTION pricing.add_provider_state() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO pricing.provider_state (provider) VALUES (NEW.provider) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.add_provider_state() IS
    'Every provider has the row that its claims lock.';

CREATE TRIGGER add_provider_state AFTER INSERT ON pricing.data_collectors FOR EACH ROW
    EXECUTE FUNCTION pricing.add_provider_state();

CREATE FUNCTION pricing.provider_switched() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    rule record;
BEGIN
    FOR rule IN
        SELECT r.data_type, r.symbol FROM pricing.provider_routing r WHERE r.provider = NEW.provider AND r.is_active
        ORDER BY 1, 2
    LOOP
        PERFORM pricing.forget_route(rule.data_type, rule.symbol);
    END LOOP;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.provider_switched() IS
    'A provider was switched on or off, or moved, or another quota, limit or capability of it was set: forgets what it and others refused for the pairs routed to it, ends their hold-off, and moves what waits to where it belongs now.';

CREATE TRIGGER provider_switched AFTER UPDATE OF is_active, base_url, quota_bytes ON pricing.data_collectors FOR EACH ROW WHEN (OLD.is_active IS DISTINCT FROM NEW.is_active OR OLD.base_url IS DISTINCT FROM NEW.base_url OR OLD.quota_bytes IS DISTINCT FROM NEW.quota_bytes)
    EXECUTE FUNCTION pricing.provider_switched();

CREATE TRIGGER capability_changed AFTER INSERT OR UPDATE ON pricing.provider_capabilities FOR EACH ROW
    EXECUTE FUNCTION pricing.provider_switched();

CREATE TRIGGER limit_changed AFTER UPDATE ON pricing.provider_limits FOR EACH ROW WHEN (OLD.units <> NEW.units)
    EXECUTE FUNCTION pricing.provider_switched();

CREATE FUNCTION pricing.route_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM pricing.forget_route(OLD.data_type, OLD.symbol);
    END IF;
    IF TG_OP = 'INSERT' OR (TG_OP = 'UPDATE' AND (OLD.data_type, OLD.symbol) IS DISTINCT FROM (NEW.data_type, NEW.symbol)) THEN
        PERFORM pricing.forget_route(NEW.data_type, NEW.symbol);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.route_changed() IS
    'Another provider may serve what failed: ends the hold-off of the pairs that the rule is about, and moves their waiting tasks.';

CREATE TRIGGER route_changed AFTER INSERT OR DELETE OR UPDATE ON pricing.provider_routing FOR EACH ROW
    EXECUTE FUNCTION pricing.route_changed();

CREATE FUNCTION pricing.learn_publish_lag() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    closed timestamptz;
    usual interval;
    known interval;
    seen interval;
BEGIN
    SELECT s.closes_at, pricing.usual_publish_lag(r.fetcher) INTO closed, usual
    FROM pricing.data_type_registry r JOIN pricing.instruments i ON (i.asset_class, i.symbol) = (r.asset_class, NEW.symbol)
    JOIN pricing.calendar_sessions s ON (s.calendar, s.session) = (i.calendar, (NEW.observed_at AT TIME ZONE 'UTC')::date)
    WHERE r.data_type = NEW.data_type AND r.fetcher <> 'quote';
    -- What comes before the close is a bar that is still growing.
    IF closed IS NULL OR NEW.fetched_at <= closed THEN
        RETURN NULL;
    END IF;
    SELECT p.lag INTO known FROM pricing.publish_lags p WHERE (p.data_type, p.symbol) = (NEW.data_type, NEW.symbol);
    seen := least(NEW.fetched_at - closed, interval '24 hours');
    IF OLD.fetched_at > closed THEN
        -- It was asked for after the close and was not there yet.
        known := CASE WHEN known IS NULL THEN seen ELSE (known + seen) / 2 END;
    ELSIF seen <= coalesce(known, usual) * 1.25 + interval '10 minutes' THEN
        -- It was there at the first look: next time a little earlier.
        known := coalesce(known, usual) * 0.95;
    ELSE
        RETURN NULL; -- nobody looked until long after
    END IF;
    INSERT INTO pricing.publish_lags AS p (data_type, symbol, lag, learned_at)
    VALUES (NEW.data_type, NEW.symbol, known, NEW.fetched_at)
    ON CONFLICT ON CONSTRAINT publish_lags_pkey
        DO UPDATE SET lag = excluded.lag, measurements = p.measurements + 1, learned_at = excluded.learned_at;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.learn_publish_lag() IS
    'Learns from when a daily value first appeared how long after the close to look for it.';

CREATE TRIGGER learn_publish_lag AFTER UPDATE OF observed_at ON pricing.latest_prices FOR EACH ROW WHEN (((OLD.observed_at < NEW.observed_at) AND (NEW.observed_at = date_trunc('day'::text, NEW.observed_at, 'UTC'::text))))
    EXECUTE FUNCTION pricing.learn_publish_lag();

CREATE FUNCTION pricing.own_ttl_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- Without waiting: a worker that stores this very price holds its demand and waits for us. What is missed
    -- here, reconcile_demand finds.
    UPDATE pricing.demand d SET due_at = pricing.clock()
    FROM (SELECT x.data_type, x.symbol FROM pricing.demand x
          WHERE (x.data_type, x.symbol) = (NEW.data_type, NEW.symbol) AND x.became_due_at IS NULL
            AND (x.held_until IS NULL OR x.held_until <= pricing.clock())
          FOR NO KEY UPDATE SKIP LOCKED) pair
    WHERE (d.data_type, d.symbol) = (pair.data_type, pair.symbol);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.own_ttl_changed() IS
    'Makes a pair''s own TTL take effect at the next staleness check.';

CREATE TRIGGER own_ttl_changed AFTER UPDATE OF cache_ttl_minutes ON pricing.latest_prices FOR EACH ROW WHEN (OLD.cache_ttl_minutes IS DISTINCT FROM NEW.cache_ttl_minutes)
    EXECUTE FUNCTION pricing.own_ttl_changed();

CREATE TRIGGER own_ttl_changed AFTER UPDATE OF cache_ttl_minutes ON pricing.document_pairs FOR EACH ROW WHEN (OLD.cache_ttl_minutes IS DISTINCT FROM NEW.cache_ttl_minutes)
    EXECUTE FUNCTION pricing.own_ttl_changed();
