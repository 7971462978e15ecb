"""Connections: one SQLAlchemy engine per process, over psycopg 3."""

from __future__ import annotations

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError

from pricing_pipeline.errors import DatabaseError, ReadReplica, SettingsError

_READ_ONLY = "25006"


def make_engine(url: str, *, pool_size: int = 5) -> Engine:
    """Make an engine for a libpq URL (`postgresql://...`, socket or TCP).

    Connections are checked before use, so that a restarted server goes unnoticed. Works behind PgBouncer in
    transaction mode.
    Raises SettingsError when the URL cannot be read; the password is never shown.
    """
    engine = create_engine(
        checked_url(url).set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=pool_size,
        # A session plans each statement once: few sessions that work are faster than many that take turns.
        pool_use_lifo=True,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": 5,
            "application_name": "pricing-pipeline",
            # Behind PgBouncer the next transaction may meet a session in which nothing was prepared.
            "prepare_threshold": None,
        },
    )
    event.listen(engine, "handle_error", _clear_error)
    return engine


def autocommitting(engine: Engine) -> Engine:
    """The same engine, on whose connections each statement is a transaction of its own: one round trip, not three."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def checked_url(url: str, setting: str = "PRICING_DATABASE_URL") -> URL:
    """Parse a URL that was given as `setting`.

    Raises SettingsError, which never shows the password, when it names no PostgreSQL database.
    """
    example = "It looks like postgresql://user:password@host:5432/pricing"
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # ValueError: a port that is no number
        raise SettingsError(f"{setting} is not a database URL. {example}") from None
    if parsed.get_backend_name() not in ("postgresql", "postgres"):  # libpq reads both
        raise SettingsError(
            f"{setting} names {parsed.get_backend_name()!r}; only PostgreSQL 15 or newer works. {example}"
        )
    return parsed


def masked(url: str | URL) -> str:
    """The address without its password, wherever in it that stands."""
    parsed = make_url(url).difference_update_query(["password", "sslpassword"])
    return parsed.render_as_string(hide_password=True)


def _clear_error(context: ExceptionContext) -> None:
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY:
        raise ReadReplica(
            f"the database at {_address(context)} takes no writes: it is a read replica, or set read-only. "
            "Point PRICING_DATABASE_URL at the primary."
        ) from context.original_exception
    # A failed ping is no error yet: the pool answers it with a new session. To raise here would prevent that.
    if context.is_pre_ping or not (context.is_disconnect or context.connection is None):
        return
    said = str(context.original_exception).strip().splitlines() or ["no reason given"]
    raise DatabaseError(
        f"the database at {_address(context)} does not answer: {said[0]}. "
        "Check that the server runs and that PRICING_DATABASE_URL is right."
    ) from context.original_exception


def _address(context: ExceptionContext) -> str:
    return masked(context.engine.url) if context.engine else "its address"
