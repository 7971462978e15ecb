"""Another account of this machine, and what it can reach of processes that run."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable, Iterator
from typing import Any

import psutil
import pytest

STRANGER = 54321
"""A user id that no account has."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another account")


@contextlib.contextmanager
def as_a_stranger() -> Iterator[None]:
    """What this process opens meanwhile, it opens with the rights of another account."""
    groups, group, user = os.getgroups(), os.getegid(), os.geteuid()
    os.setgroups([])
    os.setegid(STRANGER)
    os.seteuid(STRANGER)
    try:
        yield
    finally:
        os.seteuid(user)
        os.setegid(group)
        os.setgroups(groups)


def connections(processes: Iterable[psutil.Process], kind: str) -> Iterator[Any]:
    """What processes have open; one that has ended meanwhile has nothing."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            yield from process.net_connections(kind)


def unix_sockets(processes: Iterable[psutil.Process]) -> set[str]:
    """The paths of the unix sockets of processes."""
    return {place.laddr for place in connections(processes, "unix") if place.laddr.startswith("/")}


def reached_by_a_stranger(paths: Iterable[str]) -> set[str]:
    """The sockets of these paths to which another account may connect."""
    reached = set()
    with as_a_stranger():
        for path in paths:
            with socket.socket(socket.AF_UNIX) as knocking, contextlib.suppress(PermissionError):
                knocking.connect(path)
                reached.add(path)
    return reached
