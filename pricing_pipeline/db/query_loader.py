"""Loads the named queries of `queries/*.sql`.

A query stands under a line `-- name: <name>` followed by its one-line purpose; it is asked for as
`<file>.<name>`. All SQL text of the project lives there or in `functions/`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from sqlalchemy import TextClause, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def query(name: str) -> TextClause:
    """Return a named query to execute, parsed once in a process; KeyError when there is none."""
    return text(named(name))


@cache
def driver_query(name: str) -> str:
    """Return a named query as the driver wants it, with `%(name)s` for parameters; KeyError when there is none."""
    return str(query(name).compile(dialect=PGDialect_psycopg()))  # type: ignore[no-untyped-call]


def named(name: str) -> str:
    """Return the text of a named query; KeyError when there is none."""
    return _load()[name]


@cache
def _load() -> dict[str, str]:
    queries = {}
    for path in sorted((Path(__file__).parent / "queries").glob("*.sql")):
        _, *parts = _NAME.split(path.read_text())
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            queries[f"{path.stem}.{name}"] = body.strip()
    return queries
