-- Values that are not believed, what decides on that, and what prices of the past are adjusted for.

-- ── What is believed ───────────────────────────────────────────────────────────────────────────────────

ALTER TABLE pricing.price_history
    ADD COLUMN adjustment text NOT NULL DEFAULT 'raw' CONSTRAINT adjustment_is_known CHECK (adjustment IN ('raw', 'splits'));
COMMENT ON COLUMN pricing.price_history.adjustment IS
    'raw = as traded on its day; splits = divided by every split since. One for all values of a symbol in a data type.';
COMMENT ON TABLE pricing.price_history IS
    'Current belief about every past value; one table partition per data type. amount is the close, NAV or quote.';

ALTER TABLE pricing.price_revisions
    ADD COLUMN adjustment text NOT NULL DEFAULT 'raw' CONSTRAINT adjustment_is_known CHECK (adjustment IN ('raw', 'splits'));
COMMENT ON COLUMN pricing.price_revisions.adjustment IS 'As in price_history.';

ALTER TABLE pricing.latest_prices
    ADD COLUMN adjustment text NOT NULL DEFAULT 'raw' CONSTRAINT adjustment_is_known CHECK (adjustment IN ('raw', 'splits')),
    ADD COLUMN changed_at timestamptz;
COMMENT ON COLUMN pricing.latest_prices.adjustment IS 'That of the pair''s history. The newest value is the same on every basis.';
COMMENT ON COLUMN pricing.latest_prices.changed_at IS
    'observed_at with which this value first came. A price whose observed_at runs far ahead of it may be frozen at its source.';

COMMENT ON COLUMN pricing.instruments.currency IS
    'ISO 4217; learned from the first answer where it is not given. Values in another currency are held.';

CREATE TABLE pricing.plausibility_bounds (
    data_type           text NOT NULL REFERENCES pricing.data_type_registry ON DELETE CASCADE,
    symbol              text,
    lowest numeric CONSTRAINT lowest_is_a_price CHECK (lowest >= 0 AND lowest < 'Infinity'),
    highest numeric CONSTRAINT highest_is_a_price CHECK (highest > 0 AND highest < 'Infinity'),
    jumps_trusted_until timestamptz,
    CONSTRAINT bounds_are_upright CHECK (lowest <= highest)
);
CREATE UNIQUE INDEX plausibility_bounds_pair ON pricing.plausibility_bounds (data_type, symbol) NULLS NOT DISTINCT;
COMMENT ON TABLE pricing.plausibility_bounds IS
    'What people know of a symbol''s prices, or of all of a data type (symbol NULL). A symbol''s own row replaces the broad one. No row = no bounds.';
COMMENT ON COLUMN pricing.plausibility_bounds.data_type IS 'Whose values they bound.';
COMMENT ON COLUMN pricing.plausibility_bounds.symbol IS 'NULL = every symbol of the type without a row of its own.';
COMMENT ON COLUMN pricing.plausibility_bounds.lowest IS 'Lower prices are held.';
COMMENT ON COLUMN pricing.plausibility_bounds.highest IS 'Higher prices are held.';
COMMENT ON COLUMN pricing.plausibility_bounds.jumps_trusted_until IS
    'Until then no value is held for being far from the last one: after a split or a change of unit that a person has checked.';


-- ── What is not ────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE pricing.quarantined_values (
    value_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    provider      text NOT NULL,
    observed_at   timestamptz,
    kind          text NOT NULL,
    value         text NOT NULL CONSTRAINT value_is_short CHECK (length(value) <= 100),
    reason        text NOT NULL,
    bar           jsonb,
    call_id       bigint NOT NULL,
    recorded_at   timestamptz NOT NULL,
    last_seen_at  timestamptz NOT NULL,
    last_call_id  bigint NOT NULL,
    times         bigint NOT NULL DEFAULT 1,
    status        text NOT NULL DEFAULT 'held' CONSTRAINT status_is_known CHECK (status IN ('held', 'released', 'rejected')),
    resolved_at   timestamptz,
    resolved_by   text,
    resolution    text,
    CONSTRAINT held_is_unresolved CHECK ((status = 'held') = (resolved_at IS NULL)),
    CONSTRAINT same_value_is_one_row UNIQUE NULLS NOT DISTINCT (data_type, symbol, observed_at, kind, value, provider)
);
CREATE INDEX quarantined_values_seen ON pricing.quarantined_values (last_seen_at);
COMMENT ON TABLE pricing.quarantined_values IS
    'Values that a provider sent and that are not believed: never prices, kept for people. The same value is one row, however often it comes.';
COMMENT ON COLUMN pricing.quarantined_values.value_id IS 'Numbers held values.';
COMMENT ON COLUMN pricing.quarantined_values.data_type IS 'What it was sent as.';
COMMENT ON COLUMN pricing.quarantined_values.symbol IS 'What was asked for.';
COMMENT ON COLUMN pricing.quarantined_values.provider IS 'Who sent it.';
COMMENT ON COLUMN pricing.quarantined_values.observed_at IS 'The source''s time; NULL when it names none that can be.';
COMMENT ON COLUMN pricing.quarantined_values.kind IS 'refused, currency, bounds, unit, jump, spike or split: docs/truth.md.';
COMMENT ON COLUMN pricing.quarantined_values.value IS 'The source''s own spelling of the price; empty where the answer as a whole was refused.';
COMMENT ON COLUMN pricing.quarantined_values.reason IS 'Why it is not believed, in words.';
COMMENT ON COLUMN pricing.quarantined_values.bar IS
    'All that would be stored if it were true: close, open, high, low, volume, currency, adjustment, as text. NULL when it could not be read.';
