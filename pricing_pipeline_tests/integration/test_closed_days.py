"""Bars of days without session: evidence, which is quarantined until a second witness makes the day a session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial

import pytest
from sqlalchemy import text

from pricing_pipeline.db.errors import transact
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import reviews
from pricing_pipeline.refresh import settling
from pricing_pipeline.registry import calendars
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, midnight, observation, utc
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support import quarantining
from pricing_pipeline_tests.support.trading_days import store_weekdays

pytestmark = pytest.mark.usefixtures("still")

WEEK = Window(date(2026, 3, 9), date(2026, 3, 15))
"""Monday to Sunday."""
SATURDAY = date(2026, 3, 14)


@pytest.fixture(autouse=True)
def _then(clock: Clock, still: None) -> None:
    clock.set(datetime(2026, 3, 16, 6, tzinfo=UTC))


def trade(core: Core) -> None:
    """XNYS trades on the weekdays around that week."""
    store_weekdays(core, "XNYS", "2026-02-01", "2026-04-30")


def bring(
    core: Core,
    window: Window | None = WEEK,
    closes: Sequence[str] = ("100.00",) * 7,
    symbol: str = "AAPL",
    volume: Decimal | None = None,
    provider: str | None = None,
) -> None:
    rows: list[Observation] = [
        observation(symbol, close, midnight(WEEK.start + timedelta(days=n)), volume=volume)
        for n, close in enumerate(closes)
    ]
    core.lift_limits()
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, currency) VALUES ('equity', :s, 'USD')"
        " ON CONFLICT DO NOTHING",
        s=symbol,
    )
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.enqueue(DAILY, symbol, days=None if window is None else (window.start, window.end))
    call = core.claim_one() if provider is None else core.claim_one(provider)
    settling.settle_answer(
        core.engine,
        call,
        Fetched(Answer(observations=Rows(rows), actions_since={symbol: WEEK.start}), 200, 2, body=b"{}"),
    )


def stored(core: Core, symbol: str = "AAPL") -> list[int]:
    rows = core.rows("SELECT observed_at FROM pricing.price_history WHERE symbol = :s ORDER BY 1", s=symbol)
    return [row.observed_at.day for row in rows]


def release(core: Core) -> int:
    """What a worker does each second."""
    return sum(one.outcome == "released" for one in reviews.judge_anew(core.engine))


def sessions(core: Core, first: str, last: str) -> list[date]:
    return [
        row.session
        for row in core.rows(
            "SELECT session FROM pricing.calendar_sessions WHERE calendar = 'XNYS' AND session BETWEEN :a AND :b"
            " ORDER BY 1",
            a=date.fromisoformat(first),
            b=date.fromisoformat(last),
        )
    ]


@pytest.mark.parametrize(("first", "last"), [("2026-02-01", "2026-03-12"), ("2026-03-12", "2026-04-30")])
def test_f6_a_calendar_says_nothing_of_days_beyond_its_sessions(core: Core, first: str, last: str) -> None:
    """Bars of Monday to Friday, when the sessions are known to Thursday, or from Thursday on."""
    store_weekdays(core, "XNYS", first, last)
    bring(core, closes=("100.00",) * 5)
    assert stored(core) == [9, 10, 11, 12, 13]


def test_f6_a_bar_of_a_day_without_session_is_quarantined_and_says_so(core: Core) -> None:
    trade(core)
    bring(core, window=None)
    assert stored(core) == [9, 10, 11, 12, 13]
    latest = core.latest("AAPL", DAILY)
    assert latest is not None
    assert latest.observed_at.day == 13, "nor is it the latest price"
    found = core.rows("SELECT value_id, kind, reason FROM pricing.quarantined_values ORDER BY observed_at")
    assert [row.kind for row in found] == ["closed_day", "closed_day"]
    assert found[0].reason.startswith(
        "XNYS has no session on Saturday, 2026-03-14. It is believed once another instrument"
    )
    assert release(core) == 0, "one instrument of one provider proves nothing"
    assert quarantining.release(core, found[0].value_id, "ann").outcome == "released"
    bring(core)
    assert stored(core) == [9, 10, 11, 12, 13, 14], "a person knew better, and is asked no more"


def test_f6_a_bar_of_a_holiday_is_quarantined_as_well(core: Core) -> None:
    trade(core)
    core.rows("DELETE FROM pricing.calendar_sessions WHERE session = '2026-03-11'")
    bring(core, closes=["100.00"] * 5)
    assert stored(core) == [9, 10, 12, 13]


def test_f6_a_second_instrument_opens_the_day_for_all(core: Core) -> None:
    trade(core)
    bring(core, closes=["100.00"] * 6)
    bring(core, symbol="MSFT", closes=["50.00"] * 6)
    assert SATURDAY in sessions(core, "2026-03-13", "2026-03-16")
    assert release(core) == 2
    assert stored(core) == [9, 10, 11, 12, 13, 14]
    assert stored(core, "MSFT") == [9, 10, 11, 12, 13, 14]
    (row,) = core.rows("SELECT day, origin, is_open, reason FROM pricing.calendar_corrections WHERE calendar = 'XNYS'")
    assert (row.day, row.origin, row.is_open) == (SATURDAY, "evidence", True)
    assert row.reason == "bars of AAPL, MSFT, from twelvedata"
    bring(core, symbol="TSLA", closes=["70.00"] * 7)
    assert stored(core, "TSLA") == [9, 10, 11, 12, 13, 14], "a third one is believed at once; Sunday stays closed"
    assert core.rows("TABLE pricing.opened_days") == []
    (opened,) = core.rows(
        "SELECT opens_at, closes_at FROM pricing.calendar_sessions WHERE calendar = 'XNYS' AND session = :d",
        d=SATURDAY,
    )
    assert tuple(opened) == (utc("2026-03-14 14:30"), utc("2026-03-14 21:00")), "the hours of the days before"


def test_f6_bars_that_come_while_those_of_their_day_are_released_are_released_next(core: Core) -> None:
    trade(core)
    for symbol in ("AAPL", "MSFT"):
        bring(core, symbol=symbol, closes=["50.00"] * 6)
    with core.engine.connect() as connection:
        (seen,) = calendars.opened_days(connection)
    core.rows("DELETE FROM pricing.calendar_sessions WHERE session = :d", d=SATURDAY)
    bring(core, symbol="TSLA", closes=["70.00"] * 6)  # it was judged before the day was opened
    transact(core.engine, partial(reviews._release_opened, seen))
    assert stored(core, "AAPL")[-1] == 14
    assert release(core) == 1
    assert stored(core, "TSLA")[-1] == 14
    assert core.rows("TABLE pricing.opened_days") == []


def test_f6_a_bar_that_was_judged_before_a_person_opened_its_day_is_released(core: Core) -> None:
    trade(core)
    bring(core, closes=["100.00"] * 6)
    with core.engine.begin() as connection:
        calendars.correct(connection, "XNYS", SATURDAY, None, is_open=True, reason="test", source=None, by_whom="ann")
    core.rows("DELETE FROM pricing.opened_days")  # as if the bar had not been there yet
    assert release(core) == 0
    with core.engine.begin() as connection:
        calendars.weigh_closed_days(connection, DAILY, ["AAPL"])
    assert release(core) == 1


def test_f6_what_evidence_has_opened_stays_open_when_the_library_writes_its_days_anew(core: Core) -> None:
    trade(core)
    bring(core)
    bring(core, symbol="MSFT")
    trade(core)
    assert SATURDAY in sessions(core, "2026-03-13", "2026-03-16")


def test_f6_repeated_closes_without_trading_are_no_evidence(core: Core) -> None:
    """Some sources fill holidays with the last close and a volume of 0."""
    trade(core)
    bring(core, volume=Decimal(0))
    bring(core, symbol="MSFT", volume=Decimal(0))
    assert release(core) == 0
    assert SATURDAY not in sessions(core, "2026-03-13", "2026-03-16")


def test_f6_an_opinion_of_a_second_provider_opens_the_day(core: Core) -> None:
    trade(core)
    bring(core, closes=["100.00"] * 6)
    value_id = core.one("SELECT value_id FROM pricing.quarantined_values")
    core.rows(
        "INSERT INTO pricing.second_opinions (value_id, provider, call_id, asked_at)"
        " VALUES (:v, 'yahoo', 77, pricing.clock())",
        v=value_id,
    )
    with core.engine.begin() as connection:
        connection.execute(
            text(
                "SELECT pricing.note_opinions(77, ARRAY['AAPL'], ARRAY['2026-03-14 00:00Z'::timestamptz],"
                " ARRAY[100.2::numeric], ARRAY['USD'], ARRAY['raw'], ARRAY[NULL::text])"
            )
        )
    assert release(core) == 1
    assert stored(core) == [9, 10, 11, 12, 13, 14]


def test_f6_a_persons_session_is_believed_at_once_and_their_closed_day_beats_evidence(
    core: Core, cli: CommandLine
) -> None:
    trade(core)
    bring(core, closes=["100.00"] * 7)
    said = cli(
        "calendar",
        "add-session",
        "XNYS",
        "2026-03-14",
        "--opens",
        "10:00",
        "--closes",
        "12:00",
        "--reason",
        "test",
    )
    assert said.exit_code == 0, said.error
    assert "1 quarantined bar of that day is believed now" in said.stdout
    assert stored(core) == [9, 10, 11, 12, 13, 14]
    (row,) = core.rows(
        "SELECT opens_at, closes_at FROM pricing.calendar_sessions WHERE calendar = 'XNYS' AND session = :d",
        d=SATURDAY,
    )
    assert tuple(row) == (utc("2026-03-14 14:00"), utc("2026-03-14 16:00")), "in the zone of New York"
    assert cli("calendar", "close-day", "XNYS", "2026-03-15", "--reason", "no").exit_code == 0
    bring(core, symbol="MSFT")
    assert stored(core, "MSFT") == [9, 10, 11, 12, 13, 14]
    assert release(core) == 0
    assert date(2026, 3, 15) not in sessions(core, "2026-03-13", "2026-03-16")


def test_f7_quotes_are_asked_for_on_a_day_that_evidence_has_opened(core: Core, clock: Clock, cli: CommandLine) -> None:
    trade(core)
    core.rows(
        "UPDATE pricing.data_type_registry SET staleness_function = 'is_market_stale' WHERE data_type = :t",
        t=QUOTE,
    )
    clock.set(utc("2026-03-13 21:15"))
    core.heartbeat("ann", (QUOTE, "AAPL"))
    call = core.claim_one()
    core.store(call, observation("AAPL", "10.00", utc("2026-03-13 20:00")))
    core.complete(call)
    due = "SELECT due_at FROM pricing.demand WHERE data_type = :t AND symbol = 'AAPL'"
    assert core.one(due, t=QUOTE) == utc("2026-03-16 14:30")
    clock.set(utc("2026-03-14 14:40"))
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert cli("calendar", "add-session", "XNYS", "2026-03-14", "--reason", "a test of systems").exit_code == 0
    core.call("SELECT pricing.enqueue_due()")
    assert [task.data_type for task in core.tasks("AAPL") if task.status == "pending"] == [QUOTE]


def test_f6_a_split_that_becomes_known_makes_no_bar_of_a_closed_day_a_price(core: Core) -> None:
    trade(core)
    bring(core, closes=["400.00", "400.00", "400.00", "400.00", "100.00", "100.00", "100.00"])
    assert stored(core) == [9, 10, 11, 12]
    core.rows("SELECT pricing.enter_action('equity', 'AAPL', '2026-03-13', 'split', 4, 1, NULL, NULL, 'ann')")
    assert {one.outcome for one in reviews.judge_anew(core.engine)} == {"released"}
    assert stored(core) == [9, 10, 11, 12, 13]


def test_f6_the_week_of_currencies_begins_on_sunday(core: Core) -> None:
    core.rows("INSERT INTO pricing.calendars (calendar) VALUES ('FX') ON CONFLICT DO NOTHING")
    core.call("SELECT pricing.store_own_sessions('FX', '2026-01-01', '2026-12-31')")
    core.rows("UPDATE pricing.instruments SET calendar = 'FX' WHERE symbol = 'AAPL'")
    bring(core)
    assert stored(core) == [9, 10, 11, 12, 13, 14, 15]


def test_f6_where_no_calendar_is_known_weekends_are_days_like_any_others(core: Core) -> None:
    bring(core)
    assert stored(core) == [9, 10, 11, 12, 13, 14, 15]
