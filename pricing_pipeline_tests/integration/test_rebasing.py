"""F5: a history has one basis, and becomes one as traded as a whole, with its own provider: no first answer decides."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Answer, Split
from pricing_pipeline.domain.observations import Adjustment, Observation, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.prices import context as contexts
from pricing_pipeline.prices import price_reader
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.core import DAILY, TWELVEDATA, Core, a_call, windowed
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.yahoo_answers import NOW, chart, parse

pytestmark = pytest.mark.usefixtures("still")

RAW, SPLITS = Adjustment.RAW, Adjustment.SPLITS
DAYS = [day for n in range(46) if (day := date(2026, 10, 5) + timedelta(days=n)).weekday() < 5][-30:]
SPLIT = Split("AAPL", DAYS[15], Decimal(4), Decimal(1))
TODAYS = {day: Decimal(100 + n % 7) for n, day in enumerate(DAYS)}
"""Prices of today's shares."""
AS_TRADED = {day: value * (4 if day < SPLIT.ex_on else 1) for day, value in TODAYS.items()}
SAID = {RAW: AS_TRADED, SPLITS: TODAYS}
Belief = Mapping[date, tuple[Decimal, Adjustment]]


@pytest.fixture(autouse=True)
def _now(core: Core, clock: Clock, still: None) -> None:
    clock.set(NOW)
    core.lift_limits()


def answer_of(values: Mapping[date, Decimal], basis: Adjustment, start: date) -> Answer:
    rows = Rows(
        Observation(
            "AAPL",
            datetime.combine(day, time(), UTC),
            close,
            str(close),
            "USD",
            volume=Decimal(9),
            adjustment=basis,
        )
        for day, close in values.items()
    )
    if basis is SPLITS:  # one of its splits could not be read
        return Answer(observations=rows)
    splits = (SPLIT,) if SPLIT.ex_on > start else ()
    return Answer(observations=rows, actions=splits, actions_since={"AAPL": start})


def settle(core: Core, answer: Answer, first: date, last: date, provider: str = TWELVEDATA) -> None:
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("DELETE FROM pricing.api_call_queue_dead")
    core.enqueue(DAILY, "AAPL", days=(first, last))
    call = a_call(windowed(core.claim_one(), first, last), provider=provider)
    settling.settle_answer(core.engine, call, Fetched(answer, 200, 4, body=b"{}"))


def bring(core: Core, basis: Adjustment, first: int, last: int, provider: str = TWELVEDATA) -> None:
    """A backfill of these days, on this basis."""
    values = {day: SAID[basis][day] for day in DAYS[first : last + 1]}
    settle(core, answer_of(values, basis, DAYS[first]), DAYS[first], DAYS[last], provider)


def belief(core: Core, as_of: datetime | None = None) -> Belief:
    with core.engine.begin() as connection:
        rows = price_reader.bars(connection, "AAPL", DAILY, DAYS[0], DAYS[-1], as_of=as_of)
    return {row.observed_at.date(): (row.close, Adjustment(row.adjustment)) for row in rows}


def of(basis: Adjustment, first: int, last: int) -> Belief:
    return {day: (SAID[basis][day], basis) for day in DAYS[first : last + 1]}


def asked(core: Core, clock: Clock) -> tuple[date, date] | None:
    """The days of a history that is asked for as a whole."""
    if core.call("SELECT pricing.refetch_history()") == 0:
        return None
    (task,) = core.rows("SELECT min(window_start) AS first, max(window_end) AS last FROM pricing.api_call_queue_live")
    return task.first, task.last


def failure(core: Core) -> str | None:
    rows = core.rows("SELECT errors -> -1 ->> 'message' AS said FROM pricing.api_call_queue_dead")
    return rows[0].said if rows else None


@pytest.mark.parametrize("lie", [(1e12, 1.0), (0.0, 1.0)])
def test_f5_a_broken_split_of_the_first_answer_does_not_decide_for_good(core: Core, lie: tuple[float, float]) -> None:
    """The mended source's days failed as misconfigured, at each backfill."""
    closes = {f"{day}T09:30": float(close) for day, close in TODAYS.items()}
    window = Window(DAYS[0], DAYS[-1])
    settle(core, parse(chart(closes, splits=[(f"{DAYS[20]}T09:30", *lie)]), window=window), *(DAYS[0], DAYS[-1]))
    assert {basis for _, basis in belief(core).values()} == {SPLITS}
    settle(core, parse(chart(closes), window=window), *(DAYS[0], DAYS[-1]))
    assert belief(core) == {day: (close, RAW) for day, close in TODAYS.items()}
    assert failure(core) is None
    assert core.one("SELECT count(*) FROM pricing.price_revisions WHERE adjustment = 'splits'") == len(DAYS)


def test_f5_of_a_part_as_traded_the_whole_history_is_asked_for(core: Core, clock: Clock) -> None:
    bring(core, SPLITS, 5, 20)
    bring(core, RAW, 0, 10)
    assert (belief(core), failure(core)) == (of(SPLITS, 5, 20), None)
    assert (
        core.one("SELECT count(*) FROM pricing.history_coverage WHERE covered @> CAST(:day AS date)", day=DAYS[0]) == 0
    )
    first, last = asked(core, clock) or (None, None)
    assert (first, last and last >= DAYS[20]) == (DAYS[0], True)
    bring(core, RAW, 0, 29)
    assert belief(core) == of(RAW, 0, 29)


