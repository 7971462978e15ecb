"""Ports that servers are started on: free, promised to nobody else, and told when they are not."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from pricing_pipeline.errors import SupervisorError
from pricing_pipeline.processes.ports import require_free_port


def test_a_port_in_use_is_told() -> None:
    """Whatever way somebody listens, it is found; the sentence names port, purpose and setting."""
    for address, option in (("127.0.0.1", socket.SO_REUSEADDR), ("0.0.0.0", socket.SO_REUSEPORT)):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, option, 1)
            listener.bind((address, 0))
            listener.listen()
            port = listener.getsockname()[1]
            with pytest.raises(SupervisorError) as error:
                require_free_port(port, "the Dagster UI", "PRICING_WEB_PORT")
            assert str(error.value) == (
                f"port {port} for the Dagster UI is in use; stop what uses it or set PRICING_WEB_PORT."
            )


def test_a_port_that_is_promised_is_given_to_nobody_else() -> None:
    """The system offered one port twice, once in thousands of starts: nothing listened on the first yet."""

    class Once:
        def __init__(self) -> None:
            self.offered: list[int] = []

        def __contains__(self, port: object) -> bool:
            assert isinstance(port, int)
            self.offered.append(port)
            return port == self.offered[0]

    promised = Once()
    chosen = require_free_port(0, "the sandbox", "PRICING_SANDBOX_PORT", promised)
    assert chosen == promised.offered[-1] != promised.offered[0]
    free = require_free_port(0, "the Dagster UI", "PRICING_WEB_PORT")
    with pytest.raises(
        SupervisorError, match=f"port {free} for the sandbox is wanted twice; set PRICING_SANDBOX_PORT"
    ):
        require_free_port(free, "the sandbox", "PRICING_SANDBOX_PORT", {free})


def test_a_caller_that_reaches_itself_has_found_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may let a call to a free port come from that port: once in tens of thousands of starts."""

    class Itself(socket.socket):
        def connect_ex(self, address: Any) -> int:
            self.bind(address)
            return super().connect_ex(address)

    port = require_free_port(0, "the sandbox", "PRICING_SANDBOX_PORT")
    monkeypatch.setattr(socket, "socket", Itself)
    assert require_free_port(port, "the sandbox", "PRICING_SANDBOX_PORT") == port


def test_a_port_of_the_last_run_is_free_at_once() -> None:
    """Connections that linger after a stop are no server. Port 0 picks one."""
    chosen = require_free_port(0, "the sandbox", "PRICING_SANDBOX_PORT")
    assert chosen > 0
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = listener.accept()
            accepted.close()  # the server closes first, so its side lingers
            assert client.recv(1) == b""
    assert require_free_port(port, "the sandbox", "PRICING_SANDBOX_PORT") == port
