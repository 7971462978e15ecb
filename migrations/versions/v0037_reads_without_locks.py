"""A read of a client locks nothing."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0037_reads_without_locks.sql").read_text())
