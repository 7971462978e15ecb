"""A backup that is made while others write holds one moment, and restoring it brings back every byte of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from pricing_pipeline.db import backup
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.support.patience import wait_until

pytestmark = pytest.mark.usefixtures("still")

TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind = 'r' ORDER BY 1"
WRITERS = 3
NAMES = "SELECT symbol FROM pricing.instruments WHERE symbol LIKE 'W%'"
TOLD = "SELECT subject FROM pricing.warnings WHERE source = 'a writer'"


def content(url: str) -> dict[str, list[str]]:
    """Every table's rows as text."""
    with psycopg.connect(url) as connection:
        tables = [table for (table,) in connection.execute(TABLES.encode())]
        return {
            table: [
                text for (text,) in connection.execute(f"SELECT t::text FROM pricing.{table} t ORDER BY 1".encode())
            ]
            for table in tables
        }


class Writers:
    """Sessions that write the same name into two tables in each transaction, one name after the other."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self.written = [0] * WRITERS
        self._threads = [threading.Thread(target=self._write, args=(n,)) for n in range(WRITERS)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        wait_until(lambda: min(self.written) > 10)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self, writer: int) -> None:
        with psycopg.connect(self._url) as connection:
            while not self._stop.is_set():
                name = f"W{writer}N{self.written[writer]}"
                odd = f"{name}\n\\.\n\t\\N €\x7f"
                connection.execute(
                    "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', %s)", [name]
                )
                connection.execute(
                    "INSERT INTO pricing.warnings (at, source, subject, message)"
                    " VALUES (clock_timestamp(), 'a writer', %s, %s)",
                    [name, odd],
                )
                connection.commit()
                self.written[writer] += 1


@pytest.fixture
def other_databases(server: TestServer) -> Iterator[list[str]]:
    names = [f"restored_{uuid4().hex[:12]}" for _ in range(2)]
    for name in names:
        server.create(name, "template0")
    yield [server.url_of_owner(name) for name in names]
    for name in names:
        server.drop(name)


def test_c3_a_backup_under_load_is_one_moment_and_comes_back_to_the_byte(
    core: Core, owner_url: str, other_databases: list[str], tmp_path: Path
) -> None:
    upgrade(owner_url)
    path, again = tmp_path / "prices.dump", tmp_path / "again.dump"
    first, second = other_databases
    with Writers(owner_url) as writers:
        before = list(writers.written)
        backup.back_up(owner_url, path)
        after = [count + 1 for count in writers.written]
        backup.restore(first, path)
    restored, now = content(first), content(owner_url)

    with psycopg.connect(first) as connection:
        names = {name for (name,) in connection.execute(NAMES.encode())}
        told = {name for (name,) in connection.execute(TOLD.encode())}
    assert names == told, "each transaction is there whole, or not at all"
    for writer in range(WRITERS):
        count = sum(name.startswith(f"W{writer}N") for name in names)
        assert {f"W{writer}N{number}" for number in range(count)} <= names, "no earlier one is missing"
        assert before[writer] <= count <= after[writer]

    # Rows that nobody has changed since are the same to the byte; of the other tables, all.
    growing = {"instruments", "warnings"}
    assert {t: rows for t, rows in restored.items() if t not in growing} == {
        t: rows for t, rows in now.items() if t not in growing
    }
    for table in growing:
        assert set(restored[table]) <= set(now[table])

    # A backup of what was restored brings back the same once more.
    backup.back_up(first, again)
    backup.restore(second, again)
    assert content(second) == restored
