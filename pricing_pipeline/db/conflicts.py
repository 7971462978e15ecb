"""What an error of the database says of the transaction: try it again, put it off, or the values are refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.errors import DatabaseError

T = TypeVar("T")

_ATTEMPTS = 3
_CONFLICT_SQLSTATES = frozenset({"40001", "40P01"})
_LOCKED_SQLSTATE = "55P03"
_NO_VERDICT_CLASSES = frozenset({"08", "25", "53", "57", "58", "XX"})
"""The server is in trouble (connection, read-only, resources, shutdown, damage): says nothing about the values."""


def transact(engine: Engine, work: Callable[[Connection], T]) -> T:
    """Run in one transaction, again when it was the victim of a deadlock or its session was lost.

    Only for work that a fence makes safe: had the lost one been committed after all, it would find nothing to do.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with engine.begin() as connection:
                return work(connection)
        except DatabaseError:
            if attempt == _ATTEMPTS:
                raise
            time.sleep(attempt)
        except DBAPIError as error:
            if attempt == _ATTEMPTS or not is_conflict(error):
                raise
    raise AssertionError("unreachable")


LOCKED_PAGE = 'docs/operations.md, "Something is locked", tells how to find that session'
"""What a message about a locked row ends with."""


def is_conflict(error: DBAPIError) -> bool:
    """Another session was in the way; the same transaction may well succeed."""
    return _sqlstate(error) in _CONFLICT_SQLSTATES


def is_locked(error: DBAPIError) -> bool:
    """Another session has locked a row and does not end; to try again at once is to wait again."""
    return _sqlstate(error) == _LOCKED_SQLSTATE


def is_refusal(error: DBAPIError) -> bool:
    """The values are to blame."""
    is_about_others = is_conflict(error) or is_locked(error)
    return not is_about_others and _sqlstate(error)[:2] not in _NO_VERDICT_CLASSES


def _sqlstate(error: DBAPIError) -> str:
    return getattr(error.orig, "sqlstate", None) or "XX000"
