"""The registry: one INSERT brings a data type to life, and no name in it reaches SQL unchecked (FAULTS 17)."""

from __future__ import annotations

from datetime import date

import psycopg
import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import reason
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import PricingError
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline_tests.fixtures.core import (
    DAILY,
    FX,
    NAV,
    QUOTE,
    Core,
    observation,
    sample_template,
)
from pricing_pipeline_tests.fixtures.database import Clock, TestServer

template = sample_template
pytestmark = pytest.mark.usefixtures("still")

INSERT = (
    "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, table_name, symbol_column,"
    " timestamp_column, staleness_function, asset_class, schedule_timezone)"
    " VALUES (:data_type, :fetcher, :ttl, :table_name, :symbol_column, :timestamp_column, :staleness_function,"
    " :asset_class, :timezone)"
)
PLAIN = {
    "data_type": "crypto_quote",
    "fetcher": "quote",
    "ttl": 2,
    "table_name": "",
    "symbol_column": "symbol",
    "timestamp_column": "fetched_at",
    "staleness_function": "is_data_stale",
    "asset_class": "crypto",
    "timezone": "UTC",
}


def add(core: Core, **changes: object) -> None:
    core.rows(INSERT, **{**PLAIN, **changes})


def relations(core: Core) -> set[str]:
    return {
        row.relname
        for row in core.rows(
            "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind IN ('r', 'p', 'v')"
        )
    }


def own_table(core: Core) -> None:
    core.rows(
        "CREATE TABLE pricing.my_prices (ticker text, loaded_at timestamptz, cache_ttl_minutes integer)"
    )


def test_b1_one_insert_makes_partition_view_and_route(core: Core) -> None:
    before, version = relations(core), core.one("SELECT version FROM pricing.registry_state")
    add(core)
    assert relations(core) - before == {"price_history_crypto_quote", "latest_price_crypto_quote"}
    assert (
        core.one(
            "SELECT inhparent::regclass::text FROM pg_inherits"
            " WHERE inhrelid = 'pricing.price_history_crypto_quote'::regclass"
        )
        == "pricing.price_history"
    )
    assert (
        core.one("SELECT provider FROM pricing.provider_routing WHERE data_type = 'crypto_quote'")
        == "twelvedata"
    )
    assert core.one("SELECT version FROM pricing.registry_state") > version


def test_b1_a_new_type_is_watched_fetched_and_stored_at_once(core: Core, clock: Clock) -> None:
    add(core)
    core.heartbeat("ann", ("crypto_quote", "BTC/USD"))
    assert core.refresh(price="62000.01") == 1
    latest = core.latest("BTC/USD", "crypto_quote")
    assert latest is not None
    assert str(latest.price) == "62000.01"
    (seen,) = core.rows("SELECT symbol, amount, scale FROM pricing.latest_price_crypto_quote")
    assert tuple(seen) == ("BTC/USD", 6200001, 2)
    assert core.one("SELECT count(*) FROM pricing.price_history_crypto_quote") == 1
    clock.advance(121)
    assert core.enqueue_due() == 1


def test_b1_python_adds_and_lists_types(core: Core) -> None:
    with core.owner.begin() as connection:
        data_type_registry.add_data_type(
            connection,
            "fund_close",
            fetcher="nav",
            ttl_minutes=720,
            asset_class="fund",
            description="Closing values.",
            schedule="0 22 * * 1-5",
            timezone="Asia/Kolkata",
            history_from=date(2010, 1, 1),
        )
    with core.engine.connect() as connection:
        found = {kind.data_type: kind for kind in data_type_registry.active_data_types(connection)}
        assert not data_type_registry.is_empty(connection)
        assert set(data_type_registry.provider_urls(connection)) == {"twelvedata", "mfapi", "yahoo", "fmp"}
    assert set(found) == {DAILY, QUOTE, "fund_close", FX, NAV}
    added = found["fund_close"]
    assert (added.fetcher, added.default_ttl_minutes, added.table_name) == (
        Fetcher.NAV,
        720,
        "latest_price_fund_close",
    )
    assert (added.refresh_strategy, added.refresh_schedule, added.schedule_timezone) == (
        "scheduled",
        "0 22 * * 1-5",
        "Asia/Kolkata",
    )
    assert added.history_from == date(2010, 1, 1)


