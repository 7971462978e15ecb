"""A bar whose parts contradict its close: stored with its close, without them, and says so wherever it is explained."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Adjust, Answer, RejectedValue
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.prices import price_reader
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, Core, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")

MARCH = (date(2010, 3, 1), date(2010, 3, 31))
PARTS = ("open", "high", "low")


def bar(day: int, close: str, *parts: str | None) -> Observation:
    given_ = (None if one is None else Decimal(one) for one in parts)
    row = observation("AAPL", close, midnight(date(2010, 3, day)))
    return replace(row, **dict(zip(PARTS, given_, strict=False)), volume=Decimal(100))


def bring(core: Core, *bars: Observation, latest: bool = False, **more: Any) -> Tally:
    core.lift_limits()
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.enqueue(DAILY, "AAPL", days=None if latest else MARCH)
    answer = Answer(observations=Rows(bars), **more)
    return settling.settle_answer(core.engine, core.claim_one(), Fetched(answer, 200, 100, body=b"{}"))


def stored(core: Core, table: str = "price_history") -> list[tuple[Any, ...]]:
    rows = core.rows(
        "SELECT amount, open_amount, high_amount, low_amount, scale, quality"
        f" FROM pricing.{table} ORDER BY observed_at, call_id"
    )
    return [
        (*(None if one is None else str(Decimal(one).scaleb(-row.scale)) for one in row[:4]), row.quality)
        for row in rows
    ]


@pytest.mark.parametrize("latest", [False, True], ids=["span", "latest"])
def test_b18_a_close_outside_its_range_is_stored_without_what_contradicts_it(core: Core, latest: bool) -> None:
    """As Yahoo sends a third of the days of ELCO.L; the bar before it is whole."""
    tally = bring(
        core,
        bar(1, "10.40", "10.30", "10.50", "10.20"),
        bar(2, "10.40", "10.20", "10.30", "10.10"),
        latest=latest,
    )
    note = "high 10.30 is below the close 10.40"
    assert (tally.added, tally.failed, tally.quarantined, tally.trimmed) == (2, 0, 0, 1)
    assert stored(core) == [
        ("10.40", "10.30", "10.50", "10.20", None),
        ("10.40", "10.20", None, "10.10", note),
    ]
    if latest:
        assert core.one("SELECT quality FROM pricing.latest_prices") == note
    audit(core)


def test_b18_what_was_dropped_is_told_by_history_frames_and_why(cli: CommandLine, core: Core, clock: Clock) -> None:
    note = "open 104 is far from the close 10.40"
    bring(
        core,
        bar(1, "10.40", "10.30", "10.50", "10.20"),
        bar(2, "10.40", "104", "10.50", "10.10"),
        latest=True,
    )
    asked = ("AAPL", "--type", DAILY)
    span = ("--from", "2010-03-01", "--to", "2010-03-31")
    assert f"dropped: {note}" in cli("price", "history", *asked, *span).stdout
    assert [row["quality"] for row in cli("price", "history", *asked, *span, "--json").json["rows"]] == [
        None,
        note,
    ]
    assert f"without parts of its bar ({note}): " in cli("price", "why", *asked).stdout
    clock.advance(60)
    then = core.clock()
    clock.advance(60)
    bring(core, bar(2, "10.40", "10.45", "10.50", "10.10"))
    for as_of, told in ((None, None), (then, note)):
        for adjust in (None, Adjust.SPLITS):
            with core.engine.connect() as connection:
                frame = price_reader.history(connection, "AAPL", DAILY, *MARCH, as_of=as_of, adjust=adjust)
                rows = price_reader.bars(connection, "AAPL", DAILY, *MARCH, as_of=as_of, adjust=adjust)
            assert [row.quality for row in rows] == [None, told]
            assert [one if isinstance(one, str) else None for one in frame["quality"]] == [None, told]
            assert (rows[1].open is None) == (told is not None)
    (row,) = core.rows("SELECT quality FROM pricing.history('equity_daily', 'AAPL', '2010-03-02', '2010-03-02')")
    assert row.quality is None


def test_b18_a_quarantined_value_keeps_what_is_said_of_its_parts(core: Core) -> None:
    bring(core, bar(1, "10.40"), bar(2, "10.40"), bar(3, "1040", "1040", "10.50", "10.10"), bar(4, "10.40"))
    note = "high 10.50 is below the close 1040"
    (row,) = core.rows("SELECT kind, bar FROM pricing.quarantined_values")
    assert (row.kind, row.bar["quality"], "high" in row.bar) == ("unit", note, False)


def test_b18_text_that_no_database_holds_costs_no_good_day(core: Core) -> None:
    texts = {"1\0": "1\\x00", "\ud800": "\\ud800", "\udfff\0x": "\\udfff\\x00x"}
    rejected = tuple(
        RejectedValue("AAPL", midnight(date(2010, 3, day)), f"close {text} is none", text)
        for day, text in enumerate(texts, 2)
    )
    tally = bring(core, bar(1, "10.40"), rejected=rejected)
    assert (tally.added, tally.quarantined, tally.failed) == (1, 3, 0)
    rows = core.rows("SELECT value, reason FROM pricing.quarantined_values ORDER BY observed_at")
    assert [tuple(row) for row in rows] == [(text, f"close {text} is none") for text in texts.values()]


def test_b18_hundreds_of_values_that_nobody_asked_for_are_one_row(core: Core) -> None:
    from pricing_pipeline.domain.windows import Window
    from pricing_pipeline.providers.values import settle_days

    strangers = [
        replace(bar(1, "10.40"), observed_at=midnight(date(1990, 1, 1) + timedelta(days=number)))
        for number in range(300)
    ]
    for _ in range(2):
        answer = settle_days("AAPL", [*strangers, bar(1, "10.40")], Window(*MARCH))
        tally = bring(core, *answer.observations, rejected=answer.rejected)
        assert tally.quarantined == 1
    (row,) = core.rows("SELECT times, reason FROM pricing.quarantined_values")
    assert row.times == 2
    assert row.reason.startswith(
        "300 value(s) lie outside the asked 2010-03-01..2010-03-31; the first: 10.40 of 1990-01-01"
    )
