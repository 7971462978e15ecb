"""Embedded servers for tests that start, kill and attack one."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline_tests.fix_home import make_open_folder, quickest_place

MakeServer = Callable[..., EmbeddedServer]


@pytest.fixture(scope="module")
def used_home() -> Iterator[Path]:
    """A home whose server was made, used and stopped: most tests start from it, as initdb takes a second."""
    folder = make_open_folder("pricing-test-", within=quickest_place())
    with EmbeddedServer(folder / "home", for_tests=True, relocation=folder / "elsewhere"):
        pass
    yield folder / "home"
    shutil.rmtree(folder)


@pytest.fixture
def make_server(open_folder: Path, used_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeServer]:
    """Makes servers that end with the test, on a copy of the used home or, with `new`, on nothing."""
    made: list[EmbeddedServer] = []
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))

    def make(home: str = "home", *, new: bool = False, durable: bool = False) -> EmbeddedServer:
        path = open_folder / home
        if not new and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-a", used_home, path], check=True)
        made.append(EmbeddedServer(path, for_tests=not durable, relocation=open_folder / "elsewhere"))
        return made[-1]

    yield make
    for server in made:
        server.stop("immediate")


def ask(url: str, query: str = "SELECT 1") -> Any:
    """Return the first value of a query's answer."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None
