"""What has changed is told to every Dagster instance on the database once, and what has not changed is told to none."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date

import dagster as dg
import pytest

from pricing_pipeline.defs.news import DATA_VERSION
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, said
from pricing_pipeline_tests.fixtures.database import Clock

SENSOR = "report_prices"

pytestmark = pytest.mark.usefixtures("still")

Told = tuple[str, str | None, str]
"""An asset, its partition, and the data version that was told."""


class _DiedError(Exception):
    """The process ends in this moment."""


@dataclass
class Follower:
    """A Dagster instance that follows the database."""

    stage: Stage
    cursor: str | None = None
    told: list[Told] = field(default_factory=list)

    def tick(self, *, dies_after: int | None = None) -> None:
        """Carry out a tick as the daemon does; it may die between two events, or before the cursor is kept."""
        instance, events = self.stage.instance, 0
        tell = instance.report_runless_asset_event

        def telling(event: dg.AssetMaterialization) -> None:
            nonlocal events
            if events == dies_after:
                raise _DiedError
            events += 1
            tell(event)
            if isinstance(event, dg.AssetMaterialization):
                assert event.tags
                self.told.append((event.asset_key.to_user_string(), event.partition, event.tags[DATA_VERSION]))

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(instance, "report_runless_asset_event", telling)
            try:
                tick = self.stage.tick(SENSOR, self.cursor)
            except _DiedError:
                return
        assert not tick.run_requests
        told_late = [event for event in tick.asset_events if isinstance(event, dg.AssetMaterialization)]
        assert {event.asset_key.path[0] for event in told_late} <= {"freshness"}, "it comes after the turn"
        if dies_after is None:
            self.cursor = tick.cursor

    def news(self) -> list[tuple[str, str | None]]:
        """The assets and partitions that a tick tells of."""
        before = len(self.told)
        self.tick()
        return [(asset, month) for asset, month, _ in self.told[before:]]


@pytest.fixture
def follower(stage: Stage) -> Follower:
    return Follower(stage)


def store(core: Core, price: str, *symbols: str, data_type: str = QUOTE) -> None:
    core.rows("DELETE FROM pricing.api_call_queue_live")
    for symbol in symbols:
        core.enqueue(data_type, symbol)
    core.refresh(price=price)


def this_month(core: Core) -> str:
    return core.clock().strftime("%Y-%m-01")


def test_g8_a_changed_price_is_news_and_a_confirmed_one_is_none(follower: Follower, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    assert follower.news() == []
    store(core, "101.50", "AAPL", "IBM")
    latest, history = f"latest_price/{QUOTE}", f"price_history/{QUOTE}"
    assert follower.news() == [(latest, None), (history, this_month(core))]
    assert follower.news() == [], "once"
    (event,) = follower.stage.materializations("latest_price", QUOTE)
    found = said(event)
    assert (found["changes"], found["changes_ever"]) == (2, 2)
    rows = [(row["symbol"], row["price"]) for row in found["latest_prices"]]
    assert rows == [("AAPL", "101.50 USD"), ("IBM", "101.50 USD")]
    store(core, "101.50", "AAPL")
    assert (latest, None) not in follower.news(), "the same price again"
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.enqueue(QUOTE, "AAPL")
    core.refresh(price="102")
    assert (latest, None) in follower.news()
    assert said(follower.stage.materializations("latest_price", QUOTE)[-1])["changes"] == 1


def test_g8_a_month_in_which_nothing_came_is_told_when_it_is_over(follower: Follower, core: Core, clock: Clock) -> None:
    """Else what depends on all months of a type without history would wait for ever."""
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)"
        " VALUES ('rare', 'equity', 'quote', 5)"
    )
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, currency, provider,"
        " call_id, fetched_at) SELECT 'rare', 'AAPL', d, 1, 2, 'USD', 'twelvedata', 1, pricing.clock()"
        " FROM unnest(ARRAY[pricing.clock() - interval '3 months', pricing.clock()]) AS d"
    )
    core.rows("SELECT pricing.note_changes('rare', array_agg(observed_at)) FROM pricing.price_history")
    follower.stage.reload()
    told = follower.news()
    assert [asset for asset, _ in told] == ["price_history/rare"] * 4
    assert len({month for _, month in told}) == 4
    sizes = Counter(
        said(event)["dagster/partition_row_count"] for event in follower.stage.materializations("price_history", "rare")
    )
    assert sizes == {0: 2, 1: 2}
    clock.advance(601)
    assert follower.news() == []


def test_g8_a_restored_backup_is_told_anew(follower: Follower, core: Core) -> None:
    """Its versions mean other changes."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="101.50")
    assert follower.news()
    assert follower.cursor
    follower.cursor = follower.cursor.replace('"log":"', '"log":"x')
    assert follower.news() == [], "it is the same data"
    core.rows("UPDATE pricing.data_versions SET version = version + 10")
    follower.cursor = follower.cursor.replace('"log":"', '"log":"x')
    assert len(follower.news()) == 2


