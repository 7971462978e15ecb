"""B10: producers queue no more than the quota has room for, by the highest priority; the rest is counted and said."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline import demand
from pricing_pipeline_tests.fix_cli import CommandLine
from pricing_pipeline_tests.fix_core import MFAPI, NAV, QUOTE, TWELVEDATA, Core, sample_template
from pricing_pipeline_tests.fix_database import Clock

template = sample_template
pytestmark = pytest.mark.usefixtures("still")

SIZE = 1000


@pytest.fixture(autouse=True)
def small(core: Core, clock: Clock) -> None:
    """A quota of 100,000 bytes, of which a price takes 1,000, at noon."""
    clock.set(datetime(2026, 3, 10, 12, tzinfo=UTC))
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100000")
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = :size", size=SIZE)


def use(core: Core, used: int, provider: str = TWELVEDATA) -> None:
    core.rows("DELETE FROM pricing.api_data_usage WHERE provider = :provider", provider=provider)
    core.rows(
        "INSERT INTO pricing.api_data_usage (provider, hour, bytes) VALUES (:provider, pricing.clock(), :used)",
        provider=provider,
        used=used,
    )


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
        tuple(row)
        for row in core.rows("SELECT provider, sum(pairs)::integer FROM pricing.unqueued_pairs() GROUP BY 1")
    )


def test_b10_a_heartbeat_queues_nothing_where_the_quota_is_spent(core: Core, cli: CommandLine) -> None:
    use(core, 97_800)
    assert core.heartbeat("ann", *pairs(2000)) == 2000
    assert waiting(core) == 0
    assert core.enqueue_due() == 0
    assert unqueued(core) == {TWELVEDATA: 2000}
    assert (
        "2000 pairs of equity_quote are due and not queued: the quota of twelvedata" in cli("status").stdout
    )
    assert cli("status", "--json").json["unqueued"] == [
        {"provider": TWELVEDATA, "data_type": QUOTE, "pairs": 2000}
    ]
    why = core.rows("SELECT state, sentence FROM pricing.why_old('equity_quote', 'S0001')")[0]
    assert why.state == "quota_spent"
    assert "not queued" in why.sentence
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 20000000000")
    assert core.enqueue_due() == 2000, "nothing of it is lost"
    assert unqueued(core) == {}


def test_b10_what_fits_is_queued_by_the_number_of_its_viewers(core: Core) -> None:
    use(core, 95_000)
    core.heartbeat("ann", *pairs(10))
    core.heartbeat("bob", *pairs(10)[4:7])
    core.heartbeat("eve", *pairs(10)[5:6])
    assert waiting(core) == 0
    use(core, 93_000)
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
    use(core, 80_500, MFAPI)
    with core.engine.begin() as connection:
        assert demand.enqueue_scheduled(connection, NAV) == 9
    assert core.enqueue_due() == 0
    assert waiting(core, MFAPI) == 9000
    core.rows("DELETE FROM pricing.api_call_queue_live")
    assert core.enqueue_due() == 9
    use(core, 0, MFAPI)
    assert core.enqueue_due() == 12
    assert len(core.tasks()) == 21


def test_b10_reads_queue_nothing_beyond_the_quota(core: Core) -> None:
    use(core, 93_000)
    for symbol in ("AAPL", "IBM", "MSFT", "GOOG"):
        core.read(symbol)
    assert waiting(core) <= 2000


def test_b10_symbols_with_routes_of_their_own_are_held_to_the_quota_of_their_provider(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank) VALUES"
        " ('equity_quote', 'S0001', 'yahoo', 1), ('equity_quote', 'S0002', 'yahoo', 1)"
    )
    use(core, 94_500, "yahoo")
    use(core, 92_000)
    core.heartbeat("ann", *pairs(10))
    assert (waiting(core), waiting(core, "yahoo")) == (3000, 0)
    assert core.enqueue_due() == 0
    assert unqueued(core) == {TWELVEDATA: 5, "yahoo": 2}
    late = core.rows("SELECT count(*) AS n FROM pricing.watched_pairs() WHERE state = 'fresh'")[0]
    assert late.n == 0, "what nobody could ask for is no fresh price"


def test_b10_many_sessions_together_queue_no_more_than_fits(core: Core) -> None:
    use(core, 85_000)

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
        st.tuples(
            st.sampled_from(["look", "hold", "read", "schedule", "check", "claim"]), st.integers(1, 40)
        ),
        max_size=8,
    ),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_b10_what_waits_and_what_is_used_fit_the_share_of_their_priority(
    core: Core, clock: Clock, used: int, steps: list[tuple[str, int]]
) -> None:
    """Invariant: after any producer, what waits of a priority or a higher one and what is used fit into what the quota
    leaves such work, but for what was used beyond it before; and a wanted pair is queued or counted."""
    core.rows(
        "TRUNCATE pricing.api_call_queue, pricing.demand, pricing.active_subscriptions, pricing.holdings,"
        " pricing.check_marks, pricing.collector_call_log, pricing.latest_prices CASCADE"
    )
    core.rows(
        "UPDATE pricing.schedule_walks SET served_slot = '2000-01-01', walk_slot = NULL, walk_after = ''"
    )
    core.rows("DELETE FROM pricing.size_estimates")
    for provider in (TWELVEDATA, MFAPI):
        use(core, used, provider)
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
                demand.enqueue_scheduled(connection, NAV)
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
