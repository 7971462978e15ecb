"""Prices as they are stored: exact, with every change kept, and nothing ever erased."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.prices import price_reader, price_writer
from pricing_pipeline_tests.fixtures.core import (
    DAILY,
    FX,
    QUOTE,
    TWELVEDATA,
    Core,
    midnight,
    observation,
    rows_read,
)
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.storing import closes, next_call, versions
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")

MARCH = (date(2010, 3, 1), date(2010, 3, 31))
BAR = {"open": "10.10", "high": "10.90", "low": "9.80", "volume": "123456"}


def stamp(core: Core, seconds_ago: float = 1) -> datetime:
    return core.clock() - timedelta(seconds=seconds_ago)


# Exactness


def test_a9_a_price_is_an_integer_with_the_scale_its_source_needs(core: Core, clock: Clock) -> None:
    """Adjusted prices of 1980 have six decimals, NAVs five; the instrument's two are the least."""
    for text, amount, scale in (
        ("146.55", 14655, 2),
        ("146.55000", 14655, 2),
        ("0.128348", 128348, 6),
        ("27.12345", 2712345, 5),
        ("12", 1200, 2),
        ("0.1", 10, 2),
        ("123456789012345678", 123456789012345678, 0),
        ("1234567890123456.78", 123456789012345678, 2),
        ("0.123456789012345678", 123456789012345678, 18),
        ("543000.00", 54300000, 2),
        ("1E+3", 100000, 2),
    ):
        clock.advance(60)
        at = stamp(core)
        core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", text, at))
        (row,) = core.rows("SELECT amount, scale, source_text FROM pricing.latest_prices")
        assert tuple(row) == (amount, scale, text)
        latest = core.latest("AAPL")
        assert latest is not None
        assert latest.price == Decimal(text)
        bar = core.history("AAPL", QUOTE, date(2000, 1, 1), date(2100, 1, 1))[-1]
        assert (bar.observed_at, bar.close) == (at, Decimal(text))


def test_a9_the_instruments_scale_is_the_least(core: Core) -> None:
    core.store(
        next_call(core, FX, "EUR/USD", "USD/JPY"),
        *(observation(symbol, "1.1", stamp(core)) for symbol in ("EUR/USD", "USD/JPY")),
    )
    found = core.rows("SELECT symbol, amount, scale FROM pricing.latest_prices ORDER BY 1")
    assert [tuple(row) for row in found] == [("EUR/USD", 110000, 5), ("USD/JPY", 1100, 3)]


def test_a9_an_instruments_scale_never_makes_a_price_too_long(core: Core) -> None:
    """Decimals beyond those of the source are spelling; a price that fits 18 digits is stored."""
    core.rows("UPDATE pricing.instruments SET scale = 12 WHERE symbol = 'AAPL'")
    text = "123456789012345.678"
    core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", text, stamp(core)))
    latest = core.latest("AAPL")
    assert latest is not None
    assert latest.price == Decimal(text)


def test_a9_all_prices_of_a_bar_share_the_finest_scale(core: Core) -> None:
    call = next_call(core, DAILY, "AAPL", days=MARCH)
    day = midnight(date(2010, 3, 1))
    core.store(
        call,
        observation("AAPL", "10.5", day, open="10.125", high="11", low="9.99999", volume="1234567890123"),
    )
    (bar,) = core.history("AAPL", DAILY, *MARCH)
    assert (bar.open, bar.high, bar.low, bar.close) == tuple(map(Decimal, ("10.125", "11", "9.99999", "10.5")))
    assert bar.volume == Decimal("1234567890123")
    assert core.one("SELECT scale FROM pricing.price_history") == 5


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """Decimals of at most 18 digits as providers write them."""
    length = draw(st.integers(1, 18))
    digits = str(draw(st.integers(10 ** (length - 1), 10**length - 1)))
    scale = draw(st.integers(0, len(digits)))
    whole, part = digits[: len(digits) - scale] or "0", digits[len(digits) - scale :]
    return f"{whole}.{part}" if part else whole


