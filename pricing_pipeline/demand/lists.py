"""Lists: pairs of a user under one name. Reading a list watches its pairs, like a heartbeat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.demand import instruments, viewers
from pricing_pipeline.errors import PricingError, UnknownList

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_PAIRS = 500
"""Pairs of a list: what one request for prices reads."""
MOST_LISTS = 100
"""Lists of a user."""
Pair = tuple[str, str]
"""A data type and a symbol."""


def add(connection: Connection, user_id: str, name: str, pairs: Sequence[Pair]) -> list[Pair]:
    """Put pairs on a list, all of them or none, and watch them. A new name makes a new list.

    Returns all that the list has now, symbols as their instruments are spelled. New symbols become instruments, as by
    a heartbeat, which also says what is refused: PairsRefused, CapExceeded. Raises PricingError for a list that would
    be too long, or one list too many; the database refuses a bad name.
    """
    taken = viewers.heartbeat(connection, user_id, pairs, all_or_nothing=True).taken(pairs)
    call_sql(connection, "lock_allowance", user_id)  # so that the user's sessions count one after the other
    parameters = {
        "user_id": user_id,
        "list": name,
        "data_types": [data_type for data_type, _ in taken],
        "symbols": [symbol for _, symbol in taken],
    }
    connection.execute(query("lists.add"), parameters)
    known = of_user(connection, user_id)
    if len(known[name]) > MOST_PAIRS:
        raise PricingError(
            f"the list {name!r} would have {len(known[name])} pairs of a data type and a symbol; a list has "
            f"at most {MOST_PAIRS}. Put some on another list"
        )
    if len(known) > MOST_LISTS:
        raise PricingError(
            f"the user {user_id} would have {len(known)} lists; a user has at most {MOST_LISTS}. Remove one"
        )
    return known[name]


def of_user(connection: Connection, user_id: str) -> dict[str, list[Pair]]:
    """What each list of a user has, by data type and symbol."""
    found = defaultdict[str, list[Pair]](list)
    for row in connection.execute(query("lists.pairs"), {"user_id": user_id, "list": None}):
        found[row.list].append((row.data_type, row.symbol))
    return found


def watch(connection: Connection, user_id: str, name: str) -> list[Pair]:
    """Return the pairs of a list, and note that the user looks at it now. Raises UnknownList.

    The pairs are watched for five minutes, as after a heartbeat, and within the user's caps: others stay unwatched.
    """
    rows = connection.execute(query("lists.pairs"), {"user_id": user_id, "list": name}).all()
    if not rows:
        raise unknown(connection, user_id, name)
    pairs = [(row.data_type, row.symbol) for row in rows]
    viewers.heartbeat(connection, user_id, pairs)
    return pairs


def remove(connection: Connection, user_id: str, name: str, symbols: Sequence[str] | None = None) -> int:
    """Take symbols off a list, or remove the list; returns the number of removed pairs. Raises UnknownList.

    Pairs that it caused to be watched stay watched until their five minutes are over.
    """
    spelled = None if symbols is None else instruments.all_spelled_anywhere(connection, symbols)
    parameters = {"user_id": user_id, "list": name, "symbols": spelled}
    known = of_user(connection, user_id)
    if name not in known:
        raise unknown(connection, user_id, name)
    return connection.execute(query("lists.remove"), parameters).rowcount


def unknown(connection: Connection, user_id: str, name: str) -> UnknownList:
    """The error for a list that a user does not have."""
    names = ", ".join(of_user(connection, user_id)) or "none yet"
    return UnknownList(
        f"no list of {user_id} is called {name!r}. There are: {names}. `pricing-pipeline list add NAME SYMBOLS` "
        "or POST /v1/lists/add makes one."
    )
