"""News of stored prices over many ticks, for several instances and several sessions at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date
from random import Random
from threading import Thread

import dagster as dg
import pytest
from sqlalchemy import Connection

from pricing_pipeline.defs.news import DATA_VERSION
from pricing_pipeline.prices import quality
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, said
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.orchestration.test_news import SENSOR, Follower, follower, store, this_month
from pricing_pipeline_tests.support.examples import is_thorough
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

__all__ = ["follower"]

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture
def followers(stage: Stage) -> Iterator[list[Follower]]:
    with ExitStack() as stack:
        other = Stage(stack.enter_context(dg.instance_for_test()))
        yield [Follower(stage), Follower(other)]


def test_g8_the_current_month_is_told_of_every_five_minutes(
    follower: Follower, core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes with each price, and what it lacks takes a second to find out among thousands of symbols."""
    looks: list[list[date]] = []
    lacking = quality.lacking

    def counted(connection: Connection, name: str, months: list[date]) -> dict[date, quality.Lacking]:
        looks.append(months)
        return lacking(connection, name, months)

    monkeypatch.setattr(quality, "lacking", counted)
    latest, history = (f"latest_price/{QUOTE}", None), (f"price_history/{QUOTE}", this_month(core))
    told = []
    for second in range(0, 581, 60):
        store(core, f"{second + 1}", "AAPL")
        told += follower.news()
        clock.advance(60)
    assert (told.count(latest), told.count(history), len(looks)) == (10, 2, 2)
    clock.advance(300)
    assert follower.news() == [history], "the last change, too"
    assert follower.news() == []


def test_g8_a_month_is_news_when_it_is_complete_and_when_it_changes_then(
    follower: Follower, core: Core, sandbox: RunningSandbox
) -> None:
    asset = f"price_history/{DAILY}"
    everybody = ("AAPL", "META", "GOOG", "IBM", "MSFT")
    core.enqueue(DAILY, "IBM", priority=-2, days=(date(2010, 1, 1), date(2010, 3, 5)))
    assert follower.stage.drain().success
    assert follower.news() == [], "of five shares one was asked for"
    seen = {event.partition: said(event) for event in follower.stage.observations("price_history", DAILY)}
    assert seen["2010-02-01"]["not_filled"].startswith("4 of 5 instruments lack days of this month")
    for symbol in everybody[:-1]:
        core.enqueue(DAILY, symbol, priority=-2, days=(date(2010, 1, 1), date(2010, 3, 5)))
    core.enqueue(DAILY, "MSFT", priority=-2, days=(date(2010, 1, 1), date(2010, 3, 5)))
    assert follower.stage.drain().success
    assert follower.news() == [(asset, "2010-01-01"), (asset, "2010-02-01")], "of March days are missing"
    assert follower.news() == []
    (january, _) = follower.stage.materializations("price_history", DAILY)
    rows = "SELECT count(*) FROM pricing.price_history WHERE observed_at < '2010-02-01' AND data_type = :name"
    assert said(january)["dagster/partition_row_count"] == core.one(rows, name=DAILY)
    core.rows("SELECT pricing.note_changes(:name, ARRAY[timestamptz '2010-02-03 00:00+00'])", name=DAILY)
    assert follower.news() == [(asset, "2010-02-01")]


def test_g8_months_that_turn_out_to_lack_nothing_are_told_later(
    follower: Follower, core: Core, sandbox: RunningSandbox, clock: Clock
) -> None:
    """February, of which nothing comes any more, is not forgotten over January."""
    for month in (2, 1):
        core.enqueue(DAILY, "IBM", priority=-2, days=(date(2010, month, 1), date(2010, month, 28)))
        assert follower.stage.drain().success
        assert follower.news() == []
    core.rows("UPDATE pricing.instruments SET is_active = false WHERE symbol <> 'IBM'")
    assert follower.news() == [], "not before its time"
    core.enqueue(DAILY, "IBM", priority=-2, days=(date(2010, 1, 29), date(2010, 1, 31)))
    assert follower.stage.drain().success
    clock.advance(601)
    assert follower.news() == [(f"price_history/{DAILY}", f"2010-0{month}-01") for month in (1, 2)]