def test_g8_what_is_stored_after_a_restore_is_news_whatever_was_stored_before_it(
    follower: Follower, core: Core, clock: Clock
) -> None:
    """The versions that the backup does not have are those of other data."""
    core.rows("SELECT pricing.note_latest_changes(:name, 1)", name=QUOTE)
    assert follower.news()
    core.rows("CREATE TABLE pricing.kept AS SELECT * FROM pricing.data_versions")
    for _ in range(2):
        clock.advance(1)
        core.rows("SELECT pricing.note_latest_changes(:name, 1)", name=QUOTE)
        assert follower.news() == [(f"latest_price/{QUOTE}", None)]
        core.rows("DELETE FROM pricing.data_versions")
        core.rows("INSERT INTO pricing.data_versions SELECT * FROM pricing.kept")


def test_g8_what_was_stored_before_a_type_is_loaded_is_told_once_it_is(
    follower: Follower, core: Core, clock: Clock
) -> None:
    """Its definitions load some seconds after its row; others fetch at once. So it is with one that returns."""
    activate = "UPDATE pricing.data_type_registry SET is_active = :is_active WHERE data_type = :name"
    core.rows(activate, name=DAILY, is_active=False)
    follower.stage.reload()
    core.rows("SELECT pricing.note_latest_changes(:name, 1)", name=DAILY)
    core.rows("SELECT pricing.note_latest_changes(:name, 1)", name=FX)
    core.rows("INSERT INTO pricing.data_changes VALUES (:name, '2010-01-01', 1)", name=DAILY)
    assert follower.news() == [(f"latest_price/{FX}", None)]
    core.rows(activate, name=DAILY, is_active=True)
    follower.stage.reload()
    assert follower.news() == [(f"latest_price/{DAILY}", None)]
    core.rows("UPDATE pricing.instruments SET is_active = false")  # of a month that lacked days, too
    for is_active in (False, True):
        core.rows(activate, name=DAILY, is_active=is_active)
        follower.stage.reload()
        clock.advance(601)
        told = follower.news()
    assert told == [(f"price_history/{DAILY}", "2010-01-01")]


def test_g8_a_type_that_is_deleted_and_made_anew_stops_no_news(follower: Follower, core: Core, clock: Clock) -> None:
    core.rows("INSERT INTO pricing.data_changes VALUES (:name, '2010-01-01', 1)", name=DAILY)
    assert follower.news() == [], "its days are missing"
    core.rows("DELETE FROM pricing.data_versions WHERE data_type = :name", name=DAILY)
    core.rows("UPDATE pricing.instruments SET is_active = false")
    clock.advance(601)
    core.rows("SELECT pricing.note_latest_changes(:name, 1)", name=FX)
    assert follower.news() == [(f"latest_price/{FX}", None)]


def test_g8_months_that_take_long_to_judge_are_left_to_other_ticks(
    follower: Follower, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A code server that does not answer in a minute makes the tick fail, and then the next one."""
    monkeypatch.setattr("pricing_pipeline.defs.news_reports._JUDGED_SECONDS", 0.0)
    for name in (QUOTE, FX, NAV):
        core.rows("INSERT INTO pricing.data_changes VALUES (:name, '2026-10-01', 1)", name=name)
    core.rows("INSERT INTO pricing.data_changes VALUES (:name, '2010-01-01', 1)", name=DAILY)
    told = []
    for _ in range(4):
        core.rows("INSERT INTO pricing.data_changes VALUES (:name, '2026-11-01', 1)", name=DAILY)
        told += follower.news()
    assert {(f"price_history/{name}", "2026-10-01") for name in (QUOTE, FX)} <= {*told}
    assert len(told) == len({*told})
    observed = [event.partition for event in follower.stage.observations("price_history", DAILY)]
    assert observed.count("2010-01-01") == 1


def test_g8_a_hundred_months_are_told_step_by_step(
    follower: Follower, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pricing_pipeline.defs.news_reports._AT_ONCE", 3)
    for number in range(8):
        month = date(2020, 1 + number, 1)
        core.rows("INSERT INTO pricing.data_changes VALUES (:t, :m, 1)", t=QUOTE, m=month)
    told = [len(follower.news()) for _ in range(4)]
    assert told == [3, 3, 2, 0]
