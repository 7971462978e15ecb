"""The client's side of watching: keeps a user's subscriptions alive while views are open.

The manager counts the views of each pair, so that closing one view does not end the subscription of another. It sends
heartbeats in the background and survives a restart of the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import is_of_values, reason
from pricing_pipeline.demand import viewers
from pricing_pipeline.demand.viewers import is_storable, storable
from pricing_pipeline.errors import PricingError

Pair = tuple[str, str]
"""A data type and a symbol."""

HEARTBEAT_SECONDS = 60.0
RETRY_SECONDS = 5.0
_CLOSING_RETRY_SECONDS = 0.2
MOST_PAIRS = 10_000
"""How many pairs one call may name."""

_LOG = logging.getLogger(__name__)


class SubscriptionManager:
    """Keeps one user's subscriptions alive. Thread-safe; use it as a context manager, or close it.

    One manager is enough for all views of a user. If a user has several, on two servers for example, leaving a pair in
    one also ends it for the others, until their next heartbeat.

    The first view of a pair subscribes at once, the last one to leave unsubscribes; in between, one call a minute sends
    the heartbeats of all pairs. While the database is away nothing is lost: the manager tries again every few seconds.
    New pairs above the user's limit per minute follow later; pairs above the user's limit at once are refused.
    """

    def __init__(self, engine: Engine, user_id: str, *, every: float = HEARTBEAT_SECONDS) -> None:
        """Raises PricingError for a user name that the database cannot store."""
        if not is_storable(user_id):
            raise PricingError(f"{user_id!r:.60} is not a user's name: it holds a NUL or half a surrogate pair.")
        self._engine = engine
        self._user_id = user_id
        self._every = every
        self._views: Counter[Pair] = Counter()
        self._new: set[Pair] = set()
        self._left: set[Pair] = set()
        self._refused: dict[Pair, str] = {}
        self._changed = threading.Condition()
        self._closing = False
        self._gives_up_at = 0.0
        self._thread = threading.Thread(target=self._run, name=f"heartbeats of {user_id}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def watched(self) -> frozenset[Pair]:
        """The pairs with at least one view."""
        with self._changed:
            return frozenset(self._views)

    @property
    def refused(self) -> dict[Pair, str]:
        """Pairs that the database refused, with its reason."""
        with self._changed:
            return dict(self._refused)

    def enter(self, pairs: Iterable[Pair]) -> None:
        """Open a view of these pairs. Raises TypeError if one is not a pair, and PricingError after `close`."""
        entered = [_checked(pair) for pair in pairs]
        with self._changed:
            if self._closing:
                raise PricingError(f"the subscriptions of {self._user_id} are closed; make another manager.")
            for pair in entered:
                if self._views[pair] == 0:
                    self._new.add(pair)
                    self._left.discard(pair)
                self._views[pair] += 1
            self._changed.notify()

    def leave(self, pairs: Iterable[Pair]) -> None:
        """Close a view of these pairs. Leaving a pair without a view changes nothing."""
        with self._changed:
            for pair in pairs:
                if self._views[pair] > 1:
                    self._views[pair] -= 1
                elif self._views.pop(pair, 0):
                    self._new.discard(pair)
                    self._left.add(pair)
            self._changed.notify()

    @contextmanager
    def watching(self, *pairs: Pair) -> Iterator[None]:
        """Keep a view of these pairs open for the block."""
        self.enter(pairs)
        try:
            yield
        finally:
            self.leave(pairs)

    def close(self, timeout: float = 5.0) -> None:
        """Leave all pairs and stop; if that fails within `timeout` seconds, the subscriptions end after 5 minutes."""
        with self._changed:
            self._gives_up_at = time.monotonic() + timeout
            self._left |= set(self._views)
            self._views.clear()
            self._new.clear()
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout)

    def _run(self) -> None:
        next_beat = time.monotonic() + self._every
        while True:
            with self._changed:
                while not (self._new or self._left or self._closing) and time.monotonic() < next_beat:
                    self._changed.wait(next_beat - time.monotonic())
                is_due = time.monotonic() >= next_beat
                new, left = sorted(self._new), sorted(self._left)
                known = sorted(set(self._views) - self._new) if is_due else []
                closing = self._closing
            # Known pairs get their own call: new pairs that must wait do not delay their heartbeat.
            heard = self._leave(left) and self._send_heartbeats(known)
            if heard:
                with self._changed:
                    self._left -= set(left)
                if is_due:
                    next_beat = time.monotonic() + self._every
            if closing:
                if heard or time.monotonic() >= self._gives_up_at:
                    return
                time.sleep(_CLOSING_RETRY_SECONDS)
            elif not (heard and self._send_heartbeats(new)):
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, min(RETRY_SECONDS, self._every))

    def _leave(self, left: Sequence[Pair]) -> bool:
        """Unsubscribe from these pairs; False if it must be tried again."""
        try:
            if left:
                with self._engine.begin() as connection:
                    viewers.unsubscribe(connection, self._user_id, left)
        except Exception as error:  # as in `_send_heartbeats`
            return self._warn(error)
        return True

    def _send_heartbeats(self, entered: Sequence[Pair]) -> bool:
        """Send heartbeats for these pairs; False if some must be said again."""
        parts = [entered[first : first + MOST_PAIRS] for first in range(0, len(entered), MOST_PAIRS)]
        # Not a generator: each part is sent, even if an earlier one fails.
        return all([self._say_part(part) for part in parts])  # noqa: C419

    def _say_part(self, entered: Sequence[Pair]) -> bool:
        try:
            with self._engine.begin() as connection:
                answer = viewers.heartbeat(connection, self._user_id, entered)
        except Exception as error:  # a pool that has no connection left, for one: heartbeats must go on
            if not (isinstance(error, DBAPIError) and is_of_values(error)):
                return self._warn(error)
            for pair in entered:
                self._drop(pair, reason(error))
            return True
        told = answer.by_pair()
        must_wait = 0
        for pair in entered:
            refusal = told.get(storable(pair))
            if refusal is None or refusal.outcome != "refused":
                with self._changed:
                    self._new.discard(pair)
                    self._refused.pop(pair, None)
            elif refusal.retry_after is None:
                self._drop(pair, refusal.reason or "")
            else:
                must_wait += 1
        if must_wait:
            _LOG.warning("%d pairs of %s have to wait: %s", must_wait, self._user_id, answer.refusals)
        return not must_wait

    def _warn(self, error: Exception) -> bool:
        _LOG.warning("the heartbeats of %s could not be sent, trying again soon: %s", self._user_id, reason(error))
        return False

    def _drop(self, pair: Pair, reason: str) -> None:
        _LOG.error("%s cannot watch %.60r of %.60r: %s", self._user_id, pair[1], pair[0], reason)
        with self._changed:
            self._refused[pair] = reason
            self._views.pop(pair, None)
            self._new.discard(pair)


def _checked(pair: Pair) -> Pair:
    match pair:
        case (str(), str()):
            return pair
    raise TypeError(f"a pair is a data type and a symbol, two strings, and not {pair!r:.200}")
