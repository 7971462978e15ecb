"""Claims wait for no disk but their own, and calls that end at the same time book side by side."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0019_nobody_waits.sql").read_text())
