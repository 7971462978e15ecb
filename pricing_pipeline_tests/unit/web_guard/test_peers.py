"""Without a token the UI answers programs of its own account alone; the system says whose a connection is."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pricing_pipeline.processes import peers
from pricing_pipeline.processes.web_guard import Guard
from pricing_pipeline_tests.support.guarded import HOST, HTML, TOKEN, Dagster, ask

STRANGER = 12_345

needs_proc = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux says whose a connection is")


@contextmanager
def connected(family: socket.AddressFamily, host: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection on this machine: the client's and the server's."""
    with closing(socket.socket(family)) as listener:
        listener.bind((host, 0))
        listener.listen()
        with (
            closing(socket.create_connection(listener.getsockname()[:2])) as client,
            closing(listener.accept()[0]) as served,
        ):
            yield client, served


def is_allowed(served: socket.socket) -> bool:
    return peers.is_allowed(served.getpeername()[:2], served.getsockname()[:2])


@needs_proc
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_our_own_connections_are_known(
    family: socket.AddressFamily, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(family, host) as (_, served):
        assert is_allowed(served)
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
        assert is_allowed(served) == (os.getuid() == 0), "root may do everything anyway"


@needs_proc
def test_a_connection_that_its_program_has_closed_is_nobodys() -> None:
    """The system shows it as one of root's for a while."""
    with connected(socket.AF_INET, "127.0.0.1") as (client, served):
        client.sendall(b"POST / HTTP/1.1\r\n\r\n")
        client.close()
        assert not is_allowed(served)


@needs_proc
def test_where_the_tables_are_hidden_nobody_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_TABLES", (Path("/nowhere/tcp"),))
    with connected(socket.AF_INET, "127.0.0.1") as (_, served):
        assert not is_allowed(served)


@needs_proc
def test_a_connection_that_the_system_does_not_know_is_nobodys() -> None:
    assert not peers.is_allowed(("127.0.0.1", 1), ("127.0.0.1", 2))
    assert not peers.is_allowed(("203.0.113.9", 0), ("127.0.0.1", 3000))
    assert not peers.is_allowed(None, ("127.0.0.1", 3000))


@pytest.mark.parametrize("path", ["/", "/graphql", "/report_asset_check/x"])
def test_what_another_account_asks_is_refused(dagster: Dagster, path: str) -> None:
    guard = Guard(dagster.create_asgi_app(), hosts=[HOST], is_allowed=lambda *_: False)
    assert ask(guard, "GET", path, HTML).status == 403
    assert dagster.acts == 0


def test_with_a_token_it_alone_decides(dagster: Dagster) -> None:
    guard = Guard(dagster.create_asgi_app(), hosts=[HOST], token=TOKEN, is_allowed=lambda *_: False)
    assert ask(guard, "GET", "/", ("authorization", f"Bearer {TOKEN}")).status == 200
