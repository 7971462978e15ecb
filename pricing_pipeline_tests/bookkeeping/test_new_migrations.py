"""`make check` lets squawk judge new migrations: what they must not do to clients of the version before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SQUAWK = Path(sys.executable).with_name("squawk")
MIGRATIONS = ROOT / "migrations/versions"


def complaints(folder: Path, statement: str, name: str = "0099_new.sql") -> set[str]:
    """Names of the rules that a migration breaks."""
    path = folder / "versions" / name
    path.parent.mkdir()
    path.write_text(statement)
    done = subprocess.run(
        [
            SQUAWK,
            "--config",
            ROOT / ".squawk.toml",
            "--no-error-on-unmatched-pattern",
            "--reporter",
            "json",
            path,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    found = {fault["rule_name"] for fault in json.loads(done.stdout or "[]")}
    assert done.returncode == (1 if found else 0), done
    return found


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("ALTER TABLE pricing.latest_prices ALTER COLUMN scale TYPE bigint;", "changing-column-type"),
        ("ALTER TABLE pricing.latest_prices DROP COLUMN scale;", "ban-drop-column"),
        (
            "ALTER TABLE pricing.documents ADD COLUMN seen timestamptz DEFAULT clock_timestamp();",
            "adding-field-with-default",
        ),
        ("COMMIT;", "transaction-nesting"),
    ],
)
def test_what_would_harm_clients_at_work_is_noticed(tmp_path: Path, statement: str, rule: str) -> None:
    assert rule in complaints(tmp_path, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE pricing.documents ADD COLUMN place text, ADD CONSTRAINT place_is_short CHECK (length(place) < 9);",
        "ALTER TABLE pricing.demand DROP CONSTRAINT one; ALTER TABLE pricing.demand ADD CONSTRAINT one CHECK (true);",
        "-- Nobody reads it.\n-- squawk-ignore ban-drop-column\nALTER TABLE pricing.demand DROP COLUMN place;",
    ],
)
def test_what_migrations_ordinarily_do_passes(tmp_path: Path, statement: str) -> None:
    assert complaints(tmp_path, statement) == set()


def test_only_the_baseline_is_passed_over(tmp_path: Path) -> None:
    for path in sorted(MIGRATIONS.glob("*.sql")):
        folder = tmp_path / path.stem
        folder.mkdir()
        judged = "syntax-error" in complaints(folder, "CREATE TABEL pricing.visits ();", path.name)
        assert judged == (path.name != "0001_baseline.sql"), path.name
