"""Gaps of a history with their kinds, what a backfill asks for because of them, what it costs, and calling it off."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

import pytest

from pricing_pipeline.demand import backfills
from pricing_pipeline.domain.answers import FailureKind, RejectedValue
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.prices import price_writer
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.providers.values import settle_days
from pricing_pipeline.refresh import settling
from pricing_pipeline.registry import calendars
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.quarantining import reject

pytestmark = pytest.mark.usefixtures("still")

MARCH = Window(date(2026, 3, 2), date(2026, 3, 31))
HOLIDAY = "2026-03-18"


@pytest.fixture(autouse=True)
def _trading_days(core: Core, clock: Clock, still: None) -> None:
    """Weekdays of 2026 but one, 14:30 to 21:00 UTC. Now it is Tuesday, March 31st, 21:05: the close is not out yet."""
    clock.set(datetime(2026, 3, 31, 21, 5, tzinfo=UTC))
    core.rows("UPDATE pricing.provider_capabilities SET window_batch_size = 1")
    days = [date(2026, 1, 1) + timedelta(days=n) for n in range(365)]
    days = [day for day in days if day.weekday() < 5 and str(day) != HOLIDAY]
    core.call(
        "SELECT pricing.store_sessions('XNYS', '2026-01-01', '2026-12-31', :days, :opens, :closes)",
        days=days,
        opens=[datetime(day.year, day.month, day.day, 14, 30, tzinfo=UTC) for day in days],
        closes=[datetime(day.year, day.month, day.day, 21, tzinfo=UTC) for day in days],
    )


def gaps(core: Core, symbol: str = "AAPL", window: Window = MARCH) -> list[tuple[str, str, int, str]]:
    with core.engine.connect() as connection:
        found = calendars.gaps(connection, DAILY, symbol, window.start, window.end)
    return [(str(gap.first_day)[5:], str(gap.last_day)[5:], gap.sessions, gap.kind.value) for gap in found]


def cover(core: Core, first: str, last: str, *symbols: str) -> None:
    with core.engine.begin() as connection:
        price_writer.cover(connection, DAILY, symbols or ["AAPL"], date.fromisoformat(first), date.fromisoformat(last))


def store(core: Core, *days: str, symbol: str = "AAPL") -> None:
    """Values of days, as an answer to a call for a span would store them."""
    wanted = [date.fromisoformat(f"2026-{day}") for day in days]
    core.enqueue(DAILY, symbol, priority=-2, days=(min(wanted), max(wanted)))
    call = core.claim_one()
    core.store(call, *(observation(symbol, "10.00", midnight(day)) for day in wanted))
    core.complete(call)


def answer_with(core: Core, window: Window, *rows: Observation | RejectedValue) -> None:
    """Settle what a call for a span brought."""
    core.lift_limits()
    core.enqueue(DAILY, "AAPL", priority=-2, days=(window.start, window.end))
    fetched = Fetched(settle_days("AAPL", rows, window), 200, 2, body=b"{}")
    settling.settle_answer(core.engine, core.claim_one(), fetched)


def quarantine(core: Core, day: str, why: str) -> None:
    core.rows(
        "INSERT INTO pricing.quarantined_values (data_type, symbol, provider, observed_at, kind, value, reason,"
        " call_id, recorded_at, last_seen_at, last_call_id) VALUES (:type, 'AAPL', 'twelvedata', :at, 'spike', '1',"
        " :why, 1, pricing.clock(), pricing.clock(), 1)",
        type=DAILY,
        at=midnight(date.fromisoformat(day)),
        why=why,
    )


def plan(core: Core, window: Window = MARCH, symbols: Sequence[str] = ("AAPL",)) -> list[tuple[str, str]]:
    rows = core.rows(
        "SELECT first_day, last_day FROM pricing.missing_windows(:type, :first, :last, :symbols) ORDER BY 1",
        type=DAILY,
        first=window.start,
        last=window.end,
        symbols=list(symbols),
    )
    return [(str(row.first_day)[5:], str(row.last_day)[5:]) for row in rows]


def test_f8_every_kind_of_gap_is_told_apart(core: Core) -> None:
    assert gaps(core) == [("03-02", "03-30", 20, "not_asked"), ("03-31", "03-31", 1, "not_published")]
    store(core, "03-09", "03-10", "03-13", "03-17")
    cover(core, "2026-02-01", "2026-03-17")
    quarantine(core, "2026-03-12", "up and back")
    core.enqueue(DAILY, "AAPL", priority=-2, days=(date(2026, 3, 19), date(2026, 3, 20)))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")
    core.enqueue(DAILY, "AAPL", priority=-2, days=(date(2026, 3, 21), date(2026, 3, 24)))
    assert gaps(core) == [
        ("03-02", "03-06", 5, "not_listed"),  # asked for a fortnight before the first value, in vain
        ("03-11", "03-11", 1, "provider_has_none"),
        ("03-12", "03-12", 1, "quarantined"),
        ("03-16", "03-16", 1, "provider_has_none"),
        ("03-19", "03-20", 2, "failed"),
        ("03-23", "03-24", 2, "queued"),
        ("03-25", "03-30", 4, "not_asked"),
        ("03-31", "03-31", 1, "not_published"),
    ]
    with core.engine.connect() as connection:
        details = {g.kind: g.detail for g in calendars.gaps(connection, DAILY, "AAPL", MARCH.start, MARCH.end)}
    assert details[calendars.GapKind.FAILED] == "unknown_symbol: no such symbol"
    assert details[calendars.GapKind.QUARANTINED] == "up and back"


@pytest.mark.parametrize("is_named", [True, False], ids=["a day without a price", "a row without a day"])
def test_f8_a_day_whose_value_could_not_be_read_can_be_asked_for_again(core: Core, is_named: bool) -> None:
    """One NaN in a backfill was a hole that no backfill closed."""
    week = Window(date(2026, 3, 9), date(2026, 3, 13))
    bad = date(2026, 3, 11)
    good = [observation("AAPL", "10.00", midnight(week.start + timedelta(days=n))) for n in (0, 1, 3, 4)]
    broken = RejectedValue("AAPL", midnight(bad) if is_named else None, "close 'NaN' is not a number", "NaN")
    answer_with(core, week, *good, broken)
    assert gaps(core, window=week) == [("03-11", "03-11", 1, "unreadable" if is_named else "not_asked")]
    assert plan(core, week) == [("03-11", "03-11")]

    value = core.one("SELECT value_id FROM pricing.quarantined_values")
    assert reject(core, value, "ann").outcome == "rejected"
    assert plan(core, week) == [("03-11", "03-11")]

    answer_with(core, Window(bad, bad), observation("AAPL", "10.00", midnight(bad)))
    assert gaps(core, window=week) == plan(core, week) == []
    assert core.one("SELECT covered::text FROM pricing.history_coverage") == "{[2026-03-09,2026-03-14)}"


def test_f8_two_values_of_one_day_are_none_and_the_next_word_counts(core: Core) -> None:
    week = Window(date(2026, 3, 9), date(2026, 3, 10))
    monday, tuesday = midnight(week.start), midnight(week.end)
    answer_with(
        core,
        week,
        *(observation("AAPL", text, monday) for text in ("10.00", "20.00")),
        observation("AAPL", "10.00", tuesday),
    )
    assert gaps(core, window=week) == [("03-09", "03-09", 1, "unreadable")]
    answer_with(core, week, observation("AAPL", "10.00", tuesday))
    assert gaps(core, window=week) == [("03-09", "03-09", 1, "provider_has_none")]


def test_f8_a_gap_goes_on_over_weekends_and_holidays(core: Core) -> None:
    store(core, "03-11", "03-24")
    assert gaps(core, window=Window(date(2026, 3, 11), date(2026, 3, 24))) == [("03-12", "03-23", 7, "not_asked")]


def test_f8_the_latest_price_that_failed_is_a_gap_of_its_day_only(core: Core, clock: Clock) -> None:
    clock.set(datetime(2026, 3, 31, 22, tzinfo=UTC))
    store(core, "03-26", "03-27")
    core.enqueue(DAILY, "AAPL")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")
    window = Window(date(2026, 3, 26), date(2026, 3, 31))
    assert gaps(core, window=window) == [("03-30", "03-30", 1, "not_asked"), ("03-31", "03-31", 1, "failed")]


def test_f8_a_task_for_the_latest_price_is_no_gap_of_an_older_span(core: Core) -> None:
    store(core, "03-12", "03-16")
    core.enqueue(DAILY, "AAPL")
    days = Window(date(2026, 3, 12), date(2026, 3, 13))
    assert gaps(core, window=days) == [("03-13", "03-13", 1, "not_asked")]


def test_f8_what_a_person_says_of_the_listing_counts(core: Core) -> None:
    core.rows("UPDATE pricing.instruments SET listed_on = '2026-03-16' WHERE symbol = 'AAPL'")
    assert gaps(core)[0] == ("03-02", "03-13", 10, "not_listed")
    assert plan(core) == [("03-16", "03-31")]


def test_f8_gaps_at_the_command_line(cli: CommandLine, core: Core, api: RunningApi) -> None:
    store(core, "03-26", "03-27")
    arguments = ("price", "gaps", "AAPL", "--from", "2026-03-24")
    said = cli(*arguments, "--json")
    assert [
        (gap["data_type"], gap["from"], gap["to"], gap["sessions"], gap["kind"], gap["detail"])
        for gap in said.json["gaps"]
    ] == [
        (DAILY, "2026-03-24", "2026-03-25", 2, "not_asked", None),
        (DAILY, "2026-03-30", "2026-03-30", 1, "not_asked", None),
        (DAILY, "2026-03-31", "2026-03-31", 1, "not_published", None),
    ]
    assert said.json["market_closed"] == {DAILY: []}
    shown = cli(*arguments)
    assert "not_published" in shown.stdout
    assert "backfill start AAPL --type equity_daily --from 2026-03-24 --to 2026-03-30" in shown.stderr
    assert "only daily values are expected" in cli("price", "gaps", "AAPL", "--type", QUOTE).error
    assert "no data type of daily values applies to NOPE" in cli("price", "gaps", "NOPE").error
    core.pause("AAPL")
    assert (
        "AAPL is paused; first resume it: pricing-pipeline instrument resume AAPL. This fetches"
        in cli(*arguments).stderr
    )
    core.rows("UPDATE pricing.instruments SET calendar = 'XLON' WHERE symbol = 'AAPL'")
    assert "the trading days of XLON, the calendar of AAPL, are not known yet" in cli(*arguments).error
    problem = api.caller(Scope.READ).refusal("GET", f"gaps/{DAILY}/AAPL")
    assert (problem["status"], "within two minutes" in problem["detail"]) == (503, True), "try again"
    core.rows("UPDATE pricing.instruments SET calendar = NULL WHERE symbol = 'AAPL'")
    assert "AAPL has no trading calendar" in cli(*arguments).error


def test_f8_a_holiday_shows_as_such(cli: CommandLine, core: Core) -> None:
    """It is no gap, and anyone who looks for its value is told so; weekends are not worth a line."""
    store(core, "03-17", "03-19")
    arguments = ("price", "gaps", "AAPL", "--from", "2026-03-14", "--to", "2026-03-22")
    assert cli(*arguments, "--json").json["market_closed"] == {DAILY: [HOLIDAY]}
    assert f"{DAILY}: the market was closed on {HOLIDAY}" in cli(*arguments).stdout.splitlines()


def test_f8_of_many_holidays_the_last_are_told(cli: CommandLine, core: Core) -> None:
    """They must not hide the gaps, which somebody can act on."""
    store(core, "03-17", "03-19")
    core.rows("DELETE FROM pricing.calendar_sessions WHERE opens_at::date BETWEEN '2026-03-05' AND '2026-03-13'")
    said = cli("price", "gaps", "AAPL", "--from", "2026-03-01", "--to", "2026-03-22").stdout
    (line,) = [line for line in said.splitlines() if "the market was closed" in line]
    assert line == (
        f"{DAILY}: the market was closed on 8 days; the last were 2026-03-10, 2026-03-11, 2026-03-12, 2026-03-13, "
        f"{HOLIDAY} (--json has all)"
    )


# What a backfill asks for


def test_f8_g6_a_plan_asks_for_the_fewest_windows(core: Core) -> None:
    """Nothing on weekends and holidays, nothing that is not closed yet, one window over days that do not trade."""
    assert plan(core) == [("03-02", "03-31")]
    assert plan(core, Window(date(2026, 3, 7), date(2026, 3, 8))) == []
    assert plan(core, Window(date(2026, 3, 7), date(2026, 3, 15))) == [("03-09", "03-13")]
    cover(core, "2026-03-14", "2026-03-15")
    cover(core, "2026-03-18", "2026-03-18")
    assert plan(core) == [("03-02", "03-31")], "what was answered of days without trading parts nothing"
    cover(core, "2026-03-16", "2026-03-16")
    assert plan(core) == [("03-02", "03-13"), ("03-17", "03-31")]


def test_f8_g6_a_day_that_trades_is_asked_for_when_it_has_closed(core: Core, clock: Clock) -> None:
    clock.set(datetime(2026, 3, 31, 20, 59, tzinfo=UTC))
    assert plan(core) == [("03-02", "03-30")]


def test_f8_g6_values_that_are_there_are_not_asked_for_at_the_ends(core: Core) -> None:
    """Those within are asked for again: one call more would cost more than their bytes."""
    store(core, "03-02", "03-03", "03-10", "03-30")
    assert plan(core) == [("03-04", "03-31")]
    assert plan(core, Window(date(2026, 3, 2), date(2026, 3, 3))) == []


def test_f8_g6_a_value_from_before_the_close_is_asked_for_again(core: Core, clock: Clock) -> None:
    clock.set(datetime(2026, 3, 30, 16, tzinfo=UTC))
    store(core, "03-30")
    clock.set(datetime(2026, 3, 31, 21, 30, tzinfo=UTC))
    assert plan(core, Window(date(2026, 3, 30), date(2026, 3, 31))) == [("03-30", "03-31")]


def test_f8_g6_nothing_before_the_first_known_value_is_asked_for(core: Core) -> None:
    january = Window(date(2026, 1, 1), date(2026, 3, 31))
    store(core, "03-09")
    assert plan(core, january)[0] == ("01-01", "03-31")
    cover(core, "2026-02-20", "2026-03-27")
    assert plan(core, january) == [("03-30", "03-31")]
    assert gaps(core, window=january)[0] == ("01-01", "03-06", 47, "not_listed")
    # A value that is quarantined and older says that it was listed.
    quarantine(core, "2026-01-12", "looks like a split")
    assert plan(core, january) == [("01-01", "02-19"), ("03-30", "03-31")]


def test_f8_a_value_that_may_only_be_late_is_not_given_up(core: Core, clock: Clock) -> None:
    """A session is covered when a day has passed since its value should have been there."""
    cover(core, "2026-03-02", "2026-03-31")
    assert core.one("SELECT upper(covered) FROM pricing.history_coverage") == date(2026, 3, 30)
    clock.set(datetime(2026, 4, 1, 21, 16, tzinfo=UTC))
    cover(core, "2026-03-02", "2026-03-31")
    assert core.one("SELECT upper(covered) FROM pricing.history_coverage") == date(2026, 4, 1)


# Costs


def estimate(core: Core, window: Window = MARCH, symbols: Sequence[str] | None = None) -> list[backfills.Estimate]:
    with core.engine.connect() as connection:
        return backfills.estimate(connection, DAILY, window, symbols)


def test_f10_a_backfill_is_costed_before_it_runs(core: Core) -> None:
    (one,) = estimate(core)
    assert (one.provider, one.symbols, one.tasks, one.calls, one.units) == ("twelvedata", 5, 5, 5, 5)
    assert one.wire_bytes == 5 * (1000 + 30 * 120)
    assert one.quota_share == one.wire_bytes / (20 * 2**30)
    assert one.fits
    assert one.seconds == pytest.approx(5 * 0.5 / 8)
    assert core.tasks() == []
    planned = core.call("SELECT tasks FROM pricing.plan_backfill(:t, :a, :b)", t=DAILY, a=MARCH.start, b=MARCH.end)
    assert planned == one.tasks
    assert core.one("SELECT sum(est_bytes) FROM pricing.api_call_queue_live") == one.wire_bytes
    assert estimate(core) == [], "what is queued costs nothing more"


def test_f10_spans_that_share_a_call_are_costed_as_one(core: Core) -> None:
    core.rows("UPDATE pricing.provider_capabilities SET window_batch_size = 120")
    (one,) = estimate(core)
    assert (one.tasks, one.calls, one.units) == (5, 1, 5)
    (two,) = estimate(core, Window(date(2024, 1, 1), date(2025, 12, 31)))
    assert (two.tasks, two.calls) == (5, 3), "two of two years each"


def test_f10_the_time_is_that_of_the_limit_that_binds(core: Core) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 2 WHERE provider = 'twelvedata'")
    assert estimate(core)[0].seconds == 120, "5 units at 2 a minute: two waits"
    core.rows("INSERT INTO pricing.provider_limits VALUES ('twelvedata', 'day', 4, NULL, 'UTC')")
    assert estimate(core)[0].seconds == 86400
    core.rows("DELETE FROM pricing.provider_limits WHERE provider = 'twelvedata'")
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 2000")
    assert estimate(core)[0].seconds == 10


def test_f10_long_spans_cost_a_call_for_each_piece(core: Core) -> None:
    core.rows("UPDATE pricing.provider_capabilities SET max_window_days = 10")
    assert [one.calls for one in estimate(core, symbols=["AAPL", "IBM"])] == [6]


def test_f10_what_would_be_refused_is_said(cli: CommandLine, core: Core) -> None:
    arguments = (
        "backfill",
        "start",
        "--type",
        DAILY,
        "--from",
        "2026-03-02",
        "--to",
        "2026-03-31",
        "--dry-run",
    )
    said = cli(*arguments, "--json")
    assert said.exit_code == 0
    assert {name: said.json[name] for name in ("tasks", "calls", "units", "fits", "minutes")} == {
        "tasks": 5,
        "calls": 5,
        "units": 5,
        "fits": True,
        "minutes": 0.01,
    }
    assert said.json["providers"][0]["left_bytes"] == 20 * 2**30 // 100 * 75
    assert "twelvedata" in cli(*arguments).stdout
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 20000 WHERE provider = 'twelvedata'")
    said = cli(*arguments)
    assert said.exit_code == 1
    assert "the backfill would be refused: twelvedata has 15.0 kB left" in said.stderr
    core.rows("DELETE FROM pricing.provider_routing")
    said = cli(*arguments, "--json")
    assert said.exit_code == 1
    assert said.json["providers"][0]["provider"] is None
    assert "no active provider serves equity_daily of 5 symbols" in said.stderr
    assert core.tasks() == []
    cover(core, "2026-03-01", "2026-03-31", "AAPL", "IBM", "MSFT", "GOOG", "META")
    said = cli("backfill", "start", "--type", DAILY, "--from", "2026-03-02", "--to", "2026-03-20", "--dry-run")
    assert "nothing from 2026-03-02 to 2026-03-20 is to be asked for: 5 known to have no values." in said.stdout


# Following and calling off


def test_g6_backfills_are_listed_and_called_off(cli: CommandLine, core: Core) -> None:
    backfill = core.call(
        "SELECT backfill_id FROM pricing.plan_backfill(:t, :a, :b)", t=DAILY, a=MARCH.start, b=MARCH.end
    )
    core.complete(core.claim_one())
    running = core.claim_one()

    def listed() -> dict[str, object]:
        (row,) = cli("backfill", "list", "--json").json["backfills"]
        assert row["backfill_id"] == str(backfill)
        return {name: row[name] for name in ("state", "tasks", "done", "failed", "cancelled", "open")}

    assert listed() == {"state": "running", "tasks": 5, "done": 1, "failed": 0, "cancelled": 0, "open": 4}
    assert "running" in cli("backfill", "list").stdout
    assert cli("backfill", "cancel", str(backfill), "--json").json["cancelled"] == 4
    assert not core.complete(running), "its finish is refused"
    assert core.claim() == []
    assert listed() == {"state": "cancelled", "tasks": 5, "done": 1, "failed": 0, "cancelled": 4, "open": 0}
    assert cli("backfill", "cancel", str(backfill)).stdout.startswith("nothing to do: it was cancelled at ")
    assert plan(core, symbols=["AAPL", "IBM", "MSFT", "GOOG", "META"]) != []
    assert "there is no backfill" in cli("backfill", "cancel", str(uuid4())).error
    said = cli("backfill", "cancel", "999")
    assert (said.exit_code, said.error.partition(".")[0]) == (
        2,
        "Invalid value: '999' is not an id",
    )


def test_g6_one_that_has_ended_cannot_be_called_off(cli: CommandLine, core: Core) -> None:
    backfill = core.call(
        "SELECT backfill_id FROM pricing.plan_backfill(:t, :a, :b)", t=DAILY, a=MARCH.start, b=MARCH.end
    )
    for _ in range(5):
        core.complete(core.claim_one())
    core.call("SELECT pricing.backfill_progress(:id)", id=backfill)
    assert cli("backfill", "cancel", str(backfill)).stdout.startswith("nothing to do: it ended at ")
    (row,) = cli("backfill", "list", "--json").json["backfills"]
    assert row["state"] == "done"
