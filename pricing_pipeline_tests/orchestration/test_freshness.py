"""Freshness as Dagster shows it: calm while viewers are served on time, honest when they are not."""

from __future__ import annotations

import json
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.core import DAILY, FX, MFAPI, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, said
from pricing_pipeline_tests.fixtures.database import Clock

SENSOR = "report_prices"
NOTHING_PAUSED: dict[str, Any] = {"idle": [], "paused": {}}
pytestmark = pytest.mark.usefixtures("still")


def told(tick: SensorExecutionData) -> list[str]:
    """The data types a tick vouches for. Besides it evaluates the check on_time, and observes what is not fetched."""
    assert not tick.run_requests
    events = [event for event in tick.asset_events if isinstance(event, dg.AssetMaterialization)]
    for event in events:
        assert event.asset_key.path[0] == "freshness"
        assert event.partition is None
    assert len(events) + len(checks(tick)) + len(observed(tick)) == len(tick.asset_events)
    return [event.asset_key.path[1] for event in events]


def judged(tick: SensorExecutionData) -> dict[str, bool]:
    """Whether the check on_time passes, of the data types that have just turned."""
    first = checked_first(tick)
    return {type_: passed for (type_, _), passed in checks(tick).items() if type_ not in first}


def checks(tick: SensorExecutionData) -> dict[tuple[str, str], bool]:
    """Whether checks pass, by data type and name."""
    events = [event for event in tick.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
    return {(event.asset_key.path[1], event.check_name): event.passed for event in events}


def checked_first(tick: SensorExecutionData) -> set[str]:
    """The data types of which not only on_time is evaluated."""
    return {type_ for type_, name in checks(tick) if name != "on_time"}


def observed(tick: SensorExecutionData) -> dict[str, str]:
    """What is said of data types of which nothing can be fetched."""
    events = [event for event in tick.asset_events if isinstance(event, dg.AssetObservation)]
    return {event.asset_key.path[1]: said(event)["reason"] for event in events}


def cursor(tick: SensorExecutionData) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(tick.cursor or "{}")["freshness"]
    kept.pop("checked", None)
    return kept


def metadata(tick: SensorExecutionData, data_type: str) -> dict[str, Any]:
    (event,) = [
        event
        for event in tick.asset_events
        if event.asset_key.path[1] == data_type and isinstance(event, dg.AssetMaterialization)
    ]
    return said(event)


def test_g2_a_type_that_nobody_watches_gets_no_event(stage: Stage, core: Core, clock: Clock) -> None:
    """An event says that viewers are served: without viewers there is nothing to say, whatever is stored."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    told_of = stage.tick(SENSOR)
    assert told(told_of) == [QUOTE]
    assert cursor(told_of) == {"at": {QUOTE: core.clock().timestamp()}, "late": [], **NOTHING_PAUSED}
    stage.instance.report_runless_asset_event(dg.AssetMaterialization(["freshness", QUOTE]))
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    clock.advance(31)
    tick = stage.tick(SENSOR, told_of.cursor)
    assert (told(tick), tick.skip_message) == ([], "nobody watches: 4 data types")
    assert stage.materializations("freshness", QUOTE) == [], "what was said would turn red"
    assert len(stage.materializations("latest_price", QUOTE)) == 1
    said = stage.spec("freshness", QUOTE).description
    assert "nobody watches the type" in str(said)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert told(stage.tick(SENSOR, tick.cursor)) == [QUOTE], "watched again and fresh: at once"


def test_g2_there_is_no_word_before_the_first_price_and_then_one_at_once(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    waiting = stage.tick(SENSOR)
    assert (told(waiting), cursor(waiting)) == ([], {"at": {}, "late": [], **NOTHING_PAUSED})
    assert str(waiting.skip_message).startswith(f"being fetched, so nothing is reported: {QUOTE} (2)")
    core.refresh()
    first = stage.tick(SENSOR, waiting.cursor)
    assert told(first) == [QUOTE]


def test_g2_all_checks_are_evaluated_once_after_the_first_prices_a_type_in_a_tick(
    stage: Stage, core: Core, clock: Clock
) -> None:
    """Else they would read "Not evaluated" for up to an hour."""
    core.heartbeat("ann", (QUOTE, "AAPL"), (DAILY, "AAPL"), (FX, "EUR/USD"))
    waiting = stage.tick(SENSOR)
    assert checks(waiting) == {}
    core.refresh()
    tick, seen = stage.tick(SENSOR, waiting.cursor), list[set[str]]()
    while checks(tick):
        seen.append(checked_first(tick))
        clock.advance(15)
        tick = stage.tick(SENSOR, tick.cursor)
    assert sorted(map(sorted, seen)) == [[DAILY], [QUOTE], [FX]]


def test_g2_a_new_pair_silences_its_type_once_it_waits_for_30_s(stage: Stage, core: Core, clock: Clock) -> None:
    """Where viewers come all the time, some pair always waits for its first price. That alone is no trouble."""
    core.heartbeat("ann", (FX, "EUR/USD"))
    core.refresh()
    core.heartbeat("ann", (FX, "GBP/USD"))
    clock.advance(29)
    waiting = stage.tick(SENSOR)
    assert told(waiting) == [FX]
    assert metadata(waiting, FX)["reason"] == "2 watched prices: 1 fresh, 1 due. 1 was never fetched."
    clock.advance(2)
    late = stage.tick(SENSOR, waiting.cursor)
    assert (told(late), judged(late)) == ([], {FX: False})
    core.refresh()
    back = stage.tick(SENSOR, late.cursor)
    assert (told(back), judged(back)) == ([FX], {FX: True})


def test_g2_a_new_type_is_told_of_at_once(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (NAV, "118632"))
    core.refresh()
    core.refresh(MFAPI)
    first = stage.tick(SENSOR)
    assert told(first) == [QUOTE, NAV]
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('new_quote', 'quote', 5)"
    )
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")
    core.heartbeat("ann", ("new_quote", "AAPL"))
    core.refresh()
    stage.reload()
    tick = stage.tick(SENSOR, first.cursor)
    assert told(tick) == ["new_quote"]
    assert NAV not in str(tick.cursor)


def test_g2_late_is_counted_again_for_each_refresh_owed(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh()
    clock.advance(30)
    core.heartbeat("ann", (QUOTE, "META"))
    core.refresh()
    clock.advance(55)  # two are due for 25 s
    assert QUOTE in told(stage.tick(SENSOR))
    clock.advance(10)
    assert QUOTE not in told(stage.tick(SENSOR))
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"), (QUOTE, "META"))
    core.enqueue_due()
    assert QUOTE not in told(stage.tick(SENSOR))
    core.refresh()
    assert QUOTE in told(stage.tick(SENSOR))


def test_g2_no_event_before_the_first_answer_to_a_viewer_who_comes_back(stage: Stage, core: Core, clock: Clock) -> None:
    """An event means a confirmed price: last night's is none, and nor is one of a pair that others look at."""
    core.heartbeat("ann", (NAV, "118632"), (NAV, "120503"))
    core.refresh(MFAPI)
    clock.advance(30 * 86_400)
    core.clean()
    core.heartbeat("ann", (NAV, "118632"))
    morning = stage.tick(SENSOR)
    assert told(morning) == []
    assert str(morning.skip_message).startswith(f"being fetched, so nothing is reported: {NAV} (1)")
    core.refresh(MFAPI)
    answered = stage.tick(SENSOR, morning.cursor)
    assert told(answered) == [NAV]
    core.heartbeat("bob", (NAV, "120503"))
    clock.advance(20)
    waiting = stage.tick(SENSOR, answered.cursor)
    assert (told(waiting), judged(waiting)) == ([], {})
    clock.advance(15)
    late = stage.tick(SENSOR, waiting.cursor)
    assert (told(late), judged(late)) == ([], {NAV: False}), "not after a quarter of the TTL, six hours"


@pytest.mark.parametrize(("came_back", "is_told"), [(1, True), (2, False)])
def test_g2_a_type_is_vouched_for_while_viewers_see_more_fresh_prices_than_outdated_ones(
    stage: Stage, core: Core, clock: Clock, came_back: int, is_told: bool
) -> None:
    old = [(QUOTE, symbol) for symbol in ("IBM", "MSFT")][:came_back]
    core.heartbeat("bob", *old)
    core.refresh()
    core.unsubscribe("bob", *old)
    clock.advance(3600)
    core.clean()
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "NVDA"))
    core.refresh()
    if came_back == 2:
        core.unsubscribe("ann", (QUOTE, "NVDA"))
    core.heartbeat("bob", *old)
    assert told(stage.tick(SENSOR)) == [QUOTE] * is_told


