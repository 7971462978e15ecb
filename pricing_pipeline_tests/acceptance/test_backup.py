"""`db backup` and `db restore`: what comes back is what was there, or nothing has changed."""

from __future__ import annotations

import io
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline.db import backup
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.db.query_loader import driver_query
from pricing_pipeline.processes.home import lock_home, prepare_home
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

pytestmark = pytest.mark.usefixtures("still")

TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind = 'r' ORDER BY 1"
RIGHTS = """
SELECT o.name, a.grantee::regrole::text, a.privilege_type
FROM (SELECT relname::text AS name, relacl AS acl FROM pg_class WHERE relnamespace = 'pricing'::regnamespace
      UNION ALL SELECT oid::regprocedure::text, proacl FROM pg_proc WHERE pronamespace = 'pricing'::regnamespace) o
CROSS JOIN LATERAL aclexplode(o.acl) a
UNION ALL SELECT polname::text, r::regrole::text, polcmd::text FROM pg_policy CROSS JOIN LATERAL unnest(polroles) r
ORDER BY 1, 2, 3
"""


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


def content(url: str) -> dict[str, list[str]]:
    """Every table's rows as text."""
    return {
        table: [text for (text,) in rows(url, f"SELECT t::text FROM pricing.{table} t ORDER BY 1")]
        for (table,) in rows(url, TABLES)
    }


@pytest.fixture
def prices(cli: CommandLine, core: Core, sandbox: RunningSandbox) -> None:
    """A month that was fetched, and more rows than one chunk of a script has."""
    month = ("--from", "2013-01", "--to", "2013-01")
    assert cli("backfill", "start", "AAPL", "IBM", "--type", DAILY, *month, sandbox_url=sandbox.url).exit_code == 0
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol)"
        " SELECT 'equity', 'X' || n FROM generate_series(1, 5000) n"
    )


@pytest.fixture
def other_database(server: TestServer) -> Iterator[str]:
    name = f"restored_{uuid4().hex[:12]}"
    server.create(name, "template0")
    yield name
    server.drop(name)


def test_c3_what_is_restored_is_what_was_backed_up(
    cli: CommandLine, prices: None, server: TestServer, owner_url: str, other_database: str, tmp_path: Path
) -> None:
    upgrade(owner_url)  # as each start does
    path = tmp_path / "prices.dump"
    said = cli("db", "backup", str(path), "--json")
    assert said.exit_code == 0, said
    assert said.json["bytes"] == path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    there = {
        "database_url": server.url(other_database),
        "owner_url": server.url_of_owner(other_database),
    }
    assert cli("db", "restore", str(path), **there).exit_code == 0
    assert content(there["owner_url"]) == content(owner_url)
    assert rows(there["owner_url"], RIGHTS) == rows(owner_url, RIGHTS)
    history = ("price", "history", "AAPL", "--type", DAILY, "--from", "2013-01", "--to", "2013-01", "--json")
    assert cli(*history, **there).json == cli(*history).json
    assert len(cli(*history, **there).json["rows"]) == 21


def test_c3_a_backup_is_not_written_through_what_others_put_there(cli: CommandLine, core: Core, tmp_path: Path) -> None:
    """In a folder where others may write: a file of theirs or a link, of any name that they can guess."""
    shared, important = tmp_path / "shared", tmp_path / "important"
    shared.mkdir()
    important.write_text("kept")
    (shared / "a.dump.unfinished").touch()
    (shared / "a.dump.unfinished").chmod(0o666)
    (shared / "b.dump.unfinished").symlink_to(important)
    (shared / "b.dump").symlink_to(tmp_path / "nothing yet")
    theirs = (shared / "a.dump.unfinished").stat().st_ino
    for name in ("a.dump", "b.dump"):
        said = cli("db", "backup", str(shared / name))
        assert said.exit_code == 0, said
        status = (shared / name).lstat()
        assert stat.S_ISREG(status.st_mode)
        assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o600, os.geteuid())
        assert status.st_ino != theirs
    assert important.read_text() == "kept"
    assert not (tmp_path / "nothing yet").exists()
    assert len(list(shared.iterdir())) == 4
    nowhere = tmp_path / "nowhere" / "a.dump"
    assert f"{nowhere} cannot be written: No such file" in cli("db", "backup", str(nowhere)).error


