"""TCP ports on loopback: check that one is free, or find a free one."""

from __future__ import annotations

import errno
import socket
from collections.abc import Container

from pricing_pipeline.errors import SupervisorError

LOOPBACK = "127.0.0.1"
_LOOPBACK_6 = "::1"
_OTHER_LOOPBACK = {
    LOOPBACK: _LOOPBACK_6,
    "0.0.0.0": _LOOPBACK_6,  # noqa: S104 - looked up, not listened on
    _LOOPBACK_6: LOOPBACK,
    "::": LOOPBACK,
}
"""By a server's address: the other address that browsers try for `localhost`."""


def require_free_port(port: int, name: str, setting: str, promised: Container[int] = ()) -> int:
    """Return `port` if nothing listens there on loopback, or some free port when it is 0.

    `name` is its use ("the Dagster UI"), `setting` is the variable that chooses another port. The port is only checked,
    not reserved: `promised` are ports for our other processes. Raises SupervisorError with name and setting if the port
    is in use, promised or forbidden.
    """
    if port and port in promised:
        raise SupervisorError(f"port {port} for {name} is wanted twice; set {setting} to another.")
    while (chosen := _free_port(port, name, setting)) in promised:
        pass
    return chosen


def listen_for_browsers(address: str, port: int, *, need_all: bool) -> list[socket.socket]:
    """Sockets of the Dagster UI on `address`, and on the loopback address of the other kind of IP, where there is one.

    Browsers use both for `localhost`. If another account listened on one, it would get the cookies of the other. Raises
    SupervisorError if it cannot listen on `address`, or, with `need_all`, if the other address is in use.
    """
    sockets: list[socket.socket] = []
    for place in filter(None, (address, _OTHER_LOOPBACK.get(address))):
        family = socket.AF_INET6 if ":" in place else socket.AF_INET
        try:
            sockets.append(socket.create_server((place, port), family=family))
        except OSError as error:
            # Without this kind of IP, no other process listens there either.
            if place != address and not (need_all and error.errno == errno.EADDRINUSE):
                continue
            for opened in sockets:
                opened.close()
            raise _refusal(error, port, f"the Dagster UI on {place}", "PRICING_WEB_PORT") from None
    return sockets


def _free_port(port: int, name: str, setting: str) -> int:
    with socket.socket() as probe:
        # Without this, connections of the last run that linger in TIME_WAIT would look like a server.
        # It hides no listener on Linux; on macOS it hides one that listens on all addresses, hence the call.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError as error:
            raise _refusal(error, port, name, setting) from None
        chosen: int = probe.getsockname()[1]
    if port and _answers(port):
        raise _refusal(OSError(errno.EADDRINUSE, ""), port, name, setting)
    return chosen


def _answers(port: int) -> bool:
    with socket.socket() as caller:
        caller.settimeout(0.5)
        # The system may give the caller this very port to call from: then it has reached itself.
        return caller.connect_ex((LOOPBACK, port)) == 0 and caller.getsockname() != caller.getpeername()


def _refusal(error: OSError, port: int, name: str, setting: str) -> SupervisorError:
    if error.errno == errno.EADDRINUSE:
        return SupervisorError(f"port {port} for {name} is in use; stop what uses it or set {setting}.")
    return SupervisorError(f"port {port} for {name} cannot be used ({error.strerror}); set {setting}.")
