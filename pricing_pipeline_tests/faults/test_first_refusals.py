"""A provider that refuses before it has ever answered: Yahoo, which looks at the User-Agent (A6, F4)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.keys.clients import open_clients
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine, Said
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support.refreshing import work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox

pytestmark = pytest.mark.usefixtures("still")

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"
OF_SPEED = "has refused calls for speed"
OF_AGENT = "It looks at the User-Agent, so fewer calls do not help"
ANSWERED = "SELECT count(*) FROM pricing.collector_call_log WHERE provider = :p AND finished_at IS NOT NULL"


@pytest.fixture
def service(core: Core) -> Iterator[RunningSandbox]:
    """A sandbox in the place of the real providers, whose Yahoo answers browsers only and alone serves quotes."""
    with running_sandbox() as sandbox:
        core.rows("UPDATE pricing.data_collectors SET base_url = :url || '/' || provider", url=sandbox.url)
        core.rows("DELETE FROM pricing.provider_routing WHERE data_type = :t", t=QUOTE)
        core.rows(
            "INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES (:t, 'yahoo', 1)",
            t=QUOTE,
        )
        sandbox.behave("browsers_only", provider="yahoo")
        yield sandbox


def use(cli: CommandLine, **settings: str) -> Said:
    return cli("provider", "use", "yahoo", sandbox="false", **settings)


def work(
    core: Core,
    database_url: str,
    *,
    calls: int,
    user_agent: str | None = None,
    provider: str = "yahoo",
    key: str | None = None,
) -> None:
    """Work as a worker of a home for real providers does, until a provider was called so often."""
    engine = make_engine(database_url)
    secret = None if key is None else SecretStr(key)
    settings = Settings(sandbox=False, user_agent=user_agent, twelvedata_api_key=secret)
    with open_clients(settings, engine) as clients, Refresher(engine, clients, worker="w") as refresher:
        work_until(refresher, lambda: core.one(ANSWERED, p=provider) >= calls)
    engine.dispose()


@pytest.mark.usefixtures("service")
def test_a6_the_trial_call_of_yahoo_speaks_of_the_user_agent(core: Core, cli: CommandLine) -> None:
    error = use(cli).error
    assert error.startswith("yahoo answered 429 (Edge: Too Many Requests), as it is known to do to programs")
    assert OF_AGENT in error
    assert error.endswith("and what to use instead of yahoo. Nothing has changed.")
    assert core.one("SELECT count(*) FROM pricing.provider_plans") == 0
    said = use(cli, user_agent=BROWSER)
    assert said.exit_code == 0, said
    assert "yahoo answers: AAPL " in said.stdout


@pytest.mark.parametrize(
    ("body", "words"),
    [("", "no explanation"), ('{"finance":{"error":{"code":"forbidden","description":"No."}}}', "No")],
)
def test_a6_a_403_of_yahoo_speaks_of_the_user_agent(
    service: RunningSandbox, cli: CommandLine, body: str, words: str
) -> None:
    service.behave_well()
    service.behave("status", provider="yahoo", status=403, body=body)
    error = use(cli).error
    assert error.startswith(f"yahoo answered 403 ({words}), as it is known to do to programs")
    assert "key" not in error


def test_a6_another_provider_that_refuses_first_is_believed(
    core: Core, service: RunningSandbox, cli: CommandLine
) -> None:
    service.behave("throttle", provider="twelvedata")
    error = cli(
        "provider", "use", "twelvedata", "--plan", "free", sandbox="false", twelvedata_api_key=service.key
    ).error
    assert "429" in error
    assert "User-Agent" not in error
    assert core.one("SELECT count(*) FROM pricing.provider_plans") == 0


@pytest.mark.parametrize(("status", "kind"), [(429, "throttled"), (403, "key_refused")])
def test_f4_before_any_answer_a_refusal_is_told_as_a_matter_of_the_user_agent(
    core: Core, service: RunningSandbox, cli: CommandLine, database_url: str, status: int, kind: str
) -> None:
    if status != 429:
        service.behave_well()
        service.behave("status", provider="yahoo", status=status, body="Forbidden")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work(core, database_url, calls=1)
    row = core.rows(
        "SELECT error, failure_kind FROM pricing.collector_call_log WHERE provider = 'yahoo' ORDER BY call_id"
    )[0]
    assert OF_AGENT in row.error
    assert row.failure_kind == kind
    why = " ".join(cli("price", "why", "AAPL", "--type", QUOTE).stdout.split())
    assert f"yahoo has answered none of our calls so far (yahoo answered {status}" in why
    assert OF_AGENT in why
    assert OF_SPEED not in why
    assert "key set" not in why
    assert OF_AGENT in " ".join(cli("status").stdout.split())
    shown = cli("provider", "show", "yahoo", "--json").json
    assert "Yahoo has answered none of our calls so far" in shown["standing"]


def test_f4_a_key_that_is_refused_first_is_told_as_a_matter_of_the_key(
    core: Core, service: RunningSandbox, cli: CommandLine, database_url: str
) -> None:
    core.rows("UPDATE pricing.provider_routing SET provider = 'twelvedata' WHERE data_type = :t", t=QUOTE)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work(core, database_url, calls=1, provider="twelvedata", key="a-wrong-key-0123456789")
    assert service.calls("twelvedata")[0]["status"] == 401
    why = " ".join(cli("price", "why", "AAPL", "--type", QUOTE).stdout.split())
    assert "twelvedata does not accept the key" in why
    assert "`pricing-pipeline key set twelvedata` stores another one" in why


@pytest.mark.usefixtures("service")
def test_f4_the_wait_is_that_of_any_429(core: Core, database_url: str) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.rows("UPDATE pricing.data_collectors SET throttle_pause_seconds = 50 WHERE provider = 'yahoo'")
    work(core, database_url, calls=1)
    waits = "SELECT extract(epoch FROM k.blocked_until - c.finished_at)::integer FROM pricing.provider_keys k"
    waits += " JOIN pricing.collector_call_log c USING (provider) WHERE k.provider = 'yahoo'"
    assert core.one(waits) == 50


def test_f4_after_an_answer_a_429_is_a_429(
    core: Core, service: RunningSandbox, cli: CommandLine, database_url: str
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work(core, database_url, calls=1, user_agent=BROWSER)
    assert core.latest("AAPL") is not None
    assert {call["status"] for call in service.calls("yahoo")} == {200}
    core.heartbeat("ann", (QUOTE, "IBM"))
    work(core, database_url, calls=2)
    error = core.one("SELECT error FROM pricing.collector_call_log WHERE provider = 'yahoo' AND outcome = 'failed'")
    assert error == "yahoo answered 429: Edge: Too Many Requests."
    assert OF_SPEED in " ".join(cli("price", "why", "IBM", "--type", QUOTE).stdout.split())
    assert "User-Agent" not in cli("status").stdout
    assert cli("provider", "use", "yahoo", "--check", sandbox="false").error == (
        "yahoo answered 429: Edge: Too Many Requests. Nothing has changed."
    )
