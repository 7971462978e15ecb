"""A real HTTP server that answers requests with JSON, as a subclass of `JsonServer` decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

Reply = tuple[int, Mapping[str, str], bytes]
"""Status, headers and body of an answer."""


@dataclass
class Asked:
    """A request as the server has seen it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    """The decoded body of a POST, JSON or a form."""


@dataclass
class JsonServer:
    """Its address, what it was asked, and how many bytes it has sent."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    sent: int = 0

    def answer(self, asked: Asked) -> Reply:
        """What a request is answered."""
        raise NotImplementedError


@contextmanager
def serving(state: JsonServer) -> Iterator[None]:
    """Serve on a free port of 127.0.0.1 until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.reply("GET", None)

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            is_form = self.headers["Content-Type"] == "application/x-www-form-urlencoded"
            self.reply("POST", dict(parse_qsl(sent.decode())) if is_form else json.loads(sent))

        def reply(self, method: str, body: object) -> None:
            asked = Asked(method, self.path, dict(self.headers), body)
            state.asked.append(asked)
            code, fields, answer = state.answer(asked)
            lines = {"Content-Length": str(len(answer)), **fields}
            head = f"HTTP/1.1 {code} -\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            sent = f"{head}\r\n".encode() + answer
            state.sent += len(sent)
            self.wfile.write(sent)

        def log_message(self, *arguments: object) -> None:
            """Nothing goes to stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
