"""Whether each part of the pipeline works, judged by its signs of life.

`pricing.health` has the rule and all lengths of time. `/healthz`, `status`, the alert `unhealthy` and the metrics go by
it. `demand.freshness` says why a single price is old.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pricing_pipeline.db.engine import autocommitting
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import ReadReplica

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_STEP_SECONDS = 60.0
"""No part is late before two minutes."""

DATABASE = "database"
"""The part that is late when nobody can say how the others are."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the pipeline. `since` (UTC) is when it was last not late, if that is known.

    `says` tells why it is late, and may name providers and data types; the name of the part tells nothing of anybody.
    """

    part: str
    is_late: bool
    since: datetime | None
    says: str | None


def measure(connection: Connection) -> list[Part]:
    """All parts, in the order in which they depend on each other. It also works on a read replica."""
    return [Part(**row) for row in call_sql(connection, "health").mappings()]


class HealthWatch:
    """Measures again and again, and notices when the database's clock was set, or the machine slept.

    Then every sign of life is old although nothing has failed, so each part gets time to begin.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ahead: float | None = None

    def measure(self) -> list[Part]:
        """All parts, or an error of the database within two seconds, as far as it answers at all."""
        with self._engine.connect() as connection:
            connection.execute(query("session.limit"), {"limit": "1500ms"})
            now = connection.execute(query("health.now_epoch")).scalar_one()
            ahead = float(now) - time.monotonic()
            if self._ahead is not None and abs(ahead - self._ahead) > _STEP_SECONDS:
                with suppress(ReadReplica):
                    note_start(connection)
            connection.commit()
            self._ahead = ahead
            connection.execute(query("session.limit"), {"limit": "1500ms"})
            return measure(connection)


def late(parts: Sequence[Part]) -> list[Part]:
    """Those that are late."""
    return [part for part in parts if part.is_late]


def note_start(connection: Connection) -> None:
    """Note that the pipeline starts, or that the clock was set: each part has time to begin.

    A pipeline that restarts again and again before all its parts have worked gets that time only once.
    """
    call_sql(connection, "note_start")


@contextmanager
def ticking(engine: Engine, sensor: str) -> Iterator[None]:
    """Note that a sensor begins its tick, and how long it took unless it fails."""
    with autocommitting(engine).connect() as connection:
        call_sql(connection, "note_life", sensor)
    began = time.monotonic()
    yield
    with autocommitting(engine).connect() as connection:
        call_sql(connection, "note_life", sensor, time.monotonic() - began)
