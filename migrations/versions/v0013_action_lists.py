"""Dividends and splits as lists of their own."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0013_action_lists.sql").read_text())
