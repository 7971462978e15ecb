"""F10: a trading day that an answer lacked is asked for again, ever more seldom, until a value of it comes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.providers.values import settle_days
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline.registry import calendars
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, Core, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.trading_days import store_weekdays

pytestmark = pytest.mark.usefixtures("still")

DAY = 86_400
NOW = datetime(2026, 3, 31, 21, 5, tzinfo=UTC)
SESSIONS = [day for n in range(28) if (day := date(2026, 3, 1) + timedelta(days=n)).weekday() < 5]
MARCH = Window(SESSIONS[0], SESSIONS[-1])


@pytest.fixture(autouse=True)
def _trading_days(core: Core, clock: Clock, still: None) -> None:
    know_trading_days(core, clock)


def know_trading_days(core: Core, clock: Clock) -> None:
    """At the end of March 2026, XNYS trades on the weekdays of the year."""
    clock.set(NOW)
    core.lift_limits()
    core.rows("UPDATE pricing.provider_capabilities SET window_batch_size = 1")
    store_weekdays(core, "XNYS", "2026-01-01", "2026-12-31")


def bar(day: date, text: str = "10.00", symbol: str = "AAPL") -> Observation:
    return observation(symbol, text, midnight(day))


def ask(core: Core, window: Window, symbol: str = "AAPL") -> None:
    core.enqueue(DAILY, symbol, priority=-2, days=(window.start, window.end))


def answer(core: Core, rows: Sequence[Observation], symbol: str = "AAPL") -> Tally:
    """Settle the one call that waits, with these rows."""
    call = core.claim_one()
    assert call.window is not None
    fetched = Fetched(settle_days(symbol, rows, call.window), 200, 2, body=b"{}")
    return settling.settle_answer(core.engine, call, fetched)


def stored(core: Core, symbol: str = "AAPL") -> set[date]:
    rows = core.rows(
        "SELECT (observed_at AT TIME ZONE 'UTC')::date AS day FROM pricing.price_history"
        " WHERE data_type = :type AND symbol = :symbol",
        type=DAILY,
        symbol=symbol,
    )
    return {row.day for row in rows}


def kinds(core: Core) -> list[tuple[date, str, str | None]]:
    with core.engine.connect() as connection:
        found = calendars.gaps(connection, DAILY, "AAPL", MARCH.start, MARCH.end)
    return [(gap.first_day, gap.kind.value, gap.detail) for gap in found]


def due(core: Core) -> list[tuple[date, date]]:
    """What is asked for again now."""
    core.call("SELECT pricing.refetch_history()")
    core.call("SELECT pricing.promote_tasks()")  # a call that brought only days that were not asked for is made again
    rows = core.rows("SELECT window_start, window_end FROM pricing.api_call_queue_live ORDER BY id")
    return [(row.window_start, row.window_end) for row in rows]


def test_f10_a_day_that_comes_with_the_next_days_is_stored(core: Core) -> None:
    """It was dropped as outside of what was asked for, and had been called known to have no value."""
    first, late, last = SESSIONS[0], SESSIONS[3], SESSIONS[9]
    ask(core, Window(first, last))
    answer(core, [bar(day) for day in SESSIONS[:10] if day != late])
    assert kinds(core)[0][:2] == (late, "provider_has_none")
    ask(core, Window(SESSIONS[10], SESSIONS[12]))
    tally = answer(core, [bar(late, "10.05"), *(bar(day) for day in SESSIONS[10:13])])
    assert tally.added == 4
    assert stored(core) == set(SESSIONS[:13])
    assert core.rows("SELECT FROM pricing.quarantined_values") == []


def test_f10_a_day_that_an_answer_for_latest_prices_lacked_is_asked_for_again(core: Core, clock: Clock) -> None:
    late = SESSIONS[12]
    core.enqueue(DAILY, "AAPL")
    call = core.claim_one()
    assert call.window is None
    rows = Rows(bar(day) for day in SESSIONS[5:] if day != late)
    settling.settle_answer(core.engine, call, Fetched(Answer(observations=rows), 200, 2, body=b"{}"))
    assert due(core) == []
    clock.advance(DAY + 60)
    assert due(core) == [(late, late)]


def test_f10_what_comes_unasked_changes_nothing_that_is_stored_and_is_no_other_level(core: Core) -> None:
    ask(core, Window(SESSIONS[0], SESSIONS[9]))
    answer(core, [bar(day) for day in SESSIONS[:10] if day != SESSIONS[3]])
    ask(core, Window(SESSIONS[10], SESSIONS[12]))
    unasked = [bar(SESSIONS[2], "10.10"), bar(SESSIONS[3], "1000.00"), bar(SESSIONS[14], "10.20")]
    answer(core, [*unasked, *(bar(day) for day in SESSIONS[10:13])])
    assert stored(core) == set(SESSIONS[:13]) - {SESSIONS[3]} | {SESSIONS[14]}
    assert core.rows("SELECT FROM pricing.price_revisions") == []
    (row,) = core.rows("SELECT reason FROM pricing.quarantined_values")
    assert row.reason.startswith("2 value(s) were not requested, and were not stored; the first: 10.10 of 2026-03-04")


def test_f10_an_answer_about_other_days_fails_and_says_what_is_true(core: Core) -> None:
    ask(core, Window(SESSIONS[0], SESSIONS[4]))
    answer(core, [bar(day) for day in SESSIONS[:5]])
    ask(core, Window(SESSIONS[5], SESSIONS[6]))
    assert answer(core, [bar(SESSIONS[7])]).added == 1
    assert SESSIONS[7] in stored(core), "it is of a day without a value"
    (told,) = core.rows("SELECT errors -> -1 AS error FROM pricing.api_call_queue_live")
    assert told.error["kind"] == FailureKind.IMPLAUSIBLE
    assert "no value of AAPL is of the days that were asked for" in told.error["message"]
    assert "othing was stored" not in told.error["message"]


def test_f10_a_day_is_asked_for_again_after_one_three_and_nine_days(core: Core, clock: Clock) -> None:
    ask(core, MARCH)
    late = SESSIONS[8]
    answer(core, [bar(day) for day in SESSIONS if day != late])
    asked = []
    for days in (1, 2, 1, 8, 1, 1, 30, 75):
        clock.advance(days * DAY)
        spans = due(core)
        asked.append(len(spans))
        for span in spans:
            assert span == (late, late)
            answer(core, [])
    assert asked == [1, 0, 1, 0, 1, 0, 0, 0], "nobody else of the exchange has it"
    assert kinds(core) == [(late, "provider_has_none", None)]

    ask(core, MARCH, "IBM")
    answer(core, [bar(day, symbol="IBM") for day in SESSIONS], "IBM")

    def days_until_it_is_due() -> int:
        for n in range(1, 40):
            clock.advance(DAY)
            if due(core):
                return n
        return 0

    assert days_until_it_is_due() > 0
    answer(core, [])
    assert days_until_it_is_due() == 30
    answer(core, [bar(late)])
    for _ in range(4):
        clock.advance(30 * DAY)
        assert due(core) == []
    assert kinds(core) == []
    assert core.rows("SELECT FROM pricing.absent_days WHERE ask_at <= pricing.clock()") == []


def test_f10_gaps_say_when_a_day_is_asked_for_again(core: Core) -> None:
    ask(core, MARCH)
    answer(core, [bar(day) for day in SESSIONS if day != SESSIONS[8]])
    assert kinds(core) == [(SESSIONS[8], "provider_has_none", "it is asked for again from 2026-04-01 on")]


def test_f10_a_paused_instrument_is_not_asked_for_again(core: Core, clock: Clock) -> None:
    ask(core, MARCH)
    answer(core, [bar(day) for day in SESSIONS if day != SESSIONS[8]])
    core.pause("AAPL")
    clock.advance(2 * DAY)
    assert due(core) == []


def test_f10_a_backfill_asks_again_on_command_alone(cli: CommandLine, core: Core) -> None:
    ask(core, MARCH)
    answer(core, [bar(day) for day in SESSIONS if day != SESSIONS[8]])
    arguments = ("backfill", "start", "AAPL", "--type", DAILY, "--from", str(MARCH.start), "--to")
    arguments = (*arguments, str(MARCH.end), "--dry-run")
    assert cli(*arguments, "--json").json["tasks"] == 0
    assert cli(*arguments, "--again", "--json").json["tasks"] == 1
    assert cli(*arguments, "--json").json["tasks"] == 0, "an estimate changes nothing"
    assert core.call("SELECT pricing.ask_again(:t, :a, :b)", t=DAILY, a=MARCH.start, b=MARCH.end) == 1
    assert [(day, kind) for day, kind, _ in kinds(core)] == [(SESSIONS[8], "not_asked")]
    windows = core.rows(
        "SELECT first_day, last_day FROM pricing.missing_windows(:t, :a, :b, '{AAPL}')",
        t=DAILY,
        a=MARCH.start,
        b=MARCH.end,
    )
    assert [tuple(row) for row in windows] == [(SESSIONS[8], SESSIONS[8])], "what is stored is not asked for"
