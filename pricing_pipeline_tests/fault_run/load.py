"""The load: producers, viewers, readers, streams and messages. Each client continues whatever happens."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg

from pricing_pipeline_tests.fault_run.ledger import Key, Ledger
from pricing_pipeline_tests.fault_run.stage import RECIPIENT, Stage
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE
from pricing_pipeline_tests.support.loopback import NO_TLS

WATCHED = [(QUOTE, symbol) for symbol in ("AAPL", "META", "GOOG", "IBM", "MSFT", "TSLA", "NVDA", "AMD")]
WATCHED += [(FX, "EUR/USD"), (NAV, "118632"), (DAILY, "AAPL")]
_STREAMED = [pair for pair in WATCHED if pair[0] == QUOTE][:4]
_READERS = 8
_MOST_WAITING = 120
"""Tasks that may wait in the queue before producers pause."""
_TYPES = (QUOTE, QUOTE, QUOTE, DAILY, NAV)


class Told:
    """What one stream was told: the times of each pair's prices, since it last had to begin anew."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.prices: dict[Key, list[str]] = defaultdict(list)
        self.doubled = 0
        self.events = 0
        self._highest = -1

    def take(self, fields: dict[str, str]) -> None:
        """One event."""
        self.events += 1
        name, identity = fields.get("event"), fields.get("id")
        if name == "missed":
            self.prices.clear()
        elif name == "price":
            price = json.loads(fields["data"])
            pair = price["data_type"], price["symbol"]
            if not identity:
                self.prices[pair] = [price["observed_at"]]  # a state, from which it goes on
            else:
                position = int(identity.partition("-")[0])
                self.doubled += position <= self._highest
                self._highest = position
                self.prices[pair].append(price["observed_at"])
        if identity is not None:
            self.last_id = identity


