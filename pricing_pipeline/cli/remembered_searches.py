"""Results of searches, kept in the home for some minutes, so that `--add` costs no second call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import AwareDatetime, ConfigDict, TypeAdapter

from pricing_pipeline.errors import SupervisorError
from pricing_pipeline.local_files.own_files import NotPrivate, read_private, replace_own
from pricing_pipeline.processes.home import prepare_home
from pricing_pipeline.providers.searches import Listing

_FOR = timedelta(minutes=10)
_MOST = 100


@dataclass(frozen=True, slots=True)
class _Search:
    asked: str
    words: str
    at: AwareDatetime
    found: list[Listing]


_SEARCHES = TypeAdapter(list[_Search], config=ConfigDict(strict=True))


def remember(home: Path, asked: str, words: str, found: Sequence[Listing]) -> None:
    """Remember what was found. If that cannot be written, the next search makes a call."""
    entry = _Search(asked, words.lower(), datetime.now(UTC), list(found))
    kept = [one for one in _kept(home) if (one.asked, one.words) != (entry.asked, entry.words)]
    with suppress(OSError, SupervisorError):
        prepare_home(home)
        replace_own(_file(home), _SEARCHES.dump_json([*kept, entry][-_MOST:]).decode())


def recall(home: Path, asked: str, words: str) -> tuple[list[Listing], float] | None:
    """What the last search for these words has found, and how many seconds ago; None if that is too long ago."""
    for entry in _kept(home):
        if (entry.asked, entry.words) == (asked, words.lower()):
            age = datetime.now(UTC) - entry.at
            if timedelta(0) <= age <= _FOR:
                return entry.found, age.total_seconds()
    return None


def _kept(home: Path) -> list[_Search]:
    try:
        return _SEARCHES.validate_json(read_private(_file(home)))
    except (OSError, ValueError, NotPrivate):  # it can be searched for again
        return []


def _file(home: Path) -> Path:
    return home / "searches.json"
