"""Whose program is at the other end of a connection on this machine.

Every account of a machine can connect to a port on loopback. Linux says which account opened a connection; other
systems do not.
"""

from __future__ import annotations

import os
import sys
from ipaddress import IPv6Address, ip_address
from pathlib import Path

Address = tuple[str, int]
"""An IP address and a port."""

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED = "01"
"""A connection that its program has closed stays in the table for a while, as one of root's, in another state."""


def is_allowed(peer: Address | None, here: Address | None) -> bool:
    """Whether a connection was opened by our own account or by root, as far as the system tells.

    `peer` is its other end and `here` our end, as `getpeername` and `getsockname` have them.
    """
    if not _TABLES[0].exists():
        return True
    owner = None if peer is None or here is None else _owner(peer, here)
    return owner in (0, os.geteuid())


def _owner(peer: Address, here: Address) -> int | None:
    """The number of the account that has the other end open; None if no program on this machine has."""
    ends = {f"{_spelled(peer, as_v6)} {_spelled(here, as_v6)}" for as_v6 in (False, True)}
    for table in _TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:  # without IPv6 there is one table
            continue
        for line in lines:
            _, local, remote, state, _, _, _, owner, *_ = line.split()
            if state == _ESTABLISHED and f"{local} {remote}" in ends:
                return int(owner)
    return None


def _spelled(address: Address, as_v6: bool) -> str:
    """An address and a port as the tables have them: words of 32 bits, as the processor keeps them."""
    host = ip_address(address[0])
    if as_v6 and not isinstance(host, IPv6Address):
        host = IPv6Address(f"::ffff:{host}")
    words = (host.packed[start : start + 4] for start in range(0, len(host.packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{address[1]:04X}"
