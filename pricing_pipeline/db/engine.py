"""Connections: one SQLAlchemy engine per process, over psycopg 3, or a session of the driver for a short command.

SQLAlchemy is imported by what uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast
from weakref import finalize

import psycopg
from psycopg import errors

from pricing_pipeline.db.driver_session import DriverSession
from pricing_pipeline.db.notices import HeardWarnings
from pricing_pipeline.db.query_loader import named
from pricing_pipeline.errors import DatabaseError, ReadReplica, SettingsError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine
    from sqlalchemy.engine import ExceptionContext

_CURSOR = "pricing_pipeline.cursor"
_SETTING = "pricing_pipeline_setting"

_KEEPALIVES = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Over TCP, a lost server is noticed within half a minute; libpq ignores these on a socket."""

_CONNECT_ARGS: Mapping[str, Any] = {
    "application_name": "pricing-pipeline",
    # Behind PgBouncer, the next transaction may run in a session without the prepared statement.
    "prepare_threshold": None,
    **_KEEPALIVES,
}


def make_engine(
    url: str, *, pool_size: int = 5, connect_timeout: int = 10, setting: str = "PRICING_DATABASE_URL"
) -> Engine:
    """Make an engine for a libpq URL (`postgresql://...`, socket or TCP) that was given as `setting`.

    Connections are checked before use, so that a restarted server causes no errors. Works behind PgBouncer in
    transaction mode. The server ends a session whose transaction idles for 30 s; a wait for a lock ends after 2 s, and
    a statement after 10 minutes; nothing is compiled (jit). Warnings of the database are counted, also those of a
    transaction that is rolled back; disposing of the engine, or the end of the process, writes the last counts. Raises
    SettingsError if the URL cannot be read, without showing the password. Connecting to a database with another
    encoding than UTF8 raises DatabaseError.
    """
    from sqlalchemy import create_engine, event

    engine = create_engine(
        checked_url(url, setting).set(drivername="postgresql+psycopg"),
        pool_size=pool_size,
        max_overflow=pool_size,
        # A session plans each statement once: few busy sessions are faster than many that take turns.
        pool_use_lifo=True,
        pool_pre_ping=True,
        connect_args={**_CONNECT_ARGS, "connect_timeout": connect_timeout},
        execution_options={_SETTING: setting},
    )
    # First, because SQLAlchemy's own first query fails if text comes as bytes.
    event.listen(engine, "connect", _require_unicode, insert=True)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "handle_error", _clear_error)
    arguments, options = engine.dialect.create_connect_args(engine.url)
    options = {**options, **_CONNECT_ARGS, "connect_timeout": 5, "autocommit": True}
    heard = HeardWarnings(partial(psycopg.connect, *arguments, **options))
    event.listen(engine, "connect", lambda connection, _: connection.add_notice_handler(heard.hear))
    event.listen(engine, "engine_disposed", lambda _: heard.close())
    finalize(engine, heard.close)  # also when the process ends
    return engine


@contextmanager
def driver_session(url: str, *, setting: str = "PRICING_DATABASE_URL") -> Iterator[Connection]:
    """Open one session of the driver (a DriverSession), set as those of `make_engine` are. Raises what they raise."""
    address = url if _PLAIN.fullmatch(url) else libpq_url(checked_url(url, setting))

    def explain(statement: str, error: psycopg.Error, driver: psycopg.Connection[Any] | None = None) -> NoReturn:
        _raise_clear(address, setting, error, is_disconnect=driver is None or driver.broken)
        _raise_as_sqlalchemys(statement, error)

    connect = partial(psycopg.connect, address, **_CONNECT_ARGS)
    heard = HeardWarnings(partial(connect, connect_timeout=5, autocommit=True))
    try:
        driver = connect(connect_timeout=10)
        _require_unicode(driver, None)
        _set_up(driver, None)
    except psycopg.Error as error:
        explain("", error)
    driver.add_notice_handler(heard.hear)
    try:
        yield cast("Connection", DriverSession(driver, partial(explain, driver=driver)))
    finally:
        driver.close()
        heard.close()


_PART = "(?:[^@/?#,:+%\\s\\0]|%[0-9A-Fa-f]{2})*"
_PLAIN = re.compile(f"postgres(ql)?://({_PART}(:{_PART})?@)?{_PART}(:[0-9]+)?/{_PART}([?]{_PART})?")
"""A URL of one server, which libpq reads as SQLAlchemy does."""


def _set_up(connection: Any, _record: object) -> None:
    try:
        connection.execute(named("session.set_up"))
        connection.commit()
    except BaseException:
        # If the server dies right now, the pool would forget the session and not end it.
        connection.close()
        raise


