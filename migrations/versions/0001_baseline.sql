-- The tables of an empty database, in reading order. docs/maintainers/architecture.md has the words that are used here,
-- and "Changing SQL" in CONTRIBUTING.md says how to change them. Functions and triggers stand in
-- pricing_pipeline/db/functions/, rights in pricing_pipeline/db/grants.sql.

COMMENT ON SCHEMA pricing IS
    'Everything of the price-refresh pipeline. Times are timestamptz; money is an integer with its scale.';

-- ── The clock, and domains ──

CREATE FUNCTION pricing.clock() RETURNS timestamptz
LANGUAGE sql PARALLEL SAFE AS $$SELECT pg_catalog.clock_timestamp()$$;
COMMENT ON FUNCTION pricing.clock() IS 'The only clock. Tests replace it to move time; nothing else may.';

CREATE DOMAIN pricing.breaker_position AS text
    CONSTRAINT breaker_is_known CHECK (VALUE IN ('closed', 'open', 'half_open'));
COMMENT ON DOMAIN pricing.breaker_position IS
    'What a breaker lets through: closed = all calls, open = none, half_open = one probe.';

CREATE DOMAIN pricing.call_outcome AS text
    CONSTRAINT outcome_is_known CHECK (VALUE IN ('open', 'ok', 'failed', 'unknown'));
COMMENT ON DOMAIN pricing.call_outcome IS
    'What became of a call: open = nothing yet, ok = answered, failed = not answered or refused, unknown = its worker '
    'was lost.';

CREATE DOMAIN pricing.user_name AS text
    CONSTRAINT user_is_sane CHECK (length(VALUE) BETWEEN 1 AND 200);
COMMENT ON DOMAIN pricing.user_name IS 'Who watches or holds something: 1 to 200 characters.';

-- ── Registry: what kinds of data there are ──

CREATE TABLE pricing.fetchers (
    fetcher       text PRIMARY KEY,
    contents      text NOT NULL
        CONSTRAINT contents_are_known CHECK (contents IN ('prices', 'documents', 'inventory', 'commodities')),
    asset_classes text[],
    description   text NOT NULL
);
COMMENT ON TABLE pricing.fetchers IS 'What a provider can be asked for; each data type names one.';
COMMENT ON COLUMN pricing.fetchers.fetcher IS 'Its name.';
COMMENT ON COLUMN pricing.fetchers.contents IS
    'What the answers consist of: prices, one for each time, with a history; documents, flat bodies, one for each '
    'period; inventory, slots of a product; commodities, what a terminal of a game buys and sells.';
COMMENT ON COLUMN pricing.fetchers.asset_classes IS 'The classes of instruments that have it; NULL = all.';
COMMENT ON COLUMN pricing.fetchers.description IS 'For people.';
CREATE INDEX fetchers_by_contents ON pricing.fetchers (contents);
INSERT INTO pricing.fetchers (fetcher, contents, asset_classes, description) VALUES
    ('quote', 'prices', NULL, 'The latest price, stamped by the source.'),
    ('daily_bars', 'prices', NULL, 'Open, high, low, close and volume of each trading day.'),
    ('nav', 'prices', '{fund,etf}', 'One net asset value for each day.'),
    ('profile', 'documents', '{equity,etf,fund}', 'The profile of a company.'),
    ('earnings', 'documents', '{equity,etf,fund}', 'Actual and expected earnings per share.'),
    ('income_statement', 'documents', '{equity,etf,fund}', 'Annual income statements.'),
    ('dividends', 'documents', '{equity,etf,fund}', 'The dividends of a share.'),
    ('splits', 'documents', '{equity,etf,fund}', 'The splits of a share.'),
    ('product', 'inventory', '{inventory}', 'A product with its options and categories of guests.'),
    ('slots', 'inventory', '{inventory}', 'The slots of a product on the next days, with places and prices.'),
    ('terminal_prices', 'commodities', '{commodity}', 'All that a terminal of a game buys and sells.');

CREATE TABLE pricing.data_type_registry (
    data_type                 text PRIMARY KEY
        CONSTRAINT data_type_is_plain_name CHECK (data_type ~ '^[a-z][a-z0-9_]{0,47}$'),
    description               text NOT NULL DEFAULT '',
    asset_class               text NOT NULL DEFAULT 'equity'
        CONSTRAINT asset_class_is_plain_name CHECK (asset_class ~ '^[a-z][a-z0-9_]{0,47}$'),
    fetcher                   text NOT NULL CONSTRAINT fetcher_is_known REFERENCES pricing.fetchers(fetcher),
    default_ttl_minutes       integer NOT NULL CONSTRAINT ttl_is_positive CHECK (default_ttl_minutes > 0),
    table_name                text NOT NULL DEFAULT '',
    symbol_column             text NOT NULL DEFAULT 'symbol',
    timestamp_column          text NOT NULL DEFAULT 'fetched_at',
    staleness_function        text NOT NULL DEFAULT '',
    refresh_strategy          text NOT NULL DEFAULT 'on-demand'
        CONSTRAINT strategy_is_known CHECK (refresh_strategy IN ('on-demand', 'scheduled')),
    refresh_schedule          text,
    schedule_timezone         text NOT NULL DEFAULT 'UTC',
    history_from              date
        CONSTRAINT history_begins_within_reason CHECK (history_from BETWEEN '1800-01-01' AND '2999-12-31'),
    estimated_data_size_bytes bigint NOT NULL DEFAULT 50000
        CONSTRAINT estimate_is_positive CHECK (estimated_data_size_bytes > 0),
    is_active                 boolean NOT NULL DEFAULT true,
    created_at                timestamptz NOT NULL DEFAULT pricing.clock(),
    background_ttl_minutes    integer NOT NULL DEFAULT 1440
        CONSTRAINT background_ttl_is_positive CHECK (background_ttl_minutes > 0),
    thin_after_days           integer CONSTRAINT thin_after_is_positive CHECK (thin_after_days > 0),
    thin_to_minutes           integer NOT NULL DEFAULT 1440
        CONSTRAINT thinning_divides_a_day CHECK (
            thin_to_minutes > 0
            AND thin_to_minutes <= 1440
            AND ((1440 % thin_to_minutes) = 0)),
    owner                     text
        CONSTRAINT owner_is_email_or_team CHECK (
            owner ~ ('^(team:[A-Za-z0-9_-]{1,100}|'
                     '[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24})$')),
    contents                  text NOT NULL DEFAULT ''
        CONSTRAINT contents_are_known CHECK (contents IN ('prices', 'documents', 'inventory', 'commodities')),
    has_own_table             boolean NOT NULL DEFAULT false,
    days_ahead                integer CONSTRAINT days_ahead_are_at_most_two_years CHECK (days_ahead BETWEEN 1 AND 731),
    keep_months               integer CONSTRAINT keep_months_is_sane CHECK (keep_months BETWEEN 3 AND 1200),
    CONSTRAINT months_are_thinned_before_they_leave CHECK (thin_after_days < keep_months * 28),
    CONSTRAINT names_are_not_cut CHECK (
        63 >= ALL (ARRAY[octet_length(table_name), octet_length(symbol_column), octet_length(timestamp_column),
                         octet_length(staleness_function)])),
    CONSTRAINT only_prices_have_backfill CHECK (
        (contents = 'prices' AND fetcher <> 'quote') OR history_from IS NULL),
    CONSTRAINT only_quotes_are_thinned CHECK (thin_after_days IS NULL OR fetcher = 'quote'),
    CONSTRAINT scheduled_types_have_a_schedule
        CHECK ((refresh_strategy = 'scheduled') = (refresh_schedule IS NOT NULL)),
    CONSTRAINT slots_have_days_ahead CHECK ((fetcher = 'slots') = (days_ahead IS NOT NULL))
);
COMMENT ON TABLE pricing.data_type_registry IS
    'The single source of truth on data types: one INSERT creates a type''s storage, Dagster assets, freshness policy '
    'and refresh.';
COMMENT ON COLUMN pricing.data_type_registry.data_type IS 'Its name; it cannot be changed.';
COMMENT ON COLUMN pricing.data_type_registry.description IS 'For people.';
COMMENT ON COLUMN pricing.data_type_registry.asset_class IS 'The asset class of its instruments.';
COMMENT ON COLUMN pricing.data_type_registry.fetcher IS
    'What is asked of a provider; provider_routing says which provider.';
COMMENT ON COLUMN pricing.data_type_registry.default_ttl_minutes IS 'The age at which a watched price is due again.';
COMMENT ON COLUMN pricing.data_type_registry.table_name IS
    'The view or table that the staleness function judges; empty = the view latest_price_<data_type> or '
    'document_<data_type>, which a trigger makes.';
COMMENT ON COLUMN pricing.data_type_registry.symbol_column IS 'Column of table_name with the symbol, text.';
COMMENT ON COLUMN pricing.data_type_registry.timestamp_column IS
    'Column of table_name that decides staleness, timestamptz.';
COMMENT ON COLUMN pricing.data_type_registry.staleness_function IS
    'Function (timestamptz, integer) returning boolean in this schema, called with the timestamp and the TTL in '
    'minutes.';
COMMENT ON COLUMN pricing.data_type_registry.refresh_strategy IS
    'on-demand = while somebody watches; scheduled = by refresh_schedule too.';
COMMENT ON COLUMN pricing.data_type_registry.refresh_schedule IS
    'Cron expression of a scheduled type, in schedule_timezone: five fields of numbers, names, *, ranges, steps and '
    'lists.';
COMMENT ON COLUMN pricing.data_type_registry.schedule_timezone IS 'Time zone of refresh_schedule.';
COMMENT ON COLUMN pricing.data_type_registry.history_from IS
    'First day a backfill may ask for; NULL = the type keeps no history to backfill.';
COMMENT ON COLUMN pricing.data_type_registry.estimated_data_size_bytes IS
    'Bytes on the wire per symbol, reserved against the quota before a call.';
COMMENT ON COLUMN pricing.data_type_registry.is_active IS
    'False = retired: it is no longer queued, and its prices stay.';
COMMENT ON COLUMN pricing.data_type_registry.created_at IS 'When it was added.';
COMMENT ON COLUMN pricing.data_type_registry.background_ttl_minutes IS
    'The age at which the price of a held, unwatched pair is due again.';
COMMENT ON COLUMN pricing.data_type_registry.thin_after_days IS
    'Quotes older than this many days are thinned to one for every thin_to_minutes; NULL = never.';
COMMENT ON COLUMN pricing.data_type_registry.thin_to_minutes IS
    'Thinning keeps the last quote of each span of so many minutes, which must divide a UTC day; by default a day.';
COMMENT ON COLUMN pricing.data_type_registry.owner IS
    'Who is responsible: an email address, or team:<name>; NULL = nobody in particular; Dagster shows it with the '
    'assets.';
COMMENT ON COLUMN pricing.data_type_registry.contents IS 'What it consists of, by its fetcher; a trigger writes it.';
COMMENT ON COLUMN pricing.data_type_registry.has_own_table IS
    'Whether table_name is a user''s table or view, which is filled with what is fetched; a trigger writes it.';
COMMENT ON COLUMN pricing.data_type_registry.days_ahead IS
    'For how many days of the product''s calendar slots are requested, 1 = today; only for the fetcher slots.';
COMMENT ON COLUMN pricing.data_type_registry.keep_months IS
    'Months of history besides the current one that stay in the database once their files are verified; NULL = all.';

CREATE TABLE pricing.registry_state (
    singleton   boolean DEFAULT true PRIMARY KEY CONSTRAINT one_row CHECK (singleton),
    version     bigint NOT NULL,
    prices_from text CONSTRAINT prices_from_known CHECK (prices_from IN ('sandbox', 'real providers'))
);
COMMENT ON TABLE pricing.registry_state IS
    'Counts changes of the registry, so that the sensor knows when to reload the code location, and stores where '
    'prices come from.';
COMMENT ON COLUMN pricing.registry_state.singleton IS 'Always true, so that there is only one row.';
COMMENT ON COLUMN pricing.registry_state.version IS 'Rises with every change of the registry.';
COMMENT ON COLUMN pricing.registry_state.prices_from IS
    'Where prices come from, the sandbox or real providers, which must not mix; NULL until the first worker starts.';
INSERT INTO pricing.registry_state (version) VALUES
    (1);

-- ── Calendars: when markets trade ──

CREATE TABLE pricing.calendars (
    calendar      text PRIMARY KEY CONSTRAINT calendar_is_plain_name CHECK (calendar ~ '^[A-Z0-9][A-Z0-9/]{1,11}$'),
    description   text NOT NULL DEFAULT '',
    sessions_from date,
    sessions_to   date,
    filled_at     timestamptz,
    time_zone     text,
    known_to      date,
    failure       text,
    CONSTRAINT known_span_is_upright CHECK (
        ((sessions_from IS NULL) = (sessions_to IS NULL))
        AND sessions_from <= sessions_to)
);
COMMENT ON TABLE pricing.calendars IS
    'Trading calendars, named by the ISO 10383 code of their exchange; FX (the week of foreign exchange) and 24/7 are '
    'ours.';
COMMENT ON COLUMN pricing.calendars.calendar IS 'Its name in exchange-calendars.';
COMMENT ON COLUMN pricing.calendars.description IS 'For people.';
COMMENT ON COLUMN pricing.calendars.sessions_from IS 'First day whose sessions are known; NULL = none are yet.';
COMMENT ON COLUMN pricing.calendars.sessions_to IS 'Last day whose sessions are known; beyond it only TTLs count.';
COMMENT ON COLUMN pricing.calendars.filled_at IS 'When its sessions were last written.';
COMMENT ON COLUMN pricing.calendars.time_zone IS
    'The time zone of its days and hours; NULL = unknown, so hours cannot be corrected.';
COMMENT ON COLUMN pricing.calendars.known_to IS
    'The last day whose holidays are announced, from domain/exchanges.toml; NULL = the library knows.';
COMMENT ON COLUMN pricing.calendars.failure IS 'Why computing its sessions last failed; NULL = it succeeded.';
INSERT INTO pricing.calendars (calendar, description, time_zone) VALUES
    ('24/7', 'Always: crypto, and what is sold around the clock', 'UTC'),
    ('FX', 'Foreign exchange: Sunday to Friday, 17:00 in New York', 'America/New_York'),
    ('XBOM', 'Bombay Stock Exchange, and India''s National Stock Exchange with the same days', 'Asia/Kolkata'),
    ('XLON', 'London Stock Exchange', 'Europe/London'),
    ('XNYS', 'New York Stock Exchange, and Nasdaq with the same days', 'America/New_York'),
    ('XTSE', 'Toronto Stock Exchange', 'America/Toronto');

CREATE TABLE pricing.calendar_sessions (
    calendar  text NOT NULL REFERENCES pricing.calendars(calendar) ON DELETE CASCADE,
    session   date NOT NULL,
    opens_at  timestamptz NOT NULL,
    closes_at timestamptz NOT NULL,
    PRIMARY KEY (calendar, session),
    CONSTRAINT session_is_upright CHECK (opens_at < closes_at)
);
COMMENT ON TABLE pricing.calendar_sessions IS
    'Each day on which a market trades: no holidays, and half days with their early close.';
COMMENT ON COLUMN pricing.calendar_sessions.calendar IS 'The calendar.';
COMMENT ON COLUMN pricing.calendar_sessions.session IS 'Its day in the exchange''s zone, which daily values carry.';
COMMENT ON COLUMN pricing.calendar_sessions.opens_at IS 'When trading begins.';
COMMENT ON COLUMN pricing.calendar_sessions.closes_at IS 'When trading ends.';
CREATE INDEX calendar_sessions_closing ON pricing.calendar_sessions (calendar, closes_at) INCLUDE (session, opens_at);

CREATE TABLE pricing.exchanges (
    mic        text PRIMARY KEY CONSTRAINT mic_is_code CHECK (mic ~ '^[A-Z0-9]{4}$'),
    name       text NOT NULL,
    calendar   text REFERENCES pricing.calendars(calendar),
    currency   text,
    minor_unit text,
    endings    text[] NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE pricing.exchanges IS 'Exchanges from domain/exchanges.toml, rewritten by each upgrade.';
COMMENT ON COLUMN pricing.exchanges.mic IS 'Its code by ISO 10383.';
COMMENT ON COLUMN pricing.exchanges.name IS 'For people.';
COMMENT ON COLUMN pricing.exchanges.calendar IS 'The calendar that it follows, alone or with others; NULL = not known.';
COMMENT ON COLUMN pricing.exchanges.currency IS 'The currency of all its shares; NULL = they have several.';
COMMENT ON COLUMN pricing.exchanges.minor_unit IS
    'The code of the minor unit in which it quotes prices, such as GBX; NULL = whole units.';
COMMENT ON COLUMN pricing.exchanges.endings IS
    'How its symbols end at providers, such as .L, :LSE or :XLON; if several exchanges share an ending, the currency '
    'decides.';

CREATE TABLE pricing.calendar_rules (
    asset_class text NOT NULL,
    ending      text NOT NULL DEFAULT '',
    currency    text NOT NULL DEFAULT '',
    calendar    text NOT NULL REFERENCES pricing.calendars(calendar),
    PRIMARY KEY (asset_class, ending, currency)
);
COMMENT ON TABLE pricing.calendar_rules IS
    'Which calendar an instrument without a known exchange gets: by the longest matching ending, then by its '
    'currency; without a rule, none.';
COMMENT ON COLUMN pricing.calendar_rules.asset_class IS 'Instruments of this class.';
COMMENT ON COLUMN pricing.calendar_rules.ending IS
    'How their symbol ends, as providers mark an exchange; empty = an ending that marks none.';
COMMENT ON COLUMN pricing.calendar_rules.currency IS 'Their currency; empty = any.';
COMMENT ON COLUMN pricing.calendar_rules.calendar IS 'The calendar that they get.';
INSERT INTO pricing.calendar_rules (asset_class, currency, calendar) VALUES
    ('equity', '', 'XNYS'),
    ('fund', 'INR', 'XBOM'),
    ('fund', 'USD', 'XNYS'),
    ('fund', 'GBP', 'XLON'),
    ('fund', 'CAD', 'XTSE'),
    ('fx', '', 'FX'),
    ('crypto', '', '24/7'),
    ('inventory', '', '24/7');

CREATE TABLE pricing.calendar_corrections (
    calendar    text NOT NULL REFERENCES pricing.calendars(calendar) ON DELETE CASCADE,
    day         date NOT NULL,
    origin      text NOT NULL CONSTRAINT origin_is_known CHECK (origin IN ('shipped', 'operator', 'evidence')),
    is_open     boolean NOT NULL,
    opens_at    time,
    closes_at   time,
    reason      text NOT NULL,
    source      text,
    by_whom     text,
    recorded_at timestamptz NOT NULL DEFAULT pricing.clock(),
    PRIMARY KEY (calendar, day, origin),
    CONSTRAINT hours_are_of_an_open_day CHECK (is_open OR opens_at IS NULL),
    CONSTRAINT hours_are_upright CHECK (opens_at < closes_at),
    CONSTRAINT hours_are_whole CHECK ((opens_at IS NULL) = (closes_at IS NULL)),
    CONSTRAINT only_people_are_named CHECK ((origin = 'operator') = (by_whom IS NOT NULL))
);
COMMENT ON TABLE pricing.calendar_corrections IS
    'Days on which a library calendar is wrong (special sessions, closed days, other hours); a person''s row precedes '
    'one from evidence, and that a shipped one.';
COMMENT ON COLUMN pricing.calendar_corrections.calendar IS 'The calendar that is corrected.';
COMMENT ON COLUMN pricing.calendar_corrections.day IS 'The day, in the calendar''s time zone.';
COMMENT ON COLUMN pricing.calendar_corrections.origin IS
    'shipped = comes with the pipeline; operator = a person entered it; evidence = several instruments or providers '
    'have bars of this day.';
COMMENT ON COLUMN pricing.calendar_corrections.is_open IS 'Whether the exchange trades on that day.';
COMMENT ON COLUMN pricing.calendar_corrections.opens_at IS
    'When trading begins, in the calendar''s time zone; NULL = the usual hours.';
COMMENT ON COLUMN pricing.calendar_corrections.closes_at IS
    'When trading ends, in the calendar''s time zone; NULL = the usual hours.';
COMMENT ON COLUMN pricing.calendar_corrections.reason IS 'Why the day differs from the library.';
COMMENT ON COLUMN pricing.calendar_corrections.source IS 'Where this is published; NULL = no source was given.';
COMMENT ON COLUMN pricing.calendar_corrections.by_whom IS 'The person who entered it; NULL = no person did.';
COMMENT ON COLUMN pricing.calendar_corrections.recorded_at IS 'When it was stored here.';

CREATE TABLE pricing.calendar_disagreements (
    calendar text NOT NULL REFERENCES pricing.calendars(calendar) ON DELETE CASCADE,
    day      date NOT NULL,
    is_open  boolean NOT NULL,
    reason   text NOT NULL,
    found_at timestamptz NOT NULL DEFAULT pricing.clock(),
    PRIMARY KEY (calendar, day)
);
COMMENT ON TABLE pricing.calendar_disagreements IS
    'Days on which the two sources of trading days disagree and no correction decides; the first source counts until '
    'bars prove it wrong.';
COMMENT ON COLUMN pricing.calendar_disagreements.calendar IS 'The calendar.';
COMMENT ON COLUMN pricing.calendar_disagreements.day IS 'The day, in the calendar''s time zone.';
COMMENT ON COLUMN pricing.calendar_disagreements.is_open IS
    'Whether the second source has a session; the first says the opposite.';
COMMENT ON COLUMN pricing.calendar_disagreements.reason IS
    'The name of the holiday in the second source, or that it knows no holiday.';
COMMENT ON COLUMN pricing.calendar_disagreements.found_at IS 'When it was first seen.';

CREATE TABLE pricing.opened_days (
    calendar text NOT NULL REFERENCES pricing.calendars(calendar) ON DELETE CASCADE,
    day      date NOT NULL,
    reason   text NOT NULL,
    notes    bigint NOT NULL DEFAULT 1,
    PRIMARY KEY (calendar, day)
);
COMMENT ON TABLE pricing.opened_days IS
    'Days that became sessions while bars of them were quarantined, which a worker releases within a second.';
COMMENT ON COLUMN pricing.opened_days.calendar IS 'The calendar.';
COMMENT ON COLUMN pricing.opened_days.day IS 'The day, in the calendar''s time zone.';
COMMENT ON COLUMN pricing.opened_days.reason IS 'Why it became a session.';
COMMENT ON COLUMN pricing.opened_days.notes IS
    'How often bars of the day were recorded: a worker deletes the row only if it has seen them all.';

CREATE TABLE pricing.publish_lags (
    data_type    text NOT NULL,
    symbol       text NOT NULL,
    lag          interval NOT NULL
        CONSTRAINT lag_is_sane CHECK (lag BETWEEN '00:00:00'::interval AND '24:00:00'::interval),
    PRIMARY KEY (data_type, symbol)
);
COMMENT ON TABLE pricing.publish_lags IS
    'How long after a session''s end a pair''s daily value appears at the provider, as learned.';
COMMENT ON COLUMN pricing.publish_lags.data_type IS 'Its data type.';
COMMENT ON COLUMN pricing.publish_lags.symbol IS 'Its symbol.';
COMMENT ON COLUMN pricing.publish_lags.lag IS 'From the close until the value is requested.';

-- ── Instruments: what can be priced, and what else it is called ──

CREATE TABLE pricing.instruments (
    asset_class text NOT NULL,
    symbol      text NOT NULL
        CONSTRAINT symbol_is_sane CHECK (
            length(symbol) BETWEEN 1 AND 40
            AND symbol ~ '^[A-Za-z0-9^]([A-Za-z0-9./:=^_&''-]*|( ?[A-Za-z0-9.&''-])*:[A-Z0-9]{4})$'),
    name        text,
    currency    text CONSTRAINT currency_is_code CHECK (currency ~ '^[A-Z]{3,5}$'),
    scale       smallint NOT NULL DEFAULT 2 CONSTRAINT scale_is_sane CHECK (scale BETWEEN 0 AND 12),
    update_mode text NOT NULL DEFAULT 'api' CONSTRAINT update_mode_is_known CHECK (update_mode IN ('api', 'manual')),
    is_active   boolean NOT NULL DEFAULT true,
    verified_at timestamptz,
    created_at  timestamptz NOT NULL DEFAULT pricing.clock(),
    calendar    text CONSTRAINT instrument_has_calendar REFERENCES pricing.calendars(calendar),
    listed_on   date,
    exchange    text CONSTRAINT instrument_has_exchange REFERENCES pricing.exchanges(mic),
    isin        text CONSTRAINT isin_looks_like_one CHECK (isin ~ '^[A-Z]{2}[A-Z0-9]{9}[0-9]$'),
    figi        text
        CONSTRAINT figi_looks_like_one CHECK (figi ~ '^[B-DF-HJ-NP-TV-Z]{2}G[B-DF-HJ-NP-TV-Z0-9]{8}[0-9]$'),
    PRIMARY KEY (asset_class, symbol)
);
COMMENT ON TABLE pricing.instruments IS 'Instruments: everything that can be priced.';
COMMENT ON COLUMN pricing.instruments.asset_class IS 'Its class, which decides its data types.';
COMMENT ON COLUMN pricing.instruments.symbol IS
    'Its canonical symbol (docs/providers.md); providers may spell it otherwise.';
COMMENT ON COLUMN pricing.instruments.name IS 'For people.';
COMMENT ON COLUMN pricing.instruments.currency IS
    'ISO 4217 or a coin (USDT), learned from the first answer if not given; values in another one are quarantined.';
COMMENT ON COLUMN pricing.instruments.scale IS
    'The least number of decimals stored with its prices; a source with more keeps more.';
COMMENT ON COLUMN pricing.instruments.update_mode IS 'api = refreshed; manual = never fetched.';
COMMENT ON COLUMN pricing.instruments.is_active IS 'False = never fetched.';
COMMENT ON COLUMN pricing.instruments.verified_at IS
    'When a provider first had a valid answer; NULL = added by a subscription and not yet confirmed.';
COMMENT ON COLUMN pricing.instruments.created_at IS 'When it was added.';
COMMENT ON COLUMN pricing.instruments.calendar IS
    'When it trades or is valued, by pricing.calendar_rules unless given; NULL = unknown, so only TTLs count.';
COMMENT ON COLUMN pricing.instruments.listed_on IS
    'First day of trading, if a person has given it, before which no backfill asks; pricing.listed_from also uses '
    'answers.';
COMMENT ON COLUMN pricing.instruments.exchange IS
    'The MIC of its exchange, if a person has given it; NULL = the symbol decides (pricing.exchange_of).';
COMMENT ON COLUMN pricing.instruments.isin IS
    'Its ISIN (ISO 6166), if a person has given it; it may trade on several exchanges; NULL = unknown.';
COMMENT ON COLUMN pricing.instruments.figi IS 'Its FIGI (ANSI X9.145), if a person has given it; NULL = unknown.';
CREATE INDEX instruments_by_figi ON pricing.instruments (figi) WHERE figi IS NOT NULL;
CREATE INDEX instruments_by_isin ON pricing.instruments (isin) WHERE isin IS NOT NULL;
CREATE INDEX instruments_paused ON pricing.instruments (asset_class, symbol)
    WHERE update_mode <> 'api' OR NOT is_active;

CREATE TABLE pricing.symbol_aliases (
    asset_class text NOT NULL,
    alias       text NOT NULL,
    symbol      text NOT NULL,
    PRIMARY KEY (asset_class, alias),
    CONSTRAINT alias_has_instrument FOREIGN KEY (asset_class, symbol)
        REFERENCES pricing.instruments(asset_class, symbol) ON DELETE CASCADE
);
COMMENT ON TABLE pricing.symbol_aliases IS
    'Symbols of instruments that were merged into others, which they now mean; no spelling rule leads to them.';
COMMENT ON COLUMN pricing.symbol_aliases.asset_class IS 'The class of both.';
COMMENT ON COLUMN pricing.symbol_aliases.alias IS 'The old symbol, which people may still write.';
COMMENT ON COLUMN pricing.symbol_aliases.symbol IS 'The instrument that is meant.';
CREATE INDEX symbol_aliases_of_instrument ON pricing.symbol_aliases (asset_class, symbol);

CREATE TABLE pricing.plausibility_bounds (
    data_type           text NOT NULL REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    symbol              text,
    lowest              numeric CONSTRAINT lowest_is_a_price CHECK ((lowest >= 0) AND lowest < 'Infinity'::numeric),
    highest             numeric CONSTRAINT highest_is_a_price CHECK ((highest > 0) AND highest < 'Infinity'::numeric),
    jumps_trusted_until timestamptz,
    CONSTRAINT bounds_are_upright CHECK (lowest <= highest)
);
COMMENT ON TABLE pricing.plausibility_bounds IS
    'What people know of a symbol''s prices, or of all of a data type (symbol NULL); a symbol''s row replaces the '
    'broad one; no row = no bounds.';
COMMENT ON COLUMN pricing.plausibility_bounds.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.plausibility_bounds.symbol IS 'NULL = every symbol of the type without its own row.';
COMMENT ON COLUMN pricing.plausibility_bounds.lowest IS 'Lower prices are quarantined.';
COMMENT ON COLUMN pricing.plausibility_bounds.highest IS 'Higher prices are quarantined.';
COMMENT ON COLUMN pricing.plausibility_bounds.jumps_trusted_until IS
    'Until then no value is quarantined as a jump: a person has checked a split or a change of unit.';
CREATE UNIQUE INDEX plausibility_bounds_pair ON pricing.plausibility_bounds (data_type, symbol) NULLS NOT DISTINCT;

-- ── Providers: addresses, keys, limits and routes ──

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
COMMENT ON TABLE pricing.data_collectors IS 'Providers, their address and their allowances.';
COMMENT ON COLUMN pricing.data_collectors.provider IS 'Its name, as routes and calls have it.';
COMMENT ON COLUMN pricing.data_collectors.description IS 'For people.';
COMMENT ON COLUMN pricing.data_collectors.base_url IS
    'Where it answers; the sandbox''s address takes its place while the sandbox is on.';
COMMENT ON COLUMN pricing.data_collectors.is_active IS
    'False = it is not called, and what only it serves fails as misconfigured.';
COMMENT ON COLUMN pricing.data_collectors.max_in_flight IS 'Most calls of all workers together in flight.';
COMMENT ON COLUMN pricing.data_collectors.throttle_pause_seconds IS
    'First pause after a refusal for speed without a time; it doubles with each further refusal.';
COMMENT ON COLUMN pricing.data_collectors.quota_bytes IS
    'Bytes allowed in any 720 hours (30 days of exactly 24 hours).';
COMMENT ON COLUMN pricing.data_collectors.request_delay_ms IS
    'Least time between two calls of all workers together; doubled while the provider reports 5 units or fewer left.';

CREATE TABLE pricing.provider_declarations (
    provider    text PRIMARY KEY REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    host        text NOT NULL CONSTRAINT host_is_plain CHECK (host ~ '^[a-z0-9.-]{1,253}$'),
    content     text NOT NULL CONSTRAINT content_is_short CHECK (length(content) BETWEEN 1 AND 64000),
    UNIQUE (host)
);
COMMENT ON TABLE pricing.provider_declarations IS
    'Declared providers (`provider declare`), by which workers make calls and read answers; others are coded.';
COMMENT ON COLUMN pricing.provider_declarations.provider IS 'The declared provider.';
COMMENT ON COLUMN pricing.provider_declarations.host IS
    'Host of its base URL, where its keys go; no other provider has it.';
COMMENT ON COLUMN pricing.provider_declarations.content IS 'The file, in YAML, as it was declared.';

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
    CONSTRAINT a_call_costs_something CHECK (
        units_per_call >= 0
        AND units_per_symbol >= 0
        AND ((units_per_call + units_per_symbol) > 0)),
    CONSTRAINT batch_from_is_at_most_batch_size CHECK (batch_from <= batch_size)
);
COMMENT ON TABLE pricing.provider_capabilities IS
    'What a provider can fetch, in which batches, and at what cost in its own units; claims plan calls from it.';
