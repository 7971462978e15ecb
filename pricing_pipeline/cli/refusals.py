"""What a refusal of the database means to whoever typed the command."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from pricing_pipeline.registry.data_type_registry import reason

_NOT_MIGRATED = frozenset({"3F000", "42P01", "42703", "42883"})
"""A schema, table, column or function that does not exist."""

_TOO_LARGE = "22003"


def sentence(error: Exception) -> str | None:
    """What a database error means to whoever typed the command; None for other errors."""
    if not isinstance(error, DBAPIError):
        return None
    if getattr(error.orig, "sqlstate", None) in _NOT_MIGRATED:
        return f"the database is not up to date: {reason(error)}. Run `pricing-pipeline db upgrade`."
    if getattr(error.orig, "sqlstate", None) == _TOO_LARGE:
        return f"a number is larger than the database can hold: {reason(error)}."
    said = reason(error).strip()
    return said if said.endswith((".", "?", "!")) else f"{said}."