def test_c3_prices_are_replaced_only_when_told_so(
    cli: CommandLine, prices: None, core: Core, owner_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "prices.dump"
    assert cli("db", "backup", str(path)).exit_code == 0
    assert "already exists" in cli("db", "backup", str(path)).error
    before = content(owner_url)
    core.rows("DELETE FROM pricing.instruments WHERE symbol LIKE 'X%'")
    core.rows("CREATE TABLE pricing.of_another_version ()")
    changed = content(owner_url)
    assert "holds prices. Give --yes" in cli("db", "restore", str(path)).error
    assert content(owner_url) == changed
    assert cli("db", "restore", str(path), "--yes").exit_code == 0
    assert content(owner_url) == before


@pytest.mark.parametrize("kept", [2000, -10])
def test_c3_a_backup_that_is_cut_off_changes_nothing(
    cli: CommandLine, prices: None, owner_url: str, tmp_path: Path, kept: int
) -> None:
    path, cut = tmp_path / "prices.dump", tmp_path / "cut.dump"
    assert cli("db", "backup", str(path)).exit_code == 0
    cut.write_bytes(path.read_bytes()[:kept])
    before = content(owner_url)
    said = cli("db", "restore", str(cut), "--yes")
    assert "failed: " in said.error
    assert "Nothing has changed." in said.error
    assert content(owner_url) == before


def test_c3_a_restore_that_is_killed_changes_nothing(
    cli: CommandLine, prices: None, owner_url: str, tmp_path: Path
) -> None:
    """Its programs take the end of what they are given for an end, and not for success."""
    path = tmp_path / "prices.dump"
    assert cli("db", "backup", str(path)).exit_code == 0
    before = content(owner_url)
    # Somebody reads a table, so that the restore waits for it halfway.
    with psycopg.connect(owner_url) as reader, psycopg.connect(owner_url, autocommit=True) as looker:
        reader.execute("SELECT FROM pricing.instruments")
        process = cli.start("db", "restore", str(path), "--yes")
        waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%DROP SCHEMA%'"
        wait_until(lambda: looker.execute(waits).fetchone() is not None)
        process.kill()
        process.wait()
        reader.rollback()
        ours = (
            "SELECT FROM pg_stat_activity WHERE application_name = 'pricing_restore' AND datname = current_database()"
        )
        wait_until(lambda: looker.execute(ours).fetchone() is None)
    assert content(owner_url) == before


def test_c3_a_restore_that_met_a_deadlock_is_tried_again(
    cli: CommandLine, prices: None, owner_url: str, server: TestServer, tmp_path: Path
) -> None:
    path = tmp_path / "prices.dump"
    assert cli("db", "backup", str(path)).exit_code == 0
    before = content(owner_url)
    with (
        psycopg.connect(server.admin_url, dbname=make_url(owner_url).database) as reader,
        psycopg.connect(owner_url, autocommit=True) as looker,
    ):
        reader.execute("SET deadlock_timeout = '1min'")  # PostgreSQL ends the restore, and not this reader
        reader.execute("SELECT FROM pricing.instruments")
        process = cli.start("db", "restore", str(path), "--yes")
        held = """SELECT l.relation::regclass::text FROM pg_stat_activity a JOIN pg_locks l USING (pid)
            JOIN pg_class c ON c.oid = l.relation AND c.relkind = 'r' AND c.relnamespace = 'pricing'::regnamespace
            WHERE a.wait_event_type = 'Lock' AND a.query LIKE '%DROP SCHEMA%'
              AND l.mode = 'AccessExclusiveLock' AND l.granted LIMIT 1"""
        tables: list[str] = []  # kept as they are found: the restore gives its locks up between two attempts
        wait_until(lambda: tables.extend(name for (name,) in looker.execute(held)) or tables)
        reader.execute(f"SELECT FROM {tables[0]}".encode())  # until the restore has ended
        reader.rollback()
        assert process.wait(timeout=60) == 0
    assert content(owner_url) == before


def wrapped(folder: Path, *, knows_restrict: bool) -> Path:
    """The programs; without `\\restrict` as they were before August 2025, or all writing it."""
    folder.mkdir()
    real = backup._programs(0)
    for name in ("pg_dump", "pg_restore", "psql"):
        (folder / name).write_text(f'#!/bin/sh\nexec "{real / name}" "$@"\n')
        (folder / name).chmod(0o755)
    if not knows_restrict:
        script = f"""#!/bin/bash
set -o pipefail
"{real}/pg_restore" "$@" | sed -e '/^\\\\\\(un\\)\\?restrict /d'
"""
        (folder / "pg_restore").write_text(script)
    return folder


@pytest.mark.parametrize("knows_restrict", [True, False])
def test_c3_no_backup_makes_the_restore_run_a_program(
    cli: CommandLine,
    prices: None,
    owner_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    knows_restrict: bool,
) -> None:
    """A forged backup contains what psql takes for its own commands, which start programs (CVE-2025-8714).

    psql refuses them after `\\restrict`, which older releases of its programs do not write.
    """
    folder = wrapped(tmp_path / "programs", knows_restrict=knows_restrict)
    monkeypatch.setattr(backup, "_programs", lambda _: folder)
    path, forged, proof = tmp_path / "prices.dump", tmp_path / "forged.dump", tmp_path / "proof"
    command = f"';\n\\! touch {proof}\nSELECT '".encode()
    place = b"P" * len(command)
    with psycopg.connect(owner_url) as owner:
        owner.execute(f"COMMENT ON SCHEMA pricing IS '{place.decode()}'".encode())
    backup.back_up(owner_url, path)
    content_of_backup = path.read_bytes()
    assert content_of_backup.count(place) == 1
    forged.write_bytes(content_of_backup.replace(place, command))
    script = subprocess.run(
        [folder / "pg_restore", "--file=-", forged], capture_output=True, text=True, check=True
    ).stdout
    assert f"\n\\! touch {proof}\n" in script, "psql would read it as a command"
    assert ("\n\\restrict " in script) == knows_restrict
    before = content(owner_url)
    with pytest.raises(backup.DatabaseError, match=r"failed: .*syntax error.*Nothing has changed"):
        backup.restore(owner_url, forged)
    assert not proof.exists()
    assert content(owner_url) == before
    backup.restore(owner_url, path)
    assert content(owner_url) == before


@pytest.mark.parametrize(
    ("original", "forgery"),
    [
        (rb"'P{99}'", b"''; COMMIT; SELECT 1/0; --"),
        (rb"'P{99}'", b"'\xff'; --"),
        (rb"SELECT pg_catalog\.setval\([^;]*;", b"COMMIT; SELECT 1/0;"),
    ],
    ids=["pre-data", "no text", "data"],
)
def test_c3_no_backup_ends_the_transaction_of_the_restore(
    core: Core, owner_url: str, tmp_path: Path, original: bytes, forgery: bytes
) -> None:
    """A forged backup could commit the drop and fail then, which was reported as `Nothing has changed`."""
    path = tmp_path / "prices.dump"
    with psycopg.connect(owner_url) as owner:
        owner.execute(f"COMMENT ON SCHEMA pricing IS '{'P' * 99}'".encode())
    backup.back_up(owner_url, path)
    whole = path.read_bytes()
    forged = re.sub(original, lambda found: forgery.rjust(len(found[0])), whole, count=1)
    assert forged != whole
    assert len(forged) == len(whole)
    path.write_bytes(forged)
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'NEWER')")
    before = content(owner_url)
    with pytest.raises(backup.DatabaseError, match=r"failed: .*Nothing has changed"):
        backup.restore(owner_url, path)
    assert content(owner_url) == before


