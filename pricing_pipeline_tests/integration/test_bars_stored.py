"""Years of bars in columns: stored as single bars are, to the last digit, by whatever way they come in."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.answers import Stored
from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.observations import Observations, Rows
from pricing_pipeline.domain.prices import Bar
from pricing_pipeline.prices import price_writer
from pricing_pipeline_tests.fixtures.core import DAILY, Core, rows_read
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.sessions import joined, meanwhile, wait_for_locks
from pricing_pipeline_tests.support.storing import MARCH, bars_of, closes, next_call, versions

pytestmark = pytest.mark.usefixtures("still")


def test_f3_columns_are_stored_as_single_bars_are(core: Core, clock: Clock) -> None:
    """New days, the same again, and an overlap of which one day was corrected; some need more places than others."""

    def store(bars: Observations) -> tuple[int, int]:
        call = next_call(core, DAILY, "AAPL", days=MARCH)
        with core.engine.begin() as connection:
            (stored,) = price_writer.store(connection, call, bars)
        return stored.added, stored.revised

    first = bars_of("10.50000", "10.51250", "10.52000")
    assert store(first) == (3, 0)
    scales = core.rows("SELECT scale FROM pricing.price_history ORDER BY observed_at")
    assert [row.scale for row in scales] == [2, 4, 2]
    before = versions(core)
    assert store(first) == store(Rows(first)) == (0, 0)
    assert versions(core) == before
    clock.advance(60)
    assert store(bars_of("10.53000", "10.51250", "10.52000", "10.60000")) == (1, 1)
    assert list(map(Decimal, closes(core).values())) == list(map(Decimal, ("10.53", "10.5125", "10.52", "10.6")))
    (kept,) = core.rows("SELECT amount, scale FROM pricing.price_revisions")
    assert tuple(kept) == (1050, 2)


@pytest.mark.parametrize("others", [(), ("MSFT",)], ids=["by columns", "one by one with another symbol"])
def test_f3_a_bar_is_corrected_in_each_of_its_parts(core: Core, clock: Clock, others: tuple[str, ...]) -> None:
    """Of the second of three days another part is corrected each time: it alone is revised, and stands as it came."""

    def store(bars: Bars) -> list[Stored]:
        clock.advance(60)
        call = next_call(core, DAILY, "AAPL", *others, days=MARCH)
        beside = [row for symbol in others for row in bars_of("10.50000", symbol=symbol)]
        with core.engine.begin() as connection:
            return price_writer.store(connection, call, Rows([*bars, *beside]) if others else bars)

    def second_day() -> Bar:
        return core.history("AAPL", DAILY, *MARCH)[1]

    store(bars_of("10.50000", "10.51000", "10.52000"))
    said: dict[str, str] = {}
    parts = {"open": "10.53000", "high": "98.00000", "low": "0.60000", "close": "10.54000", "volume": "8"}
    for part, value in parts.items():
        before = second_day()
        said[part] = value
        bars = bars_of("10.50000", "10.51000", "10.52000", second=said)
        assert store(bars) == [Stored("AAPL", 0, 1), *(Stored(one, 0, 0) for one in others)], part
        after, asked = second_day(), bars[1]
        assert (after.open, after.high, after.low, after.close, after.volume) == (
            *(asked.open, asked.high, asked.low, asked.close, asked.volume),
        )
        kept = core.rows("SELECT observed_at, call_id FROM pricing.price_revisions ORDER BY revised_by")
        assert len(kept) == len(said), part
        assert tuple(kept[-1]) == (before.observed_at, before.call_id), part
    bars = bars_of("10.50000", "10.51000", "10.52000", second=said)
    bars.currency = None
    assert store(bars)[0] == Stored("AAPL", 0, 3), "all of them are in another currency"
    assert second_day().currency is None


def test_f3_several_symbols_of_one_span_are_each_compared_with_what_is_stored(core: Core) -> None:
    """One is new, one has a day that was corrected, one is the same again."""
    old = {symbol: list(bars_of("10.50000", "10.51000", symbol=symbol)) for symbol in ("AAPL", "MSFT")}
    call = next_call(core, DAILY, "AAPL", "MSFT", days=MARCH)
    with core.engine.begin() as connection:
        assert len(price_writer.store(connection, call, Rows(old["AAPL"] + old["MSFT"]))) == 2
    before = versions(core)
    call = next_call(core, DAILY, "AAPL", "IBM", "MSFT", days=MARCH)
    corrected = list(bars_of("10.50000", "10.52000", "10.53000", symbol="MSFT"))
    new = list(bars_of("9.00000", symbol="IBM"))
    with core.engine.begin() as connection:
        stored = price_writer.store(connection, call, Rows(corrected + new + old["AAPL"]))
    assert stored == [Stored("AAPL", 0, 0), Stored("IBM", 1, 0), Stored("MSFT", 1, 1)]
    assert len(set(before) - set(versions(core))) == 1, "all but the corrected day stay as they were"
    kept = core.rows("SELECT symbol, amount, scale FROM pricing.price_revisions")
    assert [tuple(row) for row in kept] == [("MSFT", 1051, 2)]


@pytest.mark.parametrize(
    ("scale", "volume"),
    [(0, "0"), (0, "120000000"), (2, "7"), (2, "123456789012345"), (9, "10000"), (9, "9" * 15)],
)
def test_f3_what_is_copied_is_what_would_be_inserted(core: Core, scale: int, volume: str) -> None:
    """Column by column, to the last digit: a symbol's bars by columns, and another's one by one."""
    core.rows("UPDATE pricing.instruments SET scale = :scale", scale=scale)
    for symbol, way in (("AAPL", lambda bars: bars), ("IBM", Rows)):
        call = next_call(core, DAILY, symbol, days=MARCH)
        bars = bars_of("10.50000", "9.12345", symbol=symbol, volumes=("7", volume))
        with core.engine.begin() as connection:
            (stored,) = price_writer.store(connection, call, way(bars))
        assert (stored.added, stored.revised) == (2, 0)
    one, other = (
        core.rows(
            "SELECT observed_at, amount, open_amount, high_amount, low_amount, scale, currency, volume,"
            " volume::text AS said, provider, adjustment, source_text FROM pricing.price_history WHERE symbol = :symbol"
            " ORDER BY observed_at",
            symbol=symbol,
        )
        for symbol in ("AAPL", "IBM")
    )
    assert one == other
    assert [row.source_text for row in one] == [
        "10.50000",
        "9.12345" if scale == 9 else None,
    ]
    (lineage,) = core.rows(
        "SELECT DISTINCT c.symbols, h.fetched_at - c.started_at AS took FROM pricing.price_history h"
        " JOIN pricing.collector_call_log c USING (call_id) WHERE h.symbol = 'AAPL'"
    )
    assert lineage.symbols == ["AAPL"]
    assert timedelta(0) <= lineage.took < timedelta(minutes=1)


def test_f3_copied_days_that_another_call_stores_in_the_same_moment_are_a_conflict(core: Core) -> None:
    """Both saw that nothing was there. The second is told to try again, and then finds what there is."""
    wait_for_locks(core)
    one, other = (next_call(core, DAILY, "AAPL", days=MARCH) for _ in range(2))
    with core.engine.begin() as connection:
        price_writer.store(connection, one, bars_of("10.50000", "10.51000"))
        thread, faults = meanwhile(
            core.engine, lambda session: price_writer.store(session, other, bars_of("10.50000", "10.52000"))
        )
    with pytest.raises(DBAPIError) as fault:
        joined(thread, faults)
    assert getattr(fault.value.orig, "sqlstate", None) == "40001"
    with core.engine.begin() as connection:
        (stored,) = price_writer.store(connection, other, bars_of("10.50000", "10.52000"))
    assert (stored.added, stored.revised) == (0, 1)


def test_f3_comparing_bars_reads_neither_other_instruments_nor_their_history(core: Core) -> None:
    """New days, the same again, and corrected ones, each in a call of its own."""
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol)"
        " SELECT 'equity', 'S' || n FROM generate_series(1, 5000) AS n"
    )
    core.rows(
        "INSERT INTO pricing.price_history"
        " (data_type, symbol, observed_at, amount, scale, provider, call_id, fetched_at)"
        " SELECT 'equity_daily', 'S' || n % 2, timestamptz '1960-01-01' + n * interval '1 day', 100, 2,"
        " 'twelvedata', 1, pricing.clock() FROM generate_series(1, 5000) AS n"
    )
    core.rows("ANALYZE pricing.instruments, pricing.price_history")
    for bars in (
        bars_of("10.50000", "10.51000"),
        bars_of("10.50000", "10.51000"),
        bars_of("10.50000", "10.52000"),
    ):
        call = next_call(core, DAILY, "AAPL", days=MARCH)
        with core.engine.begin() as connection:
            before = rows_read(connection)
            price_writer.store(connection, call, bars)
            assert rows_read(connection) - before < 500
