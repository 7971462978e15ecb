"""Resources: the database, the rate-limited clients, the allowances; and no secret in what Dagster keeps."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value
from sqlalchemy import make_url

from pricing_pipeline.defs.resources import Allowances, PricingDatabase, Providers
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline_tests.fix_core import DAILY, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fix_dagster import Stage
from pricing_pipeline_tests.sandbox_server import RunningSandbox, running_sandbox

CANARY = "canary-0123456789abcdef"


@pytest.fixture
def password(database_url: str) -> str:
    found = make_url(database_url).password
    if not found:
        pytest.skip("the server given by PRICING_TEST_DATABASE_URL asks for no password")
    return str(found)


def kept(stage: Stage, run: dg.ExecuteInProcessResult) -> str:
    """All that Dagster keeps of a run: events, tags, configuration."""
    logs = [serialize_value(entry) for entry in stage.instance.all_logs(run.run_id)]
    return "\n".join([*logs, serialize_value(stage.instance.get_run_by_id(run.run_id))])


def test_g4_ticks_and_runs_of_a_process_share_one_engine(stage: Stage, core: Core, database_url: str) -> None:
    assert PricingDatabase(url=database_url).engine is PricingDatabase(url=database_url).engine
    assert (
        PricingDatabase(url="postgresql://a@127.0.0.1/b").engine
        is not PricingDatabase(url=database_url).engine
    )
    core.engine.dispose()
    for _ in range(3):
        for sensor in ("refresh_watched", "report_freshness", "follow_registry"):
            stage.tick(sensor)
    connections = core.one(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert connections == 1


def test_g4_clients_are_those_of_the_active_providers(
    stage: Stage, core: Core, database_url: str, sandbox: RunningSandbox
) -> None:
    providers = Providers(database=PricingDatabase(url=database_url))
    with providers.clients() as clients:
        assert set(clients) == {"mfapi", "twelvedata"}
        assert all(isinstance(client, ProviderClient) for client in clients.values())
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'mfapi'")
    core.rows("INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('unheard_of', 'http://x')")
    with providers.clients() as clients:
        assert set(clients) == {"twelvedata"}


def test_g4_allowances_are_what_limits_and_quota_leave(stage: Stage, core: Core, database_url: str) -> None:
    allowances = Allowances(database=PricingDatabase(url=database_url))
    before = allowances.now()[TWELVEDATA]
    assert (before.units_left, before.used_bytes) == (2000, 0)
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.settle(core.claim_one(), wire_bytes=1234)
    after = allowances.now()[TWELVEDATA]
    assert (after.units_left, after.used_bytes) == (1998, 1234)
    assert after.quota_left_bytes == before.quota_left_bytes - 1234


def test_g4_no_resource_shows_its_password(stage: Stage, database_url: str, password: str) -> None:
    database = PricingDatabase(url=database_url)
    for resource in (database, Providers(database=database), Allowances(database=database)):
        assert password not in f"{resource} {resource!r}"


def test_g4_what_the_ui_is_told_of_our_definitions_holds_no_password(stage: Stage, password: str) -> None:
    told = serialize_value(RepositorySnap.from_def(stage.repository))
    assert password not in told
    assert "PRICING_DATABASE_URL" in told


def test_g4_a_run_that_fails_deep_in_the_database_betrays_no_password(
    stage: Stage, core: Core, password: str
) -> None:
    core.rows("DROP FUNCTION pricing.plan_backfill")
    run = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01", raise_on_error=False)
    assert not run.success
    events = kept(stage, run)
    assert "pricing.plan_backfill" in events
    assert password not in events


def test_g4_a_run_without_a_database_betrays_no_password(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_DATABASE_URL", f"postgresql://worker:{CANARY}@127.0.0.1:9/pricing")
    run = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01", raise_on_error=False)
    assert not run.success
    events = kept(stage, run)
    assert "the database at postgresql+psycopg://worker:***@127.0.0.1:9/pricing does not answer" in events
    assert CANARY not in events


def test_g4_the_real_services_get_the_key_and_nobody_else_does(
    stage: Stage, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox stands for the real service: its address is in data_collectors, its key is a setting."""
    with running_sandbox(twelvedata_key=CANARY) as service:
        core.rows(
            "UPDATE pricing.data_collectors SET base_url = :url WHERE provider = 'twelvedata'",
            url=service.twelvedata_url,
        )
        monkeypatch.setenv("PRICING_SANDBOX", "false")
        monkeypatch.setenv("PRICING_TWELVEDATA_API_KEY", CANARY)
        good = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01")
        assert good.success
        assert len(service.calls()) == 5
        # What the provider echoes of the key, and what it refuses, must not come back with it.
        core.rows(
            "INSERT INTO pricing.instruments (asset_class, symbol, verified_at)"
            " VALUES ('equity', 'NOPE', pricing.clock())"
        )
        bad = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01", raise_on_error=False)
        assert not bad.success
    assert CANARY not in kept(stage, good) + kept(stage, bad)
    assert core.one("SELECT count(*) FROM pricing.collector_call_log c WHERE c::text LIKE '%canary%'") == 0


def test_g4_a_missing_key_is_said_in_a_sentence(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRICING_SANDBOX", "false")
    run = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01", raise_on_error=False)
    assert not run.success
    assert "PRICING_TWELVEDATA_API_KEY" in kept(stage, run)
