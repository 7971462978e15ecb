"""The sandbox's market: real bars to the last digit, and a walk that goes on for ever in the same way."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from itertools import pairwise

import pytest

from pricing_pipeline.registry.calendars import exchange_sessions
from pricing_pipeline.sandbox.instruments import find_instrument
from pricing_pipeline.sandbox.prices import Market, Quote
from pricing_pipeline.sandbox.recorded import recorded_bars
from pricing_pipeline.sandbox.units import units_of
from pricing_pipeline_tests.support.sandbox_server import Asked, parsed

pytestmark = pytest.mark.xdist_group("calendars")  # a process takes seconds to work them out
SYMBOLS = ["AAPL", "META", "GOOG", "IBM", "MSFT"]
WEDNESDAY = datetime(2026, 11, 18, 15, 30, 20, tzinfo=UTC)
SATURDAY = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def source() -> dict[str, list[dict[str, str]]]:
    """The shipped CSV text, read here on its own so that nothing of the sandbox takes part."""
    packed = files("bokeh_sampledata").joinpath("_data/stocks.csv.gz").read_bytes()
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in csv.DictReader(io.StringIO(gzip.decompress(packed).decode())):
        rows[row["Ticker"].replace("FB", "META")].append(row)
    return rows


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_g6_unadjusted_bars_are_the_source_text_to_the_last_digit(symbol, source):
    bars = Asked().bars(symbol, start_date="2000-01-01", end_date="2013-03-01")
    columns = {"datetime": "Date", "open": "Open", "high": "High", "low": "Low", "close": "Close"}
    columns["volume"] = "Volume"
    expected = [{name: row[column] for name, column in columns.items()} for row in source[symbol]]
    assert bars == expected


def test_splits_are_found_in_the_recording():
    found = {}
    for symbol, bars in recorded_bars().items():
        days = [
            (after.day.isoformat(), before.split // after.split)
            for before, after in pairwise(bars)
            if before.split != after.split
        ]
        found[symbol] = days
    assert found == {
        "AAPL": [("2000-06-21", 2), ("2005-02-28", 2)],
        "MSFT": [("2003-02-18", 2)],
        "IBM": [],
        "GOOG": [],
        "META": [],
    }


def test_split_adjustment_divides_prices_and_multiplies_volumes():
    asked, symbol = Asked(), "AAPL"
    window = {"start_date": "2000-01-01", "end_date": "2013-03-28"}
    raw, adjusted = asked.bars(symbol, **window), asked.bars(symbol, adjust="splits", **window)
    splits = {bar.day.isoformat(): bar.split for bar in recorded_bars()[symbol]}
    for before, after in zip(raw, adjusted, strict=True):
        factor = splits.get(before["datetime"], 1)
        assert int(after["volume"]) == int(before["volume"]) * factor
        for name in ("open", "high", "low", "close"):
            exact = Decimal(before[name]) / factor
            assert Decimal(after[name]) == round(exact, 5)
            assert len(after[name].partition(".")[2]) == 5


def test_split_adjustment_is_what_is_served_unless_told_otherwise():
    reply = Asked().twelvedata(
        "time_series", symbol="AAPL", interval="1day", start_date="2000-06-20", end_date="2000-06-20"
    )
    assert parsed(reply)["values"][0]["close"] == "25.31250"  # 101.25 before two 2:1 splits


def test_walk_carries_on_from_the_last_recorded_close_over_every_session_to_today():
    bars = Asked(WEDNESDAY).bars("AAPL", start_date="2013-03-01")
    days = [date.fromisoformat(bar["datetime"]) for bar in bars]
    assert days == list(exchange_sessions("XNYS", date(2013, 3, 1), WEDNESDAY.date()).days)
    first, second = (Decimal(bar["close"]) for bar in bars[:2])
    assert first == Decimal("430.47")
    assert abs(second / first - 1) < Decimal("0.03")
    for bar in bars[1:]:
        opened, high, low, close = (Decimal(bar[name]) for name in ("open", "high", "low", "close"))
        assert 0 < low <= min(opened, close) <= max(opened, close) <= high
        assert int(bar["volume"]) > 0
        assert bar["close"] == f"{close:.2f}"


def test_a_new_day_changes_no_old_bar():
    before, after = Asked(WEDNESDAY), Asked(WEDNESDAY + timedelta(days=900))
    window = {"start_date": "2025-01-01", "end_date": "2026-11-17"}
    assert before.bars("TSLA", **window) == after.bars("TSLA", **window)


def test_the_seed_makes_another_market_but_not_another_past():
    one, other = Asked(), Asked(seed=7)
    assert one.bars("TSLA") != other.bars("TSLA")
    recorded = {"start_date": "2013-02-01", "end_date": "2013-03-01"}
    assert one.bars("IBM", **recorded) == other.bars("IBM", **recorded)


@pytest.mark.parametrize(
    ("symbol", "digest"),
    [
        ("TSLA", "31a0f36d24d9206f"),
        ("EUR/USD", "f492d6bc33be0577"),
        ("BTC/USD", "41d61e00777675f3"),
        ("XAU/USD", "4a657635d9363335"),
    ],
)
def test_the_walk_is_the_same_in_every_process_and_on_every_machine(symbol, digest):
    """Pinned once: whatever changes these digits breaks every history already fetched from a sandbox."""
    bars = Asked().bars(symbol, start_date="2024-01-01", end_date="2024-12-31")
    assert hashlib.sha256(json.dumps(bars).encode()).hexdigest()[:16] == digest


def test_a_sixth_decimal_is_refused_and_not_cut_off():
    with pytest.raises(ValueError, match=r"0\.123456"):
        units_of("0.123456")


def _moments(start: datetime, count: int, step: timedelta) -> list[datetime]:
    return [start + n * step for n in range(count)]


def test_the_forming_day_moves_and_ends_as_its_final_bar():
    market, tesla = Market(2013), find_instrument("TSLA")
    assert tesla is not None
    opening = datetime(2026, 11, 18, 5, tzinfo=UTC)  # midnight in New York
    quotes = [market.quote(tesla, at) for at in _moments(opening, 288, timedelta(minutes=5))]
    assert len({quote.close for quote in quotes}) > 100
    for earlier, later in pairwise(quotes):
        assert later.high >= earlier.high
        assert later.low <= earlier.low
        assert later.volume >= earlier.volume
        assert later.low <= later.close <= later.high
    (final,) = market.final_bars(tesla, opening.date(), opening.date())
    closing = opening + timedelta(days=1)
    assert market.forming_bar(tesla, closing - timedelta(seconds=1)) is not None
    assert market.last_final_day(tesla, closing) == opening.date()
    assert quotes[-1].high <= final.prices.high
    assert quotes[-1].low >= final.prices.low
    assert market.quote(tesla, closing).previous_close == final.prices.close


def test_todays_bar_in_the_series_is_the_quote():
    asked = Asked(WEDNESDAY)
    bar = asked.bars("TSLA", outputsize="1")[0]
    quote = parsed(asked.twelvedata("quote", symbol="TSLA"))
    assert bar["datetime"] == quote["datetime"] == "2026-11-18"
    for name in ("open", "high", "low", "close"):
        assert Decimal(bar[name]) == Decimal(quote[name])
    assert bar["volume"] == quote["volume"]


def _quote(at: datetime, hours: str) -> Quote:
    tesla = find_instrument("TSLA")
    assert tesla is not None
    return Market(2013, hours).quote(tesla, at)  # type: ignore[arg-type]


def test_equities_are_open_round_the_clock_unless_told_otherwise():
    quote = _quote(SATURDAY, "always")
    assert quote.is_open
    assert quote.stamped_at == int(SATURDAY.timestamp())
    assert abs(quote.close - quote.previous_close) * 100 < quote.previous_close


@pytest.mark.parametrize(
    ("at", "is_open", "day", "stamp"),
    [
        ("2026-11-18T14:29:59+00:00", False, "2026-11-17", "2026-11-17T21:00:00+00:00"),
        ("2026-11-18T14:30:00+00:00", True, "2026-11-18", "2026-11-18T14:30:00+00:00"),
        ("2026-11-18T20:59:59+00:00", True, "2026-11-18", "2026-11-18T20:59:59+00:00"),
        ("2026-11-18T21:00:00+00:00", False, "2026-11-18", "2026-11-18T21:00:00+00:00"),
        ("2026-11-21T12:00:00+00:00", False, "2026-11-20", "2026-11-20T21:00:00+00:00"),
        ("2026-11-21T18:00:00+00:00", False, "2026-11-20", "2026-11-20T21:00:00+00:00"),
        ("2026-11-22T12:00:00+00:00", False, "2026-11-20", "2026-11-20T21:00:00+00:00"),
        ("2026-07-15T13:30:00+00:00", True, "2026-07-15", "2026-07-15T13:30:00+00:00"),  # summer time
    ],
)
def test_exchange_hours_close_the_market(at, is_open, day, stamp):
    quote = _quote(datetime.fromisoformat(at), "exchange")
    assert (quote.is_open, str(quote.day)) == (is_open, day)
    assert quote.stamped_at == int(datetime.fromisoformat(stamp).timestamp())


def test_a_closed_market_shows_the_final_bar():
    at = datetime(2026, 11, 18, 22, tzinfo=UTC)
    asked = Asked(at, market_hours="exchange")
    bar = asked.bars("TSLA", outputsize="1")[0]
    quote = parsed(asked.twelvedata("quote", symbol="TSLA"))
    assert [Decimal(bar[name]) for name in ("open", "high", "low", "close")] == [
        Decimal(quote[name]) for name in ("open", "high", "low", "close")
    ]


def test_time_travel_into_the_recording_knows_nothing_of_its_future():
    asked = Asked(datetime(2010, 7, 4, 12, tzinfo=UTC))
    assert asked.bars("IBM")[-1]["datetime"] == "2010-07-02"
    quote = parsed(asked.twelvedata("quote", symbol="IBM"))
    assert quote["previous_close"] == "121.86000"
    assert asked.twelvedata("quote", symbol="META").status == 404  # listed in 2012


def test_f6_quotes_idle_and_bars_end_on_a_closed_day():
    market, apple = Market(seed=1), find_instrument("AAPL")
    assert apple is not None
    thanksgiving = datetime(2026, 11, 26, 18, tzinfo=UTC)
    assert market.forming_bar(apple, thanksgiving) is None
    assert market.quote(apple, thanksgiving).volume == 0
    (wednesday,) = market.final_bars(apple, date(2026, 11, 25), date(2026, 11, 26))
    assert market.quote(apple, thanksgiving).previous_close == wednesday.prices.close
    assert market.close_before(apple, date(2026, 11, 27)) == wednesday.prices.close
