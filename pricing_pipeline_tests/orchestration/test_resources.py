"""G4: resources give a run its provider clients, and tell what limits and quotas still allow."""

from __future__ import annotations

import pytest

from pricing_pipeline.defs.resources import Allowances, PricingDatabase, Providers
from pricing_pipeline.domain import Fetcher
from pricing_pipeline.errors import SettingsError
from pricing_pipeline_tests.fix_core import MFAPI, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fix_dagster import Stage
from pricing_pipeline_tests.sandbox_server import RunningSandbox


def test_g4_the_definitions_have_the_resources_that_runs_ask_for(stage: Stage) -> None:
    assert set(stage.repository.get_top_level_resources()) == {"database", "providers", "allowances"}


def test_g4_each_active_provider_has_a_client_that_is_asked_where_the_settings_say(
    stage: Stage, core: Core, sandbox: RunningSandbox, database_url: str
) -> None:
    providers = Providers(database=PricingDatabase(url=database_url))
    with providers.clients() as clients:
        assert {name: client.base_url for name, client in clients.items()} == {
            name: f"{sandbox.url}/{name}" for name in (TWELVEDATA, MFAPI)
        }
        answer = clients[TWELVEDATA].fetch(Fetcher.QUOTE, ["AAPL"]).answer
        assert [observation.symbol for observation in answer.observations] == ["AAPL"]
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'mfapi'")
    with providers.clients() as clients:
        assert clients.keys() == {TWELVEDATA}


def test_g4_without_the_sandbox_the_real_service_is_meant_and_needs_its_key(
    environment: None, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_SANDBOX", "false")
    monkeypatch.delenv("PRICING_TWELVEDATA_API_KEY", raising=False)
    providers = Providers(database=PricingDatabase(url=database_url))
    with pytest.raises(SettingsError, match="PRICING_TWELVEDATA_API_KEY"), providers.clients():
        pass
    monkeypatch.setenv("PRICING_TWELVEDATA_API_KEY", "a-key-that-is-no-key")
    with providers.clients() as clients:
        assert clients[TWELVEDATA].base_url == "https://api.twelvedata.com"


def test_g4_allowances_tell_what_calls_have_left_of_limit_and_quota(
    environment: None, core: Core, database_url: str
) -> None:
    allowances = Allowances(database=PricingDatabase(url=database_url))
    before = allowances.now()[TWELVEDATA]
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.settle(core.claim_one(), wire_bytes=5_000)
    after = allowances.now()[TWELVEDATA]
    assert before.units_left - after.units_left == 2
    assert before.quota_left_bytes - after.quota_left_bytes == 5_000
    assert allowances.now().keys() == {TWELVEDATA, MFAPI}
