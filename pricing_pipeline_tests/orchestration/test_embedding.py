"""The definitions in somebody else's project: beside theirs, under a prefix, twice, and as a component (G8).

No postponed annotations here: Dagster reads annotations as they are defined.
"""

import importlib.metadata
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest
import yaml
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.testing import create_defs_folder_sandbox

from pricing_pipeline.dagster import PricingPipelineComponent, build_defs
from pricing_pipeline.defs.naming import Naming
from pricing_pipeline.defs.ours import Ours
from pricing_pipeline.defs.pruning import KEEP_OTHERS, prune_runs
from pricing_pipeline.errors import PricingError, SettingsError
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.fixtures.dagster import (
    a_run,
    an_empty_instance,
    newly_loading,
)
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

COMPONENT = "pricing_pipeline.dagster.PricingPipelineComponent"
NOWHERE = "postgresql://worker:none@127.0.0.1:9/pricing"


class Refusing(dg.IOManager):
    """The IO manager of the project, for its own assets only."""

    def __init__(self) -> None:
        self.stored: list[dg.AssetKey] = []

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        if context.asset_key.path[0] != "orders":
            raise AssertionError(f"{context.asset_key} went through the project's IO manager")
        self.stored.append(context.asset_key)

    def load_input(self, context: dg.InputContext) -> object:
        raise NotImplementedError


def a_project() -> dg.Definitions:
    """What a user has already: an asset, an IO manager, an executor, and a resource with a name like one of ours."""

    @dg.asset(required_resource_keys={"database"})
    def orders(context: dg.AssetExecutionContext) -> str:
        return str(context.resources.database)

    return dg.Definitions(
        assets=[orders],
        jobs=[dg.define_asset_job("refresh", [orders], executor_def=dg.in_process_executor)],
        resources={
            "io_manager": Refusing(),
            "database": "the shop's",
            "providers": "theirs",
            "allowances": 3,
        },
        executor=dg.multiprocess_executor,
    )


def embedded(**options: Any) -> dg.Definitions:
    """Our definitions, loaded as by a new process."""
    with newly_loading():
        return build_defs(**options)


