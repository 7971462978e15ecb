"""Moves the calls of clients that have no setting for another host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

YAHOO = r"https://[a-z0-9.]+\.yahoo\.com"


def moved(url: object, hosts: Mapping[str, str]) -> str:
    """A URL at the address that stands for its host. Raises ValueError for another host: nothing leaves the machine."""
    for host, instead in hosts.items():
        found, count = re.subn(f"^{host}", instead, str(url))
        if count:
            return found
    raise ValueError(f"{url} is for none of {', '.join(hosts)}")


def move(session: Any, hosts: Mapping[str, str]) -> None:
    """Have all sessions of this class, of requests or of curl_cffi, ask at the addresses that stand for hosts."""
    ask = session.request

    def request(self: Any, method: str, url: str, *args: Any, **options: Any) -> Any:
        return ask(self, method, moved(url, hosts), *args, **options)

    session.request = request
