"""The order in which providers get the threads of a process: the most urgent work first, and none waits forever."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pricing_pipeline.db.errors import LOCKED_PAGE

_LOG = logging.getLogger(__name__)
_PATIENCE_SECONDS = 5.0
"""The longest wait of a provider for a thread while more urgent ones are busy."""
_SHORT_SECONDS = 0.25
_LOCKED_SECONDS = 4.0
"""How long a provider is passed over after another session has locked its row: at first, and at most."""


@dataclass(frozen=True, slots=True)
class _PassedOver:
    """A provider with a locked row: until when (by the monotonic clock) and for how long it is passed over."""

    until: float
    seconds: float


class FairOrder:
    """Remembers which providers wait for a thread, and which have a locked row. All times are monotonic."""

    def __init__(self) -> None:
        self._passed_over: dict[str, _PassedOver] = {}
        self._waiting_since: dict[str, float] = {}

    def in_turn(self, waiting: Iterable[str], busy: Mapping[str, int], now: float) -> list[str]:
        """The providers in their given order, but first those that have waited too long for a thread."""
        since = {name: self._waiting_since.get(name, now) for name in waiting if not busy.get(name)}
        self._waiting_since = since
        return sorted(waiting, key=lambda name: min(since.get(name, now) + _PATIENCE_SECONDS, now))

    def note_turn(self, provider: str) -> None:
        """The provider is offered threads, and waits for none."""
        self._waiting_since.pop(provider, None)

    def is_passed_over(self, provider: str, now: float) -> bool:
        """Whether the provider's row was found locked a moment ago."""
        passed = self._passed_over.get(provider)
        return passed is not None and now < passed.until

    def pass_over(self, provider: str) -> None:
        """The provider's row is locked: go on with the others, and try again in a while."""
        before = self._passed_over.get(provider)
        seconds = _SHORT_SECONDS if before is None else min(2 * before.seconds, _LOCKED_SECONDS)
        self._passed_over[provider] = _PassedOver(time.monotonic() + seconds, seconds)
        # Another worker's claim takes a moment: only a lasting lock is worth a warning.
        if before is not None and before.seconds == _SHORT_SECONDS:
            _LOG.warning("%s is passed over, because another session has locked its row; %s", provider, LOCKED_PAGE)

    def note_unlocked(self, provider: str) -> None:
        """The provider's row is not locked, or no longer."""
        passed = self._passed_over.pop(provider, None)
        if passed is not None and passed.seconds > _SHORT_SECONDS:
            _LOG.warning("%s is no longer locked", provider)
