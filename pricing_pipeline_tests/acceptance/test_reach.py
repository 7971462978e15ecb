"""What the network and other accounts of the machine reach of a pipeline that runs."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

import httpx
import psutil

from pricing_pipeline_tests.fixtures.stack import GROUP, Stack
from pricing_pipeline_tests.support.other_accounts import (
    as_a_stranger,
    connections,
    needs_root,
    reached_by_a_stranger,
    unix_sockets,
)

pytestmark = GROUP


def test_nothing_of_up_listens_where_other_machines_reach_it(stack: Stack) -> None:
    stack.ensure_up()
    ports = {httpx.URL(url).port for url in stack.state()["urls"].values()}
    # The API listens after the first price.
    stack.wait_until("all its URLs", lambda: {place.port for place in _heard(stack)} >= ports)
    heard = _heard(stack)
    assert {place.ip for place in heard} <= {"127.0.0.1", "::1"}, heard


def _heard(stack: Stack) -> set[Any]:
    """The addresses that its processes listen on."""
    return {
        place.laddr
        for place in connections(stack.processes(), "inet")
        if place.status == psutil.CONN_LISTEN or (place.type == socket.SOCK_DGRAM and not place.raddr)
    }


@needs_root
def test_another_account_connects_to_no_socket_of_up(stack: Stack) -> None:
    """Anyone who reaches the code server's runs code; anyone who reaches the database's may guess passwords."""
    stack.ensure_up()
    paths = unix_sockets(stack.processes())
    names = {Path(path).name for path in paths}
    assert "code.sock" in names
    assert any(name.startswith(".s.PGSQL.") for name in names)
    assert reached_by_a_stranger(paths) == set()


@needs_root
def test_another_account_is_not_answered_by_the_ui(stack: Stack) -> None:
    """It has no token here, and every account of the machine reaches its port."""
    stack.ensure_up()
    url = stack.state()["urls"]["dagster"]
    assert httpx.get(f"{url}/server_info").status_code == 200
    with as_a_stranger():
        assert httpx.get(f"{url}/server_info").status_code == 403


@needs_root
def test_another_account_reads_no_secret_of_a_running_pipeline(stack: Stack) -> None:
    """Files of the home, environments and command lines. A home that root made can be passed through."""
    stack.ensure_up()
    secrets = [*json.loads((stack.home / "postgres.json").read_text())["passwords"].values()]
    files = [path for path in stack.home.rglob("*") if path.is_file()]
    environments = [Path(f"/proc/{process.pid}/environ") for process in stack.processes()]
    commands = [Path(f"/proc/{process.pid}/cmdline") for process in stack.processes()]
    assert stack.home / "postgres.json" in files
    seen = {}
    with as_a_stranger():
        for path in [*files, *environments, *commands]:
            with contextlib.suppress(PermissionError, FileNotFoundError, ProcessLookupError):
                seen[path] = path.read_bytes()
    assert seen.keys() & {*environments} == set()
    assert seen.keys() & {*commands}, "command lines are everybody's"
    of_home = {path.relative_to(stack.home).parts[0] for path in seen.keys() & {*files}}
    assert of_home <= {"registry.json", "dagster"}
    told = {str(path) for path, content in seen.items() for secret in secrets if secret.encode() in content}
    assert told == set()
