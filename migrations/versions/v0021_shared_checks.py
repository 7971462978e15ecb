"""Checks that share their work."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0021_shared_checks.sql").read_text())
