"""The registry: one INSERT brings a data type to life, and no name in it reaches SQL unchecked (FAULTS 17)."""

from __future__ import annotations

from datetime import date

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline import registry
from pricing_pipeline.domain import Fetcher
from pricing_pipeline.errors import PricingError
from pricing_pipeline_tests.fix_core import (
    DAILY,
    FX,
    NAV,
    QUOTE,
    Core,
    observation,
    sample_template,
)
from pricing_pipeline_tests.fix_database import Clock

template = sample_template

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
        registry.add_data_type(
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
        found = {kind.data_type: kind for kind in registry.active_data_types(connection)}
        assert not registry.is_empty(connection)
        assert set(registry.provider_urls(connection)) == {"twelvedata", "mfapi"}
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
        pytest.raises(PricingError, match=r"refused data type 'gold': .*fetcher_is_known"),
        core.owner.begin() as c,
    ):
        registry.add_data_type(c, "gold", fetcher="alchemy", ttl_minutes=5)
    with pytest.raises(PricingError, match=r"unknown time zone Mars/Olympus. Use a name such as UTC"):  # noqa: SIM117
        with core.owner.begin() as connection:
            registry.add_data_type(
                connection, "gold", fetcher="quote", ttl_minutes=5, timezone="Mars/Olympus"
            )
    with pytest.raises(PricingError, match="duplicate key"), core.owner.begin() as connection:
        registry.add_data_type(connection, QUOTE, fetcher="quote", ttl_minutes=5)


def test_b1_every_change_of_the_registry_is_counted(core: Core) -> None:
    def version() -> int:
        with core.engine.connect() as connection:
            return registry.version(connection)

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
    assert "pricing.my_prices does not exist. Create the table first" in registry.reason(refused.value)
    own_table(core)
    with pytest.raises(DBAPIError) as refused:
        add(core, table_name="my_prices")
    assert "pricing.my_prices lacks column(s) fetched_at, symbol" in registry.reason(refused.value)
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
        assert [kind.data_type for kind in registry.active_data_types(connection)] == [QUOTE]
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
    assert "cannot be deleted. Retire it instead" in registry.reason(refused.value)
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
        if (column, name) == ("table_name", ""):
            continue  # asks for a table to be made
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