def test_b1_python_says_why_a_type_is_refused(core: Core) -> None:
    with (
        pytest.raises(PricingError, match=r"refused data type 'gold': a fetcher is quote, daily_bars"),
        core.owner.begin() as c,
    ):
        data_type_registry.add_data_type(c, "gold", fetcher="alchemy", ttl_minutes=5)
    with pytest.raises(PricingError, match=r"unknown time zone Mars/Olympus. Use a name such as UTC"):  # noqa: SIM117
        with core.owner.begin() as connection:
            data_type_registry.add_data_type(
                connection, "gold", fetcher="quote", ttl_minutes=5, timezone="Mars/Olympus"
            )
    again = pytest.raises(PricingError, match="a data type of this name is there already")
    with again, core.owner.begin() as connection:
        data_type_registry.add_data_type(connection, QUOTE, fetcher="quote", ttl_minutes=5)


def test_b1_every_change_of_the_registry_is_counted(core: Core) -> None:
    def version() -> int:
        with core.engine.connect() as connection:
            return data_type_registry.version(connection)

    seen = [version()]
    for change in (
        INSERT,
        "UPDATE pricing.data_type_registry SET default_ttl_minutes = 3 WHERE data_type = 'crypto_quote'",
        "UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'crypto_quote'",
        "DELETE FROM pricing.data_type_registry WHERE data_type = 'crypto_quote'",
    ):
        core.rows(change, **(PLAIN if change is INSERT else {}))
        seen.append(version())
    assert seen == sorted(set(seen))


# Tables of one's own


def test_b1_a_table_of_ones_own_must_exist(core: Core) -> None:
    with pytest.raises(DBAPIError) as refused:
        add(core, table_name="my_prices")
    assert "pricing.my_prices does not exist. Create the table first" in reason(refused.value)
    own_table(core)
    with pytest.raises(DBAPIError) as refused:
        add(core, table_name="my_prices")
    assert "pricing.my_prices lacks column(s) fetched_at, symbol" in reason(refused.value)
    assert "price_history_crypto_quote" not in relations(core)


def test_b1_a_table_of_ones_own_is_judged_by_its_own_columns(core: Core, clock: Clock) -> None:
    own_table(core)
    add(core, table_name="my_prices", symbol_column="ticker", timestamp_column="loaded_at")
    core.rows(
        "INSERT INTO pricing.my_prices VALUES ('BTC/USD', pricing.clock(), NULL), ('ETH/USD', pricing.clock(), 60)"
    )
    core.heartbeat("ann", *(("crypto_quote", f"{coin}/USD") for coin in ("BTC", "ETH", "LTC")))
    assert set(core.statuses()) == {"LTC/USD"}, "the one without a row"
    clock.advance(150)
    assert core.enqueue_due() == 1
    assert set(core.statuses()) == {"LTC/USD", "BTC/USD"}


def test_b1_a_staleness_function_must_exist(core: Core) -> None:
    with pytest.raises(
        DBAPIError, match=r"staleness function pricing.is_old\(timestamptz, integer\) does not exist"
    ):
        add(core, staleness_function="is_old")
    core.rows(
        "CREATE FUNCTION pricing.is_old(timestamptz, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
    )
    add(core, staleness_function="is_old")


# Retiring and deleting


