"""What a process has started, and what that has started.

psutil's `children` leaves out what seems older than the process. It reads the time of the boot for each process anew,
and that changes by a second when the system's clock is adjusted: then it leaves out what started in the first second.
"""

from __future__ import annotations

from collections import defaultdict

import psutil


def below(pid: int) -> list[psutil.Process]:
    """All descendants of a process that run now."""
    children: defaultdict[int, list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter(["ppid"]):
        children[process.info["ppid"]].append(process)
    found, todo = [], [pid]
    while todo:
        started = children[todo.pop()]
        found += started
        todo += [process.pid for process in started]
    return found
