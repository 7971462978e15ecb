"""What our Python processes write to their logs: each cause once an hour, within a daily budget.

A line that repeats tells nothing new, and fills the disk. The supervisor bounds the files
themselves.
"""

from __future__ import annotations

import logging
import re
import threading
import traceback
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime

BYTES_A_DAY = 1_000_000
"""Bytes that one process may write in a day, UTC."""
AGAIN_AFTER = 3600.0
"""Seconds until a cause that still repeats is told again, with how often it came meanwhile."""
_MOST_CAUSES = 256
_VARIES = re.compile(r"[0-9a-f]{8,}|\d+")
"""What differs between two lines of the same cause: ids, times and counts."""
_LONGEST_KEY = 300
_LINE_OVERHEAD = 100
"""Bytes of a line beside its message: the time, the level and the name of the logger."""
_FORMAT = "%(asctime)s %(levelname)s %(message)s"


@dataclass(slots=True)
class _Logged:
    at: float
    left_out: int = 0


class Frugal(logging.Filter):
    """Lets a record through if its cause is new, and if the budget of the day has room for it."""

    def __init__(self, bytes_a_day: int = BYTES_A_DAY) -> None:
        super().__init__()
        self._bytes_a_day = bytes_a_day
        self._day = ""
        self._spent = 0
        self._logged: OrderedDict[str, _Logged] = OrderedDict()
        # What spells a record, and whatever is collected as garbage meanwhile, may log something itself.
        self._lock = threading.RLock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written. Its message may get a note about what was left out."""
        try:
            record.msg, record.args = record.getMessage(), ()
        except (
            Exception
        ) as error:  # logging must not make its caller fail; the handlers of `logging` raise nothing, either
            record.msg, record.args = f"{record.msg!r} cannot be spelled: {error}", ()
        with self._lock:
            left_out = self._repeats(record)
            return left_out is not None and self._has_room(record, left_out)

    def _repeats(self, record: logging.LogRecord) -> int | None:
        """How often the cause came since it was told last; None if it is not to be told now."""
        cause = _cause_of(record)
        told = self._logged.get(cause)
        # A clock that was set back must not silence a cause until it is right again.
        if told is not None and 0 <= record.created - told.at < AGAIN_AFTER:
            told.left_out += 1
            return None
        self._logged[cause] = _Logged(record.created)
        self._logged.move_to_end(cause)
        if len(self._logged) > _MOST_CAUSES:
            self._logged.popitem(last=False)
        return told.left_out if told is not None else 0

    def _has_room(self, record: logging.LogRecord, left_out: int) -> bool:
        day = datetime.fromtimestamp(record.created, UTC).date().isoformat()
        if day != self._day:
            self._day, self._spent = day, 0
        if self._spent >= self._bytes_a_day:
            return False
        message = str(record.msg)
        if left_out:
            message += f" (and {left_out:,} more times since this was last logged)"
        self._spent += _size(record, message)
        if self._spent >= self._bytes_a_day:
            message = f"this log has used its {self._bytes_a_day:,} bytes for today. It goes on at midnight UTC"
            record.exc_info = record.exc_text = record.stack_info = None
        record.msg, record.args = message, ()
        return True


def start(level: int = logging.WARNING) -> None:
    """Write this process's records, and Python's own warnings, to standard error, within the budget."""
    handler = logging.StreamHandler()
    handler.addFilter(Frugal())
    logging.basicConfig(level=level, format=_FORMAT, handlers=[handler])
    logging.captureWarnings(True)


def _cause_of(record: logging.LogRecord) -> str:
    """A key that two records share if they differ only in requests and times."""
    words = _VARIES.sub("#", str(record.msg))[:_LONGEST_KEY]
    place = ""
    if record.exc_info and record.exc_info[1] is not None:
        frames = traceback.extract_tb(record.exc_info[2])
        place = f"{type(record.exc_info[1]).__name__} {frames[-1].filename if frames else ''}"
    return f"{record.name} {record.levelno} {words} {place}"


def _size(record: logging.LogRecord, message: str) -> int:
    size = _LINE_OVERHEAD + len(message.encode(errors="replace"))
    if record.exc_info and record.exc_info[1] is not None:
        size += sum(len(line.encode(errors="replace")) for line in traceback.format_exception(record.exc_info[1]))
    return size + len((record.stack_info or "").encode(errors="replace"))
