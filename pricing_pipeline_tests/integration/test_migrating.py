"""An upgrade of a database that is in use: each migration runs once, and what is stored stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pricing_pipeline.db import migrate
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline_tests.fixtures.core import QUOTE, Core

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
    assert core.rows("SELECT data_type, symbol, amount, scale, observed_at FROM pricing.latest_prices") == stored
    core.heartbeat("ann", (QUOTE, "IBM"))


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("revision", ["0031", "9001"])
def test_a_database_of_another_version_is_refused_in_words(core: Core, owner_url: str, revision: str) -> None:
    core.rows("UPDATE pricing.alembic_version SET version_num = :r", r=revision)
    with pytest.raises(DatabaseError, match=f"is at migration {revision}, and this version knows .* to {newest()}"):
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
    core.rows("INSERT INTO pricing.warnings (at, source, subject, message) SELECT pricing.clock(), 'test', '', 'x'")
    later = shutil.copytree(MIGRATIONS, tmp_path / "migrations")
    (later / "versions/9001_next.sql").write_text(IN_THE_WAY)
    monkeypatch.setattr(migrate, "_MIGRATIONS", later)
    with pytest.raises(
        DatabaseError, match=r"changed nothing: cannot drop column source_text .* view pricing\.of_mine"
    ):
        upgrade(owner_url)
    assert core.one("SELECT version_num FROM pricing.alembic_version") == newest()
    assert core.one("SELECT count(*) FROM pricing.warnings WHERE source = 'test'") == 1


def test_an_upgrade_replaces_functions_of_another_signature_and_makes_only_the_triggers_that_are_missing(
    core: Core, owner_url: str
) -> None:
    signature = "SELECT array_agg(oid::regprocedure::text) FROM pg_proc WHERE proname = 'usual_publish_lag'"
    assert core.one(signature) == ["pricing.usual_publish_lag(text)"]
    triggers = "SELECT tgname, tgrelid::regclass::text, oid FROM pg_trigger WHERE NOT tgisinternal"
    before = {(row[0], row[1]): row[2] for row in core.rows(triggers)}
    core.rows("DROP FUNCTION pricing.usual_publish_lag(text)")
    core.rows("CREATE FUNCTION pricing.usual_publish_lag(text, date) RETURNS interval RETURN NULL::interval")
    core.rows("CREATE FUNCTION pricing.usual_publish_lag(other text) RETURNS text RETURN other")
    core.rows("CREATE FUNCTION pricing.of_mine() RETURNS text RETURN 'mine'")
    core.rows("DROP TRIGGER keep_class ON pricing.instruments")
    upgrade(owner_url)
    assert core.one(signature) == ["pricing.usual_publish_lag(text)"]
    assert core.one("SELECT pricing.usual_publish_lag('nav')::text") == "06:00:00"
    assert core.one("SELECT pricing.of_mine()") == "mine", "only functions of our names go"
    after = {(row[0], row[1]): row[2] for row in core.rows(triggers)}
    assert after.keys() == before.keys()
    assert {key for key in after if after[key] != before[key]} == {("keep_class", "pricing.instruments")}
