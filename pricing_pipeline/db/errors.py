"""Classify errors of the database (try again, put off, the values are refused), and word them for people.

Each error has a class of its own in psycopg.errors, by its SQLSTATE.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from psycopg import errors

from pricing_pipeline.db.rules import RULES
from pricing_pipeline.errors import DatabaseError, ReadReplica

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError

T = TypeVar("T")

_ATTEMPTS = 3
_NO_VERDICT_CLASSES = frozenset({"08", "25", "53", "57", "58", "XX"})
"""Errors of the server itself (connection, read-only, resources, shutdown, damage), not of the values."""


def statement_error() -> type[DBAPIError]:
    """The error that a statement raises, imported only when something is caught: SQLAlchemy takes long to import."""
    from sqlalchemy.exc import DBAPIError

    return DBAPIError


def transact(engine: Engine, work: Callable[[Connection], T]) -> T:
    """Run in one transaction, and repeat it after a deadlock or a lost session.

    Only for work behind a fence: if the lost transaction was committed after all, the repetition does nothing.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with engine.begin() as connection:
                return work(connection)
        except DatabaseError as error:
            raise_interruption(error)
            if attempt == _ATTEMPTS:
                raise
            time.sleep(attempt)
        except statement_error() as error:
            if attempt == _ATTEMPTS or not is_conflict(error):
                raise
    raise AssertionError("unreachable")


def raise_interruption(error: Exception) -> None:
    """Raise the Ctrl-C or end of a run that caused this error, if one did.

    An interrupted statement leaves a session that cannot be rolled back. The driver's error about that would hide the
    interruption, and loops that wait for the database would go on waiting.
    """
    earlier: BaseException | None = error
    while earlier is not None:
        if not isinstance(earlier, Exception):
            raise earlier
        earlier = earlier.__context__


def by_the_way(connection: Connection, request: Callable[[], T]) -> T | None:
    """The result of a request that accompanies a read; None where none is possible: on a replica, or for a read-only
    role."""
    try:
        with connection.begin_nested():
            return request()
    except statement_error() as error:
        if not isinstance(error.orig, errors.InsufficientPrivilege):
            raise
    except ReadReplica:
        pass
    return None


LOCKED_PAGE = 'docs/operations.md, "Something is locked", says how to find that session'
"""The end of a message about a locked row."""


def is_conflict(error: DBAPIError) -> bool:
    """Whether another session caused the error, so that the same transaction may succeed now."""
    return isinstance(error.orig, errors.SerializationFailure | errors.DeadlockDetected)


def is_locked(error: DBAPIError) -> bool:
    """Whether another session keeps a lock on a row: trying again at once would only wait again."""
    return isinstance(error.orig, errors.LockNotAvailable)


def is_refusal(error: DBAPIError) -> bool:
    """Whether the values caused the error. The driver itself refuses text with NUL, which has no SQLSTATE."""
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate is None:
        return isinstance(error.orig, errors.DataError)
    return not is_conflict(error) and not is_locked(error) and sqlstate[:2] not in _NO_VERDICT_CLASSES


def is_of_values(error: DBAPIError) -> bool:
    """Whether the values alone caused the error, not a lock or a missing right or function."""
    sqlstate = getattr(error.orig, "sqlstate", None)
    return is_refusal(error) and (sqlstate is None or sqlstate[:2] in ("22", "23"))


_NOT_MIGRATED = (
    errors.InvalidSchemaName,
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
)


def is_outdated(error: DBAPIError) -> bool:
    """Whether the database lacks a migration."""
    return isinstance(error.orig, _NOT_MIGRATED)


def sentence(error: Exception) -> str:
    """A database error as the error that its caller understands; of another error, its own words."""
    if not isinstance(error, statement_error()):
        return str(error)
    if is_outdated(error):
        return f"the database is not up to date: {reason(error).rstrip('.')}. Run `pricing-pipeline db upgrade`."
    if isinstance(error.orig, errors.NumericValueOutOfRange):
        return f"a number is larger than the database can hold: {reason(error)}."
    # These are PostgreSQL's words; functions of ours that wait have their own.
    if is_locked(error) and "lock timeout" in str(error.orig):
        return f"another session has locked what this needs. Try again; {LOCKED_PAGE}."
    text = reason(error).strip()
    return text if text.endswith((".", "?", "!")) else f"{text}."


def reason(error: Exception) -> str:
    """The database's own sentence with its hint, without the statement; for a constraint, the rule in words.

    Of an error that is not a statement's, its own words.
    """
    if not isinstance(error, statement_error()):
        return str(error)
    diagnostics = getattr(error.orig, "diag", None)
    message = getattr(diagnostics, "message_primary", None) or str(error.orig).splitlines()[0]
    if "cannot contain NUL" in message:  # the driver's words
        return "a text contains the character NUL, which the database cannot store"
    constraint = getattr(diagnostics, "constraint_name", None)
    # Functions refuse values with a sentence; for a table's constraint, PostgreSQL only gives its name.
    if constraint and f'"{constraint}"' in message:
        message = RULES.get(
            constraint,
            f"{getattr(diagnostics, 'table_name', None) or 'the database'} cannot have this value",
        )
    hint = getattr(diagnostics, "message_hint", None)
    return f"{message}. {hint}" if hint else str(message)
