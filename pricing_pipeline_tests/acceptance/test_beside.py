"""A code location of others in `workspace.d`, under a real `up`: it works as under Dagster alone, and knows little."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pricing_pipeline.keys.environments import SECRETS, SECRETS_OF
from pricing_pipeline.keys.sealing import new_key
from pricing_pipeline_tests.fixtures.stack import Stack, new_stack

THEIRS = """
import os, pathlib
import dagster as dg

def tell(name):
    (pathlib.Path(__file__).parent / name).write_text("\\0".join(f"{k}={v}" for k, v in os.environ.items()))

tell("server.told")
parts = dg.StaticPartitionsDefinition(["a", "b"])

@dg.asset
def source() -> dg.MaterializeResult[None]:
    return dg.MaterializeResult(data_version=dg.DataVersion(os.urandom(4).hex()))

@dg.asset(deps=[source], automation_condition=dg.AutomationCondition.eager())
def eager_one() -> None:
    tell("run.told")

@dg.asset
def hourly() -> None: ...

@dg.asset(partitions_def=parts)
def parted() -> None: ...

of_sensor = dg.define_asset_job("of_sensor", [source])

@dg.sensor(job=of_sensor, default_status=dg.DefaultSensorStatus.RUNNING, minimum_interval_seconds=1)
def sensing():
    return dg.RunRequest("once")

automation = dg.AutomationConditionSensorDefinition(
    "automation", target="*", default_status=dg.DefaultSensorStatus.RUNNING, minimum_interval_seconds=5
)
minutely = dg.ScheduleDefinition(
    job=dg.define_asset_job("of_schedule", [hourly]), cron_schedule="* * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
defs = dg.Definitions(assets=[source, eager_one, hourly, parted], sensors=[sensing, automation], schedules=[minutely])
"""
BACKFILL = """
mutation Launch($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) { __typename ... on LaunchBackfillSuccess { backfillId } }
}
"""
BACKFILLS = "{ partitionBackfillsOrError { ... on PartitionBackfills { results { id status } } } }"
MATERIALIZED = """
query Made($key: AssetKeyInput!) {
  assetOrError(assetKey: $key) { ... on Asset { assetMaterializations(limit: 10) { runId partition } } }
}
"""


def materialized(stack: Stack, name: str) -> list[dict[str, Any]]:
    found = stack.graphql(MATERIALIZED, key={"path": [name]})["assetOrError"].get("assetMaterializations", [])
    return list(found)


@pytest.fixture
def beside() -> Iterator[tuple[Stack, Path]]:
    with new_stack(MASTER_KEY=new_key("canary"), TWELVEDATA_API_KEY="canary-key") as stack:
        folder = stack.home / "workspace.d"
        folder.mkdir(parents=True)
        for path in (stack.home, folder):
            path.chmod(0o711)
        for name, text in (
            ("theirs.py", THEIRS),
            (
                "analytics.yaml",
                "load_from: [{python_file: {relative_path: theirs.py, location_name: analytics}}]",
            ),
            ("bad.yaml", "load_from: ["),
        ):
            (folder / name).write_text(text)
            (folder / name).chmod(0o600)
        stack.start()
        stack.wait_until_up()
        yield stack, folder


def test_g3_g7_a_location_of_others_works_beside_ours_and_nothing_of_it_is_left(
    beside: tuple[Stack, Path],
) -> None:
    stack, folder = beside
    stack.wait_until("a run of their sensor", lambda: bool(materialized(stack, "source")))
    stack.wait_until("a run of their condition", lambda: bool(materialized(stack, "eager_one")))
    params = {"assetSelection": [{"path": ["parted"]}], "partitionNames": ["a", "b"]}
    assert "backfillId" in stack.graphql(BACKFILL, params=params)["launchPartitionBackfill"]
    stack.wait_until("both partitions", lambda: {e["partition"] for e in materialized(stack, "parted")} == {"a", "b"})
    stack.wait_until(
        "the end of their backfill",
        lambda: (
            [each["status"] for each in stack.graphql(BACKFILLS)["partitionBackfillsOrError"]["results"]]
            == ["COMPLETED_SUCCESS"]
        ),
    )
    stack.wait_until("a run of their schedule", lambda: bool(materialized(stack, "hourly")))
    assert stack.runs(statuses=["FAILURE"]) == []
    assert f"{folder}/bad.yaml is not YAML" in stack.log.read_text()
    assert stack.state()["processes"]["location-analytics"]["restarts"] == 0
    _knows_little(stack, folder)

    for number in (signal.SIGKILL, signal.SIGINT):
        os.kill(stack.state()["pid"], number)
        stack.wait_for_end()
        stack.wait_until("the end of all processes", lambda: stack.processes() == [])
        if number is signal.SIGKILL:
            (folder / "server.told").unlink()
            stack.start()
            stack.wait_until("their code server", (folder / "server.told").exists)


def _knows_little(stack: Stack, folder: Path) -> None:
    """Neither its code server nor its runs have a secret of ours; their login reads prices and writes none."""
    passwords = json.loads((stack.home / "postgres.json").read_text())["passwords"]
    for name in ("server.told", "run.told"):
        told = dict(line.split("=", 1) for line in (folder / name).read_text().split("\0"))
        assert told.keys() & SECRETS == SECRETS_OF["location-NAME"]
        secrets = ["canary", *(value for role, value in passwords.items() if role != "pricing_location")]
        assert [text for text in secrets if text in str(told)] == []
    with psycopg.connect(told["PRICING_READER_URL"]) as reader:
        assert reader.execute("SELECT count(*) > 0 FROM pricing.latest_prices").fetchone() == (True,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("DELETE FROM pricing.latest_prices")
