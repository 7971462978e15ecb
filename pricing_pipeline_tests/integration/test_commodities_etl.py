"""C1, C2, C4: the ETL of commodities against the sandbox: limits, delay, refusals, the lock, and stops in mid-run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Connection

from pricing_pipeline.commodities import etl, storage
from pricing_pipeline.commodities.etl import SyncReport, sync
from pricing_pipeline.errors import LockLost, LockUnavailable, PricingError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.configured import SANDBOX_KEY
from pricing_pipeline.refresh import settling
from pricing_pipeline.sandbox import uex, uex_world
from pricing_pipeline.sandbox.uex_world import World
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.commodities import add_type
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.support.storing import versions

pytestmark = pytest.mark.usefixtures("still")
# A tenth of the world: what a sync does with a list does not depend on its length.
PLACES, GOODS = uex_world.PLACES[:18], uex_world.GOODS[:8]
TRADING = {place.number: place for place in PLACES if place.kind == "commodity"}
TABLES = ("game_versions", "terminals", "commodities", "commodity_prices", "revisions")


class Table:
    """The sandbox and the database, whose clocks move only as a sync waits. `is_still`: that of the sandbox stands."""

    def __init__(self, core: Core, clock: Clock) -> None:
        self.core, self.clock = core, clock
        self.now, self.is_still = core.clock(), False
        self.waits: list[float] = []
        self.at_wait: Callable[[], object] = lambda: None

    sandbox: RunningSandbox
    client: ProviderClient

    def wait(self, seconds: float) -> None:
        self.waits.append(round(seconds, 3))
        self.clock.advance(seconds)
        if not self.is_still:
            self.now += timedelta(seconds=seconds)
        self.at_wait()

    def sync(self) -> SyncReport:
        self.waits.clear()
        return sync(self.core.engine, self.client, run="test", wait=self.wait)

    def rows(self) -> dict[str, list[Any]]:
        return {table: list(versions(self.core, table)) for table in TABLES}

    def count(self, table: str) -> int:
        return int(self.core.one(f"SELECT count(*) FROM pricing.{table}"))

    def calls(self) -> list[Any]:
        return list(
            self.core.rows(
                "SELECT call_id, started_at, finished_at, outcome, http_status, failure_kind, worker, units"
                " FROM pricing.collector_call_log WHERE provider = 'uex' ORDER BY call_id"
            )
        )

    def gaps(self) -> list[float]:
        """Seconds between the beginnings of two calls."""
        starts = [call.started_at for call in self.calls()]
        return [round((later - earlier).total_seconds(), 3) for earlier, later in pairwise(starts)]

    def warnings(self) -> list[tuple[str, str]]:
        rows = self.core.rows("SELECT step, kind FROM pricing.etl_warnings ORDER BY warning_id")
        return [(row.step, row.kind) for row in rows]


@pytest.fixture
def table(core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    for module, name, value in (
        (uex, "PLACES", PLACES),
        (uex, "TRADING", TRADING),
        (uex, "GOODS", GOODS),
        (uex_world, "GOODS", GOODS),
    ):
        monkeypatch.setattr(module, name, value)
    add_type(core)
    table = Table(core, clock)
    with (
        running_sandbox(clock=lambda: table.now) as table.sandbox,
        ProviderClient(PROVIDERS["uex"], table.sandbox.uex_url, SANDBOX_KEY) as table.client,
    ):
        yield table


def test_c4_a_sync_brings_the_world_of_the_provider_and_neither_another_nor_a_task_writes_it_again(
    table: Table,
) -> None:
    table.is_still = True
    report = table.sync()
    assert report.is_complete, report
    at, world = int(table.now.timestamp()), World(2013)
    offers = {
        (f"UEX:{place.number}", offer.good.number): (offer.buy or None, offer.sell or None, world.version(at))
        for place in TRADING.values()
        for offer in world.offers(place, at)
    }
    rows = table.core.rows("SELECT symbol, commodity_id, buy, sell, game_version FROM pricing.commodity_prices")
    assert {(row.symbol, row.commodity_id): tuple(row)[2:] for row in rows} == offers
    assert len(offers) > 30
    assert table.count("terminals") == len(TRADING)
    assert table.count("commodities") == len(GOODS)
    named = "SELECT name FROM pricing.instruments WHERE (asset_class, symbol) = ('commodity', 'UEX:6')"
    assert table.core.one(named) == "TDD - Lorville"
    assert table.core.one("SELECT count(*) FROM pricing.confirmed_pairs") == len(TRADING)
    assert [(call.outcome, call.http_status, call.worker, call.units) for call in table.calls()] == [
        ("ok", 200, "test", 1)
    ] * 4
    before = table.rows()
    again = table.sync()
    assert [(step.added, step.revised, step.vanished) for step in again.steps] == [(0, 0, 0)] * 4
    assert table.rows() == before
    table.core.enqueue("commodity_price", "UEX:6", "UEX:15")
    table.wait(60)
    call = table.core.claim_one("uex")
    assert sorted(call.symbols) == ["UEX:15", "UEX:6"]
    fetched = table.client.fetch(call.fetcher, call.symbols, now=call.claimed_at, asset_class=call.asset_class)
    tally = settling.settle_answer(table.core.engine, call, fetched)
    assert (tally.failed, tally.added, tally.revised) == (0, 0, 0)
    assert table.rows() == before


def test_c4_a_patch_of_the_game_begins_anew_when_its_version_is_known_and_forgets_nothing(table: Table) -> None:
    """Stored before, its prices would be of the version before, for good."""
    table.sync()
    known = table.count("commodity_prices")
    world, first = World(2013), int(table.now.timestamp())
    hours = range(first // 3600 * 3600 + 3600, first + 91 * 86400, 3600)
    patch = next(at for at in hours if world.version(at) != world.version(first))
    table.wait(patch + 1800 - first)  # by then, players have reported about half of the prices
    table.sandbox.behave("status", provider="uex", path="game_versions", status=503)
    report = table.sync()
    assert "live version of the game could not be read" in str(report.steps[-1].failure)
    table.sandbox.behave_well()
    table.wait(70)
    assert table.sync().is_complete
    rows = table.core.rows(
        "SELECT game_version, count(*) AS prices, max(modified_at) AS newest FROM pricing.commodity_prices GROUP BY 1"
    )
    by_version = {row.game_version: row for row in rows}
    assert by_version.keys() == {world.version(first), world.version(patch)}
    assert by_version[world.version(first)].newest.timestamp() < patch
    assert sum(row.prices for row in rows) >= known, "a price has gone with its version"
    routes = table.core.rows("SELECT DISTINCT game_version FROM pricing.trade_routes")
    assert [row.game_version for row in routes] == [world.version(patch)]


# --- limits, delay and refusals -----------------------------------------------------------------


def test_c1_calls_keep_their_distance_and_stay_within_the_limits(table: Table) -> None:
    for _ in range(3):
        assert table.sync().is_complete
    assert min(table.gaps()) >= 0.5
    starts = [call.started_at for call in table.calls()]
    assert len(starts) == 12
    for start in starts:
        assert sum(start <= other < start + timedelta(seconds=60) for other in starts) <= 10
    assert all(call["status"] == 200 for call in table.sandbox.calls("uex")), "the provider has refused a call"


def test_c1_the_delay_doubles_while_few_calls_are_left_and_recovers(table: Table) -> None:
    table.core.rows("UPDATE pricing.provider_limits SET units = 1000 WHERE provider = 'uex'")
    table.core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 1000 WHERE provider = 'uex'")
    table.is_still = True
    # The provider says 9, 8, 7, 6; then 5, 4, 3, 2; and after a minute all is well again.
    table.sync()
    assert table.gaps() == [1.0] * 3
    table.sync()
    assert table.gaps()[4:] == [2.0] * 3, "twice the base, and never more"
    table.wait(61)
    table.now += timedelta(seconds=61)
    table.sync()
    assert table.gaps()[8:] == [1.0] * 3


def test_c1_retry_after_is_obeyed(table: Table) -> None:
    table.sandbox.behave("throttle", provider="uex", path="terminals", retry_after="2", count=1)
    report = table.sync()
    assert report.is_complete
    assert [step.calls for step in report.steps] == [1, 2, 1, 1]
    assert 2.0 <= table.gaps()[1] < 2.1
    assert table.warnings() == []


def test_c1_without_a_retry_after_waits_grow_and_after_three_retries_the_step_fails(table: Table) -> None:
    table.core.rows("UPDATE pricing.provider_limits SET units = 1000 WHERE provider = 'uex'")
    table.sandbox.behave("throttle", provider="uex", path="terminals")
    report = table.sync()
    assert [step.calls for step in report.steps] == [1, 4, 1, 1]
    assert [round(gap) for gap in table.gaps()[1:4]] == [5, 10, 20]
    assert table.warnings() == [("terminals", "throttled")]
    (failed,) = [step for step in report.steps if step.failure]
    assert (failed.name, "429" in str(failed.failure)) == ("terminals", True)
    assert table.count("commodity_prices") > 30, "the other steps have not gone on"


def test_c1_a_storm_ends_after_few_calls_and_the_next_sync_recovers(table: Table) -> None:
    table.core.rows("UPDATE pricing.provider_limits SET units = 1000 WHERE provider = 'uex'")
    table.sandbox.behave("throttle", provider="uex", retry_after="1")
    report = table.sync()
    assert len(table.calls()) <= 16
    assert [step for step in report.steps if not step.failure] == []
    assert [step for step, _ in table.warnings()] == [step.name for step in report.steps]
    assert table.count("commodity_prices") == 0
    table.sandbox.behave_well()
    table.wait(600)
    assert table.sync().is_complete, "a storm has stopped the syncs for good"


def test_c1_a_wait_that_is_too_long_is_no_wait(table: Table) -> None:
    table.sandbox.behave("throttle", provider="uex", path="game_versions", retry_after="3000", count=1)
    report = table.sync()
    assert sum(table.waits) < etl.LONGEST_WAIT
    assert [kind for _, kind in table.warnings()] == ["refused"] * 4
    assert len(table.calls()) == 1
    assert "429" in str(report.steps[0].failure) or "blocked" in str(report.steps[0].failure)


def test_c1_a_sync_does_not_wait_for_a_key_that_is_refused(table: Table) -> None:
    table.sandbox.behave("status", provider="uex", status=401)
    report = table.sync()
    assert [kind for _, kind in table.warnings()] == ["key_refused", "refused", "refused", "refused"]
    assert all("does not accept the key" in str(step.failure) for step in report.steps[1:3])
    assert (len(table.calls()), sum(table.waits)) == (1, 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'uex'", "switched off"),
        ("UPDATE pricing.data_collectors SET quota_bytes = 1 WHERE provider = 'uex'", "is spent"),
    ],
)
def test_c1_a_sync_does_not_wait_for_what_only_a_person_can_end(table: Table, change: str, reason: str) -> None:
    table.core.rows(change)
    report = table.sync()
    assert [kind for _, kind in table.warnings()] == ["refused"] * 4
    assert reason in str(report.steps[0].failure)
    assert (table.calls(), table.waits) == ([], [])


def test_b8_a_broken_list_costs_no_other(table: Table) -> None:
    table.sandbox.behave("truncate", provider="uex", path="commodities_prices_all")
    report = table.sync()
    assert [bool(step.failure) for step in report.steps] == [False, False, False, True]
    assert [step for step, _ in table.warnings()] == ["prices"]
    assert table.count("terminals") == len(TRADING)
    assert table.count("commodity_prices") == 0


def test_b8_a_server_that_fails_is_asked_again_after_growing_waits(table: Table) -> None:
    table.sandbox.behave("status", provider="uex", path="commodities", status=503, count=2)
    report = table.sync()
    assert report.is_complete
    assert [step.calls for step in report.steps] == [1, 1, 3, 1]
    assert [round(gap) for gap in table.gaps()[2:4]] == [5, 10]


def test_c4_a_terminal_that_vanishes_stays_and_is_marked(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.sync()
    with monkeypatch.context() as patch:
        patch.setattr(uex, "PLACES", tuple(place for place in PLACES if place.number != 6))
        assert table.sync().steps[1].vanished == 1
    gone = "SELECT vanished_at IS NOT NULL FROM pricing.terminals WHERE symbol = 'UEX:6'"
    assert table.core.one(gone)
    assert not table.core.rows("SELECT FROM pricing.trade_routes WHERE 'UEX:6' IN (from_symbol, to_symbol)")
    assert table.sync().steps[1].revised == 1
    assert not table.core.one(gone)


# --- the lock -----------------------------------------------------------------------------------


def test_c2_of_two_syncs_at_once_the_second_is_refused_and_nothing_is_doubled(table: Table) -> None:
    refusals: list[str] = []

    def another() -> None:
        with pytest.raises(LockUnavailable, match="commodities_etl is at work already") as refused:
            sync(table.core.engine, table.client, wait=lambda _: None)
        refusals.append(str(refused.value))

    table.at_wait = another
    assert table.sync().is_complete
    assert refusals
    assert len(table.calls()) == 4
    assert table.warnings() == []


def end_session_with_lock(core: Core) -> None:
    core.call(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_locks JOIN pg_database d ON d.oid = database"
        " WHERE locktype = 'advisory' AND datname = current_database()"
    )


def test_c2_a_lock_that_is_lost_stops_the_sync_at_once(table: Table) -> None:
    def cut_off() -> None:
        if table.count("terminals"):
            end_session_with_lock(table.core)

    table.at_wait = cut_off
    with pytest.raises(LockLost, match="commodities_etl is lost"):
        table.sync()
    assert len(table.calls()) == 2, "it has gone on without the lock"
    assert (table.count("commodities"), table.count("commodity_prices")) == (0, 0)
    assert table.warnings() == [("commodities", "lock_lost")]
    table.at_wait = lambda: None
    assert table.sync().is_complete


def test_c2_a_lock_lost_while_a_list_is_stored_undoes_the_list(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = storage.store_prices

    def and_lose_it(*arguments: Any) -> Any:
        stored = whole(*arguments)
        end_session_with_lock(table.core)
        return stored

    monkeypatch.setattr(storage, "store_prices", and_lose_it)
    with pytest.raises(LockLost):
        table.sync()
    assert (table.count("commodities"), table.count("commodity_prices")) == (len(GOODS), 0)


def test_b8_what_the_database_does_not_take_costs_its_list_and_no_other(table: Table) -> None:
    table.core.rows("ALTER TABLE pricing.commodities ADD CONSTRAINT none_of_it CHECK (name = 'x') NOT VALID")
    report = table.sync()
    assert [step.name for step in report.steps if step.failure] == ["commodities", "prices"]
    assert table.warnings() == [("commodities", "not_storable"), ("prices", "not_storable")]
    assert table.count("terminals") == len(TRADING)
    assert not table.core.rows("SELECT FROM pricing.collector_call_log WHERE finished_at IS NULL")


def test_b19_a_deadlock_costs_a_sync_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, tries = storage.store_commodities, []

    def and_lose(connection: Connection, *arguments: Any, **more: Any) -> Any:
        tries.append(1)
        if len(tries) == 1:
            connection.exec_driver_sql("DO 'BEGIN RAISE SQLSTATE ''40P01''; END'")
        return whole(connection, *arguments, **more)

    monkeypatch.setattr(storage, "store_commodities", and_lose)
    assert table.sync().is_complete
    assert (len(tries), table.count("commodities")) == (2, len(GOODS))


def test_d2_a_stop_in_mid_run_leaves_nothing_half_stored(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = storage.confirm

    def and_stop(*arguments: Any) -> None:
        whole(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storage, "confirm", and_stop)
        with pytest.raises(KeyboardInterrupt):
            table.sync()
    assert table.count("terminals") == len(TRADING)
    assert (table.count("commodity_prices"), table.count("confirmed_pairs")) == (0, 0)
    assert table.sync().is_complete


def test_c4_without_a_data_type_nothing_is_asked(table: Table) -> None:
    table.core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE fetcher = 'terminal_prices'")
    with pytest.raises(PricingError, match="type add commodity_price"):
        table.sync()
    assert table.calls() == []
