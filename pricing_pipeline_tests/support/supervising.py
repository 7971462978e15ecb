"""A supervisor in a process of its own, with children that end politely and children that do not."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from pricing_pipeline.processes.home import read_state
from pricing_pipeline.processes.supervisor import ONE_PRESS
from pricing_pipeline_tests.support.descendants import below
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

GRACE = 0.5

POLITE = "import time; time.sleep(600)"

# Ignores what asks it to end, and leaves a descendant elsewhere that does the same.
STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    between = os.getpid()
    if os.fork() == 0:
        while os.getppid() == between:  # it has been adopted when it says who it is
            time.sleep(0.01)
        with open(sys.argv[1] + ".part", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".part", sys.argv[1])
        time.sleep(600)
    os._exit(0)
time.sleep(600)
"""

SUPERVISE = """
import os, sys
from pathlib import Path
from pricing_pipeline.processes.children import Child
from pricing_pipeline.errors import PricingError
from pricing_pipeline.processes.supervisor import Supervisor

home, grace, one_press, polite, stubborn = Path(sys.argv[1]), *map(float, sys.argv[2:4]), *sys.argv[4:6]
far = home / "far.pid"
try:
    with Supervisor(home, grace=grace, one_press=one_press) as supervisor:
        supervisor.start(Child("polite", [sys.executable, "-c", polite], os.environ))
        if stubborn:
            argv = [sys.executable, "-c", stubborn, str(far)]
            supervisor.start(Child("stubborn", argv, os.environ, ready=far.exists))
        supervisor.wait_until_ready()
        print("ready", flush=True)
        supervisor.run_until_stopped()
    print("stopped", flush=True)
except PricingError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


class Running:
    """A supervisor in a process of its own, and everything below it."""

    def __init__(
        self,
        home: Path,
        *,
        grace: float = GRACE,
        one_press: float = ONE_PRESS,
        stubborn: bool = False,
        **options: Any,
    ) -> None:
        self.home = home
        settings = [str(home), str(grace), str(one_press), POLITE, STUBBORN if stubborn else ""]
        argv = [sys.executable, "-c", SUPERVISE, *settings]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        assert self.process.stdout is not None
        self.answer = self.process.stdout.readline().strip()
        found = set(below(self.process.pid)) if self.answer else set()
        if stubborn and self.answer:
            found.add(psutil.Process(int((home / "far.pid").read_text())))
        self.below = [process for process in found if not has_ended(process)]

    def state(self) -> dict[str, Any]:
        """Return what it says about itself."""
        state = read_state(self.home)
        assert state is not None
        return state

    def pid_of(self, name: str) -> int:
        """Return the pid of one of its children, waiting while it is down."""
        pid: int | None = None

        def is_up() -> bool:
            nonlocal pid
            pid = self.state()["processes"][name]["pid"]
            return pid is not None

        wait_until(is_up)
        assert pid is not None
        return pid

    def guardian(self) -> psutil.Process:
        """Return the process that cleans up after it."""
        return next(process for process in self.below if "guardian.py" in " ".join(process.cmdline()))

    def end(self, number: int) -> str:
        """Send a signal, wait for the end, return what it printed after it was ready."""
        self.process.send_signal(number)
        output, _ = self.process.communicate(timeout=PATIENCE)
        return str(output)

    def nothing_left(self) -> bool:
        """Tell whether everything that was below it has ended."""
        return all(has_ended(process) for process in self.below)


def has_ended(process: psutil.Process) -> bool:
    """Tell whether a process is gone, or only waits for its parent to take note."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True
