"""The process that cleans up after a killed supervisor.

It waits on a pipe from the supervisor. If the pipe closes without a byte, the supervisor is dead. Its children have had
their death signal; after a grace period the guardian kills the remaining children and descendants. It inherits the lock
of the home, so that a new supervisor starts only after that.

A bare interpreter runs it as a script, so it uses only the standard library. It knows the supervisor's processes by an
environment variable, which every descendant inherits (Linux).
"""

from __future__ import annotations

import os
import signal
import sys
import time

MARK = "SUPERVISED_FROM_HOME"
"""Environment variable that holds the home in everything a supervisor starts."""


def marked(home: str) -> list[int]:
    """Return all processes started from `home`, except this one and those it descends from."""
    entry = b"\0" + os.fsencode(f"{MARK}={home}") + b"\0"
    spared = _ancestors()
    pids = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit() and int(name) not in spared:
            try:
                with open(f"/proc/{name}/environ", "rb") as environment:
                    if entry in b"\0" + environment.read() + b"\0":
                        pids.append(int(name))
            except OSError:  # ended meanwhile, or not ours
                continue
    return pids


def kill_marked(home: str, grace: float) -> None:
    """Wait up to `grace` seconds for the processes of `home` to end, then kill them until none is left."""
    deadline = time.monotonic() + grace
    while left := marked(home):
        if time.monotonic() >= deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    continue
            if time.monotonic() > deadline + 15:  # what does not die of SIGKILL hangs in the kernel
                return
        time.sleep(0.05)


def _ancestors() -> set[int]:
    spared = {os.getpid()}
    pid = os.getpid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/stat", "rb") as status:
                pid = int(status.read().rpartition(b")")[2].split()[1])
        except OSError:
            break
        spared.add(pid)
    return spared


def main() -> None:
    """Wait for the supervisor's word or death on standard input; arguments: home, seconds of grace."""
    home, grace = sys.argv[1], float(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not os.read(0, 1):
        kill_marked(home, grace)


if __name__ == "__main__":
    main()
