"""Migrations that somebody may have run already stay as they are: what they did not do is for the next one."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

MIGRATIONS = Path(__file__).parents[2] / "migrations/versions"

RELEASED = {
    "0045_baseline.sql": "66dec1c05af79e6d",
}
"""The beginning of each one's SHA-256. A new migration gets its line here; a line is never changed."""


def test_no_migration_is_edited_once_it_is_out() -> None:
    found = {path.name: sha256(path.read_bytes()).hexdigest()[:16] for path in MIGRATIONS.glob("*.sql")}
    assert found == RELEASED