def test_b1_a_retired_type_is_neither_checked_nor_scheduled_nor_backfilled(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (DAILY, "AAPL"), (NAV, "118632"))
    core.refresh()
    core.refresh("mfapi")
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type <> 'equity_quote'")
    clock.advance(3 * 86_400)
    assert core.enqueue_due() == 1
    assert [task.data_type for task in core.tasks() if task.status == "pending"] == [QUOTE]
    assert core.one("SELECT coalesce(pricing.enqueue_scheduled('mf_nav'), 0)") == 0
    with pytest.raises(DBAPIError, match="unknown data type equity_daily"):
        core.rows("SELECT pricing.plan_backfill('equity_daily', '2010-01-01', '2010-02-01')")
    with core.engine.connect() as connection:
        assert [kind.data_type for kind in data_type_registry.active_data_types(connection)] == [QUOTE]
    assert core.latest("AAPL", DAILY) is not None, "what is known stays"


def test_b1_a_retired_type_comes_back(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    core.rows("UPDATE pricing.data_type_registry SET is_active = false")
    clock.advance(120)
    assert core.enqueue_due() == 0
    core.rows("UPDATE pricing.data_type_registry SET is_active = true")
    assert core.enqueue_due() == 1


@pytest.mark.parametrize("holds", ["price", "history", "demand"])
def test_b1_a_type_that_holds_data_is_not_deleted(core: Core, holds: str) -> None:
    add(core)
    if holds == "demand":
        core.heartbeat("ann", ("crypto_quote", "BTC/USD"))
    else:
        core.enqueue("crypto_quote", "BTC/USD")
        core.store(core.claim_one(), observation("BTC/USD", "1.00", core.clock()))
        core.rows("DELETE FROM pricing." + {"price": "price_history", "history": "latest_prices"}[holds])
    with pytest.raises(DBAPIError) as refused:
        core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = 'crypto_quote'")
    words = reason(refused.value)
    assert "cannot be deleted. Retire it instead: " in words
    core.rows(words.split("instead: ")[1])
    active = core.rows("SELECT data_type FROM pricing.data_type_registry WHERE is_active ORDER BY 1")
    assert [row.data_type for row in active] == ["equity_daily", "equity_quote", "fx_rate", "mf_nav"]
    assert {"price_history_crypto_quote", "latest_price_crypto_quote"} <= relations(core)


def test_b1_an_empty_type_is_deleted_with_its_storage(core: Core) -> None:
    before = relations(core)
    add(core)
    core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = 'crypto_quote'")
    assert relations(core) == before
    assert core.rows("SELECT FROM pricing.provider_routing WHERE data_type = 'crypto_quote'") == []
    add(core)


# Names


WEIRD = [
    'x"; DROP TABLE pricing.demand; --',
    "x'; DROP TABLE pricing.demand; --",
    "a" * 49,
    "a" * 64,
    "pg_catalog.pg_class",
    "Equity",
    "equity quote",
    "1st",
    "_hidden",
    "",
    "еquity_quote",  # noqa: RUF001 - its first letter is Cyrillic
    "equity_quote\n",
    "%I",
    "$$",
]


@pytest.mark.parametrize(
    "column",
    [
        "data_type",
        "asset_class",
        "table_name",
        "symbol_column",
        "timestamp_column",
        "staleness_function",
        "timezone",
    ],
)
def test_b2_a_weird_name_is_refused_wherever_it_stands(core: Core, column: str) -> None:
    plain: dict[str, object] = {}
    if column in ("symbol_column", "timestamp_column"):
        # Only a table of one's own has columns of one's own.
        own_table(core)
        plain = {"table_name": "my_prices", "symbol_column": "ticker", "timestamp_column": "loaded_at"}
    before = relations(core)
    for name in WEIRD:
        if (column, name) in (("table_name", ""), ("staleness_function", "")):
            continue  # asks for a table to be made, or for the usual judge
        with pytest.raises(DBAPIError):
            add(core, **{**plain, column: name})
        assert relations(core) == before, name


@pytest.mark.parametrize("column", ["table_name", "symbol_column", "timestamp_column", "staleness_function"])
def test_b2_a_name_that_would_be_cut_is_not_taken_for_what_it_is_cut_to(core: Core, column: str) -> None:
    """PostgreSQL cuts identifiers at 63 bytes without a word."""
    cut = "a" * 63
    core.rows(
        f"CREATE FUNCTION pricing.{cut}(timestamptz, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
    )
    core.rows(f"CREATE TABLE pricing.{cut} ({cut} text, at timestamptz, cache_ttl_minutes integer)")
    names = {"table_name": cut, "symbol_column": cut, "timestamp_column": "at", "staleness_function": cut}
    with pytest.raises(DBAPIError):
        add(core, **{**names, column: cut + "a"})
    add(core, **names)


@pytest.mark.parametrize("length", [1, 47, 48])
def test_b2_the_longest_name_still_fits_its_storage(core: Core, length: int) -> None:
    """Identifiers are cut at 63 bytes without a word, and two cut names could be one."""
    names = ["a" * length, "a" * (length - 1) + "b"]
    for name in names:
        add(core, data_type=name)
    assert {f"{kind}_{name}" for kind in ("price_history", "latest_price") for name in names} <= relations(
        core
    )
    core.heartbeat("ann", *((name, "BTC/USD") for name in names))
    assert core.refresh() == 2


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("ttl", 0),
        ("ttl", -5),
        ("ttl", None),
        ("fetcher", "alchemy"),
        ("fetcher", None),
        ("timezone", "Mars/Olympus"),
    ],
)
def test_b1_a_row_that_cannot_work_is_refused(core: Core, column: str, value: object) -> None:
    with pytest.raises(DBAPIError):
        add(core, **{column: value})