def test_g2_on_time_fails_when_nothing_at_all_is_served(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh()
    first = stage.tick(SENSOR)
    core.pause("IBM")
    clock.advance(61)
    core.enqueue_due()
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")
    clock.advance(61)
    tick = stage.tick(SENSOR, first.cursor)
    assert (told(tick), judged(tick)) == ([], {QUOTE: False})
    core.pause("AAPL")
    paused = stage.tick(SENSOR, tick.cursor)
    assert (told(paused), judged(paused)) == ([], {QUOTE: True}), "all are paused by a person"


def test_g2_a_type_whose_watched_pairs_are_all_paused_says_so_at_once(stage: Stage, core: Core, clock: Clock) -> None:
    """The asset turned red while its page and its check went on saying that all was fresh."""
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh()
    first = stage.tick(SENSOR)
    core.pause("AAPL")
    one = stage.tick(SENSOR, first.cursor)
    assert (judged(one), observed(one)) == ({QUOTE: True}, {})
    core.pause("IBM")
    both = stage.tick(SENSOR, one.cursor)
    words = (
        "2 watched prices: 2 paused. None can be fetched, so what is stored gets older."
        " `pricing-pipeline instrument resume SYMBOL` resumes a paused one."
    )
    assert observed(both) == {QUOTE: words}
    (check,) = [event for event in both.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
    assert (check.passed, str(check.description).replace("\\", "")) == (True, words)
    clock.advance(95)
    again = stage.tick(SENSOR, both.cursor)
    assert not again.asset_events, "once"
    core.pause("AAPL", paused=False)
    resumed = stage.tick(SENSOR, again.cursor)
    assert (judged(resumed), observed(resumed)) == ({QUOTE: False}, {}), "its price is owed since long"


def test_g2_it_says_what_it_knows(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh(price="101.50")
    oldest = core.one("SELECT min(fetched_at) FROM pricing.latest_prices")
    clock.advance(40)
    found = metadata(stage.tick(SENSOR), QUOTE)
    assert found == {
        "reason": "2 watched prices: 2 fresh.",
        "watched": 2,
        "fresh": 2,
        "late": 0,
        "oldest_price": oldest.timestamp(),
    }


def test_g2_a_pair_that_was_refused_is_not_late_but_named(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "NOPE"))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    clock.advance(120)
    alone = stage.tick(SENSOR)
    assert told(alone) == []
    assert str(alone.skip_message).startswith(f"none can be fetched, so nothing is reported: {QUOTE}")
    core.heartbeat("ann", (QUOTE, "NOPE"), (QUOTE, "AAPL"))
    core.refresh()
    tick = stage.tick(SENSOR)
    assert told(tick) == [QUOTE]
    said = metadata(tick, QUOTE)
    assert said["reason"] == "2 watched prices: 1 fresh, 1 refused for a fault of the symbol."
    assert said["refused"] == 1


def test_g2_a_type_whose_task_died_stays_late_unless_the_symbol_is_at_fault(
    stage: Stage, core: Core, clock: Clock
) -> None:
    """Pairs no longer counted as late after their tasks had died of trouble, and the asset turned healthy."""
    at_fault = {kind for kind in FailureKind if core.one("SELECT pricing.is_symbol_fault(:kind)", kind=kind)}
    assert at_fault == {FailureKind.UNKNOWN_SYMBOL, FailureKind.PLAN_RESTRICTED}
    core.rows("DELETE FROM pricing.provider_routing WHERE rank > 1")
    core.heartbeat("ann", (QUOTE, "AAPL"), (DAILY, "IBM"))
    core.refresh()
    clock.advance(86_401)
    core.heartbeat("ann", (QUOTE, "AAPL"), (DAILY, "IBM"))
    core.enqueue_due()
    core.rows("UPDATE pricing.api_call_queue_live SET max_attempts = 1")
    faults = {QUOTE: FailureKind.PROVIDER_DOWN, DAILY: FailureKind.PLAN_RESTRICTED}
    for call in core.claim(max_calls=2):
        core.fail(call, faults[call.data_type])
    assert [task.status for task in core.tasks() if task.status != "completed"] == ["failed", "failed"]
    for seconds in (31, 469):
        clock.advance(seconds)
        core.heartbeat("ann", (QUOTE, "AAPL"), (DAILY, "IBM"))
        tick = stage.tick(SENSOR)
        assert told(tick) == []
        assert f"late, so nothing is reported: {QUOTE} (1)" in str(tick.skip_message)
        assert f"none can be fetched, so nothing is reported: {DAILY}" in str(tick.skip_message)


def test_g2_what_cannot_be_shown_keeps_no_type_from_being_reported(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    core.rows("ALTER TABLE pricing.freshness_samples RENAME TO gone")
    tick = stage.tick(SENSOR)
    assert told(tick) == [QUOTE]
    assert "cannot show the plot" in metadata(tick, QUOTE)["not_shown"]