def test_g8_g6_what_a_run_has_told_no_tick_tells_again_and_another_run_does(
    follower: Follower, core: Core, sandbox: RunningSandbox
) -> None:
    """Dagster counts for a backfill what its own runs have told, and would call it failed."""
    for last, count in (("2010-02-01", 2), ("2010-01-01", 3)):
        assert follower.stage.backfill(DAILY, first="2010-01-01", last=last).success
        follower.tick()
        assert len(follower.stage.materializations("price_history", DAILY)) == count


def test_g8_two_ticks_at_once_tell_once(
    stage: Stage, core: Core, sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tick of a daemon that was killed goes on in the code server, beside the next daemon's."""
    assert stage.backfill(DAILY, first="2010-01-01", last="2010-02-01").success
    core.rows("UPDATE pricing.data_versions SET version = version + 1000")
    tell, thread = stage.instance.report_runless_asset_event, Thread(target=stage.tick, args=[SENSOR])

    def telling_slowly(event: dg.AssetMaterialization) -> None:
        if not thread.ident:
            thread.start()
            thread.join(1)
        tell(event)

    monkeypatch.setattr(stage.instance, "report_runless_asset_event", telling_slowly)
    stage.tick(SENSOR)
    thread.join()
    for month in ("2010-01-01", "2010-02-01"):
        told = [e for e in stage.materializations("price_history", DAILY) if e.partition == month]
        versions = [(e.tags or {})[DATA_VERSION] for e in told]
        assert len(versions) == len({*versions}) == 2, versions


@pytest.mark.parametrize("seed", range(8 if is_thorough() else 1))
def test_g8_every_instance_is_told_of_every_change_once(
    followers: list[Follower], core: Core, clock: Clock, seed: int
) -> None:
    """A model: after any steps, fetches and crashes, each instance knows the newest version of all.

    No instance is told of a version twice, none of a price that is the same, and versions of an asset only rise.
    """
    random = Random(seed)
    values: dict[tuple[str, str], str] = {}
    changes: Counter[str] = Counter()
    core.heartbeat("ann", *((data_type, symbol) for data_type, symbol in PAIRS))
    for _ in range(40):
        step = random.random()
        if step < 0.5:
            data_type, symbol = random.choice(PAIRS)
            price = random.choice(("1.10", "1.20"))
            clock.advance(1)
            store(core, price, symbol, data_type=data_type)
            changes[data_type] += values.get((data_type, symbol)) != price
            values[data_type, symbol] = price
        else:
            follower = random.choice(followers)
            follower.tick(dies_after=random.choice((None, None, 0, 1, 2)))
    clock.advance(301)
    for follower in followers:
        follower.tick()
        assert follower.news() == []
        versions: defaultdict[tuple[str, str | None], list[int]] = defaultdict(list)
        for asset, month, version in follower.told:
            versions[asset, month].append(int(version))
        for told in versions.values():
            assert told == sorted(set(told)), "each once, in order"
        newest = {
            (f"price_history/{row.data_type}", row.month.isoformat())
            if row.month
            else (f"latest_price/{row.data_type}", None): row.version
            for row in core.rows(
                "SELECT data_type, nullif(month, '-infinity') AS month, version FROM pricing.data_versions"
            )
        }
        assert {key: told[-1] for key, told in versions.items()} == newest
        for data_type, count in changes.items():
            events = follower.stage.materializations("latest_price", data_type)
            assert sum(said(event)["changes"] for event in events) == count
            assert all(said(event)["changes"] > 0 for event in events)


PAIRS = [(QUOTE, "AAPL"), (QUOTE, "IBM"), (FX, "EUR/USD")]
