"""The row of `follow_clock` tells by itself whether the clock was set."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0077"
down_revision = "0076"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0077_clock_row.sql").read_text())
