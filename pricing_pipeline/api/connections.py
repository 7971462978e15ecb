"""What a connection may keep this process waiting for, or remembering: the head of a request, its body, its reader."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn._types import ASGI3Application  # internal, hence the exact pin
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_SECONDS = 10.0
"""How long a connection may last without a complete head of a request, even if bytes of it arrive."""
READ_SECONDS = 60.0
"""So long a peer may leave an answer unread."""
LONGEST_HEAD = 64 * 1024
"""Bytes of the head of a request, which is kept before the sender is checked."""
LONGEST_BODY = 2_000_000
"""Bytes. A heartbeat of 10,000 pairs has some hundred thousand."""
MOST_WAITING = 8
"""Requests of a connection that wait for the answer to an earlier one. A single read may bring 14,000 of them."""
MOST_CONNECTIONS = 800
"""Further ones are closed at once, so that files remain for the database. A process may often have 1024."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's faster protocol with an end for peers that send or read without end."""

    _head: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _bytes = 0
    """Of the head that comes, or of the body."""
    _most_bytes = LONGEST_HEAD
    _answering: RequestResponseCycle | None = None
    """The request that is being answered. uvicorn's `cycle` is the one that came last."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        for timer in (self._head, self._unread):
            if timer is not None:
                timer.cancel()
        self._forget_answers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read some bytes; only a whole head gives the connection more time."""
        self._bytes += len(data)
        super().data_received(data)
        if self._bytes > self._most_bytes and not self.transport.is_closing():
            # The guard refuses a body that says how long it is; this is for those that do not, and for heads.
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

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request. It ends the connection, and with it the answers to earlier requests."""
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

    def _watch(self) -> None:
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self._head = self._head or self.loop.call_later(HEAD_SECONDS, self.transport.abort)
        elif self._head is not None:
            self._head.cancel()
            self._head = None
