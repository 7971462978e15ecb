"""What is counted against limits is a worker's to read only."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0043_ledgers.sql").read_text())
