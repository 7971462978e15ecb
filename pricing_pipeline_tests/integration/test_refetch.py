"""F5: what is to be fetched again is kept until it is, and told while it waits."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

YAHOO = "yahoo_daily"
HOUR, DAY = 3600, 86_400


@pytest.fixture(autouse=True)
def two_providers(core: Core, clock: Clock, still: None) -> None:
    """Noon, with quotas of ten million bytes, daily bars of two providers, and no room at the first one."""
    clock.set(datetime(2026, 3, 10, 12, tzinfo=UTC))
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 10000000")
    core.rows(
        "INSERT INTO pricing.data_type_registry"
        " (data_type, asset_class, fetcher, default_ttl_minutes, history_from, estimated_data_size_bytes)"
        " VALUES (:type, 'equity', 'daily_bars', 1440, '2000-01-01', 1500)",
        type=YAHOO,
    )
    core.rows("DELETE FROM pricing.provider_routing WHERE data_type = :type", type=YAHOO)
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES (:type, 'yahoo', 1)",
        type=YAHOO,
    )
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol)"
        " SELECT 'equity', 'S' || n FROM generate_series(1, 600) AS n"
    )
    core.use_quota(8_000_000)


def restated(core: Core, data_type: str, *symbols: str) -> None:
    for symbol in symbols:
        core.rows(
            "INSERT INTO pricing.restatements (data_type, symbol, provider, kind, ratio, days, largest, first_on,"
            " last_on, call_id, recorded_at, last_seen_at) VALUES (:type, :symbol, 'twelvedata', 'split', 4, 10,"
            " 0.75, '2026-02-02', '2026-02-13', 1, pricing.clock(), pricing.clock())",
            type=data_type,
            symbol=symbol,
        )
        core.rows(
            "INSERT INTO pricing.price_history"
            " (data_type, symbol, observed_at, amount, scale, provider, call_id, fetched_at)"
            " VALUES (:type, :symbol, '2020-01-02', 100, 2, 'twelvedata', 1, pricing.clock())",
            type=data_type,
            symbol=symbol,
        )


def not_final(core: Core, data_type: str, first: int, last: int) -> None:
    core.rows(
        "INSERT INTO pricing.provisional_bars (data_type, symbol, observed_at, ask_at)"
        " SELECT :type, 'S' || n, '2026-03-09', '2026-03-10 02:00Z'"
        " FROM generate_series(CAST(:first AS integer), :last) AS n",
        type=data_type,
        first=first,
        last=last,
    )


def go_on(core: Core, clock: Clock, times: int, every: int = HOUR) -> None:
    for _ in range(times):
        clock.advance(every)
        core.call("SELECT pricing.refetch_history()")


def queued(core: Core) -> dict[str, int]:
    return dict(Counter(task.data_type for task in core.tasks() if task.status == "pending"))


def waits(core: Core) -> dict[tuple[str | None, str, str], tuple[int, int]]:
    return {
        (row.provider, row.data_type, row.waits_for): (row.histories, row.bars)
        for row in core.rows("SELECT * FROM pricing.waiting_refetches()")
    }


def test_f5_a_restated_history_is_fetched_again_however_long_the_quota_was_spent(
    core: Core, clock: Clock, cli: CommandLine
) -> None:
    """After a week without room it was forgotten, without a word."""
    restated(core, DAILY, "S1")
    go_on(core, clock, 9, every=DAY)
    assert queued(core) == {}
    assert waits(core) == {(TWELVEDATA, DAILY, "room"): (1, 0)}
    assert (
        "waiting:     1 history of equity_daily is to be fetched again, and waits: the quota of twelvedata leaves"
        " backfills no room for all of that." in cli("status").stdout
    )
    assert core.rows("SELECT FROM pricing.warnings") == [], "what waits is no mishap"
    core.use_quota(0)
    go_on(core, clock, 1)
    assert queued(core)[DAILY] >= 1
    assert core.one("SELECT backfill_id IS NOT NULL FROM pricing.restatements")
    assert waits(core) == {}
    assert "waiting:" not in cli("status").stdout


def test_f5_what_one_provider_has_no_room_for_keeps_nobody_else_waiting(core: Core, clock: Clock) -> None:
    restated(core, DAILY, *(f"S{n}" for n in range(1, 22)))
    not_final(core, DAILY, 1, 550)
    clock.advance(60)
    restated(core, YAHOO, "S30")
    not_final(core, YAHOO, 31, 31)
    go_on(core, clock, 1)
    assert set(queued(core)) == {YAHOO}
    assert {task.symbol for task in core.tasks()} == {"S30", "S31"}
    assert waits(core) == {(TWELVEDATA, DAILY, "room"): (21, 550)}


def test_f5_what_never_fits_keeps_nothing_of_its_provider_waiting(core: Core, clock: Clock) -> None:
    core.use_quota(0)
    core.rows("UPDATE pricing.provider_capabilities SET bytes_per_day = 4000 WHERE fetcher = 'daily_bars'")
    restated(core, DAILY, "S1")
    not_final(core, DAILY, 2, 2)
    go_on(core, clock, 1)
    assert [task.symbol for task in core.tasks()] == ["S2"]
    assert waits(core) == {(TWELVEDATA, DAILY, "room"): (1, 0)}


def test_f5_histories_go_on_beside_more_bars_than_fit(core: Core) -> None:
    """Bars that are not taken this time need no room yet."""
    core.use_quota(0)
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 3000000")
    not_final(core, DAILY, 1, 2500)
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'S2501')")
    restated(core, DAILY, "S2501")
    assert core.call("SELECT pricing.refetch_history()") == 501


def test_f5_a_pair_that_was_restated_twice_is_planned_once(core: Core, clock: Clock) -> None:
    core.use_quota(0)
    restated(core, DAILY, "S1")
    core.rows("DELETE FROM pricing.price_history")
    restated(core, DAILY, "S1")
    assert core.call("SELECT pricing.refetch_history()") == 1
    assert core.one("SELECT count(*) FROM pricing.backfills") == 1
    assert core.call("SELECT pricing.refetch_history()") == 0


def test_f5_paused_and_retired_ones_wait_without_using_attempts(core: Core, clock: Clock, cli: CommandLine) -> None:
    """Six attempts were used up while nothing could be asked for."""
    core.use_quota(0)
    core.pause("S1", "S2")
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = :type", type=YAHOO)
    not_final(core, DAILY, 1, 1)
    not_final(core, YAHOO, 3, 3)
    restated(core, DAILY, "S2")
    restated(core, YAHOO, "S4")
    go_on(core, clock, 12, every=6 * HOUR)
    assert queued(core) == {}
    assert {row.asked for row in core.rows("SELECT asked FROM pricing.provisional_bars")} == {0}
    assert waits(core) == {
        (TWELVEDATA, DAILY, "paused"): (1, 1),
        ("yahoo", YAHOO, "retired"): (1, 1),
    }
    said = cli("status").stdout
    assert "1 history and 1 bar of equity_daily are to be fetched again, and wait: paused (`pricing" in said
    assert "1 history and 1 bar of yahoo_daily are to be fetched again, and wait: the data type is ret" in said
    core.pause("S1", "S2", paused=False)
    core.rows("UPDATE pricing.data_type_registry SET is_active = true")
    go_on(core, clock, 1)
    assert {task.symbol for task in core.tasks() if task.status == "pending"} == {"S1", "S2", "S3", "S4"}


def test_f5_a_bar_without_a_provider_waits_for_one(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'yahoo'")
    not_final(core, YAHOO, 1, 1)
    restated(core, YAHOO, "S2")
    go_on(core, clock, 4, every=6 * HOUR)
    assert waits(core) == {(None, YAHOO, "no_provider"): (1, 1)}
    core.rows("UPDATE pricing.data_type_registry SET history_from = NULL WHERE data_type = :type", type=YAHOO)
    core.rows("UPDATE pricing.data_collectors SET is_active = true")
    go_on(core, clock, 1)
    assert [task.symbol for task in core.tasks()] == ["S1"]
    assert waits(core) == {("yahoo", YAHOO, "no_history"): (1, 0)}


def test_f5_a_bar_that_is_on_its_way_is_not_asked_for_again(core: Core, clock: Clock) -> None:
    core.use_quota(0)
    not_final(core, DAILY, 1, 1)
    go_on(core, clock, 10, every=10 * HOUR)
    assert queued(core) == {DAILY: 1}
    assert core.one("SELECT asked FROM pricing.provisional_bars") == 1
