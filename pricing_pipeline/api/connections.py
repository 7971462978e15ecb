"""How long a connection may keep this process waiting: for the head of a request, or for its peer to read."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""So long a connection may last without a whole head of a request, however many bytes of it come."""
READ_SECONDS = 60.0
"""So long a peer may leave an answer unread."""
MOST_CONNECTIONS = 800
"""Further ones are closed at once, so that files remain for the database. A process may often have 1024."""


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol with an end for peers that send or read without end."""

    _head: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

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
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read some bytes; only a whole head gives the connection more time."""
        super().data_received(data)
        self._watch()

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