def test_a9_any_price_comes_back_as_it_came(core: Core) -> None:
    call = next_call(core, QUOTE, "AAPL")

    @given(st.lists(spellings(), min_size=1, max_size=50, unique=True))
    @settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def comes_back(texts: list[str]) -> None:
        symbols = {f"S{number}": text for number, text in enumerate(texts)}
        core.rows("TRUNCATE pricing.latest_prices, pricing.price_history, pricing.price_revisions")
        core.store(call, *(observation(symbol, text, stamp(core)) for symbol, text in symbols.items()))
        with core.engine.connect() as connection:
            stored = {row.symbol: row.price for row in price_reader.sample(connection, QUOTE, 100)}
        assert stored == {symbol: Decimal(text) for symbol, text in symbols.items()}
        assert all(price.as_tuple().exponent < 0 or price == int(price) for price in stored.values())

    comes_back()


def test_a9_no_column_that_holds_money_is_a_float(core: Core) -> None:
    floats = core.rows(
        "SELECT table_name || '.' || column_name AS name FROM information_schema.columns"
        " WHERE table_schema = 'pricing' AND data_type IN ('real', 'double precision')"
    )
    assert {row.name for row in floats} == {
        "size_estimates.bytes",  # an average
        "size_estimates.last_overrun_ratio",
        *(f"ttl_stretches.{name}" for name in ("watched_factor", "background_factor")),
        *(f"ttl_stretches.{name}" for name in ("watched_need", "need_weight")),  # averages
        *("signs_of_life.seconds", "signs_of_life.total_seconds", "task_times.total_seconds"),
    }


# Unchanged


def test_f3_an_equal_value_writes_nothing_but_counts_as_fetched(core: Core, clock: Clock) -> None:
    """Equal in value: 12.30 is 12.300."""
    at = stamp(core)
    first = core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", "12.30", at))["AAPL"]
    assert (first.added, first.revised, first.is_stale_source) == (1, 0, False)
    before = versions(core)
    for again in ("12.30", "12.300", "12.3", "12.30000"):
        fetched = core.one("SELECT fetched_at FROM pricing.latest_prices")
        clock.advance(30)
        second = core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", again, at))["AAPL"]
        assert (second.added, second.revised, second.is_stale_source) == (0, 0, False)
        assert versions(core) == before
        assert core.one("SELECT fetched_at FROM pricing.latest_prices") - fetched >= timedelta(seconds=30)
    assert core.rows("SELECT FROM pricing.price_revisions") == []


def test_f3_a_new_scale_of_the_instrument_is_no_new_value(core: Core) -> None:
    """Prices are compared by value: 12.30 is 12.3000, each integer with its own scale."""
    day = midnight(date(2010, 3, 1))
    bar = observation("AAPL", "12.30", day, open="12.10", high="12.50", low="12.00", volume="7")
    core.store(next_call(core, DAILY, "AAPL", days=MARCH), bar)
    before = versions(core)
    for scale in (6, 0):
        core.rows("UPDATE pricing.instruments SET scale = :scale", scale=scale)
        stored = core.store(next_call(core, DAILY, "AAPL", days=MARCH), bar)["AAPL"]
        assert (stored.added, stored.revised) == (0, 0)
        assert versions(core) == before
    stored = core.store(
        next_call(core, DAILY, "AAPL", days=MARCH),
        observation("AAPL", "12.31", day, open="12.10", high="12.50", low="12.00", volume="7"),
    )["AAPL"]
    assert stored.revised == 1


