"""The database as commands use it: opened for one command, described without its password, its errors in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, make_url
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import owner_url, worker_url
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.registry import reason
from pricing_pipeline.settings import Settings

RULES = {
    "symbol_is_sane": "a symbol has 1 to 40 letters, digits or . / : = ^ _ - and begins with a letter, a digit or ^",
    "user_is_sane": "a user's name has 1 to 200 characters",
    "data_type_is_plain_name": "a data type's name has 1 to 48 small letters, digits or _ and begins with a letter",
    "asset_class_is_plain_name": "an asset class has 1 to 48 small letters, digits or _ and begins with a letter",
    "ttl_is_positive": "a TTL is a whole number of minutes, at least 1",
    "fetcher_is_known": "a fetcher is quote, daily_bars or nav",
    "scheduled_types_have_a_schedule": "a scheduled type needs a schedule, and only a scheduled type has one",
    "data_type_registry_pkey": "a data type of this name is there already",
}
"""What the database's named constraints ask for, in words for those who typed the value."""

_NOT_MIGRATED = frozenset({"3F000", "42P01", "42703", "42883"})
"""A schema, table, column or function that does not exist."""


@contextmanager
def open_engine(settings: Settings, *, pool_size: int = 1) -> Iterator[Engine]:
    """Open the database that the settings name, for one command.

    Raises DatabaseError when it does not answer; of our own server it says how to start it.
    """
    with _opened(settings, worker_url(settings), pool_size) as engine:
        yield engine


@contextmanager
def open_owner(settings: Settings) -> Iterator[Engine]:
    """Open it with the right to change the registry; raises DatabaseError as `open_engine` does."""
    with _opened(settings, owner_url(settings), 1) as engine:
        yield engine


@contextmanager
def _opened(settings: Settings, url: str, pool_size: int) -> Iterator[Engine]:
    engine = make_engine(url, pool_size=pool_size)
    try:
        yield engine
    except DatabaseError as error:
        raise explained(settings, error) from error
    finally:
        engine.dispose()


@contextmanager
def open_connection(settings: Settings) -> Iterator[Connection]:
    """Open one connection for reading; raises DatabaseError as `open_engine` does."""
    with open_engine(settings) as engine, engine.connect() as connection:
        yield connection


def explained(settings: Settings, error: DatabaseError) -> DatabaseError:
    """Say of our own server that it is not running, which a refused socket means."""
    if settings.database_url is None and not EmbeddedServer(settings.home).is_running:
        return DatabaseError(
            f"the database of {settings.home.absolute()} is not running. "
            "Start it with `pricing-pipeline up`, or set PRICING_DATABASE_URL to a server of your own."
        )
    return error


def masked(url: str) -> str:
    """The address without its password, wherever in it that stands."""
    parsed = make_url(url).difference_update_query(["password", "sslpassword"])
    return parsed.render_as_string(hide_password=True)


def sentence(error: Exception) -> str | None:
    """What a database error means to whoever typed the command; None for other errors."""
    if not isinstance(error, DBAPIError):
        return None
    if getattr(error.orig, "sqlstate", None) in _NOT_MIGRATED:
        return f"the database is not up to date: {reason(error)}. Run `pricing-pipeline db upgrade`."
    diagnostics = getattr(error.orig, "diag", None)
    rule = RULES.get(getattr(diagnostics, "constraint_name", None) or "")
    said = rule or reason(error).strip()
    return said if said.endswith(".") else f"{said}."
