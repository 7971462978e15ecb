"""A named lock that one session of all that share a database can hold: for work that must not overlap itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import LockHeld


@contextmanager
def advisory_lock(engine: Engine, name: str) -> Iterator[None]:
    """Hold the lock `name` for the block; it goes on success, on error, and when the process dies.

    Never waits: raises LockHeld at once when anyone holds it, this process included. The lock belongs to a
    transaction on a connection of its own, so that no pool, PgBouncer's neither, can keep it by mistake; that
    transaction has no snapshot and holds back no vacuum.
    """
    with engine.connect() as connection, connection.begin():
        if not connection.execute(query("advisory_lock.take"), {"name": name}).scalar_one():
            raise LockHeld(f"{name} is at work already, in this process or another; wait until it has ended.")
        connection.execute(query("advisory_lock.keep"))
        yield
