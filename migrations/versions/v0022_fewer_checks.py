"""Claiming and finishing do less."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0022_fewer_checks.sql").read_text())
