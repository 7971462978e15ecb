-- Slots of products: what can be booked, when, by whom, for how much. An answer writes only what it changes, and what was
-- believed before stays in the _revisions, so that every past moment can be read.

CREATE TABLE pricing.products (
    symbol        text PRIMARY KEY,
    provider      text NOT NULL,
    name          text,
    time_zone     text,
    set_time_zone text,
    call_id       bigint,
    recorded_at   timestamptz NOT NULL
);
COMMENT ON TABLE pricing.products IS 'What is sold in slots, by the symbol of its instrument (asset class inventory).';
COMMENT ON COLUMN pricing.products.symbol IS 'Its instrument.';
COMMENT ON COLUMN pricing.products.provider IS 'Who told of it last.';
COMMENT ON COLUMN pricing.products.name IS 'For people; NULL = only its slots are known.';
COMMENT ON COLUMN pricing.products.time_zone IS 'IANA zone of its place, as the provider says; NULL = it says none.';
COMMENT ON COLUMN pricing.products.set_time_zone IS 'The zone that a person has set, which counts instead; NULL = none.';
COMMENT ON COLUMN pricing.products.call_id IS 'The call that brought it; NULL = a person has changed it since.';
COMMENT ON COLUMN pricing.products.recorded_at IS 'Since when we believe it.';

