"""B28, F1: several keys of a provider, each with its own limits and pauses; pacing, and units that others use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import KeyRefused, SettingsError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.configured import configured_clients, configured_keys
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.refresh.settling import settle_failure
from pricing_pipeline.settings import Settings, load_settings
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.refreshing import work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture
def sandbox() -> Iterator[RunningSandbox]:
    with running_sandbox(credits_per_minute=8) as sandbox:
        yield sandbox


def two_keys(core: Core) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.call("SELECT pricing.register_keys('twelvedata', '{default,second}')")


def taken(core: Core) -> dict[str, int]:
    """Units claimed now, by key."""
    found: Counter[str] = Counter()
    while calls := core.claim(max_calls=10):
        for call in calls:
            found[call.key_name] += len(call.tasks)
    return dict(found)


# In the database


def test_b28_a_provider_without_keys_has_one_named_default(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    call = core.claim_one()
    assert call.key_name == "default"
    assert core.one("SELECT key_name FROM pricing.collector_call_log") == "default"


def test_b28_each_key_has_the_providers_limits_for_itself(core: Core, clock: Clock) -> None:
    two_keys(core)
    core.enqueue(QUOTE, *symbols(60))
    assert core.allowance().units_left == 16
    assert core.allowance().units_limit == 16
    assert taken(core) == {"default": 8, "second": 8}
    logged = core.rows("SELECT key_name, units FROM pricing.collector_call_log ORDER BY call_id")
    assert sorted(tuple(row) for row in logged) == [("default", 8), ("second", 8)]
    clock.advance(66)
    assert taken(core) == {"default": 8, "second": 8}


def test_b28_the_key_with_the_most_room_goes_first(core: Core) -> None:
    two_keys(core)
    core.rows(
        "INSERT INTO pricing.provider_key_limits VALUES ('twelvedata', 'second', 'minute', 55)",
    )
    core.enqueue(QUOTE, *symbols(70))
    assert core.claim_one().key_name == "second", "its plan is larger: 55 credits"
    assert taken(core) == {"default": 8}
    assert core.one("SELECT max(units) FROM pricing.collector_call_log") == 55


def test_b28_a_refusal_blocks_only_its_key(core: Core, clock: Clock) -> None:
    two_keys(core)
    core.enqueue(QUOTE, *symbols(60))
    assert core.throttle(TWELVEDATA, 120, "second") == 0, "what was refused need not wait: another key is free"
    assert core.allowance().blocked_seconds is None
    assert core.allowance().units_left == 8
    assert taken(core) == {"default": 8}
    assert core.throttle(TWELVEDATA, 60, "default") == pytest.approx(60), "the first that is free again"
    assert core.allowance().blocked_seconds == pytest.approx(60)
    clock.advance(66)
    assert taken(core) == {"default": 8}


def test_b28_a_refusal_of_the_only_key_after_it_was_taken_out_still_snoozes_its_tasks(core: Core, clock: Clock) -> None:
    """Anyone who sees that a key is refused takes it out, while calls with it are under way."""
    core.enqueue(QUOTE, "AAPL")
    call = core.claim_one()
    core.call("SELECT pricing.register_keys('twelvedata', '{default}')")
    core.rows("UPDATE pricing.provider_keys SET is_active = false")
    settle_failure(core.engine, call, KeyRefused("HTTP 401", http_status=401))
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.errors[-1]["kind"]) == ("scheduled", 0, "key_refused")
    assert (task.run_after - core.clock()).total_seconds() >= 60


def test_b28_an_inactive_key_is_not_used(core: Core) -> None:
    two_keys(core)
    core.rows("UPDATE pricing.provider_keys SET is_active = false WHERE key_name = 'default'")
    core.enqueue(QUOTE, *symbols(60))
    assert taken(core) == {"second": 8}


def test_b28_a_worker_gets_no_calls_for_keys_that_it_does_not_hold(core: Core) -> None:
    two_keys(core)
    core.enqueue(QUOTE, *symbols(60))
    claimed = "SELECT DISTINCT key_name FROM pricing.claim_calls('twelvedata', 'w', 1, keys => '{second}')"
    assert [tuple(row) for row in core.rows(claimed)] == [("second",)]
    assert core.rows("SELECT FROM pricing.claim_calls('twelvedata', 'w', 1, keys => '{third}')") == []


# Pacing


def test_c1_a_delay_holds_between_the_calls_of_all_workers(core: Core, clock: Clock) -> None:
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 30000")
    core.enqueue(QUOTE, *symbols(9))
    assert len(core.claim(max_calls=10, worker="a")) == 1
    assert core.claim(max_calls=10, worker="b") == []
    clock.advance(25)
    assert core.claim(worker="c") == []
    clock.advance(6)
    assert len(core.claim(max_calls=10, worker="b")) == 1


def test_c1_few_remaining_units_double_the_delay_until_the_pressure_ends(core: Core, clock: Clock) -> None:
    """Doubled, not doubled again with each answer, and restored."""
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 20000")
    core.enqueue(QUOTE, *symbols(30))

    def next_call(after: float, units_left: int | None) -> None:
        clock.advance(after - 2)
        assert core.claim() == []
        clock.advance(3)
        core.settle(core.claim_one(), units_left=units_left)

    core.settle(core.claim_one(), units_left=6)
    next_call(20, 5)
    next_call(40, 3)
    next_call(40, 999_000)
    next_call(20, 2)
    clock.advance(30)
    assert core.claim() == []
    clock.advance(31)
    core.settle(core.claim_one())
    next_call(20, None)  # the report is more than a minute old


def test_b17_units_that_somebody_else_uses_are_taken_off(core: Core, clock: Clock) -> None:
    """The provider says how many credits are left; less than we believed is believed for a window."""
    core.rows("UPDATE pricing.provider_limits SET units = 100 WHERE provider = 'twelvedata'")
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 10, batch_from = 1")
    core.enqueue(QUOTE, *symbols(200))
    core.settle(core.claim_one(), units_left=90)
    assert core.allowance().units_left == 90, "as we believed"
    core.settle(core.claim_one(), units_left=20)
    assert core.allowance().units_left == 20, "80 by our count: another program used 60"
    core.settle(core.claim_one(), units_left=95)
    assert core.allowance().units_left == 10, "more than we believed is not believed"
    clock.advance(66)
    assert core.allowance().units_left == 100


def test_b17_a_plan_smaller_than_our_limit_is_noticed(core: Core) -> None:
    """2000 credits a minute are written down, and the plan has 8."""
    core.enqueue(QUOTE, *symbols(200))
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 3, batch_from = 1")
    core.settle(core.claim_one(), units_left=5)
    assert core.allowance().units_left == 5


def test_b17_what_a_late_worker_heard_corrects_nothing(core: Core) -> None:
    core.enqueue(QUOTE, *symbols(3))
    core.settle(core.claim_one(), units_left=0, is_owned=False)
    assert core.rows("SELECT FROM pricing.provider_keys") == []


# Settings, clients and the sandbox


def settings(**values: str) -> Settings:
    return Settings.model_validate(values)


def test_b28_keys_are_set_by_name_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRICING_TWELVEDATA_API_KEY", "first-secret-canary")
    monkeypatch.setenv("PRICING_TWELVEDATA_API_KEYS", "second=second-canary=, third = third-canary")
    ours = load_settings()
    keys = {name: key.get_secret_value() for name, key in configured_keys(ours, TWELVEDATA).items()}
    assert keys == {"default": "first-secret-canary", "second": "second-canary=", "third": "third-canary"}
    assert "canary" not in repr(ours)


@pytest.mark.parametrize("wrong", ["canary", "=canary", "a b=canary", "a=canary,a=canary", "a=,canary"])
def test_b28_a_malformed_list_of_keys_is_refused_without_showing_them(
    monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    from pricing_pipeline.settings import load_settings

    monkeypatch.setenv("PRICING_TWELVEDATA_API_KEYS", wrong)
    with pytest.raises(SettingsError, match="PRICING_TWELVEDATA_API_KEYS") as caught:
        load_settings()
    assert "canary" not in str(caught.value)
    assert "name=secret" in str(caught.value)


def test_b28_an_unknown_key_is_an_error_that_says_what_to_do(sandbox: RunningSandbox) -> None:
    with (
        ProviderClient(PROVIDERS[TWELVEDATA], sandbox.twelvedata_url, {"a": SecretStr("sandbox-key-a")}) as client,
        pytest.raises(KeyRefused, match=r"no key 'b' of twelvedata.*PRICING_TWELVEDATA_API_KEYS"),
    ):
        client.fetch(Fetcher.QUOTE, ["AAPL"], key_name="b")


def test_f1_the_sandbox_has_a_plan_for_each_key_and_its_log_says_which(sandbox: RunningSandbox) -> None:
    ours = settings(twelvedata_api_keys="second=not-sent", sandbox_url=sandbox.url)
    with configured_clients(ours, {TWELVEDATA: "https://unused.example"}) as clients:
        client = clients[TWELVEDATA]
        assert client.key_names == {"default", "second"}
        for name in ("default", "second"):
            assert client.fetch(Fetcher.QUOTE, symbols(8), key_name=name).units_left == 0
        with pytest.raises(Exception, match="429"):
            client.fetch(Fetcher.QUOTE, ["AAPL"], key_name="second")
    log = sandbox.calls(TWELVEDATA)
    assert [(call["key_name"], call["refused"]) for call in log] == [
        ("default", False),
        ("second", False),
        ("second", True),
    ]
    assert "not-sent" not in str(log)
    assert "sandbox-key" not in str(log)


def test_b28_two_keys_are_twice_the_allowance_and_nothing_is_refused(core: Core, sandbox: RunningSandbox) -> None:
    """Through the real client: a worker that holds two keys of 8 credits fetches 16 symbols at once."""
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.enqueue(QUOTE, *symbols(40))
    ours = settings(twelvedata_api_keys="second=not-sent", sandbox_url=sandbox.url)
    with (
        configured_clients(ours, {TWELVEDATA: "https://unused.example"}) as clients,
        Refresher(core.engine, clients, worker="w") as refresher,
    ):
        done = "SELECT count(*) FROM pricing.api_call_queue_completed"
        work_until(refresher, lambda: core.one(done) == 16)
    log = sandbox.calls(TWELVEDATA)
    assert sorted((call["key_name"], call["units"], call["refused"]) for call in log) == [
        ("default", 8, False),
        ("second", 8, False),
    ]
    assert [row.key_name for row in core.rows("SELECT key_name FROM pricing.provider_keys ORDER BY 1")] == [
        "default",
        "second",
    ]


def test_b28_a_refused_key_leaves_its_tasks_to_the_other(core: Core, sandbox: RunningSandbox) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.enqueue(QUOTE, *symbols(8))
    keys = {"default": SecretStr("no-key-of-the-sandbox"), "good": SecretStr("sandbox-key-good")}
    with (
        ProviderClient(PROVIDERS[TWELVEDATA], sandbox.twelvedata_url, keys) as client,
        Refresher(core.engine, {TWELVEDATA: client}, worker="w") as refresher,
    ):
        done = "SELECT count(*) FROM pricing.api_call_queue_completed"
        work_until(refresher, lambda: core.one(done) == 8)
    state = {row.key_name: row.blocked_until for row in core.rows("SELECT * FROM pricing.provider_keys")}
    assert state["good"] is None
    assert state["default"] is not None
    assert {task.attempt for task in core.tasks()} == {1}, "the refusal cost no attempt"
    assert "no-key-of-the-sandbox" not in str(core.rows("SELECT * FROM pricing.provider_keys"))
