"""F5: a change of face value is recognized once it has stood for twenty days, and one command undoes it.

Invariant: NAVs on another level are released by themselves only if the level stands at one end of the history, is a
power of ten from the believed value beside it, and no person has said otherwise.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Adjust, Answer
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.prices.price_reader import bars
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import reviews
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import NAV, Core, midnight, observation
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")

SCHEME = "125497"
CHANGE = date(2015, 8, 30)


def navs(before: int, after: int, factor: Decimal, *, back: int = 0) -> list[Observation]:
    """So many days before the change and after it, and so many on which the old level is back."""
    values = [Decimal(1000) + Decimal(number) / 10 for number in range(before + after + back)]
    levels = [Decimal(1)] * before + [factor] * after + [Decimal(1)] * back
    first = CHANGE - timedelta(days=before)
    return [
        observation(SCHEME, str(value * level), midnight(first + timedelta(days=number)), currency="INR")
        for number, (value, level) in enumerate(zip(values, levels, strict=True))
    ]


def bring(core: Core, rows: list[Observation]) -> None:
    core.lift_limits()
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.enqueue(NAV, SCHEME, days=(rows[0].observed_at.date(), rows[-1].observed_at.date()))
    call = core.claim_one("mfapi")
    settling.settle_answer(core.engine, call, Fetched(Answer(observations=Rows(rows)), 200, 4, body=b"body"))


def tick(core: Core) -> int:
    """What workers do: the duty, and then the judgement of what it has entered."""
    entered = int(core.call("SELECT pricing.enter_face_values()"))
    reviews.judge_anew(core.engine)
    return entered


def quarantined(core: Core) -> int:
    return int(core.one("SELECT count(*) FROM pricing.quarantined_values WHERE status = 'quarantined'"))


def stored(core: Core) -> dict[date, Decimal]:
    found = core.history(SCHEME, NAV, date(1990, 1, 1), date(2026, 1, 1))
    return {bar.observed_at.date(): bar.close for bar in found}


@pytest.mark.parametrize("factor", ["0.01", "1000"])
def test_f5_the_days_before_a_change_of_face_value_are_released_by_themselves(core: Core, factor: str) -> None:
    rows = navs(40, 60, Decimal(factor))
    bring(core, rows)
    assert quarantined(core) == 40
    assert tick(core) == 1
    assert quarantined(core) == 0
    assert stored(core) == {row.observed_at.date(): row.close for row in rows}, "as they were published"
    (action,) = core.rows("SELECT ex_on, kind, entered_by, reason FROM pricing.corporate_actions")
    assert (action.ex_on, action.kind, action.entered_by) == (CHANGE, "split", "face value rule")
    assert action.reason.startswith("restated: ")
    with core.engine.connect() as connection:
        found = bars(connection, SCHEME, NAV, date(2015, 1, 1), date(2016, 12, 31), adjust=Adjust.SPLITS)
    assert max(abs(b.close / a.close - 1) for a, b in pairwise(found)) < Decimal("0.001")
    assert tick(core) == 0, "once"
    audit(core)


def test_f5_a_new_level_is_released_after_twenty_days_and_one_command_takes_it_back(
    cli: CommandLine, core: Core
) -> None:
    rows = navs(100, 40, Decimal(100))
    bring(core, rows[:119])
    assert (tick(core), quarantined(core)) == (0, 19)
    bring(core, rows[119:120])
    assert (tick(core), quarantined(core)) == (1, 0)
    bring(core, rows[120:])
    assert quarantined(core) == 0, "what comes later stands on the believed level"
    core.rows("SELECT pricing.show_latest(ARRAY[h], h.fetched_at) FROM pricing.price_history h")

    done = cli("action", "remove", SCHEME, str(CHANGE), "--kind", "split", "--user", "ann")
    assert done.exit_code == 0
    assert quarantined(core) == 40
    assert set(stored(core)) == {row.observed_at.date() for row in rows[:100]}
    assert core.one("SELECT count(*) FROM pricing.price_revisions") == 40, "nothing is lost"
    latest = core.latest(SCHEME, NAV)
    assert latest is not None
    assert latest.observed_at.date() == CHANGE - timedelta(days=1)
    assert tick(core) == 0, "a person has said that there was no such change"
    assert quarantined(core) == 40
    audit(core)


def test_f5_only_a_whole_and_lasting_change_at_an_end_is_recognized(core: Core) -> None:
    @settings(max_examples=examples(40), deadline=None)
    @given(
        days=st.integers(15, 26),
        back=st.sampled_from([0, 0, 5, 30]),
        factor=st.sampled_from(["100", "0.01", "1000", "37", "0.04", "250"]),
    )
    def holds(days: int, back: int, factor: str) -> None:
        for table in ("price_history", "latest_prices", "quarantined_values", "corporate_actions"):
            core.rows(f"DELETE FROM pricing.{table}")
        bring(core, navs(60, days, Decimal(factor), back=back))
        doubted = quarantined(core)
        is_change = days >= 20 and back == 0 and factor in ("100", "0.01", "1000")
        assert tick(core) == int(is_change)
        assert quarantined(core) == (0 if is_change else doubted)

    holds()
