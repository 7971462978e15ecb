"""Pairs that trouble keeps old stay late, and come back when their provider does."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0027_outages.sql").read_text())
