"""The settings and the database as commands use them: opened for one command, described without its password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pricing_pipeline import settings as environment
from pricing_pipeline.db import embedded, engine, location
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.processes import home

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from pricing_pipeline.settings import Settings


def load_settings() -> Settings:
    """The settings of this command; raises SettingsError."""
    return environment.load_settings()


def with_sandbox(settings: Settings) -> Settings:
    """The settings, with the address at which the sandbox of a running pipeline answers: its port may be any."""
    if settings.sandbox_url is not None:
        return settings
    return settings.model_copy(update={"sandbox_url": home.urls(settings.home).get("sandbox")})


@contextmanager
def open_engine(settings: Settings | None = None, *, pool_size: int = 1) -> Iterator[Engine]:
    """Open the database that the settings name, for one command.

    Raises DatabaseError when it does not answer; of our own server it says how to start it.
    """
    settings = settings or load_settings()
    with _opened(settings, location.worker_url(settings), pool_size) as opened:
        yield opened


@contextmanager
def open_owner(settings: Settings | None = None) -> Iterator[Engine]:
    """Open it with the right to change the registry; raises DatabaseError as `open_engine` does."""
    settings = settings or load_settings()
    with _opened(settings, location.owner_url(settings), 1) as opened:
        yield opened


@contextmanager
def _opened(settings: Settings, url: str, pool_size: int) -> Iterator[Engine]:
    opened = engine.make_engine(url, pool_size=pool_size)
    try:
        yield opened
    except DatabaseError as error:
        raise explained(settings, error) from error
    finally:
        opened.dispose()


@contextmanager
def open_connection(settings: Settings | None = None) -> Iterator[Connection]:
    """Open one session for reading, without SQLAlchemy; raises DatabaseError as `open_engine` does."""
    settings = settings or load_settings()
    url = location.worker_url(settings)
    try:
        with engine.driver_session(url) as session:
            yield session
    except DatabaseError as error:
        raise explained(settings, error) from error


def explained(settings: Settings, error: DatabaseError) -> DatabaseError:
    """Say of our own server that it is not running, which a refused socket means."""
    if settings.database_url is None and not embedded.EmbeddedServer(settings.home).is_running:
        return DatabaseError(
            f"the database of {settings.home.absolute()} is not running. "
            "Start it with `pricing-pipeline up`, or set PRICING_DATABASE_URL to a server of your own."
        )
    return error
