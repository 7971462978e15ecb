"""A named lock for work that must not overlap itself: only one session of a database can take it.

The pipeline's own duties do not use it, because any login of an open server can take an advisory lock. They lock rows
(`pricing.turns`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import DatabaseError, LockLost, LockUnavailable


class AdvisoryLock:
    """A lock that this process has while its session lives."""

    def __init__(self, name: str, connection: Connection) -> None:
        self._name = name
        self._connection = connection

    def check(self) -> None:
        """Ask the server whether the lock is still ours. Raises LockLost if its session has ended.

        Long work asks before each step that must not be done twice.
        """
        try:
            self._connection.execute(query("advisory_lock.keep"))
        except (DatabaseError, SQLAlchemyError) as error:
            raise LockLost(
                f"the lock {self._name} is lost, because its session has ended ({error}); another process may have "
                "begun the same work. Stop here, check the work so far, and start again."
            ) from error


@contextmanager
def advisory_lock(engine: Engine, name: str) -> Iterator[AdvisoryLock]:
    """Take the lock `name` for the block; it ends on success, on error, and when the process dies.

    Never waits: raises LockUnavailable at once if any process has it, this one included. Raises LockLost at the end of
    the block if its session was lost (the server restarted, the network was cut), unless the block itself raises. The
    lock belongs to a transaction on its own connection, so that no pool, not even PgBouncer's, can keep it by mistake.
    That transaction has no snapshot and does not delay vacuum.
    """
    with engine.connect() as connection:
        connection.begin()
        if not connection.execute(query("advisory_lock.take"), {"name": name}).scalar_one():
            raise LockUnavailable(f"{name} is at work already, in this process or another; wait until it has ended.")
        lock = AdvisoryLock(name, connection)
        lock.check()  # a second statement ends the snapshot of the first one
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