COMMENT ON COLUMN pricing.provider_capabilities.provider IS 'The provider.';
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
    'Whether a new data type of this fetcher may be routed to this provider automatically.';
COMMENT ON COLUMN pricing.provider_capabilities.window_days_per_call IS
    'The most days over all symbols of a call for a span, so that long spans travel alone; NULL = window_batch_size '
    'decides.';
COMMENT ON COLUMN pricing.provider_capabilities.batch_from IS
    'The fewest symbols that share a call for latest prices; fewer, and those that failed before, are requested one '
    'by one; 1 = any number shares a call.';

CREATE TABLE pricing.provider_symbols (
    provider    text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    asset_class text NOT NULL,
    symbol      text NOT NULL,
    spelling    text NOT NULL CONSTRAINT spelling_is_sane CHECK (spelling ~ '^[!-+\--~]{1,64}$'),
    given_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (provider, asset_class, symbol),
    CONSTRAINT spelling_is_of_one_symbol UNIQUE (provider, asset_class, spelling),
    CONSTRAINT spelling_has_instrument FOREIGN KEY (asset_class, symbol)
        REFERENCES pricing.instruments(asset_class, symbol) ON DELETE CASCADE
);
COMMENT ON TABLE pricing.provider_symbols IS
    'Spellings that people have given (`instrument spell`); otherwise the provider''s rule applies.';
COMMENT ON COLUMN pricing.provider_symbols.provider IS 'The provider with this spelling.';
COMMENT ON COLUMN pricing.provider_symbols.asset_class IS 'The class of the instrument.';
COMMENT ON COLUMN pricing.provider_symbols.symbol IS 'The instrument''s canonical symbol.';
COMMENT ON COLUMN pricing.provider_symbols.spelling IS 'The symbol as the provider gets it.';
COMMENT ON COLUMN pricing.provider_symbols.given_at IS
    'When it was given, or, for older ones, when this column was added.';
CREATE INDEX provider_symbols_of_instrument ON pricing.provider_symbols (asset_class, symbol);

CREATE TABLE pricing.provider_plans (
    provider        text PRIMARY KEY REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    plan            text NOT NULL CONSTRAINT plan_is_plain_name CHECK (plan ~ '^[a-z][a-z0-9_-]{0,47}$'),
    symbols         integer NOT NULL CONSTRAINT plan_is_for_some_symbols CHECK (symbols > 0),
    settings_before jsonb NOT NULL
);
COMMENT ON TABLE pricing.provider_plans IS
    'Plans that `provider use` has written, so that `provider undo` can restore what was before.';
COMMENT ON COLUMN pricing.provider_plans.provider IS 'The provider.';
COMMENT ON COLUMN pricing.provider_plans.plan IS 'Its name in plans.toml or in the declaration.';
COMMENT ON COLUMN pricing.provider_plans.symbols IS 'The number of watched symbols that its TTLs are made for.';
COMMENT ON COLUMN pricing.provider_plans.settings_before IS
    'Limits, batches and types of the provider before its first plan.';

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
    'Rate limits of each key, in the provider''s units, in any window_seconds or per calendar day of day_timezone; '
    'all must have room.';
COMMENT ON COLUMN pricing.provider_limits.provider IS 'The provider.';
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
    'A provider''s API keys by name, each with its own rate limits; without rows it has one key named default; '
    'secrets are in provider_credentials, encrypted, or in settings.';
COMMENT ON COLUMN pricing.provider_keys.provider IS 'The provider.';
COMMENT ON COLUMN pricing.provider_keys.key_name IS 'Its name.';
COMMENT ON COLUMN pricing.provider_keys.is_active IS 'False = no call is made with it.';
COMMENT ON COLUMN pricing.provider_keys.blocked_until IS
    'Until when no worker uses the key, because the provider refused it, for speed or altogether.';
COMMENT ON COLUMN pricing.provider_keys.blocked_reason IS 'Why it is blocked, for people.';
COMMENT ON COLUMN pricing.provider_keys.throttles IS
    'Refusals in a row: until the next good answer the pause grows, and one call at a time is made.';
COMMENT ON COLUMN pricing.provider_keys.reported_left IS
    'Units that the provider last reported as left; stored only while they are few.';
COMMENT ON COLUMN pricing.provider_keys.reported_at IS 'When the provider said so.';
COMMENT ON COLUMN pricing.provider_keys.foreign_units IS
    'Units that the provider counts and we do not, subtracted until foreign_until: others use the key, or its plan is '
    'smaller than our limit.';
COMMENT ON COLUMN pricing.provider_keys.foreign_until IS 'Until when foreign_units are subtracted.';

CREATE TABLE pricing.provider_key_limits (
    provider text NOT NULL,
    key_name text NOT NULL,
    name     text NOT NULL,
    units    integer NOT NULL CONSTRAINT key_limit_is_positive CHECK (units > 0),
    PRIMARY KEY (provider, key_name, name),
    CONSTRAINT key_limit_has_key FOREIGN KEY (provider, key_name)
        REFERENCES pricing.provider_keys(provider, key_name) ON DELETE CASCADE,
    CONSTRAINT key_limit_has_limit FOREIGN KEY (provider, name)
        REFERENCES pricing.provider_limits(provider, name) ON DELETE CASCADE
);
COMMENT ON TABLE pricing.provider_key_limits IS
    'Keys whose plan differs: other units than provider_limits says, in the same window.';
COMMENT ON COLUMN pricing.provider_key_limits.provider IS 'The provider.';
COMMENT ON COLUMN pricing.provider_key_limits.key_name IS 'The key that differs.';
COMMENT ON COLUMN pricing.provider_key_limits.name IS 'The limit''s name in provider_limits, which has its window.';
COMMENT ON COLUMN pricing.provider_key_limits.units IS 'Units allowed to this key in the window.';

CREATE SEQUENCE pricing.credential_version_seq;
COMMENT ON SEQUENCE pricing.credential_version_seq IS
    'Versions of rows of provider_credentials, each used once, so that no two ciphertexts are bound to the same '
    'version.';
CREATE TABLE pricing.provider_credentials (
    provider      text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    key_name      text NOT NULL,
    row_version   bigint NOT NULL,
    master_key_id text NOT NULL CONSTRAINT master_key_id_is_plain CHECK (master_key_id ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    key_nonce     bytea NOT NULL CONSTRAINT key_nonce_has_96_bits CHECK (octet_length(key_nonce) = 12),
    wrapped_key   bytea NOT NULL CONSTRAINT wrapped_key_has_key_and_tag CHECK (octet_length(wrapped_key) = 48),
    secret_nonce  bytea NOT NULL CONSTRAINT secret_nonce_has_96_bits CHECK (octet_length(secret_nonce) = 12),
    ciphertext    bytea NOT NULL
        CONSTRAINT ciphertext_is_padded CHECK (
            octet_length(ciphertext) BETWEEN 80 AND 4176
            AND ((octet_length(ciphertext) % 64) = 16)),
    created_at    timestamptz NOT NULL,
    replaced_at   timestamptz,
    sealed_at     timestamptz NOT NULL,
    PRIMARY KEY (provider, key_name),
    CONSTRAINT credential_version_is_unique UNIQUE (row_version),
    CONSTRAINT credential_has_key FOREIGN KEY (provider, key_name) REFERENCES pricing.provider_keys(provider, key_name),
    CONSTRAINT nonces_differ CHECK (key_nonce <> secret_nonce)
);
COMMENT ON TABLE pricing.provider_credentials IS
    'Providers'' API keys under AES-256-GCM, each with its own data key, wrapped by a master key outside the '
    'database, and bound to provider, key_name, row_version and master_key_id.';
COMMENT ON COLUMN pricing.provider_credentials.provider IS 'The provider.';
COMMENT ON COLUMN pricing.provider_credentials.key_name IS
    'Its name, under which provider_keys has its limits and pauses.';
COMMENT ON COLUMN pricing.provider_credentials.row_version IS 'A new one each time the row is sealed.';
COMMENT ON COLUMN pricing.provider_credentials.master_key_id IS 'The master key that wraps wrapped_key.';
COMMENT ON COLUMN pricing.provider_credentials.key_nonce IS 'Nonce of wrapped_key, random.';
COMMENT ON COLUMN pricing.provider_credentials.wrapped_key IS
    'The data key, encrypted with the master key, and its tag.';
COMMENT ON COLUMN pricing.provider_credentials.secret_nonce IS 'Nonce of ciphertext, random.';
COMMENT ON COLUMN pricing.provider_credentials.ciphertext IS
    'The API key, padded, encrypted with the data key, and its tag.';
COMMENT ON COLUMN pricing.provider_credentials.created_at IS 'When a key of this name was first stored.';
COMMENT ON COLUMN pricing.provider_credentials.replaced_at IS 'When it was last replaced by another; NULL = never.';
COMMENT ON COLUMN pricing.provider_credentials.sealed_at IS
    'When the row was last encrypted, even if only for a new master key.';

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
    breaker_began_at timestamptz,
    page_call        bigint,
    page_key         text,
    page_until       timestamptz,
    queue_change     bigint,
    change_horizon   xid8,
    first_urgency    integer,
    first_cadence    integer,
    first_id         bigint,
    CONSTRAINT breaker_has_end CHECK ((breaker = 'closed') = (breaker_until IS NULL)),
    CONSTRAINT probing_has_call CHECK ((breaker = 'half_open') = (probe_call IS NOT NULL))
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.provider_state IS
    'The row whose lock makes checking the limits and taking from them one step.';
COMMENT ON COLUMN pricing.provider_state.provider IS 'The provider.';
COMMENT ON COLUMN pricing.provider_state.claims IS 'Claims so far, so that every tenth can begin with a backfill.';
COMMENT ON COLUMN pricing.provider_state.breaker IS
    'open = no calls before breaker_until; half_open = one probe is under way, whose success closes it.';
COMMENT ON COLUMN pricing.provider_state.breaker_since IS 'Its last change; failures before it closed no longer count.';
COMMENT ON COLUMN pricing.provider_state.breaker_until IS
    'When a probe may be made (open), or when the probe counts as lost (half open).';
COMMENT ON COLUMN pricing.provider_state.breaker_openings IS 'Openings in a row; the wait is 60 s, doubling to 10 min.';
COMMENT ON COLUMN pricing.provider_state.breaker_reason IS 'Why the breaker last opened, for people.';
COMMENT ON COLUMN pricing.provider_state.probe_call IS 'The call that decides.';
COMMENT ON COLUMN pricing.provider_state.last_call_at IS 'When calls were last claimed, for request_delay_ms.';
COMMENT ON COLUMN pricing.provider_state.trouble IS
    'Why other providers of a route go first: breaker open for minutes, quota spent or keys refused; checked every 10 '
    's (watch_providers).';
COMMENT ON COLUMN pricing.provider_state.breaker_began_at IS
    'When the breaker first opened, failed probes aside; NULL = it is closed.';
COMMENT ON COLUMN pricing.provider_state.page_call IS
    'The oldest call that waits for its next request, which precedes new and younger calls.';
COMMENT ON COLUMN pricing.provider_state.page_key IS 'The key of that call; calls with another key do not wait for it.';
COMMENT ON COLUMN pricing.provider_state.page_until IS 'Until when others wait for it, renewed every second.';
COMMENT ON COLUMN pricing.provider_state.queue_change IS
    'The last change of queue_change_seq that a claim has seen; while it is the last, first_urgency holds.';
COMMENT ON COLUMN pricing.provider_state.change_horizon IS
    'Transactions before this one may have made that change, and when all have ended, their tasks are seen; NULL = not '
    'known.';
COMMENT ON COLUMN pricing.provider_state.first_urgency IS
    'With the next two, where claims begin: no pending task is before it (-priority); NULL = not known.';
COMMENT ON COLUMN pricing.provider_state.first_cadence IS 'See first_urgency; cadence_minutes.';
COMMENT ON COLUMN pricing.provider_state.first_id IS 'See first_urgency; less than the id of the first pending task.';

CREATE TABLE pricing.provider_routing (
    data_type text NOT NULL REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    symbol    text,
    provider  text NOT NULL REFERENCES pricing.data_collectors(provider),
    is_active boolean NOT NULL DEFAULT true,
    rank      smallint NOT NULL DEFAULT 1 CONSTRAINT rank_is_positive CHECK (rank > 0)
);
COMMENT ON TABLE pricing.provider_routing IS
    'The providers of a data type (symbol NULL), or of one of its symbols, whose own rules come first, in order.';
COMMENT ON COLUMN pricing.provider_routing.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.provider_routing.symbol IS 'The one symbol of the rule; NULL = all without their own rule.';
COMMENT ON COLUMN pricing.provider_routing.provider IS 'The provider that serves it.';
COMMENT ON COLUMN pricing.provider_routing.is_active IS 'False = the rule is ignored.';
COMMENT ON COLUMN pricing.provider_routing.rank IS 'The lowest is asked first, the next when that cannot serve.';
CREATE UNIQUE INDEX provider_routing_once ON pricing.provider_routing (data_type, symbol, provider) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX provider_routing_order ON pricing.provider_routing (data_type, symbol, rank) NULLS NOT DISTINCT;

CREATE TABLE pricing.route_refusals (
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    provider      text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    kind          text NOT NULL,
    reason        text NOT NULL,
    refused_until timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol, provider)
);
COMMENT ON TABLE pricing.route_refusals IS
    'Pairs that a provider does not serve while another may; it is asked again after a week, or when a route changes.';
COMMENT ON COLUMN pricing.route_refusals.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.route_refusals.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.route_refusals.provider IS 'The provider that does not serve it.';
COMMENT ON COLUMN pricing.route_refusals.kind IS 'unknown_symbol, plan_restricted or endpoint_restricted.';
COMMENT ON COLUMN pricing.route_refusals.reason IS 'What it said.';
COMMENT ON COLUMN pricing.route_refusals.refused_until IS 'Until when others are asked first.';

-- ── Calls: the memory of limits and quota ──

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
    page_of        bigint,
    CONSTRAINT open_calls_are_unfinished CHECK ((outcome = 'open') = (finished_at IS NULL))
) WITH (fillfactor = 80);
COMMENT ON TABLE pricing.collector_call_log IS
    'Every call to a provider, committed before it is made and completed after; also the memory of rate limits and, '
    'while open, a reservation in the quota.';
COMMENT ON COLUMN pricing.collector_call_log.call_id IS 'Rises with each call; prices carry it.';
COMMENT ON COLUMN pricing.collector_call_log.provider IS 'The provider that was asked.';
COMMENT ON COLUMN pricing.collector_call_log.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.collector_call_log.symbols IS 'What was asked for, in the order of the request.';
COMMENT ON COLUMN pricing.collector_call_log.window_start IS 'First day asked for; -infinity = the latest price.';
COMMENT ON COLUMN pricing.collector_call_log.window_end IS 'Last day asked for, included; infinity = the latest price.';
COMMENT ON COLUMN pricing.collector_call_log.units IS 'Its cost, in the provider''s units.';
COMMENT ON COLUMN pricing.collector_call_log.reserved_bytes IS 'Bytes reserved in the quota until it is settled.';
COMMENT ON COLUMN pricing.collector_call_log.run_id IS 'Dagster''s id of the run that made it.';
COMMENT ON COLUMN pricing.collector_call_log.worker IS 'The worker that made it: host and process.';
COMMENT ON COLUMN pricing.collector_call_log.started_at IS 'When it was claimed, before it was made.';
COMMENT ON COLUMN pricing.collector_call_log.finished_at IS 'When it was settled; NULL = open.';
COMMENT ON COLUMN pricing.collector_call_log.outcome IS
    'How it ended; unknown = the worker was lost, and the estimate was booked.';
