"""What Python runs first in each process of `up`."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from pricing_pipeline import stack
from pricing_pipeline.settings import Settings

SHOW = "import gc, pricing_pipeline; print(gc.get_threshold()[0])"


def shown_by_a_child(home: Path) -> str:
    """What a process of `up` prints that shows its threshold of garbage collection."""
    environment = stack._environment(Settings(home=home))
    child = [sys.executable, "-c", SHOW]
    return subprocess.run(child, env=environment, cwd=home, capture_output=True, text=True, check=True).stdout


def test_processes_of_up_do_not_look_for_garbage_while_they_import(tmp_path: Path) -> None:
    assert int(shown_by_a_child(tmp_path)) == 10_000 > gc.get_threshold()[0]


def test_a_tool_that_starts_with_python_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracers and the like bring a sitecustomize of their own by PYTHONPATH."""
    (tmp_path / "sitecustomize.py").write_text("print('a tool')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert shown_by_a_child(tmp_path).startswith("a tool")
