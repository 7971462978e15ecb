"""Months of history as files, as Dagster writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from pricing_pipeline.defs.naming import PLAIN
from pricing_pipeline.defs.ours import Ours
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, said
from pricing_pipeline_tests.support.filing import keep


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for files; the definitions are loaded after it is set."""
    place = tmp_path / "history"
    monkeypatch.setenv("PRICING_EXPORT_URL", str(place))
    return place


def put(core: Core, data_type: str, first: str, days: int) -> None:
    core.rows(
        "WITH put AS (INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, currency,"
        " provider, call_id, fetched_at) SELECT :data_type, 'AAPL', CAST(:first AS timestamptz) + n * interval"
        " '24 hours', 1000 + n, 2, 'USD', 'twelvedata', n, now() FROM generate_series(0, :days - 1) n"
        " RETURNING observed_at) SELECT pricing.note_changes(:data_type, array_agg(observed_at)) FROM put",
        data_type=data_type,
        first=f"{first}Z",
        days=days,
    )


def run(stage: Stage) -> dg.ExecuteInProcessResult:
    """What the schedule runs."""
    return stage.definitions.resolve_job_def("export_history").execute_in_process(instance=stage.instance)


def export(stage: Stage, data_type: str, month: str) -> dg.ExecuteInProcessResult:
    """What a person runs."""
    return stage.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=stage.instance, asset_selection=[PLAIN.export_key(data_type)], partition_key=month
    )


def test_f12_without_a_place_there_are_no_assets_of_files(stage: Stage) -> None:
    """Who does not export sees nothing of it."""
    assert not [key for key in stage.repository.asset_graph.get_all_asset_keys() if key.path[0] == "exported_history"]
    assert not stage.repository.has_schedule_def("export_history")


def test_f12_the_schedule_writes_what_is_due_and_moves_what_is_not_kept(folder: Path, stage: Stage, core: Core) -> None:
    """All types, all months, each reported with its rows; a second run has nothing to do."""
    put(core, DAILY, "2020-03-01", 70)
    put(core, QUOTE, "2020-05-01", 3)
    keep(core, 3)
    stage.reload()
    (request,) = stage.slot("export_history", datetime(2026, 11, 26, 2, 37, tzinfo=UTC)).run_requests or ()
    assert request.partition_key is None
    assert run(stage).success
    written = stage.materializations("exported_history", DAILY)
    assert [(event.partition, said(event)["dagster/partition_row_count"]) for event in written] == [
        ("2020-03-01", 31),
        ("2020-04-01", 30),
        ("2020-05-01", 9),
    ]
    assert len(stage.materializations("exported_history", QUOTE)) == 1
    moved = {
        event.partition: said(event)["rows_left_database"] for event in stage.observations("exported_history", DAILY)
    }
    assert moved == {"2020-03-01": 31, "2020-04-01": 9, "2020-05-01": 0}
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE data_type = :t", t=DAILY) == 30
    assert len(list(folder.glob("data_type=*/month=*/prices.parquet"))) == 4
    assert run(stage).success
    assert len(stage.materializations("exported_history", DAILY)) == 3
    assert {"exported_history"} == {key.path[0] for key in Ours("", (DAILY,))._assets if key.path[0].startswith("exp")}


def test_f12_a_chosen_month_is_written_and_reported_whatever_it_has(folder: Path, stage: Stage, core: Core) -> None:
    """A backfill of months without values succeeds, too; and nothing moves when a person exports."""
    put(core, DAILY, "2020-03-01", 31)
    put(core, QUOTE, "2020-01-31", 1)
    keep(core, 3)
    stage.reload()
    assert export(stage, DAILY, "2020-03-01").success
    assert export(stage, QUOTE, "2020-03-01").success
    assert [said(e)["dagster/partition_row_count"] for e in stage.materializations("exported_history", DAILY)] == [31]
    assert [said(e)["dagster/partition_row_count"] for e in stage.materializations("exported_history", QUOTE)] == [0]
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE data_type = :t", t=DAILY) == 31
