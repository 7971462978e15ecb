"""Create the schema: registry, instruments, demand, queue, limits, prices, drains."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0001_initial.sql").read_text())
