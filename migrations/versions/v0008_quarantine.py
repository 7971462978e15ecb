"""Quarantine, bounds and fallback routes."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0008_quarantine.sql").read_text())