def test_c3_no_statement_comes_with_the_rows_of_a_table(owner_url: str) -> None:
    with psycopg.connect(owner_url) as owner:
        owner.execute("CREATE TABLE pricing.forged (number integer)")
    copy = b"COPY pricing.forged FROM stdin;"
    with psycopg.connect(owner_url) as owner:
        owner.execute(driver_query("backup.make_run"))
        with pytest.raises(psycopg.Error):
            backup._run_script(owner, io.BytesIO(copy + b" COMMIT; " + copy + b"\n1\n\\.\n"), has_rows=True)
    assert rows(owner_url, "SELECT * FROM pricing.forged") == []


def test_c3_rows_and_functions_may_hold_what_psql_would_read_as_commands(
    cli: CommandLine, core: Core, owner_url: str, tmp_path: Path
) -> None:
    """Whatever a text holds, it comes back: lines that look like the end of rows, like COPY, or like a command."""
    odd = "a\n\\.\nCOPY pricing.x FROM stdin;\n\\restrict x\n\\! ls\n\\\\ \t\x7f €🂡 %s %%"
    lines = odd.replace("'", "''")
    with psycopg.connect(owner_url) as owner:
        owner.execute("INSERT INTO pricing.warnings (at, source, subject, message) VALUES (now(), 'a', 'b', %s)", [odd])
        body = f"SELECT $x${lines}$x$::text"
        owner.execute(f"CREATE FUNCTION pricing.odd() RETURNS text LANGUAGE sql AS $f${body}$f$".encode())
    before = content(owner_url)
    path = tmp_path / "prices.dump"
    backup.back_up(owner_url, path)
    backup.restore(owner_url, path)
    assert content(owner_url) == before
    assert rows(owner_url, "SELECT pricing.odd()") == [(odd,)]