def test_f5_the_whole_history_is_asked_for_once_a_day(core: Core, clock: Clock) -> None:
    bring(core, SPLITS, 0, 29)
    for _ in range(2):
        bring(core, RAW, 0, 10)
        assert failure(core) is None
        assert asked(core, clock)
        bring(core, RAW, 0, 10)
        assert "asked for less than a day ago" in (failure(core) or "")
        core.rows("DELETE FROM pricing.api_call_queue_live")
        assert asked(core, clock) is None
        clock.advance(90_000)
    assert belief(core) == of(SPLITS, 0, 29)


def test_f5_days_that_are_left_out_twice_leave_a_history_for_its_revisions(core: Core, clock: Clock) -> None:
    """An answer that is cut short empties no history; a day that the source says no more keeps no other one out."""
    bring(core, SPLITS, 0, 29)
    before = core.clock()
    clock.advance(60)
    short = {day: AS_TRADED[day] for day in DAYS[1:]}
    settle(core, answer_of(short, RAW, DAYS[0]), DAYS[0], DAYS[-1])
    assert (belief(core), failure(core)) == (of(SPLITS, 0, 29), None)
    assert asked(core, clock)
    settle(core, answer_of(short, RAW, DAYS[0]), DAYS[0], DAYS[-1])
    assert belief(core) == of(RAW, 1, 29)
    assert belief(core, before) == of(SPLITS, 0, 29)


def test_f5_a_whole_history_that_waited_for_its_turn_settles_the_basis(core: Core, clock: Clock) -> None:
    """With a quota that is spent for days it would be asked for again and again."""
    bring(core, SPLITS, 0, 29)
    short = answer_of({day: AS_TRADED[day] for day in DAYS[1:]}, RAW, DAYS[0])
    settle(core, short, DAYS[0], DAYS[-1])
    clock.advance(3 * 86_400)
    assert asked(core, clock)
    clock.advance(3 * 86_400)
    call = windowed(core.claim_one(), DAYS[0], DAYS[-1])
    settling.settle_answer(core.engine, call, Fetched(short, 200, 4, body=b"{}"))
    assert belief(core) == of(RAW, 1, 29)


def test_f5_another_provider_changes_no_basis(core: Core, clock: Clock) -> None:
    bring(core, SPLITS, 0, 29)
    bring(core, RAW, 0, 29, "yahoo")
    assert belief(core) == of(SPLITS, 0, 29)
    assert "Route it to a provider of the same adjustment" in (failure(core) or "")
    assert asked(core, clock) is None


def test_f5_a_past_on_another_level_changes_no_basis(core: Core) -> None:
    bring(core, SPLITS, 0, 29)
    wrong = {day: value * 100 for day, value in AS_TRADED.items()}
    settle(core, answer_of(wrong, RAW, DAYS[0]), DAYS[0], DAYS[-1])
    assert belief(core) == of(SPLITS, 0, 29)


def test_f5_what_is_quarantined_on_the_old_basis_cannot_be_released_into_the_new_one(core: Core) -> None:
    spike = {**TODAYS, DAYS[7]: Decimal(900)}
    settle(core, answer_of(spike, SPLITS, DAYS[0]), DAYS[0], DAYS[-1])
    query = "SELECT bar ->> 'adjustment' AS basis, value FROM pricing.quarantined_values WHERE status = 'quarantined'"
    assert [tuple(row) for row in core.rows(query)] == [("splits", "900")]
    settle(core, answer_of({**AS_TRADED, DAYS[8]: Decimal(3600)}, RAW, DAYS[0]), DAYS[0], DAYS[-1])
    assert {basis for _, basis in belief(core).values()} == {SPLITS}, "a stored day came with a doubtful value"
    bring(core, RAW, 0, 29)
    assert belief(core) == of(RAW, 0, 29)
    assert {row.basis for row in core.rows(query)} <= {"raw"}


def test_f5_the_latest_price_goes_on_on_the_new_basis(core: Core) -> None:
    bring(core, SPLITS, 0, 29)
    columns = "data_type, symbol, amount, scale, observed_at, fetched_at, provider, call_id, adjustment"
    core.rows(
        f"INSERT INTO pricing.latest_prices ({columns}, source_text, changed_at) SELECT {columns}, '', observed_at"
        " FROM pricing.price_history ORDER BY observed_at DESC LIMIT 1"
    )
    bring(core, RAW, 0, 29)
    assert core.one("SELECT adjustment FROM pricing.latest_prices") == "raw"


def test_f5_no_basis_changes_while_another_session_stores_days_on_the_old_one(core: Core) -> None:
    """That session knew the old basis: its days would have been a second one in the history."""
    bring(core, SPLITS, 0, 19)
    core.enqueue(DAILY, "AAPL", days=(DAYS[20], DAYS[29]))
    call = windowed(core.claim_one(), DAYS[20], DAYS[29])
    with core.engine.begin() as connection:
        contexts.load(connection, call, Answer(), call.symbols)
        bring(core, RAW, 0, 29)
    assert belief(core) == of(SPLITS, 0, 19)
    bring(core, RAW, 0, 29)
    assert belief(core) == of(RAW, 0, 29)
