"""The process that cleans up after a killed supervisor.

It waits on a pipe from the supervisor. If the pipe closes without a byte, the supervisor is dead. Its children have had
their death signal; after a grace period the guardian kills the remaining children and descendants. It inherits the lock
of the home, so that a new supervisor starts only after that.

A bare interpreter runs it as a script, so it uses only the standard library. It knows the supervisor's processes by an
environment variable, which every descendant inherits, or by their name, where the environment is closed (Linux).
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time

MARK = "SUPERVISED_FROM_HOME"
"""Environment variable that holds the home in everything a supervisor starts."""


def name_of(home: str) -> str:
    """The name of processes whose environment nobody may read; a name has 15 bytes at most."""
    return f"pp-{hashlib.sha256(os.fsencode(home)).hexdigest()[:12]}"


def marked(home: str) -> list[int]:
    """Return all processes started from `home`, except this one and those it descends from."""
    spared = _ancestors()
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc/self") else []
    return [pid for pid in numbers if pid not in spared and _is_marked(pid, home)]


def _is_marked(pid: int, home: str) -> bool:
    entry = b"\0" + os.fsencode(f"{MARK}={home}") + b"\0"
    try:
        os.kill(pid, 0)  # a program of another account may bear any name, and nobody waits for its end
        with open(f"/proc/{pid}/comm", "rb") as name:
            if name.read().strip() == name_of(home).encode():
                return True
        with open(f"/proc/{pid}/environ", "rb") as environment:
            return entry in b"\0" + environment.read() + b"\0"
    except OSError:  # ended meanwhile, or not ours
        return False


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
