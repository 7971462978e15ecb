"""F4: nothing waits in silence. A pair is called queued only if a worker takes it when its turn comes.

Whatever keeps a task of a provider from being called is told by its own name, however many such things there are. The
worker here claims as real ones do: for the providers that its drain says it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from sqlalchemy import text

from pricing_pipeline.demand import freshness
from pricing_pipeline.demand.backfills import Progress
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

PAIR = (QUOTE, "AAPL")
AHEAD = ("IBM", "MSFT")


def work(core: Core, *providers: str) -> None:
    """A drain that is alive, and asks these providers."""
    drain: UUID = core.call("SELECT pricing.begin_drain('w', NULL, 120)")
    core.rows(
        "SELECT pricing.extend_drain(:drain, CAST(:providers AS text[]))",
        drain=drain,
        providers=list(providers),
    )


def use_up_the_limit(core: Core) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 1 WHERE provider = 'twelvedata'")
    core.enqueue(DAILY, "MSFT", priority=99)
    for call in core.claim():  # none, if something else keeps it from being asked
        core.settle(call)


Cause = Callable[[Core], object]
CAUSES: dict[str, tuple[Cause, str, str]] = {
    "the provider is switched off": (
        lambda core: core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'twelvedata'"),
        "provider_off",
        "`pricing-pipeline provider change twelvedata --active`",
    ),
    "nobody stands for it in the sandbox": (
        lambda core: core.rows("UPDATE pricing.drains SET providers = '{mfapi}'"),
        "no_client",
        "twelvedata is not asked: this pipeline runs with the sandbox, which does not imitate twelvedata",
    ),
    "no worker serves the queue": (
        lambda core: core.rows("UPDATE pricing.drains SET finished_at = pricing.clock()"),
        "no_worker",
        "pricing-pipeline status",
    ),
    "the breaker is open": (
        lambda core: core.one("SELECT pricing.open_breaker('twelvedata', '10 of 10 calls failed')"),
        "breaker_open",
        "10 of 10 calls failed",
    ),
    "no key is active": (
        lambda core: core.rows(
            "INSERT INTO pricing.provider_keys (provider, key_name, is_active) VALUES ('twelvedata', 'default', false)"
            " ON CONFLICT (provider, key_name) DO UPDATE SET is_active = false"
        ),
        "key_refused",
        "key set twelvedata",
    ),
    "the provider was asked too fast": (
        lambda core: core.throttle(TWELVEDATA, 90),
        "throttled",
        "too fast",
    ),
    "the quota is spent": (
        lambda core: core.rows("UPDATE pricing.data_collectors SET quota_bytes = 1"),
        "quota_spent",
        "provider change",
    ),
    "the rate limit is used up": (use_up_the_limit, "rate_limited", "in 60 s"),
}
"""What keeps a task from being called: how it comes about, and what is told of it."""


def why(core: Core) -> freshness.Why:
    with core.engine.connect() as connection:
        (found,) = freshness.why(connection, PAIR[1], PAIR[0])
    return found


def is_taken(core: Core, most_claims: int) -> bool:
    """Whether the workers that are alive take the task in so many claims each."""
    asked = core.rows(
        "SELECT DISTINCT p.provider FROM pricing.drains d JOIN pricing.data_collectors p"
        " ON d.providers IS NULL OR p.provider = ANY (d.providers)"
        " WHERE d.finished_at IS NULL AND d.lease_until > pricing.clock()"
    )
    for _ in range(most_claims):
        for row in asked:
            for call in core.claim(row.provider, max_calls=1):
                if (call.data_type, [task.symbol for task in call.tasks]) == (PAIR[0], [PAIR[1]]):
                    return True
                core.finish(call)
    return False


def begin(core: Core) -> None:
    """A task of a watched pair, a worker that asks its provider, and work that goes before it; nothing else."""
    with core.owner.begin() as owner:
        for statement in (
            "TRUNCATE pricing.api_call_queue, pricing.collector_call_log, pricing.demand, pricing.drains,"
            " pricing.active_subscriptions, pricing.limit_counts, pricing.provider_keys CASCADE",
            "UPDATE pricing.data_collectors SET is_active = true, quota_bytes = 1000000000",
            "UPDATE pricing.provider_state SET claims = 0, breaker = 'closed', breaker_since = NULL,"
            " breaker_until = NULL, breaker_reason = NULL, breaker_openings = 0",
            "UPDATE pricing.registry_state SET prices_from = 'sandbox'",
        ):
            owner.execute(text(statement))
    core.lift_limits(batch_size=1)
    core.heartbeat("ann", PAIR)
    core.enqueue_due()
    core.enqueue(DAILY, *AHEAD, priority=9)
    work(core, TWELVEDATA, MFAPI)


@pytest.fixture
def waiting(core: Core) -> Core:
    begin(core)
    return core


def test_f4_what_waits_for_its_turn_is_queued_and_taken(waiting: Core) -> None:
    assert why(waiting).state == "queued"
    assert is_taken(waiting, len(AHEAD) + 1)


@pytest.mark.parametrize("cause", CAUSES)
def test_f4_each_cause_of_a_wait_has_its_name_and_a_way_out(waiting: Core, cause: str) -> None:
    bring_about, state, words = CAUSES[cause]
    bring_about(waiting)
    found = why(waiting)
    assert (found.state, words in found.sentence) == (state, True), found.sentence
    assert not is_taken(waiting, len(AHEAD) + 1)


def test_f4_no_wait_without_an_end_is_called_queued(waiting: Core) -> None:
    """For any mix of causes: what is queued is taken when its turn comes, and what is taken was queued."""

    @settings(max_examples=examples(32), deadline=None)
    @given(st.lists(st.sampled_from(sorted(CAUSES)), unique=True, max_size=3))
    def check(causes: Sequence[str]) -> None:
        begin(waiting)
        for cause in causes:
            CAUSES[cause][0](waiting)
        state = why(waiting).state
        assert state in {CAUSES[cause][1] for cause in causes} or (state == "queued" and not causes)
        assert (state == "queued") == is_taken(waiting, len(AHEAD) + 2)

    check()


def test_f4_a_task_whose_time_has_come_waits_for_a_worker_too(waiting: Core, clock: Clock) -> None:
    (call,) = [call for call in waiting.claim(max_calls=10) if call.data_type == QUOTE]
    waiting.fail(call, FailureKind.PROVIDER_DOWN)
    waiting.rows("UPDATE pricing.drains SET finished_at = pricing.clock()")
    assert why(waiting).state == "retrying"
    clock.advance(3600)
    assert why(waiting).state == "no_worker"


def test_f4_a_name_that_dns_does_not_know_is_told(core: Core) -> None:
    """The whole way: a worker asks, its machine has no DNS, and the reason is in the sentence."""

    def resolve(host: str, port: int) -> list[str]:
        raise OSError(-3, "Temporary failure in name resolution")

    core.heartbeat("ann", PAIR)
    core.enqueue_due()
    client = ProviderClient(
        PROVIDERS[TWELVEDATA],
        "https://api.twelvedata.com",
        {"default": SecretStr("secret-key")},
        resolve=resolve,
    )
    with client, Refresher(core.engine, {TWELVEDATA: client}, worker="w") as refresher:
        refresher.follow(lambda connection: Progress(1, int(not core.tasks("AAPL")[0].errors), 0))
    found = why(core)
    assert found.state in ("retrying", "backing_off")
    assert "twelvedata was not asked: DNS gives no address for the name of its host" in found.sentence
