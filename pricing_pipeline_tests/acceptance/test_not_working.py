"""What does not work is named where people look: on the console of `up`, in `status`, on the page, in `/healthz`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from pricing_pipeline_tests.fixtures.stack import Stack, new_stack
from pricing_pipeline_tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
FAULT = "RuntimeError: an injected fault of the definitions"
NOT_LOADED = f"""
import sys

class Fault:
    def find_spec(name, path=None, target=None):
        if name == "pricing_pipeline.defs.alerts_sensor":
            raise RuntimeError("{FAULT.partition(": ")[2]}" + chr(10) + "whose second line is not told")

sys.meta_path.insert(0, Fault)
"""
"""Python runs it first in each process. Only the definitions import that module."""
PASSED_OVER = """
import sys

class Fault:
    def find_spec(name, path=None, target=None):
        if name == "pricing_pipeline.defs.watching":
            sys.meta_path.remove(Fault)
            from dagster._daemon import sensor
            in_turn = sensor.shuffled_round_robin_by_key
            sensor.shuffled_round_robin_by_key = lambda sensors, key: in_turn(
                [one for one in sensors if one.name != "report_sources"], key=key)

sys.meta_path.insert(0, Fault)
"""
"""The daemon imports that module, and then passes a sensor over."""


@contextmanager
def broken(folder: Path, fault: str) -> Iterator[Stack]:
    """An `up` whose processes have a fault."""
    (folder / "sitecustomize.py").write_text(fault)
    with new_stack() as stack:
        stack.start("env", f"PYTHONPATH={folder}{os.pathsep}{ROOT}")
        yield stack


def asked(stack: Stack, path: str, token: str | None = None) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"{stack.state()['urls']['api']}{path}"
    return httpx.get(url, headers=headers, timeout=PATIENCE, trust_env=False)


def require_named(stack: Stack, part: str, cause: str, others: str) -> None:
    """All four places name the part and its cause; a stranger learns the name alone."""
    stack.wait_until("a line on the console", lambda: f"Does not work: {part.replace('_', ' ')}" in console(stack))
    (line,) = [line for line in console(stack).splitlines() if cause in line]
    assert "second line" not in line
    status = stack.cli("status").stdout
    (late,) = [line for line in status.splitlines() if line.startswith(f"late:        {part.replace('_', ' ')}: ")]
    assert cause in late
    operator = stack.json("token", "add", "operator", "--scope", "operate", "--scope", "read", "--any-user")
    stranger = asked(stack, "/healthz")
    assert part in stranger.json()["late"]
    assert cause not in stranger.text
    told = asked(stack, "/healthz", operator["token"])
    assert told.status_code == stranger.status_code == 503
    assert cause in told.json()["causes"][part]
    assert cause in asked(stack, "/v1/page", operator["token"]).text
    assert others not in console(stack)


def console(stack: Stack) -> str:
    return stack.log.read_text()


def test_b23_a_code_location_that_does_not_load_is_named_with_its_cause(tmp_path: Path) -> None:
    with broken(tmp_path, NOT_LOADED) as stack:
        require_named(stack, "code_location", FAULT, "the sensor")


def test_b23_a_sensor_that_never_ticks_is_named(tmp_path: Path) -> None:
    with broken(tmp_path, PASSED_OVER) as stack:
        cause = "sensor report_sources has not ticked since the code location was loaded"
        require_named(stack, "sensor", cause, "the sensor refresh_watched")
