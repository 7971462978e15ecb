"""Connections: one SQLAlchemy engine per process, over psycopg 3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, OperationalError

from pricing_pipeline.errors import DatabaseError, SettingsError


def make_engine(url: str, *, pool_size: int = 5) -> Engine:
    """Make an engine for a libpq URL (`postgresql://...`, socket or TCP).

    Connections are checked before use, so that a restarted server goes unnoticed.
    Raises SettingsError when the URL cannot be read; the password is never shown.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise SettingsError(
            "PRICING_DATABASE_URL is not a database URL. It looks like postgresql://user:password@host:5432/pricing"
        ) from None
    if parsed.get_backend_name() != "postgresql":
        raise SettingsError(
            f"PRICING_DATABASE_URL names {parsed.get_backend_name()!r}; only PostgreSQL 15 or newer works. "
            "It looks like postgresql://user:password@host:5432/pricing"
        )
    engine = create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        connect_args={"connect_timeout": 5, "application_name": "pricing-pipeline"},
    )
    event.listen(engine, "handle_error", _clear_error)
    return engine


def _clear_error(context: object) -> None:
    error = getattr(context, "original_exception", None)
    if getattr(context, "is_disconnect", False) or getattr(context, "connection", None) is None:
        engine = getattr(context, "engine", None)
        where = engine.url.render_as_string(hide_password=True) if engine is not None else "the database"
        raise DatabaseError(
            f"the database at {where} does not answer: {str(error).strip().splitlines()[0] if str(error).strip() else error}. "
            "Check that the server runs and that PRICING_DATABASE_URL is right."
        ) from error


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection for reads, in a transaction that is always rolled back."""
    with engine.connect() as connection:
        yield connection


__all__ = ["Connection", "Engine", "OperationalError", "make_engine", "reading"]
