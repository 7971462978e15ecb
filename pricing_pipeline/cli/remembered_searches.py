"""What searches have found, kept in the home for some minutes, so that `--add` costs no second call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pricing_pipeline.errors import SupervisorError
from pricing_pipeline.own_files import NotPrivate, read_private, replace_own
from pricing_pipeline.processes.home import prepare_home
from pricing_pipeline.providers.searches import Listing

_FOR = timedelta(minutes=10)
_MOST = 20


def remember(home: Path, asked: str, words: str, found: Sequence[Listing]) -> None:
    """Keep what was found. It is no fault if that cannot be written: the next search makes a call."""
    entry = {
        "asked": asked,
        "words": words,
        "at": datetime.now(UTC).isoformat(),
        "found": [asdict(one) for one in found],
    }
    kept = [one for one in _kept(home) if (one["asked"], one["words"]) != (asked, words)]
    with suppress(OSError, SupervisorError):
        prepare_home(home)
        replace_own(_file(home), json.dumps([*kept, entry][-_MOST:]))


def recall(home: Path, asked: str, words: str) -> tuple[list[Listing], float] | None:
    """What the last search for these words has found, and how many seconds ago; None if that is too long ago."""
    for entry in _kept(home):
        if (entry["asked"], entry["words"]) == (asked, words):
            age = datetime.now(UTC) - datetime.fromisoformat(entry["at"])
            if timedelta(0) <= age <= _FOR:
                return [Listing(**one) for one in entry["found"]], age.total_seconds()
    return None


def _kept(home: Path) -> list[dict[str, Any]]:
    try:
        kept: list[dict[str, Any]] = json.loads(read_private(_file(home)))
        for entry in kept:
            datetime.fromisoformat(entry["at"]).astimezone(UTC)
            [Listing(**one) for one in entry["found"]]
            entry["asked"], entry["words"]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, NotPrivate):
        return []
    return kept


def _file(home: Path) -> Path:
    return home / "searches.json"