def test_b4_an_empty_answer_confirms_and_erases_nothing(core: Core, clock: Clock) -> None:
    core.store(
        next_call(core, QUOTE, "AAPL", "IBM"),
        *(observation(symbol, "5.00", stamp(core)) for symbol in ("AAPL", "IBM")),
    )
    before = versions(core)
    clock.advance(100)
    with core.engine.begin() as connection:
        price_writer.confirm(connection, QUOTE, ["AAPL", "NEVER"])
    latest = {symbol: core.latest(symbol) for symbol in ("AAPL", "IBM")}
    ages = {symbol: row.age_seconds for symbol, row in latest.items() if row and row.price == Decimal("5.00")}
    assert ages["AAPL"] < 50 < ages["IBM"]
    assert versions(core) == before


# Changed


@pytest.mark.parametrize("change", [{"price": "10.51"}, {"volume": None}], ids=str)
def test_f3_a_changed_value_leaves_the_old_one_behind(core: Core, clock: Clock, change: dict[str, Any]) -> None:
    day = midnight(date(2010, 3, 1))
    old = {"price": "10.50", **BAR}
    first = next_call(core, DAILY, "AAPL", days=MARCH)
    core.store(
        first,
        observation("AAPL", at=day, **old),
        observation("AAPL", "10.60", day + timedelta(days=1), **BAR),
    )
    (believed, _) = core.history("AAPL", DAILY, *MARCH)
    clock.advance(3600)
    second = next_call(core, DAILY, "AAPL", days=MARCH)
    stored = core.store(second, observation("AAPL", at=day, **{**old, **change}))["AAPL"]
    assert (stored.added, stored.revised) == (0, 1)
    (kept,) = core.rows("SELECT * FROM pricing.price_revisions")
    assert (kept.amount, kept.open_amount, kept.high_amount, kept.low_amount, kept.scale) == (
        1050,
        1010,
        1090,
        980,
        2,
    )
    assert (kept.volume, kept.currency, kept.provider) == (Decimal(123456), "USD", TWELVEDATA)
    assert (kept.call_id, kept.revised_by) == (first.id, second.id)
    assert kept.recorded_at == believed.fetched_at
    assert kept.revised_at - kept.recorded_at >= timedelta(hours=1)
    now, other = core.history("AAPL", DAILY, *MARCH)
    assert now != believed
    assert now.fetched_at == kept.revised_at
    assert str(other.close) == "10.60", "its neighbour is untouched"


def test_f3_a_restatement_of_twenty_years_reads_each_day_a_few_times(core: Core) -> None:
    """Its cost must not grow with the square of its rows."""
    days = [midnight(date(2000, 1, 1) + timedelta(days=number)) for number in range(1000)]
    span = (days[0].date(), days[-1].date())
    core.store(next_call(core, DAILY, "AAPL", days=span), *(observation("AAPL", "10.00", day) for day in days))
    call = next_call(core, DAILY, "AAPL", days=span)
    with core.engine.begin() as connection:
        before = rows_read(connection)
        (stored,) = price_writer.store(connection, call, Rows([observation("AAPL", "5.00", day) for day in days]))
        assert (stored.added, stored.revised) == (0, 1000)
        assert rows_read(connection) - before < 20 * 1000


def test_a9_storing_reads_what_it_stores_and_not_the_history(core: Core) -> None:
    """A hundred prices took ten times as long beside 15,000 others: nobody knows how large a staging table is."""
    core.rows(
        "INSERT INTO pricing.price_history"
        " (data_type, symbol, observed_at, amount, scale, provider, call_id, fetched_at)"
        " SELECT 'equity_quote', 'S' || n % 2000, timestamptz '2026-01-01' + n * interval '1 minute', 100, 2,"
        " 'twelvedata', 1, pricing.clock() FROM generate_series(1, 8000) AS n"
    )
    core.rows(
        "INSERT INTO pricing.latest_prices"
        " (data_type, symbol, observed_at, amount, scale, provider, call_id, fetched_at, source_text)"
        " SELECT 'equity_quote', 'S' || n, timestamptz '2026-01-01', 100, 2, 'twelvedata', 1, pricing.clock(), '1.00'"
        " FROM generate_series(0, 1999) AS n"
    )
    core.rows("ANALYZE pricing.price_history, pricing.latest_prices")
    symbols = [f"S{number}" for number in range(100)]
    call = next_call(core, QUOTE, *symbols)
    now = core.clock()
    with core.engine.begin() as connection:
        before = rows_read(connection)
        stored = price_writer.store(connection, call, Rows([observation(symbol, "1.01", now) for symbol in symbols]))
        assert sum(row.added for row in stored) == 100
        assert rows_read(connection) - before < 1000


