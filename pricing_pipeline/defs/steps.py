"""Log the progress of a run's tasks, and why the providers that they wait for are not called."""

from __future__ import annotations

import time
from collections.abc import Callable

import dagster as dg
from sqlalchemy import Connection, Engine

from pricing_pipeline.demand.backfills import Progress

_LOOK_SECONDS = 5.0
_REPEATED_SECONDS = 60.0
"""How often a run says the same again: a silent run counts as hanging."""
_PATIENCE_SECONDS = 180.0
"""How long a run that fetches now waits without a task done while providers are stopped. A pause is often shorter."""


class Steps:
    """Logs the progress of some tasks when it changes, and each minute while it does not.

    `waits_for` says why providers of open tasks are not called, a sentence for each; `stops` are the last of these.
    """

    def __init__(
        self,
        context: dg.OpExecutionContext | dg.AssetExecutionContext,
        engine: Engine,
        data_type: str,
        waits_for: Callable[[Connection], list[str]],
    ) -> None:
        self._context = context
        self._engine = engine
        self._data_type = data_type
        self._waits_for = waits_for
        self._open: int | None = None
        self._looked_at = self._said_at = float("-inf")
        self._said = ""
        self._moved_at = 0.0
        self.stops: list[str] = []

    def say(self, progress: Progress) -> None:
        """Log the progress if it is new; it is read every few seconds."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS and not progress.is_finished:
            return
        self._looked_at = now
        has_moved = progress.open != self._open
        self._open = progress.open
        self.stops = [] if has_moved or progress.is_finished else self._reasons()
        if not self.stops:
            self._moved_at = now
        done = progress.tasks - progress.open
        words = f"{self._data_type}: {done} of {progress.tasks} tasks done, {progress.failed} failed"
        words = "; it waits: ".join([words, *self.stops])
        if words != self._said or now - self._said_at >= _REPEATED_SECONDS:
            self._said, self._said_at = words, now
            self._context.log.info(words)

    def is_stopped(self, progress: Progress) -> bool:
        """The same; and whether providers have been stopped for minutes, while no task was done."""
        self.say(progress)
        return time.monotonic() - self._moved_at >= _PATIENCE_SECONDS and bool(self.stops)

    def _reasons(self) -> list[str]:
        with self._engine.connect() as connection:
            return self._waits_for(connection)
