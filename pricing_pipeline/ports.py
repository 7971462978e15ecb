"""TCP ports on loopback: is one free, and which one is. And whether a gRPC server on a unix socket answers."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Container

from pricing_pipeline.errors import SupervisorError

LOOPBACK = "127.0.0.1"
_DATA, _HEADERS, _SETTINGS, _GOAWAY = 0, 1, 4, 7
"""Kinds of frames of HTTP/2 (RFC 9113, 6)."""


def require_free_port(port: int, name: str, setting: str, promised: Container[int] = ()) -> int:
    """Return `port` if nothing listens there on loopback, or some free port when it is 0.

    `name` says what wants it ("the Dagster UI"), `setting` is the variable that chooses another. The port is only
    looked at, not held: `promised` are those that something else of ours will listen on. Raises SupervisorError with
    name and setting when the port is taken, promised or forbidden.
    """
    if port and port in promised:
        raise SupervisorError(f"port {port} for {name} is wanted twice; set {setting} to another.")
    while (chosen := _free_port(port, name, setting)) in promised:
        pass
    return chosen


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


def answers_grpc(socket_path: str, method: str, seconds: float) -> bool:
    """Whether the gRPC server on a unix socket answers a call of a method that takes an empty message.

    Said by hand, because gRPC's own client starts threads, and who starts processes must have none. Of the answer only
    this counts: a message comes. An error has none.
    """
    headers = b"\x83\x86" + b"".join(  # POST, http; then literals: path, authority, te, content-type
        name + bytes([len(value)]) + value
        for name, value in (
            (b"\x04", method.encode()),
            (b"\x01", b"localhost"),
            (b"\x00\x02te", b"trailers"),
            (b"\x0f\x10", b"application/grpc"),
        )
    )
    request = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(_SETTINGS, 0, 0, b"")
        + _frame(_HEADERS, 0x4, 1, headers)
        + _frame(_DATA, 0x1, 1, bytes(5))
    )
    deadline = time.monotonic() + seconds
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            connection.connect(socket_path)
            connection.sendall(request)
            while True:
                head = _read(connection, 9, deadline)
                body = _read(connection, int.from_bytes(head[:3], "big"), deadline)
                if head[3] == _DATA and len(body) >= 5:
                    return True
                if head[3] == _GOAWAY or (head[3] == _HEADERS and head[4] & 0x1):
                    return False
    except OSError:
        return False


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def _read(connection: socket.socket, size: int, deadline: float) -> bytes:
    found = b""
    while len(found) < size:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        part = connection.recv(size - len(found))
        if not part:
            raise ConnectionError("the server has closed the connection")
        found += part
    return found
