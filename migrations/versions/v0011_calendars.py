"""Trading calendars, gaps, and what a backfill costs."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0011_calendars.sql").read_text())
