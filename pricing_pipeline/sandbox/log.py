"""The log of every provider call: the evidence that limits were kept. It holds no key, only fingerprints.

Calls are numbered as they arrive and are in the log from then on; status, bytes and duration follow when
they end.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import TextIO

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.sandbox.calls import ProviderCall
from pricing_pipeline.sandbox.limits import WorstWindow

_DAYS = (
    ("start_date", "end_date"),
    ("startDate", "endDate"),
    ("from", "to"),
    ("period1", "period2"),
    ("localDateStart", "localDateEnd"),
    ("startDateTime", "endDateTime"),
)
"""What the dialects call the first and the last day of a history."""

WINDOWS = (1, 60)
"""Lengths in seconds of the sliding windows whose worst load is kept."""


@dataclass(slots=True)
class CallRecord:
    """One call. `status` stays None while it runs, and for ever when the client left before an answer."""

    seq: int
    at: str
    """Arrival by the sandbox's clock, ISO 8601 in UTC."""
    epoch: float
    """The same in epoch seconds."""
    monotonic: float
    """Arrival in seconds of the machine's monotonic clock: what windows are measured by."""
    provider: str
    path: str
    symbols: tuple[str, ...]
    days: tuple[str, str] | None
    """First and last day asked for, as the client spelt them; None when it did not name both."""
    units: int
    key: str | None
    """First 12 hex digits of the key's SHA-256."""
    key_name: str | None = None
    """Name of the key whose plan was charged."""
    refused: bool = False
    """Whether the plan refused it for being too much."""
    fault: str | None = None
    """Kinds of the injected faults, joined by commas."""
    status: int | None = None
    bytes: int = 0
    """Bytes of the body sent."""
    milliseconds: float | None = None


@dataclass(slots=True)
class _Totals:
    calls: int = 0
    units: int = 0
    refused: int = 0
    bytes: int = 0


class CallLog:
    """Keeps the last `memory` calls, totals over all, and a file of JSON lines if asked.

    Raises SettingsError when the file cannot be opened.
    """

    def __init__(
        self, memory: int, path: Path | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._calls: deque[CallRecord] = deque(maxlen=memory)
        self._file: TextIO | None = None
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._file = path.open("a", encoding="utf-8", buffering=1)
            except OSError as error:
                raise SettingsError(
                    f"the sandbox cannot write its log {path}: {error.strerror}. "
                    "Choose another file with --log."
                ) from error
        self.reset()

    def reset(self) -> None:
        """Forget all calls and totals; the file keeps what it has. Numbers begin at 1 again."""
        with self._lock:
            self._calls.clear()
            self._seq = 0
            self._totals: dict[str, _Totals] = {}
            self._worst: dict[str, dict[int, WorstWindow]] = {}

    def begin(
        self, provider: str, call: ProviderCall, units: int, *, refused: bool, key_name: str | None = None
    ) -> CallRecord:
        """Write a call down as it arrives, with what it was charged."""
        with self._lock:
            self._seq += 1
            record = CallRecord(
                seq=self._seq,
                at=_iso(call.now),
                epoch=call.now.timestamp(),
                monotonic=self._monotonic(),
                provider=provider,
                path=f"/{call.endpoint}",
                symbols=call.symbols,
                days=_days(call),
                units=units,
                key=fingerprint(call.key),
                key_name=key_name,
                refused=refused,
            )
            self._calls.append(record)
            totals = self._totals.setdefault(provider, _Totals())
            totals.calls += 1
            totals.units += units
            totals.refused += refused
            worst = self._worst.setdefault(provider, {seconds: WorstWindow(seconds) for seconds in WINDOWS})
            for window in worst.values():
                window.add(record.monotonic, units)
        return record

    def end(self, record: CallRecord, status: int | None, sent: int) -> None:
        """Complete a call: its status (None when the client left) and the bytes of the body sent."""
        record.status, record.bytes = status, sent
        record.milliseconds = round((self._monotonic() - record.monotonic) * 1000, 3)
        with self._lock:
            if totals := self._totals.get(record.provider):
                totals.bytes += sent
            if self._file is not None:
                self._file.write(json.dumps(asdict(record)) + "\n")

    def calls(
        self, provider: str | None = None, since: int = 0, limit: int = 1000
    ) -> list[dict[str, object]]:
        """Calls numbered above `since`, oldest first, the first `limit` of one provider or of all."""
        with self._lock:
            newer = takewhile(lambda record: record.seq > since, reversed(self._calls))
            records = [record for record in newer if provider in (None, record.provider)]
        return [asdict(record) for record in records[::-1][:limit]]

    def stats(self) -> dict[str, dict[str, int]]:
        """Totals for each provider, and the most units in any sliding window of 1 s and 60 s."""
        with self._lock:
            return {
                provider: asdict(totals)
                | {
                    f"worst_units_in_{seconds}s": window.worst
                    for seconds, window in self._worst[provider].items()
                }
                for provider, totals in self._totals.items()
            }

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def fingerprint(key: str | None) -> str | None:
    """A fingerprint that tells keys apart without revealing them."""
    return None if key is None else hashlib.sha256(key.encode()).hexdigest()[:12]


def _days(call: ProviderCall) -> tuple[str, str] | None:
    named = (
        (call.params[first], call.params[last])
        for first, last in _DAYS
        if {first, last} <= call.params.keys()
    )
    return next(named, None)


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
