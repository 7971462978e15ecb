"""Connections: one SQLAlchemy engine per process, over psycopg 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import psycopg
from psycopg import errors
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DBAPIError

from pricing_pipeline.db.query_loader import named
from pricing_pipeline.errors import DatabaseError, ReadReplica, SettingsError

_CURSOR = "pricing_pipeline.cursor"

_KEEPALIVES = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Over TCP a server that is cut off is noticed within half a minute; on a socket libpq passes them over."""


def make_engine(url: str, *, pool_size: int = 5) -> Engine:
    """Make an engine for a libpq URL (`postgresql://...`, socket or TCP).

    Connections are checked before use, so that a restarted server goes unnoticed. Works behind PgBouncer in
    transaction mode. A session whose transaction idles for 30 s is ended by the server, a lock is waited for 2 s, and a
    statement may take 10 minutes.
    Raises SettingsError when the URL cannot be read; the password is never shown. To connect to a database that is
    not encoded in UTF8 raises DatabaseError.
    """
    engine = create_engine(
        checked_url(url).set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=pool_size,
        # A session plans each statement once: few sessions that work are faster than many that take turns.
        pool_use_lifo=True,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": 10,
            "application_name": "pricing-pipeline",
            # Behind PgBouncer the next transaction may meet a session in which nothing was prepared.
            "prepare_threshold": None,
            **_KEEPALIVES,
        },
    )
    # Before SQLAlchemy's own first look at the server, which stumbles over text that comes as bytes.
    event.listen(engine, "connect", _require_unicode, insert=True)
    event.listen(engine, "connect", _set_timeouts)
    event.listen(engine, "handle_error", _clear_error)
    return engine


def _set_timeouts(connection: Any, _record: object) -> None:
    connection.execute(named("session.set_timeouts"))
    connection.commit()


def _require_unicode(connection: Any, _record: object) -> None:
    """Refuse a database that cannot keep every text, or (SQL_ASCII) does not know what text it keeps."""
    encoding, name = connection.info.parameter_status("server_encoding"), connection.info.dbname
    if encoding != "UTF8":
        connection.close()
        raise DatabaseError(
            f"the database {name} is encoded in {encoding}, and only UTF8 works. Make one as an administrator: CREATE "
            f"DATABASE {name}_utf8 ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0 OWNER the_owner. Then name it in "
            "PRICING_DATABASE_URL (Dagster's in PRICING_DAGSTER_URL)."
        )


class KeptSession:
    """A session that a thread keeps for as long as it lives; it is taken from the engine's pool when first used.

    In a session that the pool hands out for each statement, what runs every second would be planned again and again,
    for a tenth of a second in all.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """The session's connection; what fails on it ends the session, and the next use begins another."""
        if self._connection is None or self._connection.closed:
            self._connection = self._engine.connect()
        try:
            yield self._connection
            self._connection.commit()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Give the session back to the pool."""
        if self._connection is not None:
            self._connection.close()


def autocommitting(engine: Engine) -> Engine:
    """The same engine, on whose connections each statement is a transaction of its own: one round trip, not three."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def is_autocommitting(connection: Connection) -> bool:
    """Whether each statement on it is a transaction of its own."""
    return bool(connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT")


def driver_rows(
    connection: Connection, statement: str, parameters: Mapping[str, Any], *, is_binary: bool = False
) -> list[tuple[Any, ...]]:
    """Run a statement (parameters as `%(name)s`) by the driver itself, in the connection's transaction.

    For what runs hundreds of times a second: SQLAlchemy's own way takes another third of a millisecond. Errors are the
    same as there: DatabaseError when the server does not answer, ReadReplica, else DBAPIError. `is_binary`: rows come
    in PostgreSQL's binary format, in which thousands of numbers are read faster.
    """
    driver = _driver(connection)
    try:
        if is_binary:
            return driver.execute(statement, parameters, binary=True).fetchall()
        return _cursor(connection, driver).execute(statement, parameters).fetchall()
    except psycopg.Error as error:
        _raise_as_sqlalchemys(connection, driver, statement, error)


def driver_copy(connection: Connection, statement: str, rows: bytes) -> None:
    """Run a `COPY ... FROM STDIN` by the driver, in the connection's transaction; errors are those of `driver_rows`.

    Where another transaction has stored one of the rows meanwhile, that is a serialization failure: try it all again.
    """
    driver = _driver(connection)
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(rows)
    except psycopg.errors.UniqueViolation as error:
        conflict = psycopg.errors.SerializationFailure(
            f"another transaction stored the same rows in this moment: {error}. Store them again."
        )
        raise DBAPIError.instance(statement, None, conflict, psycopg.Error) from error
    except psycopg.Error as error:
        _raise_as_sqlalchemys(connection, driver, statement, error)


def _cursor(connection: Connection, driver: psycopg.Connection[Any]) -> psycopg.Cursor[Any]:
    """The session's cursor for small results; it keeps the last one. A new cursor learns anew how to read each type."""
    kept: psycopg.Cursor[Any] | None = connection.info.get(_CURSOR)
    if kept is None or kept.connection is not driver:
        kept = connection.info[_CURSOR] = driver.cursor()
    return kept


def _driver(connection: Connection) -> psycopg.Connection[Any]:
    """The driver's connection, within a transaction."""
    if not connection.in_transaction():
        connection.begin()
    driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
    return driver


def _raise_as_sqlalchemys(
    connection: Connection, driver: psycopg.Connection[Any], statement: str, error: psycopg.Error
) -> NoReturn:
    is_disconnect = driver.closed or connection.dialect.is_disconnect(error, connection.connection, None)  # type: ignore[arg-type]
    if is_disconnect:
        connection.invalidate(error)
    _raise_clear(connection.engine.url, error, is_disconnect=is_disconnect)
    raise DBAPIError.instance(statement, None, error, psycopg.Error) from error


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
    if not isinstance(context.original_exception, Exception):
        return  # Ctrl-C, or the end of a run, in the middle of a statement: the session is lost, and not the server
    is_disconnect = context.is_disconnect or context.connection is None
    # A failed ping is no error yet: the pool answers it with a new session. To raise here would prevent that.
    url = context.engine.url if context.engine else None
    _raise_clear(url, context.original_exception, is_disconnect=is_disconnect and not context.is_pre_ping)


def _raise_clear(url: URL | None, error: BaseException, *, is_disconnect: bool) -> None:
    """Say in plain words that no server answers, or that it takes no writes. Leaves all else to the caller."""
    address = masked(url) if url is not None else "its address"
    if isinstance(error, errors.ReadOnlySqlTransaction):
        raise ReadReplica(
            f"the database at {address} takes no writes: it is a read replica, or set read-only. "
            "Point PRICING_DATABASE_URL at the primary."
        ) from error
    if is_disconnect:
        lines = str(error).strip().splitlines() or ["no reason given"]
        raise DatabaseError(
            f"the database at {address} does not answer: {lines[0]}. "
            "Check that the server runs and that PRICING_DATABASE_URL is right."
        ) from error
