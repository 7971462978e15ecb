"""A code server whose code location fails, and works again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import (
    GrpcServerTarget,
)

from pricing_pipeline.processes.probes import listens
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.orchestration.test_watching import Watched, instance, watched
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.plain_processes import PlainProcesses

__all__ = ["instance", "watched"]

NOT_YET = """
import pathlib
import dagster as dg

if pathlib.Path(__file__).with_name("broken").exists():
    raise RuntimeError("not yet")
defs = dg.Definitions()
"""


@pytest.mark.filterwarnings("ignore:Error loading repository location:UserWarning")
def test_b23_a_code_location_is_loaded_again_once_its_cause_is_gone(
    instance: dg.DagsterInstance, core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else asks for that: the sensor that follows the registry is not loaded either."""
    code, broken, socket = tmp_path / "ours.py", tmp_path / "broken", tmp_path / "code.sock"
    code.write_text(NOT_YET)
    broken.touch()
    with PlainProcesses(tmp_path) as processes:
        command = [Path(sys.executable).parent / "dagster", "code-server", "start", "-f", code, "-s", socket]
        processes.start("code-server", [str(part) for part in command], os.environ, tmp_path)
        wait_until(lambda: listens(str(socket)))
        target = GrpcServerTarget(host="localhost", port=None, socket=str(socket), location_name="ours")
        with create_test_daemon_workspace_context(target, instance) as workspace:
            watched = Watched(workspace, core, monkeypatch)
            watched.look()
            assert watched.locations() == {"ours": "RuntimeError: not yet"}
            watched.look(61)
            assert watched.locations() == {"ours": "RuntimeError: not yet"}
            broken.unlink()
            watched.look(30)
            assert watched.locations() == {"ours": "RuntimeError: not yet"}
            watched.look(31)
            watched.look()
            assert watched.locations() == {}
