"""Bars come at the scale at which they are stored."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0016_bars_as_they_are.sql").read_text())
