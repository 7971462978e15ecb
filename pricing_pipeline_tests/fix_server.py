"""A real server whose every byte a test decides: for the faults that no decent HTTP server can show."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from pricing_pipeline_tests.patience import PATIENCE

Script = Callable[["Connection"], None]


class Connection:
    """One request, read up to the end of its head, and the means to answer it."""

    def __init__(self, sock: socket.socket, stopped: threading.Event, request: bytes) -> None:
        self.sock = sock
        self.request = request
        self.sent = 0
        self._stopped = stopped

    def send(self, data: bytes) -> None:
        """Count and send, in this order: the client may be done before sendall() returns."""
        self.sent += len(data)
        self.sock.sendall(data)

    def drip(self, data: bytes, seconds: float) -> None:
        """Send one byte each `seconds` until all are sent or the server stops."""
        for byte in data:
            if self._stopped.wait(seconds):
                return
            self.send(bytes([byte]))

    def hang(self) -> None:
        """Say nothing more until the server stops."""
        self._stopped.wait(PATIENCE)

    def answer(self, body: bytes = b"{}", status: str = "200 OK", **headers: str) -> None:
        """A whole answer with its Content-Length; underscores in header names stand for dashes."""
        head = {"Content-Length": str(len(body)), "Content-Type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        self.send(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body)


class ScriptedServer:
    """Listens on a free port of 127.0.0.1 and runs `script` for each request. Use as a context manager."""

    def __init__(self, script: Script, ssl_context: ssl.SSLContext | None = None) -> None:
        self.script = script
        self.connections: list[Connection] = []
        self.accepted = 0
        self._ssl = ssl_context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept)]
        self.port: int = self._listener.getsockname()[1]
        scheme = "https" if ssl_context else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        # Closing a listener does not wake its accept(); a connection does.
        socket.create_connection(("127.0.0.1", self.port)).close()
        for thread in self._threads:
            thread.join(PATIENCE)
        self._listener.close()

    @property
    def requests(self) -> list[bytes]:
        """The heads of all requests so far."""
        return [connection.request for connection in self.connections]

    @property
    def sent(self) -> int:
        """Bytes of all answers so far."""
        return sum(connection.sent for connection in self.connections)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            sock, _ = self._listener.accept()
            if self._stopped.is_set():
                sock.close()
                return
            self.accepted += 1
            thread = threading.Thread(target=self._serve, args=(sock,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        sock.settimeout(0.1)
        try:
            if self._ssl:
                sock.settimeout(PATIENCE)
                sock = self._ssl.wrap_socket(sock, server_side=True)
                sock.settimeout(0.1)
            while (request := self._read_head(sock)) is not None:
                connection = Connection(sock, self._stopped, request)
                with self._lock:
                    self.connections.append(connection)
                sock.settimeout(PATIENCE)
                self.script(connection)
                sock.settimeout(0.1)
        except OSError:
            pass  # the client hung up, which is what it does to a server that misbehaves
        finally:
            sock.close()

    def _read_head(self, sock: socket.socket) -> bytes | None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            try:
                data = sock.recv(65536)
            except TimeoutError:
                if self._stopped.is_set():
                    return None
                continue
            if not data:
                return None
            head += data
        return head