COMMENT ON COLUMN pricing.quarantined_values.call_id IS 'The first call that brought it; quarantined_bodies may have its body.';
COMMENT ON COLUMN pricing.quarantined_values.recorded_at IS 'When it first came.';
COMMENT ON COLUMN pricing.quarantined_values.last_seen_at IS 'When it last came.';
COMMENT ON COLUMN pricing.quarantined_values.last_call_id IS 'The last call that brought it.';
COMMENT ON COLUMN pricing.quarantined_values.times IS 'In how many answers it came.';
COMMENT ON COLUMN pricing.quarantined_values.status IS 'held = waits for a person; released = believed after all and stored; rejected = wrong for good.';
COMMENT ON COLUMN pricing.quarantined_values.resolved_at IS 'When a person has decided.';
COMMENT ON COLUMN pricing.quarantined_values.resolved_by IS 'Who has decided.';
COMMENT ON COLUMN pricing.quarantined_values.resolution IS 'Why so, in the person''s words.';

CREATE TABLE pricing.quarantined_bodies (
    call_id     bigint PRIMARY KEY,
    body        bytea NOT NULL,
    size        integer NOT NULL,
    http_status integer,
    recorded_at timestamptz NOT NULL,
    CONSTRAINT body_is_bounded CHECK (octet_length(body) <= 1100000)
);
COMMENT ON TABLE pricing.quarantined_bodies IS
    'Answers that brought values which are held: one for each call that brought a new one. API keys are blotted out.';
COMMENT ON COLUMN pricing.quarantined_bodies.call_id IS 'The call, in collector_call_log as long as that is kept.';
COMMENT ON COLUMN pricing.quarantined_bodies.body IS 'Compressed by zlib: the first 1,000,000 bytes of the body.';
COMMENT ON COLUMN pricing.quarantined_bodies.size IS 'Bytes of the whole body, uncompressed.';
COMMENT ON COLUMN pricing.quarantined_bodies.http_status IS 'The status it came with.';
COMMENT ON COLUMN pricing.quarantined_bodies.recorded_at IS 'When it came.';

DROP FUNCTION IF EXISTS pricing.history(text, text, date, date);
DROP FUNCTION IF EXISTS pricing.price(text);


-- ── Which provider is asked ────────────────────────────────────────────────────────────────────────────

ALTER TABLE pricing.provider_routing
    ADD COLUMN rank smallint NOT NULL DEFAULT 1 CONSTRAINT rank_is_positive CHECK (rank > 0);
DROP INDEX pricing.provider_routing_broad, pricing.provider_routing_symbol;
CREATE UNIQUE INDEX provider_routing_order ON pricing.provider_routing (data_type, symbol, rank) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX provider_routing_once ON pricing.provider_routing (data_type, symbol, provider) NULLS NOT DISTINCT;
COMMENT ON TABLE pricing.provider_routing IS
    'Which providers serve a data type (symbol NULL), or one symbol of it, in which order. A symbol''s own come first.';
COMMENT ON COLUMN pricing.provider_routing.rank IS 'The lowest is asked; the next, when it cannot serve.';

CREATE TABLE pricing.route_refusals (
    data_type     text NOT NULL,
    symbol        text NOT NULL,
    provider      text NOT NULL REFERENCES pricing.data_collectors ON DELETE CASCADE,
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
COMMENT ON COLUMN pricing.route_refusals.kind IS 'unknown_symbol or plan_restricted.';
COMMENT ON COLUMN pricing.route_refusals.reason IS 'What it said.';
COMMENT ON COLUMN pricing.route_refusals.refused_at IS 'When it said so last.';
COMMENT ON COLUMN pricing.route_refusals.refused_until IS 'Until then others are asked before it.';

ALTER TABLE pricing.provider_state ADD COLUMN trouble text;
COMMENT ON COLUMN pricing.provider_state.trouble IS
    'Why others are asked before it where a route names some: breaker open for minutes, quota spent, keys refused. Looked at every 10 s (watch_providers).';

CREATE VIEW pricing.chosen_routes AS
    SELECT DISTINCT ON (r.data_type, r.symbol) r.data_type, r.symbol, r.provider
    FROM pricing.provider_routing r
    JOIN pricing.data_type_registry k ON k.data_type = r.data_type
    JOIN pricing.data_collectors p ON p.provider = r.provider AND p.is_active
    JOIN pricing.provider_capabilities c ON c.provider = r.provider AND c.fetcher = k.fetcher
    WHERE r.is_active
    ORDER BY r.data_type, r.symbol, r.rank;
COMMENT ON VIEW pricing.chosen_routes IS 'The first provider of each rule that is switched on and able to fetch the type.';
COMMENT ON COLUMN pricing.chosen_routes.data_type IS 'What it serves.';
COMMENT ON COLUMN pricing.chosen_routes.symbol IS 'NULL = every symbol without a rule of its own.';
COMMENT ON COLUMN pricing.chosen_routes.provider IS 'Who is asked, unless it is in trouble or has refused the pair.';

CREATE OR REPLACE FUNCTION pricing.route_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
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

CREATE OR REPLACE FUNCTION pricing.provider_switched() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
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
    'A provider was switched on or off, or moved: ends the hold-off of the pairs routed to it, and moves their waiting tasks.';
