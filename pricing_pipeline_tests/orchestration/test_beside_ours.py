"""The example of docs/dagster.md: a code location of others beside ours, whose runs are the real changes of prices.

What the pipeline tells Dagster is told here by hand: news as a materialization with a new data version, work as an
observation, a heartbeat of freshness as a materialization of the asset behind the prices.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import AssetMaterializationPlannedData, StepMaterializationData
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.test_utils import create_run_for_test, create_test_daemon_workspace_context, freeze_time
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget

from pricing_pipeline.defs.naming import PLAIN
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, midnight
from pricing_pipeline_tests.fixtures.dagster import ORIGIN, Stage, an_empty_instance, an_instance, newly_loading
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.fixtures.logins import a_login
from pricing_pipeline_tests.support.pages import ROOT

EXAMPLE = Path(ROOT) / "docs/examples/dagster_location/definitions.py"
VERSION = "dagster/data_version"
BEAT = dg.AssetKey(["freshness", QUOTE])
MONTHS = ["2020-01-01", "2020-02-01", "2020-03-01"]

pytestmark = [
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]


@pytest.fixture
def theirs(server: TestServer, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example, loaded as Dagster loads a file, with a login that may only read."""
    with a_login(server, database_url, "pricing_reader") as (_, url):
        monkeypatch.setenv("PRICING_READER_URL", url)
        spec = spec_from_file_location("theirs", EXAMPLE)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def test_g8_the_example_imports_nothing_that_is_private() -> None:
    imported = set()
    for node in ast.walk(ast.parse(EXAMPLE.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    assert imported == {"dagster", "decimal", "pandas", "pricing_pipeline.dagster"}


def test_g8_the_example_makes_what_it_says(core: Core, theirs: ModuleType) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh(price="146.5500001")
    for day, amount in ((date(2020, 1, 30), 100), (date(2020, 1, 31), 12345), (date(2020, 2, 3), 7)):
        core.rows(
            "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider, call_id,"
            " fetched_at) VALUES ('equity_daily', 'AAPL', :at, :amount, 3, 'twelvedata', 1, :at)",
            at=midnight(day),
            amount=amount,
        )
    definitions = dg.Definitions.merge(theirs.defs, dg.Definitions(resources={"io_manager": dg.mem_io_manager}))
    everything = definitions.resolve_implicit_global_asset_job_def()
    instance = an_empty_instance()
    value = everything.execute_in_process(instance=instance, asset_selection=[dg.AssetKey("portfolio_value")])
    (made,) = value.asset_materializations_for_node("portfolio_value")
    assert made.metadata["value"].value == str(14 * Decimal("146.5500001"))
    (check,) = value.get_asset_check_evaluations()
    assert check.passed
    month = everything.execute_in_process(
        instance=instance, asset_selection=[dg.AssetKey("month_ends")], partition_key="2020-01-01"
    )
    (row,) = month.output_for_node("month_ends").itertuples()
    assert (row.symbol, row.close) == ("AAPL", Decimal("12.345"))
    assert definitions.resolve_job_def("tell").execute_in_process(instance=instance).success


def test_g8_one_asset_graph_has_both_code_locations(
    environment: None, core: Core, theirs: ModuleType, tmp_path: Path
) -> None:
    """Our history is materialized by ours alone, although the example names it, too."""
    origin = InProcessCodeLocationOrigin(
        LoadableTargetOrigin(python_file=str(EXAMPLE), working_directory=str(tmp_path)),
        location_name="theirs",
    )
    with (
        newly_loading(),
        an_instance(tmp_path / "dagster") as instance,
        create_test_daemon_workspace_context(InProcessWorkspaceLoadTarget([ORIGIN, origin]), instance) as process,
    ):
        context = process.create_request_context()
        assert [entry.load_error for entry in context.get_code_location_entries().values()] == [None, None]
        graph = context.asset_graph
        bars = graph.get(PLAIN.history_key(DAILY))
        assert bars.is_materializable
        assert bars.resolve_to_singular_repo_scoped_node().repository_handle.location_name == "pricing_pipeline"
        assert bars.child_keys >= {PLAIN.latest_key(DAILY), dg.AssetKey("month_ends")}
        assert graph.get(PLAIN.latest_key(QUOTE)).child_keys >= {dg.AssetKey("portfolio_value")}


class Beside:
    """Ours and theirs as one daemon sees them: what they tell, and which runs it requests."""

    def __init__(self, stage: Stage, theirs: ModuleType) -> None:
        self.instance = stage.instance
        self.theirs = theirs.defs.get_repository_def()
        self.versions: Counter[str] = Counter()
        known = {spec.key for spec in stage.definitions.resolve_all_asset_specs()}
        condition = dg.AutomationCondition
        followers = {
            "any_deps_updated": condition.any_deps_updated().since_last_handled(),
            "each_change": theirs.EACH_CHANGE,
            "on_cron": condition.on_cron("0 * * * *"),
        }
        self.graph = dg.Definitions(
            assets=[
                *(stage.definitions.assets or ()),
                *(a for a in theirs.defs.assets if not isinstance(a, dg.AssetSpec) or a.key not in known),
                *(_follower(name, follows) for name, follows in followers.items()),
            ],
            resources={**(stage.definitions.resources or {}), **theirs.defs.resources},
        )
        self.followers = {dg.AssetKey(name) for name in ("month_ends", "portfolio_value", *followers)}
        self.now = datetime(2020, 3, 20, 0, 30, tzinfo=UTC)
        self.cursor: Any = None
        self.sensor_cursor: str | None = None
        assert self.tick() == []
        self.hour()

    def tick(self) -> list[str]:
        """What the conditions and the asset sensor request half a minute later; such runs end before the next tick."""
        self.now += timedelta(seconds=30)
        requested = self.requested()
        for key, partition in requested:
            self.tell(dg.AssetMaterialization(key, partition=partition))
        with freeze_time(self.now):
            context = dg.build_sensor_context(
                instance=self.instance,
                cursor=self.sensor_cursor,
                repository_def=self.theirs,
                sensor_name="on_new_quotes",
            )
            with context:
                data = self.theirs.get_sensor_def("on_new_quotes").evaluate_tick(context)
        self.sensor_cursor = data.cursor or self.sensor_cursor
        names = [f"{key.to_user_string()} {part}" if part else key.to_user_string() for key, part in requested]
        return sorted([*names, *("asset_sensor" for _ in data.run_requests or ())])

    def requested(self) -> list[tuple[dg.AssetKey, str | None]]:
        """Assets, with their months, that the conditions request now."""
        with freeze_time(self.now):
            found = dg.evaluate_automation_conditions(
                self.graph,
                self.instance,
                asset_selection=dg.AssetSelection.assets(*self.followers),
                evaluation_time=self.now,
                cursor=self.cursor,
            )
        self.cursor = found.cursor
        return [(key, part) for key in self.followers for part in found.get_requested_partitions(key)]

    def hour(self) -> None:
        """Let an hour pass; nobody does anything for that."""
        self.now += timedelta(hours=1)
        assert self.tick() == []

    def tell(self, event: dg.AssetMaterialization | dg.AssetObservation) -> None:
        """An event ten seconds after the last evaluation."""
        with freeze_time(self.now + timedelta(seconds=10)):
            self.instance.report_runless_asset_event(event)

    def news(self, key: dg.AssetKey, partition: str | None = None) -> None:
        """A stored value has changed."""
        self.versions[f"{key} {partition}"] += 1
        version = {VERSION: str(self.versions[f"{key} {partition}"])}
        self.tell(dg.AssetMaterialization(key, partition=partition, tags=version))

    def work(self, key: dg.AssetKey, partition: str | None = None) -> None:
        """A drain has fetched something, which confirmed what was stored."""
        self.tell(dg.AssetObservation(key, partition=partition))

    def beat(self) -> None:
        """The sensor says that the prices are fresh."""
        self.tell(dg.AssetMaterialization(BEAT))

    def run(self, asset: dg.AssetKey, partition: str) -> dg.DagsterRun:
        """A run that is on the way to an asset."""
        with freeze_time(self.now):
            run = create_run_for_test(self.instance, asset_selection={asset}, tags={"dagster/partition": partition})
            planned = AssetMaterializationPlannedData(asset, partition=partition)
            self._report(run, "ASSET_MATERIALIZATION_PLANNED", planned)
            self._report(run, "PIPELINE_START")
        return run

    def end(self, run: dg.DagsterRun, asset: dg.AssetKey, partition: str) -> None:
        """The run has made the asset."""
        with freeze_time(self.now + timedelta(seconds=20)):
            made = StepMaterializationData(dg.AssetMaterialization(asset, partition=partition))
            self._report(run, "ASSET_MATERIALIZATION", made)
            self._report(run, "PIPELINE_SUCCESS")

    def _report(self, run: dg.DagsterRun, kind: str, data: Any = None) -> None:
        self.instance.report_dagster_event(dg.DagsterEvent(kind, "job", event_specific_data=data), run.run_id)


def _follower(name: str, condition: Any) -> dg.AssetsDefinition:
    @dg.asset(name=name, deps=[PLAIN.latest_key(QUOTE)], automation_condition=condition)
    def follower() -> None: ...

    return follower


QUOTE_RUNS = ["any_deps_updated", "asset_sensor", "each_change", "portfolio_value"]


def test_g8_a_change_that_comes_while_a_run_is_on_the_way_is_not_forgotten(
    stage: Stage, core: Core, theirs: ModuleType
) -> None:
    """By EACH_CHANGE of the example; eager() of Dagster 1.13.27 forgets it (findings/)."""
    beside = Beside(stage, theirs)
    made, bars = dg.AssetKey("month_ends"), PLAIN.history_key(DAILY)
    for seen_meanwhile in (False, True):
        beside.news(bars, MONTHS[0])
        beside.now += timedelta(seconds=30)
        assert beside.requested() == [(made, MONTHS[0])]
        run = beside.run(made, MONTHS[0])
        beside.news(bars, MONTHS[0])
        if seen_meanwhile:
            beside.now += timedelta(seconds=30)
            assert beside.requested() == [], "one run at a time"
        beside.end(run, made, MONTHS[0])
        assert beside.tick() == [f"month_ends {MONTHS[0]}"]
        assert beside.tick() == []


def test_g8_a_run_that_nobody_requested_by_the_condition_does_not_count(
    stage: Stage, core: Core, theirs: ModuleType
) -> None:
    """A backfill of ours and theirs together is followed by a run: better than to forget a change."""
    beside = Beside(stage, theirs)
    made, bars = dg.AssetKey("month_ends"), PLAIN.history_key(DAILY)
    beside.news(bars, MONTHS[0])
    beside.tell(dg.AssetMaterialization(made, partition=MONTHS[0]))
    assert beside.tick() == [f"month_ends {MONTHS[0]}"]
    assert beside.tick() == []
