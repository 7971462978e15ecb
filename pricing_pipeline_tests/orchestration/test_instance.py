"""dagster.yaml and workspace.yaml of `make run`, and the storage that they name."""

from __future__ import annotations

from pathlib import Path

from dagster._core.instance.config import dagster_instance_config
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.workspace.load_target import WorkspaceFileTarget

from pricing_pipeline.processes.dagster_home import workspace, write
from pricing_pipeline_tests.fixtures.dagster import ROOT


def test_g7_dagster_yaml_is_valid_and_says_what_we_rely_on(dagster_home: Path) -> None:
    config, _ = dagster_instance_config(str(dagster_home))
    assert config["telemetry"] == {"enabled": False}
    assert config["nux"] == {"enabled": False}
    assert config["freshness"] == {"enabled": True}
    assert config["run_monitoring"]["enabled"] is True
    # The queue alone retries; two layers would multiply.
    assert config["run_retries"] == {"enabled": False}
    assert set(config["storage"]) == {"postgres"}
    assert config["storage"]["postgres"]["postgres_url"] == {"env": "PRICING_DAGSTER_URL"}
    assert config["run_coordinator"]["class"] == "PricingRunCoordinator"
    assert config["sensors"]["use_threads"] is True
    assert config["schedules"]["use_threads"] is True


def test_g7_the_storage_is_written_into_the_home_and_nowhere_else(dagster_home: Path) -> None:
    """Earlier releases left a link to the clone's file there, which must not be written through."""
    before = (ROOT / "dagster.yaml").read_text()
    assert "postgres" not in before
    (dagster_home / "dagster.yaml").unlink()
    (dagster_home / "dagster.yaml").symlink_to(ROOT / "dagster.yaml")
    write(dagster_home, ROOT)
    assert (dagster_home / "dagster.yaml").read_text().startswith(before)
    assert (ROOT / "dagster.yaml").read_text() == before


def test_g7_workspace_yaml_names_one_code_server_on_the_socket(dagster_home: Path) -> None:
    (origin,) = WorkspaceFileTarget([str(workspace(dagster_home))]).create_origins()
    assert isinstance(origin, GrpcServerCodeLocationOrigin)
    assert (origin.socket, origin.port, origin.location_name) == (
        "/nowhere/code.sock",
        None,
        "pricing_pipeline",
    )
