"""Reading history: as it is and as it was believed, as values, as frames, by SQL and by the command."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from itertools import product
from typing import Any

import pandas as pd
import psycopg
import pytest

from pricing_pipeline.domain.answers import Adjust
from pricing_pipeline.errors import InvalidAdjustment, InvalidRange, PricingError
from pricing_pipeline.prices import frames, price_reader
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, Core, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock

MARCH = (date(2010, 3, 1), date(2010, 3, 31))
BAR = {"open": "10.10", "high": "19.90", "low": "9.80", "volume": "123456"}


def store(core: Core, *days_and_closes: tuple[date, str], symbol: str = "AAPL", **more: Any) -> int:
    """Store bars of March 2010 as a backfill's call does; returns the call's id."""
    core.enqueue(DAILY, symbol, days=MARCH)
    call = core.claim_one()
    core.complete(call)
    core.settle(call)
    core.store(
        call,
        *(observation(symbol, close, midnight(day), **{**BAR, **more}) for day, close in days_and_closes),
    )
    return call.id


def closes(core: Core, as_of: datetime | None = None, **more: Any) -> dict[date, str]:
    with core.engine.connect() as connection:
        found = price_reader.bars(connection, "AAPL", DAILY, *MARCH, as_of=as_of, **more)
    return {bar.observed_at.date(): str(bar.close) for bar in found}


def test_f3_history_is_read_as_it_was_believed_at_any_moment(core: Core, clock: Clock) -> None:
    """A random course of answers, held against a model that keeps everything."""
    dice = random.Random(7)
    believed: dict[date, str] = {}
    moments: list[tuple[datetime, dict[date, str]]] = []
    for _ in range(12):
        brought = {date(2010, 3, dice.randint(1, 6)): dice.choice(("10.50", "10.51", "10.52")) for _ in range(4)}
        clock.advance(60)
        store(core, *brought.items())
        believed = dict(sorted((believed | brought).items()))
        moments.append((core.clock(), believed))
    assert core.one("SELECT count(*) FROM pricing.price_revisions") > 5
    for moment, then in moments:
        assert closes(core, moment) == then
    assert closes(core) == moments[-1][1]
    assert closes(core, moments[0][0] - timedelta(seconds=60)) == {}


def test_f3_what_was_believed_comes_with_its_lineage(core: Core, clock: Clock) -> None:
    day = date(2010, 3, 1)
    first = store(core, (day, "10.50"))
    then = core.clock()
    clock.advance(3600)
    second = store(core, (day, "10.60"), high="10.95")
    with core.engine.connect() as connection:
        (before,) = price_reader.bars(connection, "AAPL", DAILY, *MARCH, as_of=then)
        (now,) = price_reader.bars(connection, "AAPL", DAILY, *MARCH)
    assert (before.call_id, before.close, before.high) == (first, Decimal("10.50"), Decimal("19.90"))
    assert (now.call_id, now.close, now.high) == (second, Decimal("10.60"), Decimal("10.95"))
    assert (before.provider, before.observed_at) == ("twelvedata", midnight(day))
    assert before.fetched_at <= then < now.fetched_at


def test_f3_a_frame_is_exact_and_has_the_documented_dtypes(core: Core, clock: Clock) -> None:
    store(core, (date(2010, 3, 1), "10.123456789012345"), (date(2010, 3, 2), "10.5"))
    then = core.clock()
    clock.advance(60)
    store(core, (date(2010, 3, 2), "10.6"))
    with core.engine.connect() as connection:
        frame = price_reader.history(connection, "AAPL", DAILY, *MARCH)
        past = price_reader.history(connection, "AAPL", DAILY, *MARCH, as_of=then)
        empty = price_reader.history(connection, "AAPL", NAV, *MARCH)
    assert list(frame["close"]) == [Decimal("10.123456789012345"), Decimal("10.6")]
    assert str(past["close"].iloc[1]) == "10.50"
    assert list(frame["volume"]) == [Decimal(123456)] * 2
    assert list(frame.index) == [pd.Timestamp("2010-03-01", tz="UTC"), pd.Timestamp("2010-03-02", tz="UTC")]
    for one in (frame, past, empty):
        assert {name: str(dtype) for name, dtype in one.dtypes.items()} == frames.COLUMNS
        assert str(one.index.dtype) == "datetime64[us, UTC]"
    assert len(empty) == 0
    assert list(frame["date"]) == [date(2010, 3, 1), date(2010, 3, 2)]
    assert frame.loc["2010-03-02", "adjustment"] == "raw"


@pytest.mark.parametrize(
    ("asked", "fault", "words"),
    [
        ({"adjust": "dividends"}, InvalidAdjustment, "use one of raw, splits, total"),
        ({"as_of": datetime(2026, 11, 20)}, InvalidRange, "has no zone"),
        ({"days": MARCH[::-1]}, InvalidRange, "ends before it begins"),
    ],
)
def test_f3_what_a_frame_cannot_tell_is_said(
    core: Core, asked: dict[str, Any], fault: type[PricingError], words: str
) -> None:
    """An empty frame would look as if nothing were stored."""
    given = dict(asked)
    days = given.pop("days", MARCH)
    with core.engine.connect() as connection:
        for read in (price_reader.history, price_reader.bars):
            with pytest.raises(fault, match=words):
                read(connection, "AAPL", DAILY, *days, **given)


def test_f3_a_frame_has_what_the_bars_have_whatever_is_stored(core: Core) -> None:
    """Missing and extreme values, scales and texts that differ from row to row, and a caller who rounds to 3 digits."""
    core.rows(
        """
        INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, open_amount, high_amount, low_amount,
                                           scale, currency, volume, provider, call_id, fetched_at, adjustment)
        SELECT 'equity_daily', s.symbol, timestamptz '2010-03-01 00:00:00.000001Z' + n * interval '1 day', 12345678 + n,
               CASE WHEN n % 3 > 0 THEN 999999999999999999 - n END, NULL, CASE WHEN s.is_mixed THEN n ELSE 7 END,
               CASE WHEN s.is_mixed THEN n % 5 ELSE 2 END,
               CASE WHEN s.is_mixed THEN (ARRAY['USD', NULL, 'é', ''])[n % 4 + 1] END,
               CASE n % 4 WHEN 0 THEN NULL WHEN 1 THEN 0.50 ELSE 10.0 ^ n END,
               CASE WHEN s.is_mixed THEN 'p' || n % 2 ELSE 'one' END, n,
               timestamptz '2010-04-01Z' + n * interval '1 microsecond',
               CASE WHEN s.is_mixed AND n % 2 = 0 THEN 'splits' ELSE 'raw' END
        FROM generate_series(0, 20) n, (VALUES ('AAPL', true), ('MSFT', false)) s (symbol, is_mixed)
        """
    )
    for symbol, adjust in product(("AAPL", "MSFT"), (None, *Adjust)):
        with core.engine.connect() as connection:
            bars = price_reader.bars(connection, symbol, DAILY, *MARCH, adjust=adjust)
            with localcontext(prec=3):
                frame = price_reader.history(connection, symbol, DAILY, *MARCH, adjust=adjust)
        assert len(bars) == len(frame) == 21
        assert list(frame.index) == [bar.observed_at for bar in bars]
        for column in frames.COLUMNS:
            is_text = frames.COLUMNS[column] == "str"
            told = [None if is_text and pd.isna(value) else value for value in frame[column]]
            asked = [getattr(bar, column) for bar in bars]
            assert list(map(str, told)) == list(map(str, asked)), (symbol, adjust, column)


def test_f3_in_sql_history_is_read_as_of_a_time(core: Core, clock: Clock, connection: psycopg.Connection[Any]) -> None:
    store(core, (date(2010, 3, 1), "10.50"))
    then = core.clock()
    clock.advance(60)
    store(core, (date(2010, 3, 1), "10.60"))
    asked = "SELECT close FROM pricing.history('equity_daily', 'AAPL', '2010-03-01', '2010-03-31', %s)"
    assert connection.execute(asked, [then]).fetchall() == [(Decimal("10.50"),)]
    assert connection.execute(asked, [None]).fetchall() == [(Decimal("10.60"),)]
    with pytest.raises(psycopg.Error, match="unknown adjustment"):
        connection.execute(
            "SELECT FROM pricing.history('equity_daily', 'AAPL', '2010-03-01', '2010-03-31', adjust => 'dividends')"
        )


def test_f3_the_command_tells_what_was_believed(core: Core, clock: Clock, cli: CommandLine) -> None:
    store(core, (date(2010, 3, 1), "10.50"))
    then = core.clock()
    clock.advance(60)
    store(core, (date(2010, 3, 1), "10.60"))
    asked = ("price", "history", "AAPL", "--type", DAILY, "--from", "2010-03", "--to", "2010-03", "--json")
    (row,) = cli(*asked, "--as-of", then.astimezone(UTC).isoformat()).json["rows"]
    assert (row["date"], row["close"], row["adjustment"]) == ("2010-03-01", "10.50", "raw")
    (row,) = cli(*asked).json["rows"]
    assert row["close"] == "10.60"
    assert "is in the future; this is what is believed now" in cli(*asked, "--as-of", "2990-01-01").stderr
    assert cli(*asked, "--as-of", core.clock().date().isoformat()).stderr == ""