@pytest.mark.parametrize(
    ("strategy", "schedule"), [("scheduled", None), ("on-demand", "0 0 * * *"), ("sometimes", None)]
)
def test_b14_a_scheduled_type_has_a_schedule_and_no_other_has(
    core: Core, strategy: str, schedule: str | None
) -> None:
    with pytest.raises(DBAPIError, match=r"scheduled_types_have_a_schedule|strategy_is_known"):
        core.rows(
            "INSERT INTO pricing.data_type_registry"
            " (data_type, fetcher, default_ttl_minutes, refresh_strategy, refresh_schedule)"
            " VALUES ('crypto_quote', 'quote', 5, :strategy, :schedule)",
            strategy=strategy,
            schedule=schedule,
        )


# Tries every name there is, in the server, since thousands of refusals take their time.
TRY_ALL = """
CREATE FUNCTION pricing.accepted(wanted text[], is_table boolean) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    one text;
    stamp text;
    found text[] := '{}';
BEGIN
    FOREACH one IN ARRAY wanted LOOP
        FOREACH stamp IN ARRAY ARRAY['fetched_at', 'created_at', 'xmin'] LOOP
            BEGIN
                INSERT INTO pricing.data_type_registry
                    (data_type, fetcher, default_ttl_minutes, table_name, timestamp_column, staleness_function)
                VALUES ('crypto_quote', 'quote', 2, CASE WHEN is_table THEN one ELSE '' END, stamp,
                        CASE WHEN is_table THEN 'is_data_stale' ELSE one END);
                found := found || one;
                DELETE FROM pricing.data_type_registry WHERE data_type = 'crypto_quote';
            EXCEPTION WHEN undefined_table OR wrong_object_type OR undefined_column OR undefined_function THEN
                NULL;
            END;
        END LOOP;
    END LOOP;
    RETURN found;
END $$
"""


def test_b2_nothing_of_the_pipelines_own_can_be_named_as_a_table(core: Core) -> None:
    """FAULTS 17: neither queue, calls nor catalogue; only a view of prices has the shape, or one's own table."""
    core.rows(TRY_ALL)
    names = [
        row.relname
        for row in core.rows(
            "SELECT relname FROM pg_class WHERE relnamespace IN"
            " ('pricing'::regnamespace, 'pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
        )
    ]
    assert len(names) > 300
    accepted = set(core.one("SELECT pricing.accepted(:names, true)", names=names))
    assert accepted == {f"latest_price_{kind}" for kind in (QUOTE, DAILY, FX, NAV)}