class Load:
    """Begins and ends with its block."""

    def __init__(self, stage: Stage, ledger: Ledger, seed: int, streams: int, reads: int) -> None:
        """So many live streams, and so many reads of prices a second."""
        self._stage = stage
        self.ledger = ledger
        self._seed = seed
        self._reads = reads
        self._over = threading.Event()
        self._producing = threading.Event()
        self._producing.set()
        self.told = [Told() for _ in range(streams)]
        self.read = 0
        self.faults: list[str] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        work: list[Callable[[], None]] = [
            *(lambda number=number: self._produce(number) for number in range(2)),  # type: ignore[misc]
            *(lambda told=told, number=n: self._stream(told, number) for n, told in enumerate(self.told)),  # type: ignore[misc]
            *(self._read for _ in range(min(_READERS, self._reads))),
            self._watch,
            self._send,
        ]
        threads = [threading.Thread(target=self._go_on, args=(each,), daemon=True) for each in work]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join(15)

    def rest(self) -> None:
        """No more is asked for."""
        self._producing.clear()

    def _go_on(self, work: Callable[[], None]) -> None:
        while not self._over.is_set():
            try:
                work()
            except (psycopg.Error, httpx.HTTPError, HTTPException, OSError):
                self._over.wait(0.2)
            except Exception as error:
                self.faults.append(f"{type(error).__name__}: {error}")
                self._over.wait(0.5)

    # --- clients of the database ------------------------------------------------------------------

    def _produce(self, number: int) -> None:
        dice = random.Random(f"{self._seed} producer {number}")
        with psycopg.connect(self._stage.worker_url, connect_timeout=5) as connection:
            while not self._over.wait(dice.uniform(0.5, 1.5)):
                connection.rollback()
                waiting = connection.execute("SELECT count(*) FROM pricing.api_call_queue_live").fetchone()
                if self._producing.is_set() and waiting and waiting[0] < _MOST_WAITING:
                    self.enqueue(connection, self._names(number, dice), is_kept=dice.random() > 0.05)

    def _names(self, number: int, dice: random.Random) -> list[Key]:
        data_type = dice.choice(_TYPES)
        names = [next(_NUMBERS) for _ in range(dice.randint(1, 8))]
        if data_type == NAV:
            return [(NAV, str(200_000 + name)) for name in names[:2]]
        return [(data_type, f"P{number}N{name:06d}") for name in names]

    def enqueue(
        self,
        connection: psycopg.Connection[Any],
        keys: list[Key],
        *,
        priority: int = 1,
        is_kept: bool = True,
    ) -> bool:
        """Queue work in a transaction of its own; it is acknowledged when its commit returns."""
        data_type = keys[0][0]
        kind = self.ledger.attempt(len(keys)) if is_kept else ""
        if not is_kept:
            self.ledger.take_back(keys)
        row = connection.execute(
            "SELECT pricing.enqueue(%s, %s, %s)",
            [data_type, [symbol for _, symbol in keys], [priority] * len(keys)],
        ).fetchone()
        if not is_kept:
            connection.rollback()
            return False
        connection.commit()
        if row is None or row[0] != len(keys):
            return False  # of a retired type nothing is queued, and that is said
        self.ledger.acknowledge(kind, keys)
        return True

    def work_for(self, data_type: str, count: int, priority: int = 5) -> None:
        """More work of a type, as far as the database takes it now."""
        keys = [(data_type, f"B{next(_NUMBERS):06d}") for _ in range(count)]
        with (
            contextlib.suppress(psycopg.Error),
            psycopg.connect(self._stage.worker_url, connect_timeout=5) as connection,
        ):
            self.enqueue(connection, keys, priority=priority)

    def _send(self) -> None:
        with psycopg.connect(self._stage.worker_url, connect_timeout=5) as connection:
            while not self._over.wait(1.0):
                if self._producing.is_set():
                    self.send(connection)

    def send(self, connection: psycopg.Connection[Any], *, is_urgent: bool = False) -> str:
        """Queue a message; returns its text."""
        text = f"message {next(_NUMBERS)}"
        kind = self.ledger.attempt(1)
        row = connection.execute(
            "SELECT pricing.enqueue_message(%s, 'a title', %s, %s)", [RECIPIENT, text, is_urgent]
        ).fetchone()
        connection.commit()
        assert row is not None
        self.ledger.acknowledge_message(kind, row[0], text)
        return text

    # --- clients of the API -----------------------------------------------------------------------

    def _client(self, read_seconds: float = 5) -> httpx.Client:
        head = {"Authorization": f"Bearer {self._stage.token}"}
        timeout = httpx.Timeout(5, read=read_seconds)
        return httpx.Client(base_url=self._stage.api_url, headers=head, timeout=timeout, verify=NO_TLS)

    def _watch(self) -> None:
        pairs = [{"data_type": data_type, "symbol": symbol} for data_type, symbol in WATCHED]
        with self._client() as client:
            while True:
                client.post("/v1/heartbeat", params={"user": "ann"}, json={"pairs": pairs})
                if self._over.wait(5):
                    return

    def _read(self) -> None:
        symbols = ",".join(symbol for data_type, symbol in WATCHED if data_type == QUOTE)
        head = {"Authorization": f"Bearer {self._stage.token}"}
        pause = min(_READERS, self._reads) / self._reads
        address = urlsplit(self._stage.api_url)
        # httpx would take more of the machine than the API does.
        connection = HTTPConnection(address.hostname or "", address.port, timeout=5)
        with contextlib.closing(connection):
            due = time.monotonic()
            while not self._over.wait(max(0.0, due - time.monotonic())):
                due = max(due + pause, time.monotonic() - 1)
                connection.request("GET", f"/v1/prices?symbols={symbols}", headers=head)
                answer = connection.getresponse()
                answer.read()
                self.read += answer.status == HTTPStatus.OK

    def _stream(self, told: Told, number: int) -> None:
        pairs = ",".join(f"{data_type}:{symbol}" for data_type, symbol in _STREAMED)
        head = {"Last-Event-ID": told.last_id} if told.last_id else {}
        params = {"pairs": pairs, "user": f"streamer-{number}"}
        with (
            self._client(50) as client,
            client.stream("GET", "/v1/stream", params=params, headers=head) as got,
        ):
            if not got.is_success:
                self._over.wait(0.5)
                return
            fields: dict[str, str] = {}
            for line in got.iter_lines():
                if self._over.is_set():
                    return
                if line:
                    name, _, value = line.partition(":")
                    fields[name] = value.lstrip()
                else:
                    if "event" in fields:
                        told.take(fields)
                    fields = {}


_NUMBERS = count(1)


def urgent(connect: Callable[[], psycopg.Connection[Any]], act: Callable[[Any], Any], seconds: float) -> Any:
    """Do something in a session of its own, as often as it takes while the server may be away."""
    over = threading.Event()
    timer = threading.Timer(seconds, over.set)
    timer.start()
    try:
        while True:
            with contextlib.suppress(psycopg.Error), connect() as connection:
                return act(connection)
            if over.wait(0.1):
                return None
    finally:
        timer.cancel()
