"""The log of every provider call: the evidence that limits were kept. It has no keys.

Calls are numbered as they arrive and are in the log from then on; status, bytes and duration follow when
they end.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import asdict, dataclass
from itertools import takewhile

from pricing_pipeline.sandbox.calls import ProviderCall
from pricing_pipeline.sandbox.limits import Charge

_DAYS = (
    ("start_date", "end_date"),
    ("startDate", "endDate"),
    ("from", "to"),
    ("period1", "period2"),
    ("localDateStart", "localDateEnd"),
    ("startDateTime", "endDateTime"),
)
"""The parameters of the first and the last day of a history, in all dialects."""
_MOST_CALLS = 200_000


@dataclass(slots=True)
class CallRecord:
    """One call. `status` stays None while it runs, and for ever when the client left before an answer."""

    seq: int
    epoch: float
    """Arrival by the sandbox's clock, in epoch seconds."""
    monotonic: float
    """Arrival in seconds of the machine's monotonic clock: what windows are measured by."""
    provider: str
    path: str
    symbols: tuple[str, ...]
    days: tuple[str, str] | None
    """First and last day asked for, as the client spelt them; None when it did not name both."""
    units: int
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


class CallLog:
    """Keeps the last `memory` calls."""

    def __init__(self, memory: int = _MOST_CALLS) -> None:
        self._lock = threading.Lock()
        self._calls: deque[CallRecord] = deque(maxlen=memory)
        self.reset()

    def reset(self) -> None:
        """Forget all calls. Numbers begin at 1 again."""
        with self._lock:
            self._calls.clear()
            self._seq = 0

    def begin(self, provider: str, call: ProviderCall, charge: Charge | None) -> CallRecord:
        """Write a call down as it arrives, with what it was charged: nothing with a wrong key."""
        with self._lock:
            self._seq += 1
            record = CallRecord(
                seq=self._seq,
                epoch=call.now.timestamp(),
                monotonic=time.monotonic(),
                provider=provider,
                path=f"/{call.endpoint}",
                symbols=call.symbols,
                days=_days(call),
                units=0 if charge is None else charge.units,
                key_name=None if charge is None else charge.key_name,
                refused=charge is not None and charge.exceeds is not None,
            )
            self._calls.append(record)
        return record

    def end(self, record: CallRecord, status: int | None, sent: int) -> None:
        """Complete a call: its status (None when the client left) and the bytes of the body sent."""
        record.status, record.bytes = status, sent
        record.milliseconds = round((time.monotonic() - record.monotonic) * 1000, 3)

    def calls(self, provider: str | None = None, since: int = 0, limit: int = 1000) -> list[dict[str, object]]:
        """Calls numbered above `since`, oldest first, the first `limit` of one provider or of all."""
        with self._lock:
            newer = takewhile(lambda record: record.seq > since, reversed(self._calls))
            records = [record for record in newer if provider in (None, record.provider)]
        return [asdict(record) for record in records[::-1][:limit]]


def _days(call: ProviderCall) -> tuple[str, str] | None:
    named = ((call.params[first], call.params[last]) for first, last in _DAYS if {first, last} <= call.params.keys())
    return next(named, None)
