"""Resources: the database, the rate-limited clients, the allowances; and no secret in what Dagster keeps."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import dagster as dg
import pytest
from dagster._config import ConfigType
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value
from sqlalchemy import Engine, make_url

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.defs import resources
from pricing_pipeline.defs.resources import Allowances, PricingDatabase, Providers
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import KeyRefused
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.dagster import Stage
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox

CANARY = "canary-0123456789abcdef"


@pytest.fixture
def password(database_url: str) -> str:
    return str(make_url(database_url).password)


def kept(stage: Stage, run: dg.ExecuteInProcessResult) -> str:
    """All that Dagster keeps of a run: events, tags, configuration."""
    logs = [serialize_value(entry) for entry in stage.instance.all_logs(run.run_id)]
    return "\n".join([*logs, serialize_value(stage.instance.get_run_by_id(run.run_id))])


def test_g4_ticks_that_begin_at_once_share_one_engine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    is_second_here = Event()

    def slow(url: str, *, pool_size: int, setting: str) -> Engine:
        made.append(url)
        if len(made) == 2:
            is_second_here.set()
        is_second_here.wait(0.2)  # time enough for a second one, if nothing keeps it out
        return make_engine(url, pool_size=pool_size, setting=setting)

    monkeypatch.setattr(resources, "make_engine", slow)
    monkeypatch.setenv("PRICING_DATABASE_URL", "postgresql://a@127.0.0.1/at_once")
    database = PricingDatabase()
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: database.engine, range(2))
    assert one is other
    assert len(made) == 1


@pytest.mark.own_database
def test_g4_ticks_and_runs_of_a_process_share_one_engine(stage: Stage, core: Core) -> None:
    assert PricingDatabase().engine is PricingDatabase().engine
    core.engine.dispose()
    for _ in range(3):
        for sensor in ("refresh_watched", "report_prices", "follow_registry"):
            stage.tick(sensor)
    connections = core.one(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert connections == 1


def test_g4_each_active_provider_has_a_client_that_is_asked_where_the_settings_say(
    stage: Stage, core: Core, sandbox: RunningSandbox, database_url: str
) -> None:
    providers = Providers(PricingDatabase())
    with providers.clients() as clients:
        assert {name: client.base_url for name, client in clients.items()} == {
            name: f"{sandbox.url}/{name}" for name in (TWELVEDATA, MFAPI, "yahoo", "fmp", "uex", "octo", "headout")
        }
        answer = clients[TWELVEDATA].fetch(Fetcher.QUOTE, ["AAPL"]).answer
        assert [observation.symbol for observation in answer.observations] == ["AAPL"]
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'mfapi'")
    core.rows("INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('unheard_of', 'http://x')")
    with providers.clients() as clients:
        assert clients.keys() == {TWELVEDATA, "yahoo", "fmp", "uex", "octo", "headout"}


def test_g4_without_the_sandbox_the_real_service_is_meant_and_asked_with_a_key_only(
    environment: None, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_SANDBOX", "false")
    monkeypatch.delenv("PRICING_TWELVEDATA_API_KEY", raising=False)
    providers = Providers(PricingDatabase())
    with (
        providers.clients() as clients,
        pytest.raises(KeyRefused, match="PRICING_TWELVEDATA_API_KEY"),
    ):
        clients[TWELVEDATA].fetch(Fetcher.QUOTE, ["AAPL"])
    monkeypatch.setenv("PRICING_TWELVEDATA_API_KEY", "a-key-that-is-no-key")
    with providers.clients() as clients:
        assert clients[TWELVEDATA].base_url == "https://api.twelvedata.com"


def test_g4_allowances_tell_what_calls_have_left_of_limit_and_quota(
    environment: None, core: Core, database_url: str
) -> None:
    allowances = Allowances(PricingDatabase())
    before = allowances.now()[TWELVEDATA]
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.settle(core.claim_one(), wire_bytes=5_000)
    after = allowances.now()[TWELVEDATA]
    assert before.units_left - after.units_left == 2
    assert before.quota_left_bytes - after.quota_left_bytes == 5_000
    assert allowances.now().keys() == {TWELVEDATA, MFAPI, "yahoo", "fmp", "uex", "octo", "headout"}


def places_of_values(config: ConfigType, path: str = "") -> Iterator[str]:
    """The path of each value that a run's config may set."""
    fields = getattr(config, "fields", None)
    if fields is None:
        yield path
    for name, field in (fields or {}).items():
        yield from places_of_values(field.config_type, f"{path}.{name}" if path else name)


def test_g4_a_run_cannot_be_pointed_elsewhere(stage: Stage) -> None:
    """Its config has no address and no secret: who may start a run spends no key outside of our limits."""
    for job in stage.repository.get_all_jobs():
        places = set(places_of_values(job.run_config_schema.config_type))
        ours = {place for place in places if place.startswith(("ops.", "resources."))}
        assert {place.rpartition(".")[2] for place in ours} <= {"config", "symbols", "from_day", "to_day"}
    elsewhere = {"database": {"config": {"url": "postgresql://thief@127.0.0.1/loot"}}}
    with pytest.raises(dg.DagsterInvalidConfigError, match='unexpected config entry "url"'):
        dg.validate_run_config(stage.definitions.resolve_implicit_global_asset_job_def(), {"resources": elsewhere})


def test_g4_no_resource_shows_its_password(stage: Stage, database_url: str, password: str) -> None:
    database = PricingDatabase()
    for resource in (database, Providers(database), Allowances(database)):
        assert password not in f"{resource} {resource!r}"


def test_g4_what_the_ui_is_told_of_our_definitions_holds_no_password(stage: Stage, password: str) -> None:
    told = serialize_value(RepositorySnap.from_def(stage.repository))
    assert password not in told
    assert "The pricing database of the settings" in told


def test_g4_a_run_that_fails_deep_in_the_database_betrays_no_password(stage: Stage, core: Core, password: str) -> None:
    core.rows("DROP FUNCTION pricing.plan_backfill")
    run = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01", raise_on_error=False)
    assert not run.success
    events = kept(stage, run)
    assert "pricing.plan_backfill" in events
    assert password not in events


def test_g4_a_run_without_a_database_betrays_no_password(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
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
    with running_sandbox(key=CANARY) as service:
        core.rows(
            "UPDATE pricing.data_collectors SET base_url = :url WHERE provider = 'twelvedata'",
            url=service.twelvedata_url,
        )
        monkeypatch.setenv("PRICING_SANDBOX", "false")
        monkeypatch.setenv("PRICING_TWELVEDATA_API_KEY", CANARY)
        good = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01")
        assert good.success
        assert [call["units"] for call in service.calls()] == [5], "all five in one call"
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
