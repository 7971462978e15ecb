"""The database as commands use it: opened for one command, described without its password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import owner_url, worker_url
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.settings import Settings


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
