"""Ports that servers are started on: free, promised to nobody else, and told when they are not."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest

from pricing_pipeline.errors import SupervisorError
from pricing_pipeline.processes.ports import listen_for_browsers, require_free_port


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
    with pytest.raises(SupervisorError, match=f"port {free} for the sandbox is wanted twice; set PRICING_SANDBOX_PORT"):
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


# ── Where browsers look for `localhost` ──────────────────────────────────────────────────────────


@pytest.fixture
def has_both() -> None:
    """Skips where there is but one kind of IP."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")


def opened(address: str, port: int, *, need_all: bool = True) -> list[str]:
    sockets = listen_for_browsers(address, port, need_all=need_all)
    names = [one.getsockname()[0] for one in sockets]
    for one in sockets:
        one.close()
    return names


@pytest.mark.parametrize(
    ("address", "beside"),
    [("127.0.0.1", ["::1"]), ("0.0.0.0", ["::1"]), ("::1", ["127.0.0.1"]), ("127.0.0.2", [])],
)
@pytest.mark.usefixtures("has_both")
def test_nobody_else_listens_where_a_browser_takes_localhost_to_be(address: str, beside: list[str]) -> None:
    port = require_free_port(0, "the Dagster UI", "PRICING_WEB_PORT")
    assert opened(address, port) == [address, *beside]


@pytest.mark.usefixtures("has_both")
def test_somebody_on_the_other_loopback_address_is_told_of_only_where_cookies_would_go_there() -> None:
    """A developer's server on [::1] is in nobody's way unless a token is set."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        assert opened("127.0.0.1", port, need_all=False) == ["127.0.0.1"]
        with pytest.raises(SupervisorError, match=f"port {port} for the Dagster UI on ::1 is in use"):
            opened("127.0.0.1", port)
    with pytest.raises(SupervisorError, match=r"on 192\.0\.2\.1 cannot be used"):
        opened("192.0.2.1", port)


def test_without_the_other_kind_of_ip_one_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    create = socket.create_server

    def of_one_kind(place: tuple[str, int], **options: Any) -> socket.socket:
        if options["family"] == socket.AF_INET6:
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
        return create(place, **options)

    monkeypatch.setattr(socket, "create_server", of_one_kind)
    port = require_free_port(0, "the Dagster UI", "PRICING_WEB_PORT")
    assert opened("127.0.0.1", port) == ["127.0.0.1"]