def _require_unicode(connection: Any, _record: object) -> None:
    """Refuse a database that cannot store every text, or (SQL_ASCII) does not know the encoding of its text."""
    encoding, name = connection.info.parameter_status("server_encoding"), connection.info.dbname
    if encoding != "UTF8":
        connection.close()
        raise DatabaseError(
            f"the database {name} is encoded in {encoding}, and only UTF8 works. Make one as an administrator: CREATE "
            f"DATABASE {name}_utf8 ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0 OWNER the_owner. Then name it in "
            "PRICING_DATABASE_URL (Dagster's in PRICING_DAGSTER_URL)."
        )


class KeptSession:
    """A session that a thread keeps while it lives, taken from the engine's pool at its first use.

    If the pool lent another session for each statement, the statements of every second would be planned again and
    again, for a tenth of a second in total.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = None

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """The session's connection. An error ends the session, and the next use begins another."""
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
    """The same engine, with each statement in its own transaction: one round trip, not three."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def is_autocommitting(connection: Connection) -> bool:
    """Whether each statement is its own transaction."""
    return bool(connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT")


def driver_rows(
    connection: Connection, statement: str, parameters: Mapping[str, Any], *, is_binary: bool = False
) -> list[tuple[Any, ...]]:
    """Run a statement (parameters as `%(name)s`) with the driver, in the connection's transaction.

    Use it for statements that run hundreds of times a second: SQLAlchemy takes another third of a millisecond. It
    raises the same errors: DatabaseError if the server does not answer, ReadReplica, else DBAPIError. With `is_binary`
    rows come in PostgreSQL's binary format, which is faster for thousands of numbers.
    """
    driver = _driver(connection)
    try:
        if is_binary:
            return driver.execute(statement, parameters, binary=True).fetchall()
        return _cursor(connection, driver).execute(statement, parameters).fetchall()
    except psycopg.Error as error:
        raise_as_sqlalchemys(connection, driver, statement, error)


def driver_copy(connection: Connection, statement: str, rows: bytes) -> None:
    """Run a `COPY ... FROM STDIN` with the driver, in the connection's transaction; raises what `driver_rows` raises.

    If another transaction has stored one of the rows meanwhile, it raises a serialization failure: repeat all of it.
    """
    driver = _driver(connection)
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(rows)
    except psycopg.errors.UniqueViolation as error:
        conflict = psycopg.errors.SerializationFailure(
            f"another transaction stored the same rows at the same time: {error}. Store them again."
        )
        _raise_as_sqlalchemys(statement, conflict)
    except psycopg.Error as error:
        raise_as_sqlalchemys(connection, driver, statement, error)


def driver_lines(
    connection: Connection, statement: str, parameters: Mapping[str, Any]
) -> Iterator[bytes | bytearray | memoryview]:
    """Run a `COPY ... TO STDOUT` (parameters as `%(name)s`) with the driver, in the connection's transaction.

    Pieces come as they are sent; all of them must be taken. Raises what `driver_rows` raises.
    """
    driver = _driver(connection)
    try:
        with driver.cursor() as cursor, cursor.copy(statement, parameters) as copy:
            yield from copy
    except psycopg.Error as error:
        raise_as_sqlalchemys(connection, driver, statement, error)


def _cursor(connection: Connection, driver: psycopg.Connection[Any]) -> psycopg.Cursor[Any]:
    """The session's cursor for small results; it keeps the last one. A new cursor must learn to read each type."""
    kept: psycopg.Cursor[Any] | None = connection.info.get(_CURSOR)
    if kept is None or kept.connection is not driver:
        kept = connection.info[_CURSOR] = driver.cursor()
    return kept


def _driver(connection: Connection) -> psycopg.Connection[Any]:
    """The driver's connection, within a transaction."""
    if isinstance(connection, DriverSession):
        return connection.driver
    if not connection.in_transaction():
        connection.begin()
    driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
    return driver


def raise_as_sqlalchemys(
    connection: Connection, driver: psycopg.Connection[Any], statement: str, error: psycopg.Error
) -> NoReturn:
    """Raise an error of the driver as the one that SQLAlchemy, or our engine, raises for it."""
    if isinstance(connection, DriverSession):
        connection.explain(statement, error)
    is_disconnect = driver.closed or connection.dialect.is_disconnect(error, connection.connection, None)  # type: ignore[arg-type]
    if is_disconnect:
        connection.invalidate(error)
    _raise_clear(*_origin(connection.engine), error, is_disconnect=is_disconnect)
    _raise_as_sqlalchemys(statement, error)


def _raise_as_sqlalchemys(statement: str, error: psycopg.Error) -> NoReturn:
    from sqlalchemy.exc import DBAPIError

    raise DBAPIError.instance(statement, None, error, psycopg.Error) from error


