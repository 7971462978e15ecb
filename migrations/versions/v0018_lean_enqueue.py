"""Enqueuing is told when it need not look for tasks that are live already."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0018_lean_enqueue.sql").read_text())
