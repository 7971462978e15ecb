"""Live streams as a program reads them: each in a thread, its events in a queue."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from pricing_client.events import Event, read_events
from pricing_pipeline_tests.support.api_server import Caller
from pricing_pipeline_tests.support.loopback import NO_TLS
from pricing_pipeline_tests.support.patience import PATIENCE


class OpenStream:
    """A stream that is being read. `last_id` is the id of the last event that was taken."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._events: queue.Queue[Event | None] = queue.Queue()
        self.last_id: str | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for event in read_events(self._response.iter_lines()):
                self._events.put(event)
        except httpx.TransportError:
            pass
        finally:
            self._events.put(None)

    def next(self, patience: float = PATIENCE) -> Event | None:
        """The next event with data; None at the end of the stream."""
        ends = time.monotonic() + patience
        while True:
            event = self._events.get(timeout=max(0.0, ends - time.monotonic()))
            if event is None:
                return None
            if event.id is not None:
                self.last_id = event.id or None
            if event.data is not None:
                return event

    def until(self, kind: str, patience: float = PATIENCE) -> list[Event]:
        """The events up to the first of a kind."""
        found: list[Event] = []
        while True:
            event = self.next(patience)
            assert event is not None, f"the stream ended before {kind}: {found}"
            found.append(event)
            if event.kind == kind:
                return found

    def so_far(self, silence: float = 1.2) -> list[Event]:
        """The events until nothing comes for so long."""
        found: list[Event] = []
        while True:
            try:
                event = self.next(silence)
            except queue.Empty:
                return found
            if event is None:
                return found
            found.append(event)


@contextmanager
def streaming(caller: Caller, last_id: str | None = None, **params: Any) -> Iterator[OpenStream]:
    """A stream of a caller, closed on leaving."""
    headers = {"Authorization": f"Bearer {caller.token}"} | ({"Last-Event-ID": last_id} if last_id else {})
    client = httpx.Client(base_url=caller.url, timeout=PATIENCE, verify=NO_TLS)
    with client, client.stream("GET", "/v1/stream", params=params, headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield OpenStream(response)


def tell(event: Event) -> tuple[Any, ...]:
    """What an event says, in short: its kind, symbol, price and freshness."""
    data = event.data
    return event.kind, data.get("symbol"), data.get("price"), data.get("fresh")
