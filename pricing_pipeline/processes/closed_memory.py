"""Keep the memory of a process, such as keys of providers, out of core dumps and away from the user's other processes.

It uses only the standard library: each process of ours runs it before anything else.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

from pricing_pipeline.processes.guardian import MARK, name_of

_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15


def close_memory() -> None:
    """Write no core dump, and let no debugger in (Linux); also what this process starts writes none.

    Linux then shows the environment to root alone. The guardian of a supervisor recognises processes by the
    environment, so each process that a supervisor started also bears the mark in its name.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return
    prctl = ctypes.CDLL(None).prctl
    if home := os.environ.get(MARK):
        prctl(_PR_SET_NAME, name_of(home).encode(), 0, 0, 0)
    # The limit does not apply to core dumps that go to a program such as systemd-coredump.
    prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
