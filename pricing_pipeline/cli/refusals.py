"""What a refusal of the database means to whoever typed the command."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from pricing_pipeline.registry import reason

RULES = {
    "symbol_is_sane": "a symbol has 1 to 40 letters, digits or . / : = ^ _ - and begins with a letter, a digit or ^",
    "user_is_sane": "a user's name has 1 to 200 characters",
    "data_type_is_plain_name": "a data type's name has 1 to 48 small letters, digits or _ and begins with a letter",
    "asset_class_is_plain_name": "an asset class has 1 to 48 small letters, digits or _ and begins with a letter",
    "background_ttl_is_positive": "a background TTL is a whole number of minutes, at least 1",
    "ttl_is_positive": "a TTL is a whole number of minutes, at least 1",
    "key_name_is_plain": "a key's name has 1 to 48 small letters, digits, _ or - and begins with a letter or a digit",
    "key_limit_is_positive": "a limit is a whole number of units, at least 1",
    "key_limit_has_limit": "the provider has no limit of this name; see pricing.provider_limits",
    "fetcher_is_known": "a fetcher is quote, daily_bars, nav, profile, earnings, income_statement, dividends or splits",
    "scheduled_types_have_a_schedule": "a scheduled type needs a schedule, and only a scheduled type has one",
    "data_type_registry_pkey": "a data type of this name is there already",
}
"""What the database's named constraints ask for, in words for those who typed the value."""

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
    diagnostics = getattr(error.orig, "diag", None)
    rule = RULES.get(getattr(diagnostics, "constraint_name", None) or "")
    said = rule or reason(error).strip()
    return said if said.endswith(".") else f"{said}."