def test_b2_nothing_of_the_pipelines_own_can_be_named_as_a_function(core: Core) -> None:
    core.rows(TRY_ALL)
    names = [
        row.proname
        for row in core.rows(
            "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pricing'::regnamespace"
            " OR '1184 23' = proargtypes::text"
        )
    ]
    assert set(core.one("SELECT pricing.accepted(:names, false)", names=names)) == {
        "is_data_stale",
        "is_market_stale",
    }


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        ("symbol integer, fetched_at timestamptz, cache_ttl_minutes integer", "symbol"),
        ("symbol text, fetched_at timestamp, cache_ttl_minutes integer", "fetched_at"),
        ("symbol text, fetched_at timestamptz, cache_ttl_minutes text", "cache_ttl_minutes"),
    ],
)
def test_b2_a_table_of_ones_own_has_the_right_shape(core: Core, columns: str, missing: str) -> None:
    core.rows(f"CREATE TABLE pricing.my_prices ({columns})")
    with pytest.raises(DBAPIError, match=rf"lacks column\(s\) {missing}\b"):
        add(core, table_name="my_prices")


@pytest.mark.parametrize("made", ["SEQUENCE pricing.mine", "TYPE pricing.mine AS (symbol text)"])
def test_b2_what_is_no_table_is_not_taken_for_one(core: Core, made: str) -> None:
    core.rows(f"CREATE {made}")
    with pytest.raises(DBAPIError, match="no table or view that a data type may name"):
        add(core, table_name="mine")


def test_b2_what_somebody_else_made_in_the_schema_is_not_taken(core: Core, server: TestServer) -> None:
    database = core.owner.url.database or ""
    admin_url = make_url(server.admin_url).set(database=database)
    with psycopg.connect(admin_url.render_as_string(hide_password=False), autocommit=True) as admin:
        admin.execute(
            "CREATE TABLE pricing.my_prices (symbol text, fetched_at timestamptz, cache_ttl_minutes integer)"
        )
        admin.execute(
            "CREATE FUNCTION pricing.is_old(timestamptz, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
        )
    with pytest.raises(DBAPIError, match="no table or view that a data type may name"):
        add(core, table_name="my_prices")
    with pytest.raises(DBAPIError, match=r"staleness function pricing\.is_old"):
        add(core, staleness_function="is_old")


def test_b2_no_name_of_a_type_takes_what_belongs_to_another(core: Core) -> None:
    """The index of a history is called price_history_<type>_pkey, which could be a type's history."""
    add(core)
    with pytest.raises(DBAPIError, match=r"pricing\.price_history_crypto_quote_pkey is taken"):
        add(core, data_type="crypto_quote_pkey")
    with pytest.raises(DBAPIError, match="cannot be renamed"):
        core.rows("UPDATE pricing.data_type_registry SET data_type = 'coin' WHERE data_type = 'crypto_quote'")


def test_b2_a_name_with_a_nul_never_arrives(core: Core) -> None:
    for column in ("data_type", "table_name", "symbol_column", "staleness_function"):
        with pytest.raises((DBAPIError, psycopg.DataError)):
            add(core, **{column: "equity\0quote"})


def test_b1_a_type_whose_table_has_vanished_can_be_retired_and_not_revived(core: Core) -> None:
    own_table(core)
    add(core, table_name="my_prices", symbol_column="ticker", timestamp_column="loaded_at")
    core.rows("DROP TABLE pricing.my_prices")
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'crypto_quote'")
    with pytest.raises(DBAPIError, match=r"pricing\.my_prices does not exist"):
        core.rows("UPDATE pricing.data_type_registry SET is_active = true WHERE data_type = 'crypto_quote'")


# What a fetcher fits