CREATE TABLE pricing.product_options (
    symbol      text NOT NULL REFERENCES pricing.products (symbol),
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
COMMENT ON COLUMN pricing.product_options.provider IS 'Whose id it is.';
COMMENT ON COLUMN pricing.product_options.option_id IS 'Its id at the provider, unique within the product.';
COMMENT ON COLUMN pricing.product_options.name IS 'For people; NULL = only slots have named it so far.';
COMMENT ON COLUMN pricing.product_options.is_default IS 'Whether the provider books it where none is chosen.';
COMMENT ON COLUMN pricing.product_options.is_listed IS 'False = the product no longer has it.';
COMMENT ON COLUMN pricing.product_options.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.product_options.recorded_at IS 'Since when we believe it.';

CREATE TABLE pricing.pax_categories (
    category_key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    symbol       text NOT NULL REFERENCES pricing.products (symbol),
    provider     text NOT NULL,
    category_id  text NOT NULL,
    name         text NOT NULL,
    kind         text,
    age_from     integer,
    age_to       integer CONSTRAINT ages_are_upright CHECK (age_to >= age_from),
    pax_count    integer NOT NULL DEFAULT 1 CONSTRAINT pax_count_is_positive CHECK (pax_count > 0),
    is_described boolean NOT NULL,
    is_listed    boolean NOT NULL DEFAULT true,
    call_id      bigint NOT NULL,
    recorded_at  timestamptz NOT NULL,
    UNIQUE (symbol, provider, category_id)
);
COMMENT ON TABLE pricing.pax_categories IS 'Whom products are sold to, such as adults or a group of four.';
COMMENT ON COLUMN pricing.pax_categories.category_key IS 'Our number of it.';
COMMENT ON COLUMN pricing.pax_categories.symbol IS 'The product.';
COMMENT ON COLUMN pricing.pax_categories.provider IS 'Whose id it is.';
COMMENT ON COLUMN pricing.pax_categories.category_id IS 'Its id at the provider, unique within the product.';
COMMENT ON COLUMN pricing.pax_categories.name IS 'For people.';
COMMENT ON COLUMN pricing.pax_categories.kind IS 'The provider''s word for it, such as ADULT; NULL = it has none.';
COMMENT ON COLUMN pricing.pax_categories.age_from IS 'Youngest age, included; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_categories.age_to IS 'Oldest age, included; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_categories.pax_count IS 'How many people one unit is for.';
COMMENT ON COLUMN pricing.pax_categories.is_described IS 'Whether the product itself describes it: then its slots do not rename it.';
COMMENT ON COLUMN pricing.pax_categories.is_listed IS 'False = the product no longer has it.';
COMMENT ON COLUMN pricing.pax_categories.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.pax_categories.recorded_at IS 'Since when we believe it.';

-- Local times are what a clock on the wall shows, so they have no zone.
CREATE TABLE pricing.slots (
    slot_key       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    symbol         text NOT NULL REFERENCES pricing.products (symbol),
    provider       text NOT NULL,
    option_id      text NOT NULL,
    slot_id        text NOT NULL,
    local_day      date GENERATED ALWAYS AS (local_start::date) STORED,
    -- squawk-ignore prefer-timestamp-tz
    local_start    timestamp NOT NULL,
    -- squawk-ignore prefer-timestamp-tz
    local_end      timestamp NOT NULL,
    utc_offset     interval,
    time_zone      text,
    starts_at      timestamptz NOT NULL,
    ends_at        timestamptz NOT NULL,
    bookable_until timestamptz,
    status         text NOT NULL
        CONSTRAINT slot_status_is_known CHECK (status IN ('available', 'freesale', 'limited', 'sold_out', 'closed', 'vanished')),
    remaining      integer CONSTRAINT slot_remaining_is_sane CHECK (remaining >= 0 AND remaining <= capacity),
    capacity       integer CONSTRAINT capacity_is_sane CHECK (capacity >= 0),
    call_id        bigint NOT NULL,
    recorded_at    timestamptz NOT NULL,
    CONSTRAINT slot_is_placed_once CHECK ((utc_offset IS NULL) <> (time_zone IS NULL)),
    CONSTRAINT slot_ends_after_it_starts CHECK (ends_at >= starts_at),
    UNIQUE (symbol, provider, option_id, slot_id)
) WITH (fillfactor = 85);
CREATE INDEX slots_by_day ON pricing.slots (symbol, local_day);
COMMENT ON TABLE pricing.slots IS 'A time at which an option of a product takes place: current belief.';
COMMENT ON COLUMN pricing.slots.slot_key IS 'Our number of it.';
COMMENT ON COLUMN pricing.slots.symbol IS 'The product.';
COMMENT ON COLUMN pricing.slots.provider IS 'Whose ids these are.';
COMMENT ON COLUMN pricing.slots.option_id IS 'The option''s id at the provider.';
COMMENT ON COLUMN pricing.slots.slot_id IS 'Its id at the provider, unique within product and option.';
COMMENT ON COLUMN pricing.slots.local_day IS 'The day on which it starts where it takes place.';
COMMENT ON COLUMN pricing.slots.local_start IS 'When it starts by the clock of its place.';
COMMENT ON COLUMN pricing.slots.local_end IS 'When it ends by the clock of its place.';
COMMENT ON COLUMN pricing.slots.utc_offset IS 'What the provider says local_start is ahead of UTC; NULL = nothing, so time_zone places it.';
COMMENT ON COLUMN pricing.slots.time_zone IS 'The product''s zone by which its times were placed; NULL = utc_offset places them.';
COMMENT ON COLUMN pricing.slots.starts_at IS 'When it starts.';
COMMENT ON COLUMN pricing.slots.ends_at IS 'When it ends.';
COMMENT ON COLUMN pricing.slots.bookable_until IS 'Until when the provider takes bookings; NULL = it does not say.';
COMMENT ON COLUMN pricing.slots.status IS 'available, freesale (without a bound), limited, sold_out or closed as the provider says; vanished = it no longer lists it.';
COMMENT ON COLUMN pricing.slots.remaining IS 'Places left; NULL = not said, or without a bound.';
COMMENT ON COLUMN pricing.slots.capacity IS 'Places in all; NULL = not said.';
COMMENT ON COLUMN pricing.slots.call_id IS 'The call that brought this.';
COMMENT ON COLUMN pricing.slots.recorded_at IS 'Since when we believe it.';

CREATE TABLE pricing.slot_prices (
    slot_key       bigint NOT NULL REFERENCES pricing.slots (slot_key),
    category_key   bigint NOT NULL REFERENCES pricing.pax_categories (category_key),
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
COMMENT ON TABLE pricing.slot_prices IS 'What a slot costs for a category: current belief, in units of the last decimal of its currency.';
COMMENT ON COLUMN pricing.slot_prices.slot_key IS 'The slot.';
COMMENT ON COLUMN pricing.slot_prices.category_key IS 'For whom.';
COMMENT ON COLUMN pricing.slot_prices.final_price IS 'What is paid; NULL = the provider names no price, or no longer.';
COMMENT ON COLUMN pricing.slot_prices.original_price IS 'Before discounts; NULL = not named.';
COMMENT ON COLUMN pricing.slot_prices.discount IS 'original_price less final_price; below zero it is a surcharge.';
COMMENT ON COLUMN pricing.slot_prices.currency IS 'ISO 4217; NULL only without prices.';
COMMENT ON COLUMN pricing.slot_prices.scale IS 'How many decimals the three have.';
COMMENT ON COLUMN pricing.slot_prices.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.slot_prices.recorded_at IS 'Since when we believe it.';

CREATE TABLE pricing.pax_availability (
    slot_key     bigint NOT NULL REFERENCES pricing.slots (slot_key),
    category_key bigint NOT NULL REFERENCES pricing.pax_categories (category_key),
    minimum      integer CONSTRAINT minimum_is_sane CHECK (minimum >= 0 AND minimum <= maximum),
    maximum      integer CONSTRAINT maximum_is_sane CHECK (maximum >= 0),
    remaining    integer CONSTRAINT pax_remaining_is_sane CHECK (remaining >= 0),
    is_primary   boolean NOT NULL DEFAULT false,
    is_offered   boolean NOT NULL DEFAULT true,
    call_id      bigint NOT NULL,
    recorded_at  timestamptz NOT NULL,
    PRIMARY KEY (slot_key, category_key)
) WITH (fillfactor = 85);
COMMENT ON TABLE pricing.pax_availability IS 'How many of a category a slot takes: current belief.';
COMMENT ON COLUMN pricing.pax_availability.slot_key IS 'The slot.';
COMMENT ON COLUMN pricing.pax_availability.category_key IS 'Who.';
COMMENT ON COLUMN pricing.pax_availability.minimum IS 'Fewest units of one booking; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_availability.maximum IS 'Most units of one booking; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_availability.remaining IS 'Units left; NULL = not said, or without a bound.';
COMMENT ON COLUMN pricing.pax_availability.is_primary IS 'Whether the product is made for it: others come along.';
COMMENT ON COLUMN pricing.pax_availability.is_offered IS 'False = the slot no longer takes it.';
COMMENT ON COLUMN pricing.pax_availability.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.pax_availability.recorded_at IS 'Since when we believe it.';

CREATE TABLE pricing.slot_windows (
    data_type  text NOT NULL,
    symbol     text NOT NULL REFERENCES pricing.products (symbol),
    first_day  date NOT NULL,
    last_day   date NOT NULL CONSTRAINT slot_window_is_upright CHECK (last_day >= first_day),
    fetched_at timestamptz NOT NULL,
    provider   text NOT NULL,
    call_id    bigint NOT NULL,
    PRIMARY KEY (data_type, symbol)
) WITH (fillfactor = 70);
COMMENT ON TABLE pricing.slot_windows IS 'The local days that the last answer of each pair listed whole: since when each day is confirmed.';
COMMENT ON COLUMN pricing.slot_windows.data_type IS 'Which slots were asked for.';
COMMENT ON COLUMN pricing.slot_windows.symbol IS 'Of which product.';
COMMENT ON COLUMN pricing.slot_windows.first_day IS 'First local day of the answer.';
COMMENT ON COLUMN pricing.slot_windows.last_day IS 'Last local day of the answer, included.';
COMMENT ON COLUMN pricing.slot_windows.fetched_at IS 'When it was stored.';
COMMENT ON COLUMN pricing.slot_windows.provider IS 'Who answered.';
COMMENT ON COLUMN pricing.slot_windows.call_id IS 'The call; an answer to an earlier one says nothing about these days.';

CREATE FUNCTION pricing.keep_revision() RETURNS trigger
LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    -- What was believed for no time at all can never be read.
    EXECUTE pg_catalog.format(
        'INSERT INTO pricing.%I SELECT n.recorded_at, n.call_id, o.* FROM old_rows o JOIN new_rows n USING (%s) WHERE o.recorded_at <> n.recorded_at',
        TG_ARGV[0], TG_ARGV[1]);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION pricing.keep_revision() IS 'Trigger: keeps what a statement has changed in the table of revisions (its first argument), matched by the key (its second).';

CREATE TABLE pricing.product_revisions (
    revised_at    timestamptz NOT NULL,
    revised_by    bigint,
    symbol        text NOT NULL,
    provider      text NOT NULL,
    name          text,
    time_zone     text,
    set_time_zone text,
    call_id       bigint,
    recorded_at   timestamptz NOT NULL
);
CREATE INDEX product_revisions_by_product ON pricing.product_revisions (symbol, revised_at);
COMMENT ON TABLE pricing.product_revisions IS 'What was believed of products before, from recorded_at until revised_at. Its other columns are those of products.';
COMMENT ON COLUMN pricing.product_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.product_revisions.revised_by IS 'The call that brought something else; NULL = a person did.';
COMMENT ON COLUMN pricing.product_revisions.symbol IS 'Its instrument.';
COMMENT ON COLUMN pricing.product_revisions.provider IS 'Who told of it last.';
COMMENT ON COLUMN pricing.product_revisions.name IS 'For people; NULL = only its slots are known.';
COMMENT ON COLUMN pricing.product_revisions.time_zone IS 'IANA zone of its place, as the provider says; NULL = it says none.';
COMMENT ON COLUMN pricing.product_revisions.set_time_zone IS 'The zone that a person has set, which counts instead; NULL = none.';
COMMENT ON COLUMN pricing.product_revisions.call_id IS 'The call that brought it; NULL = a person has changed it since.';
COMMENT ON COLUMN pricing.product_revisions.recorded_at IS 'Since when we believe it.';
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.products REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('product_revisions', 'symbol');

CREATE TABLE pricing.product_option_revisions (
    revised_at  timestamptz NOT NULL,
    revised_by  bigint,
    symbol      text NOT NULL,
    provider    text NOT NULL,
    option_id   text NOT NULL,
    name        text,
    is_default  boolean NOT NULL,
    is_listed   boolean NOT NULL,
    call_id     bigint NOT NULL,
    recorded_at timestamptz NOT NULL
);
CREATE INDEX product_option_revisions_by_product ON pricing.product_option_revisions (symbol, revised_at);
COMMENT ON TABLE pricing.product_option_revisions IS 'What was believed of options before, from recorded_at until revised_at. Its other columns are those of product_options.';
COMMENT ON COLUMN pricing.product_option_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.product_option_revisions.revised_by IS 'The call that brought something else; NULL = a person did.';
COMMENT ON COLUMN pricing.product_option_revisions.symbol IS 'The product.';
COMMENT ON COLUMN pricing.product_option_revisions.provider IS 'Whose id it is.';
COMMENT ON COLUMN pricing.product_option_revisions.option_id IS 'Its id at the provider, unique within the product.';
COMMENT ON COLUMN pricing.product_option_revisions.name IS 'For people; NULL = only slots have named it so far.';
COMMENT ON COLUMN pricing.product_option_revisions.is_default IS 'Whether the provider books it where none is chosen.';
COMMENT ON COLUMN pricing.product_option_revisions.is_listed IS 'False = the product no longer has it.';
COMMENT ON COLUMN pricing.product_option_revisions.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.product_option_revisions.recorded_at IS 'Since when we believe it.';
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.product_options REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('product_option_revisions', 'symbol, provider, option_id');

CREATE TABLE pricing.pax_category_revisions (
    revised_at   timestamptz NOT NULL,
    revised_by   bigint,
    category_key bigint NOT NULL,
    symbol       text NOT NULL,
    provider     text NOT NULL,
    category_id  text NOT NULL,
    name         text NOT NULL,
    kind         text,
    age_from     integer,
    age_to       integer,
    pax_count    integer NOT NULL,
    is_described boolean NOT NULL,
    is_listed    boolean NOT NULL,
    call_id      bigint NOT NULL,
    recorded_at  timestamptz NOT NULL
);
CREATE INDEX pax_category_revisions_by_product ON pricing.pax_category_revisions (symbol, revised_at);
COMMENT ON TABLE pricing.pax_category_revisions IS 'What was believed of categories before, from recorded_at until revised_at. Its other columns are those of pax_categories.';
COMMENT ON COLUMN pricing.pax_category_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.pax_category_revisions.revised_by IS 'The call that brought something else; NULL = a person did.';
COMMENT ON COLUMN pricing.pax_category_revisions.category_key IS 'Our number of it.';
COMMENT ON COLUMN pricing.pax_category_revisions.symbol IS 'The product.';
COMMENT ON COLUMN pricing.pax_category_revisions.provider IS 'Whose id it is.';
COMMENT ON COLUMN pricing.pax_category_revisions.category_id IS 'Its id at the provider, unique within the product.';
COMMENT ON COLUMN pricing.pax_category_revisions.name IS 'For people.';
COMMENT ON COLUMN pricing.pax_category_revisions.kind IS 'The provider''s word for it, such as ADULT; NULL = it has none.';
COMMENT ON COLUMN pricing.pax_category_revisions.age_from IS 'Youngest age, included; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_category_revisions.age_to IS 'Oldest age, included; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_category_revisions.pax_count IS 'How many people one unit is for.';
COMMENT ON COLUMN pricing.pax_category_revisions.is_described IS 'Whether the product itself describes it: then its slots do not rename it.';
COMMENT ON COLUMN pricing.pax_category_revisions.is_listed IS 'False = the product no longer has it.';
COMMENT ON COLUMN pricing.pax_category_revisions.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.pax_category_revisions.recorded_at IS 'Since when we believe it.';
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.pax_categories REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('pax_category_revisions', 'category_key');

CREATE TABLE pricing.slot_revisions (
    revised_at     timestamptz NOT NULL,
    revised_by     bigint,
    slot_key       bigint NOT NULL,
    symbol         text NOT NULL,
    provider       text NOT NULL,
    option_id      text NOT NULL,
    slot_id        text NOT NULL,
    local_day      date NOT NULL,
    -- squawk-ignore prefer-timestamp-tz
    local_start    timestamp NOT NULL,
    -- squawk-ignore prefer-timestamp-tz
    local_end      timestamp NOT NULL,
    utc_offset     interval,
    time_zone      text,
    starts_at      timestamptz NOT NULL,
    ends_at        timestamptz NOT NULL,
    bookable_until timestamptz,
    status         text NOT NULL,
    remaining      integer,
    capacity       integer,
    call_id        bigint NOT NULL,
    recorded_at    timestamptz NOT NULL
);
CREATE INDEX slot_revisions_by_product ON pricing.slot_revisions (symbol, local_day, revised_at);
COMMENT ON TABLE pricing.slot_revisions IS 'What was believed of slots before, from recorded_at until revised_at. Its other columns are those of slots.';
COMMENT ON COLUMN pricing.slot_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.slot_revisions.revised_by IS 'The call that brought something else; NULL = a person did.';
COMMENT ON COLUMN pricing.slot_revisions.slot_key IS 'Our number of it.';
COMMENT ON COLUMN pricing.slot_revisions.symbol IS 'The product.';
COMMENT ON COLUMN pricing.slot_revisions.provider IS 'Whose ids these are.';
COMMENT ON COLUMN pricing.slot_revisions.option_id IS 'The option''s id at the provider.';
COMMENT ON COLUMN pricing.slot_revisions.slot_id IS 'Its id at the provider, unique within product and option.';
COMMENT ON COLUMN pricing.slot_revisions.local_day IS 'The day on which it starts where it takes place.';
COMMENT ON COLUMN pricing.slot_revisions.local_start IS 'When it starts by the clock of its place.';
COMMENT ON COLUMN pricing.slot_revisions.local_end IS 'When it ends by the clock of its place.';
COMMENT ON COLUMN pricing.slot_revisions.utc_offset IS 'What the provider says local_start is ahead of UTC; NULL = nothing, so time_zone places it.';
COMMENT ON COLUMN pricing.slot_revisions.time_zone IS 'The product''s zone by which its times were placed; NULL = utc_offset places them.';
COMMENT ON COLUMN pricing.slot_revisions.starts_at IS 'When it starts.';
COMMENT ON COLUMN pricing.slot_revisions.ends_at IS 'When it ends.';
COMMENT ON COLUMN pricing.slot_revisions.bookable_until IS 'Until when the provider takes bookings; NULL = it does not say.';
COMMENT ON COLUMN pricing.slot_revisions.status IS 'available, freesale (without a bound), limited, sold_out or closed as the provider says; vanished = it no longer lists it.';
COMMENT ON COLUMN pricing.slot_revisions.remaining IS 'Places left; NULL = not said, or without a bound.';
COMMENT ON COLUMN pricing.slot_revisions.capacity IS 'Places in all; NULL = not said.';
COMMENT ON COLUMN pricing.slot_revisions.call_id IS 'The call that brought this.';
COMMENT ON COLUMN pricing.slot_revisions.recorded_at IS 'Since when we believe it.';
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.slots REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('slot_revisions', 'slot_key');

CREATE TABLE pricing.slot_price_revisions (
    revised_at     timestamptz NOT NULL,
    revised_by     bigint,
    slot_key       bigint NOT NULL,
    category_key   bigint NOT NULL,
    final_price    bigint,
    original_price bigint,
    discount       bigint,
    currency       text,
    scale          smallint NOT NULL,
    call_id        bigint NOT NULL,
    recorded_at    timestamptz NOT NULL
);
CREATE INDEX slot_price_revisions_by_slot ON pricing.slot_price_revisions (slot_key, revised_at);
COMMENT ON TABLE pricing.slot_price_revisions IS 'What was believed of prices of slots before, from recorded_at until revised_at. Its other columns are those of slot_prices.';
COMMENT ON COLUMN pricing.slot_price_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.slot_price_revisions.revised_by IS 'The call that brought something else; NULL = a person did.';
COMMENT ON COLUMN pricing.slot_price_revisions.slot_key IS 'The slot.';
COMMENT ON COLUMN pricing.slot_price_revisions.category_key IS 'For whom.';
COMMENT ON COLUMN pricing.slot_price_revisions.final_price IS 'What is paid; NULL = the provider names no price, or no longer.';
COMMENT ON COLUMN pricing.slot_price_revisions.original_price IS 'Before discounts; NULL = not named.';
COMMENT ON COLUMN pricing.slot_price_revisions.discount IS 'original_price less final_price; below zero it is a surcharge.';
COMMENT ON COLUMN pricing.slot_price_revisions.currency IS 'ISO 4217; NULL only without prices.';
COMMENT ON COLUMN pricing.slot_price_revisions.scale IS 'How many decimals the three have.';
COMMENT ON COLUMN pricing.slot_price_revisions.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.slot_price_revisions.recorded_at IS 'Since when we believe it.';
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.slot_prices REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('slot_price_revisions', 'slot_key, category_key');

CREATE TABLE pricing.pax_availability_revisions (
    revised_at   timestamptz NOT NULL,
    revised_by   bigint,
    slot_key     bigint NOT NULL,
    category_key bigint NOT NULL,
    minimum      integer,
    maximum      integer,
    remaining    integer,
    is_primary   boolean NOT NULL,
    is_offered   boolean NOT NULL,
    call_id      bigint NOT NULL,
    recorded_at  timestamptz NOT NULL
);
CREATE INDEX pax_availability_revisions_by_slot ON pricing.pax_availability_revisions (slot_key, revised_at);
COMMENT ON TABLE pricing.pax_availability_revisions IS 'What was believed of availability before, from recorded_at until revised_at. Its other columns are those of pax_availability.';
COMMENT ON COLUMN pricing.pax_availability_revisions.revised_at IS 'Until when we believed it.';
COMMENT ON COLUMN pricing.pax_availability_revisions.revised_by IS 'The call that brought something else; NULL = a person did.';
COMMENT ON COLUMN pricing.pax_availability_revisions.slot_key IS 'The slot.';
COMMENT ON COLUMN pricing.pax_availability_revisions.category_key IS 'Who.';
COMMENT ON COLUMN pricing.pax_availability_revisions.minimum IS 'Fewest units of one booking; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_availability_revisions.maximum IS 'Most units of one booking; NULL = no bound.';
COMMENT ON COLUMN pricing.pax_availability_revisions.remaining IS 'Units left; NULL = not said, or without a bound.';
COMMENT ON COLUMN pricing.pax_availability_revisions.is_primary IS 'Whether the product is made for it: others come along.';
COMMENT ON COLUMN pricing.pax_availability_revisions.is_offered IS 'False = the slot no longer takes it.';
COMMENT ON COLUMN pricing.pax_availability_revisions.call_id IS 'The call that brought it.';
COMMENT ON COLUMN pricing.pax_availability_revisions.recorded_at IS 'Since when we believe it.';
CREATE TRIGGER keep_revision AFTER UPDATE ON pricing.pax_availability REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION pricing.keep_revision('pax_availability_revisions', 'slot_key, category_key');
