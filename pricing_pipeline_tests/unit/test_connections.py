"""What every server of ours bounds, before its application sees a request. The API's own tests are in
integration/test_api_limits.py, and those of each listener as a process in faults/test_silent_connections.py."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket
from websockets.sync.client import connect

from pricing_pipeline.processes import connections, peers
from pricing_pipeline.processes.connections import server_config
from pricing_pipeline.processes.peers import Address
from pricing_pipeline.processes.web_guard import Guard
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

LENGTH = b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n"


class Held:
    """An application whose answer waits until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.at_work = 0

    def app(self) -> Starlette:
        async def hold(request: Request) -> PlainTextResponse:
            self.at_work += 1
            while not self.go.is_set():
                await asyncio.sleep(0.01)
            return PlainTextResponse("held")

        async def echo(request: Request) -> PlainTextResponse:
            return PlainTextResponse((await request.body()).decode())

        async def talk(websocket: WebSocket) -> None:
            await websocket.accept()
            async for words in websocket.iter_text():
                await websocket.send_text(words)

        return Starlette(
            routes=[
                Route("/hold", hold),
                Route("/", echo, methods=["GET", "POST"]),
                WebSocketRoute("/talk", talk),
            ]
        )


@contextmanager
def served(app: ASGIApp) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(server_config(app, lifespan="off", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


def sent(stack: ExitStack, port: int, begun: bytes) -> socket.socket:
    sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
    sock.sendall(begun)
    return sock


def all_of(sock: socket.socket) -> bytes:
    """What comes until the connection ends."""
    received = b""
    try:
        while part := sock.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def head(method: str, path: str, port: int) -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode()


def test_b7_of_too_many_peers_the_one_that_waits_longest_goes_and_none_that_is_worked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    held = Held()
    with served(held.app()) as port, ExitStack() as stack:
        busy = sent(stack, port, head("GET", "/hold", port) + b"\r\n")
        wait_until(lambda: held.at_work == 1)
        with_head = sent(stack, port, head("GET", "/", port))
        time.sleep(0.1)
        with_body = sent(stack, port, head("POST", "/", port) + LENGTH + b"{")
        time.sleep(0.1)
        newcomer = sent(stack, port, head("GET", "/hold", port) + b"\r\n")
        assert all_of(with_head) == b""
        another = sent(stack, port, head("GET", "/hold", port) + b"\r\n")
        assert all_of(with_body) == b""
        wait_until(lambda: held.at_work == 3)
        assert all_of(sent(stack, port, head("GET", "/", port) + b"\r\n")) == b"", "all others are worked for"
        held.go.set()
        for sock in (busy, newcomer, another):
            assert b"200 OK" in sock.recv(65536)


def test_b7_a_websocket_is_no_head_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    with served(Held().app()) as port, connect(f"ws://127.0.0.1:{port}/talk", proxy=None) as talk:
        time.sleep(0.6)
        talk.send("still here")
        assert talk.recv(PATIENCE) == "still here"


def test_b7_nobody_passes_for_a_program_of_ours_by_naming_its_connection() -> None:
    """uvicorn takes X-Forwarded-For from every peer on loopback, with a port. Everybody sees which ports are ours."""
    with ExitStack() as stack:
        ours: set[Address | None] = set()
        port = stack.enter_context(served_guarded(None, is_allowed=lambda peer, _: peer in ours))
        friend = sent(stack, port, head("GET", "/", port) + b"\r\n")
        assert b" 403 " in friend.recv(65536).splitlines()[0]
        ours.add(friend.getsockname())
        friend.sendall(head("GET", "/", port) + b"\r\n")
        assert b" 200 " in friend.recv(65536).splitlines()[0]
        named = f"127.0.0.1:{friend.getsockname()[1]}"
        for header in (f"X-Forwarded-For: {named}", f"X-Forwarded-For: {named}, {named}"):
            stranger = sent(stack, port, head("GET", "/", port) + f"{header}\r\n\r\n".encode())
            assert b" 403 " in stranger.recv(65536).splitlines()[0]


@contextmanager
def served_guarded(
    token: str | None,
    is_allowed: Callable[[Address | None, Address | None], bool] = peers.is_allowed,
) -> Iterator[int]:
    """The same application behind the guard of the UI; its names are known only once it listens."""
    hosts: set[str] = set()

    async def app(scope: object, receive: object, send: object) -> None:
        guard = Guard(Held().app(), hosts=hosts, token=token, is_allowed=is_allowed)
        await guard(scope, receive, send)  # type: ignore[arg-type]

    with served(app) as port:
        hosts.add(f"127.0.0.1:{port}")
        yield port
