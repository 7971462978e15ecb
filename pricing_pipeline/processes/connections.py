"""Bounds on how long a connection may keep one of our servers waiting: for heads, bodies and readers of answers.

The HTTP API, the Dagster UI and the sandbox listen with `server_config`, so the same bounds hold for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive
from uvicorn._types import ASGI3Application  # internal, hence the exact pin
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_SECONDS = 10.0
"""How long a connection may last without a complete head of a request, even if bytes of it arrive."""
BODY_SECONDS = 20.0
"""Seconds in which a body must arrive."""
READ_SECONDS = 60.0
"""Seconds for which a peer may leave an answer unread."""
LONGEST_HEAD = 64 * 1024
"""Bytes of the head of a request; it is kept in memory before the sender is checked."""
LONGEST_BODY = 2_000_000
"""Bytes. A heartbeat of 10,000 pairs has some hundred thousand."""
MOST_WAITING = 8
"""Requests of a connection that wait for the answer to an earlier one. A single read may bring 14,000 of them."""
MOST_CONNECTIONS = 800
"""With more, the peer that has kept us waiting longest is cut off. A process may often have 1024 files; the database
and the connections that we are about to accept (_BACKLOG) need some of them."""
_BACKLOG = 128
"""Connections that the system keeps until we accept them. We accept all of them at once, and only then count them."""


def server_config(app: ASGIApp, **options: Any) -> uvicorn.Config:
    """The configuration of a server for an application, with further options of uvicorn's."""
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        backlog=_BACKLOG,
        # Its warnings are about what strangers send: no HTTP, other protocols.
        log_level="error",
        log_config=None,
        access_log=False,
        **options,
    )


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's faster protocol with an end for peers that send or read without end."""

    _head: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _awaited_since: float | None = None
    """Since when the rest of an incomplete request has been awaited."""
    _is_websocket = False
    _bytes = 0
    """Of the head that comes, or of the body."""
    _most_bytes = LONGEST_HEAD
    _answering: RequestResponseCycle | None = None
    """The request that is being answered. uvicorn's `cycle` is the one that came last."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head. If there are too many connections, one of them ends."""
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._wait_no_more()
        self._forget_answers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read some bytes; only a whole head gives the connection more time."""
        self._bytes += len(data)
        super().data_received(data)
        if self._bytes > self._most_bytes and not self.transport.is_closing():
            cycle: Any = self.cycle
            if self._most_bytes == LONGEST_BODY and cycle.response_complete:
                # A guard has refused it by its length. Another answer would be taken for that to the next request.
                self.transport.close()
            else:
                self.send_400_response("This request is too long.")
        self._watch()

    def on_headers_complete(self) -> None:
        """The body follows. What has come of it already is at most what is read at once.

        Raises ValueError for one request too many: the parser reads no more, and the connection ends with 400.
        """
        if len(self.pipeline) >= MOST_WAITING:
            raise ValueError(f"{MOST_WAITING} requests of this connection wait for their answers already")
        super().on_headers_complete()
        self._bytes, self._most_bytes = 0, LONGEST_BODY

    def on_message_complete(self) -> None:
        """The next head follows."""
        super().on_message_complete()
        self._bytes, self._most_bytes = 0, LONGEST_HEAD
        self._awaited_since = None

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the protocol of WebSockets, which finds out itself whether its peer is gone."""
        self._is_websocket = True
        self._wait_no_more()
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Refuse an invalid request, which ends the connection and the answers to earlier requests."""
        super().send_400_response(msg)
        self._forget_answers()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _forget_answers(self) -> None:
        """Let answers under way go nowhere. uvicorn forgets only the last: the others fail when they are written."""
        self.pipeline.clear()
        for cycle in (self._answering, self.cycle):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def on_response_complete(self) -> None:
        """Wait for the next head; what is left of the body does not count."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Wait for the peer to read."""
        super().pause_writing()
        self._unread = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The peer has read."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _watch(self) -> None:
        cycle: Any = self.cycle
        if self._is_websocket or self.transport.is_closing():
            return
        if cycle is None or cycle.response_complete:
            if self._head is None:
                self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)
                self._awaited_since = self.loop.time()
        elif self._head is not None:
            self._head.cancel()
            self._head = None

    def _wait_no_more(self) -> None:
        for timer in (self._head, self._unread):
            if timer is not None:
                timer.cancel()
        self._head = self._unread = self._awaited_since = None

    def _kept_waiting_since(self) -> float | None:
        """Since when the peer has owed us a part of its request, or has not read; None while we work for it."""
        if self._unread is not None:
            return self._unread.when() - READ_SECONDS
        return self._awaited_since

    def _make_room(self) -> None:
        """Cut off the peer that has kept us waiting longest; this one, if we work for all others."""
        waiting = [
            (since, id(protocol), protocol)
            for protocol in self.connections
            if isinstance(protocol, BoundedProtocol) and (since := protocol._kept_waiting_since()) is not None
        ]
        longest = min(waiting)[2] if waiting else self
        longest._wait_no_more()
        longest.transport.abort()


def in_time(receive: Receive, too_late: Callable[[str], Exception]) -> Receive:
    """The same, for as long as a body may take; afterwards it raises what `too_late` makes of a sentence."""
    until: float | None = asyncio.get_running_loop().time() + BODY_SECONDS

    async def receive_in_time() -> Message:
        nonlocal until
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            raise too_late(f"the body takes longer than {BODY_SECONDS:.0f} s to arrive") from None
        if not message.get("more_body", False):
            until = None
        return message

    return receive_in_time
