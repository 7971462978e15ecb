"""The types of side effects: the fields of a payload, the number of attempts, and the time limit of one attempt.

The pipeline's own types are built in. Others are done by handlers of users' own (own_handlers.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import PricingError, UnknownOperationType

if TYPE_CHECKING:
    from sqlalchemy import Connection

KINDS = ("string", "number", "boolean", "object", "array", "url")
"""The types of a payload's fields; a `?` at the end makes a field optional."""


@dataclass(frozen=True, slots=True)
class OperationType:
    """One kind of side effect. `live` counts operations that wait or are under way."""

    operation_type: str
    description: str = ""
    payload_fields: Mapping[str, str] = field(default_factory=dict)
    max_attempts: int = 3
    time_limit_seconds: int = 30
    first_pause: timedelta = timedelta(minutes=5)
    is_active: bool = True
    is_built_in: bool = False
    takes_messages: bool = False
    live: int = 0
    recipients: tuple[str, ...] = ()


def stored(connection: Connection, name: str | None = None) -> list[OperationType]:
    """All types, the built-in ones first, or the one of this name, if there is one."""
    rows = connection.execute(query("operation_types.all"), {"operation_type": name}).mappings()
    return [OperationType(**{**row, "recipients": tuple(row["recipients"])}) for row in rows]


def find(connection: Connection, name: str) -> OperationType:
    """The type of this name. Raises UnknownOperationType."""
    for found in stored(connection, name):
        return found
    names = ", ".join(each.operation_type for each in stored(connection))
    raise UnknownOperationType(f"no operation type is called {name!r}. There are: {names}.")


def require_channel(connection: Connection, name: str) -> None:
    """Raise PricingError, which lists the known ones, for a type that cannot be a channel."""
    channels = [each.operation_type for each in stored(connection) if each.takes_messages]
    if name not in channels:
        raise PricingError(
            f"{name!r} is not a channel. There are: {', '.join(channels)}. One of your own is an operation type that "
            "takes the strings recipient, title and body, and needs nothing else."
        )


def add(connection: Connection, new: OperationType) -> None:
    """Add a type. Raises PricingError when one of this name already exists."""
    if connection.execute(query("operation_types.add"), _columns(new)).scalar_one_or_none() is None:
        raise PricingError(
            f"an operation type {new.operation_type!r} already exists. "
            f"`pricing-pipeline operation-type change {new.operation_type}` changes it."
        )


def change(connection: Connection, before: OperationType, after: OperationType) -> None:
    """Change a type. Raises PricingError for other fields of one that is built in, or of a channel."""
    if before.is_built_in and before.payload_fields != after.payload_fields:
        raise PricingError(
            f"{before.operation_type} is built in: its fields stay. "
            "`pricing-pipeline operation-type add` makes a type of your own. Nothing has changed."
        )
    connection.execute(query("operation_types.change"), _columns(after))


def remove(connection: Connection, name: str) -> None:
    """Forget a type that nothing needs any more. Raises UnknownOperationType, and PricingError when it is needed."""
    found = find(connection, name)
    if connection.execute(query("operation_types.remove"), {"operation_type": name}).scalar_one_or_none():
        return
    raise PricingError(f"{name} is not removed: {_why_needed(found)}. Nothing has changed.")


def _why_needed(found: OperationType) -> str:
    if found.is_built_in:
        return f"it is built in. `pricing-pipeline operation-type change {found.operation_type} --inactive` stops it"
    if found.recipients:
        return f"it is the channel of {', '.join(found.recipients)}. `pricing-pipeline recipient remove` ends that"
    return (
        f"{found.live} of its operations wait or are under way. `pricing-pipeline operation cancel` ends those, and "
        f"`pricing-pipeline operation-type change {found.operation_type} --inactive` takes no new ones"
    )


def _columns(new: OperationType) -> dict[str, object]:
    return {**asdict(new), "payload_fields": json.dumps(dict(new.payload_fields))}
