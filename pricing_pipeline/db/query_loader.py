"""Loads the named queries of `queries/*.sql`, and SQLAlchemy with the first that it executes.

A query stands under a line `-- name: <name>` followed by its one-line purpose; it is asked for as
`<file>.<name>`. A function of the database needs none: `call_sql` calls it by its name. All SQL text of the project
lives there or in `functions/`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, TextClause


_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w\\]):(\w+)(?![:\w])")


class Query:
    """A named query, which becomes SQLAlchemy's when SQLAlchemy first looks at it: importing it takes 0.2 s."""

    def __init__(self, sql: str) -> None:
        self.sql = sql

    def __getattr__(self, attribute: str) -> Any:
        return getattr(_parsed(self.sql), attribute)


@cache
def query(name: str) -> TextClause:
    """Return a named query to execute, parsed once in a process. Raises KeyError for an unknown name."""
    return cast("TextClause", Query(named(name)))


def call_sql(connection: Connection, function: str, *arguments: object) -> CursorResult[Any]:
    """Call a function of the schema `pricing` with its first arguments; the others have their defaults."""
    return connection.execute(_call(function, len(arguments)), {f"a{n}": a for n, a in enumerate(arguments)})


@cache
def _call(function: str, arguments: int) -> TextClause:
    parameters = ", ".join(f":a{number}" for number in range(arguments))
    return cast("TextClause", Query(named("session.call").format(function=function, arguments=parameters)))


@cache
def _parsed(sql: str) -> TextClause:
    from sqlalchemy import text

    return text(sql)


@cache
def driver_query(name: str) -> str:
    """Return a named query for the driver, with `%(name)s` for parameters. Raises KeyError for an unknown name."""
    return driver_sql(named(name))


@cache
def driver_sql(sql: str) -> str:
    """The same for the text of a query."""
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")).replace("\\:", ":")


def named(name: str) -> str:
    """Return the text of a named query. Raises KeyError for an unknown name."""
    return _load()[name]


@cache
def _load() -> dict[str, str]:
    queries = {}
    for path in sorted((Path(__file__).parent / "queries").glob("*.sql")):
        _, *parts = _NAME.split(path.read_text())
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            queries[f"{path.stem}.{name}"] = body.strip()
    return queries
