"""In which order providers get the free threads of a process: the most urgent work first, and nobody waits for ever."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pricing_pipeline.db.errors import LOCKED_PAGE

_LOG = logging.getLogger(__name__)
_PATIENCE_SECONDS = 5.0
"""How long a provider with work waits for a thread, at most, while more urgent ones are busy."""
_SHORT_SECONDS = 0.25
_LOCKED_SECONDS = 4.0
"""How long a provider is passed over whose row another session has locked: at first, and at most."""


@dataclass(frozen=True, slots=True)
class _PassedOver:
    """A provider whose row is locked: until when (by the monotonic clock) and for how long it is passed over."""

    until: float
    seconds: float


class FairOrder:
    """Remembers which providers wait for a thread, and which are locked. All times are of the monotonic clock."""

    def __init__(self) -> None:
        self._passed_over: dict[str, _PassedOver] = {}
        self._waiting_since: dict[str, float] = {}

    def in_turn(self, waiting: Iterable[str], busy: Mapping[str, int], now: float) -> list[str]:
        """Providers with work as they come, but first those that have waited for a thread for too long."""
        since = {name: self._waiting_since.get(name, now) for name in waiting if not busy.get(name)}
        self._waiting_since = since
        return sorted(waiting, key=lambda name: min(since.get(name, now) + _PATIENCE_SECONDS, now))

    def has_turn(self, provider: str) -> None:
        """The provider is offered threads."""
        self._waiting_since.pop(provider, None)

    def is_passed_over(self, provider: str, now: float) -> bool:
        """Whether a look at the provider would only meet the lock again."""
        passed = self._passed_over.get(provider)
        return passed is not None and now < passed.until

    def pass_over(self, provider: str) -> None:
        """Another session has locked the provider's row: go on with the others, and look again in a while."""
        before = self._passed_over.get(provider)
        seconds = _SHORT_SECONDS if before is None else min(2 * before.seconds, _LOCKED_SECONDS)
        self._passed_over[provider] = _PassedOver(time.monotonic() + seconds, seconds)
        # A claim of another worker takes moments: only what stays locked is worth a word.
        if before is not None and before.seconds == _SHORT_SECONDS:
            _LOG.warning(
                "%s is passed over, for another session has locked its row; %s", provider, LOCKED_PAGE
            )

    def is_free(self, provider: str) -> None:
        """The provider's row is not locked, or no longer."""
        passed = self._passed_over.pop(provider, None)
        if passed is not None and passed.seconds > _SHORT_SECONDS:
            _LOG.warning("%s is no longer locked", provider)
