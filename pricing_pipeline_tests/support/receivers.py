"""Real receivers on loopback, which tests tell how to behave: a web server for posts, and a mail server."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

from pricing_pipeline_tests.support.patience import PATIENCE


@dataclass
class Posted:
    """One request that a receiver got."""

    path: str
    headers: dict[str, str]
    body: bytes


class Post(BaseHTTPRequestHandler):
    """A request whose body has been read. Scripts answer it as they like."""

    server: Receiver
    body: bytes
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append(Posted(self.path, dict(self.headers.items()), self.body))
        self.close_connection = True
        self.server.script(self)

    do_GET = do_PATCH = do_PUT = do_POST

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """A whole answer; underscores in header names stand for dashes."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def hang(self) -> None:
        """Say nothing more until the test is over."""
        self.server.stopped.wait(PATIENCE)

    def drip(self, data: bytes, seconds: float) -> None:
        """Send a byte each `seconds`, over and over, until the test is over or the sender hangs up."""
        while not self.server.stopped.wait(seconds):
            self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        """Keep quiet: standard error is for failures."""


Script = Callable[[Post], None]


class Receiver(ThreadingHTTPServer):
    """Does what `script` says for each request. Use `receiving`."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), Post)
        self.script = script
        self.posted: list[Posted] = []
        self.stopped = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The sender hung up, which is what it does to a receiver that misbehaves."""


@contextmanager
def receiving(script: Script, ssl_context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver of posts while the block lasts."""
    receiver = Receiver(script)
    if ssl_context is not None:
        receiver.socket = ssl_context.wrap_socket(receiver.socket, server_side=True)
        receiver.url = f"https://127.0.0.1:{receiver.server_port}"
    thread = threading.Thread(target=receiver.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.stopped.set()
        receiver.shutdown()
        thread.join(PATIENCE)
        receiver.server_close()


@dataclass
class MailServer:
    """What a mail server got, and what it is to answer instead of 250, by SMTP command."""

    user: str = "ann"
    password: str = "the right one"
    answers: dict[str, str] = field(default_factory=dict)
    logins: list[tuple[str, str]] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    was_tls: bool = False
    port: int = 0

    def authenticate(self, server: SMTP, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        login = data.login.decode(), data.password.decode()
        self.logins.append(login)
        if "AUTH" in self.answers:
            return AuthResult(success=False, handled=False, message=self.answers["AUTH"])
        return AuthResult(success=login == (self.user, self.password), handled=False)

    async def handle_MAIL(self, server: SMTP, session: Any, envelope: Any, address: str, options: Any) -> str:
        envelope.mail_from = address
        return self.answers.get("MAIL", "250 OK")

    async def handle_RCPT(self, server: SMTP, session: Any, envelope: Any, address: str, options: Any) -> str:
        if "RCPT" not in self.answers:
            envelope.rcpt_tos.append(address)
            self.recipients.append(address)
        return self.answers.get("RCPT", "250 OK")

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        if "DATA" not in self.answers:
            self.messages.append(envelope.content)
            assert server.transport is not None
            self.was_tls = server.transport.get_extra_info("ssl_object") is not None
        return self.answers.get("DATA", "250 OK")


@contextmanager
def mail_server(tls: ssl.SSLContext | None = None, *, implicit: bool = False, **answers: str) -> Iterator[MailServer]:
    """A mail server while the block lasts; with a context it wants STARTTLS, or TLS from the first byte on."""
    known = MailServer(answers=answers)
    loop = asyncio.new_event_loop()

    def serve() -> SMTP:
        return SMTP(
            known,
            authenticator=known.authenticate,
            auth_require_tls=False,
            hostname="mail.example",
            loop=loop,
            tls_context=None if implicit else tls,
            require_starttls=tls is not None and not implicit,
        )

    server = loop.run_until_complete(loop.create_server(serve, "127.0.0.1", 0, ssl=tls if implicit else None))
    known.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield known
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        server.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()
