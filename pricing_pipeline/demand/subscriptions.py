"""The client's side of watching: says for a user what is looked at, for as long as it is.

Views come and go; the manager counts them, so that two views of one price do not end each other's
subscription. Heartbeats go out in the background and survive a restart of the database.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import reason
from pricing_pipeline.demand import viewers
from pricing_pipeline.errors import CapExceeded, PricingError

Pair = tuple[str, str]
"""A data type and a symbol."""

HEARTBEAT_SECONDS = 60.0
RETRY_SECONDS = 5.0
_CLOSING_RETRY_SECONDS = 0.2
MOST_PAIRS = 10_000
"""As many as a call may name."""
_FEW = 100
"""Of so many pairs it does not matter which ones a refusal leaves for later."""

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""What no database can even be told: a NUL, or half a surrogate pair."""

_LOG = logging.getLogger(__name__)


class SubscriptionManager:
    """Keeps one user's subscriptions alive. Thread-safe; use it as a context manager, or close it.

    One is enough for all views of a user. Where a user has several, on two servers say, leaving a pair in one ends it
    for the others, too, until their next heartbeat.

    The first view of a pair subscribes at once, the last one to leave unsubscribes; in between a heartbeat
    a minute covers all pairs in one call. While the database is away nothing is lost: what is watched
    is said again every few seconds until it is heard. New pairs beyond what one user may begin in a minute
    follow as soon as there is room; those beyond what one user may watch at once are refused.
    """

    def __init__(self, engine: Engine, user_id: str, *, every: float = HEARTBEAT_SECONDS) -> None:
        """Raises PricingError for a user whose name no database can be told."""
        if _NO_TEXT.search(user_id):
            raise PricingError(f"{user_id!r:.60} is no user's name: it holds a NUL or half a surrogate pair.")
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
        """The pairs that at least one view looks at."""
        with self._changed:
            return frozenset(self._views)

    @property
    def refused(self) -> dict[Pair, str]:
        """Pairs that the database refused, with its reason."""
        with self._changed:
            return dict(self._refused)

    def enter(self, pairs: Iterable[Pair]) -> None:
        """A view of these pairs opens. Raises TypeError for what is no pair, PricingError after `close`."""
        entered = [_checked(pair) for pair in pairs]
        with self._changed:
            if self._closing:
                raise PricingError(f"the subscriptions of {self._user_id} are closed; make another manager.")
            for pair in entered:
                if _NO_TEXT.search("".join(pair)):
                    self._refuse(
                        pair, "it holds a NUL or half a surrogate pair, and no name of anything does"
                    )
                    continue
                if self._views[pair] == 0:
                    self._new.add(pair)
                    self._left.discard(pair)
                self._views[pair] += 1
            self._changed.notify()

    def leave(self, pairs: Iterable[Pair]) -> None:
        """A view of these pairs closes. Leaving what was not entered changes nothing."""
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
        """A view of these pairs that is open for the block."""
        self.enter(pairs)
        try:
            yield
        finally:
            self.leave(pairs)

    def close(self, timeout: float = 5.0) -> None:
        """Leave everything and end; what cannot be said within `timeout` seconds ends by itself after 5 minutes."""
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
            # What is known is said apart: new pairs that must wait do not keep it from being heard.
            heard = self._leave(left) and self._say(known)
            if heard:
                with self._changed:
                    self._left -= set(left)
                if is_due:
                    next_beat = time.monotonic() + self._every
            if closing:
                if heard or time.monotonic() >= self._gives_up_at:
                    return
                time.sleep(_CLOSING_RETRY_SECONDS)
            elif not (heard and self._say(new)):
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, min(RETRY_SECONDS, self._every))

    def _leave(self, left: Sequence[Pair]) -> bool:
        """Tell the database what is left; False when it must be told again."""
        try:
            if left:
                with self._engine.begin() as connection:
                    viewers.unsubscribe(connection, self._user_id, left)
        except Exception as error:  # as in `_say`
            return self._warn(error)
        return True

    def _say(self, entered: Sequence[Pair]) -> bool:
        """Tell the database; False when it could not be told and must be told again."""
        if len(entered) > MOST_PAIRS:
            return self._say_each(
                [entered[first : first + MOST_PAIRS] for first in range(0, len(entered), MOST_PAIRS)]
            )
        try:
            if entered:
                with self._engine.begin() as connection:
                    viewers.heartbeat(connection, self._user_id, entered)
        except CapExceeded as error:
            return self._say_what_fits(entered, error)
        except Exception as error:  # a pool that has no connection left, for one: heartbeats must go on
            if not _is_refusal(error):
                return self._warn(error)
            if len(entered) > 1:
                return self._say_each([[pair] for pair in entered])
            self._drop(entered[0], _words(error))
            return True
        with self._changed:
            self._new -= set(entered)
            for pair in entered:
                self._refused.pop(pair, None)
        return True

    def _say_each(self, parts: Sequence[Sequence[Pair]]) -> bool:
        # Not a generator: each is to be told, also when one before it could not be.
        return all([self._say(part) for part in parts])  # noqa: C419

    def _say_what_fits(self, entered: Sequence[Pair], refusal: CapExceeded) -> bool:
        """Say as many as may be said now; the rest later if waiting helps, else it is refused."""
        if len(entered) > _FEW and not self._are_new(entered):
            # Some have lapsed, after an outage say, and count as new. Those that have not must be heard all the same.
            half = len(entered) // 2
            return self._say_each([entered[:half], entered[half:]])
        fits, rest = entered[: refusal.room], entered[refusal.room :]
        if refusal.retry_after is None:
            for pair in rest:
                self._drop(pair, str(refusal))
            return self._say(fits)
        _LOG.warning("%d of the pairs that %s enters have to wait: %s", len(rest), self._user_id, refusal)
        if fits and len(fits) < len(entered):
            self._say(fits)
        return False

    def _are_new(self, entered: Sequence[Pair]) -> bool:
        with self._changed:
            return self._new.issuperset(entered)

    def _warn(self, error: Exception) -> bool:
        _LOG.warning("what %s watches could not be said, trying again soon: %s", self._user_id, _words(error))
        return False

    def _drop(self, pair: Pair, reason: str) -> None:
        with self._changed:
            self._refuse(pair, reason)
            self._views.pop(pair, None)
            self._new.discard(pair)

    def _refuse(self, pair: Pair, reason: str) -> None:
        _LOG.error("%s cannot watch %.60r of %.60r: %s", self._user_id, pair[1], pair[0], reason)
        self._refused[pair] = reason


def _checked(pair: Pair) -> Pair:
    match pair:
        case (str(), str()):
            return pair
    raise TypeError(f"a pair is a data type and a symbol, two strings, and not {pair!r:.200}")


def _is_refusal(error: Exception) -> bool:
    """The database understood, and said no: invalid data or a broken constraint."""
    sqlstate = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
    return sqlstate[:2] in ("22", "23")


def _words(error: Exception) -> str:
    return reason(error) if isinstance(error, DBAPIError) else str(error)
