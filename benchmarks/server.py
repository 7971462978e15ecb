"""The PostgreSQL server a benchmark runs on: our own, on a disk, with its durable settings, in a temporary home.

Databases for the questions are made here; what is put into them belongs to the questions. Workers need the statements
alone, so what starts a server and migrates is loaded where that is done.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from pricing_pipeline.db.embedded import EmbeddedServer

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_OWNER, _TEMPLATE = "pricing_owner", "migrated"


@contextmanager
def running(*, durable: bool = True) -> Iterator[BenchmarkServer]:
    """A fresh server that is removed with its files at the end; one that is not durable never waits for the disk."""
    from pricing_pipeline.db.embedded import EmbeddedServer

    home = Path(tempfile.mkdtemp(prefix="pricing-benchmark-"))
    home.chmod(0o711)  # a server started by root runs as another user, who must get in
    try:
        with EmbeddedServer(home, for_tests=not durable) as embedded:
            yield BenchmarkServer(embedded)
    finally:
        shutil.rmtree(home)


class BenchmarkServer:
    """Makes databases and connections."""

    def __init__(self, embedded: EmbeddedServer) -> None:
        self._embedded = embedded
        self._has_template = False

    def url(self, database: str) -> str:
        """Libpq URL of a database, as the role that owns it."""
        return self._embedded.url(database)

    def worker_url(self, database: str) -> str:
        """Libpq URL of a database, as the role that workers have, which may open more sessions than the owner."""
        return self._embedded.url(database, "worker")

    def empty(self, name: str) -> str:
        """Make a database anew, without anything in it; returns its URL."""
        self._make(name, "template1")
        return self.url(name)

    def _make(self, name: str, template: str) -> None:
        words = {
            "name": sql.Identifier(name),
            "owner": sql.Identifier(_OWNER),
            "template": sql.Identifier(template),
        }
        with self._admin() as admin:
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {name} WITH (FORCE)").format(**words))
            admin.execute(sql.SQL("CREATE DATABASE {name} OWNER {owner} TEMPLATE {template}").format(**words))

    def migrated(self, name: str, *, as_superuser: bool = False) -> str:
        """Make a database anew, as `pricing-pipeline up` does, with the sample registry; returns its URL."""
        if not self._has_template:
            from pricing_pipeline import sample
            from pricing_pipeline.db.migrate import upgrade

            template = self.empty(_TEMPLATE)
            upgrade(template)
            sample.load(template)
            self._has_template = True
        self._make(name, _TEMPLATE)
        return self._embedded.url(name, "superuser" if as_superuser else "owner")

    def checkpoint(self) -> None:
        """Write the dirty pages of earlier rounds, so that no round pays for another's pages."""
        with self._admin() as admin:
            admin.execute("CHECKPOINT")

    def _admin(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._embedded.url("postgres", "superuser"), autocommit=True)


def statement(name: str) -> str:
    """Return a statement of sql/*.sql, asked for as `file.name`."""
    return _statements()[name]


@cache
def _statements() -> dict[str, str]:
    found = {}
    for path in sorted((Path(__file__).parent / "sql").glob("*.sql")):
        _, *parts = _NAME.split(path.read_text())
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            found[f"{path.stem}.{name}"] = body.strip()
    return found
