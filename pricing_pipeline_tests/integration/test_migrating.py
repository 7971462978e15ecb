"""An upgrade of a database that is in use: each migration runs once, and what is stored stays."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.errors import CheckViolation

from pricing_pipeline.db import migrate
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import TestServer

MIGRATIONS = Path(migrate.__file__).parents[2] / "migrations"
NEXT = """
ALTER TABLE pricing.latest_prices ADD COLUMN place text;
INSERT INTO pricing.warnings (at, source, subject, message) SELECT pricing.clock(), 'test', '', 'ran';
"""


def newest() -> str:
    return max(path.name[:4] for path in (MIGRATIONS / "versions").glob("*.sql"))


@pytest.mark.usefixtures("still")
def test_a_later_migration_runs_once_and_keeps_what_is_stored(
    core: Core, owner_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    stored = core.rows("SELECT data_type, symbol, amount, scale, observed_at FROM pricing.latest_prices")
    assert stored
    later = shutil.copytree(MIGRATIONS, tmp_path / "migrations")
    (later / "versions/9001_next.sql").write_text(NEXT)
    monkeypatch.setattr(migrate, "_MIGRATIONS", later)
    for _ in range(2):
        upgrade(owner_url)
    assert core.one("SELECT version_num FROM pricing.alembic_version") == "9001"
    assert core.one("SELECT count(*) FROM pricing.warnings WHERE source = 'test'") == 1
    assert (
        core.rows("SELECT data_type, symbol, amount, scale, observed_at FROM pricing.latest_prices") == stored
    )
    core.heartbeat("ann", (QUOTE, "IBM"))


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("revision", ["0031", "9001"])
def test_a_database_of_another_version_is_refused_in_words(core: Core, owner_url: str, revision: str) -> None:
    core.rows("UPDATE pricing.alembic_version SET version_num = :r", r=revision)
    with pytest.raises(
        DatabaseError, match=f"is at migration {revision}, and this version knows .* to {newest()}"
    ):
        upgrade(owner_url)
    assert core.one("SELECT version_num FROM pricing.alembic_version") == revision


IN_THE_WAY = """
DELETE FROM pricing.warnings;
ALTER TABLE pricing.latest_prices DROP COLUMN source_text;
"""


def test_an_upgrade_that_fails_names_what_is_in_the_way_and_changes_nothing(
    core: Core, owner_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.rows("CREATE VIEW pricing.of_mine AS SELECT symbol, source_text FROM pricing.latest_prices")
    core.rows(
        "INSERT INTO pricing.warnings (at, source, subject, message) SELECT pricing.clock(), 'test', '', 'x'"
    )
    later = shutil.copytree(MIGRATIONS, tmp_path / "migrations")
    (later / "versions/9001_next.sql").write_text(IN_THE_WAY)
    monkeypatch.setattr(migrate, "_MIGRATIONS", later)
    with pytest.raises(
        DatabaseError, match=r"changed nothing: cannot drop column source_text .* view pricing\.of_mine"
    ):
        upgrade(owner_url)
    assert core.one("SELECT version_num FROM pricing.alembic_version") == newest()
    assert core.one("SELECT count(*) FROM pricing.warnings WHERE source = 'test'") == 1


def test_values_that_wait_for_a_person_are_quarantined_after_the_upgrade(
    server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 0048 their state was called held. Other states stay."""
    before = shutil.copytree(MIGRATIONS, tmp_path / "migrations")
    for path in (before / "versions").glob("*.sql"):
        if path.name >= "0048":
            path.unlink()
    # Functions of today would not fit the tables of then.
    package = tmp_path / "db"
    (package / "functions").mkdir(parents=True)
    (package / "grants.sql").touch()
    name = f"pricing_test_{uuid4().hex[:16]}"
    server.create(name, "template1")
    try:
        url = server.url_of_owner(name)
        with monkeypatch.context() as patch:
            patch.setattr(migrate, "_MIGRATIONS", before)
            patch.setattr(migrate, "_PACKAGE", package)
            upgrade(url)
        with psycopg.connect(url, autocommit=True) as connection:
            insert = (
                "INSERT INTO pricing.quarantined_values (data_type, symbol, provider, kind, value, reason, call_id,"
                " recorded_at, last_seen_at, last_call_id, status, resolved_at)"
                " VALUES ('x', 'AAPL', 'p', 'unit', %s, 'far', 1, now(), now(), 1, %s, %s)"
            )
            connection.execute(insert, ["1", "held", None])
            connection.execute(insert, ["2", "released", "2026-01-01"])
            upgrade(url)
            rows = connection.execute(
                "SELECT value, status FROM pricing.quarantined_values ORDER BY value"
            ).fetchall()
            assert rows == [("1", "quarantined"), ("2", "released")]
            with pytest.raises(CheckViolation, match="status_is_known"):
                connection.execute(insert, ["3", "held", "2026-01-01"])
            with pytest.raises(CheckViolation, match="quarantined_is_unresolved"):
                connection.execute(insert, ["3", "quarantined", "2026-01-01"])
            with pytest.raises(CheckViolation, match="quarantined_is_unresolved"):
                connection.execute(insert, ["3", "rejected", None])
    finally:
        server.drop(name)
