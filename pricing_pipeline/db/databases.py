"""Databases beside ours, on servers that are not ours."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.query_loader import named, query
from pricing_pipeline.errors import DatabaseError


def require_usable(url: str) -> None:
    """Raise DatabaseError when the database of `url` does not answer, or cannot keep every text."""
    engine = make_engine(url, pool_size=1)
    try:
        engine.connect().close()
    finally:
        engine.dispose()


def ensure_database(url: str, name: str) -> None:
    """Make a database on the server of `url`, for the role that it names, unless it is there.

    Raises DatabaseError when the role may not make one.
    """
    engine = make_engine(url, pool_size=1)
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if connection.execute(query("databases.exists"), {"name": name}).scalar_one():
                return
            quoted = engine.dialect.identifier_preparer.quote_identifier(name)
            connection.execute(text(named("databases.create").format(name=quoted)))
    except DBAPIError as error:
        raise DatabaseError(
            f"the database {name!r} is missing and this role may not make it: "
            f"{str(error.orig).splitlines()[0]}. As an administrator: CREATE DATABASE {name} "
            f"OWNER {engine.url.username}. Or set PRICING_DAGSTER_URL to another one."
        ) from error
    finally:
        engine.dispose()
