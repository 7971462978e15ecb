"""A database belongs to the sandbox or to the real providers, for every process that works with it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.keys.clients import open_clients
from pricing_pipeline.registry.prices_from import require_prices_from
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.core import Core


def test_c3_the_first_worker_decides_and_one_that_asks_others_is_refused(core: Core, tmp_path: Path) -> None:
    """Hosts that share a database share no home that would remember it."""
    sandbox, real = Settings(home=tmp_path, sandbox=True), Settings(home=tmp_path / "other", sandbox=False)
    with open_clients(real, core.engine):
        pass
    with open_clients(real, core.engine):
        pass
    with pytest.raises(SettingsError) as refused, open_clients(sandbox, core.engine):
        pass
    assert str(refused.value) == (
        "the prices of this database come from the real providers, and PRICING_SANDBOX=true asks for the sandbox; "
        "their prices must not mix. Set PRICING_DATABASE_URL to another database, or PRICING_SANDBOX as it was."
    )


def test_c3_of_workers_that_start_at_once_those_of_one_kind_go_on(core: Core, tmp_path: Path) -> None:
    kinds = [Settings(home=tmp_path, sandbox=is_sandbox) for is_sandbox in (True, False)] * 4

    def is_served(settings: Settings) -> bool:
        try:
            require_prices_from(core.engine, settings)
        except SettingsError:
            return False
        return True

    with ThreadPoolExecutor(len(kinds)) as pool:
        served = list(pool.map(is_served, kinds))
    decided = core.one("SELECT prices_from FROM pricing.registry_state")
    assert served == [("sandbox" if settings.sandbox else "real providers") == decided for settings in kinds]


def test_c3_a_decision_counts_as_no_change_of_the_registry(core: Core, tmp_path: Path) -> None:
    """A change would have Dagster load the code location anew."""
    before = core.one("SELECT version FROM pricing.registry_state")
    require_prices_from(core.engine, Settings(home=tmp_path))
    assert core.one("SELECT version FROM pricing.registry_state") == before
