"""A named lock that one session of all that share a database can hold: for work that must not overlap itself.

The pipeline's own duties do not use it: on a server that nobody has closed, any login can take an advisory lock. They
lock rows (`pricing.turns`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import DatabaseError, LockHeld, LockLost


class HeldLock:
    """A lock that this process holds, as long as its session lives."""

    def __init__(self, name: str, connection: Connection) -> None:
        self._name = name
        self._connection = connection

    def check(self) -> None:
        """Ask the server whether the lock is still ours. Raises LockLost when its session is gone.

        Work that takes long asks before each step that must not be done twice.
        """
        try:
            self._connection.execute(query("advisory_lock.keep"))
        except (DatabaseError, SQLAlchemyError) as error:
            raise LockLost(
                f"the lock {self._name} is lost, for its session has ended ({error}); another process may have begun "
                "the same work. Stop here, look at what was done, and start again."
            ) from error


@contextmanager
def advisory_lock(engine: Engine, name: str) -> Iterator[HeldLock]:
    """Hold the lock `name` for the block; it goes on success, on error, and when the process dies.

    Never waits: raises LockHeld at once when anyone holds it, this process included. Raises LockLost at the end of a
    block during which its session was lost (the server restarted, the network was cut); an error of the block itself
    goes before that. The lock belongs to a transaction on a connection of its own, so that no pool, PgBouncer's
    neither, can keep it by mistake; that transaction has no snapshot and holds back no vacuum.
    """
    with engine.connect() as connection:
        connection.begin()
        if not connection.execute(query("advisory_lock.take"), {"name": name}).scalar_one():
            raise LockHeld(f"{name} is at work already, in this process or another; wait until it has ended.")
        lock = HeldLock(name, connection)
        lock.check()  # being a second statement, it also ends the snapshot of the first one
        try:
            yield lock
            lock.check()
        except BaseException:
            _end(connection)  # here, so that the loss of the session does not hide the error
            raise


def _end(connection: Connection) -> None:
    try:
        connection.rollback()
    except (DatabaseError, SQLAlchemyError):
        connection.invalidate()
