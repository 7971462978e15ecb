"""`/v1/stream`: new prices and changes of freshness, as they come. It occupies no thread."""

from __future__ import annotations

from typing import Annotated

import anyio
from fastapi import APIRouter, Header, Query, Request
from pydantic import Field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pricing_pipeline.api.access import Reader, Watcher
from pricing_pipeline.api.formats import Currency
from pricing_pipeline.api.live_stream import Stream
from pricing_pipeline.api.parameters import LONGEST_PAIRS, MOST_SYMBOLS, each_pair
from pricing_pipeline.api.stream_events import read_id
from pricing_pipeline.api.stream_hub import StreamHub
from pricing_pipeline.prices.conversion import Target

router = APIRouter(tags=["watching"])

_MOST_PAIRS = 1000
_COMMENT_SECONDS = 15
"""Often enough that no proxy ends the stream as idle."""
_PATIENCE_SECONDS = 60
"""A client that reads nothing for this long is cut off."""
_BEGINNING = b"retry: 1000\n"
"""How long a browser waits before it comes back, in milliseconds."""

Pairs = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=_MOST_PAIRS * (LONGEST_PAIRS // MOST_SYMBOLS))]] | None,
    Query(
        min_length=1,
        max_length=_MOST_PAIRS,
        description=f"`data_type:symbol`, separated by commas, at most {_MOST_PAIRS}; may be repeated. Without it, "
        "what the user watches, and it follows what the user begins and stops watching.",
        examples=[["equity_quote:AAPL,fx_rate:EUR/USD"]],
    ),
]
LastEventId = Annotated[
    str | None,
    Header(max_length=200, description="The id of the last event that was read: the stream resumes after it."),
]

_EVENTS = """Server-Sent Events. `price` is a new price, `freshness` a change of whether the latest price is fresh or of
why it is not, `missing` a pair without a price. The first events are the state of each pair; then comes `ready`.
`missed` says that events are left out; the state of each pair follows. `left` is a pair that the user has stopped
watching. Between events come comments."""

_EVENT = {
    "type": "object",
    "properties": {
        "event": {"enum": ["price", "freshness", "missing", "ready", "missed", "left"]},
        "data": {"type": "string", "description": "JSON."},
        "id": {"type": "string"},
        "retry": {"type": "integer"},
    },
}
"""One event, for the OpenAPI document."""


class EventStream(Response):
    """A response that lasts: it sends the events of its stream until the client leaves or the stream ends."""

    media_type = "text/event-stream"

    def __init__(self, hub: StreamHub, stream: Stream) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._hub, self._stream = hub, stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until one of the two ends it."""
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            with self._stream.scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._await_end, receive)
                    await self._send_events(send)
                    tasks.cancel_scope.cancel()
        finally:
            self._hub.leave(self._stream)
        with anyio.move_on_after(1):  # or it is gone
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _await_end(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stream.scope.cancel()

    async def _send_events(self, send: Send) -> None:
        text = _BEGINNING
        while True:
            with anyio.move_on_after(_PATIENCE_SECONDS) as waiting:
                await send({"type": "http.response.body", "body": text, "more_body": True})
            if waiting.cancelled_caught:
                return
            if self._stream.is_overrun:
                self._hub.request_states(self._stream)
            text = self._stream.take()
            while not text:
                with anyio.move_on_after(_COMMENT_SECONDS) as silence:
                    await self._stream.changes()
                if self._stream.is_overrun:
                    self._hub.request_states(self._stream)
                text = self._stream.take()
                if not text and silence.cancelled_caught:
                    text = self._comment()

    def _comment(self) -> bytes:
        """A comment that keeps the connection open, behind the id up to which all events are sent.

        No empty line follows: some readers take each for the end of an event.
        """
        last = self._hub.last_id(self._stream)
        return (b"" if last is None else f"id: {last}\n".encode()) + b": nothing new\n"


@router.get(
    "/stream",
    response_class=Response,
    responses={200: {"description": _EVENTS, "content": {"text/event-stream": {"schema": _EVENT}}}},
)
async def stream(
    request: Request,
    caller: Watcher,
    _: Reader,
    pairs: Pairs = None,
    currency: Currency = None,
    last_event_id: LastEventId = None,
) -> EventStream:
    """New prices and changes of freshness of pairs, as they come. While it is open, its user watches them, and with
    `currency` also the exchange rates that convert their prices.
    """
    hub: StreamHub = request.app.state.streams
    token = request.headers["authorization"].split(" ", 1)[1].strip()
    wanted = set(each_pair(pairs, _MOST_PAIRS)) if pairs is not None else None
    into = None if currency is None else Target.named(currency)
    last = read_id(last_event_id)
    return EventStream(hub, await hub.open(token, caller.token.name, caller.user, wanted, last, into))
