"""Versions of the game that come again, and versions for tests."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0083"
down_revision = "0082"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0083_game_versions.sql").read_text())
