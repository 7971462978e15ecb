"""Projects of others that include our definitions: their runs, drains and ticks.

No postponed annotations here: Dagster reads annotations as they are defined.
"""

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.code_pointer import CodePointer
from dagster._core.definitions.reconstruct import (
    initialize_repository_def_from_pointer,
    reconstruct_repository_def_from_pointer,
)

from pricing_pipeline.dagster import PricingPipelineComponent
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import (
    RANGE_END,
    RANGE_START,
    ROOT,
    an_empty_instance,
    newly_loading,
)
from pricing_pipeline_tests.orchestration.test_embedding import (
    COMPONENT,
    NOWHERE,
    a_project,
    asked,
    embedded,
    names,
    second,
)
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

__all__ = ["asked", "second"]

MONTH = "2010-03-01"
DAYS = 23


def tick(definitions: dg.Definitions, instance: dg.DagsterInstance, sensor: str, cursor: str | None = None) -> Any:
    """Evaluate a sensor; nothing of its outcome is carried out."""
    repository = definitions.get_repository_def()
    with dg.build_sensor_context(
        instance=instance,
        cursor=cursor,
        repository_def=repository,
        sensor_name=sensor,
        resources=repository.get_top_level_resources(),
    ) as context:
        return repository.get_sensor_def(sensor).evaluate_tick(context)


def backfill(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *prefix: str, month: str = MONTH
) -> dg.ExecuteInProcessResult:
    """A run of Dagster's own job for one month, as people start it."""
    return definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey([*prefix, "price_history", DAILY])],
        tags={RANGE_START: month, RANGE_END: month},
        raise_on_error=False,
    )


SECTION = re.search(
    r"^## Put it into your project\n(.*?)(?=^## |\Z)", (ROOT / "docs/dagster.md").read_text(), re.M | re.S
)


def examples(language: str) -> list[str]:
    """The blocks of the page's section in this language."""
    assert SECTION is not None
    return re.findall(rf"^```{language}\n(.*?)^```$", SECTION[1], re.M | re.S)


def test_g8_what_the_page_says_loads(second: str, tmp_path: Path) -> None:
    known: dict[str, Any] = {}
    loaded = []
    for example in examples("python"):
        with newly_loading():
            exec(example, known)
        assert [each for each in known.values() if isinstance(each, dg.Definitions)] == [known["defs"]]
        loaded.append({key.split("/")[0] for key in names(known["defs"])["assets"]})
    assert loaded == [{"prices"}, {"us", "eu"}]
    component, instance = map(yaml.safe_load, examples("yaml"))
    assert component["type"] == COMPONENT
    PricingPipelineComponent.resolve_from_dict(component["attributes"])
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(instance))
    with dg.DagsterInstance.from_config(str(tmp_path)) as theirs:
        assert theirs.freshness_enabled
        assert theirs.run_monitoring_enabled
        assert theirs.get_sensor_settings()["num_workers"] == 4


def test_g8_drains_and_ticks_work_under_a_prefix_in_a_project_of_others(
    asked: RunningSandbox, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_EXPORT_URL", "/tmp/nothing-is-written-there")
    merged = dg.Definitions.merge(embedded(prefix="prices"), a_project())
    core.heartbeat("ann", (FX, "EUR/USD"), (QUOTE, "AAPL"))
    instance = an_empty_instance()
    (request,) = tick(merged, instance, "prices_refresh_watched").run_requests
    run = merged.resolve_job_def("prices_refresh").execute_in_process(instance=instance, tags=request.tags)
    assert run.success
    assert core.rows("SELECT data_type FROM pricing.latest_prices ORDER BY 1") == [(QUOTE,), (FX,)]
    for name in (QUOTE, FX):
        seen = instance.fetch_observations(dg.AssetKey(["prices", "latest_price", name]), limit=9).records
        assert seen
    assert {key.path[0] for key in instance.all_asset_keys()} == {"prices"}
    for sensor in sorted(names(merged)["sensors"]):
        told = tick(merged, instance, sensor)
        keys = {event.asset_key.path[0] for event in told.asset_events}
        assert keys <= {"prices"}, sensor
    fresh = tick(merged, instance, "prices_report_prices")
    assert fresh.asset_events
    theirs = merged.resolve_job_def("refresh").execute_in_process(instance=instance)
    assert theirs.output_for_node("orders") == "the shop's"


def test_g8_two_databases_stand_in_one_project(asked: RunningSandbox, core: Core, second: str) -> None:
    merged = dg.Definitions.merge(embedded(prefix="us"), embedded(prefix="eu", variables="EU_PRICING_"), a_project())
    dg.Definitions.validate_loadable(merged)
    instance = an_empty_instance()
    assert backfill(merged, instance, "eu").success
    assert core.one("SELECT count(*) FROM pricing.price_history") == 0
    assert backfill(merged, instance, "us", month="2010-04-01").success
    bound = merged.get_repository_def().get_top_level_resources()
    mine, other = (bound[f"{name}_database"].resource_fn(None) for name in ("us", "eu"))
    months = "SELECT DISTINCT to_char(observed_at, 'YYYY-MM-01') FROM pricing.price_history"
    for database, month in ((mine, "2010-04-01"), (other, MONTH)):
        with database.engine.connect() as connection:
            assert connection.exec_driver_sql(months).scalars().all() == [month]
    assert (mine.settings.max_drain_seconds, other.settings.max_drain_seconds) == (5, 6)
    told = [tick(merged, instance, f"{name}_refresh_watched").skip_message for name in ("us", "eu")]
    assert all("nobody watches" in str(one) for one in told)
    for database in (mine, other):
        database.engine.dispose()


LOCATION = """
import dagster as dg
from pricing_pipeline.dagster import build_defs

defs = dg.Definitions.merge(build_defs(prefix="prices"), dg.Definitions(executor=dg.in_process_executor))
"""


def test_g8_a_run_worker_has_the_definitions_of_a_location_that_is_not_ours(
    asked: RunningSandbox, core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A type is retired while its run starts, and the worker is on a machine without a copy and without a database."""
    file = tmp_path / "location.py"
    file.write_text(LOCATION)
    pointer = CodePointer.from_python_file(str(file), "defs", working_directory=None)
    with newly_loading():
        location = initialize_repository_def_from_pointer(pointer)
        core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")
        with monkeypatch.context() as outage:
            outage.setenv("PRICING_DATABASE_URL", NOWHERE)
            (tmp_path / "prices_registry.json").unlink()
            handed_on = location.repository_load_data
            remote = reconstruct_repository_def_from_pointer(pointer, handed_on)
        worker = reconstruct_repository_def_from_pointer(pointer, handed_on)
    assert handed_on is not None
    keys = location.asset_graph.get_all_asset_keys()
    assert dg.AssetKey(["prices", "price_history", NAV]) in keys
    assert worker.asset_graph.get_all_asset_keys() == remote.asset_graph.get_all_asset_keys() == keys
    instance = an_empty_instance()
    for name in (DAILY, NAV):
        worker.get_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            partition_key=MONTH,
            asset_selection=[dg.AssetKey(["prices", "price_history", name])],
            raise_on_error=False,
        )
    stored = "SELECT count(*) FROM pricing.price_history WHERE data_type = 'equity_daily'"
    assert core.one(stored) == 4 * DAYS
