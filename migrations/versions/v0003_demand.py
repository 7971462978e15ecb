"""Holdings, pauses, caps, and schedules that catch up."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0003_demand.sql").read_text())