def checked_url(url: str, setting: str = "PRICING_DATABASE_URL") -> URL:
    """Parse a URL that was given as `setting`.

    Raises SettingsError, which never shows the password, when it names no PostgreSQL database.
    """
    from sqlalchemy.exc import ArgumentError

    example = "It looks like postgresql://user:password@host:5432/pricing, with %40 for an @ in the password"
    try:
        parsed = parsed_url(url)
    except (ArgumentError, ValueError):  # ValueError: a port that is not a number
        raise SettingsError(f"{setting} is not a database URL. {example}") from None
    if parsed.get_backend_name() not in ("postgresql", "postgres"):  # libpq reads both
        raise SettingsError(
            f"{setting} names {parsed.get_backend_name()!r}; only PostgreSQL 15 or newer works. {example}"
        )
    return parsed


def parsed_url(url: str | URL) -> URL:
    """Parse a libpq URL; with several hosts it means the server that takes writes.

    The hosts are written as libpq writes them (`host1:5432,host2:5432`) or as parameters (`?host=h1,h2&port=p1,p2`).
    Unless the URL says otherwise, `target_session_attrs` is read-write: without it, libpq takes the first host that
    answers, which after a failover may be a standby. Raises ArgumentError or ValueError if it is not a URL, also if a
    part of its password would be taken for a host: a host's name is looked up, and shown in messages.
    """
    from sqlalchemy import URL, make_url

    if isinstance(url, URL):
        return url
    if _UNCLEAR.search(url):
        raise ValueError("a part of the password would be taken for a host")
    several = _SEVERAL_HOSTS.match(url)
    if several is not None:
        places = [re.fullmatch(r"(\[[^]]*\]|[^:]*)(?::([0-9]*))?", place) for place in several["hosts"].split(",")]
        if not all(places):
            raise ValueError("a port is not a number")
        hosts = ",".join(place[1].strip("[]") for place in places if place)
        ports = ",".join(place[2] or "" for place in places if place)
        rest = url[several.end() :]
        parsed = make_url(several["before"] + rest).update_query_dict({"host": hosts, "port": ports})
    else:
        parsed = make_url(url)
    named_hosts = parsed.query.get("host", "")
    if not isinstance(named_hosts, str) or "," in named_hosts:
        return parsed.update_query_dict({"target_session_attrs": "read-write"} | dict(parsed.query))
    return parsed


_SEVERAL_HOSTS = re.compile(
    r"(?P<before>[a-z0-9+]+://(?P<user_and_password>[^@/?#]*@)?)(?P<hosts>[^@/?#,]+(?:,[^@/?#,]+)+)(?=[/?#]|$)"
)
_UNCLEAR = re.compile(r"@.*@|[/?&](user|password|sslpassword|host)=[^@]*@|://[^@/?#]*,[^@/?#]*[/?#][^@]*@", re.DOTALL)
"""An @ that is not written as %40, or a password with a comma and a slash beside it: read in one of two ways."""


def masked(url: str | URL) -> str:
    """The URL without its password, wherever the URL has it."""
    return _written(parsed_url(url).difference_update_query(["password", "sslpassword"]), hide_password=True)


def libpq_url(url: URL) -> str:
    """The URL with its password, as both libpq and SQLAlchemy read it."""
    return _written(url, hide_password=False)


def _written(url: URL, *, hide_password: bool) -> str:
    """SQLAlchemy writes a space before the query as it is, and in the query as a plus: libpq takes neither for one."""
    place, mark, parameters = url.render_as_string(hide_password=hide_password).partition("?")
    return place.replace(" ", "%20") + mark + parameters.replace("+", "%20")


def _clear_error(context: ExceptionContext) -> None:
    if not isinstance(context.original_exception, Exception):
        return  # Ctrl-C or the end of a run during a statement: the session is lost, not the server
    is_disconnect = context.is_disconnect or context.connection is None
    # After a failed ping the pool makes a new session; raising here would prevent that.
    _raise_clear(
        *_origin(context.engine),
        context.original_exception,
        is_disconnect=is_disconnect and not context.is_pre_ping,
    )


def _origin(engine: Engine | None) -> tuple[str | URL | None, str]:
    """The URL of an engine, and the setting that named it."""
    if engine is None:
        return None, "PRICING_DATABASE_URL"
    return engine.url, engine.get_execution_options().get(_SETTING, "PRICING_DATABASE_URL")


def _raise_clear(url: str | URL | None, setting: str, error: BaseException, *, is_disconnect: bool) -> None:
    """Raise a clear error if no server answers, or if it takes no writes; otherwise do nothing."""
    address = masked(url) if url is not None else "its address"
    if isinstance(error, errors.ReadOnlySqlTransaction):
        raise ReadReplica(
            f"the database at {address} takes no writes: it is a read replica, or set read-only. "
            f"Point {setting} at the primary."
        ) from error
    if is_disconnect:
        lines = str(error).strip().splitlines() or ["no reason given"]
        raise DatabaseError(
            f"the database at {address} does not answer: {lines[0]}. "
            f"Check that the server runs and that {setting} is right."
        ) from error