def names(definitions: dg.Definitions) -> dict[str, set[str]]:
    """Whatever Dagster tells apart by its name, by kind."""
    repository = definitions.get_repository_def()
    graph = repository.asset_graph
    return {
        "jobs": {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")},
        "sensors": {sensor.name for sensor in repository.sensor_defs},
        "schedules": {schedule.name for schedule in repository.schedule_defs},
        "resources": set(repository.get_top_level_resources()),
        "groups": {graph.get(key).group_name or "" for key in graph.get_all_asset_keys()},
        "ops": {
            op.name
            for definition in repository.assets_defs_by_key.values()
            if definition.is_executable
            for op in [definition.node_def]
        },
        "assets": {key.to_user_string() for key in graph.get_all_asset_keys()},
        "checks": {key.asset_key.to_user_string() for key in graph.asset_check_keys},
    }


@pytest.fixture
def asked(environment: None, sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch) -> RunningSandbox:
    """The sandbox that the settings name."""
    monkeypatch.setenv("PRICING_SANDBOX_URL", sandbox.url)
    return sandbox


@pytest.fixture
def second(
    environment: None,
    server: TestServer,
    template: str,
    asked: RunningSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """The owner's URL of a second pricing database, whose settings begin with EU_PRICING_."""
    name = f"pricing_test_{uuid4().hex[:16]}"
    server.create(name, template)
    monkeypatch.setenv("EU_PRICING_DATABASE_URL", server.url(name))
    monkeypatch.setenv("EU_PRICING_SANDBOX_URL", asked.url)
    monkeypatch.setenv("EU_PRICING_MAX_DRAIN_SECONDS", "6")
    yield server.url_of_owner(name)
    server.drop(name)


@pytest.mark.parametrize("prefix", [None, ["eu", "prices"]])
def test_g8_it_merges_with_a_project_that_has_all_that_it_has(environment: None, prefix: Any) -> None:
    project = a_project() if prefix else dg.Definitions(executor=dg.multiprocess_executor)
    merged = dg.Definitions.merge(embedded(prefix=prefix), project)
    dg.Definitions.validate_loadable(merged)
    assert merged.executor is dg.multiprocess_executor
    if prefix:
        assert merged.resources is not None
        assert merged.resources["database"] == "the shop's"


def test_g8_every_name_begins_with_the_prefix(environment: None) -> None:
    plain, prefixed = names(embedded()), names(embedded(prefix="eu/prices"))
    for kind in ("jobs", "sensors", "schedules", "groups", "ops", "resources"):
        assert prefixed[kind] == {f"eu_prices_{name}" for name in plain[kind]} - {"eu_prices_io_manager"}, kind
    # One op of the lists of commodities is named by Dagster, by its key.
    for kind in ("assets", "checks"):
        assert prefixed[kind] == {f"eu/prices/{name}" for name in plain[kind]}, kind
    assert plain["resources"] == {"database", "providers", "allowances"}


def test_g8_what_the_ui_says_names_things_as_they_are_called_there(environment: None, core: Core) -> None:
    core.rows("UPDATE pricing.data_type_registry SET refresh_schedule = '0 9 * * *' WHERE data_type = 'mf_nav'")
    repository = embedded(prefix="eu").get_repository_def()
    called = {one.name for one in (*repository.sensor_defs, *repository.schedule_defs, *repository.get_all_jobs())}
    said = [one.description or "" for one in (*repository.sensor_defs, *repository.get_all_jobs())]
    for key in repository.asset_graph.get_all_asset_keys():
        node = repository.asset_graph.get(key)
        said += [node.description or "", str(node.metadata.get("schedule", ""))]
    words = {word for text in said for word in re.findall(r"\w+", text.replace("\\", ""))}
    assert {f"eu_{word}" for word in words} & called == set()
    assert words & called >= {
        "eu_refresh_watched",
        "eu_report_prices",
        "eu_mf_nav_schedule",
        "eu_check_prices",
    }


def test_g8_one_home_keeps_the_copies_of_two_registries(
    core: Core, second: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EU_PRICING_HOME", str(tmp_path))
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")
    before = [names(embedded(prefix="us")), names(embedded(prefix="eu", variables="EU_PRICING_"))]
    for name in ("PRICING_DATABASE_URL", "EU_PRICING_DATABASE_URL"):
        monkeypatch.setenv(name, NOWHERE)
    after = [names(embedded(prefix="us")), names(embedded(prefix="eu", variables="EU_PRICING_"))]
    assert after == before
    assert "us/price_history/mf_nav" not in after[0]["assets"]
    assert "eu/price_history/mf_nav" in after[1]["assets"]


def test_g8_our_upkeep_leaves_a_neighbour_in_the_same_location_alone(
    environment: None, core: Core, clock: Clock
) -> None:
    instance = an_empty_instance()
    label = "__repository__@pricing_pipeline"
    ours, theirs = (
        Ours(label, (DAILY,), (dg.AssetKey([name, "document", "news"]),), naming=Naming.under(name))
        for name in ("us", "eu")
    )
    runs = {name: a_run(instance, dg.DagsterRunStatus.SUCCESS, job=f"{name}_refresh") for name in ("us", "eu")}
    chosen = a_run(
        instance,
        dg.DagsterRunStatus.SUCCESS,
        job="__ASSET_JOB",
        asset_selection=frozenset([dg.AssetKey(["eu", "price_history", DAILY])]),
    )
    assert [ours.has(runs["us"]), ours.has(runs["eu"]), ours.has(chosen)] == [True, False, False]
    assert theirs.has(chosen)
    later = datetime.now(UTC) + KEEP_OTHERS + timedelta(days=1)
    assert prune_runs(instance, ours, core.engine, later) == 1
    assert {run.run_id for run in instance.get_runs()} == {runs["eu"].run_id, chosen.run_id}


def test_g8_without_a_database_and_a_copy_the_project_loads_and_waits_for_one(
    environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_DATABASE_URL", NOWHERE)
    merged = dg.Definitions.merge(embedded(prefix="prices"), a_project())
    dg.Definitions.validate_loadable(merged)
    assert names(merged)["sensors"] == {"prices_follow_registry"}


def test_g8_a_run_cannot_point_an_embedded_pipeline_elsewhere(environment: None) -> None:
    elsewhere = {"prices_database": {"config": {"url": "postgresql://thief@127.0.0.1/loot"}}}
    with pytest.raises(dg.DagsterInvalidConfigError, match='unexpected config entry "url"'):
        dg.validate_run_config(
            embedded(prefix="prices").resolve_implicit_global_asset_job_def(), {"resources": elsewhere}
        )


def test_g8_a_prefix_that_dagster_could_not_use_is_refused(environment: None) -> None:
    refused: list[Any] = ["", "eu-prices", "eu/", "/eu", "eu//prices", "9lives", ["eu", ""], ["a/b"], "ü", [3]]
    for prefix in refused:
        with pytest.raises(SettingsError, match=r'The prefix .* cannot be used .*such as "prices"'):
            build_defs(prefix=prefix)


def test_g8_the_prefix_of_the_settings_counts_and_must_be_the_one_of_the_code(
    environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_ASSET_PREFIX", "eu/prices")
    for prefix in (None, "eu/prices", ["eu", "prices"]):
        assert "eu/prices/price_history/equity_daily" in names(embedded(prefix=prefix))["assets"]
    with pytest.raises(SettingsError, match="is not the one of the settings, 'eu/prices'"):
        build_defs(prefix="prices")
    with monkeypatch.context() as wrong:
        wrong.setenv("PRICING_ASSET_PREFIX", "eu-prices")
        with pytest.raises(SettingsError, match=r"PRICING_ASSET_PREFIX='eu-prices': .*such as prices or eu/prices"):
            build_defs()


def test_g8_a_beginning_of_variables_that_cannot_be_is_refused(environment: None) -> None:
    refused: list[Any] = ["EU_PRICING", "eu_pricing_", "PRICING_EU_", "", "EU PRICING_", None]
    for variables in refused:
        with pytest.raises(SettingsError, match="Names of variables cannot begin with"):
            build_defs(variables=variables)


def test_g8_a_mistake_in_other_variables_is_told_by_their_names(
    environment: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told = []
    for name, value in {
        "MAX_DRAINS": "many",
        "ASSET_PREFIX": "us",
        "DATABASE_URL": NOWHERE,
        "HOME": "/nowhere",
    }.items():
        with monkeypatch.context() as wrong:
            wrong.setenv(f"EU_PRICING_{name}", value)
            caplog.clear()
            try:
                definitions = embedded(prefix="eu", variables="EU_PRICING_")
                told.append(caplog.text)  # it loads without a database
                database = definitions.get_repository_def().get_top_level_resources()["eu_database"].resource_fn(None)
                with database.engine.connect():
                    raise AssertionError
            except PricingError as error:
                told.append(str(error))
    assert len(told) == 6
    for text in told:
        assert re.findall(r"\b\w*PRICING_[A-Z_]+", text), text
        assert not re.search(r"\bPRICING_", text), text


def test_g8_the_component_is_found_by_dagsters_tools() -> None:
    (entry,) = importlib.metadata.entry_points(group="dagster_dg_cli.registry_modules", name="pricing_pipeline")
    assert entry.load().PricingPipelineComponent is PricingPipelineComponent
    fields = PricingPipelineComponent.get_model_cls().model_json_schema()["properties"]
    assert fields.keys() == {"prefix", "variables"}
    assert all(field["description"] for field in fields.values())


# What Dagster notes of each component's file.
@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_g8_the_component_loads_from_yaml(core: Core, second: str) -> None:
    with create_defs_folder_sandbox() as project:
        path = project.scaffold_component(PricingPipelineComponent, defs_path="prices")
        for name, variables in (("us", "PRICING_"), ("eu", "EU_PRICING_")):
            folder = path.parent / name
            folder.mkdir()
            attributes = {"prefix": [name, "prices"], "variables": variables}
            (folder / "defs.yaml").write_text(yaml.safe_dump({"type": COMPONENT, "attributes": attributes}))
        (path / "defs.yaml").unlink()
        with newly_loading(), project.build_all_defs() as definitions:
            dg.Definitions.validate_loadable(definitions)
            found = names(definitions)["assets"]
    assert {name.split("/")[0] for name in found} == {"us", "eu"}
    assert {"us/prices/active_subscriptions", "eu/prices/latest_price/fx_rate"} <= found


def test_g8_a_component_must_not_have_a_database(environment: None) -> None:
    with create_defs_folder_sandbox() as project:
        path = project.scaffold_component(PricingPipelineComponent, defs_path="prices")
        attributes = {"database_url": "postgresql://worker@db.example.com/prices"}
        (path / "defs.yaml").write_text(yaml.safe_dump({"type": COMPONENT, "attributes": attributes}))
        with pytest.raises(ComponentTreeException) as caught, project.build_all_defs():
            pass
    causes: list[BaseException] = [caught.value]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    assert "database_url" in "\n".join(map(str, causes))
