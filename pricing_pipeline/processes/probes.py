"""Check whether a server that we started answers: over HTTP, over gRPC, or at all.

`python -m pricing_pipeline.processes.probes TARGET` does it for the health check of a container, and says no by its
exit code. TARGET is a URL (asked with PRICING_UI_TOKEN, if it is set), `grpc://SOCKET` or `grpc://HOST:PORT` of a code
server, or a folder in which each file must have changed within the last two minutes.

Nothing here starts a thread, because the supervisor starts processes and so must have only one. gRPC's own client
starts threads, so it is not used.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx

PING = "/api.DagsterApi/Ping"
"""The method of a code server that says that it works."""
_PING_SECONDS = 3.0
_SILENT_SECONDS = 120.0
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Servers of this machine are asked without TLS; reading the trusted certificates would add 20 ms to each probe."""


def answers_http(url: str, token: str | None = None) -> bool:
    """Whether a GET succeeds within 2 s, with a token where one is asked for."""
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    try:
        return httpx.get(url, headers=headers, timeout=2.0, trust_env=False, verify=_NO_TLS).is_success
    except httpx.HTTPError:
        return False


def answers_grpc(socket_path: str | None, method: str, seconds: float, address: str = "http://localhost") -> bool:
    """Whether the gRPC server on a unix socket, or at an address, answers a call of a method without parameters.

    Only a message counts, which begins with five bytes of its own; an error has none. `seconds` bounds each wait.
    """
    transport = httpx.HTTPTransport(uds=socket_path, http1=False, http2=True, verify=_NO_TLS)
    headers = {"content-type": "application/grpc", "te": "trailers"}
    try:
        with httpx.Client(transport=transport, timeout=seconds, trust_env=False) as client:
            answer = client.post(f"{address}{method}", headers=headers, content=bytes(5))
            return len(answer.content) >= 5
    except httpx.HTTPError:
        return False


def listens(socket_path: str) -> bool:
    """Whether a process listens on a unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(socket_path) == 0


def still_change(paths: Sequence[Path], seconds: float) -> Callable[[], bool]:
    """Whether all these files have changed within a number of seconds, whatever the clock of this machine says.

    Each change is noticed when the question is asked; before the first one the answer is no.
    """
    changes: dict[Path, tuple[int | None, float | None]] = {path: (_changed_at(path), None) for path in paths}

    def answers() -> bool:
        now = time.monotonic()
        for path, (before, _) in changes.items():
            if (at := _changed_at(path)) != before:
                changes[path] = (at, now)
        return all(noticed is not None and now - noticed <= seconds for _, noticed in changes.values())

    return answers


def _changed_at(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def is_well(target: str) -> bool:
    """Whether a target of the command above answers."""
    scheme, _, rest = target.partition("://")
    if scheme == "grpc":
        if rest.startswith("/"):
            return answers_grpc(rest, PING, _PING_SECONDS)
        return answers_grpc(None, PING, _PING_SECONDS, f"http://{rest}")
    if scheme in ("http", "https"):
        return answers_http(target, os.environ.get("PRICING_UI_TOKEN"))
    changed = [path.stat().st_mtime for path in Path(target).iterdir()] if Path(target).is_dir() else []
    return bool(changed) and time.time() - min(changed) < _SILENT_SECONDS


logging.getLogger("httpx").setLevel(logging.WARNING)

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(
            "usage: python -m pricing_pipeline.processes.probes TARGET "
            "(a URL, grpc://SOCKET, grpc://HOST:PORT or a folder)"
        )
    sys.exit(not is_well(sys.argv[1]))