def test_c3_a_restore_beside_a_running_pipeline_is_refused(cli: CommandLine, tmp_path: Path) -> None:
    with cli.running():
        assert "Stop it before you restore" in cli("db", "restore", str(tmp_path / "prices.dump")).error


def test_c3_a_backup_that_is_not_there_is_one_sentence(cli: CommandLine, tmp_path: Path) -> None:
    assert "there is no backup" in cli("db", "restore", str(tmp_path / "nothing.dump")).error
    assert not (tmp_path / "nothing.dump").exists()


def test_b2_no_program_is_given_a_password_that_others_can_see(owner_url: str) -> None:
    password = make_url(owner_url).password
    address, environment = backup.address_and_password(owner_url)
    assert environment["PGPASSWORD"] == password
    assert str(password) not in address
    with psycopg.connect(address, password=environment["PGPASSWORD"]) as connection:
        assert connection.info.dbname == make_url(owner_url).database


def programs(folder: Path, version: int) -> Path:
    folder.mkdir()
    for name in ("pg_dump", "pg_restore", "psql"):
        (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}.3 (Debian {version}.3-1)'\n")
        (folder / name).chmod(0o755)
    return folder


def test_c3_a_program_that_is_older_than_the_server_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that is first on PATH was taken: an older `pg_dump` refuses the server."""
    old, new = programs(tmp_path / "old", 14), programs(tmp_path / "new", 97)
    monkeypatch.setenv("PATH", f"{old}:{new}")
    assert backup._programs(97) == new
    assert backup._programs(18) not in (old, new)
    with pytest.raises(backup.DatabaseError, match=r"server is PostgreSQL 98, and no pg_dump") as caught:
        backup._programs(98)
    assert f"14 in {old}, 97 in {new}" in str(caught.value)
    monkeypatch.setattr(backup, "binaries", lambda *_: old)
    assert backup._programs(15) != old


def test_c3_a_home_is_backed_up_and_restored_while_nothing_runs(cli: CommandLine, open_folder: Path) -> None:
    """Of the embedded server: it runs for the command, and stops after it."""
    first, second, path = (
        open_folder / "the first",
        open_folder / "the second",
        open_folder / "the prices.dump",
    )
    assert "does not exist" in cli("db", "backup", str(path), database_url="", owner_url="", home=str(first)).error
    prepare_home(first)
    with EmbeddedServer(first, for_tests=True) as server:
        upgrade(server.url("pricing"))
        with psycopg.connect(server.url("pricing")) as connection:
            connection.execute("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'KEPT')")
        # While the pipeline runs.
        lock = lock_home(first, patience=0)
        assert cli("db", "backup", f"{path}.1", database_url="", owner_url="", home=str(first)).exit_code == 0
    os.close(lock)
    said = cli("db", "backup", str(path), database_url="", owner_url="", home=str(first))
    assert said.exit_code == 0, said
    again = cli("db", "backup", str(path), database_url="", owner_url="", home=str(first))
    assert "already exists, and is kept" in again.error
    nothing = cli("db", "restore", f"{path}.2", database_url="", owner_url="", home=str(second))
    assert "there is no backup" in nothing.error
    path.with_suffix(".txt").write_text("-- SQL")
    other = cli("db", "restore", str(path.with_suffix(".txt")), database_url="", owner_url="", home=str(second))
    assert "is no backup that `db backup` wrote" in other.error
    assert not second.exists(), "a refused restore makes no home"
    said = cli("db", "restore", str(path), database_url="", owner_url="", home=str(second))
    assert said.exit_code == 0, said
    assert f"the database of {second} holds what" in said.stdout
    assert not EmbeddedServer(second).is_running
    with EmbeddedServer(second, for_tests=True) as server:
        assert rows(server.url("pricing", "worker"), "SELECT symbol FROM pricing.instruments") == [("KEPT",)]
