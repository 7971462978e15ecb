"""B10, B14: what one provider cannot take now delays nothing of another, and is queued once when there is room."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from pricing_pipeline.demand import schedules, viewers
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import FX, MFAPI, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

SIZE = 1000
YAHOO = "yahoo"


@pytest.fixture(autouse=True)
def small(core: Core, clock: Clock, still: None) -> None:
    """A quota of 100,000 bytes, of which a price takes 1,000. No fund has a calendar, and yahoo can serve them, too."""
    clock.set(datetime(2026, 3, 10, 12, tzinfo=UTC))
    core.lift_limits()
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2000-01-01'")
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100000")
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = :size", size=SIZE)
    core.rows(
        "INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, window_batch_size, units_per_call,"
        " units_per_symbol, max_window_days, bytes_per_day) VALUES ('yahoo', 'nav', 1, 1, 1, 0, 1, 0)"
    )


def funds(core: Core, count: int) -> list[str]:
    core.rows("DELETE FROM pricing.instruments WHERE asset_class = 'fund'")
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol)"
        " SELECT 'fund', lpad(n::text, 6, '0') FROM generate_series(1, :count) AS n",
        count=count,
    )
    return [f"{number:06}" for number in range(1, count + 1)]


def by_yahoo(core: Core, symbols: list[str]) -> None:
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank)"
        " SELECT 'mf_nav', unnest(CAST(:symbols AS text[])), 'yahoo', 1",
        symbols=symbols,
    )


def live(core: Core) -> list[str]:
    return [row.symbol for row in core.rows("SELECT symbol FROM pricing.api_call_queue_live ORDER BY symbol")]


def why(core: Core, symbol: str) -> tuple[str, str]:
    (row,) = core.rows("SELECT state, sentence FROM pricing.why_old('mf_nav', :symbol)", symbol=symbol)
    return row.state, row.sentence


def waiting(core: Core) -> dict[str, int]:
    with core.engine.begin() as connection:
        return {one.data_type: one.instruments for one in schedules.waiting_schedules(connection)}


def backlog(core: Core, provider: str, count: int) -> None:
    core.rows(
        "INSERT INTO pricing.api_call_queue_live (data_type, symbol, provider, priority)"
        " SELECT 'equity_quote', :provider || n, :provider, 1 FROM generate_series(1, :count) AS n",
        provider=provider,
        count=count,
    )


def test_b14_the_backlog_of_one_provider_stops_no_schedule_of_another(core: Core) -> None:
    symbols = funds(core, 20)
    backlog(core, TWELVEDATA, 1000)
    assert core.enqueue_scheduled(NAV) == 20
    assert set(symbols) <= set(live(core))
    assert waiting(core) == {}


def test_b14_a_schedule_that_waits_for_its_own_provider_says_so(core: Core, cli: CommandLine) -> None:
    symbols = funds(core, 20)
    backlog(core, MFAPI, 1000)
    core.rows(
        "INSERT INTO pricing.provider_keys (provider, key_name, is_active) VALUES ('mfapi', 'default', false)"
        " ON CONFLICT (provider, key_name) DO UPDATE SET is_active = false"
    )
    assert core.enqueue_scheduled(NAV) == 0
    assert waiting(core) == {NAV: 20}
    said = "20 instruments of mf_nav wait for their schedule: 1,000 tasks of mfapi are live already"
    assert said in cli("status").stdout
    assert cli("status", "--json").json["waiting_schedules"][0]["instruments"] == 20
    state, sentence = why(core, symbols[0])
    assert state == "key_refused"
    assert "the slot of its schedule at 2026-03-10 12:00:00 UTC has not queued it yet" in sentence
    assert "no key of mfapi is active" in sentence
    assert core.one("SELECT count(*) FROM pricing.warnings WHERE source = 'walk_schedules'") == 1


def test_b14_what_waits_for_quota_is_told_everywhere_for_as_long_as_it_waits(
    core: Core, cli: CommandLine, clock: Clock
) -> None:
    symbols = funds(core, 5)
    by_yahoo(core, symbols)
    core.use_quota(91_000, YAHOO)
    core.enqueue_scheduled(NAV)
    for _ in range(3):
        clock.advance(86_400)
        core.enqueue_due()
    core.use_quota(91_000, YAHOO)
    assert "5 instruments of mf_nav wait for their schedule: the quota of yahoo" in cli("status").stdout
    state, sentence = why(core, symbols[0])
    assert state == "quota_spent"
    assert "enqueue_scheduled" not in sentence, "which would queue nothing"


@pytest.mark.parametrize(
    "off",
    [
        "UPDATE pricing.data_collectors SET is_active = {} WHERE provider = 'mfapi'",
        "UPDATE pricing.provider_routing SET is_active = {} WHERE data_type = 'mf_nav'",
    ],
)
def test_b14_a_schedule_without_a_provider_waits_for_one(core: Core, clock: Clock, off: str) -> None:
    """Each slot made a dead row for each instrument."""
    funds(core, 10)
    core.rows(off.format("false"))
    for _ in range(3):
        assert core.enqueue_scheduled(NAV) == 0
        clock.advance(3600)
    assert core.one("SELECT count(*) FROM pricing.api_call_queue_dead") == 0
    assert waiting(core) == {NAV: 10}
    core.rows(off.format("true"))
    assert core.enqueue_due() == 10, "it does not wait for the next slot"


def test_b14_a_verified_fund_that_became_unknown_is_asked_for_once_a_week(core: Core, clock: Clock) -> None:
    (symbol,) = funds(core, 1)
    core.rows(
        "UPDATE pricing.instruments SET verified_at = pricing.clock() - interval '30 days' WHERE symbol = :s",
        s=symbol,
    )
    asked = 0
    for _ in range(28):
        asked += core.enqueue_scheduled(NAV) or 0
        for call in core.claim(MFAPI):
            core.fail(call, FailureKind.UNKNOWN_SYMBOL)
            core.settle(call, 100, "failed", kind=FailureKind.UNKNOWN_SYMBOL)
        clock.advance(86_400)
        core.call("SELECT pricing.resolve_tasks()")
    assert asked == 4
    assert core.one("SELECT count(*) FROM pricing.api_call_queue_dead WHERE resolved_at IS NULL") == 1


def test_b10_scarce_room_goes_to_the_most_viewers_of_all_types(core: Core, clock: Clock) -> None:
    """It went by the names of the types."""
    core.use_quota(95_000, TWELVEDATA)
    core.heartbeat("eve", *((QUOTE, f"Q{n}") for n in range(10)))
    for user in range(3):
        core.heartbeat(f"user{user}", *((FX, f"{currency}/USD") for currency in ("EUR", "GBP", "CHF", "JPY", "INR")))
    core.use_quota(92_000, TWELVEDATA)
    assert core.enqueue_due() == 3
    assert {task.data_type for task in core.tasks()} == {FX}
    core.use_quota(88_000, TWELVEDATA)
    assert core.enqueue_due() == 4
    assert Counter(task.data_type for task in core.tasks()) == {FX: 5, QUOTE: 2}
    core.use_quota(87_000, TWELVEDATA)
    clock.advance(1)
    core.heartbeat("zoe", (QUOTE, "NEW"))
    assert "NEW" not in live(core), "others wait for longer"


@pytest.mark.own_sessions
def test_b10_producers_that_fit_each_alone_go_past_the_room_by_a_sixteenth_each(core: Core) -> None:
    connections = [core.engine.connect() for _ in range(4)]
    for number, connection in enumerate(connections):
        viewers.heartbeat(connection, f"user{number}", [(QUOTE, f"U{number}X{n:03}") for n in range(60)])
    for connection in connections:
        connection.commit()
        connection.close()
    assert core.one("SELECT sum(est_bytes) FROM pricing.api_call_queue_live") <= 95_000 * (1 + 3 / 16)


def test_b10_a_plan_is_not_checked_beside_another_one(core: Core) -> None:
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 3000000 WHERE provider = 'twelvedata'")
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes, history_from)"
        " VALUES ('equity_daily2', 'equity', 'daily_bars', 1440, '2000-01-01')"
    )
    core.rows("UPDATE pricing.provider_routing SET provider = 'twelvedata' WHERE data_type LIKE 'equity_daily%'")
    core.rows("DELETE FROM pricing.instruments WHERE asset_class = 'equity'")
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol)"
        " SELECT 'equity', 'S' || n FROM generate_series(1, 12) AS n"
    )
    plan = "SELECT tasks FROM pricing.plan_backfill(:kind, '2020-01-01', '2023-12-31')"
    with core.engine.connect() as one, core.engine.connect() as other:
        one.execute(text(plan), {"kind": "equity_daily"})
        with pytest.raises(Exception, match="another session is at queue_room twelvedata"):
            other.execute(text(plan), {"kind": "equity_daily2"})
        other.rollback()
        one.commit()
        with pytest.raises(Exception, match="the backfill needs about"):
            other.execute(text(plan), {"kind": "equity_daily2"})
