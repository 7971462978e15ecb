"""One decision, or one action that is entered, settles a whole level of quarantined values (F5, F6)."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Adjust, Answer
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.prices.price_reader import bars
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import reviews
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, Core, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.reported_actions import day
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")

SCHEME = "125497"
CHANGE = date(2015, 8, 30)
LAST = CHANGE + timedelta(days=1500)


def bring(core: Core, data_type: str, symbol: str, rows: list[Observation], **parts: Any) -> Tally:
    """Settle a call that brought these values of the past."""
    core.lift_limits()
    core.rows("DELETE FROM pricing.api_call_queue_live")
    days = (min(row.observed_at for row in rows).date(), max(row.observed_at for row in rows).date())
    core.enqueue(data_type, symbol, days=days)
    call = core.claim_one("mfapi" if data_type == NAV else "twelvedata")
    answer = Answer(observations=Rows(rows), **parts)
    return settling.settle_answer(core.engine, call, Fetched(answer, 200, 4, body=b"body"))


def face_value_change(before: int = 40, after: int = 80) -> list[Observation]:
    """A fund whose units are of a hundredth from one day on, with so many days before it and since."""
    days = [CHANGE + timedelta(days=number) for number in range(-before, after)]
    navs = (Decimal(1000) + Decimal(number) / 10 for number in range(len(days)))
    return [
        observation(SCHEME, str(nav if day < CHANGE else nav / 100), midnight(day), currency="INR")
        for day, nav in zip(days, navs, strict=True)
    ]


def quarantined(core: Core) -> int:
    return int(core.one("SELECT count(*) FROM pricing.quarantined_values WHERE status = 'quarantined'"))


def one_quarantined(core: Core) -> int:
    return int(core.one("SELECT max(value_id) FROM pricing.quarantined_values WHERE status = 'quarantined'"))


def stored(core: Core, symbol: str = SCHEME, data_type: str = NAV) -> dict[date, Decimal]:
    return {bar.observed_at.date(): bar.close for bar in core.history(symbol, data_type, date(1990, 1, 1), LAST)}


def test_f6_one_decision_releases_805_days_of_another_face_value(core: Core) -> None:
    """As those of scheme 119092 in 2015."""
    rows = face_value_change(before=805, after=1500)
    bring(core, NAV, SCHEME, rows)
    assert quarantined(core) == 805
    made = reviews.decide(
        core.engine, [one_quarantined(core)], "released", "ann", "face value 1000 to 10", with_levels=True
    )
    assert len(made) == 805
    assert {one.outcome for one in made} == {"released"}
    assert quarantined(core) == 0
    assert stored(core) == {row.observed_at.date(): row.close for row in rows}
    assert {row.resolved_by for row in core.rows("SELECT resolved_by FROM pricing.quarantined_values")} == {"ann"}
    tally = bring(core, NAV, SCHEME, rows)
    assert (tally.quarantined, tally.revised) == (0, 0), "when they come again they are believed"
    audit(core)


def test_f6_one_statement_of_sql_decides_on_a_level(core: Core) -> None:
    rows = face_value_change()
    bring(core, NAV, SCHEME, rows)
    made = core.rows(
        "SELECT outcome, count(*) AS values"
        " FROM pricing.decide_quarantined(pricing.level_of(:id), :what, 'ann', 'known') GROUP BY 1",
        id=one_quarantined(core),
        what="rejected",
    )
    assert [tuple(row) for row in made] == [("rejected", 40)]
    assert (quarantined(core), rows[0].observed_at.date() in stored(core)) == (0, False)


def test_f6_the_command_line_decides_on_a_level(cli: CommandLine, core: Core) -> None:
    bring(core, NAV, SCHEME, face_value_change())
    value_id = str(one_quarantined(core))
    assert len(cli("quarantine", "show", value_id, "--json").json["level"]) == 40
    assert "and the 39 others on its level" in cli("quarantine", "show", value_id).stderr
    done = cli("quarantine", "reject", value_id, "--level", "--user", "ann")
    assert (done.exit_code, done.stdout) == (0, f"40 values on the level of {value_id}: rejected.\n")
    done = cli("quarantine", "release", value_id, "--level", "--user", "bob", "--json")
    assert done.json["counts"] == {"released": 40}
    again = cli("quarantine", "release", value_id, "--level", "--json")
    assert (again.exit_code, again.json["counts"]) == (0, {"released_already": 40})


def test_f5_one_action_that_is_entered_settles_the_level(cli: CommandLine, core: Core) -> None:
    """After a person has said what happened, nothing more is needed; adjusted, the history has no step."""
    rows = face_value_change()
    bring(core, NAV, SCHEME, rows)
    done = cli("action", "add", SCHEME, str(CHANGE), "--split", "100:1", "--user", "ann")
    assert "40 quarantined values are explained by it, and are prices now" in done.stdout
    assert quarantined(core) == 0
    assert stored(core) == {row.observed_at.date(): row.close for row in rows}
    (why,) = {row.resolution for row in core.rows("SELECT resolution FROM pricing.quarantined_values")}
    assert why == "judged again: a split of 100:1 on 2015-08-30 is known"
    with core.engine.connect() as connection:
        found = bars(connection, SCHEME, NAV, date(2010, 1, 1), LAST, adjust=Adjust.SPLITS)
    assert max(abs(b.close / a.close - 1) for a, b in pairwise(found)) < Decimal("0.001")


def test_f5_what_sql_enters_the_next_tick_of_a_worker_judges(core: Core) -> None:
    bring(core, NAV, SCHEME, face_value_change())
    entered = "SELECT pricing.enter_action('fund', :symbol, :day, 'split', 100, 1, NULL, NULL, 'ann')"
    core.rows(entered, symbol=SCHEME, day=CHANGE)
    assert quarantined(core) == 40
    assert len(reviews.judge_anew(core.engine)) == 40
    assert quarantined(core) == 0
    assert reviews.judge_anew(core.engine) == [], "once"


def test_f5_an_action_that_explains_nothing_releases_nothing(core: Core) -> None:
    bring(core, NAV, SCHEME, face_value_change())
    entered = "SELECT pricing.enter_action('fund', :symbol, :day, 'split', 2, 1, NULL, NULL, 'ann')"
    core.rows(entered, symbol=SCHEME, day=CHANGE)
    assert reviews.judge_anew(core.engine) == []
    assert quarantined(core) == 40


PAST = {1: "400.00", 2: "404.00", 3: "402.00", 4: "410.00", 5: "102.50", 8: "103.00"}


def daily(prices: dict[int, str]) -> list[Observation]:
    return [observation("AAPL", close, midnight(day(on))) for on, close in prices.items()]


def test_f5_after_a_person_has_said_4_to_1_nothing_more_is_needed(core: Core, clock: Clock) -> None:
    """A source divides its past by a split that nobody told: quarantined, entered, and asked for again by itself."""
    before = {on: close for on, close in PAST.items() if on < 5}
    bring(core, DAILY, "AAPL", daily(before))
    divided = {on: str(Decimal(close) / 4) for on, close in before.items()}
    bring(core, DAILY, "AAPL", daily({**divided, 4: before[4]}))
    assert quarantined(core) == 3
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.call("SELECT pricing.refetch_history()")
    core.rows("DELETE FROM pricing.api_call_queue_live")
    assert core.call("SELECT pricing.refetch_history()") == 0, "asked for once, in vain"
    clock.advance(86400 * 30)
    core.rows("SELECT pricing.enter_action('equity', 'AAPL', '2010-03-04', 'split', 4, 1, NULL, NULL, 'ann')")
    made = reviews.judge_anew(core.engine)
    assert {one.outcome for one in made} == {"rejected"}, "they are what is stored"
    assert quarantined(core) == 0
    assert core.call("SELECT pricing.refetch_history()") == 1
    asked = [task for task in core.tasks("AAPL") if task.status == "pending"]
    assert min(task.first_day for task in asked) == day(1)
    assert core.call("SELECT pricing.refetch_history()") == 0, "and once more only"


def test_f5_a_step_that_is_explained_is_stored(core: Core) -> None:
    """Its events name no split, so the step was quarantined: the split that is entered is as traded in its prices."""
    since = {"AAPL": day(1)}
    bring(core, DAILY, "AAPL", daily(PAST), actions_since=since)
    assert quarantined(core) > 0
    core.rows("SELECT pricing.enter_action('equity', 'AAPL', '2010-03-05', 'split', 4, 1, NULL, NULL, 'ann')")
    reviews.judge_anew(core.engine)
    assert quarantined(core) == 0
    assert {on.day: str(close) for on, close in stored(core, "AAPL", DAILY).items()} == PAST


def test_f5_a_split_that_a_source_tells_has_quarantined_values_judged_anew_too(core: Core) -> None:
    bring(core, DAILY, "AAPL", daily(PAST), actions_since={"AAPL": day(1)})
    said = '[{"symbol": "AAPL", "ex_on": "2010-03-05", "kind": "split", "new_shares": 4, "old_shares": 1}]'
    core.call("SELECT pricing.merge_actions('equity_daily', 'fmp', 1, CAST(:said AS jsonb), '{}', '{}')", said=said)
    assert {one.outcome for one in reviews.judge_anew(core.engine)} == {"released"}
    assert quarantined(core) == 0


def test_f6_a_level_ends_at_a_believed_value_and_at_another_level(core: Core) -> None:
    """Invariant: a level is a run of quarantined values near to each other; levels part the quarantined values."""
    core.rows("DELETE FROM pricing.quarantined_values")

    @settings(max_examples=examples(30), deadline=None)
    @given(st.lists(st.sampled_from("aAb."), min_size=1, max_size=12))
    def parts(marks: list[str]) -> None:
        core.rows("DELETE FROM pricing.quarantined_values")
        core.rows("DELETE FROM pricing.price_history")
        prices = {"a": 100, "A": 110, "b": 900}
        for number, mark in enumerate(marks):
            at = midnight(day(1)) + timedelta(days=number)
            if mark == ".":
                core.rows(
                    "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider,"
                    " call_id, fetched_at) VALUES ('equity_daily', 'AAPL', :at, 1, 0, 'yahoo', 1, pricing.clock())",
                    at=at,
                )
            else:
                core.rows(
                    "INSERT INTO pricing.quarantined_values (data_type, symbol, provider, observed_at, kind, value,"
                    " reason, bar, call_id, recorded_at, last_seen_at, last_call_id) VALUES ('equity_daily', 'AAPL',"
                    " 'yahoo', :at, 'unit', :price, :price, jsonb_build_object('close', CAST(:price AS text)), 1,"
                    " pricing.clock(), pricing.clock(), 1)",
                    at=at,
                    price=str(prices[mark]),
                )
        expected: list[set[int]] = [set()]
        for number, mark in enumerate(marks):
            is_near = number and mark.lower() == marks[number - 1].lower() and mark != "."
            if not is_near:
                expected.append(set())
            if mark != ".":
                expected[-1].add(number)
        found = core.rows(
            "SELECT DISTINCT (SELECT array_agg(extract(day FROM x.observed_at AT TIME ZONE 'UTC')::integer - 1)"
            " FROM pricing.quarantined_values x WHERE x.value_id = ANY (pricing.level_of(q.value_id))) AS level"
            " FROM pricing.quarantined_values q"
        )
        assert sorted(sorted(row.level) for row in found) == sorted(sorted(one) for one in expected if one)

    parts()
