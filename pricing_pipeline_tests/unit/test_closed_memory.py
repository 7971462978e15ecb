"""What a process has in memory gets into no core dump and to no other process; a guardian finds it all the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pricing_pipeline import stack
from pricing_pipeline.processes import closed_memory, guardian
from pricing_pipeline.settings import Settings

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")
PYTHON = "/usr/bin/python3"
"""One that every account may run; ours may be in a closed folder."""
NOBODY, STRANGER = 65534, 12_345
SHOW = """
import ctypes, resource
print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True)
"""
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
