"""A guardian of processes whose environment it may not read."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pricing_pipeline.processes import closed_memory, guardian
from pricing_pipeline_tests.unit.test_closed_memory import linux

PYTHON = "/usr/bin/python3"
"""One that every account may run; ours may be in a closed folder."""
NOBODY, STRANGER = 65534, 12_345

KEEPS_A_KEY = """
import sys, time
from pricing_pipeline.processes.closed_memory import close_memory
close_memory()
print("ready", flush=True)
time.sleep(600)
"""
LOOKS = """
import sys
from pricing_pipeline.processes.guardian import kill_marked, marked
found = marked(sys.argv[1])
try:
    open(f"/proc/{sys.argv[2]}/environ").read()
except PermissionError:
    print("closed", found == [int(sys.argv[2])])
kill_marked(sys.argv[1], 0)
"""


@linux
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of another account")
def test_fault_24_a_guardian_finds_processes_whose_environment_it_may_not_read(open_folder: Path) -> None:
    """Not as root, which may read everything: as an account that has both."""
    if not Path(PYTHON).exists():
        pytest.skip(f"there is no {PYTHON}")
    package = open_folder / "pricing_pipeline/processes"
    package.mkdir(parents=True)
    for module in (guardian, closed_memory):
        shutil.copy(module.__file__, package)
    open_folder.chmod(0o755)
    for path in (package, package.parent):
        path.chmod(0o755)
        (path / "__init__.py").touch(0o644)
    for path in package.iterdir():
        path.chmod(0o644)
    home = str(open_folder / "home")
    environment = {guardian.MARK: home, "PYTHONPATH": str(open_folder)}

    def started_as(account: int, script: str, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [PYTHON, "-c", script, *arguments],
            env=environment if script == KEEPS_A_KEY else {"PYTHONPATH": str(open_folder)},
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            user=account,
            group=account,
            extra_groups=[],
        )

    with started_as(NOBODY, KEEPS_A_KEY) as keeper, started_as(STRANGER, KEEPS_A_KEY) as imitator:
        try:
            for process in (keeper, imitator):
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
            with started_as(NOBODY, LOOKS, home, str(keeper.pid)) as looking:
                assert looking.communicate()[0] == "closed True\n", "without the imitator"
            assert keeper.wait() == -9
            assert imitator.poll() is None
        finally:
            keeper.kill()
            imitator.kill()
