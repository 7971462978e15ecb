"""B10: producers queue no more than the quota has room for, by the highest priority; the rest is counted and said."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from pricing_pipeline.demand import schedules
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import MFAPI, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

SIZE = 1000


@pytest.fixture(autouse=True)
def small(core: Core, clock: Clock, still: None) -> None:
    """A quota of 100,000 bytes, of which a price takes 1,000, at noon."""
    clock.set(datetime(2026, 3, 10, 12, tzinfo=UTC))
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100000")
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = :size", size=SIZE)


def pairs(count: int, prefix: str = "S") -> list[tuple[str, str]]:
    return [(QUOTE, f"{prefix}{number:04}") for number in range(count)]


def waiting(core: Core, provider: str = TWELVEDATA) -> int:
    count: int = core.one(
        "SELECT coalesce(sum(est_bytes), 0)::bigint FROM pricing.api_call_queue_live WHERE provider = :provider",
        provider=provider,
    )
    return count


def unqueued(core: Core) -> dict[str, int]:
    return dict(
        tuple(row) for row in core.rows("SELECT provider, sum(pairs)::integer FROM pricing.unqueued_pairs() GROUP BY 1")
    )


def test_b10_a_heartbeat_queues_nothing_where_the_quota_is_spent(core: Core, cli: CommandLine) -> None:
    core.use_quota(97_800)
    assert core.heartbeat("ann", *pairs(200)) == 200
    assert waiting(core) == 0
    assert core.enqueue_due() == 0
    assert unqueued(core) == {TWELVEDATA: 200}
    assert "200 pairs of equity_quote are due and not queued: the quota of twelvedata" in cli("status").stdout
    assert cli("status", "--json").json["unqueued"] == [{"provider": TWELVEDATA, "data_type": QUOTE, "pairs": 200}]
    why = core.rows("SELECT state, sentence FROM pricing.why_old('equity_quote', 'S0001')")[0]
    assert why.state == "quota_spent"
    assert "not queued" in why.sentence
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 20000000000")
    assert core.enqueue_due() == 200, "nothing of it is lost"
    assert unqueued(core) == {}


def test_b10_what_fits_is_queued_by_the_number_of_its_viewers(core: Core) -> None:
    core.use_quota(95_000)
    core.heartbeat("ann", *pairs(10))
    core.heartbeat("bob", *pairs(10)[4:7])
    core.heartbeat("eve", *pairs(10)[5:6])
    assert waiting(core) == 0
    core.use_quota(93_000)
    assert core.enqueue_due() == 2
    assert {task.symbol for task in core.tasks()} == {"S0005", "S0004"}
    assert core.enqueue_due() == 0
    assert unqueued(core) == {TWELVEDATA: 8}


def test_b10_a_schedule_queues_what_fits_and_goes_on_from_there(core: Core) -> None:
    """121 kB were queued into 1,000 bytes."""
    core.rows("DELETE FROM pricing.instruments WHERE asset_class = 'fund'")
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol)"
        " SELECT 'fund', lpad(n::text, 6, '0') FROM generate_series(1, 30) AS n"
    )
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2000-01-01'")
    core.use_quota(80_500, MFAPI)
    with core.engine.begin() as connection:
        assert schedules.enqueue_scheduled(connection, NAV) == 9
    assert core.enqueue_due() == 0
    assert waiting(core, MFAPI) == 9000
    core.rows("DELETE FROM pricing.api_call_queue_live")
    assert core.enqueue_due() == 9
    core.use_quota(0, MFAPI)
    assert core.enqueue_due() == 12
    assert len(core.tasks()) == 21


def test_b10_reads_queue_nothing_beyond_the_quota(core: Core) -> None:
    core.use_quota(93_000)
    for symbol in ("AAPL", "IBM", "MSFT", "GOOG"):
        core.read(symbol)
    assert waiting(core) <= 2000


def test_b10_symbols_with_routes_of_their_own_are_held_to_the_quota_of_their_provider(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank) VALUES"
        " ('equity_quote', 'S0001', 'yahoo', 1), ('equity_quote', 'S0002', 'yahoo', 1)"
    )
    core.use_quota(94_500, "yahoo")
    core.use_quota(92_000)
    core.heartbeat("ann", *pairs(10))
    assert (waiting(core), waiting(core, "yahoo")) == (3000, 0)
    assert core.enqueue_due() == 0
    assert unqueued(core) == {TWELVEDATA: 5, "yahoo": 2}
    late = core.rows("SELECT count(*) AS n FROM pricing.watched_pairs() WHERE state = 'fresh'")[0]
    assert late.n == 0, "what nobody could ask for is no fresh price"


def test_b10_many_sessions_together_queue_no_more_than_fits(core: Core) -> None:
    core.use_quota(85_000)

    def look(number: int) -> None:
        core.heartbeat(f"user{number}", *pairs(50, f"U{number}"))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(look, range(12)))
    assert waiting(core) <= 10_000
    core.enqueue_due()
    assert waiting(core) == 10_000


@given(
    used=st.integers(0, 100_000),
    steps=st.lists(
        st.tuples(st.sampled_from(["look", "hold", "read", "schedule", "check", "claim"]), st.integers(1, 40)),
        max_size=8,
    ),
)
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_b10_what_waits_and_what_is_used_fit_the_share_of_their_priority(
    core: Core, clock: Clock, used: int, steps: list[tuple[str, int]]
) -> None:
    """Invariant: after any producer, what waits of a priority or a higher one and what is used fit into what the quota
    leaves such work, but for what was used beyond it before; and a wanted pair is queued or counted."""
    core.rows(
        "TRUNCATE pricing.api_call_queue, pricing.demand, pricing.active_subscriptions, pricing.holdings,"
        " pricing.check_marks, pricing.collector_call_log, pricing.latest_prices CASCADE"
    )
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2000-01-01', walk_slot = NULL, walk_after = ''")
    core.rows("DELETE FROM pricing.size_estimates")
    for provider in (TWELVEDATA, MFAPI):
        core.use_quota(used, provider)
    for number, (step, count) in enumerate(steps):
        some = [*pairs(count, f"P{number}"), (NAV, f"{200_000 + number}")]
        if step == "look":
            core.heartbeat("ann", *some)
        elif step == "hold":
            core.hold("ann", *some)
        elif step == "read":
            core.read("AAPL")
        elif step == "schedule":
            with core.engine.begin() as connection:
                schedules.enqueue_scheduled(connection, NAV)
        elif step == "check":
            clock.advance(30)
            core.enqueue_due()
        else:
            core.claim(max_calls=2)
        for row in core.rows(
            "SELECT p.provider, x.least, pricing.bytes_used(p.provider, pricing.clock()) AS used,"
            " pricing.quota_for(p.quota_bytes, x.least) AS allowed, coalesce((SELECT sum(q.est_bytes)"
            "   FROM pricing.api_call_queue_live q WHERE q.provider = p.provider AND q.priority >= x.least"
            "   AND q.status <> 'processing'), 0) AS waiting"
            " FROM pricing.data_collectors p, (VALUES (0), (-1)) AS x (least)"
        ):
            mine = row.least == 0 or core.one(
                "SELECT count(*) = 0 FROM pricing.api_call_queue_live WHERE priority >= 0 AND provider = :p",
                p=row.provider,
            )
            assert not mine or row.waiting == 0 or row.used + row.waiting <= row.allowed, row
    wanted = core.one(
        "SELECT count(*) FROM pricing.demand d WHERE d.became_due_at IS NULL AND d.due_at <= pricing.clock()"
    )
    assert sum(unqueued(core).values()) == wanted


# What an attack found


def by_routes_of_their_own(core: Core, count: int) -> None:
    """A scheduled type of which each symbol has a route of its own to a provider whose quota is spent."""
    core.rows("DELETE FROM pricing.instruments WHERE asset_class = 'equity'")
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol)"
        " SELECT 'equity', 'S' || lpad(n::text, 4, '0') FROM generate_series(1, :count) AS n",
        count=count,
    )
    core.rows(
        "UPDATE pricing.data_type_registry SET refresh_strategy = 'scheduled', refresh_schedule = '0 1 * * *'"
        " WHERE data_type = 'equity_daily'"
    )
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank)"
        " SELECT 'equity_daily', symbol, 'yahoo', 1 FROM pricing.instruments WHERE asset_class = 'equity'"
    )
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2000-01-01'")
    core.use_quota(95_000, "yahoo")
    core.call("SELECT pricing.enqueue_scheduled('equity_daily')")


def requested(core: Core) -> list[int]:
    return [row.request_id for row in core.rows("SELECT request_id FROM pricing.pair_requests ORDER BY 1")]


def test_b14_what_a_schedule_leaves_out_is_looked_at_once_a_minute(core: Core, clock: Clock) -> None:
    """Each check asked for it anew and woke the worker up, which checked again: a drain never came to rest."""
    by_routes_of_their_own(core, 20)
    core.enqueue_due()
    asked = requested(core)
    assert len(asked) == 20
    for _ in range(3):
        clock.advance(1)
        assert core.enqueue_due() == 0
        core.call("SELECT pricing.serve_requests()")
        assert requested(core) == asked
    core.pause("S0001")
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 20000000000")
    clock.advance(61)
    assert core.enqueue_due() == 19, "and what is paused is not asked for"
    assert requested(core) == []


def test_b14_what_a_schedule_left_out_keeps_to_the_depth_of_the_queue(core: Core, clock: Clock) -> None:
    by_routes_of_their_own(core, 30)
    core.enqueue_due()
    assert len(requested(core)) == 30
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 20000000000")
    core.rows(
        "INSERT INTO pricing.api_call_queue (data_type, symbol, provider)"
        " SELECT 'equity_quote', 'Q' || n, 'yahoo' FROM generate_series(1, 990) AS n"
    )
    for _ in range(2):
        clock.advance(61)
        core.enqueue_due()
    assert len(core.tasks()) == 1000


def test_b14_a_walk_goes_on_where_symbols_have_another_provider(core: Core) -> None:
    by_routes_of_their_own(core, 20)
    core.rows("DELETE FROM pricing.pair_requests")
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2000-01-01', walk_slot = NULL")
    core.use_quota(0, "yahoo")
    core.use_quota(95_000)
    core.call("SELECT pricing.enqueue_scheduled('equity_daily')")
    assert {task.provider for task in core.tasks()} == {"yahoo"}
    assert len(core.tasks()) == 20


def test_a8_what_is_larger_than_the_quota_fails_in_words(core: Core) -> None:
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = 96000")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.call("SELECT pricing.fail_impossible_tasks()")
    (task,) = core.tasks("AAPL")
    assert (task.status, task.failure_kind) == ("failed", "misconfigured")
    assert task.errors[-1]["message"].startswith("it needs about 96000 bytes")


def test_b10_bars_that_are_asked_for_again_keep_to_the_quota(core: Core) -> None:
    core.use_quota(70_000)
    core.rows(
        "INSERT INTO pricing.provisional_bars (data_type, symbol, observed_at, ask_at)"
        " SELECT 'equity_daily', 'S' || n, '2026-03-09', '2026-03-10' FROM generate_series(1, 50) AS n"
    )
    assert core.call("SELECT pricing.refetch_history()") == 4, "a bar takes a little more than 1,000 bytes"
    assert core.call("SELECT pricing.refetch_history()") == 0
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 20000000000")
    assert core.call("SELECT pricing.refetch_history()") == 46, "nothing of it is lost"


def test_fault_27_a_producer_that_does_not_commit_only_slows_the_others_down(core: Core) -> None:
    core.heartbeat("bob", *pairs(8, "T"))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("UPDATE pricing.demand SET became_due_at = NULL, due_at = pricing.clock()")
    core.use_quota(55_000)
    with core.owner.begin() as connection:
        connection.execute(
            text("SELECT pricing.heartbeat('ann', :types, :symbols)"),
            {"types": [QUOTE] * 60, "symbols": [symbol for _, symbol in pairs(60)]},
        )
        assert core.enqueue_due() == 2, "a sixteenth of the room"
