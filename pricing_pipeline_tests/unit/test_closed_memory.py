"""What a process has in memory gets into no core dump and to no other process; a guardian finds it all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pricing_pipeline import stack
from pricing_pipeline.settings import Settings

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")
SHOW = """
import ctypes, resource
print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True)
"""


@linux
def test_a4_processes_of_up_and_what_they_start_are_closed(tmp_path: Path) -> None:
    """Runs are started by the code server: whatever it starts is closed as well."""
    environment = stack._environment(Settings(home=tmp_path))
    both = f"{SHOW}\nimport subprocess, sys; subprocess.run([sys.executable, '-c', {SHOW!r}], check=True)"
    command = [sys.executable, "-c", both]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(0, 0) 0"] * 2


@linux
def test_a4_a_command_is_closed(tmp_path: Path) -> None:
    """`up` itself is one. The command ends at once, and its last word is what it was."""
    script = (
        "import atexit, ctypes, resource, sys\n"
        "from pricing_pipeline import cli\n"
        "atexit.register(lambda: print(resource.getrlimit(4), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)))\n"
        "sys.argv = ['pricing-pipeline', '--help']\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "(0, 0) 0"