@pytest.mark.parametrize(
    ("fetcher", "asset_class"),
    [
        ("nav", "equity"),
        ("nav", "crypto"),
        ("income_statement", "fx"),
        ("profile", "crypto"),
        ("splits", "index"),
    ],
)
def test_b18_a_type_whose_fetcher_does_not_fit_its_class_is_refused(
    core: Core, fetcher: str, asset_class: str
) -> None:
    """Seed contract 5: an equity fed by NAVs."""
    with pytest.raises(DBAPIError) as caught:
        add(core, fetcher=fetcher, asset_class=asset_class)
    said = reason(caught.value)
    assert f"data type crypto_quote: the fetcher {fetcher} does not fit the asset class {asset_class}" in said
    assert "quote and daily_bars fit every class" in said
    add(core)
    if fetcher == "nav":
        with pytest.raises(DBAPIError, match="does not fit"):
            core.rows(
                "UPDATE pricing.data_type_registry SET fetcher = 'nav' WHERE data_type = 'crypto_quote'"
            )
        with pytest.raises(DBAPIError, match="does not fit"):
            core.rows(
                "UPDATE pricing.data_type_registry SET asset_class = 'equity' WHERE data_type = 'mf_nav'"
            )


def test_b18_a_type_that_stands_can_be_changed_and_retired(core: Core) -> None:
    """Made before the rule."""
    core.rows("ALTER TABLE pricing.data_type_registry DISABLE TRIGGER apply_fetcher")
    core.rows("UPDATE pricing.data_type_registry SET asset_class = 'equity' WHERE data_type = 'mf_nav'")
    core.rows("ALTER TABLE pricing.data_type_registry ENABLE TRIGGER apply_fetcher")
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 7 WHERE data_type = 'mf_nav'")
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")


@pytest.mark.parametrize(
    ("fetcher", "judge"),
    [
        ("quote", "is_data_stale"),
        ("daily_bars", "is_market_stale"),
        ("nav", "is_market_stale"),
        ("profile", "is_data_stale"),
    ],
)
def test_f7_daily_values_follow_their_market_unless_told_otherwise(
    core: Core, fetcher: str, judge: str
) -> None:
    insert = (
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class{more})"
        " VALUES (:name, :fetcher, 5, 'fund'{value})"
    )
    core.rows(insert.format(more="", value=""), name="plain", fetcher=fetcher)
    core.rows(
        insert.format(more=", staleness_function", value=", 'is_data_stale'"), name="told", fetcher=fetcher
    )
    judges = dict(
        tuple(row)
        for row in core.rows(
            "SELECT data_type, staleness_function FROM pricing.data_type_registry WHERE data_type IN ('plain', 'told')"
        )
    )
    assert judges == {"plain": judge, "told": "is_data_stale"}


CLASS = "UPDATE pricing.instruments SET asset_class = 'etf' WHERE symbol = 'AAPL'"


@pytest.mark.parametrize("how", ["watched", "held", "priced", "subscribed"])
def test_b14_an_instrument_with_pairs_keeps_its_class(core: Core, how: str) -> None:
    """Its pairs were watched and fetched on, and no backfill, schedule or `why` knew it."""
    if how == "held":
        core.hold("bob", (QUOTE, "AAPL"))
    else:
        core.heartbeat("ann", (QUOTE, "AAPL"))
    if how == "priced":
        core.refresh()
        core.rows("DELETE FROM pricing.active_subscriptions")
    if how != "watched":
        core.rows("DELETE FROM pricing.demand")
    with pytest.raises(DBAPIError, match="the equity AAPL is watched, held or priced, so it stays one"):
        core.rows(CLASS)
    with pytest.raises(DBAPIError, match="so it stays one"):
        core.rows("UPDATE pricing.instruments SET symbol = 'APPLE' WHERE symbol = 'AAPL'")


def test_b14_an_instrument_that_nobody_wants_may_change_its_class(core: Core) -> None:
    core.rows(CLASS)
    assert core.one("SELECT asset_class FROM pricing.instruments WHERE symbol = 'AAPL'") == "etf"