# The source's time


def test_f3_an_older_answer_is_refused_whole(core: Core) -> None:
    """It neither replaces the latest price nor rewrites history, and the others of its call are stored."""
    at = stamp(core)
    for minutes, price in ((10, "5.00"), (5, "5.10")):
        core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", price, at - timedelta(minutes=minutes)))
    history, latest = versions(core), core.latest("AAPL")
    stored = core.store(
        next_call(core, QUOTE, "AAPL", "IBM"),
        observation("AAPL", "4.00", at - timedelta(minutes=10)),
        observation("IBM", "7.00", at - timedelta(minutes=10)),
    )
    assert (stored["AAPL"].added, stored["AAPL"].revised, stored["AAPL"].is_stale_source) == (0, 0, True)
    assert stored["IBM"].is_stale_source is False
    assert latest is not None
    again = core.latest("AAPL")
    assert again is not None
    assert (again.price, again.observed_at, again.fetched_at) == (
        latest.price,
        latest.observed_at,
        latest.fetched_at,
    )
    assert versions(core)[: len(history)] == history
    assert len(core.rows("SELECT FROM pricing.price_history")) == 3
    assert core.rows("SELECT FROM pricing.price_revisions") == []


def test_f3_an_equal_stamp_with_a_new_value_is_a_revision(core: Core) -> None:
    at = stamp(core)
    core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", "5.00", at))
    stored = core.store(next_call(core, QUOTE, "AAPL"), observation("AAPL", "5.05", at))["AAPL"]
    assert (stored.added, stored.revised, stored.is_stale_source) == (0, 1, False)
    latest = core.latest("AAPL")
    assert latest is not None
    assert str(latest.price) == "5.05"
    assert [row.amount for row in core.rows("SELECT amount FROM pricing.price_revisions")] == [500]


def test_f3_of_several_bars_the_newest_is_the_latest(core: Core) -> None:
    days = [midnight(date(2010, 3, number)) for number in (3, 5, 4)]
    core.store(next_call(core, DAILY, "AAPL"), *(observation("AAPL", f"{day.day}.00", day) for day in days))
    latest = core.latest("AAPL", DAILY)
    assert latest is not None
    assert (str(latest.price), latest.observed_at) == ("5.00", midnight(date(2010, 3, 5)))
    assert len(closes(core)) == 3


def test_g6_a_span_of_days_never_touches_the_latest_price(core: Core) -> None:
    core.store(next_call(core, DAILY, "AAPL"), observation("AAPL", "9.00", midnight(date(2010, 3, 5))))
    before = versions(core, "latest_prices")
    stored = core.store(
        next_call(core, DAILY, "AAPL", days=MARCH),
        observation("AAPL", "8.00", midnight(date(2010, 3, 4))),
        observation("AAPL", "9.50", midnight(date(2010, 3, 8))),
    )["AAPL"]
    assert (stored.added, stored.is_stale_source) == (2, False)
    assert versions(core, "latest_prices") == before
    assert closes(core) == {date(2010, 3, 4): "8.00", date(2010, 3, 5): "9.00", date(2010, 3, 8): "9.50"}


# Lineage and reading


