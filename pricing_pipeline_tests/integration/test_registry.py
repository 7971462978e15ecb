"""One INSERT brings a data type to life; it can be changed, retired and deleted while nothing is lost."""

from __future__ import annotations

from datetime import date

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import reason
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import PricingError
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.registry_rows import INSERT, PLAIN, add, own_table, relations

pytestmark = pytest.mark.usefixtures("still")


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
    assert core.one("SELECT provider FROM pricing.provider_routing WHERE data_type = 'crypto_quote'") == "twelvedata"
    assert core.one("SELECT version FROM pricing.registry_state") > version


def test_b1_a_new_type_is_watched_fetched_and_stored_at_once(core: Core, clock: Clock) -> None:
    add(core)
    core.heartbeat("ann", ("crypto_quote", "BTC/USD"))
    assert core.refresh(price="62000.01") == 1
    latest = core.latest("BTC/USD", "crypto_quote")
    assert latest is not None
    assert str(latest.price) == "62000.01"
    (seen,) = core.rows("SELECT symbol, amount, scale, price::text FROM pricing.latest_price_crypto_quote")
    assert tuple(seen) == ("BTC/USD", 6200001, 2, "62000.01")
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
        assert set(data_type_registry.provider_urls(connection)) == {
            "twelvedata",
            "mfapi",
            "yahoo",
            "fmp",
            "uex",
            "octo",
            "headout",
        }
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
        pytest.raises(PricingError, match=r"refused data type 'gold': data type gold: there is no fetcher alchemy"),
        core.owner.begin() as c,
    ):
        data_type_registry.add_data_type(c, "gold", fetcher="alchemy", ttl_minutes=5)
    with pytest.raises(PricingError, match=r"unknown time zone Mars/Olympus. Use a name such as UTC"):  # noqa: SIM117
        with core.owner.begin() as connection:
            data_type_registry.add_data_type(
                connection, "gold", fetcher="quote", ttl_minutes=5, timezone="Mars/Olympus"
            )
    again = pytest.raises(PricingError, match="a data type of this name already exists")
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
    with pytest.raises(DBAPIError, match=r"staleness function pricing.is_old\(timestamptz, integer\) does not exist"):
        add(core, staleness_function="is_old")
    core.rows("CREATE FUNCTION pricing.is_old(timestamptz, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'")
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


def test_b1_a_type_whose_table_has_vanished_can_be_retired_and_not_revived(core: Core) -> None:
    own_table(core)
    add(core, table_name="my_prices", symbol_column="ticker", timestamp_column="loaded_at")
    core.rows("DROP TABLE pricing.my_prices")
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'crypto_quote'")
    with pytest.raises(DBAPIError, match=r"pricing\.my_prices does not exist"):
        core.rows("UPDATE pricing.data_type_registry SET is_active = true WHERE data_type = 'crypto_quote'")


# What a fetcher fits


def test_b18_a_type_whose_fetcher_does_not_fit_its_class_is_refused(core: Core) -> None:
    """Seed contract 5: an equity fed by NAVs."""
    for fetcher, asset_class in (
        ("nav", "equity"),
        ("nav", "crypto"),
        ("income_statement", "fx"),
        ("profile", "crypto"),
        ("splits", "index"),
    ):
        with pytest.raises(DBAPIError) as caught:
            add(core, fetcher=fetcher, asset_class=asset_class)
        said = reason(caught.value)
        assert f"data type crypto_quote: the fetcher {fetcher} does not fit the asset class {asset_class}" in said
        assert "quote and daily_bars fit every class" in said
    add(core)
    with pytest.raises(DBAPIError, match="does not fit"):
        core.rows("UPDATE pricing.data_type_registry SET fetcher = 'nav' WHERE data_type = 'crypto_quote'")
    with pytest.raises(DBAPIError, match="does not fit"):
        core.rows("UPDATE pricing.data_type_registry SET asset_class = 'equity' WHERE data_type = 'mf_nav'")


def test_b18_a_type_that_stands_can_be_changed_and_retired(core: Core) -> None:
    """Made before the rule."""
    core.rows("ALTER TABLE pricing.data_type_registry DISABLE TRIGGER apply_fetcher")
    core.rows("UPDATE pricing.data_type_registry SET asset_class = 'equity' WHERE data_type = 'mf_nav'")
    core.rows("ALTER TABLE pricing.data_type_registry ENABLE TRIGGER apply_fetcher")
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 7 WHERE data_type = 'mf_nav'")
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")


def test_f7_daily_values_follow_their_market_unless_told_otherwise(core: Core) -> None:
    expected = {
        "quote": "is_data_stale",
        "daily_bars": "is_market_stale",
        "nav": "is_market_stale",
        "profile": "is_data_stale",
    }
    insert = (
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class{more})"
        " VALUES (:name, :fetcher, 5, 'fund'{value})"
    )
    for fetcher in expected:
        core.rows(insert.format(more="", value=""), name=f"plain_{fetcher}", fetcher=fetcher)
    told = insert.format(more=", staleness_function", value=", 'is_data_stale'")
    core.rows(told, name="told_nav", fetcher="nav")
    judges = dict(
        tuple(row) for row in core.rows("SELECT data_type, staleness_function FROM pricing.data_type_registry")
    )
    assert {fetcher: judges[f"plain_{fetcher}"] for fetcher in expected} == expected
    assert judges["told_nav"] == "is_data_stale"


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