COMMENT ON COLUMN pricing.collector_call_log.http_status IS 'Status of the answer; NULL = no answer, or none known.';
COMMENT ON COLUMN pricing.collector_call_log.wire_bytes IS 'Headers and body as sent, compressed.';
COMMENT ON COLUMN pricing.collector_call_log.error IS 'Why it brought nothing, without secrets.';
COMMENT ON COLUMN pricing.collector_call_log.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.collector_call_log.failure_kind IS
    'Why the call brought nothing, at least for most of its symbols (see pricing.is_provider_fault); empty if a lost '
    'worker reported late.';
COMMENT ON COLUMN pricing.collector_call_log.moved_to IS
    'started_at on the present clock, if that was set back since; -infinity = the call no longer counts; NULL = it '
    'was not.';
COMMENT ON COLUMN pricing.collector_call_log.is_unannounced IS
    'Whether its answer came without a Content-Length, so that bytes were counted as they arrived.';
COMMENT ON COLUMN pricing.collector_call_log.page_of IS
    'The call whose further request (page) this is, which has the outcome of all; NULL = not a page.';
CREATE INDEX collector_call_log_failed ON pricing.collector_call_log (provider, started_at)
    WHERE failure_kind IS NOT NULL;
CREATE INDEX collector_call_log_moved ON pricing.collector_call_log (provider, moved_to) INCLUDE (units, key_name)
    WHERE moved_to IS NOT NULL;
CREATE INDEX collector_call_log_open ON pricing.collector_call_log (provider) INCLUDE (reserved_bytes)
    WHERE finished_at IS NULL;
CREATE INDEX collector_call_log_pages ON pricing.collector_call_log (page_of) WHERE page_of IS NOT NULL;
CREATE INDEX collector_call_log_rate ON pricing.collector_call_log (provider, started_at) INCLUDE (units, key_name)
    WHERE moved_to IS NULL;
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
    'Answered calls that have left collector_call_log, kept forever to trace the prices that they brought.';
COMMENT ON COLUMN pricing.past_calls.call_id IS 'Its number, which prices carry.';
COMMENT ON COLUMN pricing.past_calls.provider IS 'The provider that was asked.';
COMMENT ON COLUMN pricing.past_calls.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.past_calls.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.past_calls.window_start IS 'First day asked for; NULL = the latest price.';
COMMENT ON COLUMN pricing.past_calls.window_end IS 'Last day asked for, included; NULL = the latest price.';
COMMENT ON COLUMN pricing.past_calls.symbols IS 'How many symbols were asked for.';
COMMENT ON COLUMN pricing.past_calls.run_id IS
    'Dagster''s id of the run that made it, even if Dagster has deleted that run; NULL = none.';
COMMENT ON COLUMN pricing.past_calls.worker IS 'The worker that made it: host and process.';
COMMENT ON COLUMN pricing.past_calls.started_at IS 'When it was claimed.';
COMMENT ON COLUMN pricing.past_calls.finished_at IS 'When its answer was settled.';
COMMENT ON COLUMN pricing.past_calls.http_status IS 'Status of the answer.';
COMMENT ON COLUMN pricing.past_calls.wire_bytes IS 'Headers and body as sent, compressed.';

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
    'Wire bytes per provider and UTC hour; the quota sums the last 720 and the current one; an hour has a row for '
    'each call settled at the same moment.';
COMMENT ON COLUMN pricing.api_data_usage.provider IS 'The provider that was asked.';
COMMENT ON COLUMN pricing.api_data_usage.hour IS 'Beginning of the hour, UTC.';
COMMENT ON COLUMN pricing.api_data_usage.calls IS 'Calls settled in the hour.';
COMMENT ON COLUMN pricing.api_data_usage.units IS 'Their cost, in the provider''s units.';
COMMENT ON COLUMN pricing.api_data_usage.bytes IS 'Bytes on the wire; of calls whose worker was lost, their estimate.';
COMMENT ON COLUMN pricing.api_data_usage.slot IS
    'Distinguishes the rows of an hour: a call is booked in any unlocked row, and only their sum matters.';

