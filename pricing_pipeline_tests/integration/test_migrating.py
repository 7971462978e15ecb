"""An upgrade of a database that is in use: each migration runs once, and what is stored stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pricing_pipeline.db import migrate
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline_tests.fixtures.core import QUOTE, Core

pytestmark = pytest.mark.usefixtures("still")

MIGRATIONS = Path(migrate.__file__).parents[2] / "migrations"
NEXT = """
from alembic import op

revision = "9001"
down_revision = "{before}"


def upgrade() -> None:
    op.execute("ALTER TABLE pricing.latest_prices ADD COLUMN place text")
    op.execute("INSERT INTO pricing.warnings (at, source, subject, message) SELECT pricing.clock(), 'test', '', 'ran'")
"""


def newest() -> str:
    return max(path.name[:4] for path in (MIGRATIONS / "versions").glob("*.sql"))


def test_a_later_migration_runs_once_and_keeps_what_is_stored(
    core: Core, owner_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    stored = core.rows("SELECT data_type, symbol, amount, scale, observed_at FROM pricing.latest_prices")
    assert stored
    later = shutil.copytree(MIGRATIONS, tmp_path / "migrations")
    (later / "versions/v9001_next.py").write_text(NEXT.format(before=newest()))
    monkeypatch.setattr(migrate, "_MIGRATIONS", later)
    for _ in range(2):
        upgrade(owner_url)
    assert core.one("SELECT version_num FROM pricing.alembic_version") == "9001"
    assert core.one("SELECT count(*) FROM pricing.warnings WHERE source = 'test'") == 1
    assert (
        core.rows("SELECT data_type, symbol, amount, scale, observed_at FROM pricing.latest_prices") == stored
    )
    core.heartbeat("ann", (QUOTE, "IBM"))


@pytest.mark.parametrize("revision", ["0031", "9001"])
def test_a_database_of_another_version_is_refused_in_words(core: Core, owner_url: str, revision: str) -> None:
    core.rows("UPDATE pricing.alembic_version SET version_num = :r", r=revision)
    with pytest.raises(
        DatabaseError, match=f"is at migration {revision}, and this version knows .* to {newest()}"
    ):
        upgrade(owner_url)
    assert core.one("SELECT version_num FROM pricing.alembic_version") == revision