def test_f3_every_value_names_the_call_that_brought_it(core: Core) -> None:
    call = next_call(core, QUOTE, "AAPL")
    core.store(call, observation("AAPL", "5.00", stamp(core)))
    (latest,) = core.rows("SELECT provider, call_id FROM pricing.latest_price_equity_quote")
    (bar,) = core.rows("SELECT provider, call_id FROM pricing.price_history_equity_quote")
    assert tuple(latest) == tuple(bar) == (TWELVEDATA, call.id)
    audit(core)


def test_a10_reading_the_latest_says_how_old_and_how_fresh_it_is(core: Core, clock: Clock) -> None:
    for data_type in (QUOTE, DAILY):
        core.store(next_call(core, data_type, "AAPL"), observation("AAPL", "5.00", stamp(core, 3600)))
    clock.advance(90)
    with core.engine.connect() as connection:
        found = {row.data_type: row for row in price_reader.latest(connection, "AAPL")}
        assert price_reader.latest(connection, "NOPE") == []
    assert {name: row.fresh for name, row in found.items()} == {QUOTE: False, DAILY: True}
    assert all(89 < row.age_seconds < 120 for row in found.values())
    assert found[QUOTE].observed_at < found[QUOTE].fetched_at
    core.rows("UPDATE pricing.latest_prices SET cache_ttl_minutes = 1 WHERE data_type = 'equity_daily'")
    latest = core.latest("AAPL", DAILY)
    assert latest is not None
    assert not latest.fresh


def test_g6_history_is_read_by_utc_days_both_included(core: Core) -> None:
    days = [midnight(date(2010, 3, 1) + timedelta(days=number)) for number in range(-2, 40)]
    core.store(next_call(core, DAILY, "AAPL", days=MARCH), *(observation("AAPL", "1.00", day) for day in days))
    for zone in ("America/New_York", "Asia/Kolkata", "UTC"):
        with core.engine.connect() as connection:
            connection.exec_driver_sql(f"SET timezone = '{zone}'")
            found = price_reader.bars(connection, "AAPL", DAILY, *MARCH)
            months = price_reader.months(connection, DAILY, date(2010, 2, 1), date(2010, 4, 30))
            assert [bar.observed_at.astimezone(UTC).date().day for bar in found] == list(range(1, 32))
            assert price_reader.bars(connection, "AAPL", DAILY, date(2011, 1, 1), date(2011, 2, 1)) == []
            connection.exec_driver_sql("SET timezone = 'UTC'")
        assert months == {date(2010, 2, 1): (2, 1), date(2010, 3, 1): (31, 1), date(2010, 4, 1): (9, 1)}


def test_b10_a_batch_is_written_in_key_order(core: Core) -> None:
    """Unsorted upserts of the same rows by 8 clients made 12 deadlocks in 7 calls a second."""
    symbols = [f"S{number:03d}" for number in range(200)]
    shuffled = random.Random(1).sample(symbols, len(symbols))
    call = next_call(core, QUOTE, *symbols[:100])
    core.store(call, *(observation(symbol, "1.00", midnight(date(2010, 3, 1))) for symbol in shuffled))
    for table in ("latest_prices", "price_history"):
        written = core.rows(f"SELECT symbol FROM pricing.{table} ORDER BY tableoid, ctid")
        assert [row.symbol for row in written] == symbols


def test_f3_a_store_that_is_rolled_back_leaves_nothing(core: Core) -> None:
    call = next_call(core, QUOTE, "AAPL")
    with core.engine.connect() as connection:
        transaction = connection.begin()
        price_writer.store(connection, call, Rows([observation("AAPL", "5.00", stamp(core))]))
        transaction.rollback()
        assert core.latest("AAPL") is None
        with connection.begin():
            assert price_writer.store(connection, call, Rows([])) == []
            price_writer.store(connection, call, Rows([observation("AAPL", "6.00", stamp(core))]))
    latest = core.latest("AAPL")
    assert latest is not None
    assert str(latest.price) == "6.00"
