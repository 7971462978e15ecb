"""What a refusal of the database means to whoever typed the command."""

from __future__ import annotations

from psycopg import errors
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import reason

_NOT_MIGRATED = (
    errors.InvalidSchemaName,
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
)


def sentence(error: Exception) -> str | None:
    """What a database error means to whoever typed the command; None for other errors."""
    if not isinstance(error, DBAPIError):
        return None
    if isinstance(error.orig, _NOT_MIGRATED):
        return f"the database is not up to date: {reason(error)}. Run `pricing-pipeline db upgrade`."
    if isinstance(error.orig, errors.NumericValueOutOfRange):
        return f"a number is larger than the database can hold: {reason(error)}."
    text = reason(error).strip()
    return text if text.endswith((".", "?", "!")) else f"{text}."