CREATE TABLE pricing.limit_counts (
    provider     text NOT NULL,
    key_name     text NOT NULL,
    name         text NOT NULL,
    counted_from timestamptz NOT NULL,
    counted_to   timestamptz NOT NULL,
    units        bigint NOT NULL,
    PRIMARY KEY (provider, key_name, name),
    CONSTRAINT count_has_limit FOREIGN KEY (provider, name)
        REFERENCES pricing.provider_limits(provider, name) ON DELETE CASCADE,
    CONSTRAINT count_is_upright CHECK (counted_from < counted_to)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.limit_counts IS
    'Units of logged calls between counted_from and counted_to, recounted now and then so that a claim counts only '
    'newer calls; rows may be deleted at any time.';
COMMENT ON COLUMN pricing.limit_counts.provider IS 'The provider.';
COMMENT ON COLUMN pricing.limit_counts.key_name IS 'The key they were made with.';
COMMENT ON COLUMN pricing.limit_counts.name IS 'The limit of provider_limits whose window this is.';
COMMENT ON COLUMN pricing.limit_counts.counted_from IS 'Calls after this moment are counted.';
COMMENT ON COLUMN pricing.limit_counts.counted_to IS 'Calls before this moment are counted.';
COMMENT ON COLUMN pricing.limit_counts.units IS 'Units charged for the counted calls.';

CREATE TABLE pricing.shown_limits (
    provider    text NOT NULL,
    key_name    text NOT NULL CONSTRAINT key_name_is_plain CHECK (key_name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    name        text NOT NULL,
    shown_units integer NOT NULL CONSTRAINT shown_limit_is_positive CHECK (shown_units > 0),
    shown_at    timestamptz NOT NULL,
    PRIMARY KEY (provider, key_name, name),
    CONSTRAINT shown_limit_has_limit FOREIGN KEY (provider, name)
        REFERENCES pricing.provider_limits(provider, name) ON DELETE CASCADE
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.shown_limits IS
    'Limits of keys that answers have shown to be lower than written; claims keep to the lower one.';
COMMENT ON COLUMN pricing.shown_limits.provider IS 'The provider.';
COMMENT ON COLUMN pricing.shown_limits.key_name IS 'The key that was called with.';
COMMENT ON COLUMN pricing.shown_limits.name IS 'The limit''s name in provider_limits, which has its window.';
COMMENT ON COLUMN pricing.shown_limits.shown_units IS 'Units that the provider allows in the window, as it says.';
COMMENT ON COLUMN pricing.shown_limits.shown_at IS 'When it last said so, to the minute.';

CREATE TABLE pricing.shown_batches (
    provider   text NOT NULL,
    fetcher    text NOT NULL,
    is_of_days boolean NOT NULL,
    shown_size integer NOT NULL CONSTRAINT batch_is_positive CHECK (shown_size > 0),
    shown_at   timestamptz NOT NULL,
    PRIMARY KEY (provider, fetcher, is_of_days),
    CONSTRAINT shown_batch_has_fetcher FOREIGN KEY (provider, fetcher)
        REFERENCES pricing.provider_capabilities(provider, fetcher) ON DELETE CASCADE
);
COMMENT ON TABLE pricing.shown_batches IS
    'Fetchers of providers that refused a call for its number of symbols; claims keep to the smaller one.';
COMMENT ON COLUMN pricing.shown_batches.provider IS 'The provider that refused.';
COMMENT ON COLUMN pricing.shown_batches.fetcher IS 'The fetcher.';
COMMENT ON COLUMN pricing.shown_batches.is_of_days IS 'Whether it is about spans of days; false = about latest values.';
COMMENT ON COLUMN pricing.shown_batches.shown_size IS 'How many symbols a call may ask for.';
COMMENT ON COLUMN pricing.shown_batches.shown_at IS 'When the last one was refused.';

CREATE TABLE pricing.watched_calendars (
    provider text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    calendar text NOT NULL,
    PRIMARY KEY (provider, calendar)
);
COMMENT ON TABLE pricing.watched_calendars IS
    'Calendars of the quotes watched at a provider with a limit of a calendar day, as of the last minute.';
COMMENT ON COLUMN pricing.watched_calendars.provider IS 'The provider of the quotes.';
COMMENT ON COLUMN pricing.watched_calendars.calendar IS 'When they trade; empty = not known.';

CREATE TABLE pricing.size_estimates (
    provider           text NOT NULL REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    data_type          text NOT NULL,
    per                text NOT NULL CONSTRAINT size_is_per_symbol_or_day CHECK (per IN ('symbol', 'day')),
    bytes              double precision NOT NULL
        CONSTRAINT size_is_positive CHECK (
            bytes > 0 AND bytes < 1e12),
    measurements       bigint NOT NULL DEFAULT 1,
    overruns           bigint NOT NULL DEFAULT 0,
    last_overrun_at    timestamptz,
    last_overrun_ratio double precision,
    PRIMARY KEY (provider, data_type, per)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.size_estimates IS
    'Measured wire bytes of a symbol''s latest price, or of a day of its history: the first measurement whole, each '
    'later one counting a tenth.';
COMMENT ON COLUMN pricing.size_estimates.provider IS 'The provider.';
COMMENT ON COLUMN pricing.size_estimates.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.size_estimates.per IS 'The unit: a symbol''s latest price, or a day of a symbol''s history.';
COMMENT ON COLUMN pricing.size_estimates.bytes IS 'Bytes on the wire, as a moving average.';
COMMENT ON COLUMN pricing.size_estimates.measurements IS 'Answers measured.';
COMMENT ON COLUMN pricing.size_estimates.overruns IS 'Answers of more than twice their reserved bytes.';
COMMENT ON COLUMN pricing.size_estimates.last_overrun_at IS 'When an answer last took more than twice its estimate.';
COMMENT ON COLUMN pricing.size_estimates.last_overrun_ratio IS
    'Bytes received for each byte reserved, at the last overrun.';

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
    'Spans in which every call to a provider for a data type failed of trouble that others may share; deleted 15 s '
    'after an answer, or 24 hours after the last failure.';
COMMENT ON COLUMN pricing.outages.outage_id IS 'Numbers outages in order.';
COMMENT ON COLUMN pricing.outages.provider IS 'The provider that does not answer.';
COMMENT ON COLUMN pricing.outages.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.outages.since IS 'When the first of these calls began.';
COMMENT ON COLUMN pricing.outages.last_fault_at IS 'When the last call failed.';
COMMENT ON COLUMN pricing.outages.probed_at IS
    'When a waiting pair or task was last put ahead of its pause; NULL = not yet.';
COMMENT ON COLUMN pricing.outages.answered_at IS 'When the provider answered again; NULL = not yet.';
CREATE UNIQUE INDEX one_open_outage ON pricing.outages (provider, data_type) WHERE answered_at IS NULL;
CREATE INDEX outages_data_type ON pricing.outages (data_type);

-- ── Demand: who wants what, and when it is due ──

CREATE TABLE pricing.demand (
    data_type      text NOT NULL,
    symbol         text NOT NULL,
    due_at         timestamptz NOT NULL,
    became_due_at  timestamptz,
    failures       integer NOT NULL DEFAULT 0,
    backoff_until  timestamptz,
    last_failure   text,
    created_at     timestamptz NOT NULL DEFAULT pricing.clock(),
    read_at        timestamptz,
    owed_since     timestamptz,
    is_background  boolean NOT NULL DEFAULT false,
    stretched_from timestamptz,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.demand IS
    'One row for each wanted (data_type, symbol), so that the staleness check costs what due pairs cost, not watched '
    'ones.';
COMMENT ON COLUMN pricing.demand.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.demand.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.demand.due_at IS 'When to judge the pair next, unless a task for it is live.';
COMMENT ON COLUMN pricing.demand.became_due_at IS 'Since when the pair''s live task is owed; NULL = it has none.';
COMMENT ON COLUMN pricing.demand.failures IS 'Dead tasks in a row.';
COMMENT ON COLUMN pricing.demand.backoff_until IS
    'Until when the pair backs off because its task died: up to 10 min after trouble, 1 h after a cancel by hand, 1 h '
    'doubling to 24 h after a fault of its symbol.';
COMMENT ON COLUMN pricing.demand.last_failure IS 'Why the last task died.';
COMMENT ON COLUMN pricing.demand.created_at IS 'Since when somebody wants it.';
COMMENT ON COLUMN pricing.demand.read_at IS
    'When an unserved read last asked for the pair, which counts as a viewer; NULL = none waits.';
COMMENT ON COLUMN pricing.demand.owed_since IS
    'Since when trouble, not a fault of its symbol, keeps the pair''s price away; NULL = no trouble.';
COMMENT ON COLUMN pricing.demand.is_background IS
    'Whether the pair was last judged without viewers, so that due_at may follow the background TTL.';
COMMENT ON COLUMN pricing.demand.stretched_from IS
    'Since when the pair is due by its TTL and owed, while stretching delays it to due_at; NULL = not stretched.';
CREATE INDEX demand_due ON pricing.demand (data_type, due_at);
CREATE INDEX demand_owed ON pricing.demand (data_type, due_at) WHERE owed_since IS NOT NULL;
CREATE INDEX demand_stretched ON pricing.demand (data_type) WHERE stretched_from IS NOT NULL;
CREATE INDEX demand_watched ON pricing.demand (data_type, due_at) WHERE NOT is_background;

CREATE TABLE pricing.active_subscriptions (
    user_id       pricing.user_name NOT NULL,
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    subscribed_at timestamptz NOT NULL DEFAULT pricing.clock(),
    last_seen_at  timestamptz NOT NULL DEFAULT pricing.clock(),
    PRIMARY KEY (user_id, data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.active_subscriptions IS
    'Who watches what, kept alive by heartbeats and removed on leaving or after 5 silent minutes.';
COMMENT ON COLUMN pricing.active_subscriptions.user_id IS
    'The viewer: the session''s login, or the user that a worker names.';
COMMENT ON COLUMN pricing.active_subscriptions.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.active_subscriptions.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.active_subscriptions.subscribed_at IS 'Since when, without a pause of five minutes.';
COMMENT ON COLUMN pricing.active_subscriptions.last_seen_at IS
    'The last heartbeat, by the database''s clock; otherwise only a clock that was set back changes it.';
CREATE INDEX active_subscriptions_pair ON pricing.active_subscriptions (data_type, symbol);

CREATE TABLE pricing.holdings (
    user_id       pricing.user_name NOT NULL,
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    status        text NOT NULL DEFAULT 'active' CONSTRAINT status_is_known CHECK (status IN ('active', 'closed')),
    since         timestamptz NOT NULL DEFAULT pricing.clock(),
    closed_at     timestamptz,
    active_symbol text GENERATED ALWAYS AS (CASE WHEN status = 'active' THEN symbol END) STORED,
    quantity      numeric CONSTRAINT quantity_is_sane CHECK (abs(quantity) < 1e40 AND scale(quantity) <= 100),
    PRIMARY KEY (user_id, data_type, symbol),
    CONSTRAINT closed_holding_has_time CHECK ((status = 'closed') = (closed_at IS NOT NULL))
);
COMMENT ON TABLE pricing.holdings IS
    'Who holds what; while a pair has an active holding, its price is kept fresh by the background TTL.';
COMMENT ON COLUMN pricing.holdings.user_id IS 'The user that holds it.';
COMMENT ON COLUMN pricing.holdings.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.holdings.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.holdings.status IS 'active, or closed: kept as a record.';
COMMENT ON COLUMN pricing.holdings.since IS 'Since when it is held; reset when a closed holding is opened again.';
COMMENT ON COLUMN pricing.holdings.closed_at IS 'When it was released.';
COMMENT ON COLUMN pricing.holdings.active_symbol IS 'The symbol, while the holding is active.';
COMMENT ON COLUMN pricing.holdings.quantity IS
    'Shares, units of a fund, coins, or of a pair the amount of its first currency; negative if sold short; NULL = '
    'unknown.';
CREATE INDEX holdings_active ON pricing.holdings (data_type, active_symbol) WHERE active_symbol IS NOT NULL;

CREATE TABLE pricing.listed_pairs (
    user_id   pricing.user_name NOT NULL,
    list      text NOT NULL CONSTRAINT list_name_is_sane CHECK (list ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    data_type text NOT NULL REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    symbol    text NOT NULL,
    PRIMARY KEY (user_id, list, data_type, symbol)
);
COMMENT ON TABLE pricing.listed_pairs IS 'Pairs on users'' lists; reading a list watches its pairs.';
COMMENT ON COLUMN pricing.listed_pairs.user_id IS 'The user whose list it is.';
COMMENT ON COLUMN pricing.listed_pairs.list IS 'Name of the list.';
COMMENT ON COLUMN pricing.listed_pairs.data_type IS 'Data type of prices.';
COMMENT ON COLUMN pricing.listed_pairs.symbol IS 'Symbol of the instrument.';

CREATE TABLE pricing.pair_views (
    data_type text NOT NULL,
    symbol    text NOT NULL,
    viewed_at timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.pair_views IS
    'When each pair was last viewed, to ten minutes: written when a viewer leaves and by reads, never by heartbeats, '
    'and kept for 48 hours.';
COMMENT ON COLUMN pricing.pair_views.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.pair_views.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.pair_views.viewed_at IS 'The last recorded view.';

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
    'Requests of clients, and of walks that met a lock, to workers (serve_requests); rows are only added and deleted, '
    'so nobody waits.';
COMMENT ON COLUMN pricing.pair_requests.request_id IS 'Requests are served in this order.';
COMMENT ON COLUMN pricing.pair_requests.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.pair_requests.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.pair_requests.kind IS
    'watched, held = a user has begun to; read = read while missing or stale; seen = viewed; scheduled = a schedule '
    'could not queue it, for want of room or because of a lock.';
COMMENT ON COLUMN pricing.pair_requests.requested_at IS 'When it was asked for.';
COMMENT ON COLUMN pricing.pair_requests.user_id IS
    'The user whose allowance the read counts against; NULL = not a client''s read.';
CREATE INDEX pair_requests_pair ON pricing.pair_requests (data_type, symbol);

CREATE TABLE pricing.user_caps (
    singleton             boolean DEFAULT true PRIMARY KEY CONSTRAINT one_row CHECK (singleton),
    pairs_per_user        integer NOT NULL DEFAULT 10000
        CONSTRAINT pairs_per_user_is_positive CHECK (pairs_per_user > 0),
    new_pairs_per_minute  integer NOT NULL DEFAULT 5000
        CONSTRAINT new_pairs_per_minute_is_positive CHECK (new_pairs_per_minute > 0),
    price_alerts_per_user integer NOT NULL DEFAULT 100
        CONSTRAINT price_alerts_per_user_is_positive CHECK (price_alerts_per_user > 0)
);
COMMENT ON TABLE pricing.user_caps IS
    'What one user may ask for, in one row, which may be changed at any time and counts from the next heartbeat.';
COMMENT ON COLUMN pricing.user_caps.singleton IS 'Always true, so that there is only one row.';
COMMENT ON COLUMN pricing.user_caps.pairs_per_user IS
    'Pairs that one user may watch at once, and hold, and have fetched by reads in a minute.';
COMMENT ON COLUMN pricing.user_caps.new_pairs_per_minute IS
    'Pairs one user may begin to watch or hold, or have fetched by reads, in a minute.';
COMMENT ON COLUMN pricing.user_caps.price_alerts_per_user IS 'Price alerts one user may have.';
INSERT INTO pricing.user_caps DEFAULT VALUES;

CREATE TABLE pricing.user_allowances (
    user_id     text PRIMARY KEY,
    spent_until timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.user_allowances IS
    'The used part of each user''s new pairs a minute; leaving gives nothing back, so coming and going is bounded, '
    'too.';
COMMENT ON COLUMN pricing.user_allowances.user_id IS 'The user.';
COMMENT ON COLUMN pricing.user_allowances.spent_until IS
    'Each new pair adds its share of a minute, at most a minute ahead of now; a past time means that nothing is used.';

CREATE TABLE pricing.read_charges (
    user_id    pricing.user_name NOT NULL,
    charged_at timestamptz NOT NULL,
    pairs      integer NOT NULL CONSTRAINT pairs_are_positive CHECK (pairs > 0),
    PRIMARY KEY (user_id, charged_at)
);
COMMENT ON TABLE pricing.read_charges IS
    'Reads of each user that workers served in the last minute; only workers write it, so no client keeps it '
    'locked.';
COMMENT ON COLUMN pricing.read_charges.user_id IS 'The user whose read had to be fetched.';
COMMENT ON COLUMN pricing.read_charges.charged_at IS 'When it was served.';
COMMENT ON COLUMN pricing.read_charges.pairs IS 'How many pairs that were.';

CREATE TABLE pricing.check_marks (
    data_type    text PRIMARY KEY REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    queued_until timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.check_marks IS
    'Where a data type''s staleness check begins, so that it does not walk past a backlog each time; no row = at the '
    'beginning.';
COMMENT ON COLUMN pricing.check_marks.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.check_marks.queued_until IS 'Everything due before this time was queued.';

CREATE TABLE pricing.schedule_walks (
    data_type   text PRIMARY KEY REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    served_slot timestamptz NOT NULL,
    walk_slot   timestamptz,
    walk_after  text NOT NULL DEFAULT '',
    lap_start   text NOT NULL DEFAULT '',
    wrapped     boolean NOT NULL DEFAULT false,
    next_slot   timestamptz
);
COMMENT ON TABLE pricing.schedule_walks IS
    'For each scheduled data type, the last served slot of its schedule, and how far the walk over its instruments '
    'is.';
COMMENT ON COLUMN pricing.schedule_walks.data_type IS 'The scheduled data type.';
COMMENT ON COLUMN pricing.schedule_walks.served_slot IS 'No slot up to this one is owed.';
COMMENT ON COLUMN pricing.schedule_walks.walk_slot IS 'The slot whose walk is under way; NULL when none is.';
COMMENT ON COLUMN pricing.schedule_walks.walk_after IS 'The walk goes on after this symbol.';
COMMENT ON COLUMN pricing.schedule_walks.lap_start IS
    'Where the lap began, after an earlier slot''s unfinished walk, and where it ends.';
COMMENT ON COLUMN pricing.schedule_walks.wrapped IS 'The lap has passed the last symbol and goes on from the first.';
COMMENT ON COLUMN pricing.schedule_walks.next_slot IS
    'The first slot after served_slot, as the sensor reads the schedule; NULL = not read yet, or unreadable.';

CREATE TABLE pricing.ttl_stretches (
    provider          text PRIMARY KEY REFERENCES pricing.data_collectors(provider) ON DELETE CASCADE,
    watched_factor    double precision NOT NULL CONSTRAINT watched_ttls_never_shrink CHECK (watched_factor >= 1),
    background_factor double precision NOT NULL CONSTRAINT background_ttls_never_shrink CHECK (background_factor >= 1),
    watched_need      double precision NOT NULL CONSTRAINT need_is_not_negative CHECK (watched_need >= 0),
    need_weight       double precision NOT NULL
        CONSTRAINT weight_is_a_share CHECK (need_weight > 0 AND need_weight <= 1),
    ends_at           timestamptz,
    noted_at          timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.ttl_stretches IS
    'By how much a provider''s TTLs are stretched so that its quota lasts, updated every 5 min (stretch_ttls); rows '
    'older than 15 min, and providers below a twentieth of their quota, stretch nothing.';
COMMENT ON COLUMN pricing.ttl_stretches.provider IS 'The provider.';
COMMENT ON COLUMN pricing.ttl_stretches.watched_factor IS
    'How many TTLs old a watched price gets before its pair is queued; 1 = its TTL.';
COMMENT ON COLUMN pricing.ttl_stretches.background_factor IS
    'The same for unwatched held pairs and schedules, which are stretched first.';
COMMENT ON COLUMN pricing.ttl_stretches.watched_need IS
    'Bytes an hour that watched pairs need at their TTLs, averaged over about a day.';
COMMENT ON COLUMN pricing.ttl_stretches.need_weight IS 'The part of a day that this average covers, from 0 to 1.';
COMMENT ON COLUMN pricing.ttl_stretches.ends_at IS
    'When the quota would end for viewers without stretching (quota_forecasts); NULL = it lasts.';
COMMENT ON COLUMN pricing.ttl_stretches.noted_at IS 'When this was computed.';

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
    'How each watched data type served its viewers, every five minutes and for seven days, for plots.';
COMMENT ON COLUMN pricing.freshness_samples.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.freshness_samples.at IS 'When it was sampled.';
COMMENT ON COLUMN pricing.freshness_samples.watched IS 'How many pairs somebody watched.';
COMMENT ON COLUMN pricing.freshness_samples.fresh IS 'How many of them were within their TTL.';
COMMENT ON COLUMN pricing.freshness_samples.late IS 'How many were owed a price for more than max(30 s, TTL/4).';
COMMENT ON COLUMN pricing.freshness_samples.oldest_age IS 'Age of the oldest of their prices; NULL when none has one.';

-- ── The queue and its drains ──

CREATE SEQUENCE pricing.task_id_seq;
COMMENT ON SEQUENCE pricing.task_id_seq IS 'Numbers tasks.';
CREATE SEQUENCE pricing.queue_change_seq;
COMMENT ON SEQUENCE pricing.queue_change_seq IS 'Rises before tasks come or change their place in the order of claims.';
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
    'The fetch queue: a row is a task to fetch one symbol of one data type, now or for a span of days.';
COMMENT ON COLUMN pricing.api_call_queue.id IS 'Rises with each task, over all states.';
COMMENT ON COLUMN pricing.api_call_queue.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.api_call_queue.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.api_call_queue.window_start IS
    '-infinity..infinity = the latest price; otherwise days to backfill, both included.';
COMMENT ON COLUMN pricing.api_call_queue.window_end IS 'Last day, included; see window_start.';
COMMENT ON COLUMN pricing.api_call_queue.provider IS
    'The provider, by the route when it was queued; NULL only without a route.';
COMMENT ON COLUMN pricing.api_call_queue.status IS
    'pending, processing, scheduled (waits until run_after), completed, failed or cancelled (see '
    'docs/maintainers/state-machine.md).';
COMMENT ON COLUMN pricing.api_call_queue.priority IS
    'Distinct viewers (at least 1); 0 held; -1 scheduled; -2 backfill; the highest goes first.';
COMMENT ON COLUMN pricing.api_call_queue.cadence_minutes IS
    'TTL of the type in minutes: at one priority the shorter goes first.';
COMMENT ON COLUMN pricing.api_call_queue.est_bytes IS 'Expected wire bytes of the answer, reserved at the claim.';
COMMENT ON COLUMN pricing.api_call_queue.enqueued_at IS 'When it was queued.';
COMMENT ON COLUMN pricing.api_call_queue.run_after IS 'For scheduled tasks, the earliest claim.';
COMMENT ON COLUMN pricing.api_call_queue.attempt IS
    'Counted at the claim, so that a task that kills its worker still dies.';
COMMENT ON COLUMN pricing.api_call_queue.max_attempts IS 'Claims after which a failure is final.';
COMMENT ON COLUMN pricing.api_call_queue.claim_token IS
    'New with every claim; completing, failing and storing prices require it.';
COMMENT ON COLUMN pricing.api_call_queue.claimed_at IS 'When it was last claimed.';
COMMENT ON COLUMN pricing.api_call_queue.lease_until IS
    'Until when the claim holds without a sign of life from its worker.';
COMMENT ON COLUMN pricing.api_call_queue.worker IS 'The worker that claimed it last: host and process.';
COMMENT ON COLUMN pricing.api_call_queue.call_id IS 'The call of its last claim, in collector_call_log.';
COMMENT ON COLUMN pricing.api_call_queue.backfill_id IS 'The backfill that queued it; NULL for live work.';
COMMENT ON COLUMN pricing.api_call_queue.errors IS 'Array of {at, attempt, kind, message}, oldest first.';
COMMENT ON COLUMN pricing.api_call_queue.finished_at IS 'When it was completed, failed or cancelled.';
COMMENT ON COLUMN pricing.api_call_queue.failure_kind IS
    'Why it is dead, in one word of docs/maintainers/state-machine.md.';
COMMENT ON COLUMN pricing.api_call_queue.ring IS 'Week of finishing modulo 8: the leaf of a completed task.';
COMMENT ON COLUMN pricing.api_call_queue.resolved_at IS
    'Since when nobody needs a dead task: it was cancelled, or its work has succeeded; it is deleted 90 days later.';

CREATE TABLE pricing.api_call_queue_live PARTITION OF pricing.api_call_queue (
    provider NOT NULL,
    PRIMARY KEY (id) WITH (fillfactor = 45, deduplicate_items = off),
    CONSTRAINT live_task_is_unique UNIQUE (data_type, symbol, window_start, window_end)
        WITH (fillfactor = 45, deduplicate_items = off),
    CONSTRAINT estimate_is_positive CHECK (est_bytes > 0),
    CONSTRAINT status_has_its_columns CHECK (
        ((status = 'processing') = (claim_token IS NOT NULL))
        AND ((claim_token IS NULL) = (lease_until IS NULL))
        AND ((status = 'scheduled') = (run_after IS NOT NULL)))
) FOR VALUES IN ('pending', 'processing', 'scheduled')
    WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, fillfactor = 40);
COMMENT ON TABLE pricing.api_call_queue_live IS 'Tasks that are pending, scheduled or processing.';
CREATE INDEX live_backfill ON pricing.api_call_queue_live (backfill_id) WHERE backfill_id IS NOT NULL;
CREATE INDEX live_claim ON pricing.api_call_queue_live (provider, (-priority), cadence_minutes, id)
    WHERE run_after IS NULL;
COMMENT ON INDEX pricing.live_claim IS 'The order in which tasks are claimed.';
CREATE INDEX live_scheduled ON pricing.api_call_queue_live (run_after) WHERE run_after IS NOT NULL;

CREATE TABLE pricing.api_call_queue_dead PARTITION OF pricing.api_call_queue (
    PRIMARY KEY (id),
    CONSTRAINT dead_task_is_finished CHECK (finished_at IS NOT NULL)
) FOR VALUES IN ('failed', 'cancelled');
COMMENT ON TABLE pricing.api_call_queue_dead IS 'Tasks that failed or were cancelled, with all their errors.';
CREATE INDEX dead_backfill ON pricing.api_call_queue_dead (backfill_id) WHERE backfill_id IS NOT NULL;
CREATE INDEX dead_pair ON pricing.api_call_queue_dead (data_type, symbol);
CREATE INDEX dead_unresolved ON pricing.api_call_queue_dead (id) WHERE resolved_at IS NULL;

CREATE TABLE pricing.api_call_queue_completed PARTITION OF pricing.api_call_queue
    FOR VALUES IN ('completed') PARTITION BY LIST (ring);
COMMENT ON TABLE pricing.api_call_queue_completed IS
    'Finished tasks: a ring of eight weekly leaves, whose old ones pruning empties.';

DO $$
BEGIN
    FOR ring IN 0..7 LOOP
        EXECUTE format(
            'CREATE TABLE pricing.api_call_queue_completed_%1$s PARTITION OF pricing.api_call_queue_completed ('
            'PRIMARY KEY (id)) FOR VALUES IN (%1$s)', ring);
        EXECUTE format(
            'COMMENT ON TABLE pricing.api_call_queue_completed_%1$s IS '
            '''Tasks finished in weeks whose number since 1970 is %1$s modulo 8.''', ring);
        EXECUTE format(
            'CREATE INDEX completed_%1$s_backfill ON pricing.api_call_queue_completed_%1$s (backfill_id) '
            'WHERE backfill_id IS NOT NULL', ring);
    END LOOP;
END $$;

CREATE TABLE pricing.api_call_queue_completed_rest PARTITION OF pricing.api_call_queue_completed (
    PRIMARY KEY (id)
) DEFAULT;
COMMENT ON TABLE pricing.api_call_queue_completed_rest IS 'Finished tasks of a week whose leaf somebody has dropped.';
CREATE INDEX completed_rest_backfill ON pricing.api_call_queue_completed_rest (backfill_id)
    WHERE backfill_id IS NOT NULL;

CREATE TABLE pricing.drains (
    drain_id     uuid DEFAULT gen_random_uuid() PRIMARY KEY,
    run_id       text,
    worker       text NOT NULL,
    started_at   timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    lease_until  timestamptz NOT NULL,
    finished_at  timestamptz,
    requested_at timestamptz,
    providers    text[]
);
COMMENT ON TABLE pricing.drains IS
    'Workers that drain the queue; one is alive if unfinished and its lease has not run out, whatever its run''s '
    'status.';
COMMENT ON COLUMN pricing.drains.drain_id IS 'Its name.';
COMMENT ON COLUMN pricing.drains.run_id IS 'Dagster''s id of the run that drains.';
COMMENT ON COLUMN pricing.drains.worker IS 'Host and process.';
COMMENT ON COLUMN pricing.drains.started_at IS 'When it began.';
COMMENT ON COLUMN pricing.drains.ends_at IS 'When it hands over to a successor.';
COMMENT ON COLUMN pricing.drains.lease_until IS 'Until when it counts as alive without a sign of life.';
COMMENT ON COLUMN pricing.drains.finished_at IS 'When it ended properly.';
COMMENT ON COLUMN pricing.drains.requested_at IS 'When its run was requested; NULL = unknown.';
COMMENT ON COLUMN pricing.drains.providers IS 'The providers that its worker asks; NULL = unknown.';
CREATE INDEX drains_alive ON pricing.drains (lease_until) WHERE finished_at IS NULL;

CREATE TABLE pricing.turns (
    name text PRIMARY KEY
);
COMMENT ON TABLE pricing.turns IS
    'One row for each kind of work that must not run twice at once, locked by the session that does it and added when '
    'needed.';
COMMENT ON COLUMN pricing.turns.name IS 'The work.';
INSERT INTO pricing.turns (name) VALUES
    ('claim'),
    ('begin_drain'),
    ('run_duties'),
    ('walk_schedules');

CREATE TABLE pricing.task_times (
    data_type     text NOT NULL,
    wanted_by     text NOT NULL
        CONSTRAINT wanted_by_is_known CHECK (wanted_by IN ('viewers', 'holdings', 'schedules', 'backfills')),
    buckets       bigint[] NOT NULL,
    times         bigint NOT NULL,
    total_seconds double precision NOT NULL,
    counted_until timestamptz NOT NULL,
    PRIMARY KEY (data_type, wanted_by)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.task_times IS
    'How long completed tasks took from queueing to stored, counted since the beginning.';
COMMENT ON COLUMN pricing.task_times.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.task_times.wanted_by IS
    'Who wanted them, by their priority: viewers, holdings, schedules or backfills.';
COMMENT ON COLUMN pricing.task_times.buckets IS
    'How many took up to each of pricing.task_time_bounds() seconds, cumulatively.';
COMMENT ON COLUMN pricing.task_times.times IS 'How many there were.';
COMMENT ON COLUMN pricing.task_times.total_seconds IS 'How long they took in all.';
COMMENT ON COLUMN pricing.task_times.counted_until IS
    'Tasks finished up to then are counted; the latest of all rows applies.';

-- ── Backfills: which days were asked for and answered ──

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
COMMENT ON TABLE pricing.backfills IS 'One row for each requested backfill.';
COMMENT ON COLUMN pricing.backfills.backfill_id IS 'Carried by its tasks.';
COMMENT ON COLUMN pricing.backfills.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.backfills.window_start IS 'First day, included.';
COMMENT ON COLUMN pricing.backfills.window_end IS 'Last day, included.';
COMMENT ON COLUMN pricing.backfills.symbols IS 'Which instruments; NULL = all that a provider has confirmed.';
COMMENT ON COLUMN pricing.backfills.run_id IS 'Dagster''s id of the run that asked.';
COMMENT ON COLUMN pricing.backfills.requested_at IS 'When it was planned.';
COMMENT ON COLUMN pricing.backfills.finished_at IS 'When none of its tasks was open any more.';
COMMENT ON COLUMN pricing.backfills.tasks IS
    'How many tasks it waits for, those of earlier backfills of the same days included.';
COMMENT ON COLUMN pricing.backfills.cancelled_at IS 'When a person cancelled it; NULL = never.';
COMMENT ON COLUMN pricing.backfills.left_out IS
    'How many instruments were left out, by reason: those of pricing.universe, or no_instrument for an unknown name.';

CREATE TABLE pricing.history_coverage (
    data_type text NOT NULL,
    symbol    text NOT NULL,
    covered   datemultirange NOT NULL DEFAULT '{}',
    PRIMARY KEY (data_type, symbol)
);
COMMENT ON TABLE pricing.history_coverage IS
    'Days for which a provider has answered, with bars or with nothing; a backfill requests only the others.';
COMMENT ON COLUMN pricing.history_coverage.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.history_coverage.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.history_coverage.covered IS 'The answered days.';

CREATE TABLE pricing.empty_answers (
    data_type  text NOT NULL,
    symbol     text NOT NULL,
    fetched_at timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol)
);
COMMENT ON TABLE pricing.empty_answers IS
    'Pairs without a price that a provider has validly said it does not have; ignored once a price comes.';
COMMENT ON COLUMN pricing.empty_answers.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.empty_answers.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.empty_answers.fetched_at IS 'When a provider last said so.';

CREATE TABLE pricing.absent_days (
    data_type text NOT NULL,
    symbol    text NOT NULL,
    day       date NOT NULL,
    asked     integer NOT NULL DEFAULT 0,
    ask_at    timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol, day)
);
COMMENT ON TABLE pricing.absent_days IS
    'Trading days, recent or between stored ones, whose value an answer should have had and lacked, until it comes.';
COMMENT ON COLUMN pricing.absent_days.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.absent_days.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.absent_days.day IS 'The trading day.';
COMMENT ON COLUMN pricing.absent_days.asked IS 'How often it was asked for again.';
COMMENT ON COLUMN pricing.absent_days.ask_at IS 'When it is requested next, unless an answer brings it before.';
CREATE INDEX absent_days_due ON pricing.absent_days (ask_at);

-- ── Prices, and what was believed before ──

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
    valued_by         bigint,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.latest_prices IS 'The newest known price of each pair, exactly amount / 10^scale.';
COMMENT ON COLUMN pricing.latest_prices.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.latest_prices.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.latest_prices.amount IS 'Price in units of 10^-scale.';
COMMENT ON COLUMN pricing.latest_prices.scale IS 'Decimals of amount.';
COMMENT ON COLUMN pricing.latest_prices.currency IS 'ISO 4217 or a coin (USDT); NULL = the source names none.';
COMMENT ON COLUMN pricing.latest_prices.observed_at IS
    'The source''s time; midnight UTC of the trading day for daily values.';
COMMENT ON COLUMN pricing.latest_prices.fetched_at IS
    'When a provider last confirmed it; advances with every valid answer.';
COMMENT ON COLUMN pricing.latest_prices.provider IS 'The provider that sent it.';
COMMENT ON COLUMN pricing.latest_prices.call_id IS
    'The call that brought it; collector_call_log has its run, time and bytes.';
COMMENT ON COLUMN pricing.latest_prices.source_text IS 'The price in the source''s own digits.';
COMMENT ON COLUMN pricing.latest_prices.cache_ttl_minutes IS
    'Overrides the registry''s TTL for this pair; refreshes never touch it.';
COMMENT ON COLUMN pricing.latest_prices.adjustment IS
    'That of the pair''s history; the newest value is the same on every basis.';
COMMENT ON COLUMN pricing.latest_prices.changed_at IS
    'observed_at when this value first came; if the present observed_at is far ahead, the source may be frozen.';
COMMENT ON COLUMN pricing.latest_prices.quality IS 'As in price_history, of the bar whose close it is.';
COMMENT ON COLUMN pricing.latest_prices.valued_by IS
    'The call that first brought this value; later ones confirmed it; NULL = stored before this was recorded.';
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
    'The believed value for every past time, with a table partition for each data type; amount is the close, NAV or '
    'quote.';
COMMENT ON COLUMN pricing.price_history.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.price_history.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.price_history.observed_at IS
    'The source''s time; midnight UTC of the trading day for daily values.';
COMMENT ON COLUMN pricing.price_history.amount IS 'Close, NAV or quote, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.open_amount IS 'Open of a daily bar, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.high_amount IS 'High of a daily bar, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.low_amount IS 'Low of a daily bar, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_history.scale IS 'Decimals of the amounts.';
COMMENT ON COLUMN pricing.price_history.currency IS 'ISO 4217 or a coin (USDT); NULL = the source names none.';
COMMENT ON COLUMN pricing.price_history.volume IS 'Traded volume of a daily bar, in shares or contracts.';
COMMENT ON COLUMN pricing.price_history.provider IS 'The provider that sent it.';
COMMENT ON COLUMN pricing.price_history.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.price_history.fetched_at IS 'Since when we believe it.';
COMMENT ON COLUMN pricing.price_history.adjustment IS
    'raw = as traded on its day; splits = divided by every split since; the same for all of a symbol''s values in a '
    'data type.';
COMMENT ON COLUMN pricing.price_history.quality IS
    'Which parts of the source''s bar were dropped because they contradict its close, and why; NULL = none.';
COMMENT ON COLUMN pricing.price_history.source_text IS
    'The source''s spelling of amount; NULL = spelled as amount with scale decimals, as 146.50, or stored before '
    'spellings were kept.';

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
    'The old value of every changed history row, believed from recorded_at until revised_at.';
COMMENT ON COLUMN pricing.price_revisions.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.price_revisions.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.price_revisions.observed_at IS 'The source''s time.';
COMMENT ON COLUMN pricing.price_revisions.amount IS 'What we believed, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.open_amount IS 'Open, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.high_amount IS 'High, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.low_amount IS 'Low, in units of 10^-scale.';
COMMENT ON COLUMN pricing.price_revisions.scale IS 'Decimals of the amounts.';
COMMENT ON COLUMN pricing.price_revisions.currency IS 'As in price_history.';
COMMENT ON COLUMN pricing.price_revisions.volume IS 'Traded volume.';
COMMENT ON COLUMN pricing.price_revisions.provider IS 'The provider that had sent it.';
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
    asked       integer NOT NULL DEFAULT 0,
    ask_at      timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol, observed_at)
);
COMMENT ON TABLE pricing.provisional_bars IS 'Bars stored before their day was over, until they come again afterwards.';
COMMENT ON COLUMN pricing.provisional_bars.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.provisional_bars.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.provisional_bars.observed_at IS 'Its day, as in price_history.';
COMMENT ON COLUMN pricing.provisional_bars.asked IS
    'How often it was requested alone; after six times it stays as it is.';
COMMENT ON COLUMN pricing.provisional_bars.ask_at IS 'When it is requested next, unless a refresh brings it before.';
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
    'Answers in which stored days have other values (docs/truth.md): by one ratio they are quarantined and the '
    'history is fetched again once; scattered ones are stored.';
COMMENT ON COLUMN pricing.restatements.restatement_id IS 'Numbers restatements.';
COMMENT ON COLUMN pricing.restatements.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.restatements.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.restatements.provider IS 'The provider that sent it.';
COMMENT ON COLUMN pricing.restatements.kind IS
    'split = by a ratio of splits; dividend = by another ratio; scattered = single days; basis = raw, in a history '
    'that is divided by splits.';
COMMENT ON COLUMN pricing.restatements.ratio IS 'What the stored values are divided by; 1 for a basis.';
COMMENT ON COLUMN pricing.restatements.days IS 'How many stored days had another value, the last time.';
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
    'When a new split, or the other basis again, caused another fetch of the history; NULL = never.';
CREATE INDEX restatements_pair ON pricing.restatements (data_type, symbol, last_seen_at);
CREATE INDEX restatements_unasked ON pricing.restatements (recorded_at) WHERE ratio IS NOT NULL AND backfill_id IS NULL;

CREATE TABLE pricing.thinned (
    data_type text NOT NULL,
    symbol    text NOT NULL,
    until     timestamptz NOT NULL,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.thinned IS 'Until when each pair''s history is thinned, so that nothing is read twice.';
COMMENT ON COLUMN pricing.thinned.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.thinned.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.thinned.until IS 'Midnight UTC; quotes before it were thinned.';

CREATE TABLE pricing.exported_months (
    data_type   text NOT NULL
        CONSTRAINT data_type_is_registered REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    month       date NOT NULL CONSTRAINT month_begins_on_its_first CHECK (extract(day FROM month) = 1),
    versions    bigint NOT NULL,
    changes     bigint NOT NULL,
    file_bytes  bigint NOT NULL,
    sha256      text NOT NULL,
    exported_at timestamptz NOT NULL,
    moved_at    timestamptz,
    coming      jsonb NOT NULL DEFAULT '{}',
    price_whole     smallint NOT NULL,
    price_decimals  smallint NOT NULL,
    volume_whole    smallint NOT NULL,
    volume_decimals smallint NOT NULL,
    PRIMARY KEY (data_type, month)
);
COMMENT ON TABLE pricing.exported_months IS 'Months of history with a file outside the database.';
COMMENT ON COLUMN pricing.exported_months.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.exported_months.month IS 'First day of a UTC month of observed_at.';
COMMENT ON COLUMN pricing.exported_months.versions IS 'Values in the file, present and earlier ones.';
COMMENT ON COLUMN pricing.exported_months.changes IS
    'pricing.month_changes at the export; if it differs now, another export is due.';
COMMENT ON COLUMN pricing.exported_months.file_bytes IS 'Size of the file.';
COMMENT ON COLUMN pricing.exported_months.sha256 IS 'Digest of the file.';
COMMENT ON COLUMN pricing.exported_months.exported_at IS 'When the file was written last.';
COMMENT ON COLUMN pricing.exported_months.moved_at IS
    'Since when only the file has the values, except each pair''s newest; NULL = the database has all, too.';
COMMENT ON COLUMN pricing.exported_months.coming IS
    'Files about to replace this one, or at the end of their export: sizes by digest; reads accept them, too.';
COMMENT ON COLUMN pricing.exported_months.price_whole IS
    'Digits before the point that the longest price of the type''s files had when this one was written.';
COMMENT ON COLUMN pricing.exported_months.price_decimals IS 'Decimals of the file''s prices.';
COMMENT ON COLUMN pricing.exported_months.volume_whole IS
    'Digits before the point that the longest volume of the type''s files had when this one was written.';
COMMENT ON COLUMN pricing.exported_months.volume_decimals IS 'Decimals of the file''s volumes.';

CREATE TABLE pricing.moved_days (
    data_type  text NOT NULL
        CONSTRAINT data_type_is_registered REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    symbol     text NOT NULL,
    days       datemultirange NOT NULL,
    noted_days datemultirange NOT NULL,
    PRIMARY KEY (data_type, symbol)
);
COMMENT ON TABLE pricing.moved_days IS 'Pairs with values that have moved from the database to a file.';
COMMENT ON COLUMN pricing.moved_days.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.moved_days.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.moved_days.days IS 'UTC days with a believed value that has moved.';
COMMENT ON COLUMN pricing.moved_days.noted_days IS
    'The days of `days`, and days from which only earlier values have moved.';

CREATE TABLE pricing.confirmed_pairs (
    data_type         text NOT NULL,
    symbol            text NOT NULL,
    fetched_at        timestamptz NOT NULL,
    provider          text NOT NULL,
    call_id           bigint NOT NULL,
    cache_ttl_minutes integer CONSTRAINT confirmed_ttl_is_positive CHECK ((cache_ttl_minutes > 0)),
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.confirmed_pairs IS
    'When each pair of a data type without prices was last confirmed, which decides its staleness.';
COMMENT ON COLUMN pricing.confirmed_pairs.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.confirmed_pairs.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.confirmed_pairs.fetched_at IS
    'When a provider last answered; advances with every valid answer.';
COMMENT ON COLUMN pricing.confirmed_pairs.provider IS 'The provider that answered.';
COMMENT ON COLUMN pricing.confirmed_pairs.call_id IS 'The call; collector_call_log has its run, time and bytes.';
COMMENT ON COLUMN pricing.confirmed_pairs.cache_ttl_minutes IS
    'Overrides the registry''s TTL for this pair; refreshes never touch it.';

-- ── Revisions of all but prices ──

CREATE TABLE pricing.revisions (
    kind            text NOT NULL,
    key             text[] COLLATE "C" NOT NULL,
    recorded_at     timestamptz NOT NULL,
    revised_at      timestamptz NOT NULL,
    revised_by      bigint,
    removed_by      text,
    removed_because text CONSTRAINT because_is_short CHECK (length(removed_because) <= 500),
    old             jsonb NOT NULL
);
COMMENT ON TABLE pricing.revisions IS
    'The old row of everything that changed except prices, believed from recorded_at until revised_at; price_revisions '
    'has those of prices.';
COMMENT ON COLUMN pricing.revisions.kind IS 'The table of the row.';
COMMENT ON COLUMN pricing.revisions.key IS
    'What reads look it up by, such as the symbol, or the symbol and the day of a slot.';
COMMENT ON COLUMN pricing.revisions.recorded_at IS 'Since when we believed it.';
COMMENT ON COLUMN pricing.revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.revisions.revised_by IS 'The call that changed or omitted it; NULL or 0 = a person did.';
COMMENT ON COLUMN pricing.revisions.removed_by IS
    'For a corporate action, who removed or replaced it by hand; the provider''s next report of the same is refused.';
COMMENT ON COLUMN pricing.revisions.removed_because IS 'Why, in that person''s words.';
COMMENT ON COLUMN pricing.revisions.old IS
    'The row as it was, with the names of its columns; numbers are exact.';
CREATE INDEX revisions_by_commodity ON pricing.revisions ((old->>'commodity_id'), revised_at)
    WHERE kind = 'commodity_prices';
CREATE INDEX revisions_by_key ON pricing.revisions (kind, key, revised_at);

-- ── Corporate actions ──

CREATE TABLE pricing.corporate_actions (
    asset_class text NOT NULL,
    symbol      text NOT NULL,
    ex_on       date NOT NULL,
    kind        text NOT NULL
        CONSTRAINT kind_is_known CHECK (kind IN ('split', 'spin_off', 'dividend', 'capital_gain')),
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
    part        smallint NOT NULL DEFAULT 1,
    PRIMARY KEY (asset_class, symbol, ex_on, kind, part),
    CONSTRAINT payment_has_amount
        CHECK ((kind IN ('dividend', 'capital_gain')) = (amount IS NOT NULL AND scale IS NOT NULL)),
    CONSTRAINT shares_are_positive CHECK (
        (new_shares > 0)
        AND (old_shares > 0)
        AND new_shares < 'Infinity'::numeric
        AND old_shares < 'Infinity'::numeric),
    CONSTRAINT split_has_shares
        CHECK ((kind IN ('split', 'spin_off')) = (new_shares IS NOT NULL AND old_shares IS NOT NULL))
);
COMMENT ON TABLE pricing.corporate_actions IS
    'Splits, spin-offs, dividends and capital gains as believed now; they change no stored price, and reads apply '
    'them.';
COMMENT ON COLUMN pricing.corporate_actions.asset_class IS 'With symbol: the instrument.';
COMMENT ON COLUMN pricing.corporate_actions.symbol IS 'With asset_class: the instrument.';
COMMENT ON COLUMN pricing.corporate_actions.ex_on IS
    'The first trading day without it: it adjusts prices before this day.';
COMMENT ON COLUMN pricing.corporate_actions.kind IS
    'split; spin_off, which divides prices like a split and changes no volume; dividend; capital_gain, a fund''s '
    'payment of gains.';
COMMENT ON COLUMN pricing.corporate_actions.new_shares IS 'For a split or spin-off, the number of new shares ...';
COMMENT ON COLUMN pricing.corporate_actions.old_shares IS '... for this many old ones.';
COMMENT ON COLUMN pricing.corporate_actions.amount IS
    'For a payment, cash per share of that day, before taxes, in units of 10^-scale of its currency.';
COMMENT ON COLUMN pricing.corporate_actions.scale IS 'Decimals of amount.';
COMMENT ON COLUMN pricing.corporate_actions.currency IS
    'For a payment, ISO 4217 or a coin (USDT), which may differ from that of the prices; NULL = that of the prices.';
COMMENT ON COLUMN pricing.corporate_actions.provider IS
    'The provider that reported it; "by hand" is a person, named by entered_by.';
COMMENT ON COLUMN pricing.corporate_actions.call_id IS 'The call that brought it; 0 = entered by hand.';
COMMENT ON COLUMN pricing.corporate_actions.recorded_at IS 'Since when we believe it.';
COMMENT ON COLUMN pricing.corporate_actions.entered_by IS 'Who entered it by hand; NULL = a provider reported it.';
COMMENT ON COLUMN pricing.corporate_actions.reason IS 'The reason, in that person''s words.';
COMMENT ON COLUMN pricing.corporate_actions.judged_at IS
    'When the instrument''s quarantined values were judged again with it; NULL = not yet.';
COMMENT ON COLUMN pricing.corporate_actions.part IS
    'Distinguishes payments of one kind on one day, and means nothing else.';
CREATE UNIQUE INDEX corporate_actions_one_ratio ON pricing.corporate_actions (asset_class, symbol, ex_on)
    WHERE new_shares IS NOT NULL;
CREATE INDEX corporate_actions_unjudged ON pricing.corporate_actions (recorded_at) WHERE judged_at IS NULL;

CREATE TABLE pricing.corporate_action_pairs (
    asset_class   text NOT NULL,
    symbol        text NOT NULL,
    covered       datemultirange NOT NULL,
    fetched_at    timestamptz NOT NULL,
    provider      text NOT NULL,
    call_id       bigint NOT NULL,
    gains_covered datemultirange NOT NULL DEFAULT '{}',
    PRIMARY KEY (asset_class, symbol)
);
COMMENT ON TABLE pricing.corporate_action_pairs IS
    'The days for which providers have reported all splits and dividends of an instrument; nothing is known of '
    'others.';
COMMENT ON COLUMN pricing.corporate_action_pairs.asset_class IS 'With symbol: the instrument.';
COMMENT ON COLUMN pricing.corporate_action_pairs.symbol IS 'With asset_class: the instrument.';
COMMENT ON COLUMN pricing.corporate_action_pairs.covered IS 'The reported days.';
COMMENT ON COLUMN pricing.corporate_action_pairs.fetched_at IS 'When they were last reported.';
COMMENT ON COLUMN pricing.corporate_action_pairs.provider IS 'The provider that reported them last.';
COMMENT ON COLUMN pricing.corporate_action_pairs.call_id IS 'The call that reported them last.';
COMMENT ON COLUMN pricing.corporate_action_pairs.gains_covered IS
    'The days for which all capital gains are known, which not every provider reports.';

-- ── Documents ──

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
    'Documents as believed now, one for each pair and fiscal period; document_pairs has when a pair was last '
    'confirmed.';
COMMENT ON COLUMN pricing.documents.data_type IS 'What kind of document it is.';
COMMENT ON COLUMN pricing.documents.symbol IS 'The company.';
COMMENT ON COLUMN pricing.documents.period IS
    'The day under which the provider files it: of an earnings report, or the last of a fiscal year; -infinity = no '
    'period.';
COMMENT ON COLUMN pricing.documents.body IS
    'The validated answer, with the provider''s names and digits; NULL = withdrawn by the provider.';
COMMENT ON COLUMN pricing.documents.provider IS 'The provider that sent it.';
COMMENT ON COLUMN pricing.documents.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.documents.recorded_at IS 'Since when we believe it.';

-- ── Inventory: slots of products ──

CREATE TABLE pricing.products (
    symbol        text PRIMARY KEY,
    provider      text NOT NULL,
    name          text,
    time_zone     text,
    set_time_zone text,
    call_id       bigint,
    recorded_at   timestamptz NOT NULL,
    is_listed     boolean NOT NULL DEFAULT true
);
COMMENT ON TABLE pricing.products IS 'What is sold in slots, by the symbol of its instrument (asset class inventory).';
COMMENT ON COLUMN pricing.products.symbol IS 'Its instrument.';
COMMENT ON COLUMN pricing.products.provider IS 'The provider that last listed it.';
COMMENT ON COLUMN pricing.products.name IS 'For people; NULL = only its slots are known.';
COMMENT ON COLUMN pricing.products.time_zone IS 'IANA zone of its place, as the provider says; NULL = unknown.';
COMMENT ON COLUMN pricing.products.set_time_zone IS
    'The zone that a person has set, which takes precedence; NULL = none.';
COMMENT ON COLUMN pricing.products.call_id IS 'The call that brought it; NULL = changed by a person since.';
COMMENT ON COLUMN pricing.products.recorded_at IS 'Since when we believe it.';
COMMENT ON COLUMN pricing.products.is_listed IS 'False = its provider no longer has it.';

CREATE TABLE pricing.product_options (
    symbol      text NOT NULL REFERENCES pricing.products(symbol),
    provider    text NOT NULL,
    option_id   text NOT NULL,
    name        text,
    is_default  boolean NOT NULL DEFAULT false,
    is_listed   boolean NOT NULL DEFAULT true,
    call_id     bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (symbol, provider, option_id)
);
COMMENT ON TABLE pricing.product_options IS 'Variants of products, such as a language or a meeting point.';
COMMENT ON COLUMN pricing.product_options.symbol IS 'The product.';
COMMENT ON COLUMN pricing.product_options.provider IS 'The provider that gave the id.';
COMMENT ON COLUMN pricing.product_options.option_id IS 'Its id at the provider, unique within the product.';
COMMENT ON COLUMN pricing.product_options.name IS 'For people; NULL = only slots have named it so far.';
COMMENT ON COLUMN pricing.product_options.is_default IS 'Whether the provider books it where none is chosen.';
COMMENT ON COLUMN pricing.product_options.is_listed IS 'False = the product no longer has it.';
COMMENT ON COLUMN pricing.product_options.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.product_options.recorded_at IS 'Since when we believe it.';

CREATE TABLE pricing.pax_categories (
    category_key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    symbol       text NOT NULL REFERENCES pricing.products(symbol),
    provider     text NOT NULL,
    category_id  text NOT NULL,
    name         text NOT NULL,
    kind         text,
    age_from     integer,
    age_to       integer,
    pax_count    integer NOT NULL DEFAULT 1 CONSTRAINT pax_count_is_positive CHECK (pax_count > 0),
    is_described boolean NOT NULL,
    is_listed    boolean NOT NULL DEFAULT true,
    call_id      bigint NOT NULL,
    recorded_at  timestamptz NOT NULL,
    UNIQUE (symbol, provider, category_id),
    CONSTRAINT ages_are_upright CHECK (age_to >= age_from)
);
COMMENT ON TABLE pricing.pax_categories IS 'Who products are sold to, such as adults or a group of four.';
COMMENT ON COLUMN pricing.pax_categories.category_key IS 'Our number for it.';
COMMENT ON COLUMN pricing.pax_categories.symbol IS 'The product.';
COMMENT ON COLUMN pricing.pax_categories.provider IS 'The provider that gave the id.';
COMMENT ON COLUMN pricing.pax_categories.category_id IS 'Its id at the provider, unique within the product.';
COMMENT ON COLUMN pricing.pax_categories.name IS 'For people.';
COMMENT ON COLUMN pricing.pax_categories.kind IS 'The provider''s word for it, such as ADULT; NULL = none.';
COMMENT ON COLUMN pricing.pax_categories.age_from IS 'Youngest age, included; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_categories.age_to IS 'Oldest age, included; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_categories.pax_count IS 'How many people one unit is for.';
COMMENT ON COLUMN pricing.pax_categories.is_described IS
    'Whether the product describes it, so that slots do not rename it.';
COMMENT ON COLUMN pricing.pax_categories.is_listed IS 'False = the product no longer has it.';
COMMENT ON COLUMN pricing.pax_categories.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.pax_categories.recorded_at IS 'Since when we believe it.';

-- Local times are what a clock on the wall shows, so they have no zone.
CREATE TABLE pricing.slots (
    slot_key       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    symbol         text NOT NULL REFERENCES pricing.products(symbol),
    provider       text NOT NULL,
    option_id      text NOT NULL,
    slot_id        text NOT NULL,
    local_day      date GENERATED ALWAYS AS (local_start::date) STORED,
    local_start    timestamp NOT NULL,
    local_end      timestamp NOT NULL,
    utc_offset     interval,
    time_zone      text,
    starts_at      timestamptz NOT NULL,
    ends_at        timestamptz NOT NULL,
    bookable_until timestamptz,
    status         text NOT NULL
        CONSTRAINT slot_status_is_known
            CHECK (status IN ('available', 'freesale', 'limited', 'sold_out', 'closed', 'vanished')),
    remaining      integer,
    capacity       integer CONSTRAINT capacity_is_sane CHECK (capacity >= 0),
    call_id        bigint NOT NULL,
    recorded_at    timestamptz NOT NULL,
    UNIQUE (symbol, provider, option_id, slot_id),
    CONSTRAINT slot_ends_after_it_starts CHECK (ends_at >= starts_at),
    CONSTRAINT slot_is_placed_once CHECK ((utc_offset IS NULL) <> (time_zone IS NULL)),
    CONSTRAINT slot_remaining_is_sane CHECK (remaining >= 0 AND remaining <= capacity)
) WITH (fillfactor = 85);
COMMENT ON TABLE pricing.slots IS 'Times at which an option of a product takes place, as believed now.';
COMMENT ON COLUMN pricing.slots.slot_key IS 'Our number for it.';
COMMENT ON COLUMN pricing.slots.symbol IS 'The product.';
COMMENT ON COLUMN pricing.slots.provider IS 'The provider that gave the ids.';
COMMENT ON COLUMN pricing.slots.option_id IS 'The option''s id at the provider.';
COMMENT ON COLUMN pricing.slots.slot_id IS 'Its id at the provider, unique within product and option.';
COMMENT ON COLUMN pricing.slots.local_day IS 'Its local day at the place.';
COMMENT ON COLUMN pricing.slots.local_start IS 'Its start in local time.';
COMMENT ON COLUMN pricing.slots.local_end IS 'Its end in local time.';
COMMENT ON COLUMN pricing.slots.utc_offset IS
    'The provider''s offset of local_start from UTC; NULL = none, so time_zone places it.';
COMMENT ON COLUMN pricing.slots.time_zone IS
    'The product''s zone by which its times were placed; NULL = utc_offset places them.';
COMMENT ON COLUMN pricing.slots.starts_at IS 'When it starts.';
COMMENT ON COLUMN pricing.slots.ends_at IS 'When it ends.';
COMMENT ON COLUMN pricing.slots.bookable_until IS 'Until when the provider takes bookings; NULL = unknown.';
COMMENT ON COLUMN pricing.slots.status IS
    'available, freesale (without a bound), limited, sold_out or closed as the provider says; vanished = no longer '
    'listed.';
COMMENT ON COLUMN pricing.slots.remaining IS 'Places left; NULL = unknown, or without a bound.';
COMMENT ON COLUMN pricing.slots.capacity IS 'Places in all; NULL = unknown.';
COMMENT ON COLUMN pricing.slots.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.slots.recorded_at IS 'Since when we believe it.';
CREATE INDEX slots_by_day ON pricing.slots (symbol, local_day);

CREATE TABLE pricing.slot_prices (
    slot_key       bigint NOT NULL REFERENCES pricing.slots(slot_key),
    category_key   bigint NOT NULL REFERENCES pricing.pax_categories(category_key),
    final_price    bigint CONSTRAINT final_price_is_no_debt CHECK (final_price >= 0),
    original_price bigint CONSTRAINT original_price_is_no_debt CHECK (original_price >= 0),
    discount       bigint GENERATED ALWAYS AS (original_price - final_price) STORED,
    currency       text CONSTRAINT slot_currency_is_code CHECK (currency ~ '^[A-Z]{3}$'),
    scale          smallint NOT NULL CONSTRAINT slot_scale_is_sane CHECK (scale BETWEEN 0 AND 18),
    call_id        bigint NOT NULL,
    recorded_at    timestamptz NOT NULL,
    PRIMARY KEY (slot_key, category_key),
    CONSTRAINT prices_have_a_currency CHECK (currency IS NOT NULL OR (final_price IS NULL AND original_price IS NULL))
) WITH (fillfactor = 90);
COMMENT ON TABLE pricing.slot_prices IS
    'What a slot costs for a category, as believed now, in units of the last decimal of its currency.';
COMMENT ON COLUMN pricing.slot_prices.slot_key IS 'The slot.';
COMMENT ON COLUMN pricing.slot_prices.category_key IS 'The category.';
COMMENT ON COLUMN pricing.slot_prices.final_price IS 'What is paid; NULL = the provider names no price.';
COMMENT ON COLUMN pricing.slot_prices.original_price IS 'The price before discounts; NULL = not named.';
COMMENT ON COLUMN pricing.slot_prices.discount IS 'original_price less final_price; below zero it is a surcharge.';
COMMENT ON COLUMN pricing.slot_prices.currency IS 'ISO 4217; NULL only without prices.';
COMMENT ON COLUMN pricing.slot_prices.scale IS 'How many decimals the three prices have.';
COMMENT ON COLUMN pricing.slot_prices.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.slot_prices.recorded_at IS 'Since when we believe it.';

CREATE TABLE pricing.pax_availability (
    slot_key     bigint NOT NULL REFERENCES pricing.slots(slot_key),
    category_key bigint NOT NULL REFERENCES pricing.pax_categories(category_key),
    minimum      integer,
    maximum      integer CONSTRAINT maximum_is_sane CHECK (maximum >= 0),
    remaining    integer CONSTRAINT pax_remaining_is_sane CHECK (remaining >= 0),
    is_primary   boolean NOT NULL DEFAULT false,
    is_offered   boolean NOT NULL DEFAULT true,
    call_id      bigint NOT NULL,
    recorded_at  timestamptz NOT NULL,
    PRIMARY KEY (slot_key, category_key),
    CONSTRAINT minimum_is_sane CHECK (minimum >= 0 AND minimum <= maximum)
) WITH (fillfactor = 85);
COMMENT ON TABLE pricing.pax_availability IS 'How many of a category a slot takes, as believed now.';
COMMENT ON COLUMN pricing.pax_availability.slot_key IS 'The slot.';
COMMENT ON COLUMN pricing.pax_availability.category_key IS 'The category.';
COMMENT ON COLUMN pricing.pax_availability.minimum IS 'Fewest units of one booking; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_availability.maximum IS 'Most units of one booking; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_availability.remaining IS 'Units left; NULL = unknown, or without a bound.';
COMMENT ON COLUMN pricing.pax_availability.is_primary IS
    'Whether the product is made for this category; others come along.';
COMMENT ON COLUMN pricing.pax_availability.is_offered IS 'False = the slot no longer takes it.';
COMMENT ON COLUMN pricing.pax_availability.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.pax_availability.recorded_at IS 'Since when we believe it.';

CREATE TABLE pricing.slot_windows (
    data_type   text NOT NULL,
    symbol      text NOT NULL REFERENCES pricing.products(symbol),
    first_day   date NOT NULL,
    last_day    date NOT NULL,
    fetched_at  timestamptz NOT NULL,
    provider    text NOT NULL,
    call_id     bigint NOT NULL,
    unread_days date[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (data_type, symbol),
    CONSTRAINT slot_window_is_upright CHECK (last_day >= first_day)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.slot_windows IS
    'The local days that each pair''s last answer listed in full, and when they were confirmed.';
COMMENT ON COLUMN pricing.slot_windows.data_type IS 'The data type of the requested slots.';
COMMENT ON COLUMN pricing.slot_windows.symbol IS 'The product.';
COMMENT ON COLUMN pricing.slot_windows.first_day IS 'First local day of the answer.';
COMMENT ON COLUMN pricing.slot_windows.last_day IS 'Last local day of the answer, included.';
COMMENT ON COLUMN pricing.slot_windows.fetched_at IS 'When it was stored.';
COMMENT ON COLUMN pricing.slot_windows.provider IS 'The provider that answered.';
COMMENT ON COLUMN pricing.slot_windows.call_id IS 'The call; an earlier call''s answer says nothing about these days.';
COMMENT ON COLUMN pricing.slot_windows.unread_days IS
    'The days about which the answer says nothing, because a slot''s id cannot be read.';

-- ── Commodities of a game ──

CREATE TABLE pricing.game_versions (
    version            text PRIMARY KEY CONSTRAINT game_version_is_short CHECK (length(version) BETWEEN 1 AND 40),
    seen_at            timestamptz NOT NULL,
    live_since         timestamptz,
    live_until         timestamptz,
    earlier_live_times tstzmultirange NOT NULL DEFAULT '{}',
    is_test            boolean NOT NULL DEFAULT false,
    CONSTRAINT live_times_are_in_order CHECK (live_until IS NULL OR live_until >= live_since)
);
COMMENT ON TABLE pricing.game_versions IS 'Versions of the game; each begins with new prices.';
COMMENT ON COLUMN pricing.game_versions.version IS 'Its name, such as 4.1.';
COMMENT ON COLUMN pricing.game_versions.seen_at IS 'When a provider first named it.';
COMMENT ON COLUMN pricing.game_versions.live_since IS 'Since when it is live; NULL = it never was, as far as we know.';
COMMENT ON COLUMN pricing.game_versions.live_until IS 'Until when it was live; NULL while it is; at most one is.';
COMMENT ON COLUMN pricing.game_versions.earlier_live_times IS 'When it was live before live_since, if it came back.';
COMMENT ON COLUMN pricing.game_versions.is_test IS 'Whether it is only for tests, as the provider says.';
CREATE UNIQUE INDEX one_version_is_live ON pricing.game_versions ((true))
    WHERE live_since IS NOT NULL AND live_until IS NULL;

CREATE TABLE pricing.terminals (
    symbol       text PRIMARY KEY CONSTRAINT terminal_symbol_is_short CHECK (length(symbol) BETWEEN 1 AND 40),
    name         text NOT NULL,
    code         text,
    system       text,
    planet       text,
    moon         text,
    place        text,
    is_available boolean NOT NULL DEFAULT true,
    modified_at  timestamptz,
    recorded_at  timestamptz NOT NULL,
    vanished_at  timestamptz,
    call_id      bigint NOT NULL
);
COMMENT ON TABLE pricing.terminals IS 'Where commodities are traded; those no longer listed stay, marked.';
COMMENT ON COLUMN pricing.terminals.symbol IS 'Its symbol, such as UEX:12.';
COMMENT ON COLUMN pricing.terminals.name IS 'Its name in the game.';
COMMENT ON COLUMN pricing.terminals.code IS 'Its short name, such as ARCL1.';
COMMENT ON COLUMN pricing.terminals.system IS 'The star system.';
COMMENT ON COLUMN pricing.terminals.planet IS 'The planet; NULL = none.';
COMMENT ON COLUMN pricing.terminals.moon IS 'The moon; NULL = none.';
COMMENT ON COLUMN pricing.terminals.place IS 'The station, outpost or city.';
COMMENT ON COLUMN pricing.terminals.is_available IS 'Whether players can trade there now.';
COMMENT ON COLUMN pricing.terminals.modified_at IS 'The source''s time of its last change; NULL = never changed.';
COMMENT ON COLUMN pricing.terminals.recorded_at IS 'When this row last changed here.';
COMMENT ON COLUMN pricing.terminals.vanished_at IS
    'Since when its provider no longer lists it; NULL = listed, or known only from prices.';
COMMENT ON COLUMN pricing.terminals.call_id IS 'The call that brought the last change.';

CREATE TABLE pricing.commodities (
    commodity_id bigint PRIMARY KEY,
    name         text NOT NULL,
    code         text,
    slug         text,
    kind         text,
    is_available boolean NOT NULL DEFAULT true,
    recorded_at  timestamptz NOT NULL,
    vanished_at  timestamptz,
    call_id      bigint NOT NULL
);
COMMENT ON TABLE pricing.commodities IS 'Goods of the game.';
COMMENT ON COLUMN pricing.commodities.commodity_id IS 'The provider''s number for it.';
COMMENT ON COLUMN pricing.commodities.name IS 'Its name, such as Quantanium.';
COMMENT ON COLUMN pricing.commodities.code IS 'Its short name, such as QUAN.';
COMMENT ON COLUMN pricing.commodities.slug IS 'Its name in URLs, such as medical-supplies.';
COMMENT ON COLUMN pricing.commodities.kind IS 'What kind of good it is, in the provider''s word.';
COMMENT ON COLUMN pricing.commodities.is_available IS 'Whether it is in the game now.';
COMMENT ON COLUMN pricing.commodities.recorded_at IS 'When this row last changed here.';
COMMENT ON COLUMN pricing.commodities.vanished_at IS
    'Since when its provider no longer lists it; NULL = listed, or known only from prices.';
COMMENT ON COLUMN pricing.commodities.call_id IS 'The call that brought the last change.';
CREATE INDEX commodities_by_slug ON pricing.commodities (slug);

CREATE TABLE pricing.commodity_prices (
    symbol       text NOT NULL REFERENCES pricing.terminals(symbol),
    commodity_id bigint NOT NULL REFERENCES pricing.commodities(commodity_id),
    buy          numeric CONSTRAINT buy_is_positive CHECK (buy > 0),
    sell         numeric CONSTRAINT sell_is_positive CHECK (sell > 0),
    stock        bigint CONSTRAINT stock_is_counted CHECK (stock >= 0),
    demand       bigint CONSTRAINT demand_is_counted CHECK (demand >= 0),
    game_version text REFERENCES pricing.game_versions(version),
    modified_at  timestamptz,
    recorded_at  timestamptz NOT NULL,
    provider     text NOT NULL,
    call_id      bigint NOT NULL,
    quality      text NOT NULL DEFAULT '',
    PRIMARY KEY (symbol, commodity_id, quality),
    CONSTRAINT demand_is_for_what_is_bought CHECK (demand IS NULL OR sell IS NOT NULL),
    CONSTRAINT stock_is_of_what_is_sold CHECK (stock IS NULL OR buy IS NOT NULL)
);
COMMENT ON TABLE pricing.commodity_prices IS
    'What each terminal trades, as believed now, in the game''s money and in SCU; both prices NULL = no longer traded '
    'there.';
COMMENT ON COLUMN pricing.commodity_prices.symbol IS 'The terminal.';
COMMENT ON COLUMN pricing.commodity_prices.commodity_id IS 'The commodity.';
COMMENT ON COLUMN pricing.commodity_prices.buy IS 'What a player pays for one SCU; NULL = the terminal sells none.';
COMMENT ON COLUMN pricing.commodity_prices.sell IS 'What a player gets for one SCU; NULL = the terminal takes none.';
COMMENT ON COLUMN pricing.commodity_prices.stock IS 'How much a player can buy; NULL = not reported.';
COMMENT ON COLUMN pricing.commodity_prices.demand IS 'How much a player can sell; NULL = not reported.';
COMMENT ON COLUMN pricing.commodity_prices.game_version IS 'The version of the game of the price; NULL = unknown.';
COMMENT ON COLUMN pricing.commodity_prices.modified_at IS 'The source''s time of the price; NULL = never changed.';
COMMENT ON COLUMN pricing.commodity_prices.recorded_at IS 'Since when we believe it.';
COMMENT ON COLUMN pricing.commodity_prices.provider IS 'The provider that sent it.';
COMMENT ON COLUMN pricing.commodity_prices.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.commodity_prices.quality IS 'Its quality, in the provider''s word; empty = none.';
CREATE INDEX commodity_prices_by_commodity ON pricing.commodity_prices (commodity_id);
CREATE INDEX commodity_prices_by_version ON pricing.commodity_prices (game_version);

CREATE TABLE pricing.etl_warnings (
    warning_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    etl        text NOT NULL,
    run        text NOT NULL,
    step       text NOT NULL,
    kind       text NOT NULL,
    message    text NOT NULL,
    warned_at  timestamptz NOT NULL
);
COMMENT ON TABLE pricing.etl_warnings IS 'Warnings of an ETL that did not stop it, kept for 90 days.';
COMMENT ON COLUMN pricing.etl_warnings.warning_id IS 'Its number.';
COMMENT ON COLUMN pricing.etl_warnings.etl IS 'The ETL: commodities.';
COMMENT ON COLUMN pricing.etl_warnings.run IS 'Its run.';
COMMENT ON COLUMN pricing.etl_warnings.step IS 'The step: game versions, terminals, commodities or prices.';
COMMENT ON COLUMN pricing.etl_warnings.kind IS
    'The kind of failure: as of tasks, or rejected_rows, refused (no call was allowed) and lock_lost.';
COMMENT ON COLUMN pricing.etl_warnings.message IS 'What happened, and what to do.';
COMMENT ON COLUMN pricing.etl_warnings.warned_at IS 'When.';
CREATE INDEX etl_warnings_by_time ON pricing.etl_warnings (warned_at);

-- ── Quarantine: values that are not believed ──

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
    status       text NOT NULL DEFAULT 'quarantined'
        CONSTRAINT status_is_known CHECK (status IN ('quarantined', 'released', 'rejected')),
    resolved_at  timestamptz,
    resolved_by  text,
    resolution   text,
    ask_at       timestamptz,
    asked        smallint NOT NULL DEFAULT 0,
    CONSTRAINT same_value_is_one_row UNIQUE NULLS NOT DISTINCT (data_type, symbol, observed_at, kind, value, provider),
    CONSTRAINT quarantined_is_unresolved CHECK ((status = 'quarantined') = (resolved_at IS NULL))
);
COMMENT ON TABLE pricing.quarantined_values IS
    'Values from providers that are not believed, kept for people and never prices; the same value is one row, '
    'however often it comes.';
COMMENT ON COLUMN pricing.quarantined_values.value_id IS 'Numbers quarantined values.';
COMMENT ON COLUMN pricing.quarantined_values.data_type IS 'The requested data type.';
COMMENT ON COLUMN pricing.quarantined_values.symbol IS 'The requested symbol.';
COMMENT ON COLUMN pricing.quarantined_values.provider IS 'The provider that sent it.';
COMMENT ON COLUMN pricing.quarantined_values.observed_at IS 'The source''s time; NULL = none, or an impossible one.';
COMMENT ON COLUMN pricing.quarantined_values.kind IS
    'refused, closed_day, currency, bounds, unit, jump, spike, split, dividend or disagreement: docs/truth.md.';
COMMENT ON COLUMN pricing.quarantined_values.value IS
    'The source''s own spelling of the price; empty where the answer as a whole was refused.';
COMMENT ON COLUMN pricing.quarantined_values.reason IS 'Why it is not believed, in words.';
COMMENT ON COLUMN pricing.quarantined_values.bar IS
    'Everything that would be stored, as text: close, open, high, low, volume, currency, adjustment; NULL = it could '
    'not be read.';
COMMENT ON COLUMN pricing.quarantined_values.call_id IS
    'The first call that brought it; quarantined_bodies may have its body.';
COMMENT ON COLUMN pricing.quarantined_values.recorded_at IS 'When it first came.';
COMMENT ON COLUMN pricing.quarantined_values.last_seen_at IS 'When it last came.';
COMMENT ON COLUMN pricing.quarantined_values.last_call_id IS 'The last call that brought it.';
COMMENT ON COLUMN pricing.quarantined_values.times IS 'In how many answers it came.';
COMMENT ON COLUMN pricing.quarantined_values.status IS
    'quarantined = waits for a person; released = believed and stored after all; rejected = wrong for good.';
COMMENT ON COLUMN pricing.quarantined_values.resolved_at IS 'When that was decided.';
COMMENT ON COLUMN pricing.quarantined_values.resolved_by IS
    'Who decided: a person, or a call whose answer brought it again and was believed.';
COMMENT ON COLUMN pricing.quarantined_values.resolution IS 'The reason, in words.';
COMMENT ON COLUMN pricing.quarantined_values.ask_at IS
    'When workers ask a second provider about it; NULL = answered, or no longer asked.';
COMMENT ON COLUMN pricing.quarantined_values.asked IS 'How often workers have asked, at most four times.';
CREATE INDEX quarantined_values_of_closed_days ON pricing.quarantined_values (observed_at) WHERE kind = 'closed_day';
CREATE INDEX quarantined_values_seen ON pricing.quarantined_values (last_seen_at);
CREATE INDEX quarantined_values_to_ask ON pricing.quarantined_values (ask_at)
    WHERE ask_at IS NOT NULL AND status = 'quarantined';

CREATE TABLE pricing.quarantined_bodies (
    call_id     bigint PRIMARY KEY,
    body        bytea NOT NULL CONSTRAINT body_is_bounded CHECK (octet_length(body) <= 1100000),
    size        integer NOT NULL,
    http_status integer,
    recorded_at timestamptz NOT NULL
);
COMMENT ON TABLE pricing.quarantined_bodies IS
    'Answers that brought new quarantined values, one for each call, without API keys.';
COMMENT ON COLUMN pricing.quarantined_bodies.call_id IS 'The call, in collector_call_log while that is kept.';
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
    'What other providers, asked by workers or a person, said about a quarantined value: it helps a person decide and '
    'is never a price.';
COMMENT ON COLUMN pricing.second_opinions.value_id IS 'The quarantined value it is about.';
COMMENT ON COLUMN pricing.second_opinions.provider IS 'The provider that was asked.';
COMMENT ON COLUMN pricing.second_opinions.call_id IS 'The call, in collector_call_log while that is kept.';
COMMENT ON COLUMN pricing.second_opinions.asked_at IS 'When it was asked last.';
COMMENT ON COLUMN pricing.second_opinions.answered_at IS 'When it answered; NULL = not yet, or its caller was lost.';
COMMENT ON COLUMN pricing.second_opinions.observed_at IS 'The time of its value.';
COMMENT ON COLUMN pricing.second_opinions.value IS 'Its value; NULL = none.';
COMMENT ON COLUMN pricing.second_opinions.currency IS 'The currency, if it names one.';
COMMENT ON COLUMN pricing.second_opinions.failure IS 'Why it has no value.';
COMMENT ON COLUMN pricing.second_opinions.adjustment IS 'The basis of its value: raw or splits, as in price_history.';
COMMENT ON COLUMN pricing.second_opinions.ratio IS
    'The quarantined value divided by this one, on one basis (near 1 they agree); NULL = not comparable.';
CREATE INDEX second_opinions_call ON pricing.second_opinions (call_id);
CREATE INDEX second_opinions_recent ON pricing.second_opinions (answered_at) WHERE ratio IS NOT NULL;

-- ── Operations: what is to happen outside the database ──

CREATE TABLE pricing.operation_types (
    operation_type     text PRIMARY KEY
        CONSTRAINT operation_type_is_plain_name CHECK (operation_type ~ '^[a-z][a-z0-9_]{0,47}$'),
    description        text NOT NULL DEFAULT '',
    payload_fields     jsonb NOT NULL DEFAULT '{}'
        CONSTRAINT payload_fields_are_known CHECK (
            CASE WHEN jsonb_typeof(payload_fields) = 'object'
                 THEN NOT jsonb_path_exists(payload_fields,
                     'strict $.keyvalue() ? (!(@.key like_regex "^[A-Za-z_][A-Za-z0-9_]{0,47}$" '
                     '&& @.value.type() == "string" '
                     '&& @.value like_regex "^(string|number|boolean|object|array|url)[?]?$"))')
                 ELSE false END),
    max_attempts       smallint NOT NULL DEFAULT 3
        CONSTRAINT operation_attempts_are_sane CHECK (max_attempts BETWEEN 1 AND 20),
    time_limit_seconds smallint NOT NULL DEFAULT 30
        CONSTRAINT operation_time_limit_is_sane CHECK (time_limit_seconds BETWEEN 1 AND 240),
    first_pause        interval NOT NULL DEFAULT '00:05:00'
        CONSTRAINT first_pause_is_sane CHECK (first_pause BETWEEN '1 second' AND '1 day'),
    is_active          boolean NOT NULL DEFAULT true,
    is_built_in        boolean NOT NULL DEFAULT false,
    takes_messages     boolean NOT NULL GENERATED ALWAYS AS (
        CASE WHEN jsonb_typeof(payload_fields) = 'object'
             THEN payload_fields @> '{"recipient": "string", "title": "string", "body": "string"}'
                  AND coalesce(payload_fields -> 'data', '"object?"') = '"object?"'
                  AND NOT jsonb_path_exists(payload_fields - '{recipient,title,body,data}'::text[],
                                            'strict $.* ? (!(@ like_regex "[?]$"))')
             ELSE false END) STORED,
    CONSTRAINT operation_types_takes_messages UNIQUE (operation_type, takes_messages)
);
COMMENT ON TABLE pricing.operation_types IS
    'What can be queued to happen outside the database, and how often it is tried.';
COMMENT ON COLUMN pricing.operation_types.operation_type IS 'Its name, and that of its handler.';
COMMENT ON COLUMN pricing.operation_types.description IS 'For people.';
COMMENT ON COLUMN pricing.operation_types.payload_fields IS
    'The fields of a payload: string, number, boolean, object, array or url, optional with a ? at the end; others are '
    'refused.';
COMMENT ON COLUMN pricing.operation_types.max_attempts IS 'Attempts before it is dead; counted when it is claimed.';
COMMENT ON COLUMN pricing.operation_types.time_limit_seconds IS 'How long one attempt may take.';
COMMENT ON COLUMN pricing.operation_types.first_pause IS
    'Pause after the first failed attempt; it doubles with each further one.';
COMMENT ON COLUMN pricing.operation_types.is_active IS 'False = queued ones wait, and new ones are refused.';
COMMENT ON COLUMN pricing.operation_types.is_built_in IS
    'Whether the pipeline handles it; false = a handler of the user''s own.';
COMMENT ON COLUMN pricing.operation_types.takes_messages IS
    'Whether it can be a channel: it takes recipient, title and body, and needs nothing else.';
COMMENT ON INDEX pricing.operation_types_takes_messages IS 'Types that channels refer to.';
INSERT INTO pricing.operation_types
    (operation_type, description, max_attempts, time_limit_seconds, is_built_in, payload_fields)
VALUES
    ('email', 'Sends an e-mail to a recipient.', 3, 30, true,
        '{"recipient": "string", "title": "string", "body": "string"}'),
    ('sms', 'Sends a short message to a recipient''s telephone.', 3, 30, true,
        '{"recipient": "string", "title": "string", "body": "string"}'),
    ('chat', 'Sends a message to a recipient''s chat.', 3, 30, true,
        '{"recipient": "string", "title": "string", "body": "string"}'),
    ('webhook', 'Posts a signed message to a recipient''s URL.', 5, 30, true,
        '{"recipient": "string", "title": "string", "body": "string", "data": "object?"}'),
    ('log', 'Sends nothing: keeps what would have been sent.', 3, 30, true,
        '{"recipient": "string", "title": "string", "body": "string"}');

CREATE SEQUENCE pricing.operation_id_seq;
COMMENT ON SEQUENCE pricing.operation_id_seq IS 'Numbers side effects.';
CREATE TABLE pricing.async_operations (
    id              bigint NOT NULL DEFAULT nextval('pricing.operation_id_seq'),
    operation_type  text NOT NULL,
    payload         jsonb NOT NULL,
    idempotency_key uuid NOT NULL DEFAULT gen_random_uuid(),
    status          text NOT NULL DEFAULT 'pending',
    due_at          timestamptz NOT NULL,
    attempt         smallint NOT NULL DEFAULT 0,
    max_attempts    smallint NOT NULL,
    claim_token     uuid,
    claimed_at      timestamptz,
    lease_until     timestamptz,
    worker          text,
    enqueued_at     timestamptz NOT NULL,
    finished_at     timestamptz,
    errors          jsonb NOT NULL DEFAULT '[]',
    result          jsonb,
    recipient       text NOT NULL GENERATED ALWAYS AS (left(coalesce(payload ->> 'recipient', ''), 100)) STORED,
    priority        smallint NOT NULL DEFAULT 2 CONSTRAINT priority_is_known CHECK (priority BETWEEN 0 AND 2)
) PARTITION BY LIST (status);
COMMENT ON TABLE pricing.async_operations IS
    'Side effects, each to happen once outside the database; a repeat has the same idempotency key.';
COMMENT ON COLUMN pricing.async_operations.id IS 'Rises with each operation, over all states.';
COMMENT ON COLUMN pricing.async_operations.operation_type IS 'Its type.';
COMMENT ON COLUMN pricing.async_operations.payload IS 'Its data.';
COMMENT ON COLUMN pricing.async_operations.idempotency_key IS 'Reaches the receiver, the same in every attempt.';
COMMENT ON COLUMN pricing.async_operations.status IS 'pending, processing, completed, failed or cancelled.';
COMMENT ON COLUMN pricing.async_operations.due_at IS 'The earliest time of a claim.';
COMMENT ON COLUMN pricing.async_operations.attempt IS 'Attempts begun; a retry by hand begins anew.';
COMMENT ON COLUMN pricing.async_operations.max_attempts IS
    'Attempts before it is dead, by its type when it was queued.';
COMMENT ON COLUMN pricing.async_operations.claim_token IS 'The current claim, which alone may finish it.';
COMMENT ON COLUMN pricing.async_operations.claimed_at IS 'When the last attempt began.';
COMMENT ON COLUMN pricing.async_operations.lease_until IS 'When the attempt counts as lost.';
COMMENT ON COLUMN pricing.async_operations.worker IS 'Host and process of the last attempt.';
COMMENT ON COLUMN pricing.async_operations.enqueued_at IS 'When it was queued.';
COMMENT ON COLUMN pricing.async_operations.finished_at IS 'When it was completed, failed for good or cancelled.';
COMMENT ON COLUMN pricing.async_operations.errors IS 'All failed attempts: at, attempt, message.';
COMMENT ON COLUMN pricing.async_operations.result IS 'The result of the handler, if any.';
COMMENT ON COLUMN pricing.async_operations.recipient IS
    'The recipient that the payload names, whose messages wait in their own line; empty = none.';
COMMENT ON COLUMN pricing.async_operations.priority IS
    'Lower numbers are claimed first: 0 = P0, even in quiet hours and while the recipient fails; 1 = other alerts; 2 '
    '= the rest.';

CREATE TABLE pricing.async_operations_live PARTITION OF pricing.async_operations (
    PRIMARY KEY (id) WITH (fillfactor = 45),
    CONSTRAINT operation_has_its_columns CHECK (
        ((status = 'processing') = (claim_token IS NOT NULL))
        AND ((claim_token IS NULL) = (lease_until IS NULL)))
) FOR VALUES IN ('pending', 'processing')
    WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, fillfactor = 40);
COMMENT ON TABLE pricing.async_operations_live IS 'Operations that wait or are under way.';
CREATE INDEX operations_claimed ON pricing.async_operations_live (lease_until) WHERE status = 'processing';
COMMENT ON INDEX pricing.operations_claimed IS 'Attempts whose worker may be lost.';
CREATE INDEX operations_due ON pricing.async_operations_live (operation_type, recipient, priority, due_at, id)
    WHERE status = 'pending';
COMMENT ON INDEX pricing.operations_due IS 'The lines of waiting operations: by type, recipient and priority.';

CREATE TABLE pricing.async_operations_dead PARTITION OF pricing.async_operations (
    PRIMARY KEY (id),
    CONSTRAINT dead_operation_is_finished CHECK (finished_at IS NOT NULL)
) FOR VALUES IN ('failed', 'cancelled');
COMMENT ON TABLE pricing.async_operations_dead IS 'Operations that failed or were cancelled, with all their errors.';

CREATE TABLE pricing.async_operations_completed PARTITION OF pricing.async_operations (
    PRIMARY KEY (id),
    CONSTRAINT completed_operation_is_finished CHECK (finished_at IS NOT NULL)
) FOR VALUES IN ('completed');
COMMENT ON TABLE pricing.async_operations_completed IS
    'Operations that have happened; pruning deletes them after 14 days.';
CREATE INDEX operations_completed_at ON pricing.async_operations_completed (finished_at);
COMMENT ON INDEX pricing.operations_completed_at IS 'What pruning deletes.';

CREATE TABLE pricing.recipients (
    recipient      text PRIMARY KEY CONSTRAINT recipient_is_plain_name CHECK (recipient ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    channel        text NOT NULL,
    least_severity text DEFAULT 'P1' CONSTRAINT severity_is_known CHECK (least_severity IN ('P0', 'P1', 'P2')),
    quiet_from     time,
    quiet_until    time,
    -- A zone that is not known is refused here, before a message needs it.
    time_zone      text NOT NULL DEFAULT 'UTC'
        CONSTRAINT time_zone_is_known CHECK ('2000-01-01 00:00+00'::timestamptz AT TIME ZONE time_zone IS NOT NULL),
    allows_private boolean NOT NULL DEFAULT false,
    is_active      boolean NOT NULL DEFAULT true,
    created_at     timestamptz NOT NULL,
    row_version    bigint NOT NULL DEFAULT 0,
    master_key_id  text,
    key_nonce      bytea,
    wrapped_key    bytea,
    secret_nonce   bytea,
    ciphertext     bytea,
    takes_messages boolean NOT NULL GENERATED ALWAYS AS (true) STORED,
    user_id        text CONSTRAINT recipient_user_is_sane CHECK (length(user_id) BETWEEN 1 AND 200),
    takes_any_user boolean NOT NULL DEFAULT false,
    CONSTRAINT channel_takes_messages FOREIGN KEY (channel, takes_messages)
        REFERENCES pricing.operation_types(operation_type, takes_messages),
    CONSTRAINT quiet_hours_are_whole CHECK ((quiet_from IS NULL) = (quiet_until IS NULL) AND quiet_from <> quiet_until),
    CONSTRAINT recipient_has_address CHECK (
        (channel IN ('email', 'sms', 'chat', 'webhook')) = (ciphertext IS NOT NULL)
        AND num_nulls(master_key_id, key_nonce, wrapped_key, secret_nonce, ciphertext) IN (0, 5)),
    CONSTRAINT recipient_is_of_one_or_any CHECK (user_id IS NULL OR NOT takes_any_user),
    CONSTRAINT users_are_told_of_no_trouble CHECK ((least_severity IS NULL) = (user_id IS NOT NULL OR takes_any_user))
);
COMMENT ON TABLE pricing.recipients IS 'Recipients of messages, their channels, and when they are notified.';
COMMENT ON COLUMN pricing.recipients.recipient IS 'A name for people.';
COMMENT ON COLUMN pricing.recipients.channel IS
    'email, sms, chat, webhook, log, which sends nothing, or an operation type of the user''s own that takes '
    'messages.';
COMMENT ON COLUMN pricing.recipients.least_severity IS
    'P0 = only alerts of P0; P1 = of P0 and P1; P2 = all; NULL = none, because it is for users.';
COMMENT ON COLUMN pricing.recipients.quiet_from IS
    'Messages that are not P0 wait from then, by the recipient''s time zone; NULL = never.';
COMMENT ON COLUMN pricing.recipients.quiet_until IS '... until then.';
COMMENT ON COLUMN pricing.recipients.time_zone IS 'IANA zone of the quiet hours.';
COMMENT ON COLUMN pricing.recipients.allows_private IS 'Whether the address may be in a private network.';
COMMENT ON COLUMN pricing.recipients.is_active IS 'False = nothing is queued for it.';
COMMENT ON COLUMN pricing.recipients.created_at IS 'When it was added.';
COMMENT ON COLUMN pricing.recipients.row_version IS 'Rises with each change of the address; bound to the ciphertext.';
COMMENT ON COLUMN pricing.recipients.master_key_id IS 'The master key that sealed the address.';
COMMENT ON COLUMN pricing.recipients.key_nonce IS 'Nonce of the wrapped data key.';
COMMENT ON COLUMN pricing.recipients.wrapped_key IS 'Data key, sealed by the master key.';
COMMENT ON COLUMN pricing.recipients.secret_nonce IS 'Nonce of the ciphertext.';
COMMENT ON COLUMN pricing.recipients.ciphertext IS
    'Address, and secret of a webhook, as JSON, sealed by the data key; NULL for log and channels of the user''s own.';
COMMENT ON COLUMN pricing.recipients.takes_messages IS
    'Always true: the channel must be an operation type that takes messages.';
COMMENT ON COLUMN pricing.recipients.user_id IS 'The user whose price alerts it gets; NULL = no single one.';
COMMENT ON COLUMN pricing.recipients.takes_any_user IS
    'Whether it gets price alerts of any user, as an application''s does.';

CREATE TABLE pricing.failing_recipients (
    operation_type   text NOT NULL,
    recipient        text NOT NULL,
    since            timestamptz NOT NULL,
    failed_at        timestamptz NOT NULL,
    failures         integer NOT NULL DEFAULT 0,
    breaker_openings integer NOT NULL DEFAULT 0,
    breaker_until    timestamptz,
    is_dead          boolean NOT NULL DEFAULT false,
    last_error       text NOT NULL DEFAULT '',
    PRIMARY KEY (operation_type, recipient)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.failing_recipients IS
    'Recipients whose last attempt failed, until the next success; after three failures in a row the breaker opens, '
    'and their messages wait.';
COMMENT ON COLUMN pricing.failing_recipients.operation_type IS
    'The channel, or another operation type whose payload names the recipient.';
COMMENT ON COLUMN pricing.failing_recipients.recipient IS 'The recipient that cannot be reached.';
COMMENT ON COLUMN pricing.failing_recipients.since IS 'When the first of these attempts failed.';
COMMENT ON COLUMN pricing.failing_recipients.failed_at IS 'When the last of them failed.';
COMMENT ON COLUMN pricing.failing_recipients.failures IS 'How many attempts have failed in a row.';
COMMENT ON COLUMN pricing.failing_recipients.breaker_openings IS
    'How often the breaker has opened since the first failure, each time for twice as long, up to 16 minutes.';
COMMENT ON COLUMN pricing.failing_recipients.breaker_until IS
    'Until when only P0 is attempted; NULL = the breaker has not opened.';
COMMENT ON COLUMN pricing.failing_recipients.is_dead IS
    'Whether the recipient counts as unreachable: a message was given up, or three attempts failed.';
COMMENT ON COLUMN pricing.failing_recipients.last_error IS 'Why the last attempt failed.';

-- ── Alerts of trouble and of prices ──

CREATE TABLE pricing.alerts (
    alert_id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule            text NOT NULL CONSTRAINT rule_is_plain_name CHECK (rule ~ '^[a-z][a-z0-9_]{0,47}$'),
    subject         text NOT NULL,
    severity        text NOT NULL CONSTRAINT alert_severity_is_known CHECK (severity IN ('P0', 'P1', 'P2')),
    says            text NOT NULL,
    is_repeated     boolean NOT NULL DEFAULT true,
    since           timestamptz NOT NULL,
    last_seen_at    timestamptz NOT NULL,
    raised_at       timestamptz,
    told_at         timestamptz,
    resolved_at     timestamptz,
    end_told_at     timestamptz,
    acknowledged_at timestamptz,
    acknowledged_by text,
    newest_at       timestamptz,
    told_newest_at  timestamptz,
    message_ids     bigint[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.alerts IS 'Trouble that was found: its subject, its beginning and end, and who was told.';
COMMENT ON COLUMN pricing.alerts.alert_id IS 'Numbers alerts in order.';
COMMENT ON COLUMN pricing.alerts.rule IS 'The rule that found it; docs/runbook.md has a section for each.';
COMMENT ON COLUMN pricing.alerts.subject IS 'What it is about, such as a provider or data type.';
COMMENT ON COLUMN pricing.alerts.severity IS 'P0 = repeated each hour, P1 = each day, P2 = in a daily digest.';
COMMENT ON COLUMN pricing.alerts.says IS 'What was found, in words, as it was last seen.';
COMMENT ON COLUMN pricing.alerts.is_repeated IS 'Whether recipients are told again while it lasts.';
COMMENT ON COLUMN pricing.alerts.since IS 'When it was first seen.';
COMMENT ON COLUMN pricing.alerts.last_seen_at IS 'When it was last seen.';
COMMENT ON COLUMN pricing.alerts.raised_at IS 'When it had lasted as long as its rule asks; NULL = not yet.';
COMMENT ON COLUMN pricing.alerts.told_at IS 'When recipients were last told.';
COMMENT ON COLUMN pricing.alerts.resolved_at IS 'When it was over; NULL = it is not.';
COMMENT ON COLUMN pricing.alerts.end_told_at IS 'When recipients were told that it was over.';
COMMENT ON COLUMN pricing.alerts.acknowledged_at IS 'When somebody acknowledged it: it is no longer repeated.';
COMMENT ON COLUMN pricing.alerts.acknowledged_by IS 'Who acknowledged it.';
COMMENT ON COLUMN pricing.alerts.newest_at IS 'When the newest event of it happened; NULL = its rule counts no events.';
COMMENT ON COLUMN pricing.alerts.told_newest_at IS
    'newest_at when recipients were last told; newer events are told, too.';
COMMENT ON COLUMN pricing.alerts.message_ids IS 'The last fifty operations that told recipients of it or of its end.';
CREATE UNIQUE INDEX alerts_open ON pricing.alerts (rule, subject) WHERE resolved_at IS NULL;
COMMENT ON INDEX pricing.alerts_open IS 'One open alert of a rule for each subject.';
CREATE INDEX alerts_resolved_at ON pricing.alerts (resolved_at) WHERE resolved_at IS NOT NULL;
COMMENT ON INDEX pricing.alerts_resolved_at IS 'What pruning deletes.';

CREATE TABLE pricing.alert_silences (
    silence_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule        text NOT NULL,
    subject     text,
    until       timestamptz NOT NULL,
    silenced_by text NOT NULL,
    because     text,
    created_at  timestamptz NOT NULL
);
COMMENT ON TABLE pricing.alert_silences IS 'Alerts that are not told for a while.';
COMMENT ON COLUMN pricing.alert_silences.silence_id IS 'In the order in which they were made.';
COMMENT ON COLUMN pricing.alert_silences.rule IS 'Alerts of this rule.';
COMMENT ON COLUMN pricing.alert_silences.subject IS 'Only those about this subject; NULL = all.';
COMMENT ON COLUMN pricing.alert_silences.until IS 'When the silence ends.';
COMMENT ON COLUMN pricing.alert_silences.silenced_by IS 'Who made it.';
COMMENT ON COLUMN pricing.alert_silences.because IS 'Why.';
COMMENT ON COLUMN pricing.alert_silences.created_at IS 'When it was made.';

CREATE TABLE pricing.price_alerts (
    price_alert_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recipient       text NOT NULL REFERENCES pricing.recipients(recipient) ON DELETE CASCADE,
    data_type       text NOT NULL REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    symbol          text,
    condition       text NOT NULL
        CONSTRAINT price_condition_is_known CHECK (condition IN ('above', 'below', 'moved', 'stale', 'each')),
    threshold       numeric
        CONSTRAINT threshold_is_positive CHECK (threshold > 0 AND threshold <= 1e18 AND scale(threshold) <= 12),
    lasts           interval CONSTRAINT lasts_is_sane CHECK (lasts BETWEEN '1 minute' AND '30 days'),
    pace            interval CONSTRAINT pace_is_sane CHECK (pace BETWEEN '1 second' AND '1 hour'),
    is_beyond       boolean NOT NULL DEFAULT false,
    seen            numeric,
    seen_at         timestamptz,
    reference       numeric,
    reference_at    timestamptz,
    told_at         timestamptz,
    created_at      timestamptz NOT NULL,
    created_by      text NOT NULL,
    user_id         text CONSTRAINT price_alert_user_is_sane CHECK (length(user_id) BETWEEN 1 AND 200),
    is_caught_up    boolean NOT NULL DEFAULT false,
    caught_up_after xid8,
    hysteresis      numeric NOT NULL DEFAULT 0
        CONSTRAINT hysteresis_is_sane CHECK (hysteresis >= 0 AND hysteresis <= 1e18 AND scale(hysteresis) <= 12),
    hysteresis_in   text NOT NULL DEFAULT 'amount'
        CONSTRAINT hysteresis_unit_is_known CHECK (hysteresis_in IN ('amount', 'percent')),
    CONSTRAINT a_user_is_told_once_a_minute CHECK (user_id IS NULL OR pace IS NULL OR pace >= interval '1 minute'),
    CONSTRAINT a_user_names_a_symbol CHECK (user_id IS NULL OR symbol IS NOT NULL),
    CONSTRAINT hysteresis_leaves_a_way_back CHECK (
        hysteresis = 0
        OR CASE hysteresis_in WHEN 'percent' THEN hysteresis < 100
                              ELSE condition <> 'above' OR hysteresis < threshold END),
    CONSTRAINT only_each_is_of_all_symbols CHECK (symbol IS NOT NULL OR condition = 'each'),
    CONSTRAINT only_thresholds_have_hysteresis CHECK (hysteresis = 0 OR condition IN ('above', 'below')),
    CONSTRAINT price_condition_has_its_values CHECK (
        (condition IN ('above', 'below', 'moved')) = (threshold IS NOT NULL)
        AND (condition = 'stale') = (lasts IS NOT NULL)
        AND (condition = 'each') = (pace IS NOT NULL)),
    CONSTRAINT seen_price_has_time CHECK (
        (seen IS NULL) = (seen_at IS NULL)
        AND (reference IS NULL) = (reference_at IS NULL))
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.price_alerts IS 'Price alerts: what each waits for, and what it last saw and told.';
COMMENT ON COLUMN pricing.price_alerts.price_alert_id IS 'In the order in which they were added.';
COMMENT ON COLUMN pricing.price_alerts.recipient IS 'The recipient.';
COMMENT ON COLUMN pricing.price_alerts.data_type IS 'The data type of the prices.';
COMMENT ON COLUMN pricing.price_alerts.symbol IS 'The symbol; NULL = all symbols of the data type.';
COMMENT ON COLUMN pricing.price_alerts.condition IS
    'above, below = the price crosses the threshold; moved = by so many percent; stale = for so long; each = every '
    'new price.';
COMMENT ON COLUMN pricing.price_alerts.threshold IS 'A price, or for moved a percentage.';
COMMENT ON COLUMN pricing.price_alerts.lasts IS 'How long a pair must be stale before it is told.';
COMMENT ON COLUMN pricing.price_alerts.pace IS 'New prices are told together, at most once in this time.';
COMMENT ON COLUMN pricing.price_alerts.is_beyond IS
    'Whether the last price was beyond the threshold, or the pair was stale for too long: that was told.';
COMMENT ON COLUMN pricing.price_alerts.seen IS 'The last price that was judged; NULL = none yet.';
COMMENT ON COLUMN pricing.price_alerts.seen_at IS 'Its time at the source.';
COMMENT ON COLUMN pricing.price_alerts.reference IS 'For moved, the price from which the move counts.';
COMMENT ON COLUMN pricing.price_alerts.reference_at IS 'Its time at the source.';
COMMENT ON COLUMN pricing.price_alerts.told_at IS 'When its recipient was last told.';
COMMENT ON COLUMN pricing.price_alerts.created_at IS 'When it was added.';
COMMENT ON COLUMN pricing.price_alerts.created_by IS 'Who added it.';
COMMENT ON COLUMN pricing.price_alerts.user_id IS
    'The user who asked for it over HTTP; NULL = added with the command line.';
COMMENT ON COLUMN pricing.price_alerts.is_caught_up IS
    'Whether every price stored or being stored when the alert was added has been judged; until then each look '
    'includes the latest price.';
COMMENT ON COLUMN pricing.price_alerts.caught_up_after IS
    'The transaction before which all must have ended for the alert to be caught up; NULL = not looked at yet.';
COMMENT ON COLUMN pricing.price_alerts.hysteresis IS
    'How far beyond the threshold a price must come back before a crossing is told again; 0 = to the threshold.';
COMMENT ON COLUMN pricing.price_alerts.hysteresis_in IS
    'What hysteresis is: an amount of the price, or percent of the threshold.';
CREATE INDEX price_alerts_of_pair ON pricing.price_alerts (data_type, symbol);
COMMENT ON INDEX pricing.price_alerts_of_pair IS 'What asks for a price that is being stored.';
CREATE INDEX price_alerts_of_user ON pricing.price_alerts (user_id, price_alert_id) WHERE user_id IS NOT NULL;
CREATE UNIQUE INDEX price_alerts_once
    ON pricing.price_alerts (recipient, data_type, symbol, condition, threshold, lasts, user_id) NULLS NOT DISTINCT;

CREATE TABLE pricing.price_events (
    event_id       bigint GENERATED ALWAYS AS IDENTITY,
    -- No reference: a price would wait for the session that has the alert's row locked.
    price_alert_id bigint NOT NULL,
    symbol         text NOT NULL,
    amount         bigint NOT NULL,
    scale          smallint NOT NULL,
    currency       text,
    observed_at    timestamptz NOT NULL,
    provider       text NOT NULL,
    call_id        bigint NOT NULL,
    stored_at      timestamptz NOT NULL,
    PRIMARY KEY (price_alert_id, event_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE pricing.price_events IS
    'New prices that an alert has not judged yet, a row for each price and alert, added in the transaction that '
    'stores the price.';
COMMENT ON COLUMN pricing.price_events.event_id IS 'Rises; for a pair in the order of storage.';
COMMENT ON COLUMN pricing.price_events.price_alert_id IS 'The alert.';
COMMENT ON COLUMN pricing.price_events.symbol IS 'The symbol whose price it is.';
COMMENT ON COLUMN pricing.price_events.amount IS 'The price in units of its last decimal.';
COMMENT ON COLUMN pricing.price_events.scale IS 'How many decimals the price has.';
COMMENT ON COLUMN pricing.price_events.currency IS 'NULL = the provider named none.';
COMMENT ON COLUMN pricing.price_events.observed_at IS 'The price''s time at the source.';
COMMENT ON COLUMN pricing.price_events.provider IS 'The provider that sent it.';
COMMENT ON COLUMN pricing.price_events.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.price_events.stored_at IS 'When it was stored.';

-- ── Health: duties, warnings, signs of life ──

CREATE TABLE pricing.duties (
    duty            text PRIMARY KEY,
    last_success_at timestamptz,
    last_failure_at timestamptz,
    last_error      text,
    not_before      timestamptz
);
COMMENT ON TABLE pricing.duties IS
    'When each duty last succeeded and failed; the row of follow_clock has when the clock was last checked: a future '
    'time means that it was set back.';
COMMENT ON COLUMN pricing.duties.duty IS 'The function''s name.';
COMMENT ON COLUMN pricing.duties.last_success_at IS 'NULL = never yet.';
COMMENT ON COLUMN pricing.duties.last_failure_at IS 'NULL = never yet.';
COMMENT ON COLUMN pricing.duties.last_error IS 'Why it last failed, in the database''s words.';
COMMENT ON COLUMN pricing.duties.not_before IS
    'It is not run before, because the clock was set forward or the pipeline was off for days, and what it deletes '
    'cannot be restored.';

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

CREATE TABLE pricing.warning_counts (
    since        timestamptz NOT NULL,
    source       text NOT NULL,
    subject      text NOT NULL,
    sqlstate     text NOT NULL,
    times        bigint NOT NULL CONSTRAINT warnings_are_counted CHECK (times > 0),
    last_at      timestamptz NOT NULL,
    last_message text NOT NULL,
    PRIMARY KEY (since, source, subject, sqlstate)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.warning_counts IS
    'Warnings and notices of PostgreSQL by cause and ten minutes, counted outside the transactions that raised them.';
COMMENT ON COLUMN pricing.warning_counts.since IS 'When the ten minutes began in which they were written down.';
COMMENT ON COLUMN pricing.warning_counts.source IS 'The function that warned; postgresql = PostgreSQL itself.';
COMMENT ON COLUMN pricing.warning_counts.subject IS 'What it is about; of PostgreSQL''s own ones, WARNING or NOTICE.';
COMMENT ON COLUMN pricing.warning_counts.sqlstate IS 'The code of the error behind it; empty = none.';
COMMENT ON COLUMN pricing.warning_counts.times IS 'How often it was raised.';
COMMENT ON COLUMN pricing.warning_counts.last_at IS 'When the last one was raised.';
COMMENT ON COLUMN pricing.warning_counts.last_message IS 'What the last one said.';

CREATE TABLE pricing.signs_of_life (
    part          text PRIMARY KEY,
    began_at      timestamptz NOT NULL,
    ended_at      timestamptz,
    seconds       double precision,
    times         bigint NOT NULL DEFAULT 0,
    total_seconds double precision NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.signs_of_life IS
    'Parts that work again and again, such as sensors and the staleness check, and the start of the pipeline.';
COMMENT ON COLUMN pricing.signs_of_life.part IS
    'A sensor''s name; enqueue_due = the staleness check; look_for_alerts and send_messages = the notifiers; start = '
    'the last start of the pipeline, or the end of a time when nothing ran.';
COMMENT ON COLUMN pricing.signs_of_life.began_at IS 'When it last began.';
COMMENT ON COLUMN pricing.signs_of_life.ended_at IS 'When it last succeeded; NULL = never yet.';
COMMENT ON COLUMN pricing.signs_of_life.seconds IS 'How long that took.';
COMMENT ON COLUMN pricing.signs_of_life.times IS 'How often it has succeeded.';
COMMENT ON COLUMN pricing.signs_of_life.total_seconds IS 'How long that took in all.';

CREATE TABLE pricing.dagster_failures (
    kind      text NOT NULL
        CONSTRAINT dagster_failure_kind_is_known CHECK (kind IN ('run', 'tick', 'location', 'sensor')),
    name      text NOT NULL,
    run_id    text,
    reason    text NOT NULL,
    failed_at timestamptz NOT NULL,
    PRIMARY KEY (kind, name)
);
COMMENT ON TABLE pricing.dagster_failures IS
    'What fails in Dagster now: the sensor note_failures writes jobs, sensors and schedules, the daemon of `up` code '
    'locations that do not load and sensors that never worked.';
COMMENT ON COLUMN pricing.dagster_failures.kind IS
    'run = a job, or the assets of a run without one; tick = a sensor or schedule; location = a code location; sensor '
    '= a sensor that has not worked since its location was loaded.';
COMMENT ON COLUMN pricing.dagster_failures.name IS
    'The job, sensor, schedule or code location, or the assets of a run.';
COMMENT ON COLUMN pricing.dagster_failures.run_id IS 'The run that failed; NULL for all others.';
COMMENT ON COLUMN pricing.dagster_failures.reason IS 'The first line of the error, or what the sensor waits for.';
COMMENT ON COLUMN pricing.dagster_failures.failed_at IS
    'When the run failed, or when something else was first seen to fail.';

-- ── Live streams, and what has changed ──

CREATE TABLE pricing.stream_head (
    is_only   boolean DEFAULT true PRIMARY KEY CONSTRAINT head_is_only_one CHECK (is_only),
    position  bigint NOT NULL DEFAULT 0,
    kept_from bigint NOT NULL DEFAULT 0,
    log_id    uuid NOT NULL DEFAULT gen_random_uuid(),
    CONSTRAINT head_is_upright CHECK (0 <= kept_from AND kept_from <= position)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.stream_head IS
    'How far the log of live streams goes; only the session that locks its row looks for changes, so positions follow '
    'the order of commits.';
COMMENT ON COLUMN pricing.stream_head.is_only IS 'Always true, so that there is only one row.';
COMMENT ON COLUMN pricing.stream_head.position IS
    'Of the last event; positions have no gaps but where pairs were forgotten.';
COMMENT ON COLUMN pricing.stream_head.kept_from IS 'Events up to this position are deleted.';
COMMENT ON COLUMN pricing.stream_head.log_id IS
    'The id of this log among all databases; with the table''s number, which a restore changes, it is part of '
    'clients'' event ids.';
INSERT INTO pricing.stream_head (log_id) VALUES
    ('1d63cd61-4dc3-4471-94ad-a068f99a2ec5');

CREATE TABLE pricing.streamed_pairs (
    data_type      text NOT NULL,
    symbol         text NOT NULL,
    since_position bigint NOT NULL,
    wanted_until   timestamptz NOT NULL,
    judge_at       timestamptz NOT NULL,
    amount         bigint,
    scale          smallint,
    currency       text,
    observed_at    timestamptz,
    fetched_at     timestamptz,
    provider       text,
    verdict        text,
    state          text,
    sentence       text,
    since          timestamptz,
    next_at        timestamptz,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 50);
COMMENT ON TABLE pricing.streamed_pairs IS
    'Pairs that a live stream shows, or showed within a quarter of an hour, as last told.';
COMMENT ON COLUMN pricing.streamed_pairs.data_type IS 'Its data type.';
COMMENT ON COLUMN pricing.streamed_pairs.symbol IS 'Its symbol.';
COMMENT ON COLUMN pricing.streamed_pairs.since_position IS 'The log has all its events after this position.';
COMMENT ON COLUMN pricing.streamed_pairs.wanted_until IS 'When it is forgotten; a stream that shows it extends this.';
COMMENT ON COLUMN pricing.streamed_pairs.judge_at IS 'When its freshness is judged next; -infinity = never judged.';
COMMENT ON COLUMN pricing.streamed_pairs.amount IS 'The price in units of its last decimal; NULL = it has none.';
COMMENT ON COLUMN pricing.streamed_pairs.scale IS 'How many decimals the price has.';
COMMENT ON COLUMN pricing.streamed_pairs.currency IS 'NULL = the provider named none.';
COMMENT ON COLUMN pricing.streamed_pairs.observed_at IS 'The price''s time at the source.';
COMMENT ON COLUMN pricing.streamed_pairs.fetched_at IS 'When a provider last confirmed it.';
COMMENT ON COLUMN pricing.streamed_pairs.provider IS 'The provider that sent it.';
COMMENT ON COLUMN pricing.streamed_pairs.verdict IS
    'What pricing.verdict_on says of the price, five seconds later; NULL = it has none.';
COMMENT ON COLUMN pricing.streamed_pairs.state IS 'Why it is not fresh, in one word of pricing.why_old; NULL = it is.';
COMMENT ON COLUMN pricing.streamed_pairs.sentence IS 'The same in a sentence.';
COMMENT ON COLUMN pricing.streamed_pairs.since IS 'Since when that is so.';
COMMENT ON COLUMN pricing.streamed_pairs.next_at IS 'When that may change.';

CREATE TABLE pricing.stream_events (
    position     bigint PRIMARY KEY,
    noted_at     timestamptz NOT NULL,
    data_type    text NOT NULL,
    symbol       text NOT NULL,
    is_new_price boolean NOT NULL,
    amount       bigint,
    scale        smallint,
    currency     text,
    observed_at  timestamptz,
    fetched_at   timestamptz,
    provider     text,
    verdict      text,
    state        text,
    sentence     text,
    since        timestamptz,
    next_at      timestamptz
);
COMMENT ON TABLE pricing.stream_events IS
    'Changes of streamed pairs, kept ten minutes (at most 100,000 events), from which a broken stream resumes.';
COMMENT ON COLUMN pricing.stream_events.position IS
    'Rises in the order of commits, and for a pair in the order of its prices.';
COMMENT ON COLUMN pricing.stream_events.noted_at IS 'When it was logged.';
COMMENT ON COLUMN pricing.stream_events.data_type IS 'What changed: its data type.';
COMMENT ON COLUMN pricing.stream_events.symbol IS 'Its symbol.';
COMMENT ON COLUMN pricing.stream_events.is_new_price IS
    'Whether the price is new; false = only its freshness or the reason.';
COMMENT ON COLUMN pricing.stream_events.amount IS 'The price in units of its last decimal; NULL = it has none.';
COMMENT ON COLUMN pricing.stream_events.scale IS 'How many decimals the price has.';
COMMENT ON COLUMN pricing.stream_events.currency IS 'NULL = the provider named none.';
COMMENT ON COLUMN pricing.stream_events.observed_at IS 'The price''s time at the source.';
COMMENT ON COLUMN pricing.stream_events.fetched_at IS 'When a provider last confirmed it.';
COMMENT ON COLUMN pricing.stream_events.provider IS 'The provider that sent it.';
COMMENT ON COLUMN pricing.stream_events.verdict IS 'What pricing.verdict_on says of the price; NULL = it has none.';
COMMENT ON COLUMN pricing.stream_events.state IS 'Why it is not, in one word; NULL = it is.';
COMMENT ON COLUMN pricing.stream_events.sentence IS 'The same in a sentence.';
COMMENT ON COLUMN pricing.stream_events.since IS 'Since when that is so.';
COMMENT ON COLUMN pricing.stream_events.next_at IS 'When that may change.';

CREATE TABLE pricing.data_changes (
    data_type text NOT NULL,
    month     date NOT NULL,
    changes   bigint NOT NULL
);
COMMENT ON TABLE pricing.data_changes IS
    'Changes of stored data without a number yet, a row for each call and month, which pricing.number_changes moves '
    'to data_versions.';
COMMENT ON COLUMN pricing.data_changes.data_type IS 'Whose data changed.';
COMMENT ON COLUMN pricing.data_changes.month IS
    'First day of the UTC month whose history changed; -infinity = the latest values changed.';
COMMENT ON COLUMN pricing.data_changes.changes IS 'How many values were added, changed or taken out.';

CREATE TABLE pricing.data_versions (
    data_type text NOT NULL REFERENCES pricing.data_type_registry(data_type) ON UPDATE CASCADE ON DELETE CASCADE,
    month     date NOT NULL,
    version   bigint NOT NULL,
    changes   bigint NOT NULL,
    PRIMARY KEY (data_type, month)
);
COMMENT ON TABLE pricing.data_versions IS
    'The version of the stored data of each type and month, rising in the order of commits over all rows.';
COMMENT ON COLUMN pricing.data_versions.data_type IS 'Whose data it is.';
COMMENT ON COLUMN pricing.data_versions.month IS 'As in data_changes.';
COMMENT ON COLUMN pricing.data_versions.version IS
    'Number of the last change: milliseconds since 1970, or one more than the one before; Dagster''s data version.';
COMMENT ON COLUMN pricing.data_versions.changes IS 'How many values were ever added, changed or taken out.';
CREATE INDEX data_versions_in_order ON pricing.data_versions (version);

-- ── Tokens of the HTTP API ──

CREATE TABLE pricing.api_tokens (
    token_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL CONSTRAINT token_name_is_sane CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,47}$'),
    secret_hash  bytea NOT NULL CONSTRAINT token_is_hashed CHECK (octet_length(secret_hash) = 32),
    scopes       text[] NOT NULL
        CONSTRAINT token_scopes_are_known CHECK (scopes <@ ARRAY['read', 'watch', 'operate', 'admin']),
    user_id      text CONSTRAINT user_is_sane CHECK (length(user_id) BETWEEN 1 AND 200),
    created_at   timestamptz NOT NULL DEFAULT pricing.clock(),
    last_used_at timestamptz,
    expires_at   timestamptz,
    is_feed      boolean NOT NULL DEFAULT false,
    list         text CONSTRAINT only_a_users_feed_has_a_list CHECK (list IS NULL OR (is_feed AND user_id IS NOT NULL)),
    CONSTRAINT feed_has_no_scope CHECK (is_feed = (cardinality(scopes) = 0)),
    UNIQUE (name),
    UNIQUE (secret_hash)
);
COMMENT ON TABLE pricing.api_tokens IS 'Tokens of the HTTP API, each shown once when it is made and stored nowhere.';
COMMENT ON COLUMN pricing.api_tokens.token_id IS 'Number of the token.';
COMMENT ON COLUMN pricing.api_tokens.name IS 'Its name for people.';
COMMENT ON COLUMN pricing.api_tokens.secret_hash IS 'SHA-256 of the token, which has 256 random bits.';
COMMENT ON COLUMN pricing.api_tokens.scopes IS
    'What it allows: read (prices and history), watch (heartbeats and holdings), operate (queue, quarantine, '
    'backfills, alerts), admin (all of these).';
COMMENT ON COLUMN pricing.api_tokens.user_id IS
    'The user that it acts for; NULL = an application that names the user in each request.';
COMMENT ON COLUMN pricing.api_tokens.created_at IS 'When it was made.';
COMMENT ON COLUMN pricing.api_tokens.last_used_at IS 'When a request last came with it, to the minute.';
COMMENT ON COLUMN pricing.api_tokens.expires_at IS 'When it expires; NULL = never.';
COMMENT ON COLUMN pricing.api_tokens.is_feed IS
    'Whether it only reads prices and histories of its feed_pairs, and may be in a URL; it has no scope then.';

COMMENT ON COLUMN pricing.api_tokens.list IS 'The list of its user that the feed reads, in place of feed_pairs.';

CREATE TABLE pricing.feed_pairs (
    token_id  bigint NOT NULL REFERENCES pricing.api_tokens(token_id) ON DELETE CASCADE,
    data_type text NOT NULL REFERENCES pricing.data_type_registry(data_type) ON DELETE CASCADE,
    symbol    text NOT NULL,
    PRIMARY KEY (token_id, data_type, symbol)
);
COMMENT ON TABLE pricing.feed_pairs IS 'What a token for a feed reads.';
COMMENT ON COLUMN pricing.feed_pairs.token_id IS 'The token.';
COMMENT ON COLUMN pricing.feed_pairs.data_type IS 'Data type of prices.';
COMMENT ON COLUMN pricing.feed_pairs.symbol IS 'Symbol of the instrument.';

COMMENT ON TABLE pricing.alembic_version IS 'Which migrations the database has had.';
COMMENT ON COLUMN pricing.alembic_version.version_num IS 'The last migration that was run.';

-- ── Types and views that functions share ──

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
    after_urgency  integer,
    after_cadence  integer,
    after_id       bigint,
    most_listed    integer,
    claims         bigint,
    at             timestamptz,
    change         bigint,
    horizon        xid8
);
COMMENT ON TYPE pricing.call_allowance IS
    'What a provider allows a claim: the key, its units and bytes, how many calls and tasks.';
COMMENT ON COLUMN pricing.call_allowance.key_name IS 'The key with the most room; NULL = no call is allowed.';
COMMENT ON COLUMN pricing.call_allowance.units_left IS 'Units that the key may be charged now.';
COMMENT ON COLUMN pricing.call_allowance.bytes_used IS 'Bytes of the last 720 hours, calls in flight included.';
COMMENT ON COLUMN pricing.call_allowance.quota_bytes IS 'Bytes allowed in 720 hours.';
COMMENT ON COLUMN pricing.call_allowance.is_probe IS 'The call decides whether the breaker closes.';
COMMENT ON COLUMN pricing.call_allowance.is_single IS
    'Whether only one call may be made at a time: a probe, after a refusal, with a delay between calls, or at '
    'max_in_flight 1.';
COMMENT ON COLUMN pricing.call_allowance.most_calls IS 'Calls that the claim may plan.';
COMMENT ON COLUMN pricing.call_allowance.most_tasks IS 'Tasks worth locking for them.';
COMMENT ON COLUMN pricing.call_allowance.units_limit IS
    'Units that the key''s narrowest limit allows in its window; NULL = no limit.';
COMMENT ON COLUMN pricing.call_allowance.is_scarce IS 'Some data type costs more units than are left.';
COMMENT ON COLUMN pricing.call_allowance.before_urgency IS
    'The -priority of the task that units are saved for; only tasks before it are picked.';
COMMENT ON COLUMN pricing.call_allowance.before_cadence IS 'That task''s cadence in minutes.';
COMMENT ON COLUMN pricing.call_allowance.before_id IS 'That task''s id.';
COMMENT ON COLUMN pricing.call_allowance.after_urgency IS
    'The -priority of a place with no task before it, where picking begins.';
COMMENT ON COLUMN pricing.call_allowance.after_cadence IS 'That place''s cadence in minutes.';
COMMENT ON COLUMN pricing.call_allowance.after_id IS 'That place''s id.';
COMMENT ON COLUMN pricing.call_allowance.most_listed IS
    'Tasks worth locking where lists of latest prices (batch_from) may serve them; 0 = no list.';
COMMENT ON COLUMN pricing.call_allowance.claims IS 'Claims before this one.';
COMMENT ON COLUMN pricing.call_allowance.at IS 'When this was found, the time of the claim.';
COMMENT ON COLUMN pricing.call_allowance.change IS 'As queue_change of provider_state.';
COMMENT ON COLUMN pricing.call_allowance.horizon IS 'As change_horizon of provider_state.';

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
COMMENT ON TYPE pricing.picked_task IS 'A pending task that a claim has locked.';
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
COMMENT ON COLUMN pricing.picked_task.parts IS 'By how much refusals of whole batches have shrunk its calls.';

CREATE TYPE pricing.due_pair AS (
    place     tid,
    symbol    text,
    is_owed   boolean,
    viewers   integer,
    is_paused boolean,
    is_held   boolean,
    stamp     timestamptz,
    ttl       integer,
    is_stale  boolean
);
COMMENT ON TYPE pricing.due_pair IS 'A due pair whose row of demand a staleness check has locked.';
COMMENT ON COLUMN pricing.due_pair.place IS 'Where its row of demand is (ctid), by which it is updated.';
COMMENT ON COLUMN pricing.due_pair.symbol IS 'As in demand.';
COMMENT ON COLUMN pricing.due_pair.is_owed IS 'Whether trouble keeps its price away.';
COMMENT ON COLUMN pricing.due_pair.viewers IS 'How many users watch it; a reader counts as one until it is served.';
COMMENT ON COLUMN pricing.due_pair.is_paused IS 'Whether its instrument is paused.';
COMMENT ON COLUMN pricing.due_pair.is_held IS 'Whether it is held, unwatched, and not paused.';
COMMENT ON COLUMN pricing.due_pair.stamp IS 'When its price was last confirmed; NULL = it has none.';
COMMENT ON COLUMN pricing.due_pair.ttl IS 'How many minutes its price stays fresh.';
COMMENT ON COLUMN pricing.due_pair.is_stale IS
    'The verdict of a user''s staleness function; NULL = the time of the price and the TTL decide.';

CREATE TYPE pricing.provider_stop AS (
    provider    text,
    state       text,
    sentence    text,
    next_at     timestamptz,
    used_bytes  bigint,
    quota_bytes bigint
);
COMMENT ON TYPE pricing.provider_stop IS
    'Why a provider may not be asked for anything now, and how much of its quota is used.';
COMMENT ON COLUMN pricing.provider_stop.provider IS 'The provider.';
COMMENT ON COLUMN pricing.provider_stop.state IS
    'provider_off, breaker_open, key_refused, throttled or rate_limited; NULL = it may be asked if its quota has '
    'room.';
COMMENT ON COLUMN pricing.provider_stop.sentence IS 'The same as a sentence.';
COMMENT ON COLUMN pricing.provider_stop.next_at IS 'When that ends, if known.';
COMMENT ON COLUMN pricing.provider_stop.used_bytes IS
    'Used bytes of its quota; NULL = it is not asked, whatever is left.';
COMMENT ON COLUMN pricing.provider_stop.quota_bytes IS 'Its quota.';

CREATE TYPE pricing.pair_answer AS (
    place       integer,
    data_type   text,
    given       text,
    symbol      text,
    outcome     text,
    code        text,
    reason      text,
    proposal    text,
    retry_after integer
);
COMMENT ON TYPE pricing.pair_answer IS 'The answer to one pair of a request that watches or holds pairs.';
COMMENT ON COLUMN pricing.pair_answer.place IS 'Its place in the request, from 1.';
COMMENT ON COLUMN pricing.pair_answer.data_type IS 'Its data type.';
COMMENT ON COLUMN pricing.pair_answer.given IS 'Its symbol as given.';
COMMENT ON COLUMN pricing.pair_answer.symbol IS 'Its canonical symbol; NULL = refused.';
COMMENT ON COLUMN pricing.pair_answer.outcome IS 'accepted, doubtful (accepted with a warning) or refused.';
COMMENT ON COLUMN pricing.pair_answer.code IS
    'Why it is doubtful or refused: symbol_doubtful, symbol_refused, unknown_type, retired_type, pairs_per_user or '
    'new_pairs_per_minute; NULL = accepted.';
COMMENT ON COLUMN pricing.pair_answer.reason IS 'The same for people, as what follows a colon.';
COMMENT ON COLUMN pricing.pair_answer.proposal IS 'Another spelling or data type that would do; NULL = none.';
COMMENT ON COLUMN pricing.pair_answer.retry_after IS
    'In how many seconds the same pair may be accepted; NULL if waiting does not help.';

CREATE VIEW pricing.counted_calls AS
SELECT c.call_id, c.provider, c.key_name, c.started_at AS counted_at, c.finished_at, c.outcome, c.failure_kind,
    c.units, c.data_type, c.symbols, c.page_of
FROM pricing.collector_call_log c WHERE c.moved_to IS NULL
UNION ALL
SELECT c.call_id, c.provider, c.key_name, c.moved_to, c.finished_at, c.outcome, c.failure_kind, c.units, c.data_type,
    c.symbols, c.page_of
FROM pricing.collector_call_log c WHERE c.moved_to IS NOT NULL;
COMMENT ON VIEW pricing.counted_calls IS 'Calls as limits and breakers count them, by the present clock.';
COMMENT ON COLUMN pricing.counted_calls.call_id IS 'Its number in collector_call_log.';
COMMENT ON COLUMN pricing.counted_calls.provider IS 'The provider that was asked.';
COMMENT ON COLUMN pricing.counted_calls.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.counted_calls.counted_at IS
    'When it was claimed, by the present clock; -infinity = it no longer counts.';
COMMENT ON COLUMN pricing.counted_calls.finished_at IS 'When it was settled; NULL = open.';
COMMENT ON COLUMN pricing.counted_calls.outcome IS 'How it ended.';
COMMENT ON COLUMN pricing.counted_calls.failure_kind IS 'Why it brought nothing.';
COMMENT ON COLUMN pricing.counted_calls.units IS 'Its cost, in the provider''s units.';
COMMENT ON COLUMN pricing.counted_calls.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.counted_calls.symbols IS 'What was asked for.';
COMMENT ON COLUMN pricing.counted_calls.page_of IS 'The call whose page it is; NULL = not a page.';

CREATE VIEW pricing.calls AS
    SELECT c.call_id, c.provider, c.key_name, c.data_type, nullif(c.window_start, '-infinity') AS window_start,
           nullif(c.window_end, 'infinity') AS window_end, cardinality(c.symbols) AS symbols, c.run_id, c.worker,
           c.started_at, c.finished_at, c.http_status, c.wire_bytes
    FROM pricing.collector_call_log c
    UNION ALL
    SELECT p.call_id, p.provider, p.key_name, p.data_type, p.window_start, p.window_end, p.symbols, p.run_id, p.worker,
           p.started_at, p.finished_at, p.http_status, p.wire_bytes
    FROM pricing.past_calls p;
COMMENT ON VIEW pricing.calls IS 'Every call that a price may name, logged or past, to trace prices.';
COMMENT ON COLUMN pricing.calls.call_id IS 'Its number, which prices carry.';
COMMENT ON COLUMN pricing.calls.provider IS 'The provider that was asked.';
COMMENT ON COLUMN pricing.calls.key_name IS 'The key that it was made with.';
COMMENT ON COLUMN pricing.calls.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.calls.window_start IS 'First day asked for; NULL = the latest price.';
COMMENT ON COLUMN pricing.calls.window_end IS 'Last day asked for, included; NULL = the latest price.';
COMMENT ON COLUMN pricing.calls.symbols IS 'How many symbols were asked for.';
COMMENT ON COLUMN pricing.calls.run_id IS 'Dagster''s id of the run that made it; NULL = none.';
COMMENT ON COLUMN pricing.calls.worker IS 'The worker that made it: host and process.';
COMMENT ON COLUMN pricing.calls.started_at IS 'When it was claimed.';
COMMENT ON COLUMN pricing.calls.finished_at IS 'When it was settled; NULL = open.';
COMMENT ON COLUMN pricing.calls.http_status IS 'Status of the answer.';
COMMENT ON COLUMN pricing.calls.wire_bytes IS 'Headers and body as sent, compressed.';

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
COMMENT ON COLUMN pricing.chosen_routes.symbol IS 'NULL = every symbol without its own rule.';
COMMENT ON COLUMN pricing.chosen_routes.provider IS 'Who is asked, unless it is in trouble or has refused the pair.';

CREATE VIEW pricing.latest_answers AS
    SELECT data_type, symbol, fetched_at, cache_ttl_minutes, observed_at FROM pricing.latest_prices
    UNION ALL
    SELECT data_type, symbol, fetched_at, cache_ttl_minutes, NULL::timestamptz FROM pricing.confirmed_pairs
    UNION ALL
    SELECT e.data_type, e.symbol, e.fetched_at, NULL::integer, NULL::timestamptz FROM pricing.empty_answers e
    WHERE NOT EXISTS (SELECT FROM pricing.latest_prices l WHERE l.data_type = e.data_type
        AND l.symbol = e.symbol OFFSET 0);
COMMENT ON VIEW pricing.latest_answers IS 'When each pair of any kind was last confirmed, even by an empty answer.';
COMMENT ON COLUMN pricing.latest_answers.data_type IS 'What was fetched.';
COMMENT ON COLUMN pricing.latest_answers.symbol IS 'What was fetched.';
COMMENT ON COLUMN pricing.latest_answers.fetched_at IS 'When a provider last confirmed it.';
COMMENT ON COLUMN pricing.latest_answers.cache_ttl_minutes IS 'TTL of this pair, if it has its own.';
COMMENT ON COLUMN pricing.latest_answers.observed_at IS 'The source''s time of the price; NULL = not a price.';

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
    'The instruments of each data type, verified or not, which its schedules and complete backfills cover.';
COMMENT ON COLUMN pricing.universe.data_type IS 'The data type.';
COMMENT ON COLUMN pricing.universe.symbol IS 'The symbol.';
COMMENT ON COLUMN pricing.universe.calendar IS 'Its trading calendar.';
COMMENT ON COLUMN pricing.universe.left_out IS
    'Why schedules and complete backfills skip it: paused, or unknown_symbol = it never had an answer, and its '
    'provider does not know it; NULL = they do not.';

CREATE VIEW pricing.operation_status AS
SELECT o.operation_type, o.status, count(*) AS operations, min(o.enqueued_at) AS oldest_at,
    max(o.enqueued_at) AS newest_at,
       round(avg(o.attempt), 2) AS average_attempts
FROM pricing.async_operations o GROUP BY 1, 2;
COMMENT ON VIEW pricing.operation_status IS
    'Operations by type and status: how many, since when, and how many attempts they took.';
COMMENT ON COLUMN pricing.operation_status.operation_type IS 'Its type.';
COMMENT ON COLUMN pricing.operation_status.status IS 'pending, processing, completed, failed or cancelled.';
COMMENT ON COLUMN pricing.operation_status.operations IS 'How many.';
COMMENT ON COLUMN pricing.operation_status.oldest_at IS 'When the first of them was queued.';
COMMENT ON COLUMN pricing.operation_status.newest_at IS 'When the last of them was queued.';
COMMENT ON COLUMN pricing.operation_status.average_attempts IS 'Attempts begun, in the mean.';

CREATE VIEW pricing.game_version_in_play AS
SELECT v.version FROM pricing.game_versions v
ORDER BY v.live_since IS NOT NULL AND v.live_until IS NULL DESC, coalesce(v.live_since, v.seen_at) DESC,
    v.version DESC LIMIT 1;
COMMENT ON VIEW pricing.game_version_in_play IS
    'The live version of the game, or, until the list of versions was read, the one that prices named last.';
COMMENT ON COLUMN pricing.game_version_in_play.version IS 'Its name; no row = unknown.';

CREATE VIEW pricing.trade_routes AS
SELECT c.commodity_id, c.name AS commodity, c.slug, a.quality,
       a.symbol AS from_symbol, f.name AS from_terminal, f.system AS from_system,
       b.symbol AS to_symbol, t.name AS to_terminal, t.system AS to_system,
       a.buy, b.sell, b.sell - a.buy AS margin, round((b.sell - a.buy) * 100.0 / a.buy, 1) AS margin_percent,
       a.stock, b.demand, least(a.stock, b.demand) AS quantity, (b.sell - a.buy) * least(a.stock, b.demand) AS total,
       a.game_version, least(coalesce(a.modified_at, a.recorded_at), coalesce(b.modified_at,
           b.recorded_at)) AS oldest_at
FROM pricing.commodity_prices a
JOIN pricing.commodity_prices b ON (b.commodity_id, b.quality) = (a.commodity_id, a.quality)
    AND b.symbol <> a.symbol AND b.sell > a.buy
     AND b.sell IS NOT NULL
         AND b.game_version IS NOT DISTINCT FROM (SELECT v.version FROM pricing.game_version_in_play v)
JOIN pricing.commodities c ON c.commodity_id = a.commodity_id AND c.is_available AND c.vanished_at IS NULL
JOIN pricing.terminals f ON f.symbol = a.symbol AND f.is_available AND f.vanished_at IS NULL
JOIN pricing.terminals t ON t.symbol = b.symbol AND t.is_available AND t.vanished_at IS NULL
WHERE a.buy IS NOT NULL AND a.game_version IS NOT DISTINCT FROM (SELECT v.version FROM pricing.game_version_in_play v)
  AND coalesce(least(a.stock, b.demand), 1) > 0;
COMMENT ON VIEW pricing.trade_routes IS
    'Every profitable trade: buy a commodity at one terminal and sell it at another, in the live version; best first '
    'by ORDER BY total DESC NULLS LAST, margin DESC.';
COMMENT ON COLUMN pricing.trade_routes.commodity_id IS 'The commodity.';
COMMENT ON COLUMN pricing.trade_routes.commodity IS 'Its name.';
COMMENT ON COLUMN pricing.trade_routes.slug IS 'Its name in URLs.';
COMMENT ON COLUMN pricing.trade_routes.quality IS 'Its quality; empty = none.';
COMMENT ON COLUMN pricing.trade_routes.from_symbol IS 'Where to buy it.';
COMMENT ON COLUMN pricing.trade_routes.from_terminal IS 'The name of that terminal.';
COMMENT ON COLUMN pricing.trade_routes.from_system IS 'Its star system.';
COMMENT ON COLUMN pricing.trade_routes.to_symbol IS 'Where to sell it.';
COMMENT ON COLUMN pricing.trade_routes.to_terminal IS 'The name of that terminal.';
COMMENT ON COLUMN pricing.trade_routes.to_system IS 'Its star system.';
COMMENT ON COLUMN pricing.trade_routes.buy IS 'What a player pays for one SCU.';
COMMENT ON COLUMN pricing.trade_routes.sell IS 'What a player gets for it.';
COMMENT ON COLUMN pricing.trade_routes.margin IS 'What remains of one SCU; always above zero.';
COMMENT ON COLUMN pricing.trade_routes.margin_percent IS 'The same in percent of what it costs.';
COMMENT ON COLUMN pricing.trade_routes.stock IS 'How much can be bought; NULL = not reported.';
COMMENT ON COLUMN pricing.trade_routes.demand IS 'How much can be sold; NULL = not reported.';
COMMENT ON COLUMN pricing.trade_routes.quantity IS
    'How much can be traded, the smaller of stock and demand, never 0; NULL = neither is reported.';
COMMENT ON COLUMN pricing.trade_routes.total IS 'What the whole quantity earns.';
COMMENT ON COLUMN pricing.trade_routes.game_version IS 'The version of the game of both prices.';
COMMENT ON COLUMN pricing.trade_routes.oldest_at IS 'The time of the older of both prices.';
